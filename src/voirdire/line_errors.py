"""Where a judge errs: its errors on each line of the checklist, as counts and not as rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from voirdire.scene import Scene

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineErrors:
    """A judge's errors against gold, one place a line that was scored, in the order of the lines.

    ``verdicts`` counts the judge's verdicts, ``absent`` those where gold says no, ``accepted`` the
    judge's yes among these and ``rejected`` its no among the others.
    """

    lines: tuple[str, ...]
    verdicts: Array
    absent: Array
    accepted: Array
    rejected: Array

    @property
    def errors(self) -> Array:
        return np.asarray(self.accepted + self.rejected)

    @property
    def total(self) -> int:
        return int(self.errors.sum())

    def worst(self, most: int) -> list[int]:
        """The places of the lines with the most errors, worst first, then by name."""
        errors = self.errors
        order = sorted(range(len(self.lines)), key=lambda i: (-errors[i], self.lines[i]))
        return order[:most]


def counted_errors(scene: Scene, grader: str) -> LineErrors:
    """A judge's errors on the verdicts that it and gold both gave, whatever a response's other lines.

    Counts of verdicts: a frequency weight counts as so many, a design weight changes none.
    """
    bank = scene.bank
    assert bank is not None
    assert scene.gold
    key = ("line errors", grader)
    if key in scene.memory:
        return scene.memory[key]  # type: ignore[no-any-return]
    judge, gold = bank.places[grader], bank.places[scene.gold]
    line, said, true = bank.line, bank.verdicts[:, judge], bank.verdicts[:, gold]
    there = (line >= 0) & (said >= 0) & (true >= 0)
    times = np.ones(bank.responses)
    if bank.frequency and bank.weights is not None:
        times = bank.weights
    times = np.broadcast_to(times[:, None], line.shape)

    def per_line(which: Array) -> Array:
        counts = np.bincount(line[which], weights=times[which], minlength=len(bank.lines))
        return np.rint(counts).astype(np.int64)

    verdicts = per_line(there)
    scored = np.flatnonzero(verdicts)
    made = LineErrors(
        lines=tuple(bank.lines[i] for i in scored),
        verdicts=verdicts[scored],
        absent=per_line(there & (true == 0))[scored],
        accepted=per_line(there & (true == 0) & (said == 1))[scored],
        rejected=per_line(there & (true == 1) & (said == 0))[scored],
    )
    scene.memory[key] = made
    return made
