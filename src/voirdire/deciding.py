"""Decisions after labelling: rules and hand-made relabels, each a step that keeps the label before it.

A decision never changes a row. It adds one, with the step's name in the step column and the reason beside
it, and the label of a response is that of its last step. The audit reads the path from there
(:mod:`voirdire.stats.decisions`). Decisions look at the labels in force when they are taken, one label a
response and grader: where a grader was asked several times, that is what the vote rule makes of it.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from voirdire.errors import InputError, UsageError, unreadable
from voirdire.grid import LABEL, MISSING_CODE, NO_LABEL, NO_MAJORITY, NOT_THERE, columns_of, grid
from voirdire.labels import ALL_OUTCOMES, Grader, Labels, Tag, number_form
from voirdire.options import Options
from voirdire.wording import Name, Text, listed, plain, plural, printable, say

__all__ = ["Condition", "Decided", "If", "Majority", "Relabel", "Step", "decide", "relabel", "rule"]

Array = np.ndarray[Any, Any]

STEP = "step"
GIVEN, NO_DECISION = "as given", "no decision"
SYNTAX = (
    "A rule is one of: 'if GRADER=CLASS then CLASS'; 'if A=CLASS|CLASS and B=CLASS then A=CLASS'; "
    "'majority-of A,B,C -> NAME'. A name goes before it ('ruling: if …'); names with signs or the words and, "
    "then stand in double quotation marks."
)

# --- what can be decided ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """That a grader's label in force is one of these classes (or its outcome one of these outcomes)."""

    grader: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class If:
    """Where all conditions hold, the label of ``grader`` becomes ``value``, a class or an outcome."""

    name: str
    conditions: tuple[Condition, ...]
    grader: str
    value: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Majority:
    """``into`` gets the class that more than half of the graders give that were asked about a response.

    Without such a class there is no decision: a new grader has no label there, another keeps its own.
    """

    name: str
    graders: tuple[str, ...]
    into: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Relabel:
    """Labels that a person gave, one a row: ``response``, ``label``, ``grader`` and ``reason`` (may be null).

    ``line(i)`` says where row ``i`` stands in the file ``source``, counted in ``unit``.
    """

    name: str
    frame: pl.DataFrame
    source: str
    line: Callable[[int], int] = field(default=lambda i: i + 1)
    unit: str = "row"
    reason: str = ""


Decision = If | Majority | Relabel


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one decision did. ``rows`` labels were decided on, of which ``moved`` counts those that
    changed, by the label before and after (an outcome where there is no label)."""

    name: str
    rows: int
    moved: Mapping[tuple[str, str], int]
    notices: tuple[Text, ...] = ()

    @property
    def changed(self) -> int:
        return sum(self.moved.values())


@dataclass(frozen=True, kw_only=True)
class Decided:
    """Labels with the rows of all steps, and what each step did."""

    labels: Labels
    steps: tuple[Step, ...]


# --- rules as text ------------------------------------------------------------------------------

_RULE = re.compile(r"\s*(?:(?P<name>.*?\S)\s*:\s+)?(?P<rule>(?P<kind>if|majority-of)\s.*)", re.S)
_TOKEN = re.compile(r'\s*(?:"([^"]*)"|(->|→|[=,|])|((?:(?!->|→)[^\s=,|"])+))')


def rule(text: str, *, reason: str = "") -> If | Majority:
    """A rule from its text; without a name of its own it is named by the text.

    >>> rule("ruling: if judge=evasion then refusal").name
    'ruling'

    Raises :class:`UsageError` with what was expected where.
    """
    match = _RULE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"--rule {text!r}: this is no rule. {SYNTAX}")
    words = " ".join(match["rule"].split())
    name = match["name"] or words
    reader = _Reader(text, match["rule"][len(match["kind"]) :])
    if match["kind"] == "majority-of":
        graders = [reader.name("the name of a grader", ("->", "→"))]
        while reader.took(","):
            graders.append(reader.name("the name of a grader", ("->", "→")))
        reader.must("->", "→")
        into = reader.name("the name that gets the majority")
        reader.end()
        if len(set(graders)) < len(graders) or len(graders) < 2:
            raise UsageError(f"--rule {text!r}: a majority is of at least two different graders.")
        return Majority(name=name, graders=tuple(graders), into=into, reason=reason or words)
    conditions = [reader.condition()]
    while reader.took("and"):
        conditions.append(reader.condition())
    reader.must("then")
    result = reader.name("a class")
    target = ""
    if reader.took("="):
        target, result = result, reader.name("a class")
    reader.end()
    graders_named = list(dict.fromkeys(c.grader for c in conditions))
    if not target and len(graders_named) > 1:
        raise UsageError(
            f"--rule {text!r}: it does not say whose label changes. Write: then {graders_named[0]}={result}"
        )
    return If(
        name=name,
        conditions=tuple(conditions),
        grader=target or graders_named[0],
        value=result,
        reason=reason or words,
    )


class _Reader:
    """The words of a rule, one after the other."""

    def __init__(self, text: str, words: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, bool]] = []
        at = 0
        words = words.rstrip()
        while at < len(words):
            found = _TOKEN.match(words, at)
            if not found:
                raise UsageError(f"--rule {text!r}: a quotation mark is not closed. {SYNTAX}")
            quoted, sign, bare = found.groups()
            self.tokens.append((sign or bare if quoted is None else quoted, quoted is not None))
            at = found.end()

    def _next(self) -> str:
        """The next sign or keyword; empty where a quoted text or nothing comes."""
        return "" if not self.tokens or self.tokens[0][1] else self.tokens[0][0]

    def took(self, *words: str) -> bool:
        if self._next() in words and self.tokens:
            self.tokens.pop(0)
            return True
        return False

    def must(self, *words: str) -> None:
        if not self.took(*words):
            raise UsageError(
                f"--rule {self.text!r}: {words[0]!r} is expected {self._place()}. {SYNTAX}"
            )

    def _place(self) -> str:
        return f"before {self.tokens[0][0]!r}" if self.tokens else "at the end"

    def name(self, what: str, stops: Sequence[str] = ()) -> str:
        """A name: a quoted text, or words up to the next sign or keyword."""
        if self.tokens and self.tokens[0][1]:
            return self.tokens.pop(0)[0]
        words = []
        while self.tokens and self._next() not in ("", "=", ",", "|", "->", "→", "and", "then"):
            words.append(self.tokens.pop(0)[0])
        if not words:
            raise UsageError(f"--rule {self.text!r}: {what} is expected {self._place()}. {SYNTAX}")
        return " ".join(words)

    def condition(self) -> Condition:
        grader = self.name("the name of a grader")
        self.must("=")
        values = [self.name("a class")]
        while self.took("|"):
            values.append(self.name("a class"))
        return Condition(grader=grader, values=tuple(values))

    def end(self) -> None:
        if self.tokens:
            raise UsageError(
                f"--rule {self.text!r}: nothing is expected before {self.tokens[0][0]!r}. {SYNTAX}"
            )


# --- relabel files ------------------------------------------------------------------------------

_ROLES = {
    "response": ("response", "response_id", "item", "item_id", "id", "sample_id", "doc_id", "uuid"),
    "grader": ("grader", "judge", "annotator", "rater", "scorer"),
    "label": ("label", "verdict", "score", "rating"),
    "reason": ("reason", "why", "comment", "note"),
}


def relabel(text: str, *, reason: str = "", encoding: str = "") -> Relabel:
    """A relabel file by its path, or by ``NAME: path``; without a name it is named by the file's stem.

    CSV, TSV, JSON, JSON Lines or Parquet with a column ``response`` and a column ``label``, and if need be
    ``grader`` and ``reason``. Raises :class:`InputError` for a file that is not such a table.
    """
    from voirdire.readers.table import raw_table
    from voirdire.source import Source

    path, name = Path(text), ""
    if not path.exists() and (match := re.fullmatch(r"\s*(.*?\S)\s*:\s+(.*\S)\s*", text, re.S)):
        name, path = match[1], Path(match[2])
    if not path.is_file():
        raise InputError(unreadable(path, name=f"--relabel {printable(str(path))}"))
    if not path.stat().st_size:
        raise InputError(f"--relabel {printable(path.name)}: the file is empty.")
    table = raw_table(Source(name=path.name, path=path), Options.of(encoding=encoding))
    lower: dict[str, str] = {}
    for column in table.columns:
        lower.setdefault(column.lower(), column)
    used = {
        role: next((lower[n] for n in names if n in lower), "") for role, names in _ROLES.items()
    }
    for role in ("response", "label"):
        if not used[role]:
            shown = plain(listed((printable(c) for c in table.columns), most=20))
            raise InputError(
                f"{printable(path.name)}: a relabel file has a column {role}, and there is none (columns: "
                f"{shown}). Its columns are response, label, and if need be grader and reason."
            )
    cells = {
        role: table.frame[column].str.strip_chars()
        if column
        else pl.Series([None], dtype=pl.String).new_from_index(0, table.frame.height)
        for role, column in used.items()
    }
    return Relabel(
        name=name or path.stem,
        frame=pl.DataFrame([series.alias(role) for role, series in cells.items()]),
        source=path.name,
        line=table.line,
        unit=table.unit,
        reason=reason,
    )


# --- deciding -----------------------------------------------------------------------------------


def decide(labels: Labels, decisions: Sequence[Decision]) -> Decided:
    """Take decisions one after the other; each is a step of its own, and no earlier label is lost.

    Labels without steps get the step ``as given``. The same labels and decisions give the same rows.
    Raises :class:`UsageError` for a grader or class that is not there, a step name that is taken, and
    labels that have no decision path (counts, checklists); :class:`InputError` with the places for rows
    of a relabel file that name an unknown response, grader or label, or contradict each other.
    """
    if labels.kind != "labels":
        what = "a checklist has verdicts on lines" if labels.kind == "checklist" else "counts are"
        raise UsageError(
            f"Decisions are taken on labels of single responses; {what}"
            f"{', not labels' if labels.kind == 'checklist' else ' not labels of responses'}. Give a table "
            "of labels."
        )
    if not decisions:
        raise UsageError(f"Nothing is decided. Give --rule or --relabel. {SYNTAX}")
    table = _Table(labels)
    steps = tuple(table.take(decision) for decision in decisions)
    return Decided(labels=table.labels(), steps=steps)


class _Table:
    """The labels in force, and the rows that decisions have added."""

    def __init__(self, labels: Labels) -> None:
        self.before = labels
        self.step = labels.options.step or STEP
        self.reason = f"{self.step}_reason"
        frame = labels.frame
        if not labels.options.step:
            for column in (self.step, self.reason):
                if column in frame.columns:
                    more = (
                        " If it holds the steps of earlier decisions, say --step step; else name"
                        if column == STEP
                        else " Name"
                    )
                    raise UsageError(
                        f"The labels have a column {column} already.{more} it otherwise in the file."
                    )
        laid = grid(labels)
        self.classes = laid.classes
        self.names = list(laid.graders)
        self.codes, self.outcomes = laid.codes.copy(), laid.outcomes.copy()
        self.derived: dict[str, tuple[str, ...]] = {}
        self.first_of_response = columns_of(labels, labels.response_codes).first
        self.ids = frame["response"].gather(self.first_of_response).to_list()
        place = labels.response_codes.astype(np.int64) * len(self.names)
        place += frame["grader"].to_physical().cast(pl.Int64).to_numpy()
        self.first_row = np.full(laid.codes.size, -1, dtype=np.int64)
        self.first_row[place[::-1]] = np.arange(len(place))[::-1]
        self.first_row = self.first_row.reshape(laid.codes.shape)
        earlier = frame[self.step].drop_nulls() if self.step in frame.columns else None
        self.earlier = [] if earlier is None else earlier.unique(maintain_order=True).to_list()
        unnamed = earlier is None or len(earlier) < len(frame)
        self.taken = [*([GIVEN] if unnamed else []), *self.earlier]
        self.added: list[pl.DataFrame] = []
        self.new: list[pl.DataFrame] = []

    # --- one decision

    def take(self, decision: Decision) -> Step:
        if decision.name in self.taken:
            raise UsageError(
                f"There is a step {decision.name!r} already. Give this one another name, before a colon: "
                f"'NAME: {'FILE' if isinstance(decision, Relabel) else 'if …'}'."
            )
        if isinstance(decision, Relabel):
            return self._relabel(decision)
        if isinstance(decision, Majority):
            return self._majority(decision)
        return self._if(decision)

    def _if(self, decision: If) -> Step:
        holds = np.ones(len(self.ids), dtype=np.bool_)
        for condition in decision.conditions:
            at = self._grader(condition.grader, decision)
            one = np.zeros(len(self.ids), dtype=np.bool_)
            for value in condition.values:
                code, outcome = self._value(value, decision)
                one |= (
                    self.codes[:, at] == code
                    if outcome == LABEL
                    else self.outcomes[:, at] == outcome
                )
            holds &= one
        at = self._grader(decision.grader, decision)
        code, outcome = self._value(decision.value, decision)
        holds &= self.outcomes[:, at] != NOT_THERE
        holds &= (self.codes[:, at] != code) | (self.outcomes[:, at] != outcome)
        rows = np.flatnonzero(holds)
        n = len(rows)
        return self._record(
            decision.name,
            rows,
            np.full(n, at),
            np.full(n, code),
            np.full(n, outcome),
            [decision.reason] * n,
        )

    def _majority(self, decision: Majority) -> Step:
        places = [self._grader(name, decision) for name in decision.graders]
        codes = self.codes[:, places]
        how = self.outcomes[:, places]
        asked = ((how != NOT_THERE) & (how != MISSING_CODE)).sum(axis=1)
        counts = np.stack([(codes == k).sum(axis=1) for k in range(len(self.classes))], axis=1)
        winner = counts.argmax(axis=1)
        won = 2 * counts.max(axis=1) > asked
        notices: tuple[Text, ...] = ()
        none = int((~won & (asked > 0)).sum())
        old = decision.into in self.names
        if none:
            notices = (
                say(
                    "{step}: {n} no majority; {who} {what} there.",
                    step=Name(decision.name),
                    n=plural(none, "response has", "responses have"),
                    who=Name(decision.into),
                    what="keeps its label" if old else "has no label",
                ),
            )
        if not old:
            return self._new(decision, won, winner, notices)
        at = self.names.index(decision.into)
        won &= (self.outcomes[:, at] != NOT_THERE) & (self.codes[:, at] != winner)
        rows = np.flatnonzero(won)
        n = len(rows)
        step = self._record(
            decision.name,
            rows,
            np.full(n, at),
            winner[rows],
            np.full(n, LABEL),
            [decision.reason] * n,
        )
        return replaced(step, notices=(*step.notices, *notices))

    def _new(
        self, decision: Majority, won: Array, winner: Array, notices: tuple[Text, ...]
    ) -> Step:
        """A grader that was not there before: its labels stand at the first step, as nothing moved."""
        rows = np.flatnonzero(won)
        self.names.append(decision.into)
        self.derived[decision.into] = decision.graders
        column = np.full((len(self.ids), 1), NO_LABEL, dtype=self.codes.dtype)
        how = np.full((len(self.ids), 1), NOT_THERE, dtype=self.outcomes.dtype)
        column[rows, 0], how[rows, 0] = winner[rows], LABEL
        self.codes = np.hstack([self.codes, column])
        self.outcomes = np.hstack([self.outcomes, how])
        self.first_row = np.hstack([self.first_row, np.full((len(self.ids), 1), -1)])
        n = len(rows)
        made = self._rows(
            rows,
            np.full(n, len(self.names) - 1),
            winner[rows],
            np.full(n, LABEL),
            self.taken[0],
            [
                decision.reason
                if decision.name == decision.reason
                else f"{decision.name}: {decision.reason}"
            ]
            * n,
        )
        self.new.append(made)
        return Step(name=decision.name, rows=n, moved={}, notices=notices)

    def _relabel(self, decision: Relabel) -> Step:
        from voirdire.readers._raw import Problems, shown

        problems = Problems(decision.source, unit=decision.unit)
        known = {id: i for i, id in enumerate(self.ids)}
        places = {name: i for i, name in enumerate(self.names)}
        alone = self._only_grader()
        values: dict[tuple[int, int], tuple[int, int, str, int]] = {}
        for i, row in enumerate(
            decision.frame.select("response", "label", "grader", "reason").rows()
        ):
            response, label, grader, reason = row
            line = decision.line(i)
            if response is None or response not in known:
                what = "names no response" if response is None else "is not among the labels"
                near = _near(response or "", self.ids) if len(self.ids) <= 10_000 else ""
                problems.add(
                    line, f"the response with {shown(response)} {what}{near}", column="response"
                )
                continue
            if grader is None and not alone:
                problems.add(
                    line,
                    "no grader is named, and there are several: "
                    f"{plain(listed(printable(n) for n in self.names))}",
                    column="grader",
                )
                continue
            if grader is not None and grader not in places:
                problems.add(
                    line,
                    f"there is no grader with {shown(grader)}{_near(grader, self.names)}",
                    column="grader",
                )
                continue
            value = self._read(label or "")
            if value is None:
                problems.add(
                    line,
                    f"the label with {shown(label)} is no class ({', '.join(map(printable, self.classes))}) "
                    "and no outcome",
                    column="label",
                )
                continue
            cell = (known[response], places[grader or alone])
            if self.outcomes[cell] == NOT_THERE:
                problems.add(
                    line,
                    f"{printable(grader or alone)} was never asked about the response with {shown(response)}",
                    column="response",
                )
                continue
            earlier = values.get(cell)
            if earlier is not None and earlier[:2] != value:
                problems.add(
                    line,
                    f"the response with {shown(response)} is labelled otherwise on {decision.unit} "
                    f"{earlier[3]:,}",
                    column="label",
                )
                continue
            if earlier is None:
                said = " ".join((reason or "").split()) or decision.reason
                values[cell] = (*value, said or f"relabelled by hand in {decision.source}", line)
        problems.raise_if_any(
            "Nothing was decided. Name responses and graders as they stand in the labels, and a class that "
            "is not there yet with --scale or --off-scale."
        )
        cells = sorted(values)
        return self._record(
            decision.name,
            np.array([r for r, _ in cells], dtype=np.int64),
            np.array([g for _, g in cells], dtype=np.int64),
            np.array([values[c][0] for c in cells], dtype=np.int64),
            np.array([values[c][1] for c in cells], dtype=np.int64),
            [values[c][2] for c in cells],
        )

    # --- names and values

    def _grader(self, name: str, decision: If | Majority) -> int:
        if name not in self.names:
            shown = plain(listed((printable(n) for n in self.names), most=20))
            raise UsageError(
                f"{decision.name}: there is no grader {name!r}.{_near(name, self.names)} Graders: {shown}."
            )
        return self.names.index(name)

    def _read(self, text: str) -> tuple[int, int] | None:
        """Class code and outcome of a text; a class goes before an outcome of the same name."""
        for form in (text, number_form(text)):
            if form in self.classes:
                return self.classes.index(form), LABEL
        if text in ALL_OUTCOMES and text != "label":
            return NO_LABEL, ALL_OUTCOMES.index(text)
        return None

    def _value(self, text: str, decision: If) -> tuple[int, int]:
        found = self._read(text)
        if found is None:
            raise UsageError(
                f"{decision.name}: there is no class {text!r}.{_near(text, self.classes)} Classes: "
                f"{', '.join(map(printable, self.classes))}. Outcomes: {', '.join(ALL_OUTCOMES[1:])}. A class "
                "that no label has yet is named with --scale or --off-scale."
            )
        return found

    def _only_grader(self) -> str:
        """The grader that a relabel file need not name: the only one, gold aside."""
        from voirdire.labels import gold_name

        gold = gold_name(self.before.grader_names, self.before.options)
        names = [n for n in self.names if n != gold]
        return names[0] if len(names) == 1 else ""

    # --- rows

    def _record(
        self,
        name: str,
        rows: Array,
        places: Array,
        codes: Array,
        outcomes: Array,
        reasons: Sequence[str],
    ) -> Step:
        before, how = self.codes[rows, places], self.outcomes[rows, places]
        moved: Counter[tuple[str, str]] = Counter()
        for old, old_how, new, new_how in zip(before, how, codes, outcomes, strict=True):
            if (old, old_how) != (new, new_how):
                moved[self._shown(old, old_how), self._shown(new, new_how)] += 1
        self.taken.append(name)
        self.added.append(self._rows(rows, places, codes, outcomes, name, reasons))
        self.codes[rows, places], self.outcomes[rows, places] = codes, outcomes
        notices: tuple[Text, ...] = ()
        if not len(rows):
            notices = (
                say(
                    "{step}: no label is decided on, so the step is not in the table.",
                    step=Name(name),
                ),
            )
        return Step(
            name=name,
            rows=len(rows),
            moved=dict(sorted(moved.items(), key=lambda m: (-m[1], m[0]))),
            notices=notices,
        )

    def _shown(self, code: int, outcome: int) -> str:
        if outcome == LABEL:
            return self.classes[code]
        return "no majority" if outcome == NO_MAJORITY else ALL_OUTCOMES[outcome]

    def _rows(
        self,
        rows: Array,
        places: Array,
        codes: Array,
        outcomes: Array,
        step: str,
        reasons: Sequence[str],
    ) -> pl.DataFrame:
        """Rows that differ from those of the same response and grader in what was decided alone."""
        source = self.first_row[rows, places]
        new = source < 0
        source = np.where(new, self.first_of_response[rows], source)
        frame = self.before.frame[source]
        labels = [
            self.classes[c] if h == LABEL else None for c, h in zip(codes, outcomes, strict=True)
        ]
        columns = [
            pl.Series("grader", [self.names[p] for p in places], dtype=pl.String),
            pl.Series("label", labels, dtype=pl.String).cast(frame.schema["label"]),
            pl.Series("outcome", [ALL_OUTCOMES[h] for h in outcomes], dtype=pl.String).cast(
                frame.schema["outcome"]
            ),
            pl.Series(self.step, [step] * len(rows), dtype=pl.String),
            pl.Series(self.reason, list(reasons), dtype=pl.String),
        ]
        # A decision is on a response, not on one of its calls, and has no reply of its own.
        for column in ("vote", "phrasing"):
            columns.append(pl.Series(column, [None] * len(rows), dtype=frame.schema[column]))
        of_call = [t.name for t in self.before.tags if not t.per_response]
        for column in dict.fromkeys((*of_call, "raw")):
            if column in frame.columns and column not in (self.step, self.reason):
                kept = frame[column].scatter(np.flatnonzero(new | (column == "raw")).tolist(), None)
                columns.append(kept)
        return frame.with_columns(columns)

    def labels(self) -> Labels:
        """The labels with all rows: those that were there, new graders, and then step by step."""
        old = self.before
        frame = old.frame.with_columns(pl.col("grader").cast(pl.String))
        if self.step not in frame.columns:
            frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(self.step))
        if self.reason not in frame.columns:
            frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(self.reason))
        # No cell stays blank: a blank one would be filled from the response's other rows when read.
        frame = frame.with_columns(
            pl.col(self.step).fill_null(GIVEN), pl.col(self.reason).fill_null(NO_DECISION)
        )
        if GIVEN in self.taken and self.earlier:
            given = pl.col(self.step) == GIVEN
            frame = pl.concat([frame.filter(given), frame.filter(~given)])
        parts = [frame, *(p.select(frame.columns) for p in (*self.new, *self.added) if len(p))]
        names = tuple(self.names)
        frame = pl.concat(parts).with_columns(pl.col("grader").cast(pl.Enum(names)))
        graders = [*old.graders]
        for name, origins in self.derived.items():
            below = frozenset().union(
                *(g.origins or {g.name} for g in graders if g.name in origins)
            )
            graders.append(Grader(name=name, derived_from=origins, origins=below | {name}))
        tags = [t for t in old.tags if t.name not in (self.step, self.reason)]
        for name in (self.step, self.reason):
            values = frame[name].n_unique()
            per_response = (
                frame.select("response", name).unique()["response"].n_unique()
                == frame.select("response", name).unique().height
            )
            tags.append(Tag(name=name, values=values, per_response=per_response, numeric=False))
        return replaced(
            old,
            frame=frame.select(
                *(c for c in frame.columns if c not in (self.step, self.reason)),
                self.step,
                self.reason,
            ),
            graders=tuple(graders),
            options=replaced(old.options, step=self.step),
            tags=tuple(tags),
        )


def _near(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {printable(close[0])!r}?" if close else ""
