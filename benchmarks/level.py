"""How often the one-sided test of the collapse rule rejects where the ratio just is the threshold.

Run with ``python benchmarks/level.py``; half a minute. Prints the rejection rate as a multiple
of the nominal level, for the test as it is and without the variance of the hypothesis.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr

BELOW = 1 / 3
RUNS, BLOCK = 20_000, 500
LEVELS = (0.05, 0.05 / 24)


def drawn(
    random: np.random.Generator, share: float, clusters: int, size: int, icc: float, paired: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Counts of a class per cluster for both graders, ``(runs, clusters)``, at the threshold ratio."""
    rate = np.full((BLOCK, clusters), share)
    if icc:
        rate = random.beta(share * (1 - icc) / icc, (1 - share) * (1 - icc) / icc, rate.shape)
    other = random.binomial(size, rate)
    own = random.binomial(other, BELOW) if paired else random.binomial(size, BELOW * rate)
    return own.astype(float), other.astype(float)


def p_values(own: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One-sided p with and without the variance of the hypothesis, ``(runs,)`` each."""
    clusters = own.shape[1]
    amount = own / BELOW - other
    total = amount.sum(1)
    spread = ((amount - amount.mean(1, keepdims=True)) ** 2).sum(1)
    variance = clusters / (clusters - 1) * spread
    mine, theirs = own.sum(1), other.sum(1)
    both = mine + theirs
    observed = mine / BELOW**2 + theirs
    expected = both * BELOW / (1 + BELOW) / BELOW**2 + both / (1 + BELOW)
    factor = np.maximum(1.0, expected / np.maximum(observed, 1e-12))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (
            stdtr(clusters - 1, total / np.sqrt(variance * factor)),
            stdtr(clusters - 1, total / np.sqrt(variance)),
        )


def main() -> None:
    random = np.random.default_rng(20261130)
    print("| other's labels | clusters | paired | level | as it is | without |")
    print("| --- | --- | --- | --- | --- | --- |")
    for labels, clusters, size, icc in (
        (20, 900, 1, 0.0),
        (40, 900, 1, 0.0),
        (150, 900, 1, 0.0),
        (60, 100, 9, 0.2),
    ):
        for paired in (False, True):
            hits = np.zeros((len(LEVELS), 2))
            for _ in range(RUNS // BLOCK):
                own, other = drawn(random, labels / 900, clusters, size, icc, paired)
                for j, p in enumerate(p_values(own, other)):
                    hits[:, j] += [(p < level).sum() for level in LEVELS]
            for i, level in enumerate(LEVELS):
                multiple = hits[i] / RUNS / level
                print(
                    f"| {labels} | {clusters} × {size} | {'yes' if paired else 'no'} | {level:.4f} "
                    f"| {multiple[0]:.2f} | {multiple[1]:.2f} |"
                )


if __name__ == "__main__":
    main()
