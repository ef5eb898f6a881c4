"""Variance components of random-effects designs: analysis of variance, restricted likelihood, intervals.

A design is a list of effects over the axes of an array of scores. Where every cell is there and all
cells are equally often filled, components come from mean squares (*raw*: as computed, they can be
negative; *used*: then 0). Where cells are missing, restricted maximum likelihood (REML) holds them at
0 or above. Nothing here knows what an axis means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

__all__ = ["analysis_of_variance", "reml_components", "restricted_likelihood"]

Array = np.ndarray[Any, Any]

FLOOR = 1e-9  # of the scores' variance: a residual at or below it is 0
INCOMPLETE = "every cell needs a score and every axis two levels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One effect: ``own`` axes, crossed with each other, within the axes in ``nested``."""

    name: str
    own: tuple[int, ...]
    nested: tuple[int, ...] = ()

    @property
    def axes(self) -> frozenset[int]:
        return frozenset((*self.own, *self.nested))


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A balanced random-effects design: how many axes its scores have, and its effects."""

    axes: int
    effects: tuple[Effect, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(e.name for e in self.effects)


def _crossed(names: str) -> Design:
    """All axes crossed; the last effect is the residual."""
    every = range(len(names))
    return Design(
        axes=len(names),
        effects=tuple(
            Effect(name="".join(names[i] for i in own), own=own)
            for size in range(1, len(names) + 1)
            for own in combinations(every, size)
        ),
    )


# Names of effects as in the literature: p responses (persons), i or r columns, c clusters, v votes.
DESIGNS: dict[str, Design] = {
    "p x i": _crossed("pi"),
    "p x i x r": _crossed("pir"),
    "v:(p x r)": Design(
        axes=3,
        effects=(
            Effect(name="p", own=(0,)),
            Effect(name="r", own=(1,)),
            Effect(name="pr", own=(0, 1)),
            Effect(name="v:pr", own=(2,), nested=(0, 1)),
        ),
    ),
    "i:p": Design(
        axes=2,
        effects=(Effect(name="p", own=(0,)), Effect(name="i:p", own=(1,), nested=(0,))),
    ),
    "(p:c) x i": Design(
        axes=3,
        effects=(
            Effect(name="c", own=(0,)),
            Effect(name="p:c", own=(1,), nested=(0,)),
            Effect(name="i", own=(2,)),
            Effect(name="ci", own=(0, 2)),
            Effect(name="pi:c", own=(1, 2), nested=(0,)),
        ),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Anova:
    """A table of mean squares and what follows from it.

    ``mean`` is the grand mean; ``freedom`` and ``mean_squares`` are by effect, ``raw`` and ``used``
    the components; ``expected`` is ``(effects, effects)``: how often each component stands in each
    mean square. With leading axes of replicates the values of a name have these axes.
    """

    mean: Any
    freedom: dict[str, float]
    mean_squares: dict[str, Any]
    raw: dict[str, Any]
    used: dict[str, Any]
    expected: Array


def _design(design: str) -> Design:
    if design not in DESIGNS:
        raise ValueError(f"there is no design {design!r}; known: {', '.join(DESIGNS)}")
    return DESIGNS[design]


def analysis_of_variance(scores: Any, design: str = "p x i") -> Anova:
    """Mean squares and variance components of a balanced random-effects design.

    ``scores`` is ``(…, *axes)`` without a gap; leading axes are replicates, solved at once. Designs:
    ``p x i`` and ``p x i x r`` (crossed), ``v:(p x r)`` (repeats within the cells of a crossed one),
    ``i:p`` (columns of each row its own) and ``(p:c) x i`` (rows within clusters; axes c, p, i).
    Components are in squared units of the scores. Everything is nan where a score is missing or an
    axis has one level. Raises ``ValueError`` for an unknown design or too few axes.
    Source: Brennan 2001, Generalizability Theory, ch. 3; Cornfield and Tukey 1956, Annals of
    Mathematical Statistics 27, p. 907 (expected mean squares).

    >>> found = analysis_of_variance([[9, 8, 7, 9], [6, 5, 4, 6], [8, 8, 6, 7], [3, 2, 2, 4]])
    >>> {name: round(c, 3) for name, c in found.raw.items()}
    {'p': 6.139, 'i': 0.743, 'pi': 0.299}
    """
    plan = _design(design)
    x = np.asarray(scores, dtype=np.float64)
    if x.ndim < plan.axes:
        raise ValueError(f"the design {design} needs scores with {plan.axes} axes")
    first = x.ndim - plan.axes
    sizes = x.shape[first:]
    with np.errstate(all="ignore"):
        mean = (
            x.mean(axis=tuple(range(first, x.ndim))) if x.size else np.full(x.shape[:first], np.nan)
        )
        about = x - np.asarray(mean)[(..., *(None,) * plan.axes)]
        flat = about.reshape(*x.shape[:first], -1)
        # Equal scores differ from their mean by rounding at most, and have no variance.
        spread = np.ptp(x.reshape(*x.shape[:first], -1), axis=-1) if x.size else np.asarray(0.0)
        about = np.where(np.asarray(spread == 0)[(..., *(None,) * plan.axes)], 0.0, about)
        whole = (flat**2).sum(-1)
        squares, freedom = {}, {}
        for effect in plan.effects:
            rest = tuple(first + a for a in range(plan.axes) if a not in effect.axes)
            part = about.mean(axis=rest, keepdims=True) if rest else about
            for axis in effect.own:
                part = part - part.mean(axis=first + axis, keepdims=True)
            many = math.prod(sizes[a] for a in range(plan.axes) if a not in effect.axes)
            total = many * (part**2).sum(axis=tuple(range(first, x.ndim)))
            squares[effect.name] = np.where(total > 1e-24 * whole, total, total * 0.0)
            freedom[effect.name] = float(
                math.prod(sizes[a] for a in effect.nested)
                * math.prod(sizes[a] - 1 for a in effect.own)
            )
        expected = expected_mean_squares(plan, sizes)
        stacked = np.stack([squares[n] / (freedom[n] or math.nan) for n in plan.names], axis=-1)
        solved = np.linalg.solve(expected, stacked[..., None])[..., 0]
    raw = {n: _plain(solved[..., i]) for i, n in enumerate(plan.names)}
    return Anova(
        mean=_plain(mean),
        freedom=freedom,
        mean_squares={n: _plain(stacked[..., i]) for i, n in enumerate(plan.names)},
        raw=raw,
        used={n: _plain(np.maximum(c, 0)) for n, c in raw.items()},
        expected=expected,
    )


def expected_mean_squares(plan: Design, sizes: tuple[int, ...]) -> Array:
    """How often each component stands in each expected mean square, ``(effects, effects)``.

    A component stands in the mean square of every effect whose axes are among its own, as often as
    there are scores for one of its levels.
    """
    return np.array(
        [
            [
                float(math.prod(sizes[a] for a in range(plan.axes) if a not in inner.axes))
                if outer.axes <= inner.axes
                else 0.0
                for inner in plan.effects
            ]
            for outer in plan.effects
        ]
    )


def _plain(value: Any) -> Any:
    """A float for a single value, an array for replicates."""
    array = np.asarray(value, dtype=np.float64)
    return float(array) if array.ndim == 0 else array


# --- restricted likelihood ------------------------------------------------------------------------


def restricted_likelihood(scores: Any, design: str = "p x i") -> dict[str, float]:
    """REML components of a balanced design, by effect; none is negative.

    ``scores`` is one array over the design's axes, as for :func:`analysis_of_variance`. Where no
    component of the analysis of variance is negative the two agree; else the negative one is held at
    0 and the others move. nan where the analysis of variance is.
    Source: Patterson and Thompson 1971, Biometrika 58, p. 545; Searle, Casella and McCulloch 1992,
    Variance Components, ch. 4.8.

    >>> found = restricted_likelihood([[9, 8, 7, 9], [6, 5, 4, 6], [8, 8, 6, 7], [3, 2, 2, 4]])
    >>> {name: round(c, 3) for name, c in found.items()}
    {'p': 6.139, 'i': 0.743, 'pi': 0.299}
    """
    found = analysis_of_variance(scores, design)
    names = list(found.raw)
    raw = np.array([found.raw[n] for n in names], dtype=np.float64)
    if raw.ndim != 1:
        raise ValueError("one array of scores at a time")
    if not np.isfinite(raw).all() or (raw >= 0).all():
        return dict(zip(names, map(float, raw), strict=True))
    squares = np.array([found.mean_squares[n] for n in names])
    freedom = np.array([found.freedom[n] for n in names])
    scale = float(squares.max())
    squares = squares / scale

    def fit(components: Array) -> Any:
        expected = found.expected @ components
        return (freedom * (np.log(expected) + squares / expected)).sum()

    low = np.zeros(len(names))
    low[-1] = FLOOR  # the residual stands in every mean square
    solved = _least(fit, np.maximum(raw / scale, low + 1e-3), low)
    solved = np.where(solved <= low, 0.0, solved)
    return dict(zip(names, map(float, solved * scale), strict=True))


def reml_components(
    scores: Any, *, counts: Any = None, within: Any = None, cluster: Any = None, times: Any = None
) -> dict[str, float]:
    """REML components of rows × columns with missing cells, with repeats, with rows in clusters.

    ``scores`` is ``(n, R)``: nan where a cell is missing, else the mean of the cell's repeats.
    ``counts`` is ``(n, R)``, how many repeats that is (default 1 each); ``within`` is the sum of
    squares of the repeats about their cell's mean, over all cells. ``cluster`` is the code of each row's
    cluster; ``times`` is how often each row stands (a frequency weight). Returns ``rows``,
    ``columns`` and ``residual``; with ``within`` instead of the residual ``cells`` (rows × columns)
    and ``repeats``; with ``cluster`` also ``clusters`` and ``clusters_columns`` (``rows`` are then
    rows within their cluster). Squared units of the scores, none negative; nan for all where they
    cannot be told apart (fewer than two rows with two scores, one column, no cell with two repeats,
    no two clusters or none with two rows). Memory is in proportion to ``n · R + clusters · R²``.
    Source: Patterson and Thompson 1971, Biometrika 58, p. 545; Searle, Casella and McCulloch 1992,
    Variance Components, ch. 6.

    >>> found = reml_components([[1, 2, 1], [3, 4, 4], [5, 5, np.nan], [8, 9, 8]])
    >>> {name: round(c, 3) for name, c in found.items()}
    {'rows': 8.953, 'columns': 0.071, 'residual': 0.196}
    """
    cells = _Cells.of(scores, counts, within, cluster, times)
    names = cells.names
    if not cells.told_apart:
        return dict.fromkeys(names, math.nan)
    low = np.zeros(len(names))
    low[names.index("residual" if within is None else "repeats")] = FLOOR
    start = np.full(len(names), 0.5 / len(names))
    start[0] = 0.5
    solved = _least(cells.deviance, start, low)
    solved = np.where(solved <= 2 * low, 0.0, solved) * cells.unit
    return dict(zip(names, map(float, solved), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """Cell means in units of their standard deviation, rows in the order of their clusters.

    ``y`` is ``(n, R)`` about the mean with 0 where a cell is missing, ``there`` marks the others.
    """

    names: tuple[str, ...]
    y: Array
    there: Array
    counts: Array
    times: Array
    starts: Array | None
    within: tuple[float, float] | None
    unit: float
    told_apart: bool

    @classmethod
    def of(cls, scores: Any, counts: Any, within: Any, cluster: Any, times: Any) -> _Cells:
        y = np.asarray(scores, dtype=np.float64)
        if y.ndim != 2:
            raise ValueError("scores are rows × columns")
        n = len(y)
        repeats: Array = (
            np.ones(y.shape) if counts is None else np.asarray(counts, dtype=np.float64)
        )
        weight: Array = np.ones(n) if times is None else np.asarray(times, dtype=np.float64)
        there = np.isfinite(y) & (repeats > 0)
        names: tuple[str, ...] = ("rows", "columns")
        names += ("residual",) if within is None else ("cells", "repeats")
        if cluster is None and n:
            # Rows of scores with few values repeat: each is worked out once.
            held_rows = np.concatenate(
                [np.where(there, y, 0.0), np.where(there, repeats, 0)], axis=1
            )
            _, first, group = np.unique(held_rows, axis=0, return_index=True, return_inverse=True)
            weight = np.bincount(group.reshape(-1), weights=weight, minlength=len(first))
            y, there, repeats = y[first], there[first], repeats[first]
        several = (there.sum(axis=1) >= 2) & (weight > 0)
        good = weight[several].sum() >= 2 and (there[weight > 0].any(axis=0)).sum() >= 2
        starts = None
        if cluster is not None:
            names += ("clusters", "clusters_columns")
            order = np.argsort(np.asarray(cluster), kind="stable")
            codes = np.asarray(cluster)[order]
            y, there, repeats, weight = y[order], there[order], repeats[order], weight[order]
            starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]]) if n else codes[:0]
            sizes = np.add.reduceat(weight * there.any(axis=1), starts) if n else weight
            good = bool(good) and (sizes > 0).sum() >= 2 and (sizes >= 2).any()
        amount = weight[:, None] * there
        held = None
        if within is not None:
            freedom = float((weight[:, None] * np.maximum(repeats - 1, 0) * there).sum())
            good = bool(good) and freedom > 0
            held = (float(within), freedom)
        total = amount.sum()
        mean = (amount * np.where(there, y, 0)).sum() / total if total else 0.0
        about = np.where(there, y - mean, 0.0)
        unit = float((amount * about**2).sum() / total) if total else 0.0
        if held is not None and unit == 0 and held[1] > 0:
            unit = held[0] / held[1]
        if not unit > 0:
            good = False
        return cls(
            names=names,
            y=about / math.sqrt(unit) if unit > 0 else about,
            there=there,
            counts=np.where(there, repeats, 1.0),
            times=weight,
            starts=starts,
            within=None if held is None else (held[0] / unit if unit > 0 else 0.0, held[1]),
            unit=unit,
            told_apart=bool(good),
        )

    def deviance(self, components: Array) -> Any:
        """−2 × the restricted log-likelihood, up to a constant; complex components are allowed.

        Rows are independent given columns (and their cluster), so the covariance of all cells is
        inverted by rank-one and rank-R updates; nothing of size n × n is made.
        """
        of = dict(zip(self.names, components, strict=True))
        rows, columns = of["rows"], of["columns"]
        error = of["residual"] if self.within is None else of["cells"] + of["repeats"] / self.counts
        weight = self.there / error
        whole = weight.sum(axis=1)
        one = 1 + rows * whole
        inside = (weight * self.y).sum(axis=1)
        shrink = self.times * rows / one
        logs = np.log(np.where(self.there, error, 1.0)).sum(axis=1) + np.log(one)
        deviance = (self.times * logs).sum()
        # About the row's own mean, so that a residual near 0 loses no digits.
        mean = inside / np.where(whole == 0, 1.0, whole)
        apart = (weight * (self.y - mean[:, None]) ** 2).sum(axis=1) + mean * inside / one
        squares = (self.times * apart).sum()
        size = self.y.shape[1]
        eye = np.eye(size)
        if self.starts is None:
            # Sums in a fixed order, which a matrix product leaves to the number of threads.
            both = -np.einsum("i,ij,ik->jk", shrink, weight, weight)
            both = both + np.diag((self.times[:, None] * weight).sum(axis=0))
            means = (self.times[:, None] * weight * self.y).sum(axis=0)
            means = means - np.einsum("i,ij->j", shrink * inside, weight)
        else:
            each = -(shrink[:, None] * weight)[:, :, None] * weight[:, None, :]
            each = each + (self.times[:, None] * weight)[:, :, None] * eye
            each = np.add.reduceat(each, self.starts, axis=0)
            of_means = self.times[:, None] * weight * self.y - weight * (shrink * inside)[:, None]
            of_means = np.add.reduceat(of_means, self.starts, axis=0)[..., None]
            prior = of["clusters"] * np.ones((size, size)) + of["clusters_columns"] * eye
            inner = eye + each @ prior
            deviance = deviance + _log_det(inner).sum()
            both = np.linalg.solve(inner, each).sum(axis=0)
            moved = np.linalg.solve(inner, of_means)
            squares = squares - (np.swapaxes(of_means, -1, -2) @ prior @ moved).sum()
            means = moved.sum(axis=0)[:, 0]
        outer = eye + columns * both
        deviance = deviance + _log_det(outer)
        moved_means = np.linalg.solve(outer, means)
        information = np.linalg.solve(outer, both).sum()
        squares = squares - columns * (means @ moved_means)
        deviance = deviance + np.log(information) + squares - moved_means.sum() ** 2 / information
        if self.within is not None:
            repeats = of["repeats"]
            deviance = deviance + self.within[1] * np.log(repeats) + self.within[0] / repeats
        return deviance


def _log_det(matrices: Array) -> Array:
    sign, size = np.linalg.slogdet(matrices)
    return np.asarray(np.log(sign) + size)


def _gradient(fit: Callable[[Array], Any], at: Array) -> Array:
    """The gradient by complex steps: exact to rounding, since nothing is subtracted."""
    step = 1e-30
    made = np.empty(len(at))
    for i in range(len(at)):
        moved = at.astype(np.complex128)
        moved[i] += 1j * step
        made[i] = complex(fit(moved)).imag / step
    return made


def _least(fit: Callable[[Array], Any], start: Array, low: Array) -> Array:
    """Where ``fit`` is least with every argument at or above ``low``."""
    from scipy.optimize import minimize

    def both(at: Array) -> tuple[float, Array]:
        with np.errstate(all="ignore"):
            return float(np.real(fit(at))), _gradient(fit, at)

    found = minimize(
        both,
        np.maximum(start, low),
        jac=True,
        method="L-BFGS-B",
        bounds=[(x, None) for x in low],
        options={"maxiter": 200, "ftol": 1e-12, "gtol": 1e-7},
    )
    at = np.maximum(np.asarray(found.x, dtype=np.float64), low)
    # A few Newton steps on what is not held at its end bring the last digits.
    for _ in range(12):
        value, slope = both(at)
        free = np.flatnonzero((at > low) | (slope < 0))
        if not len(free):
            break
        curve = np.empty((len(free), len(free)))
        for j, i in enumerate(free):
            width = 1e-5 * max(at[i], 1e-5)
            up, down = at.copy(), at.copy()
            up[i] += width
            down[i] = max(down[i] - width, low[i])
            curve[:, j] = (both(up)[1] - both(down)[1])[free] / (up[i] - down[i])
        try:
            move = np.linalg.solve((curve + curve.T) / 2, -slope[free])
        except np.linalg.LinAlgError:
            break
        trial = at.copy()
        trial[free] = np.maximum(trial[free] + move, low[free])
        new = both(trial)[0]
        if not new <= value + 1e-9 * (1 + abs(value)) or np.abs(trial - at).max() < 1e-14:
            break
        at = trial
    return at


# --- intervals --------------------------------------------------------------------------------------


def chi_square_interval(mean_square: float, freedom: float, level: float) -> tuple[float, float]:
    """The exact interval of a mean square's expectation, for normal scores; ``(low, high)``."""
    from scipy.special import chdtri

    tail = (1 - level) / 2
    low = freedom * mean_square / float(chdtri(freedom, tail))
    return low, freedom * mean_square / float(chdtri(freedom, 1 - tail))


def modified_large_sample(
    first: float,
    first_freedom: float,
    second: float,
    second_freedom: float,
    times: float,
    level: float,
) -> tuple[float, float]:
    """The modified large-sample interval of a component (first − second) / times; ``(low, high)``.

    ``first`` and ``second`` are independent mean squares. The lower end can be negative. Exact where
    one degree of freedom is infinite or ``second`` is 0.
    Source: Graybill and Wang 1980, JASA 75, p. 869; Ting et al. 1990, Journal of Statistical
    Computation and Simulation 35, p. 135; Burdick and Graybill 1992, Confidence Intervals on Variance
    Components, sec. 3.3.
    """
    return combination_interval(
        [(1.0, first, first_freedom)], [(1.0, second, second_freedom)], times, level
    )


def combination_interval(
    plus: Sequence[tuple[float, float, float]],
    minus: Sequence[tuple[float, float, float]],
    times: float,
    level: float,
) -> tuple[float, float]:
    """The modified large-sample interval of (Σ plus − Σ minus) / times; ``(low, high)``.

    ``plus`` and ``minus`` are independent mean squares: factor (above 0), mean square, degrees of
    freedom. The lower end can be negative.
    Source: Ting et al. 1990, Journal of Statistical Computation and Simulation 35, p. 135; Burdick and
    Graybill 1992, Confidence Intervals on Variance Components, sec. 3.4.
    """
    from scipy.special import chdtri, fdtri

    tail = (1 - level) / 2

    def finite(p: float, top: float) -> float:
        """The F quantile with infinite degrees below; ``p`` is the share above it."""
        return float(chdtri(top, p)) / top

    def ratio(p: float, top: float, bottom: float) -> float:
        return float(fdtri(top, bottom, 1 - p))

    def below(d: float) -> float:
        return 1 - 1 / finite(tail, d)

    def above(d: float) -> float:
        return 1 / finite(1 - tail, d) - 1

    def together(a: float, b: float) -> float:
        """What two mean squares of one sign owe to each other, so that their sum is met."""
        both = below(a + b) ** 2 * (a + b) ** 2 / (a * b)
        return both - below(a) ** 2 * a / b - below(b) ** 2 * b / a

    amounts = [(k * s, d) for k, s, d in plus]
    taken = [(k * s, d) for k, s, d in minus]
    down = sum((below(d) * x) ** 2 for x, d in amounts) + sum((above(d) * x) ** 2 for x, d in taken)
    up = sum((above(d) * x) ** 2 for x, d in amounts) + sum((below(d) * x) ** 2 for x, d in taken)
    for x, d in amounts:
        for y, e in taken:
            f = ratio(tail, d, e)
            down += ((f - 1) ** 2 - below(d) ** 2 * f**2 - above(e) ** 2) / f * x * y
            f = ratio(1 - tail, d, e)
            up += ((1 - f) ** 2 - above(d) ** 2 * f**2 - below(e) ** 2) / f * x * y
    for (x, d), (y, e) in combinations(amounts, 2):
        down += together(d, e) / (len(amounts) - 1) * x * y
    for (x, d), (y, e) in combinations(taken, 2):
        up += together(d, e) / (len(taken) - 1) * x * y
    centre = sum(x for x, _ in amounts) - sum(x for x, _ in taken)
    return (
        (centre - math.sqrt(max(down, 0.0))) / times,
        (centre + math.sqrt(max(up, 0.0))) / times,
    )


def fixed_columns_interval(
    rows: float, error: float, rows_freedom: float, error_freedom: float, level: float
) -> tuple[float, float]:
    """The interval of 1 − error / rows, the dependability of a mean over just these columns.

    ``rows`` and ``error`` are independent mean squares whose ratio over that of their expectations
    has an F distribution: exact where every cell is filled alike and scores are normal. The lower end
    can be negative. Source: Feldt 1965, Psychometrika 30, p. 357; Brennan 2001, Generalizability
    Theory, sec. 6.2.
    """
    from scipy.special import fdtri

    tail = (1 - level) / 2
    share = error / rows if rows > 0 else math.inf
    low = 1 - share * float(fdtri(rows_freedom, error_freedom, 1 - tail))
    return low, 1 - share * float(fdtri(rows_freedom, error_freedom, tail))


# Quantiles that stand for each mean square's chi-square; few phrasings leave theirs the longest tail.
_POINTS = (60, 400, 8)


def dependability_interval(
    rows: float, columns: float, residual: float, n: float, k: float, freedom: float, level: float
) -> tuple[float, float]:
    """The interval of dependability at one column, σ²(rows) / (σ²(rows) + σ²(columns) + σ²(residual)).

    ``rows``, ``columns`` and ``residual`` are mean squares of ``n`` rows × ``k`` columns; ``freedom``
    is that of the residual. A generalised confidence interval: quantiles of the share where each mean
    square's expectation is the mean square over a chi-square divided by its degrees of freedom, with
    negative components at 0. Fixed quantiles stand for draws, so nothing is random. Satterthwaite's
    interval (McGraw and Wong 1996) covered 83 to 96 % where this one covered 95 to 98 (3 phrasings,
    20 to 210 responses; see docs/phrasings.md).
    Source: Weerahandi 1993, JASA 88, p. 899; Burdick, Borror and Montgomery 2005, Design and Analysis
    of Gauge R&R Studies, ch. 3.
    """
    from scipy.special import chdtri

    def expectation(mean_square: float, degrees: float, points: int) -> Array:
        share = (np.arange(points) + 0.5) / points
        return np.asarray(mean_square * degrees / chdtri(degrees, 1 - share))

    of_rows = expectation(rows, n - 1, _POINTS[0])[:, None, None]
    of_columns = expectation(columns, k - 1, _POINTS[1])[None, :, None]
    error = expectation(residual, freedom, _POINTS[2])[None, None, :]
    above = np.maximum(of_rows - error, 0) / k
    whole = above + np.maximum(of_columns - error, 0) / n + error
    if not (whole > 0).all():
        return math.nan, math.nan
    tail = (1 - level) / 2
    low, high = np.quantile(above / whole, [tail, 1 - tail])
    return float(low), float(high)
