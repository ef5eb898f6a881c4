"""Other hosts (Anthropic, Gemini, Mistral, …) over the any-llm package.

Options: ``host``, the name that any-llm gives the provider (required), ``base_url``, and ``api_key_env``,
the name of the environment variable with the key (else the one that any-llm knows for the host).
"""

from __future__ import annotations

import os
from inspect import isawaitable
from typing import Any

from voirdire.grading import wire
from voirdire.grading.base import Failure, FailureKind, GraderSpec, Reply, Request
from voirdire.grading.providers.base import Provider, known_options
from voirdire.grading.secrets import environment_secrets, scrub

# What the package's errors say where they carry no HTTP status.
_KINDS = {
    "RateLimitError": FailureKind.LIMIT,
    "AuthenticationError": FailureKind.FATAL,
    "MissingApiKeyError": FailureKind.FATAL,
    "InsufficientFundsError": FailureKind.FATAL,
    "ModelNotFoundError": FailureKind.FATAL,
    "UnsupportedProviderError": FailureKind.FATAL,
    "ContentFilterError": FailureKind.BLOCKED,
    "ContentFilterFinishReasonError": FailureKind.BLOCKED,
    "ContextLengthExceededError": FailureKind.TOO_LONG,
    "UnsupportedParameterError": FailureKind.PARAMETER,
    "GatewayTimeoutError": FailureKind.TIMEOUT,
    "UpstreamProviderError": FailureKind.SERVER,
    "ProviderError": FailureKind.SERVER,
}


def _behind(error: BaseException | None) -> list[str]:
    """The names of the errors that an error of the package stands for."""
    names: list[str] = []
    while error is not None and len(names) < 10:
        names.append(type(error).__name__)
        error = getattr(error, "original_exception", None) or error.__cause__ or error.__context__
    return names


def _failure(error: Exception, request: Request | None) -> Failure:
    """What one of the package's errors means here."""
    secrets = environment_secrets()
    words = scrub(str(error) or type(error).__name__, secrets)
    status = getattr(error, "status_code", None)
    code = getattr(error, "code", None)
    named = getattr(error, "param", None) or ""
    headers = {"retry-after": str(wait)} if (wait := getattr(error, "retry_after", None)) else {}
    kind = _KINDS.get(type(error).__name__)
    if (
        isinstance(status, int)
        and status >= 300
        and kind
        not in (
            FailureKind.BLOCKED,
            FailureKind.TOO_LONG,
        )
    ):
        return wire.failure_of(
            status,
            {"error": {"message": words, "code": code, "param": named}},
            headers=headers,
            request=request,
            secrets=secrets,
        )
    behind = _behind(error)
    if "ConnectError" in behind:
        kind = FailureKind.UNREACHABLE
    elif kind is None:
        kind = FailureKind.TIMEOUT if any("Timeout" in n for n in behind) else FailureKind.OTHER
    parameter = ""
    if kind is FailureKind.PARAMETER:
        parameter = wire.refused_parameter(words, str(named), request)
        kind = kind if parameter else FailureKind.OTHER
    return Failure(
        kind, words, status=status, retry_after=wire.retry_after(headers), parameter=parameter
    )


class _Client:
    def __init__(self, spec: GraderSpec) -> None:
        known_options(spec, ("host", "base_url", "api_key_env"))
        host = str(spec.options.get("host") or "")
        if not host:
            raise Failure(
                FailureKind.FATAL,
                f"The grader {spec.name!r} does not say which host any-llm shall ask. "
                'Add host = "anthropic" (or another) to its options.',
            )
        try:
            from any_llm import AnyLLM
            from any_llm.exceptions import AnyLLMError, UnsupportedParameterError
        except ModuleNotFoundError as error:
            if error.name != "any_llm":
                raise
            raise Failure(
                FailureKind.FATAL,
                f"The grader {spec.name!r} is reached over the any-llm package, which is not "
                "installed. Install it with: pip install 'voirdire[providers]'",
            ) from None
        name = str(spec.options.get("api_key_env") or "")
        key = os.environ.get(name, "").strip() if name else ""
        if name and not key:
            raise Failure(
                FailureKind.FATAL,
                f"The grader {spec.name!r} needs a key: the environment variable {name} is not set.",
            )
        base = spec.options.get("base_url")
        given = {"api_key": key or None, "api_base": base, "unified_exceptions": True}
        self._foreign: tuple[type[Exception], ...] = (AnyLLMError,)
        try:
            try:
                self._host: Any = AnyLLM.create(host, max_retries=0, **given)
            except UnsupportedParameterError:  # a host whose package has no retries to switch off
                self._host = AnyLLM.create(host, **given)
        except (AnyLLMError, ImportError) as error:
            raise Failure(
                FailureKind.FATAL,
                f"The host {host!r} cannot be opened: {scrub(str(error), environment_secrets())}",
            ) from None

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        body = wire.request_body(wire.encodable(request))
        try:
            answer = await self._host.acompletion(**body)
        except self._foreign as error:
            raise _failure(error, request) from None
        raw = scrub(answer.model_dump_json(), environment_secrets(), shapes=False)
        return wire.reply_of(answer.model_dump(mode="json"), raw=raw, labels=request.labels)

    async def close(self) -> None:
        inner = getattr(self._host, "client", None)
        close = getattr(inner, "aclose", None) or getattr(inner, "close", None)
        if close is not None:
            done = close()
            if isawaitable(done):
                await done


PROVIDER = Provider(name="any-llm", title="other hosts, over the any-llm package", open=_Client)
