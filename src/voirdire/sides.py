"""Which grader of a bank is looked at on which responses: alone, or beside gold on the same ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from voirdire.estimate import Estimate, Key
from voirdire.scene import Scene
from voirdire.wording import Name, Text, counted

Array = np.ndarray[Any, Any]

ALL = "all responses"  # the ``other`` of a value on all responses, where gold covers only a part

DIFFERENT_LENGTHS = (
    "the questions have checklists of {least} to {most} lines: it is said of one number of lines K"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """One comparison: its graders, the responses that all of them scored in full, and their keys.

    ``names`` is ``(grader,)``, or ``(grader, gold)`` where the two stand in one tally, so that they
    move together. ``rows`` are responses of the bank. ``keys`` has the key of each side's own value.
    """

    names: tuple[str, ...]
    keys: tuple[Key, ...]
    rows: Array

    @property
    def grader(self) -> str:
        return self.names[0]

    @property
    def paired(self) -> bool:
        return len(self.names) == 2


def sides(scene: Scene) -> list[Sides]:
    """The comparisons of a bank.

    Without gold every grader stands alone. With gold each grader stands beside gold on the responses
    that both scored in full; where gold covers only a part of what the grader scored, the grader
    stands also alone on all of it (``other`` is :data:`ALL`). With one grader gold's value on those
    responses is *the* value of gold; with several it is gold on the responses that any of them
    scored, and beside each of them its value there (``other`` is the grader).
    """
    bank, gold = scene.bank, scene.gold
    assert bank is not None
    complete = {g: bank.complete[:, bank.places[g]] for g in scene.names}
    made: list[Sides] = []
    for grader in scene.panel:
        mine = complete[grader]
        if not gold:
            made.append(
                Sides(names=(grader,), keys=(Key(grader=grader),), rows=np.flatnonzero(mine))
            )
            continue
        both = mine & complete[gold]
        other = "" if len(scene.panel) == 1 else grader
        made.append(
            Sides(
                names=(grader, gold),
                keys=(Key(grader=grader), Key(grader=gold, other=other)),
                rows=np.flatnonzero(both),
            )
        )
        if both.sum() < mine.sum():
            made.append(
                Sides(
                    names=(grader,),
                    keys=(Key(grader=grader, other=ALL),),
                    rows=np.flatnonzero(mine),
                )
            )
    if gold and len(scene.panel) != 1:
        scored = np.zeros(bank.responses, dtype=np.bool_)
        for grader in scene.panel:
            scored |= complete[grader]
        if not scene.panel:
            scored[:] = True
        made.append(
            Sides(
                names=(gold,),
                keys=(Key(grader=gold),),
                rows=np.flatnonzero(complete[gold] & scored),
            )
        )
    return made


def different_lengths(scene: Scene) -> str:
    """Why a coefficient over lines cannot be said where checklists differ in length; else empty."""
    assert scene.bank is not None
    lengths = scene.bank.length
    if scene.bank.k or not len(lengths):
        return ""
    return DIFFERENT_LENGTHS.format(least=int(lengths.min()), most=int(lengths.max()))


def standard(scene: Scene) -> Text:
    """What a sentence calls gold: ``gold``, or its name where a judge is the one called gold."""
    taken = any(g.strip().casefold() == "gold" for g in scene.panel)
    return (Name(scene.gold),) if taken else ("gold",)


def standards(scene: Scene) -> Text:
    """The same as an owner: ``gold’s``."""
    return (*standard(scene), "’s")


def counted_of(scene: Scene, estimate: Estimate | None) -> str:
    """The counts of a share: ``13 of 59``.

    A share under design weights is of no whole number of responses: then of how many it is, ``of 59``.
    """
    if estimate is None or not estimate.n:
        return "–"
    bank = scene.bank
    designed = bank is not None and bank.weights is not None and not bank.frequency
    if estimate.number is None or designed:
        return f"of {counted(estimate.n)}"
    return f"{counted(round(estimate.number * estimate.n))} of {counted(estimate.n)}"
