"""Element error, false accepts and false rejects: by hand, on the paper’s bank, and the laws."""

from __future__ import annotations

import csv
import json
from typing import Any

import numpy as np
import pytest

import voirdire as vd
from tests.checklists import SHARED, real_bank, verdicts
from voirdire.auditing import scenes
from voirdire.checks import errors_concentrate
from voirdire.document import Table, display
from voirdire.errors import UndefinedWarning
from voirdire.estimate import Estimate
from voirdire.inference import Settings, estimates
from voirdire.labels import Labels
from voirdire.scene import Estimates
from voirdire.stats import element_error
from voirdire.stats.element_error import (
    FAMILY,
    errors_by_question,
    false_accept_rate,
    false_reject_rate,
    worst_count,
    worst_lines,
)
from voirdire.wording import plain

FILE = SHARED / "reference" / "published.json"
CASES = SHARED / "cases" / "inputs"
NAN = float("nan")


def found(labels: Labels, **settings: Any) -> Estimates:
    scene, _ = scenes(labels)
    return Estimates(estimates(FAMILY.parts(scene), Settings(**settings)))


def one(made: Estimates, statistic: str, **key: str) -> Estimate:
    estimate = made.get(statistic, grader="judge", **key)
    assert estimate is not None, (statistic, key)
    return estimate


def said(estimate: Estimate) -> tuple[Any, ...]:
    """The value with the number behind it."""
    return (estimate.value, estimate.n)


# --- by hand ------------------------------------------------------------------------------------

GOLD = [[1, 0, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]]
JUDGE = [[1, 1, 0], [0, 1, 1], [NAN, NAN, NAN], [1, NAN, 1]]
# r0: false accept on e2. r1: false reject on e1, false accept on e3. r2 unread. r3: e2 missing.
# Pairs 3 + 3 + 2 = 8: absent r0 e2 e3, r1 e3 = 3; present r0 e1, r1 e1 e2, r3 e1 e3 = 5.


@pytest.fixture(scope="module")
def by_hand() -> Estimates:
    return found(verdicts({"gold": GOLD, "judge": JUDGE}))


def test_rates_by_hand(by_hand):
    for name, events, trials in (
        ("element_error", 3, 8),
        ("false_accept", 2, 3),
        ("false_reject", 1, 5),
    ):
        estimate = one(by_hand, name)
        assert said(estimate) == (pytest.approx(events / trials), trials)


def test_the_upper_bound_adds_the_unread_and_not_the_missing(by_hand):
    bound = one(by_hand, "element_error_unparsed_wrong")
    assert said(bound) == (pytest.approx((3 + 3) / (8 + 3)), 11)


def test_a_line_and_its_position_are_the_same_where_one_checklist_serves_all(by_hand):
    # e2: r0 false accept, r1 right; r2 unread and r3 missing.
    for line in ("e2", "position:2"):
        assert one(by_hand, "element_error", line=line).value == 0.5
        assert one(by_hand, "false_accept", line=line).value == 1
        assert one(by_hand, "false_accept", line=line).n == 1
        assert one(by_hand, "element_error", line=line).clusters == 2
    assert one(by_hand, "element_error", line="e1").clusters == 3


def test_a_rate_of_nothing_is_undefined_with_the_reason():
    made = found(verdicts({"gold": [[1, 1]] * 4, "judge": [[1, 0]] * 4}))
    accept = one(made, "false_accept")
    assert accept.number is None
    assert "no absent element" in accept.reason
    assert one(made, "false_reject", line="e2").value == 1


def test_without_gold_there_are_no_rows():
    assert found(verdicts({"a": JUDGE, "b": JUDGE})).all == ()


def test_each_judge_has_its_own_rows():
    labels = verdicts({"gold": GOLD, "a": GOLD, "judge": JUDGE})
    made = found(labels)
    assert one(made, "element_error").value == pytest.approx(3 / 8)
    perfect = made.get("element_error", grader="a")
    assert perfect is not None
    assert perfect.value == 0


def halo() -> tuple[np.ndarray, np.ndarray]:
    """FC-25, gold and judge: the same verdict on all four lines of a response, whatever they ask."""
    if not CASES.is_dir():
        pytest.skip("the shared cases do not stand beside this repository")

    def matrix(name: str) -> np.ndarray:
        with (CASES / name).open(encoding="utf-8") as file:
            return np.array([[float(v) for v in r[1:]] for r in list(csv.reader(file))[1:]])

    one_file, other = matrix("checklist-halo.csv"), matrix("checklist-halo-gold.csv")
    return (other, one_file) if (other == other[:, :1]).sum() < 32 else (one_file, other)


def test_the_halo_case():
    gold, judge = halo()
    made = found(verdicts({"gold": gold, "judge": judge}))
    error = one(made, "element_error").number
    assert error is not None
    assert 1 - error == pytest.approx(0.688, abs=0.0005)
    for line, agreement, accepts, rejects in (
        ("e1", 1.0, (0, 4), (0, 4)),
        ("e2", 0.5, (2, 4), (2, 4)),
        ("e3", 0.625, (2, 5), (1, 3)),
        ("e4", 0.625, (2, 5), (1, 3)),
    ):
        value = one(made, "element_error", line=line).number
        assert value is not None
        assert 1 - value == pytest.approx(agreement)
        for name, (events, trials) in (("false_accept", accepts), ("false_reject", rejects)):
            estimate = one(made, name, line=line)
            assert said(estimate) == (pytest.approx(events / trials), trials)


# --- the paper’s bank ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    if not FILE.is_file():
        pytest.skip("the shared figures of the paper do not stand beside this repository")
    errors: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["three_ways"][
        "judge_error"
    ]
    return errors


@pytest.fixture(scope="module")
def drawn() -> Estimates:
    return found(real_bank(), interval="bootstrap")


def test_the_paper_s_error_rates(published, drawn):
    for name, value, ends in (
        ("element_error", "per_element_pct", "ci95"),
        ("false_accept", "false_accept_pct", "false_accept_ci95"),
        ("false_reject", "false_reject_pct", "false_reject_ci95"),
    ):
        estimate = one(drawn, name)
        printed = published[value]
        digits = 2 if name == "element_error" else 1
        assert round(100 * (estimate.number or 0), digits) == printed
        assert estimate.interval is not None
        found_ends = (100 * estimate.interval.low, 100 * estimate.interval.high)
        assert found_ends == pytest.approx(published[ends], abs=1.2)
        assert estimate.clusters == 13


def test_the_paper_s_upper_bound_over_all_210(published, drawn):
    bound = one(drawn, "element_error_unparsed_wrong")
    assert bound.value == pytest.approx((85 + 300) / 2100)
    assert round(100 * (bound.number or 0), 1) == published["unparsed_as_error_per_element_pct"]


def test_the_paper_s_errors_by_position(published, drawn):
    for j, printed in enumerate(published["by_position"], 1):
        assert one(drawn, "element_error", line=f"position:{j}").value == pytest.approx(
            printed, abs=0.0005
        )
    first = one(drawn, "element_error", line="position:1")
    assert first.interval is not None
    ends = (first.interval.low, first.interval.high)
    assert ends == pytest.approx(published["position1_ci95"], abs=0.012)


def test_how_the_paper_s_errors_concentrate(published, drawn):
    scene, _ = scenes(real_bank())
    lines = worst_lines(scene, "judge")
    assert len(lines) == published["lines"]
    assert sum(x.errors for x in lines) == published["errors"]
    assert sum(x.errors > 0 for x in lines) == published["lines_with_errors"]
    assert sum(x.errors for x in lines[:5]) == published["worst5_lines_errors"]
    keys = [(-x.errors, x.line) for x in lines]
    assert keys == sorted(keys)
    questions = errors_by_question(scene, "judge")
    assert sum(q.errors for q in questions[:3]) == published["errors_in_worst_3_questions"]
    assert sum(q.verdicts for q in questions) == 1800
    first = {x.question for x in lines if x.position == 1 and x.errors}
    assert len(first) == published["position1_questions"]
    share = one(drawn, "worst_lines_share")
    assert share.value == sum(x.errors for x in lines[:6]) / 85  # 5 % of 130 lines, rounded down
    assert share.n == 85


def test_one_false_reject_in_992_is_not_nothing():
    reject = one(found(real_bank()), "false_reject")
    assert said(reject) == (pytest.approx(1 / 992), 992)
    assert reject.interval is not None
    assert reject.interval.method == "korn_graubard"
    # Wider than the exact interval of 992 independent verdicts, which ends at 0.56 %.
    assert reject.interval.high > vd.stats.wilson_interval(1, 992)[1] > 0.003


def test_the_lines_of_a_question_have_counts_and_no_interval(drawn):
    scene, _ = scenes(real_bank())
    for line in worst_lines(scene, "judge", 3):
        accept = one(drawn, "false_accept", line=line.line)
        assert accept.value == line.false_accepts / line.gold_absent
        assert (accept.n, accept.clusters) == (line.gold_absent, 1)
        assert accept.interval is None
        assert accept.no_interval == "fewer than 3 clusters"


# --- lines, positions and their parts -----------------------------------------------------------


def simulated(n: int = 90, k: int = 6, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    gold = (rng.random((n, k)) < 0.5).astype(float)
    judge = np.where(rng.random((n, k)) < np.linspace(0.05, 0.4, k), 1 - gold, gold)
    judge[rng.random((n, k)) < 0.05] = NAN
    judge[rng.random(n) < 0.1] = NAN
    return gold, judge


def values(made: Estimates) -> dict[Any, Any]:
    return {
        (e.statistic, *e.key): (
            e.value,
            e.n,
            e.clusters,
            (e.interval.low, e.interval.high, e.interval.method) if e.interval else e.no_interval,
        )
        for e in made.all
    }


@pytest.mark.parametrize("own", [True, False])
def test_positions_in_one_tally_are_those_of_a_tally_each(own, monkeypatch):
    gold, judge = simulated()
    questions = [f"q{i % 6}" for i in range(len(gold))]
    groups: dict[str, Any] = {"questions": questions} if own else {"clusters": questions}
    together = values(found(verdicts({"gold": gold, "judge": judge}, **groups)))
    monkeypatch.setattr(element_error, "MOST_CELLS", 0)
    apart = values(found(verdicts({"gold": gold, "judge": judge}, **groups)))
    assert set(together) == set(apart)
    for key, (value, n, clusters, ends) in together.items():
        assert apart[key][:3] == (value, n, clusters)
        if isinstance(ends, str):
            assert apart[key][3] == ends
        else:
            assert apart[key][3][2] == ends[2]
            assert apart[key][3][:2] == pytest.approx(ends[:2], rel=1e-9)


def test_the_lines_of_own_checklists_have_intervals_where_their_clusters_allow():
    gold, judge = simulated()
    questions = [f"q{i % 3}" for i in range(len(gold))]
    clusters = [f"c{i // 3 % 10 if i % 3 else i // 30}" for i in range(len(gold))]
    made = found(verdicts({"gold": gold, "judge": judge}, questions=questions, clusters=clusters))
    at = [i for i, q in enumerate(questions) if q == "q1" and not np.isnan(judge[i, 0])]
    line = one(made, "element_error", line="q1/e1")
    assert line.value == pytest.approx(np.mean([gold[i, 0] != judge[i, 0] for i in at]))
    assert (line.n, line.clusters) == (len(at), len({clusters[i] for i in at}))
    assert line.interval is not None
    # The same line as the only one of a file of its own.
    alone = found(
        verdicts(
            {"gold": gold[at][:, :1], "judge": judge[at][:, :1]},
            clusters=[clusters[i] for i in at],
        )
    )
    assert values(alone)["element_error", "judge", *[""] * 3, "e1", "", ""][3] == (
        line.interval.low,
        line.interval.high,
        line.interval.method,
    )


def test_positions_beyond_a_short_checklist_count_only_the_long_ones():
    gold = [[1, 0, NAN], [1, 1, NAN], [0, 0, 1], [1, 0, 0]]
    judge = [[1, 1, NAN], [1, 1, NAN], [0, 0, 1], [1, 0, 1]]
    labels = verdicts(
        {"gold": gold, "judge": judge}, questions=["p", "p", "q", "q"], lengths={"p": 2, "q": 3}
    )
    made = found(labels)
    third = one(made, "element_error", line="position:3")
    assert (*said(third), third.clusters) == (0.5, 2, 1)
    assert one(made, "element_error", line="position:1").clusters == 2
    assert made.get("element_error", grader="judge", line="p/e3") is None
    scene, _ = scenes(labels)
    assert [(x.line, x.question, x.position) for x in worst_lines(scene, "judge", 2)] == [
        ("p/e2", "p", 2),
        ("q/e3", "q", 3),
    ]


def test_of_very_many_lines_the_worst_have_rows_and_the_report_says_so(monkeypatch):
    monkeypatch.setattr(element_error, "MOST_LINES", 5)
    labels = real_bank()
    made = found(labels)
    scene, _ = scenes(labels)
    lines = {e.key.line for e in made.of("element_error") if "/" in e.key.line}
    assert lines == {x.line for x in worst_lines(scene, "judge", 5)}
    assert FAMILY.blocks is not None
    tables = [b for b in FAMILY.blocks(scene, made) if isinstance(b, Table)]
    worst = next(t for t in tables if t.title == "The worst lines")
    assert "Of the 130 lines only the 5 with the most errors" in str(worst.note)


def test_the_worst_lines_are_one_in_twenty_and_at_least_one():
    assert [worst_count(n) for n in (1, 19, 20, 39, 40, 130, 140)] == [1, 1, 1, 1, 2, 6, 7]
    for n in range(1, 2000):
        assert worst_count(n) == errors_concentrate.worst_count(n)


def test_without_an_error_there_is_no_worst_line():
    made = found(verdicts({"gold": GOLD, "judge": GOLD}))
    share = one(made, "worst_lines_share")
    assert share.number is None
    assert "no error" in share.reason


# --- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [True, False])
def test_the_order_of_responses_does_not_show(own):
    gold, judge = simulated()
    questions = [f"q{i % 6}" for i in range(len(gold))]
    mixed = np.random.default_rng(0).permutation(len(gold))
    name = "questions" if own else "clusters"
    groups: dict[str, Any] = {name: questions}
    mixed_groups: dict[str, Any] = {name: [questions[i] for i in mixed]}
    plain = found(verdicts({"gold": gold, "judge": judge}, **groups))
    turned = found(verdicts({"gold": gold[mixed], "judge": judge[mixed]}, **mixed_groups))
    assert values(plain) == values(turned)


def grouped(name: str, groups: list[str]) -> dict[str, Any]:
    return {name: groups} if name else {}


@pytest.mark.parametrize("groups", ["questions", "clusters", ""])
def test_a_frequency_weight_of_two_is_the_row_twice(groups):
    gold, judge = simulated()
    questions = [f"q{i % 6}" for i in range(len(gold))]
    times = [2 if i % 3 == 0 else 1 for i in range(len(gold))]
    twice = np.repeat(np.arange(len(gold)), times)
    weighed = found(
        verdicts(
            {"gold": gold, "judge": judge},
            weights=times,
            weight_kind="frequency",
            **grouped(groups, questions),
        )
    )
    repeated = found(
        verdicts(
            {"gold": gold[twice], "judge": judge[twice]},
            **grouped(groups, [questions[i] for i in twice]),
        )
    )
    assert values(weighed) == values(repeated)


def test_design_weights_weigh_the_rates_and_not_the_counts():
    gold, judge = [[0], [0], [1], [1]], [[1], [0], [1], [1]]
    made = found(verdicts({"gold": gold, "judge": judge}, weights=[3, 1, 1, 1]))
    accept = one(made, "false_accept")
    assert said(accept) == (pytest.approx(3 / 4), 2)
    own = found(verdicts({"gold": gold, "judge": judge}, weights=[3, 1, 1, 1], questions=["q"] * 4))
    line = one(own, "false_accept", line="q/e1")
    assert said(line) == (pytest.approx(3 / 4), 2)
    assert one(own, "worst_lines_share").n == 1


def test_a_judge_that_is_gold_never_errs_and_its_interval_has_width():
    gold, _ = simulated()
    made = found(verdicts({"gold": gold, "judge": gold}))
    for name in ("element_error", "false_accept", "false_reject"):
        estimate = one(made, name)
        assert estimate.value == 0
        assert estimate.interval is not None
        assert 0 == estimate.interval.low < estimate.interval.high


def test_swapping_yes_and_no_swaps_the_two_errors():
    gold, judge = simulated()
    plain = found(verdicts({"gold": gold, "judge": judge}))
    turned = found(verdicts({"gold": 1 - gold, "judge": 1 - judge}))
    for line in ("", "e3", "position:3"):
        a, b = (one(plain, "false_accept", line=line), one(turned, "false_reject", line=line))
        assert (a.value, a.n, a.interval) == (b.value, b.n, b.interval)


def test_error_is_the_two_rates_weighted_by_their_elements():
    made = found(real_bank())
    error, accept, reject = (
        one(made, n) for n in ("element_error", "false_accept", "false_reject")
    )
    assert accept.n is not None
    assert reject.n is not None
    together = (accept.number or 0) * accept.n + (reject.number or 0) * reject.n
    assert error.value == pytest.approx(together / (accept.n + reject.n))


# --- plain functions ----------------------------------------------------------------------------


def test_plain_functions_are_the_audit_s_on_the_real_bank(drawn):
    scene, _ = scenes(real_bank())
    assert scene.bank is not None
    gold, judge = (
        np.where(v < 0, np.nan, v.astype(float)) for v in map(scene.bank.of, ("gold", "judge"))
    )
    assert vd.stats.false_accept_rate(gold, judge) == one(drawn, "false_accept").value
    assert vd.stats.false_reject_rate(gold, judge) == one(drawn, "false_reject").value


def test_plain_functions_take_any_shape_and_leave_missing_pairs_out():
    assert false_accept_rate([[0, None], [0, 1]], [[1, 1], [0, 1]]) == 0.5
    assert false_reject_rate([True, True, True], [False, NAN, True]) == 0.5


def test_plain_functions_warn_where_they_cannot_say():
    with pytest.warns(UndefinedWarning, match="no absent element"):
        assert np.isnan(false_accept_rate([1, 1], [0, 1]))
    with pytest.warns(UndefinedWarning, match="no present element"):
        assert np.isnan(false_reject_rate([0, NAN], [0, 1]))


def test_plain_functions_refuse_other_values_and_shapes():
    with pytest.raises(ValueError, match="other than 0, 1"):
        false_accept_rate([0, 2], [0, 1])
    with pytest.raises(ValueError, match="shape"):
        false_reject_rate([0, 1], [[0, 1]])


# --- the report ---------------------------------------------------------------------------------


def tables(labels: Labels, **settings: Any) -> dict[str, Table]:
    scene, _ = scenes(labels)
    made = Estimates(estimates(FAMILY.parts(scene), Settings(**settings)))
    assert FAMILY.blocks is not None
    return {b.title: b for b in FAMILY.blocks(scene, made) if isinstance(b, Table)}


def columns(table: Table) -> list[dict[str, str]]:
    """Each row by the titles of its columns."""
    titles = [c.title if isinstance(c.title, str) else c.title.text for c in table.columns]
    return [dict(zip(titles, map(display, row), strict=True)) for row in table.rows]


def test_where_one_checklist_serves_all_each_line_has_its_counts_and_its_agreement():
    # e1: gold 1 1 0 1, judge 1 0 – 1; e2: gold 0 1 0 0, judge 1 1 – –; e3: gold 0 0 1 1, judge 0 1 – 1.
    made = tables(verdicts({"gold": GOLD, "judge": JUDGE}))
    rows = columns(made["Errors by line"])
    assert [
        (r["line"], r["accepted of absent"], r["rejected of present"], r["agreement"]) for r in rows
    ] == [
        ("e1", "0 of 0", "1 of 3", "66.7 %"),
        ("e2", "1 of 1", "0 of 1", "50.0 %"),
        ("e3", "1 of 2", "0 of 1", "66.7 %"),
    ]
    (whole,) = columns(made["Errors of verdicts against gold"])
    assert (whole["element error"], whole["agreement"]) == ("37.5 %", "62.5 %")


def test_the_interval_of_the_agreement_is_that_of_the_error_turned_round():
    gold = np.tile([[1, 0, 1, 0]], (12, 1))
    judge = gold.copy()
    judge[np.arange(6), np.arange(6) % 4] = 1 - judge[np.arange(6), np.arange(6) % 4]
    table = tables(verdicts({"gold": gold, "judge": judge}))["Errors of verdicts against gold"]
    error, agreement = table.rows[0][1:3]
    assert error.low is not None
    assert error.high is not None
    assert (agreement.low, agreement.high) == (1 - error.high, 1 - error.low)


def test_the_halo_lines_have_counts_of_false_accepts():
    gold, judge = halo()
    rows = columns(tables(verdicts({"gold": gold, "judge": judge}))["Errors by line"])
    assert [r["accepted of absent"] for r in rows] == ["0 of 4", "2 of 4", "2 of 5", "2 of 5"]
    assert [r["rejected of present"] for r in rows] == ["0 of 4", "2 of 4", "1 of 3", "1 of 3"]
    assert [r["agreement"] for r in rows] == ["100.0 %", "50.0 %", "62.5 %", "62.5 %"]


def test_the_questions_with_the_most_errors_are_listed():
    rows = columns(tables(real_bank())["Questions with the most errors"])
    assert len(rows) == 5
    assert [r["errors"] for r in rows] == sorted((r["errors"] for r in rows), key=int, reverse=True)
    assert rows[0] == {"judge": "judge", "question": "11", "errors": "18", "verdicts": "140"}
    assert "Questions with the most errors" not in tables(verdicts({"gold": GOLD, "judge": JUDGE}))


def test_under_the_bootstrap_a_rare_event_also_has_the_interval_for_it():
    labels = real_bank()
    drawn, auto = found(labels, interval="bootstrap"), found(labels)
    reject, plain_reject = one(drawn, "false_reject"), one(auto, "false_reject")
    assert reject.interval is not None
    assert reject.interval.method == "percentile"  # the row is the paper's
    assert reject.interval.high == pytest.approx(0.003, abs=5e-4)
    # One event in 992: the interval that stands by default, to the bit.
    assert reject.edge == plain_reject.interval
    assert plain_reject.edge is None
    assert one(drawn, "false_accept").edge is None
    made = tables(labels, interval="bootstrap")
    note = plain(made["Errors of verdicts against gold"].note)
    assert "false rejects of judge, 0.1 %, have Korn–Graubard [0.0, 0.6]" in note
    table = made["Errors by position"]
    last = one(drawn, "false_reject", line="position:10")
    assert last.edge is not None
    assert table.rows[9][4].high == last.edge.high
    assert "rare events (Korn–Graubard)" in plain(table.note)
    assert "rare" not in plain(tables(labels)["Errors of verdicts against gold"].note)
