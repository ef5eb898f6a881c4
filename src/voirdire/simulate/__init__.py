"""Banks and panels whose truth is known, and the sweeps of the checklist paper.

>>> from voirdire import simulate
>>> made = simulate.bank(spread=0.6, error=0.05, seed=1)
>>> made.gold.shape, made.judge.shape
((210, 10), (210, 10))
>>> made.truth()["errors"]["false_accept"]
0.05

Every generator takes a seed and returns the truth with the data; the same seed gives the same bytes.
Importing this package is light: numpy is imported when something is drawn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voirdire.simulate.banks import (
        BankModel,
        Errors,
        SimulatedBank,
        bank,
        population_kr20,
        verdicts,
    )
    from voirdire.simulate.panels import (
        Collapse,
        Follow,
        Inflation,
        PanelModel,
        SimulatedPanel,
        Unread,
        panel,
    )
    from voirdire.simulate.sweeps import (
        Sweep,
        kr20_grid,
        kr20_lenient_only,
        kr20_measured_rate,
        kr20_one_directional,
        livingston_lewis_control,
        phi_lambda_control,
        phrasing_check,
        published_sweeps,
    )

__all__ = [
    "BankModel",
    "Collapse",
    "Errors",
    "Follow",
    "Inflation",
    "PanelModel",
    "SimulatedBank",
    "SimulatedPanel",
    "Sweep",
    "Unread",
    "bank",
    "kr20_grid",
    "kr20_lenient_only",
    "kr20_measured_rate",
    "kr20_one_directional",
    "livingston_lewis_control",
    "panel",
    "phi_lambda_control",
    "phrasing_check",
    "population_kr20",
    "published_sweeps",
    "verdicts",
]

_HOMES = {
    "banks": ("BankModel", "Errors", "SimulatedBank", "bank", "population_kr20", "verdicts"),
    "panels": (
        "Collapse",
        "Follow",
        "Inflation",
        "PanelModel",
        "SimulatedPanel",
        "Unread",
        "panel",
    ),
    "sweeps": (
        "Sweep",
        "livingston_lewis_control",
        "kr20_grid",
        "kr20_lenient_only",
        "kr20_measured_rate",
        "kr20_one_directional",
        "phi_lambda_control",
        "phrasing_check",
        "published_sweeps",
    ),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
