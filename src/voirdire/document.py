"""The report as data: blocks that every format renders in its own way.

Values in a document are unrounded; each :class:`Cell` says what kind of number it holds and every
format writes it with :func:`display`, so that all formats show the same digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from voirdire.estimand import Unit
from voirdire.estimate import Estimate
from voirdire.finding import Finding
from voirdire.wording import Name, Text, counted, number, percent, points, times

__all__ = [
    "Block",
    "Cell",
    "Column",
    "Document",
    "Figure",
    "FindingBlock",
    "Heading",
    "Input",
    "Kind",
    "Paragraph",
    "Paste",
    "Table",
    "Tone",
    "cell",
    "display",
    "display_edge",
    "display_interval",
]


class Kind(StrEnum):
    """What a cell holds, and so how it is written and aligned."""

    TEXT = "text"
    NAME = "name"
    COUNT = "count"
    SHARE = "share"
    POINTS = "points"
    RATIO = "ratio"
    COEFFICIENT = "coefficient"


class Tone(StrEnum):
    """How a paragraph is set."""

    PLAIN = "plain"
    NOTE = "note"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: a number, a text or a name, with an interval or the reason for its absence."""

    kind: Kind
    value: float | str | Text | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    at_least: bool = False


def cell(value: Estimate | Name | str | Text | float | None, kind: Kind | None = None) -> Cell:
    """A cell for an estimate, a name, a text or a number (``kind`` is needed for bare numbers)."""
    if isinstance(value, Estimate):
        kinds = {
            Unit.COUNT: Kind.COUNT,
            Unit.SHARE: Kind.SHARE,
            Unit.POINTS: Kind.POINTS,
            Unit.RATIO: Kind.RATIO,
            Unit.COEFFICIENT: Kind.COEFFICIENT,
        }
        interval = value.interval
        return Cell(
            kind=kind or kinds[value.estimand.unit],
            value=value.number,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            reason=value.reason or value.no_interval,
        )
    if isinstance(value, Name):
        return Cell(kind=Kind.NAME, value=value.text)
    if isinstance(value, str | tuple):
        return Cell(kind=kind or Kind.TEXT, value=value)
    if value is None:
        return Cell(kind=kind or Kind.TEXT, value=None)
    if kind is None:
        raise TypeError("a bare number needs its kind")
    return Cell(kind=kind, value=value)


def display(cell: Cell) -> str:
    """The value of a numeric or plain-text cell as text, without its interval; ``–`` where there is none."""
    value = cell.value
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return "".join(p if isinstance(p, str) else p.text for p in value)
    return ("≥ " if cell.at_least else "") + _number(cell.kind, value)


def _number(kind: Kind, value: float) -> str:
    match kind:
        case Kind.COUNT:
            return counted(value)
        case Kind.SHARE:
            return percent(value)
        case Kind.POINTS:
            return points(value).removesuffix(" points")
        case Kind.RATIO:
            return times(value)
        case _:
            return number(value)


def display_interval(cell: Cell) -> str:
    """The interval of a cell as text, ``[low, high]``, or the empty string."""
    if cell.low is None or cell.high is None:
        return ""
    low, high = _number(cell.kind, cell.low), _number(cell.kind, cell.high)
    return f"[{low.removesuffix(' %')}, {high.removesuffix(' %')}]"


METHODS_AT_EDGE = {"korn_graubard": "Korn–Graubard", "clopper_pearson": "exact binomial"}


def display_edge(estimate: Estimate) -> str:
    """The interval for rare events that stands beside percentiles, by its method; empty for none."""
    edge = estimate.edge
    if edge is None:
        return ""
    ends = display_interval(replace(cell(estimate), low=edge.low, high=edge.high))
    return f"{METHODS_AT_EDGE[edge.method]} {ends}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    title: str | Name
    kind: Kind = Kind.TEXT
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    text: Text
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells under columns. ``wide`` tables may be folded by narrow formats."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: Text = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure by the name of its plugin, with the data it draws and the text that stands for it."""

    name: str
    title: str
    data: Mapping[str, Any]
    alt: Text
    caption: Text = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingBlock:
    finding: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Paste:
    """Lines meant to be pasted: into a paper, or (``command``) into a shell, then never wrapped."""

    title: str
    lines: tuple[Text, ...]
    command: bool = False


Block = Heading | Paragraph | Table | Figure | FindingBlock | Paste


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input file: its name without folders, the SHA-256 of its bytes, its rows."""

    name: str
    sha256: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report: blocks to read, and the results and findings behind them."""

    title: str
    summary: Text
    blocks: tuple[Block, ...]
    estimates: tuple[Estimate, ...]
    findings: tuple[Finding, ...]
    inputs: tuple[Input, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""

    def sections(self) -> Iterable[tuple[Heading, list[Block]]]:
        """The blocks grouped under their second-level headings."""
        heading, held = Heading(text=""), list[Block]()
        for block in self.blocks:
            if isinstance(block, Heading) and block.level == 2:
                if held:
                    yield heading, held
                heading, held = block, []
            else:
                held.append(block)
        if held:
            yield heading, held
