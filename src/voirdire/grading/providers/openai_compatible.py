"""Any endpoint that speaks chat completions (vLLM, Ollama, llama.cpp, hosted), over the openai SDK.

Options: ``base_url`` (else ``OPENAI_BASE_URL``, else the SDK's own) and ``api_key_env``, the name of the
environment variable with the key. Without that name ``OPENAI_API_KEY`` is taken, but goes nowhere else
than to OpenAI or to ``OPENAI_BASE_URL``: a base URL in a study file must not collect keys. The SDK is opened without retries, since the
runner has the one retry layer, and is asked for the answer as it came: bodies are read here, leniently.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from voirdire.grading import wire
from voirdire.grading.base import Failure, FailureKind, GraderSpec, Reply, Request
from voirdire.grading.providers.base import Provider, known_options
from voirdire.grading.secrets import environment_secrets, scrub

if TYPE_CHECKING:
    import openai

# Requests on one set of connections. For every request the library below the SDK looks at all connections
# of its set: with 64 in one set a call takes 2.1 ms of CPU, with 16 in each of four 1.85 ms
# (benchmarks/grading.py, Python 3.11).
_POOL = 16
_DEFAULT_KEY = "OPENAI_API_KEY"
_HOSTED = "https://api.openai.com/v1"
# What the SDK calls its network errors; the library below it has changed its name before.
_NO_CONNECTION = ("ConnectError", "ConnectTimeout", "ProxyError")
_NO_ADDRESS = ("UnsupportedProtocol", "LocalProtocolError", "InvalidURL")


def _fatal(message: str) -> Failure:
    return Failure(FailureKind.FATAL, message)


def _key(spec: GraderSpec, base_url: str) -> str:
    """The key from the environment; a stand-in for endpoints elsewhere, which often need none."""
    name = str(spec.options.get("api_key_env") or "")
    own = (_HOSTED, os.environ.get("OPENAI_BASE_URL", "").strip().rstrip("/"))
    if not name and base_url.rstrip("/") not in own:
        return "none"
    key = os.environ.get(name or _DEFAULT_KEY, "").strip()
    if key:
        return key
    if name or base_url.rstrip("/") == _HOSTED:
        raise _fatal(
            f"The grader {spec.name!r} needs a key: the environment variable {name or _DEFAULT_KEY} is "
            "not set. Set it and run again, or give the base URL of a server that needs none."
        )
    return "none"


@dataclass(slots=True)
class _Pool:
    """One set of kept-open connections, and how many requests are under way on it."""

    sdk: openai.AsyncOpenAI
    busy: int = 0


class _Client:
    def __init__(self, spec: GraderSpec) -> None:
        known_options(spec, ("base_url", "api_key_env"))
        try:
            import openai
        except ModuleNotFoundError as error:
            if error.name != "openai":
                raise
            raise _fatal(
                f"The grader {spec.name!r} is reached over the openai package, which is not installed. "
                "Install it with: pip install 'voirdire[grade]'"
            ) from None
        base_url = str(
            spec.options.get("base_url") or os.environ.get("OPENAI_BASE_URL") or _HOSTED
        ).strip()
        if not re.match(r"https?://[^/]", base_url):
            raise _fatal(
                f"The base URL of the grader {spec.name!r}, {scrub(base_url)!r}, does not begin with "
                "http:// or https:// and a host. It looks like http://127.0.0.1:8000/v1."
            )
        key = _key(spec, base_url)
        self._openai = openai
        self._where = scrub(base_url, (key,))
        self._secrets = tuple({key, *environment_secrets()})
        self._sdk = partial(openai.AsyncOpenAI, api_key=key, base_url=base_url, max_retries=0)
        self._pools: list[_Pool] = [_Pool(self._sdk())]

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        body = wire.request_body(request)
        try:
            answer = await self._send(body, timeout)
        except UnicodeEncodeError:
            answer = await self._send(wire.request_body(wire.encodable(request)), timeout)
        except self._openai.APIStatusError as error:
            raise self._refused(error, request) from None
        except self._openai.APITimeoutError:
            raise Failure(FailureKind.TIMEOUT, f"no answer within {timeout:g} s") from None
        except self._openai.APIConnectionError as error:
            raise self._unconnected(error) from None
        return self._read(answer.http_response, request)

    async def _send(self, body: dict[str, Any], timeout: float) -> Any:
        # The body goes in as it is: the SDK knows neither all parameters nor all servers, and looks
        # through every message that it is given as one, which costs more than all that is done here.
        pool = min(self._pools, key=lambda p: p.busy)
        if pool.busy >= _POOL:
            pool = _Pool(self._sdk())
            self._pools.append(pool)
        pool.busy += 1
        try:
            return await pool.sdk.chat.completions.with_raw_response.create(
                model=body["model"], messages=[], extra_body=body, timeout=timeout
            )
        finally:
            pool.busy -= 1

    def _read(self, response: Any, request: Request) -> Reply:
        # A reply is stored as it came, but for the key itself.
        raw = scrub(response.content.decode("utf-8", "replace"), self._secrets, shapes=False)
        try:
            body = json.loads(raw)
        except ValueError:
            begins = scrub(" ".join(raw[:80].split()), self._secrets)
            raise Failure(
                FailureKind.SERVER,
                f"The answer is not whole JSON; it begins {begins!r}."
                if begins
                else "The answer is empty.",
                status=response.status_code,
                raw=raw,
            ) from None
        return wire.reply_of(body, raw=raw, labels=request.labels)

    def _refused(self, error: openai.APIStatusError, request: Request) -> Failure:
        raw = error.response.text
        try:
            body = json.loads(raw)
        except ValueError:
            body = raw
        return wire.failure_of(
            error.status_code,
            body,
            raw=raw,
            headers=dict(error.response.headers),
            request=request,
            secrets=self._secrets,
        )

    def _unconnected(self, error: Exception) -> Failure:
        cause = error.__cause__
        name = type(cause).__name__
        words = scrub(str(cause or error) or name, self._secrets)
        if name in _NO_ADDRESS:
            return _fatal(f"{self._where} is no address that can be asked: {words}")
        if name in _NO_CONNECTION:
            return Failure(FailureKind.UNREACHABLE, f"no connection to {self._where}: {words}")
        return Failure(FailureKind.SERVER, f"the connection was lost: {words}")

    async def close(self) -> None:
        for pool in self._pools:
            await pool.sdk.close()


PROVIDER = Provider(
    name="openai",
    title="any endpoint that speaks OpenAI's chat completions (vLLM, Ollama, llama.cpp, hosted)",
    open=_Client,
)
