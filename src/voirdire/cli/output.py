"""Where a command's results go: files first, then the report on standard output; the rest to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from voirdire.errors import InputError, UsageError
from voirdire.wording import Text, listed, plain, printable

if TYPE_CHECKING:
    from voirdire.document import Document

__all__ = ["check_outputs", "format_suffixes", "note", "show", "working", "write_all"]

WIDTH = 100  # where no terminal says how wide it is
PATIENCE = 1.0  # seconds before a terminal is told that something is going on


def format_suffixes() -> tuple[str, ...]:
    """The suffixes of all report formats that are there."""
    from voirdire.formats.base import Format
    from voirdire.plugins import load

    return tuple(suffix for format in load("formats", Format) for suffix in format.suffixes)


def check_outputs(
    outputs: Sequence[Path], inputs: Sequence[str], suffixes: Sequence[str], *, what: str
) -> None:
    """Refuse, before any work, a file that could not be written or must not be.

    ``what`` says what would be written, for the message. Raises :class:`UsageError`.
    """
    read = {Path(name).resolve() for name in inputs if name != "-"}
    for path in outputs:
        if path.is_dir():
            raise UsageError(
                f"-o {path}: this is a folder. Name a file in it: -o {path}/audit.html"
            )
        if path.suffix.lower() not in suffixes:
            named = f"by the suffix {path.suffix!r}" if path.suffix else "without a suffix"
            raise UsageError(
                f"-o {path}: {what} cannot be written {named}. "
                f"Suffixes: {plain(listed(suffixes, most=20, last='or'))}."
            )
        if not path.parent.is_dir():
            raise UsageError(
                f"-o {path}: there is no folder {path.parent}. Make it first: mkdir -p {path.parent}"
            )
        if path.resolve() in read:
            raise UsageError(f"-o {path}: this is an input, and would be lost. Name another file.")
        for other in _kept_beside(path, {*read, *(o.resolve() for o in outputs)}):
            which = "an input" if other in read else "another output"
            raise UsageError(
                f"-o {path}: the responses of a big audit are kept beside it, in {other.name}, which is "
                f"{which}, and would be lost. Name another file."
            )


def _kept_beside(path: Path, files: Collection[Path]) -> list[Path]:
    """Which of these files a report may keep something in that stands beside it."""
    whole = path.resolve()
    near = [f for f in files if f.parent == whole.parent and f.name.startswith(f"{whole.stem}.")]
    if near in ([], [whole]):  # so that no format is loaded where there is nothing to lose
        return []
    from voirdire.formats.base import Format
    from voirdire.plugins import load

    suffix = path.suffix.lower()
    kept = {
        whole.with_suffix(s)
        for format in load("formats", Format)
        if suffix in format.suffixes
        for s in format.keeps
    }
    return sorted(kept.intersection(near))


def write_all(
    outputs: Sequence[Path], write: Callable[[Path], tuple[Path, ...] | None], *, quiet: bool
) -> None:
    """Write each file and name it on standard error. Raises :class:`InputError` where one fails.

    What ``write`` gives are the files that it wrote, where it wrote another beside the one asked for.
    """
    for path in outputs:
        try:
            written = write(path)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise InputError(f"-o {path}: {error.strerror or error}.") from error
        if not quiet:
            for file in written or (path,):
                print(f"voirdire: wrote {printable(str(file))}", file=sys.stderr)


def show(document: Document, *, brief: bool = False) -> None:
    """Print a report on standard output, as wide as the terminal is; ``brief`` for its summary."""
    from rich.console import Console

    from voirdire.formats.text import print_document

    class Page(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to the command line's entry; rich would leave with status 1."""
            raise BrokenPipeError

    at_terminal = sys.stdout.isatty() or "COLUMNS" in os.environ
    page = Page(
        file=sys.stdout,
        width=None if at_terminal else WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )
    print_document(document, page, brief=brief)


def note(notices: Iterable[Text | str]) -> None:
    """Print what happened to the input on standard error."""
    for notice in notices:
        print(f"voirdire: note: {printable(plain(notice))}", file=sys.stderr)


@contextmanager
def working(
    what: str, *, quiet: bool = False, unit: str = "files"
) -> Iterator[Callable[[int, int], None]]:
    """Tell a person at a terminal that work goes on, if it takes longer than a second.

    What it gives is told how many of how many files (or other units) are done, and shows a bar where
    there are several.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    import threading

    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description} {task.fields[counts]}"),
        BarColumn(bar_width=None),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(f"{what} …", total=None, counts="")

    def told(done: int, total: int) -> None:
        if total > 1:
            bar.update(task, completed=done, total=total, counts=f"{done:,} of {total:,} {unit}")

    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield told
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
