"""Checklists: verdicts line by line, in numbered columns, strings of bits, rows or nested items."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from voirdire.checklist import Checklist
from voirdire.errors import InputError, UsageError
from voirdire.labels import gold_name
from voirdire.options import Options
from voirdire.questions import coded
from voirdire.readers._json_table import cell_text
from voirdire.readers._layout import (
    Laid,
    Plan,
    candidates,
    canonical_frame,
    is_prose,
    joined,
    long_table,
    mixed_notices,
    no_graders,
    refuse_ambiguous,
    refuse_blank,
    with_recognised,
    without_empty_rows,
)
from voirdire.readers._raw import Problems, RawTable, shown, shown_name
from voirdire.rows import CANONICAL, LENGTH, QUESTION, Lines, Place
from voirdire.wording import Name, Text, listed, plural, printable, say

PREFIX = "e"
ITEMS = "rubric_items"
_QUESTIONS = ("question_id", "question")
_BETWEEN = r"[_.\-/ ]"
_TEXT = r"(?:text|description|wording)"
_WORDS = {"0", "1", "true", "false", "yes", "no"}
_WORD = r"(?i)^\s*(?:[01](?:\.0*)?|true|false|yes|no)\s*$"
_MOST_WORDS = 12
_MOSTLY = 0.8  # of the cells, for a column of strings of bits to be known by its leading zeros
_LIKE_NUMBERS = re.compile(r"(?i)k|n|.*(?:total|score|count|sum|num).*")
_LINE_NAMES = ("line", "line_id", "criterion_id", "element_id", "id")
_LINE_TEXTS = ("criterion", "text", "description", "line_text", "criterion_text", "element_text")
_VERDICT_NAMES = ("criteria_met", "met", "verdict", "label", "passed")
_GRADER_NAMES = ("grader", "judge", "annotator", "rater", "scorer")


# --- which layout -------------------------------------------------------------------------------


def checklist_plan(
    table: RawTable,
    options: Options,
    keys: Mapping[str, tuple[str, ...]],
    *,
    forced: bool,
    alone: bool,
) -> Plan | None:
    """How a table is to be read as a checklist; ``None`` where it is none."""
    if "line" in keys:
        return _line_plan(table, options, keys, forced=True)
    columns = _columns_plan(table, options, keys, forced=forced, alone=alone)
    if columns is not None:
        return columns
    if ITEMS in table.columns and _holds_items(table.frame[ITEMS]):
        return _items_plan(table, options, keys)
    bits = _bits_plan(table, options, keys, forced=forced, alone=alone)
    if bits is not None:
        return bits
    rows = _line_plan(table, options, keys, forced=forced)
    if rows is not None or not forced:
        return rows
    if options.line_prefix:
        raise UsageError(
            f"{printable(table.name)}: --line-prefix {options.line_prefix}: no column is called "
            f"{options.line_prefix}1 or NAME_{options.line_prefix}1. Columns: "
            f"{', '.join(shown_name(c) for c in table.columns[:40])}."
        )
    _refuse_bare_numbers(table, [c for columns in keys.values() for c in columns])
    full, unclear, notices = _keys(table, options, keys, ("response", "grader", "label", "cluster"))
    return Plan(
        layout="checklist",
        keys=full,
        needs={**unclear, "line": _like_lines(table, full)},
        notices=tuple(notices),
    )


def _refuse_bare_numbers(table: RawTable, used: Sequence[str]) -> None:
    """Raise where columns of yes and no are called ``gold1``, ``gold2`` …: graders, or lines of one?"""
    groups: dict[str, dict[int, str]] = {}
    for column in table.columns:
        found = re.fullmatch(rf"(?s)(.*?\D){_BETWEEN}?(\d{{1,6}})", column)
        if found and column not in used:
            name = re.sub(rf"{_BETWEEN}$", "", found[1])
            groups.setdefault(name, {}).setdefault(int(found[2]), column)
    groups = {
        n: g
        for n, g in groups.items()
        if n and _runs(g) and holds_verdicts(table, list(g.values()))
    }
    if not groups:
        return
    name, numbered = next(iter(groups.items()))
    first, last = (numbered[j] for j in (min(numbered), max(numbered)))
    raise UsageError(
        f"{printable(table.name)}: {shown_name(first)} … {shown_name(last)} hold yes and no and are "
        "numbered, but nothing in their names tells the grader from the line. If they are lines, call "
        f"them NAME_eN: {shown_name(f'{name}_{PREFIX}{min(numbered)}')} … "
        f"{shown_name(f'{name}_{PREFIX}{max(numbered)}')}"
        + (
            f", and so for {', '.join(map(shown_name, list(groups)[1:6]))}"
            if groups.keys() - {name}
            else ""
        )
        + ". If a row is one verdict instead, a column says which line it is on: name it with --line."
    )


def _like_lines(table: RawTable, keys: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    used = {c for columns in keys.values() for c in columns}
    like = re.compile(r"(?i)line|criteri|element|rubric|check|aspect|requirement")
    return tuple(c for c in table.columns if c not in used and like.search(c))


def _keys(
    table: RawTable,
    options: Options,
    keys: Mapping[str, tuple[str, ...]],
    roles: Sequence[str],
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]], list[Text]]:
    """The keys completed by recognised names, with the question of each response."""
    others = [r for r in roles if r != "cluster"]
    full, unclear, notices = with_recognised(table, keys, others, ())
    unasked = _without(full, ("question",))
    if "response" in roles and "response" not in {**full, **unclear}:
        # Where each response has a checklist of its own, one column is both.
        more, unclear_too, noted = with_recognised(table, unasked, ("response",), ())
        full |= more
        unclear |= unclear_too
        notices += noted
    if "cluster" in roles:
        clustered, _, noted = with_recognised(
            table, _without(full, ("question",)), ("cluster",), ()
        )
        full |= clustered
        notices += noted
    if "question" not in full and options.question.lower() != "none":
        # A question may be a cluster, a stratum or a phrasing besides, and has its checklist still.
        both = ("cluster", "stratum", "phrasing")
        found = _question(
            table, [c for r, columns in full.items() if r not in both for c in columns]
        )
        if found:
            refuse_ambiguous(table, (found,))
            full["question"] = (found,)
    return full, unclear, notices


def _question(table: RawTable, used: Sequence[str]) -> str:
    by_lower = {c.lower(): c for c in reversed(table.columns) if c not in used}
    found = [by_lower[n] for n in _QUESTIONS if n in by_lower]
    return next((c for c in found if table.frame[c].null_count() < table.frame.height), "")


# --- numbered columns ---------------------------------------------------------------------------


def numbered_columns(table: RawTable, prefix: str) -> dict[str, dict[int, str]]:
    """The columns ``NAME_e1``, ``e1`` … by name and number; the name is empty where there is none."""
    pattern = re.compile(rf"(?s)(?:(.*){_BETWEEN})?{re.escape(prefix)}(\d+)")
    groups: dict[str, dict[int, str]] = {}
    for column in table.columns:
        found = pattern.fullmatch(column)
        if found and len(found[2]) < 7:
            groups.setdefault(found[1] or "", {}).setdefault(int(found[2]), column)
    return groups


def _runs(numbers: Mapping[int, str]) -> bool:
    return len(numbers) >= 2 and min(numbers) <= 1 and max(numbers) - min(numbers) < len(numbers)


def holds_verdicts(table: RawTable, columns: Sequence[str]) -> bool:
    """Whether every value of these columns is a verdict word, and there is one."""
    values = {v for c in columns for v in _values(table, c)}
    return bool(values) and all(re.match(_WORD, v) for v in values)


def _values(table: RawTable, column: str) -> list[str]:
    return table.frame[column].drop_nulls().unique().head(50).to_list()


def found_prefix(table: RawTable, used: Sequence[str] = ()) -> str:
    """The one prefix other than ``e`` of running columns that hold yes and no; else empty."""
    prefixes: dict[str, None] = {}
    for column in table.columns:
        start = re.fullmatch(rf"(?s)(?:.*{_BETWEEN})?([^\W\d]+{_BETWEEN}?)0*[01]", column)
        if start and column not in used:
            prefixes.setdefault(start[1])
    fit = []
    for prefix in prefixes:
        groups = numbered_columns(table, prefix).values()
        if any(_runs(g) and holds_verdicts(table, list(g.values())) for g in groups):
            fit.append(prefix)
    return fit[0] if len(fit) == 1 else ""


def _columns_plan(
    table: RawTable,
    options: Options,
    keys: Mapping[str, tuple[str, ...]],
    *,
    forced: bool,
    alone: bool,
) -> Plan | None:
    said = bool(options.line_prefix)
    if not forced and ("label" in keys or _are_columns(table, options)):
        return None
    used = [c for columns in keys.values() for c in columns]
    notices: list[Text] = []
    prefix = options.line_prefix or PREFIX
    groups = numbered_columns(table, prefix)
    if not said and not any(_runs(g) for g in groups.values()):
        other = found_prefix(table, used)
        if other and (forced or _by_row(table, keys, numbered_columns(table, other), sure=False)):
            prefix, groups = other, numbered_columns(table, other)
            notices.append(
                say(
                    "The columns {first} … are taken as the lines of the checklist. If they are not, "
                    "say which are: --line-prefix P.",
                    first=Name(next(iter(next(iter(groups.values())).values()))),
                )
            )
    groups = {n: {j: c for j, c in g.items() if c not in used} for n, g in groups.items()}
    groups = {n: g for n, g in groups.items() if g}
    if not groups or not (forced or said or any(_runs(g) for g in groups.values())):
        return None
    by_row = _by_row(table, keys, groups, sure=forced or said)
    if not forced and "grader" in keys and not by_row:
        return None
    unnamed = options.grader_name or table.stem
    by_name = {n or unnamed: g for n, g in groups.items()}
    graders = tuple(by_name)
    if not by_row:
        graders = _chosen_graders(table, options, graders, alone=alone, what="grader")
    if not options.graders and len(graders) > 1:
        graders, left_out = _without_texts(table, by_name, graders)
        notices += left_out
    numbers = sorted({j for g in graders for j in by_name[g]})
    # A line is called as its first column spells it: a number may have leading zeros.
    names = {
        j: prefix + re.split(re.escape(prefix), column)[-1]
        for j in numbers
        for column in [next(by_name[g][j] for g in graders if j in by_name[g])]
    }
    gone = sorted(set(range(numbers[0], numbers[-1] + 1)) - set(numbers)) if numbers else []
    if gone:
        notices.append(
            say(
                "The numbers of the lines run from {first} to {last} without {gone}: no column has such "
                "a line.",
                first=Name(names[numbers[0]]),
                last=Name(names[numbers[-1]]),
                gone=listed([f"{prefix}{j}" for j in gone]),
            )
        )
    lines = {g: tuple((names[j], c) for j, c in sorted(by_name[g].items())) for g in graders}
    columns = [c for pairs in lines.values() for _, c in pairs]
    refuse_ambiguous(table, columns)
    others = ("label", "outcome", "line") if by_row else ("label", "grader", "outcome", "line")
    roles = ("response", *(["grader"] if by_row else []), "cluster", "vote")
    full, unclear, more = _keys(table, options, _without(keys, others), roles)
    if by_row and "response" not in {**full, **unclear}:
        # A row is not a response of its own where several graders have a row on it.
        unclear["response"] = _like_responses(table, full, columns)
    taken = [*columns, *(c for cs in (*full.values(), *unclear.values()) for c in cs)]
    beside = [
        c
        for c in _bit_columns(table, taken, forced=False).found
        if table.frame[c].str.strip_chars().str.len_bytes().max() == len(numbers)
    ]
    if beside:
        more.append(
            say(
                "{names} {hold} strings of 0 and 1 and {were} not read, as verdicts stand in numbered "
                "columns. If they are a grader’s, put them in a file of their own and name both files.",
                names=listed(beside),
                hold="holds" if len(beside) == 1 else "hold",
                were="was" if len(beside) == 1 else "were",
            )
        )
    return Plan(
        layout="checklist",
        keys=full,
        graders=() if by_row else tuple(lines),
        lines=lines,
        texts=_texts(table, prefix, {j: names[j] for j in numbers}, columns),
        needs=unclear,
        notices=(*notices, *more),
    )


def _by_row(
    table: RawTable,
    keys: Mapping[str, tuple[str, ...]],
    groups: Mapping[str, Mapping[int, str]],
    *,
    sure: bool,
) -> bool:
    """Whether a row is one response by one grader: a grader column stands beside one set of lines.

    A column that nobody named as the grader is one by its name, where the lines have no ``NAME_`` and
    it holds no verdicts itself. Unless it is ``sure`` that there are lines, they run and hold yes and
    no, and no column is called like a label.
    """
    if len(groups) != 1:
        return False
    ((name, numbered),) = groups.items()
    if not sure and not (
        _runs(numbered)
        and holds_verdicts(table, list(numbered.values()))
        and not candidates(table, "label")
    ):
        return False
    if "grader" in keys:
        return True
    used = {c for columns in keys.values() for c in columns}
    found = [c for c in candidates(table, "grader") if c not in used]
    return not name and any(
        not holds_verdicts(table, [c]) and not table.frame[c].str.contains(r"^\s*[01]+\s*$").any()
        for c in found
    )


def _like_responses(
    table: RawTable, keys: Mapping[str, tuple[str, ...]], lines: Sequence[str]
) -> tuple[str, ...]:
    """The columns that tell the rows of each grader apart, first those that several graders share."""
    call = [c for r in ("grader", "vote") for c in keys.get(r, ())]
    n = table.frame.height
    found = [
        c
        for c in table.columns
        if c not in lines
        and c not in call
        and not table.frame[c].null_count()
        and not is_prose(table.frame[c])
        and table.frame.select(pl.struct([c, *call]).n_unique()).item() == n
    ]
    return tuple([c for c in found if table.frame[c].n_unique() < n] or found)


def _without(
    keys: Mapping[str, tuple[str, ...]], roles: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    return {r: c for r, c in keys.items() if r not in roles}


def _are_columns(table: RawTable, options: Options) -> bool:
    """Whether a named grader is a column: then the table is a wide one."""
    return any(g in table.columns for g in options.graders)


def _chosen_graders(
    table: RawTable, options: Options, found: Sequence[str], *, alone: bool, what: str
) -> tuple[str, ...]:
    if not options.graders:
        return tuple(found)
    missing = [g for g in options.graders if g not in found]
    chosen = [g for g in options.graders if g in found]
    if missing and (alone or not chosen):
        others = {options.reference, *options.people, gold_name(found, options)} - {""}
        if alone or not any(g in others for g in found):
            raise no_graders(table, options, found, what)
    others = {options.reference, *options.people, gold_name(found, options)} - {""}
    return (*chosen, *(g for g in found if g in others and g not in chosen))


def _without_texts(
    table: RawTable, by_name: Mapping[str, Mapping[int, str]], graders: Sequence[str]
) -> tuple[tuple[str, ...], list[Text]]:
    """Graders without those whose columns hold texts, where others hold verdicts."""
    prose = [
        g
        for g in graders
        if all(
            len(values := _values(table, c)) > _MOST_WORDS
            and not any(re.match(_WORD, v) for v in values)
            for c in by_name[g].values()
        )
    ]
    if not prose or len(prose) == len(graders):
        return tuple(graders), []
    note = say(
        "The columns of {names} hold texts and were not taken as verdicts. Name graders with --graders.",
        names=listed(prose),
    )
    return tuple(g for g in graders if g not in prose), [note]


def _texts(
    table: RawTable, prefix: str, names: Mapping[int, str], taken: Sequence[str]
) -> dict[str, str]:
    """The columns that hold what each line asks, by line: ``element_1_text``, ``e1_text`` …"""
    word = rf"(?:{re.escape(prefix)}|e|element|line|criterion|item|question)"
    patterns = (
        re.compile(rf"(?i){word}{_BETWEEN}?(\d+){_BETWEEN}{_TEXT}"),
        re.compile(rf"(?i)(?:{word}{_BETWEEN}?)?{_TEXT}{_BETWEEN}(?:{word}{_BETWEEN}?)?(\d+)"),
    )
    for pattern in patterns:
        found = {
            names[int(m[1])]: c
            for c in table.columns
            if c not in taken and (m := pattern.fullmatch(c)) and int(m[1]) in names
        }
        if found:
            return found
    return {}


# --- strings of bits ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Bits:
    """Columns that hold strings of 0 and 1: those to read, those read for their lengths alone, and
    those that may be strings of bits and are not read."""

    found: tuple[str, ...]
    by_length: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def _bit_columns(table: RawTable, leave: Sequence[str], *, forced: bool) -> _Bits:
    """The columns that hold strings of 0 and 1, one for each line.

    A string with a leading zero is no number, so a column of them is one of bits; where a checklist is
    asked for, a column may look like whole numbers, unless it is called like a number. Once a column
    is known, others whose strings are as long, row by row, are a grader's too: also where some of
    their cells are none, so that reading stops at such a cell and no grader is lost in silence.
    """
    lengths: dict[str, pl.Series] = {}  # of the cells that are bits, null elsewhere
    shares: dict[str, float] = {}
    zeros: dict[str, bool] = {}
    for column in table.columns:
        if column in leave:
            continue
        texts = table.frame[column].str.strip_chars()
        bits = texts.str.contains(r"^[01]{2,}$").fill_null(False)
        if bits.any():
            of_bits = texts.set(~bits, None)
            lengths[column] = of_bits.str.len_bytes()
            shares[column] = int(bits.sum()) / (len(texts) - texts.null_count())
            zeros[column] = bool((of_bits.str.starts_with("0") & (lengths[column] >= 3)).any())

    def sure(column: str) -> bool:
        plainly = zeros[column] and shares[column] >= _MOSTLY
        if _LIKE_NUMBERS.fullmatch(column):
            return plainly
        if forced:
            return shares[column] >= 0.5
        short = table.frame[column].str.strip_chars().str.contains("^0[01]$").any()
        return plainly or (shares[column] == 1 and bool(short))

    known = [c for c in lengths if sure(c)]
    if not known:
        return _Bits(())
    of_known = pl.DataFrame([lengths[c] for c in known]).select(pl.max_horizontal(pl.all()))
    wide = of_known.to_series()
    longest = _most(wide)
    by_length, unread = [], []
    for column in lengths:
        if column in known or _most(lengths[column]) < 3:
            continue
        alike = (lengths[column] == wide).sum() / lengths[column].count()
        # Where leading zeros were lost many a string is shorter: then reading stops and says so.
        likely = zeros[column] or (alike >= 0.25 and not _LIKE_NUMBERS.fullmatch(column))
        if likely and alike and shares[column] >= 0.5:
            by_length.append(column)
        elif alike:
            unread.append(column)
    unread += [
        c
        for c in table.columns
        if c not in leave and c not in lengths and _like_verdicts(table.frame[c], longest)
    ]
    found = tuple(c for c in table.columns if c in known or c in by_length)
    return _Bits(found, tuple(by_length), tuple(unread))


def _most(lengths: pl.Series) -> int:
    most = lengths.max()
    return most if isinstance(most, int) else 0


def _like_verdicts(series: pl.Series, length: int) -> bool:
    """Whether cells are mostly so many marks of at most three kinds, with separators or without."""
    texts = series.drop_nulls().head(200).str.replace_all(r"[\s,;|/\[\]()]+", "")
    if (
        length < 3
        or not texts.len()
        or 2 * int((texts.str.len_chars() == length).sum()) < len(texts)
    ):
        return False
    return len(set(texts.filter(texts.str.len_chars() == length).str.join("").item())) <= 3


def _bits_plan(
    table: RawTable,
    options: Options,
    keys: Mapping[str, tuple[str, ...]],
    *,
    forced: bool,
    alone: bool,
) -> Plan | None:
    if not forced and any(r in keys for r in ("label", "grader")):
        return None
    plain_keys = _without(keys, ("label", "grader", "outcome", "line"))
    full, unclear, notices = _keys(table, options, plain_keys, ("response", "cluster", "vote"))
    used = {c for columns in (*full.values(), *unclear.values()) for c in columns}
    bits = _bit_columns(table, list(used), forced=forced)
    found = list(bits.found)
    named = {*options.graders, options.gold, options.reference, *options.people}
    if (forced and not options.line_prefix) or found:
        found = [c for c in table.columns if c in found or (c in named and c not in used)]
    if not found:
        return None
    graders = _chosen_graders(table, options, found, alone=alone, what="column")
    refuse_ambiguous(table, graders)
    guessed = [c for c in bits.by_length if c not in named and c in graders]
    if guessed and not forced:
        notices.append(
            say(
                "{names} {are} too, as {its} strings of 0 and 1 are as long as the others. Choose with "
                "--layout checklist --graders A,B.",
                names=listed(guessed),
                are="is taken as a grader" if len(guessed) == 1 else "are taken as graders",
                its="its" if len(guessed) == 1 else "their",
            )
        )
    if not options.graders:
        notices += _unread_bits(table, [c for c in bits.unread if c not in graders], graders)
    return Plan(
        layout="checklist",
        keys=full,
        graders=graders,
        bits=True,
        texts=_texts(table, options.line_prefix or PREFIX, _Names(options), graders),
        needs=unclear,
        notices=tuple(notices),
    )


def _unread_bits(table: RawTable, columns: Sequence[str], graders: Sequence[str]) -> list[Text]:
    """A notice on columns that may hold a grader's bits and were not read."""
    if not columns:
        return []
    every = ",".join([*graders, *columns])
    return [
        say(
            "{names} may hold verdicts, as cells are as long as the strings of 0 and 1 of other graders, "
            "and {were} not read: {they} may be numbers, or few cells are such strings. If {they} {are} "
            "a grader’s: --layout checklist --graders {every}.",
            names=listed(columns),
            were="was" if len(columns) == 1 else "were",
            they="it" if len(columns) == 1 else "they",
            are="is" if len(columns) == 1 else "are",
            every=Name(every),
        )
    ]


class _Names(dict[int, str]):
    """Names of lines by any number: strings of bits number them from 1."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self.prefix = options.line_prefix or PREFIX

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and number > 0

    def __getitem__(self, number: int) -> str:
        return f"{self.prefix}{number}"


# --- rows and items -----------------------------------------------------------------------------


def _line_plan(
    table: RawTable, options: Options, keys: Mapping[str, tuple[str, ...]], *, forced: bool
) -> Plan | None:
    """One verdict a row. Not forced, only where labels are yes and no and a call has several lines."""
    keys = dict(keys)
    if "line" not in keys:
        column = next((c for c in table.columns if c.lower() == "line"), "")
        if not column or table.frame[column].null_count() == table.frame.height:
            return None
        keys["line"] = (column,)
    full, unclear, notices = _keys(
        table, options, keys, ("label", "grader", "response", "cluster", "vote")
    )
    needs = dict(unclear)
    needs.update({r: () for r in ("response", "label") if r not in full and r not in unclear})
    if not forced:
        if needs or not holds_verdicts(table, full["label"]):
            return None
        call = [c for r in ("response", "grader", "vote") for c in full.get(r, ())]
        if table.frame.select(pl.struct(call).n_unique()).item() == table.frame.height:
            return None
    return Plan(layout="checklist", keys=full, needs=needs, notices=tuple(notices))


def _holds_items(series: pl.Series) -> bool:
    cells = series.drop_nulls()
    return bool(cells.len() and cells.str.starts_with("[").all())


def _items_plan(table: RawTable, options: Options, keys: Mapping[str, tuple[str, ...]]) -> Plan:
    plain_keys = _without(keys, ("label", "outcome", "line"))
    full, unclear, notices = _keys(
        table, options, plain_keys, ("grader", "response", "cluster", "vote")
    )
    needs = dict(unclear)
    if "response" not in full and "response" not in unclear:
        needs["response"] = ()
    return Plan(layout="checklist", keys=full, items=ITEMS, needs=needs, notices=tuple(notices))


# --- rows ---------------------------------------------------------------------------------------


def lay_out_checklist(table: RawTable, options: Options, plan: Plan, *, alone: bool) -> Laid:
    """The verdicts of a table under a plan that needs nothing more, one a row."""
    column = "+".join(plan.keys.get("question", ()))
    if column:
        table = replace(
            table,
            frame=table.frame.with_columns(joined(plan.keys["question"]).alias(QUESTION)),
        )
    if plan.items:
        laid = _of_items(table, options, plan)
    elif plan.bits:
        laid = _of_bits(table, options, plan)
    elif plan.lines:
        laid = _of_columns(table, options, plan, alone=alone)
    else:
        laid = _of_rows(table, options, plan, alone=alone)
    lines = laid.lines or Lines()
    if column and not lines.question:
        lines = replace(lines, question=column)
    return replace(
        laid,
        layout="checklist",
        kind="checklist",
        lines=replace(lines, said=bool(options.question) or table.own),
        notices=(*table.notices, *plan.notices, *laid.notices),
    )


def _held(
    table: RawTable, plan: Plan, used_up: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame, np.ndarray | None, list[Text]]:
    """The rows that hold anything, raw and with the canonical columns, and where they stand."""
    keys = {r: c for r, c in plan.keys.items() if r in CANONICAL}
    notices: list[Text] = []
    index: np.ndarray | None = None
    raw = table.frame
    if "response" in keys:
        raw, index, notices = without_empty_rows(table)
        if not raw.height:
            raise InputError(f"{printable(table.name)}: all rows are blank.")
        refuse_blank(table, raw, index, "response", keys["response"])
        if plan.lines and "grader" in keys:
            refuse_blank(table, raw, index, "grader", keys["grader"])
    else:
        notices.append(
            say(
                "No column is named as the response, so each row is a response of its own, numbered "
                "from 1. Name it with --response."
            )
        )
    frame, renamed = canonical_frame(replace(table, frame=raw), keys, used_up)
    notices += [*mixed_notices(table, keys), *renamed]
    if "response" not in keys:
        numbers = pl.int_range(1, raw.height + 1, eager=True).cast(pl.String).alias("response")
        frame = frame.insert_column(0, numbers) if frame.width else pl.DataFrame([numbers])
    return raw, frame, index, notices


def _of_columns(table: RawTable, options: Options, plan: Plan, *, alone: bool) -> Laid:
    cells = [(g, line, column) for g, pairs in plan.lines.items() for line, column in pairs]
    columns = [column for _, _, column in cells]
    texts, shared, used, noted = _read_texts(table, plan)
    raw, frame, index, notices = _held(table, plan, [*columns, *used])
    by_row = "grader" in plan.keys
    seen = plan.graders
    if by_row:
        seen = tuple(frame["grader"].unique(maintain_order=True).to_list())
        chosen = _chosen_graders(table, options, seen, alone=alone, what="grader")
        if options.graders:
            keep = frame["grader"].is_in(list(chosen))
            positions = np.flatnonzero(keep.to_numpy())
            index = positions if index is None else index[positions]
            raw, frame = raw.filter(keep), frame.filter(keep)
    n, k = raw.height, len(cells)
    # Row by row in the file's order; in each row the graders in theirs, and their lines in order.
    at = (np.arange(n)[:, None] + n * np.arange(k)[None, :]).ravel()
    turn = np.tile(np.arange(k), n)
    labels = pl.concat([raw[c].alias("label") for c in columns]).gather(at)
    frame = frame[np.repeat(np.arange(n, dtype=np.uint32), k)]
    if not by_row:
        frame.insert_column(1, pl.Series("grader", [g for g, _, _ in cells]).gather(turn))
    frame.insert_column(2, labels)
    frame.insert_column(3, pl.Series("line", [line for _, line, _ in cells]).gather(turn))

    def place(row: int) -> Place:
        line = row // k
        line = int(index[line]) if index is not None else line
        return Place(line=table.line(line), column=columns[row % k], unit=table.unit)

    numbers = {line: i for i, line in enumerate(_by_number(line for _, line, _ in cells))}
    return Laid(
        frame=frame,
        place=place,
        layout="checklist",
        order=plan.graders,
        seen=seen,
        notices=(*notices, *noted),
        lines=Lines(order={"": tuple(numbers)}, texts=texts, padded=True, shared=shared),
        height=n,
    )


def _by_number(names: Any) -> list[str]:
    return sorted(dict.fromkeys(names), key=lambda n: int(re.findall(r"\d+", n)[-1]))


def _read_texts(
    table: RawTable, plan: Plan
) -> tuple[dict[tuple[str, str], str], bool, list[str], list[Text]]:
    """What each line asks, by question and line; whether it is the same everywhere; columns; notices.

    Texts that differ within a question are no texts of lines, and stay tags.
    """
    if not plan.texts:
        return {}, False, [], []
    columns = list(plan.texts.values())
    frame = table.frame.select(
        (pl.col(QUESTION) if "question" in plan.keys else pl.lit("")).alias("q"),
        *(pl.col(c).str.strip_chars() for c in columns),
    ).drop_nulls("q")
    uneven = frame.group_by("q").agg(pl.col(c).drop_nulls().n_unique() for c in columns)
    if uneven.select(pl.max_horizontal(pl.col(c).max() for c in columns)).item() > 1:
        return {}, False, [], []
    first = frame.group_by("q", maintain_order=True).agg(
        pl.col(c).drop_nulls().first() for c in columns
    )
    texts = {
        (row["q"], line): row[column]
        for row in first.iter_rows(named=True)
        for line, column in plan.texts.items()
        if row[column] is not None
    }
    if "question" not in plan.keys or len(first) < 2 or first.select(columns).n_unique() > 1:
        return texts, False, columns, []
    shared = {("", line): text for (_, line), text in texts.items()}
    note = say(
        "The lines have the same texts in all {n} questions, so one checklist serves them all.",
        n=len(first),
    )
    return shared, True, columns, [note]


def _of_bits(table: RawTable, options: Options, plan: Plan) -> Laid:
    graders = plan.graders
    texts, shared, used, noted = _read_texts(table, plan)
    raw, frame, index, notices = _held(table, plan, [*graders, *used])
    n = raw.height
    cells = [raw[g].str.strip_chars() for g in graders]
    # A mark that stands for a whole call says the same of each of its lines.
    marks = [m.strip() for m in (*options.missing, *(m for m, _ in options.failed))]
    marked = [c.is_in([m for m in marks if len(m) > 1]).fill_null(False) for c in cells]
    strings = [c.set(m, None) for c, m in zip(cells, marked, strict=True)]
    _refuse_no_bits(table, graders, strings, index)
    lengths = np.stack(
        [s.str.len_bytes().fill_null(0).to_numpy().astype(np.int64) for s in strings], axis=1
    )
    width = int(lengths.max())
    if not width:
        raise InputError(
            f"{printable(table.name)}: {', '.join(map(shown_name, graders))}: all cells are blank."
        )
    bits = np.stack(
        [
            np.frombuffer(
                s.fill_null("").str.pad_end(width, " ").str.join("").item().encode("ascii"),
                dtype=np.uint8,
            ).reshape(n, width)
            for s in strings
        ],
        axis=1,
    )
    # A blank cell has a blank for each line, as blank columns would have.
    there = np.arange(width) < np.where(lengths == 0, width, lengths)[:, :, None]
    rows, columns, positions = np.nonzero(there)
    chars = pl.Series("label", [None if i == 32 else chr(i) for i in range(128)], dtype=pl.String)
    prefix = options.line_prefix or PREFIX
    names = [f"{prefix}{j}" for j in range(1, width + 1)]
    length = lengths[rows, columns]
    frame = frame[rows.astype(np.uint32)]
    frame.insert_column(1, pl.Series("grader", list(graders)).gather(columns))
    labels = chars.gather(bits[rows, columns, positions])
    if any(m.any() for m in marked):
        of_call = pl.concat(c.zip_with(m, c.clear(n)) for c, m in zip(cells, marked, strict=True))
        of_row = of_call.gather(columns * n + rows)
        labels = of_row.zip_with(of_row.is_not_null(), labels).alias("label")
    frame.insert_column(2, labels)
    frame.insert_column(3, pl.Series("line", names).gather(positions))
    frame = frame.with_columns(
        pl.when(pl.Series(length > 0)).then(pl.Series(length.astype(np.uint32))).alias(LENGTH)
    )

    def place(row: int) -> Place:
        at = int(rows[row])
        at = int(index[at]) if index is not None else at
        column = f"{graders[int(columns[row])]} (character {int(positions[row]) + 1})"
        return Place(line=table.line(at), column=column, unit=table.unit)

    return Laid(
        frame=frame,
        place=place,
        layout="checklist",
        order=graders,
        seen=graders,
        notices=(*notices, *noted),
        lines=Lines(order={"": tuple(names)}, texts=texts, padded=True, shared=shared),
        height=n,
    )


def _refuse_no_bits(
    table: RawTable,
    graders: Sequence[str],
    strings: Sequence[pl.Series],
    index: np.ndarray | None,
) -> None:
    """Raise with the cells that cannot be one character a line: blanks inside, or other letters."""
    problems = Problems(table.name, unit=table.unit)
    example = ""
    for grader, series in zip(graders, strings, strict=True):
        bad = np.flatnonzero(
            series.str.contains(r"[^\x21-\x7e]").fill_null(False).to_numpy()
        ).tolist()
        shown_here = bad[: problems.room]
        for row in shown_here:
            at = int(index[row]) if index is not None else row
            problems.add(
                table.line(at), f"{shown(series[row])} is no string of 0 and 1", column=grader
            )
            if not example and shown(series[row]) == f'value "{series[row]}"':
                example = series[row]
        problems.add_unseen(len(bad) - len(shown_here))
    remedy = (
        "Write one character for each line, 1 for yes and 0 for no, or name other columns with "
        "--graders."
    )
    if example:
        # What is shown is meant to be pasted, so it is quoted for a shell.
        remedy += (
            " If a cell says that the whole call gave no verdicts: "
            f"--failed {shlex.quote(f'{example}=unparsed')} (or =truncated, =empty, =grader_refusal, "
            f"=blocked, =error), or --missing {shlex.quote(example)} where nobody was asked."
        )
    problems.raise_if_any(remedy)


def _of_rows(table: RawTable, options: Options, plan: Plan, *, alone: bool) -> Laid:
    table, lines = _without_question(table, plan)
    keys = {r: c for r, c in plan.keys.items() if r in CANONICAL}
    laid = long_table(table, options, replace(plan, keys=keys), alone=alone)
    frame = laid.frame.with_columns(pl.col("line").str.strip_chars())
    return replace(laid, frame=frame, lines=lines)


def _without_question(table: RawTable, plan: Plan) -> tuple[RawTable, Lines]:
    """The table with lines that are not named with their question, as ``QUESTION/LINE``."""
    frame = table.frame
    line = plan.keys["line"]
    if table.carried.get("checklist"):
        checklist = Checklist.of(table.carried["checklist"])
        if not checklist.own:
            texts = {("", name): text for name, text in checklist.texts.items()}
            return table, Lines(order={"": checklist.names}, texts=texts, shared=True)
        of_line = {
            n: q
            for q, names in zip(checklist.questions, checklist.lines, strict=True)
            for n in names
        }
        bare = {n: n[len(q) + 1 :] for n, q in of_line.items()}
        values, codes = coded(frame[line[0]])
        names_here = values.to_list()
        frame = frame.with_columns(
            pl.Series(QUESTION, [of_line.get(n) for n in names_here], dtype=pl.String).gather(
                codes
            ),
            pl.Series(line[0], [bare.get(n, n) for n in names_here], dtype=pl.String).gather(codes),
        )
        order = {
            q: tuple(bare[n] for n in names)
            for q, names in zip(checklist.questions, checklist.lines, strict=True)
        }
        texts = {(of_line[n], bare[n]): text for n, text in checklist.texts.items() if n in of_line}
        held = replace(table, frame=frame)
        return held, Lines(question=checklist.question, order=order, texts=texts)
    if len(line) > 1:
        return table, Lines()
    if QUESTION in frame.columns:
        named = pl.col(line[0]).str.starts_with(pl.col(QUESTION) + "/")
        if frame.select(named.all()).item():
            bare_line = pl.col(line[0]).str.strip_prefix(pl.col(QUESTION) + "/")
            return replace(table, frame=frame.with_columns(bare_line)), Lines()
        return table, Lines()
    if table.own:
        return _own_lines(table, plan), Lines()
    return table, Lines()


def _own_lines(table: RawTable, plan: Plan) -> RawTable:
    """A CSV of our own does not say which column the question is: it stands before the last slash."""
    frame = table.frame
    split = frame.select(
        pl.col("response"),
        pl.col("line").str.extract(r"(?s)^(.*)/", 1).alias("q"),
        pl.col("line").str.extract(r"(?s)/([^/]*)$", 1).alias("bare"),
    )
    if split["q"].null_count() or not (split["q"].n_unique() > 1 or _is_column(frame, split["q"])):
        return table
    if split.group_by("response").agg(pl.col("q").n_unique())["q"].max() != 1:
        return table
    return replace(
        table, frame=frame.with_columns(split["q"].alias(QUESTION), split["bare"].alias("line"))
    )


def _is_column(frame: pl.DataFrame, question: pl.Series) -> bool:
    """Whether a column besides the line says the same: one question alone may be a part of a name."""
    others = [c for c in frame.columns if c not in ("response", "grader", "label", "line")]
    return any(frame[c].cast(pl.String).eq_missing(question).all() for c in others)


# --- items --------------------------------------------------------------------------------------


def _of_items(table: RawTable, options: Options, plan: Plan) -> Laid:
    raw, frame, index, notices = _held(table, plan, [plan.items])
    questions = frame[QUESTION].to_list() if QUESTION in frame.columns else [""] * raw.height
    known = frame["grader"].to_list() if "grader" in frame.columns else None
    unnamed = options.grader_name or table.stem
    problems = Problems(table.name, unit=table.unit)
    rows: list[int] = []
    graders: list[str] = []
    labels: list[str | None] = []
    lines: list[str] = []
    points: list[str | None] = []
    numbered: dict[str, dict[tuple[str, int], str]] = {}
    texts: dict[tuple[str, str], str] = {}
    first: dict[str, tuple[int, frozenset[tuple[str, int]]]] = {}
    empty: list[int] = []
    for row, cell in enumerate(raw[plan.items].to_list()):
        line_number = table.line(int(index[row]) if index is not None else row)
        question = questions[row]
        asks = numbered.setdefault(question, {})
        seen: dict[str, int] = {}
        here: list[tuple[str, int]] = []
        for item in _parsed(cell, line_number, plan.items, problems):
            if not isinstance(item, dict):
                problems.add(line_number, "an item is no object {…}", column=plan.items)
                continue
            name, text = _named(item)
            given = _given(item, known[row] if known is not None else unnamed)
            if not (name or text) or given is None:
                what = "criterion" if given is not None else "verdict (criteria_met, met, verdict)"
                problems.add(line_number, f"an item has no {what}", column=plan.items)
                continue
            said = name or text
            per_grader = "\0".join(given)
            seen[said + per_grader] = seen.get(said + per_grader, 0) + 1
            key = (said, seen[said + per_grader])
            here.append(key)
            if key not in asks:
                asks[key] = name if name and key[1] == 1 else f"{PREFIX}{len(asks) + 1}"
                if text:
                    texts[question, asks[key]] = text
            for grader, label in given.items():
                rows.append(row)
                graders.append(grader)
                labels.append(label)
                lines.append(asks[key])
                points.append(cell_text(item.get("points")))
        if not here:
            empty.append(row)
        else:
            if question not in first:
                first[question] = (line_number, frozenset(here))
            elif not question and first[question][1] != frozenset(here):
                problems.add(
                    line_number,
                    f"other criteria than on {table.unit} {first[question][0]:,}",
                    column=plan.items,
                )
    response = "+".join(plan.keys["response"])
    problems.raise_if_any(
        "Every item needs a criterion and a verdict. Where criteria differ, name the question that they "
        f"belong to (--question COL; --question {shown_name(response)} where each response has its own)."
    )
    if not rows:
        raise InputError(f"{printable(table.name)}: {plan.items}: there are no items in it.")
    # A record without items was asked for the lines of its question, and gave none.
    every = tuple(dict.fromkeys(graders))
    unasked = []
    for row in empty:
        asks = numbered[questions[row]]
        if not asks:
            unasked.append(row)
        for grader in [known[row]] if known is not None else every:
            for line in asks.values():
                rows.append(row)
                graders.append(grader)
                labels.append(None)
                lines.append(line)
                points.append(None)
    if unasked:
        notices.append(
            say(
                "{n} left out: no record of the same question has items (the first: {unit} {line}).",
                n=plural(len(unasked), "response without items is", "responses without items are"),
                unit=table.unit,
                line=table.line(int(index[unasked[0]]) if index is not None else unasked[0]),
            )
        )
    places = np.array(rows, dtype=np.uint32)
    laid = frame.drop("grader", strict=False)[places]
    laid.insert_column(1, pl.Series("grader", graders, dtype=pl.String))
    laid.insert_column(2, pl.Series("label", labels, dtype=pl.String))
    laid.insert_column(3, pl.Series("line", lines, dtype=pl.String))
    if any(p is not None for p in points) and "points" not in laid.columns:
        laid = laid.with_columns(pl.Series("points", points, dtype=pl.String))
    present = tuple(dict.fromkeys(graders))
    chosen = _chosen_graders(table, options, present, alone=True, what="grader")
    if options.graders:
        keep = laid["grader"].is_in(list(chosen))
        places, laid = places[keep.to_numpy()], laid.filter(keep)

    def place(row: int) -> Place:
        at = int(places[row])
        at = int(index[at]) if index is not None else at
        return Place(line=table.line(at), column=plan.items, unit=table.unit)

    order = {q: tuple(asks.values()) for q, asks in numbered.items()}
    return Laid(
        frame=laid,
        place=place,
        layout="checklist",
        seen=present,
        notices=tuple(notices),
        lines=Lines(order=order, texts=texts),
        height=raw.height,
    )


def _parsed(cell: str | None, line: int, column: str, problems: Problems) -> list[Any]:
    if cell is None:
        return []
    try:
        return list(json.loads(cell, parse_int=str, parse_float=str))
    except (ValueError, RecursionError):
        problems.add(line, f"{shown(cell)} is no list of items in JSON", column=column)
        return []


def _named(item: Mapping[str, Any]) -> tuple[str, str]:
    """The name of an item's line and what it asks, each empty where the item does not say."""
    return _first(item, _LINE_NAMES).strip(), _first(item, _LINE_TEXTS).strip()


def _first(item: Mapping[str, Any], keys: Sequence[str]) -> str:
    for key in keys:
        value = item.get(key)
        if value is not None:
            return value if type(value) is str else cell_text(value) or ""
    return ""


def _given(item: Mapping[str, Any], grader: str) -> dict[str, str | None] | None:
    """The verdicts of an item by grader; ``None`` where it has no place for one."""
    key = next((k for k in _VERDICT_NAMES if k in item), "")
    if not key:
        return None
    value = item[key]
    if isinstance(value, dict):
        return {str(g): cell_text(v) for g, v in value.items()}
    return {_first(item, _GRADER_NAMES) or grader: cell_text(value)}
