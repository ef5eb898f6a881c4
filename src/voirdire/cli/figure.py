"""``voirdire figure``: one figure of an audit, a plan or a simulation as a file, or in the terminal."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voirdire.cli.command import Command, examples
from voirdire.cli.flags import AUDITING, READING, takes
from voirdire.cli.output import WIDTH, check_outputs, note, working, write_all
from voirdire.errors import InputError, UsageError, unreadable
from voirdire.options import Options
from voirdire.wording import listed, plain, plural, printable

if TYPE_CHECKING:
    from voirdire.document import Document, Figure
    from voirdire.figures.base import Drawing
    from voirdire.labels import Labels

SUFFIXES = (".svg", ".pdf", ".png", ".csv")
DPI = 192.0
SCREEN = 96.0  # dots per inch of a page at 100 %

EXAMPLES = examples(
    ("What there is, and what each figure needs", "voirdire figure --list"),
    (
        "Class shares of each grader, for a paper and as data",
        "voirdire figure class_shares missing_class_a.csv --layout counts "
        "--scale refusal,evasion,compliance --off-scale gibberish,refused_in_cot "
        "--refusal-like refused_in_cot --reference gemini-2.5-flash -o shares.svg -o shares.csv",
    ),
    (
        "What each judge keeps of every class of the people",
        "voirdire figure kept_moved jailbreakbench.csv --layout wide --response Index "
        "--cluster goal_id --graders harmbench_cf,gpt4_cf,llamaguard2_cf,llama3_cf "
        "--gold human_majority --scale 0,1 -o kept.svg",
    ),
    ("The coverage of intervals that was measured", "voirdire figure coverage -o coverage.svg"),
)

_PICTURE = "Picture"
_PLANNING = "For planning_curves"
_COMPARING = "For differences"


def _drawings() -> dict[str, Drawing]:
    from voirdire import plugins
    from voirdire.figures.base import Drawing

    return {d.name: d for d in plugins.load("figures", Drawing)}


def _print_list(asked: bool) -> None:
    if not asked:
        return
    drawings = _drawings()
    side = max(len(name) for name in drawings)
    for name, drawing in sorted(drawings.items()):
        typer.echo(f"{name:<{side}}  {drawing.title}")
        if drawing.needs:
            typer.echo(f"{'':<{side}}  needs {drawing.needs}")
    raise typer.Exit


@takes(READING, AUDITING)
def figure(
    *,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Which figure; --list names them.", show_default=False),
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT]...",
            help="The file, as for voirdire audit; some figures need none.",
            show_default=False,
        ),
    ] = None,
    list_: Annotated[
        bool,
        typer.Option(
            "--list",
            help="List the figures with what each needs, and exit.",
            is_eager=True,
            callback=_print_list,
            metavar="",
        ),
    ] = False,
    of: Annotated[
        str | None,
        typer.Option(
            "--of",
            metavar="NAME",
            help="Where there are several of a figure: the one of this grader, class or rate. Default: "
            "all, in numbered files.",
            rich_help_panel=_PICTURE,
            show_default=False,
        ),
    ] = None,
    dark: Annotated[
        bool,
        typer.Option(
            "--dark", help="In the colours of a dark page.", rich_help_panel=_PICTURE, metavar=""
        ),
    ] = False,
    dpi: Annotated[
        float,
        typer.Option(metavar="N", help="Dots per inch of a PNG.", rich_help_panel=_PICTURE),
    ] = DPI,
    false_accept: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="A guess of the false-accept rate.",
            rich_help_panel=_PLANNING,
            show_default=False,
        ),
    ] = None,
    gate_accuracy: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="A guess of the gate accuracy.",
            rich_help_panel=_PLANNING,
            show_default=False,
        ),
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Half the width of intervals that is wanted. Default: 0.05.",
            rich_help_panel=_PLANNING,
            show_default=False,
        ),
    ] = None,
    cluster_size: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Responses in a cluster.",
            rich_help_panel=_PLANNING,
            show_default=False,
        ),
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Their correlation within it.",
            rich_help_panel=_PLANNING,
            show_default=False,
        ),
    ] = None,
    old_name: Annotated[
        str | None,
        typer.Option(
            "--old",
            metavar="NAME",
            help="The old grader. Needed where its file has several.",
            rich_help_panel=_COMPARING,
            show_default=False,
        ),
    ] = None,
    new_name: Annotated[
        str | None,
        typer.Option(
            "--new",
            metavar="NAME",
            help="The new grader. Needed where its file has several.",
            rich_help_panel=_COMPARING,
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the figure here; the suffix picks the format: .svg, .pdf (vectors), .png, or "
            ".csv for its data. Repeatable. Without it the figure is drawn in the terminal.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            help="Print nothing but errors.",
            rich_help_panel="Output",
            metavar="",
        ),
    ] = False,
    options: Options,
) -> None:
    """Make one figure of the report: for a paper, a slide or a page, or its data as a table.

    The figure is the one that voirdire audit (plan, simulate) puts into its report, under the same
    options. PDF and PNG need the extra named plots, which brings matplotlib.
    """
    files, outputs = inputs or [], output or []
    drawing = _drawing(name)
    check_outputs(outputs, files, SUFFIXES, what="a figure")
    if any(path.suffix.lower() in (".pdf", ".png") for path in outputs):
        from voirdire.figures import printing

        printing.check_installed()  # before any work
    guesses = {
        "false_accept": false_accept,
        "gate_accuracy": gate_accuracy,
        "within": within,
        "cluster_size": cluster_size,
        "correlation": correlation,
    }
    sides = {"old": old_name, "new": new_name}
    given: dict[str, Any] = {}
    for owner, held in (("planning_curves", guesses), ("differences", sides)):
        own = {k: v for k, v in held.items() if v is not None}
        if own and name != owner:
            flag = "--" + next(iter(own)).replace("_", "-")
            raise UsageError(f"{flag} is for {owner}; leave it out for {name}.")
        given |= own
    found = _SOURCES.get(name, _audited)(drawing, files, options, given, quiet)
    chosen = _chosen(name, found, of)
    for i, (path, one) in enumerate(_numbered(outputs, chosen)):
        if len(chosen) > 1 and not quiet and i < len(chosen):
            place = path.stem if outputs else ""
            print(f"voirdire: {printable(place)}: {printable(one.title)}", file=sys.stderr)
        content = _content(drawing, one, path.suffix.lower(), dark=dark, dpi=dpi)
        write_all([path], _writer(content), quiet=quiet)
    if not outputs and not quiet:
        _draw(drawing, chosen)


def _drawing(name: str) -> Drawing:
    drawings = _drawings()
    if name in drawings:
        return drawings[name]
    near = difflib.get_close_matches(name.replace("-", "_"), drawings, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UsageError(
        f"There is no figure {name!r}.{hint} Figures: {', '.join(sorted(drawings))}. "
        "What each needs: voirdire figure --list"
    )


# --- where figures come from ----------------------------------------------------------------------

Source = Callable[["Drawing", list[str], Options, dict[str, Any], bool], "list[Figure]"]


def _in_document(drawing: Drawing, document: Document, what: str) -> list[Figure]:
    """The figures of that name in a report; raises :class:`UsageError` where there is none."""
    from voirdire.document import Figure

    drawn = [b for b in document.blocks if isinstance(b, Figure)]
    found = [b for b in drawn if b.name == drawing.name]
    if found:
        return found
    has = list(dict.fromkeys(b.name for b in drawn))
    needs = f" It needs {drawing.needs}." if drawing.needs else ""
    rest = f" There are: {', '.join(has)}." if has else " It has no figure at all."
    raise UsageError(f"{what} gives no {drawing.name}.{needs}{rest}")


def _audited(
    drawing: Drawing, files: list[str], options: Options, given: dict[str, Any], quiet: bool
) -> list[Figure]:
    if not files:
        raise UsageError(f"{drawing.name}: name the file to draw. It needs {drawing.needs}.")
    from voirdire import auditing

    with working("Reading", quiet=quiet) as progress:
        labels = auditing.read(*files, options=options, progress=progress)
    if not quiet:
        note(labels.notices)
    with working("Auditing", quiet=quiet):
        result = auditing.run(labels)
    found = _in_document(drawing, result.document, "This audit")
    if not quiet:
        note(_not_shown(drawing, found, labels))
    return found


def _not_shown(drawing: Drawing, found: Sequence[Figure], labels: Labels) -> list[str]:
    """A notice where the report, and with it its figure and data, has only some of the graders."""
    from voirdire.report import MOST_GRADERS_SHOWN

    many = len(labels.grader_names)
    if many <= MOST_GRADERS_SHOWN:
        return []
    names = set(labels.grader_names)
    columns, rows = drawing.table(found[0].data)
    of = [i for i, c in enumerate(columns) if c in ("grader", "other")]
    shown = {str(row[i]) for row in rows for i in of} & names
    if not of or len(shown) >= many - 1:
        return []
    return [
        f"{many:,} graders: the figure has {len(shown):,} of them, the first and those that are flagged. "
        "Name those that it is to have with --graders A,B,C."
    ]


def _planned(
    drawing: Drawing, files: list[str], options: Options, given: dict[str, Any], quiet: bool
) -> list[Figure]:
    from voirdire import __version__, auditing, planning

    guesses = planning.Guesses(**given, level=options.level, seed=options.seed)
    guesses.check()
    pilot = None
    if files:
        with working("Reading", quiet=quiet) as progress:
            labels = auditing.read(*files, options=options, progress=progress)
        if not quiet:
            note(labels.notices)
        pilot = planning.pilot(labels)
    elif not set(given) & {"false_accept", "gate_accuracy"}:
        raise UsageError(
            "planning_curves: say what is to be planned, such as --false-accept 0.1, or name a pilot."
        )
    with working("Planning", quiet=quiet):
        made = planning.document(guesses, pilot, version=__version__)
    return _in_document(drawing, made, "This plan")


def _no_file(drawing: Drawing, files: list[str]) -> None:
    if files:
        raise UsageError(f"{drawing.name} takes no file: it is made of simulated banks.")


def _simulated(
    drawing: Drawing, files: list[str], options: Options, given: dict[str, Any], quiet: bool
) -> list[Figure]:
    from voirdire.simulate import reports

    _no_file(drawing, files)
    changed = options.changed()
    how = {k: changed[k] for k in ("replicates", "seed") if k in changed}
    names = ["kr20_grid", "kr20_measured_rate"]
    if drawing.name == "accuracy_two_truths":
        names = ["livingston_lewis_control"]
    with working("Simulating", quiet=quiet, unit="cells") as progress:
        made = [reports.run(name, progress=progress, **how) for name in names]
    if drawing.name == "accuracy_two_truths":
        return [reports.two_truths_figure(made[0])]
    return [reports.grid_figure(*made)]


def _measured(
    drawing: Drawing, files: list[str], options: Options, given: dict[str, Any], quiet: bool
) -> list[Figure]:
    import json

    from voirdire import measured
    from voirdire.simulate import coverage

    if len(files) > 1:
        raise UsageError("coverage draws one table: name one file, or none for the one that ships.")
    content: Any = measured.table()
    if files:
        try:
            content = json.loads(Path(files[0]).read_bytes())
        except OSError as error:
            raise InputError(unreadable(files[0], error)) from error
        except ValueError as error:
            raise InputError(f"{files[0]}: not JSON ({error}).") from error
        if not isinstance(content, dict):
            content = {}
    rows = coverage.read_table(content)
    return [coverage.figure(rows, level=float(content.get("level", 0.95)))]


def _compared(
    drawing: Drawing, files: list[str], options: Options, given: dict[str, Any], quiet: bool
) -> list[Figure]:
    if not 1 <= len(files) <= 2:
        raise UsageError(
            f"{drawing.name} compares two graders: name the old file and the new one, or one file that "
            "holds both with --old NAME --new NAME."
        )
    from voirdire import comparing

    old, new = files[0], files[1] if len(files) > 1 else None
    with working("Comparing", quiet=quiet) as progress:
        result = comparing.compare(
            old,
            new,
            options=options,
            old_name=given.get("old", ""),
            new_name=given.get("new", ""),
            progress=progress,
        )
    if not quiet:
        note(result.notices)
    return _in_document(drawing, result.document, "This comparison")


_SOURCES: dict[str, Source] = {
    "differences": _compared,
    "planning_curves": _planned,
    "kr20_grid": _simulated,
    "accuracy_two_truths": _simulated,
    "coverage": _measured,
}

# --- which, and how it is written -----------------------------------------------------------------


def _about(one: Figure) -> list[str]:
    """What ``--of`` may name: the grader, class or rate that a figure as a whole is about."""
    keys = ("grader", "judge", "class", "standard", "rate")
    return [str(one.data[k]) for k in keys if isinstance(one.data.get(k), str) and one.data[k]]


def _chosen(name: str, found: Sequence[Figure], of: str | None) -> list[Figure]:
    if of is None:
        return list(found)
    chosen = [one for one in found if of in _about(one)]
    if chosen:
        return chosen
    known = list(dict.fromkeys(n for one in found for n in _about(one)))
    has = plain(listed((printable(n) for n in known), most=20, last="or"))
    hint = f"Name one of {has}." if known else f"There is one {name} for all: leave --of out."
    raise UsageError(f"--of {of}: there is no {name} of it. {hint}")


def _numbered(outputs: Sequence[Path], chosen: Sequence[Figure]) -> list[tuple[Path, Figure]]:
    """Each file with its figure; of several the first is ``name-1``, the second ``name-2``, …"""
    if len(chosen) == 1:
        return [(path, chosen[0]) for path in outputs]
    return [
        (path.with_name(f"{path.stem}-{i}{path.suffix}"), one)
        for path in outputs
        for i, one in enumerate(chosen, start=1)
    ]


def _content(drawing: Drawing, one: Figure, suffix: str, *, dark: bool, dpi: float) -> bytes:
    if suffix == ".csv":
        from voirdire.formats.table import csv_of

        return csv_of(*drawing.table(one.data))
    from voirdire.figures import printing

    svg = drawing.svg(one.data, plain(one.alt))
    if suffix == ".svg":
        return printing.standalone(svg, dark=dark)
    missing = printing.missing_letters(svg)
    if missing:
        shown = " ".join(missing[:8]) + (" …" if len(missing) > 8 else "")
        note(
            [
                f"{plural(len(missing), 'letter')} without a font at hand ({shown}): a box stands for "
                "each. Install a font that has them, or write .svg."
            ]
        )
    if suffix == ".pdf":
        return printing.pdf(svg, dark=dark)
    return printing.png(svg, scale=dpi / SCREEN, dark=dark)


def _writer(content: bytes) -> Callable[[Path], None]:
    from voirdire.labels import write_whole

    return lambda path: write_whole(path, content)


def _draw(drawing: Drawing, chosen: Sequence[Figure]) -> None:
    """Draw in the terminal; where a figure has no lines, its text stands for it."""
    import os
    import shutil

    at_terminal = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size((WIDTH, 24)).columns if at_terminal else WIDTH
    try:
        "█─●".encode(sys.stdout.encoding or "utf-8")
        ascii_only = False
    except UnicodeError:
        ascii_only = True
    for i, one in enumerate(chosen):
        if i:
            print()
        print(printable(one.title))
        held = drawing.lines(one.data, width, ascii_only) if drawing.lines else ()
        for line in held or (printable(plain(one.alt)),):
            print(line)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(figure)
