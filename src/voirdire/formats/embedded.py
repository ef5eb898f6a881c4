"""The responses of a report as compact JSON that a page can hold: data only, never markup.

Columns of codes are strings with one or two digits of 64 a response; sorted names share their starts.
``<``, ``>``, ``&`` and every character that is not plainly visible are written as ``\\uXXXX``, so that no
text can end the element it stands in.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from voirdire.document import Cell, Responses
from voirdire.selections import Condition, Selection, amounts, reproduces, selection
from voirdire.wording import Text

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
_UNSAFE = re.compile(
    "[<>&\u007f-\u009f\u00ad\u0600-\u0605\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufe00-\ufe0f\ufeff\ufff0-\uffff]"
)


def safe_json(value: Any) -> str:
    """JSON without a character that could end or open an element, or turn the text around it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def packed(codes: Sequence[int], most: int) -> str:
    """Codes from 0 to below ``most`` as digits of 64, as many digits each as the largest needs."""
    width = digits(most)
    if width == 1:
        return "".join(map(DIGITS.__getitem__, codes))
    places = range(width - 1, -1, -1)
    return "".join(DIGITS[code >> 6 * p & 63] for code in codes for p in places)


def digits(most: int) -> int:
    """How many digits of 64 a code below ``most`` needs."""
    width = 1
    while 64**width < most:
        width += 1
    return width


def shared_starts(names: Iterable[str]) -> list[str]:
    """Each name without what it shares with the one before: a digit for how much, then the rest."""
    made, last = [], ""
    for name in names:
        same = 0
        for a, b in zip(name[:63], last, strict=False):
            if a != b:
                break
            same += 1
        made.append(DIGITS[same] + name[same:])
        last = name
    return made


def embedded(held: Responses) -> str:
    """The responses as JSON; the page's script has the reader of each column."""
    k = len(held.classes)
    states = k + len(held.outcomes)
    data: dict[str, Any] = {
        "ids": shared_starts(held.ids),
        "graders": held.graders,
        "gold": held.gold,
        "classes": held.classes,
        "scale": len(held.scale),
        "outcomes": held.outcomes,
        "states": [packed(column, states) for column in held.states],
        "tags": [
            [
                t.name,
                t.values,
                packed(
                    [c if c < len(t.values) else len(t.values) for c in t.codes], len(t.values) + 1
                ),
            ]
            for t in held.tags
        ],
    }
    if held.clusters:
        order = sorted(range(len(held.clusters)), key=held.clusters.__getitem__)
        place = {old: new for new, old in enumerate(order)}
        data["clusters"] = shared_starts(held.clusters[i] for i in order)
        data["cluster"] = packed([place[c] for c in held.cluster], len(order))
    if held.weights:
        data["weights"], data["frequency"] = held.weights, held.frequency
    if held.votes:
        data["votes"] = [
            ".".join(packed(votes, states) for votes in column) for column in held.votes
        ]
    if held.phrased:
        data["phrasings"] = held.phrasings
        data["phrased"] = [[packed(c, 256) for c in columns] for columns in held.phrased]
    if held.steps:
        data["steps"] = [[name, [packed(c, 256) for c in columns]] for name, columns in held.steps]
    if held.verdicts is not None:
        v = held.verdicts
        data["verdicts"] = {
            "width": v.width,
            "questions": v.questions,
            "question": packed(v.question, max(len(v.questions), 1)),
            "checklists": v.checklists,
            "given": [packed(column, 4) for column in v.given],
            "texts": {line: text for line, text in v.texts.items() if text},
        }
    if held.texts:
        data["texts"] = [[name, column] for name, column in held.texts]
    return safe_json(data)


def mark_of(content: str) -> str:
    """What tells one set of responses from another, so that a page knows its own file."""
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:24]


@dataclass
class Selections:
    """The numbers of one page that lead to responses, each selection once, in order of appearance."""

    held: Responses | None
    _strings: dict[str | tuple[str], int] = field(default_factory=dict)
    _conditions: dict[Condition, int] = field(default_factory=dict)
    _made: list[Any] = field(default_factory=list)
    _known: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def of(self, cell: Cell) -> int:
        """The place of the selection behind a cell, −1 where the number leads nowhere."""
        if self.held is None or cell.key is None or cell.value is None:
            return -1
        chosen = selection(self.held, cell.statistic, cell.key)
        if chosen is None or not reproduces(self.held, chosen, cell):
            return -1
        name = (cell.statistic, *cell.key)
        if name not in self._known:
            empty = not amounts(self.held, chosen.conditions).any()
            self._known[name] = -1 if empty else len(self._made)
            if not empty:
                self._made.append(self._coded(chosen, name))
        return self._known[name]

    def _coded(self, chosen: Selection, name: tuple[str, ...]) -> list[Any]:
        return [
            self._text(chosen.title),
            self._all(chosen.conditions),
            self._all(chosen.within),
            self._text(_trimmed(name)),
        ]

    def _all(self, conditions: Iterable[Condition]) -> list[int]:
        return [self._conditions.setdefault(c, len(self._conditions)) for c in conditions]

    def _text(self, text: Text) -> list[int]:
        made = []
        for part in text:
            key: str | tuple[str] = part if isinstance(part, str) else (part.text,)
            made.append(self._strings.setdefault(key, len(self._strings)))
        return made

    def data(self) -> dict[str, Any]:
        """All selections: parts of text and conditions once each; for each selection the places of those
        of its title, its conditions, those of the whole, and its name.
        """
        return {
            "strings": list(self._strings),
            "conditions": list(self._conditions),
            "selections": self._made,
        }


def _trimmed(name: tuple[str, ...]) -> tuple[str, ...]:
    """A statistic and its key without the empty fields at the end."""
    filled = [i for i, part in enumerate(name) if part]
    return name[: filled[-1] + 1] if filled else ()
