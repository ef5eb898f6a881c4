"""Rate dots: each grader's rate with its interval on one logarithmic axis (MCC Figure 3).

A distance on the axis is a ratio. Zero has no place on it and is drawn left of a break.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures.base import Drawing
from voirdire.figures.svg import (
    WIDTH,
    clean,
    columns,
    cut,
    fitted,
    frame,
    label,
    num,
    paint,
    text_width,
)
from voirdire.wording import printable

MOST_ROWS = 60
LEFT, RIGHT = 202.0, 684.0
ZERO = 34.0  # how far left of the axis zero stands
ROLES = {"reference": "reference", "gold": "gold", "person": "person"}


def _value(x: object) -> float | None:
    return float(x) if isinstance(x, int | float) and math.isfinite(x) else None


def _shown(dots: list[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], int]:
    if len(dots) <= MOST_ROWS:
        return dots, 0
    by_need = sorted(
        range(len(dots)), key=lambda i: (not dots[i].get("flagged"), not dots[i].get("role"), i)
    )
    kept = sorted(by_need[:MOST_ROWS])
    return [dots[i] for i in kept], len(dots) - MOST_ROWS


def _steps() -> list[float]:
    return [m * 10.0**e for e in range(-6, 1) for m in (1, 2, 5) if m * 10.0**e <= 1]


def _range(dots: list[Mapping[str, Any]]) -> tuple[float, float]:
    """The ends of the axis: steps of 1, 2 and 5 around the values and most of their intervals."""
    values = [v for d in dots if (v := _value(d.get("value"))) is not None and v > 0]
    if not values:
        return 0.01, 1.0
    lows = [v for d in dots if (v := _value(d.get("low"))) is not None and v >= min(values) / 6]
    highs = [v for d in dots if (v := _value(d.get("high"))) is not None]
    least, most = min([*values, *lows]), min(max([*values, *highs]), 1.0)
    steps = _steps()
    low = max((s for s in steps if s <= least * 1.000001), default=steps[0])
    high = min((s for s in steps if s >= most * 0.999999), default=1.0)
    while high / low < 9.99 and (low > 0.0011 or high < 1):
        if high < 1:
            high = min(s for s in steps if s > high * 1.01)
        if high / low < 9.99 and low > 0.0011:
            low = max(s for s in steps if s < low * 0.99)
    return low, high


def percent_tick(x: float) -> str:
    """A tick in percent without needless digits: ``0.5``, ``20``."""
    return f"{100 * x:.4f}".rstrip("0").rstrip(".")


def _percent(x: float) -> str:
    """A rate as a percentage: one decimal place, and two digits that count below 1 %."""
    value = 100 * x
    digits = 1 if value >= 1 or value <= 0 else 1 - math.floor(math.log10(value))
    return f"{value:.{digits}f} %"


class _Axis:
    """Where a rate stands on the logarithmic axis, from ``start`` to ``end``."""

    def __init__(self, low: float, high: float, start: float, end: float, zero: float) -> None:
        self.low, self.high, self.start, self.end, self.zero = low, high, start, end, zero
        self.scale = (end - start) / math.log(high / low)

    def at(self, x: float) -> float:
        if x <= 0:
            return self.zero
        place = self.start + math.log(x / self.low) * self.scale
        return min(max(place, self.start), self.end)


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw the dots of every rate over one axis as one ``<svg>`` element."""
    rates = [(r, *_shown(list(r["dots"]))) for r in data["rates"]]
    dots = [d for _, shown, _ in rates for d in shown]
    has_zero = any(_value(d.get("value")) == 0 for d in dots)
    start = LEFT + (ZERO + 12 if has_zero else 8)
    axis = _Axis(*_range(dots), start, RIGHT, LEFT + 10)
    pitch = 20.0 if len(dots) <= 34 else 17.0
    size = 12.0 if pitch > 18 else 11.0
    body, y = _legend(dots)
    first, rows = y, list[str]()
    for rate, shown, left_out in rates:
        y += 24
        rows.extend(_heading(rate, shown, axis, y))
        y += 10
        for dot in shown:
            rows.extend(_row(dot, axis, y, pitch, size))
            y += pitch
        if left_out:
            y += 14
            rows.append(
                label(f"{left_out:,} more graders are not drawn.", 0, y, size=11, muted=True)
            )
    y += 6
    body += [*_grid(axis, first, y, has_zero), *rows]
    return frame(body, title=DRAWING.title, alt=alt, height=y + 36)


def _legend(dots: list[Mapping[str, Any]]) -> tuple[list[str], float]:
    kinds = [("", "grader")] + [
        (role, word) for role, word in ROLES.items() if any(d.get("role") == role for d in dots)
    ]
    if len(kinds) == 1 and not any(d.get("flagged") for d in dots):
        return [], 0.0
    parts, x = list[str](), 6.0
    for role, word in kinds:
        parts += [_marker(role, x, 10), label(word, x + 12, 14, size=12)]
        x += 12 + text_width(word, 12) + 22
    if any(d.get("flagged") for d in dots):
        parts += [_flag(x, 10), label("flagged", x + 12, 14, size=12)]
    return parts, 18.0


def _flag(x: float, y: float) -> str:
    return (
        f'<path d="M{num(x - 4)} {num(y)}l8 -4.5v9z" {paint("fill", "mark", "#b3470f")}>'
        "<title>flagged</title></path>"
    )


def _marker(role: str, x: float, y: float) -> str:
    """The mark of one grader: a dot; the reference an open ring, gold a diamond, people a square."""
    fill = paint("fill", "ramp-9", "#20456e")
    at_x, at_y = num(x), num(y)
    if role == "reference":
        return (
            f'<circle cx="{at_x}" cy="{at_y}" r="4.6" fill="#ffffff" stroke-width="2" '
            'stroke="#20456e" style="fill:var(--vd-paper,#ffffff);'
            'stroke:var(--vd-ramp-9,#20456e)"/>'
        )
    if role == "gold":
        return f'<path d="M{at_x} {num(y - 6.2)}l6.2 6.2l-6.2 6.2l-6.2 -6.2z" {fill}/>'
    if role == "person":
        return f'<rect x="{num(x - 4.4)}" y="{num(y - 4.4)}" width="8.8" height="8.8" {fill}/>'
    return f'<circle cx="{at_x}" cy="{at_y}" r="4.8" {fill}/>'


def _heading(
    rate: Mapping[str, Any], dots: list[Mapping[str, Any]], axis: _Axis, y: float
) -> Iterator[str]:
    """The rate's name, and a bracket from its lowest to its highest dot with the spread's words.

    Gold and people are not among the graders whose spread is told.
    """
    yield label(rate["name"], 0, y, size=12.5, weight=600, width=LEFT - 10)
    spread = str(rate.get("spread") or "")
    values = [
        v
        for d in dots
        if (v := _value(d.get("value"))) is not None and v > 0 and d.get("role") != "gold"
    ]
    if not spread or len(values) < 2:
        if spread:
            yield label(spread, RIGHT, y, size=11, anchor="end", width=420, muted=True)
        return
    low, high = axis.at(min(values)), axis.at(max(values))
    wide = text_width(cut(spread, 420, 11), 11) + 10
    middle = min(max((low + high) / 2, LEFT + wide / 2), WIDTH - wide / 2)
    yield (
        f'<path d="M{num(low)} {num(y + 6)}v-4h{num(high - low)}v4" fill="none" '
        'stroke="currentColor" stroke-opacity=".55"/>'
    )
    yield label(spread, middle, y - 3, size=11, anchor="middle", width=420, muted=True)


def _row(dot: Mapping[str, Any], axis: _Axis, y: float, pitch: float, size: float) -> Iterator[str]:
    value, low, high = (_value(dot.get(k)) for k in ("value", "low", "high"))
    role, middle = str(dot.get("role", "")), y + pitch / 2
    flagged = bool(dot.get("flagged"))
    yield label(
        dot["grader"],
        LEFT - 12,
        middle + size * 0.35,
        size=size,
        anchor="end",
        width=LEFT - 14,
        weight=600 if flagged else 400,
        after=_role(dot),
    )
    if value is None:
        why = dot.get("note") or "not said"
        at, room = middle + size * 0.35, axis.end - axis.start
        yield label(why, axis.start, at, size=11, width=room, muted=True)
        yield label("–", WIDTH, at, size=size, anchor="end")
        return
    said = _percent(value)
    tip = f"{dot['grader']}: {said}"
    if low is not None and high is not None:
        tip += f" [{_percent(low).removesuffix(' %')}, {_percent(high).removesuffix(' %')}]"
        yield (
            f'<line x1="{num(axis.at(low))}" x2="{num(axis.at(high))}" y1="{num(middle)}" '
            f'y2="{num(middle)}" {paint("stroke", "ramp-7", "#46729e")} stroke-width="1.6"/>'
        )
    if dot.get("note"):
        tip += f" ({dot['note']})"
    yield (f"<g><title>{clean(tip)}</title>{_marker(role, axis.at(value), middle)}</g>")
    if flagged:
        yield _flag(RIGHT + 13, middle)
    yield label(said, WIDTH, middle + size * 0.35, size=size, anchor="end")


def _grid(axis: _Axis, top: float, bottom: float, has_zero: bool) -> Iterator[str]:
    """The axis with its ticks, faint lines behind the dots, and the break before zero."""
    ticks = [s for s in _steps() if axis.low * 0.999 <= s <= axis.high * 1.001]
    last = -math.inf
    for tick in ticks:
        x = axis.at(tick)
        yield (
            f'<line x1="{num(x)}" x2="{num(x)}" y1="{num(top + 8)}" y2="{num(bottom)}" '
            'stroke="currentColor" stroke-opacity=".13"/>'
        )
        text = percent_tick(tick)
        half = text_width(text, 11) / 2
        if x - half > last + 4:
            yield label(text, x, bottom + 15, size=11, anchor="middle", muted=True)
            last = x + half
    line = 'stroke="currentColor" stroke-opacity=".6"'
    yield (
        f'<line x1="{num(axis.start)}" x2="{num(axis.end)}" y1="{num(bottom)}" '
        f'y2="{num(bottom)}" {line}/>'
    )
    if has_zero:
        gap = (axis.zero + axis.start) / 2 + 3
        yield (
            f'<line x1="{num(axis.zero)}" x2="{num(axis.zero)}" y1="{num(top + 8)}" '
            f'y2="{num(bottom)}" stroke="currentColor" stroke-opacity=".13" '
            'stroke-dasharray="2 3"/>'
            f'<path d="M{num(axis.zero - 6)} {num(bottom)}H{num(gap - 3)}m-3 5l6 -10m0 10'
            f'l6 -10M{num(gap + 3)} {num(bottom)}H{num(axis.start)}" fill="none" {line}/>'
        )
        yield label("0", axis.zero, bottom + 15, size=11, anchor="middle", muted=True)
    yield label(
        "percent, logarithmic: a distance is a ratio",
        axis.end,
        bottom + 31,
        size=11,
        anchor="end",
        muted=True,
    )


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw the dots with characters, one line a grader, each with its value."""
    marks = (
        {"": "*", "reference": "o", "gold": "^", "person": "#"}
        if ascii_only
        else {"": "●", "reference": "○", "gold": "◆", "person": "■"}
    )
    rates = [(r, *_shown(list(r["dots"]))) for r in data["rates"]]
    dots = [d for _, shown, _ in rates for d in shown]
    names = {id(d): _named(d) for d in dots}
    side = min(max((columns(printable(n)) for n in names.values()), default=0), max(width // 3, 12))
    flags = 10 if any(d.get("flagged") for d in dots) else 0
    has_zero = any(_value(d.get("value")) == 0 for d in dots)
    gutter = 3 if has_zero else 0
    plot = max(min(width - side - flags - 14 - gutter, 60), 12)
    axis = _Axis(*_range(dots), gutter, gutter + plot - 1, 0)
    drawn = list[str]()
    for rate, shown, left_out in rates:
        spread = f"  {printable(str(rate['spread']))}" if rate.get("spread") else ""
        drawn.append(f"{printable(str(rate['name']))}{spread}")
        for dot in shown:
            strip = [" "] * (gutter + plot)
            value, low, high = (_value(dot.get(k)) for k in ("value", "low", "high"))
            if value is not None:
                if low is not None and high is not None:
                    for i in range(round(axis.at(low)), round(axis.at(high)) + 1):
                        strip[i] = "-" if ascii_only else "─"
                strip[round(axis.at(value))] = marks.get(str(dot.get("role", "")), marks[""])
            said = "-" if value is None else _percent(value)
            flag = (" < flagged" if ascii_only else " ◂ flagged") if dot.get("flagged") else ""
            left = fitted(names[id(dot)], side, ascii_only=ascii_only)
            drawn.append(f"{left}  {''.join(strip)} {said:>9}{flag}".rstrip())
        if left_out:
            drawn.append(f"{left_out:,} more graders are not drawn.")
    drawn.append(" " * (side + 2) + _ruler(axis, gutter + plot, has_zero))
    used = [r for r in ("reference", "gold", "person") if any(d.get("role") == r for d in dots)]
    legend = ", ".join(f"{marks[r]} {ROLES[r]}" for r in used)
    said = "percent, logarithmic" + ("; zero stands left of the axis" if has_zero else "")
    if legend and side + 4 + len(said) + len(legend) > width:
        drawn.append(" " * (side + 2) + said)
        said = legend
    elif legend:
        said = f"{said}; {legend}"
    drawn.append(" " * (side + 2) + said)
    return tuple(drawn)


def _ruler(axis: _Axis, width: int, has_zero: bool) -> str:
    """The tick labels under a text plot, each where its value stands, none touching another."""
    ruler = [" "] * (width + 4)
    free = 0
    if has_zero:
        ruler[0], free = "0", 2
    for tick in _steps():
        if not axis.low * 0.999 <= tick <= axis.high * 1.001:
            continue
        text = percent_tick(tick)
        at = round(axis.at(tick)) - len(text) // 2
        if at < free:
            continue
        ruler[at : at + len(text)] = text
        free = at + len(text) + 1
    return "".join(ruler).rstrip()


def _named(dot: Mapping[str, Any]) -> str:
    role = _role(dot)
    return f"{dot['grader']} ({role})" if role else str(dot["grader"])


def _role(dot: Mapping[str, Any]) -> str:
    """What the grader is, unless its name says it already."""
    role = ROLES.get(str(dot.get("role", "")), "")
    return "" if role == dot["grader"] else role


DRAWING = Drawing(
    name="rate_dots",
    title="Rates of each grader on a logarithmic axis",
    takes={
        "rates": "one a rate: name, spread (text) and dots, one a grader: grader, value, low, "
        "high, role, flagged, note",
    },
    svg=svg,
    lines=lines,
)
