"""LaTeX: whatever stands in the data is text, tables fit and can be lifted, and every report compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import DATA, Run
from tests.reports import REPORTS
from tests.test_formats import HOSTILE, document
from voirdire import auditing
from voirdire.document import Cell, Column, Document, Kind, Paste, Table, cell
from voirdire.formats import latex
from voirdire.formats.latex import escape, render, sentence
from voirdire.options import Options
from voirdire.wording import Cite, Lead, Name

PDFLATEX = shutil.which("pdflatex")
needs_latex = pytest.mark.skipif(
    PDFLATEX is None,
    reason="pdflatex is not installed; on Debian: apt install texlive-latex-recommended",
)
MORE_HOSTILE = [
    "α β Φ(λ) ≥ − – “x” … × →",
    "日本語 עברית العربية 😀",
    "^^5cinput{/etc/passwd}",
    r"\write18{touch written}",
    r"\input{secret}",
    "[leading] bracket",
    "*star",
    "a--b---c ''q'' ``g`` ?`!` << >> ,,",
    "r̄ ế ậ Þ ð đ ą « »",
    "x" * 120,
    "vendor/" * 20 + "end",
    "two  spaces  ",
    "%comment",
    r"\\[2cm]",
    "$$x$$",
    r"\end{document}",
    r"\verb|x|",
    r"\iffalse",
]


def compiled(folder: Path, text: bytes | str, name: str = "paper", engine: str = "pdflatex") -> str:
    """Compile twice, as references need; the log. Fails with TeX's own words."""
    data = text if isinstance(text, bytes) else text.encode()
    (folder / f"{name}.tex").write_bytes(data)
    for _ in range(2):
        done = subprocess.run(
            [engine, "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"],
            cwd=folder,
            capture_output=True,
            timeout=240,
            check=False,
        )
        said = done.stdout.decode("utf-8", "replace")
        assert done.returncode == 0, said[said.find("\n!") :][:2000]
    return (folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")


def overfull(log: str) -> list[str]:
    """Lines that stick out by more than TeX's own rounding."""
    return [m[0] for m in re.finditer(r"Overfull \\hbox \((\d+)\.\d+pt", log) if int(m[1]) > 2]


# Escaping


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gpt_5%mini", r"gpt\_5\%mini"),
        (
            "x & y # z ~ ^ \\ {}",
            r"x \& y \# z \textasciitilde{} \textasciicircum{} \textbackslash{} \{\}",
        ),
        ("<b>$1</b>", r"\textless{}b\textgreater{}\$1\textless{}/b\textgreater{}"),
        ("Ærø_ñandú", r"Ærø\_ñandú"),
        ("[1]", "{[}1]"),
        ("*", "{*}"),
        ("a--b", "a-{}-b"),
        ("“x” – y", "``x'' -- y"),
        ("Φ(λ) ≥ 2", r"$\Phi$($\lambda$) $\geq$ 2"),
        ("ab\nc", r"ab$\langle$\texttt{U+000A}$\rangle$c"),
        ("\u202eab", r"$\langle$\texttt{U+202E}$\rangle$ab"),
        ("אב", r"$\langle$\texttt{U+05D0 U+05D1}$\rangle$"),
        ("ǹ", r"\`{n}"),
        ("two  spaces ", r"two \ spaces\ "),
        ("", ""),
    ],
)
def test_a_character_is_written_so_that_tex_sets_it(text: str, shown: str) -> None:
    assert escape(text) == shown


# All commands that escaping may write. Whatever else stands after a backslash came from the data.
OURS = re.compile(
    r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar|ldots|langle|"
    r"rangle|mbox|allowbreak)(?![A-Za-z])|\\char34|\\texttt\{U\+|\\[{}$&#_%, ]|"
    r"\\[`'^~=u.\"rHvdcb]\{|\\[ij](?![A-Za-z])"
)


@given(st.text(max_size=30))
def test_escaped_text_has_no_command_of_its_own(text: str) -> None:
    shown = escape(text).replace(r"\$", "")
    left = OURS.sub("", re.sub(r"\$[^$]*\$(?:\\texttt\{[^}]*\}\$[^$]*\$)?", "", shown))
    assert "\\" not in left, left
    assert "^^" not in shown
    assert not re.search(r"(?<!\\)[%#&]", shown)
    assert "\n" not in shown


def test_a_mark_for_a_character_can_be_told_from_the_same_letters() -> None:
    assert escape("U+05D0") != escape("א")


def test_a_sentence_has_names_citations_and_true_minus_signs() -> None:
    text = (
        "Kappa of ",
        Name("a_b"),
        " is -0.5, that is 12.3 % ",
        Cite("(Cohen 1960)", ["cohen1960"]),
        ".",
    )
    assert sentence(text) == (
        r"Kappa of \texttt{a\_b} is $-$0.5, that is 12.3\,\% \cite{cohen1960}."
    )  # fmt: skip


def test_lines_to_paste_become_a_paragraph_a_list_or_a_description() -> None:
    one = latex.paste(Paste(title="t", lines=(("One line.",),)))
    assert one == "One line."
    two = latex.paste(Paste(title="t", lines=(("One.",), ("[two].",))))
    assert two.splitlines() == [
        r"\begin{itemize}", r"\item One.", r"\item {[}two].", r"\end{itemize}",
    ]  # fmt: skip
    led = latex.paste(
        Paste(title="t", lines=((Lead("Φ(λ)"), "is ", Name("x_y")), (Lead("B"), "b")))
    )
    assert led.splitlines()[1] == r"\item[{$\Phi$($\lambda$)}] is \texttt{x\_y}"


# Tables


def rates(names: list[str], columns: int = 1) -> Table:
    share = Cell(kind=Kind.SHARE, value=0.123, low=0.1, high=0.15)
    none = Cell(kind=Kind.SHARE, reason="nobody was asked")
    return Table(
        title="Rates & more",
        columns=(
            Column(title="grader", kind=Kind.NAME),
            *(Column(title=f"rate {i}", kind=Kind.SHARE) for i in range(columns)),
        ),
        rows=tuple(
            (cell(Name(n)), *([none if i == 0 else share] * columns)) for i, n in enumerate(names)
        ),
    )


def test_a_table_has_units_in_its_heads_and_reasons_under_it() -> None:
    made = latex.table(rates(["a_1", "b"]))
    assert r"grader & rate 0 (\%) \\" in made
    assert r"a\_1 & --\textsuperscript{a} \\" in made
    assert r"b & 12.3 {[10.0, 15.0]} \\" in made
    assert r"\textsuperscript{a}\,nobody was asked" in made
    assert r"\caption{Rates \& more}\label{tab:rates-more}" in made
    assert r"\toprule" in made
    assert "|" not in made


def test_a_row_that_starts_with_a_bracket_is_no_option_of_the_row_before() -> None:
    made = latex.table(rates(["[2cm]", "*x"]))
    assert "\n{[}2cm] & " in made
    assert "\n{*}x & " in made


def test_a_wide_table_sets_intervals_below_and_is_then_cut() -> None:
    wide = latex.table(rates(["a", "b"], columns=6))
    assert wide.count(r"\begin{table}") == 1
    assert r"{\scriptsize {[10.0, 15.0]}}" in wide
    wider = latex.table(rates(["a", "b"], columns=30))
    assert wider.count(r"\begin{table}") > 1
    assert wider.count(r"\label{") == 1
    assert all("grader" in part for part in wider.split(r"\begin{table}")[1:])
    assert wider.count("12.3") == 30


def test_a_long_table_runs_over_pages() -> None:
    made = latex.table(rates([f"g{i}" for i in range(60)]))
    assert r"\begin{longtable}" in made
    assert r"\begin{table}" not in made


def test_a_table_whose_rows_are_two_lines_high_runs_over_pages_before_it_fills_one() -> None:
    names = [f"g{i}" for i in range(latex.MOST_ROWS)]
    assert r"\begin{longtable}" not in latex.table(rates(names))
    assert r"\begin{longtable}" in latex.table(rates(names, columns=6))


def test_labels_of_tables_are_unique() -> None:
    for name, report in REPORTS.items():
        found = re.findall(r"\\label\{([^}]*)\}", render(report()).decode())
        assert len(found) == len(set(found)), name


def test_cells_in_a_row_are_as_many_as_columns() -> None:
    for report in REPORTS.values():
        for table in re.findall(
            r"\\(?:toprule)\n(.*?)\\bottomrule", render(report()).decode(), re.S
        ):
            rows = [
                re.sub(r"\\begin\{tabular\}.*?\\end\{tabular\}|\\&", "", line)
                for line in table.splitlines()
                if line.endswith((r"\\", r"\\*"))
            ]
            assert len({row.count("&") for row in rows}) == 1, rows[:3]


# Compiling


@needs_latex
def test_a_report_of_hostile_names_compiles_and_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret.tex").write_text(r"\typeout{SECRET READ}", encoding="utf-8")
    log = compiled(tmp_path, render(document([*HOSTILE, *MORE_HOSTILE])))
    assert "SECRET READ" not in log
    assert not (tmp_path / "written").exists()
    assert not overfull(log)


@needs_latex
@pytest.mark.slow
@pytest.mark.parametrize("name", REPORTS)
def test_every_kind_of_report_compiles_within_its_margins(name: str, tmp_path: Path) -> None:
    log = compiled(tmp_path, render(REPORTS[name]()))
    assert not overfull(log)
    assert "undefined" not in log.lower().replace("font shape", "")


@needs_latex
@pytest.mark.slow
def test_every_demo_compiles(tmp_path: Path, voirdire: Run) -> None:
    for name in ("xstest", "judge-item-bank", "jailbreakbench", "missing-class-a"):
        done = voirdire("demo", "--name", name, "-o", str(tmp_path / f"{name}.tex"))
        assert done.returncode == 0, done.stderr
        log = compiled(tmp_path, (tmp_path / f"{name}.tex").read_bytes(), name)
        assert not [o for o in overfull(log) if int(re.findall(r"\d+", o)[0]) > 15], name


@needs_latex
@pytest.mark.slow
def test_a_lifted_table_compiles_in_two_columns_and_the_old_encoding(tmp_path: Path) -> None:
    text = render(REPORTS["labels"]()).decode()
    table = re.findall(r"^%-+\n% table:.*?\n(.*?)^%-+$", text, re.M | re.S)[0]
    compiled(
        tmp_path,
        "\\documentclass[twocolumn]{article}\n\\usepackage{booktabs,array}\n"
        f"\\begin{{document}}\n{table}\n\\end{{document}}\n",
    )


@needs_latex
@pytest.mark.slow
def test_the_whole_file_can_be_input_into_a_paper(tmp_path: Path) -> None:
    document = REPORTS["labels"]()
    (tmp_path / "audit.tex").write_bytes(render(document))
    (tmp_path / "methods.bib").write_bytes(auditing.format_of("a.bib").render(document))
    log = compiled(
        tmp_path,
        "\\documentclass{article}\n\\usepackage{booktabs,array,longtable}\n\\begin{document}\n"
        "Before. \\input{audit} After.\n\\bibliographystyle{plain}\\bibliography{methods}\n"
        "\\end{document}\n",
    )
    assert "Output written on paper.pdf" in log


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("lualatex") is None or PDFLATEX is None,
    reason="lualatex is not installed; on Debian: apt install texlive-luatex",
)
def test_a_report_compiles_with_lualatex(tmp_path: Path) -> None:
    compiled(tmp_path, render(REPORTS["counts"]()), engine="lualatex")


def test_the_report_is_the_same_each_time_and_ascii_in_its_comments() -> None:
    report: Document = document(HOSTILE)
    assert render(report) == render(report)
    for line in render(report).decode().splitlines():
        if line.startswith("%"):
            assert line.isascii()


def test_an_audit_of_a_file_writes_tex_and_bib(tmp_path: Path) -> None:
    read = auditing.read(
        DATA / "missing_class_a.csv",
        options=Options.of(layout="counts", scale="refusal,evasion,compliance",
                           off_scale="gibberish,refused_in_cot"),
    )  # fmt: skip
    audit = auditing.run(read)
    audit.write(tmp_path / "a.tex")
    audit.write(tmp_path / "a.bib")
    cited = set(re.findall(r"\\cite\{([^}]*)\}", (tmp_path / "a.tex").read_text("utf-8")))
    keys = set(re.findall(r"^@\w+\{(\w+),", (tmp_path / "a.bib").read_text("utf-8"), re.M))
    assert {k for group in cited for k in group.split(",")} <= keys
