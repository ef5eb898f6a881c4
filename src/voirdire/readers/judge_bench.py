"""JUDGE-BENCH: nested JSON of instances, each with the labels of its human raters by position.

Source: Bavaresco et al. 2024, "LLMs instead of Human Judges?" (arXiv 2406.18403), schema of the
repository's data files: ``instances[].annotations.<metric>.individual_human_scores`` is a list with
one label a rater, ``majority_human`` the label that most raters gave. Raters have no ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from voirdire.errors import InputError, UsageError
from voirdire.options import Options
from voirdire.readers._layout import lay_out, named_columns, own_plan, recoded
from voirdire.readers._raw import Problems, RawTable, blank_to_null
from voirdire.readers._text import all_text, encoding_of, head_text
from voirdire.readers.base import Claim, Reader
from voirdire.rows import CANONICAL, Rows
from voirdire.source import Source
from voirdire.wording import Name, Text, listed, plural, printable, say

SCORES, MAJORITY = "individual_human_scores", "majority_human"
_RESERVED = (*CANONICAL, "metric")
_SPACE = re.compile(r"[ \t\r\n,:]*")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def sniff(source: Source) -> Claim | None:
    """Sure where the first instance in the head has ratings in the shape of JUDGE-BENCH."""
    if source.frame is not None or (source.path is not None and source.path.is_dir()):
        return None
    if not source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return None
    text = head_text(source, encoding_of(source, "")).lstrip("\ufeff \t\r\n")
    return Claim(format="judge_bench") if _is_rated(_first_instance(text)) else None


def _first_instance(text: str) -> Any:
    """The first item of the list ``instances`` of a document whose end may be cut off."""
    decoder = json.JSONDecoder()
    at = 1
    try:
        while True:
            at = _after_space(text, at)
            key, at = decoder.raw_decode(text, at)
            at = _after_space(text, at)
            if key == "instances":
                if text[at : at + 1] != "[":
                    return None
                return decoder.raw_decode(text, _after_space(text, at + 1))[0]
            _, at = decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _is_rated(instance: Any) -> bool:
    if not isinstance(instance, dict) or not isinstance(instance.get("annotations"), dict):
        return False
    ratings = list(instance["annotations"].values())
    return bool(ratings) and all(
        isinstance(r, dict) and isinstance(r.get(SCORES), list) for r in ratings
    )


def _document(source: Source, options: Options) -> dict[str, Any]:
    name = printable(source.name)
    text = all_text(source, encoding_of(source, options.encoding))
    try:
        document = json.loads(text.removeprefix("\ufeff"), parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        torn = "" if text[error.pos :].strip() else "; the document ends too early: it is torn"
        raise InputError(f"{name}, line {error.lineno:,}: no JSON ({error.msg}){torn}.") from error
    except RecursionError as error:
        raise InputError(f"{name}: lists or objects are nested too deeply to be read.") from error
    if not isinstance(document, dict) or not isinstance(document.get("instances"), list):
        raise InputError(f"{name}: there is no list of instances in it.")
    return document


def _text(value: Any) -> str | None:
    """One label as text: a number as it is spelled, null as a blank cell."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _HALF_CHARACTER.sub("\ufffd", text)


class _Cells:
    """The rows of a document, one a label, gathered as columns."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        expert = _text(document.get("expert_annotator"))
        self.rater = "expert" if (expert or "").lower() == "true" else "rater"
        self.columns: dict[str, list[str | None]] = {"response": [], "grader": [], "label": []}
        self.at: list[int] = []
        self.raters = 0
        self.uneven = False
        self.ties = 0
        self.metrics: list[str] = []

    def name(self, position: int, width: int) -> str:
        return f"{self.rater} {position:0{width}}"

    def add(self, row: Mapping[str, str | None], instance: int) -> None:
        for column in row:
            if column not in self.columns:
                self.columns[column] = [None] * len(self.at)
        for column, cells in self.columns.items():
            cells.append(row.get(column))
        self.at.append(instance)


def _instances(source: Source, document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The instances; raises with every one that has another shape."""
    problems = Problems(source.name, unit="instance")
    for i, instance in enumerate(document["instances"], start=1):
        if not _is_rated(instance):
            problems.add(i, f"it has no annotations with a list {SCORES}")
        elif _text(instance.get("id")) is None:
            problems.add(i, "it has no id")
        else:
            for metric, rating in instance["annotations"].items():
                if any(isinstance(v, dict | list) for v in rating[SCORES]):
                    problems.add(i, f"a label of {printable(metric)} is a list or an object")
    problems.raise_if_any("Each instance needs an id and one label for each of its raters.")
    instances = list(document["instances"])
    if not instances:
        raise InputError(f"{printable(source.name)}: the list of instances is empty.")
    return instances


def _table(source: Source, options: Options) -> tuple[RawTable, dict[str, Any]]:
    """The document as a long table, and what it carries: who the raters are, and the classes."""
    document = _document(source, options)
    instances = _instances(source, document)
    cells = _Cells(document)
    metrics = list(dict.fromkeys(m for i in instances for m in i["annotations"]))
    cells.metrics = metrics
    counts = {len(r[SCORES]) for i in instances for r in i["annotations"].values()}
    cells.raters, cells.uneven = max(counts), len(counts) > 1
    width = max(3, len(str(cells.raters)))
    # The majority of one rater is that rater again, and no second grader.
    majority = cells.raters > 1 and any(
        r.get(MAJORITY) is not None for i in instances for r in i["annotations"].values()
    )
    majority_name = MAJORITY if cells.rater == "rater" else f"{MAJORITY} ({cells.rater}s)"
    for i, instance in enumerate(instances, start=1):
        own = str(_text(instance["id"]))
        tags = _tags_of(instance)
        for metric, rating in instance["annotations"].items():
            row = {"response": own, **tags}
            if len(metrics) > 1:
                row = {"response": f"{own}/{metric}", "cluster": own, **tags, "metric": metric}
            for p, label in enumerate(rating[SCORES], start=1):
                cells.add({**row, "grader": cells.name(p, width), "label": _text(label)}, i)
            if majority:
                label = rating.get(MAJORITY)
                if isinstance(label, dict | list):
                    cells.ties += 1
                    label = None
                cells.add({**row, "grader": majority_name, "label": _text(label)}, i)
    if not cells.raters:
        raise InputError(f"{printable(source.name)}: no instance has a label of a rater.")
    frame = pl.DataFrame(
        [pl.Series(c, values, dtype=pl.String) for c, values in cells.columns.items()]
    )
    raters = tuple(cells.name(p, width) for p in range(1, cells.raters + 1))
    table = RawTable(
        name=source.name,
        stem=source.stem,
        format="judge_bench",
        frame=blank_to_null(frame),
        line=lambda row: cells.at[row],
        unit="instance",
        notices=_notices(cells, raters, majority_name if majority else "", instances),
    )
    graders = [{"name": r, "person": True} for r in raters]
    if majority:
        graders.append({"name": majority_name, "person": True, "derived_from": list(raters)})
    carried = {"graders": graders, "scale": _classes(document, metrics), "off_scale": []}
    return table, carried


def _tags_of(instance: Mapping[str, Any]) -> dict[str, str | None]:
    """Fields of an instance that are plain values: its text and its ratings are no tags."""
    plain = {k: v for k, v in instance.items() if k != "id" and not isinstance(v, dict | list)}
    return {
        k if k in ("cluster", "stratum") or k not in _RESERVED else f"{k} (column)": _text(v)
        for k, v in plain.items()
    }


def _classes(document: Mapping[str, Any], metrics: Sequence[str]) -> list[str]:
    """The classes that the document names for its one metric, in its order; else none."""
    described = document.get("annotations")
    if len(metrics) != 1 or not isinstance(described, list):
        return []
    for entry in described:
        if isinstance(entry, dict) and entry.get("metric") == metrics[0]:
            classes = entry.get("labels_list")
            if isinstance(classes, list) and not any(isinstance(c, dict | list) for c in classes):
                return list(dict.fromkeys(t for c in classes if (t := _text(c)) is not None))
    return []


def _notices(
    cells: _Cells, raters: Sequence[str], majority: str, instances: Sequence[Mapping[str, Any]]
) -> tuple[Text, ...]:
    notices: list[Text] = []
    if len(raters) > 1:
        notices.append(
            say(
                "Raters have no ids in this file: {raters} are positions in a list, and nothing says "
                "that a position is one person throughout.",
                raters=(Name(raters[0]), " to ", Name(raters[-1])),
            )
        )
    if cells.uneven:
        notices.append(
            say(
                "Instances have lists of ratings of different lengths; positions beyond a list’s end "
                "are no calls."
            )
        )
    if majority:
        notices.append(
            say(
                "{majority} is made from the raters’ labels: it stands as derived from them.",
                majority=Name(majority),
            )
        )
    elif any(MAJORITY in r for i in instances for r in i["annotations"].values()):
        notices.append(
            say(
                "There is one rater, so {majority} is its label again and is left out.",
                majority=Name(MAJORITY),
            )
        )
    if len(cells.metrics) > 1:
        notices.append(
            say(
                "Instances are rated by {n} metrics ({metrics}): a response is an instance under one "
                "of them, and the instance is its cluster. Take them apart with --by metric.",
                n=len(cells.metrics),
                metrics=listed(cells.metrics),
            )
        )
    if cells.ties:
        notices.append(
            say(
                "{n} of {majority} no single label and {are} missing.",
                n=plural(cells.ties, "entry", "entries"),
                majority=Name(MAJORITY),
                are="is" if cells.ties == 1 else "are",
            )
        )
    return tuple(notices)


def read(source: Source, options: Options) -> Rows:
    """All labels of all raters, one row each, and of ``majority_human`` where there are several.

    A response is an instance; where instances are rated by several metrics, an instance under a
    metric, and the instance is the cluster. Raises :class:`InputError` where the document has
    another shape.
    """
    if options.layout not in ("auto", "long"):
        raise UsageError(
            f"{printable(source.name)}: this is a JUDGE-BENCH file, which has a layout of its own. "
            "Leave --layout out."
        )
    table, carried = _table(source, options)
    keys, absent = named_columns(table, options, alone=source.alone)
    table, absent_too, unmatched = recoded(table, options, alone=source.alone)
    laid = lay_out(table, options, own_plan(table, keys), alone=source.alone)
    return Rows(
        frame=laid.frame,
        name=source.name,
        stem=source.stem,
        sha256=source.sha256,
        layout="judge_bench",
        kind=laid.kind,
        place=laid.place,
        carried=carried,
        notices=laid.notices,
        seen=laid.seen,
        absent=(*absent, *absent_too),
        unmatched=unmatched,
    )


def look(source: Source, options: Options) -> list[dict[str, Any]]:
    """One entry a column of the long table that the document becomes."""
    table, _ = _table(source, options)
    entries = []
    for column in table.columns:
        series = table.frame[column]
        counts = (
            pl.DataFrame({"value": series.drop_nulls()})
            .group_by("value", maintain_order=True)
            .len()
            .sort("len", descending=True, maintain_order=True)
        )
        entries.append(
            {
                "column": column,
                "blank": series.null_count(),
                "distinct": counts.height,
                "values": counts.head(6).rows(),
                "role": column if column in ("response", "grader", "label", "cluster") else "tag",
            }
        )
    return entries


READER = Reader(
    name="judge_bench",
    title="JUDGE-BENCH (nested JSON with human ratings)",
    suffixes=(".json",),
    sniff=sniff,
    read=read,
    look=look,
)
