"""Labels on a drawn sample: what design weights cost, and a stratified proportion with its intervals.

People label a sample, drawn by stratum; weights bring it back to the whole. How much such a sample
says is told by Kish's effective number of responses; the stratified proportion is the plain
function of the textbook, with every interval that surveys use and an honest one at the edge.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voirdire.document import Block, Column, Kind, Table, cell
from voirdire.errors import InputError, UndefinedWarning
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.intervals import clopper_pearson, normal_quantile, t_quantile
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.wording import Name

__all__ = ["kish_effective_n", "stratified_proportion"]

KISH = Estimand(
    name="kish_n",
    title="Effective responses (Kish)",
    question="How many equally weighted responses would say as much as the grader’s weighted ones?",
    describes=Describes.BANK,
    keys=("grader",),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    needs=("label", "weight"),
    low=0,
    reading="It counts what unequal weights cost; what strata save and clusters cost is not in it.",
    moves_with=("the design weights",),
    undefined_when="all weights are zero",
    source=Source(text="Kish 1965, Survey Sampling, p. 258"),
    formula=r"n_{\text{eff}} = \frac{\left(\sum_{i} w_{i}\right)^{2}}{\sum_{i} w_{i}^{2}}",
    conventions=(
        "w_i: the design weights of the responses that the grader could be read on. It is not the "
        "design effect that survey packages print, which has strata and clusters in it."
    ),
)


def _kish(cells: Array, given: Given) -> Array:
    """(Σ w)² / Σ w² from the sums of weights and of their squares, ``(..., 2)``."""
    return np.asarray(cells[..., :1] ** 2 / cells[..., 1:])


def _labels(cells: Array, given: Given) -> Array:
    return np.asarray(cells[..., :1])


S_KISH = Statistic(estimand=KISH, solve=_kish, n=_labels)


def parts(scene: Scene) -> Iterable[Part]:
    grid = scene.grid
    if grid is None or grid.weights is None or grid.frequency:
        return
    for grader in scene.names:
        rows = np.flatnonzero(grid.column(grader) >= 0)
        if not len(rows):
            continue
        cells = np.repeat(np.array([0, 1]), len(rows))
        # Each amount is multiplied by the weight: 1 gives the weight, the weight gives its square.
        amounts = np.concatenate([np.ones(len(rows)), grid.weights[rows]])
        tally = scene.counted(np.tile(rows, 2), cells, (2,), amounts=amounts)
        yield Part(tally=tally, asks=((S_KISH, (Key(grader=grader),)),))


# --- plain functions ----------------------------------------------------------------------------


def kish_effective_n(weights: Any) -> float:
    """How many equally weighted responses say as much as these: (Σ w)² / Σ w².

    ``weights`` is ``(n,)``, from 0. nan with an ``UndefinedWarning`` where all are zero; raises
    :class:`InputError` for a weight that is negative or missing. Source: Kish 1965, Survey
    Sampling, p. 258.

    >>> kish_effective_n([1, 1, 1, 1])
    4.0
    """
    w = np.asarray(weights, dtype=np.float64).reshape(-1)
    _check_weights(w)
    squares = float((w**2).sum())
    if not squares > 0:
        warnings.warn(KISH.undefined_when, UndefinedWarning, stacklevel=2)
        return math.nan
    return float(w.sum()) ** 2 / squares


def _check_weights(w: Array) -> None:
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise InputError(f"weights must be numbers from 0: number {bad[0] + 1} is {w[bad[0]]}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class StratifiedProportion:
    """A proportion estimated from a stratified sample, with what it rests on.

    ``intervals`` holds ``(low, high)`` by name: ``wald_z``, ``wald_t``, ``logit``, ``likelihood``,
    ``asin`` and ``beta`` (Korn and Graubard); (nan, nan) where one cannot be said. ``edge`` is
    empty, or says why only ``beta`` stands and what it was made of. ``total`` is the estimated
    number in the population. ``reason`` says why ``se`` and intervals (or all) are nan.
    """

    estimate: float
    se: float
    df: int
    deff: float
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    total: float
    total_se: float
    n: int
    kish_n: float
    edge: str = ""
    reason: str = ""


INTERVALS = ("wald_z", "wald_t", "logit", "likelihood", "asin", "beta")
UNSAID = (math.nan, math.nan)


def stratified_proportion(
    y: Any,
    stratum: Any,
    sizes: Mapping[Any, float] | Sequence[float],
    *,
    fpc: bool = True,
    level: float = 0.95,
) -> StratifiedProportion:
    """The share of ones in a population from a sample drawn by stratum.

    ``y`` holds 0 and 1 (nan: not readable, left out), ``stratum`` the stratum of each, both
    ``(n,)``; ``sizes`` says how many responses each stratum of the population holds, by name or in
    the order of the sorted strata. The estimate is Σ N_h/N · mean_h; its variance
    Σ (N_h/N)² (1 − n_h/N_h) s_h²/n_h, without the bracket where ``fpc`` is false (a sample that is
    to speak of responses beyond these). t has n − strata degrees of freedom.

    A stratum that is sampled whole adds no variance under ``fpc``. Where no stratum varies, no
    design effect can be estimated: then ``beta`` is the exact interval on Kish's effective number
    (one-sided at 0 and 1, brought down for the degrees of freedom), all others are nan, and
    ``edge`` says so. A stratum with one response of several leaves ``se`` nan, with a ``reason``;
    one without a readable response leaves the estimate nan.

    ``deff`` is the variance over that of a simple random sample of the same size without
    replacement. Raises :class:`InputError` for input that is no sample of these strata.

    Source: Cochran 1977, Sampling Techniques, p. 107; the intervals as in R survey 4.1
    (svyciprop); ``likelihood`` is the Rao–Scott scaled deviance, solved and not interpolated; Korn
    and Graubard 1998, Survey Methodology 24, p. 193.

    >>> found = stratified_proportion([0, 1, 1, 1], ["a", "a", "b", "b"], {"a": 30, "b": 10})
    >>> found.estimate
    0.625
    """
    values, place, population = _sample(y, stratum, sizes)
    strata = len(population)
    count = np.bincount(place, minlength=strata).astype(np.float64)
    n, df = len(values), len(values) - strata
    share = population / population.sum()
    size = float(population.sum())
    unknown: dict[str, Any] = {
        "se": math.nan,
        "df": df,
        "deff": math.nan,
        "intervals": dict.fromkeys(INTERVALS, UNSAID),
        "total_se": math.nan,
        "n": n,
    }
    if (count == 0).any():
        reason = "a stratum of the population has no readable response in the sample"
        warnings.warn(reason, UndefinedWarning, stacklevel=2)
        return StratifiedProportion(
            estimate=math.nan, total=math.nan, kish_n=math.nan, reason=reason, **unknown
        )
    mean = np.bincount(place, weights=values, minlength=strata) / count
    p = float(share @ mean)
    each = (population / count)[place]
    known: dict[str, Any] = {"total": size * p, "kish_n": kish_effective_n(each)}
    whole = fpc & (count == population)
    if (whole | (count > 1)).all():
        squares = np.bincount(place, weights=(values - mean[place]) ** 2, minlength=strata)
        spread = squares / np.maximum(count - 1, 1) / count
        variance = float((share**2 * (1 - fpc * count / population) * spread).sum())
    else:
        reason = "a stratum has one response only, which says nothing of how it varies"
        warnings.warn(reason, UndefinedWarning, stacklevel=2)
        return StratifiedProportion(estimate=p, reason=reason, **known, **unknown)
    simple = p * (1 - p) / (n - 1) * (size - n) / size if n > 1 else math.nan
    made, edge = _intervals(p, variance, n, df, known["kish_n"], bool(whole.all()), level)
    return StratifiedProportion(
        estimate=p,
        se=math.sqrt(variance),
        df=df,
        deff=variance / simple if simple > 0 else math.nan,
        intervals=made,
        total_se=size * math.sqrt(variance),
        n=n,
        edge=edge,
        **known,
    )


def _sample(y: Any, stratum: Any, sizes: Any) -> tuple[Array, Array, Array]:
    """Readable values, the place of their stratum, and the population's size by stratum."""
    values = np.asarray([math.nan if v is None else float(v) for v in y], dtype=np.float64)
    names = list(stratum)
    if len(names) != len(values):
        raise InputError(f"y has {len(values)} values and stratum {len(names)}.")
    if not isinstance(sizes, Mapping):
        order = sorted(set(names))
        if len(order) != len(sizes):
            raise InputError(f"sizes has {len(sizes)} strata, the sample {len(order)}.")
        sizes = dict(zip(order, sizes, strict=True))
    strange = [s for s in names if s not in sizes]
    if strange:
        raise InputError(f"sizes does not say how many responses the stratum {strange[0]!r} holds.")
    population = np.array([float(v) for v in sizes.values()])
    readable = ~np.isnan(values)
    if not np.isin(values[readable], (0.0, 1.0)).all():
        raise InputError("y holds something other than 0 and 1.")
    places = {s: i for i, s in enumerate(sizes)}
    place = np.array([places[s] for s in names], dtype=np.int64)[readable]
    count = np.bincount(place, minlength=len(population))
    for name, held, drawn in zip(sizes, population, count, strict=True):
        if not (math.isfinite(held) and held > 0 and held >= drawn):
            raise InputError(
                f"the stratum {name!r} has {drawn} responses in the sample and {held:g} in all."
            )
    return values[readable], place, population


def _intervals(
    p: float, variance: float, n: int, df: int, kish: float, complete: bool, level: float
) -> tuple[dict[str, tuple[float, float]], str]:
    if complete:
        return dict.fromkeys(INTERVALS, (p, p)), "every stratum is sampled whole: this is the share"
    if df < 1:
        return dict.fromkeys(INTERVALS, UNSAID), "there are no more responses than strata"
    tail = 0.5 + level / 2
    t = t_quantile(tail, df)
    few = (t_quantile(tail, n - 1) / t) ** 2
    made = dict.fromkeys(INTERVALS, UNSAID)
    if not variance > 0:
        made["beta"] = clopper_pearson(p * kish * few, kish * few, level)
        sided = "one-sided, " if p in (0.0, 1.0) else ""
        return made, (
            "no stratum varies, so no design effect can be estimated: the beta interval is "
            f"{sided}on Kish’s effective number of responses"
        )
    se, slope = math.sqrt(variance), p * (1 - p)
    z = normal_quantile(tail)
    made["wald_z"] = (max(p - z * se, 0.0), min(p + z * se, 1.0))
    made["wald_t"] = (max(p - t * se, 0.0), min(p + t * se, 1.0))
    centre, half = math.log(p / (1 - p)), t * se / slope
    made["logit"] = (1 / (1 + math.exp(half - centre)), 1 / (1 + math.exp(-half - centre)))
    centre, half = math.asin(math.sqrt(p)), t * se / (2 * math.sqrt(slope))
    low, high = max(centre - half, 0.0), min(centre + half, math.pi / 2)
    made["asin"] = (math.sin(low) ** 2, math.sin(high) ** 2)
    effective = slope / variance * few
    made["beta"] = clopper_pearson(p * effective, effective, level)
    made["likelihood"] = _by_deviance(p, t * t * variance / slope * n / (n - 1))
    return made, ""


def _by_deviance(p: float, limit: float) -> tuple[float, float]:
    """Where the deviance of one response, 2 (p ln(p/q) + (1 − p) ln((1 − p)/(1 − q))), is ``limit``."""
    return _below(p, limit), 1 - _below(1 - p, limit)


def _below(p: float, limit: float) -> float:
    """The share below ``p`` at which the deviance is ``limit``; 0 where it is too small to write."""
    from scipy.optimize import brentq

    def beyond(q: float) -> float:
        return 2 * (p * math.log(p / q) + (1 - p) * (math.log1p(-p) - math.log1p(-q))) - limit

    low = p
    while beyond(low) < 0:
        low /= 2
        if low < 1e-300:
            return 0.0
    return float(brentq(beyond, low, min(2 * low, p), xtol=1e-300, rtol=1e-14))


# --- the report ---------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    found = [
        e
        for e in estimates.of("kish_n", slice=scene.slice)
        if e.key.grader in scene.names and e.number is not None
    ]
    if not any(e.n is not None and (e.number or 0) < e.n * (1 - 1e-9) for e in found):
        return ()
    return (
        Table(
            title="What the weights cost",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title="labels", kind=Kind.COUNT),
                Column(title="effective (Kish)", kind=Kind.COUNT),
            ),
            rows=tuple(
                (cell(Name(e.key.grader)), cell(e.n, Kind.COUNT), cell(e, Kind.COUNT))
                for e in found
            ),
            note=(
                "As many equally weighted responses would say as much. Strata and clusters are not "
                "in this number; the intervals take them into account.",
            ),
        ),
    )


FAMILY = Family(
    name="survey",
    statistics=(S_KISH,),
    parts=parts,
    section="What each grader says",
    order=12,
    blocks=blocks,
)
