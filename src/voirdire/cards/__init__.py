"""The grader card: the one-page account of a grader that an audit writes, for people and for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voirdire import plugins
from voirdire.cards import checking, making, page
from voirdire.cards.schema import Problem, schema
from voirdire.document import Document
from voirdire.errors import InputError, UsageError
from voirdire.estimate import Estimate
from voirdire.finding import Finding
from voirdire.formats.base import Format
from voirdire.labels import Labels, write_whole
from voirdire.wording import Text, printable

__all__ = ["Card", "Problem", "check", "make", "read", "schema", "suffixes"]

# Formats that make a page to read of a document; the others hold tables of results.
READABLE = ("markdown", "html", "text", "latex", "pdf")
SHOWN = 20
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Card:
    """One grader's card: who it is, what was measured on what, and what it may be used for.

    Made by :meth:`voirdire.Audit.card` or :func:`read`.
    """

    _content: Mapping[str, Any] = field(repr=False)
    _texts: Mapping[str, Text] = field(default_factory=dict, repr=False, compare=False)

    @property
    def grader(self) -> str:
        """The name of the grader."""
        return str(self._content["grader"]["name"])

    @property
    def expires(self) -> str | None:
        """The day on which the card ends, as YYYY-MM-DD; ``None`` where none was set."""
        expires = self._content["expires"]
        return expires if isinstance(expires, str) else None

    def uses(self, status: str) -> tuple[str, ...]:
        """The uses that are ``allowed``, ``not_allowed`` or ``unknown``, in words."""
        return tuple(u["title"] for u in self._content["uses"] if u["status"] == status)

    def record(self) -> dict[str, Any]:
        """The card as plain JSON values, in the form of :func:`schema`."""
        copied: dict[str, Any] = json.loads(_json(self._content))
        return copied

    def document(self) -> Document:
        """The card as a page that every readable format can render."""
        return page.document(self._content, self._texts)

    def write(self, path: str | Path) -> None:
        """Write the card: ``.json`` for programs, or a page to read (``.md``, ``.html``, …).

        A file is only replaced when the new one is whole. Raises :class:`UsageError` for a suffix that
        is none of :func:`suffixes`.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix == ".json":
            write_whole(path, _json(self._content))
            return
        for one in _pages():
            if suffix in one.suffixes:
                write_whole(path, one.render(self.document()))
                return
        raise UsageError(
            f"{path}: no card is written as {suffix or 'a file without suffix'}. "
            f"Use {' '.join(suffixes())}."
        )

    def __repr__(self) -> str:
        numbers = {s: len(self.uses(s)) for s in ("not_allowed", "unknown", "allowed")}
        return (
            f"<Card of {self.grader}: {numbers['not_allowed']} uses not allowed, "
            f"{numbers['unknown']} unknown, {numbers['allowed']} allowed>"
        )


def _pages() -> list[Format]:
    return [f for f in plugins.load("formats", Format) if f.name in READABLE]


def suffixes() -> tuple[str, ...]:
    """The suffixes that a card can be written with."""
    return (".json", *(s for f in _pages() for s in f.suffixes))


def _json(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
    # Half a surrogate pair has no UTF-8 form; as an escape it comes back as it was.
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text).encode("utf-8") + b"\n"


def make(
    labels: Labels,
    grader: str,
    estimates: Sequence[Estimate],
    findings: Iterable[Finding],
    rates: Sequence[tuple[str, Sequence[str]]],
    *,
    date: str = "",
    expires: str = "",
    valid_days: int | None = None,
    version: str,
) -> Card:
    """The card of one grader from what an audit found; see :meth:`voirdire.Audit.card`."""
    content, texts = making.content(
        labels,
        making.grader_of(labels, grader),
        estimates,
        findings,
        rates,
        dated=date,
        expires=expires,
        valid_days=valid_days,
        version=version,
    )
    return Card(content, texts)


def check(path: str | Path, *, on: str = "") -> list[Problem]:
    """Every line of a card file that does not hold; empty for a valid card.

    ``on`` is the day (YYYY-MM-DD) on which the card must not have expired. Raises
    :class:`InputError` where the file cannot be read as a card.
    """
    return _checked(Path(path), on)[1]


def _checked(path: Path, on: str) -> tuple[dict[str, Any], list[Problem]]:
    import voirdire

    content = checking.loaded(path)
    day = making.day(on, "--on") if on else None
    return content, checking.broken(content, version=voirdire.__version__, on=day)


def read(path: str | Path) -> Card:
    """Read a ``.json`` card back; raises :class:`InputError` with every line that does not hold."""
    path = Path(path)
    content, found = _checked(path, "")
    if found:
        more = f"\n… and {len(found) - SHOWN:,} more." if len(found) > SHOWN else ""
        raise InputError(
            f"{printable(path.name)}: this card does not hold:\n"
            + "\n".join(f"{p.path} {printable(p.message)}" for p in found[:SHOWN])
            + more
        )
    return Card(content)
