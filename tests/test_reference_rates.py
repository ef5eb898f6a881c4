"""Intervals of rates and paired tests beside R and statsmodels, and beside bisections of our own.

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

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire import intervals
from voirdire.errors import UndefinedWarning
from voirdire.stats import homogeneity
from voirdire.tally import of_rows

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
    *(f"rates:{rate}.{what}" for rate in OF for what in ("estimate", "wilson", "clopper_pearson")),
    "rates:accuracy",
    "rates:f1",
    "rates:prevalence_gold",
    "rates:prevalence_judge",
    "mcnemar:exact_p",
    "mcnemar:midp_p",
    "mcnemar:odds_ratio_exact2x2.p",
    "mcnemar:odds_ratio_midp_exact2x2.p",
    "mcnemar:chi2_uncorrected",
    *(f"cochran_q:{what}" for what in ("Q", "df", "p")),
    *(f"marginal_homogeneity:stuart_maxwell.{what}" for what in ("stat", "df", "p")),
    *(
        f"marginal_homogeneity:bowker.{what}"
        for what in ("stat", "df_nonempty_pairs", "p_nonempty_pairs")
    ),
    "marginal_homogeneity:bhapkar.stat",
]
OWN_INTERVALS = (
    "not offered by voirdire: Wilson, Clopper-Pearson and Korn-Graubard are its intervals"
)
NOT_OFFERED = "not offered by voirdire"
NOT_COVERED = {
    "rates:*.note": "no quantity: says that the rate is 0/0",
    **{
        f"rates:*.{name}": OWN_INTERVALS
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
    "rates:balanced_accuracy": NOT_OFFERED,
    "rates:youden": NOT_OFFERED,
    "rates:mcc": NOT_OFFERED,
    "rogan_gladen:*": "not offered by voirdire: a rate is never printed as the true rate",
    "ppi_judgy:*": "not offered by voirdire: a rate is never printed as the true rate",
    "ppi:*": "not offered by voirdire: a rate is never printed as the true rate",
    "mcnemar:chi2_corrected": "not offered by voirdire: exact and mid-p need no correction",
    "mcnemar:*.or": NOT_OFFERED,
    "mcnemar:*.ci": NOT_OFFERED,
    "marginal_homogeneity:bowker.*_all_pairs": "a pair that is never exchanged counts for nothing",
    "marginal_homogeneity:bhapkar.df": "voirdire refers the statistic to F on the clusters",
    "marginal_homogeneity:bhapkar.p": "voirdire refers the statistic to F on the clusters",
    "dawid_skene:*": "not offered by voirdire: a consensus is never taken for the truth",
}


def leaves(node: Any, path: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for key, below in node.items():
            yield from leaves(below, f"{path}.{key}" if path else key)
    else:
        yield path


def quantities() -> set[str]:
    return {f"{c['input']['kind']}:{path}" for c in CASES for path in leaves(c["expected"])}


def test_every_quantity_of_the_file_is_covered_or_named_as_not_covered():
    unnamed = {
        q
        for q in quantities() - set(COVERED)
        if not any(fnmatch.fnmatchcase(q, pattern) for pattern in NOT_COVERED)
    }
    assert unnamed == set()


def test_what_is_said_to_be_covered_is_in_the_file():
    assert set(COVERED) <= quantities()


def test_nothing_is_named_as_not_covered_that_the_file_does_not_hold():
    found = quantities() - set(COVERED)
    assert [p for p in NOT_COVERED if not fnmatch.filter(found, p)] == []


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


@pytest.mark.parametrize("case", RATES, ids=[c["id"] for c in RATES])
def test_an_audit_with_gold_gives_accuracy_f1_and_both_prevalences(case):
    table, expected = case["input"], case["expected"]
    kinds = {"tp": ("yes", "yes"), "fp": ("yes", "no"), "fn": ("no", "yes"), "tn": ("no", "no")}
    pairs = [pair for kind, pair in kinds.items() for _ in range(table[kind])]
    frame = pl.DataFrame(pairs, schema=["judge", "gold"], orient="row")
    frame = frame.with_row_index("response")
    labels = vd.read(frame, layout="wide", graders="judge,gold", gold="gold", scale="no,yes")
    results = vd.audit(labels).results

    def value(statistic: str, **keys: str) -> float:
        row = results.filter(
            pl.col("statistic") == statistic, *(pl.col(k) == v for k, v in keys.items())
        )
        assert len(row) == 1, (statistic, keys, len(row))
        found = row["value"].item()
        return math.nan if found is None else float(found)

    found = {
        "accuracy": value("agreement", grader="judge", other="gold"),
        "f1": value("class_agreement", grader="judge", other="gold", **{"class": "yes"}),
        "prevalence_gold": value("rate", grader="gold", **{"class": "yes"}),
        "prevalence_judge": value("rate", grader="judge", **{"class": "yes"}),
    }
    for name, number in found.items():
        wanted = expected[name]
        wanted = math.nan if isinstance(wanted, str) else wanted
        assert number == pytest.approx(wanted, abs=case["tolerance"], nan_ok=True), name


# --- paired tests ---------------------------------------------------------------------------------


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(c, id=c["id"]) for c in CASES if c["input"]["kind"] == kind]


def same(found: float, expected: Any, tolerance: float) -> bool:
    if expected == "NaN":
        return math.isnan(found)
    return found == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("case", of_kind("mcnemar"))
def test_mcnemar_is_that_of_the_tools(case):
    table, expected, tolerance = case["input"]["table"], case["expected"], case["tolerance"]
    exact, mid = vd.stats.mcnemar(table), vd.stats.mcnemar(table, method="mid-p")
    assert same(exact, expected["exact_p"], tolerance)
    assert same(exact, expected["odds_ratio_exact2x2"]["p"], tolerance)
    assert same(mid, expected["midp_p"], tolerance)
    assert same(mid, expected["odds_ratio_midp_exact2x2"]["p"], tolerance)
    # Second source: the binomial tail, term by term. Twice the tail; less what was seen for mid-p.
    b, c = table[0][1], table[1][0]
    if b + c:
        tail = binomial_tail(max(b, c), b + c, 0.5)
        assert exact == pytest.approx(min(1, 2 * tail), abs=1e-12)
        assert mid == pytest.approx(2 * tail - math.comb(b + c, b) / 2 ** (b + c), abs=1e-12)


@pytest.mark.parametrize("case", of_kind("mcnemar"))
@pytest.mark.filterwarnings("ignore::voirdire.errors.UndefinedWarning")
def test_with_two_classes_stuart_maxwell_and_bowker_are_mcnemars_chi_square(case):
    chi2, p = case["expected"]["chi2_uncorrected"]
    for test in (vd.stats.stuart_maxwell, vd.stats.bowker):
        found = test(case["input"]["table"])
        assert same(found[0], chi2, case["tolerance"])
        assert same(found[2], p, case["tolerance"])


@pytest.mark.parametrize("case", of_kind("cochran_q"))
@pytest.mark.filterwarnings("ignore::voirdire.errors.UndefinedWarning")
def test_cochrans_q_is_that_of_the_tools(case):
    q, df, p = vd.stats.cochran_q(case["input"]["responses"])
    assert same(q, case["expected"]["Q"], case["tolerance"])
    assert df == case["expected"]["df"]
    assert same(p, case["expected"]["p"], case["tolerance"])


@pytest.mark.parametrize("case", of_kind("marginal_homogeneity"))
@pytest.mark.filterwarnings("ignore::voirdire.errors.UndefinedWarning")
def test_stuart_maxwell_and_bowker_are_those_of_the_tools(case):
    table, tolerance = case["input"]["table"], case["tolerance"]
    for test, expected, df_name, p_name in (
        (vd.stats.stuart_maxwell, case["expected"]["stuart_maxwell"], "df", "p"),
        (vd.stats.bowker, case["expected"]["bowker"], "df_nonempty_pairs", "p_nonempty_pairs"),
    ):
        statistic, df, p = test(table)
        assert same(statistic, expected["stat"], tolerance)
        assert df == expected[df_name]
        assert same(p, expected[p_name], tolerance)


@pytest.mark.parametrize("case", of_kind("marginal_homogeneity"))
def test_with_responses_on_their_own_the_robust_test_is_bhapkars_with_an_f(case):
    from scipy.stats import f

    table, bhapkar = case["input"]["table"], case["expected"]["bhapkar"]
    k, n = len(table), sum(map(sum, table))
    cells = [(i, j) for i in range(k) for j in range(k) for _ in range(table[i][j])]
    rows = [[[int((i, j) == cell) for j in range(k)] for i in range(k)] for cell in cells]
    p, reason = homogeneity.robust_p(of_rows(np.array(rows)))
    if bhapkar["stat"] == "NaN":
        # The tool cannot invert; ours drops the empty class, or says that they never differ.
        assert (math.isnan(p) and reason == homogeneity.SAME) or 0 <= p <= 1
        return
    # W = (n − 1)/n · Bhapkar, and W (n − k + 1) / ((n − 1)(k − 1)) is F(k − 1, n − k + 1).
    wald = (n - 1) / n * bhapkar["stat"]
    expected = f.sf(wald * (n - k + 1) / ((n - 1) * (k - 1)), k - 1, n - k + 1)
    assert p == pytest.approx(expected, abs=1e-9)
    # Bhapkar's statistic is Stuart and Maxwell's over 1 − itself/n.
    stuart = vd.stats.stuart_maxwell(table)[0]
    assert stuart / (1 - stuart / n) == pytest.approx(bhapkar["stat"], abs=case["tolerance"])


def test_what_cannot_be_tested_warns():
    with pytest.warns(UndefinedWarning, match="same class on every"):
        vd.stats.stuart_maxwell([[10, 0], [0, 12]])
    with pytest.warns(UndefinedWarning, match="exchanged"):
        vd.stats.bowker([[10, 0], [0, 12]])
    with pytest.warns(UndefinedWarning, match="never differ"):
        vd.stats.cochran_q([[1, 1, 1], [0, 0, 0]])
