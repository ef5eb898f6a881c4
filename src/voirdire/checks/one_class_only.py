"""Graders that use one class throughout: their agreement says nothing, and kappa is not defined."""

from __future__ import annotations

from collections.abc import Iterable

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.finding import Finding, State, Strength
from voirdire.wording import Name, counted, listed, say

FEWEST = 5  # labels below which one class only is no news


def run(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    only: dict[str, tuple[str, float]] = {}
    spoken = 0
    for grader in scene.names:
        counts = evidence.estimates.of("label_count", grader=grader, slice="")
        used = [e for e in counts if e.number]
        unknown = any(e.number is None for e in counts)
        total = sum(e.number or 0 for e in counts)
        spoken += total > 0
        if len(used) == 1 and not unknown and total >= FEWEST:
            only[grader] = (used[0].key.class_, total)
    if not only:
        return
    evidence_of = tuple(
        e
        for g, (c, _) in only.items()
        if (e := evidence.estimates.get("label_count", grader=g, class_=c)) is not None
    )
    classes = {c for c, _ in only.values()}
    if len(only) == spoken and len(classes) == 1:
        class_ = classes.pop()
        yield Finding(
            code="one_class_only",
            state=State.FOUND,
            strength=Strength.CERTAIN,
            class_=class_,
            grader=next(iter(only)) if len(only) == 1 else "",
            sentence=say(
                "{graders} {give} {class_} to every response. Agreement is complete for that reason "
                "alone; kappa and alpha are not defined, and whether anyone would use another class "
                "cannot be told from these responses.",
                graders=listed(only, most=12),
                give="gives" if len(only) == 1 else "give",
                class_=Name(class_),
            ),
            evidence=evidence_of,
            weight=2.0,
        )
        return
    for grader, (class_, total) in only.items():
        if grader == scene.gold or scene.by_name[grader].person:
            continue  # that gold or a person holds one class is no fault to be named
        yield Finding(
            code="one_class_only",
            state=State.FOUND,
            strength=Strength.CERTAIN,
            grader=grader,
            class_=class_,
            sentence=say(
                "{grader} gives {class_} to all of its {n} responses; others use other classes. A "
                "grader that never varies agrees as a constant does.",
                grader=Name(grader),
                class_=Name(class_),
                n=counted(total),
            ),
            evidence=tuple(e for e in evidence_of if e.key.grader == grader),
            weight=total,
        )


CHECK = Check(
    name="one_class_only",
    codes={"one_class_only": "A grader, or every grader, gives one and the same class throughout."},
    run=run,
    would_miss="A grader that uses a second class once or twice.",
    rank=30,
    uses=(
        Consequence(
            code="one_class_only",
            use="report_rate",
            effect=Effect.FORBIDS,
            because="It gives one and the same class throughout.",
        ),
        Consequence(
            code="one_class_only",
            use="compare_models",
            effect=Effect.FORBIDS,
            because="It gives one and the same class throughout.",
        ),
        Consequence(
            code="one_class_only",
            use="stand_for_gold",
            effect=Effect.FORBIDS,
            because="It gives one and the same class throughout.",
        ),
        Consequence(
            code="one_class_only",
            use="state_accuracy",
            effect=Effect.CONDITIONS,
            because="Say beside it that it gives one class throughout, as a constant does.",
        ),
    ),
)
