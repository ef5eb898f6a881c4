"""The contract of a family of statistics.

A family is one file: for each statistic an :class:`~voirdire.estimand.Estimand` and ``solve`` (algebra
on the last axes, so that one call does all replicates), and for all of them ``parts``, which counts
their cells. The engine (:mod:`voirdire.inference`) makes values, intervals and tests of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voirdire.document import Block
from voirdire.estimand import Estimand
from voirdire.estimate import Estimate, Key
from voirdire.scene import Counts, Estimates, Rate, Scene, with_total
from voirdire.tally import Tally

Array = np.ndarray[Any, Any]
Given = Mapping[str, Any]

__all__ = [
    "Array",
    "Counts",
    "Estimates",
    "Family",
    "Given",
    "Part",
    "Rate",
    "Scene",
    "Statistic",
    "remembered",
    "with_total",
]


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """One statistic: what it is about, and the algebra from cells to values.

    Every function takes totals of shape ``(..., *cells)`` and what the part has ``given``, and
    returns ``(..., outputs)``: one output a key of the part.

    * ``solve``: the values; nan or inf where it cannot be said.
    * ``n``: the responses behind each output, from unweighted totals.
    * ``share``: events and trials, for statistics that are a share (or are made of one by
      ``from_share``): with these the interval at the edge is honest. ``from_share(p, totals)``
      turns such a share into the value.
    * ``contrast``: a quantity of each cluster whose total is tested to be below zero, one-sided.
    * ``null_variance``: how many times its variance as counted the contrast's variance is under the
      hypothesis (at least 1), from unweighted totals.
    * ``counts_p``: the same test where only counts are known.
    * ``events``: for each output, how many clusters hold an event that it rests on, from the rows and
      their numbers of clusters; with too few of them there is no interval.
    * ``unweighted``: counts of labels, which design weights do not change.
    * ``reason``: why outputs are undefined, where the estimand's own words do not say it.
    """

    estimand: Estimand
    solve: Callable[[Array, Given], Array]
    n: Callable[[Array, Given], Array]
    share: Callable[[Array, Given], tuple[Array, Array]] | None = None
    from_share: Callable[[Array, Array, Given], Array] | None = None
    contrast: Callable[[Array, Given], Array] | None = None
    null_variance: Callable[[Array, Given], Array] | None = None
    counts_p: Callable[[Array, Given], Array] | None = None
    counts_method: str = "wilson"
    events: Callable[[Array, Array, Given], Array] | None = None
    reason: Callable[[Array, Given], Sequence[str]] | None = None
    unweighted: bool = False
    listed: bool = True

    @property
    def name(self) -> str:
        return self.estimand.name


@dataclass(frozen=True, kw_only=True)
class Part:
    """One tally and the statistics that are solved on it, with the keys of their outputs.

    Where only counts are known ``tally`` is ``None`` and ``totals`` holds the cells (nan: unknown).
    ``no_interval`` is why none of the outputs has an interval: then none is made, and without a tally
    ``clusters`` says how many there are behind each output. ``undefined`` is why none of the outputs
    can be said at all.
    """

    tally: Tally | None
    asks: tuple[tuple[Statistic, tuple[Key, ...]], ...]
    given: Given = field(default_factory=dict)
    totals: Array | None = None
    no_interval: str = ""
    clusters: Sequence[int] | None = None
    undefined: str = ""


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of statistics that share their cells.

    ``parts`` counts, for one scene, everything the family can say there. ``finish`` may settle what
    needs the values of the whole family (which comparison is listed). ``blocks`` writes the
    family's place in the report; ``section`` is its heading and ``order`` its rank there.
    ``after_findings`` families are asked again once graders are flagged; only those that
    ``explores`` is set for are asked about slices that nobody named. ``kinds`` are the kinds of
    labels that the family can look at.
    """

    name: str
    statistics: tuple[Statistic, ...]
    parts: Callable[[Scene], Iterable[Part]]
    section: str
    order: int
    finish: Callable[[list[Estimate], Scene], list[Estimate]] | None = None
    blocks: Callable[[Scene, Estimates], Sequence[Block]] | None = None
    after_findings: bool = False
    explores: bool = False
    kinds: tuple[str, ...] = ("labels", "counts")


def remembered(given: Given, name: str, totals: Array, make: Callable[[], Any]) -> Any:
    """``make()``, once for each array of totals: the statistics of a part are solved on the same ones.

    Works where the part has given ``"memo": {}``. The array is kept beside the result, so that
    its identity stays its own.
    """
    memo = given.get("memo")
    if memo is None:
        return make()
    key = (name, id(totals))
    if key not in memo:
        memo[key] = (totals, make())
    return memo[key][1]
