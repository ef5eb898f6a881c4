"""False accepts and false rejects beside the sensitivity and specificity of R and statsmodels."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import voirdire as vd
from tests.checklists import SHARED, verdicts
from voirdire.auditing import scenes
from voirdire.errors import UndefinedWarning
from voirdire.inference import Settings, estimates
from voirdire.scene import Estimates
from voirdire.stats.element_error import FAMILY

FILE = SHARED / "reference" / "F_diagnostic_rates_and_tests.json"
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="the shared reference values do not stand beside this repository"
)
CASES: list[dict[str, Any]] = (
    [
        c
        for c in json.loads(FILE.read_text(encoding="utf-8"))["cases"]
        if c["input"]["kind"] == "rates"
    ]
    if FILE.is_file()
    else []
)
# A false reject is a present element missed, a false accept an absent one marked: one less the rate.
RATES = {"false_reject": ("sensitivity", "tp", "fn"), "false_accept": ("specificity", "tn", "fp")}


def labels_of(case: dict[str, Any]) -> tuple[list[int], list[int]]:
    table = case["input"]
    gold = [1] * (table["tp"] + table["fn"]) + [0] * (table["fp"] + table["tn"])
    said = [1] * table["tp"] + [0] * table["fn"] + [1] * table["fp"] + [0] * table["tn"]
    return gold, said


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
@pytest.mark.parametrize("name", RATES)
def test_rates_are_one_less_sensitivity_and_specificity(case, name):
    gold, said = labels_of(case)
    expected, right, wrong = RATES[name]
    plain = getattr(vd.stats, f"{name}_rate")
    scene, _ = scenes(verdicts({"gold": [[g] for g in gold], "judge": [[s] for s in said]}))
    estimate = Estimates(estimates(FAMILY.parts(scene), Settings())).get(name, grader="judge")
    assert estimate is not None
    trials = case["input"][right] + case["input"][wrong]
    assert estimate.n == trials
    if not trials:
        assert case["expected"][expected]["estimate"] == "NaN"
        with pytest.warns(UndefinedWarning):
            assert math.isnan(plain(gold, said))
        assert estimate.number is None
        assert "gold says" in estimate.reason
        return
    reference = case["expected"][expected]
    assert 1 - plain(gold, said) == pytest.approx(reference["estimate"], abs=case["tolerance"])
    assert 1 - (estimate.number or 0) == pytest.approx(reference["estimate"], abs=case["tolerance"])
    assert estimate.interval is not None
    if estimate.interval.method == "clopper_pearson":  # at the edge, each response its own cluster
        ends = (1 - estimate.interval.high, 1 - estimate.interval.low)
        assert ends == pytest.approx(reference["clopper_pearson"], abs=case["tolerance"])
    else:
        assert case["input"][wrong] >= 5
        assert case["input"][right] >= 5


def test_the_file_holds_a_rate_of_nothing_and_one_at_the_edge():
    assert any(c["input"]["fp"] + c["input"]["tn"] == 0 for c in CASES)
    assert any(c["input"]["fn"] == 0 for c in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_element_error_is_one_less_the_accuracy(case):
    gold, said = labels_of(case)
    scene, _ = scenes(verdicts({"gold": [[g] for g in gold], "judge": [[s] for s in said]}))
    found = Estimates(estimates(FAMILY.parts(scene), Settings())).get(
        "element_error", grader="judge"
    )
    assert found is not None
    assert 1 - (found.number or 0) == pytest.approx(
        case["expected"]["accuracy"], abs=case["tolerance"]
    )
