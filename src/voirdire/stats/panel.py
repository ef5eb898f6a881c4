"""Agreement of the whole panel in one number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from voirdire.document import Block, Column, Kind, Table, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.labels import number_form
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.stats.pairwise import all_classes, codes, said
from voirdire.tally import Tally, of_rows

__all__ = ["fleiss_kappa", "krippendorff_alpha"]

ONE_CLASS = "not defined: one class used"
NO_PAIRS = "no response has labels of two graders"

LEVELS = ("nominal", "ordinal", "interval", "ratio")
_DIFFERENT = {
    "nominal": "any two different classes differ alike",
    "ordinal": "classes differ by how many labels lie between them on the scale",
    "interval": "classes differ by the square of the difference of their numbers",
    "ratio": "classes differ by the square of their numbers’ relative difference",
}

# The squared difference of two classes, and what is to be said of it.
_DELTA = {
    "nominal": (
        r"\mathbf{1}[c \ne d]",
        "irr::kripp.alpha leaves out the division by u_i − 1 for three graders or more without missing labels.",
    ),
    "ordinal": (
        r"\left(\sum_{e = c}^{d} n_{e} - \frac{n_{c} + n_{d}}{2}\right)^{2}",
        "The sum runs over the classes from c to d on the scale. Labels off the scale are missing. The "
        "“ordinal” weights of irrCAC are another coefficient.",
    ),
    "interval": (
        r"(v_{c} - v_{d})^{2}",
        "v_c: the number that class c is. Labels off the scale are missing.",
    ),
    "ratio": (
        r"\left(\frac{v_{c} - v_{d}}{v_{c} + v_{d}}\right)^{2}",
        "v_c: the number that class c is, from 0; 0 beside 0 differs by 0. Labels off the scale are missing.",
    ),
}


def _alpha_estimand(level: str) -> Estimand:
    return Estimand(
        name=f"krippendorff_alpha_{level}",
        title=f"Krippendorff’s alpha, {level}",
        question=f"How far do the graders of the panel agree beyond chance, where {_DIFFERENT[level]}?",
        describes=Describes.PANEL,
        keys=(),
        unit=Unit.COEFFICIENT,
        scale=Scale.LOG_ONE_MINUS,
        needs=("label",) if level == "nominal" else ("label", "scale"),
        high=1,
        reading=(
            "1: perfect, 0: as by chance. Missing labels are allowed. Graders that are made from "
            "others of the panel are left out, since they would count the same labels twice."
            + ("" if level == "nominal" else " On the ordered classes only.")
        ),
        moves_with=("how common each class is in the bank",),
        undefined_when=ONE_CLASS,
        source=Source(text="Krippendorff 2004, Content Analysis, 2nd ed., ch. 11.3"),
        formula=(
            r"\alpha = 1 - (N - 1)\, \frac{\sum_{c,d} o_{cd}\, \delta_{cd}^{2}}"
            r"{\sum_{c,d} n_{c}\, n_{d}\, \delta_{cd}^{2}}, "
            r"\quad o_{cd} = \sum_{i} \frac{n_{ic} (n_{id} - \mathbf{1}[c = d])}{u_{i} - 1}, "
            rf"\quad \delta_{{cd}}^{{2}} = {_DELTA[level][0]}"
        ),
        conventions=(
            "n_ic: how many graders give class c to response i, u_i how many label it; responses with one "
            f"label are left out. n_c = Σ_d o_cd, N = Σ_c n_c. {_DELTA[level][1]}".strip()
        ),
    )


ALPHAS = {level: _alpha_estimand(level) for level in LEVELS}
FLEISS = Estimand(
    name="fleiss_kappa",
    title="Fleiss’ kappa",
    question="How far do the graders of the panel agree beyond chance, as interchangeable graders?",
    describes=Describes.PANEL,
    keys=(),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    high=1,
    reading=(
        "1: perfect, 0: as by chance; it sinks where one class is rare. Responses with one label "
        "count for the class shares only."
    ),
    moves_with=("how common each class is in the bank",),
    undefined_when=ONE_CLASS,
    source=Source(
        text="Fleiss 1971, Psychological Bulletin 76(5), p. 378; missing labels: Gwet 2014, ch. 5"
    ),
    formula=(
        r"\kappa = \frac{\bar{P} - P_{e}}{1 - P_{e}}, \quad \bar{P} = \frac{1}{n_{2}} \sum_{i : "
        r"u_{i} \ge 2} \sum_{c} \frac{n_{ic} (n_{ic} - 1)}{u_{i} (u_{i} - 1)}, \quad P_{e} = "
        r"\sum_{c} \left(\frac{1}{n_{1}} \sum_{u_{i} \ge 1} \frac{n_{ic}}{u_{i}}\right)^{2}"
    ),
    conventions=(
        "n_ic: how many graders give class c to response i, u_i how many label it; n_1, n_2: the "
        "responses with at least one label, and with two. Responses count alike, however many "
        "label them. Without missing labels it is Fleiss’ own; 1 − alpha = (1 − 1/N)(1 − kappa) "
        "then, N the number of labels."
    ),
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


def differences(per_class: Array, level: str, values: Array | None = None) -> Array:
    """Squared differences of classes ``(..., k, k)`` at a level of measurement.

    ``per_class`` holds the paired labels of each class ``(..., k)``, on which the ordinal metric
    depends; ``values`` the numbers of the classes, for interval and ratio.
    """
    k = per_class.shape[-1]
    if level == "nominal":
        return 1 - np.eye(k)
    if level == "ordinal":
        middle = np.cumsum(per_class, axis=-1) - per_class / 2
        return np.asarray((middle[..., :, None] - middle[..., None, :]) ** 2)
    assert values is not None
    apart = values[:, None] - values[None, :]
    if level == "interval":
        return np.asarray(apart**2)
    together = values[:, None] + values[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(apart == 0, 0.0, (apart / together) ** 2)


def alpha(table: Array, level: str = "nominal", values: Array | None = None) -> Array:
    """Alpha from a coincidence table ``(..., k, k)``: 1 − observed / expected disagreement."""
    per_class = table.sum(-1)
    n = per_class.sum(-1)
    apart = differences(per_class, level, values)
    seen = (table * apart).sum((-2, -1))
    expected = (per_class[..., :, None] * per_class[..., None, :] * apart).sum((-2, -1)) / (n - 1)
    return np.where(expected > 0, 1 - seen / np.where(expected > 0, expected, 1), np.nan)


def _alpha(level: str) -> Callable[[Array, Given], Array]:
    def solve(cells: Array, given: Given) -> Array:
        return alpha(_table(cells, given), level, given["values"])[..., None]

    return solve


def _responses(cells: Array, given: Given) -> Array:
    labels = given["labels"]
    return np.asarray((cells.sum((-2, -1)) / (labels * (labels - 1))).sum(-1)[..., None])


def _why(totals: Array, given: Given) -> Sequence[str]:
    return [NO_PAIRS if totals.sum() == 0 else ONE_CLASS]


def _fleiss(cells: Array, given: Given) -> Array:
    """Fleiss' kappa from pairs by number of labels and the labels that stand alone, ``(..., m, k, k)``.

    A block of ``m`` labels a response holds ordered pairs; the block of single labels holds them on
    its diagonal.
    """
    labels = given["labels"]
    single = labels == 1
    divide = np.where(single, 1, labels - 1)[:, None]
    per_class = cells.sum(-1) / divide  # labels of each class, by number of labels of the response
    responses = per_class.sum(-1) / labels
    shares = (per_class / labels[:, None]).sum(-2) / responses.sum(-1)[..., None]
    same = np.trace(cells, axis1=-2, axis2=-1) / np.where(single, 1, labels * (labels - 1))
    paired = np.where(single, 0.0, 1.0)
    observed = (same * paired).sum(-1) / (responses * paired).sum(-1)
    chance = (shares**2).sum(-1)
    certain = chance >= 1 - 1e-12
    return np.where(certain, np.nan, (observed - chance) / np.where(certain, 1, 1 - chance))[
        ..., None
    ]


def _all_responses(cells: Array, given: Given) -> Array:
    labels = given["labels"]
    pairs = np.where(labels == 1, 1, labels * (labels - 1))
    return np.asarray((cells.sum((-2, -1)) / pairs).sum(-1)[..., None])


STATISTICS = {
    level: Statistic(estimand=ALPHAS[level], solve=_alpha(level), n=_responses, reason=_why)
    for level in LEVELS
}
S_FLEISS = Statistic(estimand=FLEISS, solve=_fleiss, n=_all_responses, reason=_why)


def alpha_panel(scene: Scene) -> list[str]:
    """The panel without graders that are made from others of it."""
    panel = scene.panel
    return [g for g in panel if not set(scene.by_name[g].derived_from) & set(panel)]


def parts(scene: Scene) -> Iterable[Part]:
    if scene.grid is None:
        return
    graders = alpha_panel(scene)
    if len(graders) < 2 or not scene.k:
        return
    grid = scene.grid
    codes = grid.codes[:, [grid.graders.index(g) for g in graders]]
    k = scene.k
    yield _part(scene, _by_class(codes, k), ("nominal",), None)
    yield _fleiss_part(scene, _by_class(codes, k))
    levels, size, values = ordered_levels(scene)
    if levels:
        on_scale = np.where(codes < size, codes, -1)
        yield _part(scene, _by_class(on_scale, size), levels, values)


def _by_class(codes: Array, k: int) -> Array:
    """How many graders give each class to each response, ``(responses, k)``, from their codes."""
    rows, columns = np.nonzero(codes >= 0)
    return np.bincount(rows * k + codes[rows, columns], minlength=len(codes) * k).reshape(-1, k)


def ordered_levels(scene: Scene) -> tuple[tuple[str, ...], int, Array | None]:
    """The levels of measurement beyond nominal that the classes allow, with their numbers.

    Ordinal for an ordered scale or numbers of more than two classes; interval and ratio for numbers
    (ratio where none is negative).
    """
    numbers = [number_form(c) for c in scene.scale]
    values = None
    if all(n is not None for n in numbers):
        values = np.array([float(n) for n in numbers if n is not None])
    if len(scene.scale) < 3 or not (scene.ordered or values is not None):
        return (), 0, None
    levels: tuple[str, ...] = ("ordinal",)
    if values is not None:
        levels += ("interval",) + (("ratio",) if (values >= 0).all() else ())
    return levels, len(scene.scale), values


def _part(scene: Scene, counts: Array, levels: Sequence[str], values: Array | None) -> Part:
    labels = counts.sum(-1)
    paired = labels >= 2
    sizes = np.unique(labels[paired])
    asks = tuple((STATISTICS[level], (Key(),)) for level in levels)
    k = counts.shape[1]
    if not len(sizes):
        empty = of_rows(np.zeros((0, 1, k, k), dtype=np.int64))
        return Part(tally=empty, asks=asks, given={"labels": np.array([2]), "values": values})
    tally = _tally(scene, counts, labels, np.flatnonzero(paired), sizes)
    return Part(tally=tally, asks=asks, given={"labels": sizes, "values": values})


def _fleiss_part(scene: Scene, counts: Array) -> Part:
    labels = counts.sum(-1)
    there = labels >= 1
    sizes = np.unique(labels[there])
    k = counts.shape[1]
    if not (labels >= 2).any():
        empty = of_rows(np.zeros((0, 1, k, k), dtype=np.int64))
        return Part(tally=empty, asks=((S_FLEISS, (Key(),)),), given={"labels": np.array([2])})
    tally = _tally(scene, counts, labels, np.flatnonzero(there), sizes)
    return Part(tally=tally, asks=((S_FLEISS, (Key(),)),), given={"labels": sizes})


def _tally(scene: Scene, counts: Array, labels: Array, rows: Array, sizes: Array) -> Tally:
    """Pairs of labels by number of labels: shape ``(sizes, k, k)``."""
    k = counts.shape[1]
    block = np.searchsorted(sizes, labels[rows])
    responses, cells, amounts = [], [], []
    step = max(1, (1 << 22) // (k * k))
    for low in range(0, len(rows), step):
        chosen = rows[low : low + step]
        pairs = coincidences(counts[chosen])
        alone = labels[chosen] == 1
        pairs[alone] = np.eye(k, dtype=np.int64) * counts[chosen][alone][:, None, :]
        pairs = pairs.reshape(len(chosen), -1)
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


def _rated(ratings: Any) -> tuple[Array, list[Any]]:
    """How many graders give each class to each response ``(responses, k)``, and the classes."""
    matrix = np.asarray(ratings, dtype=object)
    if matrix.ndim != 2:
        raise ValueError("ratings must be responses × graders")
    classes = all_classes(matrix)
    k = max(len(classes), 1)
    coded = codes(matrix, classes).reshape(matrix.shape)
    return np.stack([(coded == c).sum(axis=1) for c in range(k)], axis=1), classes


def krippendorff_alpha(ratings: Any, level: str = "nominal") -> float:
    """Krippendorff's alpha of ratings ``(responses, graders)``; missing is None or nan; at most 1.

    ``level`` is ``"nominal"``, ``"ordinal"`` (classes in sorted order), ``"interval"`` or
    ``"ratio"`` (numbers). nan with an ``UndefinedWarning`` where one class is used throughout or no
    response has two labels. Source: Krippendorff 2004, ch. 11.3.
    """
    if level not in LEVELS:
        raise ValueError(f"level {level!r} is none of {', '.join(LEVELS)}")
    counts, classes = _rated(ratings)
    values = None
    if level in ("interval", "ratio"):
        values = np.array([float(c) for c in classes])
    labels = counts.sum(axis=1)
    paired = labels >= 2
    if not paired.any():
        return said(np.nan, NO_PAIRS)
    table = (coincidences(counts[paired]) / (labels[paired] - 1)[:, None, None]).sum(axis=0)
    return said(alpha(table, level, values), ONE_CLASS)


def fleiss_kappa(ratings: Any) -> float:
    """Fleiss' kappa of ratings ``(responses, graders)``; missing is None or nan; in −1 to 1.

    Responses with one label count for the class shares only. nan with an ``UndefinedWarning`` where
    one class is used throughout or no response has two labels. Source: Fleiss 1971, p. 378.
    """
    counts, _ = _rated(ratings)
    labels = counts.sum(axis=1)
    if not (labels >= 2).any():
        return said(np.nan, NO_PAIRS)
    there = labels >= 1
    shares = (counts[there] / labels[there, None]).mean(axis=0)
    many = counts[labels >= 2]
    each = labels[labels >= 2]
    seen = ((many * (many - 1)).sum(axis=1) / (each * (each - 1))).mean()
    chance = (shares**2).sum()
    return said(np.nan if chance >= 1 - 1e-12 else (seen - chance) / (1 - chance), ONE_CLASS)


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    found = [
        e
        for e in (
            estimates.get(estimand.name, slice=scene.slice)
            for estimand in (*ALPHAS.values(), FLEISS)
        )
        if e is not None
    ]
    if not found:
        return ()
    return (
        Table(
            title="The panel as a whole",
            columns=(
                Column(title="coefficient"),
                Column(title="value", kind=Kind.COEFFICIENT),
                Column(title="responses", kind=Kind.COUNT),
            ),
            rows=tuple((cell(e.estimand.title), cell(e), cell(e.n, Kind.COUNT)) for e in found),
            note=(
                "They describe this panel on this bank. None of them shows a class that some graders miss.",
            ),
        ),
    )


FAMILY = Family(
    name="panel",
    statistics=(*STATISTICS.values(), S_FLEISS),
    parts=parts,
    section="Agreement",
    order=60,
    blocks=blocks,
)
