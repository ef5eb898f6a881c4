"""Agreement coefficients beside values from R and Python tools, and beside plain loops of our own.

The loops follow the definitions (Cohen 1960, Gwet 2008, Brennan and Prediger 1981, Krippendorff
2004), one response at a time, and share nothing with the package.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import UndefinedWarning
from voirdire.stats import pairwise

FILE = Path(__file__).parents[2] / "shared" / "reference" / "E_agreement.json"
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="the shared reference values do not stand beside this repository"
)
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"] if FILE.is_file() else []
LABELLED = [c for c in CASES if "by_weights" in c["expected"]]
TWO = [c for c in LABELLED if len(c["input"]["ratings"][0]) == 2]
ONE_CLASS = "E07-3r-one-class-15"

WEIGHTS = ("unweighted", "linear", "quadratic")

# Quantities as ``two:`` or ``many:`` (raters), then the path in ``expected``.
COVERED = [
    *(
        f"two:by_weights.{w}.{c}.{f}"
        for w in WEIGHTS
        for c in ("ac", "bp", "conger")
        for f in ("coeff", "pa", "pe")
    ),
    *(f"two:by_weights.{w}.percent.{f}" for w in WEIGHTS for f in ("pa", "coeff")),
    *(f"two:cohen.{w}.kappa" for w in WEIGHTS),
    "two:cohen_se_irrCAC_table.coeff",  # kappa once more
    "two:krippendorff_alpha.nominal",
    "many:krippendorff_alpha.nominal",
]
NEXT = "next issue"
NOT_COVERED_YET = {
    "two:by_weights.*.percent.pe": "no quantity: zero by definition",
    "*:by_weights.ordinal.*": NEXT,
    "*:by_weights.ratio.*": NEXT,
    "*:by_weights.*.fleiss.*": NEXT,
    "*:by_weights.*.kripp.*": NEXT,
    "*:by_weights.*.precision": "no quantity: says how exact the tool is",
    "*:by_weights.*.se": NEXT,
    "*:by_weights.*.p": NEXT,
    "*:by_weights.*.ci95*": NEXT,
    "many:by_weights.*": NEXT,
    "*:krippendorff_alpha.ordinal": NEXT,
    "*:krippendorff_alpha.interval": NEXT,
    "*:krippendorff_alpha.ratio": NEXT,
    "*:fleiss_null_z_p_irr": NEXT,
    "*:light_kappa_irr": NEXT,
    "*:all_raters_agree_fraction_irr": NEXT,
    "two:cohen.*.null_z_irr": NEXT,
    "two:cohen.*.asymptotic_var_psych": NEXT,
    "two:cohen.*.ci95_normal_psych": NEXT,
    "two:cohen.*.se_*": NEXT,
    "two:cohen_se_irrCAC_table.se": NEXT,
    "two:scott_pi.*": NEXT,
    "many:ICC*": NEXT,
}


# --- plain loops --------------------------------------------------------------------------------


def agreement_weight(i: int, j: int, k: int, kind: str) -> float:
    apart = abs(i - j) / (k - 1)
    return {"unweighted": float(i == j), "linear": 1 - apart, "quadratic": 1 - apart**2}[kind]


def loop_two(
    a: Sequence[Any], b: Sequence[Any], classes: Sequence[Any], kind: str = "unweighted"
) -> dict[str, float]:
    """Observed and chance agreement of two raters, and the coefficients, term by term."""
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    n, k = len(pairs), len(classes)
    place = {c: i for i, c in enumerate(classes)}
    first = [sum(x == c for x, _ in pairs) / n for c in classes]
    second = [sum(y == c for _, y in pairs) / n for c in classes]
    both = [(p + q) / 2 for p, q in zip(first, second, strict=True)]
    weights = [[agreement_weight(i, j, k, kind) for j in range(k)] for i in range(k)]
    all_weights = sum(sum(row) for row in weights)
    pa = sum(weights[place[x]][place[y]] for x, y in pairs) / n
    pe = {
        "conger": sum(weights[i][j] * first[i] * second[j] for i in range(k) for j in range(k)),
        "ac": all_weights * sum(p * (1 - p) for p in both) / (k * (k - 1)),
        "bp": all_weights / k**2,
    }
    out = {"pa": pa, **{f"{c}.pe": v for c, v in pe.items()}}
    out |= {f"{c}.coeff": (pa - v) / (1 - v) if v < 1 - 1e-12 else math.nan for c, v in pe.items()}
    return out


def loop_alpha(ratings: Sequence[Sequence[Any]]) -> float:
    """Nominal alpha by going over every ordered pair of labels of every unit."""
    coincidence: dict[tuple[Any, Any], float] = {}
    for unit in ratings:
        there = [x for x in unit if x is not None]
        for i, x in enumerate(there):
            for j, y in enumerate(there):
                if i != j:
                    coincidence[x, y] = coincidence.get((x, y), 0.0) + 1 / (len(there) - 1)
    n_of: dict[Any, float] = {}
    for (x, _), amount in coincidence.items():
        n_of[x] = n_of.get(x, 0.0) + amount
    n = sum(n_of.values())
    observed = sum(v for (x, y), v in coincidence.items() if x != y) / n
    expected = sum(n_of[x] * n_of[y] for x in n_of for y in n_of if x != y) / (n * (n - 1))
    return 1 - observed / expected if expected else math.nan


# --- helpers ------------------------------------------------------------------------------------


def columns_of(case: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
    ratings = case["input"]["ratings"]
    return [r[0] for r in ratings], [r[1] for r in ratings], case["input"]["categories"]


def long_frame(ratings: Sequence[Sequence[Any]]) -> pl.DataFrame:
    """One label a row, graders ``r1 …``; a missing rating is no row."""
    rows = [
        (f"u{u}", f"r{r + 1}", str(label))
        for u, unit in enumerate(ratings)
        for r, label in enumerate(unit)
        if label is not None
    ]
    return pl.DataFrame(rows, schema=["response", "grader", "label"], orient="row")


def audited(case: dict[str, Any]) -> pl.DataFrame:
    scale = [str(c) for c in case["input"]["categories"]]
    frame = long_frame(case["input"]["ratings"])
    return vd.audit(vd.read(frame, scale=scale)).results


def value(results: pl.DataFrame, statistic: str, **keys: str) -> float:
    row = results.filter(
        pl.col("statistic") == statistic, *(pl.col(k) == v for k, v in keys.items())
    )
    assert len(row) == 1, f"{statistic} {keys}: {len(row)} rows"
    assert row["reason"].item() in (None, ""), row["reason"].item()
    return float(row["value"].item())


def ids(cases: Sequence[dict[str, Any]]) -> list[str]:
    return [c["id"] for c in cases]


def leaves(node: Any, path: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for key, below in node.items():
            yield from leaves(below, f"{path}.{key}" if path else key)
    else:
        yield path


# --- what is covered ----------------------------------------------------------------------------


def quantities() -> set[str]:
    found = set()
    for case in CASES:
        raters = "two" if len(case["input"]["ratings"][0]) == 2 else "many"
        found |= {f"{raters}:{path}" for path in leaves(case["expected"])}
    return found


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


# --- plain functions ----------------------------------------------------------------------------


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("case", TWO, ids=ids(TWO))
def test_two_rater_coefficients_are_those_of_the_tools(case, weights):
    a, b, classes = columns_of(case)
    tolerance = case["tolerance"]
    expected = case["expected"]["by_weights"][weights]
    loop = loop_two(a, b, classes, weights)
    given = None if weights == "unweighted" else weights
    functions: dict[str, Callable[..., float]] = {
        "conger": vd.stats.cohen_kappa,
        "ac": vd.stats.gwet_ac,
        "bp": vd.stats.brennan_prediger,
    }
    for name, function in functions.items():
        found = function(a, b, classes=classes, weights=given)
        assert found == pytest.approx(expected[name]["coeff"], abs=tolerance), name
        assert found == pytest.approx(loop[f"{name}.coeff"], abs=1e-12), name
    kappa = vd.stats.cohen_kappa(a, b, classes=classes, weights=given)
    assert kappa == pytest.approx(case["expected"]["cohen"][weights]["kappa"], abs=tolerance)
    if weights == "unweighted":
        table = case["expected"]["cohen_se_irrCAC_table"]["coeff"]
        assert kappa == pytest.approx(table, abs=tolerance)
        found = vd.stats.percent_agreement(a, b)
        assert found == pytest.approx(expected["percent"]["coeff"], abs=tolerance)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("case", TWO, ids=ids(TWO))
def test_observed_and_chance_agreement_are_those_of_the_tools(case, weights):
    a, b, classes = columns_of(case)
    tolerance = case["tolerance"]
    expected = case["expected"]["by_weights"][weights]
    loop = loop_two(a, b, classes, weights)
    counts = pairwise.pair_counts(a, b, classes)
    matrix = pairwise.agreement_weights(len(classes), weights)
    observed = float(pairwise.observed(counts, matrix))
    assert observed == pytest.approx(loop["pa"], abs=1e-12)
    for name in ("percent", "ac", "bp", "conger"):
        assert observed == pytest.approx(expected[name]["pa"], abs=tolerance), name
    assert observed == pytest.approx(expected["percent"]["coeff"], abs=tolerance)
    chances = {
        "ac": pairwise.chance_gwet,
        "bp": pairwise.chance_uniform,
        "conger": pairwise.chance_cohen,
    }
    for name, chance in chances.items():
        found = float(chance(counts, matrix))
        assert found == pytest.approx(expected[name]["pe"], abs=tolerance), name
        assert found == pytest.approx(loop[f"{name}.pe"], abs=1e-12), name


@pytest.mark.parametrize("case", LABELLED, ids=ids(LABELLED))
def test_nominal_alpha_is_that_of_the_tools(case):
    ratings = case["input"]["ratings"]
    expected = case["expected"]["krippendorff_alpha"]["nominal"]
    if expected == "NaN":
        with pytest.warns(UndefinedWarning, match="one class"):
            assert math.isnan(vd.stats.krippendorff_alpha(ratings))
        assert case["id"] == ONE_CLASS
        return
    found = vd.stats.krippendorff_alpha(ratings)
    assert found == pytest.approx(expected, abs=case["tolerance"])
    assert found == pytest.approx(loop_alpha(ratings), abs=1e-12)


# --- through a whole audit ----------------------------------------------------------------------


@pytest.mark.parametrize("case", TWO, ids=ids(TWO))
def test_an_audit_gives_the_coefficients_of_the_tools(case):
    a, b, classes = columns_of(case)
    results = audited(case)
    expected = case["expected"]["by_weights"]["unweighted"]
    tolerance = case["tolerance"]
    keys = {"grader": "r1", "other": "r2"}
    wanted = {
        "agreement": expected["percent"]["coeff"],
        "chance_agreement": expected["conger"]["pe"],
        "cohen_kappa": case["expected"]["cohen"]["unweighted"]["kappa"],
        "gwet_ac1": expected["ac"]["coeff"],
        "brennan_prediger": expected["bp"]["coeff"],
    }
    for statistic, number in wanted.items():
        assert value(results, statistic, **keys) == pytest.approx(number, abs=tolerance), statistic
    alpha = value(results, "krippendorff_alpha_nominal")
    assert alpha == pytest.approx(case["expected"]["krippendorff_alpha"]["nominal"], abs=tolerance)
    for class_ in classes:
        both = sum(x == class_ and y == class_ for x, y in zip(a, b, strict=True))
        given = a.count(class_) + b.count(class_)
        row = results.filter(statistic="class_agreement", **keys).filter(
            pl.col("class") == str(class_)
        )
        if given == 0:
            assert row["value"].item() is None
            assert row["reason"].item() == "neither gives the class"
        else:
            assert row["value"].item() == pytest.approx(2 * both / given, abs=1e-12)


MANY = [c for c in LABELLED if c not in TWO and c["id"] != ONE_CLASS]


@pytest.mark.parametrize("case", MANY, ids=ids(MANY))
def test_an_audit_of_many_raters_gives_alpha_and_the_same_pairs_as_the_loops(case):
    ratings = case["input"]["ratings"]
    results = audited(case)
    alpha = value(results, "krippendorff_alpha_nominal")
    expected = case["expected"]["krippendorff_alpha"]["nominal"]
    assert alpha == pytest.approx(expected, abs=case["tolerance"])
    raters = range(len(ratings[0]))
    for i, j in itertools.combinations(raters, 2):
        a, b = [r[i] for r in ratings], [r[j] for r in ratings]
        loop = loop_two(a, b, case["input"]["categories"])
        keys = {"grader": f"r{i + 1}", "other": f"r{j + 1}"}
        for statistic, name in (
            ("agreement", "pa"),
            ("chance_agreement", "conger.pe"),
            ("cohen_kappa", "conger.coeff"),
            ("gwet_ac1", "ac.coeff"),
            ("brennan_prediger", "bp.coeff"),
        ):
            assert value(results, statistic, **keys) == pytest.approx(loop[name], abs=1e-12)
        row = results.filter(statistic="agreement", **keys)
        common = sum(x is not None and y is not None for x, y in zip(a, b, strict=True))
        assert row["n"].item() == common


# --- one class only -----------------------------------------------------------------------------


def one_class() -> dict[str, Any]:
    return next(c for c in CASES if c["id"] == ONE_CLASS)


def test_with_one_class_kappa_and_alpha_are_undefined_with_a_reason_in_the_audit():
    # The tools say NaN, 1 or stop with an error. Ours: what is 0/0 is undefined; AC1 and
    # Brennan–Prediger have a chance below 1 with two classes on the scale, and are 1.
    results = audited(one_class())
    for statistic in ("cohen_kappa", "krippendorff_alpha_nominal"):
        rows = results.filter(statistic=statistic)
        assert len(rows) >= 1
        assert rows["value"].to_list() == [None] * len(rows)
        assert set(rows["reason"]) == {"not defined: one class used"}
        assert rows["low"].to_list() == [None] * len(rows)
    for statistic in ("agreement", "gwet_ac1", "brennan_prediger"):
        assert results.filter(statistic=statistic)["value"].to_list() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_with_one_class_the_plain_functions_say_nan_and_warn(weights):
    ratings, classes = one_class()["input"]["ratings"], one_class()["input"]["categories"]
    a, b = [r[0] for r in ratings], [r[1] for r in ratings]
    with pytest.warns(UndefinedWarning, match="one class"):
        assert math.isnan(vd.stats.cohen_kappa(a, b, classes=classes, weights=weights))
    expected = one_class()["expected"]["by_weights"][weights or "unweighted"]
    found = vd.stats.gwet_ac(a, b, classes=classes, weights=weights)
    assert found == pytest.approx(expected["ac"]["coeff"])
    found = vd.stats.brennan_prediger(a, b, classes=classes, weights=weights)
    assert found == pytest.approx(expected["bp"]["coeff"])
    # One class, and no other on the scale: nothing is defined.
    for function in (vd.stats.cohen_kappa, vd.stats.gwet_ac, vd.stats.brennan_prediger):
        with pytest.warns(UndefinedWarning):
            assert math.isnan(function(a, b, weights=weights))


def test_no_common_response_is_nan_with_a_warning_and_never_zero():
    for function in (
        vd.stats.percent_agreement,
        vd.stats.cohen_kappa,
        vd.stats.gwet_ac,
        vd.stats.brennan_prediger,
    ):
        with pytest.warns(UndefinedWarning):
            assert math.isnan(function(["a", None], [None, "b"]))
    with pytest.warns(UndefinedWarning):
        assert math.isnan(vd.stats.krippendorff_alpha([["a", None], [None, "b"]]))


# --- random tables beside the loops ---------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_random_tables_with_missing_labels_agree_with_the_loops(seed):
    random = np.random.default_rng(seed)
    k, raters, units = int(random.integers(2, 6)), int(random.integers(2, 6)), 25
    classes = [f"c{i}" for i in range(k)]
    truth = random.integers(0, k, units)
    ratings = [
        [
            None
            if random.random() < 0.25
            else classes[truth[u] if random.random() < 0.6 else int(random.integers(0, k))]
            for _ in range(raters)
        ]
        for u in range(units)
    ]
    assert vd.stats.krippendorff_alpha(ratings) == pytest.approx(loop_alpha(ratings), abs=1e-12)
    for i, j in itertools.combinations(range(raters), 2):
        a, b = [r[i] for r in ratings], [r[j] for r in ratings]
        for weights in WEIGHTS:
            loop = loop_two(a, b, classes, weights)
            kappa = vd.stats.cohen_kappa(a, b, classes=classes, weights=weights)
            assert kappa == pytest.approx(loop["conger.coeff"], abs=1e-12)
            ac = vd.stats.gwet_ac(a, b, classes=classes, weights=weights)
            assert ac == pytest.approx(loop["ac.coeff"], abs=1e-12)
            bp = vd.stats.brennan_prediger(a, b, classes=classes, weights=weights)
            assert bp == pytest.approx(loop["bp.coeff"], abs=1e-12)
    case = {"input": {"ratings": ratings, "categories": classes}}
    alpha = value(audited(case), "krippendorff_alpha_nominal")
    assert alpha == pytest.approx(loop_alpha(ratings), abs=1e-12)
