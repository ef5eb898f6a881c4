"""The PDF: the printed page with vectors, loads nothing, is the same each time, and nothing is cut off."""

from __future__ import annotations

import builtins
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import run_python
from tests.reports import REPORTS
from voirdire.errors import MissingExtra
from voirdire.formats import html, pdf

MARGIN, WIDTH = 15 / 25.4 * 72, 595.28  # of A4, in points


def without(monkeypatch: pytest.MonkeyPatch, error: Exception, *, said: str = "") -> None:
    """Make the import of weasyprint fail with this error, after it has printed something."""
    real = builtins.__import__

    def failing(
        name: str, globals: Mapping[str, Any] | None = None, locals: Any = None,
        fromlist: Any = (), level: int = 0,
    ) -> Any:  # fmt: skip
        if name == "weasyprint":
            print(said)
            raise error
        return real(name, globals, locals, fromlist, level)

    monkeypatch.delitem(sys.modules, "weasyprint", raising=False)
    monkeypatch.setattr(builtins, "__import__", failing)


def test_without_weasyprint_the_message_has_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, ModuleNotFoundError("No module named 'weasyprint'", name="weasyprint"))
    with pytest.raises(MissingExtra, match=re.escape("pip install 'voirdire[pdf]'")):
        pdf.render(REPORTS["counts"]())


def test_without_pango_the_message_has_the_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = OSError("cannot load library 'libpango-1.0-0'")
    without(monkeypatch, error, said="advice of another tool")
    with pytest.raises(MissingExtra, match=r"apt install libpango-1\.0-0"):
        pdf.render(REPORTS["counts"]())
    assert "advice" not in capsys.readouterr().out


def test_another_missing_module_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, ModuleNotFoundError("No module named 'tinycss2'", name="tinycss2"))
    with pytest.raises(ModuleNotFoundError, match="tinycss2"):
        pdf.render(REPORTS["counts"]())


def test_the_printed_page_has_no_script_and_no_variable_in_a_drawing() -> None:
    page = html.render(REPORTS["labels"]()).decode()
    assert "<script" in page
    printed = pdf._printed(page, pdf.STYLE)
    assert "<script" not in printed
    drawings = re.findall(r"<svg\b.*?</svg>", printed, re.S)
    assert drawings
    assert not [d for d in drawings if "var(" in d]


def test_every_address_is_refused() -> None:
    with pytest.raises(ValueError, match="loads nothing"):
        pdf._nothing("https://example.org/x.png")


def test_the_command_line_says_what_is_missing(tmp_path: Any) -> None:
    code = (
        "import sys; sys.modules['weasyprint'] = None\n"
        "from voirdire.cli.main import main\n"
        "sys.exit(main(['demo', '--name', 'missing-class-a', '-o', 'a.pdf']))\n"
    )
    done = run_python("-c", code, cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'voirdire[pdf]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "a.pdf").exists()


@pytest.fixture(scope="module")
def printed() -> dict[str, bytes]:
    try:
        return {name: pdf.render(REPORTS[name]()) for name in ("labels", "checklist")}
    except MissingExtra as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_the_same_report_gives_the_same_bytes(printed: dict[str, bytes]) -> None:
    assert pdf.render(REPORTS["labels"]()) == printed["labels"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["labels", "checklist"])
def test_it_has_a_title_a_language_bookmarks_and_page_numbers(
    printed: dict[str, bytes], name: str
) -> None:
    pypdf = pytest.importorskip("pypdf")
    reader = pypdf.PdfReader(io.BytesIO(printed[name]))
    assert reader.metadata.title == REPORTS[name]().title
    assert "CreationDate" not in str(reader.metadata)
    assert reader.trailer["/Root"]["/Lang"] == "en"
    assert len(reader.outline) >= 1
    last = reader.pages[-1].extract_text()
    assert f"{len(reader.pages)} / {len(reader.pages)}" in last
    assert not any(
        "/Image" in str(page.get("/Resources", {}).get("/XObject", {})) for page in reader.pages
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["labels", "checklist"])
def test_no_word_stands_in_the_right_margin(
    printed: dict[str, bytes], name: str, tmp_path: Path
) -> None:
    """A table that is too wide would be cut off; on a screen it scrolls."""
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed; on Debian: apt install poppler-utils")
    path = tmp_path / "report.pdf"
    path.write_bytes(printed[name])
    done = subprocess.run(["pdftotext", "-bbox", str(path), "-"], capture_output=True, check=True)
    words = re.findall(r'<word .*? xMax="([\d.]+)".*?>(.*?)</word>', done.stdout.decode("utf-8"))
    assert len(words) > 500
    assert not [word for edge, word in words if float(edge) > WIDTH - MARGIN + 6]
