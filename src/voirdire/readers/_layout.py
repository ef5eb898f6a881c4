"""Which layout a raw table is in, and the canonical rows that follow from it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from voirdire.errors import InputError, UsageError
from voirdire.labels import gold_name, number_form
from voirdire.options import MISSING, OUTCOMES, Options, typed_wordings
from voirdire.readers._raw import SHOWN_LETTERS, Problems, RawTable, shown, shown_name
from voirdire.rows import CANONICAL, Lines, Place
from voirdire.wording import Name, Text, listed, printable, say

RECOGNISED: Mapping[str, tuple[str, ...]] = {
    "response": (
        "response",
        "response_id",
        "item",
        "item_id",
        "id",
        "sample_id",
        "doc_id",
        "uuid",
    ),
    "grader": ("grader", "judge", "annotator", "rater", "scorer"),
    "label": ("label", "verdict", "score", "rating"),
    "cluster": ("cluster", "question_id", "prompt_id", "core"),
    "vote": ("vote", "epoch", "repeat"),
}
ROLES = (
    "response",
    "grader",
    "label",
    "cluster",
    "question",
    "vote",
    "phrasing",
    "weight",
    "stratum",
    "line",
    "outcome",
)
# A column that is used under one of these says no more as a tag than it says there.
_USED_UP = ("grader", "label", "outcome", "weight")
Wordings = tuple[tuple[str, tuple[str, ...]], ...]  # columns of wordings by their grader
_PLAIN = ("response", "grader", "label")
_WHOLE_NUMBER = re.compile(r"\s*\+?(\d+)(\.0*)?\s*")
_LIKE_A_NUMBER = r"^\s*[+\-]?\d[\d.,' _]*%?\s*$"
# How columns of wordings are called: a word for it, with or without a grader before it.
_WORDED = re.compile(
    r"(?is)(?:(?P<name>.*[^\W_])[_.\-/ ])?"
    r"(?:phr|phrasing|phrase|rephrasing|prompt|wording|rewording|paraphrase|instruction|template|variant)"
    r"(?:[_.\-/ ]?\d+|[_.\-/ ][^_.\-/ ]+)"
)
_NUMBERED = re.compile(r"(?s)(?P<name>.*?[^\W\d_])[_.\-/ ]?\d{1,3}")
_PERSON_LIKE = re.compile(r"(?i)annot|rater|human|person|people|expert|coder|worker|judge|grader")
_FEW_VALUES = 12
_TOTAL_WORDS = frozenset({"total", "n", "sum", "all", "count"})
_OUTCOME_WORDS = (*OUTCOMES[1:], MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a raw table is to be read: its layout, and which column is what.

    ``keys`` has the source columns of each canonical column (several are joined). ``graders`` are
    the columns of a wide table in their order; ``classes``, ``outcomes`` and ``total`` those of a
    count table. In a checklist ``lines`` has the lines of each grader with their columns, ``texts`` the
    columns that hold what a line asks; ``bits`` says that the columns of ``graders`` hold one character
    a line, and ``items`` is a column of lists. ``needs`` are the options that must be given first, with the columns in question.
    ``phrasings`` are columns of a wide table that hold one wording each, by their grader.
    """

    layout: str
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    graders: tuple[str, ...] = ()
    classes: Mapping[str, str] = field(default_factory=dict)
    unprinted: tuple[str, ...] = ()
    outcomes: Mapping[str, str] = field(default_factory=dict)
    total: str = ""
    lines: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    bits: bool = False
    items: str = ""
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notices: tuple[Text, ...] = ()
    phrasings: Wordings = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """The canonical frame of one table, with the place of each of its rows."""

    frame: pl.DataFrame
    place: Callable[[int], Place]
    layout: str
    kind: str = "labels"
    order: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    notices: tuple[Text, ...] = ()
    lines: Lines | None = None
    height: int | None = None


# --- columns ------------------------------------------------------------------------------------


def _split_names(spec: str, columns: Sequence[str]) -> tuple[str, ...] | None:
    """The columns that ``a+b`` names; a column whose own name contains ``+`` goes first."""
    if spec in columns:
        return (spec,)
    pieces = spec.split("+")
    for i in range(len(pieces) - 1, 0, -1):
        first = "+".join(pieces[:i])
        first = first if first in columns else first.strip()
        if first in columns:
            rest = _split_names("+".join(pieces[i:]), columns)
            if rest is not None:
                return (first, *rest)
    return (spec.strip(),) if spec.strip() in columns else None


def near(name: str, names: Sequence[str]) -> str:
    """The end of a sentence that names the closest match, or nothing."""
    lower = {n.lower(): n for n in reversed(names)}
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    return f" Did you mean {shown_name(lower[close[0]])}?" if close else ""


def _no_column(table: RawTable, flag: str, spec: str) -> UsageError:
    missing = [p.strip() for p in spec.split("+") if p.strip() not in table.columns] or [spec]
    wanted = missing[0]
    shown_columns = ", ".join(shown_name(c) for c in table.columns[:40])
    more = f" and {len(table.columns) - 40} more" if len(table.columns) > 40 else ""
    return UsageError(
        f'{printable(table.name)}: {flag} {shown_name(spec)}: there is no column "'
        f'{shown_name(wanted)}".{near(wanted, table.columns)} Columns: {shown_columns}{more}.'
    )


def refuse_ambiguous(table: RawTable, columns: Sequence[str]) -> None:
    """Raise an :class:`InputError` if a column that is needed shares its name with another one."""
    for column in columns:
        if column in table.ambiguous:
            raise InputError(
                f"{printable(table.name)}: {len(table.ambiguous[column])} columns are called "
                f'"{shown_name(column)}", and one of them is needed. Give each its own name.'
            )


def named_columns(
    table: RawTable, options: Options, *, alone: bool
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The columns that the options name, by role, and the options whose columns are not there.

    Where an input is not alone, another one may have the column; then it is only reported.
    """
    keys: dict[str, tuple[str, ...]] = {}
    absent: list[str] = []
    for role in ROLES:
        spec = getattr(options, role)
        if not spec:
            continue
        columns = _split_names(spec, table.columns)
        if columns is None and role == "question" and spec.lower() == "none":
            continue
        if columns is None:
            if alone:
                raise _no_column(table, f"--{role}", spec)
            absent.append(f"--{role} {spec}")
            continue
        refuse_ambiguous(table, columns)
        keys[role] = columns
    for grader, columns in options.phrasings:
        missing = [c for c in columns if c not in table.columns]
        if missing and alone:
            raise _no_column(table, "--phrasings", missing[0])
        # Another input may hold this grader, or its other wordings.
        absent += [f"--phrasings {f'{grader}=' if grader else ''}{c}" for c in missing]
    return keys, tuple(absent)


def phrasings_of(table: RawTable, options: Options) -> Wordings:
    """Of the columns of ``--phrasings`` those that are here, by grader; a name may be empty."""
    here = (
        (g, tuple(c for c in columns if c in table.columns)) for g, columns in options.phrasings
    )
    return tuple((g, columns) for g, columns in here if columns)


def recoded(
    table: RawTable, options: Options, *, alone: bool
) -> tuple[RawTable, tuple[str, ...], tuple[str, ...]]:
    """The table with the spellings of ``--recode`` put right; what is absent, what matches nothing."""
    changes: dict[str, dict[str, str]] = {}
    absent: list[str] = []
    for column, old, new in options.recode:
        if column in table.columns:
            refuse_ambiguous(table, (column,))
            changes.setdefault(column, {})[old.strip()] = new
        elif alone:
            raise _no_column(table, "--recode", column)
        else:
            absent.append(f"--recode {column}:{old}={new}")
    unmatched: list[str] = []
    series = []
    for column, pairs in changes.items():
        trimmed = table.frame[column].str.strip_chars()
        seen = set(trimmed.filter(trimmed.is_in(list(pairs))).unique().to_list())
        unmatched.extend(
            f"--recode {column}:{old}={new}" for old, new in pairs.items() if old not in seen
        )
        new_text = trimmed.replace_strict(
            list(pairs), [n if n.strip() else None for n in pairs.values()], default=None,
            return_dtype=pl.String,
        )  # fmt: skip
        hit = trimmed.is_in(list(pairs)).fill_null(False)
        series.append(new_text.zip_with(hit, table.frame[column]).alias(column))
    return replace(table, frame=table.frame.with_columns(series)), tuple(absent), tuple(unmatched)


def candidates(table: RawTable, role: str) -> list[str]:
    """The columns with a recognised name for a role, in the order of the recognised names."""
    by_lower: dict[str, list[str]] = {}
    for column in table.columns:
        by_lower.setdefault(column.lower(), []).append(column)
    found = [
        c
        for name in RECOGNISED[role]
        for c in by_lower.get(name, ())
        if table.frame[c].null_count() < table.frame.height
    ]
    if role == "response" and len(found) > 1:
        ids = [c for c in found if not is_prose(table.frame[c])]
        # A column `response` beside an `id` often holds what was said, not which response it is.
        found = ids or found
    return found


def wording_columns(table: RawTable, leave: Sequence[str]) -> tuple[Wordings, bool]:
    """Columns that look like one grader under reworded instructions, and whether their names say so.

    Names say so by a word (``phr1``, ``gpt-4_prompt_a``); a common start with running numbers
    (``score_1`` …) may as well be repeats or graders. All of a group are numbers, or have the same few
    values. Of several groups each is called by what stands before; one group has no name.
    """
    for pattern, said in ((_WORDED, True), (_NUMBERED, False)):
        groups: dict[str, list[str]] = {}
        for column in table.columns:
            found = pattern.fullmatch(column)
            if found and column not in leave and not (not said and _PERSON_LIKE.search(column)):
                groups.setdefault(found["name"] or "", []).append(column)
        alike = {n: tuple(g) for n, g in groups.items() if len(g) >= 2 and _on_one_scale(table, g)}
        if alike:
            one = len(alike) == 1
            return tuple(("" if one else n, g) for n, g in alike.items()), said
    return (), False


def _on_one_scale(table: RawTable, columns: Sequence[str]) -> bool:
    """Whether columns hold numbers throughout, or the same few values."""
    values = [table.frame[c].drop_nulls().str.strip_chars().unique() for c in columns]
    if not all(v.len() for v in values):
        return False
    if all(v.str.contains(_LIKE_A_NUMBER).all() for v in values):
        return True
    if max(v.len() for v in values) > _FEW_VALUES:
        return False
    seen = [set(v.to_list()) for v in values]
    shared = set.intersection(*seen)
    return 2 * len(shared) >= len(set.union(*seen))


def is_prose(series: pl.Series) -> bool:
    texts = series.drop_nulls().head(1000).cast(pl.String)
    return bool(texts.len() and texts.str.contains(r"\S\s+\S").mean() > 0.5)  # type: ignore[operator]


# --- which layouts ------------------------------------------------------------------------------


def with_recognised(
    table: RawTable, keys: Mapping[str, tuple[str, ...]], roles: Sequence[str], taken: Sequence[str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]], list[Text]]:
    """The keys, completed by recognised names: the keys, what is unclear, and notices.

    A role that several columns could have is unclear where the layout needs it; a cluster or vote
    is taken from the first recognised name, and the others are named in a notice.
    """
    full = dict(keys)
    unclear: dict[str, tuple[str, ...]] = {}
    notices: list[Text] = []
    used = {c for columns in keys.values() for c in columns} | set(taken)
    for role in roles:
        if role in full:
            continue
        # One of several columns that make up a response's id can still say which cluster it is in.
        joined = full.get("response", ()) if role == "cluster" else ()
        free = used - set(joined) if len(joined) > 1 else used
        found = [c for c in candidates(table, role) if c not in free]
        if not found:
            continue
        if len(found) > 1 and role in ("response", "grader", "label"):
            unclear[role] = tuple(found)
            continue
        refuse_ambiguous(table, found[:1])
        full[role] = (found[0],)
        used.add(found[0])
        if len(found) > 1:
            notices.append(
                say(
                    "{column} is taken as the {role}, as nothing else is named ({others} could "
                    "be it too).",
                    column=Name(found[0]),
                    role=role,
                    others=listed(found[1:], last="or"),
                )
            )
    return full, unclear, notices


def _canonical_keys(table: RawTable) -> dict[str, tuple[str, ...]]:
    """Canonical names that a long table uses for what they mean here.

    Where voirdire wrote the table they mean what they mean to us. In any other table a weight or a
    stratum changes results and is never guessed from a name, as in a wide one. An ``outcome`` is
    known by its values; where response, grader and label are all called by these names, so are the
    cluster and the vote.
    """
    columns = table.columns
    keys: dict[str, tuple[str, ...]] = {}
    if table.own:
        keys = {c: (c,) for c in CANONICAL if c in columns}
    elif all(c in columns for c in _PLAIN):
        keys = {c: (c,) for c in (*_PLAIN, "cluster", "vote") if c in columns}
    if "outcome" in columns and "outcome" not in keys:
        # What stands behind a colon is the reason.
        values = table.frame["outcome"].drop_nulls().str.replace(r"(?s):.*", "")
        values = values.str.strip_chars().str.to_lowercase().unique()
        if values.len() and values.is_in([*OUTCOMES, MISSING]).all():
            keys["outcome"] = ("outcome",)
    return keys


def _long_plan(
    table: RawTable, options: Options, keys: Mapping[str, tuple[str, ...]], *, forced: bool
) -> Plan | None:
    own = {r: c for r, c in _canonical_keys(table).items() if r not in keys}
    named = {c for columns in keys.values() for c in columns}
    own = {r: c for r, c in own.items() if not named & set(c)}
    full, unclear, notices = with_recognised(
        table, {**own, **keys}, ("label", "grader", "response", "cluster", "vote"), ()
    )
    if "label" not in full and "label" not in unclear and not forced:
        return None
    if options.graders and not forced and "label" not in keys:
        if "grader" not in full:
            if any(g in table.columns for g in options.graders):
                return None  # the graders are columns, so this is a wide table
        elif any(g in table.columns for g in options.graders):
            seen = table.frame.select(joined(full["grader"]).unique()).to_series()
            if not seen.is_in(list(options.graders)).any():
                return None
    needs = dict(unclear)
    for role in ("response", "label"):
        if role not in full and role not in needs:
            needs[role] = ()
    return Plan(layout="long", keys=full, needs=needs, notices=tuple(notices))


def _off_scale_values(series: pl.Series, texts: set[str], forms: set[str]) -> list[str] | None:
    """The values of a column that do not lie on the scale; ``None`` if next to nothing does."""
    values = series.drop_nulls().cast(pl.String).unique(maintain_order=True)
    if not 0 < values.len() <= 100 + 10 * len(texts):
        return None
    return [v for v in values.to_list() if v.strip() not in texts and number_form(v) not in forms]


def _wide_graders(
    table: RawTable, options: Options, used: set[str], *, forced: bool, alone: bool
) -> tuple[tuple[str, ...], list[Text]]:
    """The grader columns of a wide table, with notices where they were found by their values."""
    columns = [c for c in table.columns if c not in used]
    chosen = [g for g in options.graders if g in columns]
    named = {gold_name(columns, options), options.reference, *options.people}
    extra = [c for c in columns if c in named and c not in chosen]
    if options.graders:
        if not chosen and not (extra and (forced or not alone)):
            return (), []
        return (*chosen, *extra), []
    if options.scale or options.off_scale:
        marks = {m.strip() for m in (*options.missing, *(o for o, _ in options.map))}
        marks |= {m.strip() for m, _ in options.failed if m != "*"}
        texts = {*options.scale, *options.off_scale, *marks}
        forms = {f for c in texts if (f := number_form(c)) is not None}
        off = {c: _off_scale_values(table.frame[c], texts, forms) for c in columns}
        on_scale = tuple(c for c in columns if c in extra or off[c] == [])
        if len(on_scale) >= 2:
            return on_scale, _found_by_values(table, on_scale, extra, off)
    if extra and (forced or not alone):
        return tuple(extra), []
    return (), []


def _found_by_values(
    table: RawTable,
    graders: Sequence[str],
    extra: Sequence[str],
    off: Mapping[str, list[str] | None],
) -> list[Text]:
    notices: list[Text] = []
    if len(graders) > len(extra):
        notices.append(
            say(
                "These columns were taken as graders, as all their values lie on the scale: "
                "{names}. Choose with --graders.",
                names=listed(graders, most=20),
            )
        )
        worded, said = wording_columns(table, extra)
        if said:
            notices.append(
                say(
                    "If {names} are wordings of one instruction and no graders, name them so: "
                    "--phrasings {columns}.",
                    names=listed(worded[0][1], most=6),
                    columns=Name(typed_wordings(worded)[0]),
                )
            )
    for column, strange in off.items():
        if column in graders or not strange:
            continue
        cells = table.frame[column].drop_nulls().cast(pl.String)
        count = int(cells.is_in(strange).sum())
        if 2 * count < cells.len():
            notices.append(
                say(
                    "The column {column} was not taken as a grader: {n} of its cells are not on the "
                    "scale (such as {example}). If it is one, name it in --graders.",
                    column=Name(column),
                    n=count,
                    example=Name(_cut(strange[0])),
                )
            )
    return notices


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_LETTERS else text[:SHOWN_LETTERS] + "…"


def _wide_plan(
    table: RawTable,
    options: Options,
    keys: Mapping[str, tuple[str, ...]],
    *,
    forced: bool,
    alone: bool,
) -> Plan | None:
    wordings = phrasings_of(table, options)
    if wordings:
        return _wordings_plan(table, options, keys, wordings, alone=alone)
    if not forced and ("label" in keys or "grader" in keys):
        return None
    keys = {r: c for r, c in keys.items() if r not in ("label", "grader", "outcome", "line")}
    listed_columns = [
        *options.graders,
        options.reference,
        *options.people,
        gold_name(table.columns, options),
    ]
    full, unclear, notices = with_recognised(
        table, keys, ("response", "cluster", "vote"), listed_columns
    )
    used = {c for columns in full.values() for c in columns}
    used |= {c for columns in unclear.values() for c in columns}
    if not options.graders:
        # A table with a grader column has one label a row; its label column is no grader.
        labels = candidates(table, "label")
        if candidates(table, "grader"):
            used |= {*candidates(table, "grader"), *labels}
        elif not options.scale and len(labels) == 1 and not forced:
            gold = gold_name(table.columns, options)
            if gold in table.columns and gold not in used:
                return Plan(layout="wide", keys=full, graders=(labels[0], gold), needs=unclear)
    graders, found = _wide_graders(table, options, used, forced=forced, alone=alone)
    if not graders:
        return Plan(layout="wide", keys=full, needs={"graders": ()}) if forced else None
    refuse_ambiguous(table, graders)
    notices.extend(found)
    return Plan(layout="wide", keys=full, graders=graders, needs=unclear, notices=tuple(notices))


def _wordings_plan(
    table: RawTable,
    options: Options,
    keys: Mapping[str, tuple[str, ...]],
    wordings: Wordings,
    *,
    alone: bool,
) -> Plan:
    """The plan of a wide table in which each wording of a grader's instruction has a column.

    Beside them other graders can have a column each (gold, people). A column that names the grader
    of a row is used where ``--phrasings`` names none.
    """
    columns = [c for _, of_grader in wordings for c in of_grader]
    refuse_ambiguous(table, columns)
    named = any(grader for grader, _ in wordings)
    if "grader" in keys and named:
        raise UsageError(
            f"{printable(table.name)}: --grader {options.grader} says who graded a row, and --phrasings "
            f"{shown_name(wordings[0][0])}=… who graded a column. Leave one of the names out."
        )
    keys = {r: c for r, c in keys.items() if r != "outcome"}
    used = {c for role in keys for c in keys[role]} | set(columns)
    told = {gold_name([c for c in table.columns if c not in used], options), *options.people}
    told |= {options.reference, *options.graders}
    beside = tuple(c for c in table.columns if c in told and c not in used)
    roles = ["response", "cluster", "vote"]
    if not named and not beside and not options.grader_name:
        roles.insert(0, "grader")
    full, unclear, notices = with_recognised(table, keys, roles, (*columns, *beside))
    refuse_ambiguous(table, beside)
    ids = [c for c in candidates(table, "response") if c in columns]
    if ids and "response" not in full:
        raise UsageError(
            f"{printable(table.name)}: --phrasings names the column {shown_name(ids[0])}, which looks like the "
            "names of the responses. Leave it out, or name the column that has them: --response COLUMN."
        )
    return Plan(
        layout="wide",
        keys=full,
        graders=beside,
        needs=unclear,
        notices=tuple(notices),
        phrasings=wordings,
    )


def _whole(text: str | None) -> int | None:
    found = _WHOLE_NUMBER.fullmatch(text) if text is not None else None
    if not found:
        return None
    number = int(found[1]) if len(found[1]) < 19 else 2**63
    return number if number < 2**63 else None


def _counts_plan(
    table: RawTable, options: Options, keys: Mapping[str, tuple[str, ...]], *, forced: bool
) -> Plan | None:
    if not forced and any(r in keys for r in ("label", "response")):
        return None
    keys = {r: c for r, c in keys.items() if r == "grader"}
    full, unclear, notices = with_recognised(table, keys, ("grader",), ())
    needs = dict(unclear)
    if "grader" not in full and "grader" not in needs:
        if not forced:
            return None
        needs["grader"] = ()
    used = {c for columns in (*full.values(), *unclear.values()) for c in columns}
    columns = [c for c in table.columns if c not in used]
    known = (*options.scale, *options.off_scale)
    by_form = {number_form(c): c for c in known if number_form(c) is not None}
    classes: dict[str, str] = {}
    for column in columns:
        class_ = column.strip() if column.strip() in known else by_form.get(number_form(column))
        if class_ is not None and class_ not in classes:
            classes[class_] = column
    left = [c for c in columns if c not in classes.values()]
    total = next((c for c in left if c.strip().lower() == "total"), "")
    outcomes = {c.strip().lower(): c for c in left if c.strip().lower() in _OUTCOME_WORDS}
    unprinted: tuple[str, ...] = ()
    if known:
        classes = {c: classes[c] for c in known if c in classes}
        unprinted = tuple(c for c in known if c not in classes)
        if unprinted:
            notices.append(
                say(
                    "No column is called {names}: the counts of these classes are taken as "
                    "unprinted, not as 0.",
                    names=listed(unprinted),
                )
            )
    else:
        reserved = {total, *outcomes.values()}
        found = [c for c in left if c not in reserved and _holds_counts(table.frame[c])]
        if not total and (total := _sum_column(table.frame, found, list(outcomes.values()))):
            found.remove(total)
            notices.append(
                say(
                    "The column {column} holds the sum of the other counts in every row that has all of "
                    "them, so it is taken as the total and is no class. Rename it if it is a class.",
                    column=Name(total),
                )
            )
        classes = {c.strip(): c for c in found}
        if found:
            notices.append(
                say(
                    "The columns with counts are taken as the classes: {names}.",
                    names=listed(found),
                )
            )
    if not forced:
        counted = [c for c in classes.values() if _holds_counts(table.frame[c])]
        if not known:
            # Running numbers over 0 and 1 alone are the lines of a checklist, or graders.
            lines = _lines_of_bits(table, counted)
            counted = [c for c in counted if c not in lines]
        if len(counted) < 2 or (not known and (candidates(table, "label") or _has_ids(table))):
            return None
    if len(classes) < 2:
        needs["scale"] = tuple(classes.values())
    refuse_ambiguous(table, (*classes.values(), *outcomes.values(), *([total] if total else ())))
    return Plan(
        layout="counts",
        keys=full,
        classes=classes,
        unprinted=unprinted,
        outcomes=outcomes,
        total=total,
        needs=needs,
        notices=tuple(notices),
    )


def _sum_column(frame: pl.DataFrame, found: Sequence[str], outcomes: Sequence[str]) -> str:
    """The column that is named like a total and is the sum of the others, else an empty text.

    Two complete rows are the least that it rests on, and two other classes: one class always equals
    its own sum. Where calls without a label are printed too, all rows hold them in the sum or none do.
    """
    for column in found:
        if column.strip().lower() not in _TOTAL_WORDS:
            continue
        others = [c for c in found if c != column]
        if len(others) < 2:
            continue
        names = [column, *others, *outcomes]
        rows = [
            [_whole(v) for v in row] for row in frame.select(pl.col(names).cast(pl.String)).rows()
        ]
        whole = [[n for n in row if n is not None] for row in rows if None not in row]
        labels = len(others) + 1
        sums = any(all(row[0] == sum(row[1:end]) for row in whole) for end in (labels, len(names)))
        # A row that lacks a count may fall short of its total, and never goes beyond it.
        fits = all(row[0] is None or row[0] >= sum(n or 0 for n in row[1:labels]) for row in rows)
        if len(whole) >= 2 and any(row[0] for row in whole) and sums and fits:
            return column
    return ""


def _has_ids(table: RawTable) -> bool:
    return bool(candidates(table, "response"))


def _lines_of_bits(table: RawTable, columns: Sequence[str]) -> set[str]:
    """Of these columns those with a common start, running numbers and nothing but 0, 1 and blanks."""
    groups: dict[str, dict[int, str]] = {}
    for column in columns:
        found = _NUMBERED.fullmatch(column)
        if found and table.frame[column].drop_nulls().str.contains(r"^\s*[01](\.0*)?\s*$").all():
            number = int(re.split(r"\D", column)[-1])
            groups.setdefault(found["name"], {})[number] = column
    runs = (g for g in groups.values() if min(g) <= 1 and max(g) - min(g) < len(g) >= 2)
    return {c for g in runs for c in g.values()}


def _holds_counts(series: pl.Series) -> bool:
    """Whether a column holds counts, of which a few may be spelled wrongly (``1,234``)."""
    values = series.drop_nulls().cast(pl.String)
    if not values.len():
        return False
    whole = int(values.str.contains(r"^\s*\+?\d+(\.0*)?\s*$").sum())
    like = int(values.str.contains(_LIKE_A_NUMBER).sum())
    return whole == values.len() or (like == values.len() and 2 * whole >= values.len())


def which_layouts(
    table: RawTable,
    options: Options,
    keys: Mapping[str, tuple[str, ...]],
    *,
    alone: bool = True,
) -> tuple[Plan, ...]:
    """The layouts of labels and counts that a table fits, each with which column is what.

    ``keys`` are the columns that options name. A plan with ``needs`` fits once these are given.
    With a layout named in the options only that one is looked at.
    """
    wanted = "wide" if phrasings_of(table, options) else options.layout
    found: list[Plan | None] = []
    if wanted in ("auto", "long"):
        found.append(_long_plan(table, options, keys, forced=wanted == "long"))
    if wanted in ("auto", "wide"):
        found.append(_wide_plan(table, options, keys, forced=wanted == "wide", alone=alone))
    if wanted in ("auto", "counts"):
        found.append(_counts_plan(table, options, keys, forced=wanted == "counts"))
    return tuple(plan for plan in found if plan is not None)


# --- rows ---------------------------------------------------------------------------------------


def joined(columns: Sequence[str]) -> pl.Expr:
    if len(columns) == 1:
        return pl.col(columns[0])
    return pl.concat_str([pl.col(c) for c in columns], separator="/")


def _refuse_merged(table: RawTable, role: str, columns: Sequence[str]) -> None:
    """Raise if joining made one id of two different ones, as ``a/b`` + ``c`` and ``a`` + ``b/c``."""
    if len(columns) < 2:
        return
    frame = table.frame.select(columns).drop_nulls()
    if not frame.select(pl.any_horizontal(pl.all().str.contains("/", literal=True).any())).item():
        return
    distinct = frame.unique().with_columns(joined(columns).alias("\0joined"))
    twice = distinct.filter(pl.col("\0joined").is_duplicated()).sort("\0joined", *columns)
    if not twice.height:
        return
    merged = twice["\0joined"][0]
    first, second = twice.filter(pl.col("\0joined") == merged).select(columns).rows()[:2]
    as_text = " and ".join(
        "(" + ", ".join(f'"{printable(cell)}"' for cell in row) + ")" for row in (first, second)
    )
    raise InputError(
        f"{printable(table.name)}: --{role} {'+'.join(map(shown_name, columns))}: {as_text} both "
        f'become "{printable(merged)}". Join the columns in another order, or --recode a spelling.'
    )


def canonical_frame(
    table: RawTable, keys: Mapping[str, tuple[str, ...]], used_up: Sequence[str]
) -> tuple[pl.DataFrame, list[Text]]:
    """The canonical columns that ``keys`` give, then every other column as a tag.

    ``used_up`` are columns that are no tags. A tag whose name means something else here is renamed.
    """
    expressions: list[pl.Expr] = []
    gone = set(used_up)
    for role in CANONICAL:
        columns = keys.get(role)
        if not columns:
            continue
        _refuse_merged(table, role, columns)
        expressions.append(joined(columns).alias(role))
        if len(columns) == 1 and (columns[0] == role or role in _USED_UP):
            gone.add(columns[0])
    notices: list[Text] = []
    taken = {*CANONICAL, *table.columns}
    for column in table.columns:
        if column in gone:
            continue
        name = column
        if column in CANONICAL:
            name = f"{column} (column)"
            while name in taken:
                name += "'"
            notices.append(
                say(
                    "The column {old} is kept as the tag {new}, as {old} has a meaning of its own "
                    "here. If it is the {old}, say so with --{flag} {old}.",
                    old=Name(column),
                    new=Name(name),
                    flag=column,
                )
            )
        expressions.append(pl.col(column).alias(name))
    frame = table.frame.select(expressions) if expressions else pl.DataFrame()
    return frame, notices


def mixed_notices(table: RawTable, keys: Mapping[str, tuple[str, ...]]) -> list[Text]:
    return [
        say(
            "Column {column}: {n} values are a number in some rows and text in others (such as "
            "{example}); number and text are taken as one.",
            column=Name(column),
            n=table.mixed[column][0],
            example=Name(table.mixed[column][1]),
        )
        for column in dict.fromkeys(c for role in keys if role != "label" for c in keys[role])
        if column in table.mixed
    ]


def holds_own_counts(table: RawTable) -> bool:
    """Whether voirdire wrote this table from counts: then no row has a response."""
    if table.carried:
        return table.carried.get("kind") == "counts"
    frame = table.frame
    return (
        table.own
        and frame["response"].null_count() == frame.height
        and frame["weight"].null_count() < frame.height
    )


def own_plan(table: RawTable, keys: Mapping[str, tuple[str, ...]]) -> Plan:
    """The plan for a table that voirdire wrote: every canonical column is what it is called."""
    own = {c: (c,) for c in CANONICAL if c in table.columns}
    if holds_own_counts(table):
        return Plan(layout="counts", keys=own)
    if table.frame["line"].null_count() < table.frame.height if "line" in own else False:
        return Plan(layout="checklist", keys=own)
    needs: dict[str, tuple[str, ...]] = {r: () for r in ("response", "label") if r not in own}
    return Plan(layout="long", keys={**own, **keys}, needs=needs)


def without_empty_rows(table: RawTable) -> tuple[pl.DataFrame, np.ndarray | None, list[Text]]:
    """The rows that hold anything at all, with their positions in the file."""
    # A table's first column is rarely blank: look at the others only where it is.
    if not table.frame[table.columns[0]].null_count():
        return table.frame, None, []
    empty = table.frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    if not empty.any():
        return table.frame, None, []
    notices = [say("{n} rows without any content were left out.", n=int(empty.sum()))]
    return table.frame.filter(~empty), np.flatnonzero(~empty.to_numpy()), notices


def refuse_blank(
    table: RawTable,
    frame: pl.DataFrame,
    index: np.ndarray | None,
    role: str,
    columns: Sequence[str],
) -> None:
    """Raise with the lines of all rows whose id is blank, in whole or in part."""
    blank = frame.select(pl.any_horizontal(pl.col(c).is_null() for c in columns)).to_series()
    rows = np.flatnonzero(blank.to_numpy())
    if not rows.size:
        return
    problems = Problems(table.name, unit=table.unit)
    for row in rows[: problems.room].tolist():
        column = next(c for c in columns if frame[c][row] is None)
        at = int(index[row]) if index is not None else row
        problems.add(table.line(at), f"the {role} is blank", column=column)
    problems.add_unseen(rows.size - problems.count)
    problems.raise_if_any(
        f"Every row needs its {role}: fill it in, or name another column with --{role}."
    )


def no_graders(table: RawTable, options: Options, seen: Sequence[str], what: str) -> UsageError:
    wanted = [g for g in options.graders if g not in seen]
    names = ", ".join(shown_name(s) for s in seen[:20])
    more = f" and {len(seen) - 20:,} more" if len(seen) > 20 else ""
    return UsageError(
        f"{printable(table.name)}: --graders: there is no {what} "
        f'"{shown_name(wanted[0])}".{near(wanted[0], seen)} {what.capitalize()}s: {names}{more}.'
    )


def lay_out(table: RawTable, options: Options, plan: Plan, *, alone: bool) -> Laid:
    """The canonical rows of a table under a plan that needs nothing more."""
    if plan.layout == "counts" and not plan.classes:
        laid = _own_counts(table)
    elif plan.layout == "long":
        laid = long_table(table, options, plan, alone=alone)
    elif plan.layout == "wide":
        laid = _wide(table, options, plan, alone=alone)
    else:
        laid = _counts(table, options, plan)
    return replace(laid, notices=(*table.notices, *plan.notices, *laid.notices))


def long_table(table: RawTable, options: Options, plan: Plan, *, alone: bool) -> Laid:
    keys = dict(plan.keys)
    raw, index, notices = without_empty_rows(table)
    if not raw.height:
        raise InputError(f"{printable(table.name)}: all rows are blank.")
    held = replace(table, frame=raw)
    for role in ("response", "grader"):
        if role in keys:
            refuse_blank(table, raw, index, role, keys[role])
    frame, renamed = canonical_frame(held, keys, ())
    notices += [*mixed_notices(table, keys), *renamed]
    if "grader" in keys:
        seen = tuple(frame["grader"].unique(maintain_order=True).to_list())
    else:
        name = options.grader_name or table.stem
        seen = (name,)
        at = 1 if "response" in frame.columns else 0
        frame.insert_column(
            at, pl.Series("grader", [name], dtype=pl.String).new_from_index(0, frame.height)
        )
    if options.graders:
        others = {options.reference, *options.people, gold_name(seen, options)} - {""}
        wanted = {*options.graders, *others}
        missing = [g for g in options.graders if g not in seen]
        here = [g for g in seen if g in wanted]
        if missing and (alone or not here):
            raise no_graders(table, options, seen, "grader")
        dropped = [g for g in seen if g not in wanted]
        if dropped:
            keep = frame["grader"].is_in(list(wanted))
            notices.append(
                say(
                    "{n} rows of graders not named in --graders were left out: {names}.",
                    n=int((~keep).sum()),
                    names=listed(dropped),
                )
            )
            positions = np.flatnonzero(keep.to_numpy())
            index = positions if index is None else index[positions]
            frame = frame.filter(keep)
    # Of several files each may hold a phrasing of its own; a column that nobody named asks nothing.
    if alone and options.phrasing and frame.height > 1:
        notices += _one_phrasing(frame)
    column = "+".join(keys["label"])

    def place(row: int) -> Place:
        at = int(index[row]) if index is not None else row
        return Place(line=table.line(at), column=column, unit=table.unit)

    return Laid(frame=frame, place=place, layout="long", seen=seen, notices=tuple(notices))


def _one_phrasing(frame: pl.DataFrame) -> list[Text]:
    """What is said where a column of phrasings holds one alone."""
    values = frame["phrasing"].drop_nulls().str.strip_chars().unique()
    values = values.filter(values != "")
    if len(values) != 1:
        return []
    named = pl.col("phrasing").str.strip_chars().fill_null("") != ""
    per_grader = frame.group_by("grader").agg(named.any().alias("some"), named.all().alias("all"))
    if (per_grader["some"] & ~per_grader["all"]).any():
        return []  # a wording without a name beside it is told with the labels
    return [
        say(
            "All rows are of one phrasing, {name}: nothing can be said of the wording. A study of phrasings "
            "needs the same responses under two or more.",
            name=Name(values[0]),
        )
    ]


def _wide(table: RawTable, options: Options, plan: Plan, *, alone: bool) -> Laid:
    keys = dict(plan.keys)
    unnamed = options.grader_name or table.stem
    # What each column holds: whose labels, and under which wording where there are several.
    held: list[tuple[str, str | None, str | None]] = [(c, c, None) for c in plan.graders]
    for grader, wordings in plan.phrasings:
        held += [(c, None if "grader" in keys else grader or unnamed, c) for c in wordings]
    columns = [c for c, _, _ in held]
    graders = tuple(dict.fromkeys(g for _, g, _ in held if g is not None))
    if options.graders and alone:
        missing = [g for g in options.graders if g not in graders]
        if missing and "grader" not in keys:
            raise no_graders(table, options, [*table.columns, *graders], "column")
    _refuse_two_ways(table, plan, unnamed)
    notices: list[Text] = []
    index: np.ndarray | None = None
    if "response" in keys:
        raw, index, notices = without_empty_rows(table)
        if not raw.height:
            raise InputError(f"{printable(table.name)}: all rows are blank.")
        refuse_blank(table, raw, index, "response", keys["response"])
    else:
        raw = table.frame
        notices.append(
            say(
                "No column is named as the response, so each row is a response of its own, numbered "
                "from 1. Name it with --response."
            )
        )
    if "grader" in keys:
        refuse_blank(table, raw, index, "grader", keys["grader"])
        raw, index, left_out = _of_graders(table, options, raw, index, keys["grader"], alone=alone)
        notices += left_out
    frame, renamed = canonical_frame(replace(table, frame=raw), keys, columns)
    notices += [*mixed_notices(table, keys), *renamed]
    n, k = raw.height, len(columns)
    if "response" not in keys:
        numbers = pl.int_range(1, n + 1, eager=True).cast(pl.String).alias("response")
        frame = frame.insert_column(0, numbers) if frame.width else pl.DataFrame([numbers])
    rows = np.repeat(np.arange(n, dtype=np.uint32), k)
    # Row by row in the file's order, and in each row the columns in theirs.
    cells = (np.arange(n)[:, None] + n * np.arange(k)[None, :]).ravel()
    labels = pl.concat([raw[c].alias("label") for c in columns]).gather(cells)
    which = np.tile(np.arange(k), n)
    frame = frame[rows]
    if "grader" not in keys:
        names = pl.Series("grader", [g for _, g, _ in held], dtype=pl.String)
        frame.insert_column(1, names.gather(which))
    frame.insert_column(2, labels)
    if plan.phrasings:
        under = pl.Series("phrasing", [w for _, _, w in held], dtype=pl.String)
        frame = frame.with_columns(under.gather(which))
    if "grader" in keys:
        graders = tuple(frame["grader"].unique(maintain_order=True).to_list())

    def place(row: int) -> Place:
        at = row // k
        at = int(index[at]) if index is not None else at
        return Place(line=table.line(at), column=columns[row % k], unit=table.unit)

    return Laid(
        frame=frame,
        place=place,
        layout="wide",
        order=() if "grader" in keys else graders,
        seen=graders,
        notices=tuple(notices),
        height=n,
    )


def _of_graders(
    table: RawTable,
    options: Options,
    raw: pl.DataFrame,
    index: np.ndarray | None,
    grader: Sequence[str],
    *,
    alone: bool,
) -> tuple[pl.DataFrame, np.ndarray | None, list[Text]]:
    """The rows of the graders of ``--graders``, of gold, reference and people; all where none is named."""
    if not options.graders:
        return raw, index, []
    names = raw.select(joined(grader)).to_series()
    seen = names.unique(maintain_order=True).to_list()
    wanted = {*options.graders, options.reference, *options.people, gold_name(seen, options)}
    if (set(options.graders) - set(seen) and alone) or not wanted & set(seen):
        raise no_graders(table, options, seen, "grader")
    keep = np.flatnonzero(names.is_in(list(wanted)).to_numpy())
    if len(keep) == raw.height:
        return raw, index, []
    dropped = [g for g in seen if g not in wanted]
    note = say(
        "{n} rows of graders not named in --graders were left out: {names}.",
        n=raw.height - len(keep),
        names=listed(dropped),
    )
    return raw[keep], keep if index is None else index[keep], [note]


def _refuse_two_ways(table: RawTable, plan: Plan, unnamed: str) -> None:
    """Raise where a grader of ``--phrasings`` is called as a column is that stands for itself."""
    for grader, columns in plan.phrasings:
        if (grader or unnamed) in plan.graders and "grader" not in plan.keys:
            name = shown_name(grader or unnamed)
            raise UsageError(
                f"{printable(table.name)}: {name} is a column of labels, and the grader of --phrasings "
                f"{','.join(map(shown_name, columns))} is called the same. Give it another name: "
                f"--grader-name NAME, or --phrasings NAME={','.join(map(shown_name, columns))}."
            )


# --- counts -------------------------------------------------------------------------------------


def _counts(table: RawTable, options: Options, plan: Plan) -> Laid:
    raw, index, notices = without_empty_rows(table)
    if not raw.height:
        raise InputError(f"{printable(table.name)}: all rows are blank.")
    keys = dict(plan.keys)
    refuse_blank(table, raw, index, "grader", keys["grader"])
    held = replace(table, frame=raw)
    columns = [
        *plan.classes.values(),
        *plan.outcomes.values(),
        *([plan.total] if plan.total else []),
    ]
    frame, renamed = canonical_frame(held, keys, columns)
    notices += renamed
    tags = [c for c in frame.columns if c not in CANONICAL]
    lines = [table.line(int(index[i]) if index is not None else i) for i in range(raw.height)]
    problems = Problems(table.name, unit=table.unit)
    numbers = _checked_counts(raw, columns, lines, problems)
    _check_repeats(frame, tags, lines, problems)
    totals = _checked_totals(plan, numbers, frame["grader"].to_list(), lines, problems, notices)
    problems.raise_if_any(
        "A count is a whole number from 0, written without separators; a blank cell is a count that "
        "nobody printed."
    )
    if options.graders:
        seen_all = frame["grader"].to_list()
        missing = [g for g in options.graders if g not in seen_all]
        if missing:
            raise no_graders(table, options, list(dict.fromkeys(seen_all)), "grader")
    kept: list[int] = []
    graders = frame["grader"].to_list()
    named = {*options.graders, options.reference, *options.people, gold_name(graders, options)}
    source_rows: list[int] = []
    labels: list[str | None] = []
    outcomes: list[str | None] = []
    weights: list[int | None] = []
    cells: list[str] = []
    for i, grader in enumerate(graders):
        if options.graders and grader not in named:
            continue
        kept.append(i)
        entries: list[tuple[str | None, str | None, int | None, str]] = [
            (class_, None, numbers[column][i], column) for class_, column in plan.classes.items()
        ]
        entries += [(class_, None, None, "") for class_ in plan.unprinted]
        entries += [(None, o, numbers[column][i], column) for o, column in plan.outcomes.items()]
        if totals[i] is not None:
            entries.append((None, "label", totals[i], plan.total))
        for label, outcome, weight, column in entries:
            source_rows.append(i)
            labels.append(label)
            outcomes.append(outcome)
            weights.append(weight)
            cells.append(column)
    dropped = raw.height - len(kept)
    if dropped:
        notices.append(say("{n} rows of graders not named in --graders were left out.", n=dropped))
    laid = frame[source_rows]
    laid = laid.select(
        pl.col("grader"),
        pl.Series("label", labels, dtype=pl.String),
        pl.Series("outcome", outcomes, dtype=pl.String),
        pl.Series("weight", weights, dtype=pl.Int64),
        *(pl.col(c) for c in tags),
    )
    return Laid(
        frame=laid,
        place=lambda row: Place(line=lines[source_rows[row]], column=cells[row], unit=table.unit),
        layout="counts",
        kind="counts",
        order=tuple(dict.fromkeys(graders[i] for i in kept)),
        seen=tuple(dict.fromkeys(graders)),
        notices=tuple(notices),
    )


def _own_counts(table: RawTable) -> Laid:
    """Counts as voirdire wrote them: they are in their canonical rows already."""
    weight = table.frame["weight"]
    if weight.dtype == pl.String:
        weight = weight.cast(pl.Float64)
        if (weight == weight.round()).all():
            weight = weight.cast(pl.Int64)
    return Laid(
        frame=table.frame.drop("response", strict=False).with_columns(weight),
        place=lambda row: Place(line=table.line(row), unit=table.unit),
        layout="counts",
        kind="counts",
        seen=tuple(table.frame["grader"].unique(maintain_order=True).to_list()),
    )


def _checked_counts(
    raw: pl.DataFrame, columns: Sequence[str], lines: Sequence[int], problems: Problems
) -> dict[str, list[int | None]]:
    numbers: dict[str, list[int | None]] = {column: [] for column in columns}
    cells = {column: raw[column].to_list() for column in columns}
    for i, line in enumerate(lines):
        for column in columns:
            text = cells[column][i]
            number = _whole(text)
            if number is None and text is not None:
                problems.add(line, f"{shown(text)} is no count", column=column)
            numbers[column].append(number)
    return numbers


def _check_repeats(
    frame: pl.DataFrame, tags: Sequence[str], lines: Sequence[int], problems: Problems
) -> None:
    first: dict[tuple[str | None, ...], int] = {}
    for i, row in enumerate(frame.select("grader", *tags).rows()):
        if row in first:
            same = " with the same tags" if tags else ""
            problems.add(
                lines[i],
                f"grader {shown_name(str(row[0]))} stands here again{same} "
                f"(first on {problems.unit} {lines[first[row]]:,})",
            )
        else:
            first[row] = i


def _checked_totals(
    plan: Plan,
    numbers: Mapping[str, list[int | None]],
    graders: Sequence[str],
    lines: Sequence[int],
    problems: Problems,
    notices: list[Text],
) -> list[int | None]:
    """The number of labels of each row, from its printed total; null where none is printed."""
    if not plan.total:
        return [None] * len(graders)
    totals = list(numbers[plan.total])
    rows = range(len(totals))
    by_class = [[numbers[c][i] for c in plan.classes.values()] for i in rows]
    by_outcome = [[numbers[c][i] for c in plan.outcomes.values()] for i in rows]
    whole = [
        i
        for i in rows
        if totals[i] is not None and None not in by_class[i] + by_outcome[i] and not plan.unprinted
    ]
    failures = [sum(n or 0 for n in by_outcome[i]) for i in rows]
    of_classes = [sum(n or 0 for n in by_class[i]) for i in rows]
    if any(failures[i] for i in whole) and all(
        totals[i] == of_classes[i] + failures[i] for i in whole
    ):
        # The totals count calls, those that ended without a label among them.
        notices.append(
            say(
                "The column {column} counts all calls, so calls without a label were taken off it.",
                column=Name(plan.total),
            )
        )
        for i in rows:
            total = totals[i]
            totals[i] = None if total is None or None in by_outcome[i] else total - failures[i]
    for i in rows:
        total = totals[i]
        if total is None:
            continue
        if total < of_classes[i]:
            problems.add(
                lines[i],
                f"the total of grader {shown_name(graders[i])} is {total:,}, and its classes add up "
                f"to {of_classes[i]:,}",
                column=plan.total,
            )
        elif total > of_classes[i] and i in whole:
            notices.append(
                say(
                    "{n} labels of grader {grader} are in no printed class.",
                    n=total - of_classes[i],
                    grader=Name(graders[i]),
                )
            )
    return totals
