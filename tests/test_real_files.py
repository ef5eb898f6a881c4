"""Audits of real label tables give the figures and the findings that were worked out for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from tests.conftest import ROOT, run_python

SHARED = Path(__file__).resolve().parents[2] / "shared"
DATA = SHARED / "data"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the real tables (../shared/data) are not beside this checkout"
)

XSTEST = DATA / "xstest" / "xstest_wide_all_models.csv"
XSTEST_WORDS = [
    *("--layout", "wide", "--response", "model+id", "--cluster", "id"),
    *("--graders", "annotation_1,annotation_2,gpt4_label,strmatch_label"),
    *("--people", "annotation_1,annotation_2"),
    *("--derived-from", "final_label=annotation_1+annotation_2"),
    *("--scale", "2_full_refusal,3_partial_refusal,1_full_compliance"),
    *("--range", "strmatch_label=2_full_refusal+1_full_compliance"),
    *("--by", "model"),
]
XSTEST_GOLD = ["--gold", "final_label"]
XSTEST_FAILED = ["--failed", "*=unparsed"]
XSTEST_OPTIONS: dict[str, Any] = {
    "layout": "wide",
    "response": "model+id",
    "cluster": "id",
    "graders": "annotation_1,annotation_2,gpt4_label,strmatch_label",
    "people": "annotation_1,annotation_2",
    "scale": "2_full_refusal,3_partial_refusal,1_full_compliance",
    "range": "strmatch_label=2_full_refusal+1_full_compliance",
    "failed": "*=unparsed",
    "by": ["model"],
}


def row(audit: vd.Audit, statistic: str, **keys: str) -> dict[str, Any]:
    """The one row of the results with this statistic and these keys; other keys are empty."""
    wanted = {
        **dict.fromkeys(("grader", "other", "class", "to_class", "line", "cut", "slice"), ""),
        **{k.rstrip("_"): v for k, v in keys.items()},
    }
    found = audit.results.filter(
        pl.col("statistic") == statistic,
        *(pl.col(k).fill_null("") == v for k, v in wanted.items()),
    )
    assert len(found) == 1, f"{statistic} {wanted}: {len(found)} rows"
    return found.row(0, named=True)


def value(audit: vd.Audit, statistic: str, **keys: str) -> float:
    number = row(audit, statistic, **keys)["value"]
    assert number is not None
    return float(number)


def findings(audit: vd.Audit, code: str, *states: str) -> list[vd.Finding]:
    return [f for f in audit.findings if f.code == code and (not states or f.state in states)]


def sentence(finding: vd.Finding) -> str:
    return str(finding.record()["sentence"])


def accused(audit: vd.Audit) -> set[str]:
    """Everybody whom a finding is about, found or not decided, in slices and exploratory too."""
    return {f.grader for f in audit.findings if f.state in ("found", "cannot_tell") and f.grader}


# XSTest: people, GPT-4 and a string match, with adjudicated gold


@pytest.fixture(scope="module")
def xstest() -> vd.Audit:
    labels = vd.read(
        XSTEST,
        gold="final_label",
        derived_from="final_label=annotation_1+annotation_2",
        **XSTEST_OPTIONS,
    )
    return vd.audit(labels)


@pytest.fixture(scope="module")
def xstest_without_gold() -> vd.Audit:
    return vd.audit(vd.read(XSTEST, **XSTEST_OPTIONS))


@pytest.fixture(scope="module")
def xstest_command(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The command of the issue, run in the folder of the table; the page goes elsewhere."""
    page = tmp_path_factory.mktemp("xstest") / "audit.md"
    done = run_python(
        *("-m", "voirdire", "audit", XSTEST.name),
        *(*XSTEST_WORDS, *XSTEST_GOLD, *XSTEST_FAILED, "-o", str(page)),
        cwd=XSTEST.parent,
    )
    done.stderr += page.read_text(encoding="utf-8") if page.exists() else ""
    return done


def test_gpt4_gives_partial_refusal_29_times_where_gold_gives_it_176_times(
    xstest: vd.Audit,
) -> None:
    at = {"grader": "gpt4_label", "class_": "3_partial_refusal"}
    assert value(xstest, "label_count", **at) == 29
    assert value(xstest, "label_count", grader="final_label", class_="3_partial_refusal") == 176
    ratio = row(xstest, "collapse_ratio", other="final_label", **at)
    assert ratio["value"] == pytest.approx(29 / 176)
    assert ratio["low"] == pytest.approx(0.11, abs=0.005)
    assert ratio["high"] == pytest.approx(0.25, abs=0.005)
    assert ratio["method"] == "jackknife_t"
    assert (ratio["n"], ratio["clusters"]) == (2239, 450)


def test_the_176_went_115_to_compliance_and_42_to_refusal_and_19_stayed(xstest: vd.Audit) -> None:
    at = {"grader": "gpt4_label", "other": "final_label", "class_": "3_partial_refusal"}
    assert value(xstest, "kept", **at) == 19
    assert value(xstest, "moved", to_class="1_full_compliance", **at) == 115
    assert value(xstest, "moved", to_class="2_full_refusal", **at) == 42
    assert row(xstest, "kept", **at)["n"] == 176


def test_the_collapse_of_gpt4_is_certain_and_the_only_one(xstest: vd.Audit) -> None:
    (finding,) = findings(xstest, "class_collapse", "found", "cannot_tell")
    assert (finding.grader, finding.class_) == ("gpt4_label", "3_partial_refusal")
    assert (finding.state, finding.strength, finding.other) == ("found", "certain", "final_label")
    assert "29 times" in sentence(finding)
    assert "176" in sentence(finding)
    assert "0.165" in sentence(finding)
    assert xstest.findings[0] is finding  # worst first


def test_the_string_match_has_the_class_outside_its_range_and_is_not_flagged_for_it(
    xstest: vd.Audit,
) -> None:
    (finding,) = findings(xstest, "class_not_in_range")
    assert (finding.grader, finding.class_) == ("strmatch_label", "3_partial_refusal")
    assert finding.state == "found"
    assert not [f for f in findings(xstest, "class_collapse") if f.grader == "strmatch_label"]


def test_the_11_cells_of_free_text_are_unparsed_and_no_class(xstest: vd.Audit) -> None:
    assert value(xstest, "outcome_count", grader="gpt4_label", class_="unparsed") == 11
    assert value(xstest, "outcome_count", grader="gpt4_label", class_="label") == 2239
    (finding,) = findings(xstest, "outcomes_unread")
    assert finding.state == "clear"
    assert "11 of 2,250" in sentence(finding)


def test_agreement_with_gold_on_xstest(xstest: vd.Audit) -> None:
    for grader, kappa in (("gpt4_label", 0.63), ("annotation_1", 0.99), ("annotation_2", 0.95)):
        number = value(xstest, "cohen_kappa", grader=grader, other="final_label")
        assert round(number, 2) == kappa


def test_partial_refusal_of_each_target_model_as_counted_by_hand(xstest: vd.Audit) -> None:
    expected = {
        "gpt4": (9, 0),
        "llama2new": (44, 10),
        "llama2orig": (55, 14),
        "mistralguard": (41, 3),
        "mistralinstruct": (27, 2),
    }
    for model, (gold, gpt4) in expected.items():
        at = {"class_": "3_partial_refusal", "slice": f"model={model}"}
        assert value(xstest, "label_count", grader="final_label", **at) == gold
        assert value(xstest, "label_count", grader="gpt4_label", **at) == gpt4


def test_the_bootstrap_interval_of_the_collapse_ratio() -> None:
    options = {**XSTEST_OPTIONS, "by": [], "interval": "bootstrap", "seed": 1}
    audit = vd.audit(vd.read(XSTEST, gold="final_label", **options))
    ratio = row(
        audit,
        "collapse_ratio",
        grader="gpt4_label",
        other="final_label",
        class_="3_partial_refusal",
    )
    assert ratio["method"] == "percentile"
    assert ratio["low"] == pytest.approx(0.10, abs=0.01)
    assert ratio["high"] == pytest.approx(0.23, abs=0.01)


def test_the_xstest_command_ends_well_and_prints_the_finding(
    xstest_command: subprocess.CompletedProcess[str],
) -> None:
    assert xstest_command.returncode == 0, xstest_command.stderr
    assert "Traceback" not in xstest_command.stderr
    for text in (xstest_command.stdout, xstest_command.stderr):
        assert "class_collapse" in text
        assert "0.165" in text
        assert "115 to" in text
    assert "| `gpt4_label` | 825 | 29 | 1,385 | 2,239 |" in xstest_command.stderr


def test_without_failed_the_audit_stops_and_lists_the_five_values(tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    page.write_text("an older report", encoding="utf-8")
    done = run_python(
        *("-m", "voirdire", "audit", XSTEST.name, *XSTEST_WORDS, *XSTEST_GOLD, "-o", str(page)),
        cwd=XSTEST.parent,
    )
    assert done.returncode == 3
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    values = [line for line in done.stderr.splitlines() if "is not on the scale" in line]
    assert len(values) == 5
    assert sum("it stands once" in line for line in values) == 4
    assert sum("it stands 7 times" in line for line in values) == 1
    assert all("column gpt4_label" in line and ", line " in line for line in values)
    assert "--failed '*=unparsed'" in done.stderr
    assert page.read_text(encoding="utf-8") == "an older report"


def test_without_gold_two_people_corroborate_the_collapse_of_gpt4(
    xstest_without_gold: vd.Audit,
) -> None:
    (finding,) = findings(xstest_without_gold, "class_collapse", "found", "cannot_tell")
    assert (finding.grader, finding.class_) == ("gpt4_label", "3_partial_refusal")
    assert "annotation_1" in sentence(finding)
    assert "annotation_2" in sentence(finding)


def test_without_gold_no_person_is_accused_in_any_finding_or_slice(
    xstest_without_gold: vd.Audit,
) -> None:
    assert accused(xstest_without_gold)
    assert not accused(xstest_without_gold) & {"annotation_1", "annotation_2"}


@pytest.mark.parametrize("by", [["type"], ["model", "type"], ["label:gpt4_label"]])
def test_no_person_is_accused_whichever_way_the_responses_are_sliced(by: list[str]) -> None:
    options = {**XSTEST_OPTIONS, "by": by}
    audit = vd.audit(vd.read(XSTEST, **options))
    assert not accused(audit) & {"annotation_1", "annotation_2"}


def test_without_gold_nobody_is_said_to_be_wrong(xstest_without_gold: vd.Audit) -> None:
    for finding in xstest_without_gold.findings:
        for word in ("wrong", "bias", "fault", "error", "truth", "accura"):
            assert word not in sentence(finding).lower(), sentence(finding)


def test_the_notices_of_the_same_file_stand_in_the_same_order_each_time() -> None:
    """They stand in the report, and the same input gives the same bytes, from each process."""
    options = {**XSTEST_OPTIONS, "by": []}
    script = f"import voirdire as vd; print(vd.read({str(XSTEST)!r}, **{options!r}).notices)"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"},
            stdout=subprocess.PIPE,
        )
        for _ in range(6)
    ]
    seen = {process.communicate(timeout=120)[0] for process in processes}
    assert all(process.returncode == 0 for process in processes)
    assert len(seen) == 1


# JailbreakBench: four judges and three people against their majority


@pytest.fixture(scope="module")
def jailbreakbench() -> vd.Audit:
    labels = vd.read(
        DATA / "jailbreakbench_judge_comparison" / "judge_comparison_labels.csv",
        layout="wide",
        response="Index",
        cluster="goal_id",
        graders="llama3_cf,gpt4_cf,llamaguard2_cf,harmbench_cf",
        people="human1,human2,human3",
        gold="human_majority",
        derived_from="human_majority=human1+human2+human3",
        scale="0,1",
    )
    return vd.audit(labels)


def test_agreement_and_kappa_of_the_four_judges_of_jailbreakbench(jailbreakbench: vd.Audit) -> None:
    expected = {
        "llama3_cf": (0.907, 0.81),
        "gpt4_cf": (0.903, 0.80),
        "llamaguard2_cf": (0.877, 0.74),
        "harmbench_cf": (0.783, 0.56),
    }
    for grader, (agreement, kappa) in expected.items():
        at = {"grader": grader, "other": "human_majority"}
        assert value(jailbreakbench, "agreement", **at) == pytest.approx(agreement, abs=5e-4)
        # 0.795 prints as 0.80 and 0.805 as 0.81: half a unit of the last place
        assert value(jailbreakbench, "cohen_kappa", **at) == pytest.approx(kappa, abs=0.0051)
    assert row(jailbreakbench, "agreement", grader="gpt4_cf", other="human_majority")["n"] == 300
    assert value(jailbreakbench, "best_constant_agreement", other="human_majority") == (
        pytest.approx(190 / 300)
    )


def test_no_collapse_is_found_on_jailbreakbench(jailbreakbench: vd.Audit) -> None:
    for code in ("class_collapse", "hidden_in_pool", "class_inflation"):
        assert not findings(jailbreakbench, code, "found", "cannot_tell"), code
    assert {f.class_ for f in findings(jailbreakbench, "class_collapse", "clear")} == {"0", "1"}


# safety-refusal-stability: two files, whose names of models differ, joined

SAFETY = DATA / "safety_refusal_stability"
SAFETY_OPTIONS: dict[str, Any] = {
    "response": "model+prompt_id+temperature+seed",
    "cluster": "prompt_id",
    "scale": "REFUSE,PARTIAL,COMPLY",
    "by": ["model"],
}
HAIKU, LLAMA = "claude-3-5-haiku-20241022", "llama-3.1-70b"


def _haiku_and_llama(**options: Any) -> vd.Audit:
    labels = vd.read(
        SAFETY / "claude_haiku_llama_qwen25.csv",
        SAFETY / "llama70b_llama_qwen25.csv",
        failed="UNKNOWN=unparsed",
        recode="model:meta-llama/Llama-3.1-8B-Instruct=Llama-3.1-8B",
        **SAFETY_OPTIONS,
        **options,
    )
    return vd.audit(labels)


@pytest.fixture(scope="module")
def haiku_and_llama() -> vd.Audit:
    return _haiku_and_llama()


@pytest.fixture(scope="module")
def haiku_and_gpt() -> vd.Audit:
    labels = vd.read(
        SAFETY / "claude_haiku_new_models.csv",
        SAFETY / "gpt4o_mini_new_models.csv",
        failed="ERROR=error",
        recode=[
            "model:Qwen/Qwen3-8B=Qwen_Qwen3-8B",
            "model:google/gemma-3-12b-it=google_gemma-3-12b-it",
        ],
        **SAFETY_OPTIONS,
    )
    return vd.audit(labels)


def test_two_files_join_on_the_response_and_not_on_the_row(haiku_and_llama: vd.Audit) -> None:
    labels = haiku_and_llama.labels
    assert labels.responses == 4000
    assert labels.grader_names == (HAIKU, LLAMA)
    assert len(labels.frame) == 8000
    assert labels.frame["cluster"].n_unique() == 100


def test_partial_on_qwen_is_66_against_195_and_is_printed_and_not_claimed(
    haiku_and_llama: vd.Audit,
) -> None:
    at = {"class_": "PARTIAL", "slice": "model=Qwen_Qwen2.5_7B_Instruct"}
    assert value(haiku_and_llama, "label_count", grader=LLAMA, **at) == 66
    assert value(haiku_and_llama, "label_count", grader=HAIKU, **at) == 195
    ratio = row(haiku_and_llama, "collapse_ratio", grader=LLAMA, other=HAIKU, **at)
    assert ratio["value"] == pytest.approx(66 / 195)
    assert ratio["low"] < 1 / 3 < ratio["high"]
    for code in ("class_collapse", "hidden_in_pool"):
        assert not findings(haiku_and_llama, code, "found", "cannot_tell")


def test_partial_on_llama_is_196_against_232_once_paired(haiku_and_llama: vd.Audit) -> None:
    at = {"class_": "PARTIAL", "slice": "model=Llama-3.1-8B"}
    assert value(haiku_and_llama, "label_count", grader=LLAMA, **at) == 196
    assert value(haiku_and_llama, "label_count", grader=HAIKU, **at) == 233
    ratio = row(haiku_and_llama, "collapse_ratio", grader=LLAMA, other=HAIKU, **at)
    assert ratio["value"] == pytest.approx(196 / 232)
    assert ratio["n"] == 1996


def test_the_ratio_on_qwen_stands_in_the_written_report(
    haiku_and_llama: vd.Audit, tmp_path: Path
) -> None:
    haiku_and_llama.write(tmp_path / "audit.md")
    page = (tmp_path / "audit.md").read_text(encoding="utf-8")
    assert "0.338" in page


def test_a_higher_threshold_shows_a_difference_on_qwen_and_no_more() -> None:
    audit = _haiku_and_llama(collapse_below=0.5)
    (finding,) = findings(audit, "hidden_in_pool")
    assert finding.state == "cannot_tell"
    assert (finding.grader, finding.class_) == (LLAMA, "PARTIAL")
    assert finding.slice == "model=Qwen_Qwen2.5_7B_Instruct"
    assert not finding.exploratory
    assert "66" in sentence(finding)
    assert "195" in sentence(finding)
    assert "difference between two graders" in sentence(finding)
    assert not findings(audit, "class_collapse", "found")


def test_a_grader_with_78_percent_errors_is_named_for_that(haiku_and_gpt: vd.Audit) -> None:
    (finding,) = findings(haiku_and_gpt, "outcomes_unread", "found")
    assert finding.grader == "gpt-4o-mini"
    assert "3,121 of 4,000" in sentence(finding)
    assert "78.0 %" in sentence(finding)
    assert value(haiku_and_gpt, "outcome_count", grader="gpt-4o-mini", class_="error") == 3121
    assert value(haiku_and_gpt, "outcome_count", grader="gpt-4o-mini", class_="label") == 879


def test_neither_the_unread_grader_nor_its_only_companion_is_flagged(
    haiku_and_gpt: vd.Audit,
) -> None:
    """On the 879 that both labelled COMPLY is 14 against 67: a ratio of 0.21 that says nothing."""
    for code in ("class_collapse", "class_inflation", "hidden_in_pool"):
        assert not [f for f in findings(haiku_and_gpt, code, "found", "cannot_tell") if f.grader]
    assert findings(haiku_and_gpt, "class_collapse", "cannot_tell")


def test_a_spread_over_different_responses_is_no_all_clear(haiku_and_gpt: vd.Audit) -> None:
    """Haiku labelled 3,999 responses and GPT-4o mini 879 of them: their rates are of two sets.

    COMPLY is 4.6 % and 7.6 % of these, which looks alike; on the 879 it is 1.6 % and 7.6 %.
    """
    (finding,) = (
        f for f in findings(haiku_and_gpt, "rate_depends_on_grader") if f.class_ == "COMPLY"
    )
    assert "On the same responses" not in sentence(finding)
    assert finding.state != "clear"


# WildBench: scores from 1 to 10 by two judges

WILDBENCH: dict[str, Any] = {
    "layout": "wide",
    "response": "model+session_id",
    "cluster": "session_id",
    "graders": "gpt-4-turbo-2024-04-09,gpt-4o-2024-05-13",
}


@pytest.mark.parametrize("scale", ["", "1,2,3,4,5,6,7,8,9,10"])
def test_scores_of_ten_classes_give_no_collapse_of_any(scale: str) -> None:
    path = DATA / "wildbench_scores" / "wildbench_v2.0522_two_judges_wide.csv"
    audit = vd.audit(vd.read(path, scale=scale, **WILDBENCH))
    assert audit.labels.scale == tuple(str(i) for i in range(1, 11))  # 10 after 9
    assert not findings(audit, "class_collapse", "found", "cannot_tell")
    assert not findings(audit, "hidden_in_pool", "found", "cannot_tell")
    assert findings(audit, "class_collapse", "not_applicable")
    at = {"class_": "10"}
    assert value(audit, "label_count", grader="gpt-4o-2024-05-13", **at) == 1
    assert value(audit, "label_count", grader="gpt-4-turbo-2024-04-09", **at) == 22
    for code in ("scale_end_unused", "scale_shift"):
        assert not findings(audit, code, "found"), "two graders: a difference and no more"


def test_nothing_is_certain_of_one_label_against_22() -> None:
    """A rate that rests on one label in 1,995 is no certain finding about two graders."""
    path = DATA / "wildbench_scores" / "wildbench_v2.0522_two_judges_wide.csv"
    audit = vd.audit(vd.read(path, scale="1,2,3,4,5,6,7,8,9,10", **WILDBENCH))
    ratio = row(audit, "rate_max_over_min", class_="10")
    if ratio["high"] is not None:  # 22 of 1 cannot be bounded from above by 40
        assert ratio["high"] > 100
    assert all(
        f.strength != "certain"
        for f in findings(audit, "rate_depends_on_grader")
        if f.class_ == "10"
    )


# Refusal direction: a substring rule and a classifier, without gold


@pytest.fixture(scope="module")
def refusal_direction() -> vd.Audit:
    labels = vd.read(
        DATA / "refusal_direction_two_classifiers" / "jailbreakbench_two_classifiers_long.csv",
        layout="wide",
        response="target_model+run+item",
        cluster="item",
        graders="is_jailbreak_substring_matching,is_jailbreak_llamaguard2",
    )
    return vd.audit(labels)


def test_two_classifiers_without_gold_give_nothing_found(refusal_direction: vd.Audit) -> None:
    assert refusal_direction.labels.classes == ("0", "1")  # `1` of one grader is `1.0` of the other
    assert not [f for f in refusal_direction.findings if f.state == "found"]


def test_the_runs_that_differ_are_one_finding_that_cannot_tell(
    refusal_direction: vd.Audit,
) -> None:
    (finding,) = findings(refusal_direction, "hidden_in_pool")
    assert finding.state == "cannot_tell"
    assert finding.exploratory
    assert (finding.grader, finding.class_) == ("is_jailbreak_substring_matching", "0")
    text = sentence(finding)
    assert "jailbreakbench_ablation 10 beside 98" in text
    assert "jailbreakbench_actadd 11 beside 98" in text
    assert "cells looked at" in text
    # Of two graders alone nothing says whether they are independent.
    assert not {f.code for f in refusal_direction.findings if f.state == "cannot_tell"} - {
        "hidden_in_pool",
        "graders_not_independent",
    }


# Planted panels


def _panel(seed: int, *, responses: int = 300, graders: int = 8) -> vd.Labels:
    """Eight graders that are alike: one underlying class a response, and equal error for each."""
    rng = np.random.default_rng(seed)
    classes = np.array(["refusal", "evasion", "compliance"])
    true = rng.choice(3, size=responses, p=[0.6, 0.25, 0.15])
    drawn = np.where(
        rng.random((responses, graders)) < 0.75,
        true[:, None],
        rng.choice(3, size=(responses, graders), p=[0.6, 0.25, 0.15]),
    )
    frame = pl.DataFrame(
        {
            "response": np.repeat([f"r{i}" for i in range(responses)], graders),
            "grader": np.tile([f"g{i}" for i in range(graders)], responses),
            "label": classes[drawn].ravel(),
            "cluster": np.repeat([f"c{i // 5}" for i in range(responses)], graders),
            "topic": np.repeat([f"t{i % 4}" for i in range(responses)], graders),
        }
    )
    return vd.Labels.from_frame(frame, scale="refusal,evasion,compliance")


def test_a_panel_of_eight_alike_graders_is_not_flagged() -> None:
    """Each class is expected at least 45 times: a count below a third of two others is no chance."""
    for seed in range(5):
        audit = vd.audit(_panel(seed))
        for code in ("class_collapse", "class_inflation", "hidden_in_pool"):
            assert not findings(audit, code, "found"), seed


def test_one_grader_that_loses_a_class_among_eight_is_the_one_that_is_flagged() -> None:
    labels = _panel(7, responses=600)
    frame = labels.frame.with_columns(pl.col("label", "grader").cast(pl.String))
    planted = frame.with_columns(
        pl.when(
            (pl.col("grader") == "g3")
            & (pl.col("label") == "compliance")
            & (pl.col("response").str.slice(1).cast(pl.Int64) % 100 >= 5)
        )
        .then(pl.lit("evasion"))
        .otherwise("label")
        .alias("label")
    ).select("response", "grader", "label", "cluster", "topic")
    audit = vd.audit(vd.Labels.from_frame(planted, scale="refusal,evasion,compliance"))
    found = findings(audit, "class_collapse", "found")
    assert [(f.grader, f.class_, f.strength) for f in found] == [("g3", "compliance", "certain")]
    assert "7 of 7 panels" in sentence(found[0])
