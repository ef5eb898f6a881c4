"""How two graders use an ordered scale: the difference of their cumulative shares at each step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from voirdire.document import Block, Column, Kind, Table, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.wording import Name

SHIFT = Estimand(
    name="cumulative_share_difference",
    title="Difference of cumulative shares",
    question="How much more of its labels than the other does the grader give up to this class?",
    describes=Describes.BOTH,
    keys=("grader", "other", "class"),
    unit=Unit.POINTS,
    scale=Scale.PLAIN,
    needs=("label", "scale"),
    low=-1,
    high=1,
    reading="Above 0: the grader labels lower than the other. On the responses that both labelled.",
    undefined_when="the graders share no response on the scale",
    source=Source(text="Agresti 2010, Analysis of Ordinal Categorical Data, 2nd ed., ch. 2.1"),
    formula=r"F_{g}(c) - F_{h}(c), \quad F_{g}(c) = \frac{1}{n} \sum_{d \le c} n_{gd}",
    conventions=(
        "g: the grader, h: the other; n_gd: how often g gives class d on the n responses that both "
        "labelled on the scale."
    ),
)
LONG_SCALE = 5


def _difference(cells: Array, given: Given) -> Array:
    on_scale = cells[..., : given["size"], : given["size"]]
    n = on_scale.sum((-2, -1))[..., None]
    own = np.cumsum(on_scale.sum(-1), axis=-1)
    other = np.cumsum(on_scale.sum(-2), axis=-1)
    return np.asarray(((own - other) / n)[..., :-1])


def _n(cells: Array, given: Given) -> Array:
    return np.asarray(cells[..., : given["size"], : given["size"]].sum((-2, -1))[..., None])


STATISTIC = Statistic(estimand=SHIFT, solve=_difference, n=_n)


def parts(scene: Scene) -> Iterable[Part]:
    size = len(scene.scale)
    if scene.grid is None or not scene.ordered or size < LONG_SCALE:
        return
    if scene.standards:
        pairs = [(g, s) for s in scene.standards for g in scene.names if g not in (s, scene.gold)]
    elif len(scene.panel) <= 8:
        pairs = [(a, b) for i, a in enumerate(scene.panel) for b in scene.panel[i + 1 :]]
    else:
        return
    for grader, other in pairs:
        keys = tuple(Key(grader=grader, other=other, class_=c) for c in scene.scale[:-1])
        yield Part(
            tally=scene.pair_tally(grader, other), asks=((STATISTIC, keys),), given={"size": size}
        )


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    found = estimates.of("cumulative_share_difference", slice=scene.slice)
    pairs = list(dict.fromkeys((e.key.grader, e.key.other) for e in found))
    if not pairs or len(scene.scale) > 12:
        return ()
    rows = tuple(
        (
            cell(Name(grader)),
            cell(Name(other)),
            *(
                cell(
                    estimates.get(
                        "cumulative_share_difference",
                        grader=grader,
                        other=other,
                        class_=c,
                        slice=scene.slice,
                    )
                )
                for c in scene.scale[:-1]
            ),
        )
        for grader, other in pairs
    )
    return (
        Table(
            title="How much more the grader gives up to each class, in points",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title="other", kind=Kind.NAME),
                *(Column(title=Name(f"≤ {c}"), kind=Kind.POINTS) for c in scene.scale[:-1]),
            ),
            rows=rows,
            note=(
                "Above 0 the grader labels lower than the other, on the responses both labelled.",
            ),
        ),
    )


FAMILY = Family(
    name="scale",
    statistics=(STATISTIC,),
    parts=parts,
    section="How the scale is used",
    order=35,
    blocks=blocks,
)
