"""How much to grade: the precision to expect, and the numbers needed for a stated one.

Everything rests on guesses: stated ones, or those of a pilot file. What has a formula is computed by
it; the power of the collapse rule is simulated with voirdire's own test. Each answer says which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from voirdire import intervals
from voirdire.document import (
    Block,
    Column,
    Document,
    Figure,
    Heading,
    Input,
    Kind,
    Paragraph,
    Table,
    Tone,
    cell,
)
from voirdire.errors import UsageError
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Key, Undefined
from voirdire.inference import Settings, estimates
from voirdire.labels import Labels
from voirdire.scene import Scene
from voirdire.simulate.coverage import side_by_side
from voirdire.stats import collapse, gate
from voirdire.stats import element_error as errors
from voirdire.stats.base import Part, Statistic
from voirdire.tally import Tally, of_rows, summed
from voirdire.wording import Name, Text, counted, number, percent, plural, points, say

Array = np.ndarray[Any, Any]

__all__ = [
    "FORMULA",
    "SIMULATION",
    "Guesses",
    "Needed",
    "Pilot",
    "Share",
    "allocation",
    "clusters_for_share",
    "collapse_power",
    "document",
    "expected_half_width",
    "phrasing_factors",
    "phrasings_for_factor",
    "responses_for_collapse",
    "smallest_difference",
    "smallest_ratio",
    "vote_flip_rate",
    "votes_for_flips",
]

FORMULA, SIMULATION = "formula", "simulation"
MOST_CLUSTERS = 100_000
MOST_PHRASINGS = 200
MOST_VOTES = 99
FACTOR = 3.0  # of the phrasing component, where none is stated
KEEPS = 0.7  # how often a simulated grader repeats the truth
RUNS = 400  # panels in one simulated power
_STEPS = 14  # of a simulated search
_LABELS = 6_000_000  # labels that are simulated for one power at most
BASE = 20  # labels that the rule needs of the other
ALPHA = 0.05  # level of the collapse rule's test


# --- shares: false accepts, gate accuracy, rates ------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share as it is guessed, or as a pilot has it.

    ``value`` in 0–1; ``per_cluster`` the trials in a cluster; ``correlation`` their intraclass
    correlation. ``trials`` and ``clusters`` are those of the pilot (0: stated).
    """

    name: str
    value: float
    per_cluster: float = 1.0
    correlation: float = 0.0
    trials: float = 0.0
    clusters: int = 0
    grader: str = ""
    class_: str = ""
    cut: str = ""

    @property
    def design_effect(self) -> float:
        """How many times its variance is that of as many independent trials (Kish 1965, p. 162)."""
        return 1 + max(self.per_cluster - 1, 0) * self.correlation


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """A number that is needed. ``reached`` is what it gives; where ``met`` is false, the best there is."""

    number: int
    reached: float
    met: bool
    how: str


def expected_half_width(share: Share, clusters: int, level: float = 0.95) -> float:
    """Half the width of the interval to expect from so many clusters, in 0–1.

    The beta interval of Korn and Graubard (1998) at the guessed value, with the variance
    ``p(1 − p) · design effect / trials`` and t on clusters − 1; for clusters of one trial it is
    Clopper and Pearson's. nan below 3 clusters, where no interval is given.
    """
    if clusters < 3:
        return math.nan
    trials = clusters * share.per_cluster
    p = share.value
    if share.per_cluster <= 1 or share.design_effect <= 1:
        low, high = intervals.clopper_pearson(p * trials, trials, level)
    else:
        variance = p * (1 - p) * share.design_effect / trials
        low, high = intervals.korn_graubard(p, trials, variance, clusters, clusters - 1, level)
    return (high - low) / 2


def _fewest(holds: Callable[[int], bool], least: int, most: int) -> int | None:
    """The smallest whole number from ``least`` on that holds, if larger ones then hold too."""
    if holds(least):
        return least
    low, high = least, least
    while high < most:
        low, high = high, min(2 * high, most)
        if holds(high):
            break
    else:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def clusters_for_share(
    share: Share, within: float, *, level: float = 0.95, most: int = MOST_CLUSTERS
) -> Needed:
    """The clusters with which the share is expected to be known within ± ``within``.

    Where ``most`` clusters do not do, they are what is returned, with the half width that they give.
    Raises :class:`UsageError` for guesses that are no shares.
    """
    _check_share(share.value, share.name)
    if not 0 < within < 1:
        raise UsageError(f"A half width of {within} is not between 0 and 1.")
    most = max(most, 3)
    found = _fewest(lambda n: expected_half_width(share, n, level) <= within, 3, most)
    clusters = most if found is None else found
    return Needed(
        number=clusters,
        reached=expected_half_width(share, clusters, level),
        met=found is not None,
        how=FORMULA,
    )


def _check_share(value: float, name: str) -> None:
    if not 0 <= value <= 1:
        raise UsageError(f"{name}: {value} is not a share from 0 to 1.")


# --- phrasings ----------------------------------------------------------------------------------


def phrasing_factors(phrasings: int, level: float = 0.95) -> tuple[float, float]:
    """By which factors the interval of the phrasing component reaches below and above the estimate.

    (R − 1) mean square / σ² is χ² on R − 1 degrees of freedom, so the ends are (R − 1)/χ² (Searle,
    Casella and McCulloch 1992, Variance Components, p. 66); exact for normal effects where the
    residual's part in the mean square is small (many responses). nan for one phrasing.

    >>> [round(f, 3) for f in phrasing_factors(3)]
    [0.271, 39.498]
    """
    from scipy.special import chdtri

    if phrasings < 2:
        return math.nan, math.nan
    df, tail = phrasings - 1, (1 - level) / 2
    return df / float(chdtri(df, tail)), df / float(chdtri(df, 1 - tail))


def phrasings_for_factor(
    factor: float, *, level: float = 0.95, most: int = MOST_PHRASINGS
) -> Needed:
    """The phrasings with which the upper end of the component is at most ``factor`` times the estimate."""
    if not factor > 1:
        raise UsageError(f"A factor of {factor} is not above 1.")
    found = _fewest(lambda r: phrasing_factors(r, level)[1] <= factor, 2, max(most, 2))
    r = max(most, 2) if found is None else found
    return Needed(
        number=r, reached=phrasing_factors(r, level)[1], met=found is not None, how=FORMULA
    )


# --- votes --------------------------------------------------------------------------------------


def vote_flip_rate(votes: int, rate: float, disagreement: float) -> float:
    """How often the majority of so many votes (odd) differs from that of as many more, in 0–1.

    Responses have chances of a yes that are beta with mean ``rate``, so spread that two votes on a
    response differ with probability ``disagreement``. Exact, by Gauss–Jacobi quadrature of
    E[2 q (1 − q)], q the binomial chance of a majority. Raises :class:`UsageError` where no beta has
    these (disagreement not between 0 and 2·rate·(1 − rate)).
    """
    from scipy.special import bdtrc, roots_jacobi

    apart = 2 * rate * (1 - rate)
    if not 0 < rate < 1 or not 0 <= disagreement <= apart + 1e-12:
        raise UsageError(
            f"Two votes cannot differ on {percent(disagreement)} of the responses where {percent(rate)} "
            f"of the votes are yes: at most on {percent(apart)}."
        )
    if votes < 1 or votes % 2 == 0:
        raise UsageError(f"{plural(votes, 'vote')}: an odd number is needed for a majority.")
    if disagreement == 0:
        return 0.0
    correlation = 1 - disagreement / apart
    if correlation < 1e-9:
        chances, weights = np.array([rate]), np.array([1.0])
    else:
        size = (1 - correlation) / correlation
        nodes, weights = roots_jacobi(200, (1 - rate) * size - 1, rate * size - 1)
        chances, weights = (1 + nodes) / 2, weights / weights.sum()
    majority = bdtrc(votes // 2, votes, chances)
    return float((2 * majority * (1 - majority) * weights).sum())


def votes_for_flips(
    rate: float, disagreement: float, flips: float, *, most: int = MOST_VOTES
) -> Needed:
    """The odd number of votes whose majority flips on at most a share ``flips`` of the responses."""
    most = most if most % 2 else most - 1
    votes, reached = 1, vote_flip_rate(1, rate, disagreement)
    while reached > flips and votes < most:
        votes += 2
        reached = vote_flip_rate(votes, rate, disagreement)
    return Needed(number=votes, reached=reached, met=reached <= flips, how=FORMULA)


# --- the collapse of a class --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapse:
    """A collapse that is to be seen: a grader keeps each label of a class with probability ``ratio``.

    ``share`` is how often graders give the class where they do not collapse; ``graders`` counts the
    collapsed one; with ``gold`` it is compared with the truth and else with the others.
    """

    ratio: float
    share: float
    graders: int = 4
    gold: bool = False
    classes: int = 2
    per_cluster: float = 1.0
    correlation: float = 0.2
    below: float = 1 / 3
    base: int = BASE

    def check(self) -> None:
        """Raise :class:`UsageError` for what cannot be simulated."""
        _check_share(self.share, "The share of the class")
        if not 0 <= self.ratio < 1:
            raise UsageError(
                f"A collapse to {self.ratio} of the labels is none: give 0 to below 1."
            )
        if not self.gold and self.graders < 3:
            raise UsageError(
                "Without gold a collapse is found beside two others: plan with at least 3 graders, or "
                "with gold."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """How often a collapse is found from the counts, and certain by the test, in ``runs`` panels."""

    found: float
    certain: float
    runs: int


def collapse_power(
    of: Collapse, clusters: int, *, runs: int = RUNS, seed: int = 0, level: float = ALPHA
) -> Power:
    """The power of the collapse rule with so many clusters, simulated with the rule's own counts and test.

    Every grader repeats the truth with probability 0.7 and else draws at its own chance in the cluster;
    both chances are beta with ``correlation`` within a cluster. *Certain* holds the smallest p
    against level / (graders × classes), Holm's first step, which is what decides where one collapses.
    Deterministic in ``seed``.
    """
    of.check()
    generator = np.random.default_rng([seed, clusters])
    size = max(1, round(of.per_cluster))
    step = max(1, _LABELS // (20 * clusters * size * of.graders))
    found = certain = 0
    for first in range(0, runs, step):
        many = min(step, runs - first)
        own, others = _panels(of, generator, many, clusters, size)
        below = own.sum(1)[:, None] < of.below * others.sum(1)
        based = others.sum(1) >= of.base
        enough = 1 if of.gold else 2
        passes = (below & based).sum(1) >= enough
        found += int(passes.sum())
        p = _collapse_p(own, others, size, of.below)
        if of.gold:
            decides = p[:, 0]
        else:
            # Both of two others: (m − 1) × the second-smallest p.
            p = np.sort(np.where(np.isnan(p), 1.0, p), axis=1)
            decides = np.minimum(1.0, (of.graders - 2) * p[:, 1])
        tests = of.graders * of.classes
        certain += int((passes & (decides <= level / tests)).sum())
    return Power(found=found / runs, certain=certain / runs, runs=runs)


def _panels(
    of: Collapse, generator: np.random.Generator, runs: int, clusters: int, size: int
) -> tuple[Array, Array]:
    """Labels of the class in each cluster: own ``(runs, clusters)``, others ``(runs, clusters, m)``."""

    def chances() -> Array:
        if of.correlation <= 0 or of.share in (0, 1):
            return np.full((runs, clusters), of.share)
        many = (1 - of.correlation) / of.correlation
        return np.asarray(generator.beta(of.share * many, (1 - of.share) * many, (runs, clusters)))

    truth = generator.random((runs, clusters, size)) < chances()[..., None]

    def graded() -> Array:
        repeats = generator.random(truth.shape) < KEEPS
        draws = generator.random(truth.shape) < chances()[..., None]
        return np.where(repeats, truth, draws)

    own = graded() & (generator.random(truth.shape) < of.ratio)
    others = [truth] if of.gold else [graded() for _ in range(of.graders - 1)]
    return own.sum(2), np.stack([o.sum(2) for o in others], axis=2)


def _collapse_p(own: Array, others: Array, size: int, below: float) -> Array:
    """The rule's one-sided p for every run and other, ``(runs, m)``, made by the engine."""
    runs, clusters, m = others.shape
    both = np.empty((clusters, runs, m, 2, 2), dtype=np.int64)
    both[..., 0, 0] = own.T[..., None]
    both[..., 1, 0] = others.transpose(1, 0, 2)
    both[..., 1] = size - both[..., 0]
    tally = of_rows(both.reshape(clusters, runs * m, 2, 2))
    part = Part(
        tally=tally,
        asks=(
            (side_by_side(collapse.STATISTIC), tuple(Key(line=str(i)) for i in range(runs * m))),
        ),
        given={"below": below},
    )
    made = estimates([part], Settings(), with_intervals=False)
    return np.array([math.nan if e.p is None else e.p for e in made]).reshape(runs, m)


def responses_for_collapse(
    of: Collapse,
    power: float,
    *,
    certain: bool = False,
    runs: int = RUNS,
    seed: int = 0,
    most: int = MOST_CLUSTERS,
) -> Needed:
    """The clusters with which such a collapse is found (or certain) with this power, by simulation.

    ``reached`` is the power that the clusters give. The search ends where a power of ``runs`` panels
    can no longer tell. A ratio at or above the threshold is not met by any number: its power
    stays at a half or falls.
    """
    of.check()
    size = max(1, round(of.per_cluster))
    held: dict[int, float] = {}

    def reached(clusters: int) -> float:
        if clusters not in held:
            made = collapse_power(of, clusters, runs=runs, seed=seed)
            held[clusters] = made.certain if certain else made.found
        return held[clusters]

    # Simulated panels have at most so many labels that a power takes about a second.
    most = min(most, max(10, _LABELS * 10 // (runs * size * of.graders)))
    least = min(most, max(3, math.ceil(of.base / max(size * of.share, 1e-9) / 4)))
    found = _by_steps(lambda n: reached(n) >= power, least, most)
    clusters = most if found is None else found
    best = max(held, key=lambda n: (held[n], -n)) if found is None else clusters
    return Needed(number=best, reached=held[best], met=found is not None, how=SIMULATION)


def _by_steps(holds: Callable[[int], bool], least: int, most: int) -> int | None:
    """As :func:`_fewest`, to within 5 %: closer a simulated power cannot tell."""
    low, high = least, least
    if holds(least):
        return least
    for _ in range(_STEPS):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
        if holds(high):
            break
    else:
        return None
    while high - low > max(1, 0.05 * high):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def smallest_ratio(
    other: float,
    power: float,
    *,
    below: float = 1 / 3,
    base: int = BASE,
    design_effect: float = 1.0,
) -> float:
    """The largest ratio (the smallest collapse) that the counts show with this power; nan below the base.

    By the normal approximation for a count: r·B + z·√(r·B·design effect) = below·B for B labels of
    the other, which are held as they are.
    """
    if other < base:
        return math.nan
    z = intervals.normal_quantile(power)
    # A quadratic in √(r · B).
    root = (
        -z * math.sqrt(design_effect) + math.sqrt(z * z * design_effect + 4 * below * other)
    ) / 2
    return max(root, 0.0) ** 2 / other


def smallest_difference(se: float, df: float, power: float, level: float = 0.95) -> float:
    """The smallest distance from a fixed value that a test at 1 − ``level`` sees with this power.

    (t of 1 − α/2 + t of the power) · SE on ``df`` degrees of freedom; in the unit of ``se``.
    """
    return (intervals.t_quantile(0.5 + level / 2, df) + intervals.t_quantile(power, df)) * se


# --- human labels by stratum --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """A stratum to label by hand: how many responses it holds, and the guessed rate there."""

    name: str
    size: int
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Labels for each stratum, and the half width to expect of the stratified rate."""

    rule: str
    labels: tuple[int, ...]
    half_width: float
    met: bool
    how: str = FORMULA

    @property
    def total(self) -> int:
        return sum(self.labels)


def _stratified_half_width(strata: Sequence[Stratum], labels: Sequence[int], level: float) -> float:
    whole = sum(s.size for s in strata)
    variance = sum(
        (s.size / whole) ** 2 * s.rate * (1 - s.rate) / n * (1 - n / s.size)
        for s, n in zip(strata, labels, strict=True)
        if n
    )
    return intervals.normal_quantile(0.5 + level / 2) * math.sqrt(variance)


def _allocated(strata: Sequence[Stratum], total: int, rule: str) -> tuple[int, ...]:
    """``total`` labels (or a few more) by stratum: at least 2 in each, never more than it holds.

    What a full stratum cannot take goes to the others by the same rule (Cochran 1977, section 5.8).
    """
    least = [min(2, s.size) for s in strata]
    weight = [1.0 if rule == "equal" else s.size * math.sqrt(s.rate * (1 - s.rate)) for s in strata]
    if not sum(weight):
        weight = [float(s.size) for s in strata]
    given = list(least)
    open_ = set(range(len(strata)))
    while open_:
        rest = total - sum(given[i] for i in range(len(strata)) if i not in open_)
        sum_ = sum(weight[i] for i in open_)
        share = {i: rest * weight[i] / sum_ if sum_ else 0.0 for i in open_}
        full = {i for i in open_ if share[i] >= strata[i].size}
        few = {i for i in open_ if share[i] <= least[i]}
        for i in full or few:
            given[i] = strata[i].size if i in full else least[i]
        if not (full or few):
            for i in open_:
                given[i] = math.ceil(share[i] - 1e-9)
            break
        open_ -= full or few
    return tuple(given)


def allocation(
    strata: Sequence[Stratum], within: float, rule: str, *, level: float = 0.95, most: int = 0
) -> Allocation:
    """The fewest human labels, by stratum, for a stratified rate within ± ``within``.

    ``rule`` is ``"neyman"`` (in proportion to size × √(p(1 − p)); Neyman 1934, JRSS 97, p. 580) or
    ``"equal"``. With the finite population correction (Cochran 1977, Sampling Techniques, section
    5.3). ``most`` labels in all (0: all there are); where they do not do, they are what is returned.
    """
    if not strata:
        raise UsageError("There is no stratum to allocate labels to.")
    if rule not in ("neyman", "equal"):
        raise UsageError(f"{rule!r} is not one of neyman, equal.")
    for s in strata:
        _check_share(s.rate, s.name)
        if s.size < 1:
            raise UsageError(f"{s.name}: a stratum of {s.size} responses has nothing to label.")
    whole = sum(s.size for s in strata)
    limit = min(most or whole, whole)

    def reached(total: int) -> float:
        return _stratified_half_width(strata, _allocated(strata, total, rule), level)

    least = min(limit, 2 * len(strata))
    found = _fewest(lambda n: reached(n) <= within, least, limit)
    labels = _allocated(strata, limit if found is None else found, rule)
    return Allocation(
        rule=rule,
        labels=labels,
        half_width=_stratified_half_width(strata, labels, level),
        met=found is not None,
    )


# --- a pilot ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """What a file says about the guesses: its shares with their design effects, classes, votes, strata."""

    shares: tuple[Share, ...]
    rates: tuple[Share, ...]
    classes: tuple[Share, ...]
    graders: int
    gold: bool
    votes: tuple[tuple[str, float, float, int], ...] = ()  # grader, rate, disagreement, votes
    phrasings: int = 0
    strata: tuple[Stratum, ...] = ()
    inputs: tuple[Input, ...] = ()
    options: Mapping[str, Any] | None = None


def _guess(name: str, tally: Tally, events: Array, trials: Array, **key: str) -> Share | None:
    """The share of a pilot with its intraclass correlation, from cells by distinct row ``(rows,)``.

    The design effect is the linearised cluster variance over the binomial one; where it cannot be
    seen (no event, or none without) the correlation is the 0.1 that edge intervals assume.
    """
    clusters = tally.clusters.astype(np.float64)
    x, n = float(summed(clusters, events)), float(summed(clusters, trials))
    there = float(summed(clusters, trials > 0))
    if not n > 0:
        return None
    p = x / n
    # Clusters differ in size: the size that the variance of a mean feels is Σ m² / Σ m.
    felt = float(summed(clusters, trials**2)) / n
    correlation = intervals.ASSUMED_CORRELATION if felt > 1 else 0.0
    if 0 < p < 1 and there > 1 and felt > 1:
        residual = (events - trials * p) / n
        variance = there / (there - 1) * float(summed(clusters, residual**2))
        correlation = (variance * n / (p * (1 - p)) - 1) / (felt - 1)
    return Share(
        name=name,
        value=p,
        per_cluster=max(n / there, 1.0),
        correlation=min(max(correlation, 0.0), 1.0),
        trials=n,
        clusters=int(there),
        **key,
    )


def _guesses_of(part: Part, statistic: Statistic, keys: Sequence[Key], name: str) -> list[Share]:
    tally = part.tally
    if tally is None or part.undefined or statistic.share is None or not tally.count:
        return []
    events, trials = statistic.share(tally.rows.astype(np.float64), part.given)
    shape = (len(tally.rows), len(keys))
    events = np.broadcast_to(events.reshape(len(tally.rows), -1), shape)
    trials = np.broadcast_to(trials.reshape(len(tally.rows), -1), shape)
    made = [
        _guess(name, tally, events[:, i], trials[:, i], grader=key.grader, cut=key.cut)
        for i, key in enumerate(keys)
        if not key.line
    ]
    return [m for m in made if m is not None]


def pilot(labels: Labels) -> Pilot:
    """What a file of labels says about the guesses. Counts alone say nothing of clusters."""
    from voirdire import auditing

    if labels.kind == "counts":
        raise UsageError(
            "A count table does not say how labels fall into responses and clusters. Plan from a file "
            "of labels, or state the guesses: voirdire plan --false-accept 0.1."
        )
    labels = replace(labels, options=replace(labels.options, by=()))
    scene, _ = auditing.scenes(labels)
    shares: list[Share] = []
    rates: list[Share] = []
    classes: list[Share] = []
    if scene.bank is not None:
        for family, statistic, name in (
            (errors.FAMILY, errors.S_ACCEPT, "false accepts"),
            (gate.FAMILY, gate.S_ACCURACY, "gate accuracy"),
        ):
            for part in family.parts(scene):
                for asked, keys in part.asks:
                    if asked is statistic:
                        shares += _guesses_of(part, statistic, keys, name)
    else:
        shares, rates, classes = _of_labels(scene)
    return Pilot(
        shares=tuple(shares),
        rates=tuple(rates),
        classes=tuple(classes),
        graders=len(scene.panel),
        gold=bool(scene.gold),
        votes=_votes(labels, scene),
        phrasings=_distinct(labels, "phrasing"),
        strata=_strata(labels, scene),
        inputs=labels.inputs,
        options=labels.options.changed(),
    )


def _of_labels(scene: Scene) -> tuple[list[Share], list[Share], list[Share]]:
    """False accepts beside gold, rates, and how often graders give each class."""
    shares: list[Share] = []
    rates: list[Share] = []
    classes: list[Share] = []
    for grader in scene.panel:
        own = scene.labels_tally(grader)
        if not own.count:
            continue
        rows = own.rows.astype(np.float64)
        for i, class_ in enumerate(scene.classes):
            made = _guess("class", own, rows[:, i], rows.sum(1), grader=grader, class_=class_)
            classes += [made] if made is not None else []
        for rate in scene.rates:
            inside = rows[:, rate.members].sum(1)
            made = _guess("rate", own, inside, rows.sum(1), grader=grader, class_=rate.name)
            rates += [made] if made is not None else []
            if not scene.gold:
                continue
            pairs = scene.pair_tally(grader, scene.gold)
            if not pairs.count:
                continue
            absent = pairs.rows.astype(np.float64)[..., ~rate.members]
            accepted = absent[:, rate.members].sum((1, 2))
            made = _guess(
                "false accepts",
                pairs,
                accepted,
                absent.sum((1, 2)),
                grader=grader,
                class_=rate.name,
            )
            shares += [made] if made is not None else []
    if scene.gold:
        own = scene.labels_tally(scene.gold)
        if own.count:
            rows = own.rows.astype(np.float64)
            for i, class_ in enumerate(scene.classes):
                made = _guess(
                    "class", own, rows[:, i], rows.sum(1), grader=scene.gold, class_=class_
                )
                classes += [made] if made is not None else []
    return shares, rates, classes


def _distinct(labels: Labels, column: str) -> int:
    if column not in labels.frame.columns:
        return 0
    return int(labels.frame[column].drop_nulls().n_unique())


def _votes(labels: Labels, scene: Scene) -> tuple[tuple[str, float, float, int], ...]:
    """For each grader with votes: its first rate, how often two votes differ, and the most votes."""
    if scene.grid is None or not scene.rates or _distinct(labels, "vote") < 2:
        return ()
    import polars as pl

    members = [c for c, m in zip(scene.classes, scene.rates[0].members, strict=True) if m]
    by_response = (
        labels.frame.filter(pl.col("label").is_not_null())
        .group_by("grader", "response")
        .agg(pl.len().alias("n"), pl.col("label").is_in(members).sum().alias("yes"))
        .filter(pl.col("n") > 1)
        .with_columns(
            apart=2
            * pl.col("yes")
            * (pl.col("n") - pl.col("yes"))
            / (pl.col("n") * (pl.col("n") - 1)),
            share=pl.col("yes") / pl.col("n"),
        )
        .group_by("grader")
        .agg(pl.col("share").mean(), pl.col("apart").mean(), pl.col("n").max())
        .sort("grader")
    )
    return tuple(
        (str(g), float(rate), min(float(apart), 2 * rate * (1 - rate)), int(n))
        for g, rate, apart, n in by_response.iter_rows()
        if 0 < rate < 1
    )


def _strata(labels: Labels, scene: Scene) -> tuple[Stratum, ...]:
    """The strata of a file with their sizes, and gold's first rate there (else the first grader's).

    A rate is (events + 1) / (labels + 2), so that a stratum without an event still gets labels.
    """
    if scene.grid is None or not scene.rates or _distinct(labels, "stratum") < 2:
        return ()
    import polars as pl

    who = scene.gold or (scene.panel[0] if scene.panel else "")
    members = [c for c, m in zip(scene.classes, scene.rates[0].members, strict=True) if m]
    frame = labels.frame.with_columns(
        seen=pl.col("label").is_not_null() & (pl.col("grader") == who),
    ).with_columns(yes=pl.col("seen") & pl.col("label").is_in(members))
    population = labels.options.population
    size = (
        pl.col(population).drop_nulls().first().cast(pl.Float64, strict=False)
        if population
        else pl.col("response").n_unique().cast(pl.Float64)
    )
    found = (
        frame.group_by("stratum")
        .agg(size.alias("size"), pl.col("yes").sum(), pl.col("seen").sum())
        .drop_nulls()
        .sort("stratum")
    )
    return tuple(
        Stratum(name=str(name), size=int(size), rate=(yes + 1) / (seen + 2))
        for name, size, yes, seen in found.iter_rows()
    )


# --- the plan -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """Stated guesses (``None``: not stated, taken from the pilot if there is one) and what is wanted.

    ``within`` is a half width in 0–1, ``factor`` the upper end of the phrasing component over its
    estimate, ``flips`` how often a majority may flip. ``most`` clusters, ``most_labels`` human labels
    and ``most_phrasings`` are the most that there can be (0: as many as it takes).
    """

    false_accept: float | None = None
    gate_accuracy: float | None = None
    correlation: float | None = None
    cluster_size: float | None = None
    within: float = 0.05
    class_share: float | None = None
    ratio: float = 0.2
    graders: int | None = None
    with_gold: bool = False
    power: float = 0.8
    rate: float | None = None
    disagreement: float | None = None
    flips: float = 0.02
    factor: float | None = None
    strata: tuple[Stratum, ...] = ()
    most: int = 0
    most_labels: int = 0
    most_phrasings: int = 0
    level: float = 0.95
    seed: int = 0
    runs: int = RUNS

    def check(self) -> None:
        """Raise :class:`UsageError` for what is no guess."""
        for name in ("false_accept", "gate_accuracy", "correlation", "class_share", "rate"):
            value = getattr(self, name)
            if value is not None:
                _check_share(value, "--" + name.replace("_", "-"))
        if not 0 < self.within < 0.5:
            raise UsageError(f"--within {self.within} is not a half width between 0 and 0.5.")
        if not 0 < self.power < 1:
            raise UsageError(f"--power {self.power} is not between 0 and 1.")
        if not 0 <= self.ratio < 1:
            raise UsageError(f"--ratio {self.ratio} is not from 0 to below 1.")
        if not 0 < self.flips < 0.5:
            raise UsageError(f"--flips {self.flips} is not a share between 0 and 0.5.")
        if self.factor is not None and not self.factor > 1:
            raise UsageError(f"--factor {self.factor} is not above 1.")
        if self.cluster_size is not None and self.cluster_size < 1:
            raise UsageError(f"--cluster-size {self.cluster_size} is below 1.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of a plan: what is asked, on which guess, and the number needed."""

    statistic: str
    question: str
    guess: Text
    needed: Needed
    unit: str
    labels: float | None  # responses (or verdicts) that this is; ``None`` where it does not apply
    gives: str  # what is reached, in words
    key: Key = field(default_factory=Key)
    curve: Share | None = None
    whose: Text = ()


def answers(guesses: Guesses, of: Pilot | None = None) -> list[Answer]:
    """Every question that the guesses and the pilot allow, answered."""
    guesses.check()
    made: list[Answer] = []
    for share in _shares(guesses, of):
        made.append(_share_answer(share, guesses))
    made += _phrasing_answer(guesses, of)
    made += _vote_answers(guesses, of)
    made += _collapse_answer(guesses, of)
    return made


def _shares(guesses: Guesses, of: Pilot | None) -> list[Share]:
    found = list(of.shares) if of is not None else []
    stated = (("false accepts", guesses.false_accept), ("gate accuracy", guesses.gate_accuracy))
    for name, value in stated:
        if value is None:
            continue
        like = next((s for s in found if s.name == name), None)
        found = [s for s in found if s.name != name]
        found.append(
            Share(name=name, value=value)
            if like is None
            else replace(like, value=value, trials=0.0, clusters=0, grader="", class_="", cut="")
        )
    return [
        replace(
            s,
            per_cluster=s.per_cluster if guesses.cluster_size is None else guesses.cluster_size,
            correlation=s.correlation if guesses.correlation is None else guesses.correlation,
        )
        for s in found
    ]


def _share_answer(share: Share, guesses: Guesses) -> Answer:
    most = guesses.most or MOST_CLUSTERS
    needed = clusters_for_share(share, guesses.within, level=guesses.level, most=most)
    what = "absent elements" if share.name == "false accepts" else "responses"
    return Answer(
        statistic=f"clusters_for_{share.name.replace(' ', '_')}",
        question=f"{share.name.capitalize()} within ± {points(guesses.within)}",
        guess=say(
            "{value}; {size} {what} in a cluster, correlation {rho}",
            value=percent(share.value),
            what=what,
            size=f"{share.per_cluster:.3g}",
            rho=number(share.correlation, 2),
        ),
        needed=needed,
        unit="clusters",
        labels=math.ceil(needed.number * share.per_cluster),
        gives=f"± {points(needed.reached)}",
        whose=_whose(share),
        key=Key(grader=share.grader, class_=share.class_, cut=share.cut),
        curve=share,
    )


def _whose(share: Share) -> Text:
    said: list[Any] = []
    if share.grader:
        said += [" of ", Name(share.grader)]
    if share.class_:
        said += [", ", Name(share.class_)]
    if share.cut:
        said += [" at cut ", share.cut]
    return tuple(said)


def _phrasing_answer(guesses: Guesses, of: Pilot | None) -> list[Answer]:
    if guesses.factor is None and (of is None or of.phrasings < 2):
        return []
    factor = FACTOR if guesses.factor is None else guesses.factor
    needed = phrasings_for_factor(
        factor, level=guesses.level, most=guesses.most_phrasings or MOST_PHRASINGS
    )
    low, high = phrasing_factors(needed.number, guesses.level)
    return [
        Answer(
            statistic="phrasings_for_component",
            question=f"Phrasing component, upper end at most {factor:g} times the estimate",
            guess=("normal effects of phrasings, many responses",),
            needed=needed,
            unit="phrasings",
            labels=None,
            gives=f"{low:.2g} to {high:.3g} times the estimate",
        )
    ]


def _vote_answers(guesses: Guesses, of: Pilot | None) -> list[Answer]:
    held = list(of.votes) if of is not None else []
    if guesses.disagreement is not None:
        held = [("", 0.5 if guesses.rate is None else guesses.rate, guesses.disagreement, 1)]
    made = []
    for grader, rate, apart, _ in held:
        needed = votes_for_flips(rate, apart, guesses.flips)
        made.append(
            Answer(
                statistic="votes_for_flips",
                question=f"A majority that flips on at most {percent(guesses.flips)} of the responses",
                guess=say(
                    "{rate} of votes say yes, two votes differ on {apart}",
                    rate=percent(rate),
                    apart=percent(apart),
                ),
                needed=needed,
                unit="votes",
                labels=None,
                gives=f"flips on {percent(needed.reached, 2)}",
                key=Key(grader=grader),
                whose=(" of ", Name(grader)) if grader else (),
            )
        )
    return made


def _collapse_answer(guesses: Guesses, of: Pilot | None) -> list[Answer]:
    planned = _planned_collapse(guesses, of)
    if planned is None:
        return []
    class_, asked = planned
    most = guesses.most or MOST_CLUSTERS
    size = max(1, round(asked.per_cluster))
    made = []
    for certain in (False, True):
        needed = responses_for_collapse(
            asked, guesses.power, certain=certain, runs=guesses.runs, seed=guesses.seed, most=most
        )
        made.append(
            Answer(
                statistic="clusters_for_collapse_certain" if certain else "clusters_for_collapse",
                question=(
                    f"A class collapse to {asked.ratio:g} "
                    + ("called certain" if certain else "found")
                    + f" with power {percent(guesses.power, 0)}"
                ),
                guess=say(
                    "{class_}{share} of the labels; {who}; {size} in a cluster, correlation {rho}",
                    class_=(Name(class_), " is ") if class_ else ("the class is ",),
                    share=percent(asked.share),
                    who="beside gold" if asked.gold else plural(asked.graders, "grader"),
                    size=f"{size}",
                    rho=number(asked.correlation, 2),
                ),
                needed=needed,
                unit="clusters",
                labels=needed.number * size,
                gives=f"power {percent(needed.reached, 0)} ± {points(_error(needed, guesses.runs))}",
                key=Key(class_=class_),
            )
        )
    return made


def _error(needed: Needed, runs: int) -> float:
    return math.sqrt(needed.reached * (1 - needed.reached) / runs)


def _planned_collapse(guesses: Guesses, of: Pilot | None) -> tuple[str, Collapse] | None:
    """The class to plan for: the stated one, else the rarest of the pilot (by its median share)."""
    if guesses.class_share is None and (of is None or not of.classes):
        return None
    gold = guesses.with_gold or (of is not None and of.gold)
    graders = guesses.graders or (of.graders if of is not None else 4)
    if not gold and graders < 3:
        return None
    like = Share(name="class", value=0.0, per_cluster=1.0, correlation=0.2)
    class_, count = "", 2
    if of is not None and of.classes:
        names = list(dict.fromkeys(s.class_ for s in of.classes))
        middle = {
            c: float(np.median([s.value for s in of.classes if s.class_ == c])) for c in names
        }
        count = len(names)
        there = [c for c in names if middle[c] > 0]
        if there and guesses.class_share is None:
            class_ = min(there, key=lambda c: middle[c])
            own = [s for s in of.classes if s.class_ == class_]
            like = replace(
                own[0],
                value=middle[class_],
                correlation=float(np.median([s.correlation for s in own])),
            )
        elif guesses.class_share is None:
            return None
        else:
            like = replace(of.classes[0], value=guesses.class_share)
    if guesses.class_share is not None:
        like = replace(like, value=guesses.class_share)
    return class_, Collapse(
        ratio=guesses.ratio,
        share=like.value,
        graders=max(graders, 2),
        gold=gold,
        classes=count,
        per_cluster=like.per_cluster if guesses.cluster_size is None else guesses.cluster_size,
        correlation=like.correlation if guesses.correlation is None else guesses.correlation,
    )


# --- the document -------------------------------------------------------------------------------

MOST_CURVES = 6
UNASKED = (
    "There is no gold here and no panel of three, so nothing else can be planned from this file. State a "
    "guess, such as --false-accept 0.1, or name gold with --gold."
)
NOTHING = (
    "There is nothing to plan from. Name a pilot file (voirdire plan labels.csv), or state a guess: "
    "--false-accept 0.1, --gate-accuracy 0.9, --class-share 0.1, --disagreement 0.05 or --strata."
)


def document(guesses: Guesses, of: Pilot | None = None, *, version: str = "") -> Document:
    """The plan as a document: what the file could show, the numbers needed, labels by stratum."""
    guesses.check()
    stated = (
        guesses.false_accept,
        guesses.gate_accuracy,
        guesses.class_share,
        guesses.disagreement,
        guesses.factor,
    )
    if of is None and not guesses.strata and all(s is None for s in stated):
        raise UsageError(NOTHING)
    made = answers(guesses, of)
    strata = guesses.strata or (of.strata if of is not None else ())
    blocks: list[Block] = []
    rows: list[Estimate] = []
    if of is not None:
        blocks += _as_it_is(guesses, of, rows)
    if made:
        blocks.append(Heading(text="Numbers needed"))
        blocks += _needed_tables(made)
    blocks += [_not_met(a) for a in made if not a.needed.met]
    if not made and not strata:
        blocks.append(Paragraph(text=(UNASKED,), tone=Tone.NOTE))
    curves = [a for a in made if a.curve is not None][:MOST_CURVES]
    if curves:
        blocks.append(_figure(curves, guesses))
    if strata:
        blocks += _strata_blocks(strata, guesses, rows)
    blocks += _about(made, guesses)
    return Document(
        title="Plan" + (": " + ", ".join(i.name for i in of.inputs[:3]) if of is not None else ""),
        summary=_summary(made, bool(strata)),
        blocks=tuple(blocks),
        estimates=(*(_estimate(a) for a in made), *rows),
        findings=(),
        inputs=of.inputs if of is not None else (),
        options=(of.options or {}) if of is not None else {},
        version=version,
    )


def _summary(made: Sequence[Answer], strata: bool) -> Text:
    if not made:
        return ("Human labels by stratum." if strata else "What the file as it is could show.",)
    met = sum(a.needed.met for a in made)
    return say("{n}; {met} can be met as stated.", n=plural(len(made), "question"), met=met)


def _estimand(name: str, title: str, unit: Unit, how: str) -> Estimand:
    return Estimand(
        name=f"{name}_by_{how}",
        title=title,
        question="How much has to be graded?",
        describes=Describes.BOTH,
        keys=("grader", "class", "line", "cut"),
        unit=unit,
        scale=Scale.NONE,
        needs=(),
        low=0,
        undefined_when="no number of them does",
        source=Source(text="voirdire plan"),
    )


def _estimate(answer: Answer) -> Estimate:
    """An answer as a row of the results; empty with a reason where the plan cannot be met."""
    needed = answer.needed
    value: float | Undefined = float(needed.number)
    if not needed.met:
        value = Undefined(f"not met; at best, with {counted(needed.number)}: {answer.gives}")
    return Estimate(
        estimand=_estimand(answer.statistic, answer.question, Unit.COUNT, needed.how),
        key=answer.key,
        value=value,
        n=answer.labels,
        clusters=needed.number if answer.unit == "clusters" else None,
    )


def _needed_tables(made: Sequence[Answer]) -> list[Block]:
    return [
        Table(
            title="What is needed",
            columns=(
                Column(title="question"),
                Column(title="needed"),
                Column(title="responses", kind=Kind.COUNT),
                Column(title="gives"),
            ),
            rows=tuple(
                (
                    cell(say("{n} {what}{whose}", n=str(i), what=a.question, whose=a.whose)),
                    cell(
                        f"{counted(a.needed.number)} {a.unit}" if a.needed.met else "cannot be met"
                    ),
                    cell(a.labels if a.needed.met else None, Kind.COUNT),
                    cell(f"{a.gives if a.needed.met else 'see below'}, by {a.needed.how}"),
                )
                for i, a in enumerate(made, 1)
            ),
        ),
        Table(
            title="What the answers rest on",
            columns=(Column(title="question", kind=Kind.COUNT), Column(title="guess")),
            rows=tuple((cell(float(i), Kind.COUNT), cell(a.guess)) for i, a in enumerate(made, 1)),
        ),
    ]


def _not_met(answer: Answer) -> Paragraph:
    return Paragraph(
        text=say(
            "{what}{whose}: this cannot be met. The best that was tried, {n} {unit}, gives {gives}.",
            what=answer.question,
            whose=answer.whose,
            n=counted(answer.needed.number),
            unit=answer.unit,
            gives=answer.gives,
        ),
        tone=Tone.WARNING,
    )


def _as_it_is(guesses: Guesses, of: Pilot, rows: list[Estimate]) -> list[Block]:
    """The smallest effects that the file as it is could have shown."""
    t = "two-sided test at " + percent(1 - guesses.level, 0)
    shown = []
    for share in (*of.shares, *of.rates):
        if share.clusters < 3 or not 0 < share.value < 1:
            continue
        se = math.sqrt(share.value * (1 - share.value) * share.design_effect / share.trials)
        least = smallest_difference(se, share.clusters - 1, guesses.power, guesses.level)
        shown.append(
            (
                cell(say("{name}{whose}", name=share.name, whose=_whose(share))),
                cell(say("{n} in {c}", n=round(share.trials), c=plural(share.clusters, "cluster"))),
                cell(
                    say(
                        "could not have seen less than {least} from {value}",
                        least=points(least),
                        value=percent(share.value),
                    )
                ),
            )
        )
        rows.append(_least(share, "smallest_difference", least, Unit.POINTS))
    shown += _collapses(guesses, of, rows)
    if of.phrasings > 1:
        low, high = phrasing_factors(of.phrasings, guesses.level)
        shown.append(
            (
                cell("phrasing component"),
                cell(plural(of.phrasings, "phrasing")),
                cell(f"an interval from {low:.2g} to {high:.3g} times the estimate, at best"),
            )
        )
    if not shown:
        return []
    return [
        Heading(text="The file as it is"),
        Table(
            title="The smallest effect it could show",
            columns=(
                Column(title="of"),
                Column(title="rests on"),
                Column(title=f"with power {percent(guesses.power, 0)}"),
            ),
            rows=tuple(shown),
            note=(
                f"By formula. Differences: from a fixed value, {t}, t on clusters − 1. A true effect that is smaller "
                "was more likely missed than the power says; it is not shown to be absent.",
            ),
        ),
    ]


def _least(share: Share, name: str, value: float, unit: Unit) -> Estimate:
    estimand = _estimand(name, "Smallest effect that could be seen", unit, FORMULA)
    return Estimate(
        estimand=replace(estimand, undefined_when="the class is too rare for the rule"),
        key=Key(grader=share.grader, class_=share.class_, cut=share.cut, line=share.name),
        value=value if math.isfinite(value) else Undefined("the class is too rare for the rule"),
        n=share.trials,
        clusters=share.clusters,
    )


def _collapses(guesses: Guesses, of: Pilot, rows: list[Estimate]) -> list[Any]:
    """For each class the mildest collapse that the counts could show."""
    shown = []
    for class_ in dict.fromkeys(s.class_ for s in of.classes):
        own = sorted(
            (s for s in of.classes if s.class_ == class_), key=lambda s: -s.value * s.trials
        )
        # The weaker of two others decides; with gold gold alone (it stands last in the pilot).
        if of.gold:
            beside = next(s for s in reversed(of.classes) if s.class_ == class_)
        elif len(own) > 2:
            beside = own[1]
        else:
            continue
        count = beside.value * beside.trials
        ratio = smallest_ratio(count, guesses.power, design_effect=beside.design_effect)
        said = (
            say(
                "could not have seen a collapse to more than {ratio} of the other’s labels",
                ratio=number(ratio, 2),
            )
            if math.isfinite(ratio) and ratio >= 0.005
            else say("could not have seen any collapse: the rule needs {n} labels", n=BASE)
            if not math.isfinite(ratio)
            else say("could have seen only a class that is not given at all")
        )
        shown.append(
            (
                cell(say("class {name}", name=(Name(class_),))),
                cell(
                    say("{n} of {who}", n=plural(round(count), "label"), who=(Name(beside.grader),))
                ),
                cell(said),
            )
        )
        rows.append(_least(replace(beside, grader=""), "mildest_collapse", ratio, Unit.RATIO))
    return shown


def _strata_blocks(
    strata: Sequence[Stratum], guesses: Guesses, rows: list[Estimate]
) -> list[Block]:
    plans = [
        allocation(strata, guesses.within, rule, level=guesses.level, most=guesses.most_labels)
        for rule in ("neyman", "equal")
    ]
    for plan in plans:
        title = f"Human labels, {plan.rule} allocation"
        estimand = _estimand(f"labels_{plan.rule}", title, Unit.COUNT, plan.how)
        rows.append(
            Estimate(
                estimand=estimand,
                key=Key(),
                value=float(plan.total)
                if plan.met
                else Undefined(
                    f"not met; at best, with {counted(plan.total)}: ± {points(plan.half_width)}"
                ),
            )
        )
        rows += [
            Estimate(estimand=estimand, key=Key(line=s.name), value=float(n), n=float(s.size))
            for s, n in zip(strata, plan.labels, strict=True)
        ]
    lines = [
        (
            cell(Name(s.name)),
            cell(float(s.size), Kind.COUNT),
            cell(s.rate, Kind.SHARE),
            *(cell(float(plan.labels[i]), Kind.COUNT) for plan in plans),
        )
        for i, s in enumerate(strata)
    ]
    lines.append(
        (
            cell("all"),
            cell(float(sum(s.size for s in strata)), Kind.COUNT),
            cell(None, Kind.SHARE),
            *(cell(float(plan.total), Kind.COUNT) for plan in plans),
        )
    )
    blocks: list[Block] = [
        Heading(text="Human labels by stratum"),
        Table(
            title=f"Labels for a stratified rate within ± {points(guesses.within)}",
            columns=(
                Column(title="stratum", kind=Kind.NAME),
                Column(title="responses", kind=Kind.COUNT),
                Column(title="guessed rate", kind=Kind.SHARE),
                Column(title="Neyman", kind=Kind.COUNT),
                Column(title="equal", kind=Kind.COUNT),
            ),
            rows=tuple(lines),
            note=(
                "By formula, with the finite population correction; at least 2 in each stratum. "
                "Responses are drawn one by one.",
            ),
        ),
    ]
    for plan in plans:
        if not plan.met:
            words = f"{plan.rule.capitalize()} allocation"
            blocks.append(
                Paragraph(
                    text=(
                        f"{words}: this cannot be met. The best, {counted(plan.total)} labels, gives ± "
                        f"{points(plan.half_width)}.",
                    ),
                    tone=Tone.WARNING,
                )
            )
    return blocks


def _about(made: Sequence[Answer], guesses: Guesses) -> list[Block]:
    said = []
    if any(a.curve is not None for a in made):
        said.append(
            "Half widths are those of the beta interval at the guess, with the design effect 1 + (m − 1) · "
            "correlation for m in a cluster, and t on clusters − 1."
        )
    if any(a.needed.how == SIMULATION for a in made):
        said.append(
            f"Simulated: the collapse rule’s own counts and test on {guesses.runs:,} panels a step, seed "
            f"{guesses.seed}; every grader repeats the truth with probability {KEEPS:g}."
        )
    said.append("A number is as good as its guess: plan with a worse one too.")
    return [
        Heading(text="How it was made"),
        Paragraph(text=(" ".join(said),), tone=Tone.NOTE),
    ]


def _figure(curves: Sequence[Answer], guesses: Guesses) -> Figure:
    drawn: list[dict[str, Any]] = []
    top = max(a.needed.number for a in curves)
    for a in curves:
        assert a.curve is not None
        counts = _grid(top)
        widths = [expected_half_width(a.curve, n, guesses.level) for n in counts]
        drawn.append(
            {
                "name": a.curve.name,
                "grader": a.curve.grader,
                "class": a.curve.class_ or (f"cut {a.curve.cut}" if a.curve.cut else ""),
                "clusters": counts,
                "half_width": widths,
                "needed": a.needed.number if a.needed.met else None,
                "now": a.curve.clusters or None,
            }
        )
    said = "; ".join(
        f"{a.question}: {counted(a.needed.number)} clusters"
        if a.needed.met
        else f"{a.question}: not met"
        for a in curves
    )
    return Figure(
        name="planning_curves",
        title="Half width to expect, by clusters",
        data={"curves": drawn, "within": guesses.within},
        alt=(f"Half width of the interval to expect against the number of clusters. {said}.",),
        caption=("The wanted half width is the dashed line; a ring marks the number needed.",),
    )


def _grid(top: int) -> list[int]:
    """Numbers of clusters for a curve, evenly on a logarithmic axis from 3 to twice what is needed."""
    ends = (3.0, max(2.0 * top, 12.0))
    return sorted({round(n) for n in np.geomspace(*ends, 40)})
