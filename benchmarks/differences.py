"""How often the interval of a difference of paired shares holds the truth.

    python -m benchmarks.differences > src/voirdire/data/difference_coverage.json

Clusters are drawn from a Dirichlet distribution over (gained, lost, neither) with an intraclass
correlation, responses within them from a multinomial; both are seeded. Half a minute for each 20,000 runs.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from voirdire.estimate import Key
from voirdire.inference import Settings, estimates
from voirdire.stats import comparison
from voirdire.stats.base import Part
from voirdire.tally import of_rows

Array = np.ndarray[Any, Any]

RUNS = 1000
SEED = 20261130
# Clusters, responses in each, their intraclass correlation.
DESIGNS = (
    *((c, 10, 0.2) for c in (10, 15, 20, 30, 50, 100)),
    *((n, 1, 0.0) for n in (50, 100, 300, 1000)),
)
# The shares that are gained and lost.
CHANGES = ((0.005, 0.005), (0.01, 0.0), (0.03, 0.0), (0.05, 0.01), (0.1, 0.02), (0.1, 0.1))
COLUMNS = ("clusters", "size", "correlation", "gained", "lost", "runs", "held", "above", "below")


def sample(
    rng: np.random.Generator, design: tuple[int, int, float], change: tuple[float, float]
) -> Array:
    """Responses gained, lost and neither, ``(clusters, 3)``."""
    clusters, size, correlation = design
    shares = np.array([*change, 1 - sum(change)])
    if correlation:
        amounts = np.maximum(shares * (1 / correlation - 1), 1e-9)
        shares = rng.dirichlet(amounts, size=clusters)
    return np.asarray(rng.multinomial(size, shares, size=None if correlation else clusters))


def covered(
    design: tuple[int, int, float], change: tuple[float, float], runs: int = RUNS
) -> list[Any]:
    """One row of the table: in how many runs the interval holds the truth, lies above and below it."""
    place = DESIGNS.index(design) * len(CHANGES) + CHANGES.index(change)
    rng = np.random.default_rng([SEED, place])
    truth = change[0] - change[1]
    statistic = comparison.SHARE_OF_CLASS.minus
    asks = ((statistic, (Key(grader="new", other="old", class_="a"),)),)
    counts = [0, 0, 0]
    for _ in range(runs):
        drawn = sample(rng, design, change)
        rows = np.zeros((len(drawn), 1, 4), dtype=np.int64)
        rows[:, 0, comparison.GAINED] = drawn[:, 0]
        rows[:, 0, comparison.LOST] = drawn[:, 1]
        rows[:, 0, comparison.NEITHER] = drawn[:, 2]
        part = Part(tally=of_rows(rows), asks=asks, given={"places": {"label_share": (0, 1)}})
        (made,), _ = comparison.settled(part, estimates([part], Settings()), 0.95)
        assert made.interval is not None
        counts[1 if truth < made.interval.low else 2 if truth > made.interval.high else 0] += 1
    return [*design, *change, runs, *counts]


def main() -> None:
    rows = [covered(design, change) for design in DESIGNS for change in CHANGES]
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    head = json.dumps({"runs": RUNS, "seed": SEED, "level": 0.95, "columns": COLUMNS})
    sys.stdout.write(f'{head[:-1]}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
