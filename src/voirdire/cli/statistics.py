"""``voirdire statistics``: the list of everything that an audit can estimate."""

from __future__ import annotations

import typer

from voirdire.cli.command import Command, examples
from voirdire.cli.output import show

EXAMPLES = examples(("What does each number say, and of what", "voirdire statistics"))


def statistics() -> None:
    """List the statistics: the question each answers, what it describes, needs, and its source."""
    from voirdire import auditing

    show(auditing.statistics())


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(statistics)
