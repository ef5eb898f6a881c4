r"""LaTeX: the report as one file that compiles by itself, with tables to lift into a paper.

Only packages of TeX Live's ``latex`` and ``latexrecommended`` collections are loaded, and what is
written compiles in the old font encoding OT1 as in T1, under pdfLaTeX, LuaLaTeX and XeLaTeX, so that
a table also compiles where somebody pastes it. Text from the data is never TeX: every character that
TeX reads is written out, and one that pdfLaTeX cannot set is shown by its code point, ⟨U+05D0⟩.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from voirdire import bibliography
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
    STATE_WORDS,
    Format,
    counted_states,
    evidence_text,
    options_given,
    reasons,
    sections,
)
from voirdire.wording import Cite, Lead, Name, Part, Text, plain, printable

__all__ = ["FORMAT", "escape", "paste", "render", "sentence", "table"]

# --- characters ---------------------------------------------------------------------------------

# In OT1 as in T1, and from fonts that every installation has as outlines: no \textquotesingle,
# \textquotedbl or \textasciigrave, which are not.
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "`": r"\`{}",
    "\N{NO-BREAK SPACE}": "~",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
    "\N{THIN SPACE}": r"\,",
    "‐": "-",
    "‑": r"\mbox{-}",
    "–": "--",
    "—": "---",
    "’": "'",
    "‘": "`",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
    "ﬁ": "fi",
    "ﬂ": "fl",
}
_MATHS = {
    "⟨": r"\langle",
    "⟩": r"\rangle",
    "≥": r"\geq",
    "≤": r"\leq",
    "≠": r"\neq",
    "≈": r"\approx",
    "≡": r"\equiv",
    "∼": r"\sim",
    "∝": r"\propto",
    "−": "-",
    "±": r"\pm",
    "×": r"\times",
    "÷": r"\div",
    "·": r"\cdot",
    "•": r"\bullet",
    "∙": r"\bullet",
    "°": r"{}^\circ",
    "¬": r"\neg",
    "√": r"\surd",
    "∞": r"\infty",
    "∂": r"\partial",
    "∑": r"\sum",
    "∏": r"\prod",
    "∫": r"\int",
    "∈": r"\in",
    "∉": r"\notin",
    "∩": r"\cap",
    "∪": r"\cup",
    "⊂": r"\subset",
    "⊆": r"\subseteq",
    "∀": r"\forall",
    "∃": r"\exists",
    "∅": r"\emptyset",
    "∧": r"\wedge",
    "∨": r"\vee",
    "⊕": r"\oplus",
    "⊗": r"\otimes",
    "←": r"\leftarrow",
    "→": r"\rightarrow",
    "↑": r"\uparrow",
    "↓": r"\downarrow",
    "↔": r"\leftrightarrow",
    "⇐": r"\Leftarrow",
    "⇒": r"\Rightarrow",
    "⇔": r"\Leftrightarrow",
    "▲": r"\bigtriangleup",
    "○": r"\circ",
    "′": "'",
    "″": "''",
    "µ": r"\mu",
    "ℓ": r"\ell",
}
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξπρςστυφχψωϑϕϵΓΔΘΛΞΠΣΥΦΨΩ",
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "varepsilon",
            "zeta",
            "eta",
            "theta",
            "iota",
            "kappa",
            "lambda",
            "mu",
            "nu",
            "xi",
            "pi",
            "rho",
            "varsigma",
            "sigma",
            "tau",
            "upsilon",
            "varphi",
            "chi",
            "psi",
            "omega",
            "vartheta",
            "phi",
            "epsilon",
            "Gamma",
            "Delta",
            "Theta",
            "Lambda",
            "Xi",
            "Pi",
            "Sigma",
            "Upsilon",
            "Phi",
            "Psi",
            "Omega",
        ],
        strict=True,
    )
)
_MATHS |= {letter: f"\\{name}" for letter, name in _GREEK.items()}
# Capitals that look as Latin ones have no command of their own.
_MATHS |= {
    letter: rf"\mathrm{{{latin}}}"
    for letter, latin in zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo", strict=True)
}
_MATHS |= {c: f"{{}}^{{{i}}}" for i, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
_MATHS |= {c: f"{{}}_{{{i}}}" for i, c in enumerate("₀₁₂₃₄₅₆₇₈₉")}
_MATHS |= {"⁻": "{}^{-}", "⁺": "{}^{+}", "₋": "{}_{-}", "₍": "{}_{(}", "₎": "{}_{)}"}

# Letters and signs that pdfLaTeX sets as they are, in OT1 as in T1 (found by setting each).
_NATIVE = frozenset(
    "¡¿£§¶©ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿĀāĂăĆćĈĉĊċČčĎďĒēĔĕĖėĚě"
    "ĜĝĞğĠġĢģĤĥĨĩĪīĬĭİıĴĵĶķĹĺĻļĽľŁłŃńŅņŇňŌōŎŏŐőŒœŔŕŖŗŘřŚśŜŝŞşŠšŢţŤťŨũŪūŬŭŮůŰűŴŵŶŷŸŹźŻżŽžǍǎǏǐǑǒ"
    "ǓǔǦǧǨǩǰǴǵȘșȚțȲȳ†‡"
)
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0323": "d",
    "\u0327": "c",
    "\u0331": "b",
}
_SHOWN = re.compile("⟨U\\+([0-9A-F]{4,6})⟩")
_NARROW = 9  # the same in a cell of a table, whose column may be narrow
_BREAKS = frozenset("/_-:.@,+=&|")
_MARK_START, _MARK_END = r"$\langle$\texttt{", r"}$\rangle$"
_BREAK = r"\allowbreak{}"
_LONG_WORD = 18  # characters after which a word of the data may be broken anywhere


def escape(text: str) -> str:
    r"""Text as LaTeX in which nothing is a command, for prose, headings and cells of tables.

    Accented Latin stays, Greek and mathematical signs become commands, and what pdfLaTeX cannot set
    (and every control character) stands as ⟨U+XXXX⟩. A bracket or star at the start is
    braced, so that ``\\`` before it takes it for no option. Spaces at the ends and in a row are kept.
    """
    return _escaped(text, breaks=False)


def _escaped(text: str, *, breaks: bool, longest: int = _LONG_WORD) -> str:
    """The text escaped; with ``breaks`` a word may be broken after a sign, or ``longest`` letters on."""
    parts: list[str] = []
    run = 0  # characters since a line could last be broken
    for unit in _units(text):
        mark = _mark(unit)
        if mark:
            if parts and parts[-1].endswith(_MARK_END):  # a space, where a line may end
                parts[-1] = f"{parts[-1].removesuffix(_MARK_END)} {mark}{_MARK_END}"
            else:
                parts.append(f"{_MARK_START}{mark}{_MARK_END}")
            run = 0
            continue
        if unit == " ":
            after_space = not parts or parts[-1] in (" ", r"\ ")
            parts.append(r"\ " if after_space else " ")
            run = 0
            continue
        if unit == "-" and parts and parts[-1].endswith("-"):
            parts.append("{}-")  # no dash of two hyphens
        elif unit in "',<>?!" and parts and parts[-1] == unit:
            parts.append("{}" + unit)
        else:
            parts.append(_character(unit))
        run += 1
        if breaks and ((unit in _BREAKS and run > 2) or run >= longest):
            parts.append(_BREAK)
            run = 0
    if parts and parts[-1] == " ":
        parts[-1] = r"\ "
    if parts and parts[0] in ("[", "*"):
        parts[0] = f"{{{parts[0]}}}"
    return "".join(parts)


def _units(text: str) -> Iterator[str]:
    """The text's characters, each with what combines with it; one that cannot be seen as its mark."""
    shown = unicodedata.normalize("NFC", text) if not text.isascii() else text
    place = 0
    made_visible = printable(shown)
    while place < len(made_visible):
        # A mark that printable() made; one that stood in the data reads the same there, too.
        mark = _SHOWN.match(made_visible, place)
        if mark:
            yield mark[0]
            place = mark.end()
            continue
        end = place + 1
        while end < len(made_visible) and unicodedata.combining(made_visible[end]):
            end += 1
        yield made_visible[place:end]
        place = end


def _character(unit: str) -> str:
    """A character as LaTeX; empty where only its code point can stand for it."""
    if unit in _SPECIAL:
        return _SPECIAL[unit]
    if len(unit) == 1 and ((unit.isascii() and unit.isprintable()) or unit in _NATIVE):
        return unit
    if unit in _MATHS:
        return f"${_MATHS[unit]}$"
    return _accented(unicodedata.normalize("NFD", unit))


def _mark(unit: str) -> str:
    """The code points that stand for a character that cannot be set; else empty."""
    seen = _SHOWN.fullmatch(unit)
    if seen:
        return f"U+{seen[1]}"
    return "" if _character(unit) else " ".join(f"U+{ord(c):04X}" for c in unit)


def _accented(unit: str) -> str:
    """A Latin or Greek letter under one accent that LaTeX has a command for; else empty."""
    base, marks = unit[0], unit[1:]
    if len(marks) != 1 or marks[0] not in _ACCENTS or not base.isalpha():
        return ""
    if base.isascii():
        letter = {"i": r"\i", "j": r"\j"}.get(base, base) if marks[0] < "\u0320" else base
        return rf"\{_ACCENTS[marks[0]]}{{{letter}}}"
    return ""


# --- sentences ----------------------------------------------------------------------------------

_MINUS = re.compile(r"(?<![\w.,)–-])-(?=\.?\d)")
_UNIT = re.compile(r"(?<=\d) (?=\\%)")


def _numbers(latex: str) -> str:
    """Escaped text of ours with a true minus before numbers and a thin space before per cent."""
    return _UNIT.sub(r"\\,", _MINUS.sub("$-$", latex))


def _part(part: Part, *, upright: bool) -> str:
    if isinstance(part, Name):
        name = _escaped(part.text, breaks=len(part.text) > _LONG_WORD)
        return name if upright else rf"\texttt{{{name}}}"
    if isinstance(part, Cite):
        return rf"\cite{{{','.join(part.keys)}}}"
    if isinstance(part, Lead):
        return rf"\textbf{{{_inner(part.strip())}}} "
    return _numbers(_inner(part))


def _inner(text: str) -> str:
    """Our own text inside a sentence: the spaces at its ends are spaces between words."""
    escaped = _escaped(text, breaks=False)
    if text.startswith(" ") and escaped.startswith(r"\ "):
        escaped = escaped[1:]
    return escaped[:-2] + " " if text.endswith(" ") and escaped.endswith(r"\ ") else escaped


def sentence(text: Text | str, *, upright: bool = False) -> str:
    r"""A sentence as LaTeX: names in ``\texttt`` (``upright``: as the rest), citations as ``\cite``."""
    parts = (text,) if isinstance(text, str) else text
    made = "".join(_part(p, upright=upright) for p in parts)
    return f"{{{made[0]}}}{made[1:]}" if made[:1] in ("[", "*") else made


def paste(block: Paste) -> str:
    """The lines of a paste block as LaTeX: a paragraph, a list, a description, or shell commands."""
    if block.command:
        lines = [
            rf"\noindent\hangindent=1em {{\ttfamily {_escaped(plain(line), breaks=True)}}}\par"
            for line in block.lines
        ]
        return "\n".join(["{\\footnotesize\\raggedright", *lines, "}"])
    if len(block.lines) == 1:
        return sentence(block.lines[0])
    if any(line and isinstance(line[0], Lead) for line in block.lines):
        items = []
        for line in block.lines:
            lead = line[0] if line and isinstance(line[0], Lead) else Lead("")
            rest = line[1:] if line and isinstance(line[0], Lead) else line
            items.append(rf"\item[{{{escape(lead.word)}}}] {sentence(rest).lstrip()}")
        return "\n".join([r"\begin{description}", *items, r"\end{description}"])
    return "\n".join([r"\begin{itemize}", *(_item(line) for line in block.lines), r"\end{itemize}"])


def _item(text: Text | str) -> str:
    return rf"\item {sentence(text)}"


# --- tables -------------------------------------------------------------------------------------

LINE = 108  # digits of \footnotesize in the width of the text
SMALL = 0.75  # how wide an interval in \scriptsize is beside its characters
GAP = 2  # characters between columns
LEAST_HEAD = 10  # characters of a heading before it is set on several lines
LONGEST_HEAD = 20  # characters of a heading on one line
MOST_ROWS = 28  # of a table that is one piece; a longer one may break across pages
MOST_HEIGHT = 52  # lines of the same, where names are broken into lines or intervals stand below
_LEFT = (Kind.TEXT, Kind.NAME)
_UNITS = {Kind.SHARE: r"\%", Kind.POINTS: "points"}


@dataclass(frozen=True)
class _Column:
    """One column as it is set: its heading, its cells and intervals, and how wide they are."""

    title: str
    left: bool
    values: tuple[str, ...]
    intervals: tuple[str, ...]
    lengths: tuple[int, ...]  # characters of each value
    beside: tuple[int, ...]  # characters of each value with its interval
    ends: tuple[int, ...]  # characters of each interval
    head: int  # characters of the heading's longest word, at most LONGEST_HEAD
    narrow: bool  # whether a word of the heading is longer, so that it is broken into lines
    unit: str = ""
    width: int = 0  # of a column whose text is broken into lines; 0 where it is not

    def taken(self, *, stacked: bool) -> int:
        if self.width:
            return self.width
        cells = max(self.lengths if stacked else self.beside, default=1)
        ends = max(self.ends, default=0) if stacked else 0
        return max(cells, math.ceil(SMALL * ends), self.head)


def table(block: Table, *, label: str = "") -> str:
    r"""A table as LaTeX: booktabs, with caption, label and notes, no wider than the text.

    It needs ``\usepackage{booktabs}`` and ``\usepackage{array}``, and with more than 28 rows (or 52
    lines) ``\usepackage{longtable}``. Numbers stand on the right with their interval in brackets, below them
    where the table would be too wide; a table that is too wide even so is cut into several with the
    first column repeated. Per cent stands in the heading. What is undefined is a dash with a letter,
    and the notes under the table give the reason. The label is ``tab:`` and the title's words.
    """
    notes = reasons(block)
    label = label or "tab:" + _slug(block.title)
    columns = [_column(block, i, notes) for i in range(len(block.columns))]
    columns, stacked = _fitted(columns)
    columns = [c if c.width else replace(c, values=_whole(c.values)) for c in columns]
    groups = _groups(columns, stacked=stacked)
    below = _notes(block, notes)
    made = []
    for i, group in enumerate(groups):
        caption = escape(block.title) + (" (continued)" if i else "")
        again = "\\addtocounter{table}{-1}%\n" if i else ""
        last = below if i == len(groups) - 1 else []
        piece = _Piece(
            columns=[columns[c] for c in group],
            caption=again + rf"\caption{{{caption}}}" + ("" if i else rf"\label{{{label}}}"),
            below=last,
            stacked=stacked,
        )
        long = len(block.rows) > MOST_ROWS or piece.height > MOST_HEIGHT
        made.append(piece.long() if long else piece.whole())
    return "\n\n".join(made)


def _whole(values: Sequence[str]) -> tuple[str, ...]:
    """Cells of a column that is never broken into lines, without places to break."""
    return tuple(v.replace(_BREAK, "") for v in values)


@dataclass(frozen=True)
class _Piece:
    """One table as it is written: all of it, or the columns that fit together."""

    columns: Sequence[_Column]
    caption: str
    below: Sequence[str]
    stacked: bool

    @property
    def spec(self) -> str:
        return "@{}" + "".join(map(_spec, self.columns)) + "@{}"

    @property
    def head(self) -> str:
        return " & ".join(_heading(c, stacked=self.stacked) for c in self.columns) + r" \\"

    @property
    def height(self) -> float:
        """About how many lines the rows take; words that do not fill a line cost a fifth of it."""
        total = 0.0
        for i in range(len(self.columns[0].values) if self.columns else 0):
            broken = (math.ceil(c.lengths[i] / (0.8 * c.width)) for c in self.columns if c.width)
            below = self.stacked and any(c.intervals[i] for c in self.columns)
            total += max(broken, default=1) + (1.3 if below else 0)
        return total

    def body(self, end: str) -> Iterator[str]:
        rows = len(self.columns[0].values) if self.columns else 0
        for i in range(rows):
            if not self.stacked or not any(c.intervals[i] for c in self.columns):
                cells = (
                    f"{c.values[i]} {c.intervals[i]}" if c.intervals[i] else c.values[i]
                    for c in self.columns
                )
                yield " & ".join(cells) + r" \\"
                continue
            yield " & ".join(c.values[i] for c in self.columns) + rf" \\{end}"
            yield " & ".join(_small(c.intervals[i]) for c in self.columns) + r" \\"
            if i < rows - 1:
                yield r"\addlinespace"

    def whole(self) -> str:
        """A floating table, as papers have them, also in two columns."""
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering\footnotesize",
                self.caption,
                r"\setlength{\tabcolsep}{4pt}",
                rf"\begin{{tabular}}{{{self.spec}}}",
                r"\toprule",
                self.head,
                r"\midrule",
                *self.body(""),
                r"\bottomrule",
                r"\end{tabular}",
                *(rf"\par\smallskip\parbox{{\linewidth}}{{\raggedright {n}}}" for n in self.below),
                r"\end{table}",
            ]
        )

    def long(self) -> str:
        """A table that runs over pages and repeats its head."""
        return "\n".join(
            [
                r"{\footnotesize",
                r"\setlength{\tabcolsep}{4pt}",
                rf"\begin{{longtable}}{{{self.spec}}}",
                rf"{self.caption}\\",
                r"\toprule",
                self.head,
                r"\midrule",
                r"\endfirsthead",
                r"\toprule",
                self.head,
                r"\midrule",
                r"\endhead",
                r"\bottomrule",
                r"\endfoot",
                *self.body("*"),
                r"\end{longtable}",
                *(rf"\noindent{{\raggedright {n}\par}}" for n in self.below),
                "}",
            ]
        )


def _spec(column: _Column) -> str:
    if column.width:
        share = column.width / LINE
        return rf">{{\raggedright\arraybackslash}}p{{{share:.3f}\linewidth}}"
    return "l" if column.left else "r"


def _small(interval: str) -> str:
    return rf"{{\scriptsize {interval}}}" if interval else ""


def _column(block: Table, place: int, notes: dict[str, str]) -> _Column:
    column = block.columns[place]
    cells = [row[place] for row in block.rows]
    left = place == 0 or column.kind in _LEFT
    numeric = [c for c in cells if c.kind not in _LEFT and c.value is not None]
    kinds = {c.kind for c in numeric}
    unit = _UNITS.get(next(iter(kinds)), "") if len(kinds) == 1 else ""
    if isinstance(column.title, Name):
        title, long = _escaped(column.title.text, breaks=True), column.title.text
    else:
        title, long = escape(column.title), column.title
    head = max((_width(w) for w in long.split()), default=1)
    head = max(head, min(_width(f"{long} ({unit})" if unit else long), LEAST_HEAD))
    values, intervals = [], []
    lengths, beside, ends = [], [], []
    for c in cells:
        mark = notes.get(c.reason, "")
        shown = _value(c, unit)
        interval = _numbers(escape(display_interval(c)).replace("{[}", "[", 1))
        values.append(shown + (rf"\textsuperscript{{{mark}}}" if mark else ""))
        intervals.append(f"{{{interval}}}" if interval else "")
        size = _width(display(c).removesuffix(" %" if unit else "")) + len(mark)
        lengths.append(size)
        ends.append(len(display_interval(c)))
        beside.append(size + (ends[-1] + 1 if interval else 0))
    return _Column(
        title=title,
        left=left,
        values=tuple(values),
        intervals=tuple(intervals),
        lengths=tuple(lengths),
        beside=tuple(beside),
        ends=tuple(ends),
        head=min(head, LONGEST_HEAD),
        narrow=head > LONGEST_HEAD,
        unit=unit,
    )


def _width(text: str) -> int:
    """How many digits a text is wide: capitals and some signs are wider, a code point has marks."""
    shown = printable(text)
    wide = sum(c.isupper() or c in "mw%&@<>=+~⟨⟩" for c in shown)
    foreign = sum(not c.isascii() and not _character(c) for c in shown)
    return math.ceil(len(shown) + 0.4 * wide + 7 * foreign)


def _value(cell: Cell, unit: str) -> str:
    if isinstance(cell.value, tuple):
        return sentence(cell.value, upright=True)
    if isinstance(cell.value, str):
        # Where the column turns out wide enough these breaks are taken out again.
        return _escaped(cell.value, breaks=True, longest=_NARROW)
    shown = display(cell)
    if unit == r"\%":
        shown = shown.removesuffix(" %")
    return _numbers(escape(shown))


def _heading(column: _Column, *, stacked: bool) -> str:
    """The heading, on several lines where it is wider than what stands below it."""
    unit = f" ({column.unit})" if column.unit else ""
    if column.width:
        return column.title + unit
    if column.narrow:
        width = max(column.taken(stacked=stacked), LONGEST_HEAD) / LINE
        return (
            rf"\parbox[b]{{{width:.3f}\linewidth}}{{\ragged{'right' if column.left else 'left'}"
            rf"\hspace{{0pt}}{column.title}{unit}}}"
        )
    room = max(column.taken(stacked=stacked), LEAST_HEAD)
    words = [*column.title.split(" "), *([unit.strip()] if unit else [])]
    lines = [""]
    for word in words:
        joined = f"{lines[-1]} {word}".strip()
        if len(re.sub(r"\\allowbreak\{\}|\\(?=\W)|[{}]", "", joined)) > room and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = joined
    if len(lines) == 1:
        return lines[0]
    side = "l" if column.left else "r"
    return rf"\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}" + r"\\".join(lines) + r"\end{tabular}"


def _fitted(columns: list[_Column]) -> tuple[list[_Column], bool]:
    """Columns that fit the width, and whether intervals stand below their values for that."""
    for stacked in (False, True):
        if _needed(columns, stacked=stacked) <= LINE:
            return columns, stacked
        broken = _broken(columns, stacked=stacked)
        if _needed(broken, stacked=stacked) <= LINE:
            return broken, stacked
    return broken, True


def _needed(columns: Sequence[_Column], *, stacked: bool) -> int:
    return sum(c.taken(stacked=stacked) for c in columns) + GAP * max(len(columns) - 1, 0)


def _broken(columns: list[_Column], *, stacked: bool) -> list[_Column]:
    """With the text columns broken into lines, each as wide as its share of what numbers leave."""
    texts = [i for i, c in enumerate(columns) if c.left and max(c.lengths, default=0) > 12]
    if not texts:
        return columns
    fixed = _needed(columns, stacked=stacked) - sum(
        columns[i].taken(stacked=stacked) for i in texts
    )
    least = {i: min(columns[i].taken(stacked=stacked), 14 if i == 0 else 18) for i in texts}
    room = max(LINE - fixed, sum(least.values()))
    wanted = {i: columns[i].taken(stacked=stacked) ** 0.5 for i in texts}
    widths: dict[int, int] = {}
    left, waiting = room, list(texts)
    while waiting:
        total = sum(wanted[i] for i in waiting)
        share = {i: max(least[i], int(left * wanted[i] / total)) for i in waiting}
        fits = [i for i in waiting if columns[i].taken(stacked=stacked) <= share[i]]
        if not fits:
            widths |= share
            break
        for i in fits:  # narrower than its share: the others have the rest
            left -= columns[i].taken(stacked=stacked)
            waiting.remove(i)
    return [replace(c, width=widths[i]) if i in widths else c for i, c in enumerate(columns)]


def _groups(columns: Sequence[_Column], *, stacked: bool) -> list[list[int]]:
    """The places of columns in tables that each fit; every one starts with the names."""
    if not columns:
        return [[]]
    kept = 1
    while kept < min(2, len(columns)) and columns[kept].left:
        kept += 1
    start = list(range(kept))
    if _needed([columns[i] for i in start], stacked=stacked) > LINE // 2:
        start = [0]
    groups, group = [], list(start)
    for i in range(len(start), len(columns)):
        wider = [columns[c] for c in (*group, i)]
        if len(group) > len(start) and _needed(wider, stacked=stacked) > LINE:
            groups.append(group)
            group = list(start)
        group.append(i)
    return [*groups, group]


def _notes(block: Table, notes: dict[str, str]) -> list[str]:
    made = [
        rf"\textsuperscript{{{letter}}}\,{sentence(reason)}" for reason, letter in notes.items()
    ]
    if block.note:
        made.append(sentence(block.note))
    helps = [c for c in block.columns if c.help]
    if helps:
        said = "; ".join(
            f"{escape(c.title) if isinstance(c.title, str) else sentence((c.title,))}: "
            f"{sentence(c.help)}"
            for c in helps
        )
        made.append(said if said.endswith(".") else f"{said}.")
    return made


def _slug(title: str) -> str:
    words = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:40].strip("-") or "table"


# --- the report ---------------------------------------------------------------------------------

_PREAMBLE = r"""
% Report of voirdire @version@. It compiles on its own with pdflatex, lualatex or xelatex.
%
% In a paper: copy a table from between its two ruled comments. It needs
%   \usepackage{booktabs} \usepackage{array} and, for a table over several pages, \usepackage{longtable}
% and its citations need the entries that `voirdire audit ... -o methods.bib` writes.
% Or \input this whole file: what stands up to \begin{document} is then passed over.
\expandafter\ifx\csname @nodocument\endcsname\relax
\def\voirdireend{}%
\def\voirdirereferences#1{}%
\else
\documentclass[10pt,a4paper]{article}
\usepackage[utf8]{inputenc}
\usepackage[margin=22mm]{geometry}
\IfFileExists{lmodern.sty}{\usepackage[T1]{fontenc}\usepackage{lmodern}}{}
\usepackage{array}
\usepackage{booktabs}
\usepackage{longtable}
\usepackage{float}
\usepackage{graphicx}
\usepackage[hidelinks,pdfusetitle,hypertexnames=false]{hyperref}
\floatplacement{table}{H}
\renewcommand\labelitemi{$\bullet$}
\setlength{\belowcaptionskip}{4pt}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt plus 2pt}
\sloppy
\raggedbottom
\hypersetup{pdflang=en}
\title{@title@}
\author{}
\date{}
\def\voirdireend{\end{document}}
\def\voirdirereferences#1{#1}
\begin{document}
\maketitle
\fi
""".lstrip()
_RULE = "%" + "-" * 78


def render(document: Document) -> bytes:
    """Write the whole report as one LaTeX file."""
    labels = dict[str, int]()
    parts = [
        _PREAMBLE.replace("@version@", _comment(document.version)).replace(
            "@title@", escape(document.title)
        ),
        sentence(document.summary),
    ]
    if document.findings:
        parts += [r"\section{Findings}", f"{counted_states(document.findings)}.".capitalize()]
        parts += _findings(document.findings)
    for heading, blocks in sections(document):
        if heading.text:
            parts.append(rf"\section{{{escape(heading.text)}}}")
        parts += _blocks(blocks, labels)
    parts += _sources(document)
    cited = bibliography.cited_in(document)
    if cited:
        parts.append(f"\\voirdirereferences{{%\n{references(cited)}}}")
    parts.append("\\voirdireend")
    text = "\n\n".join(p for p in parts if p) + "\n"
    return text.encode("utf-8", "replace")


def references(keys: Iterable[str]) -> str:
    """The entries of these keys as a bibliography that needs no BibTeX."""
    items = []
    for key in keys:
        entry = bibliography.entry(key)
        parts = [
            rf"\emph{{{escape(text)}}}" if set_off else _numbers(escape(text))
            for text, set_off in entry.parts()
        ]
        items.append(rf"\bibitem{{{key}}} " + "".join(parts))
    return "\n".join([r"\begin{thebibliography}{99}", *items, r"\end{thebibliography}", ""])


def _comment(text: str) -> str:
    """Text for a comment: one line of ASCII, whatever stood in it."""
    return re.sub(r"[^ -~]+|\^", "?", text)


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        if finding.state in LOUD:
            yield _loud(finding)
    quiet = [_quiet(f) for f in findings if f.state not in LOUD]
    if quiet:
        yield "\n".join([r"\begin{itemize}\footnotesize", *quiet, r"\end{itemize}"])


def _state(finding: Finding) -> str:
    return STATE_WORDS[finding.state].capitalize()


def _loud(finding: Finding) -> str:
    words = [_state(finding), *([str(finding.strength)] if finding.strength else [])]
    if finding.exploratory:
        words.append("exploratory")
    head = f"{', '.join(words)}: {escape(finding.code.replace('_', ' '))}."
    lines = [rf"\paragraph{{{head}}} {sentence(finding.sentence)}"]
    if finding.next_step:
        lines.append(rf"\emph{{Next:}} {sentence(finding.next_step)}")
    if finding.evidence:
        lines += [
            r"\begin{itemize}\footnotesize\setlength{\itemsep}{0pt}",
            *(_item(evidence_text(e)) for e in finding.evidence),
            r"\end{itemize}",
        ]
    return "\n".join(lines)


def _quiet(finding: Finding) -> str:
    code = escape(finding.code.replace("_", " "))
    return rf"\item {_state(finding)}, {code}: {sentence(finding.sentence)}"


def _blocks(blocks: Iterable[Block], labels: dict[str, int]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Heading():
                command = r"\subsection" if block.level <= 3 else r"\subsubsection"
                yield rf"{command}{{{escape(block.text)}}}"
            case Paragraph():
                yield _toned(block)
            case Table():
                yield _framed(f"table: {block.title}", table(block, label=_unique(block, labels)))
            case Figure():
                yield _figure(block)
            case FindingBlock():
                yield "\n".join(
                    [r"\begin{itemize}\footnotesize", _quiet(block.finding), r"\end{itemize}"]
                )
            case Paste():
                title = rf"\subsection*{{{escape(block.title)}}}"
                yield _framed(f"text: {block.title}", f"{title}\n{paste(block)}")


def _framed(what: str, latex: str) -> str:
    """Between two comments that show where to copy from and up to."""
    return f"{_RULE}\n% {_comment(what)}\n{latex}\n{_RULE}"


def _unique(block: Table, labels: dict[str, int]) -> str:
    slug = _slug(block.title)
    labels[slug] = labels.get(slug, 0) + 1
    return f"tab:{slug}" + (f"-{labels[slug]}" if labels[slug] > 1 else "")


def _toned(block: Paragraph) -> str:
    said = sentence(block.text)
    if block.tone is Tone.WARNING:
        return rf"\textbf{{Warning:}} {said}"
    return rf"{{\small {said}\par}}" if block.tone is Tone.NOTE else said


def _figure(block: Figure) -> str:
    """A figure by the text that stands for it, and how to have it drawn."""
    file = f"{re.sub('[^a-z0-9]+', '-', block.name.lower()).strip('-') or 'figure'}.pdf"
    lines = [
        f"% figure: {_comment(block.title)}. To have it drawn, put the file that",
        f"% `voirdire figure {_comment(block.name)} ... -o {file}` writes here:",
        rf"% \begin{{center}}\includegraphics[width=\linewidth]{{{file}}}\end{{center}}",
        rf"\textbf{{{escape(block.title)}.}} {sentence(block.alt, upright=True)}",
    ]
    if block.caption:
        lines += ["", rf"{{\small {sentence(block.caption)}\par}}"]
    return "\n".join(lines)


def _sources(document: Document) -> Iterator[str]:
    options = options_given(document)
    if not (document.inputs or options or document.version):
        return
    yield r"\section{Inputs and options}"
    rows = [
        rf"\item \texttt{{{_escaped(i.name, breaks=True)}}}: {i.rows:,} rows, SHA-256 "
        rf"\texttt{{\scriptsize {_escaped(i.sha256, breaks=True)}}}"
        for i in document.inputs
    ]
    rows += [
        rf"\item {escape(name)}: \texttt{{{_escaped(text, breaks=True)}}}" for name, text in options
    ]
    if rows:
        yield "\n".join([r"\begin{itemize}\raggedright", *rows, r"\end{itemize}"])
    if document.version:
        yield f"voirdire {escape(document.version)}"


FORMAT = Format(name="latex", suffixes=(".tex",), render=render, title="LaTeX, compiles on its own")
