"""A rate that moves so far with the grader that it is no property of the graded model."""

from __future__ import annotations

from collections.abc import Iterable

from voirdire.checks.base import Check, Evidence
from voirdire.finding import Finding, State, Strength
from voirdire.wording import Name, Text, percent, points, say, times


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
            "On the same responses {rate} is {low} under {low_grader} and {high} under {high_grader}"
            + (": {fold}, {range} apart." if fold else ": {range} apart."),
            rate=Name(rate.name),
            low=percent(low.number),
            low_grader=Name(low.key.grader),
            high=percent(high.number),
            high_grader=Name(high.key.grader),
            fold=fold,
            range=points(wide.number),
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
        yield Finding(
            code="rate_depends_on_grader",
            state=State.FOUND if moved else State.CLEAR,
            strength=Strength.CERTAIN
            if moved and ratio.interval is not None
            else Strength.NONE
            if not moved
            else Strength.INDICATIVE,
            class_=rate.name,
            sentence=(*sentence, *others),
            evidence=tuple(e for e in (ratio, wide, zeros, low, high) if e is not None),
            weight=100 * wide.number,
            next_step=(
                "Name the grader beside the rate, and report the spread across graders with it.",
            )
            if moved
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
)
