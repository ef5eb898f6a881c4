"""Totals: how many lines each side says are met, response by response (TWM Figure A.1 a).

Judge and gold stand side by side on the same responses. Responses at the ceiling are marked: there a
total cannot tell the good from the better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._axes import (
    HATCH,
    Bin,
    bar,
    bins,
    count,
    every,
    filled,
    finite,
    folded,
    name_of,
    named,
    place,
    plain,
    rule,
    ticks,
)
from voirdire.figures.base import Drawing, Rows
from voirdire.figures.svg import WIDTH, clean, columns, cut, fitted, frame, label, num, text_width

MOST_BINS = 60
MOST_LINES = 24
LEFT, RIGHT, TALL = 48.0, WIDTH - 2.0, 210.0


class _Totals:
    """The data of one figure: ranges of totals and, a side, its counts in them."""

    def __init__(self, data: Mapping[str, Any], most: int) -> None:
        self.k = max(int(data["k"]), 1)
        self.one_length = bool(data.get("one_length", True))
        self.ranges = bins(self.k, most)
        self.series = list(data["series"])[:2]
        self.counts = [self._binned(s["counts"]) for s in self.series]
        self.top = max((c for counts in self.counts for c in counts), default=0.0)

    def _binned(self, counts: Any) -> list[float]:
        found = [0.0] * len(self.ranges)
        for total, many in enumerate(counts):
            found[place(total, self.ranges)] += max(finite(many) or 0.0, 0.0)
        return found

    @property
    def binned(self) -> bool:
        return any(low != high for low, high in self.ranges)

    @property
    def ceiling(self) -> str:
        return f"at the ceiling of {self.k}" if self.one_length else "with every line met"


def _gold(series: Mapping[str, Any]) -> bool:
    return series.get("role") == "gold"


def _role(series: Mapping[str, Any]) -> str:
    """What the side is, unless its name says it already."""
    return "gold" if _gold(series) and series["grader"] != "gold" else ""


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw the two distributions side by side as one ``<svg>`` element."""
    totals = _Totals(data, MOST_BINS)
    body = list(_legend(totals))
    top, bottom = 52.0, 52.0 + TALL
    slot = (RIGHT - LEFT) / len(totals.ranges)
    marks = ticks(totals.top * 1.04, whole=True)  # room for the count over the highest bar
    scale = TALL / marks[-1]
    for tick in marks:
        y = bottom - tick * scale
        body.append(rule(LEFT, y, RIGHT, y, opacity=0.6 if tick == 0 else 0.13))
        body.append(label(count(tick), LEFT - 7, y + 4, size=11, anchor="end", muted=True))
    if totals.one_length:
        body += _ceiling(totals, top, bottom, slot)
    for i, values in enumerate(totals.ranges):
        body += _bars(totals, i, values, LEFT + i * slot, slot, bottom, scale)
    body += _names(totals.ranges, slot, bottom)
    said = "lines met" if not totals.binned else "lines met, in ranges; the ceiling stands alone"
    body.append(label(said, RIGHT, bottom + 33, size=11, anchor="end", muted=True))
    body.append(label("responses", 0, top - 12, size=11, muted=True))
    return frame(
        body, title=DRAWING.title, alt=alt, height=bottom + 40, defs=f"<defs>{HATCH}</defs>"
    )


def _legend(totals: _Totals) -> Iterator[str]:
    """The sides with their marks, and beside each how many responses stand at the ceiling."""
    x = 0.0
    for series in totals.series:
        said = f"{count(series.get('at_ceiling'))} {totals.ceiling}"
        role = _role(series)
        after = f"({role}): {said}" if role else f": {said}"
        room = WIDTH / max(len(totals.series), 1) - 30
        name = cut(str(series["grader"]), room - text_width(after, 12), 12)
        yield bar(_gold(series), x, 4, 13, 12)
        yield label(
            series["grader"],
            x + 19,
            14,
            size=12,
            width=room - text_width(after, 12) + text_width(f" {after}", 12),
            after=after.removeprefix(": "),
        )
        x += 19 + text_width(name, 12) + text_width(f" {after}", 12) + 22


def _ceiling(totals: _Totals, top: float, bottom: float, slot: float) -> Iterator[str]:
    """A band behind the last total, so that the ceiling is seen where it is."""
    left = RIGHT - slot
    yield (
        f'<rect x="{num(left)}" y="{num(top)}" width="{num(slot)}" height="{num(bottom - top)}" '
        'fill="currentColor" fill-opacity=".07"/>'
    )
    yield rule(left, top, left, bottom, opacity=0.4, dash="2 3")
    yield label("ceiling", RIGHT, top - 6, size=11, anchor="end", muted=True)


def _bars(
    totals: _Totals, i: int, values: Bin, left: float, slot: float, bottom: float, scale: float
) -> Iterator[str]:
    many = max(len(totals.series), 1)
    wide = min(slot * 0.84 / many, 44.0)
    start = left + (slot - wide * many) / 2
    # Counts over some bars only would look as if the others had none.
    written = text_width(count(totals.top), 10.5) <= wide
    for s, series in enumerate(totals.series):
        amount = totals.counts[s][i]
        if not amount:
            continue
        tall, x = amount * scale, start + s * wide
        tip = f"{series['grader']}: {count(amount)} responses with {named(values)} lines met"
        title = f"<title>{clean(tip)}</title>"
        yield bar(_gold(series), x + 0.5, bottom - tall, wide - 1, tall, title)
        if written:
            yield label(count(amount), x + wide / 2, bottom - tall - 4, size=10.5, anchor="middle")


def _names(ranges: list[Bin], slot: float, bottom: float) -> Iterator[str]:
    """The totals under the bars, as many as fit; the last one always."""
    wide = max(text_width(named(r), 11) for r in ranges) + 8
    step, last = every(len(ranges), slot * len(ranges), wide), len(ranges) - 1
    for i, values in enumerate(ranges):
        middle = LEFT + (i + 0.5) * slot
        near = i != last and (last - i) * slot < wide
        if i == last or (i % step == 0 and not near):
            yield label(named(values), middle, bottom + 16, size=11, anchor="middle", muted=True)


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw one line a total, the sides beside each other, each with its count."""
    totals = _Totals(data, MOST_LINES)
    names = [named(r, "-" if ascii_only else "–") for r in totals.ranges]
    side = max(columns(n) for n in names)
    many = max(len(totals.series), 1)
    room = max((len(count(c)) for counts in totals.counts for c in counts), default=1)
    per = min((width - side) // many - 2, 46)
    cells = max(per - room - 1, 3)
    inks = {True: "=", False: "#"} if ascii_only else {True: "▒", False: "█"}
    heads = [
        fitted(
            f"{inks[_gold(s)]} {s['grader']}" + (f" ({_role(s)})" if _role(s) else ""),
            per,
            ascii_only=ascii_only,
        )
        for s in totals.series
    ]
    drawn = [(" " * (side + 2) + "  ".join(heads)).rstrip()]
    for i, name in enumerate(names):
        parts = []
        for s, series in enumerate(totals.series):
            amount = totals.counts[s][i]
            strip = filled(amount / (totals.top or 1), cells, inks[_gold(series)])
            parts.append(f"{count(amount):>{room}} {strip:<{cells}}"[:per].ljust(per))
        drawn.append(f"{name:>{side}}  {'  '.join(parts)}".rstrip())
    for series in totals.series:
        said = f"{plain(count(series.get('at_ceiling')), ascii_only)} {totals.ceiling}: "
        name = name_of(series["grader"], max(width - len(said), 6), ascii_only)
        drawn += [said + name] if columns(said + name) <= width else folded(said + name, width)
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a side and total; what stands at the ceiling is on each row of its side."""
    rows = [
        (
            s["grader"],
            s.get("role") or "",
            total,
            finite(many),
            data["k"],
            finite(s.get("at_ceiling")),
        )
        for s in data["series"]
        for total, many in enumerate(s["counts"])
    ]
    return ("grader", "role", "lines_met", "responses", "lines", "with_every_line_met"), tuple(rows)


DRAWING = Drawing(
    name="totals_histogram",
    title="Totals of judge and gold",
    needs="a checklist",
    takes={
        "k": "the number of lines, which is the ceiling; the largest where checklists differ",
        "one_length": "whether all checklists have k lines",
        "series": "one or two sides: grader, role (gold or empty), counts (responses with 0, 1, … k "
        "lines met), at_ceiling (responses with every line met)",
    },
    svg=svg,
    table=table,
    lines=lines,
)
