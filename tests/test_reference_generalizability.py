"""Variance components, G, Φ and Φ(λ) of the crossed design beside reference values."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voirdire as vd
from voirdire.errors import UndefinedWarning

FILE = Path(__file__).parents[2] / "shared" / "reference" / "D_generalizability.json"
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="the shared reference values do not stand beside this repository"
)
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"] if FILE.is_file() else []
CONSTANT = "D13-pxi-constant-10x4"
MISSING = "D07-pxi-missing-40x6"
CROSSED = [c for c in CASES if c["input"]["design"] == "p x i" and c["id"] != MISSING]

COVERED = {
    "grand_mean",
    "mean_squares",
    "anova_components",
    "dstudy_anova",
    "dstudy_anova_truncated",
    "G",
    "Phi",
    "phi_lambda",
    "sem",
}
NOT_COVERED = {
    "reml_components": "restricted likelihood: see test_reference_variance_components",
}
OTHER_DESIGNS = {
    "p x i x r": "three facets: see test_reference_variance_components",
    "i:p": "every response with lines of its own: see test_reference_variance_components",
    "(p:c) x i": "responses in classes: see test_reference_variance_components",
}
OTHER_CASES = {
    MISSING: "missing cells: restricted likelihood only, see test_reference_variance_components"
}

crossed = pytest.mark.parametrize("case", CROSSED, ids=lambda c: c["id"])


def scores(case: dict[str, Any]) -> np.ndarray:
    rows = case["input"]["scores"]
    return np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=np.float64)


def same(found: float, expected: Any) -> None:
    """Equal to 1e-9, absolute or relative; nan where the tool has none."""
    if expected == "NaN":
        assert math.isnan(found)
    else:
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_every_case_and_quantity_is_covered_or_named() -> None:
    for case in CASES:
        design = case["input"]["design"]
        if case not in CROSSED:
            assert case["id"] in OTHER_CASES or design in OTHER_DESIGNS
            continue
        assert set(case["expected"]) <= COVERED | set(NOT_COVERED)
    assert {c["id"].partition("-")[0] for c in CROSSED} == {
        f"D{i:02}" for i in (1, 2, 3, 4, 5, 6, 12, 13, 14)
    }


@crossed
def test_components_and_mean_squares(case: dict[str, Any]) -> None:
    x, expected = scores(case), case["expected"]
    n, k = x.shape
    raw, used = vd.stats.variance_components(x)
    same(raw.rows, expected["anova_components"]["p"])
    same(raw.columns, expected["anova_components"]["i"])
    same(raw.residual, expected["anova_components"]["pi"])
    same(raw.residual + k * raw.rows, expected["mean_squares"]["p"])
    same(raw.residual + n * raw.columns, expected["mean_squares"]["i"])
    same(raw.residual, expected["mean_squares"]["pi"])
    assert used == tuple(max(c, 0) for c in raw)
    same(float(x.mean()), expected["grand_mean"])


@crossed
@pytest.mark.filterwarnings("ignore::voirdire.errors.UndefinedWarning")
def test_g_and_phi_at_every_number_of_columns(case: dict[str, Any]) -> None:
    x, expected = scores(case), case["expected"]
    found = vd.stats.variance_components(x)
    k = x.shape[1]
    same(vd.stats.generalizability(found, k), expected["G"])
    same(vd.stats.dependability(found, k), expected["Phi"])
    same(vd.stats.standard_error(found, k), expected["sem"]["relative"])
    same(vd.stats.standard_error(found, k, absolute=True), expected["sem"]["absolute"])
    for components, rows in ((found.raw, "dstudy_anova"), (found.used, "dstudy_anova_truncated")):
        assert expected[rows]
        for row in expected[rows]:
            of = row["n_i"]
            same(vd.stats.generalizability(components, of), row["G"])
            same(vd.stats.dependability(components, of), row["Phi"])
            same(vd.stats.standard_error(components, of) ** 2, row["rel_error"])
            same(vd.stats.standard_error(components, of, absolute=True) ** 2, row["abs_error"])


@crossed
@pytest.mark.filterwarnings("ignore::voirdire.errors.UndefinedWarning")
def test_phi_lambda_corrected_and_not(case: dict[str, Any]) -> None:
    x = scores(case)
    assert case["expected"]["phi_lambda"]
    for row in case["expected"]["phi_lambda"]:
        cut = row["lambda_"] * x.shape[1]
        same(vd.stats.phi_lambda(x, cut), row["bias_corrected"])
        same(vd.stats.phi_lambda(x, cut, corrected=False), row["uncorrected"])
        same(vd.stats.phi_lambda(x, cut, raw=True), row["bias_corrected"])


@crossed
@pytest.mark.filterwarnings("ignore::voirdire.errors.UndefinedWarning")
def test_g_equals_alpha(case: dict[str, Any]) -> None:
    x = scores(case)
    same(
        vd.stats.generalizability(vd.stats.variance_components(x), x.shape[1]),
        vd.stats.cronbach_alpha(x) if case["id"] != CONSTANT else "NaN",
    )


def test_missing_cells_are_undefined_and_say_so() -> None:
    (case,) = [c for c in CASES if c["id"] == MISSING]
    with pytest.warns(UndefinedWarning, match="every cell"):
        found = vd.stats.variance_components(scores(case))
    assert math.isnan(found.raw.rows)
