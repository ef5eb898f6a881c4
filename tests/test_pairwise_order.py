"""Verdicts on pairs in both orders: flips, the preference for a place, and no order of the classes."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire.auditing import scenes
from voirdire.errors import UndefinedWarning
from voirdire.formats.text import FORMAT as TEXT
from voirdire.orders import Pair, orders_of, pair_of
from voirdire.stats.pairwise import cohen_kappa
from voirdire.stats.pairwise_order import parts

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "fmt_fastchat_mt_bench"
shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the logs (../shared/data) are not beside this checkout"
)
CLASS = {"1": "model_1", "2": "model_2", "t": "tie"}
METHODS = ("auto", "bootstrap")


def frame(
    verdicts: Mapping[str, Sequence[str]],
    clusters: Sequence[str] = (),
    *,
    words: Mapping[str, str] = CLASS,
    orders: tuple[str, str] = ("AB", "BA"),
) -> pl.DataFrame:
    """Long labels: for each grader one text a pair, its verdict in each order.

    ``?`` could not be read, ``.`` is no call; a third and fourth letter are repeats.
    """
    rows = [
        {
            "response": f"r{i:03}",
            "grader": grader,
            "vote": str(v + 1),
            "order": orders[v % 2],
            "label": words.get(letter),
            "outcome": "unparsed" if letter == "?" else "label",
            **({"cluster": clusters[i]} if clusters else {}),
        }
        for grader, texts in verdicts.items()
        for i, text in enumerate(texts)
        for v, letter in enumerate(text)
        if letter != "."
    ]
    return pl.DataFrame(rows, schema_overrides={"label": pl.String})


def read(table: pl.DataFrame, **options: Any) -> vd.Labels:
    columns = {c: c for c in ("response", "grader", "label", "vote", "outcome")}
    return vd.read(table, layout="long", **{**columns, **options})


def audit(table: pl.DataFrame, **options: Any) -> vd.Audit:
    return vd.audit(read(table, **options))


def row(found: vd.Audit, statistic: str, **keys: str) -> dict[str, Any]:
    keys = {"other": "", "slice": "", **keys}
    rows = found.results.filter(
        pl.col("statistic") == statistic, *(pl.col(k) == v for k, v in keys.items())
    )
    assert len(rows) == 1, (statistic, keys, len(rows))
    return rows.row(0, named=True)


def patterns(found: vd.Audit, grader: str, slice_: str = "") -> dict[str, float]:
    rows = found.results.filter(
        pl.col("statistic") == "position_pattern",
        pl.col("grader") == grader,
        pl.col("slice") == slice_,
    )
    return dict(rows.select("class", "value").rows())


# --- what is counted ----------------------------------------------------------------------------

# With model_1 shown first, then with model_2 shown first:
# r0 11, r1 22, r2 tt the same · r3 r4 r5 12: the first place twice · r6 21: the second place twice ·
# r7 1t, r8 t2, r9 t1: a tie in one order · r10 1? and r11 ?2 read in one order · r12 ?? not read.
PAIRS = ["11", "22", "tt", "12", "12", "12", "21", "1t", "t2", "t1", "1?", "?2", "??"]


def test_patterns_are_counted_by_hand() -> None:
    found = audit(frame({"g": PAIRS}))
    assert patterns(found, "g") == {
        "same": 3,
        "first": 3,
        "second": 1,
        "tie_once": 3,
        "read_once": 2,
    }
    assert row(found, "position_pattern", grader="g", **{"class": "same"})["n"] == 12


def test_the_flip_rate_is_over_pairs_that_were_read_in_both_orders() -> None:
    one = row(audit(frame({"g": PAIRS})), "position_flip_rate", grader="g")
    # 7 of 10; each pair is its own cluster, and 3 without a flip are few: Clopper–Pearson.
    assert (one["value"], one["n"], one["describes"]) == (0.7, 10, "both")
    assert one["method"] == "clopper_pearson"
    assert one["low"] == pytest.approx(0.3475, abs=5e-5)
    assert one["high"] == pytest.approx(0.9333, abs=5e-5)


def test_the_preference_for_the_first_place_is_over_verdicts_for_a_side() -> None:
    one = row(audit(frame({"g": PAIRS})), "order_preference", grader="g")
    # For a side: 2 + 2 (same), 0 (tt), 6 (first twice), 2 (second twice), 3 (tie once) = 15. For the
    # first place: 1 + 1, 0, 6, 0, and of the ties 1t (model_1 first: yes), t2 (model_2 first: yes),
    # t1 (model_2 first: no) 2 = 10.
    assert one["value"] == pytest.approx(10 / 15)
    assert one["n"] == 15
    assert one["low"] < one["value"] < one["high"]


def test_a_better_side_shows_no_preference_for_a_place() -> None:
    # model_1 wins nearly everything, and the order changes nothing.
    found = audit(frame({"g": ["11"] * 18 + ["22"] * 2}))
    assert row(found, "position_flip_rate", grader="g")["value"] == 0
    assert row(found, "order_preference", grader="g")["value"] == 0.5


@pytest.mark.parametrize(("verdicts", "value"), [("12", 1.0), ("21", 0.0)])
def test_who_always_takes_one_place_has_all_the_preference(verdicts: str, value: float) -> None:
    found = audit(frame({"g": [verdicts] * 8}))
    assert row(found, "order_preference", grader="g")["value"] == value
    flips = row(found, "position_flip_rate", grader="g")
    assert flips["value"] == 1
    # Nobody agrees with itself on 8 of 8, and the interval says how little 8 are: 0.025^(1/8).
    assert flips["low"] == pytest.approx(0.025 ** (1 / 8))


def test_what_cannot_be_said_has_its_reason() -> None:
    found = audit(frame({"g": PAIRS, "h": ["tt", "tt"], "i": ["1?", "?2"]}))
    assert row(found, "order_preference", grader="h")["reason"].startswith("no verdict for a side")
    assert row(found, "position_flip_rate", grader="i")["reason"].startswith("no pair could be")
    assert row(found, "position_flip_rate", grader="h")["value"] == 0


def test_the_interval_respects_clusters() -> None:
    # 12 questions of 5 pairs that flip all or not at all.
    verdicts = ["12" if i // 5 % 2 else "11" for i in range(60)]
    clusters = [f"q{i // 5}" for i in range(60)]
    wide = row(
        audit(frame({"g": verdicts}, clusters), cluster="cluster"), "position_flip_rate", grader="g"
    )
    narrow = row(audit(frame({"g": verdicts})), "position_flip_rate", grader="g")
    assert (wide["value"], wide["clusters"]) == (0.5, 12)
    assert wide["high"] - wide["low"] > 1.8 * (narrow["high"] - narrow["low"])


def test_the_planted_preference_comes_back() -> None:
    # A pair is close with 0.4: then the first place wins. Else the better side wins in both orders.
    # Verdicts for the first place: (0.4 × 2 + 0.6 × 1) / 2 = 0.7; flips: 0.4. Of 3,000 pairs the sd of
    # the flips is 0.0089 and that of the preference half of it.
    rng = np.random.default_rng(11)
    close, better = rng.random(3000) < 0.4, rng.random(3000) < 0.8
    verdicts = ["12" if c else "11" if b else "22" for c, b in zip(close, better, strict=True)]
    found = audit(frame({"g": verdicts}))
    flips, preference = (
        row(found, s, grader="g") for s in ("position_flip_rate", "order_preference")
    )
    assert flips["value"] == pytest.approx(0.4, abs=3.5 * 0.0089)
    assert preference["value"] == pytest.approx(0.7, abs=3.5 * 0.0045)
    assert preference["low"] < 0.7 < preference["high"]


def test_several_votes_in_one_order_make_one_verdict() -> None:
    # Letters are AB BA AB BA: 1 and t in AB elect nobody; 2 and 2 in BA elect model_2.
    found = audit(frame({"g": ["12t2", "1212", "1?12"]}))
    assert patterns(found, "g")["read_once"] == 2  # r0; in r2 one of two calls in BA is no majority
    assert patterns(found, "g")["first"] == 1
    first = audit(frame({"g": ["12t2", "1212", "1?12"]}), vote_rule="first")
    assert patterns(first, "g")["first"] == 3


# --- where it applies ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (("model_1", "model_2", "tie"), Pair("model_1", "model_2", ("tie",))),
        (("model_2",), Pair("", "model_2", ())),
        (("output_1", "output_2"), Pair("output_1", "output_2", ())),
        (("Response B", "Response A"), Pair("Response A", "Response B", ())),
        (("A", "B", "tie (bothbad)", "tie"), Pair("A", "B", ("tie (bothbad)", "tie"))),
        (("1", "2", "Tie"), Pair("1", "2", ("Tie",))),
    ],
)
def test_sides_and_ties_are_known_by_their_names(classes: Sequence[str], expected: Pair) -> None:
    assert pair_of(classes) == expected


@pytest.mark.parametrize(
    "classes",
    [
        ("A", "B"),  # may be grades
        ("1", "2"),
        ("A", "B", "C"),
        ("level 1", "level 2"),
        ("model_1", "model_2", "model_1b"),
        ("model_1", "output_2", "tie"),
        ("model_1", "model_a"),
        ("refusal", "compliance"),
        ("tie",),
        (),
    ],
)
def test_other_classes_are_no_pair(classes: Sequence[str]) -> None:
    assert pair_of(classes) is None


def test_bare_sides_are_a_pair_where_each_was_shown_both_ways() -> None:
    words = {"1": "A", "2": "B"}
    found = audit(frame({"g": ["11", "12", "22"]}, words=words, orders=("ab", "BA")))
    assert row(found, "position_flip_rate", grader="g")["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "table",
    [
        frame({"g": PAIRS}).with_columns(order=pl.col("order").replace("BA", "AB")),
        frame({"g": PAIRS}).with_columns(order=pl.col("order").replace("BA", "XY")),
        frame({"g": PAIRS}).drop("order"),
        frame({"g": PAIRS}, words={"1": "no", "2": "half", "t": "yes"}),
    ],
    ids=["one order", "another order", "no order", "other classes"],
)
def test_without_verdicts_on_pairs_in_two_orders_nothing_is_said(table: pl.DataFrame) -> None:
    assert not {"position_flip_rate", "order_preference", "position_pattern"} & set(
        audit(table).results["statistic"]
    )


def test_scores_of_single_answers_beside_the_pairs_do_not_hide_them() -> None:
    scores = pl.DataFrame(
        {
            "response": ["s1", "s2"],
            "grader": "g",
            "vote": "1",
            "label": ["7", "9"],
            "outcome": "label",
        }
    )
    found = audit(pl.concat([frame({"g": PAIRS}), scores], how="diagonal"))
    assert row(found, "position_flip_rate", grader="g")["value"] == 0.7
    assert patterns(found, "g")["read_once"] == 2


def test_gold_is_not_asked_for_its_preference() -> None:
    found = audit(frame({"g": PAIRS, "gold": PAIRS}))
    rows = found.results.filter(pl.col("statistic") == "position_flip_rate")
    assert rows["grader"].to_list() == ["g"]


# --- laws ---------------------------------------------------------------------------------------


def drawn(seed: int, pairs: int) -> dict[str, list[str]]:
    chance = random.Random(seed)
    return {
        g: ["".join(chance.choice("1122tt?.") for _ in range(2)) for _ in range(pairs)]
        for g in "gh"
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_swapping_the_names_of_the_sides_and_the_orders_changes_nothing(
    seed: int, method: str
) -> None:
    # What was AB with model_1 ahead is BA with model_2 ahead: places are the same, names are not.
    table = frame(drawn(seed, 40))
    turned = table.with_columns(
        pl.col("label").replace({"model_1": "model_2", "model_2": "model_1"}),
        pl.col("order").replace({"AB": "BA", "BA": "AB"}),
    )
    names = ["position_flip_rate", "order_preference", "position_pattern"]
    one, other = (
        audit(t, interval=method).results.filter(pl.col("statistic").is_in(names))
        for t in (table, turned)
    )
    assert len(one) == 14
    if method == "auto":
        numbers = one.select("value", "low", "high", "n").fill_null(-1).to_numpy()
        assert np.allclose(
            numbers, other.select("value", "low", "high", "n").fill_null(-1).to_numpy()
        )
    assert one.drop("low", "high").equals(other.drop("low", "high"))


@pytest.mark.parametrize("seed", range(4))
def test_swapping_the_orders_alone_turns_the_preference(seed: int) -> None:
    table = frame(drawn(seed, 40))
    turned = table.with_columns(pl.col("order").replace({"AB": "BA", "BA": "AB"}))
    one, other = (row(audit(t), "order_preference", grader="g") for t in (table, turned))
    assert one["value"] == pytest.approx(1 - other["value"])
    assert one["low"] == pytest.approx(1 - other["high"])
    flips = [row(audit(t), "position_flip_rate", grader="g") for t in (table, turned)]
    assert flips[0] == flips[1]


def test_the_order_of_rows_and_names_do_not_matter() -> None:
    table = frame(drawn(1, 30))
    order = list(range(len(table)))
    random.Random(1).shuffle(order)
    assert audit(table).results.equals(audit(table[order]).results)


def test_the_tallies_of_two_halves_add_up() -> None:
    table = frame(drawn(2, 40))
    half = pl.col("response") < "r020"
    whole, first, second = (
        [p.tally for p in parts(scenes(read(t))[0])]
        for t in (table, table.filter(half), table.filter(~half))
    )
    for one, a, b in zip(whole, first, second, strict=True):
        assert one is not None
        assert a is not None
        assert b is not None
        assert np.array_equal((a + b).rows, one.rows)
        assert np.array_equal((a + b).clusters, one.clusters)


def test_a_frequency_weight_of_two_is_the_pair_twice() -> None:
    verdicts = drawn(3, 25)["g"]
    names = ["position_flip_rate", "order_preference", "position_pattern"]
    weighed = frame({"g": verdicts}).with_columns(weight=pl.lit(2.0))
    once = audit(weighed, weight="weight", weight_kind="frequency").results
    twice = audit(frame({"g": [v for v in verdicts for _ in "12"]})).results
    one, other = (r.filter(pl.col("statistic").is_in(names)) for r in (once, twice))
    assert one.equals(other)


def test_slices_add_up_to_the_whole_and_one_order_alone_has_no_flips() -> None:
    table = frame({"g": PAIRS}).with_columns(
        topic=pl.col("response")
        .str.slice(-1)
        .replace_strict({str(i): "xy"[i % 2] for i in range(10)})
    )
    found = audit(table, by=["topic", "order"])
    whole = patterns(found, "g")
    halves = [patterns(found, "g", f"topic={v}") for v in "xy"]
    assert whole == {p: sum(h[p] for h in halves) for p in whole}
    assert not patterns(found, "g", "order=AB")
    labels = found.results.filter(
        pl.col("statistic") == "label_count", pl.col("slice") == "order=AB"
    )
    assert labels["value"].sum() == 11  # r11 and r12 could not be read with model_1 first


def test_a_fraction_of_weights_moves_shares_and_no_counts() -> None:
    weighed = frame({"g": ["11", "12", "22", "21"]}).with_columns(
        weight=pl.when(pl.col("response") == "r001").then(3.0).otherwise(1.0)
    )
    found = audit(weighed, weight="weight")
    assert row(found, "position_flip_rate", grader="g")["value"] == pytest.approx(4 / 6)
    assert patterns(found, "g")["first"] == 1


# --- what else is said of such labels -----------------------------------------------------------


def test_two_orders_are_no_repeats_of_one_call() -> None:
    found = audit(frame({"g": PAIRS, "h": ["11", "22"] * 6 + ["tt"]}))
    said = row(found, "self_disagreement", grader="g")
    assert said["value"] is None
    assert said["reason"].startswith("no pair has two readable votes in the same order")
    # h never changes with the order: that is no noise of decoding that is missing.
    assert not [f for f in found.findings if f.code == "votes_never_vary"]
    # Without a label under the majority rule: all but r0, r1 and r2 of the 12 with a readable vote.
    assert row(found, "no_majority", grader="g")["value"] == 9


def test_repeats_in_one_order_are_compared_within_it() -> None:
    # AB BA AB BA: r0 repeats itself in both orders, r1 differs in AB, r2 has one vote an order.
    found = audit(frame({"g": ["1212", "12t2", "12"]}))
    said = row(found, "self_disagreement", grader="g")
    assert (said["value"], said["n"]) == (0.5, 2)


def test_nothing_pretends_that_verdicts_on_pairs_are_ordered() -> None:
    found = audit(frame(drawn(5, 60)))
    names = set(found.results["statistic"])
    assert not {n for n in names if n.startswith(("weighted_kappa", "gwet_ac2", "cumulative"))}
    assert not names & {"krippendorff_alpha_ordinal", "krippendorff_alpha_interval", "rate"}
    text = " ".join(TEXT.render(found.document).decode().split())
    assert "What a grader says when the two of a pair change places" in text
    assert "verdicts on pairs have no order" in text
    for word in ("--scale", "lowest first", "neighbour", "reliab"):
        assert word not in text, word


# --- plain functions ----------------------------------------------------------------------------


def test_the_plain_functions_say_what_the_audit_says() -> None:
    ab, ba = ([CLASS.get(v[i]) for v in PAIRS] for i in (0, 1))
    found = audit(frame({"g": PAIRS}))
    assert vd.stats.position_flip_rate(ab, ba) == 0.7
    preference = vd.stats.order_preference(ab, ba, sides=("model_1", "model_2"))
    assert preference == row(found, "order_preference", grader="g")["value"]


def test_the_plain_functions_say_nan_where_nothing_can_be_said() -> None:
    with pytest.warns(UndefinedWarning):
        assert math.isnan(vd.stats.position_flip_rate([None, "a"], ["a", float("nan")]))
    with pytest.warns(UndefinedWarning):
        assert math.isnan(vd.stats.order_preference(["tie"], ["tie"], sides=("a", "b")))
    with pytest.raises(ValueError, match="two lists"):
        vd.stats.position_flip_rate(["a"], ["a", "b"])


# --- the files at hand --------------------------------------------------------------------------


@shared
def test_the_real_pair_files_give_their_flips() -> None:
    found = vd.audit(vd.read(SHARED / "gpt-4_pair.jsonl", SHARED / "gpt-4-turbo_pair.jsonl"))
    # Winners in both orders, counted in the files: gpt-4 22 ×4, 1t ×3, 2t ×3, t2 ×3, t1 ×3, tt ×2, 11, 21,
    # and four with an error; gpt-4-turbo 1t ×3, t2 ×3, 2t ×2, t1, 11 ×2, 22 ×2, tt ×2, 12 ×2, 21, and six
    # with an error.
    assert patterns(found, "gpt-4") == {
        "same": 7,
        "first": 0,
        "second": 1,
        "tie_once": 12,
        "read_once": 4,
    }
    assert patterns(found, "gpt-4-turbo") == {
        "same": 6,
        "first": 2,
        "second": 1,
        "tie_once": 9,
        "read_once": 6,
    }
    assert row(found, "position_flip_rate", grader="gpt-4")["value"] == 13 / 20
    # For a side: 8 + 2 (22, 11), 2 (21), 12 (ties) = 24; for the first place: 4 + 1, 0, 1t 3 and t2 3 = 11.
    one = row(found, "order_preference", grader="gpt-4")
    assert (one["value"], one["n"], one["clusters"]) == (11 / 24, 24, 12)


@shared
def test_agreement_of_two_judges_stands_in_each_order() -> None:
    files = [SHARED / f"{judge}_pair.jsonl" for judge in ("gpt-4", "gpt-4-turbo")]
    found = vd.audit(vd.read(*files, by=["order"]))
    for order in ("AB", "BA"):
        one = row(found, "agreement", grader="gpt-4", other="gpt-4-turbo", slice=f"order={order}")
        assert one["n"] > 15
        assert 0 <= one["value"] <= 1


def test_the_scene_keeps_its_orders_in_memory() -> None:
    scene = scenes(read(frame({"g": PAIRS})))[0]
    assert orders_of(scene) is orders_of(scene)


# --- agreement order by order ---


def test_graders_agree_verdict_by_verdict_in_each_order() -> None:
    # Same order, same verdict: r0 yes yes · r1 yes no · r2 no yes · r3 (one unread) yes · r4 no no.
    found = audit(frame({"a": ["12", "12", "12", "1?", "t1"], "b": ["12", "11", "22", "12", "12"]}))
    agreement = row(found, "order_agreement", grader="a", other="b")
    assert agreement["n"] == 9
    assert agreement["value"] == pytest.approx(5 / 9)
    a = [*"12", *"12", *"12", "1", *"t1"]
    b = [*"12", *"11", *"22", "1", *"12"]
    kappa = row(found, "order_kappa", grader="a", other="b")
    assert kappa["value"] == pytest.approx(cohen_kappa(a, b, ["1", "2", "t"]))


def test_a_grader_agrees_with_its_copy_though_no_pair_has_a_label() -> None:
    texts = ["12", "21", "1t", "t2"]
    found = audit(frame({"a": texts, "b": texts}))
    assert row(found, "order_agreement", grader="a", other="b")["value"] == 1
    assert row(found, "order_kappa", grader="a", other="b")["value"] == pytest.approx(1)
    assert row(found, "agreement", grader="a", other="b")["n"] == 0
    assert "Agreement on verdicts in the same order" in TEXT.render(found.document).decode()


def test_graders_of_different_orders_share_no_verdict() -> None:
    found = audit(frame({"a": ["12", "1?"], "b": ["??", "?2"]}))
    given = row(found, "order_agreement", grader="a", other="b")
    assert given["value"] is None
    assert "same order" in given["reason"]


def test_votes_in_different_orders_are_no_repeats_and_the_reason_says_so() -> None:
    found = audit(frame({"a": ["12", "11", "21"]}))
    assert "in the same order" in row(found, "self_disagreement", grader="a")["reason"]


@shared
def test_judges_of_the_log_agree_on_14_of_38_verdicts() -> None:
    found = vd.audit(vd.read(SHARED / "gpt-4_pair.jsonl", SHARED / "gpt-4-turbo_pair.jsonl"))
    given = row(found, "order_agreement", grader="gpt-4", other="gpt-4-turbo")
    assert (given["n"], given["value"]) == (38, pytest.approx(14 / 38))
