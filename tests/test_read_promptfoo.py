"""promptfoo results: three exports of one run, sets, repeats, failed graders and failed targets."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import InputError
from voirdire.inputs import reader_of
from voirdire.options import Options
from voirdire.readers import promptfoo
from voirdire.readers.promptfoo import READER, sniff
from voirdire.source import Source
from voirdire.wording import plain

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "fmt_promptfoo"
RUBRIC = {"type": "llm-rubric", "metric": "helpful", "value": "Is it helpful?"}


@pytest.fixture
def folder() -> Path:
    if not FOLDER.is_dir():
        pytest.skip("the shared logs do not stand beside this repository")
    return FOLDER


def component(passed: Any = True, score: Any = 1, **more: Any) -> dict[str, Any]:
    assertion = {**RUBRIC, **more.pop("assertion", {})}
    return {"assertion": assertion, "pass": passed, "score": score, "reason": "r", **more}


def result(question: str, *components: Any, **more: Any) -> dict[str, Any]:
    return {
        "gradingResult": {"pass": True, "score": 1, "componentResults": list(components)},
        "vars": {"question": question},
        "provider": {"id": "target-a"},
        "prompt": {"raw": "p", "label": "p"},
        "promptIdx": 0,
        "testIdx": 0,
        "response": {"output": "an answer"},
        "testCase": {"vars": {}},
        "failureReason": 0,
        **more,
    }


def source(*results: Any, name: str = "results.json") -> Any:
    inside = {"version": 3, "timestamp": "t", "prompts": [], "results": list(results)}
    return Source(name=name, content=json.dumps({"evalId": "e", "results": inside}).encode())


def read(*results: Any, **options: Any) -> vd.Labels:
    return vd.read(source(*results), **options)


def content_of(name: str, content: bytes) -> Any:
    return Source(name=name, content=content)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def cells(labels: vd.Labels) -> dict[tuple[Any, ...], Any]:
    columns = ("response", "grader", "vote")
    return {
        tuple(row[c] and str(row[c]) for c in columns): (row["label"], row["outcome"])
        for row in labels.frame.iter_rows(named=True)
    }


# --- the files that promptfoo wrote ---


def test_the_readme_of_the_run_is_what_is_read(folder: Path) -> None:
    labels = vd.read(folder / "results.json")
    assert labels.grader_names == (
        *("helpful/grader-a", "helpful/grader-b", "accuracy/g-eval", "format"),
        *(f"llm-rubric: Is the answer polite? (jury-{i})" for i in (1, 2)),
        "jury",
    )
    # 6 tests, 2 prompts and 2 targets, but one target never answered one question (twice under each prompt).
    assert labels.responses == 6 * 2 * 2 - 2
    assert len(labels.frame) == (48 - 4) * 7
    assert set(labels.frame["vote"].unique()) == {"1", "2"}
    assert labels.frame["cluster"].n_unique() == 6
    assert labels.classes == ("fail", "pass")
    assert "in 4 results the target gave no response" in notices(labels)


def test_failed_graders_are_unparsed_and_nothing_else_is(folder: Path) -> None:
    labels = vd.read(folder / "results.json")
    unread = labels.frame.filter(pl.col("outcome") != "label")
    assert unread["outcome"].cast(pl.String).to_list() == ["unparsed"] * 10
    assert set(unread["grader"].cast(pl.String)) == {"helpful/grader-b"}
    assert unread["label"].null_count() == 10
    assert set(unread["outcome_reason"]) == {"Could not extract JSON from llm-rubric response"}


def test_labels_are_the_verdicts_in_the_file_counted_by_hand(folder: Path) -> None:
    top = json.loads((folder / "results.json").read_text())
    counted: Counter[tuple[str, str]] = Counter()
    for one in top["results"]["results"]:
        for c in (one["gradingResult"] or {"componentResults": []})["componentResults"]:
            metric = c.get("assertion", {}).get("metric")
            if metric and not c.get("metadata", {}).get("graderError"):
                counted[metric, "pass" if c["pass"] else "fail"] += 1
    labels = vd.read(folder / "results.json").frame.filter(pl.col("outcome") == "label")
    found = Counter(
        zip(labels["grader"].cast(pl.String), labels["label"].cast(pl.String), strict=True)
    )
    assert {k: found[k] for k in counted} == dict(counted)


def test_json_and_jsonl_give_the_same_labels(folder: Path) -> None:
    assert cells(vd.read(folder / "results.json")) == cells(vd.read(folder / "results.jsonl"))


def test_the_csv_gives_the_scores_of_the_same_calls(folder: Path) -> None:
    table = vd.read(folder / "results.csv")
    whole = cells(vd.read(folder / "results.json", label="score"))
    from_csv = cells(table)
    named = {"helpful/grader-a", "helpful/grader-b", "accuracy/g-eval", "format", "jury"}
    assert from_csv.keys() == {k for k in whole if k[1] in named}
    differ = {k for k in from_csv if from_csv[k] != whole[k]}
    # All that differs are the graders that failed: the CSV has them as a score of 0.
    assert len(differ) == 10
    assert {(from_csv[k], whole[k]) for k in differ} == {(("0", "label"), (None, "unparsed"))}
    assert "A grader that failed stands in it as score 0" in notices(table)
    assert "in 4 results the target gave no response" in notices(table)


def test_a_folder_holds_one_run_once(folder: Path) -> None:
    labels = vd.read(folder)
    alone = cells(vd.read(folder / "results.json"))
    assert cells(labels) == alone
    assert "308 rows repeat a call with the same label" in notices(labels)
    assert "results.csv" in notices(labels)


def test_the_set_is_made_from_its_members(folder: Path) -> None:
    labels = vd.read(folder / "results.json")
    assert labels.by_name["jury"].derived_from == labels.grader_names[4:6]
    assert labels.by_name["helpful/grader-a"].facts["model"] == "grader-a"
    assert labels.by_name["format"].facts["kind"] == "code"


@pytest.mark.parametrize("name", ["results.json", "results.jsonl", "results.csv"])
def test_every_export_is_audited_without_options(folder: Path, name: str) -> None:
    assert reader_of(Source(name=name, path=folder / name)) is READER
    assert vd.audit(vd.read(folder / name)).results.height


# --- items, targets, prompts and repeats ---


def test_the_item_is_the_variables_and_not_the_number_of_the_test() -> None:
    labels = read(result("a", component()), result("b", component(), testIdx=0))
    again = read(result("b", component(), testIdx=7), result("a", component(), testIdx=3))
    assert labels.responses == 2
    assert set(labels.frame["response"]) == set(again.frame["response"])
    assert not any(r == "a" for r in labels.frame["response"])  # no text of a prompt travels


def test_an_id_among_the_variables_is_the_item() -> None:
    both = [
        result("q", component(), vars={"id": f"item-{i}", "question": f"q{i}"}) for i in range(3)
    ]
    assert set(read(*both).frame["response"]) == {"item-0", "item-1", "item-2"}
    same = [result("q", component(), vars={"id": "x", "question": f"q{i}"}) for i in range(3)]
    assert read(*same).responses == 3  # an id of several items tells none apart


def test_target_and_prompt_are_part_of_a_response_where_there_are_several() -> None:
    labels = read(
        result("a", component()),
        result("a", component(), provider={"id": "target-b"}, promptIdx=1),
        result("a", component(), promptIdx=2, prompt={"raw": "q", "label": "{{other}} text"}),
    )
    assert labels.responses == 3
    assert labels.frame["cluster"].n_unique() == 1
    assert not any("{{" in r for r in labels.frame["response"])


def test_targets_of_two_files_are_told_apart() -> None:
    first = source(result("a", component()), name="a.json")
    second = source(result("a", component(False), provider={"id": "target-b"}), name="b.json")
    labels = vd.read(first, second)
    assert sorted(r.split("/")[0] for r in labels.frame["response"]) == ["target-a", "target-b"]


def test_repeats_are_votes_in_the_order_of_the_tests() -> None:
    labels = read(
        result("a", component(False), testIdx=1),
        result("a", component(True), testIdx=0),
        result("b", component(True), testIdx=2),
    )
    found = {(r, v): x for (r, _, v), (x, _) in cells(labels).items()}
    assert len(found) == 3
    twice = next(r for r, v in found if v == "2")
    assert (found[twice, "1"], found[twice, "2"]) == ("pass", "fail")


def test_a_written_number_of_the_repeat_goes_first() -> None:
    labels = read(
        result("a", component(False), testIdx=0, repeatIndex=1),
        result("a", component(True), testIdx=1, repeatIndex=0),
    )
    assert {v: x for (_, _, v), (x, _) in cells(labels).items()} == {"1": "pass", "2": "fail"}


def test_repeats_on_other_answers_are_named() -> None:
    labels = read(
        result("a", component()), result("a", component(), response={"output": "another"})
    )
    assert "votes on answers that are not the same" in notices(labels)


def test_tests_of_one_item_with_other_assertions_are_no_repeats_of_one_grader() -> None:
    other = component(assertion={"metric": "polite"})
    labels = read(result("a", component()), result("a", other, testIdx=1))
    assert Counter(labels.frame["grader"].cast(pl.String)) == {"helpful": 1, "polite": 1}


# --- graders ---


def graders(*results: Any) -> set[str]:
    return set(read(*results).grader_names)


def by(provider: Any, **more: Any) -> dict[str, Any]:
    return component(assertion={"provider": provider, **more})


def test_a_metric_of_several_graders_has_their_names() -> None:
    assert graders(result("a", by("openai:x"), by({"id": "openai:y", "label": "why"}))) == {
        "helpful (openai:x)",
        "helpful (why)",
    }


def test_graders_that_differ_only_in_their_options_are_told_apart() -> None:
    two = [by({"id": "openai:x", "config": {"temperature": t}}) for t in (0, 1)]
    assert len(graders(result("a", *two))) == 2


def test_assertions_that_share_a_metric_are_named_by_what_they_ask() -> None:
    two = [component(assertion={"type": "contains", "value": v}) for v in ("x", "y")]
    assert graders(result("a", *two), result("b", *two)) == {
        "helpful: contains: x",
        "helpful: contains: y",
    }


def test_a_value_of_its_own_in_each_test_makes_no_graders() -> None:
    results = [
        result(q, component(assertion={"type": "equals", "metric": None, "value": q}))
        for q in ("Paris", "8", "Hamlet")
    ]
    labels = read(*results)
    assert labels.grader_names == ("equals",)
    assert "read as one grader" in notices(labels)


def test_the_grader_of_a_test_is_that_of_its_options() -> None:
    test = {"options": {"provider": "openai:judge"}}
    labels = read(result("a", component(), testCase=test))
    assert labels.by_name["helpful"].facts["model"] == "openai:judge"


def test_a_human_rating_is_a_person() -> None:
    human = component(assertion={"type": "human", "metric": None, "value": None})
    assert read(result("a", component(), human)).by_name["human"].person


def jury(passed: bool, *members: Mapping[str, Any], score: float = 0.5) -> list[Any]:
    parent = {
        "pass": passed,
        "score": score,
        "reason": "Aggregate",
        "componentResults": list(members),
        "metadata": {"assertionSet": {"type": "assert-set", "metric": "jury"}},
    }
    return [parent, *members]


BROKEN = {"metadata": {"graderError": True}, "reason": "API error: 503"}


def member(name: str, passed: bool, **more: Any) -> dict[str, Any]:
    return component(passed, assertion={"metric": None, "provider": name}, **more)


def test_members_of_a_set_stand_once_whether_or_not_they_are_repeated() -> None:
    both = jury(True, member("a", True), member("b", False))
    for components in (both, both[:1]):
        labels = read(result("q", *components))
        assert len(labels.frame) == 3
        assert labels.by_name["jury"].derived_from == tuple(
            f"llm-rubric: Is it helpful? ({name})" for name in "ab"
        )


@pytest.mark.parametrize(("passed", "outcome"), [(True, "label"), (False, "unparsed")])
def test_a_set_that_failed_with_an_unread_member_is_unread(passed: bool, outcome: str) -> None:
    labels = read(
        result("q", *jury(passed, member("a", passed), member("b", False, **BROKEN))),
        result("p", component()),
    )
    frame = labels.frame.with_columns(pl.col("grader", "outcome").cast(pl.String))
    found = dict(frame.filter(pl.col("grader") != "helpful").select("grader", "outcome").rows())
    assert found["jury"] == outcome
    assert sorted(found.values()) == sorted(["label", "error", outcome])


@pytest.mark.parametrize(
    ("reason", "marked", "outcome"),
    [
        ("Could not extract JSON from llm-rubric response", True, "unparsed"),
        ("Could not extract JSON from llm-rubric response", False, "unparsed"),
        ("No output", False, "empty"),
        ("API error: 503", True, "error"),
        ("HTTP 503", True, "error"),
        ("Error: the code in the answer is wrong", False, "label"),
    ],
)
def test_a_failed_grader_is_an_outcome_and_no_fail(reason: str, marked: bool, outcome: str) -> None:
    metadata = {"graderError": True} if marked else {}
    broken = component(False, 0, reason=reason, metadata=metadata)
    row = read(result("a", broken), result("b", component())).frame.filter(pl.col("vote").is_null())
    assert sorted(row["outcome"].cast(pl.String)) == sorted([outcome, "label"])
    assert row["label"].null_count() == (outcome != "label")


def test_grading_that_ended_with_an_error_is_an_error_of_each_grader() -> None:
    asked = {"assert": [RUBRIC, {"type": "contains", "value": "x", "metric": "format"}]}
    broken = result("a", gradingResult=None, failureReason=2, error="boom\nat x", testCase=asked)
    labels = read(broken, result("b", component()))
    errors = labels.frame.filter(pl.col("outcome") == "error")
    assert sorted(errors["grader"].cast(pl.String)) == ["format", "helpful"]
    assert set(errors["outcome_reason"]) == {"boom"}


def test_a_failed_target_is_not_graded() -> None:
    broken = result(
        "a", gradingResult=None, failureReason=2, error="503", response={"error": "503"}
    )
    labels = read(broken, result("b", component()), result("c"))
    assert labels.responses == 1
    assert "in 1 result the target gave no response" in notices(labels)
    assert "1 result has no assertion" in notices(labels)


def test_metadata_of_a_test_is_a_tag_where_it_is_a_word() -> None:
    test = {"metadata": {"category": "geo", "goal": "say how to do harm", "reason": "x", "n": 2}}
    labels = read(result("a", component(), testCase=test))
    tags = {t.name for t in labels.tags}
    assert {"category", "n", "reason (log)", "score"} <= tags
    assert "goal" not in tags


def test_the_score_is_the_label_where_it_is_asked_for() -> None:
    labels = read(result("a", component(True, 0.5)), result("b", component(True, 1)), label="score")
    assert labels.classes == ("0.5", "1")


# --- CSV ---

HEADER = [
    "Description",
    "q",
    "[t] p",
    "Status",
    "Score",
    "Named Scores",
    "Grader Reason",
    "Comment",
]


def table(*rows: str, header: list[str] = HEADER) -> Any:
    return Source(name="r.csv", content="\n".join([",".join(header), *rows]).encode())


def test_a_csv_without_metrics_has_one_grader() -> None:
    labels = vd.read(table(",a,x,PASS,1.00,,,", ",b,x,FAIL,0.00,,bad,", ",c,,ERROR,0.00,,,"))
    assert labels.grader_names == ("all assertions",)
    assert sorted(labels.frame["label"].cast(pl.String)) == ["fail", "pass"]
    assert "no assertion has a metric" in notices(labels)


def test_a_ragged_row_is_named_and_left_out() -> None:
    labels = vd.read(table(",a,x,PASS,1.00,,,", ",b,x,FAIL"))
    assert labels.responses == 1
    assert "line 3: 4 cells instead of 8" in notices(labels)


def test_the_older_csv_without_columns_of_metrics_is_read() -> None:
    row = ',a,x,PASS,1.00,"{""m"":0.5}",,'
    assert vd.read(table(row)).frame.select("grader", "label").cast(pl.String).rows() == [
        ("m", "0.5")
    ]


# --- sniffing and hostile content ---


@pytest.mark.parametrize(
    "content",
    [
        b'{"results": {"version": 3}}',
        b'{"results": [{"id": 1, "label": "a"}]}',
        b'{"id": 1, "grader": "g", "label": "a"}\n',
        b'{"gradingResult": 1}',
        b"q,Status,Score\na,PASS,1\n",
        b'{"a":' * 20_000,
        b"",
        b"\x89PNG",
    ],
)
def test_what_is_not_certainly_promptfoo_is_left_to_others(content: bytes) -> None:
    assert sniff(Source(name="r.json", content=content)) is None


def test_a_torn_last_line_is_named_and_the_rest_is_read() -> None:
    whole = [json.dumps(result(q, component())) for q in "abc"]
    content = "\n".join(whole)[:-40].encode()
    labels = vd.read(content_of(name="r.jsonl", content=content))
    assert labels.responses == 2
    assert "it is the last line, so it may be torn" in notices(labels)


@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {"a": 1}, [[]], True])
def test_any_field_may_be_anything(value: Any) -> None:
    whole = result("a", component())
    for key in whole:
        assert read({**whole, key: value}, result("b", component())).responses >= 1
    for key in component():
        assert read(result("a", {**component(), key: value}, component())).responses == 1


def test_a_run_without_any_verdict_is_an_error() -> None:
    with pytest.raises(InputError, match="no label"):
        read(result("a"))


# --- several runs, torn documents, size ---


def answered(said: str, **more: Any) -> dict[str, Any]:
    return result("q", component(**more), response={"output": said})


def test_two_runs_with_other_answers_are_other_responses() -> None:
    labels = vd.read(source(answered("one")), source(answered("two"), name="second.json"))
    assert labels.responses == 2
    assert "differ in their outputs" in notices(labels)
    assert labels.frame["cluster"].n_unique() == 1  # one item still


def test_two_judges_of_the_same_answers_join() -> None:
    other = {"assertion": {"metric": "polite"}}
    labels = vd.read(source(answered("one")), source(answered("one", **other), name="second.json"))
    assert labels.responses == 1
    assert labels.grader_names == ("helpful", "polite")
    assert "differ" not in notices(labels)


def test_json_jsonl_and_csv_of_one_run_are_the_same_responses(folder: Path) -> None:
    labels = vd.read(folder / "results.json", folder / "results.jsonl")
    assert labels.responses == vd.read(folder / "results.json").responses
    scopes = [
        one.scope
        for name in ("results.json", "results.jsonl", "results.csv")
        for one in promptfoo.read(content_of(name, (folder / name).read_bytes()), Options())
    ]
    assert scopes[0] == scopes[1] == scopes[2]


@pytest.mark.parametrize("behind", ["", '{"gradingResult": {"pa', "]", "]}}x"])
def test_a_torn_document_is_read_to_the_tear(behind: str) -> None:
    whole = source(result("a", component()), result("b", component(False))).content.decode()
    content = whole[: whole.rindex("]")] + ("" if behind[:1] in ("", "]") else ", ") + behind
    labels = vd.read(content_of("results.json", content.encode()))
    assert labels.responses == 2
    assert "after result 2" in notices(labels)
    assert "behind that place" in notices(labels)


def test_a_document_torn_before_its_first_result_is_an_error() -> None:
    torn = source(result("a", component())).content[:-120]
    with pytest.raises(InputError, match="too early"):
        vd.read(content_of("results.json", torn))


def test_a_character_that_the_tear_cuts_in_two_is_no_other_encoding() -> None:
    content = source(result("a", component()), result("b", reason="x")).content
    torn = content[: content.rindex(b'"reason"') if b'"reason": "x"' in content else -60]
    labels = vd.read(content_of("results.json", torn + '"é'.encode()[:-1]))
    assert labels.responses == 1


def test_a_result_in_which_a_key_has_two_values_is_left_out() -> None:
    content = source(result("a", component()), result("b", component(False))).content
    first, second = content.split(b'"pass": false')
    labels = vd.read(content_of("results.json", first + b'"pass": false, "pass": true' + second))
    assert labels.responses == 1
    assert "the key pass stands there twice" in notices(labels)


def test_results_twice_in_one_document_are_refused() -> None:
    content = source(result("a", component())).content
    twice = content[:-1] + b", " + content[content.index(b'"results"') :]
    with pytest.raises(InputError, match="results stands there twice"):
        vd.read(content_of("results.json", twice))


def test_texts_of_the_log_are_not_kept_in_memory() -> None:
    # 200 results with 50,000 characters in their answers and reasons: 20 MB of text, 400 short rows.
    long = [
        result(
            f"q{i}",
            component(reason="r" * 50_000),
            component(assertion={"metric": "polite"}),
            response={"output": "o" * 50_000},
        )
        for i in range(200)
    ]
    given = source(*long)
    tracemalloc.start()
    try:
        READER.read(given, Options())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < len(given.content) / 2
