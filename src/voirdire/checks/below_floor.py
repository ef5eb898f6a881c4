"""Agreement that an answer which never changes would beat."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, Strength
from voirdire.scene import Scene
from voirdire.wording import Name, Text, listed, percent, points, say

# Clusters in which the grader and the constant answer differ: with five of them, all on one side,
# an exact sign test does not reach 5 % (2 × 0.5⁵ = 0.06), whatever a t interval says.
FEWEST_APART = 6


def run(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    if scene.grid is None:
        return
    for standard in scene.standards:
        made = [
            e
            for e in evidence.estimates.of("agreement_minus_constant", other=standard, slice="")
            if e.number is not None and _may_speak(scene, standard, e.key.grader)
        ]
        open_, above = [], []
        for one in made:
            value = one.number or 0.0
            if value < 0:
                yield _below(evidence, standard, one)
            elif one.interval is not None and one.interval.low > 0:
                above.append(one)
            else:
                open_.append(one)
        if open_:
            yield _open(scene, standard, open_)
        if above:
            yield _above(scene, standard, above)


def _may_speak(scene: Scene, standard: str, grader: str) -> bool:
    """Whether the standard may speak about the grader.

    People are not accused by a reference, and a standard that is made from the grader's labels (or
    the other way round) agrees with them by construction.
    """
    me, other = scene.by_name[grader], scene.by_name[standard]
    if grader in other.derived_from or standard in me.derived_from:
        return False
    return not me.person or standard == scene.gold or other.person


def _named(scene: Scene, standard: str) -> Text:
    """``gold``, ``gold (final_label)`` or ``the reference gpt-4``."""
    if standard != scene.gold:
        return ("the reference ", Name(standard))
    return ("gold",) if standard.casefold() == "gold" else ("gold (", Name(standard), ")")


def _below(evidence: Evidence, standard: str, one: Estimate) -> Finding:
    scene, grader = evidence.whole, one.key.grader
    tally = scene.pair_tally(grader, standard)
    totals = tally.total
    mode = int(totals.sum(0).argmax())
    n = totals.sum()
    apart = np.trace(tally.rows, axis1=-2, axis2=-1) - tally.rows[..., mode].sum(-1)
    differing = int(tally.clusters[apart != 0].sum())
    sure = one.interval is not None and one.interval.high < 0
    strength = Strength.INDICATIVE
    if sure:
        # Against a reference this is a difference between two graders, and never certain.
        certain = differing >= FEWEST_APART and standard == scene.gold
        strength = Strength.CERTAIN if certain else Strength.LIKELY
    agreement = evidence.estimates.get("agreement", grader=grader, other=standard)
    constant = "best_constant_agreement" if standard == scene.gold else "competence_floor"
    kappa = evidence.estimates.get("cohen_kappa", grader=grader, other=standard)
    floor = evidence.estimates.get(constant, other=standard)
    tail = "" if sure else " The interval of the difference holds zero: it may be chance."
    if one.interval is None:
        why = f" ({one.no_interval})" if one.no_interval else ""
        tail = f" There is no interval of the difference{why}: it may be chance."
    if standard != scene.gold:
        tail += " Which of the two is off the reference does not tell."
    return Finding(
        code="below_floor",
        state=State.FOUND,
        strength=strength,
        grader=grader,
        other=standard,
        class_=scene.classes[mode],
        sentence=say(
            "{grader} agrees with {standard} on {agreement} of their common responses; always "
            "answering {class_} would agree on {constant}, {more} more.{tail}",
            grader=Name(grader),
            standard=_named(scene, standard),
            agreement=percent(float(np.trace(totals)) / n),
            class_=Name(scene.classes[mode]),
            constant=percent(float(totals[:, mode].sum()) / n),
            more=points(-(one.number or 0.0)),
            tail=tail,
        ),
        evidence=tuple(e for e in (one, agreement, floor, kappa) if e is not None),
        weight=-100 * (one.number or 0.0),
        next_step=(
            "Read its labels class by class (see where labels move) before its agreement is quoted.",
        ),
    )


def _open(scene: Scene, standard: str, made: list[Estimate]) -> Finding:
    equal = [e.key.grader for e in made if e.number == 0]
    rest = [e.key.grader for e in made if e.number]
    said: Text = ()
    if equal:
        said = say(
            " {graders} {agree} just as often as that answer would, which shows no more than knowing "
            "the most frequent class.",
            graders=listed(equal),
            agree="agrees" if len(equal) == 1 else "agree",
        )
    if rest:
        said = (
            *said,
            *say(
                " {graders} {agree} more often, by no more than chance could bring (or with too few "
                "clusters for an interval).",
                graders=listed(rest),
                agree="agrees" if len(rest) == 1 else "agree",
            ),
        )
    return Finding(
        code="below_floor",
        state=State.CANNOT_TELL,
        grader=made[0].key.grader if len(made) == 1 else "",
        other=standard,
        sentence=(
            *say(
                "Whether agreement with {standard} is above that of the best answer that "
                "never changes cannot be told for {n} of the graders.",
                standard=_named(scene, standard),
                n=len(made),
            ),
            *said,
        ),
        evidence=tuple(made),
    )


def _above(scene: Scene, standard: str, made: list[Estimate]) -> Finding:
    least = min(made, key=lambda e: (e.number or 0.0, e.key.grader))
    return Finding(
        code="below_floor",
        state=State.CLEAR,
        grader=made[0].key.grader if len(made) == 1 else "",
        other=standard,
        sentence=say(
            "{graders} {agree} with {standard} more often than the best answer that never "
            "changes would, {least} by the least: {points}. That is a floor and no praise.",
            graders=listed(e.key.grader for e in made),
            agree="agrees" if len(made) == 1 else "agree",
            standard=_named(scene, standard),
            least=Name(least.key.grader),
            points=points(least.number),
        ),
        evidence=tuple(made),
    )


CHECK = Check(
    name="below_floor",
    codes={
        "below_floor": "A grader agrees with gold or the reference less often than always giving its most frequent class would."
    },
    run=run,
    would_miss=(
        "A grader above the floor that still misses a rare class whole: where one class has 95 % of "
        "the labels, being above it takes few of the others."
    ),
    rank=45,
    uses=(
        Consequence(
            code="below_floor",
            use="stand_for_gold",
            effect=Effect.FORBIDS,
            because="One constant answer agrees more often than it does.",
        ),
        Consequence(
            code="below_floor",
            use="state_accuracy",
            effect=Effect.CONDITIONS,
            because="Say beside it that one constant answer agrees more often.",
        ),
    ),
)
