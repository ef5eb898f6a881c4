"""What a ledger is made of: printed figures, what they come out as, and whether the two agree.

A paper is one file in this folder: a :class:`Reproduction` with the file of its printed figures
and a function that gives its lines. Each line is recomputed from a copy of the figures in which its
own printed value is blank, so that nothing can be echoed as if it were recomputed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any, Generic, TypeVar

from voirdire.document import Input
from voirdire.wording import Text, plain

Step = str | int
Path = tuple[Step, ...]

SLACK = 1e-9  # of floating point, far below any printed digit


P = TypeVar("P", bound="Paper")


class Basis(StrEnum):
    """What a line rests on."""

    BANK = "recomputed from the verdicts that ship"
    COUNTS = "recomputed from the printed counts"
    FIGURES = "recomputed from other printed figures"
    SIMULATED = "simulated anew, on another random stream"
    UNDETERMINED = "not determined by what is printed"
    LABELS = "not recomputable: the labels are not public"


class Holds(StrEnum):
    YES = "yes"
    NO = "no"
    NOT_DETERMINED = "not determined"
    NOT_RECOMPUTABLE = "not recomputable"


class NotPrinted(Exception):
    """A figure that a recomputation needs is not printed."""


class Contradiction(Exception):
    """What a recomputation needs cannot all be true."""

    word = "contradiction"


class Unsaid(Contradiction):
    """The audit does not say what the paper prints."""

    word = "undefined"


@dataclass(frozen=True, slots=True)
class Value:
    """What a figure comes out as: one number, or all that what is printed leaves possible.

    ``slack`` is what the rounding of the printed figures that it is made of may add.
    """

    low: float
    high: float
    slack: float = 0.0

    @classmethod
    def of(cls, x: float, slack: float = 0.0) -> Value:
        return cls(float(x), float(x), slack)

    def times(self, factor: float) -> Value:
        return Value(self.low * factor, self.high * factor, self.slack * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One printed figure beside what it comes out as.

    ``path`` leads to the figure among those that are printed, ``checks`` to others that the line
    checks along with it. ``value`` is ``None`` where nothing at all can be said of the figure.
    """

    section: str
    what: Text
    path: Path
    checks: tuple[Path, ...]
    printed: Decimal | int | str | None
    value: Value | str | None
    tolerance: float
    rests_on: Basis
    how: str
    unit: str = ""

    @property
    def holds(self) -> Holds:
        if isinstance(self.value, str):
            return Holds.YES if self.value == self.printed else Holds.NO
        unknown = Holds.NOT_RECOMPUTABLE if self.rests_on is Basis.LABELS else Holds.NOT_DETERMINED
        if self.value is None or self.printed is None or isinstance(self.printed, str):
            return unknown
        printed, room = float(self.printed), self.tolerance + SLACK
        if not self.value.low - room <= printed <= self.value.high + room:
            return Holds.NO
        if abs(self.value.low - printed) <= room and abs(self.value.high - printed) <= room:
            return Holds.YES
        return unknown

    @property
    def basis(self) -> Basis:
        """What the line rests on in the end: a figure that is not settled is not recomputed."""
        if self.holds is Holds.NOT_DETERMINED:
            return Basis.UNDETERMINED
        if self.holds in (Holds.YES, Holds.NO) and self.rests_on is Basis.LABELS:
            return Basis.COUNTS  # the labels are not needed: counts leave just this, or exclude it
        return self.rests_on

    def record(self) -> dict[str, Any]:
        """The line as plain values, unrounded."""
        number = isinstance(self.value, Value)
        settled = isinstance(self.value, Value) and self.value.low == self.value.high
        low, high = (self.value.low, self.value.high) if isinstance(self.value, Value) else (0, 0)
        return {
            "section": self.section,
            "what": plain(self.what),
            "unit": self.unit,
            "printed": None if self.printed is None else str(self.printed),
            "recomputed": (low if settled else None) if number else self.value,
            "lowest": low if number and math.isfinite(low) else None,
            "highest": high if number and math.isfinite(high) else None,
            "tolerance": self.tolerance,
            "holds": str(self.holds),
            "basis": str(self.basis),
            "how": self.how,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All lines of one paper; ``titles`` says what each of its tables is about.

    ``note`` says how figures are recomputed, ``later`` which ones the ledger does not hold yet.
    """

    name: str
    title: str
    lines: tuple[Line, ...]
    titles: Mapping[str, str]
    sources: tuple[Input, ...] = ()
    note: str = ""
    later: str = ""

    @property
    def holds(self) -> bool:
        """Whether no line comes out as something else than what is printed."""
        return not any(line.holds is Holds.NO for line in self.lines)

    def count(self, basis: Basis) -> int:
        return sum(line.basis is basis for line in self.lines)


# --- what is printed ----------------------------------------------------------------------------


class Paper:
    """The printed figures. A blank one is never 0: asking for it raises :class:`NotPrinted`."""

    def __init__(self, figures: Mapping[str, Any]) -> None:
        self.figures = figures

    def raw(self, *path: Step) -> Any:
        """What stands at a path, ``None`` where nothing is printed."""
        found: Any = self.figures
        for step in path:
            if found is None:
                return None
            found = found.get(step) if isinstance(found, Mapping) else found[int(step)]
        return found

    def at(self, *path: Step) -> Any:
        """What is printed at a path."""
        found = self.raw(*path)
        if found is None:
            raise NotPrinted("/".join(map(str, path)))
        return found

    def number(self, *path: Step) -> float:
        return float(self.at(*path))

    def half(self, *path: Step, rounded: bool = False) -> float:
        """Half of the last printed digit. Whole numbers are exact, unless they are ``rounded``."""
        return half_of_last_digit(self.at(*path), rounded=rounded)

    def with_figure(self: P, path: Path, figure: Any) -> P:
        """The same figures with another one at the path; this paper stays as it is."""
        return type(self)(_with(self.figures, path, figure))

    def blank(self: P, *path: Step) -> P:
        """The same figures without the one at the path."""
        return self.with_figure(path, None)


def _with(held: Any, path: Path, figure: Any) -> Any:
    if not path:
        return figure
    copied: Any = dict(held) if isinstance(held, Mapping) else list(held)
    copied[path[0]] = _with(copied[path[0]], path[1:], figure)
    return copied


def half_of_last_digit(printed: Any, *, rounded: bool = False) -> float:
    """``0.05`` for ``24.8``; 0 for a whole number, unless it is ``rounded``: then ``0.5``."""
    if isinstance(printed, Decimal):
        return 0.5 * 10.0 ** int(printed.as_tuple().exponent)
    if isinstance(printed, float):
        return half_of_last_digit(Decimal(repr(printed)))
    return 0.5 if rounded else 0.0


def rows_of(file: str) -> int:
    """How many rows a table that ships has below its header."""
    return len(_shipped(file)[0].splitlines()) - 1


@cache
def _shipped(file: str) -> tuple[str, str]:
    from importlib.resources import files

    content = (files("voirdire") / "data" / file).read_bytes()
    return content.decode("utf-8"), hashlib.sha256(content).hexdigest()


def published(file: str) -> dict[str, Any]:
    """The figures in a file that ships, each with the digits that are printed."""
    figures: dict[str, Any] = json.loads(_shipped(file)[0], parse_float=Decimal)
    return figures


def source_of(file: str, rows: int) -> Input:
    """A file that ships as an input of the ledger."""
    return Input(name=file, sha256=_shipped(file)[1], rows=rows)


# From the paper without the figure; a lambda in a loop also holds what the loop runs over.
Recompute = Callable[..., "Value | str | None"]


# --- lines --------------------------------------------------------------------------------------


class Book(Generic[P]):
    """Lines as they are added; each is recomputed from figures that lack its own."""

    def __init__(self, paper: P) -> None:
        self.paper, self.lines = paper, list[Line]()

    def add(
        self,
        section: str,
        what: Text | str,
        path: Path,
        recompute: Recompute,
        how: str,
        *,
        rests_on: Basis = Basis.FIGURES,
        unit: str = "",
        rounded: bool = False,
        checks: Iterable[Path] = (),
    ) -> None:
        printed = self.paper.raw(*path)
        if isinstance(printed, list):
            printed = list_in_words(printed)
        try:
            value = recompute(self.paper.blank(*path))
        except NotPrinted as needed:
            value, how = None, f"{how}; not printed: {needed}"
        except Contradiction as found:
            value, how = found.word, f"{how}; {found}"
        tolerance = 0.0
        if printed is not None and not isinstance(printed, str):
            tolerance = half_of_last_digit(printed, rounded=rounded)
            tolerance += value.slack if isinstance(value, Value) else 0.0
        self.lines.append(
            Line(
                section=section,
                what=(what,) if isinstance(what, str) else what,
                path=path,
                checks=tuple(checks),
                printed=printed,
                value=value,
                tolerance=tolerance,
                rests_on=rests_on,
                how=how,
                unit=unit,
            )
        )

    def closed(
        self,
        section: str,
        what: Text | str,
        path: Path,
        how: str = "the labels are not public",
        *,
        between: Recompute | None = None,
        unit: str = "",
    ) -> None:
        """A figure that needs labels; ``between`` is what counts leave possible for it."""
        self.add(
            section, what, path, between or (lambda p: None), how, rests_on=Basis.LABELS, unit=unit
        )


def list_in_words(items: Sequence[Any]) -> str:
    return ", ".join(map(str, items)) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """A paper whose figures can be reproduced.

    ``name`` is what stands on the command line, ``file`` holds the printed figures, ``titles`` says
    what each section of the ledger is about, and ``lines`` makes the ledger's lines of the figures.
    ``tables`` are files with rows that ship and that they are recomputed from.
    """

    name: str
    title: str
    file: str
    titles: Mapping[str, str]
    lines: Callable[[Mapping[str, Any]], tuple[Line, ...]]
    tables: tuple[str, ...] = ()
    note: str = ""
    later: str = ""
