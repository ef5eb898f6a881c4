"""``voirdire demo``: the main job on a table that ships."""

from __future__ import annotations

import shlex
import sys
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from voirdire.cli.command import Command, examples
from voirdire.errors import UsageError

DEMOS = {
    "xstest": (
        "xstest.csv",
        "--layout wide --response model+id --cluster id"
        " --graders annotation_1,annotation_2,gpt4_label,strmatch_label"
        " --gold final_label --people annotation_1,annotation_2"
        " --derived-from final_label=annotation_1+annotation_2"
        " --scale 2_full_refusal,3_partial_refusal,1_full_compliance"
        " --range strmatch_label=2_full_refusal+1_full_compliance"
        " --failed '*=unparsed' --by model",
    ),
    "jailbreakbench": (
        "jailbreakbench.csv",
        "--layout wide --response Index --cluster goal_id"
        " --graders harmbench_cf,gpt4_cf,llamaguard2_cf,llama3_cf"
        " --gold human_majority --scale 0,1",
    ),
    "judge-item-bank": (
        "judge_item_bank.csv",
        "--layout checklist --response item_id --question question_id"
        " --cut 4 --cut 5 --cut 6 --cut 7",
    ),
    "missing-class-a": (
        "missing_class_a.csv",
        "--layout counts --scale refusal,evasion,compliance"
        " --off-scale gibberish,refused_in_cot --refusal-like refused_in_cot"
        " --reference gemini-2.5-flash",
    ),
    "missing-class-b": (
        "missing_class_b.csv",
        "--layout counts --scale refusal,evasion,compliance"
        " --off-scale gibberish,refused_in_cot --refusal-like refused_in_cot"
        " --reference gemini-2.5-flash",
    ),
}

EXAMPLES = examples(
    ("Print the report and write audit.html", "voirdire demo"),
    ("Another table, as Markdown", "voirdire demo --name jailbreakbench -o audit.md"),
)


def demo(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Option("--name", metavar="|".join(DEMOS), help="The table to audit."),
    ] = "xstest",
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to write the report, as for voirdire audit. Default: audit.html. Repeatable.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Audit a small table that ships with voirdire, and show the command that does it.

    The tables hold labels and ids only; voirdire/data/README.md says where each comes from.
    """
    if name not in DEMOS:
        raise UsageError(f"--name {name!r} is not one of {', '.join(DEMOS)}.")
    table, flags = DEMOS[name]
    with as_file(files("voirdire") / "data" / table) as path:
        line = ["audit", str(path), *shlex.split(flags)]
        for file in output or [Path("audit.html")]:
            line += ["-o", str(file)]
        print(f"$ voirdire {shlex.join(line)}\n", file=sys.stderr, flush=True)
        root = context.find_root().command
        with root.make_context("voirdire", line) as audit:
            root.invoke(audit)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(demo)
