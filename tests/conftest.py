"""What all tests share: the shipped tables, and the command line in a process of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "src" / "voirdire" / "data"

# The same examples each time and on each machine: a failure is a change, not luck.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def run_python(
    *args: str, cwd: Path, stdin: str | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the tests' Python in a folder, with UTF-8 and a wide page, and catch what it prints."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONIOENCODING": "utf-8",
        "COLUMNS": "160",
        "NO_COLOR": "1",
        **(env or {}),
    }
    return subprocess.run(
        [sys.executable, *args],
        cwd=cwd,
        env=environment,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
        check=False,
    )


def _called(
    *args: str, cwd: Path, stdin: str | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The same command in this process, which saves what starting one takes."""
    from voirdire.cli.main import main

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    given = io.StringIO(stdin or "")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"COLUMNS": "160", "NO_COLOR": "1", **(env or {})}.items():
            patch.setenv(name, value)
        patch.chdir(cwd)
        patch.setattr(sys, "stdin", given)
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        try:
            status = main(args)
        except SystemExit as end:
            status = int(end.code or 0)
        for stream in streams:
            stream.flush()
    out, err = (stream.buffer.getvalue().decode("utf-8") for stream in streams)
    return subprocess.CompletedProcess(["voirdire", *args], status, out, err)


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder with a copy of each shipped table, and of the shipped responses."""
    for table in (*DATA.glob("*.csv"), *(DATA / "responses").glob("*.jsonl")):
        (tmp_path / table.name).write_bytes(table.read_bytes())
    return tmp_path


@pytest.fixture
def voirdire(tables: Path) -> Run:
    """The command line, run in the folder of the shipped tables."""

    def run(
        *args: str, stdin: str | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return run_python("-m", "voirdire", *args, cwd=tables, stdin=stdin, env=env)

    return run


@pytest.fixture
def called(tables: Path) -> Run:
    """The command line in the folder of the shipped tables, without a process of its own."""

    def run(
        *args: str, stdin: str | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return _called(*args, cwd=tables, stdin=stdin, env=env)

    return run
