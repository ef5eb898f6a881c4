"""PDF: the HTML report in its print style, laid out by WeasyPrint (the extra ``pdf``).

The page is the one that a browser would print: without its script, with everything folded out, and
nothing is loaded, whatever stands in it. Figures stay vectors. The same document gives the same bytes
on one machine; another machine may have other fonts.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from voirdire.document import Document
from voirdire.errors import MissingExtra
from voirdire.formats import html
from voirdire.formats.base import Format
from voirdire.wording import printable

# WeasyPrint draws SVG without the page's styles and custom properties: rules and values have to stand
# in the drawing itself.
_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,\s*([^()]*?)\s*)?\)")
_LIGHT = re.compile(r":root\s*\{([^}]*)\}")
_OF_DRAWINGS = re.compile(r"svg(?:\.([\w-]+))?\s+(\.[\w-]+)\s*\{([^{}]*)\}")
_DECLARED = re.compile(r"(--[\w-]+)\s*:\s*([^;}]+)")
_SVG = re.compile(r"(<svg\b[^>]*>)(.*?</svg>)", re.S)
_CLASSES = re.compile(r'\bclass="([^"]*)"')
_SCRIPT = re.compile(r"<script\b.*?</script>\s*", re.S)

PACKAGES = "libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0"

# What only paper has: page numbers, a running foot, marks for the list of sections.
STYLE = """
@page {
  size: A4; margin: 17mm 15mm 19mm;
  @bottom-left { content: string(title); font: 8pt sans-serif; color: #555; width: 80%; vertical-align: top; padding-top: 4mm; }
  @bottom-right { content: counter(page) " / " counter(pages); font: 8pt sans-serif; color: #555; vertical-align: top; padding-top: 4mm; }
}
@page :first { @bottom-left { content: "@made@"; } }
h1 { font-size: 20pt; string-set: title content(); bookmark-level: 1; }
h2 { bookmark-level: 2; }
h3, h4 { bookmark-level: none; }
/* On a screen a wide table scrolls; on paper it has to fit. */
tbody th, .finding tbody th { min-width: 0; }
td.short, .sides td { white-space: normal; }
td.text { min-width: 9em; }
table:has(thead th:nth-child(7)) { font-size: 7.5pt; }
table:has(thead th:nth-child(9)) { font-size: 6.5pt; }
.evidence table, table.sides { font-size: 7pt; }
table:has(thead th:nth-child(7)) :is(th, td), .evidence :is(th, td), .sides :is(th, td) { padding: .8mm 1.1mm; }
table:has(thead th:nth-child(12)) { font-size: 5.8pt; }
.sides:has(thead th:nth-child(7)) svg.small { width: 14mm; height: 1.9mm; }
.sides:has(thead th:nth-child(7)) td { white-space: normal; font-size: 6.5pt; padding: .8mm; }
table:has(thead th:nth-child(9)) .ci { white-space: normal; }
"""


def render(document: Document) -> bytes:
    """Write the report as PDF.

    Raises :class:`MissingExtra` where WeasyPrint or the Pango libraries that it calls are not
    installed, with the line that installs them.
    """
    weasyprint = _weasyprint()
    made = f"voirdire {printable(document.version)}" if document.version else "voirdire"
    style = STYLE.replace("@made@", re.sub(r'["\\<>\n]', "", made))
    page = _printed(html.printed(document), style)
    source = weasyprint.HTML(string=page, url_fetcher=_nothing, base_url="about:blank")
    laid_out = source.render()
    laid_out.metadata.generator = made
    identifier = hashlib.sha256(page.encode()).hexdigest()[:32].encode()
    return bytes(laid_out.write_pdf(pdf_identifier=identifier, pdf_tags=True))


def _printed(page: str, style: str) -> str:
    """The page without its script and with the style of paper, its figures with their own colours."""
    page = _SCRIPT.sub("", page).replace("</head>", f"<style>{style}</style></head>", 1)
    first = _LIGHT.search(page)  # the colours of a light page; those of a dark one come after
    declared = {name: value.strip() for name, value in _DECLARED.findall(first[1] if first else "")}
    rules = _OF_DRAWINGS.findall(page)

    def drawn(found: re.Match[str]) -> str:
        head, rest = found[1], found[2]
        names = _CLASSES.search(head)
        classes = names[1].split() if names else []
        own = "".join(f"{rule}{{{body}}}" for of, rule, body in rules if not of or of in classes)
        style = f"<style>{own}</style>" if own else ""
        return _resolved(f"{head}{style}{rest}", declared)

    return _SVG.sub(drawn, page)


def _resolved(svg: str, declared: Mapping[str, str]) -> str:
    """A drawing with each custom property's value in its place, or else its fallback, also nested ones."""

    def value(found: re.Match[str]) -> str:
        return declared.get(found[1]) or found[2] or "currentColor"

    while (once := _VARIABLE.sub(value, svg)) != svg:
        svg = once
    return svg


def _nothing(url: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Refuse every address: a report needs none, and text of the data must not name one."""
    raise ValueError(f"a report loads nothing ({escape(url)})")


def _weasyprint() -> Any:
    said = io.StringIO()  # WeasyPrint prints advice of its own where a library is missing
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            import weasyprint
    except ModuleNotFoundError as error:
        if error.name != "weasyprint":
            raise
        raise MissingExtra(
            "A PDF needs weasyprint, which is not installed. Install it with: "
            "pip install 'voirdire[pdf]'. The .html report prints to PDF from any browser."
        ) from error
    except OSError as error:
        raise MissingExtra(
            "A PDF needs the Pango libraries, which weasyprint could not load. On Debian and Ubuntu: "
            f"apt install {PACKAGES}; on macOS: brew install pango. The .html report prints to PDF "
            "from any browser."
        ) from error
    return weasyprint


FORMAT = Format(
    name="pdf", suffixes=(".pdf",), render=render, title="PDF, the page as it is printed"
)
