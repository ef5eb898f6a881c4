"""Commands whose ``--help`` ends with examples, as they are to be typed."""

from __future__ import annotations

import inspect
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["SUFFIXES", "Command", "Group", "examples"]

SUFFIXES = "{suffixes}"  # in the help of an option: one suffix of each report format that is there


def _suffixes() -> str:
    """``.html .md …``: what is read first, then the rest in the order of their names."""
    from voirdire.formats.base import Format
    from voirdire.plugins import load

    first = [".html", ".pdf", ".md", ".txt", ".tex", ".bib"]
    found = [format.suffixes[0] for format in load("formats", Format)]
    ordered = sorted(found, key=lambda s: (first.index(s) if s in first else len(first), s))
    return " ".join(ordered)


def examples(*pairs: tuple[str, str]) -> str:
    """The end of a help text: for each example what it does, and the line to type."""
    lines = [f"  # {what}\n  $ {line}" for what, line in pairs]
    return "Examples:\n\n" + "\n\n".join(lines)


class _Unfolded:
    """What a command and a group share in how their help is printed."""

    help: str | None
    epilog: str | None
    params: list[Any]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text with each paragraph in one piece, then the examples as they are."""
        if self.help:
            # Typer keeps the line breaks of the source in all paragraphs but the first.
            paragraphs = inspect.cleandoc(self.help).split("\n\n")
            self.help = "\n\n".join(" ".join(text.split()) for text in paragraphs)
        for param in self.params:
            if SUFFIXES in (getattr(param, "help", None) or ""):
                param.help = param.help.replace(SUFFIXES, _suffixes())
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
