"""The finite population correction of ``--population``."""

from __future__ import annotations

import math

import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import UsageError


def table(drawn: int, size: int, *, strata: bool = False) -> pl.DataFrame:
    labels = ["yes", "no", "no"] * (drawn // 3)
    columns: dict[str, list[str] | list[int]] = {
        "response": [f"r{i}" for i in range(drawn)],
        "g": labels,
        "N": [size] * drawn,
    }
    if strata:
        columns["part"] = ["x", "y"] * (drawn // 2)
    return pl.DataFrame(columns)


def interval(frame: pl.DataFrame, **options: object) -> tuple[float, float]:
    labels = vd.read(frame, layout="wide", graders="g", scale="no,yes", **options)
    rate = vd.audit(labels).results.row(by_predicate=pl.col("statistic") == "rate", named=True)
    assert rate["value"] == pytest.approx(1 / 3)
    return rate["low"], rate["high"]


def log_odds_width(ends: tuple[float, float]) -> float:
    low, high = (math.log(p / (1 - p)) for p in ends)
    return high - low


@pytest.mark.parametrize("strata", [False, True])
def test_an_interval_shrinks_by_the_root_of_the_share_that_was_not_drawn(strata: bool) -> None:
    # 60 of 240 (or 30 of 60 in each of two strata): the variance is 1 − 1/4 (or 1/2) of itself.
    size, rest = (60, 0.5) if strata else (240, 0.75)
    stratum = {"stratum": "part"} if strata else {}
    frame = table(60, size, strata=strata)
    without, with_it = interval(frame, **stratum), interval(frame, population="N", **stratum)
    assert log_odds_width(with_it) / log_odds_width(without) == pytest.approx(math.sqrt(rest))


def test_a_census_leaves_nothing_to_chance_and_says_so() -> None:
    labels = vd.read(table(60, 60), layout="wide", graders="g", scale="no,yes", population="N")
    audit = vd.audit(labels)
    rate = next(e for e in audit.estimates if e.statistic == "rate")
    assert rate.interval is None
    assert "whole population" in rate.no_interval


@pytest.mark.parametrize("size", [30, 0])
def test_a_population_smaller_than_the_draw_is_refused(size: int) -> None:
    labels = vd.read(table(60, size), layout="wide", graders="g", population="N")
    with pytest.raises(UsageError, match="at least the 60"):
        vd.audit(labels)


def test_clusters_are_refused() -> None:
    frame = table(60, 240).with_columns(c=pl.int_range(60) // 6)
    labels = vd.read(frame, layout="wide", graders="g", cluster="c", population="N")
    with pytest.raises(UsageError, match="drawn one by one"):
        vd.audit(labels)
