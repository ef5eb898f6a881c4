"""The front page of the documentation leads to every page, in its lists and in its contents."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from tests.test_docs_links import links

DOCS = ROOT / "docs"
INDEX = DOCS / "index.md"
LISTED = {page.stem for page in DOCS.glob("*.md")} - {"index"} | {"decisions/README"}


def _contents() -> list[str]:
    """What the contents (toctrees) of the front page name, in order."""
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", INDEX.read_text(encoding="utf-8"), re.DOTALL)
    lines = (line.strip() for block in blocks for line in block.splitlines())
    return [line for line in lines if line and not line.startswith(":")]


def test_every_page_is_in_the_contents_once() -> None:
    named = _contents()
    assert len(named) == len(set(named))
    assert {name for name in named if not name.startswith("reference/")} == LISTED


def test_every_page_is_in_the_lists_of_the_front_page() -> None:
    assert {target.removesuffix(".md") for target in links(INDEX)} == set(_contents())


def test_the_readme_is_short_and_its_comparison_is_dated() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) < 200
    compared = readme.partition("## Beside other tools")[2].partition("\n## ")[0]
    assert re.search(r"\d{1,2} [A-Z][a-z]+ 20\d\d", compared)
    head, *_ = (line for line in compared.splitlines() if line.startswith("|"))
    for tool in head.strip("| ").split(" | ")[2:]:
        assert re.search(rf"{re.escape(tool)}\s+\d+\.\d", compared), f"{tool} has no version"
