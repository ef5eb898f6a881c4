"""Data of every figure, one plain and one hostile example each, for the tests of all figures at once."""

from __future__ import annotations

from typing import Any

NASTY = (
    '</svg><script>alert("1")</script>&\x1b\u202e| $\\frac{a}{b}$ שלום 長い名前 '
    + "long name " * 20
)

_SCALE = ["refusal", "evasion", "compliance"]


def _interval(value: float | None, width: float = 0.05, **more: Any) -> dict[str, Any]:
    if value is None:
        return {"value": None, "low": None, "high": None, "reason": "not defined"} | more
    return {"value": value, "low": value - width, "high": value + width, "reason": ""} | more


def _shares(name: str = "g") -> dict[str, Any]:
    rows: list[dict[str, Any]] = [
        {"grader": f"{name}{i}", "group": "", "counts": [50 + i, 30 - i, 20, 3], "total": 103,
         "note": "gold" if i == 2 else "", "flagged": i == 1}
        for i in range(3)
    ]  # fmt: skip
    rows.append({"grader": f"{name}9", "group": name, "counts": [7, None, 0, 1], "total": 90,
                 "note": "reference", "flagged": False})  # fmt: skip
    return {"classes": _SCALE, "off_scale": [name], "rows": rows, "highlight": "compliance"}


def _rates(name: str = "g") -> dict[str, Any]:
    dots = [
        {"grader": f"{name}{i}", **{k: v for k, v in _interval(value, value / 5).items() if k != "reason"},
         "role": role, "flagged": i == 0, "note": name}
        for i, (value, role) in enumerate([(0.0, ""), (0.02, "person"), (0.3, "reference"), (0.4, "gold")])
    ]  # fmt: skip
    return {"rates": [{"name": name, "spread": name, "dots": dots}]}


def _people(name: str = "g") -> dict[str, Any]:
    (rate,) = _rates(name)["rates"]
    return {"rate": name, "dots": [d | {"n": 900 + i} for i, d in enumerate(rate["dots"])]}


def _flows(name: str = "g") -> dict[str, Any]:
    rows = [
        {"grader": f"{name}{i}", "stays": 100 - 30 * i, "moved": {"evasion": 31 * i, name: 2},
         "found": 5 + i, "note": "person", "flagged": i == 2}
        for i in range(3)
    ]  # fmt: skip
    return {"class": "compliance", "from": name, "total": 152, "classes": _SCALE, "off_scale": [name],
            "rows": rows}  # fmt: skip


def _kept(name: str = "g") -> dict[str, Any]:
    graders = [{"grader": f"{name}{i}", "note": "person", "flagged": i == 1} for i in range(3)]
    flows = [
        {"class": c, "total": 60 + j, "rows": [
            {"grader": g["grader"], "stays": 40 - 11 * i, "moved": {o: 3 + i for o in _SCALE if o != c}}
            for i, g in enumerate(graders)
        ]}
        for j, c in enumerate(_SCALE)
    ]  # fmt: skip
    return {
        "from": name,
        "classes": _SCALE,
        "off_scale": [name],
        "graders": graders,
        "flows": flows,
    }


def _kappas(name: str = "g") -> dict[str, Any]:
    dots = [
        {"grader": f"{name}{i}", "kappa": k, "kappa_low": k and k - 0.1, "kappa_high": k and k + 0.08,
         "rate": r, "rate_low": r / 2, "rate_high": r * 1.3, "n": 800 + i, "note": "person",
         "flagged": i == 0}
        for i, (k, r) in enumerate([(0.7, 0.02), (0.71, 0.3), (-0.2, 0.25), (None, 0.11)])
    ]  # fmt: skip
    return {"coefficient": "Cohen’s kappa", "standard": name, "standard_rate": 0.24, "rate": name,
            "dots": dots}  # fmt: skip


def _matrix(name: str = "g") -> dict[str, Any]:
    graders = [{"grader": f"{name}{i}", "note": "reference", "flagged": i == 1} for i in range(4)]
    cells = [
        {"row": f"{name}{i}", "column": f"{name}{j}", "value": 0.31 * i - 0.1 * j if i < 3 else None,
         "n": 900 + i, "reason": name if i == 3 else ""}
        for i in range(4)
        for j in range(i)
    ]  # fmt: skip
    return {"graders": graders, "cells": cells, "coefficient": name}


def _path(name: str = "g") -> dict[str, Any]:
    levels = [
        {"step": f"{name}{i}", "value": 0.2 + 0.03 * i, "low": 0.15, "high": 0.3 + 0.01 * i,
         "change": 0.03 if i else None, "change_low": 0.01 if i else None, "change_high": 0.06 if i else None}
        for i in range(4)
    ]  # fmt: skip
    path = {"grader": name, "levels": levels, "total": 0.09, "total_low": 0.02, "total_high": 0.16}
    return {"rates": [{"name": name, "paths": [path]}]}


def _cuts(name: str = "g") -> dict[str, Any]:
    cuts = [
        {"cut": str(4 + i), "judge": _interval(0.7 - 0.1 * i), "gold": _interval(0.75, reason=name),
         "difference": _interval(-0.05 - 0.1 * i)}
        for i in range(2)
    ]  # fmt: skip
    cuts.append({"cut": "9", "judge": _interval(None, reason=name), "gold": _interval(0.6),
                 "difference": _interval(None)})  # fmt: skip
    return {"grader": name, "gold": name, "cuts": cuts}


def _phrasings(name: str = "g") -> dict[str, Any]:
    components = [
        {"name": f"{name}{i}", "value": 0.3 / (i + 1), "low": 0.05, "high": 0.6 + 9 * i,
         "raw": -0.01 if i else 0.3, "phrasing": i == 1}
        for i in range(3)
    ]  # fmt: skip
    return {"graders": [{"grader": name, "phrasings": 3, "components": components}], "fixed": True}


def _curves(name: str = "g") -> dict[str, Any]:
    curves = [
        {"name": name, "grader": name, "class": name, "clusters": [3, 10, 40, 160],
         "half_width": [0.4, 0.2, 0.11 - 0.01 * i, 0.05], "needed": None if i else 150, "now": 20}
        for i in range(2)
    ]  # fmt: skip
    return {"curves": curves, "within": 0.051}


EXAMPLES: dict[str, Any] = {
    "accuracy_two_truths": lambda n: {"cuts": [{"cut": f"{n}4", "own": 0.92, "gold": 0.88},
                                               {"cut": "5", "own": None, "gold": 0.8}]},
    "class_shares": _shares,
    "coverage": lambda n: {"level": 0.95, "cases": [
        {"case": f"{n}{i}", "truth": 0.5, "series": [
            {"method": f"{n}{m}", "clusters": [5, 10, 100], "coverage": [0.7, 0.9 + 0.01 * m, None],
             "runs": [2000, 1999, 0]} for m in range(3)]} for i in range(4)]},
    "decision_path": _path,
    "dependability_cuts": _cuts,
    "differences": lambda n: {"old": n, "new": n + "2", "rows": [
        {"what": f"{n}{i}", "rate": i < 2, "value": None if i == 3 else 0.03 * i - 0.02,
         "low": 0.03 * i - 0.08, "high": 0.03 * i + 0.07} for i in range(4)]},
    "error_by_position": lambda n: {"grader": n, "overall": {"value": 0.04}, "positions": [
        {"position": j + 1, "value": 0.01 * j if j != 3 else None, "low": 0.0, "high": 0.02 + 0.03 * j,
         "n": 180 + j} for j in range(8)]},
    "flow_bands": _flows,
    "kappa_rate": _kappas,
    "kept_moved": _kept,
    "kr20_grid": lambda n: {"spreads": [0, 0.4, 0.8], "errors": [0, 0.05], "mean": [[-0.01, 0.02],
                            [0.3, 0.25], [0.7, 0.66]], "sd": [[0.1, 0.11], [0.06, 0.07], [0.02, 0.03]],
                            "outlined": [[1, 0], [2, 1]],
                            "curve": {"error": 0.0472, "mean": [0.0, 0.26, 0.68], "sd": [0.1, 0.05, 0.02]}},
    "pairwise_matrix": _matrix,
    "people_axis": _people,
    "phrasing_components": _phrasings,
    "planning_curves": _curves,
    "rate_dots": _rates,
    "totals_histogram": lambda n: {"k": 4, "one_length": True, "series": [
        {"grader": f"{n}{r}", "role": r, "counts": [1, 4, 9, 7, 3], "at_ceiling": 3} for r in ("gold", "")]},
    "totals_scatter": lambda n: {"judge": n, "gold": n + "2", "k": 4, "cells": [[0, 1, 3], [2, 2, 8], [4, 3, 1]],
                                 "leniency": {"value": 0.46, "low": 0.3, "high": 0.61}},
    "worst_lines": lambda n: {"grader": n, "lines": [
        {"line": f"{n}{i}", "text": n, "false_accepts": 7 - i, "false_rejects": i, "n": 180 + i}
        for i in range(3)], "other_errors": 12, "other_lines": 5},
}  # fmt: skip


def example(name: str) -> Any:
    """Plain data of a figure."""
    return EXAMPLES[name]("g")


def hostile(name: str) -> Any:
    """The same with names that would break out of a drawing, or out of its width."""
    return EXAMPLES[name](NASTY)
