"""What the readers of eval logs share: JSON that may be torn or hostile, and rows with their origin.

A log is read for its labels: what is readable is read, what is not is named in a notice. Only a log of
which nothing can be read is an error.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from voirdire.errors import InputError
from voirdire.options import Options
from voirdire.readers._text import all_text, encoding_of, head_text, open_bytes
from voirdire.rows import CANONICAL, QUESTION, Lines, Place, Rows
from voirdire.source import Source
from voirdire.wording import Text, listed, plain, plural, printable, say

DEEPEST = 4  # levels of a document that is cut off, of which the keys are looked at
LONGEST_NUMBER = 400  # digits; a longer whole number is read as a float
NAMED_PROBLEMS = 5
MOST_STEPS = 11  # values of a fraction that may be a scale, as 0 to 1 in tenths
_HALF = re.compile("[\ud800-\udfff]")
_NO_TEXT = re.compile("[\udc80-\udcff]")  # bytes that surrogateescape stands in for
_NO_CHARACTER = "[\\x00\ufffd]"
_BROKEN = (ValueError, RecursionError, MemoryError)


# --- JSON ---------------------------------------------------------------------------------------


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_NUMBER else float(digits)


class _Once(dict[str, Any]):
    """An object of JSON in which a key stands twice, with two values: nobody knows which counts."""

    clash = ""


class Decoder:
    """Decodes JSON and marks objects in which a key stands twice; the last value is the one read.

    ``clash`` is the last key that stood twice with two values, ``again`` counts those that stood
    twice with the same value, both since the last :meth:`decode` began.
    """

    def __init__(self) -> None:
        self.clash = ""
        self.again = 0
        self.json = json.JSONDecoder(parse_int=_whole, object_pairs_hook=self._object)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        marked = _Once(made)
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen:
                # As texts, so that nan equals itself and 1 is not true.
                if repr(seen[key]) == repr(value):
                    self.again += 1
                else:
                    self.clash = marked.clash = key or '""'
            seen[key] = value
        return marked

    def taken(self) -> tuple[str, int]:
        """``clash`` and ``again``, which begin anew."""
        found = self.clash, self.again
        self.clash, self.again = "", 0
        return found

    def decode(self, text: str) -> Any:
        """One JSON value; raises ``ValueError``."""
        self.clash, self.again = "", 0
        try:
            return self.json.decode(text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


def stands_twice(key: str) -> str:
    """Why a record is left out in which a key has two values."""
    return f"the key {_cut(key)} stands there twice, with two values"


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def decoded(text: str) -> Any:
    """One JSON value. ``NaN`` is read as nan; raises ``ValueError`` for what is no JSON.

    Nesting beyond Python's depth is a ``ValueError`` too.
    """
    try:
        return json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def document(source: Source, options: Options) -> Any:
    """A whole file as one JSON value; raises :class:`InputError` where it is none.

    Of a list, an element in which a key has two values is left out; :class:`Gathered` names it.
    """
    text = all_text(source, encoding_of(source, options.encoding)).removeprefix("\ufeff")
    source.oddities.clear()
    decoder = Decoder()
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        cut = error.msg.startswith("Unterminated string") or not text[error.pos :].strip()
        torn = "; it ends too early, as after a crash or a cut" if cut else ""
        raise InputError(
            f"{printable(source.name)}, line {error.lineno:,}: no JSON ({error.msg}){torn}."
        ) from error
    except _BROKEN as error:
        raise InputError(
            f"{printable(source.name)}: no JSON that can be read ({error})."
        ) from error
    if decoder.clash:
        where: list[str] = []
        if _without_clashes(value, "", where):
            raise InputError(
                f"{printable(source.name)}: {printable(stands_twice(decoder.clash))}, and nobody knows "
                "which one counts. Take one of them out."
            )
        for place in where:
            note(source, TWO_VALUES, place)
    for _ in range(decoder.again):
        note(source, TWICE, "")
    note_long_keys(source, text, "")
    return value


def _without_clashes(value: Any, path: str, left: list[str]) -> bool:
    """Take elements out of lists in which a key has two values; whether one is left outside of lists."""
    if isinstance(value, list):
        kept = []
        for i, one in enumerate(value, start=1):
            at = f"{path}[{i}]"
            if _without_clashes(one, at, left):
                left.append(at)
            else:
                kept.append(one)
        value[:] = kept
        return False
    if not isinstance(value, dict):
        return False
    found = isinstance(value, _Once) and bool(value.clash)
    for key, one in value.items():
        found = _without_clashes(one, f"{path}.{_cut(key)}" if path else _cut(key), left) or found
    return found


# --- what no honest tool writes -----------------------------------------------------------------

TWICE, TWO_VALUES, LONG_KEY, NO_CHARACTER = "twice", "two values", "long key", "no character"
LONGEST_KEY = 10_000  # characters
_LONG_KEY = re.compile(rf'"[^"]{{{LONGEST_KEY},}}(?<!\\)"\s*:')
_SAID = {
    TWICE: "{name}: {n} twice in one object, with the same value{first}.",
    TWO_VALUES: "{name}: {n} left out, as a key stands there twice, with two values{first}.",
    LONG_KEY: (
        f"{{name}}: {{n}} of more than {LONGEST_KEY:,} characters{{first}}; no tool that is read here "
        "has such names."
    ),
    NO_CHARACTER: (
        "{name}: {n} characters that are no text (NUL, or half of a pair), which stand as \ufffd{first}."
    ),
}
_COUNTED = {
    TWICE: ("key stands", "keys stand"),
    TWO_VALUES: ("record is", "records are"),
    LONG_KEY: ("key is", "keys are"),
    NO_CHARACTER: ("id, label or tag has", "ids, labels or tags have"),
}


def note(source: Source, kind: str, place: str, n: int = 1) -> None:
    """Count something odd in an input; the first place is kept."""
    before, first = source.oddities.get(kind, (0, place))
    source.oddities[kind] = (before + n, first)


def note_long_keys(source: Source, text: str, place: str) -> None:
    if len(text) > LONGEST_KEY:
        n = sum(1 for _ in _LONG_KEY.finditer(text))
        if n:
            note(source, LONG_KEY, place, n)


def oddities(source: Source) -> tuple[Text, ...]:
    """One notice for each kind of oddity that was counted in an input."""
    return tuple(
        say(
            _SAID[kind],
            name=printable(source.name),
            n=plural(n, *_COUNTED[kind]),
            first=f" (the first: {printable(first)})" if first else "",
        )
        for kind, (n, first) in sorted(source.oddities.items())
    )


@dataclass
class Trouble:
    """What of one input could not be read, counted, the first of it with its place."""

    source: Source
    what: str = "record"
    n: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, at: str, problem: str) -> None:
        """One record that could not be read, where it stands and why."""
        self.n += 1
        if len(self.first) < NAMED_PROBLEMS:
            self.first.append(f"{at}: {printable(problem)}")

    def notices(self) -> tuple[Text, ...]:
        """One notice about everything that was left out, or none."""
        if not self.n:
            return ()
        shown = "; ".join(self.first) + ("; …" if self.n > len(self.first) else "")
        return (
            say(
                "{name}: {n} could not be read and {are} left out ({shown}).",
                name=printable(self.source.name),
                n=plural(self.n, self.what),
                are="is" if self.n == 1 else "are",
                shown=shown,
            ),
        )


def lines(source: Source, options: Options, trouble: Trouble) -> Iterator[tuple[int, Any]]:
    """The values of a file with one JSON value a line, each with its line number.

    A line that is no JSON, or has bytes that are no text, goes to ``trouble``; a torn last line is
    named as such.
    """
    held: tuple[int, str] | None = None
    source.oddities.clear()
    decoder = Decoder()
    encoding = encoding_of(source, options.encoding)
    # One byte that is no text costs its line and not the log. The wide encodings cannot mark it.
    errors = "replace" if encoding.startswith(("utf-16", "utf-32")) else "surrogateescape"
    with io.TextIOWrapper(
        open_bytes(source), encoding=encoding, errors=errors, newline="\n"
    ) as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                line = line.removeprefix("\ufeff")
            if not line.strip():
                continue
            if held is not None:
                trouble.add(f"line {held[0]:,}", held[1])
                held = None
            if not line.isascii() and _NO_TEXT.search(line):
                held = (number, f"bytes that are no {encoding}; name another with --encoding")
                continue
            try:
                value = decoder.decode(line)
            except _BROKEN as error:
                held = (number, f"no JSON ({error})")
                continue
            note_long_keys(source, line, f"line {number:,}")
            if decoder.clash:
                trouble.add(f"line {number:,}", stands_twice(decoder.clash))
                continue
            if decoder.again:
                note(source, TWICE, f"line {number:,}", decoder.again)
            yield number, value
    if held is not None:
        trouble.add(f"line {held[0]:,}", f"{held[1]}; it is the last line, so it may be torn")


def first_object(source: Source) -> dict[str, Any]:
    """The first JSON object in the head of a file, as far as it is whole; else an empty one.

    For a document that is cut off, the keys that come before the cut are there.
    """
    text = head_text(source, encoding_of(source, "")).lstrip("\ufeff \t\r\n")
    if text.startswith("["):
        text = text[1:].lstrip()
    if not text.startswith("{"):
        return {}
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except _BROKEN:
        return _keys_before_cut(text)
    return value if isinstance(value, dict) else {}


def head_objects(source: Source, *, most: int = 20) -> list[dict[str, Any]]:
    """The objects of the first lines in the head of a file with one JSON value a line, at most ``most``.

    A line that is no JSON is passed over; of one that the head cuts off, the keys before the cut are there.
    """
    text = head_text(source, encoding_of(source, "")).removeprefix("\ufeff")
    found: list[dict[str, Any]] = []
    for line in text.split("\n", 4 * most)[: 4 * most]:
        if len(found) == most:
            break
        line = line.strip()
        if not line.startswith("{"):
            continue
        try:
            value = decoded(line)
        except _BROKEN:
            value = _keys_before_cut(line)
        if isinstance(value, dict):
            found.append(value)
    return found


_SPACE = re.compile(r"[ \t\r\n,:]*")


def _keys_before_cut(text: str, *, depth: int = 0) -> dict[str, Any]:
    decoder = json.JSONDecoder()
    found: dict[str, Any] = {}
    at = 1
    key = ""
    try:
        while True:
            at = _after(text, at)
            name, at = decoder.raw_decode(text, at)
            if not isinstance(name, str):
                return found
            key = name
            at = _after(text, at)
            found[key], at = decoder.raw_decode(text, at)
    except _BROKEN:
        if key and key not in found:
            rest = text[at : at + 1]
            # The value is cut off; that it is there, and of which kind, still tells something.
            if rest == "[":
                found[key] = []
            elif rest == "{" and depth < DEEPEST:
                found[key] = _keys_before_cut(text[at:], depth=depth + 1)
            else:
                found[key] = {} if rest == "{" else None
        return found


def _after(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def as_text(value: Any) -> str | None:
    """The text of one JSON value as a cell: null and nan are blank, ``1.0`` is ``1``."""
    if value is None:
        return None
    if isinstance(value, str):
        text = value if value.isascii() else _HALF.sub("\ufffd", value)
        return text if text.strip() else None
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, int):
        return str(value)
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    except _BROKEN:
        return None
    return _HALF.sub("\ufffd", text)


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one: logs put anything anywhere."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> Sequence[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def _measured(labels: set[str]) -> bool:
    """Whether labels are fractions of more values than a scale has."""
    if len(labels) <= MOST_STEPS:
        return False
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return False
    return any(not number.is_integer() for number in numbers if math.isfinite(number))


# --- rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where rows stand; unlike a function made on the spot, it can go from one process to another."""

    at: tuple[int, ...]
    unit: str

    def __call__(self, row: int) -> Place:
        return Place(line=self.at[row], unit=self.unit)


MOST_GRADERS = 1_000  # of logs: a file of half a megabyte may name hundreds of thousands


def refuse_crowd(name: str, graders: Collection[str]) -> None:
    """Raise :class:`InputError` where there are more graders than can be compared in pairs."""
    if len(graders) <= MOST_GRADERS:
        return
    first = ", ".join(printable(g)[:60] for g in sorted(graders)[:3])
    raise InputError(
        f"{printable(name)}: there are {len(graders):,} graders ({first}, …), more than "
        f"{MOST_GRADERS:,}. Name those that are to be audited: --graders A,B."
    )


class Gathered:
    """Rows of one log, gathered as columns; each row keeps the position of its record.

    ``unit`` is what a position counts (``"line"``, ``"sample"``, ``"record"``).
    """

    def __init__(self, source: Source, *, unit: str = "record") -> None:
        self.source = source
        self.unit = unit
        self.at: list[int] = []
        self.columns: dict[str, list[str | None]] = {}
        self.texts: dict[tuple[str, str], str] = {}  # of checklist lines, by question and line

    def __len__(self) -> int:
        return len(self.at)

    def add(
        self,
        at: int,
        *,
        response: Any,
        grader: Any,
        label: Any = None,
        outcome: str = "",
        reason: str = "",
        line: Any = None,
        question: Any = None,
        cluster: Any = None,
        vote: Any = None,
        phrasing: Any = None,
        **tags: Any,
    ) -> None:
        """One label, verdict (with a ``line``) or call without one (with an ``outcome``).

        ``outcome`` is one of :data:`voirdire.options.OUTCOMES` or ``missing``; where it is neither
        given nor a label is there, the row is ``unparsed``. ``reason`` says why. Tags are any other
        columns; a name that means something else here gets ``" (log)"`` behind it.
        """
        text = as_text(label)
        if not outcome:
            outcome = "label" if text is not None else "unparsed"
        if outcome != "label":
            text = None
        if reason and outcome != "label":
            outcome = f"{outcome}: {' '.join(reason.split())[:200]}"
        row: dict[str, Any] = {
            "response": response,
            "grader": grader,
            "label": text,
            "outcome": outcome,
            "line": line,
            QUESTION: question,
            "cluster": cluster,
            "vote": vote,
            "phrasing": phrasing,
        }
        for name, value in tags.items():
            name = _HALF.sub("\ufffd", name).replace("\0", "\ufffd")
            row[f"{name} (log)" if name in CANONICAL else name] = value
        for name in row:
            if name not in self.columns and row[name] is not None:
                self.columns[name] = [None] * len(self.at)
        for name, cells in self.columns.items():
            cells.append(as_text(row.get(name)))
        self.at.append(at)

    def leave_out_measures(self, asked: Sequence[str]) -> tuple[Text, ...]:
        """Leave out graders that measure (fractions of many values) beside others that give classes.

        Where all of them measure, or for those that are ``asked`` for by name, nothing is left out.
        Returns a notice that names what was, or none.
        """
        if not {"grader", "label"} <= self.columns.keys():
            return ()
        values: dict[str | None, set[str]] = {}
        for grader, label in zip(self.columns["grader"], self.columns["label"], strict=True):
            if label is not None:
                values.setdefault(grader, set()).add(label)
        measures = {g for g, seen in values.items() if _measured(seen)}
        kept = measures.intersection(asked)
        measures -= kept
        if not measures or (len(measures) == len(values) and not kept):
            return ()
        stays = [g not in measures for g in self.columns["grader"]]
        self.columns = {
            name: [c for c, stay in zip(cells, stays, strict=True) if stay]
            for name, cells in self.columns.items()
        }
        self.at = [a for a, stay in zip(self.at, stays, strict=True) if stay]
        names = sorted(str(g) for g in measures)
        return (
            say(
                "{names} {give} fractions of many values, which are measurements and no classes; {they} "
                "left out beside graders that give classes. Audit {them} with --graders.",
                names=listed(names),
                give="gives" if len(names) == 1 else "give",
                they="it is" if len(names) == 1 else "they are",
                them="it alone" if len(names) == 1 else "one of them alone",
            ),
        )

    def rows(
        self,
        *,
        layout: str,
        notices: Iterable[Text] = (),
        order: Sequence[str] = (),
        facts: Mapping[str, Mapping[str, Any]] | None = None,
        scope: Mapping[str, str] | None = None,
    ) -> list[Rows]:
        """The rows: labels, and apart from them the verdicts on lines of a checklist.

        ``layout`` names the format, ``scope`` what the log says of all its responses. Raises :class:`InputError` where there is no row.
        """
        if not self.at:
            odd = "".join(f" {plain(n)}" for n in (*notices, *oddities(self.source)))
            raise InputError(
                f"{printable(self.source.name)}: it is read as {layout}, and there is no label in it.{odd}"
            )
        frame = self._as_text()
        notices = (*notices, *oddities(self.source))
        frame = frame.with_columns(pl.Series("\0at", self.at, dtype=pl.UInt32))
        parts = [frame]
        if "line" in frame.columns:
            parts = [
                frame.filter(pl.col("line").is_null()).drop("line", QUESTION, strict=False),
                frame.filter(pl.col("line").is_not_null()),
            ]
        made: list[Rows] = []
        for part in parts:
            if not part.height:
                continue
            checklist = "line" in part.columns
            at = part["\0at"].to_list()
            # A tag in which nothing stands in this part says nothing.
            part = part.drop(
                c
                for c in part.columns
                if c not in CANONICAL and c != "\0at" and part[c].null_count() == part.height
            )
            graders = tuple(part["grader"].drop_nulls().unique(maintain_order=True).to_list())
            present = set(graders)
            made.append(
                Rows(
                    frame=part.drop("\0at"),
                    name=self.source.name,
                    stem=self.source.stem,
                    sha256=self.source.sha256,
                    layout=layout,
                    kind="checklist" if checklist else "labels",
                    place=self._places(at),
                    order=tuple(g for g in order if g in present),
                    facts={g: f for g, f in (facts or {}).items() if g in present},
                    notices=tuple(notices) if not made else (),
                    seen=graders,
                    lines=self._lines(part) if checklist else None,
                    logged=True,
                    scope={k: text for k, v in (scope or {}).items() if (text := as_text(v))},
                )
            )
        return made

    def _as_text(self) -> pl.DataFrame:
        """The columns; what is no character is counted, and stands as the sign for such."""
        frame = pl.DataFrame(
            {name: pl.Series(cells, dtype=pl.String) for name, cells in self.columns.items()}
        )
        self.source.oddities.pop(NO_CHARACTER, None)
        for name in frame.columns:
            odd = frame[name].str.contains(_NO_CHARACTER).fill_null(False)
            if not odd.any():
                continue
            first = self.at[int(odd.arg_true()[0])]
            note(self.source, NO_CHARACTER, f"{self.unit} {first:,}", int(odd.sum()))
            frame = frame.with_columns(pl.col(name).str.replace_all("\0", "\ufffd", literal=True))
        return frame

    def _places(self, at: Sequence[int]) -> Callable[[int], Place]:
        return _Places(at=tuple(at), unit=self.unit)

    def _lines(self, part: pl.DataFrame) -> Lines:
        """Lines in the order in which each question has them."""
        question = part[QUESTION] if QUESTION in part.columns else None
        order: dict[str, tuple[str, ...]] = {}
        asked = part.select(
            (pl.lit("") if question is None else pl.col(QUESTION).fill_null("")).alias("q"), "line"
        ).unique(maintain_order=True)
        for name, inside in asked.group_by("q", maintain_order=True):
            order[str(name[0])] = tuple(inside["line"].to_list())
        return Lines(
            question="" if question is None else "question",
            said=True,
            order=order,
            texts=self.texts,
        )
