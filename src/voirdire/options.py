"""Everything a user can set for reading and auditing, under one name on the command line and in Python."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from voirdire.errors import InputError, UsageError, unreadable

LAYOUTS = ("auto", "long", "wide", "counts", "checklist")
OUTCOMES = ("label", "unparsed", "truncated", "empty", "grader_refusal", "blocked", "error")
MISSING = "missing"
EXACT = 1 << 53  # whole numbers below it are exact as floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the contract. Columns are named by ``a+b`` where several are joined with ``/``."""

    layout: str = "auto"
    response: str = ""
    grader: str = ""
    label: str = ""
    cluster: str = ""
    question: str = ""
    vote: str = ""
    phrasing: str = ""
    phrasings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    weight: str = ""
    stratum: str = ""
    line: str = ""
    outcome: str = ""
    graders: tuple[str, ...] = ()
    grader_name: str = ""
    gold: str = ""
    reference: str = ""
    people: tuple[str, ...] = ()
    derived_from: tuple[tuple[str, tuple[str, ...]], ...] = ()
    about: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    scale: tuple[str, ...] = ()
    off_scale: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    map: tuple[tuple[str, str], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    recode: tuple[tuple[str, str, str], ...] = ()
    range: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rate: tuple[tuple[str, tuple[str, ...]], ...] = ()
    refusal_like: tuple[str, ...] = ()
    collapse_below: float = 1 / 3
    collapse_base: int = 20
    weight_kind: str = "design"
    without: tuple[str, ...] = ()
    panel: tuple[str, ...] = ()
    step: str = ""
    standardise: tuple[str, ...] = ()
    drop: tuple[tuple[str, str], ...] = ()
    cut: tuple[float, ...] = ()  # a whole number is an int, so that its text is “5”
    line_prefix: str = ""
    livingston_lewis_grid: int = 0
    population: str = ""
    round: bool = False
    depends_ratio: float = 2.0
    depends_points: float = 10.0
    few_clusters: int = 30
    by: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    vote_rule: str = "majority"
    interval: str = "auto"
    replicates: int = 2000
    level: float = 0.95
    seed: int = 0
    encoding: str = ""
    strict: bool = False

    @property
    def gates(self) -> tuple[int, ...]:
        """The cuts of a checklist, in lines and in order; its cuts are whole numbers."""
        return tuple(sorted({int(cut) for cut in self.cut}))

    @classmethod
    def of(cls, base: Options | None = None, /, **given: Any) -> Options:
        """Options from loosely typed keywords (texts, lists, mappings), checked.

        Lists may be given as ``"a,b"``; pairs as ``"OLD=NEW"`` or a mapping. Values of ``None`` are
        as if not given. Raises :class:`UsageError` for a name that is no option and for bad values.
        """
        base = base or cls()
        names = {f.name for f in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f" Did you mean {near[0]}?" if near else ""
                raise UsageError(f"There is no option {name!r}.{hint}")
            if value is not None:
                values[name] = _PARSERS.get(name, _as_is)(value, name)
        options = replace(base, **values)
        options._check()
        return options

    def _check(self) -> None:
        _one_of("layout", self.layout, LAYOUTS)
        _one_of("vote-rule", self.vote_rule, ("majority", "first"))
        _one_of("interval", self.interval, ("auto", "bootstrap"))
        _one_of("weight-kind", self.weight_kind, ("design", "frequency"))
        if not 0.5 <= self.level < 1:
            raise UsageError(f"--level {self.level} is not a confidence level from 0.5 to below 1.")
        if not 0 < self.collapse_below < 1:
            raise UsageError(f"--collapse-below {self.collapse_below} is not between 0 and 1.")
        if not 1 <= self.depends_ratio < math.inf:
            raise UsageError(f"--depends-ratio {self.depends_ratio} is not a number from 1.")
        if not 0 <= self.depends_points <= 100:
            raise UsageError(f"--depends-points {self.depends_points} is not from 0 to 100.")
        if self.few_clusters < 3:
            raise UsageError(f"--few-clusters {self.few_clusters} is below 3.")
        if self.livingston_lewis_grid and self.livingston_lewis_grid < 10:
            raise UsageError(
                f"--livingston-lewis-grid {self.livingston_lewis_grid} is below 10 points; leave it out "
                "for exact integration."
            )
        if self.collapse_base < 1:
            raise UsageError(f"--collapse-base {self.collapse_base} is below 1.")
        if not 100 <= self.replicates <= 1_000_000:
            raise UsageError(f"--replicates {self.replicates} is not from 100 to 1,000,000.")
        if not 0 <= self.seed < 2**63:
            raise UsageError(f"--seed {self.seed} is not a whole number from 0.")
        both = [c for c in self.scale if c in self.off_scale]
        if both:
            raise UsageError(f"The class {both[0]!r} is given to both --scale and --off-scale.")
        for name, classes in (("--scale", self.scale), ("--off-scale", self.off_scale)):
            twice = [c for i, c in enumerate(classes) if c in classes[:i]]
            if twice:
                raise UsageError(f"{name} names the class {twice[0]!r} twice.")
        for flag, named in (
            ("--rate", self.rate),
            ("--range", self.range),
            ("--derived-from", self.derived_from),
        ):
            names = [name for name, _ in named]
            for i, name in enumerate(names):
                if name in names[:i]:
                    raise UsageError(
                        f"{flag} {name} is given twice. Give it once, or under another name."
                    )
        for flag, changes in (
            ("--map", self.map),
            ("--failed", self.failed),
            ("--recode", [(f"{c}:{old}", new) for c, old, new in self.recode]),
        ):
            meant: dict[str, str] = {}
            for old, new in changes:
                if meant.setdefault(old.strip(), new) != new:
                    raise UsageError(
                        f"{flag} {old}={new}: {old} is {meant[old.strip()]!r} already. Give one of them."
                    )
        self._check_phrasings()
        if len(self.scale) == 1:
            raise UsageError("--scale needs at least two classes, lowest first: --scale low,high.")
        for mark, outcome in self.failed:
            if outcome not in OUTCOMES or outcome == "label":
                allowed = ", ".join(OUTCOMES[1:])
                raise UsageError(
                    f"--failed {mark}={outcome}: {outcome!r} is no outcome. Outcomes: {allowed}."
                )
        if self.scale:
            known = {*self.scale, *self.off_scale}
            for flag, classes in (
                *((f"--rate {n}", c) for n, c in self.rate),
                *((f"--range {g}", c) for g, c in self.range),
                ("--refusal-like", self.refusal_like),
            ):
                for class_ in classes:
                    if class_ not in known:
                        raise UsageError(
                            f"{flag}: the class {class_!r} is not on the scale "
                            f"({', '.join((*self.scale, *self.off_scale))})."
                        )

    def _check_phrasings(self) -> None:
        """Columns that hold one wording each: several of a grader, each once, and no second reading."""
        if not self.phrasings:
            return
        held: dict[str, str] = {}
        for name, columns in self.phrasings:
            whose = f"{name}=" if name else ""
            twice = [c for i, c in enumerate(columns) if c in columns[:i]]
            if twice:
                raise UsageError(
                    f"--phrasings {whose}{','.join(columns)}: the column {twice[0]!r} is named twice. "
                    "Each wording has a column of its own; name it once."
                )
            if len(columns) < 2:
                raise UsageError(
                    f"--phrasings {whose}{','.join(columns)}: one wording alone does not vary, so nothing "
                    "can be said of the wording. Name all columns that hold the same grader under "
                    "reworded instructions, or take it as a grader: --graders "
                    f"{','.join(columns) or 'COLUMN'}."
                )
            for column in columns:
                if column in held:
                    raise UsageError(
                        f"--phrasings: the column {column!r} is given to {held[column] or 'one grader'!r} "
                        f"and to {name or 'another'!r}. Give it to one of them."
                    )
                held[column] = name
        both = [g for g in self.graders if g in held]
        if both:
            raise UsageError(
                f"The column {both[0]!r} is named in --phrasings and in --graders. In --phrasings a column is "
                "one wording of one grader, in --graders it is a grader of its own: leave it out of one of "
                "them."
            )
        for flag, given in (
            ("--phrasing", self.phrasing),
            ("--label", self.label),
            ("--line", self.line),
            ("--line-prefix", self.line_prefix),
            ("--step", self.step),
        ):
            if given:
                raise UsageError(
                    f"--phrasings and {flag} {given} read the table in two ways: --phrasings where each "
                    f"wording has a column, {flag} where each label has a row. Leave one of them out."
                )
        if self.layout not in ("auto", "wide"):
            raise UsageError(
                f"--phrasings names columns of a wide table, and --layout {self.layout} is given. Leave "
                "--layout out."
            )

    def changed(self) -> dict[str, Any]:
        """The options that differ from the defaults, as plain JSON values."""
        default = Options()
        return {
            f.name: _jsonable(getattr(self, f.name))
            for f in fields(self)
            if getattr(self, f.name) != getattr(default, f.name)
        }


def _jsonable(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_jsonable(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return str(value)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"--{name} {value!r} is not one of {', '.join(allowed)}.")


def _as_is(value: Any, name: str) -> Any:
    kind = type(getattr(Options(), name))
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind):
        raise UsageError(f"{name} must be {kind.__name__}, not {type(value).__name__}.")
    return value


def split_list(text: str) -> list[str]:
    """Names separated by commas; a comma inside a name is written ``\\,``."""
    names, current, escaped = [], "", False
    for char in text:
        if escaped:
            current += char if char in ",\\" else "\\" + char
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            names.append(current)
            current = ""
        else:
            current += char
    names.append(current + ("\\" if escaped else ""))
    return [n.strip() for n in names if n.strip()]


def _names(value: Any, name: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(split_list(value))
    return tuple(n for item in value for n in ([str(item)] if not isinstance(value, str) else []))


def _texts(value: Any, name: str) -> tuple[str, ...]:
    """Texts taken whole: a mark such as ``a,b`` is one mark."""
    return (value,) if isinstance(value, str) else tuple(str(v) for v in value)


def _pairs(value: Any, name: str) -> tuple[tuple[str, str], ...]:
    if isinstance(value, Mapping):
        return tuple((str(k), str(v)) for k, v in value.items())
    pairs = []
    for item in [value] if isinstance(value, str) else value:
        if not isinstance(item, str):
            left, right = item
            pairs.append((str(left), str(right)))
            continue
        left, sign, right = item.rpartition("=")
        if not sign:
            raise UsageError(f"--{name.replace('_', '-')} {item!r} is not of the form OLD=NEW.")
        pairs.append((left, right))
    return tuple(pairs)


def _class_sets(value: Any, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    flag = "--" + name.replace("_", "-")
    if isinstance(value, Mapping):
        items = list(value.items())
    else:
        items = []
        for item in [value] if isinstance(value, str) else value:
            if not isinstance(item, str):
                items.append(tuple(item))
                continue
            left, sign, right = item.partition("=")
            if not sign or not left or not right:
                raise UsageError(f"{flag} {item!r} is not of the form NAME=a+b.")
            items.append((left, right))
    return tuple(
        (str(k), tuple(v.split("+")) if isinstance(v, str) else tuple(str(x) for x in v))
        for k, v in items
    )


def _wordings(value: Any, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Columns by grader, from ``a,b`` (one grader, not named), ``NAME=a,b``, several of these, or a mapping.

    ``\\,`` and ``\\=`` stand for a comma and an equals sign in a name. What is given to one grader twice adds.
    """
    if isinstance(value, Mapping):
        items: list[Any] = list(value.items())
    else:
        items = [value] if isinstance(value, str) else list(value)
    found: dict[str, list[str]] = {}
    for item in items:
        if not isinstance(item, str):
            grader, columns = item
            # A text is read as the flag's is; a list has names as they are.
            named = split_list(columns) if isinstance(columns, str) else [str(c) for c in columns]
        else:
            start = re.match(r"(?s)((?:[^=\\]|\\.)*)=", item)
            grader = "" if start is None else re.sub(r"\\([=,\\])", r"\1", start[1]).strip()
            rest = item if start is None else item[start.end() :]
            named = [c.replace("\\=", "=") for c in split_list(rest)]
            if start is not None and not (grader and named):
                raise UsageError(f"--{name} {item!r} is not of the form NAME=column,column.")
        found.setdefault(str(grader), []).extend(named)
    return tuple((grader, tuple(columns)) for grader, columns in found.items())


def typed_wordings(wordings: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """The values of ``--phrasings`` that stand for these columns, one a grader."""

    def typed(text: str) -> str:
        return text.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")

    return [
        (f"{typed(grader)}=" if grader else "") + ",".join(map(typed, columns))
        for grader, columns in wordings
    ]


def _recodes(value: Any, name: str) -> tuple[tuple[str, str, str], ...]:
    if isinstance(value, Mapping):
        return tuple(
            (str(c), str(old), str(new)) for c, pairs in value.items() for old, new in pairs.items()
        )
    recodes = []
    for item in [value] if isinstance(value, str) else value:
        if not isinstance(item, str):
            column, old, new = item
        else:
            column, colon, pair = item.partition(":")
            old, sign, new = pair.partition("=")
            if not colon or not sign:
                raise UsageError(f"--recode {item!r} is not of the form COLUMN:OLD=NEW.")
        recodes.append((str(column), str(old), str(new)))
    return tuple(recodes)


def _about(value: Any, name: str) -> Mapping[str, Mapping[str, Any]]:
    """Facts on graders, from a mapping or a TOML file with one table ``[graders.NAME]`` a grader."""
    if isinstance(value, str | Path):
        path = Path(value)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(unreadable(path, error, name=f"--about {path}")) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"--about {path}: this is not TOML: {error}.") from error
        value = content
        if "graders" in content:
            value = {**content.get("targets", {}), **content["graders"]}
    if not isinstance(value, Mapping) or not all(isinstance(v, Mapping) for v in value.values()):
        raise InputError(
            "--about: each grader needs a table of its own, as in\n"
            '[graders."gpt-4"]\nmodel = "gpt-4-0613"\nfamily = "openai"'
        )
    return {str(k): dict(v) for k, v in value.items()}


def _numbers(value: Any, name: str) -> tuple[float, ...]:
    """Finite numbers in order, each once, from one, a list of them, or texts; whole ones as ``int``."""
    flag = "--" + name.replace("_", "-")
    found: list[float] = []
    for item in [value] if isinstance(value, str | int | float) else value:
        try:
            number = float(item)
            if isinstance(item, bool) or not math.isfinite(number):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise UsageError(
                f"{flag} {item!r} is not a finite number: write one such as 5 or 0.5."
            ) from None
        found.append(int(number) if number.is_integer() and abs(number) < EXACT else number)
    return tuple(sorted(set(found)))


def _column(value: Any, name: str) -> str:
    return value if isinstance(value, str) else "+".join(str(v) for v in value)


def _list_of(names: Iterable[str], parser: Any) -> dict[str, Any]:
    return dict.fromkeys(names, parser)


_PARSERS: dict[str, Any] = {
    **_list_of(
        ("graders", "people", "scale", "off_scale", "refusal_like", "without", "panel"),
        _names,
    ),
    **_list_of(("missing", "by", "standardise", "text"), _texts),
    **_list_of(("map", "failed", "drop"), _pairs),
    **_list_of(("range", "rate", "derived_from"), _class_sets),
    "recode": _recodes,
    "phrasings": _wordings,
    "cut": _numbers,
    "about": _about,
    **_list_of(
        (
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
            "step",
            "population",
        ),
        _column,
    ),
}
