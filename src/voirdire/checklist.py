"""The lines that graders tick: one checklist for all responses, or one for each question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NO = "0"
YES = "1"
SCALE = (NO, YES)  # the two classes of a verdict, as they stand in the table of labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Checklist:
    """Lines by question, in the order of their positions.

    ``lines[q]`` are the names of the lines of ``questions[q]``, as they stand in the ``line`` column:
    ``LINE`` where one checklist serves all responses (then ``questions`` is ``("",)``), else
    ``QUESTION/LINE``. ``texts`` has what a line asks, where the file tells it. ``question`` is the
    column that names the question, empty where there is none.
    """

    questions: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    question: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def own(self) -> bool:
        """Whether each question has its own checklist."""
        return self.questions != ("",)

    @property
    def names(self) -> tuple[str, ...]:
        """All lines, question by question."""
        return tuple(name for lines in self.lines for name in lines)

    def record(self) -> dict[str, Any]:
        """The checklist as plain JSON values; :meth:`of` reads it back."""
        return {
            "questions": list(self.questions),
            "lines": [list(lines) for lines in self.lines],
            "question": self.question,
            "texts": dict(self.texts),
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Checklist:
        return cls(
            questions=tuple(record["questions"]),
            lines=tuple(tuple(lines) for lines in record["lines"]),
            question=str(record.get("question", "")),
            texts=dict(record.get("texts", {})),
        )
