"""lm-evaluation-harness samples: every document of a task with the metrics that it got.

Tried on ``samples_*.jsonl`` of lm_eval 0.4.13 (``--log_samples``), and read where it was written as a
JSON list, as by 0.4.0. A response is a document of the task (``doc_id``); the same response stands
there once for each filter that read it, and a grader is a metric under a filter, ``METRIC@FILTER``
(``METRIC`` alone for the filter ``none``). The document's hash is its cluster, so that tasks over the
same documents hold together. Task and time of the run, from the file's name, come before the ids of
responses where inputs differ in them.

What the format hides: with repeats (``resps``) the target answered several times, and the filter
decides which answer the one verdict is about; the others were not graded. Metrics that are only
computed over all documents (BLEU, perplexity) have no verdict on one and are left out. The file does
not name the model. ``results_*.json`` holds averages, and is turned down.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.errors import InputError
from voirdire.options import Options
from voirdire.readers._logs import (
    Gathered,
    Trouble,
    as_text,
    first_object,
    head_objects,
    lines,
    mapping,
    sequence,
)
from voirdire.readers._records import records
from voirdire.readers.base import Claim, Reader
from voirdire.rows import Rows
from voirdire.source import Source
from voirdire.wording import Text, listed, plural, printable, say

NO_FILTER = "none"
_SAMPLES = re.compile(
    r"(?:.*/)?samples_(?P<task>.+?)(?:_(?P<run>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl?"
)
_RESULTS = re.compile(r"(?:.*/)?results(?:_[\dT.:-]+)?\.json")
_NOT_METRICS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash", "task", "task_name", "input", "prompt"),
    "bypass",  # what a run with --predict_only writes, 999 throughout
}


def sniff(source: Source) -> Claim | None:
    """Sure where a line, or the first item of a list, is a sample; and for a file of results."""
    if source.frame is not None:
        return None
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        head = [first_object(source)]
    else:
        head = head_objects(source, most=5)
    named = _SAMPLES.fullmatch(source.name) is not None
    if any(_is_sample(record, named=named) for record in head):
        return Claim(format="lm-evaluation-harness samples")
    whole = first_object(source)
    if _is_results(whole, source.name):
        version = whole.get("lm_eval_version")
        return Claim(
            format="lm-evaluation-harness results",
            version=version if isinstance(version, str) else "",
        )
    return None


def _is_sample(record: Mapping[str, Any], *, named: bool) -> bool:
    keys = record.keys()
    if named and {"doc_id", "doc"} <= keys:
        return True
    return "doc_id" in keys and (
        {"resps", "filtered_resps"} <= keys or {"doc", "target", "arguments"} <= keys
    )


def _is_results(whole: Mapping[str, Any], name: str) -> bool:
    results = mapping(whole.get("results"))
    if {"configs", "n-shot"} & whole.keys() and "results" in whole:
        return True
    # Metrics are named METRIC,FILTER there.
    return bool(_RESULTS.fullmatch(name)) and any(
        "," in key for task in results.values() for key in mapping(task)
    )


def _records(source: Source, options: Options, trouble: Trouble) -> Iterator[tuple[int, Any]]:
    if source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        found = records(source, options, trouble, lists=((),))
        yield from ((number, record) for _, number, record in found if number)
    else:
        yield from lines(source, options, trouble)


def read(source: Source, options: Options) -> list[Rows]:
    """One row a document, metric and filter; repeats of the answer are no votes on it.

    Raises :class:`InputError` for a file of results, and where no document has a metric.
    """
    if _is_results(first_object(source), source.name):
        raise InputError(
            f"{printable(source.name)}: these are the results of an lm-evaluation-harness run, "
            "averages without a verdict on any one response. Name its samples_*.jsonl instead; the "
            "harness writes them with --log_samples."
        )
    listed_ = source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    unit = "record" if listed_ else "line"
    trouble = Trouble(source, what=unit)
    log = Gathered(source, unit=unit)
    found = _SAMPLES.fullmatch(source.name)
    said = found.groupdict() if found else {}
    turns: Counter[str] = Counter()  # how often a document came without a filter's name
    repeats: dict[str, int] = {}  # most answers, by document
    over_all: Counter[str] = Counter()
    facts: dict[str, dict[str, str]] = {}
    for number, sample in _records(source, options, trouble):
        at = f"{unit} {number:,}"
        if not isinstance(sample, dict):
            trouble.add(at, "it is no object")
            continue
        doc = sample.get("doc_id")
        if isinstance(doc, bool) or not isinstance(doc, int | str) or as_text(doc) is None:
            trouble.add(at, "it has no doc_id")
            continue
        filter_ = sample.get("filter")
        if not isinstance(filter_, str):
            turns[str(doc)] += 1
            filter_ = NO_FILTER if turns[str(doc)] == 1 else f"filter {turns[str(doc)]}"
        answers = _repeats(sample)
        hash_ = sample.get("doc_hash")
        judged = False
        for metric in _metrics(sample):
            value = sample[metric]
            if isinstance(value, list | dict):
                over_all[metric] += 1
                continue
            judged = True
            grader = metric if filter_ == NO_FILTER else f"{metric}@{filter_}"
            facts[grader] = {"metric": metric, "filter": filter_}
            log.add(
                number,
                response=doc,
                grader=grader,
                label=value,
                reason="no value",
                cluster=hash_ if isinstance(hash_, str) else None,
                task=said.get("task"),
                repeats=answers if answers > 1 else None,
            )
        if judged:
            repeats[str(doc)] = max(answers, repeats.get(str(doc), 1))
        elif not over_all:
            trouble.add(at, "it has no metric")
    if not len(log):
        over = f"; {', '.join(map(printable, over_all))}: over all documents" if over_all else ""
        raise InputError(
            f"{printable(source.name)}: no document in these samples has a metric of its own{over}. "
            "A run with --predict_only grades nothing."
        )
    if any(c is None for c in log.columns.get("cluster", ())):
        log.columns.pop("cluster", None)
    notices = [*trouble.notices(), *_notices(repeats, over_all, turns)]
    notices += log.leave_out_measures(options.graders)
    return log.rows(
        layout="lm_eval",
        notices=notices,
        facts=facts,
        scope={k: v for k in ("task", "run") if (v := said.get(k))},
    )


def _metrics(sample: Mapping[str, Any]) -> list[str]:
    """The names of a sample's metrics: as it lists them, else every key that is nothing else."""
    named = [
        m
        for m in sequence(sample.get("metrics"))
        if isinstance(m, str) and m.strip() and m in sample
    ]
    if named:
        return [m for m in dict.fromkeys(named) if m not in _NOT_METRICS]
    return [
        key
        for key, value in sample.items()
        if key.strip() and key not in _NOT_METRICS and not isinstance(value, str)
    ]


def _repeats(sample: Mapping[str, Any]) -> int:
    """How often the target answered: the most answers that one request of the document got."""
    return max((len(r) for r in sequence(sample.get("resps")) if isinstance(r, list)), default=1)


def _notices(repeats: Mapping[str, int], over_all: Counter[str], turns: Counter[str]) -> list[Text]:
    notices: list[Text] = []
    several = [answers for answers in repeats.values() if answers > 1]
    if several:
        notices.append(
            say(
                "The target answered {several} {most} times, and a verdict is about the "
                "answer or answers that its filter took: repeats are no votes, and those not taken were "
                "not graded.",
                several=plural(len(several), "document"),
                most=f"{max(several)}" if len(set(several)) == 1 else f"up to {max(several)}",
            )
        )
    if over_all:
        notices.append(
            say(
                "{metrics} {are} computed over all documents and {have} no verdict on one: left out.",
                metrics=listed(over_all),
                are="is" if len(over_all) == 1 else "are",
                have="has" if len(over_all) == 1 else "have",
            )
        )
    if turns and max(turns.values()) > 1:
        notices.append(
            say(
                "Documents come several times without the name of a filter, as older versions write "
                "them: the filters are numbered in their order, from {second}.",
                second="filter 2",
            )
        )
    return notices


READER = Reader(
    name="lm_eval",
    title="lm-evaluation-harness samples",
    suffixes=(".jsonl", ".json"),
    sniff=sniff,
    read=read,
)
