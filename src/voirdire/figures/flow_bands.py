"""Flow bands: where one grader's labels of a class go under each other grader (MCC Figure 1).

One row a grader, cut into what stays and what moves to each other class. A class collapse is one
wide band in the colour of the neighbour; scatter is several narrow ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from voirdire.figures._classes import DEFS, OPEN, fill_of, flag, legend, places_of, wrapped
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
from voirdire.wording import counted, percent, printable

MOST_ROWS = 60
LEFT, RIGHT = 202.0, 660.0  # where bands begin and end
ROLES = {"person": "person"}
GAP = 2.0  # between two bands
UNREAD = "could not be read"  # what the open band holds, where the data do not say more


class _Flow:
    """The data of one figure, checked: classes in the order of the bands, the scale, the rows."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        ordered = [str(c) for c in data["classes"]]
        off = [str(c) for c in data.get("off_scale", ())]
        self.origin, self.source = str(data["class"]), str(data.get("from", ""))
        places = dict(places_of(ordered, off))
        others = [c for c in (*reversed(ordered), *off) if c != self.origin]
        # The class itself first, then the others down the scale, then those outside of it.
        self.classes = [(c, places.get(c, -1)) for c in (self.origin, *others)]
        rows = list(data["rows"])
        self.rows, self.left_out = rows, 0
        if len(rows) > MOST_ROWS:
            need = sorted(range(len(rows)), key=lambda i: (not rows[i].get("flagged"), i))
            self.rows = [rows[i] for i in sorted(need[:MOST_ROWS])]
            self.left_out = len(rows) - MOST_ROWS
        self.open = str(data.get("open") or UNREAD)
        given = data.get("total")
        read = [sum(self.amounts(r)) for r in rows]
        self.total = max([*read, float(given) if given is not None else 0.0], default=0.0)

    def amounts(self, row: Mapping[str, Any]) -> list[float]:
        """How many labels each band of a row holds, in the order of ``classes``."""
        moved = {str(c): float(n or 0) for c, n in dict(row["moved"]).items()}
        return [
            float(row["stays"] or 0),
            *(max(moved.get(c, 0.0), 0.0) for c, _ in self.classes[1:]),
        ]

    def unread(self, row: Mapping[str, Any]) -> float:
        """The labels of the class on which this grader has none: not read, or its votes elected none."""
        rest = self.total - sum(self.amounts(row))
        return rest if rest > 1e-9 * max(self.total, 1.0) else 0.0

    @property
    def any_unread(self) -> bool:
        return any(self.unread(r) for r in self.rows)

    @property
    def used(self) -> list[bool]:
        """Which bands occur at all, so that a legend need not name the others."""
        held = [self.amounts(r) for r in self.rows]
        return [i == 0 or any(h[i] for h in held) for i in range(len(self.classes))]


def _note(row: Mapping[str, Any]) -> str:
    role = ROLES.get(str(row.get("note", "")), "")
    return "" if role == row["grader"] else role


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw the bands as one ``<svg>`` element."""
    flow = _Flow(data)
    pitch = 27.0 if len(flow.rows) <= 14 else 21.0 if len(flow.rows) <= 32 else 17.0
    size = 12.5 if pitch > 22 else 11.5 if pitch > 18 else 10.5
    body, y = _legend(flow)
    body += [
        label("found", WIDTH, y + 13, size=11, anchor="end", muted=True),
        *_source(flow, y, size),
    ]
    y += 32
    for row in flow.rows:
        body.extend(_row(flow, row, y, pitch, size))
        y += pitch
    if flow.left_out:
        y += 14
        body.append(
            label(f"{flow.left_out:,} more graders are not drawn.", 0, y, size=12, muted=True)
        )
    return frame(body, title=DRAWING.title, alt=alt, height=y + 8, defs=DEFS)


def _legend(flow: _Flow) -> tuple[list[str], float]:
    entries = [
        (fill_of(place), name, "stays" if not i else "off the scale" if place < 0 else "")
        for i, (name, place) in enumerate(flow.classes)
        if flow.used[i]
    ]
    if flow.any_unread:
        entries.append((OPEN, "", flow.open))
    named = [(f, ("→ " if i and n else "") + n, after) for i, (f, n, after) in enumerate(entries)]
    parts, y = legend(named, flagged=any(r.get("flagged") for r in flow.rows), room=160)
    return parts, y + 10


def _source(flow: _Flow, y: float, size: float) -> Iterator[str]:
    """The line over the bands that says whose labels they are, and how many."""
    yield label(flow.source, LEFT - 10, y + 20, size=size, anchor="end", width=LEFT - 12)
    yield (
        f'<path d="M{num(LEFT)} {num(y + 26)}v-5h{num(RIGHT - LEFT)}v5" fill="none" '
        'stroke="currentColor" stroke-opacity=".55"/>'
    )
    yield label(
        flow.origin,
        (LEFT + RIGHT) / 2,
        y + 16,
        size=size - 1,
        anchor="middle",
        width=RIGHT - LEFT - 20,
        weight=600,
        after=f"{counted(flow.total)} labels",
    )


def _row(flow: _Flow, row: Mapping[str, Any], y: float, pitch: float, size: float) -> Iterator[str]:
    flagged = bool(row.get("flagged"))
    thick, base = pitch * 0.74, y + pitch / 2 + size * 0.35
    top = y + (pitch - thick) / 2
    yield label(
        row["grader"],
        LEFT - 10,
        base,
        size=size,
        anchor="end",
        width=LEFT - 12,
        weight=600 if flagged else 400,
        after=_note(row),
    )
    scale = (RIGHT - LEFT) / (flow.total or 1.0)
    amounts, x = flow.amounts(row), LEFT
    read = sum(amounts)
    for (name, place), amount in zip(flow.classes, amounts, strict=True):
        if not amount:
            continue
        width = amount * scale
        drawn = max(width - GAP, min(width, 1.0))
        where = "stays" if name == flow.origin else f"moved to {name}"
        tip = f"{where}: {counted(amount)} of {counted(read)} ({percent(amount / read)})"
        yield (
            f'<rect x="{num(x)}" y="{num(top)}" width="{num(drawn)}" height="{num(thick)}" '
            f'{fill_of(place)} stroke="currentColor" stroke-opacity=".4" stroke-width=".5">'
            f"<title>{clean(tip)}</title></rect>"
        )
        said = counted(amount)
        if drawn > text_width(said, size - 1) + 4:
            yield _inside(said, x + drawn / 2, base, size - 1, place)
        x += width
    rest = flow.unread(row)
    if rest:
        width = rest * scale
        yield (
            f'<rect x="{num(x)}" y="{num(top)}" width="{num(width)}" height="{num(thick)}" '
            'fill="url(#%ID%open)" stroke="currentColor" stroke-opacity=".5" stroke-width=".75" '
            f'stroke-dasharray="3 2"><title>{clean(flow.open)}: {counted(rest)}</title></rect>'
        )
    if flagged:
        yield flag(RIGHT + 12, y + pitch / 2)
    found = row.get("found")
    yield label(
        "–" if found is None else f"+{counted(float(found))}",
        WIDTH,
        base,
        size=size,
        anchor="end",
        weight=600,
    )


def _inside(said: str, x: float, base: float, size: float, place: int) -> str:
    """A count inside its band; on a hatch it stands on a plate of the page's colour."""
    if place >= 0:
        ink = paint("fill", f"on-{place}", RAMP[place][1])
        return (
            f'<text x="{num(x)}" y="{num(base)}" font-size="{num(size)}" text-anchor="middle" '
            f"{ink}>{escape(said)}</text>"
        )
    wide = text_width(said, size)
    return (
        f'<rect x="{num(x - wide / 2 - 1)}" y="{num(base - size)}" width="{num(wide + 2)}" '
        f'height="{num(size + 3)}" {paint("fill", "paper", "#ffffff")}/>'
        f'<text x="{num(x)}" y="{num(base)}" font-size="{num(size)}" text-anchor="middle">'
        f"{escape(said)}</text>"
    )


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Write the bands with characters: one line a grader with its counts beside it."""
    flow = _Flow(data)
    inks = _inks(flow, ascii_only)
    arrow, flag = ("->", " < flagged") if ascii_only else ("→", " ◂ flagged")
    names = [f"{r['grader']} ({_note(r)})" if _note(r) else str(r["grader"]) for r in flow.rows]
    side = min(max((columns(printable(n)) for n in names), default=0), max(width // 3, 12))
    counts = [_counts_of(flow, r) for r in flow.rows]
    room = max((len(c) for c in counts), default=0)
    flags = len(flag) if any(r.get("flagged") for r in flow.rows) else 0
    bar = min(width - side - room - flags - 4, 40)
    if bar < 10:  # no room for both: the numbers stay
        bar = 0
    entries = [
        f"{inks[i]} {'' if not i else arrow + ' '}{printable(name)}{'' if i else ' stays'}"
        for i, (name, _) in enumerate(flow.classes)
        if flow.used[i]
    ]
    if flow.any_unread:
        entries.append(f"? {printable(flow.open)}")
    head = [f"{counted(flow.total)} labels of {printable(flow.origin)} by {printable(flow.source)}"]
    head += wrapped(entries, width)
    order = " / ".join(["stays", *(printable(n) for (n, _), u in list(zip(flow.classes, flow.used, strict=True))[1:] if u)])  # fmt: skip
    head += wrapped([f"{order} + found"], width)
    drawn = list[str]()
    for row, name, said in zip(flow.rows, names, counts, strict=True):
        pieces = [*flow.amounts(row), flow.unread(row)]
        strip = ""
        if bar:
            cells = _cells(pieces, bar)
            strip = "".join(i * n for i, n in zip([*inks, "?"], cells, strict=True)) + "  "
        left = fitted(name, side, ascii_only=ascii_only)
        tail = flag if row.get("flagged") else ""
        drawn.append(f"{left}  {strip}{said:<{room}}{tail}".rstrip())
    if flow.left_out:
        drawn.append(f"{flow.left_out:,} more graders are not drawn.")
    return (*head, *drawn)


def _counts_of(flow: _Flow, row: Mapping[str, Any]) -> str:
    """A row's counts as text: ``8 / 118 / 26 + 1``."""
    used = [counted(a) for a, u in zip(flow.amounts(row), flow.used, strict=True) if u]
    found = row.get("found")
    return " / ".join(used) + f" + {'-' if found is None else counted(float(found))}"


def _inks(flow: _Flow, ascii_only: bool) -> list[str]:
    """One character a class: what stays is solid, the next class down lighter, and so on."""
    shades = "#=:." if ascii_only else "█▒░·"
    on = [i for i, (_, place) in enumerate(flow.classes) if place >= 0]
    off = iter("/\\+x%&$")
    if len(on) <= len(shades):
        ramp = dict(zip(on, shades, strict=False))
    else:
        ramp = {i: shades[0] if i == 0 else chr(ord("a") + n - 1) for n, i in enumerate(on)}
    return [ramp.get(i) or next(off, "/") for i in range(len(flow.classes))]


def _cells(parts: list[float], cells: int) -> list[int]:
    """Shares as whole cells that add up, by the largest remainder."""
    total = sum(parts) or 1.0
    exact = [cells * p / total for p in parts]
    whole = [int(e) for e in exact]
    order = sorted(range(len(parts)), key=lambda i: (whole[i] - exact[i], i))
    for i in order[: cells - sum(whole) if sum(parts) else 0]:
        whole[i] += 1
    return whole


def table(data: Mapping[str, Any]) -> Rows:
    """One row a grader and class: where the labels went, what could not be read, what was found."""
    flow, rows = _Flow(data), list[tuple[object, ...]]()
    for row in data["rows"]:
        amounts = flow.amounts(row)
        start = (flow.source, flow.origin, row["grader"])
        for i, ((name, _), amount) in enumerate(zip(flow.classes, amounts, strict=True)):
            rows.append((*start, "moved" if i else "stays", name, amount, flow.total))
        rows.append((*start, flow.open, "", flow.unread(row), flow.total))
        rows.append((*start, "found", flow.origin, row.get("found"), None))
    return ("from", "class", "grader", "outcome", "to_class", "labels", "of"), tuple(rows)


DRAWING = Drawing(
    name="flow_bands",
    title="Where the labels of one class go under each grader",
    needs="labels of responses with classes in order, and --gold or --reference",
    takes={
        "class": "the class whose labels are followed",
        "from": "the grader that gives them",
        "total": "how many it gives, or None",
        "classes": "names of the ordered classes, lowest first",
        "off_scale": "names of classes outside the order",
        "open": "what the rest of a row is called, or None: could not be read",
        "rows": "one a grader: grader, stays, moved (count by class), found, note, flagged",
    },
    svg=svg,
    table=table,
    lines=lines,
)
