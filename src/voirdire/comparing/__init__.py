"""Two graders, or two versions of one, compared: what changed, by how much, and what may not be said.

Where the labels are at hand both are looked at on their common responses, in one tally, so that an
interval knows how they move together. Where only results of earlier audits are, the two are taken as
independent samples, and the report says what that costs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import voirdire
from voirdire import auditing
from voirdire.comparing import published
from voirdire.comparing.changes import COLUMNS, changes_of
from voirdire.comparing.pairing import Pair, Side, gold_of, pair
from voirdire.comparing.report import of_pair
from voirdire.comparing.results_report import of_results
from voirdire.document import Document, Responses
from voirdire.errors import InputError, UsageError
from voirdire.estimate import Estimate
from voirdire.finding import Finding
from voirdire.grid import response_names
from voirdire.inference import Settings, estimates
from voirdire.labels import Labels, write_whole
from voirdire.options import Options
from voirdire.responses import panel, responses
from voirdire.scene import Estimates, Scene
from voirdire.stats import comparison, homogeneity, moves, votes
from voirdire.stats.base import Part
from voirdire.wording import Text

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CHANGES_SUFFIXES", "Comparison", "compare", "schema"]

CHANGES_SUFFIXES = (".csv", ".parquet", ".jsonl")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What a comparison found.

    ``paired`` says whether the responses of the two were at hand. ``changed`` has one record a label
    (of a checklist: a verdict) that differs or that only one of the two could be read on.
    """

    paired: bool
    old: str
    new: str
    estimates: tuple[Estimate, ...]
    findings: tuple[Finding, ...]
    document: Document
    changed: tuple[Mapping[str, str], ...] = ()
    only_old: tuple[str, ...] = ()
    only_new: tuple[str, ...] = ()
    sides: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[Text, ...] = ()

    @cached_property
    def results(self) -> pl.DataFrame:
        """The results table of the contract, one row an estimate."""
        from voirdire.formats.table import results_frame

        return results_frame(self.estimates)

    @cached_property
    def changes(self) -> pl.DataFrame:
        """Every label that changed, one a row: response, line, cluster, old, new, gold (all text)."""
        import polars as pl

        return pl.DataFrame(
            {name: [row[name] for row in self.changed] for name in COLUMNS},
            schema=dict.fromkeys(COLUMNS, pl.String),
        )

    def write(self, path: str | Path) -> tuple[Path, ...]:
        """Write the report; the suffix picks the format, and a file is only replaced when whole.

        The JSON report also holds every label that changed and the responses on one side only.
        Returns the files that were written, as :meth:`voirdire.Audit.write` does.
        """
        format_ = auditing.format_of(path)
        content = format_.render(self.document)
        if format_.name == "json":
            content = self._with_changes(content)
        return auditing.write_report(Path(path), self.document, content)

    def _with_changes(self, content: bytes) -> bytes:
        whole = json.loads(content)
        whole["compared"] = {
            "paired": self.paired,
            "old": self.sides["old"],
            "new": self.sides["new"],
            "only_in_old": list(self.only_old),
            "only_in_new": list(self.only_new),
            "changes": [dict(row) for row in self.changed],
        }
        text = json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1)
        return text.encode("utf-8", errors="backslashreplace") + b"\n"

    def write_changes(self, path: str | Path) -> None:
        """Write every label that changed to ``.csv``, ``.parquet`` or ``.jsonl``."""
        import io

        from voirdire.formats.table import csv_of

        path = Path(path)
        suffix = path.suffix.lower()
        if suffix not in CHANGES_SUFFIXES:
            raise UsageError(
                f"{path.name}: changed labels are written to {', '.join(CHANGES_SUFFIXES)}."
            )
        if not self.paired:
            raise UsageError(
                "Results of audits do not say which labels changed: compare the label files."
            )
        file = io.BytesIO()
        if suffix == ".csv":
            file.write(csv_of(COLUMNS, [[row[c] for c in COLUMNS] for row in self.changed]))
        elif suffix == ".parquet":
            self.changes.write_parquet(file, compression="zstd")
        else:
            self.changes.write_ndjson(file)
        write_whole(path, file.getvalue())

    def __repr__(self) -> str:
        kind = f"{len(self.changed)} labels changed" if self.paired else "from results"
        return f"<Comparison of {self.new!r} with {self.old!r}: {kind}>"


def schema() -> dict[str, Any]:
    """The JSON Schema of a comparison's ``.json``: that of an audit, with what was compared."""
    from voirdire.formats.json import schema as of_audits

    text: dict[str, Any] = {"type": "string"}
    texts: dict[str, Any] = {"type": "array", "items": text}
    whole = of_audits()
    side = _closed(
        {
            "grader": text,
            "shown_as": text,
            "inputs": {"type": "array", "items": {"$ref": "#/$defs/input"}},
        }
    )
    change = _closed(dict.fromkeys(COLUMNS, text))
    whole["title"] = "voirdire comparison"
    whole["properties"]["compared"] = _closed(
        {
            "paired": {
                "type": "boolean",
                "description": "Whether the responses of the two were at hand.",
            },
            "old": side,
            "new": side,
            "only_in_old": texts,
            "only_in_new": texts,
            "changes": {"type": "array", "items": change},
        }
    )
    whole["required"].append("compared")
    return whole


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object that has all of these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def compare(
    old: Any,
    new: Any = None,
    *,
    options: Options | None = None,
    old_name: str = "",
    new_name: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare two graders; see :func:`voirdire.compare`."""
    options = options or Options()
    results = [published.is_results(given) for given in (old, new)]
    if any(results):
        if new is None:
            raise UsageError(
                "Results of one audit are no comparison: name a second input, "
                "voirdire compare old.json new.json"
            )
        return _of_results(old, new, results, options, old_name, new_name, progress)
    made = pair(old, new, options, old_name=old_name, new_name=new_name, progress=progress)
    return _of_pair(made)


# --- labels of both -----------------------------------------------------------------------------


def _of_pair(made: Pair) -> Comparison:
    labels = made.labels
    scene, slices = auditing.scenes(labels)
    asked = [s for s in slices if not s.exploratory and _both_there(s, made)]
    settings = Settings.of(labels.options)
    every: list[Estimate] = []
    p: dict[tuple[str, Any], float] = {}
    for one in (scene, *asked):
        found, tested = _estimated(one, settings)
        every += found
        p |= tested
    every += _p_values(every, p)
    changed = tuple(changes_of(labels, scene, made.old.name, made.new.name))
    document = replaced(
        of_pair(made, scene, asked, Estimates(every), changed, voirdire.__version__),
        panel=panel(scene),
        responses=_shown(labels, scene, made),
    )
    return Comparison(
        paired=True,
        old=made.old.name,
        new=made.new.name,
        estimates=tuple(every),
        findings=document.findings,
        document=document,
        changed=changed,
        only_old=made.only_old,
        only_new=made.only_new,
        sides={"old": _record(made.old), "new": _record(made.new)},
        notices=(*made.notices, *labels.notices),
    )


def _shown(labels: Labels, scene: Scene, made: Pair) -> Responses | None:
    """The responses behind the numbers: those that both could be read on, so that counts are theirs."""
    import polars as pl

    if scene.grid is not None:
        read = scene.grid.codes >= 0
    else:
        assert scene.bank is not None
        read = scene.bank.complete
    two = [scene.places[name] for name in (made.old.name, made.new.name)]
    both = np.asarray(read[:, two].all(axis=1))
    if not both.any():
        return None
    if not both.all():
        names = response_names(labels)[both].tolist()
        labels = replaced(labels, frame=labels.frame.filter(pl.col("response").is_in(names)))
        scene, _ = auditing.scenes(labels)
    return responses(labels, scene, [], {})


def _record(side: Side) -> dict[str, Any]:
    return {
        "grader": side.given,
        "shown_as": side.name,
        "inputs": [{"name": i.name, "sha256": i.sha256, "rows": i.rows} for i in side.inputs],
    }


def _both_there(scene: Scene, made: Pair) -> bool:
    held = scene.grid if scene.grid is not None else scene.bank
    return held is not None and held.responses > 0


def _estimated(
    scene: Scene, settings: Settings
) -> tuple[list[Estimate], dict[tuple[str, Any], float]]:
    made: list[Estimate] = []
    p: dict[tuple[str, Any], float] = {}
    for part in comparison.parts(scene):
        found = estimates([part], settings, slice_=scene.slice)
        kept, tested = comparison.settled(part, found, settings.level)
        made += kept
        p |= tested
    for part in _more(scene):
        made += estimates([part], settings, slice_=scene.slice)
    return made, p


def _more(scene: Scene) -> list[Part]:
    """What other families say of the two: kept and moved, equal use of the classes, votes."""
    old, new = comparison.two_of(scene)
    parts: list[Part] = []
    if scene.grid is not None:
        of_two = (*moves.parts(scene), *homogeneity.parts(scene))
        parts += [p for p in of_two if _about(p, new, old)]
    parts += [
        replaced(p, asks=asks)
        for p in votes.parts(scene)
        if (asks := tuple(a for a in p.asks if a[0].name == "self_disagreement"))
    ]
    return parts


def _about(part: Part, new: str, old: str) -> bool:
    return all(k.grader == new and k.other == old for _, keys in part.asks for k in keys)


def _p_values(made: Sequence[Estimate], p: Mapping[tuple[str, Any], float]) -> list[Estimate]:
    """P-values of differences, and those after Holm: in each slice use, reading and gold apart."""
    families: dict[tuple[str, str], list[Estimate]] = {}
    singles = _repeated(made)
    for one in made:
        if (one.statistic, one.key) in p and (one.statistic, one.key) not in singles:
            kind = "gold" if one.statistic in WITH_GOLD else "use"
            if one.statistic == "read_share_minus_other":
                kind = "read"
            families.setdefault((one.key.slice, kind), []).append(one)
    rows: list[Estimate] = []
    for members in families.values():
        own = [p[(e.statistic, e.key)] for e in members]
        for estimate, raw, adjusted in zip(members, own, comparison.holm(own), strict=True):
            key = replaced(estimate.key, line=estimate.statistic)
            for estimand, value in (
                (comparison.P_VALUE, raw),
                (comparison.P_HOLM, adjusted),
            ):
                rows.append(
                    Estimate(
                        estimand=estimand,
                        key=key,
                        value=value,
                        n=estimate.n,
                        clusters=estimate.clusters,
                    )
                )
    return rows


WITH_GOLD = (
    *("agreement_minus_other", "rate_false_accept_minus_other", "rate_false_reject_minus_other"),
    *("element_error_minus_other", "false_accept_minus_other", "false_reject_minus_other"),
    "gate_accuracy_minus_other",
)


def _repeated(made: Sequence[Estimate]) -> set[tuple[str, Any]]:
    """Differences that say what another one says: they are no test of their own.

    A rate of one class is that class; the shares of two classes are one number.
    """
    found: set[tuple[str, Any]] = set()
    shares: dict[str, list[Estimate]] = {}
    for one in made:
        if one.statistic == "label_share_minus_other":
            shares.setdefault(one.key.slice, []).append(one)
    for slice_, of_classes in shares.items():
        if len(of_classes) == 2:
            found.add((of_classes[0].statistic, of_classes[0].key))
        names = {e.key.class_ for e in of_classes}
        found |= {
            (e.statistic, e.key)
            for e in made
            if e.statistic == "rate_minus_other" and e.key.slice == slice_ and e.key.class_ in names
        }
    return found


# --- results alone ------------------------------------------------------------------------------


def _of_results(
    old: Any,
    new: Any,
    results: Sequence[bool],
    options: Options,
    old_name: str,
    new_name: str,
    progress: Callable[[int, int], None] | None,
) -> Comparison:
    sides: list[published.Results] = []
    for given, is_results, name, flag in zip(
        (old, new), results, (old_name, new_name), ("--old", "--new"), strict=True
    ):
        if is_results:
            sides.append(published.read_results(given, gold=options.gold, grader=name, flag=flag))
        else:
            sides.append(_audited(given, options, name, flag, progress))
    names = (sides[0].grader, sides[1].grader)
    if names[0] == names[1]:
        names = (f"{names[0]} (old)", f"{names[1]} (new)")
    made = published.differences(sides[0], sides[1], names)
    if not made:
        raise InputError(
            f"{sides[0].file.name} and {sides[1].file.name} have no result of the same statistic in "
            "common. Audit both in the same way and compare those results."
        )
    document = of_results(
        sides[0], sides[1], names, Estimates(made), tuple(results), options, voirdire.__version__
    )
    return Comparison(
        paired=False,
        old=names[0],
        new=names[1],
        estimates=tuple(made),
        findings=document.findings,
        document=document,
        sides={
            side: {
                "grader": one.grader,
                "shown_as": shown,
                "inputs": [
                    {"name": i.name, "sha256": i.sha256, "rows": i.rows}
                    for i in (one.inputs or (one.file,))
                ],
            }
            for side, one, shown in zip(("old", "new"), sides, names, strict=True)
        },
    )


def _audited(
    given: Any,
    options: Options,
    name: str,
    flag: str,
    progress: Callable[[int, int], None] | None,
) -> published.Results:
    """The results of a label file, audited just now."""
    if name and not options.graders:
        options = replaced(options, graders=(name,))
    labels = auditing.read(given, options=options, progress=progress)
    gold = gold_of(labels)
    graders = [g for g in labels.grader_names if g != gold]
    if not name and len(graders) > 1:
        raise UsageError(
            f"{flag}: the file has several graders; name one: {flag} NAME. Graders: "
            f"{', '.join(map(repr, graders[:20]))}."
        )
    audit = auditing.run(labels)
    return published.of_estimates(
        audit.estimates,
        grader=name or graders[0],
        gold=gold,
        inputs=labels.inputs,
        options=labels.options.changed(),
        version=voirdire.__version__,
    )
