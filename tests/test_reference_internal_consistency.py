"""Internal consistency beside values from R (psych) and direct formulas, and what is not covered."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voirdire as vd
from voirdire.errors import UndefinedWarning
from voirdire.stats.kuder_richardson import one_factor

FILE = Path(__file__).parents[2] / "shared" / "reference" / "A_internal_consistency.json"
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="the shared reference values do not stand beside this repository"
)
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"] if FILE.is_file() else []
BY_ID = {c["id"].partition("-")[0]: c for c in CASES}

OMEGA = "omega.omega_1f_cor_minres"
COVERED = {
    "alpha",
    "average_r",
    "std_alpha",
    "alpha_if_deleted",
    "alpha_without_constant_items",
    "alpha_listwise",
    OMEGA,
    *(f"{c}_totalvar_ddof{d}" for c in ("kr20", "kr21") for d in (0, 1)),
}
OWN_INTERVALS = "an asymptotic formula; voirdire's intervals are made by clusters"
OTHER_OMEGAS = "another omega: voirdire gives the one-factor one by least squares on correlations"
NOT_COVERED = {
    "n": "no quantity",
    "k": "no quantity",
    "tool_zero_variance": "no quantity: what the tool does with a constant item",
    "duhachek_ase": OWN_INTERVALS,
    "duhachek_ci95": OWN_INTERVALS,
    "feldt_ci95": OWN_INTERVALS,
    "item_rest_r": "not offered: alpha without the line says what a line adds",
    **{
        f"omega.{name}": OTHER_OMEGAS
        for name in (
            "omega_1f_cor_ml",
            "omega_cfa_ml_cov",
            "omega_tot_psych_nf1",
            "omega_tot_psych_nf3",
            "omega_h_psych_nf3",
            "mdo",
        )
    },
}
# Where voirdire says something else than the tool, and why.
DIFFERS = {
    ("A05", "average_r"): "psych stops at a constant item; voirdire leaves it out of correlations",
    ("A05", "std_alpha"): "psych stops at a constant item; voirdire leaves it out of correlations",
    ("A05", OMEGA): "psych stops at a constant item; voirdire leaves it out of correlations",
    ("A12", OMEGA): "no common factor: psych stands on a ridge, voirdire's fit is closer",
}


def matrix(case: dict[str, Any]) -> np.ndarray:
    rows = case["input"]["responses"]
    return np.array([[np.nan if v is None else v for v in row] for row in rows], dtype=np.float64)


def quantities(case: dict[str, Any]) -> dict[str, Any]:
    flat = {}
    for name, value in case["expected"].items():
        if name == "omega":
            flat.update({f"omega.{n}": v["value"] for n, v in value.items()})
        else:
            flat[name] = value
    return flat


def computed(name: str, x: np.ndarray) -> Any:
    if name == "alpha":
        return vd.stats.cronbach_alpha(x)
    if name == "alpha_listwise":
        return vd.stats.cronbach_alpha(x[np.isfinite(x).all(axis=1)])
    if name == "alpha_without_constant_items":
        return vd.stats.cronbach_alpha(x[:, np.nanmax(x, axis=0) > np.nanmin(x, axis=0)])
    if name == "average_r":
        return vd.stats.mean_inter_element_correlation(x)
    if name == "std_alpha":
        return vd.stats.standardised_alpha(x)
    if name == "alpha_if_deleted":
        return vd.stats.alpha_without_line(x)
    if name == OMEGA:
        return vd.stats.omega_total(x)
    ddof = int(name[-1])
    if name.startswith("kr20"):
        return vd.stats.kr20(x, ddof=ddof)
    return vd.stats.kr21(x.sum(axis=1), x.shape[1], ddof=ddof)


CHECKS = [
    pytest.param(case, name, id=f"{case['id']}-{name}")
    for case in CASES
    for name in sorted(quantities(case))
    if name in COVERED and (case["id"].partition("-")[0], name) not in DIFFERS
]


@pytest.mark.parametrize(("case", "name"), CHECKS)
def test_voirdire_gives_the_value_of_the_tool(case: dict[str, Any], name: str) -> None:
    expected, x = quantities(case)[name], matrix(case)
    if expected == "NaN":
        with pytest.warns(UndefinedWarning):
            assert math.isnan(computed(name, x))
        return
    tolerance = case["tolerance"]
    if name == OMEGA:
        tolerance = case["expected"]["omega"]["omega_1f_cor_minres"]["tolerance"]
    assert np.asarray(computed(name, x)) == pytest.approx(
        np.asarray(expected, dtype=np.float64), abs=tolerance
    )


def test_every_quantity_is_covered_or_named() -> None:
    seen = {name for case in CASES for name in quantities(case)}
    assert seen == COVERED | set(NOT_COVERED)
    assert not COVERED & set(NOT_COVERED)
    assert len(CASES) == 14


def test_a_constant_item_is_left_out_of_correlations_where_the_tool_stops() -> None:
    case = BY_ID["A05"]
    assert quantities(case)["average_r"] == "NaN"
    assert quantities(case)[OMEGA] == "ERROR"
    x = matrix(case)
    others = np.delete(x, 1, axis=1)  # item 2 is constant at 1
    for function in (
        vd.stats.mean_inter_element_correlation,
        vd.stats.standardised_alpha,
        vd.stats.omega_total,
    ):
        assert function(x) == pytest.approx(function(others), abs=1e-12)


def test_without_a_common_factor_our_loadings_fit_closer_than_the_tool_s() -> None:
    """A12: psych's omega is 0, so its loadings add up to 0; the least squares are elsewhere."""
    r = np.corrcoef(matrix(BY_ID["A12"]).T)
    np.fill_diagonal(r, 0)

    def squares(loadings: np.ndarray) -> float:
        rest = r - np.outer(loadings, loadings)
        return float((rest**2).sum() - (np.diagonal(rest) ** 2).sum())

    ours = one_factor(r[:, :, None], np.ones((4, 1), dtype=bool))[:, 0]
    # The best loadings that add up to 0: on the pair of items with the strongest correlation alone.
    psych = np.array([0, 0, 1, -1]) * math.sqrt(-r[2, 3])
    assert squares(ours) < squares(psych)
    assert vd.stats.omega_total(matrix(BY_ID["A12"])) < 0.05


@pytest.mark.parametrize("identity", ["A04", "A10"])
def test_gaps_are_dropped_by_pairs_and_not_by_rows(identity: str) -> None:
    expected = BY_ID[identity]["expected"]
    assert abs(expected["alpha"] - expected["alpha_listwise"]) > 0.005
    assert vd.stats.cronbach_alpha(matrix(BY_ID[identity])) == pytest.approx(
        expected["alpha"], abs=1e-9
    )
