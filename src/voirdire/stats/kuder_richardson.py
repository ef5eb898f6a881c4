"""Internal consistency of a checklist: KR-20 and its kin, which describe the bank and not the judge.

Every coefficient is said of the judge's verdicts and, from the same tally, of gold's on the same
responses: the gold-computed null. An error-free scorer has a value of its own, which the bank sets.

Conventions. KR-20 has item variances p(1 − p) and the variance of totals with n − 1, as "Three Ways
Classical Test Theory Can Mislead About LLM Judges" writes it (Appendix A.3); so it can exceed 1,
and is not clipped. With n in both it is Cronbach's alpha, which stands beside it. A line that never
varies counts in K for these; correlations leave it out. Where each question has its own checklist,
the lines are positions: position j pools the j-th line of every question.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voirdire.document import Block, Cell, Column, Kind, Paragraph, Table, Tone, cell
from voirdire.errors import UndefinedWarning
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate
from voirdire.sides import ALL, Sides, different_lengths, sides
from voirdire.stats._checklist import KINDS, Asks, asks, beside_gold
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
from voirdire.stats.pairwise import said
from voirdire.tally import of_rows
from voirdire.wording import Name, Text, listed, number, plural

__all__ = [
    "alpha_without_line",
    "cronbach_alpha",
    "kr20",
    "kr21",
    "mean_inter_element_correlation",
    "omega_total",
    "standardised_alpha",
]

SHUFFLES = 2000  # orders of the lines inside the questions
FEWEST_SHUFFLES = 50
_SHUFFLED = 4_000_000  # places that are shuffled in all; many questions have fewer shuffles
_CELLS = 1 << 23  # of the replicates of a tally; beyond them cross products are not kept
SWEEPS = 500  # of the one-factor fit, after which it is said not to have converged
_TOLERANCE = 1e-9  # of its loadings
MOST_LINES_SHOWN = 30

ONE_LINE = "there is one line only: consistency between lines needs two"
NONE_SCORED = "no response has verdicts on all its lines"
ONE_RESPONSE = "there is one response only: a variance needs two"
SAME_TOTALS = "all totals are the same: there is no variance to divide by"
TWO_VARY = "fewer than two lines vary"
THREE_VARY = "fewer than three lines vary: one factor cannot be told from them"
NOT_CONVERGED = f"the one-factor fit did not converge in {SWEEPS} sweeps"
MANY_LINES = (
    "too many lines for an interval: the products of all pairs of lines are not kept by cluster"
)
SPLIT_QUESTIONS = (
    "a question has responses in several clusters: what is pooled over questions does not add up "
    "over clusters. Use the question as the cluster (--cluster)"
)
NO_REPEATS = "no question has two responses"
SAME_WITHIN = "within every question all totals are the same"

TWM = "“Three Ways Classical Test Theory Can Mislead About LLM Judges”"
BANK = "It describes the bank, not the judge: an error-free scorer has a value too, that of gold."


def _coefficient(
    name: str,
    title: str,
    question: str,
    source: Source,
    *,
    undefined_when: str,
    formula: str,
    conventions: str,
    reading: str = "",
    scale: Scale = Scale.LOG_ONE_MINUS,
    low: float | None = None,
    high: float | None = None,
    keys: tuple[str, ...] = ("grader",),
) -> Estimand:
    return Estimand(
        name=name,
        title=title,
        question=question,
        describes=Describes.BANK,
        keys=keys,
        unit=Unit.COEFFICIENT,
        scale=scale,
        low=low,
        high=high,
        reading=f"{reading} {BANK}".strip(),
        moves_with=(
            "how far the responses differ in quality",
            "the number of lines",
            "errors of the scorer that fall together",
        ),
        undefined_when=undefined_when,
        source=source,
        formula=formula,
        conventions=conventions,
    )


# The letters of the formulas, and what of them is a convention.
LETTERS = (
    "X_ij: the verdict on line (or position) j of K lines of response i, 1 for yes, on the n responses scored "
    "in full; p̂_j: the share of responses that meet line j; X_i = Σ_j X_ij, X̄ their mean"
)
VARIES = "A line that never varies counts in K (psych drops it by default)."
FORMULA = (
    r"\frac{K}{K - 1} \left(1 - \frac{\sum_{j} \hat{p}_{j} (1 - \hat{p}_{j})}{s_{X}^{2}}\right), "
    r"\quad s_{X}^{2} = \frac{1}{n - 1} \sum_{i} (X_{i} - \bar{X})^{2}"
)
WITH_N = FORMULA.replace("{1}{n - 1}", "{1}{n}")
FACTOR = (
    "Correlations leave out lines that never vary. A response with a missing verdict is left out; psych takes "
    "the pairs that are there."
)

KR20 = _coefficient(
    "kr20",
    "KR-20",
    "Do the lines of the checklist rank the responses alike?",
    Source(
        text=f"{TWM}, Section 3 and Appendix A.3; Kuder and Richardson 1937, Psychometrika 2, p. 158",
        equation="20",
    ),
    reading=(
        "In the paper's form: item variances p(1 − p), the variance of totals with n − 1. It can exceed "
        "1; with n in both it is Cronbach's alpha."
    ),
    undefined_when="there are fewer than two lines or responses, or all totals are the same",
    formula=rf"\text{{KR-20}} = {FORMULA}",
    conventions=(
        f"{LETTERS}. Divisor n in the variances of the lines and n − 1 in that of the totals; with n in both "
        f"it is alpha. {VARIES} A response with a missing verdict is left out."
    ),
)
KR21 = _coefficient(
    "kr21",
    "KR-21",
    "What would KR-20 be if all lines were met equally often?",
    Source(text="Kuder and Richardson 1937, Psychometrika 2, p. 159", equation="21"),
    reading="From totals alone, with n − 1; never above KR-20.",
    undefined_when=KR20.undefined_when,
    formula=(
        r"\text{KR-21} = \frac{K}{K - 1} \left(1 - \frac{\bar{X} (K - \bar{X})}{K s_{X}^{2}}\right), "
        r"\quad s_{X}^{2} = \frac{1}{n - 1} \sum_{i} (X_{i} - \bar{X})^{2}"
    ),
    conventions=f"{LETTERS}. No divisor is settled: n − 1 here, n elsewhere.",
)
ALPHA = _coefficient(
    "cronbach_alpha",
    "Cronbach’s alpha",
    "Do the lines of the checklist rank the responses alike, with one divisor in both variances?",
    Source(text="Cronbach 1951, Psychometrika 16(3), p. 299", equation="2"),
    reading="For yes/no lines it is KR-20 with n in both variances. At most 1.",
    high=1,
    undefined_when=KR20.undefined_when,
    formula=rf"\alpha = {WITH_N}",
    conventions=f"{LETTERS}. {VARIES} A response with a missing verdict is left out; psych takes covariances over the pairs that are there.",
)
WITHIN = _coefficient(
    "kr20_within_question",
    "KR-20 within questions",
    "Do the lines of a question's own checklist rank the responses to that question alike?",
    Source(text=f"KR-20 ({TWM}, Appendix A.3), its variances pooled within questions"),
    reading=(
        "Item variances p(1 − p) within each question, weighed by its responses; the variance of "
        "totals within questions with n − 1 each. The order of the lines does not matter."
    ),
    undefined_when=(
        "no question has two responses, there is one line only, or within every question all totals "
        "are the same"
    ),
    formula=(
        r"\frac{K}{K - 1} \left(1 - \frac{\frac{1}{n} \sum_{q} n_{q} \sum_{j} \hat{p}_{qj} (1 - \hat{p}_{qj})}"
        r"{s^{2}}\right), \quad s^{2} = \frac{\sum_{q} \sum_{i \in q} (X_{i} - \bar{X}_{q})^{2}}"
        r"{\sum_{q} (n_{q} - 1)}"
    ),
    conventions=(
        f"{LETTERS}; q: the questions with two scored responses or more, n_q how many, n their sum, X̄_q the "
        "mean total and p̂_qj the share that meets line j within q."
    ),
)
MEAN_R = _coefficient(
    "mean_inter_element_correlation",
    "Mean inter-element correlation",
    "How far do two lines go together, on average?",
    Source(text=f"{TWM}, Section 3 and Appendix A.3"),
    reading="The mean Pearson correlation over the pairs of lines that both vary.",
    scale=Scale.FISHER_Z,
    low=-1,
    high=1,
    undefined_when=TWO_VARY,
    formula=r"\bar{r} = \frac{2}{K' (K' - 1)} \sum_{j < k} r_{jk}",
    conventions=(
        "r_jk: Pearson’s correlation of the verdicts on lines j and k, over the responses scored in full; K′: "
        f"the lines that vary. Averaged without a transformation. {FACTOR}"
    ),
)
STANDARDISED = _coefficient(
    "kr20_standardised",
    "KR-20, standardised",
    "What would KR-20 be if all lines had the same variance?",
    Source(text=f"{TWM}, Section 3: K r̄ / (1 + (K − 1) r̄)"),
    reading="K is the number of lines that vary.",
    high=1,
    undefined_when=f"{TWO_VARY}, or they cancel out: r̄ = −1 / (K − 1)",
    formula=r"\frac{K' \bar{r}}{1 + (K' - 1)\, \bar{r}}",
    conventions=f"r̄: mean_inter_element_correlation; K′: the lines that vary. {FACTOR}",
)
OMEGA = _coefficient(
    "omega_total",
    "Omega total, one factor",
    "Which share of the variance of standardised totals would one common factor explain?",
    Source(
        text=(
            "McDonald 1999, Test Theory, p. 89; one factor by least squares on correlations (Harman "
            "and Jones 1966, Psychometrika 31, p. 351)"
        )
    ),
    reading=(
        "One factor, unweighted least squares (minres) on the correlations of the lines that vary. "
        "Other omegas, with several factors, are other numbers."
    ),
    low=0,
    high=1,
    undefined_when="fewer than three lines vary, or the fit does not converge",
    formula=(
        r"\omega = \frac{\left(\sum_{j} \lambda_{j}\right)^{2}}"
        r"{\left(\sum_{j} \lambda_{j}\right)^{2} + \sum_{j} (1 - \lambda_{j}^{2})}, "
        r"\quad \lambda = \operatorname{argmin}\, \sum_{j < k} (r_{jk} - \lambda_{j} \lambda_{k})^{2}"
    ),
    conventions=(
        "r_jk: Pearson’s correlation of the verdicts on lines j and k; λ_j: the loadings, no further from 0 "
        f"than 1. psych’s default has three factors. {FACTOR}"
    ),
)
ALPHA_WITHOUT = _coefficient(
    "alpha_without_line",
    "Alpha without a line",
    "What would Cronbach's alpha be without this line?",
    Source(text="Cronbach 1951, Psychometrika 16(3), p. 299, on the other lines"),
    reading="A line that never varies only counts in K.",
    high=1,
    keys=("grader", "line"),
    undefined_when="fewer than two other lines, or the totals of the other lines are all the same",
    formula=(
        r"\alpha_{-l} = \frac{K - 1}{K - 2} \left(1 - \frac{\sum_{j \ne l} \hat{p}_{j} (1 - \hat{p}_{j})}"
        r"{s_{-l}^{2}}\right), \quad s_{-l}^{2} = \frac{1}{n} \sum_{i} (Y_{i} - \bar{Y})^{2}, "
        r"\quad Y_{i} = X_{i} - X_{il}"
    ),
    conventions=f"{LETTERS}; l: the line that is left out. Divisor n in both variances.",
)
KR20_WITHOUT = _coefficient(
    "kr20_without_line",
    "KR-20 without a line",
    "What would KR-20 be without this line?",
    Source(text=f"KR-20 ({TWM}, Appendix A.3) on the other lines"),
    reading="A line that never varies only counts in K.",
    keys=("grader", "line"),
    undefined_when=ALPHA_WITHOUT.undefined_when,
    formula=ALPHA_WITHOUT.formula.replace(r"\alpha", r"\text{KR-20}").replace(
        "{1}{n}", "{1}{n - 1}"
    ),
    conventions=f"{LETTERS}; l: the line that is left out. Divisor n in the variances of the lines and n − 1 in that of the totals.",
)


def _order(
    name: str, title: str, question: str, reading: str, *, formula: str, conventions: str
) -> Estimand:
    return _coefficient(
        name,
        title,
        question,
        Source(text=f"KR-20 ({TWM}, Appendix A.3) over orders of the lines inside the questions"),
        reading=reading,
        scale=Scale.NONE,
        undefined_when=KR20.undefined_when,
        formula=formula,
        conventions=conventions,
    )


ORDERS = (
    "X_ij: the verdict on line j of response i, to question q(i); π_q: an order of the lines of question q. "
    "Orders are drawn with the seed; the given order is among them, and judge and gold have the same ones."
)
SHUFFLED_LOW = _order(
    "kr20_shuffled_low",
    "KR-20, lowest over orders",
    "How low does KR-20 go when the order of the lines inside the questions is shuffled?",
    f"Over {SHUFFLES:,} seeded shuffles (fewer where questions are very many) and the given order.",
    formula=r"\min_{\pi}\, \text{KR-20}(X^{\pi}), \quad X_{ij}^{\pi} = X_{i,\pi_{q(i)}(j)}",
    conventions=ORDERS,
)
SHUFFLED_HIGH = _order(
    "kr20_shuffled_high",
    "KR-20, highest over orders",
    "How high does KR-20 go when the order of the lines inside the questions is shuffled?",
    f"Over {SHUFFLES:,} seeded shuffles (fewer where questions are very many) and the given order.",
    formula=r"\max_{\pi}\, \text{KR-20}(X^{\pi}), \quad X_{ij}^{\pi} = X_{i,\pi_{q(i)}(j)}",
    conventions=ORDERS,
)
SORTED = _order(
    "kr20_sorted_lines",
    "KR-20, most that an order can give",
    "How high can KR-20 be in any order of the lines inside the questions?",
    "Exact: the lines of every question sorted by how often they are met. KR-21 bounds it below.",
    formula=r"\text{KR-20}(X^{\pi}), \quad X_{ij}^{\pi} = X_{i,\pi_{q(i)}(j)}, \quad \hat{p}_{q,\pi_{q}(1)} \le \ldots \le \hat{p}_{q,\pi_{q}(K)}",
    conventions=(
        "X_ij: the verdict on line j of response i, to question q(i); p̂_q,j: the share of the responses to q "
        "that meet line j; π_q: the order of the lines of q by it."
    ),
)


# --- cells ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """What the coefficients need of totals ``(..., cells)``, for each side.

    ``n`` is ``(..., 1)`` responses; ``met`` ``(..., sides, K)`` how often each line is met;
    ``with_total`` ``(..., sides, K)`` the sum of totals over the responses that meet the line, so
    that it adds up to the sum of squared totals.
    """

    n: Array
    met: Array
    with_total: Array

    @property
    def k(self) -> int:
        return int(self.met.shape[-1])

    @property
    def line_squares(self) -> Array:
        """Sum of squares of each line about its mean, ``(..., sides, K)``."""
        return np.asarray(self.met * (1 - self.met / self.n[..., None]))

    @property
    def total_squares(self) -> Array:
        """Sum of squares of the totals about their mean, ``(..., sides)``; nan where they are equal."""
        squares = self.with_total.sum(-1)
        return _positive(squares - self.met.sum(-1) ** 2 / self.n, squares)


def _positive(squares: Array, scale: Array) -> Array:
    """Sums of squares; nan where they are zero up to rounding."""
    return np.where(squares > 1e-12 * scale, squares, np.nan)


def _pairs(k: int) -> tuple[Array, Array]:
    return np.triu_indices(k)


def _moments(cells: Array, given: Given) -> Moments:
    return remembered(given, "moments", cells, lambda: _read(cells, given))  # type: ignore[no-any-return]


def _read(cells: Array, given: Given) -> Moments:
    k, count = given["k"], given["sides"]
    each = cells[..., 1:].reshape(*cells.shape[:-1], count, -1)
    if not given["cross"]:
        return Moments(n=cells[..., :1], met=each[..., :k], with_total=each[..., k:])
    left, right = _pairs(k)
    both = np.zeros((len(left), k))  # which lines a pair belongs to
    both[np.arange(len(left)), left] = 1
    both[np.arange(len(left)), right] = 1
    return Moments(
        n=cells[..., :1],
        met=each[..., left == right],
        with_total=np.einsum("...t,tk->...k", each, both),
    )


def _cells_of(scene: Scene, names: Sequence[str], cross: bool) -> Callable[[Array], Array]:
    """The cells of responses: 1, then for each side the products of all pairs of lines.

    Without ``cross`` for each side the verdicts, then the verdicts times the total.
    """
    bank = scene.bank
    assert bank is not None
    left, right = _pairs(bank.k)
    width = len(left) if cross else 2 * bank.k

    def cells_of(rows: Array) -> Array:
        kind = np.int8 if cross else np.int64
        made = np.ones((len(rows), 1 + len(names) * width), dtype=kind)
        for side, name in enumerate(names):
            verdicts = bank.verdicts[rows, bank.places[name], : bank.k]
            into = made[:, 1 + side * width : 1 + (side + 1) * width]
            if cross:
                np.multiply(verdicts[:, left], verdicts[:, right], out=into)
            else:
                into[:, : bank.k] = verdicts
                into[:, bank.k :] = verdicts * verdicts.sum(axis=1, dtype=np.int64)[:, None]
        return made

    return cells_of


# --- coefficients --------------------------------------------------------------------------------


def kr20_from(
    line_squares: Array, total_squares: Array, n: Array, k: int, *, ddof: float = 1
) -> Array:
    """KR-20 from the summed squares of lines and of totals about their means.

    ``ddof`` 1 is the paper's form; 0 is Cronbach's alpha. nan for fewer than two lines or responses.
    """
    if k < 2:
        return np.full(np.shape(total_squares), np.nan)
    variance = np.where(n > 1, total_squares / (n - ddof), np.nan)
    return np.asarray(k / (k - 1) * (1 - line_squares / n / variance))


def _kr20(cells: Array, given: Given, ddof: float = 1) -> Array:
    m = _moments(cells, given)
    return kr20_from(m.line_squares.sum(-1), m.total_squares, m.n, m.k, ddof=ddof)


def _alpha(cells: Array, given: Given) -> Array:
    return _kr20(cells, given, ddof=0)


def kr21_from(total: Array, total_squares: Array, n: Array, k: int, *, ddof: float = 1) -> Array:
    """KR-21 from the sum of totals and their summed squares about the mean."""
    mean = total / n
    return kr20_from(n * mean * (k - mean) / k, total_squares, n, k, ddof=ddof)


def _kr21(cells: Array, given: Given) -> Array:
    m = _moments(cells, given)
    return kr21_from(m.met.sum(-1), m.total_squares, m.n, m.k)


def _without(ddof: float) -> Callable[[Array, Given], Array]:
    def solve(cells: Array, given: Given) -> Array:
        m = _moments(cells, given)
        lines = m.line_squares
        squares = m.with_total.sum(-1)
        total = squares - m.met.sum(-1) ** 2 / m.n
        together = m.with_total - m.met * (m.met.sum(-1) / m.n)[..., None]
        rest = _positive(total[..., None] - 2 * together + lines, squares[..., None])
        found = kr20_from(
            lines.sum(-1)[..., None] - lines, rest, m.n[..., None], m.k - 1, ddof=ddof
        )
        return found.reshape(*cells.shape[:-1], -1)

    return solve


def _within(cells: Array, given: Given) -> Array:
    """From cells n, degrees of freedom, and for each side the squares of lines and of totals."""
    n, freedom = cells[..., :1], cells[..., 1:2]
    lines, totals = cells[..., 2::2], cells[..., 3::2]
    k = given["k"]
    if k < 2:
        return np.full(lines.shape, np.nan)
    variance = _positive(totals, n) / np.where(freedom > 0, freedom, np.nan)
    return np.asarray(k / (k - 1) * (1 - lines / n / variance))


def _correlations(cells: Array, given: Given) -> tuple[Array, Array]:
    """Correlations of all pairs of lines ``(..., sides, pairs)``, and which lines vary."""
    k, count = given["k"], given["sides"]
    left, right = _pairs(k)
    apart = left != right
    left, right = left[apart], right[apart]
    m = _moments(cells, given)
    n = m.n[..., None]
    each = cells[..., 1:].reshape(*cells.shape[:-1], count, -1)[..., apart]
    squares = m.line_squares
    vary = squares > 1e-12 * n
    scale = np.where(vary, 1 / np.sqrt(np.where(vary, squares, 1.0)), 0.0)
    together = each - m.met[..., left] * m.met[..., right] / n
    return np.where(vary[..., left] & vary[..., right], together, 0.0) * (
        scale[..., left] * scale[..., right]
    ), vary


def _correlated(cells: Array, given: Given) -> tuple[Array, Array]:
    return remembered(  # type: ignore[no-any-return]
        given, "correlations", cells, lambda: _correlations(cells, given)
    )


def _mean_r(cells: Array, given: Given) -> Array:
    correlations, vary = _correlated(cells, given)
    lines = vary.sum(-1)
    pairs = lines * (lines - 1) / 2
    return np.asarray(correlations.sum(-1) / np.where(pairs > 0, pairs, np.nan))


def standardised_from(mean_r: Array, lines: Array | int) -> Array:
    """``K r̄ / (1 + (K − 1) r̄)``; nan where the denominator is not above 0."""
    below = 1 + (lines - 1) * mean_r
    return np.asarray(lines * mean_r / np.where(below > 1e-12, below, np.nan))


def _standardised(cells: Array, given: Given) -> Array:
    return standardised_from(_mean_r(cells, given), _correlated(cells, given)[1].sum(-1))


def one_factor(correlations: Array, vary: Array, start: Array | None = None) -> Array:
    """Loadings of one factor by unweighted least squares on correlations, for many matrices at once.

    ``correlations`` is ``(K, K, matrices)`` with a zero diagonal, ``vary`` ``(K, matrices)`` which
    lines are in it (the others have zero correlations and get no loading); ``start`` the loadings
    to begin with. Returns ``(K, matrices)``; nan where the fit did not converge. Each sweep sets one
    loading after the other to its least-squares value, no further from 0 than 1.
    """
    if start is None:
        # The principal axis: the fit converges to the same place from there, and quickly.
        whole = correlations.transpose(2, 0, 1) + np.eye(len(correlations)) * vary.T[:, None, :]
        values, axes = np.linalg.eigh(whole)
        start = (axes[..., -1] * np.sqrt(np.clip(values[..., -1:] - 1, 0.1, None))).T
    loadings = np.clip(np.where(vary, start, 0.0), -1, 1)
    found = np.full(loadings.shape, np.nan)
    places = np.arange(loadings.shape[1])
    for sweep in range(1, SWEEPS + 1):
        before = loadings.copy()
        squares = np.einsum("kb,kb->b", loadings, loadings)
        for j in range(len(loadings)):
            others = squares - loadings[j] ** 2
            fitted = np.einsum("kb,kb->b", correlations[j], loadings)
            fitted = np.clip(fitted / np.where(others > 1e-12, others, 1.0), -1, 1)
            squares = others + fitted**2
            loadings[j] = fitted
        moved = np.abs(loadings - before).max(axis=0, initial=0.0) > _TOLERANCE
        if not moved.any():
            found[:, places] = loadings
            break
        if sweep % 8 == 0 and moved.mean() < 0.75:  # go on with those that still move
            found[:, places[~moved]] = loadings[:, ~moved]
            places, loadings = places[moved], loadings[:, moved]
            correlations = correlations[:, :, moved]
    return found


def omega_from(loadings: Array, vary: Array) -> Array:
    """``(Σλ)² / ((Σλ)² + Σ(1 − λ²))`` over the lines that vary; nan for fewer than three of them."""
    common = loadings.sum(axis=0) ** 2
    unique = np.where(vary, 1 - loadings**2, 0.0).sum(axis=0)
    return np.where(vary.sum(axis=0) >= 3, common / (common + unique), np.nan)


def _fitted(cells: Array, given: Given) -> tuple[Array, Array]:
    """Loadings and varying lines, ``(K, sides × replicates)``, one side after the other."""
    k, count = given["k"], given["sides"]
    correlations, vary = _correlated(cells, given)
    replicates = vary.size // (count * k)
    pairs = correlations.reshape(replicates, count, correlations.shape[-1]).transpose(2, 1, 0)
    flat = pairs.reshape(len(pairs), count * replicates)
    matrices = np.zeros((k, k, flat.shape[1]))
    left, right = np.triu_indices(k, 1)
    matrices[left, right] = flat
    matrices[right, left] = flat
    varying = vary.reshape(replicates, count, k).transpose(2, 1, 0).reshape(k, -1)
    start = given.get("start")
    if start is not None:  # near enough to the whole sample's loadings to begin with them
        start = np.repeat(start, replicates, axis=1)
    return one_factor(matrices, varying, start), varying


def _omega(cells: Array, given: Given) -> Array:
    return remembered(given, "omega", cells, lambda: _omega_of(cells, given))  # type: ignore[no-any-return]


def _omega_of(cells: Array, given: Given) -> Array:
    loadings, vary = _fitted(cells, given)
    omega = omega_from(loadings, vary)
    return omega.reshape(given["sides"], -1).T.reshape(*cells.shape[:-1], -1)


def _reasons(*, lines: int, why: str = "") -> Callable[[Array, Given], list[str]]:
    """Why the coefficients of each side are undefined, for those that need so many lines."""

    def reason(cells: Array, given: Given) -> list[str]:
        m = _moments(cells, given)
        n = float(m.n[0])
        if n <= 0:
            shared = NONE_SCORED
        elif m.k < lines:
            shared = why or ONE_LINE
        elif n <= 1:
            shared = ONE_RESPONSE
        else:
            shared = why or SAME_TOTALS
        return [shared] * (m.k * given["sides"])

    return reason


def _varying_reason(cells: Array, given: Given) -> list[str]:
    n = float(cells[0])
    lines = _correlated(cells, given)[1].sum(-1)
    return [NONE_SCORED if n <= 0 else TWO_VARY if few < 2 else "" for few in lines]


def _omega_reason(cells: Array, given: Given) -> list[str]:
    n = float(cells[0])
    lines = _correlated(cells, given)[1].sum(-1)
    return [NONE_SCORED if n <= 0 else THREE_VARY if few < 3 else NOT_CONVERGED for few in lines]


def _within_reason(cells: Array, given: Given) -> list[str]:
    n, freedom = float(cells[0]), float(cells[1])
    shared = ONE_LINE if given["k"] < 2 else NO_REPEATS if n <= 0 or freedom <= 0 else SAME_WITHIN
    return [shared] * given["sides"]


_TOTALS = _reasons(lines=2)
S_KR20 = beside_gold(KR20, _kr20, reason=_TOTALS)
S_KR21 = beside_gold(KR21, _kr21, reason=_TOTALS)
S_ALPHA = beside_gold(ALPHA, _alpha, reason=_TOTALS)
S_WITHIN = beside_gold(WITHIN, _within, reason=_within_reason)
S_MEAN_R = beside_gold(MEAN_R, _mean_r, reason=_varying_reason)
S_STANDARDISED = beside_gold(STANDARDISED, _standardised, reason=_varying_reason)
S_OMEGA = beside_gold(OMEGA, _omega, reason=_omega_reason)


def _n(cells: Array, given: Given) -> Array:
    return np.asarray(cells[..., :1])


_WITHOUT = _reasons(lines=3, why=ALPHA_WITHOUT.undefined_when)
S_ALPHA_WITHOUT = Statistic(estimand=ALPHA_WITHOUT, solve=_without(0), n=_n, reason=_WITHOUT)
S_KR20_WITHOUT = Statistic(estimand=KR20_WITHOUT, solve=_without(1), n=_n, reason=_WITHOUT)


def _made(place: int) -> Callable[[Array, Given], Array]:
    """What was computed beforehand: n, then the sides of each statistic."""

    def solve(cells: Array, given: Given) -> Array:
        first = 1 + place * given["sides"]
        return cells[..., first : first + given["sides"]]

    return solve


def _order_reason(cells: Array, given: Given) -> list[str]:
    n = float(cells[0])
    why = NONE_SCORED if n <= 0 else ONE_LINE if given["k"] < 2 else SAME_TOTALS
    return [why if n <= 0 or n > 1 else ONE_RESPONSE] * given["sides"]


S_LOW = beside_gold(SHUFFLED_LOW, _made(0), reason=_order_reason)[0]
S_HIGH = beside_gold(SHUFFLED_HIGH, _made(1), reason=_order_reason)[0]
S_SORTED = beside_gold(SORTED, _made(2), reason=_order_reason)[0]

FROM_TOTALS = (S_KR20, S_KR21, S_ALPHA)
FROM_PAIRS = (S_STANDARDISED, S_MEAN_R, S_OMEGA)


# --- parts ---------------------------------------------------------------------------------------


def parts(scene: Scene) -> Iterable[Part]:
    bank = scene.bank
    if bank is None:
        return
    why = different_lengths(scene)
    for of in sides(scene):
        if why or not bank.k:
            yield Part(
                tally=None,
                totals=np.zeros(1),
                asks=(
                    *asks(FROM_TOTALS, of),
                    *asks(FROM_PAIRS, of),
                    *(asks((S_WITHIN,), of) if bank.own else ()),
                    *(_orders(of) if bank.own else ()),
                ),
                undefined=why or NONE_SCORED,
            )
            continue
        yield from _coefficients(scene, of)
        if bank.own:
            yield _within_part(scene, of)
            yield _order_part(scene, of)


def places_of(scene: Scene) -> list[str]:
    """The lines as keys: by name where one checklist serves all, else ``position:j``."""
    bank = scene.bank
    assert bank is not None
    if bank.own:
        return [f"position:{j}" for j in range(1, bank.k + 1)]
    return [bank.lines[i] for i in bank.line[0, : bank.k]]


def _coefficients(scene: Scene, of: Sides) -> Iterable[Part]:
    bank = scene.bank
    assert bank is not None
    k, count = bank.k, len(of.names)
    wide, slim = 1 + count * k * (k + 1) // 2, 1 + count * 2 * k
    clusters = len(np.unique(bank.cluster[of.rows]))
    replicates = max(
        clusters, scene.options.replicates if scene.options.interval == "bootstrap" else 0
    )
    cross = replicates * wide <= _CELLS
    lines = places_of(scene)
    by_line = tuple(replace(key, line=line) for key in of.keys for line in lines)
    given: dict[str, Any] = {"k": k, "sides": count, "cross": cross}
    if replicates * (wide if cross else slim) <= _CELLS:
        given["memo"] = {}  # what is computed on replicates is kept for the other statistics
    tally = scene.summed(of.rows, _cells_of(scene, of.names, cross), (wide if cross else slim,))
    own: Asks = (
        *asks(FROM_TOTALS, of),
        (S_ALPHA_WITHOUT, by_line),
        (S_KR20_WITHOUT, by_line),
    )
    if cross:
        with np.errstate(all="ignore"):
            given["start"] = _finite(_fitted(tally.total, given)[0])
        yield Part(tally=tally, asks=(*own, *asks(FROM_PAIRS, of)), given=given)
        return
    yield Part(tally=tally, asks=own, given=given)
    yield Part(
        tally=None,
        totals=_pair_totals(scene, of),
        asks=asks(FROM_PAIRS, of),
        given={"k": k, "sides": count, "cross": True, "memo": {}},
        no_interval=MANY_LINES,
        clusters=[tally.count] * count,
    )


def _finite(loadings: Array) -> Array | None:
    return loadings if np.isfinite(loadings).all() else None


def _pair_totals(scene: Scene, of: Sides) -> Array:
    """The products of all pairs of lines over all responses, where they are not kept by cluster."""
    bank = scene.bank
    assert bank is not None
    weights = np.ones(len(of.rows)) if bank.weights is None else bank.weights[of.rows]
    left, right = _pairs(bank.k)
    cells = [np.array([weights.sum()])]
    for name in of.names:
        verdicts = bank.verdicts[of.rows, bank.places[name], : bank.k].astype(np.float64)
        cells.append((verdicts.T @ (verdicts * weights[:, None]))[left, right])
    return np.concatenate(cells)


def _by_question(scene: Scene, of: Sides) -> tuple[Array, Array, Array, Array]:
    """By question of the scored responses: responses, weight, lines met, and squared totals' sums.

    ``(questions,)``, ``(questions,)``, ``(sides, questions, K)`` and ``(sides, questions, 2)``: the
    sum of totals and of their squares.
    """
    bank = scene.bank
    assert bank is not None
    rows = of.rows[np.argsort(bank.question[of.rows], kind="stable")]
    question = bank.question[rows]
    weights = np.ones(len(rows)) if bank.weights is None else bank.weights[rows]
    if bank.weights is not None and not bank.frequency:
        # Sums of fractions depend on their order: make it one that no row order shows in.
        totals = [bank.totals[rows, bank.places[name]] for name in of.names]
        rows = rows[np.lexsort((*totals, weights, question))]
        question, weights = bank.question[rows], bank.weights[rows]
    starts = np.flatnonzero(np.r_[True, question[1:] != question[:-1]]) if len(rows) else rows[:0]
    size = np.add.reduceat(weights, starts) if len(rows) else np.zeros(0)
    many = size if bank.frequency else np.diff(np.r_[starts, len(rows)]).astype(np.float64)
    met = np.zeros((len(of.names), len(starts), bank.k))
    sums = np.zeros((len(of.names), len(starts), 2))
    for side, name in enumerate(of.names):
        verdicts = bank.verdicts[rows, bank.places[name], : bank.k].astype(np.float64)
        total = verdicts.sum(axis=1)
        if len(rows):
            met[side] = np.add.reduceat(verdicts * weights[:, None], starts, axis=0)
            sums[side, :, 0] = np.add.reduceat(total * weights, starts)
            sums[side, :, 1] = np.add.reduceat(total**2 * weights, starts)
    return many, size, met, sums


def _within_part(scene: Scene, of: Sides) -> Part:
    """KR-20 pooled within questions; its cells add up over clusters that hold whole questions."""
    bank = scene.bank
    assert bank is not None
    many, size, met, sums = _by_question(scene, of)
    kept = many >= 2  # one response says nothing of the variance within its question
    many, size, met, sums = many[kept], size[kept], met[:, kept], sums[:, kept]
    cells = np.zeros((len(many), 2 + 2 * len(of.names)))
    cells[:, 0] = size
    cells[:, 1] = size * (1 - 1 / many)  # n − 1 without weights
    cells[:, 2::2] = (met * (1 - met / size[:, None])).sum(-1).T
    cells[:, 3::2] = (sums[..., 1] - sums[..., 0] ** 2 / size).T
    given = {"k": bank.k, "sides": len(of.names)}
    questions = np.unique(bank.question[of.rows])[kept]
    cluster, stratum, whole = _clusters_of(scene, of, questions)
    if not whole:
        return Part(
            tally=None,
            totals=cells.sum(axis=0),
            asks=asks((S_WITHIN,), of),
            given=given,
            no_interval=SPLIT_QUESTIONS,
            clusters=[len(np.unique(bank.cluster[of.rows]))] * len(of.names),
        )
    order = np.lexsort((*cells.T, cluster))
    starts = np.flatnonzero(np.r_[True, np.diff(cluster[order]) != 0]) if len(order) else order
    rows = np.add.reduceat(cells[order], starts, axis=0) if len(order) else cells
    plain = np.zeros((len(rows), cells.shape[1]), dtype=np.int64)
    if len(order):
        plain[:, 0] = np.add.reduceat(np.rint(many[order]).astype(np.int64), starts)
    tally = of_rows(rows, sizes=plain, stratum=None if stratum is None else stratum[order][starts])
    return Part(tally=tally, asks=asks((S_WITHIN,), of), given=given)


def _clusters_of(scene: Scene, of: Sides, questions: Array) -> tuple[Array, Array | None, bool]:
    """The cluster and stratum of each question, and whether every question lies in one cluster."""
    bank = scene.bank
    assert bank is not None
    inside = of.rows[np.isin(bank.question[of.rows], questions)]
    place = np.searchsorted(questions, bank.question[inside])
    cluster = np.zeros(len(questions), dtype=np.int64)
    cluster[place] = bank.cluster[inside]
    whole = bool((cluster[place] == bank.cluster[inside]).all())
    if bank.frequency and bank.own_cluster:
        whole = not len(questions)  # a response that stands for several is several clusters
    if bank.stratum is None:
        return cluster, None, whole
    stratum = np.zeros(len(questions), dtype=np.int64)
    stratum[place] = bank.stratum[inside]
    return cluster, stratum, whole


def _orders(of: Sides) -> Asks:
    return tuple((s, of.keys) for s in (S_LOW, S_HIGH, S_SORTED))


def _order_part(scene: Scene, of: Sides) -> Part:
    """The range of KR-20 over orders of the lines inside the questions."""
    bank = scene.bank
    assert bank is not None
    _, size, met, sums = _by_question(scene, of)
    n = size.sum()
    squares = sums[..., 1].sum(-1)
    with np.errstate(all="ignore"):
        total = _positive(squares - sums[..., 0].sum(-1) ** 2 / n, squares)
        low, high = shuffled_range(met, total, n, seed=scene.options.seed)
        most = _at_order(np.sort(met, axis=-1).sum(-2), total, n)
    return Part(
        tally=None,
        totals=np.concatenate([[n], low, high, most]),
        asks=_orders(of),
        given={"k": bank.k, "sides": len(of.names)},
        clusters=[len(np.unique(bank.cluster[of.rows]))] * len(of.names),
    )


def _at_order(met: Array, total_squares: Array, n: Any) -> Array:
    """KR-20 where position j is met ``met[..., j]`` times."""
    lines = (met * (1 - met / n)).sum(-1)
    return kr20_from(lines, total_squares, np.asarray(n), met.shape[-1])


def shuffles_of(questions: int, k: int) -> int:
    """How many shuffles are made: fewer for very many questions, so that the work stays bounded."""
    return int(min(SHUFFLES, max(FEWEST_SHUFFLES, _SHUFFLED // max(questions * k, 1))))


def shuffled_range(met: Array, total_squares: Array, n: float, *, seed: int) -> tuple[Array, Array]:
    """Lowest and highest KR-20 over seeded orders of the lines inside the questions, ``(sides,)``.

    ``met`` is ``(sides, questions, K)``; totals do not change, only which lines share a position. The
    given order is among them. All sides are put in the same orders.
    """
    count, questions, k = met.shape
    shuffles = shuffles_of(questions, k)
    generator = np.random.Generator(np.random.PCG64(seed))
    low = high = _at_order(met.sum(axis=1), total_squares, n)
    step = max(1, 1_000_000 // max(questions * k, 1))
    for first in range(0, shuffles, step):
        several = min(step, shuffles - first)
        order = np.tile(np.arange(k, dtype=np.int32), (several, questions, 1))
        generator.permuted(order, axis=-1, out=order)
        positions = np.stack(
            [np.take_along_axis(met[s][None], order, axis=-1).sum(axis=1) for s in range(count)],
            axis=1,
        )
        found = _at_order(positions, total_squares, n)
        low, high = np.minimum(low, found.min(axis=0)), np.maximum(high, found.max(axis=0))
    return low, high


# --- plain array functions -----------------------------------------------------------------------


def matrix(x: Any) -> Array:
    """Responses × columns as float64; None is nan. Raises ``ValueError`` for other shapes."""
    made = np.asarray(x, dtype=np.float64)
    if made.ndim != 2:
        raise ValueError(
            f"the matrix has {made.ndim} dimensions: give responses × columns, as (n, K)"
        )
    return made


def _varies(x: Array) -> Array:
    """Which columns have two different values."""
    there = np.isfinite(x)
    most = np.where(there, x, -np.inf).max(axis=0, initial=-np.inf)
    return np.asarray(most > np.where(there, x, np.inf).min(axis=0, initial=np.inf))


def _about_means(x: Array) -> tuple[Array, Array]:
    """Scores about the means of their columns, 0 where there is none, and where there is one.

    So large values lose no digits, and a column that never varies is 0 exactly.
    """
    there = np.isfinite(x)
    means = np.where(there, x, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    return np.where(there & _varies(x), x - means, 0.0), there.astype(np.float64)


def _covariances(x: Array, ddof: float = 1) -> Array:
    """Covariances over the rows that have both columns, each about its own means there."""
    scores, there = _about_means(x)
    n = there.T @ there
    sums = scores.T @ there  # the sum of each column over the rows that have the other
    with np.errstate(all="ignore"):
        found = (scores.T @ scores - sums * sums.T / n) / (n - ddof)
    found[n - ddof <= 0] = np.nan
    return np.asarray(found)


def _alpha_of(covariances: Array, own: Array | None = None) -> float:
    """Alpha from a covariance matrix; ``own`` are the columns' variances, else its diagonal."""
    k = len(covariances)
    own = np.diagonal(covariances) if own is None else own
    total = covariances.sum()
    if k < 2 or not total > 1e-12 * np.abs(covariances).sum():
        return float("nan")
    return float(k / (k - 1) * (1 - own.sum() / total))


def kr20(x: Any, ddof: float = 1) -> float:
    """KR-20 of yes/no verdicts, responses × lines ``(n, K)``: it describes the bank, not the judge.

    Item variances are p(1 − p); the variance of totals has n − ``ddof``. ``ddof`` 1, the default,
    is the form of TWM Appendix A.3, which can exceed 1; 0 is Cronbach's alpha. Verdicts are 0 and 1,
    missing ones nan or None; where some are missing, the variance of totals is the sum of the
    covariances of all pairs of lines, each over the responses that have both (as for
    :func:`cronbach_alpha`). A line that never varies counts in K. nan with an ``UndefinedWarning``
    for fewer than two lines or responses, or where all totals are the same. Raises ``ValueError``
    for other values than 0 and 1.
    Source: Kuder and Richardson 1937, Psychometrika 2, p. 158, equation 20.

    >>> round(kr20([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]), 3)
    0.938
    >>> round(kr20([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]], ddof=0), 3)
    0.75
    """
    verdicts = matrix(x)
    if not np.isin(verdicts[np.isfinite(verdicts)], (0, 1)).all():
        raise ValueError("KR-20 is for verdicts of 0 and 1; use cronbach_alpha for other scores")
    own = np.diagonal(_covariances(verdicts, 0))
    return said(_alpha_of(_covariances(verdicts, ddof), own), KR20.undefined_when)


def kr21(totals: Any, k: int, ddof: float = 1) -> float:
    """KR-21 from totals ``(n,)`` of ``k`` yes/no lines: KR-20 if all lines were met equally often.

    The variance of totals has n − ``ddof`` (1 by default). Missing totals (nan, None) are left out.
    nan with an ``UndefinedWarning`` for fewer than two lines or totals, or equal totals. Raises
    ``ValueError`` for totals below 0 or above ``k``.
    Source: Kuder and Richardson 1937, Psychometrika 2, p. 159, equation 21.

    >>> round(kr21([3, 2, 1, 0], 3), 3)
    0.825
    """
    values = np.asarray(totals, dtype=np.float64).ravel()
    values = values[~np.isnan(values)]
    wrong = (values < 0) | (values > k)
    if wrong.any():
        raise ValueError(f"a total of {values[wrong][0]:g}: totals are from 0 to k")
    found: Any = np.nan
    if len(values):
        squares = _positive(((values - values.mean()) ** 2).sum(), (values**2).sum())
        n = np.asarray(float(len(values)))
        found = kr21_from(np.asarray(values.sum()), squares, n, k, ddof=ddof)
    return said(found, KR21.undefined_when)


def cronbach_alpha(x: Any) -> float:
    """Cronbach's alpha of scores, responses × columns ``(n, K)``; at most 1.

    Missing scores (nan, None): covariances are taken over the rows that have both columns, as R's
    psych does; other tools drop rows with a gap and differ. A column that never varies counts in
    K. nan with an ``UndefinedWarning`` for fewer than two columns or rows, or equal totals.
    Source: Cronbach 1951, Psychometrika 16(3), p. 299.

    >>> round(cronbach_alpha([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]), 3)
    0.75
    """
    return said(_alpha_of(_covariances(matrix(x))), ALPHA.undefined_when)


def _correlation_matrix(x: Array) -> Array:
    """Correlations ``(K', K')`` of the columns that vary, each over the rows that have both."""
    scores, there = _about_means(x[:, _varies(x)])
    with np.errstate(all="ignore"):
        sums, n = scores.T @ there, there.T @ there
        own = (scores**2).T @ there - sums**2 / n  # of a column, where the other is there too
        found = (scores.T @ scores - sums * sums.T / n) / np.sqrt(own * own.T)
    return np.asarray(np.where(n > 1, found, np.nan))


def mean_inter_element_correlation(x: Any) -> float:
    """The mean Pearson correlation over the pairs of columns that both vary; in −1 to 1.

    ``x`` is responses × columns; missing as for :func:`cronbach_alpha`. nan with an
    ``UndefinedWarning`` where fewer than two columns vary. Source: TWM Appendix A.3.

    >>> round(mean_inter_element_correlation([[1, 1], [1, 0], [0, 0], [0, 0]]), 3)
    0.577
    """
    return said(_mean_of(_correlation_matrix(matrix(x))), TWO_VARY)


def _mean_of(correlations: Array) -> float:
    k = len(correlations)
    return float(correlations[np.triu_indices(k, 1)].mean()) if k > 1 else float("nan")


def standardised_alpha(x: Any) -> float:
    """``K r̄ / (1 + (K − 1) r̄)`` with the mean correlation r̄ of the K columns that vary; at most 1.

    ``x`` is responses × columns; missing as for :func:`cronbach_alpha`. nan with an
    ``UndefinedWarning`` where fewer than two columns vary, or where they cancel out. Source: TWM Section 3.

    >>> round(standardised_alpha([[1, 1], [1, 0], [0, 0], [0, 0]]), 3)
    0.732
    """
    correlations = _correlation_matrix(matrix(x))
    with np.errstate(invalid="ignore"):
        found = standardised_from(np.asarray(_mean_of(correlations)), len(correlations))
    return said(found, STANDARDISED.undefined_when)


def omega_total(x: Any) -> float:
    """Omega total of one factor, fitted by least squares (minres) on correlations; in 0–1.

    ``(Σλ)² / ((Σλ)² + Σ(1 − λ²))`` over the columns that vary; ``x`` is responses × columns,
    missing as for :func:`cronbach_alpha`. Omegas of several factors, or of a fit on covariances, are
    other numbers. nan with an ``UndefinedWarning`` where fewer than three columns vary or the fit
    does not converge. Source: McDonald 1999, Test Theory, p. 89.
    """
    correlations = _correlation_matrix(matrix(x))
    if len(correlations) < 3 or not np.isfinite(correlations).all():
        return said(np.nan, THREE_VARY)
    vary = np.ones((len(correlations), 1), dtype=np.bool_)
    np.fill_diagonal(correlations, 0)
    return said(
        omega_from(one_factor(correlations[:, :, None], vary), vary)[0], OMEGA.undefined_when
    )


def alpha_without_line(x: Any) -> Array:
    """Cronbach's alpha without each column in turn, ``(K,)``; ``x`` as for :func:`cronbach_alpha`.

    nan where it cannot be said (fewer than two other columns, or their totals are all the same),
    with an ``UndefinedWarning``.

    >>> alpha_without_line([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]).round(3).tolist()
    [0.727, 0.5, 0.727]
    """
    covariances = _covariances(matrix(x))
    found = np.array(
        [
            _alpha_of(np.delete(np.delete(covariances, j, axis=0), j, axis=1))
            for j in range(len(covariances))
        ]
    )
    if not np.isfinite(found).all():
        warnings.warn(ALPHA_WITHOUT.undefined_when, UndefinedWarning, stacklevel=2)
    return found


# --- the report ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A statistic of one grader beside gold: its estimates there, those that are made."""

    own: Estimate | None
    gold: Estimate | None
    minus: Estimate | None
    whole: Estimate | None  # on all responses of the grader, where gold covers only a part

    @property
    def cells(self) -> tuple[Cell, Cell, Cell]:
        return cell(self.own), cell(self.gold), cell(self.minus)


def beside(
    scene: Scene, estimates: Estimates, name: str, grader: str, *, line: str = "", cut: str = ""
) -> Beside:
    """What is said of a statistic for this grader, on gold, and of their difference."""
    at = {"slice": scene.slice, "line": line, "cut": cut}
    other = "" if len(scene.panel) == 1 else grader
    return Beside(
        own=estimates.get(name, grader=grader, **at),
        gold=estimates.get(name, grader=scene.gold, other=other, **at) if scene.gold else None,
        minus=estimates.get(f"{name}_minus_gold", grader=grader, **at),
        whole=estimates.get(name, grader=grader, other=ALL, **at),
    )


def compared(
    scene: Scene,
    estimates: Estimates,
    rows: Sequence[tuple[str, Sequence[str | Name], dict[str, str]]],
    leading: Sequence[str],
    title: str,
    note: str,
    kind: Kind | None = None,
) -> list[Block]:
    """A table of statistics beside gold: one row a grader and a statistic, ``(name, cells, key)``.

    ``leading`` are the titles of the columns before the values. Empty where nothing is said.
    """
    several = len(scene.panel) > 1
    made = []
    covered = False
    for grader in scene.panel or (scene.gold,):
        for name, first, key in rows:
            found = beside(scene, estimates, name, grader, **key)
            if found.own is None:
                continue
            covered = covered or found.whole is not None
            made.append((grader, [cell(f) for f in first], found))
    if not made:
        return []
    kinds = {"kind": kind} if kind is not None else {}
    paired = bool(scene.gold) and bool(scene.panel)
    columns: list[Column] = [Column(title="grader", kind=Kind.NAME)] if several else []
    columns += [Column(title=t) for t in leading]
    value = Kind.COEFFICIENT if kind is None else kind
    if paired:
        columns += [
            Column(title="on the judge’s verdicts", kind=value),
            Column(title="on gold", kind=value),
            Column(title="judge less gold", kind=value),
        ]
        if covered:
            columns.append(Column(title="judge, all responses", kind=value))
    else:
        columns.append(Column(title="value", kind=value))
    table = []
    for grader, leads, found in made:
        values = [cell(found.own, **kinds)]
        if paired:
            values += [cell(found.gold, **kinds), cell(found.minus, **kinds)]
            if covered:
                values.append(cell(found.whole, **kinds))
        table.append((*((cell(Name(grader)),) if several else ()), *leads, *values))
    return [Table(title=title, columns=tuple(columns), rows=tuple(table), note=(note,))]


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    bank = scene.bank
    assert bank is not None
    if why := different_lengths(scene):
        return [
            Paragraph(
                text=(
                    f"KR-20 and its kin over the whole bank cannot be said: {why}. Audit the questions "
                    "of one length apart (--by).",
                ),
                tone=Tone.NOTE,
            )
        ]
    names = ((S_KR20, True), (S_WITHIN, bank.own), *((s, True) for s in (S_KR21, S_ALPHA)))
    shown = [own.estimand for (own, _), there in names if there]
    shown += [own.estimand for own, _ in FROM_PAIRS]
    made = compared(
        scene,
        estimates,
        [(e.name, (e.title,), {}) for e in shown],
        ("coefficient",),
        "Coefficients of the bank",
        "They describe the bank with its checklist, not the judge: an error-free scorer has "
        + ("the values on gold. " if scene.gold else "values too. ")
        + "KR-20 is the paper’s form (item variances p(1 − p), variance of totals with n − 1); "
        "Cronbach’s alpha has n in both. Omega: one factor by least squares on correlations.",
    )
    made += _above_one(scene, estimates)
    made += _without_blocks(scene, estimates)
    made += _order_blocks(scene, estimates)
    return made


def _above_one(scene: Scene, estimates: Estimates) -> list[Block]:
    """Why KR-20 is above 1, where it is."""
    made: list[Block] = []
    for kr in estimates.of("kr20", slice=scene.slice, line=""):
        if kr.number is None or kr.number <= 1 or kr.key.other == ALL:
            continue
        alpha = estimates.get(
            "cronbach_alpha", grader=kr.key.grader, other=kr.key.other, slice=scene.slice
        )
        text: list[str | Name] = [
            "KR-20 on the verdicts of ",
            Name(kr.key.grader),
            f" is {number(kr.number)}, above 1. That is the form, not the data: it divides the item "
            "variances by n and the variance of totals by n − 1, and is not clipped.",
        ]
        if alpha is not None and alpha.number is not None:
            text.append(f" With n in both it is Cronbach’s alpha: {number(alpha.number)}.")
        made.append(Paragraph(text=tuple(text), tone=Tone.NOTE))
    return made


def _without_blocks(scene: Scene, estimates: Estimates) -> list[Block]:
    bank = scene.bank
    assert bank is not None
    never = _never_vary(scene)
    lines = places_of(scene)
    some = len(lines) > MOST_LINES_SHOWN
    if some:
        lines = [line for line in lines if line in never]
    rows: list[tuple[Cell, ...]] = []
    for grader in scene.panel or (scene.gold,):
        for line in lines:
            alpha = beside(scene, estimates, "alpha_without_line", grader, line=line)
            kr = beside(scene, estimates, "kr20_without_line", grader, line=line)
            if alpha.own is None:
                continue
            rows.append(
                (
                    *((cell(Name(grader)),) if len(scene.panel) > 1 else ()),
                    cell(Name(line)) if not bank.own else cell(line.replace(":", " ")),
                    cell(alpha.own),
                    *((cell(alpha.gold),) if scene.gold and scene.panel else ()),
                    cell(kr.own),
                    cell(_whose(never.get(line, ()), grader, scene.gold)),
                )
            )
    if not rows:
        return []
    columns = [
        *((Column(title="grader", kind=Kind.NAME),) if len(scene.panel) > 1 else ()),
        Column(title="position" if bank.own else "line", kind=Kind.TEXT if bank.own else Kind.NAME),
        Column(title="alpha without it", kind=Kind.COEFFICIENT),
        *((Column(title="on gold", kind=Kind.COEFFICIENT),) if scene.gold and scene.panel else ()),
        Column(title="KR-20 without it", kind=Kind.COEFFICIENT),
        Column(title="never varies"),
    ]
    note = "A line that never varies carries no information: it only counts in K."
    if bank.own:
        note += " Position j pools the j-th line of every question; that order is arbitrary."
    if some:
        note += f" Of {plural(bank.k, 'line')} only those that never vary are shown."
    return [
        Table(
            title="Cronbach’s alpha without a line",
            columns=tuple(columns),
            rows=tuple(rows),
            note=(note,),
        )
    ]


def _never_vary(scene: Scene) -> dict[str, tuple[str, ...]]:
    """The lines (or positions) that never vary, with the graders on whose verdicts they do not."""
    bank = scene.bank
    assert bank is not None
    found: dict[str, tuple[str, ...]] = {}
    names = places_of(scene)
    for of in sides(scene):
        if of.keys[0].other == ALL or not len(of.rows):
            continue
        for name in of.names:
            verdicts = bank.verdicts[of.rows, bank.places[name], : bank.k]
            for j in np.flatnonzero((verdicts == verdicts[:1]).all(axis=0)).tolist():
                held = found.get(names[j], ())
                found[names[j]] = held if name in held else (*held, name)
    return found


def _whose(graders: Sequence[str], grader: str, gold: str) -> Text:
    named = [g for g in graders if g in (grader, gold)]
    return listed(named) if named else ()


def _order_blocks(scene: Scene, estimates: Estimates) -> list[Block]:
    rows = []
    questions = 0
    bank = scene.bank
    assert bank is not None
    for of in sides(scene):
        questions = max(questions, len(np.unique(bank.question[of.rows])))
        for name, key in zip(of.names, of.keys, strict=True):
            if key.other == ALL:
                continue
            at = {"grader": key.grader, "other": key.other, "slice": scene.slice}
            low = estimates.get("kr20_shuffled_low", **at)
            if low is None or low.number is None:
                continue
            rows.append(
                (
                    cell(Name(name)),
                    *(
                        cell(estimates.get(s, **at))
                        for s in (
                            "kr20",
                            "kr20_shuffled_low",
                            "kr20_shuffled_high",
                            "kr21",
                            "kr20_sorted_lines",
                            "kr20_within_question",
                        )
                    ),
                )
            )
    if not rows:
        return []
    shuffles = shuffles_of(questions, bank.k)
    note = (
        "Each question has its own checklist, so which line stands at which position is arbitrary, and "
        f"KR-20 depends on it. Lowest and highest: over {shuffles:,} shuffles inside the questions, "
        f"seed {scene.options.seed}, and the given order. No order gives less than KR-21, nor more "
        "than the lines sorted by how often they are met. Within questions the order does not matter."
    )
    if shuffles < SHUFFLES:
        note += (
            f" There are {questions:,} questions, so these are fewer shuffles than {SHUFFLES:,}."
        )
    return [
        Table(
            title="KR-20 and the order of the lines",
            columns=(
                Column(title="verdicts of", kind=Kind.NAME),
                Column(title="KR-20, given order", kind=Kind.COEFFICIENT),
                Column(title="lowest", kind=Kind.COEFFICIENT),
                Column(title="highest", kind=Kind.COEFFICIENT),
                Column(title="KR-21", kind=Kind.COEFFICIENT),
                Column(title="sorted", kind=Kind.COEFFICIENT),
                Column(title="within questions", kind=Kind.COEFFICIENT),
            ),
            rows=tuple(rows),
            note=(note,),
        )
    ]


def _listed(pairs: Iterable[tuple[Statistic, Statistic]]) -> tuple[Statistic, ...]:
    return tuple(s for pair in pairs for s in pair)


FAMILY = Family(
    name="kuder_richardson",
    statistics=(
        *_listed((*FROM_TOTALS, S_WITHIN, *FROM_PAIRS)),
        S_ALPHA_WITHOUT,
        S_KR20_WITHOUT,
        S_LOW,
        S_HIGH,
        S_SORTED,
    ),
    parts=parts,
    section="What the bank says: coefficients, with the value on gold",
    order=30,
    blocks=blocks,
    kinds=KINDS,
)
