"""``voirdire convert``: any input as one plain table of labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voirdire.cli.command import Command, examples
from voirdire.cli.flags import READING, takes
from voirdire.cli.output import check_outputs, note, working, write_all
from voirdire.options import Options

SUFFIXES = (".parquet", ".csv")

EXAMPLES = examples(
    (
        "A wide table as one label a row",
        "voirdire convert jailbreakbench.csv --layout wide --response Index --cluster goal_id "
        "--graders harmbench_cf,gpt4_cf,llamaguard2_cf,llama3_cf --gold human_majority "
        "-o labels.parquet",
    ),
)


@takes(READING)
def convert(
    *,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Files as for voirdire audit; - is standard input.",
            show_default=False,
        ),
    ],
    output: Annotated[
        list[Path],
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The table to write: .parquet or .csv. Repeatable.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ],
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", help="Only notices and errors.", rich_help_panel="Output", metavar=""
        ),
    ] = False,
    options: Options,
) -> None:
    """Convert any input to the one plain table of labels: one label a row, cleaned and checked."""
    check_outputs(output, inputs, SUFFIXES, what="a table of labels")

    from voirdire import auditing

    with working("Reading", quiet=quiet) as progress:
        labels = auditing.read(*inputs, options=options, progress=progress)
    note(labels.notices)
    write_all(output, labels.write, quiet=quiet)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(convert)
