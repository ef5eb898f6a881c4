"""Labels as arrays: responses × graders of class codes, with cluster, stratum and weight codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from typing import Any

import numpy as np
import polars as pl

from voirdire.errors import UsageError
from voirdire.labels import ALL_OUTCOMES, Labels, blank
from voirdire.options import MISSING
from voirdire.questions import coded, natural

Array = np.ndarray[Any, Any]

NOT_THERE = -1  # no row for this response and grader
NO_LABEL = -1
LABEL = ALL_OUTCOMES.index("label")
MISSING_CODE = ALL_OUTCOMES.index(MISSING)
WORDING = "\0phrasing"  # the tag of single votes that says under which phrasing they came
NO_MAJORITY = len(ALL_OUTCOMES)  # votes were readable and none of them won


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """Single calls in the order of their votes: row and grader of the grid, class code or −1, outcome.

    ``tags`` holds those tags that differ between the votes of one response, and under
    :data:`WORDING` the phrasing of each vote (−1: none) where there are several.
    """

    row: Array
    grader: Array
    code: Array
    outcome: Array
    tags: Mapping[str, tuple[list[str], Array]] = field(default_factory=dict)

    def where(self, keep: Array) -> Votes:
        """Only the votes that ``keep`` marks, one a vote."""
        return Votes(
            row=self.row[keep],
            grader=self.grader[keep],
            code=self.code[keep],
            outcome=self.outcome[keep],
            tags={t: (values, codes[keep]) for t, (values, codes) in self.tags.items()},
        )

    def renumbered(self, rows: Array) -> Votes:
        """The votes of the rows that are kept (a mask over rows), with rows counted anew."""
        kept = self.where(rows[self.row])
        return replaced(kept, row=(np.cumsum(rows) - 1)[kept.row])


@dataclass(frozen=True, kw_only=True)
class Phrasings:
    """What each grader says under each phrasing of its instruction.

    ``decided`` is ``(responses, graders, phrasings)``: the class code (of a checklist the total), made
    of the votes under that phrasing by the vote rule, −1 where there is none; ``asked`` marks the
    cells with a call that is known, read or not. ``names`` are the phrasings in natural order,
    ``responses`` the responses' names. The single calls stand beside: ``row``, ``grader``,
    ``phrasing`` and ``value`` (class code or total, −1: not read). Calls of no named phrasing (gold,
    people) are in none of it.
    """

    names: tuple[str, ...]
    responses: Array
    decided: Array
    asked: Array
    row: Array
    grader: Array
    phrasing: Array
    value: Array

    def where(self, keep: Array) -> Phrasings:
        """Only the responses that ``keep`` marks."""
        calls = keep[self.row]
        return replaced(
            self,
            responses=self.responses[keep],
            decided=self.decided[keep],
            asked=self.asked[keep],
            row=(np.cumsum(keep) - 1)[self.row[calls]],
            grader=self.grader[calls],
            phrasing=self.phrasing[calls],
            value=self.value[calls],
        )

    def only(self, wanted: Array) -> Phrasings:
        """Only what ``wanted`` marks, ``(responses, graders)``; no row goes."""
        calls = wanted[self.row, self.grader]
        return replaced(
            self,
            decided=np.where(wanted[:, :, None], self.decided, NO_LABEL).astype(self.decided.dtype),
            asked=self.asked & wanted[:, :, None],
            row=self.row[calls],
            grader=self.grader[calls],
            phrasing=self.phrasing[calls],
            value=self.value[calls],
        )

    def of_graders(self, at: Sequence[int]) -> Phrasings:
        """Only the graders at these places, in this order."""
        place = np.full(self.decided.shape[1], -1, dtype=np.int64)
        place[list(at)] = np.arange(len(at))
        calls = place[self.grader] >= 0
        return replaced(
            self,
            decided=self.decided[:, list(at)],
            asked=self.asked[:, list(at)],
            row=self.row[calls],
            grader=place[self.grader[calls]],
            phrasing=self.phrasing[calls],
            value=self.value[calls],
        )


def phrasings_by_row(labels: Labels) -> tuple[tuple[str, ...], Array] | None:
    """The phrasings in natural order and the place of each row's (−1: none); ``None`` for one or none."""
    frame = labels.frame
    if labels.options.step or blank(frame, "phrasing"):
        return None
    values, codes = codes_of(frame["phrasing"])
    if len(values) < 2:
        return None
    order = sorted(range(len(values)), key=lambda i: (natural(values[i]), values[i]))
    at = np.full(len(values) + 1, -1, dtype=np.int64)
    at[order] = np.arange(len(values))
    return tuple(values[i] for i in order), at[codes]


def response_names(labels: Labels) -> Array:
    """The name of each response, by its code."""
    return coded(labels.frame["response"])[0].to_numpy()


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Labels of ``responses × graders`` as codes.

    ``codes`` is int16, the place of the class in ``classes`` or ``NO_LABEL``; ``outcomes`` is int8,
    the place in :data:`voirdire.labels.ALL_OUTCOMES`, ``NO_MAJORITY`` or ``NOT_THERE``;
    ``calls`` counts calls by outcome, ``graders × outcomes``, over all votes. ``own_cluster`` is
    true where every response is its own cluster. ``weights`` is ``None`` where all weigh the same.
    ``steps`` holds the codes after each step of a decision path, the last being ``codes``; ``votes``
    the single calls, where some grader was asked more than once; ``phrasings`` what is said under each
    wording of the instruction, where there are several.
    """

    graders: tuple[str, ...]
    classes: tuple[str, ...]
    codes: Array
    outcomes: Array
    calls: Array
    cluster: Array
    stratum: Array | None
    weights: Array | None
    own_cluster: bool
    frequency: bool = False
    tags: Mapping[str, tuple[list[str], Array]] = field(default_factory=dict)
    steps: tuple[tuple[str, Array], ...] = ()
    votes: Votes | None = None
    vote_rule: str = "majority"
    phrasings: Phrasings | None = None

    @property
    def responses(self) -> int:
        return int(self.codes.shape[0])

    def column(self, grader: str) -> Array:
        return np.asarray(self.codes[:, self.graders.index(grader)])

    def unread_share(self, grader: str) -> float:
        """The share of calls that gave no label, among those that were asked."""
        counts = self.calls[self.graders.index(grader)]
        asked = counts.sum() - counts[MISSING_CODE]
        return float(1 - counts[LABEL] / asked) if asked else 0.0

    def sliced(self, tag: str, value: str) -> Grid:
        """Only the labels whose tag has this value. Clusters keep their codes."""
        if self.votes is not None and tag in self.votes.tags:
            values, codes = self.votes.tags[tag]
            # A part of the votes is no study of all phrasings.
            kept = replaced(
                self, votes=self.votes.where(codes == values.index(value)), phrasings=None
            )
            kept = kept.under(self.vote_rule)
            return kept._rows(np.asarray((kept.outcomes != NOT_THERE).any(axis=1)))
        values, codes = self.tags[tag]
        wanted = codes == values.index(value)
        if wanted.ndim == 1:
            wanted = np.broadcast_to(wanted[:, None], self.codes.shape)
        return self.only(wanted)

    def only(self, wanted: Array) -> Grid:
        """Only the labels that ``wanted`` marks, ``(responses, graders)``; empty rows go."""
        masked = replaced(
            self,
            codes=np.where(wanted, self.codes, NO_LABEL).astype(np.int16),
            outcomes=np.where(wanted, self.outcomes, NOT_THERE).astype(np.int8),
            steps=tuple(
                (name, np.where(wanted, codes, NO_LABEL).astype(np.int16))
                for name, codes in self.steps
            ),
            votes=None
            if self.votes is None
            else self.votes.where(wanted[self.votes.row, self.votes.grader]),
            phrasings=None if self.phrasings is None else self.phrasings.only(wanted),
        )
        return masked._rows(np.asarray(wanted.any(axis=1)))

    def _rows(self, keep: Array) -> Grid:
        outcomes = self.outcomes[keep]
        votes = None if self.votes is None else self.votes.renumbered(keep)
        times = None if self.weights is None or not self.frequency else self.weights[keep]
        kept = replaced(
            self,
            codes=self.codes[keep],
            outcomes=outcomes,
            calls=_calls(outcomes, times),
            cluster=self.cluster[keep],
            stratum=None if self.stratum is None else self.stratum[keep],
            weights=None if self.weights is None else self.weights[keep],
            tags={t: (values, codes[keep]) for t, (values, codes) in self.tags.items()},
            steps=tuple((name, codes[keep]) for name, codes in self.steps),
            votes=votes,
            phrasings=None if self.phrasings is None else self.phrasings.where(keep),
        )
        return kept if votes is None else replaced(kept, calls=kept.votes_by_outcome())

    def under(self, rule: str) -> Grid:
        """The same calls with one label made of the votes by another rule (majority or first)."""
        if self.votes is None:
            return self
        votes = self.votes
        size = self.codes.size
        codes = np.full(size, NO_LABEL, dtype=np.int16)
        outcomes = np.full(size, NOT_THERE, dtype=np.int8)
        place = votes.row * len(self.graders) + votes.grader
        _vote(rule, len(self.classes), place, votes.code, votes.outcome, codes, outcomes)
        shape = self.codes.shape
        return replaced(self, codes=codes.reshape(shape), outcomes=outcomes.reshape(shape))

    def votes_by_class(self) -> Array:
        """Readable calls by class over all votes, graders × classes."""
        assert self.votes is not None
        graders, k = len(self.graders), len(self.classes)
        read = self.votes.code >= 0
        place = self.votes.grader[read] * k + self.votes.code[read]
        times = None
        if self.weights is not None and self.frequency:
            times = self.weights[self.votes.row[read]]
        return whole_counts(place, times, graders * k).reshape(graders, k)

    def votes_by_outcome(self) -> Array:
        """Calls by outcome over all votes, graders × outcomes."""
        assert self.votes is not None
        graders, outcomes = len(self.graders), len(ALL_OUTCOMES)
        place = self.votes.grader * outcomes + self.votes.outcome
        times = None
        if self.weights is not None and self.frequency:
            times = self.weights[self.votes.row]
        return whole_counts(place, times, graders * outcomes).reshape(graders, outcomes)


def whole_counts(place: Array, times: Array | None, size: int) -> Array:
    """How often each place occurs, each time counting as often as its frequency weight says."""
    return np.rint(np.bincount(place, weights=times, minlength=size)).astype(np.int64)


def _calls(outcomes: Array, times: Array | None) -> Array:
    """Calls by outcome, graders × outcomes, where each response has one call."""
    graders = outcomes.shape[1]
    counts = np.zeros((graders, len(ALL_OUTCOMES)), dtype=np.int64)
    for g in range(graders):
        column = outcomes[:, g]
        column = np.where(column == NO_MAJORITY, LABEL, column)
        there = column >= 0
        counts[g] = whole_counts(
            column[there], None if times is None else times[there], len(ALL_OUTCOMES)
        )
    return counts


def _wide(codes: Array) -> Array:
    return codes.astype(np.int64)


def codes_of(column: pl.Series) -> tuple[list[str], Array]:
    """Distinct texts in sorted order and the code of each row (−1 for null)."""
    values, codes = coded(column)
    return values.to_list(), codes.cast(pl.Int64).fill_null(-1).to_numpy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What belongs to a response, ``(responses,)`` each: codes of cluster and stratum, its weight.

    ``first`` is the row where the response stands first.
    """

    first: Array
    cluster: Array
    stratum: Array | None
    weights: Array | None
    own_cluster: bool


def columns_of(labels: Labels, response: Array) -> Column:
    """The columns of responses; ``response`` is the response's code of each row."""
    frame = labels.frame
    first = np.full(labels.responses, -1, dtype=np.int64)
    first[response[::-1]] = np.arange(len(response))[::-1]
    own = not labels.clusters_declared and frame["cluster"].equals(frame["response"])
    if own:
        cluster, clusters = np.arange(labels.responses), labels.responses
    else:
        values, of_rows = coded(frame["cluster"])
        cluster, clusters = _wide(of_rows.to_numpy()[first]), len(values)
    return Column(
        first=first,
        cluster=cluster,
        stratum=None if blank(frame, "stratum") else codes_of(frame["stratum"])[1][first],
        weights=None if blank(frame, "weight") else frame["weight"].to_numpy()[first],
        own_cluster=not labels.clusters_declared and clusters == labels.responses,
    )


def grid(labels: Labels, *, tags: Sequence[str] = ()) -> Grid:
    """The grid of a table of labels; several votes become one label by the vote rule."""
    frame = labels.frame
    names, classes = labels.grader_names, labels.classes
    # Codes are kept small, as there may be tens of millions; places are 64 bits wide.
    response = labels.response_codes
    grader = frame["grader"].to_physical().cast(pl.UInt32).to_numpy()
    label = frame["label"].to_physical().cast(pl.Int32).fill_null(NO_LABEL).to_numpy()
    outcome = frame["outcome"].to_physical().cast(pl.Int8).to_numpy()
    responses, graders = labels.responses, len(names)
    place = response.astype(np.int64)
    place *= graders
    place += grader
    steps: tuple[tuple[str, Array], ...] = ()
    votes, order = None, None
    frequency = labels.options.weight_kind == "frequency"
    times = None
    if frequency and not blank(frame, "weight"):
        times = frame["weight"].to_numpy()
    if labels.options.step:
        codes, outcomes, steps = _stepwise(labels, place, label, outcome, responses * graders)
        of_response = np.ones(responses)
        if times is not None:
            of_response[response] = times
        calls = _calls(outcomes.reshape(responses, graders), of_response)
    else:
        codes, outcomes, order = one_label(labels, place, label, outcome, responses * graders)
        size = graders * len(ALL_OUTCOMES)
        calls = whole_counts(grader.astype(np.int64) * len(ALL_OUTCOMES) + outcome, times, size)
        calls = calls.reshape(graders, len(ALL_OUTCOMES))
        if order is not None:
            votes = Votes(
                row=_wide(response[order]),
                grader=_wide(grader[order]),
                code=_wide(label[order]),
                outcome=_wide(outcome[order]),
            )
    held_by = columns_of(labels, response)
    first = held_by.first
    held = {}
    of_votes: dict[str, tuple[list[str], Array]] = {}
    named = phrasings_by_row(labels)
    if named is not None and order is not None:
        of_votes[WORDING] = (list(named[0]), named[1][order])
    per_response = {t.name: t.per_response for t in labels.tags}
    shaped = codes.reshape(responses, graders)
    for tag in tags:
        if tag not in per_response:  # label:GRADER, slices by the label that this grader gives
            grader_place = names.index(tag.removeprefix("label:"))
            held[tag] = (list(classes), shaped[:, grader_place].astype(np.int64))
            continue
        texts, tag_codes = codes_of(frame[tag])
        if per_response[tag]:
            held[tag] = (texts, tag_codes[first])
        else:
            spread = np.full(responses * graders, -1, dtype=np.int64)
            spread[place] = tag_codes
            if (spread[place] != tag_codes).any():
                if votes is None or order is None:
                    raise UsageError(
                        f"--by {tag}: its value differs between the steps of one response and grader, "
                        "so they cannot be sliced by it."
                    )
                of_votes[tag] = (texts, tag_codes[order])
                continue
            held[tag] = (texts, spread.reshape(responses, graders))
    return Grid(
        graders=names,
        classes=classes,
        codes=shaped,
        outcomes=outcomes.reshape(responses, graders),
        calls=calls,
        cluster=held_by.cluster,
        stratum=held_by.stratum,
        weights=held_by.weights,
        own_cluster=held_by.own_cluster,
        frequency=frequency,
        tags=held,
        steps=tuple((name, at.reshape(responses, graders)) for name, at in steps),
        votes=votes if votes is None else replaced(votes, tags=of_votes),
        vote_rule=labels.options.vote_rule,
        phrasings=_phrasings(labels, response, grader, label, outcome),
    )


def _phrasings(
    labels: Labels, response: Array, grader: Array, label: Array, outcome: Array
) -> Phrasings | None:
    """The labels under each phrasing, where there are several."""
    named = phrasings_by_row(labels)
    if named is None:
        return None
    names, phrasing = named
    rows = np.flatnonzero(phrasing >= 0)
    shape = (labels.responses, len(labels.graders), len(names))
    row, of = _wide(response[rows]), _wide(grader[rows])
    place = (row * shape[1] + of) * shape[2] + phrasing[rows]
    codes, _, _ = one_label(labels, place, label[rows], outcome[rows], int(np.prod(shape)), rows)
    return Phrasings(
        names=names,
        responses=response_names(labels),
        decided=codes.reshape(shape),
        asked=ever_asked(place, outcome[rows], codes.size).reshape(shape),
        row=row,
        grader=of,
        phrasing=phrasing[rows],
        value=_wide(label[rows]),
    )


def ever_asked(place: Array, outcome: Array, size: int) -> Array:
    """Whether a call is known at each place; one that is missing nobody knows to have been made."""
    made = np.zeros(size, dtype=bool)
    made[place[outcome != MISSING_CODE]] = True
    return made


def one_label(
    labels: Labels,
    place: Array,
    label: Array,
    outcome: Array,
    size: int,
    rows: Array | None = None,
) -> tuple[Array, Array, Array | None]:
    """One label a response and grader; the order of the votes where there are several."""
    codes = np.full(size, NO_LABEL, dtype=np.int16)
    outcomes = np.full(size, NOT_THERE, dtype=np.int8)
    if np.bincount(place, minlength=1).max(initial=0) <= 1:
        codes[place], outcomes[place] = label, outcome
        return codes, outcomes, None
    frame = labels.frame if rows is None else labels.frame[rows]
    order = _vote_order(frame, place)
    _vote(
        labels.options.vote_rule,
        len(labels.classes),
        place[order],
        label[order],
        outcome[order],
        codes,
        outcomes,
    )
    return codes, outcomes, order


def _stepwise(
    labels: Labels, place: Array, label: Array, outcome: Array, size: int
) -> tuple[Array, Array, tuple[tuple[str, Array], ...]]:
    """Codes and outcomes after the last step, and the codes after each.

    Steps come in the order of their first appearance; a response without a row at a step keeps its
    label, and rows without a step belong to all of them from the start.
    """
    column = labels.frame[labels.options.step]
    codes = np.full(size, NO_LABEL, dtype=np.int16)
    outcomes = np.full(size, NOT_THERE, dtype=np.int8)
    steps = []
    names = column.drop_nulls().unique(maintain_order=True).to_list()
    for name in [None, *names] if column.null_count() else names:
        at = (column.is_null() if name is None else (column == name).fill_null(False)).to_numpy()
        rows = np.flatnonzero(at)
        new, how, _ = one_label(labels, place[rows], label[rows], outcome[rows], size, rows)
        there = how != NOT_THERE
        codes = np.where(there, new, codes)
        outcomes = np.where(there, how, outcomes)
        if name is not None:
            steps.append((name, codes))
    return codes, outcomes, tuple(steps)


def _vote_order(frame: pl.DataFrame, place: Array) -> Array:
    """Rows by response and grader, then by vote (as numbers where all are), then by phrasing."""
    vote = frame["vote"]
    as_number = vote.cast(pl.Float64, strict=False)
    rank = as_number if as_number.null_count() == vote.null_count() else vote
    return (
        pl.DataFrame({"place": place, "rank": rank, "phrasing": frame["phrasing"]})
        .with_row_index("i")
        .sort("place", "rank", "phrasing", "i", nulls_last=True)["i"]
        .to_numpy()
    )


def _vote(
    rule: str, k: int, at: Array, label: Array, outcome: Array, codes: Array, outcomes: Array
) -> None:
    """Make one label of several votes, in place; the votes come in order, ``k`` is the number of classes.

    ``majority``: the class of more than half of the calls that were made, else none, so that an
    unread vote never helps one side. ``first``: the first readable vote.
    """
    start = np.flatnonzero(np.r_[True, at[1:] != at[:-1]])
    outcomes[at[start]] = outcome[start]  # the first call stands for an unread response
    readable = label >= 0
    r_at, r_label = at[readable], label[readable]
    if rule == "first":
        begin = np.flatnonzero(np.r_[True, r_at[1:] != r_at[:-1]]) if len(r_at) else r_at
        codes[r_at[begin]] = r_label[begin]
        outcomes[r_at[begin]] = LABEL
        return
    cell, count = np.unique(r_at * k + r_label, return_counts=True)
    asked = np.bincount(at[outcome != MISSING_CODE], minlength=len(codes))
    holder = cell // k
    won = 2 * count > asked[holder]
    outcomes[np.unique(r_at)] = NO_MAJORITY
    codes[holder[won]] = cell[won] % k
    outcomes[holder[won]] = LABEL
