"""KR-20 pairs lines by position; where each question has its own lines, positions are arbitrary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, Strength
from voirdire.scene import Scene
from voirdire.sides import sides
from voirdire.wording import Name, counted, number, say

Array = np.ndarray[Any, Any]

WIDEST = 0.05
FEWEST_RESPONSES = 50  # scored in full; below that KR-20 itself is hardly known
SURE = 0.01  # of chance, for the finding to be certain


def run(evidence: Evidence) -> Iterable[Finding]:
    """Tell an order that matters from lines that differ by chance alone.

    Where the lines of a question are equally hard no order is special, and yet the range over orders
    is wide where responses are few. So a range above 0.05 is found only with 50 responses scored in
    full or more, and where the lines inside the questions differ beyond chance by Cochran's Q added
    up over questions (:func:`within_questions`), at α shared out over the judges. It is certain where
    p is 0.01 or less, shared out too.
    """
    scene, estimates = evidence.whole, evidence.estimates
    if scene.bank is None or not scene.panel:
        return
    if not scene.bank.own:
        yield Finding(
            code="element_order_matters",
            state=State.NOT_APPLICABLE,
            sentence=(
                "One checklist serves all responses, so a position is one and the same line.",
            ),
        )
        return
    for judge in scene.panel:
        low = estimates.get("kr20_shuffled_low", grader=judge)
        high = estimates.get("kr20_shuffled_high", grader=judge)
        printed = estimates.get("kr20", grader=judge)
        if low is not None and high is not None:
            yield _of_judge(scene, judge, low, high, printed)


def _of_judge(
    scene: Scene, judge: str, low: Estimate, high: Estimate, printed: Estimate | None
) -> Finding:
    found = Finding(
        code="element_order_matters", state=State.NOT_APPLICABLE, grader=judge, sentence=()
    )
    if low.number is None or high.number is None:
        return replace(
            found,
            sentence=say(
                "KR-20 on the verdicts of {judge} has no value with the lines in another order ({why}).",
                judge=Name(judge),
                why=low.reason or high.reason or "it is undefined",
            ),
        )
    wide = high.number - low.number
    sentence = say(
        "Each question has lines of its own, and KR-20 pools the lines that stand at one position. "
        "With the lines of each question in another order it lies between {low} and {high} on the "
        "verdicts of {judge}{printed}.",
        low=number(low.number),
        high=number(high.number),
        judge=Name(judge),
        printed=f" (printed: {number(printed.number)})"
        if printed is not None and printed.number is not None
        else "",
    )
    found = replace(found, evidence=tuple(e for e in (low, high, printed) if e is not None))
    if wide <= WIDEST:
        return replace(found, state=State.CLEAR, sentence=sentence)
    n, p = within_questions(scene, judge)
    p *= len(scene.panel)
    if n < FEWEST_RESPONSES:
        return replace(
            found,
            state=State.CANNOT_TELL,
            sentence=(
                *sentence,
                f" That is wide, but only {counted(n)} {'response was' if n == 1 else 'responses were'} "
                f"scored in full: below {FEWEST_RESPONSES} nothing tells the order from chance.",
            ),
            next_step=("Score more responses, or print no KR-20 of so few.",),
        )
    if p > 1 - scene.options.level:
        return replace(
            found,
            state=State.CLEAR,
            sentence=(
                *sentence,
                " The lines inside the questions do not differ beyond chance (Cochran’s Q), so this "
                "range comes of few responses and not of the order.",
            ),
        )
    return replace(
        found,
        state=State.FOUND,
        strength=Strength.CERTAIN if p <= SURE else Strength.LIKELY,
        sentence=(
            *sentence,
            " Part of the printed value is the order that the file happens to have.",
        ),
        weight=wide,
        next_step=(
            "Read the KR-20 within questions, which knows no order between them, or print the range.",
        ),
    )


def within_questions(scene: Scene, judge: str) -> tuple[float, float]:
    """How many responses count, and p that the lines inside the questions are equally hard.

    Cochran's Q (1950, Biometrika 37, p. 259, eq. 6) of each question, added up, on K − 1 degrees of
    freedom for each question in which verdicts differ within some response. Responses are those that
    stand beside gold, where there is gold. With few responses in a question it errs on the careful
    side. Design weights count no response for more than one; a frequency weight does.
    """
    from scipy import stats

    bank = scene.bank
    assert bank is not None
    rows = next(s.rows for s in sides(scene) if s.grader == judge and not s.keys[0].other)
    times = np.ones(len(rows))
    if bank.frequency and bank.weights is not None:
        times = bank.weights[rows]
    k = bank.k
    met = (bank.of(judge)[rows] == 1)[:, :k].astype(np.float64)
    total = met.sum(axis=1)
    question = bank.question[rows]
    size = len(bank.questions)
    lines = np.stack(
        [np.bincount(question, times * met[:, j], minlength=size) for j in range(k)], axis=1
    )
    between = ((lines - lines.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    by_chance = np.bincount(question, times * total * (k - total) / k, minlength=size)
    held = by_chance > 0
    if not held.any() or k < 2:
        return float(times.sum()), 1.0
    q = float(((k - 1) * between[held] / by_chance[held]).sum())
    return float(times.sum()), float(stats.chi2.sf(q, (k - 1) * int(held.sum())))


CHECK = Check(
    name="element_order",
    codes={
        "element_order_matters": "Shuffling the lines inside the questions moves KR-20 by more than 0.05, and these lines differ beyond chance."
    },
    run=run,
    would_miss=(
        "Orders that were not drawn; effects of the order in which a judge reads the lines; an order that "
        f"matters on a bank of fewer than {FEWEST_RESPONSES} responses."
    ),
    rank=42,
    kinds=("checklist",),
    uses=(
        Consequence(
            code="element_order_matters",
            use="bank_coefficient",
            effect=Effect.CONDITIONS,
            because="Say in which order the lines of the questions stand, and between which values other orders lie.",
        ),
    ),
)
