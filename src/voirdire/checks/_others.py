"""What checks of single responses share: the verdict of other graders, and sums over clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voirdire.grid import Grid

Array = np.ndarray[Any, Any]

NO_VERDICT = -1
FEWEST_OTHERS = 2


def class_votes(codes: Array, members: Sequence[int], k: int) -> Array:
    """How many of the members (places of columns) give each class, ``(rows, k)``."""
    counts = np.zeros((len(codes), k), dtype=np.int32)
    for member in members:
        read = np.flatnonzero(codes[:, member] >= 0)
        counts[read, codes[read, member]] += 1
    return counts


def strict_majority(votes: Array, members: int) -> Array:
    """The class of more than half of the members, those without a label counted in, else −1."""
    best = votes.argmax(axis=1)
    won = 2 * np.take_along_axis(votes, best[:, None], axis=1)[:, 0] > members
    return np.where(won, best, NO_VERDICT)


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of a sum over clusters, its degrees of freedom, and the clusters behind it."""

    variance: float
    df: int
    clusters: int

    @property
    def error(self) -> float:
        return float(np.sqrt(self.variance))


def between_clusters(grid: Grid, amounts: Array, there: Array) -> Spread:
    """The cluster-robust variance of the sum of ``amounts``, ``(responses,)``, where ``there``.

    Linearised: amounts add up within a cluster, and the variance is that of these sums around their
    mean in the stratum, times C / (C − 1). A frequency weight of 2 is the response twice.
    """
    rows = np.flatnonzero(there)
    times = np.ones(len(rows))
    if grid.frequency and grid.weights is not None:
        times = grid.weights[rows].astype(np.float64)
    if grid.own_cluster:  # every response is as many clusters as its weight says
        sums, copies = amounts[rows], times
        stratum = np.zeros(len(rows), dtype=np.int64)
        if grid.stratum is not None:
            stratum = grid.stratum[rows]
    else:
        names, cluster = np.unique(grid.cluster[rows], return_inverse=True)
        sums = np.bincount(cluster, weights=amounts[rows] * times, minlength=len(names))
        copies = np.ones(len(names))
        stratum = np.zeros(len(names), dtype=np.int64)
        if grid.stratum is not None:
            stratum[cluster] = grid.stratum[rows]
    variance, strata = 0.0, np.unique(stratum)
    for one in strata:
        inside = stratum == one
        many = float(copies[inside].sum())
        if many < 2:
            continue
        apart = sums[inside] - float((copies[inside] * sums[inside]).sum()) / many
        variance += many / (many - 1) * float((copies[inside] * apart**2).sum())
    clusters = round(float(copies.sum()))
    return Spread(variance, clusters - len(strata), clusters)
