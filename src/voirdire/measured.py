"""The coverage of intervals as it was measured: the table that ships, looked up by clusters.

``data/coverage.json`` is written by ``voirdire simulate coverage -o coverage.json``; docs/coverage.md says how.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

__all__ = ["coverage", "fewest_clusters", "table"]


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """The table as it ships: how it was made, ``columns`` and ``rows``."""
    text = (files("voirdire") / "data" / "coverage.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@lru_cache(maxsize=1)
def _by_case() -> dict[tuple[str, str], dict[int, float]]:
    """Coverage by number of clusters, for each case and method; where no interval was made there is none."""
    held = table()
    places = {name: i for i, name in enumerate(held["columns"])}
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in held["rows"]:
        made = row[places["runs"]] - row[places["without"]]
        if made:
            key = (row[places["case"]], row[places["method"]])
            found.setdefault(key, {})[row[places["clusters"]]] = row[places["held"]] / made
    return found


def fewest_clusters() -> int:
    """The smallest number of clusters that was measured."""
    return min(n for by_clusters in _by_case().values() for n in by_clusters)


def coverage(case: str, method: str, clusters: int) -> float:
    """The measured share of nominal 95 % intervals that hold the truth, in 0–1.

    Between the measured numbers of clusters it runs straight in 1 / clusters, the order of what an
    interval lacks; beyond them it is that of the nearest. Raises ``KeyError`` for what was not measured.

    >>> 0.9 < coverage("rate 0.5", "auto", 15) < 1
    True
    """
    by_clusters = _by_case()[case, method]
    if clusters in by_clusters:
        return by_clusters[clusters]
    known = sorted(by_clusters)
    if clusters < known[0]:
        return by_clusters[known[0]]
    if clusters > known[-1]:
        return by_clusters[known[-1]]
    low = max(n for n in known if n < clusters)
    high = min(n for n in known if n > clusters)
    along = (1 / low - 1 / clusters) / (1 / low - 1 / high)
    return by_clusters[low] + along * (by_clusters[high] - by_clusters[low])
