"""Imports: the package is light, and modules know only the layers below them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_python

HEAVY = ("polars", "scipy", "numpy", "jinja2", "rich", "typer", "pandas", "pyarrow", "narwhals")


def loaded_after(code: str, cwd: Path) -> set[str]:
    done = run_python("-c", f"{code}\nimport sys; print(*sys.modules)", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_the_package_is_light(tmp_path: Path) -> None:
    loaded = loaded_after("import voirdire", tmp_path)
    assert loaded.isdisjoint(HEAVY)


def test_the_command_line_starts_without_the_heavy_packages(tmp_path: Path) -> None:
    loaded = loaded_after("import voirdire.cli.main", tmp_path)
    assert loaded.isdisjoint(set(HEAVY) - {"typer"})


def test_every_public_name_is_there(tmp_path: Path) -> None:
    done = run_python(
        "-W",
        "error",
        "-c",
        "import voirdire as vd\nfor name in vd.__all__: getattr(vd, name)\n"
        "import voirdire.auditing\n"
        "assert callable(vd.audit) and callable(vd.read) and callable(vd.stats.cohen_kappa)",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("importlinter") is None,
    reason="import-linter comes with the lint group; `make test` installs it",
)
def test_modules_import_only_from_lower_layers() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
