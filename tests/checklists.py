"""Banks of verdicts for tests: built from matrices, and the paper's real bank."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from voirdire.checklist import SCALE, Checklist
from voirdire.labels import ALL_OUTCOMES, Grader, Labels
from voirdire.options import Options
from voirdire.rows import CANONICAL

SHARED = Path(__file__).resolve().parents[2] / "shared"
REAL_BANK = SHARED / "data" / "judge-item-bank"

Matrix = Sequence[Sequence[float | None]] | np.ndarray


def verdicts(
    graders: Mapping[str, Any],
    *,
    questions: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    lengths: Mapping[str, int] | None = None,
    **options: Any,
) -> Labels:
    """A table of verdicts from one matrix a grader, responses × lines.

    1 and 0 are verdicts, nan a missing one; a row of nan alone is unparsed. With ``questions`` each
    has its own checklist (of ``lengths[question]`` lines, else of all columns), and is the cluster.
    """
    matrices = {g: np.asarray(m, dtype=np.float64) for g, m in graders.items()}
    n, k = next(iter(matrices.values())).shape
    asked = list(questions) if questions is not None else [""] * n
    named = list(dict.fromkeys(asked))
    many = {q: (lengths or {}).get(q, k) for q in named}
    lines = {q: tuple(f"{q}/e{j}" if q else f"e{j}" for j in range(1, many[q] + 1)) for q in named}
    rows = []
    for grader, matrix in matrices.items():
        for i in range(n):
            unparsed = bool(np.isnan(matrix[i, : many[asked[i]]]).all())
            for j, line in enumerate(lines[asked[i]]):
                value = matrix[i, j]
                missing = np.isnan(value)
                rows.append(
                    {
                        "response": f"r{i:06d}",
                        "grader": grader,
                        "label": None if missing else str(int(value)),
                        "outcome": "unparsed" if unparsed else "missing" if missing else "label",
                        "line": line,
                        "cluster": clusters[i] if clusters is not None else asked[i] or f"r{i:06d}",
                        "weight": None if weights is None else float(weights[i]),
                    }
                )
    frame = pl.DataFrame(
        rows,
        schema={
            "response": pl.String,
            "grader": pl.Enum(list(matrices)),
            "label": pl.Enum(SCALE),
            "outcome": pl.Enum(ALL_OUTCOMES),
            "line": pl.String,
            "cluster": pl.String,
            "weight": pl.Float64,
        },
    ).with_columns(pl.lit(None, dtype=pl.String).alias(c) for c in ("vote", "phrasing", "stratum"))
    return Labels(
        frame=frame.select(CANONICAL),
        scale=SCALE,
        off_scale=(),
        ordered=True,
        graders=tuple(Grader(name=g) for g in matrices),
        options=Options.of(**options),
        kind="checklist",
        clusters_declared=clusters is not None or questions is not None,
        checklist=Checklist(
            questions=tuple(named),
            lines=tuple(lines[q] for q in named),
            question="question" if questions is not None else "",
        ),
    )


def real_matrices() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Gold and judge, 210 × 10 (unparsed rows nan), and the question of each response."""
    if not REAL_BANK.is_dir():
        pytest.skip("the real bank (../shared/data/judge-item-bank) is not beside this checkout")
    with (REAL_BANK / "verdicts.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    def matrix(column: str) -> np.ndarray:
        return np.array([[float(b) for b in r[column]] or [np.nan] * 10 for r in rows])

    return matrix("gold"), matrix("judge"), [r["question_id"] for r in rows]


def real_bank(**options: Any) -> Labels:
    """The paper's bank as labels: gold and judge, 15 questions with their own checklists."""
    gold, judge, questions = real_matrices()
    return verdicts({"gold": gold, "judge": judge}, questions=questions, **options)
