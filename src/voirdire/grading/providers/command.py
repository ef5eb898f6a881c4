"""Any program as a grader: one JSON line in, one JSON line out, the program kept open.

Options: ``command``, a list of words (or one string, split as a shell would); ``workers``, how many run
side by side (1). A line in has ``response``, ``prompt``, ``messages``, ``model``, ``parameters``,
``labels`` and ``reply_schema``. A line out has ``label`` or ``text``, and may have ``reasoning``,
``finish``, ``refusal``, ``model``, ``tokens_in`` and ``tokens_out``; or ``error`` with what went wrong, and
``retry`` true where asking again may help. What the program writes to standard error goes into failures.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
from collections.abc import Mapping
from typing import Any

from voirdire.grading.base import Failure, FailureKind, GraderSpec, Reply, Request
from voirdire.grading.providers.base import Provider, known_options
from voirdire.grading.secrets import environment_secrets, scrub

_LONGEST_LINE = 64 * 2**20  # bytes
_TAIL = 2000  # characters of standard error that are kept
_PATIENCE = 2.0  # seconds for a program to end after its input has been closed


def _line(request: Request) -> bytes:
    body = {
        "response": request.response,
        "prompt": request.prompt,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        "model": request.model,
        "parameters": dict(request.parameters),
        "labels": list(request.labels),
        "reply_schema": None if request.reply_schema is None else dict(request.reply_schema),
    }
    return json.dumps(body).encode() + b"\n"


def _reply(raw: str) -> Reply:
    """The reply in one line of output."""
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    if not isinstance(body, Mapping):
        raise Failure(
            FailureKind.SERVER,
            f"The program did not answer with a JSON object but with {raw[:80]!r}. "
            "What is meant for people belongs on standard error.",
            raw=raw,
        )
    if "error" in body:
        kind = FailureKind.SERVER if body.get("retry") is True else FailureKind.OTHER
        raise Failure(kind, f"the program says: {body['error']}", raw=raw)
    text = body.get("text", body.get("label"))
    if text is None and "text" not in body and "label" not in body:
        raise Failure(
            FailureKind.OTHER, "The program's answer has neither label nor text.", raw=raw
        )

    def word(name: str) -> str:
        value = body.get(name)
        return value if isinstance(value, str) else ""

    def count(name: str) -> int | None:
        value = body.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return Reply(
        text=text if text is None or isinstance(text, str) else json.dumps(text),
        reasoning=word("reasoning"),
        finish=word("finish") or "stop",
        refusal=word("refusal"),
        model=word("model"),
        tokens_in=count("tokens_in"),
        tokens_out=count("tokens_out"),
        raw=raw,
    )


class _Program:
    """One running copy of the program, started when it is first asked, and again after it failed."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._tail = ""

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(4096):
            self._tail = (self._tail + chunk.decode("utf-8", "replace"))[-_TAIL:]

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        self._tail = ""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LONGEST_LINE,
            )
        except OSError as error:
            raise Failure(
                FailureKind.FATAL,
                f"The program {self._words[0]!r} cannot be started: {error.strerror or error}. Check "
                "its path in `command`, and that it is installed and may be run.",
            ) from None
        assert self._process.stderr is not None
        self._listener = asyncio.create_task(self._listen(self._process.stderr))
        return self._process

    async def exchange(self, line: bytes, timeout: float) -> str:
        process = await self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        whole = False
        try:
            async with asyncio.timeout(timeout):
                with contextlib.suppress(ConnectionError):  # it ended: the empty read below says so
                    process.stdin.write(line)
                    await process.stdin.drain()
                answer = await process.stdout.readline()
            whole = answer.endswith(b"\n")
        except TimeoutError:
            raise Failure(
                FailureKind.TIMEOUT, f"no answer within {timeout:g} s; the program was ended"
            ) from None
        except ValueError:
            raise Failure(
                FailureKind.SERVER, f"The answer is longer than {_LONGEST_LINE} bytes."
            ) from None
        finally:
            if not whole:  # its next line would be the answer to this request
                await self.end(at_once=True)
        if not whole:
            status = process.returncode
            said = scrub(" ".join(self._tail.split()), environment_secrets())
            raise Failure(
                FailureKind.SERVER,
                f"The program ended without an answer (status {status})"
                + (f": …{said[-300:]}" if said else "."),
                raw=answer.decode("utf-8", "replace"),
            )
        return answer.decode("utf-8", "replace")

    async def end(self, *, at_once: bool = False) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(_PATIENCE):
                if at_once:
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        finally:
            if process.returncode is None:  # cancelled while waiting: leave no program behind
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        if self._listener is not None:
            await asyncio.wait([self._listener], timeout=_PATIENCE)
            self._listener.cancel()
            self._listener = None


class _Client:
    def __init__(self, spec: GraderSpec) -> None:
        known_options(spec, ("command", "workers"))
        given: Any = spec.options.get("command") or ()
        words = shlex.split(given) if isinstance(given, str) else [str(word) for word in given]
        if not words:
            raise Failure(
                FailureKind.FATAL,
                f"The grader {spec.name!r} names no program. "
                'Add command = ["python", "classify.py"] to its options.',
            )
        self._programs = [
            _Program(words) for _ in range(max(1, int(spec.options.get("workers") or 1)))
        ]
        self._idle: asyncio.Queue[_Program] = asyncio.Queue()
        for program in self._programs:
            self._idle.put_nowait(program)

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        program = await self._idle.get()
        try:
            answer = await program.exchange(_line(request), timeout)
            return _reply(scrub(answer.rstrip("\r\n"), environment_secrets(), shapes=False))
        except Failure as failure:
            if failure.kind is FailureKind.SERVER:
                await program.end(at_once=True)  # out of step: start afresh
            raise
        finally:
            self._idle.put_nowait(program)

    async def close(self) -> None:
        await asyncio.gather(*(program.end() for program in self._programs))


PROVIDER = Provider(
    name="command", title="any program: one JSON line in, one JSON line out", open=_Client
)
