"""FastChat (MT-bench) judgments: scores of single answers, and verdicts on pairs in both orders.

Tried on files of FastChat's ``llm_judge`` (commit 0e6d3e4; one object a line; the format has no
version). The grader is the judge's model; the name of its prompt stands as the phrasing and in the tag
``prompt``, as one judge uses one prompt for each kind of question and turn.

* Single answers: a response is ``QUESTION/MODEL/TURN``, the label its score as it is spelled. A score
  of −1 means that no rating was found in the reply: ``unparsed``. Its prompts ask for 1 to 10; other
  numbers are kept and named.
* Pairs: a response is ``QUESTION/MODEL_1/MODEL_2/TURN``, with one vote for each order in which the pair
  was shown. The tag ``order`` is ``AB`` where model_1 stood first and ``BA`` where model_2 did; the
  label says which model won (``model_1``, ``model_2`` or ``tie``), as the file has it. The winner
  ``error`` is ``unparsed``.
* Pairs made of two single scores (``m1_score``, ``m2_score``): one label, as no pair was shown.

A question is a cluster. A record that is there again with the same time stamp was written twice and
counts once; with another one it is a repeat, and a further vote.

What the format hides: the category of the question, the temperature, and how often a call was made
again; a call that failed to the last is a reply ``$ERROR$`` and is read as ``error``. FastChat counts a
pair with different winners in the two orders as a tie; here it has no label by the majority rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from voirdire.options import Options
from voirdire.readers._logs import Gathered, Trouble, as_text, head_objects, lines, sequence
from voirdire.readers.base import Claim, Reader
from voirdire.rows import Rows
from voirdire.source import Source
from voirdire.wording import Name, Text, listed, plural, say

FAILED_CALL = "$ERROR$"  # what FastChat keeps as the reply where every attempt failed
LOWEST, HIGHEST = 1, 10  # of the scores that FastChat's prompts ask for
NO_RATING, NO_WINNER = "-1", "error"
ORDERS = ("AB", "BA")


def sniff(source: Source) -> Claim | None:
    """Sure where one of the first lines is a judgment of FastChat."""
    if source.frame is not None:
        return None
    if any(_is_judgment(record) for record in head_objects(source)):
        return Claim(format="FastChat judgments")
    return None


def _is_judgment(record: Mapping[str, Any]) -> bool:
    judge = record.get("judge")
    if "question_id" not in record or not (isinstance(judge, list) and len(judge) == 2):
        return False
    if not all(isinstance(part, str) for part in judge):
        return False
    pair = {"model_1", "model_2", "g1_winner", "g2_winner"} <= record.keys()
    # The score stands behind the prompt, which may be longer than what is looked at.
    return pair or ("model" in record and bool({"score", "user_prompt"} & record.keys()))


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of the judge, as it becomes a row."""

    line: int
    response: str
    question: str
    grader: str
    prompt: str | None
    label: Any
    outcome: str
    reason: str
    order: str
    tags: dict[str, Any]


def read(source: Source, options: Options) -> list[Rows]:
    """One row a call of the judge: a score, or the verdict on a pair in one order.

    Raises :class:`InputError` where no judgment could be read.
    """
    trouble = Trouble(source)
    twice: set[Any] = set()
    again = 0
    calls: list[_Call] = []
    scored = 0
    for number, record in lines(source, options, trouble):
        problem = _problem(record)
        if problem:
            trouble.add(f"line {number:,}", problem)
            continue
        made = list(_calls(number, record))
        written = (made[0].grader, made[0].prompt, made[0].response, as_text(record.get("tstamp")))
        if written[-1] is not None:
            key = (*written, *(as_text(c.label) for c in made))
            if key in twice:
                again += 1
                continue
            twice.add(key)
        scored += "m1_score" in record
        calls += made
    log = Gathered(source, unit="line")
    facts = _add_all(log, calls)
    return log.rows(
        layout="fastchat",
        notices=(*trouble.notices(), *_notices(calls, again, scored)),
        facts=facts,
    )


def _problem(record: Any) -> str:
    """Why a record is no judgment; empty where it is one."""
    if not isinstance(record, dict):
        return "it is no object"
    if as_text(record.get("question_id")) is None:
        return "it has no question_id"
    if _judge(record)[0] is None:
        return "it names no judge"
    if _is_pair(record):
        named = [as_text(record.get(key)) for key in ("model_1", "model_2")]
        return "" if all(named) else "it does not name both models"
    if "score" not in record:
        return "it has neither a score nor winners"
    return "" if as_text(record.get("model")) is not None else "it names no model"


def _judge(record: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The judge's model and the name of its prompt."""
    judge = record.get("judge")
    named = [as_text(part) for part in sequence(judge)] or [as_text(judge)]
    return named[0], named[1] if len(named) > 1 else None


def _is_pair(record: Mapping[str, Any]) -> bool:
    return "g1_winner" in record or "g2_winner" in record


def _calls(number: int, record: Mapping[str, Any]) -> Iterator[_Call]:
    grader, prompt = _judge(record)
    question, turn = as_text(record.get("question_id")), as_text(record.get("turn"))
    models = ("model_1", "model_2") if _is_pair(record) else ("model",)
    about = {key: as_text(record.get(key)) for key in (*models, "turn")}
    parts = [question, *(about[key] for key in models), turn]

    def call(label: Any, replies: tuple[Any, ...], order: str = "") -> _Call:
        label, outcome, reason = _verdict(label, replies, NO_WINNER if order else NO_RATING)
        return _Call(
            line=number,
            response="/".join(part for part in parts if part is not None),
            question=question or "",
            grader=grader or "",
            prompt=prompt,
            label=label,
            outcome=outcome,
            reason=reason,
            order=order,
            tags=about,
        )

    if not _is_pair(record):
        yield call(record.get("score"), (record.get("judgment"),))
    elif "m1_score" in record or "m2_score" in record:
        # FastChat compares the scores even where one of them is the mark of a reply without rating.
        scores = [as_text(record.get(f"m{i}_score")) for i in (1, 2)]
        winner = NO_RATING if NO_RATING in scores else record.get("g1_winner")
        yield call(winner, tuple(record.get(f"g{i}_judgment") for i in (1, 2)))
    else:
        for i, order in enumerate(ORDERS, start=1):
            yield call(record.get(f"g{i}_winner"), (record.get(f"g{i}_judgment"),), order)


def _verdict(label: Any, replies: tuple[Any, ...], unread: str) -> tuple[Any, str, str]:
    """The label of a call, or the outcome and the reason why there is none."""
    text = None if isinstance(label, dict | list) else as_text(label)
    if text is not None and text != unread:
        return label, "label", ""
    if FAILED_CALL in replies:
        return None, "error", "every attempt to call the judge failed"
    if any(isinstance(reply, str) and not reply.strip() for reply in replies):
        return None, "empty", "the judge’s reply is empty"
    return None, "unparsed", "no verdict found in the reply"


def _add_all(log: Gathered, calls: list[_Call]) -> dict[str, dict[str, str]]:
    """Every call as a row, numbered where a judge was asked more than once; facts on the judges."""
    times = Counter((c.grader, c.prompt, c.response) for c in calls)
    repeated = max(times.values(), default=0) > 1
    seen: Counter[Any] = Counter()
    prompts: dict[str, dict[str, None]] = {}
    for one in calls:
        key = (one.grader, one.prompt, one.response)
        seen[key] += 1
        named = prompts.setdefault(one.grader, {})
        if one.prompt is not None:
            named[one.prompt] = None
        log.add(
            one.line,
            response=one.response,
            grader=one.grader,
            label=one.label,
            outcome=one.outcome,
            reason=one.reason,
            cluster=one.question,
            vote=seen[key] if repeated else None,
            phrasing=one.prompt,
            prompt=one.prompt,
            order=one.order or None,
            **one.tags,
        )
    return {
        grader: {"model": grader, **({"prompt": ", ".join(sorted(named))} if named else {})}
        for grader, named in prompts.items()
    }


def _is_outside(label: Any) -> bool:
    try:
        return label is not None and not LOWEST <= float(label) <= HIGHEST
    except (TypeError, ValueError, OverflowError):
        return False


def _notices(calls: list[_Call], again: int, scored: int) -> list[Text]:
    notices: list[Text] = []
    outside = [c for c in calls if not c.order and _is_outside(c.label)]
    if outside:
        notices.append(
            say(
                "{n} outside {low} to {high}, which FastChat’s prompts ask for ({scores}); {they} kept. "
                "Count {them} as unread with --failed {first}.",
                n=plural(len(outside), "score lies", "scores lie"),
                low=f"{LOWEST}",
                high=f"{HIGHEST}",
                scores=listed(sorted({str(as_text(c.label)) for c in outside}), most=6),
                they="it is" if len(outside) == 1 else "they are",
                them="it" if len(outside) == 1 else "them",
                first=Name(f"{as_text(outside[0].label)}=unparsed"),
            )
        )
    if again:
        notices.append(
            say(
                "{n} written twice, with the same time stamp and verdict, and {count} once.",
                n=plural(again, "record is", "records are"),
                count="counts" if again == 1 else "count",
            )
        )
    if scored:
        notices.append(
            say(
                "{n} made of two single scores: no pair was shown, so {they} one label and no order.",
                n=plural(scored, "comparison is", "comparisons are"),
                they="it has" if scored == 1 else "each has",
            )
        )
    pairs = {(c.tags["model_1"], c.tags["model_2"]) for c in calls if "model_1" in c.tags}
    turned = sorted((one, other) for one, other in pairs if one < other and (other, one) in pairs)
    if turned:
        notices.append(
            say(
                "{n} stands in the file both ways round ({one} and {other} as model_1): these are two "
                "responses here, and model_1 means another model in each.",
                n=plural(len(turned), "pair of models", "pairs of models"),
                one=Name(turned[0][0]),
                other=Name(turned[0][1]),
            )
        )
    return notices


READER = Reader(
    name="fastchat",
    title="FastChat (MT-bench) judgments",
    suffixes=(".jsonl",),
    sniff=sniff,
    read=read,
)
