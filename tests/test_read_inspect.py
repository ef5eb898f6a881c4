"""Inspect AI logs: scorers as graders, epochs as votes, what is no label, and archives that are broken."""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

import voirdire as vd
from voirdire import inputs
from voirdire.errors import InputError, UsageError
from voirdire.inputs import reader_of, rows_of, sources
from voirdire.labels import assemble
from voirdire.options import Options
from voirdire.readers import _archive, _members, inspect_log
from voirdire.readers.inspect_log import READER, grade_in, sniff
from voirdire.source import Source
from voirdire.wording import plain

SHARED = Path(__file__).parents[2] / "shared"
LOGS = SHARED / "data" / "fmt_inspect_ai"
shared = pytest.mark.skipif(not LOGS.exists(), reason="no shared data here")


# --- making logs --------------------------------------------------------------------------------


def header(**more: Any) -> dict[str, Any]:
    spec = {
        "task": "t",
        "task_id": "T1",
        "model": "m/answerer",
        "packages": {"inspect_ai": "0.3.9"},
    }
    scorers = [{"name": "judge", "options": {"model": "m/grader"}}]
    eval_ = {**spec, "scorers": scorers, "dataset": {"samples": 4}, **more.pop("eval", {})}
    return {"version": 2, "status": "success", "eval": eval_, **more}


def sample(id_: Any, value: Any, epoch: int = 1, **more: Any) -> dict[str, Any]:
    scores = {} if value is ... else {"judge": {"value": value}}
    return {"id": id_, "epoch": epoch, "scores": scores, **more}


def document(*samples: Any, **more: Any) -> bytes:
    return json.dumps({**header(**more), "samples": samples}).encode()


def archive(entries: dict[str, Any], *, method: int = 93) -> bytes:
    """A zip with the given entries; ``zipfile`` cannot write Zstandard before Python 3.14."""
    out = io.BytesIO()
    directory = b""
    for name, value in entries.items():
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        if method == 93:
            packed = zstd.compress(content)
        elif method == 8:
            codec = zlib.compressobj(wbits=-15)
            packed = codec.compress(content) + codec.flush()
        else:
            packed = content
        raw = name.encode()
        sizes = (zlib.crc32(content), len(packed), len(content), len(raw), 0)
        start = out.tell()
        out.write(struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 63, 0, method, 0, 33, *sizes))
        out.write(raw + packed)
        directory += struct.pack("<4sHHHHHHIIIHH", b"PK\x01\x02", 63, 63, 0, method, 0, 33, *sizes)
        directory += struct.pack("<HHHII", 0, 0, 0, 0, start) + raw
    end, n = out.tell(), len(entries)
    out.write(directory)
    out.write(struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, n, n, len(directory), end, 0))
    return out.getvalue()


def eval_log(*samples: dict[str, Any], method: int = 93, **more: Any) -> bytes:
    entries: dict[str, Any] = {"_journal/start.json": {"version": 2, "eval": header()["eval"]}}
    for one in samples:
        entries[f"samples/{one['id']}_epoch_{one['epoch']}.json"] = one
    return archive({**entries, "header.json": header(**more)}, method=method)


def source(content: bytes, name: str = "log.json") -> Any:
    return Source(name=name, content=content)


def read(content: bytes, name: str = "log.json", **options: Any) -> vd.Labels:
    return vd.read(source(content, name), **options)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def column(labels: vd.Labels, name: str, **where: str) -> list[Any]:
    frame = labels.frame
    for key, value in where.items():
        frame = frame.filter(pl.col(key).cast(pl.String) == value)
    return frame.sort("response", "vote")[name].cast(pl.String).to_list()


def counts(labels: vd.Labels, grader: str) -> Counter[str]:
    frame = labels.frame.filter(pl.col("grader").cast(pl.String) == grader)
    return Counter(
        frame.select(
            pl.coalesce(pl.col("label").cast(pl.String), pl.col("outcome").cast(pl.String))
        )
        .to_series()
        .to_list()
    )


# --- the real files -----------------------------------------------------------------------------


@shared
@pytest.mark.parametrize("path", sorted(LOGS.rglob("*.eval")) + sorted(LOGS.rglob("*.json")))
def test_every_log_at_hand_is_recognised_and_audited_without_options(path: Path) -> None:
    (found,) = sources([str(path)])
    claim = sniff(found)
    assert claim is not None
    assert claim.sure
    assert claim.version.startswith("0.3.")
    assert reader_of(found) is READER
    labels = vd.read(path)
    assert "0.3." in labels.layouts[0]
    assert vd.audit(labels).results.height > 0


@shared
def test_three_graders_and_a_rule_over_three_epochs_with_four_grades_not_found() -> None:
    labels = vd.read(LOGS / "three-graders.eval")
    assert labels.responses == 12
    assert labels.frame["vote"].unique().sort().to_list() == ["1", "2", "3"]
    assert counts(labels, "model_graded_qa") == {"correct": 21, "partial": 9, "incorrect": 6}
    assert counts(labels, "model_graded_qa1") == {"correct": 20, "incorrect": 16}
    fact = {"partial": 13, "incorrect": 11, "correct": 8, "unparsed": 4}
    assert counts(labels, "model_graded_fact") == fact
    assert counts(labels, "match") == {"incorrect": 34, "correct": 2}
    facts = {g.name: (g.facts["kind"], g.facts.get("model")) for g in labels.graders}
    assert facts == {
        "model_graded_qa": ("model", "mockllm/grader-a"),
        "model_graded_qa1": ("model", "mockllm/grader-b"),
        "model_graded_fact": ("model", "mockllm/grader-c"),
        "match": ("rule", None),
    }
    assert "4 verdicts of model_graded_fact" in notices(labels)
    assert "counts 0 samples" in notices(labels)
    assert {"category", "task", "model"} <= {t.name for t in labels.tags}


@shared
def test_the_votes_of_a_jury_stand_in_the_metadata() -> None:
    labels = vd.read(LOGS / "jury-model-list.eval")
    members = [f"model_graded_qa/mockllm/jury-{i}" for i in (1, 2, 3)]
    assert set(labels.grader_names) == {"model_graded_qa", *members}
    assert labels.by_name["model_graded_qa"].derived_from == tuple(members)
    assert labels.by_name[members[0]].facts["model"] == "mockllm/jury-1"
    votes = [column(labels, "label", grader=m) for m in members]
    assert [v[0] for v in votes] == ["correct", "correct", "incorrect"]  # q00: C, C, I
    assert [v[1] for v in votes] == ["incorrect", "correct", "incorrect"]  # q01: I, C, I


@shared
def test_the_votes_of_a_multi_scorer_are_read_from_the_replies_and_make_its_decision() -> None:
    labels = vd.read(LOGS / "jury-majority.json")
    members = [f"multi_scorer/mockllm/jury-{i}" for i in (1, 2, 3)]
    assert labels.by_name["multi_scorer"].derived_from == tuple(members)
    votes = list(zip(*(column(labels, "label", grader=m) for m in members), strict=True))
    modes = [Counter(v).most_common(1)[0][0] for v in votes]
    assert column(labels, "label", grader="multi_scorer") == modes
    assert "does not keep the votes" in notices(labels)


@shared
def test_text_labels_stay_and_a_dictionary_is_a_checklist() -> None:
    labels = vd.read(LOGS / "ladder-and-checklist.eval")
    ladder = {"full_compliance": 14, "partial_refusal": 6, "full_refusal": 4}
    assert counts(labels, "refusal_ladder") == ladder
    assert "--layout checklist" in notices(labels)
    bank = vd.read(LOGS / "ladder-and-checklist.eval", layout="checklist")
    assert bank.kind == "checklist"
    assert bank.grader_names == ("checklist",)
    assert set(bank.frame["line"]) == {"clarity", "cites_source", "no_unsafe_advice"}
    assert len(bank.frame) == 12 * 2 * 3


@shared
def test_two_samples_that_failed_are_named_and_have_no_labels() -> None:
    labels = vd.read(LOGS / "with-errors.eval")
    assert counts(labels, "model_graded_qa") == {"correct": 6, "incorrect": 4}
    assert labels.responses == 10
    assert "2 samples failed before they were graded" in notices(labels)
    assert "q03, epoch 1" in notices(labels)
    assert "q07, epoch 1" in notices(labels)


@shared
def test_a_grader_appended_later_stands_beside_the_first_two_and_the_logs_join() -> None:
    labels = vd.read(LOGS / "rescored_append.json")
    assert labels.grader_names == ("model_graded_qa", "model_graded_qa1", "model_graded_fact")
    assert labels.by_name["model_graded_fact"].facts["model"] == "mockllm/grader-d"
    assert counts(labels, "model_graded_fact") == {"incorrect": 10, "partial": 10, "correct": 4}
    both = vd.read(LOGS / "rescored_append.json", LOGS / "three-graders-json.json")
    assert both.responses == 12
    assert len(both.frame) == 72
    assert "48 rows repeat a call with the same label" in notices(both)


@shared
@pytest.mark.parametrize(
    ("name", "grader", "expected"),
    [
        ("2024-11_input-task.json", "model_graded_fact", {"correct": 1}),
        ("2025-02_popularity.eval", "match", {"correct": 8, "incorrect": 2}),
        ("2025-05_security-guide.json", "model_graded_fact", {"correct": 3}),
        ("2025-09_security-guide.eval", "model_graded_fact", {"correct": 11, "incorrect": 5}),
    ],
)
def test_logs_of_real_runs_of_older_versions(
    name: str, grader: str, expected: dict[str, int]
) -> None:
    labels = vd.read(LOGS / "real" / name)
    assert labels.grader_names == (grader,)
    assert counts(labels, grader) == expected
    if grader == "model_graded_fact":  # no model was named: the one under test graded itself
        assert labels.by_name[grader].facts["model"] == "openai/gpt-4o-mini"


@shared
def test_a_folder_of_logs_keeps_tasks_and_models_apart() -> None:
    labels = vd.read(LOGS)
    assert "README.md" in notices(labels)
    assert {"model_graded_fact (mockllm/grader-c)", "model_graded_fact (mockllm/grader-d)"} <= set(
        labels.grader_names
    )
    assert "three_graders/mockllm/answerer/q00" in set(labels.frame["response"])


@shared
@pytest.mark.parametrize("path", sorted(LOGS.rglob("*.eval")) + sorted(LOGS.rglob("*.json")))
def test_the_tools_own_reader_sees_the_same(path: Path) -> None:
    inspect_log = pytest.importorskip("inspect_ai.log")
    from voirdire.readers.inspect_log import _logged

    theirs = inspect_log.read_eval_log(str(path))
    ours = _logged(Source(name=path.name, path=path), Options())
    assert ours.samples == len(theirs.samples)
    assert set(ours.seen) == {(str(s.id), str(s.epoch)) for s in theirs.samples}
    failed = {f"{s.id}, epoch {s.epoch}" for s in theirs.samples if s.error and not s.scores}
    assert {name for name, _ in ours.failed} == failed
    expected: dict[tuple[str, ...], Any] = {}
    for one in theirs.samples:
        for name, score in (one.scores or {}).items():
            keys = score.value.items() if isinstance(score.value, dict) else [("", score.value)]
            for key, value in keys:
                nan = isinstance(value, float) and math.isnan(value)
                expected[str(one.id), str(one.epoch), name, str(key)] = None if nan else value
    found = {
        (c.response, str(c.vote), c.scorer, c.key): None if c.outcome else c.value
        for c in ours.calls
        if not c.member
    }
    assert found == expected


# --- what is a label ----------------------------------------------------------------------------


@shared
def test_scores_that_are_null_missing_errored_or_a_dictionary() -> None:
    path = SHARED / "cases" / "inputs" / "log-scores.json"
    labels = vd.read(path)
    assert counts(labels, "judge") == {"correct": 2, "incorrect": 1, "partial": 1, "unparsed": 2}
    reasons = set(labels.frame["outcome_reason"].drop_nulls())
    assert reasons == {"grade_parse_failure", "no-answer"}
    assert "1 sample failed before it was graded" in notices(labels)
    assert "(3, epoch 1: TimeoutError)" in notices(labels)
    assert "Verdicts on lines of a checklist were left out (judge)" in notices(labels)
    bank = vd.read(path, layout="checklist")
    verdicts = bank.frame.select(
        "line", pl.col("label").cast(pl.String), pl.col("outcome").cast(pl.String)
    ).rows()
    assert sorted(verdicts) == [("refused", "0", "label"), ("useful", None, "missing")]


@shared
def test_the_same_log_written_out_and_read_back_has_the_same_counts(tmp_path: Path) -> None:
    labels = vd.read(SHARED / "cases" / "inputs" / "log-scores.json")
    labels.write(tmp_path / "labels.parquet")
    again = vd.read(tmp_path / "labels.parquet")
    assert counts(again, "judge") == counts(labels, "judge")
    assert again.frame.equals(labels.frame)


def test_letters_are_renamed_only_where_a_scorer_gives_no_others() -> None:
    mixed = document(sample(1, "C"), sample(2, "A"), sample(3, "N"))
    assert counts(read(mixed), "judge") == {"C": 1, "A": 1, "N": 1}
    yes_no = document(sample(1, "Y"), sample(2, "N"))
    assert counts(read(yes_no), "judge") == {"Y": 1, "N": 1}


def test_the_letters_that_options_name_stay() -> None:
    log = document(sample(1, "C"), sample(2, "I"), sample(3, "N"))
    assert counts(read(log), "judge") == {"correct": 1, "incorrect": 1, "unparsed": 1}
    assert counts(read(log, map={"C": "pass"}), "judge") == {
        "pass": 1,
        "incorrect": 1,
        "unparsed": 1,
    }
    assert read(log, scale="I,N,C").classes == ("I", "N", "C")
    assert counts(read(log, failed={"N": "grader_refusal"}), "judge")["grader_refusal"] == 1
    assert counts(read(log, map={"correct": "1"}), "judge")["1"] == 1


def test_a_grade_that_was_not_found_is_unparsed_even_where_it_is_stored_as_incorrect() -> None:
    one = sample(1, "I")
    one["scores"]["judge"]["explanation"] = "Grade not found in model output: I cannot say."
    two = sample(2, "C")
    two["scores"]["judge"]["explanation"] = (
        "Grade not found in model output, I first thought. GRADE: C"
    )
    labels = read(document(one, two))
    assert counts(labels, "judge") == {"unparsed": 1, "correct": 1}


def test_nan_and_null_are_unparsed_with_their_reason_and_an_unable_scorer_is_an_error() -> None:
    three = sample(3, math.nan)
    three["scores"]["judge"]["reason"] = "scoring_failed"
    log = document(sample(1, math.nan), sample(2, None), three, sample(4, "C"))
    labels = read(log)
    assert counts(labels, "judge") == {"unparsed": 2, "error": 1, "correct": 1}
    reasons = {r for r in labels.frame["outcome_reason"] if r}
    assert reasons == {"the value is NaN", "the value is null", "scoring_failed"}


def test_numbers_stay_numbers() -> None:
    labels = read(document(sample(1, 1.0), sample(2, 0), sample(3, True), sample(4, 0.25)))
    assert counts(labels, "judge") == {"1": 2, "0": 1, "0.25": 1}


def test_ratings_in_a_dictionary_are_graders_of_their_own() -> None:
    log = document(
        sample(1, {"refused": 0, "specific": 4}), sample(2, {"refused": 1, "specific": None})
    )
    labels = read(log)
    assert labels.kind == "labels"
    assert counts(labels, "judge.refused") == {"0": 1, "1": 1}
    assert counts(labels, "judge.specific") == {"4": 1, "missing": 1}


def test_a_list_has_numbered_lines() -> None:
    bank = read(document(sample(1, [1, 0, True]), sample(2, [0, 0, 1])))
    assert bank.kind == "checklist"
    assert bank.frame["line"].unique().sort().to_list() == ["1", "2", "3"]


def test_a_sample_that_failed_in_a_scorer_is_an_error_of_that_scorer() -> None:
    begun = [
        {"event": "span_begin", "id": "a", "type": "scorers", "name": "scorers"},
        {"event": "span_begin", "id": "b", "parent_id": "a", "type": "scorer", "name": "judge"},
    ]
    failed = sample(2, ..., error={"message": "no connection"}, events=begun)
    older = [{"event": "step", "action": "begin", "type": "scorer", "name": "judge"}]
    failed_too = sample(3, ..., error={"message": "no connection"}, events=older)
    labels = read(document(sample(1, "C"), failed, failed_too))
    assert counts(labels, "judge") == {"correct": 1, "error": 2}
    assert "no connection" in set(labels.frame["outcome_reason"])


def test_a_log_in_which_everything_failed_says_so() -> None:
    with pytest.raises(InputError, match=r"of 1 sample none was graded .*boom"):
        read(document(sample(1, ..., error={"message": "boom"})))
    with pytest.raises(InputError, match="inspect score"):
        read(document(sample(1, ...)))
    with pytest.raises(InputError, match="no samples"):
        read(json.dumps(header()).encode())


def test_an_edited_score_counts_as_it_stands_and_is_named() -> None:
    one = sample(1, "C")
    edits = [{"value": "I"}, {"value": "C", "provenance": {"author": "someone"}}]
    one["scores"]["judge"]["history"] = edits
    labels = read(document(one, sample(2, "I")))
    assert column(labels, "label") == ["correct", "incorrect"]
    assert "1 score was edited after the grading (judge)" in notices(labels)


def test_a_jury_whose_member_failed_and_one_that_answers_in_events() -> None:
    models = ["m/a", "m/b", "m/b"]
    spec = {"scorers": [{"name": "judge", "options": {"model": models}}]}
    one = sample(1, "C")
    panel = {"votes": ["C", None, "C"], "failures": [{"index": 1, "reason": "grader_failed"}]}
    one["scores"]["judge"]["metadata"] = {"panel": panel}
    labels = read(document(one, eval=spec))
    assert set(labels.grader_names) == {"judge", "judge/m/a", "judge/m/b (1)", "judge/m/b (2)"}
    assert counts(labels, "judge/m/b (1)") == {"unparsed": 1}

    def reply(model: str, text: str, stop: str = "stop") -> dict[str, Any]:
        choice = {"stop_reason": stop, "message": {"content": text}}
        return {"event": "model", "model": model, "span_id": "s", "output": {"choices": [choice]}}

    events = [
        {"event": "span_begin", "id": "s", "type": "scorer", "name": "judge"},
        reply("m/b", "attachment://x"),
        reply("m/a", "GRADE: C or GRADE: P?\nGRADE: I"),
        reply("m/b", "Let me think about", "max_tokens"),
    ]
    two = sample(
        2, "I", events=events, attachments={"x": "At last: **grade**: correct GRADE: correct"}
    )
    labels = read(document(two, eval=spec))
    assert counts(labels, "judge/m/a") == {"incorrect": 1}
    assert counts(labels, "judge/m/b (1)") == {"correct": 1}
    assert counts(labels, "judge/m/b (2)") == {"truncated": 1}


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        ("GRADE: C", "C"),
        ("grade : incorrect", "I"),
        ("GRADE: C\n…\nGRADE: P.", "P"),
        ("GRADE: C … GRADE: maybe", None),
        ("downgrade: C", None),
        ("C", None),
    ],
)
def test_a_reply_is_read_by_the_tools_own_rule(reply: str, grade: str | None) -> None:
    assert grade_in(reply) == grade


def test_the_one_score_of_a_log_of_early_2024_belongs_to_its_scorer() -> None:
    spec = {"scorers": None}
    results = {"scorer": {"name": "closedqa", "params": {"model": "m/old"}}}
    old = {"id": 1, "epoch": 1, "score": {"value": "C"}}
    labels = read(document(old, eval=spec, results=results))
    assert labels.grader_names == ("closedqa",)
    assert labels.by_name["closedqa"].facts["model"] == "m/old"


def test_fields_of_the_metadata_are_tags_and_one_can_be_the_cluster() -> None:
    long = "a text of a prompt " * 20
    made = [
        sample(i, "C", metadata={"topic": f"t{i % 2}", "grader": "x", "prompt": long, "n": i})
        for i in range(6)
    ]
    labels = read(document(*made))
    assert {t.name for t in labels.tags} == {"task", "model", "topic", "n", "grader (metadata)"}
    assert read(document(*made), cluster="topic").frame["cluster"].n_unique() == 2
    with pytest.raises(UsageError, match="no sample has such a field"):
        read(document(*made), cluster="nothing")
    with pytest.raises(UsageError, match="layout"):
        read(document(*made), layout="wide")


# --- several logs -------------------------------------------------------------------------------


def test_one_sample_in_two_logs_under_other_graders_joins_by_id_and_epoch() -> None:
    other = {"task_id": "T2", "scorers": [{"name": "other", "options": {}}]}
    second = sample(1, ...)
    second["scores"] = {"other": {"value": "I"}}
    labels = vd.read(
        source(document(sample(1, "C"), sample(1, "P", 2))),
        source(document(second, eval=other), "b.json"),
    )
    assert labels.responses == 1
    assert set(labels.frame["response"]) == {"1"}


def test_a_task_that_was_run_twice_has_other_responses_and_a_retry_has_the_same() -> None:
    first, again = document(sample(1, "C")), document(sample(1, "I"), eval={"task_id": "T2"})
    labels = vd.read(source(first), source(again, "b.json"))
    assert set(labels.frame["response"]) == {"T1/1", "T2/1"}
    retried = vd.read(source(first), source(document(sample(1, "C"), sample(2, "I")), "b.json"))
    assert retried.responses == 2


def test_one_name_for_two_models_becomes_two_graders() -> None:
    other = {"scorers": [{"name": "judge", "options": {"model": {"model": "m/second"}}}]}
    labels = vd.read(
        source(document(sample(1, "C"))), source(document(sample(1, "I"), eval=other), "b.json")
    )
    assert labels.grader_names == ("judge (m/grader)", "judge (m/second)")
    assert labels.responses == 1
    assert "not the same model" in notices(labels)


def test_many_logs_are_read_by_several_processes_as_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(6):
        log = eval_log(sample(1, "CI"[i % 2]), status="cancelled", eval={"task_id": f"T{i}"})
        (tmp_path / f"log{i}.eval").write_bytes(log)
    (tmp_path / "notes.md").write_text("# notes\n", encoding="utf-8")
    (tmp_path / "torn.eval").write_bytes(b"PK\x03\x04 torn")
    (tmp_path / "table.csv").write_text("response,grader,label\n1,g,C\n", encoding="utf-8")
    alone = vd.read(tmp_path)
    monkeypatch.setattr(inputs, "MUCH", 100)
    told: list[tuple[int, int]] = []
    options = Options()
    rows = rows_of(
        sources([str(tmp_path)]), options, progress=lambda done, of: told.append((done, of))
    )
    assert told[-1] == (9, 9)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert rows[0].place(0).unit == "sample"
    together = assemble(rows, options)
    assert together.frame.equals(alone.frame)
    assert together.notices == alone.notices
    assert "6 files" in notices(together)  # one notice for what each of them says of itself


# --- archives -----------------------------------------------------------------------------------

TWO = (sample("a", "C"), sample("b", "I"))


@pytest.mark.parametrize("method", [0, 8, 93])
def test_entries_are_read_stored_deflated_and_as_zstandard(method: int) -> None:
    labels = read(eval_log(*TWO, method=method), "log.eval")
    assert column(labels, "label") == ["correct", "incorrect"]
    assert not labels.notices
    claim = sniff(source(eval_log(*TWO, method=method), "log.eval"))
    assert claim is not None
    assert claim.version == "0.3.9"


def test_zip64_sizes_and_bytes_before_the_archive_are_understood() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        with made.open("header.json", "w", force_zip64=True) as file:
            file.write(json.dumps(header()).encode())
        made.writestr("samples/a_epoch_1.json", json.dumps(TWO[0]))
    content = out.getvalue()
    assert column(read(content, "log.eval"), "label") == ["correct"]
    found = _archive.Archive(io.BytesIO(b"#!/bin/sh\n" + content))
    assert not found.cut
    assert json.loads(found.content(found.entries[1])) == TWO[0]


def test_an_archive_that_is_cut_is_read_to_the_cut() -> None:
    many = [sample(f"s{i}", "C", text=f"{i * 7919:x}" * 300) for i in range(20)]
    whole = eval_log(*many)
    place = whole.index(b"samples/s12_epoch_1.json") + 60  # in the middle of the 13th
    labels = read(whole[:place], "log.eval")
    assert labels.responses == 12
    said = notices(labels)
    assert "the end of the archive is missing" in said
    assert "samples/s12_epoch_1.json: it is cut off" in said
    assert "still going on or was broken off; the log holds 12 samples of 4" in said
    with pytest.raises(InputError, match="strict"):
        read(whole[:place], "log.eval", strict=True)


def test_sizes_that_stand_behind_the_data_are_found_out() -> None:
    class Pipe(io.BytesIO):  # what cannot be sought is written with sizes behind the data
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise OSError

        def tell(self) -> int:
            raise OSError

    out = Pipe()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("_journal/start.json", json.dumps(header()))
        made.writestr("samples/a_epoch_1.json", json.dumps(TWO[0]))
        made.writestr("samples/b_epoch_1.json", json.dumps(TWO[1]))
    content = out.getvalue()
    assert column(read(content, "log.eval"), "label") == ["correct", "incorrect"]
    cut = content[: content.index(b"PK\x01\x02")]
    assert column(read(cut, "log.eval"), "label") == ["correct", "incorrect"]


def test_a_log_that_is_still_written_is_read_as_far_as_it_goes() -> None:
    start = {"version": 2, "eval": header()["eval"]}
    log = archive({"_journal/start.json": start, "samples/a_epoch_1.json": TWO[0]})
    labels = read(log, "log.eval")
    assert column(labels, "label") == ["correct"]
    assert labels.by_name["judge"].facts["model"] == "m/grader"
    assert "the log holds 1 sample of 4" in notices(labels)


@pytest.mark.parametrize("status", ["started", "cancelled", "error"])
def test_a_run_that_did_not_end_well_is_named(status: str) -> None:
    said = notices(read(document(*TWO, status=status)))
    assert "the log holds 2 samples of 4" in said


def test_a_damaged_sample_is_left_out_and_named() -> None:
    log = bytearray(eval_log(*TWO, method=0))
    log[log.index(b'"value": "C"') + 10] = ord("P")  # C becomes P: only the checksum can tell
    labels = read(bytes(log), "log.eval")
    assert column(labels, "response") == ["b"]
    assert "samples/a_epoch_1.json: its checksum is wrong" in notices(labels)


def test_nothing_but_the_names_of_a_log_is_read_from_an_archive() -> None:
    entries = {
        "header.json": header(),
        "samples/../../etc/x_epoch_1.json": sample("x", "C"),
        "/samples/y_epoch_1.json": sample("y", "C"),
        "samples/z.zip": b"PK\x03\x04",
        "other/w_epoch_1.json": sample("w", "C"),
        "samples/a_epoch_1.json": TWO[0],
    }
    labels = read(archive(entries), "log.eval")
    assert column(labels, "response") == ["a"]
    assert "2 entries of the archive with names that lead elsewhere" in notices(labels)


def test_an_entry_that_comes_twice_counts_as_it_came_last_with_a_notice() -> None:
    log = eval_log(sample("a", "C"), sample("b", "I"))
    twice = log.replace(b"samples/b_epoch_1.json", b"samples/a_epoch_1.json")
    labels = read(twice, "log.eval")
    assert column(labels, "label") == ["incorrect"]
    assert "came more than once" in notices(labels)


def test_zip_bombs_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = sample("x", "C", text="a" * 3_000_000)
    log = eval_log(TWO[0], bomb, TWO[1])
    assert read(log, "log.eval").responses == 3
    monkeypatch.setattr(_archive, "LARGE_ENTRY", 1_000_000)
    labels = read(log, "log.eval")
    assert labels.responses == 2
    assert "zip bomb" in notices(labels)
    monkeypatch.setattr(_archive, "LARGEST_ENTRY", 1_500_000)
    monkeypatch.setattr(_archive, "ENTRY_RATIO", 10**9)
    assert "larger than" in notices(read(log, "log.eval"))
    monkeypatch.setattr(_archive, "LARGE_TOTAL", 1_000_000)
    monkeypatch.setattr(_archive, "LARGEST_ENTRY", 1 << 30)
    labels = read(log, "log.eval")
    assert labels.responses == 1
    assert "nothing more of it is read" in notices(labels)
    assert "2 samples could not be read" in notices(labels)


def test_a_large_sample_full_of_small_values_takes_little_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import tracemalloc

    for module in (_members, inspect_log):
        monkeypatch.setattr(module, "WHOLE", 1 << 16)
    monkeypatch.setattr(_members, "_BLOCK", 1 << 15)
    store = {f"k{i}": [1, 2, {"a": []}] for i in range(30_000)}
    unpacked = json.dumps(store)
    for content, name in (
        (eval_log(sample("x", "C", store=store), TWO[0]), "log.eval"),
        (document(sample("x", "C", store=store), TWO[0]), "log.json"),
    ):
        tracemalloc.start()
        labels = read(content, name)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert column(labels, "response") == ["a", "x"]
        assert not labels.notices
        # Decoded as a whole it would be some 16 times its text.
        assert peak < 4 * len(unpacked)
    # Where it is among what is wanted, the sample is named and left out.
    monkeypatch.setattr(_members, "LARGEST_VALUE", 1 << 15)
    odd = {"id": "y", "epoch": 1, "scores": {"judge": {"value": "C", "metadata": store}}}
    for content, name in (
        (eval_log(odd, TWO[0]), "log.eval"),
        (document(odd, TWO[0]), "log.json"),
    ):
        labels = read(content, name)
        assert column(labels, "response") == ["a"]
        assert "scores: a value is longer than" in notices(labels)


@shared
@pytest.mark.parametrize("path", sorted(LOGS.rglob("*.eval")) + sorted(LOGS.rglob("*.json")))
def test_large_samples_give_what_they_give_when_they_are_decoded_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = vd.read(path)
    monkeypatch.setattr(_members, "WHOLE", 500)
    monkeypatch.setattr(inspect_log, "WHOLE", 500)
    monkeypatch.setattr(_members, "_BLOCK", 400)
    passed: list[int] = []
    skip = _members.JsonText.skip

    def counted(text: _members.JsonText) -> None:
        passed.append(1)
        skip(text)

    monkeypatch.setattr(_members.JsonText, "skip", counted)
    in_parts = vd.read(path)
    assert passed
    assert in_parts.frame.equals(whole.frame)
    left = {n for n in map(plain, in_parts.notices) if "could not be read (a value" not in n}
    assert set(map(plain, whole.notices)) >= left


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=12),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=20,
    ),
    st.integers(1, 9),
    st.booleans(),
)
def test_passing_over_a_value_ends_where_it_ends(value: Any, block: int, ascii_: bool) -> None:
    written = json.dumps([value, "then"], ensure_ascii=ascii_)
    before = _members._BLOCK
    _members._BLOCK = block
    try:
        text = _members.JsonText(io.StringIO(written))
        kept = []
        for i in text.elements():
            if i == 1:
                text.skip()
            else:
                kept.append(text.value())
        assert kept == ["then"]
    finally:
        _members._BLOCK = before


@pytest.mark.parametrize("torn", ['[[1, {"a": "x', '["abc', '["abc\\\\', "[[[[", '[{"a": ['])
def test_passing_over_what_does_not_end_says_so(torn: str) -> None:
    text = _members.JsonText(io.StringIO(torn))
    next(text.elements())
    with pytest.raises(_members.Torn, match="ends too early"):
        text.skip()


@pytest.mark.parametrize(
    ("sample_", "said"),
    [
        ('{"id": "x", "epoch": 1, "scores": {"judge": {"value": "C", "value": "I"}}}', "key value"),
        (
            '{"id": "x", "epoch": 1, "scores": {}, "scores": {"judge": {"value": "I"}}}',
            "key scores",
        ),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_a_sample_in_which_a_key_has_two_values_is_named_and_left_out(
    sample_: str, said: str, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not whole:
        monkeypatch.setattr(_members, "WHOLE", 8)
        monkeypatch.setattr(inspect_log, "WHOLE", 8)
        monkeypatch.setattr(_members, "_BLOCK", 8)
        monkeypatch.setattr(_members, "LARGEST_VALUE", 10_000)
    entries = {
        "header.json": header(),
        "samples/x_epoch_1.json": sample_.encode(),
        "samples/a_epoch_1.json": TWO[0],
    }
    plainly = document(TWO[0], TWO[0]).replace(json.dumps(TWO[0]).encode(), sample_.encode(), 1)
    for content, name in ((archive(entries), "log.eval"), (plainly, "log.json")):
        if name == "log.json" and not whole:
            continue  # its header would be too large as well
        labels = read(content, name)
        assert column(labels, "response") == ["a"]
        assert f"the {said} stands there twice, with two values" in notices(labels)


def test_a_key_that_stands_twice_with_one_value_is_counted() -> None:
    one = b'{"id": "x", "epoch": 1, "epoch": 1, "scores": {"judge": {"value": "C"}}}'
    entries = {"header.json": header(), "samples/x_epoch_1.json": one}
    labels = read(archive(entries), "log.eval")
    assert column(labels, "response") == ["x"]
    assert "1 key stands twice in one object, with the same value" in notices(labels)


def test_nothing_is_said_of_scorers_that_were_not_asked_for() -> None:
    unread = {"value": math.nan, "explanation": "Grade not found in model output: …"}
    scores = {"judge": {"value": "C"}, "other": unread}
    results = {"scores": [{"name": "other", "scorer": "other", "unscored_samples": 0}]}
    log = document(sample("a", "C", scores=scores), sample("b", "I"), results=results)
    assert "verdict of other could not be read" in notices(read(log))
    assert not read(log, graders=("judge",)).notices
    assert "verdict of other" in notices(read(log, graders=("judge", "other")))


def test_a_reply_that_the_log_does_not_hold_is_not_an_empty_one() -> None:
    from voirdire.readers.inspect_log import Call, _vote

    event = {"output": {"completion": "attachment://gone"}}
    vote = _vote(Call(1, "a", "1", "jury"), event, {})
    assert vote.outcome == "unparsed"
    assert vote.reason == "the log does not hold the reply"


def test_an_archive_that_is_cut_before_its_first_sample_says_so() -> None:
    log = eval_log(*TWO)
    with pytest.raises(InputError, match="the end of the archive is missing"):
        read(log[:120], "log.eval")


def test_a_sample_is_in_memory_alone(tmp_path: Path) -> None:
    import tracemalloc

    def large(i: int) -> dict[str, Any]:
        return sample(f"s{i}", "C", messages=[{"content": f"{i}" + "lorem ipsum " * 20_000}])

    path = tmp_path / "large.eval"
    path.write_bytes(eval_log(*map(large, range(60))))
    as_json = tmp_path / "large.json"
    as_json.write_bytes(document(*map(large, range(60))))
    assert as_json.stat().st_size > 14_000_000
    for one in (path, as_json):
        found = Source(name=one.name, path=one)
        tracemalloc.start()
        (rows,) = READER.read(found, Options())  # type: ignore[misc]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert rows.frame.height == 60
        assert peak < 8_000_000  # of 14.4 MB; blocks of 1 MB, one sample decoded, headers


# --- documents that are broken ------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 2])
def test_a_torn_document_is_read_to_the_tear(indent: int | None) -> None:
    value = {**header(), "samples": [sample(i, "C", text="ü" * 50) for i in range(100)]}
    content = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    labels = read(content[: len(content) // 2])
    assert 30 < labels.responses < 60
    assert "it ends too early" in notices(labels)
    damaged = re.sub(rb'"id": 40', b'"id" 40', content)
    labels = read(damaged)
    assert labels.responses == 40
    assert "after sample 40: no JSON from character" in notices(labels)


def test_hostile_values_are_an_error_line_and_no_more() -> None:
    deep = b"[" * 100_000
    odd: list[Any] = [
        None,
        [],
        {"epoch": 1},
        {"id": {"a": 1}, "scores": {}},
        {"id": "e", "epoch": 1, "scores": [1]},
        {"id": "f", "epoch": None, "scores": {"judge": 3}},
        {"id": "\ud800\x00", "epoch": 1, "scores": {"jud\x00ge": {"value": "\udfff"}}},
        {"id": "g", "epoch": 1, "scores": {"k" * 1_000_000: {"value": {"a": {"b": []}}}}},
        {"id": "h", "epoch": 1, "scores": {"judge": {"value": 10**400, "history": 7}}},
        {"id": "i", "epoch": 1, "scores": {"judge": {"value": {}, "metadata": []}}, "events": {}},
    ]
    labels = read(document(*odd, *TWO))
    assert {"a", "b"} <= set(labels.frame["response"])
    assert "5 samples could not be read" in notices(labels)
    content = document(*TWO)
    assert read(content[:-2] + b"," + deep).responses == 2
    entries = {"header.json": header(), "samples/a_epoch_1.json": TWO[0]}
    log = archive({**entries, "samples/deep_epoch_1.json": b'{"id":' + deep})
    assert "nested too deeply" in notices(read(log, "log.eval"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"status": "success", "samples": []}',
        b'{"status": "success", "samples": [{"id": 1, "label": "a"}]}',
        b'{"version": 2, "eval": {"score": 1}}',
        b'{"eval": "x", "status": "success"}',
        b"PK\x03\x04" + b"\x00" * 40,
        b"PK\x05\x06" + b"\x00" * 18,
        b"response,grader,label\n1,g,a\n",
        b"{" * 70_000,
    ],
)
def test_what_only_looks_alike_is_left_to_the_other_readers(content: bytes) -> None:
    assert sniff(source(content)) is None


def test_a_workbook_is_no_log() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("[Content_Types].xml", "<x/>")
    assert sniff(source(out.getvalue(), "book.xlsx")) is None
