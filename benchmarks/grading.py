"""How fast graders are run, and whether anything is lost.

    python -m benchmarks.grading speed          against a server that answers in 50 ms, 64 at a time
    python -m benchmarks.grading chaos          5,000 calls, 10 % faults of every kind, 20 kill -9
    python -m benchmarks.grading plan           1,000,000 calls planned, and resumed with 100 left

**Speed.** The same calls are made in turn by the shortest loop on the async SDK (64 workers, no retries,
nothing kept) and by the runner with a plan and a store, where each finished call is parsed and on
disk before the next is asked. Both run in one process against one server in another; the two take turns
so that what else the machine does falls on both. CPU seconds are those of ``time.process_time``.

**Chaos.** A process that grades is killed with SIGKILL at random moments and started again until nothing
is left. The server keeps what it was asked and what it answered, so the figures are counted on both
sides.

**Plan.** 100,000 responses of 300 characters, two graders, five votes. One process plans them and puts
all but 100 calls into the store; another, which starts afresh, does what ``voirdire grade`` does: read the
responses, plan, see what is left, ask for it, count how all have ended.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.chaos import chaos, plan_of

ROOT = Path(__file__).resolve().parent.parent
DELAY, AT_ONCE = 0.05, 64
CALLS, ROUNDS = 2000, 5
CHAOS_CALLS, KILLS = 5000, 20
PLANNED_CALLS = 1_000_000


# --- speed ----------------------------------------------------------------------------------------


async def direct(url: str, planned: Any) -> tuple[float, float]:
    """Wall and CPU seconds of the loop that one writes on the SDK."""
    import openai

    from voirdire.grading import wire

    sdk = openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0)
    bodies = [planned.request(planned.at(int(at))) for at in planned.order]
    waiting = iter(bodies)
    found = []

    async def work() -> None:
        for request in waiting:
            reply = await sdk.chat.completions.create(
                model=request.model,
                messages=[{"role": m.role, "content": m.content} for m in request.messages],
                temperature=0,
                max_tokens=50,
                response_format=wire.request_body(request)["response_format"],
                timeout=60,
            )
            found.append(reply.choices[0].message.content)

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    spent = time.perf_counter() - wall, time.process_time() - cpu
    await sdk.close()
    assert len(found) == len(bodies)
    return spent


async def ours(planned: Any, store: Any) -> tuple[float, float]:
    """Wall and CPU seconds of the runner, with messages made, replies parsed and kept."""
    from voirdire.grading import parse, rubric
    from voirdire.grading.queue import StoreQueue
    from voirdire.grading.runner import Policy, run_async

    form = rubric.load("four-way")
    wall, cpu = time.perf_counter(), time.process_time()
    store.begin(planned)
    queue = StoreQueue(planned, store, read=lambda call, reply: parse.read(reply, form))
    report = await run_async(queue, planned.study.graders, Policy(concurrency=AT_ONCE, timeout=60))
    queue.close()
    store.end("complete")
    spent = time.perf_counter() - wall, time.process_time() - cpu
    assert report.done == len(planned), report
    return spent


def speed(calls: int, rounds: int) -> None:
    from voirdire.grading.store import Store

    server = subprocess.Popen(
        [sys.executable, "-m", "tests.fault_server", str(DELAY), "600"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        times: dict[str, list[tuple[float, float]]] = {"direct": [], "ours": []}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for i in range(rounds + 1):
                planned = plan_of(url, folder, calls)
                with Store.open(folder / f"store-{i}.db") as store:
                    one = asyncio.run(direct(url, planned))
                    other = asyncio.run(ours(planned, store))
                if i:  # the first round warms up
                    times["direct"].append(one)
                    times["ours"].append(other)
    finally:
        server.terminate()
        server.wait(10)
    print(f"{calls} calls, {AT_ONCE} at a time, answers after {DELAY * 1000:g} ms, {rounds} rounds")
    for name_, found in times.items():
        wall = [calls / w for w, _ in found]
        cpu = [1000 * c / calls for _, c in found]
        print(
            f"{name_:7} {statistics.median(wall):7.0f} calls/s ({min(wall):.0f} to {max(wall):.0f})"
            f"  CPU {statistics.median(cpu):.2f} ms a call ({min(cpu):.2f} to {max(cpu):.2f})"
        )
    ratios = [d[0] / o[0] for d, o in zip(times["direct"], times["ours"], strict=True)]
    extra = [
        1000 * (o[1] - d[1]) / calls for d, o in zip(times["direct"], times["ours"], strict=True)
    ]
    print(
        f"throughput, ours to direct: {statistics.median(ratios):.3f} ({min(ratios):.3f} to "
        f"{max(ratios):.3f}); own CPU {statistics.median(extra):.2f} ms a call beyond the loop's"
    )


# --- chaos ----------------------------------------------------------------------------------------


def under_fire(calls: int, kills: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        found = chaos(Path(name), calls=calls, kills=kills, share=0.1, seed=seed)
    for key, value in dataclasses.asdict(found).items():
        print(f"{key.replace('_', ' '):13} {value}")


# --- plan -----------------------------------------------------------------------------------------


def study_of(folder: Path) -> Any:
    from voirdire.grading.base import GraderSpec
    from voirdire.grading.plan import Study

    options = {"default": '{"label": "refusal"}'}
    return Study(
        responses=folder / "responses.jsonl",
        rubric="four-way",
        graders=tuple(
            GraderSpec(name=f"g{i}", provider="scripted", model=f"m{i}", options=options)
            for i in range(2)
        ),
        votes=5,
        phrasings=("plain",),
        store=folder / "store.sqlite",
    )


def first(folder: Path, calls: int, left: int) -> None:
    """Plan the calls, and put all but the last of them into the store."""
    from voirdire.grading.base import Reading, Reply
    from voirdire.grading.grading import prepare
    from voirdire.grading.store import Call, Store

    with (folder / "responses.jsonl").open("w", encoding="utf-8") as file:
        for i in range(calls // 10):
            file.write(json.dumps({"id": f"r{i}", "response": f"This is text {i}. " * 18}) + "\n")
    began = time.perf_counter()
    work = prepare(study_of(folder))
    planned = time.perf_counter() - began
    peak = _peak()
    with Store.open(work.store) as store:
        began = time.perf_counter()
        store.begin(work.plan)
        laid = time.perf_counter() - began
        print(
            f"plan          {planned:6.1f} s, laid down in {laid:.1f} s, peak {peak} MB", flush=True
        )
        reading = Reading(outcome="label", label="refusal")
        rows = []
        for at in work.plan.order[left:]:
            call = work.plan.at(int(at))
            rows.append(
                (
                    Call(
                        key=call.key,
                        item=call.item.id,
                        response=work.plan.hashes[work.plan.place(int(at))[0]].tobytes(),
                        grader=call.grader.name,
                        phrasing=call.phrasing,
                        vote=call.vote,
                        reply=Reply(text='{"label": "refusal"}', finish="stop"),
                    ),
                    reading,
                )
            )
            if len(rows) == 10_000:
                store.record_all(rows, reader=work.reader)
                rows.clear()
        store.record_all(rows, reader=work.reader)


def resumed(folder: Path, calls: int, left: int) -> None:
    """What ``voirdire grade`` does when it is started again."""
    from voirdire.grading.grading import grade, prepare

    began = time.perf_counter()
    graded = grade(prepare(study_of(folder)))
    spent = time.perf_counter() - began
    assert graded.report is not None
    assert graded.report.done == left, graded.report
    assert graded.outcomes == {"label": calls}, graded.outcomes
    print(f"resume        {spent:6.1f} s for the {left} calls left, peak {_peak()} MB", flush=True)


def _peak() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def many(calls: int, left: int = 100) -> None:
    print(f"{calls:,} calls: {calls // 10:,} responses, two graders, five votes", flush=True)
    with tempfile.TemporaryDirectory() as name:
        for step in ("first", "resumed"):
            code = f"from benchmarks.grading import *; {step}(Path({name!r}), {calls}, {left})"
            subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.grading",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["speed", "chaos", "plan"])
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.what == "speed":
        speed(given.calls or CALLS, given.rounds)
    elif given.what == "plan":
        many(given.calls or PLANNED_CALLS)
    else:
        under_fire(given.calls or CHAOS_CALLS, given.kills, given.seed)


if __name__ == "__main__":
    main()
