"""Grading: graders run over stored responses, every call kept, none asked for twice.

::

    from voirdire.grading import Study, grade

    graded = grade(Study.load("study.toml"))
    graded.outcomes      # how the calls ended
    graded.labels        # what vd.audit takes

"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voirdire.grading.grading import Graded, Work, grade, prepare, reparse
    from voirdire.grading.plan import Study

__all__ = ["Graded", "Study", "Work", "grade", "prepare", "reparse"]


def __getattr__(name: str) -> Any:
    """What is offered is imported when it is asked for: providers and parsers need none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    where = "plan" if name == "Study" else "grading"
    return getattr(import_module(f"voirdire.grading.{where}"), name)
