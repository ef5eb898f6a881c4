"""From a tally to estimates: values, intervals and tests, the same way for every statistic.

``auto`` is the delete-one-cluster jackknife with Student's t on clusters − strata degrees of
freedom, on the scale that suits the estimand; at the edge of a share it is the beta interval on
the effective sample size. ``bootstrap`` is the percentile interval of the exact multinomial
cluster bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voirdire import intervals
from voirdire.estimand import Scale
from voirdire.estimate import Estimate, Interval, Key, Undefined
from voirdire.options import Options
from voirdire.resampling import TooManyRows, drawn_totals, left_out
from voirdire.stats.base import Given, Part, Statistic
from voirdire.tally import Tally, summed

Array = np.ndarray[Any, Any]
Left = tuple[Array, Array, Array]  # totals without a cluster, how many such clusters, their stratum

KEPT_CELLS = 1 << 23  # of the jackknife's totals, up to which they are kept for all statistics
FEWEST_CLUSTERS = 3  # below this no interval is given
FEWEST_EVENTS = 5  # clusters with an event (and with none) below which a share is at its edge
UNDEFINED_SHARE = 0.01  # of replicates or jackknife values, above which there is no interval
NOISE = 1e-9  # of the value (at least of 1), up to which a width is rounding

NOT_PRINTED = "a count that it needs is not printed"
FEW_EVENTS = f"a rate in it rests on fewer than {FEWEST_EVENTS} clusters"
NO_WEIGHT = "all weights are zero"
WHOLE_POPULATION = "the whole population was labelled: nothing is left to chance"
ALL_THE_SAME = "all clusters say the same"
AT_ITS_LEAST = "it is {least:g}, the least it can be, whichever clusters are taken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How intervals are made.

    ``sampled`` is the share of its population that each stratum's responses are, by the stratum's
    code, for the finite population correction: variances within a stratum count 1 − share.
    """

    interval: str = "auto"
    level: float = 0.95
    replicates: int = 2000
    seed: int = 0
    sampled: tuple[tuple[int, float], ...] = ()

    @classmethod
    def of(cls, options: Options) -> Settings:
        return cls(
            interval=options.interval,
            level=options.level,
            replicates=options.replicates,
            seed=options.seed,
        )


def estimates(
    parts: Iterable[Part], settings: Settings, *, slice_: str = "", with_intervals: bool = True
) -> list[Estimate]:
    """The estimates of all parts, in order. ``slice_`` is written into their keys."""
    made: list[Estimate] = []
    for part in parts:
        drawn: list[Array] | None = None
        left: list[Left] | None = None
        if with_intervals and _wants_interval(part):
            if settings.interval == "bootstrap":
                drawn = _draw(part.tally, settings)
            if drawn is None:
                left = _leave_out(part)
        for statistic, keys in part.asks:
            keyed = [_in_slice(k, slice_) for k in keys]
            if part.undefined:
                made += [_unsaid(statistic, key, part) for key in keyed]
                continue
            made.extend(_solved(statistic, keyed, part, settings, drawn, left, with_intervals))
    return made


def _wants_interval(part: Part) -> bool:
    return (
        part.tally is not None
        and not part.no_interval
        and not part.undefined
        and any(s.estimand.scale is not Scale.NONE for s, _ in part.asks)
    )


def _unsaid(statistic: Statistic, key: Key, part: Part) -> Estimate:
    return Estimate(
        estimand=statistic.estimand,
        key=key,
        value=Undefined(part.undefined),
        clusters=part.tally.count if part.tally is not None else None,
        listed=statistic.listed,
    )


def _leave_out(part: Part) -> list[Left] | None:
    """The jackknife's totals, once for all statistics that are solved on them; ``None`` if too many."""
    tally = part.tally
    assert tally is not None
    if len(part.asks) < 2 or tally.rows.size > KEPT_CELLS or tally.count < FEWEST_CLUSTERS:
        return None
    return list(left_out(tally))


def _draw(tally: Tally | None, settings: Settings) -> list[Array] | None:
    if tally is None or tally.count < FEWEST_CLUSTERS or settings.sampled:
        return None  # draws with replacement know no finite population: the jackknife serves
    try:
        return list(drawn_totals(tally, replicates=settings.replicates, seed=settings.seed))
    except TooManyRows:
        return None  # the jackknife serves, and ``method`` says so


def _in_slice(key: Key, slice_: str) -> Key:
    if not slice_ or key.slice:
        return key
    return Key(
        grader=key.grader,
        other=key.other,
        class_=key.class_,
        to_class=key.to_class,
        line=key.line,
        cut=key.cut,
        slice=slice_,
    )


def _solved(
    statistic: Statistic,
    keys: Sequence[Key],
    part: Part,
    settings: Settings,
    drawn: list[Array] | None,
    left: list[Left] | None,
    with_intervals: bool,
) -> list[Estimate]:
    tally, given = part.tally, part.given
    totals = tally.total if tally is not None else part.totals
    assert totals is not None
    size = tally.size if tally is not None else totals
    with np.errstate(all="ignore"):
        values = _outputs(
            statistic.solve(size if statistic.unweighted else totals, given), len(keys)
        )
        n = _outputs(statistic.n(size, given), len(keys))
        p = _tests(statistic, part, len(keys))
        reasons = statistic.reason(totals, given) if statistic.reason else None
    made_intervals: list[tuple[Interval | None, str]]
    rare: dict[int, Interval] = {}
    if not with_intervals or statistic.estimand.scale is Scale.NONE:
        made_intervals = [(None, "")] * len(keys)
    elif part.no_interval:
        made_intervals = [(None, part.no_interval)] * len(keys)
    elif tally is None:
        with np.errstate(all="ignore"):
            made_intervals = _from_counts(statistic, totals, given, values, n, settings)
    else:
        with np.errstate(all="ignore"):
            made_intervals = _from_tally(
                statistic, tally, given, values, settings, drawn, left, rare
            )
    results = []
    for i, key in enumerate(keys):
        value: float | Undefined = float(values[i])
        interval, why = made_intervals[i]
        if not math.isfinite(values[i]):
            reason = reasons[i] if reasons and reasons[i] else statistic.estimand.undefined_when
            if tally is None and np.isnan(totals).any() and not (reasons and reasons[i]):
                reason = NOT_PRINTED
            if tally is not None and size.any() and not totals.any():
                reason = NO_WEIGHT
            value, interval, why = Undefined(reason), None, ""
        results.append(
            Estimate(
                estimand=statistic.estimand,
                key=key,
                value=value,
                interval=interval,
                n=float(n[i]) if math.isfinite(n[i]) else None,
                clusters=tally.count
                if tally is not None
                else part.clusters[i]
                if part.clusters is not None
                else None,
                p=float(p[i]) if p is not None and math.isfinite(p[i]) else None,
                no_interval=why,
                edge=rare.get(i) if interval is not None else None,
                listed=statistic.listed,
            )
        )
    return results


def _outputs(values: Array, length: int) -> Array:
    """Values as ``(outputs,)`` float64; one value stands for all outputs."""
    array = np.asarray(values, dtype=np.float64).reshape(-1)
    return np.broadcast_to(array, (length,)) if array.size == 1 else array


def _tests(statistic: Statistic, part: Part, length: int) -> Array | None:
    """One-sided p-values for a cluster total below zero: linearised variance, t on clusters − strata.

    Near a count of zero the linearised variance is far too small; ``null_variance`` brings it to what
    it would be under the hypothesis, as a score test does.
    """
    if part.tally is None:
        if statistic.counts_p is None or part.totals is None:
            return None
        return _outputs(statistic.counts_p(part.totals, part.given), length)
    if statistic.contrast is None:
        return None
    tally = part.tally
    strata = np.unique(tally.strata)
    if tally.count - len(strata) < 1 or tally.count < FEWEST_CLUSTERS:
        return np.full(length, math.nan)
    amount = statistic.contrast(tally.rows.astype(np.float64), part.given)
    amount = amount.reshape(len(tally.rows), -1)
    variance = _total_variance(amount, tally)
    if statistic.null_variance is not None:
        variance = variance * _outputs(statistic.null_variance(tally.size, part.given), length)
    total = summed(tally.clusters, amount)
    t = np.where(variance > 0, total / np.sqrt(variance), np.nan)
    df = tally.count - len(strata)
    return np.array([intervals.t_tail(x, df) if math.isfinite(x) else math.nan for x in t])


def _total_variance(
    amount: Array, tally: Tally, sampled: tuple[tuple[int, float], ...] = ()
) -> Array:
    """The with-replacement variance of a cluster total, within strata. ``amount``: (rows, outputs)."""
    variance = np.zeros(amount.shape[1])
    for stratum in np.unique(tally.strata):
        inside = tally.strata == stratum
        weight = tally.clusters[inside].astype(np.float64)
        clusters = weight.sum()
        if clusters < 2:
            continue
        part = amount[inside]
        mean = summed(weight, part) / clusters
        rest = 1 - dict(sampled).get(int(stratum), 0.0)
        variance += rest * clusters / (clusters - 1) * summed(weight, (part - mean) ** 2)
    return variance


def _from_counts(
    statistic: Statistic,
    totals: Array,
    given: Given,
    values: Array,
    n: Array,
    settings: Settings,
) -> list[tuple[Interval | None, str]]:
    """Intervals that rest on independent responses, for a table of counts."""
    if statistic.share is None:
        why = "the table does not say which responses the graders share"
        return [(None, why)] * len(values)
    events, trials = (np.broadcast_to(a, values.shape) for a in statistic.share(totals, given))
    made: list[tuple[Interval | None, str]] = []
    for i in range(len(values)):
        x, m = float(events[i]), float(trials[i])
        if not (math.isfinite(x) and m > 0):
            made.append((None, ""))
            continue
        if statistic.from_share is None:
            low, high = intervals.wilson(x, m, settings.level)
        else:
            low, high = intervals.clopper_pearson(x, m, settings.level)
            low, high = _mapped(statistic, low, high, totals, given, i, len(values))
        made.append(
            (
                Interval(low=low, high=high, level=settings.level, method=statistic.counts_method),
                "",
            )
        )
    return made


def _mapped(
    statistic: Statistic,
    low: float,
    high: float,
    totals: Array,
    given: Given,
    place: int,
    length: int,
) -> tuple[float, float]:
    """The ends of a share's interval as values of the statistic made of it."""
    if statistic.from_share is None:
        return low, high
    ends = []
    for end in (low, high):
        share = np.full(length, end)
        ends.append(float(_outputs(statistic.from_share(share, totals, given), length)[place]))
    return min(ends), max(ends)


def _from_tally(
    statistic: Statistic,
    tally: Tally,
    given: Given,
    values: Array,
    settings: Settings,
    drawn: list[Array] | None,
    left: list[Left] | None,
    rare: dict[int, Interval],
) -> list[tuple[Interval | None, str]]:
    """The interval of each output; ``rare`` takes the edge intervals that percentiles stand before."""
    outputs = len(values)
    strata = np.unique(tally.strata)
    if tally.count < FEWEST_CLUSTERS:
        return [(None, f"fewer than {FEWEST_CLUSTERS} clusters")] * outputs
    if len(strata) > 1:
        alone = [s for s in strata if tally.clusters[tally.strata == s].sum() < 2]
        if alone:
            return [(None, "a stratum has one cluster only")] * outputs
    edge = _edges(statistic, tally, given, values, settings)
    if drawn is not None:
        made = _percentiles(statistic, drawn, given, outputs, settings)
    else:
        made = _jackknife(statistic, tally, given, values, settings, len(strata), left)
    if statistic.events is not None:
        events = _outputs(statistic.events(tally.rows, tally.clusters, given), outputs)
        made = [
            m if n >= FEWEST_EVENTS else (None, FEW_EVENTS)
            for m, n in zip(made, events, strict=True)
        ]
    if edge is None:
        return made
    for i in range(outputs):
        interval, why = made[i]
        flat = interval is not None and not interval.high > interval.low
        if interval is None and why != ALL_THE_SAME:
            continue  # too many replicates are undefined: there is no interval at all
        # The bootstrap's own percentiles stand, as both papers print them, unless they have no width.
        if flat or interval is None or (edge.at_edge[i] and drawn is None):
            at_edge = _edge_interval(statistic, tally, given, i, edge, settings, len(strata))
            made[i] = (at_edge, "" if at_edge is not None else why or ALL_THE_SAME)
        elif edge.at_edge[i]:
            at_edge = _edge_interval(statistic, tally, given, i, edge, settings, len(strata))
            if at_edge is not None:
                rare[i] = at_edge
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edges:
    """For each output of a share: whether it is at the edge, and what the edge interval needs."""

    at_edge: Array
    events: Array
    trials: Array
    variance: Array
    size: Array  # trials, or Kish's effective number of them where they are weighted
    clusters: Array  # with a trial
    independent: Array


def _edges(
    statistic: Statistic, tally: Tally, given: Given, values: Array, settings: Settings
) -> _Edges | None:
    """Where a share is at its edge; ``None`` for statistics that are no share."""
    if statistic.share is None:
        return None
    outputs = len(values)
    rows = tally.rows.astype(np.float64)
    events, trials = statistic.share(rows, given)
    shape = (len(rows), outputs)
    events = np.broadcast_to(events.reshape(len(rows), -1), shape)
    trials = np.broadcast_to(trials.reshape(len(rows), -1), shape)
    clusters = tally.clusters.astype(np.float64)
    with_event = summed(clusters, events > 0)
    with_other = summed(clusters, trials - events > 1e-12)
    x, n = summed(clusters, events), summed(clusters, trials)
    residual = (events - trials * (x / n)) / n
    variance = _total_variance(residual, tally, settings.sampled)
    size = n
    if tally.weighted:
        plain = statistic.share(tally.sizes.astype(np.float64), given)[1].reshape(len(rows), -1)
        plain = np.broadcast_to(plain, shape)
        mean_weight = np.where(plain > 0, trials / np.where(plain > 0, plain, 1), 0.0)
        size = n**2 / summed(clusters, plain * mean_weight**2)
    at_edge = (with_event < FEWEST_EVENTS) | (with_other < FEWEST_EVENTS)
    # Trials that stand each in a cluster of its own are independent: the binomial is exact there.
    alone = np.asarray((trials <= 1).all(axis=0)) & (not tally.weighted)
    return _Edges(
        at_edge=at_edge,
        events=x,
        trials=n,
        variance=variance,
        size=size,
        clusters=summed(clusters, trials > 0),
        independent=alone,
    )


def _edge_interval(
    statistic: Statistic,
    tally: Tally,
    given: Given,
    i: int,
    edge: _Edges,
    settings: Settings,
    strata: int,
) -> Interval | None:
    x, n = float(edge.events[i]), float(edge.trials[i])
    if not n > 0:
        return None
    exact = bool(edge.independent[i])
    if exact:
        low, high = intervals.clopper_pearson(x, n, settings.level)
    else:
        low, high = intervals.korn_graubard(
            x / n,
            float(edge.size[i]),
            float(edge.variance[i]),
            int(edge.clusters[i]),
            max(int(edge.clusters[i]) - strata, 1),
            settings.level,
        )
    low, high = _mapped(statistic, low, high, tally.total, given, i, len(edge.events))
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    bounds = statistic.estimand
    low = low if bounds.low is None else max(low, bounds.low)
    high = high if bounds.high is None else min(high, bounds.high)
    return Interval(
        low=low,
        high=high,
        level=settings.level,
        method="clopper_pearson" if exact else "korn_graubard",
    )


def _jackknife(
    statistic: Statistic,
    tally: Tally,
    given: Given,
    values: Array,
    settings: Settings,
    strata: int,
    left: list[Left] | None,
) -> list[tuple[Interval | None, str]]:
    """Delete-one-cluster jackknife with t, on the estimand's scale or the plain one."""
    outputs = len(values)
    scales = (statistic.estimand.scale, Scale.PLAIN)
    centres = [intervals.forward(values, s) for s in scales]
    lost = np.zeros(outputs)  # clusters without which the value is undefined
    outside = np.zeros(outputs)  # clusters without which it leaves the scale
    variance = np.zeros((2, outputs))
    sums: dict[int, list[Array]] = {}
    for totals, clusters, of in left_out(tally) if left is None else left:
        weight = clusters.astype(np.float64)
        solved = statistic.solve(totals, given).reshape(len(weight), -1)
        finite = np.isfinite(solved)
        lost += summed(weight, ~finite)
        held = sums.setdefault(int(of[0]), [np.zeros(outputs) for _ in range(6)])
        held[0] += weight.sum()
        held[1] += summed(weight, finite)
        for s, scale in enumerate(scales):
            moved = intervals.forward(solved, scale) - centres[s]
            good = np.isfinite(moved)
            if s == 0:
                outside += summed(weight, finite & ~good)
            moved = np.where(good, moved, 0.0)
            held[2 + s] += summed(weight, moved)
            held[4 + s] += summed(weight, moved**2)
    shares = dict(settings.sampled)
    for stratum, (clusters_in, defined, *moments) in sums.items():
        rest = 1 - shares.get(stratum, 0.0)
        for s in range(2):
            spread = moments[2 + s] - moments[s] ** 2 / np.maximum(defined, 1.0)
            # Where all moves are one and the same, what the subtraction leaves is rounding.
            spread = np.where(spread > 1e-12 * moments[2 + s], spread, 0.0)
            variance[s] += rest * (clusters_in - 1) / clusters_in * spread
    df = tally.count - strata
    t = intervals.t_quantile(0.5 + settings.level / 2, df)
    made: list[tuple[Interval | None, str]] = []
    for i in range(outputs):
        if not math.isfinite(values[i]):
            made.append((None, ""))
            continue
        if lost[i] > UNDEFINED_SHARE * tally.count:
            made.append(
                (None, f"without single clusters the value is undefined ({int(lost[i])} of them)")
            )
            continue
        s = 0 if math.isfinite(centres[0][i]) and outside[i] == 0 else 1
        half = t * math.sqrt(variance[s, i])
        # Judged on the plain scale: near an end a stretched one makes much of rounding.
        plain = t * math.sqrt(variance[1, i])
        if not (half > 0 and plain > NOISE * max(1.0, abs(values[i]))):
            whole = bool(shares) and all(f >= 1 for f in shares.values())
            made.append((None, WHOLE_POPULATION if whole else _flat(statistic, values[i])))
            continue
        centre = float(centres[s][i])
        low, high = (
            intervals.back(centre - half, scales[s]),
            intervals.back(centre + half, scales[s]),
        )
        bounds = statistic.estimand
        low = low if bounds.low is None else max(low, bounds.low)
        high = high if bounds.high is None else min(high, bounds.high)
        made.append((Interval(low=low, high=high, level=settings.level, method="jackknife_t"), ""))
    return made


def _flat(statistic: Statistic, value: float) -> str:
    """Why an interval has no width. A value that is cut off below may stay while clusters differ."""
    least = statistic.estimand.low
    if statistic.share is None and least is not None and value == least:
        return AT_ITS_LEAST.format(least=least)
    return ALL_THE_SAME


def _percentiles(
    statistic: Statistic, drawn: list[Array], given: Given, outputs: int, settings: Settings
) -> list[tuple[Interval | None, str]]:
    solved = np.concatenate(
        [statistic.solve(totals, given).reshape(len(totals), -1) for totals in drawn]
    )
    made: list[tuple[Interval | None, str]] = []
    finite_all = np.isfinite(solved)
    ends = intervals.percentiles(solved, settings.level) if finite_all.all() else None
    for i in range(outputs):
        replicates = solved[:, i]
        finite = replicates[finite_all[:, i]]
        lost = len(replicates) - len(finite)
        if lost > UNDEFINED_SHARE * len(replicates):
            made.append((None, f"the value is undefined in {lost} of {len(replicates)} replicates"))
            continue
        low, high = (
            (float(ends[0, i]), float(ends[1, i]))
            if ends is not None
            else intervals.percentile(finite, settings.level)
        )
        if not high - low > NOISE * max(1.0, abs(low)):  # no width, up to rounding
            made.append((None, _flat(statistic, low)))
            continue
        made.append(
            (
                Interval(
                    low=low,
                    high=high,
                    level=settings.level,
                    method="percentile",
                    seed=settings.seed,
                    replicates=settings.replicates,
                ),
                "",
            )
        )
    return made
