"""Lines of a checklist brought together from all inputs: which question each belongs to, and its name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from voirdire.checklist import Checklist
from voirdire.errors import InputError
from voirdire.rows import (
    BLANK,
    CODE,
    LENGTH,
    PART,
    QUESTION,
    ROW,
    SHOWN,
    Lines,
    Rows,
    raise_problems,
    short,
    where,
)
from voirdire.wording import Name, Text, listed, plural, printable, say

Array = np.ndarray[Any, Any]

LINE = "\0line"  # the place of a line among all lines, so that lines are compared as integers
_LONGEST_NUMBER = 400  # digits; a longer one sorts as text


def natural(text: str) -> list[tuple[int, int, str]]:
    """A key that sorts ``e2`` before ``e10``."""
    return [
        (0, int(piece), "")
        if piece.isdigit() and piece.isascii() and len(piece) <= _LONGEST_NUMBER
        else (1, 0, piece.casefold())
        for piece in re.split(r"(\d+)", text)
        if piece
    ]


def _in_order(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: (natural(name), name))


def heads(frame: pl.DataFrame, *columns: str) -> pl.Series:
    """The rows that differ from the row before in any of these columns.

    Rows of one response mostly stand together and share most of what is known of it, so that looking
    at these rows alone saves hashing millions of texts.
    """
    same = pl.all_horizontal(pl.col(c).eq_missing(pl.col(c).shift(1)) for c in columns)
    return frame.select((~same | (pl.int_range(pl.len()) == 0)).alias("head")).to_series()


def coded(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Distinct texts in sorted order, and the place of each row's text among them (uint32, or null)."""
    at = heads(column.alias("x").to_frame(), "x")
    runs = int(at.sum())
    of_run = None
    if 2 * runs < len(column):
        of_run = at.cast(pl.UInt32).cum_sum() - 1
        column = column.filter(at)
    values = column.drop_nulls().unique().sort()
    if values.is_empty():
        codes = pl.Series([None], dtype=pl.UInt32).new_from_index(0, len(column))
    else:
        codes = column.cast(pl.Enum(values)).to_physical().cast(pl.UInt32)
    return values, codes if of_run is None else codes.gather(of_run)


def _categories(column: pl.Series) -> list[str]:
    assert isinstance(column.dtype, pl.Enum)
    return column.dtype.categories.to_list()


def _in_natural_order(column: pl.Series) -> tuple[tuple[str, ...], Array]:
    """Distinct texts in natural order, and the place of each row's text, −1 for a blank cell."""
    values, codes = coded(column)
    names = values.to_list()
    order = sorted(range(len(names)), key=lambda i: (natural(names[i]), names[i]))
    at = np.full(len(names) + 1, -1, dtype=np.int64)
    at[order] = np.arange(len(names))
    return tuple(names[i] for i in order), at[codes.fill_null(len(names)).to_numpy()]


def asked(
    frame: pl.DataFrame, parts: Sequence[Rows], notices: list[Text]
) -> tuple[pl.DataFrame, Checklist]:
    """The frame with every line under its full name, and the checklist that it makes.

    A question has the lines of its rows. Where a table has a column for each line of the longest
    checklist, the last ones that are blank in all responses to a question do not exist for it.
    Questions come in natural order, lines in the order that their input gives, else in natural
    order, so that the order of rows changes nothing. Without a cluster, the question is the cluster.
    """
    hints = [part.lines or Lines() for part in parts]
    _refuse_unnamed(frame, parts)
    frame, question, questions = _of_response(frame, parts)
    own = bool(questions) and not any(h.shared for h in hints)
    column = next((h.question for h in hints if h.question), "")
    if questions and frame["cluster"].null_count() == len(frame):
        if _is_stratum(frame):
            notices.append(
                say(
                    "The question ({column}) is the stratum too: intervals take these questions as given and "
                    "the responses as drawn within them, each its own cluster. If questions were drawn, "
                    "leave --stratum out.",
                    column=Name(column),
                )
            )
        else:
            frame = _clustered_by(frame, question, questions)
    if own:
        _refuse_unasked(frame, parts, question, column)
        of_row = question[frame[CODE].to_numpy()]
    else:
        questions = ("",)
        of_row = np.zeros(len(frame), dtype=np.int64)
    if LENGTH in frame.columns:
        _refuse_uneven(frame, parts, of_row, questions)
    names, lines = _ordered_names(frame["line"], hints)
    pair = of_row * len(names) + lines
    rank = _ranks(questions, names, hints)
    exists = _existing(frame, hints, pair, rank)
    keep = exists[pair]
    if not keep.all():
        frame, pair = frame.filter(pl.Series(keep)), pair[keep]
    order = np.flatnonzero(exists)
    of_question, of_line = order // len(names), order % len(names)
    order = order[np.lexsort((rank.ravel()[order], of_question))]
    of_question, of_line = order // len(names), order % len(names)
    full = pl.Series(names, dtype=pl.String).gather(of_line)
    place = np.zeros(exists.size, dtype=np.uint32)
    place[order] = np.arange(len(order))
    frame = frame.with_columns(pl.Series(LINE, place[pair]))
    if own:
        full = pl.Series(questions, dtype=pl.String).gather(of_question) + "/" + full
        _refuse_merged(full)
        frame = frame.with_columns(full.gather(frame[LINE]).alias("line"))
    texts: dict[tuple[str, str], str] = {}
    for hint in hints:
        texts.update(hint.texts)
    every = full.to_list()
    at = np.concatenate([[0], np.cumsum(np.bincount(of_question, minlength=len(questions)))])
    checklist = Checklist(
        questions=questions,
        lines=tuple(tuple(every[a:b]) for a, b in pairwise(at)),
        question=column if own else "",
        texts={
            name: text
            for name, q, line in zip(every, of_question.tolist(), of_line.tolist(), strict=True)
            if (text := texts.get((questions[q], names[line]))) is not None
        }
        if texts
        else {},
    )
    _note_own(checklist, hints, texts, notices)
    _note_absent(frame, pair, order, len(names), every, notices)
    return frame.drop(QUESTION, LENGTH, strict=False), checklist


def _is_stratum(frame: pl.DataFrame) -> bool:
    """Whether the stratum of every row is its question."""
    if frame["stratum"].null_count() == len(frame):
        return False
    return bool(frame.select(pl.col("stratum").eq_missing(pl.col(QUESTION)).all()).item())


def _clustered_by(frame: pl.DataFrame, question: Array, questions: Sequence[str]) -> pl.DataFrame:
    """The frame with the question of each response as its cluster."""
    named = pl.Series("cluster", questions, dtype=pl.String)
    of_row = question[frame[CODE].to_numpy()]
    cluster = named.gather(np.maximum(of_row, 0))
    if (of_row < 0).any():
        cluster = cluster.zip_with(pl.Series(of_row >= 0), pl.Series([None], dtype=pl.String))
    return frame.with_columns(cluster.alias("cluster"))


def _refuse_unnamed(frame: pl.DataFrame, parts: Sequence[Rows]) -> None:
    if not frame["line"].null_count():
        return
    unnamed = frame.filter(pl.col("line").is_null())
    raise_problems(
        [
            f"{where(parts, r[PART], r[ROW])}: the line of the checklist is not named."
            for r in unnamed.head(SHOWN).iter_rows(named=True)
        ],
        len(unnamed),
        "Name the line in every row, or its column with --line COL.",
    )


def _of_response(
    frame: pl.DataFrame, parts: Sequence[Rows]
) -> tuple[pl.DataFrame, Array, tuple[str, ...]]:
    """The question of each response, ``(responses,)`` (−1: not known), and the questions in order."""
    response = frame[CODE].to_numpy()
    size = int(response.max()) + 1
    if QUESTION not in frame.columns or frame[QUESTION].null_count() == len(frame):
        return frame, np.full(size, -1, dtype=np.int64), ()
    questions, codes = _in_natural_order(frame[QUESTION])
    known = codes >= 0
    question = np.full(size, -1, dtype=np.int64)
    question[response[known]] = codes[known]
    torn = known & (question[response] != codes)
    if torn.any():
        both = frame.filter(pl.Series(torn)).unique(
            subset=[CODE], keep="first", maintain_order=True
        )
        raise_problems(
            [
                f"{where(parts, r[PART], r[ROW])}: response {short(r['response'])} answers question "
                f"{short(r[QUESTION])} here and {short(questions[question[r[CODE]]])} elsewhere."
                for r in both.head(SHOWN).iter_rows(named=True)
            ],
            len(both),
            "A response answers one question. Join the question into its id (--response a+b), or "
            "name another column with --question COL (--question none for one checklist for all).",
        )
    return frame, question, questions


def _refuse_unasked(
    frame: pl.DataFrame, parts: Sequence[Rows], question: Array, column: str
) -> None:
    without = question[frame[CODE].to_numpy()] < 0
    if not without.any():
        return
    rows = frame.filter(pl.Series(without)).unique(subset=[CODE], keep="first", maintain_order=True)
    raise_problems(
        [
            f"{where(parts, r[PART], r[ROW], column)}: response {short(r['response'])} has no question."
            for r in rows.head(SHOWN).iter_rows(named=True)
        ],
        len(rows),
        "Each question has its own checklist, so the question of every response must be known. Fill "
        f"in the column {printable(column)}, leave these responses out, or say --question none if one "
        "checklist serves all responses.",
    )


def _refuse_uneven(
    frame: pl.DataFrame, parts: Sequence[Rows], of_row: Array, questions: Sequence[str]
) -> None:
    """Raise where strings of bits of one checklist differ in length: which line is gone is not known."""
    strings = (
        frame.select(LENGTH, PART, ROW, CODE, "response", "grader", "line")
        .with_columns(pl.Series("q", of_row))
        .drop_nulls(LENGTH)
        .unique(subset=["q", LENGTH], keep="first", maintain_order=True)
        .filter(pl.col("q").is_duplicated())
        .sort("q", LENGTH, maintain_order=True)
    )
    if not len(strings):
        return
    raise_problems(
        [
            f"{where(parts, r[PART], r[ROW])}: response {short(r['response'])} has "
            f"{plural(r[LENGTH], 'verdict')}, others "
            + (f"of question {short(questions[r['q']])} " if questions[r["q"]] else "")
            + "have another number."
            for r in strings.head(SHOWN).iter_rows(named=True)
        ],
        len(strings),
        "The strings of one checklist are equally long, else nobody knows which line is left out. If "
        "leading zeros were lost, write the column as text; if questions have checklists of their "
        "own, name the question: --question COL.",
    )


def _refuse_merged(full: pl.Series) -> None:
    if full.n_unique() == len(full):
        return
    twice = full.filter(full.is_duplicated())[0]
    raise InputError(
        f"Two lines would both be called {short(twice)}, as a question or a line has a slash in its "
        "name. Write one of them otherwise (--recode COL:OLD=NEW)."
    )


def _ordered_names(column: pl.Series, hints: Sequence[Lines]) -> tuple[list[str], Array]:
    """The names of lines, and the place of each row's: in the order that inputs give, then natural."""
    values, codes = coded(column)
    present = values.to_list()
    left = set(present)
    names = [n for n in dict.fromkeys(n for h in hints for n in h.order.get("", ())) if n in left]
    names += _in_order(list(left - set(names)))
    place = {name: i for i, name in enumerate(names)}
    at = np.array([place[name] for name in present], dtype=np.int64)
    return names, at[codes.to_numpy()]


def _ranks(questions: Sequence[str], names: Sequence[str], hints: Sequence[Lines]) -> Array:
    """The order of each line in each question, ``(questions, names)``."""
    rank = np.tile(np.arange(len(names), dtype=np.int64), (len(questions), 1))
    at = {question: i for i, question in enumerate(questions)}
    place = {name: i for i, name in enumerate(names)}
    for hint in reversed(hints):
        for question, lines in hint.order.items():
            if question and question in at:
                given = [place[line] for line in lines if line in place]
                rank[at[question]] += len(names)
                rank[at[question], given] = np.arange(len(given))
    return rank


def _existing(frame: pl.DataFrame, hints: Sequence[Lines], pair: Array, rank: Array) -> Array:
    """Which lines each question has, flat over questions × names."""
    questions, width = rank.shape
    present = np.zeros(questions * width, dtype=np.bool_)
    present[pair] = True
    if questions == 1 or not any(h.padded for h in hints):
        return present
    padded = np.array([h.padded for h in hints])
    firm = ~frame[BLANK].to_numpy() | ~padded[frame[PART].to_numpy()]
    filled = np.zeros(questions * width, dtype=np.bool_)
    filled[pair[firm]] = True
    last = np.where(filled.reshape(rank.shape), rank, -1).max(axis=1)
    # Nothing is known of a question that no grader could be read on: it keeps all columns.
    last = np.where(last < 0, rank.max(axis=1), last)
    return np.asarray(present & (rank <= last[:, None]).ravel())


def _note_own(
    checklist: Checklist,
    hints: Sequence[Lines],
    texts: Mapping[tuple[str, str], str],
    notices: list[Text],
) -> None:
    if not checklist.own or texts or any(h.said for h in hints):
        return
    notices.append(
        say(
            "Each question ({column}) is taken to have its own checklist: {q}, {n}. If one checklist "
            "serves all, say --question none --cluster {column}.",
            column=Name(checklist.question),
            q=plural(len(checklist.questions), "question"),
            n=plural(len(checklist.names), "line"),
        )
    )


def _note_absent(
    frame: pl.DataFrame,
    pair: Array,
    order: Array,
    width: int,
    full: Sequence[str],
    notices: list[Text],
) -> None:
    """Say which lines a grader has no row for, in questions that it was asked."""
    graders = _categories(frame["grader"])
    if len(graders) < 2:
        return
    size = int(order.max()) // width * width + width
    code = frame["grader"].to_physical().cast(pl.Int64).to_numpy() * size + pair
    flat = np.zeros(len(graders) * size, dtype=np.bool_)
    flat[code] = True
    has: Array = flat.reshape(len(graders), size)
    took_part: Array = np.asarray(has.reshape(len(graders), -1, width).any(axis=2))
    for g, grader in enumerate(graders):
        absent = ~has[g, order] & took_part[g, order // width]
        if absent.any():
            lines = [full[i] for i in np.flatnonzero(absent).tolist()]
            notices.append(
                say(
                    "{grader} has no verdicts on {n} that other graders have ({lines}); {they} "
                    "missing there, not 0, and responses to {them} have no total of {grader}.",
                    grader=Name(grader),
                    n=plural(len(lines), "line"),
                    they="it is" if len(lines) == 1 else "they are",
                    them="it" if len(lines) == 1 else "them",
                    lines=listed(lines),
                )
            )


def unparsed(frame: pl.DataFrame, graders: Sequence[str]) -> pl.DataFrame:
    """The frame with calls that have no verdict on any line as ``unparsed``.

    Only calls of ``graders``, and only where all cells are blank: a mark that stands for a missing
    label (``--missing``) or an outcome has been said.
    """
    blank = frame[BLANK].to_numpy()
    if not blank.any():
        return frame.drop(BLANK)
    names = _categories(frame["grader"])
    code = frame[CODE].to_numpy().astype(np.int64) * len(names)
    code += frame["grader"].to_physical().cast(pl.Int64).to_numpy()
    for repeat in ("vote", "phrasing"):
        if frame[repeat].null_count() < len(frame):
            values, codes = coded(frame[repeat])
            code = code * (len(values) + 1) + codes.fill_null(len(values)).to_numpy()
    size = int(code.max()) + 1
    if size > 64 * len(code):
        code = np.unique(code, return_inverse=True)[1]
        size = int(code.max()) + 1
    said = np.zeros(size, dtype=np.bool_)
    said[code[~blank]] = True
    gone = blank & ~said[code] & frame["grader"].is_in(list(graders)).to_numpy()
    outcomes = frame.schema["outcome"]
    return frame.with_columns(
        pl.when(pl.Series(gone))
        .then(pl.lit("unparsed", dtype=outcomes))
        .otherwise("outcome")
        .alias("outcome")
    ).drop(BLANK)
