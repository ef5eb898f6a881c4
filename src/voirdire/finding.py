"""What a check says: found, clear, not applicable or cannot tell, in a sentence a person can act on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from voirdire.estimate import Estimate
from voirdire.wording import Text, plain


class State(StrEnum):
    FOUND = "found"
    CANNOT_TELL = "cannot_tell"
    NOT_APPLICABLE = "not_applicable"
    CLEAR = "clear"


class Strength(StrEnum):
    """How far the evidence carries a finding that was made."""

    CERTAIN = "certain"
    LIKELY = "likely"
    INDICATIVE = "indicative"
    NONE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One answer of one check. ``weight`` orders findings of one state, heaviest first."""

    code: str
    state: State
    sentence: Text
    strength: Strength = Strength.NONE
    grader: str = ""
    other: str = ""
    class_: str = ""
    line: str = ""
    cut: str = ""
    slice: str = ""
    exploratory: bool = False
    evidence: tuple[Estimate, ...] = ()
    next_step: Text = ()
    weight: float = 0.0

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from voirdire import notebook

        return notebook.finding_html(self)

    def record(self) -> dict[str, Any]:
        """The finding as the contract's JSON object."""
        return {
            "code": self.code,
            "state": str(self.state),
            "strength": str(self.strength),
            "grader": self.grader,
            "other": self.other,
            "class": self.class_,
            "line": self.line,
            "cut": self.cut,
            "slice": self.slice,
            "exploratory": self.exploratory,
            "sentence": plain(self.sentence),
            "evidence": [e.row() for e in self.evidence],
        }


_STATES = list(State)
_STRENGTHS = list(Strength)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in the order a reader needs them: found before cannot tell, certain before likely."""
    return sorted(
        findings,
        key=lambda f: (
            _STATES.index(f.state),
            f.exploratory,
            _STRENGTHS.index(f.strength),
            -f.weight,
            f.code,
            f.grader,
            f.class_,
            f.other,
            f.slice,
        ),
    )
