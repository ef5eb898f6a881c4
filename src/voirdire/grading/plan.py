"""The plan of a study: which responses are graded by whom, how often, and under which keys.

A call's key is the SHA-256 of everything that decides its answer, so a plan needs no memory of earlier
runs: what is planned and not in the store is what is left to do. The names of graders, phrasings and
files decide nothing; what they hold does.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
import tomllib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from voirdire.errors import InputError, UsageError, unreadable
from voirdire.grading.base import GraderSpec, Item, Request
from voirdire.grading.messages import Wording
from voirdire.grading.secrets import looks_secret, refuse_secrets
from voirdire.readers._store_schema import (
    MOST_GRADERS,
    MOST_ITEMS,
    MOST_PHRASINGS,
    MOST_VOTES,
)
from voirdire.wording import Name, Text, plural, printable, say

if TYPE_CHECKING:
    import polars as pl

    from voirdire.readers._raw import RawTable

Array = np.ndarray[Any, Any]

CHUNK = 10_000  # items that are made from their columns at once
DEFAULT_PROVIDER = "openai"
NONCE_LENGTH = 16  # hexadecimal digits: 64 bits that a response cannot guess
NONE = "none"  # a parameter that is left out, where a file must say so

# --- the study ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a run stops, and how long one call may take.

    ``calls`` is the most requests of one run (``None``: no limit), ``timeout`` the seconds that one
    attempt may take, ``retries`` how often a call that met a limit, a timeout or a broken server is
    tried again.
    """

    calls: int | None = None
    timeout: float = 120.0
    retries: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The votes and phrasings of one grader where they differ from those of the study.

    ``votes`` 0 and ``phrasings`` ``None``: as the study.
    """

    votes: int = 0
    phrasings: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All that a study file says: what is graded, by which rubric, by whom and how often.

    ``rubric`` is the name of a rubric that ships, or a file. ``phrasings`` empty: all of the rubric.
    ``columns`` names columns of the response file (``id``, ``response``, ``prompt``, ``question``,
    ``cluster``) where their own names do not say it. ``empty`` is ``grade`` or ``skip``: what happens to
    a response without text. ``budget`` is in the currency of the prices, for one run. Paths are
    absolute or relative to the working folder; :meth:`load` has made them so.
    """

    responses: Path
    rubric: str
    graders: tuple[GraderSpec, ...]
    votes: int = 1
    phrasings: tuple[str, ...] = ()
    concurrency: int = 16
    budget: float | None = None
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    store: Path | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    empty: str = "grade"
    encoding: str = ""
    shares: Mapping[str, Share] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path, **flags: Any) -> Study:
        """The study of a TOML file; ``flags`` of the command line go before what it says.

        Raises :class:`UsageError` for a key that does not exist (with the nearest that does), a value of
        the wrong kind, and a secret; :class:`InputError` for a file that is missing or no TOML.
        """
        path = Path(path)
        where = printable(path.name)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise InputError(unreadable(path, error, name=printable(str(path)))) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{where}: this is not TOML: {error}.") from error
        return _study(content, where, path.parent, flags)

    @classmethod
    def of(cls, **flags: Any) -> Study:
        """The study of command-line flags alone: those of :meth:`load`, and for the one grader ``model``,
        ``provider``, ``base_url``, ``temperature``, ``max_tokens``, ``api_key_env``, ``name``, ``price_in``,
        ``price_out``, ``window``, ``parameters`` and ``options``."""
        return _study({}, "command line", Path(), flags)


_STUDY_KEYS = (
    *("responses", "rubric", "graders", "votes", "phrasings", "concurrency", "budget", "limits"),
    *("seed", "store", "columns", "empty", "encoding"),
)
_LIMIT_KEYS = ("calls", "timeout", "retries")
_COLUMN_KEYS = ("id", "response", "prompt", "question", "cluster")
_PARAMETER_KEYS = (
    *(
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "stop",
    ),
    *("frequency_penalty", "presence_penalty", "logprobs", "top_logprobs", "reasoning_effort"),
)
_OPTION_KEYS = (
    *("base_url", "api_key_env", "host", "command", "workers", "patterns", "where"),
    *("otherwise", "script"),
)
_GRADER_KEYS = (
    *("name", "provider", "model", "price_in", "price_out", "window", "votes", "phrasings"),
    *("parameters", "options", *_PARAMETER_KEYS, *_OPTION_KEYS),
)
# Options that hold a file, whose content decides what the grader says.
_FILE_OPTIONS = ("patterns", "script")
# Options that say how a grader is reached, not what it answers: a server that moves keeps its labels.
_NOT_DECIDING = frozenset(("base_url", "api_key_env", "workers"))
_GRADER_FLAGS = (
    *("model", "provider", "base_url", "temperature", "max_tokens", "api_key_env", "name"),
    *("price_in", "price_out", "window", "parameters", "options"),
)
# Other names of a provider, as people call it.
_ALSO = {"openai-compatible": DEFAULT_PROVIDER, "openai_compatible": DEFAULT_PROVIDER}
# The name of a variable; anything else given in its place may be the key itself, and is never shown.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def _study(content: Mapping[str, Any], where: str, folder: Path, flags: Mapping[str, Any]) -> Study:
    refuse_secrets(content, where)
    _known(content, _STUDY_KEYS, where, "")
    flags = {k: v for k, v in flags.items() if v is not None}
    unknown = [k for k in flags if k not in (*_STUDY_KEYS, *_LIMIT_KEYS, *_GRADER_FLAGS)]
    if unknown:
        raise UsageError(f"There is no flag {unknown[0]!r}.{_near(unknown[0], _STUDY_KEYS)}")
    refuse_secrets({k: v for k, v in flags.items() if k != "api_key_env"}, "command line")
    of_grader = {k: flags.pop(k) for k in _GRADER_FLAGS if k in flags}
    of_limits = {k: flags.pop(k) for k in _LIMIT_KEYS if k in flags}
    given = {**content, **flags}

    def at(name: str) -> str:
        """Where a value stands, as a message names it."""
        flag = f"--{name.replace('_', '-')}"
        return flag if name in flags or not content else f"{where}: {name}"

    def path(name: str) -> Path:
        value = Path(_text(given[name], at(name))).expanduser()
        return value if name in flags else folder / value

    for name in ("responses", "rubric"):
        if not given.get(name):
            raise UsageError(
                f"{where}: it does not say {name}. "
                + (
                    'Add a line: responses = "responses.jsonl".'
                    if name == "responses"
                    else 'Name one that ships, or a file: rubric = "four-way".'
                )
            )
    rubric = _text(given["rubric"], at("rubric"))
    if "rubric" not in flags and _is_path(rubric):
        rubric = str(folder / Path(rubric).expanduser())
    limits = _table(given.get("limits", {}), at("limits"))
    _known(limits, _LIMIT_KEYS, where, "limits")
    limits = {**limits, **of_limits}
    columns = _table(given.get("columns", {}), at("columns"))
    _known(columns, _COLUMN_KEYS, where, "columns")
    empty = _text(given.get("empty", "grade"), at("empty"))
    if empty not in ("grade", "skip"):
        raise UsageError(f"{at('empty')} is {empty!r}; it is grade or skip.")
    graders, shares = _graders(given.get("graders", ()), of_grader, where, folder)
    calls = limits.get("calls")
    budget = given.get("budget")
    return Study(
        responses=path("responses"),
        rubric=rubric,
        graders=graders,
        votes=_whole(given.get("votes", 1), at("votes"), least=1, most=MOST_VOTES),
        phrasings=_names(given.get("phrasings", ()), at("phrasings")),
        concurrency=_whole(given.get("concurrency", 16), at("concurrency"), least=1, most=4096),
        budget=None if budget is None else _number(budget, at("budget")),
        limits=Limits(
            calls=None if calls is None else _whole(calls, f"{where}: limits.calls", least=1),
            timeout=_number(limits.get("timeout", Limits().timeout), f"{where}: limits.timeout"),
            retries=_whole(limits.get("retries", Limits().retries), f"{where}: limits.retries"),
        ),
        seed=_whole(given.get("seed", 0), at("seed"), most=2**63 - 1),
        store=path("store") if given.get("store") else None,
        columns={k: _text(v, f"{where}: columns.{k}") for k, v in columns.items()},
        empty=empty,
        encoding=_text(given.get("encoding", ""), at("encoding")),
        shares=shares,
    )


def _graders(
    given: Any, flags: Mapping[str, Any], where: str, folder: Path
) -> tuple[tuple[GraderSpec, ...], dict[str, Share]]:
    if isinstance(given, Mapping):
        # [graders.NAME] as well as [[graders]].
        given = [{"name": str(n), **_table(g, f"{where}: graders.{n}")} for n, g in given.items()]
    if not isinstance(given, list | tuple):
        raise UsageError(f"{where}: graders are tables: [[graders]], one for each.")
    if given and flags:
        raise UsageError(
            f"--{next(iter(flags)).replace('_', '-')}: {where} names its own graders. Change them there, "
            "or give all of the study as flags."
        )
    if flags:
        given = [dict(flags)]
    if not given:
        raise UsageError(
            f"{where}: it names no grader. Add one: [[graders]] with model and base_url, or "
            "--model NAME --base-url URL."
        )
    graders: list[GraderSpec] = []
    shares: dict[str, Share] = {}
    for i, one in enumerate(given, start=1):
        at = f"{where}: grader {i}"
        spec, share = _grader(_table(one, at), at, folder)
        if any(g.name == spec.name for g in graders):
            raise UsageError(
                f"{where}: two graders are called {spec.name!r}. Give each a name of its own: "
                'name = "…".'
            )
        graders.append(spec)
        if share != Share():
            shares[spec.name] = share
    if len(graders) > MOST_GRADERS - 1:
        raise UsageError(f"{where}: a study has at most {MOST_GRADERS - 1:,} graders.")
    return tuple(graders), shares


def _grader(one: Mapping[str, Any], at: str, folder: Path) -> tuple[GraderSpec, Share]:
    _known(
        one,
        _GRADER_KEYS,
        at,
        "",
        more=" What the endpoint takes beyond these goes into a table parameters, what the provider "
        "needs into a table options.",
    )
    parameters = dict(_table(one.get("parameters", {}), f"{at}: parameters"))
    parameters |= {k: one[k] for k in _PARAMETER_KEYS if k in one}
    parameters = {
        k: v for k, v in parameters.items() if not (isinstance(v, str) and v.lower() == NONE)
    }
    options = dict(_table(one.get("options", {}), f"{at}: options"))
    options |= {k: one[k] for k in _OPTION_KEYS if k in one}
    for k in _FILE_OPTIONS:
        if isinstance(options.get(k), str):
            options[k] = str(folder / Path(options[k]).expanduser())
    model = _text(one.get("model", ""), f"{at}: model")
    provider = _text(one.get("provider", DEFAULT_PROVIDER), f"{at}: provider")
    provider = _ALSO.get(provider, provider)
    variable = _text(options.get("api_key_env", ""), f"{at}: api_key_env")
    if variable and (looks_secret(variable) or not _VARIABLE.fullmatch(variable)):
        raise UsageError(
            f"{at}: api_key_env is the name of an environment variable, not the key itself. Set the key "
            "in the environment, and give the name: OPENAI_API_KEY."
        )
    name = _text(one.get("name", model or provider), f"{at}: name").strip()
    if not name:
        raise UsageError(f'{at}: it has no name. Add one: name = "…".')
    for what, content in (("parameters", parameters), ("options", options)):
        try:
            canonical(content)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{at}: {what} can hold only what JSON can: {error}.") from error
    prices = {
        k: None if one.get(k) is None else _number(one[k], f"{at}: {k}")
        for k in ("price_in", "price_out")
    }
    spec = GraderSpec(
        name=name,
        provider=provider,
        model=model,
        parameters=parameters,
        options=options,
        window=_whole(one.get("window", 0), f"{at}: window"),
        **prices,
    )
    share = Share(
        votes=_whole(one["votes"], f"{at}: votes", least=1, most=MOST_VOTES)
        if "votes" in one
        else 0,
        phrasings=_names(one["phrasings"], f"{at}: phrasings") if "phrasings" in one else None,
    )
    return spec, share


def _known(
    content: Mapping[str, Any], names: Sequence[str], where: str, table: str, *, more: str = ""
) -> None:
    for name in content:
        if name not in names:
            inside = f" in {table}" if table else ""
            raise UsageError(
                f"{where}: there is no setting {printable(str(name))!r}{inside}.{_near(str(name), names)}{more}"
            )


def _near(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.lower().replace("-", "_"), names, n=1)
    return f" Did you mean {close[0]}?" if close else f" Settings: {', '.join(names)}."


def _is_path(rubric: str) -> bool:
    return rubric.lower().endswith((".toml", ".json")) or "/" in rubric or "\\" in rubric


def _table(value: Any, at: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{at} is a table of settings, not {value!r}.")
    return value


def _text(value: Any, at: str) -> str:
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str):
        raise UsageError(f'{at} is text, not {value!r}. Put it in quotation marks: "{value}".')
    return value


def _names(value: Any, at: str) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [v.strip() for v in value.split(",") if v.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
        raise UsageError(f'{at} is a list of names: ["a", "b"].')
    if len(set(value)) < len(value):
        raise UsageError(f"{at} names one of them twice.")
    return tuple(value)


def _whole(value: Any, at: str, *, least: int = 0, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{at} is a whole number, not {value!r}.")
    if value < least or (most is not None and value > most):
        bound = f"from {least:,}" + ("" if most is None else f" to {most:,}")
        raise UsageError(f"{at} is a whole number {bound}, not {value:,}.")
    return value


def _number(value: Any, at: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UsageError(f"{at} is a number, not {value!r}.")
    if value < 0:
        raise UsageError(f"{at} is {value}, and it cannot be below 0.")
    return float(value)


# --- the responses ------------------------------------------------------------------------------

_ID_NAMES = ("id", "response_id", "item_id", "item", "sample_id", "doc_id", "uuid")
_TEXT_NAMES = ("response", "response_text", "completion", "output", "generation", "answer", "text")
_RECOGNISED: Mapping[str, tuple[str, ...]] = {
    "id": _ID_NAMES,
    "response": _TEXT_NAMES,
    "prompt": ("prompt", "instruction", "input", "query", "user_prompt", "request"),
    "question": ("question_id", "question"),
    "cluster": ("cluster", "question_id", "prompt_id", "core"),
}
_PLACES_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class Items:
    """The responses of a study as columns; an :class:`Item` is made when it is asked for.

    ``frame`` has the columns ``id``, ``response``, ``prompt``, ``question`` and ``cluster``, all text
    without nulls, in the order of the file; ``tags`` the other columns, where a blank cell is null.
    ``empty`` are the responses without text that are in it, ``skipped`` those that were left out for it,
    ``repeated`` the rows that said again what another row says. ``sha256`` is that of the file.
    """

    frame: pl.DataFrame
    tags: pl.DataFrame
    name: str = ""
    sha256: str = ""
    empty: int = 0
    skipped: int = 0
    repeated: int = 0
    notices: tuple[Text, ...] = ()

    def __len__(self) -> int:
        return self.frame.height

    def __getitem__(self, index: int) -> Item:
        if not 0 <= index < len(self):
            raise IndexError(index)
        id, response, prompt, question, cluster = self.frame.row(index)
        tags: dict[str, str] = {}
        if self.tags.width:
            cells = zip(self.tags.columns, self.tags.row(index), strict=True)
            tags = {name: cell for name, cell in cells if cell is not None}
        return Item(
            id=id, response=response, prompt=prompt, question=question, cluster=cluster, tags=tags
        )

    def __iter__(self) -> Iterator[Item]:
        for start in range(0, len(self), CHUNK):
            yield from self._made(start, CHUNK)

    def _made(self, start: int, length: int) -> Iterator[Item]:
        rows = self.frame.slice(start, length).iter_rows()
        if not self.tags.width:
            for id, response, prompt, question, cluster in rows:
                yield Item(
                    id=id, response=response, prompt=prompt, question=question, cluster=cluster
                )
            return
        names = self.tags.columns
        tags = self.tags.slice(start, length).iter_rows()
        for (id, response, prompt, question, cluster), cells in zip(rows, tags, strict=True):
            yield Item(
                id=id,
                response=response,
                prompt=prompt,
                question=question,
                cluster=cluster,
                tags={n: c for n, c in zip(names, cells, strict=True) if c is not None},
            )

    @classmethod
    def of(cls, items: Sequence[Item]) -> Items:
        """Items that are in memory already; ids are unique."""
        import polars as pl

        columns = ("id", "response", "prompt", "question", "cluster")
        names = list(dict.fromkeys(name for item in items for name in item.tags))
        return cls(
            frame=pl.DataFrame(
                {c: [getattr(i, c) for i in items] for c in columns},
                schema=dict.fromkeys(columns, pl.String),
            ),
            tags=pl.DataFrame(
                {n: [i.tags.get(n) for i in items] for n in names},
                schema=dict.fromkeys(names, pl.String),
            ),
            empty=sum(1 for i in items if not i.response.strip()),
        )


def read_items(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    empty: str = "grade",
    encoding: str = "",
) -> Items:
    """The responses of a file: CSV, TSV, JSON, JSON Lines, Parquet or Arrow.

    Without a column that names the id, rows are numbered from 1. A response of white space alone is an
    empty one: it is graded like any other, as leaving it out would change every rate, or with
    ``empty="skip"`` left out; both are counted. The same id with the same content is one response.
    Raises :class:`InputError` with the places of rows without an id, and of ids that stand for two
    different contents; :class:`UsageError` where no column holds the responses.
    """
    import polars as pl

    from voirdire.options import Options
    from voirdire.readers.table import raw_table
    from voirdire.source import Source

    if not path.is_file():
        raise InputError(unreadable(path, name=printable(str(path))))
    source = Source(name=path.name, path=path)
    table = raw_table(source, Options.of(encoding=encoding))
    used = _columns(table, columns or {})
    notices = list(table.notices)
    raw = table.frame
    if not used.get("id"):
        ids = pl.Series("id", range(1, raw.height + 1), dtype=pl.Int64).cast(pl.String)
        notices.append(
            say(
                "{name}: no column is named as the id of a response, so rows are numbered from 1. Name "
                "it: --column id=NAME, or [columns] in the study file.",
                name=Name(table.name),
            )
        )
    else:
        ids = raw[used["id"]].str.strip_chars().alias("id")
    frame = pl.DataFrame(
        [
            ids,
            *(
                raw[used[role]].fill_null("").alias(role)
                if used.get(role)
                else pl.Series(role, [""], dtype=pl.String).new_from_index(0, raw.height)
                for role in ("response", "prompt", "question", "cluster")
            ),
        ]
    )
    hidden = {used.get(r) for r in ("id", "response", "prompt")}
    tags = raw.select(c for c in raw.columns if c not in hidden)
    _refuse_nameless(table, frame)
    keep = _once(table, frame)
    repeated = frame.height - keep.len()
    if repeated:
        # A frame without columns has no rows to choose from.
        frame, tags = frame[keep], tags[keep] if tags.width else tags
        notices.append(
            say(
                "{name}: {n} an id and a content that another row has; each is graded once.",
                name=Name(table.name),
                n=plural(repeated, "row has", "rows have"),
            )
        )
    blank = frame["response"].str.strip_chars() == ""
    n = int(blank.sum())
    skipped = n if empty == "skip" else 0
    if n:
        notices.append(
            say(
                "{name}: {n} no text; {they} {done}.",
                name=Name(table.name),
                n=plural(n, "response has", "responses have"),
                they="it is" if n == 1 else "they are",
                done="left out, as the study says"
                if skipped
                else 'graded like any other (empty = "skip" leaves them out)',
            )
        )
    if skipped:
        frame, tags = frame.filter(~blank), tags.filter(~blank) if tags.width else tags
    if not frame.height:
        raise InputError(f"{printable(table.name)}: there is no response to grade in it.")
    if frame.height > MOST_ITEMS:
        raise InputError(f"{printable(table.name)}: a study has at most {MOST_ITEMS:,} responses.")
    return Items(
        frame=frame,
        tags=tags,
        name=table.name,
        sha256=source.sha256,
        empty=n - skipped,
        skipped=skipped,
        repeated=repeated,
        notices=tuple(notices),
    )


def _columns(table: RawTable, named: Mapping[str, str]) -> dict[str, str]:
    """Which column is what: as it is named, else by the first recognised name."""
    from voirdire.readers._layout import is_prose, near, refuse_ambiguous

    used: dict[str, str] = {}
    for role, column in named.items():
        if column not in table.columns:
            shown = ", ".join(printable(c) for c in table.columns[:40])
            raise UsageError(
                f"{printable(table.name)}: columns.{role}: there is no column "
                f'"{printable(column)}".{near(column, table.columns)} Columns: {shown}.'
            )
        used[role] = column
    lower: dict[str, str] = {}
    for column in table.columns:
        lower.setdefault(column.lower(), column)
    taken = set(used.values())
    found = {
        role: [lower[n] for n in names if n in lower and lower[n] not in taken]
        for role, names in _RECOGNISED.items()
    }
    texts = found["response"]
    if "response" not in used and len(texts) > 1 and "id" not in used and not found["id"]:
        # A column `response` beside a column of texts may hold which response it is.
        prose = [c for c in texts if is_prose(table.frame[c])]
        if prose and texts[0] not in prose:
            used["id"] = texts[0]
            used["response"] = prose[0]
    for role, candidates in found.items():
        free = [c for c in candidates if c not in used.values() or role == "cluster"]
        if role not in used and free:
            used[role] = free[0]
    if "response" not in used:
        shown = ", ".join(printable(c) for c in table.columns[:40])
        raise UsageError(
            f"{printable(table.name)}: no column is known to hold the responses (columns: {shown}). Name "
            "it: --column response=NAME, or [columns] in the study file."
        )
    column = used.get("question", "")
    guessed = column.lower() == "question" and not ({"question"} & named.keys() or "prompt" in used)
    if guessed and is_prose(table.frame[column]):
        # A question in sentences is what was asked; one in a word says which checklist applies.
        used["prompt"] = used.pop("question")
    refuse_ambiguous(table, list(used.values()))
    return used


def _refuse_nameless(table: RawTable, frame: pl.DataFrame) -> None:
    from voirdire.readers._raw import Problems

    if not frame["id"].null_count():
        return
    problems = Problems(table.name, unit=table.unit)
    for row in frame["id"].is_null().arg_true().to_list():
        if not problems.room:
            problems.add_unseen(frame["id"].null_count() - problems.count)
            break
        problems.add(table.line(row), "the response has no id")
    problems.raise_if_any("Give every response an id of its own.")


def _once(table: RawTable, frame: pl.DataFrame) -> pl.Series:
    """The rows to keep, one an id; raises where two rows of one id differ in what is graded."""
    import polars as pl

    from voirdire.readers._raw import Problems, shown

    rows = frame.select(pl.int_range(pl.len(), dtype=pl.UInt32)).to_series()
    if frame["id"].n_unique() == frame.height:
        return rows
    twice = frame.with_columns(rows.alias("row")).filter(frame["id"].is_duplicated())
    groups = (
        twice.with_columns(
            pl.struct("response", "prompt", "question").n_unique().over("id").alias("kinds")
        )
        .filter(pl.col("kinds") > 1)
        .group_by("id", maintain_order=True)
        .agg("row")
    )
    problems = Problems(table.name, unit=table.unit)
    for id, places in groups.iter_rows():
        if not problems.room:
            problems.add_unseen(groups.height - problems.count)
            break
        others = ", ".join(f"{table.line(r):,}" for r in places[1:6])
        problems.add(
            table.line(places[0]),
            f"the id with {shown(id)} stands for another content on {table.unit} {others}",
        )
    problems.raise_if_any(
        "One id is one response. Give each its own id, or leave one of the rows out."
    )
    first = frame["id"].is_first_distinct()
    return rows.filter(first)


# --- keys ---------------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """A value in the one form that its meaning has: 1.0 is 1, a tuple is a list."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


_encoded = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode


def canonical(value: Any) -> bytes:
    """A value as JSON in one form: sorted keys, no spaces, ASCII, whole numbers without a point.

    Half characters and zero bytes are escaped, so every text has a form. Raises ``TypeError`` or
    ``ValueError`` for what JSON cannot hold, NaN too.
    """
    return _encoded(_plain(value)).encode("ascii")


def digest(value: Any) -> str:
    """The SHA-256 of the canonical JSON of a value, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


def text_hash(text: str) -> bytes:
    """The SHA-256 of a text; a half character counts as it is escaped, so that every text has one."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()


def grader_digest(spec: GraderSpec) -> str:
    """The digest of all of a grader that decides its answers: not its name, price or address."""
    options = {k: _content(k, v) for k, v in spec.options.items() if k not in _NOT_DECIDING}
    return digest(
        {
            "model": spec.model,
            "provider": spec.provider,
            "parameters": spec.parameters,
            "options": options,
        }
    )


def _content(name: str, value: Any) -> Any:
    if name in _FILE_OPTIONS and isinstance(value, str):
        path = Path(value)
        if path.is_file():
            return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    try:
        canonical(value)
    except (TypeError, ValueError):
        # From Python an option can be a function or an object: known by what it is called or says.
        return getattr(value, "__qualname__", None) or repr(value)
    return value


def nonce_of(key: bytes) -> str:
    """The nonce of a call, 16 hexadecimal digits: it follows from the key and cannot be guessed."""
    return key.hex()[:NONCE_LENGTH]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One call of a plan. ``position`` is its place in the plan, ``vote`` counts from 1."""

    position: int
    key: bytes
    item: Item
    grader: GraderSpec
    phrasing: str
    vote: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The calls of one grader: they stand one after the other from ``start``, response by response, in
    each by phrasing and in each of these by vote."""

    grader: GraderSpec
    digest: str
    phrasings: tuple[str, ...]
    votes: int
    start: int
    talks: bool = True

    @property
    def per_item(self) -> int:
        return len(self.phrasings) * self.votes


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All calls of a study with their keys.

    ``keys`` is ``(calls, 32)`` bytes, ``order`` ``(calls,)`` the positions in the order in which they are
    asked, ``sizes`` ``(responses, phrasings)`` the characters of the messages. ``hashes`` and ``contents``
    are ``(responses, 32)``: the SHA-256 of the response, and of all of an item that a call depends on.
    """

    study: Study
    wording: Wording
    items: Items
    blocks: tuple[Block, ...]
    phrasings: tuple[str, ...]
    keys: Array
    order: Array
    sizes: Array
    hashes: Array
    contents: Array
    notices: tuple[Text, ...] = ()

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def _starts(self) -> Array:
        return np.array([b.start for b in self.blocks], dtype=np.int64)

    def place(self, position: int) -> tuple[int, Block, int, int]:
        """The item, block, phrasing (all by number) and vote (from 1) of a position."""
        block = self.blocks[int(np.searchsorted(self._starts, position, side="right")) - 1]
        item, rest = divmod(position - block.start, block.per_item)
        phrasing, vote = divmod(rest, block.votes)
        return item, block, phrasing, vote + 1

    def at(self, position: int) -> Planned:
        """The call at a position of the plan."""
        item, block, phrasing, vote = self.place(position)
        return Planned(
            position=position,
            key=self.keys[position].tobytes(),
            item=self.items[item],
            grader=block.grader,
            phrasing=block.phrasings[phrasing],
            vote=vote,
        )

    def request(self, call: Planned) -> Request:
        """What goes to the provider: the messages are made now, with the nonce in its place."""
        return Request(
            messages=self.wording.messages(call.item, call.phrasing, nonce_of(call.key)),
            model=call.grader.model,
            parameters=self._sent(call),
            reply_schema=self.wording.reply_schema(call.item.question),
            labels=self.wording.labels(call.item.question),
            response=call.item.response,
            prompt=call.item.prompt,
        )

    def _sent(self, call: Planned) -> dict[str, Any]:
        """The parameters of a call; for a rubric that holds replies to a grammar, that too.

        The grammar goes under the name that llama.cpp's server knows. It is in the key already, as a part
        of the form of the reply. A grader that sets it for itself keeps its own.
        """
        grammar = self.wording.rubric.grammar(call.item.question)
        return {**({"grammar": grammar} if grammar else {}), **call.grader.parameters}

    def characters(self, positions: Array) -> Array:
        """How many characters the messages of calls have, by their positions: ``(n,)`` uint64."""
        found = np.empty(len(positions), dtype=np.uint64)
        which = np.searchsorted(self._starts, positions, side="right") - 1
        for number, block in enumerate(self.blocks):
            mine = which == number
            item, rest = np.divmod(positions[mine] - block.start, block.per_item)
            columns = np.array([self.phrasings.index(p) for p in block.phrasings])
            found[mine] = self.sizes[item, columns[rest // block.votes]]
        return found

    def left(self, settled: Array) -> Array:
        """The positions of calls whose key is not in ``settled`` ``(n, 32)``, in the order of asking."""
        return np.asarray(self.order[~among(self.keys, settled)[self.order]])

    @cached_property
    def response_digest(self) -> str:
        """The SHA-256 of all responses with what stands beside them, whatever their file is called."""
        found = hashlib.sha256(self.contents.tobytes())
        for row in self.items.frame.select("id", "cluster").iter_rows():
            found.update(canonical(row))
        found.update(canonical(self.items.tags.columns))
        for row in self.items.tags.iter_rows():
            found.update(canonical(row))
        return found.hexdigest()

    @cached_property
    def digest(self) -> str:
        """The digest of all that is planned and how it is named: equal plans make equal slots."""
        return digest(
            {
                "responses": self.response_digest,
                "rubric": self.wording.card,
                "blocks": [
                    {
                        "name": b.grader.name,
                        "grader": b.digest,
                        "phrasings": b.phrasings,
                        "votes": b.votes,
                    }
                    for b in self.blocks
                ],
                "keys": hashlib.sha256(self.keys.tobytes()).hexdigest(),
            }
        )


def among(keys: Array, others: Array) -> Array:
    """Which rows of ``keys`` ``(n, 32)`` are rows of ``others`` ``(m, 32)``: ``(n,)`` bool."""
    if not len(others) or not len(keys):
        return np.zeros(len(keys), dtype=np.bool_)
    # Keys are uniform, so eight bytes of them find the one candidate, and all 32 confirm it.
    head, other_head = _heads(keys), _heads(others)
    order = np.argsort(other_head, kind="stable")
    ranked = other_head[order]
    if len(ranked) > 1 and (ranked[1:] == ranked[:-1]).any():
        return np.asarray(np.isin(_whole_keys(keys), _whole_keys(others)))
    at = np.minimum(np.searchsorted(ranked, head), len(ranked) - 1)
    candidates = order[at]
    found = ranked[at] == head
    found[found] = (keys[found] == others[candidates[found]]).all(axis=1)
    return np.asarray(found)


def _heads(keys: Array) -> Array:
    return np.ascontiguousarray(keys[:, :8]).view("<u8").ravel()


def _whole_keys(keys: Array) -> Array:
    # Fixed width: that a text of numpy ends at a zero byte makes no two keys alike.
    return np.ascontiguousarray(keys).view("S32").ravel()


def _mixed(keys: Array, seed: int) -> Array:
    """The positions in an order that follows from seed and keys alone, ``(calls,)`` int64.

    Each call's rank is the finaliser of SplitMix64 (Steele, Lea and Flood 2014, OOPSLA, figure 17) of
    its key and the seed. Unlike a shuffle, the order of two calls stays when others are added.
    """
    start = int.from_bytes(hashlib.sha256(canonical(["order", seed])).digest()[:8], "little")
    z = _heads(keys) ^ np.uint64(start)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.argsort(z ^ (z >> np.uint64(31)), kind="stable")


def plan(
    study: Study,
    wording: Wording,
    items: Items | None = None,
    *,
    talks: Callable[[GraderSpec], bool] = lambda spec: True,
) -> Plan:
    """All calls of a study: every response by every grader, under every phrasing, in every vote.

    A grader that does not talk (a rule) is asked once, under the first phrasing, where the study does
    not say otherwise for it. Two calls with the same content in one plan (responses that are equal
    word for word, a grader that is named twice) are two calls with keys of their own: each response is
    graded for itself. Raises :class:`UsageError` for a phrasing that the rubric does not have.
    """
    if items is None:
        items = read_items(
            study.responses, columns=study.columns, empty=study.empty, encoding=study.encoding
        )
    blocks = _blocks(study, wording, len(items), talks)
    phrasings = tuple(dict.fromkeys(p for b in blocks for p in b.phrasings))
    n = len(items)
    _refuse_unasked(wording, items)
    contents, hashes, wholes = bytearray(), bytearray(), bytearray()
    sizes = array("Q")
    forms: dict[str, bytes] = {}  # by question: what decides an answer beside the messages
    messages, sha256 = wording.messages, hashlib.sha256
    for item in items:
        said = text_hash(item.response)
        hashes += said
        texts = _encoded((item.prompt, said.hex())).encode("ascii")
        wholes += sha256(texts + _encoded(item.question).encode("ascii")).digest()
        form = forms.get(item.question)
        if form is None:
            form = forms[item.question] = _form(wording, item.question)
        for phrasing in phrasings:
            made = messages(item, phrasing, "")
            sizes.append(sum([len(m.content) for m in made]))
            # Lengths before texts say where each ends, at a tenth of the time that JSON takes.
            content = sha256(texts + form)
            for m in made:
                told = m.content.encode("utf-8", "backslashreplace")
                content.update(b"%b %d " % (m.role.encode(), len(told)))
                content.update(told)
            contents += content.digest()
    keys = _keys(blocks, phrasings, contents, items)
    return Plan(
        study=study,
        wording=wording,
        items=items,
        blocks=blocks,
        phrasings=phrasings,
        keys=keys,
        order=_mixed(keys, study.seed),
        sizes=np.frombuffer(sizes, dtype=np.uint64).reshape(n, len(phrasings)),
        hashes=_rows(hashes),
        contents=_rows(wholes),
        notices=items.notices,
    )


def _refuse_unasked(wording: Wording, items: Items) -> None:
    """Raise where a checklist has no lines for the question of a response: all questions, with counts."""
    rubric = wording.rubric
    if not rubric.questions:
        return
    counts = items.frame.group_by("question", maintain_order=True).len()
    strange = [(q, n) for q, n in counts.iter_rows() if q not in rubric.questions]
    if not strange:
        return
    shown_ones = "; ".join(
        f"{printable(q[:60]) if q else 'no question'} ({plural(n, 'response')})"
        for q, n in strange[:20]
    )
    more = f" and {len(strange) - 20:,} more" if len(strange) > 20 else ""
    raise InputError(
        f"{printable(items.name) or 'The responses'}: the checklist {rubric.name} has no lines for "
        f"{shown_ones}{more}. Add a [[questions]] entry for each, or name the column that holds the "
        "question: --column question=NAME, or [columns] in the study file."
    )


def _form(wording: Wording, question: str) -> bytes:
    return canonical(
        [
            wording.reply_schema(question),
            wording.rubric.grammar(question),
            wording.labels(question),
        ]
    )


def _blocks(
    study: Study, wording: Wording, n: int, talks: Callable[[GraderSpec], bool]
) -> tuple[Block, ...]:
    known = wording.phrasings
    if len(known) > MOST_PHRASINGS - 1:
        raise InputError(f"A rubric has at most {MOST_PHRASINGS - 1} phrasings.")
    blocks: list[Block] = []
    start = 0
    for spec in study.graders:
        share = study.shares.get(spec.name, Share())
        if share.phrasings is not None:
            chosen = share.phrasings or known
        else:
            chosen = (study.phrasings or known) if talks(spec) else known[:1]
        unknown = [p for p in chosen if p not in known]
        if unknown:
            raise UsageError(
                f"The rubric {study.rubric} has no phrasing {printable(unknown[0])!r}."
                f"{_near(unknown[0], known)}"
            )
        votes = share.votes or (study.votes if talks(spec) else 1)
        block = Block(
            grader=spec,
            digest=grader_digest(spec),
            phrasings=chosen,
            votes=votes,
            start=start,
            talks=talks(spec),
        )
        blocks.append(block)
        start += n * block.per_item
    return tuple(blocks)


def _copies(rows: Array, rank: Callable[[int], Any]) -> dict[int, int]:
    """How many equal rows come before a row, by rank, for rows ``(n, 32)`` where it is not 0."""
    heads = np.sort(_heads(rows))
    if not (heads[1:] == heads[:-1]).any():
        return {}
    _, which, counts = np.unique(_whole_keys(rows), return_inverse=True, return_counts=True)
    which = which.ravel()
    seen: dict[int, int] = {}
    copies: dict[int, int] = {}
    for at in sorted(np.flatnonzero(counts[which] > 1).tolist(), key=rank):
        group = int(which[at])
        copies[at] = seen.get(group, 0)
        seen[group] = copies[at] + 1
    return {at: n for at, n in copies.items() if n}


def _rows(content: bytes | bytearray) -> Array:
    return np.frombuffer(content, dtype=np.uint8).reshape(-1, 32)


def _keys(
    blocks: Sequence[Block], phrasings: Sequence[str], contents: bytes | bytearray, items: Items
) -> Array:
    """The keys of all calls, ``(calls, 32)``: the SHA-256 of canonical JSON with the digests of content
    and grader, the vote, and, for a content that was planned already, how often."""
    n, width = len(items), len(phrasings)
    # By id, not by row: the order of a file decides nothing.
    copies = _copies(_rows(contents), lambda row: items.frame["id"][row // width])
    graders = _copies(_rows(bytes.fromhex("".join(b.digest for b in blocks))), lambda row: row)
    keys = np.empty((sum(n * b.per_item for b in blocks), 32), dtype=np.uint8)
    sha256 = hashlib.sha256
    column = {phrasing: p for p, phrasing in enumerate(phrasings)}
    for g, block in enumerate(blocks):
        ends = [
            f',"grader":"{block.digest}","vote":{v}}}'.encode() for v in range(1, block.votes + 1)
        ]
        columns = [column[p] for p in block.phrasings]
        again = graders.get(g, 0)
        at = block.start
        for first in range(0, n, CHUNK):
            part: list[bytes] = []
            for i in range(first, min(n, first + CHUNK)):
                for p in columns:
                    row = i * width + p
                    start = b'{"content":"%b"' % contents[32 * row : 32 * row + 32].hex().encode()
                    copy = copies.get(row, 0)
                    if copy or again:
                        start += b',"copy":[%d,%d]' % (copy, again)
                    part.extend([sha256(start + end).digest() for end in ends])
            made = _rows(b"".join(part))
            keys[at : at + len(made)] = made
            at += len(made)
    return keys
