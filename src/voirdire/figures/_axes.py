"""What the figures of a checklist share: bins of totals, ticks from zero, and the marks of two sides.

The judge is solid (a dot, a full bar), gold is open (a diamond, a hatched bar), so that the two can
be told apart without colour.
"""

from __future__ import annotations

import math

from voirdire.figures.svg import RAMP, columns, fitted, num, paint
from voirdire.wording import counted, printable

Bin = tuple[int, int]

HATCH = (
    '<pattern id="%ID%hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
    f'patternTransform="rotate(45)"><rect width="1.7" height="5" '
    f"{paint('fill', 'ramp-8', RAMP[8][0])}/></pattern>"
)


def finite(x: object) -> float | None:
    """A number that can be drawn, or ``None``."""
    return float(x) if isinstance(x, int | float) and math.isfinite(x) else None


def bins(k: int, most: int) -> list[Bin]:
    """The totals 0 … ``k`` in at most ``most`` equal ranges, both ends inside; ``k`` stands alone.

    >>> bins(2, 50)
    [(0, 0), (1, 1), (2, 2)]
    >>> bins(9, 4)
    [(0, 2), (3, 5), (6, 8), (9, 9)]
    """
    if k + 1 <= most:
        return [(t, t) for t in range(k + 1)]
    wide = math.ceil(k / max(most - 1, 1))
    return [(low, min(low + wide, k) - 1) for low in range(0, k, wide)] + [(k, k)]


def place(total: int, ranges: list[Bin]) -> int:
    """Which of ``ranges`` holds a total; the ends take what lies beyond."""
    if len(ranges) == 1 or total >= ranges[-1][0]:
        return len(ranges) - 1
    return min(max(total, 0) // (ranges[0][1] + 1), len(ranges) - 2)


def named(values: Bin, dash: str = "–") -> str:
    """A range as text: ``7``, or ``6–8``."""
    low, high = values
    return str(low) if low == high else f"{low}{dash}{high}"


def ticks(top: float, most: int = 5, *, whole: bool = False) -> list[float]:
    """Ticks from zero in steps of 1, 2 or 5; the last one is the first at or above ``top``.

    >>> ticks(31, whole=True)
    [0.0, 10.0, 20.0, 30.0, 40.0]
    """
    top = max(top, 1.0 if whole else 1e-9)
    power = 10.0 ** math.floor(math.log10(top / most))
    step = next(s for m in (1, 2, 5, 10) if (s := m * power) * most >= top * (1 - 1e-9))
    if whole:
        step = max(step, 1.0)
    many = math.ceil(top / step * (1 - 1e-9))
    return [round(i * step, 12) for i in range(max(many, 1) + 1)]


def every(many: int, room: float, wide: float) -> int:
    """Every how many of ``many`` labels is written, so that each has ``wide`` of ``room`` in all."""
    fits = max(int(room / wide), 1)
    return next((s for s in (1, 2, 5, 10, 20, 25, 50, 100) if many <= fits * s), many)


def bar(gold: bool, x: float, y: float, width: float, height: float, inside: str = "") -> str:
    """A bar of gold (hatched, outlined) or of the judge (solid)."""
    box = f'x="{num(x)}" y="{num(y)}" width="{num(max(width, 0))}" height="{num(max(height, 0))}"'
    if gold:
        # The outline lies inside, so that both kinds of bar have the same extent.
        inner = (
            f'x="{num(x + 0.5)}" y="{num(y + 0.5)}" width="{num(max(width - 1, 0))}" '
            f'height="{num(max(height - 1, 0))}"'
        )
        ink = RAMP[8][0]
        return (
            f'<rect {inner} fill="url(#%ID%hatch)" stroke="{ink}" '
            f'style="stroke:var(--vd-ramp-8,{ink})">{inside}</rect>'
        )
    return f"<rect {box} {paint('fill', 'ramp-9', RAMP[9][0])}>{inside}</rect>"


def mark(gold: bool, x: float, y: float, inside: str = "") -> str:
    """The mark of gold (an open diamond) or of the judge (a dot)."""
    if gold:
        ink = RAMP[9][0]
        return (
            f'<path d="M{num(x)} {num(y - 6)}l6 6l-6 6l-6 -6z" fill="#ffffff" stroke-width="1.8" '
            f'stroke="{ink}" style="fill:var(--vd-paper,#ffffff);'
            f'stroke:var(--vd-ramp-9,{ink})">{inside}</path>'
        )
    fill = paint("fill", "ramp-9", RAMP[9][0])
    return f'<circle cx="{num(x)}" cy="{num(y)}" r="4.8" {fill}>{inside}</circle>'


def rule(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    *,
    opacity: float = 0.13,
    dash: str = "",
    wide: float = 1,
) -> str:
    """A line in the colour of the text."""
    return (
        f'<line x1="{num(x1)}" y1="{num(y1)}" x2="{num(x2)}" y2="{num(y2)}" '
        f'stroke="currentColor" stroke-opacity="{num(opacity)}"'
        + (f' stroke-width="{num(wide)}"' if wide != 1 else "")
        + (f' stroke-dasharray="{dash}"' if dash else "")
        + "/>"
    )


def signed(x: float, digits: int = 2) -> str:
    """A difference with its sign: ``+0.46``, ``−0.03``; ``0.00`` has none."""
    text = f"{abs(x):.{digits}f}"
    return text if float(text) == 0 else f"{'+' if x > 0 else '−'}{text}"


def with_interval(said: str, low: object, high: object, digits: int = 2) -> str:
    """A difference as text with its interval, where it has one: ``+0.46 [0.30, 0.61]``."""
    lowest, highest = finite(low), finite(high)
    if lowest is None or highest is None:
        return said
    ends = [signed(v, digits).removeprefix("+") for v in (lowest, highest)]
    return f"{said} [{ends[0]}, {ends[1]}]"


def filled(share: float, cells: int, ink: str) -> str:
    """A bar of a terminal: ``share`` of ``cells`` in whole characters; what is there shows as one."""
    many = round(min(max(share, 0.0), 1.0) * cells)
    return ink * (max(many, 1) if share > 0 else 0)


def plain(text: str, ascii_only: bool) -> str:
    """Our own text without signs beyond ASCII, where only those may be used."""
    if not ascii_only:
        return text
    for sign, word in (("–", "-"), ("−", "-"), ("Φ(λ)", "Phi(lambda)"), ("’", "'"), ("≤", "<=")):
        text = text.replace(sign, word)
    return text


def name_of(text: object, width: int, ascii_only: bool) -> str:
    """A name from the data in at most ``width`` columns, without padding."""
    name = printable(str(text))
    return fitted(name, min(width, columns(name)), ascii_only=ascii_only)


def folded(words: str, width: int) -> list[str]:
    """A sentence of ours as lines of at most ``width`` columns, broken between words."""
    found, line = list[str](), ""
    for word in words.split():
        if line and columns(line) + 1 + columns(word) > width:
            found.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return [*found, line] if line else found


def count(x: object) -> str:
    """A count as text; a dash where there is none."""
    value = finite(x)
    return "–" if value is None else counted(value)
