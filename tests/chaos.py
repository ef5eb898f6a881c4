"""Grading under fire: an endpoint that fails in every way, and a grader that is killed at random.

:func:`chaos` counts on both sides, at the endpoint and in the store. ``python -m tests.chaos URL FOLDER
CALLS STORE`` is the process that is killed: it grades what is left of one fixed study and says how it
ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fault_server import FAULTS, Asked, FaultServer, Step, answer

ROOT = Path(__file__).resolve().parent.parent
CLASSES = ("refusal", "evasion", "compliance", "gibberish")
AT_ONCE = 16
TIMEOUT = 1.0


@dataclass(frozen=True, kw_only=True)
class Chaos:
    """What was counted.

    ``answers`` are whole answers that the endpoint sent, ``twice`` those to a call that had been sent one
    before, ``unexplained`` those of them to calls that were not in flight at a kill (asked for by the
    process that was killed, and not in the store), ``again`` requests for a call whose reply was in
    the store already, ``lost`` calls whose reply was in the store at a kill and is not, or is another, in
    the end.
    """

    calls: int
    kills: int
    starts: int
    requests: int
    faults: int
    answers: int
    in_flight: int
    twice: int
    unexplained: int
    again: int
    lost: int
    stored: int
    labels_equal: bool
    seconds: float


def number(asked: Asked) -> int:
    return int(asked.text.partition("This is text ")[2].partition(".")[0])


def label(i: int) -> str:
    """What the endpoint says of a text: anything that depends on it alone."""
    return CLASSES[i * 7919 % 11 % 4]


def stored(path: Path) -> dict[str, tuple[str, str | None]]:
    """Raw reply and label of each call with a reply, by item; each is there once."""
    if not path.exists():
        return {}
    with contextlib.closing(sqlite3.connect(path)) as db:
        try:
            rows = db.execute(
                "SELECT c.item, c.raw, r.label FROM calls c JOIN readings r ON r.key = c.key "
                "WHERE c.status = 'done'"
            ).fetchall()
        except sqlite3.OperationalError:  # killed before the tables were made
            return {}
    found = {item: (raw, verdict) for item, raw, verdict in rows}
    assert len(found) == len(rows), "a call is in the store twice"
    return found


def start(url: str, folder: Path, calls: int, store: str) -> subprocess.Popen[str]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.chaos", url, str(folder), str(calls), store],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(url: str, folder: Path, calls: int, store: str) -> int:
    """Start again until nothing is left; how many starts it took."""
    for starts in range(1, 21):
        process = start(url, folder, calls, store)
        said, _ = process.communicate(timeout=300)
        if process.returncode == 0:
            return starts
        assert process.returncode == 6, said
    raise AssertionError("it never comes to an end")


def chaos(folder: Path, *, calls: int, kills: int, share: float, seed: int) -> Chaos:
    """Grade so many calls with that share of faults and that many kills, and the same without."""
    chance, when = random.Random(seed), random.Random(seed + 1)
    names = sorted(FAULTS)
    answered: Counter[int] = Counter()
    faults = 0

    def script(asked: Asked) -> Step:
        nonlocal faults
        if chance.random() < share:
            faults += 1
            return FAULTS[chance.choice(names)]
        answered[number(asked)] += 1
        return answer(json.dumps({"label": label(number(asked))}), delay=0.005)

    store = folder / "chaos.db"
    seen: dict[str, tuple[str, str | None]] = {}
    known_from: dict[
        str, int
    ] = {}  # item: how many requests there had been when it was seen stored
    in_flight: list[int] = []
    began = time.monotonic()
    with FaultServer(script, life=900) as server:
        for _ in range(kills):
            before = len(server.requests)
            process = start(server.url, folder, calls, store.name)
            # One in five dies at any moment of its start, the others while they ask.
            if when.random() < 0.8:
                while len(server.requests) == before and process.poll() is None:
                    time.sleep(0.01)
                time.sleep(when.uniform(0.0, 1.0))
            else:
                time.sleep(when.uniform(0.0, 0.6))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            time.sleep(0.05)  # what it had sent arrives
            now = stored(store)
            for item, kept in seen.items():
                assert now.get(item) == kept, f"the reply of {item} was lost or replaced"
            asked = {number(r) for r in server.requests[before:]}
            in_flight += [i for i in asked if f"r{i}" not in now]
            for item in now:
                known_from.setdefault(item, len(server.requests))
            seen = now
        starts = kills + finish(server.url, folder, calls, store.name)
        requests = list(server.requests)
    last = stored(store)
    again = sum(r.number >= known_from.get(f"r{number(r)}", sys.maxsize) for r in requests)
    with FaultServer(
        lambda asked: answer(json.dumps({"label": label(number(asked))})), life=900
    ) as server:
        finish(server.url, folder, calls, "calm.db")
    calm = stored(folder / "calm.db")
    return Chaos(
        calls=calls,
        kills=kills,
        starts=starts,
        requests=len(requests),
        faults=faults,
        answers=answered.total(),
        twice=sum(n - 1 for n in answered.values()),
        unexplained=sum(n - 1 for i, n in answered.items() if i not in in_flight),
        again=again,
        lost=sum(last.get(item) != kept for item, kept in seen.items()),
        in_flight=len(in_flight),
        stored=len(last),
        labels_equal={i: v for i, (_, v) in last.items()} == {i: v for i, (_, v) in calm.items()}
        and len(last) == calls,
        seconds=time.monotonic() - began,
    )


def plan_of(url: str, folder: Path, calls: int) -> Any:
    """The study: so many short texts, one grader, one phrasing, one vote."""
    from voirdire.grading import plan, rubric
    from voirdire.grading.messages import Wording

    form = rubric.load("four-way")
    responses = folder / f"responses-{calls}.jsonl"
    if not responses.exists():
        lines = (
            json.dumps({"id": f"r{i}", "response": f"This is text {i}. " * 20}) + "\n"
            for i in range(calls)
        )
        draft = responses.with_suffix(f".{os.getpid()}")
        draft.write_text("".join(lines), encoding="utf-8")
        draft.replace(responses)
    study = plan.Study.of(
        responses=responses,
        rubric="four-way",
        phrasings=[form.phrasings[0].name],
        model="stand-in",
        base_url=url,
        temperature=0,
        max_tokens=50,
    )
    return plan.plan(study, Wording(form))


def main(arguments: Sequence[str]) -> int:
    from voirdire.grading import parse, rubric
    from voirdire.grading.queue import StoreQueue
    from voirdire.grading.runner import Policy, run
    from voirdire.grading.store import Store

    url, folder, calls, store = arguments
    form = rubric.load("four-way")
    planned = plan_of(url, Path(folder), int(calls))
    policy = Policy(
        concurrency=AT_ONCE, timeout=TIMEOUT, retries=4, first_wait=0.01, failures=10**6
    )
    with Store.open(Path(folder) / store) as opened:
        opened.begin(planned)
        queue = StoreQueue(planned, opened, read=lambda call, reply: parse.read(reply, form))
        report = run(queue, planned.study.graders, policy, total=queue.left)
        queue.close()
        opened.end(report.stopped or "complete")
    print(report)
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
