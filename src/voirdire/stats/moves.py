"""Where labels go: what a grader keeps of another's class, where the rest moves, and what it adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from voirdire import corroboration
from voirdire.document import Block, Column, Figure, Kind, Table, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.grid import NO_MAJORITY
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.wording import Name, Text, counted, linked, plural, say

MOST_CLASSES, MOST_FIGURES = 12, 3  # beyond these a figure shows nothing any more
NOBODY_WON = "no majority or not read"  # what is open where votes elected no label
MCC2 = Source(text='"The Missing Compliance Class", Table 2 and Figure 1')

KEPT = Estimand(
    name="kept",
    title="Kept",
    question="Of the responses that the other gives a class, how many does the grader give it too?",
    describes=Describes.BOTH,
    keys=("grader", "other", "class"),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    low=0,
    undefined_when="the graders share no response",
    source=MCC2,
    formula=r"n_{cc} = \#\{i \mid x_{hi} = c,\ x_{gi} = c\}",
    conventions=(
        "x_gi, x_hi: the labels of the grader and of the other on response i, where both could be "
        "read. Here n is how often the other gives the class there."
    ),
)
MOVED = Estimand(
    name="moved",
    title="Moved",
    question="Of the responses that the other gives a class, how many does the grader give another?",
    describes=Describes.BOTH,
    keys=("grader", "other", "class", "to_class"),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    low=0,
    undefined_when="the graders share no response",
    source=MCC2,
    formula=r"n_{cd} = \#\{i \mid x_{hi} = c,\ x_{gi} = d\}, \quad d \ne c",
    conventions=(
        "x_gi, x_hi: the labels of the grader and of the other on response i, where both could be "
        "read. Here n is how often the other gives the class there."
    ),
)
FOUND = Estimand(
    name="found",
    title="Found",
    question="How many labels of a class does the grader give where the other gave another class?",
    describes=Describes.BOTH,
    keys=("grader", "other", "class"),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    low=0,
    undefined_when="the graders share no response",
    source=MCC2,
    formula=r"\#\{i \mid x_{gi} = c,\ x_{hi} \ne c\}",
    conventions=(
        "x_gi, x_hi: the labels of the grader and of the other on response i, where both could be "
        "read. Here n is how often the grader gives the class there."
    ),
)
NEIGHBOUR_SHARE = Estimand(
    name="neighbour_share",
    title="Moved to a neighbouring class",
    question="Of the labels that moved away from a class, which share went one step on the scale?",
    describes=Describes.BOTH,
    keys=("grader", "other", "class"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "scale"),
    low=0,
    high=1,
    reading="Near 1: the class collapses onto its neighbour. Lower: its labels scatter.",
    undefined_when="no label of the class moved",
    source=Source(text='"The Missing Compliance Class", caption of Figure 1'),
    formula=r"\frac{n_{c,c-1} + n_{c,c+1}}{\sum_{d \ne c} n_{cd}}",
    conventions=(
        "n_cd: the responses that the other calls c and the grader d, as sums of weights where "
        "there are any; c − 1 and c + 1 are the classes one step away on the scale. Moves to "
        "classes off the scale are in the denominator."
    ),
)


def _kept(cells: Array, given: Given) -> Array:
    return np.asarray(np.diagonal(cells, axis1=-2, axis2=-1))


def _of_class(cells: Array, given: Given) -> Array:
    return np.asarray(cells.sum(-2))


def _moved(cells: Array, given: Given) -> Array:
    to, origin = given["moves"]
    return np.asarray(cells[..., to, origin])


def _moved_of(cells: Array, given: Given) -> Array:
    return np.asarray(cells.sum(-2)[..., given["moves"][1]])


def _found(cells: Array, given: Given) -> Array:
    return np.asarray(cells.sum(-1) - _kept(cells, given))


def _labels_of(cells: Array, given: Given) -> Array:
    return np.asarray(cells.sum(-1))


def _neighbour_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    steps = given[
        "steps"
    ]  # (k, scale): 1 where the class in the row is a step from that in the column
    size = steps.shape[1]
    away = cells.sum(-2) - _kept(cells, given)
    one_step = (cells[..., :, :size] * steps).sum(-2)
    return np.asarray(one_step), np.asarray(away[..., :size])


def _neighbour(cells: Array, given: Given) -> Array:
    one_step, away = _neighbour_parts(cells, given)
    return np.asarray(one_step / away)


def _away(cells: Array, given: Given) -> Array:
    return _neighbour_parts(cells, given)[1]


S_KEPT = Statistic(estimand=KEPT, solve=_kept, n=_of_class, unweighted=True)
S_MOVED = Statistic(estimand=MOVED, solve=_moved, n=_moved_of, unweighted=True)
S_FOUND = Statistic(estimand=FOUND, solve=_found, n=_labels_of, unweighted=True)
S_NEIGHBOUR = Statistic(estimand=NEIGHBOUR_SHARE, solve=_neighbour, n=_away, share=_neighbour_parts)


def parts(scene: Scene) -> Iterable[Part]:
    if scene.grid is None:
        return
    k, size = scene.k, len(scene.scale)
    moves = [(to, origin) for origin in range(k) for to in range(k) if to != origin]
    to, origin = (np.array([m[i] for m in moves], dtype=np.int64) for i in (0, 1))
    places = np.arange(k)
    on_scale = places[:, None] < size
    steps = ((np.abs(places[:, None] - places[None, :size]) == 1) & on_scale).astype(np.float64)
    for standard in scene.standards:
        for grader in scene.names:
            if grader in (standard, scene.gold):
                continue
            tally = scene.pair_tally(grader, standard)
            if not tally.count:
                continue

            def keys(classes: Sequence[str], g: str = grader, s: str = standard) -> tuple[Key, ...]:
                return tuple(Key(grader=g, other=s, class_=c) for c in classes)

            asks: list[tuple[Statistic, tuple[Key, ...]]] = [
                (S_KEPT, keys(scene.classes)),
                (S_FOUND, keys(scene.classes)),
            ]
            if moves:
                moved = tuple(
                    Key(
                        grader=grader,
                        other=standard,
                        class_=scene.classes[o],
                        to_class=scene.classes[t],
                    )
                    for t, o in moves
                )
                asks.insert(1, (S_MOVED, moved))
            if scene.ordered and size > 2:
                asks.append((S_NEIGHBOUR, keys(scene.scale)))
            yield Part(tally=tally, asks=tuple(asks), given={"moves": (to, origin), "steps": steps})


def shown_classes(scene: Scene, estimates: Estimates) -> list[str]:
    """The classes whose labels are followed in a figure: the top one, and those that are collapsed."""
    rule = corroboration.Rule(scene, estimates)
    collapsed = [
        class_
        for class_ in reversed(corroboration.testable_classes(scene))
        for grader in scene.flagged
        if (reading := rule.read(grader, class_)) is not None and reading.verdict == "found"
    ]
    top = [scene.scale[-1]] if scene.ordered else []
    return list(dict.fromkeys(top + collapsed))[:MOST_FIGURES]


def flow_figures(scene: Scene, estimates: Estimates) -> list[Block]:
    """Where the labels of gold, else of the reference, go under each other grader (MCC Figure 1)."""
    made: list[Block] = []
    if not scene.standards or len(scene.classes) > MOST_CLASSES:
        return made
    standard = scene.standards[0]
    whose = "gold’s" if standard == scene.gold else "the reference’s"
    for class_ in shown_classes(scene, estimates):
        others = [c for c in scene.classes if c != class_]
        rows: list[dict[str, Any]] = []
        for grader in scene.names:
            key = {"grader": grader, "other": standard, "class_": class_, "slice": scene.slice}
            kept, found = estimates.get("kept", **key), estimates.get("found", **key)
            if kept is None or not kept.n:
                continue
            moved = {c: estimates.get("moved", **key, to_class=c) for c in others}
            rows.append(
                {
                    "grader": grader,
                    "stays": kept.number,
                    "moved": {c: e.number for c, e in moved.items() if e is not None},
                    "found": found.number if found is not None else None,
                    "note": "person" if scene.by_name[grader].person else "",
                    "flagged": grader in scene.flagged,
                }
            )
        if not rows:
            continue
        given = estimates.get("label_count", grader=standard, class_=class_, slice=scene.slice)
        total = given.number if given is not None else None
        rows.sort(key=lambda r: r["stays"] / max(r["stays"] + sum(r["moved"].values()), 1e-9))
        made.append(
            Figure(
                name="flow_bands",
                title=f"Where {whose} labels of “{class_}” go under each grader",
                data={
                    "class": class_,
                    "classes": list(scene.scale),
                    "off_scale": [c for c in scene.classes if c not in scene.scale],
                    "from": standard,
                    "total": total,
                    **_open_rest(scene, standard, class_, [r["grader"] for r in rows]),
                    "rows": rows,
                },
                alt=_flows_in_words(class_, rows),
                caption=say(
                    "Of the labels of {class_} that {other} gives: those that stay, and those that "
                    "move to each other class. At the right: labels of {class_} where {other} gave "
                    "another class. A class collapse is one wide band; scatter is several.",
                    class_=Name(class_),
                    other=Name(standard),
                ),
            )
        )
    return made


def _open_rest(scene: Scene, standard: str, class_: str, graders: Sequence[str]) -> dict[str, str]:
    """What the figure calls the labels that a grader did not follow, where its votes elected none."""
    if scene.grid is None:
        return {}
    given = scene.grid.column(standard) == scene.classes.index(class_)
    columns = [scene.places[g] for g in graders]
    tied = scene.grid.outcomes[given][:, columns] == NO_MAJORITY
    return {"open": NOBODY_WON} if tied.any() else {}


def _flows_in_words(class_: str, rows: Sequence[dict[str, Any]]) -> Text:
    def row(r: dict[str, Any]) -> Text:
        moved = linked(
            ((f"{counted(n)} go to ", Name(c)) for c, n in r["moved"].items() if n), ", "
        )
        found = f", {counted(r['found'])} found" if r["found"] is not None else ""
        return (
            Name(r["grader"]), f" keeps {counted(r['stays'])}", *((", ", *moved) if moved else ()), found
        )  # fmt: skip

    more = f"; {plural(len(rows) - 12, 'more grader')}" if len(rows) > 12 else ""
    said = linked(row(r) for r in rows[:12])
    return (
        *say("One band a grader for the labels of {class_}: ", class_=Name(class_)),
        *said,
        f"{more}.",
    )


def kept_figure(scene: Scene, estimates: Estimates) -> list[Block]:
    """What each grader keeps of every class of gold, else of the reference (MCC Table 2)."""
    if not scene.standards or not 2 <= len(scene.classes) <= MOST_CLASSES:
        return []
    standard = scene.standards[0]
    whose = "gold’s" if standard == scene.gold else "the reference’s"
    graders = [g for g in scene.names if g not in (standard, scene.gold)]
    flows: list[dict[str, Any]] = []
    for class_ in scene.classes:
        others = [c for c in scene.classes if c != class_]
        rows: list[dict[str, Any]] = []
        for grader in graders:
            key = {"grader": grader, "other": standard, "class_": class_, "slice": scene.slice}
            kept = estimates.get("kept", **key)
            if kept is None or not kept.n:
                continue
            moved = {c: estimates.get("moved", **key, to_class=c) for c in others}
            held = {c: e.number for c, e in moved.items() if e is not None}
            rows.append({"grader": grader, "stays": kept.number, "moved": held})
        if rows:
            given = estimates.get("label_count", grader=standard, class_=class_, slice=scene.slice)
            total = given.number if given is not None else None
            flows.append({"class": class_, "total": total, "rows": rows})
    drawn = {r["grader"] for f in flows for r in f["rows"]}
    if not flows:
        return []

    def share(flow: dict[str, Any], grader: str) -> float:
        row = next((r for r in flow["rows"] if r["grader"] == grader), None)
        if row is None:
            return 2.0
        return float(row["stays"] / max(row["stays"] + sum(row["moved"].values()), 1e-9))

    graders = sorted((g for g in graders if g in drawn), key=lambda g: share(flows[-1], g))

    def said(flow: dict[str, Any]) -> Text:
        rows = [r for g in graders[:8] for r in flow["rows"] if r["grader"] == g]
        each = (
            (Name(r["grader"]), f" {counted(r['stays'])} of "
             f"{counted(r['stays'] + sum(r['moved'].values()))}") for r in rows
        )  # fmt: skip
        return ("of ", Name(flow["class"]), " ", *linked(each, ", "))

    return [
        Figure(
            name="kept_moved",
            title=f"What each grader keeps of {whose} classes",
            data={
                "from": standard,
                "classes": list(scene.scale),
                "off_scale": [c for c in scene.classes if c not in scene.scale],
                "graders": [
                    {
                        "grader": g,
                        "note": "person" if scene.by_name[g].person else "",
                        "flagged": g in scene.flagged,
                    }
                    for g in graders
                ],
                "flows": flows,
            },
            alt=(
                "Bars by class and grader, kept labels and moved ones. Kept: ",
                *linked(said(f) for f in flows),
                ".",
            ),
            caption=say(
                "Of the labels of each class that {other} gives and a grader could be read on: those "
                "it keeps (tall) and those it gives another class (low, in the colour of that class).",
                other=Name(standard),
            ),
        )
    ]


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    tables: list[Block] = [*flow_figures(scene, estimates), *kept_figure(scene, estimates)]
    for standard in scene.standards:
        for class_ in reversed(scene.classes):
            others = [c for c in scene.classes if c != class_]
            # Between two classes every move is to a neighbour, which says nothing.
            between = len(scene.scale) == 3 and class_ == scene.scale[1]
            scaled = (
                scene.ordered and len(scene.scale) > 2 and class_ in scene.scale and not between
            )
            rows = []
            for grader in scene.names:
                key = {"grader": grader, "other": standard, "class_": class_, "slice": scene.slice}
                kept = estimates.get("kept", **key)
                if kept is None or not kept.n:
                    continue
                share = estimates.get("neighbour_share", **key) if scaled else None
                rows.append(
                    (
                        cell(Name(grader)),
                        cell(kept.n, Kind.COUNT),
                        cell(kept),
                        *(
                            cell(m)
                            if (m := estimates.get("moved", **key, to_class=to))
                            else cell("")
                            for to in others
                        ),
                        *((cell(share),) if scaled else ()),
                        cell(estimates.get("found", **key)),
                    )
                )
            if not rows or len(others) > 6:
                continue
            whose = "gold’s" if standard == scene.gold else "the reference’s"
            tables.append(
                Table(
                    title=f"Where {whose} labels of “{class_}” go",
                    columns=(
                        Column(title="grader", kind=Kind.NAME),
                        Column(title="of", kind=Kind.COUNT, help="responses that both labelled"),
                        Column(title="stays", kind=Kind.COUNT),
                        *(Column(title=Name(f"→ {o}"), kind=Kind.COUNT) for o in others),
                        *((Column(title="to a neighbour", kind=Kind.SHARE),) if scaled else ()),
                        Column(
                            title="found", kind=Kind.COUNT, help="given where the other did not"
                        ),
                    ),
                    rows=tuple(rows),
                    note=say(
                        "Found: labels of {class_} that the grader gives where {other} gave another class.",
                        class_=Name(class_),
                        other=Name(standard),
                    ),
                )
            )
    return tables


FAMILY = Family(
    name="moves",
    statistics=(S_KEPT, S_MOVED, S_FOUND, S_NEIGHBOUR),
    parts=parts,
    section="Where labels move",
    order=40,
    blocks=blocks,
)
