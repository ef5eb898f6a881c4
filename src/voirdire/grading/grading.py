"""One grading run from end to end: a study is planned, what is missing is asked, and the labels are read.

The plan minus the store is what is asked; replies are read as they come and stand in the store beside
their readings; the labels of the store are what an audit takes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from voirdire.errors import InputError, UsageError
from voirdire.grading import parse, rubric
from voirdire.grading.base import FailureKind, Reading, Reply, Request
from voirdire.grading.messages import Wording
from voirdire.grading.plan import Plan, Planned, Study, among, plan
from voirdire.grading.providers.base import Client, provider
from voirdire.grading.queue import StoreQueue, policy
from voirdire.grading.runner import Progress, Report, run
from voirdire.grading.store import Call, Outlook, Reparsed, Store
from voirdire.wording import Text, plural, printable, say

if TYPE_CHECKING:
    from voirdire.labels import Labels

__all__ = ["Graded", "Work", "beside", "grade", "prepare"]

# No tokeniser packs more of ordinary text into one token, so a text this far beyond a window is surely too
# long for it; what is nearer to the window is the endpoint's to turn down.
MOST_CHARACTERS_A_TOKEN = 8


@dataclass(frozen=True, kw_only=True)
class Work:
    """A study with all that follows from it before anything is asked."""

    study: Study
    rubric: rubric.Rubric
    plan: Plan
    store: Path

    @property
    def reader(self) -> str:
        """The name under which readings are kept: the parser and the rubric that they were made with."""
        return f"{parse.VERSION} {self.rubric.hash[:16]}"

    def read(self, call: Planned, reply: Reply) -> Reading:
        """What a reply to a planned call says."""
        return parse.read(reply, self.rubric, call.item.question)

    def reread(self, call: Call) -> Reading:
        """What the reply of a stored call says to the present parser."""
        assert call.reply is not None
        return parse.read(call.reply, self.rubric, call.question)

    def outlook(self) -> Outlook:
        """What a run would do. Nothing is written, and no store is made."""
        with tempfile.TemporaryDirectory() as folder:
            path = self.store if self.store.exists() else Path(folder) / "store.sqlite"
            with Store.open(path) as store:
                return store.outlook(self.plan)

    def first(self) -> tuple[Planned, Request]:
        """The first call of a grader that is shown messages, with what goes to its provider."""
        call = self.plan.at(next((b.start for b in self.plan.blocks if b.talks), 0))
        return call, self.plan.request(call)


@dataclass(frozen=True, kw_only=True)
class Graded:
    """What a run did, and where it left the study.

    ``report`` is ``None`` where nothing was asked (everything was there, or replies were only read).
    ``outcomes`` counts all calls of the study that have ended, over all runs, and ``left`` those that a
    later run asks. ``held`` of them are being asked by another process. ``others`` are graders that
    the store knows from earlier runs and this study does not have.
    """

    work: Work
    before: Outlook
    report: Report | None
    outcomes: Mapping[str, int]
    left: int
    held: int = 0
    others: tuple[str, ...] = ()
    notices: tuple[Text, ...] = ()

    @property
    def exit_status(self) -> int:
        """0 where nothing is left to ask; 4, 6 and 130 as the contract says."""
        status = 0 if self.report is None else self.report.exit_status
        return status or (6 if self.left else 0)

    @cached_property
    def labels(self) -> Labels:
        """The labels of the store; raises :class:`InputError` where no call has ended."""
        from voirdire import auditing
        from voirdire.options import Options

        try:
            return auditing.read(str(self.work.store), options=Options.of())
        finally:
            Store.open(self.work.store).close()  # whoever reads only leaves an empty journal behind


def beside(study: Study, output: Path | None, source: Path) -> Path:
    """Where the store of a study is kept that does not say it.

    Beside the first output, else beside the file that was given (``source``), and named after the
    responses and the rubric, not after the output: labels that are written under another name must not
    be paid for again.
    """
    if study.store is not None:
        return study.store
    form = Path(study.rubric).stem
    return (output or source).parent / f"{study.responses.stem}.{form}.sqlite"


def prepare(study: Study, store: Path | None = None) -> Work:
    """Load the rubric, read the responses and plan all calls; nothing is asked or written.

    ``store`` is used where the study names none (default: :func:`beside` the responses). Raises
    :class:`UsageError` and :class:`InputError` for whatever of the study cannot be used.
    """
    for spec in study.graders:
        provider(spec.provider)
    form = rubric.load(study.rubric)
    path = store or beside(study, None, study.responses)
    if path.resolve() == study.responses.resolve():
        raise UsageError(f"--store {printable(str(path))}: this is the file of responses.")
    planned = plan(study, Wording(form), talks=lambda spec: provider(spec.provider).talks)
    return Work(study=study, rubric=form, plan=planned, store=path)


def grade(
    work: Work | Study,
    *,
    clients: Mapping[str, Client] | None = None,
    begun: Callable[[Outlook, Sequence[Text]], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
    stopping: Callable[[bool], None] | None = None,
) -> Graded:
    """Ask every call of a study that its store does not have.

    ``begun`` is told what the run will do and what changed since the last one, before anything is
    asked; ``clients``, ``progress`` and ``stopping`` are those of :func:`voirdire.grading.runner.run`. A
    call that fails is counted and kept, never raised; raised are what is wrong with study or store, and
    a full disk (:class:`voirdire.grading.store.StoreFull`), with all finished calls kept.
    """
    if isinstance(work, Study):
        work = prepare(work)
    planned = work.plan
    with Store.open(work.store) as store:
        before = store.outlook(planned)
        notices = (*planned.notices, *before.notices, *_stale(work, store))
        if begun is not None:
            begun(before, notices)
        store.begin(planned)
        _settle_too_long(work, store)
        queue = StoreQueue(planned, store, read=work.read, reader=work.reader)
        report = None
        if queue.left:
            report = run(
                queue,
                # A grader that is done needs no key and no server.
                [
                    spec
                    for spec, expected in zip(work.study.graders, before.graders, strict=True)
                    if expected.to_do
                ],
                policy(work.study),
                total=queue.left,
                known=[g.grader for g in before.graders if g.done],
                clients=clients,
                progress=progress,
                stopping=stopping,
            )
        queue.close()
        return finished(work, store, before, report, notices)


def finished(
    work: Work,
    store: Store,
    before: Outlook,
    report: Report | None = None,
    notices: Sequence[Text] = (),
) -> Graded:
    """End a run that has begun in a store, and say where it left the study."""
    if report is not None and report.stopped == "fatal":
        store.forget_unanswered(work.plan)
    left = len(store.left(work.plan))
    held, _ = store.held_by_others() if left else (0, 0.0)
    store.end((report.stopped if report else "") or ("incomplete" if left else "complete"))
    mine = {spec.name for spec in work.study.graders}
    return Graded(
        work=work,
        before=before,
        report=report,
        outcomes=store.outcomes(work.plan),
        left=left,
        held=min(held, left),
        others=tuple(name for name in store.graders() if name not in mine),
        notices=tuple(notices),
    )


def _stale(work: Work, store: Store) -> list[Text]:
    n = int(among(work.plan.keys, store.read_by_another(work.reader)).sum())
    if not n:
        return []
    return [
        say(
            "{n} read with another parser or other synonyms than now. The same command with --reparse "
            "reads them again, without a request, and says which verdicts change.",
            n=plural(n, "stored reply was", "stored replies were"),
        )
    ]


def _settle_too_long(work: Work, store: Store) -> None:
    """Record calls that are surely longer than their grader's window, which are not sent at all."""
    planned = work.plan
    left = store.left(planned)
    for block in planned.blocks:
        window = block.grader.window
        if not window:
            continue
        end = block.start + len(planned.items) * block.per_item
        mine = left[(left >= block.start) & (left < end)]
        lengths = planned.characters(mine)
        rows: list[tuple[Call, Reading | None]] = []
        long = lengths > window * MOST_CHARACTERS_A_TOKEN
        for at, length in zip(mine[long].tolist(), lengths[long].tolist(), strict=True):
            call = planned.at(at)
            rows.append(
                (
                    Call(
                        key=call.key,
                        item=call.item.id,
                        response=planned.hashes[planned.place(at)[0]].tobytes(),
                        grader=block.grader.name,
                        phrasing=call.phrasing,
                        vote=call.vote,
                        status=str(FailureKind.TOO_LONG),
                        message=f"longer than the grader's window: {length:,} characters for {window:,} "
                        "tokens; not sent",
                        cost=0.0,
                    ),
                    None,
                )
            )
        if rows:
            store.record_all(rows)


def reparse(work: Work) -> tuple[Graded, Reparsed]:
    """Read the stored replies of a study again with the present parser; no request is made.

    Raises :class:`InputError` where there is no store.
    """
    if not work.store.exists():
        raise InputError(
            f"{printable(str(work.store))}: there is no store yet, so there are no replies to read again. "
            "Grade first, or name the store: --store FILE."
        )
    with Store.open(work.store) as store:
        before = store.outlook(work.plan)
        done = store.reparse(work.reread, work.reader, only=np.asarray(work.plan.keys))
        store.begin(work.plan)
        return finished(work, store, before, None, before.notices), done
