"""Answers that are written down beforehand: for tests and demos, without a network.

Options: ``answers``, a list that is given out in the order of asking (used up: a failure) or a function
from a request to an answer; ``by_response``, a table from response text to answer; ``default``, the
answer to everything else; ``seconds``, how long each answer takes; ``script``, a JSON or TOML file that has
these. An answer is a text, a
:class:`Reply`, or a :class:`Failure` to raise.
"""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from voirdire.errors import unreadable
from voirdire.grading.base import Failure, FailureKind, GraderSpec, Reply, Request
from voirdire.grading.providers.base import Provider, known_options

Answer = str | Reply | Failure


def _script(spec: GraderSpec) -> dict[str, Any]:
    path = spec.options.get("script")
    if not path:
        return {}
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        content = tomllib.loads(text) if str(path).lower().endswith(".toml") else json.loads(text)
    except OSError as error:
        raise Failure(
            FailureKind.FATAL, unreadable(path, error, name=f"The script {path}")
        ) from None
    except ValueError as error:
        raise Failure(FailureKind.FATAL, f"The script {path} cannot be read: {error}.") from None
    if not isinstance(content, dict):
        raise Failure(FailureKind.FATAL, f"The script {path} is not a table of settings.")
    return content


class _Client:
    def __init__(self, spec: GraderSpec) -> None:
        known_options(spec, ("answers", "by_response", "default", "seconds", "script"))
        options = {**_script(spec), **spec.options}
        answers: Any = options.get("answers", ())
        self._function: Callable[[Request], Answer] | None = answers if callable(answers) else None
        self._listed: Iterator[Answer] = iter(() if callable(answers) else answers)
        self._by_response: Mapping[str, Answer] = options.get("by_response") or {}
        self._default: Answer | None = options.get("default")
        self._seconds = float(options.get("seconds") or 0)

    def _answer(self, request: Request) -> Answer:
        if self._function is not None:
            return self._function(request)
        if request.response in self._by_response:
            return self._by_response[request.response]
        used_up = Failure(FailureKind.OTHER, "the script has no answer left")
        return next(self._listed, self._default if self._default is not None else used_up)

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        answer = self._answer(request)
        await asyncio.sleep(self._seconds)
        if isinstance(answer, Failure):
            raise answer
        if isinstance(answer, Reply):
            return answer
        return Reply(text=answer, finish="stop", model=request.model, raw=answer)

    async def close(self) -> None:
        pass


PROVIDER = Provider(
    name="scripted", title="answers written down beforehand (tests, demos)", open=_Client
)
