"""JSON and JSON Lines as a raw table."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import polars as pl

from voirdire.errors import InputError
from voirdire.readers._raw import (
    Problems,
    RawTable,
    blank_to_null,
    shown_name,
    unique_names,
)
from voirdire.readers._text import all_text, encoding_of, open_text, refuse_binary, undecodable
from voirdire.source import Source
from voirdire.wording import Name, Text, listed, printable, say

CHUNK_ROWS = 10_000
_SPACE = re.compile(r"[ \t\n\r]*")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_TORN = "the file ends in the middle of this record: it is torn, as after a crash or a broken copy"


class Number(str):
    """A JSON number, kept as it is spelled: ``1.0`` stays ``1.0``, and no number is too long."""

    __slots__ = ()


class _Decoder(json.JSONDecoder):
    """A decoder that keeps numbers as spelled, takes NaN as blank and notes keys given twice."""

    def __init__(self) -> None:
        self.twice: list[str] = []
        super().__init__(
            parse_int=Number,
            parse_float=Number,
            parse_constant=lambda word: None if word == "NaN" else Number(word),
            object_pairs_hook=self._object,
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    self.twice.append(key)
                seen.add(key)
        return content

    def keys_given_twice(self) -> list[str]:
        keys, self.twice = self.twice, []
        return keys


_quoted = json.JSONEncoder(ensure_ascii=False).encode
_FIXED = {None: "null", True: "true", False: "false"}


def _compact(value: Any) -> str:
    """A nested value as compact JSON text."""
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is dict:
        inner = [f"{_quoted(str(k))}:{_compact(v)}" for k, v in value.items()]
        return "{" + ",".join(inner) + "}"
    if kind is list:
        return "[" + ",".join(map(_compact, value)) + "]"
    if kind is Number:
        return str(value)
    return _FIXED[value]


def cell_text(value: Any) -> str | None:
    """The text of one JSON value; null is blank."""
    if value is None:
        return None
    if isinstance(value, str):
        return str(value)
    if value is True:
        return "true"
    if value is False:
        return "false"
    return _compact(value)


@dataclass
class _Columns:
    """Records gathered into text columns, chunk by chunk."""

    chunks: list[pl.DataFrame] = field(default_factory=list)
    numbers: list[pl.DataFrame] = field(default_factory=list)
    halves: int = 0

    def add(self, records: Sequence[dict[str, Any]]) -> None:
        names = list(dict.fromkeys(key for record in records for key in record))
        self.add_columns({n: [record.get(n) for record in records] for n in names}, len(records))

    def add_columns(self, columns: dict[str, list[Any]], height: int) -> None:
        texts, numbers = [], []
        for name, values in columns.items():
            name = self._whole(name)
            kinds = set(map(type, values))
            if not kinds <= {str, type(None)}:
                if Number in kinds:
                    flags = [type(v) is Number for v in values]
                    numbers.append(pl.Series(name, flags, dtype=pl.Boolean))
                values = [cell_text(v) for v in values]
            try:
                series = pl.Series(name, values, dtype=pl.String)
            except UnicodeEncodeError:
                values = [v if v is None else self._whole(v) for v in values]
                series = pl.Series(name, values, dtype=pl.String)
            texts.append(series)
        if not texts:
            texts = [pl.Series("", [None] * height, dtype=pl.String)]
        if not numbers:
            numbers = [pl.Series(texts[0].name, [None] * height, dtype=pl.Boolean)]
        self.chunks.append(blank_to_null(pl.DataFrame(texts)))
        self.numbers.append(pl.DataFrame(numbers))

    def _whole(self, text: str) -> str:
        """The text with each half of a surrogate pair that lost its other half replaced."""
        whole, n = _HALF_CHARACTER.subn("\ufffd", text)
        self.halves += n
        return whole

    def table(self, source: Source, format: str, line: Sequence[int]) -> RawTable:
        frame = pl.concat(self.chunks, how="diagonal").rechunk()
        numbers = pl.concat(self.numbers, how="diagonal")
        if "" in frame.columns and frame[""].null_count() == frame.height:
            frame = frame.drop("")
        mixed: dict[str, tuple[int, str]] = {}
        for name in numbers.columns:
            if name not in frame.columns:
                continue
            flags = numbers[name].fill_null(False)
            as_text = frame[name].filter(~flags).drop_nulls()
            both = frame[name].filter(flags).unique(maintain_order=True)
            both = both.filter(both.is_in(as_text.unique().implode()))
            if both.len():
                mixed[name] = (both.len(), both[0])
        names, _, unnamed = unique_names(frame.columns)
        frame.columns = names
        notices: list[Text] = []
        if unnamed:
            notices.append(
                say("A column without a name is kept as {names}.", names=listed(unnamed))
            )
        if self.halves:
            notices.append(
                say(
                    "{n} half characters (lone surrogates) were read as U+FFFD, "
                    "as they cannot be written.",
                    n=self.halves,
                )
            )
        return RawTable(
            name=source.name,
            stem=source.stem,
            format=format,
            frame=frame,
            line=lambda row: line[row],
            mixed=mixed,
            notices=tuple(notices),
        )


def looks_like_lines(head: str, *, whole: bool) -> bool:
    """Whether text that starts with ``{`` is one JSON object a line, rather than one document."""
    lines = [line for line in head.split("\n") if line.strip()]
    if len(lines) < 2:
        return False
    try:
        first = json.loads(lines[0])
    except (ValueError, RecursionError):
        # A broken first line of a file of records: the second one decides.
        try:
            return len(lines) > 2 and isinstance(json.loads(lines[1]), dict)
        except (ValueError, RecursionError):
            return False
    return isinstance(first, dict)


def read_json_lines(source: Source, asked_encoding: str) -> RawTable:
    """Read one JSON object a line; every line that is none is reported, with its number."""
    if not asked_encoding:
        refuse_binary(source)
    encoding = encoding_of(source, asked_encoding)
    problems = Problems(source.name)
    decoder = _Decoder()
    columns = _Columns()
    lines: array[int] = array("Q")
    pending: list[tuple[int, str, str]] = []  # a broken line waits: only the last one can be torn

    def settle(torn: bool) -> None:
        for number, what, _ in pending:
            problems.add(number, _TORN if torn else what)
        pending.clear()

    def records() -> Iterator[dict[str, Any]]:
        # Lines end with a line feed only: U+2028, U+0085 and the like are part of the text.
        with open_text(source, encoding, newline="\n") as stream:
            for number, text in enumerate(stream, start=1):
                if number == 1:
                    text = text.removeprefix("\ufeff")
                if not text.strip():
                    continue
                settle(torn=False)
                try:
                    record = decoder.decode(text)
                except json.JSONDecodeError as error:
                    pending.append((number, f"no JSON: {_said(error)}", text))
                    continue
                except RecursionError:
                    problems.add(number, "lists or objects are nested too deeply to be read")
                    continue
                twice = decoder.keys_given_twice()
                if not isinstance(record, dict):
                    problems.add(number, f"{_kind(record)} where an object {{…}} is needed")
                elif twice:
                    keys = ", ".join(f'"{shown_name(k)}"' for k in dict.fromkeys(twice))
                    problems.add(number, f"the key {keys} stands twice in one object")
                else:
                    lines.append(number)
                    yield record
            if pending:
                settle(torn=not pending[-1][2].endswith("\n"))

    stream = records()
    try:
        while chunk := list(islice(stream, CHUNK_ROWS)):
            columns.add(chunk)
    except UnicodeError as error:
        raise undecodable(source, encoding) from error
    except RecursionError as error:
        raise _too_deep(source) from error
    problems.raise_if_any("Mend or remove what is named here.")
    if not columns.chunks:
        raise InputError(f"{printable(source.name)}: the file is empty.")
    return columns.table(source, "jsonl", lines)


def _said(error: json.JSONDecodeError) -> str:
    return f"{error.msg[:1].lower()}{error.msg[1:]} at column {error.colno:,}"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Number):
        return "a number"
    kinds = {bool: "true or false", str: "text", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a value")


def _too_deep(source: Source) -> InputError:
    return InputError(
        f"{printable(source.name)}: lists or objects are nested too deeply to be read as a table."
    )


class _Document:
    """A JSON text read piece by piece, so that each record's line is known."""

    def __init__(self, source: Source, text: str) -> None:
        self.source = source
        self.text = text
        self.at = 0
        self.decoder = _Decoder()
        self.problems = Problems(source.name)
        self._counted = 0
        self._line = 1

    def error(self, message: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(message, self.text, self.at)

    def peek(self) -> str:
        space = _SPACE.match(self.text, self.at)
        assert space is not None
        self.at = space.end()
        return self.text[self.at : self.at + 1]

    def take(self, char: str) -> None:
        if self.peek() != char:
            raise self.error(f"'{char}' is missing")
        self.at += 1

    def line(self) -> int:
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def value(self) -> Any:
        self.peek()
        line = self.line()
        value, self.at = self.decoder.raw_decode(self.text, self.at)
        twice = self.decoder.keys_given_twice()
        if twice:
            keys = ", ".join(f'"{shown_name(k)}"' for k in dict.fromkeys(twice))
            self.problems.add(line, f"the key {keys} stands twice in the object that begins here")
        return value

    def items(self) -> tuple[list[Any], array[int]]:
        """The items of a list, with the line on which each begins."""
        items: list[Any] = []
        lines: array[int] = array("Q")
        self.take("[")
        if self.peek() == "]":
            self.at += 1
            return items, lines
        while True:
            self.peek()
            lines.append(self.line())
            items.append(self.value())
            if self.peek() == "]":
                self.at += 1
                return items, lines
            self.take(",")

    def members(self) -> dict[str, tuple[Any, array[int]]]:
        """The members of an object; the items of a list come with their lines."""
        members: dict[str, tuple[Any, array[int]]] = {}
        self.take("{")
        if self.peek() == "}":
            self.at += 1
            return members
        while True:
            if self.peek() != '"':
                raise self.error("a key in quotation marks is missing")
            line = self.line()
            key = self.value()
            self.take(":")
            if key in members:
                self.problems.add(line, f'the key "{shown_name(key)}" stands twice in one object')
            if self.peek() == "[":
                members[key] = self.items()
            else:
                start = self.line()
                members[key] = (self.value(), array("Q", [start]))
            if self.peek() == "}":
                self.at += 1
                return members
            self.take(",")

    def end(self) -> None:
        if self.peek():
            raise self.error("the document has ended, and more text follows")


def read_json(source: Source, asked_encoding: str) -> RawTable:
    """Read a JSON document: a list of objects, an object of columns, or an object with such a list."""
    if not asked_encoding:
        refuse_binary(source)
    document = _Document(source, all_text(source, encoding_of(source, asked_encoding)))
    name = printable(source.name)
    if document.text.startswith("\ufeff"):
        document.at = 1
    try:
        first = document.peek()
        if not first:
            raise InputError(f"{name}: the file is empty.")
        if first == "[":
            items, lines = document.items()
            document.end()
            document.problems.raise_if_any("Give each key once.")
            return _from_objects(source, items, lines)
        if first != "{":
            value = document.value()
            document.end()
            raise InputError(
                f"{name}: the document is {_kind(value)}, and a table is a list of objects."
            )
        members = document.members()
        document.end()
        document.problems.raise_if_any("Give each key once.")
        return _from_members(source, members)
    except json.JSONDecodeError as error:
        if not document.text[error.pos :].strip():
            what = "the document ends too early: it is torn, as after a crash or a broken copy"
        else:
            what = f"no JSON: {_said(error)}"
        raise InputError(f"{name}, line {error.lineno:,}: {what}.") from error
    except RecursionError as error:
        raise _too_deep(source) from error


def _from_objects(
    source: Source, items: list[Any], lines: Sequence[int], notices: tuple[Text, ...] = ()
) -> RawTable:
    name = printable(source.name)
    if not items:
        raise InputError(f"{name}: the list is empty, so there are no rows.")
    problems = Problems(source.name)
    for item, line in zip(items, lines, strict=True):
        if not isinstance(item, dict):
            problems.add(line, f"{_kind(item)} where an object {{…}} is needed")
    problems.raise_if_any("A table is a list of objects, one a row.")
    columns = _Columns()
    for start in range(0, len(items), CHUNK_ROWS):
        columns.add(items[start : start + CHUNK_ROWS])
    table = columns.table(source, "json", lines)
    return _with_notices(table, notices)


def _with_notices(table: RawTable, notices: tuple[Text, ...]) -> RawTable:
    if not notices:
        return table
    return replace(table, notices=(*table.notices, *notices))


def _from_members(source: Source, members: dict[str, tuple[Any, array[int]]]) -> RawTable:
    name = printable(source.name)
    values = {key: value for key, (value, _) in members.items()}
    if not values:
        raise InputError(f"{name}: the object is empty, so there are no rows.")
    if {"columns", "data"} <= set(values) <= {"columns", "data", "index"}:
        columns, data = values["columns"], values["data"]
        if _all_lists(data) and isinstance(columns, list) and {len(columns)} == {*map(len, data)}:
            heads = [cell_text(c) or "" for c in columns]
            records = [dict(zip(heads, row, strict=True)) for row in data]
            return _from_objects(source, records, members["data"][1])
    of_objects = [
        k for k, v in values.items() if isinstance(v, list) and v and isinstance(v[0], dict)
    ]
    if len(of_objects) == 1:
        key = of_objects[0]
        others = [k for k in values if k != key]
        notices: tuple[Text, ...] = ()
        if others:
            notices = (
                say(
                    "The rows are the list {key}; the rest of the document ({others}) is left out.",
                    key=Name(key),
                    others=listed(others),
                ),
            )
        return _from_objects(source, values[key], members[key][1], notices)
    if len(of_objects) > 1:
        raise InputError(
            f"{name}: the document has several lists of objects "
            f"({', '.join(shown_name(k) for k in of_objects)}), and any of them could be the table. "
            "Save the one that you mean in a file of its own."
        )
    if all(isinstance(v, list) for v in values.values()):
        heights = {key: len(v) for key, v in values.items()}
        if len(set(heights.values())) > 1:
            seen = ", ".join(f"{shown_name(k)} {n:,}" for k, n in list(heights.items())[:20])
            raise InputError(f"{name}: the columns are not equally long ({seen}).")
        if not next(iter(heights.values())):
            raise InputError(f"{name}: the columns are empty, so there are no rows.")
        return _from_columns(source, values, members)
    if all(isinstance(v, dict) for v in values.values()):
        rows = list(dict.fromkeys(key for v in values.values() for key in v))
        columns_of = {key: [v.get(row) for row in rows] for key, v in values.items()}
        first = next(iter(values.values()))
        if list(first) == rows and rows and not any(isinstance(v, dict) for v in first.values()):
            # pandas writes a frame as {column: {index: value}} unless it is told otherwise.
            return _from_columns(source, columns_of, members)
    elif not any(isinstance(v, dict | list) for v in values.values()):
        return _from_objects(source, [values], next(iter(members.values()))[1])
    raise InputError(
        f"{name}: the document is an object with the keys "
        f"{', '.join(shown_name(k) for k in list(values)[:12])}, and none of them is a list of "
        "objects. A table is a list of objects, an object of columns, or an object with one list "
        "of objects in it."
    )


def _all_lists(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, list) for v in value)


def _from_columns(
    source: Source, values: dict[str, list[Any]], members: dict[str, tuple[Any, array[int]]]
) -> RawTable:
    height = len(next(iter(values.values())))
    columns = _Columns()
    columns.add_columns(values, height)
    lines = next(iter(members.values()))[1]
    if len(lines) != height:
        lines = array("Q", [lines[0]] * height)
    return columns.table(source, "json", lines)
