"""What ``voirdire look`` says of a file: what is in it, what an audit would give, and what not and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import voirdire
from voirdire.auditing import refuse_no_judge, scenes
from voirdire.bank import Bank
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
from voirdire.grid import NO_MAJORITY
from voirdire.inputs import reader_of, rows_of, sources
from voirdire.labels import Grader, Labels, assemble
from voirdire.options import Options
from voirdire.orders import ORDER, orders_of, pair_of
from voirdire.readers._suggest import given, typed
from voirdire.rows import CANONICAL
from voirdire.scene import UNREAD_LIMIT, Scene, calls_of
from voirdire.source import Source
from voirdire.wording import Name, Text, counted, listed, percent, plural, printable, say

SHOWN_COLUMNS = 60
SHOWN_GRADERS = 12  # of which single votes are told


def document(
    inputs: Sequence[Any],
    options: Options,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Document:
    """The document of ``voirdire look``.

    A file that cannot be audited as it is still shows its columns, then what is in the way and the
    commands that settle it. Raises only where nothing at all can be read.
    """
    found = sources(inputs)
    blocks: list[Block] = []
    formats: dict[str, list[str]] = {}
    for source in found:
        try:
            described = _columns(source, options)
            if not described:
                formats.setdefault(_format(source), []).append(source.name)
            blocks += described
        except VoirdireError:
            if not source.searched:
                raise  # one that was only found in a folder is named by a notice below
    if formats:
        blocks.append(Heading(text="Logs"))
    blocks += [
        Paragraph(text=say("{what}: {names}.", what=printable(what), names=listed(names, most=6)))
        for what, names in formats.items()
    ]
    labels: Labels | None = None
    trouble: VoirdireError | None = None
    try:
        labels = assemble(rows_of(found, options, progress=progress), options)
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
        blocks += _contents(labels, scene, _explored(slices))
        blocks += _possible(labels, scene, slices)
        blocks.append(Heading(text="Next"))
        alone = _gold_alone(labels)
        if alone:
            blocks.append(Paragraph(text=(alone,), tone=Tone.NOTE))
        else:
            blocks.append(
                Paste(
                    title="The audit",
                    lines=((Name(_command(inputs, options, _cut(scene, options))),),),
                    command=True,
                )
            )
        summary = say(
            "{n} rows of {what}, {graders}. It cannot be audited as it is; see what comes next."
            if alone
            else "{n} rows of {what}, {graders}; it can be audited as it is.",
            n=len(labels.frame),
            what="verdicts" if labels.kind == "checklist" else "labels",
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


def _gold_alone(labels: Labels) -> str:
    """Why an audit would be refused, where there is gold and nobody to hold against it; else empty."""
    try:
        refuse_no_judge(labels)
    except VoirdireError as error:
        return str(error)
    return ""


def _format(source: Source) -> str:
    """The format of a log, with the version that wrote it where the log says so."""
    reader = reader_of(source)
    claim = reader.sniff(source)
    if claim is None:
        return reader.title
    # A claim may be worded for the eye, or be a short name that only says which reader it is.
    named = claim.format if claim.format.lower() != reader.name else reader.title
    return f"{named}, {claim.version}" if claim.version else named


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


def _explored(slices: Sequence[Scene]) -> list[str]:
    """The tags by which an audit looks for hidden collapses unasked."""
    return sorted({tag for s in slices if s.exploratory for tag, _ in s.sliced_by})


def _contents(labels: Labels, scene: Scene, explored: Sequence[str]) -> list[Block]:
    if scene.bank is not None:
        return _bank_contents(labels, scene, scene.bank)
    votes = scene.grid is not None and scene.grid.votes is not None
    split = _without_majority(scene)
    rows = []
    for grader in labels.graders:
        calls = calls_of(scene, grader.name)
        role = _role(grader, scene)
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
                *(
                    (
                        cell(float(counts.sum()), Kind.COUNT),
                        *((cell(float(split[grader.name]), Kind.COUNT),) if split else ()),
                    )
                    if votes
                    else ()
                ),
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
            "These are verdicts on pairs: which side is better, or a tie. They have no order; name the "
            "classes of a rate with --rate NAME=class.",
        )
        if pair_of(labels.classes) is not None
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
                *((Column(title="no majority", kind=Kind.COUNT),) if split else ()),
                *((Column(title="votes read", kind=Kind.COUNT),) if votes else ()),
                Column(title="votes unread" if votes else "unread", kind=Kind.COUNT),
                Column(title="votes missing" if votes else "missing", kind=Kind.COUNT),
            ),
            rows=tuple(rows[:40]),
            note=_counted(scene, len(rows), votes=votes),
        ),
        *_single_votes(labels, scene, split),
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
    return [*blocks, *_tags_and_notices(labels, explored)]


def _without_majority(scene: Scene) -> dict[str, int]:
    """Each grader's responses whose readable votes elect no class; empty where there are none at all."""
    if scene.grid is None:
        return {}
    nobody = (scene.grid.outcomes == NO_MAJORITY).sum(axis=0)
    return dict(zip(scene.grid.graders, nobody.tolist(), strict=True)) if nobody.any() else {}


def _counted(scene: Scene, graders: int, *, votes: bool) -> Text:
    """What the columns of the table of graders count."""
    first = f"The first 40 of {graders} graders." if graders > 40 else ""
    if not votes:
        return (first,) if first else ()
    rule = (
        "the majority of its votes"
        if scene.options.vote_rule == "majority"
        else "its first readable vote"
    )
    return (
        f"Classes and labels count responses: each has one label of a grader, {rule}. The columns of "
        f"votes count single calls. {first}".strip(),
    )


def _single_votes(labels: Labels, scene: Scene, split: Mapping[str, int]) -> list[Block]:
    """The classes of single votes, for graders whose labels leave some of them out."""
    if scene.grid is None or scene.grid.votes is None:
        return []
    counts = scene.grid.votes_by_class()
    made: list[Block] = []
    for grader in [g for g in scene.grid.graders if split.get(g)][:SHOWN_GRADERS]:
        mine = counts[scene.grid.graders.index(grader)]
        classes = [
            f"{c} {counted(n)}" for c, n in zip(labels.classes, mine.tolist(), strict=True) if n
        ]
        made.append(
            Paragraph(
                text=say(
                    "{grader}, over its {n}: {classes}.",
                    grader=Name(grader),
                    n=plural(int(mine.sum()), "readable vote"),
                    classes=listed(classes, most=12),
                )
            )
        )
    return made


def _role(grader: Grader, scene: Scene) -> str:
    if grader.name == scene.gold:
        return "gold"
    if grader.name == scene.reference:
        return "reference"
    return "person" if grader.person else ""


def _tags_and_notices(labels: Labels, explored: Sequence[str] = ()) -> list[Block]:
    # A tag with a value of its own for each response makes no slice.
    tags = [
        t
        for t in labels.tags
        if t.name in explored
        or (t.name != "raw" and not (t.per_response and 1 < labels.responses <= t.values))
    ]
    blocks: list[Block] = []
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


def _bank_contents(labels: Labels, scene: Scene, bank: Bank) -> list[Block]:
    """What is in a checklist: graders with their verdicts and calls, questions and lines."""
    assert labels.checklist is not None
    rows = []
    for grader in scene.graders:
        calls = calls_of(scene, grader.name)
        verdicts = bank.of(grader.name)
        unread = sum(n for o, n in calls.items() if o not in ("label", "missing"))
        whole = bank.complete[:, bank.places[grader.name]]
        in_part = (verdicts >= 0).any(axis=1) & ~whole
        rows.append(
            (
                cell(Name(grader.name)),
                cell(_role(grader, scene)),
                cell(float((verdicts == 1).sum()), Kind.COUNT),
                cell(float((verdicts == 0).sum()), Kind.COUNT),
                cell(float(whole.sum()), Kind.COUNT),
                cell(float(in_part.sum()), Kind.COUNT),
                cell(float(unread), Kind.COUNT),
                cell(float(calls.get("missing", 0)), Kind.COUNT),
            )
        )
    lines = len(bank.lines)
    if not bank.own:
        asked = say("One checklist serves all responses: {n}.", n=plural(lines, "line"))
    else:
        lengths = sorted({len(names) for names in labels.checklist.lines})
        asked = say(
            "Each question ({column}) has its own checklist: {q}, {n}, {k} lines each.",
            column=Name(labels.checklist.question or "from the names of the lines"),
            q=plural(len(bank.questions), "question"),
            n=plural(lines, "line"),
            k=f"{lengths[0]}" if len(lengths) == 1 else f"{lengths[0]} to {lengths[-1]}",
        )
    clusters = labels.frame["cluster"].n_unique()
    layouts = ", ".join(dict.fromkeys(labels.layouts))
    return [
        Heading(text="Graders and lines"),
        Paragraph(text=(f"Layout: {layouts}. ", *asked)),
        Table(
            title="Verdicts by grader",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title="role"),
                Column(title="yes", kind=Kind.COUNT),
                Column(title="no", kind=Kind.COUNT),
                Column(title="complete responses", kind=Kind.COUNT),
                Column(title="responses in part", kind=Kind.COUNT),
                Column(title="calls unread", kind=Kind.COUNT),
                Column(title="calls missing", kind=Kind.COUNT),
            ),
            rows=tuple(rows[:40]),
            note=(
                "Yes and no count verdicts on lines, one a line of a response. Totals are over complete "
                "responses only; a missing line is never taken as a no.",
                f" The first 40 of {len(rows)} graders." if len(rows) > 40 else "",
            ),
        ),
        Paragraph(
            text=say(
                "{n} in {c}."
                if labels.clusters_declared
                else "{n}, each its own cluster. If several answer one prompt or "
                "question, name the column that says which: --cluster COL.",
                n=plural(labels.responses, "response"),
                c=plural(clusters, "cluster"),
            )
        ),
        *_tags_and_notices(labels),
    ]


def _bank_possible(labels: Labels, scene: Scene, bank: Bank) -> list[Block]:
    """What an audit of a checklist would give, and what not and why."""
    judges = [g for g in scene.names if g != scene.gold]
    no_gold = "no gold: --gold NAME, in this file or a second one"
    empty = [g for g in labels.grader_names if g not in scene.names]
    if empty:
        no_gold = f"{printable(empty[0])} is gold and has no verdict on any line"
    one_length = "" if bank.k else "questions have checklists of different lengths"
    few = "" if bank.k > 1 else one_length or "a checklist of one line"
    cut = "" if scene.options.cut else "no cut: --cut C, the lines that a pass takes"
    unknown = "" if scene.gold and judges else no_gold if judges else "there is gold alone"
    rows = [
        ("errors by line, false accepts and false rejects, leniency", unknown),
        ("accuracy of the gate and its pass rate against gold's", unknown or cut),
        (
            "what the bank says (KR-20, alpha and the like)"
            + (
                ", with its value on gold" if scene.gold and judges else ", without a value on gold"
            ),
            few,
        ),
        ("Φ(λ), Livingston–Lewis", few or cut),
        (
            "intervals that respect clusters",
            "" if len(np.unique(bank.cluster)) >= 3 else "fewer than 3 clusters",
        ),
    ]
    rows += [
        (f"figures of {printable(g)} for all its calls", f"{percent(share)} are unread")
        for g in scene.names
        if (share := scene.unread_share(g)) > UNREAD_LIMIT
    ]
    rows.sort(key=lambda row: bool(row[1]))
    return [
        Heading(text="What an audit would give"),
        Table(
            title="What can be computed",
            columns=(Column(title="what"), Column(title="")),
            rows=tuple(
                (cell(what), cell("yes" if not why else f"no: {why}")) for what, why in rows
            ),
        ),
    ]


def _possible(labels: Labels, scene: Scene, slices: Sequence[Scene]) -> list[Block]:
    """What an audit of this would give, and what not and why."""
    if scene.bank is not None:
        return _bank_possible(labels, scene, scene.bank)
    yes: list[tuple[str, str]] = [("label counts and shares of every grader", "")]
    no: list[tuple[str, str]] = []

    def put(holds: bool, what: str, why: str) -> None:
        (yes if holds else no).append((what, "" if holds else why))

    counts = labels.kind == "counts"
    of_pairs = pair_of(labels.classes) is not None
    put(
        bool(scene.rates),
        "rates and their spread across graders",
        "verdicts on pairs have no order: --rate NAME=class"
        if of_pairs
        else "no scale: --scale low,…,high",
    )
    if of_pairs or orders_of(scene) is not None:
        put(
            orders_of(scene) is not None,
            "position flips and the preference for a place",
            f"no votes in both orders of a pair: a tag {ORDER} with AB and BA",
        )
    if scene.grid is not None and scene.grid.phrasings is not None:
        wordings = plural(len(scene.grid.phrasings.names), "phrasing")
        yes.append((f"what the wording does, over {wordings}: flips, and components of scores", ""))
    if scene.rates and len(scene.panel) < 2:
        no.append(("the spread across graders", "there is one grader"))
    put(
        not counts and bool(scene.standards),
        "what each grader keeps, moves and finds",
        "a table of counts does not say which responses they are"
        if counts
        else "no gold and no reference: --gold NAME or --reference NAME",
    )
    several = len(scene.graders) > 1
    put(
        not counts and several and _overlap(scene),
        "agreement, kappa, AC1 and alpha",
        "a table of counts has no pairs of labels"
        if counts
        else "no response has labels of two graders"
        if several
        else "there is one grader",
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
    explored = _explored(slices)
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


def _overlap(scene: Scene) -> bool:
    """Whether any response has labels of two graders."""
    if scene.grid is None:
        return False
    labelled = sum((scene.grid.column(g.name) >= 0).astype(int) for g in scene.graders)
    return bool((np.asarray(labelled) > 1).any())


def _cut(scene: Scene, options: Options) -> int:
    """A cut to begin with where a checklist has none: half of the lines, rounded up; else 0."""
    if scene.bank is None or options.cut:
        return 0
    return (int(scene.bank.length.max(initial=1)) + 1) // 2


def _command(inputs: Sequence[Any], options: Options, cut: int = 0) -> str:
    """The command that audits this, as it was looked at; ``cut`` above 0 is put in.

    It names what the user named: a folder, not the files in it, of which some may be left out.
    """
    words = ["voirdire", "audit", *map(_word, inputs), *given(options)]
    if cut:
        words += ["--cut", str(cut)]
    return typed([*words, "-o", "audit.html"])


def _word(one: Any) -> str:
    """An input as it was typed."""
    if isinstance(one, str | Path):
        return str(one)
    return one.argument if isinstance(one, Source) else "FRAME"
