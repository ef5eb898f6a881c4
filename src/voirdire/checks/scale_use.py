"""Scales of more than four ordered classes: unused ends, and a shift along the scale."""

from __future__ import annotations

from collections.abc import Iterable

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.checks.class_collapse import ratio_text
from voirdire.corroboration import MOST_GRADERS, Rule
from voirdire.finding import Finding, State, Strength
from voirdire.wording import Name, often, points, say

SHIFT = 0.10


def run(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    if not scene.ordered or len(scene.scale) <= 4:
        return
    yield from _ends(evidence)
    yield from _shifts(evidence)


def _ends(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    if not scene.gold and not 2 <= len(scene.panel) <= MOST_GRADERS:
        return
    rule = Rule(scene, evidence.estimates)
    told = False
    for class_ in (scene.scale[0], scene.scale[-1]):
        for grader in scene.panel:
            reading = rule.read(grader, class_)
            if reading is None or reading.verdict not in ("found", "two", "small"):
                continue
            deciding = reading.deciding
            assert deciding is not None
            told = True
            found = reading.verdict == "found"
            tail = (
                ""
                if found
                else " This is a difference between two graders and no more."
                if reading.verdict == "two"
                else " Too few labels to decide."
            )
            yield Finding(
                code="scale_end_unused",
                state=State.FOUND if found else State.CANNOT_TELL,
                strength=(Strength.INDICATIVE if scene.counts is not None else Strength.LIKELY)
                if found
                else Strength.NONE,
                grader=grader,
                other=deciding.other,
                class_=class_,
                sentence=say(
                    "{grader} hardly uses the {end} end of the scale: it gives {class_} {own}, where {other} "
                    "gives it {others} (ratio {ratio}).{tail}",
                    grader=Name(grader),
                    end="lower" if class_ == scene.scale[0] else "upper",
                    class_=Name(class_),
                    own=often(deciding.own),
                    other=Name(deciding.other),
                    others=often(deciding.others),
                    ratio=ratio_text(deciding.ratio),
                    tail=tail,
                ),
                evidence=tuple(c.ratio for c in reading.against),
                weight=deciding.others - deciding.own,
            )
    if not told:
        yield Finding(
            code="scale_end_unused",
            state=State.CLEAR,
            sentence=(
                "Both ends of the scale are used by every grader about as often as by others, or too "
                "rarely by anyone to tell.",
            ),
        )


def _shifts(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    found = evidence.estimates.of("cumulative_share_difference", slice="")
    for pair in dict.fromkeys((e.key.grader, e.key.other) for e in found):
        of_pair = [e for e in found if (e.key.grader, e.key.other) == pair and e.number is not None]
        if not of_pair:
            continue
        widest = max(of_pair, key=lambda e: abs(e.number or 0.0))
        value, interval = widest.number or 0.0, widest.interval
        apart = interval is not None and (interval.low > 0 or interval.high < 0)
        if abs(value) < SHIFT or not apart:
            continue
        grader, other = pair
        is_gold = other == scene.gold
        low, high = (grader, other) if value > 0 else (other, grader)
        yield Finding(
            code="scale_shift",
            state=State.FOUND if is_gold else State.CANNOT_TELL,
            strength=Strength.LIKELY if is_gold else Strength.NONE,
            grader=grader,
            other=other,
            class_=widest.key.class_,
            sentence=say(
                "{low} labels lower on the scale than {high}: {points} more of its labels are "
                "{class_} or below{ci}."
                + ("" if is_gold else " A difference between two; nothing says which is off."),
                low=Name(low),
                high=Name(high),
                points=points(abs(value)),
                class_=Name(widest.key.class_),
                ci=f" [{points(min(abs(interval.low), abs(interval.high))).removesuffix(' points')}, "
                f"{points(max(abs(interval.low), abs(interval.high))).removesuffix(' points')}]"
                if interval is not None
                else "",
            ),
            evidence=(widest,),
            weight=100 * abs(value),
        )


CHECK = Check(
    name="scale_use",
    codes={
        "scale_end_unused": "A grader hardly uses an end of a scale of more than four classes.",
        "scale_shift": "A grader’s labels lie more than 10 points lower or higher on such a scale.",
    },
    run=run,
    would_miss="A class inside the scale that is not used; a compressed scale that keeps its ends.",
    rank=15,
    uses=(
        Consequence(
            code="scale_end_unused",
            use="mean_score",
            effect=Effect.FORBIDS,
            because="It hardly uses an end of the scale.",
        ),
        Consequence(
            code="scale_end_unused",
            use="stand_for_gold",
            effect=Effect.FORBIDS,
            because="It hardly uses an end of the scale.",
        ),
        Consequence(
            code="scale_end_unused",
            use="mean_score",
            effect=Effect.OPENS,
            because="Whether it uses the ends of the scale cannot be told.",
            state=State.CANNOT_TELL,
        ),
        Consequence(
            code="scale_end_unused",
            use="mean_score",
            effect=Effect.ALLOWS,
            because="It uses the ends of the scale.",
            state=State.CLEAR,
        ),
        Consequence(
            code="scale_shift",
            use="mean_score",
            effect=Effect.FORBIDS,
            because="Its labels lie lower or higher on the scale than those of others on the same responses.",
        ),
        Consequence(
            code="scale_shift",
            use="stand_for_gold",
            effect=Effect.FORBIDS,
            because="Its labels lie lower or higher on the scale than those of others on the same responses.",
        ),
        Consequence(
            code="scale_shift",
            use="mean_score",
            effect=Effect.OPENS,
            because="Whether its labels lie lower or higher than those of others cannot be told.",
            state=State.CANNOT_TELL,
        ),
    ),
)
