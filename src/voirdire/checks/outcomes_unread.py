"""Graders whose calls often ended without a label: their rates are about what is left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, Strength
from voirdire.grid import LABEL
from voirdire.scene import UNREAD_LIMIT, Scene, calls_of
from voirdire.sides import standard
from voirdire.wording import Name, Text, counted, listed, percent, plural, say

Array = np.ndarray[Any, Any]

FEWEST_LOST = 2  # responses of a question, for it to count as lost whole


def run(evidence: Evidence) -> Iterable[Finding]:
    if evidence.whole.bank is not None:
        yield from _of_bank(evidence)
    else:
        yield from _of_labels(evidence)


def _of_labels(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    small: list[tuple[str, float, float]] = []
    flagged = 0
    for grader in scene.names:
        share = scene.unread_share(grader)
        calls = calls_of(scene, grader)
        asked = sum(n for o, n in calls.items() if o != "missing")
        unread = {o: n for o, n in calls.items() if o not in ("label", "missing")}
        lost = sum(unread.values())
        if not lost:
            continue
        if share <= UNREAD_LIMIT:
            small.append((grader, lost, asked))
            continue
        flagged += 1
        how = ", ".join(f"{counted(n)} {o.replace('_', ' ')}" for o, n in unread.items())
        yield Finding(
            code="outcomes_unread",
            state=State.FOUND,
            strength=Strength.CERTAIN,
            grader=grader,
            sentence=say(
                "{grader} gave no label on {lost} of {asked} calls ({share}: {how}). Its rates are "
                "about the rest only, so its counts are neither flagged nor held against others; the "
                "report prints the two ends between which its rates must lie."
                if grader != scene.gold
                else "Gold ({grader}) is not known for {lost} of {asked} responses ({share}: {how}), so "
                "no grader’s class counts are held against it.",
                grader=Name(grader),
                lost=counted(lost),
                asked=counted(asked),
                share=percent(share),
                how=how,
            ),
            evidence=tuple(evidence.estimates.of("outcome_count", grader=grader, slice="")),
            weight=share * 1e6,
            next_step=("Grade these responses again, or report the rate with its two ends.",),
        )
    if small:
        grader, lost, asked = max(small, key=lambda x: x[1] / x[2])
        yield Finding(
            code="outcomes_unread",
            state=State.CLEAR,
            sentence=say(
                ("Of the others, at most" if flagged else "At most")
                + " {share} of a grader’s calls are unread ({grader}: {lost} of {asked}); they are "
                "counted beside every rate.",
                share=percent(lost / asked),
                grader=Name(grader),
                lost=counted(lost),
                asked=counted(asked),
            ),
            evidence=tuple(evidence.estimates.of("outcome_count", grader=grader, slice="")),
        )


def _of_bank(evidence: Evidence) -> Iterable[Finding]:
    """A call counts as read only where every line of it could be read or was left blank.

    A call of which one line could not be read has no total, whatever stands on its other lines: the
    sentence says how many of the unread calls have verdicts on some lines.
    """
    scene = evidence.whole
    for grader in scene.names:
        unread, asked = _unread_rows(scene, grader)
        blank = _with_blank_lines(scene, grader)
        never = _never_given(scene, grader)
        if never:
            yield _never_in_full(evidence, grader, unread, asked, never)
        elif not asked.any():
            yield Finding(
                code="outcomes_unread",
                state=State.CANNOT_TELL,
                grader=grader,
                sentence=say(
                    "{grader} has no verdict on any line, and nothing says that it was asked.",
                    grader=Name(grader),
                ),
                next_step=(
                    "Leave this grader out with --graders, or pass the file with its verdicts.",
                ),
            )
        elif not unread.any():
            yield Finding(
                code="outcomes_unread",
                state=State.CLEAR,
                grader=grader,
                sentence=say(
                    "{grader}: every call gave readable verdicts{blank}.",
                    grader=Name(grader),
                    blank=f", though {_blank(blank)}" if blank else "",
                ),
                evidence=tuple(evidence.estimates.of("outcome_count", grader=grader, slice="")),
            )
        else:
            yield _lost(evidence, grader, unread, asked, blank)


def _unread_rows(scene: Scene, grader: str) -> tuple[Array, Array]:
    """Which responses a grader was asked about and could not be read on, and which it was asked."""
    bank = scene.bank
    assert bank is not None
    place = bank.places[grader]
    unread = bank.unread[:, place]
    return unread, np.asarray(unread | (bank.states[:, place] == LABEL))


def _with_blank_lines(scene: Scene, grader: str) -> int:
    """Responses that a grader was read on, but not on every line."""
    bank = scene.bank
    assert bank is not None
    place = bank.places[grader]
    return int(((bank.states[:, place] == LABEL) & ~bank.complete[:, place]).sum())


def _never_given(scene: Scene, grader: str) -> list[str]:
    """Lines without any verdict of a grader, where these leave no response in full; else none."""
    bank = scene.bank
    assert bank is not None
    place = bank.places[grader]
    given = bank.verdicts[:, place] >= 0
    if bank.complete[:, place].any() or not given.any():
        return []
    touched = given.any(axis=1)  # a call that was lost whole lacks all lines: that is another cause
    there = bank.line[touched]
    size = len(bank.lines)
    of_line = np.bincount(there[there >= 0], minlength=size)
    with_one = np.bincount(there[given[touched]], minlength=size)
    return [bank.lines[i] for i in np.flatnonzero((of_line > 0) & (with_one == 0))]


def _never_in_full(
    evidence: Evidence, grader: str, unread: Array, asked: Array, never: list[str]
) -> Finding:
    lost = int(unread.sum())
    return Finding(
        code="outcomes_unread",
        state=State.FOUND,
        strength=Strength.CERTAIN,
        grader=grader,
        sentence=say(
            "{grader} scored none of {calls} in full: it has no verdict on {lines} ({named}). So it has no "
            "totals, no gate and no coefficients; its errors on the other lines stand.{lost}",
            grader=Name(grader),
            calls=plural(int(asked.sum()), "response"),
            lines=plural(len(never), "line"),
            named=listed(never),
            lost=f" Besides, {plural(lost, 'response')} could not be read." if lost else "",
        ),
        evidence=tuple(evidence.estimates.of("outcome_count", grader=grader, slice="")),
        weight=1e6,
        next_step=(
            "Add the verdicts on these lines, or audit without them: leave their columns or rows out of the "
            "file for every grader.",
        ),
    )


def _blank(n: int) -> str:
    return (
        f"{plural(n, 'response')} {'lacks' if n == 1 else 'lack'} a verdict on some line and "
        f"{'has' if n == 1 else 'have'} no total"
    )


def _lost_questions(scene: Scene, unread: Array, asked: Array) -> list[tuple[str, int]]:
    """Questions of two responses or more that were lost whole, each with how many it has."""
    bank = scene.bank
    assert bank is not None
    if not bank.own:
        return []
    size = len(bank.questions)
    of_all = np.bincount(bank.question[asked], minlength=size)
    lost = np.bincount(bank.question[unread], minlength=size)
    return [
        (bank.questions[q], int(of_all[q]))
        for q in range(size)
        if lost[q] == of_all[q] and of_all[q] >= FEWEST_LOST
    ]


def _lost(evidence: Evidence, grader: str, unread: Array, asked: Array, blank: int) -> Finding:
    scene = evidence.whole
    questions = _lost_questions(scene, unread, asked)
    lost, calls = int(unread.sum()), int(asked.sum())
    share = lost / calls
    found = share > UNREAD_LIMIT or bool(questions)
    ended = {o: n for o, n in calls_of(scene, grader).items() if o not in ("label", "missing")}
    how = ", ".join(f"{counted(n)} {o.replace('_', ' ')}" for o, n in ended.items())
    bank = scene.bank
    assert bank is not None
    some = int((bank.verdicts[unread, bank.places[grader]] >= 0).any(axis=1).sum())
    sentence = say(
        "{grader} could not be read in full on {lost} of {calls} ({share}{how}){questions}.{some}"
        "{blank}{gold}",
        grader=Name(grader),
        lost=lost,
        calls=plural(calls, "response"),
        share=percent(share),
        how=f": {how}" if how else "",
        questions=_named(questions),
        some=f" It gave a verdict on some lines of {some:,} of these; a total needs all lines."
        if some
        else "",
        blank=f" Besides, {_blank(blank)}." if blank else "",
        gold=" Nothing is compared with gold there." if grader == scene.gold else "",
    )
    bounds = _bounds(evidence, grader) if grader != scene.gold else []
    if bounds:
        sentence = (
            *sentence,
            *say(
                " {over} the gate is right on {ends}: the first where an unread response counts as an "
                "error, the second where it counts as a rejection.",
                over=_over(scene, grader, bounds[0][1][1].n),
                ends=", ".join(text for text, _ in bounds),
            ),
        )
    kept = (
        *evidence.estimates.of("outcome_count", grader=grader, slice=""),
        *(e for _, pair in bounds for e in pair),
    )
    if not found:
        return Finding(
            code="outcomes_unread",
            state=State.CLEAR,
            grader=grader,
            sentence=sentence,
            evidence=kept,
        )
    return Finding(
        code="outcomes_unread",
        state=State.FOUND,
        strength=Strength.CERTAIN,
        grader=grader,
        sentence=sentence,
        evidence=kept,
        weight=share * 1e6,
        next_step=(
            "Grade these responses again, or report the gate with both ends; name the questions that "
            "are not in the figures."
            if questions
            else "Grade these responses again, or report the gate with both ends.",
        ),
    )


def _named(questions: list[tuple[str, int]]) -> Text:
    if not questions:
        return ()
    of = {n for _, n in questions}
    each = f"all {counted(of.pop())} of" if len(of) == 1 else "all of"
    return say(
        ", {each} {questions} {names}among them: what is lost may not be lost at random",
        each=each,
        questions="question" if len(questions) == 1 else "questions",
        names=(*listed([q for q, _ in questions]), " "),
    )


def _over(scene: Scene, grader: str, n: float | None) -> Text:
    """The responses that the two ends are over: gold must have scored them in full."""
    assert scene.bank is not None
    if n == scene.bank.responses:
        return (f"Over all {counted(n)}",)
    return say(
        "Over the {n} that {gold} scored in full and {grader} scored in full or could not be read on,",
        n="responses" if n is None else f"{counted(n)} {'response' if n == 1 else 'responses'}",
        gold=standard(scene),
        grader=Name(grader),
    )


def _bounds(evidence: Evidence, grader: str) -> list[tuple[str, tuple[Estimate, Estimate]]]:
    """At each cut the gate's accuracy with an unread response as a rejection, and as an error."""
    made: list[tuple[str, tuple[Estimate, Estimate]]] = []
    for cut in sorted(set(evidence.whole.options.cut)):
        pair = [
            evidence.estimates.get(f"gate_accuracy_unparsed_{how}", grader=grader, cut=str(cut))
            for how in ("rejected", "wrong")
        ]
        rejected, wrong = pair
        if rejected is None or wrong is None or rejected.number is None or wrong.number is None:
            continue
        at = f"at a cut of {cut}" if not made else f"at {cut}"
        text = f"{percent(wrong.number)} to {percent(rejected.number)} {at}"
        made.append((text, (rejected, wrong)))
    return made


CHECK = Check(
    name="outcomes_unread",
    codes={
        "outcomes_unread": "More than 20 % of a grader’s calls ended without a label, or a question of a checklist was lost whole."
    },
    run=run,
    would_miss=(
        "Few unread calls that fall on just those responses that matter: a low share does not make "
        "them harmless."
    ),
    rank=5,
    kinds=("labels", "counts", "checklist"),
    uses=(
        Consequence(
            code="outcomes_unread",
            use="report_rate",
            effect=Effect.FORBIDS,
            because="It was not read on a large share of the calls, so the rate is of the others.",
        ),
        Consequence(
            code="outcomes_unread",
            use="compare_models",
            effect=Effect.FORBIDS,
            because="It was not read on a large share of the calls, or on whole questions.",
        ),
        Consequence(
            code="outcomes_unread",
            use="compare_graders",
            effect=Effect.CONDITIONS,
            because="Compare on the responses that both could be read on.",
        ),
        Consequence(
            code="outcomes_unread",
            use="stand_for_gold",
            effect=Effect.FORBIDS,
            because="It was not read on a large share of the calls, or on whole questions.",
        ),
        Consequence(
            code="outcomes_unread",
            use="state_accuracy",
            effect=Effect.CONDITIONS,
            because="Give the bounds with each unread call as right and as wrong.",
        ),
        Consequence(
            code="outcomes_unread",
            use="gate",
            effect=Effect.CONDITIONS,
            because="Let no response pass that it could not be read on, and count each of them as an error.",
        ),
        Consequence(
            code="outcomes_unread",
            use="total_score",
            effect=Effect.CONDITIONS,
            because="Say which responses have no total; where whole questions are lost, leave them out for every side.",
        ),
    ),
)
