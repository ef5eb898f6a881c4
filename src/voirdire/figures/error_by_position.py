"""The judge's error by the position of a line, with the overall rate dashed (TWM Figure A.1 b)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._axes import count, every, finite, folded, name_of, rule, ticks
from voirdire.figures.base import Drawing, Rows
from voirdire.figures.svg import RAMP, WIDTH, clean, frame, label, num, paint
from voirdire.wording import percent

MOST = 120
MOST_LINES = 60
LEFT, RIGHT, TALL = 48.0, WIDTH - 96.0, 200.0
TOP = 34.0


class _Rates:
    """The data of one figure: a rate at each position, the overall one, and the end of the axis."""

    def __init__(self, data: Mapping[str, Any], most: int) -> None:
        found = list(data["positions"])
        self.left_out = max(len(found) - most, 0)
        self.positions: list[Mapping[str, Any]] = found[:most]
        whole: Mapping[str, Any] = data.get("overall") or {}
        self.overall = finite(whole.get("value"))
        values = [v for p in self.positions if (v := finite(p.get("value"))) is not None]
        highs = [v for p in self.positions if (v := finite(p.get("high"))) is not None]
        most_value = max([*values, self.overall or 0.0, 0.01])
        # A wide interval over few responses must not press all the others flat: it is cut, with a
        # mark that it goes on.
        self.marks = ticks(min(max([most_value * 1.05, *highs]), max(most_value * 3, 0.05), 1.0))
        self.top = self.marks[-1]


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw one dot a position with its interval as one ``<svg>`` element."""
    rates = _Rates(data, MOST)
    bottom = TOP + TALL
    body = [
        label(data["grader"], 0, 13, size=12, width=600, after="verdicts that differ from gold")
    ]
    digits = 0 if rates.marks[1] >= 0.01 else 1 if rates.marks[1] >= 0.001 else 2
    for tick in rates.marks:
        y = bottom - tick / rates.top * TALL
        body.append(rule(LEFT, y, RIGHT, y, opacity=0.6 if tick == 0 else 0.13))
        said = percent(tick, digits)
        body.append(label(said, LEFT - 7, y + 4, size=11, anchor="end", muted=True))
    body += _overall(rates, bottom)
    slot = (RIGHT - LEFT) / max(len(rates.positions), 1)
    shown = slot >= 44
    for i, one in enumerate(rates.positions):
        body += _position(data, one, rates, LEFT + (i + 0.5) * slot, bottom, slot)
    skip = every(len(rates.positions), RIGHT - LEFT, 26)
    for i, one in enumerate(rates.positions):
        x, number = LEFT + (i + 0.5) * slot, int(one["position"])
        if number % skip == 0 or (number == 1 and skip > 2):
            body.append(label(number, x, bottom + 16, size=11, anchor="middle", muted=True))
        if shown:
            said = percent(finite(one.get("value")))
            body.append(label(said, x, bottom + 33, size=11, anchor="middle"))
    y = bottom + (50 if shown else 33)
    said = "position of the line in the checklist"
    if rates.left_out:
        said += f"; {rates.left_out:,} more positions are not drawn"
    body.append(label(said, RIGHT, y, size=11, anchor="end", muted=True))
    return frame(body, title=DRAWING.title, alt=alt, height=y + 7)


def _overall(rates: _Rates, bottom: float) -> Iterator[str]:
    if rates.overall is None:
        return
    y = bottom - rates.overall / rates.top * TALL
    yield rule(LEFT, y, RIGHT, y, opacity=0.75, dash="6 4", wide=1.3)
    yield label("overall", RIGHT + 8, y - 3, size=11, muted=True)
    yield label(percent(rates.overall), RIGHT + 8, y + 11, size=12)


def _position(
    data: Mapping[str, Any],
    one: Mapping[str, Any],
    rates: _Rates,
    x: float,
    bottom: float,
    slot: float,
) -> Iterator[str]:
    value, low, high = (finite(one.get(k)) for k in ("value", "low", "high"))
    if value is None:
        if slot < 44:
            yield label("–", x, bottom - 4, size=11, anchor="middle", muted=True)
        return

    def at(rate: float) -> float:
        return bottom - min(max(rate, 0.0), rates.top) / rates.top * TALL

    tip = f"{data['grader']}, position {one['position']}: {percent(value)}"
    ink = paint("stroke", "ramp-7", RAMP[7][0])
    if low is not None and high is not None:
        tip += f" [{percent(low).removesuffix(' %')}, {percent(high).removesuffix(' %')}]"
        yield (
            f'<line x1="{num(x)}" x2="{num(x)}" y1="{num(at(low))}" y2="{num(at(high))}" {ink} '
            'stroke-width="1.6"/>'
        )
        if high > rates.top:
            yield (
                f'<path d="M{num(x - 3.5)} {num(TOP + 1)}l3.5 -6l3.5 6z" '
                f"{paint('fill', 'ramp-7', RAMP[7][0])}/>"
            )
    n = finite(one.get("n"))
    if n is not None:
        tip += f", {count(n)} verdicts"
    radius = min(4.8, max(slot * 0.3, 1.6))
    yield (
        f'<circle cx="{num(x)}" cy="{num(at(value))}" r="{num(radius)}" '
        f"{paint('fill', 'ramp-9', RAMP[9][0])}><title>{clean(tip)}</title></circle>"
    )


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw one line a position: its interval, its rate, and where the overall rate stands."""
    rates = _Rates(data, MOST_LINES)
    side = max((len(str(p["position"])) for p in rates.positions), default=1)
    plot = max(min(width - side - 12, 60), 10)

    def at(rate: float) -> int:
        return round(min(max(rate / rates.top, 0.0), 1.0) * (plot - 1))

    dot, across, overall = ("*", "-", "|") if ascii_only else ("●", "─", "┊")
    drawn = folded(
        f"{name_of(data['grader'], width, ascii_only)} verdicts that differ from gold, by position",
        width,
    )
    for one in rates.positions:
        strip = [" "] * plot
        value, low, high = (finite(one.get(k)) for k in ("value", "low", "high"))
        if rates.overall is not None:
            strip[at(rates.overall)] = overall
        if value is not None:
            if low is not None and high is not None:
                for i in range(at(low), at(high) + 1):
                    strip[i] = across if strip[i] == " " else strip[i]
                if high > rates.top:
                    strip[-1] = ">"
            strip[at(value)] = dot
        said = "-" if value is None else percent(value)
        drawn.append(f"{one['position']:>{side}}  {''.join(strip)} {said:>8}")
    ends = f"0{percent(rates.top, 0 if rates.top >= 0.01 else 2):>{plot - 1}}"
    drawn.append(" " * (side + 2) + ends)
    if rates.overall is not None:
        drawn += folded(f"{overall} overall {percent(rates.overall)}", width)
    if rates.left_out:
        drawn.append(f"{rates.left_out:,} more positions are not drawn.")
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a position, then one without a position for all of them."""
    keys = ("value", "low", "high", "n")
    each = [(p["position"], p) for p in data["positions"]]
    whole: Mapping[str, Any] = data.get("overall") or {}
    rows = [
        (data["grader"], position, *(finite(one.get(k)) for k in keys))
        for position, one in [*each, (None, whole)]
    ]
    return ("grader", "position", *keys), tuple(rows)


DRAWING = Drawing(
    name="error_by_position",
    title="Error of the judge by position",
    needs="a checklist with gold",
    takes={
        "grader": "the judge",
        "overall": "its error over all positions: value",
        "positions": "one each, in order: position (1, 2, …), value, low, high, n",
    },
    svg=svg,
    table=table,
    lines=lines,
)
