"""Running graders: retries, refused parameters, hangs, limits and stops, against a local endpoint."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import chaos
from tests.fault_server import FAULTS, Asked, FaultServer, Step, answer, error, tool_call
from voirdire.grading import parse, rubric
from voirdire.grading.base import (
    Attempt,
    Failure,
    FailureKind,
    GraderSpec,
    Item,
    Message,
    Reply,
    Request,
)
from voirdire.grading.messages import Wording
from voirdire.grading.plan import Items, Limits, Study, plan
from voirdire.grading.queue import StoreQueue
from voirdire.grading.queue import policy as policy_of
from voirdire.grading.runner import (
    Change,
    Policy,
    Progress,
    Report,
    Stop,
    adapted,
    endpoint,
    run,
    run_async,
)
from voirdire.grading.store import Store

SHARED = Path(__file__).resolve().parents[2] / "shared"
INPUTS = SHARED / "cases" / "inputs"

needs_inputs = pytest.mark.skipif(
    not INPUTS.is_dir(), reason="the field cases (../shared/cases) are not beside this checkout"
)

QUICK = Policy(concurrency=4, timeout=2.0, retries=3, first_wait=0.01, longest_wait=0.05)


@dataclass(frozen=True, eq=False)
class Asking:
    """A call as these tests plan it: the item's number decides the text."""

    number: int
    grader: GraderSpec


class Kept:
    """A queue in memory that keeps what it is given, and complains of what no queue may be given."""

    def __init__(
        self,
        graders: Sequence[GraderSpec],
        items: int,
        *,
        request: Callable[[Asking], Request] | None = None,
        outcome: Callable[[Reply], str] = lambda reply: "label" if reply.text else "empty",
    ) -> None:
        self.waiting = [Asking(i, g) for i in range(items) for g in graders]
        self.held: list[Asking] = []
        self.replies: dict[tuple[str, int], Reply] = {}
        self.failures: dict[tuple[str, int], Failure] = {}
        self.attempts: dict[tuple[str, int], Sequence[Attempt]] = {}
        self.costs: dict[tuple[str, int], float | None] = {}
        self.changes: Sequence[Change] = ()
        self.released: list[Asking] = []
        self._request = request or asked_for
        self._outcome = outcome

    def claim(self, n: int, graders: Collection[str]) -> list[Asking]:
        assert n > 0
        found = [c for c in self.waiting if c.grader.name in graders][:n]
        for call in found:
            self.waiting.remove(call)
            self.held.append(call)
        return found

    def request(self, call: Asking) -> Request:
        return self._request(call)

    def _end(self, call: Asking, attempts: Sequence[Attempt], cost: float | None) -> Any:
        self.held.remove(call)  # raises where the call was never claimed, or has ended before
        key = call.grader.name, call.number
        assert key not in self.replies
        assert key not in self.failures
        self.attempts[key], self.costs[key] = attempts, cost
        return key

    def finish(
        self,
        call: Asking,
        reply: Reply,
        attempts: Sequence[Attempt],
        *,
        cost: float | None,
        changes: Sequence[Change],
    ) -> str:
        self.replies[self._end(call, attempts, cost)] = reply
        self.changes = changes
        return self._outcome(reply)

    def fail(
        self,
        call: Asking,
        failure: Failure,
        attempts: Sequence[Attempt],
        *,
        cost: float | None,
        changes: Sequence[Change],
    ) -> None:
        self.failures[self._end(call, attempts, cost)] = failure

    def release(self, calls: Sequence[Asking]) -> None:
        for call in calls:
            self.held.remove(call)
            self.released.append(call)

    def keep(self, calls: Sequence[Asking]) -> None:
        assert all(call in self.held for call in calls)


def asked_for(call: Asking) -> Request:
    return Request(
        messages=(Message("system", "You grade."), Message("user", f"item {call.number}")),
        model=call.grader.model,
        parameters=call.grader.parameters,
        labels=("refusal", "evasion", "compliance"),
        response=f"item {call.number}",
    )


def grader(url: str = "", name: str = "g", **fields: Any) -> GraderSpec:
    fields = {"model": "stand-in", "price_in": 1.0, "price_out": 2.0, **fields}
    return GraderSpec(name=name, provider="openai", options={"base_url": url}, **fields)


def scripted(answers: Any, name: str = "g", **options: Any) -> GraderSpec:
    return GraderSpec(name=name, provider="scripted", options={"answers": answers, **options})


def asked(
    script: Sequence[Step] | Callable[[Asked], Step],
    items: int = 1,
    policy: Policy = QUICK,
    *,
    request: Callable[[Asking], Request] | None = None,
    **fields: Any,
) -> tuple[Report, Kept, FaultServer]:
    """One run of one grader against a script; nothing may be held when it is over."""
    with FaultServer(script) as server:
        specs = [grader(server.url, **fields)]
        queue = Kept(specs, items, request=request)
        report = run(queue, specs, policy, total=items)
    assert queue.held == []
    return report, queue, server


def number(request: Asked) -> int:
    return int(request.text.rpartition("item ")[2])


def steps(name: str) -> list[Step]:
    made = []
    for step in json.loads((INPUTS / name).read_text(encoding="utf-8"))["steps"]:
        made.append(Step(status=step["status"], body=step["body"], headers=step.get("headers", {})))
    return made


# --- FC-17: rate limit, busy, then an answer --------------------------------------------------------


@needs_inputs
def test_a_limit_and_a_busy_server_cost_three_requests_and_one_wait() -> None:
    report, queue, server = asked(steps("endpoint-retry.json"))
    assert len(server.requests) == 3
    assert server.requests[1].at - server.requests[0].at >= 1.0
    assert len(queue.replies) == report.done == 1
    assert report.tokens_in + report.tokens_out == 214
    assert report.retries == 2
    assert [a.kind for a in queue.attempts["g", 0]] == ["limit", "server", "ok"]
    assert [a.status for a in queue.attempts["g", 0]] == [429, 503, 200]
    assert report.exit_status == 0


def test_a_date_in_retry_after_is_waited_for() -> None:
    until = datetime.now(UTC) + timedelta(seconds=2)
    busy = error(503, "busy", headers={"Retry-After": format_datetime(until, usegmt=True)})
    _, queue, server = asked([busy, answer()])
    assert len(queue.replies) == 1
    assert server.requests[1].at - server.requests[0].at > 0.7  # a date has whole seconds


def test_when_retries_run_out_the_item_is_an_error_and_the_run_goes_on() -> None:
    def script(request: Asked) -> Step:
        return error(500, "broke") if number(request) == 1 else answer()

    report, queue, server = asked(script, 5)
    assert sorted(queue.replies) == [("g", i) for i in (0, 2, 3, 4)]
    assert Counter(map(number, server.requests))[1] == 1 + QUICK.retries
    assert len(server.requests) == 4 + 1 + QUICK.retries  # no second layer multiplies
    assert report.failures == {"server": 1}
    assert report.exit_status == 6
    assert report.stopped == ""


def test_tokens_of_failed_requests_are_in_the_cost() -> None:
    broken = Step(body={"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    report, queue, _ = asked([broken, answer(tokens=(10, 2))])
    assert (report.tokens_in, report.tokens_out) == (17, 5)
    assert report.cost == pytest.approx((17 * 1.0 + 5 * 2.0) / 1e6)
    assert queue.costs["g", 0] == pytest.approx(report.cost)


def test_cost_is_unknown_without_token_counts_and_without_prices() -> None:
    report, queue, _ = asked([answer(tokens=None)])
    assert (report.cost, report.unpriced, queue.costs["g", 0]) == (None, 1, None)
    report, queue, _ = asked([answer()], price_in=None)
    assert (report.cost, queue.costs["g", 0]) == (None, None)


def test_an_endpoint_that_asks_to_wait_for_hours_stops_the_run() -> None:
    report, queue, server = asked([error(429, "come back", headers={"Retry-After": "7200"})], 3)
    assert len(server.requests) == 1
    assert report.stopped == "failing"
    assert "come back" in report.words
    assert report.exit_status == 4
    assert len(queue.failures) == 1


def test_a_limit_narrows_the_lane_and_answers_widen_it() -> None:
    """A limit of one half second at 8 requests: later, fewer go at once."""
    limited = [0]

    def script(request: Asked) -> Step:
        if server.open > 2:
            limited[0] += 1
            return error(429, "slow down")
        return answer(delay=0.01)

    with FaultServer(script) as server:
        specs = [grader(server.url)]
        queue = Kept(specs, 60)
        report = run(queue, specs, Policy(concurrency=16, retries=8, first_wait=0.01))
    assert report.done == 60
    # Sixteen at a time without a lane that narrows: most requests would be refused.
    assert limited[0] < len(server.requests) / 2


# --- FC-18: parameters the endpoint does not take ---------------------------------------------------


def full(call: Asking) -> Request:
    return Request(
        messages=(Message("system", "You grade."), Message("user", f"item {call.number}")),
        model="stand-in",
        parameters={"temperature": 0, "max_tokens": 50},
        reply_schema={"type": "object", "properties": {"label": {"enum": ["refusal"]}}},
    )


@needs_inputs
@pytest.mark.parametrize("concurrency", [1, 8])
def test_refused_parameters_are_dropped_once_and_remembered(concurrency: int) -> None:
    policy = Policy(concurrency=concurrency, timeout=5, first_wait=0.01)
    report, queue, server = asked(steps("endpoint-params.json"), 6, policy, request=full)
    assert len(queue.replies) == 6
    assert (
        len(server.requests) == 5 + 5
    )  # the first item finds all out, every other needs one request
    assert [(c.parameter, c.action, c.to) for c in report.changes] == [
        ("temperature", "dropped", ""),
        ("max_tokens", "renamed", "max_completion_tokens"),
        ("response_format", "dropped", ""),
        ("system role", "moved", ""),
    ]
    assert queue.changes == report.changes
    last = server.requests[-1].body
    assert set(last) == {"model", "messages", "max_completion_tokens"}
    assert last["max_completion_tokens"] == 50
    assert last["messages"][0]["role"] == "user"
    assert last["messages"][0]["content"].startswith("You grade.\n\nitem ")
    assert report.retries == 0
    assert "another prompt" in str(report.changes[-1])


def test_a_parameter_refused_in_the_middle_is_found_out_by_several_calls_at_once() -> None:
    def script(request: Asked) -> Step:
        if request.number > 3 and "temperature" in request.body:
            return error(400, "'temperature' is not supported", param="temperature")
        return answer(delay=0.02)

    report, queue, server = asked(script, 12, request=full)
    assert len(queue.replies) == 12
    assert [c.parameter for c in report.changes] == ["temperature"]
    # Those under way at that moment are sent again, at most one each.
    assert len(server.requests) <= 12 + QUICK.concurrency


def test_a_token_limit_that_goes_by_neither_name_is_left_out_and_then_it_is_over() -> None:
    def script(request: Asked) -> Step:
        for name in ("max_tokens", "max_completion_tokens"):
            if name in request.body:
                return error(400, "not supported", param=name)
        return answer()

    report, _, server = asked(script, 1, request=full)
    assert [c.action for c in report.changes] == ["renamed", "dropped"]
    assert len(server.requests) == 3
    report, queue, server = asked(
        [error(400, "not supported", param="temperature")], 3, request=full
    )
    assert len(server.requests) == 2  # dropped once; refused again although it was not sent
    assert report.stopped == "fatal"
    assert not queue.replies


def test_the_system_text_moves_only_where_there_is_one() -> None:
    request = full(Asking(3, grader()))
    change = Change(grader="g", parameter="system role", action="moved")
    moved = adapted(request, [change])
    assert moved.messages == (Message("user", "You grade.\n\nitem 3"),)
    assert adapted(moved, [change]).messages == moved.messages


def test_a_400_for_another_reason_stops_at_once_before_the_grader_has_answered() -> None:
    report, queue, server = asked([error(400, "this is not how it is done")], 20)
    assert len(server.requests) == 1
    assert report.stopped == "fatal"
    assert "this is not how it is done" in report.words
    assert report.exit_status == 4
    # Asked again once it is mended, so it is no outcome of the item.
    assert [f.kind for f in queue.failures.values()] == [FailureKind.FATAL]


def test_a_400_for_another_reason_later_is_an_error_of_that_item_without_a_retry() -> None:
    def script(request: Asked) -> Step:
        return error(400, "odd text") if number(request) == 7 else answer()

    report, queue, server = asked(script, 20)
    assert len(server.requests) == 20
    assert list(queue.failures) == [("g", 7)]
    assert queue.failures["g", 7].kind is FailureKind.OTHER
    assert report.stopped == ""


def test_a_response_that_is_too_long_is_an_error_of_that_item_also_as_the_first() -> None:
    words = "This model's maximum context length is 4096 tokens."

    def script(request: Asked) -> Step:
        if number(request) == 0:
            return error(400, words, code="context_length_exceeded")
        return answer()

    report, queue, server = asked(script, 6)
    assert len(server.requests) == 6
    assert queue.failures["g", 0].kind is FailureKind.TOO_LONG
    assert words in str(queue.failures["g", 0])
    assert len(queue.replies) == 5
    assert report.exit_status == 0


def test_a_blocked_call_is_asked_once() -> None:
    report, queue, server = asked([error(400, "filtered", code="content_filter")], 2)
    assert len(server.requests) == 2
    assert {f.kind for f in queue.failures.values()} == {FailureKind.BLOCKED}
    assert report.exit_status == 0


# --- FC-20: one call hangs --------------------------------------------------------------------------


@pytest.mark.parametrize("hangs", [0, 7])
def test_one_call_that_hangs_does_not_hold_the_others(hangs: int) -> None:
    def script(request: Asked) -> Step:
        return FAULTS["hang"] if number(request) == hangs else answer()

    policy = Policy(concurrency=4, timeout=2.0, retries=1, first_wait=0.01)
    started = time.monotonic()
    report, queue, server = asked(script, 20, policy)
    assert time.monotonic() - started < 15
    assert (report.done, report.failed) == (19, 1)
    assert queue.failures["g", hangs].kind is FailureKind.TIMEOUT
    times = [r.at for r in server.requests if number(r) != hangs]
    began = [r.at for r in server.requests if number(r) == hangs]
    assert len(began) == 2
    # All others are asked before the second try of the one that hangs has run out.
    assert max(times) < began[1] + policy.timeout
    assert report.exit_status == 6


# --- Every way to fail ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_every_fault_is_asked_again_once_and_then_read(name: str) -> None:
    policy = Policy(concurrency=1, timeout=0.4, retries=1, first_wait=0.01)
    report, queue, server = asked([answer(), FAULTS[name], answer("VERDICT: evasion")], 2, policy)
    assert len(server.requests) == 3
    assert queue.replies["g", 1].text == "VERDICT: evasion"
    assert report.failed == 0
    assert [a.kind for a in queue.attempts["g", 1]][1:] == ["ok"]


@pytest.mark.parametrize(
    ("step", "fields"),
    [
        (answer("VERDICT: com", finish="length"), {"finish": "length"}),
        (answer("", finish="content_filter"), {"finish": "content_filter"}),
        (answer(""), {"text": ""}),
        (answer(None), {"text": None}),
        (answer("no idea what you mean"), {"text": "no idea what you mean"}),
        (answer(None, refusal="I can't."), {"refusal": "I can't."}),
        (tool_call('{"label": "evasion"}'), {"tool_arguments": '{"label": "evasion"}'}),
        (answer("x", reasoning_content="so"), {"reasoning": "so"}),
    ],
)
def test_no_reply_is_ever_asked_for_again_whatever_stands_in_it(
    step: Step, fields: dict[str, Any]
) -> None:
    report, queue, server = asked([step], 3)
    assert len(server.requests) == report.done == 3
    for reply in queue.replies.values():
        assert {name: getattr(reply, name) for name in fields} == fields
        assert json.loads(reply.raw)["choices"]


def test_a_model_of_another_name_that_answers_is_recorded() -> None:
    report, queue, _ = asked([answer(model="another"), answer(model="stand-in-2025-01-01")], 3)
    assert report.models == {"g": {"another": 1, "stand-in-2025-01-01": 2}}
    assert report.other_models == {"g": {"another": 1}}
    assert queue.replies["g", 0].model == "another"


@pytest.mark.parametrize(
    ("asked_name", "answered", "other"),
    [
        ("m", "m-mini", True),
        ("m", "m-3-large", True),
        ("m", "m-0613", False),
        ("owner/m", "m", False),
        ("m", "/models/M.gguf", False),
        ("m", "m:latest", False),
    ],
)
def test_a_dated_or_shortened_name_is_the_same_model(
    asked_name: str, answered: str, other: bool
) -> None:
    report, _, _ = asked([answer(model=answered)], 1, model=asked_name)
    assert bool(report.other_models) is other


# --- What stops a run -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        error(401, "Incorrect API key provided"),
        error(404, "The model `nope` does not exist", code="model_not_found"),
        error(400, "model nope not found"),
        error(402, "payment required"),
        error(429, "You exceeded your current quota", code="insufficient_quota"),
        Step(status=404, body=b"404 page not found"),
    ],
)
def test_a_wrong_key_model_or_address_stops_after_one_request(step: Step) -> None:
    report, _, server = asked([step], 500)
    assert len(server.requests) == 1
    assert report.stopped == "fatal"
    assert report.grader == "g"
    words = step.body.decode() if isinstance(step.body, bytes) else step.body["error"]["message"]
    assert words in report.words
    assert report.failed == 1
    assert report.exit_status == 4


def test_an_address_where_nobody_listens_stops_at_once() -> None:
    with FaultServer([answer()]) as server:
        pass
    specs = [grader(server.url)]
    queue = Kept(specs, 100)
    report = run(queue, specs, QUICK)
    assert report.stopped == "fatal"
    assert str(server.port) in report.words
    assert report.requests == 1


def test_a_grader_that_only_fails_stops_after_many_failures_in_a_row() -> None:
    policy = Policy(concurrency=2, retries=0, failures=5, first_wait=0.01)
    report, _, server = asked([answer(), error(500, "it is broken")], 500, policy)
    assert report.stopped == "failing"
    assert "it is broken" in report.words
    assert len(server.requests) <= 1 + 5 + 2
    assert report.exit_status == 4


def test_a_limit_on_requests_stops_cleanly_and_counts_retries() -> None:
    report, queue, server = asked([error(500), answer()], 20, Policy(first_wait=0.01, requests=6))
    assert len(server.requests) == 6
    assert len(queue.replies) == 5
    assert report.stopped == "requests"
    assert report.exit_status == 6
    assert len(queue.waiting) + len(queue.released) + len(queue.failures) == 15


def test_a_limit_that_is_just_enough_is_no_stop() -> None:
    report, _, server = asked([answer()], 6, Policy(requests=6))
    assert len(server.requests) == 6
    assert report.stopped == ""
    assert report.exit_status == 0


def test_a_budget_is_kept_although_many_are_under_way() -> None:
    # 10 tokens at 1 and 2 at 2 a million are 14e-6 a call.
    policy = Policy(concurrency=8, budget=14e-6 * 10)
    report, queue, server = asked([answer(delay=0.01)], 50, policy)
    assert report.stopped == "budget"
    assert len(server.requests) == len(queue.replies) == 10
    assert report.cost == pytest.approx(14e-6 * 10)


def test_a_budget_that_cannot_be_kept_stops_after_the_first_call() -> None:
    report, _, server = asked([answer(tokens=None)], 50, Policy(budget=1.0))
    assert report.stopped == "budget"
    assert "not known" in report.words
    assert len(server.requests) == 1


def test_a_key_that_is_not_there_is_said_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    spec = GraderSpec(name="g", provider="openai", model="m", options={"api_key_env": "SOME_KEY"})
    report = run(Kept([spec], 5), [spec], QUICK)
    assert report.stopped == "fatal"
    assert "SOME_KEY" in report.words
    assert report.requests == 0


def test_a_queue_that_breaks_stops_the_run_and_releases_what_is_under_way() -> None:
    class Full(Kept):
        def finish(self, *args: Any, **kwargs: Any) -> str:
            if self.replies:
                raise OSError("no space left")
            return super().finish(*args, **kwargs)

    specs = [scripted(lambda request: "refusal", seconds=0.01)]
    queue = Full(specs, 50)
    with pytest.raises(OSError, match="no space left"):
        run(queue, specs, QUICK)
    assert queue.held == []
    assert len(queue.replies) == 1


# --- Stopping by hand -------------------------------------------------------------------------------


def interrupted(times: int, seconds: float) -> tuple[Report, Kept, list[bool], float]:
    """A run of answers that take so long, with Ctrl-C pressed once or twice in the middle."""
    told: list[bool] = []
    specs = [scripted(lambda request: "refusal", seconds=seconds)]
    queue = Kept(specs, 100)

    def press() -> None:
        time.sleep(0.2)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)

    presser = threading.Thread(target=press)
    started = time.monotonic()
    presser.start()
    try:
        policy = Policy(concurrency=4, first_wait=0.01)
        report = run(queue, specs, policy, stopping=told.append)
    finally:
        presser.join()
    return report, queue, told, time.monotonic() - started


@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_ctrl_c_once_finishes_what_is_under_way() -> None:
    report, queue, told, _ = interrupted(1, 0.5)
    assert (report.stopped, report.exit_status) == ("interrupted", 130)
    assert told == [False]
    assert (report.done, report.released) == (1, 3) or report.done == 4
    assert queue.held == []
    assert not queue.failures
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_ctrl_c_twice_stops_now_and_gives_all_back() -> None:
    report, queue, told, seconds = interrupted(2, 30.0)
    assert seconds < 5
    assert (report.stopped, report.exit_status) == ("interrupted", 130)
    assert told == [False, True]
    assert report.done == 0
    assert queue.held == []
    assert len(queue.released) == 4
    assert not queue.failures


def test_a_call_that_waits_to_be_asked_again_does_not_hold_a_stop() -> None:
    specs = [scripted([Failure(FailureKind.LIMIT, "slow", retry_after=300.0)])]
    queue = Kept(specs, 1)

    async def stopped() -> Report:
        stop = Stop()
        asyncio.get_running_loop().call_later(0.1, stop.soon)
        return await run_async(queue, specs, QUICK, stop=stop)

    started = time.monotonic()
    report = asyncio.run(stopped())
    assert time.monotonic() - started < 5
    assert report.stopped == "interrupted"
    assert queue.held == []
    assert list(queue.failures) == [("g", 0)]  # with what it has cost


# --- Many graders, order, progress ------------------------------------------------------------------


def test_an_endpoint_is_never_asked_more_at_once_than_it_may_be() -> None:
    with FaultServer(lambda request: answer(delay=0.01)) as server:
        specs = [grader(server.url, "a"), grader(server.url, "b")]
        report = run(Kept(specs, 30), specs, Policy(concurrency=5))
    assert report.done == 60
    assert 4 <= server.most_open <= 5
    assert endpoint(specs[0]) == endpoint(specs[1])


def test_many_requests_go_at_once_where_they_may() -> None:
    report, _, server = asked(
        lambda request: answer(delay=0.2), 100, Policy(concurrency=50, timeout=10)
    )
    assert (report.done, len(server.requests)) == (100, 100)
    assert 30 <= server.most_open <= 50


def test_a_slow_endpoint_does_not_hold_another() -> None:
    specs = [
        scripted(lambda request: "refusal", "slow", seconds=0.03),
        GraderSpec(name="fast", provider="rule", options={}),
    ]
    queue = Kept(specs, 20)
    report = run(queue, specs, Policy(concurrency=1))
    assert report.done == 40
    ended = [name for name, _ in queue.replies]
    assert "fast" not in ended[25:]  # all twenty before a few of the slow ones


def test_calls_are_asked_in_the_order_of_the_queue() -> None:
    seen: list[str] = []

    def said(request: Request) -> str:
        seen.append(request.response)
        return "refusal"

    specs = [scripted(said)]
    queue = Kept(specs, 30)
    random.Random(3).shuffle(queue.waiting)
    order = [f"item {c.number}" for c in queue.waiting]
    run(queue, specs, Policy(concurrency=4))
    assert seen == order


def test_progress_says_where_a_run_stands() -> None:
    told: list[Progress] = []
    specs = [
        scripted(lambda request: "" if request.response == "item 3" else "refusal", seconds=0.05)
    ]
    run(Kept(specs, 20), specs, Policy(concurrency=2), total=20, progress=told.append)
    last = told[-1]
    assert len(told) > 2
    assert (last.done, last.failed, last.unread, last.left) == (20, 0, 1, 0)
    assert last.requests == 20
    assert last.rate > 0
    assert [p.done for p in told] == sorted(p.done for p in told)
    assert all(p.under_way <= 2 for p in told)


# --- With a plan and a store ------------------------------------------------------------------------


def graded(
    folder: Path, url: str, responses: Sequence[str], **fields: Any
) -> tuple[Report, dict[str, str | None], dict[str, Any]]:
    """One run of a study on the store of a folder: its report, labels by vote or item, and notes."""
    items = Items.of([Item(id=f"r{i}", response=text) for i, text in enumerate(responses)])
    votes = fields.pop("votes", 1)
    form = rubric.load("four-way")
    study = Study(
        responses=folder / "none.csv",
        rubric="four-way",
        graders=(grader(url, **fields),),
        votes=votes,
        phrasings=(form.phrasings[0].name,),
        limits=Limits(retries=1, timeout=2.0),
        concurrency=4,
    )
    planned = plan(study, Wording(form), items)
    with Store.open(folder / "store.db") as store:
        store.begin(planned)
        queue = StoreQueue(
            planned, store, read=lambda call, reply: parse.read(reply, form), reader="test"
        )
        known = [g.grader for g in store.outlook(planned).graders if g.done]
        quick = dataclasses.replace(policy_of(study), first_wait=0.01)
        report = run(queue, planned.study.graders, quick, total=queue.left, known=known)
        queue.close()
        assert store.held_by_others() == (0, 0.0)
        assert store.db.execute("SELECT count(*) FROM leases").fetchone() == (0,)
        verdicts = {key: verdict for key, _, verdict, _, _ in store.readings()}
        labels = {
            f"{c.item}/{c.vote}": verdicts.get(c.key) for c in store.calls() if c.status == "done"
        }
        return report, labels, store.notes()


def in_turn(*labels: str) -> Callable[[Asked], Step]:
    given = iter(labels)
    return lambda request: answer(json.dumps({"label": next(given)}))


def test_votes_are_five_requests_once_and_only_what_is_new_later(tmp_path: Path) -> None:
    five = ("refusal", "refusal", "evasion", "refusal", "evasion")
    with FaultServer(in_turn(*five, "compliance", "gibberish")) as server:
        report, labels, _ = graded(tmp_path, server.url, ["text"], votes=5)
        assert sorted(str(v) for v in labels.values()) == sorted(five)
        assert report.outcomes == {"label": 5}
        again, same, _ = graded(tmp_path, server.url, ["text"], votes=5)
        assert (again.requests, again.exit_status) == (0, 0)
        assert same == labels
        more, seven, _ = graded(tmp_path, server.url, ["text"], votes=7)
        assert more.requests == 2
        assert {k: seven[k] for k in labels} == labels
        assert len(server.requests) == 7


def test_a_later_run_asks_only_for_what_failed(tmp_path: Path) -> None:
    down = [True]

    def script(request: Asked) -> Step:
        if down[0] and "number 2" in request.text:
            return error(500, "broke")
        return answer('{"label": "evasion"}')

    texts = [f"number {i}." for i in range(4)]
    with FaultServer(script) as server:
        report, labels, _ = graded(tmp_path, server.url, texts)
        assert (report.done, report.failed, report.exit_status) == (3, 1, 6)
        assert set(labels) == {"r0/1", "r1/1", "r3/1"}
        down[0] = False
        before = len(server.requests)
        report, labels, _ = graded(tmp_path, server.url, texts)
        assert len(server.requests) - before == 1
        assert (report.done, report.exit_status, len(labels)) == (1, 0, 4)


def test_what_is_unread_is_an_outcome_and_is_not_asked_again(tmp_path: Path) -> None:
    with FaultServer([answer("I have no idea.")]) as server:
        report, labels, _ = graded(tmp_path, server.url, ["a", "b"])
        assert report.outcomes == {"unparsed": 2}
        assert list(labels.values()) == [None, None]
        again, _, _ = graded(tmp_path, server.url, ["a", "b"])
        assert again.requests == 0


def test_what_the_endpoint_did_not_take_is_noted_in_the_store(tmp_path: Path) -> None:
    refuses = error(400, "'temperature' does not support 0", param="temperature")
    with FaultServer([refuses, answer('{"label": "evasion"}')]) as server:
        _, _, notes = graded(tmp_path, server.url, ["a", "b"], parameters={"temperature": 0})
    assert notes["g"]["temperature"]["action"] == "dropped"
    assert "does not support 0" in notes["g"]["temperature"]["words"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no kill -9")
def test_nothing_is_lost_or_paid_for_twice_under_faults_and_kills(tmp_path: Path) -> None:
    found = chaos(tmp_path, calls=600, kills=5, share=0.1, seed=1)
    assert found.stored == 600
    assert found.labels_equal
    assert (found.lost, found.again, found.unexplained) == (0, 0, 0)
    assert found.twice <= found.in_flight
    assert found.faults > 30
