"""Class shares: what each grader made of the scale, one stacked bar a grader (MCC Figure 4).

A grader that never uses a class has no segment for it, whatever its agreement with the others.
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
LEFT, RIGHT = 202.0, 646.0  # where bars begin and end
NOTES = {"gold": "gold", "reference": "reference", "person": "person"}


def _classes(data: Mapping[str, Any]) -> list[tuple[str, int]]:
    return places_of(data["classes"], data.get("off_scale", ()))


def _counts(row: Mapping[str, Any], k: int) -> tuple[list[float | None], float]:
    """The counts of a row, one a class, and the total that its bar stands for."""
    counts = [None if c is None else max(float(c), 0.0) for c in row["counts"]][:k]
    counts += [None] * (k - len(counts))
    known = sum(c for c in counts if c is not None)
    return counts, max(float(row.get("total") or 0.0), known)


def _pieces(
    row: Mapping[str, Any], classes: list[tuple[str, int]]
) -> tuple[list[tuple[int | None, float]], float]:
    """What a bar is made of, from its left: class indexes, ``None`` for the open rest, and sizes.

    The rest stands where the first unprinted class would, so that classes above it stay at the
    right; without unprinted counts it stands at the end.
    """
    counts, total = _counts(row, len(classes))
    pieces: list[tuple[int | None, float]] = [(i, c) for i, c in enumerate(counts) if c]
    rest = total - sum(size for _, size in pieces) if total else 1.0
    if rest > 1e-9 * max(total, 1.0):
        missing = next((i for i, c in enumerate(counts) if c is None), len(counts))
        at = sum(i is not None and i < missing for i, _ in pieces)
        pieces.insert(at, (None, rest))
    return pieces, total


def _shown(rows: list[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], int]:
    """The rows that are drawn, and how many are not; flagged and marked rows are kept first."""
    if len(rows) <= MOST_ROWS:
        return rows, 0
    by_need = sorted(
        range(len(rows)),
        key=lambda i: (not rows[i].get("flagged"), not rows[i].get("note"), i),
    )
    kept = sorted(by_need[:MOST_ROWS])
    return [rows[i] for i in kept], len(rows) - MOST_ROWS


def _legend(data: Mapping[str, Any], open_text: str, flagged: bool) -> tuple[list[str], float]:
    """The legend over the bars, wrapped, and the height it takes."""
    entries: list[tuple[str, str, str]] = [
        (fill_of(place), name, "off the scale" if place < 0 else "")
        for name, place in _classes(data)
    ]
    if open_text:
        entries.append((OPEN, "", open_text))
    parts, y = legend(entries, flagged=flagged)
    return parts, y + 12


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw the stacked bars as one ``<svg>`` element."""
    classes = _classes(data)
    highlight = str(data.get("highlight", ""))
    spot = next((i for i, (c, _) in enumerate(classes) if c == highlight), None)
    rows, left_out = _shown(list(data["rows"]))
    pitch = 25.0 if len(rows) <= 14 else 21.0 if len(rows) <= 32 else 17.0
    size = 12.5 if pitch > 22 else 11.5 if pitch > 18 else 10.5
    unprinted = any(c is None for r in rows for c in _counts(r, len(classes))[0])
    rests = any(i is None for r in rows for i, _ in _pieces(r, classes)[0])
    open_text = ("count not printed" if unprinted else "no label counted") if rests else ""
    body, y = _legend(data, open_text, any(r.get("flagged") for r in rows))
    if spot is not None:
        body.append(label(highlight, WIDTH, y + 12, size=11, anchor="end", width=108, muted=True))
    y += 18 if spot is not None else 4
    group = ""
    for row in rows:
        if (row.get("group") or "") != group:
            group = str(row.get("group") or "")
            y += 18
            body.append(label(group, 0, y - 4, size=size, weight=600, width=LEFT + 200))
        body.extend(_bar(row, classes, spot, y, pitch, size))
        y += pitch
    body.append(_axis(y))
    y += 20
    if left_out:
        body.append(
            label(f"{left_out:,} more graders are not drawn.", 0, y + 8, size=12, muted=True)
        )
        y += 14
    return frame(body, title=DRAWING.title, alt=alt, height=y + 2, defs=DEFS)


def _bar(
    row: Mapping[str, Any],
    classes: list[tuple[str, int]],
    spot: int | None,
    y: float,
    pitch: float,
    size: float,
) -> Iterator[str]:
    counts = _counts(row, len(classes))[0]
    pieces, total = _pieces(row, classes)
    thick, base = pitch * 0.72, y + pitch / 2 + size * 0.35
    scale = (RIGHT - LEFT) / (total or 1.0)
    yield label(
        row["grader"],
        LEFT - 10,
        base,
        size=size,
        anchor="end",
        width=LEFT - 12,
        weight=600 if row.get("flagged") else 400,
        after=_note(row),
    )
    x, line = LEFT, y + (pitch - thick) / 2
    for index, amount in pieces:
        width = amount * scale
        box = f'x="{num(x)}" y="{num(line)}" width="{num(width)}" height="{num(thick)}"'
        if index is None:
            yield (
                f'<rect {box} fill="url(#%ID%open)" stroke="currentColor" stroke-opacity=".5" '
                f'stroke-width=".75" stroke-dasharray="3 2">'
                f"<title>{clean(_rest_title(counts, classes, total))}</title></rect>"
            )
        else:
            name, place = classes[index]
            said = counted(amount)
            yield (
                f'<rect {box} {fill_of(place)} stroke="currentColor" stroke-opacity=".4" '
                f'stroke-width=".5"><title>{clean(name)}: {said} of {counted(total)} '
                f"({percent(amount / total)})</title></rect>"
            )
            if place >= 0 and width > text_width(said, size - 1) + 6:
                yield (
                    f'<text x="{num(x + width / 2)}" y="{num(base)}" font-size="{num(size - 1)}" '
                    f'text-anchor="middle" {paint("fill", f"on-{place}", RAMP[place][1])}>'
                    f"{escape(said)}</text>"
                )
        x += width
    if row.get("flagged"):
        yield flag(RIGHT + 12, y + pitch / 2)
    if spot is not None:
        count = counts[spot]
        yield label(
            "–" if count is None else counted(count),
            WIDTH,
            base,
            size=size,
            anchor="end",
            weight=600,
        )


def _rest_title(counts: list[float | None], classes: list[tuple[str, int]], total: float) -> str:
    if not total:
        return "no labels"
    missing = [n for (n, _), c in zip(classes, counts, strict=True) if c is None]
    return f"counts not printed: {', '.join(missing)}" if missing else "no label counted"


def _axis(bottom: float) -> str:
    parts = list[str]()
    for tick in (0, 25, 50, 75, 100):
        x = LEFT + (RIGHT - LEFT) * tick / 100
        parts.append(
            f'<line x1="{num(x)}" x2="{num(x)}" y1="{num(bottom)}" y2="{num(bottom + 4)}" '
            'stroke="currentColor" stroke-opacity=".5"/>'
        )
        text = f"{tick} %" if tick in (0, 100) else str(tick)
        parts.append(label(text, x, bottom + 16, size=10.5, anchor="middle", muted=True))
    return "".join(parts)


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw the bars with characters, one line a grader, the count of one class beside each."""
    classes = _classes(data)
    inks = _inks(classes, ascii_only)
    highlight = str(data.get("highlight", ""))
    spot = next((i for i, (c, _) in enumerate(classes) if c == highlight), None)
    rows, left_out = _shown(list(data["rows"]))
    names = [_named(r) for r in rows]
    side = min(max((columns(printable(n)) for n in names), default=0), max(width // 3, 12))
    marks = 10 if any(r.get("flagged") for r in rows) else 0
    values = ["" if spot is None else _said(r, spot, len(classes)) for r in rows]
    room = max((len(v) for v in values), default=0)
    bar = max(min(width - side - room - marks - 5, 60), 10)
    entries = [f"{ink} {printable(name)}" for (name, _), ink in zip(classes, inks, strict=True)]
    drawn, open_ink = list[str](), "?"
    group, used_open = "", False
    for row, name, value in zip(rows, names, values, strict=True):
        if (row.get("group") or "") != group:
            group = str(row.get("group") or "")
            drawn.append(printable(group))
        pieces = _pieces(row, classes)[0]
        cells = _cells([size for _, size in pieces], bar)
        used_open |= any(i is None for i, _ in pieces)
        strip = "".join(
            (open_ink if i is None else inks[i]) * n
            for (i, _), n in zip(pieces, cells, strict=True)
        )
        flag = ("  < flagged" if ascii_only else "  ◂ flagged") if row.get("flagged") else ""
        left = fitted(name, side, ascii_only=ascii_only)
        drawn.append(f"{left}  {strip}  {value:>{room}}{flag}".rstrip())
    if used_open:
        entries.append(f"{open_ink} not printed or no label")
    head = wrapped(entries, width)
    if spot is not None:
        head.append(" " * (side + 2) + f"share of labels; at the right: {printable(highlight)}")
    if left_out:
        drawn.append(f"{left_out:,} more graders are not drawn.")
    return (*head, *drawn)


def _named(row: Mapping[str, Any]) -> str:
    note = _note(row)
    return f"{row['grader']} ({note})" if note else str(row["grader"])


def _note(row: Mapping[str, Any]) -> str:
    """What the grader is, unless its name says it already."""
    note = NOTES.get(str(row.get("note", "")), "")
    return "" if note == row["grader"] else note


def _said(row: Mapping[str, Any], spot: int, k: int) -> str:
    count = _counts(row, k)[0][spot]
    return "-" if count is None else counted(count)


def _inks(classes: list[tuple[str, int]], ascii_only: bool) -> list[str]:
    """One character a class: darker is higher; neighbours always differ; off the scale is a slash.

    Beyond five ordered classes the shades are too few, and the classes are lettered; the top class
    stays solid.
    """
    ordered = sum(place >= 0 for _, place in classes)
    shades = ".:=*#" if ascii_only else "·░▒▓█"
    if ordered <= len(shades):
        chosen = {
            1: shades[-1:],
            2: shades[1] + shades[-1],
            3: shades[1] + shades[2] + shades[-1],
        }.get(ordered, shades[-ordered:] if ordered else "")
        ramp = list(chosen)
    else:
        ramp = [chr(ord("a") + i % 26) for i in range(ordered)]  # letters: classes may be numbers
        ramp[-1] = shades[-1]
    off = iter("/\\+x%&$")
    return ramp[:ordered] + [next(off, "/") for _, place in classes if place < 0]


def _cells(parts: list[float], cells: int) -> list[int]:
    """Shares as whole cells that add up, by the largest remainder."""
    total = sum(parts)
    exact = [cells * p / total for p in parts]
    whole = [int(e) for e in exact]
    order = sorted(range(len(parts)), key=lambda i: (whole[i] - exact[i], i))
    for i in order[: cells - sum(whole)]:
        whole[i] += 1
    return whole


def table(data: Mapping[str, Any]) -> Rows:
    """One row a grader and class: its count, and the grader's total."""
    classes = [name for name, _ in _classes(data)]
    rows = []
    for row in data["rows"]:
        counts, total = _counts(row, len(classes))
        what = (row["grader"], row.get("group") or "", row.get("note") or "")
        for name, count in zip(classes, counts, strict=True):
            share = count / total if count is not None and total else None
            rows.append((*what, name, count, total, share, bool(row.get("flagged"))))
    names = ("grader", "group", "note", "class", "count", "total", "share", "flagged")
    return names, tuple(rows)


DRAWING = Drawing(
    name="class_shares",
    title="Class shares of each grader",
    needs="labels of up to 12 classes by up to 60 graders, or a table of counts",
    takes={
        "classes": "names of the ordered classes, lowest first",
        "off_scale": "names of classes outside the order",
        "rows": "one a grader: grader, group, counts (None: not printed), total, note, flagged",
        "highlight": "the class whose count stands beside each bar, or empty",
    },
    svg=svg,
    table=table,
    lines=lines,
)
