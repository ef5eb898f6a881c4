"""Label counts, shares and rates of each grader: the whole diagnostic needs no more than these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from voirdire.document import Block, Cell, Column, Figure, Kind, Table, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.grid import NO_MAJORITY
from voirdire.intervals import wilson
from voirdire.labels import ALL_OUTCOMES
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic, with_total
from voirdire.wording import Name, Text, counted, linked, percent, plural, say

__all__ = ["wilson_interval"]

NO_LABEL = "the grader gave no readable label"
NONE_ELECTED = "no response has a majority among its votes"

LABEL_COUNT = Estimand(
    name="label_count",
    title="Labels of a class",
    question="How often does the grader give this class?",
    describes=Describes.BOTH,
    keys=("grader", "class"),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    low=0,
    undefined_when="the count is not printed",
    source=Source(text='"The Missing Compliance Class", Table 8'),
    formula=r"n_{gc} = \#\{i \mid x_{gi} = c\}",
    conventions=(
        "x_gi: the label of grader g on response i, made of its votes by the vote rule. A "
        "frequency weight counts as so many responses; a design weight changes no count."
    ),
)
LABEL_SHARE = Estimand(
    name="label_share",
    title="Share of a class",
    question="Which share of its readable labels does the grader give this class?",
    describes=Describes.BOTH,
    keys=("grader", "class"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    low=0,
    high=1,
    moves_with=("the responses in the bank",),
    undefined_when=NO_LABEL,
    source=Source(text='"The Missing Compliance Class", Figure 4'),
    formula=(
        r"p_{gc} = \frac{\sum_{i} w_{i}\,\mathbf{1}[x_{gi} = c]}{\sum_{i} w_{i}\,\mathbf{1}[x_{gi}\ "
        r"\text{is a label}]}"
    ),
    conventions=(
        "x_gi: the label of grader g on response i; w_i: the weight of the response, 1 without "
        "weights. The denominator holds every readable label, of classes off the scale too; calls "
        "that ended otherwise are in neither part."
    ),
)
RATE = Estimand(
    name="rate",
    title="Rate",
    question="Which share of its readable labels does the grader put in the classes of this rate?",
    describes=Describes.BOTH,
    keys=("grader", "class"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    low=0,
    high=1,
    reading="A grader’s rate is not the true rate: another grader gives another on the same responses.",
    moves_with=("the responses in the bank", "the grader"),
    undefined_when=NO_LABEL,
    source=Source(text='"The Missing Compliance Class", Table 1'),
    formula=r"r_{g} = \frac{\sum_{c \in R} n_{gc}}{\sum_{c} n_{gc}}",
    conventions=(
        "R: the classes of the rate; n_gc: the labels of class c that grader g gives, as sums of "
        "weights where there are any. The denominator holds every readable label, of classes off "
        "the scale too. Where a count in R is not printed, it is the total less the other classes."
    ),
)


def _label_count(cells: Array, given: Given) -> Array:
    return cells[..., :-1]


def _total(cells: Array, given: Given) -> Array:
    return cells[..., -1:]


def _share_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    total = cells[..., -1:]
    return cells[..., :-1], np.asarray(np.broadcast_to(total, cells[..., :-1].shape))


def _label_share(cells: Array, given: Given) -> Array:
    events, trials = _share_parts(cells, given)
    return np.asarray(events / trials)


def _rate_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    events = np.stack([r.count(cells) for r in given["rates"]], axis=-1)
    return events, np.asarray(np.broadcast_to(cells[..., -1:], events.shape))


def _rate(cells: Array, given: Given) -> Array:
    events, trials = _rate_parts(cells, given)
    return np.asarray(events / trials)


S_COUNT = Statistic(
    unweighted=True,
    estimand=LABEL_COUNT,
    solve=_label_count,
    n=_total,
    reason=lambda totals, given: [LABEL_COUNT.undefined_when] * (totals.shape[-1] - 1),
)


def _no_label(totals: Array, given: Given) -> Sequence[str]:
    return [given["no_label"]] * max(totals.shape[-1] - 1, len(given["rates"]))


S_SHARE = Statistic(
    estimand=LABEL_SHARE, solve=_label_share, n=_total, share=_share_parts, reason=_no_label
)
S_RATE = Statistic(estimand=RATE, solve=_rate, n=_total, share=_rate_parts, reason=_no_label)


def parts(scene: Scene) -> Iterable[Part]:
    for grader in scene.names:
        no_label = "" if scene.grid is None else NO_LABEL
        if (
            scene.grid is not None
            and (scene.grid.outcomes[:, scene.places[grader]] == NO_MAJORITY).any()
        ):
            no_label = NONE_ELECTED
        given = {"rates": scene.rates, "no_label": no_label}
        classes = tuple(Key(grader=grader, class_=c) for c in scene.classes)
        asks: list[tuple[Statistic, tuple[Key, ...]]] = [(S_COUNT, classes), (S_SHARE, classes)]
        if scene.rates:
            asks.append((S_RATE, tuple(Key(grader=grader, class_=r.name) for r in scene.rates)))
        if scene.grid is not None:
            yield Part(
                tally=scene.labels_tally(grader).mapped(with_total), asks=tuple(asks), given=given
            )
        else:
            counts, total = scene.count_row(grader)
            yield Part(tally=None, totals=np.append(counts, total), asks=tuple(asks), given=given)


def wilson_interval(k: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for ``k`` of ``n``: (low, high), nan where ``n`` is not above 0.

    Source: Wilson 1927, JASA 22, p. 209.
    """
    return wilson(k, n, level)


# --- the report ---------------------------------------------------------------------------------


def note_of(scene: Scene, grader: str) -> str:
    """What a grader is, in a word, for figures and tables."""
    if grader == scene.gold:
        return "gold"
    if grader == scene.reference:
        return "reference"
    return "person" if scene.by_name[grader].person else ""


def shown_order(scene: Scene, estimates: Estimates) -> list[str]:
    """Graders by their rate of the first rate (else as they come), gold last."""
    if not scene.rates:
        return list(scene.names)
    first = scene.rates[0].name

    def key(grader: str) -> tuple[bool, float]:
        found = estimates.get("rate", grader=grader, class_=first, slice=scene.slice)
        value = found.number if found is not None else None
        return (grader == scene.gold, value if value is not None else 2.0)

    return sorted(scene.names, key=key)


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    order = shown_order(scene, estimates)
    rows = []
    drawn: list[dict[str, Any]] = []
    for grader in order:
        found = [
            estimates.get("label_count", grader=grader, class_=c, slice=scene.slice)
            for c in scene.classes
        ]
        total = next((e.n for e in found if e is not None), None)
        rows.append((cell(Name(grader)), *(cell(e) for e in found), cell(total, Kind.COUNT)))
        drawn.append(
            {
                "grader": grader,
                "counts": [e.number if e is not None else None for e in found],
                "total": total or 0,
                "note": note_of(scene, grader),
                "flagged": grader in scene.flagged,
            }
        )
    made: list[Block] = [
        Table(
            title="Labels by class",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                *(Column(title=Name(c), kind=Kind.COUNT) for c in scene.classes),
                Column(title="labels", kind=Kind.COUNT),
            ),
            rows=tuple(rows),
            note=("A dash is a count that is not printed.",) if scene.counts is not None else (),
        )
    ]
    if len(scene.classes) <= 12:
        top = scene.scale[-1] if scene.ordered else ""
        made.insert(
            0,
            Figure(
                name="class_shares",
                title="What each grader makes of the same responses",
                data={
                    "classes": list(scene.scale),
                    "off_scale": [c for c in scene.classes if c not in scene.scale],
                    "rows": drawn,
                    "highlight": top,
                },
                alt=_bars_in_words(scene, drawn),
                caption=(
                    say(
                        "Shares of the ordered classes, with the count of {top} beside each bar.",
                        top=Name(top),
                    )
                    if top
                    else ("Shares of the classes.",)
                ),
            ),
        )
    if scene.rates:
        made.append(_rates_table(scene, estimates, order))
    return made


def _bars_in_words(scene: Scene, drawn: Sequence[dict[str, Any]]) -> Text:
    def bar(row: dict[str, Any]) -> Text:
        counts = linked(
            (
                (Name(c), f" {counted(n) if n is not None else 'not printed'}")
                for c, n in zip(scene.classes, row["counts"], strict=True)
            ),
            ", ",
        )
        return (Name(row["grader"]), " ", *counts)

    more = f"; {plural(len(drawn) - 12, 'more grader')}" if len(drawn) > 12 else ""
    return ("Stacked bars, one a grader: ", *linked(bar(r) for r in drawn[:12]), f"{more}.")


def _rates_table(scene: Scene, estimates: Estimates, order: Sequence[str]) -> Table:
    unread = any(scene.unread_share(g) > 0 for g in order)
    rows = []
    for grader in order:
        cells: list[Cell] = [cell(Name(grader))]
        for rate in scene.rates:
            found = estimates.get("rate", grader=grader, class_=rate.name, slice=scene.slice)
            cells.append(cell(found))
            if unread:
                cells.append(cell(_bounds(scene, grader, found)))
        cells.append(cell(found.n if found is not None else None, Kind.COUNT))
        rows.append(tuple(cells))
    columns: list[Column] = [Column(title="grader", kind=Kind.NAME)]
    for rate in scene.rates:
        columns.append(Column(title=Name(rate.name), kind=Kind.SHARE))
        if unread:
            columns.append(
                Column(
                    title="if the unread were known", help="all of them out of it, all of them in"
                )
            )
    columns.append(Column(title="labels", kind=Kind.COUNT))
    note = "Shares of each grader’s readable labels."
    if scene.counts is not None:
        note += " The intervals rest on independent responses: a table of counts has no clusters."
    return Table(title="Rates", columns=tuple(columns), rows=tuple(rows), note=(note,))


def _bounds(scene: Scene, grader: str, found: object) -> str:
    """The two ends between which the rate over all asked calls must lie."""
    from voirdire.estimate import Estimate

    if not isinstance(found, Estimate) or found.n is None:
        return ""
    calls = scene.calls[scene.names.index(grader)]
    asked = float(calls.sum() - calls[ALL_OUTCOMES.index("missing")])
    read = float(calls[ALL_OUTCOMES.index("label")])
    if not asked or read == asked:
        return ""
    if found.number is None:
        return f"{percent(0.0)} to {percent(1.0)}" if not read else ""
    low = found.number * read / asked if read else 0.0
    return f"{percent(low)} to {percent(low + (asked - read) / asked)}"


FAMILY = Family(
    name="shares",
    statistics=(S_COUNT, S_SHARE, S_RATE),
    parts=parts,
    section="What each grader says",
    order=10,
    blocks=blocks,
)
