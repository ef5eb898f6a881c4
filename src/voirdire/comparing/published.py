"""Results of earlier audits as they were written: read back, and compared as independent samples."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voirdire import intervals, plugins
from voirdire.document import Input
from voirdire.errors import InputError, UsageError
from voirdire.estimand import Estimand, Scale, Source
from voirdire.estimate import RESULT_COLUMNS, Estimate, Interval, Key, Undefined
from voirdire.stats.base import Family
from voirdire.stats.comparison import difference_of
from voirdire.wording import listed, plain, printable

METHOD = "mover_independent"
SUFFIXES = (".json", ".csv", ".parquet")
MOVER = Source(
    text="Newcombe 1998, Statistics in Medicine 17, p. 873; Zou and Donner 2008, Statistics in Medicine "
    "27, p. 1693 (MOVER)"
)
# What an audit says of one grader, alone or against gold, that has a difference worth reading.
COMPARED = (
    *("label_count", "label_share", "rate", "outcome_count"),
    *("agreement", "cohen_kappa", "weighted_kappa_linear", "weighted_kappa_quadratic"),
    *("scott_pi", "gwet_ac1", "gwet_ac2_quadratic", "brennan_prediger", "class_agreement"),
    *("self_disagreement", "element_error", "false_accept", "false_reject"),
    *("gate_accuracy", "pass_rate", "kr20"),
)
OF_GRADER = ("label_count", "label_share", "rate")
_TEXTS = ("statistic", "grader", "other", "class", "to_class", "line", "cut", "slice", "method")
_NUMBERS = ("value", "low", "high", "level", "n", "clusters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The results of one audit of one grader. ``options`` is ``None`` where the file does not say.

    ``rows`` are those of the grader, by (statistic, other, class, line, cut, slice); ``other`` is
    ``"gold"`` for gold, whatever it is called.
    """

    grader: str
    rows: Mapping[tuple[str, ...], Mapping[str, Any]]
    inputs: tuple[Input, ...] = ()
    options: Mapping[str, Any] | None = None
    version: str = ""
    file: Input = field(default_factory=lambda: Input(name="", sha256="", rows=0))
    gold: str = ""


def is_results(given: Any) -> bool:
    """Whether an input is a results file of voirdire rather than labels: told from its beginning."""
    if not isinstance(given, str | Path) or str(given) == "-":
        return False
    path = Path(given)
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return False
    if path.suffix.lower() == ".parquet":
        import polars as pl

        try:
            names = tuple(pl.read_parquet_schema(path))
        except (pl.exceptions.PolarsError, OSError):
            return False
        return names[:3] == RESULT_COLUMNS[:3] and "value" in names
    with path.open("rb") as file:
        head = file.read(4096).decode("utf-8", errors="replace").lstrip("\ufeff \t\r\n")
    if path.suffix.lower() == ".csv":
        names = tuple(head.split("\n", 1)[0].strip().split(","))
        return names[:3] == RESULT_COLUMNS[:3] and "value" in names
    return head.startswith("{") and head[1:].lstrip().startswith('"voirdire"')


def read_results(path: str | Path, *, gold: str, grader: str, flag: str) -> Results:
    """Read a results file of an audit, of this or another version, and take one grader's rows.

    Raises :class:`InputError` where it is not whole, :class:`UsageError` where it is not clear which
    grader is meant; ``flag`` names the option that says it.
    """
    import hashlib

    path = Path(path)
    data = path.read_bytes()
    inputs: tuple[Input, ...] = ()
    options: Mapping[str, Any] | None = None
    version = ""
    if path.suffix.lower() == ".json":
        content = _json(path, data)
        records = content["results"]
        options, version = content.get("options") or {}, str(content.get("voirdire", ""))
        inputs = tuple(
            Input(
                name=str(i.get("name", "")),
                sha256=str(i.get("sha256", "")),
                rows=int(i.get("rows") or 0),
            )
            for i in content.get("inputs") or ()
            if isinstance(i, Mapping)
        )
        said = options.get("gold")
        gold = gold or (str(said) if said else "")
    else:
        records = _table(path, data)
    rows = [_checked(path, i, r) for i, r in enumerate(records, start=1)]
    gold = "" if gold == "none" else gold or "gold"
    grader = _grader(path, rows, gold, grader, flag)
    return Results(
        grader=grader,
        rows=_of(rows, grader, gold),
        inputs=inputs,
        options=options,
        version=version,
        file=Input(name=path.name, sha256=hashlib.sha256(data).hexdigest(), rows=len(rows)),
        gold=gold,
    )


def of_estimates(
    estimates: Sequence[Estimate],
    *,
    grader: str,
    gold: str,
    inputs: tuple[Input, ...],
    options: Mapping[str, Any],
    version: str,
) -> Results:
    """The same from an audit that was made just now."""
    return Results(
        grader=grader,
        rows=_of([e.row() for e in estimates], grader, gold),
        inputs=inputs,
        options=options,
        version=version,
        file=inputs[0] if inputs else Input(name="", sha256="", rows=0),
        gold=gold,
    )


def _json(path: Path, data: bytes) -> Mapping[str, Any]:
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except ValueError as error:
        raise InputError(f"{path}: not JSON that can be read ({error}).") from error
    if not isinstance(content, Mapping) or not isinstance(content.get("results"), list):
        raise InputError(
            f"{path}: it has no list of results. Write it with voirdire audit INPUT -o audit.json."
        )
    if "compared" in content:
        raise InputError(
            f"{path}: this is a comparison itself. Compare the results of two audits: voirdire audit "
            "INPUT -o audit.json."
        )
    return content


def _table(path: Path, data: bytes) -> list[dict[str, Any]]:
    import polars as pl

    try:
        if path.suffix.lower() == ".parquet":
            return pl.read_parquet(io.BytesIO(data)).to_dicts()
        frame = pl.read_csv(io.BytesIO(data), infer_schema_length=0, encoding="utf8")
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{path}: not a results table that can be read ({error}).") from error
    records = frame.to_dicts()
    for record in records:
        for name, text in record.items():
            if name in _TEXTS:  # the mark that keeps spreadsheets from running a cell
                record[name] = (text or "").removeprefix("'")
    return records


def _checked(path: Path, place: int, record: Any) -> dict[str, Any]:
    """A row of whatever version with the columns that are read here; others are left alone."""
    needed = ("statistic", "grader", "value")
    if not isinstance(record, Mapping) or any(n not in record for n in needed):
        raise InputError(
            f"{path}, result {place}: it lacks one of {', '.join(needed)}, so it was not written by "
            "voirdire audit, or by a version that cannot be read. Run the audit again."
        )
    row: dict[str, Any] = {n: str(record.get(n) or "") for n in (*_TEXTS, "reason")}
    for name in _NUMBERS:
        value = record.get(name)
        if value is None or value == "":
            row[name] = None
            continue
        try:
            row[name] = float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"{path}, result {place}: {value!r} in {name} is not a number."
            ) from None
        if not math.isfinite(row[name]):
            row[name] = None
    return row


def _grader(path: Path, rows: Sequence[Mapping[str, Any]], gold: str, name: str, flag: str) -> str:
    names = list(dict.fromkeys(str(r["grader"]) for r in rows if r["grader"]))
    graders = [n for n in names if n != gold]
    if name:
        if name not in names:
            raise UsageError(
                f"{flag}: {path.name} has no results of {name!r}. Graders: "
                f"{plain(listed(map(printable, graders), most=20)) or 'none'}."
            )
        return name
    if len(graders) == 1:
        return graders[0]
    if not graders:
        raise InputError(f"{path}: it holds no results of a grader.")
    raise UsageError(
        f"{flag}: {path.name} has results of several graders; name one: {flag} NAME. Graders: "
        f"{plain(listed(map(printable, graders), most=20))}."
    )


def _of(
    rows: Sequence[Mapping[str, Any]], grader: str, gold: str
) -> dict[tuple[str, ...], Mapping[str, Any]]:
    found: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for row in rows:
        other = str(row["other"])
        if row["statistic"] not in COMPARED or row["grader"] != grader:
            continue
        if other not in ("", gold) or row["to_class"]:
            continue
        key = ("gold" if other else "", *(str(row[n]) for n in ("class", "line", "cut", "slice")))
        found.setdefault((str(row["statistic"]), *key), row)
    return found


def estimands() -> dict[str, Estimand]:
    """Every estimand by name."""
    return {s.name: s.estimand for f in plugins.load("stats", Family) for s in f.statistics}


def differences(old: Results, new: Results, names: tuple[str, str]) -> list[Estimate]:
    """New less old for everything that both say, each interval as of independent samples.

    ``names`` are old and new as the comparison calls them. Counts have no interval.
    """
    known = estimands()
    made: list[Estimate] = []
    for key, mine in new.rows.items():
        theirs = old.rows.get(key)
        base = known.get(key[0])
        if theirs is None or base is None:
            continue
        _, _, class_, line, cut, slice_ = key
        where = {"class_": class_, "line": line, "cut": cut, "slice": slice_}
        minus = difference_of(
            base, ("grader", "other", *(k for k in base.keys if k not in ("grader", "other")))
        )
        made += [
            _own(base, names[1], mine, where, new.gold if key[1] else ""),
            _own(base, names[0], theirs, where, old.gold if key[1] else ""),
            _difference(minus, theirs, mine, names, where),
        ]
    return made


def _own(
    base: Estimand, grader: str, row: Mapping[str, Any], where: Mapping[str, str], gold: str
) -> Estimate:
    value = row["value"]
    interval = None
    if value is not None and row["low"] is not None and row["high"] is not None:
        interval = Interval(
            low=row["low"],
            high=row["high"],
            level=row["level"] if row["level"] is not None else 0.95,
            method=row["method"],
        )
    return Estimate(
        estimand=base,
        key=Key(grader=grader, other=gold, **where),
        value=Undefined(row["reason"] or base.undefined_when) if value is None else float(value),
        interval=interval,
        n=row["n"],
        clusters=None if row["clusters"] is None else int(row["clusters"]),
    )


def _difference(
    minus: Estimand,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    names: tuple[str, str],
    where: Mapping[str, str],
) -> Estimate:
    key = Key(grader=names[1], other=names[0], **where)
    for row, name in ((old, names[0]), (new, names[1])):
        if row["value"] is None:
            why = row["reason"] or "it has no value"
            return Estimate(estimand=minus, key=key, value=Undefined(f"{name}: {why}"))
    value = new["value"] - old["value"]
    interval, why = None, ""
    ends = [row[n] for row in (old, new) for n in ("low", "high")]
    if minus.scale is Scale.NONE:
        pass
    elif any(e is None for e in ends):
        why = "one of the two has no interval"
    elif old["level"] != new["level"]:
        why = f"the levels of the two differ ({old['level']:g} and {new['level']:g})"
    else:
        low, high = intervals.mover(
            (new["value"], new["low"], new["high"]), (old["value"], old["low"], old["high"])
        )
        low = low if minus.low is None else max(low, minus.low)
        high = high if minus.high is None else min(high, minus.high)
        interval = Interval(low=low, high=high, level=new["level"] or 0.95, method=METHOD)
    numbers = [row["n"] for row in (old, new) if row["n"] is not None]
    held = [int(row["clusters"]) for row in (old, new) if row["clusters"] is not None]
    return Estimate(
        estimand=minus,
        key=key,
        value=value,
        interval=interval,
        n=min(numbers) if numbers else None,
        clusters=min(held) if held else None,
        no_interval=why,
    )
