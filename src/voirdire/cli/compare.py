"""``voirdire compare``: two graders, or two versions of one, on the same responses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voirdire.cli.command import Command, examples
from voirdire.cli.flags import AUDITING, READING, takes
from voirdire.cli.output import check_outputs, format_suffixes, note, show, working, write_all
from voirdire.errors import UsageError
from voirdire.options import Options

EXAMPLES = examples(
    (
        "The same grader under two model versions: two label files",
        "voirdire compare labels-v1.csv labels-v2.csv --scale refusal,partial,compliance",
    ),
    (
        "Two graders of one file, with people as the truth",
        "voirdire compare jailbreakbench.csv --layout wide --response Index --cluster goal_id "
        "--old llamaguard2_cf --new llama3_cf --gold human_majority --scale 0,1",
    ),
    (
        "Every label that changed, as a table",
        "voirdire compare labels-v1.csv labels-v2.csv --changes changed.csv -o compare.html",
    ),
    (
        "Where only the results of two audits are left",
        "voirdire compare old-audit.json new-audit.json",
    ),
)


def _print_schema(asked: bool) -> None:
    if asked:
        import json

        from voirdire.comparing import schema

        typer.echo(json.dumps(schema(), indent=2))
        raise typer.Exit


# Of the options of an audit those that say something of two graders.
_USED = (
    *("rate", "refusal_like", "by", "vote_rule", "cut", "interval", "replicates", "level", "seed"),
    "few_clusters",
)
_LEFT_OUT = ("graders", "people", "derived_from", "range", "about", "reference")
OF_TWO = tuple(f for f in AUDITING if f.name in _USED)
READING_TWO = tuple(f for f in READING if f.name not in _LEFT_OUT)


@takes(READING_TWO, OF_TWO)
def compare(
    *,
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD",
            help="Labels (tables, eval logs, a store) or the results of an audit (.json, .csv, "
            ".parquet) of the old one.",
            show_default=False,
        ),
    ],
    new: Annotated[
        str | None,
        typer.Argument(
            metavar="NEW",
            help="The same of the new one. Without it OLD holds both: name them with --old and --new.",
            show_default=False,
        ),
    ] = None,
    old_name: Annotated[
        str | None,
        typer.Option(
            "--old",
            metavar="NAME",
            help="The old grader. Needed where its file has several.",
            rich_help_panel="Who is compared",
            show_default=False,
        ),
    ] = None,
    new_name: Annotated[
        str | None,
        typer.Option(
            "--new",
            metavar="NAME",
            help="The new grader. Needed where its file has several.",
            rich_help_panel="Who is compared",
            show_default=False,
        ),
    ] = None,
    graders: Annotated[str | None, typer.Option("--graders", hidden=True)] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the report here too; the suffix picks the format. Repeatable.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ] = None,
    changes: Annotated[
        list[Path] | None,
        typer.Option(
            "--changes",
            metavar="FILE",
            help="Write every label that changed here: .csv, .parquet or .jsonl. Repeatable.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            help="Print no report, only notices and errors.",
            rich_help_panel="Output",
            metavar="",
        ),
    ] = False,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Print the JSON schema of the .json report and exit.",
            rich_help_panel="Output",
            is_eager=True,
            callback=_print_schema,
            metavar="",
        ),
    ] = False,
    options: Options,
) -> None:
    """Compare two graders, two versions of one, or one before and after a change of its rubric.

    Says which labels changed, how far rates and class counts moved, and what that is beside gold and
    beside the noise of decoding. From label files the two are paired by response; from results of audits
    they are taken as independent, and the report says what that costs.
    """
    from voirdire import comparing

    if graders is not None:
        raise UsageError(_name_two(graders))
    outputs, tables = output or [], changes or []
    inputs = [old, *([new] if new is not None else [])]
    check_outputs(outputs, inputs, format_suffixes() if outputs else (), what="a report")
    check_outputs(tables, inputs, comparing.CHANGES_SUFFIXES, what="a table of changed labels")
    with working("Comparing", quiet=quiet) as progress:
        result = comparing.compare(
            old,
            new,
            options=options,
            old_name=old_name or "",
            new_name=new_name or "",
            progress=progress,
        )
    note(result.notices)
    write_all(outputs, result.write, quiet=quiet)
    write_all(tables, result.write_changes, quiet=quiet)
    if not quiet:
        show(result.document, brief=True)


def _name_two(graders: str) -> str:
    """What to say to whoever names graders as for an audit."""
    from voirdire.readers._suggest import typed

    names = [n for n in graders.split(",") if n.strip()]
    old, new = names if len(names) == 2 else ("NAME", "NAME")
    return (
        "compare takes two graders, not --graders: name them with "
        f"{typed(['--old', old, '--new', new])}."
    )


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(compare)
