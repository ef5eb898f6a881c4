"""The small pieces that hand-written SVG figures share: colours, cut names, legends, the frame.

Every colour stands twice: as a plain attribute, for renderers without CSS variables, and as
``var(--vd-…)``, so that a page can set it for dark. Names from the data are made printable and
escaped here and nowhere else.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from html import escape

from voirdire.wording import printable

WIDTH = 760

# One hue from light to dark in equal OKLab steps; the top class is the darkest. On a dark page the
# ramp is turned round, so that the top class stands out as much there (each: fill, text on it).
RAMP = (
    ("#d5e4f2", "#10151c"),
    ("#c1d7eb", "#10151c"),
    ("#accae5", "#10151c"),
    ("#98bdde", "#10151c"),
    ("#84b0d7", "#10151c"),
    ("#6fa3d0", "#10151c"),
    ("#5a8ab7", "#10151c"),
    ("#46729e", "#ffffff"),
    ("#325b85", "#ffffff"),
    ("#20456e", "#ffffff"),
    ("#0d2f57", "#ffffff"),
)
RAMP_DARK = (
    ("#24384f", "#ffffff"),
    ("#2b4663", "#ffffff"),
    ("#335577", "#ffffff"),
    ("#3b648c", "#ffffff"),
    ("#4273a2", "#ffffff"),
    ("#4a83b8", "#10151c"),
    ("#6797c6", "#10151c"),
    ("#83acd3", "#10151c"),
    ("#9fc0e1", "#10151c"),
    ("#bcd5ee", "#10151c"),
    ("#d9eafb", "#10151c"),
)


def dark_variables() -> str:
    """CSS declarations that turn the figures' colours round for a dark page."""
    ramp = [f"--vd-ramp-{i}:{fill};--vd-on-{i}:{on};" for i, (fill, on) in enumerate(RAMP_DARK)]
    return "".join(ramp) + "--vd-off:#8b929b;--vd-mark:#e8a06a;--vd-paper:#15181c;"


def step(index: int, classes: int) -> int:
    """The place on the ramp of the ordered class ``index`` of ``classes``; the top is the darkest."""
    last = len(RAMP) - 1
    return last if classes < 2 else round(index / (classes - 1) * last)


def paint(kind: str, variable: str, colour: str) -> str:
    """A colour attribute (``fill`` or ``stroke``) that a page may override by a CSS variable."""
    return f'{kind}="{colour}" style="{kind}:var(--vd-{variable},{colour})"'


def clean(text: object) -> str:
    """Data text, printable and escaped for an element or an attribute."""
    return escape(printable(str(text)), quote=True)


def em(char: str) -> float:
    """The width of a character in the wider sans-serif faces, roughly, in em."""
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in "il.,:;|!'()[] jtfrI-":
        return 0.4
    return 0.76 if char.isupper() or char in "mw@%—+=<>~" else 0.62


def text_width(text: str, size: float) -> float:
    """The rough width of a text set at a font size."""
    return size * sum(em(c) for c in text)


def cut(text: str, width: float, size: float) -> str:
    """Printable text that fits ``width`` at the font size ``size``.

    What is too long loses its middle: names that differ often do so at their end.
    """
    text = printable(text)
    if text_width(text, size) <= width:
        return text
    room = width - size
    head = _fitting(text, room * 0.6, size)
    tail = _fitting(text[::-1], room - text_width(head, size), size)[::-1]
    return f"{head.rstrip()}…{tail.lstrip()}"


def _fitting(text: str, room: float, size: float) -> str:
    for i, char in enumerate(text):
        room -= size * em(char)
        if room < 0:
            return text[:i]
    return text


def label(
    text: object,
    x: float,
    y: float,
    *,
    size: float = 12,
    anchor: str = "start",
    width: float = 0,
    weight: int = 400,
    muted: bool = False,
    before: str = "",
    after: str = "",
) -> str:
    """A text element; beyond ``width`` it is cut and its title holds the whole.

    ``before`` and ``after`` are text of ours on either side of it, muted.
    """
    whole = str(text)
    bold = 1.09 if weight > 400 else 1.0
    room = width - sum(text_width(f" {said}", size) for said in (before, after) if said)
    shown = cut(whole, room, size * bold) if width else printable(whole)
    title = f"<title>{clean(whole)}</title>" if shown != printable(whole) else ""
    head = f'<tspan fill-opacity=".65">{clean(before)} </tspan>' if before else ""
    tail = f'<tspan fill-opacity=".65"> {clean(after)}</tspan>' if after else ""
    name = f'<tspan style="unicode-bidi:isolate">{escape(shown)}</tspan>'
    return (
        f'<text x="{num(x)}" y="{num(y)}" font-size="{num(size)}" text-anchor="{anchor}"'
        + (f' font-weight="{weight}"' if weight != 400 else "")
        + (' fill-opacity=".65"' if muted else "")
        + f">{title}{head}{name}{tail}</text>"
    )


def num(x: float) -> str:
    """A coordinate with at most two decimal places."""
    return f"{x:.2f}".rstrip("0").rstrip(".")


def frame(body: Iterable[str], *, title: str, alt: str, height: float, defs: str = "") -> str:
    """The whole ``<svg>`` element around its parts, with the text that stands for the picture.

    ``%ID%`` in ``defs`` and ``body`` becomes a mark made from the content, so that the ids of two
    figures on one page differ and the same figure has the same bytes.
    """
    inner = defs + "".join(body)
    mark = "f" + hashlib.sha256((title + alt + inner).encode("utf-8", "replace")).hexdigest()[:10]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {num(height)}" role="img" '
        f'aria-labelledby="{mark}t {mark}d" fill="currentColor" '
        "font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', "
        'Arial, sans-serif">'
        f'<title id="{mark}t">{clean(title)}</title><desc id="{mark}d">{clean(alt)}</desc>'
        f"{inner.replace('%ID%', mark)}</svg>\n"
    )


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(
        0
        if unicodedata.combining(c) or c in "\u200c\u200d"
        else 2
        if unicodedata.east_asian_width(c) in "WF"
        else 1
        for c in text
    )


def fitted(text: str, width: int, *, ascii_only: bool = False) -> str:
    """Printable text padded, or cut in its middle, to exactly ``width`` columns of a terminal."""
    text = printable(text)
    # A letter takes at most two columns, so nothing further in can be shown.
    if len(text) > 4 * width + 4:
        text = text[: 2 * width + 2] + text[-2 * width - 2 :]
    if columns(text) > width:
        head, tail = text, text
        while columns(head) > (width - 1) * 0.6:
            head = head[:-1]
        while columns(tail) > width - 1 - columns(head):
            tail = tail[1:]
        text = head + ("~" if ascii_only else "…") + tail
    return text + " " * (width - columns(text))
