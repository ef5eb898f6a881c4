"""The lines with most errors: false accepts and false rejects of each, with what the line asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._axes import HATCH, bar, count, filled, finite, folded, name_of, plain
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
from voirdire.wording import printable

MOST = 10
LEFT, RIGHT = 202.0, WIDTH - 96.0
KINDS = (
    ("false_accepts", "false accept: yes where gold says no", False),
    ("false_rejects", "false reject: no where gold says yes", True),
)


def _amounts(one: Mapping[str, Any]) -> list[float]:
    return [max(finite(one.get(key)) or 0.0, 0.0) for key, _, _ in KINDS]


def _of(one: Mapping[str, Any]) -> str:
    n = finite(one.get("n"))
    errors = count(sum(_amounts(one)))
    return f"{errors} of {count(n)}" if n is not None else errors


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw one bar a line as one ``<svg>`` element."""
    rows = list(data["lines"])[:MOST]
    most = max((sum(_amounts(r)) for r in rows), default=0.0) or 1.0
    body, x = list[str](), 0.0
    for _, words, rejects in KINDS:
        body += [bar(rejects, x, 4, 13, 12), label(words, x + 19, 14, size=12)]
        x += 19 + text_width(words, 12) + 18
    body.append(label(data["grader"], 0, 36, size=12, width=420, after="errors against gold"))
    body.append(label("errors of verdicts", WIDTH, 36, size=11, anchor="end", muted=True))
    y = 44.0
    for row in rows:
        body += _row(row, y, most)
        y += 42 if row.get("text") else 27
    if not rows:
        body.append(label("no errors", LEFT, y + 12, size=12, muted=True))
        y += 20
    said = _rest(data)
    if said:
        y += 12
        body.append(label(said, 0, y, size=11.5, width=WIDTH, muted=True))
    return frame(body, title=DRAWING.title, alt=alt, height=y + 8, defs=f"<defs>{HATCH}</defs>")


def _rest(data: Mapping[str, Any]) -> str:
    """How many errors lie elsewhere."""
    rest, lines = finite(data.get("other_errors")), finite(data.get("other_lines"))
    if not rest or not lines:
        return ""
    one = rest == 1
    errors = f"{count(rest)} more {'error lies' if one else 'errors lie'}"
    return f"{errors} on {count(lines)} other {'line' if lines == 1 else 'lines'}."


def _row(row: Mapping[str, Any], y: float, most: float) -> Iterator[str]:
    middle = y + 10
    yield label(row["line"], LEFT - 10, middle + 4, size=12, anchor="end", width=LEFT - 12)
    x = LEFT
    for (_, words, rejects), amount in zip(KINDS, _amounts(row), strict=True):
        if not amount:
            continue
        wide = amount / most * (RIGHT - LEFT)
        tip = f"{row['line']}: {count(amount)} × {words}"
        yield bar(rejects, x, y, wide, 19, f"<title>{clean(tip)}</title>")
        said = count(amount)
        if text_width(said, 11) + 8 < wide:
            yield _inside(said, x + wide / 2, middle, rejects)
        x += wide
    yield label(_of(row), WIDTH, middle + 4, size=12, anchor="end")
    if row.get("text"):
        room = WIDTH - LEFT - 4
        yield label(row["text"], LEFT, y + 33, size=11, width=room, muted=True)


def _inside(said: str, x: float, middle: float, hatched: bool) -> str:
    """A count on its bar; on the hatches it stands on a plate of its own."""
    wide = text_width(said, 11) + 4
    ink, plate = paint("fill", "on-9", RAMP[9][1]), ""
    if hatched:
        ink = 'fill="currentColor"'
        plate = (
            f'<rect x="{num(x - wide / 2)}" y="{num(middle - 7)}" width="{num(wide)}" height="14" '
            f"{paint('fill', 'paper', '#ffffff')}/>"
        )
    return (
        f'{plate}<text x="{num(x)}" y="{num(middle + 4)}" font-size="11" text-anchor="middle" '
        f"{ink}>{said}</text>"
    )


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw one bar a line with characters, and what the line asks under it."""
    rows = list(data["lines"])[:MOST]
    accept, reject = ("#", "/") if ascii_only else ("█", "▒")
    most = max((sum(_amounts(r)) for r in rows), default=0.0) or 1.0
    side = min(
        max((columns(printable(str(r["line"]))) for r in rows), default=0), max(width // 3, 10)
    )
    room = max((len(_of(r)) for r in rows), default=0)
    cells = max(min(width - side - room - 4, 40), 4)
    drawn = folded(f"{name_of(data['grader'], width - 20, ascii_only)} errors against gold", width)
    drawn.append(f"{accept} false accept   {reject} false reject")
    for row in rows:
        accepts, rejects = _amounts(row)
        strip = filled(accepts / most, cells, accept) + filled(rejects / most, cells, reject)
        left = fitted(str(row["line"]), side, ascii_only=ascii_only)
        drawn.append(f"{left}  {strip[:cells]:<{cells}}  {plain(_of(row), ascii_only):>{room}}")
        if row.get("text"):
            drawn.append(f"{' ' * (side + 2)}{name_of(row['text'], width - side - 2, ascii_only)}")
    if not rows:
        drawn.append("no errors")
    return (*drawn, *folded(_rest(data), width))


def table(data: Mapping[str, Any]) -> Rows:
    """One row a line, then one for all that are not drawn."""
    rows: list[tuple[object, ...]] = [
        (
            data["grader"],
            row["line"],
            row.get("text") or "",
            *(finite(row.get(key)) for key, _, _ in KINDS),
            sum(_amounts(row)),
            finite(row.get("n")),
            1,
        )
        for row in data["lines"]
    ]
    rest, lines = finite(data.get("other_errors")), finite(data.get("other_lines"))
    if rest or lines:
        rows.append((data["grader"], "", "all other lines", None, None, rest, None, lines))
    names = ("grader", "line", "text", "false_accepts", "false_rejects", "errors", "n", "lines")
    return names, tuple(rows)


DRAWING = Drawing(
    name="worst_lines",
    title="Lines with most errors",
    needs="a checklist with gold, and an error",
    takes={
        "grader": "the judge",
        "lines": "at most ten, most errors first: line, text (what it asks, may be empty), "
        "false_accepts, false_rejects, n (verdicts compared)",
        "other_errors": "errors on lines that are not drawn",
        "other_lines": "how many of those lines have errors",
    },
    svg=svg,
    table=table,
    lines=lines,
)
