"""Components of every design by mean squares and restricted likelihood, beside reference values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voirdire.stats.random_effects import (
    DESIGNS,
    analysis_of_variance,
    reml_components,
    restricted_likelihood,
)

FILE = Path(__file__).parents[2] / "shared" / "reference" / "D_generalizability.json"
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="the shared reference values do not stand beside this repository"
)
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"] if FILE.is_file() else []
MISSING = "D07-pxi-missing-40x6"
LARGE = "D14-pxi-2000x6"
COMPLETE = [c for c in CASES if c["id"] != MISSING]
LIKELY = [c for c in COMPLETE if "reml_components" in c["expected"]]
TWO_WAY = [
    c for c in CASES if c["input"]["design"] == "p x i" and "reml_components" in c["expected"]
]


def scores(case: dict[str, Any]) -> np.ndarray:
    filled = json.loads(json.dumps(case["input"]["scores"]).replace("null", "NaN"))
    return np.array(filled, dtype=np.float64)


def close(found: dict[str, float], expected: dict[str, float], tolerance: float) -> None:
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=tolerance, abs=tolerance), name


def test_every_case_is_of_a_known_design_and_held() -> None:
    assert {c["input"]["design"] for c in CASES} <= set(DESIGNS)
    held = {c["id"] for c in (*COMPLETE, *TWO_WAY)}
    assert held == {c["id"] for c in CASES}
    # Without a likelihood in the reference: scores without residual variance.
    none = {c["id"] for c in CASES if "reml_components" not in c["expected"]}
    assert none == {"D12-pxi-perfect-20x4", "D13-pxi-constant-10x4"}


@pytest.mark.parametrize("case", COMPLETE, ids=lambda c: c["id"])
def test_mean_squares_and_components(case: dict[str, Any]) -> None:
    found, expected = analysis_of_variance(scores(case), case["input"]["design"]), case["expected"]
    close(found.mean_squares, expected["mean_squares"], 1e-9)
    close(found.raw, expected["anova_components"], 1e-9)
    assert found.mean == pytest.approx(expected["grand_mean"], abs=1e-9)
    assert found.used == {n: max(c, 0) for n, c in found.raw.items()}


@pytest.mark.parametrize("case", LIKELY, ids=lambda c: c["id"])
def test_restricted_likelihood_of_complete_scores(case: dict[str, Any]) -> None:
    found = restricted_likelihood(scores(case), case["input"]["design"])
    close(found, case["expected"]["reml_components"], case["tolerance"])
    assert min(found.values()) >= 0


@pytest.mark.parametrize("case", TWO_WAY, ids=lambda c: c["id"])
def test_restricted_likelihood_from_cells(case: dict[str, Any]) -> None:
    found = reml_components(scores(case))
    named = {"p": found["rows"], "i": found["columns"], "pi": found["residual"]}
    close(named, case["expected"]["reml_components"], case["tolerance"])


def test_a_negative_component_is_held_at_zero_and_the_others_move() -> None:
    (case,) = [c for c in CASES if c["id"].startswith("D09")]
    assert analysis_of_variance(scores(case), "p x i x r").raw["ir"] < 0
    found = restricted_likelihood(scores(case), "p x i x r")
    assert found["ir"] == 0
    assert found["pi"] != pytest.approx(case["expected"]["anova_components"]["pi"], rel=1e-5)


def test_rows_in_clusters_from_cells_are_those_of_the_nested_design() -> None:
    (case,) = [c for c in CASES if c["input"]["design"] == "(p:c) x i"]
    x = scores(case)
    c, p, k = x.shape
    cluster = np.repeat(np.arange(c), p)
    order = np.random.default_rng(1).permutation(c * p)
    found = reml_components(x.reshape(c * p, k)[order], cluster=cluster[order])
    named = {
        "c": found["clusters"], "p:c": found["rows"], "i": found["columns"],
        "ci": found["clusters_columns"], "pi:c": found["residual"],
    }  # fmt: skip
    close(named, case["expected"]["reml_components"], case["tolerance"])


def test_coefficients_of_other_designs_follow_from_the_components() -> None:
    by_design = {c["input"]["design"]: c for c in CASES if c["id"][:3] in ("D08", "D10", "D11")}
    crossed = by_design["p x i x r"]
    c = analysis_of_variance(scores(crossed), "p x i x r").used
    assert crossed["expected"]["dstudy_anova"]
    for row in crossed["expected"]["dstudy_anova"]:
        i, r = row["n_i"], row["n_r"]
        relative = c["pi"] / i + c["pr"] / r + c["pir"] / (i * r)
        absolute = relative + c["i"] / i + c["r"] / r + c["ir"] / (i * r)
        assert c["p"] / (c["p"] + relative) == pytest.approx(row["G"], abs=1e-9)
        assert c["p"] / (c["p"] + absolute) == pytest.approx(row["Phi"], abs=1e-9)
    nested = by_design["i:p"]
    c = analysis_of_variance(scores(nested), "i:p").used
    assert c["p"] / (c["p"] + c["i:p"] / 6) == pytest.approx(nested["expected"]["Phi"], abs=1e-9)
    classes = by_design["(p:c) x i"]
    x = scores(classes)
    c = analysis_of_variance(x, "(p:c) x i").used
    _, p, k = x.shape
    relative = c["p:c"] / p + c["ci"] / k + c["pi:c"] / (p * k)
    share = c["c"] / (c["c"] + relative)
    assert share == pytest.approx(classes["expected"]["G_class_means"], abs=1e-9)
    share = c["c"] / (c["c"] + relative + c["i"] / k)
    assert share == pytest.approx(classes["expected"]["Phi_class_means"], abs=1e-9)


def test_missing_cells_give_the_coefficients_of_the_reference() -> None:
    (case,) = [c for c in CASES if c["id"] == MISSING]
    found = reml_components(scores(case))
    for row in case["expected"]["dstudy_reml"]:
        relative = found["residual"] / row["n_i"]
        absolute = relative + found["columns"] / row["n_i"]
        assert found["rows"] / (found["rows"] + relative) == pytest.approx(row["G"], abs=1e-5)
        assert found["rows"] / (found["rows"] + absolute) == pytest.approx(row["Phi"], abs=1e-5)
