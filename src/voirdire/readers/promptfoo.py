"""promptfoo results: JSON, JSONL and CSV exports of ``promptfoo eval -o``.

Tried with: promptfoo 0.121.20 (result version 3).

What is read: every assertion in ``gradingResult.componentResults`` is a grader. It is called by its
metric; without one by type and value, or by type alone where each test has a value of its own. Its
provider stands behind the name where one name has several. An assert-set is a grader made from its
members, which are read once although the export holds them twice. The label is ``pass`` or ``fail`` as
promptfoo decided; the score is a tag, or the label with ``--label score``.

A response is an item under a prompt and a target, the last two where there are several. The item is the
test's variables: one of them where it is an id, else a digest of all, so that no prompt travels; never
``testIdx``, which counts repeats too. Runs of one response (``--repeat``) are votes, numbered by
``repeatIndex`` or by their order. A digest of all answers goes before the ids of files that differ
in it: the same item in another run is another response, while two judges of one run join.

A grader that failed (``metadata.graderError``) is an outcome, although promptfoo stores a fail with
score 0; so is an assert-set that failed with such a member. Where the target failed, nobody was asked.

What the format hides: how a default grader is called, and whether a repeat is another response of the
target. The CSV export loses more: it has scores (two decimals) of assertions with a metric, not whether
they passed, so there the score is the label; a failed grader stands in it as score 0; assertions without
a metric, the members of a set and the graders' models are lost. Where no assertion has a metric, the
status of the whole test is read as one grader.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from functools import lru_cache
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
    head_objects,
    lines,
    mapping,
    sequence,
)
from voirdire.readers._records import records
from voirdire.readers._text import encoding_of, head_text, open_text, undecodable
from voirdire.readers.base import Claim, Reader
from voirdire.rows import CANONICAL, Rows
from voirdire.source import Source
from voirdire.wording import Text, listed, plural, printable, say

FORMAT = "promptfoo"
PASS, FAIL = "pass", "fail"
WHOLE = "all assertions"  # the grader of a CSV without metrics
STATUS = ("Status", "Score", "Named Scores")
METRIC = "Metric: "
_IDS = (
    *("id", "item", "item_id", "sample_id", "question_id", "prompt_id", "doc_id", "uuid"),
    *("response_id", "case_id", "test_id"),
)
_TARGET_FAILED = 2  # ResultFailureReason.ERROR
_HEX, _SHORT_HEX = 12, 8
_LONGEST_WORD = 40
_LONGEST_VALUE = 60
_MOST_TAGS = 12
_LONGEST_REASON = 2000  # characters; a row keeps fewer
_TAKEN = {*CANONICAL, "at", "self", "reason", "question", "raw", "file", "outcome_reason"}
_MODEL_GRADED = {
    *("llm-rubric", "g-eval", "factuality", "model-graded-factuality", "model-graded-closedqa"),
    *("answer-relevance", "context-faithfulness", "context-recall", "context-relevance"),
    *("conversation-relevance", "select-best", "search-rubric", "agent-rubric", "pi"),
    *("moderation", "trajectory:goal-success"),
}
# How older versions, which do not mark a failed grader, say that it failed.
_FAILED = re.compile(
    r"could not extract json|produced malformed response|^no output$|^(?:api|provider) (?:call )?error",
    re.IGNORECASE,
)
_UNREADABLE = re.compile(
    r"extract|json|malformed|pars|invalid|unexpected|missing|shape", re.IGNORECASE
)
_HEADER = re.compile(r"\[(.*?)\] (.*)", re.DOTALL)
_RUNTIME_VARIABLES = ("sessionId",)


# --- sniffing -----------------------------------------------------------------------------------


def sniff(source: Source) -> Claim | None:
    """Sure where the head has promptfoo's summary, one of its results, or the header of its CSV."""
    if source.frame is not None or (source.path is not None and source.path.is_dir()):
        return None
    start = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"{":
        top = first_object(source)
        results = mapping(top.get("results"))
        if "version" in results and ("evalId" in top or {"timestamp", "prompts"} <= results.keys()):
            return Claim(format=FORMAT, version=f"results {as_text(results['version'])}")
        if any(_is_result(one) for one in head_objects(source, most=3)):
            return Claim(format=FORMAT, version="JSONL")
        return None
    return Claim(format=FORMAT, version="CSV") if _columns(_header(source)) else None


def _is_result(one: Mapping[str, Any]) -> bool:
    if "gradingResult" not in one:
        return False
    graded = mapping(one["gradingResult"])
    return {"promptIdx", "testIdx"} <= one.keys() or {"pass", "score"} <= graded.keys()


def _header(source: Source) -> list[str]:
    try:
        text = head_text(source, encoding_of(source, "")).removeprefix("\ufeff")
        return next(csv.reader(io.StringIO(text, newline="")), [])
    except (csv.Error, InputError):
        return []


# --- results ------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False, kw_only=True)
class _Asked:
    """An assertion as it was asked: one object for all results that ask it in the same words."""

    kind: str
    metric: str
    value: str
    judge: str  # its provider, whole
    model: str  # what the provider is called


@dataclass(slots=True, kw_only=True)
class _Call:
    """One assertion on one result, without the texts of the log. ``members`` are those of an assert-set."""

    asked: _Asked
    label: str | None
    outcome: str
    reason: str
    score: str | None
    passed: bool
    name: str = ""
    members: list[_Call] = field(default_factory=list)


@dataclass(slots=True)
class _Result:
    """One test of one prompt and one target."""

    at: int
    variables: str  # a digest
    ids: dict[str, str | None]  # the variables that are called like an id
    column: tuple[str, str, int]  # target, prompt, and which of several of that name
    calls: list[_Call]
    test: int = 0
    repeat: int | None = None
    said: str = ""  # a digest
    named: dict[str, int] = field(default_factory=dict)  # graders by name, how often
    tags: dict[str, str] = field(default_factory=dict)
    item: str = ""
    response: str = ""
    vote: int | None = None


def _digest(text: str, digits: int = _HEX) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:digits]


def _plain(value: Any) -> str | None:
    """A variable as promptfoo's table shows it, objects in one order of keys."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value[:1] in "{[":
        try:
            value = decoded(value)
        except (ValueError, MemoryError):
            return as_text(value)
    text = as_text(value)
    return None if text is None else text.strip()


def _variables(given: Iterable[tuple[str, Any]]) -> dict[str, str]:
    return {
        name: text
        for name, value in given
        if not name.startswith("_")
        and name not in _RUNTIME_VARIABLES
        and (text := _plain(value)) is not None
    }


def _word(value: Any) -> str | None:
    """A value that is a word (a category, a code), not a text."""
    text = as_text(value) if isinstance(value, str | int | float) else None
    if text is None or len(text) > _LONGEST_WORD or len(text.split()) != 1:
        return None
    return text


@lru_cache(maxsize=4096)
def _shortened(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= _LONGEST_VALUE:
        return text
    return f"{text[:_LONGEST_VALUE]}… #{_digest(text, 4)}"


def _one_line(value: Any) -> str:
    """A text as part of a name; what is cut off stands in it as a digest."""
    return _shortened(as_text(value) or "")


def _by_model(kind: str) -> bool:
    kind = kind.removeprefix("not-")
    return kind in _MODEL_GRADED or kind.startswith("promptfoo:redteam:")


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _provider(value: Any) -> str:
    """What a provider is called: its label, else its id; a script by what its options call it."""
    if isinstance(value, str):
        return _one_line(value)
    given = mapping(value)
    label, id_ = as_text(given.get("label")), as_text(given.get("id"))
    if label:
        return _one_line(label)
    config = mapping(given.get("config"))
    if id_ is None or id_.startswith(("file:", "python:", "exec:", "http")):
        called = as_text(config.get("name")) or as_text(config.get("model"))
        return _one_line(called or id_)
    return _one_line(id_)


def _key(value: Any) -> str:
    return value if type(value) is str else as_text(value) or ""


class _Reading:
    """One export on its way to rows."""

    def __init__(self, source: Source, options: Options, *, unit: str) -> None:
        self.source = source
        self.scores = options.label == "score"
        self.gathered = Gathered(source, unit=unit)
        self.trouble = Trouble(source, what="result")
        self.results: list[_Result] = []
        self.target_failed = 0
        self.without = 0
        self.columns: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.asked: dict[tuple[str, ...], _Asked] = {}
        self.pooled: set[str] = set()
        self.facts: dict[str, dict[str, Any]] = {}
        self.sets: dict[str, dict[str, None]] = {}
        self.more: list[Text] = []

    # --- from JSON ---

    def result(self, at: int, given: Any) -> None:
        one = mapping(given)
        test = mapping(one.get("testCase"))
        graded = mapping(one.get("gradingResult"))
        if not one or not ("gradingResult" in one or "vars" in one):
            self.trouble.add(f"{self.gathered.unit} {at:,}", "it is no result of a test")
            return
        variables = one.get("vars") if isinstance(one.get("vars"), dict) else test.get("vars")
        known = _variables(mapping(variables).items())
        if not known:
            known = _variables([("description", test.get("description"))])
        answer = one.get("response")
        said = as_text(mapping(answer).get("output") if isinstance(answer, dict) else answer)
        prompt = one.get("prompt")
        label = as_text(mapping(prompt).get("label") or mapping(prompt).get("raw") or prompt) or ""
        grader = mapping(test.get("options")).get("provider")
        calls = self.calls(sequence(graded.get("componentResults")), grader)
        error = as_text(one.get("error")) or ""
        if not calls and (one.get("failureReason") == _TARGET_FAILED or (error and not graded)):
            if said is not None and not mapping(answer).get("error"):
                reason = error.split("\n", 1)[0] or "it has no result"
                calls = self.ungraded(sequence(test.get("assert")), grader, reason)
            else:
                self.target_failed += 1
        elif not calls:
            self.without += 1
        target = _provider(one.get("provider"))
        place = _number(one.get("promptIdx"))
        metadata = mapping(one.get("metadata"))
        self.keep(
            at,
            known,
            (target, label, place),
            calls,
            said=said,
            test=_number(one.get("testIdx")) or 0,
            repeat=_number(one.get("repeatIndex", metadata.get("repeatIndex"))),
            tags=_tags({**mapping(test.get("metadata")), **metadata}),
        )

    def keep(
        self,
        at: int,
        variables: Mapping[str, str],
        where: tuple[str, str, int | None],
        calls: list[_Call],
        *,
        said: str | None,
        **more: Any,
    ) -> None:
        """Keep what is wanted of one result; its texts become digests."""
        target, label, place = where
        same = self.columns[target, label]
        if place is not None and place not in same:
            same.append(place)
        self.results.append(
            _Result(
                at=at,
                variables=_digest(json.dumps(variables, ensure_ascii=False, sort_keys=True)),
                ids={k: _word(v) for k, v in variables.items() if k.lower() in _IDS},
                column=(target, label, -1 if place is None else place),
                calls=calls,
                said="" if said is None else _digest(said.strip()),
                **more,
            )
        )

    # --- assertions ---

    def _asks(self, assertion: Mapping[str, Any], grader: Any) -> _Asked:
        """An assertion; ``grader`` is the provider of the test's model-graded ones that name none."""
        kind, metric, value = (_key(assertion.get(k)) for k in ("type", "metric", "value"))
        judge = assertion.get("provider")
        if judge is None and grader is not None and _by_model(kind):
            judge = grader
        whole = _key(judge)
        key = (kind, metric, value, whole)
        found = self.asked.get(key)
        if found is None:
            kind, metric, value = _shortened(kind), _shortened(metric), _shortened(value)
            found = self.asked[key] = _Asked(
                kind=kind, metric=metric, value=value, judge=whole, model=_provider(judge)
            )
        return found

    def call(
        self,
        assertion: Mapping[str, Any],
        given: Mapping[str, Any],
        grader: Any = None,
        unread: int = 0,
    ) -> _Call:
        """One assertion with its result; ``unread`` are the members of a set without a verdict."""
        asked = self._asks(assertion, grader)
        passed = given.get("pass")
        label, outcome, reason = self._verdict(asked, given, unread)
        return _Call(
            asked=asked,
            label=label,
            outcome=outcome,
            reason=reason,
            score=None if self.scores or outcome else _score(given),
            passed=passed is True,
        )

    def _verdict(
        self, asked: _Asked, given: Mapping[str, Any], unread: int
    ) -> tuple[str | None, str, str]:
        if not given:
            return None, "error", "it has no result"
        passed = given.get("pass")
        failed = mapping(given.get("metadata")).get("graderError") is True
        if failed or (not passed and _by_model(asked.kind)):
            reason = as_text(given.get("reason")) or ""
            if failed or _FAILED.search(reason):
                return None, _outcome(reason), reason[:_LONGEST_REASON]
        if unread and (self.scores or passed is not True):
            # It might have passed with the verdict that could not be read.
            return None, "unparsed", f"{unread} of its members could not be read"
        if self.scores:
            score = _score(given)
            return score, "" if score is not None else "unparsed", "it has no score"
        if isinstance(passed, bool):
            return (PASS if passed else FAIL), "", ""
        return None, "unparsed", "it says neither pass nor fail"

    def calls(self, components: Sequence[Any], grader: Any) -> list[_Call]:
        """The assertions of one result, members of a set with their set and only there.

        promptfoo writes the members of a set into its result and once more behind it.
        """
        found: list[_Call] = []
        at = 0
        while at < len(components):
            result = mapping(components[at])
            at += 1
            if not result:
                continue
            assertion = mapping(result.get("assertion"))
            inside = result.get("componentResults")
            members = [m for m in inside if mapping(m)] if isinstance(inside, list) else []
            if members and not assertion:
                assertion = mapping(mapping(result.get("metadata")).get("assertionSet"))
            if members and list(components[at : at + len(members)]) == members:
                at += len(members)
            inner = [self.call(mapping(m.get("assertion")), m, grader) for m in members]
            call = self.call(assertion, result, grader, sum(m.label is None for m in inner))
            call.members = inner
            found.append(call)
        return found

    def ungraded(self, asserts: Sequence[Any], grader: Any, reason: str) -> list[_Call]:
        """Assertions that were asked for and have no result, as grading ended with an error."""
        made = []
        for one in asserts:
            assertion = mapping(one)
            if assertion:
                call = self.call(assertion, {}, grader)
                call.reason = reason
                call.members = self.ungraded(sequence(assertion.get("assert")), grader, reason)
                made.append(call)
        return made

    # --- naming ---

    def name(self) -> None:
        """Give every result its response id and vote, and every assertion the name of its grader."""
        self._respond()
        self._repeat()
        # Sets are named first, so that a member without name can be called after its set.
        self._called((r, r.calls) for r in self.results)
        for result in self.results:
            for call in result.calls:
                for i, member in enumerate(call.members, start=1):
                    if not member.asked.kind and not member.asked.metric:
                        member.name = f"{call.name}/{i}"
        self._called(
            (r, [m for c in r.calls for m in c.members if not m.name])
            for r in self.results
            if any(c.members for c in r.calls)
        )
        for result in self.results:
            for call in result.calls:
                if call.members:
                    known = self.sets.setdefault(call.name, {})
                    known.update(dict.fromkeys(m.name for m in call.members))

    def _respond(self) -> None:
        targets = {t for t, _ in self.columns}
        prompts = {
            (p, n) for (_, p), places in self.columns.items() for n in range(len(places) or 1)
        }
        ids = self._ids()
        self.scope: dict[str, str] = {}
        for result, item in zip(self.results, ids, strict=True):
            target, label, place = result.column
            places = sorted(self.columns[target, label])
            nth = places.index(place) if place in places else 0
            prompt = _word(label) if "{" not in label else None
            prompt = (prompt or _digest(label, _SHORT_HEX)) + (f"#{nth + 1}" if nth else "")
            parts = [item]
            if len(targets) > 1:
                parts.append(target)
                result.tags["target"] = target
            else:
                self.scope["target"] = target
            if len(prompts) > 1:
                parts.append(prompt)
                result.tags["prompt"] = prompt
            else:
                self.scope["prompt"] = prompt
            result.item, result.response = item, "/".join(parts)
        # Another run has other answers under the same ids; its judges' files have the same ones.
        graded = sorted({(r.response, r.said) for r in self.results if r.calls})
        self.scope["outputs"] = _digest(json.dumps(graded), _SHORT_HEX)

    def _ids(self) -> list[str]:
        """The item of each result: an id among its variables where it tells them apart, else a digest."""
        digests = [r.variables for r in self.results]
        spelled = {k.lower(): k for r in self.results for k in r.ids}
        for name in (spelled[n] for n in _IDS if n in spelled):
            found = [r.ids.get(name) for r in self.results]
            pairs = set(zip(found, digests, strict=True))
            if None not in found and len(pairs) == len(set(found)) == len(set(digests)):
                return [str(f) for f in found]
        return digests

    def _repeat(self) -> None:
        by_response: dict[str, list[_Result]] = defaultdict(list)
        for result in self.results:
            if result.calls:
                by_response[result.response].append(result)
        changed = repeated = 0
        for same in by_response.values():
            if len(same) < 2:
                continue
            same.sort(key=lambda r: (r.test, r.at))
            given = [r.repeat for r in same]
            written = None not in given and len(set(given)) == len(given)
            for i, result in enumerate(same, start=1):
                result.vote = result.repeat + 1 if written and result.repeat is not None else i
            repeated += 1
            changed += len({r.said for r in same}) > 1
        for result in self.results:
            if repeated and result.vote is None:
                result.vote = 1
        if changed:
            self.more.append(
                say(
                    "{name}: in {changed} of {repeated} repeats are votes on answers that are not the same, so "
                    "votes differ for the target's reasons too.",
                    name=printable(self.source.name),
                    changed=f"{changed:,}",
                    repeated=plural(repeated, "repeated response"),
                )
            )

    def _called(self, given: Iterable[tuple[_Result, Sequence[_Call]]]) -> None:
        """Names: the metric, else type and value; provider and number only where they are needed."""
        groups = [(result, calls) for result, calls in given if calls]
        asked: dict[_Asked, None] = {}
        items: dict[tuple[str, str], set[str]] = defaultdict(set)
        for result, calls in groups:
            for call in calls:
                asked[call.asked] = None
                items[call.asked.kind, call.asked.value].add(result.item)
        several = len({result.item for result, _ in groups}) > 1

        def kind_and_value(one: _Asked) -> str:
            kind = one.kind or "assertion"
            if not one.value:
                return kind
            if several and len(items[one.kind, one.value]) == 1:
                self.pooled.add(kind)
                return kind
            return f"{kind}: {one.value}"

        bases = {one: one.metric or kind_and_value(one) for one in asked}
        judges: dict[str, dict[str, str]] = defaultdict(dict)
        for one, base in bases.items():
            if one.judge not in judges[base]:
                judge = one.model
                if judge in judges[base].values():
                    judge = f"{judge} #{_digest(one.judge, 4)}"
                judges[base][one.judge] = judge
        names: dict[_Asked, str] = {}
        for one, base in bases.items():
            judge = judges[base][one.judge]
            names[one] = f"{base} ({judge})" if len(judges[base]) > 1 and judge else base
        twice: set[str] = set()
        for _, calls in groups:
            inside = Counter(names[call.asked] for call in calls) if len(calls) > 1 else {}
            twice.update(name for name, n in inside.items() if n > 1)
        for one, base in bases.items():
            if names[one] in twice and one.metric == base:
                names[one] = f"{names[one]}: {kind_and_value(one)}"
        for result, calls in groups:
            for call in calls:
                name = names[call.asked]
                n = result.named[name] = result.named.get(name, 0) + 1
                call.name = name if n == 1 else f"{name} ({n})"

    # --- rows ---

    def add(self) -> None:
        for result in sorted(self.results, key=lambda r: r.at):
            for call in result.calls:
                for member in call.members:
                    self._add(result, member)
                self._add(result, call)

    def _add(self, result: _Result, call: _Call) -> None:
        self._fact(call)
        self.gathered.add(
            result.at,
            response=result.response,
            grader=call.name,
            label=call.label,
            outcome=call.outcome,
            reason=call.reason,
            cluster=result.item,
            vote=result.vote,
            score=call.score,
            **result.tags,
        )

    def _fact(self, call: _Call) -> None:
        facts = self.facts.setdefault(call.name, {})
        kind = call.asked.kind
        if facts or not kind:
            return
        facts["kind"] = "person" if kind == "human" else "model" if _by_model(kind) else "code"
        facts["type"] = kind
        if call.asked.model:
            facts["model"] = call.asked.model
        if call.asked.value and facts["kind"] == "model" and kind not in self.pooled:
            facts["prompt"] = call.asked.value

    def notices(self) -> list[Text]:
        name = printable(self.source.name)
        found = list(self.trouble.notices())
        if self.target_failed:
            found.append(
                say(
                    "{name}: in {n} the target gave no response; nobody was asked, and {they} not graded.",
                    name=name,
                    n=plural(self.target_failed, "result"),
                    they="it is" if self.target_failed == 1 else "they are",
                )
            )
        if self.without:
            found.append(
                say(
                    "{name}: {n} no assertion and {are} left out.",
                    name=name,
                    n=plural(self.without, "result has", "results have"),
                    are="is" if self.without == 1 else "are",
                )
            )
        if self.pooled:
            found.append(
                say(
                    "{name}: assertions of the type {types} have a value of their own in each test, so "
                    "they are read as one grader a type. Give them a metric to tell them apart.",
                    name=name,
                    types=listed(sorted(self.pooled)),
                )
            )
        return [*found, *self.more]

    def rows(self) -> list[Rows]:
        self.name()
        self.add()
        made = self.gathered.rows(
            layout=FORMAT,
            notices=self.notices(),
            order=tuple(dict.fromkeys(c for c in self.gathered.columns.get("grader", ()) if c)),
            facts={g: f for g, f in self.facts.items() if f},
            scope=self.scope,
        )
        derived = [{"name": s, "derived_from": list(m)} for s, m in self.sets.items()]
        if derived:
            carried = {"scale": [], "off_scale": [], "graders": derived}
            made = [replaced(one, carried=carried) for one in made]
        return made


def _tags(metadata: Mapping[str, Any]) -> dict[str, str]:
    """What a test says of itself in words: categories and codes, no texts."""
    found: dict[str, str] = {}
    for name, value in metadata.items():
        word = _word(value)
        if word is None or name.startswith("_") or "\0" in name or len(name) > _LONGEST_WORD:
            continue
        if not name.strip() or len(found) == _MOST_TAGS:
            continue
        found[f"{name} (log)" if name.lower() in {*_TAKEN, "score"} else name] = word
    return found


def _score(result: Mapping[str, Any]) -> str | None:
    score = result.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float):
        return None
    return as_text(score)


def _outcome(reason: str) -> str:
    """How the call of a grader ended, by what promptfoo says of it."""
    if reason.strip().lower() in ("no output", "empty output"):
        return "empty"
    return "unparsed" if _UNREADABLE.search(reason) else "error"


# --- CSV ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Column:
    """One prompt and target of a CSV export: where its cells stand."""

    target: str
    prompt: str
    start: int
    status: int
    metrics: tuple[tuple[str, int], ...]


def _columns(header: Sequence[str]) -> list[_Column]:
    found: list[_Column] = []
    for at in range(1, len(header) - 3):
        if tuple(header[at : at + 3]) != STATUS:
            continue
        start = at - 1
        if header[start] == "Reasoning" and start > 0:
            start -= 1
        metrics = []
        end = at + 3
        while end < len(header) and header[end].startswith(METRIC):
            metrics.append((header[end].removeprefix(METRIC), end))
            end += 1
        if end >= len(header) or header[end] != "Grader Reason":
            continue
        split = _HEADER.fullmatch(header[start])
        target, prompt = split.groups() if split else ("", header[start])
        found.append(_Column(target, prompt, start, at, tuple(metrics)))
    return found


def _named_scores(record: Sequence[str], column: _Column) -> dict[str, Any]:
    text = record[column.status + 2].strip()
    if text:
        try:
            scores = mapping(decoded(text))
        except (ValueError, MemoryError):
            scores = {}
        if scores:
            return dict(scores)
    scores = {}
    for name, at in column.metrics:
        try:
            scores[name] = float(record[at])
        except ValueError:
            continue
    return scores


def _from_csv(source: Source, options: Options) -> list[Rows]:
    reading = _Reading(source, options, unit="line")
    encoding = encoding_of(source, options.encoding)
    columns: list[_Column] = []
    header: list[str] = []
    found: list[tuple[int, list[str]]] = []
    line = 1
    try:
        with _long_cells(), open_text(source, encoding, newline="") as stream:
            reader = csv.reader(stream)
            try:
                for record in reader:
                    if not header:
                        header = [c.removeprefix("\ufeff") for c in record]
                        columns = _columns(header)
                    elif len(record) == len(header):
                        found.append((line, record))
                    elif any(cell.strip() for cell in record):
                        reading.trouble.add(
                            f"line {line:,}", f"{len(record)} cells instead of {len(header)}"
                        )
                    line = reader.line_num + 1
            except csv.Error as error:
                reading.trouble.add(f"line {line:,}", str(error))
    except UnicodeError as error:
        raise undecodable(source, encoding) from error
    if not columns:
        raise InputError(
            f"{printable(source.name)}: there is no column Status, Score, Named Scores of promptfoo in it."
        )
    described = header[0] == "Description" and columns[0].start > 0
    names = header[1 if described else 0 : columns[0].start]
    offset = len(header[: columns[0].start]) - len(names)
    metrics = any(_named_scores(record, c) for _, record in found for c in columns)
    reading.scores = metrics
    for place, column in enumerate(columns):
        reading.columns[column.target, column.prompt].append(place)
    for at, record in found:
        cells = zip(names, record[offset:], strict=False)
        variables = _variables((n, c) for n, c in cells)
        if not variables and described:
            variables = _variables([("description", record[0])])
        for place, column in enumerate(columns):
            _cells(reading, at, record, (place, column), variables, metrics=metrics)
    _note_lost(reading, metrics=metrics)
    return reading.rows()


def _cells(
    reading: _Reading,
    at: int,
    record: Sequence[str],
    where: tuple[int, _Column],
    variables: dict[str, str],
    *,
    metrics: bool,
) -> None:
    """What one row says of one prompt and target."""
    place, column = where
    status = record[column.status].strip()
    if not status:
        return
    calls: list[_Call] = []
    if status == "ERROR":
        reading.target_failed += 1
    elif metrics:
        scores = _named_scores(record, column)
        calls = [reading.call({"metric": m}, {"score": s}) for m, s in scores.items()]
        reading.without += not calls
    else:
        passed = {"PASS": True, "FAIL": False}.get(status)
        calls = [reading.call({"metric": WHOLE}, {"pass": passed})]
    asked = (column.target, column.prompt, place)
    reading.keep(at, variables, asked, calls, said=record[column.start])


def _note_lost(reading: _Reading, *, metrics: bool) -> None:
    name = printable(reading.source.name)
    if metrics:
        reading.more.append(
            say(
                "{name}: a CSV export of promptfoo has the scores of assertions with a metric, to two "
                "decimals, not whether they passed, so the score is the label. A grader that failed "
                "stands in it as score 0; assertions without a metric, members of an assert-set and the "
                "graders' models are lost. Export JSON or JSONL to have them.",
                name=name,
            )
        )
    else:
        reading.more.append(
            say(
                "{name}: no assertion has a metric, so all that a CSV export of promptfoo says is whether "
                "a test passed as a whole, and a grader that failed counts as a fail. Export JSON or JSONL "
                "to have each assertion.",
                name=name,
            )
        )


def _said_better(source: Source) -> str:
    """The name of a JSON or JSONL export beside a CSV export in a folder, if there is one."""
    if not source.searched or source.path is None:
        return ""
    for suffix in (".json", ".jsonl"):
        other = source.path.with_suffix(suffix)
        if other.is_file() and sniff(Source(name=other.name, path=other)) is not None:
            return other.name
    return ""


# --- reading ------------------------------------------------------------------------------------


def read(source: Source, options: Options) -> list[Rows]:
    """The verdicts of all assertions, one row each.

    Raises :class:`InputError` where nothing can be read, and for a CSV export found in a folder
    beside the JSON or JSONL export of the same name, which says more.
    """
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{":
        better = _said_better(source)
        if better:
            raise InputError(
                f"{printable(source.name)}: it is the same run as {printable(better)}, which says more. "
                "Name it by itself to read it."
            )
        return _from_csv(source, options)
    if "results" not in first_object(source):
        reading = _Reading(source, options, unit="line")
        for at, value in lines(source, options, reading.trouble):
            reading.result(at, value)
        return reading.rows()
    reading = _Reading(source, options, unit="result")
    there = False
    for _, at, value in records(
        source,
        options,
        reading.trouble,
        lists=(("results",), ("results", "results")),
    ):
        there = True
        if at:
            reading.result(at, value)
    if not there:
        raise InputError(f"{printable(source.name)}: there is no list results.results in it.")
    return reading.rows()


READER = Reader(
    name=FORMAT,
    title="promptfoo results (JSON, JSONL, CSV)",
    suffixes=(".json", ".jsonl", ".csv"),
    sniff=sniff,
    read=read,
)
