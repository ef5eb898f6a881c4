"""A rate that moves so far with the grader that it is no property of the graded model."""

from __future__ import annotations

from collections.abc import Iterable

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, Strength
from voirdire.scene import UNREAD_LIMIT, Scene
from voirdire.sides import standard
from voirdire.wording import Name, Text, counted, listed, percent, points, say, times


def _where(scene: Scene) -> str:
    """Which responses the rates are about: the same for all graders only where all could be read."""
    if scene.grid is None:
        return "In these counts"
    there = scene.grid.codes[:, [scene.grid.graders.index(g) for g in scene.panel]] >= 0
    some, incomplete = (
        int(there.any(axis=1).sum()),
        int((there.any(axis=1) & ~there.all(axis=1)).sum()),
    )
    if not incomplete:
        return "On the same responses"
    if incomplete <= 0.1 * some:
        return f"On the same responses, but for {incomplete:,} that some grader has no label on,"
    return "On the responses that each grader could be read on"


def _strength(scene: Scene, wide: Estimate, ratio: Estimate, apart: float, fold: float) -> Strength:
    """How far the intervals carry it; none where chance alone could have made the difference.

    Counts have no interval of the spread, since the table does not say how the graders pair.
    """
    if scene.grid is None:
        return Strength.INDICATIVE
    low = wide.interval.low if wide.interval is not None else 0.0
    least = ratio.interval.low if ratio.interval is not None else 0.0
    if low > apart or least > fold:
        return Strength.CERTAIN if len(scene.panel) > 2 else Strength.LIKELY
    return Strength.LIKELY if low > 0 else Strength.NONE


def _of_gold(scene: Scene, gold: Estimate | None) -> Text:
    """Gold’s rate, which is what the others are read against; on how many, where it has few labels."""
    if gold is None or gold.number is None:
        return ()
    share = percent(gold.number)
    if scene.grid is not None:
        codes = scene.grid.codes
        panel = codes[:, [scene.grid.graders.index(g) for g in scene.panel]] >= 0
        some = panel.any(axis=1)
        mine = codes[:, scene.grid.graders.index(scene.gold)] >= 0
        if (some & ~mine).sum() > 0.1 * some.sum():
            share = f"{share} of the {counted(float(mine.sum()))} that it has"
    return (" (", *standard(scene), f": {share})")


def run(evidence: Evidence) -> Iterable[Finding]:
    estimates = evidence.estimates
    most_fold = evidence.whole.options.depends_ratio
    most_apart = evidence.whole.options.depends_points / 100
    for rate in evidence.whole.rates:
        ratio = estimates.get("rate_max_over_min", class_=rate.name)
        wide = estimates.get("rate_range", class_=rate.name)
        zeros = estimates.get("graders_at_zero", class_=rate.name)
        if ratio is None or wide is None:
            continue
        if wide.number is None:
            yield Finding(
                code="rate_depends_on_grader",
                state=State.CANNOT_TELL,
                class_=rate.name,
                sentence=say(
                    "How far {rate} moves with the grader cannot be told: {why}.",
                    rate=Name(rate.name),
                    why=wide.reason,
                ),
            )
            continue
        of_rate = [
            e
            for e in estimates.of("rate", class_=rate.name, slice="")
            if e.number is not None and e.key.grader in evidence.whole.panel
        ]
        low = min(of_rate, key=lambda e: (e.number or 0.0, e.key.grader))
        high = max(of_rate, key=lambda e: (e.number or 0.0, e.key.grader))
        gold = None
        if evidence.whole.gold:
            gold = estimates.get("rate", grader=evidence.whole.gold, class_=rate.name)
        at_zero = int(zeros.number or 0) if zeros is not None else 0
        fold = ""
        if ratio.number is not None:
            fold = f"{times(ratio.number)}-fold"
            if at_zero:
                word = "grader" if at_zero == 1 else "graders"
                fold = f"at least {fold}, with {at_zero} {word} at zero"
        moved = wide.number > most_apart or (ratio.number is not None and ratio.number > most_fold)
        # Beside a rate of zero every ratio is infinite; it counts once the others' labels are many.
        most = (high.number or 0.0) * (high.n or 0.0)
        moved = moved or (at_zero > 0 and most >= evidence.whole.options.collapse_base)
        sentence = say(
            "{where} the rate of {rate} is {low} under {low_grader} and {high} under {high_grader}"
            + (": {fold}, {range} apart{gold}." if fold else ": {range} apart{gold}."),
            where=_where(evidence.whole),
            rate=Name(rate.name),
            low=percent(low.number),
            low_grader=Name(low.key.grader),
            high=percent(high.number),
            high_grader=Name(high.key.grader),
            fold=fold,
            range=points(wide.number),
            gold=_of_gold(evidence.whole, gold),
        )
        for grader in (low.key.grader, high.key.grader):
            unread = evidence.whole.unread_share(grader)
            if unread > UNREAD_LIMIT:
                sentence = (
                    *sentence,
                    *say(
                        " But {grader} left {share} of its calls unread.",
                        grader=Name(grader),
                        share=percent(unread),
                    ),
                )
        others: Text = ()
        for other in estimates.of("rate_max_over_min", class_=rate.name, slice=""):
            if other.key.other.startswith("without_flagged") and other.number is not None:
                rest = estimates.get("rate_range", class_=rate.name, other=other.key.other)
                others = say(
                    " Without the flagged graders: {fold}-fold, {range} apart.",
                    fold=times(other.number),
                    range=points(rest.number if rest is not None else None),
                )
        partial = [g for g in evidence.whole.panel if evidence.whole.unread_share(g) > UNREAD_LIMIT]
        if partial and not moved:
            others = say(
                " {who} left many calls unread, so that is about other responses for each grader.",
                who=listed(partial),
            )
        strength = _strength(evidence.whole, wide, ratio, most_apart, most_fold)
        chance = moved and strength is Strength.NONE
        if chance:
            others = (*others, " With so few labels or clusters it could be chance.")
        state = State.FOUND if moved and not chance else State.CLEAR
        if chance or (partial and not moved):
            state = State.CANNOT_TELL
        yield Finding(
            code="rate_depends_on_grader",
            state=state,
            strength=strength if state is State.FOUND else Strength.NONE,
            class_=rate.name,
            sentence=(*sentence, *others),
            evidence=tuple(e for e in (ratio, wide, zeros, low, high, gold) if e is not None),
            weight=100 * wide.number,
            next_step=(
                "Name the grader beside the rate, and report the spread across graders with it.",
            )
            if state is State.FOUND
            else (),
        )


CHECK = Check(
    name="rate_depends_on_grader",
    codes={
        "rate_depends_on_grader": "The highest rate is more than twice the lowest, or more than 10 points above it."
    },
    run=run,
    would_miss="Graders that are all off in the same direction.",
    rank=40,
    uses=(
        Consequence(
            code="rate_depends_on_grader",
            use="compare_graders",
            effect=Effect.FORBIDS,
            because="On the same responses this rate hangs on the grader.",
            where="rate",
        ),
        Consequence(
            code="rate_depends_on_grader",
            use="report_rate",
            effect=Effect.CONDITIONS,
            because="Name the grader wherever it stands, and give its range over the graders.",
            where="rate",
        ),
        Consequence(
            code="rate_depends_on_grader",
            use="compare_models",
            effect=Effect.CONDITIONS,
            because="Let one and the same grader label all models.",
            where="rate",
        ),
        Consequence(
            code="rate_depends_on_grader",
            use="compare_graders",
            effect=Effect.OPENS,
            because="Whether this rate depends on the grader cannot be told.",
            state=State.CANNOT_TELL,
            where="rate",
        ),
        Consequence(
            code="rate_depends_on_grader",
            use="compare_graders",
            effect=Effect.ALLOWS,
            because="On the same responses the graders of this audit differ little in this rate.",
            state=State.CLEAR,
            where="rate",
        ),
    ),
)
