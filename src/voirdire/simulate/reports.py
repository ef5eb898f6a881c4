"""Sweeps as a report and as files."""

from __future__ import annotations

import inspect
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import voirdire
from voirdire.document import (
    Block,
    Column,
    Document,
    Figure,
    Heading,
    Kind,
    Paragraph,
    Table,
    cell,
)
from voirdire.simulate import sweeps
from voirdire.simulate.sweeps import Progress, Sweep
from voirdire.wording import number

if TYPE_CHECKING:
    import polars as pl

OUTLINED = ((0.6, 0.1), (0.8, 0.2))  # cells of the paper's Figure 2 with one and the same KR-20
WORDS = {
    "accuracy": "accuracy against the true share",
    "livingston_lewis_accuracy": "Livingston–Lewis accuracy",
    "phi_lambda": "Φ(λ)",
    "own_true_score": "accuracy against its own true score",
    "gold": "accuracy against gold",
    "component_response": "component of responses",
    "component_phrasing": "component of phrasings",
    "component_residual": "residual component",
    "dependability_single": "Φ at a single phrasing",
}


def run(
    name: str,
    *,
    replicates: int | None = None,
    responses: int | None = None,
    lines: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """One sweep by name; what is ``None`` is as in the paper. ``lines`` is not for phrasing studies."""
    make = sweeps.SWEEPS[name]
    given: dict[str, Any] = {"replicates": replicates, "seed": seed, "progress": progress}
    takes = inspect.signature(make).parameters
    if "model" in takes:
        bank = sweeps.BANK
        given["model"] = replace(
            bank,
            responses=bank.responses if responses is None else responses,
            lines=bank.lines if lines is None else lines,
        )
    else:
        given |= {"responses": responses, "lines": lines}
    return make(**{k: v for k, v in given.items() if v is not None and k in takes})


def document(made: Mapping[str, Sweep]) -> Document:
    """The sweeps as a report: a table for each, and figures where they can be drawn."""
    blocks: list[Block] = []
    for title, names, say in SECTIONS:
        of = {name: made[name] for name in names if name in made}
        if of:
            blocks += [Heading(text=title), Paragraph(text=(say,))]
            for sweep in of.values():
                blocks.append(_table(sweep))
            blocks += _figures(of)
    replicates = sorted({s.replicates for s in made.values()})
    many = (
        f"{replicates[0]:,}" if len(replicates) == 1 else f"{replicates[0]:,} to {replicates[-1]:,}"
    )
    return Document(
        title="Sweeps over banks whose truth is known",
        summary=(
            f"What statistics return where the truth is known: {len(made)} "
            f"{'sweep' if len(made) == 1 else 'sweeps'}, {many} replicates a cell.",
        ),
        blocks=tuple(blocks),
        estimates=(),
        findings=(),
        version=voirdire.__version__,
    )


SECTIONS = (
    (
        "KR-20 by bank and by judge",
        ("kr20_grid", "kr20_measured_rate", "kr20_one_directional", "kr20_lenient_only"),
        "The spread of the bank and the error of the judge are set apart. KR-20 moves with both, and "
        "its value does not say which of them made it.",
    ),
    (
        "Statistics that look like an accuracy",
        ("phi_lambda_control", "livingston_lewis_control"),
        "Where the model holds, Livingston–Lewis estimates accuracy against the response's own true "
        "score; Φ(λ) is a ratio of squared distances and no accuracy. Where the judge's true score "
        "departs from gold, accuracy against it is not accuracy against gold.",
    ),
    (
        "Studies of responses by phrasings",
        ("phrasing_check",),
        "The components come out right on average. One study of three phrasings leaves two degrees "
        "of freedom to the component of phrasings: the standard deviation says how far single "
        "studies scatter.",
    ),
)


def _level(axis: str, level: float | str) -> str:
    if isinstance(level, str):
        return WORDS.get(level, level)
    return f"{100 * level:g} %" if axis == "error" else f"{level:g}"


def _table(sweep: Sweep) -> Table:
    """Cells with mean and SD: the last of two axes across."""
    note = (
        f"{sweep.name}: {sweep.replicates:,} replicates of {sweep.responses:,} responses, seed "
        f"{sweep.seed}. Each cell: mean, and in brackets the standard deviation over replicates.",
    )
    names = [axis for axis, _ in sweep.axes]
    if len(names) == 1:
        ((axis, levels),) = sweep.axes
        return Table(
            title=sweep.title,
            columns=(
                Column(title=axis),
                Column(title="mean", kind=Kind.COEFFICIENT),
                Column(title="SD", kind=Kind.COEFFICIENT),
                Column(title="Monte-Carlo error", kind=Kind.COEFFICIENT),
            ),
            rows=tuple(
                (
                    cell(_level(axis, level)),
                    cell(_said(sweep.mean[i]), Kind.COEFFICIENT),
                    cell(_said(sweep.sd[i]), Kind.COEFFICIENT),
                    cell(_said(sweep.standard_error[i]), Kind.COEFFICIENT),
                )
                for i, level in enumerate(levels)
            ),
            note=(note[0].partition(" Each cell")[0],),
        )
    (down, rows), (across, columns) = sweep.axes
    return Table(
        title=sweep.title,
        columns=(
            Column(title=down),
            *(
                Column(title=f"{across} {_level(across, c)}".removeprefix("statistic "))
                for c in columns
            ),
        ),
        rows=tuple(
            (
                cell(_level(down, row)),
                *(
                    cell(f"{number(sweep.mean[i, j])} ({number(sweep.sd[i, j])})")
                    for j in range(len(columns))
                ),
            )
            for i, row in enumerate(rows)
        ),
        note=note,
    )


def _said(x: float) -> float | None:
    return None if math.isnan(x) else float(x)


def _rounded(x: Any) -> list[Any]:
    """Nested lists with ``None`` for nan."""
    return [_rounded(v) if getattr(v, "ndim", 0) else _said(float(v)) for v in x]


def _figures(of: Mapping[str, Sweep]) -> Iterator[Figure]:
    if "kr20_grid" in of:
        yield grid_figure(of["kr20_grid"], of.get("kr20_measured_rate"))
    if "livingston_lewis_control" in of:
        yield two_truths_figure(of["livingston_lewis_control"])


def grid_figure(grid: Sweep, measured: Sweep | None = None) -> Figure:
    """TWM Figure 2, from the grid and the run at the measured error."""
    (_, spreads), (_, errors) = grid.axes
    data: dict[str, Any] = {
        "spreads": list(spreads),
        "errors": list(errors),
        "mean": _rounded(grid.mean),
        "sd": _rounded(grid.sd),
        "outlined": [
            [spreads.index(s), errors.index(e)] for s, e in OUTLINED if s in spreads and e in errors
        ],
    }
    if measured is not None and measured.axes[0][1] == spreads:
        data["curve"] = {
            "error": sweeps.MEASURED,
            "mean": _rounded(measured.mean),
            "sd": _rounded(measured.sd),
        }
    low, high = (number(float(x)) for x in (grid.mean.min(), grid.mean.max()))
    return Figure(
        name="kr20_grid",
        title="KR-20 by the spread of the bank and the judge’s error",
        data=data,
        alt=(
            f"Mean KR-20 for {len(spreads)} spreads and {len(errors)} errors, from {low} to {high}; it "
            "rises with the spread of the bank and falls with the error of the judge.",
        ),
        caption=(
            "The outlined cells have one and the same KR-20 in the long run, at twice the error: the "
            "value does not tell a wide bank with a poor judge from a narrower one with a better.",
        )
        if data["outlined"]
        else (),
    )


def two_truths_figure(sweep: Sweep) -> Figure:
    """TWM Figure A.2b: accuracy against the judge's own true score and against gold."""
    cuts = sweep.axes[1][1]
    held = [
        {"cut": str(cut), "own": _said(sweep.mean[0, i]), "gold": _said(sweep.mean[1, i])}
        for i, cut in enumerate(cuts)
    ]
    words = "; ".join(f"cut {h['cut']}: {number(h['own'])} and {number(h['gold'])}" for h in held)  # type: ignore[arg-type]
    return Figure(
        name="accuracy_two_truths",
        title="Accuracy against the judge’s own true score and against gold",
        data={"cuts": held},
        alt=(f"Accuracy against the judge’s own true score and against gold: {words}.",),
        caption=(
            "A simulation in which the lines are no sample and the judge’s true score departs from "
            "gold. On a real bank, sampling of lines moves the difference the other way.",
        ),
    )


# --- files --------------------------------------------------------------------------------------


def table_bytes(frame: pl.DataFrame, suffix: str) -> bytes:
    """A table as CSV or Parquet."""
    held = io.BytesIO()
    write: Callable[[io.BytesIO], Any] = (
        frame.write_csv if suffix == ".csv" else frame.write_parquet
    )
    write(held)
    return held.getvalue()


def write(made: Mapping[str, Sweep], path: Path) -> None:
    """Write sweeps: a report, or their cells as .csv, .parquet or .json. Raises :class:`UsageError`."""
    from voirdire.labels import write_whole

    suffix = path.suffix.lower()
    if suffix in (".csv", ".parquet"):
        write_whole(path, table_bytes(sweeps.table(list(made.values())), suffix))
    elif suffix == ".json":
        rows = [row for sweep in made.values() for row in sweep.rows()]
        content = {"voirdire": voirdire.__version__, "cells": rows}
        text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        write_whole(path, text.encode("utf-8"))
    else:
        from voirdire import auditing

        write_whole(path, auditing.format_of(path).render(document(made)))
