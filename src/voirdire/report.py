"""The report: findings first, then the counts, then the lines that belong in the paper."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from voirdire import disclosure
from voirdire.checks.base import Check
from voirdire.document import (
    Block,
    Column,
    Document,
    Figure,
    FindingBlock,
    Heading,
    Kind,
    Paragraph,
    Paste,
    Responses,
    Table,
    Tone,
    cell,
    display,
    display_interval,
)
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State
from voirdire.labels import Grader, Labels
from voirdire.methods import methods
from voirdire.options import Options
from voirdire.orders import pair_of
from voirdire.responses import panel
from voirdire.scene import Estimates, Scene, calls_of
from voirdire.stats.base import Family
from voirdire.stats.pairwise import MOST_GRADERS_FOR_PAIRS
from voirdire.wording import Name, Text, counted, listed, percent, plural, points, say, times

NOT_STATED = "not stated"
FACTS = ("model", "size", "family", "prompt", "votes")
MOST_GRADERS_SHOWN = 40
CHECKLIST_METHOD = (
    "A response counts where every line of its checklist has a verdict: a line that is missing is "
    "never a no, and no total is made over fewer lines. Judge and gold are compared on the responses "
    "that both scored in full, in one tally, so that the interval of a difference knows how they move "
    "together. What only describes the bank stands beside its value on gold and never beside the "
    "judge’s agreement with gold."
)


def document(
    labels: Labels,
    scene: Scene,
    slices: Sequence[Scene],
    estimates: Estimates,
    findings: Sequence[Finding],
    families: Sequence[Family],
    listed_estimates: Sequence[Estimate],
    version: str,
    responses: Responses | None = None,
) -> Document:
    """The document of an audit."""
    blocks: list[Block] = [Heading(text="Findings")]
    if not findings:
        blocks.append(Paragraph(text=("No check applies to this file.",)))
    blocks += [FindingBlock(finding=f) for f in findings]
    small = _readable_panel(scene)
    if labels.kind == "checklist":
        blocks += disclosure.decision_table(labels, scene, estimates)
    section = ""
    for family in families:
        if family.blocks is None:
            continue
        made = family.blocks(small, estimates)
        if not made:
            continue
        if small is not scene:
            made = _with_whole_figures(made, family.blocks(scene, estimates))
        if family.section != section:
            section = family.section
            blocks.append(Heading(text=section))
        blocks += made
    of_slices = _slices if scene.bank is None else _bank_slices
    blocks += of_slices(scene, slices, estimates)
    blocks.append(Heading(text="For the paper"))
    if labels.kind == "checklist":
        blocks += disclosure.reporting_lines(scene, estimates)
    else:
        blocks += reporting_minimum(labels, scene, estimates, findings)
    blocks += methods(labels, scene, listed_estimates, findings, version)
    blocks += _about(labels, scene)
    return Document(
        title=_title(labels, scene),
        summary=_summary(labels, scene, findings),
        blocks=tuple(blocks),
        estimates=tuple(listed_estimates),
        findings=tuple(findings),
        inputs=labels.inputs,
        options=_shown_options(labels.options),
        version=version,
        panel=panel(scene),
        responses=responses,
    )


def _shown_options(options: Options) -> dict[str, Any]:
    return options.changed()


def _readable_panel(scene: Scene) -> Scene:
    """With very many graders tables show the first ones; the results hold them all."""
    if len(scene.graders) <= MOST_GRADERS_SHOWN:
        return scene
    from dataclasses import replace

    kept = [
        g
        for i, g in enumerate(scene.graders)
        if i < MOST_GRADERS_SHOWN or g.name in scene.standards or g.name in scene.flagged
    ]
    return replace(scene, graders=tuple(kept), memory=scene.memory, **_cut(scene, kept))


def _with_whole_figures(made: Sequence[Block], whole: Sequence[Block]) -> list[Block]:
    """Blocks with the figures of the whole panel: a figure has room for more, and its data for all."""
    figures = [b for b in whole if isinstance(b, Figure)]
    drawn = [b.name for b in made if isinstance(b, Figure)]
    if drawn != [f.name for f in figures]:
        return list(made)
    rest = iter(figures)
    return [next(rest) if isinstance(b, Figure) else b for b in made]


def _cut(scene: Scene, kept: Sequence[Grader]) -> dict[str, Any]:
    """Grid, bank or counts with just these graders, so that tables look them up by place."""
    from dataclasses import replace

    import numpy as np

    places = np.array([scene.names.index(g.name) for g in kept])
    if scene.grid is not None:
        grid = scene.grid
        return {
            "grid": replace(
                grid,
                graders=tuple(g.name for g in kept),
                codes=grid.codes[:, places],
                outcomes=grid.outcomes[:, places],
                calls=grid.calls[places],
                tags={},
            )
        }
    if scene.bank is not None:
        return {"bank": replace(scene.bank.only([g.name for g in kept]), tags={})}
    assert scene.counts is not None
    counts = scene.counts
    return {
        "counts": replace(
            counts,
            labels=counts.labels[places],
            totals=counts.totals[places],
            calls=counts.calls[places],
        )
    }


def _title(labels: Labels, scene: Scene) -> str:
    names = ", ".join(dict.fromkeys(i.name for i in labels.inputs[:3]))
    more = f" and {len(labels.inputs) - 3} more" if len(labels.inputs) > 3 else ""
    who = "judge" if labels.kind == "checklist" else "grader"
    return f"Audit of {plural(len(scene.panel), who)}: {names}{more}"


def _summary(labels: Labels, scene: Scene, findings: Sequence[Finding]) -> Text:
    what: Text
    if labels.kind == "counts":
        classes = plural(len(scene.classes), "class", "classes")
        what = (f"Counts of {classes} from {plural(len(scene.graders), 'grader')}",)
    elif scene.bank is not None:
        what = _bank_summary(labels, scene)
    else:
        clusters = labels.frame["cluster"].n_unique()
        held = (
            f" in {plural(clusters, 'cluster')}"
            if labels.clusters_declared
            else ", each its own cluster"
        )
        what = say(
            "{responses}{held}, {graders}, {classes}",
            responses=plural(labels.responses, "response"),
            held=held,
            graders=plural(len(scene.panel), "grader"),
            classes=plural(len(scene.classes), "class", "classes"),
        )
    if scene.gold:
        what = (*what, *say("; gold is {gold}", gold=Name(scene.gold)))
    if scene.reference:
        what = (*what, *say("; the reference is {reference}", reference=Name(scene.reference)))
    found = sum(f.state is State.FOUND for f in findings)
    open_ = sum(f.state is State.CANNOT_TELL for f in findings)
    tail = f". {found} {'thing' if found == 1 else 'things'} found, {open_} that cannot be told."
    return (*what, tail)


def _bank_summary(labels: Labels, scene: Scene) -> Text:
    bank = scene.bank
    assert bank is not None
    clusters = labels.frame["cluster"].n_unique()
    least, most = disclosure.shortest_and_longest(bank.length)
    scored = [int(bank.complete[:, bank.places[g]].sum()) for g in scene.panel]
    in_full = "none" if not scored else counted(min(scored))
    if scored and max(scored) > min(scored):
        in_full += f" to {counted(max(scored))}"
    return say(
        "{responses}{questions}{held}, {judges}, {lines} each; {scored} scored in full",
        responses=plural(bank.responses, "response"),
        questions=f" to {plural(len(bank.questions), 'question')}" if bank.own else "",
        held=f" in {plural(clusters, 'cluster')}"
        if labels.clusters_declared
        else ", each its own cluster",
        judges=plural(len(scene.panel), "judge"),
        lines=plural(most, "line") if least == most else f"{least} to {most} lines",
        scored=in_full,
    )


# --- slices -------------------------------------------------------------------------------------


def _slices(scene: Scene, slices: Sequence[Scene], estimates: Estimates) -> list[Block]:
    if not slices:
        return []
    blocks: list[Block] = [Heading(text="By part of the responses")]
    names = scene.names[:12]
    for rate in scene.rates:
        rows = []
        for one in slices:
            found = [
                estimates.get("rate", grader=g, class_=rate.name, slice=one.slice) for g in names
            ]
            rows.append((cell(Name(one.slice)), *(cell(e) for e in found)))
        blocks.append(
            Table(
                title=f"Rate of {rate.name}",
                columns=(
                    Column(title="part", kind=Kind.NAME),
                    *(Column(title=Name(g), kind=Kind.SHARE) for g in names),
                ),
                rows=tuple(rows),
            )
        )
    for standard in scene.standards:
        others = [g for g in names if g not in (standard, scene.gold)]
        rows = [
            (
                cell(Name(one.slice)),
                *(
                    cell(estimates.get("agreement", grader=g, other=standard, slice=one.slice))
                    for g in others
                ),
            )
            for one in slices
        ]
        if scene.grid is not None and others:
            word = "gold" if standard == scene.gold else "the reference"
            blocks.append(
                Table(
                    title=f"Agreement with {word} in each part",
                    columns=(
                        Column(title="part", kind=Kind.NAME),
                        *(Column(title=Name(g), kind=Kind.SHARE) for g in others),
                    ),
                    rows=tuple(rows),
                    note=say("With {standard}.", standard=Name(standard)),
                )
            )
    rows = []
    for one in slices:
        for grader in names:
            found = [
                estimates.get("label_count", grader=grader, class_=c, slice=one.slice)
                for c in scene.classes[:12]
            ]
            if any(e is not None for e in found):
                rows.append((cell(Name(one.slice)), cell(Name(grader)), *(cell(e) for e in found)))
    if rows and len(rows) <= 200:
        blocks.append(
            Table(
                title="Labels by class in each part",
                columns=(
                    Column(title="part", kind=Kind.NAME),
                    Column(title="grader", kind=Kind.NAME),
                    *(Column(title=Name(c), kind=Kind.COUNT) for c in scene.classes[:12]),
                ),
                rows=tuple(rows),
            )
        )
    return blocks


def _bank_slices(scene: Scene, slices: Sequence[Scene], estimates: Estimates) -> list[Block]:
    """A judge’s errors in each part, and apart from them the coefficient beside its value on gold."""
    if not slices:
        return []
    blocks: list[Block] = [Heading(text="By part of the responses")]
    cuts = sorted(set(scene.options.cut))
    several = len(scene.panel) > 1
    for judge in scene.panel[: disclosure.MOST_JUDGES]:
        of = f" of {judge}" if several else ""
        parts = [disclosure.Account(scene=s, estimates=estimates, judge=judge) for s in slices]
        if scene.gold:
            blocks.append(
                Table(
                    title=f"Errors{of} against gold in each part",
                    columns=(
                        Column(title="part", kind=Kind.NAME),
                        Column(title="false accept", kind=Kind.SHARE),
                        Column(title="false reject", kind=Kind.SHARE),
                        Column(title="element error", kind=Kind.SHARE),
                        *(Column(title=f"gate accuracy, cut {c}", kind=Kind.SHARE) for c in cuts),
                    ),
                    rows=tuple(
                        (
                            cell(Name(one.scene.slice)),
                            *(
                                cell(one.of_judge(s))
                                for s in ("false_accept", "false_reject", "element_error")
                            ),
                            *(cell(one.of_judge("gate_accuracy", cut=str(c))) for c in cuts),
                        )
                        for one in parts
                    ),
                )
            )
        blocks.append(
            Table(
                title=f"KR-20{of} in each part",
                columns=(
                    Column(title="part", kind=Kind.NAME),
                    Column(title="judge’s verdicts", kind=Kind.COEFFICIENT),
                    *(
                        (
                            Column(title="gold’s verdicts", kind=Kind.COEFFICIENT),
                            Column(title="difference", kind=Kind.COEFFICIENT),
                        )
                        if scene.gold
                        else ()
                    ),
                ),
                rows=tuple(
                    (
                        cell(Name(one.scene.slice)),
                        cell(one.of_judge("kr20")),
                        *(
                            (cell(one.of_gold("kr20")), cell(one.of_judge("kr20_minus_gold")))
                            if scene.gold
                            else ()
                        ),
                    )
                    for one in parts
                ),
                note=(
                    "It moves with how widely a part’s totals spread, on gold’s verdicts as on the "
                    "judge’s: a lower value does not mean more errors.",
                ),
            )
        )
    return blocks


# --- the reporting minimum ----------------------------------------------------------------------


def reporting_minimum(
    labels: Labels, scene: Scene, estimates: Estimates, findings: Sequence[Finding]
) -> list[Block]:
    """The lines to paste: named graders, class counts, both rates with intervals, spread, unread."""
    lines: list[Text] = []
    shown = scene.graders[:MOST_GRADERS_SHOWN]
    if labels.kind == "counts":
        lines.append(("Counts as printed; responses are not at hand.",))
    else:
        clusters = labels.frame["cluster"].n_unique()
        lines.append(
            say(
                "Bank: {n} in {clusters}."
                if labels.clusters_declared
                else "Bank: {n}; no clusters declared.",
                n=plural(labels.responses, "response"),
                clusters=plural(clusters, "cluster"),
            )
        )
    lines += [_named(scene, g) for g in shown]
    lines += [_class_counts(scene, estimates, g.name) for g in shown]
    for rate in scene.rates:
        lines += _rate_lines(scene, estimates, rate.name)
    if not scene.rates and pair_of(scene.classes) is not None:
        lines.append(
            (
                "Rates: none, since verdicts on pairs have no order; name the classes of one with "
                "--rate NAME=class.",
            )
        )
    elif not scene.rates:
        lines.append(
            ("Rates: none, since the classes have no order; declare one with --scale low,…,high.",)
        )
    found = [f for f in findings if f.state is State.FOUND and f.code == "class_collapse"]
    for finding in found:
        lines.append(
            say(
                "Class collapse: {grader} hardly uses {class_} ({strength}).",
                grader=Name(finding.grader),
                class_=Name(finding.class_),
                strength=str(finding.strength),
            )
        )
    missing = [g.name for g in shown if g.name != scene.gold and not _stated(g)]
    blocks: list[Block] = [
        Paragraph(
            text=(
                "The reporting minimum of “The Missing Compliance Class”: class counts and the named "
                "grader beside every rate, and the non-refusal rate beside the top-class rate.",
            )
        ),
        Paste(title="Reporting minimum", lines=tuple(lines)),
    ]
    if missing:
        blocks.append(
            Paragraph(
                tone=Tone.NOTE,
                text=say(
                    "{graders}: model, size, prompt or votes are not stated. Put them into a file and "
                    'pass it with --about: [graders."NAME"] with model, size, family, prompt, votes.',
                    graders=listed(missing),
                ),
            )
        )
    return blocks


def _stated(grader: Grader) -> bool:
    return grader.person or all(
        grader.facts.get(f) not in (None, "") for f in ("model", "size", "prompt", "votes")
    )


def _named(scene: Scene, grader: Grader) -> Text:
    role = (
        "gold"
        if grader.name == scene.gold
        else "reference"
        if grader.name == scene.reference
        else ""
    )
    kind = "person" if grader.person else str(grader.facts.get("kind", ""))
    parts: list[str | Name] = ["Grader ", Name(grader.name)]
    tail = [w for w in (role, kind) if w]
    if tail:
        parts.append(f" ({', '.join(tail)})")
    if grader.derived_from:
        parts += [", made from ", *listed(grader.derived_from)]
    if not grader.person and not grader.derived_from:
        for fact in ("model", "size", "prompt", "votes"):
            value = grader.facts.get(fact)
            parts += [
                f"{':' if fact == 'model' else ';'} {fact} ",
                Name(str(value)) if value not in (None, "") else NOT_STATED,
            ]
    parts.append(".")
    return tuple(parts)


def _class_counts(scene: Scene, estimates: Estimates, grader: str) -> Text:
    parts: list[str | Name] = ["Labels of ", Name(grader), ": "]
    total: float | None = None
    for i, class_ in enumerate(scene.classes):
        found = estimates.get("label_count", grader=grader, class_=class_)
        parts += [
            ", " if i else "",
            Name(class_),
            ": ",
            counted(found.number) if found and found.number is not None else "not printed",
        ]
        total = found.n if found is not None else total
    parts.append(f"; {counted(total)} readable" if total is not None else "; total not printed")
    unread = {o: n for o, n in calls_of(scene, grader).items() if o not in ("label", "missing")}
    if unread:
        parts.append(
            "; unread: "
            + ", ".join(f"{counted(n)} {o.replace('_', ' ')}" for o, n in unread.items())
        )
    elif scene.counts is None:
        parts.append("; none unread")
    parts.append(".")
    return tuple(parts)


def _rate_lines(scene: Scene, estimates: Estimates, rate: str) -> list[Text]:
    parts: list[str | Name] = [Name(rate), ": "]
    first = True
    for grader in scene.names[:MOST_GRADERS_SHOWN]:
        found = estimates.get("rate", grader=grader, class_=rate)
        if found is None:
            continue
        shown = cell(found)
        interval = display_interval(shown)
        value = (
            f"{display(shown)}{' ' + interval if interval else ''}"
            if found.number is not None
            else f"not determined ({found.reason})"
        )
        parts += ["" if first else ", ", Name(grader), " ", value]
        first = False
    parts.append(".")
    lines: list[Text] = [tuple(parts)]
    for ratio in estimates.of("rate_max_over_min", class_=rate, slice=""):
        key = {"class_": rate, "other": ratio.key.other}
        wide, zeros = estimates.get("rate_range", **key), estimates.get("graders_at_zero", **key)
        at_zero = int(zeros.number or 0) if zeros is not None else 0
        who = "across all graders"
        names: Text = ()
        if ratio.key.other:
            word, _, left = ratio.key.other.partition(":")
            if word == "votes":
                rules = {"first": "the first readable vote", "majority": "the majority of votes"}
                who = f"across all graders, by {rules[left]}"
            else:
                who, names = "without ", listed(left.split("+"))
        fold = (
            f"{'at least ' if at_zero else ''}{times(ratio.number)}-fold"
            if ratio.number is not None
            else f"ratio not determined ({ratio.reason})"
        )
        if at_zero:
            fold += f" ({at_zero} at zero)"
        apart = (
            points(wide.number)
            if wide is not None and wide.number is not None
            else "range not determined"
        )
        lines.append(
            say(
                "Spread of {rate} {who}{names}: {fold}, {apart}.",
                rate=Name(rate),
                who=who,
                names=names,
                fold=fold,
                apart=apart,
            )
        )
    return lines


# --- about --------------------------------------------------------------------------------------


def _about(labels: Labels, scene: Scene) -> list[Block]:
    blocks: list[Block] = [Heading(text="How this was made")]
    options = labels.options
    if labels.kind == "counts":
        method = (
            "Only counts are known: intervals are Wilson’s (rates) and the conditional binomial "
            "(ratios), and rest on independent responses."
        )
    elif options.interval == "bootstrap":
        method = (
            f"Intervals at {percent(options.level, 0)}: percentiles of the multinomial cluster bootstrap, "
            f"{options.replicates:,} replicates, seed {options.seed}; where these have no width the beta "
            "interval on the effective sample size, and where the clusters are too many and too "
            "different the jackknife: the results name the method of each."
        )
    else:
        method = (
            f"Intervals at {percent(options.level, 0)}: delete-one-cluster jackknife with t, on the scale "
            "that suits the quantity; at the edge of a rate the beta interval on the effective "
            "sample size (Korn and Graubard)."
        )
    blocks.append(Paragraph(text=(method,)))
    if labels.kind == "checklist":
        blocks.append(Paragraph(text=(CHECKLIST_METHOD,)))
    if scene.flagged:
        blocks.append(
            Paragraph(
                text=say(
                    "A grader that is not flagged is not thereby right: {flagged} {stand} out by counts; "
                    "only gold decides who is off.",
                    flagged=listed(scene.flagged),
                    stand="stands" if len(scene.flagged) == 1 else "stand",
                )
                if not scene.gold
                else ("A grader that is not flagged is not thereby right.",)
            )
        )
    graders = len(scene.panel)
    if graders > MOST_GRADERS_FOR_PAIRS and labels.kind == "labels":
        blocks.append(
            Paragraph(
                tone=Tone.NOTE,
                text=(
                    f"{graders:,} graders make {graders * (graders - 1) // 2:,} pairs; pairs are compared "
                    f"for up to {MOST_GRADERS_FOR_PAIRS} graders. Name some with --graders.",
                ),
            )
        )
    stated = [g for g in scene.graders if set(g.facts) - {"kind"}]
    if stated:
        facts = [f for f in FACTS if any(f in g.facts for g in stated)]
        blocks.append(
            Table(
                title="What is stated of the graders",
                columns=(Column(title="grader", kind=Kind.NAME), *(Column(title=f) for f in facts)),
                rows=tuple(
                    (
                        cell(Name(g.name)),
                        *(cell((Name(str(g.facts.get(f) or NOT_STATED)),)) for f in facts),
                    )
                    for g in scene.graders
                ),
            )
        )
    blocks += [Paragraph(text=n, tone=Tone.NOTE) for n in labels.notices]
    return blocks


# --- the list of statistics ---------------------------------------------------------------------


# A sentence that says what letters of the formula stand for: "n_cd: …", "p_c, q_c: …", "N = Σ_c n_c".
_OF_LETTERS = re.compile(
    r"(?:The letters of T |(?:[^\W\d_]|MS|LL|KR-20)[\u0302\u0304]?(?:[_²^(][^\s:]*)?(?:(?:, | and | ≤ … ≤ )\S+)*(?::| [=≤] ))"
)


def _conventions(text: str) -> str:
    """The conventions without the letters of the formula, which is not shown beside them."""
    sentences = re.split(r"(?<=\.) (?=[^\W\d_a-z])", text)
    spelled = [(s, unicodedata.normalize("NFD", s)) for s in sentences]
    return " ".join(s for s, nfd in spelled if not (_OF_LETTERS.match(nfd) or "\u0302" in nfd))


def statistics(families: Sequence[Family], checks: Iterable[Check], version: str) -> Document:
    """Every estimand and every check, as a document."""
    blocks: list[Block] = []
    section = ""
    for family in families:
        if family.section != section:
            section = family.section
            blocks.append(Heading(text=section))
        for statistic in family.statistics:
            estimand = statistic.estimand
            moves = (
                f" It moves with {', '.join(estimand.moves_with)}." if estimand.moves_with else ""
            )
            reading = f" {estimand.reading}" if estimand.reading else ""
            conventions = _conventions(estimand.conventions)
            blocks += [
                Heading(text=f"{estimand.name}", level=3),
                Paragraph(
                    text=(
                        f"{estimand.title}. {estimand.question} Describes: {estimand.describes}."
                        f"{reading}{moves} Undefined when {estimand.undefined_when}. "
                        f"Source: {estimand.source.text}.",
                    )
                ),
                *([Paragraph(text=(f"Conventions: {conventions}",))] if conventions else []),
            ]
    blocks.append(Heading(text="Checks"))
    for check in sorted(checks, key=lambda c: (c.rank, c.name)):
        for code, what in check.codes.items():
            blocks += [
                Heading(text=code, level=3),
                Paragraph(text=(f"{what} It would miss: {check.would_miss}",)),
            ]
    return Document(
        title="Statistics and checks of voirdire",
        summary=("What each number asks, whom it describes, and when it cannot be said.",),
        blocks=tuple(blocks),
        estimates=(),
        findings=(),
        version=version,
    )
