"""The calls of a plan that are left to ask, as the runner takes them: claimed from a store, kept in it."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from voirdire.grading.base import Attempt, Failure, Reading, Reply, Request
from voirdire.grading.plan import Plan, Planned, Study
from voirdire.grading.runner import Change, Policy
from voirdire.grading.store import DONE, Store
from voirdire.grading.store import Call as Row

AHEAD = 16  # calls that are claimed at once: one transaction for all of them


def policy(study: Study) -> Policy:
    """How the calls of a study are sent, as the study says it."""
    return Policy(
        concurrency=study.concurrency,
        timeout=study.limits.timeout,
        retries=study.limits.retries,
        requests=study.limits.calls,
        budget=study.budget,
        seed=study.seed,
    )


class StoreQueue:
    """The queue between a plan and a store that a run has begun in.

    ``read`` makes a reading of a reply, which is stored beside it under the name ``reader``. ``left`` is
    how many calls were left to ask when the queue was made. Calls that another process holds or has
    finished meanwhile are passed over.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        *,
        read: Callable[[Planned, Reply], Reading],
        reader: str = "",
    ) -> None:
        self.plan, self.store = plan, store
        self._read, self._reader = read, reader
        self._order = store.left(plan)
        self.left = len(self._order)
        self._lanes: dict[frozenset[str], Iterator[int]] = {}
        self._claimed: dict[frozenset[str], deque[int]] = {}
        self._noted: dict[str, int] = {}

    def _positions(self, graders: frozenset[str]) -> Iterator[int]:
        mask = np.zeros(len(self._order), dtype=np.bool_)
        for block in self.plan.blocks:
            if block.grader.name in graders:
                end = block.start + len(self.plan.items) * block.per_item
                mask |= (self._order >= block.start) & (self._order < end)
        # In the order in which the plan mixed them; numbers are made as they are needed.
        return (int(at) for at in self._order[mask])

    def claim(self, n: int, graders: Collection[str]) -> list[Planned]:
        lane = frozenset(graders)
        if lane not in self._lanes:
            self._lanes[lane] = self._positions(lane)
            self._claimed[lane] = deque()
        claimed = self._claimed[lane]
        while len(claimed) < n:
            some = list(itertools.islice(self._lanes[lane], max(n, AHEAD)))
            if not some:
                break
            keys = [self.plan.keys[at].tobytes() for at in some]
            mine = set(self.store.claim(keys))
            claimed.extend(at for at, key in zip(some, keys, strict=True) if key in mine)
        return [self.plan.at(claimed.popleft()) for _ in range(min(n, len(claimed)))]

    def request(self, call: Planned) -> Request:
        return self.plan.request(call)

    def finish(
        self,
        call: Planned,
        reply: Reply,
        attempts: Sequence[Attempt],
        *,
        cost: float | None,
        changes: Sequence[Change],
    ) -> str:
        reading = self._read(call, reply)
        row = self._row(call, DONE, attempts, cost, reply=reply)
        self.store.record(row, reading, reader=self._reader)
        self._note(call, changes)
        return reading.outcome

    def fail(
        self,
        call: Planned,
        failure: Failure,
        attempts: Sequence[Attempt],
        *,
        cost: float | None,
        changes: Sequence[Change],
    ) -> None:
        row = self._row(
            call, str(failure.kind), attempts, cost, message=str(failure), raw=failure.raw
        )
        self.store.record(row)
        self._note(call, changes)

    def _row(
        self,
        call: Planned,
        status: str,
        attempts: Sequence[Attempt],
        cost: float | None,
        *,
        reply: Reply | None = None,
        message: str = "",
        raw: str = "",
    ) -> Row:
        item = self.plan.place(call.position)[0]
        return Row(
            key=call.key,
            item=call.item.id,
            response=self.plan.hashes[item].tobytes(),
            grader=call.grader.name,
            phrasing=call.phrasing,
            vote=call.vote,
            status=status,
            reply=reply,
            message=message,
            attempts=tuple(attempts),
            latency=attempts[-1].seconds if attempts else None,
            cost=cost,
            started=attempts[0].at if attempts else "",
            raw=raw,
        )

    def _note(self, call: Planned, changes: Sequence[Change]) -> None:
        name = call.grader.name
        if len(changes) > self._noted.get(name, 0):
            self._noted[name] = len(changes)
            self.store.note(
                name,
                {c.parameter: {"action": c.action, "to": c.to, "words": c.words} for c in changes},
            )

    def release(self, calls: Sequence[Planned]) -> None:
        self.store.release([call.key for call in calls])

    def keep(self, calls: Sequence[Planned]) -> None:
        self.store.renew()

    def close(self) -> None:
        """Give back what was claimed and not taken."""
        self.store.release()
        self._claimed.clear()
        self._lanes.clear()
