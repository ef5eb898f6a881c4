"""HTML: the report as one self-contained page that loads nothing, for a browser or a printer."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from voirdire import plugins
from voirdire.document import (
    Column,
    Document,
    Figure,
    Kind,
    cell,
    display,
    display_interval,
)
from voirdire.estimand import Describes, Estimand
from voirdire.estimate import Estimate
from voirdire.figures.base import Drawing
from voirdire.formats.base import (
    LOUD,
    STATE_SIGNS,
    STATE_WORDS,
    Format,
    counted_states,
    options_given,
    reasons,
    sections,
)
from voirdire.wording import Name, Text, counted, plain, printable

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_DESCRIBES = {
    Describes.GRADER: "the grader",
    Describes.BANK: "the bank of responses, not the grader",
    Describes.BOTH: "the grader on this bank of responses",
    Describes.PANEL: "the panel of graders",
}
_KEYS = (
    ("grader", "grader"),
    ("against", "other"),
    ("class", "class_"),
    ("to class", "to_class"),
    ("line", "line"),
    ("cut", "cut"),
    ("slice", "slice"),
)


def render(document: Document) -> bytes:
    """Write the whole report as one HTML page with its style, script and figures inside."""
    from markupsafe import Markup

    script = _resource("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    held = sections(document)
    page = _template().render(
        document=document,
        sections=held,
        headings=_numbers(bool(heading.text) for heading, _ in held),
        options=options_given(document),
        estimands=_estimands(document),
        states=counted_states(document.findings),
        signs=STATE_SIGNS,
        words=STATE_WORDS,
        loud_states=LOUD,
        describes=_DESCRIBES,
        css=Markup(_style()),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )
    return page.encode("utf-8", "replace")


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "text": _text,
        "name": _name,
        "printable": _printable,
        "counted": counted,
        "cell": cell,
        "shown": lambda c: printable(display(c)),
        "interval": display_interval,
        "reasons": reasons,
        "type": lambda block: type(block).__name__,
        "drawn": _drawn,
        "evidence_columns": _evidence_columns,
    }
    environment.tests |= {"tuple": lambda v: isinstance(v, tuple), "numeric": _numeric}
    return environment.from_string(_resource("report.html.j2"))


@cache
def _resource(name: str) -> str:
    from importlib.resources import files

    return files("voirdire.formats").joinpath(name).read_text(encoding="utf-8")


def _style() -> str:
    from voirdire.figures.svg import dark_variables

    return _resource("report.css").replace("/*dark*/", dark_variables())


def _text(text: Text | Name | str) -> Markup:
    """A sentence with the names in it set off; everything printable and escaped."""
    from markupsafe import Markup, escape

    parts = text if isinstance(text, tuple) else (text,)
    return Markup("").join(
        _name(p.text) if isinstance(p, Name) else escape(printable(str(p))) for p in parts
    )


def _name(text: str) -> Markup:
    """Text from the data, isolated so that its writing direction moves nothing around it."""
    from markupsafe import Markup

    return Markup('<bdi class="name">{}</bdi>').format(printable(str(text)))


def _printable(text: Text | str) -> str:
    return printable(plain(text))


def _numeric(column: Column) -> bool:
    return column.kind not in (Kind.TEXT, Kind.NAME)


def _numbers(filled: Iterable[bool]) -> list[int]:
    """A running number for every section with a heading (and the last one for the others)."""
    numbers, last = list[int](), 0
    for has_heading in filled:
        last += has_heading
        numbers.append(last)
    return numbers


def _drawn(figure: Figure) -> Markup | None:
    """The figure's SVG, or nothing where no plugin draws it and its text has to stand for it."""
    from markupsafe import Markup

    for drawing in plugins.load("figures", Drawing):
        if drawing.name == figure.name:
            return Markup(drawing.svg(figure.data, plain(figure.alt)))
    return None


def _evidence_columns(evidence: tuple[Estimate, ...]) -> list[tuple[str, str]]:
    """The key columns that any piece of evidence fills, with the field that holds each."""
    return [(h, f) for h, f in _KEYS if any(getattr(e.key, f) for e in evidence)]


def _estimands(document: Document) -> list[Estimand]:
    """Each statistic of the results and of the evidence once, in the order of the results."""
    found = dict[str, Estimand]()
    for estimate in document.estimates:
        if estimate.listed:
            found.setdefault(estimate.estimand.name, estimate.estimand)
    for finding in document.findings:
        for estimate in finding.evidence:
            found.setdefault(estimate.estimand.name, estimate.estimand)
    return list(found.values())


FORMAT = Format(
    name="html", suffixes=(".html", ".htm"), render=render, title="HTML, one self-contained file"
)
