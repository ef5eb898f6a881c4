"""The contract of a provider: it turns a request into a reply, or says in which way it failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from voirdire.errors import UsageError
from voirdire.grading.base import Failure, FailureKind, GraderSpec, Reply, Request

__all__ = ["Client", "Provider", "Reply", "Request", "known_options", "provider"]


class Client(Protocol):
    """An open connection of one grader. It neither retries nor changes what it is given."""

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """The reply to one request; raises :class:`voirdire.grading.base.Failure`."""

    async def close(self) -> None:
        """Give connections back."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """One way to reach graders. ``open`` makes a client for a grader; it raises
    :class:`~voirdire.grading.base.Failure` of kind ``fatal`` where a key or a package is missing.

    ``talks`` is false for providers that need no messages (rules, programs).
    """

    name: str
    title: str
    open: Callable[[GraderSpec], Client | Awaitable[Client]]
    talks: bool = True


def provider(name: str) -> Provider:
    """The provider of this name, shipped or from another package; raises :class:`UsageError`."""
    from voirdire import plugins

    found = plugins.load("grading.providers", Provider)
    for one in found:
        if one.name == name:
            return one
    raise UsageError(
        f"There is no provider {name!r}. There are: {', '.join(p.name for p in found)}."
    )


def known_options(spec: GraderSpec, names: Collection[str]) -> None:
    """Raise a fatal :class:`Failure` where a grader sets an option that its provider does not have."""
    unknown = sorted(set(spec.options) - set(names))
    if unknown:
        raise Failure(
            FailureKind.FATAL,
            f"The grader {spec.name!r} sets {', '.join(map(repr, unknown))}, which the provider "
            f"{spec.provider!r} does not have. It has: {', '.join(sorted(names)) or 'no options'}.",
        )
