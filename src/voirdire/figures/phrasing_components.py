"""The components of a phrasing study, each a dot with its interval, on one scale from zero.

Three phrasings leave the phrasing component two degrees of freedom, so its interval can end forty
times further out than its estimate: it is cut at the edge of the drawing with an arrow, and its ends
stand beside it as numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._axes import (
    finite,
    folded,
    name_of,
    plain,
    rule,
    signed,
    ticks,
)
from voirdire.figures.base import Drawing, Rows
from voirdire.figures.svg import RAMP, WIDTH, clean, frame, label, num, paint
from voirdire.wording import number

MOST = 12  # graders
LEFT, RIGHT = 176.0, WIDTH - 226.0
PITCH, GAP = 24.0, 30.0
ARROW = "an arrow marks an interval that ends beyond the drawing"
REACH = 3.0  # how far beyond the largest estimate the scale goes at most, as a multiple of it


def _shown(data: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    found = list(data["graders"])
    return found[:MOST], max(len(found) - MOST, 0)


def _top(graders: list[Mapping[str, Any]]) -> float:
    """The end of the scale: all estimates, and intervals as far as they are not out of proportion."""
    each = [c for g in graders for c in g["components"]]
    largest = max((finite(c["value"]) or 0.0 for c in each), default=0.0)
    ends = [high for c in each if (high := finite(c["high"])) is not None]
    if not largest:
        return max(ends, default=1.0) or 1.0
    return max(largest, min(max(ends, default=largest), REACH * largest))


def _ends_beyond(graders: list[Mapping[str, Any]], top: float) -> bool:
    """Whether an interval ends beyond the scale, where an arrow is drawn."""
    return any((finite(c["high"]) or 0.0) > top for g in graders for c in g["components"])


def _mark(x: float, y: float, one: Mapping[str, Any], tip: str) -> str:
    ink = RAMP[9][0]
    title = f"<title>{clean(tip)}</title>"
    if one.get("phrasing"):
        return f'<circle cx="{num(x)}" cy="{num(y)}" r="5.2" {paint("fill", "ramp-9", ink)}>{title}</circle>'
    return (
        f'<circle cx="{num(x)}" cy="{num(y)}" r="4.6" stroke-width="1.8" fill="#ffffff" '
        f'stroke="{ink}" style="fill:var(--vd-paper,#ffffff);stroke:var(--vd-ramp-9,{ink})">'
        f"{title}</circle>"
    )


def _said(one: Mapping[str, Any]) -> str:
    """The value with its interval, and the value as computed where it was negative."""
    text = number(finite(one["value"]))
    low, high = finite(one["low"]), finite(one["high"])
    if low is not None and high is not None:
        text += f" [{number(low)}, {number(high)}]"
    raw = finite(one["raw"])
    if raw is not None and raw < 0:
        text += f" ({signed(raw, 3)})"
    return text


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw the components of each grader as dots with intervals, as one ``<svg>`` element."""
    graders, left_out = _shown(data)
    marks = ticks(_top(graders))
    top_value = marks[-1]

    def place(value: float) -> float:
        return LEFT + min(max(value / top_value, 0.0), 1.0) * (RIGHT - LEFT)

    height = sum(GAP + PITCH * len(g["components"]) for g in graders)
    top = 8.0
    bottom = top + height
    body: list[str] = []
    for at in marks:
        x = place(at)
        body.append(rule(x, top, x, bottom))
        body.append(label(f"{at:g}", x, bottom + 16, size=11, anchor="middle", muted=True))
    body.append(rule(LEFT, bottom, RIGHT, bottom, opacity=0.6))
    y = top
    for one in graders:
        after = f"{one['phrasings']} phrasings"
        body.append(
            label(one["grader"], 0, y + 17, size=13, weight=600, width=RIGHT - 20, after=after)
        )
        y += GAP
        for component in one["components"]:
            body += _row(component, y, place, top_value)
            y += PITCH
    said = "variance in squared units of the score"
    if data.get("fixed"):
        said += "; intervals for these phrasings only"
    if left_out:
        said += f"; {left_out:,} more graders are not drawn"
    end = bottom + 33
    body.append(label(said, RIGHT, end, size=11, anchor="end", muted=True))
    if _ends_beyond(graders, top_value):
        end += 16
        body.append(label(ARROW, RIGHT, end, size=11, anchor="end", muted=True))
    return frame(body, title=DRAWING.title, alt=alt, height=end + 7)


def _row(one: Mapping[str, Any], y: float, place: Any, top: float) -> Iterator[str]:
    middle = y + PITCH / 2 - 6
    weight = 600 if one.get("phrasing") else 400
    yield label(
        one["name"], LEFT - 12, middle + 4, size=12, anchor="end", width=LEFT - 20, weight=weight
    )
    low, high, value = finite(one["low"]), finite(one["high"]), finite(one["value"])
    ink = paint("stroke", "ramp-7", RAMP[7][0])
    if low is not None and high is not None:
        yield (
            f'<line x1="{num(place(low))}" x2="{num(place(high))}" y1="{num(middle)}" '
            f'y2="{num(middle)}" {ink} stroke-width="1.6"/>'
        )
        if high > top:
            yield (
                f'<path d="M{num(RIGHT - 6)} {num(middle - 5)}l6 5l-6 5" fill="none" '
                f'stroke="{RAMP[7][0]}" style="stroke:var(--vd-ramp-7,{RAMP[7][0]})" stroke-width="1.6"/>'
            )
    if value is not None:
        yield _mark(place(value), middle, one, f"{one['name']}: {_said(one)}")
    yield label(_said(one), RIGHT + 14, middle + 4, size=12, width=WIDTH - RIGHT - 14)


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw one line a component: its dot on the interval, with the value and its ends."""
    graders, left_out = _shown(data)
    dot, dash, arrow = ("*", "-", ">") if ascii_only else ("●", "─", "▸")
    marks = ticks(_top(graders))
    top = marks[-1]
    side = 23
    plot = max(min(width - side - 30, 40), 8)
    drawn: list[str] = []
    for one in graders:
        drawn.append(name_of(one["grader"], width, ascii_only))
        for component in one["components"]:
            strip = [" "] * plot

            def spot(value: float) -> int:
                return round(min(max(value / top, 0.0), 1.0) * (plot - 1))

            low, high = finite(component["low"]), finite(component["high"])
            if low is not None and high is not None:
                for i in range(spot(low), spot(high) + 1):
                    strip[i] = dash
                if high > top:
                    strip[-1] = arrow
            value = finite(component["value"])
            if value is not None:
                strip[spot(value)] = dot
            name = plain(
                str(component["name"]).replace("×", "x" if ascii_only else "×"), ascii_only
            )
            said = plain(_said(component), ascii_only)
            drawn.append(
                f"  {name_of(name, side - 3, ascii_only):<{side - 3}} {''.join(strip)} {said}"[
                    :width
                ].rstrip()
            )
    drawn.append(" " * side + f"0{f'{top:g}':>{plot - 1}}")
    words = "Variance in squared units of the score."
    if data.get("fixed"):
        words += " Intervals for these phrasings only."
    if _ends_beyond(graders, top):
        words += f" {ARROW[0].upper()}{ARROW[1:]}."
    drawn += folded(words, width)
    if left_out:
        drawn.append(f"{left_out:,} more graders are not drawn.")
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a grader and component, with the value as it was computed."""
    keys = ("value", "low", "high", "raw")
    rows = [
        (g["grader"], g["phrasings"], c["name"], *(finite(c[k]) for k in keys))
        for g in data["graders"]
        for c in g["components"]
    ]
    return ("grader", "phrasings", "component", *keys), tuple(rows)


DRAWING = Drawing(
    name="phrasing_components",
    title="Components of responses × phrasings",
    needs="labels under several phrasings of the instruction (--phrasing COLUMN, --phrasings A,B,C)",
    takes={
        "graders": "one each: grader, phrasings (how many), components: name, value, low, high, raw "
        "(as computed) and phrasing (whether it is the phrasing component)",
        "fixed": "whether intervals are for these phrasings only",
    },
    svg=svg,
    table=table,
    lines=lines,
)
