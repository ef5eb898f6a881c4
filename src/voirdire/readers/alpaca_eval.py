"""AlpacaEval annotations: which of two outputs each annotator prefers.

Tried on ``annotations.json`` of alpaca_eval (commit cd543a1; a list of records; the format has no
version), also with one record a line. The grader is the ``annotator``. A response is a pair of outputs
to one instruction; its id is the first ten hexadecimal digits of the SHA-256 of the instruction's
text, and the two generators come before it where they differ, in one file or between files.

The label is ``output_1``, ``output_2`` or ``tie``: a ``preference`` of 1, of 2, and of just 1.5 (0 in
old files). A weighted annotator gives a number between 1 and 2; the nearer output is the label, and
the number stays in the tag ``preference``. The instruction is the cluster. Null is ``unparsed``. For two outputs that are the same
text AlpacaEval writes 1.5 without asking the annotator: no row, and a notice counts them.

What the format hides: the order in which the outputs were shown. It is drawn anew for each pair and
not written down, so that nothing can be said of a preference for a place.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from voirdire.options import Options
from voirdire.readers._logs import (
    Gathered,
    Trouble,
    as_text,
    first_object,
    lines,
)
from voirdire.readers._records import records
from voirdire.readers.base import Claim, Reader
from voirdire.rows import Rows
from voirdire.source import Source
from voirdire.wording import Text, plural, say

FIRST, SECOND, TIE = "output_1", "output_2", "tie"
HALF = 1.5
_PAIR = {"output_1", "output_2", "generator_1", "generator_2"}
_TELLING = (*sorted(_PAIR), "preference", "raw_completion", "dataset")
_DIGITS = 10  # of the hash that stands for an instruction


def sniff(source: Source) -> Claim | None:
    """Sure where the first record has two outputs with their generators, and who prefers which."""
    if source.frame is not None:
        return None
    record = first_object(source)
    # Long outputs may cut the record off before the preference: the generators tell it then.
    known = len(_PAIR & record.keys())
    whole = {"annotator", "preference"} <= record.keys()
    if "instruction" in record and (known == len(_PAIR) or (whole and known >= 2)):
        return Claim(format="AlpacaEval annotations")
    return None


@dataclass(frozen=True, slots=True)
class _Verdict:
    """One annotation, as it becomes a row."""

    at: int
    item: str
    annotator: str
    generators: tuple[str, str]
    label: str | None
    outcome: str
    reason: str
    preference: float | None
    dataset: str | None
    record: str  # tells a record that is there twice from a repeat


def read(source: Source, options: Options) -> list[Rows]:
    """One row an annotation.

    Raises :class:`InputError` where the file is no list of annotations, or none could be read.
    """
    trouble = Trouble(source, what="annotation")
    is_list = source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    unit = "record" if is_list else "line"
    found: list[_Verdict] = []
    same = twice = 0
    seen: set[tuple[str, str]] = set()
    for number, record in _records(source, options, trouble, is_list=is_list):
        problem = _problem(record)
        if problem:
            trouble.add(f"{unit} {number:,}", problem)
            continue
        one = _verdict(number, record)
        if (one.annotator, one.record) in seen:
            twice += 1
            continue
        seen.add((one.annotator, one.record))
        if record["output_1"] == record["output_2"] and one.label == TIE:
            same += 1
            continue
        found.append(one)
    log = Gathered(source, unit=unit)
    pairs = {one.generators for one in found}
    alone = len(pairs) == 1
    times = Counter((one.annotator, one.item, one.generators) for one in found)
    repeated = max(times.values(), default=0) > 1
    votes: Counter[Any] = Counter()
    for one in found:
        key = (one.annotator, one.item, one.generators)
        votes[key] += 1
        log.add(
            one.at,
            response=one.item if alone else "/".join((*one.generators, one.item)),
            grader=one.annotator,
            label=one.label,
            outcome=one.outcome,
            reason=one.reason,
            # One instruction is one question, whatever pairs of outputs answer it.
            cluster=one.item,
            vote=votes[key] if repeated else None,
            preference=one.preference,
            dataset=one.dataset,
            generator_1=one.generators[0],
            generator_2=one.generators[1],
        )
    both = next(iter(pairs)) if alone else ("", "")
    return log.rows(
        layout="alpaca_eval",
        notices=(*trouble.notices(), *_notices(found, same, twice)),
        scope={"generator_1": both[0], "generator_2": both[1]},
    )


def _records(
    source: Source, options: Options, trouble: Trouble, *, is_list: bool
) -> Iterator[tuple[int, Any]]:
    if not is_list:
        yield from lines(source, options, trouble)
        return
    found = records(source, options, trouble, lists=((),))
    yield from ((number, record) for _, number, record in found if number)


def _problem(record: Any) -> str:
    """Why a record is no annotation; empty where it is one."""
    if not isinstance(record, dict):
        return "it is no object"
    if not isinstance(record.get("instruction"), str):
        return "it has no instruction"
    if as_text(record.get("annotator")) is None:
        return "it names no annotator"
    if not {"output_1", "output_2", "preference"} <= record.keys():
        return "it has no preference between two outputs"
    return ""


def _verdict(number: int, record: Mapping[str, Any]) -> _Verdict:
    label, outcome, reason, preference = _preferred(record.get("preference"))
    instruction = record["instruction"].encode("utf-8", "surrogatepass")
    said = hashlib.sha256(instruction)
    item = said.hexdigest()[:_DIGITS]
    for key in _TELLING:
        said.update(b"\0" + (as_text(record.get(key)) or "").encode())
    return _Verdict(
        at=number,
        item=item,
        annotator=as_text(record.get("annotator")) or "",
        generators=(
            as_text(record.get("generator_1")) or "generator_1",
            as_text(record.get("generator_2")) or "generator_2",
        ),
        label=label,
        outcome=outcome,
        reason=reason,
        preference=preference,
        dataset=as_text(record.get("dataset")),
        record=said.hexdigest(),
    )


def _preferred(value: Any) -> tuple[str | None, str, str, float | None]:
    """Label, outcome, reason and, where it lies between two labels, the preference itself."""
    text = as_text(value)
    if text is None or isinstance(value, bool):
        return None, "unparsed", "no preference found in the reply", None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if number in (0.0, HALF):
        return TIE, "label", "", None
    if not 1 <= number <= 2:
        return None, "unparsed", f"a preference of {text[:40]}, which is not from 1 to 2", None
    between = None if number in (1.0, 2.0) else number
    return (FIRST if number < HALF else SECOND), "label", "", between


def _notices(found: list[_Verdict], same: int, twice: int) -> list[Text]:
    notices: list[Text] = []
    if found:
        notices.append(
            say(
                "AlpacaEval shows the two outputs in an order drawn at random and does not write it "
                "down, so nothing can be said of a preference for a place."
            )
        )
    if same:
        notices.append(
            say(
                "{n} of two outputs with the same text {are} left out: AlpacaEval calls them a tie "
                "without asking the annotator.",
                n=plural(same, "annotation"),
                are="is" if same == 1 else "are",
            )
        )
    if twice:
        notices.append(
            say(
                "{n} there twice and {count} once.",
                n=plural(twice, "annotation is", "annotations are"),
                count="counts" if twice == 1 else "count",
            )
        )
    between = sum(one.preference is not None for one in found)
    if between:
        notices.append(
            say(
                "{n} between 1 and 2: the nearer output is the label, and the number stands in the "
                "tag preference.",
                n=plural(between, "preference lies", "preferences lie"),
            )
        )
    return notices


READER = Reader(
    name="alpaca_eval",
    title="AlpacaEval annotations",
    suffixes=(".json", ".jsonl"),
    sniff=sniff,
    read=read,
)
