"""Agreement of two graders on the responses that both labelled, and what it is worth.

Conventions (each tool has its own; see the page on agreement): classes are all classes of the
scale, used or not, since Gwet's AC1 and Brennan–Prediger change with unused classes; kappa of two
graders that use one and the same class is not defined.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from voirdire.document import Block, Column, Figure, Kind, Paragraph, Table, cell
from voirdire.errors import UndefinedWarning
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Key
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.wording import Name, Text, linked, number, percent, say

__all__ = [
    "brennan_prediger",
    "cohen_kappa",
    "gwet_ac",
    "percent_agreement",
    "scott_pi",
]

MOST_GRADERS_FOR_PAIRS = 30
MOST_PAIRS_SHOWN = 66
ONE_CLASS = "not defined: one class used"
NO_COMMON = "the graders share no response that both could be read on"

# The letters of the formulas, and what of them is a convention.
LETTERS = (
    "n_cd: the common responses that the grader calls c and the other d, n their sum; p_c, q_c: the "
    "shares of class c among the labels of the grader and of the other there"
)
BEYOND = r"\frac{p_{o} - p_{e}}{1 - p_{e}}"
OBSERVED = r"p_{o} = \frac{1}{n} \sum_{c} n_{cc}"
WEIGHTED = r"p_{o} = \frac{1}{n} \sum_{c,d} w_{cd}\, n_{cd}"
MEAN_SHARE = "m_c = (p_c + q_c)/2"
UNUSED = "k: the number of classes, of the scale and off it, used or not; an unused class changes the value"
ONE_USED = (
    "Where both use one and the same class tools give 1, nan or an error; here it is undefined."
)

AGREEMENT = Estimand(
    name="agreement",
    title="Agreement",
    question="On which share of their common responses do the two give the same class?",
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    low=0,
    high=1,
    reading="Read it beside the class counts, the best constant answer and kappa.",
    moves_with=("how common each class is in the bank",),
    undefined_when=NO_COMMON,
    source=Source(text="Gwet 2014, Handbook of Inter-Rater Reliability, ch. 2"),
    formula=OBSERVED,
    conventions=f"{LETTERS}. Responses that either could not be read on are left out.",
)
CHANCE = Estimand(
    name="chance_agreement",
    title="Agreement by chance",
    question="How often would two graders with these class shares agree if neither looked?",
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    low=0,
    high=1,
    undefined_when=NO_COMMON,
    source=Source(text="Cohen 1960, Educational and Psychological Measurement 20(1), p. 40"),
    formula=r"p_{e} = \sum_{c} p_{c}\, q_{c}",
    conventions=f"{LETTERS}.",
)
KAPPA = Estimand(
    name="cohen_kappa",
    title="Cohen’s kappa",
    question="How far do the two agree beyond what their class shares alone would give?",
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    low=-1,
    high=1,
    reading="1: perfect, 0: as by chance. It sinks where one class is rare, whatever the graders do.",
    moves_with=("how common each class is in the bank",),
    undefined_when=ONE_CLASS,
    source=Source(text="Cohen 1960, Educational and Psychological Measurement 20(1), p. 40"),
    formula=rf"\kappa = {BEYOND}, \quad {OBSERVED}, \quad p_{{e}} = \sum_{{c}} p_{{c}}\, q_{{c}}",
    conventions=f"{LETTERS}. Pairs of graders may rest on different responses. {ONE_USED}",
)
AC1 = Estimand(
    name="gwet_ac1",
    title="Gwet’s AC1",
    question="How far do the two agree beyond a chance that shrinks where one class dominates?",
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    low=-1,
    high=1,
    reading="It does not sink with a rare class as kappa does; it changes with unused classes.",
    moves_with=("the number of classes", "how common each class is in the bank"),
    undefined_when="fewer than two classes",
    source=Source(
        text="Gwet 2008, British Journal of Mathematical and Statistical Psychology 61, p. 35"
    ),
    formula=rf"\mathrm{{AC}}_{{1}} = {BEYOND}, \quad {OBSERVED}, \quad p_{{e}} = \frac{{1}}{{k - 1}} \sum_{{c}} m_{{c}} (1 - m_{{c}})",
    conventions=f"{LETTERS}; {MEAN_SHARE}; {UNUSED}.",
)
BP = Estimand(
    name="brennan_prediger",
    title="Brennan–Prediger",
    question="How far do the two agree beyond a chance of one in the number of classes?",
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    low=-1,
    high=1,
    reading="With two classes it is PABAK, 2 × agreement − 1.",
    moves_with=("the number of classes",),
    undefined_when="fewer than two classes",
    source=Source(
        text="Brennan and Prediger 1981, Educational and Psychological Measurement 41, p. 693"
    ),
    formula=rf"{BEYOND}, \quad {OBSERVED}, \quad p_{{e}} = \frac{{1}}{{k}}",
    conventions=f"{LETTERS}; {UNUSED}.",
)


_WEIGHTS = {
    "linear": r"\frac{|c - d|}{k - 1}",
    "quadratic": r"\left(\frac{c - d}{k - 1}\right)^{2}",
}


def _weighted_kappa(kind: str, formula: str) -> Estimand:
    return Estimand(
        name=f"weighted_kappa_{kind}",
        title=f"Weighted kappa, {kind}",
        question=f"How far do the two agree beyond chance where {formula}?",
        describes=Describes.BOTH,
        keys=("grader", "other"),
        unit=Unit.COEFFICIENT,
        scale=Scale.FISHER_Z,
        needs=("label", "scale"),
        low=-1,
        high=1,
        reading=(
            "On the ordered classes only; labels off the scale are left out. It hides a collapse onto "
            "the neighbouring class, which it counts as near agreement."
        ),
        moves_with=("how common each class is in the bank", "the number of classes"),
        undefined_when=ONE_CLASS,
        source=Source(text="Cohen 1968, Psychological Bulletin 70(4), p. 215"),
        formula=(
            rf"\kappa_{{w}} = {BEYOND}, \quad {WEIGHTED}, "
            r"\quad p_{e} = \sum_{c,d} w_{cd}\, p_{c}\, q_{d}, \quad w_{cd} = 1 - " + _WEIGHTS[kind]
        ),
        conventions=(
            f"{LETTERS}, both on the scale; c and d also count steps on the scale, k is the number of its "
            "classes, used or not. Weights are of agreement (1 on the diagonal); tools that ask for weights "
            f"of disagreement take 1 − w_cd. {ONE_USED}"
        ),
    )


KAPPA_LINEAR = _weighted_kappa("linear", "a step on the scale costs the same anywhere")
KAPPA_QUADRATIC = _weighted_kappa("quadratic", "the cost of a difference grows with its square")
SCOTT = Estimand(
    name="scott_pi",
    title="Scott’s pi",
    question="How far do the two agree beyond a chance in which both have the mean class shares?",
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    low=-1,
    high=1,
    reading="It sinks where one class is rare, as kappa does.",
    moves_with=("how common each class is in the bank",),
    undefined_when=ONE_CLASS,
    source=Source(text="Scott 1955, Public Opinion Quarterly 19(3), p. 323"),
    formula=rf"\pi = {BEYOND}, \quad {OBSERVED}, \quad p_{{e}} = \sum_{{c}} m_{{c}}^{{2}}",
    conventions=f"{LETTERS}; {MEAN_SHARE}. {ONE_USED}",
)
AC2 = Estimand(
    name="gwet_ac2_quadratic",
    title="Gwet’s AC2, quadratic",
    question="How far do the two agree on an ordered scale, beyond a chance that skew does not inflate?",
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    needs=("label", "scale"),
    high=1,  # no −1 below: on a long scale the chance can be above a half
    reading="On the ordered classes only. It does not sink with a rare class as weighted kappa does.",
    moves_with=("the number of classes",),
    undefined_when="fewer than two classes",
    source=Source(text="Gwet 2014, Handbook of Inter-Rater Reliability, 4th ed., ch. 3"),
    formula=rf"\mathrm{{AC}}_{{2}} = {BEYOND}, \quad {WEIGHTED}, \quad p_{{e}} = \frac{{\sum_{{c,d}} w_{{cd}}}}{{k(k - 1)}} \sum_{{c}} m_{{c}} (1 - m_{{c}}), \quad "
    r"w_{cd} = 1 - \left(\frac{c - d}{k - 1}\right)^{2}",
    conventions=f"{LETTERS}, both on the scale; {MEAN_SHARE}; c and d also count steps on the scale, k is the number of its classes, used or not.",
)
LISTWISE = Estimand(
    name="cohen_kappa_listwise",
    title="Cohen’s kappa, listwise",
    question="How far do the two agree beyond chance on the responses that the whole panel labelled?",
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    low=-1,
    high=1,
    reading="Kappas of different pairs can be compared only on the same responses.",
    moves_with=("how common each class is among the responses that all labelled",),
    undefined_when=ONE_CLASS,
    source=Source(text="Cohen 1960, Educational and Psychological Measurement 20(1), p. 40"),
    formula=KAPPA.formula,
    conventions=f"{LETTERS}, on the responses that the whole panel labelled. It is given where these are not all of the responses. {ONE_USED}",
)
CLASS_AGREEMENT = Estimand(
    name="class_agreement",
    title="Agreement on a class",
    question="Of the labels of this class that either gives, which share do both give?",
    describes=Describes.BOTH,
    keys=("grader", "other", "class"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    low=0,
    high=1,
    reading="2 × both / (one + other): positive agreement on the class.",
    undefined_when="neither gives the class",
    source=Source(text="Cicchetti and Feinstein 1990, Journal of Clinical Epidemiology 43, p. 554"),
    formula=r"\frac{2\, n_{cc}}{\sum_{d} n_{cd} + \sum_{d} n_{dc}}",
    conventions=f"{LETTERS}.",
)
CONSTANT = (
    "n_hc: how often the other gives class c, over all its readable labels and not only common ones. In a "
    "resampled bank the class stays the one that is most frequent in the whole bank."
)
FLOOR = Estimand(
    name="competence_floor",
    title="Competence floor",
    question="How often would a grader agree that always gives the reference’s most frequent class?",
    describes=Describes.BANK,
    keys=("other",),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    low=0,
    high=1,
    undefined_when="the reference gave no readable label",
    source=Source(text='"The Missing Compliance Class", Table 12'),
    formula=r"\frac{\max_{c} n_{hc}}{\sum_{c} n_{hc}}",
    conventions=CONSTANT,
)
BEST_CONSTANT = Estimand(
    name="best_constant_agreement",
    title="Best constant answer",
    question="Which agreement does the best answer that never changes reach?",
    describes=Describes.BANK,
    keys=("other",),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    low=0,
    high=1,
    reading="An agreement that is not above it shows no more than knowing the most frequent class.",
    undefined_when="the other gave no readable label",
    source=Source(text='"The Missing Compliance Class", Table 12'),
    formula=FLOOR.formula,
    conventions=CONSTANT,
)


def _n(cells: Array, given: Given) -> Array:
    return np.asarray(cells.sum((-2, -1))[..., None])


def _same(cells: Array) -> Array:
    return np.asarray(np.trace(cells, axis1=-2, axis2=-1))


def observed(cells: Array, weights: Array | None = None) -> Array:
    """Observed agreement ``(...,)`` from label pairs ``(..., k, k)``, weighted where weights are given."""
    n = cells.sum((-2, -1))
    same = _same(cells) if weights is None else (cells * weights).sum((-2, -1))
    return np.asarray(same / n)


def chance_cohen(cells: Array, weights: Array | None = None) -> Array:
    """Chance agreement from both graders' class shares."""
    share = cells / cells.sum((-2, -1))[..., None, None]
    rows, columns = share.sum(-1), share.sum(-2)
    if weights is None:
        return np.asarray((rows * columns).sum(-1))
    return np.asarray(np.einsum("...i,ij,...j->...", rows, weights, columns))


def chance_scott(cells: Array, weights: Array | None = None) -> Array:
    """Chance agreement from the mean of both graders' class shares."""
    share = cells / cells.sum((-2, -1))[..., None, None]
    mean = (share.sum(-1) + share.sum(-2)) / 2
    if weights is None:
        return np.asarray((mean**2).sum(-1))
    return np.asarray(np.einsum("...i,ij,...j->...", mean, weights, mean))


def chance_gwet(cells: Array, weights: Array | None = None) -> Array:
    """Gwet's chance agreement from the mean class shares and the number of classes."""
    k = cells.shape[-1]
    share = cells / cells.sum((-2, -1))[..., None, None]
    mean = (share.sum(-1) + share.sum(-2)) / 2
    total = float(k) if weights is None else float(weights.sum())
    if k < 2:
        return np.full(mean.shape[:-1], np.nan)
    return np.asarray(total / (k * (k - 1)) * (mean * (1 - mean)).sum(-1))


def chance_uniform(cells: Array, weights: Array | None = None) -> Array:
    """Chance agreement of graders that pick every class equally often."""
    k = cells.shape[-1]
    total = float(k) if weights is None else float(weights.sum())
    return np.full(cells.shape[:-2], total / k**2 if k > 1 else np.nan)


def beyond_chance(agreement: Array, chance: Array) -> Array:
    """``(agreement − chance) / (1 − chance)``; nan where chance alone is certain to agree."""
    certain = chance >= 1 - 1e-12
    return np.where(certain, np.nan, (agreement - chance) / np.where(certain, 1, 1 - chance))


Chance = Callable[..., Array]


def _coefficient(chance: Chance) -> Callable[[Array, Given], Array]:
    def solve(cells: Array, given: Given) -> Array:
        return beyond_chance(observed(cells), chance(cells))[..., None]

    return solve


def _from_agreement(chance: Chance) -> Callable[[Array, Array, Given], Array]:
    def at(share: Array, totals: Array, given: Given) -> Array:
        constant = ((totals.sum(-1) > 0).sum(-1) == 1) | ((totals.sum(-2) > 0).sum(-1) == 1)
        value = beyond_chance(share, chance(totals)[..., None])
        if chance is not chance_cohen:
            return value
        # Beside a grader that never varies kappa is 0, whatever the agreement.
        always_0 = constant & (_same(totals) < totals.sum((-2, -1)))
        return np.where(always_0[..., None], np.nan, value)

    return at


def _agreement_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    return _same(cells)[..., None], _n(cells, given)


def _class_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    both = np.diagonal(cells, axis1=-2, axis2=-1)
    return np.asarray(both), np.asarray(cells.sum(-1) + cells.sum(-2) - both)


def _class_agreement(cells: Array, given: Given) -> Array:
    both, either = _class_parts(cells, given)
    return np.asarray(2 * both / (either + both))


def _no_common_or_one_class(totals: Array, given: Given) -> Sequence[str]:
    return [NO_COMMON if totals.sum() == 0 else ONE_CLASS]


S_AGREEMENT = Statistic(
    estimand=AGREEMENT,
    solve=lambda cells, given: observed(cells)[..., None],
    n=_n,
    share=_agreement_parts,
)
S_CHANCE = Statistic(
    estimand=CHANCE, solve=lambda cells, given: chance_cohen(cells)[..., None], n=_n
)
S_KAPPA = Statistic(
    estimand=KAPPA,
    solve=_coefficient(chance_cohen),
    n=_n,
    share=_agreement_parts,
    from_share=_from_agreement(chance_cohen),
    reason=_no_common_or_one_class,
)
S_AC1 = Statistic(
    estimand=AC1,
    solve=_coefficient(chance_gwet),
    n=_n,
    share=_agreement_parts,
    from_share=_from_agreement(chance_gwet),
)
S_BP = Statistic(
    estimand=BP,
    solve=_coefficient(chance_uniform),
    n=_n,
    share=_agreement_parts,
    from_share=_from_agreement(chance_uniform),
)
S_SCOTT = Statistic(
    estimand=SCOTT,
    solve=_coefficient(chance_scott),
    n=_n,
    share=_agreement_parts,
    from_share=_from_agreement(chance_scott),
    reason=_no_common_or_one_class,
)


def _on_scale(cells: Array, given: Given) -> Array:
    return cells[..., : given["size"], : given["size"]]


def _weighted(chance: Chance, kind: str) -> Callable[[Array, Given], Array]:
    def solve(cells: Array, given: Given) -> Array:
        ordered = _on_scale(cells, given)
        weights = agreement_weights(ordered.shape[-1], kind)
        return beyond_chance(observed(ordered, weights), chance(ordered, weights))[..., None]

    return solve


def _n_on_scale(cells: Array, given: Given) -> Array:
    return _n(_on_scale(cells, given), given)


S_LINEAR = Statistic(
    estimand=KAPPA_LINEAR,
    solve=_weighted(chance_cohen, "linear"),
    n=_n_on_scale,
    reason=lambda totals, given: _no_common_or_one_class(_on_scale(totals, given), given),
)
S_QUADRATIC = Statistic(
    estimand=KAPPA_QUADRATIC,
    solve=_weighted(chance_cohen, "quadratic"),
    n=_n_on_scale,
    reason=lambda totals, given: _no_common_or_one_class(_on_scale(totals, given), given),
)
S_AC2 = Statistic(estimand=AC2, solve=_weighted(chance_gwet, "quadratic"), n=_n_on_scale)
S_LISTWISE = Statistic(
    estimand=LISTWISE,
    solve=_coefficient(chance_cohen),
    n=_n,
    share=_agreement_parts,
    from_share=_from_agreement(chance_cohen),
    reason=_no_common_or_one_class,
)
S_CLASS = Statistic(
    estimand=CLASS_AGREEMENT,
    solve=_class_agreement,
    n=lambda cells, given: _class_parts(cells, given)[1],
    share=_class_parts,
    from_share=lambda share, totals, given: 2 * share / (1 + share),
)


def _labels(cells: Array, given: Given) -> Array:
    return np.asarray(cells.sum(-1)[..., None])


def _most_frequent_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    return cells[..., given["mode"], None], _labels(cells, given)


def _most_frequent(cells: Array, given: Given) -> Array:
    # The class of all the labels: the largest share of each replicate is above it on average.
    labels, all_labels = _most_frequent_parts(cells, given)
    return np.asarray(labels / all_labels)


S_FLOOR = Statistic(estimand=FLOOR, solve=_most_frequent, n=_labels, share=_most_frequent_parts)
S_CONSTANT = Statistic(
    estimand=BEST_CONSTANT, solve=_most_frequent, n=_labels, share=_most_frequent_parts
)


def pairs(scene: Scene) -> list[tuple[str, str]]:
    """Every grader against gold and reference, then every other pair once, in grader order."""
    made = [(g, s) for s in scene.standards for g in scene.names if g not in (s, scene.gold)]
    others = [g for g in scene.panel if g != scene.reference]
    if len(scene.panel) <= MOST_GRADERS_FOR_PAIRS:
        made += [(a, b) for i, a in enumerate(others) for b in others[i + 1 :]]
    return made


def parts(scene: Scene) -> Iterable[Part]:
    for statistic, standard in ((S_CONSTANT, scene.gold), (S_FLOOR, scene.reference)):
        yield from _constants(scene, statistic, standard)
    if scene.grid is None:
        return
    unweighted = (S_AGREEMENT, S_CHANCE, S_KAPPA, S_SCOTT, S_AC1, S_BP)
    weighted = (S_LINEAR, S_QUADRATIC, S_AC2) if scene.ordered and len(scene.scale) > 2 else ()
    listwise = _listwise(scene)
    for grader, other in pairs(scene):
        key = (Key(grader=grader, other=other),)
        classes = tuple(Key(grader=grader, other=other, class_=c) for c in scene.classes)
        asks = (*((s, key) for s in (*unweighted, *weighted)), (S_CLASS, classes))
        given = {"size": len(scene.scale)}
        yield Part(tally=scene.pair_tally(grader, other), asks=asks, given=given)
        if listwise is not None and scene.gold != other:
            yield Part(tally=listwise.pair_tally(grader, other), asks=((S_LISTWISE, key),))


def _listwise(scene: Scene) -> Scene | None:
    """The scene on the responses that the whole panel labelled, where that is fewer than all."""
    grid = scene.grid
    if grid is None or not 3 <= len(scene.panel) <= MOST_GRADERS_FOR_PAIRS:
        return None
    places = [grid.graders.index(g) for g in scene.panel]
    there = grid.codes[:, places] >= 0
    complete = np.asarray(there.all(axis=1))
    if not complete.any() or np.array_equal(there.any(axis=1), complete):
        return None
    return scene.of_grid(grid.only(np.broadcast_to(complete[:, None], grid.codes.shape)))


def _constants(scene: Scene, statistic: Statistic, standard: str) -> Iterable[Part]:
    if not standard:
        return
    both = (S_FLOOR, S_CONSTANT) if statistic is S_FLOOR else (statistic,)
    key = (Key(other=standard),)
    asks = tuple((s, key) for s in both)
    if scene.grid is not None:
        tally = scene.labels_tally(standard)
        if tally.count:
            yield Part(tally=tally, asks=asks, given={"mode": int(tally.total.argmax())})
        return
    counts = scene.count_row(standard)[0]
    mode = 0 if np.isnan(counts).any() else int(counts.argmax())
    yield Part(tally=None, totals=counts, asks=asks, given={"mode": mode})


# --- plain array functions ----------------------------------------------------------------------


def codes(values: Any, classes: Sequence[Any]) -> Array:
    """The place of each value in ``classes``; −1 for a missing one (None or nan)."""
    place = {c: i for i, c in enumerate(classes)}
    found = []
    for value in np.asarray(values, dtype=object).ravel().tolist():
        if value is None or (isinstance(value, float) and value != value):
            found.append(-1)
        elif value in place:
            found.append(place[value])
        else:
            raise ValueError(f"{value!r} is not among the classes {list(classes)!r}")
    return np.array(found, dtype=np.int64)


def all_classes(*columns: Any) -> list[Any]:
    """Every value that occurs, without the missing ones, in sorted order."""
    seen = {
        v
        for column in columns
        for v in np.asarray(column, dtype=object).ravel().tolist()
        if v is not None and v == v
    }
    try:
        return sorted(seen)
    except TypeError:
        return sorted(seen, key=str)


def agreement_weights(k: int, weights: str | Array | None) -> Array | None:
    """Agreement weights ``(k, k)`` by name (``linear``, ``quadratic``), as given, or none."""
    if weights is None or (isinstance(weights, str) and weights == "unweighted"):
        return None
    if isinstance(weights, str):
        apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / max(k - 1, 1)
        if weights == "linear":
            return np.asarray(1 - apart)
        if weights == "quadratic":
            return np.asarray(1 - apart**2)
        raise ValueError(f"weights {weights!r}: use None, 'linear', 'quadratic' or a matrix")
    return np.asarray(weights, dtype=np.float64)


def pair_counts(a: Any, b: Any, classes: Sequence[Any] | None) -> Array:
    """Label pairs ``(k, k)`` where both are there."""
    classes = all_classes(a, b) if classes is None else classes
    x, y = codes(a, classes), codes(b, classes)
    if len(x) != len(y):
        raise ValueError(f"{len(x)} labels beside {len(y)}: the two must be as long as each other")
    both = (x >= 0) & (y >= 0)
    k = len(classes)
    return np.bincount(x[both] * k + y[both], minlength=k * k).reshape(k, k).astype(np.float64)


def said(value: Any, why: str) -> float:
    """The value as a float, or nan with an :class:`UndefinedWarning`."""
    number = float(value)
    if not np.isfinite(number):
        warnings.warn(why, UndefinedWarning, stacklevel=3)
        return float("nan")
    return number


def percent_agreement(a: Any, b: Any) -> float:
    """The share of pairs that are the same, among those where neither is missing, in 0–1.

    ``a`` and ``b`` are labels of the same responses, ``(n,)``. nan with an ``UndefinedWarning``
    where no pair is complete.
    """
    counts = pair_counts(a, b, None)
    with np.errstate(invalid="ignore"):
        return said(observed(counts) if counts.sum() else np.nan, NO_COMMON)


def _plain(
    chance: Callable[[Array, Array | None], Array],
    a: Any,
    b: Any,
    classes: Sequence[Any] | None,
    weights: Any,
    why: str,
) -> float:
    counts = pair_counts(a, b, classes)
    if not counts.sum():
        return said(np.nan, NO_COMMON)
    w = agreement_weights(len(counts), weights)
    return said(beyond_chance(observed(counts, w), chance(counts, w)), why)


def cohen_kappa(a: Any, b: Any, classes: Sequence[Any] | None = None, weights: Any = None) -> float:
    """Cohen's kappa of two label columns ``(n,)``, in −1 to 1.

    ``classes`` gives all classes in order (default: those that occur); ``weights`` is ``None``,
    ``"linear"``, ``"quadratic"`` or a ``(k, k)`` matrix of agreement weights. Pairs with a missing
    label are left out. nan with an ``UndefinedWarning`` where one class is used throughout.
    Source: Cohen 1960, p. 40; weighted: Cohen 1968, Psychological Bulletin 70, p. 215.
    """
    return _plain(chance_cohen, a, b, classes, weights, ONE_CLASS)


def gwet_ac(a: Any, b: Any, classes: Sequence[Any] | None = None, weights: Any = None) -> float:
    """Gwet's AC1 of two label columns, or AC2 where ``weights`` are given; at most 1.

    Arguments as for :func:`cohen_kappa`. Pass all classes: unused ones change the value. nan with an
    ``UndefinedWarning`` where there are fewer than two classes. Source: Gwet 2008, p. 35.
    """
    return _plain(chance_gwet, a, b, classes, weights, "fewer than two classes")


def scott_pi(a: Any, b: Any, classes: Sequence[Any] | None = None, weights: Any = None) -> float:
    """Scott's pi of two label columns ``(n,)``, in −1 to 1.

    Arguments as for :func:`cohen_kappa`. nan with an ``UndefinedWarning`` where one class is used
    throughout. Source: Scott 1955, p. 323.
    """
    return _plain(chance_scott, a, b, classes, weights, ONE_CLASS)


def brennan_prediger(
    a: Any, b: Any, classes: Sequence[Any] | None = None, weights: Any = None
) -> float:
    """Brennan and Prediger's coefficient of two label columns; at most 1.

    Arguments as for :func:`cohen_kappa`. nan with an ``UndefinedWarning`` where there are fewer
    than two classes. Source: Brennan and Prediger 1981, p. 693.
    """
    return _plain(chance_uniform, a, b, classes, weights, "fewer than two classes")


# --- the report ---------------------------------------------------------------------------------


def matrix(scene: Scene, estimates: Estimates) -> list[Block]:
    """The kappas of all pairs of a panel of 3 to 30 as one figure, with n in each cell."""
    graders = scene.panel
    if not 3 <= len(graders) <= MOST_GRADERS_FOR_PAIRS:
        return []
    cells = []
    for i, row in enumerate(graders):
        for column in graders[:i]:
            kappa = estimates.get(
                "cohen_kappa", grader=column, other=row, slice=scene.slice
            ) or estimates.get("cohen_kappa", grader=row, other=column, slice=scene.slice)
            if kappa is not None:
                said = {"value": kappa.number, "n": kappa.n, "reason": kappa.reason}
                cells.append({"row": row, "column": column, **said})
    known = [c for c in cells if c["value"] is not None]
    if not known:
        return []
    order = sorted(known, key=lambda c: (float(c["value"] or 0), str(c["row"]), str(c["column"])))

    def pair(cell: dict[str, Any]) -> Text:
        value = number(float(str(cell["value"])), 2)
        return (Name(str(cell["row"])), " and ", Name(str(cell["column"])), f" {value}")

    return [
        Figure(
            name="pairwise_matrix",
            title="How far every two graders agree beyond chance",
            data={
                "graders": [
                    {
                        "grader": g,
                        "note": "reference" if g == scene.reference else "",
                        "flagged": g in scene.flagged,
                    }
                    for g in graders
                ],
                "cells": cells,
                "coefficient": "kappa",
            },
            alt=(
                f"Kappa of {len(cells)} pairs of {len(graders)} graders; lowest: ",
                *pair(order[0]),
                "; highest: ",
                *pair(order[-1]),
                ".",
            ),
            caption=(
                "Cohen’s kappa over the number of responses that both labelled, which differs from "
                "pair to pair. Kappa sinks where one class is rare.",
            ),
        )
    ]


def kappa_figure(scene: Scene, estimates: Estimates, standard: str) -> list[Block]:
    """Kappa with gold or the reference against the first rate: one grader a dot."""
    graders = [g for g in scene.panel if g != standard]
    if not scene.rates or len(graders) < 3:
        return []
    rate = scene.rates[0].name

    def ends(found: Estimate | None) -> tuple[float | None, float | None, float | None]:
        if found is None:
            return None, None, None
        interval = found.interval
        return found.number, *((interval.low, interval.high) if interval else (None, None))

    dots: list[dict[str, Any]] = []
    for grader in graders:
        key = {"slice": scene.slice}
        kappa = estimates.get("cohen_kappa", grader=grader, other=standard, **key)
        held = estimates.get("rate", grader=grader, class_=rate, **key)
        names = ("kappa", "kappa_low", "kappa_high", "rate", "rate_low", "rate_high")
        dot = dict(zip(names, (*ends(kappa), *ends(held)), strict=True))
        note = "person" if scene.by_name[grader].person else ""
        n = kappa.n if kappa is not None else None
        dots.append(
            {"grader": grader, **dot, "n": n, "note": note, "flagged": grader in scene.flagged}
        )
    known = [d for d in dots if d["kappa"] is not None and d["rate"] is not None]
    if len(known) < 3:
        return []
    own = estimates.get("rate", grader=standard, class_=rate, slice=scene.slice)
    said = linked(
        (
            (Name(str(d["grader"])), f" {number(d['kappa'], 2)} at {percent(d['rate'])}")
            for d in sorted(known, key=lambda d: (-float(d["kappa"] or 0), str(d["grader"])))[:12]
        ),
        ", ",
    )
    word = "gold" if standard == scene.gold else "the reference"
    return [
        Figure(
            name="kappa_rate",
            title=f"Agreement with {word} beside the rate that each grader reports",
            data={
                "coefficient": "Cohen’s kappa",
                "standard": standard,
                "standard_rate": own.number if own is not None else None,
                "rate": rate,
                "dots": dots,
            },
            alt=(
                "Dots, one a grader: kappa with ", Name(standard), " upwards, the rate of ", Name(rate),
                " to the right: ", *said, ".",
            ),
            caption=say(
                "Graders of much the same kappa may report rates far apart: a coefficient of agreement "
                "does not say which class the disagreement costs. The dashed line is the rate of "
                "{standard}.",
                standard=Name(standard),
            ),
        )
    ]  # fmt: skip


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    made: list[Block] = []
    for standard in scene.standards:
        rows = []
        constant = estimates.get("best_constant_agreement", other=standard, slice=scene.slice)
        for agreement in estimates.of("agreement", other=standard, slice=scene.slice):
            grader = agreement.key.grader
            key = {"grader": grader, "other": standard, "slice": scene.slice}
            rows.append(
                (
                    cell(Name(grader)),
                    cell(agreement),
                    cell(constant),
                    cell(estimates.get("chance_agreement", **key)),
                    *(
                        cell(estimates.get(s, **key))
                        for s in ("cohen_kappa", "gwet_ac1", "brennan_prediger")
                    ),
                    cell(agreement.n, Kind.COUNT),
                )
            )
        if rows:
            word = "gold" if standard == scene.gold else "the reference"
            made.append(
                Table(
                    title=f"Agreement with {word}",
                    columns=(
                        Column(title="grader", kind=Kind.NAME),
                        Column(title="agreement", kind=Kind.SHARE),
                        Column(title="best constant answer", kind=Kind.SHARE),
                        Column(title="by chance", kind=Kind.SHARE),
                        Column(title="kappa", kind=Kind.COEFFICIENT),
                        Column(title="AC1", kind=Kind.COEFFICIENT),
                        Column(title="Brennan–Prediger", kind=Kind.COEFFICIENT),
                        Column(title="responses", kind=Kind.COUNT),
                    ),
                    rows=tuple(rows),
                    note=say(
                        "With {standard}, on common responses. Kappa sinks where one class is rare; "
                        "AC1 and Brennan–Prediger do not. None of them shows a missing class.",
                        standard=Name(standard),
                    ),
                )
            )
            made += kappa_figure(scene, estimates, standard)
    others = [
        e
        for e in estimates.of("cohen_kappa", slice=scene.slice)
        if e.key.other not in scene.standards
    ]
    made += matrix(scene, estimates)
    if others and len(others) <= MOST_PAIRS_SHOWN:
        made.append(_pair_table(scene, estimates, others))
    elif others:
        made.append(
            Paragraph(
                text=(
                    f"The {len(others)} pairs are in the results (-o results.csv); a table of more than "
                    f"{MOST_PAIRS_SHOWN} is not read.",
                )
            )
        )
    return made


def _pair_table(scene: Scene, estimates: Estimates, others: Sequence[Estimate]) -> Table:
    """Every pair once: what each coefficient says, on how many responses, listwise beside pairwise."""
    listwise = bool(estimates.of("cohen_kappa_listwise", slice=scene.slice))
    weighted = bool(estimates.of("weighted_kappa_linear", slice=scene.slice))
    coefficients = [("kappa", "cohen_kappa")]
    if listwise:
        coefficients.append(("kappa, listwise", "cohen_kappa_listwise"))
    if weighted:
        coefficients += [
            ("linear kappa", "weighted_kappa_linear"),
            ("quadratic kappa", "weighted_kappa_quadratic"),
        ]
    coefficients += [("Scott’s pi", "scott_pi"), ("AC1", "gwet_ac1")]
    if weighted:
        coefficients.append(("AC2, quadratic", "gwet_ac2_quadratic"))
    rows = []
    for kappa in others:
        key = {"grader": kappa.key.grader, "other": kappa.key.other, "slice": scene.slice}
        complete = estimates.get("cohen_kappa_listwise", **key)
        rows.append(
            (
                cell(Name(kappa.key.grader)),
                cell(Name(kappa.key.other)),
                cell(estimates.get("agreement", **key)),
                cell(estimates.get("chance_agreement", **key)),
                *(cell(estimates.get(name, **key)) for _, name in coefficients),
                cell(kappa.n, Kind.COUNT),
                *((cell(complete.n if complete else None, Kind.COUNT),) if listwise else ()),
            )
        )
    note = "On the responses that both labelled"
    note += (
        "; these differ from pair to pair. Listwise: on those that the whole panel labelled."
        if listwise
        else "."
    )
    return Table(
        title="Agreement of every pair",
        columns=(
            Column(title="grader", kind=Kind.NAME),
            Column(title="other", kind=Kind.NAME),
            Column(title="agreement", kind=Kind.SHARE),
            Column(title="by chance", kind=Kind.SHARE),
            *(Column(title=title, kind=Kind.COEFFICIENT) for title, _ in coefficients),
            Column(title="responses", kind=Kind.COUNT),
            *((Column(title="all labelled", kind=Kind.COUNT),) if listwise else ()),
        ),
        rows=tuple(rows),
        note=(f"{note} Kappa and pi sink where one class is rare; AC1 and AC2 do not.",),
    )


FAMILY = Family(
    name="pairwise",
    statistics=(
        S_AGREEMENT,
        S_CHANCE,
        S_KAPPA,
        S_LISTWISE,
        S_LINEAR,
        S_QUADRATIC,
        S_SCOTT,
        S_AC1,
        S_AC2,
        S_BP,
        S_CLASS,
        S_FLOOR,
        S_CONSTANT,
    ),
    parts=parts,
    section="Agreement",
    order=50,
    blocks=blocks,
)
