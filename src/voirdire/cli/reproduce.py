"""``voirdire reproduce``: a ledger of every figure that a paper prints, recomputed where it can be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voirdire.cli.command import SUFFIXES, Command, examples
from voirdire.cli.output import check_outputs, format_suffixes, show, working, write_all

DOES_NOT_HOLD = 1

EXAMPLES = examples(
    ("What can be reproduced", "voirdire reproduce"),
    ("The ledger of “The Missing Compliance Class”", "voirdire reproduce missing-class"),
    (
        "The ledger of “Three Ways Classical Test Theory Can Mislead”",
        "voirdire reproduce three-ways",
    ),
    (
        "All lines in a page, and as a table for programs",
        "voirdire reproduce missing-class -o ledger.html -o ledger.csv",
    ),
    ("Only the exit status: 0 where all of them hold", "voirdire reproduce missing-class --quiet"),
)


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]",
            help="The paper: missing-class or three-ways. Without it, what can be reproduced is "
            "listed.",
            show_default=False,
        ),
    ] = "",
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help=f"Write the ledger here too; the suffix picks the format: {SUFFIXES}. Repeatable.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print no ledger, only errors.", metavar=""),
    ] = False,
) -> None:
    """Recompute the figures of a paper, and show which hold, which do not, and which cannot be.

    Each printed figure is one line: what it comes out as from the verdicts that ship, from the
    printed counts or from other printed figures, without its own printed value; or why it cannot
    be recomputed. The exit status is 1 where a line does not hold.
    """
    outputs = output or []
    check_outputs(outputs, [], format_suffixes() if outputs else (), what="a ledger")

    from voirdire import reproducing

    if not name:
        if not quiet:
            show(reproducing.listing())
        return
    with working("Recomputing", quiet=quiet):
        made = reproducing.ledger(name)
    write_all(outputs, lambda path: reproducing.write(made, path), quiet=quiet)
    if not quiet:
        show(reproducing.document(made))
    if not made.holds:
        raise typer.Exit(DOES_NOT_HOLD)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(reproduce)
