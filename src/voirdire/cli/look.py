"""``voirdire look``: what is in a file, and what can be done with it."""

from __future__ import annotations

from typing import Annotated

import typer

from voirdire.cli.command import Command, examples
from voirdire.cli.flags import READING, takes
from voirdire.cli.output import show, working
from voirdire.options import Options

EXAMPLES = examples(
    ("Before anything else", "voirdire look xstest.csv"),
    (
        "Try options out before the audit",
        "voirdire look xstest.csv --layout wide --response model+id --gold final_label "
        "--graders annotation_1,annotation_2,gpt4_label,strmatch_label",
    ),
)


@takes(READING)
def look(
    *,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Files as for voirdire audit; - is standard input.",
            show_default=False,
        ),
    ],
    options: Options,
) -> None:
    """Look into a file: what is in it, what can be computed, what cannot and why, and the next command."""
    from voirdire import looking

    with working("Reading") as progress:
        document = looking.document(inputs, options, progress=progress)
    show(document)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(look)
