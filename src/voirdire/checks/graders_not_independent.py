"""Two graders that depart from the others together: not two independent opinions.

The measure. Take the responses with a verdict (gold, else the strict majority of the others, the two and
their kin left out) that both graders labelled. Where both depart from the verdict with one and the same
class, they *share* a departure. Graders whose departures are independent given the verdict share
Σ a(s, x) b(s, x) / n(s) of them, where n(s) counts the verdicts s and a(s, x) those that grader a calls x.
The *overlap* is (shared − expected) / (mean departures of the two − expected): 0 where they are
independent, 1 where all departures are shared, and w where one repeats the other on a share w.

Hard responses, and verdicts that are off, give every pair an overlap. So a pair is held against the
median overlap (at least 0) of the pairs that either of the two makes with the rest: the *excess*. Only gold tells
errors that are shared from two graders that are right together, so without it a pair is named and left
undecided. Its labels must then also agree more than the agreement of the two with the rest lets expect (a
product of correlations, as in the tetrads of one-factor models): two accurate graders in a poor panel share
departures from a majority that is off, and most such pairs agree no more than that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from voirdire.checks._others import (
    FEWEST_OTHERS,
    NO_VERDICT,
    Spread,
    between_clusters,
    class_votes,
    strict_majority,
)
from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.corroboration import holm, testable_classes
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Interval, Key
from voirdire.finding import Finding, State, Strength
from voirdire.grid import Grid
from voirdire.intervals import t_quantile, t_tail
from voirdire.labels import Grader
from voirdire.scene import Scene
from voirdire.wording import Name, Text, counted, listed, number, plural, say

Array = np.ndarray[Any, Any]

CODE = "graders_not_independent"
ALPHA = 0.05
POWER = 0.8  # with which an excess could have been seen, where none was
LEAST_EXCESS = 0.2  # of the departures; below it a pair is hardly closer than others
FEWEST_DEPARTURES = 10  # of the two, on average
FEWEST_CLUSTERS = 5  # of responses with a verdict
MOST_GRADERS = 40  # 780 pairs
MOST_TOLD = 8

OVERLAP_SOURCE = Source(
    text="Contract of voirdire: agreement beyond chance (Cohen 1960) on the departures from a verdict"
)
SHARED = Estimand(
    name="shared_departures",
    title="Shared departures",
    question="On how many responses do two graders give one and the same class that the verdict is not?",
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    low=0,
    reading="n is the responses with a verdict that both labelled. The verdict is gold, else the strict majority of the other graders.",
    undefined_when="no response has a verdict and both labels",
    source=OVERLAP_SOURCE,
)
EXCESS = Estimand(
    name="departure_overlap_excess",
    title="Overlap of departures, above that of other pairs",
    question="How much more of their departures do two graders share than either does with the rest?",
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.COEFFICIENT,
    scale=Scale.PLAIN,
    reading=(
        "The overlap is the part of their departures that two graders share beyond what their own habits "
        "given the verdict lead to. The median overlap of the pairs that either makes with another is "
        "taken off: hard responses are hard for all."
    ),
    moves_with=("which graders are in the panel",),
    undefined_when="there is no other pair to compare with",
    source=OVERLAP_SOURCE,
)


CAUSES = (
    "Labels do not say why: one may follow the other, both may go by one model or instruction, draw the line "
    "between classes in the same place, or find the same responses hard."
)
UNDECIDED = (
    "Without gold that does not tell whether one follows the other, both go by one model or instruction, or "
    "it is the majority that is off there."
)


# --- the responses as patterns ------------------------------------------------------------------


@dataclass(frozen=True)
class _Panel:
    """Distinct rows of labels with how often each stands: what all pairs are counted from.

    ``codes`` is ``(patterns, graders)``, ``times`` how many responses have each, ``of_row`` the pattern of each
    response. ``blocked`` holds for each grader the classes whose verdicts are left out (:func:`_blocked`).
    """

    scene: Scene
    grid: Grid
    codes: Array
    times: Array
    of_row: Array
    blocked: tuple[frozenset[int], ...]

    @classmethod
    def of(cls, scene: Scene, grid: Grid, blocked: Sequence[frozenset[int]]) -> _Panel:
        codes, of_row = _patterns(grid.codes, scene.k)
        weights = grid.weights if grid.frequency else None
        times = np.bincount(of_row, weights=weights, minlength=len(codes)).astype(np.float64)
        return cls(scene, grid, codes, times, of_row, tuple(blocked))

    @cached_property
    def votes(self) -> Array:
        return class_votes(self.codes, self.voters, self.scene.k)

    @cached_property
    def voters(self) -> list[int]:
        """Places of those whose labels make a majority: all but gold, and none made from others."""
        there = set(self.scene.panel)
        return [
            self.scene.places[g]
            for g in self.scene.panel
            if not set(self.scene.by_name[g].derived_from) & there
        ]

    def verdict(self, a: int, b: int) -> Array | None:
        """The verdict that two graders are held against in each pattern; None where there is none."""
        mine = (self.scene.graders[a], self.scene.graders[b])
        if self.scene.gold and not _made_from(mine, self.scene.by_name[self.scene.gold]):
            verdict = self.codes[:, self.scene.places[self.scene.gold]].astype(np.int64)
        else:
            out = [v for v in self.voters if any(self.scene.graders[v].related(g) for g in mine)]
            members = len(self.voters) - len(out)
            if members < FEWEST_OTHERS:
                return None
            votes = self.votes - class_votes(self.codes, out, self.scene.k)
            verdict = strict_majority(votes, members)
        for class_ in self.blocked[a] | self.blocked[b]:
            verdict = np.where(verdict == class_, NO_VERDICT, verdict)
        return verdict

    @cached_property
    def likeness(self) -> Array:
        """Agreement of each pair less what their class shares give, ``(graders, graders)``."""
        size, k = self.codes.shape[1], self.scene.k
        made = np.full((size, size), np.nan)
        for a, b in itertools.combinations_with_replacement(range(size), 2):
            both = (self.codes[:, a] >= 0) & (self.codes[:, b] >= 0)
            cell = self.codes[both, a].astype(np.int64) * k + self.codes[both, b]
            share = np.bincount(cell, weights=self.times[both], minlength=k * k).reshape(k, k)
            if share.sum():
                share = share / share.sum()
                chance = float((share.sum(0) * share.sum(1)).sum())
                made[a, b] = made[b, a] = float(np.trace(share)) - chance
        return made

    def beyond_the_rest(self, a: int, b: int) -> float:
        """The part of the labels that two share beyond what their likeness to the rest lets expect.

        With one factor behind all labels the likeness of a and b is that of a and c times that of b and d
        over that of c and d, for any two others (a tetrad). nan where there are no two others.
        """
        like, graders = self.likeness, self.scene.graders
        rest = [
            c
            for c in range(len(graders))
            if not graders[c].related(graders[a]) and not graders[c].related(graders[b])
        ]
        between = like[np.ix_(rest, rest)]
        np.fill_diagonal(between, np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = like[a, rest][:, None] * like[b, rest][None, :] / between
        expected = expected[np.isfinite(expected) & (between > 0)]
        if not len(expected):
            return float("nan")
        most = (like[a, a] + like[b, b]) / 2  # of labels that are all the same
        least = float(np.median(expected))
        return float((like[a, b] - least) / (most - least)) if most > least else float("nan")


def _patterns(codes: Array, k: int) -> tuple[Array, Array]:
    """Distinct rows of labels, and the place of each response's among them."""
    graders = codes.shape[1]
    if (k + 1) ** graders >= 2**62:
        return codes, np.arange(len(codes))
    factors = (k + 1) ** np.arange(graders, dtype=np.int64)
    key = np.zeros(len(codes), dtype=np.int64)
    for g in range(graders):
        key += (codes[:, g].astype(np.int64) + 1) * factors[g]
    _, first, of_row = np.unique(key, return_index=True, return_inverse=True)
    return codes[first], of_row


def _made_from(graders: Iterable[Grader], other: Grader) -> bool:
    return any(g.origins & other.origins for g in graders)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two graders beside the verdict: counts, and the overlap of their departures (nan: undefined)."""

    a: int
    b: int
    shared: float
    expected: float
    departures: float  # mean of the two
    n: float

    @property
    def overlap(self) -> float:
        room = self.departures - self.expected
        return (self.shared - self.expected) / room if room > 1e-9 else float("nan")


@dataclass(frozen=True)
class _Labels:
    """The verdict ``s`` and the labels ``x`` and ``y`` of two graders where all three are, by pattern.

    ``there`` marks these patterns. ``of_a`` and ``of_b`` count labels by verdict, ``(k, k)``; ``by_chance``
    is how many departures would be shared by chance given each verdict, ``(k,)``.
    """

    there: Array
    s: Array
    x: Array
    y: Array
    times: Array
    n: Array
    of_a: Array
    of_b: Array
    by_chance: Array

    @classmethod
    def of(cls, panel: _Panel, a: int, b: int) -> _Labels | None:
        verdict = panel.verdict(a, b)
        if verdict is None:
            return None
        k = panel.scene.k
        x, y = panel.codes[:, a].astype(np.int64), panel.codes[:, b].astype(np.int64)
        there = (verdict >= 0) & (x >= 0) & (y >= 0)
        s, x, y, times = verdict[there], x[there], y[there], panel.times[there]
        n = np.maximum(np.bincount(s, weights=times, minlength=k), 1e-12)
        of_a = np.bincount(s * k + x, weights=times, minlength=k * k).reshape(k, k)
        of_b = np.bincount(s * k + y, weights=times, minlength=k * k).reshape(k, k)
        by_chance = (of_a * of_b * ~np.eye(k, dtype=np.bool_)).sum(axis=1) / n
        return cls(there, s, x, y, times, n, of_a, of_b, by_chance)

    @property
    def same(self) -> Array:
        return np.asarray((self.x == self.y) & (self.x != self.s))

    @property
    def apart(self) -> Array:
        return np.asarray(((self.x != self.s).astype(np.float64) + (self.y != self.s)) / 2)


def _counted(panel: _Panel, a: int, b: int) -> _Pair | None:
    at = _Labels.of(panel, a, b)
    if at is None or not len(at.s):
        return None
    return _Pair(
        a,
        b,
        shared=float(at.times[at.same].sum()),
        expected=float(at.by_chance.sum()),
        departures=float((at.apart * at.times).sum()),
        n=float(at.times.sum()),
    )


def _influence(panel: _Panel, pair: _Pair) -> tuple[Array, Array]:
    """The derivative of the overlap in one more response of each pattern, and the patterns that count."""
    at = _Labels.of(panel, pair.a, pair.b)
    assert at is not None
    s, x, y = at.s, at.x, at.y
    d_expected = (
        np.where(x != s, at.of_b[s, x], 0.0)
        + np.where(y != s, at.of_a[s, y], 0.0)
        - at.by_chance[s]
    ) / at.n[s]
    moves = at.same - d_expected - pair.overlap * (at.apart - d_expected)
    influence = np.zeros(len(panel.times))
    influence[at.there] = moves / (pair.departures - pair.expected)
    return influence, at.there


@dataclass(frozen=True)
class _Beside:
    """A pair beside the pairs that either grader makes with an unrelated other.

    ``middle`` are the two whose mean overlap is the median; ``usual`` is that, and 0 where it is below.
    """

    pair: _Pair
    middle: tuple[_Pair, _Pair]

    @property
    def usual(self) -> float:
        return max(0.0, (self.middle[0].overlap + self.middle[1].overlap) / 2)

    @property
    def excess(self) -> float:
        return self.pair.overlap - self.usual


@dataclass(frozen=True)
class _Tested:
    """The same with what the excess varies by, and p (one-sided)."""

    at: _Beside
    spread: Spread
    p: float

    @property
    def pair(self) -> _Pair:
        return self.at.pair


def _beside(panel: _Panel, pair: _Pair, pairs: dict[tuple[int, int], _Pair]) -> _Beside | None:
    """The pair beside the median of the pairs that either grader makes with an unrelated other."""
    graders = panel.scene.graders
    if pair.departures < FEWEST_DEPARTURES or not np.isfinite(pair.overlap):
        return None
    beside, by_gold = [], _by_gold(panel.scene, pair)
    for c, grader in enumerate(graders):
        if grader.related(graders[pair.a]) or grader.related(graders[pair.b]):
            continue
        for mine in (pair.a, pair.b):
            other = pairs.get((min(mine, c), max(mine, c)))
            if other is None or _by_gold(panel.scene, other) is not by_gold:
                continue  # departures from gold and from a majority are not alike
            if np.isfinite(other.overlap) and other.departures >= 1:
                beside.append(other)
    if len(beside) < 2:
        return None
    beside.sort(key=lambda p: (p.overlap, graders[p.a].name, graders[p.b].name))
    middle = (beside[(len(beside) - 1) // 2], beside[len(beside) // 2])
    return _Beside(pair, middle)


def _tested(panel: _Panel, at: _Beside) -> _Tested | None:
    """The excess with its variance between clusters; None where that cannot be said."""
    influence, there = _influence(panel, at.pair)
    for other in at.middle if at.usual > 0 else ():
        usual, also = _influence(panel, other)
        influence = influence - usual / 2
        there = there | also
    spread = between_clusters(panel.grid, influence[panel.of_row], there[panel.of_row])
    if spread.clusters < FEWEST_CLUSTERS or spread.df < 1 or not spread.variance > 0:
        return None
    return _Tested(at, spread, 1 - t_tail(at.excess / spread.error, spread.df))


# --- what is said -------------------------------------------------------------------------------


def run(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    if len(scene.panel) < 2:
        return
    why = _why_not(scene)
    if why:
        yield _plain(
            State.NOT_APPLICABLE, (f"Whether graders are independent is not asked: {why}",)
        )
        return
    grid = scene.grid
    assert grid is not None
    made = [
        (a, b)
        for a, b in itertools.combinations(scene.panel, 2)
        if _made_from([scene.by_name[a]], scene.by_name[b])
    ]
    asked = [
        (scene.places[a], scene.places[b])
        for a, b in itertools.combinations(scene.panel, 2)
        if (a, b) not in set(made)
    ]
    if made:
        yield _plain(
            State.NOT_APPLICABLE,
            say(
                "{pairs} made from one another’s labels ({first} and {second}{more}), so that they are no two "
                "opinions is known and not tested.",
                pairs="Two graders are" if len(made) == 1 else f"{len(made)} pairs of graders are",
                first=Name(made[0][0]),
                second=Name(made[0][1]),
                more="" if len(made) == 1 else ", …",
            ),
        )
    if not asked:
        return
    few = _too_few(scene)
    if few:
        yield _plain(State.CANNOT_TELL, few)
        return
    panel = _Panel.of(scene, grid, _blocked(evidence))
    pairs = {(a, b): pair for a, b in asked if (pair := _counted(panel, a, b)) is not None}
    beside = [
        one
        for at, pair in pairs.items()
        if _may_be_told(scene, *at) and (one := _beside(panel, pair, pairs)) is not None
    ]
    beside.sort(key=lambda one: (-one.excess, one.pair.a, one.pair.b))
    # Holm counts every pair; p is worked out for those that could be told, and for the closest.
    tested = [
        _tested(panel, one) if i == 0 or one.excess >= LEAST_EXCESS else None
        for i, one in enumerate(beside)
    ]
    if (
        tested and tested[0] is None and beside[0].excess <= 0
    ):  # nothing varies: no departure is shared
        yield _plain(
            State.CLEAR,
            say(
                "No two graders share departures from {standard} beyond chance ({pairs} looked at).",
                standard=_standard(scene, beside[0].pair),
                pairs=plural(len(tested), "pair"),
            ),
        )
        return
    if not tested or tested[0] is None:
        yield _plain(State.CANNOT_TELL, _nothing_to_see(scene))
        return
    adjusted = holm([1.0 if t is None else t.p for t in tested])
    found = [
        (t, p)
        for t, p in zip(tested, adjusted, strict=True)
        if t is not None and p is not None and p < ALPHA and _stands_out(panel, t.at)
    ]
    for pair_, p in found[:MOST_TOLD]:
        yield _finding(evidence, pair_, p, len(tested))
    if len(found) > MOST_TOLD:
        more = found[MOST_TOLD:]
        decided = any(_by_gold(scene, t.pair) for t, _ in more)
        yield _plain(
            State.FOUND if decided else State.CANNOT_TELL,
            (f"{plural(len(more), 'more pair')} of graders go together.",),
            strength=Strength.LIKELY if decided else Strength.NONE,
        )
    if not found:
        yield _clear(scene, tested[0], len(tested))


def _why_not(scene: Scene) -> str:
    if scene.counts is not None:
        return "counts do not say on which responses graders agree."
    if not scene.grid or not scene.classes:
        return "nobody gave a label."
    if not testable_classes(scene):
        return "on scales of more than four ordered classes a departure is a matter of degree."
    if len(scene.panel) > MOST_GRADERS:
        return (
            f"with more than {MOST_GRADERS} graders there are too many pairs. Name those of interest "
            "with --graders."
        )
    if scene.grid.weights is not None and not scene.grid.frequency:
        return "under design weights no test is made."
    return ""


def _too_few(scene: Scene) -> Text:
    """Why no pair can be told; empty where one may be."""
    graders = len(scene.panel)
    if scene.gold and graders < FEWEST_OTHERS + 1:
        return say(
            "Two graders share errors where responses are hard for both as well as where one follows the "
            "other. A third grader would tell these apart; there are {names} and gold alone.",
            names=listed(scene.panel),
        )
    if not scene.gold and graders < FEWEST_OTHERS + 2:
        return (
            "Whether two graders are independent cannot be told without gold from fewer than four graders: "
            "where two of three agree, either they belong together or the third is off.",
        )
    return ()


def _nothing_to_see(scene: Scene) -> Text:
    apart = [
        g
        for g in scene.panel
        if scene.gold and not _made_from([scene.by_name[g]], scene.by_name[scene.gold])
    ]
    if scene.gold and len(apart) <= FEWEST_OTHERS:
        return say(
            "Whether two graders are independent cannot be told: gold speaks only of graders that it is not "
            "made from ({names}), and at least three are needed, since responses may be hard for two of them.",
            names=listed(apart) if apart else "none",
        )
    return (
        "Whether two graders are independent cannot be told: no pair departs from the verdict of gold or of "
        f"most others on {FEWEST_DEPARTURES} responses or more, in {FEWEST_CLUSTERS} clusters or more.",
    )


def _blocked(evidence: Evidence) -> list[frozenset[int]]:
    """For each grader the classes that it cannot give, or that it hardly uses (``class_collapse``).

    Its departures from these are forced or told already, and say nothing of whom it goes with.
    """
    scene = evidence.whole
    collapsed: dict[str, set[str]] = {}
    for finding in evidence.earlier:
        if finding.code == "class_collapse" and finding.state is State.FOUND and not finding.slice:
            collapsed.setdefault(finding.grader, set()).add(finding.class_)
    return [
        frozenset(
            i
            for i, class_ in enumerate(scene.classes)
            if (g.range and class_ not in g.range) or class_ in collapsed.get(g.name, set())
        )
        for g in scene.graders
    ]


def _by_gold(scene: Scene, pair: _Pair) -> bool:
    mine = (scene.graders[pair.a], scene.graders[pair.b])
    return bool(scene.gold) and not _made_from(mine, scene.by_name[scene.gold])


def _may_be_told(scene: Scene, a: int, b: int) -> bool:
    """Nothing is said of people from the verdicts of LLM graders or rules; only gold speaks of them."""
    mine = (scene.graders[a], scene.graders[b])
    if not any(g.person for g in mine):
        return True
    return bool(scene.gold) and not _made_from(mine, scene.by_name[scene.gold])


def _stands_out(panel: _Panel, at: _Beside) -> bool:
    if at.excess < LEAST_EXCESS:
        return False
    if _by_gold(panel.scene, at.pair):
        return True
    return panel.beyond_the_rest(at.pair.a, at.pair.b) >= LEAST_EXCESS  # nan is no evidence


def _plain(state: State, sentence: Text, strength: Strength = Strength.NONE) -> Finding:
    return Finding(code=CODE, state=state, sentence=sentence, strength=strength)


def _standard(scene: Scene, pair: _Pair) -> Text:
    if _by_gold(scene, pair):
        return ("gold",)
    return ("the majority of the others",)


def _finding(evidence: Evidence, one: _Tested, p: float, tested: int) -> Finding:
    scene, pair = evidence.whole, one.pair
    a, b = scene.graders[pair.a], scene.graders[pair.b]
    kin: Text = ()
    if a.family and a.family == b.family:
        kin = say(" Both are of the family {family}.", family=Name(a.family))
    by_gold = _by_gold(scene, pair)
    sentence = say(
        "{a} and {b} {lead}: where they depart from {standard} (on {own} responses each, on average) they give "
        "one and the same class on {shared}; graders that depart independently would on {expected}. Their "
        "departures overlap by {overlap}, those of either with the rest by {usual} (median).{kin} {why} "
        "One-sided cluster-robust p {p} after Holm over {pairs}.",
        a=Name(a.name),
        b=Name(b.name),
        lead="share their errors and are not two independent opinions"
        if by_gold
        else "go together",
        standard=_standard(scene, pair),
        own=counted(round(pair.departures, 1)),
        shared=counted(pair.shared),
        expected=f"{pair.expected:,.1f}",
        overlap=_part(pair.overlap),
        usual=_part(one.at.usual),
        kin=kin,
        why=CAUSES if by_gold else UNDECIDED,
        p=_p(p),
        pairs=plural(tested, "pair"),
    )
    names = {"a": Name(a.name), "b": Name(b.name)}
    return Finding(
        code=CODE,
        state=State.FOUND if by_gold else State.CANNOT_TELL,
        strength=Strength.LIKELY if by_gold else Strength.NONE,
        grader=a.name if by_gold else "",
        other=b.name if by_gold else "",
        sentence=sentence,
        evidence=(*_rows(scene, one), *_known(evidence, a.name, b.name)),
        weight=one.at.excess * pair.n,
        next_step=say(
            "Count the two as one in a panel: a majority or consensus that both vote in leans to the errors "
            "that they share. Read agreement with the consensus again with --panel without {a} or {b}.",
            **names,
        )
        if by_gold
        else say(
            "Label by hand some of the responses where {a} and {b} give one class and the majority another, "
            "and give these labels as --gold.",
            **names,
        ),
    )


def _part(x: float) -> str:
    return f"{round(100 * x)} %"  # percent() would write a minus before a zero


def _p(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"= {number(p, 4)}"


def _rows(scene: Scene, one: _Tested) -> tuple[Estimate, ...]:
    pair, excess, level = one.pair, one.at.excess, scene.options.level
    key = Key(grader=scene.names[pair.a], other=scene.names[pair.b])
    half = t_quantile(0.5 + level / 2, one.spread.df) * one.spread.error
    return (
        Estimate(
            estimand=SHARED,
            key=key,
            value=pair.shared,
            n=pair.n,
            clusters=one.spread.clusters,
        ),
        Estimate(
            estimand=EXCESS,
            key=key,
            value=excess,
            interval=Interval(
                low=excess - half, high=excess + half, level=level, method="linearised_t"
            ),
            n=pair.n,
            clusters=one.spread.clusters,
            p=one.p,
        ),
    )


def _known(evidence: Evidence, a: str, b: str) -> tuple[Estimate, ...]:
    found = evidence.estimates.get("agreement", grader=a, other=b)
    return () if found is None else (found,)


def _clear(scene: Scene, closest: _Tested, tested: int) -> Finding:
    """No pair stands out: which is closest, and what excess could have been seen."""
    df = closest.spread.df
    quantiles = t_quantile(1 - ALPHA / tested, df) + t_quantile(POWER, df)
    seen = max(LEAST_EXCESS, quantiles * closest.spread.error)
    if seen >= 1:
        return Finding(
            code=CODE,
            state=State.CANNOT_TELL,
            sentence=(
                "There are too few departures from gold or the majority to tell whether two graders share "
                "theirs.",
            ),
            evidence=_rows(scene, closest),
        )
    return Finding(
        code=CODE,
        state=State.CLEAR,
        sentence=say(
            "No two graders depart from {standard} together more than others do ({tested} looked at). The "
            "closest are {a} and {b}: their departures overlap by {overlap}, those of either with the rest "
            "by {usual}. An overlap {seen} points above the rest’s would have been seen with probability {power}.",
            standard=_standard(scene, closest.pair),
            tested=plural(tested, "pair"),
            a=Name(scene.names[closest.pair.a]),
            b=Name(scene.names[closest.pair.b]),
            overlap=_part(closest.pair.overlap),
            usual=_part(closest.at.usual),
            seen=f"{100 * seen:.0f}",
            power=f"{POWER:g}",
        ),
        evidence=_rows(scene, closest),
    )


CHECK = Check(
    name=CODE,
    codes={
        CODE: (
            "Two graders share their departures from gold far more than either does with the rest. Without gold, "
            "such pairs are named and not found."
        )
    },
    run=run,
    would_miss=(
        "Two graders that share what is right; a pair that shares less than a fifth of its departures above "
        "the rest; a panel in which most follow one source; fewer than four graders, or three beside gold; "
        "people, unless gold is made without them; more than 40 graders; scales of more than four ordered "
        "classes."
    ),
    rank=66,
    uses=(
        Consequence(
            code=CODE,
            use="second_opinion",
            effect=Effect.FORBIDS,
            because="It shares departures from gold with another grader: the two are one opinion.",
            both=True,
        ),
        Consequence(
            code=CODE,
            use="second_opinion",
            effect=Effect.OPENS,
            because="Whether it is independent of the other graders cannot be told.",
            state=State.CANNOT_TELL,
        ),
        Consequence(
            code=CODE,
            use="second_opinion",
            effect=Effect.ALLOWS,
            because="That it shares departures with another grader was not seen.",
            state=State.CLEAR,
        ),
    ),
)
