"""The labels that changed, response by response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from voirdire.grid import NOT_THERE, codes_of, response_names
from voirdire.labels import Labels
from voirdire.questions import natural
from voirdire.scene import Scene
from voirdire.stats.comparison import HOW_ENDED

COLUMNS = ("response", "line", "cluster", "old", "new", "gold")


def changes_of(labels: Labels, scene: Scene, old: str, new: str) -> Iterator[Mapping[str, str]]:
    """One record a label that differs, in the order of the responses.

    What gave no label stands as how its call ended, in ``⟨ ⟩``: no class looks like that by accident.
    """
    names = response_names(labels)
    order = np.empty(len(names), dtype=np.int64)
    order[sorted(range(len(names)), key=lambda i: (natural(str(names[i])), str(names[i])))] = (
        np.arange(len(names))
    )
    cluster = _clusters(labels, len(names))
    if scene.grid is not None:
        grid = scene.grid
        a, b = scene.places[new], scene.places[old]
        codes, outcomes = grid.codes, grid.outcomes
        differ = np.flatnonzero((codes[:, a] != codes[:, b]) | (outcomes[:, a] != outcomes[:, b]))
        g = scene.places[scene.gold] if scene.gold else -1

        def said(row: int, place: int) -> str:
            if place < 0 or outcomes[row, place] == NOT_THERE:
                return ""
            code = int(codes[row, place])
            return scene.classes[code] if code >= 0 else _ended(int(outcomes[row, place]))

        for row in differ[np.argsort(order[differ], kind="stable")].tolist():
            yield {
                "response": str(names[row]),
                "line": "",
                "cluster": cluster[row],
                "old": said(row, b),
                "new": said(row, a),
                "gold": said(row, g),
            }
        return
    bank = scene.bank
    assert bank is not None
    a, b = bank.places[new], bank.places[old]
    g = bank.places[scene.gold] if scene.gold else -1
    there = bank.line >= 0
    unlike = (bank.verdicts[:, a] != bank.verdicts[:, b]) & there
    rows, positions = np.nonzero(unlike)
    by_name = np.argsort(order[rows], kind="stable")
    for row, position in zip(rows[by_name].tolist(), positions[by_name].tolist(), strict=True):

        def verdict(place: int, row: int = row, position: int = position) -> str:
            if place < 0 or bank.states[row, place] == NOT_THERE:
                return ""
            given = int(bank.verdicts[row, place, position])
            return str(given) if given >= 0 else _ended(int(bank.states[row, place]))

        yield {
            "response": str(names[row]),
            "line": bank.lines[int(bank.line[row, position])],
            "cluster": cluster[row],
            "old": verdict(b),
            "new": verdict(a),
            "gold": verdict(g),
        }


def _ended(outcome: int) -> str:
    word = HOW_ENDED[outcome] if HOW_ENDED[outcome] != "label" else "missing"
    return f"⟨{word.replace('_', ' ')}⟩"


def _clusters(labels: Labels, responses: int) -> list[str]:
    values, codes = codes_of(labels.frame["cluster"])
    first = np.zeros(responses, dtype=np.int64)
    first[labels.response_codes[::-1]] = codes[::-1]
    return [values[c] if c >= 0 else "" for c in first.tolist()]
