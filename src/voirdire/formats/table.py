"""CSV and Parquet: the results table, one row an estimate, nothing rounded."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voirdire.document import Document
from voirdire.errors import InputError, unreadable
from voirdire.estimate import RESULT_COLUMNS, Estimate
from voirdire.formats.base import Format

if TYPE_CHECKING:
    import polars as pl

_FLOATS = ("value", "low", "high", "level")
_NUMBERS = (*_FLOATS, "n", "clusters")
_TEXTS = tuple(c for c in RESULT_COLUMNS if c not in _NUMBERS)

# Spreadsheets run a cell that starts so as a formula, also where it came from a grader's name. The
# apostrophe itself is guarded too, so that taking one away always gives the text back.
_GUARDED = ("=", "+", "-", "@", "\t", "\r", "'")
_SURROGATE = re.compile("[\ud800-\udfff]")


def results_frame(estimates: Iterable[Estimate]) -> pl.DataFrame:
    """The listed estimates as the results table of the contract.

    Texts are ``""`` where they do not apply and numbers null. ``n`` is whole numbers unless a
    weighted count is not.
    """
    rows = [e.row() for e in estimates if e.listed]
    return _typed({name: [row[name] for row in rows] for name in RESULT_COLUMNS})


def _typed(columns: dict[str, list[Any]]) -> pl.DataFrame:
    import polars as pl

    whole = all(isinstance(n, int) for n in columns["n"] if n is not None)
    count = pl.Int64() if whole else pl.Float64()
    series = []
    for name in RESULT_COLUMNS:
        values = columns[name]
        if name in _FLOATS or (name == "n" and not whole):
            floats = [None if x is None or math.isnan(x) else float(x) for x in values]
            series.append(pl.Series(name, floats, dtype=pl.Float64))
        elif name in ("n", "clusters"):
            dtype = count if name == "n" else pl.Int64()
            series.append(pl.Series(name, values, dtype=dtype))
        else:
            series.append(pl.Series(name, [_storable(v) for v in values], dtype=pl.String))
    return pl.DataFrame(series)


def _storable(text: str) -> str:
    """The text without halves of surrogate pairs, which no UTF-8 file can hold."""
    return _SURROGATE.sub(lambda m: f"⟨U+{ord(m[0]):04X}⟩", text)


def render_csv(document: Document) -> bytes:
    """Write the results as CSV: UTF-8, ``\\n`` line ends, floats in full, texts guarded."""
    lines = [",".join(RESULT_COLUMNS)]
    lines += [
        ",".join(
            _text(value) if name in _TEXTS else _number(value)
            for name, value in zip(RESULT_COLUMNS, row, strict=True)
        )
        for row in results_frame(document.estimates).iter_rows()
    ]
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Any table as CSV, such as the data of a figure: texts guarded, numbers in full, ``None`` empty."""
    lines = [",".join(_text(_storable(name)) for name in columns)]
    lines += [",".join(_cell(value) for value in row) for row in rows]
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))  # counts are counts, whatever they were added up in
    return repr(value) if isinstance(value, int | float) else _text(_storable(str(value)))


def _text(text: str) -> str:
    """A text cell, guarded and quoted (the csv module of older Pythons leaves a lone CR bare)."""
    guarded = "'" + text if text.startswith(_GUARDED) else text
    if any(c in guarded for c in ',"\r\n') or guarded != guarded.strip():
        return '"' + guarded.replace('"', '""') + '"'
    return guarded


def _number(value: float | int | None) -> str:
    return "" if value is None else repr(value)


def render_parquet(document: Document) -> bytes:
    """Write the results as Parquet, typed as the frame is."""
    file = io.BytesIO()
    results_frame(document.estimates).write_parquet(file, compression="zstd")
    return file.getvalue()


def read_results(path: str | Path) -> pl.DataFrame:
    """Read a results table that this module wrote, CSV or Parquet, back to the same frame.

    Raises :class:`InputError` where the file is missing or is not a results table.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(unreadable(path, error)) from error
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path, data)
    return _read_csv(path, data)


def _read_parquet(path: Path, data: bytes) -> pl.DataFrame:
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{path}: not a Parquet file that can be read ({error}).") from error
    _same_columns(path, frame.columns)
    return frame


def _read_csv(path: Path, data: bytes) -> pl.DataFrame:
    try:
        lines = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not CSV in UTF-8 ({error}).") from error
    _same_columns(path, lines[0] if lines else [])
    columns: dict[str, list[Any]] = {name: [] for name in RESULT_COLUMNS}
    for place, line in enumerate(lines[1:], start=2):
        if len(line) != len(RESULT_COLUMNS):
            raise InputError(
                f"{path}, row {place}: {len(line)} cells where the header has "
                f"{len(RESULT_COLUMNS)}. Was the file changed by hand?"
            )
        for name, text in zip(RESULT_COLUMNS, line, strict=True):
            columns[name].append(_read_cell(path, place, name, text))
    return _typed(columns)


def _read_cell(path: Path, place: int, name: str, text: str) -> str | float | int | None:
    if name in _TEXTS:
        return text[1:] if text.startswith("'") else text
    if not text:
        return None
    try:
        if name in ("n", "clusters") and re.fullmatch(r"[+-]?\d+", text):
            return int(text)
        return float(text)
    except ValueError:
        raise InputError(
            f"{path}, row {place}: {text!r} in the column {name} is not a number."
        ) from None


def _same_columns(path: Path, found: Sequence[str]) -> None:
    if tuple(found) != RESULT_COLUMNS:
        raise InputError(
            f"{path}: not a results table of voirdire. Its columns should be "
            f"{', '.join(RESULT_COLUMNS)}."
        )


CSV = Format(name="csv", suffixes=(".csv",), render=render_csv, title="Results table, CSV")
PARQUET = Format(
    name="parquet", suffixes=(".parquet",), render=render_parquet, title="Results table, Parquet"
)
