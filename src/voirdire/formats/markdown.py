"""Markdown: the report as GitHub-flavoured text that also reads well as it stands.

Names stand as code, so that nothing in them is markup, a mention or a link; a name with a bar, a
backtick or an angle bracket is escaped text instead, because code has no way to hide a bar from a
table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from voirdire.document import (
    Block,
    Cell,
    Document,
    Figure,
    FindingBlock,
    Heading,
    Kind,
    Paragraph,
    Paste,
    Table,
    Tone,
    display,
    display_interval,
)
from voirdire.finding import Finding
from voirdire.formats.base import (
    LOUD,
    STATE_SIGNS,
    STATE_WORDS,
    Format,
    counted_states,
    evidence_text,
    options_given,
    reasons,
    sections,
)
from voirdire.wording import Lead, Name, Part, Text, plain, printable

_ENTITIES = {"|": "&#124;", "<": "&lt;", ">": "&gt;", "&": "&amp;"}
_MARKS = re.compile(r"[\\`*_\[\]~#$|<>&]")
_LEADING = re.compile(r"^(\s*)([-+=:]|\d+[.)])")
_NOT_CODE = re.compile(r"[|`<>&\\]")


def render(document: Document) -> bytes:
    """Write the whole report as Markdown."""
    parts = [f"# {_text(document.title)}", _paragraph(document.summary)]
    if document.findings:
        parts += ["## Findings", f"{counted_states(document.findings)}.".capitalize()]
        parts += _findings(document.findings)
    for heading, blocks in sections(document):
        if heading.text:
            parts.append(f"## {_text(heading.text)}")
        parts += _blocks(blocks)
    parts += _sources(document)
    return ("\n\n".join(p for p in parts if p) + "\n").encode("utf-8", "replace")


def _escaped(text: str) -> str:
    """Text in which no character is markup, in or out of a table."""
    return _MARKS.sub(lambda m: _ENTITIES.get(m[0], "\\" + m[0]), printable(text))


def _text(text: str) -> str:
    """Text that may stand at the start of a block."""
    escaped = _escaped(text)
    found = _LEADING.match(escaped)
    if not found:
        return escaped
    mark = found[2]
    safe = f"\\{mark}" if len(mark) == 1 else f"{mark[:-1]}\\{mark[-1]}"
    return found[1] + safe + escaped[found.end() :]


def _name(text: str) -> str:
    shown = printable(text)
    if not shown.strip() or shown != shown.strip() or _NOT_CODE.search(shown):
        return _escaped(shown).replace(" ", "&nbsp;") if not shown.strip() else _text(shown)
    return f"`{shown}`"


def _part(part: Part) -> str:
    return _name(part.text) if isinstance(part, Name) else _escaped(part)


def _inline(text: Text | str) -> str:
    return _escaped(text) if isinstance(text, str) else "".join(map(_part, text))


def _paragraph(text: Text | str) -> str:
    if isinstance(text, str):
        return _text(text)
    first, *rest = text or ("",)
    start = _name(first.text) if isinstance(first, Name) else _text(first)
    return start + "".join(map(_part, rest))


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    for finding in findings:
        if finding.state in LOUD:
            yield _loud(finding)
    quiet = [_item(f) for f in findings if f.state not in LOUD]
    if quiet:
        yield "\n".join(quiet)


def _loud(finding: Finding) -> str:
    extra = [str(finding.strength)] if finding.strength else []
    if finding.exploratory:
        extra.append("exploratory")
    extra.append(f"`{finding.code}`")
    lines = [
        f"**{STATE_SIGNS[finding.state]} {STATE_WORDS[finding.state]}** · {' · '.join(extra)}  ",
        _paragraph(finding.sentence),
    ]
    if finding.next_step:
        lines[-1] += "  "
        lines.append(f"→ {_inline(finding.next_step)}")
    if finding.evidence:
        lines += ["", *(f"- {_inline(evidence_text(e))}" for e in finding.evidence)]
    return "\n".join(lines)


def _item(finding: Finding) -> str:
    return f"- {STATE_WORDS[finding.state]}, `{finding.code}`: {_inline(finding.sentence)}"


def _blocks(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Heading():
                yield f"{'#' * min(max(block.level, 2), 6)} {_text(block.text)}"
            case Paragraph():
                yield _toned(block)
            case Table():
                yield _table(block)
            case Figure():
                yield _figure(block)
            case FindingBlock():
                yield _item(block.finding)
            case Paste():
                yield _paste(block)


def _toned(block: Paragraph) -> str:
    if block.tone is Tone.WARNING:
        return f"> **Warning:** {_inline(block.text)}"
    if block.tone is Tone.NOTE:
        return f"> {_paragraph(block.text)}"
    return _paragraph(block.text)


def _figure(block: Figure) -> str:
    lines = [f"**{_escaped(block.title)}.** {_escaped(plain(block.alt))}"]
    if block.caption:
        lines.append(
            f"*{_inline(block.caption)}*" if _plain(block.caption) else _inline(block.caption)
        )
    return "\n\n".join(lines)


def _plain(text: Text) -> bool:
    """Whether emphasis around the text is sure to hold: it starts and ends with a word of ours."""
    return all(isinstance(p, str) for p in (text[0], text[-1])) and not (
        plain(text)[0].isspace() or plain(text)[-1].isspace()
    )


def lines(block: Paste) -> str:
    """Lines to paste as Markdown text, one item a line; what leads a line is bold."""
    if len(block.lines) == 1:
        return _paragraph(block.lines[0])
    return "\n".join(f"- {_led(line)}" for line in block.lines)


def _led(line: Text) -> str:
    if line and isinstance(line[0], Lead):
        return f"**{_escaped(line[0].word)}.** {_inline(line[1:])}"
    return _paragraph(line)


def _paste(block: Paste) -> str:
    """The lines in a fence that is longer than any run of backticks in them; led ones as Markdown."""
    led = any(line and isinstance(line[0], Lead) for line in block.lines)
    text = lines(block) if led else "\n".join(printable(plain(line)) for line in block.lines)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    kind = "markdown" if led else "text"
    return "\n".join([f"**{_escaped(block.title)}**", "", f"{fence}{kind}", text, fence])


def _table(block: Table) -> str:
    notes = reasons(block)
    heads = [
        _escaped(c.title) if isinstance(c.title, str) else _name(c.title.text)
        for c in block.columns
    ]
    marks = [
        "---" if i == 0 or c.kind in (Kind.TEXT, Kind.NAME) else "---:"
        for i, c in enumerate(block.columns)
    ]
    rows = [_row(heads), _row(marks)]
    rows += [_row([_cell(c, notes) for c in row]) for row in block.rows]
    parts = [f"**{_escaped(block.title)}**", "\n".join(rows)]
    if notes:
        parts.append("  \n".join(f"({mark}) {_escaped(reason)}" for reason, mark in notes.items()))
    if block.note:
        parts.append(_paragraph(block.note))
    return "\n\n".join(parts)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell, notes: dict[str, str]) -> str:
    if cell.kind is Kind.NAME and isinstance(cell.value, str):
        text = _name(cell.value) if cell.value else ""
    elif isinstance(cell.value, tuple):
        text = _inline(cell.value)
    else:
        text = _escaped(display(cell))
    interval = display_interval(cell)
    if interval:
        text += f" {_escaped(interval)}"
    return f"{text} ({notes[cell.reason]})" if cell.reason else text


def _sources(document: Document) -> Iterator[str]:
    options = options_given(document)
    if not (document.inputs or options or document.version):
        return
    yield "## Inputs and options"
    if document.inputs:
        rows = [_row(("file", "rows", "SHA-256")), _row(("---", "---:", "---"))]
        rows += [_row((_name(i.name), f"{i.rows:,}", f"`{i.sha256}`")) for i in document.inputs]
        yield "\n".join(rows)
    if options:
        yield "\n".join(f"- {_escaped(name)}: {_name(text)}" for name, text in options)
    if document.version:
        yield f"voirdire {_escaped(document.version)}"


FORMAT = Format(name="markdown", suffixes=(".md",), render=render, title="Markdown")
