"""``voirdire simulate``: banks and panels whose truth is known, and what statistics return on them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voirdire.cli import coverage
from voirdire.cli.command import Command, Group, examples
from voirdire.cli.output import check_outputs, format_suffixes, show, working, write_all
from voirdire.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from voirdire.simulate.panels import Fault
    from voirdire.simulate.sweeps import Sweep

TABLES = (".csv", ".parquet")
CELLS = (".csv", ".parquet", ".json")

BANK_EXAMPLES = examples(
    (
        "A bank like that of the paper, and its audit",
        "voirdire simulate bank --spread 0.6 --error 0.05 --questions 15 -o bank.csv\n"
        "  $ voirdire audit bank.csv --layout checklist --gold gold",
    ),
    (
        "A perfect grader: what does each coefficient say of it on this bank?",
        "voirdire simulate bank --error 0 --spread 0.3 --responses 500 --lines 8 -o perfect.csv",
    ),
    (
        "A judge that accepts 10 % of absent lines and rejects 0.1 %, its errors alike within a response",
        "voirdire simulate bank --false-accept 0.1 --false-reject 0.001 "
        "--clustered response --error-correlation 0.2 -o lenient.parquet",
    ),
)
PANEL_EXAMPLES = examples(
    (
        "Five graders, of whom one hardly gives the top class",
        "voirdire simulate panel --collapse g1:high=0.1 -o panel.csv\n"
        "  $ voirdire audit panel.csv --gold gold --scale low,middle,high",
    ),
    (
        "One that repeats another's labels, and one that cannot be read where it matters",
        "voirdire simulate panel --follow g2=g3:0.9 --unread g4:high=0.3 -o panel.parquet",
    ),
    (
        "No fault at all, in clusters that are not alike: does anything get flagged?",
        "voirdire simulate panel --clusters 20 --correlation 0.4 --seed 7 -o clean.csv",
    ),
)
SWEEP_EXAMPLES = examples(
    ("All sweeps of the paper, with figures", "voirdire simulate sweeps -o sweeps.html"),
    (
        "KR-20 by spread and error on a bank like yours",
        "voirdire simulate sweeps --sweep kr20_grid --responses 500 --lines 20 -o cells.csv",
    ),
    (
        "More replicates, so that the cells are surer",
        "voirdire simulate sweeps --replicates 2000 -o sweeps.md -o cells.parquet",
    ),
)
EXAMPLES = examples(
    ("A bank of verdicts with its truth", "voirdire simulate bank -o bank.csv"),
    (
        "A panel in which one grader hardly gives a class",
        "voirdire simulate panel --collapse g1:high=0.1 -o panel.csv",
    ),
    ("What coefficients return by bank and by judge", "voirdire simulate sweeps -o sweeps.html"),
)

app = typer.Typer(cls=Group, no_args_is_help=True)

_SEED = typer.Option("--seed", help="The same seed gives the same bytes.", metavar="N")
_QUIET = typer.Option("--quiet", help="Only errors.", metavar="", rich_help_panel="Output")
_TABLE = typer.Option(
    "-o",
    "--output",
    metavar="FILE",
    help="The table to write: .csv or .parquet; its truth is written beside it as .truth.json. "
    "Repeatable.",
    rich_help_panel="Output",
    show_default=False,
)
_NO_GOLD = typer.Option(
    "--no-gold",
    help="Leave gold out of the table; it stays in the truth.",
    metavar="",
    rich_help_panel="Output",
)


def bank(
    output: Annotated[list[Path], _TABLE],
    spread: Annotated[
        float,
        typer.Option(help="Width of the range of the responses' rates, 0 to 1.", metavar="S"),
    ] = 0.6,
    error: Annotated[
        float | None,
        typer.Option(
            help="The judge turns over each verdict with this probability. Default: 0.05, where "
            "nothing else is said of its errors.",
            metavar="E",
            show_default=False,
        ),
    ] = None,
    false_accept: Annotated[
        float | None,
        typer.Option(
            help="Share of absent lines that it accepts.", metavar="E", show_default=False
        ),
    ] = None,
    false_reject: Annotated[
        float | None,
        typer.Option(help="Share of present lines it rejects.", metavar="E", show_default=False),
    ] = None,
    lenient: Annotated[
        float | None,
        typer.Option(
            help="Errors per verdict, all of them accepts: the false-accept rate is twice this.",
            metavar="E",
            show_default=False,
        ),
    ] = None,
    clustered: Annotated[
        str,
        typer.Option(help="What errors are alike within: none, line or response.", metavar="BY"),
    ] = "none",
    error_correlation: Annotated[
        float, typer.Option(help="Of two errors on one line or response.", metavar="R")
    ] = 0.0,
    responses: Annotated[int, typer.Option(help="Responses.", metavar="N")] = 210,
    lines: Annotated[int, typer.Option(help="Lines of a checklist, K.", metavar="K")] = 10,
    questions: Annotated[
        int, typer.Option(help="Questions, each with a checklist of its own.", metavar="N")
    ] = 1,
    question_correlation: Annotated[
        float, typer.Option(help="Of the rates of two responses to one question.", metavar="R")
    ] = 0.0,
    seed: Annotated[int, _SEED] = 0,
    no_gold: Annotated[bool, _NO_GOLD] = False,
    quiet: Annotated[bool, _QUIET] = False,
) -> None:
    """Draw a bank of yes/no verdicts whose truth is known: gold's, and a judge's that errs as you say.

    Each response has a rate at which its lines are met, uniform on 0.5 ± spread / 2; gold follows
    that rate, and the judge errs on gold's verdicts. The table is a checklist that audit reads; the
    truth stands beside it.
    """
    check_outputs(output, [], TABLES, what="a bank")
    by_kind = false_accept is not None or false_reject is not None
    if sum((error is not None, lenient is not None, by_kind)) > 1:
        raise UsageError(
            "--error, --lenient and --false-accept with --false-reject each say how the judge errs: "
            "give one of them."
        )

    from voirdire import simulate

    more: dict[str, Any] = {"clustered": clustered, "correlation": error_correlation}
    if by_kind:
        errors = simulate.Errors(
            false_accept=false_accept or 0.0, false_reject=false_reject or 0.0, **more
        )
    elif lenient is not None:
        errors = simulate.Errors.lenient(lenient, **more)
    else:
        errors = simulate.Errors.symmetric(0.05 if error is None else error, **more)
    made = simulate.bank(
        spread=spread,
        errors=errors,
        responses=responses,
        lines=lines,
        questions=questions,
        question_correlation=question_correlation,
        seed=seed,
    )
    truth = made.truth()
    _write(output, made.table(gold=not no_gold), truth | _gold_of(made, no_gold), quiet=quiet)
    if quiet:
        return
    print(
        f"{responses:,} responses of {lines} lines, spread {spread:g}. The judge accepts "
        f"{100 * errors.false_accept:g} % of absent lines and rejects {100 * errors.false_reject:g} % "
        "of present ones."
    )
    if truth["population_kr20"] is not None:
        print(
            f"KR-20 of its verdicts, were there ever more such responses: "
            f"{truth['population_kr20']:.3f}."
        )
    _next(output[0], ["--layout", "checklist", *([] if no_gold else ["--gold", "gold"])])


def _gold_of(made: Any, no_gold: bool) -> dict[str, Any]:
    """Gold's verdicts by response, where the table does not have them."""
    if not no_gold:
        return {}
    return {"gold": dict(zip(made.responses, made.gold.tolist(), strict=True))}


def panel(
    output: Annotated[list[Path], _TABLE],
    graders: Annotated[
        str, typer.Option(help="Their names, or how many: 5 is g1 to g5.", metavar="A,B|N")
    ] = "5",
    responses: Annotated[int, typer.Option(help="Responses.", metavar="N")] = 900,
    clusters: Annotated[int, typer.Option(help="Clusters, of equal size.", metavar="N")] = 100,
    correlation: Annotated[
        float,
        typer.Option(help="Of the truth within a cluster; 0 for clusters alike.", metavar="R"),
    ] = 0.2,
    scale: Annotated[
        str, typer.Option(help="The classes, lowest first.", metavar="A,B")
    ] = "low,middle,high",
    mix: Annotated[
        str, typer.Option(help="Their shares in the truth.", metavar="P,Q")
    ] = "0.6,0.3,0.1",
    keeps: Annotated[
        float,
        typer.Option(
            help="How often a grader repeats the truth; else it draws from the mix.", metavar="P"
        ),
    ] = 0.7,
    collapse: Annotated[
        list[str] | None,
        typer.Option(
            help="Plant: this grader gives a class RATIO times as often, else its neighbour. "
            "Repeatable.",
            metavar="GRADER:CLASS=RATIO",
            rich_help_panel="Faults",
            show_default=False,
        ),
    ] = None,
    inflate: Annotated[
        list[str] | None,
        typer.Option(
            help="Plant: this grader gives a class RATIO times as often (above 1). Repeatable.",
            metavar="GRADER:CLASS=RATIO",
            rich_help_panel="Faults",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        list[str] | None,
        typer.Option(
            help="Plant: this grader repeats another's label on a share of responses. Repeatable.",
            metavar="GRADER=OTHER:SHARE",
            rich_help_panel="Faults",
            show_default=False,
        ),
    ] = None,
    unread: Annotated[
        list[str] | None,
        typer.Option(
            help="Plant: this share of its calls cannot be read, of those whose truth is CLASS or of "
            "all. Repeatable.",
            metavar="GRADER[:CLASS]=SHARE",
            rich_help_panel="Faults",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, _SEED] = 0,
    no_gold: Annotated[bool, _NO_GOLD] = False,
    quiet: Annotated[bool, _QUIET] = False,
) -> None:
    """Draw the labels of a panel whose truth is known, with the faults that you plant.

    Without a fault all graders are equally confused, so that each expects as many labels of every
    class as the truth has. The table has one label a row, and audit reads it; the truth stands
    beside it.
    """
    check_outputs(output, [], TABLES, what="a panel")

    from voirdire import simulate

    names = tuple(_names(graders)) if not graders.strip().isdigit() else _numbered(int(graders))
    classes = tuple(_names(scale))
    made = simulate.panel(
        graders=names,
        responses=responses,
        clusters=clusters,
        correlation=correlation,
        classes=classes,
        mix=tuple(_number("--mix", m) for m in _names(mix)),
        keeps=keeps,
        faults=tuple(_faults(collapse or [], inflate or [], follow or [], unread or [])),
        seed=seed,
    )
    _write(output, made.table(gold=not no_gold), made.truth(), quiet=quiet)
    if quiet:
        return
    faults = made.model.faults
    print(
        f"{responses:,} responses in {clusters:,} clusters, {len(names)} graders; "
        f"{'no fault' if not faults else f'{len(faults)} planted'}."
    )
    gold = [] if no_gold else ["--gold", "gold"]
    _next(output[0], [*gold, "--scale", ",".join(classes)])


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbered(many: int) -> tuple[str, ...]:
    return tuple(f"g{i + 1}" for i in range(many))


def _number(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{flag}: {text!r} is no number.") from None


def _faults(
    collapse: Sequence[str], inflate: Sequence[str], follow: Sequence[str], unread: Sequence[str]
) -> list[Fault]:
    from voirdire.simulate.panels import Collapse, Follow, Inflation, Unread

    made = list[Any]()
    for kind, flag, texts in (
        (Collapse, "--collapse", collapse),
        (Inflation, "--inflate", inflate),
    ):
        for text in texts:
            left, ratio = _split(text, "=", f"{flag} GRADER:CLASS=RATIO")
            grader, class_ = _split(left, ":", f"{flag} GRADER:CLASS=RATIO")
            made.append(kind(grader=grader, class_=class_, ratio=_number(flag, ratio)))
    for text in follow:
        grader, right = _split(text, "=", "--follow GRADER=OTHER:SHARE")
        of, share = _split(right, ":", "--follow GRADER=OTHER:SHARE")
        made.append(Follow(grader=grader, of=of, share=_number("--follow", share)))
    for text in unread:
        left, share = _split(text, "=", "--unread GRADER:CLASS=SHARE or GRADER=SHARE")
        grader, _, class_ = left.partition(":")
        made.append(Unread(grader=grader, class_=class_, share=_number("--unread", share)))
    return made


def _split(text: str, sign: str, form: str) -> tuple[str, str]:
    left, found, right = text.rpartition(sign)
    if not (left and found and right):
        raise UsageError(f"{text!r}: write it as {form}.")
    return left, right


# --- sweeps -------------------------------------------------------------------------------------


def sweeps(
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            help="The sweep to run: kr20_grid, kr20_measured_rate, kr20_one_directional, "
            "kr20_lenient_only, phi_lambda_control, livingston_lewis_control, phrasing_check. "
            "Repeatable. Default: all.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    replicates: Annotated[
        int | None,
        typer.Option(
            help="Replicates of each cell. Default: 60, and 200 phrasing studies.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    responses: Annotated[
        int | None,
        typer.Option(
            help="Responses of each replicate. Default: 210, and 4,000 for the two controls.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    lines: Annotated[
        int | None,
        typer.Option(
            help="Lines of a checklist; not for the phrasing study. Default: 10.",
            metavar="K",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="One seed for all. Default: each sweep's own, as in the paper.",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the sweeps here too; the suffix picks the format: .html .md .txt for a report, "
            ".csv .parquet .json for the cells. Repeatable.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, _QUIET] = False,
) -> None:
    """Run the sweeps of the checklist paper: what statistics return where the truth is known.

    KR-20 by the spread of the bank and the error of the judge; the controls of Φ(λ) and of
    Livingston–Lewis; studies of responses by phrasings.
    """
    outputs = output or []
    check_outputs(outputs, [], (*format_suffixes(), *CELLS) if outputs else (), what="a sweep")

    from voirdire.simulate import reports
    from voirdire.simulate.sweeps import SWEEPS

    names = list(dict.fromkeys(sweep)) if sweep else list(SWEEPS)
    for name in names:
        if name not in SWEEPS:
            raise UsageError(f"--sweep {name!r}: there is none. Sweeps: {', '.join(SWEEPS)}.")
    made: dict[str, Sweep] = {}
    with working("Simulating", quiet=quiet, unit="cells") as progress:
        for name in names:
            made[name] = reports.run(
                name,
                replicates=replicates,
                responses=responses,
                lines=lines,
                seed=seed,
                progress=progress,
            )
    write_all(outputs, lambda path: reports.write(made, path), quiet=quiet)
    if not quiet:
        show(reports.document(made))


# --- files --------------------------------------------------------------------------------------


def _truth_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.truth.json")


def _write(
    outputs: Sequence[Path], frame: pl.DataFrame, truth: dict[str, Any], *, quiet: bool
) -> None:
    from voirdire.labels import write_whole
    from voirdire.simulate.reports import table_bytes

    text = json.dumps(truth, ensure_ascii=False, indent=1, allow_nan=False) + "\n"

    def write(path: Path) -> None:
        write_whole(path, table_bytes(frame, path.suffix.lower()))

    write_all(outputs, write, quiet=quiet)
    beside = list(dict.fromkeys(_truth_path(path) for path in outputs))
    write_all(beside, lambda path: write_whole(path, text.encode("utf-8")), quiet=quiet)


def _next(path: Path, flags: Sequence[str]) -> None:
    print(f"Next: voirdire audit {shlex.join([str(path), *flags])}")


app.command(cls=Command, epilog=BANK_EXAMPLES)(bank)
app.command(cls=Command, epilog=PANEL_EXAMPLES)(panel)
app.command(cls=Command, epilog=SWEEP_EXAMPLES)(sweeps)
coverage.add_to(app)


def add_to(root: typer.Typer) -> None:
    """Add the group of commands."""
    root.add_typer(
        app,
        name="simulate",
        help="Simulate banks and panels whose truth is known, and see what statistics return on them.",
        epilog=EXAMPLES,
    )
