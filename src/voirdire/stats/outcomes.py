"""How grading calls ended: only ``label`` is a class, and everything else is counted beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from voirdire.document import Block, Cell, Column, Kind, Paragraph, Table, Tone, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.labels import ALL_OUTCOMES
from voirdire.scene import UNREAD_LIMIT
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.wording import Name, percent, say

OUTCOME_COUNT = Estimand(
    name="outcome_count",
    title="Calls by outcome",
    question="How many grading calls ended in a label, and how did the others end?",
    describes=Describes.GRADER,
    keys=("grader", "class"),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    low=0,
    reading=(
        "All votes are counted. A blank cell is ``missing``: nobody knows whether it was asked. In a "
        "checklist a call is over all lines of a response: it counts as a label where verdicts could "
        "be read, and as its first line that could not be read where there is one."
    ),
    undefined_when="a table of counts does not print how calls ended",
    source=Source(text="Contract of voirdire: seven outcomes, of which only one is a class"),
    formula=r"n_{go} = \#\{\text{calls of grader } g \text{ that ended as } o\}",
    conventions=(
        "o: the outcome. Every vote is a call. The unread share beside it is of the calls that "
        "were asked: all but the missing ones."
    ),
)


def _counts(cells: Array, given: Given) -> Array:
    return cells


def _asked(cells: Array, given: Given) -> Array:
    return np.asarray(cells.sum(-1))


STATISTIC = Statistic(estimand=OUTCOME_COUNT, solve=_counts, n=_asked)


def parts(scene: Scene) -> Iterable[Part]:
    for place, grader in enumerate(scene.names):
        calls = scene.calls[place].astype(np.float64)
        there = [i for i, n in enumerate(calls) if n > 0]
        if there:
            keys = tuple(Key(grader=grader, class_=ALL_OUTCOMES[i]) for i in there)
            yield Part(tally=None, totals=calls[there], asks=((STATISTIC, keys),))


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    seen = [
        o
        for o in ALL_OUTCOMES
        if any(e.key.slice == scene.slice for e in estimates.of("outcome_count", class_=o))
    ]
    if seen == ["label"] and scene.grid is None:
        return ()  # counts do not say how calls ended; of a checklist outcomes_unread says it
    if seen == ["label"]:
        return (Paragraph(text=("Every call ended in a label.",)),)
    rows = []
    for grader in scene.names:
        cells = [cell(Name(grader))]
        for outcome in seen:
            found = estimates.get("outcome_count", grader=grader, class_=outcome, slice=scene.slice)
            cells.append(cell(found) if found is not None else cell(0.0, Kind.COUNT))
        unread = scene.unread_share(grader)
        cells.append(Cell(kind=Kind.SHARE, value=unread))
        rows.append(tuple(cells))
    table = Table(
        title="How the calls ended",
        columns=(
            Column(title="grader", kind=Kind.NAME),
            *(Column(title=o.replace("_", " "), kind=Kind.COUNT) for o in seen),
            Column(title="unread", kind=Kind.SHARE, help="of the calls that were asked"),
        ),
        rows=tuple(rows),
        note=(
            "Only labels count as classes. A missing cell is one that nobody is known to have asked."
            if scene.bank is None
            else "A call is over all lines of a response. It counts as a label where verdicts could be "
            "read, also where some line is blank; a missing one nobody is known to have asked.",
        ),
    )
    worst = max(scene.names, key=scene.unread_share)
    if scene.unread_share(worst) > UNREAD_LIMIT:
        return (
            table,
            Paragraph(
                tone=Tone.WARNING,
                text=say(
                    "{grader} left {share} of its calls unread: its rates are about the rest only.",
                    grader=Name(worst),
                    share=percent(scene.unread_share(worst)),
                ),
            ),
        )
    return (table,)


FAMILY = Family(
    name="outcomes",
    statistics=(STATISTIC,),
    parts=parts,
    section="Outcomes of the calls",
    order=15,
    blocks=blocks,
    kinds=("labels", "counts", "checklist"),
)
