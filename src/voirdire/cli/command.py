"""Commands whose ``--help`` ends with examples, as they are to be typed."""

from __future__ import annotations

import inspect
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["Command", "Group", "examples"]


def examples(*pairs: tuple[str, str]) -> str:
    """The end of a help text: for each example what it does, and the line to type."""
    lines = [f"  # {what}\n  $ {line}" for what, line in pairs]
    return "Examples:\n\n" + "\n\n".join(lines)


class _Unfolded:
    """What a command and a group share in how their help is printed."""

    help: str | None
    epilog: str | None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text with each paragraph in one piece, then the examples as they are."""
        if self.help:
            # Typer keeps the line breaks of the source in all paragraphs but the first.
            paragraphs = inspect.cleandoc(self.help).split("\n\n")
            self.help = "\n\n".join(" ".join(text.split()) for text in paragraphs)
        # Typer would fold the lines of an epilog to the width of the terminal, and a folded
        # command cannot be copied.
        epilog, self.epilog = self.epilog, None
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]
        finally:
            self.epilog = epilog
        if epilog:
            typer.echo(epilog)


class Command(_Unfolded, TyperCommand):
    """A command that prints its examples unfolded."""


class Group(_Unfolded, TyperGroup):
    """A group of commands that prints its examples unfolded."""
