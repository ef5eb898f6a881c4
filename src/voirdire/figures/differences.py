"""Differences: new less old for each class, rate or gate, with intervals, on one axis around zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures.base import Drawing, Rows
from voirdire.figures.svg import (
    WIDTH,
    clean,
    columns,
    fitted,
    frame,
    label,
    num,
    paint,
)
from voirdire.wording import points, printable

MOST_ROWS = 60
LEFT, RIGHT = 202.0, 650.0
PITCH, TOP = 22.0, 30.0
STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # between two marks of the axis, in shares
MOST_MARKS = 9


def _value(x: object) -> float | None:
    return float(x) if isinstance(x, int | float) and not isinstance(x, bool) else None


class _Axis:
    """A symmetric linear axis: zero in the middle, since a difference may go either way."""

    def __init__(self, rows: list[Mapping[str, Any]], start: float, end: float) -> None:
        found = [v for r in rows for k in ("value", "low", "high") if (v := _value(r.get(k)))]
        reach = max((abs(v) for v in found), default=0.0) or STEPS[0]
        self.step = next((s for s in STEPS if 2 * reach / s <= MOST_MARKS), STEPS[-1])
        marks = int(reach / self.step - 1e-9) + 1
        self.reach = marks * self.step
        self.marks = [i * self.step for i in range(-marks, marks + 1)]
        self.start, self.end = start, end

    def at(self, x: float) -> float:
        return self.start + (x + self.reach) / (2 * self.reach) * (self.end - self.start)

    def mark(self, x: float) -> str:
        digits = 1 if self.step < 0.01 else 0
        said = points(abs(x), digits).removesuffix(" points")
        return ("+" if x > 0 else "−" if x < 0 else "") + said


def _said(x: float) -> str:
    said = points(abs(x)).removesuffix(" points")
    return ("" if said == "0.0" else "+" if x > 0 else "−") + said


def _shown(data: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    rows = list(data["rows"])
    return rows[:MOST_ROWS], max(len(rows) - MOST_ROWS, 0)


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw one line a difference as one ``<svg>`` element."""
    rows, left_out = _shown(data)
    axis = _Axis(rows, LEFT, RIGHT)
    bottom = TOP + PITCH * len(rows) + 4
    middle = axis.at(0)
    room = (RIGHT - LEFT) / 2 - 14
    body = [
        label(data["old"], middle - 10, 12, size=11.5, anchor="end", width=room, before="← more"),
        label(data["new"], middle + 10, 12, size=11.5, width=room, after="more →"),
    ]
    for mark in axis.marks:
        x = num(axis.at(mark))
        strong = ".6" if mark == 0 else ".14"
        body.append(
            f'<line x1="{x}" x2="{x}" y1="{num(TOP - 8)}" y2="{num(bottom)}" stroke="currentColor" '
            f'stroke-opacity="{strong}"/>'
        )
        body.append(label(axis.mark(mark), axis.at(mark), bottom + 15, size=11, anchor="middle"))
    body.append(label("points", WIDTH, bottom + 15, size=11, anchor="end", muted=True))
    for i, row in enumerate(rows):
        body += _row(row, axis, TOP + PITCH * i + PITCH / 2)
    height = bottom + 24
    if left_out:
        body.append(label(f"{left_out:,} more are not drawn.", 0, height, size=11, muted=True))
        height += 14
    return frame(body, title=DRAWING.title, alt=alt, height=height)


def _row(row: Mapping[str, Any], axis: _Axis, y: float) -> Iterator[str]:
    value, low, high = (_value(row.get(k)) for k in ("value", "low", "high"))
    yield label(
        row["what"],
        LEFT - 12,
        y + 4,
        anchor="end",
        width=LEFT - 14,
        before="rate" if row.get("rate") else "",
    )
    if value is None:
        yield label("–", WIDTH, y + 4, anchor="end")
        return
    tip = f"{row['what']}: {_said(value)} points"
    if low is not None and high is not None:
        tip += f" [{_said(low)}, {_said(high)}]"
        yield (
            f'<line x1="{num(axis.at(low))}" x2="{num(axis.at(high))}" y1="{num(y)}" y2="{num(y)}" '
            f'{paint("stroke", "ramp-7", "#46729e")} stroke-width="1.6"/>'
        )
    fill = paint("fill", "ramp-9", "#20456e")
    at = num(axis.at(value))
    # A rate is a square, so that it is told from a class without colour.
    shape = (
        f'<rect x="{num(axis.at(value) - 4.2)}" y="{num(y - 4.2)}" width="8.4" height="8.4" {fill}/>'
        if row.get("rate")
        else f'<circle cx="{at}" cy="{num(y)}" r="4.6" {fill}/>'
    )
    yield f"<g><title>{clean(tip)}</title>{shape}</g>"
    yield label(_said(value), WIDTH, y + 4, anchor="end")


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw the differences with characters, one line each, with its value."""
    rows, left_out = _shown(data)
    names = [f"{'rate ' if r.get('rate') else ''}{r['what']}" for r in rows]
    side = min(max((columns(printable(n)) for n in names), default=0), max(width // 3, 12))
    plot = max(min(width - side - 12, 61), 13) | 1  # odd, so that zero has a place of its own
    axis = _Axis(rows, 0, plot - 1)
    dash, dot, bar = ("-", "*", "|") if ascii_only else ("─", "●", "│")
    drawn = list[str]()
    for row, name in zip(rows, names, strict=True):
        strip = [" "] * plot
        value, low, high = (_value(row.get(k)) for k in ("value", "low", "high"))
        if low is not None and high is not None:
            for i in range(round(axis.at(low)), round(axis.at(high)) + 1):
                strip[i] = dash
        if strip[plot // 2] == " ":
            strip[plot // 2] = bar
        if value is not None:
            strip[round(axis.at(value))] = dot
        said = "-" if value is None else _said(value)
        if ascii_only:
            said = said.replace("−", "-")
        drawn.append(f"{fitted(name, side, ascii_only=ascii_only)}  {''.join(strip)} {said:>7}")
    if left_out:
        drawn.append(f"{left_out:,} more are not drawn.")
    ends = (axis.mark(-axis.reach), axis.mark(axis.reach))
    if ascii_only:
        ends = (ends[0].replace("−", "-"), ends[1])
    half = plot // 2
    ruler = ends[0] + " " * (half - len(ends[0])) + "0" + " " * (plot - half - 1 - len(ends[1]))
    drawn.append(" " * (side + 2) + ruler + ends[1])
    new = printable(str(data["new"]))
    room = max(width - side - 2, 20)
    said = f"points; right of 0: {new} more"
    drawn.append(" " * (side + 2) + fitted(said, room, ascii_only=ascii_only).rstrip())
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a difference, new less old, in shares, with its interval."""
    rows = [
        (
            str(row["what"]),
            "rate" if row.get("rate") else "",
            *(_value(row.get(k)) for k in ("value", "low", "high")),
        )
        for row in data["rows"]
    ]
    return ("what", "kind", "value", "low", "high"), tuple(rows)


DRAWING = Drawing(
    name="differences",
    title="Differences between two graders",
    needs="a comparison: voirdire compare OLD NEW",
    takes={
        "old": "the name of the old one",
        "new": "the name of the new one",
        "rows": "one a difference: what, rate (whether it is one), value, low, high",
    },
    svg=svg,
    table=table,
    lines=lines,
)
