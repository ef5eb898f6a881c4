"""The contract of a check: it reads estimates and says what they mean, in a sentence to act on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from voirdire.finding import Finding
from voirdire.labels import Labels
from voirdire.scene import Estimates, Scene

__all__ = ["Check", "Evidence"]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What checks read: the whole, and its slices, each with the estimates made there.

    ``whole`` is the unsliced scene; ``slices`` are those that ``--by`` asked for and exploratory
    ones (their scene says which); ``estimates`` holds those of all scenes. ``earlier`` are the
    findings of checks that went before. ``labels`` is the table behind it all, for checks that ask
    how columns lie to each other and not what graders say.
    """

    whole: Scene
    slices: Sequence[Scene]
    estimates: Estimates
    clusters_declared: bool
    earlier: tuple[Finding, ...] = ()
    labels: Labels | None = None

    def with_findings(self, findings: Iterable[Finding]) -> Evidence:
        """The same evidence with the findings of one more check."""
        return replace(self, earlier=(*self.earlier, *findings))


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check. ``codes`` are the findings it can make, each with what it says in a line.

    ``would_miss`` says what a clear answer does not rule out. ``rank`` orders checks: one that
    reads the findings of another comes after it. Checks that ``flags`` are set for come first of
    all: the graders that they find are the flagged ones. ``kinds`` are the kinds of labels that the
    check can look at.
    """

    name: str
    codes: dict[str, str]
    run: Callable[[Evidence], Iterable[Finding]]
    would_miss: str
    rank: int = 50
    flags: bool = False
    kinds: tuple[str, ...] = ("labels", "counts")
