"""Checks of a checklist: what is found, what is clear, and what cannot be told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.checklists import real_bank, verdicts
from voirdire import auditing
from voirdire.checks.base import Evidence
from voirdire.checks.element_order import CHECK as ELEMENT_ORDER
from voirdire.checks.element_order import within_questions
from voirdire.checks.errors_concentrate import chance, held_by, worst_count
from voirdire.checks.gate_bias import CHECK as GATE_BIAS
from voirdire.checks.line_without_information import CHECK as LINES
from voirdire.checks.line_without_information import constant_by_chance
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Interval, Key, Undefined
from voirdire.finding import Finding, State, Strength
from voirdire.line_errors import counted_errors
from voirdire.scene import Estimates

NAN = float("nan")


def audit(*args: Any, **kwargs: Any) -> auditing.Audit:
    return auditing.run(verdicts(*args, **kwargs))


def of_code(found: auditing.Audit | Sequence[Finding], code: str) -> list[Finding]:
    findings = found.findings if isinstance(found, auditing.Audit) else found
    return [f for f in findings if f.code == code]


def said(finding: Finding) -> str:
    return str(finding.record()["sentence"])


def acts(finding: Finding) -> str:
    return "".join(p if isinstance(p, str) else p.text for p in finding.next_step)


def estimand(name: str, unit: Unit = Unit.SHARE) -> Estimand:
    return Estimand(
        name=name,
        title=name,
        question="?",
        describes=Describes.BOTH,
        keys=("grader", "cut"),
        unit=unit,
        scale=Scale.PLAIN,
        undefined_when="never",
        source=Source(text="made for a test"),
    )


def estimate(
    name: str,
    value: float | str,
    half: float | None = None,
    *,
    clusters: int = 61,
    n: float = 100,
    **key: str,
) -> Estimate:
    """An estimate by hand; a text is why it cannot be said, ``half`` the half width of its interval."""
    interval = None
    if half is not None and isinstance(value, float):
        interval = Interval(low=value - half, high=value + half, level=0.95, method="jackknife_t")
    return Estimate(
        estimand=estimand(name),
        key=Key(**key),
        value=Undefined(value) if isinstance(value, str) else value,
        interval=interval,
        clusters=clusters,
        n=n,
        no_interval="" if half is not None else "fewer than 3 clusters",
    )


def evidence(labels: Any, *estimates: Estimate) -> Evidence:
    whole, slices = auditing.scenes(labels)
    return Evidence(
        whole=whole,
        slices=tuple(slices),
        estimates=Estimates(estimates),
        clusters_declared=labels.clusters_declared,
        labels=labels,
    )


def bank(n: int = 60, k: int = 6, *, seed: int = 1, accept: float = 0.0) -> dict[str, np.ndarray]:
    """Gold of random verdicts, and a judge that accepts some of the lines that are not met."""
    rng = np.random.default_rng(seed)
    gold = (rng.random((n, k)) < rng.random((n, 1))).astype(float)
    judge = np.where((gold == 0) & (rng.random((n, k)) < accept), 1.0, gold)
    return {"gold": gold, "judge": judge}


# --- coefficients -------------------------------------------------------------------------------


def test_with_gold_the_coefficient_is_said_beside_what_an_error_free_scorer_gets() -> None:
    found = of_code(audit(bank(accept=0.2)), "coefficient_describes_bank")
    assert [(f.state, f.strength, f.grader) for f in found] == [
        (State.FOUND, Strength.CERTAIN, "judge")
    ]
    kr20 = {e.key.grader: e.number for e in found[0].evidence if e.statistic == "kr20"}
    assert set(kr20) == {"judge", "gold"}
    for value in kr20.values():
        assert value is not None
        assert f"{value:.3f}" in said(found[0])


def test_a_perfect_judge_is_told_the_same_of_its_coefficients() -> None:
    # Judge and gold are one: the rule does not hang on how far the two values are apart.
    found = of_code(audit(bank()), "coefficient_describes_bank")
    assert [f.state for f in found] == [State.FOUND]


def test_without_gold_nobody_knows_what_an_error_free_scorer_would_get() -> None:
    matrices = bank()
    found = audit({"judge": matrices["judge"]}, cut=[3])
    assert [f.state for f in of_code(found, "coefficient_without_gold")] == [State.FOUND]
    assert not of_code(found, "coefficient_describes_bank")
    only = of_code(found, "coefficient_without_gold")[0]
    assert "no gold" in said(only)
    assert "--gold" in acts(only)


def test_with_gold_no_coefficient_stands_alone() -> None:
    found = of_code(audit(bank()), "coefficient_without_gold")
    assert [f.state for f in found] == [State.CLEAR]


# --- the gate -----------------------------------------------------------------------------------


def gates(*differences: tuple[int, float, float | None], **options: Any) -> list[Finding]:
    labels = verdicts(bank(), cut=[c for c, _, _ in differences], **options)
    made = [
        estimate("pass_rate_minus_gold", d, half, grader="judge", cut=str(cut))
        for cut, d, half in differences
    ]
    rates = [
        estimate("pass_rate", 0.5 + d, grader="judge", cut=str(cut)) for cut, d, _ in differences
    ]
    return list(GATE_BIAS.run(evidence(labels, *made, *rates)))


def test_a_gate_that_passes_more_is_lenient_and_one_that_passes_fewer_is_harsh() -> None:
    more = gates((3, 0.10, 0.04))
    assert [(f.code, f.state, f.cut) for f in more] == [
        ("gate_lenient", State.FOUND, "3"),
        ("gate_harsh", State.CLEAR, "3"),
    ]
    assert "passes 60.0 % of the responses, and gold’s passes 50.0 %: 10.0 points more" in said(
        more[0]
    )
    fewer = gates((3, -0.10, 0.04))
    assert [(f.code, f.state) for f in fewer] == [
        ("gate_harsh", State.FOUND),
        ("gate_lenient", State.CLEAR),
    ]
    # The sentence has no sign, so its interval is turned round: [6, 14] and not [−14, −6].
    assert "10.0 points fewer [6.0, 14.0]" in said(fewer[0])
    assert "false rejects" in acts(fewer[0])


def test_an_interval_that_holds_zero_is_clear_and_says_how_far_it_reaches() -> None:
    found = gates((3, 0.02, 0.05))
    assert {f.state for f in found} == {State.CLEAR}
    assert "+2.0 points [-3.0, 7.0] at 3" in said(found[0])


def test_of_several_cuts_one_that_only_just_leaves_out_zero_is_within_chance() -> None:
    # t on 60 degrees of freedom: 2.00 at 95 %. A difference of 1.1 half widths has p about 0.03,
    # above the 0.05/3 of the first by Holm.
    found = gates((2, 0.001, 0.01), (3, 0.011, 0.01), (4, 0.0, 0.01))
    assert {f.state for f in found} == {State.CLEAR}
    (clear,) = [f for f in found if f.code == "gate_lenient"]
    assert "The interval at 3 leaves out 0, but one of 3 comparisons" in said(clear)
    # A half width of 1 point at 95 %, at 1 − 0.05/3: t(60) is 2.46 and not 2.00, so 1.2 points.
    assert "less than 1.2 points may go unseen among 3 comparisons" in said(clear)
    alone = [f for f in gates((3, 0.011, 0.01)) if f.state is State.FOUND]
    assert [f.strength for f in alone] == [Strength.CERTAIN]


def test_beside_a_cut_that_holds_another_is_indicative_by_its_own_interval() -> None:
    # One of 3 half widths has p far below 0.05/3; then the others may rest on their own intervals.
    found = gates((2, 0.03, 0.01), (3, 0.011, 0.01), (4, 0.009, 0.01), (5, -0.011, 0.01))
    held = {f.cut: f for f in found if f.state is State.FOUND}
    assert {c: f.strength for c, f in held.items()} == {
        "2": Strength.CERTAIN,
        "3": Strength.INDICATIVE,
    }
    text = said(held["3"])
    assert (
        "1.1 points more [0.1, 2.1]. It rests on its own interval, and goes the way of what" in text
    )
    assert text.endswith("holds beside all 4 comparisons (Holm), at 2.")
    assert "by chance" not in text
    # The other direction has no cut that holds: the one below 0 stays within chance.
    (harsh,) = [f for f in found if f.code == "gate_harsh"]
    assert harsh.state is State.CLEAR
    assert "The interval at 5 leaves out 0, but one of 4 comparisons" in said(harsh)


def test_a_lenient_gate_says_how_many_of_golds_fails_it_passes() -> None:
    found = of_code(auditing.run(real_bank(cut=[5])), "gate_lenient")
    (lenient,) = [f for f in found if f.state is State.FOUND]
    assert "It passes 13 of 59 that gold fails (22.0 % [" in said(lenient)
    assert "and fails 0 of 121 that gold passes (0.0 % [" in said(lenient)
    shown = {e.statistic: e.n for e in lenient.evidence}
    assert (shown["gate_false_accept"], shown["gate_false_reject"]) == (59, 121)


def test_under_design_weights_the_gate_errors_are_shares_and_no_counts() -> None:
    matrices = bank(accept=0.3)
    weights = [1.0 + (i % 3) / 2 for i in range(60)]
    found = of_code(audit(matrices, cut=[3], weights=weights), "gate_lenient")
    (lenient,) = [f for f in found if f.state is State.FOUND]
    (errors,) = [e for e in lenient.evidence if e.statistic == "gate_false_accept"]
    assert errors.n is not None
    assert " % [" in said(lenient).split("It passes ")[1]
    assert f"of {errors.n:.0f} that gold fails" in said(lenient)
    assert not re.search(r"It passes \d+ of", said(lenient))


def test_another_judges_cut_lends_nothing() -> None:
    matrices = bank()
    labels = verdicts({**matrices, "other": matrices["judge"]}, cut=[3])
    made = [
        estimate("pass_rate_minus_gold", d, 0.01, grader=j, cut="3")
        for j, d in (("judge", 0.03), ("other", 0.0101))
    ]
    made[1] = replace(
        made[1], interval=Interval(low=0.0001, high=0.0601, level=0.95, method="percentile")
    )
    found = list(GATE_BIAS.run(evidence(labels, *made)))
    assert [f.grader for f in found if f.state is State.FOUND] == ["judge"]


def test_a_clear_gate_does_not_list_what_goes_the_other_way() -> None:
    found = gates((2, 0.03, 0.01), (3, 0.02, 0.01), (4, 0.001, 0.01))
    (harsh,) = [f for f in found if f.code == "gate_harsh"]
    assert said(harsh).startswith(
        "Not seen that the gate of judge passes fewer than gold’s. At 2, 3 and 4 it passes as many "
        "or more."
    )
    assert "+" not in said(harsh)


def test_the_papers_gate_is_lenient_at_every_cut_under_its_bootstrap() -> None:
    found = of_code(auditing.run(real_bank(cut=[4, 5, 6, 7], interval="bootstrap")), "gate_lenient")
    assert {f.cut: f.strength for f in found if f.state is State.FOUND} == {
        "4": Strength.INDICATIVE,
        "5": Strength.LIKELY,
        "6": Strength.LIKELY,
        "7": Strength.LIKELY,
    }
    assert {f.state for f in found} == {State.FOUND}


def test_holm_goes_over_all_judges() -> None:
    matrices = bank()
    judges = [f"j{i}" for i in range(8)]
    labels = verdicts(
        {"gold": matrices["gold"], **dict.fromkeys(judges, matrices["judge"])}, cut=[3]
    )
    made = [
        estimate("pass_rate_minus_gold", 0.012 if j == "j0" else 0.0, 0.01, grader=j, cut="3")
        for j in judges
    ]
    # p of j0 is about 0.02: alone it would be found, as one of eight it is not (0.05/8).
    assert {f.state for f in GATE_BIAS.run(evidence(labels, *made))} == {State.CLEAR}


def test_where_every_cluster_has_the_same_difference_the_sign_test_speaks() -> None:
    labels = verdicts(bank(), cut=[3])
    for clusters, state in ((5, State.CLEAR), (6, State.FOUND)):  # 2^−4 = 0.0625, 2^−5 = 0.031
        one = estimate("pass_rate_minus_gold", 1.0, grader="judge", cut="3", clusters=clusters)
        one = replace(one, no_interval="all clusters say the same")
        found = [f for f in GATE_BIAS.run(evidence(labels, one)) if f.code == "gate_lenient"]
        assert [f.state for f in found] == [state]


def test_one_scored_response_tells_nothing_of_the_gate() -> None:
    for grader in ("gold", "judge"):
        matrices = bank(30, 4)
        matrices[grader][1:] = NAN
        found = audit(matrices, cut=[2])
        gates_ = [f for c in ("gate_lenient", "gate_harsh") for f in of_code(found, c)]
        assert [f.state for f in gates_] == [State.CANNOT_TELL]
        assert "1 cluster of scored responses, fewer than 3" in said(gates_[0])


def test_a_judge_that_is_called_gold_is_told_from_the_standard() -> None:
    matrices = bank(accept=0.3)
    found = audit({"a": matrices["gold"], "gold": matrices["judge"]}, cut=[3], gold="a")
    (lenient,) = of_code(found, "gate_lenient")
    assert lenient.grader == "gold"
    assert "the gate of gold passes" in said(lenient)
    assert "and a’s passes" in said(lenient)
    (describes,) = of_code(found, "coefficient_describes_bank")
    assert "On its verdicts and on a’s" in said(describes)


def test_few_clusters_make_it_likely_and_not_certain() -> None:
    labels = verdicts(bank(), cut=[3])
    one = estimate("pass_rate_minus_gold", 0.1, 0.04, grader="judge", cut="3", clusters=13)
    found = [f for f in GATE_BIAS.run(evidence(labels, one)) if f.state is State.FOUND]
    assert [f.strength for f in found] == [Strength.LIKELY]


def test_without_an_interval_the_gate_cannot_be_told() -> None:
    found = gates((3, 0.1, None))
    assert [(f.state, f.cut) for f in found] == [(State.CANNOT_TELL, "3")]
    assert "fewer than 3 clusters" in said(found[0])


def test_without_a_cut_or_without_gold_the_gate_says_what_is_missing() -> None:
    no_cut = list(GATE_BIAS.run(evidence(verdicts(bank()))))
    assert {f.state for f in no_cut} == {State.NOT_APPLICABLE}
    assert all("--cut 3" in said(f) for f in no_cut)
    no_gold = list(GATE_BIAS.run(evidence(verdicts({"judge": bank()["judge"]}, cut=[3]))))
    assert {f.code for f in no_gold} == {"gate_lenient", "gate_harsh"}
    assert all("gold labels" in said(f) for f in no_gold)


def test_a_gate_that_is_the_same_as_golds_is_clear() -> None:
    found = of_code(audit(bank(), cut=[3]), "gate_lenient")
    assert [f.state for f in found] == [State.CLEAR]


# --- where the errors are -----------------------------------------------------------------------


def test_the_share_to_hold_is_a_quarter_for_five_in_a_hundred_lines() -> None:
    # Of 20 lines or more: also where the worst 5 % are rounded down, as 6 of 130.
    assert {held_by(100, 5), held_by(130, 6), held_by(39, 1), held_by(20, 1)} == {0.25}
    assert held_by(19, 1) > 0.25
    # One of ten lines: odds of 1/9 times 19/3, the odds ratio of 1/3 to 1/19: 19/27 → 19/46.
    assert held_by(10, 1) == pytest.approx(19 / 46)
    assert 0.5 < held_by(4, 1) < 1
    assert [worst_count(n) for n in (4, 19, 20, 39, 40, 130)] == [1, 1, 1, 1, 2, 6]


def test_by_chance_the_worst_line_of_two_holds_what_counting_says() -> None:
    # Two lines of one verdict each and one error: it falls on either, so the worst holds all of it,
    # and every draw holds as much as was seen.
    share, p = chance(np.array([1, 0]), np.array([1, 1]), 1, seed=0)
    assert (share, p) == (1.0, 1.0)
    # Two errors on two lines of two verdicts: both on one line in 2 of 6 ways: (1/3 + 2/3 · 1/2).
    share, p = chance(np.array([2, 0]), np.array([2, 2]), 1, seed=0)
    se = (1 / 3 * 2 / 3 / 2000) ** 0.5 / 2
    assert share == pytest.approx(2 / 3, abs=5 * se)
    assert p == pytest.approx(1 / 3, abs=10 * se)


def test_very_many_lines_are_compared_too() -> None:
    lines = 4000
    errors = np.zeros(lines, dtype=np.int64)
    errors[:200] = 5
    share, p = chance(errors, np.full(lines, 10), 200, seed=0)
    assert share < 0.6
    assert p == pytest.approx(1 / 100)


def concentrated(gathered: int, spread: int) -> auditing.Audit:
    """20 questions of 10 lines: ``gathered`` errors on the first line, others one a line."""
    n, k, questions = 200, 10, 20
    rng = np.random.default_rng(3)
    gold = (rng.random((n, k)) < 0.5).astype(float)
    asked = [f"q{i % questions:02}" for i in range(n)]
    gold[::questions, 0] = 0.0
    judge = gold.copy()
    judge[: gathered * questions : questions, 0] = 1.0
    for i in range(spread):
        row, column = 1 + i % 19, 1 + i // 19
        judge[row, column] = 1 - judge[row, column]
    return audit({"gold": gold, "judge": judge}, questions=asked)


def test_errors_on_one_line_are_found_and_the_line_is_named() -> None:
    found = of_code(concentrated(8, 6), "errors_concentrate")
    assert [(f.state, f.strength) for f in found] == [(State.FOUND, Strength.CERTAIN)]
    assert "q00/e1" in said(found[0])


def test_few_errors_gather_by_chance_and_are_not_held_against_the_lines() -> None:
    # 8 errors on 8 of 200 lines: the worst 10 lines hold all of them, as they would by chance.
    found = of_code(concentrated(0, 8), "errors_concentrate")
    assert [f.state for f in found] == [State.CLEAR]
    assert "100.0 %" in said(found[0])


def test_too_few_errors_cannot_tell_and_none_is_clear() -> None:
    assert [f.state for f in of_code(concentrated(0, 3), "errors_concentrate")] == [
        State.CANNOT_TELL
    ]
    assert [f.state for f in of_code(concentrated(0, 0), "errors_concentrate")] == [State.CLEAR]


def test_errors_are_counted_on_each_line_and_in_each_direction() -> None:
    # e1: gold 0 0 1 1, judge 1 0 1 0 → one accept of two absent, one reject of two present.
    # e2: the second response has no verdict of the judge and leaves no trace on it.
    gold = [[0, 0], [0, 1], [1, 1], [1, 0]]
    judge = [[1, 0], [0, NAN], [1, 1], [0, 1]]
    scene, _ = auditing.scenes(verdicts({"gold": gold, "judge": judge}))
    counted = counted_errors(scene, "judge")
    assert counted.lines == ("e1", "e2")
    assert counted.verdicts.tolist() == [4, 3]
    assert counted.absent.tolist() == [2, 2]
    assert counted.accepted.tolist() == [1, 1]
    assert counted.rejected.tolist() == [1, 0]
    assert counted.worst(5) == [0, 1]


# --- lines without information ------------------------------------------------------------------


def test_a_line_that_is_always_met_is_named_with_the_figures_without_it() -> None:
    matrix = bank(20, 4)["judge"]
    matrix[:, 3] = 1.0
    found = of_code(audit({"judge": matrix}), "line_without_information")
    assert [(f.state, f.strength, f.line) for f in found] == [(State.FOUND, Strength.CERTAIN, "e4")]
    assert "says yes to e4 in all 20 responses" in said(found[0])
    # The same by hand, with n and with n − 1 in the variance of totals.
    three = matrix[:, :3]
    p = three.mean(axis=0)
    for ddof in (0, 1):
        value = 1.5 * (1 - (p * (1 - p)).sum() / three.sum(axis=1).var(ddof=ddof))
        assert f"{value:.3f}" in said(found[0])


def test_a_line_on_which_only_gold_varies_is_told_from_one_on_which_neither_does() -> None:
    matrices = bank(20, 4)
    matrices["judge"][:, 1] = 1.0
    matrices["gold"][:, 2] = matrices["judge"][:, 2] = 0.0
    matrices["gold"][:, 3] = 1.0
    found = list(LINES.run(evidence(verdicts(matrices))))
    yes = int(matrices["gold"][:, 1].sum())
    assert f"says yes to e2 in all 20 responses, and gold says yes in {yes} of them" in said(
        found[0]
    )
    assert "says no to e3 in all 20 responses, and so does gold" in said(found[0])
    assert "Gold never varies on 1 line (e4)" in said(found[0])


def test_lines_of_few_responses_are_not_named() -> None:
    matrices = bank(8, 4)
    found = list(LINES.run(evidence(verdicts(matrices, questions=list("aabbccdd")))))
    assert [f.state for f in found] == [State.NOT_APPLICABLE]


def test_a_shared_line_that_is_constant_on_few_responses_is_indicative() -> None:
    # FC-25: four lines, 8 responses, the fourth met in all. The others are met in 12 of 24, so chance
    # gives 2 · 0.5^8 = 0.0078 for it; times four lines 0.03. On 5 responses 0.0625 times four.
    for n, strength in ((8, Strength.CERTAIN), (5, Strength.INDICATIVE)):
        matrix = np.ones((n, 4))
        matrix[:, :3] = (np.add.outer(np.arange(n), np.arange(3)) % 2).astype(float)
        found = list(LINES.run(evidence(verdicts({"judge": matrix}))))
        assert [(f.state, f.strength, f.line) for f in found] == [(State.FOUND, strength, "e4")]
        assert f"says yes to e4 in all {n} responses" in said(found[0])
    assert "Score more responses" in acts(found[0])


def test_by_chance_a_line_is_constant_as_often_as_its_neighbours_allow() -> None:
    # Ten responses a line; the others of the first are met in 10 of 20, of the last in 12 of 20.
    made = constant_by_chance(np.array([6, 6, 4]), np.array([10, 10, 10]))
    assert made == pytest.approx([2 * 0.5**10, 2 * 0.5**10, 0.6**10 + 0.4**10])
    assert constant_by_chance(np.array([3]), np.array([9])) == pytest.approx([1.0])


def own_lines(seed: int, per_line: int, questions: int = 12) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    asked = [f"q{i % questions:02}" for i in range(per_line * questions)]
    return (rng.random((len(asked), 10)) < 0.5).astype(float), asked


def test_lines_of_own_checklists_are_not_held_against_a_bank_of_few_responses() -> None:
    # Coins: 5 responses a line, each line constant with probability 1/16. A normal tail at 5 % and
    # the discreteness of the count leave about 5 % of banks; 4 of 40 has probability 0.05 or less.
    found = 0
    for seed in range(40):
        matrix, asked = own_lines(seed, 5)
        (one,) = LINES.run(evidence(verdicts({"judge": matrix}, questions=asked)))
        assert one.state in (State.CLEAR, State.FOUND)
        assert one.strength in (Strength.NONE, Strength.INDICATIVE)
        assert "of 120 lines of 5 responses" in said(one)
        found += one.state is State.FOUND
    assert found <= 4


def test_an_own_line_beyond_chance_is_named_and_the_others_are_counted() -> None:
    matrix, asked = own_lines(1, 20)
    matrix[[a == "q03" for a in asked], 4] = 1.0  # 120 · 2 · 0.5^20: far beyond chance
    (one,) = LINES.run(evidence(verdicts({"judge": matrix}, questions=asked)))
    assert (one.state, one.strength, one.line) == (State.FOUND, Strength.CERTAIN, "q03/e5")


def test_an_own_line_on_which_only_gold_varies_holds_errors() -> None:
    gold, asked = own_lines(2, 6)
    judge = gold.copy()
    judge[[a == "q03" for a in asked], 4] = 1.0
    gold[asked.index("q03"), 4] = 0.0
    (one,) = LINES.run(evidence(verdicts({"gold": gold, "judge": judge}, questions=asked)))
    assert (one.state, one.strength, one.line) == (State.FOUND, Strength.INDICATIVE, "q03/e5")
    assert "the judge errs there (q03/e5)" in said(one)


# --- the order of lines -------------------------------------------------------------------------


def orders(
    low: float | str, high: float | str, *, n: int = 60, unlike: bool = True, **options: Any
) -> list[Finding]:
    """Ten questions; ``unlike``: in each the first line is always met and the others are coins."""
    matrix, asked = own_lines(4, n // 10, 10)
    if unlike:
        matrix[:, 0] = 1.0
    labels = verdicts({"judge": matrix}, questions=asked, **options)
    made = [
        estimate("kr20_shuffled_low", low, grader="judge"),
        estimate("kr20_shuffled_high", high, grader="judge"),
    ]
    return list(ELEMENT_ORDER.run(evidence(labels, *made)))


def test_an_order_that_moves_the_coefficient_is_found() -> None:
    found = orders(0.40, 0.46)
    assert [(f.state, f.strength) for f in found] == [(State.FOUND, Strength.CERTAIN)]
    assert "between 0.400 and 0.460" in said(found[0])
    assert [f.state for f in orders(0.40, 0.44)] == [State.CLEAR]


def test_a_wide_range_of_few_responses_or_of_like_lines_is_no_finding() -> None:
    few = orders(0.40, 0.46, n=40)
    assert [f.state for f in few] == [State.CANNOT_TELL]
    assert "only 40 responses" in said(few[0])
    alike = orders(0.40, 0.46, unlike=False)
    assert [f.state for f in alike] == [State.CLEAR]
    assert "Cochran" in said(alike[0])


def test_lines_inside_questions_are_compared_by_cochrans_q() -> None:
    # One question, four responses, three lines met 4, 1 and 1 times; totals 1, 1, 2, 2.
    # Q = 2 · ((4 − 2)² + 1 + 1) / (4 · 2/3) = 4.5 on 2 degrees of freedom: p = exp(−2.25).
    matrix = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]])
    scene, _ = auditing.scenes(verdicts({"judge": matrix}, questions=list("aaaa")))
    n, p = within_questions(scene, "judge")
    assert n == 4
    assert p == pytest.approx(np.exp(-2.25))


def test_the_order_is_no_question_where_it_cannot_be_said_or_all_share_one_checklist() -> None:
    found = orders("no total varies", "no total varies")
    assert [f.state for f in found] == [State.NOT_APPLICABLE]
    assert "no total varies" in said(found[0])
    shared = list(ELEMENT_ORDER.run(evidence(verdicts(bank()))))
    assert [f.state for f in shared] == [State.NOT_APPLICABLE]


# --- outcomes, clusters -------------------------------------------------------------------------


def test_unread_responses_are_told_with_the_two_ends_of_the_gate() -> None:
    matrices = bank(40, 4)
    matrices["judge"][:12] = NAN  # 30 %
    found = of_code(audit(matrices, cut=[2]), "outcomes_unread")
    loud = [f for f in found if f.state is State.FOUND]
    assert [(f.grader, f.strength) for f in loud] == [("judge", Strength.CERTAIN)]
    # The judge is right on the 28 that it scored. As rejections the others are right where gold
    # rejects too.
    rejected = int((matrices["gold"][:12].sum(axis=1) < 2).sum())
    low, high = 100 * 28 / 40, 100 * (28 + rejected) / 40
    assert "12 of 40 responses (30.0 %: 12 unparsed)" in said(loud[0])
    assert f"{low:.1f} % to {high:.1f} % at a cut of 2" in said(loud[0])


def test_a_question_that_is_lost_whole_is_named_though_few_are_unread() -> None:
    matrices = bank(40, 4)
    matrices["judge"][36:] = NAN  # 10 %, all of the last question
    asked = [f"q{i // 4}" for i in range(40)]
    found = [
        f
        for f in of_code(audit(matrices, questions=asked), "outcomes_unread")
        if f.grader == "judge"
    ]
    assert [f.state for f in found] == [State.FOUND]
    assert "all 4 of question q9" in said(found[0])
    scattered = bank(40, 4)
    scattered["judge"][[0, 5, 10, 15]] = NAN  # 10 %, of four questions
    found = [
        f
        for f in of_code(audit(scattered, questions=asked), "outcomes_unread")
        if f.grader == "judge"
    ]
    assert [f.state for f in found] == [State.CLEAR]


def test_responses_with_some_lines_blank_are_no_unread_calls() -> None:
    matrices = bank(20, 4)
    matrices["judge"][:3, 0] = NAN
    found = [f for f in of_code(audit(matrices), "outcomes_unread") if f.grader == "judge"]
    assert [f.state for f in found] == [State.CLEAR]
    assert "3 responses lack a verdict on some line and have no total" in said(found[0])


def test_the_two_ends_are_over_the_responses_that_gold_scored() -> None:
    matrices = bank(40, 4)
    matrices["judge"][:12] = NAN
    matrices["gold"][20:] = NAN
    (loud,) = [
        f for f in of_code(audit(matrices, cut=[2]), "outcomes_unread") if f.grader == "judge"
    ]
    assert (
        "Over the 20 responses that gold scored in full and judge scored in full or could"
        in said(loud)
    )
    # Of these 20 the judge scored 8, and is right on all: 40 %.
    assert "the gate is right on 40.0 %" in said(loud)


def test_one_line_that_cannot_be_read_leaves_the_call_without_a_total_and_this_is_said() -> None:
    labels = verdicts(bank(20, 4))
    wrong = (
        (pl.col("grader") == "judge") & (pl.col("response") < "r000006") & (pl.col("line") == "e2")
    )
    frame = labels.frame.with_columns(
        pl.when(wrong).then(None).otherwise(pl.col("label")).alias("label"),
        pl.when(wrong)
        .then(pl.lit("unparsed").cast(labels.frame.schema["outcome"]))
        .otherwise(pl.col("outcome"))
        .alias("outcome"),
    )
    found = auditing.run(replace(labels, frame=frame))
    (loud,) = [f for f in of_code(found, "outcomes_unread") if f.grader == "judge"]
    assert loud.state is State.FOUND
    assert "could not be read in full on 6 of 20 responses (30.0 %: 6 unparsed)" in said(loud)
    assert "a verdict on some lines of 6 of these" in said(loud)


def test_a_judge_that_lacks_a_line_throughout_is_told_so() -> None:
    matrices = bank(40, 4)
    matrices["judge"][:, 2] = NAN
    found = audit(matrices, cut=[2])
    (loud,) = [f for f in of_code(found, "outcomes_unread") if f.grader == "judge"]
    assert (loud.state, loud.strength) == (State.FOUND, Strength.CERTAIN)
    assert "scored none of 40 responses in full: it has no verdict on 1 line (e3)" in said(loud)
    (few,) = of_code(found, "few_clusters")
    assert "No response was scored in full" in said(few)
    assert "add clusters" not in acts(few)


def test_gold_without_a_verdict_is_no_gold() -> None:
    matrices = bank(40, 4)
    matrices["gold"][:] = NAN
    found = audit(matrices, cut=[2])
    (only,) = of_code(found, "coefficient_without_gold")
    assert only.state is State.FOUND
    assert "There is no gold, since gold has no verdict on any line" in said(only)
    assert {f.state for f in of_code(found, "gate_lenient")} == {State.NOT_APPLICABLE}
    assert {f.grader for f in of_code(found, "outcomes_unread")} == {"judge"}
    assert "false_accept" not in set(found.results["statistic"])


def test_gold_and_judge_on_other_responses_share_no_verdict() -> None:
    matrices = bank(40, 4)
    matrices["gold"][:20] = NAN
    matrices["judge"][20:] = NAN
    found = audit(matrices, cut=[2])
    for statistic in ("false_accept", "false_reject"):
        (row,) = found.results.filter(statistic=statistic, line="").iter_rows(named=True)
        assert row["reason"] == "gold and the judge share no verdict there"
    assert not of_code(found, "coefficient_without_gold")


def test_clusters_are_counted_where_the_judge_was_read() -> None:
    matrices = bank(40, 4)
    matrices["judge"][36:] = NAN
    found = of_code(audit(matrices, questions=[f"q{i // 4}" for i in range(40)]), "few_clusters")
    assert [f.state for f in found] == [State.FOUND]
    assert "9 clusters" in said(found[0])
    many = of_code(audit(bank(60, 4)), "few_clusters")
    assert [f.state for f in many] == [State.CLEAR]


# --- the paper's bank ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paper() -> auditing.Audit:
    return auditing.run(real_bank(cut=[4, 5, 6, 7]))


def test_the_papers_judge_is_lenient_and_its_errors_sit_on_few_lines(paper: auditing.Audit) -> None:
    lenient = [f for f in of_code(paper, "gate_lenient") if f.state is State.FOUND]
    assert "5" in {f.cut for f in lenient}
    assert not [f for f in of_code(paper, "gate_harsh") if f.state is State.FOUND]
    (errors,) = of_code(paper, "errors_concentrate")
    assert errors.state is State.FOUND
    assert "of its 85 errors" in said(errors)
    assert "out of 130 lines" in said(errors)


def test_the_two_questions_that_the_paper_lost_are_named(paper: auditing.Audit) -> None:
    (unread,) = [f for f in of_code(paper, "outcomes_unread") if f.grader == "judge"]
    assert unread.state is State.FOUND
    assert "30 of 210 responses" in said(unread)
    assert "all 14 of questions" in said(unread)
    # TWM, Appendix A.1: 0.795 as a gate error and 0.852 as a rejection at a pass mark of five.
    assert "79.5 % to 85.2 % at 5" in said(unread)


def test_the_papers_coefficient_is_said_with_its_value_on_gold(paper: auditing.Audit) -> None:
    (found,) = of_code(paper, "coefficient_describes_bank")
    # TWM, Section 3: 0.5223 and 0.5231.
    assert "KR-20 is 0.522" in said(found)
    assert "and 0.523" in said(found)
