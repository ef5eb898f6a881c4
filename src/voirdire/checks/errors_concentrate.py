"""Errors that sit on few lines of the checklist: more than chance would put there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.finding import Finding, State, Strength
from voirdire.line_errors import LineErrors, counted_errors
from voirdire.wording import Name, listed, percent, plural, say

Array = np.ndarray[Any, Any]

WORST = 0.05  # of the lines
HELD = 0.25  # of the errors that these hold
FEWEST_LINES = 20  # of which one is the worst 5 %
FEWEST_ERRORS = 5
DRAWS = 2000
SURE = 0.01  # of draws that may hold as much for the finding to be certain
FEW_DRAWS = 99  # where lines are many; what they hold by chance hardly varies there
MANY_LINES = 2000
MOST_NAMED = 8


def run(evidence: Evidence) -> Iterable[Finding]:
    """Found where the worst 5 % of the lines hold more than 25 % of the errors, and more than chance.

    Both must hold: a share above 25 % (:func:`held_by`; of fewer than 20 lines, where one line is more
    than 5 %, a larger one), and p at most α where errors fall on verdicts at random
    (:func:`chance`). It is certain where p is 0.01 or less, else likely.
    """
    scene = evidence.whole
    if not scene.gold or not scene.panel:
        if scene.panel:
            yield Finding(
                code="errors_concentrate",
                state=State.NOT_APPLICABLE,
                sentence=("Which lines hold the errors needs gold labels.",),
            )
        return
    for judge in scene.panel:
        yield _of_judge(evidence, judge)


def held_by(lines: int, worst: int) -> float:
    """The share of errors that ``worst`` of the lines must hold more than, in 0–1.

    It is 25 % of 20 lines or more, of which the worst 5 % are rounded down to whole lines. Of fewer
    lines one is more than 5 %: then the share that has the same odds ratio to its part of the lines
    as 25 % to 5 %.

    >>> held_by(100, 5), held_by(130, 6), round(held_by(10, 1), 3)
    (0.25, 0.25, 0.413)
    """
    if lines >= FEWEST_LINES:
        return HELD
    ratio = HELD / (1 - HELD) * (1 - WORST) / WORST
    odds = ratio * worst / (lines - worst)
    return odds / (1 + odds)


def worst_count(lines: int) -> int:
    """How many lines are the worst 5 %: at least one, rounded down.

    >>> worst_count(130), worst_count(10)
    (6, 1)
    """
    return max(1, math.floor(WORST * lines))


def chance(errors: Array, verdicts: Array, worst: int, *, seed: int) -> tuple[float, float]:
    """Mean share that the worst lines hold where errors fall on verdicts at random, and p.

    ``errors`` and ``verdicts`` are counts of each line. Errors are thrown on the scored verdicts, no
    two on one; where lines are very many two may fall on one, which puts more on the worst lines and
    so errs on the careful side. p is the share of draws that hold as much as was seen or more, with
    the observed one among them (Phipson and Smyth 2010, p. 4): never 0.
    """
    total, lines = int(errors.sum()), len(errors)
    rng = np.random.default_rng(seed)
    best = slice(lines - worst, None)
    verdicts = np.sort(verdicts)  # the order of lines, and so of rows, is not to matter
    seen = np.partition(errors, lines - worst)[best].sum()
    if lines <= MANY_LINES:
        drawn = rng.multivariate_hypergeometric(verdicts, total, size=DRAWS, method="marginals")
        held = np.partition(drawn, lines - worst, axis=1)[:, best].sum(axis=1)
    else:
        line_of = np.repeat(np.arange(lines), verdicts)
        held = np.empty(FEW_DRAWS, dtype=np.int64)
        for i in range(FEW_DRAWS):
            hit = line_of[rng.integers(len(line_of), size=total)]
            counts = np.bincount(hit, minlength=lines)
            held[i] = np.partition(counts, lines - worst)[best].sum()
    return float(held.mean() / total), float((1 + (held >= seen).sum()) / (1 + len(held)))


def _of_judge(evidence: Evidence, judge: str) -> Finding:
    scene = evidence.whole
    found = counted_errors(scene, judge)
    lines, total = len(found.lines), found.total
    if lines < 2:
        return _other(
            judge, State.NOT_APPLICABLE, "There are fewer than two lines to compare for {judge}."
        )
    if not total:
        return _other(judge, State.CLEAR, "{judge} has no error on any line.")
    worst = worst_count(lines)
    places = found.worst(worst)
    held = int(found.errors[places].sum())
    share, least = held / total, held_by(lines, worst)
    many = "line" if worst == 1 else f"{worst} lines"
    if total < FEWEST_ERRORS:
        return _other(
            judge,
            State.CANNOT_TELL,
            "{judge} has {total} on {lines}, too few to tell whether they gather on some.",
            total=plural(total, "error"),
            lines=plural(lines, "line"),
        )
    by_chance, p = chance(found.errors, found.verdicts, worst, seed=scene.options.seed)
    beside = (
        f"errors thrown at random over the verdicts would put {percent(by_chance)} there on average"
    )
    if share > least and p <= 1 - scene.options.level:
        return Finding(
            code="errors_concentrate",
            state=State.FOUND,
            strength=Strength.CERTAIN if p <= SURE else Strength.LIKELY,
            grader=judge,
            line=found.lines[places[0]] if worst == 1 else "",
            sentence=say(
                "The worst {many} of {judge} {hold} {held} of its {total} errors ({share}), out of {lines}; "
                "{beside}. Worst first: {named}.",
                many=many,
                hold="holds" if worst == 1 else "hold",
                judge=Name(judge),
                held=held,
                total=total,
                share=percent(share),
                lines=plural(lines, "line"),
                beside=beside,
                named=listed([found.lines[i] for i in places], most=MOST_NAMED),
            ),
            evidence=_evidence(evidence, judge, found, places),
            weight=share,
            next_step=(
                "Rewrite these lines, or look whether gold is right there, before changing the judge.",
            ),
        )
    return _other(
        judge,
        State.CLEAR,
        "The worst {many} of {judge} {hold} {held} of its {total} errors ({share}), out of {lines}; "
        "{beside}.",
        many=many,
        hold="holds" if worst == 1 else "hold",
        held=held,
        total=total,
        share=percent(share),
        lines=plural(lines, "line"),
        beside=beside,
    )


def _evidence(evidence: Evidence, judge: str, found: LineErrors, places: list[int]) -> Any:
    estimates = evidence.estimates
    kept = estimates.of("worst_lines_share", grader=judge, slice="")
    for i in places[:MOST_NAMED]:
        one = estimates.get("element_error", grader=judge, line=found.lines[i])
        if one is not None:
            kept = [*kept, one]
    return tuple(kept)


def _other(judge: str, state: State, sentence: str, **values: Any) -> Finding:
    return Finding(
        code="errors_concentrate",
        state=state,
        grader=judge,
        sentence=say(sentence, judge=Name(judge), **values),
    )


CHECK = Check(
    name="errors_concentrate",
    codes={
        "errors_concentrate": "The worst 5 % of the lines hold more than 25 % of a judge’s errors, and more than chance would put there."
    },
    run=run,
    would_miss=(
        "Errors that gather on a question, a position or a kind of response rather than on lines; lines "
        "that are few: one must then hold more (the same odds ratio)."
    ),
    rank=30,
    kinds=("checklist",),
    uses=(
        Consequence(
            code="errors_concentrate",
            use="line_verdict",
            effect=Effect.FORBIDS,
            because="A few lines hold many of its errors.",
        ),
        Consequence(
            code="errors_concentrate",
            use="line_verdict",
            effect=Effect.ALLOWS,
            because="Its errors do not gather on a few lines.",
            state=State.CLEAR,
        ),
    ),
)
