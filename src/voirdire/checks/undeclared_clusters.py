"""A column whose values hold together responses that the clusters keep apart: by its name, or by its labels.

A column that is named like the prompt or the case behind several responses is told of by its name. Any
other column of a response with more than 20 values that repeat is told of where labels of one value are more
alike than labels of different values: one-way analysis of variance of the class indicators, summed over
classes and graders (and gold). Columns with fewer values are slices, not clusters. A column of numbers
may be a measure (length, a score) that labels rise or fall with: its values must also differ from their
neighbours, by mean squared successive differences (von Neumann 1941, Annals of Mathematical Statistics 12, p. 367).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.corroboration import holm
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Key
from voirdire.finding import Finding, State, Strength
from voirdire.grid import Grid
from voirdire.labels import OF_A_CALL, Labels, Tag
from voirdire.questions import coded
from voirdire.scene import Scene
from voirdire.wording import Name, Text, counted, listed, number, plural, say, times

Array = np.ndarray[Any, Any]

WORDS = (
    *("prompt", "question", "case", "item", "id", "core", "behaviour", "behavior", "goal"),
    *("instruction", "session", "conversation"),
)
# Columns that are compared with each other, or that say how a call went: never clusters.
NO_CLUSTER = (*OF_A_CALL, "file", "model", "target", "target_model", "system", "generator")
FEWEST_VALUES = 10
FEWEST_OF_OTHERS = 21  # values of a column with another name; up to 20 it is looked at as slices
FEWEST_RESPONSES = 2  # with one value, on average
MOST_TOLD = 5
ALPHA = 0.05
POWER = 0.8  # with which a correlation could have been seen, where none was
LEAST_EFFECT = 1.1  # design effect, below which an interval gains less than 5 % of its width

SOURCE = Source(
    text="Donner and Koval 1980, Biometrics 36, p. 19; Kish 1965, Survey Sampling, p. 161"
)
CORRELATION = Estimand(
    name="within_value_correlation",
    title="Correlation of labels within one value of a column",
    question="How much more alike are labels of one value of a column than labels of different values?",
    describes=Describes.BOTH,
    keys=("slice",),
    unit=Unit.COEFFICIENT,
    scale=Scale.NONE,
    high=1,
    reading="The intraclass correlation of the class indicators, over all graders and gold.",
    moves_with=("how different the values are in this bank",),
    undefined_when="labels do not vary",
    source=SOURCE,
)
DESIGN_EFFECT = Estimand(
    name="design_effect_if_clustered",
    title="Design effect if the column were the cluster",
    question="By how much would the variance of a rate grow if a column were the cluster?",
    describes=Describes.BOTH,
    keys=("slice",),
    unit=Unit.RATIO,
    scale=Scale.NONE,
    low=0,
    reading="1 + (n − 1) × correlation, with n the size of a value that a label stands in on average.",
    moves_with=("how many responses have one value",),
    undefined_when="labels do not vary",
    source=SOURCE,
)

# A word ends where letters end or a capital begins: behaviorId, BEHAVIOR_ID, "Behavior 2".
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True)
class _Alike:
    """How alike labels of one value are: F with its degrees of freedom, p, and what follows from it.

    ``size`` is Donner and Koval's n0, ``mean_size`` that of the value of an average response.
    """

    f: float
    p: float
    df: tuple[float, float]
    size: float
    mean_size: float
    adjusted: float = 1.0

    @property
    def correlation(self) -> float:
        return (self.f - 1) / (self.f - 1 + self.size)

    @property
    def design_effect(self) -> float:
        return max(0.0, 1 + (self.mean_size - 1) * self.correlation)

    @property
    def matters(self) -> bool:
        return self.adjusted < ALPHA and self.design_effect >= LEAST_EFFECT

    def could_see(self, tested: int) -> float:
        """The correlation that would have been seen with probability :data:`POWER` (normal labels)."""
        from scipy.special import fdtri

        least = fdtri(*self.df, 1 - ALPHA / tested) / fdtri(*self.df, 1 - POWER)
        return float((least - 1) / (least - 1 + self.size))


@dataclass(frozen=True)
class _Candidate:
    name: str
    values: int
    responses: int
    clusters: int
    named: bool
    alike: _Alike | None = None


def named_like_a_cluster(name: str) -> bool:
    """Whether a word of a column's name is one that names what several responses share."""
    words = {w.casefold() for w in _WORD.findall(name)}
    return not words.isdisjoint({*WORDS, *(f"{w}s" for w in WORDS)})


def run(evidence: Evidence) -> Iterable[Finding]:
    labels = evidence.labels
    if labels is None or labels.kind == "counts":
        return
    looked = any(t.per_response and named_like_a_cluster(t.name) for t in labels.tags)
    made = [
        c
        for t in labels.tags
        if _looked_at(labels, t) and (c := _candidate(labels, t.name)) is not None
    ]
    made = _with_likeness(evidence, labels, made)
    found = [c for c in made if c.named or (c.alike is not None and c.alike.matters)]
    found.sort(key=lambda c: (not c.named, c.values, c.name))
    tested = [c for c in made if c.alike is not None]
    for one in found[:MOST_TOLD]:
        yield _finding(labels, one, len(tested))
    if (looked or tested) and not found:
        yield _clear(tested, looked=looked)


def _looked_at(labels: Labels, tag: Tag) -> bool:
    """Whether a column may be a cluster: by its name, or as one of many values that repeat."""
    if not tag.per_response or tag.values < FEWEST_VALUES:
        return False
    if named_like_a_cluster(tag.name):
        return True
    options = labels.options
    sliced = {part for by in options.by for part in (by, *by.split("+"))}
    sliced |= {options.stratum, options.population, *options.standardise, *dict(options.drop)}
    plain = tag.name.casefold().replace(" ", "_").replace("-", "_")
    return (
        labels.kind == "labels"
        and FEWEST_OF_OTHERS <= tag.values <= labels.responses / FEWEST_RESPONSES
        and tag.name not in sliced
        and plain not in NO_CLUSTER
    )


def _candidate(labels: Labels, tag: str) -> _Candidate | None:
    """The tag, if its values repeat across responses and gather whole clusters, fewer than those."""
    frame = (
        labels.frame.lazy()
        .select(pl.col("response"), pl.col("cluster"), pl.col(tag).alias("__value"))
        .drop_nulls("__value")
        .group_by("response")
        .agg(pl.col("cluster").first(), pl.col("__value").min())
        .group_by("cluster")
        .agg(
            pl.col("__value").n_unique().alias("values"),
            pl.col("__value").first(),
            pl.len().alias("responses"),
        )
        .collect()
    )
    values, responses = frame["__value"].n_unique(), int(frame["responses"].sum())
    if responses < FEWEST_RESPONSES * values or values >= len(frame):
        return None
    if labels.clusters_declared and (frame["values"] > 1).any():
        return None  # it cuts through the clusters that were declared: neither holds the other
    return _Candidate(tag, values, responses, len(frame), named_like_a_cluster(tag))


# --- how alike labels of one value are ----------------------------------------------------------


def _with_likeness(evidence: Evidence, labels: Labels, made: list[_Candidate]) -> list[_Candidate]:
    """The candidates with what their labels say; p after Holm over the columns."""
    scene, numeric = evidence.whole, {t.name: t.numeric for t in labels.tags}
    if scene.grid is None or scene.grid.weights is not None:  # no p-values under weights
        return [c for c in made if c.named]
    alike = [_alike(labels, scene, c.name, numeric=numeric[c.name]) for c in made]
    adjusted = holm([None if a is None else a.p for a in alike])
    return [
        replace(c, alike=None if a is None or p is None else replace(a, adjusted=p))
        for c, a, p in zip(made, alike, adjusted, strict=True)
    ]


def _value_of_unit(labels: Labels, grid: Grid, tag: str) -> tuple[list[str], Array]:
    """The values of a column, and the value of each cluster (−1: none), ``(clusters,)``."""
    texts, codes = coded(labels.frame[tag])
    of_row = codes.cast(pl.Int64).fill_null(-1).to_numpy()
    of_response = np.full(grid.responses, -1, dtype=np.int64)
    of_response[labels.response_codes[::-1]] = of_row[::-1]
    of_unit = np.full(int(grid.cluster.max(initial=-1)) + 1, -1, dtype=np.int64)
    known = of_response >= 0
    of_unit[grid.cluster[known]] = of_response[known]
    return texts.to_list(), of_unit


def _alike(labels: Labels, scene: Scene, tag: str, *, numeric: bool) -> _Alike | None:
    """One-way analysis of variance of the labels by a column; units are the clusters as they are."""
    from scipy.special import fdtrc

    grid, k = scene.grid, scene.k
    assert grid is not None
    texts, of_unit = _value_of_unit(labels, grid, tag)
    rank = np.arange(len(texts))
    if numeric:
        rank = np.argsort(np.argsort([float(t) for t in texts], kind="stable"), kind="stable")
    between = within = successive = 0.0
    df = sizes = np.zeros(2)
    for place in range(len(grid.graders)):
        read = np.flatnonzero((grid.codes[:, place] >= 0) & (of_unit[grid.cluster] >= 0))
        unit = grid.cluster[read]
        cell = unit * k + grid.codes[read, place]
        counts = np.bincount(cell, minlength=len(of_unit) * k).reshape(-1, k).astype(np.float64)
        there = counts.sum(axis=1) > 0
        share = counts[there] / counts[there].sum(axis=1, keepdims=True)
        value = rank[of_unit[there]]
        n = np.bincount(value, minlength=len(texts)).astype(np.float64)
        sums = np.stack(
            [np.bincount(value, share[:, c], minlength=len(texts)) for c in range(k)], 1
        )
        sums, n = sums[n > 0], n[n > 0]
        units, values = float(n.sum()), len(n)
        if values < 2 or units <= values:
            continue
        means = sums / n[:, None]
        centre = sums.sum(axis=0) / units
        of_values = float((n[:, None] * (means - centre) ** 2).sum())
        of_rest = float(((share - centre) ** 2).sum()) - of_values
        between += of_values / (values - 1)
        within += of_rest / (units - values)
        steps = float((np.diff(means, axis=0) ** 2).sum())
        successive += steps / float((1 / n[1:] + 1 / n[:-1]).sum())
        size = np.array([(units - (n**2).sum() / units) / (values - 1), (n**2).sum() / units])
        new = np.array([values - 1, units - values], dtype=np.float64)
        df, sizes = (new, size) if not df.any() else (np.minimum(df, new), np.minimum(sizes, size))
    if not df.any() or not between > 0:
        return None
    f = between / within if within > 1e-12 * between else 1e12
    p = float(fdtrc(df[0], df[1], f))
    if numeric:
        steps = successive / within if within > 1e-12 * between else 1e12
        # Successive differences of m means tell as much of their variance as about 2 (m − 1) / 3 would.
        p = max(p, float(fdtrc(max(1.0, 2 * df[0] / 3), df[1], steps)))
    return _Alike(f, p, (float(df[0]), float(df[1])), float(sizes[0]), float(sizes[1]))


# --- what is said -------------------------------------------------------------------------------


def _clear(tested: list[_Candidate], *, looked: bool) -> Finding:
    sentence: Text = ()
    if looked:
        sentence = (
            "No column that is named like a prompt, a question or a case holds together "
            "responses that the clusters keep apart.",
        )
    if tested:
        most = max(tested, key=lambda c: (c.alike.correlation if c.alike else 0.0, c.name))
        alike = most.alike
        assert alike is not None
        sentence = (
            *sentence,
            " " if looked else "",
            *say(
                "Labels of one value of {columns} are no more alike than chance would make them (the "
                "highest correlation, {correlation}, in {most}; {seen} would have been seen with "
                "probability {power}).",
                columns=listed(c.name for c in tested),
                correlation=number(alike.correlation),
                most=Name(most.name),
                seen=number(max(c.alike.could_see(len(tested)) for c in tested if c.alike)),
                power=f"{POWER:g}",
            ),
        )
    return Finding(
        code="undeclared_clusters",
        state=State.CLEAR,
        sentence=sentence,
        evidence=tuple(e for c in tested for e in _rows(c)),
    )


def _rows(one: _Candidate) -> tuple[Estimate, ...]:
    if one.alike is None:
        return ()
    key = Key(slice=one.name)
    rows = ((CORRELATION, one.alike.correlation), (DESIGN_EFFECT, one.alike.design_effect))
    return tuple(
        Estimate(estimand=e, key=key, value=v, n=one.responses, clusters=one.values, p=one.alike.p)
        for e, v in rows
    )


def _measured(one: _Candidate, tested: int) -> Text:
    """What the labels say of the column, where they say that it matters."""
    alike = one.alike
    if alike is None:
        return ()
    if not alike.matters:
        return say(
            " Labels here do not show it: their correlation within one {tag} is {correlation}.",
            tag=Name(one.name),
            correlation=number(alike.correlation),
        )
    p = alike.adjusted
    return say(
        " Labels of one {tag} are more alike than others: correlation {correlation} (F test p {p} after Holm "
        "over {tested}), a design effect of {effect}. The interval of a rate would be some {wider} times as "
        "wide.",
        tag=Name(one.name),
        correlation=number(alike.correlation),
        p="< 0.0001" if p < 0.0001 else f"= {number(p, 4)}",
        tested=plural(tested, "column"),
        effect=times(alike.design_effect),
        wider=times(alike.design_effect**0.5),
    )


def _finding(labels: Labels, one: _Candidate, tested: int) -> Finding:
    flag = f"--cluster {shlex.quote(one.name)}"
    declared = (
        f"the {counted(one.clusters)} clusters that were declared keep them apart"
        if labels.clusters_declared
        else "no clusters are declared, so each response stands as its own"
    )
    matters = one.alike is not None and one.alike.matters
    lead = say(
        "{tag} has {values} values for {responses} responses ({each} each), and {declared}.",
        tag=Name(one.name),
        values=counted(one.values),
        responses=counted(one.responses),
        each=f"{one.responses / one.values:,.1f}",
        declared=declared,
    )
    if not matters:
        lead = (
            *lead,
            *say(
                " If responses of one {tag} are alike, every interval here is too short.",
                tag=Name(one.name),
            ),
        )
    step: Text = ("Audit again with ", Name(flag), ".")
    if not one.named:
        step = (
            *step,
            *say(
                " If its values are all there are and not a sample of more, {tag} is a category: slice by it "
                "with {by}.",
                tag=Name(one.name),
                by=Name(f"--by {shlex.quote(one.name)}"),
            ),
        )
    return Finding(
        code="undeclared_clusters",
        state=State.FOUND,
        strength=Strength.CERTAIN if one.named and matters else Strength.LIKELY,
        sentence=(*lead, *_measured(one, tested)),
        evidence=_rows(one),
        weight=one.responses / one.values,
        next_step=step,
    )


CHECK = Check(
    name="undeclared_clusters",
    codes={
        "undeclared_clusters": (
            "A column that is named like a prompt, a question or a case repeats across responses and is not the "
            "cluster, or labels of one value of another column are alike."
        )
    },
    run=run,
    would_miss=(
        "Columns with fewer than 10 values or fewer than 2 responses a value, and columns of another name with "
        "up to 20 values (these are slices), under weights or in a checklist; texts that are alike and not the "
        "same; a column that differs between the labels of one response; a weak correlation."
    ),
    rank=61,
    kinds=("labels", "counts", "checklist"),
    uses=(
        Consequence(
            code="undeclared_clusters",
            use="quote_intervals",
            effect=Effect.FORBIDS,
            because="Responses that belong together stand apart, so the intervals are too short.",
        ),
    ),
)
