"""Real tables of categorical labels: every file that has them is audited, or said to be none.

XSTest with gold, JailbreakBench and the two-file joins stand in ``test_real_files.py``.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from tests.test_bad_input import Done
from tests.test_bad_input import audit as command
from voirdire.errors import InputError
from voirdire.wording import plain

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the real tables (../shared/data) are not beside this checkout"
)

DICES = DATA / "dices_350"
CROWD = DICES / "dices_350_crowdsourced_text_blanked.json"
EXPERT = DICES / "dices_350_expert_text_blanked.json"
WILDBENCH = DATA / "wildbench_scores" / "wildbench_v2.0522_two_judges_wide.csv"
ALPACA = (
    DATA
    / "alpaca_eval_annotations"
    / "gpt4_1106_preview_vs_gpt-3.5-turbo-0301_three_annotators_long.csv"
)
HARMBENCH = DATA / "harmbench_human_consensus" / "harmbench_human_labels.csv"
COUNCIL = DATA / "refusalbench_council_aggregate" / "adjudicated_20_prompts.csv"
PILOT = DATA / "refusalbench_council_aggregate" / "pilot_categorization_long.csv"
XSTEST = DATA / "xstest" / "xstest_wide_all_models.csv"
JAILBREAKBENCH = DATA / "jailbreakbench_judge_comparison" / "judge_comparison_labels.csv"
ARENA = DATA / "cje_arena_probe" / "clone_probe.jsonl"


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


def states(audit: vd.Audit, code: str) -> set[str]:
    return {str(f.state) for f in audit.findings if f.code == code}


def sentences(audit: vd.Audit, code: str = "") -> str:
    found = (f for f in audit.findings if not code or f.code == code)
    return "\n".join(str(f.record()["sentence"]) for f in found)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def pages(audit: vd.Audit, folder: Path) -> str:
    """The report in text and in Markdown, one after the other."""
    written = []
    for suffix in ("txt", "md", "html"):
        path = folder / f"audit.{suffix}"
        audit.write(path)
        written.append(path.read_text(encoding="utf-8"))
    for page in written:
        assert "nan" not in page.lower().replace("dominan", "").split()
    return "\n".join(written[:2])


def accused(audit: vd.Audit) -> set[str]:
    """Everybody whom a finding is about, found or not decided, in slices and exploratory too."""
    return {f.grader for f in audit.findings if f.state in ("found", "cannot_tell") and f.grader}


# DICES-350: 123 raters by position, and one expert


@pytest.fixture(scope="module")
def crowd() -> vd.Audit:
    return vd.audit(vd.read(CROWD))


def test_the_123_raters_of_dices_are_people_and_their_majority_is_made_from_them(
    crowd: vd.Audit,
) -> None:
    labels = crowd.labels
    assert (labels.responses, len(labels.graders)) == (350, 124)
    assert all(g.person for g in labels.graders)
    assert len(labels.by_name["majority_human"].derived_from) == 123
    assert labels.classes == ("No", "Yes", "Unsure")
    assert "positions in a list" in notices(labels)


def test_the_labels_of_dices_are_counted_as_they_stand_in_the_file(crowd: vd.Audit) -> None:
    # 123 raters: No 26,292, Yes 14,064, Unsure 2,694 of 43,050; the majority: No 270, Yes 80
    counts = crowd.results.filter(
        (pl.col("statistic") == "label_count") & (pl.col("grader") != "majority_human")
    )
    totals = {c: float(n) for c, n in counts.group_by("class").agg(pl.col("value").sum()).rows()}
    assert totals == {"No": 26292, "Yes": 14064, "Unsure": 2694}
    for class_, n in (("No", 270), ("Yes", 80), ("Unsure", 0)):
        assert row(crowd, "label_count", grader="majority_human", class_=class_)["value"] == n


def test_no_collapse_rule_is_applied_to_124_graders_without_gold_and_shares_are_shown(
    crowd: vd.Audit,
) -> None:
    assert states(crowd, "class_collapse") == {"not_applicable"}
    assert "more than 20 graders" in sentences(crowd, "class_collapse")
    shares = crowd.results.filter(pl.col("statistic") == "label_share")
    assert len(shares) == 124 * 3
    assert not len(crowd.results.filter(pl.col("statistic") == "collapse_ratio"))


def test_the_report_on_124_graders_shows_40_of_them_and_counts_the_rest(
    crowd: vd.Audit, tmp_path: Path
) -> None:
    text = pages(crowd, tmp_path)
    assert len(text) < 80_000
    assert "rater 040" in text
    assert "rater 001" in text


def test_the_majority_of_the_raters_is_in_no_panel_that_scores_a_rater(crowd: vd.Audit) -> None:
    scored = crowd.results.filter(pl.col("statistic") == "consensus_agreement")
    value = dict(scored.select("grader", "value").rows())
    assert value.get("majority_human") is None
    assert sum(v is not None for v in value.values()) == 123


def test_the_expert_of_dices_is_one_grader_and_nobody_can_tell_whether_a_class_is_missing() -> None:
    audit = vd.audit(vd.read(EXPERT))
    assert audit.labels.grader_names == ("expert 001",)
    assert row(audit, "label_count", grader="expert 001", class_="Yes")["value"] == 175
    assert states(audit, "class_collapse") == {"cannot_tell"}
    assert "one grader and no gold" in sentences(audit, "class_collapse")


def test_the_majority_of_123_raters_as_gold_has_a_report(tmp_path: Path) -> None:
    audit = vd.audit(vd.read(CROWD, gold="majority_human"))
    assert row(audit, "best_constant_agreement", other="majority_human")["value"] == 270 / 350
    pages(audit, tmp_path)


def test_both_files_of_dices_join_on_the_conversation_with_the_expert_as_gold() -> None:
    labels = vd.read(CROWD, EXPERT, gold="expert 001", graders="majority_human,rater 003")
    assert labels.responses == 350
    audit = vd.audit(labels)
    agreement = row(audit, "agreement", grader="majority_human", other="expert 001")
    assert agreement["n"] == 350
    # counted in the two files: the same label on 229 of 350 conversations
    assert agreement["value"] == pytest.approx(229 / 350)


# WildBench: two judges, scores 1 to 10 on 1,995 responses in 333 sessions


@pytest.fixture(scope="module")
def wildbench() -> vd.Audit:
    return vd.audit(
        vd.read(
            WILDBENCH,
            response="model+session_id",
            cluster="session_id",
            graders="gpt-4-turbo-2024-04-09,gpt-4o-2024-05-13",
            scale=[str(i) for i in range(1, 11)],
        )
    )


def test_wildbench_weighted_kappas_agree_with_a_plain_computation(wildbench: vd.Audit) -> None:
    table = pl.read_csv(WILDBENCH)
    a = table["gpt-4-turbo-2024-04-09"].to_numpy().astype(float)
    b = table["gpt-4o-2024-05-13"].to_numpy().astype(float)
    at = {"grader": "gpt-4-turbo-2024-04-09", "other": "gpt-4o-2024-05-13"}
    apart = a[:, None] - b[None, :]
    for kind, power in (("linear", 1), ("quadratic", 2)):
        # one less the mean disagreement of the pairs over that of all crossings of the two columns
        wanted = 1 - (abs(a - b) ** power).mean() / (abs(apart) ** power).mean()
        found = row(wildbench, f"weighted_kappa_{kind}", **at)
        assert found["value"] == pytest.approx(wanted, abs=1e-12)
        assert found["low"] < wanted < found["high"]
        assert (found["n"], found["clusters"]) == (1995, 333)
    assert row(wildbench, "cohen_kappa", **at)["value"] == pytest.approx(0.303, abs=5e-4)


def test_on_ten_classes_no_collapse_is_claimed_and_the_shift_is_told_without_blame(
    wildbench: vd.Audit, tmp_path: Path
) -> None:
    assert states(wildbench, "class_collapse") == {"not_applicable"}
    assert states(wildbench, "scale_shift") == {"cannot_tell"}
    assert "nothing says which is off" in sentences(wildbench, "scale_shift")
    text = pages(wildbench, tmp_path)
    assert "0.303" in text


# AlpacaEval: preferences of three annotators, one of them fractional

ALPACA_OPTIONS: dict[str, Any] = {
    "response": "item",
    "grader": "annotator",
    "label": "preference",
    "scale": "1,2",
}


def test_a_fractional_preference_is_an_unknown_label_and_the_error_names_round(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError) as error:
        vd.read(ALPACA, **ALPACA_OPTIONS)
    message = str(error.value)
    assert "weighted_alpaca_eval_gpt4_turbo" in message
    assert "is not on the scale" in message
    assert "582 more" in message  # 602 spellings, of which 20 are shown
    assert "--round" in message
    words = "--response item --grader annotator --label preference --scale 1,2 -o a.json"
    done: Done = command(str(ALPACA), *shlex.split(words), cwd=tmp_path)
    assert done.returncode == 3
    assert not list(tmp_path.iterdir())


def test_rounded_preferences_are_audited() -> None:
    audit = vd.audit(vd.read(ALPACA, round=True, **ALPACA_OPTIONS))
    weighted = "weighted_alpaca_eval_gpt4_turbo"
    table = pl.read_csv(ALPACA).filter(pl.col("annotator") == weighted)
    # one pair of answers is a tie, 1.5, which --round brings to 2 (halves to even)
    second = int((table["preference"] >= 1.5).sum())
    assert second == 72
    assert row(audit, "label_count", grader=weighted, class_="2")["value"] == second
    assert row(audit, "rate", grader=weighted, class_="2")["value"] == pytest.approx(second / 805)
    assert states(audit, "class_collapse") == {"clear"}


@pytest.mark.parametrize(
    ("option", "outcome"),
    [({"missing": "1.5"}, "missing"), ({"failed": "1.5=unparsed"}, "unparsed")],
)
def test_a_tie_is_no_class_where_the_user_says_so_before_rounding(
    option: dict[str, str], outcome: str
) -> None:
    audit = vd.audit(vd.read(ALPACA, round=True, **option, **ALPACA_OPTIONS))
    weighted = "weighted_alpaca_eval_gpt4_turbo"
    assert row(audit, "outcome_count", grader=weighted, class_=outcome)["value"] == 1
    assert row(audit, "label_count", grader=weighted, class_="2")["value"] == 71


def test_a_preference_that_is_not_there_is_missing_and_no_class(tmp_path: Path) -> None:
    """The copy has all 2,415 preferences; three of them are blanked here, as upstream has some."""
    frame = pl.read_csv(ALPACA, infer_schema=False)
    blank = pl.int_range(pl.len()) < 3
    frame = frame.with_columns(pl.when(~blank).then(pl.col("preference")).alias("preference"))
    frame.write_csv(tmp_path / "a.csv")
    audit = vd.audit(vd.read(tmp_path / "a.csv", round=True, **ALPACA_OPTIONS))
    first = frame["annotator"][0]
    assert row(audit, "outcome_count", grader=first, class_="missing")["value"] == 3
    assert row(audit, "rate", grader=first, class_="2")["n"] == 802


# Pooled labels: what several graders were made into


@pytest.mark.parametrize(
    ("path", "pooled"), [(HARMBENCH, "human_consensus"), (COUNCIL, "modal_compliance")]
)
def test_a_table_of_pooled_labels_is_said_to_have_no_single_graders(
    path: Path, pooled: str
) -> None:
    with pytest.raises(InputError) as error:
        vd.read(path)
    message = str(error.value)
    assert "no labels of single graders" in message
    assert "How far graders differ cannot be said from it" in message
    assert f"--label {pooled}" in message


def test_the_consensus_of_harmbench_alone_is_one_grader_of_which_little_can_be_told() -> None:
    options = {"response": "idx", "label": "human_consensus", "cluster": "behavior_id"}
    labels = vd.read(HARMBENCH, grader_name="human_consensus", scale="0,1", **options)
    audit = vd.audit(labels)
    rate = row(audit, "rate", grader="human_consensus", class_="1")
    assert (rate["value"], rate["n"], rate["clusters"]) == (270 / 596, 596, 298)
    assert states(audit, "class_collapse") == {"cannot_tell"}
    assert not [f for f in audit.findings if f.state == "found"]
    assert not len(audit.results.filter(pl.col("other").fill_null("") != ""))


def test_the_council_of_refusalbench_is_described_as_one_grader_over_20_prompts() -> None:
    labels = vd.read(
        COUNCIL,
        response="prompt_id+model+trial_idx",
        label="modal_compliance",
        grader_name="council",
        scale="direct_refusal,indirect_refusal,partial_compliance,compliance",
        off_scale="non_responsive",
    )
    audit = vd.audit(labels)
    rate = row(audit, "rate", grader="council", class_="compliance")
    assert (rate["value"], rate["clusters"]) == (944 / 2000, 20)
    assert states(audit, "few_clusters") == {"found"}
    assert states(audit, "class_collapse") == {"cannot_tell"}


def test_where_every_label_is_one_class_kappa_is_undefined_with_a_reason(tmp_path: Path) -> None:
    audit = vd.audit(vd.read(PILOT, response="prompt_id", grader="judge_id", label="compliance"))
    assert states(audit, "one_class_only") == {"found"}
    kappas = audit.results.filter(
        pl.col("statistic").is_in(["cohen_kappa", "scott_pi", "krippendorff_alpha_nominal"])
    )
    assert len(kappas) == 3 + 3 + 1
    assert kappas["value"].null_count() == len(kappas)
    assert all("one class" in r for r in kappas["reason"])
    assert "not defined: one class used" in pages(audit, tmp_path)


# XSTest by type and model, without gold: people are accused by nobody


@pytest.mark.parametrize("by", [["type"], ["model", "label:strmatch_label"]])
@pytest.mark.parametrize("people", ["annotation_1,annotation_2", "annotation_1,annotation_2,final"])
def test_slices_of_xstest_accuse_no_person(by: list[str], people: str) -> None:
    wide = {
        "layout": "wide",
        "response": "model+id",
        "cluster": "id",
        "scale": "2_full_refusal,3_partial_refusal,1_full_compliance",
        "range": "strmatch_label=2_full_refusal+1_full_compliance",
        "failed": "*=unparsed",
    }
    graders = "annotation_1,annotation_2,gpt4_label,strmatch_label"
    if people.endswith("final"):
        wide["derived_from"] = "final_label=annotation_1+annotation_2"
        graders += ",final_label"
        people += "_label"
    audit = vd.audit(vd.read(XSTEST, graders=graders, people=people, by=by, **wide))
    assert "gpt4_label" in accused(audit)
    assert not accused(audit) & set(people.split(","))


# JailbreakBench without gold: people in the panel, and a majority that is made from them


@pytest.fixture(scope="module")
def jailbreakbench() -> vd.Audit:
    return vd.audit(
        vd.read(
            JAILBREAKBENCH,
            layout="wide",
            response="Index",
            cluster="goal_id",
            graders="llama3_cf,gpt4_cf,llamaguard2_cf,harmbench_cf,human1,human2,human3,"
            "human_majority",
            people="human1,human2,human3,human_majority",
            derived_from="human_majority=human1+human2+human3",
            scale="0,1",
        )
    )


def test_nobody_is_flagged_on_jailbreakbench_and_no_person_is_accused(
    jailbreakbench: vd.Audit,
) -> None:
    assert states(jailbreakbench, "class_collapse") <= {"clear"}
    assert not accused(jailbreakbench) & {"human1", "human2", "human3", "human_majority"}


def test_the_majority_of_three_people_scores_none_of_them_and_no_two_of_them_score_it(
    jailbreakbench: vd.Audit,
) -> None:
    majority = jailbreakbench.labels.by_name["human_majority"]
    assert all(
        majority.related(jailbreakbench.labels.by_name[h]) for h in ("human1", "human2", "human3")
    )
    # human1 beside the strict majority of the other two people and four judges, 4 of 6; by hand:
    table = pl.read_csv(JAILBREAKBENCH)
    others = ["human2", "human3", "llama3_cf", "gpt4_cf", "llamaguard2_cf", "harmbench_cf"]
    ones = table.select(pl.sum_horizontal(others)).to_series()
    decided = (ones >= 4) | (ones <= 2)
    same = ((ones >= 4).cast(pl.Int64) == table["human1"]).filter(decided)
    found = row(jailbreakbench, "consensus_agreement", grader="human1")
    assert found["n"] == int(decided.sum())
    assert found["value"] == pytest.approx(int(same.sum()) / len(same))


# Arena: scores between 0 and 1 are numbers, and no classes of a compliance scale


def test_columns_of_continuous_scores_are_not_taken_for_labels_unasked() -> None:
    with pytest.raises(InputError, match="not clear which columns hold labels"):
        vd.read(ARENA)


def test_continuous_scores_are_audited_as_numbers_without_a_collapse_rule(tmp_path: Path) -> None:
    labels = vd.read(ARENA, layout="wide", response="prompt_id", graders="judge_score,oracle_label")
    audit = vd.audit(labels)
    assert states(audit, "class_collapse") == {"not_applicable"}
    assert "numbers of more than four values" in sentences(audit, "class_collapse")
    assert not [f for f in audit.findings if f.state == "found"]
    assert row(audit, "krippendorff_alpha_interval")["value"] is not None
    pages(audit, tmp_path)
