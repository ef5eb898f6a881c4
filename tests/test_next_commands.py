"""The commands that `voirdire look` and the errors print run as they are, from where the user stands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from voirdire.cli.main import main
from voirdire.readers._suggest import typed

DATA = ROOT.parent / "shared" / "data"
FOLDERS = sorted(DATA.glob("fmt_*"))

CLEAR = "response,grader,label\n" + "".join(
    f"r{i},{g},{'yes' if (i + j) % 3 else 'no'}\n" for i in range(6) for j, g in enumerate("abc")
)
UNCLEAR = "model,prompt_id,seed,round,label,judge\n" + "".join(
    f"m{m},i{i},s{s},{r},{'yes' if (m + i + s + r) % 3 else 'no'},j\n"
    for m in range(2)
    for i in range(3)
    for s in range(2)
    for r in range(2)
)


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> list[str]:
    """The commands that a command prints."""
    assert main(list(words)) == status
    printed = capsys.readouterr()
    return [
        line.strip()
        for line in (printed.out + printed.err).split("\n")
        if line.strip().startswith("voirdire audit ")
    ]


def runs(command: str) -> None:
    """The command, pasted into a shell's words, does what it says."""
    assert main(shlex.split(command)[1:]) == 0, command


@pytest.mark.skipif(not FOLDERS, reason="the collected logs are not here")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_a_folder_of_logs_is_audited_by_the_command_that_look_prints(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    given = os.path.relpath(folder, tmp_path) + "/"
    (command,) = said(capsys, "look", given)
    assert shlex.split(command)[2] == given
    runs(command)
    assert (tmp_path / "audit.html").is_file()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with folders of labels in it."""
    for name, files in {
        "logs of May": {"a.csv": CLEAR, "README.md": "About the labels.", "notes.txt": "none"},
        "unclear": {"README.md": "About the labels.", "deep/it's one.csv": UNCLEAR},
        "two": {"one.csv": UNCLEAR, "other.csv": UNCLEAR},
        ".": {"-x.csv": UNCLEAR, "-y.csv": CLEAR},
    }.items():
        for file, text in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "given",
    [
        "logs of May",
        "logs of May/",
        "./logs of May/",
        "logs of May/a.csv",
        "logs*/*.csv",
        "./-y.csv",
        "ABSOLUTE/logs of May",
        "ABSOLUTE/logs of May/a.csv",
    ],
)
def test_look_names_what_was_named(
    given: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = given.replace("ABSOLUTE", str(here))
    (command,) = said(capsys, "look", given, "--scale", "no,yes")
    assert shlex.split(command)[2] == given
    runs(command)
    runs(command)  # what the first one wrote is in nobody's way


def test_look_at_the_folder_where_one_stands(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(here / "logs of May")
    (command,) = said(capsys, "look", ".")
    runs(command)
    assert said(capsys, "look", ".") == [command]
    runs(command)


@pytest.mark.parametrize("given", ["unclear", "unclear/deep/it's one.csv", "./-x.csv", "two"])
@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize(("verb", "status"), [("look", 0), ("audit", None)])
def test_commands_for_an_unclear_layout_find_its_file(
    given: str,
    absolute: bool,
    verb: str,
    status: int | None,
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if status is None:  # a named file is a question of options, a folder without labels is not
        status = 3 if (here / given).is_dir() else 2
    commands = said(capsys, verb, str(here / given) if absolute else given, status=status)
    assert commands
    for command in commands:
        runs(command)


def test_a_folder_of_which_nothing_is_read_shows_one_problem_in_lines_and_names_the_rest(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "two"]) == 3
    printed = capsys.readouterr().err
    assert "⟨" not in printed
    assert printed.count("Columns:") == 1
    assert "Nor could: other.csv (no column is known to be the response" in printed


def test_a_command_that_is_to_be_filled_in_says_so(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "same.csv").write_text("label,judge\n" + "yes,a\nno,b\n" * 3, encoding="utf-8")
    assert main(["audit", "same.csv"]) == 2
    printed = capsys.readouterr().err
    assert "--response COLUMN" in printed
    assert "(put names of columns in place of COLUMN):" in printed


@pytest.mark.parametrize("name", ["a b", "it's", "a\u202eb", "a\nb\t'\\", "é ü", "\udcff'x", "-"])
def test_a_shell_gets_the_words_that_were_meant(name: str) -> None:
    line = typed([sys.executable, "-c", "import os,sys; print(os.fsencode(sys.argv[1]))", name])
    assert line.isprintable()
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == f"{os.fsencode(name)!r}\n"
