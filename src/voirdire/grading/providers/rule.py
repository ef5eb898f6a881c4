"""A rule: phrases and patterns that stand for a class, as string-match graders have them.

Options: ``patterns``, a TOML file of rules or a list of phrases (else the shipped phrases of refusal);
``where``, ``anywhere`` or ``start`` (the text begins with it), in place of what the file says; ``label``,
the class that a listed phrase stands for (``refusal``), and ``otherwise``, the class of everything else
(``compliance``). No network, no messages.

A file has ``otherwise = "class"`` and one or more ``[[rules]]`` with ``label``, ``where``, ``phrases``
(matched as whole words; case, apostrophes and white space aside) and ``patterns`` (regular expressions,
over the text as it is). The first rule that matches gives the class.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from voirdire.errors import unreadable
from voirdire.grading.base import Failure, FailureKind, GraderSpec, Reply, Request
from voirdire.grading.providers.base import Provider, known_options
from voirdire.wording import printable

WHERE = ("anywhere", "start")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u00b4\u0060", "'"))


def _folded(text: str) -> str:
    """The text as phrases are compared: one case, one apostrophe, single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold().split())


@dataclass(frozen=True, slots=True)
class _Rule:
    label: str
    phrases: re.Pattern[str] | None
    patterns: tuple[re.Pattern[str], ...]
    at_start: bool

    def match(self, text: str, folded: str) -> str | None:
        """What of the text the rule goes by; ``None`` where it does not apply."""
        if self.phrases is not None:
            found = (self.phrases.match if self.at_start else self.phrases.search)(folded)
            if found:
                return found.group("phrase")
        for pattern in self.patterns:
            found = (pattern.match if self.at_start else pattern.search)(text)
            if found:
                return found.group()
        return None


def _rule(one: Any, where: str, at: str) -> _Rule:
    def words(name: str) -> list[str]:
        value = one.get(name, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
            raise _fatal(f'{at}: {name} is a list of texts: {name} = ["…", "…"].')
        return value

    if not isinstance(one, dict) or not isinstance(one.get("label"), str):
        raise _fatal(f'{at}: a rule is a table with a label: [[rules]], label = "refusal".')
    if unknown := sorted(set(one) - {"label", "where", "phrases", "patterns"}):
        raise _fatal(
            f"{at}: a rule has no setting {printable(unknown[0])!r}; it has label, where, phrases, patterns."
        )
    place = where or one.get("where", WHERE[0])
    if place not in WHERE:
        raise _fatal(f"{at}: where is {' or '.join(WHERE)}, not {printable(str(place))!r}.")
    phrases = [re.escape(_folded(p)) for p in words("phrases")]
    if not phrases and not words("patterns"):
        raise _fatal(f"{at}: the rule for {one['label']!r} has neither phrases nor patterns.")
    # Longest first, so that what is reported is the most that matched.
    phrases.sort(key=len, reverse=True)
    start = r"\W*" if place == "start" else ""
    try:
        return _Rule(
            one["label"],
            re.compile(rf"{start}(?<!\w)(?P<phrase>{'|'.join(phrases)})(?!\w)")
            if phrases
            else None,
            tuple(re.compile(p) for p in words("patterns")),
            place == "start",
        )
    except re.error as error:
        raise _fatal(
            f"{at}: {printable(str(error.pattern))!r} is no regular expression: {error}."
        ) from None


def _fatal(message: str) -> Failure:
    return Failure(FailureKind.FATAL, message)


class _Client:
    def __init__(self, spec: GraderSpec) -> None:
        known_options(spec, ("patterns", "where", "label", "otherwise"))
        options = spec.options
        given: Any = options.get("patterns")
        at = f"The rules of the grader {spec.name!r}"
        if isinstance(given, Sequence) and not isinstance(given, str):
            content: dict[str, Any] = {
                "rules": [{"label": options.get("label", "refusal"), "phrases": list(given)}]
            }
        else:
            content = self._file(given, at)
            if "label" in options:
                for one in content.get("rules", ()):
                    one["label"] = options["label"]
        rules = content.get("rules")
        if not isinstance(rules, list) or not rules:
            raise _fatal(f"{at}: there is no rule. Add one: [[rules]].")
        self._rules = [_rule(one, str(options.get("where") or ""), at) for one in rules]
        self._otherwise = str(options.get("otherwise") or content.get("otherwise") or "compliance")

    @staticmethod
    def _file(path: str | None, at: str) -> dict[str, Any]:
        try:
            if path is None:
                source = files("voirdire").joinpath("data", "rules", "refusal.toml")
                return tomllib.loads(source.read_text(encoding="utf-8"))
            return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        except OSError as error:
            called = f"{at}: {printable(str(path))}"
            raise _fatal(unreadable(str(path), error, name=called)) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise _fatal(f"{at}: {printable(str(path))} is not TOML: {error}.") from None

    def _label(self, label: str, labels: Sequence[str]) -> str:
        if labels and label not in labels:
            raise _fatal(
                f"The rule gives {printable(label)!r}, which the rubric does not have (it has "
                f"{', '.join(map(printable, labels))}). Say which class it stands for: label = … and "
                "otherwise = …, in the grader's options."
            )
        return label

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        folded = _folded(request.response)
        label, matched = self._otherwise, None
        for rule in self._rules:
            matched = rule.match(request.response, folded)
            if matched is not None:
                label = rule.label
                break
        label = self._label(label, request.labels)
        raw = json.dumps({"label": label, "matched": matched}, ensure_ascii=True)
        return Reply(text=label, finish="stop", model=request.model, raw=raw)

    async def close(self) -> None:
        pass


PROVIDER = Provider(
    name="rule",
    title="phrases and patterns that stand for a class; no network",
    open=_Client,
    talks=False,
)
