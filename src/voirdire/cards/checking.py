"""Reading a card back: what is not readable, and every line that does not hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from voirdire import plugins
from voirdire.cards.schema import (
    MEASURED,
    TRIGGERS,
    VERSION,
    Problem,
    problems,
    schema,
    step,
)
from voirdire.cards.uses import derive
from voirdire.checks.base import Check
from voirdire.errors import InputError, unreadable
from voirdire.wording import printable

__all__ = ["broken", "loaded", "not_held"]

LARGEST = 32 << 20  # bytes; the card of a grader with a hundred slices has about one million
DEEPEST = 64


class _Twice(dict[str, Any]):
    """A JSON object in which a key stands twice; ``twice`` are those keys."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.twice = [k for k, _ in pairs if k in seen or seen.add(k)]  # type: ignore[func-returns-value]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Twice(pairs)


def loaded(path: Path) -> dict[str, Any]:
    """The JSON object in a file; raises :class:`InputError` for one that is no card of this version."""
    name = printable(path.name)
    if path.suffix.lower() in (".md", ".html", ".txt", ".tex", ".pdf"):
        raise InputError(f"{name}: this is a card to read. Check the .json card it was made with.")
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise InputError(f"{name}: this is no file. Name the .json card itself.")
        if size > LARGEST:
            raise InputError(f"{name}: {size:,} bytes are no card (at most {LARGEST:,}).")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(unreadable(path, error, name=name)) from error
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: this is not UTF-8 text (byte {error.start:,}).") from error
    except RecursionError as error:
        raise InputError(f"{name}: its JSON is nested too deeply for a card.") from error
    except ValueError as error:
        raise InputError(f"{name}: this is not JSON: {printable(str(error))}.") from error
    if not isinstance(value, dict) or "card" not in value:
        raise InputError(
            f'{name}: this is no grader card: there is no line "card". Write one with voirdire card.'
        )
    if _deep(value) > DEEPEST:
        raise InputError(f"{name}: its JSON is nested too deeply for a card.")
    version = value["card"]
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        raise InputError(
            f"{name}: this card is of version {version}, written by a newer voirdire; this one reads "
            f"version {VERSION}. Update voirdire."
        )
    return value


def _deep(value: Any) -> int:
    """How deep lists and objects are nested, without recursion."""
    level, deepest = [value], 0
    while level:
        deepest += 1
        level = [
            m
            for v in level
            if isinstance(v, dict | list)
            for m in (v.values() if isinstance(v, dict) else v)
        ]
    return deepest


def broken(card: Mapping[str, Any], *, version: str, on: date | None = None) -> list[Problem]:
    """Every line of a card that does not hold; on a day also whether it has expired.

    ``version`` is that of this voirdire: a card that it made itself must have the uses that follow from
    its findings; one of another version may follow other rules, and :func:`not_held` says so.
    """
    found = [*_not_json(card, "$"), *problems(card, schema(), schema())]
    if found:
        return found
    found += _of_dates(card, on)
    found += _of_triggers(card)
    found += _of_intervals(card)
    if not found and not not_held(card, version=version):
        found += _of_uses(card)
    return found


def not_held(card: Mapping[str, Any], *, version: str) -> str:
    """Why the uses of a card are not held against its findings; empty where they are."""
    made = card["made_with"]["voirdire"]
    if made != version:
        return f"voirdire {printable(made)} made it, and this is {version}"
    if not _all_known(card):
        return "a check that is not installed here made one of them"
    return ""


def _all_known(card: Mapping[str, Any]) -> bool:
    """Whether the checks behind all findings are there; those of another package may not be."""
    known = {code for check in plugins.load("checks", Check) for code in check.codes}
    findings = card["findings"]
    return not isinstance(findings, list) or all(f["code"] in known for f in findings)


def _not_json(value: Any, path: str) -> Iterator[Problem]:
    if isinstance(value, float) and not math.isfinite(value):
        word = "NaN" if math.isnan(value) else "Infinity"
        yield Problem(path, f'is {word}, which is no JSON: write {{"unknown": why}}')
    elif isinstance(value, dict):
        for key in value.twice if isinstance(value, _Twice) else ():
            yield Problem(step(path, key), "stands twice")
        for key, member in value.items():
            yield from _not_json(member, step(path, key))
    elif isinstance(value, list):
        for place, member in enumerate(value):
            yield from _not_json(member, step(path, place))


def _date(line: Any) -> date | None:
    return date.fromisoformat(line) if isinstance(line, str) else None


def _of_dates(card: Mapping[str, Any], on: date | None) -> list[Problem]:
    days: dict[str, date | None] = {}
    for name in ("dated", "expires"):
        try:
            days[name] = _date(card[name])
        except ValueError:
            return [Problem(f"$.{name}", f"is {card[name]}, which is no day")]
    start, end = days["dated"], days["expires"]
    if start and end and end < start:
        return [Problem("$.expires", f"is {end}, before the card’s date {start}")]
    if on and end and on > end:
        return [Problem("$.expires", f"the card expired on {end}: measure the grader again")]
    if on and start and on < start:
        return [Problem("$.dated", f"is {start}, after {on}")]
    return []


def _of_triggers(card: Mapping[str, Any]) -> list[Problem]:
    there = {r["trigger"] for r in card["recheck"]}
    return [
        Problem("$.recheck", f"the trigger {trigger} is missing")
        for trigger in TRIGGERS
        if trigger not in there
    ]


def _of_intervals(card: Mapping[str, Any]) -> list[Problem]:
    return [
        Problem(f"$.measured.{name}[{place}].interval", "ends below its start")
        for name in MEASURED
        for place, row in enumerate(card["measured"][name])
        if isinstance(row, dict) and row["interval"].get("low", 0) > row["interval"].get("high", 0)
    ]


def _of_uses(card: Mapping[str, Any]) -> list[Problem]:
    """Where the uses are not those that follow from findings and results by the rules."""
    follows = derive(card)
    given = card["uses"]
    by_use = {_of(u): u for u in given}
    found = []
    for use in follows:
        mine = by_use.get(_of(use))
        if mine is None:
            found.append(Problem("$.uses", f"“{use['title']}” is missing"))
            continue
        place = step("$.uses", given.index(mine))
        if mine["status"] != use["status"]:
            found.append(
                Problem(
                    f"{place}.status",
                    f"is {mine['status']}, and from the findings follows {use['status']}",
                )
            )
        elif mine != use:
            found.append(Problem(f"{place}.because", "is not what follows from the findings"))
    known = {_of(u) for u in follows}
    found += [
        Problem(step("$.uses", i), "is no use that follows from this card, or stands twice")
        for i, u in enumerate(given)
        if _of(u) not in known or by_use[_of(u)] is not u
    ]
    return found


def _of(use: Mapping[str, Any]) -> str:
    return json.dumps([use["use"], use["scope"]], sort_keys=True)
