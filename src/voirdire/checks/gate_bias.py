"""A gate on the judge's totals that passes more, or fewer, responses than the same gate on gold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, Strength
from voirdire.scene import Scene
from voirdire.sides import counted_of, standard, standards
from voirdire.wording import Name, Text, linked, percent, plural, points, say

KINDS = ("checklist",)
CODES = ("gate_lenient", "gate_harsh")
FEWEST_CLUSTERS = 3  # below which nothing shows how a difference would vary
NONE_APART = "all clusters say the same"  # the engine's word where nothing varies


@dataclass(frozen=True)
class _Difference:
    """The pass rate less gold's of one judge at one cut.

    ``p`` is that of no difference; ``apart``: by Holm it holds beside all that were looked at.
    ``follows``: it does not, but its own interval leaves out 0, and another cut of the same judge
    holds in the same direction.
    """

    judge: str
    cut: int
    estimate: Estimate
    p: float
    apart: bool = False
    follows: bool = False

    @property
    def found(self) -> bool:
        return self.apart or self.follows

    @property
    def number(self) -> float:
        return self.estimate.number or 0.0


def run(evidence: Evidence) -> Iterable[Finding]:
    """Judge all cuts of all judges together.

    An audit looks at every judge and cut at once, so Holm (1979, Scandinavian Journal of Statistics
    6, p. 67) goes over all of them: the smallest p against α/m, the next against α/(m − 1), and so
    on, which is an interval at that level that leaves out 0. What holds is certain with
    ``few_clusters`` clusters or more (30 unless set), else likely. Once a cut of a judge holds, its
    other cuts whose own interval leaves out 0 in that direction are found too, as indicative: they
    never make the first finding, so where no gate is off a finding of any kind stays as rare as Holm
    makes it. What is left is clear, also where its own interval leaves out 0: among so many
    comparisons that is within chance. Below three clusters nothing can be told.
    """
    scene = evidence.whole
    cuts = scene.options.gates
    if not scene.panel:
        return
    longest = int(scene.bank.length.max(initial=1)) if scene.bank is not None else 1
    missing = ""
    if not scene.gold:
        missing = "gold labels"
    elif not cuts:
        missing = f"a cut: audit with --cut C, for example --cut {(longest + 1) // 2}"
    if missing:
        for code, word in zip(CODES, ("more", "fewer"), strict=True):
            yield Finding(
                code=code,
                state=State.NOT_APPLICABLE,
                sentence=(f"Whether the gate passes {word} than gold’s needs {missing}.",),
            )
        return
    known: list[_Difference] = []
    unknown: list[_Difference] = []
    for judge in scene.panel:
        for cut in cuts:
            found = evidence.estimates.get("pass_rate_minus_gold", grader=judge, cut=str(cut))
            if found is not None:
                p = _p(scene, found)
                one = _Difference(judge=judge, cut=cut, estimate=found, p=1.0 if p is None else p)
                (unknown if p is None else known).append(one)
    judged = _judged(known, 1 - scene.options.level)
    for judge in scene.panel:
        mine = [d for d in judged if d.judge == judge]
        yield from _of_judge(evidence, judge, mine, len(judged))
        for one in unknown:
            if one.judge == judge:
                yield _cannot_tell(scene, one)


def _of_judge(
    evidence: Evidence, judge: str, differences: Sequence[_Difference], looked_at: int
) -> Iterable[Finding]:
    told: set[bool] = set()  # what to do is said once a direction, at the largest difference
    for one in sorted(differences, key=lambda d: -abs(d.number)):
        if one.found:
            lenient = one.number > 0
            held = [d.cut for d in differences if d.apart and (d.number > 0) == lenient]
            yield _found(evidence, one, sorted(held), looked_at, act=lenient not in told)
            told.add(lenient)
    for code, sign, word in (("gate_lenient", 1, "more"), ("gate_harsh", -1, "fewer")):
        clear = [d for d in differences if not (d.found and sign * d.number > 0)]
        if clear:
            yield _clear(evidence.whole, code, word, judge, clear, looked_at)


def _cannot_tell(scene: Scene, one: _Difference) -> Finding:
    estimate = one.estimate
    why = estimate.reason or estimate.no_interval or "there is no interval"
    clusters = estimate.clusters
    if estimate.number is not None and clusters is not None and clusters < FEWEST_CLUSTERS:
        why = f"{plural(clusters, 'cluster')} of scored responses, fewer than {FEWEST_CLUSTERS}"
    return Finding(
        code="gate_lenient" if one.number >= 0 else "gate_harsh",
        state=State.CANNOT_TELL,
        grader=one.judge,
        cut=str(one.cut),
        sentence=say(
            "Whether the gate of {judge} at a cut of {cut} passes as many as {gold} cannot be told"
            "{value}: {why}.",
            judge=Name(one.judge),
            cut=one.cut,
            gold=standards(scene),
            value=f" (the difference is {_signed(estimate.number)})"
            if estimate.number is not None
            else "",
            why=why,
        ),
        evidence=(estimate,),
    )


def _judged(known: Sequence[_Difference], alpha: float) -> list[_Difference]:
    """Holm over all of them, in the order given."""
    order = sorted(range(len(known)), key=lambda i: (known[i].p, known[i].judge, known[i].cut))
    apart: set[int] = set()
    for place, i in enumerate(order):
        # An interval that ends just at 0 does not leave it out.
        if not known[i].p < alpha / (len(order) - place):
            break
        apart.add(i)
    held = {(known[i].judge, known[i].number > 0) for i in apart}
    return [
        replace(
            d,
            apart=i in apart,
            follows=i not in apart
            and (d.judge, d.number > 0) in held
            and _leaves_out_zero(d, alpha),
        )
        for i, d in enumerate(known)
    ]


def _leaves_out_zero(one: _Difference, alpha: float) -> bool:
    """Whether its own interval, alone, leaves out 0; by p where no interval has a width."""
    interval = one.estimate.interval
    if interval is None:
        return one.p < alpha
    return interval.low > 0 or interval.high < 0


def _p(scene: Scene, estimate: Estimate) -> float | None:
    """Two-sided p of no difference, from the half width of the interval; ``None`` if it has none.

    By t on clusters − strata, of a bootstrap interval too: percentiles tell little of the far tails
    that many comparisons ask for. Where every cluster has one and the same difference it has no
    width: then by the sign test over clusters.
    """
    from scipy import stats

    interval, value, clusters = estimate.interval, estimate.number, estimate.clusters
    if value is None or clusters is None or clusters < FEWEST_CLUSTERS:
        return None
    if interval is None:
        if value == 0:
            return 1.0
        return 2.0 ** (1 - clusters) if estimate.no_interval == NONE_APART else None
    # A share of responses ends at ±1: the longer side is the one that was not cut short.
    half = max(interval.high - value, value - interval.low)
    if not half > 0:
        return None
    t = stats.t(_freedom(scene, clusters))
    return float(2 * t.sf(abs(value) / half * t.ppf((1 + interval.level) / 2)))


def _freedom(scene: Scene, clusters: int) -> int:
    strata = 1
    if scene.bank is not None and scene.bank.stratum is not None:
        strata = len(np.unique(scene.bank.stratum))
    return max(clusters - strata, 1)


def _found(
    evidence: Evidence, one: _Difference, held: Sequence[int], looked_at: int, *, act: bool
) -> Finding:
    """A finding; ``held`` are the cuts of the judge that hold in its direction by Holm."""
    scene, estimates, cut, judge = evidence.whole, evidence.estimates, str(one.cut), one.judge
    lenient = one.number > 0
    other = "" if len(scene.panel) == 1 else judge
    mine = estimates.get("pass_rate", grader=judge, cut=cut)
    golds = estimates.get("pass_rate", grader=scene.gold, other=other, cut=cut)
    gold = golds.number if golds is not None else None
    if gold is None and mine is not None and mine.number is not None:
        gold = mine.number - one.number
    errors = [
        estimates.get(s, grader=judge, cut=cut) for s in ("gate_false_accept", "gate_false_reject")
    ]
    few = (one.estimate.clusters or 0) < scene.options.few_clusters
    return Finding(
        code="gate_lenient" if lenient else "gate_harsh",
        state=State.FOUND,
        strength=Strength.INDICATIVE
        if one.follows
        else Strength.LIKELY
        if few
        else Strength.CERTAIN,
        grader=judge,
        cut=cut,
        sentence=say(
            "At a cut of {cut} the gate of {judge} passes {mine} of the responses, and {golds} "
            "passes {gold}: {points} {word}{interval}.{errors}{rests}",
            cut=one.cut,
            judge=Name(judge),
            mine=percent(mine.number if mine is not None else None),
            golds=standards(scene),
            gold=percent(gold),
            points=points(abs(one.number)),
            word="more" if lenient else "fewer",
            interval=_interval(one.estimate, turned=not lenient),
            errors=_errors(scene, *errors),
            rests=f" It rests on its own interval, and goes the way of what holds beside all {looked_at} "
            f"comparisons (Holm), at {_and(held)}."
            if one.follows
            else "",
        ),
        evidence=tuple(e for e in (one.estimate, mine, golds, *errors) if e is not None),
        weight=abs(one.number),
        next_step=_act(lenient) if act else (),
    )


def _errors(scene: Scene, accept: Estimate | None, reject: Estimate | None) -> Text:
    """What the gate gets wrong, of gold’s fails and of its passes."""
    parts: list[Text] = []
    for verb, golds, e in (("passes", "fails", accept), ("fails", "passes", reject)):
        if e is None or e.number is None:
            continue
        interval = e.interval
        ends = (
            f" [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
            if interval is not None
            else ""
        )
        share = f"{percent(e.number)}{ends}"
        count = counted_of(scene, e)
        # Under design weights there is no count of them, only of how many it is a share.
        shown = f"{share} {count}" if count.startswith("of ") else f"{count}"
        parts.append(
            say(
                verb + " {shown} that {gold} " + golds + "{share}",
                shown=shown,
                gold=standard(scene),
                share="" if count.startswith("of ") else f" ({share})",
            )
        )
    if not parts:
        return ()
    return (" It ", *linked(parts, ", and "), ".")


def _act(lenient: bool) -> Text:
    errors = "false accepts" if lenient else "false rejects"
    return (
        f"Rewrite the lines with the most {errors}, or set the cut anew on labelled responses: one that "
        "was set on gold means something else on this judge.",
    )


def _clear(
    scene: Scene,
    code: str,
    word: str,
    judge: str,
    differences: Sequence[_Difference],
    looked_at: int,
) -> Finding:
    sign = 1 if code == "gate_lenient" else -1
    towards = [d for d in differences if sign * d.number > 0]
    others = [d for d in differences if not sign * d.number > 0]
    shown = "; ".join(f"{_signed(d.number)}{_interval(d.estimate)} at {d.cut}" for d in towards)
    one = len(differences) == 1
    opposite = "fewer" if sign > 0 else "more"
    return Finding(
        code=code,
        state=State.CLEAR,
        grader=judge,
        cut=str(differences[0].cut) if one else "",
        sentence=say(
            "Not seen that the gate of {judge} passes {word} than {gold}.{by_cut}{others}{chance}{reach}",
            judge=Name(judge),
            word=word,
            gold=standards(scene),
            by_cut=say(
                " Pass rate less {gold}, by cut: {shown}.", gold=standards(scene), shown=shown
            )
            if towards
            else "",
            others=f" At {_and(sorted(d.cut for d in others))} it passes as many or {opposite}."
            if others
            else "",
            chance=_chance(towards, looked_at),
            reach=_reach(scene, [d for d in differences if not d.found], looked_at),
        ),
        evidence=tuple(d.estimate for d in differences),
    )


def _chance(differences: Sequence[_Difference], looked_at: int) -> str:
    """That an interval which leaves out 0 is one of many."""
    alone = [
        d.cut
        for d in differences
        if (i := d.estimate.interval) is not None and (i.low > 0 or i.high < 0)
    ]
    if not alone:
        return ""
    return (
        f" The interval at {_and(sorted(alone))} leaves out 0, but one of {looked_at} comparisons (judges and cuts) "
        "may do so by chance (Holm)."
    )


def _reach(scene: Scene, differences: Sequence[_Difference], looked_at: int) -> str:
    """The largest difference that may have gone unseen, at the level of the first step of Holm."""
    from scipy import stats

    widest = 0.0
    for d in differences:
        interval = d.estimate.interval
        if interval is None:
            continue
        t = stats.t(_freedom(scene, d.estimate.clusters or 0))
        wide = t.ppf(1 - (1 - interval.level) / (2 * looked_at)) / t.ppf((1 + interval.level) / 2)
        half = max(interval.high - d.number, d.number - interval.low)
        widest = max(widest, float(half * wide))
    if not widest:
        return ""
    among = f" among {looked_at} comparisons" if looked_at > 1 else ""
    return f" A difference of less than {points(min(widest, 1.0))} may go unseen{among}."


def _and(cuts: Sequence[int]) -> str:
    said = [str(cut) for cut in cuts]
    return ", ".join(said[:-1]) + (" and " if said[1:] else "") + said[-1]


def _signed(x: float | None) -> str:
    return ("+" if x is not None and x > 0 else "") + points(x)


def _interval(estimate: Estimate, *, turned: bool = False) -> str:
    """The interval in points; turned round where the difference is said without its sign."""
    interval = estimate.interval
    if interval is None:
        return ""
    low, high = (-interval.high, -interval.low) if turned else (interval.low, interval.high)
    ends = [points(x).removesuffix(" points") for x in (low, high)]
    return f" [{ends[0]}, {ends[1]}]"


CHECK = Check(
    name="gate_bias",
    codes={
        "gate_lenient": "At a cut the judge’s gate passes more responses than gold’s, by Holm over all judges and cuts.",
        "gate_harsh": "At a cut the judge’s gate passes fewer responses than gold’s, by Holm over all judges and cuts.",
    },
    run=run,
    would_miss=(
        "Errors that cancel: a gate may pass as many responses as gold’s and not the same ones. Cuts that "
        "nobody asked for; a difference within the interval, which many judges and cuts make wider."
    ),
    rank=20,
    kinds=KINDS,
    uses=(
        Consequence(
            code="gate_lenient",
            use="gate",
            effect=Effect.FORBIDS,
            because="It passes more responses than gold does.",
        ),
        Consequence(
            code="gate_lenient",
            use="total_score",
            effect=Effect.CONDITIONS,
            because="Say that it is lenient at a cut that was asked for.",
        ),
        Consequence(
            code="gate_lenient",
            use="gate",
            effect=Effect.OPENS,
            because="Whether it passes as many as gold cannot be told.",
            state=State.CANNOT_TELL,
        ),
        Consequence(
            code="gate_lenient",
            use="gate",
            effect=Effect.ALLOWS,
            because="That it passes more than gold was not seen.",
            state=State.CLEAR,
        ),
        Consequence(
            code="gate_harsh",
            use="gate",
            effect=Effect.FORBIDS,
            because="It passes fewer responses than gold does.",
        ),
        Consequence(
            code="gate_harsh",
            use="total_score",
            effect=Effect.CONDITIONS,
            because="Say that it is harsh at a cut that was asked for.",
        ),
        Consequence(
            code="gate_harsh",
            use="gate",
            effect=Effect.OPENS,
            because="Whether it passes as many as gold cannot be told.",
            state=State.CANNOT_TELL,
        ),
        Consequence(
            code="gate_harsh",
            use="gate",
            effect=Effect.ALLOWS,
            because="That it passes fewer than gold was not seen.",
            state=State.CLEAR,
        ),
    ),
)
