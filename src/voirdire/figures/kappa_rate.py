"""Kappa against a rate: agreement beyond chance beside how often each grader gives the class.

Graders that agree equally well can differ many times over in the rate they report, and the other way
round: neither number stands for the other. Numbers at the dots lead to the list of graders.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._axes import finite, name_of, plain, rule, ticks
from voirdire.figures._classes import flag
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
)
from voirdire.wording import number, percent, printable

MOST = 40
LEFT, TOP, RIGHT, TALL = 44.0, 30.0, 410.0, 300.0
KEY = 436.0  # where the list begins
PITCH = 19.0


class _Dots:
    """The data of one figure: graders with both numbers, highest kappa first, and the axes."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        every = [
            d
            for d in data["dots"]
            if finite(d.get("rate")) is not None and finite(d.get("kappa")) is not None
        ]
        self.unsaid = len(list(data["dots"])) - len(every)
        need = sorted(range(len(every)), key=lambda i: (not every[i].get("flagged"), i))
        kept = [every[i] for i in sorted(need[:MOST])]
        self.dots = sorted(kept, key=lambda d: (-d["kappa"], -d["rate"]))
        self.left_out = len(every) - len(kept)
        self.standard = finite(data.get("standard_rate"))
        highs = [finite(d.get("rate_high")) or d["rate"] for d in self.dots]
        self.ticks = ticks(min(max([*highs, self.standard or 0.0, 0.01]), 1.0))
        lows = [v for d in self.dots if (v := finite(d.get("kappa_low"))) is not None]
        least = min([0.0, *lows, *(d["kappa"] for d in self.dots)])
        self.least = max(math.floor(least * 5 + 1e-9) / 5, -1.0)

    @property
    def said_less(self) -> str:
        said = []
        if self.left_out:
            said.append(f"{self.left_out:,} more graders are not drawn.")
        if self.unsaid:
            graders = "grader has" if self.unsaid == 1 else "graders have"
            said.append(f"{self.unsaid:,} {graders} no kappa or no rate.")
        return " ".join(said)


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw the dots with their list as one ``<svg>`` element."""
    found = _Dots(data)
    tall = max(TALL, PITCH * (len(found.dots) + 1) - 4)
    bottom = TOP + tall
    body = list(_axes(data, found, bottom, tall))
    at = [(_x(found, d["rate"]), _y(found, d["kappa"], bottom, tall)) for d in found.dots]
    for i, (dot, place) in enumerate(zip(found.dots, _apart(at), strict=True)):
        body += _dot(found, dot, i, place, bottom, tall)
    body += _key(data, found)
    y = bottom + 38
    if found.said_less:
        y += 16
        body.append(label(found.said_less, 0, y - 3, size=11, muted=True))
    return frame(body, title=DRAWING.title, alt=alt, height=y)


def _apart(at: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Where the numbers stand: at their dots, or beside them where one is there already."""
    placed = list[tuple[float, float]]()
    for x, y in at:
        spots = [(x, y)] + [
            (x + reach * 17 * dx, y + reach * 17 * dy)
            for reach in (1, 2, 3)
            for dx, dy in ((1, 0), (-1, 0), (0, -1), (0, 1), (0.8, -0.8), (-0.8, -0.8), (0.8, 0.8))
        ]
        free = (s for s in spots if all(math.dist(s, other) >= 15 for other in placed))
        placed.append(next((s for s in free if s[0] >= LEFT and s[1] >= TOP - 8), (x, y)))
    return placed


def _x(found: _Dots, rate: float) -> float:
    return LEFT + min(max(rate / found.ticks[-1], 0.0), 1.0) * (RIGHT - LEFT)


def _y(found: _Dots, kappa: float, bottom: float, tall: float) -> float:
    along = (min(max(kappa, found.least), 1.0) - found.least) / (1 - found.least)
    return float(bottom - along * tall)


def _axes(data: Mapping[str, Any], found: _Dots, bottom: float, tall: float) -> Iterator[str]:
    for i in range(round((1 - found.least) / 0.2) + 1):
        value = found.least + 0.2 * i
        zero = abs(value) < 1e-9
        y = _y(found, value, bottom, tall)
        yield rule(LEFT, y, RIGHT, y, opacity=0.6 if zero else 0.13)
        said = "0" if zero else f"{value:.1f}".replace("-", "−")
        yield label(said, LEFT - 8, y + 4, size=11, anchor="end", muted=True)
    for tick in found.ticks:
        x = _x(found, tick)
        yield rule(x, TOP, x, bottom)
        yield label(f"{100 * tick:g}", x, bottom + 16, size=11, anchor="middle", muted=True)
    yield label(data["standard"], 0, 14, size=12, width=RIGHT, before=f"{data['coefficient']} with")
    yield label(
        data["rate"], RIGHT, bottom + 33, size=11, anchor="end", width=300, after="in percent"
    )
    if found.standard is not None:
        x = _x(found, found.standard)
        yield rule(x, TOP - 6, x, bottom, opacity=0.75, dash="6 4", wide=1.3)
        tip = f"{data['standard']} {percent(found.standard)}"
        at_end = x > (LEFT + RIGHT) / 2
        yield label(
            tip,
            x + (-6 if at_end else 6),
            bottom - 7,
            size=11,
            width=(RIGHT - LEFT) / 2 - 10,
            muted=True,
            anchor="end" if at_end else "start",
        )


def _dot(
    found: _Dots,
    dot: Mapping[str, Any],
    i: int,
    place: tuple[float, float],
    bottom: float,
    tall: float,
) -> Iterator[str]:
    x, y = _x(found, dot["rate"]), _y(found, dot["kappa"], bottom, tall)
    ink = paint("stroke", "ramp-7", RAMP[7][0])
    ends = [finite(dot.get(k)) for k in ("rate_low", "rate_high", "kappa_low", "kappa_high")]
    tip = f"{dot['grader']}: {percent(dot['rate'])}, {number(dot['kappa'])}"
    if ends[0] is not None and ends[1] is not None:
        yield (
            f'<line x1="{num(_x(found, ends[0]))}" x2="{num(_x(found, ends[1]))}" y1="{num(y)}" '
            f'y2="{num(y)}" {ink} stroke-width="1.2" stroke-opacity=".6"/>'
        )
    if ends[2] is not None and ends[3] is not None:
        yield (
            f'<line x1="{num(x)}" x2="{num(x)}" y1="{num(_y(found, ends[2], bottom, tall))}" '
            f'y2="{num(_y(found, ends[3], bottom, tall))}" {ink} stroke-width="1.2" '
            'stroke-opacity=".6"/>'
        )
    fill = paint("fill", "ramp-9", RAMP[9][0])
    to_x, to_y = place
    if place != (x, y):
        line = paint("stroke", "ramp-9", RAMP[9][0])
        yield (
            f'<line x1="{num(x)}" y1="{num(y)}" x2="{num(to_x)}" y2="{num(to_y)}" {line}/>'
            f'<circle cx="{num(x)}" cy="{num(y)}" r="3" {fill}/>'
        )
    yield (
        f'<circle cx="{num(to_x)}" cy="{num(to_y)}" r="7.5" {fill}><title>{clean(tip)}</title></circle>'
        f'<text x="{num(to_x)}" y="{num(to_y + 3.3)}" font-size="{"9.5" if i < 9 else "8.5"}" '
        f'text-anchor="middle" {paint("fill", "on-9", RAMP[9][1])}>{i + 1}</text>'
    )


def _key(data: Mapping[str, Any], found: _Dots) -> Iterator[str]:
    yield label("kappa", WIDTH - 62, 14, size=11, anchor="end", muted=True)
    yield label("rate", WIDTH, 14, size=11, anchor="end", muted=True)
    y = TOP + 4
    for i, dot in enumerate(found.dots):
        yes = bool(dot.get("flagged"))
        yield label(i + 1, KEY + 14, y, size=11, anchor="end", muted=True)
        if yes:
            yield flag(WIDTH - 112, y - 4)
        room = WIDTH - 124 - KEY - 20
        note = "person" if dot.get("note") == "person" and dot["grader"] != "person" else ""
        yield label(dot["grader"], KEY + 20, y, size=12, width=room, weight=600 if yes else 400,
                    after=note)  # fmt: skip
        yield label(number(dot["kappa"], 2).replace("-", "−"), WIDTH - 62, y, size=12, anchor="end")
        yield label(percent(dot["rate"]), WIDTH, y, size=12, anchor="end")
        y += PITCH


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Write one line a grader: kappa and rate as numbers, and both as bars on their own scales."""
    found = _Dots(data)
    side = min(
        max((columns(printable(str(d["grader"]))) for d in found.dots), default=6),
        max(width // 3, 10),
    )
    per = max(min((width - side - 20) // 2, 24), 3)
    ink = "#" if ascii_only else "█"
    flagged = " <" if ascii_only else " ◂"
    coefficient = plain(str(data["coefficient"]), ascii_only)
    standard = name_of(data["standard"], max(width - len(coefficient) - 6, 6), ascii_only)
    head = f"{coefficient} with {standard}"
    drawn = [head[:width]]
    drawn.append(
        f"{' ' * side}  {'kappa':<{per + 6}}  {name_of(data['rate'], per + 8, ascii_only)}"
    )
    for dot in found.dots:
        kappa = ink * round(min(max(dot["kappa"], 0.0), 1.0) * per)
        rate = ink * round(min(dot["rate"] / found.ticks[-1], 1.0) * per)
        left = fitted(str(dot["grader"]), side, ascii_only=ascii_only)
        right = f"{percent(dot['rate']):>8} {rate}{flagged if dot.get('flagged') else ''}"
        drawn.append(
            f"{left}  {number(dot['kappa'], 2):>5} {kappa:<{per}} {right}"[:width].rstrip()
        )
    if found.standard is not None:
        drawn.append(
            f"{name_of(data['standard'], width - 12, ascii_only)}: {percent(found.standard)}"
        )
    if found.said_less:
        drawn.append(found.said_less[:width])
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a grader, with both intervals; the rate of who it is compared with on each."""
    keys = ("kappa", "kappa_low", "kappa_high", "rate", "rate_low", "rate_high", "n")
    rows = [
        (d["grader"], data["standard"], data["rate"], *(finite(d.get(k)) for k in keys),
         finite(data.get("standard_rate")), bool(d.get("flagged")))
        for d in data["dots"]
    ]  # fmt: skip
    return ("grader", "with", "class", *keys, "rate_of_with", "flagged"), tuple(rows)


DRAWING = Drawing(
    name="kappa_rate",
    title="Kappa against the rate of each grader",
    needs="labels of responses, a rate, --gold or --reference, and three graders beside it",
    takes={
        "coefficient": "what kappa is called",
        "standard": "whom the graders are compared with",
        "standard_rate": "its rate, or None",
        "rate": "the name of the rate",
        "dots": "one a grader: grader, kappa, kappa_low, kappa_high, rate, rate_low, rate_high, n, note, "
        "flagged",
    },
    svg=svg,
    table=table,
    lines=lines,
)
