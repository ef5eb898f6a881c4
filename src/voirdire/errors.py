"""The errors that voirdire raises, each with the exit status that the command line gives it."""

from __future__ import annotations


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
