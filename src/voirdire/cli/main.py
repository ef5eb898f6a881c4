"""The command line's entry: it runs one command and turns what went wrong into a message and a status."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from voirdire import __version__
from voirdire.cli import (
    audit,
    card,
    compare,
    convert,
    decide,
    demo,
    figure,
    grade,
    look,
    plan,
    reproduce,
    simulate,
    statistics,
)
from voirdire.cli.command import Group, examples
from voirdire.errors import VoirdireError
from voirdire.wording import printable

INTERRUPTED = 130
BUG = 70

app = typer.Typer(
    name="voirdire",
    cls=Group,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=examples(
        ("See it work on a table that ships with voirdire", "voirdire demo"),
        ("See what is in a file, and what to do next", "voirdire look labels.csv"),
        (
            "Audit the graders of a file against adjudicated labels",
            "voirdire audit labels.csv --gold final_label -o audit.html",
        ),
        (
            "Grade stored responses with a model; the labels are what audit takes",
            "voirdire grade responses.jsonl --rubric four-way --model NAME --base-url URL "
            "-o labels.parquet",
        ),
    ),
)
for module in (
    audit,
    compare,
    card,
    figure,
    look,
    convert,
    grade,
    decide,
    plan,
    demo,
    reproduce,
    simulate,
    statistics,
):
    module.add_to(app)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"voirdire {__version__}")
        raise typer.Exit


@app.callback()
def voirdire(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            is_eager=True,
            callback=_print_version,
            metavar="",
        ),
    ] = False,
) -> None:
    """Examine LLM graders before anybody listens to what they say.

    The same responses, graded by several graders: voirdire measures what the choice of grader
    does to a rate, which classes a grader hardly ever gives, and how far it agrees with people.
    """


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0 fine, 2 usage, 3 input, 70 a bug of voirdire, 130 interrupted; others as the commands say.
    """
    _never_fail_on_characters()
    try:
        root = typer.main.get_command(app)
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        with root.make_context("voirdire", words) as context:
            root.invoke(context)
        sys.stdout.flush()
    except typer.Exit as done:
        return done.exit_code
    except VoirdireError as error:
        _say(str(error))
        return error.exit_status
    except typer.TyperException as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has had enough of it (`| head`): files are written by then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:
        if error.filename is not None:
            return _bug()  # files of the user are opened by functions that say so
        # Standard output cannot take the report (a full disk): files are written by then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(f"voirdire: standard output: {error.strerror or error}.", file=sys.stderr)
        return VoirdireError.exit_status
    except SystemExit:
        raise
    except BaseException:  # a panic in polars is no Exception
        return _bug()
    return 0


def _never_fail_on_characters() -> None:
    """Show what a terminal's encoding lacks as an escape: a report must not die of a dash."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _say(message: str) -> None:
    sys.stdout.flush()
    safe = "\n".join(printable(line) for line in message.split("\n"))
    print(f"voirdire: {safe}", file=sys.stderr)


def _usage(error: typer.TyperException) -> int:
    context: typer.Context | None = getattr(error, "ctx", None)
    if message := error.format_message():
        _say(message)
    if context is not None:
        print(f"Examples and all options: {context.command_path} --help", file=sys.stderr)
    return error.exit_code


def _bug() -> int:
    import traceback

    sys.stdout.flush()
    traceback.print_exc()
    print(
        f"\nvoirdire: This is a bug of voirdire {__version__}, not of your input. Please report it "
        "as an issue of the project,\nwith the command, the lines above (they may hold names of "
        "your files) and, if you can share them, a few rows of the input.",
        file=sys.stderr,
    )
    return BUG


if __name__ == "__main__":
    sys.exit(main())
