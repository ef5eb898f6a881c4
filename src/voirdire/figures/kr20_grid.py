"""KR-20 of simulated banks by spread and judge error (TWM Figure 2).

The grid with its outlined cells; below it the two curves through it: by spread at one error, and by
error at the widest bank, each with one standard deviation of single banks on either side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from voirdire.figures._axes import finite, plain, rule
from voirdire.figures.base import Drawing, Rows
from voirdire.figures.svg import RAMP, WIDTH, clean, fitted, frame, label, num, paint
from voirdire.wording import number

MOST = 12  # rows and columns
LEFT, TOP = 84.0, 62.0
HIGH = 34.0
PLOT_HIGH = 170.0
PLOTS = ((38.0, 350.0), (428.0, 740.0))

Point = tuple[float, float | None, float | None]  # level, mean, SD


class _Grid:
    """The data of one figure, checked."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.spreads = [finite(x) or 0.0 for x in data["spreads"]][:MOST]
        self.errors = [finite(x) or 0.0 for x in data["errors"]][:MOST]
        self.mean = _matrix(data["mean"], len(self.spreads), len(self.errors))
        self.sd = _matrix(data.get("sd") or [], len(self.spreads), len(self.errors))
        self.outlined = {(int(i), int(j)) for i, j in data.get("outlined") or ()}
        curve: Mapping[str, Any] = data.get("curve") or {}
        self.at = finite(curve.get("error"))
        self.by_spread = _points(self.spreads, curve.get("mean"), curve.get("sd"))
        last = len(self.spreads) - 1
        self.by_error = _points(self.errors, self.mean[last], self.sd[last]) if last >= 0 else []


def _points(levels: Sequence[float], mean: Any, sd: Any) -> list[Point]:
    means, sds = list(mean or ()), list(sd or ())
    return [
        (
            x,
            finite(means[i]) if i < len(means) else None,
            finite(sds[i]) if i < len(sds) else None,
        )
        for i, x in enumerate(levels)
    ]


def _matrix(rows: Any, many: int, wide: int) -> list[list[float | None]]:
    made: list[list[float | None]] = [[None] * wide for _ in range(many)]
    for i, row in enumerate(list(rows)[:many]):
        for j, x in enumerate(list(row)[:wide]):
            made[i][j] = finite(x)
    return made


def _percent(x: float) -> str:
    return f"{100 * x:g} %"


def _shade(value: float) -> int:
    """The place on the ramp: below zero as zero, each tenth its own shade."""
    return min(max(math.floor(value * 10 + 1e-9), 0), len(RAMP) - 1)


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw the grid and its curves as one ``<svg>`` element."""
    grid = _Grid(data)
    body = [*_heat(grid)]
    top = TOP + HIGH * len(grid.spreads) + 52
    said = "" if grid.at is None else f"by spread, at an error of {_percent(grid.at)}"
    body += _curve(grid.by_spread, PLOTS[0], top, said, "spread of the bank", f"{1:g}")
    widest = max(grid.spreads, default=0.0)
    body += _curve(
        grid.by_error, PLOTS[1], top, f"by error, at a spread of {widest:g}", "error", "%"
    )
    return frame(body, title=DRAWING.title, alt=alt, height=top + PLOT_HIGH + 42)


def _heat(grid: _Grid) -> Iterator[str]:
    yield label("mean KR-20", 0, 14, size=12)
    x = 92.0
    yield label("≤ 0", x, 14, size=11, muted=True)
    x += 24
    for i in range(len(RAMP)):
        yield (
            f'<rect x="{num(x)}" y="4" width="14" height="12" '
            f"{paint('fill', f'ramp-{i}', RAMP[i][0])}/>"
        )
        x += 14
    yield label("1", x + 5, 14, size=11, muted=True)
    if grid.outlined:
        yield _outline(x + 36, 5, 18, 11)
        yield label("alike, at different errors", x + 61, 14, size=12)
    yield label("judge error per verdict", WIDTH, 36, size=11, anchor="end", muted=True)
    yield label("spread", LEFT - 12, TOP - 8, size=11, anchor="end", muted=True)
    side = (WIDTH - LEFT) / max(len(grid.errors), 1)
    for j, error in enumerate(grid.errors):
        yield label(_percent(error), LEFT + (j + 0.5) * side, TOP - 8, size=12, anchor="middle")
    for i, spread in enumerate(grid.spreads):
        y = TOP + i * HIGH
        yield label(f"{spread:g}", LEFT - 12, y + HIGH / 2 + 4, size=12, anchor="end")
        for j, error in enumerate(grid.errors):
            tip = f"spread {spread:g}, error {_percent(error)}: "
            yield _cell(grid, i, j, LEFT + j * side, y, side, tip)
    for i, j in sorted(grid.outlined):
        if i < len(grid.spreads) and j < len(grid.errors):
            yield _outline(LEFT + j * side + 2, TOP + i * HIGH + 2, side - 4, HIGH - 4)


def _outline(x: float, y: float, wide: float, high: float) -> str:
    return (
        f'<rect x="{num(x)}" y="{num(y)}" width="{num(wide)}" height="{num(high)}" fill="none" '
        f'{paint("stroke", "mark", "#b3470f")} stroke-width="3"/>'
    )


def _cell(grid: _Grid, i: int, j: int, x: float, y: float, side: float, tip: str) -> str:
    mean, sd = grid.mean[i][j], grid.sd[i][j]
    box = f'x="{num(x + 0.5)}" y="{num(y + 0.5)}" width="{num(side - 1)}" height="{num(HIGH - 1)}"'
    said = number(mean).replace("-", "−")
    tip += said if sd is None else f"{said}, SD {number(sd)}"
    if mean is None:
        fill, ink = 'fill="none"', 'fill="currentColor"'
    else:
        place = _shade(mean)
        fill = paint("fill", f"ramp-{place}", RAMP[place][0])
        ink = paint("fill", f"on-{place}", RAMP[place][1])
    return (
        f"<rect {box} {fill}><title>{clean(tip)}</title></rect>"
        f'<text x="{num(x + side / 2)}" y="{num(y + HIGH / 2 + 4)}" font-size="12" '
        f'text-anchor="middle" {ink}>{said}</text>'
    )


def _curve(
    points: Sequence[Point],
    across: tuple[float, float],
    top: float,
    title: str,
    axis: str,
    unit: str,
) -> Iterator[str]:
    left, right = across
    drawn = [(x, m, s) for x, m, s in points if m is not None]
    if not drawn:
        return
    bottom = top + PLOT_HIGH
    low = min(-0.2, *(m - (s or 0.0) for _, m, s in drawn))
    low = max(math.floor(low * 5) / 5, -1.0)
    levels = [x for x, _, _ in points]
    most = max(levels) or 1.0

    def at_x(level: float) -> float:
        return left + 14 + level / most * (right - left - 28)

    def at_y(value: float) -> float:
        return bottom - (min(max(value, low), 1.0) - low) / (1 - low) * (bottom - top)

    yield label(f"KR-20 {title}", left - 38 if left < 100 else left - 34, top - 14, size=12)
    for i in range(round((1 - low) / 0.2) + 1):
        value = low + 0.2 * i
        strong = abs(value) < 1e-9
        yield rule(left, at_y(value), right, at_y(value), opacity=0.6 if strong else 0.13)
        said = "0" if strong else f"{value:.1f}".replace("-", "−")
        yield label(said, left - 6, at_y(value) + 4, size=11, anchor="end", muted=True)
    for level in levels:
        said = f"{100 * level:g}" if unit == "%" else f"{level:g}"
        yield label(said, at_x(level), bottom + 17, size=11, anchor="middle", muted=True)
    said = f"{axis}, %" if unit == "%" else axis
    yield label(said, right, bottom + 34, size=11, anchor="end", muted=True)
    with_sd = [(x, m, s) for x, m, s in drawn if s is not None]
    if len(with_sd) > 1:
        upper = [f"{num(at_x(x))} {num(at_y(m + s))}" for x, m, s in with_sd]
        lower = [f"{num(at_x(x))} {num(at_y(m - s))}" for x, m, s in reversed(with_sd)]
        yield (
            f'<path d="M{"L".join(upper + lower)}z" {paint("fill", "ramp-3", RAMP[3][0])} '
            'fill-opacity=".55"/>'
        )
        yield label("± 1 SD of one bank", left, bottom + 34, size=11, muted=True)
    path = "L".join(f"{num(at_x(x))} {num(at_y(m))}" for x, m, _ in drawn)
    yield (
        f'<path d="M{path}" fill="none" {paint("stroke", "ramp-9", RAMP[9][0])} stroke-width="2"/>'
    )
    for x, m, s in drawn:
        tip = f"{axis} {_percent(x) if unit == '%' else f'{x:g}'}: {number(m)}"
        tip += "" if s is None else f", SD {number(s)}"
        yield (
            f'<circle cx="{num(at_x(x))}" cy="{num(at_y(m))}" r="4" '
            f"{paint('fill', 'ramp-9', RAMP[9][0])}><title>{clean(tip)}</title></circle>"
        )
        above = at_y(m) - 9 if at_y(m) > top + 14 else at_y(m) + 18
        yield label(number(m, 2).replace("-", "−"), at_x(x), above, size=11, anchor="middle")


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Write the grid as numbers, outlined cells in brackets, and the curve at one error as bars."""
    grid = _Grid(data)
    per = max((width - 8) // 9, 1)
    drawn = ["mean KR-20; rows: spread, columns: judge error per verdict"]
    for start in range(0, max(len(grid.errors), 1), per):
        places = range(start, min(start + per, len(grid.errors)))
        drawn.append(" " * 7 + "".join(f"{_percent(grid.errors[j]):>9}" for j in places))
        for i, spread in enumerate(grid.spreads):
            cells = (
                f"[{number(grid.mean[i][j])}]" if (i, j) in grid.outlined
                else f"{number(grid.mean[i][j])} "
                for j in places
            )  # fmt: skip
            drawn.append(f"{spread:>6g} " + "".join(f"{c:>9}" for c in cells).rstrip())
    if grid.at is not None and any(m is not None for _, m, _ in grid.by_spread):
        drawn.append(f"at an error of {_percent(grid.at)}, ± 1 SD of one bank")
        room = min(max(width - 26, 8), 50)
        ink = "#" if ascii_only else "█"
        for x, m, s in grid.by_spread:
            said = number(m) if s is None else f"{number(m)} ± {number(s)}"
            bar = ink * round(min(max(m or 0.0, 0.0), 1.0) * room)
            drawn.append(f"{x:>6g}  {fitted(said, 15)} {bar}".rstrip())
    swapped = (plain(line, ascii_only).replace("±", "+-") if ascii_only else line for line in drawn)
    return tuple(line[:width] for line in swapped)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a cell, then one a spread at the error of the curve."""
    spreads, errors = list(data["spreads"]), list(data["errors"])
    mean = _matrix(data["mean"], len(spreads), len(errors))
    sd = _matrix(data.get("sd") or [], len(spreads), len(errors))
    outlined = {(int(i), int(j)) for i, j in data.get("outlined") or ()}
    rows: list[tuple[object, ...]] = [
        (finite(s), finite(e), mean[i][j], sd[i][j], (i, j) in outlined)
        for i, s in enumerate(spreads)
        for j, e in enumerate(errors)
    ]
    curve: Mapping[str, Any] = data.get("curve") or {}
    at = finite(curve.get("error"))
    rows += [(x, at, m, s, False) for x, m, s in _points(spreads, curve.get("mean"), curve.get("sd"))
             if m is not None]  # fmt: skip
    return ("spread", "error", "kr20_mean", "kr20_sd", "outlined"), tuple(rows)


DRAWING = Drawing(
    name="kr20_grid",
    title="KR-20 by the spread of the bank and the judge’s error",
    needs="no file: simulated banks",
    takes={
        "spreads": "the rows: widths of the range of the responses’ rates, in 0–1",
        "errors": "the columns: errors of the judge per verdict, in 0–1",
        "mean": "one row a spread, one number an error: mean KR-20",
        "sd": "the same for the standard deviation of single banks; may be absent",
        "outlined": "cells to outline, each [row, column]; may be absent",
        "curve": "error, and mean and sd by spread at it; may be absent",
    },
    svg=svg,
    table=table,
    lines=lines,
)
