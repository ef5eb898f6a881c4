"""``voirdire audit``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voirdire.cli.command import SUFFIXES, Command, examples
from voirdire.cli.flags import AUDITING, READING, takes
from voirdire.cli.output import check_outputs, format_suffixes, note, show, working, write_all
from voirdire.options import Options

EXAMPLES = examples(
    (
        "Graders in columns, with adjudicated labels as the truth",
        "voirdire audit jailbreakbench.csv --layout wide --response Index --cluster goal_id "
        "--graders harmbench_cf,gpt4_cf,llamaguard2_cf,llama3_cf --gold human_majority --scale 0,1",
    ),
    (
        "Counts from a paper, no truth: who differs from the reference",
        "voirdire audit missing_class_a.csv --layout counts --scale refusal,evasion,compliance "
        "--off-scale gibberish,refused_in_cot --refusal-like refused_in_cot "
        "--reference gemini-2.5-flash",
    ),
    (
        "A page to read and a table to compute with",
        "voirdire audit missing_class_a.csv --layout counts --scale refusal,evasion,compliance "
        "--off-scale gibberish,refused_in_cot -o audit.html -o results.csv",
    ),
    ("The JSON schema of audit.json", "voirdire audit --schema"),
)


def _print_schema(asked: bool) -> None:
    if asked:
        import json

        from voirdire.formats.json import schema

        typer.echo(json.dumps(schema(), indent=2))
        raise typer.Exit


@takes(READING, AUDITING)
def audit(
    *,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Label, count or checklist tables or eval logs (CSV, TSV, JSON, JSONL, Parquet); "
            "- is standard input. Several are appended.",
            show_default=False,
        ),
    ],
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help=f"Write the report here too; the suffix picks the format: {SUFFIXES}. Repeatable.",
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
    """Audit graders: rates with intervals, lost classes, agreement, and what may not be said.

    Reads the labels that several graders gave to the same responses, and prints a report. Files
    named with -o are written first.
    """
    outputs = output or []
    check_outputs(outputs, inputs, format_suffixes() if outputs else (), what="a report")

    from voirdire import auditing

    with working("Reading", quiet=quiet) as progress:
        labels = auditing.read(*inputs, options=options, progress=progress)
    note(labels.notices)
    with working("Auditing", quiet=quiet):
        result = auditing.run(labels)  # under its options, with those that the table itself carries
    write_all(outputs, result.write, quiet=quiet)
    if not quiet:
        show(result.document, brief=True)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(audit)
