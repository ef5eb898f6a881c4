"""The errors that voirdire raises, each with the exit status that the command line gives it."""

from __future__ import annotations

import difflib
import os
from pathlib import Path


class VoirdireError(Exception):
    """Something a person can mend; the message says what is wrong, where, and what to do next."""

    exit_status = 3


class UsageError(VoirdireError):
    """An option or argument that cannot be used as given (exit status 2)."""

    exit_status = 2


class InputError(VoirdireError):
    """An input that is missing or cannot be read as it is (exit status 3)."""

    exit_status = 3


class MissingExtra(VoirdireError):
    """An optional package is needed and not installed; the message has the line that installs it."""

    exit_status = 2


class UndefinedWarning(UserWarning):
    """A plain array function was asked for a value that cannot be said; it returned ``nan``."""


class NegativeEstimateWarning(UserWarning):
    """A plain array function estimated something negative that cannot be; it returned 0."""


def unreadable(path: str | Path, error: OSError | None = None, *, name: str = "") -> str:
    """What to say of a file that cannot be read: which one, why, and what to do next.

    ``name`` is what the message calls it, with the option before it; without an error it is not there.
    """
    path = Path(path)
    called = name or str(path)
    if isinstance(error, PermissionError):
        return f"{called}: you may not read this file. Ask for the right to, or name a copy."
    if path.is_dir():
        return f"{called}: this is a folder. Name a file in it."
    if error is not None and not isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"{called}: it cannot be read ({error.strerror or error}). Name another file."
    if not path.parent.is_dir():
        return f"{called}: there is no folder {path.parent}. Check the path, and the folder you are in."
    try:
        near = difflib.get_close_matches(path.name, sorted(os.listdir(path.parent)), n=1)
    except OSError:
        near = []
    hint = f"Did you mean {path.parent / near[0]}?" if near else ""
    return (
        f"{called}: there is no such file. {hint or 'Check its name, and the folder you are in.'}"
    )
