"""Design weights and stratified samples: every case of reference family G, and honest edges."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire.auditing import Audit, scenes
from voirdire.errors import InputError, UndefinedWarning
from voirdire.intervals import t_quantile
from voirdire.resampling import left_out
from voirdire.stats.survey import (
    INTERVALS,
    StratifiedProportion,
    kish_effective_n,
    stratified_proportion,
)

FILE = Path(__file__).parents[2] / "shared" / "reference" / "G_survey_weighted.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"] if FILE.is_file() else []
needs_reference = pytest.mark.skipif(
    not CASES, reason="the shared reference values do not stand beside this repository"
)
STRATIFIED = [c for c in CASES if "y" in c["input"]]
KISH = [c for c in CASES if "weights" in c["input"]]
INSIDE = [c for c in STRATIFIED if c["expected"]["estimate"] < 1]


def ids(cases: list[Any]) -> list[str]:
    return [c["id"] for c in cases]


def of_case(case: Any, *, fpc: bool) -> StratifiedProportion:
    given = case["input"]
    return stratified_proportion(given["y"], given["stratum"], given["stratum_sizes"], fpc=fpc)


# --- the cases of family G ----------------------------------------------------------------------


@needs_reference
def test_the_family_holds_no_case_that_is_not_looked_at() -> None:
    assert len(STRATIFIED) + len(KISH) == len(CASES) == 10
    assert [c["id"] for c in STRATIFIED if c not in INSIDE] == ["G04-all-ones"]


@needs_reference
@pytest.mark.parametrize("case", STRATIFIED, ids=ids(STRATIFIED))
def test_estimate_total_and_effective_n_are_those_of_r_survey(case: Any) -> None:
    found, expected, close = of_case(case, fpc=True), case["expected"], case["tolerance"]
    assert found.estimate == pytest.approx(expected["estimate"], abs=close)
    assert found.kish_n == pytest.approx(expected["kish_effective_n"], rel=close)
    total, se = expected["total_and_se_fpc"]
    assert found.total == pytest.approx(total, rel=close)
    assert found.total_se == pytest.approx(se, rel=close, abs=close)
    assert np.mean(case["input"]["y"]) == pytest.approx(expected["srs_unweighted"], abs=close)


@needs_reference
@pytest.mark.parametrize("kind", ["fpc", "nofpc"])
@pytest.mark.parametrize("case", INSIDE, ids=ids(INSIDE))
def test_errors_design_effect_and_intervals_are_those_of_r_survey(case: Any, kind: str) -> None:
    found, expected = of_case(case, fpc=kind == "fpc"), case["expected"][kind]
    close = case["tolerance"]
    assert found.se == pytest.approx(expected["se"], abs=close)
    assert found.df == expected["df"]
    assert found.deff == pytest.approx(expected["deff"], abs=close)
    assert set(found.intervals) == set(INTERVALS)
    for name in INTERVALS:
        if name != "likelihood":
            assert found.intervals[name] == pytest.approx(expected[name], abs=close), name
    assert found.edge == found.reason == ""


def fmm_spline(x: Any, y: Any, at: Any) -> Any:
    """Forsythe, Malcolm and Moler's cubic spline, which R's ``spline`` draws by default.

    At each end the third derivative is that of the cubic through the four outermost points.
    """
    n, d = len(x), np.diff(x)
    slope = np.diff(y) / d
    a, right = np.zeros((n, n)), np.zeros(n)
    for i in range(1, n - 1):
        a[i, i - 1], a[i, i], a[i, i + 1] = d[i - 1], 2 * (d[i - 1] + d[i]), d[i]
        right[i] = slope[i] - slope[i - 1]
    second = (slope[1:] - slope[:-1]) / (x[2:] - x[:-2])
    third = (second[1:] - second[:-1]) / (x[3:] - x[:-3])
    a[0, 0], a[0, 1], right[0] = -d[0], d[0], d[0] ** 2 * third[0]
    a[-1, -1], a[-1, -2], right[-1] = -d[-1], d[-1], -(d[-1] ** 2) * third[-1]
    c = np.linalg.solve(a, right)
    i = np.clip(np.searchsorted(x, at, side="right") - 1, 0, n - 2)
    h = at - x[i]
    first = slope[i] - d[i] * (c[i + 1] + 2 * c[i])
    return y[i] + h * (first + h * (3 * c[i] + h * (c[i + 1] - c[i]) / d[i]))


def last_but_one_slope(y: Any, weights: Any) -> float:
    """p (1 − p) at the step before R's ``glm`` stops, from which its naive variance is made."""
    start = (weights * y + 0.5) / (weights + 1)
    eta, deviance = np.log(start / (1 - start)), math.inf
    while True:
        mu = 1 / (1 + np.exp(-eta))
        slope = mu * (1 - mu)
        work = weights * slope
        eta = np.full(len(y), (work * (eta + (y - mu) / slope)).sum() / work.sum())
        mu = 1 / (1 + np.exp(-eta))
        before, deviance = (
            deviance,
            -2 * float((weights * np.log(np.where(y > 0, mu, 1 - mu))).sum()),
        )
        if abs(deviance - before) / (abs(deviance) + 0.1) < 1e-8:
            return float(work.sum() / weights.sum())


def as_r_reads_the_profile(
    p: float, se: float, n: int, df: int, naive: float
) -> tuple[float, float]:
    """The likelihood interval as R survey 4.1 prints it: read off a spline of the profile.

    The profile is the signed root of the deviance over the dispersion n / (n − 1), at steps of a
    fifth of its end in design standard errors; the spline is evaluated at three times as many
    points, and between these R goes along straight lines. That is where its fifth digit goes.
    """
    from scipy.stats import f, norm

    slope = p * (1 - p)
    limit = t_quantile(0.975, df) * se / slope * math.sqrt(n * naive)
    alpha = norm.cdf(-limit) / 2
    end = math.sqrt(f.isf(alpha, 1, n - 1))
    logit = math.log(p / (1 - p))
    points = {logit: 0.0}
    for sign in (-1, 1):
        step, z = 0, 0.0
        while (step := step + 1) < 10 and abs(z) < end:
            eta = logit + sign * step * end / 5 * se / slope
            q = 1 / (1 + math.exp(-eta))
            deviance = 2 * n * (p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)))
            z = sign * math.sqrt(deviance / (n / (n - 1)))
            points[eta] = z
    x = np.array(sorted(points))
    z_values = np.array([points[v] for v in x])
    fine = np.linspace(x[0], x[-1], 3 * len(x))
    low, high = np.interp([-limit, limit], fmm_spline(x, z_values, fine), fine)
    return 1 / (1 + math.exp(-low)), 1 / (1 + math.exp(-high))


@needs_reference
@pytest.mark.parametrize("kind", ["fpc", "nofpc"])
@pytest.mark.parametrize("case", INSIDE, ids=ids(INSIDE))
def test_the_likelihood_interval_is_what_r_survey_interpolates(case: Any, kind: str) -> None:
    found, expected = of_case(case, fpc=kind == "fpc"), case["expected"][kind]["likelihood"]
    y, stratum = np.array(case["input"]["y"]), np.array(case["input"]["stratum"])
    weights = (np.array(case["input"]["stratum_sizes"]) / np.bincount(stratum)[1:])[stratum - 1]
    naive = last_but_one_slope(y, weights / weights.mean())
    read = as_r_reads_the_profile(found.estimate, found.se, found.n, found.df, naive)
    assert read == pytest.approx(expected, abs=case["tolerance"])
    # Ours solves for the limit itself; R's reading is off by some 3e-5.
    assert found.intervals["likelihood"] == pytest.approx(expected, abs=5e-5)


@needs_reference
def test_where_all_are_ones_r_gives_a_point_or_nothing_and_we_give_one_side() -> None:
    case = next(c for c in STRATIFIED if c["expected"]["estimate"] == 1)
    for kind in ("fpc", "nofpc"):
        theirs = case["expected"][kind]
        assert theirs["wald_t"] == [1.0, 1.0]
        assert theirs["beta"] == ["NaN", "NaN"]
        found = of_case(case, fpc=kind == "fpc")
        assert found.se == theirs["se"] == 0
        assert found.df == theirs["df"] == 28
        assert math.isnan(found.deff)
        assert theirs["deff"] == "NaN"
        assert "one-sided" in found.edge
        for name in INTERVALS:
            if name != "beta":
                assert all(map(math.isnan, found.intervals[name])), name
        low, high = found.intervals["beta"]
        assert high == 1
        # Kish's n is 28.85; t on 29 and on 28 degrees of freedom: (2.0452 / 2.0484)² = 0.9969.
        # 0.025 to the power of 1 / 28.76 is 0.8796.
        assert low == pytest.approx(0.8796, abs=1e-4)


@needs_reference
@pytest.mark.parametrize("case", KISH, ids=ids(KISH))
def test_kish_effective_n_and_its_design_effect(case: Any) -> None:
    weights = case["input"]["weights"]
    found, close = kish_effective_n(weights), case["tolerance"]
    assert found == pytest.approx(case["expected"]["kish_effective_n"], rel=close)
    assert len(weights) / found == pytest.approx(case["expected"]["kish_deff"], rel=close)


# --- by hand ------------------------------------------------------------------------------------


def test_a_stratified_share_by_hand() -> None:
    # a: 1 of 2 of 30; b: 3 of 4 of 10. Share: 30/40 · 1/2 + 10/40 · 3/4 = 0.375 + 0.1875 = 0.5625.
    # s² = 0.5 in a and 0.25 in b, so s²/n = 0.25 and 0.0625.
    # Variance: 0.5625 · (1 − 2/30) · 0.25 + 0.0625 · (1 − 4/10) · 0.0625 = 0.13125 + 0.00234375.
    found = stratified_proportion("010111", "aabbbb", {"a": 30, "b": 10})
    assert found.estimate == 0.5625
    assert found.se == pytest.approx(math.sqrt(0.13359375))
    assert (found.df, found.n) == (4, 6)
    assert found.total == 22.5
    assert found.total_se == pytest.approx(40 * math.sqrt(0.13359375))
    # Weights 15, 15, 2.5 four times: 40² / (2 · 225 + 4 · 6.25) = 1600 / 475.
    assert found.kish_n == pytest.approx(1600 / 475)
    without = stratified_proportion("010111", "aabbbb", {"a": 30, "b": 10}, fpc=False)
    assert without.se == pytest.approx(math.sqrt(0.5625 * 0.25 + 0.0625 * 0.0625))


def test_a_stratum_that_is_sampled_whole_adds_no_variance() -> None:
    # b is sampled whole: only a's 0.75² · (1 − 2/12) · 0.25 stays.
    found = stratified_proportion("010111", "aabbbb", {"a": 12, "b": 4})
    assert found.se == pytest.approx(math.sqrt(0.5625 * (1 - 2 / 12) * 0.25))
    assert stratified_proportion("010111", "aabbbb", {"a": 12, "b": 4}, fpc=False).se > found.se


def test_a_sample_of_everything_is_the_share_itself() -> None:
    found = stratified_proportion("0101", "aabb", {"a": 2, "b": 2})
    assert found.se == 0
    assert set(found.intervals.values()) == {(0.5, 0.5)}
    assert "sampled whole" in found.edge


def test_a_response_that_is_a_stratum_of_its_own_is_known_where_it_is_the_whole_stratum() -> None:
    found = stratified_proportion([1, 0, 1], ["x", "a", "a"], {"x": 1, "a": 4})
    assert found.reason == ""
    # 0.8² · (1 − 2/4) · 0.5 / 2 = 0.64 · 0.125
    assert found.se == pytest.approx(math.sqrt(0.08))


def test_strata_that_do_not_vary_leave_the_beta_interval_on_the_effective_number() -> None:
    found = stratified_proportion([0] * 10 + [1] * 10, ["a"] * 10 + ["b"] * 10, [50, 50])
    assert found.estimate == 0.5
    assert found.se == 0
    low, high = found.intervals["beta"]
    assert 0.2 < low < 0.5 < high < 0.8
    assert "no stratum varies" in found.edge
    assert "one-sided" not in found.edge


def test_a_stratum_with_one_response_of_several_has_no_standard_error() -> None:
    with pytest.warns(UndefinedWarning, match="one response only"):
        found = stratified_proportion([1, 0, 1], ["x", "a", "a"], {"x": 5, "a": 4})
    assert found.estimate == pytest.approx(5 / 9 + 4 / 9 / 2)
    assert math.isnan(found.se)
    assert "one response only" in found.reason
    assert all(math.isnan(x) for ends in found.intervals.values() for x in ends)


def test_a_stratum_that_nobody_could_be_read_in_leaves_the_share_unknown() -> None:
    with pytest.warns(UndefinedWarning, match="no readable response"):
        found = stratified_proportion([1, 0, None], ["a", "a", "x"], {"a": 4, "x": 5})
    assert math.isnan(found.estimate)
    assert "no readable response" in found.reason


@pytest.mark.parametrize(
    ("y", "stratum", "sizes", "message"),
    [
        ([0, 2], "aa", {"a": 4}, "other than 0 and 1"),
        ([0, 1], "ab", {"a": 4}, "does not say how many responses the stratum 'b'"),
        ([0, 1], "aa", {"a": 1}, "2 responses in the sample and 1 in all"),
        ([0, 1], "a", {"a": 4}, "2 values and stratum 1"),
        ([0, 1], "ab", [4], "sizes has 1 strata"),
        ([0, 1], "aa", {"a": math.nan}, "nan in all"),
    ],
)
def test_input_that_is_no_sample_of_the_strata_is_refused(
    y: Any, stratum: Any, sizes: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        stratified_proportion(y, stratum, sizes)


def test_kish_counts_equal_weights_once_and_refuses_bad_ones() -> None:
    assert kish_effective_n([2, 2, 2]) == 3
    assert kish_effective_n([1, 0, 0]) == 1
    with pytest.warns(UndefinedWarning, match="zero"):
        assert math.isnan(kish_effective_n([0, 0]))
    for bad in ([1, -1], [1, math.nan], [1, math.inf]):
        with pytest.raises(InputError, match="number 2"):
            kish_effective_n(bad)


def test_the_plain_functions_are_found_in_the_package() -> None:
    assert vd.stats.kish_effective_n([1, 1]) == 2
    assert vd.stats.stratified_proportion("01", "aa", [9]).estimate == 0.5


# --- coverage -----------------------------------------------------------------------------------


def test_intervals_cover_a_planted_share() -> None:
    # Three strata of 200, 100 and 50 with 10, 50 and 90 % ones; 25 drawn from each without
    # replacement. 200 samples: 95 % give or take three standard errors of 1.5 points.
    generator = np.random.default_rng(20)
    sizes = {"a": 200, "b": 100, "c": 50}
    people = {
        s: np.arange(n) < n * p for (s, n), p in zip(sizes.items(), (0.1, 0.5, 0.9), strict=True)
    }
    truth = sum(int(x.sum()) for x in people.values()) / 350
    stratum = np.repeat(list(sizes), 25)
    covered = dict.fromkeys(("logit", "likelihood", "beta", "wald_t"), 0)
    for _ in range(200):
        y = np.concatenate([generator.choice(x, 25, replace=False) for x in people.values()])
        found = stratified_proportion(y.astype(int), stratum, sizes)
        for name in covered:
            low, high = found.intervals[name]
            covered[name] += low <= truth <= high
    assert all(share / 200 > 0.904 for share in covered.values()), covered


# --- in the audit -------------------------------------------------------------------------------


def drawn(case: Any) -> pl.DataFrame:
    """The sample of a case as a label table with design weights N_h / n_h."""
    given = case["input"]
    stratum = np.array(given["stratum"])
    n = np.bincount(stratum)[1:]
    weight = (np.array(given["stratum_sizes"]) / n)[stratum - 1]
    return pl.DataFrame(
        {
            "response": [f"r{i}" for i in range(len(stratum))],
            "grader": "people",
            "label": ["yes" if y else "no" for y in given["y"]],
            "stratum": stratum.astype(str),
            "weight": weight,
        }
    )


AUDITED = {"weight": "weight", "stratum": "stratum", "scale": "no,yes"}


def one(audit: Any, statistic: str, **key: str) -> dict[str, Any]:
    rows = audit.results.filter(
        (pl.col("statistic") == statistic), *(pl.col(c) == v for c, v in key.items())
    )
    assert len(rows) == 1, rows
    return dict(rows.row(0, named=True))


@needs_reference
@pytest.mark.parametrize("case", INSIDE, ids=ids(INSIDE))
def test_an_audit_with_weights_and_strata_gives_the_stratified_rate(case: Any) -> None:
    row = one(vd.audit(vd.read(drawn(case), **AUDITED)), "rate", grader="people")
    expected = case["expected"]
    assert row["value"] == pytest.approx(expected["estimate"], abs=1e-12)
    assert row["n"] == len(case["input"]["y"])
    # The jackknife is made on the logit scale, where one response of much weight moves more than
    # its straight line says: it is never narrower, and up to a sixth wider (G02, 10 a stratum).
    assert row["method"] == "jackknife_t"
    low, high = expected["nofpc"]["logit"]
    assert row["low"] <= low + 1e-3
    assert row["high"] >= high - 1e-3
    assert row["high"] - row["low"] <= 1.17 * (high - low)


@needs_reference
@pytest.mark.parametrize("case", INSIDE, ids=ids(INSIDE))
def test_leaving_out_one_response_of_a_stratum_gives_the_stratified_standard_error(
    case: Any,
) -> None:
    # On the plain scale both are the same algebra: W² s²/n, stratum by stratum.
    tally = scenes(vd.read(drawn(case), **AUDITED))[0].labels_tally("people")
    variance = 0.0
    p = case["expected"]["estimate"]
    held: dict[int, list[Any]] = {}
    for totals, clusters, strata in left_out(tally):
        share = totals[:, 1] / totals.sum(axis=-1)
        for stratum in np.unique(strata):
            here = strata == stratum
            held.setdefault(int(stratum), []).append((share[here] - p, clusters[here]))
    for chunks in held.values():
        moved, weight = (np.concatenate([c[i] for c in chunks]) for i in (0, 1))
        n = weight.sum()
        variance += (n - 1) / n * float(weight @ (moved - weight @ moved / n) ** 2)
    assert math.sqrt(variance) == pytest.approx(case["expected"]["nofpc"]["se"], rel=1e-9)


@needs_reference
def test_an_audit_gives_kish_n_with_design_weights_and_not_with_frequencies() -> None:
    case = STRATIFIED[0]
    audit = vd.audit(vd.read(drawn(case), **AUDITED))
    row = one(audit, "kish_n", grader="people")
    assert row["value"] == pytest.approx(case["expected"]["kish_effective_n"])
    assert (row["n"], row["describes"], row["low"]) == (75, "bank", None)
    whole = drawn(case).with_columns(pl.lit(2.0).alias("weight"))
    counted = vd.audit(vd.read(whole, **AUDITED, weight_kind="frequency"))
    assert "kish_n" not in set(counted.results["statistic"])


def test_kish_n_of_weights_that_are_all_zero_is_undefined_with_a_reason() -> None:
    frame = pl.DataFrame(
        {
            "response": list("abc"),
            "grader": ["g", "g", "h"],
            "label": ["no", "yes", "no"],
            "weight": [0, 0, 1],
        }
    )
    audit = vd.audit(vd.read(frame, weight="weight", scale="no,yes", layout="long"))
    row = one(audit, "kish_n", grader="g")
    assert row["value"] is None
    assert row["reason"] == "all weights are zero"


# --- people ------------------------------------------------------------------------------------


def corpus() -> pl.DataFrame:
    """900 responses under a reference, a grader and people who label a drawn part (MCC Table 11).

    The reference says refusal 400, evasion 300, comply 200 times. People label 40 of each, so the
    weights of these are 10, 7.5 and 5. Where the reference says evasion, people find comply in 20
    of 40 and evasion in the rest; the small grader says evasion in 28 and refusal in 12 of those,
    and agrees with the people in 14 of 40. Elsewhere people say as the reference does.
    """
    rows: list[tuple[str, str, str, str, float | None]] = []
    at = 0
    for said, size, weight in (("refusal", 400, 10.0), ("evasion", 300, 7.5), ("comply", 200, 5.0)):
        for i in range(size):
            response = f"r{at:03}"
            at += 1
            small = {"refusal": "refusal", "comply": "evasion"}.get(said)
            small = small or ("evasion" if i % 40 < 14 or i % 40 >= 26 else "refusal")
            human = (
                said if said != "evasion" else ("evasion" if i < 14 or 20 <= i < 26 else "comply")
            )
            if i >= 40:
                continue
            for grader, label in (("ref", said), ("small", small), ("people", human)):
                rows.append((response, grader, label, said, weight))
    return pl.DataFrame(
        rows, schema=["response", "grader", "label", "stratum", "weight"], orient="row"
    )


PEOPLE = {
    "weight": "weight",
    "stratum": "stratum",
    "scale": "refusal,evasion,comply",
    "people": "people",
    "reference": "people",
    "by": "label:ref",
}


@cache
def with_people() -> Audit:
    return vd.audit(vd.read(corpus(), **PEOPLE))


def test_people_are_one_more_grader_and_their_rate_is_brought_to_the_whole_by_weights() -> None:
    audit = with_people()
    # People: 20 of 40 evasions at 7.5 and 40 complies at 5: 150 + 200 of 900.
    row = one(audit, "rate", grader="people", **{"class": "comply", "slice": ""})
    assert row["value"] == pytest.approx(350 / 900)
    assert row["n"] == 120
    # The reference's own 40 complies stand for its 200 of 900.
    row = one(audit, "rate", grader="ref", **{"class": "comply", "slice": ""})
    assert row["value"] == pytest.approx(200 / 900)
    row = one(audit, "rate", grader="small", **{"class": "comply", "slice": ""})
    assert row["value"] == 0
    # 900² / (40 · 10² + 40 · 7.5² + 40 · 5²) = 810,000 / 7,250
    row = one(audit, "kish_n", grader="people", slice="")
    assert row["value"] == pytest.approx(810_000 / 7_250)


def test_agreement_with_people_is_told_within_what_a_third_grader_calls_a_class() -> None:
    audit = with_people()
    within = {"other": "people", "slice": "label:ref=evasion"}
    row = one(audit, "agreement", grader="small", **within)
    assert row["value"] == pytest.approx(14 / 40)
    assert row["n"] == 40
    # The reference says evasion on all of them, and people do in 20.
    row = one(audit, "agreement", grader="ref", **within)
    assert row["value"] == pytest.approx(20 / 40)


def test_people_are_accused_of_nothing() -> None:
    audit = with_people()
    assert not [f for f in audit.findings if f.grader == "people" and str(f.state) == "found"]


def test_the_report_says_what_the_weights_cost(tmp_path: Path) -> None:
    with_people().write(tmp_path / "a.txt")
    text = (tmp_path / "a.txt").read_text(encoding="utf-8")
    assert "What the weights cost" in text
    assert "111.7" in text
