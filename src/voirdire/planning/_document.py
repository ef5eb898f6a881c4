"""A plan as a document: what the file as it is could show, the numbers needed, and how they were made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from voirdire.document import (
    Block,
    Column,
    Document,
    Figure,
    Heading,
    Kind,
    Paragraph,
    Table,
    Tone,
    cell,
)
from voirdire.errors import UsageError
from voirdire.planning._precision import expected_interval
from voirdire.planning.base import Answer, Guesses, Pilot, Question, Shown, of_answer
from voirdire.plugins import load
from voirdire.wording import Text, counted, percent, plural, say

MOST_CURVES = 6
_CURVE_RUNS = 200  # data sets for one point of a curve
_CURVE_POINTS = 24

UNASKED = (
    "There is no gold here and no panel of three, so nothing else can be planned from this file. State a "
    "guess, such as --false-accept 0.1, or name gold with --gold."
)


def questions() -> tuple[Question, ...]:
    """Every question that there is, in the order of the plan."""
    return tuple(sorted(load("planning", Question), key=lambda q: (q.order, q.name)))


def answers(guesses: Guesses, of: Pilot | None = None) -> list[Answer]:
    """Every question that the guesses and the pilot allow, answered."""
    guesses.check()
    return [answer for question in questions() for answer in question.answers(guesses, of)]


def document(guesses: Guesses, of: Pilot | None = None, *, version: str = "") -> Document:
    """The plan as a document: what the file could show, the numbers needed, labels by stratum.

    Raises :class:`UsageError` where neither a pilot nor a guess is given.
    """
    guesses.check()
    by_question = [(q, list(q.answers(guesses, of))) for q in questions()]
    made = [answer for _, some in by_question for answer in some]
    sections = [q.section(guesses, of) for q, _ in by_question]
    sections = [s for s in sections if s.blocks or s.rows]
    if of is None and not made and not sections:
        raise UsageError(_nothing())
    shown = [] if of is None else [s for q, _ in by_question for s in q.as_it_is(guesses, of)]
    blocks: list[Block] = [*_as_it_is(shown, guesses)]
    if made:
        blocks += [Heading(text="Numbers needed"), *_needed_tables(made)]
    blocks += [_not_met(a) for a in made if not a.needed.met]
    if not made and not sections:
        blocks.append(Paragraph(text=(UNASKED,), tone=Tone.NOTE))
    curves = [a for a in made if a.curve is not None][:MOST_CURVES]
    if curves:
        blocks.append(_figure(curves, guesses))
    blocks += [block for s in sections for block in s.blocks]
    about = dict.fromkeys(q.about(some, guesses) for q, some in by_question if some)
    said = [
        *(a for a in about if a),
        "A number is as good as its guess: plan with a worse one too.",
    ]
    blocks += [Heading(text="How it was made"), Paragraph(text=(" ".join(said),), tone=Tone.NOTE)]
    rows = [of_answer(a) for a in made]
    rows += [s.row for s in shown if s.row is not None]
    rows += [row for s in sections for row in s.rows]
    return Document(
        title="Plan" + (": " + ", ".join(i.name for i in of.inputs[:3]) if of is not None else ""),
        summary=_summary(made, bool(sections)),
        blocks=tuple(blocks),
        estimates=tuple(rows),
        findings=(),
        inputs=of.inputs if of is not None else (),
        options=(of.options or {}) if of is not None else {},
        version=version,
    )


def _nothing() -> str:
    asked = [f"{q.guess} ({q.title[0].lower()}{q.title[1:]})" for q in questions() if q.guess]
    return (
        "There is nothing to plan from. Name a pilot file (voirdire plan labels.csv), or state a guess: "
        f"{'; '.join(asked)}."
    )


def _summary(made: Sequence[Answer], sections: bool) -> Text:
    if not made:
        return ("Human labels by stratum." if sections else "What the file as it is could show.",)
    met = sum(a.needed.met for a in made)
    return say("{n}; {met} can be met as stated.", n=plural(len(made), "question"), met=met)


def _needed_tables(made: Sequence[Answer]) -> list[Block]:
    guesses = list(dict.fromkeys(a.guess for a in made))
    return [
        Table(
            title="What is needed",
            columns=(
                Column(title="question"),
                Column(title="needed"),
                Column(title="labels", kind=Kind.COUNT),
                Column(title="gives"),
                Column(title="by"),
            ),
            rows=tuple(
                (
                    cell(say("{n} {what}{whose}", n=str(i), what=a.question, whose=a.whose)),
                    cell(
                        f"{counted(a.needed.number)} {a.unit}" if a.needed.met else "cannot be met"
                    ),
                    cell(a.labels if a.needed.met else None, Kind.COUNT),
                    cell(a.short or a.gives if a.needed.met else "see below"),
                    cell(a.needed.how),
                )
                for i, a in enumerate(made, 1)
            ),
            note=_note(made),
        ),
        Table(
            title="What the answers rest on",
            columns=(Column(title="question"), Column(title="guess")),
            rows=tuple(
                (
                    cell(", ".join(str(i) for i, a in enumerate(made, 1) if a.guess == guess)),
                    cell(guess),
                )
                for guess in guesses
            ),
        ),
    ]


def _note(made: Sequence[Answer]) -> Text:
    """What stands in the columns, of the questions that are there."""
    said = []
    if any(a.curve is not None for a in made):
        said.append(
            "Half widths in points, with the mean ends of the interval that an audit will give. Labels of a share "
            "are those that it is a share of."
        )
    if any(a.labels is not None and a.curve is None for a in made):
        said.append("Labels of a collapse are those of each grader.")
    return (" ".join(said),) if said else ()


def _not_met(answer: Answer) -> Paragraph:
    return Paragraph(
        text=say(
            "{what}{whose}: this cannot be met with up to {tried} {unit}. The best that was tried, {n}, gives "
            "{gives}.",
            what=answer.question,
            whose=answer.whose,
            tried=counted(answer.needed.tried),
            n=counted(answer.needed.number),
            unit=answer.unit,
            gives=answer.gives,
        ),
        tone=Tone.WARNING,
    )


def _as_it_is(shown: Sequence[Shown], guesses: Guesses) -> list[Block]:
    """The smallest effects that the file as it is could have shown."""
    if not shown:
        return []
    level = percent(1 - guesses.level, 0)
    weighted = any("weighted" in str(part) for s in shown for part in s.rests)
    note = (
        f"By formula. Differences: from a fixed value, two-sided test at {level}, t on clusters − 1; where events are "
        "few, a rise (a fall, where others are few) by the exact binomial test of the effective number. A true "
        "effect that is smaller was more likely missed than the power says; it is not shown to be absent."
    )
    if weighted:
        note += " Weighted labels count as Kish’s effective number, (Σ w)² / Σ w², not as the sum of weights."
    return [
        Heading(text="The file as it is"),
        Table(
            title="The smallest effect it could show",
            columns=(
                Column(title="of"),
                Column(title="rests on"),
                Column(title=f"with power {percent(guesses.power, 0)}"),
            ),
            rows=tuple((cell(s.of), cell(s.rests), cell(s.said)) for s in shown),
            note=(note,),
        ),
    ]


def _figure(curves: Sequence[Answer], guesses: Guesses) -> Figure:
    drawn: list[dict[str, Any]] = []
    top = max(a.needed.number for a in curves)
    for a in curves:
        assert a.curve is not None
        counts = _grid(top)
        widths = [
            expected_interval(
                a.curve, n, guesses.level, seed=guesses.seed, runs=_CURVE_RUNS
            ).half_width
            for n in counts
        ]
        drawn.append(
            {
                "name": a.curve.name,
                "grader": a.curve.grader,
                "class": a.curve.class_ or (f"cut {a.curve.cut}" if a.curve.cut else ""),
                "clusters": counts,
                "half_width": widths,
                "needed": a.needed.number if a.needed.met else None,
                "now": a.curve.clusters or None,
            }
        )
    said = "; ".join(
        f"{a.question}: {counted(a.needed.number)} clusters"
        if a.needed.met
        else f"{a.question}: not met"
        for a in curves
    )
    return Figure(
        name="planning_curves",
        title="Half width to expect, by clusters",
        data={"curves": drawn, "within": guesses.within},
        alt=(f"Half width of the interval to expect against the number of clusters. {said}.",),
        caption=("The wanted half width is the dashed line; a ring marks the number needed.",),
    )


def _grid(top: int) -> list[int]:
    """Numbers of clusters for a curve, evenly on a logarithmic axis from 3 to twice what is needed."""
    ends = (3.0, max(2.0 * top, 12.0))
    return sorted({round(n) for n in np.geomspace(*ends, _CURVE_POINTS)})
