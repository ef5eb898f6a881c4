"""Entries of a zip archive, one at a time: stored, deflate and Zstandard, and of an archive that is cut.

Nothing is ever unpacked to disk. Python's own ``zipfile`` knows Zstandard (method 93) only from 3.14,
and cannot read an archive whose directory, which stands at its end, is gone.

Source: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3 (layout), 4.4.5 (methods), 4.5.3 (ZIP64).
"""

from __future__ import annotations

import io
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

LOCAL, DIRECTORY, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
DESCRIPTOR = b"PK\x07\x08"
_END64, _LOCATOR64 = b"PK\x06\x06", b"PK\x06\x07"
_LONGEST_COMMENT = 65_535
_IN_EXTRA = 0xFFFF_FFFF  # the size or offset stands in the ZIP64 part of the extra field
_BLOCK = 1 << 20
STORED, DEFLATE, ZSTANDARD = 0, 8, 93

MOST_ENTRIES = 1_000_000
LARGEST_ENTRY = 256 << 20  # bytes once decompressed; a larger one is never a sample of a run
# A text of any length may compress well; only what is large as well is a bomb.
LARGE_ENTRY, ENTRY_RATIO = 64 << 20, 200
LARGE_TOTAL, TOTAL_RATIO = 4 << 30, 200


class Unreadable(ValueError):
    """An entry that cannot be read; the message says why."""


class Bomb(Unreadable):
    """The archive grows beyond all measure when it is decompressed: nothing more of it is read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as its header says: its compressed bytes begin after the local header at ``start``.

    ``crc`` is nothing where the header does not say it.
    """

    name: str
    method: int
    flags: int
    crc: int | None
    packed: int
    size: int
    start: int


class Archive:
    """The entries of an archive. ``cut`` says that its directory is gone and they were searched for.

    ``file`` can be sought. Raises :class:`Unreadable` where no entry is found at all.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.bytes = file.seek(0, 2)
        self.given = 0  # bytes decompressed so far
        found = None
        try:
            found = self._directory()
        except (struct.error, OverflowError, OSError, ValueError):
            found = None
        self.cut = found is None
        self.entries = self._searched() if found is None else found
        if not self.entries:
            raise Unreadable("there is no entry in the archive")

    # --- where entries are --------------------------------------------------------------------

    def _directory(self) -> list[Entry] | None:
        tail_at = max(0, self.bytes - _LONGEST_COMMENT - 22)
        self.file.seek(tail_at)
        tail = self.file.read()
        at = tail.rfind(END)
        if at < 0 or len(tail) - at < 22:
            return None
        n, size, offset = struct.unpack_from("<HII", tail, at + 10)
        end = tail_at + at
        if at >= 20 and tail[at - 20 : at - 16] == _LOCATOR64:
            (end,) = struct.unpack_from("<Q", tail, at - 12)
            self.file.seek(end)
            record = self.file.read(56)
            if record[:4] != _END64:
                return None
            n, size, offset = struct.unpack_from("<QQQ", record, 32)
        # Where something was put before the archive, offsets count from the archive's own start.
        before = end - size - offset
        if before < 0 or n > MOST_ENTRIES:
            return None
        self.file.seek(before + offset)
        entries = []
        for _ in range(n):
            fixed = self.file.read(46)
            if fixed[:4] != DIRECTORY:
                return None
            _, flags, method = struct.unpack_from("<HHH", fixed, 6)
            crc, packed, unpacked, named, more, comment = struct.unpack_from("<IIIHHH", fixed, 16)
            (start,) = struct.unpack_from("<I", fixed, 42)
            name = self.file.read(named)
            extra = self.file.read(more)
            self.file.seek(comment, 1)
            unpacked, packed, start = _wide(extra, unpacked, packed, start)
            entries.append(Entry(_text(name), method, flags, crc, packed, unpacked, start + before))
        return entries

    def _searched(self) -> list[Entry]:
        """Entries by their local headers, from the first byte on."""
        entries: list[Entry] = []
        at = self._find((LOCAL,), 0)
        while at is not None and len(entries) < MOST_ENTRIES:
            self.file.seek(at)
            fixed = self.file.read(30)
            if len(fixed) < 30:
                break
            flags, method = struct.unpack_from("<HH", fixed, 6)
            crc, packed, unpacked, named, more = struct.unpack_from("<IIIHH", fixed, 14)
            name = self.file.read(named)
            extra = self.file.read(more)
            data = at + 30 + named + more
            unpacked, packed, _ = _wide(extra, unpacked, packed, 0)
            known: int | None = crc
            if flags & 8 and not packed:  # sizes stand behind the data
                end = self._find((LOCAL, DIRECTORY, DESCRIPTOR), data)
                packed = (self.bytes if end is None else end) - data
                known, unpacked = None, 0
            if data <= self.bytes:
                entries.append(Entry(_text(name), method, flags, known, packed, unpacked, at))
            after = data + packed
            at = self._find((LOCAL,), after if after <= self.bytes else at + 4)
        return entries

    def _find(self, marks: tuple[bytes, ...], start: int) -> int | None:
        self.file.seek(start)
        kept = b""
        at = start
        while block := self.file.read(_BLOCK):
            block = kept + block
            places = [p for mark in marks if (p := block.find(mark)) >= 0]
            if places:
                return at + min(places)
            kept = block[-3:]
            at += len(block) - len(kept)
        return None

    # --- what is in them ----------------------------------------------------------------------

    def content(self, entry: Entry) -> bytes:
        """The bytes of an entry; raises :class:`Unreadable`, and :class:`Bomb` where all must stop."""
        return b"".join(self.pieces(entry))

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        """The bytes of an entry, piece by piece; its checksum is known only after the last one.

        Raises :class:`Unreadable`, and :class:`Bomb` where all must stop.
        """
        if entry.flags & 1:
            raise Unreadable("it is encrypted")
        self.file.seek(entry.start)
        fixed = self.file.read(30)
        if len(fixed) < 30 or fixed[:4] != LOCAL:
            raise Unreadable("it is not where the archive says")
        named, more = struct.unpack_from("<HH", fixed, 26)
        self.file.seek(named + more, 1)
        checked = 0
        pieces = self._unpacked(entry, self._packed(entry.packed))
        while True:
            try:
                piece = next(pieces, None)
            except Unreadable:
                raise
            except Exception as error:  # zlib.error, ZstdError: each has a class of its own
                raise Unreadable(f"its compressed bytes are damaged ({error})") from error
            if piece is None:
                break
            checked = zlib.crc32(piece, checked)
            yield piece
        if entry.crc is not None and checked != entry.crc:
            raise Unreadable("its checksum is wrong, so it is damaged")

    def _packed(self, left: int) -> Iterator[bytes]:
        while left > 0:
            block = self.file.read(min(left, _BLOCK))
            if not block:
                return
            left -= len(block)
            yield block

    def _unpacked(self, entry: Entry, packed: Iterator[bytes]) -> Iterator[bytes]:
        _refuse_huge(entry, entry.size)  # as the archive says: an honest bomb is not even begun
        made = 0
        for piece in _METHODS.get(entry.method, _unknown)(entry, packed):
            made += len(piece)
            self.given += len(piece)
            _refuse_huge(entry, made)
            if self.given > LARGE_TOTAL and self.given > TOTAL_RATIO * self.bytes:
                raise Bomb(
                    f"the archive is more than {TOTAL_RATIO} times as large once decompressed, "
                    "as a zip bomb is; nothing more of it is read"
                )
            yield piece


def _refuse_huge(entry: Entry, size: int) -> None:
    if size > LARGEST_ENTRY:
        raise Unreadable(f"it is larger than {LARGEST_ENTRY >> 20:,} MB once decompressed")
    if size > LARGE_ENTRY and size > ENTRY_RATIO * max(entry.packed, 1):
        raise Unreadable(
            f"it is more than {ENTRY_RATIO:,} times as large once decompressed, as a zip bomb is"
        )


def _wide(extra: bytes, unpacked: int, packed: int, start: int) -> tuple[int, int, int]:
    """Sizes and offset, from the ZIP64 part of the extra field where they do not fit their places."""
    values = [unpacked, packed, start]
    if _IN_EXTRA not in values:
        return unpacked, packed, start
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        at += 4
        if kind == 1:
            for i, value in enumerate(values):
                if value == _IN_EXTRA and at + 8 <= len(extra):
                    (values[i],) = struct.unpack_from("<Q", extra, at)
                    at += 8
            break
        at += length
    return values[0], values[1], values[2]


def _text(name: bytes) -> str:
    return name.decode("utf-8", errors="replace")


def _stored(entry: Entry, packed: Iterator[bytes]) -> Iterator[bytes]:
    n = 0
    for block in packed:
        n += len(block)
        yield block
    if n < entry.packed:
        raise Unreadable("it is cut off")


def _inflated(entry: Entry, packed: Iterator[bytes]) -> Iterator[bytes]:
    codec = zlib.decompressobj(-15)
    for block in packed:
        while block and not codec.eof:
            yield codec.decompress(block, _BLOCK)
            block = codec.unconsumed_tail
        if codec.eof:
            return
    raise Unreadable("it is cut off")


def _of_zstandard(entry: Entry, packed: Iterator[bytes]) -> Iterator[bytes]:
    new = _zstandard()
    codec = new()
    for block in packed:
        while block or not codec.needs_input:
            yield codec.decompress(block, _BLOCK)
            block = b""
            if codec.eof:
                block = codec.unused_data
                if not block.startswith(
                    b"\x28\xb5\x2f\xfd"
                ):  # another frame follows, or nothing does
                    return
                codec = new()
    raise Unreadable("it is cut off")


def _zstandard() -> Callable[[], Any]:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor
    else:
        from backports.zstd import ZstdDecompressor
    made: Callable[[], Any] = ZstdDecompressor
    return made


def _unknown(entry: Entry, packed: Iterator[bytes]) -> Iterator[bytes]:
    raise Unreadable(f"it is compressed by method {entry.method}, which voirdire does not know")


class Stream(io.RawIOBase):
    """Pieces of bytes as a file that is read from begin to end."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces = iter(pieces)
        self.rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.rest:
            piece = next(self.pieces, None)
            if piece is None:
                return 0
            self.rest = piece
        n = min(len(buffer), len(self.rest))
        buffer[:n] = self.rest[:n]
        self.rest = self.rest[n:]
        return n


_METHODS: dict[int, Callable[[Entry, Iterator[bytes]], Iterator[bytes]]] = {
    STORED: _stored,
    DEFLATE: _inflated,
    ZSTANDARD: _of_zstandard,
}
