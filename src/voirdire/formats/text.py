"""Plain text: the report for a terminal and for ``.txt`` files, laid out with rich.

Text from the data never meets rich's markup: everything is built as ``rich.text.Text``. Colour only
repeats what a word and a sign already say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from voirdire import plugins
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
from voirdire.figures.base import Drawing
from voirdire.finding import Finding, State
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
from voirdire.wording import Name, Text, plain, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text as Line

WIDTH = 100
# Where the report is brief: the most rows of a table, the most that are folded where they are too
# wide, and the most lines of a paste block.
MOST_ROWS, FEW_ROWS, MOST_LINES = 15, 8, 6
_STYLES = {
    State.FOUND: "bold yellow",
    State.CANNOT_TELL: "bold blue",
    State.NOT_APPLICABLE: "dim",
    State.CLEAR: "cyan",
}
_ASCII_SIGNS = {
    State.FOUND: "!",
    State.CANNOT_TELL: "?",
    State.NOT_APPLICABLE: "-",
    State.CLEAR: "o",
}
# How our own signs are written where the output's encoding does not have them.
_PLAIN = str.maketrans(
    {"≥": ">=", "≤": "<=", "→": "->", "–": "-", "−": "-", "×": "x", "…": "...", "⟨": "<", "⟩": ">"}
    | {
        "“": '"',
        "”": '"',
        "‘": "'",
        "’": "'",
        "κ": "kappa",
        "α": "alpha",
        "Φ": "Phi",
        "λ": "lambda",
    }
)


def render(document: Document) -> bytes:
    """Write the whole report as plain text, 100 columns wide and without colour."""
    import io

    from rich.console import Console

    file = io.StringIO()
    console = Console(
        file=file,
        width=WIDTH,
        color_system=None,
        force_terminal=False,
        force_jupyter=False,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
        _environ={},
    )
    _Page(document, console, encoding="utf-8", brief=False).print()
    lines = (line.rstrip() for line in file.getvalue().split("\n"))
    return ("\n".join(lines).strip("\n") + "\n").encode("utf-8", "replace")


def print_document(document: Document, console: Console, *, brief: bool = False) -> None:
    """Print the report to a terminal, in its width and with its colours.

    ``brief`` cuts what is clear or does not apply to one line each and long tables to what fits,
    and leaves evidence, files and options to the written report. Never raises for characters that the
    console's encoding lacks: signs of ours get an ASCII form and others a question mark.
    """
    _Page(document, console, encoding=console.encoding or "utf-8", brief=brief).print()


GAP = 3  # columns between two cells of a table


def _taken(group: dict[int, int]) -> int:
    return sum(group.values()) + GAP * (len(group) - 1)


class _Page:
    """One printing of one document: where it goes, and what may be written there."""

    def __init__(self, document: Document, console: Console, *, encoding: str, brief: bool) -> None:
        self.document, self.console, self.brief = document, console, brief
        self.encoding, self.cut = encoding, False
        self.ascii_only = not encoding.lower().startswith("utf")
        self.width = max(console.width, 40)

    def print(self) -> None:
        document = self.document
        self.put(self.line(document.title, "bold"))
        self.put(self.sentence(document.summary))
        if document.findings:
            self.head("Findings", counted_states(document.findings))
            self.findings(document.findings)
        for heading, blocks in sections(document):
            if heading.text:
                self.head(heading.text)
            else:
                self.gap()
            self.blocks(blocks)
        if not self.brief:
            self.sources()

    # How text becomes safe to print

    def safe(self, text: str) -> str:
        text = printable(text)
        if not self.ascii_only:
            return text
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return text.translate(_PLAIN).encode(self.encoding, "replace").decode(self.encoding)
        except LookupError:
            return text.translate(_PLAIN).encode("ascii", "replace").decode("ascii")
        return text

    def line(self, text: str, style: str = "") -> Line:
        from rich.text import Text as Line

        return Line(self.safe(text), style=style, overflow="fold")

    def sentence(self, text: Text | str, style: str = "") -> Line:
        line = self.line("", style)
        for part in (text,) if isinstance(text, str) else text:
            if isinstance(part, Name):
                line.append(self.safe(part.text), style="bold")
            else:
                line.append(self.safe(part))
        return line

    def put(self, text: Line, *, indent: int = 0, mark: Line | None = None) -> None:
        """Print text wrapped to a readable width; ``mark`` hangs before its first line."""
        from rich.text import Text as Line

        hang = mark.cell_len if mark else 0
        room = max(min(self.width, WIDTH) - indent - hang, 16)
        for i, piece in enumerate(text.wrap(self.console, room, overflow="fold")):
            piece.rstrip()
            line = Line(" " * indent)
            if mark and i == 0:
                line.append_text(mark)
            elif hang:
                line.append(" " * hang)
            line.append_text(piece)
            self.console.print(line, no_wrap=True, overflow="ignore", crop=False)

    def uncut(self, text: str) -> None:
        """Print one line as it stands, cropped where the page ends."""
        line = self.line(text)
        line.truncate(self.width, overflow="crop")
        self.console.print(line, no_wrap=True, overflow="ignore", crop=False)

    def gap(self) -> None:
        self.console.print()

    def head(self, text: str, after: str = "") -> None:
        line = self.line(text.upper(), "bold")
        if after:
            line.append(self.safe("  " + after), style="not bold dim")
        rule = "-" if self.ascii_only else "─"
        self.gap()
        self.put(line)
        self.put(self.line(rule * min(self.width, WIDTH), "dim"))

    # Findings

    def findings(self, findings: tuple[Finding, ...]) -> None:
        loud = [f for f in findings if f.state in LOUD]
        quiet = [f for f in findings if f.state not in LOUD]
        for i, finding in enumerate(loud):
            if i:
                self.gap()
            self.loud(finding)
        if loud and quiet:
            self.gap()
        for finding in quiet:
            self.quiet(finding)
        if self.cut:
            self.put(self.line("Cut to one line each; the written report has them whole.", "dim"))

    def badge(self, finding: Finding) -> Line:
        sign = (_ASCII_SIGNS if self.ascii_only else STATE_SIGNS)[finding.state]
        badge = self.line("")
        badge.append(f"{self.safe(sign)} {STATE_WORDS[finding.state]}", _STYLES[finding.state])
        return badge

    def loud(self, finding: Finding) -> None:
        line = self.badge(finding)
        if finding.strength:
            line.append(self.safe(f" · {finding.strength}"), "bold")
        if finding.exploratory:
            line.append(self.safe(" · exploratory"))
        line.append(self.safe(f" · {finding.code}"), "dim")
        self.put(line)
        self.put(self.sentence(finding.sentence), indent=2)
        if finding.next_step:
            arrow = self.line("-> " if self.ascii_only else "→ ")
            self.put(self.sentence(finding.next_step), indent=2, mark=arrow)
        if not self.brief:
            for estimate in finding.evidence:
                said = self.sentence(evidence_text(estimate), "dim")
                self.put(said, indent=4, mark=self.line("- ", "dim"))

    def quiet(self, finding: Finding) -> None:
        sign = (_ASCII_SIGNS if self.ascii_only else STATE_SIGNS)[finding.state]
        word = f"{self.safe(sign)} {STATE_WORDS[finding.state]:<15}"
        mark, said = self.line(word, _STYLES[finding.state]), self.sentence(finding.sentence)
        room = min(self.width, WIDTH) - mark.cell_len
        if self.brief and said.cell_len > room:
            end = "..." if self.ascii_only else "…"
            said.truncate(room - len(end), overflow="crop")
            said.append(end)
            self.cut = True
        self.put(said, mark=mark)

    # Blocks

    def blocks(self, blocks: Iterable[Block]) -> None:
        for i, block in enumerate(blocks):
            if i:
                self.gap()
            match block:
                case Heading():
                    self.put(self.line(block.text, "bold"))
                case Paragraph():
                    self.paragraph(block)
                case Table():
                    self.table(block)
                case Figure():
                    self.figure(block)
                case FindingBlock():
                    self.quiet(block.finding)
                case Paste():
                    self.paste(block)

    def paragraph(self, block: Paragraph) -> None:
        if block.tone is Tone.WARNING:
            self.put(self.sentence(block.text), mark=self.line("Warning: ", "bold yellow"))
        else:
            self.put(self.sentence(block.text, "dim" if block.tone is Tone.NOTE else ""))

    def figure(self, block: Figure) -> None:
        self.put(self.line(block.title, "bold"))
        drawing = next((d for d in plugins.load("figures", Drawing) if d.name == block.name), None)
        if drawing is None or drawing.lines is None:
            self.put(self.line(plain(block.alt)))
        else:
            for text in drawing.lines(block.data, min(self.width, WIDTH), self.ascii_only):
                self.uncut(text)
        if block.caption:
            self.put(self.sentence(block.caption, "dim"))

    def paste(self, block: Paste) -> None:
        self.put(self.line(block.title, "bold"))
        if self.brief and len(block.lines) > MOST_LINES:
            self.left_out(f"{len(block.lines):,} lines to paste")
            return
        for text in block.lines:
            if block.command:
                line = self.line(f"  {plain(text)}")  # a command is copied: nothing may break it
                self.console.print(line, soft_wrap=True)
            else:
                self.put(self.line(plain(text)), indent=2)

    def table(self, block: Table) -> None:
        notes = reasons(block)
        titles = [
            self.safe(c.title if isinstance(c.title, str) else c.title.text) for c in block.columns
        ]
        cells = [[self.cell(c, notes) for c in row] for row in block.rows]
        rows = cells[:MOST_ROWS] if self.brief and len(cells) > MOST_ROWS + 2 else cells
        kept = next(
            (i for i, c in enumerate(block.columns) if c.kind not in (Kind.NAME, Kind.TEXT)), 1
        )
        parts = list(self.folded(titles, rows, min(max(kept, 1), 2)))
        self.put(self.line(block.title, "bold"))
        shown = parts[:1] if self.brief and len(rows) > FEW_ROWS else parts
        for i, part in enumerate(shown):
            if i:
                self.gap()
            self.part(block, part, titles, rows)
        missing = [
            (len(cells) - len(rows), "row"),
            (
                sum(len(part) - len(set(part) & set(parts[0])) for part in parts[len(shown) :]),
                "column",
            ),
        ]
        if any(n for n, _ in missing):
            self.left_out(" and ".join(f"{n:,} more {w}{'s' * (n > 1)}" for n, w in missing if n))
        for reason, letter in notes.items():
            if not self.brief or any(f"({letter})" in text for row in rows for text in row):
                self.put(self.line(reason, "dim"), mark=self.line(f"({letter}) ", "dim"))
        if block.note:
            self.put(self.sentence(block.note, "dim"))

    def left_out(self, what: str) -> None:
        self.put(self.line(f"In the written report: {what}.", "dim"))

    def cell(self, cell: Cell, notes: dict[str, str]) -> str:
        text = self.safe(display(cell))
        interval = display_interval(cell)
        if interval:
            text += self.safe(f" {interval}")
        return f"{text} ({notes[cell.reason]})" if cell.reason else text

    def folded(
        self, titles: list[str], cells: list[list[str]], kept: int
    ) -> Iterator[dict[int, int]]:
        """Columns with their widths, in groups that fit; every group starts with those of names."""
        from rich.cells import cell_len

        needed = [
            max(
                [max(map(cell_len, title.split()), default=1), 1]
                + [min(cell_len(row[i]), 34 if i == 0 else 60) for row in cells]
            )
            for i, title in enumerate(titles)
        ]
        if not needed:
            return
        if sum(needed[:kept]) + kept * GAP > self.width // 2:
            kept = 1  # names too long to stand in every part
        start = {i: needed[i] for i in range(min(kept, len(needed)))}
        group = dict(start)
        for i in range(len(start), len(titles)):
            if len(group) > len(start) and _taken(group) + GAP + needed[i] > self.width:
                yield self.widened(group, titles)
                group = dict(start)
            group[i] = needed[i]
        yield self.widened(group, titles)

    def widened(self, group: dict[int, int], titles: list[str]) -> dict[int, int]:
        """The widths again, with what is left given to titles that would wrap."""
        from rich.cells import cell_len

        left = self.width - _taken(group)
        for i, width in group.items():
            more = min(max(cell_len(titles[i]) - width, 0), max(left, 0))
            group[i], left = width + more, left - more
        return group

    def part(
        self, block: Table, group: dict[int, int], titles: list[str], cells: list[list[str]]
    ) -> None:
        from rich import box
        from rich.table import Table as Grid

        rule = "-" if self.ascii_only else "─"
        lines = ["    "] * 8
        lines[2] = rule * 4
        grid = Grid(
            box=box.Box("\n".join(lines) + "\n"),
            show_edge=False,
            pad_edge=False,
            padding=(0, 1),
            header_style="bold",
        )
        for i, width in group.items():
            left = i == 0 or block.columns[i].kind in (Kind.TEXT, Kind.NAME)
            grid.add_column(
                self.line(titles[i]),
                justify="left" if left else "right",
                overflow="fold",
                vertical="top",
                width=min(width, self.width),
            )
        for row in cells:
            grid.add_row(*(self.line(row[i]) for i in group))
        self.console.print(grid, width=self.width)

    def sources(self) -> None:
        document = self.document
        if document.inputs or options_given(document) or document.version:
            self.head("Inputs and options")
        for source in document.inputs:
            self.put(self.line(f"{source.name}: {source.rows:,} rows, SHA-256 {source.sha256}"))
        for name, text in options_given(document):
            self.put(self.line(text), mark=self.line(f"{name}: "))
        if document.version:
            self.put(self.line(f"voirdire {document.version}"))


FORMAT = Format(name="text", suffixes=(".txt",), render=render, title="Plain text")
