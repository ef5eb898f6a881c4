"""OpenAI Evals records: the events of a run, sample by sample.

Tried on records of evals 3.0.1.post1 (one object a line: a ``spec``, a ``final_report``, and events
with a ``type``, in any order and of several runs). Read: ``metrics`` and ``match`` events. A response
is a sample (``sample_id``). In a run of ``ModelBasedClassify`` the last of the spec's
``completion_fns`` grades, and the grader is ``MODELGRADED_SPEC@MODEL`` with the ``choice`` as its
label; ``__invalid__`` is a verdict that could not be read, ``unparsed``, though the log scores it as
the lowest choice. A ``match`` event is a label 1 or 0 of the eval's class (``Match``, ``Includes``);
any other metric is a grader by its own name. Eval, model and run come before the ids of responses
where inputs differ in them.

What the format hides: a sample whose calls failed has no verdict and is not in the final report's
counts. Early versions graded with gpt-3.5-turbo whatever the spec says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from voirdire.errors import InputError
from voirdire.options import Options
from voirdire.readers._logs import (
    Gathered,
    Trouble,
    as_text,
    head_objects,
    lines,
    mapping,
    sequence,
)
from voirdire.readers.base import Claim, Reader
from voirdire.rows import Rows
from voirdire.source import Source
from voirdire.wording import Text, listed, plural, printable, say

INVALID = "__invalid__"
CHOICE = "choice"
_EVENT = {"run_id", "event_id", "sample_id", "type", "data"}
_OF_CHOICE = {"score", "metascore"}  # what evals makes of a choice: no verdicts of their own


def sniff(source: Source) -> Claim | None:
    """Sure where a line is a spec, a final report or an event of a run."""
    if source.frame is not None:
        return None
    if any(_is_record(record) for record in head_objects(source)):
        return Claim(format="OpenAI Evals record")
    return None


def _is_record(record: Mapping[str, Any]) -> bool:
    spec = record.get("spec")
    if isinstance(spec, dict):
        return {"completion_fns", "eval_name"} <= spec.keys() or "base_eval" in spec
    if "final_report" in record:
        return record.keys() <= {"final_report", "run_id"}
    return record.keys() >= _EVENT


@dataclass
class _Sample:
    """What was seen of one sample."""

    line: int
    calls: int = 0
    verdicts: int = 0
    errors: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class _Run:
    """One run: its spec, and the events that may be verdicts, with their lines."""

    spec: Mapping[str, Any] = field(default_factory=dict)
    samples: dict[str, _Sample] = field(default_factory=dict)
    verdicts: list[tuple[int, str, str, Mapping[str, Any]]] = field(default_factory=list)

    @property
    def functions(self) -> list[str]:
        return [text for f in sequence(self.spec.get("completion_fns")) if (text := as_text(f))]

    @property
    def eval_spec(self) -> Mapping[str, Any]:
        return mapping(mapping(self.spec.get("run_config")).get("eval_spec"))

    @property
    def class_name(self) -> str:
        class_ = self.eval_spec.get("cls")
        return class_.rpartition(":")[2].rpartition(".")[2] if isinstance(class_, str) else ""

    @property
    def eval_name(self) -> str:
        name = self.spec.get("eval_name") or self.spec.get("base_eval")
        return name if isinstance(name, str) else ""

    @property
    def modelgraded(self) -> str:
        """The name of the grading prompt; empty where no model grades."""
        named = mapping(self.eval_spec.get("args")).get("modelgraded_spec")
        if isinstance(named, str) and named:
            return named
        if "ModelBased" in self.class_name or any(
            CHOICE in data for _, _, kind, data in self.verdicts if kind == "metrics"
        ):
            return self.eval_name or "modelgraded"
        return ""

    @property
    def grading_model(self) -> str:
        return self.functions[-1] if self.modelgraded and self.functions else ""

    @property
    def brought_along(self) -> bool:
        """Whether the samples had their answers with them, so that the one call of each is the grader's."""
        judged = [sample.calls for sample in self.samples.values() if sample.verdicts]
        return bool(self.modelgraded and judged) and set(judged) == {1}

    @property
    def targets(self) -> list[str]:
        """The models that answered; none where the samples had their answers with them."""
        functions = self.functions
        if self.brought_along:
            return []
        return functions[:-1] if self.modelgraded and len(functions) > 1 else functions


def read(source: Source, options: Options) -> list[Rows]:
    """One row a sample and verdict, each run apart: what its spec says holds for its own samples.

    Raises :class:`InputError` where there is no verdict in any run.
    """
    trouble = Trouble(source, what="line")
    runs = _runs(source, options, trouble)
    made: list[Rows] = []
    seen: list[Text] = []
    for name, run in runs.items():
        log = Gathered(source, unit="line")
        facts = _add_all(log, run)
        seen += _notices(run)
        if not len(log):
            continue
        left_out = log.leave_out_measures(options.graders)
        made += log.rows(
            layout="openai_evals",
            notices=left_out,
            facts=facts,
            scope=_scope(name, run),
        )
    if not made:
        raise InputError(
            f"{printable(source.name)}: this is a record of OpenAI Evals without a verdict in it "
            f"({plural(sum(len(r.samples) for r in runs.values()), 'sample')}). It needs events of "
            "type metrics or match."
        )
    made[0] = replace(made[0], notices=(*trouble.notices(), *seen, *made[0].notices))
    return made


def _runs(source: Source, options: Options, trouble: Trouble) -> dict[str, _Run]:
    """Runs by their id; a spec without one belongs to the events without one."""
    runs: dict[str, _Run] = {}
    alone: list[_Run] = []  # specs and reports before evals 1.0 do not say of which run they are
    for number, record in lines(source, options, trouble):
        at = f"line {number:,}"
        if not isinstance(record, dict):
            trouble.add(at, "it is no object")
        elif "spec" in record:
            spec = mapping(record["spec"])
            if not spec:
                trouble.add(at, "its spec is no object")
                continue
            id_ = spec.get("run_id")
            if isinstance(id_, str) and id_:
                runs.setdefault(id_, _Run()).spec = spec
            else:
                alone.append(_Run(spec=spec))
        elif "final_report" in record:
            continue  # averages and counts of what the events say
        else:
            _event(record, at, number, runs, trouble)
    if len(alone) == 1:
        for run in runs.values():
            run.spec = run.spec or alone[0].spec
    return runs


def _event(
    record: Mapping[str, Any], at: str, number: int, runs: dict[str, _Run], trouble: Trouble
) -> None:
    kind, id_ = record.get("type"), as_text(record.get("sample_id"))
    data = record.get("data")
    if not isinstance(kind, str):
        trouble.add(at, "neither a spec, a final report nor an event")
        return
    if id_ is None:
        if kind in ("metrics", "match"):
            trouble.add(at, f"a {kind} event without sample_id")
        return
    named = record.get("run_id")
    run = runs.setdefault(named if isinstance(named, str) else "", _Run())
    sample = run.samples.setdefault(id_, _Sample(number))
    if kind == "sampling":
        sample.calls += 1
    elif kind == "error":
        reason = mapping(data).get("type")
        sample.errors.append((number, reason if isinstance(reason, str) else "error"))
    elif kind in ("metrics", "match"):
        if not isinstance(data, dict):
            trouble.add(at, f"the data of a {kind} event is no object")
            return
        # What was asked and answered is let go of at once: only small values are verdicts.
        small = {
            key: value
            for key, value in data.items()
            if key == "correct" or (kind == "metrics" and not isinstance(value, dict | list))
        }
        sample.verdicts += 1
        run.verdicts.append((number, id_, kind, small))


def _scope(name: str, run: _Run) -> dict[str, str]:
    """What tells this run's responses from those of another.

    Where the samples brought their answers along, runs with other graders are about the same responses,
    and neither model nor run is part of what they are. Else each run sampled its own, and runs stay apart
    whoever graded them.
    """
    if run.brought_along:
        return {"eval": run.eval_name}
    return {"eval": run.eval_name, "model": "+".join(run.targets), "run id": name}


def _add_all(log: Gathered, run: _Run) -> dict[str, dict[str, str]]:
    """Every verdict of a run as a row; returns what is known of its graders."""
    facts: dict[str, dict[str, str]] = {}
    target = "+".join(run.targets) or None
    by_model = run.modelgraded
    if by_model and run.grading_model:
        by_model = f"{by_model}@{run.grading_model}"
    times = Counter((id_, kind) for _, id_, kind, _ in run.verdicts)
    seen: Counter[tuple[str, str]] = Counter()

    def of_model(metric: str) -> str:
        grader = by_model if metric == CHOICE else f"{metric}@{by_model}"
        facts[grader] = {"prompt": run.modelgraded}
        if run.grading_model:
            facts[grader]["model"] = run.grading_model
        return grader

    for number, id_, kind, data in run.verdicts:
        seen[id_, kind] += 1
        common: dict[str, Any] = {
            "response": id_,
            # A sample that is judged again and again in one run has votes.
            "vote": seen[id_, kind] if times[id_, kind] > 1 else None,
            "eval": run.eval_name or None,
            "target": target,
        }
        if kind == "match":
            grader = run.class_name or "match"
            facts.setdefault(grader, {})
            log.add(
                number,
                grader=grader,
                label=data.get("correct"),
                reason="neither correct nor incorrect",
                **common,
            )
            continue
        of_choice = CHOICE in data
        for metric, value in data.items():
            if (of_choice and metric in _OF_CHOICE) or not metric.strip():
                continue
            modelgraded = bool(run.modelgraded) and not metric.endswith("_metascore")
            if modelgraded:
                grader = of_model(metric)
            else:
                grader = metric
                facts.setdefault(grader, {})
            read_ = value is not None and value != INVALID
            score = data.get("score") if metric == CHOICE and read_ else None
            log.add(
                number,
                grader=grader,
                label=value if read_ else None,
                reason=INVALID if value == INVALID else "no value",
                choice_score=score if isinstance(score, int | float) else None,
                metascore=data.get("metascore") if metric == CHOICE else None,
                **common,
            )
    if run.modelgraded:
        for id_, sample in run.samples.items():
            # Where the target had answered, the call that failed was the grader's.
            if sample.errors and not sample.verdicts and sample.calls >= max(1, len(run.targets)):
                number, reason = sample.errors[-1]
                log.add(
                    number,
                    response=id_,
                    grader=of_model(CHOICE),
                    outcome="error",
                    reason=reason,
                    eval=run.eval_name or None,
                    target=target,
                )
                sample.verdicts = 1
    return facts


def _notices(run: _Run) -> list[Text]:
    notices: list[Text] = []
    without = [s for s in run.samples.values() if not s.verdicts]
    failed = sum(bool(s.errors) for s in without)
    if failed:
        notices.append(
            say(
                "{n} ended in an error before there was an answer to grade: not graded.",
                n=plural(failed, "sample"),
            )
        )
    if len(without) > failed:
        notices.append(
            say(
                "{n} {have} calls and no verdict, as in a record that is cut off or still being "
                "written; no rows.",
                n=plural(len(without) - failed, "sample"),
                have="has" if len(without) - failed == 1 else "have",
            )
        )
    if run.verdicts and not run.spec:
        notices.append(
            say("There is no spec of the run, so eval, target and grader are not named.")
        )
    elif run.modelgraded and run.targets == [run.grading_model]:
        # One function alone grades as well as answers; it did not do so in early versions.
        unsure = len(run.functions) == 1
        notices.append(
            say(
                "{model} grades its own answers{unsure}.",
                model=listed(run.targets),
                unsure=", as far as the spec says: in early versions gpt-3.5-turbo did, and no "
                "record says so"
                if unsure
                else "",
            )
        )
    return notices


READER = Reader(
    name="openai_evals",
    title="OpenAI Evals records",
    suffixes=(".jsonl", ".json"),
    sniff=sniff,
    read=read,
)
