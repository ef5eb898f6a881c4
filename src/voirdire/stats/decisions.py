"""A path of decisions after labelling: the rate after each, what each changed, and which labels moved.

The responses stay as they are; only labels change, by a ruling, a repair, a pass of reconciliation.
Steps come in the order of their first appearance in the table, and a response without a row at a
step keeps its label. All steps of a grader stand in one tally, so that the interval of a change is
that of the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from voirdire.document import Block, Cell, Column, Figure, Kind, Paragraph, Table, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Key
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic, with_total
from voirdire.tally import Tally
from voirdire.wording import Name, Text, linked, listed, percent, say

MCC10 = Source(text='"The Missing Compliance Class", Table 10 and Figure 5')
ONE_STEP = "there is one step only"
MOST_CLASSES = 20  # above this only moves that happened are listed, not every pair of classes

DECISION_RATE = Estimand(
    name="decision_rate",
    title="Rate after a step",
    question="Which share of its readable labels does the grader put in the rate’s classes after "
    "this step?",
    describes=Describes.BOTH,
    keys=("grader", "class", "line"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "step"),
    low=0,
    high=1,
    reading="The responses stay the same between the steps: only decisions on labels change.",
    moves_with=("the order of the decisions", "the responses in the bank"),
    undefined_when="the grader had no readable label at this step",
    source=MCC10,
    formula=r"r_{s} = \frac{\sum_{c \in R} n_{sc}}{\sum_{c} n_{sc}}",
    conventions=(
        "n_sc: how often the grader gives class c after step s, as sums of weights where there are "
        "any; R: the classes of the rate. A response without a row at a step keeps the label that "
        "it had."
    ),
)
DECISION_STEP = Estimand(
    name="decision_step",
    title="Change by a step",
    question="How far does this step move the grader’s rate from the step before?",
    describes=Describes.BOTH,
    keys=("grader", "class", "line"),
    unit=Unit.POINTS,
    scale=Scale.PLAIN,
    needs=("label", "step"),
    low=-1,
    high=1,
    reading="In another order the same decisions may change the rate by other amounts.",
    moves_with=("the order of the decisions", "the responses in the bank"),
    undefined_when="the grader had no readable label at this step or the one before",
    source=MCC10,
    formula=r"r_{s} - r_{s - 1}",
    conventions=(
        "r_s: decision_rate after step s, in the order in which steps first appear. Each rate has "
        "its own readable labels below it."
    ),
)
DECISION_TOTAL = Estimand(
    name="decision_total",
    title="Change end to end",
    question="How far do all steps together move the grader’s rate?",
    describes=Describes.BOTH,
    keys=("grader", "class", "line"),
    unit=Unit.POINTS,
    scale=Scale.PLAIN,
    needs=("label", "step"),
    low=-1,
    high=1,
    reading="Its interval is that of the difference between the last and the first step.",
    moves_with=("the responses in the bank",),
    undefined_when="the grader had no readable label at the first or the last step",
    source=MCC10,
    formula=r"r_{S} - r_{1}",
    conventions=(
        "r_s: decision_rate after step s; S: the last step. The first step is where the labels "
        "start: it is no change."
    ),
)
DECISION_MOVED = Estimand(
    name="decision_moved",
    title="Labels moved by a step",
    question="How many responses does this step move from one class to another? An empty class is "
    "no readable label.",
    describes=Describes.BOTH,
    keys=("grader", "line", "class", "to_class"),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    needs=("label", "step"),
    low=0,
    undefined_when="there is one step only",
    source=MCC10,
    formula=r"\#\{i \mid x_{i,s - 1} = c,\ x_{i,s} = d\}, \quad c \ne d",
    conventions=(
        "x_i,s: the label of response i after step s, or that there is none. A frequency weight "
        "counts as so many responses; a design weight changes no count."
    ),
)


def _flat(array: Array) -> Array:
    """``(..., a, b)`` as ``(..., a · b)``."""
    return np.asarray(array.reshape(*array.shape[:-2], -1))


def _parts(cells: Array, given: Given) -> tuple[Array, Array]:
    """Events and trials ``(..., steps, rates)`` from class counts and totals ``(..., steps, k + 1)``."""
    events = np.stack([r.count(cells) for r in given["rates"]], axis=-1)
    return events, np.asarray(np.broadcast_to(cells[..., -1:], events.shape))


def _rates(cells: Array, given: Given) -> Array:
    events, trials = _parts(cells, given)
    return np.asarray(events / trials)


def _rate_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    events, trials = _parts(cells, given)
    return _flat(events), _flat(trials)


def _rate(cells: Array, given: Given) -> Array:
    """The rate after every step, ``(..., steps · rates)``."""
    return _flat(_rates(cells, given))


def _step(cells: Array, given: Given) -> Array:
    """What each step but the first changes, ``(..., (steps − 1) · rates)``."""
    return _flat(np.diff(_rates(cells, given), axis=-2))


def _total(cells: Array, given: Given) -> Array:
    """Last less first, ``(..., rates)``; nan where there is one step only."""
    rates = _rates(cells, given)
    if rates.shape[-2] < 2:
        return np.full(rates.shape[:-2] + rates.shape[-1:], np.nan)
    return np.asarray(rates[..., -1, :] - rates[..., 0, :])


def _n_rate(cells: Array, given: Given) -> Array:
    return _flat(_parts(cells, given)[1])


def _n_step(cells: Array, given: Given) -> Array:
    return _flat(_parts(cells, given)[1][..., 1:, :])


def _n_total(cells: Array, given: Given) -> Array:
    return np.asarray(_parts(cells, given)[1][..., -1, :])


def _why_no_total(totals: Array, given: Given) -> Sequence[str]:
    why = ONE_STEP if totals.shape[-2] < 2 else DECISION_TOTAL.undefined_when
    return [why] * len(given["rates"])


def _moved(cells: Array, given: Given) -> Array:
    """Counts of the moves, from ``(..., steps − 1, k + 1, k + 1)``: before in rows, after in columns."""
    step, origin, to = given["moves"]
    return np.asarray(cells[..., step, origin, to])


def _before(cells: Array, given: Given) -> Array:
    step, origin, _ = given["moves"]
    return np.asarray(cells.sum(-1)[..., step, origin])


S_RATE = Statistic(estimand=DECISION_RATE, solve=_rate, n=_n_rate, share=_rate_parts)
S_STEP = Statistic(estimand=DECISION_STEP, solve=_step, n=_n_step)
S_TOTAL = Statistic(estimand=DECISION_TOTAL, solve=_total, n=_n_total, reason=_why_no_total)
S_MOVED = Statistic(estimand=DECISION_MOVED, solve=_moved, n=_before, unweighted=True)


def path_tally(scene: Scene, grader: str) -> Tally:
    """The grader's class counts after every step, in one row a cluster: shape ``(steps, k)``."""
    assert scene.grid is not None
    place = scene.grid.graders.index(grader)
    columns = np.stack([codes[:, place] for _, codes in scene.grid.steps])
    step, rows = np.nonzero(columns >= 0)
    cells = step * scene.k + columns[step, rows]
    return scene.counted(rows, cells.astype(np.int64), (len(columns), scene.k))


def moves_tally(scene: Scene, grader: str) -> Tally:
    """Labels before and after each step but the first, with the last place for no readable label.

    Shape ``(steps − 1, k + 1, k + 1)``; responses without a label on either side are not in it.
    """
    assert scene.grid is not None
    place, k = scene.grid.graders.index(grader), scene.k
    columns = np.stack([codes[:, place] for _, codes in scene.grid.steps]).astype(np.int64)
    before, after = columns[:-1], columns[1:]
    step, rows = np.nonzero((before >= 0) | (after >= 0))
    origin = np.where(before >= 0, before, k)[step, rows]
    to = np.where(after >= 0, after, k)[step, rows]
    cells = (step * (k + 1) + origin) * (k + 1) + to
    return scene.counted(rows, cells, (len(before), k + 1, k + 1))


def parts(scene: Scene) -> Iterable[Part]:
    if scene.grid is None or not scene.grid.steps:
        return
    names = [name for name, _ in scene.grid.steps]
    for grader in scene.names:
        tally = path_tally(scene, grader)
        if not tally.count:
            continue
        if scene.rates:

            def keys(steps: Sequence[str], g: str = grader) -> tuple[Key, ...]:
                return tuple(
                    Key(grader=g, class_=r.name, line=s) for s in steps for r in scene.rates
                )

            asks = [(S_RATE, keys(names)), (S_TOTAL, keys(names[-1:]))]
            if len(names) > 1:
                asks.insert(1, (S_STEP, keys(names[1:])))
            yield Part(
                tally=tally.mapped(with_total), asks=tuple(asks), given={"rates": scene.rates}
            )
        if len(names) > 1:
            yield from _moves(scene, grader, names)


def _moves(scene: Scene, grader: str, names: Sequence[str]) -> Iterable[Part]:
    tally, k = moves_tally(scene, grader), scene.k
    different = np.broadcast_to(~np.eye(k + 1, dtype=bool), tally.shape)
    if k > MOST_CLASSES:
        different = different & (tally.total > 0)
    moves = tuple(np.nonzero(different))
    if not len(moves[0]):
        return
    classes = (*scene.classes, "")
    keys = tuple(
        Key(grader=grader, line=names[step + 1], class_=classes[origin], to_class=classes[to])
        for step, origin, to in zip(*(m.tolist() for m in moves), strict=True)
    )
    yield Part(tally=tally, asks=((S_MOVED, keys),), given={"moves": moves})


# --- the report ---------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    if scene.grid is None or not scene.grid.steps:
        return ()
    names = [name for name, _ in scene.grid.steps]
    if len(names) < 2:
        return (
            Paragraph(
                text=say(
                    "The column of steps has one step only, {step}: nothing was decided after it.",
                    step=Name(names[0]),
                )
            ),
        )
    moved = [e for e in estimates.of("decision_moved", slice=scene.slice) if (e.number or 0) > 0]
    changed = [g for g in scene.names if any(e.key.grader == g for e in moved)]
    made: list[Block] = []
    unchanged = [g for g in scene.names if g not in changed]
    if not changed:
        return (Paragraph(text=("No step of the decision path changed a label.",)),)
    figure = _figure(scene, estimates, changed, names)
    if figure is not None:
        made.append(figure)
    made += [_rate_table(scene, estimates, changed, names, r.name) for r in scene.rates]
    made.append(_moved_table(moved))
    if unchanged:
        made.append(Paragraph(text=say("No step changed a label of {who}.", who=listed(unchanged))))
    return made


def _rate_table(
    scene: Scene, estimates: Estimates, graders: Sequence[str], names: Sequence[str], rate: str
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for grader in graders:
        key = {"grader": grader, "class_": rate, "slice": scene.slice}
        for step in names:
            level = estimates.get("decision_rate", **key, line=step)
            rows.append(
                (
                    cell(Name(grader)),
                    cell(Name(step)),
                    cell(level),
                    cell(estimates.get("decision_step", **key, line=step) or "–"),
                    cell(level.n if level is not None else None, Kind.COUNT),
                )
            )
        total = estimates.get("decision_total", **key, line=names[-1])
        rows.append((cell(Name(grader)), cell("end to end"), cell(""), cell(total), cell("")))
    return Table(
        title=f"The rate of {rate} along the decisions",
        columns=(
            Column(title="grader", kind=Kind.NAME),
            Column(title="labels as of"),
            Column(title="rate", kind=Kind.SHARE),
            Column(title="change, points", kind=Kind.POINTS),
            Column(title="labels", kind=Kind.COUNT),
        ),
        rows=tuple(rows),
        note=(
            "The responses stayed the same, only labels changed. Each interval of a change is that of the difference, "
            "and the last one is not the sum of the others. In another order the same decisions may "
            "change the rate by other amounts.",
        ),
    )


def _moved_table(moved: Sequence[Estimate]) -> Table:
    return Table(
        title="Labels that each step moved",
        columns=(
            Column(title="grader", kind=Kind.NAME),
            Column(title="step", kind=Kind.NAME),
            Column(title="from", kind=Kind.NAME),
            Column(title="to", kind=Kind.NAME),
            Column(title="responses", kind=Kind.COUNT),
            Column(title="of", kind=Kind.COUNT, help="responses with that label before the step"),
        ),
        rows=tuple(
            (
                cell(Name(e.key.grader)),
                cell(Name(e.key.line)),
                cell(Name(e.key.class_)) if e.key.class_ else cell("no label"),
                cell(Name(e.key.to_class)) if e.key.to_class else cell("no label"),
                cell(e),
                cell(e.n, Kind.COUNT),
            )
            for e in moved
        ),
        note=("Pairs of classes between which nothing moved are left out.",),
    )


def _ends(estimate: Estimate | None) -> tuple[float | None, float | None, float | None]:
    if estimate is None:
        return None, None, None
    interval = estimate.interval
    return (
        estimate.number,
        interval.low if interval else None,
        interval.high if interval else None,
    )


def _figure(
    scene: Scene, estimates: Estimates, graders: Sequence[str], names: Sequence[str]
) -> Figure | None:
    drawn: list[dict[str, Any]] = []
    words: list[Text] = []
    for rate in scene.rates:
        paths: list[dict[str, Any]] = []
        for grader in graders:
            key = {"grader": grader, "class_": rate.name, "slice": scene.slice}
            levels: list[dict[str, Any]] = []
            for step in names:
                value, low, high = _ends(estimates.get("decision_rate", **key, line=step))
                change, down, up = _ends(estimates.get("decision_step", **key, line=step))
                levels.append(
                    {
                        "step": step,
                        "value": value,
                        "low": low,
                        "high": high,
                        "change": change,
                        "change_low": down,
                        "change_high": up,
                    }
                )
            if not any(level["change"] for level in levels):
                continue  # this rate stands still: the table says so
            total, low, high = _ends(estimates.get("decision_total", **key, line=names[-1]))
            paths.append(
                {
                    "grader": grader,
                    "levels": levels,
                    "total": total,
                    "total_low": low,
                    "total_high": high,
                }
            )
            said = linked(((Name(x["step"]), f" {percent(x['value'])}") for x in levels), ", ")
            words.append((*say("{rate} of {g}: ", rate=Name(rate.name), g=Name(grader)), *said))
        if paths:
            drawn.append({"name": rate.name, "paths": paths})
    if not drawn:
        return None
    return Figure(
        name="decision_path",
        title="What the decisions after labelling did to the rate",
        data={"rates": drawn},
        alt=("Levels of the rate, one a step. ", *linked(words[:8]), "."),
        caption=(
            "Each level is the rate after a step, in the order of the decisions, with its interval; "
            "changes from the step before are in points. The responses stayed the same.",
        ),
    )


FAMILY = Family(
    name="decisions",
    statistics=(S_RATE, S_STEP, S_TOTAL, S_MOVED),
    parts=parts,
    section="Decisions after labelling",
    order=70,
    blocks=blocks,
)
