"""JailbreakBench artifacts: one attack on one model, each answer judged by one or more judges.

Tried on artifacts of the repository JailbreakBench/artifacts at commit 909e68c (Chao et al. 2024,
"JailbreakBench", arXiv 2404.01318, section 3). Read: ``jailbreaks[]``, each with ``index`` (the
response), ``behavior`` (its cluster: the same behavior is attacked again in other artifacts),
``category``, and one boolean a judge: ``jailbroken`` and every further ``jailbroken_*``; 1 is
jailbroken. Method, attack type, model and defense of ``parameters`` come before the ids of responses
where inputs differ in them.

What the format hides: a record without a response, for which no prompt was submitted, is stored as
not jailbroken by all judges. It is no response and gives no row. The file does not say which model
or prompt stands behind ``jailbroken``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voirdire.errors import InputError
from voirdire.options import MISSING, Options
from voirdire.readers._logs import Gathered, Trouble, as_text, first_object, mapping
from voirdire.readers._records import to_the_tear
from voirdire.readers.base import Claim, Reader
from voirdire.rows import Rows
from voirdire.source import Source
from voirdire.wording import Text, plural, printable, say

JUDGED = "jailbroken"
_SCOPE = ("method", "attack_type", "model", "defense")


def sniff(source: Source) -> Claim | None:
    """Sure where the document has the parameters of an attack and a list of jailbreaks."""
    if source.frame is not None:
        return None
    head = first_object(source)
    if "jailbreaks" not in head or not isinstance(head["jailbreaks"], list):
        return None
    parameters = mapping(head.get("parameters"))
    if {"method", "model"} & parameters.keys() or b'"' + JUDGED.encode() in source.head:
        return Claim(format="jailbreakbench")
    return None


def _judges(record: Mapping[str, Any]) -> list[str]:
    return [key for key in record if key == JUDGED or key.startswith(JUDGED + "_")]


def read(source: Source, options: Options) -> list[Rows]:
    """One row a judge and response, 1 where the judge says jailbroken.

    Raises :class:`InputError` where there is no list of jailbreaks or no response in it.
    """
    trouble = Trouble(source)
    artifact = to_the_tear(
        source, options, trouble, lists=(("jailbreaks",),), wanted=(("parameters",),)
    )
    records = artifact.get("jailbreaks")
    if not isinstance(records, list):
        raise InputError(
            f"{printable(source.name)}: there is no list of jailbreaks in it, as artifacts of "
            "JailbreakBench have."
        )
    parameters = mapping(artifact.get("parameters"))
    scope = {key: as_text(parameters.get(key)) for key in _SCOPE}
    log = Gathered(source, unit="record")
    unanswered = judged_anyway = 0
    for number, record in enumerate(records, start=1):
        at = f"record {number:,}"
        if not isinstance(record, dict):
            trouble.add(at, "it is no object")
            continue
        judges = _judges(record)
        if record.get("response") is None:
            unanswered += 1
            judged_anyway += any(record[judge] is not None for judge in judges)
            continue
        # An index that is left out is the position in the list, as artifacts number their records.
        index = record.get("index", number - 1)
        if as_text(index) is None or isinstance(index, dict | list):
            trouble.add(at, "its index is no number")
            continue
        if not judges:
            trouble.add(at, f"it has no field {JUDGED}")
        behavior = record.get("behavior")
        for judge in judges:
            verdict = record[judge]
            readable = isinstance(verdict, bool | int | float | str)
            log.add(
                number,
                response=index,
                grader=judge,
                label=verdict if readable else None,
                # Null may be a judge that was not run as well as one that was not understood.
                outcome=MISSING if verdict is None else "" if readable else "unparsed",
                reason="" if readable or verdict is None else "no true or false",
                cluster=behavior if isinstance(behavior, str) else index,
                behavior=behavior if isinstance(behavior, str) else None,
                category=record.get("category"),
                method=scope["method"],
                target=scope["model"],
            )
    notices = trouble.notices()
    if unanswered:
        notices = (*notices, _unanswered(unanswered, len(records), judged_anyway))
    if not len(log):
        raise InputError(
            f"{printable(source.name)}: none of its {plural(len(records), 'record')} has a response "
            f"that was judged; there must be a field response and a field {JUDGED}."
        )
    return log.rows(
        layout="jailbreakbench",
        notices=notices,
        scope={key: value for key, value in scope.items() if value},
        facts={
            judge: {"model": judge.removeprefix(JUDGED + "_")}
            for judge in dict.fromkeys(log.columns["grader"])
            if judge is not None and judge != JUDGED
        },
    )


def _unanswered(n: int, of: int, judged_anyway: int) -> Text:
    return say(
        "{n} of {of} {have} no response, so there was nothing to judge: {they} not graded{stored}.",
        n=n,
        of=plural(of, "record"),
        have="has" if n == 1 else "have",
        they="it is" if n == 1 else "they are",
        stored=", although the artifact stores a verdict for " + ("it" if n == 1 else "them")
        if judged_anyway
        else "",
    )


READER = Reader(
    name="jailbreakbench",
    title="JailbreakBench artifacts",
    suffixes=(".json",),
    sniff=sniff,
    read=read,
)
