"""The logarithmic axis of rates: a distance is a ratio, and zero stands off it, left of a break."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures.svg import label, num, text_width


def rate_value(x: object) -> float | None:
    return float(x) if isinstance(x, int | float) and math.isfinite(x) else None


def _steps() -> list[float]:
    return [m * 10.0**e for e in range(-6, 1) for m in (1, 2, 5) if m * 10.0**e <= 1]


def axis_range(dots: list[Mapping[str, Any]]) -> tuple[float, float]:
    """The ends of the axis: steps of 1, 2 and 5 around the values and most of their intervals."""
    values = [v for d in dots if (v := rate_value(d.get("value"))) is not None and v > 0]
    if not values:
        return 0.01, 1.0
    lows = [v for d in dots if (v := rate_value(d.get("low"))) is not None and v >= min(values) / 6]
    highs = [v for d in dots if (v := rate_value(d.get("high"))) is not None]
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


def rate_text(x: float) -> str:
    """A rate as a percentage: one decimal place, and two digits that count below 1 %."""
    value = 100 * x
    digits = 1 if value >= 1 or value <= 0 else 1 - math.floor(math.log10(value))
    return f"{value:.{digits}f} %"


class LogAxis:
    """Where a rate stands on the logarithmic axis, from ``start`` to ``end``."""

    def __init__(self, low: float, high: float, start: float, end: float, zero: float) -> None:
        self.low, self.high, self.start, self.end, self.zero = low, high, start, end, zero
        self.scale = (end - start) / math.log(high / low)

    def at(self, x: float) -> float:
        if x <= 0:
            return self.zero
        place = self.start + math.log(x / self.low) * self.scale
        return min(max(place, self.start), self.end)


def axis_grid(axis: LogAxis, top: float, bottom: float, has_zero: bool) -> Iterator[str]:
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


def axis_ruler(axis: LogAxis, width: int, has_zero: bool) -> str:
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
