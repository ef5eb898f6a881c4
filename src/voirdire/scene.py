"""What statistics and checks look at: one slice of the labels, the graders, and the settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from functools import cached_property
from typing import Any

import numpy as np

from voirdire.bank import Bank
from voirdire.estimate import Estimate, Key
from voirdire.grid import LABEL, MISSING_CODE, Grid
from voirdire.labels import ALL_OUTCOMES, Grader
from voirdire.options import Options
from voirdire.tally import Tally, count, summed_by_cluster

Array = np.ndarray[Any, Any]

UNREAD_LIMIT = (
    0.2  # above this share of unread calls a grader is neither flagged nor a corroborator
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rate to report: the share of the classes in ``members`` (a mask over the classes)."""

    name: str
    members: Array

    def count(self, cells: Array) -> Array:
        """Labels in the rate's classes, from class counts with their total as the last cell.

        Where a class of the rate is not printed (nan), it is the total less the other classes.
        """
        counts, total = cells[..., :-1], cells[..., -1]
        inside = counts[..., self.members].sum(-1)
        outside = counts[..., ~self.members].sum(-1)
        return np.asarray(np.where(np.isnan(inside), total - outside, inside))


def with_total(rows: Array) -> Array:
    """Class counts with their sum as a last cell."""
    return np.concatenate([rows, rows.sum(axis=-1, keepdims=True)], axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """A table of counts: ``labels`` is graders × classes (nan: not printed), ``totals`` per grader.

    ``calls`` is graders × outcomes, as far as the table prints them.
    """

    labels: Array
    totals: Array
    calls: Array


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a family looks at: one slice of the labels (or counts), the graders and the settings.

    Just one of ``grid``, ``counts`` and ``bank`` is set. ``panel`` are the graders that form the panel: all
    but gold. ``sliced_by`` are the tags and values that make the slice, since its name alone cannot
    always be taken apart. ``exploratory`` slices are looked at by checks only, without intervals. ``mixes`` holds
    the whole's shares of responses by value of each tag that rates are standardised to; slices
    carry it on.
    """

    grid: Grid | None
    counts: Counts | None
    graders: tuple[Grader, ...]
    classes: tuple[str, ...]
    scale: tuple[str, ...]
    ordered: bool
    gold: str
    reference: str
    rates: tuple[Rate, ...]
    options: Options
    slice: str = ""
    sliced_by: tuple[tuple[str, str], ...] = ()
    exploratory: bool = False
    flagged: tuple[str, ...] = ()
    mixes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    bank: Bank | None = None
    memory: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(g.name for g in self.graders)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each grader stands."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def panel(self) -> tuple[str, ...]:
        return tuple(g.name for g in self.graders if g.name != self.gold)

    @property
    def k(self) -> int:
        return len(self.classes)

    @cached_property
    def by_name(self) -> dict[str, Grader]:
        return {g.name: g for g in self.graders}

    @property
    def standards(self) -> tuple[str, ...]:
        """Gold and reference, those that are there."""
        return tuple(s for s in (self.gold, self.reference) if s)

    @property
    def calls(self) -> Array:
        """Calls by outcome, graders × outcomes."""
        if self.bank is not None:
            return self.bank.calls
        return self.grid.calls if self.grid is not None else self._counts.calls

    @property
    def _counts(self) -> Counts:
        assert self.counts is not None
        return self.counts

    def unread_share(self, grader: str) -> float:
        """The share of asked calls that gave no label; 0 where a count table does not say."""
        return self._unread[self.places[grader]]

    @cached_property
    def _unread(self) -> list[float]:
        asked = self.calls.sum(axis=1) - self.calls[:, MISSING_CODE]
        read = self.calls[:, LABEL]
        return [float(1 - r / a) if a > 0 else 0.0 for r, a in zip(read, asked, strict=True)]

    def flagging(self, flagged: Sequence[str]) -> Scene:
        return replaced(self, flagged=tuple(flagged))

    def of_grid(self, grid: Grid) -> Scene:
        """The same scene on another grid (another vote rule, a part of the responses)."""
        return replaced(self, grid=grid, memory={})

    def labels_tally(self, grader: str) -> Tally:
        """How often the grader gives each class: shape ``(k,)``."""
        return self._remembered(("labels", grader), lambda: self._count_one(grader))

    def _count_one(self, grader: str) -> Tally:
        assert self.grid is not None
        column = self.grid.codes[:, self.places[grader]]
        rows = np.flatnonzero(column >= 0)
        return self._count(rows, column[rows].astype(np.int64), (self.k,))

    def joint_tally(self, graders: Sequence[str]) -> Tally:
        """The class counts of several graders in one row: shape ``(graders, k)``."""
        graders = tuple(graders)
        return self._remembered(("joint", graders), lambda: self._count_joint(graders))

    def _count_joint(self, graders: tuple[str, ...]) -> Tally:
        assert self.grid is not None
        codes = self.grid.codes[:, [self.places[g] for g in graders]]
        rows, columns = np.nonzero(codes >= 0)
        cells = columns * self.k + codes[rows, columns]
        return self._count(rows, cells.astype(np.int64), (len(graders), self.k))

    def pair_tally(self, grader: str, other: str) -> Tally:
        """Label pairs on the responses that both could be read on: shape ``(k, k)``, grader first."""
        if self.places[grader] > self.places[other]:
            return self._remembered(
                ("pair", grader, other),
                lambda: self.pair_tally(other, grader).mapped(lambda r: r.swapaxes(-1, -2)),
            )
        return self._remembered(("pair", grader, other), lambda: self._count_pair(grader, other))

    def _count_pair(self, grader: str, other: str) -> Tally:
        assert self.grid is not None
        mine = self.grid.codes[:, self.places[grader]]
        theirs = self.grid.codes[:, self.places[other]]
        rows = np.flatnonzero((mine >= 0) & (theirs >= 0))
        cells = mine[rows].astype(np.int64) * self.k + theirs[rows]
        return self._count(rows, cells, (self.k, self.k))

    def _count(self, rows: Array, cells: Array, shape: tuple[int, ...]) -> Tally:
        """Count events of responses (``rows``) into cells, by cluster and with the weights."""
        assert self.grid is not None
        return self.counted(rows, cells, shape)

    def counted(
        self,
        rows: Array,
        cells: Array,
        shape: tuple[int, ...],
        amounts: Array | None = None,
    ) -> Tally:
        """Events in cells, with cluster, stratum and weight of the response in ``rows``.

        A frequency weight stands for so many equal responses: as many clusters where every
        response is its own, else so many times within its cluster.
        """
        grid = self.grid if self.grid is not None else self.bank
        assert grid is not None
        weights = None if grid.weights is None else grid.weights[rows]
        copies = None
        if weights is not None and grid.frequency:
            if grid.own_cluster:
                copies = weights
            else:
                amounts = weights if amounts is None else amounts * weights
            weights = None
        return count(
            grid.cluster[rows],
            cells,
            shape,
            amounts=amounts,
            weights=weights,
            copies=copies,
            stratum=None if grid.stratum is None else grid.stratum[rows],
        )

    def summed(
        self, rows: Array, cells_of: Callable[[Array], Array], shape: tuple[int, ...]
    ) -> Tally:
        """Sums of the cells of responses by cluster, where most cells of a response count.

        ``rows`` are responses of the bank; ``cells_of(rows)`` gives their cells, ``(rows, *shape)``
        whole numbers, and is asked in blocks, so that memory stays bounded.
        """
        bank = self.bank
        assert bank is not None
        return summed_by_cluster(
            rows,
            cells_of,
            shape,
            cluster=bank.cluster,
            stratum=bank.stratum,
            weights=bank.weights,
            copies=bank.frequency and bank.own_cluster,
            frequency=bank.frequency,
        )

    def _remembered(self, key: Any, make: Callable[[], Tally]) -> Tally:
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]  # type: ignore[no-any-return]

    def count_row(self, grader: str) -> tuple[Array, float]:
        """A grader's printed class counts and its total, from a count table."""
        place = self.places[grader]
        return self._counts.labels[place], float(self._counts.totals[place])


class Estimates:
    """Estimates to look up by statistic and key; ``all`` keeps their order."""

    def __init__(self, estimates: Iterable[Estimate]) -> None:
        self.all = tuple(estimates)
        self._by_key = {(e.statistic, *e.key): e for e in self.all}
        self._by_statistic: dict[str, list[Estimate]] = {}
        self._by_grader: dict[tuple[str, str], list[Estimate]] = {}
        for estimate in self.all:
            name, grader = estimate.statistic, estimate.key.grader
            self._by_statistic.setdefault(name, []).append(estimate)
            self._by_grader.setdefault((name, grader), []).append(estimate)

    def get(self, statistic: str, **key: str) -> Estimate | None:
        """The estimate with just this key, or ``None``."""
        return self._by_key.get((statistic, *Key(**key)))

    def of(self, statistic: str, **key: str) -> list[Estimate]:
        """All estimates of a statistic whose key agrees with what is given."""
        found = (
            self._by_grader.get((statistic, key["grader"]), ())
            if "grader" in key
            else self._by_statistic.get(statistic, ())
        )
        return [
            e for e in found if all(getattr(e.key, field) == value for field, value in key.items())
        ]


def calls_of(scene: Scene, grader: str) -> dict[str, float]:
    """A grader's calls by outcome, those that happened."""
    counts = scene.calls[scene.places[grader]]
    return {o: float(counts[i]) for i, o in enumerate(ALL_OUTCOMES) if counts[i] > 0}
