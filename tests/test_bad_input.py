"""Bad input gets a clear message and the contract's exit status, and leaves nothing half-written."""

from __future__ import annotations

import io
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from tests.conftest import ROOT
from voirdire.cli.main import main
from voirdire.errors import InputError

LONG = "response,grader,label\n"
OLD = "an older report"
SETTINGS = {"COLUMNS": "160", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}


class Done:
    """What a run left: its status and what it printed."""

    def __init__(self, returncode: int, stdout: str, stderr: str) -> None:
        self.returncode, self.stdout, self.stderr = returncode, stdout, stderr


def audit(*words: str, cwd: Path, stdin: str | None = None) -> Done:
    """Run ``voirdire audit`` in a folder, in this process: a run of its own takes a second more."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    given = io.TextIOWrapper(io.BytesIO((stdin or "").encode()))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        for name, setting in SETTINGS.items():
            patch.setenv(name, setting)
        for name, stream in (("stdin", given), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        status = main(["audit", *words])
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    assert "Traceback" not in texts[0] + texts[1], texts[1]
    return Done(status, *texts)


def in_time(seconds: float, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run ``voirdire audit`` in a process of its own, which may take so long and no longer."""
    try:
        return subprocess.run(
            [sys.executable, "-m", "voirdire", "audit", *words],
            cwd=cwd,
            env={**os.environ, **SETTINGS, "PYTHONPATH": str(ROOT / "src")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"the audit was not done after {seconds} seconds")


def refused(status: int, *words: str, cwd: Path, stdin: str | None = None) -> str:
    """The message of an audit that ends with this status and touches no file."""
    targets = [cwd / f"old.{suffix}" for suffix in ("html", "csv")]
    for target in targets:
        target.write_text(OLD, encoding="utf-8")
    before = sorted(p.name for p in cwd.iterdir())
    outputs = [w for t in targets for w in ("-o", t.name)]
    done = audit(*words, *outputs, "-o", "new.json", cwd=cwd, stdin=stdin)
    assert done.returncode == status, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("voirdire: ")
    assert sorted(p.name for p in cwd.iterdir()) == before
    for target in targets:
        assert target.read_text(encoding="utf-8") == OLD
    return done.stderr


def table(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# Files that cannot be read: status 3


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json", "jsonl", "parquet", "txt", ""])
@pytest.mark.parametrize("content", ["", "\n\n \n"])
def test_an_empty_file_is_refused(suffix: str, content: str, tmp_path: Path) -> None:
    path = table(tmp_path / f"empty.{suffix}".rstrip("."), content)
    with pytest.raises(InputError) as error:
        vd.read(path)
    assert error.value.exit_status == 3
    if not content:
        assert str(error.value) == f"{path}: the file is empty."


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    table(tmp_path / "empty.csv", "")
    assert refused(3, "empty.csv", cwd=tmp_path) == "voirdire: empty.csv: the file is empty.\n"


def test_empty_standard_input_is_said_to_be_empty(tmp_path: Path) -> None:
    assert "empty" in refused(3, "-", cwd=tmp_path, stdin="")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "gone.csv: there is no such file" in refused(3, "gone.csv", cwd=tmp_path)


def test_a_pattern_without_a_match_is_named(tmp_path: Path) -> None:
    assert "*.jsonl: no file has such a name" in refused(3, "*.jsonl", cwd=tmp_path)


def test_a_folder_without_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert "runs: there is no file in this folder" in refused(3, "runs", cwd=tmp_path)


@pytest.mark.skipif(
    os.name != "posix" or (hasattr(os, "geteuid") and os.geteuid() == 0),
    reason="the superuser may read every file",
)
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = table(tmp_path / "closed.csv", LONG + "1,g,a\n")
    path.chmod(0)
    assert "closed.csv" in refused(3, "closed.csv", cwd=tmp_path)


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.jsonl", "a.parquet", "a.xlsx", "a"])
def test_binary_rubbish_is_refused_under_any_name(name: str, tmp_path: Path) -> None:
    table(tmp_path / name, random.Random(0).randbytes(4000))
    assert f"{name}" in refused(3, name, cwd=tmp_path)


def test_a_parquet_file_cut_in_half_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"response": ["1"], "grader": ["g"], "label": ["a"]}).write_parquet(
        tmp_path / "a.parquet"
    )
    whole = (tmp_path / "a.parquet").read_bytes()
    table(tmp_path / "a.parquet", whole[: len(whole) // 2])
    assert "cannot be read as a Parquet file" in refused(3, "a.parquet", cwd=tmp_path)


def test_a_wrong_encoding_is_named_with_place_and_flag(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", (LONG + "1,g,caf\u00e9\n2,g,tea\n").encode("cp1252"))
    message = refused(3, "a.csv", cwd=tmp_path)
    assert "a.csv, line 2: byte 0xe9 is not UTF-8" in message
    assert "--encoding cp1252" in message
    done = audit("a.csv", "--encoding", "cp1252", "-o", "a.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "caf\u00e9" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_an_encoding_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n")
    assert "no such encoding" in refused(2, "a.csv", "--encoding", "utf-99", cwd=tmp_path)


def test_ragged_rows_are_named_with_their_lines(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n2,g\n3,g,a,b\n")
    message = refused(3, "a.csv", cwd=tmp_path)
    assert "line 3: 2 cells where the header has 3" in message
    assert "line 4: 4 cells where the header has 3" in message


def test_of_many_problems_the_first_twenty_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    rows = "".join(f"{i},g,odd{i:03}\n" for i in range(50))
    table(tmp_path / "a.csv", LONG + rows)
    message = refused(3, "a.csv", "--scale", "yes,no", cwd=tmp_path)
    assert message.count("is not on the scale") == 20
    assert "30 more" in message


# Weights


def test_weights_that_are_no_numbers_are_all_named_with_their_column(tmp_path: Path) -> None:
    weights = ["nan", "", "inf", "-1", "heavy", "2"]
    rows = "".join(f"{i},g,a,{w}\n" for i, w in enumerate(weights))
    table(tmp_path / "a.csv", "response,grader,label,w\n" + rows)
    message = refused(3, "a.csv", "--weight", "w", cwd=tmp_path)
    for line, weight in zip(range(2, 7), weights, strict=False):
        assert f"a.csv, line {line}, column w" in message
        assert f'"{weight}"' in message
    assert "line 7" not in message


def test_a_frequency_weight_of_a_half_is_refused(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", "response,grader,label,w\n1,g,a,1.5\n2,g,b,1\n")
    message = refused(3, "a.csv", "--weight", "w", "--weight-kind", "frequency", cwd=tmp_path)
    assert "whole numbers" in message


@pytest.mark.parametrize("kind", ["design", "frequency"])
def test_weights_that_are_all_zero_are_refused(kind: str, tmp_path: Path) -> None:
    rows = "".join(f"{i},{g},{'ab'[i % 2]},0\n" for i in range(30) for g in "gh")
    table(tmp_path / "a.csv", "response,grader,label,w\n" + rows)
    words = ("a.csv", "--weight", "w", "--weight-kind", kind)
    assert "all weights are 0" in refused(3, *words, cwd=tmp_path)


def test_a_grader_whose_weights_are_all_zero_is_said_to_be_so(tmp_path: Path) -> None:
    rows = "".join(f"{i},{g},{'ab'[i % 2]},{int(g == 'h')}\n" for g in "gh" for i in range(9))
    table(tmp_path / "a.csv", "n,grader,label,w\n" + rows)
    words = ("--response", "grader+n", "--grader", "grader", "--weight", "w", "--scale", "a,b")
    assert audit("a.csv", *words, "-o", "a.json", "--quiet", cwd=tmp_path).returncode == 0
    results = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["results"]
    reasons = {r["reason"] for r in results if r["statistic"] == "rate" and r["grader"] == "g"}
    assert reasons == {"all weights are zero"}


@pytest.mark.parametrize("weight", ["1e308", "1e-308", "1e13"])
def test_weights_whose_squares_no_number_holds_are_refused(weight: str, tmp_path: Path) -> None:
    table(tmp_path / "a.csv", f"response,grader,label,w\n1,g,a,{weight}\n2,g,b,1\n")
    message = refused(3, "a.csv", "--weight", "w", cwd=tmp_path)
    assert f'weight "{weight}" is not usable' in message
    assert "from 1e-12 to 1e+12" in message


# Very long cells and very many graders


@pytest.mark.parametrize("column", ["response", "grader", "label", "note"])
def test_a_cell_of_140000_characters_anywhere_is_no_trouble(column: str, tmp_path: Path) -> None:
    long = "x" * 140_000
    rows = [
        {"response": str(i), "grader": g, "label": "ab"[i % 2], "note": "n"}
        for i in range(6)
        for g in ("g", "h")
    ]
    for row in rows[:2]:
        row[column] = long if column != "grader" else row["grader"]
    if column == "grader":
        for row in rows:
            row["grader"] = long + row["grader"]
    pl.DataFrame(rows).write_csv(tmp_path / "a.csv")
    done = in_time(120, "a.csv", "-o", "a.html", "-o", "a.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert max(len(line) for line in done.stdout.splitlines()) <= 160
    assert len(done.stderr) < 2000


def test_a_message_about_a_cell_of_140000_characters_is_short(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,yes\n2,g," + "x" * 140_000 + "\n")
    message = refused(3, "a.csv", "--scale", "no,yes", cwd=tmp_path)
    assert "is not on the scale" in message
    assert len(message) < 2000


def _many(path: Path, graders: int, responses: int) -> None:
    draw = random.Random(1)
    with path.open("w", encoding="utf-8") as stream:
        stream.write(LONG)
        for i in range(responses):
            for g in range(graders):
                stream.write(f"r{i},g{g:04},{draw.choice('abc')}\n")


def test_2000_graders_are_audited_in_a_reasonable_time(tmp_path: Path) -> None:
    """More than 20 graders without gold: no rule applies, shares are shown."""
    _many(tmp_path / "many.csv", 2000, 4)
    done = in_time(120, "many.csv", "--scale", "a,b,c", "-o", "many.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "not applied" in done.stdout
    results = json.loads((tmp_path / "many.json").read_text(encoding="utf-8"))["results"]
    assert len([r for r in results if r["statistic"] == "label_share"]) == 6000


@pytest.mark.slow
def test_2000_graders_of_100000_labels_take_seconds_and_not_gigabytes(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    _many(tmp_path / "many.csv", 2000, 50)
    began = time.monotonic()
    done = audit("many.csv", "--scale", "a,b,c", "--quiet", "-o", "many.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 90
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**20 if sys.platform != "darwin" else 2**30
    )
    assert peak < 2, f"{peak:.1f} GB"


# Little to go by: status 0, and what cannot be told is said


def small(tmp_path: Path, rows: str, *words: str) -> tuple[str, dict[str, Any]]:
    """Standard output and JSON of an audit that ends well."""
    table(tmp_path / "a.csv", LONG + rows)
    outputs = [w for s in ("json", "html", "md", "csv", "parquet") for w in ("-o", f"out.{s}")]
    done = audit("a.csv", *words, *outputs, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    content: dict[str, Any] = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert all((r["value"] is None) == bool(r["reason"]) for r in content["results"])
    return done.stdout, content


def states(content: dict[str, Any], code: str) -> set[str]:
    return {f["state"] for f in content["findings"] if f["code"] == code}


def test_one_grader_is_audited_and_nobody_can_tell_whether_it_misses_a_class(
    tmp_path: Path,
) -> None:
    rows = "".join(f"{i},g,{'ab'[i % 2]}\n" for i in range(60))
    page, content = small(tmp_path, rows, "--scale", "a,b")
    assert states(content, "class_collapse") == {"cannot_tell"}
    assert "cannot be told: there is one grader and no gold" in " ".join(page.split())
    assert not [f for f in content["findings"] if f["state"] == "found"]


def test_one_grader_with_gold_is_audited(tmp_path: Path) -> None:
    rows = "".join(f"{i},{g},{'ab'[i % 2]}\n" for i in range(60) for g in ("g", "gold"))
    _, content = small(tmp_path, rows, "--scale", "a,b")
    assert states(content, "class_collapse") == {"clear"}


@pytest.mark.parametrize("words", [(), ("--scale", "a,b")])
def test_one_class_is_audited_and_kappa_is_not_defined(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    rows = "".join(f"{i},{g},a\n" for i in range(30) for g in "gh")
    _, content = small(tmp_path, rows, *words)
    assert states(content, "one_class_only") == {"found"}
    assert not states(content, "class_collapse") & {"found", "clear"} or words
    (kappa,) = (r for r in content["results"] if r["statistic"] == "cohen_kappa")
    assert kappa["value"] is None
    assert "one class" in kappa["reason"]


@pytest.mark.parametrize("words", [(), ("--scale", "a,b")])
@pytest.mark.parametrize("graders", ["g", "gh"])
def test_one_response_is_audited_without_an_interval(
    graders: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    rows = "".join(f"1,{g},a\n" for g in graders)
    page, content = small(tmp_path, rows, *words)
    assert states(content, "few_clusters") == {"found"}
    assert not [r for r in content["results"] if r["low"] is not None]
    assert "3" in page


def test_graders_without_a_response_in_common_are_audited_and_not_compared(
    tmp_path: Path,
) -> None:
    rows = "".join(f"{i},{'gh'[i % 2]},{'ab'[i // 2 % 2]}\n" for i in range(120))
    _, content = small(tmp_path, rows, "--scale", "a,b")
    (agreement,) = (r for r in content["results"] if r["statistic"] == "agreement")
    assert agreement["value"] is None
    assert states(content, "class_collapse") == {"cannot_tell"}
    for finding in content["findings"]:
        assert "On the same responses" not in finding["sentence"], finding["sentence"]


@pytest.mark.parametrize("words", [(), ("--scale", "a,b")])
def test_all_missing_is_audited_and_no_label_is_made_up(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    rows = "".join(f"{i},{g},\n" for i in range(5) for g in "gh")
    page, content = small(tmp_path, rows, *words)
    missing = [r["value"] for r in content["results"] if r["class"] == "missing"]
    assert missing == [5, 5]
    rates = [r for r in content["results"] if r["statistic"] == "rate"]
    assert all(r["value"] is None for r in rates)
    assert not states(content, "class_collapse") & {"found", "clear"}
    assert "numbers of more than four values" not in " ".join(page.split())


def test_all_unread_is_audited_and_no_rate_is_made_up(tmp_path: Path) -> None:
    rows = "".join(f"{i},{g},?\n" for i in range(5) for g in "gh")
    _, content = small(tmp_path, rows, "--scale", "a,b", "--failed", "*=unparsed")
    assert states(content, "outcomes_unread") == {"found"}
    assert all(r["value"] is None for r in content["results"] if r["statistic"] == "rate")


# Usage: status 2, before any work


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--scal a,b", "--scale"),
        ("--colour red", "--colour"),
        ("--layout sideways", "layout"),
        ("--scale a", "at least two classes"),
        ("--scale a,b,a", "twice"),
        ("--scale a,b --off-scale b", "both"),
        ("--level 95", "level"),
        ("--level high", "level"),
        ("--replicates 3", "replicates"),
        ("--seed -1", "seed"),
        ("--interval exact", "interval"),
        ("--collapse-below 3", "collapse-below"),
        ("--collapse-base 0", "collapse-base"),
        ("--map a", "OLD=NEW"),
        ("--failed a=lost", "outcome"),
        ("--failed *=unparsed", "needs --scale"),
        ("--range g", "NAME="),
        ("--recode g=h", "COLUMN:OLD=NEW"),
        ("--gold nobody", "nobody"),
        ("--people nobody", "nobody"),
        ("--reference nobody", "nobody"),
        ("--by nothing", "nothing"),
        ("--label nothing", "nothing"),
        ("--scale a,b --rate top=c", "'c'"),
        ("--vote-rule best", "vote-rule"),
        ("--weight-kind heavy", "weight-kind"),
        ("-o audit.docx", ".docx"),
        ("-o nowhere/audit.html", "mkdir"),
        ("-o a.csv", "input"),
    ],
)
def test_an_option_that_cannot_be_used_is_status_2_and_names_itself(
    words: str, says: str, tmp_path: Path
) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n2,g,b\n1,h,a\n2,h,a\n")
    assert says in refused(2, "a.csv", *shlex.split(words), cwd=tmp_path)
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").startswith(LONG)


def test_no_input_is_a_usage_error(tmp_path: Path) -> None:
    assert "INPUT" in refused(2, cwd=tmp_path)


def test_facts_that_are_no_toml_are_an_input_error(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n")
    table(tmp_path / "about.toml", "[graders\n")
    assert "about.toml" in refused(3, "a.csv", "--about", "about.toml", cwd=tmp_path)
    assert "gone.toml" in refused(3, "a.csv", "--about", "gone.toml", cwd=tmp_path)


# Standard input, and a file given twice


def test_standard_input_is_read_as_a_file_is(tmp_path: Path) -> None:
    rows = LONG + "".join(f"{i},{g},{'ab'[i % 2]}\n" for i in range(30) for g in "gh")
    table(tmp_path / "a.csv", rows)
    for source, target in (("-", "stdin.csv"), ("a.csv", "file.csv")):
        stdin = rows if source == "-" else None
        done = audit(source, "--quiet", "-o", target, cwd=tmp_path, stdin=stdin)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "stdin.csv").read_bytes() == (tmp_path / "file.csv").read_bytes()


def test_bad_standard_input_is_named_as_such(tmp_path: Path) -> None:
    message = refused(3, "-", "--scale", "a,b", cwd=tmp_path, stdin=LONG + "1,g,a\n2,g,c\n")
    assert "standard input, line 3" in message


def test_gold_from_standard_input_joins_a_file(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n2,g,b\n")
    gold = LONG + "1,gold,a\n2,gold,a\n"
    done = audit("a.csv", "-", "--quiet", "-o", "x.json", cwd=tmp_path, stdin=gold)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["results"]
    (agreement,) = (r for r in results if r["statistic"] == "agreement")
    assert (agreement["value"], agreement["n"]) == (0.5, 2)


def test_a_file_given_twice_counts_once_with_a_notice(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n2,g,b\n")
    done = audit("a.csv", "a.csv", "--quiet", "-o", "x.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 rows repeat a call" in done.stderr
    results = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["results"]
    assert [r["value"] for r in results if r["statistic"] == "label_count"] == [1, 1]


def test_strict_stops_where_there_would_be_a_notice(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n2,g,b\n")
    assert "repeat a call" in refused(3, "a.csv", "a.csv", "--strict", cwd=tmp_path)


def test_a_recode_that_one_of_two_files_needs_is_no_reason_to_stop(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", "model,id,grader,label\nm1,1,g,a\nm1,2,g,b\n")
    table(tmp_path / "b.csv", "model,id,grader,label\nM-1,1,h,a\nM-1,2,h,b\n")
    words = ("a.csv", "b.csv", "--response", "model+id", "--recode", "model:M-1=m1")
    done = audit(*words, "--quiet", "--strict", "-o", "x.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("note") == 0


# Interrupted, and a place that cannot be written to


@pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX systems")
def test_an_interrupt_is_status_130_and_leaves_an_old_report_alone(tmp_path: Path) -> None:
    """Ctrl-C while the command waits for standard input."""
    table(tmp_path / "old.html", OLD)
    process = subprocess.Popen(
        [sys.executable, "-m", "voirdire", "audit", "-", "-o", "old.html"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    # More than a pipe holds: once this is written, the command is reading.
    process.stdin.write(LONG + "1,g,a\n" * 50_000)
    process.stdin.flush()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == ""
    assert err == "voirdire: interrupted.\n"
    assert [p.name for p in tmp_path.iterdir()] == ["old.html"]
    assert (tmp_path / "old.html").read_text(encoding="utf-8") == OLD


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is of Linux")
def test_a_full_disk_under_standard_output_is_no_traceback(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n2,g,b\n")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "voirdire", "audit", "a.csv", "-o", "a.json"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert "Traceback" not in done.stderr
    assert done.returncode not in (0, 70), done.stderr
    assert (tmp_path / "a.json").exists()


def test_an_output_that_is_a_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n")
    (tmp_path / "out.html").mkdir()
    assert "this is a folder" in refused(2, "a.csv", "-o", "out.html", cwd=tmp_path)
