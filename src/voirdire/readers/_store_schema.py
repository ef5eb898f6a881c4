"""The tables of a grading store: the one place that the store, which writes, and the reader share.

A store is an SQLite database. Times are UTC in ISO 8601. ``calls`` has one row a finished call and is
never emptied; ``slots`` says which call stands now for a response, grader, phrasing and vote, and is
all that an audit looks at: when a rubric, a parameter or a response changes, the slot points to another
call, and the old call stays.
"""

from __future__ import annotations

APPLICATION_ID = 0x566F6972  # "Voir"; bytes 68 to 71 of the file
VERSION = 1
MAGIC = b"SQLite format 3\x00"

DONE = "done"
# How a call ended that is not asked again, though it brought no reply: see FailureKind.
SETTLED = (DONE, "blocked", "too_long", "other")

# A slot is one number, so that a million of them are small and join fast.
VOTE_BITS, PHRASING_BITS, GRADER_BITS = 12, 8, 11
MOST_VOTES = (1 << VOTE_BITS) - 1
MOST_PHRASINGS = 1 << PHRASING_BITS
MOST_GRADERS = 1 << GRADER_BITS
MOST_ITEMS = 1 << (62 - VOTE_BITS - PHRASING_BITS - GRADER_BITS)

TABLES = ("runs", "items", "graders", "phrasings", "calls", "slots", "leases", "readings")
SCHEMA = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    study TEXT NOT NULL,              -- digest of all that was planned; rubric: its facts as JSON
    rubric TEXT NOT NULL,
    facts TEXT NOT NULL,              -- of the run: versions, counts, what was changed, as JSON
    graders TEXT NOT NULL DEFAULT '{}', -- by grader: parameters that were dropped or renamed, as JSON
    owner TEXT NOT NULL,
    started TEXT NOT NULL,
    ended TEXT,
    ending TEXT NOT NULL DEFAULT ''
);
CREATE TABLE items (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    hash BLOB NOT NULL,
    cluster TEXT NOT NULL DEFAULT '',
    question TEXT NOT NULL DEFAULT '',
    tags TEXT NOT NULL DEFAULT ''     -- as JSON, empty for none
);
CREATE TABLE graders (no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
CREATE TABLE phrasings (no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE calls (
    key BLOB NOT NULL UNIQUE,         -- SHA-256 of all that decides the answer
    item TEXT NOT NULL,
    response BLOB NOT NULL,           -- SHA-256 of the response
    grader TEXT NOT NULL,
    phrasing TEXT NOT NULL,
    vote INTEGER NOT NULL,
    status TEXT NOT NULL,             -- done, or the kind of failure
    message TEXT NOT NULL DEFAULT '', -- of a failure
    text TEXT,
    reasoning TEXT NOT NULL DEFAULT '',
    refusal TEXT NOT NULL DEFAULT '',
    tool_arguments TEXT NOT NULL DEFAULT '',
    finish TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',   -- that answered
    fingerprint TEXT NOT NULL DEFAULT '',
    tokens_in INTEGER,
    tokens_out INTEGER,
    logprobs TEXT,                    -- as JSON
    raw TEXT NOT NULL DEFAULT '',
    attempts TEXT NOT NULL DEFAULT '[]', -- each with status and time, as JSON, over all runs
    latency REAL,                     -- seconds, of the attempt that ended the call
    cost REAL,                        -- of all attempts; null: not known
    run INTEGER NOT NULL,
    started TEXT NOT NULL,
    ended TEXT NOT NULL
);
-- Small, and all that a restart must read beside the keys themselves.
CREATE INDEX calls_not_done ON calls (status, key) WHERE status <> 'done';
CREATE TABLE slots (
    slot INTEGER PRIMARY KEY,         -- item, grader, phrasing, vote
    key BLOB NOT NULL,
    run INTEGER NOT NULL              -- that planned it last
);
CREATE TABLE leases (
    key BLOB PRIMARY KEY,
    owner TEXT NOT NULL,
    until REAL NOT NULL               -- seconds since 1970
) WITHOUT ROWID;
CREATE TABLE readings (
    key BLOB NOT NULL,
    line TEXT NOT NULL DEFAULT '',    -- of a checklist; empty: the whole reply
    label TEXT,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    reader TEXT NOT NULL,             -- the parser and the rubric that it was read with
    PRIMARY KEY (key, line)
) WITHOUT ROWID;
"""


def slot(item: int, grader: int, phrasing: int, vote: int) -> int:
    """The number of one place in the table of labels; ``vote`` counts from 1."""
    return ((item << GRADER_BITS | grader) << PHRASING_BITS | phrasing) << VOTE_BITS | vote
