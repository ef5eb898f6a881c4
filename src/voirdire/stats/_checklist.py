"""What the families of a checklist share: a statistic beside its value on gold, and its keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from voirdire.estimand import Describes, Estimand, Scale, Unit
from voirdire.estimate import Key
from voirdire.sides import Sides
from voirdire.stats.base import Array, Given, Statistic
from voirdire.tally import Tally

KINDS = ("checklist",)
Asks = tuple[tuple[Statistic, tuple[Key, ...]], ...]


def responses(cells: Array, given: Given) -> Array:
    """How many responses there are: the first cell of every tally of a bank."""
    return np.asarray(cells[..., :1])


def beside_gold(
    estimand: Estimand, value: Callable[[Array, Given], Array], **more: Any
) -> tuple[Statistic, Statistic]:
    """A statistic of every side, and by how much the judge's is above gold's on the same responses.

    ``value`` takes totals ``(..., cells)`` and gives ``(..., sides)`` or ``(..., sides, outputs)``;
    the first cell is the number of responses. ``more`` goes to the first :class:`Statistic`. The
    difference is named ``<name>_minus_gold``.
    """

    def own(cells: Array, given: Given) -> Array:
        values = value(cells, given)
        return values.reshape(*cells.shape[:-1], -1)

    def minus(cells: Array, given: Given) -> Array:
        axis = cells.ndim - 1
        judge, gold = np.moveaxis(value(cells, given), axis, 0)
        return np.asarray(judge - gold).reshape(*cells.shape[:-1], -1)

    bounds = (
        None if estimand.low is None or estimand.high is None else (estimand.low, estimand.high)
    )
    difference = replace(
        estimand,
        name=f"{estimand.name}_minus_gold",
        title=f"{estimand.title}: judge less gold",
        question=(
            f"By how much is it higher on the judge’s verdicts than on gold’s, on the same responses? "
            f"({estimand.question})"
        ),
        describes=Describes.BOTH,
        unit=Unit.POINTS if estimand.unit is Unit.SHARE else estimand.unit,
        scale=Scale.NONE if estimand.scale is Scale.NONE else Scale.PLAIN,
        low=None if bounds is None else bounds[0] - bounds[1],
        high=None if bounds is None else bounds[1] - bounds[0],
        needs=(*estimand.needs, "gold"),
        reading="An error-free scorer has a difference of 0; so can one that errs.",
        undefined_when="it is undefined on either side",
        formula=rf"T_{{J}} - T_{{G}}, \quad T = {estimand.formula}",
        conventions=(
            "T_J: the statistic on the judge’s verdicts, T_G: on gold’s, both on the responses that the two "
            f"scored in full. {estimand.conventions}"
        ),
    )
    return (
        Statistic(estimand=estimand, solve=own, n=responses, **more),
        Statistic(estimand=difference, solve=minus, n=responses),
    )


def asks(
    pairs: Sequence[tuple[Statistic, Statistic]], sides: Sides, cuts: Sequence[int] | None = None
) -> Asks:
    """The keys of each pair that :func:`beside_gold` made, for all cuts where they have cuts."""
    made: list[tuple[Statistic, tuple[Key, ...]]] = []
    for own, minus in pairs:
        made.append((own, tuple(k for key in sides.keys for k in _at(key, cuts))))
        if sides.paired:
            made.append((minus, tuple(_at(sides.keys[0], cuts))))
    return tuple(made)


def _at(key: Key, cuts: Sequence[int] | None) -> list[Key]:
    return [key] if cuts is None else [replace(key, cut=str(cut)) for cut in cuts]


def empty_tally(cells: int) -> Tally:
    """A tally in which nothing stands, for parts whose outputs cannot be said."""
    from voirdire.tally import of_rows

    return of_rows(np.zeros((0, cells), dtype=np.int64))
