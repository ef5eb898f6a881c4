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

    from voirdire import simulate, stats
    from voirdire.auditing import Audit
    from voirdire.errors import VoirdireError
    from voirdire.estimate import Estimate, Undefined
    from voirdire.finding import Finding
    from voirdire.labels import Labels
    from voirdire.options import Options

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Estimate",
    "Finding",
    "Labels",
    "Options",
    "Undefined",
    "VoirdireError",
    "__version__",
    "audit",
    "read",
    "simulate",
    "stats",
]

_HOMES = {
    "Audit": "voirdire.auditing",
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


def __getattr__(name: str) -> Any:
    if name in ("simulate", "stats"):
        return importlib.import_module(f"voirdire.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voirdire' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
