"""A grader that hardly uses a class which others use on the same responses, and the mirror of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.corroboration import (
    MOST_GRADERS,
    Comparison,
    Reading,
    Rule,
    holm,
    testable_classes,
)
from voirdire.document import Kind, cell, display, display_interval
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, Strength
from voirdire.scene import Scene
from voirdire.wording import Name, Text, counted, listed, number, percent, say, times

ALPHA = 0.05
CROWDED = (
    " More than half of the graders are on this side of the class: the others may overuse it as well "
    "as these miss it."
)
ALMOST_ALL = 0.8  # of the labels that moved: from here on they went to one place


def run(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    yield from _not_in_range(scene)
    if scene.ordered and len(scene.scale) > 4:
        yield _not_applicable(
            "Scales of more than four ordered classes are read by their ends and their cumulative "
            "shares instead."
        )
        return
    classes = testable_classes(scene)
    if not scene.classes:
        yield _not_applicable("Nobody gave a label.")
        return
    if not classes:
        yield _not_applicable(
            "The labels are numbers of more than four values. If they are ordered classes, name "
            "them with --scale, lowest first."
        )
        return
    if len(scene.panel) > MOST_GRADERS and not scene.gold:
        yield _not_applicable(
            f"With more than {MOST_GRADERS} graders and no gold the rule is not applied; their class "
            "shares are in the report."
        )
        return
    if len(classes) < 2:
        yield _not_applicable("All labels are of one class.")
        return
    rule = Rule(scene, evidence.estimates)
    readings = [r for g in scene.panel for c in classes if (r := rule.read(g, c)) is not None]
    adjusted = dict(
        zip(
            ((r.grader, r.class_) for r in readings),
            holm([r.p if r.verdict != "none" else None for r in readings]),
            strict=True,
        )
    )
    tested = sum(p is not None for p in adjusted.values())
    told: list[Reading] = []
    crowded = _crowded(scene, readings)
    for reading in readings:
        if reading.verdict in ("found", "two", "small"):
            if mirrored(scene, reading, told):
                continue
            told.append(reading)
            found = _finding(
                scene, rule, reading, adjusted[reading.grader, reading.class_], tested, evidence
            )
            if reading.verdict == "found" and reading.class_ in crowded:
                found = replace(found, sentence=(*found.sentence, CROWDED))
            yield found
    yield from _inflated(scene, rule, classes, told)
    if not any(r.verdict != "none" for r in readings):
        yield _nobody(scene)
        return
    for class_ in classes:
        of_class = [r for r in readings if r.class_ == class_]
        if of_class and all(r.verdict in ("clear", "rare", "none") for r in of_class):
            yield _nothing_seen(scene, class_, of_class)


def _crowded(scene: Scene, readings: Sequence[Reading]) -> set[str]:
    """The classes on which more than half of the graders are flagged, where nothing is gold."""
    if scene.gold:
        return set()
    by_class: dict[str, list[bool]] = {}
    for reading in readings:
        by_class.setdefault(reading.class_, []).append(reading.verdict == "found")
    return {c for c, found in by_class.items() if 2 * sum(found) > len(found)}


def _not_applicable(why: str) -> Finding:
    return Finding(
        code="class_collapse",
        state=State.NOT_APPLICABLE,
        sentence=(f"The collapse rule is not applied. {why}",),
    )


def _nobody(scene: Scene) -> Finding:
    if len(scene.panel) < 2 and not scene.gold:
        why = "there is one grader and no gold, so nothing to compare its counts with"
    elif any(scene.unread_share(g) > 0.2 for g in scene.panel):
        why = "too few graders could be read on enough of the same responses"
    else:
        why = "no two graders that may speak about each other share responses"
    return Finding(
        code="class_collapse",
        state=State.CANNOT_TELL,
        sentence=(f"Whether a grader misses a class cannot be told: {why}.",),
    )


def _not_in_range(scene: Scene) -> Iterable[Finding]:
    for grader in scene.graders:
        lacking = [c for c in scene.classes if grader.range and c not in grader.range]
        if grader.name == scene.gold or not lacking:
            continue
        yield Finding(
            code="class_not_in_range",
            state=State.FOUND,
            grader=grader.name,
            class_=lacking[0] if len(lacking) == 1 else "",
            sentence=say(
                "{grader} cannot give {classes} (its declared range), so every response of "
                "{them} ends in another class. It is not flagged for that, and says nothing about "
                "others there.",
                grader=Name(grader.name),
                classes=listed(lacking),
                them="that class" if len(lacking) == 1 else "those classes",
            ),
            weight=1.0,
        )


def mirrored(scene: Scene, reading: Reading, told: Sequence[Reading]) -> bool:
    """Whether, with two classes, an earlier reading already says this the other way round."""
    if len(testable_classes(scene)) > 2 or reading.deciding is None:
        return False
    return any(
        earlier.class_ != reading.class_
        and (
            earlier.grader == reading.grader
            or (
                earlier.verdict != "found"
                and earlier.deciding is not None
                and earlier.deciding.other == reading.grader
                and earlier.grader == reading.deciding.other
            )
        )
        for earlier in told
    )


def ratio_text(estimate: Estimate) -> str:
    """A ratio with its interval: ``0.165 [0.110, 0.247]``."""
    shown = cell(estimate, Kind.RATIO)
    interval = display_interval(shown)
    return display(shown) + (f" {interval}" if interval else "")


def beside(comparisons: Sequence[Comparison]) -> Text:
    """``A gives it 110 times and B 152 times``."""
    parts: list[str | Name] = []
    for i, comparison in enumerate(comparisons):
        if i:
            parts.append(" and ")
        parts.extend(
            say(
                "{other} gives it {n} times" if not i else "{other} {n} times",
                other=Name(comparison.other),
                n=counted(comparison.others),
            )
        )
    return tuple(parts)


def _finding(
    scene: Scene,
    rule: Rule,
    reading: Reading,
    adjusted: float | None,
    tested: int,
    evidence: Evidence,
) -> Finding:
    deciding = reading.deciding
    assert deciding is not None
    own = "never gives" if deciding.own == 0 else f"gives {{class_}} {counted(deciding.own)} times"
    same_own = len({c.own for c in reading.against}) == 1
    lead = say(
        ("{grader} never gives {class_}" if deciding.own == 0 else "{grader} " + own)
        + " where {beside} on the same responses",
        grader=Name(reading.grader),
        class_=Name(reading.class_),
        beside=beside(reading.against),
    )
    if scene.counts is not None:
        lead = say(
            ("{grader} never gives {class_}" if deciding.own == 0 else "{grader} " + own)
            + " where {beside}",
            grader=Name(reading.grader),
            class_=Name(reading.class_),
            beside=beside(reading.against),
        )
    elif not same_own:
        lead = (*lead, " (each on what both labelled)")
    ratio = f" (ratio {ratio_text(deciding.ratio)}"
    ratio += " to gold)." if scene.gold else " to the second of these)."
    if reading.verdict == "two":
        ratio = f" (ratio {ratio_text(deciding.ratio)})."
    sentence: Text = (*lead, ratio)
    strength = Strength.NONE
    if reading.verdict == "found":
        state = State.FOUND
        strength = Strength.LIKELY
        if scene.counts is not None:
            strength = Strength.INDICATIVE
            sentence = (*sentence, " Counts alone cannot say more.")
        elif adjusted is not None and adjusted < ALPHA:
            strength = Strength.CERTAIN
        sentence = (*sentence, *where_it_went(scene, reading), *_holds(rule, reading))
        if strength is Strength.CERTAIN and adjusted is not None:
            sentence = (
                *sentence,
                f" One-sided cluster-robust p {_p(adjusted)} after Holm over {tested} cells.",
            )
        elif scene.counts is None and adjusted is not None:
            sentence = (
                *sentence,
                f" The cluster-robust test does not reject at 5 % after Holm over {tested} cells.",
            )
    elif reading.verdict == "two":
        state = State.CANNOT_TELL
        sentence = (
            *sentence,
            " This is a difference between two graders and no more: nothing says which of them is off.",
            *where_it_went(scene, reading),
        )
    else:
        state = State.CANNOT_TELL
        sentence = (
            *sentence,
            f" With fewer than {scene.options.collapse_base} such labels the rule does not decide.",
        )
    return Finding(
        code="class_collapse",
        state=state,
        strength=strength,
        grader=reading.grader,
        other=deciding.other,
        class_=reading.class_,
        sentence=sentence,
        evidence=(*(c.ratio for c in reading.against), *_moves_evidence(evidence, scene, reading)),
        weight=deciding.others - deciding.own,
        next_step=say(
            "Do not report the rate of {class_} from {grader} alone; print the class counts of every "
            "grader beside it.",
            class_=Name(reading.class_),
            grader=Name(reading.grader),
        )
        if state is State.FOUND
        else (),
    )


def _p(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"= {number(p, 4)}"


def _moves_evidence(evidence: Evidence, scene: Scene, reading: Reading) -> tuple[Estimate, ...]:
    found: list[Estimate] = []
    for standard in scene.standards:
        key = {
            "grader": reading.grader,
            "other": standard,
            "class_": reading.class_,
            "slice": scene.slice,
        }
        for statistic in ("kept", "moved", "neighbour_share"):
            found.extend(evidence.estimates.of(statistic, **key))
    return tuple(found)


def where_it_went(scene: Scene, reading: Reading) -> Text:
    """Where the other's labels of the class went under this grader: one neighbour, or scattered."""
    if scene.grid is None or reading.deciding is None:
        return ()
    standard = next((s for s in scene.standards if s != reading.grader), reading.deciding.other)
    pairs = scene.pair_tally(reading.grader, standard)
    if not pairs.count:
        return ()
    place = scene.classes.index(reading.class_)
    column = pairs.total[:, place]
    of, kept = float(column.sum()), float(column[place])
    away = of - kept
    if not away:
        return ()
    ranked = sorted(
        ((float(n), c) for c, n in zip(scene.classes, column, strict=True) if c != reading.class_),
        key=lambda x: -x[0],
    )
    went: list[str | Name] = []
    for i, (n, class_) in enumerate(x for x in ranked if x[0]):
        went += [", " if i else "", f"{counted(n)} to ", Name(class_)]
    sentence = say(
        " Of the {of} responses that {standard} calls {class_} it keeps {kept}: {went}",
        of=counted(of),
        standard=Name(standard),
        class_=Name(reading.class_),
        kept=counted(kept),
        went=tuple(went),
    )
    at = scene.scale.index(reading.class_) if reading.class_ in scene.scale else -1
    between = len(scene.scale) == 3 and at == 1  # every other class is a neighbour
    if scene.ordered and len(scene.scale) > 2 and at >= 0 and not between:
        near = sum(float(column[i]) for i in range(len(scene.scale)) if abs(i - at) == 1)
        most, to = ranked[0]
        if near / away >= ALMOST_ALL:
            # Between two classes every move is to a neighbour, which says nothing.
            pattern = "" if 0 < at < len(scene.scale) - 1 else ", a collapse onto the neighbour"
        elif most / away >= ALMOST_ALL:
            return (*sentence, "; almost all of the moved went to ", Name(to), ".")
        else:
            pattern = ", a scatter"
        return (
            *sentence,
            f"; {percent(near / away, 0)} of the moved went one step on the scale{pattern}.",
        )
    return (*sentence, ".")


def _holds(rule: Rule, reading: Reading) -> Text:
    """In how many panels without one other grader the finding still stands."""
    if rule.scene.gold:
        return ()
    others = [c.other for c in reading.comparisons]
    held = 0
    for other in others:
        again = rule.read(reading.grader, reading.class_, without=other)
        held += again is not None and again.verdict == "found"
    why = ", where a single comparison is left" if len(others) == 2 else ""
    return (f" It holds in {held} of {len(others)} panels without one other grader{why}.",)


def _inflated(
    scene: Scene, rule: Rule, classes: Sequence[str], told: Sequence[Reading]
) -> Iterable[Finding]:
    cells = [(g, c) for g in scene.panel for c in classes]
    comparisons = {(g, c): rule.inflated(g, c) for g, c in cells}
    p_values = [
        comparisons[cell_][0].p_mirror if scene.gold and comparisons[cell_] else None
        for cell_ in cells
    ]
    # Holm counts every cell that the rule looked at, not only those that stand out.
    looked = sum(bool(rule.comparisons(g, c)) for g, c in cells)
    adjusted = holm([*p_values, *[1.0] * (looked - sum(p is not None for p in p_values))])
    for (grader, class_), p in zip(cells, adjusted, strict=False):
        above = comparisons[grader, class_]
        if not above:
            continue
        if len(classes) == 2 and any(r.grader == grader for r in told):
            continue  # with two classes this is the collapse of the other one, already told
        ranked = sorted(above, key=lambda c: (-c.others, c.other))
        sentence = say(
            "{grader} gives {class_} {own} times where {beside}: more than {factor} times as often.",
            grader=Name(grader),
            class_=Name(class_),
            own=counted(ranked[0].own),
            beside=beside(ranked[:2]),
            factor=times(1 / rule.below).rstrip("0").rstrip("."),
        )
        if scene.gold:
            state = State.FOUND
            strength = Strength.CERTAIN if p is not None and p < ALPHA else Strength.LIKELY
            if scene.counts is not None:
                strength = Strength.INDICATIVE
        else:
            state, strength = State.CANNOT_TELL, Strength.NONE
            sentence = (
                *sentence,
                " Without gold this is a difference: the others may miss the class as well as this "
                "grader may overuse it.",
            )
        yield Finding(
            code="class_inflation",
            state=state,
            strength=strength,
            grader=grader,
            other=ranked[0].other,
            class_=class_,
            sentence=sentence,
            evidence=tuple(c.ratio for c in ranked[:2]),
            weight=ranked[0].own - ranked[0].others,
        )


def _nothing_seen(scene: Scene, class_: str, readings: Sequence[Reading]) -> Finding:
    """No grader stands out on a class: clear only where a collapse would have been seen."""
    base, below = scene.options.collapse_base, scene.options.collapse_below
    spoken = [r for r in readings if r.verdict == "clear" and r.deciding is not None]
    if not spoken:
        return Finding(
            code="class_collapse",
            state=State.CANNOT_TELL,
            class_=class_,
            sentence=say(
                "Whether a grader misses {class_} cannot be seen: the rule needs {base} such labels of "
                "{whom}, and {have}.",
                class_=Name(class_),
                base=base,
                whom="gold" if scene.gold else "two others",
                have=_too_few(scene, readings),
            ),
        )
    lowest = min(spoken, key=lambda r: _ratio(r.deciding))
    deciding = lowest.deciding
    assert deciding is not None
    interval = deciding.ratio.interval
    sentence = say(
        "No grader is flagged for {class_}: the lowest is {grader} with {own} beside {others} of "
        "{other} ({ratio}).",
        class_=Name(class_),
        grader=Name(lowest.grader),
        own=counted(deciding.own),
        others=counted(deciding.others),
        other=Name(deciding.other),
        ratio=f"ratio {ratio_text(deciding.ratio)}",
    )
    open_: Text = ()
    if deciding.others < base:
        open_ = (
            f" The rule needs {base} labels beside it, so a collapse would not have been flagged.",
        )
    elif interval is None or interval.low < below:
        why = deciding.ratio.no_interval or "there are too few labels or clusters to tell"
        open_ = (f" That does not rule out a ratio below {times(below)}: {why}.",)
    return Finding(
        code="class_collapse",
        state=State.CANNOT_TELL if open_ else State.CLEAR,
        class_=class_,
        sentence=(*sentence, *open_),
        evidence=(deciding.ratio,),
    )


def _ratio(comparison: Comparison | None) -> float:
    if comparison is None or not comparison.others:
        return float("inf")
    return comparison.own / comparison.others


def _too_few(scene: Scene, readings: Sequence[Reading]) -> Text:
    """Who gives how many labels of a class that is too rare for the rule."""
    counts: dict[str, float] = {}
    for reading in readings:
        for comparison in reading.comparisons:
            counts[comparison.other] = max(counts.get(comparison.other, 0.0), comparison.others)
    if not counts:
        return ("nobody could be compared",)
    if scene.gold:
        return (f"gold has {counted(max(counts.values()))}",)
    many = [g for g, n in counts.items() if n >= scene.options.collapse_base]
    if len(many) == 1:
        return say(
            "only {grader} gives so many ({n})", grader=Name(many[0]), n=counted(counts[many[0]])
        )
    return (f"the most that anyone gives is {counted(max(counts.values()))}",)


CHECK = Check(
    name="class_collapse",
    codes={
        "class_collapse": "A grader gives a class far less often than gold, or than two others, on the same responses.",
        "class_inflation": "A grader gives a class far more often than gold, or than all but one of the others.",
        "class_not_in_range": "A grader cannot give a class that others give (declared with --range).",
    },
    run=run,
    would_miss=(
        "A class that all graders miss alike; a class collapsed to more than the threshold; a class "
        "with fewer labels than the base; a collapse in one part of the responses (see hidden_in_pool)."
    ),
    rank=10,
    flags=True,
    uses=(
        Consequence(
            code="class_collapse",
            use="report_rate",
            effect=Effect.FORBIDS,
            because="It gives this class far less often than others do on the same responses.",
            where="same",
        ),
        Consequence(
            code="class_collapse",
            use="report_rate",
            effect=Effect.CONDITIONS,
            because="Print the class counts of every grader beside it: one of its classes is hardly given.",
            where="part",
        ),
        Consequence(
            code="class_collapse",
            use="report_rate",
            effect=Effect.CONDITIONS,
            because="Print the class counts of every grader beside it: labels of a class that is hardly given went elsewhere, and this rate may hold some of them.",
            where="other",
        ),
        Consequence(
            code="class_collapse",
            use="compare_models",
            effect=Effect.FORBIDS,
            because="It gives this class far less often than others do on the same responses.",
            where="same",
        ),
        Consequence(
            code="class_collapse",
            use="compare_models",
            effect=Effect.OPENS,
            because="Labels of a class that it hardly gives went elsewhere, more of them for a model that calls for it more often: whether the order of models holds was not measured.",
            where="part",
        ),
        Consequence(
            code="class_collapse",
            use="compare_models",
            effect=Effect.OPENS,
            because="Labels of a class that it hardly gives went elsewhere, more of them for a model that calls for it more often: whether the order of models holds was not measured.",
            where="other",
        ),
        Consequence(
            code="class_collapse",
            use="stand_for_gold",
            effect=Effect.FORBIDS,
            because="A class that others give on the same responses hardly comes from it.",
        ),
        Consequence(
            code="class_collapse",
            use="report_rate",
            effect=Effect.OPENS,
            because="Whether it misses this class cannot be told.",
            state=State.CANNOT_TELL,
            where="same",
        ),
        Consequence(
            code="class_collapse",
            use="report_rate",
            effect=Effect.CONDITIONS,
            because="Print its class counts beside it: whether one of its classes is missed cannot be told.",
            state=State.CANNOT_TELL,
            where="part",
        ),
        Consequence(
            code="class_collapse",
            use="compare_models",
            effect=Effect.OPENS,
            because="Whether it misses this class cannot be told.",
            state=State.CANNOT_TELL,
            where="same",
        ),
        Consequence(
            code="class_collapse",
            use="report_rate",
            effect=Effect.OPENS,
            because="The collapse rule does not apply here.",
            state=State.NOT_APPLICABLE,
        ),
        Consequence(
            code="class_collapse",
            use="report_rate",
            effect=Effect.ALLOWS,
            because="On this class no grader stands out.",
            state=State.CLEAR,
            where="same",
        ),
        Consequence(
            code="class_inflation",
            use="report_rate",
            effect=Effect.FORBIDS,
            because="It gives this class far more often than others do on the same responses.",
            where="same",
        ),
        Consequence(
            code="class_inflation",
            use="compare_models",
            effect=Effect.FORBIDS,
            because="It gives this class far more often than others do on the same responses.",
            where="same",
        ),
        Consequence(
            code="class_inflation",
            use="stand_for_gold",
            effect=Effect.FORBIDS,
            because="It gives a class far more often than gold.",
        ),
        Consequence(
            code="class_inflation",
            use="report_rate",
            effect=Effect.OPENS,
            because="It gives this class far more often than others, and nothing says who is off.",
            state=State.CANNOT_TELL,
            where="same",
        ),
        Consequence(
            code="class_not_in_range",
            use="stand_for_gold",
            effect=Effect.FORBIDS,
            because="There is a class that it cannot give.",
        ),
        Consequence(
            code="class_not_in_range",
            use="report_rate",
            effect=Effect.CONDITIONS,
            because="Say that it cannot give one of the classes, so that such responses are in another.",
            where="other",
        ),
    ),
)
