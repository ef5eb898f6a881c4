"""Whether the judge’s errors fall together within responses, and what that does to KR-20.

The yardstick keeps gold as it is and lets every verdict err on its own: at the judge’s overall
false-accept and false-reject rates, or at each line’s own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voirdire.document import Block, Cell, Column, Kind, Paragraph, Table, Tone, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.scene import Scene
from voirdire.sides import different_lengths
from voirdire.stats._checklist import KINDS, responses
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Statistic
from voirdire.stats.element_error import clusters_of
from voirdire.tally import summed
from voirdire.wording import Name, Text, counted, say

DRAWS = 2000
FLIPS = 1 << 25  # verdicts drawn one by one (responses × lines × draws), above which moments serve
ALL_FLIPS = 1 << 27  # over all judges and both rates, above which moments serve for all of them
_BLOCK = 1 << 20  # verdicts drawn at once
MOST_CELLS = 1 << 23  # of the tally of pairs of positions, above which the value stands alone
UNDEFINED_SHARE = 0.01  # of draws, above which their mean is not given
RATES = ("overall", "by_line")

SECTION = "Where the judge errs"
PAPER = "“Three Ways Classical Test Theory Can Mislead About LLM Judges”"
FEW = "fewer than two responses were scored in full by gold and the judge"
NO_KR20 = "there are fewer than two lines or responses, or the totals do not vary in more than 1 % of draws"
NO_PAIRS = (
    "there are not two positions with an error on some of the responses and not on all of them"
)
TOO_MANY_PAIRS = "too many pairs of positions in too many clusters for an interval"

VARIANCE = Estimand(
    name="error_count_variance",
    title="Variance of error counts",
    question="How much does the number of the judge’s errors vary from response to response?",
    describes=Describes.BOTH,
    keys=("grader",),
    unit=Unit.COEFFICIENT,
    scale=Scale.PLAIN,
    needs=("label", "gold"),
    low=0,
    reading="Beside its value under independent errors: what is above it is errors that fall together.",
    moves_with=("the error rates", "the number of lines"),
    undefined_when=FEW,
    source=Source(text=f"{PAPER}, Appendix A.2", equation="variance with n − 1"),
    formula=(
        r"\frac{1}{n - 1} \sum_{i} (E_{i} - \bar{E})^{2}, \quad E_{i} = \sum_{j} \mathbf{1}[X_{ij} "
        r"\ne G_{ij}]"
    ),
    conventions=(
        "X_ij, G_ij: the verdicts of the judge and of gold on line j of response i, on the n "
        "responses that gold and the judge both scored in full. Divisor n − 1."
    ),
)
INDEPENDENT = Estimand(
    name="error_count_variance_if_independent",
    title="Variance of error counts, were errors independent",
    question=(
        "What would that variance be if verdicts erred independently of each other, with gold as it "
        "is: at the overall false-accept and false-reject rates, or at each line’s own?"
    ),
    describes=Describes.BOTH,
    keys=("grader", "line"),
    unit=Unit.COEFFICIENT,
    scale=Scale.NONE,  # a yardstick at the rates as measured
    needs=("label", "gold"),
    low=0,
    reading="Each line’s own rates are fitted to its few verdicts: with few of them little is left over.",
    moves_with=("the error rates", "how many elements are absent from response to response"),
    undefined_when=FEW,
    source=Source(
        text=f"{PAPER}, Appendix A.2",
        equation="mean within-response variance + variance (n − 1) of the expected count",
    ),
    formula=(
        r"\frac{1}{n} \sum_{i} \sum_{j} e_{ij} (1 - e_{ij}) + \frac{1}{n - 1} \sum_{i} (\mu_{i} - "
        r"\bar{\mu})^{2}, \quad \mu_{i} = \sum_{j} e_{ij}"
    ),
    conventions=(
        "e_ij: the chance of an error on line j of response i, the false-accept rate where gold "
        "says no and the false-reject rate where it says yes: of all lines (overall) or of the "
        "line itself (by_line); on the n responses that gold and the judge both scored in full."
    ),
)
DRAWN = (
    "X^(b): gold’s verdicts on the n responses that both scored in full, each turned over with the "
    f"chance e_ij of error_count_variance_if_independent; b = 1 … B, B = {DRAWS:,} seeded draws, of "
    "which those without a value are left out. KR-20: as for kr20. Of very many verdicts the sums "
    "behind KR-20 are drawn from the normal distribution with their exact means, variances and "
    "covariances."
)
KR20_MEAN = Estimand(
    name="independent_error_kr20_mean",
    title="KR-20 under independent errors: mean",
    question=(
        "Which KR-20 would gold’s verdicts with independent errors at the judge’s rates have, on average?"
    ),
    describes=Describes.BANK,
    keys=("grader", "line"),
    unit=Unit.COEFFICIENT,
    scale=Scale.NONE,
    needs=("label", "gold"),
    reading="KR-20 describes the bank; what the errors’ structure adds to it is no quality of the judge.",
    moves_with=("the bank’s spread", "the error rates"),
    undefined_when=NO_KR20,
    source=Source(text=f"{PAPER}, Section 3 and Appendix A.3"),
    formula=r"\bar{k} = \frac{1}{B} \sum_{b} k_{b}, \quad k_{b} = \text{KR-20}(X^{(b)})",
    conventions=DRAWN,
)
KR20_SD = Estimand(
    name="independent_error_kr20_sd",
    title="KR-20 under independent errors: SD of the draws",
    question="How much does that KR-20 vary from draw to draw of the errors?",
    describes=Describes.BANK,
    keys=("grader", "line"),
    unit=Unit.COEFFICIENT,
    scale=Scale.NONE,
    needs=("label", "gold"),
    low=0,
    moves_with=("the number of responses", "the error rates"),
    undefined_when=NO_KR20,
    source=Source(text=f"{PAPER}, Section 3 and Appendix A.3"),
    formula=r"\sqrt{\frac{1}{B - 1} \sum_{b} (k_{b} - \bar{k})^{2}}, \quad k_{b} = \text{KR-20}(X^{(b)})",
    conventions=DRAWN,
)
KR20_SHARE = Estimand(
    name="independent_error_kr20_share_at_or_above",
    title="KR-20 under independent errors: share of draws at or above the judge’s verdicts",
    question="How often do independent errors give a KR-20 at least as high as the one observed?",
    describes=Describes.BOTH,
    keys=("grader", "line"),
    unit=Unit.SHARE,
    scale=Scale.NONE,
    needs=("label", "gold"),
    low=0,
    high=1,
    reading="A small share: errors that fall together lift the coefficient. It is no p-value of the judge.",
    moves_with=("how errors fall together", "the number of responses"),
    undefined_when=NO_KR20,
    source=Source(text=f"{PAPER}, Section 3"),
    formula=r"\frac{1}{B}\, \#\{b \mid k_{b} \ge \text{KR-20}(X)\}, \quad k_{b} = \text{KR-20}(X^{(b)})",
    conventions=f"X: the judge’s verdicts. {DRAWN}",
)
PHI = Estimand(
    name="error_phi",
    title="Correlation of errors",
    question="How strongly do errors at two positions go together, on average over pairs of positions?",
    describes=Describes.BOTH,
    keys=("grader",),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    needs=("label", "gold"),
    low=-1,
    high=1,
    reading=(
        "0: errors at one position say nothing of those at another. Pairs count where both positions "
        "have errors on some responses and not on all."
    ),
    moves_with=("how errors differ between questions",),
    undefined_when=NO_PAIRS,
    source=Source(text=f"{PAPER}, Appendix A.3"),
    formula=(
        r"\phi = \frac{1}{\# P} \sum_{(j,k) \in P} \frac{p_{jk} - p_{j}\, p_{k}}{\sqrt{p_{j} (1 - "
        r"p_{j})\, p_{k} (1 - p_{k})}}"
    ),
    conventions=(
        "p_j: the share of responses with an error at position j, p_jk: with one at both j and k, "
        "on the n responses that gold and the judge both scored in full; P: the pairs of positions "
        "that both have errors on some and not on all. It is Pearson’s r of the indicators of an "
        "error, averaged without a transformation."
    ),
)


# --- the observed structure ---------------------------------------------------------------------


def _variance(cells: Array, given: Given) -> Array:
    n, total, squares = (cells[..., i : i + 1] for i in range(3))
    above = np.maximum(squares - total**2 / n, 0)
    return np.asarray(np.where(n > 1, above / (n - 1), np.nan))


def _phi(cells: Array, given: Given) -> Array:
    first, second, diagonal = given["first"], given["second"], given["diagonal"]
    n = cells[..., :1]
    joint = cells[..., 1:] / n  # the upper triangle of E'E, as shares
    p = joint[..., diagonal]
    spread = p * (1 - p)
    varies = (spread > 1e-12)[..., first] & (spread > 1e-12)[..., second]
    scale = np.sqrt(spread[..., first] * spread[..., second])
    apart = first != second
    usable = varies & apart
    r = (joint - p[..., first] * p[..., second]) / np.where(usable, scale, 1)
    total = np.where(usable, r, 0).sum(-1, keepdims=True)
    return np.asarray(total / usable.sum(-1, keepdims=True))


S_VARIANCE = Statistic(estimand=VARIANCE, solve=_variance, n=responses)
S_PHI = Statistic(
    estimand=PHI,
    solve=_phi,
    n=lambda cells, given: np.asarray(given["n"]) if "n" in given else responses(cells, given),
)


def _alone(estimand: Estimand, place: int | None = None) -> Statistic:
    """A statistic whose values are worked out beforehand, not solved from a tally."""
    return Statistic(
        estimand=estimand,
        solve=lambda cells, given: np.asarray(cells if place is None else cells[..., place]),
        n=lambda cells, given: np.asarray(given["n"]),
        reason=lambda totals, given: [estimand.undefined_when] * len(RATES),
    )


S_INDEPENDENT = _alone(INDEPENDENT)
S_MEAN, S_SD, S_SHARE = (
    _alone(estimand, place) for place, estimand in enumerate((KR20_MEAN, KR20_SD, KR20_SHARE))
)


# --- errors that are independent ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    """Responses that gold and the judge both scored in full.

    ``gold`` and ``judge`` are ``(responses, positions)``, −1 where there is no line; ``line`` says
    which line stands there. ``times`` are frequency weights, ``weight`` design weights (``None``: 1).
    """

    rows: Array
    gold: Array
    judge: Array
    line: Array
    times: Array | None
    weight: Array | None

    @property
    def amount(self) -> Array:
        """How much each response counts in a sum."""
        for given in (self.times, self.weight):
            if given is not None:
                return given
        return np.ones(len(self.rows))

    @property
    def n(self) -> float:
        """How many responses there are."""
        return float(self.times.sum()) if self.times is not None else float(len(self.rows))


def _scored(scene: Scene, grader: str) -> _Scored:
    bank = scene.bank
    assert bank is not None
    gold, judge = bank.places[scene.gold], bank.places[grader]
    rows = np.flatnonzero(bank.complete[:, gold] & bank.complete[:, judge])
    weights = None if bank.weights is None else bank.weights[rows]
    return _Scored(
        rows=rows,
        gold=bank.verdicts[rows, gold],
        judge=bank.verdicts[rows, judge],
        line=bank.line[rows],
        times=weights if bank.frequency else None,
        weight=None if bank.frequency else weights,
    )


def _error_chances(scored: _Scored, by: str, lines: int) -> Array:
    """The chance of an error on each verdict, ``(responses, positions)``; 0 where there is no line.

    ``overall``: the judge’s false-accept rate where gold says no, its false-reject rate where gold
    says yes. ``by_line``: those of the line itself.
    """
    there = scored.gold >= 0
    place = scored.gold.astype(np.int64)
    size = 2
    if by == "by_line":
        place = 2 * scored.line.astype(np.int64) + place
        size = 2 * lines
    amount = np.broadcast_to(scored.amount[:, None], there.shape)[there]
    wrong = (scored.gold != scored.judge)[there]
    place = place[there]
    if scored.weight is not None:
        # Sums of fractions depend on their order, so it is made one that no row order shows in.
        order = np.lexsort((amount, place))
        place, amount, wrong = place[order], amount[order], wrong[order]
    verdicts = np.bincount(place, amount, size)
    errors = np.bincount(place, amount * wrong, size)
    rates = errors / np.where(verdicts > 0, verdicts, 1)
    chances = np.zeros(there.shape)
    where = scored.gold.astype(np.int64)
    if by == "by_line":
        where = 2 * scored.line.astype(np.int64) + where
    chances[there] = rates[where[there]]
    return chances


def _variance_if_independent(scored: _Scored, chances: Array) -> float:
    """Mean within-response variance plus the variance (n − 1) of the expected count."""
    amount = scored.amount
    n = amount.sum()
    if not n > 1:
        return float("nan")
    expected = chances.sum(axis=1)
    within = (chances * (1 - chances)).sum(axis=1)
    if scored.weight is not None:
        order = np.lexsort((within, expected, amount))
        amount, expected, within = amount[order], expected[order], within[order]
    mean = summed(amount, expected) / n
    between = summed(amount, (expected - mean) ** 2) / (n - 1)
    return float(summed(amount, within) / n + between)


def _kr20(columns: Array, squares: Array, n: float) -> Array:
    """KR-20 in the paper’s form from sums: lines met by position ``(..., K)``, squared totals ``(...)``.

    Item variances are p(1 − p), the variance of the totals has n − 1 (Appendix A.3).
    """
    k = columns.shape[-1]
    if k < 2 or not n > 1:
        return np.full(squares.shape, np.nan)
    p = columns / n
    total = columns.sum(-1)
    spread = (squares - total**2 / n) / (n - 1)
    with np.errstate(all="ignore"):
        value = k / (k - 1) * (1 - (p * (1 - p)).sum(-1) / spread)
    return np.asarray(np.where(spread > 1e-12, value, np.nan))


def independent_error_kr20(
    gold: Array,
    chances: Array,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    times: Array | None = None,
    weight: Array | None = None,
    flips: int = FLIPS,
) -> Array:
    """KR-20 of gold’s verdicts with independent errors, one value a draw, ``(draws,)``.

    ``gold`` and ``chances`` (of an error) are ``(responses, K)``; ``times`` are frequency weights,
    ``weight`` design weights. Up to so many ``flips`` every verdict is drawn; above, the sums
    that KR-20 is made of are drawn from the normal distribution with their exact means and variances.
    nan where the totals do not vary. The order of the responses does not show in the draws.
    """
    met = np.where(gold == 1, 1 - chances, chances)
    keys = tuple(np.round(met, 12).T)
    order = np.lexsort(keys if weight is None else (weight, *keys))
    met = met[order]
    times = None if times is None else np.rint(times[order]).astype(np.int64)
    weight = None if weight is None else weight[order]
    n = float(len(met)) if times is None else float(times.sum())
    size = n if weight is None else float(summed(np.ones(len(met)), np.sort(weight)))
    generator = np.random.Generator(np.random.PCG64(seed))
    if n * met.shape[1] * draws <= flips:
        if times is not None:
            met = np.repeat(met, times, axis=0)
        sums = _drawn_one_by_one(met, weight, draws, generator)
    else:
        sums = iter([_drawn_from_moments(met, times, weight, draws, generator)])
    return np.concatenate([_kr20(columns, squares, size) for columns, squares in sums])


def _drawn_one_by_one(
    met: Array, weight: Array | None, draws: int, generator: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Sums by position and of squared totals, with every verdict drawn, in blocks of draws."""
    n, k = met.shape
    # Positions first, so that adding over them runs along the responses.
    chance = np.ascontiguousarray(met.T, dtype=np.float32)
    step = max(1, _BLOCK // max(1, n * k))
    exact = weight is None and n * k * k < 1 << 24  # whole numbers that float32 holds
    kind = np.float32 if exact else np.float64
    amount = np.ones(n, dtype=kind) if weight is None else weight.astype(kind)
    for low in range(0, draws, step):
        size = min(step, draws - low)
        verdicts = generator.random((size, k, n), dtype=np.float32) < chance
        totals = verdicts.sum(axis=1, dtype=np.int16 if k < 1 << 15 else np.int64).astype(kind)
        columns = _weighed(verdicts.astype(kind), amount, whole=weight is None)
        squares = _weighed(totals**2, amount, whole=weight is None)
        yield columns.astype(np.float64), squares.astype(np.float64)


def _weighed(values: Array, amount: Array, *, whole: bool) -> Array:
    """Sums over the last axis; of fractions in an order that no number of threads changes."""
    return np.asarray(values @ amount if whole else np.einsum("...n,n->...", values, amount))


def _drawn_from_moments(
    met: Array,
    times: Array | None,
    weight: Array | None,
    draws: int,
    generator: np.random.Generator,
) -> tuple[Array, Array]:
    """The same sums from the normal distribution with their exact means, variances and covariances.

    A total T is a sum of independent verdicts X_j of chance p_j. With m its mean and κ2, κ3, κ4 its
    cumulants, Var(T²) = 4m²κ2 + 4mκ3 + κ4 + 2κ2², and Cov(X_j, T²) = p_j(E[(1 + T − X_j)²] − E[T²]).
    Verdicts at two positions do not covary.
    """
    linear = np.ones(len(met)) if times is None else times.astype(np.float64)
    squared = linear
    if weight is not None:
        linear, squared = weight, weight**2
    v = met * (1 - met)
    m, k2 = met.sum(1), v.sum(1)
    k3, k4 = (v * (1 - 2 * met)).sum(1), (v * (1 - 6 * v)).sum(1)
    mean_square = m**2 + k2
    of_square = 4 * m**2 * k2 + 4 * m * k3 + k4 + 2 * k2**2
    rest = (1 + m[:, None] - met) ** 2 + k2[:, None] - v
    covariance = summed(squared, met * (rest - mean_square[:, None]))
    variance = summed(squared, v)
    spread = np.sqrt(variance)
    slope = np.divide(covariance, spread, out=np.zeros_like(spread), where=spread > 0)
    left = max(float(summed(squared, of_square) - (slope**2).sum()), 0.0)
    z = generator.standard_normal((draws, met.shape[1] + 1))
    columns = summed(linear, met) + z[:, :-1] * spread
    squares = summed(linear, mean_square) + np.einsum("dk,k->d", z[:, :-1], slope)
    return columns, squares + z[:, -1] * np.sqrt(left)


def _summary(scored: _Scored, chances: Array, seed: int, flips: int) -> tuple[float, float, float]:
    """Mean and SD of the draws, and the share of them at or above the KR-20 of the judge’s verdicts."""
    drawn = independent_error_kr20(
        scored.gold,
        chances,
        seed=seed,
        times=scored.times,
        weight=scored.weight,
        flips=flips,
    )
    said = drawn[np.isfinite(drawn)]
    if len(drawn) - len(said) > UNDEFINED_SHARE * len(drawn):
        return (float("nan"),) * 3
    amount = scored.amount
    if scored.weight is not None:
        order = np.lexsort((*scored.judge.T, amount))
        columns = summed(amount[order], scored.judge[order])
        squares = summed(amount[order], scored.judge[order].sum(axis=1) ** 2.0)
    else:
        columns = summed(amount, scored.judge)
        squares = summed(amount, scored.judge.sum(axis=1) ** 2.0)
    size = float(summed(np.ones(len(amount)), np.sort(amount)))
    observed = float(_kr20(columns, squares, size))
    above = (said >= observed - 1e-12).mean() if np.isfinite(observed) else float("nan")
    return float(said.mean()), float(said.std(ddof=1)), float(above)


# --- parts --------------------------------------------------------------------------------------


def _flips(scene: Scene) -> int:
    """Up to how many verdicts are drawn one by one for a judge; 0 where all judges have too many."""
    bank = scene.bank
    assert bank is not None
    judges = [bank.places[g] for g in scene.panel]
    both = bank.complete[:, judges] & bank.complete[:, [bank.places[scene.gold]]]
    times = bank.weights if bank.frequency and bank.weights is not None else None
    scored = float(both.sum() if times is None else (times @ both).sum())
    width = bank.verdicts.shape[2]
    return FLIPS if scored * width * DRAWS * len(RATES) <= ALL_FLIPS else 0


def parts(scene: Scene) -> Iterable[Part]:
    if not scene.gold:
        return
    bank = scene.bank
    assert bank is not None
    flips = _flips(scene)
    for grader in scene.panel:
        scored = _scored(scene, grader)
        clusters = clusters_of(scene, scored.rows)
        yield _counts(scene, grader, scored)
        yield _pairs(scene, grader, scored, clusters)
        chances = {by: _error_chances(scored, by, len(bank.lines)) for by in RATES}
        yield Part(
            tally=None,
            totals=np.array([_variance_if_independent(scored, chances[by]) for by in RATES]),
            asks=((S_INDEPENDENT, tuple(Key(grader=grader, line=by) for by in RATES)),),
            given={"n": scored.n},
            clusters=(clusters,) * 2,
        )
        yield _draws(scene, grader, scored, chances, clusters, flips)


def _counts(scene: Scene, grader: str, scored: _Scored) -> Part:
    bank = scene.bank
    assert bank is not None
    errors = np.zeros(bank.responses, dtype=np.int64)
    errors[scored.rows] = (scored.gold != scored.judge).sum(axis=1)

    def cells(rows: Array) -> Array:
        count = errors[rows]
        return np.stack([np.ones_like(count), count, count**2], axis=1)

    return Part(
        tally=scene.summed(scored.rows, cells, (3,)),
        asks=((S_VARIANCE, (Key(grader=grader),)),),
    )


def _pairs(scene: Scene, grader: str, scored: _Scored, clusters: int) -> Part:
    bank = scene.bank
    assert bank is not None
    width = scored.gold.shape[1]
    first, second = np.triu_indices(width)
    given: dict[str, Any] = {
        "first": first,
        "second": second,
        "diagonal": np.flatnonzero(first == second),
    }
    asks = ((S_PHI, (Key(grader=grader),)),)
    uneven = different_lengths(scene)
    wrong = np.zeros((bank.responses, width), dtype=np.int8)
    wrong[scored.rows] = scored.gold != scored.judge
    if uneven or clusters * (1 + len(first)) > MOST_CELLS:
        errors = wrong[scored.rows].astype(np.float64)
        joint = np.einsum("ij,ik->jk", errors * scored.amount[:, None], errors, optimize=True)
        return Part(
            tally=None,
            totals=np.append(scored.amount.sum(), joint[first, second]),
            asks=asks,
            given={**given, "n": scored.n},
            no_interval=TOO_MANY_PAIRS,
            clusters=(clusters,),
            undefined=uneven,
        )

    def cells(rows: Array) -> Array:
        here = wrong[rows]
        ones = np.ones((len(rows), 1), dtype=np.int8)
        return np.concatenate([ones, here[:, first] & here[:, second]], axis=1)

    tally = scene.summed(scored.rows, cells, (1 + len(first),))
    return Part(tally=tally, asks=asks, given=given)


def _draws(
    scene: Scene,
    grader: str,
    scored: _Scored,
    chances: dict[str, Array],
    clusters: int,
    flips: int,
) -> Part:
    keys = tuple(Key(grader=grader, line=by) for by in RATES)
    uneven = different_lengths(scene)
    totals = np.full((2, 3), np.nan)
    if not uneven and len(scored.rows):
        seed = scene.options.seed
        totals = np.array([_summary(scored, chances[by], seed, flips) for by in RATES])
    return Part(
        tally=None,
        totals=totals,
        asks=((S_MEAN, keys), (S_SD, keys), (S_SHARE, keys)),
        given={"n": scored.n},
        clusters=(clusters,) * 2,
        undefined=uneven,
    )


# --- the report ---------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    if not scene.gold or not scene.panel:
        return ()
    rows: list[tuple[Cell, ...]] = []
    for grader in scene.panel:
        key = {"grader": grader, "slice": scene.slice}

        def beside(name: str, key: dict[str, str] = key) -> tuple[Cell, Cell]:
            return (
                cell(estimates.get(name, line="overall", **key)),
                cell(estimates.get(name, line="by_line", **key)),
            )

        kr20 = estimates.get("kr20", **key)
        rows += [
            (
                cell(Name(grader)),
                cell("variance of errors per response"),
                cell(estimates.get("error_count_variance", **key)),
                *beside("error_count_variance_if_independent"),
            ),
            (
                cell(Name(grader)),
                cell("KR-20 (of the bank)"),
                cell(kr20),
                *beside("independent_error_kr20_mean"),
            ),
            (
                cell(Name(grader)),
                cell("its SD over the draws"),
                cell(None),
                *beside("independent_error_kr20_sd"),
            ),
            (
                cell(Name(grader)),
                cell("draws at or above the observed KR-20"),
                cell(None),
                *beside("independent_error_kr20_share_at_or_above"),
            ),
            (
                cell(Name(grader)),
                cell("correlation of errors at two positions"),
                cell(estimates.get("error_phi", **key)),
                cell(None),
                cell(None),
            ),
        ]
    return (
        Table(
            title="Errors within a response",
            columns=(
                Column(title="judge", kind=Kind.NAME),
                Column(title="quantity"),
                Column(title="observed", kind=Kind.COEFFICIENT),
                Column(
                    title="independent, overall rates",
                    kind=Kind.COEFFICIENT,
                    help="every verdict errs on its own, at the overall rates; gold as it is",
                ),
                Column(
                    title="independent, each line’s rates",
                    kind=Kind.COEFFICIENT,
                    help="every verdict errs on its own, at its line’s rates; gold as it is",
                ),
            ),
            rows=tuple(rows),
            note=_note(scene),
        ),
        Paragraph(
            text=(
                "An observed variance above the independent one means errors that fall together in "
                "some responses. Such errors merge with the spread of the responses and can lift "
                "KR-20, which is no merit of the judge.",
            ),
            tone=Tone.NOTE,
        ),
    )


def _note(scene: Scene) -> Text:
    said: Text = (
        "On the responses that both scored in full, with gold’s verdicts held fixed. KR-20 under "
        f"independent errors is over {counted(DRAWS)} draws.",
    )
    flips = _flips(scene)
    by_moments = []
    for grader in scene.panel if flips else ():
        scored = _scored(scene, grader)
        if scored.n * scored.gold.shape[1] * DRAWS > flips:
            by_moments.append(grader)
    if by_moments or not flips:
        said = (
            *said,
            *say(
                " There are too many verdicts to draw one by one: the sums that KR-20 is made of are "
                "drawn from the normal distribution with their exact means and variances.",
            ),
        )
    return said


FAMILY = Family(
    name="error_structure",
    statistics=(S_VARIANCE, S_INDEPENDENT, S_MEAN, S_SD, S_SHARE, S_PHI),
    parts=parts,
    section=SECTION,
    order=24,
    kinds=KINDS,
    blocks=blocks,
)
