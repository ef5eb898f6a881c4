"""The members of one large JSON object, decoded one after the other while the text is still read.

A document of many records is never in memory as a whole, and one that is cut off is read to the cut.
What nobody wants of a record is passed over without being decoded: a value that is decoded takes up to
25 times the memory of its text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TextIO

import numpy as np

from voirdire.readers._logs import Decoder

_BLOCK = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")
_NEAR_END = 16  # characters; an escape that the end of a block cuts is reported before the end
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_IN_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)

WHOLE = (
    8 << 20
)  # characters of a record that is decoded as it is; of a larger one only what is wanted
LARGEST_VALUE = 4 << 20  # characters of one value that is wanted of a large record


class Torn(ValueError):
    """The document ends too early or is no JSON from some place on; the message says which."""


class Large(ValueError):
    """A value is longer than is decoded at once. It was not taken: it may be skipped."""


class JsonText:
    """A text read in blocks; what was decoded is forgotten.

    ``decoder`` marks objects in which a key stands twice, where one is given.
    """

    def __init__(self, stream: TextIO, decoder: Decoder | None = None) -> None:
        self.stream = stream
        self.text = ""
        self.at = 0
        self.gone = 0  # characters forgotten
        self.marking = decoder
        self.decoder = json.JSONDecoder() if decoder is None else decoder.json

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

    def value(self, most: int | None = None) -> Any:
        """The next value; raises :class:`Torn`, and :class:`Large` beyond ``most`` characters."""
        if not self.next():
            raise Torn("it ends too early")
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                early = error.pos >= len(self.text) - _NEAR_END or "nterminated" in error.msg
                if early and most is not None and len(self.text) - self.at >= most:
                    raise Large(f"a value is longer than {most:,} characters") from None
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
            # A number at the end of the block may go on in the next one, even behind "." or "e+".
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number and end > len(self.text) - 3 and self.more():
                continue
            self.at = end
            return value

    # --- passing over -----------------------------------------------------------------------------

    def skip(self) -> None:
        """Pass over the next value without decoding it; raises :class:`Torn` where it does not end.

        Of what is passed over only strings and brackets are looked at, not whether it is JSON.
        """
        first = self.next()
        if first == '"':
            self.at += 1
            self._end_string()
            return
        if first not in ("[", "{"):
            self.value()
            return
        depth = 0
        while True:
            block = self.text[self.at :]
            bare = _STRING.sub("", block)
            open_ = bare.find('"')  # a string that the block cuts
            steps = _steps(bare if open_ < 0 else bare[:open_])
            heights = depth + np.cumsum(steps)
            if len(heights) and heights.min() <= 0:
                self.at += _closed(block, depth)
                return
            depth = int(heights[-1]) if len(heights) else depth
            if open_ >= 0:
                self.at += len(block) - (len(bare) - open_) + 1
                self._end_string()
            else:
                self.at = len(self.text)
            if self.at >= len(self.text) and not self.more():
                raise Torn("it ends too early")

    def _end_string(self) -> None:
        """Go behind the quote that ends the string that the text is in."""
        while True:
            inside = _IN_STRING.match(self.text, self.at)
            self.at = inside.end() if inside else self.at
            if self.at < len(self.text) and self.text[self.at] == '"':
                self.at += 1
                return
            if not self.more():
                raise Torn("it ends too early")

    def items(self, most: int | None = None) -> Iterator[str]:
        """The keys of the object that comes next; the caller takes each value before it goes on."""
        if not self.take("{"):
            raise Torn("it is no JSON object")
        if self.take("}"):
            return
        while True:
            key = self.value(most)
            if not isinstance(key, str) or not self.take(":"):
                raise Torn("it ends too early" if not self.next() else "a key is missing")
            yield key
            if self.take("}"):
                return
            if not self.take(","):
                raise Torn("it ends too early" if not self.next() else "a comma is missing")

    def elements(self) -> Iterator[int]:
        """The numbers of the elements of the list that comes next, from 1; each is taken by the caller."""
        if not self.take("["):
            raise Torn("it is no list")
        if self.take("]"):
            return
        number = 0
        while True:
            number += 1
            yield number
            if self.take("]"):
                return
            if not self.take(","):
                raise Torn("it ends too early" if not self.next() else "a comma is missing")


def _steps(bare: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """+1 for each bracket that opens and −1 for each that closes, in order."""
    codes = np.frombuffer(bare.encode("ascii", "replace"), dtype=np.uint8)
    opens = (codes == ord("[")) | (codes == ord("{"))
    closes = (codes == ord("]")) | (codes == ord("}"))
    found: np.ndarray[Any, np.dtype[np.int64]] = opens.astype(np.int64) - closes
    return np.asarray(found[opens | closes], dtype=np.int64)


def _closed(block: str, depth: int) -> int:
    """Where the value ends that is open ``depth`` levels deep at the begin of a block."""
    for token in _TOKEN.finditer(block):
        text = token.group()
        if text in ("[", "{"):
            depth += 1
        elif text in ("]", "}"):
            depth -= 1
            if depth <= 0:
                return token.end()
    raise Torn("it ends too early")


Keep = Callable[[Any], Any]


def record(text: JsonText, wanted: Mapping[str, Keep | None], needed: Collection[str]) -> Any:
    """The next value, whole where it is short, else an object with the members that are ``wanted``.

    A function instead of ``None`` is given each element of the list (or value of the object) that
    stands under the key, and what it returns is kept, but for ``None``. Values of more than
    :data:`LARGEST_VALUE` characters are passed over. Raises :class:`Large` where one is ``needed`` or
    the value is large and no object, and :class:`Torn`.
    """
    try:
        return text.value(WHOLE)
    except Large:
        if text.next() != "{":
            text.skip()
            raise
    made: dict[str, Any] = {}
    lacking: Large | None = None
    for key in text.items(_BLOCK):
        if key not in wanted:
            text.skip()
            continue
        if text.marking is not None and key in made:
            text.marking.clash = text.marking.clash or key
        keep = wanted[key]
        try:
            if keep is None or text.next() not in ("[", "{"):
                made[key] = text.value(LARGEST_VALUE)
            elif text.next() == "[":
                kept = (keep(_short(text)) for _ in text.elements())
                made[key] = [one for one in kept if one is not None]
            else:
                members = {name: keep(_short(text)) for name in text.items(_BLOCK)}
                made[key] = {name: one for name, one in members.items() if one is not None}
        except Large as error:
            text.skip()
            if key in needed:
                lacking = Large(f"{key}: {error}")
    if lacking is not None:
        raise lacking
    return made


def _short(text: JsonText) -> Any:
    try:
        return text.value(LARGEST_VALUE)
    except Large:
        text.skip()
        return None


def members(
    stream: TextIO,
    apart: Collection[str] | Mapping[str, Callable[[JsonText], Any]],
    *,
    within: Collection[str] = (),
    decoder: Decoder | None = None,
    most: int | None = None,
) -> Iterator[tuple[str, int, Any]]:
    """Each member of the object in ``stream``: its key, 0, and its value.

    Of a list whose key is in ``apart``, each element by itself, numbered from 1; where ``apart`` has a
    function for the key, as that takes it from the text. Of an object whose key is in ``within``, its
    members instead. Raises :class:`Torn` where the text is no JSON from some place on; what came
    before has been given by then. A member of more than ``most`` characters, or an element that such a
    function found too large, is given as the error :class:`Large`.
    """
    yield from _members(JsonText(stream, decoder), apart, within, most)


def _members(
    text: JsonText,
    apart: Collection[str] | Mapping[str, Callable[[JsonText], Any]],
    within: Collection[str],
    most: int | None,
) -> Iterator[tuple[str, int, Any]]:
    for key in text.items(_BLOCK):
        if key in within and text.next() == "{":
            yield from _members(text, apart, (), most)
        elif key in apart and text.next() == "[":
            take = apart[key] if isinstance(apart, Mapping) else JsonText.value
            for i in text.elements():
                try:
                    value = take(text)
                except Large as error:
                    value = error
                yield key, i, value
        else:
            try:
                value = text.value(most)
            except Large as error:
                text.skip()
                value = error
            yield key, 0, value


def elements(stream: TextIO, *, decoder: Decoder | None = None) -> Iterator[tuple[int, Any]]:
    """Each element of the list in ``stream``, numbered from 1; raises :class:`Torn` as :func:`members`."""
    text = JsonText(stream, decoder)
    for i in text.elements():
        yield i, text.value()
