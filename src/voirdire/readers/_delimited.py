"""Comma-, semicolon-, tab- and bar-separated text as a raw table."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice

import polars as pl

from voirdire.errors import InputError
from voirdire.readers._raw import Problems, RawTable, blank_to_null, shown_name, unique_names
from voirdire.readers._text import encoding_of, head_text, open_text, refuse_binary, undecodable
from voirdire.rows import CANONICAL
from voirdire.source import HEAD_BYTES, Source
from voirdire.wording import Text, listed, printable, say

DELIMITERS = (",", "\t", ";", "|")
GUARDED = ("=", "+", "-", "@", "\t", "\r", "'")
CHUNK_ROWS = 10_000
_DELIMITER_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}


@contextmanager
def _long_cells() -> Iterator[None]:
    """Lift the csv module's limit of 131,072 letters a cell while a table is read."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def sniffed_delimiter(head: str, *, whole: bool, suffix: str = "") -> str:
    """The delimiter of a table, judged by its header and by whether the first rows fit it."""
    best, best_score = "", (False, 1)
    for delimiter in DELIMITERS:
        widths: list[int] = []
        try:
            reader = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
            widths = [len(row) for row in islice(reader, 50) if row]
        except csv.Error:
            pass  # a cell beyond the limit: the rows before it are enough
        if not whole and 1 < len(widths) < 50:
            widths.pop()  # the head may end in the middle of a row
        if not widths or widths[0] < 2:
            continue
        if delimiter == "\t" and suffix == ".tsv":
            return delimiter
        score = (len(set(widths)) == 1, widths[0])
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _records(source: Source, encoding: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line on which it starts; the slow way, for finding places."""
    with _long_cells(), open_text(source, encoding, newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        line = 1
        for record in reader:
            yield line, record
            line = reader.line_num + 1


def _is_blank(record: list[str]) -> bool:
    return not record or (len(record) == 1 and not record[0].strip())


def _broken_quotes(source: Source, encoding: str, delimiter: str, error: csv.Error) -> InputError:
    start = 1
    end = 1
    with _long_cells(), open_text(source, encoding, newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        try:
            for _ in reader:
                start = reader.line_num + 1
        except csv.Error:
            end = reader.line_num
    name = printable(source.name)
    if "unexpected end" in str(error):
        return InputError(
            f"{name}, line {start:,}: a quotation mark opens a cell here, and it is never closed. "
            "Close it, or double a quotation mark that belongs to the text."
        )
    began = f" that began on line {start:,}" if start < end else ""
    return InputError(
        f"{name}, line {end:,}: text follows the closing quotation mark of a cell{began}. "
        "Double a quotation mark that belongs to the text, or close the cell where it ends."
    )


def read_delimited(source: Source, asked_encoding: str) -> RawTable:
    """Read a CSV or TSV file into text cells; every ragged row is reported, with its line."""
    if not asked_encoding:
        refuse_binary(source)
    encoding = encoding_of(source, asked_encoding)
    name = printable(source.name)
    head = head_text(source, encoding)
    if not head.strip("\ufeff \t\r\n"):
        raise InputError(f"{name}: the file is empty.")
    whole = len(source.head) < HEAD_BYTES
    delimiter = sniffed_delimiter(head, whole=whole, suffix=source.suffix) or ","

    chunks: list[pl.DataFrame] = []
    header: list[str] = []
    blanks = records = 0
    problems = Problems(source.name)
    try:
        with _long_cells(), open_text(source, encoding, newline="") as stream:
            reader = csv.reader(stream, delimiter=delimiter, strict=True)
            for record in reader:
                records += 1
                if not _is_blank(record):
                    header = [record[0].removeprefix("\ufeff"), *record[1:]]
                    break
            skipped_first = records - 1
            width = len(header)
            keys = [str(i) for i in range(width)]
            while chunk := list(islice(reader, CHUNK_ROWS)):
                records += len(chunk)
                if set(map(len, chunk)) != {width}:
                    kept = [
                        r for r in chunk if len(r) == width and (width == 1 or not _is_blank(r))
                    ]
                    blanks += sum(1 for r in chunk if _is_blank(r) and len(r) != width)
                    if len(kept) < len(chunk):
                        ragged = [r for r in chunk if len(r) != width and not _is_blank(r)]
                        problems.add_unseen(len(ragged))
                    chunk = kept
                if chunk:
                    columns = zip(*chunk, strict=True)
                    chunks.append(
                        blank_to_null(
                            pl.DataFrame(
                                [
                                    pl.Series(k, c, dtype=pl.String)
                                    for k, c in zip(keys, columns, strict=True)
                                ]
                            )
                        )
                    )
            lines = reader.line_num
    except UnicodeError as error:
        raise undecodable(source, encoding) from error
    except csv.Error as error:
        raise _broken_quotes(source, encoding, delimiter, error) from error

    if problems.count:
        _report_ragged(source, encoding, delimiter, width)
    if not chunks:
        raise InputError(
            f"{name}: the table has a header ({', '.join(shown_name(h) for h in header[:8])}) "
            "and no rows."
        )
    frame = pl.concat(chunks).rechunk()
    own = tuple(header[: len(CANONICAL)]) == CANONICAL
    if own:
        header = [_unguarded(cell) for cell in header]
        frame = _without_guard(frame)
    else:
        header = [cell.strip() for cell in header]
    names, ambiguous, unnamed = unique_names(header)
    frame.columns = names
    frame, notices = _named(frame, ambiguous, unnamed)
    plain = lines == records and not blanks and not skipped_first
    return RawTable(
        name=source.name,
        stem=source.stem,
        format="tsv" if delimiter == "\t" else "csv",
        frame=frame,
        line=_first_lines if plain else _line_finder(source, encoding, delimiter, width),
        own=own,
        ambiguous=ambiguous,
        notices=notices,
    )


def _named(
    frame: pl.DataFrame, ambiguous: dict[str, tuple[str, ...]], unnamed: list[str]
) -> tuple[pl.DataFrame, tuple[Text, ...]]:
    """The frame without nameless blank columns, and a notice for each name that we made up."""
    # A delimiter at the end of every row makes a column with neither name nor content.
    hollow = [c for c in unnamed if frame[c].null_count() == frame.height]
    frame = frame.drop(hollow)
    notices: list[Text] = []
    left = [c for c in unnamed if c not in hollow]
    if left:
        notices.append(say("A column without a name is kept as {names}.", names=listed(left)))
    for columns in ambiguous.values():
        names = listed(columns)
        notices.append(
            say("{n} columns have one name; they are kept as {names}.", n=len(columns), names=names)
        )
    return frame, tuple(notices)


def _report_ragged(source: Source, encoding: str, delimiter: str, width: int) -> None:
    problems = Problems(source.name)
    header_seen = False
    for line, record in _records(source, encoding, delimiter):
        if _is_blank(record) and len(record) != width:
            continue
        if not header_seen:
            header_seen = not _is_blank(record)
            continue
        if len(record) != width:
            cells = "cell" if len(record) == 1 else "cells"
            problems.add(line, f"{len(record):,} {cells} where the header has {width:,}")
    word = _DELIMITER_NAMES[delimiter]
    problems.raise_if_any(
        f"The cells are separated by {word}s: put a cell that contains one in quotation marks, "
        "and give every row all its cells."
    )


def _first_lines(row: int) -> int:
    return row + 2


def _line_finder(source: Source, encoding: str, delimiter: str, width: int) -> Callable[[int], int]:
    """The line of a row, found by reading the file once more when it is first asked for."""

    @cache
    def starts() -> array[int]:
        found = array("Q")
        header_seen = False
        for line, record in _records(source, encoding, delimiter):
            if _is_blank(record) and (len(record) != width or not header_seen):
                continue
            if header_seen:
                found.append(line)
            header_seen = True
        return found

    return lambda row: starts()[row]


def _unguarded(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(GUARDED) else cell


def _without_guard(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame without the ``'`` that our own CSV puts before cells a spreadsheet would run."""
    text = pl.col(pl.String)
    guarded = text.str.contains(r"^'[=+\-@\t\r']")
    return frame.with_columns(pl.when(guarded).then(text.str.slice(1)).otherwise(text))
