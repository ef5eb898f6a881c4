"""So few clusters that intervals fall short of their level."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from voirdire import measured
from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.finding import Finding, State, Strength
from voirdire.grid import NO_MAJORITY
from voirdire.scene import Scene
from voirdire.sides import standard
from voirdire.wording import percent, plural, say

Array = np.ndarray[Any, Any]

FEWEST_CLUSTERS = 3  # below this :mod:`voirdire.inference` gives no interval


def run(evidence: Evidence) -> Iterable[Finding]:
    grid, bank = evidence.whole.grid, evidence.whole.bank
    if grid is not None:
        clusters = len(np.unique(grid.cluster[(grid.codes >= 0).any(axis=1)]))
    elif bank is not None:
        clusters = len(np.unique(bank.cluster[_scored(evidence.whole)]))
    else:
        return
    if bank is not None and not clusters:
        yield _none_scored(evidence.whole)
        return
    if not clusters:
        yield _none_labelled(evidence.whole)
        return
    what = plural(clusters, "cluster") + (" of scored responses" if bank is not None else "")
    if not evidence.clusters_declared:
        what = plural(clusters, "response") + " (each its own cluster)"
    few_from = evidence.whole.options.few_clusters
    if clusters < few_from:
        yield Finding(
            code="few_clusters",
            state=State.FOUND,
            strength=Strength.CERTAIN,
            sentence=say(
                "There {are} {what}, which is few: intervals rest on them and not on the {labels}. "
                "{measured}",
                are="is" if clusters == 1 else "are",
                what=what,
                labels="labels" if bank is None else "verdicts",
                measured=_measured(clusters, checklist=bank is not None),
            ),
            weight=float(few_from - clusters),
            next_step=(_act(evidence.whole, clusters, checklist=bank is not None),),
        )
    else:
        yield Finding(
            code="few_clusters",
            state=State.CLEAR,
            sentence=say("Intervals rest on {what}.", what=what),
        )


# What was measured, by its case in the table that ships, and what it is called in the sentence.
LABEL_CASES = {
    "rate 0.5": "for a rate of 0.5",
    "rate 0.05": "for 0.05",
    "kappa at 0.5": "for kappa",
}
BANK_CASES = {"rate 0.5": "for a rate of 0.5", "rate 0.05": "for 0.05", "kr20": "for KR-20"}


CASES_IN_WORDS = {
    "rate 0.5": "of rates near 0.5",
    "rate 0.05": "of rare events",
    "kappa at 0.5": "of kappa",
    "kr20": "of KR-20",
}
NEAR = 0.015  # a measured coverage so near 95 % is what the interval says


def _act(scene: Scene, clusters: int, *, checklist: bool) -> str:
    """What to do, and how to read the intervals that the audit made, by their measured coverage."""
    add = "Add clusters rather than responses"
    if clusters < FEWEST_CLUSTERS:
        return f"{add}."
    cases = BANK_CASES if checklist else LABEL_CASES
    at = max(clusters, measured.fewest_clusters())

    def beyond(method: str, sign: int) -> str:
        words = [
            CASES_IN_WORDS[case]
            for case in cases
            if sign * (measured.coverage(case, method, at) - 0.95) > NEAR
        ]
        return ", ".join(words[:-1]) + (" and " if words[1:] else "") + "".join(words[-1:])

    short = beyond("percentile", -1)
    if scene.options.interval == "bootstrap":
        if not short:
            return f"{add}."
        return f"{add}, and audit without --interval bootstrap: its percentiles {short} fall short."
    read = [
        f"{words} as {what}"
        for words, what in ((beyond("auto", 1), "wide"), (beyond("auto", -1), "too short"))
        if words
    ]
    said = f"read intervals {' and '.join(read)}" if read else ""
    warned = "do not take --interval bootstrap, whose percentiles fall short" if short else ""
    advice = ", and ".join(part for part in (said, warned) if part)
    return f"{add}; {advice}." if advice else f"{add}."


def _measured(clusters: int, *, checklist: bool) -> str:
    """The measured coverage at this number of clusters, of the default and of the bootstrap."""
    if clusters < FEWEST_CLUSTERS:
        return f"No interval is given below {FEWEST_CLUSTERS}."
    cases = BANK_CASES if checklist else LABEL_CASES
    at = max(clusters, measured.fewest_clusters())
    of = {
        method: [_share(measured.coverage(case, method, at)) for case in cases]
        for method in ("auto", "percentile")
    }
    said = [f"{share} {words}" for share, words in zip(of["auto"], cases.values(), strict=True)]
    numbers = [share.removesuffix(" %") for share in of["percentile"]]
    fewest = ", the fewest measured" if at > clusters else ""
    return (
        f"Measured coverage of 95 % intervals with {at} clusters{fewest}: {', '.join(said)}; bootstrap "
        f"percentiles {', '.join(numbers[:-1])} and {numbers[-1]} %."
    )


def _share(coverage: float) -> str:
    return percent(coverage, 0) if coverage < 0.995 else "over 99 %"


def _none_labelled(scene: Scene) -> Finding:
    """No label at all: what is missing is labels, and more clusters would not help."""
    grid = scene.grid
    assert grid is not None
    tied = int((grid.outcomes == NO_MAJORITY).any(axis=1).sum())
    why = f": on {plural(tied, 'response')} the votes have no majority" if tied else ""
    return Finding(
        code="few_clusters",
        state=State.FOUND,
        strength=Strength.CERTAIN,
        sentence=(
            f"No response has a label of any grader, so no interval rests on anything{why}.",
        ),
        weight=float(scene.options.few_clusters),
        next_step=(
            "See how the calls ended (outcomes_unread, and the notes)"
            + ("; --vote-rule first takes the first readable vote." if tied else "."),
        ),
    )


def _none_scored(scene: Scene) -> Finding:
    """No cluster at all: what is missing is verdicts, and more clusters would not help."""
    both = bool(scene.gold and scene.panel)
    return Finding(
        code="few_clusters",
        state=State.FOUND,
        strength=Strength.CERTAIN,
        sentence=say(
            "No response was scored in full by {who}, so there are no totals and no cluster for intervals "
            "of what rests on them: the gate and all coefficients.",
            who=("both a judge and ", *standard(scene)) if both else "a judge",
        ),
        weight=float(scene.options.few_clusters),
        next_step=(
            "See what each grader lacks (outcomes_unread, and the notes): lines without any verdict, or "
            "judge and gold on different responses.",
        ),
    )


def _scored(scene: Scene) -> Array:
    """The responses of a bank that a judge scored in full (where there is gold, gold too)."""
    bank = scene.bank
    assert bank is not None
    by_a_judge = bank.complete[:, [bank.places[g] for g in scene.panel]].any(axis=1)
    if scene.gold and scene.panel:
        return np.asarray(by_a_judge & bank.complete[:, bank.places[scene.gold]])
    return np.asarray(by_a_judge if scene.panel else bank.complete.any(axis=1))


CHECK = Check(
    name="few_clusters",
    codes={"few_clusters": "There are fewer than 30 clusters."},
    run=run,
    would_miss="Clusters that nobody declared: responses of one prompt that stand each on its own.",
    rank=60,
    kinds=("labels", "counts", "checklist"),
    uses=(
        Consequence(
            code="few_clusters",
            use="quote_intervals",
            effect=Effect.CONDITIONS,
            because="Print beside them on how few clusters they rest and the measured coverage of their method.",
        ),
        Consequence(
            code="few_clusters",
            use="quote_intervals",
            effect=Effect.ALLOWS,
            because="How often such intervals hold was measured at so few clusters.",
        ),
        Consequence(
            code="few_clusters",
            use="gate",
            effect=Effect.CONDITIONS,
            because="Say on how few clusters its accuracy rests.",
        ),
        Consequence(
            code="few_clusters",
            use="quote_intervals",
            effect=Effect.ALLOWS,
            because="They rest on enough clusters.",
            state=State.CLEAR,
        ),
    ),
)
