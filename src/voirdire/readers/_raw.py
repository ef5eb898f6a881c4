"""The raw table: every cell of a file as text, or null where it is blank, with the place of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from voirdire.errors import InputError
from voirdire.wording import Text, printable

SHOWN_PROBLEMS = 20
SHOWN_LETTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTable:
    """One file as a table of text. No cell has been interpreted; a blank cell is null.

    ``line(i)`` is the line of row ``i`` as an editor counts it (``unit`` is ``"row"`` where a format
    has no lines). ``ambiguous`` has the header names that stand over several columns, each with the
    names that those columns have here. ``mixed`` has, for a column of JSON, how many values stand
    there both as a number and as text, with one of them. ``own`` says that voirdire wrote the file.
    """

    name: str
    stem: str
    format: str
    frame: pl.DataFrame
    line: Callable[[int], int]
    unit: str = "line"
    own: bool = False
    ambiguous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    mixed: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    carried: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[Text, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in file order."""
        return self.frame.columns


def shown(value: str | None) -> str:
    """A cell as it stands in a message: on one line, harmless, and cut where it is long."""
    if value is None:
        return "a blank cell"
    cut = value if len(value) <= SHOWN_LETTERS else value[:SHOWN_LETTERS] + "…"
    return f'value "{printable(cut)}"'


def shown_name(name: str) -> str:
    """A column's name as it stands in a message."""
    return printable(name if len(name) <= SHOWN_LETTERS else name[:SHOWN_LETTERS] + "…")


class Problems:
    """What is wrong with one input: all of it counted, the first of it kept with its place.

    Problems are raised together, so that a file is mended in one go and not cell by cell.
    """

    def __init__(self, name: str, *, unit: str = "line") -> None:
        self.name = printable(name)
        self.unit = unit
        self.count = 0
        self._kept: list[str] = []

    @property
    def room(self) -> int:
        """How many further problems would be shown one by one."""
        return max(0, SHOWN_PROBLEMS - len(self._kept))

    def add(self, line: int, what: str, *, column: str = "") -> None:
        """Record one problem: ``what`` is the rest of the sentence, without its full stop."""
        self.count += 1
        if len(self._kept) < SHOWN_PROBLEMS:
            where = f", column {shown_name(column)}" if column else ""
            self._kept.append(f"{self.unit} {line:,}{where}: {what}")

    def add_unseen(self, count: int) -> None:
        """Count problems beyond those that are shown."""
        self.count += count

    def raise_if_any(self, settle: str = "") -> None:
        """Raise one :class:`InputError` with everything recorded and the sentence that settles it."""
        if not self.count:
            return
        end = f" {settle}" if settle else ""
        if self.count == 1:
            raise InputError(f"{self.name}, {self._kept[0]}.{end}")
        more = self.count - len(self._kept)
        lines = [f"{self.name}: {self.count:,} problems.", *(f"  {k}" for k in self._kept)]
        if more:
            lines.append(f"  … and {more:,} more")
        if settle:
            lines.append(settle)
        raise InputError("\n".join(lines))


def blank_to_null(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with every cell that is empty or only white space turned into null."""
    text = pl.col(pl.String)
    return frame.with_columns(pl.when(text.str.strip_chars().str.len_bytes() > 0).then(text))


def unique_names(names: Iterable[str]) -> tuple[list[str], dict[str, tuple[str, ...]], list[str]]:
    """Names under which columns can be told apart: the names, the ambiguous ones, the made-up ones.

    The first of several columns of one name keeps it; a column without a name is called by its
    position. Positions count from 1, as a spreadsheet does.
    """
    given = list(names)
    taken = set(given)
    unique: list[str] = []
    same: dict[str, list[str]] = {}
    unnamed: list[str] = []
    for position, name in enumerate(given, start=1):
        mine = name
        if not name or name in same:
            mine = f"{name} (column {position})" if name else f"column {position}"
            while mine in taken:
                mine += "'"
            taken.add(mine)
        unique.append(mine)
        if name:
            same.setdefault(name, []).append(mine)
        else:
            unnamed.append(mine)
    return unique, {n: tuple(c) for n, c in same.items() if len(c) > 1}, unnamed
