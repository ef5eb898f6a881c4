"""Batch files: the calls of a plan as JSON Lines, and their answers back into the store.

The format is that of OpenAI's batch endpoint, which vLLM's ``run-batch`` takes too. A line of input
has the call's key as ``custom_id`` (64 hexadecimal digits, the most that hosts take), and the body that
would be sent; a line of output has the body that came back, or an error. Whatever the order of the
answers, and whoever made them, a key says which call they belong to, and a key that the plan does not
have belongs to another plan. Writing a batch changes nothing in the store: what comes back is
recorded, and what does not is still left to ask.
"""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voirdire.errors import InputError, UsageError, unreadable
from voirdire.grading import wire
from voirdire.grading.base import Attempt, Failure, FailureKind, GraderSpec, Reading, Reply
from voirdire.grading.plan import DEFAULT_PROVIDER, Plan, Planned
from voirdire.grading.runner import Change, adapted
from voirdire.grading.secrets import environment_secrets, scrub
from voirdire.grading.store import DONE, Call, Store
from voirdire.wording import Text, listed, plural, printable, say

__all__ = ["CALLS", "BatchRead", "Written", "read_batch", "write_batch"]

CALLS = 50_000  # calls in one file: the most that OpenAI's endpoint takes
BYTES = 190_000_000  # of one file: it takes 200 MB
URL = "/v1/chat/completions"
AT_ONCE = 1000  # answers that are recorded in one transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The files that were written, with how many calls are in each."""

    files: tuple[tuple[Path, int], ...]
    notices: tuple[Text, ...] = ()

    @property
    def calls(self) -> int:
        return sum(n for _, n in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRead:
    """What was in files of answers.

    ``outcomes`` counts new replies by what was read in them, ``failures`` new calls without a reply by the
    kind of failure. ``known`` answers were in the store already (nothing was replaced), ``foreign``
    belong to no call of this plan, ``torn`` lines could not be read.
    """

    lines: int
    outcomes: Mapping[str, int]
    failures: Mapping[str, int]
    known: int
    foreign: int
    torn: int

    @property
    def replies(self) -> int:
        return sum(self.outcomes.values())


# --- writing ------------------------------------------------------------------------------------


def write_batch(
    plan: Plan, store: Store, path: Path, *, calls: int = CALLS, most_bytes: int = BYTES
) -> Written:
    """Write the calls that are left to ask, in the order of asking.

    One file has calls of one grader, at most ``calls`` of them and ``most_bytes`` bytes. Where one file
    is enough it is ``path``; else a number is put before the suffix. Each file is there only when it is
    whole. Parameters that an endpoint refused in an earlier run are left out or renamed as they were
    then. Raises :class:`UsageError` where no grader can be asked in batches, and :class:`InputError`
    where a file cannot be written.
    """
    able = [b.grader for b in plan.blocks if b.grader.provider == DEFAULT_PROVIDER]
    unable = [b.grader.name for b in plan.blocks if b.grader.provider != DEFAULT_PROVIDER]
    if not able:
        raise UsageError(
            "--write-batch is for endpoints that speak chat completions (provider openai-compatible), and "
            "no grader of this study is one. Run it without --write-batch."
        )
    left = store.left(plan)
    notes = store.notes()
    parts: list[tuple[Path, int]] = []
    notices: list[Text] = []
    drafts: list[Path] = []
    try:
        for block in plan.blocks:
            if block.grader not in able:
                continue
            end = block.start + len(plan.items) * block.per_item
            mine = left[(left >= block.start) & (left < end)]
            changes = _changes(block.grader, notes)
            if changes and len(mine):
                notices.extend((str(c),) for c in changes)
            lines = (_line(plan, int(at), changes) for at in mine)
            for number, part in enumerate(_parts(lines, calls, most_bytes)):
                draft = path.with_name(f".{path.name}.{block.start}-{number}.{os.getpid()}")
                drafts.append(draft)
                count = 0
                with draft.open("wb") as file:
                    for line in part:
                        file.write(line)
                        count += 1
                parts.append((draft, count))
        names = [path] if len(parts) == 1 else [_numbered(path, i) for i in range(len(parts))]
        for (draft, _), name in zip(parts, names, strict=True):
            draft.replace(name)
    except OSError as error:
        raise InputError(
            f"--write-batch {printable(str(path))}: {error.strerror or error}."
        ) from error
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)
    if unable:
        notices.append(
            say(
                "{names} cannot be asked in batches and {are} not in the file: the same command without "
                "--write-batch asks.",
                names=listed(unable),
                are="is" if len(unable) == 1 else "are",
            )
        )
    files = tuple((name, n) for name, (_, n) in zip(names, parts, strict=True))
    return Written(files=files, notices=tuple(notices))


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number + 1}{path.suffix}")


def _changes(spec: GraderSpec, notes: Mapping[str, Mapping[str, Any]]) -> tuple[Change, ...]:
    """What was noted in an earlier run of what this grader's endpoint does not take."""
    return tuple(
        Change(
            grader=spec.name, parameter=name, action=str(one["action"]), to=str(one.get("to", ""))
        )
        for name, one in notes.get(spec.name, {}).items()
        if isinstance(one, Mapping) and "action" in one
    )


def _line(plan: Plan, at: int, changes: Sequence[Change]) -> bytes:
    call = plan.at(at)
    request = wire.encodable(adapted(plan.request(call), changes))
    line = {
        "custom_id": call.key.hex(),
        "method": "POST",
        "url": URL,
        "body": wire.request_body(request),
    }
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _parts(lines: Iterator[bytes], calls: int, most_bytes: int) -> Iterator[Iterator[bytes]]:
    """The lines in parts of bounded size; each part is used up before the next is asked for."""
    waiting = next(lines, None)

    def part() -> Iterator[bytes]:
        nonlocal waiting
        count = size = 0
        while waiting is not None:
            size += len(waiting)
            if count and (count == calls or size > most_bytes):
                return
            yield waiting
            count += 1
            waiting = next(lines, None)

    while waiting is not None:
        yield part()


# --- reading ------------------------------------------------------------------------------------


def read_batch(
    plan: Plan,
    store: Store,
    paths: Sequence[Path],
    *,
    read: Callable[[Planned, Reply], Reading],
    reader: str = "",
) -> BatchRead:
    """Record the answers in files of output (and of errors) of a batch; a run has begun in the store.

    A reply that the store has already is never replaced. An answer without a reply is a failure of its
    kind, and asked again by a later run unless the provider blocked or refused that one call. Raises
    :class:`InputError` for a file that cannot be read, or in which no line belongs to the plan.
    """
    places = _Places(plan)
    outcomes: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    lines = known = foreign = torn = 0
    answered = {
        b.grader.name
        for b, e in zip(plan.blocks, store.outlook(plan).graders, strict=True)
        if e.done
    }
    secrets = environment_secrets()
    waiting: list[tuple[Call, Reading | None]] = []

    def record() -> None:
        nonlocal known
        new = store.record_each(waiting, reader=reader)
        known += len(new) - sum(new)
        for call, reading in itertools.compress(waiting, new):
            if reading is not None:
                outcomes[reading.outcome] += 1
            else:
                failures[str(call.status)] += 1
        waiting.clear()

    for path in paths:
        for answer in _answers(path):
            lines += 1
            if answer is None:
                torn += 1
                continue
            at = places.find(answer.get("custom_id"))
            if at is None:
                foreign += 1
                continue
            planned = plan.at(at)
            call, reading = _call(
                plan,
                store,
                planned,
                answer,
                read,
                secrets,
                answered=planned.grader.name in answered,
            )
            if call.status == DONE:
                answered.add(planned.grader.name)

            waiting.append((call, reading))
            if len(waiting) == AT_ONCE:
                record()
    record()
    if lines and lines == foreign + torn:
        names = ", ".join(printable(p.name) for p in paths)
        raise InputError(
            f"{names}: none of {plural(lines, 'line')} is an answer to a call of this study "
            f"({foreign:,} to other calls, {torn:,} that cannot be read). Read a batch with the command that "
            "wrote it: the same responses, rubric, graders, votes and phrasings."
        )
    return BatchRead(
        lines=lines,
        outcomes=dict(outcomes),
        failures=dict(failures),
        known=known,
        foreign=foreign,
        torn=torn,
    )


class _Places:
    """Where in a plan a key stands."""

    def __init__(self, plan: Plan) -> None:
        self._keys = plan.keys
        heads = np.ascontiguousarray(plan.keys[:, :8]).view("<u8").ravel()
        self._order = np.argsort(heads, kind="stable")
        self._heads = heads[self._order]

    def find(self, custom_id: Any) -> int | None:
        try:
            key = bytes.fromhex(custom_id)
        except (TypeError, ValueError):
            return None
        if len(key) != 32:
            return None
        at = int(np.searchsorted(self._heads, np.frombuffer(key[:8], dtype="<u8")[0]))
        while at < len(self._heads) and self._keys[self._order[at], :8].tobytes() == key[:8]:
            place = int(self._order[at])
            if self._keys[place].tobytes() == key:
                return place
            at += 1
        return None


def _answers(path: Path) -> Iterator[dict[str, Any] | None]:
    """The lines of a file of answers; ``None`` for one that is torn or no answer."""
    try:
        with path.open("rb") as file:
            for line in file:
                if not line.strip():
                    continue
                try:
                    value = json.loads(line.decode("utf-8-sig", "replace"))
                except (ValueError, RecursionError):
                    value = None
                yield value if isinstance(value, dict) else None
    except OSError as error:
        called = f"--read-batch {printable(str(path))}"
        raise InputError(unreadable(path, error, name=called)) from error


def _call(
    plan: Plan,
    store: Store,
    planned: Planned,
    answer: Mapping[str, Any],
    read: Callable[[Planned, Reply], Reading],
    secrets: Sequence[str],
    *,
    answered: bool,
) -> tuple[Call, Reading | None]:
    """A line of output as a finished call, with what was read in its reply."""
    spec = planned.grader
    reply: Reply | None = None
    failure: Failure | None = None
    try:
        reply = _reply(plan, planned, answer, secrets)
    except Failure as caught:
        failure = caught
        # As in a run: a refusal before any answer is more likely the study's fault than this call's.
        if caught.kind is FailureKind.OTHER and not answered:
            failure = Failure(FailureKind.FATAL, str(caught), status=caught.status, raw=caught.raw)
    ended = reply if reply is not None else failure
    assert ended is not None
    now = store.now()
    cost = None
    if None not in (ended.tokens_in, ended.tokens_out, spec.price_in, spec.price_out):
        assert ended.tokens_in is not None
        assert ended.tokens_out is not None
        assert spec.price_in is not None
        assert spec.price_out is not None
        cost = (ended.tokens_in * spec.price_in + ended.tokens_out * spec.price_out) / 1e6
    call = Call(
        key=planned.key,
        item=planned.item.id,
        response=plan.hashes[plan.place(planned.position)[0]].tobytes(),
        grader=spec.name,
        phrasing=planned.phrasing,
        vote=planned.vote,
        status=DONE if failure is None else str(failure.kind),
        reply=reply,
        message="" if failure is None else str(failure),
        attempts=(
            Attempt(
                at=now,
                kind="ok" if failure is None else str(failure.kind),
                status=200 if failure is None else failure.status,
                tokens_in=ended.tokens_in,
                tokens_out=ended.tokens_out,
                message="" if failure is None else str(failure),
            ),
        ),
        cost=cost,
        started=now,
        raw="" if failure is None else failure.raw,
    )
    return call, None if reply is None else read(planned, reply)


def _reply(
    plan: Plan, planned: Planned, answer: Mapping[str, Any], secrets: Sequence[str]
) -> Reply:
    response = answer.get("response")
    if not isinstance(response, Mapping):
        error = answer.get("error")
        words = error.get("message") if isinstance(error, Mapping) else error
        code = error.get("code") if isinstance(error, Mapping) else ""
        told = ": ".join(str(part) for part in (code, words) if part)
        raise Failure(
            FailureKind.SERVER,
            scrub(told, secrets) or "the batch has no answer to this call",
            raw=scrub(json.dumps(dict(answer), ensure_ascii=False), secrets),
        )
    body = response.get("body")
    raw = scrub(json.dumps(body, ensure_ascii=False), secrets, shapes=False)
    status = response.get("status_code", 200)
    if status == 200:
        return wire.reply_of(body, raw=raw, labels=plan.wording.labels(planned.item.question))
    if not isinstance(body, Mapping | str | list):
        body = {"error": answer.get("error")}
    raise wire.failure_of(
        status if isinstance(status, int) else 502,
        body,
        raw=raw,
        request=plan.request(planned),
        secrets=secrets,
    )
