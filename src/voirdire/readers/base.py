"""The contract of a reader: what it claims to read, and the canonical rows that it yields.

A reader knows one format. It turns a :class:`Source` into :class:`Rows`: a frame of text under the
canonical names, which :func:`voirdire.labels.assemble` then cleans, checks and joins. Readers never
decide what a label means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from voirdire.options import Options
from voirdire.rows import Rows
from voirdire.source import Source

__all__ = ["Claim", "Reader", "Rows", "Source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A reader's word that a source is in its format. ``sure`` beats a claim that is not."""

    format: str
    sure: bool = True
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One format. ``sniff`` looks at name and head only; ``read`` gives all rows of the source, labels
    and verdicts on lines apart where a log holds both.

    ``look`` gives what ``voirdire look`` says of the source beyond the labels themselves.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    sniff: Callable[[Source], Claim | None]
    read: Callable[[Source, Options], Rows | Sequence[Rows]]
    look: Callable[[Source, Options], Sequence[Mapping[str, Any]]] = field(
        default=lambda source, options: ()
    )
