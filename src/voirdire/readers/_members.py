"""The members of one large JSON object, decoded one after the other while the text is still read.

A document of many records is never in memory as a whole, and one that is cut off is read to the cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, TextIO

_BLOCK = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")
_NEAR_END = 16  # characters; an escape that the end of a block cuts is reported before the end


class Torn(ValueError):
    """The document ends too early or is no JSON from some place on; the message says which."""


class _Text:
    """A text read in blocks; what was decoded is forgotten."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.text = ""
        self.at = 0
        self.gone = 0  # characters forgotten
        self.decoder = json.JSONDecoder()

    def more(self) -> bool:
        """Read on. A value that is not whole yet doubles the text, so no value is tried often."""
        block = self.stream.read(max(_BLOCK, len(self.text) - self.at))
        if not block:
            return False
        self.gone += self.at
        self.text = self.text[self.at :] + block
        self.at = 0
        return True

    def next(self) -> str:
        """The next character that is no space, which stays; empty at the end."""
        while True:
            space = _SPACE.match(self.text, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def take(self, character: str) -> bool:
        """Whether the next character is this one; then it is taken."""
        if self.next() != character:
            return False
        self.at += 1
        return True

    def value(self) -> Any:
        """The next value; raises :class:`Torn`."""
        if not self.next():
            raise Torn("it ends too early")
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                early = error.pos >= len(self.text) - _NEAR_END or "nterminated" in error.msg
                if early and self.more():
                    continue
                raise Torn(
                    "it ends too early"
                    if early
                    else f"no JSON from character {self.gone + error.pos + 1:,} on ({error.msg})"
                ) from None
            except RecursionError:
                raise Torn("it is nested too deeply") from None
            except (ValueError, MemoryError) as error:  # a number of thousands of digits
                raise Torn(str(error)) from None
            # A number at the very end of the block may go on in the next one.
            if end == len(self.text) and self.more():
                continue
            self.at = end
            return value


def members(stream: TextIO, apart: Collection[str]) -> Iterator[tuple[str, int, Any]]:
    """Each member of the object in ``stream``: its key, 0, and its value.

    Of a list whose key is in ``apart``, each element by itself, numbered from 1. Raises :class:`Torn`
    where the text is no JSON from some place on; what came before has been given by then.
    """
    text = _Text(stream)
    if not text.take("{"):
        raise Torn("it is no JSON object")
    if text.take("}"):
        return
    while True:
        key = text.value()
        if not isinstance(key, str) or not text.take(":"):
            raise Torn("it ends too early" if not text.next() else "a key is missing")
        if key in apart and text.take("["):
            yield from ((key, i, value) for i, value in _elements(text))
        else:
            yield key, 0, text.value()
        if text.take("}"):
            return
        if not text.take(","):
            raise Torn("it ends too early" if not text.next() else "a comma is missing")


def _elements(text: _Text) -> Iterator[tuple[int, Any]]:
    if text.take("]"):
        return
    number = 0
    while True:
        number += 1
        yield number, text.value()
        if text.take("]"):
            return
        if not text.take(","):
            raise Torn("it ends too early" if not text.next() else "a comma is missing")
