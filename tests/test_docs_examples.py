"""Every example in README.md and docs runs, in a folder that has the shipped tables, and prints what it says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run, run_python
from voirdire.cli import demo

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*)[^`]*$")
NOT_RUN = re.compile(r"^\s*<!-- not run: \S.* -->\s*$")
ANYTHING = "…"


@dataclass(frozen=True)
class Example:
    """One fenced block: where it stands and what it says."""

    place: str
    language: str
    lines: tuple[str, ...]
    not_run: bool

    @property
    def is_console(self) -> bool:
        return any(line.startswith("$ ") for line in self.lines)

    @property
    def runs(self) -> bool:
        console = self.language in ("console", "sh") and self.is_console
        return not self.not_run and (self.language == "python" or console)

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """Each command with the lines that it is said to print."""
        commands: list[tuple[str, list[str]]] = []
        continued = False
        for line in self.lines:
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif continued:
                command, printed = commands[-1]
                commands[-1] = (command.removesuffix("\\") + line.strip(), printed)
            elif commands and line.strip():
                commands[-1][1].append(line)
            continued = bool(commands) and not commands[-1][1] and line.endswith("\\")
        return commands


def examples_of(page: Path) -> list[Example]:
    """All fenced blocks of a page."""
    found: list[Example] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if not fence:
            at += 1
            continue
        closing = next(
            (
                i
                for i in range(at + 1, len(lines))
                if lines[i].strip() == fence["ticks"] and lines[i].startswith(fence["indent"])
            ),
            None,
        )
        place = f"{page.relative_to(ROOT)}:{at + 1}"
        assert closing is not None, f"{place}: this block is never closed"
        found.append(
            Example(
                place=place,
                language=fence["language"],
                lines=tuple(x.removeprefix(fence["indent"]) for x in lines[at + 1 : closing]),
                not_run=at > 0 and bool(NOT_RUN.match(lines[at - 1])),
            )
        )
        at = closing + 1
    return found


# The reference is made from the code when the documentation is built, and has no examples.
MADE = {"reference", "_build"}
PAGES = [
    ROOT / "README.md",
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if not MADE & set(page.relative_to(ROOT / "docs").parts)
    ),
]
EXAMPLES = [example for page in PAGES for example in examples_of(page)]
RUN = [example for example in EXAMPLES if example.runs]


def is_printed(expected: list[str], output: str) -> bool:
    """Whether the lines stand in the output, in this order; spaces at line ends do not count.

    Lines that follow each other without one of ``…`` between need not be neighbours: what stands
    between two commands' outputs is for the eye.
    """
    printed = [line.rstrip() for line in output.split("\n")]
    at = 0
    for line in expected:
        if line.strip() == ANYTHING:
            continue
        pattern = ".*?".join(re.escape(part) for part in line.rstrip().split(ANYTHING))
        while at < len(printed) and not re.fullmatch(pattern, printed[at]):
            at += 1
        if at == len(printed):
            return False
        at += 1
    return True


def test_there_are_examples_to_run() -> None:
    assert any(e.language == "python" for e in RUN)
    assert any(e.is_console for e in RUN)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.place)
def test_a_shell_block_is_run_or_says_why_not(example: Example) -> None:
    if example.language in ("console", "sh", "shell", "bash", "python"):
        assert example.runs or example.not_run or example.place.startswith("docs/decisions/"), (
            f"{example.place}: start its commands with `$ `, or say `<!-- not run: why -->` above"
        )


SHIPPED = {
    **{file: name for name, (file, _) in demo.DEMOS.items()},
    **{Path(file).name: name for name, (file, _) in demo.TO_GRADE.items()},
}


def not_gotten(text: str, used: Iterable[str]) -> list[str]:
    """The shipped files that a page uses before it has said how to get them."""
    missing = []
    for file in used:
        name = SHIPPED[file]
        ways = [f"demo --name {name} --save", "demo --name NAME --save"]
        if name == demo.DEFAULT:
            ways.append("demo --save")
        told = min((text.find(way) for way in ways if way in text), default=len(text))
        if told > text.find(file):
            missing.append(file)
    return missing


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_page_says_how_to_get_the_shipped_files_that_it_uses(page: Path) -> None:
    used = {
        file
        for example in examples_of(page)
        if example.runs
        for file in SHIPPED
        if file in "\n".join(example.lines)
    }
    missing = not_gotten(page.read_text(encoding="utf-8"), sorted(used))
    assert not missing, f"say before their first use: voirdire demo --name NAME --save ({missing})"


def test_a_page_that_does_not_say_where_a_file_is_from_is_found() -> None:
    use = "```console\n$ voirdire audit jailbreakbench.csv\n```\n"
    get = "`voirdire demo --name jailbreakbench --save`\n"
    assert not_gotten(use, ["jailbreakbench.csv"])
    assert not_gotten(use + get, ["jailbreakbench.csv"])
    assert not_gotten("`voirdire demo --save`\n" + use, ["jailbreakbench.csv"])
    assert not not_gotten(get + use, ["jailbreakbench.csv"])


@pytest.mark.parametrize("example", RUN, ids=lambda e: e.place)
def test_example_does_what_the_page_says(example: Example, tables: Path, called: Run) -> None:
    if example.language == "python":
        code = "\n".join(example.lines)
        done = run_python("-W", "error::DeprecationWarning", "-c", code, cwd=tables)
        assert done.returncode == 0, f"{example.place}\n{done.stderr}"
        return
    for command, printed in example.commands:
        words = shlex.split(command, comments=True)
        assert words[0] == "voirdire", f"{example.place}: {command!r} is not a voirdire command"
        assert not {"|", ">", ">>", "&&", ";"} & set(words), (
            f"{example.place}: no shell is run here"
        )
        done = called(*words[1:])
        assert done.returncode == 0, f"{example.place}: {command}\n{done.stderr}"
        assert is_printed(printed, done.stdout + done.stderr), (
            f"{example.place}: {command}\ndid not print\n"
            + "\n".join(printed)
            + f"\nbut\n{done.stdout}{done.stderr}"
        )


def test_printed_lines_are_found_in_order_and_gaps_are_allowed() -> None:
    output = "one  \ntwo words here\nthree\n"
    assert is_printed([], output)
    assert is_printed(["one", "three"], output)
    assert is_printed(["one", "…", "three"], output)
    assert is_printed(["two … here"], output)
    assert not is_printed(["three", "one"], output)
    assert not is_printed(["two"], output)
    assert not is_printed(["four"], output)
