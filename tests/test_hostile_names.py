"""FC-27 in the formats and commands that tests/test_field_cases.py does not look at.

There: HTML, Markdown, CSV, JSON, Parquet and the terminal of an audit. Here: LaTeX and PDF, the page's
JSON, every command that prints, the order of files and report, files named after data, and colour.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

import voirdire as vd
from tests.conftest import run_python
from tests.test_latex import compiled, needs_latex, overfull
from voirdire import auditing
from voirdire.finding import State
from voirdire.formats.base import STATE_SIGNS, STATE_WORDS
from voirdire.formats.table import read_results

INPUTS = Path(__file__).resolve().parents[2] / "shared" / "cases" / "inputs"
# The names of the field case, so that these tests also run where it is not at hand.
GRADERS = [
    "gpt_5%mini",
    "a|b",
    "<b>bold</b>",
    "vendor/model:2026-01",
    "Ærø_ñandú",
    "=SUM(A1)",
    "con",
    "x & y # z ~ ^ \\ {}",
]
RESPONSES = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "=1+2",
    "-3",
    "+44 20 0000",
    "@now",
    "\tTAB first",
    "normal text",
    "| pipe | and \\| both |",
    "line one\nline two",
]
MORE = [
    "..",
    "aux.",
    "CON",
    "a/b",
    "a\\b",
    "a:b",
    "trailing. ",
    "\\input{x}",
    "$\\alpha$",
    "\u202eabc",
]


def test_the_names_are_those_of_the_field_case() -> None:
    path = INPUTS / "hostile-names.json"
    if not path.is_file():
        pytest.skip("the field cases (../shared/cases) are not beside this checkout")
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "graders": GRADERS, "responses": RESPONSES,
    }  # fmt: skip


def table(graders: Sequence[str] = (*GRADERS, *MORE)) -> pl.DataFrame:
    classes = [text.strip() for text in RESPONSES[:4]]
    return pl.DataFrame(
        [
            {
                "response": text,
                "grader": grader,
                "label": classes[(i + j) % 4],
                "topic": RESPONSES[i % 5],
            }
            for i, text in enumerate(RESPONSES)
            for j, grader in enumerate(graders)
        ]
    )


@pytest.fixture(scope="module")
def audit() -> vd.Audit:
    return vd.audit(vd.Labels.from_frame(table()), by=["topic"], gold="con")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    table([*GRADERS[:3], *MORE]).write_parquet(tmp_path / "labels.parquet")
    return tmp_path


# LaTeX


@needs_latex
def test_latex_with_these_names_compiles_within_its_margins(
    audit: vd.Audit, tmp_path: Path
) -> None:
    audit.write(tmp_path / "audit.tex")
    log = compiled(tmp_path, (tmp_path / "audit.tex").read_bytes())
    assert not overfull(log)


def test_latex_has_each_name_as_text(audit: vd.Audit, tmp_path: Path) -> None:
    audit.write(tmp_path / "audit.tex")
    text = (tmp_path / "audit.tex").read_text("utf-8").replace(r"\allowbreak{}", "")
    for shown in (
        r"gpt\_5\%mini",
        r"a\textbar{}b",
        r"\textless{}b\textgreater{}bold\textless{}/b\textgreater{}",
        "vendor/model:2026-01",
        r"Ærø\_ñandú",
        "=SUM(A1)",
        r"x \& y \# z \textasciitilde{} \textasciicircum{} \textbackslash{} \{\}",
        r"\textbackslash{}input\{x\}",
        r"\$\textbackslash{}alpha\$",
        r"$\langle$\texttt{U+202E}$\rangle$abc",
    ):
        assert shown in text
    assert not re.search(
        r"(?<!\\textbackslash\{\})\\input(?![a-z])", text.split(r"\begin{document}")[1]
    )


# The page


def test_json_in_the_page_cannot_end_its_element(audit: vd.Audit, tmp_path: Path) -> None:
    audit.write(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text("utf-8")
    opened = re.findall(r"<script\b([^>]*)>(.*?)</script>", page, re.S)
    assert page.count("</script>") == len(opened)
    for attributes, content in opened:
        assert "<script" not in content
        if "json" in attributes:
            json.loads(content)
    assert "<img src=x" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)


# CSV


def test_a_number_stays_a_number_and_a_text_that_looks_like_one_is_guarded(
    audit: vd.Audit, tmp_path: Path
) -> None:
    audit.write(tmp_path / "audit.csv")
    text = (tmp_path / "audit.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    classes = {row["class"] for row in rows}
    assert "'-3" in classes
    assert "'=1+2" in classes
    assert "-3" not in classes
    negative = [row["value"] for row in rows if row["value"].startswith("-")]
    assert negative
    assert all(float(v) < 0 for v in negative)
    again = read_results(tmp_path / "audit.csv")
    assert again.equals(audit.results)
    assert set(again["grader"]) >= set(GRADERS) - {"con"}


# The terminal

COMMANDS = (
    ("audit", "labels.parquet"),
    ("look", "labels.parquet"),
    ("convert", "labels.parquet", "-o", "again.csv"),
)


@pytest.mark.parametrize("encoding", ["cp1252", pytest.param("ascii", marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_no_command_crashes_on_a_terminal_without_the_characters(
    command: tuple[str, ...], encoding: str, file: Path
) -> None:
    done = run_python(
        *("-m", "voirdire", *command),
        cwd=file,
        env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    assert "\r" not in said
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_files_are_on_disk_before_the_summary_is_printed(file: Path) -> None:
    """A standard output that fails at once: the files are there all the same."""
    code = (
        "import sys\n"
        "class Broken:\n"
        "    encoding = 'cp1252'\n"
        "    def write(self, text): raise OSError(28, 'No space left on device')\n"
        "    def flush(self): pass\n"
        "    def isatty(self): return False\n"
        "sys.stdout = Broken()\n"
        "from voirdire.cli.main import main\n"
        "sys.exit(main(['audit', 'labels.parquet', '-o', 'a.json', '-o', 'a.tex', '-o', 'a.csv']))\n"
    )
    done = run_python("-c", code, cwd=file)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    for name in ("a.json", "a.tex", "a.csv"):
        assert (file / name).stat().st_size > 1000


# Files


@pytest.mark.slow
def test_no_command_makes_a_file_that_is_named_after_data(file: Path) -> None:
    """Every file has the name that the user gave, or one made of that: no grader names a file."""
    before = {p.name for p in file.iterdir()}
    asked = ["a.html", "a.md", "a.tex", "a.bib", "a.json", "a.csv", "a.parquet", "a.txt", "all.csv"]
    for command in (
        ["audit", "labels.parquet", "--quiet", *(x for n in asked[:-1] for x in ("-o", n))],
        ["convert", "labels.parquet", "-o", "all.csv"],
    ):
        done = run_python("-m", "voirdire", *command, cwd=file)
        assert done.returncode == 0, done.stderr
    made = {p.name for p in file.rglob("*")} - before
    assert {n for n in made if not n.startswith("a.")} == {"all.csv"}


# Colour


def test_a_state_has_a_word_and_a_sign_of_its_own() -> None:
    assert (
        len({STATE_WORDS[s] for s in State}) == len({STATE_SIGNS[s] for s in State}) == len(State)
    )


def test_red_and_green_are_no_pair_in_the_page() -> None:
    """No colour of the page is a green that stands against its reds (hue 80 to 160, not grey)."""
    import colorsys

    style = Path(auditing.__file__).parent / "formats" / "report.css"
    for colour in re.findall(r"#([0-9a-f]{6})\b", style.read_text("utf-8")):
        r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4))
        hue, light, strong = colorsys.rgb_to_hls(r, g, b)
        assert not (80 < 360 * hue < 160 and strong > 0.25 and 0.15 < light < 0.85), colour


@pytest.mark.slow
def test_pdf_with_these_names_is_written(tmp_path: Path) -> None:
    pytest.importorskip("weasyprint", reason="the extra pdf is not installed", exc_type=ImportError)
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed; on Debian: apt install poppler-utils")
    import subprocess

    audit = vd.audit(vd.Labels.from_frame(table(GRADERS)))
    audit.write(tmp_path / "audit.pdf")
    said = subprocess.run(
        ["pdftotext", str(tmp_path / "audit.pdf"), "-"], capture_output=True, check=True
    ).stdout.decode("utf-8", "replace")
    for name in ("gpt_5%mini", "<b>bold</b>", "=SUM(A1)"):
        assert name in said
    assert "alert(2)</script>" not in said.replace("</script><script>alert(2)</script>", "")
