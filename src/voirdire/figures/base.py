"""The contract of a figure: a name and a function from plain data to one SVG element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# The data of a figure: the names of its columns, and its rows (text, whole numbers, floats, None).
Rows = tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """One kind of figure. ``svg`` turns a document figure's ``data`` into an ``<svg>`` element.

    The element carries ``role="img"`` and its alternative text, has a ``viewBox`` and no fixed
    size, loads nothing, and takes its colours from CSS custom properties with fallbacks, so that it
    follows a light or dark page and stands alone too. Data text is escaped. ``data`` names its keys
    in ``takes``; ``needs`` says to a person what a file must hold for the figure to be made. ``table`` gives what is drawn as columns and rows, unrounded, ``None`` where there is
    no value; nothing is left out of it because the drawing has no room. ``lines``, where there is
    one, draws the same figure as lines of text for a terminal: given the data, the columns at hand,
    and whether only ASCII may be used.
    """

    name: str
    title: str
    needs: str = ""
    takes: Mapping[str, str]
    svg: Callable[[Mapping[str, Any], str], str]
    table: Callable[[Mapping[str, Any]], Rows]
    lines: Callable[[Mapping[str, Any], int, bool], tuple[str, ...]] | None = None
