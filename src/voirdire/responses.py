"""The responses behind a report: labels, outcomes and verdicts of all graders as plain columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from voirdire.bank import Bank
from voirdire.document import Panel, Responses, TagColumn, Verdicts
from voirdire.errors import UsageError
from voirdire.grid import NOT_THERE, Grid, Phrasings, codes_of, columns_of, response_names
from voirdire.labels import ALL_OUTCOMES, Labels
from voirdire.scene import Scene
from voirdire.selections import NOT_ASKED, NOT_READ
from voirdire.wording import listed, plain, printable

Array = np.ndarray[Any, Any]

OUTCOMES = (*ALL_OUTCOMES, "no_majority", "not_there")
FEW_VALUES = range(1, 51)  # distinct values of a tag that one may filter by
SHORT = 40  # characters: a tag with longer values is a text, and texts are only shown on request
MOST_CLASSES = 230  # one byte a label, with room for the outcomes
MOST_LABELS = 5_000_000  # responses × graders; beyond, the report is a report of counts
NOT_TAGS = ("raw", "outcome_reason")  # what a grader said is a text


def panel(scene: Scene) -> Panel:
    """Who was audited, in the order of the tables."""
    roles = [
        "gold"
        if g.name == scene.gold
        else "reference"
        if g.name == scene.reference
        else "person"
        if g.person
        else ""
        for g in scene.graders
    ]
    checklist = scene.bank is not None
    return Panel(
        graders=scene.names,
        roles=tuple(roles),
        gold=scene.gold,
        scale=() if checklist else scene.scale,
        off_scale=() if checklist else tuple(c for c in scene.classes if c not in scene.scale),
        ordered=scene.ordered,
        rates=tuple(r.name for r in scene.rates),
        checklist=checklist,
        cuts=scene.options.gates if checklist else (),
        lines=scene.bank.k if scene.bank is not None else 0,
        flagged=scene.flagged,
    )


def responses(
    labels: Labels,
    scene: Scene,
    slices: Sequence[Scene],
    voters: Mapping[str, Sequence[str]],
) -> Responses | None:
    """The responses of an audit; ``None`` where there are only counts, or too many labels to keep.

    ``voters`` are the graders that each one's consensus is made of. Raises :class:`UsageError` where
    ``--text`` names a column that is not there or that differs between the rows of one response.
    """
    held = scene.grid if scene.grid is not None else scene.bank
    texts = _texts(labels)
    if held is None or len(scene.classes) > MOST_CLASSES:
        return None
    if held.responses * len(scene.names) > MOST_LABELS:
        return None
    first = columns_of(labels, labels.response_codes.astype(np.int64)).first
    clusters: tuple[str, ...] = ()
    cluster: tuple[int, ...] = ()
    if not held.own_cluster:
        names, codes = codes_of(labels.frame["cluster"])
        clusters, cluster = tuple(names), tuple(codes[first].tolist())
    checklist = scene.bank is not None
    classes = () if checklist else scene.classes
    weights = held.weights
    return Responses(
        ids=tuple(map(str, response_names(labels).tolist())),
        graders=scene.names,
        classes=classes,
        scale=() if checklist else scene.scale,
        outcomes=OUTCOMES,
        states=tuple(_states(scene, g) for g in scene.names),
        gold=scene.gold,
        clusters=clusters,
        cluster=cluster,
        weights=() if weights is None else tuple(float(w) for w in weights),
        frequency=held.frequency,
        tags=_tags(labels, first),
        votes=() if scene.grid is None else _votes(scene.grid),
        phrasings=held.phrasings.names if held.phrasings is not None else (),
        phrased=_phrased(held.phrasings, [_place(held, g) for g in scene.names]),
        steps=() if scene.grid is None else _steps(scene.grid, scene.names),
        voters={g: tuple(v) for g, v in voters.items()},
        rates={
            r.name: tuple(c for c, inside in zip(scene.classes, r.members, strict=True) if inside)
            for r in scene.rates
        },
        slices={s.slice: s.sliced_by for s in slices},
        verdicts=_verdicts(scene.bank, scene.names) if scene.bank is not None else None,
        texts=tuple((name, tuple(_of_first(labels, name, first))) for name in texts),
    )


def _place(held: Grid | Bank, grader: str) -> int:
    return held.graders.index(grader)


def _states(scene: Scene, grader: str) -> bytes:
    """One byte a response: the class, or after the classes how the call ended."""
    if scene.bank is not None:
        states = scene.bank.states[:, scene.bank.places[grader]].astype(np.int64)
        return _bytes(np.where(states == NOT_THERE, len(OUTCOMES) - 1, states))
    grid = scene.grid
    assert grid is not None
    place = grid.graders.index(grader)
    codes, ended = grid.codes[:, place], grid.outcomes[:, place].astype(np.int64)
    ended = np.where(ended == NOT_THERE, len(OUTCOMES) - 1, ended)
    return _bytes(np.where(codes >= 0, codes, scene.k + ended))


def _bytes(codes: Array) -> bytes:
    return codes.astype(np.uint8).tobytes()


def _votes(grid: Grid) -> tuple[tuple[bytes, ...], ...]:
    votes = grid.votes
    if votes is None:
        return ()
    k = len(grid.classes)
    state = np.where(votes.code >= 0, votes.code, k + votes.outcome).astype(np.uint8)
    made = []
    for g in range(len(grid.graders)):
        mine = votes.grader == g
        rows, states = votes.row[mine], state[mine]
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], np.arange(grid.responses + 1))
        whole = states[order].tobytes()
        made.append(tuple(whole[a:b] for a, b in pairwise(ends)))
    return tuple(made)


def _phrased(held: Phrasings | None, places: Sequence[int]) -> tuple[tuple[bytes, ...], ...]:
    if held is None or held.decided.max(initial=0) >= NOT_READ:
        return ()
    coded = np.where(held.decided >= 0, held.decided, np.where(held.asked, NOT_READ, NOT_ASKED))
    return tuple(tuple(_bytes(coded[:, g, p]) for p in range(len(held.names))) for g in places)


def _steps(grid: Grid, names: Iterable[str]) -> tuple[tuple[str, tuple[bytes, ...]], ...]:
    places = [grid.graders.index(g) for g in names]
    return tuple(
        (name, tuple(_bytes(np.where(c[:, g] >= 0, c[:, g], NOT_READ)) for g in places))
        for name, c in grid.steps
    )


def _verdicts(held: Bank, names: Iterable[str]) -> Verdicts:
    there = held.line >= 0
    given = []
    for name in names:
        said = held.of(name)
        given.append(_bytes(np.where(there, np.where(said >= 0, said, 2), 3)))
    checklists = []
    for q in range(len(held.questions)):
        rows = np.flatnonzero(held.question == q)
        lines = held.line[rows[0]] if len(rows) else np.array([], dtype=np.int64)
        checklists.append(tuple(held.lines[i] for i in lines if i >= 0))
    return Verdicts(
        width=held.line.shape[1],
        questions=held.questions,
        question=tuple(held.question.tolist()),
        checklists=tuple(checklists),
        given=tuple(given),
        texts=dict(held.texts),
    )


def _tags(labels: Labels, first: Array) -> tuple[TagColumn, ...]:
    """Tags with few and short values, and those that slices are made by."""
    by = {part for b in labels.options.by for part in (b, *b.split("+"))}
    shown = []
    for tag in labels.tags:
        if not tag.per_response or tag.name in NOT_TAGS or tag.name in labels.options.text:
            continue
        asked = tag.name in by
        # As many values as responses is a name or a text, however few the responses are.
        few = tag.values in FEW_VALUES and (tag.values <= 5 or 4 * tag.values <= labels.responses)
        if not (few or asked) or tag.values >= NOT_READ:
            continue
        values, codes = codes_of(labels.frame[tag.name])
        if not asked and max(map(len, values), default=0) > SHORT:
            continue
        of_responses = codes[first]
        shown.append(
            TagColumn(
                name=tag.name,
                values=tuple(values),
                codes=_bytes(np.where(of_responses >= 0, of_responses, NOT_ASKED)),
            )
        )
    return tuple(shown)


def _texts(labels: Labels) -> tuple[str, ...]:
    """The columns of ``--text``, checked."""
    asked = tuple(dict.fromkeys(labels.options.text))
    tags = {t.name: t for t in labels.tags}
    for name in asked:
        if labels.kind == "counts":
            raise UsageError(f"--text {name}: a table of counts has no responses to show.")
        if name not in tags:
            there = plain(listed((printable(t) for t in tags), most=20)) or "none"
            raise UsageError(f"--text {name}: there is no column {name!r}. Columns: {there}.")
        if not tags[name].per_response:
            raise UsageError(
                f"--text {name}: its value differs between the rows of one response, so it is no text "
                "of the response. Name a column that is the same in all of them."
            )
    return asked


def _of_first(labels: Labels, name: str, first: Array) -> list[str]:
    return [
        t if t is not None else "" for t in labels.frame[name].cast(str).gather(first).to_list()
    ]
