"""Graders that grade a model of their own family.

What is known comes from ``--about``: the family of a grader, and of a graded model where the file has
a table for it. Graded models are the values of a column ``target``, ``target_model`` or ``model``. A
model without a declared family is of a grader's family if the family's name stands in its own as a
word (``gpt`` in ``gpt-4o``, ``qwen`` in ``Qwen3-8B``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, Strength
from voirdire.labels import Labels
from voirdire.wording import Name, counted, listed, say

COLUMNS = ("target", "target_model", "model")
MOST_TARGETS = 200


def run(evidence: Evidence) -> Iterable[Finding]:
    labels, scene = evidence.labels, evidence.whole
    if labels is None or labels.kind != "labels":
        return
    graders = [g for g in scene.graders if g.family and not g.person and g.name != scene.gold]
    columns = _columns(labels)
    if not columns or not graders:
        return
    about = scene.options.about
    found = 0
    compared = 0
    for column in columns:
        for target, responses in _targets(labels, column):
            for grader in graders:
                compared += 1
                if is_of_family(target, grader.family, about):
                    found += 1
                    yield _finding(evidence, grader.name, grader.family, column, target, responses)
    if compared and not found:
        yield Finding(
            code="same_family",
            state=State.CLEAR,
            sentence=say(
                "No grader whose family is declared ({graders}) grades a model that is known to be "
                "of it.",
                graders=listed(g.name for g in graders),
            ),
        )


def _columns(labels: Labels) -> list[str]:
    """The tags that name the graded model; ``model`` of a lone grader may be the grader's own."""
    alone = len(labels.graders) == 1
    return [
        t.name
        for wanted in COLUMNS
        for t in labels.tags
        if t.name.casefold().replace(" ", "_").replace("-", "_") == wanted
        and t.per_response
        and not (alone and wanted == "model" and t.values < 2)
    ][:1]


def _targets(labels: Labels, column: str) -> list[tuple[str, int]]:
    counts = (
        labels.frame.lazy()
        .select("response", pl.col(column).alias("__target"))
        .drop_nulls()
        .unique()
        .group_by("__target")
        .len()
        .sort("__target")
        .head(MOST_TARGETS)
        .collect()
    )
    return [(str(t), int(n)) for t, n in counts.rows()]


def is_of_family(target: str, family: str, about: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a graded model is of a family: as declared, else by a word of its name.

    Declared is a table of the model's own in the ``--about`` file, or one under ``targets``.
    """
    of_targets = about.get("targets", {}).get(target)
    for table in (of_targets, about.get(target)):
        if isinstance(table, Mapping) and table.get("family"):
            return str(table["family"]).casefold() == family.casefold()
    word = rf"(?<![^\W\d_]){re.escape(family.casefold())}(?![^\W\d_])"
    return re.search(word, target.casefold()) is not None


def _finding(
    evidence: Evidence, grader: str, family: str, column: str, target: str, responses: int
) -> Finding:
    slice_ = f"{column}={target}"
    rates: tuple[Estimate, ...] = tuple(
        e for e in evidence.estimates.of("rate", grader=grader, slice=slice_) if e.listed
    )
    sliced = any(s.slice == slice_ and not s.exploratory for s in evidence.slices)
    step = (
        say(
            "Read its rates there beside those of graders of other families (slice {slice_}).",
            slice_=Name(slice_),
        )
        if sliced
        else say(
            "Slice with --by {column} and read its rates there beside those of graders of other "
            "families.",
            column=Name(column),
        )
    )
    return Finding(
        code="same_family",
        state=State.FOUND,
        strength=Strength.INDICATIVE,
        grader=grader,
        slice=slice_,
        sentence=say(
            "{grader} is of the family {family}, and so is {target}, which gave {n} of the responses "
            "that it grades. That alone does not say that it favours its kin.",
            grader=Name(grader),
            family=Name(family),
            target=Name(target),
            n=counted(responses),
        ),
        evidence=rates if sliced else (),
        weight=float(responses),
        next_step=step,
    )


CHECK = Check(
    name="same_family",
    codes={"same_family": "A grader grades a model of its own family."},
    run=run,
    would_miss=(
        "Families that --about does not declare; models whose names do not say their family; models "
        "trained on another's answers. The graded model must stand in a column named target, "
        "target_model or model."
    ),
    rank=65,
    uses=(
        Consequence(
            code="same_family",
            use="compare_models",
            effect=Effect.CONDITIONS,
            because="Have responses of models of its family graded by a grader of another family too.",
        ),
    ),
)
