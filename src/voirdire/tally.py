"""The waist of the computation: distinct rows of counts in a cluster, and how many clusters have each.

A statistic counts its own cells in every cluster. Resampling clusters depends only on *how many
clusters have which row of counts*, so this is all that is kept: values, jackknife, bootstrap and
linearised variance come from it without touching the data again, and tallies of shards (whole
clusters each) add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
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
    if weights is not None:
        # Sums of fractions depend on their order, so it is made one that no row order shows in.
        amount = weights if amounts is None else weights * amounts
        order = np.lexsort((amount, cell, cluster))
    elif (cluster[1:] < cluster[:-1]).any():
        order = np.argsort(cluster, kind="stable")
    else:
        order = None
    if order is not None:
        cluster, cell = cluster[order], cell[order]
        amounts, weights, copies, stratum = (
            None if a is None else a[order] for a in (amounts, weights, copies, stratum)
        )
    starts = np.flatnonzero(np.r_[True, cluster[1:] != cluster[:-1]])
    events = _Events(
        cell=cell,
        starts=starts,
        amounts=amounts,
        weights=weights,
        strata=np.zeros(len(starts), dtype=np.int64) if stratum is None else stratum[starts],
        copies=np.ones(len(starts), dtype=np.int64)
        if copies is None
        else copies[starts].astype(np.int64),
        size=size,
    )
    flat = events.whole() if weights is None else events.weighted()
    rows = flat.rows.reshape(len(flat.rows), *shape)
    sizes = rows if weights is None else flat.sizes.reshape(len(rows), *shape)
    return Tally(rows, flat.clusters, flat.strata, sizes)


def summed_by_cluster(
    rows: Array,
    cells_of: Callable[[Array], Array],
    shape: tuple[int, ...],
    *,
    cluster: Array,
    stratum: Array | None = None,
    weights: Array | None = None,
    copies: bool = False,
    frequency: bool = False,
) -> Tally:
    """The cells of units added up by cluster; for events that fill most of their cells.

    ``rows`` are places in ``cluster``, ``stratum`` and ``weights``; ``cells_of(rows)`` gives whole
    numbers of ``(rows, *shape)``. A ``frequency`` weight stands for so many equal units: with
    ``copies`` they are so many clusters.
    """
    size = int(np.prod(shape))
    rows = rows[np.argsort(cluster[rows], kind="stable")]
    codes = cluster[rows]
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]]) if len(rows) else rows[:0]
    ends = np.r_[starts, len(rows)]
    # Blocks of whole clusters, of about so many cells each.
    limit = max(1, _BLOCK // size)
    tallies = []
    low = 0
    while low < len(starts):
        high = max(low + 1, int(np.searchsorted(ends, ends[low] + limit, side="right")) - 1)
        span = rows[ends[low] : ends[high]]
        cells = cells_of(span).reshape(len(span), size)
        at = ends[low:high] - ends[low]
        first = span[at]
        many = np.ones(high - low, dtype=np.int64)
        of = np.zeros(high - low, dtype=np.int64) if stratum is None else stratum[first]
        if weights is None or copies:
            if weights is not None:
                many = np.rint(weights[first]).astype(np.int64)
            summed_rows = np.add.reduceat(cells, at, axis=0, dtype=np.int64)
            sizes = summed_rows
        elif frequency:
            times = np.rint(weights[span]).astype(np.int64)
            summed_rows = np.add.reduceat(cells * times[:, None], at, axis=0, dtype=np.int64)
            sizes = summed_rows
        else:
            summed_rows = np.add.reduceat(cells * weights[span][:, None], at, axis=0)
            sizes = np.add.reduceat(cells, at, axis=0, dtype=np.int64)
        tallies.append(
            _distinct(
                shaped := summed_rows.reshape(-1, *shape),
                many,
                of,
                shaped if sizes is summed_rows else sizes.reshape(-1, *shape),
            )
        )
        low = high
    if not tallies:
        return of_rows(np.zeros((0, *shape), dtype=np.int64))
    return _together(tallies)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Events:
    """Events sorted by cluster; ``starts`` is where each cluster begins."""

    cell: Array
    starts: Array
    amounts: Array | None
    weights: Array | None
    strata: Array
    copies: Array
    size: int

    def whole(self) -> Tally:
        """Distinct rows of whole counts, of which only one cluster each is ever written out.

        The hash of a row is a sum over its events, so equal rows are found without the rows.
        """
        factors = _factors(self.size)
        amount = factors[self.cell]
        if self.amounts is not None:
            amount = amount * self.amounts.astype(np.uint64)
        hashes = np.add.reduceat(amount, self.starts)
        hashes = hashes + self.strata.astype(np.uint64) * factors[self.size]
        _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
        together = np.bincount(group, weights=self.copies.astype(np.float64), minlength=len(first))
        together = np.rint(together).astype(np.int64)
        rows = self._rows(first)
        total = np.bincount(
            self.cell,
            weights=np.repeat(self.copies, self._lengths()).astype(np.float64)
            * (1.0 if self.amounts is None else self.amounts),
            minlength=self.size,
        )
        if not np.array_equal(summed(together, rows), total):  # pragma: no cover
            # Two different rows with one 64-bit hash: tell all rows apart one by one.
            every = self._rows(np.arange(len(self.starts)))
            both = np.concatenate([every, self.strata[:, None]], axis=1)
            _, first, group = np.unique(both, axis=0, return_index=True, return_inverse=True)
            together = np.zeros(len(first), dtype=np.int64)
            np.add.at(together, group, self.copies)
            rows = every[first]
        there = (together > 0) & (rows != 0).any(axis=1)
        rows, first = rows[there], first[there]
        return Tally(rows, together[there], self.strata[first], rows)

    def _lengths(self) -> Array:
        return np.diff(np.r_[self.starts, len(self.cell)])

    def _rows(self, clusters: Array) -> Array:
        """The rows of these clusters, ``(clusters, size)`` int64."""
        lengths = self._lengths()
        place = np.full(len(self.starts), -1, dtype=np.int64)
        place[clusters] = np.arange(len(clusters))
        at = np.repeat(place, lengths)
        wanted = at >= 0
        weights = None if self.amounts is None else self.amounts[wanted].astype(np.float64)
        flat = np.bincount(
            at[wanted] * self.size + self.cell[wanted],
            weights=weights,
            minlength=len(clusters) * self.size,
        )
        return np.rint(flat).astype(np.int64).reshape(len(clusters), self.size)

    def weighted(self) -> Tally:
        """Distinct rows of weighted counts beside the plain ones, in blocks of clusters."""
        assert self.weights is not None
        step = max(1, _BLOCK // self.size)
        ends = np.r_[self.starts, len(self.cell)]
        tallies = []
        for low in range(0, len(self.starts), step):
            high = min(low + step, len(self.starts))
            span = slice(int(ends[low]), int(ends[high]))
            at = np.repeat(np.arange(high - low), np.diff(ends[low : high + 1]))
            place = at * self.size + self.cell[span]
            amount = None if self.amounts is None else self.amounts[span].astype(np.float64)
            whole = np.bincount(place, weights=amount, minlength=(high - low) * self.size)
            weights = self.weights[span] if amount is None else self.weights[span] * amount
            rows = np.bincount(place, weights=weights, minlength=(high - low) * self.size)
            tallies.append(
                _distinct(
                    rows.reshape(high - low, self.size),
                    self.copies[low:high],
                    self.strata[low:high],
                    np.rint(whole).astype(np.int64).reshape(high - low, self.size),
                )
            )
        return _together(tallies)


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
    rows: Array,
    *,
    stratum: Array | None = None,
    multiplicity: Array | None = None,
    sizes: Array | None = None,
) -> Tally:
    """A tally from one row of counts a cluster, ``(clusters, *shape)``.

    Rows that are no whole numbers need ``sizes``, whole numbers of the same shape.
    """
    clusters = np.ones(len(rows), dtype=np.int64) if multiplicity is None else multiplicity
    strata = np.zeros(len(rows), dtype=np.int64) if stratum is None else stratum
    return _distinct(rows, clusters, strata, rows if sizes is None else sizes)


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
    """A 64-bit hash of each row's numbers, the same on every machine: a sum over its cells."""
    if rows.dtype.kind == "f":
        bits = (rows + 0.0).view(np.uint64)
    else:
        bits = rows.astype(np.int64).view(np.uint64)
    cells = rows.shape[1]
    factors = _factors(cells)
    hashes = strata.astype(np.int64).view(np.uint64) * factors[cells]
    for j in range(cells):  # a loop over cells: never over responses
        hashes = hashes + bits[:, j] * factors[j]
    return np.asarray(hashes)


@lru_cache(maxsize=64)
def _factors(cells: int) -> Array:
    """A fixed odd 64-bit number a cell, and one for the stratum."""
    generator = np.random.Generator(np.random.PCG64(20_261_130))
    drawn = generator.integers(1, 2**63, size=cells + 1, dtype=np.uint64)
    return np.asarray(drawn * np.uint64(2) + np.uint64(1))
