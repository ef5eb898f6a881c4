"""Intervals stay within what a value can be, and hold their own value."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire import plugins
from voirdire.estimand import Scale, Unit
from voirdire.stats.base import Family

ESTIMANDS = [s.estimand for f in plugins.load("stats", Family) for s in f.statistics]


def rows_of(labels: pl.DataFrame, statistic: str, **options: Any) -> list[dict[str, Any]]:
    audit = vd.audit(vd.read(labels, layout="long", **options))
    return audit.results.filter(pl.col("statistic") == statistic).rows(named=True)


def panel(**labels: str) -> pl.DataFrame:
    """A grader an argument, a response a letter; the tag ``part`` is ``x`` for the first response."""
    return pl.DataFrame(
        [
            {"response": f"r{i:03}", "grader": g, "label": c, "part": "y" if i else "x"}
            for g, text in labels.items()
            for i, c in enumerate(text)
        ]
    )


# --- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimand", ESTIMANDS, ids=lambda e: e.name)
def test_shares_and_differences_have_both_bounds_and_ratios_a_lower_one(estimand: Any) -> None:
    if estimand.unit in (Unit.SHARE, Unit.POINTS):
        assert estimand.low is not None
        assert estimand.high is not None
    if estimand.scale is Scale.LOG or estimand.unit is Unit.COUNT:
        assert estimand.low is not None


@pytest.mark.parametrize("statistic", ["rate_range", "rate_iqr"])
def test_rates_that_lie_far_apart_are_at_most_1_apart(statistic: str) -> None:
    far = panel(g="b" * 19 + "a", h="a" * 20, i="b" * 18 + "aa", j="ab" + "a" * 18)
    (row,) = rows_of(far, statistic, scale="a,b")
    assert row["method"] == "jackknife_t"
    assert 0 <= row["low"] <= row["value"] <= row["high"] == 1


@pytest.mark.parametrize(
    "statistic", ["rate_max_over_min", "rate_leave_one_out_low", "rate_second_over_second"]
)
def test_a_higher_rate_is_never_less_than_once_a_lower_one(statistic: str) -> None:
    rng = np.random.default_rng(5)
    close = panel(**{g: "".join(rng.choice(list("ab"), 60)) for g in "ghijk"})
    (row,) = rows_of(close, statistic, scale="a,b")
    assert row["low"] == 1
    assert row["value"] > 1


def test_changes_in_opposite_directions_can_be_more_than_1_apart() -> None:
    # Without x, g goes from 0.1 to 1 and h from 0.9 to 0: the changes are 1.8 apart.
    rows = [
        {"response": f"r{i}", "grader": g, "label": c, "part": "y" if i < 5 else "x"}
        for i in range(50)
        for g, c in (("g", "b" if i < 5 else "a"), ("h", "a" if i < 5 else "b"))
    ]
    (row,) = rows_of(
        pl.DataFrame(rows), "rate_without_minus_rate_range", scale="a,b", drop="part=x"
    )
    assert row["value"] == pytest.approx(1.8)
    assert row["low"] is not None
    assert row["low"] < 1.8 < row["high"] <= 2


# --- the most frequent class --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statistic", "role"),
    [
        ("best_constant_agreement", "gold"),
        ("competence_floor", "reference"),
        ("consensus_best_constant", ""),
    ],
)
@pytest.mark.parametrize("interval", ["auto", "bootstrap"])
def test_the_best_constant_answer_lies_within_its_interval(
    statistic: str, role: str, interval: str
) -> None:
    # Of eight classes that are equally common the largest share of a replicate is above 1 in 8.
    even = "abcdefgh" * 25
    found = rows_of(
        panel(g=even, h=even, i=even),
        statistic,
        interval=interval,
        replicates=1000,
        **({role: "g"} if role else {}),
    )
    assert found
    for row in found:
        assert row["value"] == 0.125
        assert row["low"] < 0.125 < row["high"]


def test_the_best_constant_answer_is_the_class_of_all_labels_in_every_replicate() -> None:
    even = panel(g="ab" * 30, h="ab" * 30)
    (row,) = rows_of(
        even, "best_constant_agreement", gold="g", interval="bootstrap", replicates=1000
    )
    share = np.random.default_rng(0).binomial(60, 0.5, 100_000) / 60
    assert (row["low"], row["high"]) == pytest.approx(
        tuple(np.quantile(share, [0.025, 0.975])), abs=0.03
    )
