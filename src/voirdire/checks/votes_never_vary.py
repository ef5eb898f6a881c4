"""Repeats that never differ: they are no evidence of anything about the labels."""

from __future__ import annotations

from collections.abc import Iterable

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.document import cell, display_interval
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, Strength
from voirdire.scene import Scene
from voirdire.wording import Name, counted, listed, percent, say

FEWEST = 10  # responses with two readable votes, below which equal votes are no news


def run(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    held = scene.grid if scene.grid is not None else scene.bank
    several = held is not None and held.phrasings is not None
    asked = [
        e
        for e in evidence.estimates.of("self_disagreement", slice="")
        if e.number is not None
        and _asked_again(scene, e) >= FEWEST
        and not scene.by_name[e.key.grader].person
    ]
    what = "lines of responses" if scene.bank is not None else "responses"
    if several:
        what += " (counted under each phrasing)"
    for one in asked:
        if one.number:
            continue
        upper = display_interval(cell(one))
        yield Finding(
            code="votes_never_vary",
            state=State.FOUND,
            strength=Strength.CERTAIN,
            grader=one.key.grader,
            sentence=say(
                "{grader} was asked again on {n} {what} and never gave another {label} (0 %"
                "{interval}). Repeats under one prompt say nothing about the scorer; what they can "
                "show is decode-time noise at most, and here there is none to see. Its votes add "
                "calls and no evidence.",
                what=what,
                label="verdict" if scene.bank is not None else "label",
                grader=Name(one.key.grader),
                n=counted(one.n or 0),
                interval=f" {upper}" if upper else "",
            ),
            evidence=(one,),
            weight=0.5,
            next_step=(
                "Count one call a response under each phrasing; read what the wording does from the "
                "phrasing study.",
            )
            if several
            else (
                "Count one call a response; to learn how far labels hang on the prompt, reword it.",
            ),
        )
    varied = [e for e in asked if e.number]
    if varied:
        least, most = (f(varied, key=lambda e: e.number or 0.0) for f in (min, max))
        rates = percent(most.number)
        if len(varied) > 1:
            rates = f"{percent(least.number)} to {rates}"
        yield Finding(
            code="votes_never_vary",
            state=State.CLEAR,
            grader=varied[0].key.grader if len(varied) == 1 else "",
            sentence=say(
                "Votes differ: {graders} {give} votes of more than one class on {rates} of the "
                "{what} asked again. That is noise of decoding under one prompt.",
                what=what,
                graders=listed(e.key.grader for e in varied),
                give="gives" if len(varied) == 1 else "give",
                rates=rates,
            ),
            evidence=tuple(varied),
        )


def _asked_again(scene: Scene, disagreement: Estimate) -> float:
    """How many responses have two readable votes (on some line, in a checklist; under one phrasing)."""
    if scene.bank is None or scene.bank.votes is None:
        return disagreement.n or 0.0
    votes, at = scene.bank.votes, scene.bank.places[disagreement.key.grader]
    again = votes.read[:, at] >= 2 if votes.within is None else votes.within[:, at, :, 0] > 0
    return float(again.any(axis=1).sum())


CHECK = Check(
    name="votes_never_vary",
    codes={
        "votes_never_vary": "A grader was asked again on 10 responses or more and never differed."
    },
    run=run,
    would_miss=(
        "Votes that hardly vary: one other label in a thousand is enough for a clear answer. Repeats "
        "that a cache answered look like a grader without noise. People. Where there are several phrasings "
        "only votes under the same one are repeats."
    ),
    rank=70,
    kinds=("labels", "counts", "checklist"),
    uses=(
        Consequence(
            code="votes_never_vary",
            use="repeats",
            effect=Effect.FORBIDS,
            because="Its repeats never differ, as those of a cache or of fixed decoding would.",
        ),
        Consequence(
            code="votes_never_vary",
            use="repeats",
            effect=Effect.ALLOWS,
            because="Its repeats differ now and then.",
            state=State.CLEAR,
        ),
    ),
)
