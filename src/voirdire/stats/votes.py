"""Repeated calls of one grader: how often they differ, and how often they elect nobody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voirdire.document import Block, Column, Kind, Table, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.grid import MISSING_CODE, Grid
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.wording import Name

__all__ = ["self_disagreement"]

TABLE5 = Source(text='"The Missing Compliance Class", Table 5')
NO_TWO_VOTES = "no response has two readable votes"
RULES = {"first": "first readable vote", "majority": "majority of the votes"}

SELF_DISAGREEMENT = Estimand(
    name="self_disagreement",
    title="Self-disagreement",
    question=(
        "On which share of the responses with at least two readable votes are these votes not all "
        "of one class?"
    ),
    describes=Describes.GRADER,
    keys=("grader",),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "vote"),
    low=0,
    high=1,
    reading=(
        "It is the noise of decoding: what the same call gives when it is made again. A difference "
        "between graders or models that is smaller may be no more than that. At 0 nothing follows: "
        "equal repeats say nothing about whether the labels are right. Votes that could not be "
        "read are left out; calls under several phrasings count as votes where there are any."
    ),
    moves_with=(
        "the number of votes: more of them find more differences",
        "the grader’s temperature",
        "how many responses of the bank lie between two classes",
    ),
    undefined_when=NO_TWO_VOTES,
    source=TABLE5,
)
NO_MAJORITY = Estimand(
    name="no_majority",
    title="No majority",
    question=(
        "For how many responses with a readable vote is there no class that more than half of the "
        "calls gave?"
    ),
    describes=Describes.GRADER,
    keys=("grader",),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    needs=("label", "vote"),
    low=0,
    reading=(
        "Under the rule “majority” these responses have no label of the grader. A call that could "
        "not be read is a call and a vote for no class; a call that nobody knows of is none."
    ),
    undefined_when="the grader gave no readable vote",
    source=TABLE5,
)

# The cells of a grader, (4,): of the responses with two readable votes or more, those where all
# are the same and those where not; of those with one or more, those with and without a majority.
SAME, DIFFERENT, WON, NOBODY = range(4)


def _disagreement_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    different = cells[..., DIFFERENT, None]
    return different, different + cells[..., SAME, None]


def _disagreement(cells: Array, given: Given) -> Array:
    different, repeated = _disagreement_parts(cells, given)
    return np.asarray(different / repeated)


def _repeated(cells: Array, given: Given) -> Array:
    return _disagreement_parts(cells, given)[1]


def _nobody(cells: Array, given: Given) -> Array:
    return np.where(_read(cells, given) > 0, cells[..., NOBODY, None], np.nan)


def _read(cells: Array, given: Given) -> Array:
    return np.asarray(cells[..., NOBODY, None] + cells[..., WON, None])


S_DISAGREEMENT = Statistic(
    estimand=SELF_DISAGREEMENT, solve=_disagreement, n=_repeated, share=_disagreement_parts
)
S_NO_MAJORITY = Statistic(estimand=NO_MAJORITY, solve=_nobody, n=_read)


@dataclass(frozen=True)
class Ballots:
    """What the votes of each response and grader come to, one entry where a call is known.

    ``row`` and ``grader`` are places in the grid; ``asked`` are calls made, ``read`` those with a
    class, ``most`` the votes of the class with the most.
    """

    row: Array
    grader: Array
    asked: Array
    read: Array
    most: Array


def ballots(grid: Grid) -> Ballots:
    """The votes of a grid, counted once for all graders."""
    votes = grid.votes
    assert votes is not None
    graders, k = len(grid.graders), max(len(grid.classes), 1)
    place, entry = np.unique(votes.row * graders + votes.grader, return_inverse=True)
    entry = entry.reshape(-1)
    readable = votes.code >= 0
    cell, count = np.unique(entry[readable] * k + votes.code[readable], return_counts=True)
    most = np.zeros(len(place), dtype=np.int64)
    np.maximum.at(most, cell // k, count)
    return Ballots(
        row=place // graders,
        grader=place % graders,
        asked=np.bincount(entry[votes.outcome != MISSING_CODE], minlength=len(place)),
        read=np.bincount(entry[readable], minlength=len(place)),
        most=most,
    )


def parts(scene: Scene) -> Iterable[Part]:
    grid = scene.grid
    if grid is None or grid.votes is None:
        return
    counted = ballots(grid)
    order = np.argsort(counted.grader, kind="stable")
    edges = np.searchsorted(counted.grader[order], np.arange(len(grid.graders) + 1))
    for grader in scene.panel:
        g = grid.graders.index(grader)
        mine = order[edges[g] : edges[g + 1]]
        if not len(mine):
            continue
        row, read, most = counted.row[mine], counted.read[mine], counted.most[mine]
        again, any_ = read >= 2, read >= 1
        won = 2 * most > counted.asked[mine]
        rows = np.concatenate([row[again], row[any_]])
        cells = np.concatenate(
            [
                np.where(most == read, SAME, DIFFERENT)[again],
                np.where(won, WON, NOBODY)[any_],
            ]
        )
        key = (Key(grader=grader),)
        yield Part(
            tally=scene.counted(rows, cells.astype(np.int64), (4,)),
            asks=((S_DISAGREEMENT, key), (S_NO_MAJORITY, key)),
        )


def self_disagreement(votes: Any) -> float:
    """The share of responses whose votes are not all the same, in 0–1.

    ``votes`` is responses × repeats of one grader; missing is None or nan. Responses with fewer than
    two votes are left out; nan with an ``UndefinedWarning`` where none is left. Source: MCC, Table 5.

    >>> self_disagreement([["a", "a", "b"], ["b", "b", None], ["a", None, None]])
    0.5
    """
    from voirdire.stats.pairwise import all_classes, codes, said

    matrix = np.asarray(votes, dtype=object)
    if matrix.ndim != 2:
        raise ValueError("votes must be responses × repeats")
    places = codes(matrix, all_classes(matrix)).reshape(matrix.shape)
    read = places >= 0
    again = read.sum(axis=1) >= 2
    high = places.max(axis=1, initial=-1)
    low = np.where(read, places, np.iinfo(np.int64).max).min(axis=1, initial=np.iinfo(np.int64).max)
    if not again.any():
        return said(np.nan, NO_TWO_VOTES)
    return said((high != low)[again].mean(), NO_TWO_VOTES)


# --- the report ---------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    rows = []
    for grader in scene.names:
        found = estimates.get("self_disagreement", grader=grader, slice=scene.slice)
        if found is None or not found.n:
            continue
        lost = estimates.get("no_majority", grader=grader, slice=scene.slice)
        rows.append(
            (
                cell(Name(grader)),
                cell(found.n, Kind.COUNT),
                cell(found),
                cell(lost),
                cell(lost.n if lost is not None else None, Kind.COUNT),
            )
        )
    made: list[Block] = []
    if rows:
        made.append(
            Table(
                title="How a grader’s votes on one response differ",
                columns=(
                    Column(title="grader", kind=Kind.NAME),
                    Column(
                        title="asked again", kind=Kind.COUNT, help="responses with two readable votes"
                    ),
                    Column(title="votes differ", kind=Kind.SHARE),
                    Column(title="no majority", kind=Kind.COUNT),
                    Column(title="of", kind=Kind.COUNT, help="responses with a readable vote"),
                ),
                rows=tuple(rows),
                note=(
                    "Repeats under one prompt show the noise of decoding and nothing of whether the "
                    "labels are right. No majority: no class has more than half of the calls; under "
                    f"the rule “majority” there is no label then. Labels here: the "
                    f"{RULES[scene.options.vote_rule]}.",
                ),
            )
        )
    return [*made, *_rules(scene, estimates)]


def _rules(scene: Scene, estimates: Estimates) -> list[Block]:
    """The spread of each rate under both rules, side by side."""
    rows = []
    for rate in scene.rates:
        cells = []
        for statistic in ("rate_max_over_min", "rate_range", "graders_at_zero"):
            for rule in RULES:
                key = {"other": f"votes:{rule}", "class_": rate.name, "slice": scene.slice}
                cells.append(estimates.get(statistic, **key))
        if any(e is not None for e in cells):
            rows.append((cell(Name(rate.name)), *(cell(e) for e in cells)))
    if not rows:
        return []
    words = {"first": "first vote", "majority": "majority"}
    kinds = (
        ("highest / lowest", Kind.RATIO),
        ("range, points", Kind.POINTS),
        ("at zero", Kind.COUNT),
    )
    return [
        Table(
            title="How far each rate moves with the grader, under each rule for votes",
            columns=(
                Column(title="rate", kind=Kind.NAME),
                *(
                    Column(title=f"{title}: {words[rule]}", kind=kind)
                    for title, kind in kinds
                    for rule in RULES
                ),
            ),
            rows=tuple(rows),
            note=(
                "First vote: the first readable one, as if each response had been asked once. "
                "Majority: more than half of the calls, else no label. Graders with one call keep "
                "it under both. Ratios leave graders at zero out of the lowest rate.",
            ),
        )
    ]


FAMILY = Family(
    name="votes",
    statistics=(S_DISAGREEMENT, S_NO_MAJORITY),
    parts=parts,
    section="Votes",
    order=25,
    blocks=blocks,
)
