"""Equal use of the classes: tests of margins with numbers worked by hand, and what they are not told."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire.document import Table, display
from voirdire.errors import UndefinedWarning
from voirdire.stats import homogeneity
from voirdire.stats.pairwise import NO_COMMON
from voirdire.tally import of_rows

DESIGN = "no p-values under design weights"


def audited(columns: dict[str, list[Any]], **options: Any) -> Any:
    frame = pl.DataFrame(columns)
    if "response" not in columns:
        frame = frame.with_row_index("response")
    return vd.audit(vd.read(frame, layout="wide", **options))


def row(audit: Any, statistic: str, **keys: str) -> dict[str, Any]:
    found = audit.results.filter(
        pl.col("statistic") == statistic, *(pl.col(k) == v for k, v in keys.items())
    )
    assert len(found) == 1, (statistic, keys, len(found))
    return dict(found.row(0, named=True))


def pair_rows(clusters: list[list[tuple[int, int]]], k: int) -> np.ndarray[Any, Any]:
    """One table of label pairs ``(k, k)`` a cluster."""
    rows = np.zeros((len(clusters), k, k), dtype=np.int64)
    for c, pairs in enumerate(clusters):
        for i, j in pairs:
            rows[c, i, j] += 1
    return rows


def t_p(t: float, df: int) -> float:
    from scipy.stats import t as student

    return 2 * float(student.sf(t, df))


# --- plain functions ----------------------------------------------------------------------------


def test_with_two_classes_stuart_maxwell_is_the_squared_difference_over_the_discordant():
    # (8 − 3)² / (8 + 3) = 25 / 11.
    statistic, df, p = vd.stats.stuart_maxwell([[30, 8], [3, 40]])
    assert statistic == pytest.approx(25 / 11)
    assert df == 1
    assert p == pytest.approx(math.erfc(math.sqrt(25 / 11 / 2)))  # P(χ²₁ ≥ x) = erfc(√(x/2))


def test_bowker_counts_the_pairs_of_classes_that_are_exchanged():
    # (6−2)²/8 + (1−4)²/5 = 2 + 1.8; the third pair is empty, so df is 2 and p = exp(−3.8/2).
    statistic, df, p = vd.stats.bowker([[9, 6, 1], [2, 9, 0], [4, 0, 9]])
    assert (statistic, df) == (pytest.approx(3.8), 2)
    assert p == pytest.approx(math.exp(-1.9))


def test_an_empty_class_and_one_that_is_never_exchanged_are_dropped():
    wanted = vd.stats.stuart_maxwell([[12, 5], [9, 20]])
    empty = [[12, 0, 5], [0, 0, 0], [9, 0, 20]]
    agreed = [[12, 0, 5], [0, 7, 0], [9, 0, 20]]
    for table in (empty, agreed):
        assert vd.stats.stuart_maxwell(table) == pytest.approx(wanted)
        assert vd.stats.bowker(table) == pytest.approx(wanted)


def test_classes_that_are_exchanged_within_two_blocks_only_give_the_sum_of_both():
    # Blocks {0, 1} and {2, 3}: (6−2)²/8 + (9−3)²/12 = 2 + 3, one degree of freedom each.
    table = [[5, 6, 0, 0], [2, 5, 0, 0], [0, 0, 5, 9], [0, 0, 3, 5]]
    statistic, df, p = vd.stats.stuart_maxwell(table)
    assert (statistic, df) == (pytest.approx(5), 2)
    assert p == pytest.approx(math.exp(-2.5))


def test_turning_the_table_or_the_order_of_classes_changes_nothing():
    table = np.array([[15, 4, 2, 1], [6, 20, 5, 3], [3, 7, 25, 4], [0, 2, 8, 18]])
    order = [2, 0, 3, 1]
    for test in (vd.stats.stuart_maxwell, vd.stats.bowker):
        assert test(table.T) == pytest.approx(test(table))
        assert test(table[order][:, order]) == pytest.approx(test(table))


def test_mcnemar_is_twice_the_binomial_tail_and_mid_p_half_of_the_last_term_less_each_side():
    # 1 against 5 of 6: exact 2 · (1 + 6)/64 = 14/64; mid-p less 6/64.
    table = [[10, 5], [1, 10]]
    assert vd.stats.mcnemar(table) == pytest.approx(14 / 64)
    assert vd.stats.mcnemar(table, "mid-p") == pytest.approx(8 / 64)
    # 0 against 4: 2/16 and 1/16.
    assert vd.stats.mcnemar([[0, 4], [0, 0]]) == pytest.approx(2 / 16)
    assert vd.stats.mcnemar([[0, 4], [0, 0]], "mid-p") == pytest.approx(1 / 16)


def test_without_discordant_pairs_mcnemar_is_one_and_the_others_cannot_be_said():
    table = [[10, 0], [0, 12]]
    assert vd.stats.mcnemar(table) == vd.stats.mcnemar(table, "mid-p") == 1.0
    for test in (vd.stats.stuart_maxwell, vd.stats.bowker):
        with pytest.warns(UndefinedWarning):
            statistic, df, p = test(table)
        assert (math.isnan(statistic), df, math.isnan(p)) == (True, 0, True)


def test_cochrans_q_by_hand_and_without_a_varying_response():
    # Columns 3, 2, 1 of four responses with 3, 2, 1 and 0: (3−1)(3·14 − 36)/(3·6 − 14) = 12/4.
    q, df, p = vd.stats.cochran_q([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert (q, df) == (pytest.approx(3), 2)
    assert p == pytest.approx(math.exp(-1.5))
    # A response that one grader did not label is left out.
    assert vd.stats.cochran_q(
        [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [None, 1, 0]]
    ) == pytest.approx((q, df, p))
    with pytest.warns(UndefinedWarning, match="never differ"):
        assert math.isnan(vd.stats.cochran_q([[1, 1], [0, 0]])[0])


def test_of_two_graders_cochrans_q_is_mcnemars_chi_square():
    responses = [[1, 0]] * 8 + [[0, 1]] * 3 + [[1, 1]] * 5
    assert vd.stats.cochran_q(responses)[0] == pytest.approx(25 / 11)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: vd.stats.stuart_maxwell([[1, 2, 3], [4, 5, 6]]), "as many rows"),
        (lambda: vd.stats.bowker([[1, -2], [4, 5]]), "from 0"),
        (lambda: vd.stats.mcnemar(np.ones((3, 3))), "two classes"),
        (lambda: vd.stats.mcnemar([[1, 2], [3, 4]], "chi2"), "exact"),
        (lambda: vd.stats.cochran_q([[0, 2]]), "0 and 1"),
    ],
)
def test_what_is_no_table_of_counts_is_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()


# --- the cluster-robust test ----------------------------------------------------------------------


def test_the_robust_p_by_hand():
    # Two classes, four clusters of two responses; row less column is 2, 1, 0 and 1, so 4 of 8: residuals
    # d − n/2 are 1, 0, −1, 0; V = 4/3 · 2 = 8/3; W = 16 / (8/3) = 6, with F(1, 3) = t(3)².
    up, same, down = (0, 1), (0, 0), (1, 0)
    rows = pair_rows([[up, up], [up, same], [up, down], [same, up]], 2)
    p, reason = homogeneity.robust_p(of_rows(rows))
    assert reason == ""
    assert p == pytest.approx(t_p(math.sqrt(6), 3))


def test_with_strata_residuals_are_centred_within_each():
    # As above, in strata {2, 1} and {0, 1}: residuals (1, 0) and (−1, 0), each with mean ±1/2 and squares
    # 1/2; V = 2·(1/2) + 2·(1/2) = 2; W = 16/2 = 8 with 4 − 2 degrees of freedom.
    up, same, down = (0, 1), (0, 0), (1, 0)
    rows = pair_rows([[up, up], [up, same], [up, down], [same, up]], 2)
    p, _ = homogeneity.robust_p(of_rows(rows, stratum=np.array([0, 0, 1, 1])))
    assert p == pytest.approx(t_p(math.sqrt(8), 2))
    p, reason = homogeneity.robust_p(of_rows(rows, stratum=np.array([0, 0, 0, 1])))
    assert (math.isnan(p), reason) == (True, homogeneity.ALONE)


def some_pairs(random: np.random.Generator, n: int, k: int) -> np.ndarray[Any, Any]:
    first = random.integers(0, k, n)
    second = np.where(random.random(n) < 0.6, first, random.integers(0, k, n))
    rows = np.zeros((n, k, k), dtype=np.int64)
    rows[np.arange(n), first, second] = 1
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_on_responses_of_their_own_it_is_close_to_stuart_maxwell(seed):
    # W = (n−1)/n · X²/(1 − X²/n); with n = 2,000 both p-values are the same to a few thousandths.
    rows = some_pairs(np.random.default_rng(seed), 2000, 4)
    p, _ = homogeneity.robust_p(of_rows(rows))
    assert p == pytest.approx(vd.stats.stuart_maxwell(rows.sum(0))[2], abs=0.005)


def test_five_copies_within_a_cluster_are_no_new_evidence():
    rows = some_pairs(np.random.default_rng(5), 60, 3)
    one, _ = homogeneity.robust_p(of_rows(rows))
    five, _ = homogeneity.robust_p(of_rows(5 * rows))
    assert five == pytest.approx(one, rel=1e-9)
    table = rows.sum(0)
    assert vd.stats.stuart_maxwell(5 * table)[0] == pytest.approx(
        5 * vd.stats.stuart_maxwell(table)[0]
    )


def test_under_equal_margins_the_robust_test_rejects_one_in_twenty_and_stuart_maxwell_far_more():
    # 40 clusters of 10, in each of which one exchange goes the same way throughout.
    random = np.random.default_rng(11)
    robust = naive = 0
    runs = 500
    for _ in range(runs):
        rows = np.zeros((40, 3, 3), dtype=np.int64)
        i, j = random.integers(0, 3, (2, 40))
        rows[np.arange(40), i, j] = 10
        robust += homogeneity.robust_p(of_rows(rows))[0] < 0.05
        naive += vd.stats.stuart_maxwell(rows.sum(0))[2] < 0.05
    assert 0.02 < robust / runs < 0.09
    assert naive / runs > 0.5


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (np.zeros((0, 3, 3), dtype=np.int64), NO_COMMON),
        (pair_rows([[(0, 0)], [(1, 1)], [(2, 2)]], 3), homogeneity.SAME),
        (pair_rows([[(0, 1)], [(1, 1)]], 2), homogeneity.FEW),
        (pair_rows([[(0, 1)], [(1, 2)], [(2, 3)]], 4), homogeneity.FEW),
        (pair_rows([[(0, 1)], [(0, 1)], [(0, 1)]], 2), homogeneity.FLAT),
        (pair_rows([[(0, 1), (1, 0)]] * 5, 2), homogeneity.FLAT),
    ],
)
def test_where_the_robust_p_cannot_be_said_it_says_why(rows, reason):
    p, why = homogeneity.robust_p(of_rows(rows))
    assert math.isnan(p)
    assert why == reason


# --- through an audit ---------------------------------------------------------------------------

PAIR = {
    "g": list("aaaaabbbbcccc"),
    "h": list("abbbabbcacccb"),
}


def test_three_classes_give_stuart_maxwell_bowker_and_the_robust_p():
    audit = audited(PAIR, graders="g,h", scale="a,b,c")
    # Rows a: a 2, b 3; b: a 1, b 2, c 1; c: b 1, c 3.
    table = [[2, 3, 0], [1, 2, 1], [0, 1, 3]]
    keys = {"grader": "g", "other": "h"}
    for statistic, test in (
        ("stuart_maxwell_p", vd.stats.stuart_maxwell),
        ("bowker_p", vd.stats.bowker),
    ):
        found = row(audit, statistic, **keys)
        assert found["value"] == pytest.approx(test(table)[2])
        assert (found["n"], found["describes"], found["low"]) == (13, "both", None)
    pairs = list(zip(PAIR["g"], PAIR["h"], strict=True))
    rows = pair_rows([[("abc".index(x), "abc".index(y))] for x, y in pairs], 3)
    robust = row(audit, "marginal_homogeneity_p", **keys)
    assert robust["value"] == pytest.approx(homogeneity.robust_p(of_rows(rows))[0])
    assert robust["clusters"] == 13
    names = set(audit.results["statistic"])
    assert "mcnemar_p" not in names
    assert "cochran_q_p" not in names  # of two graders


def test_two_classes_give_mcnemars_mid_p_instead():
    columns = {"g": list("aaaaaaabbb"), "h": list("abbbbbabba")}
    audit = audited(columns, graders="g,h", scale="a,b")
    # a to b five times, b to a once: 8/64, see above.
    assert row(audit, "mcnemar_p", grader="g", other="h")["value"] == pytest.approx(8 / 64)
    assert not {"stuart_maxwell_p", "bowker_p"} & set(audit.results["statistic"])
    assert 0 < row(audit, "marginal_homogeneity_p", grader="g", other="h")["value"] < 1


def test_declared_clusters_move_the_robust_p_only():
    n = 60
    random = np.random.default_rng(3)
    g = random.choice(list("abc"), n)
    h = np.where(random.random(n) < 0.5, g, random.choice(list("abc"), n))
    once = {"g": g.tolist(), "h": h.tolist()}
    five = {k: v * 5 for k, v in once.items()} | {"cluster": [f"c{i}" for i in range(n)] * 5}
    keys = {"grader": "g", "other": "h"}
    one = audited(once, graders="g,h", scale="a,b,c")
    many = audited(five, graders="g,h", scale="a,b,c", cluster="cluster")
    assert row(many, "marginal_homogeneity_p", **keys)["value"] == pytest.approx(
        row(one, "marginal_homogeneity_p", **keys)["value"]
    )
    assert row(many, "marginal_homogeneity_p", **keys)["clusters"] == n
    assert (
        row(many, "stuart_maxwell_p", **keys)["value"]
        < row(one, "stuart_maxwell_p", **keys)["value"]
    )


def test_graders_that_never_differ_cannot_be_tested_but_mcnemar_is_one():
    three = audited({"g": list("abcabc"), "h": list("abcabc")}, graders="g,h", scale="a,b,c")
    for statistic in ("stuart_maxwell_p", "bowker_p", "marginal_homogeneity_p"):
        found = row(three, statistic)
        assert (found["value"], found["reason"]) == (None, homogeneity.SAME)
    two = audited({"g": list("ababab"), "h": list("ababab")}, graders="g,h", scale="a,b")
    assert row(two, "mcnemar_p")["value"] == 1


def test_graders_without_a_common_response_are_told_so():
    columns = {"g": ["a", "b", "c", None, None, None], "h": [None, None, None, "a", "b", "c"]}
    audit = audited(columns, graders="g,h", scale="a,b,c")
    for statistic in ("stuart_maxwell_p", "bowker_p", "marginal_homogeneity_p"):
        assert row(audit, statistic)["reason"] == NO_COMMON


PANEL = {
    "g": list("aaaaabbbbbccab"),
    "h": list("aabbbbbbcccaab"),
    "i": list("abcabbbaccccab"),
}


def test_cochrans_q_is_asked_of_every_class_on_the_responses_that_all_labelled():
    columns: dict[str, list[str | None]] = {k: list(v) for k, v in PANEL.items()}
    columns["i"][0] = None
    audit = audited(columns, graders="g,h,i", scale="a,b,c,d")
    for class_ in "abc":
        given = [[int(columns[g][r] == class_) for g in "ghi"] for r in range(1, 14)]
        found = row(audit, "cochran_q_p", **{"class": class_})
        assert found["value"] == pytest.approx(vd.stats.cochran_q(given)[2])
        assert (found["n"], found["describes"], found["grader"]) == (13, "panel", "")
    unused = row(audit, "cochran_q_p", **{"class": "d"})
    assert (unused["value"], unused["reason"]) == (None, homogeneity.NOT_VARYING)


def test_without_a_response_that_all_labelled_q_cannot_be_said():
    columns = {"g": ["a", "b", None], "h": ["a", None, "b"], "i": [None, "a", "b"]}
    audit = audited(columns, graders="g,h,i", scale="a,b")
    for class_ in "ab":
        assert row(audit, "cochran_q_p", **{"class": class_})["reason"] == homogeneity.NOT_COMPLETE


def test_gold_is_in_the_pairs_but_not_in_cochrans_q():
    audit = audited(PANEL, graders="g,h,i", scale="a,b,c", gold="i")
    assert row(audit, "stuart_maxwell_p", grader="g", other="i")["value"] is not None
    assert "cochran_q_p" not in set(audit.results["statistic"])  # two graders are left


def test_under_design_weights_there_are_no_p_values():
    columns = PANEL | {"weight": [1.0, 2.0] * 7}
    audit = audited(columns, graders="g,h,i", scale="a,b,c", weight="weight")
    names = ("stuart_maxwell_p", "bowker_p", "marginal_homogeneity_p", "cochran_q_p")
    found = audit.results.filter(pl.col("statistic").is_in(names))
    assert len(found) == 3 * 3 + 3
    assert found["value"].null_count() == len(found)
    assert set(found["reason"]) == {DESIGN}


def test_a_frequency_weight_of_three_is_the_response_three_times():
    weighed = PANEL | {"weight": [3] * 14}
    tripled = {g: v * 3 for g, v in PANEL.items()}
    one = audited(weighed, graders="g,h,i", scale="a,b,c", weight="weight", weight_kind="frequency")
    other = audited(tripled, graders="g,h,i", scale="a,b,c")
    names = ("stuart_maxwell_p", "bowker_p", "marginal_homogeneity_p", "cochran_q_p")
    rows = [a.results.filter(pl.col("statistic").is_in(names)) for a in (one, other)]
    assert rows[0].equals(rows[1])


def test_counts_alone_allow_no_paired_test(tmp_path):
    table = tmp_path / "counts.csv"
    table.write_text("grader,no,yes,total\na,5,45,50\nb,42,8,50\n", encoding="utf-8")
    results = vd.audit(vd.read(table, layout="counts", scale="no,yes")).results
    names = {s.name for s in homogeneity.FAMILY.statistics}
    assert not names & set(results["statistic"])


# --- the report ---------------------------------------------------------------------------------

TITLE = "Do the two use the classes equally often?"


def table_of(audit: Any) -> Table | None:
    found = [b for b in audit.document.blocks if isinstance(b, Table) and b.title == TITLE]
    assert len(found) <= 1
    return found[0] if found else None


def test_the_report_gives_the_robust_p_first_and_says_what_a_p_value_does_not_say():
    audit = audited(PANEL, graders="g,h,i", scale="a,b,c")
    table = table_of(audit)
    assert table is not None
    titles = [c.title for c in table.columns]
    assert titles[2:] == ["p, cluster-robust", "p, Stuart–Maxwell", "responses"]
    assert len(table.rows) == 3
    note = "".join(str(part) for part in table.note)
    assert "A large p is no proof of equal use" in note
    assert "no p-value says that a grader is right" in note


def test_a_very_small_p_is_never_written_as_zero():
    columns = {"g": ["a"] * 60 + list("abab"), "h": ["b"] * 58 + ["a"] * 2 + list("abab")}
    audit = audited(columns, graders="g,h", scale="a,b")
    table = table_of(audit)
    assert table is not None
    assert [display(c) for c in table.rows[0][2:4]] == ["< 0.001", "< 0.001"]
    assert 0 < row(audit, "mcnemar_p")["value"] < 1e-10


def test_under_design_weights_the_report_has_no_table_of_p_values():
    columns = PANEL | {"weight": [1.0, 2.0] * 7}
    audit = audited(columns, graders="g,h,i", scale="a,b,c", weight="weight")
    assert table_of(audit) is None
