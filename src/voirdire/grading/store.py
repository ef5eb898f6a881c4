"""The store of a study: every finished call, once, in an SQLite database that survives ``kill -9``.

What is planned and not here is what is left to do; there is no other memory of a run. A call is claimed
by a lease before it is sent, so that several processes work on one store, and a lease of a process that
is gone is free at once. A reply that was paid for is never replaced. Failed calls are kept with every
attempt and are never verdicts; the next run asks them again. Readings stand apart from replies, so that
a better parser reads the same replies again without a request.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets as random_bytes
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from voirdire.errors import InputError, VoirdireError, unreadable
from voirdire.grading.base import Attempt, FailureKind, GraderSpec, Reading, Reply
from voirdire.grading.plan import Block, Plan, among
from voirdire.grading.secrets import environment_secrets, scrub
from voirdire.options import MISSING
from voirdire.readers._store_schema import (
    APPLICATION_ID,
    DONE,
    GRADER_BITS,
    MAGIC,
    PHRASING_BITS,
    SCHEMA,
    SETTLED,
    VERSION,
    VOTE_BITS,
)
from voirdire.wording import Name, Text, listed, plural, printable, say

Array = np.ndarray[Any, Any]

LEASE = 60.0  # seconds; renewed while a call is in flight
WAITS = 60.0  # seconds for another process that writes
ROWS = 50_000  # keys that are fetched at once
CHARACTERS_A_TOKEN = 4.0  # of English text, until the grader's own counts are known
SAMPLE = 200  # done calls whose counts of tokens stand for those to come
_HALF = re.compile("[\ud800-\udfff]")


class StoreFull(VoirdireError):
    """The disk is full (exit status 6): what was finished is safe, and the run can go on later."""

    exit_status = 6


class StoreBusy(VoirdireError):
    """Another process holds the store for longer than is waited (exit status 6)."""

    exit_status = 6


# --- rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A finished call, as it is stored and as it comes back.

    ``status`` is ``done`` or a :class:`FailureKind`; ``reply`` is there exactly where it is ``done``.
    ``cost`` is that of all attempts, ``None`` where it is not known. ``question`` is the item's, filled in
    where a call is read from the store.
    """

    key: bytes
    item: str
    response: bytes
    grader: str
    phrasing: str
    vote: int
    status: str = DONE
    reply: Reply | None = None
    message: str = ""
    attempts: tuple[Attempt, ...] = ()
    latency: float | None = None
    cost: float | None = None
    started: str = ""
    ended: str = ""
    raw: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A verdict that a new reading changes; ``line`` is empty for the whole reply. Before and after are a
    label, or the outcome with its reason where there is no label."""

    key: bytes
    item: str
    grader: str
    phrasing: str
    vote: int
    line: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reparsed:
    """What reading the stored replies again did: how many were read, and which verdicts changed."""

    replies: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What one grader has done and has to do. Tokens and cost are of what is to do: estimates, and
    ``None`` where nothing is known to make one from."""

    grader: str
    calls: int
    done: int
    failed: int
    to_do: int
    tokens_in: int
    tokens_out: int | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a run would do, before it asks anything.

    ``done`` are calls with a reply, ``settled`` those that ended without one and are not asked again
    (blocked, refused), ``failed`` those that failed before and are asked again; they are part of ``to_do``.
    ``notices`` say what changed since the last run of this store, by content.
    """

    calls: int
    done: int
    settled: int
    failed: int
    to_do: int
    graders: tuple[Expected, ...]
    notices: tuple[Text, ...] = ()

    @property
    def tokens(self) -> int | None:
        """Tokens in and out of all that is to do, estimated; ``None`` where not known."""
        told = [t for g in self.graders if g.to_do for t in (g.tokens_in, g.tokens_out)]
        return None if None in told else sum(t for t in told if t is not None)

    @property
    def cost(self) -> float | None:
        """The cost of all that is to do, estimated; ``None`` where a price or a count is not known."""
        told = [g.cost for g in self.graders if g.to_do]
        return None if None in told else sum(c for c in told if c is not None)


def now_utc(clock: Callable[[], float] = time.time) -> str:
    """The time as it is stored: UTC, ISO 8601 with microseconds, so that texts sort as times."""
    return datetime.fromtimestamp(clock(), UTC).isoformat(timespec="microseconds")


def _writable(text: str) -> str:
    """Text as a database can hold it; half of a surrogate pair becomes U+FFFD."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)


# --- who holds a lease --------------------------------------------------------------------------


def _born(pid: int) -> str:
    """When a process was started, where the system tells it: a pid alone comes back."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def _here() -> str:
    """The machine, and the container on it: process ids mean something only inside."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except (OSError, AttributeError):
        return socket.gethostname()


def _owner() -> str:
    pid = os.getpid()
    return json.dumps([_here(), pid, _born(pid), random_bytes.token_hex(4)])


def _gone(owner: str) -> bool:
    """Whether the process that holds a lease is surely gone. One on another machine never is, surely."""
    try:
        host, pid, born, _ = json.loads(owner)
    except (ValueError, TypeError):
        return False
    # On other systems signal 0 is not a question.
    if os.name != "posix" or host != _here() or not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return bool(born) and _born(pid) != born


# --- the store ----------------------------------------------------------------------------------


def _unusable(path: Path, what: str) -> InputError:
    return InputError(
        f"{printable(path.name)}: {what} Nothing was changed. Name another file with --store, or mend "
        "this one."
    )


def _check_head(path: Path) -> None:
    """Raise where a file is no store, or is cut off, before anything opens it for writing."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(unreadable(path, error, name=printable(path.name))) from error
    if not size:
        return
    if len(head) < 100 or not head.startswith(MAGIC):
        raise _unusable(path, "this is no grading store, or its beginning is damaged.")
    ours = int.from_bytes(head[68:72], "big")
    if ours != APPLICATION_ID:
        raise _unusable(path, "this is a database of another program, not a grading store.")
    page = int.from_bytes(head[16:18], "big")
    page = 65_536 if page == 1 else page
    pages = int.from_bytes(head[28:32], "big")
    journal = path.with_name(path.name + "-wal")
    # With a journal beside it, pages beyond the end may still be there.
    if size < page * pages and not (journal.exists() and journal.stat().st_size):
        raise _unusable(
            path,
            f"the store is cut off: it has {size:,} of {page * pages:,} bytes, as after a broken copy. "
            "Take a whole copy, or save what is left into a new file with the tool of SQLite: "
            f'sqlite3 {printable(path.name)} ".recover" | sqlite3 new.db.',
        )


class Store:
    """An open store. All methods may be called from several threads; each write is one transaction.

    Made by :meth:`open`; use it as a context manager.
    """

    def __init__(
        self,
        path: Path,
        db: sqlite3.Connection,
        secrets: Sequence[str],
        clock: Callable[[], float],
    ) -> None:
        self.path = path
        self.db = db
        self.owner = _owner()
        self.run = 0
        self.started = ""
        self._secrets = tuple(secrets)
        self._clock = clock
        self._lock = threading.RLock()
        self._lost: set[str] = set()  # owners that are known to be gone

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        secrets: Sequence[str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Store:
        """Open a store, or make a new one where there is no file.

        ``secrets`` are values that are never written; by default those of the environment variables
        whose names say so. Raises :class:`InputError` for a file that is no store, is damaged, or was
        written by a newer voirdire; nothing is changed then.
        """
        path = Path(path)
        _check_head(path)
        if not path.parent.is_dir():
            raise InputError(
                f"{printable(str(path.parent))}: there is no such folder for the store. Make it first."
            )
        secrets = environment_secrets() if secrets is None else secrets
        with _guarded(path):
            db = sqlite3.connect(path, timeout=WAITS, isolation_level=None, check_same_thread=False)
        try:
            with _guarded(path):
                _made_ready(path, db)
        except BaseException:
            db.close()
            raise
        return cls(path, db, secrets, clock)

    def close(self) -> None:
        """Give leases back and close; the journal is folded into the file where no one else has it."""
        with self._lock:
            with contextlib.suppress(VoirdireError):
                self.release()
            self.db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, all or nothing."""
        with self._lock, _guarded(self.path):
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    def _asked(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock, _guarded(self.path):
            return self.db.execute(query, values).fetchall()

    def now(self) -> str:
        """The time as it is stored."""
        return now_utc(self._clock)

    # --- what is there

    def _keys(self, query: str, values: Sequence[Any] = ()) -> Array:
        with self._lock, _guarded(self.path):
            cursor = self.db.execute(query, values)
            cursor.row_factory = None
            found = bytearray()
            while rows := cursor.fetchmany(ROWS):
                found += b"".join([row[0] for row in rows])
        return np.frombuffer(found, dtype=np.uint8).reshape(-1, 32)

    def settled(self) -> Array:
        """The keys of calls that are not asked again, ``(n, 32)``: those with a reply, and those that
        a provider blocked or refused."""
        return self._without_failed(self._keys("SELECT key FROM calls"))

    def _without_failed(self, keys: Array) -> Array:
        failed = self.failed()
        return keys[~among(keys, failed)] if len(failed) else keys

    def failed(self) -> Array:
        """The keys of calls that failed and are asked again, ``(n, 32)``."""
        marks = ", ".join("?" * len(SETTLED))
        return self._keys(
            f"SELECT key FROM calls WHERE status <> 'done' AND status NOT IN ({marks})", SETTLED
        )

    def left(self, plan: Plan) -> Array:
        """The positions of a plan that are still to be asked, in the order of asking."""
        return plan.left(self.settled())

    def counts(self) -> dict[str, int]:
        """How many calls ended how, over all runs: by status, ``done`` first."""
        rows = self._asked(
            "SELECT status, count(*) FROM calls WHERE status <> 'done' GROUP BY status"
        )
        total = int(self._asked("SELECT count(*) FROM calls")[0][0])
        return {DONE: total - sum(n for _, n in rows), **{str(s): int(n) for s, n in rows}}

    def call(self, key: bytes) -> Call | None:
        """One call by its key."""
        return next(self._calls("WHERE c.key = ?", (key,)), None)

    def calls(self) -> Iterator[Call]:
        """All calls, in the order in which they ended."""
        yield from self._calls("", ())

    def _calls(self, where: str, values: Sequence[Any]) -> Iterator[Call]:
        # In windows of rows, so that nothing is held open while calls are recorded.
        last = -1
        joined = "AND" if where else "WHERE"
        while True:
            rows = self._asked(
                f"SELECT c.rowid, {_CALL_COLUMNS}, coalesce(i.question, '') FROM calls c "
                f"LEFT JOIN items i ON i.id = c.item {where} {joined} c.rowid > ? "
                "ORDER BY c.rowid LIMIT 1000",
                (*values, last),
            )
            for row in rows:
                last = row[0]
                yield _call(row[1:])
            if len(rows) < 1000:
                return

    # --- runs

    def outlook(self, plan: Plan) -> Outlook:
        """What a run of the plan would do; nothing is written."""
        everything = self._keys("SELECT key FROM calls")
        failed_keys = self.failed()
        not_done = self._keys("SELECT key FROM calls WHERE status <> 'done'")
        here = among(plan.keys, everything)
        failed = among(plan.keys, failed_keys)
        done = here & ~among(plan.keys, not_done)
        graders = []
        for block in plan.blocks:
            part = slice(block.start, block.start + len(plan.items) * block.per_item)
            to_do = np.flatnonzero(~here[part] | failed[part])
            graders.append(
                self._expected(
                    plan,
                    block,
                    to_do + block.start,
                    done=int(done[part].sum()),
                    calls=part.stop - part.start,
                    failed=int(failed[part].sum()),
                )
            )
        return Outlook(
            calls=len(plan),
            done=int(done.sum()),
            settled=int((here & ~done & ~failed).sum()),
            failed=int(failed.sum()),
            to_do=int((~here | failed).sum()),
            graders=tuple(graders),
            notices=self.changes(plan),
        )

    def _expected(
        self, plan: Plan, block: Block, positions: Array, *, done: int, calls: int, failed: int
    ) -> Expected:
        spec, n = block.grader, len(positions)
        tokens_in = 0
        tokens_out: int | None = 0
        if n and block.talks:
            tokens_in, tokens_out = self._tokens(plan, spec, positions, known=done > 0)
        cost = None
        if not n or not block.talks:
            cost = 0.0
        elif tokens_out is not None:
            cost = _price(spec, tokens_in, tokens_out)
        return Expected(
            grader=spec.name,
            calls=calls,
            done=done,
            failed=failed,
            to_do=n,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost=cost,
        )

    def _tokens(
        self, plan: Plan, spec: GraderSpec, positions: Array, *, known: bool
    ) -> tuple[int, int | None]:
        """Tokens in and out of calls: by what this grader took so far, else by characters and limit."""
        characters = int(plan.characters(positions).sum())
        limit = spec.parameters.get("max_completion_tokens", spec.parameters.get("max_tokens"))
        out = int(limit) * len(positions) if isinstance(limit, int) else None
        if known:
            rows = self._asked(
                "SELECT avg(tokens_out), count(tokens_out) FROM (SELECT tokens_out FROM calls WHERE "
                "grader = ? AND status = 'done' ORDER BY rowid DESC LIMIT ?)",
                (spec.name, SAMPLE),
            )
            if rows and rows[0][1]:
                out = round(rows[0][0] * len(positions))
        return round(characters / CHARACTERS_A_TOKEN), out

    def last_run(self) -> Mapping[str, Any]:
        """The facts of the last run (``responses``, ``rubric``, ``graders`` …); empty for a new store."""
        rows = self._asked("SELECT facts FROM runs ORDER BY id DESC LIMIT 1")
        return dict(json.loads(rows[0][0])) if rows else {}

    def changes(self, plan: Plan) -> tuple[Text, ...]:
        """What differs from the last run of this store, by content and not by the names of files."""
        before = self.last_run()
        if not before:
            return ()
        facts = _facts(plan)
        notices: list[Text] = []
        if before["responses"] != facts["responses"]:
            notices += self._changed_items(plan)
        if before["rubric"] != facts["rubric"]:
            notices.append(
                say(
                    "The rubric ({name}) is not the one of the last run{old}: what its messages say "
                    "anew is asked anew, and labels under the old wording no longer count.",
                    name=Name(facts["name"]),
                    old=(" (", Name(before["name"]), ")")
                    if before["name"] != facts["name"]
                    else "",
                )
            )
        changed = [
            name
            for name, digest in facts["graders"].items()
            if before["graders"].get(name, digest) != digest
        ]
        if changed:
            notices.append(
                say(
                    "{graders} {have} other settings than in the last run and {are} asked anew; the old "
                    "labels stay in the store and no longer count.",
                    graders=listed(changed),
                    have="has" if len(changed) == 1 else "have",
                    are="is" if len(changed) == 1 else "are",
                )
            )
        return tuple(notices)

    def _changed_items(self, plan: Plan) -> list[Text]:
        with self._lock, _guarded(self.path):
            self._stage(plan)
            ((known, changed),) = self.db.execute(
                "SELECT count(*), coalesce(sum(i.hash <> n.hash), 0) FROM temp.present n "
                "JOIN items i ON i.id = n.id"
            ).fetchall()
            ((total,),) = self.db.execute("SELECT count(*) FROM items").fetchall()
        notices = []
        if changed:
            notices.append(
                say(
                    "{n} another content than in an earlier run of this store and {are} graded anew.",
                    n=plural(changed, "response has", "responses have"),
                    are="is" if changed == 1 else "are",
                )
            )
        if len(plan.items) > known:
            notices.append(
                say(
                    "{n} new to this store.",
                    n=plural(len(plan.items) - known, "response is", "responses are"),
                )
            )
        if total > known:
            notices.append(
                say(
                    "{n} of earlier runs not among these responses; {their} labels stay in the store "
                    "and count in its audit.",
                    n=plural(total - known, "response is", "responses are"),
                    their="its" if total - known == 1 else "their",
                )
            )
        return notices

    def _stage(self, plan: Plan) -> None:
        """The items of a plan as a temporary table, which is in no file of the store."""
        self.db.execute(
            "CREATE TEMP TABLE IF NOT EXISTS present (no INTEGER PRIMARY KEY, id TEXT, hash BLOB)"
        )
        self.db.execute("DELETE FROM temp.present")
        hashes = plan.contents
        self.db.executemany(
            "INSERT INTO temp.present VALUES (?, ?, ?)",
            ((i, id, hashes[i].tobytes()) for i, id in enumerate(plan.items.frame["id"].to_list())),
        )

    def begin(self, plan: Plan) -> int:
        """Write down that a run of this plan begins, with what it plans; the number of the run.

        From here on the slots of the store are those of the plan: where a response, a rubric or a
        grader changed, they point to the new calls.
        """
        facts = _facts(plan)
        self.started = self.now()
        with self._writing() as db:
            last = db.execute("SELECT study FROM runs ORDER BY id DESC LIMIT 1").fetchone()
            cursor = db.execute(
                "INSERT INTO runs (study, rubric, facts, owner, started) VALUES (?, ?, ?, ?, ?)",
                (
                    plan.digest,
                    _json(plan.wording.card),
                    _json(facts),
                    self.owner,
                    self.started,
                ),
            )
            self.run = int(cursor.lastrowid or 0)
            if last is None or last[0] != plan.digest:
                self._lay_down(db, plan)
        return self.run

    def _lay_down(self, db: sqlite3.Connection, plan: Plan) -> None:
        """Items, graders, phrasings and slots of a plan."""
        items = self._item_numbers(db, plan)
        graders = {
            block.grader.name: self._number(
                db, "graders", block.grader.name, _json(_grader_facts(plan, block.grader.name))
            )
            for block in plan.blocks
        }
        phrasings = {name: self._number(db, "phrasings", name) for name in plan.phrasings}
        slots = np.empty(len(plan), dtype=np.int64)
        for block in plan.blocks:
            # As in _store_schema.slot, for all calls of a grader at once.
            inner = np.array([phrasings[p] for p in block.phrasings], dtype=np.int64)
            votes = np.arange(1, block.votes + 1, dtype=np.int64)
            base = items << GRADER_BITS | graders[block.grader.name]
            made = (base[:, None, None] << PHRASING_BITS | inner[None, :, None]) << VOTE_BITS
            made = made | votes[None, None, :]
            slots[block.start : block.start + made.size] = made.ravel()
        empty = db.execute("SELECT 1 FROM slots LIMIT 1").fetchone() is None
        # In the order of the table, in which inserting is fastest.
        order = np.argsort(slots, kind="stable")
        db.executemany(
            "INSERT INTO slots VALUES (?, ?, ?) ON CONFLICT (slot) DO UPDATE SET key = excluded.key, "
            "run = excluded.run",
            _slot_rows(slots, plan.keys, order, self.run),
        )
        if empty:
            return
        stray = db.execute("SELECT 1 FROM slots WHERE run <> ? LIMIT 1", (self.run,)).fetchone()
        if stray is not None:
            # The same call under another name: a grader or phrasing was renamed.
            db.execute(
                "DELETE FROM slots WHERE run <> ?1 AND key IN (SELECT key FROM slots WHERE run = ?1)",
                (self.run,),
            )

    def _item_numbers(self, db: sqlite3.Connection, plan: Plan) -> Array:
        """Bring the items of the plan into the store; their numbers there, ``(responses,)``."""
        items = plan.items
        known = db.execute("SELECT 1 FROM items LIMIT 1").fetchone() is not None
        db.executemany(
            "INSERT INTO items (id, hash, cluster, question, tags) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, cluster = excluded.cluster, "
            "question = excluded.question, tags = excluded.tags",
            _item_rows(plan),
        )
        if not known:
            # A new table numbers its rows from 1, in the order in which they come.
            return np.arange(1, len(items) + 1, dtype=np.int64)
        self._stage(plan)
        rows = db.execute(
            "SELECT i.no FROM temp.present n JOIN items i ON i.id = n.id ORDER BY n.no"
        ).fetchall()
        return np.fromiter((r[0] for r in rows), dtype=np.int64, count=len(rows))

    def _number(
        self, db: sqlite3.Connection, table: str, name: str, facts: str | None = None
    ) -> int:
        row = db.execute(f"SELECT no FROM {table} WHERE name = ?", (name,)).fetchone()
        if row is None:
            values = (name,) if facts is None else (name, facts)
            columns = "(name)" if facts is None else "(name, facts)"
            marks = ", ".join("?" * len(values))
            cursor = db.execute(f"INSERT INTO {table} {columns} VALUES ({marks})", values)
            number = int(cursor.lastrowid or 0)
        else:
            number = int(row[0])
            if facts is not None:
                db.execute(f"UPDATE {table} SET facts = ? WHERE no = ?", (facts, number))
        bits = GRADER_BITS if table == "graders" else PHRASING_BITS
        if number >= 1 << bits:
            raise InputError(
                f"{printable(self.path.name)}: this store has seen {number - 1:,} {table}, which is as "
                "many as it can hold. Begin another store with --store."
            )
        return number

    def forget_unanswered(self, plan: Plan) -> None:
        """Take what was planned for graders that never answered out of the labels.

        For a run that was stopped by a wrong key, model or address: what it planned under a wrong name would
        be missing in every later audit. The next run of the plan lays it down again.
        """
        silent = [g.grader for g in self.outlook(plan).graders if g.calls and not g.done]
        if not silent:
            return
        inner = VOTE_BITS + PHRASING_BITS
        with self._writing() as db:
            for name in silent:
                row = db.execute("SELECT no FROM graders WHERE name = ?", (name,)).fetchone()
                if row is None:
                    continue
                of_grader = "(slot >> ?1) & ?2 = ?3"
                values = (inner, (1 << GRADER_BITS) - 1, row[0])
                db.execute(
                    "DELETE FROM calls WHERE status = 'fatal' AND key IN "
                    f"(SELECT key FROM slots WHERE {of_grader})",
                    values,
                )
                db.execute(
                    f"DELETE FROM slots WHERE {of_grader} AND key NOT IN (SELECT key FROM calls)",
                    values,
                )
            db.execute("UPDATE runs SET study = '' WHERE id = ?", (self.run,))

    def note(self, grader: str, changed: Mapping[str, Any]) -> None:
        """Keep what was changed for a grader in this run: parameters that its endpoint refuses."""
        with self._writing() as db:
            row = db.execute("SELECT graders FROM runs WHERE id = ?", (self.run,)).fetchone()
            if row is None:
                raise VoirdireError("A run must begin before something is noted of it.")
            notes = {**json.loads(row[0]), grader: dict(changed)}
            text = scrub(_json(notes), self._secrets, shapes=False)
            db.execute("UPDATE runs SET graders = ? WHERE id = ?", (text, self.run))

    def notes(self) -> dict[str, Mapping[str, Any]]:
        """What was noted of each grader, the last note of each over all runs."""
        notes: dict[str, Mapping[str, Any]] = {}
        for (text,) in self._asked("SELECT graders FROM runs ORDER BY id"):
            notes.update(json.loads(text))
        return notes

    def end(self, ending: str) -> None:
        """Write down that the run has ended, and how (``complete``, ``stopped``, …)."""
        with self._writing() as db:
            db.execute(
                "UPDATE runs SET ended = ?, ending = ? WHERE id = ?",
                (self.now(), scrub(ending, self._secrets), self.run),
            )
            db.execute("DELETE FROM leases WHERE owner = ?", (self.owner,))

    # --- leases

    def claim(self, keys: Iterable[bytes], *, seconds: float = LEASE) -> list[bytes]:
        """Those of the calls that are now this process's to send, for so many seconds.

        Left out are calls that are settled, that failed since this run began (in another process), and
        that another process holds. Claims of a process that is gone, or too old, are free.
        """
        now = self._clock()
        mine: list[bytes] = []
        with self._writing() as db:
            db.execute("DELETE FROM leases WHERE until < ?", (now,))
            for (owner,) in db.execute("SELECT DISTINCT owner FROM leases").fetchall():
                if owner != self.owner and (owner in self._lost or _gone(owner)):
                    self._lost.add(owner)
                    db.execute("DELETE FROM leases WHERE owner = ?", (owner,))
            for key in keys:
                row = db.execute("SELECT status, ended FROM calls WHERE key = ?", (key,)).fetchone()
                if row is not None and (
                    row[0] in SETTLED or (self.started and row[1] >= self.started)
                ):
                    continue
                taken = db.execute(
                    "INSERT INTO leases VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING",
                    (key, self.owner, now + seconds),
                )
                if taken.rowcount:
                    mine.append(key)
        return mine

    def renew(self, *, seconds: float = LEASE) -> None:
        """Hold all claims of this process for so many seconds more."""
        with self._writing() as db:
            db.execute(
                "UPDATE leases SET until = ? WHERE owner = ?",
                (self._clock() + seconds, self.owner),
            )

    def release(self, keys: Iterable[bytes] | None = None) -> None:
        """Give claims back: these, or all of this process."""
        with self._writing() as db:
            if keys is None:
                db.execute("DELETE FROM leases WHERE owner = ?", (self.owner,))
            else:
                db.executemany(
                    "DELETE FROM leases WHERE key = ? AND owner = ?",
                    ((key, self.owner) for key in keys),
                )

    def held_by_others(self) -> tuple[int, float]:
        """How many calls other processes hold now, and in how many seconds the first claim ends."""
        now = self._clock()
        rows = self._asked(
            "SELECT owner, until FROM leases WHERE owner <> ? AND until >= ?", (self.owner, now)
        )
        held = [until for owner, until in rows if not _gone(owner)]
        return len(held), max(0.0, min(held) - now) if held else 0.0

    # --- calls

    def record(self, call: Call, reading: Reading | None = None, *, reader: str = "") -> bool:
        """Keep a finished call; whether it is new. ``reading`` is what ``reader`` made of its reply.

        A call that has a reply already keeps it, whatever comes later. One that had failed keeps its
        earlier attempts and what they cost.
        """
        return self.record_all([(call, reading)], reader=reader) == 1

    def record_all(self, calls: Sequence[tuple[Call, Reading | None]], *, reader: str = "") -> int:
        """Keep finished calls in one transaction; how many were new."""
        return sum(self.record_each(calls, reader=reader))

    def record_each(
        self, calls: Sequence[tuple[Call, Reading | None]], *, reader: str = ""
    ) -> list[bool]:
        """As :meth:`record_all`; whether each was new."""
        new: list[bool] = []
        with self._writing() as db:
            for call, reading in calls:
                kept = self._keep(db, call)
                new.append(bool(kept))
                # A second reply of one call is dropped, and so is what was read in it.
                if kept and reading is not None and call.status == DONE:
                    db.executemany(_INSERT_READING, _reading_rows(call.key, reading, reader))
        return new

    def _keep(self, db: sqlite3.Connection, call: Call) -> int:
        if (call.reply is not None) != (call.status == DONE):
            raise VoirdireError("A call is done exactly where it has a reply.")
        db.execute("DELETE FROM leases WHERE key = ?", (call.key,))
        old = db.execute(
            "SELECT status, attempts, cost FROM calls WHERE key = ?", (call.key,)
        ).fetchone()
        if old is not None and old[0] == DONE:
            return 0
        attempts = [asdict(a) for a in call.attempts]
        cost = call.cost
        if old is not None:
            attempts = [*json.loads(old[1]), *attempts]
            cost = None if cost is None or old[2] is None else cost + old[2]
            db.execute("DELETE FROM calls WHERE key = ?", (call.key,))
        db.execute(_INSERT_CALL, self._row(call, attempts, cost))
        return 1

    def _row(
        self, call: Call, attempts: list[dict[str, Any]], cost: float | None
    ) -> tuple[Any, ...]:
        known, ended = self._secrets, call.ended or self.now()

        def kept(text: str) -> str:
            return _writable(scrub(text, known, shapes=False))

        def told(text: str) -> str:
            return _writable(scrub(text, known))

        for attempt in attempts:
            attempt["message"] = told(attempt.get("message", ""))
        reply = call.reply if call.reply is not None else Reply(text=None, raw=call.raw)
        return (
            call.key,
            _writable(call.item),
            call.response,
            call.grader,
            call.phrasing,
            call.vote,
            str(call.status),
            told(call.message),
            None if reply.text is None else kept(reply.text),
            kept(reply.reasoning),
            kept(reply.refusal),
            kept(reply.tool_arguments),
            kept(reply.finish),
            kept(reply.model),
            kept(reply.fingerprint),
            reply.tokens_in,
            reply.tokens_out,
            None if reply.logprobs is None else kept(_json(dict(reply.logprobs))),
            kept(reply.raw) if call.status == DONE else told(reply.raw),
            _json(attempts),
            call.latency,
            cost,
            self.run,
            call.started or ended,
            ended,
        )

    # --- readings

    def unread(self, reader: str) -> int:
        """How many stored replies were not read by this reader: never, or by another parser or rubric."""
        ((done,),) = self._asked("SELECT count(*) FROM calls WHERE status = 'done'")
        ((read,),) = self._asked(
            "SELECT count(DISTINCT key) FROM readings WHERE reader = ?", (reader,)
        )
        return max(0, int(done) - int(read))

    def read_by_another(self, reader: str) -> Array:
        """The keys of replies whose reading is another reader's, ``(n, 32)``."""
        return self._keys("SELECT DISTINCT key FROM readings WHERE reader <> ?", (reader,))

    def outcomes(self, plan: Plan) -> dict[str, int]:
        """How the calls of a plan have ended over all runs: outcome and count, most frequent first.

        Blocked calls are ``blocked``, all others without a reply ``error``; a reply that was never read
        is ``unparsed``. A reply to a checklist is ``label`` where one line was read. Calls that were not
        made are in none.
        """
        keys = plan.keys
        left = among(keys, self._keys("SELECT key FROM calls"))
        found: dict[str, int] = {}

        def count(outcome: str, some: Array) -> None:
            nonlocal left
            here = left & among(keys, some)
            left = left & ~here
            if n := int(here.sum()):
                found[outcome] = found.get(outcome, 0) + n

        count("blocked", self._keys("SELECT key FROM calls WHERE status = 'blocked'"))
        count("error", self._keys("SELECT key FROM calls WHERE status <> 'done'"))
        count("label", self._keys("SELECT DISTINCT key FROM readings WHERE line <> ''"))
        for (outcome,) in self._asked("SELECT DISTINCT outcome FROM readings WHERE line = ''"):
            wanted = "SELECT key FROM readings WHERE line = '' AND outcome = ?"
            count(str(outcome), self._keys(wanted, (outcome,)))
        if n := int(left.sum()):
            found["unparsed"] = found.get("unparsed", 0) + n
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def graders(self) -> tuple[str, ...]:
        """The names of the graders that have labels or planned calls now, in order of appearance."""
        shift, mask = VOTE_BITS + PHRASING_BITS, (1 << GRADER_BITS) - 1
        rows = self._asked(
            "SELECT name FROM graders WHERE no IN (SELECT DISTINCT (slot >> ?) & ? FROM slots) "
            "ORDER BY no",
            (shift, mask),
        )
        return tuple(str(name) for (name,) in rows)

    def reparse(
        self,
        read: Callable[[Call], Reading],
        reader: str,
        *,
        only: Array | None = None,
        all_again: bool = True,
    ) -> Reparsed:
        """Read stored replies again, without a request, and say which verdicts changed.

        ``only`` ``(n, 32)`` are the keys to read (those of a plan: other rubrics are not this reader's);
        ``all_again=False`` reads only what ``reader`` has not read yet. A first reading is no change.
        """
        wanted = None if only is None else {k.tobytes() for k in only}
        current = set()
        if not all_again:
            current = {
                k
                for (k,) in self._asked(
                    "SELECT DISTINCT key FROM readings WHERE reader = ?", (reader,)
                )
            }
        changes: list[Change] = []
        replies = 0
        batch: list[tuple[Call, Reading]] = []
        for call in self._calls("WHERE c.status = ?", (DONE,)):
            if (wanted is not None and call.key not in wanted) or call.key in current:
                continue
            replies += 1
            batch.append((call, read(call)))
            if len(batch) == 1000:
                changes += self._reread(batch, reader)
                batch.clear()
        changes += self._reread(batch, reader)
        return Reparsed(replies=replies, changes=tuple(changes))

    def _reread(self, batch: Sequence[tuple[Call, Reading]], reader: str) -> list[Change]:
        changes: list[Change] = []
        with self._writing() as db:
            for call, reading in batch:
                old = {
                    line: _shown(label, outcome, reason)
                    for line, label, outcome, reason in db.execute(
                        "SELECT line, label, outcome, reason FROM readings WHERE key = ?",
                        (call.key,),
                    )
                }
                rows = _reading_rows(call.key, reading, reader)
                new = {r[1]: _shown(r[2], r[3], r[4]) for r in rows}
                for line in dict.fromkeys([*old, *new]) if old else ():
                    before, after = old.get(line, ""), new.get(line, "")
                    if before != after:
                        changes.append(
                            Change(
                                key=call.key,
                                item=call.item,
                                grader=call.grader,
                                phrasing=call.phrasing,
                                vote=call.vote,
                                line=line,
                                before=before,
                                after=after,
                            )
                        )
                db.execute("DELETE FROM readings WHERE key = ?", (call.key,))
                db.executemany(_INSERT_READING, rows)
        return changes

    def readings(self) -> Iterator[tuple[bytes, str, str | None, str, str]]:
        """All readings: key, line, label, outcome, reason."""
        yield from self._asked(
            "SELECT key, line, label, outcome, reason FROM readings ORDER BY key, line"
        )


_COLUMNS = (
    *("key", "item", "response", "grader", "phrasing", "vote", "status", "message", "text"),
    *("reasoning", "refusal", "tool_arguments", "finish", "model", "fingerprint", "tokens_in"),
    *("tokens_out", "logprobs", "raw", "attempts", "latency", "cost", "run", "started", "ended"),
)
_INSERT_CALL = (
    f"INSERT INTO calls ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
)
_CALL_COLUMNS = ", ".join(f"c.{name}" for name in _COLUMNS)
_INSERT_READING = "INSERT INTO readings VALUES (?, ?, ?, ?, ?, ?)"


def _price(spec: GraderSpec, tokens_in: int, tokens_out: int) -> float | None:
    if spec.price_in is None or spec.price_out is None:
        return None
    return (tokens_in * spec.price_in + tokens_out * spec.price_out) / 1e6


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True)


def _call(row: Sequence[Any]) -> Call:
    one = dict(zip((*_COLUMNS, "question"), row, strict=True))
    reply = None
    if one["status"] == DONE:
        reply = Reply(
            text=one["text"],
            reasoning=one["reasoning"],
            finish=one["finish"],
            refusal=one["refusal"],
            tool_arguments=one["tool_arguments"],
            model=one["model"],
            fingerprint=one["fingerprint"],
            tokens_in=one["tokens_in"],
            tokens_out=one["tokens_out"],
            logprobs=None if one["logprobs"] is None else json.loads(one["logprobs"]),
            raw=one["raw"],
        )
    return Call(
        reply=reply,
        attempts=tuple(Attempt(**a) for a in json.loads(one["attempts"])),
        **{
            name: one[name]
            for name in (
                *("key", "item", "response", "grader", "phrasing", "vote", "status", "message"),
                *("latency", "cost", "started", "ended", "raw", "question"),
            )
        },
    )


def _reading_rows(
    key: bytes, reading: Reading, reader: str
) -> list[tuple[bytes, str, str | None, str, str, str]]:
    """The rows of a reading: one for the reply, or one for each line of a checklist that was read."""
    reason = _writable(reading.reason)
    if reading.outcome == "label" and reading.lines:
        return [
            (
                key,
                _writable(line),
                verdict,
                "label" if verdict is not None else reading.unread.get(line, MISSING),
                "",
                reader,
            )
            for line, verdict in reading.lines.items()
        ]
    return [(key, "", reading.label, reading.outcome, reason, reader)]


def _shown(label: str | None, outcome: str, reason: str) -> str:
    if label is not None and outcome == "label":
        return label
    return f"{outcome}: {reason}" if reason else outcome


def _facts(plan: Plan) -> dict[str, Any]:
    """What a run is compared by with the next one."""
    card = plan.wording.card
    return {
        "responses": plan.response_digest,
        "file": plan.items.name,
        "sha256": plan.items.sha256,
        "rubric": card["digest"],
        "name": card["name"],
        "graders": {b.grader.name: b.digest for b in plan.blocks},
        "calls": len(plan),
        "empty": plan.items.empty,
        "skipped": plan.items.skipped,
        "repeated": plan.items.repeated,
        "seed": plan.study.seed,
    }


def _grader_facts(plan: Plan, name: str) -> dict[str, Any]:
    """What is known of a grader, for the audit: plain values under the names that ``--about`` takes."""
    block = next(b for b in plan.blocks if b.grader.name == name)
    spec = block.grader
    card = plan.wording.card
    facts: dict[str, Any] = {
        "model": spec.model or spec.provider,
        "provider": spec.provider,
        "prompt": f"{card['name']} ({card['digest'][:12]})",
        "votes": block.votes,
        "phrasings": len(block.phrasings),
    }
    for parameter, value in spec.parameters.items():
        if isinstance(value, str | int | float) and parameter not in facts:
            facts[parameter] = value
    if "temperature" not in facts:
        facts["temperature"] = "as the endpoint sets it"
    return facts


def _item_rows(plan: Plan) -> Iterator[tuple[str, bytes, str, str, str]]:
    items, hashes = plan.items, plan.contents
    bare = not items.tags.width
    rows = items.frame.select("id", "cluster", "question").iter_rows()
    tags = items.tags.iter_rows() if not bare else None
    names = items.tags.columns
    for i, (id, cluster, question) in enumerate(rows):
        text = ""
        if tags is not None:
            cells = {n: c for n, c in zip(names, next(tags), strict=True) if c is not None}
            text = _json(cells) if cells else ""
        yield id, hashes[i].tobytes(), cluster, question, text


def _slot_rows(
    slots: Array, keys: Array, order: Array, run: int
) -> Iterator[tuple[int, bytes, int]]:
    for start in range(0, len(order), ROWS):
        part = order[start : start + ROWS]
        content = keys[part].tobytes()
        for i, slot in enumerate(slots[part].tolist()):
            yield slot, content[32 * i : 32 * i + 32], run


# --- opening ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _guarded(path: Path) -> Iterator[None]:
    """Turn the errors of SQLite into ours; the file is left as it is."""
    name = printable(path.name)
    try:
        yield
    except sqlite3.Error as error:
        said = str(error)
        lower = said.lower()
        if "full" in lower or "disk i/o" in lower:
            raise StoreFull(
                f"{name}: the store cannot be written: {said}. What was finished before is safe. Make "
                "room on the disk and run the same command again: it asks only for what is missing."
            ) from error
        if "locked" in lower or "busy" in lower:
            raise StoreBusy(
                f"{name}: another process holds the store ({said}). Run the same command again when it "
                "is done; nothing is lost."
            ) from error
        if "readonly" in lower or "read-only" in lower or "unable to open" in lower:
            raise InputError(
                f"{name}: the store cannot be opened for writing ({said}). Check the rights on the file "
                "and its folder, or name another with --store."
            ) from error
        if "malformed" in lower or "not a database" in lower or "corrupt" in lower:
            raise _unusable(
                path,
                f"the store is damaged ({said}). Take a whole copy, or save what is left into a new "
                f'file with the tool of SQLite: sqlite3 {name} ".recover" | sqlite3 new.db.',
            ) from error
        raise VoirdireError(f"{name}: the store could not be used: {said}.") from error


def _version(path: Path, db: sqlite3.Connection) -> int:
    """The version of the tables, 0 for a new file; raises where it is not ours or newer."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (ours,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if ours != APPLICATION_ID and (version or tables):
        raise _unusable(path, "this is a database of another program, not a grading store.")
    if version > VERSION:
        raise _unusable(
            path,
            f"it was written by a newer voirdire (tables of version {version}; this one knows "
            f"{VERSION}). Update voirdire.",
        )
    return int(version)


def _made_ready(path: Path, db: sqlite3.Connection) -> None:
    db.execute("PRAGMA trusted_schema = OFF")
    if _version(path, db) == 0:
        db.execute("BEGIN EXCLUSIVE")
        try:
            if _version(path, db) == 0:  # no other process was first
                for statement in SCHEMA.split(";\n"):
                    if statement.strip():
                        db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {VERSION}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    _into_wal(db)
    # A process that is killed loses nothing with NORMAL; a machine that loses power may lose the last
    # calls, and never the database (SQLite documentation, PRAGMA synchronous).
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA cache_size = -32768")


def _into_wal(db: sqlite3.Connection) -> None:
    for wait in (0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0):
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            # Two processes that open a new file at once: SQLite does not wait here.
            if "locked" not in str(error).lower():
                raise
            time.sleep(wait)
    db.execute("PRAGMA journal_mode = WAL").fetchone()


FAILURES = tuple(str(k) for k in FailureKind)
__all__ = [
    "DONE",
    "FAILURES",
    "LEASE",
    "Attempt",
    "Call",
    "Change",
    "Expected",
    "Outlook",
    "Reparsed",
    "Store",
    "StoreBusy",
    "StoreFull",
    "now_utc",
]
