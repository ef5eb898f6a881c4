"""HTML: the report as one self-contained page that loads nothing, for a browser or a printer.

The page reads without its script. With it, numbers lead to the responses behind them, tables sort and
texts copy. The responses stand in the page as JSON up to :data:`MOST_BYTES`; more of them are kept in a
file beside it, which the reader opens (see docs/decisions/0007-looking-at-the-report.md).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from voirdire import plugins
from voirdire.document import (
    Cell,
    Column,
    Document,
    Figure,
    Kind,
    Paste,
    Table,
    cell,
    display,
    display_interval,
)
from voirdire.estimand import Describes, Estimand
from voirdire.estimate import Estimate
from voirdire.figures.base import Drawing
from voirdire.formats import latex, markdown
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
from voirdire.formats.embedded import Selections, embedded, mark_of, safe_json
from voirdire.formats.overview import (
    AXIS,
    GATE_COLUMNS,
    GOLD,
    WHISKER,
    brief,
    hatch,
    lead,
    side_by_side,
)
from voirdire.wording import Name, Text, counted, plain, printable

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

MOST_BYTES = 1_000_000  # of responses in the page itself
BESIDE = ".responses.json"
MOST_ROWS_OF_DATA = 500  # of a figure's data in the page; the drawing shows no more

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
    """Write the whole report as one HTML page with its style, script, figures and responses inside."""
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    selections = Selections(document.responses)
    page = _page(document, chosen=selections.of, script_hash=f"'sha256-{digest}'", slim=True)
    end = _data(document, selections) + f"<script>{script}</script>\n</body>\n</html>\n"
    return (page + end).encode("utf-8", "replace")


def printed(document: Document) -> str:
    """The page without script and responses, each drawing whole in itself: for who lays out paper."""
    page = _page(document, chosen=lambda _: -1, script_hash="'none'", slim=False)
    return f"{page}</body>\n</html>\n"


def _page(
    document: Document, *, chosen: Callable[[Cell], int], script_hash: str, slim: bool
) -> str:
    """The page up to what its script reads; ``chosen`` says which selection a cell leads to."""
    from markupsafe import Markup

    held = sections(document)
    numbers = _numbers(bool(heading.text) for heading, _ in held)
    places = {h.text: i for i, (h, _) in zip(numbers, held, strict=True)}
    return _template().render(
        document=document,
        sections=held,
        headings=numbers,
        options=options_given(document),
        estimands=_estimands(document),
        states=counted_states(document.findings),
        signs=STATE_SIGNS,
        words=STATE_WORDS,
        loud_states=LOUD,
        describes=_DESCRIBES,
        brief=brief(document),
        gate_heads=[title for _, title in GATE_COLUMNS],
        side=side_by_side(document),
        hatch=Markup(hatch() if document.panel and document.panel.off_scale else ""),
        chosen=chosen,
        paper=places.get("For the paper", 0),
        css=Markup(_style()),
        script_hash=Markup(script_hash),
        slim=slim,
    )


def beside(document: Document) -> Mapping[str, bytes]:
    """The responses that are too many for the page, as a file of their own."""
    content = _embedded(document)
    if content is None or len(content) <= MOST_BYTES:
        return {}
    return {
        BESIDE: f'{{"voirdire":"responses","mark":"{mark_of(content)}","data":{content}}}\n'.encode()
    }


def _data(document: Document, selections: Selections) -> str:
    """What the script reads: which numbers lead where, and the responses where they are few enough."""
    content = _embedded(document)
    if content is None:
        return ""
    page: dict[str, Any] = {
        **selections.data(),
        "mark": mark_of(content),
        "responses": len(document.responses.ids) if document.responses else 0,
        "suffix": BESIDE if len(content) > MOST_BYTES else "",
    }
    made = f'<script type="application/json" id="selections">{safe_json(page)}</script>\n'
    if len(content) <= MOST_BYTES:
        made += f'<script type="application/json" id="responses">{content}</script>\n'
    return made


def _embedded(document: Document) -> str | None:
    return None if document.responses is None else embedded(document.responses)


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
        "shown": lambda c: _held(printable(display(c))),
        "interval": display_interval,
        "dense": _dense,
        "reasons": reasons,
        "type": lambda block: type(block).__name__,
        "drawn": _drawn,
        "pasted": _pasted,
        "lead": lead,
        "svg": _svg,
        "evidence_columns": _evidence_columns,
    }
    environment.tests |= {"tuple": lambda v: isinstance(v, tuple), "numeric": _numeric}
    return environment.from_string(_resource("report.html.j2"))


@cache
def _resource(name: str) -> str:
    from importlib.resources import files

    return files("voirdire.formats").joinpath(name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """The script without the lines and spaces that are for its authors."""
    lines = (line.strip() for line in _resource("report.js").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"


def _style() -> str:
    from voirdire.figures.svg import RAMP, dark_variables

    light = "".join(f"--vd-ramp-{i}:{a};--vd-on-{i}:{b};" for i, (a, b) in enumerate(RAMP))
    light += "--vd-off:#868e97;"
    style = _resource("report.css").replace("/*light*/", light)
    return style.replace("/*dark*/", dark_variables())


def _text(text: Text | Name | str) -> Markup:
    """A sentence with the names in it set off; everything printable and escaped."""
    from markupsafe import Markup, escape

    parts = text if isinstance(text, tuple) else (text,)
    return Markup("").join(
        _name(p.text) if isinstance(p, Name) else escape(_held(printable(str(p)))) for p in parts
    )


_APART = re.compile(r"(?<=[0-9]) (?=%)")


def _held(text: str) -> str:
    """Our own words with each number and its sign on one line."""
    return _APART.sub("\N{NO-BREAK SPACE}", text)


def _name(text: str) -> Markup:
    """Text from the data, isolated so that its writing direction moves nothing around it."""
    from markupsafe import Markup

    return Markup('<bdi class="name">{}</bdi>').format(printable(str(text)))


def _printable(text: Text | str) -> str:
    return printable(plain(text))


def _dense(block: Table) -> bool:
    """Whether so many cells stand side by side with an interval that it goes under the number."""
    return any(sum(c.low is not None for c in row) >= 5 for row in block.rows)


def _numeric(column: Column) -> bool:
    return column.kind not in (Kind.TEXT, Kind.NAME)


def _svg(drawing: str, slim: bool) -> Markup:
    """A drawing of ours, in which the data is escaped already."""
    from markupsafe import Markup

    return Markup(_slimmed(drawing) if slim else drawing)


def _numbers(filled: Iterable[bool]) -> list[int]:
    """A running number for every section with a heading (and the last one for the others)."""
    numbers, last = list[int](), 0
    for has_heading in filled:
        last += has_heading
        numbers.append(last)
    return numbers


def _drawn(figure: Figure, slim: bool) -> dict[str, Any] | None:
    """The figure's SVG and its data, or nothing where no plugin draws it and its text stands for it."""
    for drawing in plugins.load("figures", Drawing):
        if drawing.name == figure.name:
            columns, rows = drawing.table(figure.data)
            return {
                "svg": _svg(drawing.svg(figure.data, plain(figure.alt)), slim),
                "columns": columns,
                "rows": [[_value(v) for v in row] for row in rows[:MOST_ROWS_OF_DATA]],
                "left_out": max(len(rows) - MOST_ROWS_OF_DATA, 0),
            }
    return None


# What a drawing says for itself, and this page says once in its style.
_PAINT = re.compile(r'(fill|stroke)="(#[0-9a-f]{6})" style="\1:var\((--vd-[a-z0-9-]+),\2\)"')
_SHORT = (
    ("<defs></defs>", ""),
    (' text-anchor="start"', ""),
    (' text-anchor="end"', ' class="e"'),
    (' text-anchor="middle"', ' class="m"'),
    (' stroke="currentColor" stroke-opacity=".4" stroke-width=".5"', ' class="o"'),
    (AXIS, ' class="ax"'),
    (GOLD, ' class="gold"'),
    (WHISKER, ' class="ci"'),
)
_ALONE = re.compile(r"(<text [^>]*>(?:<title>[^<]*</title>)?)<tspan>([^<]*)</tspan></text>")
_PATTERN = re.compile(r'<pattern id="([0-9a-z]+)".*?</pattern>')


def _slimmed(svg: str) -> str:
    """A drawing without what is the same in all of them, nor patterns that nothing is filled with."""
    svg = _PATTERN.sub(lambda m: m[0] if f"url(#{m[1]})" in svg else "", svg)
    svg = svg.replace('<tspan style="unicode-bidi:isolate">', "<tspan>")
    for long, short in _SHORT:
        svg = svg.replace(long, short)
    svg = _ALONE.sub(r"\1\2</text>", svg)
    return _PAINT.sub(r'style="\1:var(\3)"', svg)


def _value(value: object) -> tuple[str, bool]:
    """A value of a figure's data as text, and whether it is a number."""
    if value is None:
        return "", False
    if isinstance(value, bool):
        return ("yes" if value else "no"), False
    if isinstance(value, float):
        return f"{value:.10g}", True
    return printable(str(value)), isinstance(value, int)


def _pasted(block: Paste) -> list[tuple[str, str]]:
    """The forms of lines to paste: plain as they read here, Markdown and LaTeX by those formats."""
    lines = "\n".join(printable(plain(line)) for line in block.lines)
    if block.command:
        return [("", lines)]
    return [("plain", lines), ("Markdown", markdown.lines(block)), ("LaTeX", latex.paste(block))]


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
    name="html",
    suffixes=(".html", ".htm"),
    render=render,
    title="HTML, one self-contained file",
    beside=beside,
    keeps=(BESIDE,),
)
