"""DeepEval test runs: both spellings, errors without a score, names that are only counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import InputError
from voirdire.inputs import reader_of
from voirdire.readers.deepeval import READER, sniff
from voirdire.source import Source
from voirdire.wording import plain

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "fmt_deepeval"
NAMES = ("test_run_20261130_011931.json", "evaluation_result_model_dump.json")


@pytest.fixture
def folder() -> Path:
    if not FOLDER.is_dir():
        pytest.skip("the shared logs do not stand beside this repository")
    return FOLDER


def metric(success: Any = True, score: Any = 1.0, **more: Any) -> dict[str, Any]:
    given = {"name": "Relevancy", "threshold": 0.5, "success": success, "score": score}
    return {**given, "evaluationModel": "judge", **more}


def case(name: Any, *metrics: Any, **more: Any) -> dict[str, Any]:
    given = {"name": name, "input": "q", "actualOutput": "a", "success": True}
    return {**given, "metricsData": list(metrics), **more}


def source(*cases: Any, name: str = "run.json", **more: Any) -> Any:
    return Source(name=name, content=json.dumps({"testCases": list(cases), **more}).encode())


def read(*cases: Any, **options: Any) -> vd.Labels:
    return vd.read(source(*cases), **options)


def content_of(name: str, content: bytes) -> Any:
    return Source(name=name, content=content)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def rows(labels: vd.Labels) -> list[tuple[Any, ...]]:
    columns = ["response", "grader", "label", "outcome", "score"]
    return sorted(labels.frame.select(pl.col(columns).cast(pl.String)).rows(), key=str)


# --- the files that DeepEval wrote ---


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_of_every_case_is_read(folder: Path, name: str) -> None:
    labels = vd.read(folder / name)
    assert labels.grader_names == (
        *(f"Correctness (grader-{x}) [GEval]" for x in "abc"),
        "Answer Relevancy",
    )
    assert sorted(labels.frame["response"].unique()) == [f"q0{i}" for i in range(6)]
    assert len(labels.frame) == 24
    models = [labels.by_name[g].facts["model"] for g in labels.grader_names]
    assert models == ["grader-a", "grader-b", "grader-c", "grader-a"]
    assert labels.classes == ("fail", "pass")


def test_counts_are_those_that_the_run_wrote_of_itself(folder: Path) -> None:
    written = json.loads((folder / NAMES[0]).read_text())["metricsScores"]
    frame = vd.read(folder / NAMES[0]).frame.with_columns(pl.col("grader").cast(pl.String))
    for one in written:
        mine = frame.filter(pl.col("grader") == one["metric"])
        assert (mine["label"] == "pass").sum() == one["passes"]
        assert (mine["label"] == "fail").sum() == one["fails"]
        assert (mine["outcome"] == "error").sum() == one["errors"]
        assert [float(s) for s in mine["score"].drop_nulls()] == one["scores"]
    assert sum(one["errors"] for one in written) == 5


def test_both_spellings_give_the_same_labels(folder: Path) -> None:
    first, second = (vd.read(folder / name) for name in NAMES)
    assert rows(first) == rows(second)
    assert first.graders == second.graders
    together = vd.read(folder)
    assert rows(together) == rows(first)
    assert "24 rows repeat a call with the same label" in notices(together)


@pytest.mark.parametrize("name", NAMES)
def test_both_are_audited_without_options(folder: Path, name: str) -> None:
    assert reader_of(Source(name=name, path=folder / name)) is READER
    assert vd.audit(vd.read(folder / name)).results.height


# --- verdicts ---


def test_an_error_without_a_score_is_no_fail() -> None:
    broken = metric(False, None, error="ValueError: no JSON\nsecond line")
    labels = read(case("a", broken), case("b", metric(False, 0.0)))
    assert rows(labels) == [
        ("a", "Relevancy", None, "error", None),
        ("b", "Relevancy", "fail", "label", "0"),
    ]
    assert labels.frame["outcome_reason"].drop_nulls().to_list() == ["ValueError: no JSON"]


def test_an_error_beside_a_score_leaves_the_verdict() -> None:
    labels = read(case("a", metric(True, 0.7, error="a warning")))
    assert rows(labels) == [("a", "Relevancy", "pass", "label", "0.7")]


@pytest.mark.parametrize("success", [None, "yes", 1])
def test_what_is_neither_success_nor_failure_is_unparsed(success: Any) -> None:
    labels = read(case("a", metric(success, None)), case("b", metric()))
    assert labels.frame["outcome"].cast(pl.String).to_list() == ["unparsed", "label"]


def test_the_score_is_the_label_where_it_is_asked_for() -> None:
    cases = (case("a", metric(True, 0.5)), case("b", metric(False, None, error="x")))
    labels = read(*cases, label="score")
    assert labels.frame["label"].cast(pl.String).to_list() == ["0.5", None]
    assert labels.frame["outcome"].cast(pl.String).to_list() == ["label", "error"]


def test_a_skipped_metric_was_not_asked() -> None:
    labels = read(case("a", metric(skipped=True), metric(name="Other")))
    assert labels.grader_names == ("Other",)
    assert "1 metric result was skipped" in notices(labels)


def test_a_case_without_metrics_is_named() -> None:
    labels = read(case("a", metric()), case("b"), case("c", metricsData=None))
    assert labels.responses == 1
    assert "2 test cases have no metric" in notices(labels)


# --- responses and graders ---


def test_counted_names_do_not_join_other_answers() -> None:
    first = source(case("test_case_0", metric()), name="a.json")
    second = source(case("test_case_0", metric(False), actualOutput="b"), name="b.json")
    assert vd.read(first, second).responses == 2
    assert vd.read(first, source(case("test_case_7", metric()), name="c.json")).responses == 1


def test_one_name_of_several_answers_is_several_responses() -> None:
    labels = read(case("a", metric()), case("a", metric(False), actualOutput="b"))
    assert labels.responses == 2
    assert labels.frame["vote"].null_count() == 2


def test_one_case_more_than_once_is_a_vote() -> None:
    labels = read(case("a", metric()), case("a", metric(False)), case("b", metric()))
    found = labels.frame.select("response", "vote", pl.col("label").cast(pl.String)).rows()
    assert found == [("a", "1", "pass"), ("a", "2", "fail"), ("b", "1", "pass")]


def test_one_metric_of_several_models_is_several_graders() -> None:
    labels = read(case("a", metric(), metric(evaluationModel="other")), case("b", metric()))
    assert labels.grader_names == ("Relevancy (judge)", "Relevancy (other)")


def test_conversations_are_read_beside_single_turns() -> None:
    turns = [{"role": "user", "content": "q", "order": 0}]
    talk = {"name": "conversational_test_case_0", "turns": turns, "metricsData": [metric()]}
    labels = vd.read(source(case("a", metric()), conversationalTestCases=[talk]))
    assert labels.responses == 2
    assert set(labels.frame["kind"]) == {"single turn", "conversation"}


def test_the_model_under_test_tells_two_runs_apart() -> None:
    runs = [
        source(case("a", metric(x == "m1")), name=f"{x}.json", hyperparameters={"model": x})
        for x in ("m1", "m2")
    ]
    assert sorted(vd.read(*runs).frame["response"]) == ["m1/a", "m2/a"]


def test_metrics_of_spans_are_named_and_not_read() -> None:
    trace = {"baseSpans": [{"metricsData": [metric(name="inner")]}]}
    labels = read(case("a", metric(), trace=trace))
    assert labels.grader_names == ("Relevancy",)
    assert "metrics on spans inside a trace" in notices(labels)


# --- sniffing and hostile content ---


@pytest.mark.parametrize(
    "content",
    [
        b'{"testCases": [{"name": "a", "label": 1}]}',
        b'{"test_results": [{"name": "a"}]}',
        b'[{"metricsData": []}]',
        b'{"other": {"testCases": [{"metricsData": []}]}}',
        b"",
    ],
)
def test_what_is_not_certainly_deepeval_is_left_to_others(content: bytes) -> None:
    assert sniff(Source(name="r.json", content=content)) is None


@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {"a": 1}, [[]], True])
def test_any_field_may_be_anything(value: Any) -> None:
    for key in case("a"):
        assert read({**case("a", metric()), key: value}, case("b", metric())).responses >= 1
    for key in metric():
        assert read(case("a", {**metric(), key: value}), case("b", metric())).responses >= 1


def test_a_run_without_any_result_is_an_error() -> None:
    with pytest.raises(InputError, match="no label"):
        read(case("a"))
    with pytest.raises(InputError, match="no JSON"):
        vd.read(content_of(name="r.json", content=source(case("a", metric())).data[:-9]))


def test_two_runs_with_other_answers_are_other_responses() -> None:
    first, second = source(case("a", metric())), source(case("a", metric(), actualOutput="b"))
    labels = vd.read(first, content_of("second.json", second.content))
    assert labels.responses == 2
    assert "differ in their outputs" in notices(labels)


def test_two_judges_of_the_same_answers_join() -> None:
    first, second = source(case("a", metric())), source(case("a", metric(name="Tone")))
    labels = vd.read(first, content_of("second.json", second.content))
    assert labels.responses == 1
    assert "differ" not in notices(labels)


def test_both_spellings_of_one_run_are_the_same_responses(folder: Path) -> None:
    assert vd.read(folder).responses == vd.read(folder / NAMES[0]).responses


def test_a_torn_run_is_read_to_the_tear() -> None:
    content = source(case("a", metric()), case("b", metric()), case("c", metric())).content[:-40]
    labels = vd.read(content_of("run.json", content))
    assert labels.responses == 2
    assert "after test case 2: it ends too early" in notices(labels)
