"""Several inputs in one run: which responses are the same, and what is said where that is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import voirdire as vd
from voirdire import inputs, workers
from voirdire.errors import InputError
from voirdire.wording import plain


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def inspect_log(
    folder: Path, name: str, values: dict[str, Any], *, task: str = "t", model: str = "m"
) -> Path:
    """An Inspect log with one scorer."""
    samples = [
        {"id": id_, "epoch": 1, "scores": {"judge": {"value": value}}}
        for id_, value in values.items()
    ]
    spec = {"task": task, "task_id": name, "model": model}
    path = folder / f"{name}.json"
    log = {"version": 2, "status": "success", "eval": spec, "samples": samples}
    path.write_text(json.dumps(log), encoding="utf-8")
    return path


def jailbreaks(folder: Path, name: str, verdicts: dict[int, bool]) -> Path:
    """A JailbreakBench artifact, whose responses are called by an index."""
    one = {"goal": "g", "behavior": "b", "category": "c", "prompt": "p", "response": "r"}
    path = folder / f"{name}.json"
    artifact = {
        "parameters": {"method": "M", "model": "v", "attack_type": "a"},
        "jailbreaks": [{**one, "index": i, "jailbroken": v} for i, v in verdicts.items()],
    }
    path.write_text(json.dumps(artifact), encoding="utf-8")
    return path


def judgments(folder: Path, name: str, *, pairs: bool, n: int) -> Path:
    """FastChat judgments of one judge: scores, or verdicts on pairs."""
    made: list[dict[str, Any]] = []
    for i in range(n):
        one: dict[str, Any] = {"question_id": i, "judge": ["gpt-4", "p"], "turn": 1, "tstamp": i}
        if pairs:
            winners = {"g1_winner": ("model_1", "model_2")[i % 2], "g2_winner": "tie"}
            one |= {"model_1": "a", "model_2": "b", **winners}
        else:
            one |= {"model": "a", "user_prompt": "u", "judgment": "j", "score": 1 + i % 9}
        made.append(one)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in made), encoding="utf-8")
    return path


def gold(folder: Path, truth: dict[str, str]) -> Path:
    path = folder / "gold.csv"
    rows = "".join(f"{id_},gold,{label}\n" for id_, label in truth.items())
    path.write_text("response,grader,label\n" + rows, encoding="utf-8")
    return path


# --- logs of two tools --------------------------------------------------------------------------


def test_logs_of_two_tools_with_the_same_ids_are_kept_apart(tmp_path: Path) -> None:
    one = inspect_log(tmp_path, "one", {"0": "C", "1": "I"})
    other = jailbreaks(tmp_path, "other", {0: True, 1: False})
    shared = set(vd.read(one).frame["response"]) & set(vd.read(other).frame["response"])
    assert shared == {"0", "1"}
    labels = vd.read(one, other)
    assert labels.responses == 4
    assert {"inspect_log/0", "jailbreakbench/0"} <= set(labels.frame["response"])
    said = notices(labels)
    assert "have ids of responses in common, such as 0" in said
    assert "voirdire convert LOG" in said


def test_tables_made_of_such_logs_join_on_purpose(tmp_path: Path) -> None:
    one = inspect_log(tmp_path, "one", {"0": "C", "1": "I"})
    other = jailbreaks(tmp_path, "other", {0: True, 1: False})
    tables = []
    for log in (one, other):
        tables.append(log.with_suffix(".csv"))
        vd.read(log).write(tables[-1])
    labels = vd.read(*tables)
    assert labels.responses == 2
    assert "in common" not in notices(labels)


def test_logs_of_two_tools_with_other_ids_keep_them(tmp_path: Path) -> None:
    one = inspect_log(tmp_path, "one", {"a": "C", "b": "I"})
    other = jailbreaks(tmp_path, "other", {0: True, 1: False})
    labels = vd.read(one, other)
    assert set(labels.frame["response"]) == {"a", "b", "0", "1"}
    assert "in common" not in notices(labels)


# --- tables beside logs -------------------------------------------------------------------------


def test_gold_finds_the_one_response_that_its_id_means(tmp_path: Path) -> None:
    one = inspect_log(tmp_path, "one", {"a": "C", "b": "I"}, task="first")
    other = inspect_log(tmp_path, "other", {"c": "C"}, task="second")
    truth = gold(tmp_path, {"a": "correct", "b": "correct", "c": "incorrect"})
    labels = vd.read(one, other, truth)
    assert set(labels.frame["response"]) == {"first/a", "first/b", "second/c"}
    assert "Gold" not in notices(labels)


@pytest.mark.parametrize("differs", ["task", "model"])
def test_gold_that_may_mean_two_responses_is_joined_with_none_and_that_is_said(
    tmp_path: Path, differs: str
) -> None:
    one = inspect_log(tmp_path, "one", {"a": "C", "b": "I"}, **{differs: "x"})
    other = inspect_log(tmp_path, "other", {"a": "I", "b": "I"}, **{differs: "y"})
    labels = vd.read(one, other, gold(tmp_path, {"a": "correct", "b": "incorrect"}))
    said = notices(labels)
    assert "2 ids stand in several inputs, such as a, which may be x/a" in said
    assert said.startswith("Gold (gold) stands on no response that anybody else labelled")
    with pytest.raises(InputError, match="Gold"):
        vd.read(one, other, gold(tmp_path, {"a": "correct"}), strict=True)


def test_gold_with_whole_ids_is_joined(tmp_path: Path) -> None:
    one = inspect_log(tmp_path, "one", {"a": "C"}, task="x")
    other = inspect_log(tmp_path, "other", {"a": "I"}, task="y")
    labels = vd.read(one, other, gold(tmp_path, {"x/a": "correct", "y/a": "correct"}))
    assert set(labels.frame["response"]) == {"x/a", "y/a"}
    assert "Gold" not in notices(labels)


def test_gold_in_other_words_is_said_with_the_option_that_settles_it(tmp_path: Path) -> None:
    log = inspect_log(tmp_path, "one", {"a": "C", "b": "I"})
    truth = gold(tmp_path, {"a": "right", "b": "wrong"})
    assert "shares no class with any other grader" in notices(vd.read(log, truth))
    mapped = vd.read(log, truth, map=(("right", "correct"), ("wrong", "incorrect")))
    assert "shares no class" not in notices(mapped)


# --- labels of two kinds ------------------------------------------------------------------------


def test_scores_and_verdicts_on_pairs_of_one_judge_do_not_mix(tmp_path: Path) -> None:
    judgments(tmp_path, "single", pairs=False, n=9)
    judgments(tmp_path, "pair", pairs=True, n=12)
    labels = vd.read(tmp_path)
    assert set(labels.classes) == {"model_1", "model_2", "tie"}
    assert "single.jsonl holds labels of another kind" in notices(labels)


def test_scores_that_happen_not_to_meet_are_one_kind(tmp_path: Path) -> None:
    inspect_log(tmp_path, "low", {"a": 1, "b": 2}, task="x")
    inspect_log(tmp_path, "high", {"a": 3, "b": 4}, task="y")
    assert vd.read(tmp_path).classes == ("1", "2", "3", "4")


def test_graders_of_two_kinds_in_one_log_are_named_with_the_option_for_each(
    tmp_path: Path,
) -> None:
    path = inspect_log(tmp_path, "one", {"a": "C", "b": "I"})
    log = json.loads(path.read_text(encoding="utf-8"))
    for i, one in enumerate(log["samples"]):
        one["scores"]["stars, given"] = {"value": 3 + i}
    path.write_text(json.dumps(log), encoding="utf-8")
    said = notices(vd.read(path))
    assert "labels of 2 kinds" in said
    assert "--graders judge (correct and incorrect)" in said
    assert "--graders 'stars\\, given' (3 and 4)" in said
    alone = vd.read(path, graders=("stars, given",))
    assert alone.classes == ("3", "4")
    assert "kinds" not in notices(alone)


# --- reasons stay with their call ---------------------------------------------------------------


def test_the_reason_of_a_failure_stays_with_the_grader_that_failed(tmp_path: Path) -> None:
    path = inspect_log(tmp_path, "one", {"a": None, "b": "C"})
    log = json.loads(path.read_text(encoding="utf-8"))
    for one in log["samples"]:
        one["scores"]["other"] = {"value": "I"}
    path.write_text(json.dumps(log), encoding="utf-8")
    frame = vd.read(path).frame
    assert frame.filter(outcome="unparsed")["outcome_reason"].to_list() == ["the value is null"]
    assert frame.filter(outcome="label")["outcome_reason"].null_count() == 3


# --- what is left out, and refused --------------------------------------------------------------


def test_a_file_that_is_left_out_is_named_with_the_reason(tmp_path: Path) -> None:
    inspect_log(tmp_path, "one", {"a": "C", "b": "I"})
    (tmp_path / "torn.eval").write_bytes(b"PK\x03\x04 torn")
    (tmp_path / "notes.md").write_text("# notes", encoding="utf-8")
    said = notices(vd.read(tmp_path))
    assert "notes.md (.md is no format of labels)" in said
    assert "torn.eval (this is nothing that voirdire reads" in said


def test_two_exports_of_one_run_are_named_as_such_where_they_conflict(tmp_path: Path) -> None:
    table = "response,grader,label\na,g,{}\n"
    (tmp_path / "run.csv").write_text(table.format("yes"), encoding="utf-8")
    (tmp_path / "run.tsv").write_text(table.format("no").replace(",", "\t"), encoding="utf-8")
    with pytest.raises(InputError, match=r"run\.csv and run\.tsv seem to be exports of one run"):
        vd.read(tmp_path / "run.csv", tmp_path / "run.tsv")


def test_logs_that_name_thousands_of_graders_are_refused_unless_some_are_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = inspect_log(tmp_path, "one", {"a": {f"k{i}": "C" for i in range(1_001)}})
    with pytest.raises(InputError, match=r"1,001 graders .* --graders A,B"):
        vd.read(path)
    assert vd.read(path, graders=("judge.k1", "judge.k2")).grader_names == ("judge.k1", "judge.k2")
    # Of several logs together too.
    for i in range(2):
        values = {"a": {f"k{i}-{j}": "C" for j in range(600)}}
        inspect_log(tmp_path / "..", f"part{i}-{tmp_path.name}", values)
    parts = sorted(tmp_path.parent.glob(f"part*-{tmp_path.name}.json"))
    with pytest.raises(InputError, match="1,200 graders"):
        vd.read(*parts)


def test_processes_are_started_for_large_inputs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(60):
        inspect_log(tmp_path, f"log{i:02}", {"a": "C"}, task=f"t{i}")
    begun: list[int] = []

    def spread(module: str, function: str, items: Any) -> Any:
        begun.append(len(items))
        return iter(())

    monkeypatch.setattr(workers, "spread", spread)
    vd.read(tmp_path)
    assert not begun
    monkeypatch.setattr(inputs, "MUCH", 1_000)
    vd.read(tmp_path)
    assert begun == [60]
