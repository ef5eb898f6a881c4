"""How often each planted fault is found by the check that is meant for it, and how often in clean panels.

Panels are drawn by ``voirdire.simulate`` and audited as a file would be: 5 graders, 900 responses in 100
clusters, three ordered classes (0.6, 0.3, 0.1), correlation 0.2 within a cluster, the truth as gold. One
fault is planted in the first grader.

    python benchmarks/planted_faults.py --panels 60    # the table of docs/coverage.md; some minutes
    python benchmarks/planted_faults.py --panels 20    # a quick look
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from voirdire import auditing
from voirdire.finding import State
from voirdire.intervals import clopper_pearson
from voirdire.simulate.panels import Collapse, Inflation, Unread, panel


@dataclass(frozen=True)
class Kind:
    """One kind of fault: what is planted, and the code of the finding that should tell."""

    what: str
    code: str
    faults: tuple[Any, ...]


KINDS = (
    Kind(
        "class collapsed to 0.1",
        "class_collapse",
        (Collapse(grader="g1", class_="high", ratio=0.1),),
    ),
    Kind(
        "class collapsed to 0.2",
        "class_collapse",
        (Collapse(grader="g1", class_="high", ratio=0.2),),
    ),
    Kind(
        "class inflated 4 times",
        "class_inflation",
        (Inflation(grader="g1", class_="high", ratio=4.0),),
    ),
    Kind(
        "class inflated 5 times",
        "class_inflation",
        (Inflation(grader="g1", class_="high", ratio=5.0),),
    ),
    Kind(
        "unread: 0.4 of the lowest class, 0.05 elsewhere",
        "outcomes_unread",
        (Unread(grader="g1", share=0.4, class_="low", elsewhere=0.05),),
    ),
    Kind("unread: 0.3 of all", "outcomes_unread", (Unread(grader="g1", share=0.3),)),
)


def found(kind: Kind, seed: int, *, clean: bool) -> bool:
    """Whether the finding is there: of the first grader where a fault is planted, else of anybody."""
    made = panel(seed=seed, faults=() if clean else kind.faults)
    audit = auditing.run(made.labels(gold="gold"))
    return any(
        f.code == kind.code and f.state is State.FOUND and (clean or f.grader == "g1")
        for f in audit.findings
    )


def _task(task: tuple[Kind, int, bool]) -> bool:
    kind, seed, clean = task
    return found(kind, seed, clean=clean)


def share(x: int, n: int) -> str:
    low, high = clopper_pearson(x, n)
    return f"{x} of {n} ({100 * low:.0f}–{100 * high:.1f} %)"


def main() -> None:
    parser = argparse.ArgumentParser(description="Planted faults and the checks that find them.")
    parser.add_argument("--panels", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20261017)
    parser.add_argument("--processes", type=int, default=None)
    args = parser.parse_args()
    tasks = [
        (kind, args.seed + i, clean)
        for kind in KINDS
        for clean in (False, True)
        for i in range(args.panels)
    ]
    with ProcessPoolExecutor(args.processes) as pool:
        done = list(pool.map(_task, tasks, chunksize=5))
    print(f"{args.panels} panels each, seeds from {args.seed}; exact 95 % intervals.\n")
    print("| planted | finding | found | in clean panels |")
    print("| --- | --- | --- | --- |")
    n = args.panels
    for i, kind in enumerate(KINDS):
        at = 2 * i * n
        planted, clean = sum(done[at : at + n]), sum(done[at + n : at + 2 * n])
        print(f"| {kind.what} | `{kind.code}` | {share(planted, n)} | {share(clean, n)} |")


if __name__ == "__main__":
    main()
