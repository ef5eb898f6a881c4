"""``voirdire plan``: how much to grade, from a pilot file or from stated guesses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voirdire.cli.command import Command, examples
from voirdire.cli.flags import AUDITING, READING, takes
from voirdire.cli.output import check_outputs, format_suffixes, note, show, working, write_all
from voirdire.errors import UsageError
from voirdire.options import Options

if TYPE_CHECKING:
    from voirdire.planning import Stratum

EXAMPLES = examples(
    (
        "How many gold labels for a false-accept rate near 10 % within ± 3 points",
        "voirdire plan --false-accept 0.1 --within 0.03 --cluster-size 10 --correlation 0.2",
    ),
    (
        "How many prompts for a gate accuracy near 90 % within ± 4 points",
        "voirdire plan --gate-accuracy 0.9 --within 0.04 --cluster-size 14 --correlation 0.05",
    ),
    (
        "What a pilot could have shown, and how much more is needed",
        "voirdire plan jailbreakbench.csv --layout wide --response Index --cluster goal_id "
        "--graders harmbench_cf,gpt4_cf,llamaguard2_cf,llama3_cf --gold human_majority --scale 0,1",
    ),
    (
        "How many responses to see a class collapse to a fifth, with power 90 %",
        "voirdire plan --class-share 0.1 --ratio 0.2 --judges 4 --power 0.9",
    ),
    (
        "How many phrasings, and how many votes",
        "voirdire plan --factor 3 --disagreement 0.05 --vote-rate 0.4 --flips 0.03",
    ),
    (
        "Human labels by stratum",
        "voirdire plan --strata easy=900:0.02 --strata hard=100:0.3 --within 0.02 -o plan.html",
    ),
)

_GUESSES = "Guesses, where no pilot has them"
_WANTED = "What is wanted"
_LIMITS = "What there is at most"


@takes(READING, AUDITING)
def plan(
    *,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]",
            help="A pilot: labels or a checklist, as for voirdire audit. Without it, state guesses.",
            show_default=False,
        ),
    ] = None,
    false_accept: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="The false-accept rate.",
            rich_help_panel=_GUESSES,
            show_default=False,
        ),
    ] = None,
    gate_accuracy: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="The gate accuracy.", rich_help_panel=_GUESSES, show_default=False
        ),
    ] = None,
    cluster_size: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Responses in a cluster; for false accepts those that gold calls absent. Default: the "
            "pilot’s, else 1.",
            rich_help_panel=_GUESSES,
            show_default=False,
        ),
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="The labels’ correlation within a cluster. Default: the pilot’s, else 0 (0.2 for classes).",
            rich_help_panel=_GUESSES,
            show_default=False,
        ),
    ] = None,
    class_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="How often a class is given. Default: the pilot’s rarest class.",
            rich_help_panel=_GUESSES,
            show_default=False,
        ),
    ] = None,
    judges: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Graders in the panel. Default: the pilot’s, else 4.",
            rich_help_panel=_GUESSES,
            show_default=False,
        ),
    ] = None,
    with_gold: Annotated[
        bool,
        typer.Option(
            "--with-gold",
            help="The collapse is seen beside gold, not beside other graders.",
            rich_help_panel=_GUESSES,
            metavar="",
        ),
    ] = False,
    disagreement: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="How often two votes on a response differ.",
            rich_help_panel=_GUESSES,
            show_default=False,
        ),
    ] = None,
    vote_rate: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="The share of votes that say yes. Default: 0.5.",
            rich_help_panel=_GUESSES,
            show_default=False,
        ),
    ] = None,
    strata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SIZE:RATE",
            help="A stratum, how many responses it holds, and the rate there. Repeatable.",
            rich_help_panel=_GUESSES,
            show_default=False,
        ),
    ] = None,
    within: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Half the width of intervals, as an audit gives them.",
            rich_help_panel=_WANTED,
        ),
    ] = 0.05,
    power: Annotated[
        float, typer.Option(metavar="SHARE", help="The power of findings.", rich_help_panel=_WANTED)
    ] = 0.8,
    ratio: Annotated[
        float,
        typer.Option(
            metavar="RATIO", help="The collapse that is to be seen.", rich_help_panel=_WANTED
        ),
    ] = 0.2,
    flips: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="On how many responses a majority of votes may flip.",
            rich_help_panel=_WANTED,
        ),
    ] = 0.02,
    factor: Annotated[
        float | None,
        typer.Option(
            metavar="TIMES",
            help="The upper end of the phrasing component, in times of the estimate. Default: 3, where the "
            "pilot has phrasings.",
            rich_help_panel=_WANTED,
            show_default=False,
        ),
    ] = None,
    most_clusters: Annotated[
        int, typer.Option(metavar="N", help="Clusters; 0: no limit.", rich_help_panel=_LIMITS)
    ] = 0,
    most_labels: Annotated[
        int, typer.Option(metavar="N", help="Human labels; 0: no limit.", rich_help_panel=_LIMITS)
    ] = 0,
    most_phrasings: Annotated[
        int, typer.Option(metavar="N", help="Phrasings; 0: no limit.", rich_help_panel=_LIMITS)
    ] = 0,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the plan here too; the suffix picks the format, as for voirdire audit. Repeatable.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            help="Print no plan, only notices and errors.",
            rich_help_panel="Output",
            metavar="",
        ),
    ] = False,
    options: Options,
) -> None:
    """Plan how much to grade: the precision to expect, and the numbers needed for a stated one.

    From a pilot file, or from stated guesses; a stated guess stands above the pilot. Half widths are those of the
    interval that an audit will give. What has a formula is computed, the rest is simulated, and each answer says
    which. A plan that cannot be met says the best that can.
    """
    outputs = output or []
    check_outputs(outputs, inputs or [], format_suffixes() if outputs else (), what="a plan")

    from voirdire import __version__, auditing, planning

    guesses = planning.Guesses(
        false_accept=false_accept,
        gate_accuracy=gate_accuracy,
        correlation=correlation,
        cluster_size=cluster_size,
        within=within,
        class_share=class_share,
        ratio=ratio,
        graders=judges,
        with_gold=with_gold,
        power=power,
        rate=vote_rate,
        disagreement=disagreement,
        flips=flips,
        factor=factor,
        strata=tuple(_stratum(text) for text in strata or ()),
        most=most_clusters,
        most_labels=most_labels,
        most_phrasings=most_phrasings,
        level=options.level,
        seed=options.seed,
    )
    guesses.check()
    pilot = None
    if inputs:
        with working("Reading", quiet=quiet) as progress:
            labels = auditing.read(*inputs, options=options, progress=progress)
        note(labels.notices)
        pilot = planning.pilot(labels)
    with working("Planning", quiet=quiet):
        made = planning.document(guesses, pilot, version=__version__)

    def write(path: Path) -> None:
        from voirdire.labels import write_whole

        write_whole(path, auditing.format_of(path).render(made))

    write_all(outputs, write, quiet=quiet)
    if not quiet:
        show(made)


def _stratum(text: str) -> Stratum:
    """``NAME=SIZE:RATE`` as a stratum."""
    from voirdire.planning import Stratum

    name, _, numbers = text.rpartition("=")
    size, _, rate = numbers.partition(":")
    try:
        return Stratum(name=name.strip(), size=int(size), rate=float(rate))
    except ValueError:
        raise UsageError(
            f"--strata {text}: write NAME=SIZE:RATE, such as --strata hard=100:0.3."
        ) from None


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(plan)
