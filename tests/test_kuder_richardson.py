"""KR-20 and its kin, and totals: hand-worked values, the real bank, laws and what cannot be said."""

from __future__ import annotations

import csv
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voirdire as vd
from tests.checklists import SHARED, real_bank, real_matrices, verdicts
from voirdire import inference
from voirdire.auditing import scenes
from voirdire.document import Block, Paragraph, Table, display
from voirdire.errors import UndefinedWarning
from voirdire.estimand import Describes
from voirdire.inference import Settings
from voirdire.labels import Labels
from voirdire.scene import Estimates
from voirdire.stats import kuder_richardson as kr
from voirdire.stats import totals
from voirdire.wording import plain

INPUTS = SHARED / "cases" / "inputs"
FAMILIES = (kr.FAMILY, totals.FAMILY, totals.JUDGED)

GUTTMAN = [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]


def estimates(labels: Labels) -> Estimates:
    scene, _ = scenes(labels)
    settings = Settings.of(labels.options)
    return Estimates(
        e for family in FAMILIES for e in inference.estimates(family.parts(scene), settings)
    )


def value(found: Estimates, statistic: str, **key: str) -> float:
    estimate = found.get(statistic, **key)
    assert estimate is not None, statistic
    assert estimate.number is not None, estimate.reason
    return estimate.number


def reason(found: Estimates, statistic: str, **key: str) -> str:
    estimate = found.get(statistic, **key)
    assert estimate is not None, statistic
    assert estimate.number is None
    return estimate.reason


def report(labels: Labels) -> list[Block]:
    scene, _ = scenes(labels)
    found = estimates(labels)
    return [b for f in FAMILIES if f.blocks for b in f.blocks(scene, found)]


def case(name: str) -> np.ndarray:
    path = INPUTS / name
    if not path.is_file():
        pytest.skip("the field cases (../shared/cases) are not beside this checkout")
    with Path(path).open(encoding="utf-8") as file:
        return np.array([[float(v) for v in row[1:]] for row in list(csv.reader(file))[1:]])


def bank(n: int, k: int, seed: int = 0) -> np.ndarray:
    """Verdicts of responses that differ in quality."""
    rng = np.random.default_rng(seed)
    return (rng.random((n, k)) < rng.uniform(0.1, 0.9, (n, 1))).astype(float)


# --- hand-worked ---------------------------------------------------------------------------------


def test_kr20_by_hand() -> None:
    # p = 3/4, 2/4, 1/4: Σ p(1 − p) = 3/16 + 4/16 + 3/16 = 0.625; totals 3, 2, 1, 0 with variance
    # 5/3 (n − 1) and 5/4 (n).
    assert vd.stats.kr20(GUTTMAN) == pytest.approx(1.5 * (1 - 0.625 / (5 / 3)))
    assert vd.stats.kr20(GUTTMAN, ddof=0) == pytest.approx(1.5 * (1 - 0.625 / 1.25))
    assert vd.stats.cronbach_alpha(GUTTMAN) == pytest.approx(vd.stats.kr20(GUTTMAN, ddof=0))


def test_kr21_takes_totals_from_0_to_k_alone() -> None:
    for wrong in ([0, 1, 4], [-1, 1, 2], [0, float("inf")]):
        with pytest.raises(ValueError, match="totals are from 0 to k"):
            vd.stats.kr21(wrong, 3)
    assert vd.stats.kr21([0, 3, None], 3) == vd.stats.kr21([0, 3], 3)


def test_kr21_by_hand() -> None:
    # M = 1.5: M (K − M) / K = 0.75.
    assert vd.stats.kr21([3, 2, 1, 0], 3) == pytest.approx(1.5 * (1 - 0.75 / (5 / 3)))
    assert vd.stats.kr21([3, 2, 1, 0], 3, ddof=0) == pytest.approx(1.5 * (1 - 0.75 / 1.25))


def test_omega_of_equal_correlations_is_the_standardised_coefficient() -> None:
    # With one correlation r between all lines every loading is √r, so omega is K r / (1 + (K − 1) r).
    k, r = 6, 0.3
    correlations = np.full((k, k, 1), r)
    correlations[np.arange(k), np.arange(k)] = 0
    vary = np.ones((k, 1), dtype=bool)
    loadings = kr.one_factor(correlations, vary)
    assert np.abs(loadings) == pytest.approx(math.sqrt(r), abs=1e-8)
    assert kr.omega_from(loadings, vary)[0] == pytest.approx(k * r / (1 + (k - 1) * r), abs=1e-8)


def test_one_factor_returns_the_loadings_that_made_the_correlations() -> None:
    true = np.random.default_rng(3).uniform(0.2, 0.8, (8, 50))
    correlations = true[:, None] * true[None]
    correlations[np.arange(8), np.arange(8)] = 0
    vary = np.ones((8, 50), dtype=bool)
    assert np.abs(kr.one_factor(correlations, vary)) == pytest.approx(true, abs=1e-6)
    start = np.full((8, 50), 0.5)
    assert kr.one_factor(correlations, vary, start) == pytest.approx(true, abs=1e-6)


@pytest.mark.parametrize(
    ("file", "kr20", "alpha"),
    [("checklist-a.csv", 0.756, 0.674), ("checklist-halo.csv", 1.04, 1.0)],
)
def test_field_case_in_both_forms(file: str, kr20: float, alpha: float) -> None:
    x = case(file)
    assert vd.stats.kr20(x) == pytest.approx(kr20, abs=0.005)
    assert vd.stats.kr20(x, ddof=0) == pytest.approx(alpha, abs=0.0005)
    assert vd.stats.cronbach_alpha(x) == pytest.approx(alpha, abs=0.0005)
    found = estimates(verdicts({"judge": x}))
    assert value(found, "kr20", grader="judge") == pytest.approx(vd.stats.kr20(x))
    assert value(found, "cronbach_alpha", grader="judge") == pytest.approx(alpha, abs=0.0005)


def test_field_case_without_the_line_that_never_varies() -> None:
    labels = verdicts({"judge": case("checklist-a.csv")})
    found = estimates(labels)
    assert value(found, "kr20_without_line", grader="judge", line="e4") == pytest.approx(
        0.851, abs=0.0005
    )
    assert value(found, "alpha_without_line", grader="judge", line="e4") == pytest.approx(
        0.758, abs=0.0005
    )
    (table,) = [b for b in report(labels) if isinstance(b, Table) and "without a line" in b.title]
    marked = [row for row in table.rows if display(row[-1])]
    assert [display(row[0]) for row in marked] == ["e4"]
    assert "0.758" in [display(c) for c in marked[0]]
    assert "0.851" in [display(c) for c in marked[0]]


def test_kr20_above_1_is_said_with_the_reason_and_not_clipped() -> None:
    labels = verdicts({"judge": case("checklist-halo.csv")})
    kr20 = estimates(labels).get("kr20", grader="judge")
    assert kr20 is not None
    assert (kr20.number or 0) > 1
    assert kr20.interval is None or kr20.interval.high >= (kr20.number or 0)
    (note,) = [b for b in report(labels) if isinstance(b, Paragraph)]
    assert "above 1" in plain(note.text)
    assert "n − 1" in plain(note.text)
    assert "alpha: 1.000" in plain(note.text)
    below = report(verdicts({"judge": case("checklist-a.csv")}))
    assert not [b for b in below if isinstance(b, Paragraph)]


# --- the real bank -------------------------------------------------------------------------------


def test_real_bank_has_the_published_values() -> None:
    found = estimates(real_bank(interval="bootstrap", gold="gold"))
    assert value(found, "kr20", grader="judge") == pytest.approx(0.5223, abs=5e-5)
    assert value(found, "kr20", grader="gold") == pytest.approx(0.5231, abs=5e-5)
    difference = found.get("kr20_minus_gold", grader="judge")
    assert difference is not None
    assert difference.interval is not None
    assert difference.interval.low == pytest.approx(-0.073, abs=0.012)
    assert difference.interval.high == pytest.approx(0.074, abs=0.012)
    assert difference.n == 180
    assert difference.clusters == 13
    assert value(found, "kr20_standardised", grader="gold") == pytest.approx(0.520, abs=5e-4)
    for grader in ("judge", "gold"):
        assert value(found, "mean_inter_element_correlation", grader=grader) == pytest.approx(
            0.098, abs=5e-4
        )
    assert value(found, "total_mean", grader="gold") == pytest.approx(5.51, abs=0.005)
    assert value(found, "total_sd", grader="gold") == pytest.approx(2.16, abs=0.005)
    assert value(found, "total_at_ceiling", grader="gold") == 6
    assert value(found, "total_at_ceiling", grader="judge") == 9
    assert value(found, "total_at_ceiling_minus_gold", grader="judge") == 3
    assert value(found, "leniency", grader="judge") == pytest.approx(0.46, abs=0.005)
    assert value(found, "total_correlation", grader="judge") == pytest.approx(0.921, abs=5e-4)


def test_totals_of_the_whole_bank_where_gold_stands_alone() -> None:
    gold, _, questions = real_matrices()
    found = estimates(verdicts({"gold": gold}, questions=questions, gold="gold"))
    assert value(found, "total_mean", grader="gold") == pytest.approx(5.45, abs=0.005)
    assert value(found, "total_sd", grader="gold") == pytest.approx(2.21, abs=0.005)
    assert value(found, "total_at_zero", grader="gold") == 2
    assert value(found, "total_at_ceiling", grader="gold") == 6


def test_audit_says_what_the_plain_functions_say() -> None:
    gold, judge, _ = real_matrices()
    scored = np.isfinite(judge).all(axis=1)
    found = estimates(real_bank(gold="gold"))
    for grader, x in (("judge", judge[scored]), ("gold", gold[scored])):
        for name, expected in {
            "kr20": vd.stats.kr20(x),
            "kr21": vd.stats.kr21(x.sum(axis=1), 10),
            "cronbach_alpha": vd.stats.cronbach_alpha(x),
            "kr20_standardised": vd.stats.standardised_alpha(x),
            "mean_inter_element_correlation": vd.stats.mean_inter_element_correlation(x),
            "omega_total": vd.stats.omega_total(x),
        }.items():
            assert value(found, name, grader=grader) == pytest.approx(expected, abs=1e-8)
        without = vd.stats.alpha_without_line(x)
        for j in range(10):
            at = {"grader": grader, "line": f"position:{j + 1}"}
            assert value(found, "alpha_without_line", **at) == pytest.approx(without[j])
            assert value(found, "kr20_without_line", **at) == pytest.approx(
                vd.stats.kr20(np.delete(x, j, axis=1))
            )


def test_every_coefficient_of_the_bank_stands_beside_gold_and_is_the_bank_s() -> None:
    for statistic in (*kr.FAMILY.statistics, *totals.FAMILY.statistics):
        minus = statistic.name.endswith("_minus_gold")
        assert statistic.estimand.describes is (Describes.BOTH if minus else Describes.BANK)
    tables = [b for b in report(real_bank(gold="gold")) if isinstance(b, Table)]
    (table,) = [t for t in tables if t.title == "Coefficients of the bank"]
    assert [c.title for c in table.columns][1:] == [
        "on the judge’s verdicts",
        "on gold",
        "judge less gold",
    ]
    assert all(c.value is not None for row in table.rows for c in row)
    words = " ".join(plain(t.note) for t in tables).lower()
    assert "accuracy" not in words
    assert "reliability of the judge" not in words


# --- the order of the lines, and within questions ------------------------------------------------


def test_range_over_orders_holds_all_orders_of_a_small_bank() -> None:
    x, questions = bank(24, 3, 1), ["a"] * 12 + ["b"] * 12
    found = estimates(verdicts({"judge": x}, questions=questions))
    every = []
    for order in itertools.permutations(
        range(3)
    ):  # of one question; only the relative order counts
        moved = x.copy()
        moved[12:] = moved[12:][:, order]
        every.append(vd.stats.kr20(moved))
    assert value(found, "kr20_shuffled_low", grader="judge") == pytest.approx(min(every))
    assert value(found, "kr20_shuffled_high", grader="judge") == pytest.approx(max(every))
    assert value(found, "kr20_sorted_lines", grader="judge") == pytest.approx(max(every))
    assert value(found, "kr21", grader="judge") <= min(every)


def test_shuffles_stay_between_kr21_and_the_sorted_lines() -> None:
    found = estimates(real_bank(gold="gold"))
    for grader in ("judge", "gold"):
        low, high, kr20, kr21, most = (
            value(found, s, grader=grader)
            for s in (
                "kr20_shuffled_low",
                "kr20_shuffled_high",
                "kr20",
                "kr21",
                "kr20_sorted_lines",
            )
        )
        assert kr21 <= low <= kr20 <= high <= most


def test_very_many_questions_are_shuffled_less_often() -> None:
    assert kr.shuffles_of(13, 10) == kr.SHUFFLES
    assert kr.FEWEST_SHUFFLES <= kr.shuffles_of(10_000, 10) < kr.SHUFFLES


def test_within_one_question_it_is_kr20() -> None:
    x = bank(30, 6)
    found = estimates(verdicts({"judge": x}, questions=["only"] * 30))
    assert value(found, "kr20_within_question", grader="judge") == pytest.approx(vd.stats.kr20(x))


def test_within_questions_by_hand() -> None:
    # Question a: rows 11, 00 (lines .25 + .25, 2 responses, SS 2); b: 11, 10, 00 (lines 2/9 + 2/9,
    # 3 responses, SS 2). c has one response and is left out. Σ n p(1 − p) = 1 + 4/3; n = 5; the
    # variance is 4 / 3: 2 (1 − (7/15) / (4/3)) = 1.3.
    x = [[1, 1], [0, 0], [1, 1], [1, 0], [0, 0], [0, 1]]
    found = estimates(verdicts({"judge": x}, questions=list("aabbbc")))
    estimate = found.get("kr20_within_question", grader="judge")
    assert estimate is not None
    assert estimate.number == pytest.approx(2 * (1 - (7 / 15) / (4 / 3)))
    assert estimate.n == 5


def test_within_questions_does_not_know_the_order_of_lines() -> None:
    x, questions = bank(40, 5, 2), ["a"] * 20 + ["b"] * 20
    moved = x.copy()
    moved[20:] = moved[20:, ::-1]
    one, other = (estimates(verdicts({"judge": m}, questions=questions)) for m in (x, moved))
    assert value(one, "kr20_within_question", grader="judge") == pytest.approx(
        value(other, "kr20_within_question", grader="judge")
    )
    assert value(one, "kr20", grader="judge") != pytest.approx(value(other, "kr20", grader="judge"))


def test_questions_split_over_clusters_have_no_interval_within() -> None:
    x, questions = bank(60, 5), [f"q{i % 6}" for i in range(60)]
    whole = estimates(verdicts({"judge": x}, questions=questions))
    split = estimates(
        verdicts({"judge": x}, questions=questions, clusters=[f"c{i // 6}" for i in range(60)])
    )
    of_whole, of_split = (e.get("kr20_within_question", grader="judge") for e in (whole, split))
    assert of_whole is not None
    assert of_split is not None
    assert of_whole.interval is not None
    assert of_split.interval is None
    assert "several clusters" in of_split.no_interval
    assert of_split.number == pytest.approx(of_whole.number)


def test_one_checklist_for_all_has_no_order_and_no_questions() -> None:
    found = estimates(verdicts({"judge": bank(20, 4)}))
    assert not found.of("kr20_shuffled_low")
    assert not found.of("kr20_within_question")
    assert {e.key.line for e in found.of("alpha_without_line")} == {"e1", "e2", "e3", "e4"}


# --- laws ----------------------------------------------------------------------------------------

PAIRED = (bank(60, 5, 5), bank(60, 5, 6))
QUESTIONS = [f"q{i // 6}" for i in range(60)]


def as_values(found: Estimates) -> dict[Any, tuple[float | None, float | None]]:
    return {
        (e.statistic, *e.key): (e.number, e.interval.low if e.interval else None) for e in found.all
    }


def close(one: dict[Any, Any], other: dict[Any, Any]) -> None:
    assert one.keys() == other.keys()
    for key, (value_, low) in one.items():
        assert other[key][0] == pytest.approx(value_, abs=1e-7), key
        assert other[key][1] == pytest.approx(low, abs=1e-6), key


def test_row_order_does_not_matter() -> None:
    order = np.random.default_rng(8).permutation(60)
    gold, judge = PAIRED
    one = estimates(verdicts({"gold": gold, "judge": judge}, questions=QUESTIONS, gold="gold"))
    other = estimates(
        verdicts(
            {"gold": gold[order], "judge": judge[order]},
            questions=[QUESTIONS[i] for i in order],
            gold="gold",
        )
    )
    # Shuffles are drawn question after question, so their range depends on which comes first.
    kept = {"kr20_shuffled_low", "kr20_shuffled_high"}
    close(
        {k: v for k, v in as_values(one).items() if k[0] not in kept},
        {k: v for k, v in as_values(other).items() if k[0] not in kept},
    )


def test_a_frequency_weight_of_2_is_the_row_twice() -> None:
    gold, judge = PAIRED
    weights = [1.0 + (i % 3 == 0) for i in range(60)]
    twice = [i for i in range(60) for _ in range(int(weights[i]))]
    weighted = verdicts(
        {"gold": gold, "judge": judge},
        questions=QUESTIONS,
        weights=weights,
        weight_kind="frequency",
        gold="gold",
    )
    doubled = verdicts(
        {"gold": gold[twice], "judge": judge[twice]},
        questions=[QUESTIONS[i] for i in twice],
        gold="gold",
    )
    close(as_values(estimates(weighted)), as_values(estimates(doubled)))


def test_design_weights_that_are_all_the_same_change_nothing() -> None:
    gold, judge = PAIRED
    graders = {"gold": gold, "judge": judge}
    plain_ = estimates(verdicts(graders, questions=QUESTIONS, gold="gold"))
    weighted = estimates(verdicts(graders, questions=QUESTIONS, weights=[3.0] * 60, gold="gold"))
    close(as_values(plain_), as_values(weighted))
    assert all(e.n == 60 for e in weighted.of("kr20"))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_tallies_of_two_halves_add_up(family: Any) -> None:
    gold, judge = PAIRED

    def tallies(rows: slice) -> list[Any]:
        labels = verdicts(
            {"gold": gold[rows], "judge": judge[rows]}, questions=QUESTIONS[rows], gold="gold"
        )
        return [p.tally for p in family.parts(scenes(labels)[0]) if p.tally is not None]

    first, second, whole = (tallies(r) for r in (slice(0, 30), slice(30, 60), slice(0, 60)))
    assert whole
    for a, b, both in zip(first, second, whole, strict=True):
        assert (a + b).total == pytest.approx(both.total)
        assert (a + b).count == both.count


def test_a_judge_that_equals_gold_differs_by_nothing() -> None:
    x = PAIRED[0]
    found = estimates(verdicts({"gold": x, "judge": x}, questions=QUESTIONS, gold="gold"))
    for estimate in found.all:
        if estimate.statistic.endswith("_minus_gold") or estimate.statistic == "leniency":
            assert estimate.number == pytest.approx(0, abs=1e-12), estimate.statistic
    assert value(found, "total_correlation", grader="judge") == pytest.approx(1)


def test_gold_on_a_part_stands_beside_the_judge_there_and_the_judge_also_alone() -> None:
    gold, judge = PAIRED
    part = gold.copy()
    part[40:] = np.nan
    found = estimates(verdicts({"gold": part, "judge": judge}, gold="gold"))
    assert value(found, "kr20", grader="judge") == pytest.approx(vd.stats.kr20(judge[:40]))
    assert value(found, "kr20", grader="judge", other="all responses") == pytest.approx(
        vd.stats.kr20(judge)
    )


def test_very_many_lines_keep_values_and_drop_only_the_intervals_that_need_all_pairs() -> None:
    x = bank(300, 120, 9)
    labels = verdicts({"judge": x}, clusters=[f"c{i}" for i in range(300)], interval="bootstrap")
    found = estimates(labels)
    r = found.get("mean_inter_element_correlation", grader="judge")
    assert r is not None
    assert r.number == pytest.approx(vd.stats.mean_inter_element_correlation(x))
    assert r.interval is None
    assert r.no_interval == kr.MANY_LINES
    assert r.clusters == 300
    kr20 = found.get("kr20", grader="judge")
    assert kr20 is not None
    assert kr20.number == pytest.approx(vd.stats.kr20(x))
    assert kr20.interval is not None
    line = found.get("alpha_without_line", grader="judge", line="e7")
    assert line is not None
    assert line.number == pytest.approx(vd.stats.alpha_without_line(x)[6])


# --- what cannot be said -------------------------------------------------------------------------


def test_one_line_has_no_consistency() -> None:
    found = estimates(verdicts({"judge": bank(20, 1)}))
    assert reason(found, "kr20", grader="judge") == kr.ONE_LINE
    assert reason(found, "kr21", grader="judge") == kr.ONE_LINE
    assert reason(found, "mean_inter_element_correlation", grader="judge") == kr.TWO_VARY
    assert value(found, "total_mean", grader="judge") == pytest.approx(bank(20, 1).mean())


def test_two_lines_have_no_omega_and_no_alpha_without_one() -> None:
    found = estimates(verdicts({"judge": bank(20, 2)}))
    assert reason(found, "omega_total", grader="judge") == kr.THREE_VARY
    assert reason(found, "alpha_without_line", grader="judge", line="e1")


def test_a_constant_bank_is_undefined_and_not_0() -> None:
    found = estimates(
        verdicts({"gold": np.ones((12, 4)), "judge": bank(12, 4)}, questions=["a"] * 6 + ["b"] * 6)
    )
    assert reason(found, "kr20", grader="gold") == kr.SAME_TOTALS
    assert reason(found, "kr20_within_question", grader="gold") == kr.SAME_WITHIN
    assert reason(found, "omega_total", grader="gold") == kr.THREE_VARY
    assert reason(found, "kr20_minus_gold", grader="judge")
    assert reason(found, "total_correlation", grader="judge")
    assert value(found, "total_sd", grader="gold") == 0
    assert value(found, "kr20", grader="judge") == pytest.approx(vd.stats.kr20(bank(12, 4)))


def test_a_line_that_never_varies_counts_in_k_but_not_in_correlations() -> None:
    x = bank(40, 4)
    more = np.column_stack([x, np.ones(40)])
    assert vd.stats.cronbach_alpha(more) == pytest.approx(
        vd.stats.cronbach_alpha(x) * (5 / 4) / (4 / 3)
    )
    assert vd.stats.standardised_alpha(more) == pytest.approx(vd.stats.standardised_alpha(x))
    found = estimates(verdicts({"judge": more}))
    for name in ("kr20_standardised", "mean_inter_element_correlation", "omega_total"):
        of_x = estimates(verdicts({"judge": x}))
        assert value(found, name, grader="judge") == pytest.approx(
            value(of_x, name, grader="judge"), abs=1e-8
        )


def test_checklists_of_different_lengths_have_no_kr20_but_have_totals() -> None:
    labels = verdicts(
        {"judge": bank(20, 6)}, questions=["a"] * 10 + ["b"] * 10, lengths={"a": 4, "b": 6}
    )
    found = estimates(labels)
    why = reason(found, "kr20", grader="judge")
    assert "4 to 6 lines" in why
    for name in ("kr20_within_question", "omega_total", "kr20_shuffled_low"):
        assert reason(found, name, grader="judge") == why
    assert value(found, "total_mean", grader="judge") > 0
    (note,) = [b for b in report(labels) if isinstance(b, Paragraph)]
    assert "4 to 6 lines" in plain(note.text)


def test_the_ceiling_is_that_of_the_response_s_own_checklist() -> None:
    x = np.array([[1, 1, np.nan], [1, 1, 1], [1, 0, 0]])
    labels = verdicts({"judge": x}, questions=["a", "b", "b"], lengths={"a": 2, "b": 3})
    assert value(estimates(labels), "total_at_ceiling", grader="judge") == 2


def test_no_totals_over_fewer_lines() -> None:
    x = bank(10, 4)
    x[0, 2] = np.nan
    x[1] = np.nan
    found = estimates(verdicts({"judge": x}))
    estimate = found.get("total_mean", grader="judge")
    assert estimate is not None
    assert estimate.n == 8
    assert estimate.number == pytest.approx(x[2:].sum(axis=1).mean())


def test_no_scored_response_and_a_single_one() -> None:
    nothing = estimates(verdicts({"judge": np.full((5, 3), np.nan)}))
    assert reason(nothing, "kr20", grader="judge") == kr.NONE_SCORED
    assert reason(nothing, "total_mean", grader="judge") == totals.NONE_SCORED
    assert reason(nothing, "total_at_zero", grader="judge") == totals.NONE_SCORED
    one = estimates(verdicts({"judge": [[1, 0, 1]]}))
    assert reason(one, "kr20", grader="judge") == kr.ONE_RESPONSE
    assert reason(one, "total_sd", grader="judge") == totals.ONE_RESPONSE
    assert value(one, "total_mean", grader="judge") == 2


def test_fewer_than_3_clusters_have_no_interval() -> None:
    found = estimates(verdicts({"judge": bank(20, 5)}, clusters=["a"] * 10 + ["b"] * 10))
    for name in ("kr20", "omega_total", "total_mean"):
        estimate = found.get(name, grader="judge")
        assert estimate is not None
        assert estimate.number is not None
        assert estimate.interval is None
        assert "fewer than 3 clusters" in estimate.no_interval


@pytest.mark.parametrize(
    "call",
    [
        lambda: vd.stats.kr20([[1], [0]]),
        lambda: vd.stats.kr20([[1, 1], [1, 1]]),
        lambda: vd.stats.kr20([[1, 0]]),
        lambda: vd.stats.kr21([2, 2, 2], 4),
        lambda: vd.stats.kr21([], 4),
        lambda: vd.stats.cronbach_alpha(np.full((7, 3), 0.1)),
        lambda: vd.stats.cronbach_alpha(np.empty((0, 3))),
        lambda: vd.stats.standardised_alpha([[1, 0], [1, 1]]),
        lambda: vd.stats.mean_inter_element_correlation(np.ones((4, 3))),
        lambda: vd.stats.omega_total([[1, 0], [0, 1], [1, 1]]),
    ],
)
def test_plain_functions_warn_where_nothing_can_be_said(call: Any) -> None:
    with pytest.warns(UndefinedWarning):
        assert math.isnan(call())


def test_plain_functions_take_none_and_refuse_what_is_no_verdict() -> None:
    x = [[1, 1, None], [1, 0, 0], [0, 0, 0], [1, 1, 1]]
    assert math.isfinite(vd.stats.kr20(x))
    with pytest.raises(ValueError, match="cronbach_alpha"):
        vd.stats.kr20([[1, 2], [0, 1]])
    with pytest.raises(ValueError, match="dimensions"):
        vd.stats.cronbach_alpha([1, 0, 1])
