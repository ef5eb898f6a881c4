"""Verdicts of a checklist as arrays: responses × graders × positions, with the codes of the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from voirdire.grid import (
    LABEL,
    MISSING_CODE,
    NO_LABEL,
    NO_MAJORITY,
    NOT_THERE,
    Column,
    Phrasings,
    codes_of,
    columns_of,
    ever_asked,
    one_label,
    phrasings_by_row,
    response_names,
    whole_counts,
)
from voirdire.labels import ALL_OUTCOMES, Labels, blank

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballots:
    """What the votes on each line come to, where calls were repeated.

    ``yes``, ``no`` and ``asked`` (votes that are not missing, readable or not) are ``(responses,
    graders, positions)``. ``calls`` is ``(responses, graders, outcomes)``: how many calls, each over
    all lines, ended in which way. ``within``, ``(responses, graders, positions, 4)``, is set where there
    are several phrasings: under how many of them the line has two readable votes, and on how many of
    these the votes differ; under how many it has a readable vote, and how many of these elect nobody.
    """

    yes: Array
    no: Array
    asked: Array
    calls: Array
    within: Array | None = None

    @property
    def read(self) -> Array:
        """Readable votes on each line."""
        return np.asarray(self.yes + self.no)

    @property
    def no_majority(self) -> Array:
        """Lines with a readable vote where neither yes nor no has more than half of the votes asked."""
        return np.asarray((self.read > 0) & (2 * np.maximum(self.yes, self.no) <= self.asked))

    def where(self, keep: Array) -> Ballots:
        return Ballots(
            yes=self.yes[keep],
            no=self.no[keep],
            asked=self.asked[keep],
            calls=self.calls[keep],
            within=None if self.within is None else self.within[keep],
        )

    def of_graders(self, at: Sequence[int]) -> Ballots:
        return Ballots(
            yes=self.yes[:, at],
            no=self.no[:, at],
            asked=self.asked[:, at],
            calls=self.calls[:, at],
            within=None if self.within is None else self.within[:, at],
        )


@dataclass(frozen=True, kw_only=True)
class Bank:
    """Verdicts of a checklist.

    ``verdicts`` is ``(responses, graders, positions)`` int8: 1 yes, 0 no, −1 no verdict (also where
    a question has fewer lines). ``line`` is ``(responses, positions)``: which of ``lines`` stands
    there, −1 for none. ``question`` is ``(responses,)``, the place in ``questions``; these are
    ``("",)`` where one checklist serves all. ``states`` is ``(responses, graders)`` int8: how the
    call ended, the place in :data:`voirdire.labels.ALL_OUTCOMES` or ``NOT_THERE``. A call ended as
    its first line that could not be read did, though others were; without such a line it ended with a
    label if any line has a verdict, or votes that none of them won: a tie is no verdict, but it was
    read. ``calls`` counts calls by outcome, graders × outcomes, over all votes; ``votes`` is set where
    calls were repeated, ``phrasings`` (with totals) where there are several. Design ``weights`` have mean 1, so that their sum is a number of responses.
    """

    graders: tuple[str, ...]
    lines: tuple[str, ...]
    texts: Mapping[str, str]
    questions: tuple[str, ...]
    verdicts: Array
    line: Array
    question: Array
    states: Array
    calls: Array
    cluster: Array
    stratum: Array | None
    weights: Array | None
    own_cluster: bool
    frequency: bool = False
    tags: Mapping[str, tuple[list[str], Array]] = field(default_factory=dict)
    votes: Ballots | None = None
    phrasings: Phrasings | None = None

    @property
    def responses(self) -> int:
        return int(self.verdicts.shape[0])

    @property
    def own(self) -> bool:
        """Whether each question has its own checklist."""
        return self.questions != ("",)

    @cached_property
    def length(self) -> Array:
        """How many lines each response has, ``(responses,)``."""
        return np.asarray((self.line >= 0).sum(axis=1))

    @cached_property
    def k(self) -> int:
        """K, the number of lines; 0 where questions have checklists of different lengths."""
        lengths = np.unique(self.length)
        return int(lengths[0]) if len(lengths) == 1 else 0

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.graders)}

    @cached_property
    def complete(self) -> Array:
        """Whether a grader gave a verdict on every line, ``(responses, graders)``."""
        given = (self.verdicts >= 0).sum(axis=2)
        return np.asarray((given == self.length[:, None]) & (self.length[:, None] > 0))

    @cached_property
    def totals(self) -> Array:
        """Lines met, ``(responses, graders)``; −1 where a verdict is missing: never over fewer lines."""
        met = (self.verdicts == 1).sum(axis=2)
        return np.where(self.complete, met, -1)

    @cached_property
    def unread(self) -> Array:
        """Calls that were made and gave no readable verdicts, ``(responses, graders)``."""
        return np.asarray(
            (self.states != NOT_THERE) & (self.states != LABEL) & (self.states != MISSING_CODE)
        )

    def of(self, grader: str) -> Array:
        """A grader's verdicts, ``(responses, positions)``."""
        return np.asarray(self.verdicts[:, self.places[grader]])

    def only(self, graders: Sequence[str]) -> Bank:
        """Only these graders, in this order."""
        at = [self.places[g] for g in graders]
        return replaced(
            self,
            graders=tuple(graders),
            verdicts=self.verdicts[:, at],
            states=self.states[:, at],
            calls=self.calls[at],
            votes=None if self.votes is None else self.votes.of_graders(at),
            phrasings=None if self.phrasings is None else self.phrasings.of_graders(at),
        )

    def where(self, keep: Array) -> Bank:
        """Only the responses that ``keep`` marks. Clusters and lines keep their codes."""
        states = self.states[keep]
        times = None if self.weights is None or not self.frequency else self.weights[keep]
        votes = None if self.votes is None else self.votes.where(keep)
        return replaced(
            self,
            verdicts=self.verdicts[keep],
            line=self.line[keep],
            question=self.question[keep],
            states=states,
            calls=_calls(states, times) if votes is None else _summed(votes.calls, times),
            votes=votes,
            phrasings=None if self.phrasings is None else self.phrasings.where(keep),
            cluster=self.cluster[keep],
            stratum=None if self.stratum is None else self.stratum[keep],
            weights=None if self.weights is None else self.weights[keep],
            tags={t: (values, codes[keep]) for t, (values, codes) in self.tags.items()},
        )

    def sliced(self, tag: str, value: str) -> Bank:
        """Only the responses whose tag has this value."""
        values, codes = self.tags[tag]
        return self.where(codes == values.index(value))


def _calls(states: Array, times: Array | None) -> Array:
    """Calls by outcome, graders × outcomes."""
    counts = np.zeros((states.shape[1], len(ALL_OUTCOMES)), dtype=np.int64)
    for g in range(states.shape[1]):
        there = states[:, g] != NOT_THERE
        of_calls = states[there, g].astype(np.int64)
        counts[g] = whole_counts(
            of_calls, None if times is None else times[there], len(ALL_OUTCOMES)
        )
    return counts


def _states(outcomes: Array, there: Array) -> Array:
    """How each call ended, ``(responses, graders)``, from the outcomes of its lines."""
    asked = outcomes != NOT_THERE
    read = (outcomes == LABEL) | (outcomes == NO_MAJORITY)
    labelled = read.any(axis=2)
    failed = asked & ~read & (outcomes != MISSING_CODE) & there
    # The first line that was not read speaks for the call.
    first = failed.argmax(axis=2)
    how = np.take_along_axis(outcomes, first[:, :, None], axis=2)[:, :, 0]
    states = np.where(failed.any(axis=2), how, np.where(labelled, LABEL, MISSING_CODE))
    return np.where(asked.any(axis=2), states, NOT_THERE).astype(np.int8)


def bank(labels: Labels, *, tags: Sequence[str] = ()) -> Bank:
    """The bank of a table of verdicts; several votes on a line become one by the vote rule."""
    checklist = labels.checklist
    assert checklist is not None
    frame = labels.frame
    responses, graders = labels.responses, len(labels.graders)
    width = max(len(lines) for lines in checklist.lines)
    names = checklist.names
    of_line = np.repeat(np.arange(len(checklist.lines)), [len(x) for x in checklist.lines])
    position = np.concatenate([np.arange(len(x)) for x in checklist.lines])
    line = frame["line"].cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy()
    response = labels.response_codes.astype(np.int64)
    place = (
        response * graders + frame["grader"].to_physical().cast(pl.Int64).to_numpy()
    ) * width + position[line]
    label = frame["label"].to_physical().cast(pl.Int32).fill_null(NO_LABEL).to_numpy()
    outcome = frame["outcome"].to_physical().cast(pl.Int8).to_numpy()
    codes, outcomes, _ = one_label(labels, place, label, outcome, responses * graders * width)
    shape = (responses, graders, width)
    verdicts = codes.astype(np.int8).reshape(shape)
    outcomes = outcomes.reshape(shape)
    question = np.zeros(responses, dtype=np.int64)
    question[response] = of_line[line]
    at = np.full((len(checklist.lines), width), -1, dtype=np.int32)
    at[of_line, position] = np.arange(len(names))
    lines = at[question]
    states = _states(outcomes, (lines >= 0)[:, None, :])
    column: Column = columns_of(labels, response)
    frequency = labels.options.weight_kind == "frequency"
    weights = column.weights
    if weights is not None and not frequency and weights.sum() > 0:
        weights = weights / weights.mean()
    times = weights if frequency else None
    votes = _ballots(labels, place, label, outcome, shape) if _has_votes(labels) else None
    return Bank(
        graders=labels.grader_names,
        lines=names,
        texts=checklist.texts,
        questions=checklist.questions,
        verdicts=verdicts,
        line=lines,
        question=question,
        states=states,
        calls=_calls(states, times) if votes is None else _summed(votes.calls, times),
        votes=votes,
        phrasings=_phrasings(labels, place, label, outcome, shape, (lines >= 0).sum(axis=1)),
        cluster=column.cluster,
        stratum=column.stratum,
        weights=weights,
        own_cluster=column.own_cluster,
        frequency=frequency,
        tags={tag: _tag(labels, tag, column.first) for tag in tags},
    )


def _phrasings(
    labels: Labels,
    place: Array,
    label: Array,
    outcome: Array,
    shape: tuple[int, int, int],
    length: Array,
) -> Phrasings | None:
    """The totals under each phrasing, where there are several; ``length`` is lines by response."""
    named = phrasings_by_row(labels)
    if named is None:
        return None
    names, phrasing = named
    responses, graders, width = shape
    rows = np.flatnonzero(phrasing >= 0)
    pair, position = place[rows] // width, place[rows] % width
    cells = pair * len(names) + phrasing[rows]
    size = responses * graders * len(names)
    codes, _, _ = one_label(
        labels, cells * width + position, label[rows], outcome[rows], size * width, rows
    )
    full = (responses, graders, len(names))
    verdicts = codes.reshape(*full, width)
    complete = (verdicts >= 0).sum(axis=-1) == length[:, None, None]
    complete &= length[:, None, None] > 0
    _, vote = codes_of(labels.frame["vote"])
    calls, call = np.unique(
        cells * (int(vote.max(initial=0)) + 2) + vote[rows] + 1, return_inverse=True
    )
    call = call.reshape(-1)
    cell_of = calls // (int(vote.max(initial=0)) + 2)
    row = cell_of // (graders * len(names))
    read = np.bincount(call, weights=label[rows] >= 0, minlength=len(calls))
    met = np.bincount(call, weights=label[rows] == 1, minlength=len(calls)).astype(np.int64)
    return Phrasings(
        names=names,
        responses=response_names(labels),
        decided=np.where(complete, (verdicts == 1).sum(axis=-1), NO_LABEL).astype(np.int32),
        asked=ever_asked(cells, outcome[rows], size).reshape(full),
        row=row,
        grader=cell_of // len(names) % graders,
        phrasing=cell_of % len(names),
        value=np.where(read == length[row], met, NO_LABEL),
    )


def _tag(labels: Labels, tag: str, first: Array) -> tuple[list[str], Array]:
    values, codes = codes_of(labels.frame[tag])
    return values, codes[first]


def _has_votes(labels: Labels) -> bool:
    return not (blank(labels.frame, "vote") and blank(labels.frame, "phrasing"))


def _ballots(
    labels: Labels, place: Array, label: Array, outcome: Array, shape: tuple[int, int, int]
) -> Ballots:
    size = int(np.prod(shape))

    def counted(rows: Array) -> Array:
        return np.bincount(place[rows], minlength=size).astype(np.int32).reshape(shape)

    return Ballots(
        yes=counted(label == 1),
        no=counted(label == 0),
        asked=counted(outcome != MISSING_CODE),
        calls=_voted(labels, shape[:2]),
        within=_within_phrasings(labels, place, label, outcome, shape),
    )


def _within_phrasings(
    labels: Labels, place: Array, label: Array, outcome: Array, shape: tuple[int, int, int]
) -> Array | None:
    """What the votes under each phrasing come to, added up over phrasings; ``None`` for one phrasing."""
    named = phrasings_by_row(labels)
    if named is None:
        return None
    kinds = len(named[0]) + 1
    held, entry = np.unique(place * kinds + named[1] + 1, return_inverse=True)
    entry = entry.reshape(-1)

    def counted(rows: Array) -> Array:
        return np.bincount(entry[rows], minlength=len(held))

    yes, no, asked = counted(label == 1), counted(label == 0), counted(outcome != MISSING_CODE)
    read = yes + no
    marks = (
        read >= 2,
        (yes > 0) & (no > 0),
        read >= 1,
        (read > 0) & (2 * np.maximum(yes, no) <= asked),
    )
    size = int(np.prod(shape))
    of_line = held // kinds
    return np.stack(
        [np.bincount(of_line, weights=m, minlength=size).astype(np.int16) for m in marks], axis=-1
    ).reshape(*shape, len(marks))


def _voted(labels: Labels, shape: tuple[int, int]) -> Array:
    """Calls by outcome of each response and grader: one call a vote and phrasing."""
    order = pl.col("outcome").to_physical()
    read, gone = pl.col("outcome") == "label", pl.col("outcome") == "missing"
    calls = (
        labels.frame.with_columns(pl.Series("\0code", labels.response_codes))
        .group_by("\0code", "grader", "vote", "phrasing")
        .agg(
            (~read & ~gone).any().alias("failed"),
            order.filter(~read & ~gone).first().alias("how"),
            read.any().alias("read"),
        )
    )
    how = (
        calls.select(
            pl.when("failed")
            .then("how")
            .when("read")
            .then(LABEL)
            .otherwise(MISSING_CODE)
            .alias("o")
        )["o"]
        .cast(pl.Int64)
        .to_numpy()
    )
    grader = calls["grader"].to_physical().cast(pl.Int64).to_numpy()
    at = calls["\0code"].cast(pl.Int64).to_numpy() * shape[1] + grader
    kinds = len(ALL_OUTCOMES)
    counts = np.bincount(at * kinds + how, minlength=shape[0] * shape[1] * kinds)
    return counts.astype(np.int32).reshape(*shape, kinds)


def _summed(calls: Array, times: Array | None) -> Array:
    """Calls of all responses by outcome, graders × outcomes."""
    amount = np.ones(len(calls)) if times is None else times
    counts: Array = np.einsum("r,rgo->go", amount, calls)
    return np.asarray(np.rint(counts).astype(np.int64))
