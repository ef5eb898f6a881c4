"""Intervals of rates beside R binom and statsmodels, and beside bisections of our own.

The second source here inverts the tests themselves: a limit of Clopper and Pearson is the p at
which the binomial tail is 2.5 %, a limit of Wilson the p at which the score statistic is z.
"""

from __future__ import annotations

import fnmatch
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire import intervals

FILE = Path(__file__).parents[2] / "shared" / "reference" / "F_diagnostic_rates_and_tests.json"
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="the shared reference values do not stand beside this repository"
)
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"] if FILE.is_file() else []
RATES = [c for c in CASES if c["input"]["kind"] == "rates"]

# Which counts of the table are behind each rate: (events, trials).
OF: dict[str, Callable[[dict[str, int]], tuple[int, int]]] = {
    "sensitivity": lambda t: (t["tp"], t["tp"] + t["fn"]),
    "specificity": lambda t: (t["tn"], t["tn"] + t["fp"]),
    "ppv": lambda t: (t["tp"], t["tp"] + t["fp"]),
    "npv": lambda t: (t["tn"], t["tn"] + t["fn"]),
}

COVERED = [
    f"rates:{rate}.{what}" for rate in OF for what in ("estimate", "wilson", "clopper_pearson")
]
NEXT = "next issue"
NOT_COVERED_YET = {
    "rates:*.note": "no quantity: says that the rate is 0/0",
    **{
        f"rates:*.{name}": NEXT
        for name in (
            "jeffreys_equal_tailed",
            "jeffreys_boundary_modified",
            "jeffreys_R_binom_central",
            "jeffreys_R_binom_hpd",
            "agresti_coull",
            "wald",
            "wilson_continuity_prop_test",
        )
    },
    **{
        f"rates:{name}": NEXT
        for name in (
            "accuracy",
            "balanced_accuracy",
            "youden",
            "f1",
            "mcc",
            "prevalence_gold",
            "prevalence_judge",
        )
    },
    "rogan_gladen:*": NEXT,
    "ppi_judgy:*": NEXT,
    "ppi:*": NEXT,
    "mcnemar:*": NEXT,
    "cochran_q:*": NEXT,
    "marginal_homogeneity:*": NEXT,
    "dawid_skene:*": NEXT,
}


def leaves(node: Any, path: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for key, below in node.items():
            yield from leaves(below, f"{path}.{key}" if path else key)
    else:
        yield path


def quantities() -> set[str]:
    return {f"{c['input']['kind']}:{path}" for c in CASES for path in leaves(c["expected"])}


def test_every_quantity_of_the_file_is_covered_or_named_as_not_covered_yet():
    unnamed = {
        q
        for q in quantities() - set(COVERED)
        if not any(fnmatch.fnmatchcase(q, pattern) for pattern in NOT_COVERED_YET)
    }
    assert unnamed == set()


def test_what_is_said_to_be_covered_is_in_the_file():
    assert set(COVERED) <= quantities()


def test_nothing_is_named_as_not_covered_that_the_file_does_not_hold():
    found = quantities() - set(COVERED)
    assert [p for p in NOT_COVERED_YET if not fnmatch.filter(found, p)] == []


# --- second sources -----------------------------------------------------------------------------


def binomial_tail(x: int, n: int, p: float) -> float:
    """P(X ≥ x) for X binomial, summed term by term."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(x, n + 1))


def bisect(above: Callable[[float], bool], low: float = 0.0, high: float = 1.0) -> float:
    """The point where ``above`` turns true."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if above(middle) else (middle, high)
    return (low + high) / 2


def clopper_pearson_by_bisection(x: int, n: int) -> tuple[float, float]:
    low = 0.0 if x == 0 else bisect(lambda p: binomial_tail(x, n, p) > 0.025)
    high = 1.0 if x == n else bisect(lambda p: 1 - binomial_tail(x + 1, n, p) < 0.025)
    return low, high


def wilson_by_bisection(x: int, n: int) -> tuple[float, float]:
    z, share = 1.959963984540054, x / n

    def score(p: float) -> float:
        return abs(share - p) / math.sqrt(p * (1 - p) / n)

    low = 0.0 if x == 0 else bisect(lambda p: score(p) < z, 1e-15, share)
    high = 1.0 if x == n else bisect(lambda p: score(p) > z, share, 1 - 1e-15)
    return low, high


ROWS = [
    pytest.param(case, rate, id=f"{case['id']}-{rate}")
    for case in RATES
    for rate in OF
    if OF[rate](case["input"])[1] > 0
]


@pytest.mark.parametrize(("case", "rate"), ROWS)
def test_intervals_of_a_rate_are_those_of_the_tools(case, rate):
    x, n = OF[rate](case["input"])
    expected, tolerance = case["expected"][rate], case["tolerance"]
    assert x / n == pytest.approx(expected["estimate"], abs=tolerance)
    for found in (intervals.wilson(x, n), vd.stats.wilson_interval(x, n)):
        assert found == pytest.approx(expected["wilson"], abs=tolerance)
        assert found == pytest.approx(wilson_by_bisection(x, n), abs=1e-9)
    found = intervals.clopper_pearson(x, n)
    assert found == pytest.approx(expected["clopper_pearson"], abs=tolerance)
    assert found == pytest.approx(clopper_pearson_by_bisection(x, n), abs=1e-9)


def test_a_rate_of_nothing_has_no_interval():
    nothing = [c for c in RATES if any(OF[r](c["input"])[1] == 0 for r in OF)]
    assert nothing, "the file holds a rate of 0 of 0"
    assert all(math.isnan(x) for x in intervals.wilson(0, 0))
    assert all(math.isnan(x) for x in intervals.clopper_pearson(0, 0))
    assert all(math.isnan(x) for x in vd.stats.wilson_interval(0, 0))


# --- through an audit ---------------------------------------------------------------------------


def one_grader(x: int, n: int, **options: Any) -> dict[str, Any]:
    """The row of the rate ``yes`` in an audit of one grader with ``x`` of ``n``."""
    frame = pl.DataFrame(
        {"response": [f"u{i}" for i in range(n)], "label": ["yes"] * x + ["no"] * (n - x)}
    )
    labels = vd.read(frame, grader_name="g", scale="no,yes", **options)
    results = vd.audit(labels).results.filter(
        pl.col("statistic") == "rate", pl.col("class") == "yes", pl.col("grader") == "g"
    )
    assert len(results) == 1
    return results.row(0, named=True)


EDGES = [
    pytest.param(case, rate, id=f"{case['id']}-{rate}")
    for case in RATES
    for rate in OF
    if OF[rate](case["input"])[0] in (0, OF[rate](case["input"])[1])
    and OF[rate](case["input"])[1] >= 3
]


@pytest.mark.parametrize(("case", "rate"), EDGES)
def test_at_the_edge_an_audit_gives_the_exact_interval_of_the_tools(case, rate):
    x, n = OF[rate](case["input"])
    row = one_grader(x, n)
    assert row["method"] == "clopper_pearson"
    assert (row["low"], row["high"]) == pytest.approx(
        case["expected"][rate]["clopper_pearson"], abs=case["tolerance"]
    )
    assert row["high"] > row["low"]
    assert (row["n"], row["clusters"], row["level"]) == (n, n, 0.95)


@pytest.mark.parametrize(("case", "rate"), EDGES)
def test_at_the_edge_the_bootstrap_does_not_give_an_interval_of_no_width(case, rate):
    x, n = OF[rate](case["input"])
    row = one_grader(x, n, interval="bootstrap", replicates=100)
    assert row["method"] == "clopper_pearson"
    assert (row["low"], row["high"]) == pytest.approx(
        case["expected"][rate]["clopper_pearson"], abs=case["tolerance"]
    )


def test_there_are_edges_at_none_and_at_all():
    tables = [(OF[rate](c["input"]), rate) for c in RATES for rate in OF]
    assert any(x == 0 and n >= 3 for (x, n), _ in tables)
    assert any(x == n and n >= 3 for (x, n), _ in tables)
    assert EDGES


@pytest.mark.parametrize("x", [0, 2, 4, 96, 98, 100])
def test_with_fewer_than_five_events_or_non_events_the_interval_is_exact(x):
    row = one_grader(x, 100)
    assert row["method"] == "clopper_pearson"
    assert (row["low"], row["high"]) == pytest.approx(
        clopper_pearson_by_bisection(x, 100), abs=1e-9
    )


@pytest.mark.parametrize("x", [5, 50, 95])
def test_away_from_the_edge_the_interval_is_the_jackknife_t_on_the_logit(x):
    # One response a cluster: the delete-one values of the rate are (x − y_i) / (n − 1).
    n = 100
    row = one_grader(x, n)
    assert row["method"] == "jackknife_t"
    events = [1] * x + [0] * (n - x)
    logits = [math.log((x - y) / (n - 1 - (x - y))) for y in events]
    mean = math.fsum(logits) / n
    variance = (n - 1) / n * math.fsum((v - mean) ** 2 for v in logits)
    t = 1.984216951586  # t(99) at 97.5 %
    centre, half = math.log(x / (n - x)), t * math.sqrt(variance)
    low, high = (1 / (1 + math.exp(-(centre + s * half))) for s in (-1, 1))
    assert (row["low"], row["high"]) == pytest.approx((low, high), abs=1e-9)


def test_counts_alone_give_wilson(tmp_path):
    table = tmp_path / "counts.csv"
    table.write_text("grader,no,yes,total\na,5,45,50\nb,42,8,50\n", encoding="utf-8")
    results = vd.audit(vd.read(table, layout="counts", scale="no,yes")).results
    rates = {
        r["grader"]: r for r in results.filter(pl.col("statistic") == "rate").iter_rows(named=True)
    }
    for grader, x in (("a", 45), ("b", 8)):
        assert rates[grader]["method"] == "wilson"
        found = (rates[grader]["low"], rates[grader]["high"])
        assert found == pytest.approx(wilson_by_bisection(x, 50), abs=1e-9)
    expected = RATES[0]["expected"]["sensitivity"]["wilson"]  # 45 of 50
    assert (rates["a"]["low"], rates["a"]["high"]) == pytest.approx(expected, abs=1e-8)
