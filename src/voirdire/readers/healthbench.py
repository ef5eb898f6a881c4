"""HealthBench results of simple-evals: verdicts on the criteria of one rubric a prompt.

Tried with: the ``*_allresults.json`` of simple-evals at commit ee3b031 (2025).

What is read: ``metadata.example_level_metadata[].rubric_items[]``. A response is a prompt with one
completion of it, ``prompt_id/completion_id``; the question is the prompt, a line is a criterion, the
verdict is ``criteria_met``. Points (negative ones too) and the criterion's tags (``axis``, ``level``)
are tags of each verdict. A line is named by a digest of its criterion, not by its place: subsets of
HealthBench ask fewer criteria of the same prompt.

What the format hides: who graded (the file's name or ``--grader-name`` says it) and which model
answered; a reply of the grader that could not be read, which is asked for again until it can be;
examples whose completion the provider refused, which stand as a fixed sentence and were graded.

Source: ``healthbench_eval.py`` of simple-evals; Arora et al. 2025, "HealthBench" (arXiv 2505.08775),
section 3: "criteria met" is about the behaviour, so a met criterion with negative points is a fault.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from voirdire.errors import InputError, UsageError
from voirdire.options import Options
from voirdire.readers._logs import (
    Gathered,
    Trouble,
    as_text,
    first_object,
    mapping,
    sequence,
)
from voirdire.readers._records import to_the_tear
from voirdire.readers.base import Claim, Reader
from voirdire.rows import Rows
from voirdire.source import Source
from voirdire.wording import Name, Text, plural, printable, say

FORMAT = "healthbench"
ENDING = "_allresults"
REFUSED_BY_PROVIDER = "No response (bad request)."
_GROUPS = ("axis:", "level:", "theme:", "cluster:", "physician_agreed_category:")
_DIGITS = 8  # of a digest: among the criteria of one prompt, no two share them by chance
_WORDS = ("true", "false", "yes", "no", "1", "0")


def sniff(source: Source) -> Claim | None:
    """Sure where rubric items are in the head, or the metrics before them are those of HealthBench."""
    if source.frame is not None or (source.path is not None and source.path.is_dir()):
        return None
    if not source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return None
    top = first_object(source)
    if not {"score", "metrics"} <= top.keys():
        return None
    examples = sequence(mapping(top.get("metadata")).get("example_level_metadata"))
    if examples and "rubric_items" in mapping(examples[0]):
        return Claim(format=FORMAT)
    # The list of examples stands behind pages of HTML, far beyond the head.
    metrics = mapping(top["metrics"])
    ours = "overall_score" in metrics and any(m.startswith(_GROUPS) for m in metrics)
    return Claim(format=FORMAT) if ours else None


def _grader(source: Source, options: Options) -> str:
    stem = source.stem.rsplit("/", 1)[-1]
    return options.grader_name or stem.removesuffix(ENDING) or stem


def _line(criterion: str) -> str:
    return hashlib.sha256(criterion.encode("utf-8", "replace")).hexdigest()[:_DIGITS]


def _said(example: Mapping[str, Any]) -> str | None:
    """The text of the graded completion, where it is there."""
    said = [mapping(m).get("content") for m in sequence(example.get("completion"))]
    return said[-1] if said and isinstance(said[-1], str) else None


def _completion(example: Mapping[str, Any], prompt: str) -> str | None:
    """The id of a completion; where it is not written down, it is made as simple-evals makes it."""
    written = as_text(example.get("completion_id"))
    said = _said(example)
    if written is not None or said is None:
        return written
    return hashlib.sha256((prompt + said).encode("utf-8", "replace")).hexdigest()


def _tags(item: Mapping[str, Any]) -> dict[str, str]:
    """``axis:accuracy`` as the tag ``axis``; several of one kind stand together."""
    found: dict[str, list[str]] = {}
    for tag in sequence(item.get("tags")):
        if isinstance(tag, str) and tag.startswith(_GROUPS):
            name, _, value = tag.partition(":")
            found.setdefault(name, []).append(value)
    return {name: "+".join(values) for name, values in found.items() if name != "cluster"}


def _verdict(value: Any) -> tuple[Any, str]:
    """The verdict, or why there is none."""
    if isinstance(value, bool):
        return value, ""
    if value is None:
        return None, "criteria_met is missing"
    text = as_text(value)
    if isinstance(value, str | int | float) and text and text.strip().lower() in _WORDS:
        return text, ""
    return None, f"criteria_met is {printable((text or type(value).__name__)[:60])}"


class _Reading:
    """One results file on its way to rows."""

    def __init__(self, source: Source, grader: str) -> None:
        self.grader = grader
        self.gathered = Gathered(source, unit="example")
        self.trouble = Trouble(source, what="example")
        self.items = Trouble(source, what="criterion")
        self.refused = 0
        self.seen: Counter[str] = Counter()
        self.votes: dict[str, int] = {}

    def examples(self, examples: Sequence[Any]) -> None:
        usable: list[tuple[int, Mapping[str, Any], str, str]] = []
        for at, example in enumerate(examples, start=1):
            one = mapping(example)
            prompt = as_text(one.get("prompt_id"))
            completion = None if prompt is None else _completion(one, prompt)
            if prompt is None or completion is None:
                missing = "prompt_id" if prompt is None else "completion_id"
                self.trouble.add(f"example {at:,}", f"it has no {missing}")
            elif not isinstance(one.get("rubric_items"), list):
                self.trouble.add(f"example {at:,}", "it has no list of rubric_items")
            elif _said(one) == REFUSED_BY_PROVIDER:
                self.refused += 1
            else:
                usable.append((at, one, prompt, f"{prompt}/{completion}"))
                self.seen[usable[-1][3]] += 1
        for at, one, prompt, response in usable:
            self.example(at, one, prompt, response)

    def example(self, at: int, example: Mapping[str, Any], prompt: str, response: str) -> None:
        vote = None
        if self.seen[response] > 1:
            self.votes[response] = vote = self.votes.get(response, 0) + 1
        asked: Counter[str] = Counter()
        for place, item in enumerate(example["rubric_items"], start=1):
            item = mapping(item)
            criterion = as_text(item.get("criterion"))
            if criterion is None:
                self.items.add(f"example {at:,}, criterion {place:,}", "it has no text")
                continue
            line = _line(criterion)
            asked[line] += 1
            if asked[line] > 1:
                line = f"{line}#{asked[line]}"
            self.gathered.texts[prompt, line] = criterion
            label, reason = _verdict(item.get("criteria_met"))
            self.gathered.add(
                at,
                response=response,
                grader=self.grader,
                label=label,
                reason=reason,
                line=line,
                question=prompt,
                vote=vote,
                points=item.get("points"),
                **_tags(item),
            )

    def notices(self, options: Options) -> tuple[Text, ...]:
        notices = [*self.trouble.notices(), *self.items.notices()]
        called = say(
            "; the grader is called {grader} after the file (--grader-name names it)",
            grader=Name(self.grader),
        )
        notices.append(
            say(
                "{name}: nothing in it says who graded nor which model answered{called}. Replies of the grader "
                "that could not be read were asked for again until they could be, so this format holds no "
                "unread verdicts and no count of them.",
                name=printable(self.gathered.source.name),
                called="" if options.grader_name else called,
            )
        )
        if self.refused:
            notices.append(
                say(
                    "{name}: {n} no response, as the provider refused the request; {they} not read, "
                    "although the grader was asked.",
                    name=printable(self.gathered.source.name),
                    n=plural(self.refused, "example has", "examples have"),
                    they="it is" if self.refused == 1 else "they are",
                )
            )
        repeated = sum(1 for n in self.seen.values() if n > 1)
        if repeated:
            notices.append(
                say(
                    "{name}: {n} graded more than once, word for word the same; the repeats are votes.",
                    name=printable(self.gathered.source.name),
                    n=plural(repeated, "completion was", "completions were"),
                )
            )
        return tuple(notices)


def read(source: Source, options: Options) -> list[Rows]:
    """The verdicts on all criteria, one row each.

    Raises :class:`InputError` where the file is no JSON or holds no graded example.
    """
    if options.layout not in ("auto", "checklist"):
        raise UsageError(
            f"{printable(source.name)}: HealthBench results are a checklist. Leave --layout out."
        )
    reading = _Reading(source, _grader(source, options))
    where = ("metadata", "example_level_metadata")
    top = to_the_tear(source, options, reading.trouble, lists=(where,))
    examples = mapping(top.get("metadata")).get("example_level_metadata")
    if not isinstance(examples, list):
        raise InputError(
            f"{printable(source.name)}: there is no list metadata.example_level_metadata in it. "
            "Read the file whose name ends in _allresults.json."
        )
    reading.examples(examples)
    return reading.gathered.rows(layout=FORMAT, notices=reading.notices(options))


READER = Reader(
    name=FORMAT,
    title="HealthBench results (simple-evals)",
    suffixes=(".json",),
    sniff=sniff,
    read=read,
)
