"""What to tell a person whose table fits no layout, or several: what was seen, and exact commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import polars as pl

from voirdire.errors import InputError, UsageError, VoirdireError
from voirdire.labels import gold_name, number_form
from voirdire.options import Options, typed_wordings
from voirdire.readers._checklist import PREFIX, found_prefix, holds_verdicts, numbered_columns
from voirdire.readers._layout import Plan, Wordings, candidates, wording_columns
from voirdire.readers._raw import RawTable, shown_name
from voirdire.source import Source
from voirdire.wording import printable

_POOLED = re.compile(r"modal|majority|consensus|council|adjudicat|aggregate|agreement", re.I)
_GRADER_LIKE = re.compile(r"grader|judge|annotator|rater|scorer|evaluator", re.I)
_LABEL_LIKE = re.compile(
    r"label|verdict|score|rating|grade|prefer|compli|refus|pass|correct|safe|harm|toxic|jailb", re.I
)
_NO_GRADER = re.compile(r"agreement|flag|fail|parse|error|index|idx|trial|seed|epoch|repeat", re.I)
_CLUSTER_LIKE = re.compile(r"prompt|question|goal|behaviou?r|session|core|topic", re.I)
_GOLD_LIKE = re.compile(r"(?i)(.*[^a-z])?(human|gold|final|truth|expert|adjudicated)([^a-z].*)?")
_SHOWN_COLUMNS = 24
_LONGEST_WORD = 2000
_MOST_CLASSES = 12
_MOST_NUMBERS = 101  # of a score from 0 to 100


def _as_list(names: Sequence[str]) -> str:
    return ",".join(n.replace("\\", "\\\\").replace(",", "\\,") for n in names)


def given(options: Options, without: Sequence[str] = ()) -> list[str]:
    """The options given so far, as they are typed."""
    words: list[str] = []
    for name, value in options.changed().items():
        if name in without or name == "about":
            continue
        flag = "--" + name.replace("_", "-")
        current = getattr(options, name)
        if name in ("map", "failed", "drop"):
            words += [w for old, new in current for w in (flag, f"{old}={new}")]
        elif name == "recode":
            words += [w for column, old, new in current for w in (flag, f"{column}:{old}={new}")]
        elif name in ("range", "rate", "derived_from"):
            words += [w for key, parts in current for w in (flag, f"{key}={'+'.join(parts)}")]
        elif name == "phrasings":
            words += [w for text in typed_wordings(current) for w in (flag, text)]
        elif name in ("missing", "by", "cut", "standardise"):
            words += [w for text in current for w in (flag, str(text))]
        elif isinstance(value, list):
            words += [flag, _as_list(current)]
        elif value is True:
            words.append(flag)
        else:
            words += [flag, str(value)]
    return words


def typed(words: Sequence[str]) -> str:
    """A command line that gives a shell these words; what is unsafe to show is spelled out in ``$'…'``."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if printable(word) == word:
        return shlex.quote(word)
    return "$'" + "".join(map(_spelled, word)) + "'"


def _spelled(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if printable(character) == character:
        return character
    if "\udc80" <= character <= "\udcff":  # a byte of a file's name that is no UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return f"\\U{ord(character):08x}"


def command(
    source: Source, options: Options, layout: str, roles: Mapping[str, str | Sequence[str]]
) -> str:
    """The command that reads this input under a layout, quoted for a shell."""
    words = ["voirdire", "audit", source.argument, "--layout", layout]
    for role, value in roles.items():
        text = value if isinstance(value, str) else _as_list(value)
        if text:
            words += [f"--{role.replace('_', '-')}", text]
    words += given(options, ("layout", *(r.replace("-", "_") for r in roles)))
    # No command with a word of this length can be copied; a hostile file may have such a column.
    words = [w if len(w) <= _LONGEST_WORD else "COLUMN" for w in words]
    return typed(words)


# --- guesses ------------------------------------------------------------------------------------


def _height(table: RawTable) -> int:
    return table.frame.height


def _distinct(table: RawTable, columns: Sequence[str]) -> int:
    return int(table.frame.select(pl.struct(columns).n_unique()).item())


def _doubled(table: RawTable) -> tuple[str, ...]:
    """Columns that share their header with another: no command can name them."""
    return tuple(c for columns in table.ambiguous.values() for c in columns)


def _guessed_response_within(table: RawTable, leave: Sequence[str], within: Sequence[str]) -> str:
    """The fewest columns that tell the rows of one grader apart and are shared by several graders."""
    likely = [c for c in _like_ids(table, leave) if c not in within][:7]
    for size in (1, 2, 3, 4):
        for columns in combinations(likely, size):
            apart = _distinct(table, [*columns, *within]) == _height(table)
            if apart and _distinct(table, columns) < _height(table):
                return "+".join(columns)
    return guessed_response(table, [*leave, *within])


def _like_ids(table: RawTable, leave: Sequence[str]) -> list[str]:
    """Columns that may be part of an id: no blanks, no long text, no measured number."""
    return [
        c
        for c in table.columns
        if c not in leave
        and not table.frame[c].null_count()
        and (table.frame[c].str.len_chars().mean() or 0) <= 200  # type: ignore[operator]
        and not table.frame[c].str.contains(r"^-?\d+\.\d{3,}$").any()
    ]


def guessed_response(table: RawTable, leave: Sequence[str]) -> str:
    """The column, or the columns to join, that tell rows apart; empty if there are none."""
    leave = [*leave, *_doubled(table)]
    known = [c for c in candidates(table, "response") if c not in leave]
    if known and _distinct(table, known[:1]) == _height(table):
        return known[0]
    likely = _like_ids(table, leave)
    for column in likely:
        if _distinct(table, [column]) == _height(table):
            return column
    for size in (2, 3, 4):
        for columns in combinations(likely[:7], size):
            if _distinct(table, columns) == _height(table):
                return "+".join(columns)
    return known[0] if known else ""


def guessed_graders(table: RawTable, leave: Sequence[str]) -> tuple[str, ...]:
    """Columns that look like the labels of several graders: few classes, and the same ones.

    Where there are none, columns of the same numbers, each of which comes up several times.
    """
    leave = [*leave, *_doubled(table)]
    return _of_same_words(table, leave) or _of_same_words(table, leave, numbers=True)


def _of_same_words(
    table: RawTable, leave: Sequence[str], *, numbers: bool = False
) -> tuple[str, ...]:
    most = _MOST_NUMBERS if numbers else _MOST_CLASSES
    vocabularies: dict[str, set[str]] = {}
    for column in table.columns:
        if column in leave or _NO_GRADER.search(column):
            continue
        values = table.frame[column].drop_nulls()
        counts = values.value_counts(sort=True)
        # In a longer table a class comes up more than once; what does not is an odd reply.
        repeated = counts.filter(pl.col("count") > 1) if values.len() > 30 else counts
        common = repeated.to_series().to_list()
        if not common or len(common) > most or len(counts) > len(common) + 30:
            continue
        if numbers and (
            2 * len(common) > values.len() or any(number_form(v) is None for v in common)
        ):
            continue
        vocabularies[column] = {number_form(v) or v.strip() for v in common}
    best: tuple[str, ...] = ()
    best_words = 0
    for column, words in vocabularies.items():
        alike = tuple(
            c
            for c, other in vocabularies.items()
            if 2 * len(words & other) > len(words | other) or other <= words
        )
        if (
            column in alike
            and len(alike) >= 2
            and (len(alike), len(words)) > (len(best), best_words)
        ):
            best, best_words = alike, len(words)
    return best


def _guessed_label(table: RawTable, leave: Sequence[str]) -> str:
    known = [c for c in candidates(table, "label") if c not in leave]
    if known:
        return known[0]
    left = [c for c in table.columns if c not in leave and not _CLUSTER_LIKE.search(c)]
    few = [c for c in left if 0 < table.frame[c].drop_nulls().n_unique() <= _MOST_CLASSES]
    named = [c for c in few if _LABEL_LIKE.search(c)] or [c for c in left if _LABEL_LIKE.search(c)]
    if named:
        return named[0]
    return few[0] if len(few) == 1 else ""


def _seen(table: RawTable) -> list[str]:
    lines = []
    for column in table.columns[:_SHOWN_COLUMNS]:
        series = table.frame[column]
        values = series.drop_nulls().unique(maintain_order=True)
        first = ", ".join(shown_name(v) for v in values.head(3).to_list())
        more = f", … ({values.len():,} different)" if values.len() > 3 else ""
        blank = f"; {series.null_count():,} blank" if series.null_count() else ""
        lines.append(f"  {shown_name(column)}: {first or 'blank throughout'}{more}{blank}")
    if len(table.columns) > _SHOWN_COLUMNS:
        lines.append(f"  … and {len(table.columns) - _SHOWN_COLUMNS:,} more columns")
    return lines


def _several(table: RawTable, graders: Sequence[str]) -> bool:
    return bool(graders) and _distinct(table, graders) > 1


def _gold_like(names: Sequence[str]) -> str:
    """The one column whose name says that it may be the truth; empty if there is none, or several."""
    like = [n for n in names if _GOLD_LIKE.fullmatch(n)]
    return like[0] if len(like) == 1 and len(names) > 1 else ""


def gold_columns(table: RawTable) -> list[str]:
    """Columns of a second file that may hold gold: pooled or adjudicated labels of few classes."""
    return [
        c
        for c in table.columns
        if c not in _doubled(table)
        and (_POOLED.search(c) or _GOLD_LIKE.fullmatch(c))
        and 0 < table.frame[c].drop_nulls().n_unique() <= _MOST_CLASSES
    ]


def gold_beside(
    name: str, gold: str, others: Sequence[Source], files: Sequence[Source], options: Options
) -> InputError:
    """The error for a file beside label tables of which one column may hold their gold."""
    words = ["voirdire", "audit", *(s.argument for s in files), *given(options), "--gold", gold]
    beside = ", ".join(printable(s.name) for s in others[:4]) + (" …" if len(others) > 4 else "")
    return InputError(
        f"{printable(name)}: it is not clear what {shown_name(gold)} is. If it is the truth that the "
        f"graders of {beside} are held against, name it as gold:\n  {typed(words)}"
    )


# --- errors -------------------------------------------------------------------------------------


def _roles_of(plan: Plan, table: RawTable, options: Options) -> dict[str, str | Sequence[str]]:
    """What to name in the command of a plan: what it took, and a guess for what it needs."""
    roles: dict[str, str | Sequence[str]] = {
        role: "+".join(columns) for role, columns in plan.keys.items() if role != "outcome"
    }
    taken = [c for columns in plan.keys.values() for c in columns]
    for role, choices in plan.needs.items():
        verdicts = [c for pairs in plan.lines.values() for _, c in pairs]
        leave = [*taken, *plan.graders, *verdicts]
        if role == "response":
            # A cluster with one response is told apart by the cluster's own column.
            leave = [
                *plan.keys.get("label", ()),
                *plan.keys.get("grader", ()),
                *plan.graders,
                *verdicts,
            ]
        if choices and role != "scale":
            roles[role] = choices[0]
        elif role == "response":
            within = [c for r in ("grader", "vote", "phrasing") for c in plan.keys.get(r, ())]
            if plan.layout == "long" and _several(table, plan.keys.get("grader", ())):
                roles[role] = _guessed_response_within(table, leave, within) or "COLUMN"
            else:
                roles[role] = guessed_response(table, leave) or "COLUMN"
        elif role == "label":
            roles[role] = _guessed_label(table, leave) or "COLUMN"
        elif role == "graders":
            roles[role] = guessed_graders(table, leave) or "COLUMN,COLUMN"
        elif role == "grader":
            like = [c for c in table.columns if _GRADER_LIKE.search(c) and c not in leave]
            roles[role] = like[0] if like else "COLUMN"
        elif role == "scale":
            roles[role] = "CLASS,CLASS"
    if plan.layout == "wide" and plan.graders:
        roles["graders"] = options.graders or _without_gold(plan.graders, options)
    return roles


def _without_gold(graders: Sequence[str], options: Options) -> tuple[str, ...]:
    """The columns to name in --graders; gold is found by its own option or name."""
    gold = gold_name(graders, options)
    return tuple(g for g in graders if g != gold)


def needs_more(source: Source, table: RawTable, options: Options, plan: Plan) -> VoirdireError:
    """The error for a table whose layout is plain, but not which column is what."""
    parts = []
    for role, choices in plan.needs.items():
        if choices and role != "scale":
            names = " or ".join(shown_name(c) for c in choices)
            parts.append(f"the {role} could be {names}: choose with --{role}")
        elif role == "scale":
            parts.append(
                "fewer than two columns hold the counts of a class: name them with --scale"
            )
        elif role == "graders":
            parts.append("it is not clear which columns are graders: name them with --graders")
        else:
            parts.append(f"no column is known to be the {role}: name it with --{role}")
    line = command(source, options, plan.layout, _roles_of(plan, table, options))
    return UsageError(
        "\n".join(
            [
                f"{printable(source.name)} ({plan.layout} layout): {'; '.join(parts)}. Columns:",
                *_seen(table),
                f"For example{_to_fill(line)}:",
                f"  {line}",
            ]
        )
    )


def several_fit(
    source: Source, table: RawTable, options: Options, plans: Sequence[Plan]
) -> VoirdireError:
    """The error for a table that fits several layouts."""
    lines = [
        f"{printable(source.name)}: this can be read in {len(plans)} layouts "
        f"({', '.join(p.layout for p in plans)}). Columns:",
        *_seen(table),
        "Say which one is meant:",
    ]
    for plan in plans:
        lines.append(f"  {command(source, options, plan.layout, _roles_of(plan, table, options))}")
    return InputError("\n".join(lines))


def none_fits(source: Source, table: RawTable, options: Options) -> VoirdireError:
    """The error for a table in which no labels were found without more being said."""
    if _has_lines_with_gaps(table):
        return _may_have_gaps(source, table, options)
    alike = guessed_graders(table, candidates(table, "response"))
    # What holds the same classes as other columns holds labels, whatever it is called. A grader's name
    # and its copy do so too.
    copies = len({tuple(table.frame[c].to_list()) for c in alike}) < 2
    labelled = () if copies else alike
    grader_columns = [
        c
        for c in table.columns
        if _GRADER_LIKE.search(c) and c not in labelled and c not in _doubled(table)
    ]
    graders = () if grader_columns else _without_gold(alike, options)
    pooled = [c for c in table.columns if _POOLED.search(c)]
    said = {options.gold, options.reference, *options.people} & set(table.columns)
    cluster = next(
        (c for c in (*candidates(table, "cluster"), *table.columns) if _CLUSTER_LIKE.search(c)), ""
    )
    file = printable(source.name)
    commands: list[str] = []
    if (
        pooled
        and not said
        and not grader_columns
        and len([g for g in graders if g not in pooled]) < 2
    ):
        label = next((c for c in pooled if _is_class_column(table, c)), pooled[0])
        response = guessed_response(table, pooled)
        roles: dict[str, str | Sequence[str]] = {
            "response": response or "COLUMN",
            "label": label,
            "grader-name": label,
        }
        if cluster and cluster != response and not candidates(table, "cluster"):
            roles["cluster"] = cluster
        text = [
            f"{file}: there are no labels of single graders in this table, only what several "
            f"graders were pooled into ({', '.join(shown_name(c) for c in pooled)}). How far "
            "graders differ cannot be said from it: that needs a table with one label of one grader "
            "a row, or one column a grader. Columns:",
            *_seen(table),
            "The pooled label alone can be described, as if it were one grader:",
            f"  {command(source, options, 'long', roles)}",
        ]
        return InputError("\n".join(text))
    if grader_columns:
        leave = [*grader_columns]
        label = _guessed_label(table, leave)
        response = (candidates(table, "response") or [""])[0]
        if not response:
            response = cluster or guessed_response(table, [*leave, label])
        commands.append(
            command(
                source,
                _with_whole_labels(table, label, options),
                "long",
                {
                    "response": response or "COLUMN",
                    "grader": grader_columns[0],
                    "label": label or "COLUMN",
                },
            )
        )
    else:
        response = guessed_response(table, [*graders, *said])
        if graders or said:
            # Gold alone is no audit: who is held against it must be named too.
            named = graders or ("" if said - {options.gold} else "COLUMN,COLUMN")
            commands.append(
                command(source, options, "wide", {"response": response, "graders": named})
            )
        label = _guessed_label(table, [*response.split("+"), *said, *graders])
        if label or not commands:
            commands.append(
                command(
                    source,
                    options,
                    "long",
                    {"response": response or "COLUMN", "label": label or "COLUMN"},
                )
            )
        if not graders and not said and not label:
            commands.append(
                command(
                    source,
                    options,
                    "wide",
                    {"response": response or "COLUMN", "graders": "COLUMN,COLUMN"},
                )
            )
    known = [*candidates(table, "response"), *candidates(table, "cluster"), *said]
    worded, sure = wording_columns(table, [*known, gold_name(table.columns, options)])
    as_wordings: list[str] = []
    if worded and (sure or not grader_columns):
        who = {"grader": grader_columns[0]} if grader_columns and not worded[0][0] else {}
        there = (candidates(table, "response") or [response])[0]
        as_wordings.append(
            command(source, replace(options, phrasings=worded), "wide", {"response": there, **who})
        )
    if sure and as_wordings:
        return InputError(
            "\n".join(
                [
                    f"{file}: it is not clear which columns hold labels. Columns:",
                    *_seen(table),
                    f"{_shown_wordings(worded)} look like one wording of the instruction each. If they are:",
                    *(f"  {c}" for c in as_wordings),
                    *([] if grader_columns else ["If each is a grader of its own instead:"]),
                    *([] if grader_columns else [f"  {c}" for c in commands]),
                    *_may_be_lines(
                        source, table, options, (candidates(table, "response") or [response])[0]
                    ),
                ]
            )
        )
    fill = _to_fill(" ".join(commands))
    return InputError(
        "\n".join(
            [
                f"{file}: it is not clear which columns hold labels. Columns:",
                *_seen(table),
                f"Say what they are, for example{fill}:",
                *(f"  {c}" for c in commands),
                *_may_be_gold(source, options, graders, response),
                *_doubled_names(table),
                *(
                    [
                        f"If {_shown_wordings(worded)} are one grader under reworded instructions:",
                        *(f"  {c}" for c in as_wordings),
                    ]
                    if as_wordings
                    else []
                ),
                *_may_be_lines(
                    source, table, options, (candidates(table, "response") or [response])[0]
                ),
            ]
        )
    )


def _may_be_gold(
    source: Source, options: Options, graders: Sequence[str], response: str
) -> list[str]:
    """The same command with gold, if one of the graders is called like it."""
    gold = "" if options.gold or gold_name(graders, options) else _gold_like(graders)
    if not gold:
        return []
    roles = {"response": response, "graders": graders, "gold": gold}
    return [
        f"If {shown_name(gold)} is the truth that the others are held against:",
        f"  {command(source, options, 'wide', roles)}",
    ]


def _doubled_names(table: RawTable) -> list[str]:
    """Why columns that share a name are in no command."""
    return [
        f'{len(columns)} columns are called "{shown_name(name)}". To use one of them, give each its '
        "own name."
        for name, columns in table.ambiguous.items()
    ]


def _to_fill(commands: str) -> str:
    """What a person still has to put into the commands, if there is anything."""
    kinds = [kind for kind in ("COLUMN", "CLASS") if re.search(rf"[ ,]{kind}\b", commands)]
    names = {"COLUMN": "columns", "CLASS": "classes"}
    return "".join(f" (put names of {names[k]} in place of {k})" for k in kinds)


def _shown_wordings(wordings: Wordings) -> str:
    """The first and the last of the columns of wordings."""
    columns = [c for _, of_grader in wordings for c in of_grader]
    return f"{shown_name(columns[0])} … {shown_name(columns[-1])}"


def _has_lines_with_gaps(table: RawTable) -> bool:
    """Whether columns ``NAME_e1``, ``NAME_e2``, ``NAME_e4`` … of yes and no stand for several graders."""
    groups = [g for n, g in numbered_columns(table, PREFIX).items() if n and len(g) >= 2]
    return len(groups) >= 2 and any(
        holds_verdicts(table, list(columns.values())) for columns in groups
    )


def _may_have_gaps(source: Source, table: RawTable, options: Options) -> VoirdireError:
    groups = {n: g for n, g in numbered_columns(table, PREFIX).items() if n and len(g) >= 2}
    columns = [c for g in groups.values() for c in g.values()]
    response = (candidates(table, "response") or [guessed_response(table, columns)])[0]
    return InputError(
        "\n".join(
            [
                f"{printable(source.name)}: the columns of {', '.join(map(shown_name, groups))} look "
                "like the lines of a checklist, but their numbers have gaps or do not start at 1. "
                "Columns:",
                *_seen(table),
                "If they are the lines:",
                f"  {command(source, options, 'checklist', {'response': response or 'COLUMN'})}",
            ]
        )
    )


def _with_whole_labels(table: RawTable, label: str, options: Options) -> Options:
    """The options, with rounding where a label column holds more fractions than there are classes.

    Numbers from 1 to 2 are preferences between two: there a half is a tie and no rounding.
    """
    if not label or options.round:
        return options
    values = table.frame[label].drop_nulls().unique()
    numbers = values.cast(pl.Float64, strict=False)
    if values.len() <= _MOST_CLASSES or numbers.null_count() or (numbers % 1 == 0).all():
        return options
    halves = values.filter(numbers == 1.5).to_list() if numbers.is_between(1, 2).all() else []
    ties = tuple((v, "tie") for v in sorted(halves) if v not in dict(options.map))
    return replace(options, round=True, map=(*options.map, *ties))


def _may_be_lines(source: Source, table: RawTable, options: Options, response: str) -> list[str]:
    """A hint at checklists, if there are numbered columns of yes and no."""
    prefix = found_prefix(table, response.split("+"))
    if not prefix:
        return []
    columns = [
        c for numbered in numbered_columns(table, prefix).values() for c in numbered.values()
    ]
    roles = {"response": response or "COLUMN", "line-prefix": prefix}
    like = [c for c in candidates(table, "grader") if c not in columns]
    if like:
        roles["grader"] = like[0]
    return [
        f"If {printable(columns[0])} … {printable(columns[-1])} are not graders but the lines of "
        "a checklist:",
        f"  {command(source, options, 'checklist', roles)}",
    ]


def _is_class_column(table: RawTable, column: str) -> bool:
    values = table.frame[column].drop_nulls().unique()
    return 0 < values.len() <= _MOST_CLASSES and not values.str.contains(r"^-?[\d.]+$").all()
