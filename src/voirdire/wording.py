"""Sentences that carry names from the user's data apart from our own words, and how numbers are written.

A sentence is a tuple of parts: our own text (``str``) and :class:`Name`, text that came from the
user (a grader, a class, a column). Keeping them apart lets each format set names off and escape
them, and no name is ever read as markup or as a template.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from string import Formatter

__all__ = [
    "Cite",
    "Lead",
    "Name",
    "Part",
    "Text",
    "Traced",
    "counted",
    "linked",
    "listed",
    "number",
    "often",
    "percent",
    "plain",
    "plural",
    "points",
    "printable",
    "say",
    "times",
]


@dataclass(frozen=True, slots=True)
class Name:
    """Text that came from the user's data."""

    text: str


class Cite(str):
    """A citation as it reads in prose, ``(Cohen 1960)``, with the keys of its entries."""

    __slots__ = ("keys",)
    keys: tuple[str, ...]

    def __new__(cls, text: str, keys: Iterable[str] = ()) -> Cite:
        made = super().__new__(cls, text)
        made.keys = tuple(keys)
        return made


class Lead(str):
    """The word that leads a line, ``Bank: ``; formats that can set it off do."""

    __slots__ = ()

    def __new__(cls, word: str) -> Lead:
        return super().__new__(cls, f"{word}: ")

    @property
    def word(self) -> str:
        return self[:-2]


class Traced(str):
    """A number in a sentence, with what it is and the results row, option or input it is from."""

    __slots__ = ("source", "what")
    what: str
    source: str

    def __new__(cls, text: str, what: str, source: str) -> Traced:
        made = super().__new__(cls, text)
        made.what, made.source = what, source
        return made


Part = str | Name
Text = tuple[Part, ...]


def say(template: str, /, **values: Part | Text | int) -> Text:
    """Fill ``{field}`` places of a sentence of ours with names, texts or whole numbers.

    The template is always our own string; values are inserted as parts and never read as templates.
    """
    parts: list[Part] = []
    for literal, field, _, _ in Formatter().parse(template):
        if literal:
            parts.append(literal)
        if field is None:
            continue
        value = values[field]
        if isinstance(value, tuple):
            parts.extend(value)
        elif isinstance(value, int):
            parts.append(counted(value))
        else:
            parts.append(value)
    return _joined(parts)


def _joined(parts: Iterable[Part]) -> Text:
    joined: list[Part] = []
    for part in parts:
        # A part of a kind of its own (a citation, a traced number) stays what it is.
        if type(part) is str and joined and type(joined[-1]) is str:
            joined[-1] += part
        elif part != "":
            joined.append(part)
    return tuple(joined)


def listed(names: Iterable[str], *, most: int = 8, last: str = "and") -> Text:
    """Names as a list in a sentence: ``a, b and c``; beyond ``most`` the rest is counted."""
    names = list(names)
    shown = names if len(names) <= most else names[: most - 1]
    parts: list[Part] = []
    for i, name in enumerate(shown):
        if i:
            parts.append(f" {last} " if i == len(names) - 1 else ", ")
        parts.append(Name(name))
    if len(shown) < len(names):
        parts.append(f" {last} {len(names) - len(shown):,} more")
    return _joined(parts)


def linked(sentences: Iterable[Text], between: str = "; ") -> Text:
    """Sentences one after the other as one, with ``between`` between them."""
    parts: list[Part] = []
    for i, sentence in enumerate(sentences):
        parts += [between] if i else []
        parts += sentence
    return _joined(parts)


def plain(text: Text | str, *, quote: str = "") -> str:
    """A sentence as one plain string; ``quote`` stands around each name."""
    if isinstance(text, str):
        return text
    return "".join(p if isinstance(p, str) else f"{quote}{p.text}{quote}" for p in text)


# Bidirectional controls and line separators would reorder or break the line they stand in; other
# control characters would move a terminal's cursor. They are shown by code point instead.
_UNSEEN_CATEGORIES = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"}
_HARMLESS = {"\u200d", "\u200c"}  # joiners: needed to write some scripts, and they reorder nothing


def printable(text: str) -> str:
    """Text with every control, bidirectional and separator character made visible as ``⟨U+XXXX⟩``."""
    if text.isprintable():
        return text
    return "".join(
        f"⟨U+{ord(c):04X}⟩"
        if c not in _HARMLESS and unicodedata.category(c) in _UNSEEN_CATEGORIES
        else c
        for c in text
    )


def _is_number(x: float | None) -> bool:
    return x is not None and math.isfinite(x)


def counted(n: float) -> str:
    """A count with thousands separated: ``12,345``; a weighted count keeps one decimal place."""
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.1f}"


def plural(n: int, noun: str, several: str = "") -> str:
    """A count with its noun: ``1 grader``, ``4 graders``."""
    return f"{n:,} {noun if n == 1 else several or noun + 's'}"


def often(n: float) -> str:
    """How often: ``never``, ``once``, ``29 times``."""
    return "never" if n == 0 else "once" if n == 1 else f"{counted(n)} times"


def percent(x: float | None, digits: int = 1) -> str:
    """A share in 0–1 as a percentage: ``12.3 %``."""
    return f"{100 * x:.{digits}f} %" if x is not None and _is_number(x) else "–"


def points(x: float | None, digits: int = 1) -> str:
    """A difference of shares in percentage points: ``22.9 points``."""
    return f"{100 * x:.{digits}f} points" if x is not None and _is_number(x) else "–"


def number(x: float | None, digits: int = 3) -> str:
    """A coefficient with a fixed number of decimal places: ``0.812``."""
    if x is None or not _is_number(x):
        return "–"
    text = f"{x:.{digits}f}"
    return text[1:] if text.startswith("-") and float(text) == 0 else text


def times(x: float | None) -> str:
    """A ratio: two decimal places below 10, one below 100, none above."""
    if x is None or not _is_number(x):
        return "–"
    digits = 3 if x < 1 else 2 if x < 10 else 1 if x < 100 else 0
    return f"{x:,.{digits}f}"
