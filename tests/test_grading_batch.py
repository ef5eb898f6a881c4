"""Batch files: what is written, and what comes back, in any order and in any state."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from voirdire.cli.main import main
from voirdire.grading import parse, rubric
from voirdire.grading.base import GraderSpec, Item, Reading, Reply
from voirdire.grading.batch import read_batch, write_batch
from voirdire.grading.messages import Wording
from voirdire.grading.plan import Items, Plan, Planned, Study, plan
from voirdire.grading.store import Store

FORM = rubric.load("four-way")
CLASSES = FORM.labels
Voirdire = Callable[..., tuple[int, str, str]]


def study_of(*graders: GraderSpec, **more: Any) -> Study:
    return Study(
        responses=Path("responses.jsonl"),
        rubric="four-way",
        graders=graders or (GraderSpec(name="m", provider="openai", model="m"),),
        phrasings=("plain",),
        **more,
    )


def planned(n: int, *graders: GraderSpec, **more: Any) -> Plan:
    items = Items.of([Item(id=f"r{i}", response=f"Text {i}.", question="") for i in range(n)])
    return plan(study_of(*graders, **more), Wording(FORM), items)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def said(text: str, *, finish: str = "stop", tokens: tuple[int, int] = (10, 2)) -> dict[str, Any]:
    """A body of status 200."""
    return {
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]},
    }


def result(call: dict[str, Any], body: Any, *, status: int = 200) -> dict[str, Any]:
    """A line of output, as OpenAI and vLLM write it."""
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": "b", "custom_id": call["custom_id"], "response": response, "error": None}


def save(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def read(call: Planned, reply: Reply) -> Reading:
    return parse.read(reply, FORM)


def test_a_line_holds_the_key_and_the_body_that_would_be_sent(tmp_path: Path) -> None:
    spec = GraderSpec(
        name="m", provider="openai", model="m", parameters={"temperature": 0, "max_tokens": 9}
    )
    made = planned(3, spec, votes=2)
    with Store.open(tmp_path / "s.sqlite") as store:
        written = write_batch(made, store, tmp_path / "batch.jsonl")
    assert written.files == ((tmp_path / "batch.jsonl", 6),)
    lines = lines_of(tmp_path / "batch.jsonl")
    # In the order of asking, which mixes responses and votes.
    assert [bytes.fromhex(x["custom_id"]) for x in lines] == [
        made.keys[at].tobytes() for at in made.order
    ]
    first = lines[0]
    assert {k: first[k] for k in ("method", "url")} == {
        "method": "POST",
        "url": "/v1/chat/completions",
    }
    assert len(first["custom_id"]) == 64
    body = first["body"]
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("m", 0, 9)
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["label"]
    request = made.request(made.at(int(made.order[0])))
    assert body["messages"] == [{"role": m.role, "content": m.content} for m in request.messages]


def test_answers_in_any_order_make_the_same_labels(tmp_path: Path) -> None:
    made = planned(20, votes=2)
    with Store.open(tmp_path / "s.sqlite") as store:
        write_batch(made, store, tmp_path / "batch.jsonl")
        calls = lines_of(tmp_path / "batch.jsonl")
        label = {c["custom_id"]: CLASSES[i % 4] for i, c in enumerate(calls)}
        answers = [result(c, said(json.dumps({"label": label[c["custom_id"]]}))) for c in calls]
        random.Random(1).shuffle(answers)
        store.begin(made)
        found = read_batch(
            made, store, [save(tmp_path / "out.jsonl", answers)], read=read, reader="x"
        )
        assert found.outcomes == {"label": 40}
        assert len(store.left(made)) == 0
        assert {key.hex(): label for key, _, label, _, _ in store.readings()} == label
        call = store.call(made.keys[0].tobytes())
        assert call is not None
        assert call.reply is not None
        assert (call.reply.tokens_in, call.reply.tokens_out) == (10, 2)
        assert call.cost is None  # no price is known
        # Reading the file again replaces nothing.
        again = read_batch(made, store, [tmp_path / "out.jsonl"], read=read, reader="x")
        assert (again.replies, again.known) == (0, 40)


def test_what_has_no_answer_is_asked_again_and_what_was_blocked_is_not(tmp_path: Path) -> None:
    made = planned(8)
    with Store.open(tmp_path / "s.sqlite") as store:
        write_batch(made, store, tmp_path / "batch.jsonl")
        calls = lines_of(tmp_path / "batch.jsonl")
        expired = {"code": "batch_expired", "message": "not done in time"}
        answers = [
            result(calls[0], said('{"label": "refusal"}')),
            result(calls[1], said("", finish="length")),
            result(calls[2], {"error": {"message": "slow down"}}, status=429),
            result(calls[3], {"error": {"message": "broken"}}, status=500),
            result(calls[4], {"error": {"message": "x", "code": "content_filter"}}, status=400),
            {"custom_id": calls[5]["custom_id"], "response": None, "error": expired},
            result(calls[6], {"choices": []}),
        ]
        store.begin(made)
        found = read_batch(
            made, store, [save(tmp_path / "out.jsonl", answers)], read=read, reader="x"
        )
        assert found.outcomes == {"label": 1, "truncated": 1}
        assert found.failures == {"limit": 1, "server": 3, "blocked": 1}
        left = {made.keys[at].tobytes().hex() for at in store.left(made)}
        assert left == {calls[i]["custom_id"] for i in (2, 3, 5, 6, 7)}
        write_batch(made, store, tmp_path / "rest.jsonl")
        assert {x["custom_id"] for x in lines_of(tmp_path / "rest.jsonl")} == left


def test_torn_foreign_and_odd_lines_are_counted_and_left_out(tmp_path: Path) -> None:
    made = planned(3)
    with Store.open(tmp_path / "s.sqlite") as store:
        write_batch(made, store, tmp_path / "batch.jsonl")
        calls = lines_of(tmp_path / "batch.jsonl")
        good = json.dumps(result(calls[0], said('{"label": "refusal"}')))
        foreign = json.dumps({**json.loads(good), "custom_id": "00" * 32})
        odd = json.dumps({**json.loads(good), "custom_id": 7})
        # The last line is cut, as in a download that broke off.
        text = f"\ufeff{good}\n\n[1]\n{foreign}\n{odd}\n{good[:80]}"
        (tmp_path / "out.jsonl").write_text(text, encoding="utf-8")
        store.begin(made)
        found = read_batch(made, store, [tmp_path / "out.jsonl"], read=read)
        assert (found.replies, found.foreign, found.torn) == (1, 2, 2)


def test_files_are_split_by_grader_number_and_size(tmp_path: Path) -> None:
    graders = [GraderSpec(name=n, provider="openai", model=n) for n in ("a", "b")]
    rule = GraderSpec(name="r", provider="rule")
    made = planned(5, *graders, rule)
    with Store.open(tmp_path / "s.sqlite") as store:
        written = write_batch(made, store, tmp_path / "batch.jsonl", calls=3)
        assert [(p.name, n) for p, n in written.files] == [
            ("batch-1.jsonl", 3),
            ("batch-2.jsonl", 2),
            ("batch-3.jsonl", 3),
            ("batch-4.jsonl", 2),
        ]
        assert len(written.notices) == 1  # the rule is not in any
        models = [{x["body"]["model"] for x in lines_of(p)} for p, _ in written.files]
        assert models == [{"a"}, {"a"}, {"b"}, {"b"}]
        one = len((tmp_path / "batch-1.jsonl").read_bytes()) // 3
        small = write_batch(made, store, tmp_path / "small.jsonl", most_bytes=int(one * 2.5))
        assert [n for _, n in small.files] == [2, 2, 1, 2, 2, 1]
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_what_an_endpoint_refused_before_is_left_out(tmp_path: Path) -> None:
    spec = GraderSpec(name="m", provider="openai", model="m", parameters={"temperature": 0})
    made = planned(1, spec)
    with Store.open(tmp_path / "s.sqlite") as store:
        store.begin(made)
        store.note("m", {"temperature": {"action": "dropped", "to": "", "words": "no"}})
        written = write_batch(made, store, tmp_path / "batch.jsonl")
    assert "temperature" not in lines_of(tmp_path / "batch.jsonl")[0]["body"]
    assert len(written.notices) == 1


# --- by the command ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    save(
        tmp_path / "responses.jsonl", [{"id": f"r{i}", "response": f"Text {i}."} for i in range(6)]
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def voirdire(capsys: pytest.CaptureFixture[str]) -> Voirdire:
    def run(*words: object) -> tuple[int, str, str]:
        status = main([str(w) for w in words])
        out, err = capsys.readouterr()
        return status, out, err

    return run


LINE = ("grade", "responses.jsonl", "--rubric", "four-way", "--model", "m", "--phrasing", "plain")


def test_from_the_batch_to_the_labels(folder: Path, voirdire: Voirdire) -> None:
    status, out, err = voirdire(*LINE, "--write-batch", "batch.jsonl")
    assert status == 0, err
    assert "wrote batch.jsonl, 6 calls" in err
    assert "--read-batch" in out
    calls = lines_of(folder / "batch.jsonl")
    answers = [result(c, said('{"label": "evasion"}')) for c in calls]
    save(folder / "one.jsonl", answers[:4])
    status, out, err = voirdire(*LINE, "--read-batch", "one.jsonl", "-o", "labels.parquet")
    assert status == 6
    assert "4 new replies (4 label)" in out
    assert "2 calls left to ask" in err
    save(folder / "two.jsonl", answers[3:])
    status, out, err = voirdire(
        *LINE, "--read-batch", "two.jsonl", "--read-batch", "one.jsonl", "-o", "labels.parquet"
    )
    assert status == 0, err
    assert "2 new replies" in out
    assert "5 answers: in the store already" in err
    labels = pl.read_parquet("labels.parquet").cast(pl.String)
    assert labels["label"].to_list() == ["evasion"] * 6
    status, _, err = voirdire(*LINE, "--write-batch", "batch.jsonl")
    assert status == 0
    assert "nothing is left to ask" in err


def test_half_a_character_can_be_written(folder: Path, voirdire: Voirdire) -> None:
    save(folder / "responses.jsonl", [{"id": "r", "response": "half \ud83d and zero \x00"}])
    status, _, err = voirdire(*LINE, "--write-batch", "batch.jsonl")
    assert status == 0, err
    [call] = lines_of(folder / "batch.jsonl")
    assert "half \ufffd and zero \u2400" in call["body"]["messages"][-1]["content"]


def test_a_batch_of_another_study_is_refused(folder: Path, voirdire: Voirdire) -> None:
    voirdire(*LINE, "--write-batch", "batch.jsonl")
    calls = lines_of(folder / "batch.jsonl")
    save(folder / "out.jsonl", [result(c, said('{"label": "evasion"}')) for c in calls])
    status, _, err = voirdire(*LINE, "--temperature", "0", "--read-batch", "out.jsonl")
    assert status == 3
    assert "Read a batch with the command that wrote it" in err
    status, _, err = voirdire(*LINE, "--read-batch", "gone.jsonl")
    assert status == 3
    assert "no such file" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--write-batch", "gone/batch.jsonl"), "no folder gone"),
        (("--write-batch", "responses.jsonl"), "would be lost"),
    ],
)
def test_a_batch_that_cannot_be_written_is_said_first(
    folder: Path, voirdire: Voirdire, words: tuple[str, ...], said: str
) -> None:
    status, _, err = voirdire(*LINE, *words)
    assert status == 2
    assert said in err
    assert len(lines_of(folder / "responses.jsonl")) == 6


def test_graders_that_are_no_endpoint_have_no_batch(folder: Path, voirdire: Voirdire) -> None:
    line = ("grade", "responses.jsonl", "--rubric", "four-way", "--provider", "rule")
    status, _, err = voirdire(*line, "--write-batch", "batch.jsonl")
    assert status == 2
    assert "no grader of this study is one" in err
