"""A collapse inside one part of the responses that the pooled counts do not show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.corroboration import (
    MOST_GRADERS,
    Comparison,
    Reading,
    Rule,
    holm,
    testable_classes,
)
from voirdire.finding import Finding, State, Strength
from voirdire.scene import Scene
from voirdire.wording import Name, Text, counted, often, say, times

ALPHA = 0.05
SHOWN = 4


@dataclass(frozen=True)
class _Cell:
    scene: Scene
    reading: Reading
    p: float | None


def run(evidence: Evidence) -> Iterable[Finding]:
    whole = evidence.whole
    classes = testable_classes(whole)
    if not evidence.slices or len(classes) < 2:
        return
    if len(whole.panel) > MOST_GRADERS and not whole.gold:
        return
    rule = Rule(whole, evidence.estimates)
    # "Hidden" needs a pool that looks fine: a cell that the pooled rule could not clear is not hidden.
    clear_in_pool = {
        (g, c)
        for g in whole.panel
        for c in classes
        if (reading := rule.read(g, c)) is not None and reading.verdict == "clear"
    }
    cells: list[tuple[Scene, Reading]] = []
    for scene in evidence.slices:
        inside = Rule(scene, evidence.estimates)
        cells += [
            (scene, reading)
            for grader in scene.panel
            for class_ in classes
            if (reading := inside.read(grader, class_)) is not None and reading.verdict != "none"
        ]
    adjusted = holm([reading.p for _, reading in cells])
    tested = len(cells)
    told: dict[tuple[str, str], list[_Cell]] = {}
    for (scene, reading), p in zip(cells, adjusted, strict=True):
        if reading.verdict not in ("found", "two"):
            continue
        if (reading.grader, reading.class_) not in clear_in_pool:
            continue
        told.setdefault((reading.grader, reading.class_), []).append(_Cell(scene, reading, p))
    told = _without_mirrors(told, whole)
    for (grader, class_), found in told.items():
        asked = [c for c in found if not c.scene.exploratory]
        pooled = {c.other: c for c in rule.comparisons(grader, class_)}
        yield _finding(whole, grader, class_, asked or found, tested, pooled)
    if not told and cells:
        yield Finding(
            code="hidden_in_pool",
            state=State.CLEAR,
            sentence=(
                f"No class collapses inside one part of the responses alone ({tested:,} cells looked at)."
                " Parts with few labels of a class cannot show it.",
                *_lowest(cells),
            ),
        )


def _lowest(cells: list[tuple[Scene, Reading]]) -> Text:
    """The lowest ratio that was seen and not flagged, of cells with enough labels."""
    seen = [
        (deciding.own / deciding.others, scene, reading)
        for scene, reading in cells
        if reading.verdict == "clear"
        and (deciding := reading.deciding) is not None
        and deciding.others >= scene.options.collapse_base
    ]
    if not seen:
        return ()
    ratio, scene, reading = min(seen, key=lambda x: (x[0], x[1].slice, x[2].grader, x[2].class_))
    deciding = reading.deciding
    assert deciding is not None
    return say(
        " The lowest: {class_} in {slice}, {own} of {grader} beside {others} of {other} (ratio {ratio}).",
        class_=Name(reading.class_),
        slice=Name(scene.slice),
        own=counted(deciding.own),
        grader=Name(reading.grader),
        others=counted(deciding.others),
        other=Name(deciding.other),
        ratio=times(ratio),
    )


def _without_mirrors(
    told: dict[tuple[str, str], list[_Cell]], whole: Scene
) -> dict[tuple[str, str], list[_Cell]]:
    """With two classes the low count of one grader is the high count of the other: said once."""
    if len(testable_classes(whole)) > 2:
        return told
    kept: dict[tuple[str, str], list[_Cell]] = {}
    for key, cells in sorted(told.items(), key=lambda item: min(_ratio(c) for c in item[1])):
        seen = {(c.scene.slice) for other in kept.values() for c in other}
        new = [c for c in cells if c.scene.slice not in seen]
        if new:
            kept[key] = new
    return kept


def _ratio(cell: _Cell) -> float:
    deciding = cell.reading.deciding
    assert deciding is not None
    return deciding.own / deciding.others


def _finding(
    whole: Scene,
    grader: str,
    class_: str,
    cells: list[_Cell],
    tested: int,
    pooled: Mapping[str, Comparison],
) -> Finding:
    cells = sorted(cells, key=_ratio)
    exploratory = cells[0].scene.exploratory
    counts_only = whole.counts is not None
    sure = [
        c
        for c in cells
        if c.reading.verdict == "found" and (counts_only or (c.p is not None and c.p < ALPHA))
    ]
    state = State.FOUND if sure else State.CANNOT_TELL
    strength = Strength.NONE
    unsure = len(cells) - len(sure) if sure else 0
    if sure:
        # Only the parts that stand are told; the others are counted.
        strength = Strength.INDICATIVE if counts_only or exploratory else Strength.LIKELY
        cells = sure
    where: list[str | Name] = []
    for i, one in enumerate(cells[:SHOWN]):
        deciding = one.reading.deciding
        assert deciding is not None
        where += [
            "; " if i else "",
            Name(one.scene.slice),
            f" {counted(deciding.own)} beside {counted(deciding.others)} of ",
            Name(deciding.other),
            f" (ratio {times(_ratio(one))})",
        ]
    if len(cells) > SHOWN:
        where.append(f"; and {len(cells) - SHOWN} more")
    parts = "one part of the responses" if len(cells) == 1 else f"{len(cells)} parts"
    first = cells[0].reading.deciding
    if first is not None and all(c.reading.verdict == "two" for c in cells):
        # Between two graders nobody is the one that is off.
        sentence = say(
            "Pooled, {grader} gives {class_} {own} and {other} {others}; inside {parts} the two are "
            "further apart: {where}.",
            grader=Name(grader),
            other=Name(first.other),
            own=often(pooled[first.other].own),
            others=often(pooled[first.other].others),
            class_=Name(class_),
            parts=parts,
            where=tuple(where),
        )
    else:
        sentence = say(
            "Pooled, {grader} gives {class_} often enough; inside {parts} it hardly does: {where}.",
            grader=Name(grader),
            class_=Name(class_),
            parts=parts,
            where=tuple(where),
        )
    tail: Text
    if all(c.reading.verdict == "two" for c in cells):
        tail = (" This is a difference between two graders and no more.",)
    elif not sure:
        tail = (f" After Holm over {tested:,} cells it could be chance.",)
    else:
        stand = "That stands" if len(cells) == 1 else "These stand"
        tail = (f" {stand} after Holm over {tested:,} cells.",)
        if counts_only:
            tail = (" Counts alone cannot say more.",)
        if unsure:
            parts = "part looks" if unsure == 1 else "parts look"
            tail = (*tail, f" {unsure} more {parts} alike but could be chance.")
    if exploratory:
        tail = (
            *tail,
            f" Nobody asked for these parts: exploratory, {tested:,} cells looked at. "
            "Confirm it on new responses, with --by.",
        )
    return Finding(
        code="hidden_in_pool",
        state=state,
        strength=strength,
        grader=grader,
        other=cells[0].reading.deciding.other if cells[0].reading.deciding else "",
        class_=class_,
        slice=cells[0].scene.slice,
        exploratory=exploratory,
        sentence=(*sentence, *tail),
        evidence=tuple(c.ratio for one in cells for c in one.reading.against),
        weight=max(
            (c.reading.deciding.others - c.reading.deciding.own)
            for c in cells
            if c.reading.deciding
        ),
    )


CHECK = Check(
    name="hidden_in_pool",
    codes={
        "hidden_in_pool": "Inside one part of the responses a grader hardly uses a class that it uses in the pool."
    },
    run=run,
    would_miss=(
        "Parts that no tag tells apart; tags with more than 20 values or of numbers, unless named "
        "with --by; parts with fewer labels of the class than the base."
    ),
    rank=20,
    uses=(
        Consequence(
            code="hidden_in_pool",
            use="report_part",
            effect=Effect.FORBIDS,
            because="Inside a part of the responses it hardly gives a class that it gives in the pool.",
        ),
        Consequence(
            code="hidden_in_pool",
            use="compare_models",
            effect=Effect.CONDITIONS,
            because="Look at each part of the responses by itself: inside one it hardly gives a class.",
        ),
        Consequence(
            code="hidden_in_pool",
            use="report_part",
            effect=Effect.OPENS,
            because="Inside some parts it hardly gives a class; this was looked at unasked and may be chance.",
            state=State.CANNOT_TELL,
        ),
        Consequence(
            code="hidden_in_pool",
            use="report_part",
            effect=Effect.ALLOWS,
            because="No part that the tags tell apart hides a class that is hardly given.",
            state=State.CLEAR,
        ),
    ),
)
