"""Whether graders use the classes equally often: tests of equal margins on the same responses.

Conventions (tools differ; see the page on agreement): a class that both leave empty, or on which they
never differ, is dropped and the degrees of freedom go down; the statistic is the same whichever of the
other classes is left out. Stuart–Maxwell, Bowker, McNemar and Cochran's Q take every response as its
own; the robust test takes the clusters as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from voirdire.document import Block, Cell, Column, Kind, Table, cell
from voirdire.errors import UndefinedWarning
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Key
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.stats.pairwise import NO_COMMON, pairs
from voirdire.stats.panel import alpha_panel
from voirdire.tally import Tally
from voirdire.wording import Name

__all__ = ["bowker", "cochran_q", "mcnemar", "stuart_maxwell"]

DESIGN = "no p-values under design weights"
SAME = "the two give the same class on every common response"
NO_PATTERN = "no two classes are exchanged for each other"
FEW = "too few clusters for so many classes"
ALONE = "a stratum has one cluster only"
FLAT = "the clusters do not vary enough to say"
NOT_COMPLETE = "no response has a label of every grader of the panel"
NOT_VARYING = "the graders never differ on the class"

MOST_ROWS = 66  # of the table in the report
SMALLEST_SHOWN = 0.001
FEWEST_CLUSTERS = 3  # as for intervals
FEWEST_FOR_Q = 3  # of two graders Q says what McNemar says
_SINGULAR = 1e-10  # of the largest eigenvalue: below it there is no variance in that direction
_BLOCK = (
    1 << 13
)  # rows of a tally that are turned into floats at once: few enough to stay in the cache

INDEPENDENT = "It takes every response as its own; beside clusters read the cluster-robust p-value."
NO_PROOF = "A large p is no proof of equal use, and no p-value says that a grader is right."


def _p_value(
    name: str,
    title: str,
    question: str,
    reading: str,
    undefined_when: str,
    source: str,
    *,
    formula: str,
    conventions: str,
    describes: Describes = Describes.BOTH,
    keys: tuple[str, ...] = ("grader", "other"),
) -> Estimand:
    return Estimand(
        name=name,
        title=title,
        question=question,
        describes=describes,
        keys=keys,
        unit=Unit.COEFFICIENT,
        scale=Scale.NONE,
        low=0,
        high=1,
        reading=f"{reading} {NO_PROOF}",
        moves_with=("the number of responses",),
        undefined_when=undefined_when,
        source=Source(text=source),
        formula=formula,
        conventions=conventions,
    )


ROBUST = _p_value(
    "marginal_homogeneity_p",
    "Equal use of the classes, p (cluster-robust)",
    "If the two used every class equally often, how often would they look as unequal as here?",
    "Wald test on the clusters, with F on (classes − 1, clusters − classes + 1).",
    FLAT,
    "Bhapkar 1966, Journal of the American Statistical Association 61, p. 228; F on clusters: Korn "
    "and Graubard 1990, The American Statistician 44, p. 270",
    formula=(
        r"p = \Pr\left[F_{q,\,\nu - q + 1} \ge \frac{\nu - q + 1}{\nu q}\, D^{\top} V^{-1} "
        r"D\right], \quad V = \frac{T}{T - 1} \sum_{t} (e_{t} - \bar{e}) (e_{t} - \bar{e})^{\top}, "
        r"\quad e_{t} = d_{t} - \frac{n_{t}}{n} D"
    ),
    conventions=(
        "d_t: over all used classes but one, how often the grader gives each in cluster t less how "
        "often the other does; D: their sum over the T clusters; n_t: the common responses of t, n "
        "all of them; q: the used classes less one; ν = T less the number of strata (1 without). V "
        "is summed over strata, each with its own T. Directions in which nothing varies are left "
        "out of q. F_q,ν−q+1 has the F distribution."
    ),
)
STUART = _p_value(
    "stuart_maxwell_p",
    "Equal use of the classes, p (Stuart–Maxwell)",
    "If the two used every class equally often, how often would they look as unequal as here?",
    INDEPENDENT,
    SAME,
    "Stuart 1955, Biometrika 42, p. 412; Maxwell 1970, British Journal of Psychiatry 116, p. 651",
    formula=(
        r"p = \Pr\left[\chi_{\nu}^{2} \ge d^{\top} V^{-} d\right], \quad d_{c} = \sum_{d} (n_{cd} - "
        r"n_{dc}), \quad V_{cd} = \mathbf{1}[c = d] \sum_{e} (n_{ce} + n_{ec}) - n_{cd} - n_{dc}"
    ),
    conventions=(
        "n_cd: the common responses that the grader calls c and the other d; ν: the rank of V, "
        "which is k − 1 less the classes on which they never differ. Leaving out any one class "
        "gives the same; no continuity correction. irr drops a class with equal margins, "
        "statsmodels gives nan for an empty one."
    ),
)
BOWKER = _p_value(
    "bowker_p",
    "Symmetry of the exchanged classes, p (Bowker)",
    "If every two classes were exchanged as often one way as the other, how often would the "
    "exchanges look as one-sided as here?",
    "Degrees of freedom are the pairs of classes that are exchanged at all. " + INDEPENDENT,
    SAME,
    "Bowker 1948, Journal of the American Statistical Association 43, p. 572",
    formula=(
        r"p = \Pr\left[\chi_{\nu}^{2} \ge \sum_{c < d} \frac{(n_{cd} - n_{dc})^{2}}{n_{cd} + "
        r"n_{dc}}\right]"
    ),
    conventions=(
        "n_cd: the common responses that the grader calls c and the other d; ν: the pairs of "
        "classes with n_cd + n_dc above 0, the only ones in the sum. R counts all pairs and gives "
        "nan for an empty one. No continuity correction."
    ),
)
MCNEMAR = _p_value(
    "mcnemar_p",
    "Equal use of the two classes, p (McNemar, mid-p)",
    "If the two used both classes equally often, how often would they look as unequal as here?",
    "1 where they never differ. " + INDEPENDENT,
    NO_COMMON,
    "McNemar 1947, Psychometrika 12, p. 153; mid-p: Fagerland, Lydersen and Laake 2013, BMC Medical "
    "Research Methodology 13:91",
    formula=(
        r"p = 2 \Pr[B \le b] - \Pr[B = b], \quad b = \min(n_{12}, n_{21}), \quad B\ \sim\ "
        r"\text{Binomial}\left(n_{12} + n_{21},\ \frac{1}{2}\right)"
    ),
    conventions=(
        "n_cd: the common responses that the grader calls c and the other d, of the two classes 1 "
        "and 2; p is at most 1. Mid-p: the exact test takes the first term alone, the χ² test "
        "neither."
    ),
)
COCHRAN = _p_value(
    "cochran_q_p",
    "Equal use of a class by the panel, p (Cochran’s Q)",
    "If every grader of the panel gave the class equally often, how often would they look as "
    "unequal as here?",
    "On the responses that the whole panel labelled, without graders that are made from others of it; "
    "every response is taken as its own.",
    NOT_VARYING,
    "Cochran 1950, Biometrika 37, p. 256",
    describes=Describes.PANEL,
    keys=("class",),
    formula=(
        r"p = \Pr\left[\chi_{m - 1}^{2} \ge Q\right], \quad Q = \frac{(m - 1) \left(m \sum_{g} "
        r"G_{g}^{2} - N^{2}\right)}{m N - \sum_{i} L_{i}^{2}}"
    ),
    conventions=(
        "G_g: how often grader g gives the class, L_i: how many of the m graders give it to "
        "response i, N: their sum. For three graders or more; it is Friedman’s test of 0 and 1."
    ),
)


# --- algebra ------------------------------------------------------------------------------------


def chi2_tail(statistic: Array, df: Array) -> Array:
    """P(χ² ≥ statistic) on ``df`` degrees of freedom; nan where there are none."""
    from scipy.special import chdtrc

    there = df > 0
    return np.where(there, chdtrc(np.where(there, df, 1), np.where(there, statistic, 0)), np.nan)


def quadratic_form(apart: Array, variance: Array) -> tuple[Array, Array]:
    """``d' V⁻ d`` and the rank of ``V``, from ``(..., k)`` and ``(..., k, k)``; nan for rank 0.

    The generalised inverse gives the same value as leaving out any one class, and leaves out by
    itself the classes on which there is nothing to see.
    """
    if not apart.shape[-1]:
        return np.full(apart.shape[:-1], np.nan), np.zeros(apart.shape[:-1])
    values, vectors = np.linalg.eigh(variance)
    there = (values > _SINGULAR * values[..., -1:]) & (values > 0)
    along = (vectors * apart[..., :, None]).sum(-2) ** 2
    parts = np.where(there, along / np.where(there, values, 1), 0)
    rank = there.sum(-1)
    return np.where(rank > 0, parts.sum(-1), np.nan), rank


def stuart_maxwell_of(table: Array) -> tuple[Array, Array]:
    """Stuart and Maxwell's statistic and its degrees of freedom, from pairs ``(..., k, k)``."""
    given, other = table.sum(-1), table.sum(-2)
    k = table.shape[-1]
    variance = (given + other)[..., None] * np.eye(k) - table - table.swapaxes(-1, -2)
    return quadratic_form(given - other, variance)


def bowker_of(table: Array) -> tuple[Array, Array]:
    """Bowker's statistic and the number of non-empty pairs of classes, from pairs ``(..., k, k)``."""
    above = np.triu(np.ones(table.shape[-2:]), 1)
    turned = table.swapaxes(-1, -2)
    together = (table + turned) * above
    parts = np.where(together > 0, (table - turned) ** 2 / np.where(together > 0, together, 1), 0)
    df = (together > 0).sum((-2, -1))
    return np.where(df > 0, parts.sum((-2, -1)), np.nan), df


def mcnemar_of(table: Array, method: str) -> Array:
    """McNemar's p of pairs ``(..., 2, 2)``: twice the smaller binomial tail; 1 without discordant pairs."""
    from scipy.special import betainc

    one, other = table[..., 0, 1], table[..., 1, 0]
    fewer, all_ = np.minimum(one, other), one + other
    size = np.maximum(all_, 1)
    # P(X ≤ x) of n at one half is the incomplete beta function at (n − x, x + 1).
    up_to = betainc(size - fewer, fewer + 1, 0.5)
    if method == "mid-p":
        below = np.where(fewer > 0, betainc(size - fewer + 1, np.maximum(fewer, 1), 0.5), 0)
        p = up_to + below  # twice the tail less the probability of what was seen
    else:
        p = 2 * up_to
    return np.where(all_ > 0, np.minimum(p, 1), 1.0)


def cochran_of(given: Array, squares: Array) -> tuple[Array, int]:
    """Cochran's Q and its degrees of freedom.

    ``given`` ``(..., graders)`` says how often each grader gives the class, ``squares`` ``(...)`` is
    the sum over responses of the squared number of graders that do.
    """
    m = given.shape[-1]
    total = given.sum(-1)
    varying = m * total - squares
    seen = (m - 1) * (m * (given**2).sum(-1) - total**2)
    return np.where(varying > 0, seen / np.where(varying > 0, varying, 1), np.nan), m - 1


def robust_p(tally: Tally) -> tuple[float, str]:
    """The cluster-robust p of equal margins from a tally of label pairs, or nan with the reason.

    ``d`` is row sums less column sums, ``n`` the common responses, both by cluster. The residuals of
    the share ``d / n`` are ``e = d − n · (Σd / Σn)``; the covariance of ``Σd`` is ``C/(C−1) Σ e e'``
    within strata. ``W = Σd' V⁻ Σd`` has q = classes − 1 degrees of freedom, and
    ``W (ν − q + 1) / (ν q)`` is referred to F(q, ν − q + 1) with ν = clusters − strata. With every
    response its own cluster, W is (n − 1)/n times Bhapkar's statistic (which is Stuart–Maxwell's
    divided by 1 − itself/n), and the test is Hotelling's.
    """
    from scipy.special import fdtrc

    k = tally.shape[0]
    strata = np.unique(tally.strata)
    used = np.flatnonzero(tally.total.sum(-1) + tally.total.sum(-2) > 0)
    if not len(used):
        return np.nan, NO_COMMON
    if not _off_diagonal(tally.total) > 0:
        return np.nan, SAME
    kept = used[:-1]
    q, nu = len(kept), tally.count - len(strata)
    if nu - q + 1 < 1 or tally.count < FEWEST_CLUSTERS:
        return np.nan, FEW
    # From a flattened table of pairs to (d of the classes that are kept, n), one column each.
    columns = np.zeros((k, k, q + 1))
    for column, class_ in enumerate(kept):
        columns[class_, :, column] += 1
        columns[:, class_, column] -= 1
    columns[:, :, q] = 1
    to = columns.reshape(k * k, q + 1)
    total = tally.total.reshape(-1) @ to
    residual = np.vstack([np.eye(q), -total[None, :q] / total[q]])
    variance, scale = np.zeros((q, q)), 0.0
    for stratum in strata:
        inside = None if len(strata) == 1 else np.flatnonzero(tally.strata == stratum)
        rows, times = tally.rows.reshape(len(tally.rows), -1), tally.clusters
        if inside is not None:
            rows, times = rows[inside], times[inside]
        clusters = float(times.sum())
        if clusters < 2:
            return np.nan, ALONE
        # Sums of whole numbers: exact in any order, whatever the number of threads.
        square, sums = np.zeros((q + 1, q + 1)), np.zeros(q + 1)
        for low in range(0, len(rows), _BLOCK):
            amounts = rows[low : low + _BLOCK].astype(np.float64) @ to
            counted = times[low : low + _BLOCK, None] * amounts
            square += counted.T @ amounts
            sums += counted.sum(0)
        centred = square - np.outer(sums, sums) / clusters
        variance += clusters / (clusters - 1) * (residual.T @ centred @ residual)
        scale += float(np.trace(square[:q, :q]))
    values, vectors = np.linalg.eigh((variance + variance.T) / 2)
    there = values > _SINGULAR * scale
    rank = int(there.sum())
    along = vectors.T @ total[:q]
    if not rank or (along[~there] ** 2).sum() > _SINGULAR * (1 + (along**2).sum()):
        return np.nan, FLAT  # a difference in a direction in which no cluster varies
    wald = float((along[there] ** 2 / values[there]).sum())
    df = nu - rank + 1
    return float(fdtrc(rank, df, wald * df / (nu * rank))), ""


def _off_diagonal(table: Array) -> Array:
    return np.asarray(table.sum((-2, -1)) - np.trace(table, axis1=-2, axis2=-1))


# --- statistics ---------------------------------------------------------------------------------


def _n(cells: Array, given: Given) -> Array:
    return np.asarray(cells.sum((-2, -1))[..., None])


def _said(p: Array, cells: Array, given: Given) -> Array:
    """The p-values as outputs; nan under design weights and without a common response."""
    unsaid = given["design"] | (cells.sum((-2, -1)) == 0)
    return np.where(unsaid, np.nan, p)[..., None]


def _why(totals: Array, given: Given) -> Sequence[str]:
    if totals.sum() == 0:
        return [NO_COMMON]
    return [DESIGN if given["design"] else SAME]


def _robust(cells: Array, given: Given) -> Array:
    # The covariance of clusters cannot be had from totals: ``parts`` made the p-value of the tally.
    return np.full((*cells.shape[:-2], 1), given["robust"][0])


S_ROBUST = Statistic(
    estimand=ROBUST,
    solve=_robust,
    n=_n,
    reason=lambda totals, given: [given["robust"][1]],
    unweighted=True,
)
S_STUART = Statistic(
    estimand=STUART,
    solve=lambda cells, given: _said(chi2_tail(*stuart_maxwell_of(cells)), cells, given),
    n=_n,
    reason=_why,
    unweighted=True,
)
S_BOWKER = Statistic(
    estimand=BOWKER,
    solve=lambda cells, given: _said(chi2_tail(*bowker_of(cells)), cells, given),
    n=_n,
    reason=_why,
    unweighted=True,
)
S_MCNEMAR = Statistic(
    estimand=MCNEMAR,
    solve=lambda cells, given: _said(mcnemar_of(cells, "mid-p"), cells, given),
    n=_n,
    reason=_why,
    unweighted=True,
)


def _cochran(cells: Array, given: Given) -> Array:
    """p of Q for each class from ``(..., k, graders + 1)``; the last column is the sum of squares."""
    q, df = cochran_of(cells[..., :-1], cells[..., -1])
    return np.where(given["design"], np.nan, chi2_tail(q, np.where(np.isnan(q), 0, df)))


def _complete(cells: Array, given: Given) -> Array:
    graders = cells.shape[-1] - 1
    n = cells[..., :-1].sum((-2, -1)) / graders
    return np.asarray(np.broadcast_to(n[..., None], cells.shape[:-1]))


def _why_not_q(totals: Array, given: Given) -> Sequence[str]:
    why = NOT_VARYING
    if given["design"]:
        why = DESIGN
    elif totals.sum() == 0:
        why = NOT_COMPLETE
    return [why] * totals.shape[-2]


S_COCHRAN = Statistic(
    estimand=COCHRAN, solve=_cochran, n=_complete, reason=_why_not_q, unweighted=True
)


def _by_design(scene: Scene) -> bool:
    """Whether responses carry design weights; weights that are all one are none."""
    grid = scene.grid
    if grid is None or grid.weights is None or grid.frequency:
        return False
    return bool((grid.weights != 1).any())


def parts(scene: Scene) -> Iterable[Part]:
    if scene.grid is None:
        return
    design = _by_design(scene)
    of_counts = (S_MCNEMAR,) if scene.k == 2 else (S_STUART, S_BOWKER)
    for grader, other in pairs(scene):
        key = (Key(grader=grader, other=other),)
        tally = scene.pair_tally(grader, other)
        robust = robust_p(tally) if not design else (np.nan, DESIGN if tally.count else NO_COMMON)
        yield Part(
            tally=tally,
            asks=tuple((s, key) for s in (S_ROBUST, *of_counts)),
            given={"design": design, "robust": robust},
        )
    yield from _panel_part(scene, design)


def _panel_part(scene: Scene, design: bool) -> Iterable[Part]:
    """Cochran's Q of every class: totals alone, since Q does not look at clusters."""
    grid = scene.grid
    graders = alpha_panel(scene)
    if grid is None or len(graders) < FEWEST_FOR_Q or not scene.k:
        return
    codes = grid.codes[:, [scene.places[g] for g in graders]]
    complete = (codes >= 0).all(axis=1)
    codes = codes[complete]
    times = np.ones(len(codes))
    if grid.weights is not None and grid.frequency:
        times = grid.weights[complete]
    cells = np.zeros((scene.k, len(graders) + 1))
    for class_ in range(scene.k):
        gives = codes == class_
        cells[class_, :-1] = (gives * times[:, None]).sum(axis=0)
        cells[class_, -1] = (gives.sum(axis=1) ** 2 * times).sum()
    keys = tuple(Key(class_=c) for c in scene.classes)
    yield Part(tally=None, totals=cells, asks=((S_COCHRAN, keys),), given={"design": design})


# --- plain functions ----------------------------------------------------------------------------


def _square(table: Any) -> Array:
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError("a table of label pairs has as many rows as columns")
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise ValueError("a table of label pairs holds counts from 0")
    return counts


def _result(statistic: Array, df: Any, why: str) -> tuple[float, int, float]:
    if not np.isfinite(statistic):
        warnings.warn(why, UndefinedWarning, stacklevel=3)
        return float("nan"), int(df), float("nan")
    return float(statistic), int(df), float(chi2_tail(statistic, np.asarray(df)))


def stuart_maxwell(table: Any) -> tuple[float, int, float]:
    """Stuart and Maxwell's test that two graders use every class equally often: (statistic, df, p).

    ``table`` is ``(k, k)``, how often one gives the row's class and the other the column's. ``df`` is
    k − 1, less the classes on which they never differ (an empty class among them). nan with an
    ``UndefinedWarning`` and df 0 where they never differ. Source: Stuart 1955, p. 412.

    >>> stuart_maxwell([[30, 8], [3, 40]])[1]
    1
    """
    return _result(*stuart_maxwell_of(_square(table)), SAME)


def bowker(table: Any) -> tuple[float, int, float]:
    """Bowker's test that every two classes are exchanged equally often both ways: (statistic, df, p).

    ``table`` as for :func:`stuart_maxwell`. ``df`` is the number of non-empty pairs of classes: a
    pair that is never exchanged says nothing (some tools count it, others give nan). nan with an
    ``UndefinedWarning`` and df 0 where the graders never differ. Source: Bowker 1948, p. 572.

    >>> bowker([[20, 5, 3], [8, 30, 4], [1, 9, 20]])[1]
    3
    """
    return _result(*bowker_of(_square(table)), NO_PATTERN)


def mcnemar(table: Any, method: str = "exact") -> float:
    """McNemar's two-sided p that two graders use both classes equally often, from a ``(2, 2)`` table.

    ``method`` is ``"exact"`` (twice the smaller binomial tail, at most 1) or ``"mid-p"`` (that less
    the probability of what was seen). 1 where there is no discordant pair. Source: McNemar 1947,
    p. 153; Fagerland, Lydersen and Laake 2013.

    >>> mcnemar([[10, 0], [0, 12]])
    1.0
    """
    counts = _square(table)
    if counts.shape != (2, 2):
        raise ValueError("McNemar's test needs a table of two classes; use stuart_maxwell for more")
    if method not in ("exact", "mid-p"):
        raise ValueError(f"method {method!r} is neither 'exact' nor 'mid-p'")
    return float(mcnemar_of(counts, method))


def cochran_q(responses: Any) -> tuple[float, int, float]:
    """Cochran's test that all graders give a class equally often: (Q, df, p).

    ``responses`` is ``(responses, graders)`` of 0 and 1 (None or nan: the response is left out). nan
    with an ``UndefinedWarning`` where the graders never differ. Source: Cochran 1950, p. 256.

    >>> cochran_q([[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 0]])[1]
    2
    """
    given = np.asarray(responses, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError("responses must be responses × graders")
    given = given[~np.isnan(given).any(axis=1)]
    if not np.isin(given, (0, 1)).all():
        raise ValueError("Cochran's Q needs 0 and 1")
    return _result(*cochran_of(given.sum(axis=0), (given.sum(axis=1) ** 2).sum()), NOT_VARYING)


# --- the report ---------------------------------------------------------------------------------


def _p_cell(estimate: Estimate | None) -> Cell:
    value = None if estimate is None else estimate.number
    if value is not None and value < SMALLEST_SHOWN:
        return cell(f"< {SMALLEST_SHOWN}", Kind.COEFFICIENT)
    return cell(estimate)


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    found = estimates.of(ROBUST.name, slice=scene.slice)
    if len(found) > MOST_ROWS:
        found = [e for e in found if e.key.other in scene.standards]
    if not 0 < len(found) <= MOST_ROWS or all(e.reason == DESIGN for e in found):
        return ()
    second = MCNEMAR if scene.k == 2 else STUART
    rows = tuple(
        (
            cell(Name(e.key.grader)),
            cell(Name(e.key.other)),
            _p_cell(e),
            _p_cell(
                estimates.get(
                    second.name, grader=e.key.grader, other=e.key.other, slice=scene.slice
                )
            ),
            cell(e.n, Kind.COUNT),
        )
        for e in found
    )
    return (
        Table(
            title="Do the two use the classes equally often?",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title="other", kind=Kind.NAME),
                Column(title="p, cluster-robust", kind=Kind.COEFFICIENT),
                Column(
                    title="p, McNemar (mid-p)" if second is MCNEMAR else "p, Stuart–Maxwell",
                    kind=Kind.COEFFICIENT,
                ),
                Column(title="responses", kind=Kind.COUNT),
            ),
            rows=rows,
            note=(
                "On the responses that both labelled. A small p says that they differ in how often "
                "they use the classes; among many pairs some are small by chance. " + NO_PROOF,
            ),
        ),
    )


FAMILY = Family(
    name="homogeneity",
    statistics=(S_ROBUST, S_STUART, S_BOWKER, S_MCNEMAR, S_COCHRAN),
    parts=parts,
    section="Agreement",
    order=58,
    blocks=blocks,
)
