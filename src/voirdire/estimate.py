"""A value with its interval and what it rests on, or the reason why it cannot be said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from voirdire.estimand import Estimand

KEY_COLUMNS = ("statistic", "grader", "other", "class", "to_class", "line", "cut", "slice")
RESULT_COLUMNS = (
    *KEY_COLUMNS,
    "value",
    "low",
    "high",
    "level",
    "method",
    "n",
    "clusters",
    "describes",
    "reason",
)


@dataclass(frozen=True, slots=True)
class Undefined:
    """A value that cannot be said, with the reason."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval with the method that made it. ``seed`` and ``replicates`` are set for a bootstrap."""

    low: float
    high: float
    level: float
    method: str
    seed: int | None = None
    replicates: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The columns that tell one estimate from another; empty where they do not apply."""

    grader: str = ""
    other: str = ""
    class_: str = ""
    to_class: str = ""
    line: str = ""
    cut: str = ""
    slice: str = ""

    def __iter__(self) -> Iterator[str]:
        return iter(
            (
                self.grader,
                self.other,
                self.class_,
                self.to_class,
                self.line,
                self.cut,
                self.slice,
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One row of the results: a value (or why there is none), its interval and what it rests on.

    ``listed`` is false for estimates that only checks read. ``p`` is the one-sided p-value of the
    statistic's own null hypothesis, where it has one. ``no_interval`` says why an interval that one
    would expect is missing. ``edge`` is the interval for rare events where bootstrap percentiles stand
    as the interval of a share at its edge; it is no part of the row.
    """

    estimand: Estimand
    key: Key
    value: float | Undefined
    interval: Interval | None = None
    n: float | None = None
    clusters: int | None = None
    p: float | None = None
    no_interval: str = ""
    edge: Interval | None = None
    listed: bool = True

    @property
    def statistic(self) -> str:
        return self.estimand.name

    @property
    def number(self) -> float | None:
        """The value, or ``None`` where it is undefined."""
        return None if isinstance(self.value, Undefined) else self.value

    @property
    def reason(self) -> str:
        return self.value.reason if isinstance(self.value, Undefined) else ""

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from voirdire import notebook

        return notebook.estimate_html(self)

    def row(self) -> dict[str, Any]:
        """The estimate as a row of the results table (columns of the contract, unrounded)."""
        interval = self.interval
        whole = self.n is not None and float(self.n).is_integer()
        key = self.key
        return {
            "statistic": self.estimand.name,
            "grader": key.grader,
            "other": key.other,
            "class": key.class_,
            "to_class": key.to_class,
            "line": key.line,
            "cut": key.cut,
            "slice": key.slice,
            "value": self.number,
            "low": interval.low if interval else None,
            "high": interval.high if interval else None,
            "level": interval.level if interval else None,
            "method": interval.method if interval else "",
            "n": (int(self.n) if whole else self.n) if self.n is not None else None,
            "clusters": self.clusters,
            "describes": str(self.estimand.describes),
            "reason": self.reason,
        }
