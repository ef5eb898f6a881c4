"""How much more a grader agrees than an answer that never changes would."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.stats.base import Array, Family, Given, Part, Scene, Statistic

__all__ = ["agreement_minus_constant"]

NO_COMMON = "the graders share no response that both could be read on"

ESTIMAND = Estimand(
    name="agreement_minus_constant",
    title="Agreement above the best constant answer",
    question=(
        "How much more often does the grader agree with the other than one who always gives the "
        "other’s most frequent class?"
    ),
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.POINTS,
    scale=Scale.PLAIN,
    low=-1,
    high=1,
    reading=(
        "On the responses that both labelled, so that the two stand on the same ground. Not above "
        "0: the agreement shows no more than knowing the most frequent class. The class is the most "
        "frequent one of all the responses and stays it in every replicate."
    ),
    moves_with=("how common the most frequent class is in the bank",),
    undefined_when=NO_COMMON,
    source=Source(text='"The Missing Compliance Class", Table 12'),
    formula=(
        r"\frac{1}{n}\left(\sum_{c} n_{cc} - N_{m}\right), \quad N_{d} = \sum_{c} n_{cd}, \quad m = "
        r"\operatorname{argmax}_{d}\, N_{d}"
    ),
    conventions=(
        "n_cd: common responses that the grader calls c and the other d; n: all of them. Of "
        "equally frequent classes the first of the scale is m."
    ),
)


def _minus(cells: Array, given: Given) -> Array:
    """Agreement less the share of one class of the other, from label pairs ``(..., k, k)``."""
    same = np.trace(cells, axis1=-2, axis2=-1)
    constant = cells[..., given["mode"]].sum(-1)
    return np.asarray(((same - constant) / cells.sum((-2, -1)))[..., None])


def _n(cells: Array, given: Given) -> Array:
    return np.asarray(cells.sum((-2, -1))[..., None])


STATISTIC = Statistic(estimand=ESTIMAND, solve=_minus, n=_n)


def parts(scene: Scene) -> Iterable[Part]:
    if scene.grid is None:
        return
    for standard in scene.standards:
        for grader in scene.panel:
            if grader == standard:
                continue
            tally = scene.pair_tally(grader, standard)
            yield Part(
                tally=tally,
                asks=((STATISTIC, (Key(grader=grader, other=standard),)),),
                given={"mode": int(tally.total.sum(0).argmax())},
            )


def agreement_minus_constant(labels: Any, gold: Any) -> float:
    """Agreement with gold less the share of gold’s most frequent class, in −1 to 1.

    ``labels`` and ``gold`` are labels of the same responses, ``(n,)``; pairs with a missing label
    (None or nan) are left out. nan with an ``UndefinedWarning`` where no pair is complete.

    >>> agreement_minus_constant(["a", "b", "b", "b"], ["a", "a", "b", "b"])
    0.25
    """
    from voirdire.stats.pairwise import all_classes, pair_counts, said

    counts = pair_counts(labels, gold, all_classes(labels, gold))
    if not counts.sum():
        return said(np.nan, NO_COMMON)
    return said(_minus(counts, {"mode": int(counts.sum(0).argmax())})[0], NO_COMMON)


FAMILY = Family(
    name="floor",
    statistics=(STATISTIC,),
    parts=parts,
    section="Agreement",
    order=55,
)
