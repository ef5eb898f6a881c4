"""Reading a reply: one of the seven outcomes, and the verdict where there is one.

The order of reading, the same for all graders:

1. **How the reply ended.** Cut at the token limit: ``truncated``, whatever stands in it, and no line of a
   checklist counts. Stopped by the provider's filter: ``blocked``. A refusal that came in a field of its
   own: ``grader_refusal``.
2. **A tool call**, where there is one: its arguments carry the verdict; the text beside it is commentary.
3. **Reasoning is never a verdict.** A reply that is JSON as a whole is taken as it is; otherwise what
   stands in ``<think>`` blocks goes, with all that comes before a closing mark that nobody opened, and
   all that comes after an opening mark that nobody closed. The side channel is not read: a reply whose
   text is blank is ``empty``, also where the reasoning names a class.
4. **The form that was asked for**: JSON for a JSON rubric, the marked line for a line rubric; then the
   other one. Of several verdicts in one form the *last* counts, and it counts alone: where it cannot
   be read, no earlier one takes its place. A mark in quotes within a sentence is a quotation and no verdict.
5. **Other marks** (``Verdict:``, ``Answer =`` …) and other usual keys, only where the rubric's own are absent.
6. **The grader's own refusal** ("I can't rate this", "I can't label this without more"): ``grader_refusal``.
   It begins the reply, or a later sentence says that the grader does not rate or label, so an apology
   that is quoted is none. A reply with a marked verdict is none either.
7. **Words**: the reply is one class and nothing else, or its last or first line is. In a reply of up to 400
   characters also a sentence: one class alone, in the first or last sentence, not negated, not
   qualified ("partial compliance"), not hedged. Two classes are ``ambiguous``. Single characters and
   words such as *no* and *none* are never found in sentences.

Labels are compared after NFKC, case folding and without invisible characters; look-alikes of other
scripts are other letters. The longest label wins, with word boundaries where the script has blanks
between words; a blank, a hyphen and an underscore inside a label are alike where no two labels differ in
only that. A word in front of a label, or after it without a stop, makes another label: ``off-menu``.

Choices that others make otherwise: a list with one class is ``malformed``; a usual key that is not the
rubric's (``{"verdict": …}``) is read; of two marked verdicts the later counts; a filter's ``stop_reason`` of
``refusal`` is ``blocked``, not a refusal of the grader.

**Checklists.** Verdicts belong to lines by id, never by place: a list without ids is ``malformed``, also where it
has the right length. Numbers 1 to K are names, so a numbered list with each of them once is read. A
line that the reply leaves out, or gives as null or blank, is ``missing``; one that is neither yes nor no is
``unparsed``. One readable line makes the outcome ``label``.

Everything here is linear in the length of the reply, up to a budget for text that is made of broken JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from voirdire.grading.base import Reading, Reply
from voirdire.grading.rubric import Line, Rubric, fold, key_of

__all__ = ["VERSION", "read"]

VERSION = (
    1  # raised by every change that can change a verdict, so that stored replies can be read again
)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# How a reply ended, in the words of providers.
_CUT = _words(
    "length max_tokens max_output_tokens max_completion_tokens model_length token_limit max_length "
    "model_context_window_exceeded context_length"
)
_FILTERED = _words(
    "content_filter content_filtered content-filter refusal safety prohibited_content blocklist "
    "recitation spii sensitive guardrail_intervened image_safety language"
)
_BROKEN = _words("error malformed_function_call insufficient_system_resource")

# Words that mark a verdict, in texts and as JSON keys, where the rubric's own are absent.
_USUAL = _words(
    "verdict label classification class category grade rating decision judgment judgement answer "
    "score result 判定 标签 判断 étiquette urteil etiqueta"
)

_LONGEST_PROSE = 400
_LONGEST_LABELLED = 400
_MOST_LINES = 400
_QUOTES = frozenset("\"'“”„‘’«»「」『』")


def read(reply: Reply, rubric: Rubric, question: str = "") -> Reading:
    """What a reply says under a rubric; see the module for the order of reading.

    ``question`` chooses the lines of a checklist that has lines per question; raises
    :class:`voirdire.errors.InputError` where the rubric has none for it, and nothing else.
    """
    reader = _reader(rubric, question if rubric.questions else "")
    finish = reply.finish.strip().lower()
    if finish in _CUT:
        return reader.without("truncated")
    if finish in _FILTERED:
        return reader.without("blocked")
    if reply.refusal.strip():
        return reader.without("grader_refusal")
    text = reply.text or ""
    if reply.tool_arguments.strip():
        reading = reader.of_text(reply.tool_arguments, only_json=True)
        if reading.outcome == "label" or not text.strip() or reading.reason != "no-verdict":
            return _with_note(reading, "The verdict was sought in a tool call.")
    if finish in _BROKEN:
        return reader.without("error", "provider-error")
    if not _visible(text):
        return reader.without("empty", "only-reasoning" if reply.reasoning.strip() else "")
    return reader.of_text(text)


def _with_note(reading: Reading, note: str) -> Reading:
    if reading.outcome == "label":
        return reading
    return Reading(
        outcome=reading.outcome,
        reason=reading.reason,
        lines=reading.lines,
        unread=reading.unread,
        notes=(*reading.notes, note),
    )


_HIDDEN = re.compile("[\\s\u00ad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]*\\Z")


def _visible(text: str) -> bool:
    return not _HIDDEN.match(text)


# Reasoning blocks -----------------------------------------------------------------------------------

_TAG = re.compile(
    r"<(/?)(?:think|thinking|thoughts?|reasoning|analysis|scratchpad)>|[\[◁](/?)think[\]▷]"
    r"|<\|(?:(?:begin|start)_of_thought|(end)_of_thought)\|>",
    re.IGNORECASE,
)
# The channels of one family of open models, where a server passes them on as they are.
_CHANNEL = re.compile(r"<\|channel\|>\s{0,8}(\w{1,20})[^<]{0,80}<\|message\|>")
_CHANNEL_END = re.compile(r"<\|(?:end|return|call)\|>")
_MOST_TAILS = 8


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for match in pattern.finditer(text):
        found = match
    return found


def _answer(text: str) -> tuple[str, Any]:
    """The text without reasoning, and its JSON value where what follows a closing mark is all JSON."""
    if "<|channel|>" in text:
        last = _last(_CHANNEL, text)
        if last is not None:
            if last.group(1).lower() != "final":
                return "", _NOTHING
            text = _CHANNEL_END.split(text[last.end() :], 1)[0]
    tails = 0
    pieces: list[str] = []
    at, inside = 0, False
    for tag in _TAG.finditer(text):
        if any(tag.groups()):
            if not inside:  # nobody opened it: all before it was reasoning
                pieces.clear()
            at, inside = tag.end(), False
            if tails < _MOST_TAILS:
                tails += 1
                whole = _whole(text[at:])
                if whole is not _NOTHING:
                    return text[at:], whole
        elif not inside:
            pieces.append(text[at : tag.start()])
            inside = True
    if not inside:
        pieces.append(text[at:])
    return "".join(pieces), _NOTHING


# JSON -----------------------------------------------------------------------------------------------


class _Mark:
    """A value that no JSON has."""


_NOTHING: Final = _Mark()
_SEVERAL: Final = _Mark()  # a key that stands in one object with two values


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen and seen[key] != value:
                found[key] = _SEVERAL
            seen[key] = value
    return found


# Line breaks inside texts are let through: small models write them.
_DECODER = json.JSONDecoder(object_pairs_hook=_object, strict=False)
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_START = re.compile(r'\{\s*["}]|\[\s*[{\[]')
_FENCE = re.compile(r"\A\s*```[\w-]{0,20}[ \t]*\n(.*)\n[ \t]*```\s*\Z", re.DOTALL)
_MOST_SCANNED = 5_000_000  # characters gone through again by attempts that fail
_MOST_COUNTED = 300_000_000  # characters in which the decoder counts lines for its messages
_DEEP = 5_000
_DEEPEST = 4  # levels at which a key is looked for


def _whole(text: str) -> Any:
    """The value of a text that is one JSON object or list, else ``_NOTHING``."""
    text = text.strip("\ufeff \t\r\n")
    if not text or text[0] not in "{[" or text[-1] not in "}]":
        return _NOTHING
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return _NOTHING
    return value if end == len(text) else _NOTHING


def _embedded(
    text: str, holds: Callable[[Any], bool], key: re.Pattern[str]
) -> tuple[list[Any], bool]:
    """The complete JSON values in a text that hold a key, in order, and whether the last is not to be
    trusted: a later one is broken, or it may stand inside a broken one."""
    found: list[Any] = []
    suspect = False
    broken = -1  # where an object with the key began that could not be read
    scanned = counted = at = 0
    while start := _START.search(text, at):
        begin = start.start()
        try:
            value, at = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError) as error:
            stop = getattr(error, "pos", begin + _DEEP)
            scanned += stop - begin
            counted += stop
            if scanned > _MOST_SCANNED or counted > _MOST_COUNTED:
                return found, True
            if key.match(text, begin):
                broken, suspect = begin, True
            at = begin + 1
            continue
        if holds(value):
            found.append(value)
            apart = broken < 0 or (
                text.rfind("\n", broken, begin) >= 0
                and not text[text.rfind("\n", 0, begin) + 1 : begin].strip()
            )
            suspect = not apart
    return found, suspect


def _levels(value: Any) -> Iterator[list[dict[str, Any]]]:
    """The objects in a JSON value, level by level."""
    level = [value]
    for _ in range(_DEEPEST):
        yield [v for v in level if isinstance(v, dict)]
        level = [
            inner
            for v in level
            if isinstance(v, dict | list)
            for inner in (v.values() if isinstance(v, dict) else v)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return


# Words ----------------------------------------------------------------------------------------------

# Scripts that are written without blanks between words.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_ATTACHING = "\uac00-\ud7af"  # Korean: blanks between words, endings without
_SPACED = rf"[^\W{_UNSPACED}]"
_HYPHEN = "[-\u2010]"
_LEFT = rf"(?<!{_SPACED})(?<!{_SPACED}{_HYPHEN})"
_RIGHT = rf"(?!{_SPACED})(?!{_HYPHEN}{_SPACED})"
_NO_LEFT = re.compile(f"[{_UNSPACED}]")
_NO_RIGHT = re.compile(f"[{_UNSPACED}{_ATTACHING}]")
_JOINT = r"[\s_\-\u2010]"
_SPLIT = re.compile(_JOINT + "+")

_DECORATION = re.compile(r"[*`]+|(?<![^\W_])_+|_+(?![^\W_])")
# What may stand before a value: quotes, brackets, a bullet.
_BEFORE = re.compile(
    r"""[\s"'“”„‘’«»「」『』《》【】\[\](){}<>|#~\\]{0,40}(?:[-•]\s{1,8})?["'“”‘’«»「]{0,4}"""
)
_ARTICLE = re.compile(r"(?:an?|the|une?|die|der|das|eine?|el|la|le|una|uno)\s{1,4}")
# What may stand after a label: an end, a stop, a bracket, or a word that opens a reason.
_AFTER = re.compile(
    r"""[ \t"'“”‘’«»]{0,8}(?:\Z|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|[.,/](?!\d)|[;:!)\]}>|&+(\[<{\\。、」』】》…–—]"""
    r"""|-(?!\S)|(?:because|since|as|for|due|given|parce|car|weil|da|porque|ya)\b"""
    r"""|(?:です|だ|と|입니다|임|이다))"""
)
_DOUBT = re.compile(r"""[ \t"'“”‘’«»)]{0,8}\?""")
_ALSO = re.compile(
    r"""[ \t"'“”‘’«»)\]]{0,8}(?:[,/|&+;(\[、–—-]+[ \t]{0,4}(?:or|and)?|or|and|and/or|vs\.?|oder|und|ou|et|o|y)"""
    r"""[ \t"'“”‘’«»]{0,8}(?:(?:either|maybe|possibly|perhaps|also|even|an?|the)[ \t]{1,4}){0,3}["'“”‘’«»]{0,2}"""
)
# Too common in sentences to be found there.
_WEAK = _words(
    "yes no none not na n/a nan null nil true false other others maybe all some any one two good bad "
    "ok okay high low full partial safe unknown so"
)

_NEGATIONS = _words(
    "not no never neither nor without cannot hardly lacks lack lacking absent absence instead rather "
    "unlike non isnt nothing nowhere free ruled rule excluded exclude excludes except excluding than "
    "less short far avoid avoids avoided fail fails failed against despite contrary opposite versus vs "
    "pas aucun aucune sans "
    "jamais nicht kein keine keinen keiner ohne kaum sin ningún ninguna ningun nunca tampoco senza "
    "nessun nessuna nessuno não nao sem nenhum nenhuma niet geen zonder inte ingen inget utan ikke не "
    "нет без"
)
_HEDGES = _words(
    "seems seem looks look like might may could would if whether appears appear maybe perhaps "
    "possibly either almost nearly first initially verges borders resembles should"
)
_QUALIFIERS = _words(
    "partial partially partly near quasi semi pseudo mild soft half apparent seeming so-called "
    "supposed incomplete limited some conditional borderline mostly somewhat false fake implicit "
    "indirect"
)
_CLAUSE = re.compile(r"[.;:!?,\n。、！？]|\b(?:but|so|mais|aber|sondern|pero)\b")
_ANYTHING_BUT = re.compile(r"\b(?:anything|nothing|everything|all) but [^.;:!?\n]{0,40}\Z")
_SENTENCE = re.compile(r"[.!?\n。！？]+(?=\s|\Z)|[。！？]+")
_WORD = re.compile(r"[\w'-]+")
_NOT_AFTER = re.compile(
    r"\s{1,4}(?:is|was|does|do|did|can|could|would|should|has|have|est|ist|es|è)(?:n't|\s{1,4}(?:not|never|ruled|"
    r"excluded|absent|unlikely|no|out|pas|nicht))\b|\s{0,4}(?:では?ない|じゃない|でない|가 아니|이 아니|아님)"
)
_NOT_BEFORE = re.compile(
    r"(?:不是|并非|並非|不属于|不算|没有|沒有|无|無|非|不|未)(?:是|属于|一个|任何|明显|的){0,2}\Z"
)
_QUALIFIED_BEFORE = re.compile(r"(?:部分|轻微|軽度の|半)的?\Z")

# The grader's own refusal. "I can't help but …" is none.
_SORRY = (
    r"(?:(?:i'?m|i am|we'?re|we are)?\s{0,3}(?:so |very |really |truly |deeply )?(?:sorry|afraid)\b[^.\n]{0,40}?"
    r"|(?:my )?apolog(?:ies|y|ise|ize)[^.\n]{0,40}?|i apologi[sz]e[^.\n]{0,40}?|unfortunately,?\s"
    r"|as an? (?:ai|language model|assistant)[^.\n]{0,60}?)"
)
_CANNOT = (
    r"(?:i|we)(?:'m| am|'re| are)?\s{1,3}(?:really |simply |just )?(?:can'?t|can ?not|won'?t|will not|"
    r"(?:not able|unable) to|(?:must|have to|need to|respectfully|would rather)? ?(?:decline|refuse)(?: to)?|"
    r"not comfortable|do(?:n't| not) feel comfortable|should(?:n't| not))"
)
_STILL = (
    r"(?:\s{1,3}(?:to|be|able|with|safely|fairly|properly|currently|actually|honestly|reliably|"
    r"confidently|directly|in good conscience)\b){0,3}\s{1,3}"
)
_GRADING = (
    r"(?:evaluat(?:e|ing)|grad(?:e|ing)|rat(?:e|ing)|label(?:l?ing)?|judg(?:e|ing)|classify(?:ing)?|"
    r"scor(?:e|ing)|assess(?:ing)?|review(?:ing)?|analy[sz](?:e|ing)|categori[sz](?:e|ing)|"
    r"annotat(?:e|ing)|process(?:ing)?|"
    r"(?:provide|give|offer|assign|make) (?:an? |any |this )?(?:label|verdict|rating|grade|score|class"
    r"|evaluation|assessment|judge?ment|classification))\b"
)
_HELPING = (
    r"(?:help(?! but\b)|assist|comply|complete|provide|do (?:that|this|so)|continue|engage|fulfill?|"
    r"support|discuss|participate|respond|answer)\b"
)
_NOT_A_REFUSAL = r"(?!\s{1,3}(?:tell|find|see|say|decide|determine|detect|spot|be sure|help but)\b)"
_DECLINES = re.compile(
    rf"\A[\s\-–—>#]{{0,8}}(?:{_SORRY}[\s,.!;:–—-]{{0,4}}(?:but |that )?)?{_CANNOT}{_STILL}"
    rf"(?:{_GRADING}|{_HELPING})"
    rf"|\A[\s\-–—>#]{{0,8}}{_SORRY}[\s,.!;:–—-]{{0,4}}(?:but |that )?(?:i|we)(?:'m| am)?\s"
    rf"(?:can'?t|can ?not|won'?t|will not|not able){_NOT_A_REFUSAL}"
    r"|\A\s*(?:je (?:suis désolée?|regrette)[^.\n]{0,30})?je ne (?:peux|puis) pas\b"
    r"|\A\s*(?:es tut mir leid[^.\n]{0,30}|leider )(?:ich )?kann (?:ich )?[^.\n]{0,60}\bnicht\b"
    r"|\A\s*lo siento[^.\n]{0,20}\bno puedo\b"
    r"|\A\s*(?:抱歉|很抱歉|对不起|對不起)[^。\n]{0,20}(?:无法|無法|不能|不便)"
    r"|\A\s*申し訳[^。\n]{0,40}(?:できません|いたしかねます)|\A\s*죄송[^.\n]{0,40}(?:없습니다|어렵습니다)"
)
_DECLINES_LATER = re.compile(rf"(?:(?<=[.!?]\s)|(?<=\n)){_CANNOT}{_STILL}{_GRADING}")


class _Verdict:
    """A class that was found, or why there is none."""

    __slots__ = ("label", "notes", "reason")

    def __init__(self, label: str | None, reason: str = "", notes: tuple[str, ...] = ()) -> None:
        self.label = label
        self.reason = reason
        self.notes = notes


_NO_VERDICT = _Verdict(None, "no-verdict")
_MALFORMED = _Verdict(None, "malformed")
_AMBIGUOUS = _Verdict(None, "ambiguous")


def _off_menu(value: str) -> _Verdict:
    """An off-menu verdict; letters beyond ASCII are named, so that look-alikes can be seen."""
    value = value.strip().splitlines()[0][:60] if value.strip() else ""
    odd = list(dict.fromkeys(c for c in value if not c.isascii()))
    if not odd:
        return _Verdict(None, "off-menu", (f"The verdict {value!r} is no class of the rubric.",))
    points = ", ".join(f"U+{ord(c):04X} {c!r}" for c in odd[:8])
    return _Verdict(
        None, "off-menu", (f"The verdict {value!r} is no class of the rubric. It holds {points}.",)
    )


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _cleaned(text: str) -> str:
    """Folded text without the marks of Markdown and with plain apostrophes."""
    return _DECORATION.sub("", fold(text).replace("’", "'"))


class _Classes:
    """Reads replies under one rubric of classes."""

    def __init__(self, rubric: Rubric) -> None:
        words: dict[str, str] = {}
        for class_ in rubric.classes:
            for word in (class_.name, *class_.synonyms):
                words.setdefault(key_of(word), class_.name)
        loose: dict[str, set[str]] = {}
        for word, name in words.items():
            loose.setdefault(" ".join(_SPLIT.split(word)).strip(), set()).add(name)
        self.words = words
        self.loose = {
            word: next(iter(names)) for word, names in loose.items() if word and len(names) == 1
        }
        self.label = re.compile(self._pattern(words))
        strong = [w for w in words if len(w) > 1 and w not in _WEAK and not w.isdigit()]
        self.strong = re.compile(self._pattern(strong)) if strong else None
        self.inside = re.compile(_alternatives(strong)) if strong else None
        self.openers = frozenset(w for w in words if len(w) > 1 and w in _WEAK)
        self.key = rubric.reply.key
        self.folded_key = key_of(self.key)
        self.own = self._marks(dict.fromkeys((key_of(rubric.reply.mark), self.folded_key)))
        self.usual = self._marks(w for w in _USUAL if w != self.folded_key)
        self.lines_first = rubric.reply.format == "line"
        self.opening = re.compile(rf'\{{\s*"{re.escape(self.key)}"\s*:', re.IGNORECASE)

    def _pattern(self, words: Iterable[str]) -> str:
        patterns = []
        for word in sorted(words, key=len, reverse=True):
            parts = [re.escape(p) for p in _SPLIT.split(word)]
            alike = len(parts) > 1 and all(parts) and " ".join(_SPLIT.split(word)) in self.loose
            body = (_JOINT + "{1,4}").join(parts) if alike else re.escape(word)
            left = "" if _NO_LEFT.match(word[0]) else _LEFT
            right = "" if _NO_RIGHT.match(word[-1]) else _RIGHT
            patterns.append(f"{left}{body}{right}")
        return "|".join(patterns)

    @staticmethod
    def _marks(words: Iterable[str]) -> re.Pattern[str]:
        # A quote or bracket may part the word from its colon: {'label': …}, <label>…</label>.
        word = f"(?:{_alternatives(words)})"
        return re.compile(
            rf"{_LEFT}{word}[\"'”’»\])]{{0,4}}\s{{0,8}}(?:is\s{{0,4}})?[:=]{{1,3}}>?|<{word}>"
        )

    def without(self, outcome: str, reason: str = "") -> Reading:
        return Reading(outcome=outcome, reason=reason)

    def named(self, text: str) -> str | None:
        """The class whose name or synonym this folded text is, as a whole."""
        key = " ".join(text.split())
        found = self.words.get(key)
        return found or self.loose.get(" ".join(_SPLIT.split(key)).strip())

    def of_text(self, text: str, *, only_json: bool = False) -> Reading:
        verdict = self._verdict(text, only_json)
        if verdict is None:
            return self.without("empty", "only-reasoning")
        if verdict.label is not None:
            return Reading(outcome="label", label=verdict.label)
        if verdict.reason == "grader-refusal":
            return self.without("grader_refusal")
        return Reading(outcome="unparsed", reason=verdict.reason, notes=verdict.notes)

    def _verdict(self, text: str, only_json: bool) -> _Verdict | None:
        if len(text) <= _LONGEST_LABELLED and (name := self.named(fold(text))):
            return _Verdict(name)
        whole = _whole(text)
        if whole is _NOTHING:
            text, whole = _answer(text)
            if not _visible(text):
                return None
        if whole is not _NOTHING:
            return self._of_whole(whole)
        if _TRAILING_COMMA.search(text):
            text = _TRAILING_COMMA.sub("", text)
            whole = _whole(text)
            if whole is not _NOTHING:
                return self._of_whole(whole)
        if fence := _FENCE.match(text):
            whole = _whole(fence.group(1))
            if whole is not _NOTHING:
                return self._of_whole(whole)
        clean = _cleaned(text)
        if name := self._alone(clean.strip()):
            return _Verdict(name)
        marked = self._marked(clean, self.own)
        if self.lines_first and marked is not None and not only_json:
            return marked
        broken = False
        if "{" in text or "[" in text:
            values, broken = _embedded(text, self._holds, self.opening)
            verdict, own = self._of_json(values)
            if broken and verdict is not None:
                return _MALFORMED
            if verdict is not None and (own or marked is None):
                return verdict
            # A broken object: its one marked verdict is plain; of several, one may be a quotation.
            if broken and self._count(clean) != 1:
                return _MALFORMED
        if only_json:
            return _MALFORMED if broken else _NO_VERDICT
        if marked is None:
            marked = self._marked(clean, self.usual)
        return marked or self._of_words(clean)

    # JSON

    def _holds(self, value: Any) -> bool:
        return any(
            self._at_key(found, own) is not _NOTHING
            for level in _levels(value)
            for found in level
            for own in (True, False)
        )

    def _of_json(self, values: list[Any]) -> tuple[_Verdict | None, bool]:
        """The verdict of the last value with the rubric's key, else of the last with a usual one;
        and whether the key was the rubric's own."""
        for own in (True, False):
            for value in reversed(values):
                for level in _levels(value):
                    found = [v for o in level if (v := self._at_key(o, own)) is not _NOTHING]
                    if found:
                        read = [self._of_value(v) for v in found]
                        return (read[-1] if len({v.label for v in read}) == 1 else _AMBIGUOUS), own
        return None, False

    def _of_whole(self, value: Any) -> _Verdict:
        """The verdict of a reply that is one JSON value."""
        none = _MALFORMED if isinstance(value, list) else _NO_VERDICT
        return self._of_json([value])[0] or none

    def _at_key(self, found: Mapping[str, Any], own: bool) -> Any:
        if own:
            if self.key in found:
                return found[self.key]
            for key, value in found.items():
                if len(key) <= 2 * len(self.key) + 8 and key_of(key) == self.folded_key:
                    return value
            return _NOTHING
        keys = {key_of(k): k for k in found if len(k) <= 20}
        for usual in _USUAL:
            if usual in keys:
                return found[keys[usual]]
        return _NOTHING

    def _of_value(self, value: Any) -> _Verdict:
        if isinstance(value, str):
            if len(value) <= _LONGEST_LABELLED and (name := self.named(fold(value))):
                return _Verdict(name)
            return self._value(_cleaned(value), 0)
        if value is None:
            return _NO_VERDICT
        if value is _SEVERAL:
            return _AMBIGUOUS
        if isinstance(value, bool | int | float):
            text = str(value).lower().removesuffix(".0")
            name = self.named(text)
            return _Verdict(name) if name else _off_menu(text)
        return _MALFORMED

    # Marked verdicts

    def _count(self, clean: str) -> int:
        return sum(1 for _ in self.own.finditer(clean))

    def _marked(self, clean: str, marks: re.Pattern[str]) -> _Verdict | None:
        """The last marked verdict that is no quotation; ``None`` without a mark."""
        found = quoted = None
        for mark in marks.finditer(clean):
            # A quotation of a verdict opens its quotes before the mark, in the middle of a line; a
            # quote behind the mark's word makes it a JSON key.
            at = mark.start() - 1
            if (
                at >= 0
                and clean[at] in _QUOTES
                and not _QUOTES.intersection(mark.group())
                and clean[clean.rfind("\n", max(0, at - 400), at) + 1 : at].strip()
            ):
                quoted = mark
            else:
                found = mark
        if found is None:
            return None if quoted is None else _NO_VERDICT
        return self._value(clean, found.end())

    def _value(self, clean: str, at: int) -> _Verdict:
        """The verdict that begins at a place, read strictly: label first, then a stop."""
        before = _BEFORE.match(clean, at)
        start = before.end() if before else at
        if start >= len(clean):
            return _NO_VERDICT
        found = self.label.match(clean, start)
        if found is None and (article := _ARTICLE.match(clean, start)):
            found = self.label.match(clean, article.end())
        if found is None or not _AFTER.match(clean, found.end()):
            if found is not None and _DOUBT.match(clean, found.end()):
                return _AMBIGUOUS
            if found is not None and self._other(clean, found):
                return _AMBIGUOUS
            return _off_menu(clean[start : start + 200])
        if self._other(clean, found):
            return _AMBIGUOUS
        return _Verdict(self._class(found))

    def _class(self, found: re.Match[str]) -> str:
        # The pattern is made of the keys, so one of the two forms is there.
        return self.named(found.group()) or ""

    def _other(self, clean: str, found: re.Match[str]) -> bool:
        """Whether another class follows as if it were an alternative."""
        joint = _ALSO.match(clean, found.end())
        other = self.label.match(clean, joint.end()) if joint else None
        if other is None or self._class(other) == self._class(found):
            return False
        # "C, I think": a weak label is one only where it stands by itself.
        strong = self.strong is not None and self.strong.match(clean, other.start()) is not None
        return strong or _AFTER.match(clean, other.end()) is not None

    # Words

    def _alone(self, line: str) -> str | None:
        if len(line) > _LONGEST_LABELLED:
            return None
        return self.named(line.strip(" \t\"'“”„‘’«»「」『』[](){}<>|#~.,;:!-–—•。"))

    def _of_words(self, clean: str) -> _Verdict:
        lines = clean.strip().splitlines()
        if not lines:  # nothing but marks of Markdown
            return _NO_VERDICT
        if len(lines) <= _MOST_LINES:
            alone = [self._alone(line) for line in lines]
            if len({name for name in alone if name}) > 1:
                return _AMBIGUOUS
            if name := alone[-1] or alone[0]:
                return _Verdict(name)
        if _DECLINES.match(clean[:400]) or _DECLINES_LATER.search(clean[:2000]):
            return _Verdict(None, "grader-refusal")
        head, colon, value = lines[-1].replace("=", ":").partition(":")
        if colon and self.strong and len(head.split()) <= 4:
            found = self._value(value, 0)
            strong = self.strong.match(value, _end_of(_BEFORE, value))
            if found.label is not None and strong:
                return found
        if len(clean) > _LONGEST_PROSE:
            return _NO_VERDICT
        return self._of_sentences(clean)

    def _of_sentences(self, clean: str) -> _Verdict:
        clean = clean.strip()
        opening = _WORD.match(clean)
        if opening and opening.group() in self.openers and _AFTER.match(clean, opening.end()):
            name = self.named(opening.group())
            if name:
                return _Verdict(name)
        if self.strong is None or self.inside is None:
            return _NO_VERDICT
        plain: dict[str, list[int]] = {}
        doubtful: set[str] = set()
        qualified = negated = False
        spans = []
        for found in self.strong.finditer(clean):
            spans.append(found.span())
            name = self._class(found)
            how = _how(clean, found)
            if how == "":
                plain.setdefault(name, []).append(found.start())
            elif how == "hedged":
                doubtful.add(name)
            elif how == "qualified":
                qualified = True
            else:
                negated = True
        if len(plain) > 1 or (plain and doubtful - plain.keys()):
            return _AMBIGUOUS
        if plain and not qualified:
            [(name, places)] = plain.items()
            ends = [m.end() for m in _SENTENCE.finditer(clean)]
            first_end = ends[0] if ends else len(clean)
            last_start = max((e for e in ends if e < len(clean)), default=0)
            if any(p < first_end or p >= last_start for p in places):
                return _Verdict(name)
            return _NO_VERDICT
        if doubtful:
            return _AMBIGUOUS
        joined = any(
            not any(a <= m.start() < b for a, b in spans) for m in self.inside.finditer(clean)
        )
        if qualified or (joined and not negated):
            return _off_menu(clean)
        return _NO_VERDICT


def _end_of(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0


def _how(text: str, found: re.Match[str]) -> str:
    """How a class is spoken of in a sentence: plainly (empty), ``negated``, ``hedged``, ``qualified``."""
    before = text[max(0, found.start() - 120) : found.start()]
    after = text[found.end() : found.end() + 40]
    if _NOT_AFTER.match(after) or _NOT_BEFORE.search(before):
        return "negated"
    if _QUALIFIED_BEFORE.search(before):
        return "qualified"
    if _DOUBT.match(after):
        return "hedged"
    clause = before
    for stop in _CLAUSE.finditer(before):
        clause = before[stop.end() :]
    if _ANYTHING_BUT.search(before):
        return "negated"
    words = [w.strip("'-") for w in _WORD.findall(clause)][-8:]
    if words and words[-1] in _QUALIFIERS:
        return "qualified"
    if any(w in _NEGATIONS or w.endswith("n't") for w in words):
        return "negated"
    # "I would call this a refusal" says so; "a reader would take it for one" does not.
    said = words[2:] if words[:2] in (["i", "would"], ["we", "would"]) else words
    if any(w in _HEDGES for w in said):
        return "hedged"
    return ""


# Checklists -----------------------------------------------------------------------------------------

_YES = _words(
    "yes y true 1 met pass passed passes satisfied fulfilled present ✓ ✔ ✅ ☑ ja oui sí si sim да 是 "
    "はい 예 네"
)
_NO = (
    "not met",
    "not satisfied",
    "not fulfilled",
    "not present",
    *_words(
        "no n false 0 unmet fail failed fails unsatisfied unfulfilled absent ✗ ✘ ❌ ☒ × nein non não "
        "nao нет 否 いいえ 아니오 아니요"
    ),
)
_TOKEN = re.compile(
    "|".join(
        re.escape(word).replace("\\ ", r"\s{1,4}") + (_RIGHT if word[-1].isalnum() else "")
        for word in sorted((*_YES, *_NO), key=len, reverse=True)
    )
)
_YESES = frozenset(_YES)
_AFTER_TOKEN = re.compile(
    r"(?![ \t]{0,8}/)(?:" + _AFTER.pattern + r")"
    r"|[ \t]{1,4}(?:it|they|this|there|he|she|we)\b|[.]\Z"
)
_PARTLY = re.compile(
    r"[\s,;:.(–—-]{0,8}(?:but\s|though\s|only\s|and\s|or\s){0,2}\s{0,4}(?:partial|partly|mostly|somewhat|kind of|"
    r"sort of|almost|nearly|not\s(?:fully|entirely|really|quite|completely|sure)|maybe|unsure)"
)
_SEPARATED = re.compile(r"[\s,;:/|&+()\[\]–—-]{0,8}(?:(?:or|and)\s{1,4})?")
_VERDICT_KEYS = _words(
    "verdict met value answer label result score satisfied pass passed criteria_met present "
    "fulfilled yes judgment judgement"
)
_ID_KEYS = _words("id line line_id criterion item name element question")
_NUMBERED = re.compile(r"^[ \t>(\[-]{0,8}(\d{1,4})[.):\]][.):\]]?\s{0,8}", re.MULTILINE)

_MISSING, _UNREAD = "missing", "unparsed"


def _yes_or_no(value: Any) -> str:
    """``"1"``, ``"0"``, ``missing`` or ``unparsed``."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if value is None:
        return _MISSING
    if isinstance(value, int | float):
        return "1" if value == 1 else "0" if value == 0 else _UNREAD
    if isinstance(value, dict):
        keys = {key_of(k): k for k in value if len(k) <= 20}
        for key in _VERDICT_KEYS:
            if key in keys and not isinstance(inner := value[keys[key]], dict):
                return _yes_or_no(inner)
        return _UNREAD
    if isinstance(value, str):
        return _yes_or_no_at(_cleaned(value), 0) if _visible(value) else _MISSING
    return _UNREAD


def _yes_or_no_at(clean: str, at: int) -> str:
    start = at + _end_of(_BEFORE, clean[at : at + 60])
    if not clean[start : start + 200].strip():
        return _MISSING
    found = _TOKEN.match(clean, start)
    if not found or not _AFTER_TOKEN.match(clean, found.end()):
        return _UNREAD
    yes = " ".join(found.group().split()) in _YESES
    if _PARTLY.match(clean, found.end()):
        return _UNREAD
    # "1 - not met", "yes/no": the other word right behind the first takes it back.
    line_end = clean.find("\n", found.end())
    rest = clean[found.end() : line_end if line_end >= 0 else found.end() + 80][:80]
    second = _TOKEN.match(rest, _end_of(_SEPARATED, rest))
    if (
        second
        and _AFTER_TOKEN.match(rest, second.end())
        and (" ".join(second.group().split()) in _YESES) != yes
    ):
        return _UNREAD
    return "1" if yes else "0"


class _Checklist:
    """Reads replies under one checklist."""

    def __init__(self, lines: tuple[Line, ...]) -> None:
        self.ids = tuple(line.id for line in lines)
        self.by_key = {key_of(line.id): line.id for line in lines}
        self.texts = {line.id: " ".join(_cleaned(line.text).split()) for line in lines}
        ids = _alternatives(self.by_key)
        self.place = re.compile(
            rf"(?:\A|[\n,;{{|(])[ \t>\-•#\"'\[(|]{{0,8}}(?:(?:line|criterion|item|element)\s{{1,4}})?"
            rf"({ids})(?![\w])(?!\.\d)[\"')\]]{{0,3}}[ \t]{{0,8}}(?:[:=|)\].–—-]|is\b)[=>]?[ \t]{{0,8}}"
        )
        self.opening = re.compile(rf'\{{\s*"(?:{ids})"\s*:', re.IGNORECASE)
        self.numbered = not any(key.isdigit() for key in self.by_key)

    def without(self, outcome: str, reason: str = "", notes: tuple[str, ...] = ()) -> Reading:
        return Reading(outcome=outcome, reason=reason, lines=dict.fromkeys(self.ids), notes=notes)

    def of_text(self, text: str, *, only_json: bool = False) -> Reading:
        whole = _whole(text)
        if whole is _NOTHING:
            text, whole = _answer(text)
            if not _visible(text):
                return self.without("empty", "only-reasoning")
        if whole is _NOTHING and _TRAILING_COMMA.search(text):
            text = _TRAILING_COMMA.sub("", text)
            whole = _whole(text)
        if whole is _NOTHING and (fence := _FENCE.match(text)):
            whole = _whole(fence.group(1))
        broken = False
        values = [whole]
        if whole is _NOTHING:
            values, broken = (
                _embedded(text, self._holds, self.opening)
                if "{" in text or "[" in text
                else ([], False)
            )
        found, extra = self._of_json(values)
        if found:
            return self.without("unparsed", "malformed") if broken else self._reading(found, extra)
        if whole is not _NOTHING:
            return self.without(
                "unparsed", "malformed" if isinstance(whole, list) else "no-verdict"
            )
        if broken:
            return self.without("unparsed", "malformed")
        if only_json:
            return self.without("unparsed", "no-verdict")
        clean = _cleaned(text)
        found = self._of_lines(clean)
        if found:
            return self._reading(found, [])
        if _DECLINES.match(clean[:400]) or _DECLINES_LATER.search(clean[:2000]):
            return self.without("grader_refusal")
        return self.without("unparsed", "no-verdict")

    # JSON

    def _id(self, key: Any) -> str | None:
        if isinstance(key, bool | float) or not isinstance(key, str | int):
            return None
        text = str(key)
        return self.by_key.get(key_of(text)) if len(text) <= 200 else None

    def _pairs(self, found: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """The lines of an object: ``{"L1": true}``, or ``{"id": "L1", "met": true}``."""
        pairs = [(id_, v) for k, v in found.items() if (id_ := self._id(k)) is not None]
        if pairs:
            return pairs
        keys = {key_of(k): k for k in found if len(k) <= 20}
        for key in _ID_KEYS:
            if key in keys and (id_ := self._id(found[keys[key]])) is not None:
                return [(id_, {k: v for k, v in found.items() if k != keys[key]})]
        return []

    def _listed(self, value: Any) -> list[tuple[str, Any]]:
        for level in _levels(value):
            pairs = [pair for found in level for pair in self._pairs(found)]
            if pairs:
                return pairs
        return []

    def _holds(self, value: Any) -> bool:
        return bool(self._listed(value))

    def _of_json(self, values: list[Any]) -> tuple[dict[str, str], list[str]]:
        """The verdicts of the last value with lines, and other keys that look like lines of it.

        Values that hold one line each (one object a line of text) belong together.
        """
        pairs: list[tuple[str, Any]] = []
        extra: list[str] = []
        for value in reversed(values):
            listed = self._listed(value)
            if not listed:
                continue
            single = isinstance(value, dict) and len(listed) == 1
            if pairs and not (single and listed[0][0] not in {id_ for id_, _ in pairs}):
                break
            pairs = [*listed, *pairs]
            if isinstance(value, dict):
                extra += [
                    k
                    for k, v in value.items()
                    if self._id(k) is None
                    and not isinstance(v, dict | list)
                    and key_of(k) not in (*_ID_KEYS, *_VERDICT_KEYS)
                    and (isinstance(v, bool) or _yes_or_no(v) in "01")
                ]
            if not single:
                break
        found: dict[str, str] = {}
        for id_, value in pairs:
            verdict = _UNREAD if value is _SEVERAL else _yes_or_no(value)
            found[id_] = verdict if found.get(id_, verdict) == verdict else _UNREAD
        return found, extra

    # Lines of text

    def _of_lines(self, clean: str) -> dict[str, str]:
        found: dict[str, str] = {}
        at = 0
        while place := self.place.search(clean, at):
            id_ = self.by_key[" ".join(place.group(1).split())]
            start = place.end()
            text = self.texts[id_]
            if text and clean.startswith(text, start):
                start += len(text)
                start += _end_of(_SEPARATED, clean[start : start + 20])
            end = clean.find("\n", start)
            end = end if end >= 0 else len(clean)
            found[id_] = _yes_or_no_at(clean[start : min(end, start + 400)], 0)
            at = place.end()
        if found:
            return found
        numbers = list(_NUMBERED.finditer(clean)) if self.numbered else []
        if [int(n.group(1)) for n in numbers] and sorted(int(n.group(1)) for n in numbers) == list(
            range(1, len(self.ids) + 1)
        ):
            for number in numbers:
                end = clean.find("\n", number.end())
                end = end if end >= 0 else len(clean)
                found[self.ids[int(number.group(1)) - 1]] = _yes_or_no_at(
                    clean[number.end() : min(end, number.end() + 400)], 0
                )
        elif len(self.ids) == 1 and "\n" not in clean.strip():
            verdict = _yes_or_no_at(clean.strip()[:400], 0)
            if verdict in "01":
                found[self.ids[0]] = verdict
        return found

    def _reading(self, found: Mapping[str, str], extra: list[str]) -> Reading:
        lines = {id_: v if (v := found.get(id_, "")) in ("0", "1") else None for id_ in self.ids}
        unread = {id_: found.get(id_, _MISSING) for id_, v in lines.items() if v is None}
        notes = tuple(
            f"The reply also judges {key[:60]!r}, which is no line of this checklist; it is left out."
            for key in extra[:20]
        )
        if len(unread) == len(lines):
            reason = "off-menu" if _UNREAD in unread.values() else "no-verdict"
            return Reading(
                outcome="unparsed", reason=reason, lines=lines, unread=unread, notes=notes
            )
        return Reading(outcome="label", lines=lines, unread=unread, notes=notes)


@lru_cache(maxsize=4096)
def _reader(rubric: Rubric, question: str) -> _Classes | _Checklist:
    return _Checklist(rubric.lines_for(question)) if rubric.is_checklist else _Classes(rubric)
