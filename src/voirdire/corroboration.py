"""Who may speak about whom: which graders' counts can flag or clear another grader's.

Without gold a difference between counts accuses nobody in particular. It becomes a finding about
one grader where at least two others, not related to one another, stand on the same side.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from voirdire.estimate import Estimate
from voirdire.labels import Grader
from voirdire.scene import UNREAD_LIMIT, Estimates, Scene

MOST_GRADERS = 20  # above this many graders without gold the collapse rule is not applied


def readable(scene: Scene, grader: str) -> bool:
    """Whether so few of its calls are unread that its counts speak."""
    return scene.unread_share(grader) <= UNREAD_LIMIT


def can_give(grader: Grader, class_: str) -> bool:
    return not grader.range or class_ in grader.range


def testable_classes(scene: Scene) -> tuple[str, ...]:
    """The classes to which the collapse rule applies.

    It applies to ordered scales of 2 to 4 classes and to unordered classes; classes outside the
    scale that count as its bottom class (``--refusal-like``) are not tested. Labels that are all
    numbers and more than four are a score scale that nobody declared: no collapse rule there.
    """
    refusal_like = scene.options.refusal_like
    if scene.ordered and len(scene.scale) > 4:
        return ()
    if not scene.ordered and len(scene.scale) > 4 and _all_numbers(scene.scale):
        return ()
    return tuple(c for c in scene.classes if c not in refusal_like)


def _all_numbers(classes: Sequence[str]) -> bool:
    from voirdire.labels import number_form

    return all(number_form(c) is not None for c in classes)


def corroborators(scene: Scene, grader: str, class_: str) -> tuple[str, ...]:
    """The graders whose counts of a class may speak about this grader's.

    Not gold; not a grader related to it (made from it, or it from them); not one with more than
    20 % unread calls; not one that cannot give the class; and no grader but people about a person.
    """
    me = scene.by_name[grader]
    return tuple(
        other.name
        for other in scene.graders
        if other.name != scene.gold
        and not me.related(other)
        and readable(scene, other.name)
        and can_give(other, class_)
        and (other.person or not me.person)
    )


def may_be_flagged(scene: Scene, grader: str, class_: str) -> bool:
    """Whether the rule can speak about this grader and class at all."""
    me = scene.by_name[grader]
    return (
        grader != scene.gold
        and readable(scene, grader)
        and can_give(me, class_)
        and not (scene.gold and me.person and scene.by_name[scene.gold].related(me))
    )


@dataclass(frozen=True, slots=True)
class PairOfOthers:
    """The two unrelated others that decide: the second is the weaker support of the two."""

    first: str
    second: str


def deciding_pair(
    scene: Scene, amounts: Mapping[str, float], tie: Mapping[str, float] | None = None
) -> PairOfOthers | None:
    """Among unrelated others, the pair whose larger amount is smallest (ratios, or p-values).

    ``amounts`` holds one number an other; equal amounts go by ``tie``, smallest first. ``None`` is
    returned where no two others are unrelated.
    """
    best: tuple[float, str, str] | None = None
    ranked = sorted(amounts, key=lambda o: (amounts[o], (tie or {}).get(o, 0.0), o))
    for low, high in itertools.combinations(ranked, 2):
        if scene.by_name[low].related(scene.by_name[high]):
            continue
        if best is None or amounts[high] < best[0]:
            best = (amounts[high], low, high)
    return PairOfOthers(best[1], best[2]) if best else None


def ratios(
    estimates: Mapping[tuple[str, str, str], Estimate],
    grader: str,
    class_: str,
    others: Sequence[str],
) -> dict[str, float]:
    """The defined collapse ratios of a grader and class against these others."""
    found = {}
    for other in others:
        estimate = estimates.get((grader, other, class_))
        if estimate is not None and estimate.number is not None:
            found[other] = estimate.number
    return found


# --- the rule -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A grader's count of a class beside one other's, on the responses that both could be read on."""

    other: str
    own: float
    others: float
    ratio: Estimate
    p: float | None
    p_mirror: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the rule says of one grader and class.

    ``verdict``: ``found``, ``small`` (the other's count is between half the base and the base),
    ``two`` (a difference between two graders, no more), ``clear``, ``rare`` (too rare to see
    anything) or ``none`` (nobody to compare with). ``against`` are the comparisons that decide,
    weakest last; ``p`` is one-sided, for gold or for two others at once.
    """

    grader: str
    class_: str
    verdict: str
    against: tuple[Comparison, ...]
    comparisons: tuple[Comparison, ...]
    p: float | None

    @property
    def deciding(self) -> Comparison | None:
        return self.against[-1] if self.against else None


class Rule:
    """The collapse rule on the estimates of one scene."""

    def __init__(self, scene: Scene, estimates: Estimates) -> None:
        self.scene = scene
        self.below = scene.options.collapse_below
        self.base = scene.options.collapse_base
        self._table: dict[tuple[str, str], dict[str, Comparison]] = {}
        for ratio in estimates.of("collapse_ratio", slice=scene.slice):
            key = ratio.key
            at = {
                "grader": key.grader,
                "other": key.other,
                "class_": key.class_,
                "slice": key.slice,
            }
            own, others = estimates.get("collapse_own", **at), estimates.get("collapse_other", **at)
            if own is None or others is None or own.number is None or others.number is None:
                continue
            self._table.setdefault((key.grader, key.class_), {})[key.other] = Comparison(
                other=key.other,
                own=own.number,
                others=others.number,
                ratio=ratio,
                p=ratio.p,
                p_mirror=own.p,
            )

    def comparisons(self, grader: str, class_: str) -> tuple[Comparison, ...]:
        """The comparisons that may speak about this grader and class."""
        found = self._table.get((grader, class_), {})
        gold = self.scene.gold
        allowed = (gold,) if gold else corroborators(self.scene, grader, class_)
        if gold and not (can_give(self.scene.by_name[gold], class_) and readable(self.scene, gold)):
            allowed = ()
        return tuple(found[o] for o in allowed if o in found)

    def read(self, grader: str, class_: str, *, without: str = "") -> Reading | None:
        """The rule's reading, or ``None`` where it may not speak about this grader and class."""
        if not may_be_flagged(self.scene, grader, class_):
            return None
        comparisons = tuple(c for c in self.comparisons(grader, class_) if c.other != without)

        def reading(verdict: str, against: Sequence[Comparison] = ()) -> Reading:
            return Reading(
                grader=grader,
                class_=class_,
                verdict=verdict,
                against=tuple(against),
                comparisons=comparisons,
                p=self.joint_p(comparisons),
            )

        if not comparisons:
            return reading("none")
        low = [c for c in comparisons if c.own < self.below * c.others]
        firm = [c for c in low if c.others >= self.base]
        weak = [c for c in low if c.others >= self.base / 2]
        if self.scene.gold or self.independent(comparisons) < 2:
            only = min(comparisons, key=lambda c: (-c.others, c.other))
            if only.others < self.base / 2 and not weak:
                return reading("rare", [only])
            if firm:
                firm.sort(key=lambda c: (_ratio_of(c), c.other))
                return reading("found" if self.scene.gold else "two", firm[:1])
            if weak:
                weak.sort(key=lambda c: (_ratio_of(c), c.other))
                return reading("small", weak[:1])
            return reading("clear", [only])
        for verdict, group in (("found", firm), ("small", weak)):
            pair = self._pair(group)
            if pair is not None:
                return reading(verdict, pair)
        largest = deciding_pair(self.scene, {c.other: -c.others for c in comparisons})
        by_other = {c.other: c for c in comparisons}
        if largest is not None and by_other[largest.second].others < self.base / 2:
            return reading("rare", [by_other[largest.second]])
        pair = self._pair([c for c in comparisons if c.others > 0])
        return reading("clear", pair or [])

    def _pair(self, group: Sequence[Comparison]) -> list[Comparison] | None:
        by_other = {c.other: c for c in group}
        pair = deciding_pair(
            self.scene,
            {c.other: _ratio_of(c) for c in group},
            {c.other: -c.others for c in group},
        )
        return None if pair is None else [by_other[pair.first], by_other[pair.second]]

    def independent(self, comparisons: Sequence[Comparison]) -> int:
        """1 where all others are related to one another, else 2 (or 0): two are enough."""
        names = [c.other for c in comparisons]
        by_name = self.scene.by_name
        if any(not by_name[a].related(by_name[b]) for a, b in itertools.combinations(names, 2)):
            return 2
        return min(1, len(names))

    def joint_p(self, comparisons: Sequence[Comparison]) -> float | None:
        """The p against gold, or for two others at once: (m − 1) × the second-smallest (at most 1)."""
        amounts = {c.other: c.p for c in comparisons if c.p is not None}
        if self.scene.gold:
            return next(iter(amounts.values()), None)
        pair = deciding_pair(self.scene, amounts)
        if pair is None:
            return None
        return min(1.0, (len(amounts) - 1) * amounts[pair.second])

    def inflated(self, grader: str, class_: str) -> tuple[Comparison, ...]:
        """The comparisons of an inflated class: own count above all but one of the others / threshold."""
        if not may_be_flagged(self.scene, grader, class_):
            return ()
        comparisons = self.comparisons(grader, class_)
        above = [c for c in comparisons if c.own > c.others / self.below and c.own >= self.base]
        if self.scene.gold:
            return tuple(above)
        enough = max(2, len(comparisons) - 1)
        return tuple(above) if len(above) >= enough and self.independent(above) > 1 else ()


def _ratio_of(comparison: Comparison) -> float:
    return comparison.own / comparison.others if comparison.others else float("inf")


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p-values over those that are there (Holm 1979, Scandinavian J. Statist. 6, p. 65)."""
    order = sorted(
        (i for i, p in enumerate(p_values) if p is not None), key=lambda i: p_values[i] or 0.0
    )
    adjusted: list[float | None] = [None] * len(p_values)
    worst = 0.0
    for rank, i in enumerate(order):
        p = p_values[i]
        assert p is not None
        worst = max(worst, min(1.0, (len(order) - rank) * p))
        adjusted[i] = worst
    return adjusted
