"""A small endpoint on 127.0.0.1 that speaks chat completions, and fails in every way that real ones do.

A test starts it, says what it answers, and reads what it was asked::

    with FaultServer([answer("VERDICT: refusal")]) as server:
        ...  # server.url is the base URL
    assert len(server.requests) == 1

What it answers is a list of steps, given out in the order of asking (the last again and again), or a
function from the request to a step. It runs in a thread of its own, on a port that the system picks,
and ends by itself after ``life`` seconds. ``python -m tests.fault_server`` runs it in a process of its
own, for benchmarks: it prints its URL and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LIFE = 120.0  # seconds
HANG = 60.0  # seconds that a hanging answer lasts, where nobody ends it before


@dataclass(frozen=True, kw_only=True)
class Step:
    """One answer. ``body`` is JSON, or bytes that are sent as they are; ``delay`` in seconds.

    ``end``: ``whole``; ``cut`` sends half of the body and closes; ``drop`` closes without an answer;
    ``hang`` sends nothing; ``stall`` sends half of the body and then nothing.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    end: str = "whole"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request as it came: its number from 0, when, its headers (lower case) and its body."""

    number: int
    at: float
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All messages as one text."""
        return "\n".join(m["content"] for m in self.body.get("messages", ()))


def answer(
    text: str | None = "VERDICT: refusal",
    *,
    finish: str = "stop",
    model: str = "stand-in",
    tokens: tuple[int, int] | None = (10, 2),
    delay: float = 0.0,
    end: str = "whole",
    **message: Any,
) -> Step:
    """A well-formed answer of status 200; further keywords are fields of its message."""
    body: dict[str, Any] = {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish,
            }
        ],
    }
    if tokens is not None:
        body["usage"] = {
            "prompt_tokens": tokens[0],
            "completion_tokens": tokens[1],
            "total_tokens": sum(tokens),
        }
    return Step(body=body, delay=delay, end=end)


def error(
    status: int, message: str = "", *, headers: Mapping[str, str] | None = None, **fields: Any
) -> Step:
    """An error with a message, as such endpoints word it."""
    return Step(
        status=status, body={"error": {"message": message, **fields}}, headers=headers or {}
    )


def tool_call(arguments: str) -> Step:
    """An answer whose verdict came as the arguments of a tool call, without a text."""
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "give_label", "arguments": arguments},
    }
    return answer(None, finish="tool_calls", tool_calls=[call])


#: One of each way to fail, with what is left of the call afterwards (``again``: worth another request).
FAULTS: dict[str, Step] = {
    "limit": error(429, "slow down", headers={"Retry-After": "0"}),
    "limit_date": error(429, "slow down", headers={"Retry-After": "Thu, 01 Jan 2015 00:00:00 GMT"}),
    "server": error(500, "something broke"),
    "busy": error(503, "busy"),
    "gateway": Step(status=502, body=b"<html>bad gateway</html>"),
    "not_json": Step(body=b"<html>welcome</html>"),
    "no_body": Step(body=b""),
    "no_choices": Step(body={"object": "chat.completion", "choices": []}),
    "error_in_200": Step(body={"error": {"message": "upstream failed", "code": 502}}),
    "cut": answer(end="cut"),
    "drop": Step(end="drop"),
    "stall": answer(end="stall"),
    "hang": Step(end="hang"),
}


class FaultServer:
    """The endpoint; see the module. ``requests`` grows while it runs."""

    def __init__(
        self, script: Sequence[Step] | Callable[[Asked], Step], *, life: float = LIFE
    ) -> None:
        self._script = script
        self._life = life
        self.requests: list[Asked] = []
        self.open = 0  # requests under way
        self.most_open = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fault server", daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> FaultServer:
        self._thread.start()
        assert self._ready.wait(10), "the fault server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.run(self.serve(self._life))

    async def serve(self, life: float) -> None:
        """Answer until the server is ended, or ``life`` seconds are over."""
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        try:
            async with asyncio.timeout(life):
                await self._over.wait()
        except TimeoutError:
            pass
        finally:
            server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def step(self, asked: Asked) -> Step:
        if callable(self._script):
            return self._script(asked)
        return self._script[min(asked.number, len(self._script) - 1)]


class _Connection(asyncio.Protocol):
    """One kept-open connection; answers one request after the other."""

    def __init__(self, server: FaultServer) -> None:
        self._server = server
        self._bytes = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._out = transport
        self._task: asyncio.Task[None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._bytes += data
        head, blank, rest = self._bytes.partition(b"\r\n\r\n")
        if not blank:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._bytes = rest[length:]
        server = self._server
        asked = Asked(
            number=len(server.requests),
            at=time.monotonic(),
            path=first.split(" ")[1],
            headers=headers,
            body=json.loads(rest[:length] or b"{}"),
        )
        server.requests.append(asked)
        server.open += 1
        server.most_open = max(server.most_open, server.open)
        self._task = asyncio.ensure_future(self._answer(server.step(asked)))
        server._tasks.add(self._task)
        self._task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._server.open -= 1
        self._server._tasks.discard(task)
        if task.cancelled():
            self._out.close()

    async def _answer(self, step: Step) -> None:
        if step.delay:
            await asyncio.sleep(step.delay)
        if step.end == "hang":
            await asyncio.sleep(HANG)
        if step.end in ("hang", "drop"):
            self._out.close()
            return
        body = step.body if isinstance(step.body, bytes) else json.dumps(step.body).encode()
        head = f"HTTP/1.1 {step.status} Status\r\ncontent-length: {len(body)}\r\n"
        headers = {"content-type": "application/json", **step.headers}
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if step.end == "whole":
            self._out.write(head.encode() + b"\r\n" + body)
            return
        self._out.write(head.encode() + b"\r\n" + body[: len(body) // 2])
        if step.end == "stall":
            await asyncio.sleep(HANG)
        self._out.close()


def main(arguments: Sequence[str]) -> None:
    """``DELAY SECONDS-OF-LIFE``: answer everything after a delay, until standard input ends."""
    delay, life = float(arguments[0]), float(arguments[1])
    server = FaultServer(lambda asked: answer(delay=delay))

    async def serve() -> None:
        serving = asyncio.ensure_future(server.serve(life))
        while not server.port:
            await asyncio.sleep(0.01)
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        server._over.set()
        await serving

    asyncio.run(serve())


if __name__ == "__main__":
    main(sys.argv[1:])
