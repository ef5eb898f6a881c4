"""The interval that an audit will give of a share, and the clusters for one that is narrow enough.

What is predicted is the default interval of an audit: jackknife-t on the logit scale, and the beta interval
at the edge. Which of the two it is, and how wide, depends on the labels drawn, so its ends are averaged over
what may be drawn: exactly for responses that are their own clusters, else over simulated data sets that go
through the engine of the audit. Where clusters with an event (and without) are many, the ends at the guess
are the same up to a percent or two, and are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from voirdire import intervals
from voirdire.errors import UsageError
from voirdire.estimand import Scale
from voirdire.estimate import Key
from voirdire.inference import FEWEST_CLUSTERS, FEWEST_EVENTS, Settings, estimates
from voirdire.planning.base import (
    FORMULA,
    MOST_CLUSTERS,
    SIMULATION,
    Answer,
    Guesses,
    Needed,
    Pilot,
    Share,
    check_share,
    fewest,
    whose,
)
from voirdire.scene import Rate
from voirdire.simulate.coverage import side_by_side
from voirdire.stats.base import Part
from voirdire.stats.shares import S_RATE
from voirdire.tally import of_rows
from voirdire.wording import Text, number, percent, points, say

Array = np.ndarray[Any, Any]

ENOUGH = 100  # expected clusters with an event, and with none, from which the formula serves
_SIMULATED = 4000  # clusters in a simulated data set at most; beyond, the formula serves
_CLUSTERS = 400_000  # clusters that are simulated for one half width at most
_RUNS = (100, 2000)  # data sets for one half width, at least and at most
_GIVEN = {"rates": (Rate(name="yes", members=np.array([True, False])),)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The ends to expect of the default interval, in 0–1, and how they were made.

    ``error`` is the Monte-Carlo standard error of the half width; 0 by formula.
    """

    low: float
    high: float
    how: str
    error: float = 0.0

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def expected_interval(
    share: Share, clusters: int, level: float = 0.95, *, seed: int = 0, runs: int = 0
) -> Expected:
    """The mean ends of the interval that an audit of so many clusters will give of the share.

    Clusters are drawn with the sizes of ``share`` (those of the pilot, else its trials in a cluster) and
    chances of an event that are beta with its correlation; unequal weights thin them to Kish's effective
    number. ``runs`` data sets are simulated at most (0: up to 2,000, as the number of clusters allows).
    nan below 3 clusters, where no interval is given. Deterministic in ``seed``.

    >>> made = expected_interval(Share(name="x", value=0.5, per_cluster=10), 400)
    >>> round(made.half_width, 4), made.how
    (0.0155, 'formula')
    """
    if clusters < FEWEST_CLUSTERS:
        return Expected(low=math.nan, high=math.nan, how=FORMULA)
    if not 0 < share.value < 1:
        return _always(share, clusters, level)
    if _independent(share):
        return _of_independent(share.value, clusters, level)
    if _plenty(share, clusters):
        return _at_the_guess(share, clusters, level)
    return _simulated(
        share.value,
        share.correlation,
        share.sizes or ((0, 0),),
        share.per_cluster,
        share.weighting,
        clusters,
        level,
        seed,
        runs or _RUNS[1],
    )


def expected_half_width(share: Share, clusters: int, level: float = 0.95) -> float:
    """Half the width of :func:`expected_interval`, in 0–1."""
    return expected_interval(share, clusters, level).half_width


def _independent(share: Share) -> bool:
    alone = all(m <= 1 for m, _ in share.sizes) if share.sizes else share.per_cluster <= 1
    return alone and share.weighting <= 1


def _always(share: Share, clusters: int, level: float) -> Expected:
    """Never or always: every data set is the same, and at the edge."""
    trials = clusters * share.per_cluster
    if _independent(share):
        low, high = intervals.clopper_pearson(share.value * trials, trials, level)
    else:
        low, high = intervals.korn_graubard(
            share.value, trials / share.weighting, 0.0, clusters, clusters - 1, level
        )
    return Expected(low=low, high=high, how=FORMULA)


def _of_independent(p: float, n: int, level: float) -> Expected:
    """The mean over the binomial number of events; the jackknife of single trials has a closed form."""
    from scipy.special import gammaln

    reach = 9 * math.sqrt(n * p * (1 - p)) + 30
    x = np.arange(max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach)) + 1.0)
    chance = np.exp(
        gammaln(n + 1)
        - gammaln(x + 1)
        - gammaln(n - x + 1)
        + x * math.log(p)
        + (n - x) * math.log1p(-p)
    )
    ends = np.empty((2, len(x)))
    edge = (x < FEWEST_EVENTS) | (n - x < FEWEST_EVENTS)
    for i in np.flatnonzero(edge):
        ends[:, i] = intervals.clopper_pearson(float(x[i]), n, level)
    inner = x[~edge]
    centre = intervals.forward(inner / n, Scale.LOGIT)
    # Without a trial that has the event, and without one that has it not.
    fewer = intervals.forward((inner - 1) / (n - 1), Scale.LOGIT) - centre
    more = intervals.forward(inner / (n - 1), Scale.LOGIT) - centre
    spread = inner * (n - inner) / n * (fewer - more) ** 2
    half = intervals.t_quantile(0.5 + level / 2, n - 1) * np.sqrt((n - 1) / n * spread)
    ends[:, ~edge] = 1 / (1 + np.exp(-np.stack([centre - half, centre + half])))
    low, high = (ends * chance).sum(axis=1) / chance.sum()
    return Expected(low=float(low), high=float(high), how=FORMULA)


def _plenty(share: Share, clusters: int) -> bool:
    """Whether so many clusters have an event, and lack one, that the ends at the guess are the mean ends."""
    if clusters > _SIMULATED:
        return True
    m, p = share.per_cluster / share.weighting, share.value
    return clusters * min(_any(p, m, share.correlation), _any(1 - p, m, share.correlation)) > ENOUGH


def _any(p: float, m: float, correlation: float) -> float:
    """The chance of at least one event among ``m`` trials of a cluster."""
    from scipy.special import betaln

    if correlation <= 0:
        return float(1 - (1 - p) ** m)
    if correlation >= 1:
        return p
    size = (1 - correlation) / correlation
    a, b = p * size, (1 - p) * size
    return float(1 - math.exp(betaln(a, b + m) - betaln(a, b)))


def _at_the_guess(share: Share, clusters: int, level: float) -> Expected:
    """The logit interval at the guess, with t on clusters − 1."""
    p = share.value
    se = math.sqrt(share.design_effect / (clusters * share.per_cluster * p * (1 - p)))
    half = intervals.t_quantile(0.5 + level / 2, clusters - 1) * se
    centre = math.log(p) - math.log1p(-p)
    low, high = (intervals.back(centre + end, Scale.LOGIT) for end in (-half, half))
    return Expected(low=low, high=high, how=FORMULA)


@lru_cache(maxsize=512)
def _simulated(
    p: float,
    correlation: float,
    sizes: tuple[tuple[int, int], ...],
    per_cluster: float,
    weighting: float,
    clusters: int,
    level: float,
    seed: int,
    most: int,
) -> Expected:
    """Mean ends over data sets that the engine of the audit makes intervals of.

    The first clusters of more are those of fewer (each quantity has its own stream), so that the half width
    hardly jumps from one number of clusters to the next.
    """
    runs = int(min(max(_CLUSTERS // clusters, _RUNS[0]), most))
    streams = [np.random.default_rng([seed, i]) for i in range(4)]
    shape = (clusters, runs)
    if sizes[0][1]:
        cumulative = np.cumsum([c for _, c in sizes]) / sum(c for _, c in sizes)
        place = np.searchsorted(cumulative, streams[0].random(shape), side="right")
        m = np.array([s for s, _ in sizes])[np.minimum(place, len(sizes) - 1)]
    else:
        whole = math.floor(per_cluster)
        m = whole + (streams[0].random(shape) < per_cluster - whole)
    if weighting > 1:  # as many equally weighted responses as say as much
        kept = m / weighting
        m = np.floor(kept) + (streams[1].random(shape) < kept - np.floor(kept))
        m = m.astype(np.int64)
    if correlation <= 0:
        chance = np.full(shape, p)
    elif correlation >= 1:
        chance = (streams[2].random(shape) < p).astype(np.float64)
    else:
        size = (1 - correlation) / correlation
        chance = streams[2].beta(p * size, (1 - p) * size, shape)
    events = streams[3].binomial(m, chance)
    cells = np.stack([events, m - events, m], axis=-1).astype(np.int64)
    part = Part(
        tally=of_rows(cells),
        asks=((side_by_side(S_RATE), tuple(Key(line=str(i)) for i in range(runs))),),
        given=_GIVEN,
    )
    made = estimates([part], Settings(level=level))
    ends = np.array([(e.interval.low, e.interval.high) for e in made if e.interval is not None])
    if not len(ends):
        return Expected(low=math.nan, high=math.nan, how=SIMULATION)
    low, high = ends.mean(axis=0)
    error = float(np.std(ends[:, 1] - ends[:, 0]) / 2 / math.sqrt(len(ends)))
    return Expected(low=float(low), high=float(high), how=SIMULATION, error=error)


def clusters_for_share(
    share: Share,
    within: float,
    *,
    level: float = 0.95,
    most: int = MOST_CLUSTERS,
    seed: int = 0,
) -> Needed:
    """The clusters with which an audit is expected to give the share within ± ``within``.

    ``within`` is half the width of the default interval, in 0–1, as :func:`expected_interval` has it. The
    smallest number by formula; where half widths are simulated, within 2 % of it, since they tell no closer.
    Where ``most`` clusters do not do, they are what is returned, with the half width that they give.
    Raises :class:`UsageError` for guesses that are no shares.
    """
    check_share(share.value, share.name)
    if not 0 < within < 1:
        raise UsageError(f"A half width of {within} is not between 0 and 1.")
    most = max(most, FEWEST_CLUSTERS)

    def expected(clusters: int) -> Expected:
        return expected_interval(share, clusters, level, seed=seed)

    found = _around(_start(share, within, level, most), expected, within, most)
    clusters = most if found is None else found
    best = expected(clusters)
    return Needed(
        number=clusters,
        reached=best.half_width,
        met=found is not None,
        how=best.how,
        tried=most,
        low=best.low,
        high=best.high,
    )


def _start(share: Share, within: float, level: float, most: int) -> int:
    """Where the search begins: what the ends at the guess would need."""
    if not 0 < share.value < 1:
        return FEWEST_CLUSTERS
    found = fewest(
        lambda n: _at_the_guess(share, n, level).half_width <= within, FEWEST_CLUSTERS, most
    )
    return most if found is None else found


def _around(
    start: int, expected: Callable[[int], Expected], within: float, most: int
) -> int | None:
    """The smallest number that does, searched from ``start`` on in both directions."""

    def holds(n: int) -> bool:
        return expected(n).half_width <= within

    low = high = start
    if holds(start):
        while low > FEWEST_CLUSTERS and holds(low):
            high, low = low, max(FEWEST_CLUSTERS, min(low - 1, int(low * 0.85)))
        if holds(low):
            return low
    else:
        while high < most:
            low, high = high, min(most, max(high + 1, int(high * 1.2)))
            if holds(high):
                break
        else:
            return None
    while high - low > (max(1, int(0.02 * high)) if expected(high).how == SIMULATION else 1):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# --- the answer of a question about a share -----------------------------------------------------


def shares_of(name: str, stated: float | None, guesses: Guesses, of: Pilot | None) -> list[Share]:
    """The shares of this name: the pilot's, or the stated one in clusters like the pilot's."""
    found = [s for s in of.shares if s.name == name] if of is not None else []
    if stated is not None:
        found = [
            Share(name=name, value=stated)
            if not found
            else replace(
                found[0], value=stated, trials=0.0, clusters=0, grader="", class_="", cut=""
            )
        ]
    if guesses.cluster_size is not None:
        found = [replace(s, per_cluster=guesses.cluster_size, sizes=()) for s in found]
    if guesses.correlation is not None:
        found = [replace(s, correlation=guesses.correlation) for s in found]
    return found


def share_answer(share: Share, guesses: Guesses, *, what: str, rest: Text = ()) -> Answer:
    """The clusters that a share needs, in the words of the plan. ``what`` are its trials."""
    most = guesses.most or MOST_CLUSTERS
    # Two figures of what is wanted, and at least one decimal place.
    digits = max(1, 1 - math.floor(math.log10(100 * guesses.within)))
    needed = clusters_for_share(
        share, guesses.within, level=guesses.level, most=most, seed=guesses.seed
    )
    if _independent(share):
        guess = say(
            "{value}; every one of the {what} is its own cluster",
            value=percent(share.value),
            what=what,
        )
    else:
        guess = say(
            "{value}; {size} {what} in a cluster, correlation {rho}",
            value=percent(share.value),
            what=what,
            size=f"{share.per_cluster:.3g}",
            rho=number(share.correlation, 2),
        )
    if share.weighting > 1:
        guess = (
            *guess,
            f"; the weights are unequal: 100 count as {100 / share.weighting:.0f} of equal weight",
        )
    between = ends(needed.low, needed.high, digits)
    return Answer(
        statistic=f"clusters_for_{share.name.replace(' ', '_')}",
        question=f"{share.name.capitalize()} within ± {points(guesses.within, digits)}",
        guess=(*guess, *rest),
        needed=needed,
        unit="clusters",
        labels=math.ceil(needed.number * share.per_cluster),
        gives=f"± {points(needed.reached, digits)} ({between})",
        short=f"± {100 * needed.reached:.{digits}f} ({between})",
        whose=whose(share),
        key=Key(grader=share.grader, class_=share.class_, cut=share.cut),
        curve=share,
    )


def ends(low: float, high: float, digits: int = 1) -> str:
    """An interval to expect in words: ``7.3 to 13.4 %``."""
    return f"{100 * low:.{digits}f} to {percent(high, digits)}"


def about_shares(made: Sequence[Answer], guesses: Guesses) -> str:
    """How half widths are made, once for all questions about a share."""
    if not made:
        return ""
    return (
        "Half widths are the mean ones of the default interval of an audit: jackknife-t on the logit scale, the "
        "beta interval at the edge; clusters enter by their sizes and correlation. By formula where responses are "
        "independent or events many, else over simulated data sets."
    )
