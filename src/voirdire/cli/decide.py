"""``voirdire decide``: decisions after labelling, each a step that keeps the label before it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voirdire.cli.command import Command, examples
from voirdire.cli.flags import AUDITING, READING, takes
from voirdire.cli.output import check_outputs, note, working, write_all
from voirdire.options import Options
from voirdire.wording import plural, printable

if TYPE_CHECKING:
    from voirdire.deciding import Decided
    from voirdire.labels import Labels

SUFFIXES = (".parquet", ".csv")
MOVES_SHOWN = 6
VOTE_RULE = tuple(flag for flag in AUDITING if flag.name == "vote_rule")

EXAMPLES = examples(
    (
        "A ruling on one class, with its reason, and the rate before and after it",
        "voirdire decide labels.parquet --rule 'ruling: if judge=evasion then refusal' "
        "--reason 'an answer that gives nothing is a refusal' -o decided.parquet\n"
        "  $ voirdire audit decided.parquet",
    ),
    (
        "Labels that a person looked at again (columns response, label, and if need be grader, reason)",
        "voirdire decide labels.parquet --relabel 'second look: relabels.csv' -o decided.parquet",
    ),
    (
        "A majority as a grader of its own, then a rule that looks at two graders",
        "voirdire decide labels.parquet --rule 'majority-of a,b,c -> majority' "
        "--rule 'tie-break: if majority=evasion and a=refusal then majority=refusal' -o decided.csv",
    ),
)


@takes(READING, VOTE_RULE)
def decide(
    *,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="LABELS",
            help="Labels as for voirdire audit; - is standard input.",
            show_default=False,
        ),
    ],
    output: Annotated[
        list[Path],
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The table to write: .parquet (carries the step column) or .csv. Repeatable.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ],
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="[NAME: ]RULE",
            help="'if GRADER=CLASS then CLASS', 'if A=CLASS|CLASS and B=CLASS then A=CLASS', or "
            "'majority-of A,B,C -> NAME'. For a class an outcome (unparsed, …) may stand. Each is a step, "
            "in the order given. Repeatable.",
            rich_help_panel="Decisions",
            show_default=False,
        ),
    ] = None,
    relabel: Annotated[
        list[str] | None,
        typer.Option(
            "--relabel",
            metavar="[NAME: ]FILE",
            help="A table of labels given by hand: response, label, and if need be grader and reason. A "
            "step of its own, after all rules. Repeatable.",
            rich_help_panel="Decisions",
            show_default=False,
        ),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(
            "--reason",
            metavar="TEXT",
            help="Why; for rows of a relabel file that do not say it themselves. Default: the rule's text.",
            rich_help_panel="Decisions",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", help="Only notices and errors.", rich_help_panel="Output", metavar=""
        ),
    ] = False,
    options: Options,
) -> None:
    """Decide on labels after the fact, and keep every earlier label.

    Each rule or relabel file is a step: it adds rows with its name and reason and changes none, and
    voirdire audit shows the path of the rate over the steps. To take decisions in another order, run decide
    again on its own output. A rule looks at one label for each response and grader; where a grader was
    asked several times, the vote rule makes it.
    """
    from voirdire import deciding

    files = [
        str(Path(r if Path(r).exists() else r.rpartition(": ")[2].strip())) for r in relabel or []
    ]
    check_outputs(output, [*inputs, *files], SUFFIXES, what="a table of labels")
    why = " ".join((reason or "").split())
    decisions: list[deciding.Decision] = [
        *(deciding.rule(text, reason=why) for text in rule or []),
        *(deciding.relabel(t, reason=why, encoding=options.encoding) for t in relabel or []),
    ]

    from voirdire import auditing

    with working("Reading", quiet=quiet) as progress:
        labels = auditing.read(*inputs, options=options, progress=progress)
    note(labels.notices)
    decided = deciding.decide(labels, decisions)
    note(notice for step in decided.steps for notice in step.notices)
    if not quiet:
        _tell(decided)
    write_all(output, decided.labels.write, quiet=quiet)
    if not quiet:
        line = shlex.join(_next(output[0], decided.labels))
        print(f"voirdire: the path of the rate: {printable(line)}", file=sys.stderr)


def _next(path: Path, labels: Labels) -> list[str]:
    """The command that audits what was written; a CSV file carries labels only, so it says the rest."""
    line = ["voirdire", "audit", str(path)]
    if path.suffix.lower() == ".parquet":
        return line
    line += ["--step", labels.options.step]
    if labels.options.gold:
        line += ["--gold", labels.options.gold]
    for grader in labels.graders:
        if grader.derived_from:
            line += ["--derived-from", f"{grader.name}={'+'.join(grader.derived_from)}"]
    if labels.ordered:
        line += ["--scale", ",".join(labels.scale)]
        if labels.off_scale:
            line += ["--off-scale", ",".join(labels.off_scale)]
    return line


def _tell(decided: Decided) -> None:
    """What each step did, a line each, on standard error."""
    for step in decided.steps:
        moves = [f"{before} → {after} {n:,}" for (before, after), n in step.moved.items()]
        if len(moves) > MOVES_SHOWN:
            moves = [*moves[: MOVES_SHOWN - 1], f"{len(moves) - MOVES_SHOWN + 1:,} more kinds"]
        told = f" ({', '.join(moves)})" if moves else ""
        line = f"{step.name}: {plural(step.rows, 'label')} decided, {step.changed:,} changed{told}"
        print(f"voirdire: {printable(line)}", file=sys.stderr)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(decide)
