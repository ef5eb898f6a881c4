"""Kept and moved: what each grader makes of every class of the reference or gold (MCC Table 2).

One column a class, one row a grader: the tall part of a bar is kept, the low parts are what the
grader gives another class, in the colour of that class. A class collapse is a column of low bars.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._axes import finite, folded, name_of, plain
from voirdire.figures._classes import DEFS, fill_of, flag, legend, places_of
from voirdire.figures.base import Drawing, Rows
from voirdire.figures.svg import (
    RAMP,
    WIDTH,
    clean,
    columns,
    fitted,
    frame,
    label,
    num,
    paint,
    text_width,
)
from voirdire.wording import counted, percent, printable

MOST_ROWS, MOST_CLASSES = 60, 6
LEFT, GAP, SHARE = (
    202.0,
    16.0,
    42.0,
)  # where bars begin; between columns; for the share at their right
ROLES = {"person": "person", "reference": "reference"}


class _Kept:
    """The data of one figure, checked: classes with their places, columns, rows by grader."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.source = str(data.get("from", ""))
        self.classes = places_of(data["classes"], data.get("off_scale", ()))
        flows = list(data["flows"])
        self.flows, self.more = flows[:MOST_CLASSES], max(len(flows) - MOST_CLASSES, 0)
        graders = list(data["graders"])
        self.left_out = max(len(graders) - MOST_ROWS, 0)
        if self.left_out:
            need = sorted(range(len(graders)), key=lambda i: (not graders[i].get("flagged"), i))
            graders = [graders[i] for i in sorted(need[:MOST_ROWS])]
        self.graders = graders
        self.cells = {(str(f["class"]), str(r["grader"])): r for f in flows for r in f["rows"]}

    def amounts(self, class_: str, grader: str) -> list[tuple[str, int, float]]:
        """The labels of a cell, as classes in order with their places; nothing that is not there."""
        row = self.cells.get((class_, grader))
        if row is None:
            return []
        moved = {str(c): finite(n) or 0.0 for c, n in dict(row["moved"]).items()}
        moved[class_] = finite(row["stays"]) or 0.0
        return [(c, place, moved[c]) for c, place in self.classes if moved.get(c, 0.0) > 0]

    def share(self, class_: str, grader: str) -> float | None:
        """The share of the labels that the grader keeps."""
        parts = self.amounts(class_, grader)
        total = sum(n for _, _, n in parts)
        return sum(n for c, _, n in parts if c == class_) / total if total else None


def _note(grader: Mapping[str, Any]) -> str:
    role = ROLES.get(str(grader.get("note", "")), "")
    return "" if role == grader["grader"] else role


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw the columns as one ``<svg>`` element."""
    kept = _Kept(data)
    pitch = 25.0 if len(kept.graders) <= 14 else 21.0 if len(kept.graders) <= 32 else 17.0
    size = 12.5 if pitch > 22 else 11.5 if pitch > 18 else 10.5
    entries = [(fill_of(p), name, "off the scale" if p < 0 else "") for name, p in kept.classes]
    body, y = legend(entries, flagged=any(g.get("flagged") for g in kept.graders))
    y += 24
    many = max(len(kept.flows), 1)
    wide = (WIDTH - LEFT + GAP) / many - GAP
    body.append(
        label(kept.source, LEFT - 12, y, size=size, anchor="end", width=LEFT - 14, after="gives")
    )
    for i, flow in enumerate(kept.flows):
        x = LEFT + i * (wide + GAP)
        total = finite(flow.get("total"))
        after = "" if total is None else counted(total)
        body.append(label(flow["class"], x, y, size=12, weight=600, width=wide - 4, after=after))
    y += 9
    for grader in kept.graders:
        yes = bool(grader.get("flagged"))
        base = y + pitch / 2 + size * 0.35
        body.append(label(grader["grader"], LEFT - 24, base, size=size, anchor="end", width=LEFT - 26,
                          weight=600 if yes else 400, after=_note(grader)))  # fmt: skip
        if yes:
            body.append(flag(LEFT - 12, y + pitch / 2))
        for i, flow in enumerate(kept.flows):
            cell = (str(flow["class"]), str(grader["grader"]))
            body += _cell(kept, cell, LEFT + i * (wide + GAP), y, wide, pitch, size)
        y += pitch
    y += 15
    said = "tall: kept; low: given another class, in its colour; beside it: the share kept"
    body.append(label(said, WIDTH, y, size=11, anchor="end", muted=True))
    rests = []
    if kept.left_out:
        rests.append(f"{kept.left_out:,} more graders are not drawn.")
    if kept.more:
        rests.append(f"{kept.more:,} more classes are not drawn.")
    if rests:
        y += 16
        body.append(label(" ".join(rests), 0, y, size=12, muted=True))
    return frame(body, title=DRAWING.title, alt=alt, height=y + 7, defs=DEFS)


def _cell(
    kept: _Kept,
    cell: tuple[str, str],
    x: float,
    y: float,
    wide: float,
    pitch: float,
    size: float,
) -> Iterator[str]:
    class_, grader = cell
    parts = kept.amounts(class_, grader)
    total, bar = sum(n for _, _, n in parts), max(wide - SHARE, 8.0)
    base = y + pitch / 2 + size * 0.35
    if not total:
        yield label("–", x + wide, base, size=size - 1, anchor="end", muted=True)
        return
    at = x
    for name, place, amount in parts:
        width, stays = amount / total * bar, name == class_
        tall = pitch * (0.76 if stays else 0.34)
        what = "kept" if stays else f"given {name}"
        tip = f"{grader}, {class_}: {what} {counted(amount)} of {counted(total)} ({percent(amount / total)})"
        yield (
            f'<rect x="{num(at)}" y="{num(y + (pitch - tall) / 2)}" width="{num(max(width, 0.8))}" '
            f'height="{num(tall)}" {fill_of(place)} stroke="currentColor" stroke-opacity=".4" '
            f'stroke-width=".5"><title>{clean(tip)}</title></rect>'
        )
        said = counted(amount)
        if stays and place >= 0 and width > text_width(said, size - 2) + 6:
            yield (
                f'<text x="{num(at + width / 2)}" y="{num(base)}" font-size="{num(size - 2)}" '
                f'text-anchor="middle" {paint("fill", f"on-{place}", RAMP[place][1])}>{said}</text>'
            )
        at += width
    share = kept.share(class_, grader)
    yield label(percent(share, 0), x + wide, base, size=size - 1, anchor="end")


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Write one line a grader: for each class the share kept, and the labels behind it."""
    kept = _Kept(data)
    names = [f"{g['grader']} ({_note(g)})" if _note(g) else str(g["grader"]) for g in kept.graders]
    side = min(max((columns(printable(n)) for n in names), default=0), max(width // 3, 12))
    tail = " < flagged" if ascii_only else " ◂ flagged"
    flags = len(tail) if any(g.get("flagged") for g in kept.graders) else 0
    cells = {
        (i, j): _said(kept, str(f["class"]), str(g["grader"]))
        for i, g in enumerate(kept.graders)
        for j, f in enumerate(kept.flows)
    }
    room = max([len(c) for c in cells.values()] + [9])
    per = max((width - side - flags) // (room + 2), 1)
    source = name_of(kept.source, max(width - 14, 6), ascii_only)
    drawn = folded(f"share kept, kept of read labels; across: the class that {source} gives", width)
    for start in range(0, max(len(kept.flows), 1), per):
        places = range(start, min(start + per, len(kept.flows)))
        heads = (fitted(str(kept.flows[j]["class"]), room, ascii_only=ascii_only) for j in places)
        drawn.append(f"{' ' * side}{''.join('  ' + h for h in heads)}".rstrip())
        for i, (grader, name) in enumerate(zip(kept.graders, names, strict=True)):
            row = "".join(f"  {cells[i, j]:<{room}}" for j in places)
            mark = tail if grader.get("flagged") else ""
            left = fitted(name, side, ascii_only=ascii_only)
            drawn.append(plain(f"{left}{row}{mark}", ascii_only).rstrip())
    if kept.left_out:
        drawn.append(f"{kept.left_out:,} more graders are not drawn.")
    if kept.more:
        drawn.append(f"{kept.more:,} more classes are not drawn.")
    return tuple(line[:width] for line in drawn)


def _said(kept: _Kept, class_: str, grader: str) -> str:
    share = kept.share(class_, grader)
    if share is None:
        return "–"
    parts = kept.amounts(class_, grader)
    stays, total = sum(n for c, _, n in parts if c == class_), sum(n for _, _, n in parts)
    return f"{percent(share, 0)} {counted(stays)}/{counted(total)}"


def table(data: Mapping[str, Any]) -> Rows:
    """One row a class, grader and class given: how many labels, of how many."""
    rows = []
    for flow in data["flows"]:
        for row in flow["rows"]:
            moved = {str(c): finite(n) for c, n in dict(row["moved"]).items()}
            given = {str(flow["class"]): finite(row["stays"]), **moved}
            of = sum(n or 0.0 for n in given.values())
            for name, n in given.items():
                share = n / of if n is not None and of else None
                rows.append((str(data.get("from", "")), flow["class"], finite(flow.get("total")),
                             row["grader"], name, n, of, share))  # fmt: skip
    names = ("from", "class", "class_total", "grader", "given", "labels", "of", "share")
    return names, tuple(rows)


DRAWING = Drawing(
    name="kept_moved",
    title="What each grader keeps of every class, and what it moves",
    needs="labels of responses of up to 12 classes, and --gold or --reference",
    takes={
        "from": "the grader whose classes are followed",
        "classes": "names of the ordered classes, lowest first",
        "off_scale": "names of classes outside the order",
        "graders": "one each, in order: grader, note, flagged",
        "flows": "one a class: class, total (labels that are followed, or None) and rows, one a grader: "
        "grader, stays, moved (count by class)",
    },
    svg=svg,
    table=table,
    lines=lines,
)
