"""What a grader may be used for, as it follows from the findings and results on its card.

The tables are data: :data:`USES` has a row for each use with what it rests on, each check carries the
rows for its findings (``Check.uses``), and :data:`FACTS` has those for facts that no check reads.
:func:`derive` looks at nothing but the card itself, so that a card that was read back can be held
against its own findings.

A use is *not allowed* where any row forbids it. It is *unknown* where a row leaves it open, where what
it rests on was not measured, or where nothing that was measured speaks for it. Else it is *allowed*,
under the conditions of the rows that set one. Allowed never means that the grader is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from voirdire import plugins
from voirdire.checks.base import Check, Consequence, Effect
from voirdire.wording import Name, Text, listed, plain, say

__all__ = ["FACTS", "USES", "Fact", "Status", "Use", "consequences", "derive", "title"]

MODEL_TAGS = ("model", "target", "target_model", "system")


class Status(StrEnum):
    NOT_ALLOWED = "not_allowed"
    UNKNOWN = "unknown"
    ALLOWED = "allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use. ``title`` says it to a person; ``scope`` is what it is repeated over.

    ``rests_on`` are statistics of which one must have a value, of the scope, else it is unknown for
    the reason ``missing``; with ``on_gold`` the value must be against gold, with ``by_model`` in slices
    by a tag that names graded models. ``speaks`` are statistics whose value is enough where no finding
    allows the use. ``always`` are conditions that hold wherever it is allowed. ``at_best`` says why no
    measurement can allow it.
    """

    name: str
    title: str
    kinds: tuple[str, ...]
    scope: str = ""
    rests_on: tuple[str, ...] = ()
    missing: str = ""
    on_gold: bool = False
    by_model: bool = False
    speaks: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    at_best: str = ""


_LABELS = ("labels", "counts")
_CHECKLIST = ("checklist",)
_ALL = (*_LABELS, *_CHECKLIST)
ACCURACY = "State how often it is right"
NO_GOLD = "No gold: nothing says how often it is right."

USES: tuple[Use, ...] = (
    Use(
        name="report_rate",
        title="Report the rate of {scope} that it gives on this bank",
        kinds=_LABELS,
        scope="rate",
        rests_on=("rate", "label_share"),
        missing="Its rate was not determined.",
        speaks=("collapse_ratio",),
        always=("Name the grader and print its class counts beside the rate.",),
    ),
    Use(
        name="compare_models",
        title="Compare models by the rate of {scope} that it gives",
        kinds=_LABELS,
        scope="rate",
        rests_on=("rate", "label_share"),
        missing="Its rate was not measured model by model: audit with --by and the tag that names the model.",
        on_gold=True,
        by_model=True,
        speaks=("collapse_ratio",),
        always=("Print its class counts and gold’s for each model.",),
    ),
    Use(
        name="compare_graders",
        title="Set the rate of {scope} that it gives beside one that another grader gave",
        kinds=_LABELS,
        scope="rate",
        rests_on=("rate_range",),
        missing="Its rate was not compared with another grader’s on the same responses.",
        always=("Name both graders, and give the range over all graders beside it.",),
    ),
    Use(
        name="report_part",
        title="Report its rates inside one part of the bank",
        kinds=("labels",),
        missing="Nothing is known of whether its classes hold inside parts of the responses.",
        always=("Say by which tags the parts were told apart, and on how many labels each rests.",),
    ),
    Use(
        name="mean_score",
        title="Report a mean of its scores",
        kinds=("labels",),
        scope="long scale",
        missing="How it uses the scale was not compared with anybody’s.",
    ),
    Use(
        name="state_accuracy",
        title=ACCURACY,
        kinds=_LABELS,
        rests_on=("agreement",),
        missing="It was not compared with gold on any response.",
        on_gold=True,
        speaks=("agreement",),
        always=("Print the class counts, the best constant answer and kappa beside agreement.",),
    ),
    Use(
        name="state_accuracy",
        title=ACCURACY,
        kinds=_CHECKLIST,
        rests_on=("element_error",),
        missing="It was not compared with gold on any line.",
        on_gold=True,
        speaks=("element_error",),
        always=("Print false accepts and false rejects, and not their mean alone.",),
    ),
    Use(
        name="stand_for_gold",
        title="Let its labels stand for gold",
        kinds=_ALL,
        rests_on=("agreement", "element_error"),
        missing="It was not compared with gold on any response.",
        on_gold=True,
        at_best="No statistic says how much error is little enough: that hangs on what an error costs you.",
    ),
    Use(
        name="second_opinion",
        title="Count it as a vote of its own beside the other graders",
        kinds=("labels",),
        missing="Whether it departs together with another grader was not looked at.",
        always=("Say who else is in the panel.",),
    ),
    Use(
        name="gate",
        title="Pass or fail responses at {scope}",
        kinds=_CHECKLIST,
        scope="cut",
        rests_on=("gate_accuracy",),
        missing="How often its gate is right was not determined.",
        on_gold=True,
        always=(
            "Give the gate’s false passes and false fails beside its accuracy, with intervals; whether they "
            "are few enough is yours to say.",
        ),
    ),
    Use(
        name="total_score",
        title="Report the number of lines that it finds met",
        kinds=_CHECKLIST,
        rests_on=("leniency",),
        missing="Its totals were not compared with gold’s.",
        on_gold=True,
        speaks=("leniency",),
        always=("Give its leniency beside it.",),
    ),
    Use(
        name="line_verdict",
        title="Take its verdict on a single line by itself",
        kinds=_CHECKLIST,
        rests_on=("element_error",),
        missing="How often its verdict on a line is right was not measured.",
        on_gold=True,
        always=("Give the error of that line.",),
    ),
    Use(
        name="bank_coefficient",
        title="Print KR-20, Φ(λ) or Livingston–Lewis as figures of the bank",
        kinds=_CHECKLIST,
        rests_on=("kr20", "phi_lambda", "livingston_lewis_accuracy"),
        missing="No coefficient of the bank can be said.",
        always=("Print each only beside its value on gold.",),
    ),
    Use(
        name="reliability",
        title="Quote KR-20, Φ(λ) or Livingston–Lewis as reliability or accuracy of the judge",
        kinds=_CHECKLIST,
    ),
    Use(
        name="repeats",
        title="Say how often it contradicts itself when asked again",
        kinds=_ALL,
        rests_on=("self_disagreement",),
        missing="It was not asked twice under one prompt.",
        speaks=("self_disagreement",),
        always=("Call it noise of decoding under one prompt, never reliability.",),
    ),
    Use(
        name="other_wording",
        title="Say how far its labels hang on the wording of the instruction",
        kinds=_ALL,
        rests_on=("flip_rate",),
        missing="It was measured under one wording, or nobody said under which.",
        speaks=("flip_rate",),
        always=("Say of which phrasings: more of them find more flips.",),
    ),
    Use(
        name="quote_intervals",
        title="Quote its intervals at their level",
        kinds=_ALL,
        missing="On how many clusters they rest was not judged.",
        always=("Name their method and the number of clusters.",),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One row of the rule table for a fact on the card that no check reads."""

    name: str
    use: str
    effect: Effect
    because: str
    holds: Callable[[Mapping[str, Any], Mapping[str, Any]], bool]  # of the card and the scope


def _known(line: Any) -> bool:
    return not (isinstance(line, Mapping) and ({"unknown", "not_applicable"} & line.keys()))


def _no_gold(card: Mapping[str, Any], scope: Mapping[str, Any]) -> bool:
    return not _known(card["bank"]["gold"])


def _gold_there(card: Mapping[str, Any], scope: Mapping[str, Any]) -> bool:
    return _known(card["bank"]["gold"])


def _made_into_gold(card: Mapping[str, Any], scope: Mapping[str, Any]) -> bool:
    made_from = card["bank"]["gold_made_from"]
    return _known(made_from) and card["grader"]["name"] in made_from


def _outside_range(card: Mapping[str, Any], scope: Mapping[str, Any]) -> bool:
    range_ = card["grader"]["range"]
    classes = scope.get("classes", ())
    return _known(range_) and bool(classes) and not set(classes) & set(range_)


def _counts_alone(card: Mapping[str, Any], scope: Mapping[str, Any]) -> bool:
    return bool(card["bank"]["kind"] == "counts")


def _no_interval(card: Mapping[str, Any], scope: Mapping[str, Any]) -> bool:
    return not any(_known(row["interval"]) for row in _results(card))


def _no_cut(card: Mapping[str, Any], scope: Mapping[str, Any]) -> bool:
    return not scope.get("cut")


def _fact(
    name: str,
    use: str,
    effect: Effect,
    because: str,
    holds: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> Fact:
    return Fact(name=name, use=use, effect=effect, because=because, holds=holds)


_INTO_GOLD = "Gold is made of its labels, so agreement with gold is no test of it."
_RANGE = "It cannot give it."
FACTS: tuple[Fact, ...] = (
    *(_fact("no_gold", use.name, Effect.OPENS, NO_GOLD, _no_gold) for use in USES if use.on_gold),
    _fact(
        "gold_there",
        "report_rate",
        Effect.CONDITIONS,
        "Give gold’s rate on the same responses beside it.",
        _gold_there,
    ),
    *(
        _fact("gold_is_made_of_it", use, Effect.FORBIDS, _INTO_GOLD, _made_into_gold)
        for use in ("state_accuracy", "stand_for_gold")
    ),
    *(
        _fact("class_outside_its_range", use, Effect.FORBIDS, _RANGE, _outside_range)
        for use in ("report_rate", "compare_models", "compare_graders")
    ),
    _fact(
        "counts_alone",
        "quote_intervals",
        Effect.OPENS,
        "Counts alone do not say which responses belong together: intervals take them as independent.",
        _counts_alone,
    ),
    _fact(
        "no_interval",
        "quote_intervals",
        Effect.OPENS,
        "No value of it has an interval.",
        _no_interval,
    ),
    _fact(
        "no_cut",
        "gate",
        Effect.OPENS,
        "No cut was asked for: audit with --cut and the number of lines that a response must meet.",
        _no_cut,
    ),
    _fact(
        "describes_the_bank",
        "reliability",
        Effect.FORBIDS,
        "They describe the bank: how far its responses and lines spread, not how often the judge is right.",
        lambda card, scope: True,
    ),
)


def consequences() -> tuple[Consequence, ...]:
    """The rows of all checks, in the order of the checks' names."""
    checks = sorted(plugins.load("checks", Check), key=lambda c: c.name)
    return tuple(row for check in checks for row in check.uses)


# --- deriving -----------------------------------------------------------------------------------


def derive(card: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The uses of a card, each with its status and every row that speaks for or against it.

    ``card`` has ``grader``, ``bank``, ``measured`` and ``findings`` in the form of the card's schema.
    """
    rows = consequences()
    kind = card["bank"]["kind"]
    return [
        _derived(card, use, scope, rows)
        for use in USES
        if kind in use.kinds
        for scope in _scopes(card, use)
    ]


def _scopes(card: Mapping[str, Any], use: Use) -> Iterator[dict[str, Any]]:
    bank = card["bank"]
    if use.scope == "rate":
        yield from (bank["rates"] if _known(bank["rates"]) else ())
    elif use.scope == "cut":
        yield from (({"cut": c} for c in bank["cuts"]) if _known(bank["cuts"]) else ({},))
    elif use.scope == "long scale":
        if bank["ordered"] and _known(bank["classes"]) and len(bank["classes"]) > 4:
            yield {}
    else:
        yield {}


def _derived(
    card: Mapping[str, Any], use: Use, scope: Mapping[str, Any], rows: Sequence[Consequence]
) -> dict[str, Any]:
    because: list[dict[str, Any]] = []
    for fact in FACTS:
        if fact.use == use.name and fact.holds(card, scope):
            because.append(_said(fact.effect, fact.because, {"fact": fact.name}))
    for row in rows:
        if row.use == use.name:
            for finding in card["findings"] if _known(card["findings"]) else ():
                if _speaks(row, finding, scope):
                    because.append(_said(_effect(row, finding), row.because, _reference(finding)))
    resting = [r for r in _results(card) if _rests(card, use, scope, r, use.rests_on)]
    if use.rests_on and not resting and "no_gold" not in {b.get("fact") for b in because}:
        because.append(_said(Effect.OPENS, use.missing, {"fact": "not_measured"}))
    because += [_result(r) for r in resting[:1]]
    effects = {b["effect"] for b in because}
    if Effect.FORBIDS in effects:
        status = Status.NOT_ALLOWED
    elif Effect.OPENS in effects:
        status = Status.UNKNOWN
    elif use.at_best:
        because.append(_said(Effect.OPENS, use.at_best, {"fact": "no_threshold"}))
        status = Status.UNKNOWN
    elif Effect.ALLOWS in effects or _enough(card, use, scope, _left_open(card, use, rows)):
        status = Status.ALLOWED
        because += [_said(Effect.CONDITIONS, c, {"fact": "always"}) for c in use.always]
    else:
        why = use.missing or "Nothing that was measured speaks for it."
        if use.rests_on:
            why = "Nothing that was measured speaks for it."
        because.append(_said(Effect.OPENS, why, {"fact": "not_measured"}))
        status = Status.UNKNOWN
    return {
        "use": use.name,
        "title": plain(title(use.name, scope)),
        "scope": dict(scope) or {"not_applicable": "it is of the grader as a whole"},
        "status": str(status),
        "because": sorted(because, key=lambda b: _ORDER.index(b["effect"])),
    }


_TITLES = {use.name: use.title for use in USES}


def title(use: str, *scopes: Mapping[str, Any]) -> Text:
    """What a use is, in words, with the rates or the cuts that it is of."""
    said: Text = ()
    for place, scope in enumerate(scopes):
        if place:
            said = (*said, " and " if place == len(scopes) - 1 else ", ")
        said = (*said, *_scope(scope))
    if "{scope}" in _TITLES[use] and not said:
        said = ("some cut",)
    return say(_TITLES[use], scope=said)


def _scope(scope: Mapping[str, Any]) -> Text:
    if "cut" in scope:
        return say("a cut of {cut}", cut=Name(scope["cut"]))
    if "rate" not in scope:
        return ()
    if scope["classes"] == [scope["rate"]]:
        return (Name(scope["rate"]),)
    return (Name(scope["rate"]), " (", *listed(scope["classes"], most=6), ")")


_ORDER = [str(e) for e in (Effect.FORBIDS, Effect.OPENS, Effect.CONDITIONS, Effect.ALLOWS)] + [
    "is_its_value"
]


def _said(effect: Effect, sentence: str, of: Mapping[str, Any]) -> dict[str, Any]:
    return {"effect": str(effect), "sentence": sentence, **of}


def _effect(row: Consequence, finding: Mapping[str, Any]) -> Effect:
    """What was looked at unasked can at most leave a use open."""
    if row.effect is Effect.FORBIDS and finding["exploratory"]:
        return Effect.OPENS
    return row.effect


_KEYS = ("class", "line", "cut", "slice")


def _reference(finding: Mapping[str, Any]) -> dict[str, Any]:
    keys = {k: finding[k] for k in _KEYS if k in finding}
    strength = {"strength": finding["strength"]} if "strength" in finding else {}
    return {"finding": finding["code"], "state": finding["state"], **strength, **keys}


def _result(row: Mapping[str, Any]) -> dict[str, Any]:
    keys = {k: row[k] for k in ("other", *_KEYS) if k in row}
    return {"effect": "is_its_value", "result": row["statistic"], **keys, "value": row["value"]}


def _speaks(row: Consequence, finding: Mapping[str, Any], scope: Mapping[str, Any]) -> bool:
    if row.code != finding["code"] or str(row.state) != finding["state"]:
        return False
    if "cut" in scope and finding.get("cut", scope["cut"]) != scope["cut"]:
        return False
    if row.where == "any" or "classes" not in scope:
        return True
    class_, classes = finding.get("class"), scope["classes"]
    if class_ is None:
        # A finding of no one class is about all of them.
        return row.where in ("same", "rate")
    match row.where:
        case "rate":
            return bool(class_ == scope["rate"])
        case "same":
            return bool(classes == [class_])
        case "part":
            return class_ in classes and len(classes) > 1
        case _:
            return class_ not in classes


def _results(card: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for rows in card["measured"].values():
        if isinstance(rows, Sequence):
            yield from rows


def _rests(
    card: Mapping[str, Any],
    use: Use,
    scope: Mapping[str, Any],
    row: Mapping[str, Any],
    statistics: Iterable[str],
) -> bool:
    """Whether a row of the results is of these statistics and of this scope, and has a value."""
    gold = card["bank"]["gold"]
    if row["statistic"] not in statistics or not _known(row["value"]) or "line" in row:
        return False
    if "grader" in row:  # gold’s own
        return False
    if use.by_model != (_slice_tags(row) & set(MODEL_TAGS) != set()):
        return False
    if not use.by_model and "slice" in row:
        return False
    if use.on_gold and "other" in row and row["other"] != gold:
        return False
    if "cut" in scope and row.get("cut") != scope["cut"]:
        return False
    if "classes" in scope:
        class_ = row.get("class")
        if row["statistic"] in ("label_share", "collapse_ratio"):
            return bool(scope["classes"] == [class_])
        return bool(class_ == scope["rate"])
    return True


def _slice_tags(row: Mapping[str, Any]) -> set[str]:
    return {part.partition("=")[0].casefold() for part in row.get("slice", "").split(",") if part}


def _left_open(card: Mapping[str, Any], use: Use, rows: Iterable[Consequence]) -> set[str]:
    """The classes of which it cannot be told whether the use is all right."""
    codes = {
        (row.code, str(row.state))
        for row in rows
        if row.use == use.name and row.effect is Effect.OPENS and row.where == "same"
    }
    findings = card["findings"] if _known(card["findings"]) else ()
    return {f.get("class", "") for f in findings if (f["code"], f["state"]) in codes}


def _enough(
    card: Mapping[str, Any], use: Use, scope: Mapping[str, Any], left_open: set[str]
) -> bool:
    """Whether a result stands where a finding would allow the use; of several classes, of one of them."""
    if not use.speaks:
        return False
    classes = scope.get("classes")
    if classes is None:
        return any(_rests(card, use, scope, r, use.speaks) for r in _results(card))
    spoken = {
        r.get("class")
        for r in _results(card)
        if r["statistic"] in use.speaks and _known(r["value"]) and "grader" not in r
    }
    return bool(set(classes) & spoken - left_open)
