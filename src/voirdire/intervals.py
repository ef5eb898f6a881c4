"""Intervals as plain functions of numbers; which one applies is decided in :mod:`voirdire.inference`.

``scipy.special`` is imported inside the functions, so that importing this module stays light.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from voirdire.estimand import Scale

Array = np.ndarray[Any, Any]

# Of responses within a cluster, where no event was seen that could tell. With 1 as the design effect
# a true rate just above the upper end shows no event in up to 15 % of samples instead of 2.5 % (intraclass
# correlation 0.05 to 0.3, 10 to 50 clusters); with this in at most 2.2 % up to a correlation of 0.2.
ASSUMED_CORRELATION = 0.1


def normal_quantile(p: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(p))


def t_quantile(p: float, df: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, p))


def t_tail(t: float, df: float) -> float:
    """P(T ≤ t) for Student's t."""
    from scipy.special import stdtr

    return float(stdtr(df, t))


def wilson(x: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for ``x`` of ``n`` (Wilson 1927, JASA 22, p. 209)."""
    if not n > 0:
        return (math.nan, math.nan)
    z = normal_quantile(0.5 + level / 2)
    p = x / n
    centre = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if x == 0 else (centre - half) / scale
    high = 1.0 if x == n else (centre + half) / scale
    return (max(0.0, low), min(1.0, high))


def clopper_pearson(x: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """The exact binomial interval for ``x`` of ``n`` (Clopper and Pearson 1934, Biometrika 26, p. 404).

    ``x`` and ``n`` may be fractional (an effective sample): the beta quantiles are the same.
    """
    from scipy.special import betaincinv

    if not n > 0:
        return (math.nan, math.nan)
    tail = (1 - level) / 2
    low = 0.0 if x <= 0 else float(betaincinv(x, n - x + 1, tail))
    high = 1.0 if x >= n else float(betaincinv(x + 1, n - x, 1 - tail))
    return (low, high)


def korn_graubard(
    p: float, n: float, variance: float, clusters: int, df: float, level: float = 0.95
) -> tuple[float, float]:
    """The beta interval on the effective sample size (Korn and Graubard 1998, Survey Methodology 24).

    ``variance`` is the cluster-robust variance of ``p``; ``n`` the responses, in so many ``clusters``.
    The effective sample size is ``p(1 − p) / variance``, brought down for the few degrees of freedom
    by ``(t(n − 1) / t(df))²`` and never above ``n``. Where the variance is zero (no events, all
    events, or no variation between clusters) the design effect cannot be estimated; it is taken as
    that of an intraclass correlation of 0.1, and as 1 where every response is its own cluster.
    """
    tail = 0.5 + level / 2
    correction = 1.0
    if clusters < n:
        correction = (t_quantile(tail, max(n - 1, 1)) / t_quantile(tail, max(df, 1))) ** 2
    if variance <= 0 or not 0 < p < 1:
        effective = n / (1 + max(n / clusters - 1, 0) * ASSUMED_CORRELATION)
    else:
        effective = min(n, p * (1 - p) / variance)
    effective = min(n, effective * correction)
    return clopper_pearson(p * effective, effective, level)


def mover(
    one: tuple[float, float, float], other: tuple[float, float, float]
) -> tuple[float, float]:
    """The interval of ``one − other`` from their own, as of independent samples: MOVER.

    Each is ``(value, low, high)``, both at one level. The distances of the ends from the values take
    the place of variances, so that skewed intervals stay skewed. Newcombe 1998, Statistics in Medicine
    17, p. 873 (shares); Zou and Donner 2008, Statistics in Medicine 27, p. 1693.
    """
    (a, a_low, a_high), (b, b_low, b_high) = one, other
    down = math.hypot(a - a_low, b_high - b)
    up = math.hypot(a_high - a, b - b_low)
    return (a - b - down, a - b + up)


def poisson_ratio_p(own: float, other: float, ratio: float) -> float:
    """P(X ≤ own) given own + other, where own / other is ``ratio``: the conditional binomial test.

    Przyborowski and Wilenski 1940, Biometrika 31, p. 313.
    """
    from scipy.special import bdtr

    total = own + other
    if not total > 0:
        return math.nan
    return float(bdtr(own, int(total), ratio / (1 + ratio)))


def percentiles(replicates: Array, level: float = 0.95) -> Array:
    """Percentiles of replicates along the first axis by linear interpolation, ``(2, …)``.

    Quantile type 7 of Hyndman and Fan 1996, The American Statistician 50, p. 363.
    """
    tail = (1 - level) / 2
    return np.asarray(np.quantile(replicates, [tail, 1 - tail], axis=0, method="linear"))


def percentile(replicates: Array, level: float = 0.95) -> tuple[float, float]:
    """The percentiles of one statistic's replicates, ``(replicates,)``."""
    low, high = percentiles(replicates, level)
    return (float(low), float(high))


def forward(x: Array, scale: Scale) -> Array:
    """Values on the scale of the interval; not finite where the scale does not hold them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        match scale:
            case Scale.LOGIT:
                return np.asarray(np.log(x) - np.log1p(-x))
            case Scale.FISHER_Z:
                return np.asarray(np.arctanh(x))
            case Scale.LOG:
                return np.asarray(np.log(x))
            case Scale.LOG_ONE_MINUS:
                return np.asarray(-np.log1p(-x))
            case _:
                return np.asarray(x, dtype=np.float64)


def back(x: float, scale: Scale) -> float:
    """The inverse of :func:`forward`."""
    match scale:
        case Scale.LOGIT:
            return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
        case Scale.FISHER_Z:
            return math.tanh(x)
        case Scale.LOG:
            return math.exp(min(x, 700.0))
        case Scale.LOG_ONE_MINUS:
            return -math.expm1(min(-x, 700.0))
        case _:
            return x
