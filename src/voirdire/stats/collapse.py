"""How a grader's count of a class compares with another's on the responses that both labelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from voirdire import corroboration
from voirdire.document import Block, Column, Kind, Table, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Key
from voirdire.intervals import poisson_ratio_p
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.wording import Name, say, times

COLLAPSE_RATIO = Estimand(
    name="collapse_ratio",
    title="Collapse ratio",
    question="How often does the grader give a class, for each time that the other gives it?",
    describes=Describes.BOTH,
    keys=("grader", "other", "class"),
    unit=Unit.RATIO,
    scale=Scale.LOG,
    low=0,
    reading=(
        "1: equally often. The other is gold where there is gold, else the comparison that decides: "
        "the second-lowest ratio among graders not related to one another."
    ),
    moves_with=("the responses in the bank", "the other grader"),
    undefined_when="the other never gives the class on the responses that both labelled",
    source=Source(
        text='"The Missing Compliance Class", Tables 2 and 8; interval at zero: Przyborowski and '
        "Wilenski 1940, Biometrika 31, p. 313"
    ),
    formula=r"\frac{n_{gc}}{n_{hc}}",
    conventions=(
        "n_gc, n_hc: how often the grader and the other give class c, on the responses that both "
        "labelled; from a table of counts, on all that each labelled. Nothing is added to a count "
        "of 0."
    ),
)


def _margins(rows: Array) -> Array:
    """The class counts of both graders on their common responses: ``(..., 2, k)``, grader first."""
    return np.stack([rows.sum(axis=-1), rows.sum(axis=-2)], axis=-2)


def _ratio(cells: Array, given: Given) -> Array:
    own, other = cells[..., 0, :], cells[..., 1, :]
    return np.where(other > 0, own / np.where(other > 0, other, 1), np.nan)


def _common(cells: Array, given: Given) -> Array:
    return np.asarray(cells[..., 0, :].sum(-1, keepdims=True))


def _share(cells: Array, given: Given) -> tuple[Array, Array]:
    return cells[..., 0, :], np.asarray(cells.sum(-2))


def _from_share(share: Array, totals: Array, given: Given) -> Array:
    return np.where(share < 1, share / np.where(share < 1, 1 - share, 1), np.inf)


def _contrast(cells: Array, given: Given) -> Array:
    """``own / threshold − other`` in each cluster: its total is below zero under a collapse."""
    return np.asarray(cells[..., 0, :] / given["below"] - cells[..., 1, :])


def _null_variance(cells: Array, given: Given) -> Array:
    """How much larger the contrast's variance is where the ratio just is the threshold.

    Counts as independent: own / threshold² + other, at the observed counts and at those expected
    under the hypothesis with the same sum. Clusters and pairing are in the variance that this
    multiplies. Simulated (benchmarks/level.py): 0.75 to 1.0 of the nominal 5 %.
    """
    below = given["below"]
    own, other = cells[..., 0, :], cells[..., 1, :]
    both = own + other
    observed = own / below**2 + other
    expected = both * (below / (1 + below)) / below**2 + both / (1 + below)
    return np.asarray(np.maximum(1.0, expected / np.where(observed > 0, observed, np.inf)))


def _counts_p(cells: Array, given: Given) -> Array:
    return np.array(
        [
            poisson_ratio_p(float(own), float(other), given["below"])
            if np.isfinite(own) and np.isfinite(other)
            else np.nan
            for own, other in zip(cells[0], cells[1], strict=True)
        ]
    )


STATISTIC = Statistic(
    estimand=COLLAPSE_RATIO,
    solve=_ratio,
    n=_common,
    share=_share,
    from_share=_from_share,
    contrast=_contrast,
    null_variance=_null_variance,
    counts_p=_counts_p,
    counts_method="poisson_ratio",
    listed=False,
)
# The counts behind a ratio, for the checks: they are no rows of the results.
OWN = replace(COLLAPSE_RATIO, name="collapse_own", unit=Unit.COUNT, scale=Scale.NONE)
OTHERS = replace(COLLAPSE_RATIO, name="collapse_other", unit=Unit.COUNT, scale=Scale.NONE)
# The p of a grader's own count is the mirror of the ratio's: that the other's is collapsed beside it.
S_OWN = Statistic(
    estimand=OWN,
    solve=lambda cells, given: cells[..., 0, :],
    n=_common,
    contrast=lambda cells, given: _contrast(cells[..., ::-1, :], given),
    null_variance=lambda cells, given: _null_variance(cells[..., ::-1, :], given),
    counts_p=lambda cells, given: _counts_p(cells[::-1], given),
    listed=False,
    unweighted=True,
)
S_OTHERS = Statistic(
    estimand=OTHERS,
    solve=lambda cells, given: cells[..., 1, :],
    n=_common,
    listed=False,
    unweighted=True,
)


def parts(scene: Scene) -> Iterable[Part]:
    if not scene.classes:
        return
    panel = scene.panel
    if scene.gold:
        pairs = [(g, scene.gold) for g in panel]
    elif len(panel) > corroboration.MOST_GRADERS:
        return
    else:
        pairs = [(g, h) for g in panel for h in panel if g != h]
    given = {"below": scene.options.collapse_below}
    for grader, other in pairs:
        keys = tuple(Key(grader=grader, other=other, class_=c) for c in scene.classes)
        asks = ((STATISTIC, keys), (S_OWN, keys), (S_OTHERS, keys))
        if scene.grid is not None:
            tally = scene.pair_tally(grader, other)
            if tally.count:
                yield Part(tally=tally.mapped(_margins), asks=asks, given=given)
        else:
            totals = np.stack([scene.count_row(grader)[0], scene.count_row(other)[0]])
            yield Part(tally=None, totals=totals, asks=asks, given=given)


def finish(estimates: list[Estimate], scene: Scene) -> list[Estimate]:
    """List for each grader and class the one comparison that decides."""
    ties: dict[tuple[str, str], dict[str, float]] = {}
    for e in estimates:
        if e.statistic == "collapse_other":
            by_other = ties.setdefault((e.key.grader, e.key.class_), {})
            by_other[e.key.other] = -(e.number or 0.0)
    by_key = {
        (e.key.grader, e.key.other, e.key.class_): e
        for e in estimates
        if e.statistic == "collapse_ratio"
    }
    if not by_key:
        return estimates
    listed: set[tuple[str, str, str]] = set()
    for grader in scene.panel:
        for class_ in scene.classes:
            tie = ties.get((grader, class_), {})
            other = deciding_other(by_key, scene, grader, class_, tie)
            if other:
                listed.add((grader, other, class_))
    return [
        replace(e, listed=True)
        if e.statistic == "collapse_ratio" and (e.key.grader, e.key.other, e.key.class_) in listed
        else e
        for e in estimates
    ]


def deciding_other(
    by_key: dict[tuple[str, str, str], Estimate],
    scene: Scene,
    grader: str,
    class_: str,
    tie: dict[str, float],
) -> str:
    """Gold, or the second-lowest comparison (the only one where there is one)."""
    if scene.gold:
        return scene.gold if (grader, scene.gold, class_) in by_key else ""
    others = corroboration.corroborators(scene, grader, class_) or tuple(
        g for g in scene.panel if g != grader
    )
    ratios = corroboration.ratios(by_key, grader, class_, others)
    pair = corroboration.deciding_pair(scene, ratios, tie)
    if pair is not None:
        return pair.second
    if ratios:
        return min(ratios, key=lambda o: (ratios[o], o))
    return next((o for o in others if (grader, o, class_) in by_key), "")


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    rows = []
    classes = corroboration.testable_classes(scene)
    for estimate in estimates.of("collapse_ratio", slice=scene.slice):
        key = estimate.key
        if not estimate.listed or key.class_ not in classes:
            continue
        at = {"grader": key.grader, "other": key.other, "class_": key.class_, "slice": scene.slice}
        own, other = estimates.get("collapse_own", **at), estimates.get("collapse_other", **at)
        if other is None or own is None or not max(own.number or 0, other.number or 0):
            continue
        if not {key.grader, key.other} <= scene.places.keys():
            continue  # with very many graders the report shows the first ones
        if not all(corroboration.readable(scene, g) for g in (key.grader, key.other)):
            continue  # counts of a grader with many unread calls are not held against anyone
        rows.append(
            (
                estimate.number if estimate.number is not None else np.inf,
                (
                    cell(Name(key.grader)),
                    cell(Name(key.class_)),
                    cell(own),
                    cell(other),
                    cell(Name(key.other)),
                    cell(estimate),
                    cell(estimate.n, Kind.COUNT),
                ),
            )
        )
    if not rows:
        return ()
    rows.sort(key=lambda r: r[0])
    shown = [r for _, r in rows[:40]]
    against = "gold" if scene.gold else "the second-lowest comparison"
    note = say(
        "Against {against}, on the responses that both could be read on. A class is collapsed below "
        "{below}" + ("." if scene.gold else " of at least two others."),
        against=against,
        below=times(scene.options.collapse_below),
    )
    if len(rows) > len(shown):
        note = (*note, f" The {len(shown)} lowest of {len(rows)} are shown.")
    return (
        Table(
            title="How often a grader gives a class, beside another",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title="class", kind=Kind.NAME),
                Column(title="its labels", kind=Kind.COUNT),
                Column(title="the other’s", kind=Kind.COUNT),
                Column(title="other", kind=Kind.NAME),
                Column(title="ratio", kind=Kind.RATIO),
                Column(title="responses", kind=Kind.COUNT),
            ),
            rows=tuple(shown),
            note=note,
        ),
    )


FAMILY = Family(
    name="collapse",
    statistics=(STATISTIC,),
    parts=parts,
    section="Class counts beside another grader",
    order=30,
    finish=finish,
    blocks=blocks,
    explores=True,
)
