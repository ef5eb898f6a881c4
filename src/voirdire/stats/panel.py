"""Agreement of the whole panel in one number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from voirdire.document import Block, Column, Kind, Table, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.tally import Tally, of_rows

__all__ = ["krippendorff_alpha"]

ONE_CLASS = "not defined: one class used"
NO_PAIRS = "no response has labels of two graders"

ALPHA_NOMINAL = Estimand(
    name="krippendorff_alpha_nominal",
    title="Krippendorff’s alpha, nominal",
    question="How far do the graders of the panel agree beyond chance, taken all together?",
    describes=Describes.PANEL,
    keys=(),
    unit=Unit.COEFFICIENT,
    scale=Scale.LOG_ONE_MINUS,
    high=1,
    reading=(
        "1: perfect, 0: as by chance. Missing labels are allowed. Graders that are made from others "
        "of the panel are left out, since they would count the same labels twice."
    ),
    moves_with=("how common each class is in the bank",),
    undefined_when=ONE_CLASS,
    source=Source(text="Krippendorff 2004, Content Analysis, 2nd ed., ch. 11.3"),
)


def coincidences(labels_by_class: Array) -> Array:
    """Ordered pairs of labels within each response, ``(responses, k, k)``, from counts ``(responses, k)``.

    The pairs of one response are not yet divided by its number of labels less one.
    """
    k = labels_by_class.shape[-1]
    return np.asarray(
        labels_by_class[..., :, None] * (labels_by_class[..., None, :] - np.eye(k, dtype=np.int64))
    )


def _table(cells: Array, given: Given) -> Array:
    """Krippendorff's coincidence table from pairs by number of labels, ``(..., m, k, k)``."""
    labels = given["labels"]  # number of labels a response has, one for each of the m blocks
    return np.asarray((cells / (labels - 1)[:, None, None]).sum(-3))


def alpha_nominal(table: Array) -> Array:
    """Alpha from a coincidence table ``(..., k, k)``: 1 − observed / expected disagreement."""
    per_class = table.sum(-1)
    n = per_class.sum(-1)
    different = n - np.trace(table, axis1=-2, axis2=-1)
    expected = (n**2 - (per_class**2).sum(-1)) / (n - 1)
    return np.where(expected > 0, 1 - different / np.where(expected > 0, expected, 1), np.nan)


def _alpha(cells: Array, given: Given) -> Array:
    return alpha_nominal(_table(cells, given))[..., None]


def _responses(cells: Array, given: Given) -> Array:
    labels = given["labels"]
    return np.asarray((cells.sum((-2, -1)) / (labels * (labels - 1))).sum(-1)[..., None])


def _why(totals: Array, given: Given) -> Sequence[str]:
    return [NO_PAIRS if totals.sum() == 0 else ONE_CLASS]


def _parts_of_share(cells: Array, given: Given) -> tuple[Array, Array]:
    table = _table(cells, given)
    n = table.sum((-2, -1))[..., None]
    return n - np.trace(table, axis1=-2, axis2=-1)[..., None], n


STATISTIC = Statistic(estimand=ALPHA_NOMINAL, solve=_alpha, n=_responses, reason=_why)


def alpha_panel(scene: Scene) -> list[str]:
    """The panel without graders that are made from others of it."""
    panel = scene.panel
    return [g for g in panel if not set(scene.by_name[g].derived_from) & set(panel)]


def parts(scene: Scene) -> Iterable[Part]:
    if scene.grid is None:
        return
    graders = alpha_panel(scene)
    if len(graders) < 2:
        return
    grid = scene.grid
    codes = grid.codes[:, [grid.graders.index(g) for g in graders]]
    k = scene.k
    rows, columns = np.nonzero(codes >= 0)
    counts = np.bincount(rows * k + codes[rows, columns], minlength=len(codes) * k).reshape(-1, k)
    labels = counts.sum(-1)
    paired = labels >= 2
    sizes = np.unique(labels[paired])
    if not len(sizes):
        empty = of_rows(np.zeros((0, 1, k, k), dtype=np.int64))
        yield Part(tally=empty, asks=((STATISTIC, (Key(),)),), given={"labels": np.array([2])})
        return
    tally = _tally(scene, counts, labels, np.flatnonzero(paired), sizes)
    yield Part(tally=tally, asks=((STATISTIC, (Key(),)),), given={"labels": sizes})


def _tally(scene: Scene, counts: Array, labels: Array, rows: Array, sizes: Array) -> Tally:
    """Pairs of labels by number of labels: shape ``(sizes, k, k)``."""
    k = scene.k
    block = np.searchsorted(sizes, labels[rows])
    responses, cells, amounts = [], [], []
    step = max(1, (1 << 22) // (k * k))
    for low in range(0, len(rows), step):
        chosen = rows[low : low + step]
        pairs = coincidences(counts[chosen]).reshape(len(chosen), -1)
        at, pair = np.nonzero(pairs)
        responses.append(chosen[at])
        cells.append(block[low : low + step][at] * (k * k) + pair)
        amounts.append(pairs[at, pair].astype(np.int64))
    return scene.counted(
        np.concatenate(responses),
        np.concatenate(cells),
        (len(sizes), k, k),
        np.concatenate(amounts),
    )


def krippendorff_alpha(ratings: Any, level: str = "nominal") -> float:
    """Krippendorff's alpha of ratings ``(responses, graders)``; missing is None or nan; at most 1.

    ``level`` is ``"nominal"``. nan with an ``UndefinedWarning`` where one class is used throughout
    or no response has two labels. Source: Krippendorff 2004, ch. 11.3.
    """
    from voirdire.stats.pairwise import all_classes, said
    from voirdire.stats.pairwise import codes as coded

    if level != "nominal":
        raise ValueError(f"level {level!r}: only 'nominal' is there yet")
    matrix = np.asarray(ratings, dtype=object)
    if matrix.ndim != 2:
        raise ValueError("ratings must be responses × graders")
    classes = all_classes(matrix)
    k = max(len(classes), 1)
    coded_ratings = coded(matrix, classes).reshape(matrix.shape)
    counts = np.stack([(coded_ratings == c).sum(axis=1) for c in range(k)], axis=1)
    labels = counts.sum(axis=1)
    paired = labels >= 2
    if not paired.any():
        return said(np.nan, NO_PAIRS)
    table = (coincidences(counts[paired]) / (labels[paired] - 1)[:, None, None]).sum(axis=0)
    return said(alpha_nominal(table), ONE_CLASS)


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    alpha = estimates.get("krippendorff_alpha_nominal", slice=scene.slice)
    if alpha is None:
        return ()
    return (
        Table(
            title="The panel as a whole",
            columns=(
                Column(title="coefficient"),
                Column(title="value", kind=Kind.COEFFICIENT),
                Column(title="responses", kind=Kind.COUNT),
            ),
            rows=((cell("Krippendorff’s alpha, nominal"), cell(alpha), cell(alpha.n, Kind.COUNT)),),
            note=(
                "It describes this panel on this bank. It does not show a class that some graders miss.",
            ),
        ),
    )


FAMILY = Family(
    name="panel",
    statistics=(STATISTIC,),
    parts=parts,
    section="Agreement",
    order=60,
    blocks=blocks,
)
