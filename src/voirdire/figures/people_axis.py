"""People on the graders' axis: the rates of people as more rows beside the graders (MCC Figure 6).

People have the graders' mark: they are one more measurement, and no line of truth. The number of
responses stands at each row, since people seldom label them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._axes import count, finite
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
from voirdire.wording import printable

MOST_ROWS = 60
LEFT, RIGHT = 202.0, 616.0
ROLES = {"reference": "reference", "gold": "gold", "person": "person"}


def _shown(data: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    """The rows that are drawn; people are never left out."""
    dots = list(data["dots"])
    if len(dots) <= MOST_ROWS:
        return dots, 0
    need = sorted(
        range(len(dots)), key=lambda i: (not _apart(dots[i]), not dots[i].get("flagged"), i)
    )
    return [dots[i] for i in sorted(need[:MOST_ROWS])], len(dots) - MOST_ROWS


def _apart(dot: Mapping[str, Any]) -> bool:
    return dot.get("role") == "person"


def _role(dot: Mapping[str, Any]) -> str:
    role = ROLES.get(str(dot.get("role", "")), "")
    return "" if role == dot["grader"] else role


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw one dot a grader or person as one ``<svg>`` element."""
    dots, left_out = _shown(data)
    has_zero = any(rate_value(d.get("value")) == 0 for d in dots)
    axis = LogAxis(*axis_range(dots), LEFT + (46 if has_zero else 8), RIGHT, LEFT + 10)
    pitch = 22.0 if len(dots) <= 34 else 17.0
    size = 12.0 if pitch > 18 else 11.0
    body = [label(data["rate"], 0, 14, size=12.5, weight=600, width=LEFT - 10)]
    x = LEFT + 8
    for role, word in (("", "grader or person"), ("reference", "reference")):
        if role and not any(d.get("role") == role for d in dots):
            continue
        body += [_mark(role, x, 10), label(word, x + 12, 14, size=12)]
        x += 12 + text_width(word, 12) + 22
    if any(d.get("flagged") for d in dots):
        body += [flag(x, 10), label("flagged", x + 12, 14, size=12)]
    body.append(label("responses", WIDTH, 30, size=11, anchor="end", muted=True))
    top = y = 36.0
    rows = list[str]()
    for dot in dots:
        rows += _row(dot, axis, y, pitch, size)
        y += pitch
    y += 5
    body += [*axis_grid(axis, top - 12, y, has_zero), *rows]
    if left_out:
        body.append(
            label(f"{left_out:,} more graders are not drawn.", 0, y + 31, size=11, muted=True)
        )
    return frame(body, title=DRAWING.title, alt=alt, height=y + 36)


def _mark(role: str, x: float, y: float) -> str:
    ink = RAMP[9][0]
    if role == "reference":
        return (
            f'<circle cx="{num(x)}" cy="{num(y)}" r="4.6" fill="#ffffff" stroke-width="2" '
            f'stroke="{ink}" style="fill:var(--vd-paper,#ffffff);stroke:var(--vd-ramp-9,{ink})"/>'
        )
    return f'<circle cx="{num(x)}" cy="{num(y)}" r="4.8" {paint("fill", "ramp-9", ink)}/>'


def _row(
    dot: Mapping[str, Any], axis: LogAxis, y: float, pitch: float, size: float
) -> Iterator[str]:
    value, low, high = (rate_value(dot.get(k)) for k in ("value", "low", "high"))
    middle, person = y + pitch / 2, _apart(dot)
    base = middle + size * 0.35
    if person:
        yield (
            f'<rect x="0" y="{num(y + 1)}" width="{num(WIDTH)}" height="{num(pitch - 2)}" '
            'fill="currentColor" fill-opacity=".06"/>'
        )
    weight = 600 if dot.get("flagged") else 400
    yield label(dot["grader"], LEFT - 12, base, size=size, anchor="end", width=LEFT - 18,
                weight=weight, after=_role(dot))  # fmt: skip
    yield label(count(dot.get("n")), WIDTH - 4, base, size=size - 1, anchor="end", muted=True)
    if value is None:
        why = dot.get("note") or "not said"
        yield label(why, axis.start, base, size=11, width=axis.end - axis.start, muted=True)
        return
    tip = f"{dot['grader']}: {rate_text(value)}"
    if low is not None and high is not None:
        tip += f" [{rate_text(low).removesuffix(' %')}, {rate_text(high).removesuffix(' %')}]"
        yield (
            f'<line x1="{num(axis.at(low))}" x2="{num(axis.at(high))}" y1="{num(middle)}" '
            f'y2="{num(middle)}" {paint("stroke", "ramp-7", RAMP[7][0])} stroke-width="1.6"/>'
        )
    role = "reference" if dot.get("role") == "reference" else ""
    yield f"<g><title>{clean(tip)}</title>{_mark(role, axis.at(value), middle)}</g>"
    if dot.get("flagged"):
        yield flag(RIGHT + 13, middle)
    yield label(rate_text(value), WIDTH - 74, base, size=size, anchor="end")


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw one line a grader or person: its dot on the axis, its rate, its responses."""
    dots, left_out = _shown(data)
    names = [f"{d['grader']} ({_role(d)})" if _role(d) else str(d["grader"]) for d in dots]
    side = min(max((columns(printable(n)) for n in names), default=0), max(width // 3, 12))
    ns = [count(d.get("n")).replace("–", "-") for d in dots]
    room = max((len(n) for n in ns), default=1)
    has_zero = any(rate_value(d.get("value")) == 0 for d in dots)
    gutter = 3 if has_zero else 0
    plot = max(min(width - side - room - 15 - gutter, 60), 8)
    axis = LogAxis(*axis_range(dots), gutter, gutter + plot - 1, 0)
    dash = "-" if ascii_only else "─"
    drawn = [printable(str(data["rate"]))[:width]]
    for dot, name, n in zip(dots, names, ns, strict=True):
        strip = [" "] * (gutter + plot)
        value, low, high = (rate_value(dot.get(k)) for k in ("value", "low", "high"))
        if value is not None:
            if low is not None and high is not None:
                for i in range(round(axis.at(low)), round(axis.at(high)) + 1):
                    strip[i] = dash
            ring, full = ("o", "*") if ascii_only else ("○", "●")
            strip[round(axis.at(value))] = ring if dot.get("role") == "reference" else full
        said = "-" if value is None else rate_text(value)
        left = fitted(name, side, ascii_only=ascii_only)
        drawn.append(f"{left}  {''.join(strip)} {said:>9} {n:>{room}}"[:width].rstrip())
    drawn.append((" " * (side + 2) + axis_ruler(axis, gutter + plot, has_zero))[:width])
    said = "percent, logarithmic" + ("; zero left of the axis" if has_zero else "") + "; responses"
    drawn.append((" " * (side + 2) + said)[:width])
    if left_out:
        drawn.append(f"{left_out:,} more graders are not drawn.")
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a grader or person, with its interval and its responses."""
    rows = [
        (
            data["rate"],
            d["grader"],
            d.get("role") or "",
            *(rate_value(d.get(k)) for k in ("value", "low", "high")),
            finite(d.get("n")),
            bool(d.get("flagged")),
            d.get("note") or "",
        )
        for d in data["dots"]
    ]
    return ("rate", "grader", "role", "value", "low", "high", "n", "flagged", "note"), tuple(rows)


DRAWING = Drawing(
    name="people_axis",
    title="People on the graders’ axis",
    needs="a rate, as rate_dots, and graders that are people (--people A,B)",
    takes={
        "rate": "the name of the rate",
        "dots": "one a grader or person: grader, value, low, high, n, role (person, reference, gold), "
        "flagged, note",
    },
    svg=svg,
    table=table,
    lines=lines,
)
