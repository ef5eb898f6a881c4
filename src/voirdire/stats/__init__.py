"""Families of statistics: one file a family; and their plain array functions, found by name.

>>> import voirdire as vd
>>> vd.stats.cohen_kappa(["a", "b", "a"], ["a", "b", "b"])
0.3999999999999999
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def _functions() -> dict[str, Any]:
    """The plain functions that the families name in ``__all__``."""
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(__path__):
        if info.name == "base":
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        for name in getattr(module, "__all__", ()):
            found[name] = getattr(module, name)
    return found


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    functions = _functions()
    if name in functions:
        return functions[name]
    raise AttributeError(f"module 'voirdire.stats' has no function {name!r}")


def __dir__() -> list[str]:
    return sorted(_functions())
