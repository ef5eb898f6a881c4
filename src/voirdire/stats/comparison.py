"""An older and a newer grader on the same responses: what changed, with both in one tally.

The scene holds two graders beside gold: the one that is its reference is the older. Whatever is a share
of paired trials is counted in four cells: the event is with both, only with the newer (gained), only with
the older (lost), or with neither. From these come both shares and their difference, (gained − lost) /
trials. No audit has such a scene; :mod:`voirdire.comparing` makes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voirdire import intervals
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Interval, Key
from voirdire.grid import LABEL
from voirdire.labels import ALL_OUTCOMES
from voirdire.stats.base import Array, Family, Given, Part, Scene, Statistic
from voirdire.stats.element_error import ELEMENT_ERROR, FALSE_ACCEPT, FALSE_REJECT, PAPER
from voirdire.stats.gate import GATE_ACCURACY, PASS_RATE
from voirdire.stats.kuder_richardson import KR20, kr20_from
from voirdire.stats.pairwise import AGREEMENT, KAPPA, beyond_chance, chance_cohen, observed
from voirdire.stats.shares import LABEL_COUNT, LABEL_SHARE, RATE
from voirdire.tally import Tally, of_rows, summed, summed_by_cluster

CODES = ("comparison",)
FEWEST_DISCORDANT = (
    10  # clusters with a change (and with none) below which a difference is at its edge
)
MOST_FLIPPED = 60  # clusters with a change up to which all their signs are flipped exactly
MOST_CLASSES_FOR_KAPPA = 30
FEWEST_CLUSTERS = 3

BOTH, GAINED, LOST, NEITHER = range(4)
HOW_ENDED = (*ALL_OUTCOMES, "no_majority")

PAIRED = Source(
    text="Difference of paired shares: Fleiss, Levin and Paik 2003, Statistical Methods for Rates and "
    "Proportions, ch. 13; near no changes the intervals of gained and lost put together by MOVER (Zou and "
    "Donner 2008, Statistics in Medicine 27, p. 1693)"
)
NONE_COMMON = "there is no common response that both could be read on"
NONE_WITH_GOLD = "there is no common response that both and gold could be read on"
NO_NEGATIVE = "gold puts every common response into the rate’s classes"
NO_POSITIVE = "gold puts no common response into the rate’s classes"

ON_PAIRS = (
    "It equals (gained − lost) / trials: trials of which only the grader has the event, less those of which only "
    "the other has it. Of a checklist only responses count that all scored in full."
)


def difference_of(base: Estimand, keys: tuple[str, ...]) -> Estimand:
    """The estimand of ``<name>_minus_other``: by how much the grader's value is above the other's."""
    share = base.unit in (Unit.SHARE, Unit.POINTS)
    low = None if base.low is None or base.high is None else base.low - base.high
    high = None if base.low is None or base.high is None else base.high - base.low
    return replace(
        base,
        name=f"{base.name}_minus_other",
        title=f"{base.title}: the grader less the other",
        question=f"How much higher is it with the grader than with the other, on the same responses? "
        f"({base.question})",
        describes=Describes.BOTH if base.describes is Describes.GRADER else base.describes,
        keys=keys,
        unit=Unit.POINTS if share else base.unit,
        scale=Scale.NONE
        if base.scale is Scale.NONE
        else Scale.FISHER_Z
        if share and base.low == 0
        else Scale.PLAIN,
        low=low,
        high=high,
        reading="Without gold it says that they differ, never which is better. "
        + (base.reading if base.describes is Describes.BANK else ""),
        source=PAIRED if share else base.source,
        formula=rf"T_{{g}} - T_{{h}}, \quad T = {base.formula}",
        conventions=(
            "T_g: with the grader, T_h: with the other, both on the responses that the two (and gold, where it "
            f"is asked for) could be read on. The letters of T are those of {base.name}. "
            + (ON_PAIRS if share else "")
        ).strip(),
    )


# --- shares of paired trials --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shares:
    """One kind of share: its value with each of the two, and the difference."""

    own: Statistic
    minus: Statistic


def _quads(cells: Array, given: Given, name: str) -> Array:
    low, high = given["places"][name]
    return np.asarray(cells[..., low:high, :])


def _paired(base: Estimand, *keys: str, why: str = "") -> Shares:
    name = base.name

    def parts_of(cells: Array, given: Given) -> tuple[Array, Array]:
        quad = _quads(cells, given, name)
        with_new = quad[..., BOTH] + quad[..., GAINED]
        with_old = quad[..., BOTH] + quad[..., LOST]
        trials = quad.sum(-1)
        return (
            np.concatenate([with_new, with_old], axis=-1),
            np.concatenate([trials, trials], axis=-1),
        )

    def own(cells: Array, given: Given) -> Array:
        events, trials = parts_of(cells, given)
        return np.asarray(events / trials)

    def minus(cells: Array, given: Given) -> Array:
        quad = _quads(cells, given, name)
        return np.asarray((quad[..., GAINED] - quad[..., LOST]) / quad.sum(-1))

    reason = (lambda totals, given: [why] * 2 * len(_quads(totals, given, name))) if why else None
    return Shares(
        own=Statistic(
            estimand=base,
            solve=own,
            n=lambda cells, given: parts_of(cells, given)[1],
            share=parts_of,
            reason=reason,
        ),
        minus=Statistic(
            estimand=difference_of(base, ("grader", "other", *keys)),
            solve=minus,
            n=lambda cells, given: _quads(cells, given, name).sum(-1),
            reason=reason,
        ),
    )


def _of_rate(name: str, title: str, question: str, why: str, formula: str) -> Estimand:
    return Estimand(
        name=name,
        title=title,
        question=question,
        describes=Describes.BOTH,
        keys=("grader", "class"),
        unit=Unit.SHARE,
        scale=Scale.LOGIT,
        needs=("label", "gold"),
        low=0,
        high=1,
        moves_with=("the responses in the bank",),
        undefined_when=why,
        source=Source(
            text="Fleiss, Levin and Paik 2003, Statistical Methods for Rates and Proportions, ch. 1"
        ),
        formula=formula,
        conventions=(
            "x_i, G_i: the labels of the grader and of gold on response i, where both graders that are compared "
            "and gold could be read; R: the classes of the rate."
        ),
    )


RATE_FALSE_ACCEPT = _of_rate(
    "rate_false_accept",
    "False accept",
    "Of the responses that gold puts outside of the rate’s classes, which share does the grader put "
    "into them?",
    NO_NEGATIVE,
    r"\frac{\#\{i \mid x_{i} \in R,\ G_{i} \notin R\}}{\#\{i \mid G_{i} \notin R\}}",
)
RATE_FALSE_REJECT = _of_rate(
    "rate_false_reject",
    "False reject",
    "Of the responses that gold puts into the rate’s classes, which share does the grader put outside?",
    NO_POSITIVE,
    r"\frac{\#\{i \mid x_{i} \notin R,\ G_{i} \in R\}}{\#\{i \mid G_{i} \in R\}}",
)
READ_SHARE = Estimand(
    name="read_share",
    title="Read",
    question="On which share of the common responses could the grader be read?",
    describes=Describes.GRADER,
    keys=("grader",),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    low=0,
    high=1,
    undefined_when="there is no common response",
    source=Source(text="Contract of voirdire: seven outcomes, of which only one is a class"),
    formula=r"\frac{1}{N}\, \#\{i \mid \text{the grader could be read on } i\}",
    conventions=(
        "N: the responses in both audits. A call that is missing was not read. Of a checklist a "
        "response is read where it was scored in full."
    ),
)
YES_SHARE = Estimand(
    name="yes_share",
    title="Lines met",
    question="On which share of the lines of the common responses does the grader say yes?",
    describes=Describes.BOTH,
    keys=("grader",),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    low=0,
    high=1,
    undefined_when="no common response was scored in full by both",
    source=Source(text=f"{PAPER}, Table A.9: judge verdict"),
    formula=r"\frac{\sum_{i} X_{i}}{\sum_{i} K_{i}}",
    conventions=(
        "X_i: how many of the K_i lines of response i the grader says are met, on the responses "
        "that both graders scored in full."
    ),
)

SHARE_OF_CLASS = _paired(LABEL_SHARE, "class", why=NONE_COMMON)
SHARE_OF_RATE = _paired(RATE, "class", why=NONE_COMMON)
SHARE_READ = _paired(READ_SHARE)
AGREES = _paired(replace(AGREEMENT, keys=("grader", "other")), why=NONE_WITH_GOLD)
ACCEPTS = _paired(RATE_FALSE_ACCEPT, "class")
REJECTS = _paired(RATE_FALSE_REJECT, "class")
ERRORS = _paired(ELEMENT_ERROR)
ELEMENT_ACCEPTS = _paired(FALSE_ACCEPT)
ELEMENT_REJECTS = _paired(FALSE_REJECT)
GATES = _paired(GATE_ACCURACY, "cut")
PASSES = _paired(PASS_RATE, "cut")
YES = _paired(YES_SHARE)
SHARES = (
    *(SHARE_OF_CLASS, SHARE_OF_RATE, SHARE_READ, AGREES, ACCEPTS, REJECTS),
    *(ERRORS, ELEMENT_ACCEPTS, ELEMENT_REJECTS, GATES, PASSES, YES),
)
_BASES: Mapping[str, str] = {s.minus.name: s.own.name for s in SHARES}

COUNT_MINUS = Statistic(
    estimand=replace(
        difference_of(LABEL_COUNT, ("grader", "other", "class")), low=-math.inf, high=math.inf
    ),
    solve=lambda cells, given: (
        _quads(cells, given, "label_share")[..., GAINED]
        - _quads(cells, given, "label_share")[..., LOST]
    ),
    n=lambda cells, given: _quads(cells, given, "label_share").sum(-1),
    unweighted=True,
)


# --- labels that changed ------------------------------------------------------------------------


def _changed(
    name: str,
    title: str,
    question: str,
    keys: tuple[str, ...],
    why: str,
    formula: str,
    letters: str,
) -> Estimand:
    return Estimand(
        name=name,
        title=title,
        question=question,
        describes=Describes.BOTH,
        keys=keys,
        unit=Unit.SHARE,
        scale=Scale.LOGIT,
        low=0,
        high=1,
        reading="Read it beside how often a grader disagrees with itself when it is asked again.",
        moves_with=("how many responses of the bank lie between two classes",),
        undefined_when=why,
        source=Source(
            text="One minus observed agreement: Gwet 2014, Handbook of Inter-Rater Reliability, ch. 2"
        ),
        formula=formula,
        conventions=letters,
    )


CHANGED = _changed(
    "changed",
    "Changed",
    "On which share of the common labels (of a checklist: verdicts on lines) do the two differ?",
    ("grader", "other"),
    NONE_COMMON,
    r"\frac{1}{n}\, \#\{i \mid x_{gi} \ne x_{hi}\}",
    "x_gi, x_hi: the labels of the grader and of the other; n: the responses that both could be read on. Of a "
    "checklist: verdicts, over the lines of the responses that both scored in full.",
)
CHANGED_RESPONSES = _changed(
    "changed_responses",
    "Changed responses",
    "On which share of the common responses do the two differ on at least one line?",
    ("grader", "other"),
    "no common response was scored in full by both",
    r"\frac{1}{n}\, \#\{i \mid x_{gij} \ne x_{hij} \text{ for some } j\}",
    "x_gij, x_hij: the verdicts of the grader and of the other on line j; n: the responses that both scored in "
    "full.",
)
GATE_CHANGED = _changed(
    "gate_changed",
    "Changed at the gate",
    "On which share of the common responses do the two differ in pass or fail at this cut?",
    ("grader", "other", "cut"),
    "no common response was scored in full by both",
    r"\frac{1}{n}\, \#\{i \mid (X_{gi} \ge c) \ne (X_{hi} \ge c)\}",
    "X_gi, X_hi: how many lines of response i the grader and the other say are met; c: the cut, in lines; n: "
    "the responses that both scored in full.",
)


def _off_diagonal(cells: Array, given: Given) -> tuple[Array, Array]:
    n = cells.sum((-2, -1))[..., None]
    return np.asarray(n - np.trace(cells, axis1=-2, axis2=-1)[..., None]), np.asarray(n)


def _from_places(base: str) -> Callable[[Array, Given], tuple[Array, Array]]:
    def of(cells: Array, given: Given) -> tuple[Array, Array]:
        quad = _quads(cells, given, base)
        return np.asarray(quad[..., GAINED] + quad[..., LOST]), np.asarray(quad.sum(-1))

    return of


def _share(estimand: Estimand, of: Callable[[Array, Given], tuple[Array, Array]]) -> Statistic:
    def solve(cells: Array, given: Given) -> Array:
        events, trials = of(cells, given)
        return np.asarray(events / trials)

    return Statistic(
        estimand=estimand, solve=solve, n=lambda cells, given: of(cells, given)[1], share=of
    )


S_CHANGED = _share(CHANGED, _off_diagonal)
S_CHANGED_LINES = _share(CHANGED, _from_places("yes_share"))
S_CHANGED_RESPONSES = _share(CHANGED_RESPONSES, _from_places("any_line"))
S_GATE_CHANGED = _share(GATE_CHANGED, _from_places("pass_rate"))


# --- against gold: kappa; and KR-20, which describes the bank -----------------------------------


def _kappas(cells: Array, given: Given) -> Array:
    return beyond_chance(observed(cells), chance_cohen(cells))


S_KAPPA = Statistic(
    estimand=KAPPA, solve=_kappas, n=lambda cells, given: cells.sum((-2, -1)), reason=None
)
S_KAPPA_MINUS = Statistic(
    estimand=difference_of(KAPPA, ("grader", "other")),
    solve=lambda cells, given: _kappas(cells, given)[..., :1] - _kappas(cells, given)[..., 1:],
    n=lambda cells, given: cells.sum((-2, -1))[..., :1],
)


def _coefficients(cells: Array, given: Given) -> Array:
    """KR-20 of the sides ``(..., sides)`` from n and, by side, line sums, sum of totals, of squares."""
    k, n = given["k"], cells[..., :1]
    sides = cells[..., 1:].reshape(*cells.shape[:-1], -1, k + 2)
    met, total, squares = sides[..., :k], sides[..., k], sides[..., k + 1]
    lines = (met * (1 - met / n[..., None])).sum(-1)
    about = squares - total**2 / n
    return kr20_from(lines, np.where(about > 1e-12 * squares, about, np.nan), n, k)


S_KR20 = Statistic(estimand=KR20, solve=_coefficients, n=lambda cells, given: cells[..., :1])
S_KR20_MINUS = Statistic(
    estimand=difference_of(KR20, ("grader", "other")),
    solve=lambda cells, given: (
        _coefficients(cells, given)[..., :1] - _coefficients(cells, given)[..., 1:2]
    ),
    n=lambda cells, given: cells[..., :1],
)


# --- outcomes -----------------------------------------------------------------------------------


def _count(
    name: str, title: str, question: str, keys: tuple[str, ...], formula: str, letters: str
) -> Estimand:
    return Estimand(
        name=name,
        title=title,
        question=question,
        describes=Describes.GRADER,
        keys=keys,
        unit=Unit.COUNT,
        scale=Scale.NONE,
        low=0,
        undefined_when="there is no common response",
        source=Source(text="Contract of voirdire: seven outcomes, of which only one is a class"),
        formula=formula,
        conventions=letters,
    )


OUTCOME_MOVED = _count(
    "outcome_moved",
    "Outcome moved",
    "On how many common responses did the call of the other end one way and the grader’s another?",
    ("grader", "other", "class", "to_class"),
    r"\#\{i \mid o_{hi} = a,\ o_{gi} = b\}",
    "o_gi, o_hi: how the calls of the grader and of the other ended on response i, after the vote rule; a is in "
    "“class”, b in “to_class”. Those that both could be read on (label to label) are counted too.",
)
NEWLY_UNREAD = _count(
    "newly_unread",
    "Newly unread",
    "How many responses to which the other gave this class could the grader not be read on?",
    ("grader", "other", "class"),
    r"\#\{i \mid x_{hi} = c,\ x_{gi} \text{ is no label}\}",
    "x_gi, x_hi: the labels of the grader and of the other on response i.",
)
NEWLY_READ = _count(
    "newly_read",
    "Newly read",
    "How many responses to which the grader gives this class could the other not be read on?",
    ("grader", "other", "class"),
    r"\#\{i \mid x_{gi} = c,\ x_{hi} \text{ is no label}\}",
    "x_gi, x_hi: the labels of the grader and of the other on response i.",
)
LINE_CHANGED = _count(
    "line_changed",
    "Changed on a line",
    "On how many common responses did the verdict on this line go from one to the other?",
    ("grader", "other", "class", "to_class", "line"),
    r"\#\{i \mid x_{hil} = a,\ x_{gil} = b\}, \quad a \ne b",
    "x_gil, x_hil: the verdicts of the grader and of the other on line l, 1 for yes, on the responses that both "
    "scored in full; a is in “class”, b in “to_class”.",
)


def _as_counted(estimand: Estimand) -> Statistic:
    return Statistic(
        estimand=estimand,
        solve=lambda cells, given: cells,
        n=lambda cells, given: np.full(cells.shape[-1], given["n"]),
    )


S_OUTCOME_MOVED = _as_counted(OUTCOME_MOVED)
S_NEWLY_UNREAD = _as_counted(NEWLY_UNREAD)
S_NEWLY_READ = _as_counted(NEWLY_READ)
S_LINE_CHANGED = _as_counted(LINE_CHANGED)


# --- the noise of decoding ----------------------------------------------------------------------

VOTES = Source(
    text="Rao 1982, Theoretical Population Biology 21, p. 24: diversity between less diversity within"
)
NO_REPEATS = "neither was asked twice about a response that both could be read on"


def _noise(
    name: str, title: str, question: str, reading: str, formula: str, **more: Any
) -> Estimand:
    return Estimand(
        name=name,
        title=title,
        question=question,
        describes=Describes.BOTH,
        keys=("grader", "other"),
        unit=more.get("unit", Unit.SHARE),
        scale=more.get("scale", Scale.LOGIT),
        needs=("label", "vote"),
        low=more.get("low", 0),
        high=1,
        reading=reading,
        moves_with=("the graders’ temperature", "how many responses lie between two classes"),
        undefined_when=NO_REPEATS,
        source=VOTES,
        formula=formula,
        conventions=(
            "A_ic, B_ic: the calls of the grader and of the other that gave class c to response i, A_i and B_i all "
            "with a label; d_i: of changed_calls, h_i: of call_noise; n: the responses with a label of both and "
            "two of one of them. Responses count alike. Where only one was asked twice, h_i is of its calls "
            "alone. Without design weights."
        ),
    )


CHANGED_CALLS = _noise(
    "changed_calls",
    "Changed calls",
    "If one call of each were drawn for a response, how often would the two differ?",
    "It holds the noise of decoding of both.",
    r"\frac{1}{n} \sum_{i} d_{i}, \quad d_{i} = 1 - \sum_{c} \frac{A_{ic} B_{ic}}{A_{i} B_{i}}",
)
CALL_NOISE = _noise(
    "call_noise",
    "Two calls of one grader",
    "If two calls of one and the same grader were drawn for a response, how often would they differ?",
    "The mean of the two graders, or of the one that was asked twice.",
    r"\frac{1}{n} \sum_{i} h_{i}, \quad h_{i} = 1 - \frac{1}{2} \sum_{c} \left(\frac{A_{ic} (A_{ic} - 1)}"
    r"{A_{i} (A_{i} - 1)} + \frac{B_{ic} (B_{ic} - 1)}{B_{i} (B_{i} - 1)}\right)",
)
BEYOND_NOISE = _noise(
    "changed_beyond_noise",
    "Changed beyond the noise",
    "How much more often do calls of the two differ than two calls of one of them?",
    "0 on average where both give every class equally often for every response.",
    r"\frac{1}{n} \sum_{i} (d_{i} - h_{i})",
    unit=Unit.POINTS,
    scale=Scale.FISHER_Z,
    low=-1,
)


def _of_noise(estimand: Estimand, value: Callable[[Array], Array]) -> Statistic:
    return Statistic(
        estimand=estimand,
        solve=lambda cells, given: (value(cells) / cells[..., 2])[..., None],
        n=lambda cells, given: cells[..., 2:],
    )


S_CALLS = _of_noise(CHANGED_CALLS, lambda cells: cells[..., 0])
S_NOISE = _of_noise(CALL_NOISE, lambda cells: cells[..., 1])
S_BEYOND = _of_noise(BEYOND_NOISE, lambda cells: cells[..., 0] - cells[..., 1])


# --- tests --------------------------------------------------------------------------------------


def _p(name: str, title: str, question: str, formula: str, conventions: str) -> Estimand:
    return Estimand(
        name=name,
        title=title,
        question=question,
        describes=Describes.BOTH,
        keys=("grader", "other", "class", "line", "cut"),
        unit=Unit.COEFFICIENT,
        scale=Scale.NONE,
        low=0,
        high=1,
        reading="A large p is no proof that nothing differs. ``line`` names the statistic.",
        moves_with=("the number of responses",),
        undefined_when="there is no difference to test",
        source=Source(
            text="Signs of clusters flipped, mid-p (Fisher 1935, The Design of Experiments, § 21); where "
            "every response is its own cluster this is McNemar’s mid-p. Holm 1979, Scandinavian Journal "
            "of Statistics 6, p. 65"
        ),
        formula=formula,
        conventions=conventions,
    )


P_VALUE = _p(
    "difference_p",
    "Difference, p",
    "If old and new were exchangeable in every cluster, how often would they lie so far apart?",
    r"p = \Pr\left[|S| > |s|\right] + \frac{1}{2} \Pr\left[|S| = |s|\right], "
    r"\quad S = \sum_{t} \epsilon_{t} d_{t}, \quad s = \sum_{t} d_{t}",
    "d_t: gained less lost in cluster t; ε_t: 1 or −1, each with chance one half. 1 where s is 0. Exact up to "
    f"{MOST_FLIPPED} clusters with a change; beyond, and with weights that are not whole, S is taken as normal "
    "with variance Σ_t d_t².",
)
P_HOLM = _p(
    "difference_p_holm",
    "Difference, p after Holm",
    "The same, adjusted for how many differences of its table were looked at.",
    r"\tilde{p}_{(k)} = \max_{j \le k}\, \min\left(1,\ (m - j + 1)\, p_{(j)}\right)",
    "p_(1) ≤ … ≤ p_(m): the p-values (difference_p) of the m differences of its table.",
)
# Rows made outside of parts; kept as statistics, so that the list of estimands has them.
_P_VALUES = tuple(
    Statistic(estimand=e, solve=lambda cells, given: cells, n=lambda cells, given: cells)
    for e in (P_VALUE, P_HOLM)
)


def sign_flip_p(moves: Array, clusters: Array) -> float:
    """Two-sided mid-p that signs of the clusters' net changes are a coin's, from distinct moves.

    ``moves`` are net changes ``(rows,)``, ``clusters`` how many clusters have each. Exact where at
    most :data:`MOST_FLIPPED` clusters move and moves are whole numbers, else the normal approximation
    with variance Σ move². 1 where nothing moves.

    >>> sign_flip_p(np.array([1, -1]), np.array([5, 1]))  # McNemar's mid-p for 5 and 1
    0.125
    """
    there = (moves != 0) & (clusters > 0)
    moves, clusters = moves[there].astype(np.float64), clusters[there].astype(np.int64)
    total = float((moves * clusters).sum())
    if not len(moves) or total == 0:
        return 1.0
    whole = bool((moves == np.rint(moves)).all())
    if whole and clusters.sum() <= MOST_FLIPPED:
        sizes = np.repeat(np.abs(moves).astype(np.int64), clusters)
        reach = int(sizes.sum())
        chance = np.zeros(2 * reach + 1)
        chance[reach] = 1.0
        for size in sizes:
            chance = (np.roll(chance, size) + np.roll(chance, -size)) / 2
        far = np.abs(np.arange(-reach, reach + 1))
        seen = round(abs(total))
        return float(min(1.0, chance[far > seen].sum() + chance[far == seen].sum() / 2))
    from scipy.special import ndtr

    return float(2 * ndtr(-abs(total) / math.sqrt(float((moves**2 * clusters).sum()))))


def holm(p: Sequence[float]) -> list[float]:
    """P-values adjusted by Holm's step-down method, in the given order. Source: Holm 1979, p. 65.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [1.0] * len(p)
    highest = 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=lambda j: p[j])):
        highest = max(highest, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = highest
    return adjusted


# --- settling differences -----------------------------------------------------------------------


def settled(
    part: Part, made: Sequence[Estimate], level: float
) -> tuple[list[Estimate], dict[tuple[str, Key], float]]:
    """The estimates of a part, those of differences at their edge with the interval that fits there.

    Also the p-value of every difference of shares, by statistic and key. A difference is at its edge
    where fewer than :data:`FEWEST_DISCORDANT` clusters hold a change, or as few hold anything else:
    there the jackknife's variance is too small, and zero where nothing changed. The interval at the edge
    puts together those of the gained and of the lost (exact, or Korn and Graubard's beside clusters) by
    MOVER; its width is never zero.
    """
    tally = part.tally
    asked = [(statistic, i) for statistic, keys in part.asks for i in range(len(keys))]
    if tally is None:
        return list(made), {}
    kept: list[Estimate] = []
    p: dict[tuple[str, Key], float] = {}
    for estimate, (statistic, i) in zip(made, asked, strict=True):
        base = _BASES.get(statistic.name)
        if base is not None and estimate.number is not None:
            quad = _quads(tally.rows.astype(np.float64), part.given, base)[:, i]
            p[(estimate.statistic, estimate.key)] = sign_flip_p(
                quad[:, GAINED] - quad[:, LOST], tally.clusters
            )
            estimate = _at_edge(estimate, tally, quad, part.given, base, i, level)
        kept.append(estimate)
    return kept, p


def _at_edge(
    estimate: Estimate,
    tally: Tally,
    quad: Array,
    given: Given,
    base: str,
    i: int,
    level: float,
) -> Estimate:
    clusters = tally.clusters.astype(np.float64)
    gained, lost, trials = quad[:, GAINED], quad[:, LOST], quad.sum(-1)
    changed = float(summed(clusters, (gained + lost) > 0))
    others = float(summed(clusters, trials - np.abs(gained - lost) > 0))
    strata = np.unique(tally.strata)
    if tally.count < FEWEST_CLUSTERS or any(
        tally.clusters[tally.strata == s].sum() < 2 for s in strata
    ):
        return estimate
    if estimate.interval is not None and min(changed, others) >= FEWEST_DISCORDANT:
        return estimate
    n = float(summed(clusters, trials))
    size = n
    if tally.weighted:
        plain = _quads(tally.sizes.astype(np.float64), given, base)[:, i].sum(-1)
        mean = np.where(plain > 0, trials / np.where(plain > 0, plain, 1), 0.0)
        size = n**2 / float(summed(clusters, plain * mean**2))
    exact = bool((trials <= 1).all()) and not tally.weighted
    held = float(summed(clusters, trials > 0))

    def alone(events: Array) -> tuple[float, float, float]:
        x = float(summed(clusters, events))
        if exact:
            return (x / n, *intervals.clopper_pearson(x, n, level))
        ends = intervals.korn_graubard(
            x / n,
            size,
            _variance(events, trials, tally),
            max(int(held), 1),
            max(held - len(strata), 1),
            level,
        )
        return (x / n, *ends)

    low, high = intervals.mover(alone(gained), alone(lost))
    method = "mover_clopper_pearson" if exact else "mover_korn_graubard"
    interval = Interval(low=max(low, -1.0), high=min(high, 1.0), level=level, method=method)
    return replace(estimate, interval=interval, no_interval="")


def _variance(moves: Array, trials: Array, tally: Tally) -> float:
    """The cluster-robust variance of Σ moves / Σ trials, linearised, within strata."""
    clusters = tally.clusters.astype(np.float64)
    n = float(summed(clusters, trials))
    residual = (moves - trials * float(summed(clusters, moves)) / n) / n
    variance = 0.0
    for stratum in np.unique(tally.strata):
        inside = tally.strata == stratum
        weight, own = clusters[inside], residual[inside]
        many = float(weight.sum())
        mean = float(summed(weight, own)) / many
        variance += many / (many - 1) * float(summed(weight, (own - mean) ** 2))
    return variance


# --- counting -----------------------------------------------------------------------------------


def two_of(scene: Scene) -> tuple[str, str]:
    """The older and the newer grader of a scene of a comparison."""
    new = next(g for g in scene.panel if g != scene.reference)
    return scene.reference, new


def _four(new: Array, old: Array, valid: Array | None = None) -> Array:
    """The four cells ``(rows, events, 4)`` of events with each ``(rows, events)``, where they are valid."""
    state = np.where(new, np.where(old, BOTH, GAINED), np.where(old, LOST, NEITHER))
    cells = state[..., None] == np.arange(4)
    if valid is not None:
        cells &= valid[..., None]
    return np.asarray(cells.astype(np.int8))


def _quad_tally(
    scene: Scene, rows: Array, cells_of: Callable[[Array], Array], events: int
) -> Tally:
    held = scene.grid if scene.grid is not None else scene.bank
    assert held is not None
    return summed_by_cluster(
        rows,
        cells_of,
        (events, 4),
        cluster=held.cluster,
        stratum=held.stratum,
        weights=held.weights,
        copies=held.frequency and held.own_cluster,
        frequency=held.frequency,
    )


def _asks(
    shares: Shares, old: str, new: str, more: Sequence[Mapping[str, str]], gold: str = ""
) -> list[tuple[Statistic, tuple[Key, ...]]]:
    """What is asked of one kind of share; ``more`` has the further keys of each event."""
    beside = {"other": gold} if gold else {}
    own = tuple(Key(grader=g, **beside, **m) for g in (new, old) for m in more)
    return [
        (shares.own, own),
        (shares.minus, tuple(Key(grader=new, other=old, **m) for m in more)),
    ]


def parts(scene: Scene) -> Iterable[Part]:
    if scene.grid is not None:
        yield from _of_labels(scene)
    elif scene.bank is not None:
        yield from _of_bank(scene)


def _of_labels(scene: Scene) -> Iterable[Part]:
    grid = scene.grid
    assert grid is not None
    old, new = two_of(scene)
    mine = grid.codes[:, scene.places[new]].astype(np.int64)
    theirs = grid.codes[:, scene.places[old]].astype(np.int64)
    yield _outcomes(scene, grid.outcomes)
    yield from _unread(scene, mine, theirs)
    yield _read(scene, mine >= 0, theirs >= 0)
    pair = (Key(grader=new, other=old),)
    yield Part(tally=scene.pair_tally(new, old), asks=((S_CHANGED, pair),))
    rates = scene.rates
    k = scene.k
    members = [r.members for r in rates]

    def events(codes: Array) -> Array:
        classes = codes[:, None] == np.arange(k)
        return np.concatenate([classes, *(m[codes][:, None] for m in members)], axis=1)

    rows = np.flatnonzero((mine >= 0) & (theirs >= 0))
    of_classes = [{"class_": c} for c in scene.classes]
    of_rates = [{"class_": r.name} for r in rates]
    asks = _asks(SHARE_OF_CLASS, old, new, of_classes)
    asks.append((COUNT_MINUS, asks[-1][1]))
    if rates:
        asks += _asks(SHARE_OF_RATE, old, new, of_rates)
    yield Part(
        tally=_quad_tally(
            scene, rows, lambda r: _four(events(mine[r]), events(theirs[r])), k + len(rates)
        ),
        asks=tuple(asks),
        given={"places": {"label_share": (0, k), "rate": (k, k + len(rates))}},
    )
    if scene.gold:
        yield from _with_gold(scene, mine, theirs)
    yield from _noise_part(scene)


def _with_gold(scene: Scene, mine: Array, theirs: Array) -> Iterable[Part]:
    grid = scene.grid
    assert grid is not None
    old, new = two_of(scene)
    gold = grid.codes[:, scene.places[scene.gold]].astype(np.int64)
    rows = np.flatnonzero((mine >= 0) & (theirs >= 0) & (gold >= 0))
    rates = scene.rates
    r = len(rates)

    def cells(at: Array) -> Array:
        a, b, truth = mine[at], theirs[at], gold[at]
        new_is, old_is = [(a == truth)[:, None]], [(b == truth)[:, None]]
        valid = [np.ones((len(at), 1), dtype=bool)]
        for inside in (False, True):
            for rate in rates:
                new_is.append((rate.members[a] != inside)[:, None])
                old_is.append((rate.members[b] != inside)[:, None])
                valid.append((rate.members[truth] == inside)[:, None])
        return _four(*(np.concatenate(x, axis=1) for x in (new_is, old_is, valid)))

    asks = _asks(AGREES, old, new, [{}], scene.gold)
    of_rates = [{"class_": rate.name} for rate in rates]
    if rates:
        asks += _asks(ACCEPTS, old, new, of_rates)
        asks += _asks(REJECTS, old, new, of_rates)
    yield Part(
        tally=_quad_tally(scene, rows, cells, 1 + 2 * r),
        asks=tuple(asks),
        given={
            "places": {
                "agreement": (0, 1),
                "rate_false_accept": (1, 1 + r),
                "rate_false_reject": (1 + r, 1 + 2 * r),
            }
        },
    )
    k = scene.k
    if k > MOST_CLASSES_FOR_KAPPA:
        return
    both = np.concatenate([mine[rows] * k + gold[rows], (k + theirs[rows]) * k + gold[rows]])
    yield Part(
        tally=scene.counted(np.concatenate([rows, rows]), both, (2, k, k)),
        asks=(
            (S_KAPPA, tuple(Key(grader=g, other=scene.gold) for g in (new, old))),
            (S_KAPPA_MINUS, (Key(grader=new, other=old),)),
        ),
    )


def _times(scene: Scene, responses: int) -> Array:
    """How many responses each one stands for; 1 without frequency weights."""
    held = scene.grid if scene.grid is not None else scene.bank
    assert held is not None
    if held.weights is None or not held.frequency:
        return np.ones(responses)
    return np.asarray(held.weights, dtype=np.float64)


def _outcomes(scene: Scene, outcomes: Array) -> Part:
    old, new = two_of(scene)
    size = len(HOW_ENDED)
    mine = outcomes[:, scene.places[new]].astype(np.int64)
    theirs = outcomes[:, scene.places[old]].astype(np.int64)
    times = _times(scene, len(mine))
    table = np.bincount(theirs * size + mine, times, size * size).reshape(size, size)
    cells = [
        (b, a) for b in range(size) for a in range(size) if table[b, a] and (a != b or a == LABEL)
    ]
    keys = tuple(
        Key(grader=new, other=old, class_=HOW_ENDED[b], to_class=HOW_ENDED[a]) for b, a in cells
    )
    return Part(
        tally=None,
        totals=np.array([table[c] for c in cells], dtype=np.float64),
        asks=((S_OUTCOME_MOVED, keys),),
        given={"n": float(times.sum())},
    )


def _unread(scene: Scene, mine: Array, theirs: Array) -> Iterable[Part]:
    old, new = two_of(scene)
    for statistic, held, gone in (
        (S_NEWLY_UNREAD, theirs, mine),
        (S_NEWLY_READ, mine, theirs),
    ):
        lost = (held >= 0) & (gone < 0)
        times = _times(scene, len(held))[lost]
        counts = np.bincount(held[lost], times, scene.k)
        used = np.flatnonzero(counts)
        if len(used):
            keys = tuple(Key(grader=new, other=old, class_=scene.classes[c]) for c in used)
            yield Part(
                tally=None,
                totals=counts[used].astype(np.float64),
                asks=((statistic, keys),),
                given={"n": float(times.sum())},
            )


def _read(scene: Scene, mine: Array, theirs: Array) -> Part:
    old, new = two_of(scene)
    rows = np.arange(len(mine))
    return Part(
        tally=_quad_tally(scene, rows, lambda r: _four(mine[r, None], theirs[r, None]), 1),
        asks=tuple(_asks(SHARE_READ, old, new, [{}])),
        given={"places": {"read_share": (0, 1)}},
    )


def _noise_part(scene: Scene) -> Iterable[Part]:
    """Calls of the two against calls of one, on responses where at least one was asked twice.

    The share of pairs of calls that differ is a mean over all pairs, so it needs no drawing.
    """
    grid = scene.grid
    assert grid is not None
    votes = grid.votes
    if votes is None or (grid.weights is not None and not grid.frequency):
        return
    old, new = two_of(scene)
    k = scene.k
    read = votes.code >= 0

    def by_class(grader: str) -> Array:
        own = read & (votes.grader == grid.graders.index(grader))
        at = votes.row[own] * k + votes.code[own]
        return np.bincount(at, minlength=grid.responses * k).reshape(-1, k).astype(np.float64)

    a, b = by_class(new), by_class(old)
    n, m = a.sum(1), b.sum(1)
    twice = np.stack([n > 1, m > 1])
    rows = np.flatnonzero((n > 0) & (m > 0) & twice.any(axis=0))
    if not len(rows):
        return
    with np.errstate(invalid="ignore", divide="ignore"):
        cross = 1 - (a * b).sum(1) / (n * m)
        within = np.stack([1 - (x * (x - 1)).sum(1) / (s * (s - 1)) for x, s in ((a, n), (b, m))])
    noise = np.where(twice, within, 0.0).sum(0) / np.maximum(twice.sum(0), 1)
    values = np.stack([cross, noise, np.ones(len(cross))], axis=1)[rows]
    order = np.argsort(grid.cluster[rows], kind="stable")
    codes, values = grid.cluster[rows][order], values[order]
    times = None
    if grid.weights is not None:
        times = grid.weights[rows][order]
        values = values * times[:, None]
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    sums = np.add.reduceat(values, starts, axis=0)
    sizes = np.rint(np.repeat(sums[:, 2:], 3, axis=1)).astype(np.int64)
    key = (Key(grader=new, other=old),)
    yield Part(
        tally=of_rows(
            sums,
            stratum=None if grid.stratum is None else grid.stratum[rows][order][starts],
            sizes=sizes,
        ),
        asks=((S_CALLS, key), (S_NOISE, key), (S_BEYOND, key)),
    )


def _of_bank(scene: Scene) -> Iterable[Part]:
    bank = scene.bank
    assert bank is not None
    old, new = two_of(scene)
    yield _outcomes(scene, bank.states)
    a, b = bank.places[new], bank.places[old]
    yield _read(scene, bank.complete[:, a], bank.complete[:, b])
    rows = np.flatnonzero(bank.complete[:, a] & bank.complete[:, b])
    cuts = np.array(scene.options.cut, dtype=np.int64)
    c = len(cuts)
    line = bank.line >= 0

    def cells(at: Array) -> Array:
        mine, theirs, there = bank.verdicts[at, a] == 1, bank.verdicts[at, b] == 1, line[at]
        yes = _four(mine, theirs, there).sum(axis=1, keepdims=True)
        # A response with any changed line counts as gained: only that there is one is asked.
        any_line = ((mine != theirs) & there).any(axis=1)
        some = _four(any_line[:, None], np.zeros((len(at), 1), dtype=bool))
        passed = [bank.totals[at, g][:, None] >= cuts for g in (a, b)]
        return np.concatenate([yes, some, _four(*passed)], axis=1)

    pair = (Key(grader=new, other=old),)
    asks: list[tuple[Statistic, tuple[Key, ...]]] = [
        (S_CHANGED_LINES, pair),
        (S_CHANGED_RESPONSES, pair),
        *_asks(YES, old, new, [{}]),
    ]
    of_cuts = [{"cut": str(x)} for x in cuts]
    if c:
        asks += _asks(PASSES, old, new, of_cuts)
        asks.append((S_GATE_CHANGED, asks[-1][1]))
    yield Part(
        tally=_quad_tally(scene, rows, cells, 2 + c),
        asks=tuple(asks),
        given={"places": {"yes_share": (0, 1), "any_line": (1, 2), "pass_rate": (2, 2 + c)}},
    )
    if scene.gold:
        yield _bank_with_gold(scene, rows, cuts)
    if bank.k >= 2 and len(rows):
        yield _kr20_part(scene, rows)
    yield from _lines(scene, rows)


def _bank_with_gold(scene: Scene, rows: Array, cuts: Array) -> Part:
    bank = scene.bank
    assert bank is not None
    old, new = two_of(scene)
    a, b, g = (bank.places[x] for x in (new, old, scene.gold))
    rows = rows[bank.complete[rows, g]]
    line = bank.line >= 0

    def cells(at: Array) -> Array:
        truth, there = bank.verdicts[at, g], line[at]
        mine, theirs = (bank.verdicts[at, x] != truth for x in (a, b))
        made = [
            _four(mine, theirs, there & valid).sum(axis=1, keepdims=True)
            for valid in (np.True_, truth == 0, truth == 1)
        ]
        passes = bank.totals[at, g][:, None] >= cuts
        right = [(bank.totals[at, x][:, None] >= cuts) == passes for x in (a, b)]
        return np.concatenate([*made, _four(*right)], axis=1)

    asks = [
        *_asks(ERRORS, old, new, [{}]),
        *_asks(ELEMENT_ACCEPTS, old, new, [{}]),
        *_asks(ELEMENT_REJECTS, old, new, [{}]),
    ]
    c = len(cuts)
    if c:
        asks += _asks(GATES, old, new, [{"cut": str(x)} for x in cuts])
    return Part(
        tally=_quad_tally(scene, rows, cells, 3 + c),
        asks=tuple(asks),
        given={
            "places": {
                "element_error": (0, 1),
                "false_accept": (1, 2),
                "false_reject": (2, 3),
                "gate_accuracy": (3, 3 + c),
            }
        },
    )


def _kr20_part(scene: Scene, rows: Array) -> Part:
    bank = scene.bank
    assert bank is not None
    old, new = two_of(scene)
    # A coefficient of the bank never stands without its value on gold, on the same responses.
    names = [new, old, *([scene.gold] if scene.gold else [])]
    places = [bank.places[name] for name in names]
    rows = rows[bank.complete[rows][:, places].all(axis=1)]
    k = bank.k

    def cells(at: Array) -> Array:
        met = (bank.verdicts[at][:, places, :k] == 1).astype(np.int64)
        total = met.sum(axis=2, keepdims=True)
        sides = np.concatenate([met, total, total**2], axis=2)
        return np.concatenate(
            [np.ones((len(at), 1), dtype=np.int64), sides.reshape(len(at), -1)], axis=1
        )

    return Part(
        tally=scene.summed(rows, cells, (1 + len(names) * (k + 2),)),
        asks=(
            (S_KR20, tuple(Key(grader=name) for name in names)),
            (S_KR20_MINUS, (Key(grader=new, other=old),)),
        ),
        given={"k": k},
    )


def _lines(scene: Scene, rows: Array) -> Iterable[Part]:
    """How often the verdict on each line went from no to yes and from yes to no."""
    bank = scene.bank
    assert bank is not None
    old, new = two_of(scene)
    mine, theirs = (bank.verdicts[rows, bank.places[g]] for g in (new, old))
    line = bank.line[rows]
    times = _times(scene, bank.responses)[rows]
    for before, after in (("0", "1"), ("1", "0")):
        at = (line >= 0) & (theirs == int(before)) & (mine == int(after))
        amount = np.broadcast_to(times[:, None], at.shape)[at]
        counts = np.bincount(line[at], weights=amount, minlength=len(bank.lines))
        used = np.flatnonzero(counts)
        if len(used):
            keys = tuple(
                Key(grader=new, other=old, class_=before, to_class=after, line=bank.lines[i])
                for i in used
            )
            yield Part(
                tally=None,
                totals=counts[used].astype(np.float64),
                asks=((S_LINE_CHANGED, keys),),
                given={"n": float(times.sum())},
            )


FAMILY = Family(
    name="comparison",
    statistics=(
        *(s.minus for s in SHARES),
        COUNT_MINUS,
        *(READ.own for READ in (SHARE_READ, ACCEPTS, REJECTS, YES)),
        *(S_CHANGED, S_CHANGED_RESPONSES, S_GATE_CHANGED),
        *(S_KAPPA_MINUS, S_KR20_MINUS),
        *(S_OUTCOME_MOVED, S_NEWLY_UNREAD, S_NEWLY_READ, S_LINE_CHANGED),
        *(S_CALLS, S_NOISE, S_BEYOND),
        *_P_VALUES,
    ),
    parts=parts,
    section="Comparing two graders or two versions",
    order=95,
    kinds=("comparison",),
)
