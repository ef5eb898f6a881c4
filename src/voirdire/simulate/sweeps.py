"""What statistics return on banks whose truth is known: the sweeps of TWM, Appendix A.3 to A.5.

Every sweep draws all replicates of a cell at once and solves them by the product's own algebra. A
cell has a random stream of its own, made of the seed and its place, so that leaving cells out changes
no other. The seeds are those of Appendix A.3; the printed numbers come from another stream, and are
matched statistically.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from voirdire.errors import UsageError
from voirdire.simulate.banks import BankModel, Errors, check_count, verdicts
from voirdire.stats import beta_binomial, classification
from voirdire.stats.crossed_design import Components, components_from, phi_from
from voirdire.stats.kuder_richardson import kr20_from

if TYPE_CHECKING:
    import polars as pl

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int], None]
Level = float | str

SPREADS = (0.0, 0.2, 0.4, 0.6, 0.8)
ERRORS = (0.0, 0.05, 0.1, 0.2, 0.3)
MEASURED = 0.0472  # the judge's error per verdict, TWM Section 2
MEASURED_ERRORS = Errors(false_accept=0.104, false_reject=0.001)  # the same, by kind
BANK = BankModel()
RESPONSES, LINES, REPLICATES = BANK.responses, BANK.lines, 60
CUTS = (4, 5, 6, 7)
CONTROL_RESPONSES = 4000
FITTED = (5.452, 3.663)  # the beta of the judge's totals, TWM Appendix A.2
STUDIES, PHRASINGS = 200, 3
SCENARIOS = {
    "phrasing irrelevant": (0.0, 0.09),
    "mild": (0.039, 0.09),
    "large": (0.362, 0.09),
    "deterministic given phrasing": (0.175, 0.0),
}
"""Scenarios of the phrasing study: variances of phrasings and of the residual; responses have 1."""
SEEDS = {
    "kr20_grid": 11,
    "kr20_measured_rate": 13,
    "kr20_one_directional": 17,
    "kr20_lenient_only": 17,
    "phi_lambda_control": 101,
    "livingston_lewis_control": 303,
    "phrasing_check": 7,
}
"""Seeds of TWM, Appendix A.3; the lenient-only sweep shares that of the one-directional one."""
_VALUES = 1 << 23  # random numbers that are held at once


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The values of a sweep, ``(*axes, replicates)``; nan where a replicate cannot be said.

    ``axes`` are names with their levels, in the order of the values' first dimensions; ``statistic`` is
    what the values are where no axis says so. ``responses`` and ``lines`` are those of each replicate.
    """

    name: str
    title: str
    statistic: str
    axes: tuple[tuple[str, tuple[Level, ...]], ...]
    values: Array
    seed: int
    responses: int
    lines: int

    @property
    def replicates(self) -> int:
        return int(self.values.shape[-1])

    @cached_property
    def said(self) -> Array:
        """How many replicates of each cell have a value, ``(*axes,)``."""
        return np.asarray(np.isfinite(self.values).sum(-1))

    @cached_property
    def mean(self) -> Array:
        """The mean over the replicates that have a value, ``(*axes,)``."""
        there = np.isfinite(self.values)
        with np.errstate(all="ignore"):
            return np.asarray(np.where(there, self.values, 0.0).sum(-1) / self.said)

    @cached_property
    def sd(self) -> Array:
        """Their standard deviation (n − 1), ``(*axes,)``; nan for fewer than two."""
        about = np.where(np.isfinite(self.values), self.values - self.mean[..., None], 0.0)
        freedom = np.where(self.said > 1, self.said - 1, np.nan)
        return np.asarray(np.sqrt((about**2).sum(-1) / freedom))

    @property
    def standard_error(self) -> Array:
        """The Monte-Carlo standard error of the mean, ``(*axes,)``."""
        with np.errstate(all="ignore"):
            return np.asarray(self.sd / np.sqrt(self.said))

    def at(self, *levels: Level) -> tuple[int, ...]:
        """The place of a cell by its levels, in the order of the axes."""
        return tuple(held.index(x) for (_, held), x in zip(self.axes, levels, strict=True))

    def cells(self) -> Iterator[tuple[tuple[int, ...], dict[str, Level]]]:
        """Every cell: its place, and its level on each axis."""
        for place in itertools.product(*(range(len(levels)) for _, levels in self.axes)):
            yield (
                place,
                {a: levels[i] for (a, levels), i in zip(self.axes, place, strict=True)},
            )

    def rows(self) -> list[dict[str, Any]]:
        """One row a cell for a table: unrounded, ``None`` where nothing can be said."""
        ends = np.full((2, *self.said.shape), np.nan)
        for place, _ in self.cells():
            there = self.values[place][np.isfinite(self.values[place])]
            if len(there):
                ends[0][place], ends[1][place] = np.percentile(there, (5, 95))
        made = []
        for place, levels in self.cells():
            numbers = {
                "mean": self.mean[place],
                "sd": self.sd[place],
                "standard_error": self.standard_error[place],
                "p5": ends[0][place],
                "p95": ends[1][place],
            }
            made.append(
                {
                    "sweep": self.name,
                    **dict.fromkeys(AXES),
                    "statistic": self.statistic,
                    **levels,
                    **{k: None if math.isnan(v) else float(v) for k, v in numbers.items()},
                    "replicates": int(self.said[place]),
                    "responses": self.responses,
                    "lines": self.lines,
                    "seed": self.seed,
                }
            )
        return made


AXES = ("spread", "error", "cut", "scenario")


def table(sweeps: Sequence[Sweep]) -> pl.DataFrame:
    """All cells of sweeps, one a row."""
    import polars as pl

    text = ("sweep", "scenario", "statistic")
    whole = ("cut", "replicates", "responses", "lines", "seed")
    rows = [row for sweep in sweeps for row in sweep.rows()]
    schema = {
        k: pl.String if k in text else pl.Int64 if k in whole else pl.Float64 for k in rows[0]
    }
    return pl.DataFrame(rows, schema=schema)


# --- KR-20 --------------------------------------------------------------------------------------


def kr20_of(met: Array) -> Array:
    """KR-20 of many banks at once, ``(...)`` from verdicts ``(..., n, K)`` of 0 and 1; nan if undefined."""
    n, k = met.shape[-2:]
    totals = met.sum(-1, dtype=np.int64)
    whole = totals.sum(-1)
    squares = (totals**2).sum(-1) - whole**2 / n
    share = met.sum(-2, dtype=np.int64) / n
    with np.errstate(all="ignore"):
        found = kr20_from(
            n * (share * (1 - share)).sum(-1), np.where(squares > 1e-9, squares, np.nan),
            np.asarray(float(n)), k,
        )  # fmt: skip
    return np.asarray(found)


def _kr20_cells(
    models: Sequence[BankModel],
    *,
    replicates: int,
    seed: int,
    stream: int,
    progress: Progress | None,
) -> Array:
    """KR-20 of the judge on banks of each model, ``(models, replicates)``."""
    check_count("the number of replicates", replicates)
    check_count("the seed", seed, least=0)
    made = np.empty((len(models), replicates))
    for i, model in enumerate(models):
        if model.lines < 2 or model.responses < 2:
            raise UsageError("KR-20 needs at least two lines and two responses.")
        random = np.random.default_rng([seed, stream, i])
        at_once = max(1, _VALUES // (model.responses * model.lines))
        for low in range(0, replicates, at_once):
            many = min(at_once, replicates - low)
            made[i, low : low + many] = kr20_of(verdicts(model, random, many).judge)
        if progress is not None:
            progress(i + 1, len(models))
    return made


def _kr20_sweep(
    name: str,
    title: str,
    axes: tuple[tuple[str, tuple[Level, ...]], ...],
    cells: Sequence[tuple[float, Errors]],
    *,
    replicates: int,
    seed: int,
    progress: Progress | None,
    model: BankModel,
    stream: int = 0,
) -> Sweep:
    models = [replace(model, spread=spread, errors=errors) for spread, errors in cells]
    values = _kr20_cells(models, replicates=replicates, seed=seed, stream=stream, progress=progress)
    return Sweep(
        name=name,
        title=title,
        statistic="kr20",
        axes=axes,
        values=values.reshape(*(len(levels) for _, levels in axes), replicates),
        seed=seed,
        responses=model.responses,
        lines=model.lines,
    )


def kr20_grid(
    spreads: Sequence[float] = SPREADS,
    errors: Sequence[float] = ERRORS,
    *,
    replicates: int = REPLICATES,
    seed: int = SEEDS["kr20_grid"],
    progress: Progress | None = None,
    model: BankModel = BANK,
) -> Sweep:
    """KR-20 of a judge that errs symmetrically, by spread and error (TWM Figure 2, Tables A.4 and A.5).

    ``model`` says what else the banks are drawn from (responses, lines, questions); its spread and
    errors are not used. Raises :class:`UsageError` for what cannot be drawn.
    """
    return _kr20_sweep(
        "kr20_grid",
        "KR-20 by spread and error, errors symmetric",
        (("spread", tuple(spreads)), ("error", tuple(errors))),
        [(s, Errors.symmetric(e)) for s, e in itertools.product(spreads, errors)],
        replicates=replicates,
        seed=seed,
        progress=progress,
        model=model,
    )


def kr20_measured_rate(
    spreads: Sequence[float] = SPREADS,
    *,
    error: float = MEASURED,
    replicates: int = REPLICATES,
    seed: int = SEEDS["kr20_measured_rate"],
    progress: Progress | None = None,
    model: BankModel = BANK,
) -> Sweep:
    """KR-20 by spread at the error measured on the real bank, 4.72 % (TWM Table A.4, bold column)."""
    return _kr20_sweep(
        "kr20_measured_rate",
        f"KR-20 by spread at an error of {100 * error:g} %",
        (("spread", tuple(spreads)),),
        [(s, Errors.symmetric(error)) for s in spreads],
        replicates=replicates,
        seed=seed,
        progress=progress,
        model=model,
    )


def kr20_one_directional(
    spreads: Sequence[float] = SPREADS,
    *,
    errors: Errors = MEASURED_ERRORS,
    replicates: int = REPLICATES,
    seed: int = SEEDS["kr20_one_directional"],
    progress: Progress | None = None,
    model: BankModel = BANK,
) -> Sweep:
    """KR-20 by spread at the measured false-accept and false-reject rates (TWM Appendix A.4)."""
    return _kr20_sweep(
        "kr20_one_directional",
        f"KR-20 by spread with false accepts of {100 * errors.false_accept:g} % and false rejects of "
        f"{100 * errors.false_reject:g} %",
        (("spread", tuple(spreads)),),
        [(s, errors) for s in spreads],
        replicates=replicates,
        seed=seed,
        progress=progress,
        model=model,
    )


def kr20_lenient_only(
    errors: Sequence[float] = ERRORS,
    *,
    spread: float = SPREADS[-1],
    replicates: int = REPLICATES,
    seed: int = SEEDS["kr20_lenient_only"],
    progress: Progress | None = None,
    model: BankModel = BANK,
) -> Sweep:
    """KR-20 of a judge that errs by accepting alone, on the widest bank (TWM Appendix A.4)."""
    return _kr20_sweep(
        "kr20_lenient_only",
        f"KR-20 by error at a spread of {spread:g}, errors lenient alone",
        (("error", tuple(errors)),),
        [(spread, Errors.lenient(e)) for e in errors],
        replicates=replicates,
        seed=seed,
        progress=progress,
        model=model,
        stream=1,  # the one-directional sweep has the same seed
    )


# --- Φ(λ), Livingston–Lewis and accuracy --------------------------------------------------------


def phi_lambda_control(
    cuts: Sequence[int] = CUTS,
    *,
    alpha: float = FITTED[0],
    beta: float = FITTED[1],
    responses: int = CONTROL_RESPONSES,
    lines: int = LINES,
    replicates: int = REPLICATES,
    seed: int = SEEDS["phi_lambda_control"],
    progress: Progress | None = None,
) -> Sweep:
    """Accuracy against the true share, Livingston–Lewis and Φ(λ), on beta-binomial banks.

    Shares p from Beta(``alpha``, ``beta``), verdicts Bernoulli(p) (TWM Appendices A.3 and A.4). The first
    axis is the statistic: ``accuracy`` (of pass or fail against p K ≥ cut), ``livingston_lewis_accuracy``
    and ``phi_lambda``. Raises :class:`UsageError` for what cannot be drawn.
    """
    _check_cuts(cuts, lines)
    check_count("the number of replicates", replicates)
    check_count("the seed", seed, least=0)
    check_count("the number of responses", responses, least=2)
    check_count("the number of lines", lines, least=2)
    if not (alpha > 0 and beta > 0):
        raise UsageError(f"alpha {alpha:g} and beta {beta:g}: both are above 0.")
    random = np.random.default_rng([seed, 0])
    at = np.asarray(cuts)
    values = np.empty((3, len(cuts), replicates))
    many = max(1, _VALUES // (responses * lines))
    for low in range(0, replicates, many):
        span = slice(low, min(low + many, replicates))
        share = random.beta(alpha, beta, (span.stop - low, responses))
        met = random.random((*share.shape, lines)) < share[..., None]
        totals = met.sum(-1, dtype=np.int64)
        truly = share[..., None] * lines >= at
        values[0, :, span] = ((totals[..., None] >= at) == truly).mean(1).T
        values[1, :, span] = _livingston_lewis(totals, lines, cuts).T
        values[2, :, span] = _phi_lambda(met, totals, cuts).T
        if progress is not None:
            progress(span.stop, replicates)
    return Sweep(
        name="phi_lambda_control",
        title="Accuracy, Livingston–Lewis and Φ(λ) on beta-binomial banks",
        statistic="",
        axes=(
            ("statistic", ("accuracy", "livingston_lewis_accuracy", "phi_lambda")),
            ("cut", tuple(cuts)),
        ),
        values=values,
        seed=seed,
        responses=responses,
        lines=lines,
    )


def _livingston_lewis(totals: Array, lines: int, cuts: Sequence[int]) -> Array:
    """Livingston–Lewis accuracy ``(replicates, cuts)`` of totals ``(replicates, n)``."""
    counts = (totals[..., None] == np.arange(lines + 1)).sum(1)
    fits = beta_binomial.fitted(counts)
    return np.asarray(classification.tables(fits, lines, cuts).accuracy)


def _phi_lambda(met: Array, totals: Array, cuts: Sequence[int]) -> Array:
    """Φ(λ) ``(replicates, cuts)`` of verdicts ``(replicates, n, K)``."""
    n, k = met.shape[1:]
    columns, whole = met.sum(1, dtype=np.int64), totals.sum(1).astype(np.float64)
    used = components_from(
        (totals**2).sum(1), (columns**2).sum(1), whole, whole, np.asarray(float(n)), k
    ).used
    marks = np.asarray(cuts) / k
    mean = (whole / (n * k))[:, None]
    with np.errstate(all="ignore"):
        return phi_from(
            Components(*(c[:, None] for c in used)), mean, np.asarray(float(n)), k, marks
        )


def livingston_lewis_control(
    cuts: Sequence[int] = CUTS,
    *,
    responses: int = CONTROL_RESPONSES,
    lines: int = LINES,
    replicates: int = REPLICATES,
    seed: int = SEEDS["livingston_lewis_control"],
    progress: Progress | None = None,
) -> Sweep:
    """Accuracy against the judge's own true score and against gold, where the two depart.

    Gold G ~ Binomial(K, 0.55); the judge's true score τ = 0.9 G + 0.9 + N(0, 1.1²), clipped to 0–K; its
    total τ + N(0, 0.85²), rounded and clipped: the Livingston–Lewis estimand control of TWM Appendix A.3
    (Figure A.2b), with no sampling of lines. The first axis is the statistic: ``own_true_score`` and
    ``gold``. Raises :class:`UsageError` for what cannot be drawn.
    """
    _check_cuts(cuts, lines)
    check_count("the number of replicates", replicates)
    check_count("the seed", seed, least=0)
    check_count("the number of responses", responses)
    random = np.random.default_rng([seed, 0])
    at = np.asarray(cuts)
    values = np.empty((2, len(cuts), replicates))
    many = max(1, _VALUES // (3 * responses))
    for low in range(0, replicates, many):
        span = slice(low, min(low + many, replicates))
        shape = (span.stop - low, responses)
        gold = random.binomial(lines, 0.55, shape)
        own = np.clip(0.9 * gold + 0.9 + random.normal(0, 1.1, shape), 0, lines)
        total = np.clip(np.rint(own + random.normal(0, 0.85, shape)), 0, lines)
        passes = total[..., None] >= at
        values[0, :, span] = (passes == (own[..., None] >= at)).mean(1).T
        values[1, :, span] = (passes == (gold[..., None] >= at)).mean(1).T
        if progress is not None:
            progress(span.stop, replicates)
    return Sweep(
        name="livingston_lewis_control",
        title="Accuracy against the judge’s own true score and against gold",
        statistic="",
        axes=(("statistic", ("own_true_score", "gold")), ("cut", tuple(cuts))),
        values=values,
        seed=seed,
        responses=responses,
        lines=lines,
    )


def _check_cuts(cuts: Sequence[int], lines: int) -> None:
    if not cuts or min(cuts) < 1 or max(cuts) > lines:
        raise UsageError(
            f"cuts {', '.join(map(str, cuts))}: give some from 1 to {lines}, the lines."
        )


# --- the phrasing study -------------------------------------------------------------------------


def crossed_scores(
    random: np.random.Generator,
    *,
    rows: float = 1.0,
    columns: float = 0.0,
    residual: float = 0.0,
    responses: int = RESPONSES,
    phrasings: int = PHRASINGS,
    replicates: int = 1,
) -> Array:
    """Scores of responses × phrasings with given variances, normal: ``(replicates, n, R)``."""
    of_rows = math.sqrt(rows) * random.standard_normal((replicates, responses, 1))
    of_columns = math.sqrt(columns) * random.standard_normal((replicates, 1, phrasings))
    scores = of_rows + of_columns
    if residual:
        shape = (replicates, responses, phrasings)
        scores = scores + math.sqrt(residual) * random.standard_normal(shape)
    return np.asarray(scores)


def crossed_components(scores: Array) -> tuple[Components, Components]:
    """Components as computed and as used, each ``(replicates,)``, of scores ``(replicates, n, R)``."""
    n, r = scores.shape[-2:]
    about = scores - scores.mean((-2, -1), keepdims=True)
    found = components_from(
        (about.sum(-1) ** 2).sum(-1),
        (about.sum(-2) ** 2).sum(-1),
        (about**2).sum((-2, -1)),
        about.sum((-2, -1)),
        np.asarray(float(n)),
        r,
    )
    return found.raw, found.used


def phrasing_check(
    *,
    responses: int = RESPONSES,
    phrasings: int = PHRASINGS,
    replicates: int = STUDIES,
    seed: int = SEEDS["phrasing_check"],
    progress: Progress | None = None,
) -> Sweep:
    """Components of a response-by-phrasing study, and Φ at a single phrasing, in four scenarios.

    The identification check of TWM Appendix A.5 (Table A.7): responses have variance 1, phrasings and
    residual those of :data:`SCENARIOS`. The second axis is the statistic: ``component_response``,
    ``component_phrasing`` and ``component_residual`` as computed, and ``dependability_single`` with the
    components as used. Raises :class:`UsageError` for fewer than two responses or phrasings.
    """
    check_count("the number of replicates", replicates)
    check_count("the seed", seed, least=0)
    check_count("the number of responses", responses, least=2)
    check_count("the number of phrasings", phrasings, least=2)
    values = np.empty((len(SCENARIOS), 4, replicates))
    at_once = max(1, _VALUES // (responses * phrasings))
    for i, (of_phrasings, residual) in enumerate(SCENARIOS.values()):
        random = np.random.default_rng([seed, i])
        for low in range(0, replicates, at_once):
            span = slice(low, min(low + at_once, replicates))
            scores = crossed_scores(
                random,
                columns=of_phrasings,
                residual=residual,
                responses=responses,
                phrasings=phrasings,
                replicates=span.stop - low,
            )
            raw, used = crossed_components(scores)
            single = used.rows / (used.rows + used.columns + used.residual)
            values[i, :, span] = np.stack([*raw, single])
        if progress is not None:
            progress(i + 1, len(SCENARIOS))
    return Sweep(
        name="phrasing_check",
        title=f"Components of a study of {responses:,} responses and {phrasings} phrasings",
        statistic="",
        axes=(
            ("scenario", tuple(SCENARIOS)),
            (
                "statistic",
                (
                    "component_response",
                    "component_phrasing",
                    "component_residual",
                    "dependability_single",
                ),
            ),
        ),
        values=values,
        seed=seed,
        responses=responses,
        lines=phrasings,
    )


# --- all of them --------------------------------------------------------------------------------

SWEEPS: dict[str, Callable[..., Sweep]] = {
    "kr20_grid": kr20_grid,
    "kr20_measured_rate": kr20_measured_rate,
    "kr20_one_directional": kr20_one_directional,
    "kr20_lenient_only": kr20_lenient_only,
    "phi_lambda_control": phi_lambda_control,
    "livingston_lewis_control": livingston_lewis_control,
    "phrasing_check": phrasing_check,
}


def published_sweeps(
    names: Sequence[str] = tuple(SWEEPS), *, progress: Progress | None = None
) -> dict[str, Sweep]:
    """The sweeps of the paper with its parameters and seeds, by name. Raises :class:`UsageError`."""
    made = {}
    for i, name in enumerate(names):
        if name not in SWEEPS:
            raise UsageError(f"there is no sweep {name!r}. Sweeps: {', '.join(SWEEPS)}.")
        made[name] = SWEEPS[name]()
        if progress is not None:
            progress(i + 1, len(names))
    return made
