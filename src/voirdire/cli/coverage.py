"""``voirdire simulate coverage``: how often intervals hold the truth, measured over known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from voirdire.cli.command import Command, examples
from voirdire.cli.output import check_outputs, format_suffixes, show, working, write_all

TABLES = (".json", ".csv")  # written as rows, one a case, method and number of clusters

EXAMPLES = examples(
    (
        "A rate and a kappa with 10 and with 50 clusters; a few seconds",
        "voirdire simulate coverage --case 'rate 0.05' --case 'kappa at 0.5' --clusters 10 --clusters 50 --runs 500",
    ),
    (
        "The same at all seven numbers of clusters, 2,000 data sets each",
        "voirdire simulate coverage --case 'rate 0.05' --case 'kappa at 0.5' -o coverage.csv",
    ),
    (
        "The table that ships, with all cases; some minutes",
        "voirdire simulate coverage -o coverage.json -o coverage.md",
    ),
)


def coverage_command(
    case: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What to measure, such as 'rate 0.05' or kr20; a wrong name lists all. Default: all. "
            "Repeatable.",
            show_default=False,
        ),
    ] = None,
    clusters: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N",
            help="Numbers of clusters. Default: 5, 10, 13, 20, 50, 100, 1000. Repeatable.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="Data sets in a cell.")] = 2000,
    replicates: Annotated[
        int, typer.Option(metavar="N", help="Bootstrap replicates in each data set.")
    ] = 2000,
    correlation: Annotated[
        float, typer.Option(metavar="SHARE", help="Of labels within a cluster.")
    ] = 0.2,
    level: Annotated[
        float, typer.Option(metavar="SHARE", help="The level of the intervals.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed.")] = 20261017,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the table here too: .json and .csv hold its rows, .html .md .txt a page. "
            "Repeatable.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print no table, only errors.", metavar=""),
    ] = False,
) -> None:
    """Measure how often each interval method holds the truth, and on which side it misses.

    Data sets with a known truth go through the engine that makes the product's intervals; beside its
    methods stand two candidates that are not in it. The same seed gives the same table.
    """
    outputs = output or []
    pages = tuple(s for s in format_suffixes() if s in (".html", ".md", ".tex", ".txt", ".pdf"))
    check_outputs(outputs, (), (*TABLES, *pages), what="a table of coverage")

    from voirdire import __version__, auditing
    from voirdire.labels import write_whole
    from voirdire.simulate import coverage

    settings: dict[str, Any] = {
        "runs": runs,
        "seed": seed,
        "level": level,
        "replicates": replicates,
        "correlation": correlation,
    }
    with working("Measuring", quiet=quiet) as progress:
        rows = coverage.table(
            case or None, clusters or coverage.CLUSTERS, progress=progress, **settings
        )
    made = coverage.document(rows, level=level, version=__version__)

    def write(path: Path) -> None:
        match path.suffix.lower():
            case ".json":
                content = coverage.as_json(rows, **settings).encode()
            case ".csv":
                content = coverage.as_csv(rows).encode()
            case _:
                content = auditing.format_of(path).render(made)
        write_whole(path, content)

    write_all(outputs, write, quiet=quiet)
    if not quiet:
        show(made)


def add_to(app: typer.Typer) -> None:
    """Add the command to the group ``simulate``."""
    app.command(name="coverage", cls=Command, epilog=EXAMPLES)(coverage_command)
