"""From an audit to the content of one grader's card: each line a value, unknown, or not applicable."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import polars as pl

from voirdire.cards.schema import MEASURED, TRIGGERS, VERSION
from voirdire.cards.uses import consequences, derive
from voirdire.errors import UsageError
from voirdire.estimand import Describes, Scale, Unit
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State
from voirdire.labels import Grader, Labels, gold_name
from voirdire.wording import Text, listed, plain, printable

__all__ = ["content", "day", "expiry", "grader_of"]

Line = Any  # a value, or one of the two below


def unknown(why: str) -> dict[str, str]:
    """A line that nobody knows."""
    return {"unknown": why}


def not_applicable(why: str) -> dict[str, str]:
    """A line where there is nothing to know."""
    return {"not_applicable": why}


NOT_STATED = "not stated: give it with --about"
A_PERSON, DERIVED = "the grader is a person", "it is made from other graders: see their cards"
WITHOUT_MODEL = "it is no language model"
# What a fact is called in the files that carry it, by the line of the card that takes it.
_FACTS: Mapping[str, tuple[str, ...]] = {
    "kind": ("kind",),
    "model": ("model", "model_name"),
    "provider": ("provider", "vendor", "host"),
    "size": ("size", "parameters"),
    "family": ("family",),
    "prompt": ("prompt", "prompt_name"),
    "prompt_hash": ("prompt_hash", "prompt_sha256", "prompt_digest"),
    "system_fingerprint": ("system_fingerprint", "fingerprint"),
    "votes": ("votes",),
    "phrasings": ("phrasings",),
    "rubric": ("rubric",),
}
_OF_A_MODEL = ("model", "provider", "size", "family", "prompt", "prompt_hash", "system_fingerprint")
# How a model was asked. What else is stated stands under ``other_facts``.
_SETTINGS = (
    *("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "stop"),
    *("reasoning_effort", "system_prompt", "response_format", "threshold", "logprobs", "filter"),
    *("effort", "thinking", "n", "presence_penalty", "frequency_penalty", "min_p", "settings"),
)
_LONGEST_PROMPT = 200  # a longer one is the prompt itself, and the card has its hash
_NAME_AND_DIGEST = re.compile(r"(.+) \(([0-9a-f]{12,64})\)")
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{12,64})")
_KINDS = {
    "rule": "rule",
    "scripted": "answers that are written down",
    "command": "program",
    "openai-compatible": "language model",
    "any-llm": "language model",
}
NOT_SENT = "as the endpoint sets it"
_NOT_MODELS = ("rule", "scripted", "command")
MOST_CLASSES = 12  # beyond it a class is a score, and has no use of its own


# --- who ----------------------------------------------------------------------------------------


def grader_of(labels: Labels, name: str) -> Grader:
    """The grader that a card is of: the one named, or the only one that is not gold.

    Raises :class:`UsageError` where there is none or are several to choose from.
    """
    gold = gold_name(labels.grader_names, labels.options)
    others = [n for n in labels.grader_names if n != gold]
    if name and name in labels.by_name:
        if name == gold:
            raise UsageError(
                f"--of {printable(name)}: this is gold, which the others are measured against. To "
                "measure it, audit with --gold none."
            )
        return labels.by_name[name]
    shown = plain(listed((printable(n) for n in others), most=20))
    if name:
        raise UsageError(f"--of: there is no grader {name!r}. Graders: {shown or 'none'}.")
    if len(others) != 1:
        raise UsageError(
            f"A card is of one grader: name it with --of. Graders: {shown or 'none besides gold'}."
        )
    return labels.by_name[others[0]]


def _value(given: Any) -> Any:
    """A fact as plain JSON: other types as their text, numbers that are not finite too."""
    if isinstance(given, bool | str):
        return given
    if isinstance(given, int | float):
        return given if math.isfinite(given) else str(given)
    if isinstance(given, Mapping):
        return {str(k): _value(v) for k, v in given.items()}
    if isinstance(given, list | tuple):
        return [_value(v) for v in given]
    return str(given)


def _blank(given: Any) -> bool:
    return given is None or (isinstance(given, str) and not given.strip()) or given in ([], {}, ())


def _fact(facts: Mapping[str, Any], line: str) -> Any:
    return next((facts[n] for n in _FACTS[line] if not _blank(facts.get(n))), None)


def _who(labels: Labels, grader: Grader) -> dict[str, Any]:
    facts = dict(grader.facts)
    provider = str(facts.get("provider", ""))
    no_model = (
        A_PERSON
        if grader.person
        else DERIVED
        if grader.derived_from
        else WITHOUT_MODEL
        if provider in _NOT_MODELS or facts.get("kind") in ("rule", "code", "detector")
        else ""
    )
    if provider in _NOT_MODELS:  # what a store states of every grader, and means nothing here
        facts = {
            n: v
            for n, v in facts.items()
            if (n, v) not in (("model", provider), ("temperature", NOT_SENT))
        }
    lines: dict[str, Any] = {"name": grader.name, "kind": _kind(grader, facts)}
    for line in _OF_A_MODEL:
        given = _fact(facts, line)
        if given is not None:
            lines[line] = str(_value(given))
        elif no_model:
            lines[line] = not_applicable(no_model)
        else:
            lines[line] = unknown(NOT_STATED)
    rubric = _fact(facts, "rubric")
    _split_prompt(lines)
    if not isinstance(lines.get("rubric"), str):
        lines["rubric"] = str(_value(rubric)) if rubric is not None else unknown(NOT_STATED)
    settings = {n: _value(facts[n]) for n in _SETTINGS if not _blank(facts.get(n))}
    lines["settings"] = settings or (not_applicable(no_model) if no_model else unknown(NOT_STATED))
    lines["votes"] = _votes(labels, grader, _fact(facts, "votes"))
    lines["phrasings"] = _phrasings(labels, grader, _fact(facts, "phrasings"))
    lines["made_from"] = (
        list(grader.derived_from)
        if grader.derived_from
        else not_applicable("it is made from no other grader that was declared")
    )
    lines["range"] = (
        list(grader.range)
        if grader.range
        else not_applicable("no range was declared: it may give every class")
    )
    taken = {n for names in _FACTS.values() for n in names} | set(_SETTINGS)
    rest = {
        # By itself either word would say that the whole line is not known.
        f"{n} (stated)" if n in ("unknown", "not_applicable") else str(n): _value(v)
        for n, v in facts.items()
        if n not in taken and not _blank(v)
    }
    lines["other_facts"] = rest or not_applicable("nothing else is stated")
    order = (
        *("name", "kind", *_OF_A_MODEL, "settings", "votes", "phrasings", "rubric"),
        *("made_from", "range", "other_facts"),
    )
    return {name: lines[name] for name in order}


def _kind(grader: Grader, facts: Mapping[str, Any]) -> Line:
    if grader.person:
        return "person"
    if grader.derived_from:
        return "made from other graders"
    stated = _fact(facts, "kind")
    if stated is not None:
        return "language model" if stated == "model" else str(stated)
    provider = str(facts.get("provider", ""))
    if provider in _KINDS:
        return _KINDS[provider]
    if _fact(facts, "model") is not None:
        return "language model"
    return unknown("not stated: give a kind or a model with --about, or --people")


def _split_prompt(lines: dict[str, Any]) -> None:
    """A prompt that is a name with a digest, a digest, or the text itself, as name and hash."""
    prompt = lines["prompt"]
    if not isinstance(prompt, str):
        return
    named, bare = _NAME_AND_DIGEST.fullmatch(prompt), _DIGEST.fullmatch(prompt)
    if named:
        lines["prompt"] = lines["rubric"] = named[1]
        digest = named[2]
    elif bare:
        lines["prompt"] = unknown("only its hash is stated")
        digest = bare[1]
    elif len(prompt) > _LONGEST_PROMPT or "\n" in prompt:
        lines["prompt"] = f"a text of {len(prompt):,} characters"
        digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
    else:
        if not isinstance(lines["prompt_hash"], str):
            lines["prompt_hash"] = unknown("the prompt is named, its text is not at hand")
        return
    if not isinstance(lines["prompt_hash"], str):
        lines["prompt_hash"] = digest if len(digest) == 64 else f"{digest} (its first digits)"


def _whole(given: Any) -> int | None:
    try:
        number = float(given)
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() and number >= 1 else None


def _of(labels: Labels, grader: Grader) -> pl.DataFrame:
    return labels.frame.filter(pl.col("grader") == grader.name)


def _votes(labels: Labels, grader: Grader, stated: Any) -> Line:
    mine = _of(labels, grader)
    if mine["vote"].drop_nulls().len():
        return int(mine["vote"].drop_nulls().n_unique())
    number = _whole(stated)
    if number is not None:
        return number
    return unknown("the file tells no votes apart, and nobody stated how many there were")


def _phrasings(labels: Labels, grader: Grader, stated: Any) -> Line:
    names = _of(labels, grader)["phrasing"].drop_nulls().unique().sort().to_list()
    names = [n for n in names if n.strip()]
    if names:
        return names
    if isinstance(stated, list | tuple) and any(not _blank(s) for s in stated):
        return [str(s) for s in stated if not _blank(s)]
    number = _whole(stated)
    return number if number is not None else unknown("the file does not say under which wording")


# --- what it was measured on --------------------------------------------------------------------


def _bank(
    labels: Labels,
    grader: Grader,
    estimates: Sequence[Estimate],
    rates: Sequence[tuple[str, Sequence[str]]],
) -> dict[str, Any]:
    options, kind = labels.options, labels.kind
    gold = _gold(labels)
    of_counts = not_applicable("only counts are known")
    no_lines = not_applicable("the labels are classes, not lines")
    no_classes = not_applicable("verdicts are yes or no")
    checklist = kind == "checklist"
    mine = _of(labels, grader)
    # The tag of the input's own columns; what tells of one call is none of the bank.
    tags = [t.name for t in labels.tags if t.name not in ("raw", "outcome_reason")]
    classes = list(labels.classes)
    others = [n for n in labels.grader_names if n not in (grader.name, gold)]
    made_from = list(labels.by_name[gold].derived_from) if gold else []
    return {
        "inputs": [
            {
                "name": i.name if i.name.strip() else "(no name)",
                "sha256": i.sha256 or unknown("it was not read from bytes"),
                "rows": i.rows if i.rows >= 1 else unknown("it has none"),
            }
            for i in labels.inputs
        ],
        "kind": kind,
        "responses": of_counts
        if kind == "counts"
        else _counted(mine["response"].n_unique(), "it has no response in this file"),
        "clusters": of_counts
        if kind == "counts"
        else _counted(mine["cluster"].n_unique(), "it has no response in this file"),
        "clusters_are": of_counts
        if kind == "counts"
        else (options.cluster or "declared by the file")
        if labels.clusters_declared
        else unknown("no clusters were declared: each response stands as its own"),
        "ordered": labels.ordered,
        "classes": no_classes if checklist else classes or unknown("nobody gave a label"),
        "off_scale": no_classes
        if checklist
        else list(labels.off_scale) or not_applicable("all classes are on the scale"),
        "rates": no_classes if checklist else _rates(labels, rates),
        "lines": _counted(mine["line"].n_unique(), "it has no verdict in this file")
        if checklist
        else no_lines,
        "cuts": (
            [str(c) for c in sorted(set(options.cut))]
            or not_applicable("no cut was asked for: --cut C")
        )
        if checklist
        else no_lines,
        "gold": gold or unknown(_no_gold(labels)),
        "gold_made_from": made_from
        or (
            unknown("not stated: say it with --derived-from") if gold else not_applicable("no gold")
        ),
        "gold_is": _gold_is(labels, gold),
        "reference": options.reference or not_applicable("no reference was named"),
        "other_graders": others or not_applicable("there is no other grader"),
        "tags": tags or not_applicable("the file has no other column"),
        "mix": _mix(labels, grader, gold, estimates),
    }


def _counted(n: int, without: str) -> Line:
    return n if n >= 1 else unknown(without)


def _gold(labels: Labels) -> str:
    """Gold, where it has any label."""
    gold = gold_name(labels.grader_names, labels.options)
    if not gold:
        return ""
    of_gold = labels.frame.filter(pl.col("grader") == gold)
    return gold if of_gold["label"].drop_nulls().len() else ""


def _no_gold(labels: Labels) -> str:
    named = gold_name(labels.grader_names, labels.options)
    return f"no gold: {named} has no label" if named else "no gold"


def _gold_is(labels: Labels, gold: str) -> Line:
    if not gold:
        return not_applicable("no gold")
    grader = labels.by_name[gold]
    stated = _fact(grader.facts, "kind")
    if stated is not None:
        return str(stated)
    if grader.person:
        return "a person"
    people = [n for n in grader.derived_from if labels.by_name[n].person]
    if grader.derived_from and len(people) == len(grader.derived_from):
        return "labels of people, made into one"
    return unknown("what gold is was not stated: give it a kind with --about")


def _rates(labels: Labels, rates: Sequence[tuple[str, Sequence[str]]]) -> Line:
    """Each class as a rate of its own, then the rates of several classes or of another name."""
    single = [{"rate": c, "classes": [c]} for c in labels.classes if c.strip()]
    if len(single) > MOST_CLASSES:
        single = []
    named = [{"rate": name, "classes": list(members)} for name, members in rates if members]
    return [*single, *(r for r in named if r not in single)] or not_applicable(
        f"there are more than {MOST_CLASSES} classes and no rate was named: --rate NAME=class"
        if len(labels.classes) > MOST_CLASSES
        else "nobody gave a label"
    )


def _mix(labels: Labels, grader: Grader, gold: str, estimates: Sequence[Estimate]) -> Line:
    """Of which classes the bank is, by gold or else by the grader; of a checklist, the lines met."""
    who = gold or grader.name
    wanted = "total_mean" if labels.kind == "checklist" else "label_share"
    found = [
        _row(e, grader.name)
        for e in estimates
        if e.statistic == wanted
        and e.key.grader == who
        and e.key.other in ("", grader.name)
        and e.number is not None
    ]
    return found or unknown("no share was determined")


# --- what was measured --------------------------------------------------------------------------

# Of a pair these stand once, in the order of the graders, and say the same of both.
_EITHER_WAY = (
    *("agreement", "chance_agreement", "cohen_kappa", "scott_pi", "gwet_ac1", "brennan_prediger"),
    *("weighted_kappa_linear", "weighted_kappa_quadratic", "gwet_ac2_quadratic", "class_agreement"),
)
# What of slices stands in a card; the rest is in the results of the audit.
_OF_SLICES = (
    *("rate", "label_count", "label_share", "collapse_ratio", "agreement", "pass_rate"),
    *("gate_accuracy", "gate_false_accept", "gate_false_reject"),
    *("element_error", "false_accept", "false_reject", "flip_rate"),
)
_SECTIONS = {
    Describes.GRADER: MEASURED[0],
    Describes.BOTH: MEASURED[1],
    Describes.BANK: MEASURED[2],
    Describes.PANEL: MEASURED[3],
}
NO_LEVEL = "it is no estimate of anything beyond these responses"


def _row(estimate: Estimate, grader: str, *, other: str | None = None) -> dict[str, Any]:
    """One estimate; the grader is named where it is another one, such as gold."""
    key, interval = estimate.key, estimate.interval
    other = key.other if other is None else other
    keys = {
        "grader": "" if key.grader == grader or other != key.other else key.grader,
        "other": other,
        "class": key.class_,
        "to_class": key.to_class,
        "line": key.line,
        "cut": key.cut,
        "slice": key.slice,
    }
    number = estimate.number
    finite = number is not None and math.isfinite(number)
    no_interval: Line = unknown(estimate.no_interval or "none was made for it")
    if not finite:
        no_interval = not_applicable("there is no value")
    elif estimate.estimand.scale is Scale.NONE or estimate.estimand.unit is Unit.COUNT:
        no_interval = not_applicable(NO_LEVEL)
    n = estimate.n
    return {
        "statistic": estimate.statistic,
        "title": estimate.estimand.title,
        "unit": str(estimate.estimand.unit),
        **{name: text for name, text in keys.items() if text.strip()},
        "value": float(number) if finite else unknown(estimate.reason or "it is not finite"),  # type: ignore[arg-type]
        "interval": {
            "low": float(interval.low),
            "high": float(interval.high),
            "level": float(interval.level),
            "method": interval.method,
        }
        if interval is not None and math.isfinite(interval.low) and math.isfinite(interval.high)
        else no_interval,
        "n": (int(n) if float(n).is_integer() else float(n))
        if n is not None and n > 0 and math.isfinite(n)
        else unknown("on how many it rests is not known" if n is None else "it rests on none"),
        "clusters": int(estimate.clusters)
        if estimate.clusters
        else not_applicable("it is of no clusters"),
    }


def _measured(
    labels: Labels, grader: Grader, gold: str, estimates: Sequence[Estimate]
) -> tuple[dict[str, Any], Line]:
    """The rows by what they describe, and how many were left out."""
    me = grader.name
    made: dict[str, list[dict[str, Any]]] = {name: [] for name in MEASURED}
    left_out = {"lines": 0, "slices": 0}
    for estimate in estimates:
        key, describes = estimate.key, estimate.estimand.describes
        row: dict[str, Any] | None = None
        if key.grader == me:
            row = _row(estimate, me)
        elif key.other == me and estimate.statistic in _EITHER_WAY:
            row = _row(estimate, me, other=key.grader)
        elif (
            gold and key.grader == gold and describes is Describes.BANK and key.other in ("", me)
        ) or (
            not key.grader
            and describes in (Describes.BANK, Describes.PANEL)
            and key.other in ("", gold, labels.options.reference)
        ):
            row = _row(estimate, me)
        if row is None:
            continue
        if "line" in row and labels.kind == "checklist" and not _of_all_lines(row["line"]):
            left_out["lines"] += 1
        elif "slice" in row and estimate.statistic not in _OF_SLICES:
            left_out["slices"] += 1
        else:
            made[_SECTIONS[describes]].append(row)
    reasons = {
        MEASURED[0]: unknown("nothing was measured that is of the grader alone"),
        MEASURED[1]: unknown("nothing was measured"),
        MEASURED[2]: not_applicable("no statistic of the bank applies to these labels"),
        MEASURED[3]: not_applicable("no other grader labelled the same responses"),
    }
    told = [
        f"{left_out['lines']:,} of single lines" if left_out["lines"] else "",
        f"{left_out['slices']:,} of slices" if left_out["slices"] else "",
    ]
    said = " and ".join(t for t in told if t)
    return (
        {name: rows or reasons[name] for name, rows in made.items()},
        f"{said}: they are in the results of voirdire audit with these options"
        if said
        else not_applicable("all results of this grader are here"),
    )


def _of_all_lines(line: str) -> bool:
    return line in ("overall", "by_line")


# --- findings -----------------------------------------------------------------------------------


def _concerns(finding: Finding, grader: str, of_both: Collection[str]) -> bool:
    """Whether a finding is of the grader, of all, or of a pair with it (codes ``of_both``)."""
    return finding.grader in ("", grader) or (finding.other == grader and finding.code in of_both)


def _finding(finding: Finding) -> dict[str, Any]:
    keys = {
        "grader": finding.grader,
        "other": finding.other,
        "class": finding.class_,
        "line": finding.line,
        "cut": finding.cut,
        "slice": finding.slice,
    }
    made: dict[str, Any] = {"code": finding.code, "state": str(finding.state)}
    if finding.strength:
        made["strength"] = str(finding.strength)
    made["exploratory"] = finding.exploratory
    made |= {name: text for name, text in keys.items() if text.strip()}
    made["sentence"] = plain(finding.sentence) or finding.code
    if finding.state is State.FOUND and finding.next_step:
        made["next_step"] = plain(finding.next_step)
    return made


# --- dates and triggers -------------------------------------------------------------------------


def day(given: str, flag: str) -> date:
    """A date as YYYY-MM-DD; raises :class:`UsageError` for anything else."""
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", given):
            return date.fromisoformat(given)
    except ValueError:
        pass
    raise UsageError(f"{flag} {given!r} is no date. Write it as YYYY-MM-DD, such as 2027-01-31.")


def expiry(dated: str, expires: str, valid_days: int | None) -> tuple[Line, Line]:
    """The lines for the card's date and its expiry. There is no clock: a date is given or unknown."""
    start = day(dated, "--date") if dated else None
    if expires and valid_days is not None:
        raise UsageError(
            "--expires and --valid-days both say when the card expires. Give one of them."
        )
    end = day(expires, "--expires") if expires else None
    if valid_days is not None:
        if start is None:
            raise UsageError(
                "--valid-days counts from the card's date, and voirdire asks no clock. Give --date "
                "YYYY-MM-DD too."
            )
        if valid_days < 1:
            raise UsageError(f"--valid-days {valid_days} is below 1.")
        try:
            end = start + timedelta(days=valid_days)
        except OverflowError:
            raise UsageError(f"--valid-days {valid_days}: there is no such date.") from None
    if start is not None and end is not None and end < start:
        raise UsageError(f"--expires {end} lies before the card's date, {start}.")
    return (
        start.isoformat() if start else unknown("no date was given"),
        end.isoformat() if end else unknown("no expiry was set"),
    )


_ON_BANK = "Another bank of responses, or other clusters: rates, agreement and every coefficient move with it."


def _recheck(card: Mapping[str, Any], expires: Line, version: str) -> list[dict[str, Any]]:
    who, bank = card["grader"], card["bank"]
    person = who["kind"] == "person"
    prompt = (
        {"rubric": who["rubric"], "prompt_hash": who["prompt_hash"]}
        if isinstance(who["prompt_hash"], str) and isinstance(who["rubric"], str)
        else who["prompt_hash"]
        if isinstance(who["prompt_hash"], str)
        else who["prompt"]
    )
    fingerprint = who["system_fingerprint"]
    if fingerprint == unknown(NOT_STATED):
        fingerprint = unknown(
            "no fingerprint was recorded, so a silent change would go unseen: grade some of these "
            "responses again now and then"
        )
    mix = bank["mix"]
    if isinstance(mix, list):
        mix = _spans(mix)
    dated = isinstance(expires, str)
    said: dict[str, tuple[str, Line]] = {
        "model": (
            "Another person grades." if person else "The model, or its version, is another one.",
            who["name"] if person else who["model"],
        ),
        "prompt": (
            "The guideline for the grader changes."
            if person
            else "The prompt or the rubric changes, by a single character too.",
            who["rubric"] if person else prompt,
        ),
        "settings": (
            "A setting, the number of votes or the set of phrasings changes.",
            who["settings"],
        ),
        "silent_update": (
            "The provider changes the model under the same name (another system fingerprint).",
            fingerprint,
        ),
        "new_bank": (_ON_BANK, [i["name"] for i in bank["inputs"]]),
        "class_mix": (
            "The mix of classes leaves what was measured: rates of error by class do not carry over.",
            mix,
        ),
        "expiry": (
            "The card has expired."
            if dated
            else "No expiry was set, so no date ends this card: set one with --expires.",
            expires,
        ),
        "voirdire": (
            "Another version of voirdire finds something else in the same labels.",
            version,
        ),
    }
    return [{"trigger": t, "when": said[t][0], "now": said[t][1]} for t in TRIGGERS]


def _spans(mix: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Each class with its share over the whole, and the lowest and highest among the slices."""
    from voirdire.wording import number, percent

    spans: dict[str, str] = {}
    by_class: dict[str, list[Mapping[str, Any]]] = {}
    for row in mix:
        by_class.setdefault(row.get("class", "lines met, mean"), []).append(row)
    for class_, rows in by_class.items():
        write = percent if rows[0]["unit"] == "share" else number
        whole = [r["value"] for r in rows if "slice" not in r]
        parts = [r["value"] for r in rows if "slice" in r]
        said = write(whole[0]) if whole else "not measured over the whole"
        if parts:
            said += f" (from {write(min(parts))} to {write(max(parts))} in the slices)"
        spans[class_] = said
    return spans


# --- the card -----------------------------------------------------------------------------------


def content(
    labels: Labels,
    grader: Grader,
    estimates: Sequence[Estimate],
    findings: Iterable[Finding],
    rates: Sequence[tuple[str, Sequence[str]]],
    *,
    dated: str,
    expires: str,
    valid_days: int | None,
    version: str,
) -> tuple[dict[str, Any], dict[str, Text]]:
    """The card as plain JSON values, and the sentences in it with their names kept apart."""
    gold = _gold(labels)
    date_line, expiry_line = expiry(dated, expires, valid_days)
    measured, left_out = _measured(labels, grader, gold, estimates)
    of_both = {row.code for row in consequences() if row.both}
    concerned = [f for f in findings if _concerns(f, grader.name, of_both)]
    card: dict[str, Any] = {
        "card": VERSION,
        "grader": _who(labels, grader),
        "bank": _bank(labels, grader, estimates, rates),
        "measured": measured,
        "results_left_out": left_out,
        "findings": [_finding(f) for f in concerned]
        or unknown("no check says anything of this grader"),
    }
    card["uses"] = derive(card)
    card["recheck"] = _recheck(card, expiry_line, version)
    card["dated"], card["expires"] = date_line, expiry_line
    options = {n: _value(v) for n, v in labels.options.changed().items() if not _blank(v)}
    card["made_with"] = {
        "voirdire": version,
        "options": options or not_applicable("no option was given"),
    }
    texts: dict[str, Text] = {}
    for f in concerned:
        for text in (f.sentence, f.next_step):
            texts.setdefault(plain(text), text)
    return card, texts
