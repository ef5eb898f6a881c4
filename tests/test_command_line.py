"""The command line's promise: exit statuses, messages without tracebacks, whole files or none."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import voirdire as vd
from tests.conftest import ROOT, Run, run_python
from voirdire import __version__, cli
from voirdire.cli import demo
from voirdire.cli.flags import AUDITING, READING, Flag, Form
from voirdire.formats.base import Format
from voirdire.options import Options
from voirdire.plugins import load

COMMANDS = (
    *("audit", "look", "convert", "demo", "statistics", "grade", "decide", "simulate", "plan"),
    "reproduce",
)
COUNTS = shlex.split(
    "missing_class_a.csv --layout counts --scale refusal,evasion,compliance "
    "--off-scale gibberish,refused_in_cot"
)


def message_of(done: subprocess.CompletedProcess[str], status: int) -> str:
    """Standard error of a run that ended with this status, and with nothing but a message."""
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert "voirdire: " in done.stderr
    return done.stderr


# Help


def test_version(voirdire: Run) -> None:
    done = voirdire("--version")
    assert (done.returncode, done.stdout) == (0, f"voirdire {__version__}\n")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_ends_with_examples(voirdire: Run, command: str) -> None:
    done = voirdire(*command.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "Examples:" in done.stdout
    assert re.search(rf"^  \$ voirdire {command}", done.stdout, re.MULTILINE)


def test_every_option_has_a_flag_in_the_help_of_audit(voirdire: Run) -> None:
    shown = set(re.findall(r"--[a-z-]+", voirdire("audit", "--help").stdout))
    fields = {f.name for f in dataclasses.fields(Options)}
    assert fields == {flag.name for flag in (*READING, *AUDITING)}
    assert {"--" + name.replace("_", "-") for name in fields} <= shown
    assert {"--output", "--quiet", "--schema"} <= shown


@pytest.mark.parametrize("command", ["audit", "reproduce"])
def test_the_help_names_one_suffix_of_each_format_and_no_other(command: str, voirdire: Run) -> None:
    shown = re.sub(r"\W*\n\W*", " ", voirdire(command, "--help").stdout)
    named = re.findall(r"\.[a-z]+", shown[shown.index("the suffix picks") :].split("Repeatable")[0])
    formats = load("formats", Format)
    assert len(named) == len(set(named)) == len(formats)
    assert all(set(named) & set(f.suffixes) for f in formats)


@pytest.mark.parametrize("flag", [*READING, *AUDITING], ids=lambda f: f.name)
def test_a_flag_has_the_form_of_its_option(flag: Flag) -> None:
    default = getattr(Options(), flag.name)
    forms = {bool: {Form.SWITCH}, float: {Form.NUMBER}, int: {Form.WHOLE}, str: {Form.TEXT}}
    allowed = forms.get(type(default), {Form.LIST, Form.REPEATED})
    assert flag.form in ({Form.TEXT} if flag.name == "about" else allowed)


def example_lines() -> list[str]:
    modules = [
        importlib.import_module(f"voirdire.cli.{info.name}")
        for info in pkgutil.iter_modules(cli.__path__)
    ]
    epilogs = [module.EXAMPLES for module in modules if hasattr(module, "EXAMPLES")]
    return sorted({line for epilog in epilogs for line in re.findall(r"\$ (voirdire .*)", epilog)})


# Examples that need what is not here, or minutes; tests of their own run them with a stand-in.
NOT_RUN = ("--base-url", "--model", "--read-batch", "--write-batch", "--real", "simulate coverage")


@pytest.mark.parametrize(
    "line", [x for x in example_lines() if not any(need in x for need in NOT_RUN)]
)
def test_an_example_of_the_help_runs(called: Run, tables: Path, line: str) -> None:
    (tables / "responses.jsonl").write_bytes((tables / "harmless.jsonl").read_bytes())
    (tables / "study.toml").write_text(
        'responses = "responses.jsonl"\nrubric = "four-way"\n[[graders]]\nprovider = "rule"\n',
        encoding="utf-8",
    )
    _write_labels_to_decide_on(tables)
    _write_two_versions(tables)
    done = called(*shlex.split(line)[1:])
    assert done.returncode == 0, done.stderr


def _write_two_versions(folder: Path) -> None:
    """labels-v1.csv and labels-v2.csv of one grader, and the results of an audit of each."""
    kinds = ("refusal", "partial", "compliance")
    for i, name in enumerate(("old", "new")):
        path = folder / f"labels-v{i + 1}.csv"
        labels = [kinds[(r * (i + 1)) % 3] for r in range(12)]
        pl.DataFrame(
            {"response": [f"r{r}" for r in range(12)], "grader": "judge", "label": labels}
        ).write_csv(path)
        audit = vd.audit(vd.read(path, scale=kinds))
        audit.write(folder / f"{name}-audit.json")


def _write_labels_to_decide_on(folder: Path) -> None:
    """labels.parquet of four graders, relabels.csv, and decided.parquet with two steps."""
    kinds = ("refusal", "evasion", "compliance")
    rows = [
        (f"r{i}", grader, kinds[(i + shift) % 3], "")
        for i in range(9)
        for shift, grader in enumerate(("judge", "a", "b", "c"))
    ]
    columns = ("response", "grader", "label", "turn")
    labels = pl.DataFrame(rows, schema=columns, orient="row")
    vd.Labels.from_frame(labels.drop("turn")).write(folder / "labels.parquet")
    (folder / "relabels.csv").write_text(
        "response,grader,label,reason\nr1,judge,refusal,it gives nothing\n", encoding="utf-8"
    )
    steps = pl.concat(
        [
            labels.with_columns(pl.lit("first").alias("turn")),
            labels.head(4).with_columns(pl.lit("second").alias("turn")),
        ]
    )
    vd.Labels.from_frame(steps, step="turn").write(folder / "decided.parquet")


# Usage: status 2, before anything is read or written


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("audit", "Missing argument"),
        ("audit xstest.csv --frobnicate", "--frobnicate"),
        ("adit xstest.csv", "'audit'"),
        ("audit missing.csv --level high", "--level"),
        ("audit missing.csv --level 1.5", "--level 1.5"),
        ("audit missing.csv --layout square", "long, wide"),
        ("audit missing.csv --map Maybe", "OLD=NEW"),
        ("audit missing.csv -o report.docx", ".docx"),
        ("audit missing.csv -o report", "without a suffix"),
        ("audit missing.csv -o nowhere/audit.html", "no folder nowhere"),
        ("audit xstest.csv -o xstest.csv", "would be lost"),
        ("audit xstest.csv -o .", "this is a folder"),
        ("convert xstest.csv", "--output"),
        ("convert xstest.csv -o labels.html", ".html"),
        ("demo --name nothing", "xstest"),
    ],
)
def test_a_usage_error_is_status_2_and_says_what(voirdire: Run, line: str, says: str) -> None:
    assert says in message_of(voirdire(*line.split()), 2)


def test_a_usage_error_names_the_help_to_read(voirdire: Run) -> None:
    assert "voirdire look --help" in message_of(voirdire("look", "--nothing"), 2)


# Input: status 3


@pytest.mark.parametrize("command", ["audit", "look", "convert -o out.csv"])
def test_a_missing_file_is_status_3(voirdire: Run, command: str) -> None:
    assert "absent.csv" in message_of(voirdire(*command.split(), "absent.csv"), 3)


def test_a_folder_is_no_input(voirdire: Run, tables: Path) -> None:
    (tables / "folder").mkdir()
    assert "folder" in message_of(voirdire("audit", "folder"), 3)


def test_an_empty_file_is_no_input(voirdire: Run, tables: Path) -> None:
    (tables / "empty.csv").write_bytes(b"")
    assert "empty.csv" in message_of(voirdire("audit", "empty.csv"), 3)


def test_an_unknown_label_is_status_3_and_shows_the_flags(voirdire: Run) -> None:
    line = (
        "audit jailbreakbench.csv --layout wide --response Index --graders gpt4_cf --scale no,yes"
    )
    message = message_of(voirdire(*line.split()), 3)
    assert "--map" in message
    assert "--failed" in message


# Files: whole or not at all


def test_files_are_written_and_named_and_the_report_is_printed(voirdire: Run, tables: Path) -> None:
    done = voirdire("audit", *COUNTS, "-o", "audit.html", "-o", "results.csv")
    assert done.returncode == 0, done.stderr
    assert "Llama-3.1-8B" in done.stdout
    for name in ("audit.html", "results.csv"):
        assert f"wrote {name}" in done.stderr
        assert (tables / name).stat().st_size > 0


def test_quiet_prints_no_report_but_writes(voirdire: Run, tables: Path) -> None:
    done = voirdire("audit", *COUNTS, "--quiet", "-o", "results.json")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "wrote" not in done.stderr
    assert (tables / "results.json").exists()


def test_a_failed_audit_leaves_an_old_report_alone_and_no_new_one(
    voirdire: Run, tables: Path
) -> None:
    (tables / "old.html").write_text("old", encoding="utf-8")
    before = sorted(path.name for path in tables.iterdir())
    message_of(voirdire("audit", "absent.csv", "-o", "old.html", "-o", "new.html"), 3)
    assert (tables / "old.html").read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in tables.iterdir()) == before


def test_the_same_input_gives_the_same_bytes(voirdire: Run, tables: Path) -> None:
    for name in ("one.json", "two.json"):
        done = voirdire("audit", *COUNTS, "--quiet", "-o", name)
        assert done.returncode == 0, done.stderr
    assert (tables / "one.json").read_bytes() == (tables / "two.json").read_bytes()


def test_convert_writes_a_table_that_audit_reads(voirdire: Run, tables: Path) -> None:
    line = (
        "jailbreakbench.csv --layout wide --response Index --cluster goal_id "
        "--graders harmbench_cf,gpt4_cf --gold human_majority --scale 0,1 -o labels.csv"
    )
    done = voirdire("convert", *line.split())
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    done = voirdire("audit", "labels.csv", "--gold", "human_majority", "--scale", "0,1")
    assert done.returncode == 0, done.stderr
    assert "harmbench_cf" in done.stdout


def test_standard_input_is_an_input(voirdire: Run, tables: Path) -> None:
    table = (tables / "missing_class_a.csv").read_text(encoding="utf-8")
    done = voirdire("audit", "-", *COUNTS[1:], stdin=table)
    assert done.returncode == 0, done.stderr
    assert "Llama-3.1-8B" in done.stdout


# Demo


@pytest.mark.parametrize("name", demo.DEMOS)
def test_the_demo_shows_the_command_that_it_is_equal_to(
    voirdire: Run, tables: Path, name: str
) -> None:
    done = voirdire("demo", "--name", name, "-o", "demo.json")
    assert done.returncode == 0, done.stderr
    command = done.stderr.splitlines()[0].removeprefix("$ voirdire ")
    again = voirdire(*shlex.split(command.replace("demo.json", "again.json")))
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    assert (tables / "again.json").read_bytes() == (tables / "demo.json").read_bytes()


def test_the_demo_writes_a_page_here(voirdire: Run, tables: Path) -> None:
    assert voirdire("demo", "--name", "missing-class-b").returncode == 0
    assert (tables / "audit.html").exists()


def test_every_shipped_table_has_a_demo_and_an_entry_in_the_readme() -> None:
    data = ROOT / "src" / "voirdire" / "data"
    shipped = {path.name for path in data.glob("*.csv")}
    assert shipped == {table for table, _ in demo.DEMOS.values()}
    readme = (data / "README.md").read_text(encoding="utf-8")
    assert all(name in readme for name in shipped)


# What a terminal or a pipe does


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.parametrize("line", ["demo --name missing-class-a", "statistics", "audit --help"])
def test_a_narrow_encoding_never_breaks_the_report(voirdire: Run, encoding: str, line: str) -> None:
    done = voirdire(*line.split(), env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"})
    assert done.returncode == 0, done.stderr


def test_a_reader_that_leaves_is_no_error(tables: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "voirdire", "demo", "--name", "missing-class-a"],
        cwd=tables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"},
    )
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(timeout=60) == 0, errors
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors
    assert (tables / "audit.html").exists()


IN_PROCESS = """
import sys
from voirdire import auditing
from voirdire.cli.main import main
def read(*given, **options):
    raise {error}
auditing.read = read
sys.exit(main(["audit", "xstest.csv"]))
"""


def test_an_interrupt_is_status_130(tables: Path) -> None:
    done = run_python("-c", IN_PROCESS.format(error="KeyboardInterrupt"), cwd=tables)
    assert done.returncode == 130
    assert done.stderr == "voirdire: interrupted.\n"


def test_a_bug_is_status_70_and_says_how_to_report_it(tables: Path) -> None:
    done = run_python("-c", IN_PROCESS.format(error="ZeroDivisionError('a bug')"), cwd=tables)
    assert done.returncode == 70
    assert "ZeroDivisionError: a bug" in done.stderr
    assert "This is a bug of voirdire" in done.stderr
    assert "report" in done.stderr


def test_names_from_the_input_do_not_reach_the_terminal_raw(voirdire: Run, tables: Path) -> None:
    table = (tables / "missing_class_a.csv").read_text(encoding="utf-8")
    (tables / "odd.csv").write_text(
        table.replace("Qwen3-8B", "Qwen\x1b[31m[bold]x[/bold]"), encoding="utf-8"
    )
    done = voirdire("audit", "odd.csv", *COUNTS[1:])
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "[bold]x[/bold]" in done.stdout


def test_the_schema_is_printed_without_an_input(voirdire: Run) -> None:
    done = voirdire("audit", "--schema")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{")
