"""A column that looks like the prompt or the case behind several responses, and is not the cluster."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from voirdire.checks.base import Check, Evidence
from voirdire.finding import Finding, State, Strength
from voirdire.labels import Labels
from voirdire.wording import Name, counted, say

WORDS = (
    *("prompt", "question", "case", "item", "id", "core", "behaviour", "behavior", "goal"),
    *("instruction", "session", "conversation"),
)
FEWEST_VALUES = 10
FEWEST_RESPONSES = 2  # with one value, on average
MOST_TOLD = 5

# A word ends where letters end or a capital begins: behaviorId, BEHAVIOR_ID, "Behavior 2".
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True)
class _Candidate:
    name: str
    values: int
    responses: int
    clusters: int


def named_like_a_cluster(name: str) -> bool:
    """Whether a word of a column's name is one that names what several responses share."""
    words = {w.casefold() for w in _WORD.findall(name)}
    return not words.isdisjoint({*WORDS, *(f"{w}s" for w in WORDS)})


def run(evidence: Evidence) -> Iterable[Finding]:
    labels = evidence.labels
    if labels is None or labels.kind == "counts":
        return
    looked = [t.name for t in labels.tags if t.per_response and named_like_a_cluster(t.name)]
    found = [
        c
        for t in labels.tags
        if t.name in looked
        and t.values >= FEWEST_VALUES
        and (c := _candidate(labels, t.name)) is not None
    ]
    found.sort(key=lambda c: (c.values, c.name))
    for one in found[:MOST_TOLD]:
        yield _finding(labels, one)
    if looked and not found:
        yield Finding(
            code="undeclared_clusters",
            state=State.CLEAR,
            sentence=(
                "No column that is named like a prompt, a question or a case holds together "
                "responses that the clusters keep apart.",
            ),
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
    return _Candidate(tag, values, responses, len(frame))


def _finding(labels: Labels, one: _Candidate) -> Finding:
    flag = f"--cluster {shlex.quote(one.name)}"
    declared = (
        f"the {counted(one.clusters)} clusters that were declared keep them apart"
        if labels.clusters_declared
        else "no clusters are declared, so each response stands as its own"
    )
    return Finding(
        code="undeclared_clusters",
        state=State.FOUND,
        strength=Strength.LIKELY,
        sentence=say(
            "{tag} has {values} values for {responses} responses ({each} each), and {declared}. If "
            "responses of one {tag} are alike, every interval here is too short.",
            tag=Name(one.name),
            values=counted(one.values),
            responses=counted(one.responses),
            each=f"{one.responses / one.values:,.1f}",
            declared=declared,
        ),
        weight=one.responses / one.values,
        next_step=("Audit again with ", Name(flag), "."),
    )


CHECK = Check(
    name="undeclared_clusters",
    codes={
        "undeclared_clusters": "A column named like a prompt, a question or a case repeats across responses and is not the cluster."
    },
    run=run,
    would_miss=(
        "Columns with other names, with fewer than 10 values or fewer than 2 responses a value; texts "
        "that are alike and not the same; a column that differs between the labels of one response."
    ),
    rank=61,
    kinds=("labels", "counts", "checklist"),
)
