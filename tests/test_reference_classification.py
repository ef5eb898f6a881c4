"""Beta-binomial fits and Livingston–Lewis beside R's VGAM, aod, extraDistr and betafunctions.

Positive is *below* the cut in the stored cases, as in betafunctions; here a pass is at or above it.
"""

from __future__ import annotations

import fnmatch
import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voirdire as vd
from voirdire.errors import UndefinedWarning
from voirdire.stats import beta_binomial as core

FOLDER = Path(__file__).parents[2] / "shared" / "reference"
FILES = [FOLDER / "B_beta_binomial.json", FOLDER / "C_classification_consistency.json"]
pytestmark = pytest.mark.skipif(
    not all(f.is_file() for f in FILES),
    reason="the shared reference values do not stand beside this repository",
)


def cases(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        return []
    return list(json.loads(file.read_text(encoding="utf-8"))["cases"])


B, C = (cases(f) for f in FILES)
FITS = [c for c in B if "x" in c["input"]]
PMFS = [c for c in B if "pmf" in c["expected"]]
CUTS = [c for c in C if "cuts" in c["expected"]]

COVERED = (
    "B:mle*",
    "B:binomial_limit_loglik",
    "B:mom_*",
    "B:kr21_*",  # the reliability that a moment fit implies
    "B:true_score_raw_moments",
    "B:lord_4p*",
    "B:gof_mle.*",
    "B:gof_betafunctions_2P.alpha",
    "B:gof_betafunctions_2P.beta",
    "B:gof_betafunctions_2P.l",
    "B:gof_betafunctions_2P.u",
    "B:pmf",
    "B:cdf",
    "C:effective_test_length",
    "C:cuts.cut",
    "C:cuts.truecut",
    "C:cuts.LL_*.recomputed.*",
    "C:cuts.LL_*.parameters.*",
    "C:cuts.HB_k0_2P.recomputed.*",  # Lord's k = 0: the same model
    "C:cuts.HB_k0_2P.parameters.*",
)
HANSON_BRENNAN = "Hanson and Brennan's compound binomial (Lord's k) is not offered"
OWN_CELLS = (
    "the tool's own cells (of 9.6 where it asks for 10), its df cells − 2, its p with cells − 4"
)
LEE = "Lee's method needs item response parameters: not offered"
NOT_COVERED = {
    "B:tools_return*": "what other tools print where there is no maximum; here it is the limit",
    "B:gof_mle.rule": "no quantity",
    "B:gof_betafunctions_2P.rule": "no quantity",
    **{
        f"B:gof_betafunctions_2P.{x}": OWN_CELLS
        for x in ("expected", "observed", "chisq", "df", "pvalue")
    },
    "B:gof_betafunctions_2P.lords_k": HANSON_BRENNAN,
    "B:gof_betafunctions_2P": "where the tool stops with an error",
    "B:gof_betafunctions_4P*": "a fit test of the four-parameter beta is not offered",
    "C:lords_k": HANSON_BRENNAN,
    "C:cuts.HB_*": HANSON_BRENNAN,
    "C:cuts.LL_4P": "where the tool stops; here the two-parameter fit stands, with a warning",
    "C:cuts.LL_*.tool.*": "as printed: two roundings of the cut, and coarser integrals",
    "C:cuts.LL_*.note": "no quantity",
    "C:LL_MC_2P_multi_category.*": "several cuts at once are not offered",
    "C:subkoviak.*": "Subkoviak's method is not offered",
    **{f"C:{x}*": LEE for x in ("marginal_", "simultaneous_", "conditional_", "quadrature")},
}


def paths(value: Any, above: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, f"{above}.{key}" if above else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from paths(inner, above)
    else:
        yield above


def test_every_quantity_is_covered_or_named() -> None:
    for family, stored in (("B", B), ("C", C)):
        for case in stored:
            for path in paths(case["expected"]):
                name = f"{family}:{path}"
                known = [p for p in (*COVERED, *NOT_COVERED) if fnmatch.fnmatchcase(name, p)]
                assert known, f"{case['id']}: {name} is neither covered nor named"
    for pattern in (*COVERED, *NOT_COVERED):
        family, stored = pattern[0], B if pattern[0] == "B" else C
        found = {f"{family}:{p}" for c in stored for p in paths(c["expected"])}
        assert any(fnmatch.fnmatchcase(f, pattern) for f in found), f"{pattern} matches nothing"


def near(wanted: Any, tolerance: float) -> Any:
    """The expected value within the case's tolerance: absolute near 1, relative above."""
    return pytest.approx(wanted, abs=tolerance, rel=tolerance)


def ids(case: dict[str, Any]) -> str:
    return str(case["id"])


# --- B ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", FITS, ids=ids)
def test_maximum_likelihood(case: dict[str, Any]) -> None:
    given, expected, tolerance = case["input"], case["expected"], case["tolerance"]
    if expected.get("mle") == "NO_INTERIOR_MAXIMUM":
        with pytest.warns(UndefinedWarning):
            fit = vd.stats.beta_binomial_fit(given["x"], given["K"])
        assert math.isnan(fit.alpha)
        assert math.isnan(fit.beta)
        if "binomial_limit_loglik" in expected:
            assert fit.limit == "binomial"
            assert fit.loglik == near(expected["binomial_limit_loglik"], 1e-10)
        return
    fit = vd.stats.beta_binomial_fit(given["x"], given["K"])
    # The stored values are exact to far more digits than the tools' own tolerance.
    assert fit.alpha == pytest.approx(expected["mle_alpha"], rel=1e-9)
    assert fit.beta == pytest.approx(expected["mle_beta"], rel=1e-9)
    assert fit.loglik == pytest.approx(expected["mle_loglik"], abs=1e-9)
    assert fit.mean == near(expected["mle_mean"], tolerance)
    assert fit.rho == near(expected["mle_rho"], tolerance)


@pytest.mark.parametrize("case", [c for c in FITS if "gof_mle" in c["expected"]], ids=ids)
def test_goodness_of_fit(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]["gof_mle"]
    with warnings.catch_warnings():
        if expected["p"] == "NaN":
            warnings.simplefilter("ignore", UndefinedWarning)
        gof = vd.stats.beta_binomial_gof(given["x"], given["K"])
    assert gof.observed.tolist() == expected["observed"]
    assert gof.expected.tolist() == near(expected["expected"], case["tolerance"])
    assert gof.chi2 == near(expected["chisq"], case["tolerance"])
    assert gof.df == expected["df"]
    assert gof.p == near(float(expected["p"]), case["tolerance"]) or (
        math.isnan(gof.p) and expected["p"] == "NaN"
    )


@pytest.mark.parametrize("case", [c for c in FITS if "mom_alpha_ddof0" in c["expected"]], ids=ids)
@pytest.mark.parametrize("ddof", [0, 1])
def test_two_parameter_moments(case: dict[str, Any], ddof: int) -> None:
    given, expected, tolerance = case["input"], case["expected"], case["tolerance"]
    fit = vd.stats.beta_moment_fit(given["x"], given["K"], ddof=ddof)
    assert fit.alpha == near(expected[f"mom_alpha_ddof{ddof}"], tolerance)
    assert fit.beta == near(expected[f"mom_beta_ddof{ddof}"], tolerance)
    implied = given["K"] / (given["K"] + fit.alpha + fit.beta)
    assert implied == near(expected[f"kr21_ddof{ddof}"], tolerance)


@pytest.mark.parametrize(
    "case", [c for c in FITS if "true_score_raw_moments" in c["expected"]], ids=ids
)
def test_four_parameter_moments(case: dict[str, Any]) -> None:
    given, expected, tolerance = case["input"], case["expected"], case["tolerance"]
    counts = core.histogram(given["x"], given["K"])
    moments = core.true_score_moments(counts, given["K"])
    wanted = [float(m) for m in expected["true_score_raw_moments"]]
    assert moments == pytest.approx(wanted, abs=tolerance, nan_ok=True)
    if "lord_4p" not in expected:
        return
    fit = vd.stats.beta_moment_fit(given["x"], given["K"], model="4p")
    lord = [float(expected["lord_4p"][name]) for name in ("alpha", "beta", "l", "u")]
    assert list(fit) == pytest.approx(lord, abs=tolerance, nan_ok=True)
    assert fit.permissible == expected["lord_4p_permissible"]


@pytest.mark.parametrize(
    "case",
    [c for c in FITS if isinstance(c["expected"].get("gof_betafunctions_2P"), dict)],
    ids=ids,
)
def test_the_beta_behind_the_tools_fit_test(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]["gof_betafunctions_2P"]
    fit = vd.stats.beta_moment_fit(given["x"], given["K"])
    assert list(fit) == near([expected[n] for n in ("alpha", "beta", "l", "u")], case["tolerance"])


@pytest.mark.parametrize("case", PMFS, ids=ids)
def test_probabilities(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    size = given["alpha"] + given["beta"]
    share = core.probabilities(
        np.array(given["alpha"] / size), np.array(1 / (size + 1)), given["K"]
    )
    assert share.tolist() == pytest.approx(expected["pmf"], abs=case["tolerance"])
    assert np.cumsum(share).tolist() == pytest.approx(expected["cdf"], abs=case["tolerance"])


# --- C ------------------------------------------------------------------------------------------

WAYS: dict[str, dict[str, Any]] = {
    "LL_4P": {"model": "4p"},
    "LL_2P": {},
    "LL_fixedK_2P": {"fit": "moments"},
    "HB_k0_2P": {"fit": "moments"},
}
EFFECTIVE = ("LL_4P", "LL_2P")


@pytest.mark.parametrize("case", CUTS, ids=ids)
def test_effective_test_length(case: dict[str, Any]) -> None:
    given = case["input"]
    length = vd.stats.effective_test_length(given["x"], given["K"], given["reliability"])
    assert length == near(case["expected"]["effective_test_length"], case["tolerance"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CUTS, ids=ids)
def test_accuracy_and_consistency(case: dict[str, Any], way: str) -> None:
    given, tolerance = case["input"], case["tolerance"]
    options = dict(WAYS[way])
    if way in EFFECTIVE:
        options["reliability"] = given["reliability"]
    for at in case["expected"]["cuts"]:
        stored = at[way]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedWarning)
            found = vd.stats.livingston_lewis(
                given["x"], given["K"], at["cut"], true_cut=at["truecut"], **options
            )
        if stored == "ERROR":
            assert found.model == "2p"
            continue
        parameters, wanted = stored["parameters"], stored["recomputed"]
        assert found.length == parameters["N"]
        if "observed_cut_rounded" in parameters:
            assert found.cut == parameters["observed_cut_rounded"]
        fitted = (found.alpha, found.beta, found.low, found.high)
        assert fitted == near(tuple(parameters[n] for n in ("alpha", "beta", "l", "u")), tolerance)
        assert found.accuracy == near(wanted["accuracy"], tolerance)
        assert found.consistency == near(wanted["consistency"], tolerance)
        assert found.chance == near(wanted["chance"], tolerance)
        assert found.kappa == near(wanted["kappa"], tolerance)
        assert found.both == near(np.array(wanted["consistency_matrix"]), tolerance)
        joint = wanted["joint"]
        rows = [
            [joint[f"true_{t}_obs_{o}"] for o in ("below", "above")] for t in ("below", "above")
        ]
        assert found.joint == near(np.array(rows), tolerance)
        for (right, of), name in (
            ((found.joint[0, 0], found.joint[0].sum()), "sensitivity_below"),
            ((found.joint[1, 1], found.joint[1].sum()), "specificity_below"),
        ):
            if wanted[name] == "NaN":  # nobody is truly on that side of the cut
                assert of == pytest.approx(0, abs=1e-12)
            else:
                assert right / of == near(wanted[name], tolerance)


def test_a_four_parameter_beta_with_its_own_ends_is_among_the_cases() -> None:
    ends = [
        at["LL_4P"]["parameters"]
        for c in CUTS
        for at in c["expected"]["cuts"]
        if at["LL_4P"] != "ERROR"
    ]
    assert any(e["l"] > 0 for e in ends)
