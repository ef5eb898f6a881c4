"""The store: every finished call once, whatever happens; and the labels that an audit reads from it."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import voirdire as vd
from tests.conftest import ROOT, run_python
from tests.test_grading_plan import CHECKLIST, GRADER, items, study, wording
from voirdire.errors import InputError, VoirdireError
from voirdire.grading.base import Attempt, Item, Reading, Reply
from voirdire.grading.plan import Items, Plan, plan
from voirdire.grading.store import Call, Store, StoreFull
from voirdire.readers.grading_store import READER
from voirdire.source import Source
from voirdire.wording import plain

SIX = items(*(f"response {i}" for i in range(1, 7)))


def six(**changed: Any) -> Plan:
    return plan(study(votes=1, **changed), wording(), SIX)


def at(made: Plan, item: str, vote: int = 1) -> int:
    return next(p for p in range(len(made)) if (c := made.at(p)).item.id == item and c.vote == vote)


def done(made: Plan, position: int, text: str = "refusal", **more: Any) -> Call:
    call = made.at(position)
    values: dict[str, Any] = {
        "reply": Reply(text=text, raw=json.dumps({"said": text}), tokens_in=210, tokens_out=4),
        "attempts": (Attempt(at="2026-01-01T00:00:00+00:00", status=200, seconds=0.1),),
        "latency": 0.1,
        "cost": 0.5,
        **more,
    }
    return Call(
        key=call.key,
        item=call.item.id,
        response=made.hashes[made.place(position)[0]].tobytes(),
        grader=call.grader.name,
        phrasing=call.phrasing,
        vote=call.vote,
        **values,
    )


def failed(made: Plan, position: int, status: str = "timeout", **more: Any) -> Call:
    values = {"reply": None, "status": status, "message": "no answer in 2 s", **more}
    return done(made, position, **values)


def said(label: str) -> Reading:
    return Reading(outcome="label", label=label)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def left(store: Store, made: Plan) -> set[str]:
    return {made.at(int(p)).item.id for p in store.left(made)}


# --- FC-16: votes and the cache -----------------------------------------------------------------


def test_a_second_run_asks_nothing_and_has_the_same_labels_in_the_same_order(
    tmp_path: Path,
) -> None:
    one = items("I will not.")
    answers = ["refusal", "refusal", "evasion", "refusal", "evasion"]
    made = plan(study(), wording(), one)
    with Store.open(tmp_path / "run.db") as store:
        store.begin(made)
        for position, answer in enumerate(answers):
            assert store.record(done(made, position, answer), said(answer), reader="1")

    def labels() -> list[str]:
        frame = vd.read(tmp_path / "run.db").frame.sort("vote")
        return frame["label"].cast(pl.String).to_list()

    assert labels() == answers
    with Store.open(tmp_path / "run.db") as store:
        again = plan(study(), wording(), one)
        assert len(store.left(again)) == 0
        store.begin(again)
        more = plan(study(votes=7), wording(), one)
        assert sorted(more.at(int(p)).vote for p in store.left(more)) == [6, 7]
        cooler = study(graders=(replace(GRADER, parameters={"temperature": 0}),))
        assert len(store.left(plan(cooler, wording(), one))) == 5
    assert labels() == answers


# --- FC-19: stopped in the middle, started again ------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.test_grading_store import at, done, said, six
from voirdire.grading.store import Store

made = six()
store = Store.open(Path(sys.argv[1]))
store.begin(made)
keys = [made.at(at(made, q)).key for q in ("q5", "q6")]
assert set(store.claim(keys)) == set(keys)
with store._writing() as db:
    store._keep(db, done(made, at(made, "q5")))
    print("written and not committed", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def state(path: Path) -> Plan:
    """q1, q2 and q4 done, q3 failed, q4 offered twice."""
    made = six()
    with Store.open(path) as store:
        store.begin(made)
        for item, label in (("q1", "refusal"), ("q2", "evasion"), ("q4", "refusal")):
            assert store.record(done(made, at(made, item), label), said(label), reader="1")
        assert store.record(failed(made, at(made, "q3")))
        second = done(made, at(made, "q4"), "compliance")
        assert not store.record(second, said("compliance"), reader="1")
    return made


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no such signal")
def test_a_restart_asks_exactly_for_what_failed_and_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    made = state(path)
    killed = run_python(
        "-c",
        KILLED,
        str(path),
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "written and not committed" in killed.stdout
    with Store.open(path) as store:
        store.begin(made)
        assert left(store, made) == {"q3", "q5", "q6"}
        # The leases of the killed process are free at once, not after their time.
        keys = [made.keys[int(p)].tobytes() for p in store.left(made)]
        assert sorted(store.claim(keys)) == sorted(keys)
        outlook = store.outlook(made)
        assert (outlook.calls, outlook.done, outlook.failed, outlook.to_do) == (6, 3, 1, 3)
        for item in ("q3", "q5", "q6"):
            assert store.record(done(made, at(made, item)), said("refusal"), reader="1")
        assert len(store.left(made)) == 0
        assert [c.item for c in store.calls()] == ["q1", "q2", "q4", "q3", "q5", "q6"]
    labels = vd.read(path)
    assert labels.frame.sort("response")["label"].cast(pl.String).to_list() == [
        *("refusal", "evasion", "refusal", "refusal", "refusal", "refusal"),
    ]


def test_a_failed_call_is_an_error_in_the_labels_and_keeps_its_attempts(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    made = state(path)
    labels = vd.read(path)
    frame = labels.frame.sort("response")
    assert frame["response"].to_list() == ["q1", "q2", "q3", "q4"]
    assert frame["outcome"].cast(pl.String).to_list() == ["label", "label", "error", "label"]
    assert frame["label"].cast(pl.String).to_list() == ["refusal", "evasion", None, "refusal"]
    assert "2 of 6 planned calls are not made yet" in notices(labels)
    with Store.open(path) as store:
        key = made.at(at(made, "q3")).key
        before = store.call(key)
        assert before is not None
        assert (before.status, before.message, before.reply) == (
            "timeout",
            "no answer in 2 s",
            None,
        )
        store.begin(made)
        store.record(done(made, at(made, "q3"), cost=0.25), said("refusal"), reader="1")
        after = store.call(key)
        assert after is not None
        # Both requests, and what both cost: 0.5 and 0.25.
        assert [a.status for a in after.attempts] == [200, 200]
        assert after.cost == 0.75


def test_a_reply_that_was_paid_for_is_never_replaced(tmp_path: Path) -> None:
    made = six()
    with Store.open(tmp_path / "run.db") as store:
        store.begin(made)
        first = done(made, 0, "evasion")
        assert store.record(first)
        assert not store.record(failed(made, 0))
        assert not store.record(done(made, 0, "refusal"), said("refusal"))
        kept = store.call(first.key)
        assert kept is not None
        assert kept.reply == first.reply
        assert list(store.readings()) == []


def test_unknown_cost_stays_unknown(tmp_path: Path) -> None:
    made = six()
    with Store.open(tmp_path / "run.db") as store:
        store.begin(made)
        store.record(failed(made, 0, cost=None))
        store.record(done(made, 0, cost=1.0))
        kept = store.call(made.at(0).key)
        assert kept is not None
        assert kept.cost is None


@pytest.mark.parametrize("status", ["blocked", "other"])
def test_what_a_provider_turned_down_is_an_outcome_and_not_asked_again(
    tmp_path: Path, status: str
) -> None:
    made = six()
    with Store.open(tmp_path / "run.db") as store:
        store.begin(made)
        store.record(failed(made, 0, status))
        assert len(store.left(made)) == 5
        assert store.outlook(made).settled == 1
        assert store.counts() == {"done": 0, status: 1}
    frame = vd.read(tmp_path / "run.db").frame
    blocked = status == "blocked"
    assert frame["outcome"].cast(pl.String).to_list() == ["blocked" if blocked else "error"]
    reason = ("blocked, " if blocked else "") + "no answer in 2 s"
    assert frame["outcome_reason"].to_list() == [reason]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 11), st.sampled_from(["done", "timeout", "blocked"]))))
def test_the_plan_without_the_store_is_what_is_missing(
    tmp_path: Path, history: list[tuple[int, str]]
) -> None:
    made = plan(study(votes=2), wording(), SIX)
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
    settled: set[int] = set()
    with Store.open(path) as store:
        store.begin(made)
        for position, status in history:
            call = done(made, position) if status == "done" else failed(made, position, status)
            if position in settled and status == "done" and store.call(call.key).status != "done":  # type: ignore[union-attr]
                continue  # nobody asks again what was blocked
            store.record(call)
            if status == "timeout" and store.call(call.key).status == "timeout":  # type: ignore[union-attr]
                settled.discard(position)
            else:
                settled.add(position)
        assert set(store.left(made).tolist()) == set(range(12)) - settled
        order = [p for p in made.order.tolist() if p not in settled]
        assert store.left(made).tolist() == order


# --- what changed, by content -------------------------------------------------------------------


def test_changes_are_noticed_by_content_and_not_by_name(tmp_path: Path) -> None:
    made = state(tmp_path / "run.db")
    with Store.open(tmp_path / "run.db") as store:
        assert store.changes(made) == ()
        moved = replace(made, items=replace(made.items, name="another name.csv"))
        assert store.changes(moved) == ()
        texts = [f"response {i}" for i in range(1, 6)] + ["another text", "a new one"]
        changed = plan(study(votes=1), wording(), items(*texts))
        told = "\n".join(plain(n) for n in store.changes(changed))
        assert "1 response has another content" in told
        assert "1 response is new" in told
        fewer = plan(study(votes=1), wording(), items("response 1"))
        assert "5 responses are of earlier runs" in "\n".join(
            plain(n) for n in store.changes(fewer)
        )
        other = plan(study(votes=1), wording(name="second"), SIX)
        assert "The rubric (second) is not the one of the last run (four)" in plain(
            store.changes(other)[0]
        )
        warmer = six(graders=(replace(GRADER, parameters={"temperature": 1}),))
        assert "g has other settings" in plain(store.changes(warmer)[0])


def test_labels_of_a_response_that_changed_no_longer_count(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    state(path)
    texts = [f"response {i}" for i in range(1, 7)]
    texts[0] = "another text"
    changed = plan(study(votes=1), wording(), items(*texts))
    with Store.open(path) as store:
        store.begin(changed)
        assert left(store, changed) == {"q1", "q3", "q5", "q6"}
    labels = vd.read(path)
    assert labels.frame["response"].to_list() == ["q2", "q3", "q4"]
    assert "1 call was made under an earlier" in notices(labels)
    with Store.open(path) as store:  # and they count again when the text is put back
        store.begin(six())
    assert vd.read(path).frame["response"].to_list() == ["q1", "q2", "q3", "q4"]


def test_a_grader_under_a_new_name_keeps_its_labels_and_is_there_once(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    state(path)
    with Store.open(path) as store:
        renamed = six(graders=(replace(GRADER, name="judge"),))
        assert left(store, renamed) == {"q3", "q5", "q6"}
        store.begin(renamed)
    assert vd.read(path).grader_names == ("judge",)


def test_two_studies_in_one_store_are_audited_together(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    state(path)
    second = six(graders=(replace(GRADER, name="h", model="m2"),))
    with Store.open(path) as store:
        store.begin(second)
        store.record(done(second, 0), said("compliance"), reader="1")
    labels = vd.read(path)
    assert labels.grader_names == ("g", "h")
    assert labels.scale == ("refusal", "evasion", "compliance")


# --- several processes --------------------------------------------------------------------------


def _work(path: Path, results: Any) -> None:
    made = plan(study(votes=40), wording(), items("a", "b", "c", "d", "e"))
    mine = 0
    with Store.open(path) as store:
        store.begin(made)
        order = [made.keys[int(p)].tobytes() for p in store.left(made)]
        places = {k.tobytes(): i for i, k in enumerate(made.keys)}
        for start in range(0, len(order), 7):
            for key in store.claim(order[start : start + 7]):
                mine += store.record(done(made, places[key]))
    results.put(mine)


def test_two_processes_share_a_store_and_no_call_is_made_twice(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    path = tmp_path / "run.db"
    workers = [spawn.Process(target=_work, args=(path, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    made = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(timeout=60)
        assert worker.exitcode == 0
    assert sum(made) == 200
    with Store.open(path) as store:
        assert store.counts() == {"done": 200}
        assert store.held_by_others() == (0, 0.0)


def test_a_claim_keeps_others_away_until_it_ends(tmp_path: Path) -> None:
    made = six()
    keys = [k.tobytes() for k in made.keys]
    clock = [1000.0]
    first = Store.open(tmp_path / "run.db", clock=lambda: clock[0])
    second = Store.open(tmp_path / "run.db", clock=lambda: clock[0])
    with first, second:
        first.begin(made)
        assert first.claim(keys[:3], seconds=60) == keys[:3]
        assert second.claim(keys, seconds=60) == keys[3:]
        assert second.held_by_others() == (3, 60.0)
        clock[0] += 40
        first.renew(seconds=60)
        clock[0] += 40
        assert second.claim(keys[:3]) == []
        first.release(keys[:1])
        assert second.claim(keys[:3]) == keys[:1]
        clock[0] += 61
        assert second.claim(keys[:3]) == keys[:3]


def test_what_failed_in_this_run_is_not_claimed_again_in_it(tmp_path: Path) -> None:
    made = six()
    clock = [1000.0]
    with Store.open(tmp_path / "run.db", clock=lambda: clock[0]) as store:
        store.begin(made)
        key = made.at(0).key
        assert store.claim([key]) == [key]
        clock[0] += 1
        store.record(failed(made, 0, ended=store.now()))
        assert store.claim([key]) == []
        clock[0] += 1
        store.begin(made)
        assert store.claim([key]) == [key]


WRITER = """
import sys
from pathlib import Path
from tests.test_grading_store import done, said
from tests.test_grading_plan import items, study, wording
from voirdire.grading.plan import plan
from voirdire.grading.store import Store

made = plan(study(votes=1), wording(), items(*map(str, range(2000))))
store = Store.open(Path(sys.argv[1]))
store.begin(made)
print("begun", flush=True)
for position in store.left(made).tolist():
    assert store.claim([made.keys[position].tobytes()])
    store.record(done(made, position, "refusal " * 200), said("refusal"), reader="1")
    print(position, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no such signal")
def test_kill_at_any_moment_loses_no_finished_call(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    finished: set[int] = set()
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }
    for kills in (3, 20, 57):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        for _ in range(kills):
            finished.add(int(process.stdout.readline()))
        process.kill()
        rest = process.stdout.read().split("\n")
        # Of the last line a part may be missing: its end says that it was written whole.
        finished |= {int(line) for line in rest[:-1]}
        process.wait()
        process.stdout.close()
    made = plan(study(votes=1), wording(), items(*map(str, range(2000))))
    with Store.open(path) as store:
        assert store._asked("PRAGMA integrity_check") == [("ok",)]
        missing = set(store.left(made).tolist())
        assert finished.isdisjoint(missing)
        # Of each process at most the one call between its commit and its line is there unannounced.
        assert len(set(range(2000)) - missing - finished) <= 3


# --- reading again ------------------------------------------------------------------------------


def test_a_better_parser_reads_the_stored_replies_and_says_what_changed(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    made = six()
    with Store.open(path) as store:
        store.begin(made)
        store.record(
            done(made, at(made, "q1"), "I'd say: refusal"),
            Reading(outcome="unparsed", reason="no-verdict"),
            reader="1",
        )
        store.record(done(made, at(made, "q2"), "evasion"), said("evasion"), reader="1")
        store.record(failed(made, at(made, "q3")))
        assert store.unread("2") == 2

        def better(call: Call) -> Reading:
            assert call.reply is not None
            return said((call.reply.text or "").rpartition(" ")[2])

        result = store.reparse(better, "2")
        assert result.replies == 2
        (change,) = result.changes
        assert (change.item, change.before, change.after) == (
            "q1",
            "unparsed: no-verdict",
            "refusal",
        )
        assert store.unread("2") == 0
        assert store.reparse(better, "2").changes == ()
        assert store.reparse(better, "2", all_again=False).replies == 0
        none = np.zeros((0, 32), dtype=np.uint8)
        assert store.reparse(better, "3", only=none).replies == 0
    frame = vd.read(path).frame.sort("response")
    assert frame["label"].cast(pl.String).to_list() == ["refusal", "evasion", None]


def test_a_reply_that_was_never_read_is_unparsed_and_said_so(tmp_path: Path) -> None:
    made = six()
    with Store.open(tmp_path / "run.db") as store:
        store.begin(made)
        store.record(done(made, 0))
        store.record(done(made, 1), said("refusal"), reader="1")
    labels = vd.read(tmp_path / "run.db")
    assert sorted(labels.frame["outcome"].cast(pl.String)) == ["label", "unparsed"]
    assert "1 reply has not been read yet" in notices(labels)


# --- what is kept, and what is not --------------------------------------------------------------


def test_a_reply_comes_back_as_it_was(tmp_path: Path) -> None:
    made = six()
    reply = Reply(
        text="a zero \x00 byte and a line\u2028end",
        reasoning="because",
        finish="stop",
        refusal="no",
        tool_arguments='{"label": 1}',
        model="m-2026",
        fingerprint="fp",
        tokens_in=None,
        tokens_out=0,
        logprobs={"refusal": -0.1},
        raw='{"a": "\\ud83d"}',
    )
    with Store.open(tmp_path / "run.db") as store:
        store.begin(made)
        store.record(done(made, 0, reply=reply, cost=None, latency=None))
        kept = store.call(made.at(0).key)
        assert kept is not None
        assert kept.reply == reply
        assert (kept.cost, kept.latency) == (None, None)
        half = replace(reply, text="half a face \ud83d", reasoning="\udc00")
        store.record(done(made, 1, reply=half))
        kept = store.call(made.at(1).key)
        assert kept is not None
        assert kept.reply is not None
        assert kept.reply.text == "half a face \ufffd"


def test_no_secret_is_in_any_file_of_the_store(tmp_path: Path) -> None:
    secret = "the-value-of-the-key-0123456789"
    other = "sk-abcdefghijklmnop0123456789"
    made = six()
    with Store.open(tmp_path / "run.db", secrets=[secret]) as store:
        store.begin(made)
        text = f"It says {secret}."
        store.record(done(made, 0, reply=Reply(text=text, raw=text, reasoning=text, model=secret)))
        attempt = Attempt(at="", kind="server", message=f"Bearer {other}")
        store.record(
            failed(
                made, 1, message=f"bad key {secret} {other}", raw=text + other, attempts=(attempt,)
            )
        )
        store.note("g", {"header": {"words": secret}})
        store.end(f"stopped: {secret}")
        files = list(tmp_path.iterdir())
        assert files
        content = b"".join(f.read_bytes() for f in files)
    content += b"".join(f.read_bytes() for f in tmp_path.iterdir())
    assert secret.encode() not in content
    assert other.encode() not in content
    assert b"[secret removed]" in content


def test_what_was_changed_for_a_grader_is_kept_for_the_next_run(tmp_path: Path) -> None:
    made = six()
    with Store.open(tmp_path / "run.db") as store:
        store.begin(made)
        store.note("g", {"max_tokens": "max_completion_tokens"})
        store.begin(made)
        store.note("h", {"temperature": None})
        assert store.notes() == {
            "g": {"max_tokens": "max_completion_tokens"},
            "h": {"temperature": None},
        }


def test_the_outlook_has_tokens_and_cost_where_they_can_be_known(tmp_path: Path) -> None:
    made = six(
        graders=(
            replace(GRADER, price_in=1.0, price_out=2.0),
            replace(GRADER, name="free", model="m2", parameters={}),
        )
    )
    with Store.open(tmp_path / "run.db") as store:
        priced, free = store.outlook(made).graders
        characters = int(made.characters(np.arange(6)).sum())
        # Four characters a token in, the limit of 50 tokens out, for six calls.
        assert priced.tokens_in == round(characters / 4)
        assert priced.tokens_out == 300
        assert priced.cost == pytest.approx((priced.tokens_in + 2 * 300) / 1e6)
        assert (free.tokens_out, free.cost) == (None, None)
        assert store.outlook(made).cost is None
        rule = study(graders=(replace(GRADER, name="rule", provider="rule"),))
        (quiet,) = store.outlook(plan(rule, wording(), SIX, talks=lambda spec: False)).graders
        assert (quiet.to_do, quiet.tokens_in, quiet.tokens_out, quiet.cost) == (6, 0, 0, 0.0)
        store.begin(made)
        store.record(done(made, 0))  # took 4 tokens
        assert store.outlook(made).graders[0].tokens_out == 4 * 5


# --- files that are no store, or not whole ------------------------------------------------------


def unchanged(path: Path, said: str) -> None:
    before = path.read_bytes()
    with pytest.raises(InputError, match=said):
        Store.open(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("id,label\n1,a\n", encoding="utf-8")
    unchanged(path, "no grading store")
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE calls (key)")
    db.close()
    unchanged(other, "another program")
    with pytest.raises(InputError, match="no such folder"):
        Store.open(tmp_path / "none" / "run.db")


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    state(path)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    unchanged(path, r"newer voirdire .*99.* Update voirdire")
    with pytest.raises(InputError, match="newer voirdire"):
        vd.read(path)


def test_a_store_that_is_cut_off_or_damaged_is_named_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    state(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    unchanged(path, "cut off")
    for damaged in (
        whole[:4096] + b"\xff" * (len(whole) - 4096),
        b"\0" * 50 + whole[50:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"damaged|malformed|cannot be read"):
            _used(path)
        assert path.read_bytes()[:4096] == damaged[:4096]
        with pytest.raises(InputError):
            vd.read(path)


def _used(path: Path) -> None:
    with Store.open(path) as store:
        store.begin(six())


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    path.touch()
    with Store.open(path) as store:
        assert store.counts() == {"done": 0}
    with pytest.raises(InputError, match="no finished call"):
        vd.read(path)


def test_a_full_disk_stops_with_a_way_on_and_keeps_what_was_finished(tmp_path: Path) -> None:
    made = plan(study(votes=1), wording(), items(*map(str, range(100))))
    with Store.open(tmp_path / "run.db") as store:
        store.begin(made)
        (pages,) = store.db.execute("PRAGMA page_count").fetchone()
        store.db.execute(f"PRAGMA max_page_count = {pages + 20}")
        calls = (done(made, position, "x" * 5000) for position in range(100))
        with pytest.raises(StoreFull, match="run the same command again") as caught:
            list(map(store.record, calls))
        assert caught.value.exit_status == 6
        kept = store.counts()["done"]
        assert 0 < kept < 100
        store.db.execute(f"PRAGMA max_page_count = {pages + 10_000}")
        assert store.record(done(made, 99))
    with Store.open(tmp_path / "run.db") as store:
        assert store._asked("PRAGMA integrity_check") == [("ok",)]
        assert len(store.left(made)) == 100 - kept - 1


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(VoirdireError, match="this is a folder"):
        Store.open(tmp_path)


# --- the store as an input of the audit ---------------------------------------------------------


def test_labels_come_with_clusters_tags_and_facts(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    answers = Items.of(
        [
            Item(
                id=f"q{i}",
                response=f"r{i}",
                cluster=f"c{i % 2}",
                tags={"target": f"t{i % 2}", "vote": "x"},
            )
            for i in range(6)
        ]
    )
    made = plan(study(votes=2, phrasings=()), wording(), answers)
    with Store.open(path) as store:
        store.begin(made)
        for position in range(len(made)):
            label = ("refusal", "evasion")[position % 2]
            store.record(done(made, position, label), said(label), reader="1")
    labels = vd.read(path)
    assert len(labels.frame) == 6 * 2 * 2
    assert labels.frame["cluster"].unique().sort().to_list() == ["c0", "c1"]
    assert labels.clusters_declared
    assert labels.frame["phrasing"].unique().sort().to_list() == ["plain", "strict"]
    assert {t.name for t in labels.tags} >= {"target", "vote (column)"}
    assert labels.scale == ("refusal", "evasion", "compliance")
    assert labels.ordered
    (grader,) = labels.graders
    assert grader.facts["model"] == "m"
    assert grader.facts["temperature"] == 0.7
    assert grader.facts["votes"] == 2
    assert str(grader.facts["prompt"]).startswith("four (")
    assert labels.inputs[0].name == "run.db"
    table = tmp_path / "labels.parquet"
    labels.write(table)
    assert vd.read(table).frame.equals(labels.frame)


def checked(verdicts: Mapping[str, str | None], **more: Any) -> Reading:
    return Reading(outcome="label", lines=verdicts, **more)


def test_a_checklist_has_a_row_for_every_line_that_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    answers = Items.of(
        [
            Item(id="a", response="x", question="q1"),
            Item(id="b", response="y", question="q2"),
            Item(id="c", response="z", question="q2"),
            Item(id="d", response="w", question="q2"),
        ]
    )
    made = plan(study(votes=1), wording(CHECKLIST), answers)
    with Store.open(path) as store:
        store.begin(made)
        store.record(done(made, at(made, "a")), checked({"L1": "1"}))
        store.record(done(made, at(made, "b")), checked({"L1": "0", "L2": None}))
        store.record(failed(made, at(made, "c")))
        store.record(
            done(made, at(made, "d")),
            checked({"L1": None, "L2": "1"}, unread={"L1": "unparsed"}),
        )
    labels = vd.read(path)
    assert labels.kind == "checklist"
    assert labels.checklist is not None
    assert labels.checklist.lines == (("q1/L1",), ("q2/L1", "q2/L2"))
    assert labels.checklist.texts["q2/L2"] == "Says when"
    rows = labels.frame.select(
        "response", "line", pl.col("label").cast(pl.String), pl.col("outcome").cast(pl.String)
    ).sort("response", "line")
    assert rows.rows() == [
        ("a", "q1/L1", "1", "label"),
        ("b", "q2/L1", "0", "label"),
        ("b", "q2/L2", None, "missing"),
        ("c", "q2/L1", None, "error"),
        ("c", "q2/L2", None, "error"),
        ("d", "q2/L1", None, "unparsed"),
        ("d", "q2/L2", "1", "label"),
    ]


def test_one_checklist_for_all_responses(tmp_path: Path) -> None:
    content = {**CHECKLIST, "lines": [{"id": "L1", "text": "a"}, {"id": "L2", "text": "b"}]}
    del content["questions"]
    answers = Items.of(
        [Item(id="a", response="x"), Item(id="b", response="y", question="whatever")]
    )
    made = plan(study(votes=1), wording(content), answers)
    path = tmp_path / "run.db"
    with Store.open(path) as store:
        store.begin(made)
        store.record(done(made, at(made, "a")), checked({"L2": "1", "L1": "0"}))
        store.record(done(made, at(made, "b")), Reading(outcome="truncated"))
    labels = vd.read(path)
    assert labels.checklist is not None
    assert labels.checklist.names == ("L1", "L2")
    outcomes = labels.frame.sort("response", "line")["outcome"].cast(pl.String).to_list()
    assert outcomes == ["label", "label", "truncated", "truncated"]


def test_a_store_in_use_and_one_from_standard_input_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    made = state(path)
    with Store.open(path) as store:
        store.begin(made)
        store.record(done(made, at(made, "q5")), said("compliance"))
        # What was recorded a moment ago is in the journal, and is read.
        assert len(vd.read(path).frame) == 5
        assert len(store.left(made)) == 2
    content = path.read_bytes()
    source = Source(name="standard input", content=content)
    assert READER.sniff(source) is not None
    (rows,) = list(READER.read(source, vd.read(path).options))  # type: ignore[arg-type]
    assert rows.frame.height == 5


def test_the_store_and_a_table_with_its_scale_are_audited_from_the_command_line(
    tmp_path: Path,
) -> None:
    state(tmp_path / "run.db")
    vd.read(tmp_path / "run.db").write(tmp_path / "labels.parquet")
    table = run_python("-m", "voirdire", "audit", "labels.parquet", cwd=tmp_path)
    assert table.returncode == 0, table.stderr
    run = run_python("-m", "voirdire", "audit", "run.db", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "not made yet" in run.stdout + run.stderr
    look = run_python("-m", "voirdire", "look", "run.db", cwd=tmp_path)
    assert look.returncode == 0, look.stderr
    assert "4 rows of labels, 1 grader" in look.stdout


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
@given(
    st.lists(st.tuples(st.integers(0, 1 << 20), st.binary(min_size=1, max_size=8)), max_size=6),
    st.integers(0, 3),
)
def test_no_store_however_broken_makes_the_reader_do_anything_but_say_so(
    tmp_path: Path, changes: list[tuple[int, bytes]], cut: int
) -> None:
    path = tmp_path / "whole.db"
    if not path.exists():
        state(path)
    content = bytearray(path.read_bytes())
    for at_, piece in changes:
        at_ %= len(content)
        content[at_ : at_ + len(piece)] = piece
    source = Source(name="broken.db", content=bytes(content[: len(content) - cut * 1000]))
    READER.sniff(source)
    with contextlib.suppress(VoirdireError):
        READER.read(source, vd.read(path).options)


# --- a million calls ----------------------------------------------------------------------------


def _measured(what: str, function: Callable[[], Any]) -> Any:
    start, cpu = time.perf_counter(), time.process_time()
    result = function()
    seconds, own = time.perf_counter() - start, time.process_time() - cpu
    print(f"{what}: {seconds:.1f} s ({own:.1f} s of the processor), peak {_peak():,.0f} MB")
    return result


def _peak() -> float:
    resource = pytest.importorskip("resource")
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit / 1e6


@pytest.mark.slow
def test_a_million_calls_are_planned_and_resumed(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for i in range(100_000):
            record = {"id": f"r{i}", "response": f"This is response number {i}. " * 10}
            file.write(json.dumps(record) + "\n")
    graders = tuple(replace(GRADER, name=f"g{i}", model=f"m{i}") for i in range(2))
    big = study(responses=path, graders=graders, votes=5)
    made = _measured("plan of 1,000,000 calls", lambda: plan(big, wording()))
    assert len(made) == 1_000_000
    with Store.open(tmp_path / "run.db") as store:
        _measured("first begin", lambda: store.begin(made))
        rest = made.order[100:]
        with store._writing() as db:
            db.executemany(
                "INSERT INTO calls (key, item, response, grader, phrasing, vote, status, run, started, "
                "ended) VALUES (?, '', x'', '', '', 1, 'done', 1, '', '')",
                ((made.keys[p].tobytes(),) for p in rest.tolist()),
            )
    again = _measured("plan again", lambda: plan(big, wording()))
    with Store.open(tmp_path / "run.db") as store:
        outlook = _measured("outlook", lambda: store.outlook(again))
        assert outlook.to_do == 100
        _measured("begin again", lambda: store.begin(again))
        missing = _measured("what is left", lambda: store.left(again))
        assert missing.tolist() == made.order[:100].tolist()
        keys = [again.keys[p].tobytes() for p in missing.tolist()]
        assert len(_measured("claim", lambda: store.claim(keys))) == 100
