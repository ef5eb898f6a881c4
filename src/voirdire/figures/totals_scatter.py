"""Judge against gold, total by total, with the line where they are equal (TWM Figure A.1 c).

Totals are whole numbers, so responses share places: a bubble's area is how many stand there. What
lies above the line is what the judge gives beyond gold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._axes import (
    Bin,
    bins,
    count,
    every,
    finite,
    folded,
    name_of,
    named,
    place,
    plain,
    rule,
    signed,
    with_interval,
)
from voirdire.figures.base import Drawing, Rows
from voirdire.figures.svg import RAMP, WIDTH, clean, frame, label, num, paint, text_width
from voirdire.wording import percent

MOST_BINS = 51
LEFT, TOP, SIDE = 48.0, 26.0, 400.0
NOTES = LEFT + SIDE + 34


class _Pairs:
    """The data of one figure: responses by both totals, in ranges, and where they stand in all."""

    def __init__(self, data: Mapping[str, Any], most: int) -> None:
        self.judge, self.gold = str(data["judge"]), str(data["gold"])
        self.k = max(int(data["k"]), 1)
        self.ranges = bins(self.k, most)
        self.cells: dict[tuple[int, int], float] = {}
        self.above = self.on = self.below = 0.0
        for gold, judge, many in data["cells"]:
            amount = finite(many) or 0.0
            if amount <= 0:
                continue
            spot = place(int(gold), self.ranges), place(int(judge), self.ranges)
            self.cells[spot] = self.cells.get(spot, 0.0) + amount
            # Counted before totals are put in ranges, in which near totals would look equal.
            if judge > gold:
                self.above += amount
            elif judge < gold:
                self.below += amount
            else:
                self.on += amount
        self.leniency: Mapping[str, Any] = data.get("leniency") or {}

    @property
    def total(self) -> float:
        return self.above + self.on + self.below

    @property
    def most(self) -> float:
        return max(self.cells.values(), default=1.0)

    @property
    def binned(self) -> bool:
        return any(low != high for low, high in self.ranges)

    def said(self) -> str:
        """The leniency in words, or nothing where it is not known."""
        value = finite(self.leniency.get("value"))
        if value is None:
            return ""
        return with_interval(signed(value), self.leniency.get("low"), self.leniency.get("high"))


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw the bubbles over the identity line as one ``<svg>`` element."""
    pairs = _Pairs(data, MOST_BINS)
    step = SIDE / len(pairs.ranges)
    bottom = TOP + SIDE
    largest = min(max(step * 0.47, 7.0), 26.0)
    body = list(_grid(pairs.ranges, step, bottom))
    body.append(label(pairs.judge, 0, 13, size=12, width=LEFT + SIDE, after="lines met ↑"))
    body.append(label(pairs.gold, LEFT, bottom + 35, size=12, width=SIDE, after="lines met →"))
    # Large ones first, so that a small one in front of it stays in sight.
    for (gold, judge), many in sorted(pairs.cells.items(), key=lambda c: (-c[1], c[0])):
        x, y = LEFT + (gold + 0.5) * step, bottom - (judge + 0.5) * step
        at = f"{named(pairs.ranges[judge])} by {pairs.judge}, {named(pairs.ranges[gold])} by {pairs.gold}"
        body.append(_bubble(x, y, many, pairs.most, largest, f"{at}: {count(many)} responses"))
    body += _notes(pairs, largest)
    return frame(body, title=DRAWING.title, alt=alt, height=bottom + 42)


def _radius(many: float, most: float, largest: float) -> float:
    """Area in proportion to the count; the least is still a dot that can be seen."""
    return max(largest * math.sqrt(many / most), 1.2)


def _bubble(x: float, y: float, many: float, most: float, largest: float, tip: str = "") -> str:
    ink, fill = RAMP[9][0], RAMP[3][0]
    radius = _radius(many, most, largest)
    title = f"<title>{clean(tip)}</title>" if tip else ""
    dot = (
        f'<circle cx="{num(x)}" cy="{num(y)}" r="{num(radius)}" fill="{fill}" fill-opacity=".9" '
        f'stroke="{ink}" stroke-width="{num(min(1.0, radius / 3))}" '
        f'style="fill:var(--vd-ramp-3,{fill});stroke:var(--vd-ramp-9,{ink})">{title}</circle>'
    )
    said = count(many)
    size = min(radius * 0.95, 11.0)
    if tip and size >= 7.5 and text_width(said, size) < radius * 1.8:
        dot += (
            f'<text x="{num(x)}" y="{num(y + size * 0.36)}" font-size="{num(size)}" '
            f'text-anchor="middle" {paint("fill", "on-3", RAMP[3][1])}>{said}</text>'
        )
    return dot


def _grid(ranges: list[Bin], step: float, bottom: float) -> Iterator[str]:
    yield (
        f'<rect x="{num(LEFT)}" y="{num(TOP)}" width="{num(SIDE)}" height="{num(SIDE)}" fill="none" '
        'stroke="currentColor" stroke-opacity=".35"/>'
    )
    wide = max(text_width(str(low), 11) for low, _ in ranges) + 8
    last, skip = len(ranges) - 1, every(len(ranges), SIDE, wide)
    for i, values in enumerate(ranges):
        if i != last and (i % skip or (last - i) * step < wide):
            continue
        x, y = LEFT + (i + 0.5) * step, bottom - (i + 0.5) * step
        yield rule(x, TOP, x, bottom, opacity=0.1)
        yield rule(LEFT, y, LEFT + SIDE, y, opacity=0.1)
        yield label(values[0], x, bottom + 16, size=11, anchor="middle", muted=True)
        yield label(values[0], LEFT - 7, y + 4, size=11, anchor="end", muted=True)
    yield rule(LEFT, bottom, LEFT + SIDE, TOP, opacity=0.75, dash="6 4", wide=1.3)


def _notes(pairs: _Pairs, largest: float) -> Iterator[str]:
    """How to read the picture, at its right: sizes, the three regions, the leniency."""
    room = WIDTH - NOTES
    y = TOP + 14
    yield label("Leniency", NOTES, y, size=12.5, weight=600)
    said = pairs.said()
    yield label(said or "not said", NOTES, y + 19, size=12.5, width=room, muted=not said)
    yield label("mean of the judge’s totals", NOTES, y + 36, size=11, muted=True)
    yield label("less the mean of gold’s", NOTES, y + 50, size=11, muted=True)
    y += 82
    yield label("Responses", NOTES, y, size=12.5, weight=600)
    for words, many in (
        ("above the line: judge higher", pairs.above),
        ("on the line: equal", pairs.on),
        ("below the line: judge lower", pairs.below),
    ):
        y += 19
        share = percent(many / pairs.total) if pairs.total else "–"
        yield label(words, NOTES, y, size=12)
        yield label(f"{count(many)} ({share})", NOTES + 12, y + 15, size=11.5, muted=True)
        y += 16
    y += 34
    yield rule(NOTES, y - 4, NOTES + 26, y - 4, opacity=0.75, dash="6 4", wide=1.3)
    yield label("equal totals", NOTES + 34, y, size=12)
    y += 30
    yield label("Area is the number of responses", NOTES, y, size=12)
    sizes = sorted({1.0, float(max(round(pairs.most / 4), 1)), pairs.most})
    x, y = NOTES, y + largest + 12
    for many in sizes:
        radius = _radius(many, pairs.most, largest)
        yield _bubble(x + radius, y, many, pairs.most, largest)
        yield label(count(many), x + 2 * radius + 5, y + 4, size=11, muted=True)
        x += 2 * radius + 5 + text_width(count(many), 11) + 16
    if pairs.binned:
        y += largest + 20
        wide = pairs.ranges[0][1] + 1
        said = f"Each place holds {wide} totals, from the"
        yield label(said, NOTES, y, size=11, muted=True)
        said = "one written; the ceiling stands alone."
        yield label(said, NOTES, y + 15, size=11, muted=True)


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Write the counts as a grid, the judge's totals upwards, gold's to the right, ``/`` on the line."""
    pairs = _Pairs(data, 100)
    for most in (100, 61, 51, 41, 31, 26, 21, 16, 14, 12, 10, 9, 7, 5, 3):
        pairs = _Pairs(data, most)
        names = [str(low) for low, _ in pairs.ranges]
        side = max(len(n) for n in names)
        wide = max(side, max((len(count(c)) for c in pairs.cells.values()), default=1)) + 2
        if side + 2 + wide * len(names) <= width:
            break
    empty = "." if ascii_only else "·"
    drawn = [f"{name_of(pairs.judge, width - 12, ascii_only)}, lines met"]
    for judge in reversed(range(len(names))):
        row = ""
        for gold in range(len(names)):
            many = pairs.cells.get((gold, judge))
            row += f"{empty if many is None else count(many):>{wide - 1}}"
            row += "/" if gold == judge else " "
        drawn.append(f"{names[judge]:>{side}}  {row}".rstrip()[:width])
    drawn.append((" " * (side + 2) + "".join(f"{n:>{wide - 1}} " for n in names)).rstrip()[:width])
    drawn.append(
        " " * (side + 2) + f"{name_of(pairs.gold, width - side - 14, ascii_only)}, lines met"
    )
    drawn += folded(
        f"Responses above the line / (judge higher) {count(pairs.above)}, on it {count(pairs.on)}, "
        f"below it {count(pairs.below)}.",
        width,
    )
    if pairs.binned:
        drawn += folded(
            f"Each place holds {pairs.ranges[0][1] + 1} totals, from the one written; the ceiling "
            "stands alone.",
            width,
        )
    if pairs.said():
        said = f"Leniency, mean of judge less mean of gold: {pairs.said()}."
        drawn += folded(plain(said, ascii_only), width)
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a pair of totals; the judge's leniency stands on each."""
    leniency: Mapping[str, Any] = data.get("leniency") or {}
    ends = tuple(finite(leniency.get(k)) for k in ("value", "low", "high"))
    rows = [
        (data["judge"], data["gold"], judge, gold, judge - gold, finite(many), data["k"], *ends)
        for gold, judge, many in data["cells"]
    ]
    names = ("judge", "gold", "judge_total", "gold_total", "difference", "responses", "lines")
    return (*names, "leniency", "leniency_low", "leniency_high"), tuple(rows)


DRAWING = Drawing(
    name="totals_scatter",
    title="Totals of the judge against gold’s",
    needs="a checklist with gold",
    takes={
        "judge": "the grader on the vertical axis",
        "gold": "the grader on the horizontal axis",
        "k": "the largest total",
        "cells": "one a pair of totals: [gold’s total, judge’s total, responses]",
        "leniency": "mean of the judge’s totals less mean of gold’s: value, low, high; may be absent",
    },
    svg=svg,
    table=table,
    lines=lines,
)
