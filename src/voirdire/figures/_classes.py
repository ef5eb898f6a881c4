"""What the figures of classes share: a class's colour or hatch, the flag, and legends that wrap."""

from __future__ import annotations

from collections.abc import Iterable

from voirdire.figures.svg import RAMP, WIDTH, columns, cut, label, num, paint, step, text_width

_GREY = paint("fill", "off", "#868e97")
_HATCHES = (
    f'patternTransform="rotate(45)"><rect width="6" height="6" {_GREY} fill-opacity=".25"/>'
    f'<rect width="2" height="6" {_GREY}/>',
    f'patternTransform="rotate(-45)"><rect width="2.6" height="6" {_GREY}/>',
    f'><rect width="6" height="6" {_GREY} fill-opacity=".4"/>'
    f'<circle cx="3" cy="3" r="1.5" {_GREY}/>',
)
_SIZE = 'width="6" height="6" patternUnits="userSpaceOnUse"'
DEFS = (
    "<defs>"
    + "".join(
        f'<pattern id="%ID%off{i}" {_SIZE} {hatch}</pattern>' for i, hatch in enumerate(_HATCHES)
    )
    + '<pattern id="%ID%open" width="10" height="10" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(-45)"><rect width="1" height="10" fill="currentColor" '
    'fill-opacity=".3"/></pattern></defs>'
)
OPEN = 'fill="url(#%ID%open)"'


def places_of(classes: Iterable[object], off_scale: Iterable[object]) -> list[tuple[str, int]]:
    """Every class with its place on the ramp; off the scale −1, −2, …, the places of hatches."""
    ordered = [str(c) for c in classes]
    places = [(c, step(i, len(ordered))) for i, c in enumerate(ordered)]
    return places + [(str(c), -1 - i) for i, c in enumerate(off_scale)]


def fill_of(place: int) -> str:
    """The fill of a class at its place."""
    if place < 0:
        return f'fill="url(#%ID%off{(-1 - place) % len(_HATCHES)})"'
    return paint("fill", f"ramp-{place}", RAMP[place][0])


def flag(x: float, y: float) -> str:
    """The mark of a flagged grader: a filled triangle that points at its row."""
    return (
        f'<path d="M{num(x - 4)} {num(y)}l8 -4.5v9z" {paint("fill", "mark", "#b3470f")}>'
        "<title>flagged</title></path>"
    )


def legend(
    entries: Iterable[tuple[str, str, str]], *, flagged: bool, room: float = 150
) -> tuple[list[str], float]:
    """Swatches over a figure, wrapped (fill, name, what follows it), and where the last line ends."""
    parts, x, y, size = list[str](), 0.0, 14.0, 12.0
    for fill, name, after in entries:
        name = cut(name, room, size)
        width = 18 + text_width(name, size) + text_width(f" {after}" if after else "", size) + 16
        if x and x + width > WIDTH:
            x, y = 0.0, y + 19
        parts.append(
            f'<rect x="{num(x + 0.5)}" y="{num(y - 10)}" width="12" height="12" {fill} '
            'stroke="currentColor" stroke-opacity=".4" stroke-width=".75"/>'
        )
        parts.append(label(name, x + 18, y, size=size, after=after))
        x += width
    if flagged:
        if x + 80 > WIDTH:
            x, y = 0.0, y + 19
        parts += [flag(x + 4, y - 4), label("flagged", x + 18, y, size=size)]
    return parts, y


def wrapped(entries: Iterable[str], width: int) -> list[str]:
    """Entries of a legend as lines of a terminal."""
    found, line = list[str](), ""
    for entry in entries:
        if line and columns(line) + 3 + columns(entry) > width:
            found.append(line)
            line = ""
        line = f"{line}   {entry}" if line else entry
    return [*found, line] if line else found
