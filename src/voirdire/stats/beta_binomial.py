"""The beta-binomial model of totals: fits by maximum likelihood, many at once, and by moments.

A total X of K lines is binomial with a share p of its own, and p is Beta(α, β). Fits are made in the
mean μ = α / (α + β) and the correlation between lines ρ = 1 / (α + β + 1). In these the
log-likelihood is a sum of logarithms of linear functions (Griffiths 1973, Biometrics 29, p. 637), so it
needs no gamma function and stays smooth down to ρ = 0, the binomial:

    Σ_r A_r log(μ(1 − ρ) + rρ) + B_r log((1 − μ)(1 − ρ) + rρ) − C_r log(1 − ρ + rρ),

where A_r counts the responses with X > r, B_r those with K − X > r and C_r those with K > r.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any, NamedTuple, TypeVar

import numpy as np

from voirdire.errors import UndefinedWarning

Array = np.ndarray[Any, Any]
R = TypeVar("R")

__all__ = ["beta_binomial_fit", "beta_binomial_gof", "beta_moment_fit"]

# Where a fit stands.
NONE, INSIDE, BINOMIAL, TWO_POINTS = 0, 1, 2, 3

ALL_OR_NOTHING = "every response meets all lines, or every response meets none: there is no spread"
AT_BINOMIAL = (
    "the totals spread no more than a binomial: alpha and beta grow without end (the binomial limit, "
    "where all responses have one share)"
)
AT_TWO_POINTS = "every response meets all lines or none: alpha and beta shrink to 0"
ONE_LINE = "a checklist of one line: the totals cannot tell how far the responses differ"
NO_TOTALS = "there are no totals"

_BLOCK = 1 << 16  # cells of replicates that are worked on at once: they stay in the cache
_MOST_STEPS = 200
_NO_EXCESS = 1e-12  # a moment estimate of ρ up to this is 0 up to rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """Fits of many sets of totals, each array ``(...)``.

    ``state`` says where each stands: ``INSIDE``; ``BINOMIAL`` (no interior maximum: ρ = 0);
    ``TWO_POINTS`` (only totals of 0 and K: ρ = 1); ``NONE`` (no totals, all 0, all K, or one line).
    """

    mean: Array
    rho: Array
    state: Array

    @property
    def alpha(self) -> Array:
        """α, nan where there is no interior maximum."""
        return self._parameter(self.mean)

    @property
    def beta(self) -> Array:
        """β, nan where there is no interior maximum."""
        return self._parameter(1 - self.mean)

    def _parameter(self, share: Array) -> Array:
        inside = self.state == INSIDE
        rho = np.where(inside, self.rho, 1.0)
        return np.where(inside, share * (1 - rho) / rho, np.nan)

    def reliability(self, k: int) -> Array:
        """K / (α + β + K) = Kρ / (1 + (K − 1)ρ): 0 at the binomial limit."""
        return np.asarray(k * self.rho / (1 + (k - 1) * self.rho))


# --- the likelihood -----------------------------------------------------------------------------


def tails(histograms: Array) -> tuple[Array, Array, Array]:
    """A, B and C, ``(..., K)`` each (C: ``(..., 1)``), from histograms of totals ``(..., K + 1)``.

    In shares of the responses, so that the likelihood has one scale whatever their number.
    """
    counts = histograms.astype(np.float64)
    n = counts.sum(-1, keepdims=True)
    share = counts / np.where(n > 0, n, 1.0)
    above = np.flip(np.cumsum(np.flip(share[..., 1:], -1), -1), -1)
    below = np.flip(np.cumsum(share[..., :-1], -1), -1)
    return above, below, np.where(n > 0, 1.0, 0.0)


def fitted(histograms: Array) -> Fits:
    """Maximum-likelihood fits of histograms of totals ``(..., K + 1)``, all at once.

    Counts may be fractional. Safeguarded Newton from the moment estimate to about 1e-12; between
    totals of 0 and K there is an interior maximum just where the totals' variance (ddof 0) is above
    the binomial's (the slope of the likelihood in ρ at ρ = 0 has its sign: Tarone 1979, Biometrika
    66, p. 585; that there is one maximum: Levin and Reeds 1977, Annals of Statistics 5, p. 79).
    """
    lead, k = histograms.shape[:-1], histograms.shape[-1] - 1
    above, below, there = tails(histograms)
    c = np.broadcast_to(there, above.shape)
    fits = fit_tails(*(a.reshape(-1, k) for a in (above, below, c)))
    return Fits(
        mean=fits.mean.reshape(lead), rho=fits.rho.reshape(lead), state=fits.state.reshape(lead)
    )


def fit_tails(a: Array, b: Array, c: Array) -> Fits:
    """The fits of A, B and C, ``(fits, K)``; K is the largest number of lines."""
    count, k = a.shape
    mean = np.full(count, np.nan)
    rho = np.full(count, np.nan)
    state = np.zeros(count, dtype=np.int8)
    step = max(1, _BLOCK // max(k, 1))
    for low in range(0, count, step):
        span = slice(low, low + step)
        mean[span], rho[span], state[span] = _fit_block(a[span], b[span], c[span])
    return Fits(mean=mean, rho=rho, state=state)


def _fit_block(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    lines, met, missed = c.sum(1), a.sum(1), b.sum(1)
    mean = np.where(lines > 0, met / np.where(lines > 0, lines, 1.0), np.nan)
    rho = np.full(len(a), np.nan)
    state = np.full(len(a), NONE, dtype=np.int8)
    several = np.asarray(c[:, 1:].sum(1) > 0)
    spread = several & (met > 0) & (missed > 0)
    # Σx², Σ(k − x)² and Σk² from the tails; their cross product gives Σxk.
    odd = 2 * np.arange(a.shape[1]) + 1.0
    xx, mm, kk = a @ odd, b @ odd, c @ odd
    xk = (kk + xx - mm) / 2
    binomial = mean * (1 - mean)
    pairs = kk - lines
    with np.errstate(all="ignore"):
        excess = (xx - 2 * mean * xk + mean**2 * kk - binomial * lines) / (binomial * pairs)
    none, all_ends = excess <= _NO_EXCESS, np.abs(a[:, 0] + b[:, 0] - c[:, 0]) <= 1e-12 * c[:, 0]
    state[spread & none] = BINOMIAL
    rho[spread & none] = 0.0
    state[spread & ~none & all_ends] = TWO_POINTS
    rho[spread & ~none & all_ends] = 1.0
    inside = np.flatnonzero(spread & ~none & ~all_ends)
    if len(inside):
        mean[inside], rho[inside] = _newton(
            a[inside], b[inside], c[inside], mean[inside], np.clip(excess[inside], 0.0, 0.95)
        )
        state[inside] = INSIDE
    return mean, rho, state


def _newton(a: Array, b: Array, c: Array, mean: Array, rho: Array) -> tuple[Array, Array]:
    """Newton's method in (μ, ρ) on all fits at once; a step that loses likelihood is halved."""
    found_mean, found_rho = mean.copy(), rho.copy()
    place = np.arange(len(mean))
    best = np.full(len(mean), -np.inf)
    at_mean, at_rho = mean, rho  # the last accepted point
    step_mean, step_rho = np.zeros_like(mean), np.zeros_like(rho)
    for _ in range(_MOST_STEPS):
        value, slope, curve = _derivatives(a, b, c, mean, rho)
        lost = value < best - 1e-13 * np.abs(best)
        if lost.any():
            step_mean = np.where(lost, step_mean / 2, step_mean)
            step_rho = np.where(lost, step_rho / 2, step_rho)
        better = ~lost
        at_mean, at_rho = np.where(better, mean, at_mean), np.where(better, rho, at_rho)
        best = np.where(better, value, best)
        new_mean, new_rho = _step(at_mean, at_rho, slope, curve)
        step_mean = np.where(better, new_mean, step_mean)
        step_rho = np.where(better, new_rho, step_rho)
        mean, rho = at_mean + step_mean, at_rho + step_rho
        # Newton doubles the digits: after a step this small the rest is below rounding.
        done = (np.abs(step_rho) <= 1e-8 * at_rho + 1e-15) & (
            np.abs(step_mean) <= 1e-8 * np.minimum(at_mean, 1 - at_mean)
        )
        if done.any():
            found_mean[place[done]], found_rho[place[done]] = mean[done], rho[done]
            on = ~done
            if not on.any():
                return found_mean, found_rho
            place, a, b, c = place[on], a[on], b[on], c[on]
            mean, rho, at_mean, at_rho = mean[on], rho[on], at_mean[on], at_rho[on]
            step_mean, step_rho, best = step_mean[on], step_rho[on], best[on]
    found_mean[place], found_rho[place] = at_mean, at_rho
    return found_mean, found_rho


def _derivatives(
    a: Array, b: Array, c: Array, mean: Array, rho: Array
) -> tuple[Array, tuple[Array, Array], tuple[Array, Array, Array]]:
    """The log-likelihood (without binomial coefficients), its slope and its curvature in (μ, ρ)."""
    r = np.arange(a.shape[1], dtype=np.float64)
    powers = np.stack([np.ones_like(r), r, r * r], axis=1)
    rest, up = (1 - rho)[:, None], rho[:, None] * r
    p = mean[:, None] * rest + up
    q = (1 - mean)[:, None] * rest + up
    s = rest + up
    value = _dot(a, np.log(p)) + _dot(b, np.log(q)) - _dot(c, np.log(s))
    wp, wq, ws = a / p, b / q, c / s
    p1, q1, s1 = wp @ powers[:, :2], wq @ powers[:, :2], ws @ powers[:, :2]
    p2, q2, s2 = (wp / p) @ powers, (wq / q) @ powers, (ws / s) @ powers
    away = 1 - mean
    difference = p1[:, 0] - q1[:, 0]
    slope_mean = (1 - rho) * difference
    slope_rho = (p1[:, 1] - mean * p1[:, 0]) + (q1[:, 1] - away * q1[:, 0]) - (s1[:, 1] - s1[:, 0])
    curve_mean = -((1 - rho) ** 2) * (p2[:, 0] + q2[:, 0])
    curve_rho = (
        -(p2[:, 2] - 2 * mean * p2[:, 1] + mean**2 * p2[:, 0])
        - (q2[:, 2] - 2 * away * q2[:, 1] + away**2 * q2[:, 0])
        + (s2[:, 2] - 2 * s2[:, 1] + s2[:, 0])
    )
    cross = -difference - (1 - rho) * ((p2[:, 1] - mean * p2[:, 0]) - (q2[:, 1] - away * q2[:, 0]))
    return value, (slope_mean, slope_rho), (curve_mean, cross, curve_rho)


def _dot(x: Array, y: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", x, y))


def _step(
    mean: Array, rho: Array, slope: tuple[Array, Array], curve: tuple[Array, Array, Array]
) -> tuple[Array, Array]:
    """Newton's step where the likelihood is concave, else one uphill; never past 0 or 1."""
    g, h = slope
    mm, mr, rr = curve
    determinant = mm * rr - mr * mr
    concave = (mm < 0) & (determinant > 0)
    safe = np.where(concave, determinant, 1.0)
    to_mean = np.where(concave, -(rr * g - mr * h) / safe, g / np.maximum(np.abs(mm), 1e-300))
    to_rho = np.where(concave, -(mm * h - mr * g) / safe, np.where(h > 0, (1 - rho) / 2, -rho / 2))
    room = np.ones_like(mean)
    for at, to in ((mean, to_mean), (rho, to_rho)):
        edge = np.where(to > 0, 1 - at, at)
        room = np.minimum(room, 0.9 * edge / np.maximum(np.abs(to), 1e-300))
    return to_mean * room, to_rho * room


def log_likelihood(a: Array, b: Array, c: Array, mean: Array, rho: Array) -> Array:
    """The log-likelihood of (μ, ρ) without binomial coefficients; ``(fits,)`` from ``(fits, K)``."""
    ends = rho >= 1  # each response meets all lines, with the share μ, or none
    r = np.arange(a.shape[1], dtype=np.float64)
    rest, up = np.where(ends, 1.0, 1 - rho)[:, None], np.where(ends, 0.0, rho)[:, None] * r
    p, q = mean[:, None] * rest + up, (1 - mean)[:, None] * rest + up
    value = _dot(a, np.log(p)) + _dot(b, np.log(q)) - _dot(c, np.log(rest + up))
    at_ends = a[:, 0] * np.log(mean) + b[:, 0] * np.log(1 - mean)
    return np.where(ends, at_ends, value)


@lru_cache(maxsize=64)
def log_binomials(k: int) -> Array:
    """log C(k, x) for x = 0 … k."""
    return np.array([_log_whole(comb(k, x)) for x in range(k + 1)])


def _log_whole(n: int) -> float:
    """The logarithm of a whole number that may be beyond a float."""
    from math import log

    return log(n)


def log_kernels(mean: Array, rho: Array, k: int) -> Array:
    """log E[p^x (1 − p)^(k − x)] for x = 0 … k, ``(..., k + 1)``, under the fitted beta."""
    r = np.arange(k, dtype=np.float64)
    rest, up = (1 - rho)[..., None], rho[..., None] * r

    def sums(first: Array) -> Array:
        return np.concatenate(
            [np.zeros((*mean.shape, 1)), np.cumsum(np.log(first[..., None] * rest + up), -1)], -1
        )

    one = np.log(rest + up).sum(-1, keepdims=True)
    return np.asarray(sums(mean) + np.flip(sums(1 - mean), -1) - one)


def probabilities(mean: Array, rho: Array, k: int) -> Array:
    """P(X = x) for x = 0 … k, ``(..., k + 1)``: beta-binomial, binomial where ρ is 0."""
    return np.asarray(np.exp(log_kernels(mean, rho, k) + log_binomials(k)))


# --- goodness of fit ----------------------------------------------------------------------------


def pooled(observed: Array, expected: Array, least: float) -> tuple[Array, Array]:
    """Adjacent cells pooled upward from 0 until the expected count reaches ``least``.

    A last cell that stays below joins its lower neighbour. Returns observed and expected, ``(cells,)``.
    """
    cells: list[list[float]] = []
    now = [0.0, 0.0]
    for seen, wanted in zip(observed.tolist(), expected.tolist(), strict=True):
        now = [now[0] + seen, now[1] + wanted]
        if now[1] >= least:
            cells.append(now)
            now = [0.0, 0.0]
    if now[1] > 0 or now[0] > 0:
        if cells:
            cells[-1] = [cells[-1][0] + now[0], cells[-1][1] + now[1]]
        else:
            cells.append(now)
    made = np.array(cells, dtype=np.float64).reshape(-1, 2)
    return made[:, 0], made[:, 1]


def chi_square(observed: Array, expected: Array, parameters: int = 2) -> tuple[float, int, float]:
    """χ², its degrees of freedom (cells − 1 − parameters) and p, nan without a degree of freedom."""
    from scipy.special import chdtrc

    chi2 = float(((observed - expected) ** 2 / expected).sum())
    df = len(observed) - 1 - parameters
    return chi2, df, float(chdtrc(df, chi2)) if df > 0 else float("nan")


# --- plain array functions ----------------------------------------------------------------------


class _Fit(NamedTuple):
    alpha: float
    beta: float
    loglik: float


class BetaBinomialFit(_Fit):
    """α, β and the log-likelihood (binomial coefficients included); as attributes also

    ``mean`` (μ, in 0–1), ``rho`` (ρ, in 0–1), ``limit`` (empty; ``"binomial"``; ``"two points"``),
    and ``reliability`` K / (α + β + K) (nan where K differs).
    """

    mean: float
    rho: float
    limit: str
    reliability: float


class _Gof(NamedTuple):
    chi2: float
    df: int
    p: float


class BetaBinomialGof(_Gof):
    """χ², degrees of freedom and p; the pooled cells are in ``observed`` and ``expected``."""

    observed: Array
    expected: Array


def totals_of(totals: Any, k: Any) -> tuple[Array, Array]:
    """Whole totals and their numbers of lines, ``(n,)`` each, without the missing ones; checked."""
    given = np.array(totals, dtype=np.float64).ravel()
    lines = np.broadcast_to(np.asarray(k, dtype=np.float64), given.shape)
    there = ~np.isnan(given)
    x, most = given[there], lines[there]
    if ((most != np.floor(most)) | (most < 1)).any():
        raise ValueError("k must be whole numbers of lines, at least 1")
    wrong = (x < 0) | (x > most) | (x != np.floor(x))
    if wrong.any():
        raise ValueError(f"a total of {x[wrong][0]:g}: totals are whole numbers from 0 to k")
    return x.astype(np.int64), most.astype(np.int64)


def histogram(totals: Any, k: int) -> Array:
    """How often each total 0 … k occurs, ``(k + 1,)``; missing totals are left out."""
    x, _ = totals_of(totals, k)
    return np.bincount(x, minlength=int(k) + 1).astype(np.float64)


def _tails_of(x: Array, k: Array) -> tuple[Array, Array, Array]:
    """A, B and C in shares of the responses, ``(1, largest k)``."""
    most = int(k.max())

    def above(values: Array) -> Array:
        counts = np.bincount(values, minlength=most + 1)
        return np.asarray(np.cumsum(counts[::-1])[::-1][1:] / len(values))[None]

    return above(x), above(k - x), above(k)


def beta_binomial_fit(totals: Any, k: Any) -> BetaBinomialFit:
    """The beta-binomial fitted to totals by maximum likelihood: ``alpha, beta, loglik``.

    ``totals`` are lines met, whole numbers from 0 to ``k``, ``(n,)``; a missing one (nan or None)
    is left out. ``k`` is the number of lines, or one number a response. α and β are above 0; the
    log-likelihood includes the binomial coefficients. The result also has ``mean``, ``rho``,
    ``limit`` and ``reliability`` (K / (α + β + K)).

    Where the totals spread no more than a binomial there is no interior maximum: α and β are nan
    with an ``UndefinedWarning``, ``limit`` is ``"binomial"``, ρ and the reliability are 0, and
    ``loglik`` is the binomial's. Likewise ``"two points"`` (ρ is 1) where there are only totals of 0
    and k. All are nan where every total is 0, or every total is k, or k is 1. Raises ``ValueError``
    for totals that are not whole numbers from 0 to k.

    Source: Griffiths 1973, Biometrics 29, p. 637; "Three Ways Classical Test Theory Can Mislead",
    Appendix A.3.

    >>> fit = beta_binomial_fit([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5], 5)
    >>> round(fit.alpha, 4), round(fit.beta, 4), round(fit.loglik, 4)
    (1.2716, 0.8921, -21.0936)
    """
    x, lines = totals_of(totals, k)
    nan = float("nan")
    if not len(x):
        warnings.warn(NO_TOTALS, UndefinedWarning, stacklevel=2)
        return _made(BetaBinomialFit(nan, nan, nan), mean=nan, rho=nan, limit="", reliability=nan)
    a, b, c = _tails_of(x, lines)
    fits = fit_tails(a, b, c)
    state = int(fits.state[0])
    why = {BINOMIAL: AT_BINOMIAL, TWO_POINTS: AT_TWO_POINTS, NONE: ALL_OR_NOTHING}.get(state, "")
    if state == NONE and lines.max() == 1:
        why = ONE_LINE
    if why:
        warnings.warn(why, UndefinedWarning, stacklevel=2)
    loglik = nan
    if state != NONE:
        coefficients = sum(log_binomials(int(m))[t] for m, t in zip(lines, x, strict=True))
        loglik = float(len(x) * log_likelihood(a, b, c, fits.mean, fits.rho)[0] + coefficients)
    one_k = int(lines[0]) if (lines == lines[0]).all() else 0
    return _made(
        BetaBinomialFit(float(fits.alpha[0]), float(fits.beta[0]), loglik),
        mean=float(fits.mean[0]),
        rho=float(fits.rho[0]),
        limit={BINOMIAL: "binomial", TWO_POINTS: "two points"}.get(state, ""),
        reliability=float(fits.reliability(one_k)[0]) if one_k else nan,
    )


def _made(result: R, /, **more: Any) -> R:
    for name, value in more.items():
        setattr(result, name, value)
    return result


def gof(counts: Array, mean: float, rho: float, least: float) -> BetaBinomialGof:
    """The goodness of fit of one histogram ``(K + 1,)`` to a beta-binomial (or binomial) of it."""
    expected = counts.sum() * probabilities(np.array(mean), np.array(rho), len(counts) - 1)
    observed, wanted = pooled(counts, expected, least)
    return _made(BetaBinomialGof(*chi_square(observed, wanted)), observed=observed, expected=wanted)


def beta_binomial_gof(totals: Any, k: int, least: float = 5) -> BetaBinomialGof:
    """Pearson's χ² of totals against the fitted beta-binomial: ``chi2, df, p``.

    ``totals`` are whole numbers from 0 to ``k``, ``(n,)``; ``k`` is one number of lines. Adjacent
    cells are pooled upward from 0 until the expected count is at least ``least``; a short last cell
    joins its lower neighbour. Degrees of freedom are cells − 1 − 2; p is nan where none is left. All
    are nan, with an ``UndefinedWarning``, where the fit has no interior maximum. A large p does not
    say that the model is right, nor that the lines are independent: it looks at totals only.

    Source: "Three Ways Classical Test Theory Can Mislead", Appendices A.2 and A.3.

    >>> gof = beta_binomial_gof([0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4] * 20, 4)
    >>> gof.df, round(gof.p, 4)
    (2, 0.1627)
    """
    if np.ndim(k):
        raise ValueError("the goodness of fit is of one number of lines k")
    counts = histogram(totals, int(k))
    fits = fitted(counts)
    nan, nothing = float("nan"), np.zeros(0)
    if int(fits.state) != INSIDE:
        why = {BINOMIAL: AT_BINOMIAL, TWO_POINTS: AT_TWO_POINTS}.get(
            int(fits.state), ALL_OR_NOTHING
        )
        warnings.warn(why, UndefinedWarning, stacklevel=2)
        return _made(BetaBinomialGof(nan, 0, nan), observed=nothing, expected=nothing)
    made = gof(counts, float(fits.mean), float(fits.rho), least)
    if np.isnan(made.p):
        warnings.warn(
            "pooling leaves no degree of freedom: p cannot be said", UndefinedWarning, stacklevel=2
        )
    return made


class BetaMoments(NamedTuple):
    """A beta on ``low`` to ``high``, fitted by moments; nan where the moments do not permit one."""

    alpha: float
    beta: float
    low: float
    high: float

    @property
    def permissible(self) -> bool:
        """Whether it is a beta with 0 ≤ low < high ≤ 1."""
        return self.alpha > 0 and self.beta > 0 and 0 <= self.low < self.high <= 1


def true_score_moments(counts: Array, length: float) -> list[float]:
    """The first four raw moments of the true share, from a histogram of totals ``(K + 1,)``.

    E[p^r] is the mean of x(x − 1)…(x − r + 1) over N(N − 1)…(N − r + 1), of totals x brought to
    ``length`` N, which need not be whole. As for whole totals the product is 0 where x is below r (so
    does betafunctions). nan where N is too short. Source: Lord 1965, Psychometrika 30, p. 239.
    """
    k = len(counts) - 1
    x = np.arange(k + 1) * length / k
    weight = counts / counts.sum()
    moments, falling, whole = [], np.ones(k + 1), 1.0
    for r in range(4):
        falling, whole = falling * (x - r), whole * (length - r)
        there = np.where(x >= r + 1, falling, 0.0)
        moments.append(float(weight @ there / whole) if whole > 0 else float("nan"))
    return moments


def moment_fit(counts: Array, length: float, model: str, ddof: int = 0) -> BetaMoments:
    """:func:`beta_moment_fit` of a histogram; may be not permissible."""
    m1, m2, m3, m4 = true_score_moments(counts, length)
    variance = m2 - m1**2
    if ddof:
        # The observed variance counts n / (n − ddof) times; the rest follows from KR-21's algebra.
        k = len(counts) - 1
        x, weight = np.arange(k + 1), counts / counts.sum()
        observed = float(weight @ (x - weight @ x) ** 2) * counts.sum() / (counts.sum() - ddof)
        m2 = (observed * (length / k) ** 2 + (m1 * length) ** 2 - m1 * length) / (
            length * (length - 1)
        )
        variance = m2 - m1**2
    if model == "2p":
        size = m1 * (1 - m1) / variance - 1 if variance else float("nan")
        return BetaMoments(m1 * size, (1 - m1) * size, 0.0, 1.0)
    with np.errstate(all="ignore"):
        sd = np.sqrt(np.float64(variance))
        skew = (m3 - 3 * m1 * m2 + 2 * m1**3) / sd**3
        kurtosis = (m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4) / sd**4
        # Hanson 1991, ACT Research Report 91-5: α + β from skew and kurtosis, then its parts.
        r = 6 * (kurtosis - skew**2 - 1) / (6 + 3 * skew**2 - 2 * kurtosis)
        lean = (r + 2) * skew / np.sqrt((r + 2) ** 2 * skew**2 + 16 * (r + 1))
        alpha, beta = r / 2 * (1 - lean), r / 2 * (1 + lean)
        width = sd * np.sqrt((alpha + beta + 1) / (alpha * beta))
        return BetaMoments(
            float(alpha), float(beta), float(m1 - alpha * width), float(m1 + beta * width)
        )


def beta_moment_fit(totals: Any, k: int, *, model: str = "2p", ddof: int = 0) -> BetaMoments:
    """A beta distribution of the true share, fitted to totals by moments: ``alpha, beta, low, high``.

    ``totals`` are whole numbers from 0 to ``k``, ``(n,)``. ``model`` is ``"2p"`` (on 0 to 1) or
    ``"4p"`` (with its own ends). ``ddof`` is taken off n in the variance of totals (only ``"2p"``).
    A four-parameter fit is often not permissible (``.permissible`` is false). Source: Lord 1965,
    Psychometrika 30, p. 239; Hanson 1991, ACT Research Report 91-5.

    >>> fit = beta_moment_fit([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5], 5)
    >>> round(fit.alpha, 6), round(fit.beta, 6)
    (1.272727, 0.909091)
    """
    if model not in ("2p", "4p"):
        raise ValueError(f"model {model!r}: use '2p' or '4p'")
    if ddof and model == "4p":
        raise ValueError("ddof is for the two-parameter fit only")
    return moment_fit(histogram(totals, k), float(k), model, ddof)
