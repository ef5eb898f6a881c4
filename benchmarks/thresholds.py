"""For which thresholds the collapse rule flags the same graders on the shipped count tables.

The rule's flags can only change where a threshold passes one of the ratios between two printed counts,
or the base one of the counts. So every stretch between two such places is tried once, with voirdire's own rule.

    python benchmarks/thresholds.py
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.resources import as_file, files

import voirdire as vd
from voirdire.auditing import scenes
from voirdire.corroboration import Rule, testable_classes
from voirdire.inference import Settings, estimates
from voirdire.scene import Estimates, Scene
from voirdire.stats.collapse import FAMILY

TABLES = ("missing_class_a.csv", "missing_class_b.csv")
PRINTED = {(g, "compliance") for g in ("Llama-3.1-8B", "gemma-2-9b-it", "Qwen3-8B")}

Flags = set[tuple[str, str]]
Panel = tuple[Scene, Estimates]


def panel(table: str) -> Panel:
    """The scene of a shipped count table and its collapse ratios."""
    with as_file(files("voirdire") / "data" / table) as path:
        labels = vd.read(
            path,
            layout="counts",
            scale="refusal,evasion,compliance",
            off_scale="gibberish,refused_in_cot",
            refusal_like="refused_in_cot",
        )
    scene, _ = scenes(labels)
    return scene, Estimates(estimates(FAMILY.parts(scene), Settings(), with_intervals=False))


def flags(of: Panel, *, below: float, base: int) -> Flags:
    """The graders and classes that the rule finds under these thresholds."""
    scene, made = of
    scene = replace(scene, options=replace(scene.options, collapse_below=below, collapse_base=base))
    rule = Rule(scene, made)
    return {
        (grader, class_)
        for grader in scene.panel
        for class_ in testable_classes(scene)
        if (reading := rule.read(grader, class_)) is not None and reading.verdict == "found"
    }


def ratios(panels: Sequence[Panel]) -> list[float]:
    """Every ratio of two printed counts, in order."""
    found = {
        e.number for _, made in panels for e in made.of("collapse_ratio") if e.number is not None
    }
    return sorted(found)


def counts(panels: Sequence[Panel]) -> list[int]:
    """Every printed count, in order."""
    found = {e.number for _, made in panels for e in made.of("collapse_other")}
    return sorted(int(n) for n in found if n is not None)


def stretch(same: Sequence[bool], ends: Sequence[float], at: float) -> tuple[float, float]:
    """The stretch around ``at`` throughout which the flags are the same; one ``same`` between two ends."""
    here = max(i for i in range(len(same)) if ends[i] <= at)
    low = high = here
    while low > 0 and same[low - 1]:
        low -= 1
    while high < len(same) - 1 and same[high + 1]:
        high += 1
    return ends[low], ends[high + 1]


def told(flagged: Iterable[tuple[str, str]]) -> str:
    return ", ".join(sorted(f"{g} {c}" for g, c in flagged)) or "nobody"


def main() -> None:
    panels = [panel(t) for t in TABLES]
    for name, of in zip(TABLES, panels, strict=True):
        print(f"{name} at 1/3 and 20: {told(flags(of, below=1 / 3, base=20))}")
        assert flags(of, below=1 / 3, base=20) == PRINTED
    print()
    for name, some in (*zip(TABLES, ([p] for p in panels), strict=True), ("both", panels)):
        ends = [0.0, *[r for r in ratios(some) if 0 < r < 1], 1.0]
        middle = [(a + b) / 2 for a, b in itertools.pairwise(ends)]
        same = [all(flags(p, below=m, base=20) == PRINTED for p in some) for m in middle]
        low, high = stretch(same, ends, 1 / 3)
        below = [flags(p, below=low * 0.999, base=20) for p in some]
        above = [flags(p, below=high * 1.001, base=20) for p in some]
        print(f"{name}: the flags stay for thresholds above {low:.4f} up to {high:.4f} (base 20)")
        print(f"  just below, no longer: {told(PRINTED - set.intersection(*below))}")
        print(f"  just above, too: {told(set.union(*above) - PRINTED)}")
    print()
    # A base of n asks for n labels or more, so flags change at a count plus one.
    ends = [1, *[n + 1 for n in counts(panels)]]
    same = [all(flags(p, below=1 / 3, base=int(b)) == PRINTED for p in panels) for b in ends[:-1]]
    low, high = stretch(same, ends, 20)
    print(f"both: the flags stay for a base from {low:.0f} to {high - 1:.0f} (threshold 1/3)")


if __name__ == "__main__":
    main()
