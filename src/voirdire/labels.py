"""The one table of labels: every call of every grader on every response, checked once, here.

:func:`assemble` takes the rows that readers hand over, brings the label texts to classes and
outcomes, joins what belongs to one response, and collects every problem before it raises.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from voirdire.checklist import NO, SCALE, YES, Checklist
from voirdire.document import Input
from voirdire.errors import InputError, UsageError
from voirdire.options import MISSING, OUTCOMES, Options
from voirdire.questions import LINE, asked, coded, heads, natural, unparsed
from voirdire.rows import BLANK, CANONICAL, LENGTH, SHOWN, Rows
from voirdire.rows import CODE as _CODE
from voirdire.rows import PART as _PART
from voirdire.rows import ROW as _ROW
from voirdire.rows import raise_problems as _raise_problems
from voirdire.rows import short as _short
from voirdire.rows import where as _where
from voirdire.wording import Name, Text, listed, plain, plural, printable, say

Array = np.ndarray[Any, Any]

ALL_OUTCOMES = (*OUTCOMES, MISSING)
UNNAMED = "(unnamed)"  # the phrasing of calls that name none, of a grader that names others
LARGEST_WEIGHT = 1e12
# Columns of our own while labels are assembled: no column of a user has a zero byte in its name.
_CLASS, _OUTCOME = "\0class", "\0outcome"
_TWICE, _KINDS = "\0twice", "\0kinds"
OF_A_CALL = ("raw", "outcome_reason")  # tags that say something of a call, never of its response
READING_ONLY = (
    *("layout", "response", "grader", "label", "cluster", "question", "vote", "phrasing"),
    "phrasings",
    *("weight", "stratum", "line", "outcome", "graders", "grader_name", "scale", "off_scale"),
    "line_prefix",
    *(
        "missing",
        "map",
        "failed",
        "recode",
        "weight_kind",
        "encoding",
        "step",
        "population",
        "round",
    ),
)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BOOLEANS = {"true": "1", "false": "0"}
_VERDICTS = {**_BOOLEANS, "yes": YES, "no": NO}
# Between letters or digits alone: ``A-`` is no ``A``.
_SPACED = re.compile(r"(?<=[^\W_])[\s_-]+(?=[^\W_])")
# Words for a call without a verdict, as loggers write them into the column of labels. With a class
# that is the opposite beside them some are verdicts themselves; ``none`` is one too often.
_FAILURES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(("parse error", "parsing error"), ("unparsed", ())),
    **dict.fromkeys(("unparsed", "unparsable", "unparseable"), ("unparsed", ())),
    **dict.fromkeys(("invalid", "invalid response"), ("unparsed", ("valid", "valid response"))),
    **dict.fromkeys(("n/a", "nan", "null"), ("unparsed", ())),
    **dict.fromkeys(("timeout", "timed out", "api error"), ("error", ())),
    "error": ("error", ("no error", "noerror")),
    "failed": ("error", ("passed", "pass", "succeeded", "success")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """Who gave labels, and what is known of it. ``range`` empty: it can give every class.

    ``origins`` are all graders whose labels went into its own, over any number of steps, itself too.
    """

    name: str
    person: bool = False
    derived_from: tuple[str, ...] = ()
    range: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    origins: frozenset[str] = frozenset()

    @property
    def family(self) -> str:
        return str(self.facts.get("family", ""))

    def related(self, other: Grader) -> bool:
        """Whether labels of one grader went into both, or both are declared of one family."""
        return (
            self.name == other.name
            or bool(self.origins & other.origins)
            or bool(self.family and self.family == other.family)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A column to slice by. ``per_response``: all labels of a response share its value."""

    name: str
    values: int
    per_response: bool
    numeric: bool


@dataclass(frozen=True, kw_only=True)
class Labels:
    """All labels in canonical form, with what is known of graders and classes.

    ``frame`` has the canonical columns and the tags. ``kind`` is ``"labels"``, or ``"counts"``
    where only a table of counts is known: then ``response`` is empty, ``weight`` is the count of a
    class (null: not printed) and a row without label and with outcome ``label`` is a grader's total.
    In a ``"checklist"`` every row is a verdict on a ``line`` of :attr:`checklist`, of the classes
    ``0`` (no) and ``1`` (yes).
    """

    frame: pl.DataFrame
    scale: tuple[str, ...]
    off_scale: tuple[str, ...]
    ordered: bool
    graders: tuple[Grader, ...]
    options: Options
    kind: str = "labels"
    clusters_declared: bool = False
    tags: tuple[Tag, ...] = ()
    notices: tuple[Text, ...] = ()
    inputs: tuple[Input, ...] = ()
    layouts: tuple[str, ...] = ()
    checklist: Checklist | None = None

    @property
    def classes(self) -> tuple[str, ...]:
        """The scale, lowest first, then the classes outside of it."""
        return (*self.scale, *self.off_scale)

    @property
    def grader_names(self) -> tuple[str, ...]:
        return tuple(g.name for g in self.graders)

    @cached_property
    def by_name(self) -> dict[str, Grader]:
        return {g.name: g for g in self.graders}

    @cached_property
    def responses(self) -> int:
        if self.kind == "counts" or self.frame.is_empty():
            return 0
        return int(self.response_codes.max()) + 1

    @cached_property
    def response_codes(self) -> Array:
        """The place of each row's response among all responses in sorted order, ``(rows,)`` uint32."""
        return coded(self.frame["response"])[1].to_numpy()

    @classmethod
    def from_frame(cls, frame: Any, **options: Any) -> Labels:
        """Labels from a polars, pandas, Arrow or DuckDB frame; options as for :func:`voirdire.read`."""
        from voirdire.plugins import named
        from voirdire.source import Source

        chosen = Options.of(**options)
        rows = named("readers", "table").read(Source.of_frame(frame), chosen)
        return assemble([rows], chosen)

    def with_facts(self, options: Options) -> Labels:
        """The same labels under other options for the audit (gold, people, range, rates …).

        Raises :class:`UsageError` for an option that only reading can follow.
        """
        for name in READING_ONLY:
            if getattr(options, name) != getattr(self.options, name):
                raise UsageError(
                    f"{name} is settled when labels are read: give it to voirdire.read() instead."
                )
        graders = _graders(self.grader_names, options, {}, self.graders)
        _check_named(self.grader_names, options, self.kind)
        if self.kind == "checklist":
            _refuse_of_classes(options)
        _check_ranges(self.frame, graders)
        _check_classes(self.classes, options)
        changed = replaced(self, graders=graders, options=options)
        if "response_codes" in self.__dict__:  # the rows are the same
            changed.__dict__["response_codes"] = self.response_codes
        return changed

    def write(self, path: str | Path) -> None:
        """Write the canonical table as Parquet (reads back identically) or CSV (labels only)."""
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix == ".parquet":
            carried = {
                "version": 1,
                "kind": self.kind,
                "ordered": self.ordered,
                "scale": list(self.scale),
                "off_scale": list(self.off_scale),
                "clusters_declared": self.clusters_declared,
                "gold": gold_name(self.grader_names, self.options),
                "reference": self.options.reference,
                "step": self.options.step,
                "checklist": None if self.checklist is None else self.checklist.record(),
                "graders": [
                    {
                        "name": g.name,
                        "person": g.person,
                        "derived_from": list(g.derived_from),
                        "range": list(g.range),
                        "facts": dict(g.facts),
                    }
                    for g in self.graders
                ],
            }
            metadata = {"voirdire": json.dumps(carried, ensure_ascii=False, sort_keys=True)}
            _replace_whole(path, lambda p: self.frame.write_parquet(p, metadata=metadata))
        elif suffix == ".csv":
            guarded = self.frame.with_columns(
                pl.when(pl.col(c).cast(pl.String).str.contains(r"^[=+\-@\t\r']"))
                .then(pl.lit("'") + pl.col(c).cast(pl.String))
                .otherwise(pl.col(c).cast(pl.String))
                .alias(c)
                for c in self.frame.columns
                if self.frame.schema[c] != pl.Float64
            )
            guarded = guarded.rename({c: f"'{c}" for c in guarded.columns if c[:1] in "=+-@\t\r'"})
            _replace_whole(path, guarded.write_csv)
        else:
            raise UsageError(f"{path.name}: labels are written to .parquet or .csv.")

    def _repr_counts(self) -> str:
        return f"{plural(len(self.frame), 'label')} of {plural(len(self.graders), 'grader')}"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from voirdire import notebook

        return notebook.labels_html(self, gold_name(self.grader_names, self.options))

    def __repr__(self) -> str:
        return f"<Labels: {self._repr_counts()}, classes {', '.join(self.classes)}>"


def _replace_whole(path: Path, write: Any) -> None:
    """Write to a neighbour and rename, so that a reader never sees half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        write(temporary)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is only replaced when the new one is whole."""
    _replace_whole(path, lambda temporary: Path(temporary).write_bytes(content))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# --- assembling ---------------------------------------------------------------------------------


def assemble(parts: Sequence[Rows], options: Options) -> Labels:
    """One table of labels from the rows of all inputs.

    Raises :class:`InputError` with every problem that was found (the first 20 shown), and
    :class:`UsageError` where an option names a grader or class that is not there.
    """
    kinds = {p.kind for p in parts}
    if len(kinds) > 1:
        raise InputError(
            "Tables of labels, of counts and checklists cannot be put together: "
            + ", ".join(f"{p.name} ({p.kind})" for p in parts)
            + ". Audit them one by one."
        )
    options = _with_carried(parts, options)
    notices: list[Text] = [n for p in parts for n in p.notices]
    notices += [
        say("{recode} matches nothing.", recode=Name(r))
        for r in parts[0].unmatched
        if all(r in p.unmatched or r in p.absent for p in parts)
    ]
    frame = _appended(parts)
    if frame.is_empty():
        raise InputError(f"{', '.join(p.name for p in parts)}: there are no labels in it.")
    kind = kinds.pop()
    for flag, column in (("--step", options.step), ("--population", options.population)):
        if column and column not in frame.columns:
            raise UsageError(f"{flag}: there is no column {column!r}.")
    checklist: Checklist | None = None
    if kind == "checklist":
        _refuse_of_classes(options)
        notices += _idle_on_checklists(options)
        frame = frame.with_columns(
            (pl.col("label").is_null() & pl.col("outcome").is_null()).alias(BLANK)
        )
        frame, scale, off_scale = _verdicts(frame, parts, options, notices)
    else:
        frame, scale, off_scale = _classified(frame, parts, options, notices)
    if kind != "counts":
        _refuse_nameless(frame, parts)
    names = _grader_names(frame, parts, options)
    frame = frame.with_columns(pl.col("grader").cast(pl.Enum(names)))
    if kind != "counts":
        frame = frame.with_columns(coded(frame["response"])[1].alias(_CODE))
        if kind == "checklist":
            frame, checklist = asked(frame, parts, notices)
        frame = _weighed(frame, parts, options)
        frame = _without_duplicates(frame, parts, options.step, notices)
        if options.step:
            _note_turned_steps(frame, parts, options.step, notices)
        if not blank(frame, "vote") and not _all_numbers(frame["vote"]):
            notices.append(
                (
                    "Votes are not all numbers, so they are ordered as text; the rule “first” "
                    "depends on that.",
                )
            )
        frame, clusters_declared = _clustered(frame, parts, notices)
    else:
        clusters_declared = False
    if kind == "checklist":
        # What the truth or a person left blank, nobody was asked: it is no reply that went unread.
        people = {gold_name(names, options), *options.people}
        frame = unparsed(frame, [n for n in names if n not in people])
    tags = _tags(frame, kind)
    if kind != "counts":
        # A row without a step is one from before all steps, whatever the response's other rows say.
        frame = _filled_tags(frame, [t for t in tags if t.name != options.step])
    facts: dict[str, Mapping[str, Any]] = {}
    for part in parts:
        facts.update(part.facts)
    graders = _graders(names, options, facts, _carried_graders(parts))
    _check_named(names, options, kind)
    if kind == "labels":
        notices[:0] = _gold_apart(frame, gold_name(names, options))
        notices += _kinds_of_labels(frame, parts, names, options)
    if kind != "counts" and not options.step:
        frame = _named_wordings(frame, options, notices)
    notices += _unused_facts(frame, names, tags, options)
    if kind == "counts":
        notices += _unused_options(options)
    _check_ranges(frame, graders)
    classes = (*scale, *off_scale)
    _check_classes(classes, options)
    if options.strict and notices:
        raise InputError(
            "With --strict, what would be a notice is an error:\n"
            + "\n".join(printable(plain(n)) for n in notices[:SHOWN])
        )
    labels = Labels(
        frame=frame.select(*CANONICAL, *(t.name for t in tags)),
        scale=scale,
        off_scale=off_scale,
        ordered=bool(options.scale) or kind == "checklist",
        graders=graders,
        options=options,
        kind=kind,
        checklist=checklist,
        clusters_declared=clusters_declared,
        tags=tags,
        notices=tuple(notices),
        inputs=tuple(
            Input(
                name=p.name,
                sha256=p.sha256,
                rows=len(p.frame) if p.height is None else p.height,
            )
            for p in parts
        ),
        layouts=tuple(p.layout for p in parts),
    )
    if kind != "counts":
        labels.__dict__["response_codes"] = frame[_CODE].to_numpy()  # known already: not found anew
    return labels


def _all_numbers(texts: pl.Series) -> bool:
    return texts.cast(pl.Float64, strict=False).null_count() == texts.null_count()


def blank(frame: pl.DataFrame, column: str) -> bool:
    """Whether nothing stands in a column; a column that was never there takes no memory to ask."""
    return bool(frame.select(pl.col(column).null_count()).item() == len(frame))


def _with_carried(parts: Sequence[Rows], options: Options) -> Options:
    """A table of our own carries its scale, gold, reference and steps; options given now go first."""
    for name in ("gold", "reference", "step"):
        values = {p.carried[name] for p in parts if p.carried.get(name)}
        if len(values) == 1 and not getattr(options, name):
            options = replaced(options, **{name: values.pop()})
    if options.scale or options.off_scale or parts[0].kind == "checklist":
        return options
    scales = {
        (tuple(p.carried.get("scale", ())), tuple(p.carried.get("off_scale", ())))
        for p in parts
        if p.carried.get("ordered")
    }
    if len(scales) == 1:
        scale, off_scale = scales.pop()
        return replaced(options, scale=scale, off_scale=off_scale)
    return options


def _carried_graders(parts: Sequence[Rows]) -> tuple[Grader, ...]:
    return tuple(
        Grader(
            name=g["name"],
            person=bool(g.get("person", False)),
            derived_from=tuple(g.get("derived_from", ())),
            range=tuple(g.get("range", ())),
            facts=g.get("facts", {}),
        )
        for p in parts
        for g in p.carried.get("graders", ())
    )


def _appended(parts: Sequence[Rows]) -> pl.DataFrame:
    frames = []
    for i, part in enumerate(parts):
        frame = part.frame.with_columns(
            pl.lit(i, dtype=pl.Int32).alias(_PART),
            pl.int_range(pl.len(), dtype=pl.UInt32).alias(_ROW),
        )
        if len(parts) > 1 and "file" not in frame.columns:
            frame = frame.with_columns(pl.lit(part.stem).alias("file"))
        texts = [c for c in frame.columns if c not in (_PART, _ROW, LENGTH, "weight")]
        frames.append(frame.with_columns(pl.col(c).cast(pl.String) for c in texts))
    frame = pl.concat(frames, how="diagonal_relaxed")
    absent = [c for c in CANONICAL if c not in frame.columns]
    return frame.with_columns(pl.lit(None, dtype=pl.String).alias(c) for c in absent)


# --- labels and outcomes ------------------------------------------------------------------------


def number_form(text: str) -> str | None:
    """The one form of a number or boolean word (``1.0``, `` 1 ``, ``true`` → ``1``), else ``None``."""
    text = text.strip()
    if text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return None
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(value)


def _rounded(text: str) -> str:
    """A fractional number as the nearest whole one (halves to even), anything else as it is."""
    form = number_form(text)
    return text if form is None or "." not in form else str(round(float(form)))


def class_order(classes: Iterable[str]) -> list[str]:
    """Classes in the order they are shown without a scale: numbers as numbers, then texts."""

    def key(text: str) -> tuple[int, float, str]:
        form = number_form(text)
        return (0, float(form), text) if form is not None else (1, 0.0, text)

    return sorted(classes, key=key)


def _verdict(text: str) -> str | None:
    """A verdict word (``1``, ``true``, ``Yes``, ``0.0`` …) as ``1`` or ``0``, else ``None``."""
    text = text.strip()
    form = _VERDICTS.get(text.lower()) or number_form(text)
    return form if form in SCALE else None


def _verdicts(
    frame: pl.DataFrame, parts: Sequence[Rows], options: Options, notices: list[Text]
) -> tuple[pl.DataFrame, tuple[str, ...], tuple[str, ...]]:
    """Bring every cell of a checklist to yes, no or an outcome.

    Two classes given as a scale, lowest first, are other words for no and yes.
    """
    scale = options.scale
    if options.off_scale or len(scale) > 2:
        raise UsageError(
            f"--{'scale' if len(scale) > 2 else 'off-scale'}: a verdict on a line is yes or no, so a "
            "checklist needs no scale. Say what other words mean: --map met=1, --failed MARK=unparsed, "
            "--missing MARK."
        )
    if scale and [_verdict(word) for word in scale] == [YES, NO]:
        raise UsageError(
            f"--scale {','.join(scale)}: {scale[1]!r} is no and {scale[0]!r} is yes. The lowest class "
            "comes first, and a checklist needs no scale: leave it out."
        )
    said = dict(zip(scale, SCALE, strict=True)) if scale else {}
    meant = tuple((old, said.get(new.strip()) or _verdict(new) or new) for old, new in options.map)
    of_verdicts = replaced(options, scale=SCALE, off_scale=(), map=meant)
    return _classified(
        frame, parts, of_verdicts, notices, lambda text: said.get(text) or _verdict(text)
    )


def _classified(
    frame: pl.DataFrame,
    parts: Sequence[Rows],
    options: Options,
    notices: list[Text],
    verdict: Callable[[str], str | None] | None = None,
) -> tuple[pl.DataFrame, tuple[str, ...], tuple[str, ...]]:
    """Bring every label text to a class or an outcome, and know the classes.

    The order of the contract: trim, exact match with the scale, ``--missing``, ``--map``,
    ``--failed``. Works on distinct texts, so that a column of millions costs a few look-ups.
    In a checklist ``verdict`` reads the words that are left.
    """
    scale, off_scale = options.scale, options.off_scale
    frame = frame.with_columns(
        pl.col("label").str.strip_chars().replace("", None),
        pl.col("outcome").str.strip_chars().replace("", None),
    )
    frame = _outcomes_read(frame, parts)
    seen = frame.select(pl.col("label").drop_nulls().unique().sort()).to_series().to_list()
    to_class: dict[str, str] = {}
    to_outcome: dict[str, str] = {}
    known = set(scale) | set(off_scale) if scale else set()
    marks = {m.strip() for m in options.missing}
    mapped = {old.strip(): new.strip() for old, new in options.map}
    failed = {mark.strip(): outcome for mark, outcome in options.failed}
    rest_outcome = failed.pop("*", "")
    if rest_outcome and not known:
        raise UsageError(
            f"--failed '*={rest_outcome}' takes whatever is not on the scale, so it needs --scale."
        )
    left: list[str] = []
    for text in seen:
        if options.round and text not in failed and (whole := _rounded(text)) != text:
            mapped.setdefault(text, whole)
        if text in known:
            to_class[text] = text
        elif text in marks:
            to_outcome[text] = MISSING
        elif text in mapped:
            to_class[text] = mapped[text]
        elif text in failed:
            to_outcome[text] = failed[text]
        else:
            left.append(text)
    forms = {text: number_form(text) for text in left}
    if verdict is not None:
        renamed = {text: class_ for text in left if (class_ := verdict(text)) is not None}
        to_class.update(renamed)
        left = [t for t in left if t not in renamed]
    elif known:
        spelling = {f: c for c in known if (f := number_form(c)) is not None}
        # Only where every label cell is a number or a boolean word are they brought to one form.
        numbers = all(f is not None for f in forms.values())
        renamed = {t: spelling[f] for t, f in forms.items() if numbers and f in spelling}
        to_class.update(renamed)
        left = [t for t in left if t not in renamed]
    elif left and all(f is not None for f in forms.values()):
        renamed = {t: f for t, f in forms.items() if f is not None and f != t}
        to_class.update({t: f for t, f in forms.items() if f is not None})
        left = []
    else:
        renamed = {}
        to_class.update({t: t for t in left})
        left = []
    if renamed:
        changed = _occurrences(frame, renamed)
        notices.append(
            say(
                "Verdicts were brought to one form: {list}."
                if verdict is not None
                else "All labels are numbers or boolean words, so they were brought to one form: {list}.",
                list=_join(
                    say("{old} → {new} ({n})", old=Name(t), new=Name(renamed[t]), n=changed[t])
                    for t in sorted(renamed, key=lambda t: -changed[t])[:8]
                ),
            )
        )
    wholes = {t: _rounded(t) for t in seen} if options.round else {}
    rounded = [t for t, w in wholes.items() if w != t and to_class.get(t) == w]
    if rounded:
        counts = _occurrences(frame, rounded)
        halves = [t for t in rounded if float(t) % 1 == 0.5]
        notices.append(
            say(
                "{n} rounded to whole numbers{halves}.",
                n=plural(sum(counts.values()), "label was", "labels were"),
                halves=f", {sum(counts[t] for t in halves):,} of them exact halves (to the even number)"
                if halves
                else "",
            )
        )
    strangers = [t for t in to_class if known and to_class[t] not in known]
    for text, new in options.map:
        if known and new.strip() not in known:
            raise UsageError(
                f"--map {text}={new}: {new!r} is not on the scale ({', '.join((*scale, *off_scale))})."
            )
    if rest_outcome:
        to_outcome.update(dict.fromkeys((*left, *strangers), rest_outcome))
        for text in strangers:
            del to_class[text]
        left, strangers = [], []
    if left or strangers:
        _raise_unknown(
            frame, parts, [*left, *strangers], (*scale, *off_scale), checklist=verdict is not None
        )
    _note_changes(frame, options, to_class, to_outcome, notices)
    if not known and verdict is None and not _counts(parts):
        _note_doubtful_classes(frame, off_scale, to_class, notices)
    if not known:
        seen_classes = set(to_class.values())
        kept = parts[0].carried if len(parts) == 1 else {}
        known_here = {*kept.get("scale", ()), *kept.get("off_scale", ())}
        if known_here and not off_scale and seen_classes <= known_here:
            # Our own table keeps its classes, those that nobody gave too.
            scale, off_scale = tuple(kept.get("scale", ())), tuple(kept.get("off_scale", ()))
        else:
            scale = tuple(class_order(seen_classes - set(off_scale)))
    scale, off_scale = tuple(scale), tuple(off_scale)
    given = pl.col("outcome")
    of_class, of_outcome = pl.Enum([*scale, *off_scale]), pl.Enum(ALL_OUTCOMES)
    old = [*to_class, *to_outcome]
    frame = frame.with_columns(
        _looked_up(frame["label"], old, [to_class.get(t) for t in old], of_class).alias(_CLASS),
        _looked_up(
            frame["label"], old, [to_outcome.get(t, "label") for t in old], of_outcome
        ).alias(_OUTCOME),
    )
    if not blank(frame, "outcome"):
        frame = frame.with_columns(
            pl.when(given.is_null() | (given == "label"))
            .then(pl.col(_CLASS))
            .otherwise(None)
            .alias(_CLASS),
            pl.when(given.is_not_null() & (given != "label"))
            .then(given.cast(of_outcome))
            .when(pl.col(_OUTCOME).is_not_null())
            .then(pl.col(_OUTCOME))
            .when((given == "label") & pl.col("weight").is_not_null() & pl.lit(_counts(parts)))
            .then(pl.lit("label", dtype=of_outcome))
            .alias(_OUTCOME),
        )
    frame = frame.with_columns(pl.col(_OUTCOME).fill_null(pl.lit(MISSING, dtype=of_outcome)))
    raw_kept = any(t != to_class.get(t) and t not in renamed for t in old)
    if raw_kept and "raw" not in frame.columns:
        frame = frame.with_columns(
            pl.when(pl.col("label") != pl.col(_CLASS).cast(pl.String).fill_null("\0"))
            .then(pl.col("label"))
            .alias("raw")
        )
    frame = frame.drop("label", "outcome").rename({_CLASS: "label", _OUTCOME: "outcome"})
    return frame, scale, off_scale


def _looked_up(
    column: pl.Series, old: Sequence[str], new: Sequence[str | None], dtype: pl.Enum
) -> pl.Series:
    """What stands for each text of a column; ``old`` are all its texts, ``new`` one for each."""
    if not old:
        return pl.Series([None], dtype=dtype).new_from_index(0, len(column))
    places = column.cast(pl.Enum(old)).to_physical()
    return pl.Series(new, dtype=dtype).gather(places)


def _counts(parts: Sequence[Rows]) -> bool:
    return all(p.kind == "counts" for p in parts)


def _occurrences(frame: pl.DataFrame, texts: Iterable[str]) -> dict[str, int]:
    counts = frame.filter(pl.col("label").is_in(list(texts))).group_by("label").len().rows()
    return dict(counts)


def _join(texts: Iterable[Text]) -> Text:
    return _joined(texts, ", ")


def _joined(texts: Iterable[Text], between: str) -> Text:
    joined: list[str | Name] = []
    for i, text in enumerate(texts):
        if i:
            joined.append(between)
        joined.extend(text)
    return tuple(joined)


def _note_changes(
    frame: pl.DataFrame,
    options: Options,
    to_class: Mapping[str, str],
    to_outcome: Mapping[str, str],
    notices: list[Text],
) -> None:
    counts = _occurrences(frame, to_outcome)
    for outcome in dict.fromkeys(to_outcome.values()):
        texts = [t for t, o in to_outcome.items() if o == outcome]
        texts.sort(key=lambda t: (-counts.get(t, 0), t))
        n = sum(counts.get(t, 0) for t in texts)
        notices.append(
            say(
                "{n} ({list}) {are} counted as {outcome}, not as a class.",
                n=plural(n, "label"),
                are="is" if n == 1 else "are",
                list=listed((_short(t) for t in texts), most=4),
                outcome=outcome.replace("_", " "),
            )
        )
    seen = set(to_class) | set(to_outcome)
    for flag, marks in (
        ("--missing", options.missing),
        ("--map", [old for old, _ in options.map]),
        ("--failed", [m for m, _ in options.failed if m != "*"]),
    ):
        for mark in marks:
            if mark.strip() not in seen:
                notices.append(
                    say("{flag} {mark}: no label is written so.", flag=flag, mark=Name(mark))
                )


def _unified(text: str, between: str = "") -> str:
    """A text without what only spelling makes different: case, and spaces, ``_`` and ``-`` in it.

    Between two digits something stays, since ``1-2`` is not ``12``.
    """

    def joint(found: re.Match[str]) -> str:
        around = text[found.start() - 1], text[found.end()]
        return " " if all(c.isdigit() for c in around) else between

    return _SPACED.sub(joint, text).casefold()


def _note_doubtful_classes(
    frame: pl.DataFrame,
    off_scale: Sequence[str],
    to_class: Mapping[str, str],
    notices: list[Text],
) -> None:
    """Notices on classes that differ in spelling alone, and on those that look like failed calls.

    No scale says what the classes are, so every text is one. ``to_class`` are the texts and their
    classes; classes in ``off_scale`` were named by the user and are no failures.
    """
    classes = class_order(set(to_class.values()))
    words = {c: _unified(c, " ") for c in classes}
    failed = [
        c
        for c in classes
        if (seen := _FAILURES.get(words[c]))
        and c not in off_scale
        and not set(seen[1]) & set(words.values())
    ]
    groups: dict[str, list[str]] = {}
    for class_ in classes:
        if class_ not in failed:
            groups.setdefault(_unified(class_), []).append(class_)
    doubled = [group for group in groups.values() if len(group) > 1]
    doubtful = {*failed, *(c for group in doubled for c in group)}
    if not doubtful:
        return
    n = dict.fromkeys(doubtful, 0)
    texts = [t for t, c in to_class.items() if c in doubtful]
    for text, times in _occurrences(frame, texts).items():
        n[to_class[text]] += times

    def counted_of(group: Sequence[str]) -> Text:
        return _join(say("{c} ({n})", c=Name(_short(c)), n=n[c]) for c in group)

    if doubled:
        flags: list[tuple[str, str]] = []
        for group in doubled:
            group.sort(key=lambda c: (-n[c], c))
            # A class named by the user stays; else the most frequent spelling does.
            to = next((c for c in group if c in off_scale), group[0])
            if "=" not in to:
                flags += [("--map", f"{t}={to}") for t in texts if to_class[t] in set(group) - {to}]
        notices.append(
            (
                "Classes differ only in case, spaces, hyphens or underscores, and count as classes of "
                "their own: ",
                *_joined((counted_of(group) for group in doubled[:SHOWN]), "; "),
                *(
                    (f"; and {len(doubled) - SHOWN:,} more such groups",)
                    if len(doubled) > SHOWN
                    else ()
                ),
                ".",
                *_to_paste(" If they mean the same, join them: ", flags),
            )
        )
    if failed:
        failed.sort(key=lambda c: (-n[c], c))
        marks = [
            ("--failed", f"{t}={_FAILURES[words[c]][0]}")
            for c in failed
            for t in texts
            if to_class[t] == c
        ]
        one = len(failed) == 1
        notices.append(
            (
                "Without a scale " if not one else "Without a scale the label ",
                *counted_of(failed),
                *(
                    (" counts as a class, and looks like a call that gave no verdict.",)
                    if one
                    else (" count as classes, and look like calls that gave no verdict.",)
                ),
                *_to_paste(" If so: ", marks),
            )
        )


def _to_paste(lead: str, flags: Sequence[tuple[str, str]]) -> Text:
    """Flags in full, quoted for a shell; nothing where there are none."""
    if not flags:
        return ()
    shown = (say("{flag} {value}", flag=f, value=Name(shlex.quote(v))) for f, v in flags)
    return (lead, *_joined(shown, " "), ".")


def _raise_unknown(
    frame: pl.DataFrame,
    parts: Sequence[Rows],
    texts: Sequence[str],
    classes: Sequence[str],
    *,
    checklist: bool,
) -> None:
    first = (
        frame.filter(pl.col("label").is_in(list(texts)))
        .group_by("label")
        .agg(
            pl.len().alias("n"),
            pl.col(_PART).first(),
            pl.col(_ROW).first(),
            pl.col("grader").first(),
        )
        .sort(["n", "label"], descending=[True, False])
    )
    problems = []
    for row in first.head(SHOWN).iter_rows(named=True):
        place = _where(parts, row[_PART], row[_ROW])
        if row["grader"] is not None:
            place += f" (grader {_short(row['grader'])})"
        n = f"{row['n']:,} times" if row["n"] > 1 else "once"
        problems.append(
            f'{place}: "{_short(row["label"])}" is neither yes nor no; it stands {n}.'
            if checklist
            else f'{place}: label "{_short(row["label"])}" is not on the scale; it stands {n}.'
        )
    # What is shown is meant to be pasted: whole, and quoted for a shell.
    example = next((t for t in first["label"].to_list() if _short(t) == t), "")
    on = _nearest(example or first["label"][0], classes)
    flags = [("--failed", "*=unparsed", "takes whatever is left")]
    if example:
        flags = [
            ("--map", f"{example}={on}", "it means a class"),
            (
                "--failed",
                f"{example}=unparsed",
                "the call gave no verdict (or =truncated, =empty, =grader_refusal, =blocked, =error)",
            ),
            ("--missing", example, "nobody was asked"),
            *flags,
        ]
    if not checklist and any((f := number_form(t)) is not None and "." in f for t in texts):
        flags.append(("--round", "", "brings fractional numbers to whole ones"))
    if checklist:
        flags += _other_graders(frame, texts)
    shown = [
        (f"{flag} {shlex.quote(value)}" if value else flag, what) for flag, value, what in flags
    ]
    width = max(len(flag) for flag, _ in shown)
    _raise_problems(
        problems,
        len(first),
        (
            "A verdict on a line is 1 or 0, true or false, yes or no."
            if checklist
            else f"The scale is {', '.join(classes)}."
        )
        + " For each such value say what it is:\n"
        + "\n".join(f"  {flag.ljust(width)}   {what}" for flag, what in shown),
    )


def _other_graders(frame: pl.DataFrame, texts: Sequence[str]) -> list[tuple[str, str, str]]:
    """``--graders`` without those that have no verdict at all: such columns hold something else."""
    of_grader = (
        frame.filter(pl.col("label").is_not_null() & pl.col("grader").is_not_null())
        .group_by("grader", maintain_order=True)
        .agg(pl.col("label").is_in(list(texts)).all().alias("none"))
    )
    none = of_grader.filter("none")["grader"].to_list()
    others = of_grader.filter(~pl.col("none"))["grader"].to_list()
    if not none or not others:
        return []
    what = f"{', '.join(_short(g) for g in none[:3])}{', …' if len(none) > 3 else ''} is no grader"
    return [("--graders", ",".join(g.replace(",", "\\,") for g in others), what)]


def _nearest(text: str, classes: Sequence[str]) -> str:
    """The class that a text is most likely meant to be: the same but for case, else the most alike."""
    folded = {c.casefold(): c for c in classes}
    near = difflib.get_close_matches(text.casefold(), folded, n=1, cutoff=0.0)
    return folded[near[0]] if near else classes[0]


def _outcomes_read(frame: pl.DataFrame, parts: Sequence[Rows]) -> pl.DataFrame:
    """Check a column of outcomes; what stands behind a colon is the reason and becomes a tag."""
    values = frame.select(pl.col("outcome").drop_nulls().unique()).to_series().to_list()
    if not values:
        return frame
    spelled = {v: v.split(":", 1)[0].strip().lower() for v in values}
    unknown = [v for v, o in spelled.items() if o not in ALL_OUTCOMES]
    if unknown:
        bad = frame.filter(pl.col("outcome").is_in(unknown))
        problems = [
            f'{_where(parts, r[_PART], r[_ROW])}: "{_short(r["outcome"])}" is no outcome.'
            for r in bad.head(SHOWN).iter_rows(named=True)
        ]
        _raise_problems(
            problems,
            len(bad),
            f"Outcomes are {', '.join(ALL_OUTCOMES)}. Name another column with --outcome COL.",
        )
    reasons = {v: v.split(":", 1)[1].strip() for v in values if ":" in v}
    if reasons and "outcome_reason" not in frame.columns:
        frame = frame.with_columns(
            pl.col("outcome")
            .replace_strict(reasons, default=None, return_dtype=pl.String)
            .alias("outcome_reason")
        )
    return frame.with_columns(pl.col("outcome").replace(spelled))


# --- weights, duplicates, clusters, tags --------------------------------------------------------


def _weighed(frame: pl.DataFrame, parts: Sequence[Rows], options: Options) -> pl.DataFrame:
    if blank(frame, "weight") and not options.weight:
        if options.weight_kind != "design":
            raise UsageError(
                f"--weight-kind {options.weight_kind}: there are no weights. Name their column: --weight COL."
            )
        return frame.with_columns(pl.col("weight").cast(pl.Float64))
    if frame["weight"].null_count():  # a second file (gold, say) need not repeat the weights
        frame = frame.with_columns(
            pl.col("weight").fill_null(pl.col("weight").drop_nulls().first().over(_CODE))
        )
    text = frame["weight"]
    weight = text.cast(pl.Float64, strict=False)
    # Their squares are summed and divided by: far beyond this range nothing would be left of them.
    usable = (weight == 0) | weight.is_between(1 / LARGEST_WEIGHT, LARGEST_WEIGHT)
    if options.weight_kind == "frequency":
        usable = usable & (weight == weight.round())
    bad = ~usable.fill_null(False)
    if bad.any():
        rows = frame.filter(bad)
        kind = "whole numbers" if options.weight_kind == "frequency" else "0, or numbers"
        least = "0" if options.weight_kind == "frequency" else f"{1 / LARGEST_WEIGHT:g}"
        problems = [
            f"{_where(parts, r[_PART], r[_ROW], options.weight or 'weight')}: weight "
            f'"{_short(str(r["weight"])) if r["weight"] is not None else ""}" is not usable.'
            for r in rows.head(SHOWN).iter_rows(named=True)
        ]
        _raise_problems(
            problems,
            len(rows),
            f"Weights must be {kind} from {least} to {LARGEST_WEIGHT:g}, one for each response. Mend "
            "these rows or leave --weight out.",
        )
    if not weight.sum() > 0:
        raise InputError(
            f"{', '.join(printable(p.name) for p in parts)}: all weights are 0, so nothing counts. "
            "Name another column with --weight, or leave it out."
        )
    frame = frame.with_columns(weight.alias("weight"))
    uneven = (
        frame.group_by(_CODE)
        .agg(
            pl.col("weight").n_unique().alias("k"),
            pl.col("response").first(),
            pl.col(_PART).first(),
            pl.col(_ROW).first(),
        )
        .filter(pl.col("k") > 1)
    )
    if len(uneven):
        problems = [
            f"{_where(parts, r[_PART], r[_ROW], options.weight or 'weight')}: response {_short(r['response'])} has "
            f"{r['k']} different weights."
            for r in uneven.sort(_PART, _ROW).head(SHOWN).iter_rows(named=True)
        ]
        _raise_problems(problems, len(uneven), "A weight belongs to the response: give it once.")
    return frame


_CALL = ("response", "grader", "line", "vote", "phrasing")


def _refuse_nameless(frame: pl.DataFrame, parts: Sequence[Rows]) -> None:
    nameless = frame.filter(pl.col("response").is_null())
    if len(nameless):
        problems = [
            f"{_where(parts, r[_PART], r[_ROW])}: the response has no id."
            for r in nameless.head(SHOWN).iter_rows(named=True)
        ]
        _raise_problems(
            problems, len(nameless), "Give every row an id, or name it with --response COL."
        )
    nameless = frame.filter(pl.col("grader").is_null())
    if len(nameless):
        problems = [
            f"{_where(parts, r[_PART], r[_ROW])}: no grader is named."
            for r in nameless.head(SHOWN).iter_rows(named=True)
        ]
        _raise_problems(problems, len(nameless), "Name the grader in every row.")


def _without_duplicates(
    frame: pl.DataFrame, parts: Sequence[Rows], step: str, notices: list[Text]
) -> pl.DataFrame:
    """One row a call. The same call twice with one label is a notice; with two labels, an error."""
    calls = (*_CALL, step) if step else _CALL
    keys = [c for c in calls if not blank(frame, c)]
    if _all_differ(frame, keys):
        return frame
    call = pl.struct(keys)
    frame = frame.with_columns(call.is_duplicated().alias(_TWICE))
    # A blank cell beside a label of the same call says only that one file does not have it.
    labelled = (pl.col("outcome") != MISSING).any().over(keys)
    frame = frame.filter(~pl.col(_TWICE) | ~labelled | (pl.col("outcome") != MISSING))
    twice = frame.filter(pl.col(_TWICE)).with_columns(
        pl.struct("label", "outcome").n_unique().over(keys).alias(_KINDS)
    )
    conflicts = twice.filter(pl.col(_KINDS) > 1)
    conflicts = conflicts.sort(*(pl.col(k).cast(pl.String) for k in keys), _PART, _ROW)
    if len(conflicts):
        problems = [
            f"{_where(parts, r[_PART], r[_ROW])}: "
            + ", ".join(f"{k} {_short(r[k])}" for k in keys if r[k] is not None)
            + f" is labelled {_short(r['label']) if r['label'] is not None else r['outcome']}"
            + ", elsewhere otherwise."
            for r in conflicts.head(SHOWN).iter_rows(named=True)
        ]
        distinct = conflicts.select(pl.struct(keys).n_unique()).item()
        _raise_problems(
            problems,
            len(conflicts),
            f"{distinct:,} {'call has' if distinct == 1 else 'calls have'} two labels. If these are "
            "repeats, name what tells them apart (--vote COL, --phrasing COL, --response a+b); "
            f"else remove one.{_two_exports(parts, conflicts)}",
        )
    kept = frame.unique(subset=keys, keep="first", maintain_order=True)
    dropped = len(frame) - len(kept)
    if dropped:
        first = twice.sort(_PART, _ROW).row(0, named=True)
        notices.append(
            say(
                "{n} a call with the same label and {kept} kept once (the first: {where}).",
                n=plural(dropped, "row repeats", "rows repeat"),
                kept="was" if dropped == 1 else "were",
                where=_where(parts, first[_PART], first[_ROW]),
            )
        )
    return kept.drop(_TWICE)


def _two_exports(parts: Sequence[Rows], conflicts: pl.DataFrame) -> str:
    """A hint where the calls that conflict stand in two inputs of one name: two exports of one run."""
    names = [parts[i].name for i in sorted(conflicts[_PART].unique())]
    stems = {parts[i].stem for i in conflicts[_PART].unique()}
    if len(names) < 2 or len(stems) > 1:
        return ""
    shown = " and ".join(printable(n) for n in names[:3])
    return f" {shown} seem to be exports of one run: name only the one that says more."


def _all_differ(frame: pl.DataFrame, keys: Sequence[str]) -> bool:
    """Whether no two rows agree in all keys; on integers, as texts of millions are slow to compare."""
    place = np.zeros(len(frame), dtype=np.uint64)
    size = 1
    for key in keys:
        if key == "response":
            codes = frame[_CODE]
        elif key == "grader":
            codes = frame[key].to_physical()
        elif key == "line" and LINE in frame.columns:
            codes = frame[LINE]
        else:
            codes = coded(frame[key])[1]
        values = int(codes.max()) + 2  # type: ignore[arg-type]  # the last stands for a blank cell
        size *= values
        if size >= 2**63:
            return bool(frame.select(pl.struct(keys).n_unique()).item() == len(frame))
        place *= np.uint64(values)
        place += codes.fill_null(values - 1).to_numpy()
    if size > 16 * len(frame):
        return bool(pl.Series(place).n_unique() == len(frame))
    seen = np.zeros(size, dtype=np.bool_)
    seen[place] = True
    return int(seen.sum()) == len(frame)


def _named_wordings(frame: pl.DataFrame, options: Options, notices: list[Text]) -> pl.DataFrame:
    """The table where calls without a phrasing have one, ``(unnamed)``, if their grader names others.

    Without it they would be in no study, or pass for repeats of the named ones. People and gold, who
    name none at all, stay as they are.
    """
    if blank(frame, "phrasing"):
        return frame
    named, grader = pl.col("phrasing").is_not_null(), pl.col("grader").cast(pl.String)
    mixed = (
        frame.filter(pl.col("outcome").cast(pl.String) != MISSING)
        .group_by(grader)
        .agg(named.sum().alias("named"), (~named).sum().alias("unnamed"))
        .filter((pl.col("named") > 0) & (pl.col("unnamed") > 0))
        .sort("grader")
    )
    if not len(mixed):
        return frame
    graders = mixed["grader"].to_list()
    notices.append(
        say(
            "{n} of {graders} name{s} no phrasing, while others do: they count as a phrasing of their own, "
            "{unnamed}. Write its name into {column}; leave rows out whose wording is not known.",
            n=plural(calls := int(mixed["unnamed"].sum()), "call"),
            s="s" if calls == 1 else "",
            graders=listed(graders, most=6),
            unnamed=Name(UNNAMED),
            column=say("the column {column}", column=Name(options.phrasing))
            if options.phrasing
            else "the column of the phrasing",
        )
    )
    filled = pl.when(~named & grader.is_in(graders)).then(pl.lit(UNNAMED)).otherwise("phrasing")
    return frame.with_columns(filled.alias("phrasing"))


def _note_turned_steps(
    frame: pl.DataFrame, parts: Sequence[Rows], step: str, notices: list[Text]
) -> None:
    """Say so where a response has its steps in another order than they first appear in the table."""
    order = frame[step].drop_nulls().unique(maintain_order=True)
    rank = pl.col(step).replace_strict(order.to_list(), list(range(len(order))), default=None)
    turned = (
        frame.filter(pl.col(step).is_not_null())
        .with_columns((rank.diff() < 0).over("response", "grader").alias(_KINDS))
        .filter(_KINDS)
    )
    if len(turned):
        first = turned.row(0, named=True)
        notices.append(
            say(
                "Steps are taken in the order of their first appearance ({order}), but {n} "
                "responses have them in another order (the first: {where}). Put the rows in order of "
                "the steps if that is not the order of the decisions.",
                order=listed(order.to_list()),
                n=turned["response"].n_unique(),
                where=_where(parts, first[_PART], first[_ROW]),
            )
        )


def _clustered(
    frame: pl.DataFrame, parts: Sequence[Rows], notices: list[Text]
) -> tuple[pl.DataFrame, bool]:
    """Every response in one cluster; without a cluster column each response is its own."""
    declared = any(p.carried.get("clusters_declared", True) for p in parts) and bool(
        not blank(frame, "cluster")
    )
    for column in ("cluster", "stratum"):
        if blank(frame, column):
            continue
        if column == "cluster" and len(parts) > 1:
            # A table of ours writes a response without cluster as its own; another input knows more.
            own = pl.col("cluster") == pl.col("response")
            alone = own.fill_null(True).all().over(_CODE)
            frame = frame.with_columns(
                pl.when(~own | alone).then(pl.col("cluster")).alias("cluster")
            )
        uneven = (
            frame.filter(heads(frame, _CODE, column))
            .group_by(_CODE)
            .agg(
                pl.col("response").first(),
                pl.col(column).drop_nulls().n_unique().alias("k"),
                pl.col(column).drop_nulls().unique().sort().alias("values"),
                pl.col(_PART).first(),
                pl.col(_ROW).first(),
            )
            .filter(pl.col("k") > 1)
        )
        if len(uneven):
            problems = [
                f"{_where(parts, r[_PART], r[_ROW])}: response {_short(r['response'])} is in "
                f"{r['k']} {column}s ({', '.join(_short(v) for v in r['values'][:3])})."
                for r in uneven.sort(_PART, _ROW).head(SHOWN).iter_rows(named=True)
            ]
            _raise_problems(
                problems,
                len(uneven),
                f"A response belongs to one {column}. Join more columns into its id "
                f"(--response a+b), or name another column with --{column}.",
            )
        if frame[column].null_count():
            frame = frame.with_columns(
                pl.col(column).fill_null(pl.col(column).drop_nulls().first().over(_CODE))
            )
    spread = (
        frame.filter(pl.col("cluster").is_not_null() & pl.col("stratum").is_not_null())
        .group_by("cluster")
        .agg(pl.col("stratum").n_unique().alias("k"), pl.col(_PART).first(), pl.col(_ROW).first())
        .filter(pl.col("k") > 1)
    )
    if len(spread):
        # Draws are made within strata, so there a cluster is what it holds of one stratum.
        first = spread.sort(_PART, _ROW).row(0, named=True)
        notices.append(
            say(
                "{n} over several strata (the first: {where}); responses are drawn within strata, so each "
                "part of such a cluster stands as a cluster of its own.",
                n=plural(len(spread), "cluster reaches", "clusters reach"),
                where=_where(parts, first[_PART], first[_ROW], "cluster"),
            )
        )
        both = pl.col("cluster") + " / " + pl.col("stratum")
        frame = frame.with_columns(
            pl.when(pl.col("cluster").is_in(spread["cluster"].to_list()) & both.is_not_null())
            .then(both)
            .otherwise(pl.col("cluster"))
            .alias("cluster")
        )
    if blank(frame, "cluster") and not declared:
        return frame.with_columns(pl.col("response").alias("cluster")), declared
    without = frame.filter(pl.col("cluster").is_null())
    if len(without):
        if declared:
            notices.append(
                say(
                    "{n} responses have no cluster; each of them stands as its own.",
                    n=without["response"].n_unique(),
                )
            )
        frame = frame.with_columns(pl.col("cluster").fill_null(pl.col("response")))
    return frame, declared


def _tags(frame: pl.DataFrame, kind: str) -> tuple[Tag, ...]:
    names = [c for c in frame.columns if c not in CANONICAL and not c.startswith("\0")]
    if not names:
        return ()
    tags = []
    one_row_each = kind != "counts" and int(frame[_CODE].max()) + 1 == len(frame)  # type: ignore[arg-type]
    for name in names:
        once = frame.select(_CODE, name) if kind != "counts" else frame.select(name)
        if kind != "counts" and not one_row_each:
            once = once.filter(heads(once, _CODE, name))
        values = once[name].drop_nulls().unique()
        numeric = len(values) > 0 and bool(
            values.str.contains(r"^\s*[+-]?[\d.]+([eE][+-]?\d+)?\s*$").all()
        )
        if kind == "counts":
            per_response = False
        elif one_row_each:
            per_response = True
        else:
            uneven = once.drop_nulls().unique().select(pl.col(_CODE).is_duplicated().any()).item()
            per_response = not uneven
        tags.append(Tag(name=name, values=len(values), per_response=per_response, numeric=numeric))
    return tuple(tags)


def _filled_tags(frame: pl.DataFrame, tags: Sequence[Tag]) -> pl.DataFrame:
    """A response's tag that only some of its rows carry (gold in a second file) holds for all.

    What tells of one call alone (:data:`OF_A_CALL`) stays with that call.
    """
    short = [
        t.name
        for t in tags
        if t.per_response and t.name not in OF_A_CALL and frame[t.name].null_count()
    ]
    if not short:
        return frame
    return frame.with_columns(
        pl.col(c).fill_null(pl.col(c).drop_nulls().first().over(_CODE)) for c in short
    )


# --- graders ------------------------------------------------------------------------------------


def _grader_names(frame: pl.DataFrame, parts: Sequence[Rows], options: Options) -> tuple[str, ...]:
    """Graders in the order given, else of a wide table's columns, else by name.

    The order of rows must not matter, so a long table's graders are sorted.
    """
    present = set(frame["grader"].unique().to_list())
    carried = [g["name"] for p in parts for g in p.carried.get("graders", ())]
    order = (*options.graders, *(g for p in parts for g in p.order), *carried)
    names = dict.fromkeys(g for g in order if g in present)
    names.update(dict.fromkeys(sorted(present - set(names), key=lambda g: (natural(g), g))))
    return tuple(names)


def gold_name(names: Sequence[str], options: Options) -> str:
    """The grader taken as the truth: the one named, else one called ``gold``, else none."""
    if options.gold.lower() == "none" and options.gold not in names:
        return ""
    if options.gold:
        return options.gold
    return next((n for n in names if n.lower() == "gold"), "")


def _check_named(names: Sequence[str], options: Options, kind: str) -> None:
    gold = gold_name(names, options)
    wanted = [
        ("--gold", gold),
        ("--reference", options.reference),
        *(("--people", p) for p in options.people),
        *(("--without", w) for w in options.without),
        *(("--range", g) for g, _ in options.range),
        *(("--derived-from", g) for g, _ in options.derived_from),
        *(("--graders", g) for g in options.graders),
    ]
    for flag, name in wanted:
        if name and name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            seen = plain(listed((printable(n) for n in names), most=20))
            raise UsageError(f"{flag}: there is no grader {name!r}.{hint} Graders: {seen}.")
    if gold and gold == options.reference:
        raise UsageError(f"{gold!r} is gold; it needs no --reference.")
    if gold and gold in options.graders and len(names) == 1 and kind != "checklist":
        raise UsageError(f"{gold!r} is gold, and there is no other grader to audit.")


def _gold_apart(frame: pl.DataFrame, gold: str) -> list[Text]:
    """A notice where gold meets no label of anybody: on no response, or in no class."""
    labelled = frame.filter(pl.col("label").is_not_null())
    of_gold = labelled.filter(pl.col("grader") == gold) if gold else labelled.clear()
    others = labelled.filter(pl.col("grader") != gold) if gold else labelled
    if of_gold.is_empty() or others.is_empty():
        return []
    its, their = (part[_CODE].unique() for part in (of_gold, others))
    if not its.is_in(their.implode()).any():
        return [
            say(
                "Gold ({gold}) stands on no response that anybody else labelled, so nothing is compared "
                "with it. Its ids are written as {its}, those of the others as {their}: write the same "
                "ids in both.",
                gold=Name(gold),
                its=Name(_short(of_gold["response"].min())),  # type: ignore[arg-type]
                their=Name(_short(others["response"].min())),  # type: ignore[arg-type]
            )
        ]
    classes, theirs = (set(part["label"].cast(pl.String).unique()) for part in (of_gold, others))
    if classes & theirs:
        return []
    return [
        say(
            "Gold ({gold}) shares no class with any other grader: its classes are {its}, theirs are "
            "{their}. If they mean the same, say so, as with --map {old}={new}; else no share or "
            "agreement with gold means anything.",
            gold=Name(gold),
            its=listed(class_order(classes)),
            their=listed(class_order(theirs), most=8),
            old=Name(class_order(classes)[0]),
            new=Name(class_order(theirs)[0]),
        )
    ]


def _kinds_of_labels(
    frame: pl.DataFrame, parts: Sequence[Rows], names: Sequence[str], options: Options
) -> list[Text]:
    """A notice where graders of a log give labels of different kinds: classes that they do not share.

    A grader that gave one class alone may give the others as well, so it tells nothing of kinds.
    """
    if not any(p.logged for p in parts):
        return []
    gold = gold_name(names, options)
    given = {
        str(grader): frozenset(map(str, classes))
        for grader, classes in frame.filter(pl.col("label").is_not_null())
        .group_by("grader")
        .agg(pl.col("label").unique())
        .rows()
    }
    groups: list[tuple[list[str], set[str]]] = []
    for name in names:
        classes = set(given.get(name, ()))
        if len(classes) < 2 or name == gold:
            continue
        members = [name]
        apart = []
        for group in groups:
            if group[1] & classes:
                members, classes = [*group[0], *members], classes | group[1]
            else:
                apart.append(group)
        groups = [*apart, (members, classes)]
    if len(groups) < 2:
        return []
    groups.sort(key=lambda group: names.index(group[0][0]))
    shown = [
        say(
            "--graders {value} ({classes})",
            classes=listed(class_order(classes), most=6),
            value=Name(shlex.quote(",".join(m.replace(",", "\\,") for m in members))),
        )
        for members, classes in groups[:SHOWN]
    ]
    return [
        (
            f"Graders give labels of {len(groups)} kinds, which share no class, so no statistic over all "
            "of them means anything. Audit each kind by itself, with ",
            *_joined(shown, "; "),
            ".",
        )
    ]


def _unused_facts(
    frame: pl.DataFrame, names: Sequence[str], tags: Sequence[Tag], options: Options
) -> list[Text]:
    """A notice where ``--about`` has facts on a name that no grader has, nor a target in a tag."""
    unknown = [n for n in options.about if n not in names and n != "targets"]
    if not unknown:
        return []
    values = {
        v
        for t in tags
        for v in frame[t.name].filter(frame[t.name].is_in(unknown)).unique().to_list()
    }
    unknown = [n for n in unknown if n not in values]
    if not unknown:
        return []
    near = [(n, m[0]) for n in unknown if (m := difflib.get_close_matches(n, names, n=1))]
    hints = (say(" Did you mean {near} for {name}?", near=Name(m), name=Name(n)) for n, m in near)
    return [
        (
            *say("--about: nothing here is called {names}.", names=listed(unknown, last="or")),
            *(piece for hint in hints for piece in hint),
        )
    ]


# What a table of counts cannot follow: it has neither responses nor calls.
_OF_RESPONSES = (
    "response",
    "label",
    "cluster",
    "question",
    "vote",
    "phrasing",
    "phrasings",
    "weight",
    "weight_kind",
    "stratum",
    "line",
    "outcome",
    "vote_rule",
    "interval",
)


def _unused_options(options: Options) -> list[Text]:
    """A notice where options are given that a table of counts cannot follow."""
    changed = options.changed()
    idle = [n for n in _OF_RESPONSES if n in changed]
    if not idle:
        return []
    return [
        say(
            "A table of counts does not say which response got which label, so {flags} changed "
            "nothing; intervals take the responses as independent.",
            flags=plain(listed(["--" + n.replace("_", "-") for n in idle])),
        )
    ]


def _refuse_of_classes(options: Options) -> None:
    """Raise where an option asks for what a checklist does not have: classes, rates, steps."""
    for flag, given in (
        *(("--rate", f"{name}={'+'.join(classes)}") for name, classes in options.rate),
        *(("--range", f"{name}={'+'.join(classes)}") for name, classes in options.range),
        *(("--refusal-like", class_) for class_ in options.refusal_like),
    ):
        raise UsageError(
            f"{flag} {given}: a checklist has verdicts on lines and no rates of classes. Leave it out; "
            "--cut C asks how often a gate of C lines is passed."
        )
    if options.step:
        raise UsageError(
            f"--step {options.step}: a checklist has no steps of a decision. Leave it out; where verdicts "
            f"were given several times, name the calls with --vote {options.step}."
        )


# What only tables of labels can follow, and changes nothing in a checklist.
_OF_CLASSES = (
    "reference",
    "derived_from",
    "collapse_below",
    "collapse_base",
    "without",
    "panel",
    "depends_ratio",
    "depends_points",
)


def _idle_on_checklists(options: Options) -> list[Text]:
    """A notice where options are given that a checklist cannot follow."""
    idle = ["--" + n.replace("_", "-") for n in options.changed() if n in _OF_CLASSES]
    if [_verdict(word) for word in options.scale] == [NO, YES]:
        idle.append(f"--scale {','.join(options.scale)}")
    if not idle:
        return []
    return [
        say(
            "A checklist has verdicts on lines, yes or no, so {flags} changed nothing.",
            flags=plain(listed(idle)),
        )
    ]


def _graders(
    names: Sequence[str],
    options: Options,
    facts: Mapping[str, Mapping[str, Any]],
    known: Sequence[Grader],
) -> tuple[Grader, ...]:
    ranges = dict(options.range)
    before = {g.name: g for g in known}
    derived = {**{g.name: g.derived_from for g in known}, **dict(options.derived_from)}
    graders = []
    for name in names:
        old = before.get(name, Grader(name=name))
        about = {**old.facts, **facts.get(name, {}), **options.about.get(name, {})}
        graders.append(
            Grader(
                name=name,
                person=old.person
                or name in options.people
                or about.get("kind") in ("person", "people", "human"),
                derived_from=derived.get(name, ()),
                origins=_origins(name, derived),
                range=ranges.get(name, old.range),
                facts=about,
            )
        )
    return tuple(graders)


def _origins(name: str, derived: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """The graders that a grader is made from, directly or through others, and itself."""
    found: set[str] = set()
    open_ = [name]
    while open_:
        one = open_.pop()
        if one not in found:
            found.add(one)
            open_ += derived.get(one, ())
    return frozenset(found)


def _check_classes(classes: Sequence[str], options: Options) -> None:
    for class_ in options.refusal_like + tuple(c for _, cs in options.rate for c in cs):
        if class_ not in classes:
            raise UsageError(
                f"The class {class_!r} of --rate or --refusal-like is not among the classes "
                f"({', '.join(classes)})."
            )


def _check_ranges(frame: pl.DataFrame, graders: Sequence[Grader]) -> None:
    for grader in graders:
        if not grader.range:
            continue
        outside = frame.filter(
            (pl.col("grader") == grader.name)
            & pl.col("label").is_not_null()
            & ~pl.col("label").cast(pl.String).is_in(list(grader.range))
        )
        if len(outside):
            raise UsageError(
                f"--range {grader.name}: it gives {len(outside):,} labels outside that range "
                f"({', '.join(sorted(outside['label'].cast(pl.String).unique().to_list())[:5])})."
            )
