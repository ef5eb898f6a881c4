"""JSON: the whole audit for programs, strict and the same bytes for the same input."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Set
from typing import Any

from voirdire.document import Document
from voirdire.estimate import RESULT_COLUMNS
from voirdire.finding import State, Strength
from voirdire.formats.base import Format

_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBERS = ("value", "low", "high", "level", "n")


def render(document: Document) -> bytes:
    """Write inputs, options, listed results and findings as one JSON object."""
    text = json.dumps(_strict(_content(document)), ensure_ascii=False, allow_nan=False, indent=1)
    # Half a surrogate pair has no UTF-8 form; as an escape it comes back as it was.
    text = _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)
    return text.encode("utf-8") + b"\n"


def _content(document: Document) -> dict[str, Any]:
    return {
        "voirdire": document.version,
        "inputs": [{"name": i.name, "sha256": i.sha256, "rows": i.rows} for i in document.inputs],
        "options": document.options,
        "results": [e.row() for e in document.estimates if e.listed],
        "findings": [f.record() for f in document.findings],
    }


def _strict(value: Any) -> Any:
    """The value with plain JSON types only; a number that is not finite becomes ``None``."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): _strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(v) for v in value]
    if isinstance(value, Set):
        return sorted((_strict(v) for v in value), key=str)
    if hasattr(value, "item"):  # numbers of numpy
        return _strict(value.item())
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return int(value)
    return str(value)


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every JSON report follows."""
    text: dict[str, Any] = {"type": "string"}
    numbers: dict[str, Any] = {name: {"type": ["number", "null"]} for name in _NUMBERS}
    row: dict[str, Any] = dict.fromkeys(RESULT_COLUMNS, text) | numbers
    row["clusters"] = {"type": ["integer", "null"]}
    row["describes"] = {"enum": ["grader", "bank", "both", "panel"]}
    finding = {
        "code": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
        "state": {"enum": [str(s) for s in State]},
        "strength": {"enum": [str(s) for s in Strength]},
        "grader": text,
        "other": text,
        "class": text,
        "line": text,
        "cut": text,
        "slice": text,
        "exploratory": {"type": "boolean"},
        "sentence": text,
        "evidence": {"type": "array", "items": {"$ref": "#/$defs/result"}},
    }
    source = {
        "name": text,
        "sha256": {"type": "string", "pattern": "^([0-9a-f]{64})?$"},
        "rows": {"type": "integer", "minimum": 0},
    }
    top = {
        "voirdire": {"type": "string", "description": "The version that wrote the report."},
        "inputs": {"type": "array", "items": {"$ref": "#/$defs/input"}},
        "options": {"type": "object", "description": "The options used, by name."},
        "results": {
            "type": "array",
            "description": "One row an estimate, unique in its first eight columns. Shares are "
            "in 0–1 and nothing is rounded; the reason is filled exactly where the value is null.",
            "items": {"$ref": "#/$defs/result"},
        },
        "findings": {
            "type": "array",
            "description": "What the checks say, worst first.",
            "items": {"$ref": "#/$defs/finding"},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "voirdire audit",
        **_closed(top),
        "$defs": {
            "input": _closed(source),
            "result": _closed(row),
            "finding": _closed(finding),
        },
    }


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object that has all of these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


FORMAT = Format(name="json", suffixes=(".json",), render=render, title="JSON, for programs")
