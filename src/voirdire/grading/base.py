"""The contracts of grading: what is asked, what comes back, what is read from it.

One straight line: a :class:`~voirdire.grading.rubric.Rubric` and a response make messages; messages,
model and parameters make a :class:`Request`, whose hash (with phrasing and vote) is the key of the
call; a provider turns a request into a :class:`Reply` or raises :class:`Failure`; the store keeps
either; :func:`voirdire.grading.parse.read` makes a :class:`Reading` of a reply, at any later time too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from voirdire.errors import VoirdireError


@dataclass(frozen=True, slots=True)
class Message:
    """One message to a grader. ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """All that decides an answer, as it goes to the provider.

    ``parameters`` holds only what is sent (temperature, max_tokens, seed, …): a temperature that is
    left out is another request than one of 0. ``reply_schema`` is the JSON schema that the reply is
    asked to follow, where the rubric asks for one. ``labels`` are the verdicts that the rubric knows, for
    providers that restrict or score them. ``response`` and ``prompt`` are the graded text itself and
    what it answers, for providers that do not talk (rules, programs).
    """

    messages: tuple[Message, ...]
    model: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reply_schema: Mapping[str, Any] | None = None
    labels: tuple[str, ...] = ()
    response: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back, as it came.

    ``text`` is the grader's visible text (``None``: the provider gave none), ``reasoning`` what came
    through a side channel and is never a verdict, ``finish`` the provider's reason for stopping, in its
    own word (``stop``, ``length``, ``content_filter``, …), ``refusal`` a refusal that came apart from the
    text, ``tool_arguments`` the arguments of a tool call that carries the verdict. Tokens are ``None``
    where the provider does not say. ``raw`` is the whole body, for the store.
    """

    text: str | None
    reasoning: str = ""
    finish: str = ""
    refusal: str = ""
    tool_arguments: str = ""
    model: str = ""
    fingerprint: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    logprobs: Mapping[str, float] | None = None
    raw: str = ""


class FailureKind(StrEnum):
    """Why a call failed, which decides what happens next."""

    LIMIT = "limit"  # 429: wait and ask again
    SERVER = "server"  # 5xx, broken body, connection lost: ask again
    TIMEOUT = "timeout"  # no answer in time: ask again
    PARAMETER = "parameter"  # the endpoint refuses one parameter: drop or rename it once
    BLOCKED = "blocked"  # the provider's filter stopped the call: an outcome, not asked again
    FATAL = "fatal"  # no key, no such model, wrong address: the run stops at once
    UNREACHABLE = "unreachable"  # no connection: ask again; fatal where the grader never answered
    TOO_LONG = "too_long"  # longer than the grader's window: an outcome, not asked again
    OTHER = "other"  # another refusal: an outcome, not asked again; fatal before any answer


class Failure(VoirdireError):
    """A call that brought no reply. ``parameter`` names what an endpoint refused, where it says so;
    ``retry_after`` is in seconds; tokens are what a failed call used all the same, ``None``: unknown.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        parameter: str = "",
        raw: str = "",
        tokens_in: int | None = None,
        tokens_out: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        self.parameter = parameter
        self.raw = raw
        self.tokens_in = tokens_in
        self.tokens_out = tokens_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request of a call. ``kind`` is ``ok`` or the value of a :class:`FailureKind`, ``status`` that of
    HTTP, where there was one; ``at`` is when it was sent (UTC, ISO 8601), ``seconds`` how long it took,
    ``message`` the provider's words of a failure. Tokens where they were told."""

    at: str
    kind: str = "ok"
    status: int | None = None
    seconds: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read from one reply: an outcome, and the verdicts where it is ``label``.

    ``outcome`` is one of :data:`voirdire.options.OUTCOMES`; ``reason`` says more where it is not
    ``label`` (``no-verdict``, ``ambiguous``, ``off-menu``, ``malformed`` …). ``label`` is the class of a
    categorical rubric. ``lines`` has the verdict of each line of a checklist, ``"1"``, ``"0"`` or
    ``None`` for one without; every line that was asked is there, whatever the outcome. ``unread`` says
    of each line without a verdict whether it is ``missing`` (the reply leaves it out or gives nothing)
    or ``unparsed`` (something stands there that is no yes and no no). ``notes`` are for the log: a line
    that nobody asked for, the code points of a verdict that only looks like a class.
    """

    outcome: str
    reason: str = ""
    label: str | None = None
    lines: Mapping[str, str | None] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One response to grade. ``tags`` are other columns, carried to the labels."""

    id: str
    response: str
    prompt: str = ""
    question: str = ""
    cluster: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderSpec:
    """One grader of a study: a model under one set of parameters at one provider.

    ``parameters`` as they are sent; ``price_in`` and ``price_out`` are per million tokens, ``None``
    where not known; ``window`` is the context in tokens, 0 where not known. ``options`` are the
    provider's own (base URL, file of patterns, command). No secret stands in any of them.
    """

    name: str
    provider: str
    model: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    price_in: float | None = None
    price_out: float | None = None
    window: int = 0
