"""Decision path: the rate after each decision as levels, in the order taken (MCC Figure 5).

The axis is linear, since changes are told in points; each level carries its interval as a band.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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
    text_width,
)
from voirdire.wording import printable

MOST_PATHS = 12
MOST_STEPS = 12
LEFT, RIGHT, HEIGHT = 52.0, 752.0, 150.0


def _value(x: object) -> float | None:
    return float(x) if isinstance(x, int | float) and math.isfinite(x) else None


def _percent(x: float) -> str:
    return f"{100 * x:.1f} %"


def _points(x: float) -> str:
    """A change in points with its sign; one that is shown as zero has none."""
    said = f"{100 * x:+.1f}"
    return said.lstrip("+-") if float(said) == 0 else said


def _interval(low: float | None, high: float | None, signed: bool) -> str:
    if low is None or high is None:
        return ""
    one, other = (_points(low), _points(high)) if signed else (_percent(low), _percent(high))
    return f" [{one.removesuffix(' %')}, {other.removesuffix(' %')}]"


def _paths(data: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(str(r["name"]), p) for r in data["rates"] for p in r["paths"]]


def _levels(path: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    """The steps to draw: all, or the first and the last ones, and how many are left out."""
    levels = list(path["levels"])
    if len(levels) <= MOST_STEPS:
        return levels, 0
    return [levels[0], *levels[1 - MOST_STEPS :]], len(levels) - MOST_STEPS


def _total(path: Mapping[str, Any]) -> str:
    total = _value(path.get("total"))
    if total is None:
        return ""
    ends = _interval(_value(path.get("total_low")), _value(path.get("total_high")), signed=True)
    return f"end to end {_points(total)} points{ends}"


def _range(levels: Sequence[Mapping[str, Any]]) -> tuple[float, float, float]:
    """The ends of the axis and the distance of its ticks: steps of 1, 2 and 5."""
    held = [
        v for x in levels for k in ("value", "low", "high") if (v := _value(x.get(k))) is not None
    ]
    low, high = (min(held), max(held)) if held else (0.0, 1.0)
    wide = max(high - low, 0.02)
    step = next(s for s in (m * 10.0**e for e in range(-4, 1) for m in (1, 2, 5)) if wide / s <= 5)
    bottom = max(math.floor(low / step + 1e-9) * step, 0.0)
    top = min(math.ceil(high / step - 1e-9) * step, 1.0)
    if top - bottom < step:
        bottom, top = max(bottom - step, 0.0), min(top + step, 1.0)
    return bottom, top, step


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw one picture a rate and grader under each other as one ``<svg>`` element."""
    paths = _paths(data)
    body, y = list[str](), 0.0
    for rate, path in paths[:MOST_PATHS]:
        levels, left_out = _levels(path)
        y += 16
        body.extend(_heading(rate, path, y))
        body.extend(_picture(levels, y + 26, whole=not left_out))
        y += 26 + HEIGHT + 34
        if left_out:
            y += 12
            body.append(
                label(
                    f"{left_out:,} steps after the first are not drawn.", 0, y, size=11, muted=True
                )
            )
        y += 14
    if len(paths) > MOST_PATHS:
        text = f"{len(paths) - MOST_PATHS:,} more paths are not drawn."
        body.append(label(text, 0, y, size=11, muted=True))
        y += 14
    return frame(body, title=DRAWING.title, alt=alt, height=max(y, 20))


def _heading(rate: str, path: Mapping[str, Any], y: float) -> Iterator[str]:
    total = _total(path)
    wide = text_width(total, 12)
    room = (WIDTH - wide - 20) / 2
    yield label(rate, 0, y, size=12.5, weight=600, width=room - 8)
    shown = min(text_width(printable(rate), 12.5) * 1.09, room - 8)
    yield label(path["grader"], shown + 12, y, size=12, width=room)
    if total:
        yield label(total, WIDTH, y, size=12, anchor="end")


def _picture(levels: Sequence[Mapping[str, Any]], top: float, *, whole: bool) -> Iterator[str]:
    low, high, step = _range(levels)
    bottom = top + HEIGHT

    def at(x: float) -> float:
        return bottom - (min(max(x, low), high) - low) / (high - low) * HEIGHT

    for i in range(round((high - low) / step) + 1):
        tick = low + i * step
        yield (
            f'<line x1="{num(LEFT)}" x2="{num(RIGHT)}" y1="{num(at(tick))}" y2="{num(at(tick))}" '
            'stroke="currentColor" stroke-opacity=".13"/>'
        )
        said = f"{100 * tick:.2f}".rstrip("0").rstrip(".") + " %"
        yield label(said, LEFT - 8, at(tick) + 4, size=11, anchor="end", muted=True)
    slot = (RIGHT - LEFT) / max(len(levels), 1)
    before: tuple[float, float] | None = None  # the right end and the height of the level before
    for i, one in enumerate(levels):
        left = LEFT + i * slot + slot * 0.14
        right = LEFT + (i + 1) * slot - slot * 0.14
        middle, value = (left + right) / 2, _value(one.get("value"))
        yield label(one["step"], middle, bottom + 18, size=11.5, anchor="middle", width=slot - 6)
        if value is None:
            yield label("–", middle, bottom - 6, size=12, anchor="middle", muted=True)
            before = None
            continue
        down, up = _value(one.get("low")), _value(one.get("high"))
        tip = f"{one['step']}: {_percent(value)}{_interval(down, up, signed=False)}"
        change = _value(one.get("change"))
        if change is not None:
            ends = (_value(one.get("change_low")), _value(one.get("change_high")))
            tip += f"; {_points(change)} points{_interval(*ends, signed=True)}"
        yield f"<g><title>{clean(tip)}</title>"
        if down is not None and up is not None:
            yield (
                f'<rect x="{num(left)}" y="{num(at(up))}" width="{num(right - left)}" '
                f'height="{num(max(at(down) - at(up), 0.5))}" {paint("fill", "ramp-1", "#c1d7eb")}/>'
            )
        yield (
            f'<line x1="{num(left)}" x2="{num(right)}" y1="{num(at(value))}" y2="{num(at(value))}" '
            f'{paint("stroke", "ramp-9", "#20456e")} stroke-width="3"/></g>'
        )
        if before is not None:
            gap, height = before
            yield (
                f'<path d="M{num(gap)} {num(height)}L{num(left)} {num(at(value))}" fill="none" '
                'stroke="currentColor" stroke-opacity=".55" stroke-dasharray="3 3"/>'
            )
        over = at(up if up is not None else value) - 5
        shown = _percent(value)
        if change is not None:
            shown = f"{shown} ({_points(change)})"
            if text_width(shown, 11.5) > slot - 4:
                shown = _points(change)
        yield label(shown, middle, over, size=11.5, anchor="middle")
        # Over steps that are left out no line is drawn: the change is from the step before.
        before = (right, at(value)) if whole or i else None


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw the levels with characters, one line a step, each with its rate and its change."""
    paths = _paths(data)
    drawn = list[str]()
    for rate, path in paths[:MOST_PATHS]:
        levels, left_out = _levels(path)
        steps = [printable(str(x["step"])) for x in levels]
        side = min(max((columns(s) for s in steps), default=0), max(width // 3, 8))
        plot = max(min(width - side - 21, 50), 6)
        low, high, _ = _range(levels)
        drawn.append(
            f"{fitted(rate, min(columns(printable(rate)), width // 2 - 1), ascii_only=ascii_only)} "
            + fitted(
                str(path["grader"]),
                min(columns(printable(str(path["grader"]))), width // 2),
                ascii_only=ascii_only,
            )
        )
        for one, name in zip(levels, steps, strict=True):
            value, down, up = (_value(one.get(k)) for k in ("value", "low", "high"))
            strip = [" "] * plot

            def at(x: float, low: float = low, high: float = high, plot: int = plot) -> int:
                return round((min(max(x, low), high) - low) / (high - low) * (plot - 1))

            if value is not None:
                if down is not None and up is not None:
                    for i in range(at(down), at(up) + 1):
                        strip[i] = "-" if ascii_only else "─"
                strip[at(value)] = "*" if ascii_only else "●"
            change = _value(one.get("change"))
            said = "-" if value is None else _percent(value)
            moved = "" if change is None else _points(change)
            left = fitted(name, side, ascii_only=ascii_only)
            drawn.append(f"{left}  {''.join(strip)} {said:>8} {moved:>7}".rstrip())
        if left_out:
            drawn.append(f"{left_out:,} steps after the first are not drawn.")
        total = _total(path)
        if total:
            drawn.append(total)
    if len(paths) > MOST_PATHS:
        drawn.append(f"{len(paths) - MOST_PATHS:,} more paths are not drawn.")
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a rate, grader and step; the change from end to end stands on each of its rows."""
    level = ("value", "low", "high", "change", "change_low", "change_high")
    whole = ("total", "total_low", "total_high")
    rows = [
        (
            rate,
            path["grader"],
            one["step"],
            *(_value(one.get(k)) for k in level),
            *(_value(path.get(k)) for k in whole),
        )
        for rate, path in _paths(data)
        for one in path["levels"]
    ]
    return ("rate", "grader", "step", *level, *whole), tuple(rows)


DRAWING = Drawing(
    name="decision_path",
    title="The rate after each decision on the labels",
    needs="labels at the steps of a decision path (--step COLUMN) that move a rate",
    takes={
        "rates": "one a rate: name and paths, one a grader: grader, total, total_low, total_high and "
        "levels, one a step: step, value, low, high, change, change_low, change_high",
    },
    svg=svg,
    table=table,
    lines=lines,
)
