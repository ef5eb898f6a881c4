"""What a pilot file says about the guesses of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from voirdire import intervals
from voirdire.corroboration import testable_classes
from voirdire.errors import UsageError
from voirdire.estimate import Key
from voirdire.labels import Labels
from voirdire.planning.base import Pilot, Share, Stratum
from voirdire.scene import Scene
from voirdire.stats import element_error as errors
from voirdire.stats import gate
from voirdire.stats.base import Part, Statistic
from voirdire.tally import Tally, summed

Array = np.ndarray[Any, Any]


def _guess(
    name: str,
    tally: Tally,
    events: Array,
    trials: Array,
    plain: Array,
    *,
    grader: str = "",
    class_: str = "",
    cut: str = "",
) -> Share | None:
    """The share of a pilot with its intraclass correlation, from cells by distinct row ``(rows,)``.

    ``plain`` are the trials without their weights. The design effect of clusters is the linearised
    cluster variance over the binomial one of Kish's effective number of trials; where it cannot be
    seen (no event, or none without) the correlation is the 0.1 that edge intervals assume.
    """
    clusters = tally.clusters.astype(np.float64)
    x, n = float(summed(clusters, events)), float(summed(clusters, trials))
    many = float(summed(clusters, plain))
    there = float(summed(clusters, plain > 0))
    if not n > 0:
        return None
    p = x / n
    mean_weight = np.where(plain > 0, trials / np.where(plain > 0, plain, 1), 0.0)
    effective = n**2 / float(summed(clusters, plain * mean_weight**2))
    # Clusters differ in size: the size that the variance of a mean feels is Σ m² / Σ m.
    felt = float(summed(clusters, plain.astype(np.float64) ** 2)) / many
    correlation = intervals.ASSUMED_CORRELATION if felt > 1 else 0.0
    if 0 < p < 1 and there > 1 and felt > 1:
        residual = (events - trials * p) / n
        variance = there / (there - 1) * float(summed(clusters, residual**2))
        correlation = (variance * effective / (p * (1 - p)) - 1) / (felt - 1)
    sizes = Counter[int]()
    for size, count in zip(plain, tally.clusters, strict=True):
        if size > 0:
            sizes[int(size)] += int(count)
    return Share(
        name=name,
        value=p,
        per_cluster=max(many / there, 1.0),
        correlation=min(max(correlation, 0.0), 1.0),
        weighting=max(many / effective, 1.0) if tally.weighted else 1.0,
        sizes=tuple(sorted(sizes.items())),
        trials=many,
        clusters=int(there),
        grader=grader,
        class_=class_,
        cut=cut,
    )


def _guesses_of(part: Part, statistic: Statistic, keys: Sequence[Key], name: str) -> list[Share]:
    tally = part.tally
    if tally is None or part.undefined or statistic.share is None or not tally.count:
        return []
    shape = (len(tally.rows), len(keys))

    def parts(rows: Array) -> tuple[Array, Array]:
        assert statistic.share is not None
        events, trials = statistic.share(rows.astype(np.float64), part.given)
        return (
            np.broadcast_to(events.reshape(shape[0], -1), shape),
            np.broadcast_to(trials.reshape(shape[0], -1), shape),
        )

    events, trials = parts(tally.rows)
    plain = parts(tally.sizes)[1]
    made = [
        _guess(name, tally, events[:, i], trials[:, i], plain[:, i], grader=key.grader, cut=key.cut)
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
        labels=labels,
        scene=scene,
    )


def _of_labels(scene: Scene) -> tuple[list[Share], list[Share], list[Share]]:
    """False accepts beside gold, rates, and how often graders give each class."""
    shares: list[Share] = []
    rates: list[Share] = []
    classes: list[Share] = []

    def take(into: list[Share], made: Share | None, **more: float) -> None:
        if made is not None:
            into.append(replace(made, **more))  # type: ignore[arg-type]

    # What is planned is grading; people are looked at only where they are all there is.
    people = set(scene.options.people)
    graded = {g for g in scene.panel if g not in people} or set(scene.panel)
    # Classes are planned for where the collapse rule of the audit looks at them.
    looked = testable_classes(scene) and not (scene.ordered and len(scene.scale) > 4)
    for grader in (*scene.panel, *((scene.gold,) if scene.gold else ())):
        own = scene.labels_tally(grader)
        if not own.count:
            continue
        rows, plain = own.rows.astype(np.float64), own.sizes.astype(np.float64)
        # The collapse rule counts labels as they are, so weights do not enter.
        counted = replace(own, rows=own.sizes)
        for i, class_ in enumerate(scene.classes if looked else ()):
            of_class = plain[:, i]
            whole = plain.sum(1)
            key = {"grader": grader, "class_": class_}
            take(classes, _guess("class", counted, of_class, whole, whole, **key))
        if grader not in graded:
            continue
        for rate in scene.rates:
            inside = rows[:, rate.members].sum(1)
            key = {"grader": grader, "class_": rate.name}
            take(rates, _guess("rate", own, inside, rows.sum(1), plain.sum(1), **key))
            if not scene.gold:
                continue
            pairs = scene.pair_tally(grader, scene.gold)
            if not pairs.count:
                continue
            # Cells are (grader, gold): of what gold calls absent, what the grader calls there.
            absent = pairs.rows.astype(np.float64)[..., ~rate.members]
            unweighted = pairs.sizes.astype(np.float64)[..., ~rate.members].sum((1, 2))
            accepted = absent[:, rate.members].sum((1, 2))
            weighted = absent.sum((1, 2))
            made = _guess("false accepts", pairs, accepted, weighted, unweighted, **key)
            every = float(pairs.size.sum())
            take(shares, made, among=float(summed(pairs.clusters, unweighted)) / every)
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
