"""Label Studio exports: JSON, JSON-MIN, CSV and TSV, with the labels of several people on each task.

Tried with: Label Studio 1.23.2.

What is read: one control of the labelling interface (its ``from_name``). By default the ``Choices``
control, of several the one with most answers, else a rating or a number; ``--label CONTROL`` reads
another one: each control asks a question of its own, so they are not put together. A response is a task
(its id); ``--response FIELD`` and ``--cluster FIELD`` name fields of the task's data instead, and a
field with a recognised name (``prompt_id``, ``question_id``, …) is the cluster by itself. A
digest of the annotated tasks goes before the ids of exports that differ in it, as ids count from 1 in
every project of another server. A person is
``person N`` by number, or the e-mail address where the export has it. A prediction's grader is its
``model_version``. Several annotations of a task by one person are votes, in the order of their ids. An
annotation that was cancelled, or that leaves the control blank, is ``missing``. Several choices at once
are a class of their own, written ``a;b``. ``ground_truth`` is a tag; where it singles out one label of
a task and not all annotations bear it, these labels are also the grader ``gold``.

What the exports hide: JSON-MIN, CSV and TSV have no cancelled annotations, no predictions, no flags of
ground truth, no types of controls and no tasks without annotations; JSON may name predictions by id
alone; none says who was asked and has not answered yet.

Source: ``converter.py`` and ``exports/csv2.py`` of label-studio-sdk; the export guide of Label Studio.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from voirdire.errors import InputError, UsageError
from voirdire.options import Options
from voirdire.readers._delimited import read_delimited
from voirdire.readers._layout import RECOGNISED
from voirdire.readers._logs import (
    Gathered,
    Trouble,
    as_text,
    decoded,
    first_object,
    mapping,
    sequence,
)
from voirdire.readers._records import records
from voirdire.readers._text import encoding_of, head_text
from voirdire.readers.base import Claim, Reader
from voirdire.rows import Rows
from voirdire.source import Source
from voirdire.wording import Name, Text, listed, plural, printable, say

FORMAT = "label_studio"
WORDED = "Label Studio"
_ALWAYS = {"annotator", "annotation_id", "created_at", "updated_at", "lead_time"}
_OTHERS = {"id", "agreement", "history"}
_OF_TASK = {"inner_id", "drafts", "predictions", "total_annotations", "file_upload", "project"}
_ANNOTATION = re.compile(r'"annotations"\s*:\s*\[\s*\{')
_ORDER = ("choices", "rating", "number", "pairwise", "taxonomy")
_TEXTS = {"textarea", "text"}
_LONGEST_TAG = 64
_HEX = 8
_NO_TAGS = {
    *("response", "prompt", "text", "question", "answer", "completion", "input", "output"),
    *("instruction", "message", "messages", "dialogue", "conversation", "content", "reply"),
}
_NOWHERE = "person ?"


# --- which of the exports -----------------------------------------------------------------------


def _export(source: Source) -> str:
    """Which export a source is, from its head; empty where it is none."""
    if source.frame is not None or (source.path is not None and source.path.is_dir()):
        return ""
    start = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        return _json_export(source)
    if start.startswith(b"{") or b"annotation_id" not in start[:4096]:
        return ""
    header = head_text(source, encoding_of(source, "")).lstrip("\ufeff \t\r\n").split("\n", 1)[0]
    for delimiter, name in ((",", "CSV"), ("\t", "TSV")):
        try:
            columns = next(csv.reader(io.StringIO(header), delimiter=delimiter), [])
        except csv.Error:
            return ""
        if {c.strip() for c in columns} >= _ALWAYS:
            return name
    return ""


def _json_export(source: Source) -> str:
    first = first_object(source)
    if first.keys() >= _ALWAYS:
        return "JSON-MIN"
    annotations = first.get("annotations")
    if not isinstance(annotations, list) or "id" not in first:
        return ""
    if isinstance(first.get("data"), dict) and first.keys() & _OF_TASK:
        return "JSON"
    # The first task goes on beyond the head: what stands in its first annotation decides.
    text = head_text(source, encoding_of(source, ""))
    begun = _ANNOTATION.search(text) is not None
    return "JSON" if begun and '"completed_by"' in text and '"result"' in text else ""


def sniff(source: Source) -> Claim | None:
    """Sure where the first task, record or header has the fields that Label Studio writes."""
    export = _export(source)
    return Claim(format=f"{WORDED} {export}") if export else None


# --- annotations --------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _Given:
    """What one annotation or prediction says of one task: the answer to each control, by its name."""

    at: int
    task: str
    data: Mapping[str, Any]
    grader: str
    person: bool
    key: tuple[int, str]  # of its id, so that all exports put votes in one order
    answers: dict[str, str | None]
    cancelled: bool = False
    truth: bool | None = None


@dataclass
class _Read:
    """What an export holds."""

    trouble: Trouble
    given: list[_Given] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)  # of controls, in the order of their names
    fields: list[str] = field(default_factory=list)  # of the tasks' data
    several: int = 0
    unseen: int = 0  # predictions that are there as ids alone
    untouched: int = 0  # tasks without any annotation


def _key(value: Any) -> tuple[int, str]:
    text = as_text(value) or ""
    short = text.isdecimal() and text.isascii() and len(text) < 19
    return (int(text) if short else -1, text)


def _person(value: Any) -> str:
    """The name of a person: an e-mail address, or the number that the export gives."""
    if isinstance(value, dict):
        named = value.get("email")
        value = named if isinstance(named, str) and named.strip() else value.get("id")
    text = (as_text(value) or "").strip()
    if not text:
        return _NOWHERE
    return f"person {text}" if text.isdecimal() else text


def _answer(value: Any) -> tuple[str | None, int]:
    """The text of an answer, and of how many choices it is made."""
    if isinstance(value, list):
        parts = sorted({t for v in value if (t := as_text(v)) is not None})
        return (";".join(parts) or None, len(parts))
    text = as_text(value)
    return text, int(text is not None)


def _plain(value: Any) -> Any:
    """A value such as ``{"rating": 2}`` without what it is wrapped in."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def _of_results(read: _Read, results: Any) -> dict[str, str | None]:
    """The answers of one annotation by control; several regions of one control are put together."""
    gathered: dict[str, list[Any]] = {}
    for one in sequence(results):
        result = mapping(one)
        control, kind = result.get("from_name"), result.get("type")
        if not isinstance(control, str) or not isinstance(kind, str):
            continue
        read.types.setdefault(control, kind.lower())
        value = mapping(result.get("value"))
        found = value.get(kind, value.get("text") if kind == "textarea" else None)
        if found is None:
            found = _plain(dict(value)) if value else None
        gathered.setdefault(control, []).extend(found if isinstance(found, list) else [found])
    answers = {}
    for control, values in gathered.items():
        answers[control], n = _answer(values)
        read.several += n > 1 and read.types[control] not in _TEXTS
    return answers


def _of_tasks(source: Source, options: Options) -> _Read:
    """The JSON export: tasks with their annotations and predictions."""
    read = _Read(Trouble(source, what="task"))
    for _, at, one in records(source, options, read.trouble, lists=((),)):
        if not at:
            continue
        task = mapping(one)
        number, data = as_text(task.get("id")), task.get("data")
        annotations = task.get("annotations")
        if number is None or not isinstance(data, dict) or not isinstance(annotations, list):
            read.trouble.add(f"task {at:,}", "it has no id, data or list of annotations")
            continue
        read.fields += [f for f in data if f not in read.fields]
        read.untouched += not annotations
        for entry in annotations:
            annotation = mapping(entry)
            truth = annotation.get("ground_truth")
            read.given.append(
                _Given(
                    at=at,
                    task=number,
                    data=data,
                    grader=_person(annotation.get("completed_by")),
                    person=True,
                    key=_key(annotation.get("id")),
                    answers=_of_results(read, annotation.get("result")),
                    cancelled=annotation.get("was_cancelled") is True,
                    truth=truth if isinstance(truth, bool) else None,
                )
            )
        for entry in sequence(task.get("predictions")):
            if not isinstance(entry, dict):
                read.unseen += 1
                continue
            version = (as_text(entry.get("model_version")) or "").strip()
            read.given.append(
                _Given(
                    at=at,
                    task=number,
                    data=data,
                    grader=version or "prediction",
                    person=False,
                    key=_key(entry.get("id")),
                    answers=_of_results(read, entry.get("result")),
                )
            )
    return read


def _unwrapped(value: Any) -> tuple[Any, str]:
    """A cell of the short exports as its answer and the type that its form gives away."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            value = decoded(value)
        except ValueError:
            return value, ""
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        # Regions of a control with other fields than one (a span, a box) are no plain answer.
        kinds = {k for v in value for k in v}
        if len(kinds) == 1:
            parts: list[Any] = []
            for v in value:
                part = next(iter(v.values()))
                parts += part if isinstance(part, list) else [part]
            return parts, str(kinds.pop()).lower()
        return None, ""
    if isinstance(value, dict) and len(value) == 1:
        kind, inside = next(iter(value.items()))
        return inside, str(kind).lower()
    return value, ""


def _records(
    source: Source, options: Options, export: str, trouble: Trouble
) -> Iterator[tuple[int, Any]]:
    """The records of a short export, each with its number or its line."""
    if export == "JSON-MIN":
        found = records(source, options, trouble, lists=((),))
        yield from ((at, one) for _, at, one in found if at)
        return
    table = read_delimited(source, options.encoding)
    for row, cells in enumerate(table.frame.iter_rows(named=True)):
        yield table.line(row), cells


def _of_records(source: Source, options: Options, export: str) -> _Read:
    """JSON-MIN, CSV and TSV: one record an annotation, in which data and answers lie side by side."""
    unit = "record" if export == "JSON-MIN" else "row"
    read = _Read(Trouble(source, what=unit))
    kept: list[tuple[int, Mapping[str, Any], str]] = []
    for at, one in _records(source, options, export, read.trouble):
        record = mapping(one)
        number = as_text(record.get("id"))
        if number is None or not record.keys() >= {"annotator", "annotation_id"}:
            read.trouble.add(f"{unit} {at:,}", "it has no task id, annotator or annotation_id")
            continue
        kept.append((at, record, number))
    controls = _controls(read, [(record, task) for _, record, task in kept], export, options)
    for at, record, task in kept:
        answers: dict[str, str | None] = {}
        for control in controls:
            value, _ = _unwrapped(record.get(control))
            answers[control], n = _answer(value)
            read.several += n > 1 and read.types[control] not in _TEXTS
        read.given.append(
            _Given(
                at=at,
                task=task,
                data={k: record.get(k) for k in read.fields},
                grader=_person(record.get("annotator")),
                person=True,
                key=_key(record.get("annotation_id")),
                answers={k: v for k, v in answers.items() if v is not None},
            )
        )
    return read


def _controls(
    read: _Read, records: Sequence[tuple[Mapping[str, Any], str]], export: str, options: Options
) -> list[str]:
    """Which columns are answers. JSON-MIN tells by their place; in a table, answers differ within a task
    or have the form of one, and ``--label`` names any other.
    """
    columns = list(dict.fromkeys(k for record, _ in records for k in record))
    rest = [c for c in columns if c not in _ALWAYS | _OTHERS]
    controls: list[str] = []
    if export == "JSON-MIN":
        for record, _ in records:
            keys = list(record)
            if keys.index("id") < keys.index("annotator"):
                controls += keys[keys.index("id") + 1 : keys.index("annotator")]
    else:
        seen: dict[tuple[str, str], str | None] = {}
        differing: set[str] = set()
        for record, task in records:
            for column in rest:
                value = as_text(record.get(column))
                if seen.setdefault((column, task), value) != value or _unwrapped(value)[1]:
                    differing.add(column)
        controls = [c for c in rest if c in differing]
    if options.label in rest:
        controls.append(options.label)
    controls = [c for c in dict.fromkeys(controls) if c in rest]
    read.fields = [c for c in rest if c not in controls]
    for control in controls:
        values = [v for record, _ in records if (v := record.get(control)) is not None]
        kinds = [kind for v in values if (kind := _unwrapped(v)[1])]
        texts = [t for v in values if (t := as_text(v)) is not None]
        # A choice is a word or repeats; what people write in their own words does neither.
        words = len(set(texts)) < len(texts) or not any(" " in t.strip() for t in texts)
        short = all(len(t) <= _LONGEST_TAG for t in texts)
        plain = "choices" if short and words else "text"
        read.types[control] = kinds[0] if kinds else plain
    return controls


# --- rows ---------------------------------------------------------------------------------------


def _chosen(source: Source, read: _Read, options: Options) -> tuple[str, bool]:
    """The control to read, and whether ``--label`` names one that is not here."""
    name = printable(source.name)
    answered = {
        c: sum(g.answers.get(c) is not None for g in read.given if not g.cancelled)
        for c in read.types
    }
    if options.label in read.types:
        return options.label, False
    if options.label and source.alone:
        raise UsageError(
            f"{name}: there is no control {options.label!r}. Controls: "
            f"{', '.join(map(printable, read.types)) or 'none'}."
        )
    known = [c for c in read.types if read.types[c] in _ORDER and answered[c]]
    if not known:
        raise InputError(
            f"{name}: no control with a choice, a rating or a number was found in it. Name the one to "
            "read with --label CONTROL."
        )
    best = min(known, key=lambda c: (_ORDER.index(read.types[c]), -answered[c]))
    return best, bool(options.label)


def _joined(names: str, given: _Given) -> str | None:
    parts = [as_text(given.data.get(n.strip())) for n in names.split("+")]
    return None if any(p is None for p in parts) else "/".join(p for p in parts if p is not None)


def _tag_fields(read: _Read) -> list[str]:
    """Fields of the tasks' data that are short plain values: no texts of prompts and responses."""
    kept = []
    for name in read.fields:
        if name.lower() in _NO_TAGS:
            continue
        values = [g.data.get(name) for g in read.given]
        plain = all(v is None or isinstance(v, str | int | float) for v in values)
        if plain and all(len(as_text(v) or "") <= _LONGEST_TAG for v in values):
            kept.append(name)
    return kept


def _truth(read: _Read, control: str) -> tuple[dict[str, str], set[str], bool]:
    """The label of each task that is flagged as ground truth, whose labels they are, and whether the
    flags single them out: not all annotations bear one, and no task has two of them.
    """
    labels: dict[str, set[str]] = {}
    people: set[str] = set()
    unflagged = False
    for given in read.given:
        label = given.answers.get(control)
        if not given.person or given.cancelled or label is None:
            continue
        if given.truth:
            labels.setdefault(given.task, set()).add(label)
            people.add(given.grader)
        else:
            unflagged = True
    clear = unflagged and bool(labels) and all(len(found) == 1 for found in labels.values())
    return {task: min(found) for task, found in labels.items()}, people, clear


def read(source: Source, options: Options) -> list[Rows]:
    """The labels of one control, one row for each person or prediction on each task.

    Raises :class:`UsageError` for a control or field that is not there, and :class:`InputError` where
    the export holds no labels.
    """
    if options.layout not in ("auto", "long"):
        raise UsageError(
            f"{printable(source.name)}: this is an export of Label Studio, which has a layout of its "
            "own. Leave --layout out."
        )
    export = _export(source) or "JSON"
    found = _of_tasks(source, options) if export == "JSON" else _of_records(source, options, export)
    control, no_label = _chosen(source, found, options)
    absent = [f"--label {options.label}"] if no_label else []
    for flag in ("response", "cluster"):
        named = getattr(options, flag)
        lacking = [n for n in named.split("+") if n and n.strip() not in found.fields]
        if lacking and named != "none":
            if source.alone:
                raise UsageError(
                    f"--{flag}: the tasks of {printable(source.name)} have no field {lacking[0]!r}. "
                    f"Fields: {', '.join(map(printable, found.fields)) or 'none'}."
                )
            absent.append(f"--{flag} {named}")
    gathered = Gathered(source, unit="task" if export == "JSON" else _unit(export))
    blank = _fill(gathered, found, control, options)
    labels, people, clear = _truth(found, control)
    if clear:
        _add_gold(gathered, found, labels, options)
    facts: dict[str, dict[str, Any]] = {
        g.grader: {"kind": "person" if g.person else "model"} for g in found.given
    }
    rows = gathered.rows(
        layout=f"{WORDED} {export}",
        notices=[
            *found.trouble.notices(),
            *_notices(source, found, control, export, blank),
            *_truth_notices(source, found, clear),
        ],
        facts=facts,
        scope=_scope(found),
    )
    carried: dict[str, Any] = {}
    if clear:
        gold = {"name": "gold", "person": True, "derived_from": sorted(people)}
        carried = {"graders": [gold], "scale": [], "off_scale": []}
    return [replace(r, absent=tuple(absent), carried=carried) for r in rows]


def _scope(found: _Read) -> dict[str, str]:
    """A digest of the annotated tasks: their ids count from 1 in every project of another server.

    Of each task, the longest value of its data stands for it: all exports have it, whichever columns
    of a table are taken for answers.
    """
    longest: dict[str, tuple[int, str]] = {}
    for given in found.given:
        if given.person and not given.cancelled and given.answers and given.task not in longest:
            texts = [t for v in given.data.values() if (t := as_text(v)) is not None]
            longest[given.task] = max(((len(t), t) for t in texts), default=(0, ""))
    named = json.dumps(sorted((task, text) for task, (_, text) in longest.items()))
    return {"tasks": hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:_HEX]}


def _unit(export: str) -> str:
    return "record" if export == "JSON-MIN" else "line"


def _ids(given: _Given, found: _Read, options: Options) -> dict[str, Any]:
    """The response and the cluster of a task."""
    response = (_joined(options.response, given) if options.response else None) or given.task
    cluster = None
    if options.cluster:
        cluster = _joined(options.cluster, given) if options.cluster != "none" else None
    else:
        own = next((c for c in RECOGNISED["cluster"] for f in found.fields if f.lower() == c), "")
        if own:
            named = next(f for f in found.fields if f.lower() == own)
            cluster = as_text(given.data.get(named))
    return {"response": response, "cluster": cluster}


def _tags_of(given: _Given, names: Iterable[str]) -> dict[str, Any]:
    return {f"{n} (log)" if n in ("at", "reason") else n: given.data.get(n) for n in names}


def _fill(gathered: Gathered, found: _Read, control: str, options: Options) -> int:
    """Add a row for each answer; how many annotations left the control blank is given back."""
    tags = _tag_fields(found)
    flagged = any(g.truth for g in found.given)
    by_call: dict[tuple[str, str], list[_Given]] = {}
    for given in found.given:
        by_call.setdefault((given.task, given.grader), []).append(given)
    blank = 0
    for calls in by_call.values():
        answered = sorted(
            (g for g in calls if not g.cancelled and g.answers.get(control) is not None),
            key=lambda g: g.key,
        )
        blank += sum(not g.cancelled and g.answers.get(control) is None for g in calls)
        # Somebody who skipped a task and came back to it has answered.
        for vote, given in enumerate(answered or calls[:1], start=1):
            label = given.answers.get(control) if answered else None
            why = "" if answered else "was cancelled" if given.cancelled else "left blank"
            gathered.add(
                given.at,
                **_ids(given, found, options),
                grader=given.grader,
                label=label,
                outcome="" if answered else "missing",
                reason=why,
                vote=vote if len(answered) > 1 else None,
                **_tags_of(given, tags),
                **({"ground_truth": given.truth} if flagged else {}),
            )
    return blank


def _add_gold(
    gathered: Gathered, found: _Read, labels: Mapping[str, str], options: Options
) -> None:
    tags = _tag_fields(found)
    done: set[str] = set()
    for given in found.given:
        if given.task in labels and given.task not in done:
            done.add(given.task)
            gathered.add(
                given.at,
                **_ids(given, found, options),
                grader="gold",
                label=labels[given.task],
                **_tags_of(given, tags),
            )


def _notices(source: Source, found: _Read, control: str, export: str, blank: int) -> list[Text]:
    name = printable(source.name)
    notices: list[Text] = []
    others = [c for c in found.types if c != control]
    if others:
        notices.append(
            say(
                "{name}: {n} have answers, and {control} is read; another is read with --label ({others}).",
                name=name,
                n=plural(len(others) + 1, "control"),
                control=Name(control),
                others=listed(others),
            )
        )
    cancelled = sum(g.cancelled for g in found.given)
    if cancelled:
        notices.append(
            say(
                "{name}: {n} cancelled and {are} no label; where the person gave no other one, the label "
                "is missing.",
                name=name,
                n=plural(cancelled, "annotation was", "annotations were"),
                are="is" if cancelled == 1 else "are",
            )
        )
    if blank:
        notices.append(
            say(
                "{name}: {n} {control} blank, which is missing.",
                name=name,
                n=plural(blank, "annotation leaves", "annotations leave"),
                control=Name(control),
            )
        )
    if found.several:
        notices.append(
            say(
                "{name}: {n} several answers at once; each combination is a class of its own.",
                name=name,
                n=plural(found.several, "annotation has", "annotations have"),
            )
        )
    if found.unseen:
        notices.append(
            say(
                "{name}: {n} named by id alone, so what the model said is not known; export predictions in "
                "full to audit it.",
                name=name,
                n=plural(found.unseen, "prediction is", "predictions are"),
            )
        )
    if found.untouched:
        notices.append(
            say(
                "{name}: {n} no annotation.",
                name=name,
                n=plural(found.untouched, "task has", "tasks have"),
            )
        )
    if any(g.grader == _NOWHERE for g in found.given):
        notices.append(
            say("{name}: annotations without a person stand under {who}.", name=name, who=_NOWHERE)
        )
    if export != "JSON":
        notices.append(
            say(
                "{name}: the {export} export leaves out cancelled annotations, predictions, ground truth, "
                "and tasks that nobody annotated; the JSON export has them.",
                name=name,
                export=export,
            )
        )
    return notices


def _truth_notices(source: Source, found: _Read, clear: bool) -> list[Text]:
    flagged = sum(bool(g.truth) and not g.cancelled for g in found.given)
    if not flagged:
        return []
    n = plural(flagged, "annotation is", "annotations are")
    if clear:
        return [
            say(
                "{name}: {n} flagged as ground truth and made the grader gold, which stands as derived "
                "from the people who gave them (--gold none audits without it).",
                name=printable(source.name),
                n=n,
            )
        ]
    return [
        say(
            "{name}: {n} flagged as ground truth, which does not single out one label a task, so there is "
            "no gold; the flag is the tag ground_truth.",
            name=printable(source.name),
            n=n,
        )
    ]


READER = Reader(
    name=FORMAT,
    title="Label Studio exports (JSON, JSON-MIN, CSV, TSV)",
    suffixes=(".json", ".csv", ".tsv"),
    sniff=sniff,
    read=read,
)
