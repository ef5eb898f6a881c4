"""garak reports: detectors that look at every generation of every attempt of a scan.

Tried on reports of garak 0.17.1 (``report.jsonl``: one object a line, told apart by ``entry_type``).
Read: attempts with status 2, which detectors have seen. The same attempt stands in the report with
status 1 too, from before detection; it is one attempt. A response is one generation of an attempt
(``ATTEMPT/GENERATION``, from 0), and the attempt, which is one prompt, is its cluster. A grader is a
detector. Its score in 0–1 becomes ``1``, a hit, from the run's ``eval_threshold`` on (0.5, garak's
default, where the report does not say it), else ``0``; the score stays as the tag ``score``. A null
score is unread.

What the format hides: generations that the target did not give are null outputs with null scores;
they are no responses and give no rows. A hit says what the detector looks for was there: for
``mitigation.MitigationBypass`` that is an answer without a refusal. Hit logs (``hitlog.jsonl``) hold
the hits alone, so that nothing says of how many; they are turned down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from voirdire.errors import InputError
from voirdire.options import Options
from voirdire.readers._logs import (
    Gathered,
    Trouble,
    as_text,
    head_objects,
    lines,
    mapping,
    sequence,
)
from voirdire.readers.base import Claim, Reader
from voirdire.rows import Rows
from voirdire.source import Source
from voirdire.wording import Name, Text, listed, plural, printable, say

DETECTED = 2  # garak.attempt.ATTEMPT_COMPLETE
THRESHOLD = 0.5  # run.eval_threshold of garak's core configuration
_ENTRIES = {"start_run setup", "init", "attempt", "eval", "completion", "digest", "config"}
_HIT = {"attempt_id", "detector", "probe", "score"}


def sniff(source: Source) -> Claim | None:
    """Sure where a line is an entry of a report or of a hit log."""
    if source.frame is not None:
        return None
    head = head_objects(source)
    if any(_is_entry(entry) for entry in head):
        version = next(
            (v for e in head if isinstance(v := e.get("garak_version"), str)),
            next((v for e in head if isinstance(v := e.get("_config.version"), str)), ""),
        )
        return Claim(format="garak report", version=version)
    if any(_is_hit(entry) for entry in head):
        return Claim(format="garak hit log")
    return None


def _is_entry(entry: Mapping[str, Any]) -> bool:
    kind = entry.get("entry_type")
    if not isinstance(kind, str) or kind not in _ENTRIES:
        return False
    return (
        kind == "start_run setup"
        or bool({"garak_version", "probe_classname", "detector_results"} & entry.keys())
        or {"probe", "detector", "passed"} <= entry.keys()
    )


def _is_hit(entry: Mapping[str, Any]) -> bool:
    return entry.keys() >= _HIT and "entry_type" not in entry


@dataclass
class _Run:
    """What a report says of its run, and what is counted on the way."""

    threshold: float | None = None
    target: str = ""
    begun: dict[str, int] = field(default_factory=dict)  # attempts seen before detection, by line
    seen: set[str] = field(default_factory=set)  # attempts that detectors have seen
    without_output: int = 0
    without_detector: int = 0
    by_position: int = 0
    together: bool = False  # whether detectors looked at the same generations
    fractions: Counter[str] = field(default_factory=Counter)  # of scores strictly inside 0–1
    said: dict[tuple[str, str], tuple[Any, Any]] = field(default_factory=dict)
    detectors: dict[str, None] = field(default_factory=dict)
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    hits: Counter[tuple[str, str]] = field(default_factory=Counter)
    unread: Counter[tuple[str, str]] = field(default_factory=Counter)  # scores that are none


def read(source: Source, options: Options) -> list[Rows]:
    """One row a detector and generation: 1 for a hit, 0 for none, unparsed where the score is null.

    Raises :class:`InputError` for a hit log, and where detectors have seen no attempt.
    """
    run = _Run()
    trouble = Trouble(source, what="line")
    attempts: list[tuple[int, Mapping[str, Any]]] = []
    hits = 0
    for number, entry in lines(source, options, trouble):
        if not isinstance(entry, dict):
            trouble.add(f"line {number:,}", "it is no object")
            continue
        kind = entry.get("entry_type")
        if kind == "attempt":
            kept = _attempt(entry, number, run, trouble)
            if kept is not None:
                attempts.append((number, kept))
        elif kind in ("start_run setup", "config"):
            _setup(entry, run)
        elif kind == "eval":
            _summary(entry, run)
        elif _is_hit(entry):
            hits += 1
    if hits and not attempts:
        raise InputError(
            f"{printable(source.name)}: this is a hit log of garak. It holds only what detectors "
            "flagged, and nothing says of how many generations, so no rate and no agreement can be "
            "told from it. Name the report of the same run (….report.jsonl) instead."
        )
    log = Gathered(source, unit="line")
    for number, attempt in attempts:
        _add(log, number, attempt, run, trouble)
    if not len(log):
        begun = plural(len(run.begun), "attempt") if run.begun else "no attempt"
        raise InputError(
            f"{printable(source.name)}: no detector has seen a generation in this report of garak "
            f"({begun} begun). Let the run go on to its end, or name another report."
        )
    return log.rows(
        layout="garak",
        notices=(*trouble.notices(), *_notices(run, options)),
        facts={g: {"kind": "detector"} for g in run.detectors},
    )


def _setup(entry: Mapping[str, Any], run: _Run) -> None:
    threshold = _score(entry.get("run.eval_threshold"))
    if threshold is not None:
        run.threshold = threshold
    for kind in ("target", "model"):  # spelled plugins.model_* before 0.13.1
        parts = [as_text(entry.get(f"plugins.{kind}_{part}")) for part in ("type", "name")]
        if any(parts):
            run.target = " ".join(p for p in parts if p)
            return


def _summary(entry: Mapping[str, Any], run: _Run) -> None:
    probe, detector = entry.get("probe"), entry.get("detector")
    if isinstance(probe, str) and isinstance(detector, str):
        hits = entry.get("fails")
        total = entry.get("total_processed", entry.get("total_evaluated", entry.get("total")))
        if hits is None and isinstance(total, int) and isinstance(entry.get("passed"), int):
            hits = total - entry["passed"]
        # Detectors are named detector.x.Y here before 0.9.
        run.said[probe, detector.removeprefix("detector.")] = (hits, total)


def _score(value: Any) -> float | None:
    """A score in 0–1, true and false among them; none for anything else, nan too."""
    if isinstance(value, int | float) and 0 <= value <= 1:
        return float(value)
    return None


def _attempt(
    entry: Mapping[str, Any], number: int, run: _Run, trouble: Trouble
) -> Mapping[str, Any] | None:
    """An attempt that detectors have seen, without its texts; else none."""
    uuid = entry.get("uuid")
    if not isinstance(uuid, str) or not uuid.strip():
        trouble.add(f"line {number:,}", "an attempt without uuid")
        return None
    if entry.get("status") != DETECTED:
        run.begun[uuid] = number
        return None
    run.seen.add(uuid)
    return {
        "uuid": uuid,
        "probe": entry.get("probe_classname"),
        "intent": entry.get("intent"),
        # The texts are let go of line by line: a report may be far larger than its scores.
        "given": [_is_given(output) for output in sequence(entry.get("outputs"))],
        "scores": entry.get("detector_results"),
    }


def _is_given(output: Any) -> bool:
    """Whether the target gave this generation; it is a text, or since 0.12 a message with one."""
    if isinstance(output, dict):
        return output.get("text") is not None or output.get("data_path") is not None
    return output is not None


def _add(
    log: Gathered, number: int, attempt: Mapping[str, Any], run: _Run, trouble: Trouble
) -> None:
    given: Sequence[bool] = attempt["given"]
    by_detector = {
        detector: scores
        for detector, scores in mapping(attempt["scores"]).items()
        if isinstance(scores, list) and detector.strip()
    }
    run.without_output += given.count(False)
    if not by_detector:
        run.without_detector += 1
        return
    run.together |= len(by_detector) > 1
    lengths = {len(scores) for scores in by_detector.values() if scores}
    for detector, scores in by_detector.items():
        if len(scores) == len(given):
            places = [(i, score) for i, score in enumerate(scores) if given[i]]
        elif len(scores) == sum(given):
            there = [i for i, is_given in enumerate(given) if is_given]
            places = list(zip(there, scores, strict=True))
        elif len(lengths) == 1:
            # Detectors that look at every turn agree among themselves, though not with the outputs.
            places = list(enumerate(scores))
            run.by_position += 1
        else:
            trouble.add(
                f"line {number:,}",
                f"{detector} has {plural(len(scores), 'score')} for "
                f"{plural(len(given), 'generation')}, so nothing says which is for which",
            )
            continue
        for generation, score in places:
            _row(log, number, attempt, run, detector, generation, score)


def _row(
    log: Gathered,
    number: int,
    attempt: Mapping[str, Any],
    run: _Run,
    detector: str,
    generation: int,
    score: Any,
) -> None:
    read = _score(score)
    hit = read is not None and read >= (THRESHOLD if run.threshold is None else run.threshold)
    if read is not None and 0 < read < 1:
        run.fractions[detector] += 1
    probe = attempt["probe"]
    pair = (probe if isinstance(probe, str) else "", detector)
    run.detectors[detector] = None
    run.found[pair] += 1
    run.hits[pair] += hit
    run.unread[pair] += read is None
    log.add(
        number,
        response=f"{attempt['uuid']}/{generation}",
        grader=detector,
        label=None if read is None else hit,
        reason="no score" if score is None else "no score in 0 to 1",
        cluster=attempt["uuid"],
        probe=probe if isinstance(probe, str) else None,
        intent=attempt["intent"] if isinstance(attempt["intent"], str) else None,
        generation=generation,
        target=run.target or None,
        score=read,
    )


def _notices(run: _Run, options: Options) -> list[Text]:
    notices: list[Text] = []
    if run.together and not options.graders:
        notices.append(
            say(
                "1 is a hit: a detector found what it looks for. Detectors may look for different things "
                "({detectors}); compare those that look for the same with --graders.",
                detectors=listed(run.detectors),
            )
        )
    if run.fractions:
        threshold = THRESHOLD if run.threshold is None else run.threshold
        notices.append(
            say(
                "{detectors} {give} scores between 0 and 1. From {threshold} on, {which}, a score is a "
                "hit and becomes 1; the scores stand in the tag {score}.",
                detectors=listed(run.fractions),
                give="gives" if len(run.fractions) == 1 else "give",
                threshold=f"{threshold:g}",
                which="garak’s default threshold, as the report does not say its own"
                if run.threshold is None
                else "the threshold of the run",
                score=Name("score"),
            )
        )
    if run.without_output:
        notices.append(
            say(
                "{n} that the target did not give {are} not graded.",
                n=plural(run.without_output, "generation"),
                are="is" if run.without_output == 1 else "are",
            )
        )
    unseen = [uuid for uuid in run.begun if uuid not in run.seen]
    if unseen:
        notices.append(
            say(
                "{n} {were} begun and seen by no detector, as in a run that was stopped; no rows.",
                n=plural(len(unseen), "attempt"),
                were="was" if len(unseen) == 1 else "were",
            )
        )
    if run.without_detector:
        notices.append(
            say("{n} without any detector; no rows.", n=plural(run.without_detector, "attempt"))
        )
    if run.by_position:
        notices.append(
            say(
                "For {n} a detector has another number of scores than there are outputs: they are "
                "counted in their order, as one response each.",
                n=plural(run.by_position, "attempt and detector", "attempts and detectors"),
            )
        )
    return [*notices, *_against_summary(run)]


def _against_summary(run: _Run) -> list[Text]:
    """Notices where the report's own counts are of more than is here, or of other hits."""
    short: dict[str, tuple[int, int]] = {}
    other: list[str] = []
    unread: list[str] = []
    for (probe, detector), (hits, total) in run.said.items():
        found = run.found[probe, detector]
        if not isinstance(total, int) or not found:
            continue
        if found < total and not run.without_output:
            short[probe] = (found, total)
        elif found == total and isinstance(hits, int) and hits != run.hits[probe, detector]:
            counts = f"{probe} {detector}: {hits:,}, here {run.hits[probe, detector]:,}"
            missing = run.unread[probe, detector]
            # A score that is none here may have been a hit, and no threshold makes fewer hits of it.
            if 0 <= hits - run.hits[probe, detector] <= missing:
                unread.append(f"{counts}, unread {missing:,}")
            else:
                other.append(counts)
    notices = []
    if short:
        notices.append(
            say(
                "The report’s own summary is of more generations than stand in it ({list}): attempts "
                "were cut out of it.",
                list=listed(f"{p}: {found:,} of {total:,}" for p, (found, total) in short.items()),
            )
        )
    if unread:
        notices.append(
            say(
                "The report’s own summary counts more hits ({list}): those that are not here may be among "
                "the scores that could not be read.",
                list=listed(unread, most=4),
            )
        )
    if other:
        notices.append(
            say(
                "The report’s own summary counts other hits ({list}): the run may have had another "
                "threshold, or a rule of its own. The tag {score} has the scores.",
                list=listed(other, most=4),
                score=Name("score"),
            )
        )
    return notices


READER = Reader(
    name="garak",
    title="garak reports",
    suffixes=(".jsonl",),
    sniff=sniff,
    read=read,
)
