"""The report of a comparison on common responses: findings first, then tables, then how it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace as replaced
from typing import Any

from voirdire.comparing import findings as sentences
from voirdire.comparing.findings import MOST_NAMED, Two, difference_in_words, minus, p_in_words
from voirdire.comparing.pairing import Pair
from voirdire.document import (
    Block,
    Cell,
    Column,
    Document,
    Figure,
    FindingBlock,
    Heading,
    Input,
    Kind,
    Paragraph,
    Paste,
    Table,
    Tone,
    cell,
    display_interval,
)
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, worst_first
from voirdire.labels import Labels
from voirdire.scene import Estimates, Scene
from voirdire.stats import moves
from voirdire.stats.comparison import FEWEST_DISCORDANT
from voirdire.wording import (
    Name,
    Text,
    counted,
    listed,
    percent,
    plural,
    say,
)

MOST_LISTED = 10  # responses named behind one change, in a table; all stand in the JSON report
MOST_CHANGED = 200  # kinds of changes in a readable report
MOST_LINES = 20
BANK = (
    "KR-20 describes the bank as scored by each of the two. It is no measure of a judge, and a change "
    "in it is none of the judge’s accuracy."
)


def of_pair(
    pair: Pair,
    scene: Scene,
    slices: Sequence[Scene],
    estimates: Estimates,
    changed: Sequence[Mapping[str, str]],
    version: str,
) -> Document:
    """The document of a comparison on common responses."""
    labels = pair.labels
    level = labels.options.level
    two = Two(estimates, pair.old.name, pair.new.name)
    made: list[Finding] = [*sentences.changed(two, scene)]
    if made and made[0].state is State.CLEAR:
        made += sentences.outcomes(
            two
        )  # all differences are 0: their intervals stand in the tables
    elif scene.bank is None:
        made += [*sentences.shares(two, scene, level), *sentences.outcomes(two)]
    else:
        made += [*sentences.gates(two, level), *sentences.outcomes(two)]
    made += sentences.noise(two)
    if not scene.gold:
        made.append(sentences.no_gold(two))
    elif made[0].state is not State.CLEAR:
        made += sentences.against_gold(two, scene.gold, level)
    made += sentences.few_clusters(two, scene)
    findings = tuple(worst_first(made))
    blocks: list[Block] = [Heading(text="Findings")]
    blocks += [FindingBlock(finding=f) for f in findings]
    blocks += _what_changed(two, scene, estimates, changed)
    blocks += _differences(two, scene)
    blocks += _by_slice(two, slices, estimates)
    blocks += _paper(pair, two, scene)
    blocks += _about(pair, scene)
    return Document(
        title=f"Comparison of {pair.new.name} with {pair.old.name}",
        summary=_summary(pair, scene),
        blocks=tuple(blocks),
        estimates=tuple(estimates.all),
        findings=findings,
        inputs=_inputs(pair),
        options=_options(labels, pair),
        version=version,
    )


def _inputs(pair: Pair) -> tuple[Input, ...]:
    return tuple(dict.fromkeys((*pair.old.inputs, *pair.new.inputs)))


def _options(labels: Labels, pair: Pair) -> dict[str, Any]:
    chosen = {k: v for k, v in labels.options.changed().items() if k != "reference"}
    return {"old": pair.old.given, "new": pair.new.given, **chosen}


def _summary(pair: Pair, scene: Scene) -> Text:
    labels = pair.labels
    clusters = labels.frame["cluster"].n_unique()
    held = (
        f" in {plural(clusters, 'cluster')}"
        if labels.clusters_declared
        else ", each its own cluster"
    )
    parts: list[str | Name] = [
        *say(
            "{n}{held}: old is {old}",
            n=plural(labels.responses, "common response"),
            held=held,
            old=Name(pair.old.given),
        ),
        " (",
        Name(pair.old.files),
        "), new is ",
        Name(pair.new.given),
        " (",
        Name(pair.new.files),
        ")",
    ]
    if scene.gold:
        parts += ["; gold is ", Name(scene.gold)]
    parts.append(". Differences are new less old.")
    return tuple(parts)


def _what_changed(
    two: Two, scene: Scene, estimates: Estimates, changed: Sequence[Mapping[str, str]]
) -> list[Block]:
    blocks: list[Block] = [Heading(text="Which labels changed")]
    if scene.grid is not None:
        used = [
            c
            for c in scene.classes
            if any(
                (e := two.own(d, g)) is not None and e.number
                for d in two.minus("label_share_minus_other")
                if d.key.class_ == c
                for g in (two.old, two.new)
            )
        ]
        if used and len(used) <= moves.MOST_CLASSES:
            blocks.append(_moves_table(two, used))
            of_two = replaced(
                scene,
                gold="",
                graders=tuple(g for g in scene.graders if g.name in (two.old, two.new)),
            )
            blocks += [
                _retitled(b, two)
                for b in moves.flow_figures(of_two, estimates)
                if isinstance(b, Figure)
            ][: moves.MOST_FIGURES]
        p = two.one("marginal_homogeneity_p")
        if p is not None and p.number is not None:
            blocks.append(
                Paragraph(
                    text=(
                        f"If both used every class equally often they would look so unequal with "
                        f"{p_in_words(p.number)} (cluster-robust). A large p is no proof of equal use.",
                    )
                )
            )
    else:
        blocks += _lines_table(two)
    blocks += _outcome_table(two)
    blocks += _responses(changed, scene)
    return blocks


def _retitled(block: Figure, two: Two) -> Figure:
    return replaced(
        block,
        title=block.title.replace("the reference’s", "the old").removesuffix(" under each grader"),
    )


def _moves_table(two: Two, used: Sequence[str]) -> Table:
    unread = {e.key.class_: e.number or 0.0 for e in two.minus("newly_unread")}
    rows = []
    for origin in used:
        cells: list[Cell] = [cell(Name(origin))]
        for to in used:
            if to == origin:
                e = two.one("kept", class_=origin)
            else:
                e = two.one("moved", class_=origin, to_class=to)
            cells.append(cell(e) if e is not None else cell(0.0, Kind.COUNT))
        total = two.one("kept", class_=origin)
        cells.append(cell(total.n if total is not None else 0.0, Kind.COUNT))
        if unread:
            cells.append(cell(unread.get(origin, 0.0), Kind.COUNT))
        rows.append(tuple(cells))
    totals: list[Cell] = [cell("new, all")]
    for to in used:
        d = next((x for x in two.minus("label_share_minus_other") if x.key.class_ == to), None)
        own = two.own(d, two.new) if d is not None else None
        count = (own.number or 0) * (own.n or 0) if own is not None else 0.0
        totals.append(cell(float(round(count, 6)), Kind.COUNT))
    n = two.one("changed")
    totals.append(cell(n.n if n is not None else None, Kind.COUNT))
    if unread:
        totals.append(cell(sum(unread.values()), Kind.COUNT))
    rows.append(tuple(totals))
    return Table(
        title="From old to new",
        columns=(
            Column(title="old", kind=Kind.NAME),
            *(Column(title=Name(c), kind=Kind.COUNT, help="new") for c in used),
            Column(title="old, all", kind=Kind.COUNT),
            *(
                [
                    Column(
                        title="newly unread", kind=Kind.COUNT, help="left out of the other columns"
                    )
                ]
                if unread
                else []
            ),
        ),
        rows=tuple(rows),
        note=say(
            "Rows are the classes of {old}, columns those of {new}, on the responses that both could be "
            "read on. On the diagonal nothing changed.",
            old=Name(two.old),
            new=Name(two.new),
        ),
    )


def _lines_table(two: Two) -> list[Block]:
    by_line: dict[str, list[float]] = {}
    n = 0.0
    for e in two.minus("line_changed"):
        held = by_line.setdefault(e.key.line, [0.0, 0.0])
        held[0 if e.key.to_class == "1" else 1] += e.number or 0
        n = e.n or n
    ranked = sorted(by_line.items(), key=lambda x: (-sum(x[1]), x[0]))
    if not ranked:
        return []
    return [
        Table(
            title="Lines with the most changed verdicts",
            columns=(
                Column(title="line", kind=Kind.NAME),
                Column(title="no → yes", kind=Kind.COUNT),
                Column(title="yes → no", kind=Kind.COUNT),
                Column(title="net", kind=Kind.COUNT),
            ),
            rows=tuple(
                (
                    cell(Name(line)),
                    cell(up, Kind.COUNT),
                    cell(down, Kind.COUNT),
                    cell(minus(f"{up - down:+,.0f}") if up != down else "0"),
                )
                for line, (up, down) in ranked[:MOST_LINES]
            ),
            note=(
                f"Of {plural(len(ranked), 'line')} with a change, on responses that both scored in full.",
            ),
        )
    ]


def _outcome_table(two: Two) -> list[Block]:
    found = [e for e in two.minus("outcome_moved") if not e.key.class_ == e.key.to_class == "label"]
    if not found:
        return []
    found.sort(key=lambda e: (-(e.number or 0), e.key.class_, e.key.to_class))
    return [
        Table(
            title="Calls that ended another way",
            columns=(
                Column(title="old"),
                Column(title="new"),
                Column(title="responses", kind=Kind.COUNT),
            ),
            rows=tuple(
                (
                    cell(e.key.class_.replace("_", " ")),
                    cell(e.key.to_class.replace("_", " ")),
                    cell(e),
                )
                for e in found
            ),
            note=("Only a label is a class: none of these counts in any rate.",),
        )
    ]


def _responses(changed: Sequence[Mapping[str, str]], scene: Scene) -> list[Block]:
    if not changed:
        return []
    lines = scene.bank is not None
    groups: dict[tuple[str, str], list[str]] = {}
    for row in changed:
        name = f"{row['response']} · {row['line']}" if lines else row["response"]
        groups.setdefault((row["old"], row["new"]), []).append(name)
    ranked = sorted(groups.items(), key=lambda g: (-len(g[1]), g[0]))
    blocks: list[Block] = [
        Table(
            title="The responses behind the changes",
            columns=(
                Column(title="old", kind=Kind.NAME),
                Column(title="new", kind=Kind.NAME),
                Column(title="n", kind=Kind.COUNT),
                Column(title="the first ones"),
            ),
            rows=tuple(
                (
                    cell(Name(old or "–")),
                    cell(Name(new or "–")),
                    cell(float(len(names)), Kind.COUNT),
                    cell(listed(names, most=MOST_LISTED)),
                )
                for (old, new), names in ranked[:MOST_CHANGED]
            ),
            note=(
                "All of them stand in the JSON report (compared.changes) and in the file of --changes. "
                "⟨ ⟩ marks a call that gave no label.",
            ),
        )
    ]
    return blocks


def _differences(two: Two, scene: Scene) -> list[Block]:
    shown = [
        ("label_share_minus_other", "share of "),
        ("rate_minus_other", "rate "),
        ("yes_share_minus_other", "lines met"),
        ("pass_rate_minus_other", "pass rate"),
        ("read_share_minus_other", "read"),
    ]
    made: list[Block] = [Heading(text="Differences on the common responses")]
    table = _table_of(two, shown, "New less old")
    made += table
    if table:
        made.append(_dots(two, [s for s, _ in shown], scene))
    if scene.gold:
        of_gold = [
            ("agreement_minus_other", "agreement"),
            ("cohen_kappa_minus_other", "Cohen’s kappa"),
            ("rate_false_accept_minus_other", "false accept, "),
            ("rate_false_reject_minus_other", "false reject, "),
            ("element_error_minus_other", "element error"),
            ("false_accept_minus_other", "false accept"),
            ("false_reject_minus_other", "false reject"),
            ("gate_accuracy_minus_other", "gate accuracy"),
        ]
        made.append(Heading(text="Against gold"))
        made += _table_of(two, of_gold, "Each against gold, new less old")
        made.append(
            Paragraph(
                text=say(
                    "On the responses that {gold} and both could be read on.", gold=Name(scene.gold)
                )
            )
        )
    bank = _table_of(
        two, [("kr20_minus_other", "KR-20")], "A coefficient of the bank, new less old"
    )
    if bank:
        made += [Heading(text="What describes the bank"), *bank, Paragraph(text=(BANK,))]
    return made


def _bank_table(two: Two, scene: Scene) -> list[Block]:
    found = two.minus("kr20_minus_other")
    if not found:
        return []
    e = found[0]
    gold = two.estimates.get("kr20", grader=scene.gold, slice=two.slice) if scene.gold else None
    columns = [Column(title="what")]
    cells = [cell("KR-20")]
    for title, value in (
        ("old’s verdicts", two.own(e, two.old)),
        ("new’s verdicts", two.own(e, two.new)),
        ("difference", e),
        *((("gold’s verdicts", gold),) if gold is not None else ()),
    ):
        columns.append(Column(title=title, kind=Kind.COEFFICIENT))
        cells.append(cell(value))
    columns.append(Column(title="n", kind=Kind.COUNT))
    cells.append(cell(e.n, Kind.COUNT))
    return [
        Heading(text="What describes the bank"),
        Table(title="A coefficient of the bank", columns=tuple(columns), rows=(tuple(cells),)),
        Paragraph(text=(BANK,)),
    ]


def _table_of(two: Two, shown: Sequence[tuple[str, str]], title: str) -> list[Block]:
    rows = []
    tested = False
    for statistic, word in shown:
        for e in two.minus(statistic):
            what: list[str | Name] = [word]
            if e.key.class_:
                what.append(Name(e.key.class_))
            if e.key.cut:
                what.append(f", cut {e.key.cut}")
            p = two.p(e)
            tested = tested or p is not None
            rows.append(
                (
                    cell(tuple(what)),
                    cell(e),
                    cell(p_in_words(p).removeprefix("p ").removeprefix("= ") or "–"),
                    cell(two.own(e, two.old)),
                    cell(two.own(e, two.new)),
                    cell(e.n, Kind.COUNT),
                )
            )
    if not rows:
        return []
    kind = Kind.SHARE
    return [
        Table(
            title=title,
            columns=(
                Column(title="what"),
                Column(title="difference", kind=Kind.POINTS, help="percentage points"),
                Column(title="p (Holm)", help="over the differences of this table"),
                Column(title="old", kind=kind),
                Column(title="new", kind=kind),
                Column(title="n", kind=Kind.COUNT),
            ),
            rows=tuple(rows),
            note=(
                "Differences of shares in percentage points. A dash for p: the row says what another one "
                "says, or is no share."
                if tested
                else "",
            ),
        )
    ]


def _dots(two: Two, statistics: Sequence[str], scene: Scene) -> Figure:
    drawn: list[tuple[dict[str, Any], Estimate]] = []
    for statistic in statistics:
        for e in two.minus(statistic):
            if e.number is None or statistic == "read_share_minus_other":
                continue
            if statistic == "rate_minus_other" and two.p(e) is None:
                continue  # it says what its class says
            name = e.key.class_ or (f"cut {e.key.cut}" if e.key.cut else "lines met")
            interval = e.interval
            drawn.append(
                (
                    {
                        "what": name,
                        "value": e.number,
                        "low": interval.low if interval else None,
                        "high": interval.high if interval else None,
                        "rate": statistic == "rate_minus_other",
                    },
                    e,
                )
            )
    alt: list[str | Name] = ["Dots on one axis in percentage points, one a difference: "]
    for i, (row, e) in enumerate(drawn[:24]):
        alt += ["; " if i else "", Name(row["what"]), f" {difference_in_words(e)}"]
    return Figure(
        name="differences",
        title="New less old, with intervals",
        data={"old": two.old, "new": two.new, "rows": [r for r, _ in drawn]},
        alt=(*alt, "."),
        caption=(
            "Right of the line the new one gives it more often. An interval that holds 0 is no proof that "
            "nothing changed.",
        ),
    )


def _by_slice(two: Two, slices: Sequence[Scene], estimates: Estimates) -> list[Block]:
    if not slices:
        return []
    rows = []
    for one in slices:
        part = Two(estimates, two.old, two.new, one.slice)
        changed = part.one("changed")
        for s in ("rate_minus_other", "label_share_minus_other", "yes_share_minus_other"):
            found = part.minus(s)
            if found:
                break
        for e in found[:MOST_NAMED]:
            rows.append(
                (
                    cell(Name(one.slice)),
                    cell(changed),
                    cell(Name(e.key.class_ or "lines met")),
                    cell(part.own(e, two.old)),
                    cell(part.own(e, two.new)),
                    cell(e),
                    cell(e.n, Kind.COUNT),
                )
            )
    return [
        Heading(text="By part of the responses"),
        Table(
            title="In each part",
            columns=(
                Column(title="part", kind=Kind.NAME),
                Column(title="changed", kind=Kind.SHARE),
                Column(title="what", kind=Kind.NAME),
                Column(title="old", kind=Kind.SHARE),
                Column(title="new", kind=Kind.SHARE),
                Column(title="difference", kind=Kind.POINTS),
                Column(title="n", kind=Kind.COUNT),
            ),
            rows=tuple(rows),
            note=("Among many parts some differences are large by chance alone.",),
        ),
    ]


def _paper(pair: Pair, two: Two, scene: Scene) -> list[Block]:
    changed = two.one("changed")
    n = changed.n if changed is not None else 0
    lines: list[Text] = [
        say(
            "{new} ({f2}) was compared with {old} ({f1}) on {n} common responses, both in one tally.",
            new=Name(pair.new.given),
            old=Name(pair.old.given),
            f1=Name(pair.old.files),
            f2=Name(pair.new.files),
            n=pair.labels.responses,
        )
    ]
    if changed is not None and changed.number is not None:
        what = "verdicts" if scene.bank is not None else "labels"
        lines.append(
            (
                f"Changed {what}: {percent(changed.number)} "
                f"{display_interval(cell(changed))} of {counted(n or 0)}.",
            )
        )
    rates = {e.key.class_ for e in two.minus("rate_minus_other")}
    for s in ("rate_minus_other", "label_share_minus_other", "pass_rate_minus_other"):
        for e in two.minus(s)[:12]:
            if e.number is None or (s == "label_share_minus_other" and two.p(e) is None):
                continue
            if s == "label_share_minus_other" and e.key.class_ in rates:
                continue
            what = {"rate_minus_other": "Rate", "label_share_minus_other": "Share"}.get(
                s, "Pass rate"
            )
            lines.append(
                say(
                    "{what} of {name}, new less old: {d}.",
                    what=what,
                    name=Name(e.key.class_) if e.key.class_ else f"cut {e.key.cut}",
                    d=difference_in_words(e),
                )
            )
    for e in (*two.minus("agreement_minus_other"), *two.minus("element_error_minus_other")):
        if e.number is not None:
            lines.append(
                say(
                    "{what}, new less old: {d}.",
                    what="Agreement with gold"
                    if e.statistic == "agreement_minus_other"
                    else "Element error",
                    d=difference_in_words(e),
                )
            )
    return [Heading(text="For the paper"), Paste(title="Lines for the paper", lines=tuple(lines))]


def _about(pair: Pair, scene: Scene) -> list[Block]:
    labels = pair.labels
    options = labels.options
    blocks: list[Block] = [Heading(text="How this was made")]
    for side, names in ((pair.old, pair.only_old), (pair.new, pair.only_new)):
        if names:
            blocks.append(
                Paragraph(
                    tone=Tone.NOTE,
                    text=say(
                        "{n} only with {who} and not compared: {names}.",
                        n=plural(len(names), "response is", "responses are"),
                        who=Name(side.name),
                        names=listed(names),
                    ),
                )
            )
    method = (
        f"percentiles of the cluster bootstrap ({options.replicates:,} replicates, seed {options.seed})"
        if options.interval == "bootstrap"
        else "the delete-one-cluster jackknife with t, on Fisher’s z for differences of shares"
    )
    blocks.append(
        Paragraph(
            text=(
                f"Old and new stand in one tally by cluster, so the interval of a difference knows how they "
                f"move together. Intervals at {percent(options.level, 0)} are {method}. Where fewer than "
                f"{FEWEST_DISCORDANT} clusters hold a change (or as few hold none) a difference of shares "
                "has the intervals of what was gained and what was lost put together (MOVER), whose width "
                "is never zero; the results name the method of each. P-values flip the signs of the "
                "clusters’ net changes (McNemar’s mid-p where every response is its own cluster), adjusted "
                "by Holm within a table.",
            )
        )
    )
    blocks += [Paragraph(text=n, tone=Tone.NOTE) for n in (*pair.notices, *labels.notices)]
    return blocks
