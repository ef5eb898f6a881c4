"""The JSON Schema of a study file, for editors and for those who write studies with programs."""

from __future__ import annotations

from typing import Any

from voirdire.grading.plan import (
    _COLUMN_KEYS,
    _OPTION_KEYS,
    _PARAMETER_KEYS,
    DEFAULT_PROVIDER,
    NONE,
    Limits,
)
from voirdire.readers._store_schema import MOST_VOTES

__all__ = ["schema"]

_TEXT = {"type": "string"}
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True}
_VOTES = {"type": "integer", "minimum": 1, "maximum": MOST_VOTES}
_PRICE = {"type": "number", "minimum": 0, "description": "Per million tokens."}


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a study file, as :meth:`voirdire.grading.plan.Study.load` reads it."""
    told = {
        "base_url": "Where the endpoint listens, such as http://127.0.0.1:8000/v1.",
        "api_key_env": "The name of the environment variable with the key; never the key.",
        "host": "For any-llm: the name of the host.",
        "command": "For command: the words of the command line.",
        "workers": "For command: how many programs run side by side.",
        "patterns": "For rule: a file of rules, or a list of phrases.",
        "where": "For rule: anywhere or start.",
        "otherwise": "For rule: the class of what no rule matches.",
        "script": "For scripted: a JSON or TOML file of answers.",
    }
    options: dict[str, Any] = {
        name: {"description": told[name]} if name in told else {} for name in _OPTION_KEYS
    }
    parameters: dict[str, Any] = {name: {} for name in _PARAMETER_KEYS}
    number_or_none = {
        "anyOf": [{"type": "number"}, {"const": NONE}],
        "description": f'"{NONE}" leaves it out, as an absent key does.',
    }
    grader = {
        "type": "object",
        "properties": {
            "name": {
                **_TEXT,
                "description": "In the labels. Default: the model, else the provider.",
            },
            "provider": {**_TEXT, "default": DEFAULT_PROVIDER},
            "model": _TEXT,
            "price_in": _PRICE,
            "price_out": _PRICE,
            "window": {
                "type": "integer",
                "minimum": 0,
                "description": "The context in tokens; 0: not known.",
            },
            "votes": _VOTES,
            "phrasings": _NAMES,
            "parameters": {"type": "object", "description": "Sent as they are."},
            "options": {"type": "object", "description": "What the provider needs."},
            **parameters,
            **options,
            "temperature": number_or_none,
            "max_tokens": {**number_or_none},
        },
        "additionalProperties": False,
    }
    limits = {
        "type": "object",
        "properties": {
            "calls": {"type": "integer", "minimum": 1, "description": "Requests of one run."},
            "timeout": {"type": "number", "minimum": 0, "default": Limits().timeout},
            "retries": {"type": "integer", "minimum": 0, "default": Limits().retries},
        },
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "voirdire study",
        "type": "object",
        "properties": {
            "responses": {**_TEXT, "description": "CSV, TSV, JSON, JSON Lines or Parquet."},
            "rubric": {**_TEXT, "description": "One that ships, or a file."},
            "graders": {
                "anyOf": [
                    {"type": "array", "items": {"$ref": "#/$defs/grader"}, "minItems": 1},
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/grader"}},
                ]
            },
            "votes": {**_VOTES, "default": 1},
            "phrasings": {**_NAMES, "description": "Default: all of the rubric."},
            "concurrency": {
                "type": "integer",
                "minimum": 1,
                "maximum": 4096,
                "default": 16,
                "description": "Requests under way at one endpoint.",
            },
            "budget": {
                "type": "number",
                "minimum": 0,
                "description": "Of one run, in the currency of the prices.",
            },
            "limits": limits,
            "seed": {"type": "integer", "minimum": 0, "default": 0},
            "store": {**_TEXT, "description": "Default: beside this file."},
            "columns": {
                "type": "object",
                "properties": dict.fromkeys(_COLUMN_KEYS, _TEXT),
                "additionalProperties": False,
            },
            "empty": {"enum": ["grade", "skip"], "default": "grade"},
            "encoding": _TEXT,
        },
        # Each can also come from a flag of the command line.
        "additionalProperties": False,
        "$defs": {"grader": grader},
    }
