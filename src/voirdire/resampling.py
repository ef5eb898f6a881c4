"""Replicates of a tally: clusters left out one at a time, and clusters drawn anew.

Both work on the distinct rows and never on the data. Drawing is the *exact* multinomial bootstrap:
within each stratum as many clusters as there are, with replacement.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from voirdire.tally import Tally, summed

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 21  # cells of replicate totals held at once
_DRAWS = 40_000_000  # cluster draws (replicates × clusters) that are made one by one
_BINOMIALS = 40_000_000  # else: draws of (replicates × distinct rows)
_KEPT = 4_000_000  # draws up to which they are also kept as numbers to multiply with
_ONE_THREAD = 1 << 18  # products up to which a matrix product wakes no other thread
_SMALL = 1 << 25  # products up to which waking other threads costs more than it saves


class TooManyRows(Exception):
    """There are too many distinct rows for the bootstrap within memory and time."""


def left_out(tally: Tally) -> Iterator[tuple[Array, Array, Array]]:
    """Totals with one cluster left out, once a distinct row.

    Yields chunks ``(totals (rows, *shape), clusters (rows,), strata (rows,))``. In a stratified
    tally the stratum's other clusters are weighed up to the stratum's total.
    """
    size = max(1, int(np.prod(tally.shape)))
    step = max(1, _CHUNK // size)
    total = tally.total
    strata = np.unique(tally.strata)
    if len(strata) == 1:
        for low in range(0, len(tally.rows), step):
            span = slice(low, low + step)
            yield total - tally.rows[span], tally.clusters[span], tally.strata[span]
        return
    for stratum in strata:
        inside = np.flatnonzero(tally.strata == stratum)
        multiplicity = tally.clusters[inside]
        clusters = int(multiplicity.sum())
        if clusters < 2:
            continue  # a stratum of one cluster gives no variance; the caller counts it
        stratum_total = summed(multiplicity, tally.rows[inside])
        for low in range(0, len(inside), step):
            chosen = inside[low : low + step]
            rest = (stratum_total - tally.rows[chosen]) * (clusters / (clusters - 1))
            yield total - stratum_total + rest, tally.clusters[chosen], tally.strata[chosen]


@lru_cache(maxsize=3)
def _drawn(clusters: int, replicates: int, seed: int) -> Array:
    """How often each of ``clusters`` is drawn in each replicate, ``(replicates, clusters)`` uint16."""
    generator = np.random.Generator(np.random.PCG64(seed))
    weights = np.empty((replicates, clusters), dtype=np.uint16)
    kind = np.uint16 if clusters <= 2**16 else np.uint32
    step = max(1, (1 << 22) // clusters)
    for low in range(0, replicates, step):
        rows = min(step, replicates - low)
        drawn = generator.integers(0, clusters, size=(rows, clusters), dtype=kind)
        offsets = np.arange(rows, dtype=np.int64)[:, None] * clusters
        counts = np.bincount((drawn + offsets).ravel(), minlength=rows * clusters)
        weights[low : low + rows] = counts.reshape(rows, clusters)
    return weights


@lru_cache(maxsize=3)
def _drawn_factors(clusters: int, replicates: int, seed: int) -> Array:
    """The same draws as float32, so that the many tallies of a small table share them."""
    return _drawn(clusters, replicates, seed).astype(np.float32)


def _product(weights: Array, rows: Array) -> Array:
    """A matrix product of whole numbers; a small one is made on one thread, in blocks."""
    each = weights.shape[1] * rows.shape[1]
    if not _ONE_THREAD < len(weights) * each <= _SMALL:
        return np.asarray(weights @ rows)
    step = max(1, _ONE_THREAD // each)
    made = np.empty((len(weights), rows.shape[1]), dtype=rows.dtype)
    for low in range(0, len(weights), step):
        np.matmul(weights[low : low + step], rows, out=made[low : low + step])
    return made


def drawn_totals(tally: Tally, *, replicates: int, seed: int) -> Iterator[Array]:
    """Cell totals of bootstrap replicates, in chunks ``(replicates of the chunk, *shape)``.

    Raises :class:`TooManyRows` where neither clusters nor distinct rows are few enough.
    """
    size = max(1, int(np.prod(tally.shape)))
    flat = tally.rows.reshape(len(tally.rows), -1).astype(np.float64)
    # How many clusters are drawn, their weights (replicates, rows) unless drawn one by one from a
    # seed, and the rows of cells.
    drawn: list[tuple[int, Array | None, int, Array]] = []
    for place, stratum in enumerate(np.unique(tally.strata)):
        inside = np.flatnonzero(tally.strata == stratum)
        multiplicity = tally.clusters[inside]
        clusters = int(multiplicity.sum())
        own_seed = seed if place == 0 else _stratum_seed(seed, place)
        if clusters * replicates <= _DRAWS:
            rows = np.repeat(flat[inside], multiplicity, axis=0)
            drawn.append((clusters, None, own_seed, rows))
        elif len(inside) * replicates <= _BINOMIALS:
            generator = np.random.Generator(np.random.PCG64(own_seed))
            weights = generator.multinomial(clusters, multiplicity / clusters, size=replicates)
            drawn.append((clusters, weights, own_seed, flat[inside]))
        else:
            raise TooManyRows
    # Whole numbers below 2**24 are exact in float32, in any order of addition, and twice as fast.
    largest = sum(float(rows.max(initial=0)) * float(len(rows)) for *_, rows in drawn)
    exact = not tally.weighted and all(
        clusters * float(rows.max(initial=0)) < 2**24 for clusters, *_, rows in drawn
    )
    kind = np.float32 if exact and largest < 2**24 else np.float64
    parts: list[tuple[Any, Any]] = []
    for clusters, weights_, own_seed, rows in drawn:
        if weights_ is None:
            kept = kind is np.float32 and clusters * replicates <= _KEPT
            weights_ = (_drawn_factors if kept else _drawn)(clusters, replicates, own_seed)
        parts.append((weights_, rows.astype(kind)))
    widest = max(size, *(len(r) for _, r in parts)) if parts else size
    step = max(1, (4 * _CHUNK) // widest)
    for low in range(0, replicates, step):
        high = min(low + step, replicates)
        totals = np.zeros((high - low, size), dtype=np.float64)
        for weights, rows in parts:
            block = weights[low:high].astype(kind, copy=False)
            # Whole numbers add up alike in any order; others must not depend on the threads.
            part: Any = _product(block, rows) if exact else np.einsum("rc,cs->rs", block, rows)
            totals += np.asarray(part, dtype=np.float64)
        yield totals.reshape(high - low, *tally.shape)


def _stratum_seed(seed: int, place: int) -> int:
    return int(np.random.SeedSequence([seed, place]).generate_state(1, np.uint64)[0] >> 1)
