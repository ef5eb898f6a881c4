"""Parquet, Arrow and frames from Python as a raw table."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from voirdire.errors import InputError
from voirdire.readers._raw import Problems, RawTable, blank_to_null, shown_name
from voirdire.readers._text import open_bytes
from voirdire.source import Source
from voirdire.wording import printable

METADATA_KEY = "voirdire"


def read_columnar(source: Source, format: str) -> RawTable:
    """Read a Parquet or Arrow file, or take a frame; every value becomes text."""
    carried: Mapping[str, Any] = {}
    if format == "frame":
        assert source.frame is not None
        frame = source.frame
    else:
        what = "Parquet" if format == "parquet" else "Arrow"
        try:
            with open_bytes(source) as stream:
                if format == "parquet":
                    carried = _carried(source, pl.read_parquet_metadata(stream))
                    stream.seek(0)
                    frame = pl.read_parquet(stream)
                else:
                    frame = pl.read_ipc(stream)
        except InputError:
            raise
        except Exception as error:  # the parser's own exceptions have no common parent
            reason = printable(str(error).splitlines()[0] if str(error) else type(error).__name__)
            raise InputError(
                f"{printable(source.name)}: this cannot be read as a {what} file: {reason}."
            ) from error
    if not frame.height or not frame.width:
        raise InputError(f"{printable(source.name)}: the table has no rows.")
    own = bool(carried)
    if own:
        # Our own table is taken as it stands: cells of white space too, and weights as numbers.
        frame = frame.with_columns(pl.col(c).cast(pl.String) for c in _not_numbers(frame))
    else:
        frame = _all_text(source, frame)
    return RawTable(
        name=source.name,
        stem=source.stem,
        format=format,
        frame=frame,
        line=lambda row: row + 1,
        unit="row",
        own=own,
        carried=carried,
    )


def _not_numbers(frame: pl.DataFrame) -> list[str]:
    return [c for c in frame.columns if not (c == "weight" and frame.schema[c].is_numeric())]


def _carried(source: Source, metadata: Mapping[str, str]) -> Mapping[str, Any]:
    text = metadata.get(METADATA_KEY)
    if text is None:
        return {}
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{printable(source.name)}: the notes of voirdire in this Parquet file are damaged "
            f"({error}). Write the file again."
        ) from error
    return content if isinstance(content, dict) else {"value": content}


def _all_text(source: Source, frame: pl.DataFrame) -> pl.DataFrame:
    problems = Problems(source.name, unit="row")
    texts = []
    for series in frame:
        if series.dtype == pl.Binary:
            problems.add(1, "the column holds bytes, and only text can be read", column=series.name)
        else:
            texts.append(_as_text(series))
    problems.raise_if_any(
        "Turn the bytes into text, or leave the column out, before the table is read."
    )
    return blank_to_null(pl.DataFrame(texts))


def _as_text(series: pl.Series) -> pl.Series:
    dtype = series.dtype
    if dtype == pl.String:
        return series
    if dtype.is_float():
        return series.fill_nan(None).cast(pl.String)
    if dtype.is_temporal():
        return series.dt.to_string("iso:strict")
    if dtype.is_nested() or dtype == pl.Object:
        return pl.Series(series.name, [_value_text(v) for v in series.to_list()], dtype=pl.String)
    try:
        return series.cast(pl.String)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"The column {shown_name(series.name)} holds {dtype}, which has no text form."
        ) from error


def _value_text(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return str(value)
