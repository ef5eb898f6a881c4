"""How often the collapse rule flags somebody where nobody collapses, and how often it sees a collapse.

Panels are simulated as codes (no file is read) and judged by voirdire's own counting, tests and check:
``scene.Scene``, ``stats.collapse``, ``inference.estimates`` and ``checks.class_collapse``. Intervals are not made.

The model (``voirdire.simulate.panel``). 900 responses in 100 clusters of 9, three ordered classes. The truth has
class shares ``mix``.
Every grader is equally confused: on each response it repeats the truth with probability 0.7, else draws
a class from ``mix``, so that all graders and the truth expect the same counts. *Between-cluster
variation*: the shares of the truth differ between clusters (Dirichlet, correlation 0.2 within a cluster),
and so does what each grader draws instead of the truth. *With gold*, gold is the truth. For power, the
first grader loses its labels of the rarest class to the middle one with probability 1 − ``ratio``.

    python benchmarks/false_alarms.py                 # the tables of docs/collapse-rule.md; 15 CPU minutes
    python benchmarks/false_alarms.py --panels 40     # a quick look

The same seed gives the same tables on any machine; the number of processes does not matter.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from voirdire.checks.base import Evidence
from voirdire.checks.class_collapse import CHECK
from voirdire.finding import Finding, State, Strength
from voirdire.grid import LABEL, Grid
from voirdire.inference import Settings, estimates
from voirdire.intervals import clopper_pearson
from voirdire.labels import ALL_OUTCOMES, Grader
from voirdire.options import Options
from voirdire.scene import Estimates, Scene
from voirdire.simulate.panels import Collapse
from voirdire.simulate.panels import panel as drawn
from voirdire.stats.collapse import FAMILY

Array = np.ndarray[Any, Any]

RESPONSES, CLUSTERS = 900, 100
CLASSES = ("low", "middle", "high")
KEEPS = 0.7  # how often a grader repeats the truth
WITHIN = 0.2  # correlation of labels within a cluster, where clusters vary
RARE = 2  # the class that is rare, and that a planted collapse loses
PANELS = (3, 5, 8)
ALSO = (2, 20)  # drawn after the others, so that the draws of those stay what they were
FEWER_PANELS = 20  # with so many graders half the panels are simulated: a panel has 380 comparisons
RARE_EXPECTED = (300, 60, 40, 20)  # expected labels of the rare class; 300: balanced classes
RATIOS = (0.1, 0.2, 0.3, 1 / 3, 0.5)  # 1/3: at the threshold itself
POWER_PANEL = 5
TABLES = ("null", "power", "sizes")
SIZES_RARE, SIZES_RATIO = 60, 0.2  # of the table of power by number of graders


@dataclass(frozen=True)
class Cell:
    """One cell of the design; ``ratio`` 1 is no collapse."""

    graders: int
    rare: int
    varied: bool
    gold: bool
    ratio: float = 1.0

    @property
    def mix(self) -> Array:
        rare = self.rare / RESPONSES
        if self.rare * 3 == RESPONSES:
            return np.full(3, 1 / 3)
        return np.array([0.7 * (1 - rare), 0.3 * (1 - rare), rare])


@dataclass(frozen=True)
class Counted:
    """How many of ``panels`` had a finding of each kind."""

    cell: Cell
    panels: int
    found: int  # a collapse is found, of anybody (power: of the planted grader and class)
    certain: int
    others: int  # power: found of another grader or class
    inflated: int  # class_inflation found (with gold only)


def simulated(generator: np.random.Generator, cell: Cell) -> Scene:
    names = [f"grader {i + 1}" for i in range(cell.graders)]
    planted = Collapse(grader=names[0], class_=CLASSES[RARE], ratio=cell.ratio)
    made = drawn(
        seed=generator,
        graders=tuple(names),
        responses=RESPONSES,
        clusters=CLUSTERS,
        classes=CLASSES,
        mix=tuple(cell.mix),
        keeps=KEEPS,
        correlation=WITHIN if cell.varied else 0.0,
        faults=(planted,) if cell.ratio < 1 else (),
    )
    columns = [made.codes]
    if cell.gold:
        columns.append(made.true[:, None])
        names.append("gold")
    codes = np.concatenate(columns, axis=1).astype(np.int16)
    calls = np.zeros((len(names), len(ALL_OUTCOMES)), dtype=np.int64)
    calls[:, LABEL] = RESPONSES
    grid = Grid(
        graders=tuple(names),
        classes=CLASSES,
        codes=codes,
        outcomes=np.full(codes.shape, LABEL, dtype=np.int8),
        calls=calls,
        cluster=made.cluster,
        stratum=None,
        weights=None,
        own_cluster=False,
    )
    return Scene(
        grid=grid,
        counts=None,
        graders=tuple(Grader(name=n) for n in names),
        classes=CLASSES,
        scale=CLASSES,
        ordered=True,
        gold="gold" if cell.gold else "",
        reference="",
        rates=(),
        options=Options.of(scale=CLASSES),
    )


def findings(scene: Scene) -> list[Finding]:
    """What the check finds in one panel."""
    made = estimates(FAMILY.parts(scene), Settings(), with_intervals=False)
    evidence = Evidence(whole=scene, slices=(), estimates=Estimates(made), clusters_declared=True)
    return [f for f in CHECK.run(evidence) if f.state is State.FOUND]


def counted(task: tuple[Cell, int, int, int]) -> Counted:
    cell, panels, seed, place = task
    found = certain = others = inflated = 0
    for panel in range(panels):
        generator = np.random.default_rng([seed, place, panel])
        made = findings(simulated(generator, cell))
        collapses = [f for f in made if f.code == "class_collapse"]
        inflated += any(f.code == "class_inflation" for f in made)
        if cell.ratio < 1:
            planted = [f for f in collapses if (f.grader, f.class_) == ("grader 1", CLASSES[RARE])]
            others += len(collapses) > len(planted)
            collapses = planted
        found += bool(collapses)
        certain += any(f.strength is Strength.CERTAIN for f in collapses)
    return Counted(cell, panels, found, certain, others, inflated)


def share(x: int, n: int) -> str:
    """``3 (0.75 %, ≤ 2.2 %)``: how many of ``n`` panels, and the upper end of the exact 95 % interval."""
    _, high = clopper_pearson(x, n)
    return f"{f'{x} ({100 * x / n:.2f} %, ' if x else '0 ('}≤ {100 * high:.2g} %)"


def panels_of(cell: Cell, panels: int) -> int:
    return max(1, panels // 2) if cell.graders >= FEWER_PANELS else panels


def table(header: str, rows: Iterable[str]) -> None:
    print(header)
    print("|" + " --- |" * (header.count("|") - 1))
    for row in rows:
        print(row)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description="False alarms and power of the collapse rule.")
    parser.add_argument("--panels", type=int, default=400, help="panels in a cell")
    parser.add_argument("--seed", type=int, default=20261017)
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--only", choices=TABLES, default="", help="one of the tables")
    args = parser.parse_args()
    # What is drawn for a cell depends on its place here.
    cells = (*nulls(PANELS), *powers(), *nulls(ALSO), *sizes())
    tasks = [
        (cell, panels_of(cell, args.panels), args.seed, place)
        for place, cell in enumerate(cells)
        if args.only in ("", table_of(cell, place))
    ]
    with ProcessPoolExecutor(args.processes) as pool:
        done = list(pool.map(counted, tasks))
    by_table: dict[str, list[Counted]] = {name: [] for name in TABLES}
    for (cell, _, _, place), made in zip(tasks, done, strict=True):
        by_table[table_of(cell, place)].append(made)
    print(f"{args.panels} panels in each cell (of {FEWER_PANELS} graders: half), ", end="")
    print(f"seed {args.seed}, thresholds 1/3 and 20.\n")
    if by_table["null"]:
        print_null(by_table["null"])
    if by_table["power"]:
        print_power(by_table["power"])
    if by_table["sizes"]:
        print_sizes(by_table["sizes"])


def nulls(panels: Sequence[int]) -> list[Cell]:
    return [
        Cell(graders, rare, varied, gold)
        for gold, graders, rare, varied in itertools.product(
            (False, True), panels, RARE_EXPECTED, (False, True)
        )
    ]


def powers() -> list[Cell]:
    return [
        Cell(POWER_PANEL, rare, True, gold, ratio)
        for gold, rare, ratio in itertools.product((False, True), RARE_EXPECTED, RATIOS)
    ]


def sizes() -> list[Cell]:
    return [
        Cell(graders, SIZES_RARE, varied, gold, SIZES_RATIO)
        for gold, graders, varied in itertools.product(
            (False, True), sorted((*PANELS, *ALSO)), (False, True)
        )
    ]


def table_of(cell: Cell, place: int) -> str:
    """The table that the cell at this place stands in."""
    if cell.ratio == 1:
        return "null"
    return "power" if place < len(nulls(PANELS)) + len(powers()) else "sizes"


def print_null(done: list[Counted]) -> None:
    for gold in (False, True):
        kinds = ("found", "certain", *(("inflated",) if gold else ()))
        print(f"No collapse, {'with' if gold else 'without'} gold: panels with any finding\n")
        of = [c for c in done if c.cell.gold is gold]
        rows = []
        for graders, rare in itertools.product(sorted((*PANELS, *ALSO)), RARE_EXPECTED):
            cells = [
                share(getattr(c, kind), c.panels)
                for kind in kinds
                for c in of
                if (c.cell.graders, c.cell.rare) == (graders, rare)
            ]
            rows.append(f"| {graders} | {rare} | " + " | ".join(cells) + " |")
        columns = [f"{kind}, clusters {how}" for kind in kinds for how in ("alike", "vary")]
        table("| graders | rare class | " + " | ".join(columns) + " |", rows)
        total = sum(c.panels for c in of)
        together = ", ".join(f"{k} {share(sum(getattr(c, k) for c in of), total)}" for k in kinds)
        print(f"All {total:,} panels: {together}.\n")


def found_certain(one: Counted) -> str:
    return f"{100 * one.found / one.panels:.0f} % ({100 * one.certain / one.panels:.0f} %)"


def print_power(done: list[Counted]) -> None:
    print(f"One grader of {POWER_PANEL} collapses the rare class, clusters vary: found (certain)\n")
    rows = []
    for gold, rare in itertools.product((False, True), RARE_EXPECTED):
        here = [c for c in done if (c.cell.gold, c.cell.rare) == (gold, rare)]
        cells = " | ".join(found_certain(c) for c in here)
        rows.append(f"| {'yes' if gold else 'no'} | {rare} | {cells} |")
    ratios = " | ".join(f"{r:.3g}" for r in RATIOS)
    table(f"| gold | rare class | {ratios} |", rows)
    print_others(done)


def print_sizes(done: list[Counted]) -> None:
    print(
        f"One grader collapses a class of {SIZES_RARE} labels to {SIZES_RATIO:g}: found (certain)\n"
    )
    rows = []
    for graders in sorted((*PANELS, *ALSO)):
        here = [c for c in done if c.cell.graders == graders]
        rows.append(f"| {graders} | " + " | ".join(found_certain(c) for c in here) + " |")
    columns = [
        f"{'with' if gold else 'no'} gold, clusters {how}"
        for gold in (False, True)
        for how in ("alike", "vary")
    ]
    table("| graders | " + " | ".join(columns) + " |", rows)
    print_others(done)


def print_others(done: list[Counted]) -> None:
    total = sum(c.panels for c in done)
    print(
        f"Found of another grader or class in these: {share(sum(c.others for c in done), total)}.\n"
    )


if __name__ == "__main__":
    main()
