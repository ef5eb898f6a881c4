"""Unread calls that come more often where gold, or the majority of the others, gives a certain class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
from voirdire.corroboration import holm
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Interval, Key
from voirdire.finding import Finding, State, Strength
from voirdire.grid import LABEL, MISSING_CODE, NO_MAJORITY, Grid
from voirdire.intervals import t_quantile, t_tail
from voirdire.scene import Rate, Scene, calls_of
from voirdire.wording import Name, Text, counted, listed, number, percent, plural, points, say

Array = np.ndarray[Any, Any]

CODE = "unread_not_at_random"
ALPHA = 0.05
SURE = 0.01  # p up to which a finding is more than indicative
POWER = 0.8  # with which a difference could have been seen, where none was
FEWEST_UNREAD = 10  # calls of a grader, on responses whose class is known
FEWEST_CLUSTERS = 5  # that these stand in
FEWEST_RESPONSES = 10  # of a class, and outside of it

DIFFERENCE = Estimand(
    name="unread_share_difference",
    title="Unread share on a class, less that elsewhere",
    question=(
        "How much more often does a grader give no label where gold, or the majority of the others, gives "
        "a class than elsewhere?"
    ),
    describes=Describes.BOTH,
    keys=("grader", "other", "class"),
    unit=Unit.POINTS,
    scale=Scale.PLAIN,
    low=-1,
    high=1,
    reading="`other` is gold; without it the class is that of the strict majority of the other graders.",
    undefined_when="no response, or every response, is of the class",
    source=Source(
        text="Little and Rubin, Statistical Analysis with Missing Data: missing completely at random"
    ),
)


@dataclass(frozen=True)
class _Known:
    """The calls of a grader on responses whose class is known: ``(responses,)`` each.

    ``there`` marks them; ``class_`` is what gold or the others say, ``unread`` whether the call gave no
    label. ``lost`` counts the unread calls on responses whose class is not known.
    """

    grader: str
    standard: str
    there: Array
    class_: Array
    unread: Array
    lost: int


@dataclass(frozen=True)
class _Test:
    """A class beside all others: unread shares, their difference, and p (two-sided)."""

    known: _Known
    class_: int
    unread: float
    of: float
    unread_elsewhere: float
    elsewhere: float
    null: Spread  # of the difference where it is zero
    spread: Spread  # of the difference as it is
    p: float

    @property
    def share(self) -> float:
        return self.unread / self.of

    @property
    def share_elsewhere(self) -> float:
        return self.unread_elsewhere / self.elsewhere

    @property
    def difference(self) -> float:
        return self.share - self.share_elsewhere


def run(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    unread = [g for g in scene.panel if _lost(scene, g)]
    if not unread:
        return
    grid = scene.grid
    if grid is None:
        yield _plain(
            State.NOT_APPLICABLE,
            "On which responses calls were unread is not asked: counts do not say it.",
        )
        return
    if grid.weights is not None and not grid.frequency:
        yield _plain(
            State.NOT_APPLICABLE,
            "Whether unread calls come at random is not tested under design weights.",
        )
        return
    tests: list[_Test] = []
    silent: list[str] = []
    few: list[str] = []
    for grader in unread:
        known = _known(scene, grid, grader)
        if known is None:
            silent.append(grader)
            continue
        made = _tests(scene, grid, known)
        if not made:
            few.append(grader)
        tests += made
    adjusted = holm([t.p for t in tests])
    found: dict[str, tuple[_Test, float]] = {}
    for test, p in zip(tests, adjusted, strict=True):
        assert p is not None
        best = found.get(test.known.grader)
        if p < ALPHA and (best is None or (p, test.p) < (best[1], best[0].p)):
            found[test.known.grader] = (test, p)
    for test, p in found.values():
        yield _finding(evidence, grid, test, p, len(tests))
    clear = [t for t in tests if t.known.grader not in found]
    if clear:
        yield _clear(scene, clear, len(tests))
    if few or silent:
        yield _cannot_tell(scene, few, silent)


def _lost(scene: Scene, grader: str) -> float:
    return sum(n for o, n in calls_of(scene, grader).items() if o not in ("label", "missing"))


def _unread(grid: Grid, place: int) -> tuple[Array, Array]:
    """Which responses a grader was asked about, and on which of them it gave no label."""
    outcome = grid.outcomes[:, place]
    asked = (outcome >= 0) & (outcome != MISSING_CODE)
    return asked, asked & (outcome != LABEL) & (outcome != NO_MAJORITY)


def _known(scene: Scene, grid: Grid, grader: str) -> _Known | None:
    """The grader's calls beside gold, else beside the strict majority of at least two others."""
    me, place = scene.by_name[grader], scene.places[grader]
    asked, unread = _unread(grid, place)
    standard = ""
    if scene.gold and not me.origins & scene.by_name[scene.gold].origins:
        standard = scene.gold
        class_ = grid.column(scene.gold).astype(np.int64)
    else:
        there = set(scene.panel)
        others = [
            scene.places[o]
            for o in scene.panel
            if not me.related(scene.by_name[o]) and not set(scene.by_name[o].derived_from) & there
        ]
        if len(others) < FEWEST_OTHERS:
            return None
        class_ = strict_majority(class_votes(grid.codes, others, scene.k), len(others))
    there_ = asked & (class_ != NO_VERDICT)
    return _Known(
        grader=grader,
        standard=standard,
        there=there_,
        class_=class_,
        unread=unread,
        lost=int((unread & ~there_).sum()),
    )


def _tests(scene: Scene, grid: Grid, known: _Known) -> list[_Test]:
    rows = np.flatnonzero(known.there)
    lost = rows[known.unread[rows]]
    if len(lost) < FEWEST_UNREAD or len(np.unique(grid.cluster[lost])) < FEWEST_CLUSTERS:
        return []
    made = []
    classes = [c for c in range(scene.k) if (known.class_[rows] == c).any()]
    if len(classes) == 2:  # the second is the mirror of the first: told of the one with more unread
        shares = [known.unread[rows][known.class_[rows] == c].mean() for c in classes]
        classes = [classes[int(np.argmax(shares))]]
    for class_ in classes:
        test = _test(grid, known, class_)
        if test is not None:
            made.append(test)
    return made


def _test(grid: Grid, known: _Known, class_: int) -> _Test | None:
    """A score test of one unread share in and outside a class, with the variance between clusters.

    Calls that are unread are few: the variance under the null does not vanish where a class has none of
    them. t has as many degrees of freedom as clusters hold unread calls, less one (at most C − 1). Where
    few are expected on the class the score is skewed, so p is never below the exact one of :func:`exact_p`.
    """
    there = known.there
    times = np.ones(len(there))
    if grid.frequency and grid.weights is not None:
        times = grid.weights.astype(np.float64)
    m = np.where(there, times, 0.0)
    inside, lost = (known.class_ == class_) & there, known.unread & there
    n, of = float(m.sum()), float(m[inside].sum())
    if min(of, n - of) < FEWEST_RESPONSES:
        return None
    unread, unread_of = float(m[lost].sum()), float(m[inside & lost].sum())
    share, part = unread / n, of / n
    score = np.where(there, (lost - share) * (inside - part), 0.0) / (n * part * (1 - part))
    null = between_clusters(grid, score, there)
    p_in, p_out = unread_of / of, (unread - unread_of) / (n - of)
    moves = np.where(inside, (lost - p_in) / of, -(lost - p_out) / (n - of))
    spread = between_clusters(grid, np.where(there, moves, 0.0), there)
    holding = len(np.unique(grid.cluster[lost]))
    df = min(null.df, holding - 1)
    if df < 1 or not null.variance > 0:
        return None
    p = min(1.0, 2 * (1 - t_tail(abs(p_in - p_out) / null.error, df)))
    p = max(p, exact_p(unread_of, unread, of, n))
    return _Test(
        known=known,
        class_=class_,
        unread=unread_of,
        of=of,
        unread_elsewhere=unread - unread_of,
        elsewhere=n - of,
        null=Spread(null.variance, df, null.clusters),
        spread=spread,
        p=p,
    )


def exact_p(inside: float, unread: float, of: float, n: float) -> float:
    """Twice the smaller tail of the hypergeometric distribution: ``inside`` of ``unread`` calls on a class.

    ``of`` of the ``n`` responses are of the class (Fisher 1935, Journal of the Royal Statistical Society 98,
    p. 48); at most 1.

    >>> round(exact_p(3, 3, 5, 10), 4)  # 2 × C(5, 3) / C(10, 3) = 2 × 10 / 120
    0.1667
    """
    from scipy.special import gammaln

    x = np.arange(max(0.0, unread - (n - of)), min(unread, of) + 1)
    terms = -gammaln(x + 1) - gammaln(unread - x + 1)
    terms = terms - gammaln(of - x + 1) - gammaln(n - of - unread + x + 1)
    share = np.exp(terms - terms.max())
    share = share / share.sum()
    return min(1.0, 2 * min(float(share[x <= inside].sum()), float(share[x >= inside].sum())))


# --- what is said -------------------------------------------------------------------------------


def _plain(state: State, sentence: str) -> Finding:
    return Finding(code=CODE, state=state, sentence=(sentence,))


def _standard(standard: str) -> str:
    return "gold" if standard else "the majority of the others"


def _finding(evidence: Evidence, grid: Grid, test: _Test, p: float, tested: int) -> Finding:
    scene, known = evidence.whole, test.known
    sentence = say(
        "{grader} gives no label on {unread} of the {of} responses that {standard} calls {class_} ({share}) "
        "and on {elsewhere} of the {rest} others ({share_elsewhere}): its unread calls are not spread at "
        "random over the classes.{range}",
        grader=Name(known.grader),
        unread=counted(test.unread),
        of=counted(test.of),
        standard=_standard(known.standard),
        class_=Name(scene.classes[test.class_]),
        share=percent(test.share),
        elsewhere=counted(test.unread_elsewhere),
        rest=counted(test.elsewhere),
        share_elsewhere=percent(test.share_elsewhere),
        range=_range(scene, grid, known),
    )
    return Finding(
        code=CODE,
        state=State.FOUND,
        strength=_strength(p, by_gold=bool(known.standard)),
        grader=known.grader,
        other=known.standard,
        class_=scene.classes[test.class_],
        sentence=(
            *sentence,
            f" Cluster-robust p {_p(p)} after Holm over {plural(tested, 'test')}.",
        ),
        evidence=(
            _row(scene, test),
            *evidence.estimates.of("outcome_count", grader=known.grader, slice=""),
        ),
        weight=abs(test.difference) * test.of,
        next_step=(
            "Report the rate with its two ends, or grade the unread responses again with more room (see how "
            "these calls ended).",
        ),
    )


def _strength(p: float, *, by_gold: bool) -> Strength:
    """Gold carries a finding further than a majority, which may be off; p near 5 % carries none far."""
    if p > SURE:
        return Strength.INDICATIVE
    return Strength.CERTAIN if by_gold else Strength.LIKELY


def _p(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"= {number(p, 4)}"


def _range(scene: Scene, grid: Grid, known: _Known) -> Text:
    """Between which ends the first rate lies, and to which side leaving unread calls out moves it."""
    if not scene.rates:
        return ()
    rate: Rate = scene.rates[0]
    times = np.ones(len(known.there))
    if grid.frequency and grid.weights is not None:
        times = grid.weights.astype(np.float64)
    column = grid.column(known.grader)
    asked, unread = _unread(grid, scene.places[known.grader])
    read = column >= 0
    hit = read & rate.members[np.maximum(column, 0)]
    calls, hits = float(times[asked].sum()), float(times[hit].sum())
    lost = float(times[unread].sum())
    if not times[read].sum():
        return ()
    text = say(
        " Its rate of {rate} is {now} of what was read; over all its calls it lies between {low} and {high}.",
        rate=Name(rate.name),
        now=percent(hits / float(times[read].sum())),
        low=percent(hits / calls),
        high=percent((hits + lost) / calls),
    )
    filled = _filled(known, read, hit, times)
    if filled is None:
        return text
    seen, all_calls = filled
    if f"{100 * seen:.1f}" == f"{100 * all_calls:.1f}":
        return text
    return (
        *text,
        *say(
            " If it would label unread responses as it labels the others of their class, leaving them out "
            "makes the rate too {side}: {seen} instead of {all_calls}, where the class is known.",
            side="low" if seen < all_calls else "high",
            seen=percent(seen),
            all_calls=percent(all_calls),
        ),
    )


def _filled(known: _Known, read: Array, hit: Array, times: Array) -> tuple[float, float] | None:
    """The rate of what was read, and with every class at its share of the calls (where it is known).

    None where of some class no call could be read.
    """
    there = known.there & (read | known.unread)
    calls, seen, made = 0.0, 0.0, 0.0
    labels = 0.0
    for class_ in np.unique(known.class_[there]):
        of_class = there & (known.class_ == class_)
        readable = float(times[of_class & read].sum())
        if not readable:
            return None
        hits, all_ = float(times[of_class & hit].sum()), float(times[of_class].sum())
        calls, labels, seen = calls + all_, labels + readable, seen + hits
        made += all_ * hits / readable
    return (seen / labels, made / calls) if labels else None


def _row(scene: Scene, test: _Test) -> Estimate:
    level = scene.options.level
    half = t_quantile(0.5 + level / 2, max(1, test.spread.df)) * test.spread.error
    value = test.difference
    interval = Interval(
        low=max(-1.0, value - half),
        high=min(1.0, value + half),
        level=level,
        method="linearised_t",
    )
    return Estimate(
        estimand=DIFFERENCE,
        key=Key(
            grader=test.known.grader, other=test.known.standard, class_=scene.classes[test.class_]
        ),
        value=value,
        interval=interval if half > 0 else None,
        n=test.of + test.elsewhere,
        clusters=test.spread.clusters,
        p=test.p,
        no_interval="" if half > 0 else "nothing varies between clusters",
    )


def _clear(scene: Scene, tests: Sequence[_Test], tested: int) -> Finding:
    """No difference stands out: the largest, and what could have been seen in the worst case."""
    largest = max(tests, key=lambda t: (abs(t.difference), t.known.grader, -t.class_))

    def least(test: _Test) -> float:
        df = test.null.df
        sum_ = t_quantile(1 - ALPHA / 2 / tested, df) + t_quantile(POWER, df)
        return sum_ * test.null.error

    graders = list(dict.fromkeys(t.known.grader for t in tests))
    seen = max(least(t) for t in tests)
    state = State.CLEAR if seen < 1 else State.CANNOT_TELL
    tail = (
        f" A difference of {points(seen)} would have been seen with probability {POWER:g} in each."
        if seen < 1
        else " With so few clusters no difference could have been seen."
    )
    return Finding(
        code=CODE,
        state=state,
        sentence=(
            *say(
                "Unread calls of {graders} come on no class of {standard} more often than chance would have it "
                "({tests}). The largest difference: {grader} on {class_}, {share} against {elsewhere} "
                "elsewhere.",
                graders=listed(graders),
                standard=_standard(largest.known.standard),
                tests=plural(len(tests), "class looked at", "classes looked at"),
                grader=Name(largest.known.grader),
                class_=Name(scene.classes[largest.class_]),
                share=percent(largest.share),
                elsewhere=percent(largest.share_elsewhere),
            ),
            tail,
        ),
        evidence=(_row(scene, largest),),
    )


def _cannot_tell(scene: Scene, few: Sequence[str], silent: Sequence[str]) -> Finding:
    parts: list[Text] = []
    if few:
        parts.append(
            say(
                "Whether the unread calls of {graders} come at random cannot be told: there are fewer than "
                "{calls} where the class of the response is known, or they stand in fewer than {clusters} "
                "clusters.",
                graders=listed(few),
                calls=FEWEST_UNREAD,
                clusters=FEWEST_CLUSTERS,
            )
        )
    if silent:
        parts.append(
            say(
                "Whether the unread calls of {graders} come at random cannot be told: there is neither gold "
                "(made without them) nor two other graders to say of what class those responses are.",
                graders=listed(silent),
            )
        )
    joined: Text = parts[0] if len(parts) == 1 else (*parts[0], " ", *parts[1])
    return Finding(code=CODE, state=State.CANNOT_TELL, sentence=joined)


CHECK = Check(
    name=CODE,
    codes={
        CODE: "A grader’s calls end without a label more often where gold, or the majority of the others, gives a certain class."
    },
    run=run,
    would_miss=(
        "Unread calls that depend on something else than the class, such as length or language; fewer than "
        "10 of them; responses that the others could not read either, where there is no gold."
    ),
    rank=55,
    kinds=("labels", "counts"),
    uses=(
        Consequence(
            code=CODE,
            use="report_rate",
            effect=Effect.CONDITIONS,
            because="Give the rate with its two ends over the unread calls: they are not spread at random.",
        ),
        Consequence(
            code=CODE,
            use="compare_models",
            effect=Effect.CONDITIONS,
            because="Compare unread calls too: they are not spread at random over the classes.",
        ),
    ),
)
