"""Figures that rest on counts, through the audit of count tables and its agreement statistics.

Where a count is not printed, every value that it can take is tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from voirdire import auditing
from voirdire.auditing import Audit
from voirdire.errors import InputError
from voirdire.finding import State
from voirdire.labels import Labels
from voirdire.reproducing.base import Contradiction, NotPrinted, Paper, Path, Value
from voirdire.scene import Estimates
from voirdire.stats import pairwise, spread

Array = np.ndarray[Any, Any]

MOST_FILLINGS = 20_000
FEW_VALUES = 40  # up to this many values of an unprinted count, every one of them is tried


class CountPaper(Paper):
    """A paper that prints how often each grader gave each class."""

    @property
    def n(self) -> float:
        return self.number("n_items")

    @property
    def reference(self) -> str:
        return str(self.at("reference"))

    def counts(self, corpus: str, grader: str, *, inferred: bool = True) -> list[float | None]:
        """A grader's class counts as printed, or said to be 0 in a caption.

        ``inferred`` fills in what then follows from the row's total: the one count that is not
        printed, or zeros where the printed ones are all labels.
        """
        classes = list(self.at("classes"))
        printed = self.raw("counts", corpus, grader) or [None] * len(classes)
        row = [None if c is None else float(c) for c in printed]
        if any(c is not None for c in row):
            for class_, graders in self.at("never_give").items():
                place = classes.index(class_)
                if grader in graders and row[place] is None:
                    row[place] = 0.0
        missing = [i for i, c in enumerate(row) if c is None]
        if missing and inferred:
            rest = self.n - sum(c for c in row if c is not None)
            if rest == 0 or len(missing) == 1:
                for i in missing:
                    row[i] = rest if len(missing) == 1 else 0.0
        return row

    def count(self, corpus: str, grader: str, class_: str) -> float:
        found = self.counts(corpus, grader)[list(self.at("classes")).index(class_)]
        if found is None:
            raise NotPrinted(f"counts/{corpus}/{grader}/{class_}")
        return found

    def table(self, corpus: str, graders: Iterable[str]) -> CountTable:
        return CountTable(
            classes=tuple(self.at("classes")),
            scale=tuple(self.at("ordered_scale")),
            off_scale=tuple(self.at("off_scale")),
            refusal_like=tuple(self.at("refusal_like")),
            reference=self.reference,
            total=self.n,
            rows=tuple((g, tuple(self.counts(corpus, g))) for g in graders),
        )

    @property
    def top(self) -> str:
        return str(self.at("ordered_scale")[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTable:
    """A table of counts as it is printed: one row a grader, ``None`` where a count is not."""

    classes: tuple[str, ...]
    scale: tuple[str, ...]
    off_scale: tuple[str, ...]
    refusal_like: tuple[str, ...]
    reference: str
    total: float
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]


@lru_cache(maxsize=64)
def audited(table: CountTable, without: tuple[str, ...] = ()) -> Audit:
    """The audit of a table of counts; ``without`` as in ``voirdire audit --without``."""
    import polars as pl

    columns: dict[str, Any] = {"grader": [g for g, _ in table.rows]}
    for i, class_ in enumerate(table.classes):
        columns[class_] = [None if c[i] is None else int(c[i] or 0) for _, c in table.rows]
    columns["total"] = [int(table.total)] * len(table.rows)
    frame = pl.DataFrame(columns, schema_overrides=dict.fromkeys(table.classes, pl.Int64))
    names = [g for g, _ in table.rows]
    try:
        labels = Labels.from_frame(
            frame,
            layout="counts",
            scale=table.scale,
            off_scale=table.off_scale,
            refusal_like=table.refusal_like,
            reference=table.reference if table.reference in names else "",
            without=[g for g in without if g in names],
        )
        return auditing.run(labels)
    except InputError as error:
        raise Contradiction(f"the audit refuses these counts: {error}") from error


def estimate(audit: Audit, statistic: str, **key: str) -> float | None:
    """A value of the audit, ``None`` where the audit says that it cannot be said."""
    found = Estimates(audit.estimates).get(statistic, **key)
    if found is None:
        raise NotPrinted(f"{statistic} {key}")
    return found.number


def dispersion(
    paper: CountPaper,
    corpus: str,
    graders: Sequence[str],
    rate: str,
    statistic: str,
    without: Sequence[str] = (),
) -> Value:
    """A dispersion of a rate as the audit gives it, or all values that unprinted counts allow."""
    return _dispersion(paper.table(corpus, graders), tuple(without), rate, statistic)


@lru_cache(maxsize=256)
def _dispersion(table: CountTable, without: tuple[str, ...], rate: str, statistic: str) -> Value:
    audit = audited(table, without)
    other = f"without:{'+'.join(g for g, _ in table.rows if g in without)}" if without else ""
    found = estimate(audit, statistic, class_=rate, other=other)
    return Value.of(found) if found is not None else _over_fillings(audit, rate, statistic, other)


def _over_fillings(audit: Audit, rate: str, statistic: str, other: str) -> Value:
    """The audit's own algebra on every table that what is printed allows, all at once."""
    scene, _ = auditing.scenes(audit.labels)
    place = next(i for i, r in enumerate(scene.rates) if r.name == rate)
    members = scene.rates[place].members
    for part in spread.parts(scene):
        for asked, keys in part.asks:
            if asked.name != statistic or keys[place].other != other or part.totals is None:
                continue
            choices, complete = _choices(part.totals, members, part.given["keep"])
            # Between the trials a ratio without one grader may be larger or smaller than at them.
            if not complete and "leave_one_out" in statistic:
                raise NotPrinted(f"{rate} of several graders")
            if math.prod(map(len, choices)) > MOST_FILLINGS:
                raise NotPrinted(f"{rate} of several graders")
            counts = np.stack(np.meshgrid(*choices, indexing="ij"), axis=-1).reshape(
                -1, len(choices)
            )
            cells = np.zeros((*counts.shape, part.totals.shape[-1]))
            total = part.totals[:, -1]
            inside, outside = int(np.flatnonzero(members)[0]), int(np.flatnonzero(~members)[0])
            cells[..., inside] = counts
            cells[..., outside] = total - counts
            cells[..., -1] = total
            with np.errstate(divide="ignore", invalid="ignore"):
                values = asked.solve(cells, part.given)[..., place]
            values = values[np.isfinite(values)]
            return Value(float(values.min()), float(values.max()))
    raise NotPrinted(statistic)


def _choices(totals: Array, members: Array, keep: Array) -> tuple[list[Array], bool]:
    """For each grader the counts of the rate that it may have, and whether those are all.

    Where they are many, those at the ends and those equal to another grader's are enough for what
    is piecewise linear in them, or a ratio of two such: its extremes lie where the order changes.
    """
    counts, n = totals[:, :-1], totals[:, -1]
    inside = np.where(np.isnan(counts), 0, counts)[:, members].sum(-1)
    outside = np.where(np.isnan(counts), 0, counts)[:, ~members].sum(-1)
    known_in = ~np.isnan(counts[:, members]).any(-1)
    known_out = ~np.isnan(counts[:, ~members]).any(-1)
    low = np.where(known_out, n - outside, inside)
    high = np.where(known_in, inside, n - outside)
    low, high = np.where(known_in, inside, low), np.where(known_out, n - outside, high)
    settled = {float(v) for v, h in zip(low, high, strict=True) if v == h}
    choices, complete = list[Array](), True
    for grader, (least, most) in enumerate(zip(low, high, strict=True)):
        if grader not in keep:
            choices.append(np.array([least]))
        elif most - least <= FEW_VALUES:
            choices.append(np.arange(least, most + 1))
        else:
            complete = False
            marks = {least, most, *(v for v in settled if least <= v <= most)}
            choices.append(np.array(sorted(marks)))
    return choices, complete


def completions(row: Sequence[float | None], total: float) -> Array:
    """Every way to fill the unprinted counts of a row, ``(fillings, classes)``."""
    missing = [i for i, c in enumerate(row) if c is None]
    known = np.array([0.0 if c is None else c for c in row])
    rest = total - known.sum()
    if rest < 0 or len(missing) > 2:
        raise NotPrinted("more than two counts of a row")
    if not missing:
        return known[None, :]
    parts = [(rest,)] if len(missing) == 1 else [(a, rest - a) for a in np.arange(0, rest + 1)]
    filled = np.repeat(known[None, :], len(parts), axis=0)
    filled[:, missing] = np.array(parts)
    return filled


def chance(paper: CountPaper, corpus: str, grader: str) -> Array:
    """Agreement by chance with the reference, for every filling of the unprinted counts.

    Chance agreement needs the two margins only, so any table of pairs with them will do.
    """
    own = completions(paper.counts(corpus, grader), paper.n)
    theirs = completions(paper.counts(corpus, paper.reference), paper.n)
    pairs = [np.outer(a, b) / paper.n for a in own for b in theirs]
    return np.asarray(pairwise.chance_cohen(np.stack(pairs)))


def kappa(
    paper: CountPaper, corpus: str, grader: str, agreement: Path, *, rounded: bool = False
) -> Value:
    """Cohen's kappa with the reference from a printed agreement and the printed margins."""
    by_chance = chance(paper, corpus, grader)
    at = np.asarray(paper.number(*agreement) / 100)
    found = pairwise.beyond_chance(at, by_chance)
    slack = paper.half(*agreement, rounded=rounded) / 100 / (1 - by_chance.max())
    return Value(float(found.min()), float(found.max()), float(slack))


def agreement_from_kappa(paper: CountPaper, corpus: str, grader: str, coefficient: Path) -> Value:
    """The agreement in percent that a printed kappa and the printed margins leave."""
    by_chance = chance(paper, corpus, grader)
    found = 100 * (paper.number(*coefficient) * (1 - by_chance) + by_chance)
    slack = 100 * paper.half(*coefficient) * (1 - by_chance.min())
    return Value(float(found.min()), float(found.max()), float(slack))


def kappa_between(paper: CountPaper, corpus: str, grader: str) -> Value:
    """The lowest and the highest kappa with the reference that the two margins allow."""
    own = completions(paper.counts(corpus, grader), paper.n)[0]
    theirs = completions(paper.counts(corpus, paper.reference), paper.n)[0]
    by_chance = chance(paper, corpus, grader)
    least = np.maximum(own + theirs - paper.n, 0).sum() / paper.n
    most = np.minimum(own, theirs).sum() / paper.n
    low, high = (pairwise.beyond_chance(np.asarray(a), by_chance) for a in (least, most))
    return Value(float(low.min()), float(high.max()))


def flagged_classes(paper: CountPaper, corpus: str, graders: Sequence[str]) -> dict[str, list[str]]:
    """The classes that the audit finds collapsed, by grader."""
    found: dict[str, list[str]] = {}
    for finding in audited(paper.table(corpus, graders)).findings:
        if finding.code == "class_collapse" and finding.state is State.FOUND:
            found.setdefault(finding.grader, []).append(finding.class_)
    return found
