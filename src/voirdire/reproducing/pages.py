"""The ledger of a paper as a report and as files."""

from __future__ import annotations

import io
import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import voirdire
from voirdire import auditing, plugins
from voirdire.document import (
    Block,
    Cell,
    Column,
    Document,
    Heading,
    Kind,
    Paragraph,
    Paste,
    Table,
    cell,
)
from voirdire.errors import UsageError
from voirdire.labels import write_whole
from voirdire.reproducing.base import (
    Basis,
    Holds,
    Ledger,
    Line,
    Reproduction,
    published,
    rows_of,
    source_of,
)
from voirdire.wording import Name, Text, say

NUMBERS = ("lowest", "highest", "tolerance")


def papers() -> dict[str, Reproduction]:
    """The papers that can be reproduced, by name: one file each in this folder."""
    return {r.name: r for r in plugins.load("reproducing", Reproduction)}


def ledger(name: str = "missing-class", figures: Mapping[str, Any] | None = None) -> Ledger:
    """The ledger of a paper. ``figures`` are those that it prints; by default those that ship.

    Raises :class:`UsageError` for a name that is not known.
    """
    known = papers()
    if name not in known:
        raise UsageError(f"{name!r} cannot be reproduced. What can: {', '.join(known)}.")
    paper = known[name]
    made = paper.lines(published(paper.file) if figures is None else figures)
    sources = [source_of(paper.file, len(made))] if figures is None else []
    sources += [source_of(table, rows_of(table)) for table in paper.tables]
    return Ledger(
        name=name,
        title=paper.title,
        lines=made,
        titles=paper.titles,
        sources=tuple(sources),
        note=paper.note,
        later=paper.later,
    )


def document(book: Ledger) -> Document:
    """The ledger as a report: what does not hold first, then a table for each of the paper's."""
    failed = [line for line in book.lines if line.holds is Holds.NO]
    blocks: list[Block] = [
        Heading(text="What came out"),
        Table(
            title="Printed figures by what they rest on",
            columns=(
                Column(title="rests on"),
                *(Column(title=str(h), kind=Kind.COUNT) for h in Holds),
                Column(title="figures", kind=Kind.COUNT),
            ),
            rows=tuple(_counted(book, basis) for basis in Basis if book.count(basis)),
            note=(f"Each figure is recomputed without its own printed value. {book.note}",),
        ),
    ]
    if book.later:
        blocks.append(Paragraph(text=(book.later,)))
    if failed:
        blocks.append(_table("Lines that do not hold", failed, section=True))
    for section, held in itertools.groupby(book.lines, key=lambda line: line.section):
        blocks += [
            Heading(text=section),
            _table(book.titles.get(section, section), list(held)),
        ]
    return Document(
        title=f"Ledger of {book.name}",
        summary=summary(book),
        blocks=tuple(blocks),
        estimates=(),
        findings=(),
        inputs=book.sources,
        version=voirdire.__version__,
    )


def summary(book: Ledger) -> Text:
    """How many figures hold, do not hold, are not determined and cannot be recomputed."""
    states = Counter(line.holds for line in book.lines)
    sentence = "{n} figures of “{title}”: {yes} hold, {no} do not"
    if states[Holds.NOT_DETERMINED]:
        sentence += ", {open} are not determined by what is printed"
    if states[Holds.NOT_RECOMPUTABLE]:
        sentence += ", {closed} cannot be recomputed since the labels are not public"
    return say(
        sentence + ".",
        n=len(book.lines),
        title=book.title,
        yes=states[Holds.YES],
        no=states[Holds.NO],
        open=states[Holds.NOT_DETERMINED],
        closed=states[Holds.NOT_RECOMPUTABLE],
    )


def _counted(book: Ledger, basis: Basis) -> tuple[Cell, ...]:
    of = [line for line in book.lines if line.basis is basis]
    return (
        cell(str(basis)),
        *(cell(sum(line.holds is h for line in of), Kind.COUNT) for h in Holds),
        cell(len(of), Kind.COUNT),
    )


def _table(title: str, held: Sequence[Line], *, section: bool = False) -> Table:
    return Table(
        title=title,
        columns=(
            Column(title="figure"),
            Column(title="printed", kind=Kind.COEFFICIENT),
            Column(title="recomputed", kind=Kind.COEFFICIENT),
            Column(title="±", kind=Kind.COEFFICIENT, help="tolerance"),
            Column(title="holds"),
            Column(title="how"),
        ),
        rows=tuple(
            (
                cell((f"{line.section}: ", *line.what) if section else line.what),
                cell(printed_text(line)),
                cell(recomputed_text(line)),
                cell(_tolerance_text(line)),
                cell(str(line.holds)),
                cell(line.how),
            )
            for line in held
        ),
    )


def printed_text(line: Line) -> str:
    """The printed figure with its unit; ``–`` where none is printed."""
    if line.printed is None:
        return "–"
    return f"{line.printed} {line.unit}".rstrip()


def recomputed_text(line: Line) -> str:
    """What a figure comes out as, with two digits more than are printed."""
    if line.value is None:
        return "–"
    if isinstance(line.value, str):
        return line.value
    low, high = (_digits(x, line.printed) for x in (line.value.low, line.value.high))
    if low == high:
        text = low
    elif math.isinf(line.value.high):
        text = f"at least {low}"
    elif math.isinf(line.value.low):
        text = f"at most {high}"
    else:
        text = f"{low} to {high}"
    return f"{text} {line.unit}".rstrip()


def _digits(x: float, printed: Decimal | int | str | None) -> str:
    exponent = printed.as_tuple().exponent if isinstance(printed, Decimal) else 0
    if not isinstance(printed, Decimal) and float(x).is_integer():
        return f"{x:.0f}"
    return f"{x:.{2 - int(exponent)}f}"


def _tolerance_text(line: Line) -> str:
    if isinstance(line.value, str) or line.value is None:
        return ""
    return "exact" if line.tolerance == 0 else f"{line.tolerance:.2g}"


def listing() -> Document:
    """What ``voirdire reproduce`` can reproduce."""
    known = papers()
    return Document(
        title="What can be reproduced",
        summary=("Each figure that a paper prints, recomputed where what is printed allows it.",),
        blocks=(
            Table(
                title="Papers",
                columns=(Column(title="name", kind=Kind.NAME), Column(title="paper")),
                rows=tuple((cell(Name(name)), cell(paper.title)) for name, paper in known.items()),
            ),
            Paste(
                title="The ledger of one",
                lines=tuple((f"voirdire reproduce {name}",) for name in known),
            ),
        ),
        estimates=(),
        findings=(),
    )


# --- files --------------------------------------------------------------------------------------


def write(book: Ledger, path: Path) -> None:
    """Write the ledger; the suffix picks the format: a report, or its lines as .csv, .json, .parquet."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".json", ".parquet"):
        write_whole(path, auditing.format_of(path).render(document(book)))
        return
    if suffix == ".json":
        content = {
            "voirdire": voirdire.__version__,
            "paper": book.title,
            "holds": book.holds,
            "not_in_this_ledger": book.later,
            "lines": [line.record() for line in book.lines],
        }
        text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        write_whole(path, text.encode("utf-8"))
        return
    import polars as pl

    rows = [
        {k: (None if v is None else str(v)) if k == "recomputed" else v for k, v in r.items()}
        for r in (line.record() for line in book.lines)
    ]
    schema = {k: pl.Float64 if k in NUMBERS else pl.String for k in rows[0]}
    frame = pl.DataFrame(rows, schema=schema)
    held = io.BytesIO()
    if suffix == ".csv":
        frame.write_csv(held)
    else:
        frame.write_parquet(held)
    write_whole(path, held.getvalue())
