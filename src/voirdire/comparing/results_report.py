"""The report of a comparison of results alone: what differs, what that costs, and what to run instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from voirdire.comparing.findings import MOST_NAMED, difference_in_words, holds_zero
from voirdire.comparing.published import METHOD, OF_GRADER, Results
from voirdire.document import (
    Block,
    Column,
    Document,
    FindingBlock,
    Heading,
    Kind,
    Paragraph,
    Paste,
    Table,
    Tone,
    cell,
    display,
)
from voirdire.estimand import Scale
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, worst_first
from voirdire.options import Options
from voirdire.scene import Estimates
from voirdire.wording import (
    Name,
    Text,
    listed,
    say,
)

# Options that change what a number is of.
_SAME = (
    *("scale", "off_scale", "gold", "cut", "rate", "map", "failed", "vote_rule", "refusal_like"),
)
# Options of an audit that voirdire compare takes too, by how they are written.
_PAIRS = ("map", "failed")
_MEMBERS = ("rate",)
_REPEATED = ("missing", "by", "cut")
_TEXTS = (
    *("layout", "response", "grader", "label", "cluster", "question", "vote", "phrasing", "weight"),
    *("weight_kind", "stratum", "population", "line", "line_prefix", "step", "outcome", "gold"),
    *("scale", "off_scale", "refusal_like", "vote_rule", "encoding"),
)
_NOT_LOOK = ("refusal_like", "vote_rule", "rate", "by", "cut")  # that voirdire look does not take


def of_results(
    old: Results,
    new: Results,
    names: tuple[str, str],
    estimates: Estimates,
    are_results: tuple[bool, ...],
    options: Options,
    version: str,
) -> Document:
    """The document of a comparison of what earlier audits wrote."""
    found = [e for e in estimates.all if e.statistic.endswith("_minus_other")]
    findings = tuple(
        worst_first(_published_findings(found, estimates, names, new.gold, _unlike(old, new)))
    )
    blocks: list[Block] = [Heading(text="Findings")]
    blocks += [FindingBlock(finding=f) for f in findings]
    blocks.append(Heading(text="What results alone cost"))
    blocks += _cost(old, new, are_results)
    blocks.append(Heading(text="Differences"))
    blocks.append(_published_table(found, estimates, names))
    blocks.append(Heading(text="How this was made"))
    blocks.append(
        Paragraph(
            text=(
                "Differences are new less old of the values as written. Their intervals are made of the two "
                "intervals as of independent samples (MOVER: Newcombe 1998; Zou and Donner 2008), which the "
                f"results call {METHOD}. Counts have no interval.",
            )
        )
    )
    blocks += [Paragraph(text=n, tone=Tone.NOTE) for n in _apart(old, new)]
    return Document(
        title=f"Comparison of {names[1]} with {names[0]}, from results",
        summary=say(
            "Results of {old} ({f1}) and {new} ({f2}), taken as independent samples. Differences are new "
            "less old.",
            old=Name(old.grader),
            f1=Name(old.file.name),
            new=Name(new.grader),
            f2=Name(new.file.name),
        ),
        blocks=tuple(blocks),
        estimates=tuple(estimates.all),
        findings=findings,
        inputs=tuple(dict.fromkeys((old.file, new.file))),
        options={"old": old.grader, "new": new.grader, **options.changed()},
        version=version,
    )


def _published_findings(
    found: Sequence[Estimate],
    estimates: Estimates,
    names: tuple[str, str],
    gold: str,
    unlike: Text,
) -> Iterable[Finding]:
    main = [
        e
        for e in found
        if not e.key.slice
        and not e.key.line
        and e.estimand.scale is not Scale.NONE
        and e.number is not None
        and e.interval is not None
        and e.statistic.removesuffix("_minus_other")
        in (
            *OF_GRADER,
            "agreement",
            "element_error",
            "false_accept",
            "false_reject",
            "gate_accuracy",
            "pass_rate",
        )
    ]
    apart = [e for e in main if not holds_zero(e)]
    within = [e for e in main if holds_zero(e)]
    for e in apart:
        own = [_own_of(e, estimates, g) for g in (names[1], names[0])]
        shares = " against ".join(display(cell(x)) for x in own if x is not None)
        yield Finding(
            code="results_differ",
            state=State.FOUND,
            sentence=say(
                "{what} is {more} with {new} than with {old}: {shares} ({difference}, as of independent "
                "samples, one of {many} looked at).{unlike}",
                unlike=unlike,
                what=_named(e),
                more="higher" if (e.number or 0) > 0 else "lower",
                new=Name(names[1]),
                old=Name(names[0]),
                shares=shares,
                difference=difference_in_words(e),
                many=len(main),
            ),
            grader=names[1],
            other=names[0],
            class_=e.key.class_,
            cut=e.key.cut,
            evidence=(e, *(x for x in own if x is not None)),
            weight=abs(e.number or 0),
        )
    if within:
        parts: list[str | Name] = ["The intervals hold 0 for "]
        for i, e in enumerate(within[:MOST_NAMED]):
            parts += ["; " if i else "", *_named(e, first=False), f" ({difference_in_words(e)})"]
        if len(within) > MOST_NAMED:
            parts.append(f" and {len(within) - MOST_NAMED} more")
        parts.append(
            ". That is no proof that nothing changed: every value within an interval fits what was written, "
            "and on the same responses, paired, less may be enough to be seen."
        )
        yield Finding(
            code="results_differ",
            state=State.CANNOT_TELL,
            sentence=tuple(parts),
            grader=names[1],
            other=names[0],
            evidence=tuple(within),
        )
    if not gold or not any(e.statistic.startswith(("agreement", "element")) for e in found):
        yield Finding(
            code="agreement_with_gold_changed",
            state=State.NOT_APPLICABLE,
            sentence=say(
                "The two have no result against gold in common, so nothing here says which of {new} and "
                "{old} is right more often.",
                new=Name(names[1]),
                old=Name(names[0]),
            ),
            grader=names[1],
            other=names[0],
        )


def _unlike(old: Results, new: Results) -> Text:
    """What a difference may come from beside the graders: to stand with each that is found."""
    differs = [
        name.replace("_", "-")
        for name in _SAME
        if old.options is not None
        and new.options is not None
        and old.options.get(name) != new.options.get(name)
    ]
    hashes = [{i.sha256 for i in side.inputs if i.sha256} for side in (old, new)]
    if all(hashes) and hashes[0] != hashes[1]:
        differs.append("the files that they read")
    if not differs:
        return ()
    return say(
        " The audits differ in {what}: part of it may come from that.",
        what=listed(differs, most=12),
    )


def _own_of(e: Estimate, estimates: Estimates, grader: str) -> Estimate | None:
    base = e.statistic.removesuffix("_minus_other")
    for x in estimates.of(base, grader=grader):
        if (x.key.class_, x.key.line, x.key.cut, x.key.slice) == (
            e.key.class_,
            e.key.line,
            e.key.cut,
            e.key.slice,
        ):
            return x
    return None


def _named(e: Estimate, *, first: bool = True) -> Text:
    title = e.estimand.title.removesuffix(": the grader less the other")
    if not first:
        title = title[:1].lower() + title[1:]
    parts: list[str | Name] = [title]
    if e.key.class_:
        parts += [" ", Name(e.key.class_)]
    if e.key.cut:
        parts.append(f" at cut {e.key.cut}")
    return tuple(parts)


def _cost(old: Results, new: Results, are_results: tuple[bool, ...]) -> list[Block]:
    both = all(are_results)
    blocks: list[Block] = [
        Paragraph(
            text=(
                ("Only results" if both else "The labels of one side only")
                + " are at hand, so the two are taken as independent samples and nothing is known of single "
                "responses: not which labels changed, nor where to. If both graded the same responses, "
                "pairing them would make the intervals narrower wherever the two mostly agree, and wider "
                "only where they move against each other.",
            )
        )
    ]
    shared = {i.sha256 for i in old.inputs if i.sha256} & {i.sha256 for i in new.inputs if i.sha256}
    # What one side alone read: beside a shared file of gold, say, these are the labels of its grader.
    own = [tuple(i for i in side.inputs if i.sha256 not in shared) for side in (old, new)]
    same = next((i for i in old.inputs if i.sha256 in shared), None)
    if same is not None and old.grader == new.grader and not any(own):
        return [
            *blocks,
            Paragraph(
                text=say(
                    "Both sides are {grader} in the same file {name}: these are the same labels, and "
                    "whatever differs comes from the options of the two audits. To compare it, name "
                    "another grader of the file, or results of other labels.",
                    grader=Name(old.grader),
                    name=Name(same.name),
                )
            ),
            Paste(
                title="Where the labels are at hand, see which graders there are",
                lines=(
                    say(
                        "voirdire look {file}{flags}",
                        file=Name(_quoted(same.name)),
                        flags=_flags(old, new, leave=_NOT_LOOK),
                    ),
                ),
                command=True,
            ),
        ]
    command: Text
    if same is not None and old.grader != new.grader:
        blocks.append(
            Paragraph(
                text=say(
                    "Both audits read the same file {name}: its responses can be paired.",
                    name=Name(same.name),
                )
            )
        )
        command = say(
            "voirdire compare {file} --old {old} --new {new}{flags}",
            file=Name(_quoted(same.name)),
            old=Name(_quoted(old.grader)),
            new=Name(_quoted(new.grader)),
            flags=_flags(old, new),
        )
    else:
        files = [
            " ".join(_quoted(i.name) for i in (inputs or side.inputs)[:1]) or word
            for inputs, side, word in (
                (own[0], old, "OLD_LABELS"),
                (own[1], new, "NEW_LABELS"),
            )
        ]
        command = say(
            "voirdire compare {one} {two}{flags}",
            one=Name(files[0]),
            two=Name(files[1]),
            flags=_flags(old, new),
        )
    blocks.append(
        Paste(title="Where the labels are at hand, run instead", lines=(command,), command=True)
    )
    return blocks


def _flags(old: Results, new: Results, *, leave: Sequence[str] = ()) -> Text:
    """The options that both audits were made with, as they are given to a comparison."""
    parts: list[str | Name] = []
    a, b = old.options or {}, new.options or {}
    for name in (*_TEXTS, *_PAIRS, *_MEMBERS, *_REPEATED):
        value = a.get(name)
        if value is None or value != b.get(name) or name in leave:
            continue
        for word in _words(name, value):
            parts += [f" --{name.replace('_', '-')} ", Name(_quoted(word))]
    return tuple(parts)


def _words(name: str, value: Any) -> list[str]:
    """An option's value in an audit.json as the words that stand after its flag."""
    if name in _TEXTS:
        given = value if isinstance(value, list) else [value]
        return [",".join(str(v).replace(",", "\\,") for v in given)]
    if not isinstance(value, list):
        return []
    if name in _REPEATED:
        return [str(v) for v in value]
    pairs = [v for v in value if isinstance(v, list) and len(v) == 2]
    return [f"{k}={'+'.join(map(str, v)) if isinstance(v, list) else v}" for k, v in pairs]


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


def _apart(old: Results, new: Results) -> list[Text]:
    """What the two audits did otherwise: options, files, versions, and results on one side only."""
    notes: list[Text] = []
    if old.options is None or new.options is None:
        notes.append(
            (
                "A results table does not say with which options it was made: whether scale, cut and gold "
                "were the same cannot be checked. An audit.json says it.",
            )
        )
    else:
        for name in (*_SAME, "level", "interval"):
            values = [side.options.get(name) if side.options else None for side in (old, new)]
            if values[0] != values[1]:
                notes.append(
                    say(
                        "The option {name} differs: old {a}, new {b}. Part of a difference may come from it.",
                        name=name.replace("_", "-"),
                        a=Name(_plain(values[0])),
                        b=Name(_plain(values[1])),
                    )
                )
    hashes = [{i.sha256 for i in side.inputs if i.sha256} for side in (old, new)]
    if all(hashes) and hashes[0] != hashes[1]:
        notes.append(
            say(
                "The audits read different files: old {a}, new {b}.",
                a=listed(f"{i.name} ({i.sha256[:12]})" for i in old.inputs),
                b=listed(f"{i.name} ({i.sha256[:12]})" for i in new.inputs),
            )
        )
    if old.version and new.version and old.version != new.version:
        notes.append(
            say(
                "They were written by different versions of voirdire: old {a}, new {b}.",
                a=Name(old.version),
                b=Name(new.version),
            )
        )
    for side, other, word in ((old, new, "old"), (new, old, "new")):
        alone = sorted({k[0] for k in side.rows} - {k[0] for k in other.rows})
        if alone:
            notes.append(
                say("Only {word} has {names}: not compared.", word=word, names=listed(alone))
            )
    return notes


def _plain(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, list | tuple):
        return ", ".join(_plain(v) for v in value)
    return str(value)


def _published_table(
    found: Sequence[Estimate], estimates: Estimates, names: tuple[str, str]
) -> Table:
    rows = []
    for e in found:
        if e.key.line:
            continue
        own = [_own_of(e, estimates, g) for g in names]
        rows.append(
            (
                cell(_named(e)),
                cell((Name(e.key.slice),) if e.key.slice else "–"),
                cell(e),
                cell(own[0]),
                cell(own[1]),
                cell(own[0].n if own[0] is not None else None, Kind.COUNT),
                cell(own[1].n if own[1] is not None else None, Kind.COUNT),
            )
        )
    # The whole first, then slices, which a brief report cuts.
    rows.sort(key=lambda r: display(r[1]) != "–")
    return Table(
        title="New less old",
        columns=(
            Column(title="what"),
            Column(title="where"),
            Column(title="difference", kind=Kind.POINTS, help="of shares: percentage points"),
            Column(title="old", kind=Kind.SHARE),
            Column(title="new", kind=Kind.SHARE),
            Column(title="n old", kind=Kind.COUNT),
            Column(title="n new", kind=Kind.COUNT),
        ),
        rows=tuple(rows),
        note=(
            "Differences of shares in percentage points. KR-20 describes the bank, not a judge.",
        ),
    )
