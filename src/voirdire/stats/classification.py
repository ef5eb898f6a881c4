"""The beta-binomial fit of the totals, and Livingston–Lewis accuracy and consistency of a cut.

They treat the lines of the checklist as a sample from a wider domain, and ask whether a pass would
survive another sample of lines. They describe the bank: an error-free scorer has them too, and the
value on gold stands beside each. None of them says how often the judge’s gate decision is right.

Everything is solved from three numbers of each set of totals: α, β and K. Accuracy needs one
incomplete beta function a cut, by the recurrence of I_t(a + 1, b − 1); consistency is a sum over the
beta-binomial of 2K lines.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb
from typing import Any, NamedTuple

import numpy as np

from voirdire.document import Block, Column, Kind, Paragraph, Table, Tone, cell
from voirdire.errors import UndefinedWarning
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.resampling import left_out
from voirdire.sides import ALL, Sides, different_lengths, sides
from voirdire.stats import beta_binomial as core
from voirdire.stats._checklist import KINDS, asks, beside_gold, empty_tally, responses
from voirdire.stats.base import (
    Array,
    Estimates,
    Family,
    Given,
    Part,
    Scene,
    Statistic,
    remembered,
)
from voirdire.stats.beta_binomial import Fits
from voirdire.tally import Tally
from voirdire.wording import Name, counted, say

__all__ = ["effective_test_length", "livingston_lewis"]

TWM = '"Three Ways Classical Test Theory Can Mislead"'
WEIGHTED = "design weights: no likelihood is fitted to weighted responses"
SAME_TOTAL = "every response has the same total: there is no spread to fit"
NO_FREEDOM = "pooling cells to an expected count of 5 leaves no degree of freedom"
ABOVE = "the cut is above the number of lines"

_BLOCK = 1 << 17  # cells that are worked on at once
GRID_END = 1e-6  # where the printed grid begins, and 1 − it is where it ends


# --- accuracy and consistency -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What accuracy and consistency are made of, each ``(..., cuts)``, in 0–1.

    ``observed``: P(X < cut); ``true``: P(p < true cut); ``both``: P(X < cut and p < true cut);
    ``twice``: P(X < cut and X′ < cut) for two administrations X and X′ under one p.
    """

    observed: Array
    true: Array
    both: Array
    twice: Array

    @property
    def accuracy(self) -> Array:
        """The share whose observed pass or fail is that of the true share."""
        return np.asarray(np.clip(1 - self.observed - self.true + 2 * self.both, 0.0, 1.0))

    @property
    def consistency(self) -> Array:
        """The share that two administrations classify alike."""
        return np.asarray(np.clip(1 - 2 * self.observed + 2 * self.twice, 0.0, 1.0))


def tables(fits: Fits, k: int, cuts: Sequence[int], true: Array | None = None) -> Tables:
    """The exact tables of fits ``(...)`` at cuts in 1 … k; ``true`` are the true cuts as shares.

    At the binomial limit all responses have the share μ; with totals of 0 and K alone they have 0
    or 1. nan where there is no fit.
    """
    shares = np.asarray([c / k for c in cuts]) if true is None else np.asarray(true)
    lead = fits.mean.shape
    mean, rho, state = fits.mean.reshape(-1), fits.rho.reshape(-1), fits.state.reshape(-1)
    made = np.full((4, len(mean), len(cuts)), np.nan)
    step = max(1, _BLOCK // ((k + 1) * len(cuts)))
    for at in (core.INSIDE, core.BINOMIAL):
        places = np.flatnonzero(state == at)
        for low in range(0, len(places), step):
            span = places[low : low + step]
            made[:, span] = _block(mean[span], rho[span], k, cuts, shares)
    ends = state == core.TWO_POINTS
    made[:, ends] = (1 - mean[ends])[:, None]
    shaped = made.reshape(4, *lead, len(cuts))
    return Tables(observed=shaped[0], true=shaped[1], both=shaped[2], twice=shaped[3])


def _block(mean: Array, rho: Array, k: int, cuts: Sequence[int], shares: Array) -> Array:
    """Observed, true, both and twice, ``(4, fits, cuts)``, of fits that all are (or none is) at ρ = 0."""
    pmf = core.probabilities(mean, rho, k)
    below = np.arange(k + 1)[:, None] < np.asarray(cuts)  # (k + 1, cuts)
    observed = pmf @ below
    kernels = np.exp(core.log_kernels(mean, rho, 2 * k) + core.log_binomials(2 * k))
    twice = kernels @ both_below(k, tuple(cuts))
    if rho[0] == 0:
        # Sums of whole totals: whether Σx reaches c·n must not hang on the last bit.
        true = (mean[:, None] * k < shares * k - 1e-9).astype(np.float64)
        return np.stack([observed, true, observed * true, twice])
    given = _true_below(mean, rho, k, shares)  # P(p < share | X = x), (fits, cuts, k + 1)
    joint = pmf[:, None, :] * given
    both = np.einsum("fcx,xc->fc", joint, below.astype(np.float64))
    return np.stack([observed, joint.sum(-1), both, twice])


def _true_below(mean: Array, rho: Array, k: int, shares: Array) -> Array:
    """I_t(α + x, β + k − x) at each share t for x = 0 … k, ``(fits, shares, k + 1)``.

    I_t(a + 1, b − 1) = I_t(a, b) − t^a (1 − t)^(b − 1) / (a B(a, b)): one incomplete beta a share, the
    rest by sums of terms below 1.
    """
    from scipy.special import betainc, betaln

    a, b = mean * (1 - rho) / rho, (1 - mean) * (1 - rho) / rho
    first = betainc(a[:, None], (b + k)[:, None], np.clip(shares, 0.0, 1.0))
    inner = np.flatnonzero((shares > 0) & (shares < 1))
    out = np.repeat(first[:, :, None], k + 1, axis=2)
    if len(inner):
        t = shares[inner]
        x = np.arange(k - 1, dtype=np.float64)
        ratio = np.log(b[:, None] + (k - 1) - x) - np.log(a[:, None] + x + 1)
        logs = np.zeros((len(a), k))
        np.cumsum(ratio, axis=1, out=logs[:, 1:])
        start = (
            a[:, None] * np.log(t)
            + (b + (k - 1))[:, None] * np.log1p(-t)
            - (np.log(a) + betaln(a, b + k))[:, None]
        )
        odds = (np.log(t) - np.log1p(-t))[:, None] * np.arange(k)
        steps = np.exp(start[:, :, None] + logs[:, None, :] + odds)
        np.cumsum(steps, axis=2, out=steps)
        out[:, inner, 1:] -= steps
    return np.asarray(np.clip(out, 0.0, 1.0))


@lru_cache(maxsize=64)
def both_below(k: int, cuts: tuple[int, ...]) -> Array:
    """P(X < c and X′ < c | X + X′ = s) for s = 0 … 2k, ``(2k + 1, cuts)``: hypergeometric.

    Given the sum of two administrations of k lines, how they share it does not depend on p.
    """
    ways = [comb(k, x) for x in range(k + 1)]
    made = np.zeros((2 * k + 1, len(cuts)))
    for s in range(2 * k + 1):
        of = comb(2 * k, s)
        for j, c in enumerate(cuts):
            low, high = max(0, s - c + 1), min(c - 1, s)
            made[s, j] = sum(ways[x] * ways[s - x] for x in range(low, high + 1)) / of
    return made


def grid_points(points: int) -> Array:
    """The true shares of the printed grid: evenly from 1e-6 to 1 − 1e-6.

    Of the usual grids of 400 points, it is one under which every printed value comes out.
    """
    return np.linspace(GRID_END, 1 - GRID_END, points)


def grid_tables(fits: Fits, k: int, cuts: Sequence[int], points: int) -> Tables:
    """The same on a grid of true shares, weighted by the density (TWM, Appendix A.3)."""
    exact = tables(fits, k, cuts)
    p = grid_points(points)
    x = np.arange(k + 1)
    logs = np.log(p)[:, None] * x + np.log1p(-p)[:, None] * (k - x) + core.log_binomials(k)
    fails = np.exp(logs) @ (x[:, None] < np.asarray(cuts)).astype(np.float64)  # (points, cuts)
    is_below = (p[:, None] * k < np.asarray(cuts)).astype(np.float64)
    columns = np.concatenate([fails, is_below, fails * is_below, fails**2], axis=1)
    lead = fits.mean.shape
    mean, rho = fits.mean.reshape(-1), fits.rho.reshape(-1)
    made = np.stack([exact.observed, exact.true, exact.both, exact.twice]).reshape(
        4, len(mean), len(cuts)
    )
    inside = np.flatnonzero(fits.state.reshape(-1) == core.INSIDE)
    step = max(1, _BLOCK // points)
    for low in range(0, len(inside), step):
        span = inside[low : low + step]
        size = (1 - rho[span]) / rho[span]
        a, b = mean[span] * size, (1 - mean[span]) * size
        density = (a - 1)[:, None] * np.log(p) + (b - 1)[:, None] * np.log1p(-p)
        density -= density.max(axis=1, keepdims=True)
        np.exp(density, out=density)
        density /= density.sum(axis=1, keepdims=True)
        made[:, span] = np.moveaxis((density @ columns).reshape(len(span), 4, len(cuts)), 1, 0)
    shaped = made.reshape(4, *lead, len(cuts))
    return Tables(observed=shaped[0], true=shaped[1], both=shaped[2], twice=shaped[3])


# --- what the bank says -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """Fits ``(..., sides)`` and the tables ``(..., sides, cuts)`` of one array of totals."""

    fits: Fits
    accuracy: Array
    consistency: Array


def _histograms(cells: Array, given: Given) -> Array:
    """The totals of each side, ``(..., sides, K + 1)``."""
    k, many = given["k"], given["sides"]
    return cells[..., 1 : 1 + many * (k + 1)].reshape(*cells.shape[:-1], many, k + 1)


def _solved(cells: Array, given: Given) -> Solved:
    def make() -> Solved:
        k, cuts = given["k"], given["cuts"]
        counts = _histograms(cells, given)
        fits = core.fitted(counts)
        # One and the same total throughout fits no model that is worth saying.
        flat = counts.max(-1) >= counts.sum(-1) * (1 - 1e-12)
        if flat.any():
            fits = Fits(
                mean=np.where(flat, np.nan, fits.mean),
                rho=np.where(flat, np.nan, fits.rho),
                state=np.where(flat, core.NONE, fits.state),
            )
        if cells.ndim > 1:
            given["limits"].append((fits.state == core.BINOMIAL, cells[0].copy()))
        within = [c for c in cuts if c <= k]
        shape = (*fits.mean.shape, len(cuts))
        accuracy, consistency = np.full(shape, np.nan), np.full(shape, np.nan)
        if within:
            made = (
                grid_tables(fits, k, within, given["grid"])
                if given["grid"]
                else tables(fits, k, within)
            )
            places = [j for j, c in enumerate(cuts) if c <= k]
            accuracy[..., places], consistency[..., places] = made.accuracy, made.consistency
        return Solved(fits=fits, accuracy=accuracy, consistency=consistency)

    return remembered(given, "fits", cells, make)  # type: ignore[no-any-return]


def _state_reasons(cells: Array, given: Given, *, limit: str) -> list[str]:
    """Why each side has no value: ``limit`` is what is said at the binomial limit."""
    said = []
    for state, counts in zip(
        _solved(cells, given).fits.state, _histograms(cells, given), strict=True
    ):
        if state == core.NONE:
            said.append(core.NO_TOTALS if not counts.sum() else SAME_TOTAL)
        else:
            said.append({core.BINOMIAL: limit, core.TWO_POINTS: core.AT_TWO_POINTS}.get(state, ""))
    return said


def _why(cells: Array, given: Given) -> list[str]:
    return _state_reasons(cells, given, limit=core.AT_BINOMIAL)


def _why_p(cells: Array, given: Given) -> list[str]:
    return [why or NO_FREEDOM for why in _why(cells, given)]


def _why_at_cuts(cells: Array, given: Given) -> list[str]:
    k, cuts = given["k"], given["cuts"]
    return [
        why or (ABOVE if c > k else "")
        for why in _state_reasons(cells, given, limit="")
        for c in cuts
    ]


def _fit_of(cells: Array, given: Given) -> Array:
    """χ², df and p of each side, ``(..., sides, 3)``."""

    def make() -> Array:
        fits = _solved(cells, given).fits
        counts = _histograms(cells, given)
        made = np.full((*fits.mean.shape, 3), np.nan)
        for place in np.argwhere(fits.state == core.INSIDE):
            at = tuple(place)
            made[at] = core.gof(counts[at], float(fits.mean[at]), float(fits.rho[at]), 5)
        return made

    return remembered(given, "gof", cells, make)  # type: ignore[no-any-return]


BETA_NEEDS = ("totals over one number of lines K",)


def _beta_binomial(name: str, title: str, question: str, **more: Any) -> Estimand:
    given: dict[str, Any] = {
        "describes": Describes.BANK,
        "keys": ("grader",),
        "unit": Unit.COEFFICIENT,
        "scale": Scale.NONE,
        "needs": BETA_NEEDS,
        "moves_with": ("how far the responses of the bank differ", "the number of lines"),
        "undefined_when": core.AT_BINOMIAL,
        "source": Source(text=f"{TWM}, Appendices A.2 and A.3"),
    }
    return Estimand(name=f"beta_binomial_{name}", title=title, question=question, **(given | more))


MODEL = (
    "X_i: how many of K lines response i meets, on the n responses scored in full; α̂, β̂: what makes the "
    "likelihood largest; B: the beta function"
)
LIKELIHOOD = (
    r"\operatorname{argmax}_{\alpha, \beta}\, \sum_{i} \log\, f(X_{i}), "
    r"\quad f(x) = \binom{K}{x} \frac{B(\alpha + x,\ \beta + K - x)}{B(\alpha, \beta)}"
)
POOLED = (
    "O_t, E_t: how many totals lie in cell t and how many n f(x) expects there, at α̂ and β̂. Totals are pooled "
    "upward from 0 until 5 are expected, a short last cell joins the one below; T: the cells then"
)
ALPHA = _beta_binomial(
    "alpha",
    "Beta-binomial α",
    "With which α does a beta-binomial describe the totals best?",
    scale=Scale.LOG,
    low=0,
    reading="α / (α + β) is the mean share of lines met; a small α + β means responses that differ much.",
    formula=rf"(\hat{{\alpha}}, \hat{{\beta}}) = {LIKELIHOOD}",
    conventions=f"{MODEL}. Here the first, α̂. Fitted by maximum likelihood; aod gives the mean and 1/(α + β + 1).",
)
BETA = _beta_binomial(
    "beta",
    "Beta-binomial β",
    "With which β does a beta-binomial describe the totals best?",
    scale=Scale.LOG,
    low=0,
    reading="α / (α + β) is the mean share of lines met; a small α + β means responses that differ much.",
    formula=ALPHA.formula,
    conventions=f"{MODEL}. Here the second, β̂. Fitted by maximum likelihood; aod gives the mean and 1/(α + β + 1).",
)
CHI2 = _beta_binomial(
    "chi2",
    "Beta-binomial fit: χ²",
    "How far are the totals from the fitted beta-binomial, over pooled cells?",
    low=0,
    reading="Adjacent totals are pooled upward from 0 until 5 responses are expected.",
    formula=r"\chi^{2} = \sum_{t} \frac{(O_{t} - E_{t})^{2}}{E_{t}}",
    conventions=f"{POOLED}. betafunctions pools to 10.",
)
DF = _beta_binomial(
    "df",
    "Beta-binomial fit: degrees of freedom",
    "How many pooled cells are left after the two fitted parameters?",
    unit=Unit.COUNT,
    reading="Cells − 1 − 2.",
    low=0,
    formula=r"T - 1 - 2",
    conventions=f"{POOLED}. betafunctions tells T − 2, or T − 4 for its four parameters.",
)
P = _beta_binomial(
    "p",
    "Beta-binomial fit: p",
    "How often would a beta-binomial’s own totals be as far from its fit?",
    low=0,
    high=1,
    reading=(
        "It looks at totals only, and takes responses as independent: a large p does not show that "
        "the model holds, nor that lines are independent."
    ),
    moves_with=("the number of responses", "clustering of responses"),
    formula=r"p = \Pr\left[\chi_{T - 3}^{2} \ge \sum_{t} \frac{(O_{t} - E_{t})^{2}}{E_{t}}\right]",
    conventions=f"{POOLED}. Not said for T ≤ 3. betafunctions always takes T − 4 degrees of freedom.",
)
RELIABILITY = _beta_binomial(
    "reliability",
    "Reliability that the beta-binomial implies",
    "Which share of the variance of totals would stay if other lines were drawn?",
    scale=Scale.LOGIT,
    low=0,
    high=1,
    reading=(
        "K / (α + β + K), of the bank as scored. Its error term is the drawing of lines, not the judge. "
        "0 at the binomial limit."
    ),
    undefined_when=SAME_TOTAL,
    formula=r"\frac{K}{\hat{\alpha} + \hat{\beta} + K}",
    conventions=f"{MODEL}; see beta_binomial_alpha.",
)

PASSES = r"\pi(p) = \sum_{x \ge c} \binom{K}{x} p^{x} (1 - p)^{K - x}"


def _livingston(
    name: str, title: str, question: str, reading: str, equation: str, formula: str
) -> Estimand:
    return Estimand(
        name=f"livingston_lewis_{name}",
        title=title,
        question=question,
        describes=Describes.BANK,
        keys=("grader", "cut"),
        unit=Unit.SHARE,
        scale=Scale.LOGIT,
        needs=("totals over one number of lines K", "cut"),
        low=0,
        high=1,
        reading=reading,
        moves_with=(
            "how far the responses of the bank differ",
            "the number of lines",
            "how near the totals are to the cut",
        ),
        undefined_when=SAME_TOTAL,
        source=Source(
            text=(
                "Livingston and Lewis 1995, Journal of Educational Measurement 32(2), p. 179; in the "
                f"two-parameter form of {TWM}, Appendix A.3"
            ),
            equation=equation,
        ),
        formula=rf"{formula}, \; {PASSES}",
        conventions=(
            "c: the cut, in lines; w: the density of the beta distribution with α̂ and β̂ (beta_binomial_alpha, "
            "beta_binomial_beta); p: a response’s share in the wider domain. Length K, whatever the "
            "reliability; the original has an effective length and fits by moments. Integrated exactly; "
            "--livingston-lewis-grid sums over a grid, as the paper does."
        ),
    )


LIMIT = (
    "Totals that spread no more than a binomial count with one share for all (the binomial limit)."
)
ACCURACY = _livingston(
    "accuracy",
    "Livingston–Lewis accuracy of the bank",
    "If the lines are a sample from a wider domain: how often is pass or fail on these lines that "
    "of the share the response would meet in the whole domain?",
    "It counts the sampling of lines as error and knows no gold: an error-free scorer has it too. It is "
    f"no agreement with gold on the lines used. {LIMIT}",
    "CA = ∫ w(p) [π(p) 1(pK ≥ c) + (1 − π(p)) 1(pK < c)] dp",
    r"\mathrm{CA} = \int w(p) \left[\pi(p)\, \mathbf{1}[p K \ge c] + "
    r"(1 - \pi(p))\, \mathbf{1}[p K < c]\right] dp",
)
CONSISTENCY = _livingston(
    "consistency",
    "Livingston–Lewis consistency of the bank",
    "If the lines are a sample from a wider domain: how often would pass or fail be the same on "
    "another sample of as many lines?",
    f"It is about other lines, not about asking the judge again. {LIMIT}",
    "DC = ∫ w(p) [π(p)² + (1 − π(p))²] dp",
    r"\mathrm{DC} = \int w(p) \left[\pi(p)^{2} + (1 - \pi(p))^{2}\right] dp",
)
DECOMPOSED = "Livingston–Lewis accuracy is undefined on the judge’s verdicts or on gold’s"


def _term(name: str, title: str, question: str, **more: Any) -> Estimand:
    given: dict[str, Any] = {
        "describes": Describes.BOTH,
        "keys": ("grader", "cut"),
        "unit": Unit.POINTS,
        "scale": Scale.PLAIN,
        "needs": ("gold", "cut", "totals over one number of lines K"),
        "undefined_when": DECOMPOSED,
        "source": Source(
            text=f"{TWM}, Section 4",
            equation="A_J − LL_J = (1 − LL_G) − (1 − A_J) − (LL_J − LL_G)",
        ),
    }
    return Estimand(name=f"decomposition_{name}", title=title, question=question, **(given | more))


TERMS_OF = (
    "LL_J, LL_G: livingston_lewis_accuracy of the judge’s verdicts and of gold’s; A_J: "
    "gate_accuracy; all on the responses that both scored in full. The three terms add up to A_J − "
    "LL_J."
)
SHORTFALL = _term(
    "bank_shortfall",
    "Shortfall of an error-free scorer",
    "How far below 1 is Livingston–Lewis accuracy on gold?",
    describes=Describes.BANK,
    low=0,
    high=1,
    reading=(
        "1 − LL(gold): approximately what the sampling of lines alone takes away. The three terms add "
        "up to gate accuracy − Livingston–Lewis accuracy."
    ),
    undefined_when="Livingston–Lewis accuracy is undefined on gold’s verdicts",
    formula=r"1 - \mathrm{LL}_{G}",
    conventions=TERMS_OF,
)
GATE_ERROR = _term(
    "gate_error",
    "Less the judge’s gate error",
    "Which share of gate decisions differs from gold’s, taken off?",
    describes=Describes.BOTH,  # as gate accuracy, of which it is made
    low=-1,
    high=0,
    reading="−(1 − gate accuracy), on the responses that judge and gold both scored in full.",
    undefined_when="no response is scored in full by judge and gold",
    formula=r"-(1 - A_{J})",
    conventions=TERMS_OF,
)
DIFFERENCE = _term(
    "difference",
    "Less the difference of the two Livingston–Lewis accuracies",
    "By how much is Livingston–Lewis accuracy on the judge’s verdicts above that on gold’s, taken off?",
    reading="−(LL(judge) − LL(gold)).",
    low=-1,
    high=1,
    formula=r"-(\mathrm{LL}_{J} - \mathrm{LL}_{G})",
    conventions=TERMS_OF,
)


def _wrong(cells: Array, given: Given) -> Array:
    """Gate decisions that differ from gold’s, ``(..., cuts)``."""
    return cells[..., 1 + given["sides"] * (given["k"] + 1) :]


def _gate_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    wrong = _wrong(cells, given)
    return wrong, np.asarray(np.broadcast_to(cells[..., :1], wrong.shape))


def _gate_error(cells: Array, given: Given) -> Array:
    wrong, n = _gate_parts(cells, given)
    return np.asarray(0.0 - wrong / n)  # not −0.0 without an error


def _shortfall(cells: Array, given: Given) -> Array:
    return np.asarray(1 - _solved(cells, given).accuracy[..., 1, :])


def _less_difference(cells: Array, given: Given) -> Array:
    accuracy = _solved(cells, given).accuracy
    return np.asarray(accuracy[..., 1, :] - accuracy[..., 0, :])


def _gof(place: int) -> Any:
    return lambda cells, given: _fit_of(cells, given)[..., place]


def _freedom(cells: Array, given: Given) -> Array:
    """Degrees of freedom; nan where fewer cells are left than a fit takes."""
    df = _fit_of(cells, given)[..., 1]
    return np.where(df >= 0, df, np.nan)


S_ALPHA = Statistic(
    estimand=ALPHA, solve=lambda c, given: _solved(c, given).fits.alpha, n=responses, reason=_why
)
S_BETA = Statistic(
    estimand=BETA, solve=lambda c, given: _solved(c, given).fits.beta, n=responses, reason=_why
)
S_CHI2 = Statistic(estimand=CHI2, solve=_gof(0), n=responses, reason=_why)
S_DF = Statistic(estimand=DF, solve=_freedom, n=responses, reason=_why_p)
S_P = Statistic(estimand=P, solve=_gof(2), n=responses, reason=_why_p)
S_RELIABILITY = Statistic(
    estimand=RELIABILITY,
    solve=lambda c, given: _solved(c, given).fits.reliability(given["k"]),
    n=responses,
    reason=lambda c, given: _state_reasons(c, given, limit=""),
)
FIT = (S_ALPHA, S_BETA, S_CHI2, S_DF, S_P, S_RELIABILITY)
AT_CUTS = (
    beside_gold(ACCURACY, lambda c, given: _solved(c, given).accuracy, reason=_why_at_cuts),
    beside_gold(CONSISTENCY, lambda c, given: _solved(c, given).consistency, reason=_why_at_cuts),
)
TERMS = (
    Statistic(estimand=SHORTFALL, solve=_shortfall, n=responses),
    Statistic(
        estimand=GATE_ERROR,
        solve=_gate_error,
        n=responses,
        share=_gate_parts,
        from_share=lambda share, totals, given: 0.0 - share,
    ),
    Statistic(estimand=DIFFERENCE, solve=_less_difference, n=responses),
)


def parts(scene: Scene) -> Iterable[Part]:
    """One tally a comparison: responses, totals of each side, and wrong gate decisions at each cut."""
    bank = scene.bank
    if bank is None:
        return
    why = different_lengths(scene)
    if not why and bank.k == 1:
        why = core.ONE_LINE
    if not why and bank.weights is not None and not bank.frequency:
        why = WEIGHTED
    for one in sides(scene):
        asked = _asks(one, scene.options.gates)
        if why:
            yield Part(tally=empty_tally(1), asks=asked, undefined=why)
            continue
        yield _part(scene, one, asked)


def _asks(one: Sides, cuts: Sequence[int]) -> tuple[tuple[Statistic, tuple[Key, ...]], ...]:
    made: list[tuple[Statistic, tuple[Key, ...]]] = [(s, one.keys) for s in FIT]
    if cuts:
        made += asks(AT_CUTS, one, cuts)
        if one.paired:
            keys = tuple(replace(one.keys[0], cut=str(c)) for c in cuts)
            made += [(s, keys) for s in TERMS]
    return tuple(made)


def _part(scene: Scene, one: Sides, asked: Any) -> Part:
    bank, cuts = scene.bank, scene.options.cut
    assert bank is not None
    k, places = bank.k, [bank.places[g] for g in one.names]
    gate = np.asarray(cuts if one.paired else (), dtype=np.int64)
    shape = (1 + len(places) * (k + 1) + len(gate),)

    def cells_of(rows: Array) -> Array:
        totals = bank.totals[rows][:, places]
        cells = np.zeros((len(rows), *shape), dtype=np.int64)
        cells[:, 0] = 1
        at = np.arange(len(rows))
        for side in range(len(places)):
            cells[at, 1 + side * (k + 1) + totals[:, side]] = 1
        if len(gate):
            passes = totals[:, :, None] >= gate
            cells[:, shape[0] - len(gate) :] = passes[:, 0] != passes[:, 1]
        return cells

    tally = scene.summed(one.rows, cells_of, shape)
    # Of each resampled bank, in the order of the engine: which sides, and the first bank's totals.
    limits: list[tuple[Array, Array]] = []
    scene.memory[("classification", one.keys)] = (tally, limits)
    return Part(
        tally=tally,
        asks=asked,
        given={
            "k": k,
            "sides": len(places),
            "cuts": tuple(cuts),
            "grid": scene.options.livingston_lewis_grid,
            "memo": {},
            "limits": limits,
        },
    )


# --- plain array functions ----------------------------------------------------------------------


def effective_test_length(totals: Any, k: int, reliability: float) -> float:
    """Livingston and Lewis’s effective test length: how many lines of a binomial test are as reliable.

    ``totals`` are whole numbers from 0 to ``k``, ``(n,)``; ``reliability`` is of the totals, in 0–1
    (below 1). The variance has ddof 1. nan with an ``UndefinedWarning`` where totals do not vary.
    Source: Livingston and Lewis 1995, p. 186.

    >>> round(effective_test_length([1, 2, 2, 3, 4, 4, 5, 5], 5, 0.6), 4)
    4.9214
    """
    if not 0 <= reliability < 1:
        raise ValueError(f"reliability {reliability}: it must be from 0 to below 1")
    x, _ = core.totals_of(totals, k)
    variance = float(x.var(ddof=1)) if len(x) > 1 else 0.0
    if not variance > 0:
        warnings.warn(SAME_TOTAL, UndefinedWarning, stacklevel=2)
        return float("nan")
    mean = float(x.mean())
    return (mean * (k - mean) - reliability * variance) / (variance * (1 - reliability))


class _Two(NamedTuple):
    accuracy: float
    consistency: float


class LivingstonLewis(_Two):
    """Accuracy and consistency; as attributes also what they are made of.

    ``alpha, beta, low, high`` of the true shares; ``length`` N and ``cut`` on it; ``joint`` (2, 2):
    true fail and pass × observed fail and pass; ``both`` (2, 2): first × second administration;
    ``chance`` and ``kappa`` of the consistency; ``model`` that stands behind (``"2p"``, ``"4p"``, or
    a ``"binomial"`` or ``"two points"`` limit).
    """

    alpha: float
    beta: float
    low: float
    high: float
    length: int
    cut: int
    joint: Array
    both: Array
    chance: float
    kappa: float
    model: str


def livingston_lewis(
    totals: Any,
    k: int,
    cut: int,
    grid: int | None = None,
    *,
    model: str = "2p",
    fit: str | None = None,
    reliability: float | None = None,
    true_cut: float | None = None,
) -> LivingstonLewis:
    """Livingston–Lewis ``accuracy, consistency`` of passing with at least ``cut`` of ``k`` lines.

    ``totals`` are whole numbers from 0 to ``k``, ``(n,)``. By default a beta-binomial of length k is
    fitted by maximum likelihood and integrated exactly; ``grid=400`` gives the printed values (true
    shares evenly from 1e-6 to 1 − 1e-6, weighted by the density; off by up to 0.001).

    ``fit="moments"`` fits by moments; so do the original’s options: ``reliability`` (the length is
    then the effective one, rounded half to even for the binomial as the observed cut is, and not
    rounded for the moments) and ``model="4p"`` (a beta with ends of its own; where the moments do not
    permit it, the two-parameter one stands, with an ``UndefinedWarning``). ``true_cut`` is the cut of
    the true share in lines, by default ``cut``.

    Both describe the bank as scored: they are no agreement with gold. nan, with an
    ``UndefinedWarning``, where every response has the same total or k is 1. Raises ``ValueError`` for
    a cut outside 1 … k.

    Source: Livingston and Lewis 1995, Journal of Educational Measurement 32(2), p. 179; "Three Ways
    Classical Test Theory Can Mislead", Appendix A.3.

    >>> found = livingston_lewis([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5], 5, cut=3)
    >>> round(found.accuracy, 4), round(found.consistency, 4)
    (0.8254, 0.7849)
    """
    if model not in ("2p", "4p"):
        raise ValueError(f"model {model!r}: use '2p' or '4p'")
    by_moments = fit == "moments" or model == "4p" or reliability is not None
    if fit not in (None, "likelihood", "moments") or (fit == "likelihood" and by_moments):
        raise ValueError("fit: use 'moments', or 'likelihood' for two parameters and length k")
    if grid is not None and (by_moments or true_cut is not None or grid < 10):
        raise ValueError("grid: at least 10 points, with the likelihood fit and its own true cut")
    if cut != int(cut) or not 1 <= cut <= k:
        raise ValueError(f"a cut of {cut}: it must be a whole number of lines from 1 to k")
    counts = core.histogram(totals, k)
    share = (cut if true_cut is None else true_cut) / k
    if counts.max(initial=0) == counts.sum() or k == 1:
        why = core.NO_TOTALS if not counts.sum() else core.ONE_LINE if k == 1 else SAME_TOTAL
        warnings.warn(why, UndefinedWarning, stacklevel=2)
        return _result(None, core.BetaMoments(*[np.nan] * 4), k, int(cut), "")
    if not by_moments:
        fits = core.fitted(counts)
        made = (
            grid_tables(fits, k, [int(cut)], grid)
            if grid
            else tables(fits, k, [int(cut)], np.array([share]))
        )
        names = {core.BINOMIAL: "binomial", core.TWO_POINTS: "two points"}
        beta = core.BetaMoments(float(fits.alpha), float(fits.beta), 0.0, 1.0)
        return _result(made, beta, k, int(cut), names.get(int(fits.state), "2p"))
    length = float(k) if reliability is None else effective_test_length(totals, k, reliability)
    n = round(length)
    beta = core.moment_fit(counts, length, model)
    if model == "4p" and not beta.permissible:
        warnings.warn(
            "the moments permit no four-parameter beta: the two-parameter one stands",
            UndefinedWarning,
            stacklevel=2,
        )
        model = "2p"
        beta = core.moment_fit(counts, length, model)
    observed_cut = round(cut / k * n)
    if not beta.permissible or n < 1:
        warnings.warn(core.AT_BINOMIAL, UndefinedWarning, stacklevel=2)
        return _result(None, beta, n, observed_cut, "")
    return _result(_integrated(beta, n, observed_cut, share), beta, n, observed_cut, model)


def _integrated(beta: core.BetaMoments, n: int, cut: int, share: float) -> Tables:
    """The tables of a beta with ends of its own, by Gauss–Jacobi quadrature split at the true cut."""
    nodes, weights = _nodes(beta, n + 1)
    fails = _fails(nodes, n, cut)
    observed, twice = weights @ fails, weights @ fails**2
    at = (share - beta.low) / (beta.high - beta.low)
    if at <= 0 or at >= 1:
        true = float(at >= 1)
        both = observed * true
    else:
        # The smaller part: there the other end’s power is smooth, and few nodes do.
        nodes, weights = _part_nodes(beta, n + 60, at)
        part, inside = weights.sum(), weights @ _fails(nodes, n, cut)
        true, both = (part, inside) if at <= 0.5 else (1 - part, observed - inside)
    return Tables(
        observed=np.array([observed]),
        true=np.array([true]),
        both=np.array([both]),
        twice=np.array([twice]),
    )


def _fails(p: Array, n: int, cut: int) -> Array:
    """P(X < cut) of n lines at shares p."""
    from scipy.special import bdtr

    return np.asarray(bdtr(cut - 1, n, np.clip(p, 0.0, 1.0)) if cut > 0 else np.zeros_like(p))


def _nodes(beta: core.BetaMoments, points: int) -> tuple[Array, Array]:
    """True shares and weights for means over the whole beta; exact for polynomials of 2·points − 1."""
    from scipy.special import roots_jacobi

    x, w = roots_jacobi(points, beta.beta - 1, beta.alpha - 1)
    return beta.low + (beta.high - beta.low) * (1 + x) / 2, w / w.sum()


def _part_nodes(beta: core.BetaMoments, points: int, at: float) -> tuple[Array, Array]:
    """The same over the part below ``at`` of the beta’s range, or above it where that is smaller."""
    from scipy.special import betaln, roots_jacobi

    a, b = (beta.alpha, beta.beta) if at <= 0.5 else (beta.beta, beta.alpha)
    width = min(at, 1 - at)
    x, w = roots_jacobi(points, 0.0, a - 1)
    v = (1 + x) / 2
    size = np.exp(a * np.log(width / 2) - betaln(a, b))
    weights = w * size * (1 - width * v) ** (b - 1)
    place = width * v if at <= 0.5 else 1 - width * v
    return beta.low + (beta.high - beta.low) * place, weights


def _result(
    made: Tables | None, beta: core.BetaMoments, length: int, cut: int, kind: str
) -> LivingstonLewis:
    if made is None:
        nothing = np.array([np.nan])
        made = Tables(observed=nothing, true=nothing, both=nothing, twice=nothing)
    f, t, b, d = (float(x[0]) for x in (made.observed, made.true, made.both, made.twice))
    found = LivingstonLewis(float(made.accuracy[0]), float(made.consistency[0]))
    found.alpha, found.beta, found.low, found.high = beta
    found.length, found.cut, found.model = length, cut, kind
    found.joint = np.array([[b, t - b], [f - b, 1 - f - t + b]])
    found.both = np.array([[d, f - d], [f - d, 1 - 2 * f + d]])
    found.chance = f**2 + (1 - f) ** 2
    rest = 1 - found.chance
    found.kappa = (found.consistency - found.chance) / rest if rest > 0 else float("nan")
    return found


# --- the report ---------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    """The fit of the totals, accuracy and consistency beside gold, and the decomposition."""
    made: list[Block] = []
    fits = _fit_table(scene, estimates)
    if fits is None:
        told = _reasons(scene, estimates)
        return [Paragraph(text=told, tone=Tone.NOTE)] if told else []
    made.append(fits)
    made += _cut_tables(scene, estimates)
    decomposed = _decomposition(scene, estimates)
    if decomposed is not None:
        made.append(decomposed)
    limits = _limits(scene)
    if limits:
        made.append(Paragraph(text=limits, tone=Tone.NOTE))
    return made


def _rows_of(scene: Scene, estimates: Estimates, statistic: str) -> list[Any]:
    return [e for e in estimates.of(statistic, slice=scene.slice) if e.key.grader in scene.places]


def _side(scene: Scene, key: Key) -> Any:
    """Whose totals a row is about: the grader, and for gold beside which grader."""
    if key.other:
        return say("{grader} ({other})", grader=Name(key.grader), other=_other(key.other))
    return Name(key.grader)


def _other(other: str) -> Any:
    return other if other == ALL else say("on the responses of {other}", other=Name(other))


def _fit_table(scene: Scene, estimates: Estimates) -> Table | None:
    rows = []
    for alpha in _rows_of(scene, estimates, "beta_binomial_alpha"):
        key = _fields(alpha.key)
        reliability = estimates.get("beta_binomial_reliability", **key)
        if reliability is None or reliability.number is None:
            continue
        rows.append(
            (
                cell(_side(scene, alpha.key)),
                cell(alpha),
                *(
                    cell(estimates.get(f"beta_binomial_{s}", **key))
                    for s in ("beta", "chi2", "df", "p")
                ),
                cell(reliability),
                cell(alpha.n, Kind.COUNT),
            )
        )
    if not rows:
        return None
    return Table(
        title="Totals as a beta-binomial",
        columns=(
            Column(title="verdicts of", kind=Kind.NAME),
            Column(title="α", kind=Kind.COEFFICIENT),
            Column(title="β", kind=Kind.COEFFICIENT),
            Column(title="χ²", kind=Kind.COEFFICIENT),
            Column(title="df", kind=Kind.COUNT),
            Column(title="p", kind=Kind.COEFFICIENT),
            Column(title="implied reliability", kind=Kind.COEFFICIENT),
            Column(title="responses", kind=Kind.COUNT),
        ),
        rows=tuple(rows),
        note=(
            "Fitted by maximum likelihood. The implied reliability is of the bank as scored, with the "
            "drawing of lines as its error. A large p does not show that the model holds, nor that "
            "lines are independent of each other: it looks at totals only.",
        ),
    )


def _fields(key: Key) -> dict[str, str]:
    return {"grader": key.grader, "other": key.other, "cut": key.cut, "slice": key.slice}


def _cut_tables(scene: Scene, estimates: Estimates) -> list[Block]:
    """One table a way of pairing: every coefficient beside gold’s, or the grader’s verdicts alone."""
    paired, alone = [], []
    for accuracy in _rows_of(scene, estimates, "livingston_lewis_accuracy"):
        key = _fields(accuracy.key)
        if accuracy.key.grader == scene.gold and len(scene.panel) > 0:
            continue
        consistency = estimates.get("livingston_lewis_consistency", **key)
        difference = estimates.get("livingston_lewis_accuracy_minus_gold", **key)
        head = (cell(_side(scene, accuracy.key)), cell(accuracy.key.cut))
        if difference is None:
            alone.append((*head, cell(accuracy), cell(consistency), cell(accuracy.n, Kind.COUNT)))
            continue
        gold = key | {"grader": scene.gold}
        if len(scene.panel) > 1:
            gold["other"] = accuracy.key.grader
        paired.append(
            (
                *head,
                cell(accuracy),
                cell(estimates.get("livingston_lewis_accuracy", **gold)),
                cell(difference, Kind.POINTS),
                cell(consistency),
                cell(estimates.get("livingston_lewis_consistency", **gold)),
                cell(estimates.get("livingston_lewis_consistency_minus_gold", **key), Kind.POINTS),
            )
        )
    heads = (Column(title="verdicts of", kind=Kind.NAME), Column(title="cut", kind=Kind.TEXT))
    made: list[Block] = []
    if paired:
        columns = tuple(
            Column(title=f"{what}, {of}", kind=kind)
            for what in ("LL accuracy", "LL consistency")
            for of, kind in (
                ("judge", Kind.SHARE),
                ("gold", Kind.SHARE),
                ("difference", Kind.POINTS),
            )
        )
        made.append(
            Table(
                title="Would pass or fail survive another sample of lines? (Livingston–Lewis)",
                columns=(*heads, *columns),
                rows=tuple(paired),
                note=(
                    "A property of the bank: an error-free scorer has the values under gold. Lines count "
                    "as a sample from a wider domain. It is not the share of gate decisions that agree "
                    "with gold.",
                ),
            )
        )
    if alone:
        made.append(
            Table(
                title="Would pass or fail survive another sample of lines? (Livingston–Lewis, no gold)",
                columns=(
                    *heads,
                    Column(title="LL accuracy", kind=Kind.SHARE),
                    Column(title="LL consistency", kind=Kind.SHARE),
                    Column(title="responses", kind=Kind.COUNT),
                ),
                rows=tuple(alone),
                note=(
                    "A property of the bank as scored: without gold nobody knows what an error-free "
                    "scorer would have. It says nothing of whether gate decisions are right.",
                ),
            )
        )
    return made


def _decomposition(scene: Scene, estimates: Estimates) -> Table | None:
    rows = []
    for error in _rows_of(scene, estimates, "decomposition_gate_error"):
        key = _fields(error.key)
        level = estimates.get("livingston_lewis_accuracy", **key)
        shortfall = estimates.get("decomposition_bank_shortfall", **key)
        difference = estimates.get("decomposition_difference", **key)
        numbers = [None if e is None else e.number for e in (level, shortfall, error, difference)]
        if any(x is None for x in numbers):
            continue
        base, *terms = (float(x) for x in numbers if x is not None)
        gate = estimates.get("gate_accuracy", **key)
        rows.append(
            (
                cell(_side(scene, error.key)),
                cell(error.key.cut),
                cell(gate) if gate is not None else cell(1 + terms[1], Kind.SHARE),
                cell(base, Kind.SHARE),
                cell(sum(terms), Kind.POINTS),
                cell(shortfall),
                cell(error),
                cell(difference),
            )
        )
    if not rows:
        return None
    return Table(
        title="Why gate accuracy and Livingston–Lewis accuracy differ",
        columns=(
            Column(title="judge", kind=Kind.NAME),
            Column(title="cut", kind=Kind.TEXT),
            Column(title="gate accuracy against gold", kind=Kind.SHARE),
            Column(title="LL accuracy", kind=Kind.SHARE),
            Column(title="difference", kind=Kind.POINTS),
            Column(title="= shortfall of an error-free scorer", kind=Kind.POINTS),
            Column(title="+ less gate error", kind=Kind.POINTS),
            Column(title="+ less LL(judge) − LL(gold)", kind=Kind.POINTS),
        ),
        rows=tuple(rows),
        note=(
            "The two are not comparable: one asks whether the decision is gold’s on the lines used, the "
            "other whether it would survive other lines. Their difference is an identity of three "
            "terms: (1 − LL on gold) − (1 − gate accuracy) − (LL on the judge’s verdicts − LL on gold). "
            "The first is approximately the sampling of lines, of which the judge has no part. Points "
            "are percentage points.",
        ),
    )


def _reasons(scene: Scene, estimates: Estimates) -> Any:
    """Why there is no fit, where no side has one."""
    for estimate in _rows_of(scene, estimates, "beta_binomial_reliability"):
        if estimate.reason:
            return (f"Beta-binomial and Livingston–Lewis are not given: {estimate.reason}.",)
    return ()


def _limits(scene: Scene) -> Any:
    """How many of the resampled banks stood at the binomial limit, where any did."""
    said = []
    for one in sides(scene) if scene.bank is not None else ():
        tally, limits = scene.memory.get(("classification", one.keys), (None, ()))
        if not limits:
            continue
        at_limit = np.concatenate([states for states, _ in limits])
        times = _times(tally, len(at_limit), limits[0][1])
        banks = "resampled banks"
        if times is not None:
            banks = "banks with one cluster left out"
            if scene.bank is not None and scene.bank.own_cluster:
                banks = "banks with one response left out"
        else:
            times = np.ones(len(at_limit), dtype=np.int64)
        for key, many in zip(one.keys, (times @ at_limit[: len(times)]).tolist(), strict=True):
            if many:
                said.append(
                    say(
                        "{grader}: in {many} of {all} {banks}",
                        grader=_side(scene, key) if key.other else Name(key.grader),
                        many=counted(many),
                        all=counted(int(times.sum())),
                        banks=banks,
                    )
                )
    if not said:
        return ()
    text = said[0]
    for more in said[1:]:
        text = (*text, "; ", *more)
    return (
        *text,
        " the totals spread no more than a binomial. They count, with one share for all responses.",
    )


def _times(tally: Tally, banks: int, first: Array) -> Array | None:
    """How many clusters each of the jackknife's banks stands for; ``None`` where banks were drawn.

    The jackknife leaves out each distinct row once, and where rows are very many once a statistic;
    ``first`` are the totals of the first bank.
    """
    left = list(left_out(tally))
    if not left or not np.array_equal(left[0][0][0], first):
        return None
    times = np.concatenate([clusters for _, clusters, _ in left])
    return times if banks % len(times) == 0 else None


FAMILY = Family(
    name="classification",
    statistics=(*FIT, *(s for pair in AT_CUTS for s in pair), *TERMS),
    parts=parts,
    section="What the bank says: coefficients, with the value on gold",
    order=40,
    blocks=blocks,
    kinds=KINDS,
)
