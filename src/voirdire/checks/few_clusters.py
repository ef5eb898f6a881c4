"""So few clusters that intervals fall short of their level."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from voirdire.checks.base import Check, Evidence
from voirdire.finding import Finding, State, Strength
from voirdire.wording import plural, say


def run(evidence: Evidence) -> Iterable[Finding]:
    grid = evidence.whole.grid
    if grid is None:
        return
    labelled = (grid.codes >= 0).any(axis=1)
    clusters = len(np.unique(grid.cluster[labelled]))
    what = plural(clusters, "cluster")
    if not evidence.clusters_declared:
        what = plural(clusters, "response") + " (each its own cluster)"
    few_from = evidence.whole.options.few_clusters
    if clusters < few_from:
        few = " No interval is given below 3." if clusters < 3 else ""
        yield Finding(
            code="few_clusters",
            state=State.FOUND,
            strength=Strength.CERTAIN,
            sentence=say(
                "There {are} {what}, which is few: intervals rest on them and not on the labels. "
                "Measured coverage of 95 % intervals with 10 to 20 clusters: percentile bootstrap "
                "about 90 to 91 % for a rate of 0.5 and 83 to 88 % for 0.05; Korn–Graubard 92 to "
                "94 % and logit jackknife-t 91 to 93 % for 0.05.{few}",
                are="is" if clusters == 1 else "are",
                what=what,
                few=few,
            ),
            weight=float(few_from - clusters),
            next_step=("Read the intervals as too short, and add clusters rather than responses.",),
        )
    else:
        yield Finding(
            code="few_clusters",
            state=State.CLEAR,
            sentence=say("Intervals rest on {what}.", what=what),
        )


CHECK = Check(
    name="few_clusters",
    codes={"few_clusters": "There are fewer than 30 clusters."},
    run=run,
    would_miss="Clusters that nobody declared: responses of one prompt that stand each on its own.",
    rank=60,
)
