"""Rows as a reader hands them over: canonical columns of text, with the place that each row came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from voirdire.errors import InputError
from voirdire.wording import Text, printable

if TYPE_CHECKING:
    import polars as pl

CANONICAL = (
    "response",
    "grader",
    "label",
    "outcome",
    "line",
    "cluster",
    "vote",
    "phrasing",
    "weight",
    "stratum",
)
# Columns of our own while labels are read and assembled: no column of a user has a zero byte in its
# name. The question that a response of a checklist answers, and the length of a string of bits.
QUESTION, LENGTH = "\0question", "\0length"
PART, ROW = "\0part", "\0row"  # of all inputs, and within it
CODE = "\0code"  # of the response, so that millions of ids are compared as integers
BLANK = "\0blank"  # a cell of a checklist in which nothing stands at all
SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a cell stands in its file: the line as an editor counts it, and the column's name.

    ``unit`` is ``"row"`` where a format has no lines.
    """

    line: int
    column: str = ""
    unit: str = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What one input of a checklist says of its lines, which are named there without their question.

    ``question`` is the column that names the question, empty where there is none; ``said`` that the
    user named it. ``order`` has lines in the order of their positions, by question (``""`` for all),
    ``texts`` what a line asks, by question and line. ``padded`` says that every response has a row
    for each line of the longest checklist, ``shared`` that all questions have the same lines.
    """

    question: str = ""
    said: bool = False
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    texts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    padded: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of one input before cleaning.

    ``frame`` has the canonical columns that the input has (all text, blank cells null; ``weight``
    may be a number) and every other column as a tag, in the input's order. ``place(i)`` says where
    row ``i`` came from. In a count table (``kind="counts"``) ``response`` is absent, ``weight`` is
    the count of a class (null: not printed) and the row of a grader without label is its total.
    In a checklist (``kind="checklist"``) a row is a verdict, ``lines`` says what is known of its lines,
    and a column :data:`QUESTION` names the question of a response where there is one.
    ``order`` is the graders' order where the layout gives one (the columns of a wide table).
    ``facts`` are facts on graders that the format carries, ``classes`` a scale that it carries.
    ``seen`` are all graders of the input, also those that ``--graders`` left out. ``absent`` are
    options whose column this input does not have: an error where no input has it; ``unmatched`` are
    recodes that match nothing here: a notice where they match nothing anywhere.
    ``height`` is how many rows the input has, where a row of ``frame`` is not one of them.
    ``logged`` rows come from a log that may hold labels and verdicts on lines side by side, and
    ``format`` is then the name of its reader. ``scope``
    is what the input says of all its responses (task, model): where inputs differ in it, it becomes
    part of the responses' ids.
    """

    frame: pl.DataFrame
    name: str
    stem: str
    sha256: str
    layout: str
    kind: str = "labels"
    place: Callable[[int], Place] = field(default=lambda i: Place(line=i + 1))
    order: tuple[str, ...] = ()
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    carried: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[Text, ...] = ()
    seen: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    lines: Lines | None = None
    height: int | None = None
    logged: bool = False
    format: str = ""
    scope: Mapping[str, str] = field(default_factory=dict)


def where(parts: Sequence[Rows], part: int, row: int, column: str = "") -> str:
    """Where a row stands: file, line and column (that of the label where no other is meant)."""
    place = parts[part].place(row)
    column = column or place.column
    column = f", column {printable(column)}" if column else ""
    return f"{printable(parts[part].name)}, {place.unit} {place.line}{column}"


def short(text: str) -> str:
    """A text as it stands in a message: harmless, and cut where it is long."""
    text = printable(text)
    return text if len(text) <= 60 else text[:59] + "…"


def raise_problems(problems: Sequence[str], total: int, remedy: str) -> None:
    """Raise one :class:`InputError` with the first problems, how many there are, and what settles them."""
    more = f"\n… and {total - SHOWN:,} more." if total > SHOWN else ""
    raise InputError("\n".join(problems[:SHOWN]) + more + ("\n" + remedy if remedy else ""))
