"""Coverage: how often each interval method holds the truth, by the number of clusters.

One small picture a case. What lies below the axis is cut at its edge with a mark, so that the part
near the nominal level stays readable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._axes import finite, name_of, plain, rule
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
from voirdire.wording import counted, percent

MOST_CASES, MOST_METHODS = 24, 6
ACROSS, GAP, LEFT = 3, 22.0, 34.0
HIGH, PITCH = 128.0, 196.0
LEAST = 0.8
DASHES = ("", "6 3", "2 2.5", "8 3 2 3", "3 3", "1 3")


class _Cases:
    """The data of one figure: methods in order of first appearance, cases, and the clusters."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        every = list(data["cases"])
        self.cases, self.left_out = every[:MOST_CASES], max(len(every) - MOST_CASES, 0)
        names = [str(s["method"]) for c in every for s in c["series"]]
        self.methods = list(dict.fromkeys(names))[:MOST_METHODS]
        self.level = finite(data.get("level")) or 0.95
        counts = [n for c in every for s in c["series"] for n in s["clusters"]]
        self.low, self.high = min(counts, default=5), max([*counts, 10])
        self.ticks = sorted(set(counts))


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw one small picture a case as one ``<svg>`` element."""
    found = _Cases(data)
    body, y = _legend(found)
    wide = (WIDTH - GAP * (ACROSS - 1)) / ACROSS
    y += 16
    for i, case in enumerate(found.cases):
        row, column = divmod(i, ACROSS)
        body += _picture(found, case, column * (wide + GAP), y + row * PITCH, wide)
    y += math.ceil(len(found.cases) / ACROSS) * PITCH
    said = "truth held, percent of data sets with an interval; clusters, logarithmic"
    if found.left_out:
        said += f"; {found.left_out:,} more cases are not drawn"
    body.append(label(said, WIDTH, y, size=11, anchor="end", muted=True))
    return frame(body, title=DRAWING.title, alt=alt, height=y + 7)


def _place(i: int) -> int:
    """The place of a method on the ramp; the first is the darkest."""
    return 10 - i if i < 4 else 9 - i


def _stroke(i: int) -> str:
    """The line of a method: the first is solid and thick, each other has its own dashes."""
    place = _place(i)
    dash = f' stroke-dasharray="{DASHES[i]}"' if DASHES[i] else ""
    ink = paint("stroke", f"ramp-{place}", RAMP[place][0])
    return f'fill="none" {ink} stroke-width="{2.4 if i == 0 else 1.5}"{dash}'


def _legend(found: _Cases) -> tuple[list[str], float]:
    parts, x, y = list[str](), 0.0, 12.0
    for i, method in enumerate(found.methods):
        width = 32 + text_width(method, 12) + 18
        if x and x + width > WIDTH:
            x, y = 0.0, y + 19
        parts.append(f'<path d="M{num(x)} {num(y - 4)}h26" {_stroke(i)}/>')
        parts.append(label(method, x + 32, y, size=12, width=180))
        x += width
    said = f"{percent(found.level, 0)} nominal"
    if x + 32 + text_width(said, 12) > WIDTH:
        x, y = 0.0, y + 19
    parts.append(rule(x, y - 4, x + 26, y - 4, opacity=0.7, wide=1.2))
    parts.append(label(said, x + 32, y, size=12))
    return parts, y


def _picture(
    found: _Cases, case: Mapping[str, Any], left: float, top: float, wide: float
) -> Iterator[str]:
    start, end, bottom = left + LEFT, left + wide - 4, top + 20 + HIGH
    scale = (end - start) / math.log(found.high / found.low)

    def at_x(clusters: float) -> float:
        return start + math.log(clusters / found.low) * scale

    def at_y(share: float) -> float:
        return bottom - (min(max(share, LEAST), 1.0) - LEAST) / (1 - LEAST) * HIGH

    yield label(case["case"], left, top + 8, size=12, weight=600, width=wide)
    for tick in (0.8, 0.85, 0.9, 0.95, 1.0):
        yield rule(start, at_y(tick), end, at_y(tick))
        yield label(
            f"{100 * tick:g}", start - 6, at_y(tick) + 4, size=10.5, anchor="end", muted=True
        )
    yield rule(start, at_y(found.level), end, at_y(found.level), opacity=0.7, wide=1.2)
    free = -math.inf
    for tick in found.ticks:
        said, x = counted(tick), at_x(tick)
        yield rule(x, bottom, x, bottom + 4, opacity=0.6)
        half = text_width(said, 10.5) / 2
        x = min(x, end + 4 - half)
        if x - half > free + 4:
            yield label(said, x, bottom + 16, size=10.5, anchor="middle", muted=True)
            free = x + half
    series = {str(s["method"]): s for s in case["series"]}
    for i, method in reversed(list(enumerate(found.methods))):
        if method in series:
            yield from _series(i, case, series[method], at_x, at_y)


def _series(
    i: int, case: Mapping[str, Any], series: Mapping[str, Any], at_x: Any, at_y: Any
) -> Iterator[str]:
    points = [
        (n, c)
        for n, x in zip(series["clusters"], series["coverage"], strict=True)
        if (c := finite(x)) is not None
    ]
    if not points:
        return
    path = "L".join(f"{num(at_x(n))} {num(at_y(c))}" for n, c in points)
    held = ", ".join(f"{counted(n)}: {percent(c)}" for n, c in points)
    tip = clean(f"{case['case']}, {series['method']}; {held}")
    yield f'<path d="M{path}" {_stroke(i)} stroke-linejoin="round"><title>{tip}</title></path>'
    ink = paint("fill", f"ramp-{_place(i)}", RAMP[_place(i)][0])
    for n, c in points:
        x, y = at_x(n), at_y(c)
        if c < LEAST:
            yield f'<path d="M{num(x - 3.5)} {num(y - 5)}h7l-3.5 6z" {ink}/>'
        elif i == 0:
            yield f'<circle cx="{num(x)}" cy="{num(y)}" r="2.8" {ink}/>'


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Write one block a case: coverage in percent, methods down, numbers of clusters across."""
    found = _Cases(data)
    side = min(max((columns(m) for m in found.methods), default=6), max(width // 3, 10))
    per = max((width - side) // 7, 1)
    ticks = found.ticks[:per]
    drawn = [f"coverage in percent by clusters; nominal {percent(found.level, 0)}"[:width]]
    for case in found.cases:
        drawn.append(name_of(case["case"], width, ascii_only))
        drawn.append(" " * side + "".join(f"{counted(t):>7}" for t in ticks))
        for series in case["series"]:
            held = dict(zip(series["clusters"], series["coverage"], strict=True))
            cells = "".join(
                f"{'–' if (c := finite(held.get(t))) is None else f'{100 * c:.1f}':>7}"
                for t in ticks
            )
            name = fitted(str(series["method"]), side, ascii_only=ascii_only)
            drawn.append(plain(f"{name}{cells}", ascii_only).rstrip())
    if found.left_out:
        drawn.append(f"{found.left_out:,} more cases are not drawn.")
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a case, method and number of clusters."""
    rows = []
    for case in data["cases"]:
        for series in case["series"]:
            runs = list(series.get("runs") or [None] * len(series["clusters"]))
            for n, c, r in zip(series["clusters"], series["coverage"], runs, strict=True):
                rows.append((case["case"], finite(case.get("truth")), series["method"], n, finite(c),
                             finite(r), finite(data.get("level"))))  # fmt: skip
    names = ("case", "truth", "method", "clusters", "coverage", "data_sets", "level")
    return names, tuple(rows)


DRAWING = Drawing(
    name="coverage",
    title="How often each interval holds the truth",
    needs="no file: the table that ships; or a .json of voirdire simulate coverage",
    takes={
        "level": "the nominal level, in 0–1",
        "cases": "one each: case, truth, series, one a method: method, clusters, coverage (in 0–1, None: "
        "no interval) and runs (data sets with an interval), of one length",
    },
    svg=svg,
    table=table,
    lines=lines,
)
