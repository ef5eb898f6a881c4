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


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page on which no sentence is broken within the cells of a table."""
    monkeypatch.setenv("COLUMNS", "200")


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


# --- what a look proposes -----------------------------------------------------------------------

SHARED_CLASSES = "id,judge_v1,judge_v2,human\n" + "".join(
    f"{i},{'safe' if i % 3 else 'unsafe'},{'safe' if i % 4 else 'unsafe'},"
    f"{'safe' if i % 5 else 'unsafe'}\n"
    for i in range(40)
)
JUDGES = "prompt_id,model,judge,verdict\n" + "".join(
    f"P{i},{m},judge{j},{'refuse' if (i + j + len(m)) % 3 else 'comply'}\n"
    for i in range(20)
    for m in ("llama", "qwen")
    for j in range(3)
)
GOLD = "prompt_id,model,adjudicated\n" + "".join(
    f"P{i},{m},{'refuse' if (i + len(m)) % 3 else 'comply'}\n"
    for i in range(20)
    for m in ("llama", "qwen")
)
TWO_OF_ONE_NAME = "Antwort;Richter A;Richter B;Mensch;Mensch;;\n" + "".join(
    f"R{i};{1 + i % 3};{1 + (i // 2) % 3};{1 + i % 3};{1 + i % 3};;\n" for i in range(40)
)
SIXTY = "id,g1,g2,gold\n" + "".join(
    f"{i},{1 + i % 60},{1 + (i + i % 3) % 60},{1 + (i + i % 2) % 60}\n" for i in range(360)
)
NO_OVERLAP = "id,grader,label\n" + "".join(
    f"{i},{'gpt' if i < 15 else 'llama'},{'a' if i % 2 else 'b'}\n" for i in range(30)
)


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with one table of each kind."""
    for name, text in {
        "versions.csv": SHARED_CLASSES,
        "judges.csv": JUDGES,
        "gold.csv": GOLD,
        "excel.csv": TWO_OF_ONE_NAME,
        "sixty.csv": SIXTY,
        "no_overlap.csv": NO_OVERLAP,
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_columns_of_one_set_of_classes_are_graders_whatever_they_are_called(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = said(capsys, "look", "versions.csv")
    wide = "voirdire audit versions.csv --layout wide --response id"
    assert commands == [
        f"{wide} --graders judge_v1,judge_v2,human",
        f"{wide} --graders judge_v1,judge_v2,human --gold human",
    ]
    for command in commands:
        runs(command)


def test_a_second_file_with_one_label_a_response_is_proposed_as_gold(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = said(capsys, "look", "judges.csv", "gold.csv", "--response", "prompt_id+model")
    assert command == (
        "voirdire audit judges.csv gold.csv --response prompt_id+model --gold adjudicated"
    )
    runs(command)


def test_the_response_of_a_long_table_is_what_tells_a_graders_rows_apart(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = said(capsys, "look", "judges.csv")
    assert "--response prompt_id+model" in command
    runs(command)


def test_a_column_whose_name_stands_twice_is_in_no_command(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["look", "excel.csv"]) == 0
    printed = capsys.readouterr().out
    assert '2 columns are called "Mensch"' in printed
    (command,) = said(capsys, "look", "excel.csv")
    assert "Mensch" not in command
    runs(command)


@pytest.mark.parametrize("verb", ["look", "audit"])
def test_numbers_of_many_values_are_proposed_as_graders(
    verb: str, tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = said(capsys, verb, "sixty.csv", "--gold", "gold", status=0 if verb == "look" else 3)
    assert commands[0] == (
        "voirdire audit sixty.csv --layout wide --response id --graders g1,g2 --gold gold"
    )
    runs(commands[0])


def test_labels_of_gold_alone_are_no_audit(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sixty.csv", "--layout", "wide", "--response", "id", "--gold", "gold"]
    assert main(["audit", *words]) == 3
    printed = capsys.readouterr().err
    assert "no grader beside it to audit" in printed
    assert "--graders NAME (not read as labels: g1 and g2)" in printed
    assert main(["look", *words]) == 0
    printed = capsys.readouterr().out
    assert "It cannot be audited as it is" in printed
    assert "no grader beside it to audit" in printed
    assert main(["audit", *words[:-1], "none", "--graders", "gold"]) == 0


def test_agreement_needs_a_response_with_two_labels(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["look", "no_overlap.csv"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "agreement, kappa, AC1 and alpha no: no response has labels of two graders" in printed


def test_compare_says_how_two_graders_are_named(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "versions.csv", "--graders", "judge_v1,judge_v2"]) == 2
    printed = capsys.readouterr().err
    assert "--old judge_v1 --new judge_v2" in printed
    assert main(["compare", "versions.csv", "--graders", "judge_v1"]) == 2
    assert "--old NAME --new NAME" in capsys.readouterr().err
