"""Rows as a reader hands them over: canonical columns of text, with the place that each row came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from voirdire.wording import Text

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a cell stands in its file: the line as an editor counts it, and the column's name.

    ``unit`` is ``"row"`` where a format has no lines.
    """

    line: int
    column: str = ""
    unit: str = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of one input before cleaning.

    ``frame`` has the canonical columns that the input has (all text, blank cells null; ``weight``
    may be a number) and every other column as a tag, in the input's order. ``place(i)`` says where
    row ``i`` came from. In a count table (``kind="counts"``) ``response`` is absent, ``weight`` is
    the count of a class (null: not printed) and the row of a grader without label is its total.
    ``order`` is the graders' order where the layout gives one (the columns of a wide table).
    ``facts`` are facts on graders that the format carries, ``classes`` a scale that it carries.
    ``seen`` are all graders of the input, also those that ``--graders`` left out. ``absent`` are
    options whose column this input does not have: an error where no input has it; ``unmatched`` are
    recodes that match nothing here: a notice where they match nothing anywhere.
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
