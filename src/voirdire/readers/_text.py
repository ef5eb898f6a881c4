"""How the bytes of a file become text: byte order marks, encodings, and what is no text at all."""

from __future__ import annotations

import codecs
import difflib
import io
from collections.abc import Iterator
from encodings.aliases import aliases
from typing import BinaryIO, TextIO

from voirdire.errors import InputError, UsageError, unreadable
from voirdire.source import Source
from voirdire.wording import plural, printable

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDE_MARKS = tuple(mark for mark, name in _MARKS if name != "utf-8-sig")
_BINARY = (
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or an Excel workbook"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstandard archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x80\x04\x95", "a Python pickle"),
)


def described_binary(head: bytes) -> str:
    """What a content is if it is no text, in words (``"a PNG picture"``); empty for text."""
    for magic, what in _BINARY:
        if head.startswith(magic):
            return what
    if head.startswith(tuple(mark for mark, _ in _MARKS)):
        return ""
    if head.count(0) > len(head) / 20:
        # Latin text in UTF-16 has a zero in every second byte; that can be read once it is named.
        half = len(head) / 2
        if head[1::2].count(0) > 0.8 * half and head[::2].count(0) < 0.1 * half:
            return "text in UTF-16 without its mark (read it with --encoding utf-16-le)"
        if head[::2].count(0) > 0.8 * half and head[1::2].count(0) < 0.1 * half:
            return "text in UTF-16 without its mark (read it with --encoding utf-16-be)"
        return "binary data"
    return ""


def refuse_binary(source: Source) -> None:
    """Raise an :class:`InputError` if the source is clearly no text."""
    what = described_binary(source.head)
    if what:
        raise InputError(
            f"{printable(source.name)}: this is {what}, not a table. "
            "Tables are read from CSV, TSV, JSON, JSONL and Parquet."
        )


def encoding_of(source: Source, asked: str) -> str:
    """The encoding to read a source in: the one asked for, else its byte order mark's, else UTF-8."""
    if asked:
        try:
            name = codecs.lookup(asked).name
            "".encode(name)  # codecs such as base64 are known, and turn no text into bytes
            codecs.getincrementaldecoder(name)
        except (LookupError, ValueError) as error:
            wanted = asked.lower().replace("-", "_")
            near = difflib.get_close_matches(wanted, [*aliases, *aliases.values()], n=1)
            hint = f" Did you mean {near[0]}?" if near else " Common ones: utf-8, cp1252, latin-1."
            raise UsageError(f"--encoding {printable(asked)}: no such encoding.{hint}") from error
        if name in ("utf-16", "utf-32") and not source.head.startswith(_WIDE_MARKS):
            name += "-le"  # without a mark, the order of nearly all files
        return "utf-8-sig" if name == "utf-8" else name
    for mark, name in _MARKS:
        if source.head.startswith(mark):
            return name
    return "utf-8"


def open_bytes(source: Source) -> BinaryIO:
    """The source as a stream of bytes."""
    if source.content is not None or source.path is None:
        return io.BytesIO(source.data)
    try:
        return source.path.open("rb")
    except OSError as error:
        raise InputError(unreadable(source.path, error, name=printable(source.name))) from error


def open_text(source: Source, encoding: str, *, newline: str) -> TextIO:
    """The source as a stream of text whose line ends are left as they are."""
    return io.TextIOWrapper(open_bytes(source), encoding=encoding, newline=newline)


def all_text(source: Source, encoding: str) -> str:
    """The whole source as text."""
    try:
        return source.data.decode(encoding)
    except UnicodeError as error:
        raise undecodable(source, encoding) from error


def head_text(source: Source, encoding: str) -> str:
    """The first part of a source as text; a character cut in two at its end is left out."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    try:
        return decoder.decode(source.head)
    except UnicodeError as error:
        raise undecodable(source, encoding) from error


def _bad_lines(source: Source, encoding: str) -> Iterator[tuple[int, int]]:
    """Each line that cannot be decoded: its number and its first bad byte."""
    if encoding in ("utf-8", "utf-8-sig", "ascii", "cp1252"):
        line = 1
        with open_bytes(source) as stream:
            for raw in stream:
                try:
                    raw.decode(encoding)
                except UnicodeDecodeError as error:
                    before = raw[: error.start]
                    yield line + before.count(b"\r"), raw[error.start]
                # A carriage return alone ends a line too, as in files of old spreadsheets.
                line += 1 + raw.count(b"\r") - raw.count(b"\r\n")
        return
    try:
        source.data.decode(encoding)
    except UnicodeDecodeError as error:
        text = source.data[: error.start].decode(encoding, errors="replace")
        yield text.count("\n") + 1, source.data[error.start]


def undecodable(source: Source, encoding: str) -> InputError:
    """The error for bytes that are not in the encoding: where, and which encodings would read them."""
    bad = _bad_lines(source, encoding)
    line, byte = next(bad, (1, 0))
    further = sum(1 for _ in bad)
    known = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "utf-16": "UTF-16"}.get(encoding, encoding)
    start = f"{printable(source.name)}, line {line:,}: byte 0x{byte:02x} is not {known}"
    start += f" (so are bytes on {plural(further, 'further line')})." if further else "."
    if encoding not in ("utf-8", "utf-8-sig"):
        return InputError(f"{start} Name the file's encoding with --encoding.")
    if next(_bad_lines(source, "cp1252"), None) is None:
        return InputError(
            f"{start} If the file is in another encoding, name it: --encoding cp1252."
        )
    return InputError(
        f"{start} The file is neither UTF-8 nor cp1252 throughout; it may mix encodings. "
        "If you know its encoding, name it with --encoding. To read it anyway: --encoding latin-1 "
        "or --encoding mac_roman take any byte, and letters beyond ASCII may come out wrong."
    )
