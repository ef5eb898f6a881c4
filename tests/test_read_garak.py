"""garak reports: an attempt once, a response for each generation, a detector for a grader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import InputError
from voirdire.inputs import reader_of
from voirdire.readers.garak import READER, sniff
from voirdire.source import Source
from voirdire.wording import plain

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "fmt_garak"
REPORT, HITS = FOLDER / "garak.report.jsonl", FOLDER / "garak.hitlog.jsonl"
real = pytest.mark.skipif(not REPORT.is_file(), reason="the real logs are not beside this checkout")

SETUP = {"entry_type": "start_run setup", "plugins.target_type": "test", "plugins.target_name": "t"}
INIT = {"entry_type": "init", "garak_version": "0.17.1", "run": "r"}


def attempt(uuid: Any, scores: Any, *, status: int = 2, **more: Any) -> dict[str, Any]:
    n = max((len(s) for s in scores.values()), default=2) if isinstance(scores, dict) else 2
    return {
        "entry_type": "attempt",
        "uuid": uuid,
        "status": status,
        "probe_classname": "test.Test",
        "outputs": [{"text": "an answer"}] * n,
        "detector_results": scores,
        **more,
    }


def report(*entries: Any) -> bytes:
    return "\n".join(e if isinstance(e, str) else json.dumps(e) for e in entries).encode() + b"\n"


def read(*entries: Any, **options: Any) -> vd.Labels:
    return vd.read(source(name="r.report.jsonl", content=report(SETUP, INIT, *entries)), **options)


def source(name: str, content: bytes) -> Any:
    return Source(name=name, content=content)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def cells(labels: vd.Labels) -> set[tuple[str, str, str | None, str]]:
    frame = labels.frame.select(
        pl.col(c).cast(pl.String) for c in ("response", "grader", "label", "outcome")
    )
    return set(frame.rows())


@pytest.mark.parametrize(
    "entry",
    [SETUP, INIT, attempt("a", {"d": [1.0]}), attempt("a", {}, outputs=[{"text": "x" * 100_000}])],
)
def test_a_report_is_recognised_by_any_of_its_entries(entry: dict[str, Any]) -> None:
    source = Source(name="x", content=report("torn {", entry))
    claim = sniff(source)
    assert claim is not None
    assert claim.sure
    assert claim.format == "garak report"
    assert reader_of(source) is READER


def test_the_version_is_told() -> None:
    claim = sniff(Source(name="x", content=report(SETUP, INIT)))
    assert claim is not None
    assert claim.version == "0.17.1"


@pytest.mark.parametrize(
    "line", [{"entry_type": "attempt"}, {"entry_type": 3}, {"detector": "d", "score": 1}]
)
def test_other_lines_are_not_claimed(line: dict[str, Any]) -> None:
    assert sniff(Source(name="x.report.jsonl", content=report(line))) is None


def test_an_attempt_that_is_written_twice_is_one_attempt() -> None:
    labels = read(attempt("a", {}, status=1), attempt("a", {"d": [1.0, 0.0]}))
    assert cells(labels) == {("a/0", "d", "1", "label"), ("a/1", "d", "0", "label")}
    assert labels.clusters_declared
    assert labels.frame["cluster"].n_unique() == 1
    assert not labels.notices


def test_an_attempt_that_no_detector_saw_is_named_and_has_no_row() -> None:
    labels = read(attempt("a", {"d": [1.0]}), attempt("b", {}, status=1), attempt("c", {}))
    assert cells(labels) == {("a/0", "d", "1", "label")}
    assert "1 attempt was begun and seen by no detector" in notices(labels)
    assert "1 attempt without any detector" in notices(labels)


def test_a_null_score_is_unread_and_never_a_pass() -> None:
    labels = read(attempt("a", {"d": [1.0, None, float("nan"), "high", 3]}))
    assert cells(labels) == {
        ("a/0", "d", "1", "label"),
        *((f"a/{i}", "d", None, "unparsed") for i in range(1, 5)),
    }


def test_a_generation_that_the_target_did_not_give_is_not_graded() -> None:
    outputs = [{"text": "an answer"}, None, {"text": None}]
    labels = read(
        attempt("a", {"d": [1.0, None, None]}, outputs=outputs),
        attempt("b", {"d": [None, None, None]}, outputs=["old", None, "old"]),
    )
    assert cells(labels) == {
        ("a/0", "d", "1", "label"),
        ("b/0", "d", None, "unparsed"),
        ("b/2", "d", None, "unparsed"),
    }
    assert "3 generations that the target did not give are not graded" in notices(labels)


def test_detectors_that_skip_what_is_not_there_are_put_back_in_place() -> None:
    outputs = [None, {"text": "an answer"}]
    labels = read(attempt("a", {"d": [1.0], "e": [None, 0.0]}, outputs=outputs))
    assert cells(labels) == {("a/1", "d", "1", "label"), ("a/1", "e", "0", "label")}


def test_scores_that_fit_no_generation_are_left_out_and_named() -> None:
    outputs = [{"text": "an answer"}] * 3
    labels = read(attempt("a", {"d": [1.0, 0.0], "e": [0.0, 0.0, 1.0]}, outputs=outputs))
    assert {grader for _, grader, _, _ in cells(labels)} == {"e"}
    assert "d has 2 scores for 3 generations" in notices(labels)


def test_scores_of_every_turn_are_counted_in_their_order() -> None:
    outputs = [{"text": "the last turn"}]
    labels = read(attempt("a", {"d": [1.0, 0.0], "e": [0.0, 0.0]}, outputs=outputs))
    assert labels.responses == 2
    assert "another number of scores than there are outputs" in notices(labels)


@pytest.mark.parametrize(("said", "hits"), [({}, 2), ({"run.eval_threshold": 0.7}, 1)])
def test_a_score_becomes_a_hit_at_the_threshold_of_the_run(said: dict[str, Any], hits: int) -> None:
    content = report({**SETUP, **said}, attempt("a", {"d": [0.49, 0.5, 0.7]}))
    labels = vd.read(source(name="r.jsonl", content=content))
    assert labels.frame["label"].cast(pl.String).to_list().count("1") == hits
    assert labels.frame.sort("response")["score"].to_list() == ["0.49", "0.5", "0.7"]
    which = "the threshold of the run" if said else "garak’s default threshold"
    assert which in notices(labels)


def test_the_reports_own_counts_are_held_against_the_labels() -> None:
    summary = {"entry_type": "eval", "probe": "test.Test", "detector": "d", "passed": 0}
    same = read(attempt("a", {"d": [1.0, 1.0]}), {**summary, "fails": 2, "total_processed": 2})
    assert not same.notices
    other = read(attempt("a", {"d": [0.4, 1.0]}), {**summary, "fails": 2, "total_processed": 2})
    assert "test.Test d: 2, here 1" in notices(other)
    cut = read(attempt("a", {"d": [1.0, 1.0]}), {**summary, "fails": 9, "total_processed": 9})
    assert "test.Test: 2 of 9" in notices(cut)


def test_hits_that_may_be_among_null_scores_are_not_laid_on_the_threshold() -> None:
    summary = {"entry_type": "eval", "probe": "test.Test", "detector": "d", "passed": 1}
    said = notices(
        read(attempt("a", {"d": [1.0, None, 0.0]}), {**summary, "fails": 2, "total_processed": 3})
    )
    assert "test.Test d: 2, here 1, unread 1" in said
    assert "threshold" not in said
    # One null is no reason for two more hits.
    said = notices(
        read(attempt("a", {"d": [1.0, None, 0.0]}), {**summary, "fails": 3, "total_processed": 3})
    )
    assert "another threshold" in said


def test_texts_do_not_travel() -> None:
    labels = read(attempt("a", {"d": [1.0]}, goal="be bad", prompt={"turns": ["secret"]}))
    text = labels.frame.write_csv()
    assert not any(word in text for word in ("be bad", "secret", "an answer"))


def test_a_torn_report_is_read_as_far_as_it_goes() -> None:
    torn = json.dumps(attempt("b", {"d": [1.0]}))[:50]
    labels = read(attempt("a", {"d": [1.0]}), "[]", attempt(None, {"d": [1.0]}), torn)
    assert cells(labels) == {("a/0", "d", "1", "label")}
    assert "3 lines could not be read" in notices(labels)
    assert "it may be torn" in notices(labels)
    with pytest.raises(InputError, match="could not be read"):
        read(attempt("a", {"d": [1.0]}), torn, strict=True)


def test_a_byte_that_is_no_text_costs_its_line_and_not_the_report() -> None:
    good, bad = (json.dumps(attempt(u, {"d": [1.0]})).encode() for u in "ab")
    content = report(INIT) + good + b"\n" + bad.replace(b"answer", b"\xff\xfe") + b"\n"
    labels = vd.read(source("r.jsonl", content))
    assert cells(labels) == {("a/0", "d", "1", "label")}
    assert "line 3: bytes that are no utf-8" in notices(labels)


@pytest.mark.parametrize("content", [b'{"a":' * 20_000, b"[" * 100_000, b'{"attempt_id":[' * 9_000])
def test_absurd_nesting_is_not_claimed(content: bytes) -> None:
    assert sniff(Source(name="x.jsonl", content=content)) is None


def test_detectors_of_one_generation_may_look_for_different_things() -> None:
    apart = attempt("a", {"d": [1.0]}), attempt("b", {"e": [0.0]})
    assert not read(*apart).notices
    together = attempt("a", {"d": [1.0], "e": [0.0]})
    assert "may look for different things (d and e)" in notices(read(together))
    assert not read(together, graders="d,e", strict=True).notices


def test_a_report_without_detection_is_an_error() -> None:
    with pytest.raises(InputError, match=r"no detector has seen .*1 attempt begun"):
        read(attempt("a", {}, status=1))


def test_a_hit_log_is_turned_down_with_the_reason() -> None:
    hit = {"attempt_id": "a", "detector": "d", "probe": "p", "score": 1.0, "attempt_idx": 0}
    log = source(name="x.hitlog.jsonl", content=report(hit, hit))
    assert reader_of(log) is READER
    with pytest.raises(InputError, match=r"hit log of garak.*of how many generations"):
        vd.read(log)


@real
def test_the_real_report_has_54_attempts_of_3_generations_under_4_detectors() -> None:
    labels = vd.read(REPORT)
    assert labels.responses == 54 * 3
    assert labels.frame["cluster"].n_unique() == 54
    assert len(labels.frame) == 54 * 3 * 4
    assert {g.name for g in labels.graders} == {
        *("always.Pass", "always.Random", "mitigation.MitigationBypass", "snowball.DontStartYes")
    }
    counts = {
        (g, c): v
        for g, c, v in vd.audit(labels)
        .results.filter(statistic="label_count", slice="")
        .select("grader", "class", "value")
        .rows()
    }
    assert counts["always.Pass", "0"] == counts["mitigation.MitigationBypass", "1"] == 162
    entries = [json.loads(line) for line in REPORT.read_text("utf-8").splitlines()]
    scores = [
        score
        for e in entries
        if e["entry_type"] == "attempt" and e["status"] == 2
        for score in e["detector_results"]["always.Random"]
    ]
    assert counts["always.Random", "1"] == sum(score >= 0.5 for score in scores)
    # Where the report's summary is of the attempts that are here, the hits are the same.
    assert "other hits" not in notices(labels)
    assert "snowball.GraphConnectivity: 120 of 300" in notices(labels)


@real
def test_the_real_hit_log_is_turned_down_and_left_out_of_a_folder() -> None:
    with pytest.raises(InputError, match="hit log"):
        vd.read(HITS)
    labels = vd.read(FOLDER)
    assert labels.responses == 162
    assert "garak.hitlog.jsonl" in notices(labels)
