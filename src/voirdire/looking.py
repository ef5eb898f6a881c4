"""What ``voirdire look`` says of a file: what is in it, what an audit would give, and what not and why."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import voirdire
from voirdire.auditing import reader_of, rows_of, scenes, sources
from voirdire.corroboration import MOST_GRADERS, testable_classes
from voirdire.document import (
    Block,
    Column,
    Document,
    Heading,
    Kind,
    Paragraph,
    Paste,
    Table,
    Tone,
    cell,
)
from voirdire.errors import VoirdireError
from voirdire.labels import Labels, assemble
from voirdire.options import Options
from voirdire.rows import CANONICAL
from voirdire.scene import UNREAD_LIMIT, Scene, calls_of
from voirdire.source import Source
from voirdire.wording import Name, Text, counted, listed, percent, plural, printable, say

SHOWN_COLUMNS = 60


def document(inputs: Sequence[Any], options: Options) -> Document:
    """The document of ``voirdire look``.

    A file that cannot be audited as it is still shows its columns, then what is in the way and the
    commands that settle it. Raises only where nothing at all can be read.
    """
    found = sources(inputs)
    blocks: list[Block] = []
    for source in found:
        blocks += _columns(source, options)
    labels: Labels | None = None
    trouble: VoirdireError | None = None
    try:
        labels = assemble(rows_of(found, options), options)
    except VoirdireError as error:
        trouble = error
    if labels is None:
        assert trouble is not None
        if not blocks:
            raise trouble
        blocks.append(Heading(text="What is in the way"))
        lines = tuple((Name(line),) for line in str(trouble).split("\n"))
        blocks.append(Paste(title="What voirdire says", lines=lines, command=True))
        summary: Text = ("It cannot be audited as it is; see what is in the way.",)
    else:
        scene, slices = scenes(labels)
        blocks += _contents(labels, scene)
        blocks += _possible(labels, scene, slices)
        blocks.append(Heading(text="Next"))
        blocks.append(
            Paste(title="The audit", lines=((Name(_command(found, options)),),), command=True)
        )
        summary = say(
            "{n} rows of labels, {graders}; it can be audited as it is.",
            n=len(labels.frame),
            graders=plural(len(labels.graders), "grader"),
        )
    return Document(
        title=f"A look at {', '.join(s.name for s in found[:3])}"
        + (f" and {len(found) - 3} more" if len(found) > 3 else ""),
        summary=summary,
        blocks=tuple(blocks),
        estimates=(),
        findings=(),
        inputs=labels.inputs if labels is not None else (),
        options=options.changed(),
        version=voirdire.__version__,
    )


def _columns(source: Source, options: Options) -> list[Block]:
    reader = reader_of(source)
    claim = reader.sniff(source)
    try:
        entries: Sequence[Mapping[str, Any]] = reader.look(source, options)
    except VoirdireError:
        entries = reader.look(source, Options(encoding=options.encoding))
    if not entries:
        return []
    rows = tuple(
        (
            cell(Name(str(e["column"]))),
            cell(str(e["role"])),
            cell(float(e["distinct"]), Kind.COUNT),
            cell(float(e["blank"]), Kind.COUNT),
            cell(_values(e["values"])),
        )
        for e in entries[:SHOWN_COLUMNS]
        if e["distinct"] or str(e["column"]) not in CANONICAL  # our own tables leave many blank
    )
    format_ = claim.format if claim is not None else reader.name
    more = f" The first {SHOWN_COLUMNS} columns." if len(entries) > SHOWN_COLUMNS else ""
    return [
        Heading(text="Columns"),
        Table(
            title=f"{source.name} ({format_})",
            columns=(
                Column(title="column", kind=Kind.NAME),
                Column(title="read as"),
                Column(title="distinct", kind=Kind.COUNT),
                Column(title="blank", kind=Kind.COUNT),
                Column(title="most frequent values"),
            ),
            rows=rows,
            note=(f"A tag can be sliced by (--by).{more}",),
        ),
    ]


def _values(values: Sequence[tuple[str, int]]) -> Text:
    parts: list[str | Name] = []
    for i, (value, n) in enumerate(values):
        text = printable(str(value))
        text = text if len(text) <= 24 else text[:23] + "…"
        parts += ["; " if i else "", Name(text), f" ({n:,})"]
    return tuple(parts)


def _contents(labels: Labels, scene: Scene) -> list[Block]:
    rows = []
    for grader in labels.graders:
        calls = calls_of(scene, grader.name)
        role = (
            "gold"
            if grader.name == scene.gold
            else "reference"
            if grader.name == scene.reference
            else "person"
            if grader.person
            else ""
        )
        if scene.grid is not None:
            column = scene.grid.column(grader.name)
            counts = np.bincount(column[column >= 0], minlength=len(labels.classes)).astype(float)
        else:
            counts = scene.count_row(grader.name)[0]
        unread = sum(n for o, n in calls.items() if o not in ("label", "missing"))
        rows.append(
            (
                cell(Name(grader.name)),
                cell(role),
                *(cell(float(c) if np.isfinite(c) else None, Kind.COUNT) for c in counts[:12]),
                cell(float(calls.get("label", 0)), Kind.COUNT),
                cell(float(unread), Kind.COUNT),
                cell(float(calls.get("missing", 0)), Kind.COUNT),
            )
        )
    order = (
        say(
            "Ordered classes, lowest first: {scale}.{off}",
            scale=listed(labels.scale, most=12),
            off=say(" Off the scale: {off}.", off=listed(labels.off_scale))
            if labels.off_scale
            else (),
        )
        if labels.ordered
        else (
            "The classes have no order. Declare one with --scale low,…,high to get rates, moves to "
            "neighbours and the words for them.",
        )
    )
    layouts = ", ".join(dict.fromkeys(labels.layouts))
    blocks: list[Block] = [
        Heading(text="Graders and classes"),
        Paragraph(text=(f"Layout: {layouts}. ", *order)),
        Table(
            title="Labels by grader and class",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title="role"),
                *(Column(title=Name(c), kind=Kind.COUNT) for c in labels.classes[:12]),
                Column(title="labels", kind=Kind.COUNT),
                Column(title="unread", kind=Kind.COUNT),
                Column(title="missing", kind=Kind.COUNT),
            ),
            rows=tuple(rows[:40]),
            note=(f"The first 40 of {len(rows)} graders.",) if len(rows) > 40 else (),
        ),
    ]
    if labels.kind == "labels":
        clusters = labels.frame["cluster"].n_unique()
        blocks.append(
            Paragraph(
                text=say(
                    "{n} responses in {c} clusters."
                    if labels.clusters_declared
                    else "{n} responses, each its own cluster. If several answer one prompt or "
                    "question, name the column that says which: --cluster COL.",
                    n=labels.responses,
                    c=clusters,
                )
            )
        )
    tags = [t for t in labels.tags if t.name not in ("raw",)]
    if tags:
        blocks.append(
            Paragraph(
                text=say(
                    "Tags to slice by with --by: {tags}.",
                    tags=listed((f"{t.name} ({t.values})" for t in tags), most=20),
                )
            )
        )
    blocks += [Paragraph(text=n, tone=Tone.NOTE) for n in labels.notices]
    return blocks


def _possible(labels: Labels, scene: Scene, slices: Sequence[Scene]) -> list[Block]:
    """What an audit of this would give, and what not and why."""
    yes: list[tuple[str, str]] = [("label counts and shares of every grader", "")]
    no: list[tuple[str, str]] = []

    def put(holds: bool, what: str, why: str) -> None:
        (yes if holds else no).append((what, "" if holds else why))

    counts = labels.kind == "counts"
    put(bool(scene.rates), "rates and their spread across graders", "no scale: --scale low,…,high")
    if scene.rates and len(scene.panel) < 2:
        no.append(("the spread across graders", "there is one grader"))
    put(
        not counts and bool(scene.standards),
        "what each grader keeps, moves and finds",
        "a table of counts does not say which responses they are"
        if counts
        else "no gold and no reference: --gold NAME or --reference NAME",
    )
    put(
        not counts and len(scene.graders) > 1,
        "agreement, kappa, AC1 and alpha",
        "a table of counts has no pairs of labels" if counts else "there is one grader",
    )
    readable = [g for g in scene.panel if scene.unread_share(g) <= UNREAD_LIMIT]
    if not testable_classes(scene):
        no.append(
            (
                "the collapse rule",
                "more than four ordered classes; the ends and the cumulative shares are read instead",
            )
        )
    elif scene.gold:
        yes.append(("the collapse rule, against gold", ""))
    elif len(scene.panel) > MOST_GRADERS:
        no.append(("the collapse rule", f"more than {MOST_GRADERS} graders and no gold"))
    elif len(readable) >= 3:
        yes.append(("the collapse rule, against at least two other graders", ""))
    elif len(readable) == 2:
        no.append(
            (
                "who of the two misses a class",
                "two graders and no gold show a difference and no more",
            )
        )
    else:
        no.append(("the collapse rule", "one grader and no gold have nothing to be compared with"))
    put(not counts, "intervals that respect clusters", "a table of counts has no clusters")
    for grader in scene.names:
        share = scene.unread_share(grader)
        if share > UNREAD_LIMIT:
            no.append(
                (f"rates of {printable(grader)} for all its calls", f"{percent(share)} are unread")
            )
    explored = sorted({s.slice.split("=")[0] for s in slices if s.exploratory})
    if explored:
        yes.append((f"hidden collapses, exploratory, by {', '.join(map(printable, explored))}", ""))
    return [
        Heading(text="What an audit would give"),
        Table(
            title="What can be computed",
            columns=(Column(title="what"), Column(title="")),
            rows=tuple(
                (cell(what), cell("yes" if not why else f"no: {why}")) for what, why in [*yes, *no]
            ),
        ),
    ]


def _command(found: Sequence[Source], options: Options) -> str:
    """The command that audits this, as it was looked at."""
    words = ["voirdire", "audit"]
    words += [
        "-"
        if s.name == "standard input"
        else str(s.path)
        if s.path and not s.path.is_absolute()
        else s.name
        for s in found
    ]
    default = Options()
    for name in options.changed():
        value = getattr(options, name)
        flag = "--" + name.replace("_", "-")
        if value == getattr(default, name) or name == "about":
            continue
        if name in ("map", "failed"):
            words += [w for old, new in value for w in (flag, f"{old}={new}")]
        elif name in ("range", "rate", "derived_from"):
            words += [w for key, members in value for w in (flag, f"{key}={'+'.join(members)}")]
        elif name == "recode":
            words += [w for column, old, new in value for w in (flag, f"{column}:{old}={new}")]
        elif name in ("missing", "by"):
            words += [w for one in value for w in (flag, one)]
        elif isinstance(value, tuple):
            words += [flag, ",".join(v.replace(",", "\\,") for v in value)]
        elif value is True:
            words.append(flag)
        else:
            words += [
                flag,
                counted(value) if isinstance(value, float) and value >= 1 else str(value),
            ]
    words += ["-o", "audit.html"]
    return " ".join(shlex.quote(w) for w in words)
