"""MLflow evaluations: tables of ``mlflow.models.evaluate``, results of ``mlflow.genai.evaluate``, traces.

Tried with: mlflow 3.17.2 (``eval_results_table.json`` in the pandas split layout; the ``result_df`` of
``mlflow.genai.evaluate`` as CSV; ``mlflow.search_traces`` as JSON or JSONL records, and traces as
``Trace.to_json`` writes them).

What is read: an assessment's name is the grader, its feedback value the label, as it is spelled (numbers
as numbers, true and false as 1 and 0). Where several sources give feedback under one name, the source
stands behind it. The source's type and id are facts: a ``HUMAN`` one is a person. A response is a trace;
a span of it where one name assesses several spans. Dictionary values give one grader a key. Feedback with
an error or without a value is an outcome. Feedback that is overridden or not valid is left out; what is
left of one source on one trace more than once is a vote, in the order of time.

An ``expectation`` is what a person expects. It is the gold label where all its values are labels that the
feedback under the same name gives (under any name, if none is called so), and then the grader ``gold``,
or ``NAME (expectation)`` where there are several. Else it is a reference answer, which is no label, and
is left out with a notice; ``--gold NAME`` reads it nevertheless.

In a table of ``mlflow.models.evaluate`` a metric's column ``NAME/score`` is the grader NAME. It has no
ids: a response is an id column, or a digest of inputs and outputs, so that no text travels.

What the formats hide: the table says neither who judged nor why a score is missing; the columns of a
result CSV do not tell an expectation from feedback, which is why its column ``assessments`` is read first.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voirdire.errors import InputError
from voirdire.options import Options
from voirdire.readers._delimited import _long_cells
from voirdire.readers._logs import (
    Gathered,
    Trouble,
    as_text,
    decoded,
    first_object,
    lines,
    mapping,
    sequence,
)
from voirdire.readers._records import records, to_the_tear
from voirdire.readers._text import all_text, encoding_of, head_text, open_text, undecodable
from voirdire.readers.base import Claim, Reader
from voirdire.rows import Rows
from voirdire.source import Source
from voirdire.wording import Text, listed, plural, printable, say

FORMAT = "mlflow"
GOLD = "gold"
SCORE, VALUE, FAILED = "/score", "/value", "/error_message"
_KINDS = {"HUMAN": "person", "LLM_JUDGE": "model", "CODE": "code"}
_TRACE_KEYS = {"trace_metadata", "assessments", "trace_location"}
_IDS = ("id", "item_id", "sample_id", "question_id", "prompt_id", "doc_id", "uuid", "response_id")
# What genai datasets call expectations; the columns of a CSV do not say which they are.
_EXPECTED = ("expected_", "guidelines")
_ASKED, _ANSWERED = (
    ("inputs", "question", "prompt"),
    ("outputs", "predictions", "answer", "response"),
)
_HEX = 12
_LONGEST_LITERAL = 1_000_000  # letters of a cell that is read as a Python value
_TABLE, _TRACES, _RESULT = "eval_results_table", "traces", "genai result"


# --- sniffing -----------------------------------------------------------------------------------


def sniff(source: Source) -> Claim | None:
    """Sure where the head has a trace with its keys, or a table with columns as MLflow names them."""
    if source.frame is not None or (source.path is not None and source.path.is_dir()):
        return None
    kind = _kind(source)
    return Claim(format=FORMAT, version=kind) if kind else None


def _kind(source: Source) -> str:
    start = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start in (b"{", b"["):
        top = first_object(source)
        if start == b"{" and {"columns", "data"} <= top.keys():
            scores = [c for c in sequence(top["columns"]) if _is_score(c)]
            return _TABLE if scores else ""
        info = mapping(top.get("info"))
        found = info if "trace_id" in info or "request_id" in info else top
        named = "trace_id" in found or (found is info and bool(info))
        ours = bool(_TRACE_KEYS & found.keys()) or b"mlflow." in source.head
        return _TRACES if named and ours else ""
    header = _header(source)
    values = any(c.endswith(VALUE) for c in header)
    if "trace_id" in header and (values or "assessments" in header):
        return _RESULT
    return ""


def _is_score(column: Any) -> bool:
    return isinstance(column, str) and column.endswith(SCORE) and len(column) > len(SCORE)


def _header(source: Source) -> list[str]:
    try:
        text = head_text(source, encoding_of(source, "")).removeprefix("\ufeff")
        return next(csv.reader(io.StringIO(text, newline="")), [])
    except (csv.Error, InputError):
        return []


# --- assessments --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Assessment:
    """One feedback or expectation on one trace."""

    at: int
    trace: str
    span: str
    name: str
    value: Any
    expected: bool
    kind: str = ""  # the source's type
    source: str = ""
    error: str | None = None
    time: str = ""
    digest: str = ""  # of the scorer
    question: str = ""
    grader: str = ""
    response: str = ""
    vote: int | None = None

    @property
    def person(self) -> bool:
        return self.kind == "HUMAN"


def _digest(*texts: str | None) -> str:
    text = json.dumps(texts, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_HEX]


class _Reading:
    """One file on its way to rows."""

    def __init__(self, source: Source, options: Options, *, unit: str, what: str = "trace") -> None:
        self.source = source
        self.options = options
        self.gathered = Gathered(source, unit=unit)
        self.trouble = Trouble(source, what=what)
        self.bad = Trouble(source, what="assessment")
        self.found: list[_Assessment] = []
        self.replaced = self.failed = self.bare = 0
        self.facts: dict[str, dict[str, Any]] = {}
        self.more: list[Text] = []

    # --- gathering ---

    def trace(self, at: int, given: Any) -> None:
        """One trace: a row of a table of traces, or the object that ``Trace.to_json`` writes."""
        one = mapping(given)
        info = mapping(one.get("info")) or one
        trace = as_text(info.get("trace_id")) or as_text(info.get("request_id"))
        if trace is None:
            self.trouble.add(f"{self.gathered.unit} {at:,}", "it has no trace_id")
            return
        assessments = info.get("assessments")
        if isinstance(assessments, str):
            assessments = _literal(assessments)
        if info.get("assessments") is None:
            assessments = _from_columns(one)
        if not isinstance(assessments, list):
            self.trouble.add(f"{self.gathered.unit} {at:,}", "its assessments cannot be read")
            return
        answer = one.get("response", info.get("response_preview"))
        if info.get("state") == "ERROR" and as_text(answer) is None:
            self.failed += bool(assessments)
            return
        asked = as_text(one.get("request", info.get("request_preview")))
        before = len(self.found)
        over = {
            str(mapping(a).get("overrides")) for a in assessments if mapping(a).get("overrides")
        }
        for place, assessment in enumerate(assessments, start=1):
            self._assessment(at, place, trace, mapping(assessment), over)
        for made in self.found[before:]:
            made.question = _digest(asked) if asked is not None else ""
        self.bare += not assessments

    def _assessment(
        self, at: int, place: int, trace: str, one: Mapping[str, Any], over: set[str]
    ) -> None:
        name = as_text(one.get("assessment_name")) or as_text(one.get("name"))
        if name is None:
            self.bad.add(f"{self.gathered.unit} {at:,}, assessment {place:,}", "it has no name")
            return
        if one.get("valid") is False or str(one.get("assessment_id")) in over:
            self.replaced += 1
            return
        expected = one.get("expectation") is not None
        inside = one.get("expectation") if expected else one.get("feedback")
        if isinstance(inside, dict):
            value, error = inside.get("value"), inside.get("error") or one.get("error")
            serialized = mapping(inside.get("serialized_value")).get("value")
            if value is None and isinstance(serialized, str):
                value = _literal(serialized)
        else:
            value, error = inside, one.get("error")
        source = mapping(one.get("source"))
        metadata = mapping(one.get("metadata"))
        self.found.append(
            _Assessment(
                at=at,
                trace=trace,
                span=as_text(one.get("span_id")) or "",
                name=name.strip(),
                value=value,
                expected=expected,
                kind=(as_text(source.get("source_type")) or "").upper(),
                source=as_text(source.get("source_id")) or "",
                error=_error(error),
                time=as_text(one.get("create_time") or one.get("create_time_ms")) or "",
                digest=as_text(metadata.get("mlflow.assessment.scorerDigest")) or "",
            )
        )

    # --- naming ---

    def _feedback(self) -> list[_Assessment]:
        return [a for a in self.found if not a.expected]

    def name(self) -> None:
        self._own_failures()
        self._by_key()
        sources: dict[str, dict[tuple[bool, str], None]] = defaultdict(dict)
        for one in self._feedback():
            sources[one.name][one.person, one.source] = None
        for one in self._feedback():
            one.grader = one.name
            if len(sources[one.name]) > 1 and (one.source or one.kind):
                one.grader = f"{one.name} ({one.source or one.kind.lower()})"
        self._expectations()
        self._respond()

    def _own_failures(self) -> None:
        """A scorer that fails is written as code of its own name: it is the judge of that name."""
        judges: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
        for one in self._feedback():
            if one.error is None and not one.person:
                judges[one.name][one.kind, one.source] = one.digest
        for one in self._feedback():
            known = judges[one.name]
            if one.error is None or one.kind != "CODE" or (one.kind, one.source) in known:
                continue
            same = [s for s, digest in known.items() if digest == one.digest] or list(known)
            if len(same) == 1:
                one.kind, one.source = same[0]

    def _by_key(self) -> None:
        """A dictionary as value is several verdicts: one a key."""
        made: list[_Assessment] = []
        for one in self.found:
            if not isinstance(one.value, dict) or not one.value:
                made.append(one)
                continue
            for key, value in one.value.items():
                made.append(_copy(one, f"{one.name}/{key}", value))
        self.found = made

    def _expectations(self) -> None:
        """Expectations whose values are labels become gold; the others are reference answers."""
        labels: dict[str, set[str]] = defaultdict(set)
        for one in self._feedback():
            text = as_text(one.value)
            if one.error is None and text is not None:
                labels[one.name].add(text)
        anything = {text for seen in labels.values() for text in seen}
        values: dict[str, set[str]] = defaultdict(set)
        for one in self.found:
            text = as_text(one.value)
            if one.expected and text is not None:
                values[one.name].add(text)
        gold = {n for n, v in values.items() if v and v <= labels.get(n, anything)}
        asked = self.options.gold
        answers = sorted(n for n in values if n not in gold and n != asked)
        kept: list[_Assessment] = []
        for one in self.found:
            if not one.expected:
                kept.append(one)
            elif one.name == asked and asked not in labels:
                one.grader = one.name
                kept.append(one)
            elif one.name in gold:
                one.grader = GOLD if len(gold) == 1 else f"{one.name} (expectation)"
                kept.append(one)
        self.found = kept
        if answers:
            self.more.append(
                say(
                    "{name}: {what} {names} {are} left out: {its} values are answers or facts that were "
                    "expected and no labels that a grader gives. Read one as the truth with --gold NAME.",
                    name=printable(self.source.name),
                    what="the expectation" if len(answers) == 1 else "the expectations",
                    names=listed(answers),
                    are="is" if len(answers) == 1 else "are",
                    its="its" if len(answers) == 1 else "their",
                )
            )

    def _respond(self) -> None:
        spans: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        for one in self.found:
            spans[one.grader, one.trace, one.digest].add(one.span)
        several = {grader for (grader, _, _), seen in spans.items() if len(seen) > 1}
        for one in self.found:
            inside = one.grader in several and bool(one.span)
            one.response = f"{one.trace}/{one.span}" if inside else one.trace
        calls: dict[tuple[str, str], list[_Assessment]] = defaultdict(list)
        for one in self.found:
            calls[one.response, one.grader].append(one)
        if max(map(len, calls.values()), default=0) > 1:
            for same in calls.values():
                same.sort(key=lambda a: a.time)
                for vote, one in enumerate(same, start=1):
                    one.vote = vote

    # --- rows ---

    def rows(self) -> list[Rows]:
        self.name()
        # Several traces of one question are a cluster; else a trace stands for itself.
        asked = Counter({a.response: a.question for a in self.found}.values())
        clustered = any(n > 1 for question, n in asked.items() if question)
        for one in self.found:
            label, outcome, reason = _verdict(one)
            facts = self.facts.setdefault(one.grader, {})
            if not facts and one.kind:
                facts["kind"] = _KINDS.get(one.kind, one.kind.lower())
                facts["source"] = one.source
                if one.kind == "LLM_JUDGE":
                    facts["model"] = one.source
            self.gathered.add(
                one.at,
                response=one.response,
                grader=one.grader,
                label=label,
                outcome=outcome,
                reason=reason,
                cluster=(one.question or one.trace) if clustered else None,
                vote=one.vote,
            )
        return self.made()

    def made(self) -> list[Rows]:
        order = sorted(self.facts, key=lambda g: g == GOLD)
        return self.gathered.rows(
            layout=FORMAT,
            notices=[*self.trouble.notices(), *self.bad.notices(), *self._counted(), *self.more],
            order=order,
            facts={g: f for g, f in self.facts.items() if f},
        )

    def _counted(self) -> Iterator[Text]:
        name = printable(self.source.name)
        if self.failed:
            yield say(
                "{name}: {n} with an error and without a response; what was assessed there is not read.",
                name=name,
                n=plural(self.failed, "trace ended", "traces ended"),
            )
        if self.replaced:
            yield say(
                "{name}: {n} overridden or not valid any more and {are} left out.",
                name=name,
                n=plural(self.replaced, "assessment is", "assessments are"),
                are="is" if self.replaced == 1 else "are",
            )
        if self.bare:
            yield say(
                "{name}: {n} no assessment and {are} left out.",
                name=name,
                n=plural(self.bare, "trace has", "traces have"),
                are="is" if self.bare == 1 else "are",
            )


def _copy(one: _Assessment, name: str, value: Any) -> _Assessment:
    return _Assessment(
        at=one.at,
        trace=one.trace,
        span=one.span,
        name=name,
        value=value,
        expected=one.expected,
        kind=one.kind,
        source=one.source,
        error=one.error,
        time=one.time,
        digest=one.digest,
        question=one.question,
    )


def _error(given: Any) -> str | None:
    """Why an assessment failed; ``None`` where it did not."""
    if isinstance(given, dict):
        message = as_text(given.get("error_message")) or as_text(given.get("error_code"))
        return message or "the scorer failed"
    return as_text(given)


def _verdict(one: _Assessment) -> tuple[Any, str, str]:
    if one.error is not None:
        return None, "error", one.error.strip().split("\n", 1)[0]
    if as_text(one.value) is None:
        # An expectation without a value was never given; feedback without one was asked for.
        return None, "missing" if one.expected else "unparsed", "the feedback has no value"
    return one.value, "", ""


def _literal(text: str) -> Any:
    """A value written as JSON, or as Python prints it (in a CSV); ``None`` where it is neither."""
    try:
        return decoded(text)
    except (ValueError, MemoryError):
        pass
    if len(text) > _LONGEST_LITERAL:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # a stray backslash is a matter of the text, not of ours
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _from_columns(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Assessments of a row that has them only as columns ``NAME/value`` and ``NAME/error_message``."""
    found = []
    names = [c[: -len(VALUE)] for c in row if c.endswith(VALUE)]
    names += [c[: -len(FAILED)] for c in row if c.endswith(FAILED)]
    for name in dict.fromkeys(names):
        value, error = row.get(name + VALUE), row.get(name + FAILED)
        if not name or (as_text(value) is None and as_text(error) is None):
            continue
        if name.startswith(_EXPECTED):
            found.append({"name": name, "expectation": {"value": value}})
        else:
            found.append({"name": name, "feedback": {"value": value, "error": error or None}})
    return found


# --- traces -------------------------------------------------------------------------------------


def _records(source: Source, options: Options, reading: _Reading) -> Iterable[tuple[int, Any]]:
    """The traces of a file: a list, one a line, one alone, or a table written column by column."""
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        found = records(source, options, reading.trouble, lists=((),))
        return ((at, trace) for _, at, trace in found if at)
    try:
        whole = decoded(all_text(source, encoding_of(source, options.encoding)).lstrip("\ufeff"))
    except (ValueError, MemoryError):
        return lines(source, options, reading.trouble)
    ids = mapping(whole).get("trace_id")
    if isinstance(ids, dict):
        columns = {c: v for c, v in whole.items() if isinstance(v, dict)}
        return enumerate(({c: v.get(i) for c, v in columns.items()} for i in ids), start=1)
    return [(1, whole)]


def _from_csv(source: Source, options: Options) -> list[Rows]:
    reading = _Reading(source, options, unit="line", what="row")
    encoding = encoding_of(source, options.encoding)
    header: list[str] = []
    line = 1
    try:
        with _long_cells(), open_text(source, encoding, newline="") as stream:
            reader = csv.reader(stream)
            try:
                for record in reader:
                    if not header:
                        header = [c.removeprefix("\ufeff") for c in record]
                    elif len(record) == len(header):
                        row = {
                            c: v if v.strip() else None for c, v in zip(header, record, strict=True)
                        }
                        if row.get("assessments") and not isinstance(
                            _literal(str(row["assessments"])), list
                        ):
                            row["assessments"] = None  # the columns beside it say nearly as much
                        reading.trace(line, row)
                    elif any(cell.strip() for cell in record):
                        reading.trouble.add(
                            f"line {line:,}", f"{len(record)} cells instead of {len(header)}"
                        )
                    line = reader.line_num + 1
            except csv.Error as error:
                reading.trouble.add(f"line {line:,}", str(error))
    except UnicodeError as error:
        raise undecodable(source, encoding) from error
    return reading.rows()


# --- tables of mlflow.models.evaluate -----------------------------------------------------------


def _from_table(source: Source, options: Options) -> list[Rows]:
    reading = _Reading(source, options, unit="row", what="row")
    top = to_the_tear(source, options, reading.trouble, lists=(("data",),), wanted=(("columns",),))
    columns = [as_text(c) or "" for c in sequence(top.get("columns"))]
    scores = {c.removesuffix(SCORE): i for i, c in enumerate(columns) if _is_score(c)}
    data = top.get("data")
    if not scores or not isinstance(data, list):
        raise InputError(
            f"{printable(source.name)}: there is no column NAME/score with rows of data in it."
        )
    rows: list[tuple[int, list[Any]]] = []
    for at, row in enumerate(data, start=1):
        if isinstance(row, list) and len(row) == len(columns):
            rows.append((at, row))
        else:
            reading.trouble.add(f"row {at:,}", f"it is no list of {len(columns)} cells")
    ids = _table_ids(columns, scores, rows)
    times = Counter(response for response, _ in ids)
    asked = Counter(question for question in dict(ids).values() if question)
    votes: Counter[str] = Counter()
    lost = 0
    for (at, row), (response, question) in zip(rows, ids, strict=True):
        votes[response] += 1
        for name, i in scores.items():
            lost += as_text(row[i]) is None
            reading.gathered.add(
                at,
                response=response,
                grader=name,
                label=row[i],
                reason="there is no score",
                cluster=(question or response) if max(asked.values(), default=0) > 1 else None,
                vote=votes[response] if max(times.values()) > 1 else None,
            )
    reading.facts = {name: {} for name in scores}
    reading.more.append(
        say(
            "{name}: a table of mlflow.models.evaluate does not say which model judged{more}. Name models "
            "with --about.",
            name=printable(source.name),
            more=f", nor why {plural(lost, 'score is', 'scores are')} missing, which {'is' if lost == 1 else 'are'} counted as unparsed"
            if lost
            else "",
        )
    )
    return reading.made()


def _table_ids(
    columns: Sequence[str], scores: Mapping[str, int], rows: Sequence[tuple[int, list[Any]]]
) -> list[tuple[str, str]]:
    """The response of each row, and a digest of its inputs.

    An id column where its values are all different, else a digest of what was asked and answered.
    """
    for name in _IDS:
        if name in columns:
            texts = [as_text(row[columns.index(name)]) for _, row in rows]
            known = [t for t in texts if t is not None]
            if len(set(known)) == len(rows):
                return [(t, "") for t in known]
    asked = [i for i, c in enumerate(columns) if c in _ASKED]
    own = [i for i, c in enumerate(columns) if c in (*_ASKED, *_ANSWERED)]
    own = own or [i for i, c in enumerate(columns) if "/" not in c]
    return [
        (
            _digest(*(as_text(row[i]) for i in own)),
            _digest(*(as_text(row[i]) for i in asked)) if asked else "",
        )
        for _, row in rows
    ]


# --- reading ------------------------------------------------------------------------------------


def read(source: Source, options: Options) -> list[Rows]:
    """All feedback, one row each, and expectations that are labels.

    Raises :class:`InputError` where nothing can be read or nothing was assessed.
    """
    kind = _kind(source)
    if kind == _TABLE:
        return _from_table(source, options)
    if kind == _RESULT:
        return _from_csv(source, options)
    reading = _Reading(source, options, unit="trace")
    for at, given in _records(source, options, reading):
        reading.trace(at, given)
    return reading.rows()


READER = Reader(
    name=FORMAT,
    title="MLflow evaluations (tables and traces)",
    suffixes=(".json", ".jsonl", ".csv"),
    sniff=sniff,
    read=read,
)
