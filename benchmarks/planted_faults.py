"""How often each planted fault is found by the check that is meant for it, and how often in clean panels.

Panels are drawn by ``voirdire.simulate``, read as a file would be, and put through voirdire's own counting, tests
and checks (intervals, which no finding here hangs on, are not made): 5 graders, 900 responses in 100
clusters, three ordered classes (0.6, 0.3, 0.1), correlation 0.2 within a cluster, the truth as gold. One
fault is planted in the first grader. Clusters that nobody declared are drawn with other correlations, and
their column is renamed to one that no name gives away.

    python benchmarks/planted_faults.py                # the tables of docs/coverage.md; 200 panels a kind
    python benchmarks/planted_faults.py --panels 20    # a quick look

Every panel has a seed of its own: those of the planted panels of a kind are ``--seed`` + i, and so are those
of the clean ones. The number of processes changes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from voirdire import auditing
from voirdire.checks import (
    class_collapse,
    graders_not_independent,
    outcomes_unread,
    undeclared_clusters,
    unread_not_at_random,
)
from voirdire.checks.base import Evidence
from voirdire.finding import Finding, State
from voirdire.inference import Settings, estimates
from voirdire.intervals import clopper_pearson
from voirdire.labels import Labels
from voirdire.scene import Estimates
from voirdire.simulate.panels import Collapse, Follow, Inflation, SimulatedPanel, Unread, panel
from voirdire.stats.collapse import FAMILY
from voirdire.wording import plain

Array = np.ndarray[Any, Any]

SEED = 20261017
GRADERS, RESPONSES, CLUSTERS_OF = 5, 900, 100
HIDDEN = "batch"  # what the column of clusters is called where nobody declares it


@dataclass(frozen=True)
class Kind:
    """One kind of fault: what is planted, and the code of the finding that should tell.

    ``pair`` names who else the finding must be about. ``correlation`` is that within clusters; with
    ``hidden`` the clusters are not declared, and clean is no correlation.
    """

    what: str
    code: str
    faults: tuple[Any, ...] = ()
    pair: str = ""
    hidden: bool = False
    correlation: float = 0.2


def _collapse(ratio: float) -> tuple[Collapse]:
    return (Collapse(grader="g1", class_="high", ratio=ratio),)


def _inflation(ratio: float) -> tuple[Inflation]:
    return (Inflation(grader="g1", class_="high", ratio=ratio),)


def _follow(share: float) -> tuple[Follow]:
    return (Follow(grader="g1", of="g2", share=share),)


def _unread(share: float, class_: str = "", elsewhere: float = 0.0) -> tuple[Unread]:
    return (Unread(grader="g1", share=share, class_=class_, elsewhere=elsewhere),)


FOLLOWS = "graders_not_independent"
AT_RANDOM = "unread_not_at_random"
CLUSTERS = "undeclared_clusters"
KINDS = (
    Kind("class collapsed to 0.1", "class_collapse", _collapse(0.1)),
    Kind("class collapsed to 0.2", "class_collapse", _collapse(0.2)),
    Kind("class inflated 4 times", "class_inflation", _inflation(4.0)),
    Kind("class inflated 5 times", "class_inflation", _inflation(5.0)),
    Kind("follows another on 0.8", FOLLOWS, _follow(0.8), pair="g2"),
    Kind("follows another on 0.5", FOLLOWS, _follow(0.5), pair="g2"),
    Kind("follows another on 0.3", FOLLOWS, _follow(0.3), pair="g2"),
    Kind("follows another on 0.2", FOLLOWS, _follow(0.2), pair="g2"),
    Kind("unread: 0.3 of all", "outcomes_unread", _unread(0.3)),
    Kind(
        "unread: 0.4 of the lowest class, 0.05 elsewhere",
        "outcomes_unread",
        _unread(0.4, "low", 0.05),
    ),
    Kind("the same", AT_RANDOM, _unread(0.4, "low", 0.05)),
    Kind(
        "unread: 0.3 of the rarest class, none elsewhere",
        AT_RANDOM,
        _unread(0.3, "high"),
    ),
    Kind(
        "unread: 0.1 of the lowest class, 0.02 elsewhere",
        AT_RANDOM,
        _unread(0.1, "low", 0.02),
    ),
    Kind(
        "unread: 0.1 of the rarest class, 0.02 elsewhere",
        AT_RANDOM,
        _unread(0.1, "high", 0.02),
    ),
    Kind("clusters not declared, correlation 0.2", CLUSTERS, hidden=True),
    Kind("clusters not declared, correlation 0.1", CLUSTERS, hidden=True, correlation=0.1),
    Kind("clusters not declared, correlation 0.05", CLUSTERS, hidden=True, correlation=0.05),
    Kind("clusters not declared, correlation 0.02", CLUSTERS, hidden=True, correlation=0.02),
)


@dataclass(frozen=True)
class Clean:
    """Panels without a fault, in which any finding of ``codes`` is a false alarm."""

    what: str
    codes: tuple[str, ...]
    faults: tuple[Any, ...] = ()
    hidden: bool = False
    correlation: float = 0.2


CODES = tuple(dict.fromkeys(k.code for k in KINDS if not k.hidden))
CLEAN = (
    Clean("no fault", CODES),
    Clean("unread at random: 0.05 of all", (AT_RANDOM,), _unread(0.05)),
    Clean("unread at random: 0.15 of all", (AT_RANDOM,), _unread(0.15)),
    Clean("clusters not declared, no correlation", (CLUSTERS,), hidden=True, correlation=0.0),
)


# In the order of an audit: the classes that ``class_collapse`` flags are read by a later check.
CHECKS = tuple(
    module.CHECK
    for module in (
        class_collapse,
        outcomes_unread,
        unread_not_at_random,
        undeclared_clusters,
        graders_not_independent,
    )
)


def all_findings(labels: Labels) -> tuple[Finding, ...]:
    """What the checks say of labels."""
    whole, _ = auditing.scenes(labels)
    made = estimates(FAMILY.parts(whole), Settings(), with_intervals=False)
    evidence = Evidence(
        whole=whole,
        slices=(),
        estimates=Estimates(made),
        clusters_declared=labels.clusters_declared,
        labels=labels,
    )
    for check in CHECKS:
        evidence = evidence.with_findings(check.run(evidence))
    return evidence.earlier


# Panels in which nobody follows anybody, and in which graders are not as alike as elsewhere. Labels of a
# grader are independent of the others' given the truth (and, where responses are hard, given how hard).
UNKIND = (
    "all alike",
    "unequal accuracy: truth kept on 0.95, 0.9, 0.8, 0.6, 0.4",
    "responses unequally hard: truth kept on Beta(1.4, 0.6), the same for all",
    "both: that to the power of 0.3, 0.3, 1, 2, 2",
    "one wrong class attracts half the labels on a fifth of the responses",
    "lines drawn on a scale: two graders low by 0.5 SD, one by 0, two high by 0.1 and 0.3",
    "the same with two classes",
)


def unkind(which: int, seed: int) -> pl.DataFrame:
    """A panel of :data:`UNKIND` as a table of labels, the truth as the grader gold."""
    random = np.random.default_rng([seed, which])
    mix = np.array([0.7, 0.3] if which == 6 else [0.6, 0.3, 0.1])
    edges = np.cumsum(mix)[:-1]
    shape = (RESPONSES, GRADERS)
    true = (random.random(RESPONSES)[:, None] > edges).sum(axis=1)
    keeps = np.full(shape, 0.7)
    if which == 1:
        keeps = np.tile([0.95, 0.9, 0.8, 0.6, 0.4], (RESPONSES, 1))
    elif which in (2, 3):
        easy = random.beta(1.4, 0.6, RESPONSES)[:, None]
        keeps = easy ** np.array([1, 1, 1, 1, 1] if which == 2 else [0.3, 0.3, 1, 2, 2])
    instead = (random.random(shape)[..., None] > edges).sum(axis=-1)
    labels = np.where(random.random(shape) < keeps, true[:, None], instead)
    if which == 4:
        drawn = (random.random(RESPONSES) < 0.2)[:, None] & (random.random(shape) < 0.5)
        labels = np.where(drawn, ((true + 1) % len(mix))[:, None], labels)
    elif which >= 5:
        scale = random.normal(size=RESPONSES)
        lines = np.quantile(scale, edges)
        true = (scale[:, None] > lines).sum(axis=1)
        seen = scale[:, None] + 0.5 * random.normal(size=shape)
        shift = np.array([-0.5, -0.5, 0.0, 0.1, 0.3])
        labels = (seen[..., None] > lines + shift[:, None]).sum(axis=-1)
    names = np.array(["low", "middle", "high"])
    place = np.arange(RESPONSES)
    return pl.DataFrame(
        {
            "response": [f"r{i:03}" for i in place],
            "cluster": [f"c{i * CLUSTERS_OF // RESPONSES:02}" for i in place],
            **{f"g{g + 1}": names[labels[:, g]] for g in range(GRADERS)},
            "gold": names[true],
        }
    )


def named(which: int, seed: int, *, gold: bool) -> bool:
    """Whether any pair is found (with gold), or named (without)."""
    table = unkind(which, seed)
    graders = [f"g{g + 1}" for g in range(GRADERS)]
    labels = Labels.from_frame(
        table if gold else table.drop("gold"),
        layout="wide",
        graders=graders,
        gold="gold" if gold else None,
        cluster="cluster",
        scale=["low", "middle", "high"][: 2 if which == 6 else 3],
    )
    of = [f for f in all_findings(labels) if f.code == FOLLOWS]
    return any(f.state is State.FOUND or "go together" in plain(f.sentence) for f in of)


def _unkind_task(task: tuple[int, int]) -> tuple[bool, bool]:
    which, seed = task
    return named(which, seed, gold=True), named(which, seed, gold=False)


def labels_of(made: SimulatedPanel, *, hidden: bool) -> Labels:
    """The panel as labels with gold; ``hidden`` clusters stand in a column that says nothing."""
    if not hidden:
        return made.labels(gold="gold")
    table = made.table().rename({"cluster": HIDDEN})
    return Labels.from_frame(
        table, layout="long", outcome="outcome", scale=made.model.classes, gold="gold"
    )


def findings(case: Kind | Clean, seed: int) -> list[Finding]:
    """What an audit finds in one panel."""
    made = panel(seed=seed, faults=case.faults, correlation=case.correlation)
    of = all_findings(labels_of(made, hidden=case.hidden))
    return [f for f in of if f.state is State.FOUND]


def found(kind: Kind, seed: int) -> bool:
    """Whether the fault is found: of the first grader, or of the pair, or of the column."""
    of = [f for f in findings(kind, seed) if f.code == kind.code]
    if kind.hidden:
        return bool(of)
    wanted = {"g1", kind.pair} - {""}
    return any({f.grader, *([f.other] if kind.pair else [])} == wanted for f in of)


def alarms(clean: Clean, seed: int) -> tuple[bool, ...]:
    """Whether each code is found of anybody."""
    of = {f.code for f in findings(clean, seed)}
    return tuple(code in of for code in clean.codes)


def _task(task: tuple[Kind | Clean, int]) -> tuple[bool, ...]:
    case, seed = task
    return (found(case, seed),) if isinstance(case, Kind) else alarms(case, seed)


def share(x: int, n: int) -> str:
    """``177 of 200: 88.5 ± 2.3 % [83.2, 92.6]``: Monte-Carlo standard error and exact 95 % interval."""
    low, high = clopper_pearson(x, n)
    error = 100 * (x / n * (1 - x / n) / n) ** 0.5
    return f"{x} of {n}: {100 * x / n:.1f} ± {error:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def measured(
    cases: Sequence[Kind | Clean], panels: int, seed: int, processes: int | None
) -> list[tuple[int, ...]]:
    """For each case, in how many panels it was found (of a clean one: each code)."""
    tasks = [(case, seed + i) for case in cases for i in range(panels)]
    with ProcessPoolExecutor(processes) as pool:
        done = list(pool.map(_task, tasks, chunksize=5))
    return [
        tuple(sum(column) for column in zip(*done[i * panels : (i + 1) * panels], strict=True))
        for i in range(len(cases))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Planted faults and the checks that find them.")
    parser.add_argument("--panels", type=int, default=200)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=None)
    args = parser.parse_args()
    done = measured((*KINDS, *CLEAN), args.panels, args.seed, args.processes)
    print(
        f"{args.panels} panels each, seeds from {args.seed}; ± Monte-Carlo standard error,", end=""
    )
    print(" exact 95 % interval in brackets.\n")
    print("| planted | finding | found |")
    print("| --- | --- | --- |")
    for kind, (planted,) in zip(KINDS, done, strict=False):
        print(f"| {kind.what} | `{kind.code}` | {share(planted, args.panels)} |")
    print("\n| clean panels | finding | found of anybody |")
    print("| --- | --- | --- |")
    for clean, counts in zip(CLEAN, done[len(KINDS) :], strict=True):
        for code, count in zip(clean.codes, counts, strict=True):
            print(f"| {clean.what} | `{code}` | {share(count, args.panels)} |")
    tasks = [(which, args.seed + i) for which in range(len(UNKIND)) for i in range(args.panels)]
    with ProcessPoolExecutor(args.processes) as pool:
        told = list(pool.map(_unkind_task, tasks, chunksize=5))
    print("\n| nobody follows; graders are | a pair found, with gold | a pair named, without |")
    print("| --- | --- | --- |")
    for which, what in enumerate(UNKIND):
        of = told[which * args.panels : (which + 1) * args.panels]
        cells = [share(sum(column), args.panels) for column in zip(*of, strict=True)]
        print(f"| {what} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
