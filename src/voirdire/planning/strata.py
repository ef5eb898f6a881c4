"""How many human labels in each stratum: Neyman and equal allocation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from voirdire import intervals
from voirdire.document import Block, Column, Heading, Kind, Paragraph, Table, Tone, cell
from voirdire.errors import UsageError
from voirdire.estimand import Unit
from voirdire.estimate import Estimate, Key, Undefined
from voirdire.planning.base import (
    FORMULA,
    Guesses,
    Pilot,
    Question,
    Section,
    Stratum,
    check_share,
    estimand,
    fewest,
)
from voirdire.wording import Name, counted, points


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Labels for each stratum, and the half width to expect of the stratified rate."""

    rule: str
    labels: tuple[int, ...]
    half_width: float
    met: bool
    how: str = FORMULA

    @property
    def total(self) -> int:
        return sum(self.labels)


def _stratified_half_width(strata: Sequence[Stratum], labels: Sequence[int], level: float) -> float:
    whole = sum(s.size for s in strata)
    variance = sum(
        (s.size / whole) ** 2 * s.rate * (1 - s.rate) / n * (1 - n / s.size)
        for s, n in zip(strata, labels, strict=True)
        if n
    )
    return intervals.normal_quantile(0.5 + level / 2) * math.sqrt(variance)


def _allocated(strata: Sequence[Stratum], total: int, rule: str) -> tuple[int, ...]:
    """``total`` labels (or a few more) by stratum: at least 2 in each, never more than it holds.

    What a full stratum cannot take goes to the others by the same rule (Cochran 1977, section 5.8).
    """
    least = [min(2, s.size) for s in strata]
    weight = [1.0 if rule == "equal" else s.size * math.sqrt(s.rate * (1 - s.rate)) for s in strata]
    if not sum(weight):
        weight = [float(s.size) for s in strata]
    given = list(least)
    open_ = set(range(len(strata)))
    while open_:
        rest = total - sum(given[i] for i in range(len(strata)) if i not in open_)
        sum_ = sum(weight[i] for i in open_)
        share = {i: rest * weight[i] / sum_ if sum_ else 0.0 for i in open_}
        full = {i for i in open_ if share[i] >= strata[i].size}
        few = {i for i in open_ if share[i] <= least[i]}
        for i in full or few:
            given[i] = strata[i].size if i in full else least[i]
        if not (full or few):
            for i in open_:
                given[i] = math.ceil(share[i] - 1e-9)
            break
        open_ -= full or few
    return tuple(given)


def allocation(
    strata: Sequence[Stratum], within: float, rule: str, *, level: float = 0.95, most: int = 0
) -> Allocation:
    """The fewest human labels, by stratum, for a stratified rate within ± ``within``.

    ``rule`` is ``"neyman"`` (in proportion to size × √(p(1 − p)); Neyman 1934, JRSS 97, p. 580) or
    ``"equal"``. With the finite population correction (Cochran 1977, Sampling Techniques, section
    5.3). ``most`` labels in all (0: all there are); where they do not do, they are what is returned.
    """
    if not strata:
        raise UsageError("There is no stratum to allocate labels to.")
    if rule not in ("neyman", "equal"):
        raise UsageError(f"{rule!r} is not one of neyman, equal.")
    for s in strata:
        check_share(s.rate, s.name)
        if s.size < 1:
            raise UsageError(f"{s.name}: a stratum of {s.size} responses has nothing to label.")
    whole = sum(s.size for s in strata)
    limit = min(most or whole, whole)

    def reached(total: int) -> float:
        return _stratified_half_width(strata, _allocated(strata, total, rule), level)

    least = min(limit, 2 * len(strata))
    found = fewest(lambda n: reached(n) <= within, least, limit)
    labels = _allocated(strata, limit if found is None else found, rule)
    return Allocation(
        rule=rule,
        labels=labels,
        half_width=_stratified_half_width(strata, labels, level),
        met=found is not None,
    )


def _section(guesses: Guesses, of: Pilot | None) -> Section:
    strata = guesses.strata or (of.strata if of is not None else ())
    if not strata:
        return Section()
    rows: list[Estimate] = []
    plans = [
        allocation(strata, guesses.within, rule, level=guesses.level, most=guesses.most_labels)
        for rule in ("neyman", "equal")
    ]
    for plan in plans:
        title = f"Human labels, {plan.rule} allocation"
        of_plan = estimand(f"labels_{plan.rule}", title, Unit.COUNT, plan.how)
        rows.append(
            Estimate(
                estimand=of_plan,
                key=Key(),
                value=float(plan.total)
                if plan.met
                else Undefined(
                    f"not met; at best, with {counted(plan.total)}: ± {points(plan.half_width)}"
                ),
            )
        )
        rows += [
            Estimate(estimand=of_plan, key=Key(line=s.name), value=float(n), n=float(s.size))
            for s, n in zip(strata, plan.labels, strict=True)
        ]
    lines = [
        (
            cell(Name(s.name)),
            cell(float(s.size), Kind.COUNT),
            cell(s.rate, Kind.SHARE),
            *(cell(float(plan.labels[i]), Kind.COUNT) for plan in plans),
        )
        for i, s in enumerate(strata)
    ]
    lines.append(
        (
            cell("all"),
            cell(float(sum(s.size for s in strata)), Kind.COUNT),
            cell(None, Kind.SHARE),
            *(cell(float(plan.total), Kind.COUNT) for plan in plans),
        )
    )
    blocks: list[Block] = [
        Heading(text="Human labels by stratum"),
        Table(
            title=f"Labels for a stratified rate within ± {points(guesses.within)}",
            columns=(
                Column(title="stratum", kind=Kind.NAME),
                Column(title="responses", kind=Kind.COUNT),
                Column(title="guessed rate", kind=Kind.SHARE),
                Column(title="Neyman", kind=Kind.COUNT),
                Column(title="equal", kind=Kind.COUNT),
            ),
            rows=tuple(lines),
            note=(
                "By formula, with the finite population correction; at least 2 in each stratum. "
                "Responses are drawn one by one.",
            ),
        ),
    ]
    for plan in plans:
        if not plan.met:
            words = f"{plan.rule.capitalize()} allocation"
            blocks.append(
                Paragraph(
                    text=(
                        f"{words}: this cannot be met. The best, {counted(plan.total)} labels, gives ± "
                        f"{points(plan.half_width)}.",
                    ),
                    tone=Tone.WARNING,
                )
            )
    return Section(blocks=tuple(blocks), rows=tuple(rows))


QUESTION = Question(
    name="strata",
    title="Human labels by stratum",
    order=60,
    guess="--strata easy=900:0.02 --strata hard=100:0.3",
    section=_section,
)
