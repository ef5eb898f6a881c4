"""Rate dots: each grader's rate with its interval on one logarithmic axis (MCC Figure 3).

A distance on the axis is a ratio. Zero has no place on it and is drawn left of a break.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._classes import flag
from voirdire.figures._log_axis import (
    LogAxis,
    axis_grid,
    axis_range,
    axis_ruler,
    rate_text,
    rate_value,
)
from voirdire.figures.base import Drawing, Rows
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


def _shown(dots: list[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], int]:
    if len(dots) <= MOST_ROWS:
        return dots, 0
    by_need = sorted(
        range(len(dots)), key=lambda i: (not dots[i].get("flagged"), not dots[i].get("role"), i)
    )
    kept = sorted(by_need[:MOST_ROWS])
    return [dots[i] for i in kept], len(dots) - MOST_ROWS


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw the dots of every rate over one axis as one ``<svg>`` element."""
    rates = [(r, *_shown(list(r["dots"]))) for r in data["rates"]]
    dots = [d for _, shown, _ in rates for d in shown]
    has_zero = any(rate_value(d.get("value")) == 0 for d in dots)
    start = LEFT + (ZERO + 12 if has_zero else 8)
    axis = LogAxis(*axis_range(dots), start, RIGHT, LEFT + 10)
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
    body += [*axis_grid(axis, first, y, has_zero), *rows]
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
        parts += [flag(x, 10), label("flagged", x + 12, 14, size=12)]
    return parts, 18.0


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
    rate: Mapping[str, Any], dots: list[Mapping[str, Any]], axis: LogAxis, y: float
) -> Iterator[str]:
    """The rate's name, and a bracket from its lowest to its highest dot with the spread's words.

    Gold and people are not among the graders whose spread is told.
    """
    yield label(rate["name"], 0, y, size=12.5, weight=600, width=LEFT - 10)
    spread = str(rate.get("spread") or "")
    values = [
        v
        for d in dots
        if (v := rate_value(d.get("value"))) is not None and v > 0 and d.get("role") != "gold"
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


def _row(
    dot: Mapping[str, Any], axis: LogAxis, y: float, pitch: float, size: float
) -> Iterator[str]:
    value, low, high = (rate_value(dot.get(k)) for k in ("value", "low", "high"))
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
    said = rate_text(value)
    tip = f"{dot['grader']}: {said}"
    if low is not None and high is not None:
        tip += f" [{rate_text(low).removesuffix(' %')}, {rate_text(high).removesuffix(' %')}]"
        yield (
            f'<line x1="{num(axis.at(low))}" x2="{num(axis.at(high))}" y1="{num(middle)}" '
            f'y2="{num(middle)}" {paint("stroke", "ramp-7", "#46729e")} stroke-width="1.6"/>'
        )
    if dot.get("note"):
        tip += f" ({dot['note']})"
    yield (f"<g><title>{clean(tip)}</title>{_marker(role, axis.at(value), middle)}</g>")
    if flagged:
        yield flag(RIGHT + 13, middle)
    yield label(said, WIDTH, middle + size * 0.35, size=size, anchor="end")


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
    has_zero = any(rate_value(d.get("value")) == 0 for d in dots)
    gutter = 3 if has_zero else 0
    plot = max(min(width - side - flags - 14 - gutter, 60), 12)
    axis = LogAxis(*axis_range(dots), gutter, gutter + plot - 1, 0)
    drawn = list[str]()
    for rate, shown, left_out in rates:
        spread = f"  {printable(str(rate['spread']))}" if rate.get("spread") else ""
        drawn.append(f"{printable(str(rate['name']))}{spread}")
        for dot in shown:
            strip = [" "] * (gutter + plot)
            value, low, high = (rate_value(dot.get(k)) for k in ("value", "low", "high"))
            if value is not None:
                if low is not None and high is not None:
                    for i in range(round(axis.at(low)), round(axis.at(high)) + 1):
                        strip[i] = "-" if ascii_only else "─"
                strip[round(axis.at(value))] = marks.get(str(dot.get("role", "")), marks[""])
            said = "-" if value is None else rate_text(value)
            flag = (" < flagged" if ascii_only else " ◂ flagged") if dot.get("flagged") else ""
            left = fitted(names[id(dot)], side, ascii_only=ascii_only)
            drawn.append(f"{left}  {''.join(strip)} {said:>9}{flag}".rstrip())
        if left_out:
            drawn.append(f"{left_out:,} more graders are not drawn.")
    drawn.append(" " * (side + 2) + axis_ruler(axis, gutter + plot, has_zero))
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


def _named(dot: Mapping[str, Any]) -> str:
    role = _role(dot)
    return f"{dot['grader']} ({role})" if role else str(dot["grader"])


def _role(dot: Mapping[str, Any]) -> str:
    """What the grader is, unless its name says it already."""
    role = ROLES.get(str(dot.get("role", "")), "")
    return "" if role == dot["grader"] else role


def table(data: Mapping[str, Any]) -> Rows:
    """One row a rate and grader, with its interval."""
    rows = [
        (
            rate["name"],
            dot["grader"],
            dot.get("role") or "",
            *(rate_value(dot.get(k)) for k in ("value", "low", "high")),
            bool(dot.get("flagged")),
            dot.get("note") or "",
        )
        for rate in data["rates"]
        for dot in rate["dots"]
    ]
    return ("rate", "grader", "role", "value", "low", "high", "flagged", "note"), tuple(rows)


DRAWING = Drawing(
    name="rate_dots",
    title="Rates of each grader on a logarithmic axis",
    needs="a rate: classes in order (--scale) or --rate; two graders or more, up to 60",
    takes={
        "rates": "one a rate: name, spread (text) and dots, one a grader: grader, value, low, "
        "high, role, flagged, note",
    },
    svg=svg,
    table=table,
    lines=lines,
)
