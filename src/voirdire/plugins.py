"""How readers, statistics, checks, figures and formats are found: by folder listing and by entry point.

A plugin is a module-level value of its folder's contract type. Another package adds one with an
entry point in the group ``voirdire.<folder>`` that names such a value.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar, cast

from voirdire.errors import VoirdireError

T = TypeVar("T")


@cache
def _found(folder: str, contract: type[T]) -> tuple[T, ...]:
    package = importlib.import_module(f"voirdire.{folder}")
    plugins: dict[str, T] = {}
    for module_info in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
        module = importlib.import_module(f"voirdire.{folder}.{module_info.name}")
        for value in vars(module).values():
            if isinstance(value, contract):
                plugins.setdefault(value.name, value)  # type: ignore[attr-defined]
    for entry in sorted(entry_points(group=f"voirdire.{folder}"), key=lambda e: e.name):
        try:
            value = entry.load()
        except Exception as error:  # a foreign package must not take the whole tool down unnamed
            raise VoirdireError(
                f"The plugin {entry.name!r} ({entry.value}) could not be loaded: {error}. "
                "Update or uninstall the package that brings it."
            ) from error
        if not isinstance(value, contract):
            raise VoirdireError(
                f"The plugin {entry.name!r} ({entry.value}) is not a {contract.__name__}."
            )
        plugins[value.name] = value  # type: ignore[attr-defined]
    return tuple(plugins.values())


def load(folder: str, contract: type[T]) -> tuple[T, ...]:
    """All plugins of a folder, in the order of their file names, then those of other packages."""
    return _found(folder, contract)  # type: ignore[arg-type]  # a class is hashable


def named(folder: str, name: str) -> Any:
    """The plugin of a folder by its name; raises ``VoirdireError`` where there is none."""
    package = importlib.import_module(f"voirdire.{folder}.base")
    for contract in vars(package).values():
        if isinstance(contract, type) and contract.__module__ == package.__name__:
            for plugin in load(folder, cast("type[Any]", contract)):
                if getattr(plugin, "name", None) == name:
                    return plugin
    raise VoirdireError(f"There is no {name!r} among the {folder}.")
