"""Does the wording matter? Decisions that flip between phrasings, and components of responses × phrasings.

Repeats under one prompt hold the wording fixed; only a varied wording shows what the grader's
instruction does, even where the grader is deterministic. First comes the share of responses whose
decision differs between any two phrasings. Where decisions are scores (numbers, a scale of two classes,
totals of a checklist), variance components follow: by analysis of variance where every response has a
score under every phrasing, else by restricted likelihood. A component is given as computed (*raw*, it
can be negative) and as used (then 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from voirdire.document import Block, Cell, Column, Figure, Kind, Paragraph, Table, Tone, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Interval, Key
from voirdire.grid import NO_MAJORITY as ELECTED_NOBODY
from voirdire.grid import Phrasings
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic, remembered
from voirdire.stats.crossed_design import S_RAW, S_USED, components_from
from voirdire.stats.random_effects import (
    analysis_of_variance,
    chi_square_interval,
    combination_interval,
    dependability_interval,
    fixed_columns_interval,
    modified_large_sample,
    reml_components,
)
from voirdire.tally import Tally, summed_by_cluster
from voirdire.wording import Name, Text, counted, listed, number, percent, plural, say

__all__ = ["flip_rate"]

PHRASINGS = "phrasings"  # the ``other`` of components that a checklist also has over its positions
MOST_LISTED = 20  # responses that flip, named in the report
MOST_LEVELS = 30  # scores up to which ranks have an interval
MOST_CLUSTERED = 20_000  # responses up to which components within clusters are worked out
FINEST = 1 << 20  # steps of a scale with many decimal places
LARGEST = Decimal("1e75")  # a score whose fourth power is still a number
SECTION = "Does the wording matter?"
MLS, GENERALISED = "modified_large_sample", "generalised_confidence"
F_RATIO = "f_ratio"
FIXED = "percentile_fixed_phrasings"

NO_RESPONSE = "no response was graded under every phrasing"
NO_PAIR = "no response could be read under two phrasings"
TOO_FEW = "fewer than two responses have scores under two phrasings"
NOTHING_VARIES = "all scores are the same: there is no variance to divide"
SAME_DECISION = "all decisions at this cut are the same: there is no variance to divide"
NO_DESIGN_WEIGHTS = (
    "with cells missing it is said by restricted likelihood, which takes no design weights"
)
NO_CLUSTER_WEIGHTS = "components of clusters take no design weights"
WEIGHED = "its interval takes responses as drawn alike, and these have design weights"
GROUPED = (
    "responses stand in clusters and cells are missing: the interval at hand would take them as "
    "independent"
)
FEW_CLUSTERS = "fewer than three clusters, or none with two responses"
MANY = f"there are more than {MOST_CLUSTERED:,} responses"
MANY_LEVELS = f"there are more than {MOST_LEVELS} different scores"
NO_VALUE_RANGE = "one side of the comparison has one score only"
BELOW = "as computed its interval lies below 0: it differs less than noise would"
NOTHING_LEFT = "the components leave nothing to chance"
NO_SPREAD = "as computed the responses differ less than noise would, and its whole interval is 0"
FEW_SCORES = "too few scores: its interval needs three responses, and a score under every phrasing"
BY_LIKELIHOOD = "its interval is made from the components"

BRENNAN = "Brennan 2001, Generalizability Theory"
TWM = "“Three Ways Classical Test Theory Can Mislead About LLM Judges”"
DESIGN = Source(text=f"{TWM}, Appendix A.5; {BRENNAN}, ch. 2")


# --- estimands ------------------------------------------------------------------------------------

FLIP = Estimand(
    name="flip_rate",
    title="Decisions that flip",
    question="On which share of the responses does the decision differ between any two phrasings?",
    describes=Describes.BOTH,
    keys=("grader", "class", "cut"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "phrasing"),
    low=0,
    high=1,
    reading=(
        "The decision is the class, or (class) whether it counts in that rate, or (cut) pass or fail at "
        "the cut. It is said of these phrasings: with more of them more flips are found. Repeats under one "
        "prompt are no part of it; a decision made of votes can also flip by decode-time noise."
    ),
    moves_with=(
        "the number of phrasings, and how far apart they are",
        "how many responses of the bank lie near the decision",
    ),
    undefined_when=NO_PAIR,
    source=Source(text=f"{TWM}, Table 1 and Appendix A.5"),
    formula=(
        r"\frac{\#\{i \mid d_{ir} \ne d_{is} \text{ for some } r, s\}}{\#\{i \mid d_{ir} \text{ is there "
        r"for two } r \text{ or more}\}}"
    ),
    conventions=(
        "d_ir: the decision on response i under phrasing r, made of its votes by the vote rule. "
        "Only responses that were asked about under all of the grader’s phrasings; a phrasing that "
        "could not be read there is left out."
    ),
)

SQUARES = (
    "MS_r = n Σ_r (x̄_r − x̄)² / (R − 1), MS_pr = Σ_pr (x̄_pr − x̄_p − x̄_r + x̄)² / ((n − 1)(R − 1)): x̄_pr is the mean "
    "score of the V calls on response p under phrasing r, x̄_p, x̄_r and x̄ are means of these, over n responses "
    "and R phrasings."
)
ESTIMATED = (
    "Only responses that were asked about under all of the grader’s phrasings. Where cells are missing or "
    "calls unequal the components are by restricted likelihood, with V the harmonic mean of the calls; "
    "then none is negative."
)


AT_CUT = "With a cut it is of decisions: the score of a call is 1 where it passes, else 0."


def _component(
    name: str,
    title: str,
    question: str,
    reading: str,
    describes: Describes = Describes.BOTH,
    *,
    formula: str,
    conventions: str = "",
) -> tuple[Estimand, Estimand]:
    """The estimands of a component as used and as computed; ``formula`` is that of the latter."""
    symbol, value = formula.split(" = ", 1)
    used = Estimand(
        name=f"component_{name}",
        title=title,
        question=question,
        describes=describes,
        keys=("grader", "cut"),
        unit=Unit.COEFFICIENT,
        scale=Scale.PLAIN,
        needs=("label", "phrasing"),
        low=0,
        reading=f"{reading} {AT_CUT} A variance in squared units of the score; a negative one is used as 0.",
        moves_with=("the phrasings", "the unit of the score"),
        undefined_when=TOO_FEW,
        source=DESIGN,
        formula=rf"{symbol} = \max\left(0,\ {value}\right)",
        conventions=f"{conventions or SQUARES} {ESTIMATED}",
    )
    raw = replace(
        used,
        name=f"{used.name}_raw",
        title=f"{title}, as computed",
        low=None,
        reading=f"{reading} {AT_CUT} A variance in squared units of the score; the estimate can be negative.",
        formula=formula,
    )
    return used, raw


PHRASING = _component(
    "phrasing",
    "Phrasing component",
    "How far do the phrasings differ in how high they score?",
    "It is the scorer's own: it is there without gold, and where repeats never differ. The phrasings "
    "stand for all wordings that might have been used; few of them leave it imprecise.",
    Describes.GRADER,
    formula=r"\hat{\sigma}_{r}^{2} = \frac{\mathrm{MS}_{r} - \mathrm{MS}_{pr}}{n}",
)
INTERACTION = _component(
    "response_phrasing",
    "Response × phrasing component",
    "How far do the phrasings rank the responses differently, beyond decode-time noise?",
    "It is told apart from noise where calls were repeated under each phrasing.",
    formula=r"\hat{\sigma}_{pr}^{2} = \mathrm{MS}_{pr} - \frac{\hat{\sigma}_{v}^{2}}{V}",
    conventions=f"{SQUARES} σ̂_v²: component_vote.",
)
VOTE = _component(
    "vote",
    "Decode-time component",
    "How far do repeats of one call under one phrasing differ?",
    "It is noise of decoding and never the reliability of the scorer.",
    Describes.GRADER,
    formula=r"\hat{\sigma}_{v}^{2} = \frac{1}{n R (V - 1)} \sum_{p,r,v} (x_{prv} - \bar{x}_{pr})^{2}",
    conventions=(
        "x_prv: the score of call v of V on response p under phrasing r, x̄_pr their mean; n responses, R "
        "phrasings."
    ),
)
OF_CLUSTERS = (
    "MS_c, MS_p:c, MS_cr, MS_pr:c: the mean squares of clusters, of responses within clusters, of clusters × "
    "phrasings and of the rest, of the mean scores of cells; m: the responses a cluster, R: the phrasings. "
    "With clusters of unequal size by restricted likelihood."
)
CLUSTER = _component(
    "cluster",
    "Cluster component",
    "How far do clusters differ, beyond the responses within them?",
    "The response component then holds this and the responses within a cluster.",
    formula=(
        r"\hat{\sigma}_{c}^{2} = \frac{\mathrm{MS}_{c} - \mathrm{MS}_{p:c} - \mathrm{MS}_{cr} + "
        r"\mathrm{MS}_{pr:c}}{m R}"
    ),
    conventions=OF_CLUSTERS,
)
CLUSTER_PHRASING = _component(
    "cluster_phrasing",
    "Cluster × phrasing component",
    "How far does a phrasing move whole clusters of responses?",
    "A wording that suits one question and not another moves its responses together.",
    formula=r"\hat{\sigma}_{cr}^{2} = \frac{\mathrm{MS}_{cr} - \mathrm{MS}_{pr:c}}{m}",
    conventions=OF_CLUSTERS,
)


PARTS = (
    "σ̂_p², σ̂_r², σ̂_pr², σ̂_v²: component_response, component_phrasing, component_response_phrasing and "
    "component_vote, a negative one as 0; V: the calls under a phrasing, R: the phrasings. Without repeats "
    "component_residual stands for σ̂_pr² + σ̂_v²/V."
)


def _dependability(
    name: str, title: str, question: str, reading: str, formula: str, conventions: str = PARTS
) -> Estimand:
    return Estimand(
        name=f"dependability_{name}",
        title=title,
        question=question,
        describes=Describes.BOTH,
        keys=("grader", "cut"),
        unit=Unit.COEFFICIENT,
        scale=Scale.LOG_ONE_MINUS,
        needs=("label", "phrasing"),
        low=0,
        high=1,
        reading=(
            f"{reading} {AT_CUT} With the components as used. It moves with the spread of the responses, so the "
            "phrasing component belongs beside it; it is no accuracy, and says nothing of gold."
        ),
        moves_with=("how far the responses in the bank differ", "the phrasings"),
        undefined_when=f"{TOO_FEW}, or all scores are the same",
        source=Source(text=f"{BRENNAN}, ch. 2 and 3; {TWM}, Appendix A.5"),
        formula=formula,
        conventions=conventions,
    )


SINGLE = _dependability(
    "single",
    "Dependability at a single phrasing",
    "How far would scores under one phrasing, drawn at random, be those over all phrasings?",
    "Φ for absolute decisions: what a deployment has, which commits to one wording.",
    formula=(
        r"\Phi_{1} = \frac{\hat{\sigma}_{p}^{2}}"
        r"{\hat{\sigma}_{p}^{2} + \hat{\sigma}_{r}^{2} + \hat{\sigma}_{pr}^{2} + \hat{\sigma}_{v}^{2} / V}"
    ),
)
MEAN = _dependability(
    "mean",
    "Dependability of the mean of R random phrasings",
    "How far would the mean score over as many phrasings, drawn anew, be that over all phrasings?",
    "Φ of a mean over R wordings; nobody who uses one wording has it.",
    formula=(
        r"\Phi_{R} = \frac{\hat{\sigma}_{p}^{2}}"
        r"{\hat{\sigma}_{p}^{2} + \frac{1}{R} \left(\hat{\sigma}_{r}^{2} + \hat{\sigma}_{pr}^{2} + \hat{\sigma}_{v}^{2} / V\right)}"
    ),
)
MIXED = _dependability(
    "fixed",
    "Dependability of these R phrasings, fixed",
    "How far does the mean score over just these phrasings depend on anything but the response?",
    "The phrasings are all there is, so that a lenient one is no error. Without repeats the phrasings' "
    "different rankings count as error, since they cannot be told from noise.",
    formula=(
        r"\frac{\hat{\sigma}_{p}^{2} + \hat{\sigma}_{pr}^{2} / R}"
        r"{\hat{\sigma}_{p}^{2} + \hat{\sigma}_{pr}^{2} / R + \hat{\sigma}_{v}^{2} / (V R)}"
    ),
    conventions=(
        f"{PARTS} Here all of it counts as error then: σ̂_p² / (σ̂_p² + component_residual / R)."
    ),
)

SHIFT = Estimand(
    name="phrasing_shift",
    title="Leniency of a phrasing",
    question="By how much does the grader score above gold under this phrasing?",
    describes=Describes.BOTH,
    keys=("grader", "line"),
    unit=Unit.COEFFICIENT,
    scale=Scale.PLAIN,
    needs=("label", "phrasing", "gold"),
    reading=(
        "The mean score less gold's, in units of the score. The phrasing component is how far these "
        "differ between phrasings."
    ),
    moves_with=("the responses in the bank",),
    undefined_when="no response has both a score under the phrasing and gold",
    source=DESIGN,
    formula=r"\frac{1}{n_{r}} \sum_{p} (x_{pr} - g_{p})",
    conventions=(
        "x_pr: the score of the decision on response p under phrasing r, made of its votes by the "
        "vote rule; g_p: gold’s; n_r: the responses that have both, of those asked about under all "
        "of the grader’s phrasings."
    ),
)
RANKS = Estimand(
    name="phrasing_rank_correlation",
    title="Rank correlation with gold",
    question="How far does the grader rank the responses as gold does under this phrasing?",
    describes=Describes.BOTH,
    keys=("grader", "line"),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    needs=("label", "phrasing", "gold"),
    low=-1,
    high=1,
    reading="Spearman's, with mean ranks for ties. A shift of all scores leaves it as it is.",
    moves_with=("how far the responses in the bank differ",),
    undefined_when="one side has one score only, or no response has both",
    source=Source(text="Spearman 1904, American Journal of Psychology 15, p. 72"),
    formula=(
        r"\frac{\sum_{p} (a_{p} - \bar{a}) (b_{p} - \bar{b})}{\sqrt{\sum_{p} (a_{p} - \bar{a})^{2} "
        r"\sum_{p} (b_{p} - \bar{b})^{2}}}"
    ),
    conventions=(
        "a_p, b_p: the ranks of the score under this phrasing and of gold’s, among the responses "
        "that have both; ties get the mean of their ranks. The shortcut with 1 − 6 Σ d²/(n³ − n) "
        "is another number where there are ties."
    ),
)


# --- what a study is ------------------------------------------------------------------------------


class Parts(NamedTuple):
    """Components as computed: responses, phrasings, cells (a mean of its calls), calls."""

    response: Any
    phrasing: Any
    cell: Any
    vote: Any


class Scores(NamedTuple):
    """Classes as scores: ``steps`` is a whole number a class (−1 for none), ``unit`` what a step is.

    ``values`` are the scores themselves, one a class that has one.
    """

    steps: Array
    unit: float
    values: tuple[Decimal, ...]

    def at(self, cut: float) -> Scores:
        """The decisions at a cut as scores: 1 where a score is at the cut or above, else 0."""
        passed = [int(v >= Decimal(str(cut))) for v in self.values]
        passed += [-1] * (len(self.steps) - len(passed))
        return Scores(np.array(passed, dtype=np.int64), 1.0, (Decimal(0), Decimal(1)))


@dataclass(frozen=True, kw_only=True)
class Study:
    """The phrasing study of one grader: what it rests on, and what its values need said beside them.

    ``rows`` are the responses graded under all of ``names``; ``left_out`` those graded under some
    only; ``flips`` the names of the responses whose decision differs, by the decision's key;
    ``empty`` are cells that could not be read. ``calls`` is the mean number of calls a cell (1: no
    repeats). ``cuts`` are those at which decisions are studied as scores are. ``intervals`` are made from
    the components: (cut, statistic) → (low, high, method).
    """

    grader: str
    names: tuple[str, ...]
    rows: Array
    left_out: int
    n: float
    empty: int
    calls: float
    likelihood: bool
    scored: bool
    clustered: bool
    flips: dict[Key, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    cuts: tuple[str, ...] = ()
    intervals: dict[tuple[str, str], tuple[float, float, str]] = field(default_factory=dict)

    @property
    def r(self) -> int:
        return len(self.names)


def _phrasings(scene: Scene) -> Phrasings | None:
    held = scene.grid if scene.grid is not None else scene.bank
    return None if held is None else held.phrasings


def _scores(scene: Scene) -> Scores | None:
    """Classes as scores where they are numbers, or two; ``None`` for other classes."""
    if scene.bank is not None:
        totals = np.arange(int(scene.bank.length.max(initial=0)) + 1)
        return Scores(totals, 1.0, tuple(map(Decimal, totals.tolist())))
    if all(map(_is_number, scene.scale)):
        values = [Decimal(c) for c in scene.scale]
    else:
        # Of two classes either may be the 1: components, dependability and ranks are the same.
        if len(scene.scale) != 2:
            return None
        values = [Decimal(0), Decimal(1)]
    if not values:
        return None
    # Whole numbers of steps, so that sums are the same in any order.
    places = max(-int(v.normalize().as_tuple().exponent) for v in values)
    low, high = min(values), max(values)
    unit = Decimal(10) ** -max(places, 0)
    if (high - low) / unit > FINEST:
        unit = (high - low) / FINEST
    steps = [round((v - low) / unit) for v in values]
    steps += [-1] * (len(scene.classes) - len(scene.scale))
    return Scores(np.array(steps, dtype=np.int64), float(unit), tuple(values))


def _own_clusters(scene: Scene) -> bool:
    held = scene.grid if scene.grid is not None else scene.bank
    assert held is not None
    return held.own_cluster


def _weights(scene: Scene) -> Array | None:
    held = scene.grid if scene.grid is not None else scene.bank
    assert held is not None
    return held.weights


def _times(scene: Scene, rows: Array) -> Array:
    """How often each of the responses stands; 1 each unless weights are frequencies."""
    weights = _weights(scene)
    if weights is None or not _frequency(scene):
        return np.ones(len(rows))
    return np.asarray(np.rint(weights[rows]), dtype=np.float64)


def _frequency(scene: Scene) -> bool:
    held = scene.grid if scene.grid is not None else scene.bank
    assert held is not None
    return held.frequency


def _summed(scene: Scene, rows: Array, cells: Array) -> Tally:
    """Cells of responses (``rows``) added up by cluster, ``(rows, *shape)`` whole numbers."""
    held = scene.grid if scene.grid is not None else scene.bank
    assert held is not None
    place = np.zeros(len(held.cluster), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    return summed_by_cluster(
        rows,
        lambda at: cells[place[at]],
        tuple(cells.shape[1:]),
        cluster=held.cluster,
        stratum=held.stratum,
        weights=held.weights,
        copies=held.frequency and held.own_cluster,
        frequency=held.frequency,
    )


# --- cells and algebra ----------------------------------------------------------------------------
# Components: responses, the sum of each phrasing's scores, then the sums of squares of responses'
# sums, of cells' sums and of single scores; all in steps.


def _solved(cells: Array, given: Given) -> Parts:
    if "parts" in given:
        return given["parts"]  # type: ignore[no-any-return]
    return remembered(given, "parts", cells, lambda: _parts_of(cells, given))  # type: ignore[no-any-return]


def _parts_of(cells: Array, given: Given) -> Parts:
    r, votes, unit = given["r"], given["votes"], given["unit"]
    n, sums = cells[..., 0:1], cells[..., 1 : r + 1]
    rows, squares, single = (cells[..., r + i : r + i + 1] for i in (1, 2, 3))
    total = sums.sum(-1, keepdims=True)
    found = components_from(rows, (sums**2).sum(-1, keepdims=True), squares, total, n, r).raw
    # A difference of equal mean squares is 0, and rounding leaves some 1e-17 of them.
    whole = sum(np.abs(c) for c in (found.rows, found.columns, found.residual))
    raw = found._replace(
        **{
            name: np.where(np.abs(c) < 1e-13 * whole, 0.0, c)
            for name, c in (
                ("rows", found.rows),
                ("columns", found.columns),
                ("residual", found.residual),
            )
        }
    )
    scale = (unit / votes) ** 2
    vote = np.zeros_like(raw.residual)
    if votes > 1:
        vote = np.maximum(single - squares / votes, 0) / (n * r * (votes - 1)) * unit**2
    return Parts(raw.rows * scale, raw.columns * scale, raw.residual * scale, vote)


def _value(which: str, *, used: bool) -> Callable[[Array, Given], Array]:
    def solve(cells: Array, given: Given) -> Array:
        found = _solved(cells, given)
        if which == "interaction":
            value = found.cell - found.vote / given["votes"]
        else:
            value = getattr(found, which)
        return np.asarray(np.maximum(value, 0) if used else value)

    return solve


def _used(cells: Array, given: Given) -> tuple[Array, Array, Array, Array]:
    """Responses, phrasings, responses × phrasings and the noise of a cell, none negative."""
    found = _solved(cells, given)
    response, phrasing = (np.maximum(c, 0) for c in (found.response, found.phrasing))
    noise = np.asarray(found.vote / given["votes"])
    return response, phrasing, np.maximum(found.cell - noise, 0), noise


def _share(of: Array, error: Array) -> Array:
    whole = np.asarray(of + error)
    return np.asarray(of / np.where(whole > 0, whole, np.nan))


def _single(cells: Array, given: Given) -> Array:
    response, phrasing, both, noise = _used(cells, given)
    return _share(response, phrasing + both + noise)


def _mean(cells: Array, given: Given) -> Array:
    response, phrasing, both, noise = _used(cells, given)
    return _share(response, (phrasing + both + noise) / given["r"])


def _mixed(cells: Array, given: Given) -> Array:
    response, _, both, noise = _used(cells, given)
    r = given["r"]
    if given["repeated"]:
        return _share(response + both / r, noise / r)
    return _share(response, (both + noise) / r)


def _responses(cells: Array, given: Given) -> Array:
    return np.asarray(given["n"] if "n" in given else cells[..., 0:1])


def _reason(constant: str) -> Callable[[Array, Given], list[str]]:
    def reason(cells: Array, given: Given) -> list[str]:
        n = float(np.asarray(_responses(cells, given)).reshape(-1)[0])
        return [TOO_FEW if n < 2 else given.get("constant", constant)]

    return reason


def _flipped(cells: Array, given: Given) -> tuple[Array, Array]:
    return cells[..., 1:], np.broadcast_to(cells[..., 0:1], cells[..., 1:].shape)


def _flips(cells: Array, given: Given) -> Array:
    events, trials = _flipped(cells, given)
    return np.asarray(events / trials)


def _both_read(cells: Array, given: Given) -> Array:
    return _flipped(cells, given)[1]


def _shifts(cells: Array, given: Given) -> Array:
    """``(..., phrasings, 2)``: responses and the sum of differences in steps."""
    return np.asarray(cells[..., 1] / cells[..., 0] * given["unit"])


def _rank_correlation(table: Array, given: Given) -> Array:
    """Spearman's coefficient of a table of score pairs ``(..., k, k)``."""
    ranks = []
    for axis in (-1, -2):
        margin = table.sum(axis)
        ranks.append((margin, np.cumsum(margin, axis=-1) - margin / 2))
    n = table.sum((-1, -2))
    (a, x), (b, y) = ranks
    x = x - (a * x).sum(-1, keepdims=True) / n[..., None]
    y = y - (b * y).sum(-1, keepdims=True) / n[..., None]
    cross = (table * x[..., :, None] * y[..., None, :]).sum((-1, -2))
    size = (a * x**2).sum(-1) * (b * y**2).sum(-1)
    found = cross / np.sqrt(np.where(size > 0, size, np.nan))
    return np.asarray(np.clip(found, -1, 1))[..., None]


S_FLIP = Statistic(estimand=FLIP, solve=_flips, n=_both_read, share=_flipped)
S_SHIFT = Statistic(estimand=SHIFT, solve=_shifts, n=lambda c, given: np.asarray(c[..., 0]))
S_RANKS = Statistic(
    estimand=RANKS, solve=_rank_correlation, n=lambda c, given: c.sum((-1, -2))[..., None]
)


def _pair(estimands: tuple[Estimand, Estimand], which: str) -> tuple[Statistic, Statistic]:
    used, raw = estimands
    return (
        Statistic(
            estimand=used, solve=_value(which, used=True), n=_responses, reason=_reason(TOO_FEW)
        ),
        Statistic(
            estimand=raw, solve=_value(which, used=False), n=_responses, reason=_reason(TOO_FEW)
        ),
    )


# Components that a checklist also has over its positions have one estimand; here the columns are
# phrasings.
_SHARED = {
    name: (S_USED[i].estimand, S_RAW[i].estimand) for name, i in (("response", 0), ("residual", 2))
}
S_RESPONSE = _pair(_SHARED["response"], "response")
S_RESIDUAL = _pair(_SHARED["residual"], "cell")
S_PHRASING = _pair(PHRASING, "phrasing")
S_INTERACTION = _pair(INTERACTION, "interaction")
S_VOTE = _pair(VOTE, "vote")


def _given(name: str, *, used: bool) -> Callable[[Array, Given], Array]:
    def solve(cells: Array, given: Given) -> Array:
        value = np.asarray([given[name]])
        return np.maximum(value, 0) if used else value

    return solve


S_CLUSTER, S_CLUSTER_PHRASING = (
    tuple(
        Statistic(estimand=e, solve=_given(name, used=used), n=_responses, reason=_reason(TOO_FEW))
        for e, used in zip(estimands, (True, False), strict=True)
    )
    for name, estimands in (("cluster", CLUSTER), ("cluster_phrasing", CLUSTER_PHRASING))
)
S_SINGLE, S_MEAN, S_MIXED = (
    Statistic(estimand=e, solve=solve, n=_responses, reason=_reason(NOTHING_VARIES))
    for e, solve in ((SINGLE, _single), (MEAN, _mean), (MIXED, _mixed))
)


# --- parts ------------------------------------------------------------------------------------------


def parts(scene: Scene) -> Iterable[Part]:
    held = _phrasings(scene)
    if held is None:
        return
    scores = _scores(scene)
    for grader in scene.panel:
        g = scene.places[grader]
        there = np.flatnonzero(held.asked[:, g].any(axis=0))
        if len(there) < 2:
            continue
        asked = held.asked[:, g][:, there]
        rows = np.flatnonzero(asked.all(axis=1))
        decided = held.decided[rows, g][:, there].astype(np.int64)
        cells = _cells(held, scores, g, there, rows, _times(scene, rows))
        study = Study(
            grader=grader,
            names=tuple(held.names[i] for i in there),
            rows=rows,
            left_out=int(asked.any(axis=1).sum()) - len(rows),
            n=float(_times(scene, rows).sum()),
            empty=0 if cells is None else int((cells.count == 0).sum()),
            calls=1.0 if cells is None else cells.calls,
            likelihood=cells is not None and not cells.balanced,
            scored=cells is not None,
            clustered=not _own_clusters(scene),
            cuts=() if scores is None else tuple(map(str, sorted(set(scene.options.cut)))),
        )
        scene.memory["phrasing study", grader] = study
        yield from _flip_part(scene, study, decided, held, scores)
        if cells is not None and scores is not None:
            yield from _component_parts(scene, study, cells, scores)
            for cut in study.cuts:
                passed = scores.at(float(cut))
                decisions = _cells(held, passed, g, there, rows, cells.times)
                assert decisions is not None
                yield from _component_parts(scene, study, decisions, passed, cut)
            yield from _gold_parts(scene, study, decided, scores)


@dataclass(frozen=True, kw_only=True)
class _Cells:
    """Calls by response × phrasing: how many were read, the sum of their steps and of the squares.

    ``times`` is how often each response stands (frequency weights, else 1).
    """

    count: Array
    total: Array
    squares: Array
    times: Array

    @property
    def repeated(self) -> bool:
        return bool((self.count > 1).any())

    @property
    def balanced(self) -> bool:
        return bool(
            self.count.size and self.count.min() >= 1 and self.count.min() == self.count.max()
        )

    @property
    def calls(self) -> float:
        """The harmonic mean of the calls that a cell has, as a mean of calls needs it."""
        weight = np.broadcast_to(self.times[:, None], self.count.shape)
        return _harmonic(self.count, weight) if (self.count > 0).any() else 1.0

    @property
    def within(self) -> float:
        """The sum of squares of calls about their cell's mean, in squared steps."""
        about = self.squares - self.total**2 / np.maximum(self.count, 1)
        return _total(self.times[:, None] * np.maximum(about, 0))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of calls within cells."""
        return float((self.times[:, None] * np.maximum(self.count - 1, 0)).sum())


def _total(amounts: Array) -> float:
    """The sum in an order that the order of responses does not show in."""
    return float(np.sort(amounts, axis=None).sum())


def _harmonic(numbers: Array, weights: Array) -> float:
    """The weighted harmonic mean of those numbers that are above 0."""
    good = (numbers > 0) & (weights > 0)
    whole = weights[good].sum()
    return float(whole / _total(weights[good] / numbers[good])) if whole > 0 else math.nan


def _cells(
    held: Phrasings, scores: Scores | None, g: int, there: Array, rows: Array, times: Array
) -> _Cells | None:
    """Single calls as scores; ``None`` where classes are no scores."""
    if scores is None:
        return None
    of_row = np.full(len(held.decided), -1, dtype=np.int64)
    of_row[rows] = np.arange(len(rows))
    of_phrasing = np.full(len(held.names), -1, dtype=np.int64)
    of_phrasing[there] = np.arange(len(there))
    mine = (held.grader == g) & (of_row[held.row] >= 0) & (held.value >= 0)
    steps = scores.steps[held.value[mine]]
    place = of_row[held.row[mine]] * len(there) + of_phrasing[held.phrasing[mine]]
    place, steps = place[steps >= 0], steps[steps >= 0]
    shape = (len(rows), len(there))

    def added(amount: Array | None) -> Array:
        made = np.bincount(place, weights=amount, minlength=int(np.prod(shape)))
        return np.rint(made).astype(np.int64).reshape(shape)

    return _Cells(count=added(None), total=added(steps), squares=added(steps**2), times=times)


def _flip_part(
    scene: Scene, study: Study, decided: Array, held: Phrasings, scores: Scores | None
) -> Iterable[Part]:
    """Whether the decision differs: the class, its membership in each rate, pass or fail at each cut."""
    read = decided >= 0
    of: list[tuple[Key, Array]] = []
    cuts = sorted(set(scene.options.cut))
    if scene.bank is None:
        of.append((Key(grader=study.grader), decided))
        if len(scene.classes) > 2:
            of += [
                (Key(grader=study.grader, class_=rate.name), rate.members[decided].astype(np.int64))
                for rate in scene.rates
            ]
    if scores is not None:
        for cut in cuts:
            passed = scores.at(cut).steps[decided]
            of.append((Key(grader=study.grader, cut=str(cut)), passed))
    if not of:
        return
    again = np.flatnonzero(read.sum(axis=1) >= 2)
    differs = []
    for key, decision in of:
        high = np.where(read, decision, -2).max(axis=1, initial=-2)
        low = np.where(read, decision, 1 << 40).min(axis=1, initial=1 << 40)
        differ = (high != low)[again]
        differs.append(differ)
        names = held.responses[study.rows[again[differ]]]
        study.flips[key] = (len(names), tuple(map(str, names[:MOST_LISTED])))
    cells = np.stack([np.ones(len(again), dtype=np.int64), *differs], axis=1).astype(np.int64)
    asked = ((S_FLIP, tuple(key for key, _ in of)),)
    if not len(study.rows):
        yield Part(tally=None, totals=np.zeros(1), asks=asked, undefined=NO_RESPONSE)
        return
    yield Part(tally=_summed(scene, study.rows[again], cells), asks=asked)


def _component_parts(
    scene: Scene, study: Study, cells: _Cells, scores: Scores, cut: str = ""
) -> Iterable[Part]:
    """Components and dependability of scores, or of decisions at a ``cut``."""
    own = Key(grader=study.grader, cut=cut)
    more: dict[str, Any] = {"constant": SAME_DECISION} if cut else {}
    shared = replace(own, other=PHRASINGS) if scene.bank is not None else own
    of_rows = [(s, (shared,)) for s in S_RESPONSE]
    if cells.repeated:
        of_rows += [(s, (own,)) for s in (*S_INTERACTION, *S_VOTE)]
    else:
        of_rows += [(s, (shared,)) for s in S_RESIDUAL]
    of_phrasings = [(s, (own,)) for s in (*S_PHRASING, S_SINGLE, S_MEAN)]
    fixed = [(S_MIXED, (own,))]
    every = (*of_rows, *of_phrasings, *fixed)
    if not len(study.rows):
        yield Part(tally=None, totals=np.zeros(1), asks=every, undefined=NO_RESPONSE)
        return
    designed = _weights(scene) is not None and not _frequency(scene)
    bootstrap = scene.options.interval == "bootstrap"
    if cells.balanced:
        votes = int(cells.count.flat[0])
        made = np.concatenate(
            [
                np.ones((len(study.rows), 1), dtype=np.int64),
                cells.total,
                cells.total.sum(axis=1, keepdims=True) ** 2,
                (cells.total**2).sum(axis=1, keepdims=True),
                cells.squares.sum(axis=1, keepdims=True),
            ],
            axis=1,
        )
        tally = _summed(scene, study.rows, made)
        given: dict[str, Any] = {
            "r": study.r, "votes": votes, "unit": scores.unit, "repeated": cells.repeated, "memo": {},
            **more,
        }  # fmt: skip
        with np.errstate(all="ignore"):
            found = Parts(*(float(np.asarray(c)[..., 0]) for c in _solved(tally.total, given)))
        if not designed:
            _intervals(study, found, cells, scene.options.level, n=float(tally.size[0]), cut=cut)
        from_clusters = bootstrap or designed or study.clustered
        yield Part(
            tally=tally, asks=tuple(of_rows), given=given,
            no_interval="" if from_clusters else BY_LIKELIHOOD,
        )  # fmt: skip
        yield Part(
            tally=tally, asks=tuple(of_phrasings), given=given,
            no_interval="" if bootstrap else WEIGHED if designed else BY_LIKELIHOOD,
        )  # fmt: skip
        yield Part(tally=tally, asks=tuple(fixed), given=given)
        if from_clusters:
            kept = {s.name for s, _ in (of_rows if not bootstrap else every)}
            for name in kept:
                study.intervals.pop((cut, name), None)
    elif designed:
        yield Part(tally=None, totals=np.zeros(1), asks=every, undefined=NO_DESIGN_WEIGHTS)
    else:
        found, n = _by_likelihood(cells, scores)
        held = scene.grid if scene.grid is not None else scene.bank
        assert held is not None
        clusters = [len(np.unique(held.cluster[study.rows]))]
        given = {
            "parts": Parts(*(np.asarray([c]) for c in found)), "r": study.r, "votes": cells.calls,
            "repeated": cells.repeated, "n": np.asarray([n]), **more,
        }  # fmt: skip
        _intervals(study, found, cells, scene.options.level, n=n, cut=cut)
        if study.clustered:
            for statistic, _ in (*of_rows, *fixed):
                study.intervals.pop((cut, statistic.name), None)
        for asked, why in ((of_rows, GROUPED), (of_phrasings, BY_LIKELIHOOD), (fixed, GROUPED)):
            yield Part(
                tally=None,
                totals=np.zeros(1),
                asks=tuple(asked),
                given=given,
                no_interval=why if why != GROUPED or study.clustered else BY_LIKELIHOOD,
                clusters=clusters,
            )
    if study.clustered:
        yield _cluster_part(scene, study, cells, scores, designed, cut)


def _by_likelihood(cells: _Cells, scores: Scores) -> tuple[Parts, float]:
    """Components by restricted likelihood, and how many responses they rest on."""
    found = reml_components(
        _means(cells, scores),
        counts=cells.count,
        within=cells.within * scores.unit**2 if cells.repeated else None,
        times=cells.times,
    )
    n = float(cells.times[(cells.count > 0).any(axis=1)].sum())
    vote = found["repeats"] if cells.repeated else 0.0
    rest = found["cells"] + vote / cells.calls if cells.repeated else found["residual"]
    return Parts(found["rows"], found["columns"], rest, vote), n


def _means(cells: _Cells, scores: Scores) -> Array:
    """The mean score of each cell; nan where it has none."""
    with np.errstate(all="ignore"):
        return np.asarray(
            cells.total / np.where(cells.count > 0, cells.count, np.nan) * scores.unit
        )


def _intervals(
    study: Study, found: Parts, cells: _Cells, level: float, *, n: float, cut: str
) -> None:
    """Intervals from mean squares; where cells are missing, from those that the components imply.

    The harmonic means of scores a response and a phrasing then stand for their numbers (Burdick and
    Graybill 1992, ch. 6: unweighted sums of squares).
    """
    if not all(math.isfinite(c) for c in found):
        return
    there = cells.times[:, None] * (cells.count > 0)
    of_columns = there.sum(axis=0)
    if (of_columns == 0).any() or n < 3:
        return
    r = _harmonic((cells.count > 0).sum(axis=1), cells.times)
    per = _harmonic(of_columns, np.ones(study.r))
    rest = float(there.sum()) - n - study.r + 1
    if rest < 1:
        return
    residual = found.cell
    rows, columns = residual + r * found.response, residual + per * found.phrasing
    made: dict[str, tuple[float, float, str]] = {
        "component_response": (
            *modified_large_sample(rows, n - 1, residual, rest, r, level), MLS,
        ),
        "component_phrasing": (
            *modified_large_sample(columns, study.r - 1, residual, rest, per, level), MLS,
        ),
    }  # fmt: skip
    if cells.repeated:
        votes = cells.calls
        freedom = cells.freedom
        made["component_vote"] = (*chi_square_interval(found.vote, freedom, level), "chi_square")
        made["component_response_phrasing"] = (
            *modified_large_sample(votes * residual, rest, found.vote, freedom, votes, level), MLS,
        )  # fmt: skip
    else:
        made["component_residual"] = (*chi_square_interval(residual, rest, level), "chi_square")
    for name, (low, high, method) in made.items():
        study.intervals[cut, f"{name}_raw"] = (low, high, method)
        study.intervals[cut, name] = (max(low, 0.0), max(high, 0.0), method)
    if study.likelihood:
        of_fixed = _of_fixed(study, found, cells, n, rest, r, level)
        study.intervals[cut, "dependability_fixed"] = of_fixed
    low, high = dependability_interval(rows, columns, residual, per, r, rest, level)
    study.intervals[cut, "dependability_single"] = (low, high, GENERALISED)
    many = study.r
    low, high = (many * x / (1 + (many - 1) * x) for x in (low, high))
    study.intervals[cut, "dependability_mean"] = (low, high, GENERALISED)


def _of_fixed(
    study: Study, found: Parts, cells: _Cells, n: float, rest: float, r: float, level: float
) -> tuple[float, float, str]:
    """The interval of dependability of these phrasings where cells are missing, from its F ratio.

    The ratio is that of as many phrasings as a response has scores (a harmonic mean); then it is
    taken to all of them, as the length of a test is.
    """
    noise, freedom = found.cell, rest
    if cells.repeated:
        noise, freedom = found.vote / cells.calls, cells.freedom
    whole = found.cell + r * found.response
    if not (noise > 0 and whole > 0):
        return math.nan, math.nan, F_RATIO
    ends = fixed_columns_interval(whole, noise, n - 1, freedom, level)
    many = study.r / r
    low, high = (many * x / (1 + (many - 1) * x) for x in (max(e, 0.0) for e in ends))
    return low, high, F_RATIO


def _cluster_part(
    scene: Scene, study: Study, cells: _Cells, scores: Scores, designed: bool, cut: str
) -> Part:
    """Components of clusters, with the responses nested in them."""
    held = scene.grid if scene.grid is not None else scene.bank
    assert held is not None
    own = (Key(grader=study.grader, cut=cut),)
    asked = tuple((s, own) for s in (*S_CLUSTER, *S_CLUSTER_PHRASING))
    if designed:
        return Part(tally=None, totals=np.zeros(1), asks=asked, undefined=NO_CLUSTER_WEIGHTS)
    # A response that stands several times is so many responses of its cluster.
    again = np.repeat(np.arange(len(study.rows)), cells.times.astype(np.int64))
    if len(again) > MOST_CLUSTERED:
        return Part(tally=None, totals=np.zeros(1), asks=asked, undefined=MANY)
    cells = replace(
        cells, count=cells.count[again], total=cells.total[again],
        squares=cells.squares[again], times=cells.times[again] * 0 + 1,
    )  # fmt: skip
    cluster = held.cluster[study.rows][again]
    # Rows in the order of their content, so that no name of a response or cluster shows.
    order = _canonical(cells, cluster)
    means, cluster = _means(cells, scores)[order], cluster[order]
    _, sizes = np.unique(cluster, return_counts=True)
    even = len(sizes) > 1 and sizes.min() == sizes.max() > 1
    codes = np.cumsum(np.r_[0, cluster[1:] != cluster[:-1]])
    if even and cells.balanced:
        nested = means.reshape(len(sizes), int(sizes[0]), study.r)
        solved = analysis_of_variance(nested, "(p:c) x i")
        found = {"cluster": solved.raw["c"], "cluster_phrasing": solved.raw["ci"]}
        of = solved.mean_squares
        squares = _Squares(
            cluster=of["c"],
            both=of["ci"],
            response=of["p:c"],
            residual=of["pi:c"],
            clusters=len(sizes),
            within=float(sizes[0]),
            each=float(study.r),
            phrasings=study.r,
            responses=len(means),
            rest=solved.freedom["pi:c"],
        )
    else:
        likely = reml_components(
            means,
            counts=cells.count[order],
            within=cells.within * scores.unit**2 if cells.repeated else None,
            cluster=codes,
        )
        found = {"cluster": likely["clusters"], "cluster_phrasing": likely["clusters_columns"]}
        rest = likely["residual"] if not cells.repeated else likely["cells"]
        rest += likely["repeats"] / cells.calls if cells.repeated else 0.0
        squares = _implied(found, likely["rows"], rest, np.isfinite(means), codes)
    _cluster_intervals(study, squares, scene.options.level, cut)
    return Part(
        tally=None,
        totals=np.zeros(1),
        asks=asked,
        given={**found, "n": np.asarray([study.n])},
        no_interval=FEW_CLUSTERS,
        clusters=[len(sizes)],
    )


class _Squares(NamedTuple):
    """Mean squares of clusters, clusters × phrasings, responses within clusters and the rest.

    ``within`` is the number of responses a cluster, ``each`` that of scores a response.
    """

    cluster: float
    both: float
    response: float
    residual: float
    clusters: int
    within: float
    each: float
    phrasings: int
    responses: int
    rest: float


def _implied(
    found: dict[str, float], response: float, residual: float, there: Array, cluster: Array
) -> _Squares:
    """The mean squares that components imply, with harmonic means for the numbers of scores.

    Squares of unweighted means of clusters (Burdick and Graybill 1992, ch. 6). Computed from the
    means themselves they had coverage down to 88 % where clusters have 1 to 40 responses; these, with
    components held at 0 or above, have 94 % or more.
    """
    read = there.any(axis=1)
    size, r = int(cluster.max(initial=-1)) + 1, there.shape[1]
    responses = np.bincount(cluster[read], minlength=size)
    within = _harmonic(responses, np.ones(size))
    each = _harmonic(there.sum(axis=1), np.ones(len(there)))
    of_cell = within * each / r
    clusters = int((responses > 0).sum())
    both = of_cell * found["cluster_phrasing"] + residual
    rows = residual + each * response
    # A cluster's mean over phrasings, in units of one score.
    cluster_square = within * r * (found["cluster"] + response / within) + within / of_cell * both
    n = int(responses.sum())
    return _Squares(
        cluster=cluster_square,
        both=both * within / of_cell,
        response=rows * r / each,
        residual=residual * within / of_cell,
        clusters=clusters,
        within=within,
        each=float(r),
        phrasings=r,
        responses=n,
        rest=float(there.sum()) - n - clusters * (r - 1),
    )


def _cluster_intervals(study: Study, squares: _Squares, level: float, cut: str = "") -> None:
    """Intervals of the components of clusters, kept in the study."""
    c, i = squares.clusters - 1, squares.phrasings - 1
    p = squares.responses - squares.clusters
    values = squares[:4]
    if min(c, i, p, squares.rest) < 1 or c < 2 or not all(math.isfinite(x) for x in values):
        return
    residual = (1.0, squares.residual, squares.rest)
    both, response = (1.0, squares.both, float(c * i)), (1.0, squares.response, float(p))
    whole = (1.0, squares.cluster, float(c))
    made = {
        "component_cluster": combination_interval(
            [whole, residual], [both, response], squares.within * squares.each, level
        ),
        "component_cluster_phrasing": combination_interval(
            [both], [residual], squares.within, level
        ),
    }
    for name, (low, high) in made.items():
        study.intervals[cut, f"{name}_raw"] = (low, high, MLS)
        study.intervals[cut, name] = (max(low, 0.0), max(high, 0.0), MLS)


def _canonical(cells: _Cells, cluster: Array) -> Array:
    """Rows by cluster and content, clusters by their content: the same whatever they are called."""
    content = np.concatenate([cells.count, cells.total, cells.squares], axis=1)
    order = np.lexsort((*content.T[::-1], cluster))
    starts = np.flatnonzero(np.r_[True, cluster[order][1:] != cluster[order][:-1]])
    spans = [order[a:b] for a, b in pairwise([*starts.tolist(), len(order)])]
    spans.sort(key=lambda span: (len(span), content[span].ravel().tolist()))
    return np.concatenate(spans) if spans else order


def _gold_parts(scene: Scene, study: Study, decided: Array, scores: Scores) -> Iterable[Part]:
    """How far each phrasing scores above gold, and how far it ranks as gold does."""
    if not scene.gold or not len(study.rows):
        return
    place = scene.places[scene.gold]
    if scene.bank is not None:
        gold = scene.bank.totals[study.rows, place].astype(np.int64)
    else:
        assert scene.grid is not None
        gold = scene.grid.codes[study.rows, place].astype(np.int64)
    truth = np.where(gold >= 0, scores.steps[gold], -1)
    mine = np.where(decided >= 0, scores.steps[decided], -1)
    both = (mine >= 0) & (truth >= 0)[:, None]
    keys = tuple(Key(grader=study.grader, line=name) for name in study.names)
    cells = np.stack([both, np.where(both, mine - truth[:, None], 0)], axis=-1).astype(np.int64)
    given = {"unit": scores.unit}
    yield Part(tally=_summed(scene, study.rows, cells), asks=((S_SHIFT, keys),), given=given)
    levels = np.unique(scores.steps[scores.steps >= 0])
    k = len(levels)
    for j, key in enumerate(keys):
        at = np.flatnonzero(both[:, j])
        pair = np.searchsorted(levels, mine[at, j]) * k + np.searchsorted(levels, truth[at])
        asked = ((S_RANKS, (key,)),)
        if k <= MOST_LEVELS:
            yield Part(tally=scene.counted(study.rows[at], pair, (k, k)), asks=asked)
            continue
        weights = _weights(scene)
        amount = None if weights is None else weights[study.rows[at]]
        table = np.bincount(pair, weights=amount, minlength=k * k).reshape(k, k)
        yield Part(
            tally=None, totals=table.astype(np.float64), asks=asked, no_interval=MANY_LEVELS,
            clusters=[len(at)],
        )  # fmt: skip


def finish(made: list[Estimate], scene: Scene) -> list[Estimate]:
    """Put in the intervals that are made from components, and say which hold the phrasings fixed."""
    return [_finished(e, scene) for e in made]


def _finished(estimate: Estimate, scene: Scene) -> Estimate:
    study = scene.memory.get(("phrasing study", estimate.key.grader))
    if study is None or estimate.number is None:
        return estimate
    held = estimate.interval
    if held is not None:
        of_components = estimate.statistic.startswith(("component_", "dependability_"))
        if held.method == "percentile" and of_components:
            return replace(estimate, interval=replace(held, method=FIXED))
        return estimate
    at = (estimate.key.cut, estimate.statistic)
    if at not in study.intervals:
        if estimate.no_interval == BY_LIKELIHOOD:
            return replace(estimate, no_interval=FEW_SCORES)
        return estimate
    low, high, method = study.intervals[at]
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raw = study.intervals.get((at[0], f"{at[1]}_raw"), (low, high, ""))
        why = BELOW if raw[1] < 0 else NOTHING_LEFT
        if estimate.statistic.startswith("dependability_") and high == 0:
            why = NO_SPREAD
        return replace(estimate, no_interval=why)
    interval = Interval(low=low, high=high, level=scene.options.level, method=method)
    return replace(estimate, interval=interval, no_interval="")


# --- a plain array function -------------------------------------------------------------------------


def flip_rate(decisions: Any) -> float:
    """The share of responses whose decision differs between any two phrasings, in 0–1.

    ``decisions`` is responses × phrasings of one grader: classes, numbers or pass/fail; missing is
    None or nan. Responses read under fewer than two phrasings are left out; nan with an
    ``UndefinedWarning`` where none is left. Source: TWM, Table 1 and Appendix A.5.

    >>> flip_rate([["pass", "pass", "fail"], ["fail", "fail", None], ["pass", None, None]])
    0.5
    """
    from voirdire.stats.votes import self_disagreement

    # Counted as votes of one response are: only what stands in the columns differs.
    return self_disagreement(decisions)


# --- the report -------------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    studies: list[Study] = [
        found for g in scene.panel if (found := scene.memory.get(("phrasing study", g))) is not None
    ]
    if not studies:
        return []
    made: list[Block] = [*_flip_table(scene, estimates, studies), *_which_flip(scene, studies)]
    if any(s.scored for s in studies):
        made += _component_table(scene, estimates, studies)
        made += _freedom(scene, estimates, studies)
        made += _figure(scene, estimates, studies)
        made += _dependability_table(scene, estimates, studies)
        made += _gold_table(scene, estimates, studies)
    else:
        made.append(Paragraph(tone=Tone.NOTE, text=_no_scores(scene)))
    return [*made, *_notes(scene, estimates, studies)]


def _no_scores(scene: Scene) -> Text:
    """Why there are no components, and what makes scores of these labels."""
    odd = [c for c in scene.scale if not _is_number(c)]
    if len(odd) == len(scene.scale):
        return (
            "Variance components need scores, and these labels are more than two classes and no numbers. "
            "Give each class its number with --map OLD=NEW, once a class.",
        )
    return say(
        "Variance components need scores, and {n} of the {all} labels that occur {are} no number{large}: {odd}. Say "
        "what each means: --failed {failed} for a reply that could not be read, --missing {missing} where "
        "nothing is known, or --map {map}.",
        n=counted(len(odd)),
        all=counted(len(scene.scale)),
        are="is" if len(odd) == 1 else "are",
        large=", or too large a one" if any(map(_is_finite, odd)) else "",
        odd=listed(odd, most=6),
        failed=Name(f"{odd[0]}=unparsed"),
        missing=Name(odd[0]),
        map=Name(f"{odd[0]}=NUMBER"),
    )


def _is_finite(text: str) -> bool:
    try:
        return Decimal(text).is_finite()
    except InvalidOperation:
        return False


def _is_number(text: str) -> bool:
    """Whether a label is a score: a number that can be squared."""
    return _is_finite(text) and abs(Decimal(text)) <= LARGEST


def _decision(key: Key) -> str | Name:
    if key.cut:
        return f"pass at a cut of {key.cut}"
    return Name(key.class_) if key.class_ else "class"


def _flip_table(scene: Scene, estimates: Estimates, studies: Sequence[Study]) -> list[Block]:
    rows = []
    for study in studies:
        for key in study.flips:
            found = estimates.get(FLIP.name, **_at(key, scene))
            if found is None:
                continue
            decision = _decision(key)
            rows.append(
                (
                    cell(Name(study.grader)),
                    cell(study.r, Kind.COUNT),
                    cell(decision),
                    cell(found.n, Kind.COUNT),
                    cell(found),
                )
            )
    if not rows:
        return [
            Paragraph(
                text=(
                    "Whether a decision flips needs a cut, the number of lines that a response must "
                    "meet to pass: audit with --cut C.",
                )
            )
        ]
    return [
        Table(
            title="Decisions that flip between phrasings",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title="phrasings", kind=Kind.COUNT),
                Column(title="decision"),
                Column(title="responses", kind=Kind.COUNT, help="read under two phrasings or more"),
                Column(title="flip", kind=Kind.SHARE),
            ),
            rows=tuple(rows),
            note=(
                "The share of responses whose decision differs between any two phrasings. It is said "
                "of these phrasings: more of them would find more.",
            ),
        )
    ]


def _at(key: Key, scene: Scene) -> dict[str, str]:
    return {
        "grader": key.grader, "other": key.other, "class_": key.class_, "line": key.line,
        "cut": key.cut, "slice": scene.slice,
    }  # fmt: skip


def _which_flip(scene: Scene, studies: Sequence[Study]) -> list[Block]:
    made: list[Block] = []
    for study in studies:
        for key, (many, names) in study.flips.items():
            if not many or key.class_:  # a change of the class is listed already
                continue
            made.append(
                Paragraph(
                    text=say(
                        "{grader}, {decision}: {n} {flip}: {names}.",
                        grader=Name(study.grader),
                        decision=_decision(key),
                        n=plural(many, "response"),
                        flip="flips" if many == 1 else "flip",
                        names=_first(names, many),
                    )
                )
            )
    return made


def _first(names: Sequence[str], many: int) -> Text:
    """The first names of so many, the rest counted."""
    if len(names) == many:
        return listed(names, most=MOST_LISTED)
    made: list[str | Name] = []
    for name in names:
        made += [Name(name), ", "]
    return (*made[:-1], f" and {counted(many - len(names))} more")


# Measured on studies of 30 to 210 responses and 3 to 10 phrasings; the table is in docs/phrasings.md.
NOT_NORMAL = (
    "These intervals are made for normal scores. Of 0 and 1 the nominal 95 % held in 89 to 97 % for the "
    "phrasing component, but in 32 to 99 % for that of responses and in 57 to 92 % for dependability at a "
    "single phrasing: read those as too short."
)


def _noughts_and_ones(scene: Scene, studies: Sequence[Study]) -> bool:
    """Whether some study is of decisions: at a cut, or with two classes."""
    two = scene.bank is None and len(scene.scale) == 2
    return any(s.scored and (s.cuts or two) for s in studies)


def _components(study: Study) -> list[tuple[Statistic, Statistic]]:
    last = (S_INTERACTION, S_VOTE) if study.calls > 1 else (S_RESIDUAL,)
    made = [S_RESPONSE, S_PHRASING, *last]
    if study.clustered:
        made += [S_CLUSTER, S_CLUSTER_PHRASING]
    return made


def _found(
    scene: Scene, estimates: Estimates, study: Study, statistic: Statistic, cut: str = ""
) -> Estimate | None:
    shared = statistic in (*S_RESPONSE, *S_RESIDUAL) and scene.bank is not None
    return estimates.get(
        statistic.name,
        grader=study.grader,
        other=PHRASINGS if shared else "",
        cut=cut,
        slice=scene.slice,
    )


def _of(studies: Sequence[Study]) -> list[tuple[Study, str]]:
    """Each study's scores, then its decisions at each cut."""
    return [(study, cut) for study in studies for cut in ("", *study.cuts)]


def _of_what(scene: Scene, cut: str) -> Cell:
    if cut:
        return cell(f"pass at a cut of {cut}")
    return cell("score" if scene.bank is None else "total")


def _component_table(scene: Scene, estimates: Estimates, studies: Sequence[Study]) -> list[Block]:
    rows = []
    negative = False
    titles = {S_RESPONSE[0].name: "Responses", S_RESIDUAL[0].name: "Residual"}
    several = any(s.cuts for s in studies)
    for study, cut in _of(studies):
        how = "restricted likelihood" if study.likelihood else "analysis of variance"
        for used, raw in _components(study):
            as_used, as_computed = (_found(scene, estimates, study, s, cut) for s in (used, raw))
            if as_used is None or as_computed is None:
                continue
            negative = negative or (as_computed.number or 0.0) < 0
            rows.append(
                (
                    cell(Name(study.grader)),
                    *([_of_what(scene, cut)] if several else []),
                    cell(titles.get(used.name, used.estimand.title.removesuffix(" component"))),
                    _bare(as_computed),
                    cell(as_used),
                    cell(how),
                )
            )
    if not rows:
        return []
    note = (
        "Responses and phrasings crossed, both drawn at random; squared units of the score. The residual is "
        "that phrasings rank responses differently, and noise."
    )
    if several:
        note += " At a cut a call is 1 where it passes and 0 where not."
    if _noughts_and_ones(scene, studies) and scene.options.interval != "bootstrap":
        note += f" {NOT_NORMAL}"
    if negative:
        note += " A negative component is an estimate of a small one: 0 is used."
    if any(s.likelihood for s in studies):
        note += " Restricted likelihood, where cells are missing, gives no negative component."
    return [
        Table(
            title="Variance components of responses × phrasings",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                *([Column(title="of")] if several else []),
                Column(title="component"),
                Column(title="as computed", kind=Kind.COEFFICIENT),
                Column(title="as used", kind=Kind.COEFFICIENT),
                Column(title="by"),
            ),
            rows=tuple(rows),
            note=(note,),
        )
    ]


def _bare(estimate: Estimate) -> Cell:
    return replace(cell(estimate), low=None, high=None)


def _freedom(scene: Scene, estimates: Estimates, studies: Sequence[Study]) -> list[Block]:
    """What so few phrasings can say at best: the component's degrees of freedom."""
    made: list[Block] = []
    for r in sorted({s.r for s in studies if s.scored}):
        low, high = chi_square_interval(1.0, r - 1, scene.options.level)
        first = next(s for s in studies if s.r == r and s.scored)
        found = _found(scene, estimates, first, S_PHRASING[0])
        # The example of the paper where there is no component of one's own to show it with.
        value = found.number if found is not None and found.number else 0.177
        freedom = plural(r - 1, "degree") + " of freedom"
        made.append(
            Paragraph(
                text=(
                    f"{plural(r, 'phrasing')} leave the phrasing component {freedom}: at best, an estimate "
                    f"of {number(value)} spans about {_short(value * low)} to {_short(value * high)}. No "
                    "exact interval exists for it; the one shown is a modified large-sample interval. "
                    "More phrasings narrow it; more responses hardly do.",
                )
            )
        )
    return made


def _short(x: float) -> str:
    return f"{x:.2g}" if x < 100 else counted(round(x))


def _figure(scene: Scene, estimates: Estimates, studies: Sequence[Study]) -> list[Block]:
    rows: list[dict[str, Any]] = []
    for study in studies:
        if not study.scored:
            continue
        each = []
        for used, raw in _components(study):
            value, as_computed = (_found(scene, estimates, study, s) for s in (used, raw))
            if value is None or value.number is None or as_computed is None:
                continue
            interval = value.interval
            each.append(
                {
                    "name": value.estimand.title.removesuffix(" component"),
                    "value": value.number,
                    "low": None if interval is None else interval.low,
                    "high": None if interval is None else interval.high,
                    "raw": as_computed.number,
                    "phrasing": used is S_PHRASING[0],
                }
            )
        if each:
            rows.append({"grader": study.grader, "phrasings": study.r, "components": each})
    if not rows:
        return []
    fixed = scene.options.interval == "bootstrap" and not any(s.likelihood for s in studies)
    first = rows[0]
    values: Text = ()
    for one in first["components"]:
        ends = "" if one["low"] is None else f" [{number(one['low'])}, {number(one['high'])}]"
        values += (f"{', ' if values else ''}{one['name'].lower()} {number(one['value'])}{ends}",)
    return [
        Figure(
            name="phrasing_components",
            title="Components of responses × phrasings",
            data={"graders": rows, "fixed": fixed},
            alt=say(
                "Variance components with intervals. {grader}: {values}{more}.",
                grader=Name(first["grader"]),
                values=values,
                more="" if len(rows) == 1 else f"; {plural(len(rows) - 1, 'more grader')}",
            ),
            caption=("Intervals are for these phrasings only.",) if fixed else (),
        )
    ]


def _dependability_table(
    scene: Scene, estimates: Estimates, studies: Sequence[Study]
) -> list[Block]:
    rows = []
    several = any(s.cuts for s in studies)
    for study, cut in _of(studies):
        found = [_found(scene, estimates, study, s, cut) for s in (S_SINGLE, S_MEAN, S_MIXED)]
        if any(e is not None for e in found):
            rows.append(
                (
                    cell(Name(study.grader)),
                    *([_of_what(scene, cut)] if several else []),
                    cell(study.r, Kind.COUNT),
                    *(cell(e) for e in found),
                )
            )
    if not rows:
        return []
    note = (
        "Three questions: one phrasing drawn at random, as a deployment has; the mean over R phrasings drawn "
        "anew; the mean over just these R. They are ratios that move with the spread of the responses, so "
        "read them beside the phrasing component; none is an accuracy."
    )
    if several:
        note += " At a cut they are of the decision, pass or fail."
    if any(s.calls > 1 for s in studies):
        note += " Scores are means of the calls under a phrasing."
    return [
        Table(
            title="Dependability",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                *([Column(title="of")] if several else []),
                Column(title="R", kind=Kind.COUNT, help="phrasings"),
                Column(title="at a single phrasing", kind=Kind.COEFFICIENT),
                Column(title="mean of R random phrasings", kind=Kind.COEFFICIENT),
                Column(title="these R phrasings, fixed", kind=Kind.COEFFICIENT),
            ),
            rows=tuple(rows),
            note=(note,),
        )
    ]


def _gold_table(scene: Scene, estimates: Estimates, studies: Sequence[Study]) -> list[Block]:
    rows = []
    for study in studies:
        for name in study.names:
            at = {"grader": study.grader, "line": name, "slice": scene.slice}
            shift, ranks = estimates.get(SHIFT.name, **at), estimates.get(RANKS.name, **at)
            if shift is None or ranks is None:
                continue
            rows.append(
                (
                    cell(Name(study.grader)),
                    cell(Name(name)),
                    cell(shift.n, Kind.COUNT),
                    cell(shift),
                    cell(ranks),
                )
            )
    if not rows:
        return []
    return [
        Table(
            title="Each phrasing beside gold",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title="phrasing", kind=Kind.NAME),
                Column(title="responses", kind=Kind.COUNT),
                Column(title="mean score less gold’s", kind=Kind.COEFFICIENT),
                Column(title="rank correlation", kind=Kind.COEFFICIENT),
            ),
            rows=tuple(rows),
            note=(
                "What phrasings do comes in two parts. Shift: a phrasing is lenient or strict throughout, "
                "which is the phrasing component. Rank changes: it moves single responses, which stands "
                "in the residual and lowers the rank correlation.",
            ),
        )
    ]


def _notes(scene: Scene, estimates: Estimates, studies: Sequence[Study]) -> list[Block]:
    made: list[Text] = []
    if (
        any(s.scored for s in studies)
        and scene.bank is None
        and not all(map(_is_number, scene.scale))
    ):
        made.append(
            say(
                "As scores {low} is 0 and {high} is 1.",
                low=Name(scene.scale[0]),
                high=Name(scene.scale[1]),
            )
        )
    if scene.options.vote_rule == "majority":
        made.append(_elsewhere(scene, studies))
    for study in studies:
        if study.left_out:
            made.append(
                say(
                    "{grader}: {n} graded under some of its phrasings only; {used} that have all of them "
                    "{are} used here.",
                    grader=Name(study.grader),
                    n=f"{plural(study.left_out, 'response')} {'was' if study.left_out == 1 else 'were'}",
                    used=plural(len(study.rows), "response"),
                    are="is" if len(study.rows) == 1 else "are",
                )
            )
        if study.empty and len(study.rows):
            cells = len(study.rows) * study.r
            made.append(
                say(
                    "{grader}: {n} of {all} cells have no score ({share}); components are by restricted "
                    "likelihood and their intervals rest on harmonic means of what is there.",
                    grader=Name(study.grader),
                    n=counted(study.empty),
                    all=counted(cells),
                    share=percent(study.empty / cells),
                )
            )
        if study.calls > 1:
            made.append(_noise(scene, estimates, study))
    scored = [s for s in studies if s.scored]
    if scene.options.interval == "bootstrap" and any(not s.likelihood for s in scored):
        many = _numbers({s.r for s in scored if not s.likelihood})
        made.append(
            (
                f"Bootstrap intervals of components and dependability are for these {many} phrasings "
                "only: responses are drawn anew and the phrasings stay. They say nothing of another "
                "wording; leave --interval bootstrap out for intervals that do.",
            )
        )
    elif any(s.clustered for s in scored):
        made.append(
            (
                "Responses stand in clusters. The intervals of the phrasing component and of "
                "dependability at a single and over random phrasings take responses as independent, and "
                "are governed by the few phrasings; the others are made by leaving clusters out.",
            )
        )
    return [Paragraph(tone=Tone.NOTE, text=text) for text in made]


def _elsewhere(scene: Scene, studies: Sequence[Study]) -> Text:
    """How the other sections make one label of several phrasings, and how often there is none."""
    graders = [s.grader for s in studies]
    if scene.grid is None:
        return say(
            "Elsewhere in this report a verdict of {graders} is the majority over all phrasings.",
            graders=listed(graders, most=6),
        )
    places = [scene.places[g] for g in graders]
    lost = int((scene.grid.outcomes[:, places] == ELECTED_NOBODY).sum())
    return say(
        "Elsewhere in this report the label of {graders} on a response is the majority over all its "
        "phrasings{lost}.",
        graders=listed(graders, most=6),
        lost=f"; on {plural(lost, 'response')} there is none" if lost else "",
    )


def _numbers(numbers: Iterable[int]) -> str:
    """Whole numbers in a sentence: ``3 or 5``."""
    return " or ".join(str(n) for n in sorted(numbers))


def _noise(scene: Scene, estimates: Estimates, study: Study) -> Text:
    found = _found(scene, estimates, study, S_VOTE[0])
    if found is not None and found.number == 0:
        return say(
            "{grader}: repeats under one prompt never differ. That is no evidence of reliability: a "
            "deterministic scorer repeats its errors too. Only the phrasings speak of the scorer.",
            grader=Name(study.grader),
        )
    return say(
        "{grader}: repeats under one prompt differ by decode-time noise. It is taken out of the other "
        "components, and is never the reliability of the scorer.",
        grader=Name(study.grader),
    )


FAMILY = Family(
    name="phrasing",
    statistics=(
        S_FLIP,
        *S_PHRASING,
        *S_INTERACTION,
        *S_VOTE,
        *S_CLUSTER,
        *S_CLUSTER_PHRASING,
        S_SINGLE,
        S_MEAN,
        S_MIXED,
        S_SHIFT,
        S_RANKS,
    ),
    parts=parts,
    section=SECTION,
    order=29,
    finish=finish,
    blocks=blocks,
    kinds=("labels", "checklist"),
)
