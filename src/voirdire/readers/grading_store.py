"""Grading stores: what ``voirdire grade`` keeps, as an input of the audit.

What is read: for each response, grader, phrasing and vote the call that was planned last, with what was
read from its reply. A call that failed is an ``error`` (or ``blocked``) with its reason; one that is
planned and not made yet is no row, and a notice counts it. Labels of earlier rubrics, parameters and
responses stay in the store and are not read. Facts on graders (model, parameters, rubric, votes) come
with the labels, and so do the cluster, the question and the other columns of the responses.

The store is opened for reading only, and may be in use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from voirdire.errors import InputError, UsageError
from voirdire.readers._store_schema import (
    APPLICATION_ID,
    DONE,
    GRADER_BITS,
    MAGIC,
    PHRASING_BITS,
    TABLES,
    VERSION,
    VOTE_BITS,
)
from voirdire.readers.base import Claim, Reader
from voirdire.rows import CANONICAL, QUESTION, Lines, Place, Rows
from voirdire.source import Source
from voirdire.wording import Text, plural, printable, say

if TYPE_CHECKING:
    import sqlite3

    from voirdire.options import Options

FORMAT = "grading_store"
_LONGEST_REASON = 200


def sniff(source: Source) -> Claim | None:
    """Sure for an SQLite database that says it is a grading store."""
    if source.frame is not None or (source.path is not None and source.path.is_dir()):
        return None
    head = source.head
    if not head.startswith(MAGIC) or int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        return None
    return Claim(format=FORMAT, version=str(int.from_bytes(head[60:64], "big")))


# --- opening ------------------------------------------------------------------------------------


@contextmanager
def _opened(source: Source) -> Iterator[sqlite3.Connection]:
    """The database, for reading; every error of SQLite becomes one of ours."""
    import sqlite3

    name = printable(source.name)
    db: sqlite3.Connection | None = None
    try:
        db = _connected(source)
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA query_only = ON")
        db.execute("BEGIN")  # one state of it, also while another process writes
        _checked(source, db)
        yield db
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        raise InputError(
            f"{name}: the store cannot be read: {printable(str(error))}. Take a whole copy of it, or save "
            f'what is left into a new file with the tool of SQLite: sqlite3 {name} ".recover" | '
            "sqlite3 new.db."
        ) from error
    finally:
        if db is not None:
            db.close()


def _connected(source: Source) -> sqlite3.Connection:
    import sqlite3

    if source.content is not None or source.path is None:
        db = sqlite3.connect(":memory:")
        content = bytearray(source.data)
        # A database in memory has no journal beside it: it is read as one without.
        content[18:20] = b"\x01\x01"
        db.deserialize(bytes(content))
        return db
    address = source.path.resolve().as_uri()
    db = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=30)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        db.close()
        # In a folder that cannot be written there is no place for the index of a journal.
        if "open" not in str(error) and "readonly" not in str(error):
            raise
        db = sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True)
    return db


def _checked(source: Source, db: sqlite3.Connection) -> None:
    name = printable(source.name)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise InputError(
            f"{name}: this store was written by a newer voirdire (tables of version {version}; this one "
            f"reads {VERSION}). Update voirdire."
        )
    tables = {
        n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    }
    missing = [t for t in TABLES if t not in tables]
    if missing:
        raise InputError(
            f"{name}: this store has no table {missing[0]}: it is damaged, or another program changed it. "
            "Take a whole copy of it."
        )


def _sha256(source: Source) -> str:
    """That of the file, and of its journal where one is not folded in yet."""
    journal = None if source.path is None else Path(f"{source.path}-wal")
    try:
        pending = journal.read_bytes() if journal is not None and source.content is None else b""
    except OSError:
        pending = b""
    if not pending:
        return source.sha256
    return hashlib.sha256(source.data + pending).hexdigest()


# --- reading ------------------------------------------------------------------------------------


def _frame(db: sqlite3.Connection, query: str, schema: Mapping[str, Any]) -> pl.DataFrame:
    """The rows of a query; raises ``InputError`` where a cell is of another kind than the store writes."""
    try:
        return pl.DataFrame(db.execute(query).fetchall(), schema=dict(schema), orient="row")
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"The store holds a cell that voirdire did not write ({printable(str(error)[:200])}). Take a "
            "whole copy of it."
        ) from error


def _read_json(text: Any) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


_SLOTS = {"slot": pl.Int64, "key": pl.Binary, "run": pl.Int64}
_READINGS = {
    "key": pl.Binary,
    "line": pl.String,
    "label": pl.String,
    "read": pl.String,
    "reason": pl.String,
}
_FAILED = {"key": pl.Binary, "status": pl.String, "message": pl.String}
_NAMED_FACTS = {"no": pl.Int64, "name": pl.String, "facts": pl.String}
_ITEMS = {
    "item": pl.Int64,
    "response": pl.String,
    "cluster": pl.String,
    "question": pl.String,
    "tags": pl.String,
}


class _Store:
    """The tables of a store as frames, joined to one row a verdict."""

    def __init__(self, source: Source, db: sqlite3.Connection) -> None:
        self.source = source
        self.name = printable(source.name)
        self.notices: list[Text] = []
        slots = _frame(db, "SELECT slot, key, run FROM slots ORDER BY slot", _SLOTS)
        readings = _frame(db, "SELECT key, line, label, outcome, reason FROM readings", _READINGS)
        failed = _frame(
            db, "SELECT key, status, message FROM calls WHERE status <> 'done'", _FAILED
        )
        done = _frame(db, "SELECT key FROM calls", {"key": pl.Binary})
        self.items = _frame(db, "SELECT no, id, cluster, question, tags FROM items", _ITEMS)
        self.graders = {
            no: (name, _read_json(facts))
            for no, name, facts in _frame(
                db, "SELECT no, name, facts FROM graders ORDER BY no", _NAMED_FACTS
            ).iter_rows()
        }
        named = _frame(db, "SELECT no, name, '' FROM phrasings", _NAMED_FACTS)
        self.phrasings = dict(named.select("no", "name").iter_rows())
        runs = _frame(db, "SELECT id, '', rubric FROM runs", _NAMED_FACTS)
        self.cards = {no: _read_json(card) for no, _, card in runs.iter_rows()}
        self.old = len(done) - slots.join(done, on="key", how="semi").height
        self.planned = slots.height
        self.calls = self._calls(slots, readings, failed, done)

    def _calls(
        self,
        slots: pl.DataFrame,
        readings: pl.DataFrame,
        failed: pl.DataFrame,
        done: pl.DataFrame,
    ) -> pl.DataFrame:
        made = slots.join(done, on="key", how="semi", maintain_order="left")
        self.missing = slots.height - made.height
        slot = pl.col("slot")
        made = (
            made.join(failed, on="key", how="left", maintain_order="left")
            .join(readings, on="key", how="left", maintain_order="left_right")
            .with_columns(
                (slot & ((1 << VOTE_BITS) - 1)).alias("vote"),
                ((slot // (1 << VOTE_BITS)) & ((1 << PHRASING_BITS) - 1)).alias("phrasing"),
                ((slot // (1 << (VOTE_BITS + PHRASING_BITS))) & ((1 << GRADER_BITS) - 1)).alias(
                    "grader"
                ),
                (slot // (1 << (VOTE_BITS + PHRASING_BITS + GRADER_BITS))).alias("item"),
            )
        )
        # Failed calls have no reading; a done call without one was never read.
        self.unread = made.filter(pl.col("status").is_null() & pl.col("read").is_null()).height
        status, message = pl.col("status"), pl.col("message")
        outcome = (
            pl.when(status == "blocked")
            .then(pl.lit("blocked"))
            .when(status.is_not_null())
            .then(pl.lit("error"))
            .when(pl.col("read").is_null())
            .then(pl.lit("unparsed"))
            .otherwise("read")
        )
        reason = (
            pl.when((status == "other") & (message != ""))
            .then(message)
            .when(status.is_not_null() & (message != ""))
            .then(pl.concat_str([status, message], separator=", "))
            .when(status.is_not_null())
            .then(status)
            .when(pl.col("read").is_null())
            .then(pl.lit("not read yet"))
            .otherwise("reason")
        )
        return made.with_columns(outcome.alias("outcome"), reason.alias("reason"))

    def kinds(self) -> Iterator[tuple[str, pl.DataFrame, Mapping[str, Any]]]:
        """The calls under a rubric of classes, and those under checklists, each with its newest rubric."""
        kinds: dict[str, list[int]] = {}
        for run, card in self.cards.items():
            kinds.setdefault(
                "checklist" if card.get("kind") == "checklist" else "labels", []
            ).append(run)
        for kind, runs in kinds.items():
            part = self.calls.filter(pl.col("run").is_in(runs))
            if part.height:
                newest = int(part["run"].max())  # type: ignore[arg-type]  # not empty
                yield kind, part, self.cards[newest]

    def laid(self, kind: str, part: pl.DataFrame, card: Mapping[str, Any]) -> pl.DataFrame:
        """Canonical rows, and the tags of the responses."""
        questions = _lines(card)
        part = part.join(self.items, on="item", how="left", maintain_order="left")
        lost = part["response"].null_count()
        if lost:
            raise InputError(
                f"{self.name}: {plural(lost, 'call')} of a response that the store does not know. Take a "
                "whole copy of it."
            )
        if kind == "checklist":
            part = self._all_lines(part, questions)
        label = pl.when(pl.col("outcome") == "label").then("label")
        reason = (
            pl.col("reason")
            .str.replace_all(r"\s+", " ")
            .str.slice(0, _LONGEST_REASON)
            .fill_null("")
        )
        outcome = (
            pl.when((reason != "") & ~pl.col("outcome").is_in(["label", "missing"]))
            .then(pl.concat_str([pl.col("outcome"), reason], separator=": "))
            .otherwise("outcome")
        )
        graders = {no: name for no, (name, _) in self.graders.items()}
        frame = part.select(
            "response",
            _named(part["grader"], graders).alias("grader"),
            label.alias("label"),
            outcome.alias("outcome"),
            *(["line"] if kind == "checklist" else []),
            _blank_to_null("cluster"),
            pl.col("vote").cast(pl.String),
            _named(part["phrasing"], self.phrasings).alias("phrasing"),
            _blank_to_null("question"),
            "tags",
        )
        for column, values in (("vote", "1"), ("phrasing", None)):
            # One vote and one phrasing are no repeat.
            if frame[column].n_unique() < 2 and (values is None or frame[column][0] == values):
                frame = frame.drop(column)
        frame = frame.drop(
            c for c in ("cluster", "question") if frame[c].null_count() == frame.height
        )
        if kind == "checklist" and "question" in frame.columns and "" not in questions:
            frame = frame.rename({"question": QUESTION})
        return _with_tags(frame)

    def _all_lines(
        self, part: pl.DataFrame, questions: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> pl.DataFrame:
        """A row for every line that a call was asked about, also of a call without a verdict."""
        asked = pl.DataFrame(
            [
                (question, str(line.get("id", "")), place)
                for question, lines in questions.items()
                for place, line in enumerate(lines)
            ],
            schema={"question": pl.String, "asked": pl.String, "place": pl.Int64},
            orient="row",
        )
        # A call without a verdict has one row, for the whole reply.
        whole = pl.col("line").fill_null("") == ""
        read, without = part.filter(~whole), part.filter(whole)
        if "" in questions:
            # One checklist for all responses, whatever they answer.
            shared = asked.filter(pl.col("question") == "").drop("question")
            without = without.join(shared, how="cross")
            read = read.join(shared, left_on="line", right_on="asked", how="left")
        else:
            without = without.join(asked, on="question", how="left")
            read = read.join(
                asked, left_on=["question", "line"], right_on=["question", "asked"], how="left"
            )
        without = without.with_columns(pl.col("asked").fill_null("?").alias("line")).drop("asked")
        both = pl.concat([read, without.select(read.columns)])
        return both.sort("slot", "place", "line", maintain_order=True, nulls_last=True).drop(
            "place"
        )

    def told(self) -> tuple[Text, ...]:
        """What of the store is no label, counted."""
        if self.missing:
            self.notices.append(
                say(
                    "{name}: {n} of {all} {are} not made yet. Run the same grade command again: "
                    "it asks only for what is missing.",
                    name=self.name,
                    n=self.missing,
                    all=plural(self.planned, "planned call"),
                    are="is" if self.missing == 1 else "are",
                )
            )
        if self.unread:
            self.notices.append(
                say(
                    "{name}: {n} not been read yet and {are} unparsed here: voirdire grade --reparse "
                    "reads the stored replies without a request.",
                    name=self.name,
                    n=plural(self.unread, "reply has", "replies have"),
                    are="is" if self.unread == 1 else "are",
                )
            )
        if self.old:
            self.notices.append(
                say(
                    "{name}: {n} under an earlier rubric, parameter or response; they stay in the store "
                    "and are not counted.",
                    name=self.name,
                    n=plural(self.old, "call was made", "calls were made"),
                )
            )
        return tuple(self.notices)


def _named(numbers: pl.Series, names: Mapping[int, str]) -> pl.Series:
    return numbers.replace_strict(
        list(names), list(names.values()), default="?", return_dtype=pl.String
    )


def _blank_to_null(column: str) -> pl.Expr:
    return pl.when(pl.col(column) != "").then(column).alias(column)


def _lines(card: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    lines = card.get("lines")
    if not isinstance(lines, dict):
        return {}
    return {
        str(question): [one for one in of if isinstance(one, dict)]
        for question, of in lines.items()
        if isinstance(of, list)
    }


def _with_tags(frame: pl.DataFrame) -> pl.DataFrame:
    """The other columns of the responses as columns; one that means something here is renamed."""
    if (frame["tags"].fill_null("") == "").all():
        return frame.drop("tags")
    # Votes and graders repeat the tags of a response: each text is read once.
    distinct = frame.select("tags").unique(maintain_order=True)
    read = [_read_json(text) if text else {} for text in distinct["tags"].to_list()]
    names = list(dict.fromkeys(name for tags in read for name in tags))
    taken = {*CANONICAL, *frame.columns}
    columns = {"tags": distinct["tags"]}
    for name in names:
        if name in ("cluster", "question", "question_id") and name in frame.columns:
            continue
        column = name
        while column in taken:
            column += " (column)"
        taken.add(column)
        cells = [None if (v := tags.get(name)) is None else str(v) for tags in read]
        columns[column] = pl.Series(column, cells, dtype=pl.String)
    return frame.join(pl.DataFrame(columns), on="tags", how="left", maintain_order="left").drop(
        "tags"
    )


def read(source: Source, options: Options) -> list[Rows]:
    """The verdicts that stand now, one row each; labels and checklists apart.

    Raises :class:`InputError` where the store is damaged, newer, or holds no call.
    """
    if options.layout not in ("auto", "long", "checklist"):
        raise UsageError(
            f"{printable(source.name)}: this is a grading store, which has a layout of its own. Leave "
            "--layout out."
        )
    with _opened(source) as db:
        store = _Store(source, db)
        made: list[Rows] = []
        for kind, part, card in store.kinds():
            frame = store.laid(kind, part, card)
            graders = tuple(frame["grader"].unique(maintain_order=True).to_list())
            order = tuple(name for name, _ in store.graders.values() if name in graders)
            made.append(
                Rows(
                    frame=frame,
                    name=source.name,
                    stem=source.stem,
                    sha256=_sha256(source),
                    layout=FORMAT,
                    kind=kind,
                    place=_place,
                    order=order,
                    facts={g: f for g, f in store.graders.values() if g in graders},
                    carried=_carried(card) if kind == "labels" else {},
                    notices=store.told() if not made else (),
                    seen=graders,
                    lines=_lines_of(frame, card) if kind == "checklist" else None,
                    logged=True,
                )
            )
    if not made:
        raise InputError(
            f"{printable(source.name)}: there is no finished call in this store"
            + (f" ({store.planned:,} are planned)" if store.planned else "")
            + ". Run voirdire grade first."
        )
    return made


def _place(row: int) -> Place:
    return Place(line=row + 1, unit="row")


def _carried(card: Mapping[str, Any]) -> dict[str, Any]:
    """The classes of the rubric: all of them, those that nobody gave too."""
    return {
        "ordered": bool(card.get("ordered", True)),
        "scale": [str(c) for c in card.get("scale", ())],
        "off_scale": [str(c) for c in card.get("off_scale", ())],
    }


def _lines_of(frame: pl.DataFrame, card: Mapping[str, Any]) -> Lines:
    questions = _lines(card)
    own = QUESTION in frame.columns
    return Lines(
        question="question" if own else "",
        said=True,
        order={q: tuple(str(one.get("id", "")) for one in of) for q, of in questions.items()},
        texts={
            (q, str(one.get("id", ""))): str(one.get("text", ""))
            for q, of in questions.items()
            for one in of
        },
        shared=not own,
    )


def look(source: Source, options: Options) -> list[dict[str, Any]]:
    """One entry a grader: its calls by how they ended."""
    with _opened(source) as db:
        rows = db.execute(
            "SELECT grader, status, count(*) FROM calls GROUP BY grader, status ORDER BY grader"
        ).fetchall()
    found: dict[str, list[tuple[str, int]]] = {}
    for grader, status, n in rows:
        found.setdefault(str(grader), []).append((str(status), int(n)))
    return [
        {
            "column": grader,
            "blank": 0,
            "distinct": len(values),
            "values": sorted(values, key=lambda v: (v[0] != DONE, -v[1])),
            "role": "grader",
        }
        for grader, values in found.items()
    ]


READER = Reader(
    name=FORMAT,
    title="grading store (voirdire grade)",
    suffixes=(".db", ".sqlite"),
    sniff=sniff,
    read=read,
    look=look,
)
