"""Variance components, G, Φ and Φ(λ): hand-worked values, the real bank, laws, what cannot be said."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import voirdire as vd
from tests.checklists import real_bank, real_matrices, verdicts
from voirdire import inference
from voirdire.auditing import scenes
from voirdire.document import Block, Paragraph, Table
from voirdire.errors import NegativeEstimateWarning, UndefinedWarning
from voirdire.estimand import Describes
from voirdire.inference import Settings
from voirdire.labels import Labels
from voirdire.scene import Estimates
from voirdire.stats import crossed_design as cd
from voirdire.stats.kuder_richardson import NONE_SCORED, ONE_RESPONSE
from voirdire.wording import plain

CUTS = (4, 5, 6, 7)
GUTTMAN = [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]


def estimates(labels: Labels) -> Estimates:
    scene, _ = scenes(labels)
    return Estimates(inference.estimates(cd.FAMILY.parts(scene), Settings.of(labels.options)))


def report(labels: Labels) -> list[Block]:
    assert cd.FAMILY.blocks is not None
    return list(cd.FAMILY.blocks(scenes(labels)[0], estimates(labels)))


def value(found: Estimates, statistic: str, **key: str) -> float:
    estimate = found.get(statistic, **key)
    assert estimate is not None, statistic
    assert estimate.number is not None, estimate.reason
    return estimate.number


def bank(n: int, k: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((n, k)) < rng.uniform(0.1, 0.9, (n, 1))).astype(float)


# --- hand-worked ---------------------------------------------------------------------------------


def test_components_by_hand() -> None:
    # 12 scores, mean 1/2. Row means 1, 2/3, 1/3, 0: SS 3 · (1/4 + 1/36 + 1/36 + 1/4) = 5/3, MS 5/9.
    # Column means 3/4, 1/2, 1/4: SS 4 · 2/16 = 1/2, MS 1/4. All: SS 3, so the rest is 5/6, MS 5/36.
    raw, used = vd.stats.variance_components(GUTTMAN)
    assert raw == pytest.approx(((5 / 9 - 5 / 36) / 3, (1 / 4 - 5 / 36) / 4, 5 / 36))
    assert used == raw
    assert raw.rows == pytest.approx(5 / 36)


def test_phi_lambda_by_hand() -> None:
    # At 2 of 3: σp² + (1/2 − 2/3)² − bias, the bias being σp²/4 + σi²/3 + σpi²/12; error (σi² + σpi²)/3.
    p, i, rest = 5 / 36, 1 / 36, 5 / 36
    distance = p + 1 / 36 - (p / 4 + i / 3 + rest / 12)
    error = (i + rest) / 3
    assert vd.stats.phi_lambda(GUTTMAN, 2) == pytest.approx(distance / (distance + error))
    plain_ = p + 1 / 36
    assert vd.stats.phi_lambda(GUTTMAN, 2, corrected=False) == pytest.approx(
        plain_ / (plain_ + error)
    )


def test_a_negative_component_is_shown_and_used_as_0() -> None:
    # Rows 110, 101, 011: all row means are equal, so MS(rows) is 0 and σ²(rows) = −MS(rest) / 3.
    raw, used = vd.stats.variance_components([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    assert raw.rows == pytest.approx(-raw.residual / 3)
    assert used.rows == 0
    assert used.residual == raw.residual > 0
    assert vd.stats.generalizability((raw, used)[0], 3) == 0
    found = estimates(verdicts({"judge": [[1, 1, 0], [1, 0, 1], [0, 1, 1]]}))
    assert value(found, "component_response_raw", grader="judge") == pytest.approx(raw.rows)
    assert value(found, "component_response", grader="judge") == 0


def test_dependability_uses_0_for_a_negative_component() -> None:
    # Response component 0.1, phrasing −1/30 as computed, residual 0.2: 0.1 / (0.1 + 0.2 / 3), not 0.64.
    assert vd.stats.dependability((0.1, -1 / 30, 0.2), 3) == pytest.approx(0.6)
    assert vd.stats.standard_error((0.1, -1 / 30, 0.2), 3, absolute=True) == pytest.approx(
        math.sqrt(0.2 / 3)
    )


def test_a_negative_numerator_is_used_as_0_and_flagged() -> None:
    # Three responses that all meet half of the lines: nothing is left of the distance from the mark.
    x = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]]
    with pytest.warns(NegativeEstimateWarning, match="so 0 is used"):
        assert vd.stats.phi_lambda(x, 2) == 0
    labels = verdicts({"judge": x}, cut=(2,))
    found = estimates(labels)
    assert value(found, "phi_lambda", grader="judge", cut="2") == 0
    raw = found.get("phi_lambda_raw", grader="judge", cut="2")
    assert raw is not None
    if raw.number is None:
        assert raw.reason == cd.NOT_POSITIVE
    else:
        assert raw.number < 0
    (note,) = [b for b in report(labels) if isinstance(b, Paragraph)]
    assert "numerator negative, so 0 is used" in plain(note.text)


def test_the_raw_value_keeps_a_negative_numerator() -> None:
    x = [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    with pytest.warns(NegativeEstimateWarning):
        assert vd.stats.phi_lambda(x, 2) == 0
    assert vd.stats.phi_lambda(x, 3, raw=True) < vd.stats.phi_lambda(x, 3)


def test_a_numerator_that_is_rounding_is_0() -> None:
    # By hand, in 1/36: rows −6, columns −6, residual 18; the squared distance 4, and the bias
    # −6/2 − 6/3 + 18/6 = −2. So the numerator is −6 + 4 + 2 = 0, and the sum in floats is not.
    x = [[0, 1, 1], [1, 0, 1]]
    n, k = 2, 3
    components = vd.stats.variance_components(x).raw
    at = (np.asarray(2 / 3), np.asarray(float(n)), k, np.asarray(1 / 3))
    rows, columns, residual = components
    plain_sum = rows + (2 / 3 - 1 / 3) ** 2 - (rows / n + columns / k + residual / (n * k))
    assert 0 < abs(plain_sum) < 1e-15
    assert cd.phi_from(components, *at, used=False) == 0
    assert (
        value(
            estimates(verdicts({"judge": x}, cut=(1,))), "phi_lambda_raw", grader="judge", cut="1"
        )
        == 0
    )


# --- the real bank -------------------------------------------------------------------------------


def test_real_bank_has_the_published_values() -> None:
    found = estimates(real_bank(cut=CUTS, gold="gold", interval="bootstrap"))
    for grader, published in (
        ("judge", (0.741, 0.600, 0.516, 0.608)),
        ("gold", (0.676, 0.543, 0.541, 0.673)),
    ):
        for cut, expected in zip(CUTS, published, strict=True):
            at = {"grader": grader, "cut": str(cut)}
            assert value(found, "phi_lambda", **at) == pytest.approx(expected, abs=5.01e-4)
        assert value(found, "component_position", grader=grader) < 1e-4
    for cut in CUTS:
        at = {"grader": "judge", "cut": str(cut)}
        difference = found.get("phi_lambda_minus_gold", **at)
        assert difference is not None
        assert difference.interval is not None
        assert difference.number == pytest.approx(
            value(found, "phi_lambda", **at)
            - value(found, "phi_lambda", grader="gold", cut=str(cut))
        )


def test_audit_says_what_the_plain_functions_say() -> None:
    gold, judge, _ = real_matrices()
    scored = np.isfinite(judge).all(axis=1)
    found = estimates(real_bank(cut=CUTS, gold="gold"))
    for grader, x in (("judge", judge[scored]), ("gold", gold[scored])):
        components = vd.stats.variance_components(x)
        for i, name in enumerate(("response", "position", "residual")):
            of = f"component_{name}"
            assert value(found, of, grader=grader) == pytest.approx(components.used[i])
            assert value(found, f"{of}_raw", grader=grader) == pytest.approx(components.raw[i])
        assert value(found, "generalizability", grader=grader) == pytest.approx(
            vd.stats.generalizability(components, 10)
        )
        assert value(found, "generalizability", grader=grader) == pytest.approx(
            vd.stats.cronbach_alpha(x)
        )
        assert value(found, "dependability", grader=grader) == pytest.approx(
            vd.stats.dependability(components, 10)
        )
        for cut in CUTS:
            at = {"grader": grader, "cut": str(cut)}
            assert value(found, "phi_lambda", **at) == pytest.approx(vd.stats.phi_lambda(x, cut))
            assert value(found, "phi_lambda_raw", **at) == pytest.approx(
                vd.stats.phi_lambda(x, cut, raw=True)
            )


def test_phi_lambda_is_the_bank_s_and_no_accuracy() -> None:
    for statistic in cd.FAMILY.statistics:
        minus = statistic.name.endswith("_minus_gold")
        assert statistic.estimand.describes is (Describes.BOTH if minus else Describes.BANK)
    assert cd.NOT_AN_ACCURACY in cd.PHI_LAMBDA.reading
    tables = [b for b in report(real_bank(cut=CUTS, gold="gold")) if isinstance(b, Table)]
    (table,) = [t for t in tables if t.title.startswith("Φ(λ)")]
    assert [c.title for c in table.columns][1:] == [
        "on the judge’s verdicts",
        "on gold",
        "judge less gold",
    ]
    assert "not a probability and not comparable with an accuracy" in plain(table.note)
    for other in tables:
        assert not any("accuracy" in str(c.title).lower() for c in other.columns)


# --- laws ----------------------------------------------------------------------------------------

PAIRED = (bank(60, 5, 5), bank(60, 5, 6))
QUESTIONS = [f"q{i // 6}" for i in range(60)]


def close(one: Estimates, other: Estimates) -> None:
    assert len(one.all) == len(other.all) > 0
    for a, b in zip(one.all, other.all, strict=True):
        assert (a.statistic, a.key) == (b.statistic, b.key)
        assert b.number == pytest.approx(a.number, abs=1e-10), a.statistic
        assert (a.interval is None) == (b.interval is None)
        if a.interval is not None and b.interval is not None:
            assert b.interval.low == pytest.approx(a.interval.low, abs=1e-8)
            assert b.interval.high == pytest.approx(a.interval.high, abs=1e-8)


def test_row_order_does_not_matter() -> None:
    gold, judge = PAIRED
    order = np.random.default_rng(8).permutation(60)
    close(
        estimates(verdicts({"gold": gold, "judge": judge}, questions=QUESTIONS, cut=(3,))),
        estimates(
            verdicts(
                {"gold": gold[order], "judge": judge[order]},
                questions=[QUESTIONS[i] for i in order],
                cut=(3,),
            )
        ),
    )


def test_a_frequency_weight_of_2_is_the_row_twice() -> None:
    gold, judge = PAIRED
    weights = [1.0 + (i % 3 == 0) for i in range(60)]
    twice = [i for i in range(60) for _ in range(int(weights[i]))]
    close(
        estimates(
            verdicts(
                {"gold": gold, "judge": judge},
                questions=QUESTIONS,
                weights=weights,
                weight_kind="frequency",
                cut=(2, 3),
            )
        ),
        estimates(
            verdicts(
                {"gold": gold[twice], "judge": judge[twice]},
                questions=[QUESTIONS[i] for i in twice],
                cut=(2, 3),
            )
        ),
    )


def test_halves_add_up() -> None:
    gold, judge = PAIRED

    def tally(rows: slice) -> Any:
        labels = verdicts({"gold": gold[rows], "judge": judge[rows]}, questions=QUESTIONS[rows])
        (part,) = cd.FAMILY.parts(scenes(labels)[0])
        return part.tally

    both = tally(slice(0, 30)) + tally(slice(30, 60))
    whole = tally(slice(0, 60))
    assert np.array_equal(both.total, whole.total)
    assert both.count == whole.count == 10


def test_large_means_lose_no_digits() -> None:
    x = np.random.default_rng(1).normal(size=(30, 4))
    near, far = vd.stats.variance_components(x).raw, vd.stats.variance_components(x + 1e8).raw
    assert tuple(far) == pytest.approx(tuple(near), rel=1e-5)
    assert vd.stats.cronbach_alpha(x + 1e8) == pytest.approx(vd.stats.cronbach_alpha(x), rel=1e-5)


def test_used_components_and_ratios_stay_within_their_bounds() -> None:
    for seed in range(20):
        x = (np.random.default_rng(seed).random((6, 3)) < 0.5).astype(float)
        if x.min() == x.max():
            continue
        for cut in (1, 2, 3):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NegativeEstimateWarning)
                assert 0 <= vd.stats.phi_lambda(x, cut) <= 1
        components = vd.stats.variance_components(x)
        assert min(components.used) >= 0
        assert 0 <= vd.stats.dependability(components, 3) <= 1


# --- what cannot be said -------------------------------------------------------------------------


def test_a_constant_bank_one_line_and_one_response_are_undefined() -> None:
    for x, why in (
        (np.ones((8, 4)), cd.CONSTANT),
        (bank(8, 1), cd.TOO_SMALL),
        (bank(1, 4), ONE_RESPONSE),
        (np.full((4, 3), np.nan), NONE_SCORED),
    ):
        found = estimates(verdicts({"judge": x}, cut=(1,)))
        for name in ("generalizability", "dependability", "phi_lambda", "phi_lambda_raw"):
            for estimate in found.of(name):
                phi = why == cd.CONSTANT and name.startswith("phi_lambda")
                assert estimate.reason == (cd.CONSTANT_AT_MARK if phi else why), name


def test_a_component_that_stays_at_zero_says_so() -> None:
    found = estimates(verdicts({"judge": [[1, 0], [0, 1]] * 10}))
    response = found.get("component_response", grader="judge")
    assert response is not None
    assert response.number == 0
    assert response.no_interval == "it is 0, the least it can be, whichever clusters are taken"


def test_different_lengths_say_why() -> None:
    labels = verdicts(
        {"judge": bank(20, 6)},
        questions=["a"] * 10 + ["b"] * 10,
        lengths={"a": 4, "b": 6},
        cut=(2,),
    )
    found = estimates(labels)
    assert found.all
    assert all("4 to 6 lines" in e.reason for e in found.all)
    assert report(labels) == []


def test_no_cut_no_phi_lambda() -> None:
    found = estimates(verdicts({"judge": bank(20, 4)}))
    assert not found.of("phi_lambda")
    assert found.of("generalizability")


@pytest.mark.parametrize(
    "call",
    [
        lambda: vd.stats.phi_lambda(np.ones((4, 3)), 2),
        lambda: vd.stats.phi_lambda([[1, None], [0, 1]], 1),
        lambda: vd.stats.phi_lambda([[1], [0]], 1),
        lambda: vd.stats.variance_components([[1, 0]]).raw.rows,
        lambda: vd.stats.dependability((0, 0, 0), 3),
        lambda: vd.stats.generalizability(vd.stats.variance_components([[1, 1], [1, 1]]), 2),
    ],
)
def test_plain_functions_warn_where_nothing_can_be_said(call: Any) -> None:
    with pytest.warns(UndefinedWarning):
        assert math.isnan(call())


def test_scores_are_averaged_over_at_least_one_column() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        vd.stats.dependability((1, 1, 1), 0)
