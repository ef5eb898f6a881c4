"""Voirdire audits LLM graders as measurement instruments, before anybody believes their rates.

>>> import voirdire as vd
>>> labels = vd.read("labels.csv", gold="final_label")      # doctest: +SKIP
>>> audit = vd.audit(labels, reference="gpt-4")             # doctest: +SKIP
>>> audit.write("audit.html")                               # doctest: +SKIP

The options are those of the command line, with underscores for dashes. Importing this package is
light: what needs polars, scipy or jinja2 is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from narwhals.typing import IntoFrame

    from voirdire import cards, simulate, stats
    from voirdire.auditing import Audit
    from voirdire.cards import Card
    from voirdire.comparing import Comparison
    from voirdire.errors import VoirdireError
    from voirdire.estimate import Estimate, Undefined
    from voirdire.finding import Finding
    from voirdire.labels import Labels
    from voirdire.options import Options

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Card",
    "Comparison",
    "Estimate",
    "Finding",
    "Labels",
    "Options",
    "Undefined",
    "VoirdireError",
    "__version__",
    "audit",
    "cards",
    "compare",
    "read",
    "simulate",
    "stats",
]

_HOMES = {
    "Audit": "voirdire.auditing",
    "Card": "voirdire.cards",
    "Comparison": "voirdire.comparing",
    "Estimate": "voirdire.estimate",
    "Finding": "voirdire.finding",
    "Labels": "voirdire.labels",
    "Options": "voirdire.options",
    "Undefined": "voirdire.estimate",
    "VoirdireError": "voirdire.errors",
}


def read(*inputs: str | Path | IntoFrame, **options: Any) -> Labels:
    """Read label tables, eval logs or data frames into one checked table of labels.

    ``inputs`` are paths, ``"-"`` for standard input, or frames (polars, pandas, Arrow, DuckDB).
    ``options`` are those of ``voirdire audit --help``, with underscores for dashes; lists may be
    given as lists or as ``"a,b"``. Raises :class:`VoirdireError` where an input cannot be read.
    """
    from voirdire import auditing
    from voirdire.options import Options

    return auditing.read(*inputs, options=Options.of(**options))


def audit(labels: Labels, **options: Any) -> Audit:
    """Audit the graders of a table of labels: estimates with intervals, findings, and a report.

    ``options`` are those of ``voirdire audit --help``, with underscores for dashes; what was given
    to :func:`read` still holds.
    """
    from voirdire import auditing
    from voirdire.options import Options

    return auditing.run(labels, Options.of(labels.options, **options))


def compare(
    old: str | Path | IntoFrame,
    new: str | Path | IntoFrame | None = None,
    *,
    old_grader: str = "",
    new_grader: str = "",
    **options: Any,
) -> Comparison:
    """Compare two graders, or two versions of one, on their common responses.

    ``old`` and ``new`` are inputs as for :func:`read`, or results of earlier audits (``.json``, ``.csv``,
    ``.parquet``), which are compared as independent samples; without ``new`` one input holds both.
    ``old_grader`` and ``new_grader`` name them where an input has several. ``options`` are those of
    ``voirdire compare --help``. Raises :class:`VoirdireError` where the two cannot be compared.
    """
    from voirdire import comparing
    from voirdire.options import Options

    return comparing.compare(
        old, new, options=Options.of(**options), old_name=old_grader, new_name=new_grader
    )


def __getattr__(name: str) -> Any:
    if name in ("cards", "simulate", "stats"):
        return importlib.import_module(f"voirdire.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voirdire' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
