"""The contract of a check: it reads estimates and says what they mean, in a sentence to act on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from voirdire.finding import Finding, State
from voirdire.labels import Labels
from voirdire.scene import Estimates, Scene

__all__ = ["Check", "Consequence", "Effect", "Evidence"]


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


class Effect(StrEnum):
    """What a finding does to a use of the grader."""

    FORBIDS = "forbids"
    OPENS = "leaves_open"  # whether the use is all right cannot be told
    CONDITIONS = "sets_a_condition"
    ALLOWS = "allows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """One row of the rule table of grader cards: a finding, a use, and what the one does to the other.

    ``use`` is the name of a use (:mod:`voirdire.cards.uses`). ``where`` says which of the rates that a
    use is about are meant: ``same``, one of just the finding's class; ``part``, one of several classes
    with it; ``other``, one without it; ``rate``, the one of the finding's name; ``any``. ``because``
    says why in the card, as an own sentence without names; of a condition, what has to be done. With
    ``both`` the finding is about its ``other`` as much as about its ``grader``.
    """

    code: str
    use: str
    effect: Effect
    because: str
    state: State = State.FOUND
    where: str = "any"
    both: bool = False


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check. ``codes`` are the findings it can make, each with what it says in a line.

    ``would_miss`` says what a clear answer does not rule out. ``rank`` orders checks: one that
    reads the findings of another comes after it. Checks that ``flags`` are set for come first of
    all: the graders that they find are the flagged ones. ``kinds`` are the kinds of labels that the
    check can look at. ``uses`` says what its findings mean for what a grader may be used for;
    ``no_use`` gives the reason for each code that means nothing for that.
    """

    name: str
    codes: dict[str, str]
    run: Callable[[Evidence], Iterable[Finding]]
    would_miss: str
    rank: int = 50
    flags: bool = False
    kinds: tuple[str, ...] = ("labels", "counts")
    uses: tuple[Consequence, ...] = ()
    no_use: Mapping[str, str] = field(default_factory=dict)
