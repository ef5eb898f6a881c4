"""Comparing two graders: hand-worked numbers, laws, messages, and real files."""

from __future__ import annotations

import csv
import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest

import voirdire as vd
from benchmarks import differences as simulated
from tests.checklists import REAL_BANK, SHARED
from tests.conftest import ROOT, Run
from voirdire import comparing, intervals
from voirdire.cli.main import main
from voirdire.comparing import Comparison, published
from voirdire.comparing.coverage import measured, table
from voirdire.document import Figure
from voirdire.errors import InputError, UsageError, VoirdireError
from voirdire.figures import differences
from voirdire.finding import State
from voirdire.formats.text import FORMAT as TEXT
from voirdire.stats import comparison
from voirdire.wording import plain

KEY = ("statistic", "grader", "other", "class", "to_class", "line", "cut", "slice")
XSTEST = SHARED / "data" / "xstest"
JAILBREAK = SHARED / "data" / "jailbreakbench_judge_comparison" / "judge_comparison_labels.csv"
STABILITY = SHARED / "data" / "safety_refusal_stability"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not here")


def frame(
    labels: str | Sequence[str | None],
    grader: str = "g",
    *,
    clusters: Sequence[str] | None = None,
    start: int = 0,
    gold: str | Sequence[str] | None = None,
) -> pl.DataFrame:
    """Labels of one grader, a response each, with gold beside it where it is given."""
    rows: list[dict[str, Any]] = []
    for who, given in ((grader, labels), ("gold", gold)):
        for i, label in enumerate(given or ()):
            row: dict[str, Any] = {
                "response": f"r{start + i:03}",
                "grader": who,
                "label": label or None,
                "outcome": "label" if label else "unparsed",
            }
            if clusters is not None:
                row["cluster"] = clusters[i]
            rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def compared(old: Any, new: Any = None, **options: Any) -> Comparison:
    return vd.compare(old, new, layout="long", **options)


def rows(made: Comparison, statistic: str, **key: str) -> list[dict[str, Any]]:
    found = made.results.filter(pl.col("statistic") == statistic)
    for name, value in key.items():
        found = found.filter(pl.col(name.rstrip("_")) == value)
    return found.rows(named=True)


def row(made: Comparison, statistic: str, **key: str) -> dict[str, Any]:
    (one,) = rows(made, statistic, **key)
    return one


def said(made: Comparison) -> str:
    return "\n".join(plain(f.sentence) for f in made.findings)


def two_by_two(both: int, gained: int, lost: int, neither: int) -> tuple[str, str]:
    """The labels of old and new in which so many responses are in each cell of class b."""
    old = "b" * both + "a" * gained + "b" * lost + "a" * neither
    new = "b" * both + "b" * gained + "a" * lost + "a" * neither
    return old, new


# --- hand-worked numbers ------------------------------------------------------------------------


def test_a_paired_table_by_hand() -> None:
    old, new = two_by_two(40, 12, 4, 44)
    made = compared(frame(old, "one"), frame(new, "two"), scale="a,b")
    found = row(made, "label_share_minus_other", class_="b")
    assert (found["grader"], found["other"], found["n"], found["clusters"]) == (
        "two",
        "one",
        100,
        100,
    )
    assert found["value"] == pytest.approx(0.08)
    # A difference of paired shares is a mean of +1, −1 and 0: its jackknife variance is s²/n.
    assert found["method"] == "jackknife_t"
    se = math.sqrt((16 - 100 * 0.08**2) / 99 / 100)
    half = intervals.t_quantile(0.975, 99) * se / (1 - 0.08**2)
    low, high = math.tanh(math.atanh(0.08) - half), math.tanh(math.atanh(0.08) + half)
    assert (found["low"], found["high"]) == pytest.approx((low, high), abs=2e-4)
    assert row(made, "changed")["value"] == pytest.approx(0.16)
    assert row(made, "label_count_minus_other", class_="b")["value"] == 8
    assert row(made, "moved", class_="a", to_class="b")["value"] == 12
    assert row(made, "moved", class_="b", to_class="a")["value"] == 4
    assert row(made, "kept", class_="b")["value"] == 40
    p = vd.stats.mcnemar([[44, 12], [4, 40]], "mid-p")
    assert row(made, "difference_p", line="label_share_minus_other")["value"] == pytest.approx(p)


def test_clusters_by_brute_force() -> None:
    rng = np.random.default_rng(4)
    clusters = np.repeat(np.arange(12), 8)
    old = rng.choice(list("abc"), 96)
    new = np.where(rng.random(96) < 0.4, rng.choice(list("abc"), 96), old)
    names = [f"c{c}" for c in clusters]
    made = compared(frame(list(old), "o", clusters=names), frame(list(new), "n", clusters=names))
    move = (new == "a").astype(float) - (old == "a")
    z = [np.arctanh(move[clusters != c].mean()) for c in range(12)]
    half = intervals.t_quantile(0.975, 11) * math.sqrt(11 / 12 * ((z - np.mean(z)) ** 2).sum())
    centre = np.arctanh(move.mean())
    found = row(made, "label_share_minus_other", class_="a")
    assert found["value"] == pytest.approx(move.mean())
    assert found["clusters"] == 12
    if found["method"] == "jackknife_t":
        assert (found["low"], found["high"]) == pytest.approx(
            (np.tanh(centre - half), np.tanh(centre + half))
        )
    else:  # few clusters with a change: the interval is put together, and never narrower than nothing
        assert found["low"] < found["value"] < found["high"]


def test_against_gold_by_hand() -> None:
    gold = "aaaabbbbbb"
    old = "aabbbbbaaa"  # right: 2 + 3; false accepts of b: 2 of 4, false rejects 3 of 6
    new = "aaabbbbbba"  # right: 3 + 5; false accepts 1 of 4, false rejects 1 of 6
    made = compared(frame(old, "o", gold=gold), frame(new, "n"), scale="a,b")
    assert row(made, "agreement_minus_other")["value"] == pytest.approx(0.3)
    assert row(made, "agreement", grader="o")["value"] == pytest.approx(0.5)
    assert row(made, "rate_false_accept_minus_other", class_="b")["value"] == pytest.approx(-0.25)
    assert row(made, "rate_false_accept_minus_other", class_="b")["n"] == 4
    assert row(made, "rate_false_reject_minus_other", class_="b")["value"] == pytest.approx(-1 / 3)
    kappas = [vd.stats.cohen_kappa(list(x), list(gold)) for x in (new, old)]
    assert row(made, "cohen_kappa_minus_other")["value"] == pytest.approx(kappas[0] - kappas[1])
    assert row(made, "cohen_kappa", grader="n")["value"] == pytest.approx(kappas[0])


def test_sign_flips_are_mcnemar_for_single_responses_and_know_the_size_of_moves() -> None:
    for gained, lost in ((5, 1), (0, 6), (3, 3), (30, 12)):
        p = comparison.sign_flip_p(np.array([1, -1]), np.array([gained, lost]))
        assert p == pytest.approx(vd.stats.mcnemar([[0, gained], [lost, 0]], "mid-p"))
    # Moves of 3, 1 and 1: of the eight signs, ±5 are two; 5 itself counts half.
    assert comparison.sign_flip_p(np.array([3, 1]), np.array([1, 2])) == pytest.approx(1 / 8)
    # 3, −1, −1: |sum| 1 is seen; 5 and 3 (four of them) are farther; ±1 twice counts half.
    assert comparison.sign_flip_p(np.array([3, -1]), np.array([1, 2])) == pytest.approx(7 / 8)
    assert comparison.sign_flip_p(np.array([0]), np.array([7])) == 1
    many = comparison.sign_flip_p(np.array([1, -1]), np.array([500, 400]))
    assert many == pytest.approx(2 * 0.5 * math.erfc(100 / 30 / math.sqrt(2)))


def test_holm_steps_down_and_never_goes_back() -> None:
    assert comparison.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert comparison.holm([0.9, 0.8]) == [1.0, 1.0]
    assert comparison.holm([]) == []


def test_holm_counts_neither_a_rate_of_one_class_nor_both_of_two_classes() -> None:
    made = compared(frame("aabbab", "o"), frame("abbbbb", "n"), scale="a,b")
    assert len(rows(made, "difference_p", line="label_share_minus_other")) == 1
    assert not rows(made, "difference_p", line="rate_minus_other")
    made = compared(frame("aabbac", "o"), frame("abbbbc", "n"), scale="a,b,c")
    held = {
        r["class"] for r in rows(made, "difference_p_holm") if r["line"] != "read_share_minus_other"
    }
    assert held == {"a", "b", "c", "non_a"}


def test_mover_by_hand() -> None:
    low, high = intervals.mover((0.5, 0.4, 0.65), (0.3, 0.2, 0.45))
    assert low == pytest.approx(0.2 - math.hypot(0.1, 0.15))
    assert high == pytest.approx(0.2 + math.hypot(0.15, 0.1))


def test_calls_against_noise_by_hand() -> None:
    # r0: old a a, new a b; r1: old a b, new b b.
    def votes(grader: str, *given: str) -> pl.DataFrame:
        return pl.DataFrame(
            [
                {"response": f"r{i}", "grader": grader, "vote": str(v), "label": x}
                for i, labels in enumerate(given)
                for v, x in enumerate(labels)
            ]
        )

    made = compared(votes("o", "aa", "ab"), votes("n", "ab", "bb"))
    # Between: r0 ½, r1 ½. Within, unbiased: r0 old 0, new 1; r1 old 1, new 0: ½ each.
    assert row(made, "changed_calls")["value"] == pytest.approx(0.5)
    assert row(made, "call_noise")["value"] == pytest.approx(0.5)
    assert row(made, "changed_beyond_noise")["value"] == pytest.approx(0.0)
    (noise,) = [f for f in made.findings if f.code == "change_against_noise"]
    assert noise.state is State.CANNOT_TELL
    assert "not a change of the grader" in plain(noise.sentence)


def test_a_change_beyond_the_noise_is_found() -> None:
    def votes(grader: str, label: str) -> pl.DataFrame:
        return pl.DataFrame(
            [
                {
                    "response": f"r{i:02}",
                    "grader": grader,
                    "vote": str(v),
                    "label": "c" if (i, v) == (0, 0) else label if i % 3 else "a",
                }
                for i in range(40)
                for v in range(3)
            ]
        )

    made = compared(votes("o", "a"), votes("n", "b"))
    (noise,) = [f for f in made.findings if f.code == "change_against_noise"]
    assert noise.state is State.FOUND
    found = row(made, "changed_beyond_noise")
    assert 0 < found["low"] < found["value"] < found["high"] < 1


# --- checklists ---------------------------------------------------------------------------------


def checklist(name: str, matrix: Any, lines: str = "e", **more: Any) -> pl.DataFrame:
    matrix = np.asarray(matrix)
    held: dict[str, Any] = {"response": [f"r{i:02}" for i in range(len(matrix))]}
    for who, of in ((name, matrix), *more.items()):
        of = np.asarray(of)
        held |= {f"{who}_{lines}{j + 1}": of[:, j].tolist() for j in range(of.shape[1])}
    return pl.DataFrame(held)


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Any]:
    rng = np.random.default_rng(8)
    gold = (rng.random((40, 1)) > rng.random((40, 4)) * 0.9).astype(int)
    old = np.where(rng.random((40, 4)) < 0.1, 1 - gold, gold)
    new = np.where(rng.random((40, 4)) < 0.2, 1 - gold, gold)
    return {"gold": gold, "old": old, "new": new}


def test_a_checklist_by_hand(verdicts: dict[str, Any]) -> None:
    gold, old, new = (verdicts[x] for x in ("gold", "old", "new"))
    made = vd.compare(
        checklist("judge", old, gold=gold), checklist("judge", new), layout="checklist", cut=[2, 4]
    )
    assert (made.old, made.new) == ("judge (old)", "judge (new)")
    errors = (new != gold).mean() - (old != gold).mean()
    assert row(made, "element_error_minus_other")["value"] == pytest.approx(errors)
    assert row(made, "changed")["value"] == pytest.approx((new != old).mean())
    accepts = new[gold == 0].mean() - old[gold == 0].mean()
    assert row(made, "false_accept_minus_other")["value"] == pytest.approx(accepts)
    for cut in (2, 4):
        passed = [(x.sum(1) >= cut) for x in (new, old, gold)]
        assert row(made, "pass_rate_minus_other", cut=str(cut))["value"] == pytest.approx(
            passed[0].mean() - passed[1].mean()
        )
        right = (passed[0] == passed[2]).mean() - (passed[1] == passed[2]).mean()
        assert row(made, "gate_accuracy_minus_other", cut=str(cut))["value"] == pytest.approx(right)
        assert row(made, "gate_changed", cut=str(cut))["value"] == pytest.approx(
            (passed[0] != passed[1]).mean()
        )
    kr20 = [vd.stats.kr20(x) for x in (new, old, gold)]
    found = row(made, "kr20_minus_other")
    assert found["value"] == pytest.approx(kr20[0] - kr20[1])
    assert found["describes"] == "bank"
    # A coefficient of the bank never stands without its value on gold.
    assert row(made, "kr20", grader="gold")["value"] == pytest.approx(kr20[2])
    assert "no measure of a judge" in TEXT.render(made.document).decode()
    assert len(made.changes) == (new != old).sum()
    assert "reliab" not in TEXT.render(made.document).decode().lower()


def test_checklists_with_other_lines_are_compared_on_the_common_ones(
    verdicts: dict[str, Any],
) -> None:
    old, new = verdicts["old"], verdicts["new"]
    made = vd.compare(checklist("a", old), checklist("b", new[:, :3]), layout="checklist")
    assert row(made, "changed")["value"] == pytest.approx((new[:, :3] != old[:, :3]).mean())
    assert any("1 line stands only with" in plain(n) for n in made.notices)


def test_checklists_without_a_common_line_are_refused(verdicts: dict[str, Any]) -> None:
    old = checklist("a", verdicts["old"])
    new = pl.DataFrame(
        [
            {"response": f"r{i:02}", "grader": "b", "line": f"x{j}", "label": "1"}
            for i in range(40)
            for j in range(2)
        ]
    )
    long = old.unpivot(index="response", variable_name="line", value_name="label").with_columns(
        pl.lit("a").alias("grader"), pl.col("label").cast(pl.String)
    )
    with pytest.raises(InputError, match="no line in common"):
        vd.compare(long, new, layout="checklist")


# --- laws ---------------------------------------------------------------------------------------


def test_swapping_old_and_new_turns_every_sign() -> None:
    old, new = two_by_two(40, 14, 3, 20)
    gold = new[::-1]
    one = compared(frame(old, "o", gold=gold), frame(new, "n"), scale="a,b")
    other = compared(frame(new, "n", gold=gold), frame(old, "o"), scale="a,b")
    there = 0
    for name in one.results["statistic"].unique():
        if not name.endswith("_minus_other"):
            continue
        for a in rows(one, name):
            b = row(other, name, **{k + "_": a[k] for k in ("class", "cut", "line")})
            assert a["value"] == pytest.approx(-b["value"])
            if a["low"] is not None:
                assert (a["low"], a["high"]) == pytest.approx((-b["high"], -b["low"]))
            there += 1
    assert there >= 7
    assert row(one, "changed")["value"] == row(other, "changed")["value"]


@pytest.mark.parametrize("interval", ["auto", "bootstrap"])
def test_a_file_with_itself_changed_nothing_and_still_has_width(interval: str) -> None:
    given = frame("ab" * 20 + "c", "g", gold="ab" * 20 + "a")
    made = compared(given, given, interval=interval, replicates=200)
    assert made.changes.is_empty()
    for found in rows(made, "label_share_minus_other"):
        assert found["value"] == 0
        assert found["low"] < 0 < found["high"]
    (first,) = [f for f in made.findings if f.code == "labels_changed"]
    assert first.state is State.CLEAR
    assert "up to" in plain(first.sentence)
    assert row(made, "cohen_kappa_minus_other")["value"] == 0
    assert row(made, "difference_p_holm", line="agreement_minus_other")["value"] == 1


def test_the_order_of_rows_does_not_show(tmp_path: Path) -> None:
    old, new = two_by_two(20, 9, 5, 11)
    one, two = frame(old, "o", gold=new), frame(new, "n")
    made = compared(one, two)
    turned = compared(one.sample(fraction=1, shuffle=True, seed=1), two.reverse())
    assert made.results.equals(turned.results)
    assert made.changes.equals(turned.changes)
    for suffix in ("json", "csv", "txt", "md"):
        made.write(tmp_path / f"a.{suffix}")
        compared(one, two).write(tmp_path / f"b.{suffix}")
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_frequency_weights_are_rows_written_out() -> None:
    old, new = two_by_two(4, 3, 1, 4)
    times = [1, 2, 3, 1, 2, 1, 4, 1, 2, 2, 1, 3]

    def weighted(labels: str, name: str) -> pl.DataFrame:
        return frame(labels, name).with_columns(pl.Series("weight", times))

    def written(labels: str, name: str) -> pl.DataFrame:
        return frame("".join(x * n for x, n in zip(labels, times, strict=True)), name)

    one = compared(weighted(old, "o"), weighted(new, "n"), weight="weight", weight_kind="frequency")
    two = compared(written(old, "o"), written(new, "n"))
    for name in ("label_share_minus_other", "changed"):
        for a, b in zip(rows(one, name), rows(two, name), strict=True):
            assert (a["value"], a["low"], a["high"]) == pytest.approx(
                (b["value"], b["low"], b["high"])
            )


def test_design_weights_make_a_weighted_difference() -> None:
    old, new = two_by_two(4, 3, 1, 4)
    w = np.linspace(0.5, 3, 12)
    frames = [frame(x, n).with_columns(pl.Series("weight", w)) for x, n in ((old, "o"), (new, "n"))]
    found = row(compared(*frames, weight="weight"), "label_share_minus_other", class_="b")
    move = np.array([(b == "b") - (a == "b") for a, b in zip(old, new, strict=True)], dtype=float)
    assert found["value"] == pytest.approx((w * move).sum() / w.sum())
    assert found["low"] < found["value"] < found["high"]


def test_keys_are_unique_and_values_lie_within_their_intervals() -> None:
    rng = np.random.default_rng(2)
    old, new, gold = (
        list(rng.choice(list("abcd"), 80, p=[0.7, 0.2, 0.08, 0.02])) for _ in range(3)
    )
    tagged = frame(old, "o", gold=gold).with_columns(
        pl.col("response")
        .str.tail(1)
        .replace_strict({str(i): "xy"[i % 2] for i in range(10)})
        .alias("t")
    )
    made = compared(tagged, frame(new, "n"), scale="a,b,c,d", by="t")
    assert not made.results.select(KEY).is_duplicated().any()
    assert set(made.results["slice"].unique()) == {"", "t=x", "t=y"}
    for found in made.results.rows(named=True):
        if found["low"] is not None:
            assert found["low"] <= found["value"] <= found["high"], found
        assert (found["value"] is None) == bool(found["reason"])


# --- intervals at the edge, and what was measured ------------------------------------------------


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (3, 0), (1, 2), (60, 0)])
def test_a_difference_at_its_edge_has_width_and_names_its_method(gained: int, lost: int) -> None:
    old, new = two_by_two(0, gained, lost, 60 - gained - lost)
    found = row(
        compared(frame(old, "o"), frame(new, "n"), scale="a,b"),
        "label_share_minus_other",
        class_="b",
    )
    assert found["method"] == "mover_clopper_pearson"
    assert -1 <= found["low"] < found["high"] <= 1
    up, down = (intervals.clopper_pearson(x, 60) for x in (gained, lost))
    low = found["value"] - math.hypot(gained / 60 - up[0], down[1] - lost / 60)
    assert found["low"] == pytest.approx(max(low, -1))


def test_the_measured_coverage_is_never_far_below_its_level() -> None:
    held = table()
    place = {name: i for i, name in enumerate(held["columns"])}
    assert {tuple(r[:5]) for r in held["rows"]} == {
        (*d, *c) for d in simulated.DESIGNS for c in simulated.CHANGES
    }
    for found in held["rows"]:
        assert (
            found[place["held"]] + found[place["above"]] + found[place["below"]]
            == found[place["runs"]]
        )
        assert found[place["held"]] / found[place["runs"]] > 0.9
    at, low, high = measured(17)
    assert (at, measured(3)[0], measured(10_000)[0]) == (15, 10, 100)
    assert 0.9 < low <= high <= 1


@pytest.mark.slow
@pytest.mark.parametrize("place", [3, 14, 38])
def test_the_coverage_table_can_be_made_again(place: int) -> None:
    found = table()["rows"][place]
    assert simulated.covered(tuple(found[:3]), tuple(found[3:5])) == found


def test_few_clusters_come_with_what_was_measured() -> None:
    names = [f"c{i // 5}" for i in range(60)]
    old, new = two_by_two(20, 10, 4, 26)
    made = compared(frame(old, "o", clusters=names), frame(new, "n", clusters=names))
    (few,) = [f for f in made.findings if f.code == "few_clusters"]
    assert "12 clusters" in plain(few.sentence)
    assert "simulated" in plain(few.sentence)


def test_fewer_clusters_than_were_measured_borrow_no_coverage() -> None:
    names = [f"c{i // 15}" for i in range(60)]
    old, new = two_by_two(20, 10, 4, 26)
    made = compared(frame(old, "o", clusters=names), frame(new, "n", clusters=names))
    (few,) = [f for f in made.findings if f.code == "few_clusters"]
    assert "With fewer than 10 clusters nothing was measured" in plain(few.sentence)
    assert "held the truth" not in plain(few.sentence)
    names = ["one"] * 60
    made = compared(frame(old, "o", clusters=names), frame(new, "n", clusters=names))
    (few,) = [f for f in made.findings if f.code == "few_clusters"]
    assert "no interval" in plain(few.sentence)
    assert "rest on them" not in plain(few.sentence)


def test_nothing_changed_is_clear_only_with_what_could_have_been_seen() -> None:
    both = frame("abab" * 10, "o"), frame("abab" * 10, "n")
    (clear,) = [f for f in compared(*both).findings if f.code == "labels_changed"]
    assert clear.state is State.CLEAR
    one = [frame("abab", g, clusters=["c"] * 4) for g in "on"]
    (bare,) = [f for f in compared(*one).findings if f.code == "labels_changed"]
    assert bare.state is State.CANNOT_TELL
    assert "unknown share" not in plain(bare.sentence)
    assert "within an interval" not in said(compared(*one))


# --- who and which responses --------------------------------------------------------------------


def test_only_common_responses_count_and_the_others_are_named() -> None:
    made = compared(frame("aabb", "o"), frame("abab", "n", start=2))
    assert row(made, "changed")["n"] == 2
    assert (made.only_old, made.only_new) == (("r000", "r001"), ("r004", "r005"))
    text = TEXT.render(made.document).decode()
    assert "2 responses are only with o and not compared: r000 and r001" in text


def test_newly_unread_and_newly_read_stand_in_no_difference() -> None:
    old, new = ["a", "a", "b", None, "b", "a"], ["a", None, None, "b", "b", "b"]
    made = compared(frame(old, "o"), frame(new, "n"))
    assert row(made, "changed")["n"] == 3
    assert row(made, "newly_unread", class_="a")["value"] == 1
    assert row(made, "newly_unread", class_="b")["value"] == 1
    assert row(made, "newly_read", class_="b")["value"] == 1
    assert row(made, "outcome_moved", class_="label", to_class="unparsed")["value"] == 2
    assert row(made, "outcome_moved", class_="unparsed", to_class="label")["value"] == 1
    assert row(made, "read_share_minus_other")["value"] == pytest.approx(-1 / 6)
    assert "gives no label to 2 of the 6 common responses" in said(made)
    assert set(made.changes["new"]) == {"⟨unparsed⟩", "b"}


def test_no_common_response_says_what_to_do() -> None:
    with pytest.raises(InputError, match=r"no response in common.*--response.*--recode"):
        compared(frame("ab", "o"), frame("ab", "n", start=9))


def test_nobody_could_be_read_on_a_common_response() -> None:
    made = compared(frame(["a", None], "o"), frame([None, "a"], "n"))
    assert row(made, "changed")["reason"]
    assert made.findings[0].state is not State.CLEAR


def test_gold_that_differs_between_the_files_is_an_error() -> None:
    with pytest.raises(
        VoirdireError, match=r"(?s)r001.*stands in both inputs and must be the same"
    ):
        compared(frame("ab", "o", gold="ab"), frame("ab", "n", gold="aa"))


def test_two_without_a_class_in_common_are_told_so() -> None:
    made = compared(frame("abab", "o"), frame("xyxy", "n"))
    assert any("no class in common" in plain(n) for n in made.notices)
    assert row(made, "changed")["value"] == 1


def test_the_only_grader_the_common_one_or_the_named_one() -> None:
    panel = pl.concat([frame("abab", "g"), frame("aabb", "h")])
    assert compared(panel, frame("abbb", "g")).old == "g (old)"
    made = compared(panel, old_grader="h", new_grader="g")
    assert (made.old, made.new) == ("h", "g")
    with pytest.raises(UsageError, match=r"--old NAME --new NAME. Graders: g and h"):
        compared(panel)
    with pytest.raises(UsageError, match="--old and --new both name"):
        compared(panel, old_grader="h", new_grader="h")
    with pytest.raises(UsageError, match="several graders"):
        compared(panel, frame("abbb", "x"))
    with pytest.raises(UsageError, match='--old: there is no grader "z"'):
        compared(panel, frame("abbb", "x"), old_grader="z")


def test_classes_that_only_one_gives_are_said() -> None:
    made = compared(frame("abab", "o"), frame("acac", "n"))
    assert sum("alone gives" in plain(n) for n in made.notices) == 2
    assert {r["class"] for r in rows(made, "label_share_minus_other")} == {"a", "b", "c"}


def test_counts_are_sent_to_results() -> None:
    counts = pl.DataFrame({"grader": ["g"], "a": [3], "b": [4]})
    with pytest.raises(InputError, match=r"compare old\.json new\.json"):
        vd.compare(counts, counts, layout="counts", scale="a,b")


# --- what a report never says -------------------------------------------------------------------


def every_sentence(made: Comparison) -> Iterator[str]:
    yield TEXT.render(made.document).decode()


@pytest.mark.parametrize("cells", [(40, 12, 4, 44), (40, 2, 2, 44), (40, 0, 0, 44), (5, 60, 0, 5)])
@pytest.mark.parametrize("with_gold", [True, False])
def test_no_better_without_gold_and_never_no_difference(
    cells: tuple[int, int, int, int], with_gold: bool
) -> None:
    old, new = two_by_two(*cells)
    gold = old[::-1] if with_gold else None
    made = compared(frame(old, "o", gold=gold), frame(new, "n"), scale="a,b")
    for text in every_sentence(made):
        text = " ".join(text.lower().split()).replace("never which is better", "")
        assert "no difference" not in text
        assert "better" not in text
        assert "worse" not in text
        assert ("nearer to gold" in text or "farther from gold" in text) <= with_gold
    if not with_gold:
        assert "nothing here says which" in said(made)


def test_what_does_not_stand_says_what_would_have_been_seen() -> None:
    old, new = two_by_two(40, 8, 6, 44)
    made = compared(frame(old, "o"), frame(new, "n"), scale="a,b")
    (unseen,) = [f for f in made.findings if f.code == "class_use_changed"]
    assert unseen.state is State.CANNOT_TELL
    assert "would have been seen in 8 of 10" in plain(unseen.sentence)


def test_what_stands_is_told_with_where_it_went() -> None:
    old = "c" * 30 + "b" * 60 + "a" * 60
    new = "c" * 30 + "b" * 20 + "a" * 38 + "c" * 2 + "a" * 60
    made = compared(frame(old, "o"), frame(new, "n"), scale="a,b,c")
    text = said(made)
    assert "n gives the class b to 40 fewer of 150 common responses than o" in text
    assert "Of the 40 to which it no longer gives the class, 38 went to a." in text


# --- results alone ------------------------------------------------------------------------------


@pytest.fixture
def audits(tmp_path: Path) -> Path:
    old, new = two_by_two(40, 12, 4, 44)
    gold = (old[:50] + new[50:])[::-1]
    for name, labels in (("old", old), ("new", new)):
        frame(labels, "g", gold=gold).write_csv(tmp_path / f"{name}.csv")
        audit = vd.audit(vd.read(tmp_path / f"{name}.csv", layout="long", scale="a,b"))
        for suffix in ("json", "csv", "parquet"):
            audit.write(tmp_path / f"{name}-audit.{suffix}")
    return tmp_path


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_results_alone_are_taken_as_independent(audits: Path, suffix: str) -> None:
    made = vd.compare(audits / f"old-audit.{suffix}", audits / f"new-audit.{suffix}")
    assert not made.paired
    found = row(made, "rate_minus_other", class_="b")
    own = {r["grader"]: r for r in rows(made, "rate", class_="b")}
    assert found["value"] == pytest.approx(0.08)
    assert found["method"] == published.METHOD
    ends = intervals.mover(
        *((own[g]["value"], own[g]["low"], own[g]["high"]) for g in ("g (new)", "g (old)"))
    )
    assert (found["low"], found["high"]) == pytest.approx(ends)
    paired = row(
        vd.compare(audits / "old.csv", audits / "new.csv", layout="long", scale="a,b"),
        "rate_minus_other",
        class_="b",
    )
    assert paired["high"] - paired["low"] < found["high"] - found["low"]
    assert not made.results.select(KEY).is_duplicated().any()
    text = TEXT.render(made.document).decode()
    assert "independent samples" in text
    assert "narrower" in text
    if suffix == "json":
        assert "voirdire compare old.csv new.csv" in text
    else:
        assert "cannot be checked" in text


def test_labels_on_one_side_and_results_on_the_other(audits: Path) -> None:
    mixed = vd.compare(audits / "old.csv", audits / "new-audit.json", layout="long", scale="a,b")
    alone = vd.compare(audits / "old-audit.json", audits / "new-audit.json")
    assert mixed.results.equals(alone.results)
    assert "The labels of one side only" in TEXT.render(mixed.document).decode()


def test_options_files_and_versions_that_differ_are_said(audits: Path) -> None:
    path = audits / "new-audit.json"
    content = json.loads(path.read_text())
    content["voirdire"] = "9.0"
    content["options"]["scale"] = ["b", "a"]
    content["results"].append({**content["results"][0], "statistic": "not_known_here", "more": 1})
    path.write_text(json.dumps(content))
    text = " ".join(
        TEXT.render(vd.compare(audits / "old-audit.json", path).document).decode().split()
    )
    assert "The option scale differs: old a, b, new b, a" in text
    assert "different versions of voirdire" in text
    assert "The audits read different files" in text


def test_a_difference_of_results_says_with_itself_what_else_differs(audits: Path) -> None:
    path = audits / "new-audit.json"
    content = json.loads(path.read_text())
    content["options"]["gold"] = "somebody"
    for one in content["results"]:
        if one["statistic"] == "rate":
            one["value"], one["low"], one["high"] = 0.99, 0.98, 0.995
    path.write_text(json.dumps(content))
    made = vd.compare(audits / "old-audit.json", path, new_grader="g")
    found = [f for f in made.findings if f.state is State.FOUND]
    assert found
    for one in found:
        assert "The audits differ in gold and the files that they read" in plain(one.sentence)
    same = vd.compare(audits / "old-audit.json", audits / "old-audit.json")
    assert "The audits differ" not in said(same)


def test_the_command_to_run_instead_has_the_options_of_the_audits(audits: Path) -> None:
    made = vd.compare(audits / "old-audit.json", audits / "new-audit.json")
    text = " ".join(TEXT.render(made.document).decode().split())
    assert "voirdire compare old.csv new.csv --layout long --scale a,b" in text


def test_an_audit_beside_itself_is_sent_to_look_for_another_grader(
    audits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(audits)
    made = vd.compare("old-audit.json", "old-audit.json")
    text = TEXT.render(made.document).decode()
    assert "voirdire compare" not in text
    assert "these are the same labels" in " ".join(text.split())
    (command,) = (x.strip() for x in text.split("\n") if x.startswith("  voirdire look "))
    assert main(shlex.split(command)[1:]) == 0


def test_one_grader_beside_a_shared_file_of_gold_is_sent_to_its_own_files(audits: Path) -> None:
    gold = pl.DataFrame({"response": [f"r{i}" for i in range(36)], "gold": list("aabb" * 9)})
    gold.write_csv(audits / "gold.csv")
    for side in ("old", "new"):
        frame(f"{'abab' if side == 'old' else 'aabb'}" * 9, "g").write_csv(audits / f"{side}-g.csv")
        labels = vd.read(audits / "gold.csv", audits / f"{side}-g.csv", gold="gold")
        vd.audit(labels).write(audits / f"{side}-g.json")
    made = vd.compare(audits / "old-g.json", audits / "new-g.json")
    text = TEXT.render(made.document).decode()
    assert "voirdire compare old-g.csv new-g.csv --gold gold" in text
    assert "--old" not in text


def test_levels_that_differ_make_no_interval(audits: Path) -> None:
    labels = vd.read(audits / "new.csv", layout="long", scale="a,b", level=0.9)
    vd.audit(labels).write(audits / "nine.json")
    made = vd.compare(audits / "old-audit.json", audits / "nine.json")
    found = row(made, "rate_minus_other", class_="b")
    assert found["value"] is not None
    assert found["low"] is None


def test_two_graders_of_one_audit_are_sent_to_their_file(audits: Path) -> None:
    both = pl.concat([frame("abab" * 9, "g"), frame("aabb" * 9, "h")])
    both.write_csv(audits / "both.csv")
    vd.audit(vd.read(audits / "both.csv", layout="long")).write(audits / "both.json")
    made = vd.compare(audits / "both.json", audits / "both.json", old_grader="g", new_grader="h")
    text = TEXT.render(made.document).decode()
    assert "voirdire compare both.csv --old g --new h" in text
    with pytest.raises(UsageError, match="several graders"):
        vd.compare(audits / "both.json", audits / "both.json")
    with pytest.raises(UsageError, match="no results of 'z'"):
        vd.compare(audits / "both.json", audits / "both.json", old_grader="z", new_grader="h")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"voirdire": "1", "results": 3}', "no list of results"),
        ('{"voirdire": "1", "results": [', "not JSON"),
        ('{"voirdire": "1", "results": [{"statistic": "rate"}]}', "lacks one of"),
        ('{"voirdire": "1", "results": [], "compared": {}}', "a comparison itself"),
        ('{"voirdire": "1", "results": []}', "no results of a grader"),
        (
            '{"voirdire": "1", "results": [{"statistic": "rate", "grader": "g", "value": "x"}]}',
            "is not a number",
        ),
    ],
)
def test_broken_results_say_what_is_wrong(audits: Path, content: str, message: str) -> None:
    (audits / "broken.json").write_text(content)
    with pytest.raises(InputError, match=message):
        vd.compare(audits / "old-audit.json", audits / "broken.json")


def test_results_of_one_audit_alone_are_no_comparison(audits: Path) -> None:
    with pytest.raises(UsageError, match="second input"):
        vd.compare(audits / "old-audit.json")
    with pytest.raises(UsageError, match="do not say which labels changed"):
        vd.compare(audits / "old-audit.json", audits / "new-audit.json").write_changes(
            audits / "changes.csv"
        )


# --- output -------------------------------------------------------------------------------------

HOSTILE = ("=1+1", "<b>&|*_`$\\", "a\u202eb", "x\ny")


def test_hostile_names_in_every_format(tmp_path: Path) -> None:
    old = [HOSTILE[i % 2] for i in range(30)]
    new = [HOSTILE[(i // 7) % 2] for i in range(30)]
    made = compared(frame(old, HOSTILE[1]), frame(new, HOSTILE[2]))
    for suffix in ("md", "txt", "csv", "json", "parquet"):
        made.write(tmp_path / f"c.{suffix}")
    assert "\u202e" not in (tmp_path / "c.txt").read_text()
    made.write_changes(tmp_path / "changes.csv")
    with (tmp_path / "changes.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.reader(file))
    assert not any(c.startswith(("=", "+", "-", "@")) for line in cells for c in line)
    for suffix in ("parquet", "jsonl"):
        made.write_changes(tmp_path / f"changes.{suffix}")
    assert pl.read_parquet(tmp_path / "changes.parquet").equals(made.changes)
    with pytest.raises(UsageError, match="are written to"):
        made.write_changes(tmp_path / "changes.xlsx")


def test_the_json_report_holds_every_change(tmp_path: Path) -> None:
    old, new = two_by_two(40, 30, 14, 16)
    made = compared(frame(old, "o"), frame(new, "n"))
    made.write(tmp_path / "c.json")
    content = json.loads((tmp_path / "c.json").read_text())
    assert len(content["compared"]["changes"]) == 44
    assert content["compared"]["paired"] is True
    jsonschema.Draft202012Validator(comparing.schema()).validate(content)
    assert len(content["results"]) == made.results.height


def test_the_figure_draws_and_tables_every_difference() -> None:
    old, new = two_by_two(40, 12, 4, 44)
    made = compared(frame(old, "o"), frame(new, "n"), scale="a,b")
    (figure,) = [
        b for b in made.document.blocks if isinstance(b, Figure) and b.name == "differences"
    ]
    svg = differences.DRAWING.svg(figure.data, plain(figure.alt))
    assert svg.count("<circle") == 2
    columns, cells = differences.DRAWING.table(figure.data)
    assert len(cells) == 2
    assert len(columns) == len(cells[0])
    assert differences.DRAWING.lines is not None
    drawn = differences.DRAWING.lines(figure.data, 60, True)
    assert all(len(line) <= 60 for line in drawn)
    assert any("+8.0" in line for line in drawn)
    empty: Mapping[str, Any] = {"old": "o", "new": "n", "rows": [{"what": "x", "value": None}]}
    assert "–" in differences.DRAWING.svg(empty, "")
    assert differences.DRAWING.lines(empty, 60, True)


# --- the command --------------------------------------------------------------------------------


def test_the_command_prints_writes_and_exits_with_0(voirdire: Run, tables: Path) -> None:
    done = voirdire(
        "compare",
        "jailbreakbench.csv",
        *("--layout", "wide", "--response", "Index", "--cluster", "goal_id"),
        *("--old", "llamaguard2_cf", "--new", "llama3_cf", "--gold", "human_majority"),
        *("--scale", "0,1", "-o", "c.json", "--changes", "changes.csv"),
    )
    assert done.returncode == 0, done.stderr
    assert "FINDINGS" in done.stdout
    assert (tables / "c.json").is_file()
    lines = (tables / "changes.csv").read_text().splitlines()
    assert lines[0] == "response,line,cluster,old,new,gold"
    assert len(lines) == 32


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("nowhere.csv", "jailbreakbench.csv"), 3, "nowhere.csv"),
        (("jailbreakbench.csv", "nowhere.json"), 3, "nowhere.json"),
        (("jailbreakbench.csv", "jailbreakbench.csv", "--changes", "x.pdf"), 2, "suffix"),
    ],
)
def test_the_command_refuses_with_the_status_of_the_contract(
    voirdire: Run, words: Sequence[str], status: int, message: str
) -> None:
    done = voirdire("compare", *words)
    assert done.returncode == status
    assert message in done.stderr
    assert "bug" not in done.stderr


# --- real files ---------------------------------------------------------------------------------


@needs_shared
def test_xstest_two_graders() -> None:
    made = vd.compare(
        XSTEST / "xstest_v2_completions_llama2orig_streval.csv",
        XSTEST / "xstest_v2_completions_llama2orig_gpteval.csv",
        layout="wide",
        response="id",
        cluster="type",
        old_grader="strmatch_label",
        new_grader="gpt4_label",
        gold="final_label",
        scale="2_full_refusal,3_partial_refusal,1_full_compliance",
    )
    frames = [
        pl.read_csv(XSTEST / f"xstest_v2_completions_llama2orig_{x}eval.csv")
        for x in ("str", "gpt")
    ]
    assert frames[0]["id"].equals(frames[1]["id"])
    old, new, gold = (
        frames[i][name].to_numpy()
        for i, name in ((0, "strmatch_label"), (1, "gpt4_label"), (0, "final_label"))
    )
    assert len(made.changes) == (old != new).sum()
    partial = row(made, "label_count_minus_other", class_="3_partial_refusal")
    assert (
        partial["value"] == (new == "3_partial_refusal").sum() - (old == "3_partial_refusal").sum()
    )
    agreement = row(made, "agreement_minus_other")
    assert agreement["value"] == pytest.approx((new == gold).mean() - (old == gold).mean())


@needs_shared
def test_votes_of_two_judges() -> None:
    made = vd.compare(
        STABILITY / "claude_haiku_llama_qwen25.csv",
        STABILITY / "llama70b_llama_qwen25.csv",
        response="model+prompt_id",
        grader="judge",
        cluster="prompt_id",
        vote="temperature+seed",
        scale="REFUSE,PARTIAL,COMPLY",
        failed="*=unparsed",
        recode="model:meta-llama/Llama-3.1-8B-Instruct=meta_llama_Llama_3.1_8B_Instruct",
    )
    calls, noise, beyond = (
        row(made, s)["value"] for s in ("changed_calls", "call_noise", "changed_beyond_noise")
    )
    assert beyond == pytest.approx(calls - noise)
    assert 0 < noise < calls
    assert any(f.code == "change_against_noise" and f.state is State.FOUND for f in made.findings)


@needs_shared
def test_the_item_bank_with_a_perturbed_copy(tmp_path: Path) -> None:
    with (REAL_BANK / "judge_item_bank.csv").open(encoding="utf-8", newline="") as file:
        bank = list(csv.DictReader(file))
    rng = np.random.default_rng(3)
    flipped = 0
    for one in bank:
        for j in range(1, 11):
            if one[f"judge_e{j}"] and rng.random() < 0.05:
                one[f"judge_e{j}"] = "0" if one[f"judge_e{j}"] == "1" else "1"
                flipped += 1
    with (tmp_path / "new.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(bank[0]))
        writer.writeheader()
        writer.writerows(bank)
    made = vd.compare(REAL_BANK / "judge_item_bank.csv", tmp_path / "new.csv", cut=[5])
    assert row(made, "changed")["value"] == pytest.approx(flipped / 1800)
    assert len(made.changes) == flipped
    assert row(made, "element_error_minus_other")["n"] == 1800
    assert any(f.code == "agreement_with_gold_changed" for f in made.findings)


@needs_shared
def test_jailbreakbench_two_classifiers() -> None:
    made = vd.compare(
        JAILBREAK,
        layout="wide",
        response="Index",
        cluster="goal_id",
        old_grader="llamaguard2_cf",
        new_grader="gpt4_cf",
        gold="human_majority",
        scale="0,1",
    )
    table_ = pl.read_csv(JAILBREAK)
    share = {g: table_[g].cast(pl.Float64).to_numpy().mean() for g in ("gpt4_cf", "llamaguard2_cf")}
    value = share["gpt4_cf"] - share["llamaguard2_cf"]
    assert row(made, "rate_minus_other", class_="1")["value"] == pytest.approx(value)


def test_the_page_prints_the_table_that_ships() -> None:
    shares: dict[str, list[float]] = {}
    for found in table()["rows"]:
        shares.setdefault(f"{found[0]:,} of {found[1]}", []).append(100 * found[6] / found[5])
    page = (ROOT / "docs" / "comparing.md").read_text(encoding="utf-8")
    for design, of in shares.items():
        assert f"| {design} | {min(of):.1f} | {max(of):.1f} |" in page
