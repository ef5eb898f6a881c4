"""What a number is about: its question, whom it describes, when it cannot be said, and its source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Describes(StrEnum):
    """Whom a number describes. A coefficient of the bank says nothing of the grader alone."""

    GRADER = "grader"
    BANK = "bank"
    BOTH = "both"
    PANEL = "panel"


class Scale(StrEnum):
    """The scale on which an interval is made, before it is brought back."""

    LOGIT = "logit"  # shares and rates in 0–1
    FISHER_Z = "fisher_z"  # correlations and kappas in −1 to 1
    LOG = "log"  # ratios above 0
    LOG_ONE_MINUS = "log_one_minus"  # alpha-like coefficients, at most 1 and without a lower end
    PLAIN = "plain"
    NONE = "none"  # counts: no interval is made


class Unit(StrEnum):
    """How a value is written."""

    COUNT = "count"
    SHARE = "share"
    POINTS = "points"
    RATIO = "ratio"
    COEFFICIENT = "coefficient"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a formula comes from."""

    text: str
    equation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimand:
    """One statistic: what it asks, what it needs, and what its value means.

    ``keys`` are the columns of the results table that tell its rows apart, besides the slice.
    ``low`` and ``high`` bound the value (``None``: no bound). ``formula`` is TeX, in the letters of
    the source; ``conventions`` says where tools differ and what is done here.
    """

    name: str
    title: str
    question: str
    describes: Describes
    keys: tuple[str, ...]
    unit: Unit
    scale: Scale
    needs: tuple[str, ...] = ("label",)
    low: float | None = None
    high: float | None = None
    reading: str = ""
    moves_with: tuple[str, ...] = ()
    undefined_when: str
    source: Source
    formula: str = ""
    conventions: str = ""
