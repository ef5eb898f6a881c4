"""Repeats that never differ: they are no evidence of anything about the labels."""

from __future__ import annotations

from collections.abc import Iterable

from voirdire.checks.base import Check, Evidence
from voirdire.document import cell, display_interval
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, Strength
from voirdire.scene import Scene
from voirdire.wording import Name, counted, listed, percent, say

FEWEST = 10  # responses with two readable votes, below which equal votes are no news


def run(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    held = scene.grid if scene.grid is not None else scene.bank
    if scene.options.phrasing or (held is not None and held.phrasings is not None):
        return  # votes of one response may come from several prompts
    asked = [
        e
        for e in evidence.estimates.of("self_disagreement", slice="")
        if e.number is not None
        and _asked_again(scene, e) >= FEWEST
        and not scene.by_name[e.key.grader].person
    ]
    of_lines = scene.bank is not None
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
                what="lines of responses" if of_lines else "responses",
                label="verdict" if of_lines else "label",
                grader=Name(one.key.grader),
                n=counted(one.n or 0),
                interval=f" {upper}" if upper else "",
            ),
            evidence=(one,),
            weight=0.5,
            next_step=(
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
                what="lines of responses" if of_lines else "responses",
                graders=listed(e.key.grader for e in varied),
                give="gives" if len(varied) == 1 else "give",
                rates=rates,
            ),
            evidence=tuple(varied),
        )


def _asked_again(scene: Scene, disagreement: Estimate) -> float:
    """How many responses have two readable votes (on some line, in a checklist)."""
    if scene.bank is None or scene.bank.votes is None:
        return disagreement.n or 0.0
    read = scene.bank.votes.read[:, scene.bank.places[disagreement.key.grader]]
    return float((read >= 2).any(axis=1).sum())


CHECK = Check(
    name="votes_never_vary",
    codes={
        "votes_never_vary": "A grader was asked again on 10 responses or more and never differed."
    },
    run=run,
    would_miss=(
        "Votes that hardly vary: one other label in a thousand is enough for a clear answer. Repeats "
        "that a cache answered look like a grader without noise. People, and files with several phrasings."
    ),
    rank=70,
    kinds=("labels", "counts", "checklist"),
)
