"""Inspect AI logs, ``.eval`` and ``.json``: what every scorer gave every sample in every epoch.

Tried with logs of Inspect AI 0.3.43 (2024) to 0.3.285.

What is read: the samples, one at a time, never the reductions or the summaries. The response is the
sample's id, an epoch is a vote. A grader is a key of ``scores``; its model and kind come from the
scorer in ``eval.scorers`` (in older logs, in ``results.scores``). The letters C, P and I of a scorer
that gives no others stand as ``correct``, ``partial`` and ``incorrect``, and its N (no answer) is
``unparsed``; ``--map``, ``--scale`` or ``--failed`` with a letter keep that letter. A value that is an
object or a list has verdicts on lines where all of it is yes or no, else each key is a grader
``scorer.key``. Members of a jury are graders ``scorer/model``: their votes are in
``metadata.panel.votes``, or else are read from their replies in ``events``. An edited score counts
as it stands now. Short fields of a sample's ``metadata`` are tags; texts are never read.

What is no label: NaN, null, and "Grade not found in model output", which older versions stored as
incorrect, are ``unparsed``. A sample that failed before a scorer began has no rows and is named;
where it failed in a scorer, that scorer's call is an ``error``.

What the format hides: the log's own ``unscored_samples`` counts reduced samples, so it may say 0 where
single epochs went unread; which of several identical members of a jury gave which vote; and
that an epoch is a new answer of the model, not the same answer graded again.

Source: ``log/_log.py``, ``scorer/_model.py`` and ``scorer/_reducer`` of inspect_ai 0.3.285.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from typing import Any

from voirdire.errors import InputError, UsageError
from voirdire.options import MISSING, Options
from voirdire.readers._archive import Archive, Bomb, Entry, Stream, Unreadable
from voirdire.readers._logs import (
    TWICE,
    Decoder,
    Gathered,
    Trouble,
    as_text,
    first_object,
    mapping,
    note,
    refuse_crowd,
    sequence,
    stands_twice,
)
from voirdire.readers._members import WHOLE, JsonText, Keep, Large, Torn, members, record
from voirdire.readers._text import encoding_of, head_text, open_bytes
from voirdire.readers.base import Claim, Reader
from voirdire.rows import CANONICAL, Rows
from voirdire.source import Source
from voirdire.wording import Name, Text, listed, plural, printable, say

FORMAT = "Inspect AI log"
LETTERS = {"C": "correct", "P": "partial", "I": "incorrect"}
NO_ANSWER = "N"
RULES = (
    *("match", "includes", "pattern", "answer", "exact", "f1", "choice", "math"),
    *("perplexity", "target_perplexity", "precomputed"),
)
_SAMPLE = re.compile(r"samples/.+\.json", re.DOTALL)
_HEADERS = ("header.json", "_journal/start.json")
_CLUSTERS = ("cluster", "question_id", "prompt_id", "core")
_PLACEHOLDER = "88F74D2C"  # under which the tool itself puts the one score of a log of early 2024
_UNREAD = "Grade not found"
_TAGS, _LONGEST_TAG = 20, 80  # fields of a sample's metadata that are tags, characters of one
_LONGEST_REPLY = 50_000  # characters at the end of a judge's reply in which its grade is looked for
_LARGEST_HEADER = 4 << 20  # characters of a member of a log besides its samples
_LONGEST_NAME = 1_000  # characters of a scorer's name
_SHOWN = 5
_YES_OR_NO = ("0", "1", "true", "false", "yes", "no")

Json = Mapping[str, Any]


# --- recognising --------------------------------------------------------------------------------


def sniff(source: Source) -> Claim | None:
    """Sure for a zip whose first entry is one of a log, and for a document with the keys of one."""
    if source.frame is not None or (source.path is not None and source.path.is_dir()):
        return None
    head = source.head
    if head.startswith(b"PK\x03\x04"):
        name = head[30 : 30 + int.from_bytes(head[26:28], "little")].decode("utf-8", "replace")
        known = name in (*_HEADERS, "summaries.json", "reductions.json")
        if not known and not _SAMPLE.fullmatch(name) and not name.startswith("_journal/"):
            return None
        return Claim(format=f"{FORMAT} (.eval)", version=_version_in(head))
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return None
    top = first_object(source)
    spec = mapping(top.get("eval"))
    if spec and ("status" in top or "version" in top):
        if not spec.keys() & {"task", "run_id", "model", "eval_id", "dataset", "created"}:
            return None
        return Claim(format=f"{FORMAT} (.json)", version=_version(spec))
    if "status" in top and isinstance(top.get("samples"), list):
        first = mapping(next(iter(top["samples"]), None))
        if {"id", "epoch"} <= first.keys() and first.keys() & {"scores", "error"}:
            return Claim(format=f"{FORMAT} (.json)")
        begin = head_text(source, encoding_of(source, "")).partition('"samples"')[2]
        if not top["samples"] and '"epoch"' in begin and '"scores"' in begin:
            return Claim(format=f"{FORMAT} (.json)")
    return None


def _version(spec: Json) -> str:
    return str(mapping(spec.get("packages")).get("inspect_ai") or "")[:40]


def _version_in(head: bytes) -> str:
    """The version that wrote a log, where its first entry is whole in the head."""
    try:
        archive = Archive(io.BytesIO(head))
        first = archive.entries[0]
        if first.name not in _HEADERS or first.size > 1 << 22:
            return ""
        return _version(mapping(mapping(_parsed(archive.content(first))).get("eval")))
    except ValueError:
        return ""


def _parsed(content: bytes, decoder: Decoder | None = None) -> Any:
    """The JSON of an entry; raises ``ValueError``."""
    text = content.decode("utf-8-sig")  # a UnicodeDecodeError is a ValueError
    try:
        return (decoder or Decoder()).decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON ({error})") from None


# --- what a log holds ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a scorer, or one key of what it gave, or the vote of a member of its jury."""

    at: int
    response: str
    vote: str | None
    scorer: str
    key: str = ""
    member: str = ""
    value: Any = None
    outcome: str = ""
    reason: str = ""


@dataclass
class Log:
    """What was read of one log; of a sample no more than its scores, its error and its tags."""

    source: Source
    trouble: Trouble
    header: dict[str, Any] = field(default_factory=dict)
    headless: bool = False
    cut: bool = False
    decoder: Decoder = field(default_factory=Decoder)
    samples: int = 0
    calls: list[Call] = field(default_factory=list)
    tags: dict[int, dict[str, Any]] = field(default_factory=dict)
    failed: list[tuple[str, str]] = field(default_factory=list)  # sample, what it failed of
    failed_in_scorer: int = 0
    unscored: list[str] = field(default_factory=list)
    edited: Counter[str] = field(default_factory=Counter)
    invalid: int = 0
    epochs: set[str] = field(default_factory=set)
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    unread_members: set[str] = field(default_factory=set)
    read_members: set[str] = field(default_factory=set)
    notices: list[Text] = field(default_factory=list)
    scorers: dict[str, Scorer] = field(default_factory=dict)

    @property
    def spec(self) -> Json:
        return mapping(self.header.get("eval"))


@dataclass(frozen=True, slots=True)
class Scorer:
    """What the header says of a scorer. ``members`` are those of a jury: their models or scorers."""

    name: str
    params: Json
    model: str = ""
    members: tuple[str, ...] = ()  # as part of their names, each once
    models: tuple[str, ...] = ()  # of the members, empty where one has none
    readable: bool = False  # whether a member's grade stands in its reply as the tool's own

    @property
    def kind(self) -> str:
        if self.members:
            return "panel"
        if self.name in RULES:
            return "rule"
        return "model" if self.model else ""


def _scorers(header: Json) -> dict[str, Scorer]:
    """Scorers by the key that they have in ``scores``: a name that comes again gets 1, 2, … behind it."""
    spec = mapping(header.get("eval"))
    found: dict[str, Scorer] = {}
    for one in sequence(spec.get("scorers")):
        base = _short(mapping(one).get("name"))
        if not base:
            continue
        key, n = base, 0
        while key in found:
            n += 1
            key = f"{base}{n}"
        found[key] = _scorer(base, mapping(mapping(one).get("options")), spec)
    results = mapping(header.get("results"))
    for one in (*sequence(results.get("scores")), results.get("scorer")):
        key = _short(mapping(one).get("scorer") or mapping(one).get("name"))
        if key and key not in found:
            found[key] = _scorer(key, mapping(mapping(one).get("params")), spec)
    return found


def _short(name: Any) -> str:
    """A scorer's name without its package."""
    return name.rpartition("/")[2] if isinstance(name, str) else ""


def _scorer(name: str, params: Json, spec: Json) -> Scorer:
    named = params.get("model")
    graded = name.startswith(("model_graded_qa", "model_graded_fact"))
    if named is None and graded:
        # Without a model of its own, such a scorer asks the role "grader", else the model under test.
        role = params.get("model_role", "grader")
        role = mapping(role).get("name", role)
        bound = mapping(spec.get("model_roles")).get(role) if isinstance(role, str) else None
        named = bound or spec.get("model")
    if isinstance(named, list):
        models = tuple(_model(m) for m in named)
        readable = "grade_pattern" not in params
        return Scorer(name, params, "", _apart(models), models, readable)
    if name == "multi_scorer":
        inner = [mapping(s) for s in sequence(params.get("scorers"))]
        made = [_scorer(_short(s.get("name")), mapping(s.get("params")), spec) for s in inner]
        labels = [m.model or m.name or "member" for m in made]
        readable = all(
            m.name.startswith("model_graded") and not m.params.get("grade_pattern") for m in made
        )
        return Scorer(name, params, "", _apart(labels), tuple(m.model for m in made), readable)
    return Scorer(name, params, _model(named))


def _model(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(mapping(value).get("model") or "")


def _apart(names: Sequence[str]) -> tuple[str, ...]:
    """Names, numbered where they repeat."""
    times = Counter(names)
    seen: Counter[str] = Counter()
    made = []
    for name in names:
        seen[name] += 1
        made.append(f"{name} ({seen[name]})" if times[name] > 1 else name)
    return tuple(made)


# --- reading ------------------------------------------------------------------------------------


def _logged(source: Source, options: Options) -> Log:
    log = Log(source=source, trouble=Trouble(source, "sample"))
    source.oddities.clear()
    if source.head.startswith(b"PK"):
        _from_archive(log, options)
    else:
        _from_document(log, options)
    return log


def _from_archive(log: Log, options: Options) -> None:
    name = printable(log.source.name)
    with open_bytes(log.source) as file:
        try:
            archive = Archive(file)
        except Unreadable as error:
            raise InputError(f"{name}: it is no zip archive that can be read ({error}).") from error
        entries: dict[str, Entry] = {}
        odd: list[str] = []
        twice = 0
        for entry in archive.entries:
            parts = re.split(r"[/\\]", entry.name)
            if ".." in parts or entry.name.startswith(("/", "\\")) or "\0" in entry.name:
                odd.append(entry.name)
            elif entry.name in _HEADERS or _SAMPLE.fullmatch(entry.name):
                twice += entry.name in entries and entry.name not in _HEADERS
                entries.pop(entry.name, None)  # the later one counts, in its own place
                entries[entry.name] = entry
        log.headless = _HEADERS[0] not in entries
        for header in _HEADERS:
            if header in entries and not log.header:
                try:
                    value = _entry(archive, entries[header], log.decoder, _HEADER, ())
                    log.header = dict(mapping(value))
                    if log.decoder.clash:
                        log.notices.append(_key_twice(log.source, log.decoder.clash, header))
                except ValueError as error:
                    log.headless = True
                    log.notices.append(_unreadable_header(log.source, header, str(error)))
        log.scorers = _scorers(log.header)
        found = [e for n, e in entries.items() if n not in _HEADERS]
        for at, entry in enumerate(found, start=1):
            sample = None  # the one before goes before the next one comes
            try:
                sample = _entry(archive, entry, log.decoder, _WANTED, _NEEDED)
            except (ValueError, MemoryError) as error:
                log.trouble.add(_brief(entry.name), str(error) or "it takes too much memory")
                if isinstance(error, Bomb):
                    log.trouble.n += len(found) - at
                    break
                continue
            if log.decoder.clash:
                log.trouble.add(_brief(entry.name), stands_twice(log.decoder.clash))
                continue
            if log.decoder.again:
                note(log.source, TWICE, _brief(entry.name), log.decoder.again)
            _add(log, at, sample, entry.name, options)
        log.cut = archive.cut
        if archive.cut:
            log.notices.append(
                say(
                    "{name}: the end of the archive is missing, as after a crash or a cut; {n} could be "
                    "found in what is there.",
                    name=printable(log.source.name),
                    n=plural(len(found), "sample"),
                )
            )
    if odd:
        log.notices.append(
            say(
                "{name}: {n} of the archive with names that lead elsewhere were left out ({names}).",
                name=name,
                n=plural(len(odd), "entry", "entries"),
                names=listed((_brief(o) for o in odd), most=3),
            )
        )
    if twice:
        log.notices.append(
            say(
                "{name}: {n} of the archive came more than once; the last one counts, as in any zip.",
                name=name,
                n=plural(twice, "sample"),
            )
        )


def _entry(
    archive: Archive,
    entry: Entry,
    decoder: Decoder,
    wanted: Mapping[str, Keep | None],
    needed: Collection[str],
) -> Any:
    """The JSON of an entry; of a large one only the members that are ``wanted``. Raises ``ValueError``."""
    pieces = archive.pieces(entry)
    begun: list[bytes] = []
    size = 0
    for piece in pieces:
        begun.append(piece)
        size += len(piece)
        if size > WHOLE:
            break
    else:
        return _parsed(b"".join(begun), decoder)
    decoder.clash, decoder.again = "", 0
    with io.TextIOWrapper(
        io.BufferedReader(Stream(itertools.chain(begun, pieces))), encoding="utf-8-sig"
    ) as stream:
        value = record(JsonText(stream, decoder), wanted, needed)
        while stream.read(WHOLE):  # the checksum is known at the end
            pass
    return value


def _slim(event: Any) -> Any:
    """Of an event of a large sample what tells who was asked by whom, and a judge's reply."""
    kind = mapping(event).get("event")
    if kind not in ("model", "span_begin", "step", "score"):
        return None
    made = {k: event[k] for k in _OF_EVENT if isinstance(event.get(k), str)}
    if kind == "model":
        output = mapping(event.get("output"))
        choice = mapping(next(iter(sequence(output.get("choices"))), None))
        text = _reply(output, choice)
        slim = {"stop_reason": choice.get("stop_reason"), "message": {"content": _end_of(text)}}
        made["output"] = {"choices": [slim], "error": bool(output.get("error"))}
        made["error"] = bool(event.get("error"))
    return made


_OF_EVENT = ("event", "id", "parent_id", "name", "type", "action", "span_id", "model")


def _end_of(text: Any) -> Any:
    return text[-_LONGEST_REPLY:] if isinstance(text, str) else None


# Members of a sample, and of a log, that are wanted of one that is too large to decode as a whole.
_NEEDED = ("id", "epoch", "scores", "score")
_WANTED: dict[str, Keep | None] = {
    **dict.fromkeys((*_NEEDED, "error", "invalidation", "metadata")),
    "events": _slim,
    "attachments": _end_of,
}
_HEADER: dict[str, Keep | None] = dict.fromkeys(
    ("version", "status", "eval", "results", "invalidated")
)


def _key_twice(source: Source, key: str, where: str) -> Text:
    return say(
        "{name}: {key} stands twice in {where}, with two values; the last one counts.",
        name=printable(source.name),
        key=Name(_brief(key)),
        where=where,
    )


def _unreadable_header(source: Source, header: str, problem: str) -> Text:
    return say(
        "{name}: {header} could not be read ({problem}).",
        name=printable(source.name),
        header=header,
        problem=printable(problem),
    )


def _brief(text: str) -> str:
    text = printable(text)
    return text if len(text) <= 60 else text[:59] + "…"


def _from_document(log: Log, options: Options) -> None:
    encoding = encoding_of(log.source, options.encoding)
    with io.TextIOWrapper(
        open_bytes(log.source), encoding=encoding, errors="replace", newline=""
    ) as stream:
        apart = {"samples": _taken, "reductions": JsonText.skip}
        try:
            for key, at, value in members(stream, apart, decoder=log.decoder, most=_LARGEST_HEADER):
                clash, again = log.decoder.taken()
                if again and key != "reductions":
                    note(log.source, TWICE, f"sample {at:,}" if at else key, again)
                if key == "samples" and at:
                    if not log.scorers:
                        log.scorers = _scorers(log.header)
                    if isinstance(value, Large) or clash:
                        problem = stands_twice(clash) if clash else str(value)
                        log.trouble.add(f"sample {at:,}", problem)
                    else:
                        _add(log, at, value, "", options)
                elif isinstance(value, Large):
                    log.notices.append(_unreadable_header(log.source, key, str(value)))
                elif key == "samples" and mapping(value):
                    log.trouble.add("samples", "no list")
                elif key != "reductions":
                    if key in log.header or clash:
                        log.notices.append(
                            _key_twice(log.source, clash or key, key if clash else "the log")
                        )
                    log.header[key] = value
        except Torn as error:
            place = f"after sample {log.samples:,}"
            log.trouble.add(place, f"{error}; nothing behind that place is read")
            log.headless = log.headless or "eval" not in log.header
    log.scorers = _scorers(log.header)  # results may stand behind the samples


def _taken(text: JsonText) -> Any:
    return record(text, _WANTED, _NEEDED)


def _add(log: Log, at: int, sample: Any, entry: str, options: Options) -> None:
    """Take what is wanted of one sample."""
    where = _brief(entry) or f"sample {at:,}"
    if not isinstance(sample, dict):
        log.trouble.add(where, "it is no object")
        return
    response = as_text(sample.get("id"))
    if response is None or isinstance(sample.get("id"), dict | list):
        log.trouble.add(where, "it has no id")
        return
    epoch = as_text(sample.get("epoch", 1))
    log.samples += 1
    log.seen[response, epoch or ""] += 1
    log.epochs.add(epoch or "")
    shown = f"{_brief(response)}, epoch {_brief(epoch or '?')}"
    log.invalid += bool(sample.get("invalidation"))
    scores = sample.get("scores")
    if scores is None and isinstance(sample.get("score"), dict):
        scores = {_PLACEHOLDER: sample["score"]}
    scores = mapping(scores)
    if any(len(key) > _LONGEST_NAME for key in scores):
        log.trouble.add(where, f"a scorer's name has more than {_LONGEST_NAME:,} characters")
        return
    log.tags[at] = _tags(mapping(sample.get("metadata")), options)
    for key, score in scores.items():
        if key == _PLACEHOLDER:
            key = next(iter(log.scorers), "scorer")
        if not isinstance(score, dict):
            score = {"value": score}
        log.calls += _calls(log, at, response, epoch, key, score, sample)
    error = sample.get("error")
    if error is not None:
        message = mapping(error).get("message", error)
        text = " ".join((message if isinstance(message, str) else "error").split())
        if scores:
            return  # it was graded all the same (score_on_error), or what failed came later
        scorer = _failing(sequence(sample.get("events")))
        if scorer:
            log.failed_in_scorer += 1
            log.calls.append(Call(at, response, epoch, scorer, outcome="error", reason=text[:120]))
        else:
            log.failed.append((shown, _brief(text)))
    elif not scores:
        log.unscored.append(shown)


def _tags(metadata: Json, options: Options) -> dict[str, Any]:
    """Short fields of a sample's metadata; those that ``--cluster`` names whatever they hold."""
    wanted = options.cluster.split("+") if options.cluster else ()
    found: dict[str, Any] = {}
    for key, value in metadata.items():
        if isinstance(value, dict | list) or value is None or "\0" in key:
            continue
        short = not isinstance(value, str) or (len(value) <= _LONGEST_TAG and "\n" not in value)
        if key in wanted or (short and len(key) <= _LONGEST_TAG and len(found) < _TAGS):
            found[key] = value
    return found


# --- scores -------------------------------------------------------------------------------------


def _calls(
    log: Log, at: int, response: str, epoch: str | None, key: str, score: Json, sample: Json
) -> Iterator[Call]:
    """The calls that one score tells of: the scorer's own, one for each key, and those of its jury."""
    scorer = log.scorers.get(key)
    about = mapping(score.get("metadata"))
    if any(mapping(edit).get("provenance") for edit in sequence(score.get("history"))):
        log.edited[key] += 1
    value = score.get("value")
    call = Call(at, response, epoch, key)
    if isinstance(value, dict | list) and value:
        parts = value.items() if isinstance(value, dict) else enumerate(value, start=1)
        for part, one in parts:
            yield _ended(replaced(call, key=str(part), value=one), {})
    else:
        yield _ended(replaced(call, value=value), score)
    panel = mapping(about.get("panel"))
    votes = sequence(panel.get("votes"))
    if votes:
        yield from _panel(call, votes, panel, scorer)
    elif scorer is not None and scorer.members:
        if scorer.readable and sequence(sample.get("events")):
            log.read_members.add(key)
            yield from _from_events(call, key, scorer, sample)
        else:
            log.unread_members.add(key)


def _ended(call: Call, score: Json) -> Call:
    """The call with its outcome where its value is no label."""
    value = call.value
    explanation = score.get("explanation")
    not_found = isinstance(explanation, str) and explanation.lstrip().startswith(_UNREAD)
    reason = score.get("reason") or mapping(score.get("metadata")).get("unscored_reason")
    reason = reason if isinstance(reason, str) else ""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        if call.key and value is None:
            return replaced(call, outcome=MISSING)
        said = "null" if value is None else "NaN"
        reason = reason or ("grade not found" if not_found else f"the value is {said}")
        outcome = "error" if reason == "scoring_failed" else "unparsed"
        return replaced(call, value=None, outcome=outcome, reason=reason)
    if not_found and value in ("I", "N", 0, False):
        return replaced(call, value=None, outcome="unparsed", reason="grade not found")
    if isinstance(value, dict | list):
        reason = "a value within a value" if value else "an empty value"
        return replaced(call, value=None, outcome="unparsed", reason=reason)
    if not (as_text(value) or "").strip():
        return replaced(call, value=None, outcome="empty", reason="an empty text")
    return call


def _panel(call: Call, votes: Sequence[Any], panel: Json, scorer: Scorer | None) -> Iterator[Call]:
    names = scorer.members if scorer is not None and len(scorer.members) == len(votes) else ()
    why = {
        mapping(f).get("index"): str(mapping(f).get("reason") or "no vote")
        for f in sequence(panel.get("failures"))
        if isinstance(mapping(f).get("index"), int)
    }
    for i, vote in enumerate(votes):
        member = names[i] if names else str(i + 1)
        if isinstance(vote, dict | list) and vote:
            parts = vote.items() if isinstance(vote, dict) else enumerate(vote, start=1)
            for part, one in parts:
                yield _ended(replaced(call, member=member, key=str(part), value=one), {})
        else:
            yield _ended(replaced(call, member=member, value=vote), {"reason": why.get(i, "")})


def _from_events(call: Call, key: str, scorer: Scorer, sample: Json) -> Iterator[Call]:
    """The votes of a jury from the replies of its models, in the order in which each was asked."""
    replies: dict[str, list[Json]] = {}
    for event, name, _ in _scoring(sequence(sample.get("events"))):
        if event.get("event") == "model" and name == key and isinstance(event.get("model"), str):
            replies.setdefault(event["model"], []).append(event)
    attachments = mapping(sample.get("attachments"))
    for member, model in zip(scorer.members, scorer.models, strict=True):
        asked = replies.get(model, [])
        vote = replaced(call, member=member)
        if not asked:
            continue
        # A model that is in the jury once and was asked again, was so after a failure.
        several = scorer.models.count(model) > 1
        event = asked.pop(0) if several else asked[-1]
        yield _vote(vote, event, attachments)


def _vote(call: Call, event: Json, attachments: Json) -> Call:
    output = mapping(event.get("output"))
    choice = mapping(next(iter(sequence(output.get("choices"))), None))
    if event.get("error") or output.get("error"):
        return replaced(call, outcome="error", reason="the model's call failed")
    text = _reply(output, choice)
    if text.startswith("attachment://"):
        attached = attachments.get(text.removeprefix("attachment://"))
        if not isinstance(attached, str):
            return replaced(call, outcome="unparsed", reason="the log does not hold the reply")
        text = attached
    grade = grade_in(text)
    if grade is not None:
        return replaced(call, value=grade)
    stop = choice.get("stop_reason")
    if stop in ("max_tokens", "model_length"):
        return replaced(call, outcome="truncated")
    if stop == "content_filter":
        return replaced(call, outcome="blocked")
    if not text.strip():
        return replaced(call, outcome="empty")
    return replaced(call, outcome="unparsed", reason="grade not found")


def _reply(output: Json, choice: Json) -> str:
    """The text of a model's reply, or the name of the attachment that holds it."""
    text = output.get("completion")
    if not isinstance(text, str) or not text:
        text = mapping(choice.get("message")).get("content")
    if isinstance(text, list):
        text = "\n".join(str(mapping(part).get("text", "")) for part in text)
    return text if isinstance(text, str) else ""


_GRADE = re.compile(r"(?i)(?<!\w)GRADE(?!\w)\s*:\s*(\w*)")
_WORDS = {word: letter for letter, word in LETTERS.items()}


def grade_in(reply: str) -> str | None:
    """The grade in a judge's reply by the tool's own rule: the last ``GRADE: C``, ``P`` or ``I``."""
    found = None
    for match in _GRADE.finditer(reply[-_LONGEST_REPLY:]):
        found = match.group(1)
    if found is None:
        return None
    letter = _WORDS.get(found.lower(), found.upper())
    return letter if letter in LETTERS else None


def _scoring(events: Iterable[Any]) -> Iterator[tuple[Json, str, str]]:
    """Events with the scorer in whose span (before 2025: step) they fall, and the span that they open."""
    spans: dict[Any, str] = {}
    steps: list[str] = []
    for event in events:
        if not isinstance(event, dict):
            continue
        kind = event.get("event")
        opens = ""
        if kind == "span_begin" and isinstance(event.get("id"), str):
            parent = event.get("parent_id")
            around = spans.get(parent, "") if isinstance(parent, str) else ""
            opens = _short(event.get("name")) if event.get("type") == "scorer" else ""
            spans[event["id"]] = opens or around
        elif kind == "step":
            if event.get("action") == "begin":
                opens = _short(event.get("name")) if event.get("type") == "scorer" else ""
                steps.append(opens or (steps[-1] if steps else ""))
            elif steps:
                steps.pop()
        span = event.get("span_id")
        name = spans.get(span, "") if isinstance(span, str) else ""
        yield event, name or (steps[-1] if steps else ""), opens


def _failing(events: Iterable[Any]) -> str:
    """The scorer that was at work when a sample failed; empty where none had begun."""
    begun = ""
    for event, name, opens in _scoring(events):
        if opens:
            begun = opens
        elif event.get("event") == "score" and name == begun:
            begun = ""
    return begun


# --- rows ---------------------------------------------------------------------------------------


def read(source: Source, options: Options) -> list[Rows]:
    """All labels of a log, and apart from them verdicts on lines."""
    if options.layout not in ("auto", "long", "checklist"):
        raise UsageError(
            f"{printable(source.name)}: an Inspect log has no layout to choose but --layout checklist, "
            "for verdicts on lines."
        )
    log = _logged(source, options)
    lined = _lined(log.calls)
    if not options.graders:
        names = {_grader(c, c.key if c.key and c.scorer in lined else None) for c in log.calls}
        refuse_crowd(source.name, names)
    gathered = Gathered(source, unit="sample")
    letters = _lettered(log.calls)
    kept = _kept_letters(options)
    tags, absent = _shared_tags(log, options)
    facts: dict[str, dict[str, Any]] = {}
    made_from: dict[str, list[str]] = {}
    unread: Counter[str] = Counter()
    constant = {
        "task": _name_of(log.spec.get("task")),
        "model": _model(log.spec.get("model")),
    }
    constant = {k: v for k, v in constant.items() if v}
    for call in log.calls:
        line = call.key if call.key and call.scorer in lined else None
        grader = _grader(call, line)
        value, outcome, reason = call.value, call.outcome, call.reason
        if not outcome and isinstance(value, str) and (call.scorer, call.key) in letters:
            letter = value.strip()
            if letter == NO_ANSWER and letter not in kept:
                value, outcome, reason = None, "unparsed", "no-answer"
            elif letter in LETTERS and letter not in kept:
                value = LETTERS[letter]
        if outcome == "unparsed" and not call.member and reason != "no-answer":
            unread[call.scorer] += 1
        if grader not in facts:
            facts[grader] = _facts(log, call)
        if call.member:
            whole = _grader(replaced(call, member=""), line)
            if grader not in made_from.setdefault(whole, []):
                made_from[whole].append(grader)
        gathered.add(
            call.at,
            response=call.response,
            grader=grader,
            label=value,
            outcome=outcome,
            reason=reason,
            line=line,
            vote=call.vote,
            **{**constant, **tags.get(call.at, {})},
        )
    if not gathered:
        raise InputError(_nothing(log))
    _forget_others(log, unread, options)
    version = _version(log.spec)
    rows = gathered.rows(
        layout=f"{FORMAT} {version}" if version else FORMAT,
        notices=[*_notices(log, unread), *gathered.leave_out_measures(options.graders)],
        order=tuple(facts),
        facts={g: f for g, f in facts.items() if f},
        scope=_scope(log),
    )
    return [replaced(one, absent=absent, carried=_juries(made_from, one.seen)) for one in rows]


def _forget_others(log: Log, unread: Counter[str], options: Options) -> None:
    """Nothing is said of scorers of which ``--graders`` leaves every grader out."""
    if not options.graders:
        return
    asked = {*options.graders, options.reference, options.gold or "gold", *options.people}
    wanted = {
        call.scorer
        for call in log.calls
        if asked & {_grader(call, None), _grader(call, call.key or None)}
    }
    for counted in (unread, log.edited):
        for scorer in set(counted) - wanted:
            del counted[scorer]
    log.read_members &= wanted
    log.unread_members &= wanted


def _juries(made_from: Mapping[str, Sequence[str]], seen: Sequence[str]) -> dict[str, Any]:
    """What is made from what: a jury's decision from the votes of its members."""
    graders = [
        {"name": name, "derived_from": [m for m in members if m in seen]}
        for name, members in made_from.items()
        if name in seen
    ]
    return {"graders": graders, "scale": [], "off_scale": []} if graders else {}


def _grader(call: Call, line: str | None) -> str:
    name = f"{call.scorer}.{call.key}" if call.key and line is None else call.scorer
    return f"{name}/{call.member}" if call.member else name


def _name_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _scope(log: Log) -> dict[str, str]:
    """What tells responses of several logs apart: the task, the model, and which run of them it was.

    Retrying or scoring a log anew keeps its ``task_id``; running the task again does not.
    """
    return {
        "task": _name_of(log.spec.get("task")),
        "model": _model(log.spec.get("model")),
        "run": _name_of(log.spec.get("task_id")) or _name_of(log.spec.get("run_id")),
    }


def _lined(calls: Iterable[Call]) -> set[str]:
    """Scorers whose every key holds verdicts of yes and no alone, and that gave a whole value nowhere else.

    A rating of 1 to 5 may happen to be 1 throughout, so one key that is no verdict decides for all.
    """
    seen: dict[str, bool] = {}
    for call in calls:
        if not call.key or call.outcome:
            if call.key:
                seen.setdefault(call.scorer, True)
            continue
        text = (as_text(call.value) or "").strip().lower()
        seen[call.scorer] = seen.get(call.scorer, True) and text in _YES_OR_NO
    return {scorer for scorer, all_verdicts in seen.items() if all_verdicts}


def _lettered(calls: Iterable[Call]) -> set[tuple[str, str]]:
    """Scorers (with the key) whose texts are all among C, P, I and N."""
    seen: dict[tuple[str, str], bool] = {}
    for call in calls:
        if isinstance(call.value, str) and not call.outcome:
            known = call.value.strip() in LETTERS or call.value.strip() == NO_ANSWER
            which = (call.scorer, call.key)
            seen[which] = seen.get(which, True) and known
    return {which for which, all_letters in seen.items() if all_letters}


def _kept_letters(options: Options) -> set[str]:
    """What the user names as it stands in the log."""
    return {
        *options.scale,
        *options.off_scale,
        *options.missing,
        *(old.strip() for old, _ in options.map),
        *(mark for mark, _ in options.failed),
    }


def _facts(log: Log, call: Call) -> dict[str, Any]:
    scorer = log.scorers.get(call.scorer)
    if scorer is None:
        return {}
    model = scorer.model or " + ".join(m for m in scorer.models if m)
    facts: dict[str, Any] = {"kind": scorer.kind, "model": model, "scorer": scorer.name}
    if call.member:
        models = dict(zip(scorer.members, scorer.models, strict=False))
        facts |= {"kind": "model", "model": models.get(call.member, "")}
    prompt = [scorer.params.get(k) for k in ("template", "instructions")]
    if any(isinstance(p, str) and p for p in prompt):
        text = "\n".join(p for p in prompt if isinstance(p, str))
        digest = hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()
        facts["prompt"] = f"sha256:{digest[:12]}"
    return {k: v for k, v in facts.items() if v}


def _shared_tags(log: Log, options: Options) -> tuple[dict[int, dict[str, Any]], tuple[str, ...]]:
    """Tags of the samples and their cluster; a text that is another one nearly everywhere is no tag."""
    values: dict[str, list[Any]] = {}
    for fields in log.tags.values():
        for key, value in fields.items():
            values.setdefault(key, []).append(value)
    wanted = options.cluster.split("+") if options.cluster else []
    if not wanted:
        wanted = [next((c for c in _CLUSTERS if c in values), "")]
    useful = {
        key
        for key, seen in values.items()
        if key not in wanted
        and (all(not isinstance(v, str) for v in seen) or len(set(map(str, seen))) <= len(seen) / 2)
    }
    absent = tuple(f"--cluster {w}" for w in wanted if w and w not in values)
    made = {}
    for at, fields in log.tags.items():
        tags = {_tag(k): v for k, v in fields.items() if k in useful}
        parts = [as_text(fields.get(w)) for w in wanted]
        if wanted[0] and all(p is not None for p in parts):
            tags["cluster"] = "/".join(p for p in parts if p is not None)
        made[at] = tags
    if absent and log.source.alone:
        known = ", ".join(sorted(map(printable, values))) or "none"
        raise UsageError(
            f"{absent[0]}: no sample has such a field in its metadata. Fields: {known}."
        )
    return made, absent


def _tag(name: str) -> str:
    """A field's name where it means nothing else here."""
    taken = (*CANONICAL, "at", "self", "reason", "question", "task", "model", "file")
    return f"{name} (metadata)" if name in taken else name


# --- what is said -------------------------------------------------------------------------------


def _expected(log: Log) -> str:
    """How many samples the run was to have, in words; empty where the log does not say."""
    ids = mapping(log.spec.get("dataset"))
    n = ids.get("samples")
    epochs = mapping(log.spec.get("config")).get("epochs", 1)
    if not isinstance(n, int) or not isinstance(epochs, int) or isinstance(n, bool):
        return ""
    return f" of {n * max(epochs, 1):,}"


def _notices(log: Log, unread: Counter[str]) -> list[Text]:
    notices = [*log.notices, *log.trouble.notices()]
    name = printable(log.source.name)
    status = log.header.get("status")
    if log.headless or status not in (None, "success"):
        said = {
            "started": "the run is still going on or was broken off",
            "cancelled": "the run was cancelled",
            "error": "the run ended with an error",
        }
        why = said.get(str(status), "") if not log.headless else said["started"]
        notices.append(
            say(
                "{name}: {why}; the log holds {n}{of}.",
                name=name,
                why=why or f"the status of the run is {printable(str(status))}",
                n=plural(log.samples, "sample"),
                of=_expected(log),
            )
        )
    if log.failed:
        shown = "; ".join(f"{s}: {m}" for s, m in log.failed[:_SHOWN])
        notices.append(
            say(
                "{name}: {n} failed before {they} graded and {have} no labels ({shown}).",
                name=name,
                n=plural(len(log.failed), "sample"),
                they="it was" if len(log.failed) == 1 else "they were",
                have="has" if len(log.failed) == 1 else "have",
                shown=shown + ("; …" if len(log.failed) > _SHOWN else ""),
            )
        )
    if log.unscored:
        notices.append(
            say(
                "{name}: {n} in the log {have} no scores, as nobody graded {them} ({shown}).",
                name=name,
                n=plural(len(log.unscored), "sample"),
                have="has" if len(log.unscored) == 1 else "have",
                them="it" if len(log.unscored) == 1 else "them",
                shown="; ".join(log.unscored[:_SHOWN]) + ("; …" if log.unscored[_SHOWN:] else ""),
            )
        )
    counted = {
        _short(mapping(r).get("scorer") or mapping(r).get("name")): mapping(r).get(
            "unscored_samples"
        )
        for r in sequence(mapping(log.header.get("results")).get("scores"))
    }
    for scorer, n in unread.items():
        if counted.get(scorer) == 0:
            notices.append(
                say(
                    "{name}: {n} of {scorer} could not be read, though the log counts 0 samples as "
                    "unscored: they are unparsed here, never a class.",
                    name=name,
                    n=plural(n, "verdict"),
                    scorer=Name(scorer),
                )
            )
    if len(log.epochs) > 1:
        notices.append(
            say(
                "{name}: {n} epochs are read as votes. In each epoch the model answered anew, so votes of "
                "a grader may differ because of the answers, not only because of the grader.",
                name=name,
                n=len(log.epochs),
            )
        )
    if log.edited:
        notices.append(
            say(
                "{name}: {n} edited after the grading ({graders}); what is in force now counts.",
                name=name,
                n=plural(sum(log.edited.values()), "score was", "scores were"),
                graders=listed(log.edited),
            )
        )
    if log.invalid or log.header.get("invalidated") is True:
        notices.append(
            say(
                "{name}: somebody marked {what} as invalid; the labels are read all the same.",
                name=name,
                what=plural(log.invalid, "sample") if log.invalid else "the log",
            )
        )
    for jury in sorted(log.read_members):
        notices.append(
            say(
                "{name}: the log does not keep the votes of the members of {jury}; they were read from "
                "their replies by the tool's own rule (GRADE: C, P or I).",
                name=name,
                jury=Name(jury),
            )
        )
    for jury in sorted(log.unread_members):
        notices.append(
            say(
                "{name}: the log does not keep the votes of the members of {jury}; only what they "
                "decided together is read.",
                name=name,
                jury=Name(jury),
            )
        )
    return notices


def _nothing(log: Log) -> str:
    name = printable(log.source.name)
    if log.failed and not log.trouble.n:
        example = f"{log.failed[0][0]}: {log.failed[0][1]}"
        return (
            f"{name}: of {plural(log.samples, 'sample')} none was graded ({example}), so there is nothing "
            "to audit."
        )
    if log.samples and not log.trouble.n:
        return f"{name}: {plural(log.samples, 'sample')} without scores. Grade them with “inspect score”."
    if log.trouble.n:
        (notice,) = log.trouble.notices()
        from voirdire.wording import plain

        return f"{plain(notice)} Nothing of the log is left."
    if log.cut:
        return (
            f"{name}: the end of the archive is missing, as after a crash or a cut, and no whole sample "
            "stands before that. Copy the log again."
        )
    return (
        f"{name}: there are no samples in this Inspect log, only its header or its results. Logs that "
        "were written with --no-log-samples, or before the first sample was done, have none."
    )


READER = Reader(
    name="inspect_log",
    title="Inspect AI logs (.eval, .json)",
    suffixes=(".eval", ".json"),
    sniff=sniff,
    read=read,
)
