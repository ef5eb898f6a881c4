"""DeepEval test runs: the JSON of a results folder and a dumped ``EvaluationResult``, in both spellings.

Tried with: deepeval 4.3.1 (``test_run_*.json`` with ``testCases``/``metricsData``, and
``EvaluationResult.model_dump_json()`` with ``test_results``/``metrics_data``).

What is read: every entry of a test case's metrics. The metric's name is the grader; its
``evaluationModel`` is a fact, and part of the name where one name has several models. The label is
``pass`` or ``fail`` as the metric's threshold decided (``success``); the score is a tag, or the label
with ``--label score``. An ``error`` without a score is the outcome ``error``, although DeepEval stores
``success: false`` beside it. A metric that was skipped was not asked.

A response is a test case by its name. Names that DeepEval counts out (``test_case_0``) and names of
several different answers tell none apart between files, so such a case is named by a digest of its input
and output, or of its turns. A digest of what was answered under the names goes before the ids of
files that differ in it, as of another run; another judge's file of one run joins. One case more than once, with one answer, is a vote.

What the format hides: how the judge's reply was read, and so whether an error was a broken reply or a
failed call; metrics of the spans inside a trace, which are not read; the model under test, unless the
run's hyperparameters name it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voirdire.errors import InputError
from voirdire.options import Options
from voirdire.readers._logs import (
    Gathered,
    Trouble,
    as_text,
    first_object,
    mapping,
    sequence,
)
from voirdire.readers._records import records
from voirdire.readers.base import Claim, Reader
from voirdire.rows import Rows
from voirdire.source import Source
from voirdire.wording import plural, printable, say

FORMAT = "deepeval"
PASS, FAIL = "pass", "fail"
# The key of test cases, and of the metrics within one, in each spelling.
_CAMEL = ("testCases", "conversationalTestCases")
_SNAKE = "test_results"
_METRICS = ("metricsData", "metrics_data")
_COUNTED = re.compile(r"(?:conversational_)?test_case_\d+")
_HEX, _SHORT = 12, 8


def sniff(source: Source) -> Claim | None:
    """Sure where test cases stand at the top and metrics of one are in the head."""
    if source.frame is not None or (source.path is not None and source.path.is_dir()):
        return None
    if not source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return None
    top = first_object(source)
    if any(key in top for key in _CAMEL) and (
        b'"metricsData"' in source.head or b'"actualOutput"' in source.head
    ):
        return Claim(format=FORMAT, version="test run")
    if _SNAKE in top and (b'"metrics_data"' in source.head or b'"actual_output"' in source.head):
        return Claim(format=FORMAT, version="EvaluationResult")
    return None


@dataclass(slots=True)
class _Case:
    """One test case: where it stands, what it is called, and a digest of what was asked and answered."""

    at: int
    name: str
    digest: str
    metrics: Sequence[Any]
    kind: str
    response: str = ""
    vote: int | None = None


def _either(case: Mapping[str, Any], camel: str, snake: str) -> Any:
    return case.get(camel) if case.get(camel) is not None else case.get(snake)


def _digest(case: Mapping[str, Any]) -> str:
    turns = [
        [as_text(mapping(t).get("role")), as_text(mapping(t).get("content"))]
        for t in sequence(case.get("turns"))
    ]
    asked = as_text(case.get("input"))
    answered = as_text(_either(case, "actualOutput", "actual_output"))
    text = json.dumps(turns or [asked, answered], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_HEX]


class _Reading:
    """One test run on its way to rows."""

    def __init__(self, source: Source, options: Options) -> None:
        self.scores = options.label == "score"
        self.gathered = Gathered(source, unit="test case")
        self.cases_bad = Trouble(source, what="test case")
        self.metrics_bad = Trouble(source, what="metric result")
        self.cases: list[_Case] = []
        self.without = self.skipped = self.spans = 0
        self.facts: dict[str, dict[str, Any]] = {}

    def case(self, at: int, given: Any, kind: str) -> None:
        case = mapping(given)
        metrics = next((case[key] for key in _METRICS if case.get(key) is not None), None)
        if not case or not (metrics is None or isinstance(metrics, list)):
            self.cases_bad.add(f"test case {at:,}", "it is no test case with a list of metrics")
            return
        self.spans += _traced(case.get("trace"))
        if not metrics:
            self.without += 1
            return
        name = as_text(case.get("name")) or ""
        digest = _digest(case)
        if not name.strip() or _COUNTED.fullmatch(name):
            name = ""
        self.cases.append(_Case(at, name, digest, metrics, kind))

    def outputs(self) -> str:
        """A digest of what was answered under the names of cases: another run has other answers under
        them, another judge's file the same ones. Empty where no case has a name.
        """
        named = sorted({(case.name, case.digest) for case in self.cases if case.name})
        text = json.dumps(named)
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_SHORT] if named else ""

    def respond(self) -> None:
        """The id and, where a case is there more than once, the vote of each case."""
        answers: dict[str, set[str]] = defaultdict(set)
        for case in self.cases:
            answers[case.name].add(case.digest)
        for case in self.cases:
            case.response = case.name or case.digest
            if case.name and len(answers[case.name]) > 1:
                case.response = f"{case.name}/{case.digest}"
        seen = Counter(case.response for case in self.cases)
        votes: Counter[str] = Counter()
        if max(seen.values(), default=0) > 1:
            for case in self.cases:
                votes[case.response] += 1
                case.vote = votes[case.response]

    def add(self) -> None:
        models: dict[str, set[str]] = defaultdict(set)
        for case in self.cases:
            for metric in case.metrics:
                name, model = _who(mapping(metric))
                if name and model:
                    models[name].add(model)
        kinds = {case.kind for case in self.cases}
        for case in self.cases:
            seen: Counter[str] = Counter()
            for place, given in enumerate(case.metrics, start=1):
                metric = mapping(given)
                name, model = _who(metric)
                if not name:
                    self.metrics_bad.add(
                        f"test case {case.at:,}, metric {place:,}", "it has no name"
                    )
                    continue
                if metric.get("skipped") is True:
                    self.skipped += 1
                    continue
                grader = f"{name} ({model})" if model and len(models[name]) > 1 else name
                seen[grader] += 1
                if seen[grader] > 1:
                    grader = f"{grader} ({seen[grader]})"
                self._fact(grader, metric, model)
                label, outcome, reason = self._verdict(metric)
                self.gathered.add(
                    case.at,
                    response=case.response,
                    grader=grader,
                    label=label,
                    outcome=outcome,
                    reason=reason,
                    vote=case.vote,
                    score=None if self.scores or outcome else _score(metric),
                    kind=(case.kind or "single turn") if len(kinds) > 1 else None,
                )

    def _verdict(self, metric: Mapping[str, Any]) -> tuple[str | None, str, str]:
        score, passed = _score(metric), metric.get("success")
        error = as_text(metric.get("error"))
        if score is None and error is not None:
            return None, "error", error.strip().split("\n", 1)[0]
        if self.scores:
            return score, "" if score is not None else "unparsed", "it has no score"
        if isinstance(passed, bool):
            return (PASS if passed else FAIL), "", ""
        return None, "unparsed", "it says neither success nor failure"

    def _fact(self, grader: str, metric: Mapping[str, Any], model: str) -> None:
        facts = self.facts.setdefault(grader, {})
        if not facts and model:
            facts.update(kind="model", model=model)
        threshold = as_text(metric.get("threshold"))
        if threshold is not None:
            facts.setdefault("threshold", threshold)

    def rows(self, scope: Mapping[str, str]) -> list[Rows]:
        self.respond()
        self.add()
        name = printable(self.gathered.source.name)
        notices = [*self.cases_bad.notices(), *self.metrics_bad.notices()]
        if self.without:
            notices.append(
                say(
                    "{name}: {n} no metric and {are} left out.",
                    name=name,
                    n=plural(self.without, "test case has", "test cases have"),
                    are="is" if self.without == 1 else "are",
                )
            )
        if self.skipped:
            notices.append(
                say(
                    "{name}: {n} skipped, so nobody was asked, and {they} left out.",
                    name=name,
                    n=plural(self.skipped, "metric result was", "metric results were"),
                    they="it is" if self.skipped == 1 else "they are",
                )
            )
        if self.spans:
            notices.append(
                say(
                    "{name}: {n} metrics on spans inside a trace, which are not read: they judge a step "
                    "and not the response.",
                    name=name,
                    n=plural(self.spans, "test case has", "test cases have"),
                )
            )
        return self.gathered.rows(
            layout=FORMAT,
            notices=notices,
            order=tuple(self.facts),
            facts={g: f for g, f in self.facts.items() if f},
            scope={**scope, "outputs": self.outputs()},
        )


def _who(metric: Mapping[str, Any]) -> tuple[str, str]:
    """The name of a metric and the model that judged for it."""
    name = as_text(metric.get("name")) or ""
    return name.strip(), as_text(_either(metric, "evaluationModel", "evaluation_model")) or ""


def _score(metric: Mapping[str, Any]) -> str | None:
    score = metric.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float):
        return None
    return as_text(score)


def _traced(trace: Any) -> bool:
    """Whether a span of a trace has metrics of its own."""
    return any(
        mapping(span).get(key)
        for spans in mapping(trace).values()
        for span in sequence(spans)
        for key in _METRICS
    )


def read(source: Source, options: Options) -> list[Rows]:
    """The results of all metrics, one row each.

    Raises :class:`InputError` where the file is no JSON or holds no result of a metric.
    """
    reading = _Reading(source, options)
    lists = tuple((key,) for key in (*_CAMEL, _SNAKE))
    target = ""
    at = 0
    known = False
    for path, number, value in records(
        source, options, reading.cases_bad, lists=lists, wanted=(("hyperparameters", "model"),)
    ):
        if number:
            at += 1
            spoken = path == ("conversationalTestCases",) or (
                path == (_SNAKE,) and mapping(value).get("conversational") is True
            )
            reading.case(at, value, "conversation" if spoken else "")
        elif path in lists:
            known = True
        else:
            target = as_text(value) or "" if isinstance(value, str) else ""
    if not known:
        raise InputError(
            f"{printable(source.name)}: there is no list testCases or test_results in it."
        )
    return reading.rows({"target": target})


READER = Reader(
    name=FORMAT,
    title="DeepEval test runs",
    suffixes=(".json",),
    sniff=sniff,
    read=read,
)
