r"""BibTeX: the entries of what an audit used, for the bibliography of a paper.

The keys are those that the methods paragraph of the ``.tex`` report cites with ``\cite``.
"""

from __future__ import annotations

from voirdire import bibliography
from voirdire.bibliography import Entry
from voirdire.document import Document
from voirdire.formats.base import Format
from voirdire.formats.latex import escape


def render(document: Document) -> bytes:
    """Write the entries that the document cites, or that its results rest on, as one ``.bib`` file."""
    entries = [bibliography.entry(key) for key in bibliography.used_in(document)]
    head = f"% What the methods of this audit rest on (voirdire {_line(document.version)}).\n"
    return (head + "".join(f"\n{bibtex(e)}\n" for e in entries)).encode("utf-8")


def bibtex(entry: Entry) -> str:
    """One entry. Titles are braced: their capitals are meant, and no style is to lower them."""
    authors = " and ".join(escape(a) for a in entry.authors)
    fields = {
        "author": authors,
        "title": f"{{{escape(entry.title)}}}",
        "journal": escape(entry.journal),
        "year": entry.year,
        "volume": entry.volume,
        "number": "" if entry.number and entry.number in entry.note else entry.number,
        "pages": escape(entry.pages),
        "edition": entry.edition,
        "publisher": escape(entry.publisher),
        "institution": escape(entry.institution),
        "address": escape(entry.address),
        "eprint": entry.eprint,
        "archiveprefix": "arXiv" if entry.eprint else "",
        "doi": entry.doi,
        "note": escape(entry.note),
    }
    if not entry.authors:
        fields["key"] = escape(entry.short)  # what styles sort by where there is no author
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{entry.kind}{{{entry.key},", *lines, "}"])


def _line(text: str) -> str:
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text)


FORMAT = Format(name="bibtex", suffixes=(".bib",), render=render, title="BibTeX, the methods used")
