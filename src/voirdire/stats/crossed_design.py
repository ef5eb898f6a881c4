"""Generalizability of a checklist: variance components, G, Φ and Φ(λ) of responses × positions.

A two-way crossed random-effects analysis of variance. One judge under one prompt is a hidden
condition of every verdict, so no component is the judge's: the coefficients describe the bank, and
stand beside their value on gold. A component is given as computed (*raw*, it can be negative) and as
used (then 0).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from voirdire.document import Block, Column, Kind, Paragraph, Table, Tone, cell
from voirdire.errors import NegativeEstimateWarning
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.sides import ALL, Sides, different_lengths, sides
from voirdire.stats._checklist import KINDS, Asks, asks, beside_gold, responses
from voirdire.stats._checklist_figures import dependability_figures
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
from voirdire.stats.kuder_richardson import (
    BANK,
    NONE_SCORED,
    ONE_RESPONSE,
    TWM,
    compared,
    matrix,
)
from voirdire.stats.pairwise import said
from voirdire.wording import Name

__all__ = [
    "dependability",
    "generalizability",
    "phi_lambda",
    "standard_error",
    "variance_components",
]

MOST_REMEMBERED = 1 << 23  # cells of a tally up to which components are kept for all statistics

TOO_SMALL = "there is one line only, so positions have no variance"
CONSTANT = "all verdicts are the same: there is no variance to divide"
CONSTANT_AT_MARK = "all verdicts are the same: with no variance it would be 1 at any mark but their own, whatever the bank"
NOT_POSITIVE = "with the components as computed its denominator is not above 0"
NO_MEANING = "there are fewer than two responses or two lines"
NOT_AN_ACCURACY = (
    "A ratio of mean squared distances from the pass mark, not a probability and not comparable with an "
    "accuracy."
)
BRENNAN = "Brennan 2001, Generalizability Theory"


SQUARES = (
    "MS_p = K Σ_i (X̄_i − X̄)² / (n − 1), MS_i = n Σ_j (X̄_j − X̄)² / (K − 1), MS_pi = Σ_ij (X_ij − X̄_i − X̄_j + X̄)² / "
    "((n − 1)(K − 1)): of verdicts X_ij on position j of K of response i, on the n responses scored in full; "
    "X̄_i, X̄_j, X̄: the means of a response, of a position, of all"
)


def _component(name: str, title: str, question: str, formula: str, *, used: bool) -> Estimand:
    symbol, value = formula.split(" = ", 1)
    return Estimand(
        name=name if used else f"{name}_raw",
        title=title if used else f"{title}, as computed",
        question=question,
        describes=Describes.BANK,
        # Of a phrasing study these two are also of the decisions at a cut.
        keys=("grader", "other") if name == "component_position" else ("grader", "other", "cut"),
        unit=Unit.COEFFICIENT,
        scale=Scale.PLAIN,
        low=0 if used else None,
        reading=(
            "A variance of verdicts, in a phrasing study of scores (of totals: other = phrasings), with a cut of "
            "decisions at it, 1 for pass and 0; "
            + (f"a negative one is used as 0. {BANK}" if used else "the estimate can be negative.")
        ),
        moves_with=("the responses in the bank",),
        undefined_when=NO_MEANING,
        source=Source(text=f"{BRENNAN}, ch. 2; {TWM}, Appendix A.3"),
        formula=rf"{symbol} = \max\left(0,\ {value}\right)" if used else formula,
        conventions=(
            f"{SQUARES}. In a phrasing study the columns are the phrasings and X_ij is the mean score of the "
            "calls of a cell. By analysis of variance: restricted likelihood, as in lme4, holds components at "
            "0 and shifts the others; here it serves only where cells of a phrasing study are missing."
        ),
    )


_COMPONENTS = (
    (
        "component_response",
        "Response component",
        "How far do the responses differ?",
        r"\hat{\sigma}_{p}^{2} = \frac{\mathrm{MS}_{p} - \mathrm{MS}_{pi}}{K}",
    ),
    (
        "component_position",
        "Position component",
        "How far do the positions differ in how often met?",
        r"\hat{\sigma}_{i}^{2} = \frac{\mathrm{MS}_{i} - \mathrm{MS}_{pi}}{n}",
    ),
    (
        "component_residual",
        "Residual component",
        "How far do verdicts differ beyond response and position (or phrasing)?",
        r"\hat{\sigma}_{pi}^{2} = \mathrm{MS}_{pi}",
    ),
)


def _ratio(
    name: str,
    title: str,
    question: str,
    source: Source,
    reading: str,
    *,
    formula: str,
    conventions: str,
    keys: tuple[str, ...] = ("grader",),
    low: float | None = 0,
    undefined_when: str = f"{NO_MEANING}, or all verdicts are the same",
) -> Estimand:
    return Estimand(
        name=name,
        title=title,
        question=question,
        describes=Describes.BANK,
        keys=keys,
        unit=Unit.COEFFICIENT,
        scale=Scale.LOG_ONE_MINUS,
        low=low,
        high=1,
        reading=f"{reading} {BANK}",
        moves_with=("how far the responses differ in quality", "the number of lines"),
        undefined_when=undefined_when,
        source=source,
        formula=formula,
        conventions=conventions,
    )


USED = (
    "σ̂_p², σ̂_i², σ̂_pi²: component_response, component_position and component_residual, a negative one as 0; "
    "K: the number of lines"
)
G = _ratio(
    "generalizability",
    "Generalizability coefficient",
    "How well would other lines rank the responses alike?",
    Source(text=f"{BRENNAN}, ch. 2: σ²(p) / (σ²(p) + σ²(pi) / K)"),
    "With the components as used. It is Cronbach's alpha where no component is negative.",
    formula=(
        r"E\hat{\rho}^{2} = \frac{\hat{\sigma}_{p}^{2}}"
        r"{\hat{\sigma}_{p}^{2} + \hat{\sigma}_{pi}^{2} / K}"
    ),
    conventions=f"{USED}.",
)
PHI = _ratio(
    "dependability",
    "Dependability coefficient Φ",
    "How well would other lines give the responses the same share of lines met?",
    Source(text=f"{BRENNAN}, ch. 2: σ²(p) / (σ²(p) + (σ²(i) + σ²(pi)) / K)"),
    "With the components as used.",
    formula=(
        r"\hat{\Phi} = \frac{\hat{\sigma}_{p}^{2}}{\hat{\sigma}_{p}^{2} + \hat{\sigma}_{\Delta}^{2}}, "
        r"\quad \hat{\sigma}_{\Delta}^{2} = \frac{\hat{\sigma}_{i}^{2} + \hat{\sigma}_{pi}^{2}}{K}"
    ),
    conventions=f"{USED}.",
)
MARK = (
    "X̄: the mean share of lines met, λ = c/K with the cut c in lines, n: the responses; "
    "σ̂²(X̄) = σ̂_p²/n + σ̂_i²/K + σ̂_pi²/(nK) takes off the bias of (X̄ − λ)²"
)
PHI_LAMBDA = _ratio(
    "phi_lambda",
    "Dependability at the pass mark, Φ(λ)",
    "How large are the universe scores' squared distances from the pass mark beside the observed ones?",
    Source(text=f"{TWM}, Appendix A.3; Brennan and Kane 1977, Psychometrika 42, p. 609"),
    f"{NOT_AN_ACCURACY} With the components as used and the correction for bias; a negative numerator "
    "is used as 0.",
    keys=("grader", "cut"),
    formula=(
        r"\Phi(\lambda) = \frac{\max(0, D)}{\max(0, D) + \hat{\sigma}_{\Delta}^{2}}, "
        r"\quad D = \hat{\sigma}_{p}^{2} + (\bar{X} - \lambda)^{2} - \hat{\sigma}^{2}(\bar{X}), "
        r"\quad \hat{\sigma}_{\Delta}^{2} = \frac{\hat{\sigma}_{i}^{2} + \hat{\sigma}_{pi}^{2}}{K}"
    ),
    conventions=f"{USED}; {MARK}.",
)
PHI_LAMBDA_RAW = _ratio(
    "phi_lambda_raw",
    "Φ(λ), as computed",
    "What is Φ(λ) with negative components and a negative numerator left as they are?",
    PHI_LAMBDA.source,
    NOT_AN_ACCURACY,
    keys=("grader", "cut"),
    low=None,
    undefined_when=f"{PHI_LAMBDA.undefined_when}, or {NOT_POSITIVE}",
    formula=(
        r"\frac{D}{D + \hat{\sigma}_{\Delta}^{2}}, "
        r"\quad D = \hat{\sigma}_{p}^{2} + (\bar{X} - \lambda)^{2} - \hat{\sigma}^{2}(\bar{X}), "
        r"\quad \hat{\sigma}_{\Delta}^{2} = \frac{\hat{\sigma}_{i}^{2} + \hat{\sigma}_{pi}^{2}}{K}"
    ),
    conventions=(
        "σ̂_p², σ̂_i², σ̂_pi²: component_response_raw, component_position_raw and component_residual_raw; K: the "
        f"number of lines; {MARK}."
    ),
)


class Components(NamedTuple):
    """Variance components of a crossed design: of rows, of columns, and what is left."""

    rows: Any
    columns: Any
    residual: Any


class VarianceComponents(NamedTuple):
    """Components as computed (``raw``) and as used (negative ones are 0)."""

    raw: Components
    used: Components


def components_from(
    rows: Array, columns: Array, scores: Array, total: Array, n: Array, k: int
) -> VarianceComponents:
    """Components of ``n`` rows × ``k`` columns from sums of squares.

    ``rows`` is the sum of the squared row sums, ``columns`` that of the squared column sums,
    ``scores`` that of the squared scores, and ``total`` the sum of all scores; all of one shape.
    Mean squares: Brennan 2001, ch. 2 (the p × i design). nan for fewer than two rows or columns.
    """
    correction = total**2 / (n * k)

    def squares(about: Array) -> Array:
        # What is zero but for rounding is zero.
        return np.where(
            np.abs(about) > 1e-12 * scores, about, np.where(np.isnan(about), about, 0.0)
        )

    of_rows, of_columns = squares(rows / k - correction), squares(columns / n - correction)
    rest = np.maximum(squares(scores - correction - of_rows - of_columns), 0)
    freedom = np.where(n > 1, n - 1, np.nan)
    between = float(k - 1) if k > 1 else math.nan
    residual = rest / (freedom * between)
    raw = Components(
        rows=(of_rows / freedom - residual) / k,
        columns=(of_columns / between - residual) / n,
        residual=residual,
    )
    return VarianceComponents(raw=raw, used=_used(raw))


def _used(components: Components) -> Components:
    return Components(*(np.maximum(c, 0) for c in components))


def _share(of_rows: Any, error: Any) -> Array:
    whole = np.asarray(of_rows + error)
    return np.asarray(of_rows / np.where(whole > 0, whole, np.nan))


def phi_from(
    components: Components,
    mean: Array,
    n: Array,
    k: int,
    mark: Array,
    *,
    corrected: bool = True,
    used: bool = True,
) -> Array:
    """Φ(λ) from components, the grand mean and the pass mark ``mark``, in the scores' units.

    ``corrected``: the bias of the squared mean's distance is taken off (Brennan). ``used``: a negative
    numerator is 0. nan where nothing varies or the denominator is not above 0.
    """
    rows, columns, residual = components
    distance = _distance(components, mean, n, k, mark, corrected=corrected)
    if used:
        distance = np.maximum(distance, 0)
    varies = (rows != 0) | (columns != 0) | (residual != 0)
    return np.where(varies, _share(distance, (columns + residual) / k), np.nan)


def _distance(
    components: Components, mean: Array, n: Array, k: int, mark: Array, *, corrected: bool
) -> Array:
    """The numerator of Φ(λ): how far responses are from the pass mark. What is rounding is 0."""
    rows, columns, residual = components
    bias = rows / n + columns / k + residual / (n * k) if corrected else np.zeros_like(rows)
    squared = (mean - mark) ** 2
    found = rows + squared - bias
    size = np.abs(rows) + squared + np.abs(bias)
    return np.where(np.abs(found) <= 1e-12 * size, 0.0, found)


# --- cells: n, then for each side how often each position is met and the sum of squared totals ---


def _cells_of(scene: Scene, names: Sequence[str]) -> Callable[[Array], Array]:
    bank = scene.bank
    assert bank is not None
    k = bank.k

    def cells_of(rows: Array) -> Array:
        # Squared totals set the width: small whole numbers are added up faster.
        kind = np.int16 if k <= 181 else np.int64
        made = np.ones((len(rows), 1 + len(names) * (k + 1)), dtype=kind)
        for side, name in enumerate(names):
            verdicts = bank.verdicts[rows, bank.places[name], :k]
            first = 1 + side * (k + 1)
            made[:, first : first + k] = verdicts
            made[:, first + k] = verdicts.sum(axis=1, dtype=kind) ** 2
        return made

    return cells_of


class _Solved(NamedTuple):
    components: VarianceComponents  # each (..., sides)
    mean: Array  # (..., sides): the share of lines met
    n: Array  # (..., 1)


def _solved(cells: Array, given: Given) -> _Solved:
    return remembered(given, "components", cells, lambda: _solve(cells, given))  # type: ignore[no-any-return]


def _solve(cells: Array, given: Given) -> _Solved:
    k = given["k"]
    n = cells[..., :1]
    each = cells[..., 1:].reshape(*cells.shape[:-1], given["sides"], k + 1)
    met = each[..., :k]
    total = met.sum(-1)
    components = components_from(each[..., k], (met**2).sum(-1), total, total, n, k)
    return _Solved(components=components, mean=total / (n * k), n=n)


def _part_of(place: int, *, used: bool) -> Callable[[Array, Given], Array]:
    def solve(cells: Array, given: Given) -> Array:
        components = _solved(cells, given).components
        return np.asarray((components.used if used else components.raw)[place])

    return solve


def _generalizability(cells: Array, given: Given) -> Array:
    used = _solved(cells, given).components.used
    return _share(used.rows, used.residual / given["k"])


def _dependability(cells: Array, given: Given) -> Array:
    used = _solved(cells, given).components.used
    return _share(used.rows, (used.columns + used.residual) / given["k"])


def _phi(*, used: bool) -> Callable[[Array, Given], Array]:
    def solve(cells: Array, given: Given) -> Array:
        """``(..., sides, cuts)``."""
        held = _solved(cells, given)
        components = held.components.used if used else held.components.raw
        by_cut = Components(*(c[..., None] for c in components))
        return phi_from(
            by_cut, held.mean[..., None], held.n[..., None], given["k"], given["marks"], used=used
        )

    return solve


def _reason(last: str) -> Callable[[Array, Given], list[str]]:
    def reason(cells: Array, given: Given) -> list[str]:
        n = float(cells[0])
        if n <= 0:
            why = NONE_SCORED
        elif n <= 1:
            why = ONE_RESPONSE
        else:
            why = TOO_SMALL if given["k"] < 2 else last
        return [why] * (given["sides"] * max(1, len(given["marks"])))

    return reason


def _phi_raw_reason(cells: Array, given: Given) -> list[str]:
    shared = _reason(CONSTANT_AT_MARK)(cells, given)
    if shared[0] != CONSTANT_AT_MARK:
        return shared
    residual = _solved(cells, given).components.used
    constant = sum(residual) == 0
    each = [CONSTANT_AT_MARK if c else NOT_POSITIVE for c in np.atleast_1d(constant)]
    return [why for why in each for _ in given["marks"]]


S_USED = tuple(
    Statistic(
        estimand=_component(*words, used=True),
        solve=_part_of(i, used=True),
        n=responses,
        reason=_reason(NO_MEANING),
    )
    for i, words in enumerate(_COMPONENTS)
)
S_RAW = tuple(
    Statistic(
        estimand=_component(*words, used=False),
        solve=_part_of(i, used=False),
        n=responses,
        reason=_reason(NO_MEANING),
    )
    for i, words in enumerate(_COMPONENTS)
)
S_G = beside_gold(G, _generalizability, reason=_reason(CONSTANT))
S_PHI = beside_gold(PHI, _dependability, reason=_reason(CONSTANT))
S_PHI_LAMBDA = beside_gold(PHI_LAMBDA, _phi(used=True), reason=_reason(CONSTANT_AT_MARK))
S_PHI_RAW = beside_gold(PHI_LAMBDA_RAW, _phi(used=False), reason=_phi_raw_reason)[0]


def parts(scene: Scene) -> Iterable[Part]:
    bank = scene.bank
    if bank is None:
        return
    why = different_lengths(scene) or ("" if bank.k else NONE_SCORED)
    cuts = scene.options.gates
    for of in sides(scene):
        asked: Asks = (
            *asks((S_G, S_PHI), of),
            *((s, of.keys) for s in (*S_USED, *S_RAW)),
        )
        if cuts:
            asked = (*asked, *asks((S_PHI_LAMBDA,), of, cuts), (S_PHI_RAW, _cut_keys(of, cuts)))
        if why:
            yield Part(tally=None, totals=np.zeros(1), asks=asked, undefined=why)
            continue
        width = 1 + len(of.names) * (bank.k + 1)
        tally = scene.summed(of.rows, _cells_of(scene, of.names), (width,))
        given: dict[str, Any] = {
            "k": bank.k,
            "sides": len(of.names),
            "marks": np.array([cut / bank.k for cut in cuts]),
        }
        if tally.rows.size <= MOST_REMEMBERED:
            given["memo"] = {}
        yield Part(tally=tally, asks=asked, given=given)


def _cut_keys(of: Sides, cuts: Sequence[int]) -> tuple[Key, ...]:
    return next(keys for _, keys in asks((S_PHI_LAMBDA,), of, cuts))


# --- plain array functions -----------------------------------------------------------------------

INCOMPLETE = "a crossed design needs a score in every cell, and two rows and two columns"


def _plain(x: Any) -> tuple[VarianceComponents, float, int, int]:
    """Components, grand mean, rows and columns of a matrix of scores."""
    scores = matrix(x)
    n, k = scores.shape
    if not n or not k or not np.isfinite(scores).all():
        nothing = Components(np.nan, np.nan, np.nan)
        return VarianceComponents(raw=nothing, used=nothing), math.nan, n, k
    mean = float(scores.mean())
    about = scores - mean  # components do not change, and large means lose no digits
    if scores.min() == scores.max():
        about = np.zeros_like(scores)
    with np.errstate(all="ignore"):
        found = components_from(
            (about.sum(axis=1) ** 2).sum(),
            (about.sum(axis=0) ** 2).sum(),
            (about**2).sum(),
            about.sum(),
            np.asarray(float(n)),
            k,
        )
    raw = Components(*(float(c) for c in found.raw))
    return VarianceComponents(raw=raw, used=Components(*map(float, _used(raw)))), mean, n, k


def variance_components(x: Any) -> VarianceComponents:
    """Variance components of scores crossed as rows × columns ``(n, K)``, by analysis of variance.

    ``x`` is any scores, responses × positions for a checklist, without a gap. Returns ``raw``
    components as computed, which can be negative, and ``used`` ones (then 0), each with ``rows``,
    ``columns`` and ``residual`` (columns within rows and error together), in squared units of the
    scores. nan with an ``UndefinedWarning`` for missing scores or fewer than two rows or columns.
    Source: Brennan 2001, Generalizability Theory, ch. 2.

    >>> found = variance_components([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]])
    >>> [round(c, 3) for c in found.raw]
    [0.139, 0.028, 0.139]
    """
    found = _plain(x)[0]
    said(found.raw.residual, INCOMPLETE)
    return found


def _three(components: Any) -> Components:
    """Components as used, from what :func:`variance_components` gave or from three numbers."""
    if isinstance(components, VarianceComponents):
        return components.used
    rows, columns, residual = (float(c) for c in components)
    return _used(Components(rows, columns, residual))


def _averaged(n: float) -> float:
    if not n > 0:
        raise ValueError(f"n = {n}: scores are averaged over at least one column")
    return float(n)


def generalizability(components: Any, n: float) -> float:
    """The generalizability coefficient of means over ``n`` columns, in 0–1: for ranking rows.

    ``σ²(rows) / (σ²(rows) + σ²(residual) / n)``. ``components`` is what :func:`variance_components`
    gave, or rows, columns and residual; negative ones are used as 0. nan with an
    ``UndefinedWarning`` where all are 0. Source: Brennan 2001, ch. 2.
    """
    c, n = _three(components), _averaged(n)
    return said(_share(c.rows, c.residual / n), CONSTANT)


def dependability(components: Any, n: float) -> float:
    """The dependability coefficient Φ of means over ``n`` columns, in 0–1: for absolute decisions.

    ``σ²(rows) / (σ²(rows) + (σ²(columns) + σ²(residual)) / n)``. ``components`` is what
    :func:`variance_components` gave, or rows, columns and residual; negative ones are used as 0.
    nan with an ``UndefinedWarning`` where all are 0. Source: Brennan 2001, ch. 2.

    >>> round(dependability((0.1, -1 / 30, 0.2), 3), 3)
    0.6
    """
    c, n = _three(components), _averaged(n)
    return said(_share(c.rows, (c.columns + c.residual) / n), CONSTANT)


def standard_error(components: Any, n: float, *, absolute: bool = False) -> float:
    """The standard error of measurement of means over ``n`` columns, in the scores' units.

    ``√(σ²(residual) / n)``, for ``absolute`` decisions ``√((σ²(columns) + σ²(residual)) / n)``;
    ``components`` as for :func:`dependability`. Source: Brennan 2001, ch. 2.
    """
    c, n = _three(components), _averaged(n)
    return math.sqrt((c.residual + (c.columns if absolute else 0.0)) / n)


def phi_lambda(x: Any, cut: float, *, corrected: bool = True, raw: bool = False) -> float:
    """Φ(λ) of scores ``(n, K)`` at the pass mark λ = ``cut`` / K: it describes the bank.

    A ratio of mean squared distances from the pass mark, not a probability and not comparable with
    an accuracy. ``cut`` is in units of the row sums (lines met). ``corrected``: with Brennan's
    correction for bias. Negative components and a negative numerator are used as 0, unless ``raw``;
    where the numerator is negative the value is 0.0 with a ``NegativeEstimateWarning``: the responses
    are too few, or too alike, to tell. nan with an ``UndefinedWarning`` for missing scores, fewer than
    two rows or columns, scores that are all the same, or (``raw``) a denominator that is not above 0.
    Source: TWM Appendix A.3; Brennan and Kane 1977, Psychometrika 42, p. 609.

    >>> round(phi_lambda([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]], 2), 3)
    0.667
    """
    components, mean, n, k = _plain(x)
    held = components.raw if raw else components.used
    at = np.asarray(mean), np.asarray(float(n)), k, np.asarray(cut / k if k else math.nan)
    with np.errstate(all="ignore"):
        found = phi_from(held, *at, corrected=corrected, used=not raw)
        negative = not raw and k > 0 and _distance(held, *at, corrected=corrected) < 0
    if negative and np.isfinite(found):
        warnings.warn(
            "the correction for bias makes the numerator negative, so 0 is used",
            NegativeEstimateWarning,
            stacklevel=2,
        )
    return said(found, f"{INCOMPLETE}; and scores that differ")


# --- the report ----------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    if different_lengths(scene):
        return []  # said once, with KR-20
    made = compared(
        scene,
        estimates,
        [(e.name, (e.title,), {}) for e in (G, PHI)],
        ("coefficient",),
        "Generalizability of the bank",
        "Responses × positions with the components as used. G is Cronbach’s alpha where no component is "
        "negative. Neither holds a component of the judge.",
    )
    made += compared(
        scene,
        estimates,
        [(PHI_LAMBDA.name, (str(cut),), {"cut": str(cut)}) for cut in scene.options.cut],
        ("pass mark, in lines",),
        "Φ(λ) of the bank by pass mark",
        NOT_AN_ACCURACY + " With Brennan’s correction for bias and the components as used.",
    )
    made += _negative_numerators(scene, estimates)
    made += dependability_figures(scene, estimates)
    made += _components_table(scene, estimates)
    return made


def _negative_numerators(scene: Scene, estimates: Estimates) -> list[Block]:
    """Which Φ(λ) are 0 because their numerator would be negative."""
    made: list[Block] = []
    for found in estimates.of("phi_lambda", slice=scene.slice):
        if found.number != 0 or found.key.other == ALL:
            continue
        raw = estimates.get(PHI_LAMBDA_RAW.name, **_fields(found.key))
        if raw is not None and raw.number == 0:
            continue  # it is 0, and nothing was cut off
        made.append(
            Paragraph(
                tone=Tone.NOTE,
                text=(
                    f"Φ(λ) at a pass mark of {found.key.cut} on the verdicts of ",
                    Name(found.key.grader),
                    ": the correction for bias makes the numerator negative, so 0 is used. The bank is too "
                    "small, or its responses too alike, to tell.",
                ),
            )
        )
    return made


def _fields(key: Key) -> dict[str, str]:
    return {"grader": key.grader, "other": key.other, "cut": key.cut, "slice": key.slice}


def _components_table(scene: Scene, estimates: Estimates) -> list[Block]:
    rows = []
    negative = False
    for of in sides(scene):
        for name, key in zip(of.names, of.keys, strict=True):
            if key.other == ALL:
                continue
            at = {"grader": key.grader, "other": key.other, "slice": scene.slice}
            for used, raw in zip(S_USED, S_RAW, strict=True):
                as_used, as_computed = estimates.get(used.name, **at), estimates.get(raw.name, **at)
                if as_used is None or as_computed is None:
                    continue
                negative = negative or (as_computed.number or 0.0) < 0
                rows.append(
                    (
                        cell(Name(name)),
                        cell(used.estimand.title),
                        cell(as_computed),
                        cell(as_used),
                    )
                )
    if not rows:
        return []
    note = "Two-way crossed random-effects analysis of variance of verdicts."
    if negative:
        note += " A negative component is an estimate of a small one: 0 is used."
    return [
        Table(
            title="Variance components of responses × positions",
            columns=(
                Column(title="verdicts of", kind=Kind.NAME),
                Column(title="component"),
                Column(title="as computed", kind=Kind.COEFFICIENT),
                Column(title="as used", kind=Kind.COEFFICIENT),
            ),
            rows=tuple(rows),
            note=(note,),
        )
    ]


FAMILY = Family(
    name="dependability",
    statistics=(*S_G, *S_PHI, *S_USED, *S_RAW, *S_PHI_LAMBDA, S_PHI_RAW),
    parts=parts,
    section="What the bank says: coefficients, with the value on gold",
    order=32,
    blocks=blocks,
    kinds=KINDS,
)
