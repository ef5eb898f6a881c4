"""Graders whose calls often ended without a label: their rates are about what is left."""

from __future__ import annotations

from collections.abc import Iterable

from voirdire.checks.base import Check, Evidence
from voirdire.finding import Finding, State, Strength
from voirdire.scene import UNREAD_LIMIT, calls_of
from voirdire.wording import Name, counted, percent, say


def run(evidence: Evidence) -> Iterable[Finding]:
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


CHECK = Check(
    name="outcomes_unread",
    codes={"outcomes_unread": "More than 20 % of a grader’s calls ended without a label."},
    run=run,
    would_miss=(
        "Few unread calls that fall on just those responses that matter: a low share does not make "
        "them harmless."
    ),
    rank=5,
)
