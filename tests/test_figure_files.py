"""Figures as files: PDF and PNG are the SVG as a browser draws it, and the same bytes each time."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests import drawn
from tests.conftest import run_python
from voirdire import plugins
from voirdire.errors import MissingExtra, UsageError, VoirdireError
from voirdire.figures import printing
from voirdire.figures.base import Drawing

np = pytest.importorskip("numpy")
pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")

ALL = {d.name: d for d in plugins.load("figures", Drawing)}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PDFTOPPM = shutil.which("pdftoppm")
# What the figures use of SVG that none of them has at once.
PIECES = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 160" fill="currentColor" '
    'font-family="sans-serif"><title>t</title><desc>d</desc>'
    '<defs><pattern id="h" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#868e97" fill-opacity=".25"/>'
    '<rect width="2" height="6" fill="#868e97"/></pattern>'
    '<pattern id="dots" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<circle cx="3" cy="3" r="1.5" fill="#b3470f"/></pattern>'
    '<clipPath id="c"><rect x="200" y="10" width="40" height="40"/></clipPath></defs>'
    '<rect x="10" y="10" width="80" height="40" fill="url(#h)" stroke="#20456e"/>'
    '<rect x="100" y="10" width="80" height="40" fill="url(#dots)"/>'
    '<g clip-path="url(#c)"><circle cx="220" cy="30" r="28" fill="#5a8ab7"/></g>'
    '<g opacity=".5"><rect x="250" y="10" width="40" height="40" fill="#0d2f57"/></g>'
    '<path d="M10 70h60v20l-30 10z M90 70c20 -20 40 40 60 0 q10 -10 20 0" fill="none" stroke="#000" '
    'stroke-width="2" stroke-dasharray="6 3" stroke-linejoin="round"/>'
    '<line x1="180" y1="70" x2="290" y2="90" stroke="currentColor" stroke-opacity=".4"/>'
    '<text x="150" y="120" font-size="14" text-anchor="middle">one<tspan font-weight="600"> two</tspan>'
    '<tspan fill-opacity=".65"> three</tspan></text>'
    '<text x="290" y="150" font-size="14" text-anchor="end">to the end</text>'
    '<text x="20" y="150" font-size="14" transform="rotate(-30 20 150)">turned</text></svg>'
)


def picture(name: str, make: Any = drawn.example) -> str:
    return ALL[name].svg(make(name), "What it shows.")


# Setting fonts into a PDF takes its time: some figures each time, all of them by `make slow`.
SOME = ("class_shares", "kept_moved", "totals_histogram")
PDFS = [n if n in SOME else pytest.param(n, marks=pytest.mark.slow) for n in sorted(ALL)]


@pytest.mark.parametrize("name", PDFS)
def test_every_figure_becomes_pdf_with_real_text_and_no_date(name: str) -> None:
    content = printing.pdf(picture(name, drawn.hostile))
    assert content.startswith(b"%PDF-")
    assert b"/FontFile2" in content  # TrueType, whole letters to be searched and copied
    assert b"/Type3" not in content
    assert b"Date" not in content
    assert b"Matplotlib" not in content


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_figure_becomes_png_in_its_proportions(name: str, tmp_path: Path) -> None:
    svg = picture(name, drawn.hostile)
    (tmp_path / "a.png").write_bytes(printing.png(svg, scale=1, dark=True))
    with Image.open(tmp_path / "a.png") as made:
        _, _, width, height = (float(x) for x in re.findall(r'viewBox="([^"]*)"', svg)[0].split())
        around = 2 * printing.MARGIN
        assert made.size[0] == round(width + around)
        assert abs(made.size[1] - (height + around)) <= 1
        assert made.convert("RGB").getpixel((1, 1)) == (0x15, 0x18, 0x1C)


def test_bytes_do_not_depend_on_the_process_nor_on_the_settings_of_a_user(tmp_path: Path) -> None:
    svg = picture("class_shares")
    (tmp_path / "a.svg").write_text(svg, encoding="utf-8")
    (tmp_path / "matplotlibrc").write_text(
        "font.size: 33\nlines.scale_dashes: True\npdf.fonttype: 3\n"
    )
    code = (
        "import hashlib; from voirdire.figures import printing; "
        "s = open('a.svg', encoding='utf-8').read(); "
        "print(*(hashlib.sha256(f(s)).hexdigest() for f in (printing.pdf, printing.png)))"
    )
    env = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "MATPLOTLIBRC": str(tmp_path)}
    done = run_python("-c", code, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    here = [hashlib.sha256(f(svg)).hexdigest() for f in (printing.pdf, printing.png)]
    assert done.stdout.split() == here


def grey(image: Any) -> Any:
    """An image as numbers, blurred over a few pixels: faces of letters may differ by half a pixel."""
    from PIL import ImageFilter

    return np.asarray(image.convert("L").filter(ImageFilter.GaussianBlur(3)), dtype=float)


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_png_is_the_svg_as_a_browser_draws_it(tmp_path: Path, dark: bool) -> None:
    assert CHROMIUM is not None
    svgs = [PIECES, *(picture(name) for name in sorted(ALL))]
    files = [
        printing.standalone(s, dark=dark).decode().replace("system-ui", "DejaVu Sans") for s in svgs
    ]
    files[0] = files[0].replace("sans-serif", "DejaVu Sans")
    paper = "#15181c" if dark else "#fff"
    # Fixed places, one below the other, on whole pixels.
    tops, height = [], 0
    for svg in files:
        tops.append(height)
        height += int(float(re.findall(r'height="([\d.]+)"', svg)[0])) + 10
    body = "".join(
        f'<div style="position:absolute;left:0;top:{top}px">{svg}</div>'
        for top, svg in zip(tops, files, strict=True)
    )
    page = tmp_path / "a.html"
    page.write_text(
        f'<meta charset="utf-8"><body style="margin:0;background:{paper}">{body}', encoding="utf-8"
    )
    subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--hide-scrollbars", "--force-device-scale-factor=1", f"--user-data-dir={tmp_path / 'profile'}",
         f"--window-size=800,{height}", f"--screenshot={tmp_path / 'a.png'}", page.as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    with Image.open(tmp_path / "a.png") as screen:
        for top, svg, name in zip(tops, svgs, ["pieces", *sorted(ALL)], strict=True):
            (tmp_path / "b.png").write_bytes(printing.png(svg, scale=1, dark=dark))
            with Image.open(tmp_path / "b.png") as made:
                seen = screen.crop((0, top, made.size[0], top + made.size[1]))
                apart = np.abs(grey(seen) - grey(made))
            # A line or a letter that is missing or elsewhere is some 60 of 255 apart where it should be.
            assert apart.mean() < 0.8, name
            assert apart.max() < 35, name


@pytest.mark.skipif(PDFTOPPM is None, reason="poppler-utils is not installed")
def test_pdf_is_the_png(tmp_path: Path) -> None:
    assert PDFTOPPM is not None
    for svg in (PIECES, picture("kept_moved")):
        (tmp_path / "a.pdf").write_bytes(printing.pdf(svg))
        (tmp_path / "a.png").write_bytes(printing.png(svg, scale=2))
        subprocess.run(
            [PDFTOPPM, "-r", "192", "-png", "-singlefile", "a.pdf", "page"],
            cwd=tmp_path,
            check=True,
        )
        with Image.open(tmp_path / "page.png") as page, Image.open(tmp_path / "a.png") as made:
            low = min(page.size[1], made.size[1])
            width = min(page.size[0], made.size[0])
            apart = np.abs(
                grey(page.crop((0, 0, width, low))) - grey(made.crop((0, 0, width, low)))
            )
        assert apart.mean() < 1.5
        assert apart.max() < 45


def test_a_file_of_svg_has_a_size_a_margin_and_dark_colours_where_asked() -> None:
    root = ElementTree.fromstring(printing.standalone(picture("rate_dots")))
    assert (root.get("viewBox") or "").startswith("-6 -6 772 ")
    assert root.get("width") == "772"
    dark = printing.standalone(picture("rate_dots"), dark=True).decode()
    assert "background:#15181c" in dark
    assert "--vd-ramp-9:" in dark


@pytest.mark.parametrize(
    "part",
    ['<image href="x"/>', '<rect rx="3"/>', '<path d="M0 0A5 5 0 0 0 9 9"/>', '<rect style="filter:blur(2px)"/>',
     '<rect transform="skewX(20)"/>', "<text><a>x</a></text>"],
)  # fmt: skip
def test_what_cannot_be_drawn_is_said_and_never_left_out(part: str) -> None:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">{part}</svg>'
    with pytest.raises(VoirdireError, match="not drawn"):
        printing.pdf(svg)


def test_a_colour_may_stand_in_a_css_variable_with_a_fallback() -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><rect width="9" height="9" fill="var(--x, #334)"/></svg>'
    assert printing.pdf(svg) == printing.pdf(svg.replace("var(--x, #334)", "#333344"))


def test_names_are_no_formulas() -> None:
    def written(said: str) -> str:
        text = f'<text x="9" y="30" font-size="20">{said}</text>'
        return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 99 40">{text}</svg>'

    assert printing.png(written("$x$")) != printing.png(written("x"))
    assert b"Oblique" not in printing.pdf(written("$x$"))


def test_letters_without_a_font_are_named() -> None:
    assert printing.missing_letters(picture("class_shares")) == ()
    assert printing.missing_letters(picture("class_shares").replace("g0", "g\U00012000")) == (
        "\U00012000",
    )


def test_a_missing_matplotlib_gives_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'voirdire\[plots\]'"):
        printing.pdf(picture("class_shares"))


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), 1000.0])
def test_a_scale_that_gives_no_picture_is_refused(scale: float) -> None:
    with pytest.raises(UsageError, match="dots per inch"):
        printing.png(picture("class_shares"), scale=scale)


def test_matplotlib_is_not_imported_for_svg(tmp_path: Path) -> None:
    code = (
        "import sys; from voirdire.figures import printing; assert 'matplotlib' not in sys.modules"
    )
    assert run_python("-c", code, cwd=tmp_path, env=dict(os.environ)).returncode == 0
