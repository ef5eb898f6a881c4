"""Label tables: CSV, TSV, JSON, JSON Lines, Parquet, Arrow and frames, long, wide or as counts.

Two stages: a file becomes a raw table of text in which nothing is interpreted; a raw table becomes
canonical rows by its layout. Class names such as ``None`` or ``NA`` are text like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from voirdire.errors import InputError
from voirdire.options import Options
from voirdire.readers._checklist import checklist_plan, lay_out_checklist
from voirdire.readers._columnar import read_columnar
from voirdire.readers._delimited import read_delimited, sniffed_delimiter
from voirdire.readers._json_table import looks_like_lines, read_json, read_json_lines
from voirdire.readers._layout import (
    RECOGNISED,
    Plan,
    candidates,
    lay_out,
    named_columns,
    own_plan,
    phrasings_of,
    recoded,
    which_layouts,
)
from voirdire.readers._raw import RawTable, shown_name
from voirdire.readers._suggest import needs_more, none_fits, several_fit
from voirdire.readers._text import described_binary, encoding_of, head_text
from voirdire.readers.base import Claim, Reader
from voirdire.rows import CANONICAL, Rows
from voirdire.source import HEAD_BYTES, Source
from voirdire.wording import printable

_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_MOST_COMMON = 6
_LONGEST_NAME = 10_000  # letters in the name of a column


def format_of(source: Source, encoding: str = "") -> str:
    """The format of a source by its content and name; empty where it is clearly no table."""
    if source.frame is not None:
        return "frame"
    head = source.head
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1"):
        return "arrow"
    named = _BY_SUFFIX.get(source.suffix, "")
    if described_binary(head) and not encoding:
        # A name that promises a table is taken at its word, so that the error can say what it is.
        return named
    text = head_text(source, encoding_of(source, encoding)).lstrip("\ufeff \t\r\n")
    if named in ("csv", "tsv", "parquet", "arrow"):
        return named
    whole = len(head) < HEAD_BYTES
    if text.startswith("["):
        return "json"
    if text.startswith("{"):
        return "jsonl" if named == "jsonl" or looks_like_lines(text, whole=whole) else "json"
    if named or source.suffix == ".json":
        return named or "json"
    delimiter = sniffed_delimiter(text, whole=whole)
    if not delimiter:
        return ""
    return "tsv" if delimiter == "\t" else "csv"


def sniff(source: Source) -> Claim | None:
    """Whether a source looks like a table. Never sure: a log in JSON is also JSON."""
    if source.path is not None and source.path.is_dir():
        return None
    format = format_of(source)
    if not format:
        return None
    return Claim(format=format, sure=format in ("frame", "parquet", "arrow"))


def raw_table(source: Source, options: Options) -> RawTable:
    """A source as a table of text, before any column has a meaning."""
    format = format_of(source, options.encoding)
    if format in ("frame", "parquet", "arrow"):
        table = read_columnar(source, format)
    elif format == "json":
        table = read_json(source, options.encoding)
    elif format == "jsonl":
        table = read_json_lines(source, options.encoding)
    else:
        table = read_delimited(source, options.encoding)
    long = next((c for c in table.columns if len(c) > _LONGEST_NAME), "")
    if long:
        # Such a name is an accident or an attack, and everything that looks at names would take ages.
        raise InputError(
            f"{printable(source.name)}: the column {shown_name(long)} has a name of {len(long):,} letters, "
            f"and none may have more than {_LONGEST_NAME:,}. Rename it, or read the part that is a table."
        )
    # The frame of Labels is our own table too, in whatever format it comes back.
    return replace(table, own=table.own or tuple(table.columns[: len(CANONICAL)]) == CANONICAL)


def _plans(
    source: Source, options: Options
) -> tuple[RawTable, tuple[Plan, ...], tuple[str, ...], tuple[str, ...]]:
    table = raw_table(source, options)
    alone = source.alone
    keys, absent = named_columns(table, options, alone=alone)
    table, absent_too, unmatched = recoded(table, options, alone=alone)
    if options.layout == "auto" and (table.carried or table.own):
        plans: tuple[Plan, ...] = (own_plan(table, keys),)
    else:
        plans = _fitting(table, options, keys, alone=alone)
    return table, plans, (*absent, *absent_too), unmatched


def _fitting(
    table: RawTable, options: Options, keys: Mapping[str, tuple[str, ...]], *, alone: bool
) -> tuple[Plan, ...]:
    """The plans of all layouts that fit; a line that is named makes a table a checklist."""
    if options.layout not in ("auto", "checklist") or phrasings_of(table, options):
        return which_layouts(table, options, keys, alone=alone)
    forced = options.layout == "checklist"
    plan = checklist_plan(table, options, keys, forced=forced, alone=alone)
    others = which_layouts(table, options, keys, alone=alone)
    if plan is None:
        return others
    if "line" in plan.keys or options.line_prefix:
        return (plan,)
    if plan.bits and not options.graders and not options.scale:
        # Strings of bits are no classes, though one of their columns may be called gold.
        others = tuple(p for p in others if not set(p.graders) & set(plan.graders))
    return (plan, *others)


def _chosen(source: Source, table: RawTable, options: Options, plans: tuple[Plan, ...]) -> Plan:
    """The one plan to read by; raises with what was seen and exact commands if it is not clear."""
    ready = [p for p in plans if not p.needs]
    if len(ready) == 1:
        return ready[0]
    if len(plans) == 1:
        raise needs_more(source, table, options, plans[0])
    if plans:
        raise several_fit(source, table, options, ready or plans)
    raise none_fits(source, table, options)


def read(source: Source, options: Options) -> Rows:
    """All rows of a table under their canonical names.

    Raises :class:`UsageError` where an option names what is not there or a needed column is not
    named, and :class:`InputError` where the file is broken or its layout is not clear.
    """
    table, plans, absent, unmatched = _plans(source, options)
    plan = _chosen(source, table, options, plans)
    lay = lay_out_checklist if plan.layout == "checklist" else lay_out
    laid = lay(table, options, plan, alone=source.alone)
    return Rows(
        frame=laid.frame,
        name=source.name,
        stem=source.stem,
        sha256=source.sha256,
        layout=laid.layout,
        kind=laid.kind,
        place=laid.place,
        order=laid.order,
        carried=table.carried,
        notices=laid.notices,
        seen=laid.seen,
        absent=absent,
        unmatched=unmatched,
        lines=laid.lines,
        height=laid.height,
    )


def look(source: Source, options: Options) -> list[dict[str, Any]]:
    """One entry a column: how many cells are blank, the most frequent values, and its likely role."""
    table, plans, _, _ = _plans(source, options)
    ready = [p for p in plans if not p.needs] or list(plans)
    roles = _roles(table, ready[0] if ready else None)
    entries = []
    for column in table.columns:
        series = table.frame[column]
        counts = (
            pl.DataFrame({"value": series.drop_nulls().cast(pl.String)})
            .group_by("value", maintain_order=True)
            .len()
            .sort("len", descending=True, maintain_order=True)
        )
        entries.append(
            {
                "column": column,
                "blank": series.null_count(),
                "distinct": counts.height,
                "values": counts.head(_MOST_COMMON).rows(),
                "role": roles.get(column, "tag"),
            }
        )
    return entries


def _roles(table: RawTable, plan: Plan | None) -> Mapping[str, str]:
    roles: dict[str, str] = {}
    if plan is None:
        for role in reversed(list(RECOGNISED)):
            roles.update(dict.fromkeys(candidates(table, role)[:1], role))
        return roles
    for role, columns in (*plan.needs.items(), *plan.keys.items()):
        if role in ("scale", "graders"):
            continue
        roles.update(dict.fromkeys(columns, role))
    if plan.layout == "checklist":
        verdicts = [c for pairs in plan.lines.values() for _, c in pairs] or plan.graders
        roles.update(dict.fromkeys([*verdicts, *filter(None, [plan.items])], "verdicts"))
        roles.update(dict.fromkeys(plan.texts.values(), "text of a line"))
    else:
        roles.update(dict.fromkeys(plan.graders, "grader"))
        roles.update({c: "phrasing" for _, columns in plan.phrasings for c in columns})
    roles.update(dict.fromkeys(plan.classes.values(), "class"))
    roles.update(dict.fromkeys(plan.outcomes.values(), "outcome"))
    if plan.total:
        roles[plan.total] = "total"
    return roles


READER = Reader(
    name="table",
    title="label and count tables (CSV, TSV, JSON, JSONL, Parquet, Arrow, frames)",
    suffixes=(*_BY_SUFFIX, ".json"),
    sniff=sniff,
    read=read,
    look=look,
)
