"""The pictures of the documentation are what the command writes today."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import ROOT, Run
from voirdire.cli.demo import DEMOS

PICTURES = ROOT / "docs" / "pictures"
TABLE, FLAGS = DEMOS["xstest"]
MADE = {
    "xstest.svg": ("class_shares",),
    "xstest-dark.svg": ("class_shares", "--dark"),
}


def test_every_picture_has_a_command() -> None:
    assert {path.name for path in PICTURES.iterdir()} == set(MADE)


@pytest.mark.parametrize("name", MADE)
def test_a_picture_is_what_the_command_writes_today(name: str, voirdire: Run, tables: Path) -> None:
    figure, *more = MADE[name]
    flags = [*shlex.split(FLAGS.replace("--by model", "")), *more]
    done = voirdire("figure", figure, TABLE, *flags, "-o", name)
    assert done.returncode == 0, done.stderr
    assert (tables / name).read_bytes() == (PICTURES / name).read_bytes(), (
        f"docs/pictures/{name} is of another version. Make it again:\n"
        f"voirdire figure {figure} {TABLE} {shlex.join(flags)} -o docs/pictures/{name}"
    )


@pytest.mark.parametrize("name", MADE)
def test_a_picture_stands_alone(name: str) -> None:
    """A page shows it as an image: nothing from outside, a size, and words for who cannot see it."""
    text = (PICTURES / name).read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.get("width")
    assert root.get("height")
    assert root.find("{*}title") is not None
    assert root.find("{*}desc") is not None
    assert not re.search(r"<script|<image|href=\"(?!#)|url\((?!#|&quot;#)|@import", text)


def test_the_readme_says_in_words_what_its_picture_shows() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    alt = re.search(r'<img src="docs/pictures/xstest.svg" alt="([^"]+)"', readme)
    assert alt is not None
    described = ElementTree.fromstring((PICTURES / "xstest.svg").read_text(encoding="utf-8"))
    desc = described.find("{*}desc")
    assert desc is not None
    assert desc.text is not None
    drawn = [int(n) for n in re.findall(r"3_partial_refusal (\d+)", desc.text)]
    said = [int(n) for n in re.findall(r"(?<![-\w])\d+", alt[1].partition("Partial refusal:")[2])]
    assert sorted(said) == sorted(drawn)
    assert set(re.findall(r'srcset="([^"]+)"', readme)) == {"docs/pictures/xstest-dark.svg"}
