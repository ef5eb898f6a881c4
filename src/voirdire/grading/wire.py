"""The chat-completions format: the body of a request, the reply in an answer, the failure in a status.

Shared by everything that speaks it: endpoints asked one call at a time, and batch files. Nothing here
sends anything. Bodies are read leniently (a missing field is unknown, never a crash), since servers that
call themselves compatible differ in what they leave out.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from voirdire.grading.base import Failure, FailureKind, Message, Reply, Request
from voirdire.grading.secrets import environment_secrets, scrub

SYSTEM = "system role"  # a refused "parameter" that is a message role
SCHEMA = "response_format"
LONGEST_WORDS = 600  # characters of a provider's message that are shown

_KEPT_OUT = ("stream", "n", "messages", "model")  # these would change what a call is


def request_body(request: Request) -> dict[str, Any]:
    """The JSON body of one request: model, messages, parameters as given, and the schema of the reply.

    ``extra_body`` among the parameters is spread out, as the SDK does. Raises :class:`Failure` (fatal)
    where a parameter would make one call into several or into a stream.
    """
    parameters = {**request.parameters}
    parameters.update(parameters.pop("extra_body", None) or {})
    for name in _KEPT_OUT:
        if parameters.get(name) not in (None, False) and not (
            name == "n" and parameters[name] == 1
        ):
            raise Failure(
                FailureKind.FATAL,
                f"The parameter {name!r} cannot be set: one call is one whole reply. Take it out; "
                "repeats are asked for with votes.",
            )
        parameters.pop(name, None)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        **parameters,
    }
    if request.reply_schema is not None:
        body.setdefault(
            SCHEMA,
            {
                "type": "json_schema",
                "json_schema": {
                    "name": "verdict",
                    "strict": True,
                    "schema": dict(request.reply_schema),
                },
            },
        )
    return body


def encodable(request: Request) -> Request:
    """The request with lone halves of surrogate pairs as U+FFFD, since no JSON body can carry them."""
    messages = tuple(
        Message(
            m.role,
            m.content.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"),
        )
        for m in request.messages
    )
    return replace(request, messages=messages)


# What came back -------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _as_json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _blocks(blocks: Sequence[Any]) -> tuple[str | None, str, list[str]]:
    """Text, reasoning and tool arguments of a content that is a list of blocks."""
    texts: list[str] = []
    thoughts: list[str] = []
    tools: list[str] = []
    for block in blocks:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, Mapping):
            kind = block.get("type")
            if kind in ("tool_use", "tool_call", "function_call"):
                tools.append(_as_json(block.get("input", block.get("arguments", {}))))
            elif kind in ("thinking", "reasoning", "redacted_thinking"):
                inner = block.get("thinking", block.get("text", ""))
                thoughts.append(
                    _blocks(inner)[0] or "" if isinstance(inner, list) else _text(inner)
                )
            elif "text" in block:
                texts.append(_text(block["text"]))
    return ("\n".join(texts) if texts else None), "\n".join(t for t in thoughts if t), tools


def _usage(body: Mapping[str, Any]) -> tuple[int | None, int | None]:
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return None, None
    return (
        _whole(usage.get("prompt_tokens", usage.get("input_tokens"))),
        _whole(usage.get("completion_tokens", usage.get("output_tokens"))),
    )


def reply_of(body: Any, *, raw: str = "", labels: Sequence[str] = ()) -> Reply:
    """The :class:`Reply` in the decoded body of an answer of status 200.

    ``labels`` are the verdicts whose log-probabilities are looked up, where the body has any. A message
    of blocks (thinking, text, tool use), as other providers send it, is read as well. Raises
    :class:`Failure` where the body holds an error, or no reply at all (kind ``server``: ask again).
    """
    if not isinstance(body, Mapping):
        raise Failure(FailureKind.SERVER, "The answer is not a JSON object.", status=200, raw=raw)
    used_in, used_out = _usage(body)
    choices = body.get("choices")
    choice: Mapping[str, Any]
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        choice = choices[0]
        message = choice.get("message")
        if not isinstance(message, Mapping):
            message = {"content": choice.get("text")}
        finish = _text(choice.get("finish_reason"))
    elif isinstance(body.get("content"), list):
        choice, message, finish = {}, body, _text(body.get("stop_reason"))
    else:
        if body.get("error"):
            raise failure_of(_error_status(body["error"]), body, raw=raw)
        raise Failure(
            FailureKind.SERVER,
            "The answer holds no reply (no choices).",
            status=200,
            raw=raw,
            tokens_in=used_in,
            tokens_out=used_out,
        )
    content = message.get("content")
    tools: list[str] = []
    thoughts = ""
    text: str | None = None
    if isinstance(content, str):
        text = content
    elif isinstance(content, list):
        text, thoughts, tools = _blocks(content)
    elif content is not None:
        text = _as_json(content)
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            tools.append(_as_json(function.get("arguments", "")))
    if isinstance(function := message.get("function_call"), Mapping):
        tools.append(_as_json(function.get("arguments", "")))
    reasoning = next(
        (
            message[name]
            for name in ("reasoning_content", "reasoning", "thinking")
            if isinstance(message.get(name), str) and message[name]
        ),
        thoughts,
    )
    scores = choice.get("logprobs")
    tokens = scores.get("content") if isinstance(scores, Mapping) else None
    return Reply(
        text=text,
        reasoning=reasoning,
        finish=finish,
        refusal=_text(message.get("refusal")),
        tool_arguments="\n".join(tools),
        model=_text(body.get("model")),
        fingerprint=_text(body.get("system_fingerprint")),
        tokens_in=used_in,
        tokens_out=used_out,
        logprobs=label_logprobs(tokens, labels) if isinstance(tokens, list) and labels else None,
        raw=raw,
    )


# What went wrong ------------------------------------------------------------------------------------

_BLOCKED = re.compile(
    r"content[_ -]?(?:filter|policy|management)|responsible_?ai_?policy|safety system|"
    r"flagged (?:as|by|for)|moderation|invalid_prompt|prompt was (?:blocked|flagged)",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[_ ](?:length|window|size)|maximum (?:context|input|prompt|sequence)|"
    r"exceeds? the (?:available )?(?:context|maximum|model)|(?:prompt|input|request) (?:is |was )?too (?:long|large)|"
    r"too many (?:input |prompt )?tokens|reduce the length|string_above_max_length|max_model_len",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(
    r"insufficient_quota|insufficient[_ ](?:funds|balance|credits?)|billing|exceeded your current quota|"
    r"payment required|out of credits?",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|model\W+[^\n]{0,120}?(?:does not exist|not found|is not available|not a valid model)|"
    r"(?:unknown|no such|invalid|unsupported) model\b|not a valid model|invalid model name",
    re.IGNORECASE,
)
_NO_KEY = re.compile(
    r"(?:invalid|incorrect|missing|expired) (?:api|access)[ _-]?(?:key|token)|api[ _]key not valid|"
    r"invalid_api_key",
    re.IGNORECASE,
)
_SYSTEM = re.compile(
    r"system[ _-]?(?:role|message|prompt|instruction)s?\b|\brole\W+system|developer instruction|"
    r"\bsystem\W+is not (?:a valid|supported)|roles must alternate",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"not? (?:be )?(?:supported?|available|allowed|permitted|recogni[sz]ed|compatible|accepted|implemented|valid)|"
    r"does ?n[o']t (?:support|accept|allow)|cannot be (?:used|set|specified)|unsupported|unrecogni[sz]ed|"
    r"unknown|unexpected|instead|extra (?:inputs?|fields?|forbidden)|extra_forbidden|only the default|"
    r"deprecated|no longer|invalid|must alternate|must be|disabled|not enabled|remove",
    re.IGNORECASE,
)
# Other names under which messages speak of what was sent.
_ALIASES = {
    SCHEMA: ("response_format", "json_schema", "json schema", "structured output", "json mode"),
    "max_tokens": ("max_tokens", "max tokens"),
    "max_completion_tokens": ("max_completion_tokens", "max completion tokens"),
    "temperature": ("temperature",),
    "logprobs": ("logprobs", "log probabilities", "log probs"),
    "top_logprobs": ("top_logprobs",),
}


def _error_status(error: Any) -> int:
    """The status that an error inside an answer of status 200 stands for; 502 where it does not say."""
    if isinstance(error, Mapping):
        for name in ("status", "code", "status_code"):
            value = error.get(name)
            if isinstance(value, str) and value.isdigit():
                value = int(value)
            if isinstance(value, int) and 400 <= value <= 599:
                return value
    return 502


def _details(body: Any) -> tuple[str, str, str]:
    """The provider's words, its code and type, and the parameter that it names."""
    if isinstance(body, str):
        return body, "", ""
    if isinstance(body, list) and body:  # some wrap the error in a list
        return _details(body[0])
    if not isinstance(body, Mapping):
        return "", "", ""
    error = body.get("error", body.get("detail", body))
    if isinstance(error, str):
        return error, _text(body.get("code")), _text(body.get("param"))
    if isinstance(error, list):  # a list of field errors: where, what
        found: list[str] = []
        fields: list[str] = []
        for part in error:
            if isinstance(part, Mapping):
                where = [str(p) for p in part.get("loc") or () if p != "body"]
                found.append(f"{'.'.join(where)}: {_text(part.get('msg'))}")
                fields.extend(where[:1])
        return "; ".join(found), "", fields[0] if len(set(fields)) == 1 else ""
    if not isinstance(error, Mapping):
        return "", "", ""
    words = _text(error.get("message")) or _text(error.get("msg")) or _text(body.get("message"))
    inner = error.get("innererror")
    codes = [error.get("code"), error.get("type")]
    codes += [inner.get("code")] if isinstance(inner, Mapping) else []
    return words, " ".join(str(c) for c in codes if c), _text(error.get("param"))


def refused_parameter(words: str, named: str, request: Request | None) -> str:
    """Which parameter of a request an endpoint turned down, from its words; empty where it does not say.

    ``named`` is the field ``param`` of the error. Only what was sent can have been refused.
    """
    if request is None:
        return named
    sent = set(request.parameters)
    sent.update(request.parameters.get("extra_body") or ())
    if request.reply_schema is not None:
        sent.add(SCHEMA)
    top = re.split(r"[.\[]", named)[0] if named else ""
    if top in sent:
        return top
    has_system = any(m.role == "system" for m in request.messages)
    if has_system and _SYSTEM.search(words) and _REFUSED.search(words):
        return SYSTEM
    if not _REFUSED.search(words):
        return ""
    found = [
        (match.start(), name)
        for name in sent
        for alias in _ALIASES.get(name, (name,))
        if (match := re.search(rf"(?<![\w]){re.escape(alias)}(?![\w])", words, re.IGNORECASE))
    ]
    return min(found)[1] if found else ""


def failure_of(
    status: int,
    body: Any,
    *,
    raw: str = "",
    headers: Mapping[str, str] | None = None,
    request: Request | None = None,
    secrets: Iterable[str] | None = None,
) -> Failure:
    """The :class:`Failure` in an answer of another status than 200: what kind, in the provider's words.

    ``body`` is the decoded body, or its text where it is no JSON. Messages and raw bodies are scrubbed of
    secrets (those of the environment where ``secrets`` is ``None``).
    """
    secrets = environment_secrets() if secrets is None else tuple(secrets)
    words, code, named = _details(body)
    words = scrub(" ".join(words.split()), secrets)
    shown = words if len(words) <= LONGEST_WORDS else words[: LONGEST_WORDS - 1] + "…"
    said = f"{code} {words}"
    wait = retry_after(headers or {})
    parameter = ""
    if status == 429:
        kind = FailureKind.FATAL if _NO_MONEY.search(said) else FailureKind.LIMIT
    elif status in (408, 504, 524):
        kind = FailureKind.TIMEOUT
    elif status >= 500 or status in (409, 425):
        # Some servers answer 500 where the model's chat template has no system role.
        parameter = refused_parameter(words, "", request) if _SYSTEM.search(words) else ""
        kind = FailureKind.PARAMETER if parameter == SYSTEM else FailureKind.SERVER
    elif _BLOCKED.search(said):
        kind = FailureKind.BLOCKED
    elif status in (401, 402, 403, 404, 405, 407) or status < 400:
        kind = FailureKind.FATAL
    elif _TOO_LONG.search(said) or status == 413:
        kind = FailureKind.TOO_LONG
    elif _NO_MODEL.search(said) or _NO_KEY.search(said) or _NO_MONEY.search(said):
        kind = FailureKind.FATAL
    elif parameter := refused_parameter(words, named, request):
        kind = FailureKind.PARAMETER
    else:
        kind = FailureKind.OTHER
    used_in, used_out = _usage(body) if isinstance(body, Mapping) else (None, None)
    return Failure(
        kind,
        f"{status}: {shown}" if shown else f"status {status}, without a message",
        status=status,
        retry_after=wait,
        parameter=parameter,
        raw=scrub(raw, secrets),
        tokens_in=used_in,
        tokens_out=used_out,
    )


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Seconds to wait that an answer asks for (``Retry-After`` as seconds or as an HTTP date, RFC 9110,
    section 10.2.3; ``retry-after-ms``); ``None`` where it does not say, or not readably."""
    found = {name.lower(): value for name, value in headers.items()}
    try:
        if "retry-after-ms" in found:
            wait = float(found["retry-after-ms"]) / 1000
            return max(wait, 0.0) if math.isfinite(wait) else None
    except ValueError:
        pass
    value = found.get("retry-after", "").strip()
    if not value:
        return None
    try:
        wait = float(value)
        return max(wait, 0.0) if math.isfinite(wait) else None
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max((until - (now or datetime.now(UTC))).total_seconds(), 0.0)


# Log-probabilities ----------------------------------------------------------------------------------


def label_logprobs(tokens: Sequence[Any], labels: Sequence[str]) -> dict[str, float] | None:
    """Natural log-probabilities of the labels, at the token where the reply's last label begins.

    ``tokens`` is the list ``logprobs.content`` of a choice. A token speaks for a label that it begins
    (case and blanks aside), if it begins no other; what several tokens say for one label is added up. A label without a token
    among the alternatives is left out: it is less probable than the least of them, not impossible.
    ``None`` where no label is found.
    """
    texts = [_text(t.get("token")) if isinstance(t, Mapping) else "" for t in tokens]
    whole = "".join(texts).casefold()
    at = -1
    for label in labels:
        for match in re.finditer(rf"(?<!\w){re.escape(label.casefold())}(?!\w)", whole):
            at = max(at, match.start())
    if at < 0:
        return None
    ends = itertools.accumulate(len(text.casefold()) for text in texts)
    token = tokens[next(i for i, end in enumerate(ends) if end > at)]
    alternatives = {}
    for entry in [*(token.get("top_logprobs") or ()), token]:
        if isinstance(entry, Mapping) and isinstance(entry.get("logprob"), int | float):
            alternatives[_text(entry.get("token"))] = float(entry["logprob"])
    found: dict[str, list[float]] = {}
    for text, logprob in alternatives.items():
        # A token may carry the quote or the blank before the word.
        start = re.sub(r"^\W+", "", text).rstrip().casefold()
        owners = [label for label in labels if start and label.casefold().startswith(start)]
        exact = [label for label in owners if label.casefold() == start]
        if len(exact or owners) == 1:
            found.setdefault((exact or owners)[0], []).append(logprob)
    return {
        label: math.log(math.fsum(math.exp(v) for v in found[label]))
        for label in labels
        if label in found
    } or None


def renormalised(logprobs: Mapping[str, float], labels: Sequence[str]) -> dict[str, float]:
    """Shares in 0–1 over a closed set of labels, from their natural log-probabilities.

    Labels of the set that have none get no share: what is returned adds up to 1 over those that do.
    Empty where none does.
    """
    known = {label: logprobs[label] for label in labels if label in logprobs}
    if not known:
        return {}
    top = max(known.values())
    weights = {label: math.exp(value - top) for label, value in known.items()}
    total = math.fsum(weights.values())
    return {label: weight / total for label, weight in weights.items()}
