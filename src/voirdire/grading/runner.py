"""The runner: planned calls are sent to graders, a bounded number at a time, and every end is kept.

It takes calls from a queue in the order that the plan mixed, and gives each back as finished, failed
or released. What it decides is how calls are sent, never what a reply means: a reply that cannot be
read is as finished as any other, and is never asked for again.

**One retry layer.** A limit (429), a broken server or body, a lost connection and a timeout are asked
again, up to ``retries`` times, after ``Retry-After`` or a growing wait, with jitter. Providers retry
nothing themselves.

**Back-pressure.** Each endpoint has its own lane. Where it asks for time, all its calls wait; after a limit
its lane is halved and widens again by one call a round of answers (additive increase, multiplicative
decrease: Chiu and Jain 1989, Computer Networks and ISDN Systems 17, p. 1).

**The first call of a grader goes alone**, until anything but a refused parameter comes back or a few
seconds have passed. So a wrong key costs one request, and what an endpoint does not take is found once.
A parameter that is refused is renamed or dropped, at most once each, for all later calls of the grader.

**What stops a run.** A wrong key, model or address at any time; no connection, or a refusal (400) for
any other reason, before the grader has answered at all; many failed calls in a row; a limit on requests
or cost; a person. A 400 for another reason *after* the grader has answered is an error of that one
response (to stop there would mean to stop there again on every later run); so is a response that is
longer than the grader's window, at any time.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from inspect import isawaitable
from typing import Any, Generic, Protocol, TypeVar

from voirdire.grading import wire
from voirdire.grading.base import (
    Attempt,
    Failure,
    FailureKind,
    GraderSpec,
    Message,
    Reply,
    Request,
)
from voirdire.grading.providers.base import Client, provider

_AGAIN = (
    FailureKind.LIMIT,
    FailureKind.SERVER,
    FailureKind.TIMEOUT,
    FailureKind.UNREACHABLE,
)
# The call itself is at fault, not the machine: these say that the grader can be reached.
_OF_THE_CALL = (FailureKind.BLOCKED, FailureKind.TOO_LONG)
# Not asked again by a later run: the answer would be the same.
_SETTLED = (*_OF_THE_CALL, FailureKind.OTHER)
_RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_TICK = 0.2  # seconds between two progress reports


class Call(Protocol):
    """What the runner needs to know of a planned call."""

    @property
    def grader(self) -> GraderSpec: ...


C = TypeVar("C", bound=Call)


class Queue(Protocol[C]):
    """Where calls come from and go to. All of it is called from one thread.

    ``claim`` gives up to ``n`` calls of the graders named, in the order of asking, under a lease; none
    where there is none left that nobody else holds. A call that failed is not given again by the same
    queue. ``keep`` renews the leases of calls that are still
    at work. ``finish`` and ``fail`` are on disk when they return; ``finish`` gives
    the outcome that was read from the reply. ``release`` gives leases back.
    """

    def claim(self, n: int, graders: Collection[str]) -> Sequence[C]: ...

    def request(self, call: C) -> Request: ...

    def finish(
        self,
        call: C,
        reply: Reply,
        attempts: Sequence[Attempt],
        *,
        cost: float | None,
        changes: Sequence[Change],
    ) -> str: ...

    def fail(
        self,
        call: C,
        failure: Failure,
        attempts: Sequence[Attempt],
        *,
        cost: float | None,
        changes: Sequence[Change],
    ) -> None: ...

    def release(self, calls: Sequence[C]) -> None: ...

    def keep(self, calls: Sequence[C]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How calls are sent.

    ``concurrency`` is the most requests under way at one endpoint; ``timeout`` the seconds that one
    request may take, ``retries`` how often a call is asked again. Waits grow from ``first_wait`` to
    ``longest_wait`` seconds; an endpoint that asks for more than ``patience`` seconds stops the run.
    ``requests`` and ``budget`` (in the unit of the prices) bound the whole run. ``failures`` failed calls
    of a grader in a row stop it. ``alone`` is how many seconds a grader's first call goes alone at most.
    ``seed`` is that of the jitter.
    """

    concurrency: int = 16
    timeout: float = 120.0
    retries: int = 5
    first_wait: float = 0.5
    longest_wait: float = 60.0
    patience: float = 600.0
    requests: int | None = None
    budget: float | None = None
    failures: int = 25
    alone: float = 10.0
    keep_every: float = 20.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A parameter that an endpoint did not take, and what was sent to this grader instead.

    ``action`` is ``dropped``, ``renamed`` (``to`` has the new name) or ``moved`` (the system text stands
    in front of the user's text: that is another prompt). ``words`` are the provider's.
    """

    grader: str
    parameter: str
    action: str
    to: str = ""
    words: str = ""

    def __str__(self) -> str:
        if self.action == "moved":
            return (
                f"{self.grader}: the endpoint takes no system text; it was put in front of the user's "
                "text, which is another prompt."
            )
        if self.action == "renamed":
            return f"{self.grader}: {self.parameter} was sent as {self.to}."
        return f"{self.grader}: {self.parameter} was left out; the endpoint does not take it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run stands. ``unread`` are finished calls without a label; ``rate`` is calls a second over
    the last half minute; ``cost`` is ``None`` where no price or no token count is known; ``left`` and
    ``seconds_left`` are ``None`` where the number of planned calls was not given."""

    done: int
    failed: int
    unread: int
    requests: int
    under_way: int
    rate: float
    cost: float | None
    left: int | None
    seconds_left: float | None
    waiting: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How a run ended.

    ``stopped`` is empty (nothing was left to ask), ``interrupted``, ``budget``, ``requests``, ``fatal``
    (``words`` are the provider's) or ``failing`` (too many failures in a row, or asked to wait too
    long). ``released`` calls were claimed and not asked to the end. ``cost`` is what is known;
    ``unpriced`` counts requests whose cost is not. ``models`` counts, for each grader, the names of the
    models that answered.
    """

    done: int
    failed: int
    released: int
    outcomes: Mapping[str, int]
    failures: Mapping[str, int]
    requests: int
    retries: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    unpriced: int
    changes: tuple[Change, ...]
    models: Mapping[str, Mapping[str, int]]
    asked_for: Mapping[str, str]
    stopped: str
    words: str
    grader: str
    seconds: float

    @property
    def other_models(self) -> dict[str, dict[str, int]]:
        """Names of models that answered and are not the one that was asked for, by grader.

        A dated name of the same model (``m-2025-01-01`` for ``m``) is not another, nor is the name without
        its owner (``m`` for ``owner/m``) or with its file ending.
        """
        found = {
            grader: {m: n for m, n in counts.items() if not _same(self.asked_for[grader], m)}
            for grader, counts in self.models.items()
        }
        return {grader: counts for grader, counts in found.items() if counts}

    @property
    def exit_status(self) -> int:
        """0 where nothing is left to ask again; 130, 4 or 6 as the contract says."""
        if self.stopped == "interrupted":
            return 130
        if self.stopped in ("fatal", "failing"):
            return 4
        again = self.failed - sum(self.failures.get(kind.value, 0) for kind in _SETTLED)
        return 6 if self.stopped or self.released or again else 0


def _same(asked: str, answered: str) -> bool:
    def stem(name: str) -> str:
        name = name.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
        return name.removesuffix(".gguf").removesuffix(":latest")

    a, b = stem(asked), stem(answered)
    dated = b.startswith(a) and re.match(r"[-@:]\d{4}", b[len(a) :])
    return not answered or a == b or bool(dated)


class Stop:
    """How a run is asked to stop: ``soon`` lets what is under way end, ``now`` does not."""

    def __init__(self) -> None:
        self.reason = ""
        self.words = ""
        self.grader = ""
        self.at_once = False
        self._asked = asyncio.Event()
        self._soon: list[Callable[[], None]] = []
        self._now: list[Callable[[], None]] = []

    def soon(self, reason: str = "interrupted", words: str = "", grader: str = "") -> None:
        if not self._asked.is_set():
            self.reason, self.words, self.grader = reason, words, grader
            self._asked.set()
            for told in self._soon:
                told()

    def now(self, reason: str = "interrupted", words: str = "", grader: str = "") -> None:
        self.soon(reason, words, grader)
        self.at_once = True
        for told in self._now:
            told()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    async def during(self, seconds: float) -> bool:
        """Rest; true at once where the run is asked to stop meanwhile."""
        if not self._asked.is_set() and seconds > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._asked.wait()
        return self._asked.is_set()

    def tell(self, *, soon: Callable[[], None], now: Callable[[], None]) -> None:
        """Who is told when the run is asked to stop, and when to stop at once."""
        self._soon.append(soon)
        self._now.append(now)


class _Lane:
    """One endpoint: how many requests are under way, how many may be, and until when it wants quiet."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.open = float(width)
        self.sending = 0
        self.quiet_until = 0.0
        self.narrowed = 0.0
        self.answered = False
        self.waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self, stop: Stop) -> bool:
        """Wait for a place; false where the run is asked to stop first."""
        while not stop.asked:
            quiet = self.quiet_until - time.monotonic()
            if quiet > 0:
                await stop.during(quiet)
            elif self.sending < max(1, int(self.open)):
                self.sending += 1
                return True
            else:
                place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self.waiting.append(place)
                try:
                    await place
                finally:
                    if place.cancelled():
                        with contextlib.suppress(ValueError):
                            self.waiting.remove(place)
        return False

    def leave(self) -> None:
        self.sending -= 1
        self.wake(max(1, int(self.open)) - self.sending)

    def wake(self, n: int) -> None:
        while n > 0 and self.waiting:
            place = self.waiting.popleft()
            if not place.done():
                place.set_result(None)
                n -= 1

    def widen(self) -> None:
        self.answered = True
        if self.open < self.width:
            self.open = min(float(self.width), self.open + 1 / max(1.0, self.open))

    def narrow(self, sent: float) -> None:
        # One round of refusals halves once: those sent before the last halving are the same round.
        if sent >= self.narrowed:
            self.narrowed = time.monotonic()
            self.open = max(1.0, self.open / 2)

    def hush(self, seconds: float) -> None:
        self.quiet_until = max(self.quiet_until, time.monotonic() + seconds)


class _Grader:
    """What has been learnt of one grader: what it does not take, and whether it answers at all."""

    def __init__(self, spec: GraderSpec, client: Client, lane: _Lane, *, answered: bool) -> None:
        self.spec = spec
        self.client = client
        self.lane = lane
        self.answered = answered
        self.changes: tuple[Change, ...] = ()
        self.models: Counter[str] = Counter()
        self.failed_in_row = 0
        self.free = not provider(spec.provider).talks
        self.gate = asyncio.Event()
        self.first_is_out = False

    def cost(self, tokens_in: int | None, tokens_out: int | None) -> float | None:
        """The price of one request; ``None`` where prices or tokens are not known."""
        if self.free:
            return 0.0
        if None in (tokens_in, tokens_out, self.spec.price_in, self.spec.price_out):
            return None
        assert tokens_in is not None
        assert tokens_out is not None
        assert self.spec.price_in is not None
        assert self.spec.price_out is not None
        return (tokens_in * self.spec.price_in + tokens_out * self.spec.price_out) / 1e6

    def adapt(self, failure: Failure, known: int) -> bool:
        """Learn from a refused parameter; false where there is nothing more to change.

        ``known`` is how many changes the refused request had: a request that was sent before the last
        change is simply sent again.
        """
        if known < len(self.changes):
            return True
        name = failure.parameter
        change = Change(grader=self.spec.name, parameter=name, action="dropped", words=str(failure))
        if any(c.parameter == name and c.action != "renamed" for c in self.changes):
            return False
        if name == wire.SYSTEM:
            change = replace(change, action="moved")
        elif name in _RENAMED and not any(c.action == "renamed" for c in self.changes):
            change = replace(change, action="renamed", to=_RENAMED[name])
        self.changes = (*self.changes, change)
        return True


def adapted(request: Request, changes: Sequence[Change]) -> Request:
    """The request as it is sent to a grader that does not take all of it."""
    if not changes:
        return request
    messages, schema = request.messages, request.reply_schema
    parameters: dict[str, Any] = {**request.parameters}
    parameters.update(parameters.pop("extra_body", None) or {})
    for change in changes:
        if change.action == "moved":
            messages = _without_system(messages)
            continue
        value = parameters.pop(change.parameter, None)
        if change.action == "renamed" and value is not None:
            parameters.setdefault(change.to, value)
        elif change.parameter == wire.SCHEMA:
            schema = None
    return replace(request, messages=messages, parameters=parameters, reply_schema=schema)


def _without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    system = [m.content for m in messages if m.role == "system"]
    rest = [m for m in messages if m.role != "system"]
    if not system:
        return tuple(messages)
    if rest and rest[0].role == "user":
        first, rest = Message("user", "\n\n".join([*system, rest[0].content])), rest[1:]
    else:
        first = Message("user", "\n\n".join(system))
    return (first, *rest)


def _as(kind: FailureKind, failure: Failure) -> Failure:
    return Failure(
        kind,
        str(failure),
        status=failure.status,
        retry_after=failure.retry_after,
        parameter=failure.parameter,
        raw=failure.raw,
        tokens_in=failure.tokens_in,
        tokens_out=failure.tokens_out,
    )


class _Run(Generic[C]):
    def __init__(
        self,
        queue: Queue[C],
        policy: Policy,
        stop: Stop,
        *,
        total: int | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.queue, self.policy, self.stop = queue, policy, stop
        self.total, self.progress = total, progress
        self.jitter = random.Random(policy.seed)
        self.graders: dict[str, _Grader] = {}
        self.at_work: dict[int, C] = {}  # by identity: calls need not be hashable
        self.outcomes: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.done = self.failed = self.released = 0
        self.requests = self.retries = self.unpriced = self.priced = 0
        self.tokens_in = self.tokens_out = 0
        self.spent = 0.0
        self.started = time.monotonic()
        self.shown = 0.0
        self.marks: deque[tuple[float, int]] = deque([(self.started, 0)])
        self.broken: BaseException | None = None

    # One call --------------------------------------------------------------------------------

    async def call(self, call: C) -> None:
        grader = self.graders[call.grader.name]
        attempts: list[Attempt] = []
        cost: float | None = 0.0
        is_first = not grader.gate.is_set() and not grader.first_is_out
        if is_first:
            grader.first_is_out = True
            asyncio.get_running_loop().call_later(
                min(self.policy.alone, self.policy.timeout), grader.gate.set
            )
        try:
            if not is_first and not grader.gate.is_set():
                await grader.gate.wait()
            planned = self.queue.request(call)
            failure: Failure | None = None
            tries, wait = 0, 0.0
            while True:
                if await self.stop.during(wait) or not await grader.lane.enter(self.stop):
                    break
                if self.policy.requests is not None and self.requests >= self.policy.requests:
                    grader.lane.leave()
                    self.stop.soon("requests")
                    break
                known = len(grader.changes)
                sent, clock = time.monotonic(), datetime.now(UTC)
                reply = None
                try:
                    self.requests += 1
                    self.retries += tries > 0 and failure is not None
                    reply = await self.ask(grader, adapted(planned, grader.changes))
                except Failure as caught:
                    failure = caught
                finally:
                    grader.lane.leave()
                ended: Reply | Failure | None = reply if reply is not None else failure
                assert ended is not None
                price = self.account(grader, ended)
                cost = None if cost is None or price is None else cost + price
                attempts.append(
                    Attempt(
                        at=clock.isoformat(timespec="microseconds"),
                        kind="ok" if isinstance(ended, Reply) else str(ended.kind),
                        status=200 if isinstance(ended, Reply) else ended.status,
                        seconds=time.monotonic() - sent,
                        tokens_in=ended.tokens_in,
                        tokens_out=ended.tokens_out,
                        message="" if isinstance(ended, Reply) else str(ended),
                    )
                )
                if reply is not None:
                    self.finished(call, grader, reply, attempts, cost)
                    return
                assert failure is not None
                if failure.kind is FailureKind.PARAMETER and grader.adapt(failure, known):
                    wait, failure = 0.0, None
                    continue
                failure = self.considered(grader, failure, sent)
                if failure.kind in _AGAIN and tries < self.policy.retries and not self.stop.asked:
                    tries += 1
                    wait = self.wait(failure, tries)
                    if wait > self.policy.patience:
                        self.stop.soon("failing", str(failure), grader.spec.name)
                        break
                    grader.gate.set()
                    continue
                break
            if failure is not None:
                self.gave_up(call, grader, failure, attempts, cost)
            else:
                self.release(call)
        except asyncio.CancelledError:
            self.release(call)
            raise
        finally:
            if is_first:
                grader.gate.set()

    async def ask(self, grader: _Grader, request: Request) -> Reply:
        timeout = self.policy.timeout
        try:
            async with asyncio.timeout(timeout):
                return await grader.client.ask(request, timeout=timeout)
        except TimeoutError:
            raise Failure(FailureKind.TIMEOUT, f"no answer within {timeout:g} s") from None

    def account(self, grader: _Grader, ended: Reply | Failure) -> float | None:
        """Count the tokens and the price of one request; ``None`` where the price is not known.

        A failure without token counts costs nothing, but for one that may have been answered.
        """
        self.tokens_in += ended.tokens_in or 0
        self.tokens_out += ended.tokens_out or 0
        price = grader.cost(ended.tokens_in, ended.tokens_out)
        if price is None and isinstance(ended, Failure):
            answered = ended.kind is FailureKind.TIMEOUT or (
                ended.kind is FailureKind.SERVER and ended.status in (None, 200)
            )
            price = None if answered else 0.0
        if price is None:
            self.unpriced += 1
        else:
            self.spent += price
            self.priced += isinstance(ended, Reply)
        return price

    def wait(self, failure: Failure, tries: int) -> float:
        """Seconds until a call is asked again: never less than the endpoint asks for."""
        if failure.retry_after is not None:
            return failure.retry_after + self.jitter.uniform(0, self.policy.first_wait)
        # Limits are by the minute, so a short series of short waits would use up all tries within one.
        first = self.policy.first_wait * (4.0 if failure.kind is FailureKind.LIMIT else 1.0)
        grown: float = min(self.policy.longest_wait, first * 2.0 ** (tries - 1))
        return grown * self.jitter.uniform(0.5, 1.0)

    def considered(self, grader: _Grader, failure: Failure, sent: float) -> Failure:
        """What a failure says about its endpoint: to be quiet, to stop, or that it is there.

        One that stops the run is fatal, whatever it was: the call is asked again once that is mended.
        """
        lane, kind = grader.lane, failure.kind
        if kind is FailureKind.LIMIT:
            lane.narrow(sent)
        if failure.retry_after is not None and failure.retry_after <= self.policy.patience:
            lane.hush(failure.retry_after)
        if (kind is FailureKind.UNREACHABLE and not lane.answered) or (
            kind in (FailureKind.OTHER, FailureKind.PARAMETER) and not grader.answered
        ):
            kind = FailureKind.FATAL
        elif kind is FailureKind.PARAMETER:  # nothing is left to change
            kind = FailureKind.OTHER
        if kind is FailureKind.FATAL:
            self.stop.soon("fatal", str(failure), grader.spec.name)
        elif failure.status is not None:
            lane.answered = True
        if kind in _OF_THE_CALL:
            grader.answered = True
        return failure if kind is failure.kind else _as(kind, failure)

    # Ends ------------------------------------------------------------------------------------

    def finished(
        self,
        call: C,
        grader: _Grader,
        reply: Reply,
        attempts: Sequence[Attempt],
        cost: float | None,
    ) -> None:
        outcome = self.queue.finish(call, reply, attempts, cost=cost, changes=grader.changes)
        self.at_work.pop(id(call), None)
        self.done += 1
        grader.answered = True
        grader.failed_in_row = 0
        grader.lane.widen()
        grader.gate.set()
        if reply.model:
            grader.models[reply.model] += 1
        self.outcomes[outcome] += 1
        self.tell()

    def gave_up(
        self,
        call: C,
        grader: _Grader,
        failure: Failure,
        attempts: Sequence[Attempt],
        cost: float | None,
    ) -> None:
        self.queue.fail(call, failure, attempts, cost=cost, changes=grader.changes)
        self.at_work.pop(id(call), None)
        self.failed += 1
        self.failures[failure.kind.value] += 1
        if failure.kind in _OF_THE_CALL:
            grader.failed_in_row = 0
        else:
            grader.failed_in_row += 1
        if grader.failed_in_row >= self.policy.failures:
            self.stop.soon(
                "failing",
                f"{grader.failed_in_row} calls failed one after the other; the last: {failure}",
                grader.spec.name,
            )
        self.tell()

    def release(self, call: C) -> None:
        if self.at_work.pop(id(call), None) is not None:
            self.released += 1
            self.queue.release([call])

    # All calls -------------------------------------------------------------------------------

    def room(self, wanted: int) -> int:
        """How many more calls may be started under the limits on requests and cost."""
        policy, under_way = self.policy, len(self.at_work)
        if policy.requests is not None:
            # Each call under way may not have sent its request yet.
            wanted = min(wanted, policy.requests - self.requests - under_way)
        if policy.budget is not None:
            wanted = min(wanted, self.affordable(policy.budget, wanted + under_way) - under_way)
        return max(wanted, 0)

    def affordable(self, budget: float, wanted: int) -> int:
        """How many calls the rest of the budget is good for, at the mean price of those so far."""
        if self.unpriced and not self.priced:
            return 0
        if not self.priced:  # one call at a time until a price is known
            return int(self.spent < budget)
        each = self.spent / self.priced
        if each == 0:
            return wanted
        return int((budget - self.spent - self.unpriced * each) / each + 1e-9)

    def limited(self) -> tuple[str, str]:
        """Which limit a run has come to, and what to say of it."""
        policy = self.policy
        if policy.requests is not None and self.requests >= policy.requests:
            return "requests", ""
        if self.unpriced and not self.priced:
            return "budget", (
                "what a call costs is not known (no prices, or no token counts in the replies), so the "
                "budget cannot be kept. Give price_in and price_out, or leave the budget out."
            )
        return "budget", ""

    async def serve(self, lane: _Lane, graders: Collection[str]) -> None:
        """Keep one endpoint's lane full until nothing is left, or the run is asked to stop."""
        tasks: set[asyncio.Task[None]] = set()
        freed = asyncio.Event()

        def over(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            freed.set()
            error = None if task.cancelled() else task.exception()
            if error is not None and self.broken is None:
                self.broken = error
                self.stop.now("broken")

        def cancel() -> None:
            for task in tuple(tasks):
                task.cancel()
            freed.set()

        def release() -> None:
            # Those that wait for their turn see the stop themselves.
            for grader in self.graders.values():
                grader.gate.set()
            lane.wake(len(lane.waiting))
            freed.set()

        self.stop.tell(soon=release, now=cancel)
        try:
            while not self.stop.asked:
                freed.clear()
                room = self.room(lane.width - len(tasks))
                claimed: Sequence[C] = (
                    self.queue.claim(room or 1, graders) if room or not self.at_work else ()
                )
                if claimed and not room:  # the limits leave nothing, and something is left to ask
                    self.queue.release(claimed)
                    self.stop.soon(*self.limited())
                    return
                for call in claimed:
                    self.at_work[id(call)] = call
                    task = asyncio.create_task(self.call(call))
                    tasks.add(task)
                    task.add_done_callback(over)
                if tasks:
                    await freed.wait()
                elif room or not self.at_work:
                    return
                else:  # another lane uses up what the limits leave
                    await self.stop.during(0.05)
            while tasks:
                await asyncio.wait(tasks)
        except Exception as error:
            self.broken = self.broken or error
            self.stop.now("broken")
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def keep(self) -> None:
        """Renew the leases of calls that take long."""
        while True:
            await asyncio.sleep(self.policy.keep_every)
            try:
                if self.at_work:
                    self.queue.keep(tuple(self.at_work.values()))
            except Exception as error:
                self.broken = self.broken or error
                self.stop.now("broken")

    def tell(self, *, last: bool = False) -> None:
        if self.progress is None:
            return
        now = time.monotonic()
        if now - self.shown < _TICK and not last:
            return
        self.shown = now
        ended = self.done + self.failed
        self.marks.append((now, ended))
        while len(self.marks) > 2 and now - self.marks[0][0] > 30:
            self.marks.popleft()
        then, before = self.marks[0]
        rate = (ended - before) / (now - then) if now > then else 0.0
        left = None if self.total is None else max(self.total - self.done, 0)
        quiet = max((g.lane.quiet_until for g in self.graders.values()), default=0.0) - now
        self.progress(
            Progress(
                done=self.done,
                failed=self.failed,
                unread=sum(n for o, n in self.outcomes.items() if o != "label"),
                requests=self.requests,
                under_way=len(self.at_work),
                rate=rate,
                cost=self.cost,
                left=left,
                seconds_left=left / rate if left is not None and rate > 0 else None,
                waiting=max(quiet, 0.0),
            )
        )

    @property
    def cost(self) -> float | None:
        return None if self.unpriced and not self.priced and not self.spent else self.spent

    def report(self) -> Report:
        graders = self.graders.values()
        return Report(
            done=self.done,
            failed=self.failed,
            released=self.released,
            outcomes=dict(self.outcomes),
            failures=dict(self.failures),
            requests=self.requests,
            retries=self.retries,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            cost=self.cost,
            unpriced=self.unpriced,
            changes=tuple(c for g in graders for c in g.changes),
            models={g.spec.name: dict(g.models) for g in graders},
            asked_for={g.spec.name: g.spec.model for g in graders},
            stopped=self.stop.reason,
            words=self.stop.words,
            grader=self.stop.grader,
            seconds=time.monotonic() - self.started,
        )


def endpoint(spec: GraderSpec) -> tuple[str, str]:
    """What graders share when they share a lane: the provider and the address."""
    options = spec.options
    return spec.provider, str(
        options.get("base_url") or options.get("host") or options.get("command") or ""
    )


async def run_async(
    queue: Queue[C],
    graders: Sequence[GraderSpec],
    policy: Policy | None = None,
    *,
    stop: Stop | None = None,
    total: int | None = None,
    known: Collection[str] = (),
    clients: Mapping[str, Client] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Ask all calls of a queue; :func:`run` is the same with Ctrl-C looked after.

    ``total`` is how many calls are left to ask, for the progress; ``known`` the graders that have
    answered in an earlier run; ``clients`` are used in place of those that the providers open, and are
    closed too. What goes wrong with a call is in the queue and in the report; raised is only what is
    broken here (a full disk, a bug), after all calls under way have been released.
    """
    policy = policy or Policy()
    stop = stop or Stop()
    work = _Run(queue, policy, stop, total=total, progress=progress)
    lanes: dict[tuple[str, str], _Lane] = {}
    opened: list[Client] = []
    try:
        for spec in graders:
            try:
                client = (clients or {}).get(spec.name) or provider(spec.provider).open(spec)
                if isawaitable(client):
                    client = await client
            except Failure as failure:
                stop.soon("fatal", str(failure), spec.name)
                return work.report()
            opened.append(client)
            lane = lanes.setdefault(endpoint(spec), _Lane(policy.concurrency))
            work.graders[spec.name] = _Grader(spec, client, lane, answered=spec.name in known)
        keeper = asyncio.create_task(work.keep())
        try:
            await asyncio.gather(
                *(
                    work.serve(lane, [g.spec.name for g in work.graders.values() if g.lane is lane])
                    for lane in lanes.values()
                )
            )
        finally:
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper
            if work.at_work:
                with contextlib.suppress(Exception):
                    queue.release(tuple(work.at_work.values()))
        if work.broken is not None:
            raise work.broken
        work.tell(last=True)
        return work.report()
    finally:
        for client in opened:
            with contextlib.suppress(Exception):
                await client.close()


def run(
    queue: Queue[C],
    graders: Sequence[GraderSpec],
    policy: Policy | None = None,
    *,
    total: int | None = None,
    known: Collection[str] = (),
    clients: Mapping[str, Client] | None = None,
    progress: Callable[[Progress], None] | None = None,
    stopping: Callable[[bool], None] | None = None,
) -> Report:
    """Ask all calls of a queue. Ctrl-C once lets what is under way end; twice stops at once.

    Both leave the queue whole: calls that were not asked to the end are released. ``stopping`` is told
    of each (true: at once). A request to end the process (SIGTERM) is taken as Ctrl-C.
    """

    async def all_of_it() -> Report:
        loop = asyncio.get_running_loop()
        stop = Stop()

        def interrupted() -> None:
            again = stop.asked and stop.reason != ""
            (stop.now if again else stop.soon)()
            if stopping is not None:
                stopping(again)

        with _signals(loop, interrupted):
            return await run_async(
                queue,
                graders,
                policy,
                stop=stop,
                total=total,
                known=known,
                clients=clients,
                progress=progress,
            )

    return asyncio.run(all_of_it())


@contextlib.contextmanager
def _signals(loop: asyncio.AbstractEventLoop, interrupted: Callable[[], None]) -> Any:
    """Ctrl-C and SIGTERM call ``interrupted`` inside the loop, where this thread may set that up."""
    wanted = [signal.SIGINT, signal.SIGTERM]
    set_up: list[signal.Signals] = []
    before: dict[signal.Signals, Any] = {}
    try:
        for one in wanted:
            try:
                loop.add_signal_handler(one, interrupted)
                set_up.append(one)
            except NotImplementedError:  # Windows
                before[one] = signal.signal(one, lambda *_: loop.call_soon_threadsafe(interrupted))
            except (ValueError, RuntimeError):  # not the main thread: whoever runs us stops us
                break
        yield
    finally:
        for one in set_up:
            loop.remove_signal_handler(one)
        for one, handler in before.items():
            signal.signal(one, handler)
