"""The waist of the computation: distinct rows of counts in a cluster, and how many clusters have each.

A statistic counts its own cells in every cluster. Resampling clusters depends only on *how many
clusters have which row of counts*, so this is all that is kept: values, jackknife, bootstrap and
linearised variance come from it without touching the data again, and tallies of shards (whole
clusters each) add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 22  # cells counted at once, so that memory stays bounded


def summed(weights: Array, amounts: Array) -> Array:
    """The weighted sum over the first axis: ``(rows,)`` and ``(rows, …)`` give ``(…)``.

    The order of addition is fixed, which a matrix product leaves to the number of threads.
    """
    return np.asarray(
        np.einsum("i,i...->...", weights.astype(np.float64), amounts.astype(np.float64))
    )


@dataclass(frozen=True)
class Tally:
    """Distinct rows of cells with the number of clusters that have them.

    ``rows`` is ``(distinct, *shape)``, int64 counts or float64 weighted counts; ``clusters`` and
    ``strata`` are ``(distinct,)``. ``sizes`` holds the unweighted counts beside weighted ones and
    is ``rows`` itself otherwise. Rows stand in a canonical order (by their content), so that the
    order of the data does not show. Rows that are zero throughout are left out.
    """

    rows: Array
    clusters: Array
    strata: Array
    sizes: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.rows.shape[1:])

    @cached_property
    def total(self) -> Array:
        """Cell totals over all clusters, float64, of ``shape``."""
        return summed(self.clusters, self.rows)

    @cached_property
    def size(self) -> Array:
        """Unweighted cell totals, float64, of ``shape``."""
        if self.sizes is self.rows:
            return self.total
        return summed(self.clusters, self.sizes)

    @cached_property
    def count(self) -> int:
        """How many clusters have anything in them."""
        return int(self.clusters.sum())

    @property
    def weighted(self) -> bool:
        return self.sizes is not self.rows

    def __add__(self, other: Tally) -> Tally:
        """The tally of both shards; each holds whole clusters, so nothing is counted twice."""
        if self.shape != other.shape:
            raise ValueError(f"tallies of shapes {self.shape} and {other.shape} do not add")
        return _together([self, other])

    def mapped(self, change: Callable[[Array], Array]) -> Tally:
        """The same clusters under other cells, each a linear function of the present ones."""
        rows = change(self.rows)
        sizes = change(self.sizes) if self.weighted else rows
        return _distinct(rows, self.clusters, self.strata, sizes)


def count(
    cluster: Array,
    cell: Array,
    shape: tuple[int, ...],
    *,
    amounts: Array | None = None,
    weights: Array | None = None,
    copies: Array | None = None,
    stratum: Array | None = None,
) -> Tally:
    """Count events into cells within clusters.

    ``cluster`` and ``cell`` are integer codes, one an event; ``cell`` runs over the flattened
    ``shape``. ``amounts`` are whole numbers, how much each event counts (default 1); ``weights`` are
    design weights of the events; ``copies`` says how often the event's cluster stands (a frequency
    weight of 2 is the row twice).
    """
    size = int(np.prod(shape))
    if len(cluster) == 0:
        empty = np.zeros((0, *shape), dtype=np.int64)
        none = np.zeros(0, dtype=np.int64)
        return Tally(empty, none, none, empty)
    codes, cluster = np.unique(cluster, return_inverse=True)
    clusters = len(codes)
    strata = np.zeros(clusters, dtype=np.int64)
    if stratum is not None:
        strata[cluster] = stratum
    multiplicity = np.ones(clusters, dtype=np.int64)
    if copies is not None:
        multiplicity[cluster] = copies.astype(np.int64)
    step = max(1, _BLOCK // size)
    spans: list[tuple[int, int, slice]] = [(0, clusters, slice(None))]
    if clusters > step:
        order = np.argsort(cluster, kind="stable")
        cluster, cell = cluster[order], cell[order]
        amounts = None if amounts is None else amounts[order]
        weights = None if weights is None else weights[order]
        cuts = [*range(0, clusters, step), clusters]
        edges = np.searchsorted(cluster, cuts)
        spans = [
            (cuts[i], cuts[i + 1], slice(int(edges[i]), int(edges[i + 1])))
            for i in range(len(cuts) - 1)
        ]
    tallies = []
    for low, high, span in spans:
        place = (cluster[span] - low) * size + cell[span]
        whole = _filled(place, None if amounts is None else amounts[span], high - low, size)
        whole = np.rint(whole).astype(np.int64)
        rows = whole
        if weights is not None:
            amount = weights[span] if amounts is None else weights[span] * amounts[span]
            rows = _filled(place, amount, high - low, size)
        tallies.append(_distinct(rows, multiplicity[low:high], strata[low:high], whole))
    result = _together(tallies)
    rows = result.rows.reshape(-1, *shape)
    sizes = rows if weights is None else result.sizes.reshape(-1, *shape)
    return Tally(rows, result.clusters, result.strata, sizes)


def _filled(place: Array, amount: Array | None, clusters: int, size: int) -> Array:
    """Cells of each cluster, ``(clusters, size)``, from the flat place of each event."""
    weights = None if amount is None else amount.astype(np.float64)
    return np.bincount(place, weights=weights, minlength=clusters * size).reshape(clusters, size)


def _together(tallies: list[Tally]) -> Tally:
    if len(tallies) == 1:
        return tallies[0]
    rows = np.concatenate([t.rows for t in tallies])
    weighted = any(t.weighted for t in tallies)
    return _distinct(
        rows,
        np.concatenate([t.clusters for t in tallies]),
        np.concatenate([t.strata for t in tallies]),
        np.concatenate([t.sizes for t in tallies]) if weighted else rows,
    )


def of_rows(
    rows: Array, *, stratum: Array | None = None, multiplicity: Array | None = None
) -> Tally:
    """A tally from one row of counts a cluster, ``(clusters, *shape)``."""
    clusters = np.ones(len(rows), dtype=np.int64) if multiplicity is None else multiplicity
    strata = np.zeros(len(rows), dtype=np.int64) if stratum is None else stratum
    return _distinct(rows, clusters, strata, rows)


def _distinct(rows: Array, clusters: Array, strata: Array, sizes: Array) -> Tally:
    """Equal rows put together, in the order of a fixed hash of their content."""
    shape = rows.shape[1:]
    flat = rows.reshape(len(rows), int(np.prod(shape)))  # not −1: there may be no rows
    weighted = sizes is not rows
    seen = np.concatenate([flat, sizes.reshape(flat.shape)], axis=1) if weighted else flat
    keep = (seen != 0).any(axis=1) & (clusters > 0)
    if not keep.all():
        flat, seen, clusters, strata = flat[keep], seen[keep], clusters[keep], strata[keep]
        sizes = sizes[keep]
    hashes = _hash(seen, strata)
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    if len(first) < len(hashes) and not (
        np.array_equal(seen[first][group], seen) and np.array_equal(strata[first][group], strata)
    ):  # pragma: no cover - two different rows with one 64-bit hash
        both = np.concatenate([seen, strata[:, None]], axis=1)
        _, first, group = np.unique(both, axis=0, return_index=True, return_inverse=True)
    together = np.zeros(len(first), dtype=np.int64)
    np.add.at(together, group, clusters)
    kept = flat[first].reshape(len(first), *shape)
    return Tally(kept, together, strata[first], sizes[first] if weighted else kept)


def _hash(rows: Array, strata: Array) -> Array:
    """A 64-bit hash of each row's numbers, the same on every machine."""
    if rows.dtype.kind == "f":
        bits = (rows + 0.0).view(np.uint64)
    else:
        bits = rows.astype(np.int64).view(np.uint64)
    cells = rows.shape[1]
    factors = np.random.Generator(np.random.PCG64(20_261_130)).integers(
        1, 2**63, size=cells + 1, dtype=np.uint64
    ) * np.uint64(2) + np.uint64(1)
    mixed = strata.astype(np.int64).view(np.uint64) * factors[cells]
    for j in range(cells):  # a loop over cells: never over responses
        part = (bits[:, j] + np.uint64(j + 1)) * factors[j]
        mixed = mixed + (part ^ (part >> np.uint64(29)))
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(mixed ^ (mixed >> np.uint64(29)))
