"""How often the intervals of differences hold the truth, as it was measured: the table that ships."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """The table of ``data/difference_coverage.json``: how it was made, ``columns`` and ``rows``."""
    text = (files("voirdire") / "data" / "difference_coverage.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def measured(clusters: int) -> tuple[int, float, float]:
    """The nearest measured number of clusters of several responses, at most ``clusters`` where there is
    one, with the lowest and the highest share of 95 % intervals there that held the truth."""
    held = table()
    place = {name: i for i, name in enumerate(held["columns"])}
    shares: dict[int, list[float]] = {}
    for row in held["rows"]:
        if row[place["size"]] > 1:
            share = row[place["held"]] / row[place["runs"]]
            shares.setdefault(row[place["clusters"]], []).append(share)
    at = max((c for c in shares if c <= clusters), default=min(shares))
    return at, min(shares[at]), max(shares[at])
