"""Verdicts on pairs: which classes name the two sides, and what was said in each order of showing.

A verdict on a pair says which of two responses is better, or that neither is. Its classes are no
scale: a tie is no step between the sides. Where each pair was shown in both orders, a vote tag
:data:`ORDER` says which side stood first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voirdire.grid import Grid
from voirdire.labels import Labels
from voirdire.scene import Scene

Array = np.ndarray[Any, Any]

ORDER = "order"  # the tag of a vote that says in which order a pair was shown
FIRST_SHOWN_IS_ONE, FIRST_SHOWN_IS_TWO = "ab", "ba"  # its values, in any case
ONE, TWO, TIED = 0, 1, 2  # verdicts: for the first of the pair, for the second, for neither

_SIDE = re.compile(r"(?P<what>.*?)[ _-]?(?P<which>[12ab])", re.I | re.S)
_PAIRED = {
    *("model", "output", "response", "answer", "assistant", "candidate", "completion", "system"),
}
_TIE = re.compile(r"tie\b.*|tied|draw|equal|neither|both", re.I | re.S)


@dataclass(frozen=True, slots=True)
class Pair:
    """The classes of verdicts on pairs: the two sides, and the classes that favour neither."""

    one: str
    two: str
    ties: tuple[str, ...]


def pair_of(classes: Sequence[str], *, shown_both_ways: bool = False) -> Pair | None:
    """The sides and ties among classes such as ``model_1, model_2, tie``; ``None`` where they are none.

    One side alone is a pair too: the other was never preferred. Bare ``A, B`` or ``1, 2`` may
    mean anything, so they need a tie beside them, or votes in both orders (``shown_both_ways``).
    """
    ties = tuple(c for c in classes if _TIE.fullmatch(c))
    sides: dict[str, str] = {}
    names: set[str] = set()
    for class_ in classes:
        if class_ in ties:
            continue
        found = _SIDE.fullmatch(class_)
        if found is None:
            return None
        which = {"1": "a", "2": "b"}.get(found["which"], found["which"].lower())
        if which in sides:
            return None
        sides[which] = class_
        names.add(found["what"].lower())
    if len(names) != 1:
        return None
    named = names & _PAIRED or shown_both_ways or (ties and len(sides) == 2)
    if not named:
        return None
    return Pair(one=sides.get("a", ""), two=sides.get("b", ""), ties=ties)


def vote_tags(labels: Labels) -> list[str]:
    """The tag of orders, where single votes may differ in it."""
    if labels.options.step:
        return []
    return [t.name for t in labels.tags if t.name == ORDER and not t.per_response]


@dataclass(frozen=True, slots=True)
class Orders:
    """Verdicts on pairs that were shown in both orders.

    ``ab`` and ``ba`` are responses × graders: :data:`ONE`, :data:`TWO` or :data:`TIED` as the grader said
    with side one and with side two shown first, −1 where it could not be read or was not asked. Several
    votes in one order make one verdict by the vote rule.
    """

    pair: Pair
    ab: Array
    ba: Array


def orders_of(scene: Scene) -> Orders | None:
    """The verdicts in each order; ``None`` where votes are no verdicts on pairs in two orders."""
    key = "orders"
    if key not in scene.memory:
        scene.memory[key] = None if scene.grid is None else _orders(scene.grid)
    return scene.memory[key]  # type: ignore[no-any-return]


def _orders(grid: Grid) -> Orders | None:
    places = _places(grid)
    if places is None:
        return None
    pair = pair_of(grid.classes, shown_both_ways=True) or _shown_pair(grid)
    if pair is None:
        return None
    verdicts = np.full(len(grid.classes) + 1, TIED, dtype=np.int64)
    verdicts[-1] = -1  # what NO_LABEL looks up
    for side, verdict in ((pair.one, ONE), (pair.two, TWO)):
        if side:
            verdicts[grid.classes.index(side)] = verdict
    ab, ba = (verdicts[_labels_in(grid, place)] for place in places)
    return Orders(pair=pair, ab=ab, ba=ba)


def _places(grid: Grid) -> tuple[int, int] | None:
    """The codes of both orders among the values of the tag; ``None`` where there are not just these."""
    if grid.votes is None or ORDER not in grid.votes.tags:
        return None
    values, codes = grid.votes.tags[ORDER]
    used = {values[i].strip().lower(): i for i in np.unique(codes[codes >= 0]).tolist()}
    if set(used) != {FIRST_SHOWN_IS_ONE, FIRST_SHOWN_IS_TWO}:
        return None
    return used[FIRST_SHOWN_IS_ONE], used[FIRST_SHOWN_IS_TWO]


def _shown_pair(grid: Grid) -> Pair | None:
    """The pair among the classes of votes with an order, where other labels stand beside them."""
    votes = grid.votes
    assert votes is not None
    used = np.unique(votes.code[(votes.tags[ORDER][1] >= 0) & (votes.code >= 0)])
    return pair_of([grid.classes[i] for i in used.tolist()], shown_both_ways=True)


def _labels_in(grid: Grid, place: int) -> Array:
    """One label a response and grader from its votes in one order, by the vote rule."""
    assert grid.votes is not None
    _, codes = grid.votes.tags[ORDER]
    return replace(grid, votes=grid.votes.where(codes == place)).under(grid.vote_rule).codes
