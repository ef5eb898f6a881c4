"""The contract of a format: which suffixes it writes and how it turns a document into bytes.

Below it, what every readable format does alike: the words of a state, the numbered reasons under a
table, the sections without a second list of findings, and one piece of evidence in one line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voirdire.document import (
    Block,
    Document,
    FindingBlock,
    Heading,
    Table,
    cell,
    display,
    display_edge,
    display_interval,
)
from voirdire.estimand import Describes
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State
from voirdire.wording import Name, Part, Text, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One output format. ``render`` gives the whole file: same document, same bytes.

    ``beside`` gives files that belong next to it, by what stands in the place of its suffix
    (``.responses.json`` beside ``audit.html`` is ``audit.responses.json``), and none for most documents.
    ``keeps`` are all that it may give, and each starts with the same bytes up to its first comma.
    """

    name: str
    suffixes: tuple[str, ...]
    render: Callable[[Document], bytes]
    title: str = ""
    beside: Callable[[Document], Mapping[str, bytes]] | None = None
    keeps: tuple[str, ...] = ()


# The sign beside a state's word, so that neither colour nor shape alone carries it. No tick for
# "clear": that a grader was not flagged does not make it right.
STATE_WORDS: Mapping[State, str] = {
    State.FOUND: "FOUND",
    State.CANNOT_TELL: "CANNOT TELL",
    State.NOT_APPLICABLE: "NOT APPLICABLE",
    State.CLEAR: "CLEAR",
}
STATE_SIGNS: Mapping[State, str] = {
    State.FOUND: "▲",
    State.CANNOT_TELL: "?",
    State.NOT_APPLICABLE: "–",
    State.CLEAR: "○",
}
LOUD = (State.FOUND, State.CANNOT_TELL)


def reasons(table: Table) -> dict[str, str]:
    """The reasons that stand in a table's cells, each with the letter of its footnote.

    Letters, because a raised digit beside a number reads as a power.
    """
    found = dict[str, str]()
    for row in table.rows:
        for entry in row:
            if entry.reason:
                found.setdefault(entry.reason, _letter(len(found)))
    return found


def _letter(place: int) -> str:
    """The place as ``a`` to ``z``, then ``aa``, as an ordered list counts in letters."""
    more, last = divmod(place, 26)
    return (_letter(more - 1) if more else "") + chr(ord("a") + last)


def sections(document: Document) -> list[tuple[Heading, list[Block]]]:
    """The sections of a document without one that only repeats the findings that stand on top."""
    known = {id(f) for f in document.findings}
    return [
        (heading, blocks)
        for heading, blocks in document.sections()
        if not all(isinstance(b, FindingBlock) and id(b.finding) in known for b in blocks)
    ]


def counted_states(findings: tuple[Finding, ...]) -> str:
    """How many findings there are of each state, in words: ``3 found, 1 cannot tell, 12 clear``."""
    numbers = {state: sum(f.state is state for f in findings) for state in STATE_WORDS}
    return ", ".join(
        f"{number:,} {STATE_WORDS[state].lower()}" for state, number in numbers.items() if number
    )


def evidence_keys(estimate: Estimate) -> list[tuple[str, str]]:
    """The keys of an estimate that are filled, each with the word that introduces it."""
    key = estimate.key
    pairs = [
        ("", key.grader),
        ("against", key.other),
        ("class", key.class_),
        ("to", key.to_class),
        ("line", key.line),
        ("cut", key.cut),
        ("where", key.slice),
    ]
    return [(word, value) for word, value in pairs if value]


def evidence_text(estimate: Estimate) -> Text:
    """One piece of evidence as one sentence part: what, of whom, how much, from how many."""
    parts = list[Part]([estimate.estimand.title])
    for i, (word, value) in enumerate(evidence_keys(estimate)):
        # A coefficient of the bank is no one's: it stands on somebody's verdicts.
        of_bank = estimate.estimand.describes is Describes.BANK
        first = " on the verdicts of " if of_bank and value == estimate.key.grader else " of "
        parts += [", " if i else first, f"{word} " if word else "", Name(value)]
    shown = cell(estimate)
    interval = display_interval(shown)
    edge = display_edge(estimate)
    parts.append(
        f": {display(shown)}" + (f" {interval}" if interval else "") + (f", {edge}" if edge else "")
    )
    rests = []
    if estimate.n is not None:
        rests.append(f"n = {counted(estimate.n)}")
    if estimate.clusters is not None:
        rests.append(
            f"{counted(estimate.clusters)} {'cluster' if estimate.clusters == 1 else 'clusters'}"
        )
    if rests:
        parts.append(f" ({', '.join(rests)})")
    if shown.reason:
        parts.append(f" ({shown.reason})")
    return tuple(parts)


def option_text(value: Any) -> str:
    """An option's value as a person would write it: lists with commas, pairs with ``=``."""
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={_inner(v)}" for k, v in value.items())
    if isinstance(value, tuple | list):
        return ", ".join(
            "=".join(_inner(v) for v in _named(item))
            if isinstance(item, tuple | list)
            else option_text(item)
            for item in value
        )
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _named(item: Sequence[Any]) -> Sequence[Any]:
    """A pair; without its first half where that is an empty name of a list."""
    return item[1:] if item[0] == "" and isinstance(item[-1], tuple | list) else item


def _inner(value: Any) -> str:
    """A value inside a pair; a list there is joined with ``+``, as on the command line."""
    if isinstance(value, tuple | list):
        return "+".join(option_text(v) for v in value)
    return option_text(value)


def options_given(document: Document) -> list[tuple[str, str]]:
    """The options of a document that hold anything, as pairs of name and text."""
    return [
        (name, option_text(value))
        for name, value in document.options.items()
        if value is not None and value != "" and value is not False and option_text(value)
    ]
