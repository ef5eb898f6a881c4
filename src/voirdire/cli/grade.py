"""``voirdire grade``: run graders over stored responses, and lose nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voirdire.cli.command import Command, examples
from voirdire.cli.output import check_outputs, note, working, write_all
from voirdire.errors import InputError, UsageError, VoirdireError, unreadable
from voirdire.wording import listed, plain, plural, printable

if TYPE_CHECKING:
    from voirdire.grading.grading import Graded, Work
    from voirdire.grading.plan import Study
    from voirdire.grading.runner import Progress, Report
    from voirdire.grading.store import Outlook

SUFFIXES = (".parquet", ".csv")
SCHEMAS = ("rubric", "study")
FATAL = 4
MOST_TRIED = 100_000  # responses up to which it is tried whether their file has gold that joins

EXAMPLES = examples(
    (
        "A model behind any OpenAI-compatible endpoint, three votes, all phrasings of the rubric",
        "voirdire grade responses.jsonl --rubric four-way --model NAME "
        "--base-url http://127.0.0.1:8000/v1 --votes 3 -o labels.parquet",
    ),
    (
        "What it would ask and cost, and the messages of one call",
        "voirdire grade responses.jsonl --rubric four-way --model NAME --dry-run\n"
        "  $ voirdire grade responses.jsonl --rubric four-way --show-prompt",
    ),
    (
        "Phrases that stand for a refusal, without any network",
        "voirdire grade responses.jsonl --rubric four-way --provider rule -o labels.parquet",
    ),
    ("Several graders, from a study file", "voirdire grade study.toml -o labels.parquet"),
    (
        "Millions of calls, as batch files",
        "voirdire grade study.toml --write-batch batch.jsonl\n"
        "  $ voirdire grade study.toml --read-batch results.jsonl -o labels.parquet",
    ),
)

_WHAT = "What is graded"
_GRADER = "The grader (a study file has several)"
_RUN = "The run"
_INSTEAD = "Instead of a run"
_OUTPUT = "Output"


def _print_schema(what: str | None) -> None:
    if what is None:
        return
    if what not in SCHEMAS:
        raise UsageError(f"--print-schema {what!r} is not one of {', '.join(SCHEMAS)}.")
    import json

    if what == "rubric":
        from voirdire.grading.rubric import schema
    else:
        from voirdire.grading.study_schema import schema
    typer.echo(json.dumps(schema(), indent=2))
    raise typer.Exit


def _text(flags: str, words: str, panel: str, metavar: str, **more: Any) -> Any:
    return typer.Option(
        *flags.split(),
        help=words,
        rich_help_panel=panel,
        metavar=metavar,
        show_default=False,
        **more,
    )


def _switch(flag: str, words: str, panel: str) -> Any:
    return typer.Option(flag, help=words, rich_help_panel=panel, metavar="")


def grade(
    *,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RESPONSES|STUDY.toml",
            help="A file of responses (CSV, TSV, JSON, JSON Lines, Parquet), or a study file.",
            show_default=False,
        ),
    ],
    rubric: Annotated[
        str | None,
        _text(
            "--rubric",
            "four-way, three-way or yes-no, which ship, or a file of yours.",
            _WHAT,
            "NAME|FILE.toml",
        ),
    ] = None,
    phrasing: Annotated[
        list[str] | None,
        _text(
            "--phrasing",
            "The phrasings of the rubric to ask under. Default: all. Repeatable.",
            _WHAT,
            "A,B",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        _text(
            "--column",
            "Which column holds the id, response, prompt, question or cluster, where its name does not "
            "say it. Repeatable.",
            _WHAT,
            "ROLE=COLUMN",
        ),
    ] = None,
    empty: Annotated[
        str | None,
        _text(
            "--empty",
            "Grade responses without text like any other (the default), or skip them.",
            _WHAT,
            "grade|skip",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        _text("--encoding", "The encoding of the responses. Default: UTF-8.", _WHAT, "NAME"),
    ] = None,
    model: Annotated[
        str | None, _text("--model", "The model, as the endpoint calls it.", _GRADER, "NAME")
    ] = None,
    base_url: Annotated[
        str | None,
        _text(
            "--base-url",
            "Where the endpoint listens. Default: OPENAI_BASE_URL, else OpenAI's own.",
            _GRADER,
            "URL",
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        _text(
            "--api-key-env",
            "The name of the environment variable with the key. Default: OPENAI_API_KEY, for OpenAI or OPENAI_BASE_URL alone. A key itself is "
            "never an option.",
            _GRADER,
            "VARIABLE",
        ),
    ] = None,
    provider: Annotated[
        str | None,
        _text(
            "--provider",
            "How the grader is reached: an endpoint (the default), other hosts, phrases, any program, or "
            "answers written down beforehand.",
            _GRADER,
            "openai-compatible|any-llm|rule|command|scripted",
        ),
    ] = None,
    name: Annotated[
        str | None,
        _text("--name", "The grader's name in the labels. Default: the model.", _GRADER, "NAME"),
    ] = None,
    temperature: Annotated[
        str | None,
        _text(
            "--temperature",
            "Default: none, which leaves it to the endpoint and is not the same as 0.",
            _GRADER,
            "X|none",
        ),
    ] = None,
    max_tokens: Annotated[
        str | None,
        _text("--max-tokens", "The most tokens of a reply. Default: none.", _GRADER, "N|none"),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        _text(
            "--parameter",
            "Another parameter that is sent; the value is JSON or text. Repeatable.",
            _GRADER,
            "NAME=VALUE",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        _text(
            "--option",
            "What the provider needs: host (any-llm), patterns, label, otherwise (rule), command, "
            "workers (command), script (scripted). Repeatable.",
            _GRADER,
            "NAME=VALUE",
        ),
    ] = None,
    price_in: Annotated[
        float | None, _text("--price-in", "Per million tokens sent.", _GRADER, "PRICE")
    ] = None,
    price_out: Annotated[
        float | None, _text("--price-out", "Per million tokens of replies.", _GRADER, "PRICE")
    ] = None,
    window: Annotated[
        int | None,
        _text(
            "--window",
            "The model's context in tokens: what is surely longer is an error and not sent.",
            _GRADER,
            "N",
        ),
    ] = None,
    votes: Annotated[
        int | None, _text("--votes", "How often each call is made. Default: 1.", _RUN, "N")
    ] = None,
    concurrency: Annotated[
        int | None,
        _text("--concurrency", "Requests under way at one endpoint. Default: 16.", _RUN, "N"),
    ] = None,
    budget: Annotated[
        float | None,
        _text("--budget", "Stop before this run costs more. Needs prices.", _RUN, "AMOUNT"),
    ] = None,
    max_calls: Annotated[
        int | None, _text("--max-calls", "Stop after so many requests of this run.", _RUN, "N")
    ] = None,
    timeout: Annotated[
        float | None, _text("--timeout", "Of one request. Default: 120.", _RUN, "SECONDS")
    ] = None,
    retries: Annotated[
        int | None,
        _text(
            "--retries",
            "How often a call is asked again after a limit, a broken answer or a timeout; never for what "
            "a reply says. Default: 5.",
            _RUN,
            "N",
        ),
    ] = None,
    seed: Annotated[
        int | None, _text("--seed", "Of the order in which calls are made. Default: 0.", _RUN, "N")
    ] = None,
    store: Annotated[
        Path | None,
        _text(
            "--store",
            "Where every finished call is kept. Default: RESPONSES.RUBRIC.sqlite beside the output; for a "
            "study, beside its file.",
            _RUN,
            "FILE.sqlite",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        _switch(
            "--dry-run", "Say what would be asked, and what it would cost; ask nothing.", _INSTEAD
        ),
    ] = False,
    show_prompt: Annotated[
        bool, _switch("--show-prompt", "Print the exact messages of one call.", _INSTEAD)
    ] = False,
    reparse: Annotated[
        bool,
        _switch(
            "--reparse",
            "Read the stored replies again with the present parser, and say which verdicts change; no "
            "request is made.",
            _INSTEAD,
        ),
    ] = False,
    write_batch: Annotated[
        Path | None,
        _text(
            "--write-batch",
            "Write the calls that are left as a batch file (OpenAI's format; vLLM run-batch).",
            _INSTEAD,
            "FILE.jsonl",
        ),
    ] = None,
    read_batch: Annotated[
        list[Path] | None,
        _text(
            "--read-batch",
            "Record the answers in a batch's output or error file. Repeatable.",
            _INSTEAD,
            "FILE.jsonl",
        ),
    ] = None,
    print_schema: Annotated[
        str | None,
        _text(
            "--print-schema",
            "Print the JSON schema of a rubric or study file and exit.",
            _INSTEAD,
            "rubric|study",
            is_eager=True,
            callback=_print_schema,
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        _text(
            "-o --output",
            "The labels: .parquet or .csv. Repeatable. The store itself is an input of audit too.",
            _OUTPUT,
            "FILE",
        ),
    ] = None,
    quiet: Annotated[bool, _switch("--quiet", "Only notices and errors.", _OUTPUT)] = False,
) -> None:
    """Run graders over stored responses, and keep every call.

    Each response is graded under each phrasing of the rubric in each vote. What is in the store is
    never asked for again: stopped in any way, the same command asks for what is missing. A reply that
    cannot be read is an outcome, and is not asked again.

    Exit status: 0 all there, 6 incomplete (the same command goes on), 4 the endpoint cannot be used,
    130 stopped with Ctrl-C.
    """
    outputs = output or []
    instead = [
        flag
        for flag, given in (
            ("--dry-run", dry_run),
            ("--show-prompt", show_prompt),
            ("--reparse", reparse),
            ("--write-batch", write_batch),
            ("--read-batch", read_batch),
        )
        if given
    ]
    if len(instead) > 1:
        raise UsageError(f"{instead[0]} and {instead[1]} are two things to do. Choose one.")
    check_outputs(outputs, [str(source)], SUFFIXES, what="a table of labels")
    if outputs and (dry_run or show_prompt or write_batch):
        raise UsageError(f"{instead[0]} makes no labels. Leave -o out.")
    from voirdire.grading.grading import beside, prepare

    study = _study(
        source,
        show_prompt=show_prompt,
        rubric=rubric,
        phrasings=[p for text in phrasing or () for p in text.split(",") if p] or None,
        columns=_pairs("--column", column),
        empty=empty,
        encoding=encoding,
        model=model,
        base_url=base_url,
        api_key_env=api_key_env,
        provider=provider,
        name=name,
        temperature=_number("--temperature", temperature, float),
        max_tokens=_number("--max-tokens", max_tokens, int),
        parameters=_values("--parameter", parameter),
        options=_values("--option", option),
        price_in=price_in,
        price_out=price_out,
        window=window,
        votes=votes,
        concurrency=concurrency,
        budget=budget,
        calls=max_calls,
        timeout=timeout,
        retries=retries,
        seed=seed,
        store=store,
    )
    first = outputs[0] if outputs and not _is_study(source) else None
    with working("Planning", quiet=quiet):
        work = prepare(study, beside(study, first, source))
    check_outputs(outputs, [str(study.responses), str(work.store)], SUFFIXES, what="labels")
    if show_prompt:
        _show_prompt(work)
    elif dry_run:
        note(work.plan.notices)
        outlook = work.outlook()
        note(outlook.notices)
        _print(_outlook(work, outlook))
    elif write_batch:
        _write_batch(work, write_batch, quiet=quiet)
    elif read_batch:
        _read_batch(work, read_batch, outputs, quiet=quiet)
    elif reparse:
        _reparse(work, outputs, quiet=quiet)
    else:
        _run(work, outputs, quiet=quiet)


# --- what was given -----------------------------------------------------------------------------


def _is_study(source: Path) -> bool:
    return source.suffix.lower() == ".toml"


def _study(source: Path, *, show_prompt: bool, **flags: Any) -> Study:
    from voirdire.grading.plan import Study

    if _is_study(source):
        return Study.load(source, **flags)
    of_grader = ("model", "provider", "base_url", "parameters", "options", "name")
    if not flags.get("rubric"):
        raise UsageError(
            "Which rubric? Add --rubric NAME, one that ships (four-way, three-way, yes-no), or --rubric "
            "FILE.toml."
        )
    if show_prompt and not any(flags.get(k) for k in of_grader):
        flags["name"] = "any grader"  # what is shown depends on none
    elif not flags.get("model") and flags.get("provider") in (None, "openai-compatible", "openai"):
        raise UsageError(
            "Which model grades? Add --model NAME, and --base-url URL for an endpoint of yours; or "
            "--provider rule for phrases, without a model."
        )
    return Study.of(responses=source, **flags)


def _pairs(flag: str, given: Sequence[str] | None) -> dict[str, str] | None:
    pairs: dict[str, str] = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not (name.strip() and equals and value):
            raise UsageError(f"{flag} {printable(name)}: write {flag} NAME=VALUE.")
        pairs[name.strip()] = value
    return pairs or None


def _values(flag: str, given: Sequence[str] | None) -> dict[str, Any] | None:
    """Pairs whose value is JSON where it can be read as such, else text."""
    import json

    values: dict[str, Any] = {}
    for name, text in (_pairs(flag, given) or {}).items():
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values or None


def _number(flag: str, given: str | None, kind: Callable[[str], Any]) -> Any:
    from voirdire.grading.plan import NONE

    if given is None or given.strip().lower() == NONE:
        return None
    try:
        return kind(given)
    except ValueError:
        raise UsageError(f"{flag} is a number or {NONE}, not {printable(given)!r}.") from None


# --- what is shown ------------------------------------------------------------------------------


def _print(lines: Sequence[tuple[str, str]]) -> None:
    """Lines of a summary on standard output: what, and what of it."""
    wide = max(len(what) for what, _ in lines)
    for what, said in lines:
        print(f"{what:<{wide}}  {printable(said)}")


def _say(message: str) -> None:
    print(f"voirdire: {printable(message)}", file=sys.stderr, flush=True)


def _amount(cost: float | None) -> str:
    if cost is None:
        return "unknown"
    return "under 0.01" if 0 < cost < 0.01 else f"{cost:,.2f}"


def _calls(work: Work) -> str:
    """How the calls of a study come about."""
    planned = work.plan
    parts = [f"{plural(len(planned), 'call')}: {plural(len(planned.items), 'response')}"]
    blocks = planned.blocks
    if len(blocks) > 1:
        parts.append(plural(len(blocks), "grader"))
    if len({(b.phrasings, b.votes) for b in blocks}) == 1:
        names = ", ".join(blocks[0].phrasings)
        parts.append(f"{plural(len(blocks[0].phrasings), 'phrasing')} ({names})")
        parts.append(plural(blocks[0].votes, "vote"))
    return " × ".join(parts)


def _outlook(work: Work, outlook: Outlook) -> list[tuple[str, str]]:
    """What a run would do, line by line."""
    lines = [
        ("plan", _calls(work)),
        ("rubric", f"{work.rubric.name}: {', '.join(_verdicts(work))}"),
        ("store", str(work.store) + ("" if work.store.exists() else " (new)")),
    ]
    there = f"{outlook.done:,} answered"
    if outlook.settled:
        there += f", {outlook.settled:,} blocked or refused and not asked again"
    if outlook.failed:
        there += f", {outlook.failed:,} failed before and asked again"
    lines.append(("in the store", there))
    lines.append(("to ask", f"{outlook.to_do:,}"))
    if outlook.to_do and any(b.talks for b in work.plan.blocks):
        tokens = "unknown (no --max-tokens to go by)"
        if outlook.tokens is not None:
            tokens = f"about {outlook.tokens:,}, if replies are as long as they may be"
        lines.append(("tokens", tokens))
        cost = _amount(outlook.cost)
        if outlook.cost is None:
            cost += " (no prices, or nothing to estimate the length of replies from)"
        lines.append(("cost", cost))
    if len(outlook.graders) > 1:
        for one in outlook.graders:
            lines.append(
                (
                    f"  {one.grader}",
                    f"{one.to_do:,} of {one.calls:,} to ask, cost {_amount(one.cost)}",
                )
            )
    return lines


def _verdicts(work: Work) -> Sequence[str]:
    form = work.rubric
    if not form.is_checklist:
        return form.labels
    if form.questions:
        return [f"yes or no to the lines of {plural(len(form.questions), 'question')}"]
    return [f"yes or no to {plural(len(form.lines), 'line')}"]


def _show_prompt(work: Work) -> None:
    """The messages of one call, letter for letter but for characters that would move the terminal."""
    import json

    call, request = work.first()
    phrasing = f", phrasing {call.phrasing}" if call.phrasing else ""
    _say(
        f"the call of response {call.item.id}, {call.grader.name}{phrasing}, vote {call.vote}. The code in "
        "the marks is another one in every call."
    )
    for message in request.messages:
        print(f"--- {message.role}")
        for line in message.content.split("\n"):
            print(printable(line))
    sent: dict[str, Any] = dict(request.parameters)
    if request.reply_schema is not None:
        sent["reply schema"] = request.reply_schema
    if sent:
        print("--- sent with it")
        print(printable(json.dumps(sent, ensure_ascii=False)))
    if any(printable(line) != line for m in request.messages for line in m.content.split("\n")):
        _say("note: control characters are shown as ⟨U+…⟩ here; they are sent as they are.")


class _Lines:
    """Progress as lines, for what is no terminal: one each tenth of the calls, and one each minute."""

    def __init__(self) -> None:
        import time

        self.tenth = 0
        self.at = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        import time

        total = progress.done + (progress.left or 0)
        tenth = 10 * (progress.done + progress.failed) // max(total, 1)
        now = time.monotonic()
        if tenth <= self.tenth and now - self.at < 60:
            return
        self.tenth, self.at = tenth, now
        print(f"voirdire: {_stands(progress)}", file=sys.stderr, flush=True)


def _stands(progress: Progress) -> str:
    """Where a run stands, on one line."""
    parts = [f"{progress.done:,} done"]
    if progress.left:
        parts[0] += f" of {progress.done + progress.left:,}"
    parts.append(f"{progress.failed:,} failed")
    parts.append(f"{progress.unread:,} unread")
    parts.append(f"{progress.rate:.1f}/s")
    parts.append("cost unknown" if progress.cost is None else f"cost {_amount(progress.cost)}")
    if progress.seconds_left is not None and progress.left:
        parts.append(f"{_duration(progress.seconds_left)} left")
    if progress.waiting > 1:
        parts.append(f"the endpoint asks to wait {_duration(progress.waiting)}")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A bar on a terminal, lines elsewhere, nothing where it should be quiet."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        BarColumn(bar_width=None),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("asking …", total=None)

    def show(progress: Progress) -> None:
        bar.update(
            task,
            completed=progress.done + progress.failed,
            total=progress.done + (progress.left or 0),
            description=_stands(progress),
        )

    with bar:
        yield show


# --- what is done -------------------------------------------------------------------------------


def _run(work: Work, outputs: Sequence[Path], *, quiet: bool) -> None:
    from voirdire.grading.grading import grade

    at_once = False

    def begun(outlook: Outlook, notices: Sequence[Any]) -> None:
        note(notices)
        if quiet:
            return
        asked = (
            f"{outlook.to_do:,} to ask" if outlook.to_do else "nothing to ask: all are in the store"
        )
        _say(f"{_calls(work)}; {outlook.done:,} in {work.store}, {asked}.")
        if outlook.to_do and any(b.talks for b in work.plan.blocks):
            _say(f"expected cost {_amount(outlook.cost)}. Ctrl-C stops; the same command goes on.")

    def stopping(again: bool) -> None:
        nonlocal at_once
        at_once = again
        _say(
            "stopping now."
            if again
            else "stopping: what is under way is finished first. Ctrl-C again stops now."
        )

    with _progress(quiet=quiet) as progress:
        graded = grade(work, begun=begun, progress=progress, stopping=stopping)
    _end(graded, outputs, quiet=quiet, write=not at_once)


def _end(graded: Graded, outputs: Sequence[Path], *, quiet: bool, write: bool = True) -> None:
    """The labels, the summary, the next command, and the exit status with the way on."""
    status = graded.exit_status
    failed: VoirdireError | None = None
    if not quiet:
        _print(_summary(graded))
    if write and graded.outcomes:
        try:
            _write(graded, outputs, quiet=quiet)
        except VoirdireError as error:
            failed = error
    elif outputs:
        _say("note: no labels were written.")
    if status:
        _say(_way_on(graded))
    if failed is not None:
        _say("what was graded is safe in the store: " + str(graded.work.store))
        raise failed
    if not quiet and write and graded.outcomes and status != FATAL:
        print(f"\nNext: {_next(graded, outputs)}")
    if status:
        raise typer.Exit(status)


def _write(graded: Graded, outputs: Sequence[Path], *, quiet: bool) -> None:
    if not outputs:
        return
    labels = graded.labels
    note(labels.notices)
    if graded.others:
        note(
            [
                f"the labels also have {plain(listed(graded.others))}, from earlier runs of this store. For "
                "a store of its own: --store FILE."
            ]
        )
    write_all(outputs, labels.write, quiet=quiet)


def _shares(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {outcome}" for outcome, n in counts.items()) or "none"


def _summary(graded: Graded) -> list[tuple[str, str]]:
    report = graded.report
    ended = sum(graded.outcomes.values())
    lines = [
        ("calls", f"{ended:,} of {len(graded.work.plan):,} ended: {_shares(graded.outcomes)}"),
    ]
    if report is None:
        lines.append(("this run", "asked nothing"))
    else:
        lines += _asked(graded, report)
    lines.append(("store", str(graded.work.store)))
    return lines


def _asked(graded: Graded, report: Report) -> list[tuple[str, str]]:
    """What this run asked, and what came of it."""
    made = f"{report.done:,} answered"
    if report.failed:
        made += f", {report.failed:,} failed ({_shares(report.failures)})"
    made += f"; {plural(report.requests, 'request')}"
    if report.retries:
        made += f", {report.retries:,} of them asked again"
    lines = [("this run", f"{made}; {_duration(report.seconds)}")]
    if any(b.talks for b in graded.work.plan.blocks):
        told = f"{report.tokens_in:,} in, {report.tokens_out:,} out"
        if report.requests and not (report.tokens_in or report.tokens_out):
            told = "unknown (the endpoint gives no counts)"
        lines.append(("tokens", told))
    cost = _amount(report.cost)
    if report.cost is None:
        cost += " (no prices, or no token counts in the replies)"
    elif report.unpriced:
        cost += f" and {plural(report.unpriced, 'request')} of unknown cost"
    lines.append(("cost", cost))
    lines += [("changed", str(change)) for change in report.changes]
    for grader, models in report.other_models.items():
        names = plain(listed([f"{m} ({n:,})" for m, n in models.items()]))
        lines.append(
            ("model", f"{grader}: asked for {report.asked_for[grader]}, answered by {names}")
        )
    return lines


def _way_on(graded: Graded) -> str:
    """Why a run is not complete, and what to do."""
    report = graded.report
    left = f"{plural(graded.left, 'call')} left to ask"
    again = "Run the same command again: it asks only for what is missing."
    stopped = report.stopped if report is not None else ""
    if report is not None and stopped in ("fatal", "failing"):
        who = f"{report.grader}: " if report.grader else ""
        why = "cannot be used" if stopped == "fatal" else "keeps failing"
        return (
            f"stopped, as the grader {why}. {who}{report.words} ({left}.) Mend that and run the same command "
            "again: what was answered is kept."
        )
    if report is not None and stopped == "budget":
        if report.words:
            return f"stopped: {report.words} ({left}.)"
        return f"the budget is used up; {left}. Run the same command again, with a budget for the rest."
    if stopped == "requests":
        return f"the limit on requests (--max-calls) is reached; {left}. {again}"
    if stopped == "interrupted":
        return f"stopped; {left}. {again}"
    if graded.held:
        return (
            f"{left}, and another process is asking {graded.held:,} of them now. Run the same command again "
            "when it is done."
        )
    return f"incomplete; {left}. {again}"


def _next(graded: Graded, outputs: Sequence[Path]) -> str:
    import shlex

    form = graded.work.rubric
    table = str(outputs[0]) if outputs else str(graded.work.store)
    words = ["voirdire", "audit", table]
    if table.lower().endswith(".csv") and not form.is_checklist and form.ordered:
        words += ["--scale", ",".join(form.scale)]
        if form.off_scale:
            words += ["--off-scale", ",".join(form.off_scale)]
    if _has_gold(graded, table):
        words.append(str(graded.work.study.responses))
    return shlex.join([*words, "-o", "audit.html"])


def _has_gold(graded: Graded, table: str) -> bool:
    """Whether the file of responses has gold beside them that joins the labels as it is."""
    planned = graded.work.plan
    if (
        "gold" not in planned.items.tags.columns
        or len(planned.items) > MOST_TRIED
        or graded.work.rubric.is_checklist
        or table.lower().endswith(".csv")
    ):
        return False
    from voirdire import auditing
    from voirdire.options import Options

    try:
        both = auditing.read(table, str(graded.work.study.responses), options=Options.of())
    except VoirdireError:
        return False
    return "gold" in both.grader_names


def _reparse(work: Work, outputs: Sequence[Path], *, quiet: bool) -> None:
    from voirdire.grading.grading import reparse

    with working("Reading replies", quiet=quiet):
        graded, done = reparse(work)
    note(graded.notices)
    changes = done.changes
    _print(
        [
            (
                "read again",
                f"{plural(done.replies, 'stored reply', 'stored replies')}, without a request; "
                + (
                    f"{plural(len(changes), 'verdict')} changed"
                    if changes
                    else "no verdict changed"
                ),
            )
        ]
    )
    most = 20
    for one in changes[:most]:
        line = f", line {one.line}" if one.line else ""
        where = f"{one.item}{line}, {one.grader}, {one.phrasing}, vote {one.vote}"
        print(
            f"  {printable(where)}: {printable(one.before or 'nothing')} → {printable(one.after or 'nothing')}"
        )
    if len(changes) > most:
        print(f"  and {len(changes) - most:,} more")
    _end(graded, outputs, quiet=quiet)


def _write_batch(work: Work, path: Path, *, quiet: bool) -> None:
    from voirdire.grading.batch import write_batch
    from voirdire.grading.store import Store

    if not path.parent.is_dir():
        raise UsageError(
            f"--write-batch {path}: there is no folder {path.parent}. Make it first: mkdir -p {path.parent}"
        )
    if path.resolve() in (work.study.responses.resolve(), work.store.resolve()):
        raise UsageError(
            f"--write-batch {path}: this file is needed, and would be lost. Name another."
        )
    note(work.plan.notices)
    with working("Writing calls", quiet=quiet), Store.open(work.store) as store:
        note(store.outlook(work.plan).notices)
        written = write_batch(work.plan, store, path)
    note(written.notices)
    if not written.calls:
        _say("nothing is left to ask; no file was written.")
        return
    for file, n in written.files:
        if not quiet:
            _say(f"wrote {file}, {plural(n, 'call')}")
    if not quiet:
        print(
            "\nNext: have each file answered (for vLLM: vllm run-batch -i FILE -o RESULTS --model NAME), then "
            "the same\ncommand with --read-batch RESULTS in place of --write-batch."
        )


def _read_batch(work: Work, paths: Sequence[Path], outputs: Sequence[Path], *, quiet: bool) -> None:
    from voirdire.grading.batch import read_batch
    from voirdire.grading.grading import finished
    from voirdire.grading.store import Store

    for path in paths:
        if not path.is_file():
            raise InputError(unreadable(path, name=f"--read-batch {path}"))
    with working("Reading answers", quiet=quiet), Store.open(work.store) as store:
        before = store.outlook(work.plan)
        note((*work.plan.notices, *before.notices))
        store.begin(work.plan)
        found = read_batch(work.plan, store, paths, read=work.read, reader=work.reader)
        graded = finished(work, store, before)
    if not quiet:
        said = f"{plural(found.lines, 'answer')}: {found.replies:,} new replies ({_shares(found.outcomes)})"
        if found.failures:
            said += f", {sum(found.failures.values()):,} failed ({_shares(found.failures)})"
        _print([("batch", said)])
    for n, what in (
        (found.known, "in the store already; nothing was replaced"),
        (found.foreign, "to calls that this study does not have; left out"),
        (found.torn, "torn or unreadable; left out"),
    ):
        if n:
            note([f"{plural(n, 'answer')}: {what}."])
    _end(graded, outputs, quiet=quiet)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=Command, epilog=EXAMPLES)(grade)
