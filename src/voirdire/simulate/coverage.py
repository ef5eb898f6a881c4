"""How often an interval holds the truth: every interval method over data sets whose truth is known.

Data sets are simulated as tallies (clusters × cells) and given to :func:`voirdire.inference.estimates`,
the engine that makes the product's intervals. Many data sets are solved at once: they stand side by
side as the outputs of one statistic. Beside the product's methods stand candidates that are not in
it: CR2 with Satterthwaite's degrees of freedom (Bell and McCaffrey 2002, Survey Methodology 28,
p. 169) and the expanded percentile (Hesterberg 2015, The American Statistician 69, p. 371).
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from voirdire import intervals
from voirdire.document import (
    Block,
    Column,
    Document,
    Figure,
    Heading,
    Paragraph,
    Table,
    Tone,
    cell,
)
from voirdire.errors import UsageError
from voirdire.estimand import Scale
from voirdire.estimate import Key
from voirdire.inference import UNDEFINED_SHARE, Settings, estimates
from voirdire.resampling import drawn_totals
from voirdire.scene import Rate
from voirdire.stats import collapse, crossed_design, gate, kuder_richardson, pairwise, panel, shares
from voirdire.stats.base import Given, Part, Statistic
from voirdire.tally import Tally, of_rows, summed
from voirdire.workers import spread

Array = np.ndarray[Any, Any]
Generator = np.random.Generator

CLUSTERS = (5, 10, 13, 20, 50, 100, 1000)
RUNS = 2000
SEED = 20261017
REPLICATES = 2000  # of the bootstrap in each data set
SIZES = (5, 10)  # responses in a cluster, evenly between these
CORRELATION = 0.2  # of labels within a cluster
_CELLS = 1 << 20  # clusters × data sets × cells that are held at once
_STEP = 1e-4  # of a cluster's weight, for the derivative of a statistic

METHODS = {
    "auto": "the default: jackknife-t, and the beta interval at the edge of a share",
    "jackknife_t": "jackknife-t alone",
    "korn_graubard": "the beta interval throughout (shares and what is made of one)",
    "percentile": "bootstrap percentiles, as --interval bootstrap",
    "cr2_t": "candidate: CR2 variance, t on Satterthwaite's degrees of freedom",
    "expanded_percentile": "candidate: percentiles widened to the t quantile",
}


# --- what is simulated --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case:
    """One statistic with a model whose true value is known.

    ``draw(generator, sizes, correlation)`` gives cells ``(data sets, clusters, *cells)``, whole
    numbers, for clusters of ``sizes`` ``(data sets, clusters)`` responses. ``output`` is the place of
    the value among the statistic's outputs.
    """

    name: str
    model: str
    statistic: Statistic
    given: Given
    truth: float
    draw: Callable[[Generator, Array, float], Array]
    output: int = 0


def _chances(
    generator: Generator, mean: float, shape: tuple[int, ...], correlation: float
) -> Array:
    """The chance of an event in each cluster: beta with this mean, ``correlation`` within a cluster."""
    if correlation <= 0:
        return np.full(shape, mean)
    size = (1 - correlation) / correlation
    return np.asarray(generator.beta(mean * size, (1 - mean) * size, size=shape))


def _draw_rate(generator: Generator, sizes: Array, correlation: float, *, rate: float) -> Array:
    events = generator.binomial(sizes, _chances(generator, rate, sizes.shape, correlation))
    return np.stack([events, sizes - events, sizes], axis=-1)


def _draw_pairs(
    generator: Generator, sizes: Array, correlation: float, *, prevalence: float, keeps: float
) -> Array:
    """Pairs (grader, gold): the grader repeats gold, else draws at its own chance in the cluster."""
    gold = _chances(generator, prevalence, sizes.shape, correlation)
    own = _chances(generator, prevalence, sizes.shape, correlation)
    yes_yes = gold * (keeps + (1 - keeps) * own)
    no_yes = gold - yes_yes
    yes_no = (1 - gold) * (1 - keeps) * own
    shares_ = np.stack([1 - gold - yes_no, no_yes, yes_no, yes_yes], axis=-1)
    pairs = generator.multinomial(sizes, np.maximum(shares_, 0))
    return np.asarray(pairs.reshape(*sizes.shape, 2, 2))


def _draw_counts(
    generator: Generator, sizes: Array, correlation: float, *, share: float, ratio: float
) -> Array:
    """Class counts of grader and other: of its labels the other's ``ratio``, most on the same responses."""
    other = _chances(generator, share, sizes.shape, correlation)
    kept = 0.8 * ratio
    elsewhere = 0.2 * ratio * share / (1 - share)
    both, own_only = other * kept, (1 - other) * elsewhere
    four = np.stack([both, own_only, other - both, 1 - other - own_only], axis=-1)
    cells = generator.multinomial(sizes, np.maximum(four, 0))
    own, others = cells[..., 0] + cells[..., 1], cells[..., 0] + cells[..., 2]
    return np.stack(
        [np.stack([own, sizes - own], axis=-1), np.stack([others, sizes - others], axis=-1)],
        axis=-2,
    )


def _draw_gate(
    generator: Generator,
    sizes: Array,
    correlation: float,
    *,
    rate: float,
    accept: float,
    reject: float,
) -> Array:
    """Responses, then the table gold × judge of one gate."""
    good = _chances(generator, rate, sizes.shape, correlation)
    four = np.stack(
        [(1 - good) * (1 - accept), (1 - good) * accept, good * reject, good * (1 - reject)],
        axis=-1,
    )
    table = generator.multinomial(sizes, np.maximum(four, 0))
    return np.concatenate([sizes[..., None], table], axis=-1)


def _by_cluster(amounts: Array, sizes: Array) -> Array:
    """Sums over the responses of each cluster: ``(responses, …)`` to ``(data sets, clusters, …)``."""
    starts = np.r_[0, np.cumsum(sizes.ravel())[:-1]]
    return np.asarray(
        np.add.reduceat(amounts, starts, axis=0).reshape(*sizes.shape, *amounts.shape[1:])
    )


def _draw_panel(
    generator: Generator, sizes: Array, correlation: float, *, mix: Sequence[float], keeps: float
) -> Array:
    """Coincidences of three graders that each repeat the truth, else draw from their own mix."""
    k = len(mix)
    row = np.repeat(np.arange(sizes.size), sizes.ravel())
    size = (1 - correlation) / correlation if correlation > 0 else math.inf

    def drawn() -> Array:
        if math.isinf(size):
            cumulative = np.cumsum(np.tile(np.asarray(mix), (sizes.size, 1)), axis=1)
        else:
            cumulative = np.cumsum(generator.dirichlet(np.asarray(mix) * size, sizes.size), axis=1)
        return np.asarray((generator.random(len(row))[:, None] > cumulative[row, :-1]).sum(1))

    truth = drawn()
    counts = np.zeros((len(row), k), dtype=np.int64)
    for _ in range(3):
        label = np.where(generator.random(len(row)) < keeps, truth, drawn())
        counts[np.arange(len(row)), label] += 1
    return _by_cluster(panel.coincidences(counts), sizes)[:, :, None]


def _verdicts(
    generator: Generator, sizes: Array, correlation: float, *, lines: int, met: float, spread: float
) -> Array:
    """Verdicts ``(responses, lines)``: each response meets its lines with a chance of its own.

    The chances are beta with intraclass correlation ``spread`` between lines; a response takes its
    cluster's chance with probability √correlation, so that chances correlate so far within a cluster.
    """
    row = np.repeat(np.arange(sizes.size), sizes.ravel())
    of_cluster = _chances(generator, met, (sizes.size,), spread)
    own = _chances(generator, met, (len(row),), spread)
    chance = np.where(generator.random(len(row)) < math.sqrt(correlation), of_cluster[row], own)
    return np.asarray(generator.random((len(row), lines)) < chance[:, None]).astype(np.int64)


def _draw_kr20(generator: Generator, sizes: Array, correlation: float, **model: Any) -> Array:
    verdicts = _verdicts(generator, sizes, correlation, **model)
    total = verdicts.sum(axis=1, keepdims=True)
    one = np.ones_like(total)
    return _by_cluster(np.concatenate([one, verdicts, verdicts * total], axis=1), sizes)


def _draw_phi(generator: Generator, sizes: Array, correlation: float, **model: Any) -> Array:
    verdicts = _verdicts(generator, sizes, correlation, **model)
    total = verdicts.sum(axis=1, keepdims=True)
    one = np.ones_like(total)
    return _by_cluster(np.concatenate([one, verdicts, total**2], axis=1), sizes)


def _cases() -> dict[str, Case]:
    made: list[Case] = []
    rates = (Rate(name="yes", members=np.array([True, False])),)
    for rate in (0.5, 0.1, 0.05, 0.01):
        made.append(
            Case(
                name=f"rate {rate:g}",
                model="beta-binomial events",
                statistic=shares.S_RATE,
                given={"rates": rates},
                truth=rate,
                draw=partial(_draw_rate, rate=rate),
            )
        )
    keeps = 0.6
    for prevalence in (0.5, 0.1):
        made.append(
            Case(
                name=f"kappa at {prevalence:g}",
                model=f"both say yes to {prevalence:g}; the grader repeats gold with {keeps:g}, else draws",
                statistic=pairwise.S_KAPPA,
                given={},
                truth=keeps,  # agreement beyond chance is made by repeating alone
                draw=partial(_draw_pairs, prevalence=prevalence, keeps=keeps),
            )
        )
    keeps = 0.8
    made.append(
        Case(
            name="alpha",
            model=f"three graders, classes 0.6/0.3/0.1; each repeats the truth with {keeps:g}, else draws",
            statistic=panel.STATISTICS["nominal"],
            given={"labels": np.array([3]), "values": None},
            truth=keeps**2,  # two agree beyond chance where both repeat
            draw=partial(_draw_panel, mix=(0.6, 0.3, 0.1), keeps=keeps),
        )
    )
    lines, met, spread, cut = 7, 0.6, 0.3, 5
    model: dict[str, Any] = {"lines": lines, "met": met, "spread": spread}
    words = f"{lines} lines met with {met:g}, correlation {spread:g} between lines"
    made.append(
        Case(
            name="kr20",
            model=words,
            statistic=kuder_richardson.S_KR20[0],
            given={"k": lines, "sides": 1, "cross": False},
            truth=lines * spread / (1 + (lines - 1) * spread),  # Spearman and Brown
            draw=partial(_draw_kr20, **model),
        )
    )
    of_rows_ = met * (1 - met) * spread
    residual = met * (1 - met) * (1 - spread) / lines
    distance = of_rows_ + (met - cut / lines) ** 2
    made.append(
        Case(
            name="phi_lambda",
            model=f"{words}; cut {cut}",
            statistic=crossed_design.S_PHI_LAMBDA[0],
            given={"k": lines, "sides": 1, "marks": np.array([cut / lines])},
            truth=distance / (distance + residual),
            draw=partial(_draw_phi, **model),
        )
    )
    for ratio in (1 / 3, 0.5):
        made.append(
            Case(
                name=f"collapse ratio {ratio:.2g}",
                model="the other gives the class to 0.2 of the responses; four fifths of the grader’s are among them",
                statistic=collapse.STATISTIC,
                given={"below": 1 / 3},
                truth=ratio,
                draw=partial(_draw_counts, share=0.2, ratio=ratio),
            )
        )
    rate, accept, reject = 0.6, 0.2, 0.1
    made.append(
        Case(
            name="difference",
            model=f"pass rate, judge less gold; gold {rate:g}, false accepts {accept:g}, false rejects {reject:g}",
            statistic=gate.S_MINUS,
            given={"cuts": 1, "paired": True},
            truth=(1 - rate) * accept - rate * reject,
            draw=partial(_draw_gate, rate=rate, accept=accept, reject=reject),
        )
    )
    # Why a value is undefined is for reports, and may rest on more than a model gives.
    return {c.name: replace(c, statistic=replace(c.statistic, reason=None)) for c in made}


CASES = _cases()


# --- many data sets as one tally ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Data sets side by side: ``tally`` has rows ``(clusters, data sets, *cells)``.

    ``statistic`` solves all of them at once, one output a data set; ``sizes`` are the responses of
    each cluster, ``(clusters, data sets)``.
    """

    statistic: Statistic
    given: Given
    tally: Tally
    sizes: Array

    @property
    def runs(self) -> int:
        return int(self.tally.shape[0])


def batch(case: Case, generator: Generator, runs: int, clusters: int, correlation: float) -> Batch:
    """``runs`` data sets of so many clusters."""
    sizes = generator.integers(SIZES[0], SIZES[1] + 1, size=(runs, clusters))
    cells = case.draw(generator, sizes, correlation)
    tally = of_rows(np.ascontiguousarray(np.moveaxis(cells, 0, 1)).astype(np.int64))
    # Rows of a tally stand in an order of their own: the sizes follow by what the cells add up to.
    statistic = side_by_side(case.statistic, case.output)
    return Batch(
        statistic=statistic,
        given=case.given,
        tally=tally,
        sizes=np.asarray(statistic.n(tally.rows.astype(np.float64), case.given)),
    )


def side_by_side(one: Statistic, output: int = 0) -> Statistic:
    """A statistic with data sets for outputs: cells ``(..., data sets, *cells)`` to ``(..., data sets)``.

    ``output`` is the place of the value that is kept among the statistic's outputs.
    """

    def pick(values: Array) -> Array:
        return values[..., min(output, values.shape[-1] - 1)]

    def kept(of: Callable[[Array, Given], Array] | None) -> Any:
        return None if of is None else lambda cells, given: pick(of(cells, given))

    def share(cells: Array, given: Given) -> tuple[Array, Array]:
        assert one.share is not None
        events, trials = one.share(cells, given)
        return pick(events), pick(trials)

    def from_share(p: Array, totals: Array, given: Given) -> Array:
        assert one.from_share is not None
        return np.asarray(pick(one.from_share(p[:, None], totals, given)))

    return replace(
        one,
        solve=lambda cells, given: pick(one.solve(cells, given)),
        n=lambda cells, given: pick(one.n(cells, given)),
        share=share if one.share is not None else None,
        from_share=from_share if one.from_share is not None else None,
        contrast=kept(one.contrast),
        null_variance=kept(one.null_variance),
        counts_p=None,
        events=None,
        reason=None,
    )


# --- the methods --------------------------------------------------------------------------------

Ends = tuple[Array, Array]  # low and high, (data sets,); nan where there is no interval


def engine_ends(data: Batch, settings: Settings, *, share: bool = True) -> Ends:
    """The ends that an audit with these settings gives of every data set; without ``share`` never the edge's."""
    statistic = data.statistic if share else replace(data.statistic, share=None, from_share=None)
    keys = tuple(Key(line=str(i)) for i in range(data.runs))
    part = Part(tally=data.tally, asks=((statistic, keys),), given=data.given)
    made = estimates([part], settings)
    low = np.array([e.interval.low if e.interval else math.nan for e in made])
    high = np.array([e.interval.high if e.interval else math.nan for e in made])
    return low, high


def _edge(data: Batch, level: float) -> Ends:
    """Korn and Graubard's interval for every data set, whether at the edge or not."""
    statistic, tally = data.statistic, data.tally
    assert statistic.share is not None
    events, trials = statistic.share(tally.rows.astype(np.float64), data.given)
    clusters = tally.clusters.astype(np.float64)
    x, n = summed(clusters, events), summed(clusters, trials)
    residual = (events - trials * (x / n)) / n
    many = tally.count
    variance = many / (many - 1) * summed(clusters, residual**2)
    there = summed(clusters, trials > 0)
    ends = np.array(
        [
            intervals.korn_graubard(
                float(x[i] / n[i]),
                float(n[i]),
                float(variance[i]),
                int(there[i]),
                max(int(there[i]) - 1, 1),
                level,
            )
            if n[i] > 0
            else (math.nan, math.nan)
            for i in range(data.runs)
        ]
    ).T
    if statistic.from_share is not None:
        ends = np.stack([statistic.from_share(end, tally.total, data.given) for end in ends])
    return np.minimum(ends[0], ends[1]), np.maximum(ends[0], ends[1])


def _cr2(data: Batch, level: float) -> Ends:
    """CR2 with Satterthwaite's degrees of freedom, for a mean as a regression on nothing but itself.

    With responses as the working model the adjustment of cluster g is (1 − n_g / N)^(−1/2), and both
    the variance and its degrees of freedom have closed forms. Statistics that are no mean go by
    their linearisation, on the scale of their estimand.
    """
    scale = data.statistic.estimand.scale
    centre, value, influence = _influence(data, scale)
    clusters = data.tally.clusters.astype(np.float64)
    n = data.sizes
    total = summed(clusters, n)
    factor = 1 / (1 - n / total)
    variance = summed(clusters, influence**2 * factor)
    squares, fourths = factor * n**2, factor**2 * n**4
    apart = (summed(clusters, squares) ** 2 - summed(clusters, fourths)) / total**2
    df = total**2 / (summed(clusters, n**2) + apart)
    from scipy.special import stdtrit

    half = stdtrit(df, 0.5 + level / 2) * np.sqrt(variance)
    return _brought_back(centre, value, half, scale)


def _influence(data: Batch, scale: Scale) -> tuple[Array, Array, Array]:
    """The value on the scale, the value itself, and each cluster's influence on the scaled one."""

    def solved(totals: Array) -> Array:
        return intervals.forward(data.statistic.solve(totals, data.given), scale)

    total = data.tally.total
    rows = data.tally.rows * _STEP
    slope = (solved(total + rows) - solved(total - rows)) / (2 * _STEP)
    return solved(total), data.statistic.solve(total, data.given), slope


def _brought_back(centre: Array, value: Array, half: Array, scale: Scale) -> Ends:
    """Ends from a centre and a half width; no width where the value lies at the end of its scale."""
    good = np.isfinite(centre) & np.isfinite(half)
    low = np.array([intervals.back(float(c), scale) for c in np.where(good, centre - half, 0)])
    high = np.array([intervals.back(float(c), scale) for c in np.where(good, centre + half, 0)])
    return np.where(good, low, value), np.where(good, high, value)


def _expanded(data: Batch, level: float, replicates: int, seed: int) -> Ends:
    """Bootstrap percentiles at Φ(−√(C/(C−1)) · t), for C clusters and t on C − 1 degrees of freedom."""
    from scipy.special import ndtr

    clusters = data.tally.count
    t = intervals.t_quantile(0.5 + level / 2, clusters - 1)
    tail = float(ndtr(-math.sqrt(clusters / (clusters - 1)) * t))
    solved = np.concatenate(
        [
            data.statistic.solve(totals, data.given)
            for totals in drawn_totals(data.tally, replicates=replicates, seed=seed)
        ]
    )
    finite = np.isfinite(solved)
    # Where no replicate has a value any number will do: there is no interval.
    kept = np.where(finite, solved, np.where(finite.any(axis=0), np.nan, 0.0))
    # A quantile that leaves nan out goes column by column, so only where there is nan.
    whole = np.isfinite(kept).all(axis=0)
    ends = np.empty((2, kept.shape[1]))
    ends[:, whole] = np.quantile(kept[:, whole], [tail, 1 - tail], axis=0)
    ends[:, ~whole] = np.nanquantile(kept[:, ~whole], [tail, 1 - tail], axis=0)
    # As the engine has it: none where too many replicates are undefined.
    low, high = np.where((~finite).mean(axis=0) > UNDEFINED_SHARE, np.nan, ends)
    return low, high


def ends_by_method(data: Batch, *, level: float, replicates: int, seed: int) -> dict[str, Ends]:
    """The ends of every method that applies; a method's formal [value, value] has no width."""
    value = data.statistic.solve(data.tally.total, data.given)
    drawn = Settings(interval="bootstrap", level=level, replicates=replicates, seed=seed)
    made = {"auto": engine_ends(data, Settings(level=level))}
    low, high = engine_ends(data, Settings(level=level), share=False)
    made["jackknife_t"] = np.where(np.isnan(low), value, low), np.where(np.isnan(high), value, high)
    if data.statistic.share is not None:
        made["korn_graubard"] = _edge(data, level)
    made["percentile"] = engine_ends(data, drawn)
    made["cr2_t"] = _cr2(data, level)
    made["expanded_percentile"] = _expanded(data, level, replicates, seed)
    return {name: made[name] for name in METHODS if name in made}


# --- measuring ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cell of the table: a case, a method, a number of clusters.

    ``runs`` are the data sets with a value and ``without`` those of them that got no interval; of
    the others ``held`` have the truth inside, ``truth_below`` and ``truth_above`` miss it on either
    side. ``width`` is the median width.
    """

    case: str
    method: str
    clusters: int
    truth: float
    runs: int
    without: int
    held: int
    truth_below: int
    truth_above: int
    width: float

    @property
    def coverage(self) -> float:
        """The share of intervals that hold the truth; nan where there is none."""
        made = self.runs - self.without
        return self.held / made if made else math.nan

    @property
    def error(self) -> float:
        """The Monte-Carlo standard error of the coverage."""
        made = self.runs - self.without
        return math.sqrt(self.coverage * (1 - self.coverage) / made) if made else math.nan


def measured(
    case: str,
    clusters: int,
    *,
    runs: int = RUNS,
    seed: int = SEED,
    level: float = 0.95,
    replicates: int = REPLICATES,
    correlation: float = CORRELATION,
) -> list[Row]:
    """Coverage of every method for one case at one number of clusters. Deterministic in ``seed``."""
    one = CASES[case]
    generator = np.random.default_rng([seed, zlib.crc32(case.encode()), clusters])
    cells = int(np.prod(one.draw(np.random.default_rng(0), np.full((1, 1), 5), 0.1).shape[2:]))
    step = max(10, min(250, _CELLS // (clusters * cells)))
    parts: dict[str, list[Array]] = {}
    for low_run in range(0, runs, step):
        many = min(step, runs - low_run)
        with np.errstate(all="ignore"):
            data = batch(one, generator, many, clusters, correlation)
            value = data.statistic.solve(data.tally.total, data.given)
            # A seed of its own for each block, so that the replicates are not always the same.
            found = ends_by_method(data, level=level, replicates=replicates, seed=seed + low_run)
        for method, (low, high) in found.items():
            parts.setdefault(method, []).append(np.stack([value, low, high]))
    return [_row(one, method, clusters, np.concatenate(p, axis=1)) for method, p in parts.items()]


def _row(case: Case, method: str, clusters: int, found: Array) -> Row:
    value, low, high = found[:, np.isfinite(found[0])]
    there = np.isfinite(low) & np.isfinite(high)
    low, high = low[there], high[there]
    slack = 1e-12
    below, above = case.truth < low - slack, case.truth > high + slack
    return Row(
        case=case.name,
        method=method,
        clusters=clusters,
        truth=case.truth,
        runs=len(value),
        without=int((~there).sum()),
        held=int((~below & ~above).sum()),
        truth_below=int(below.sum()),
        truth_above=int(above.sum()),
        width=float(np.median(high - low)) if len(low) else math.nan,
    )


def _task(task: tuple[str, int, dict[str, Any]]) -> list[Row]:
    case, clusters, settings = task
    return measured(case, clusters, **settings)


def table(
    cases: Iterable[str] | None = None,
    clusters: Iterable[int] = CLUSTERS,
    *,
    processes: int = 2,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> list[Row]:
    """Coverage of every method, by case and number of clusters, in that order.

    ``settings`` are those of :func:`measured`. ``processes`` 1 stays in this
    one; it changes the time and never a number.
    Raises :class:`UsageError` for a case that is not in :data:`CASES` and for fewer than 3 clusters.
    """
    names = list(CASES if cases is None else cases)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise UsageError(f"There is no case {unknown[0]!r}. Cases: {', '.join(CASES)}.")
    counts = list(clusters)
    if any(c < 3 for c in counts):
        raise UsageError(f"{min(counts)} clusters: no interval is given below 3.")
    if not 0.5 <= settings.get("level", 0.95) < 1:
        raise UsageError(f"The level {settings['level']} is not from 0.5 to below 1.")
    if not 100 <= settings.get("replicates", REPLICATES) <= 1_000_000:
        raise UsageError(f"{settings['replicates']} replicates are not from 100 to 1,000,000.")
    if settings.get("seed", SEED) < 0:
        raise UsageError(f"The seed {settings['seed']} is not a whole number from 0.")
    if settings.get("runs", RUNS) < 1:
        raise UsageError("At least one run is needed.")
    if not 0 <= settings.get("correlation", CORRELATION) < 1:
        raise UsageError(f"The correlation {settings['correlation']} is not from 0 to below 1.")
    tasks = [(name, count, settings) for name in names for count in counts]
    made: dict[int, list[Row]] = {}
    several = spread("voirdire.simulate.coverage", "_task", tasks) if processes > 1 else ()
    for place, rows in several:
        made[place] = rows
        if progress is not None:
            progress(len(made), len(tasks))
    for place, task in enumerate(tasks):
        if place not in made:
            made[place] = _task(task)
            if progress is not None:
                progress(len(made), len(tasks))
    return [row for place in range(len(tasks)) for row in made[place]]


# --- the table as a file and as a page ----------------------------------------------------------

COLUMNS = (
    "case",
    "method",
    "clusters",
    "truth",
    "runs",
    "without",
    "held",
    "truth_below",
    "truth_above",
    "width",
)


def as_json(rows: Sequence[Row], **settings: Any) -> str:
    """The table as JSON, the form that ships in ``data/coverage.json``: one row a line, same rows same text.

    ``settings`` are those of :func:`measured` that the rows were made with.
    """
    how = {
        "runs": RUNS,
        "seed": SEED,
        "level": 0.95,
        "replicates": REPLICATES,
        "correlation": CORRELATION,
        **settings,
    }
    head = {
        **how,
        "responses_in_a_cluster": list(SIZES),
        "models": {name: CASES[name].model for name in dict.fromkeys(r.case for r in rows)},
        "methods": METHODS,
        "columns": list(COLUMNS),
    }
    lines = [json.dumps([_short(getattr(r, c)) for c in COLUMNS], ensure_ascii=False) for r in rows]
    text = json.dumps(head, ensure_ascii=False, indent=1)
    return text.removesuffix("\n}") + ',\n "rows": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"


def _short(value: Any) -> Any:
    """Widths and truths with six digits: more is noise; nan is null."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None


def as_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV, unrounded; empty where there is no width."""
    lines = [",".join(COLUMNS)]
    for row in rows:
        values = [getattr(row, c) for c in COLUMNS]
        lines.append(",".join("" if v != v else str(v) for v in values))
    return "\n".join(lines) + "\n"


def from_json(text: str) -> list[Row]:
    """The rows of :func:`as_json`."""
    held = json.loads(text)
    places = {name: i for i, name in enumerate(held["columns"])}
    made = []
    for row in held["rows"]:
        fields: dict[str, Any] = {
            c: math.nan if row[places[c]] is None else row[places[c]] for c in COLUMNS
        }
        made.append(Row(**fields))
    return made


def figure(rows: Sequence[Row], *, level: float = 0.95) -> Figure:
    """The table as one figure: coverage by clusters, a small picture a case, a line a method."""
    cases: list[dict[str, Any]] = []
    for case in dict.fromkeys(r.case for r in rows):
        of = [r for r in rows if r.case == case]
        series: list[dict[str, Any]] = []
        for method in dict.fromkeys(r.method for r in of):
            held = sorted((r for r in of if r.method == method), key=lambda r: r.clusters)
            series.append(
                {
                    "method": method,
                    "clusters": [r.clusters for r in held],
                    "coverage": [None if math.isnan(r.coverage) else r.coverage for r in held],
                    "runs": [r.runs - r.without for r in held],
                }
            )
        cases.append({"case": case, "truth": of[0].truth, "series": series})
    words = []
    for one in cases:
        first = one["series"][0]
        pairs = list(zip(first["clusters"], first["coverage"], strict=True))
        ends = [pair for pair in (pairs[0], *pairs[-1:]) if pair[1] is not None]
        said = ", ".join(f"{100 * c:.1f} % with {n:,}" for n, c in dict.fromkeys(ends))
        words.append(f"{one['case']} {said or 'without intervals'}")
    method = cases[0]["series"][0]["method"] if cases else ""
    return Figure(
        name="coverage",
        title="How often each interval holds the truth",
        data={"level": level, "cases": cases},
        alt=(
            f"Coverage by number of clusters, one picture a case. Method {method}: {'; '.join(words)}.",
        ),
        caption=(
            f"Share of data sets whose nominal {100 * level:g} % interval holds the known truth, of those "
            "that got an interval. An arrow marks a value below the axis.",
        ),
    )


def read_table(content: Mapping[str, Any]) -> list[Row]:
    """The rows of a table that :func:`as_json` wrote. Raises :class:`UsageError` for anything else."""
    try:
        names = list(content["columns"])
        rows = [dict(zip(names, row, strict=True)) for row in content["rows"]]
        held: list[dict[str, Any]] = [
            {c: math.nan if row[c] is None else row[c] for c in COLUMNS} for row in rows
        ]
        made = [Row(**row) for row in held]
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            "This is no table of coverage: write one with voirdire simulate coverage -o coverage.json"
        ) from error
    return made


def document(rows: Sequence[Row], *, level: float = 0.95, version: str = "") -> Document:
    """The table as a document: for each case the coverage of every method by number of clusters.

    A cell is the coverage in percent; below it, how often the truth lay below and above the interval.
    """
    blocks: list[Block] = [figure(rows, level=level)] if rows else []
    for case in dict.fromkeys(r.case for r in rows):
        of = [r for r in rows if r.case == case]
        counts = list(dict.fromkeys(r.clusters for r in of))
        by_key = {(r.method, r.clusters): r for r in of}
        blocks.append(Heading(text=f"{case}: true value {of[0].truth:.4g}"))
        blocks.append(
            Table(
                title=CASES[case].model,
                columns=(
                    Column(title="method"),
                    *(Column(title=f"{n:,}") for n in counts),
                ),
                rows=tuple(
                    (cell(method), *(cell(_said(by_key[method, n])) for n in counts))
                    for method in dict.fromkeys(r.method for r in of)
                ),
            )
        )
    errors = [r.error for r in rows if math.isfinite(r.error)]
    worst = max(errors, default=0.0)
    runs = max((r.runs for r in rows), default=0)
    blocks.append(
        Paragraph(
            text=(
                f"Coverage of nominal {100 * level:g} % intervals in percent; in brackets, how often the truth "
                "lay below and above. * : more than 0.5 % of the data sets got no interval, ** : more than 5 %; "
                f"they are left out. Monte-Carlo standard error: {100 * math.sqrt(level * (1 - level) / max(runs, 1)):.1f} points at {100 * level:g} %, "
                f"at most {100 * worst:.1f}.",
            ),
            tone=Tone.NOTE,
        )
    )
    return Document(
        title="Coverage of intervals over known truth",
        summary=(f"{len(rows):,} cells, up to {runs:,} data sets each.",),
        blocks=tuple(blocks),
        estimates=(),
        findings=(),
        version=version,
    )


def _said(row: Row) -> str:
    made = row.runs - row.without
    if not made:
        return "–"
    lost = row.without / row.runs
    star = "**" if lost > 0.05 else "*" if lost > 0.005 else ""
    sides = f"{100 * row.truth_below / made:.1f}, {100 * row.truth_above / made:.1f}"
    return f"{100 * row.coverage:.1f}{star} ({sides})"
