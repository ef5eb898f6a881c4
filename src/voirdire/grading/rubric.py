"""A rubric: the classes or the checklist that graders are asked about, and how they are asked.

A rubric is a TOML file, or one that ships (:func:`shipped`). ``kind = "classes"`` has classes in scale
order, lowest first, each with a definition and synonyms; those with ``off_scale = true`` stand outside
the order, and ``ordered = false`` says that there is none. ``kind = "checklist"`` has lines with ids, shared by all responses or per question. One or
more phrasings word the instruction; the form of the reply is asked for in our own words, so that all
phrasings ask for the same form.

All texts are taken as they are: nothing in a rubric is a template.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from voirdire.errors import InputError, unreadable

__all__ = [
    "GradeClass",
    "Line",
    "Phrasing",
    "ReplyForm",
    "Rubric",
    "fold",
    "load",
    "of",
    "schema",
    "shipped",
]

KINDS = ("classes", "checklist")
FORMATS = ("json", "line", "grammar")
REASONS = ("none", "before", "after")
REASON_KEY = "reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeClass:
    """One class of a rubric. ``synonyms`` are other words that graders may use for it."""

    name: str
    definition: str = ""
    synonyms: tuple[str, ...] = ()
    off_scale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a checklist: what must be true of a response for a yes."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrasing:
    """One wording of the instruction. ``system`` may be empty: then no system message is sent."""

    name: str
    instruction: str
    system: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyForm:
    """The form of reply that is asked for.

    ``format``: ``json`` (an object with the class under ``key``, or one boolean a checklist line),
    ``line`` (a last line ``MARK: class``, or one line ``id: yes`` a checklist line), ``grammar`` (the
    bare class, held to a GBNF grammar by servers that know it). ``reason`` asks for a short reason
    before or after the verdict. ``grammar`` is the GBNF text; empty: it is made from the classes.
    """

    format: str = "json"
    key: str = "label"
    mark: str = "VERDICT"
    reason: str = "none"
    grammar: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rubric:
    """What graders are asked, checked. Two rubrics are equal where their content is (:attr:`hash`).

    ``lines`` are the shared lines of a checklist, ``questions`` the lines of each question; one of the
    two is empty. ``source`` is where the rubric came from, for messages only.
    """

    name: str
    kind: str
    title: str = ""
    ordered: bool = True
    classes: tuple[GradeClass, ...] = ()
    lines: tuple[Line, ...] = ()
    questions: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    phrasings: tuple[Phrasing, ...] = ()
    reply: ReplyForm = field(default_factory=ReplyForm)
    source: str = ""
    hash: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        text = json.dumps(self.content(), ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        object.__setattr__(self, "hash", hashlib.sha256(text.encode()).hexdigest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rubric) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def content(self) -> dict[str, Any]:
        """All that the rubric says, in the form of its file, as plain values; defaults are filled in."""
        content: dict[str, Any] = {"name": self.name, "title": self.title, "kind": self.kind}
        content["reply"] = _plain(self.reply)
        if self.kind == "classes":
            content["ordered"] = self.ordered
            content["classes"] = [_plain(c) for c in self.classes]
        elif self.questions:
            content["questions"] = [
                {"id": question, "lines": [_plain(line) for line in lines]}
                for question, lines in self.questions.items()
            ]
        else:
            content["lines"] = [_plain(line) for line in self.lines]
        content["phrasings"] = [_plain(p) for p in self.phrasings]
        return content

    @property
    def is_checklist(self) -> bool:
        """Whether graders answer yes or no to lines, and not with one class."""
        return self.kind == "checklist"

    @property
    def labels(self) -> tuple[str, ...]:
        """All class names, those on the scale first; for a checklist ``"0"`` and ``"1"``."""
        return ("0", "1") if self.is_checklist else (*self.scale, *self.off_scale)

    @property
    def scale(self) -> tuple[str, ...]:
        """The classes in order, lowest first."""
        return tuple(c.name for c in self.classes if not c.off_scale)

    @property
    def off_scale(self) -> tuple[str, ...]:
        """The classes outside the order."""
        return tuple(c.name for c in self.classes if c.off_scale)

    def lines_for(self, question: str = "") -> tuple[Line, ...]:
        """The checklist lines of a question; raises :class:`InputError` where it has none."""
        if not self.questions:
            return self.lines
        try:
            return self.questions[question]
        except KeyError:
            asked = f"the question {question!r}" if question else "a response without a question"
            near = difflib.get_close_matches(question, self.questions, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(
                f"The checklist {self.name} has no lines for {asked}; it has lines for "
                f"{_some(self.questions)}.{hint} Add a [[questions]] entry to the rubric, or mend the "
                "column that holds the question (--column question=NAME)."
            ) from None

    def phrasing(self, name: str = "") -> Phrasing:
        """A phrasing by its name (the first without one); raises :class:`InputError`."""
        for phrasing in self.phrasings:
            if name in ("", phrasing.name):
                return phrasing
        raise InputError(
            f"The rubric {self.name} has no phrasing {name!r}. It has "
            f"{_some(p.name for p in self.phrasings)}."
        )

    def reply_schema(self, question: str = "") -> dict[str, Any] | None:
        """The JSON Schema that a reply is asked to follow; ``None`` for the other formats."""
        if self.reply.format != "json":
            return None
        if self.is_checklist:
            asked: dict[str, Any] = {
                line.id: {"type": "boolean"} for line in self.lines_for(question)
            }
        else:
            asked = {self.reply.key: {"type": "string", "enum": list(self.labels)}}
        # Models write the keys in the order of the schema: a reason after the verdict cannot move it.
        reason = {REASON_KEY: {"type": "string"}}
        if self.reply.reason == "before":
            asked = {**reason, **asked}
        elif self.reply.reason == "after":
            asked = {**asked, **reason}
        return {
            "type": "object",
            "properties": asked,
            "required": list(asked),
            "additionalProperties": False,
        }

    def grammar(self, question: str = "") -> str:
        """The GBNF grammar that a reply is held to; empty for the other formats."""
        if self.reply.format != "grammar":
            return ""
        if self.reply.grammar:
            return self.reply.grammar
        if not self.is_checklist:
            return f"root ::= {' | '.join(_quoted(label) for label in self.labels)}\n"
        lines = (_quoted(f"{line.id}: ") + " verdict" for line in self.lines_for(question))
        return f'root ::= {_NEWLINE.join(lines)}\nverdict ::= "yes" | "no"\n'


_NEWLINE = r' "\n" '


def _quoted(text: str) -> str:
    """A text as a GBNF literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _plain(value: Any) -> dict[str, Any]:
    return {
        name: list(v) if isinstance(v := getattr(value, name), tuple) else v
        for name in value.__dataclass_fields__
    }


def _some(names: Iterable[str], most: int = 8) -> str:
    all_names = list(names)
    shown = ", ".join(repr(n) for n in all_names[:most])
    return f"{shown} and {len(all_names) - most} more" if len(all_names) > most else shown


# What cannot be seen does not tell two labels apart: zero-width marks, joiners, direction marks, soft
# hyphens, byte-order marks, variation selectors.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]+"
)
_PIECE = 1024


def fold(text: str) -> str:
    """A text as labels are compared: NFKC, case folded, without invisible characters.

    White space and line breaks stay. Linear in the length of the text: normalising sorts each run of
    combining marks in quadratic time, so very long lines without a blank are taken in pieces.
    """
    if text.isascii():
        return text.lower()
    if len(text) > _PIECE:
        return "".join(_folded(piece) for piece in _pieces(text))
    return _folded(text)


def _folded(text: str) -> str:
    shown = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    # Case folding can undo the composed form, and NFKC can bring up capitals.
    return unicodedata.normalize("NFKC", shown).casefold()


def _pieces(text: str) -> Iterable[str]:
    start = 0
    while start < len(text):
        end = min(start + _PIECE, len(text))
        if end < len(text):
            blank = max(text.rfind("\n", start, end), text.rfind(" ", start, end))
            end = blank + 1 if blank > start else end
        yield text[start:end]
        start = end


def key_of(text: str) -> str:
    """The folded text, trimmed and with single blanks: equal keys are one label."""
    return " ".join(fold(text).split())


# Loading


def shipped() -> tuple[str, ...]:
    """The names of the rubrics that ship."""
    folder = files("voirdire") / "data" / "rubrics"
    return tuple(
        sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))
    )


def load(source: str | Path) -> Rubric:
    """A rubric from a file, or a shipped one by its name.

    Raises :class:`InputError` that names the file, each place that is wrong, and the next step.
    """
    if isinstance(source, str) and source in shipped():
        text = (files("voirdire") / "data" / "rubrics" / f"{source}.toml").read_text("utf-8")
        return of(_toml(text, source), source=source)
    path = Path(source)
    name = str(source)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        near = difflib.get_close_matches(name, shipped(), n=1)
        hint = f"Did you mean {near[0]}?" if near else "Name one of these, or check the path."
        raise InputError(
            f"{name}: there is no such rubric file, and no shipped rubric of this name "
            f"({', '.join(shipped())}). {hint}"
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}: this is not UTF-8 (byte {error.start}). Save the rubric as UTF-8."
        ) from None
    except OSError as error:
        raise InputError(unreadable(path, error, name=name)) from None
    return of(_toml(text, name), source=name, name=path.stem)


def _toml(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            f"{source}: this is not TOML: {error}. Mend that place; texts of several lines stand "
            'between three quotes (""").'
        ) from None


def of(content: Mapping[str, Any], *, source: str = "rubric", name: str = "") -> Rubric:
    """A rubric from the content of its file. ``name`` is used where the content gives none.

    Raises :class:`InputError` that lists all places that are wrong.
    """
    check = _Check(source)
    check.keys("", content, _TOP)
    name = check.label("name", content.get("name", name or source))
    kind = content.get(
        "kind", "checklist" if {"lines", "questions"} & content.keys() else "classes"
    )
    if kind not in KINDS:
        check.wrong("kind", f"{kind!r} is not one of {', '.join(KINDS)}")
    reply = _reply(check, content.get("reply", {}))
    ordered = content.get("ordered", True)
    if not isinstance(ordered, bool):
        check.wrong("ordered", "this is true or false, without quotes")
    elif "ordered" in content and kind == "checklist":
        check.wrong("ordered", "yes and no have no order to choose; take it out")
    classes: tuple[GradeClass, ...] = ()
    lines: tuple[Line, ...] = ()
    questions: dict[str, tuple[Line, ...]] = {}
    if kind == "classes":
        classes = _classes(check, content)
    elif kind == "checklist":
        lines, questions = _checklist(check, content, reply)
    phrasings = _phrasings(check, content)
    check.done()
    return Rubric(
        name=name,
        kind=kind,
        title=check.text("title", content.get("title", "")),
        ordered=bool(ordered),
        classes=classes,
        lines=lines,
        questions=questions,
        phrasings=phrasings,
        reply=reply,
        source=source,
    )


_TOP = ("name", "title", "kind", "ordered", "reply", "classes", "lines", "questions", "phrasings")


class _Check:
    """The places of a rubric that are wrong, collected so that they are mended in one go."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[str] = []

    def wrong(self, place: str, what: str) -> None:
        self.problems.append(f"{place}: {what}." if place else f"{what}.")

    def done(self) -> None:
        if len(self.problems) == 1:
            raise InputError(f"{self.source}, {self.problems[0]}")
        if self.problems:
            rows = "\n".join(f"  {p}" for p in self.problems)
            raise InputError(f"{self.source}: {len(self.problems)} places to mend:\n{rows}")

    def keys(self, place: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
                self.wrong(f"{place}.{key}" if place else key, f"no such key; {hint}")

    def tables(self, place: str, value: Any) -> list[tuple[str, Mapping[str, Any]]]:
        if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
            self.wrong(place, f"this is a list of tables: write [[{place}]] above each")
            return []
        return [(f"{place}[{i}]", table) for i, table in enumerate(value, 1)]

    def text(self, place: str, value: Any) -> str:
        if not isinstance(value, str):
            self.wrong(place, f"this is a text, not {type(value).__name__}: put it in quotes")
            return ""
        odd = next(
            (c for c in value if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\r\t"), ""
        )
        if odd:
            self.wrong(place, f"the control character U+{ord(odd):04X} stands in it; take it out")
        return value

    def label(self, place: str, value: Any) -> str:
        """A name: one line, not blank, trimmed."""
        text = self.text(place, value).strip()
        if isinstance(value, str) and not key_of(text):
            self.wrong(place, "this is blank; give it a name")
        if len(text.splitlines()) > 1:
            self.wrong(place, f"{text!r} has a line break; a name is one line")
        return text


def _reply(check: _Check, value: Any) -> ReplyForm:
    if not isinstance(value, Mapping):
        check.wrong("reply", "this is a table: write [reply] above its keys")
        return ReplyForm()
    check.keys("reply", value, tuple(ReplyForm.__dataclass_fields__))
    default = ReplyForm()
    form = value.get("format", default.format)
    if form not in FORMATS:
        check.wrong("reply.format", f"{form!r} is not one of {', '.join(FORMATS)}")
    reason = value.get("reason", default.reason)
    if reason not in REASONS:
        check.wrong("reply.reason", f"{reason!r} is not one of {', '.join(REASONS)}")
    elif form == "grammar" and reason != "none" and not value.get("grammar"):
        check.wrong(
            "reply.reason", "a grammar that is made from the classes leaves no room for a reason"
        )
    key = check.label("reply.key", value.get("key", default.key))
    if key_of(key) == REASON_KEY:
        check.wrong("reply.key", f"{key!r} is the key of the reason; choose another")
    return ReplyForm(
        format=str(form),
        key=key,
        mark=check.label("reply.mark", value.get("mark", default.mark)).rstrip(" :="),
        reason=str(reason),
        grammar=check.text("reply.grammar", value.get("grammar", "")),
    )


def _classes(check: _Check, content: Mapping[str, Any]) -> tuple[GradeClass, ...]:
    for key in ("lines", "questions"):
        if key in content:
            check.wrong(key, 'only a checklist has lines; write kind = "checklist" for one')
    found = []
    seen: dict[str, tuple[str, str]] = {}
    for place, table in check.tables("classes", content.get("classes", [])):
        check.keys(place, table, tuple(GradeClass.__dataclass_fields__))
        if "name" not in table:
            check.wrong(place, "the class has no name")
            continue
        name = check.label(f"{place}.name", table["name"])
        synonyms = table.get("synonyms", [])
        if not isinstance(synonyms, list):
            check.wrong(f"{place}.synonyms", 'this is a list: synonyms = ["a", "b"]')
            synonyms = []
        off_scale = table.get("off_scale", False)
        if not isinstance(off_scale, bool):
            check.wrong(f"{place}.off_scale", "this is true or false, without quotes")
        words = [(f"{place}.name", name)]
        words += [
            (f"{place}.synonyms[{j}]", check.label(f"{place}.synonyms[{j}]", s))
            for j, s in enumerate(synonyms, 1)
        ]
        for where, word in words:
            before, owner = seen.setdefault(key_of(word), (word, place))
            if key_of(word) and owner != place:
                check.wrong(
                    where,
                    f"{word!r} and {before!r} ({owner}) are the same label once case, width and blanks "
                    "are set aside, and they mean two classes; rename or drop one",
                )
        found.append(
            GradeClass(
                name=name,
                definition=check.text(f"{place}.definition", table.get("definition", "")),
                synonyms=tuple(word for _, word in words[1:]),
                off_scale=bool(off_scale),
            )
        )
    if len(found) < 2 and not any("classes" in p for p in check.problems):
        check.wrong(
            "classes",
            f"a rubric needs at least two classes and this one has {len(found)}; write a [[classes]] "
            "table for each, lowest first",
        )
    return tuple(found)


def _checklist(
    check: _Check, content: Mapping[str, Any], reply: ReplyForm
) -> tuple[tuple[Line, ...], dict[str, tuple[Line, ...]]]:
    if "classes" in content:
        check.wrong("classes", 'a checklist has lines; write kind = "classes" for classes')
    if "lines" in content and "questions" in content:
        check.wrong(
            "questions",
            "lines are shared or per question; move the shared [[lines]] to each question",
        )
    if "questions" not in content:
        lines = _lines(check, "lines", content.get("lines", []), reply)
        if not lines and not check.problems:
            check.wrong(
                "lines", "a checklist needs at least one line; write a [[lines]] table for each"
            )
        return lines, {}
    questions: dict[str, tuple[Line, ...]] = {}
    for place, table in check.tables("questions", content["questions"]):
        check.keys(place, table, ("id", "lines"))
        question = check.label(f"{place}.id", table.get("id", ""))
        if question in questions:
            check.wrong(f"{place}.id", f"the question {question!r} is there already; join the two")
        lines = _lines(check, f"{place}.lines", table.get("lines", []), reply)
        if not lines:
            check.wrong(
                f"{place}.lines", f"the question {question!r} has no line; add one or drop it"
            )
        questions[question] = lines
    if not questions and not check.problems:
        check.wrong("questions", "there is none; write a [[questions]] table for each")
    return (), questions


def _lines(check: _Check, place: str, value: Any, reply: ReplyForm) -> tuple[Line, ...]:
    found = []
    seen: dict[str, str] = {}
    for where, table in check.tables(place, value):
        check.keys(where, table, ("id", "text"))
        id_ = check.label(f"{where}.id", table.get("id", ""))
        text = check.text(f"{where}.text", table.get("text", ""))
        key = key_of(id_)
        if not text.strip() and "text" not in table:
            check.wrong(f"{where}.text", "the line has no text; say what must be true for a yes")
        if "/" in id_:
            check.wrong(
                f"{where}.id", f"{id_!r} has a /, which parts question and line; take it out"
            )
        if key == REASON_KEY and reply.reason != "none":
            check.wrong(f"{where}.id", f"{id_!r} is the key of the reason; choose another")
        if key and key in seen:
            check.wrong(
                f"{where}.id",
                f"{id_!r} and {seen[key]!r} are the same id once case, width and blanks are set aside; "
                "rename one",
            )
        seen[key] = id_
        found.append(Line(id=id_, text=text))
    return tuple(found)


def _phrasings(check: _Check, content: Mapping[str, Any]) -> tuple[Phrasing, ...]:
    found: list[Phrasing] = []
    for place, table in check.tables("phrasings", content.get("phrasings", [])):
        check.keys(place, table, tuple(Phrasing.__dataclass_fields__))
        name = check.label(f"{place}.name", table.get("name", ""))
        if name in {p.name for p in found}:
            check.wrong(f"{place}.name", f"the phrasing {name!r} is there already; rename one")
        instruction = check.text(f"{place}.instruction", table.get("instruction", ""))
        if not instruction.strip():
            check.wrong(f"{place}.instruction", "this is blank; say what the grader is to do")
        found.append(
            Phrasing(
                name=name,
                instruction=instruction,
                system=check.text(f"{place}.system", table.get("system", "")),
            )
        )
    if not found and "phrasings" not in "".join(check.problems):
        check.wrong(
            "phrasings",
            'there is none; write [[phrasings]] with name = "plain" and an instruction',
        )
    return tuple(found)


# The schema of rubric files


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of rubric files.

    It says the form; that labels and ids are distinct once folded is checked on loading.
    """
    name = {"type": "string", "pattern": r"\S"}
    line = {
        "type": "object",
        "properties": {
            "id": {**name, "description": "Short; graders give it back. No /."},
            "text": {"type": "string", "description": "What must be true of a response for a yes."},
        },
        "required": ["id", "text"],
        "additionalProperties": False,
    }
    lines = {"type": "array", "items": {"$ref": "#/$defs/line"}, "minItems": 1}
    class_ = {
        "type": "object",
        "properties": {
            "name": name,
            "definition": {"type": "string", "description": "Shown to graders."},
            "synonyms": {
                "type": "array",
                "items": name,
                "description": "Other words that a reply may use for the class; not shown to graders.",
            },
            "off_scale": {
                "type": "boolean",
                "default": False,
                "description": "The class stands outside the order of the scale.",
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    phrasing = {
        "type": "object",
        "properties": {
            "name": name,
            "system": {"type": "string", "description": "The system message; none where empty."},
            "instruction": {
                **name,
                "description": "What the grader is to do, before classes or lines.",
            },
        },
        "required": ["name", "instruction"],
        "additionalProperties": False,
    }
    default = ReplyForm()
    reply = {
        "type": "object",
        "properties": {
            "format": {"enum": list(FORMATS), "default": default.format},
            "key": {**name, "default": default.key, "description": "The key of the class in JSON."},
            "mark": {
                **name,
                "default": default.mark,
                "description": "The word before the class in the last line.",
            },
            "reason": {
                "enum": list(REASONS),
                "default": default.reason,
                "description": "Ask for a short reason before or after the verdict.",
            },
            "grammar": {
                "type": "string",
                "default": default.grammar,
                "description": "GBNF; made from classes or lines where empty.",
            },
        },
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "voirdire rubric",
        "type": "object",
        "properties": {
            "name": name,
            "title": {"type": "string"},
            "kind": {"enum": list(KINDS)},
            "ordered": {
                "type": "boolean",
                "default": True,
                "description": "Whether the order of the classes means anything.",
            },
            "reply": reply,
            "classes": {
                "type": "array",
                "items": class_,
                "minItems": 2,
                "description": "In scale order, lowest first.",
            },
            "lines": {**lines, "description": "The lines of all responses."},
            "questions": {
                "type": "array",
                "minItems": 1,
                "description": "The lines of each question.",
                "items": {
                    "type": "object",
                    "properties": {"id": name, "lines": lines},
                    "required": ["id", "lines"],
                    "additionalProperties": False,
                },
            },
            "phrasings": {"type": "array", "items": phrasing, "minItems": 1},
        },
        "required": ["phrasings"],
        "oneOf": [{"required": [key]} for key in ("classes", "lines", "questions")],
        "additionalProperties": False,
        "$defs": {"line": line},
    }
