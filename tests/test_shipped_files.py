"""``voirdire demo --list`` and ``--save``: a newcomer gets the shipped files into an empty folder."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.conftest import DATA, ROOT, run_python
from tests.test_docs_examples import examples_of, is_printed
from voirdire.cli.demo import DEMOS, SOURCES, TO_GRADE


def _demo(folder: Path, *words: str) -> tuple[int, str, str]:
    done = run_python("-m", "voirdire", "demo", *words, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def test_every_shipped_file_says_where_it_is_from() -> None:
    assert set(SOURCES) == {*DEMOS, *TO_GRADE}


def test_the_help_names_every_file(tmp_path: Path) -> None:
    _, printed, _ = _demo(tmp_path, "--help")
    words = " ".join(printed.replace("│", " ").split())
    assert all(f" {name}" in words for name in SOURCES)


def test_the_list_names_every_file(tmp_path: Path) -> None:
    status, printed, told = _demo(tmp_path, "--list")
    assert "voirdire demo --name NAME --save" in told
    assert status == 0
    assert [line.split()[0] for line in printed.splitlines()] == list(SOURCES)
    assert all(f" {table}: " in printed for table, _ in DEMOS.values())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["missing-class-b", "harmless"])
def test_what_is_saved_is_what_ships_and_the_printed_command_takes_it(
    name: str, tmp_path: Path
) -> None:
    status, printed, told = _demo(tmp_path, "--name", name, "--save")
    assert status == 0
    shipped = DATA / (TO_GRADE[name][0] if name in TO_GRADE else DEMOS[name][0])
    assert (tmp_path / shipped.name).read_bytes() == shipped.read_bytes()
    assert shipped.name in told
    words = shlex.split(printed.removeprefix("$ "))
    assert words[0] == "voirdire"
    assert run_python("-m", *words, cwd=tmp_path).returncode == 0


def test_a_file_with_other_content_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "xstest.csv").write_text("mine\n", encoding="utf-8")
    status, printed, told = _demo(tmp_path, "--save")
    assert (status, printed) == (2, "")
    assert "other content" in told
    assert (tmp_path / "xstest.csv").read_text(encoding="utf-8") == "mine\n"


def test_saving_again_says_that_the_file_is_there(tmp_path: Path) -> None:
    assert _demo(tmp_path, "--save")[0] == 0
    status, printed, told = _demo(tmp_path, "--save")
    assert status == 0
    assert "nothing to write, this folder already has xstest.csv: XSTest " in told
    assert printed.startswith("$ voirdire audit xstest.csv ")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--save", "-o", "audit.html"), "leave out"),
        (("--save", "--real"), "leave out"),
        (("--save", "--name", "nothing"), "harmless"),
        (("--name", "harmless"), "--save"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: tuple[str, ...], names: str, tmp_path: Path
) -> None:
    status, _, told = _demo(tmp_path, *words)
    assert status == 2
    assert names in told
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_tutorial_runs_from_top_to_bottom_in_an_empty_folder(tmp_path: Path) -> None:
    page = ROOT / "docs" / "first-audit.md"
    run = [example for example in examples_of(page) if example.runs]
    assert len(run) > 4
    for example in run:
        if example.language == "python":
            done = run_python("-c", "\n".join(example.lines), cwd=tmp_path)
            assert done.returncode == 0, f"{example.place}\n{done.stderr}"
        for command, printed in example.commands:
            done = run_python("-m", *shlex.split(command), cwd=tmp_path)
            assert done.returncode == 0, f"{example.place}: {command}\n{done.stderr}"
            assert is_printed(printed, done.stdout + done.stderr), example.place
