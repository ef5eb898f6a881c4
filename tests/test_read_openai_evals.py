"""OpenAI Evals records: verdicts by sample, the grading model from the spec, rows in any order."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import InputError
from voirdire.inputs import reader_of
from voirdire.readers.openai_evals import READER, sniff
from voirdire.source import Source
from voirdire.wording import plain

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "fmt_openai_evals"
GRADED, MATCHED = FOLDER / "modelgraded.jsonl", FOLDER / "match.jsonl"
real = pytest.mark.skipif(not GRADED.is_file(), reason="the real logs are not beside this checkout")


def spec(*models: str, run: str = "r", graded: str = "rubric", class_: str = "") -> dict[str, Any]:
    class_ = class_ or ("classify:ModelBasedClassify" if graded else "match:Match")
    return {
        "spec": {
            "completion_fns": list(models),
            "eval_name": "e.dev.v0",
            "run_config": {
                "eval_spec": {
                    "cls": f"evals.elsuite.{class_}",
                    "args": {"modelgraded_spec": graded} if graded else {},
                }
            },
            "run_id": run,
        }
    }


def event(sample: Any, kind: str, run: str = "r", **data: Any) -> dict[str, Any]:
    return {"run_id": run, "event_id": 0, "sample_id": sample, "type": kind, "data": data}


def judged(sample: str, choice: Any, *, run: str = "r", calls: int = 2) -> list[dict[str, Any]]:
    call = event(sample, "sampling", run, prompt="secret", sampled=["secret"])
    return [call] * calls + [event(sample, "metrics", run, choice=choice, score=0.0)]


def content(*records: Any) -> bytes:
    return "\n".join(r if isinstance(r, str) else json.dumps(r) for r in records).encode()


def read(*records: Any, **options: Any) -> vd.Labels:
    return vd.read(source(name="r.jsonl", content=content(*records)), **options)


def source(name: str, content: bytes) -> Any:
    return Source(name=name, content=content)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def cells(labels: vd.Labels) -> set[tuple[str, str, str | None, str]]:
    frame = labels.frame.select(
        pl.col(c).cast(pl.String) for c in ("response", "grader", "label", "outcome")
    )
    return set(frame.rows())


REPORT = {"final_report": {"score": 0.5}, "run_id": "r"}


@pytest.mark.parametrize(
    "record", [spec("a"), REPORT, event("s", "match", correct=True), judged("s", "yes")[0]]
)
def test_a_record_is_recognised_by_any_of_its_rows(record: dict[str, Any]) -> None:
    source = Source(name="x", content=content("torn {", record))
    claim = sniff(source)
    assert claim is not None
    assert claim.sure
    assert reader_of(source) is READER


@pytest.mark.parametrize(
    "record",
    [
        {"spec": {"name": "x"}},
        {"final_report": {}, "rows": []},
        {"sample_id": 1, "label": "a", "grader": "g"},
    ],
)
def test_other_files_are_not_claimed(record: dict[str, Any]) -> None:
    assert sniff(Source(name="x.jsonl", content=content(record))) is None


def test_the_last_completion_function_grades() -> None:
    labels = read(spec("target", "judge"), *judged("s", "yes"))
    assert cells(labels) == {("s", "rubric@judge", "yes", "label")}
    assert labels.graders[0].facts == {"model": "judge", "prompt": "rubric"}
    assert labels.frame["target"].to_list() == ["target"]
    assert not labels.notices


def test_a_model_that_grades_itself_is_said_to_do_so() -> None:
    labels = read(spec("one"), *judged("s", "yes"))
    assert labels.graders[0].facts["model"] == "one"
    assert "one grades its own answers, as far as the spec says" in notices(labels)


def test_a_choice_that_could_not_be_read_is_unparsed_and_never_the_lowest() -> None:
    labels = read(spec("t", "j"), *judged("a", "__invalid__"), *judged("b", None))
    assert cells(labels) == {
        ("a", "rubric@j", None, "unparsed"),
        ("b", "rubric@j", None, "unparsed"),
    }
    assert set(labels.frame["outcome_reason"]) == {"__invalid__", "no value"}
    assert "choice_score" not in labels.frame.columns


def test_the_order_of_the_rows_changes_nothing() -> None:
    rows = [
        *(spec("t", "j"), REPORT, *judged("a", "yes"), *judged("b", "no")),
        *(spec("u", "j", run="q"), *judged("a", "no", run="q")),
    ]
    straight = read(*rows)
    assert straight.responses == 3
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        assert cells(read(*rows)) == cells(straight)


def test_two_runs_are_other_responses_to_the_same_samples() -> None:
    labels = read(
        *(spec("t", "j"), *judged("a", "yes")),
        *(spec("t", "j", run="q"), *judged("a", "no", run="q")),
    )
    assert {r for r, _, _, _ in cells(labels)} == {"r/a", "q/a"}


def test_answers_that_were_sampled_anew_are_not_shared_by_two_graders() -> None:
    labels = read(
        *(spec("t", "j"), *judged("a", "yes")),
        *(spec("t", "k", run="q"), *judged("a", "no", run="q")),
    )
    assert {(r, g) for r, g, _, _ in cells(labels)} == {("r/a", "rubric@j"), ("q/a", "rubric@k")}


def test_two_graders_of_answers_that_the_samples_brought_along_share_responses() -> None:
    labels = read(
        *(spec("j"), *judged("a", "yes", calls=1)),
        *(spec("k", run="q"), *judged("a", "no", run="q", calls=1)),
    )
    assert cells(labels) == {
        ("a", "rubric@j", "yes", "label"),
        ("a", "rubric@k", "no", "label"),
    }
    assert not labels.notices


def test_a_match_is_a_label_of_the_evals_class() -> None:
    labels = read(
        spec("t", graded=""),
        event("a", "match", correct=True, picked="8"),
        event("b", "match", correct=False, picked=None),
        event("c", "match", correct=None),
    )
    assert cells(labels) == {
        ("a", "Match", "1", "label"),
        ("b", "Match", "0", "label"),
        ("c", "Match", None, "unparsed"),
    }


def test_other_metrics_are_graders_by_their_names() -> None:
    labels = read(
        spec("t", graded="", class_="basic.fuzzy_match:FuzzyMatch"),
        event("a", "match", correct=True),
        event("a", "metrics", accuracy=1.0, f1_score=float("nan"), picked=["x"]),
    )
    assert cells(labels) == {
        ("a", "FuzzyMatch", "1", "label"),
        ("a", "accuracy", "1", "label"),
        ("a", "f1_score", None, "unparsed"),
    }


def test_several_choices_of_an_old_record_are_several_graders() -> None:
    labels = read(spec("t", "j"), event("a", "metrics", clear="yes", apt="no"))
    assert {g for _, g, _, _ in cells(labels)} == {"clear@rubric@j", "apt@rubric@j"}


def test_a_sample_that_is_judged_again_in_one_run_has_votes() -> None:
    labels = read(spec("t", "j"), *judged("a", "yes"), *judged("a", "no"))
    assert labels.responses == 1
    assert sorted(labels.frame["vote"].cast(pl.String)) == ["1", "2"]


def test_the_graders_error_is_an_outcome_and_the_targets_is_no_row() -> None:
    call = event("b", "sampling", sampled=["x"])
    labels = read(
        spec("t", "j"),
        *judged("a", "yes"),
        *(call, event("b", "error", type="RateLimitError", message="secret")),
        event("c", "error", type="BadRequestError", message="secret"),
        event("d", "sampling", sampled=["x"]),
    )
    assert cells(labels) == {
        ("a", "rubric@j", "yes", "label"),
        ("b", "rubric@j", None, "error"),
    }
    assert "1 sample ended in an error before there was an answer" in notices(labels)
    assert "1 sample has calls and no verdict" in notices(labels)
    assert "secret" not in labels.frame.write_csv()


def test_a_record_without_a_spec_is_read_and_says_so() -> None:
    labels = read(*judged("a", "yes"))
    assert cells(labels) == {("a", "modelgraded", "yes", "label")}
    assert "There is no spec" in notices(labels)


def test_what_is_no_event_is_named_and_the_rest_is_read() -> None:
    labels = read(
        spec("t", "j"),
        *judged("a", "yes"),
        *("[]", {"spec": 3}, {"x": 1}, event(None, "metrics", choice="no"), '{"run_id": "r", "ev'),
        {**event("a", "metrics"), "data": "torn"},
    )
    assert cells(labels) == {("a", "rubric@j", "yes", "label")}
    assert "6 lines could not be read" in notices(labels)


def test_a_record_without_a_verdict_is_an_error() -> None:
    with pytest.raises(InputError, match=r"without a verdict in it \(1 sample\)"):
        read(spec("t", "j"), event("a", "sampling", sampled=["x"]))


@real
def test_the_real_choices_are_those_of_the_final_report() -> None:
    labels = vd.read(GRADED)
    assert [g.name for g in labels.graders] == ["mini_spec@mock-a"]
    assert labels.graders[0].facts["model"] == "mock-a"
    report = json.loads(GRADED.read_text("utf-8").splitlines()[1])["final_report"]
    results = vd.audit(labels).results.filter(statistic="label_count", slice="")
    counts = dict(results.select("class", "value").rows())
    assert counts == {c: report[f"counts/{c}"] for c in ("full", "partial", "none")}
    unread = labels.frame.filter(pl.col("outcome").cast(pl.String) == "unparsed")
    assert len(unread) == report["counts/__invalid__"] == 1
    assert unread["response"].cast(pl.String).to_list() == ["mini-mg.dev.4"]


@real
def test_the_real_matches_and_choices_are_read_together() -> None:
    assert cells(vd.read(MATCHED)) == {
        (f"mini-match.dev.{i}", "Match", "0", "label") for i in range(6)
    }
    assert vd.read(FOLDER).responses == 12
