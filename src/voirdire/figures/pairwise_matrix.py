"""A matrix of every two graders: how far they agree, and on how many responses.

The number and n stand in every cell; the shade only repeats them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._classes import flag
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
from voirdire.wording import counted, printable

MOST = 30
LEFT = 190.0
NOTES = {"reference": "reference", "gold": "gold", "person": "person"}


class _Matrix:
    """The data of one figure, checked: graders in order and one cell for each pair of places."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        graders = list(data["graders"])
        self.left_out = max(len(graders) - MOST, 0)
        self.graders = graders[:MOST]
        self.names = [str(g["grader"]) for g in self.graders]
        self.coefficient = str(data.get("coefficient", ""))
        place = {n: i for i, n in enumerate(self.names)}
        self.cells: dict[tuple[int, int], tuple[float | None, float | None, str]] = {}
        for cell in data["cells"]:
            i, j = place.get(str(cell["row"])), place.get(str(cell["column"]))
            if i is not None and j is not None and i != j:
                n, reason = _number(cell.get("n")), str(cell.get("reason") or "")
                self.cells[max(i, j), min(i, j)] = _number(cell["value"]), n, reason

    @property
    def same_n(self) -> float | None:
        """The number of responses where all cells have the same."""
        counts = {n for _, n, _ in self.cells.values()}
        return counts.pop() if len(counts) == 1 else None


def _number(x: object) -> float | None:
    return float(x) if isinstance(x, int | float) and math.isfinite(x) else None


def _said(value: float | None, *, short: bool = False) -> str:
    """A coefficient with two decimal places; ``short`` without the zero before the point."""
    if value is None:
        return "–"
    text = f"{value:.2f}"
    if float(text) == 0:
        text = "0.00"
    return text.replace("0.", ".", 1) if short and abs(float(text)) < 1 else text


def short_count(n: float | None) -> str:
    """A count in at most four characters: ``900``, ``12k``, ``1.2M``."""
    if n is None:
        return "–"
    for size, mark in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= 10 * size or (size > 1e3 and n >= size):
            scaled = n / size
            return f"{scaled:.0f}{mark}" if scaled >= 10 else f"{scaled:.1f}{mark}"
    return f"{n:.0f}"


def _shade(value: float) -> int:
    """The place on the ramp of a coefficient: below zero as zero; each tenth its own shade."""
    return min(max(math.floor(value * 10 + 1e-9), 0), len(RAMP) - 1)


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw the lower triangle as one ``<svg>`` element."""
    matrix = _Matrix(data)
    k = len(matrix.names)
    side = min((WIDTH - LEFT) / max(k - 1, 1), 62.0)
    high = min(max(side * 0.8, 23.0), 36.0)
    size = min(max(side * 0.30, 7.6), 12.5)
    name_size = 12.5 if high > 28 else 11.0
    body, y = _legend(matrix)
    for i in range(k):
        middle = y + high / 2
        grader = matrix.graders[i]
        yes = bool(grader.get("flagged"))
        body.append(
            label(
                matrix.names[i],
                LEFT - 30,
                middle + name_size * 0.35,
                size=name_size,
                anchor="end",
                width=LEFT - 34,
                weight=600 if yes else 400,
                after=_note(grader),
            )
        )
        body.append(
            label(i + 1, LEFT - 8, middle + name_size * 0.35, size=name_size - 1, anchor="end", muted=True)
        )  # fmt: skip
        if yes:
            body.append(flag(LEFT + i * side + 12, middle))
        for j in range(i):
            body.extend(_cell(matrix, i, j, LEFT + j * side, y, side, high, size))
        y += high
    for j in range(k - 1):
        body.append(
            label(j + 1, LEFT + (j + 0.5) * side, y + 14, size=name_size - 1, anchor="middle", muted=True)
        )  # fmt: skip
    y += 20
    if matrix.left_out:
        y += 12
        said = f"{matrix.left_out:,} more graders are not drawn."
        body.append(label(said, 0, y, size=12, muted=True))
    return frame(body, title=DRAWING.title, alt=alt, height=y + 4, defs=DEFS)


DEFS = (
    '<defs><pattern id="%ID%open" width="8" height="8" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(-45)"><rect width="1" height="8" fill="currentColor" '
    'fill-opacity=".25"/></pattern></defs>'
)


def _legend(matrix: _Matrix) -> tuple[list[str], float]:
    """How to read the cells, the ramp with its ends, and the mark of a flagged grader."""
    parts, x, y = list[str](), 0.0, 14.0
    said = f"{matrix.coefficient} over n" if matrix.coefficient else "over n"
    parts.append(label(said, x, y, size=12, width=200))
    x += min(text_width(said, 12), 200) + 18
    parts.append(label("≤ 0", x, y, size=11, muted=True))
    x += 24
    for i in range(len(RAMP)):
        parts.append(
            f'<rect x="{num(x)}" y="{num(y - 10)}" width="14" height="12" '
            f"{paint('fill', f'ramp-{i}', RAMP[i][0])}/>"
        )
        x += 14
    parts.append(label("1", x + 5, y, size=11, muted=True))
    x += 28
    if any(v is None for v, _, _ in matrix.cells.values()):
        parts.append(
            f'<rect x="{num(x)}" y="{num(y - 10)}" width="12" height="12" fill="url(#%ID%open)" '
            'stroke="currentColor" stroke-opacity=".4" stroke-width=".75"/>'
        )
        parts.append(label("not defined", x + 18, y, size=12))
        x += 18 + text_width("not defined", 12) + 16
    if any(g.get("flagged") for g in matrix.graders):
        parts += [flag(x + 4, y - 4), label("flagged", x + 18, y, size=12)]
    return parts, y + 12


def _note(grader: Mapping[str, Any]) -> str:
    note = NOTES.get(str(grader.get("note", "")), "")
    return "" if note == grader["grader"] else note


def _cell(
    matrix: _Matrix, i: int, j: int, x: float, y: float, side: float, high: float, size: float
) -> Iterator[str]:
    value, n, reason = matrix.cells.get((i, j), (None, None, "not compared"))
    said = _said(value)
    tip = f"{matrix.names[i]} and {matrix.names[j]}: {said}"
    if n is not None:
        tip += f" on {counted(n)} responses"
    if value is None and reason:
        tip += f" ({reason})"
    box = f'x="{num(x + 0.5)}" y="{num(y + 0.5)}" width="{num(side - 1)}" height="{num(high - 1)}"'
    ink, fill = 'fill="currentColor"', 'fill="url(#%ID%open)"'
    if value is not None:
        place = _shade(value)
        fill = paint("fill", f"ramp-{place}", RAMP[place][0])
        ink = paint("fill", f"on-{place}", RAMP[place][1])
    yield f"<rect {box} {fill}><title>{clean(tip)}</title></rect>"
    if text_width(said, size) > side - 3:
        said = _said(value, short=True)
    middle = x + side / 2
    yield (
        f'<text x="{num(middle)}" y="{num(y + high / 2)}" font-size="{num(size)}" '
        f'text-anchor="middle" {ink}>{said}</text>'
    )
    small = max(size * 0.8, 6.4)
    under = counted(n) if n is not None else "–"
    if text_width(under, small) > side - 2:
        under = short_count(n)
    yield (
        f'<text x="{num(middle)}" y="{num(y + high / 2 + small + 1.5)}" font-size="{num(small)}" '
        f'text-anchor="middle" {ink}>{under}</text>'
    )


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Write the lower triangle as numbers; n stands under them where it differs."""
    matrix = _Matrix(data)
    k = len(matrix.names)
    names = [f"{n} ({_note(g)})" if _note(g) else n for n, g in zip(matrix.names, matrix.graders, strict=True)]  # fmt: skip
    side = min(max((columns(printable(n)) for n in names), default=0), max(width // 3, 12))
    flag = " < flagged" if ascii_only else " ◂ flagged"
    number = len(str(k))
    per = max((width - side - number - 2 - len(flag)) // 6, 1)
    same = matrix.same_n
    drawn = [
        f"{printable(matrix.coefficient)}"
        + (f", each on {counted(same)} responses" if same is not None else ", n under each")
    ]
    for start in range(0, max(k - 1, 1), per):
        places = range(start, min(start + per, k - 1))
        drawn.append(" " * (side + number + 2) + "".join(f"{j + 1:>6}" for j in places))
        for i in range(start if start == 0 else start + 1, k):
            row = [matrix.cells.get((i, j)) if j < i else None for j in places]
            left = f"{i + 1:>{number}} {fitted(names[i], side, ascii_only=ascii_only)} "
            here = "".join(" " * 6 if j >= i else f"{_said(c[0] if c else None):>6}" for j, c in zip(places, row, strict=True)).rstrip()  # fmt: skip
            tail = flag if matrix.graders[i].get("flagged") else ""
            drawn.append(_plain(left + here + tail, ascii_only).rstrip())
            if same is None and any(row):
                under = "".join(f"{short_count(c[1]) if c else '':>6}" for c in row)
                drawn.append(_plain(" " * (side + number + 2) + under, ascii_only).rstrip())
    if matrix.left_out:
        drawn.append(f"{matrix.left_out:,} more graders are not drawn.")
    return tuple(drawn)


def _plain(text: str, ascii_only: bool) -> str:
    return text.replace("–", "-") if ascii_only else text


def table(data: Mapping[str, Any]) -> Rows:
    """One row a pair: the value, the responses it rests on, and why there is none."""
    name = str(data.get("coefficient") or "value")
    rows = [
        (
            c["row"],
            c["column"],
            name,
            _number(c["value"]),
            _number(c.get("n")),
            c.get("reason") or "",
        )
        for c in data["cells"]
    ]
    return ("grader", "other", "coefficient", "value", "n", "reason"), tuple(rows)


DRAWING = Drawing(
    name="pairwise_matrix",
    title="Agreement of every two graders",
    needs="labels of responses by 3 to 30 graders, gold apart",
    takes={
        "graders": "one each: grader, note, flagged",
        "cells": "one a pair: row, column (graders), value, n, reason",
        "coefficient": "what the values are",
    },
    svg=svg,
    table=table,
    lines=lines,
)
