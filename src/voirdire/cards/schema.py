"""The JSON Schema of a grader card (draft 2020-12), and a validator for the part of it that it uses.

A line of a card is a value, or ``{"unknown": reason}`` where nobody knows it, or ``{"not_applicable":
reason}`` where there is nothing to know. An empty text, list or object is never a value.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from voirdire.checks.base import Effect
from voirdire.estimand import Unit
from voirdire.finding import State, Strength

__all__ = ["ID", "MEASURED", "TRIGGERS", "VERSION", "Problem", "problems", "schema"]

VERSION = 1
ID = f"urn:voirdire:card:{VERSION}"
MEASURED = ("of_the_grader", "of_grader_and_bank", "of_the_bank_only", "of_the_panel")
TRIGGERS = (
    "model",
    "prompt",
    "settings",
    "silent_update",
    "new_bank",
    "class_mix",
    "expiry",
    "voirdire",
)
STATUSES = ("not_allowed", "unknown", "allowed")

_FILLED = {"type": "string", "pattern": "\\S"}
_DATE = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
_COUNT = {"type": "integer", "minimum": 1}
_AMOUNT = {"type": "number", "exclusiveMinimum": 0}
_TEXTS = {"type": "array", "items": _FILLED, "minItems": 1}


def _line(known: Mapping[str, Any], what: str) -> dict[str, Any]:
    """A line that is known, unknown or not applicable; ``what`` says what a known one is."""
    return {
        "description": f'{what}, {{"unknown": why}} or {{"not_applicable": why}}',
        "anyOf": [dict(known), {"$ref": "#/$defs/unknown"}, {"$ref": "#/$defs/not_applicable"}],
    }


def _closed(properties: Mapping[str, Any], *optional: str, about: str = "") -> dict[str, Any]:
    """An object that has all of these properties but the optional ones, and no others."""
    return {
        "type": "object",
        **({"description": about} if about else {}),
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


# What a fact or a setting may say. A line that is unknown as a whole is no object with that name in it.
_SAID = {
    "description": "a value that is not empty",
    "anyOf": [
        {"type": "number"},
        {"type": "boolean"},
        _FILLED,
        {"type": "array", "minItems": 1},
        {"type": "object", "minProperties": 1},
    ],
}
_NOW = {**_SAID, "anyOf": [o for o in _SAID["anyOf"] if o != {"type": "number"}]}
_FACTS = {
    "type": "object",
    "properties": {"unknown": False, "not_applicable": False},
    "additionalProperties": _SAID,
    "minProperties": 1,
}


def _text_line(what: str = "a text that says something") -> dict[str, Any]:
    return _line(_FILLED, what)


_TEXT, _LIST = _text_line(), _line(_TEXTS, "a list of texts that is not empty")
_WHOLE = _line(_COUNT, "a whole number from 1")
_KEYS = ("other", "class", "to_class", "line", "cut", "slice")


def schema() -> dict[str, Any]:
    """The schema of every card of this version."""
    grader = {
        "name": _FILLED,
        "kind": _TEXT,
        "model": _TEXT,
        "provider": _TEXT,
        "size": _TEXT,
        "family": _TEXT,
        "prompt": _TEXT,
        "prompt_hash": _TEXT,
        "system_fingerprint": _TEXT,
        "settings": _line(_FACTS, "an object that is not empty"),
        "votes": _WHOLE,
        "phrasings": _line(
            {"anyOf": [_COUNT, _TEXTS]}, "a whole number from 1, or the names of the phrasings"
        ),
        "rubric": _TEXT,
        "made_from": _LIST,
        "range": _LIST,
        "other_facts": _line(_FACTS, "an object that is not empty"),
    }
    bank = {
        "inputs": {"type": "array", "items": {"$ref": "#/$defs/input"}, "minItems": 1},
        "kind": {"enum": ["labels", "counts", "checklist"]},
        "responses": _WHOLE,
        "clusters": _WHOLE,
        "clusters_are": _TEXT,
        "ordered": {"type": "boolean"},
        "classes": _LIST,
        "off_scale": _LIST,
        "rates": _line(
            {"type": "array", "items": {"$ref": "#/$defs/rate"}, "minItems": 1}, "a list of rates"
        ),
        "lines": _WHOLE,
        "cuts": _LIST,
        "gold": _TEXT,
        "gold_made_from": _LIST,
        "gold_is": _TEXT,
        "reference": _TEXT,
        "other_graders": _LIST,
        "tags": _LIST,
        "mix": _line(
            {"type": "array", "items": {"$ref": "#/$defs/result"}, "minItems": 1},
            "a list of results",
        ),
    }
    result = {
        "statistic": _FILLED,
        "title": _FILLED,
        "unit": {"enum": [str(u) for u in Unit]},
        "grader": _FILLED,
        **dict.fromkeys(_KEYS, _FILLED),
        "value": _line({"type": "number"}, "a number"),
        "interval": _line({"$ref": "#/$defs/interval"}, "an interval"),
        "n": _line(_AMOUNT, "a number above 0"),
        "clusters": _WHOLE,
    }
    interval = {
        "low": {"type": "number"},
        "high": {"type": "number"},
        "level": {"type": "number", "minimum": 0.5, "exclusiveMaximum": 1},
        "method": _FILLED,
    }
    finding = {
        "code": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
        "state": {"enum": [str(s) for s in State]},
        "strength": {"enum": [str(s) for s in Strength if s]},
        "exploratory": {"type": "boolean"},
        **dict.fromkeys(("grader", *_KEYS), _FILLED),
        "sentence": _FILLED,
        "next_step": _FILLED,
    }
    scope = {
        "anyOf": [
            {"$ref": "#/$defs/rate"},
            _closed({"cut": _FILLED}),
            {"$ref": "#/$defs/not_applicable"},
        ],
        "description": 'a rate with its classes, a cut, or {"not_applicable": why}',
    }
    reason = {
        "effect": {"enum": [*(str(e) for e in Effect), "is_its_value"]},
        "sentence": _FILLED,
        "finding": _FILLED,
        "fact": _FILLED,
        "result": _FILLED,
        "state": {"enum": [str(s) for s in State]},
        "strength": {"enum": [str(s) for s in Strength if s]},
        **dict.fromkeys(_KEYS, _FILLED),
        "value": {"type": "number"},
    }
    use = {
        "use": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
        "title": _FILLED,
        "scope": scope,
        "status": {"enum": list(STATUSES)},
        "because": {"type": "array", "items": {"$ref": "#/$defs/reason"}, "minItems": 1},
    }
    recheck = {
        "trigger": {"enum": list(TRIGGERS)},
        "when": _FILLED,
        "now": _line(
            {
                "anyOf": [
                    _FILLED,
                    _TEXTS,
                    {"type": "object", "minProperties": 1, "additionalProperties": _NOW},
                ]
            },
            "what it is now: a text, a list or an object that is not empty",
        ),
    }
    rows = _line(
        {"type": "array", "items": {"$ref": "#/$defs/result"}, "minItems": 1}, "a list of results"
    )
    about = {
        "of_the_grader": "Says something of the grader itself.",
        "of_grader_and_bank": "Holds for this grader on this bank, and moves with either.",
        "of_the_bank_only": "No property of the grader: it describes the bank.",
        "of_the_panel": "Of all graders of the audit together.",
    }
    top = {
        "card": {"const": VERSION, "description": "The version of this schema."},
        "grader": _closed(grader, about="Who the grader is."),
        "bank": _closed(bank, about="What it was measured on."),
        "measured": _closed(
            {name: {**rows, "title": about[name]} for name in MEASURED},
            about="What was measured, by what it describes.",
        ),
        "results_left_out": _text_line(),
        "findings": _line(
            {"type": "array", "items": {"$ref": "#/$defs/finding"}, "minItems": 1},
            "a list of findings",
        ),
        "uses": {"type": "array", "items": {"$ref": "#/$defs/use"}, "minItems": 1},
        "recheck": {"type": "array", "items": {"$ref": "#/$defs/recheck"}, "minItems": 1},
        "dated": _line(_DATE, "a date as YYYY-MM-DD"),
        "expires": _line(_DATE, "a date as YYYY-MM-DD"),
        "made_with": _closed(
            {
                "voirdire": _FILLED,
                "options": _line(
                    {"type": "object", "minProperties": 1}, "an object that is not empty"
                ),
            }
        ),
    }
    source = {
        "name": _FILLED,
        "sha256": _line({"type": "string", "pattern": "^[0-9a-f]{64}$"}, "64 hexadecimal digits"),
        "rows": _WHOLE,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "voirdire grader card",
        **_closed(top),
        "$defs": {
            "unknown": _closed({"unknown": _FILLED}),
            "not_applicable": _closed({"not_applicable": _FILLED}),
            "input": _closed(source),
            "rate": _closed({"rate": _FILLED, "classes": _TEXTS}),
            "interval": _closed(interval),
            "result": _closed(result, "grader", *_KEYS),
            "finding": _closed(finding, "strength", "grader", *_KEYS, "next_step"),
            "reason": _closed(
                reason,
                *("sentence", "finding", "fact", "result", "state", "strength", "value", *_KEYS),
            ),
            "use": _closed(use),
            "recheck": _closed(recheck),
        },
    }


# --- validating ---------------------------------------------------------------------------------


class Problem(NamedTuple):
    """What does not hold, and where: a JSON path such as ``$.grader.model``."""

    path: str
    message: str


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "number": (int, float),
    "integer": (int, float),
}
_ARTICLES = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
}
LONGEST_SHOWN = 40


def _is(value: Any, type_: str) -> bool:
    if isinstance(value, bool):
        return type_ == "boolean"
    if type_ == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[type_])


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def step(path: str, key: str | int) -> str:
    """The path of a member: ``$.a[0]``, or ``$["a b"]`` where the key is no plain word."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if re.fullmatch(r"\w{1,60}", key, re.ASCII) else f"{path}[{_shown(key)}]"


def _shown(value: Any) -> str:
    import json

    text = json.dumps(value, ensure_ascii=True) if not isinstance(value, float) else repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def _empty(value: Any) -> bool:
    return value is None or value in ("", [], {}) or (isinstance(value, str) and not value.strip())


def problems(
    value: Any, rule: Mapping[str, Any] | bool, root: Mapping[str, Any], path: str = "$"
) -> Iterator[Problem]:
    """Everything in which a JSON value breaks a schema; knows the keywords that :func:`schema` uses."""
    if isinstance(rule, bool):
        if not rule:
            yield Problem(path, f"is {_shown(value)} and must be a text that says why, by itself")
        return
    if "$ref" in rule:
        yield from problems(value, root["$defs"][rule["$ref"].rpartition("/")[2]], root, path)
        return
    if "anyOf" in rule:
        yield from _no_alternative(value, rule, root, path)
        return
    if "const" in rule and not _same(value, rule["const"]):
        yield Problem(path, f"is {_shown(value)} and must be {_shown(rule['const'])}")
    if "enum" in rule and not any(_same(value, v) for v in rule["enum"]):
        yield Problem(path, f"is {_shown(value)} and must be one of {', '.join(rule['enum'])}")
    if "type" in rule and not _is(value, rule["type"]):
        article = _ARTICLES.get(rule["type"], f"a {rule['type']}")
        yield Problem(path, f"is {_shown(value)} and must be {article}")
        return
    if isinstance(value, str):
        yield from _of_text(value, rule, path)
    elif isinstance(value, dict):
        yield from _of_object(value, rule, root, path)
    elif isinstance(value, list):
        if len(value) < rule.get("minItems", 0):
            yield Problem(path, "is an empty list")
        if "items" in rule:
            for place, item in enumerate(value):
                yield from problems(item, rule["items"], root, step(path, place))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _of_number(value, rule, path)


def _no_alternative(
    value: Any, rule: Mapping[str, Any], root: Mapping[str, Any], path: str
) -> Iterator[Problem]:
    """One problem where no alternative holds, or those of the alternative that was plainly meant."""
    found = [list(problems(value, one, root, path)) for one in rule["anyOf"]]
    if not all(found):
        return
    if _empty(value):
        yield Problem(path, f"is empty: it must be {rule.get('description', 'filled')}")
        return
    deeper = [f for f in found if all(p.path != path for p in f)]
    if deeper:
        yield from min(deeper, key=len)
        return
    yield Problem(path, f"is {_shown(value)} and must be {rule.get('description', 'otherwise')}")


def _of_text(value: str, rule: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if "pattern" in rule and re.search(rule["pattern"], value) is None:
        if _empty(value):
            yield Problem(path, "is empty")
        else:
            yield Problem(path, f"is {_shown(value)}, which is not of the form {rule['pattern']}")


def _of_object(
    value: dict[str, Any], rule: Mapping[str, Any], root: Mapping[str, Any], path: str
) -> Iterator[Problem]:
    known = rule.get("properties", {})
    for name in rule.get("required", ()):
        if name not in value:
            yield Problem(
                step(path, name),
                'is missing: a line that nobody knows is written {"unknown": why}',
            )
    if len(value) < rule.get("minProperties", 0):
        yield Problem(path, "is an empty object")
    for name, member in value.items():
        if name in known:
            yield from problems(member, known[name], root, step(path, name))
        elif rule.get("additionalProperties") is False:
            yield Problem(step(path, name), "is no line of a card")
        elif "additionalProperties" in rule:
            yield from problems(member, rule["additionalProperties"], root, step(path, name))


def _of_number(value: float, rule: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if not math.isfinite(value):
        return  # said of the whole file: JSON has no such number
    for word, holds, says in (
        ("minimum", operator.ge, "at least"),
        ("exclusiveMinimum", operator.gt, "above"),
        ("exclusiveMaximum", operator.lt, "below"),
    ):
        if word in rule and not holds(value, rule[word]):
            yield Problem(path, f"is {_shown(value)} and must be {says} {rule[word]}")
