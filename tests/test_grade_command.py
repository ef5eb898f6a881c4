"""``voirdire grade`` as a person types it, against local endpoints and scripted graders."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

from tests.conftest import ROOT
from tests.fault_server import Asked, FaultServer, Step, answer, error
from voirdire.cli.main import main
from voirdire.grading import Study, grade, plan, prepare
from voirdire.grading.study_schema import schema

SHARED = ROOT.parent / "shared"
INPUTS = SHARED / "cases" / "inputs"
needs_inputs = pytest.mark.skipif(
    not INPUTS.is_dir(), reason="the field cases (../shared/cases) are not beside this checkout"
)

REFUSAL = '{"label": "refusal"}'
Voirdire = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with ten responses to five prompts, and no key in the environment."""
    rows = [
        {
            "id": f"r{i}",
            "prompt_id": f"p{i // 2}",
            "prompt": "What is tea?",
            "response": f"Text {i}.",
        }
        for i in range(10)
    ]
    save(tmp_path / "responses.jsonl", rows)
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def voirdire(capsys: pytest.CaptureFixture[str]) -> Voirdire:
    """The command line in this process: status, standard output, standard error."""

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(w) for w in words])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def save(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def scripted(folder: Path, **answers: Any) -> tuple[str, ...]:
    """Flags of a grader whose answers stand in a file."""
    path = folder / "answers.json"
    path.write_text(json.dumps(answers), encoding="utf-8")
    return ("--provider", "scripted", "--option", f"script={path}")


def endpoint(server: FaultServer, *more: object) -> tuple[str, ...]:
    flags = ("--model", "stand-in", "--base-url", server.url, "--phrasing", "plain", *more)
    return ("grade", "responses.jsonl", "--rubric", "four-way", *map(str, flags))


def tables(path: Path) -> list[str]:
    return sorted(p.name for p in path.iterdir())


# --- the whole way --------------------------------------------------------------------------------


def test_the_line_of_the_help_grades_and_its_next_line_audits(
    folder: Path, voirdire: Voirdire
) -> None:
    with FaultServer([answer(REFUSAL)]) as server:
        line = [
            *("grade", "responses.jsonl", "--rubric", "four-way", "--model", "stand-in"),
            *("--base-url", server.url, "--votes", "3", "-o", "labels.parquet"),
        ]
        status, out, err = voirdire(*line)
        assert status == 0, err
        assert len(server.requests) == 10 * 3 * 3  # responses, phrasings, votes
        assert "90 of 90 ended: 90 label" in out
        # A second run asks nothing and writes the same labels.
        before = Path("labels.parquet").read_bytes()
        status, out, err = voirdire(*line)
        assert status == 0
        assert "asked nothing" in out
        assert len(server.requests) == 90
        assert Path("labels.parquet").read_bytes() == before
    assert tables(folder) == ["labels.parquet", "responses.four-way.sqlite", "responses.jsonl"]
    labels = pl.read_parquet("labels.parquet")
    assert labels.select("response", "phrasing", "vote").n_unique() == 90
    assert set(labels["cluster"].unique()) == {f"p{i}" for i in range(5)}
    words = out.partition("Next: voirdire ")[2].split()
    assert words[:2] == ["audit", "labels.parquet"]
    assert voirdire(*words)[0] == 0


def test_a_csv_of_labels_gets_its_scale_in_the_next_line(folder: Path, voirdire: Voirdire) -> None:
    status, out, _ = voirdire(
        *("grade", "responses.jsonl", "--rubric", "four-way", "--provider", "rule"),
        *("-o", "labels.csv", "-o", "labels.parquet"),
    )
    assert status == 0
    words = out.partition("Next: voirdire ")[2].split()
    assert words[2:6] == ["--scale", "refusal,evasion,compliance", "--off-scale", "gibberish"]
    assert voirdire(*words)[0] == 0
    kept = ["response", "label"]
    assert (
        pl.read_csv("labels.csv").select(kept).rows()
        == pl.read_parquet("labels.parquet").cast({"label": pl.String}).select(kept).rows()
    )


def test_gold_beside_the_responses_joins_in_the_next_line(folder: Path, voirdire: Voirdire) -> None:
    rows = [
        {"id": f"r{i}", "response": f"Text {i}.", "gold": "refusal" if i % 2 else "compliance"}
        for i in range(6)
    ]
    save(folder / "responses.jsonl", rows)
    line = ("grade", "responses.jsonl", "--rubric", "four-way", "--provider", "rule")
    _, out, _ = voirdire(*line, "-o", "labels.parquet")
    words = out.partition("Next: voirdire ")[2].split()
    assert words[1:3] == ["labels.parquet", "responses.jsonl"]
    status, said, _ = voirdire(*words)
    assert status == 0
    assert "gold is gold" in said


def test_a_study_file_has_several_graders_and_flags_go_before_it(
    folder: Path, voirdire: Voirdire
) -> None:
    (folder / "answers.json").write_text(json.dumps({"default": REFUSAL}), encoding="utf-8")
    (folder / "study.toml").write_text(
        'responses = "responses.jsonl"\nrubric = "four-way"\nphrasings = ["plain"]\nvotes = 2\n'
        '[[graders]]\nname = "phrases"\nprovider = "rule"\n'
        '[[graders]]\nname = "always"\nprovider = "scripted"\nscript = "answers.json"\n',
        encoding="utf-8",
    )
    status, out, err = voirdire("grade", "study.toml", "--votes", "3", "-o", "labels.parquet")
    assert status == 0, err
    assert "40 of 40 ended" in out  # a rule is asked once, the other three times
    counts = pl.read_parquet("labels.parquet").group_by("grader").len()
    assert dict(counts.cast({"grader": pl.String}).iter_rows()) == {"phrases": 10, "always": 30}


def test_a_second_grader_joins_the_store_and_is_named(folder: Path, voirdire: Voirdire) -> None:
    base = ("grade", "responses.jsonl", "--rubric", "four-way", "--phrasing", "plain")
    voirdire(*base, "--provider", "rule")
    status, _, err = voirdire(
        *base, *scripted(folder, default=REFUSAL), "--name", "always", "-o", "labels.parquet"
    )
    assert status == 0
    assert "the labels also have rule" in err
    assert set(pl.read_parquet("labels.parquet")["grader"].unique()) == {"rule", "always"}


def test_a_checklist_is_graded_line_by_line_and_audited(folder: Path, voirdire: Voirdire) -> None:
    ids = ("answers", "on-topic", "whole", "language", "consistent", "no-repeat")
    reply = json.dumps({i: i != "whole" for i in ids[:-1]})  # one line is left out
    status, out, err = voirdire(
        *("grade", "responses.jsonl", "--rubric", "yes-no", "--phrasing", "plain"),
        *scripted(folder, default=reply),
        *("-o", "labels.parquet"),
    )
    assert status == 0, err
    labels = pl.read_parquet("labels.parquet").cast(pl.String)
    found = dict(labels.filter(pl.col("response") == "r0").select("line", "label").iter_rows())
    assert found == {**dict.fromkeys(ids, "1"), "whole": "0", "no-repeat": None}
    words = out.partition("Next: voirdire ")[2].split()
    assert voirdire(*words)[0] == 0


def test_quiet_says_nothing_where_all_is_well(folder: Path, voirdire: Voirdire) -> None:
    line = ("grade", "responses.jsonl", "--rubric", "four-way", "--provider", "rule", "--quiet")
    assert voirdire(*line) == (0, "", "")


def test_without_a_terminal_progress_is_lines(folder: Path, voirdire: Voirdire) -> None:
    with FaultServer([answer(REFUSAL), answer("?"), answer("", finish="length")]) as server:
        _, _, err = voirdire(*endpoint(server))
    assert "\r" not in err
    assert "10 done, 0 failed, 9 unread" in err


def test_the_library_does_the_same(folder: Path) -> None:
    study = Study.of(responses="responses.jsonl", rubric="four-way", provider="rule")
    graded = grade(study)
    assert graded.exit_status == 0
    assert graded.outcomes == {"label": 10}
    assert graded.labels.grader_names == ("rule",)


# --- instead of a run -----------------------------------------------------------------------------


def test_a_dry_run_says_what_would_be_asked_and_makes_no_store(
    folder: Path, voirdire: Voirdire
) -> None:
    line = ("grade", "responses.jsonl", "--rubric", "four-way", "--model", "m", "--votes", "2")
    status, out, _ = voirdire(*line, "--dry-run")
    assert status == 0
    assert "60 calls: 10 responses × 3 phrasings (plain, questions, reader) × 2 votes" in out
    assert "unknown" in out
    assert tables(folder) == ["responses.jsonl"]
    _, out, _ = voirdire(
        *line, "--max-tokens", "10", "--price-in", "1000", "--price-out", "2000", "--dry-run"
    )
    cost = float(out.partition("cost")[2].split()[0].replace(",", ""))
    tokens = int(
        out.partition("about ")[2].split(",  ")[0].split(" ")[0].rstrip(",").replace(",", "")
    )
    # 60 replies of at most 10 tokens; what goes in is the rest.
    assert cost == pytest.approx(((tokens - 600) * 1000 + 600 * 2000) / 1e6, abs=0.005)


def test_show_prompt_prints_what_goes_out(folder: Path, voirdire: Voirdire) -> None:
    flags = ("--temperature", "0", "--max-tokens", "20")
    with FaultServer([answer(REFUSAL)]) as server:
        status, out, _ = voirdire(*endpoint(server, *flags), "--show-prompt")
        assert status == 0
        assert server.requests == []
        assert tables(folder) == ["responses.jsonl"]
        voirdire(*endpoint(server, *flags))
        asked = next(r for r in server.requests if "Text 0." in r.text)
    blocks = "".join(f"--- {m['role']}\n{m['content']}\n" for m in asked.body["messages"])
    assert out.startswith(blocks)
    sent = json.loads(out.partition("--- sent with it\n")[2])
    assert {k: sent[k] for k in ("temperature", "max_tokens")} == {
        "temperature": 0,
        "max_tokens": 20,
    }
    # Without a grader too: a rubric is written before a model is chosen.
    status, out, _ = voirdire("grade", "responses.jsonl", "--rubric", "yes-no", "--show-prompt")
    assert status == 0
    assert "- answers: The response gives an answer" in out


def test_schemas_fit_what_is_read(folder: Path, voirdire: Voirdire) -> None:
    for what in ("rubric", "study"):
        status, out, _ = voirdire("grade", "--print-schema", what)
        assert status == 0
        jsonschema.Draft202012Validator.check_schema(json.loads(out))
    assert voirdire("grade", "--print-schema", "report")[0] == 2
    # All settings that are read, and no others.
    top = schema()
    assert set(top["properties"]) == set(plan._STUDY_KEYS)
    assert set(top["$defs"]["grader"]["properties"]) == set(plan._GRADER_KEYS)
    assert set(top["properties"]["limits"]["properties"]) == set(plan._LIMIT_KEYS)


def test_reparse_asks_nothing_and_names_the_verdicts_that_change(
    folder: Path, voirdire: Voirdire
) -> None:
    form = (
        'name = "two"\n[[classes]]\nname = "no"\nsynonyms = []\n[[classes]]\nname = "yes"\n'
        '[[phrasings]]\nname = "plain"\ninstruction = "Does it?"\n'
    )
    (folder / "two.toml").write_text(form, encoding="utf-8")
    with FaultServer([answer('{"label": "nope"}')]) as server:
        line = [
            *("grade", "responses.jsonl", "--rubric", "two.toml", "--model", "stand-in"),
            *("--base-url", server.url),
        ]
        _, out, _ = voirdire(*line)
        assert "10 unparsed" in out
        # A synonym changes what is read, and nothing of what is asked.
        (folder / "two.toml").write_text(
            form.replace("synonyms = []", 'synonyms = ["nope"]'), encoding="utf-8"
        )
        status, out, err = voirdire(*line)
        assert status == 0
        assert "10 stored replies were read with another parser or other synonyms" in err
        assert "10 unparsed" in out
        status, out, _ = voirdire(*line, "--reparse", "-o", "labels.parquet")
        assert status == 0
        assert "10 verdicts changed" in out
        assert "r3, stand-in, plain, vote 1: unparsed: off-menu → no" in out
        assert len(server.requests) == 10
    labels = pl.read_parquet("labels.parquet")
    assert labels["label"].cast(pl.String).unique().to_list() == ["no"]
    status, out, _ = voirdire(*line, "--reparse")
    assert "no verdict changed" in out


def test_reparse_without_a_store_says_so(folder: Path, voirdire: Voirdire) -> None:
    line = ("grade", "responses.jsonl", "--rubric", "four-way", "--provider", "rule", "--reparse")
    status, _, err = voirdire(*line)
    assert status == 3
    assert "there is no store yet" in err
    assert tables(folder) == ["responses.jsonl"]


# --- what does not go well --------------------------------------------------------------------------


def test_failed_calls_end_incomplete_and_the_same_line_goes_on(
    folder: Path, voirdire: Voirdire
) -> None:
    down = True

    def script(asked: Asked) -> Step:
        return error(500, "broken") if down and "Text 3." in asked.text else answer(REFUSAL)

    with FaultServer(script) as server:
        line = endpoint(server, "--retries", 0, "-o", "labels.parquet")
        status, out, err = voirdire(*line)
        assert status == 6
        assert "9 answered, 1 failed (1 server)" in out
        assert "1 call left to ask. Run the same command again" in err
        labels = pl.read_parquet("labels.parquet").cast(pl.String)
        assert labels.filter(pl.col("response") == "r3")["outcome"].to_list() == ["error"]
        down, asked = False, len(server.requests)
        status, out, _ = voirdire(*line)
        assert status == 0
        assert len(server.requests) == asked + 1
    assert pl.read_parquet("labels.parquet")["label"].null_count() == 0


def test_limits_stop_cleanly_and_say_which(folder: Path, voirdire: Voirdire) -> None:
    with FaultServer([answer(REFUSAL, tokens=(1000, 0))]) as server:
        status, _, err = voirdire(*endpoint(server, "--max-calls", 4))
        assert status == 6
        assert len(server.requests) == 4
        assert "--max-calls) is reached; 6 calls left" in err
        prices = ("--price-in", 1, "--price-out", 1)  # each call costs 0.001
        status, _, err = voirdire(*endpoint(server, *prices, "--budget", 0.0025))
        assert status == 6
        assert len(server.requests) == 6
        assert "the budget is used up; 4 calls left" in err
        status, _, err = voirdire(*endpoint(server, "--budget", 1))
        assert status == 6
        assert len(server.requests) == 7  # the first shows that no price is known
        assert "Give price_in and price_out" in err


def test_a_missing_key_stops_before_anything_is_asked(folder: Path, voirdire: Voirdire) -> None:
    with FaultServer([answer(REFUSAL)]) as server:
        status, out, err = voirdire(
            *endpoint(server, "--api-key-env", "NOT_SET_HERE", "-o", "labels.parquet")
        )
        assert server.requests == []
    assert status == 4
    assert "NOT_SET_HERE is not set" in err
    assert "10 calls left" in err
    assert "Next:" not in out
    assert not Path("labels.parquet").exists()


def test_a_grader_that_is_done_needs_no_key(
    folder: Path, voirdire: Voirdire, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer([answer(REFUSAL)]) as server:
        line = endpoint(server, "--api-key-env", "SOME_KEY")
        monkeypatch.setenv("SOME_KEY", "a-key-of-no-use")
        assert voirdire(*line)[0] == 0
        monkeypatch.delenv("SOME_KEY")
        assert voirdire(*line)[0] == 0


def test_a_wrong_address_stops_at_once(folder: Path, voirdire: Voirdire) -> None:
    line = ("grade", "responses.jsonl", "--rubric", "four-way", "--model", "m", "--retries", "0")
    status, out, err = voirdire(*line, "--base-url", "http://127.0.0.1:9/v1")
    assert status == 4
    assert "no connection to http://127.0.0.1:9/v1" in err
    assert "1 request;" in out
    status, _, err = voirdire(*line, "--base-url", "127.0.0.1/v1")
    assert status == 4
    assert "does not begin with" in err


def test_a_model_that_does_not_exist_stops_with_the_words_of_the_provider(
    folder: Path, voirdire: Voirdire
) -> None:
    words = "The model `stand-in` does not exist or you do not have access to it."
    with FaultServer([error(404, words, code="model_not_found")]) as server:
        status, out, err = voirdire(*endpoint(server, "-o", "labels.parquet"))
        assert len(server.requests) == 1
    assert status == 4
    assert words in err
    # What was planned under a wrong name is in no later audit.
    voirdire("grade", "responses.jsonl", "--rubric", "four-way", "--provider", "rule")
    status, out, err = voirdire("audit", "responses.four-way.sqlite")
    assert status == 0
    assert "stand-in" not in out + err
    assert "not made yet" not in err


def test_after_a_wrong_key_the_same_line_with_the_right_one_grades_all(
    folder: Path, voirdire: Voirdire
) -> None:
    first = [error(401, "Incorrect API key provided"), answer(REFUSAL)]
    with FaultServer(first) as server:
        assert voirdire(*endpoint(server))[0] == 4
        status, out, _ = voirdire(*endpoint(server, "-o", "labels.parquet"))
    assert status == 0
    assert "10 of 10 ended: 10 label" in out
    assert pl.read_parquet("labels.parquet")["label"].null_count() == 0


def test_a_rubric_without_classes_is_refused_with_its_place(
    folder: Path, voirdire: Voirdire
) -> None:
    (folder / "none.toml").write_text(
        '[[phrasings]]\nname = "plain"\ninstruction = "Judge."\n', encoding="utf-8"
    )
    status, _, err = voirdire(
        "grade", "responses.jsonl", "--rubric", "none.toml", "--provider", "rule"
    )
    assert status == 3
    assert "none.toml, classes" in err


def test_a_checklist_that_does_not_fit_the_questions_names_them_all(
    folder: Path, voirdire: Voirdire
) -> None:
    (folder / "lines.toml").write_text(
        '[[questions]]\nid = "q1"\nlines = [{id = "L1", text = "It is."}]\n'
        '[[phrasings]]\nname = "plain"\ninstruction = "Check."\n',
        encoding="utf-8",
    )
    rows = [{"id": f"r{i}", "question_id": f"q{i % 3}", "response": "x"} for i in range(6)]
    save(folder / "responses.jsonl", rows)
    status, _, err = voirdire(
        "grade", "responses.jsonl", "--rubric", "lines.toml", *scripted(folder, default="L1: yes")
    )
    assert status == 3
    assert "q0 (2 responses); q2 (2 responses)" in err
    assert tables(folder) == ["answers.json", "lines.toml", "responses.jsonl"]


def test_responses_that_changed_are_noticed_by_content_and_graded_anew(
    folder: Path, voirdire: Voirdire
) -> None:
    with FaultServer([answer(REFUSAL)]) as server:
        line = endpoint(server, "--store", "store.sqlite")
        voirdire(*line)
        rows = [json.loads(x) for x in Path("responses.jsonl").read_text("utf-8").splitlines()]
        # The same content in a file of another name is nothing new …
        save(folder / "copy.jsonl", rows)
        status, _, err = voirdire(line[0], "copy.jsonl", *line[2:])
        assert status == 0
        assert len(server.requests) == 10
        assert "another content" not in err
        # … and another content in a file of the same name is.
        rows[4]["response"] = "Something else."
        save(folder / "responses.jsonl", rows)
        status, _, err = voirdire(*line)
        assert status == 0
        assert len(server.requests) == 11
        assert "1 response has another content than in an earlier run" in err


def test_a_rubric_that_changed_is_noticed_and_asked_anew(folder: Path, voirdire: Voirdire) -> None:
    form = '[[classes]]\nname = "no"\n[[classes]]\nname = "yes"\n[[phrasings]]\nname = "a"\n'
    rubric = folder / "mine.toml"
    rubric.write_text(form + 'instruction = "Does it?"\n', encoding="utf-8")
    with FaultServer([answer('{"label": "no"}')]) as server:
        line = [
            *("grade", "responses.jsonl", "--rubric", "mine.toml", "--model", "stand-in"),
            *("--base-url", server.url),
        ]
        voirdire(*line)
        rubric.write_text(form + 'instruction = "Does it not?"\n', encoding="utf-8")
        status, _, err = voirdire(*line)
        assert status == 0
        assert len(server.requests) == 20
        assert "The rubric (mine) is not the one of the last run" in err


def test_a_store_of_a_newer_version_is_left_alone(folder: Path, voirdire: Voirdire) -> None:
    line = ("grade", "responses.jsonl", "--rubric", "four-way", "--provider", "rule")
    voirdire(*line)
    store = Path("responses.four-way.sqlite")
    with sqlite3.connect(store) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = store.read_bytes()
    status, _, err = voirdire(*line)
    assert status == 3
    assert "newer voirdire" in err
    assert store.read_bytes() == before
    Path("other.sqlite").write_bytes(b"not a database, but long enough to be looked at" * 10)
    status, _, err = voirdire(*line, "--store", "other.sqlite")
    assert status == 3
    assert "no grading store" in err


@pytest.mark.skipif(sys.platform != "linux", reason="the size of files is limited as Linux does it")
def test_a_full_disk_stops_with_a_way_on_and_keeps_what_was_answered(
    folder: Path, voirdire: Voirdire
) -> None:
    save(
        folder / "responses.jsonl",
        [{"id": f"r{i}", "response": f"Text {i}."} for i in range(300)],
    )
    flags = ("grade", "responses.jsonl", "--rubric", "four-way", "--phrasing", "plain")
    line = [*flags, *scripted(folder, default=REFUSAL + " " * 3000), "--quiet"]
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000)); "
        "from voirdire.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    done = started([sys.executable, "-c", code, *line], folder)
    said = done.communicate(timeout=60)[1]
    assert done.returncode == 6, said
    assert "Make room on the disk and run the same command again" in said
    status, out, err = voirdire(*(w for w in line if w != "--quiet"))
    assert status == 0, err
    kept = 300 - int(out.partition("this run  ")[2].split()[0])
    assert kept > 0
    assert "300 of 300 ended: 300 label" in out


WITH_MODEL = "responses.jsonl --rubric four-way --model m"


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("responses.jsonl --model m", 2, "Which rubric?"),
        ("responses.jsonl --rubric four-way", 2, "Which model grades?"),
        ("gone.jsonl --rubric four-way --model m", 3, "there is no such file"),
        ("gone.toml", 3, "gone.toml: there is no such file"),
        ("responses.jsonl --rubric five-way --model m", 3, "Did you mean four-way?"),
        ("responses.jsonl --rubric four-way --provider magic", 2, "no provider 'magic'"),
        (f"{WITH_MODEL} --phrasing plane", 2, "Did you mean plain?"),
        (f"{WITH_MODEL} --temperature hot", 2, "--temperature is a number or none"),
        (f"{WITH_MODEL} --votes 0", 2, "--votes is a whole number from 1"),
        (f"{WITH_MODEL} -o labels.xlsx", 2, "Suffixes: .parquet or .csv"),
        (f"{WITH_MODEL} -o gone/x.csv", 2, "there is no folder"),
        (f"{WITH_MODEL} --store responses.jsonl", 2, "the file of responses"),
        (f"{WITH_MODEL} --store gone/x.sqlite", 3, "no such folder"),
        (f"{WITH_MODEL} --dry-run --reparse", 2, "two things to do"),
        (f"{WITH_MODEL} --dry-run -o x.csv", 2, "makes no labels"),
        (f"{WITH_MODEL} --column text", 2, "--column text: write --column NAME=VALUE"),
        (f"{WITH_MODEL} --column label=x", 2, "no setting 'label' in columns"),
        (f"{WITH_MODEL} --column response=txt", 2, 'there is no column "txt"'),
    ],
)
def test_what_cannot_be_used_is_said_before_anything_is_asked(
    folder: Path, voirdire: Voirdire, line: str, status: int, said: str
) -> None:
    found, _, err = voirdire("grade", *line.split())
    assert found == status, err
    assert said in err
    assert tables(folder) == ["responses.jsonl"]


@pytest.mark.parametrize(
    "words",
    [
        ("--api-key-env", "sk-abcdefghijklmnopqrstuvwx"),
        ("--parameter", "api_key=sk-abcdefghijklmnopqrstuvwx"),
        ("--base-url", "http://me:sk-abcdefghijklmnopqrstuvwx@127.0.0.1/v1"),
        ("--api-key", "sk-abcdefghijklmnopqrstuvwx"),
    ],
)
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(
    folder: Path, voirdire: Voirdire, words: tuple[str, ...]
) -> None:
    line = ("grade", "responses.jsonl", "--rubric", "four-way", "--model", "m")
    status, out, err = voirdire(*line, *words)
    assert status == 2
    assert "abcdefghijkl" not in out + err


def test_no_secret_reaches_a_file_or_the_screen(
    folder: Path, voirdire: Voirdire, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "voirdire-test-secret-8431"
    monkeypatch.setenv("SOME_KEY", secret)
    steps = [answer(REFUSAL), answer(f"You sent {secret}"), error(400, f"key {secret} is odd")]
    with FaultServer(steps) as server:
        _, out, err = voirdire(*endpoint(server, "--api-key-env", "SOME_KEY", "-o", "labels.csv"))
        assert server.requests[0].headers["authorization"] == f"Bearer {secret}"
    assert secret not in out + err
    for path in folder.iterdir():
        assert secret.encode() not in path.read_bytes(), path.name


def test_what_was_changed_and_who_answered_is_shown(folder: Path, voirdire: Voirdire) -> None:
    def script(asked: Asked) -> Step:
        if "temperature" in asked.body:
            return error(400, "'temperature' is not supported with this model", param="temperature")
        return answer(REFUSAL, model="another-model")

    with FaultServer(script) as server:
        status, out, _ = voirdire(*endpoint(server, "--temperature", 0))
        assert len(server.requests) == 11
    assert status == 0
    assert "stand-in: temperature was left out; the endpoint does not take it." in out
    assert "asked for stand-in, answered by another-model (10)" in out


def test_a_grammar_is_sent_as_a_parameter_and_is_in_the_key(
    folder: Path, voirdire: Voirdire
) -> None:
    rubric = folder / "bare.toml"
    form = (
        '[reply]\nformat = "grammar"\n[[classes]]\nname = "no"\n[[classes]]\nname = "yes"\n'
        '[[phrasings]]\nname = "a"\ninstruction = "Does it?"\n'
    )
    rubric.write_text(form, encoding="utf-8")
    with FaultServer([answer("no")]) as server:
        line = [
            *("grade", "responses.jsonl", "--rubric", "bare.toml", "--model", "stand-in"),
            *("--base-url", server.url),
        ]
        assert voirdire(*line)[0] == 0
        body = server.requests[0].body
        assert body["grammar"] == 'root ::= "no" | "yes"\n'
        assert "response_format" not in body
        rubric.write_text(
            form.replace('"grammar"\n', '"grammar"\ngrammar = \'root ::= "yes" | "no"\'\n'),
            encoding="utf-8",
        )
        assert voirdire(*line)[0] == 0
        assert len(server.requests) == 20


# --- field cases ----------------------------------------------------------------------------------


@needs_inputs
def test_odd_characters_are_graded_kept_and_reported(folder: Path, voirdire: Voirdire) -> None:
    """FC-12."""
    text = (INPUTS / "responses-odd.jsonl").read_bytes()
    (folder / "responses.jsonl").write_bytes(text)
    with FaultServer([answer(REFUSAL)]) as server:
        line = endpoint(server, "-o", "labels.csv", "-o", "labels.parquet")
        status, out, err = voirdire(*line)
        assert status == 0, err
        assert "6 of 6 ended: 6 label" in out
        assert "1 response has no text; it is graded like any other" in err
        bodies = sorted(r.text for r in server.requests)
        # The same on every run: nothing is asked again, and a new store asks the same words.
        assert voirdire(*line)[0] == 0
        assert len(server.requests) == 6
        voirdire(*line, "--store", "again.sqlite")
        assert sorted(r.text for r in server.requests[6:]) == bodies
    status, out, _ = voirdire("audit", "labels.parquet")
    assert status == 0
    assert "\u202e" not in out
    status, _, err = voirdire(
        *("grade", "responses.jsonl", "--rubric", "four-way", "--provider", "rule"),
        *("--empty", "skip", "--store", "skipped.sqlite"),
    )
    assert status == 0
    assert "it is left out" in err


def test_a_very_long_response_is_graded_whole(folder: Path, voirdire: Voirdire) -> None:
    """FC-13."""
    (folder / "long.csv").write_text("id,response\n1," + "a" * 140_000, encoding="utf-8")
    with FaultServer([answer(REFUSAL)]) as server:
        base = ("--rubric", "four-way", "--model", "stand-in", "--phrasing", "plain")
        line = ("grade", "long.csv", *base, "--base-url", server.url)
        status, out, err = voirdire(*line, "-o", "labels.csv")
        assert status == 0, err
        assert "a" * 140_000 in server.requests[0].text
        assert voirdire(*line)[0] == 0
        assert len(server.requests) == 1
        # A declared window that it cannot fit into: an error with that reason, and nothing is sent.
        status, out, err = voirdire(
            *line, "--window", "8192", "--store", "small.sqlite", "-o", "small.csv"
        )
        assert status == 0, err
        assert "1 of 1 ended: 1 error" in out
        assert len(server.requests) == 1
    row = pl.read_csv("small.csv").row(0, named=True)
    assert row["label"] is None
    assert row["outcome"] == "error"
    assert "longer than the grader's window" in json.dumps(row)


def test_an_endpoint_that_finds_a_response_too_long_makes_it_an_error(
    folder: Path, voirdire: Voirdire
) -> None:
    """FC-13, said by the endpoint: settled, and not asked again."""
    words = "This model's maximum context length is 4096 tokens"

    def script(asked: Asked) -> Step:
        return error(400, words) if "Text 2." in asked.text else answer(REFUSAL)

    with FaultServer(script) as server:
        status, out, _ = voirdire(*endpoint(server))
        assert status == 0
        assert "9 label, 1 error" in out
        assert voirdire(*endpoint(server))[0] == 0
        assert len(server.requests) == 10


def started(words: list[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is sent as a signal")
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(
    folder: Path, voirdire: Voirdire, times: int
) -> None:
    """FC-19, with a store."""
    held = 0.5 if times == 1 else 30.0  # the second Ctrl-C does not wait for what is under way

    def script(asked: Asked) -> Step:
        return answer(REFUSAL, delay=held if asked.number >= 4 else 0.0)

    with FaultServer(script) as server:
        line = endpoint(server, "--concurrency", 2, "-o", "labels.parquet")
        process = started([sys.executable, "-m", "voirdire", *line], folder)
        until = time.monotonic() + 30
        while len(server.requests) < 6 and time.monotonic() < until:
            time.sleep(0.02)
        for i in range(times):
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            while i < times - 1 and "Ctrl-C again" not in process.stderr.readline():
                pass
        out, err = process.communicate(timeout=25)
    assert process.returncode == 130, err
    ended = 6 if times == 1 else 4
    assert f"{ended} of 10 ended: {ended} label" in out
    assert f"{10 - ended} calls left to ask. Run the same command again" in err
    assert Path("labels.parquet").exists() == (times == 1)
    with FaultServer([answer(REFUSAL)]) as server:
        status, out, err = voirdire(*endpoint(server, "-o", "labels.parquet"))
        assert status == 0, err
        assert len(server.requests) == 10 - ended
    assert pl.read_parquet("labels.parquet").height == 10


def test_calls_that_another_process_holds_are_left_to_it(folder: Path, voirdire: Voirdire) -> None:
    from voirdire.grading.store import Store

    study = Study.of(
        responses="responses.jsonl", rubric="four-way", provider="rule", phrasings=["plain"]
    )
    work = prepare(study)
    with Store.open(work.store) as other:
        # Of another machine, so that nobody can tell whether it still runs.
        other.owner = json.dumps(["elsewhere", 1, "", "00000000"])
        other.claim([work.plan.keys[i].tobytes() for i in range(3)])
        line = ("grade", "responses.jsonl", "--rubric", "four-way", "--provider", "rule")
        status, out, err = voirdire(*line)
    assert status == 6
    assert "7 of 10 ended" in out
    assert "another process is asking 3 of them now" in err
