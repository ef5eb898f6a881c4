"""A file that is not there is named, by its option, with what to do next, whatever asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import DATA
from voirdire.cli.main import main
from voirdire.errors import unreadable

LABELS = "response,grader,label\nr1,a,yes\nr2,a,no\n"
GRADE = "grade harmless.jsonl --rubric four-way"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "labels.csv").write_text(LABELS, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    shipped = DATA / "responses" / "harmless.jsonl"
    (tmp_path / "harmless.jsonl").write_bytes(shipped.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("place", ["zzz", "absent/zzz"])
@pytest.mark.parametrize(
    "line",
    [
        "audit FILE.csv",
        "audit labels.csv FILE.csv",
        "audit labels.csv --about FILE.toml",
        "look FILE.csv",
        "look labels.csv --about FILE.toml",
        "convert FILE.csv -o out.csv",
        "compare FILE.csv labels.csv",
        "compare labels.csv FILE.json",
        "card FILE.csv",
        "card check FILE.json",
        "decide FILE.csv -o out.csv",
        "decide labels.csv --relabel FILE.csv -o out.csv",
        "decide labels.csv --relabel=again:\tFILE.csv -o out.csv",
        "figure rate_dots FILE.csv -o out.svg",
        "figure coverage FILE.json -o out.svg",
        "plan FILE.csv",
        "grade FILE.jsonl --rubric four-way --provider rule",
        "grade harmless.jsonl --rubric FILE.toml --provider rule",
        "grade FILE.toml",
        f"{GRADE} --provider rule --option patterns=FILE.toml",
        f"{GRADE} --provider scripted --option script=FILE.toml",
        f"{GRADE} --provider rule --read-batch FILE.jsonl",
    ],
)
def test_a_missing_file_is_named_with_the_next_step(
    line: str, place: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [w.replace("\t", " ").replace("FILE", place) for w in line.split(" ")]
    file = next(w for w in line.split() if "FILE" in w).split("=")[-1].removeprefix("again:")
    status = main(words)
    printed = capsys.readouterr()
    said = " ".join((printed.out + printed.err).split())
    assert status in (2, 3, 4), said
    name = file.strip().replace("FILE", place)
    assert name in said or (line.startswith("card check") and Path(name).name in said)
    assert "o such file" not in said or "there is no such file." in said
    assert "Errno" not in said
    assert any(f"{verb} " in said for verb in ("Check", "Did you mean", "Name")), said


def test_what_to_do_depends_on_what_is_there(here: Path) -> None:
    assert unreadable("label.csv") == "label.csv: there is no such file. Did you mean labels.csv?"
    assert unreadable("folder") == "folder: this is a folder. Name a file in it."
    assert "there is no folder gone." in unreadable("gone/labels.csv")
    assert "there is no folder labels.csv." in unreadable(
        "labels.csv/x", NotADirectoryError(20, "Not a directory")
    )
    assert "you may not read" in unreadable("labels.csv", PermissionError(13, "Permission denied"))
    assert "(Input/output error)" in unreadable("labels.csv", OSError(5, "Input/output error"))
    assert unreadable("x", name="--about x").startswith("--about x: ")
