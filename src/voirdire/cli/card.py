"""``voirdire card``: the card of one grader from an audit, and ``voirdire card check`` for cards there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voirdire.cli.command import Command, examples
from voirdire.cli.flags import AUDITING, READING, takes
from voirdire.cli.output import check_outputs, note, show, working, write_all
from voirdire.errors import InputError
from voirdire.options import Options

if TYPE_CHECKING:
    from voirdire.document import Document

CHECK = "check"
INVALID, UNREADABLE = 1, InputError.exit_status

EXAMPLES = examples(
    (
        "The card of a judge, for programs and to read, with the day on which it ends",
        "voirdire card judge_item_bank.csv --cut 5 --of judge --expires 2027-06-30 "
        "-o judge.card.json -o judge.card.md",
    ),
    (
        "One grader of several, from counts alone",
        "voirdire card missing_class_a.csv --layout counts --scale refusal,evasion,compliance "
        "--off-scale gibberish,refused_in_cot --of Qwen3-8B",
    ),
    ("The JSON schema of a card", "voirdire card --schema"),
)
CHECK_EXAMPLES = examples(
    ("Whether a card holds", "voirdire card check judge.card.json"),
    (
        "Whether cards hold, and have not expired on a day",
        "voirdire card check judge.card.json other.card.json --on 2027-01-15",
    ),
)


def _print_schema(asked: bool) -> None:
    if asked:
        import json

        from voirdire.cards import schema

        typer.echo(json.dumps(schema(), indent=2))
        raise typer.Exit


@takes(READING, AUDITING)
def card(
    *,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="What was graded, as for voirdire audit; - is standard input.",
            show_default=False,
        ),
    ],
    of: Annotated[
        str | None,
        typer.Option(
            "--of",
            metavar="NAME",
            help="Whose card it is. Default: the only grader that is not gold.",
            rich_help_panel="Card",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the card here; .json for programs and voirdire card check; .md, .html, .tex, .pdf or .txt "
            "to read. Repeatable.",
            rich_help_panel="Card",
            show_default=False,
        ),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(
            "--date",
            metavar="YYYY-MM-DD",
            help="The date of the card. Default: unknown, as no clock is asked.",
            rich_help_panel="Card",
            show_default=False,
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="YYYY-MM-DD",
            help="The last day on which the card holds.",
            rich_help_panel="Card",
            show_default=False,
        ),
    ] = None,
    valid_days: Annotated[
        int | None,
        typer.Option(
            "--valid-days",
            metavar="N",
            help="The card holds for so many days from --date.",
            rich_help_panel="Card",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            help="Print no card, only notices and errors.",
            rich_help_panel="Card",
            metavar="",
        ),
    ] = False,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Print the JSON schema of the .json card and exit.",
            rich_help_panel="Card",
            is_eager=True,
            callback=_print_schema,
            metavar="",
        ),
    ] = False,
    options: Options,
) -> None:
    """Write a grader's card: who it is, what was measured, and what it may be used for.

    Audits the labels and says on one page what follows for this grader: which uses the findings
    forbid, which are unknown, and on what conditions the rest is allowed. A line that nobody knows
    says unknown, with the reason. voirdire card check CARD… says whether cards hold.
    """
    from voirdire import auditing, cards

    outputs = output or []
    check_outputs(outputs, inputs, cards.suffixes() if outputs else (), what="a card")
    cards.making.expiry(date or "", expires or "", valid_days)  # refused before any work

    with working("Reading", quiet=quiet) as progress:
        labels = auditing.read(*inputs, options=options, progress=progress)
    note(labels.notices)
    cards.making.grader_of(labels, of or "")
    with working("Auditing", quiet=quiet):
        audit = auditing.run(labels)
    made = audit.card(of or "", date=date or "", expires=expires or "", valid_days=valid_days)
    write_all(outputs, made.write, quiet=quiet)
    if not quiet and not outputs:
        show(made.document())


def check(
    *,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="CARD", help="Cards as .json.", show_default=False),
    ],
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="YYYY-MM-DD",
            help="The day on which no card may have expired. Default: it is only said when they do.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Say whether grader cards hold: every line there, none empty, uses that follow from findings.

    Exit status 0: all hold. 1: a line does not hold, or a card has expired. 3: a file cannot be read
    as a card.
    """
    from voirdire import cards

    if on:
        cards.making.day(on, "--on")
    rows: list[tuple[str, str]] = []
    status = 0
    for path in files:
        name = path.name
        try:
            found = cards.check(path, on=on or "")
            content = cards.checking.loaded(path)
        except InputError as error:
            message = str(error).removeprefix(f"{name}: ")
            rows.append((name, message))
            status = UNREADABLE
            continue
        rows += [(name, f"{p.path} {p.message}") for p in found]
        if found:
            status = max(status, INVALID)
        else:
            rows.append((name, _holds(content)))
    show(_document(rows, status))
    if status:
        raise typer.Exit(status)


def _holds(content: dict[str, Any]) -> str:
    import voirdire
    from voirdire.cards import checking

    expires = content["expires"]
    said = (
        f"holds; expires on {expires}"
        if isinstance(expires, str)
        else f"holds; when it expires is unknown ({next(iter(expires.values()))})"
    )
    why = checking.not_held(content, version=voirdire.__version__)
    return f"{said}; its uses were not held against its findings: {why}" if why else said


def _document(rows: list[tuple[str, str]], status: int) -> Document:
    from voirdire.document import Column, Document, Kind, Table, cell
    from voirdire.wording import Name

    said = {
        0: "All cards hold.",
        INVALID: "Something does not hold.",
        UNREADABLE: "A file is no card that can be read.",
    }
    return Document(
        title="Grader cards, checked",
        summary=(said[status],),
        blocks=(
            Table(
                title="What was found",
                columns=(
                    Column(title="card", kind=Kind.NAME),
                    Column(title="says"),
                ),
                rows=tuple((cell(Name(name)), cell((Name(message),))) for name, message in rows),
            ),
        ),
        estimates=(),
        findings=(),
    )


class _Cards(Command):
    """``card`` itself; where its first word is ``check``, the command of that name."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **rest: Any) -> Any:
        if args[:1] == [CHECK]:
            return _checking().make_context(f"{info_name} {CHECK}", args[1:], *more, **rest)
        return super().make_context(info_name, args, *more, **rest)


def _checking() -> Any:
    app = typer.Typer(add_completion=False)
    app.command(CHECK, cls=Command, epilog=CHECK_EXAMPLES)(check)
    return typer.main.get_command(app)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=_Cards, epilog=EXAMPLES)(card)
