"""Agreement below the floor, clusters that nobody declared, graders of the graded model's family."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire.checks.same_family import is_of_family
from voirdire.checks.undeclared_clusters import named_like_a_cluster
from voirdire.errors import UndefinedWarning
from voirdire.finding import Finding, State, Strength

CLASS = {"n": "no", "y": "yes"}


def wide(
    labels: Mapping[str, str], tags: Mapping[str, Sequence[str]] | None = None
) -> pl.DataFrame:
    n = len(next(iter(labels.values())))
    return pl.DataFrame(
        {
            "response": [f"r{i:03}" for i in range(n)],
            **(tags or {}),
            **{g: [CLASS.get(c) for c in text] for g, text in labels.items()},
        }
    )


def audit(
    labels: Mapping[str, str], tags: Mapping[str, Sequence[str]] | None = None, **options: Any
) -> vd.Audit:
    read = vd.read(
        wide(labels, tags), layout="wide", scale=["no", "yes"], graders=list(labels), **options
    )
    return vd.audit(read)


def of_code(found: vd.Audit, code: str) -> list[Finding]:
    return [f for f in found.findings if f.code == code]


def said(finding: Finding) -> str:
    return str(finding.record()["sentence"])


def minus(found: vd.Audit, grader: str, other: str = "gold") -> dict[str, Any]:
    rows = found.results.filter(
        pl.col("statistic") == "agreement_minus_constant",
        pl.col("grader") == grader,
        pl.col("other") == other,
        pl.col("slice") == "",
    )
    assert len(rows) == 1
    return rows.row(0, named=True)


# --- below_floor --------------------------------------------------------------------------------

GOLD = "n" * 80 + "y" * 20


def test_the_difference_is_counted_on_the_responses_that_both_labelled() -> None:
    # Gold: 80 no, 20 yes. g could not be read on the first 40 (all no): of the other 60 gold says no
    # on 40, and g agrees on 40 − 10 + 15 = 45. 45/60 − 40/60 = 0.0833.
    g = "." * 40 + "y" * 10 + "n" * 30 + "y" * 15 + "n" * 5
    one = minus(audit({"g": g, "gold": GOLD}), "g")
    assert one["value"] == pytest.approx(5 / 60)
    assert (one["n"], one["clusters"], one["describes"]) == (60, 60, "both")
    # Differences of a response: +1 on 15, −1 on 10, 0 on 35. Jackknife of a mean:
    # s² = (25 − 60·(5/60)²)/59 = 0.4167; half = t(59) × sqrt(s²/60) = 2.0010 × 0.08333.
    half = 2.0010 * math.sqrt((25 - 25 / 60) / 59 / 60)
    assert one["method"] == "jackknife_t"
    assert one["low"] == pytest.approx(5 / 60 - half, abs=1e-4)
    assert one["high"] == pytest.approx(5 / 60 + half, abs=1e-4)


def test_a_grader_far_below_the_floor_is_found_for_certain_against_gold() -> None:
    # g: 40 of gold's 80 no are yes for it, and it hits 10 of 20 yes: agreement 50 %, floor 80 %.
    g = "y" * 40 + "n" * 40 + "y" * 10 + "n" * 10
    (one,) = of_code(audit({"g": g, "gold": GOLD}), "below_floor")
    assert (one.state, one.strength) == (State.FOUND, Strength.CERTAIN)
    assert (one.grader, one.other, one.class_) == ("g", "gold", "no")
    assert "50.0 %" in said(one)
    assert "80.0 %" in said(one)
    assert "30.0 points more" in said(one)
    statistics = [e["statistic"] for e in one.record()["evidence"]]
    assert statistics[:3] == ["agreement_minus_constant", "agreement", "best_constant_agreement"]
    assert "cohen_kappa" in statistics


def test_a_grader_a_little_below_the_floor_may_be_there_by_chance() -> None:
    # 8 of the no missed, 6 of the yes hit: 72 + 6 = 78 against 80; the interval holds zero.
    g = "y" * 8 + "n" * 72 + "y" * 6 + "n" * 14
    (one,) = of_code(audit({"g": g, "gold": GOLD}), "below_floor")
    assert (one.state, one.strength) == (State.FOUND, Strength.INDICATIVE)
    assert "it may be chance" in said(one)


def test_without_an_interval_none_is_said_to_hold_zero() -> None:
    (one,) = of_code(audit({"g": "n", "gold": "y"}), "below_floor")
    assert (one.state, one.strength) == (State.FOUND, Strength.INDICATIVE)
    assert "no interval of the difference (fewer than 3 clusters)" in said(one)
    assert "holds zero" not in said(one)


def test_five_responses_all_on_one_side_are_not_certain() -> None:
    # 5 of 100 worse and none better: t = 0.05 / 0.0219 = 2.28 excludes zero, an exact sign test
    # (2 × 0.5⁵ = 0.0625) does not.
    g = "y" * 5 + "n" * 75 + "n" * 20
    found = audit({"g": g, "gold": GOLD})
    assert minus(found, "g")["high"] < 0
    (one,) = of_code(found, "below_floor")
    assert (one.state, one.strength) == (State.FOUND, Strength.LIKELY)


def test_against_a_reference_it_is_a_difference_between_two_and_never_certain() -> None:
    g = "y" * 40 + "n" * 40 + "y" * 10 + "n" * 10
    (one,) = of_code(audit({"g": g, "r": GOLD}, reference="r"), "below_floor")
    assert (one.state, one.strength) == (State.FOUND, Strength.LIKELY)
    assert "does not tell" in said(one)
    assert "truth" not in said(one)


def test_a_reference_does_not_accuse_people() -> None:
    g = "y" * 40 + "n" * 40 + "y" * 10 + "n" * 10
    assert not of_code(audit({"g": g, "r": GOLD}, reference="r", people=["g"]), "below_floor")


def test_gold_that_is_made_from_a_grader_says_nothing_of_it() -> None:
    labels = {"g": "n" * 78 + "yy" + "y" * 20, "h": GOLD, "gold": GOLD}
    (one,) = of_code(audit(labels, derived_from={"gold": ["h"]}), "below_floor")
    assert (one.state, one.grader) == (State.CLEAR, "g")


def test_a_grader_that_always_gives_the_most_frequent_class_stands_on_the_floor() -> None:
    # FC-22: 45 of 50 refusal; agreement 0.90, best constant answer 0.90, difference exactly 0.
    found = audit({"g": "n" * 50, "gold": "n" * 45 + "y" * 5})
    one = minus(found, "g")
    assert (one["value"], one["low"]) == (0.0, None)  # no interval: nothing varies
    (finding,) = of_code(found, "below_floor")
    assert finding.state is State.CANNOT_TELL
    assert "no more than knowing the most frequent class" in said(finding)


def test_a_grader_above_the_floor_is_clear_without_praise() -> None:
    g = "n" * 78 + "y" * 2 + "y" * 18 + "n" * 2
    (one,) = of_code(audit({"g": g, "gold": GOLD}), "below_floor")
    assert one.state is State.CLEAR
    assert "16" not in one.code
    assert "14.0 points" not in said(one)
    assert "16.0 points" in said(one)  # 96 of 100 against 80
    assert "no praise" in said(one)


def test_without_gold_and_reference_there_is_no_floor() -> None:
    found = audit({"g": "yn" * 20, "h": "ny" * 20})
    assert not of_code(found, "below_floor")
    assert "agreement_minus_constant" not in set(found.results["statistic"])


def test_counts_alone_say_nothing_of_agreement(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("grader,no,yes,total\ng,50,50,100\ngold,80,20,100\n", encoding="utf-8")
    found = vd.audit(vd.read(path, layout="counts", scale=["no", "yes"]))
    assert not of_code(found, "below_floor")
    assert not of_code(found, "undeclared_clusters")
    assert not of_code(found, "same_family")


def test_the_plain_function_of_the_difference() -> None:
    assert vd.stats.agreement_minus_constant("yynn", "yyyn") is not None
    # Gold y y y n: always y agrees on 3/4; the labels y y n n on 3/4.
    assert vd.stats.agreement_minus_constant(list("yynn"), list("yyyn")) == 0
    assert vd.stats.agreement_minus_constant(list("nnnn"), list("yyyn")) == -0.5
    with pytest.warns(UndefinedWarning):
        assert math.isnan(vd.stats.agreement_minus_constant([None], ["a"]))


# --- undeclared_clusters ------------------------------------------------------------------------

LABELS = {"g": "yn" * 30, "h": "yynn" * 15}
TWELVE = [f"p{i // 5}" for i in range(60)]  # 12 values, 5 responses each


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("prompt", True),
        ("Prompt_Text", True),
        ("behaviorID", True),
        ("BEHAVIOUR", True),
        ("core id", True),
        ("session-2", True),
        ("goals", True),
        ("identity", False),
        ("promptly", False),
        ("model", False),
        ("score", False),
        ("12", False),
    ],
)
def test_names_are_matched_by_whole_words_in_any_case(name: str, like: bool) -> None:
    assert named_like_a_cluster(name) is like


def test_a_repeated_prompt_that_is_not_the_cluster_is_found_with_the_flag() -> None:
    (one,) = of_code(audit(LABELS, {"prompt_text": TWELVE}), "undeclared_clusters")
    assert (one.state, one.strength) == (State.FOUND, Strength.LIKELY)
    assert "12 values for 60 responses (5.0 each)" in said(one)
    step = "".join(p if isinstance(p, str) else p.text for p in one.next_step)
    assert "--cluster prompt_text" in step


def test_with_the_flag_it_is_gone() -> None:
    found = audit(LABELS, {"prompt_text": TWELVE}, cluster="prompt_text")
    assert all(f.state is not State.FOUND for f in of_code(found, "undeclared_clusters"))


def test_a_name_with_a_space_is_quoted_in_the_flag() -> None:
    (one,) = of_code(audit(LABELS, {"the prompt": TWELVE}), "undeclared_clusters")
    step = "".join(p if isinstance(p, str) else p.text for p in one.next_step)
    assert "--cluster 'the prompt'" in step


@pytest.mark.parametrize(
    ("tag", "values"),
    [
        ("prompt", [f"p{i % 9}" for i in range(60)]),  # nine values are a class of prompts
        ("prompt", [f"p{i // 2 * 2 if i < 20 else i}" for i in range(60)]),  # 1.2 responses a value
        ("colour", TWELVE),  # not named so
    ],
)
def test_other_columns_are_not_taken_for_clusters(tag: str, values: list[str]) -> None:
    found = of_code(audit(LABELS, {tag: values}), "undeclared_clusters")
    assert all(f.state is State.CLEAR for f in found)


def test_clusters_finer_than_the_prompt_are_found() -> None:
    finer = [f"{p}-{i % 5 // 2}" for i, p in enumerate(TWELVE)]
    tags = {"prompt_text": TWELVE, "pair": finer}
    (one,) = of_code(audit(LABELS, tags, cluster="pair"), "undeclared_clusters")
    assert one.state is State.FOUND
    assert "36 clusters that were declared keep them apart" in said(one)


def test_clusters_coarser_than_the_prompt_or_across_it_are_fine() -> None:
    coarser = [f"c{i // 10}" for i in range(60)]
    across = [f"c{i % 20}" for i in range(60)]
    for clusters in (coarser, across):
        tags = {"prompt_text": TWELVE, "pair": clusters}
        found = of_code(audit(LABELS, tags, cluster="pair"), "undeclared_clusters")
        assert [f.state for f in found] == [State.CLEAR]


def test_a_column_of_the_grader_is_no_cluster() -> None:
    rows = [
        {"response": f"r{i}", "grader": g, "label": "yes", "session": f"{g}{i // 5}"}
        for i in range(60)
        for g in "gh"
    ]
    labels = vd.read(pl.DataFrame(rows), layout="long", scale=["no", "yes"])
    assert not of_code(vd.audit(labels), "undeclared_clusters")


# --- same_family --------------------------------------------------------------------------------

ABOUT = {"g": {"family": "qwen"}, "h": {"family": "llama"}}
TARGETS = ["Qwen3-8B", "gemma-2-9b-it"] * 30


@pytest.mark.parametrize(
    ("target", "family", "same"),
    [
        ("Qwen3-8B", "qwen", True),
        ("gpt-4o", "GPT", True),
        ("meta/Llama_3.1-8B", "llama", True),
        ("codellama-7b", "llama", False),
        ("Llama-3.1-8B", "meta", False),
        ("claude-3", "c", False),
    ],
)
def test_a_family_is_a_word_of_the_models_name(target: str, family: str, same: bool) -> None:
    assert is_of_family(target, family, {}) is same


def test_what_is_declared_of_a_target_goes_before_its_name() -> None:
    assert is_of_family("Llama-3.1-8B", "meta", {"Llama-3.1-8B": {"family": "Meta"}})
    assert is_of_family("m1", "meta", {"targets": {"m1": {"family": "meta"}}})
    assert not is_of_family("qwen-distilled", "qwen", {"qwen-distilled": {"family": "deepseek"}})


@pytest.mark.parametrize("column", ["target", "model", "Target_Model"])
def test_a_grader_of_the_targets_family_is_named_with_the_slice(column: str) -> None:
    (one,) = of_code(audit(LABELS, {column: TARGETS}, about=ABOUT), "same_family")
    assert (one.state, one.strength) == (State.FOUND, Strength.INDICATIVE)
    assert (one.grader, one.slice) == ("g", f"{column}=Qwen3-8B")
    assert "qwen" in said(one)
    assert "30 of the responses" in said(one)
    assert "does not say that it favours" in said(one)


def test_its_rates_in_that_slice_are_the_evidence_where_there_are_any() -> None:
    found = audit(LABELS, {"target": TARGETS}, about=ABOUT, by=["target"])
    (one,) = of_code(found, "same_family")
    evidence = one.record()["evidence"]
    assert {e["statistic"] for e in evidence} == {"rate"}
    assert {(e["grader"], e["slice"]) for e in evidence} == {("g", "target=Qwen3-8B")}


def test_no_family_in_common_is_clear_as_far_as_declared() -> None:
    (one,) = of_code(audit(LABELS, {"target": ["gemma-2-9b-it"] * 60}, about=ABOUT), "same_family")
    assert one.state is State.CLEAR


def test_without_families_or_targets_nothing_is_said() -> None:
    assert not of_code(audit(LABELS, {"target": TARGETS}), "same_family")
    assert not of_code(audit(LABELS, about=ABOUT), "same_family")
    people = audit(LABELS, {"target": TARGETS}, about=ABOUT, people=["g", "h"])
    assert not of_code(people, "same_family")


def test_a_file_about_graders_may_say_the_family_of_a_target(tmp_path: Path) -> None:
    path = tmp_path / "about.toml"
    path.write_text(
        '[graders.g]\nfamily = "meta"\n[graders."Llama-3.1-8B"]\nfamily = "meta"\n',
        encoding="utf-8",
    )
    (one,) = of_code(audit(LABELS, {"target": ["Llama-3.1-8B"] * 60}, about=path), "same_family")
    assert (one.grader, one.slice) == ("g", "target=Llama-3.1-8B")
