"""Pass and fail of the judge beside gold’s: by hand, on the paper’s bank, and the laws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checklists import real_bank, verdicts
from voirdire.auditing import scenes
from voirdire.document import Paragraph, Table
from voirdire.estimate import Estimate
from voirdire.inference import Settings, estimates
from voirdire.labels import Labels
from voirdire.scene import Estimates
from voirdire.stats.gate import FAMILY, asked_of

FILE = Path(__file__).parents[2] / "shared" / "reference" / "published.json"
NAN = float("nan")


def found(labels: Labels, **settings: Any) -> Estimates:
    scene, slices = scenes(labels)
    return Estimates(
        e
        for one in (scene, *slices)
        for e in estimates(FAMILY.parts(one), Settings(**settings), slice_=one.slice)
    )


def one(made: Estimates, statistic: str, **key: str) -> Estimate:
    estimate = made.get(statistic, **key)
    assert estimate is not None, (statistic, key)
    return estimate


def said(estimate: Estimate) -> tuple[Any, ...]:
    """The value with the number behind it."""
    return (estimate.value, estimate.n)


# --- by hand ------------------------------------------------------------------------------------

# Totals of gold 3 2 1 0 2 and 3; the judge’s 3 1 2 0, one unread, and one with a line missing.
GOLD = [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 1], [1, 1, 1]]
JUDGE = [[1, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0], [NAN, NAN, NAN], [1, NAN, 1]]


@pytest.fixture(scope="module")
def by_hand() -> Estimates:
    return found(verdicts({"gold": GOLD, "judge": JUDGE}, cut=[1, 2]))


@pytest.mark.parametrize(
    ("cut", "accuracy", "rejected", "wrong", "judge", "gold"),
    [
        # cut 2: gold passes r0 r1 (and the unread r4), the judge r0 r2: right on r0 and r3 of 4.
        ("2", 2 / 4, 2 / 5, 2 / 5, 2 / 4, 2 / 4),
        # cut 1: both pass r0 r1 r2 and fail r3; rejecting r4, which gold passes, is wrong.
        ("1", 4 / 4, 4 / 5, 4 / 5, 3 / 4, 3 / 4),
    ],
)
def test_a_gate_by_hand(by_hand, cut, accuracy, rejected, wrong, judge, gold):
    key = {"grader": "judge", "cut": cut}
    assert one(by_hand, "gate_accuracy", **key).value == pytest.approx(accuracy)
    assert one(by_hand, "gate_accuracy_unparsed_rejected", **key).value == pytest.approx(rejected)
    assert one(by_hand, "gate_accuracy_unparsed_wrong", **key).value == pytest.approx(wrong)
    assert one(by_hand, "pass_rate", **key).value == pytest.approx(judge)
    assert one(by_hand, "pass_rate", grader="gold", cut=cut).value == pytest.approx(gold)
    assert one(by_hand, "pass_rate_minus_gold", **key).value == pytest.approx(judge - gold)
    assert one(by_hand, "gate_accuracy", **key).n == 4
    assert one(by_hand, "gate_accuracy_unparsed_wrong", **key).n == 5


@pytest.mark.parametrize(
    ("cut", "accept", "reject"),
    [
        # Of the four that both scored gold fails r2 and r3 at 2, and the judge passes r2 of them;
        # gold passes r0 and r1, and the judge fails r1.
        ("2", (1 / 2, 2), (1 / 2, 2)),
        # At 1 gold fails r3 alone, and so does the judge; r4 (unread) counts in neither.
        ("1", (0.0, 1), (0.0, 3)),
    ],
)
def test_false_passes_and_false_fails_by_hand(by_hand, cut, accept, reject):
    key = {"grader": "judge", "cut": cut}
    assert said(one(by_hand, "gate_false_accept", **key)) == accept
    assert said(one(by_hand, "gate_false_reject", **key)) == reject


def test_where_gold_fails_none_there_is_no_share_of_false_passes():
    gold, judge = [[1, 1], [1, 0], [1, 1]], [[1, 1], [0, 0], [1, 1]]
    made = found(verdicts({"gold": gold, "judge": judge}, cut=[1]))
    key = {"grader": "judge", "cut": "1"}
    accept = one(made, "gate_false_accept", **key)
    assert (accept.number, accept.n) == (None, 0)
    assert accept.reason == "gold passes every response that both scored in full"
    assert said(one(made, "gate_false_reject", **key)) == (pytest.approx(1 / 3), 3)
    turned = found(verdicts({"gold": judge, "judge": gold}, cut=[2]))
    never = found(verdicts({"gold": [[0, 0], [1, 0]], "judge": gold[:2]}, cut=[2]))
    assert one(turned, "gate_false_reject", grader="judge", cut="2").value == 0
    none = one(never, "gate_false_reject", grader="judge", cut="2")
    assert none.reason == "gold fails every response that both scored in full"
    unread = found(verdicts({"gold": gold, "judge": np.full((3, 2), NAN)}, cut=[1]))
    for name in ("gate_false_accept", "gate_false_reject"):
        lost = one(unread, name, grader="judge", cut="1")
        assert "scored in full by gold and the judge" in lost.reason


def test_a_rejected_unread_response_is_right_where_gold_fails_it():
    gold, judge = [[0, 0], [1, 1], [0, 1]], [[NAN, NAN], [1, 1], [0, 1]]
    made = found(verdicts({"gold": gold, "judge": judge}, cut=[2]))
    key = {"grader": "judge", "cut": "2"}
    assert one(made, "gate_accuracy_unparsed_rejected", **key).value == 1
    assert one(made, "gate_accuracy_unparsed_wrong", **key).value == pytest.approx(2 / 3)


def test_a_response_with_a_missing_line_is_left_out_and_counted(by_hand):
    labels = verdicts({"gold": GOLD, "judge": JUDGE}, cut=[2])
    scene, _ = scenes(labels)
    rows, unread = asked_of(scene, "judge")
    assert rows.tolist() == [0, 1, 2, 3, 4]
    assert unread.tolist() == [False] * 4 + [True]
    table, wrong = FAMILY.blocks(scene, by_hand) if FAMILY.blocks else ()
    assert isinstance(table, Table)
    assert isinstance(wrong, Table)
    assert [c.value for c in wrong.rows[0]] == ["judge", "2", 0.5, "1 of 2", 0.5, "1 of 2"]
    note = "".join(p if isinstance(p, str) else p.text for p in table.note)
    assert "judge: 4 scored by both, 1 not read; 1 response left out" in note


def test_where_all_is_read_the_bounds_are_the_accuracy():
    made = found(verdicts({"gold": GOLD[:4], "judge": JUDGE[:4]}, cut=[2]))
    values = {e.value for e in made.all if e.statistic.startswith("gate_accuracy")}
    assert values == {0.5}


def test_without_gold_there_are_pass_rates_only():
    made = found(verdicts({"a": JUDGE, "b": GOLD}, cut=[2]))
    assert {e.statistic for e in made.all} == {"pass_rate"}
    assert one(made, "pass_rate", grader="a", cut="2").value == pytest.approx(2 / 4)
    assert one(made, "pass_rate", grader="b", cut="2").value == pytest.approx(4 / 6)


def test_without_a_cut_there_is_no_gate_and_the_report_says_how_to_ask():
    labels = verdicts({"gold": GOLD, "judge": JUDGE})
    assert found(labels).all == ()
    scene, _ = scenes(labels)
    assert FAMILY.blocks is not None
    (paragraph,) = FAMILY.blocks(scene, Estimates([]))
    assert isinstance(paragraph, Paragraph)
    assert "--cut 5" in str(paragraph.text)


def test_with_gold_on_a_part_the_judge_also_stands_alone_on_all_it_scored():
    gold = [*GOLD[:4], [NAN] * 3]
    judge = [*JUDGE[:4], [1, 1, 1]]
    made = found(verdicts({"gold": gold, "judge": judge}, cut=[2]))
    assert one(made, "pass_rate", grader="judge", cut="2").value == pytest.approx(2 / 4)
    alone = one(made, "pass_rate", grader="judge", cut="2", other="all responses")
    assert said(alone) == (pytest.approx(3 / 5), 5)


def test_several_judges_have_a_row_each_and_gold_beside_each():
    made = found(verdicts({"gold": GOLD, "a": JUDGE, "b": GOLD}, cut=[2]))
    assert one(made, "gate_accuracy", grader="b", cut="2").value == 1
    assert one(made, "gate_accuracy", grader="a", cut="2").value == 0.5
    assert one(made, "pass_rate", grader="gold", other="a", cut="2").n == 4
    assert one(made, "pass_rate", grader="gold", other="b", cut="2").n == 6


def test_a_judge_that_read_nothing_is_undefined_with_the_reason():
    made = found(verdicts({"gold": GOLD, "judge": np.full((6, 3), NAN)}, cut=[2]))
    accuracy = one(made, "gate_accuracy", grader="judge", cut="2")
    assert accuracy.number is None
    assert "scored in full by gold and the judge" in accuracy.reason
    assert one(made, "gate_accuracy_unparsed_wrong", grader="judge", cut="2").value == 0
    rejected = one(made, "gate_accuracy_unparsed_rejected", grader="judge", cut="2")
    assert rejected.value == pytest.approx(2 / 6)  # gold fails two of six


def test_checklists_of_different_lengths_share_a_cut():
    gold = [[1, 1, NAN], [1, 0, NAN], [1, 1, 1], [1, 0, 0]]
    judge = [[1, 1, NAN], [1, 1, NAN], [1, 1, 0], [0, 0, 0]]
    labels = verdicts(
        {"gold": gold, "judge": judge},
        questions=["p", "p", "q", "q"],
        lengths={"p": 2, "q": 3},
        cut=[2],
    )
    # gold passes r0 and r2; the judge r0 r1 r2
    assert one(found(labels), "gate_accuracy", grader="judge", cut="2").value == pytest.approx(
        3 / 4
    )


# --- the paper’s bank ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    if not FILE.is_file():
        pytest.skip("the shared figures of the paper do not stand beside this repository")
    gate: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["three_ways"]["gate"]
    return gate


def test_the_paper_s_gate(published):
    made = found(real_bank(cut=published["cuts"]), interval="bootstrap")
    for i, cut in enumerate(published["cuts"]):
        key = {"grader": "judge", "cut": str(cut)}
        accuracy = one(made, "gate_accuracy", **key)
        assert accuracy.value == pytest.approx(published["accuracy"][i], abs=0.0005)
        assert (accuracy.n, accuracy.clusters) == (180, 13)
        assert accuracy.interval is not None
        ends = (accuracy.interval.low, accuracy.interval.high)
        assert ends == pytest.approx(published["accuracy_ci95"][i], abs=0.012)
        for name, printed in (
            ("gate_accuracy_unparsed_rejected", "unparsed_as_rejection"),
            ("gate_accuracy_unparsed_wrong", "unparsed_as_gate_error"),
        ):
            estimate = one(made, name, **key)
            assert estimate.value == pytest.approx(published[printed][i], abs=0.0005)
            assert estimate.n == 210


def test_the_paper_s_judge_is_lenient_at_the_gate():
    made = found(real_bank(cut=[5, 6, 7]))
    for cut in ("5", "6", "7"):
        difference = one(made, "pass_rate_minus_gold", grader="judge", cut=cut)
        assert difference.interval is not None
        assert difference.interval.low > 0


def test_at_five_lines_the_paper_s_judge_lets_13_of_59_failures_through_and_fails_none():
    made = found(real_bank(cut=[5]))
    key = {"grader": "judge", "cut": "5"}
    accept, reject = (one(made, f"gate_false_{x}", **key) for x in ("accept", "reject"))
    assert said(accept) == (pytest.approx(13 / 59), 59)
    assert said(reject) == (0, 121)
    assert accept.interval is not None
    assert reject.interval is not None
    assert 0 < accept.interval.low < 13 / 59 < accept.interval.high < 0.5
    # No false fail in 121: an interval at the edge, which is no point.
    assert reject.interval.low == 0 < reject.interval.high
    assert reject.interval.method == "korn_graubard"


# --- laws ---------------------------------------------------------------------------------------


def simulated(n: int = 60, k: int = 5, seed: int = 3) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    gold = (rng.random((n, k)) < 0.5).astype(float)
    judge = np.where(rng.random((n, k)) < 0.2, 1 - gold, gold)
    judge[rng.random(n) < 0.1] = NAN
    return gold, judge, [f"q{i % 12}" for i in range(n)]


def values(made: Estimates) -> dict[Any, Any]:
    return {
        (e.statistic, *e.key): (
            e.value,
            e.n,
            e.clusters,
            (e.interval.low, e.interval.high) if e.interval else None,
        )
        for e in made.all
    }


def test_the_order_of_responses_does_not_show():
    gold, judge, questions = simulated()
    mixed = np.random.default_rng(0).permutation(len(gold))
    plain = found(verdicts({"gold": gold, "judge": judge}, questions=questions, cut=[2, 3]))
    turned = found(
        verdicts(
            {"gold": gold[mixed], "judge": judge[mixed]},
            questions=[questions[i] for i in mixed],
            cut=[2, 3],
        )
    )
    assert values(plain) == values(turned)


@pytest.mark.parametrize("clustered", [True, False])
def test_a_frequency_weight_of_two_is_the_row_twice(clustered):
    gold, judge, questions = simulated()
    times = [2 if i % 3 == 0 else 1 for i in range(len(gold))]
    twice = np.repeat(np.arange(len(gold)), times)
    weighed = found(
        verdicts(
            {"gold": gold, "judge": judge},
            clusters=questions if clustered else None,
            weights=times,
            weight_kind="frequency",
            cut=[3],
        )
    )
    repeated = found(
        verdicts(
            {"gold": gold[twice], "judge": judge[twice]},
            clusters=[questions[i] for i in twice] if clustered else None,
            cut=[3],
        )
    )
    assert values(weighed) == values(repeated)


def test_a_judge_that_is_gold_is_always_right_and_its_interval_has_width():
    gold, _, questions = simulated()
    made = found(verdicts({"gold": gold, "judge": gold}, clusters=questions, cut=[3]))
    accuracy = one(made, "gate_accuracy", grader="judge", cut="3")
    assert accuracy.value == 1
    assert accuracy.interval is not None
    assert accuracy.interval.low < 1 == accuracy.interval.high
    assert one(made, "pass_rate_minus_gold", grader="judge", cut="3").value == 0


def test_gate_errors_and_pass_rates_add_up_to_the_accuracy():
    gold, judge, questions = simulated()
    made = found(verdicts({"gold": gold, "judge": judge}, questions=questions, cut=[2, 3]))
    for cut in ("2", "3"):
        key = {"grader": "judge", "cut": cut}
        passes = one(made, "pass_rate", grader="gold", cut=cut)
        accept, reject = (one(made, f"gate_false_{x}", **key) for x in ("accept", "reject"))
        sizes = [float(e.n or 0) for e in (accept, reject, passes)]
        assert sizes[0] + sizes[1] == sizes[2] > 0
        fails, share = float(accept.value), float(passes.value)  # type: ignore[arg-type]
        through, lost = fails * (1 - share), float(reject.value) * share  # type: ignore[arg-type]
        assert through > 0
        assert lost > 0
        assert one(made, "gate_accuracy", **key).value == pytest.approx(1 - through - lost)
        assert one(made, "pass_rate_minus_gold", **key).value == pytest.approx(through - lost)


def test_the_bounds_hold_whatever_the_unread_would_have_been():
    gold, judge, questions = simulated()
    lost = np.isnan(judge).all(axis=1)
    made = found(verdicts({"gold": gold, "judge": judge}, questions=questions, cut=[3]))
    lower = one(made, "gate_accuracy_unparsed_wrong", grader="judge", cut="3").number
    assert lower is not None
    for guess in (0.0, 1.0):
        filled = np.where(lost[:, None], guess, judge)
        known = found(verdicts({"gold": gold, "judge": filled}, questions=questions, cut=[3]))
        accuracy = one(known, "gate_accuracy", grader="judge", cut="3").number
        assert accuracy is not None
        assert accuracy >= lower
        if not guess:  # a rejection is what totals of 0 are
            rejected = one(made, "gate_accuracy_unparsed_rejected", grader="judge", cut="3").value
            assert accuracy == rejected
