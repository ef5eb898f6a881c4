"""How often checks of a checklist speak up where there is nothing to find.

Banks are simulated as arrays (no file is read) and judged by voirdire's own statistics and checks.

**Gates** (``gate_lenient``, ``gate_harsh``). 210 responses of ten lines in 15 or 30 clusters. A response
meets each line with a share of its own, uniform on 0.2–0.8. Gold and each judge are copies of that
truth with 5 % of the verdicts turned over, and so exchangeable: no gate is lenient or harsh. Cuts of 4 to 7.
A *false alarm* is a bank with a finding at any judge and cut.

**Orders** (``element_order_matters``). Each cluster is a question with its own ten lines, and the shares of the
responses lie within 0.4–0.6: totals spread little, and the range over orders is wide by chance. *Alike*: the
lines of a question are equally hard, so that no order is special. *Unlike*: the share of a line moves by
a normal deviate with SD 0.15, and the order does matter.

    python -m benchmarks.checklist_false_alarms               # the tables of docs/checklists.md
    python -m benchmarks.checklist_false_alarms --banks 100   # a quick look

The same seed gives the same tables on any machine; the number of processes does not matter.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from voirdire.bank import Bank
from voirdire.checks.base import Check, Evidence
from voirdire.checks.element_order import CHECK as ORDER
from voirdire.checks.gate_bias import CHECK as GATE
from voirdire.finding import State, Strength
from voirdire.grid import LABEL
from voirdire.inference import Settings, estimates
from voirdire.intervals import clopper_pearson
from voirdire.labels import ALL_OUTCOMES, Grader
from voirdire.options import Options
from voirdire.scene import Estimates, Scene
from voirdire.stats.base import Family
from voirdire.stats.gate import FAMILY as GATES
from voirdire.stats.kuder_richardson import FAMILY as COEFFICIENTS

Array = np.ndarray[Any, Any]

LINES, RESPONSES = 10, 210
CUTS = (4, 5, 6, 7)
TURNED = 0.05
SEED = 20_261_130
GATE_CELLS = tuple((clusters, judges) for clusters in (15, 30) for judges in (1, 8))
ORDER_CELLS = tuple(
    (n, c, u) for u in (0.0, 0.15) for n, c in ((24, 6), (50, 10), (60, 10), (210, 15))
)


@dataclass(frozen=True)
class Counted:
    """Of ``banks``, how many had a finding of any strength, and a certain one."""

    banks: int
    found: int
    certain: int


def scene(verdicts: Array, cluster: Array, names: Sequence[str], *, own: bool) -> Scene:
    """A scene of ``(responses, graders, lines)`` verdicts; the first of ``names`` is gold."""
    n, graders, k = verdicts.shape
    questions = tuple(f"q{c}" for c in range(int(cluster.max()) + 1)) if own else ("",)
    lines = tuple(f"{q}/e{j + 1}" if q else f"e{j + 1}" for q in questions for j in range(k))
    question = cluster if own else np.zeros(n, dtype=np.int64)
    calls = np.zeros((graders, len(ALL_OUTCOMES)), dtype=np.int64)
    calls[:, LABEL] = n
    made = Bank(
        graders=tuple(names),
        lines=lines,
        texts={},
        questions=questions,
        verdicts=verdicts.astype(np.int8),
        line=(question[:, None] * k + np.arange(k)).astype(np.int32),
        question=question,
        states=np.full((n, graders), LABEL, dtype=np.int8),
        calls=calls,
        cluster=cluster,
        stratum=None,
        weights=None,
        own_cluster=False,
    )
    return Scene(
        grid=None,
        counts=None,
        bank=made,
        graders=tuple(Grader(name=g) for g in names),
        classes=("0", "1"),
        scale=("0", "1"),
        ordered=True,
        gold=names[0],
        reference="",
        rates=(),
        options=Options.of(cut=CUTS),
    )


def judged(one: Scene, family: Family, check: Check) -> tuple[bool, bool]:
    """Whether the check finds something, and whether it is certain."""
    made = Estimates(
        estimates(family.parts(one), Settings(interval="auto", level=0.95, replicates=100, seed=0))
    )
    findings = check.run(Evidence(whole=one, slices=(), estimates=made, clusters_declared=True))
    found = [f.strength for f in findings if f.state is State.FOUND]
    return bool(found), Strength.CERTAIN in found


def _gate(cell: tuple[int, int], number: int) -> tuple[bool, bool]:
    clusters, judges = cell
    rng = np.random.default_rng([SEED, 1, clusters, judges, number])
    share = rng.uniform(0.2, 0.8, RESPONSES)
    truth = rng.random((RESPONSES, 1, LINES)) < share[:, None, None]
    turned = rng.random((RESPONSES, judges + 1, LINES)) < TURNED
    names = ["gold", *(f"judge {j + 1}" for j in range(judges))]
    return judged(
        scene(truth ^ turned, np.arange(RESPONSES) % clusters, names, own=False), GATES, GATE
    )


def _order(cell: tuple[int, int, float], number: int) -> tuple[bool, bool]:
    n, clusters, unlike = cell
    rng = np.random.default_rng([SEED, 2, n, clusters, int(100 * unlike), number])
    cluster = np.arange(n) % clusters
    moved = rng.normal(0, unlike, (clusters, LINES))[cluster]
    share = np.clip(rng.uniform(0.4, 0.6, n)[:, None] + moved, 0.01, 0.99)
    gold = rng.random((n, LINES)) < share
    judge = gold ^ (rng.random((n, LINES)) < TURNED)
    both = np.stack([gold, judge], axis=1)
    return judged(scene(both, cluster, ["gold", "judge"], own=True), COEFFICIENTS, ORDER)


def counted(make: Any, cell: Any, banks: int, pool: ProcessPoolExecutor) -> Counted:
    results = list(pool.map(make, [cell] * banks, range(banks), chunksize=20))
    return Counted(
        banks=banks, found=sum(f for f, _ in results), certain=sum(c for _, c in results)
    )


def shown(count: int, banks: int) -> str:
    low, high = clopper_pearson(count, banks, 0.95)
    return f"{100 * count / banks:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def report(banks: int) -> None:
    """Print both tables as Markdown."""
    with ProcessPoolExecutor() as pool:
        print(f"Gates, {len(CUTS)} cuts, gold and judges exchangeable; {banks:,} banks a row.\n")
        print("| clusters | judges | banks with a finding | certain |\n| --- | --- | --- | --- |")
        for cell in GATE_CELLS:
            c = counted(_gate, cell, banks, pool)
            print(
                f"| {cell[0]} | {cell[1]} | {shown(c.found, banks)} | {shown(c.certain, banks)} |"
            )
        print(f"\nOrders of lines; {banks // 4:,} banks a row.\n")
        print(
            "| lines of a question | responses | questions | banks with a finding |\n| --- | --- | --- | --- |"
        )
        for order in ORDER_CELLS:
            c = counted(_order, order, banks // 4, pool)
            word = "unlike" if order[2] else "alike"
            print(f"| {word} | {order[0]} | {order[1]} | {shown(c.found, banks // 4)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--banks", type=int, default=1000)
    report(parser.parse_args().banks)
