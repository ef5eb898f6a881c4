"""The records of a JSON document, one after the other: a torn document is read to the tear.

What nobody wants of the document is passed over, and no more than one record is in memory.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from voirdire.errors import InputError
from voirdire.options import Options
from voirdire.readers._logs import (
    LONGEST_KEY,
    TWICE,
    Decoder,
    Trouble,
    note,
    note_long_keys,
    stands_twice,
)
from voirdire.readers._members import JsonText, Large, Torn
from voirdire.readers._text import encoding_of, open_bytes, undecodable
from voirdire.source import Source
from voirdire.wording import printable

LARGEST = 64 << 20  # characters of one record
_BLOCK = 1 << 20

Path = tuple[str, ...]


def records(
    source: Source,
    options: Options,
    trouble: Trouble,
    *,
    lists: Collection[Path],
    wanted: Collection[Path] = (),
) -> Iterator[tuple[Path, int, Any]]:
    """The elements of the ``lists``, numbered from 1 in each, and the ``wanted`` members with number 0.

    Both are paths of keys from the top of the document; the empty path is a document that is a list.
    Where a list begins it is given itself, empty and with number 0; what is no list gives nothing. What cannot be read of a record, or behind a tear,
    goes to ``trouble``. Raises :class:`InputError` where a document is torn before its first
    record, where one of these keys stands twice, and for bytes that are no text.
    """
    source.oddities.clear()
    encoding = encoding_of(source, options.encoding)
    decoder = Decoder()
    n = 0
    with io.TextIOWrapper(
        open_bytes(source), encoding=encoding, errors=_errors(source, encoding)
    ) as stream:
        text = JsonText(stream, decoder)
        if text.next() == "\ufeff":
            text.at += 1
        walk = _Walk(source, text, decoder, trouble, frozenset(lists), frozenset(wanted))
        try:
            for found in walk.document():
                n += found[1] > 0
                yield found
        except Torn as error:
            if not n:
                raise InputError(
                    f"{printable(source.name)}: no JSON that can be read: {error}, and no whole "
                    f"{trouble.what} stands before that."
                ) from error
            trouble.add(
                f"after {trouble.what} {n:,}", f"{error}; nothing behind that place is read"
            )


def to_the_tear(
    source: Source,
    options: Options,
    trouble: Trouble,
    *,
    lists: Collection[Path],
    wanted: Collection[Path] = (),
) -> Any:
    """A document with what :func:`records` gives of it and nothing else; a torn one to the tear."""
    top: Any = {}
    found: dict[Path, list[Any]] = {}
    for path, at, value in records(source, options, trouble, lists=lists, wanted=wanted):
        if at:
            found[path].append(value)
            continue
        if path in lists:
            found[path] = value
        if not path:
            top = value
            continue
        inside = top
        for key in path[:-1]:
            inside = inside.setdefault(key, {})
        inside[path[-1]] = value
    return top


@dataclass(frozen=True, slots=True)
class _Walk:
    """One document on its way to records."""

    source: Source
    text: JsonText
    decoder: Decoder
    trouble: Trouble
    lists: frozenset[Path]
    wanted: frozenset[Path]

    def document(self) -> Iterator[tuple[Path, int, Any]]:
        if self.text.next() == "[" and () in self.lists:
            yield from self.elements(())
        else:
            yield from self.members(())
        if self.text.next():
            raise Torn("its end stands before the end of the file")

    def members(self, path: Path) -> Iterator[tuple[Path, int, Any]]:
        seen: set[str] = set()
        for key in self.text.items(LARGEST):
            here = (*path, key)
            known = self.lists | self.wanted
            below = any(len(one) > len(here) and one[: len(here)] == here for one in known)
            if not below and here not in known:
                self.text.skip()
                continue
            if key in seen:
                raise InputError(
                    f"{printable(self.source.name)}: the key {printable(key)} stands there twice, and "
                    "nobody knows which one counts. Take one of them out."
                )
            seen.add(key)
            if here in self.lists and self.text.next() == "[":
                yield from self.elements(here)
            elif below and self.text.next() == "{":
                yield from self.members(here)
            elif here in self.wanted:
                yield from self.value(here, 0, ".".join(here))
            else:
                self.text.skip()

    def elements(self, path: Path) -> Iterator[tuple[Path, int, Any]]:
        yield path, 0, []
        for i in self.text.elements():
            yield from self.value(path, i, f"{self.trouble.what} {i:,}")

    def value(self, path: Path, i: int, place: str) -> Iterator[tuple[Path, int, Any]]:
        text, decoder = self.text, self.decoder
        decoder.clash, decoder.again = "", 0
        text.next()
        before = text.gone + text.at
        try:
            value = text.value(LARGEST)
        except Large as error:
            text.skip()
            self.trouble.add(place, str(error))
            return
        if (length := text.gone + text.at - before) > LONGEST_KEY:
            note_long_keys(self.source, text.text[text.at - length : text.at], place)
        if decoder.clash:
            self.trouble.add(place, stands_twice(decoder.clash))
            return
        if decoder.again:
            note(self.source, TWICE, place, decoder.again)
        yield path, i, value


def _errors(source: Source, encoding: str) -> str:
    """How bytes that are no text are taken. A character that the end cuts in two is left out.

    Raises :class:`InputError` for any other.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    with open_bytes(source) as stream:
        try:
            while block := stream.read(_BLOCK):
                decoder.decode(block)
        except UnicodeError as error:
            raise undecodable(source, encoding) from error
    try:
        decoder.decode(b"", final=True)
    except UnicodeError:
        return "ignore"
    return "strict"
