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
from voirdire.stats import pairwise, panel

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
MATRICES = ("ordinal", "ratio")
COVERED = [
    *(
        f"two:by_weights.{w}.{c}.{f}"
        for w in (*WEIGHTS, *MATRICES)
        for c in ("ac", "bp", "conger", "fleiss")
        for f in ("coeff", "pa", "pe")
    ),
    *(f"two:by_weights.{w}.percent.{f}" for w in (*WEIGHTS, *MATRICES) for f in ("pa", "coeff")),
    *(f"two:cohen.{w}.kappa" for w in WEIGHTS),
    "two:cohen_se_irrCAC_table.coeff",  # kappa once more
    "two:scott_pi.coeff",
    "two:scott_pi.irrCAC_table.coeff",
    "two:all_raters_agree_fraction_irr",
    "many:by_weights.unweighted.fleiss.coeff",
    *(
        f"{raters}:{path}"
        for raters in ("two", "many")
        for path in (
            *(f"krippendorff_alpha.{level}" for level in panel.LEVELS),
            # The weights under which irrCAC gives the nominal, interval and ratio alpha.
            *(f"by_weights.{w}.kripp.coeff" for w in ("unweighted", "quadratic", "ratio")),
            "light_kappa_irr",  # the mean kappa of all pairs
        )
    ),
]
OWN_INTERVALS = "an asymptotic formula; voirdire's intervals are jackknife intervals of clusters"
PAIRS_ONLY = "not offered by voirdire for more than two raters: it gives these by pair"
OWN_METRIC = "irrCAC's own weights, which are not Krippendorff's metric"
PARTS = "no function gives the parts of alpha and of Fleiss' kappa of many raters"
NOT_COVERED = {
    "two:by_weights.*.percent.pe": "no quantity: zero by definition",
    "*:by_weights.*.precision": "no quantity: says how exact the tool is",
    "*:by_weights.*.se": OWN_INTERVALS,
    "*:by_weights.*.p": OWN_INTERVALS,
    "*:by_weights.*.ci95*": OWN_INTERVALS,
    "*:by_weights.linear.kripp.coeff": OWN_METRIC,
    "*:by_weights.ordinal.kripp.coeff": OWN_METRIC,
    "*:by_weights.*.kripp.p[ae]": PARTS,
    "many:by_weights.*.fleiss.p[ae]": PARTS,
    "many:by_weights.*.fleiss.coeff": "not offered by voirdire: Fleiss' kappa with weights",
    **{
        f"many:by_weights.*.{c}.{f}": PAIRS_ONLY
        for c in ("ac", "bp", "conger", "percent")
        for f in ("coeff", "pa", "pe")
    },
    "*:fleiss_null_z_p_irr": "not offered by voirdire: tests of no agreement at all",
    "many:all_raters_agree_fraction_irr": PAIRS_ONLY,
    "two:cohen.*.null_z_irr": "not offered by voirdire: tests of no agreement at all",
    "two:cohen.*.asymptotic_var_psych": OWN_INTERVALS,
    "two:cohen.*.ci95_normal_psych": OWN_INTERVALS,
    "two:cohen.*.se_*": OWN_INTERVALS,
    "two:cohen_se_irrCAC_table.se": OWN_INTERVALS,
    "two:scott_pi.irrCAC_table.se": OWN_INTERVALS,
    "many:ICC*": "numeric scores come with the checklist and phrasing issues",
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


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("case", TWO, ids=ids(TWO))
def test_scotts_pi_is_that_of_the_tools_and_of_the_loops(case, weights):
    a, b, classes = columns_of(case)
    tolerance = case["tolerance"]
    found = vd.stats.scott_pi(a, b, classes=classes, weights=weights)
    expected = case["expected"]["by_weights"][weights]["fleiss"]
    assert found == pytest.approx(expected["coeff"], abs=tolerance)
    # By hand: chance is that of two raters who both have the mean class shares.
    k, n = len(classes), len(a)
    share = [(a.count(c) + b.count(c)) / (2 * n) for c in classes]
    w = [[agreement_weight(i, j, k, weights) for j in range(k)] for i in range(k)]
    chance = sum(w[i][j] * share[i] * share[j] for i in range(k) for j in range(k))
    seen = loop_two(a, b, classes, weights)["pa"]
    assert found == pytest.approx((seen - chance) / (1 - chance), abs=1e-12)
    assert chance == pytest.approx(expected["pe"], abs=tolerance)
    assert seen == pytest.approx(expected["pa"], abs=tolerance)
    if weights == "unweighted":
        pi = case["expected"]["scott_pi"]
        assert found == pytest.approx(pi["coeff"], abs=tolerance)
        assert found == pytest.approx(pi["irrCAC_table"]["coeff"], abs=tolerance)


def matrix_of(classes: Sequence[Any], kind: str) -> Any:
    """irrCAC's ordinal and ratio weights (Gwet 2014, ch. 3.5), which any function takes as a matrix."""
    k = len(classes)
    if kind == "ordinal":
        apart = [[math.comb(abs(i - j) + 1, 2) for j in range(k)] for i in range(k)]
    else:
        apart = [[((x - y) / (x + y)) ** 2 if x != y else 0 for y in classes] for x in classes]
    most = max(max(row) for row in apart)
    return np.array([[1 - x / most for x in row] for row in apart])


WITH_MATRIX = [
    pytest.param(case, kind, id=f"{case['id']}-{kind}")
    for case in TWO
    for kind in MATRICES
    if kind in case["expected"]["by_weights"]
]


@pytest.mark.parametrize(("case", "kind"), WITH_MATRIX)
def test_coefficients_take_weights_as_a_matrix(case, kind):
    a, b, classes = columns_of(case)
    tolerance = case["tolerance"]
    expected = case["expected"]["by_weights"][kind]
    weights = matrix_of(classes, kind)
    counts = pairwise.pair_counts(a, b, classes)
    observed = float(pairwise.observed(counts, weights))
    assert observed == pytest.approx(expected["percent"]["coeff"], abs=tolerance)
    for name, function, chance in (
        ("conger", vd.stats.cohen_kappa, pairwise.chance_cohen),
        ("ac", vd.stats.gwet_ac, pairwise.chance_gwet),
        ("bp", vd.stats.brennan_prediger, pairwise.chance_uniform),
        ("fleiss", vd.stats.scott_pi, pairwise.chance_scott),
    ):
        found = function(a, b, classes=classes, weights=weights)
        assert found == pytest.approx(expected[name]["coeff"], abs=tolerance), name
        assert observed == pytest.approx(expected[name]["pa"], abs=tolerance), name
        assert float(chance(counts, weights)) == pytest.approx(expected[name]["pe"], abs=tolerance)


ALPHAS = [
    pytest.param(case, level, id=f"{case['id']}-{level}")
    for case in LABELLED
    for level in panel.LEVELS
    if isinstance(case["expected"]["krippendorff_alpha"].get(level), float)
]
WEIGHTS_OF = {"nominal": "unweighted", "interval": "quadratic", "ratio": "ratio"}


@pytest.mark.parametrize(("case", "level"), ALPHAS)
def test_alpha_is_that_of_the_tools_at_every_level(case, level):
    found = vd.stats.krippendorff_alpha(case["input"]["ratings"], level=level)
    tolerance = case["tolerance"]
    assert found == pytest.approx(case["expected"]["krippendorff_alpha"][level], abs=tolerance)
    if level in WEIGHTS_OF:
        weighted = case["expected"]["by_weights"][WEIGHTS_OF[level]]["kripp"]["coeff"]
        assert found == pytest.approx(weighted, abs=tolerance)


def test_ordinal_alpha_is_krippendorffs_and_not_that_of_irrcacs_weights():
    case = next(c for c in CASES if c["id"] == "E02-2r-100-4cat")
    found = vd.stats.krippendorff_alpha(case["input"]["ratings"], level="ordinal")
    assert found == pytest.approx(0.59923752, abs=1e-8)
    assert case["expected"]["by_weights"]["ordinal"]["kripp"]["coeff"] == pytest.approx(0.58216378)


VARIED = [c for c in LABELLED if c["id"] != ONE_CLASS]


@pytest.mark.parametrize("case", VARIED, ids=ids(VARIED))
def test_fleiss_kappa_is_that_of_the_tools_and_for_two_raters_scotts_pi(case):
    ratings = case["input"]["ratings"]
    found = vd.stats.fleiss_kappa(ratings)
    expected = case["expected"]["by_weights"]["unweighted"]["fleiss"]["coeff"]
    assert found == pytest.approx(expected, abs=case["tolerance"])
    if case in TWO:
        a, b, classes = columns_of(case)
        assert found == pytest.approx(vd.stats.scott_pi(a, b, classes=classes), abs=1e-12)
    if not any(None in unit for unit in ratings):
        # 1 − alpha = (1 − 1/N)(1 − kappa), N labels in all.
        n = sum(len(unit) for unit in ratings)
        alpha = vd.stats.krippendorff_alpha(ratings)
        assert 1 - alpha == pytest.approx((1 - 1 / n) * (1 - found), abs=1e-12)


@pytest.mark.parametrize("case", VARIED, ids=ids(VARIED))
def test_the_mean_kappa_of_all_pairs_is_lights_kappa(case):
    if "light_kappa_irr" not in case["expected"]:
        assert any(None in unit for unit in case["input"]["ratings"])
        return
    columns = list(zip(*case["input"]["ratings"], strict=True))
    kappas = [vd.stats.cohen_kappa(a, b) for a, b in itertools.combinations(columns, 2)]
    mean = math.fsum(kappas) / len(kappas)
    assert mean == pytest.approx(case["expected"]["light_kappa_irr"], abs=case["tolerance"])


@pytest.mark.parametrize("case", TWO, ids=ids(TWO))
def test_where_two_raters_agree_all_do(case):
    a, b, _ = columns_of(case)
    expected = case["expected"]["all_raters_agree_fraction_irr"]
    assert vd.stats.percent_agreement(a, b) == pytest.approx(expected, abs=case["tolerance"])


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
        "scott_pi": expected["fleiss"]["coeff"],
    }
    if len(classes) > 2:
        of = case["expected"]["by_weights"]
        wanted["weighted_kappa_linear"] = of["linear"]["conger"]["coeff"]
        wanted["weighted_kappa_quadratic"] = of["quadratic"]["conger"]["coeff"]
        wanted["gwet_ac2_quadratic"] = of["quadratic"]["ac"]["coeff"]
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


@pytest.mark.parametrize("case", VARIED, ids=ids(VARIED))
def test_an_audit_gives_the_panel_coefficients_of_the_tools(case):
    results = audited(case)
    tolerance = case["tolerance"]
    fleiss = case["expected"]["by_weights"]["unweighted"]["fleiss"]["coeff"]
    assert value(results, "fleiss_kappa") == pytest.approx(fleiss, abs=tolerance)
    alphas = case["expected"]["krippendorff_alpha"]
    # With two classes every level says what the nominal one says, so only that one is given.
    levels = list(alphas) if len(case["input"]["categories"]) > 2 else ["nominal"]
    for level in levels:
        found = value(results, f"krippendorff_alpha_{level}")
        assert found == pytest.approx(alphas[level], abs=tolerance), level


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
    for statistic in ("cohen_kappa", "scott_pi", "fleiss_kappa", "krippendorff_alpha_nominal"):
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


def test_with_one_class_the_coefficients_of_a_panel_are_nan_and_warn():
    # Tools say 1, NaN, or stop: irrCAC gives 1, irr NaN, krippendorff raises. 0/0 is undefined here.
    ratings = one_class()["input"]["ratings"]
    for level in panel.LEVELS:
        with pytest.warns(UndefinedWarning, match="one class"):
            assert math.isnan(vd.stats.krippendorff_alpha(ratings, level=level))
    with pytest.warns(UndefinedWarning, match="one class"):
        assert math.isnan(vd.stats.fleiss_kappa(ratings))
    a, b = [r[0] for r in ratings], [r[1] for r in ratings]
    for weights in (None, "linear", "quadratic"):
        with pytest.warns(UndefinedWarning, match="one class"):
            assert math.isnan(vd.stats.scott_pi(a, b, classes=[0, 1], weights=weights))


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
