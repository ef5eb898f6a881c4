"""A card as a document to read: one page, made of nothing but the card's content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from voirdire.cards.uses import title
from voirdire.document import (
    Block,
    Cell,
    Column,
    Document,
    Heading,
    Input,
    Kind,
    Paragraph,
    Table,
    Tone,
    cell,
    display,
    display_interval,
)
from voirdire.wording import Name, Text, counted, listed, plain, plural, say

__all__ = ["document"]

# The rows of the results that stand on the page, by what they describe; the others are in the JSON card.
HEADLINES = (
    *("outcome_count", "label_count", "rate", "collapse_ratio", "agreement", "cohen_kappa"),
    *("agreement_minus_constant", "best_constant_agreement", "self_disagreement", "flip_rate"),
    *("dependability_single", "element_error", "false_accept", "false_reject", "gate_accuracy"),
    *("gate_accuracy_unparsed_wrong", "gate_false_accept", "gate_false_reject"),
    *("pass_rate", "pass_rate_minus_gold", "leniency", "kr20"),
    *("phi_lambda", "livingston_lewis_accuracy"),
    *("rate_max_over_min", "rate_range"),
)
SECTIONS = {
    "of_the_grader": ("Of the grader", "Says something of the grader itself."),
    "of_grader_and_bank": (
        "Of grader and bank together",
        "Holds for this grader on these responses, and moves with either.",
    ),
    "of_the_bank_only": (
        "Of the bank only: not a property of the grader",
        "Moves with the responses, and does not say how well the grader grades.",
    ),
    "of_the_panel": (
        "Of all graders together",
        "What the choice of grader does on these responses.",
    ),
}
STATUSES = {
    "not_allowed": ("Not allowed", "▲", "because"),
    "unknown": ("Unknown", "?", "why"),
    "allowed": ("Allowed as far as measured", "○", "on condition"),
}
_WORDS = {
    "prompt_hash": "prompt hash",
    "system_fingerprint": "system fingerprint",
    "made_from": "made from",
    "other_facts": "other facts",
    "clusters_are": "clusters are",
    "off_scale": "outside the order",
    "gold_made_from": "gold is made from",
    "gold_is": "what gold is",
    "other_graders": "other graders",
}
_STATES = {
    "found": "▲ found",
    "cannot_tell": "? cannot tell",
    "not_applicable": "– not applicable",
    "clear": "○ clear",
}
_TRIGGERS = {
    "silent_update": "silent update",
    "new_bank": "bank",
    "class_mix": "mix",
}
MOST_ROWS = 24  # of one table of results


def document(card: Mapping[str, Any], texts: Mapping[str, Text]) -> Document:
    """The page. ``texts`` are sentences of the card with the names in them kept apart, if known."""
    made_with = card["made_with"]
    options = made_with["options"]
    return Document(
        title=f"Grader card: {card['grader']['name']}",
        summary=_summary(card),
        blocks=tuple(_blocks(card, texts)),
        estimates=(),
        findings=(),
        inputs=tuple(
            Input(
                name=i["name"],
                sha256=i["sha256"] if isinstance(i["sha256"], str) else "",
                rows=i["rows"] if isinstance(i["rows"], int) else 0,
            )
            for i in card["bank"]["inputs"]
        ),
        options=options if _known(options) else {},
        version=made_with["voirdire"],
    )


def _known(line: Any) -> bool:
    return not (isinstance(line, Mapping) and ({"unknown", "not_applicable"} & line.keys()))


def _summary(card: Mapping[str, Any]) -> Text:
    numbers = {status: sum(u["status"] == status for u in card["uses"]) for status in STATUSES}
    expires = card["expires"]
    until: Text = (
        (f"It expires on {expires}.",)
        if isinstance(expires, str)
        else ("No expiry was set: nothing but the triggers below ends it.",)
        if "unknown" in expires
        else ("It does not expire.",)
    )
    return (
        *say(
            "{n} of {grader}: {no} not allowed, {open} unknown, {yes} allowed on condition. ",
            n=plural(len(card["uses"]), "use"),
            grader=Name(card["grader"]["name"]),
            no=numbers["not_allowed"],
            open=numbers["unknown"],
            yes=numbers["allowed"],
        ),
        *until,
    )


def _blocks(card: Mapping[str, Any], texts: Mapping[str, Text]) -> Iterable[Block]:
    yield Heading(text="What it may be used for")
    for status in STATUSES:
        uses = [u for u in card["uses"] if u["status"] == status]
        if uses:
            yield _uses(card, status, uses)
    yield Paragraph(
        tone=Tone.NOTE,
        text=(
            "Each line follows from the findings and results named in it. Allowed means that nothing "
            "measured here speaks against it, and never that the grader is right.",
        ),
    )
    yield Heading(text="What was found")
    yield from _findings(card, texts)
    yield Heading(text="Who the grader is")
    yield _lines("Grader", card["grader"])
    yield Heading(text="What it was measured on")
    yield _lines("Bank", card["bank"], ("inputs", "mix", "rates", "ordered"))
    yield Heading(text="What was measured")
    yield from _measured(card)
    yield Heading(text="When to measure again")
    yield Table(
        title="Any of these ends the card",
        columns=(
            Column(title="what"),
            Column(title="when"),
            Column(title="now", kind=Kind.NAME),
        ),
        rows=tuple(
            (
                cell(_TRIGGERS.get(r["trigger"], r["trigger"])),
                cell(r["when"]),
                cell(_said(r["now"])),
            )
            for r in card["recheck"]
        ),
        note=() if not isinstance(card["dated"], str) else (f"The card is dated {card['dated']}.",),
    )


# --- uses ---------------------------------------------------------------------------------------


def _uses(card: Mapping[str, Any], status: str, uses: Sequence[Mapping[str, Any]]) -> Table:
    """The uses of a status; what one use is repeated over stands in one row where the reasons are the same."""
    name, sign, why = STATUSES[status]
    alike: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for use in uses:
        alike.setdefault((use["use"], plain(_because(use, status))), []).append(use)
    return Table(
        title=f"{sign} {name}",
        columns=(Column(title="use"), Column(title=why)),
        rows=tuple(
            (
                cell(_title(many) + (() if status == "unknown" else _values(card, many))),
                cell(_because(many[0], status)),
            )
            for many in alike.values()
        ),
    )


def _title(uses: Sequence[Mapping[str, Any]]) -> Text:
    """A use in words, with all that it is repeated over."""
    try:
        said = title(uses[0]["use"], *(u["scope"] for u in uses))
        alone = all(plain(title(u["use"], u["scope"])) == u["title"] for u in uses)
    except KeyError:  # a use of another version of voirdire
        alone = False
    if alone:
        return said
    return ("; ".join(u["title"] for u in uses),)


def _values(card: Mapping[str, Any], uses: Sequence[Mapping[str, Any]]) -> Text:
    """What the uses rest on, each with its value and interval, to stand after their title."""
    parts: list[Any] = []
    for use in uses:
        row = _resting(card, use)
        if row is None:
            continue
        shown = _number(row)
        scope = use["scope"]
        of = scope.get("rate", scope.get("cut", ""))
        parts += ["; " if parts else f". {row['title']}: "]
        if len(uses) > 1 and of:
            parts += [Name(of), " "]
        unit = " points" if shown.kind is Kind.POINTS else ""
        parts.append(f"{display(shown)}{unit} {display_interval(shown)}".strip())
    return tuple(parts)


def _resting(card: Mapping[str, Any], use: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The row of the results that a use rests on, where one number says it."""
    reference = next((b for b in use["because"] if "result" in b), None)
    if (
        reference is None
        or "slice" in reference
        or use["use"] in ("stand_for_gold", "line_verdict")
    ):
        return None
    for rows in card["measured"].values():
        for row in rows if isinstance(rows, list) else ():
            same = all(row.get(k) == reference.get(k) for k in _SCOPE)
            if row["statistic"] == reference["result"] and same and "grader" not in row:
                found: Mapping[str, Any] = row
                return found
    return None


_SCOPE = ("other", "class", "line", "cut", "slice")


def _because(use: Mapping[str, Any], status: str) -> Text:
    """The rows that make the status, each sentence once, with the findings that it stands on."""
    meant = {
        "not_allowed": ("forbids",),
        "unknown": ("leaves_open",),
        "allowed": ("sets_a_condition",),
    }[status]
    by_sentence: dict[str, list[str]] = {}
    for row in use["because"]:
        if row["effect"] in meant and "sentence" in row:
            by_sentence.setdefault(row["sentence"], []).append(_source(row))
    parts: list[str] = []
    for sentence, sources in by_sentence.items():
        told = ", ".join(dict.fromkeys(s for s in sources if s))
        parts.append(sentence.removesuffix(".") + (f" ({told})." if told else "."))
    return (" ".join(parts),)


def _source(row: Mapping[str, Any]) -> str:
    if "finding" not in row:
        return ""
    strength = f", {row['strength']}" if "strength" in row else ""
    return f"{row['finding']}{strength}"


# --- findings -----------------------------------------------------------------------------------


def _findings(card: Mapping[str, Any], texts: Mapping[str, Text]) -> Iterable[Block]:
    findings = card["findings"]
    if not _known(findings):
        yield Paragraph(text=_said(findings))
        return
    loud = [f for f in findings if f["state"] in ("found", "cannot_tell")]
    quiet = [f for f in findings if f["state"] not in ("found", "cannot_tell")]
    if loud:
        yield Table(
            title="Found, and what cannot be told",
            columns=(Column(title="state"), Column(title="finding")),
            rows=tuple((cell(_state(f)), cell(_sentence(f, texts))) for f in loud),
        )
    if quiet:
        codes = dict.fromkeys(f"{f['code']} {_STATES[f['state']].split(' ', 1)[1]}" for f in quiet)
        yield Paragraph(text=(f"Besides: {', '.join(codes)}.",), tone=Tone.NOTE)


def _state(finding: Mapping[str, Any]) -> str:
    parts = [_STATES[finding["state"]], finding.get("strength", "")]
    parts.append("exploratory" if finding["exploratory"] else "")
    return " · ".join(p for p in parts if p)


def _sentence(finding: Mapping[str, Any], texts: Mapping[str, Text]) -> Text:
    said: list[Any] = [f"{finding['code']}: "]
    said += texts.get(finding["sentence"], (finding["sentence"],))
    if "next_step" in finding:
        said.append(" → ")
        said += texts.get(finding["next_step"], (finding["next_step"],))
    return tuple(said)


# --- lines --------------------------------------------------------------------------------------


def _lines(name: str, lines: Mapping[str, Any], without: Sequence[str] = ()) -> Table:
    """The lines that say something, those unknown for one reason together; below, what does not apply."""
    shown: dict[str, tuple[list[str], Text]] = {}
    idle = []
    for line, value in lines.items():
        if line in without:
            continue
        if isinstance(value, Mapping) and "not_applicable" in value:
            idle.append(_word(line))
            continue
        alike = isinstance(value, Mapping) and "unknown" in value
        shown.setdefault(value["unknown"] if alike else line, ([], _said(value)))[0].append(
            _word(line)
        )
    return Table(
        title=name,
        columns=(Column(title="line"), Column(title="value", kind=Kind.NAME)),
        rows=tuple((cell(", ".join(words)), cell(said)) for words, said in shown.values()),
        note=(f"Does not apply: {', '.join(idle)}.",) if idle else (),
    )


def _word(line: str) -> str:
    return _WORDS.get(line, line.replace("_", " "))


def _said(value: Any) -> Text:
    """A line in words."""
    if isinstance(value, Mapping):
        if "unknown" in value and len(value) == 1:
            return (f"unknown: {value['unknown']}",)
        if "not_applicable" in value and len(value) == 1:
            return (f"not applicable: {value['not_applicable']}",)
        parts: list[Any] = []
        for i, (name, one) in enumerate(value.items()):
            parts += ["; " if i else "", Name(str(name)), ": ", *_said(one)]
        return tuple(parts)
    if isinstance(value, list):
        return listed([plain(_said(v)) for v in value], most=12)
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    if isinstance(value, int):
        return (counted(value),)
    return (Name(str(value)),)


# --- results ------------------------------------------------------------------------------------


def _number(row: Mapping[str, Any]) -> Cell:
    value, interval = row["value"], row["interval"]
    known = isinstance(value, int | float)
    has = known and _known(interval)
    return Cell(
        kind=Kind(row["unit"]),
        value=float(value) if known else None,
        low=interval["low"] if has else None,
        high=interval["high"] if has else None,
        reason="" if known else next(iter(value.values())),
    )


_KEYS = (
    ("against", "other"),
    ("class", "class"),
    ("to", "to_class"),
    ("line", "line"),
    ("at a cut of", "cut"),
    ("where", "slice"),
)


def _measured(card: Mapping[str, Any]) -> Iterable[Block]:
    bank = card["bank"]
    standards = {bank["gold"] if _known(bank["gold"]) else "", _text_of(bank["reference"])}
    for name, (heading, what) in SECTIONS.items():
        rows = card["measured"][name]
        if not _known(rows):
            if "unknown" in rows:
                yield Paragraph(text=(f"{heading}: ", *_said(rows), "."))
            continue
        shown = [r for r in rows if _is_headline(r, standards)]
        cut = shown[:MOST_ROWS]
        if not cut:
            yield Paragraph(text=(f"{heading}: {plural(len(rows), 'row')} in the JSON card.",))
            continue
        yield Table(
            title=heading,
            columns=(
                Column(title="what"),
                Column(title="value", kind=Kind.COEFFICIENT),
                Column(title="n", kind=Kind.COUNT),
            ),
            rows=tuple((cell(_what(r)), _number(r), _rests_on(r)) for r in cut),
            note=(what + _more(len(rows) - len(cut)),),
        )


def _text_of(line: Any) -> str:
    return line if isinstance(line, str) else ""


def _more(left: int) -> str:
    return (
        f" {plural(left, 'more row stands', 'more rows stand')} in the JSON card." if left else ""
    )


def _is_headline(row: Mapping[str, Any], standards: set[str]) -> bool:
    other = row.get("other", "")
    return (
        row["statistic"] in HEADLINES
        and "slice" not in row
        and "line" not in row
        and (not other or other in standards or row["statistic"] == "collapse_ratio")
    )


def _what(row: Mapping[str, Any]) -> Text:
    parts: list[Any] = [row["title"]]
    if "grader" in row:
        parts += [", on ", Name(row["grader"])]
    for word, key in _KEYS:
        if key in row:
            parts += [f", {word} ", Name(row[key])]
    return tuple(parts)


def _rests_on(row: Mapping[str, Any]) -> Cell:
    n = row["n"]
    return Cell(kind=Kind.COUNT, value=float(n) if isinstance(n, int | float) else None)
