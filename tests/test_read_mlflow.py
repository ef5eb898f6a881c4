"""MLflow evaluations: tables, results and traces; sources, expectations, failures, what was overridden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import InputError
from voirdire.inputs import reader_of
from voirdire.readers.mlflow import READER, sniff
from voirdire.source import Source
from voirdire.wording import plain

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "fmt_mlflow"
TABLE, RESULT, TRACES = "eval_results_table.json", "genai_result_df.csv", "genai_search_traces.json"


@pytest.fixture
def folder() -> Path:
    if not FOLDER.is_dir():
        pytest.skip("the shared logs do not stand beside this repository")
    return FOLDER


def feedback(value: Any = "yes", name: str = "judge", **more: Any) -> dict[str, Any]:
    kind, id_ = more.pop("by", ("LLM_JUDGE", "openai:/x"))
    given = {"assessment_name": name, "source": {"source_type": kind, "source_id": id_}}
    return {**given, "feedback": {"value": value}, "valid": True, **more}


def expectation(value: Any, name: str = "judge", **more: Any) -> dict[str, Any]:
    made = feedback(name=name, by=("HUMAN", "alice"), **more)
    del made["feedback"]
    return {**made, "expectation": {"value": value}}


def trace(id_: str, *assessments: Any, **more: Any) -> dict[str, Any]:
    given = {"trace_id": id_, "state": "OK", "request": f"q {id_}", "response": "a"}
    return {**given, "trace_metadata": {}, "assessments": list(assessments), **more}


def source(*traces: Any, name: str = "traces.json") -> Any:
    return Source(name=name, content=json.dumps(list(traces)).encode())


def read(*traces: Any, **options: Any) -> vd.Labels:
    return vd.read(source(*traces), **options)


def content_of(name: str, content: bytes) -> Any:
    return Source(name=name, content=content)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def rows(labels: vd.Labels, *more: str) -> list[tuple[Any, ...]]:
    columns = ["response", "grader", "label", "outcome", *more]
    return sorted(labels.frame.select(pl.col(columns).cast(pl.String)).rows(), key=str)


# --- the files that MLflow wrote ---


def test_traces_and_result_table_give_the_same_labels(folder: Path) -> None:
    traces, table = vd.read(folder / TRACES), vd.read(folder / RESULT)
    assert rows(traces, "outcome_reason") == rows(table, "outcome_reason")
    assert traces.grader_names == ("judge_a", "judge_b")
    assert traces.responses == 6
    assert traces.classes == ("no", "yes")
    assert {g: traces.by_name[g].facts["model"] for g in traces.grader_names} == {
        "judge_a": "mock/judge_a",
        "judge_b": "mock/judge_b",
    }


def test_the_failed_call_is_an_error_of_the_judge_itself(folder: Path) -> None:
    failed = vd.read(folder / TRACES).frame.filter(pl.col("outcome") != "label")
    found = failed.select(pl.col("grader", "outcome", "outcome_reason").cast(pl.String)).rows()
    assert found == [("judge_a", "error", "judge output could not be parsed")]


def test_the_columns_alone_say_the_same_as_the_assessments(folder: Path) -> None:
    frame = pl.read_csv(folder / RESULT, infer_schema=False).drop("assessments")
    labels = vd.read(content_of(name="r.csv", content=frame.write_csv().encode()))
    assert rows(labels) == rows(vd.read(folder / RESULT))


def test_reference_answers_are_no_labels(folder: Path) -> None:
    for name in (TRACES, RESULT):
        labels = vd.read(folder / name)
        assert "Paris" not in labels.classes
        assert "the expectation expected_response is left out" in notices(labels)
    asked = vd.read(folder / TRACES, gold="expected_response")
    assert "expected_response" in asked.grader_names


def test_the_table_of_scores_has_one_missing_score(folder: Path) -> None:
    labels = vd.read(folder / TABLE)
    assert labels.grader_names == ("judge_a_correctness", "judge_b_correctness")
    assert labels.classes == ("1", "3", "4", "5")
    frame = labels.frame.with_columns(pl.col("grader", "label", "outcome").cast(pl.String))
    by_grader = {g: frame.filter(pl.col("grader") == g) for g in labels.grader_names}
    assert by_grader["judge_a_correctness"]["label"].to_list() == ["1", "4", "1", "5", "4", "4"]
    assert by_grader["judge_b_correctness"]["label"].to_list() == ["4", "3", None, "3", "4", "3"]
    assert frame.filter(pl.col("outcome") == "unparsed").height == 1
    assert "does not say which model judged" in notices(labels)


@pytest.mark.parametrize("name", [TABLE, RESULT, TRACES])
def test_every_file_is_audited_without_options(folder: Path, name: str) -> None:
    assert reader_of(Source(name=name, path=folder / name)) is READER
    assert vd.audit(vd.read(folder / name)).results.height


def test_a_folder_joins_the_same_traces(folder: Path) -> None:
    assert "12 rows repeat a call with the same label" in notices(vd.read(folder))


# --- values and failures ---


@pytest.mark.parametrize(
    ("value", "label"), [("yes", "yes"), (True, "1"), (4.0, "4"), (0.25, "0.25"), (["a"], '["a"]')]
)
def test_a_value_is_the_label_as_it_is_spelled(value: Any, label: str) -> None:
    assert rows(read(trace("t", feedback(value)))) == [("t", "judge", label, "label")]


def test_a_dictionary_is_one_grader_a_key() -> None:
    labels = read(trace("t", feedback({"safe": True, "kind": None})))
    assert rows(labels) == [
        ("t", "judge/kind", None, "unparsed"),
        ("t", "judge/safe", "1", "label"),
    ]


@pytest.mark.parametrize(
    ("inside", "outcome"),
    [
        ({"value": None, "error": {"error_code": "X", "error_message": "bad"}}, "error"),
        ({"value": "no", "error": {"error_code": "X"}}, "error"),
        ({"value": None}, "unparsed"),
        ({"value": ""}, "unparsed"),
        ({}, "unparsed"),
        (None, "unparsed"),
    ],
)
def test_feedback_without_a_verdict_is_an_outcome(inside: Any, outcome: str) -> None:
    labels = read(trace("t", {**feedback(), "feedback": inside}), trace("u", feedback()))
    assert rows(labels)[0] == ("t", "judge", None, outcome)


def test_a_trace_that_failed_is_not_graded() -> None:
    labels = read(trace("t", feedback()), trace("u", feedback(), state="ERROR", response=None))
    assert labels.responses == 1
    assert "1 trace ended with an error and without a response" in notices(labels)


# --- sources ---


def test_a_person_and_a_judge_of_one_name_are_two_graders() -> None:
    person = feedback("no", by=("HUMAN", "alice"))
    labels = read(trace("t", feedback(), person), trace("u", feedback()))
    assert labels.grader_names == ("judge (openai:/x)", "judge (alice)")
    assert [g.person for g in labels.graders] == [False, True]


def test_a_failure_of_a_name_that_has_only_failed_is_kept() -> None:
    broken = feedback(by=("CODE", "judge"), feedback={"error": {"error_message": "x"}})
    labels = read(trace("t", broken, feedback(name="other")))
    assert ("t", "judge", None, "error") in rows(labels)


def test_overridden_and_invalid_feedback_is_left_out() -> None:
    old = feedback("no", assessment_id="a-1")
    new = feedback("yes", assessment_id="a-2", overrides="a-1")
    gone = feedback("no", assessment_id="a-3", valid=False)
    labels = read(trace("t", old, new, gone))
    assert rows(labels) == [("t", "judge", "yes", "label")]
    assert "2 assessments are overridden or not valid" in notices(labels)


def test_feedback_more_than_once_is_a_vote_in_the_order_of_time() -> None:
    late = feedback("no", create_time="2026-01-02T00:00:00Z")
    early = feedback("yes", create_time="2026-01-01T00:00:00Z")
    labels = read(trace("t", late, early), trace("u", feedback()))
    assert rows(labels, "vote") == [
        ("t", "judge", "no", "label", "2"),
        ("t", "judge", "yes", "label", "1"),
        ("u", "judge", "yes", "label", "1"),
    ]


def test_spans_under_one_name_are_responses_of_their_own() -> None:
    two = [feedback(value, span_id=span) for value, span in (("yes", "s1"), ("no", "s2"))]
    assert [r[0] for r in rows(read(trace("t", *two)))] == ["t/s1", "t/s2"]


def test_traces_of_one_question_are_a_cluster() -> None:
    labels = read(*(trace(t, feedback(), request="q") for t in "tu"), trace("v", feedback()))
    assert labels.clusters_declared
    assert labels.frame["cluster"].n_unique() == 2
    assert not read(trace("t", feedback()), trace("u", feedback())).clusters_declared


# --- expectations ---


def test_an_expectation_of_the_same_labels_is_gold() -> None:
    labels = read(
        trace("t", feedback("yes"), expectation("no")),
        trace("u", feedback("no"), expectation("no")),
    )
    assert set(labels.grader_names) == {"judge", "gold"}
    assert labels.by_name["gold"].person
    agreement = vd.audit(labels).results.filter(
        (pl.col("statistic") == "agreement") & (pl.col("other") == "gold")
    )
    assert agreement["value"].to_list() == [0.5]


def test_one_expectation_that_is_no_label_makes_all_of_its_name_answers() -> None:
    labels = read(
        trace("t", feedback("yes"), expectation("Paris")),
        trace("u", feedback("no"), expectation("no")),
    )
    assert labels.grader_names == ("judge",)
    assert "left out" in notices(labels)


def test_several_expectations_are_named_and_none_is_chosen() -> None:
    both = (
        feedback(name="a"),
        feedback(name="b"),
        expectation("yes", "a"),
        expectation("yes", "b"),
    )
    labels = read(trace("t", *both))
    assert set(labels.grader_names) == {"a", "b", "a (expectation)", "b (expectation)"}


# --- layouts ---


@pytest.mark.parametrize("layout", ["records", "lines", "columns", "one"])
def test_every_layout_of_traces_is_read(layout: str) -> None:
    traces = [trace(t, feedback()) for t in "tu"]
    columns = {key: {str(i): t[key] for i, t in enumerate(traces)} for key in traces[0]}
    text = {
        "records": json.dumps(traces),
        "lines": "\n".join(map(json.dumps, traces)),
        "columns": json.dumps(columns),
        "one": json.dumps({"info": traces[0], "data": {"spans": []}}),
    }[layout]
    given = content_of(name="t.json", content=text.encode())
    assert sniff(given) is not None
    assert vd.read(given).responses == (1 if layout == "one" else 2)


def table(columns: list[str], *data: list[Any]) -> Any:
    content = json.dumps({"columns": columns, "data": data}).encode()
    return Source(name="eval_results_table.json", content=content)


def test_rows_of_a_table_are_known_by_what_was_asked_and_answered() -> None:
    columns = ["inputs", "outputs", "latency", "m/v1/score"]
    first = table(columns, ["q", "a", 1, 3], ["q", "b", 2, 4])
    labels = vd.read(first)
    assert labels.grader_names == ("m/v1",)
    assert labels.responses == 2
    assert labels.frame["cluster"].n_unique() == 1
    assert not {"q", "a", "b"} & set(labels.frame["response"])
    other = table(["inputs", "outputs", "n/v1/score"], ["q", "b", 3], ["q", "a", 4])
    assert vd.read(first, other).responses == 2


def test_the_same_row_twice_is_a_vote_and_an_id_is_used() -> None:
    labels = vd.read(table(["inputs", "outputs", "m/score"], ["q", "a", 1], ["q", "a", 2]))
    assert labels.frame["vote"].to_list() == ["1", "2"]
    labels = vd.read(table(["id", "inputs", "m/score"], ["x", "q", 1], ["y", "q", 2]))
    assert sorted(labels.frame["response"]) == ["x", "y"]


# --- sniffing and hostile content ---


@pytest.mark.parametrize(
    "content",
    [
        b'{"columns": ["score"], "data": [[1]]}',
        b'{"columns": ["a/score"]}',
        b'[{"trace_id": "t", "spans": []}]',
        b'[{"trace_id": "t", "label": 1}]',
        b"trace_id,label\nt,1\n",
        b"id,judge/value\nt,1\n",
        b"",
    ],
)
def test_what_is_not_certainly_mlflow_is_left_to_others(content: bytes) -> None:
    assert sniff(Source(name="r.json", content=content)) is None


@pytest.mark.parametrize("cell", ["[" * 5_000, "-" * 5_000, "(" * 300, "{'a': '\\d'}", "x"])
def test_a_cell_that_is_no_list_leaves_the_columns(cell: str) -> None:
    content = f'trace_id,judge/value,assessments\nt,yes,"{cell}"\n'.encode()
    assert rows(vd.read(content_of(name="r.csv", content=content))) == [
        ("t", "judge", "yes", "label")
    ]


@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {"a": 1}, [[]], True])
def test_any_field_may_be_anything(value: Any) -> None:
    for key in trace("t"):
        assert read({**trace("t", feedback()), key: value}, trace("u", feedback())).responses >= 1
    for key in feedback():
        assert read(trace("t", {**feedback(), key: value}), trace("u", feedback())).responses >= 1


def test_traces_without_assessments_are_an_error() -> None:
    with pytest.raises(InputError, match="no label"):
        read(trace("t"))
