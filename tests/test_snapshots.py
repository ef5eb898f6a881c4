"""Snapshots of small reports as Markdown, LaTeX and plain text.

A report that is meant to read otherwise: look at the difference, then rewrite the files with

    VOIRDIRE_WRITE_SNAPSHOTS=1 python -m pytest tests/test_snapshots.py
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

import pytest

import voirdire as vd
from tests.reports import REPORTS
from voirdire import auditing

FOLDER = Path(__file__).parent / "snapshots"
WRITE = os.environ.get("VOIRDIRE_WRITE_SNAPSHOTS", "") not in ("", "0")
SUFFIXES = (".md", ".tex", ".txt")
NAMES = ("labels", "counts", "checklist")
MOST_LINES = 60  # of a difference that is shown


def stable(text: str) -> str:
    """The text without the version, which changes with every release."""
    return re.sub(rf"(?<![\d.]){re.escape(vd.__version__)}(?![\d.]\d)", "VERSION", text)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", NAMES)
def test_a_report_reads_as_it_did(name: str, suffix: str) -> None:
    made = stable(auditing.format_of(f"a{suffix}").render(REPORTS[name]()).decode("utf-8"))
    path = FOLDER / f"{name}{suffix}"
    if WRITE:
        FOLDER.mkdir(exist_ok=True)
        path.write_text(made, encoding="utf-8", newline="\n")
    assert path.is_file(), f"{path} is not there. Write it with VOIRDIRE_WRITE_SNAPSHOTS=1."
    held = path.read_text(encoding="utf-8")
    if made == held:
        return
    lines = list(
        difflib.unified_diff(
            held.splitlines(), made.splitlines(), f"{path.name}, kept", f"{path.name}, now",
            lineterm="", n=1,
        )
    )  # fmt: skip
    left = f"\n… {len(lines) - MOST_LINES} more lines" if len(lines) > MOST_LINES else ""
    pytest.fail(
        "The report reads otherwise than the snapshot. If that is meant: VOIRDIRE_WRITE_SNAPSHOTS=1 "
        "python -m pytest tests/test_snapshots.py\n" + "\n".join(lines[:MOST_LINES]) + left,
        pytrace=False,
    )


def test_no_snapshot_is_left_of_a_report_that_is_not_made() -> None:
    known = {f"{name}{suffix}" for name in NAMES for suffix in SUFFIXES}
    assert {p.name for p in FOLDER.iterdir()} == known
