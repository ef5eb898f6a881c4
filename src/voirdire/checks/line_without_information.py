"""Lines on which a judge, or gold, gives every response the same verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.finding import Finding, State, Strength
from voirdire.scene import Scene
from voirdire.sides import standard
from voirdire.wording import Name, Text, counted, listed, number, plural, say

Array = np.ndarray[Any, Any]

FEWEST_RESPONSES = 5  # on a line; below that the same verdict throughout is no surprise
MOST_NAMED = 8
RARE = 0.05  # of the verdicts: a line whose rarer verdict may still be more common is not yet known


@dataclass(frozen=True)
class _Lines:
    """Counts of each line on the responses that a grader scored in full (gold too, where it is)."""

    names: tuple[str, ...]
    scored: Array
    met: Array
    gold_met: Array | None

    @property
    def constant(self) -> Array:
        return np.asarray((self.met == 0) | (self.met == self.scored))

    @property
    def gold_constant(self) -> Array:
        if self.gold_met is None:
            return np.zeros(len(self.names), dtype=np.bool_)
        return np.asarray((self.gold_met == 0) | (self.gold_met == self.scored))


def beyond_chance(met: Array, scored: Array, alpha: float) -> Array:
    """Which lines never vary, and that beyond chance, with α shared out over all lines."""
    constant = (met == 0) | (met == scored)
    told = constant_by_chance(met, scored) * len(scored) <= alpha
    # A verdict of share RARE or more would have been seen, whatever the other lines do.
    return np.asarray(constant & (told | ((1 - RARE) ** scored <= alpha)))


def constant_by_chance(met: Array, scored: Array) -> Array:
    """P(all verdicts of a line are alike) at the share of yes on the other lines, ``(lines,)``.

    p^n + (1 − p)^n, with p over the verdicts of the other lines and n those of the line, which are
    taken as independent; 1 where there is no other line.

    >>> constant_by_chance(np.array([5, 4, 6]), np.array([5, 10, 10])).round(4).tolist()
    [0.0625, 0.0173, 0.0282]
    """
    others = scored.sum() - scored
    p = np.divide(
        met.sum() - met, others, out=np.ones(len(scored), dtype=np.float64), where=others > 0
    )
    return np.asarray(p**scored + (1 - p) ** scored)


def run(evidence: Evidence) -> Iterable[Finding]:
    """Name the lines that do not vary, as far as the responses that they have carry it.

    Where one checklist serves all, a line that never varies is always named: certain where that is
    beyond chance, else indicative. It is beyond chance where the probability that a line met as often
    as the other lines are says the same throughout, times the number of lines, is at most α, or where
    a verdict that 5 % of the responses get would have been seen.

    Where each question has its own checklist lines have few responses, and some are constant by
    chance. There only lines beyond chance are named, and those on which gold varies and the judge
    does not, since they hold errors (indicative). The rest is counted beside what chance would give:
    more than that (a normal tail at α) is indicative, else it is clear.
    """
    for judge in evidence.whole.panel:
        yield from _of_judge(evidence, judge)


def _counted(scene: Scene, judge: str) -> _Lines:
    bank = scene.bank
    assert bank is not None
    graders = [judge, scene.gold] if scene.gold else [judge]
    rows = np.flatnonzero(bank.complete[:, [bank.places[g] for g in graders]].all(axis=1))
    line = bank.line[rows]
    there = line >= 0

    def per_line(which: Array) -> Array:
        return np.bincount(line[which], minlength=len(bank.lines))

    scored = per_line(there)
    kept = np.flatnonzero(scored >= FEWEST_RESPONSES)
    met = [per_line(there & (bank.of(g)[rows] == 1))[kept] for g in graders]
    return _Lines(
        names=tuple(bank.lines[i] for i in kept),
        scored=scored[kept],
        met=met[0],
        gold_met=met[1] if len(met) > 1 else None,
    )


def _of_judge(evidence: Evidence, judge: str) -> Iterable[Finding]:
    lines = _counted(evidence.whole, judge)
    if not lines.names:
        yield Finding(
            code="line_without_information",
            state=State.NOT_APPLICABLE,
            grader=judge,
            sentence=say(
                "No line was scored by {judge} on {n} responses or more.",
                judge=Name(judge),
                n=FEWEST_RESPONSES,
            ),
        )
        return
    gold = standard(evidence.whole)
    mine, golds = lines.constant, lines.gold_constant
    if not (mine | golds).any():
        yield Finding(
            code="line_without_information",
            state=State.CLEAR,
            grader=judge,
            sentence=say(
                "Each of {lines} has a yes and a no from {judge}{gold}.",
                lines=plural(len(lines.names), "line"),
                judge=Name(judge),
                gold=(" and from ", *gold) if lines.gold_met is not None else "",
            ),
        )
        return
    bank = evidence.whole.bank
    assert bank is not None
    alpha = 1 - evidence.whole.options.level
    sure = beyond_chance(lines.met, lines.scored, alpha)
    if bank.own and not sure.any():
        yield _few_a_line(evidence, judge, lines, alpha)
        return
    rest: Text = ()
    if bank.own:
        erring = mine & ~golds & (lines.gold_met is not None)
        left = int((mine & ~sure & ~erring).sum())
        mine, golds = sure | erring, sure & golds
        if left:
            rest = (
                f"{plural(left, 'other line')} {'does' if left == 1 else 'do'} not vary either, on so few "
                "responses that it may be chance. ",
            )
    elif lines.gold_met is not None:
        sure = sure | beyond_chance(lines.gold_met, lines.scored, alpha)
    where = np.flatnonzero(mine | golds)
    named = [lines.names[i] for i in where]
    evidenced = tuple(
        e
        for name in named
        for statistic in ("kr20_without_line", "alpha_without_line", "element_error")
        if (e := evidence.estimates.get(statistic, grader=judge, line=name)) is not None
    )
    yield Finding(
        code="line_without_information",
        state=State.FOUND,
        strength=Strength.CERTAIN if sure.any() else Strength.INDICATIVE,
        grader=judge,
        line=named[0] if len(named) == 1 else "",
        sentence=(
            *_never(lines, judge, gold, np.flatnonzero(mine & golds), True),
            *_never(lines, judge, gold, np.flatnonzero(mine & ~golds), False),
            *_gold_alone(lines, judge, gold, np.flatnonzero(golds & ~mine)),
            *rest,
            *_without(evidence, judge, [lines.names[i] for i in np.flatnonzero(mine)]),
        ),
        evidence=evidenced,
        weight=len(named) / len(lines.names),
        next_step=_act(
            bool((mine & golds).any()),
            bool((mine ^ golds).any()),
            bool(lines.gold_met is not None),
            sure=bool(sure.any()),
        ),
    )


def _few_a_line(evidence: Evidence, judge: str, lines: _Lines, alpha: float) -> Finding:
    """One summary of lines with so few responses each that none is constant beyond chance."""
    from scipy import stats

    mine = lines.constant
    chance = constant_by_chance(lines.met, lines.scored)
    many, expected = int(mine.sum()), float(chance.sum())
    spread = float((chance * (1 - chance)).sum())
    more = spread > 0 and (many - 0.5 - expected) / spread**0.5 > stats.norm.ppf(1 - alpha)
    erring: Array = np.flatnonzero(mine & ~lines.gold_constant & (lines.gold_met is not None))
    fewest, most = int(lines.scored.min()), int(lines.scored.max())
    text = say(
        "{judge} says the same throughout on {many} of {lines} of {each}; {expected} would do so by "
        "chance if all lines were met equally often.",
        judge=Name(judge),
        many=many,
        lines=plural(len(lines.names), "line"),
        each=plural(most, "response")
        if fewest == most
        else f"{fewest:,} to {most:,} responses each",
        expected=f"{expected:.1f}",
    )
    if len(erring):
        text = (
            *text,
            *say(
                " On {count} of these {gold} varies, so that the judge errs there ({named}).",
                count=len(erring),
                gold=standard(evidence.whole),
                named=listed([lines.names[i] for i in erring]),
            ),
        )
    found = bool(more or len(erring))
    return Finding(
        code="line_without_information",
        state=State.FOUND if found else State.CLEAR,
        strength=Strength.INDICATIVE if found else Strength.NONE,
        grader=judge,
        line=lines.names[erring[0]] if len(erring) == 1 else "",
        sentence=text,
        evidence=tuple(
            e
            for i in erring[:MOST_NAMED]
            if (e := evidence.estimates.get("element_error", grader=judge, line=lines.names[i]))
            is not None
        ),
        weight=many / len(lines.names),
        next_step=(
            "Score more responses a line before any is dropped: on so few the same verdict throughout "
            "says little.",
        )
        if found
        else (),
    )


def _never(
    lines: _Lines, judge: str, gold: Text, places: Sequence[int] | Array, gold_too: bool
) -> Text:
    """Lines that the judge never varies on, with gold's word on them."""
    if not len(places):
        return ()
    if len(places) > 1:
        return say(
            "{judge}{gold} never {varies} on {count} ({named}): {they} say nothing of how these "
            "responses differ.{more} ",
            judge=Name(judge),
            gold=(" and ", *gold) if gold_too else "",
            varies="vary" if gold_too else "varies",
            count=plural(len(places), "line"),
            named=listed([lines.names[i] for i in places]),
            they="they" if gold_too else "its verdicts there",
            more=say(" {Gold} does vary there.", Gold=_first(gold))
            if not gold_too and lines.gold_met is not None
            else "",
        )
    i = places[0]
    met = lines.met[i] > 0
    text = say(
        "{judge} says {word} to {line} in all {n} responses",
        judge=Name(judge),
        word="yes" if met else "no",
        line=Name(lines.names[i]),
        n=counted(float(lines.scored[i])),
    )
    if lines.gold_met is None:
        tail: Text = (", so the line says nothing of how these responses differ. ",)
    elif gold_too:
        same = (lines.gold_met[i] > 0) == met
        tail = say(
            ", and so does {gold}: the line says nothing of how these responses differ. "
            if same
            else ", and {gold} the contrary in all of them. ",
            gold=gold,
        )
    else:
        tail = say(
            ", and {gold} says yes in {n} of them. ",
            gold=gold,
            n=counted(float(lines.gold_met[i])),
        )
    return (*text, *tail)


def _first(gold: Text) -> Text:
    """At the start of a sentence."""
    return ("Gold",) if gold == ("gold",) else gold


def _gold_alone(lines: _Lines, judge: str, gold: Text, places: Sequence[int] | Array) -> Text:
    if not len(places):
        return ()
    return say(
        "{gold} never varies on {count} ({named}): every difference that {judge} makes there is an error. ",
        count=plural(len(places), "line"),
        named=listed([lines.names[i] for i in places]),
        judge=Name(judge),
        gold=_first(gold),
    )


def _without(evidence: Evidence, judge: str, named: Sequence[str]) -> Text:
    """The coefficients without a line that never varies, where it is the only one."""
    estimates = evidence.estimates
    found = [estimates.get("alpha_without_line", grader=judge, line=n) for n in named]
    known = [
        (n, e) for n, e in zip(named, found, strict=True) if e is not None and e.number is not None
    ]
    if not known:
        return ()
    name, alpha = known[0]
    kr20 = estimates.get("kr20_without_line", grader=judge, line=name)
    more = "; those of the other lines are in the results" if len(known) > 1 else ""
    return say(
        "Without {line} KR-20 is {kr20} and Cronbach’s alpha {alpha}{more}.",
        line=Name(name),
        kr20=number(kr20.number if kr20 is not None else None),
        alpha=number(alpha.number),
        more=more,
    )


def _act(both: bool, one: bool, gold: bool, *, sure: bool) -> Text:
    if not sure:
        return (
            "Score more responses before a line is dropped: on so few the same verdict throughout may be "
            "chance.",
        )
    parts = []
    if one and gold:
        parts.append("look at lines on which only one of judge and gold varies: they hold errors")
    if both or not gold:
        parts.append(
            "drop or sharpen a line that nothing on this bank can fail, or add responses that it tells "
            "apart"
        )
    text = "; ".join(parts)
    return (f"{text[0].upper()}{text[1:]}.",)


CHECK = Check(
    name="line_without_information",
    codes={
        "line_without_information": "On a line the judge, or gold, gives all responses the same verdict; where lines have few responses, more than chance."
    },
    run=run,
    would_miss=(
        "Lines that hardly ever vary, and lines that say the same as another; lines scored on fewer "
        f"than {FEWEST_RESPONSES} responses."
    ),
    rank=41,
    kinds=("checklist",),
    uses=(
        Consequence(
            code="line_without_information",
            use="line_verdict",
            effect=Effect.FORBIDS,
            because="On some lines its verdict is the same throughout.",
        ),
    ),
)
