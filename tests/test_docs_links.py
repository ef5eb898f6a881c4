"""Every link inside README.md, CHANGELOG.md, CONTRIBUTING.md and docs leads to a page and a heading that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_docs_examples import FENCE, MADE, PAGES

LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\((?P<target>[^)\s]+)\)")
CODE = re.compile(r"(`+).+?\1")
LINKED = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]


def prose(page: Path) -> list[str]:
    """The lines of a page outside its fenced blocks, without inline code."""
    kept, fence = list[str](), ""
    for line in page.read_text(encoding="utf-8").splitlines():
        found = FENCE.match(line)
        if fence:
            if line.strip() == fence:
                fence = ""
        elif found:
            fence = found["ticks"]
        else:
            kept.append(line)
    return kept


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and MyST make them."""
    found = set[str]()
    for line in prose(page):
        if line.startswith("#"):
            text = re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower())
            found.add(text.strip().replace(" ", "-"))
    return found


def links(page: Path) -> list[str]:
    return [m["target"] for line in prose(page) for m in LINK.finditer(CODE.sub("", line))]


def missing(page: Path) -> list[str]:
    """The links of a page that lead nowhere; links to other hosts are not looked at."""
    lost = []
    for target in links(page):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        to = (page.parent / name).resolve() if name else page
        if MADE & set(to.parts):
            continue  # made when the documentation is built, which looks at these links itself
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to)):
            lost.append(target)
    return lost


@pytest.mark.parametrize("page", LINKED, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert missing(page) == []


def test_a_link_to_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading: `code` & more\n[a](#a-heading-code--more) [b](page.md) `[c](gone.md)`\n"
        "[d](gone.md) [e](#gone)\n```\n[f](gone.md)\n```\n",
        encoding="utf-8",
    )
    assert missing(page) == ["gone.md", "#gone"]
