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
from voirdire.estimate import Estimate, Key
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
    "Panel",
    "Paragraph",
    "Paste",
    "Responses",
    "Table",
    "TagColumn",
    "Tone",
    "Verdicts",
    "cell",
    "display",
    "display_edge",
    "display_interval",
    "worded",
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
    """One cell: a number, a text or a name, with an interval or the reason for its absence.

    ``statistic`` and ``key`` are those of the estimate that the number was made from, where there
    is one: they lead a reader to the responses behind it (:mod:`voirdire.selections`).
    """

    kind: Kind
    value: float | str | Text | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    at_least: bool = False
    statistic: str = ""
    key: Key | None = None


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
            statistic=value.statistic,
            key=value.key,
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


def worded(text: str, estimate: Estimate | None) -> Cell:
    """A cell that says an estimate’s number in words of its own, such as ``3 / 120``."""
    made = cell(text)
    if estimate is None:
        return made
    return replace(made, statistic=estimate.statistic, key=estimate.key)


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
class Panel:
    """Who was audited, for a table of graders beside the estimates.

    ``roles`` has ``gold``, ``reference``, ``person`` or nothing for each of ``graders``. ``classes``
    are the ordered ones, lowest first, then those ``off_scale``; both are empty for a checklist,
    whose ``cuts`` are the numbers of lines that a gate asks for.
    """

    graders: tuple[str, ...]
    roles: tuple[str, ...]
    gold: str = ""
    scale: tuple[str, ...] = ()
    off_scale: tuple[str, ...] = ()
    ordered: bool = False
    rates: tuple[str, ...] = ()
    checklist: bool = False
    cuts: tuple[int, ...] = ()
    lines: int = 0
    flagged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TagColumn:
    """A tag with few values: ``codes`` has one byte a response, the place in ``values`` (255: none)."""

    name: str
    values: tuple[str, ...]
    codes: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """The verdicts of a checklist.

    ``given`` has for each grader ``responses × width`` bytes: 0 no, 1 yes, 2 no verdict, 3 no line
    there. ``checklists`` are the lines of each of ``questions`` in order, ``question`` is the place of
    each response's question. ``texts`` is what a line asks, where that is known.
    """

    width: int
    questions: tuple[str, ...]
    question: tuple[int, ...]
    checklists: tuple[tuple[str, ...], ...]
    given: tuple[bytes, ...]
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """The responses behind the numbers, column by column; plain data that every format can write.

    ``states`` has one byte a response for each of ``graders``: the place of its class in ``classes``,
    or ``len(classes)`` and the place of how its call ended in ``outcomes``. ``clusters`` is empty
    where every response is its own; ``cluster`` is the place of each response's. ``weights`` are
    frequencies or design weights, empty where all weigh the same. ``votes`` has for each grader one
    byte a vote in each response, coded as ``states``. ``phrased`` is grader by phrasing, ``steps``
    step by grader, one byte a response: a class, or the total of a checklist (254: not read, 255:
    not asked).
    ``voters`` says whose majority a grader is held against; the empty name is the whole panel.
    ``slices`` has the tags and values that make each slice, ``rates`` the classes of each rate.
    ``texts`` holds the columns that the user asked for, and nothing else from the responses’ texts.
    """

    ids: tuple[str, ...]
    graders: tuple[str, ...]
    classes: tuple[str, ...]
    outcomes: tuple[str, ...]
    states: tuple[bytes, ...]
    gold: str = ""
    scale: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    cluster: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    frequency: bool = False
    tags: tuple[TagColumn, ...] = ()
    votes: tuple[tuple[bytes, ...], ...] = ()
    phrasings: tuple[str, ...] = ()
    phrased: tuple[tuple[bytes, ...], ...] = ()
    steps: tuple[tuple[str, tuple[bytes, ...]], ...] = ()
    voters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    slices: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    verdicts: Verdicts | None = None
    texts: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report: blocks to read, and the results and findings behind them.

    ``panel`` and ``responses`` are there where an audit made the report: whom it is about, and the
    responses behind its numbers (``None`` where only counts are known).
    """

    title: str
    summary: Text
    blocks: tuple[Block, ...]
    estimates: tuple[Estimate, ...]
    findings: tuple[Finding, ...]
    inputs: tuple[Input, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    panel: Panel | None = None
    responses: Responses | None = None

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
