"""The contract of a figure: a name and a function from plain data to one SVG element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """One kind of figure. ``svg`` turns a document figure's ``data`` into an ``<svg>`` element.

    The element carries ``role="img"`` and its alternative text, has a ``viewBox`` and no fixed
    size, loads nothing, and takes its colours from CSS custom properties with fallbacks, so that it
    follows a light or dark page and stands alone too. Data text is escaped. ``data`` names its keys
    in ``takes``. ``lines``, where there is one, draws the same figure as lines of text for a
    terminal: given the data, the columns at hand, and whether only ASCII may be used.
    """

    name: str
    title: str
    takes: Mapping[str, str]
    svg: Callable[[Mapping[str, Any], str], str]
    lines: Callable[[Mapping[str, Any], int, bool], tuple[str, ...]] | None = None
