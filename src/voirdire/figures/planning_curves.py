"""Planning curves: the half width to expect against the number of clusters, with the wanted one.

Clusters stand on a logarithmic axis, since halving a width takes four times as many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from voirdire.figures._axes import finite, name_of, plain, rule, ticks
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
    step,
    text_width,
)
from voirdire.wording import counted, points, printable

MOST = 6
LEFT, RIGHT = 62.0, WIDTH - 16.0
HIGH = 240.0
DASHES = ("", "7 4", "2 3", "10 3 2 3", "4 2", "1 4")


def _shown(data: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    found = list(data["curves"])
    return found[:MOST], max(len(found) - MOST, 0)


def _points(curve: Mapping[str, Any]) -> list[tuple[float, float]]:
    pairs = zip(curve["clusters"], curve["half_width"], strict=True)
    return [
        (float(n), float(w))
        for n, w in pairs
        if finite(n) is not None and finite(w) is not None and n > 0
    ]


def _name(curve: Mapping[str, Any]) -> str:
    parts = [curve.get("name"), curve.get("grader"), curve.get("class")]
    return ", ".join(str(p) for p in parts if p)


def _said(curve: Mapping[str, Any]) -> str:
    needed = finite(curve.get("needed"))
    return "not met" if needed is None else f"{counted(needed)} clusters"


def _decades(low: float, high: float) -> list[float]:
    """1, 2, 5 × powers of ten from ``low`` to ``high``."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = [m * 10.0**p for p in range(first, last + 1) for m in (1, 2, 5)]
    return [s for s in steps if low * 0.999 <= s <= high * 1.001]


class _Plot:
    """Where numbers of clusters and half widths stand."""

    def __init__(
        self, curves: Sequence[Mapping[str, Any]], within: float | None, top: float
    ) -> None:
        every = [p for curve in curves for p in _points(curve)]
        counts = [n for n, _ in every] or [3.0, 10.0]
        self.low, self.high = min(counts), max(max(counts), min(counts) * 2)
        highest = max([w for _, w in every] + [within or 0.0, 1e-6])
        # Only what is near the wanted half width is of interest: very few clusters are cut off.
        self.ticks = ticks(min(highest, 0.5, 6 * within if within else 0.5))
        self.most = self.ticks[-1]
        self.top = top

    def x(self, clusters: float) -> float:
        along = math.log(clusters / self.low) / math.log(self.high / self.low)
        return LEFT + min(max(along, 0.0), 1.0) * (RIGHT - LEFT)

    def y(self, half_width: float) -> float:
        return self.top + HIGH * (1 - min(half_width / self.most, 1.0))


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw one curve a share as one ``<svg>`` element."""
    curves, left_out = _shown(data)
    within = finite(data.get("within"))
    top = 18.0 * len(curves) + 22
    plot = _Plot(curves, within, top)
    body = list(_axes(plot))
    if within is not None:
        y = plot.y(within)
        body.append(rule(LEFT, y, RIGHT, y, opacity=0.6, dash="6 4"))
        body.append(label(f"± {points(within)}", LEFT + 4, y - 5, size=11, muted=True))
    for i, curve in enumerate(curves):
        body += _curve(plot, curve, i, len(curves), within)
    said = "clusters, logarithmic"
    if left_out:
        said += f"; {left_out:,} more curves are not drawn"
    body.append(label(said, RIGHT, top + HIGH + 33, size=11, anchor="end", muted=True))
    return frame(body, title=DRAWING.title, alt=alt, height=top + HIGH + 40)


def _axes(plot: _Plot) -> Iterator[str]:
    bottom = plot.top + HIGH
    for tick in plot.ticks:
        y = plot.y(tick)
        yield rule(LEFT, y, RIGHT, y)
        yield label(f"{100 * tick:g}", LEFT - 8, y + 4, size=11, anchor="end", muted=True)
    yield label("± points", 0, plot.top - 9, size=11, muted=True)
    free = 0.0
    for tick in _decades(plot.low, plot.high):
        x, said = plot.x(tick), counted(tick)
        yield rule(x, bottom, x, bottom + 4, opacity=0.6)
        wide = text_width(said, 11) / 2
        if x - wide < free:
            continue
        free = x + wide + 8
        anchor = "end" if x + wide > WIDTH else "middle"
        yield label(said, x, bottom + 17, size=11, anchor=anchor, muted=True)
    yield rule(LEFT, bottom, RIGHT, bottom, opacity=0.6)


def _curve(
    plot: _Plot, curve: Mapping[str, Any], i: int, many: int, within: float | None
) -> Iterator[str]:
    place = step(many - i + 1, many + 2)
    ink = RAMP[place][0]
    dash = f' stroke-dasharray="{DASHES[i]}"' if DASHES[i] else ""
    stroke = f'fill="none" {paint("stroke", f"ramp-{place}", ink)} stroke-width="2.2"{dash}'
    y = 18.0 * i + 8
    yield f'<path d="M0 {num(y)}h34" {stroke}/>'
    yield label(_name(curve), 42, y + 4, size=12, width=470)
    yield label(_said(curve), WIDTH, y + 4, size=12, anchor="end")
    held = [(n, w) for n, w in _points(curve) if w <= plot.most]
    if len(held) > 1:
        path = "L".join(f"{num(plot.x(n))} {num(plot.y(w))}" for n, w in held)
        yield f'<path d="M{path}" {stroke} stroke-linejoin="round"/>'
    needed = finite(curve.get("needed"))
    if needed is not None and within is not None and plot.low <= needed <= plot.high:
        tip = clean(f"{_name(curve)}: {_said(curve)}")
        yield (
            f'<circle cx="{num(plot.x(needed))}" cy="{num(plot.y(within))}" r="5" fill="#ffffff" '
            f'stroke="{ink}" stroke-width="2" '
            f'style="fill:var(--vd-paper,#ffffff);stroke:var(--vd-ramp-{place},{ink})">'
            f"<title>{tip}</title></circle>"
        )


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw, for each curve, the half width at a few numbers of clusters as lines of text."""
    curves, left_out = _shown(data)
    within = finite(data.get("within"))
    many = max(min((width - 24) // 9, 6), 2)
    drawn = list[str]()
    if within is not None:
        drawn.append(
            plain("wanted: +/- " if ascii_only else "wanted: ± ", ascii_only) + points(within)
        )
    side = min(max((columns(printable(_name(c))) for c in curves), default=8), max(width // 3, 14))
    for curve in curves:
        held = _points(curve)
        chosen = (
            [held[round(j * (len(held) - 1) / (many - 1))] for j in range(many)] if held else []
        )
        room = max((width - side - 2) // 9, 1)
        chosen = chosen[:: max(1, -(-len(chosen) // room))]
        head = "".join(f"{counted(n):>9}" for n, _ in chosen)
        body = "".join(f"{100 * w:>9.1f}" for _, w in chosen)
        drawn.append(f"{fitted('clusters', side, ascii_only=ascii_only)}  {head}".rstrip())
        name = fitted(name_of(_name(curve), side, ascii_only), side, ascii_only=ascii_only)
        drawn.append(f"{name}  {body}".rstrip())
        drawn.append(f"{' ' * side}  {_said(curve)}"[:width].rstrip())
    if left_out:
        drawn.append(f"{left_out:,} more curves are not drawn.")
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a curve and number of clusters; what is needed stands on each row of its curve."""
    within = finite(data.get("within"))
    rows = [
        (
            curve.get("name") or "",
            curve.get("grader") or "",
            curve.get("class") or "",
            finite(clusters),
            finite(half_width),
            finite(curve.get("needed")),
            finite(curve.get("now")),
            within,
        )
        for curve in data["curves"]
        for clusters, half_width in zip(curve["clusters"], curve["half_width"], strict=True)
    ]
    names = ("name", "grader", "class", "clusters", "half_width", "needed", "now", "within")
    return names, tuple(rows)


DRAWING = Drawing(
    name="planning_curves",
    title="Half width to expect, by clusters",
    needs="no file, with --false-accept or --gate-accuracy; or a pilot",
    takes={
        "curves": "one each: name, grader, class, clusters and half_width (of one length), needed "
        "(empty: not met), now",
        "within": "the half width that is wanted, in 0-1",
    },
    svg=svg,
    table=table,
    lines=lines,
)
