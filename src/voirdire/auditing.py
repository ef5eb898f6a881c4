"""The main job: read labels, make every estimate, ask every check, and write the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import voirdire
from voirdire import plugins, report
from voirdire.bank import Bank, bank
from voirdire.checks.base import Check, Evidence
from voirdire.document import Document
from voirdire.errors import InputError, UsageError
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, worst_first
from voirdire.formats.base import Format
from voirdire.grid import LABEL, Grid, grid
from voirdire.inference import Settings, estimates
from voirdire.inputs import rows_of, sources
from voirdire.labels import ALL_OUTCOMES, Labels, Tag, assemble, gold_name, write_whole
from voirdire.options import Options
from voirdire.orders import vote_tags
from voirdire.responses import responses
from voirdire.scene import Counts, Estimates, Rate, Scene
from voirdire.stats import consensus
from voirdire.stats.base import Family
from voirdire.wording import listed, plain, plural, printable

if TYPE_CHECKING:
    import polars as pl

    from voirdire.cards import Card

MOST_SLICES = 200
EXPLORED_VALUES = range(2, 21)  # distinct values of a tag that is looked at unasked


# --- reading ------------------------------------------------------------------------------------


def read(
    *inputs: Any, options: Options, progress: Callable[[int, int], None] | None = None
) -> Labels:
    """Read and join all inputs; see :func:`voirdire.read`. ``progress`` hears of each file read."""
    return assemble(rows_of(sources(inputs), options, progress=progress), options)


# --- auditing -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Audit:
    """What an audit found: estimates, findings, and the report made of them."""

    labels: Labels
    estimates: tuple[Estimate, ...]
    findings: tuple[Finding, ...]
    document: Document

    @cached_property
    def results(self) -> pl.DataFrame:
        """The results table of the contract, one row an estimate."""
        from voirdire.formats.table import results_frame

        return results_frame(self.estimates)

    def write(self, path: str | Path) -> tuple[Path, ...]:
        """Write the report; the suffix picks the format, and a file is only replaced when whole.

        Returns the files that were written: the report, and before it what a large page keeps beside
        itself, so that a page that is there finds its file. Raises :class:`UsageError` where that
        would replace a file of something else.
        """
        path = Path(path)
        return write_report(path, self.document, format_of(path).render(self.document))

    def card(
        self,
        grader: str = "",
        *,
        date: str = "",
        expires: str = "",
        valid_days: int | None = None,
    ) -> Card:
        """The card of one grader: who it is, what was measured, and what it may be used for.

        ``grader`` may be left out where only one is not gold. Days are written YYYY-MM-DD; without
        ``expires``, and without ``valid_days`` from ``date``, the card says that no expiry was set.
        Raises :class:`UsageError` for a grader that is not there or is gold, and for bad days.
        """
        from voirdire import cards

        options, classes = self.labels.options, self.labels.classes
        rates = [
            (rate.name, [c for c, inside in zip(classes, rate.members, strict=True) if inside])
            for rate in rates_of(self.labels, options)
        ]
        return cards.make(
            self.labels,
            grader,
            self.estimates,
            self.findings,
            rates,
            date=date,
            expires=expires,
            valid_days=valid_days,
            version=voirdire.__version__,
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from voirdire import notebook

        gold = gold_name(self.labels.grader_names, self.labels.options)
        return notebook.audit_html(self, gold)

    def __repr__(self) -> str:
        made = [f for f in self.findings if f.state is State.FOUND]
        return f"<Audit: {len(self.estimates)} estimates, {len(made)} findings>"


def format_of(path: str | Path) -> Format:
    """The format for a file name; raises :class:`UsageError` for an unknown suffix."""
    suffix = Path(path).suffix.lower()
    formats = plugins.load("formats", Format)
    for one in formats:
        if suffix in one.suffixes:
            return one
    known = " ".join(s for f in formats for s in f.suffixes)
    raise UsageError(
        f"{path}: no format is written as {suffix or 'a file without suffix'}. Use {known}."
    )


def write_report(path: Path, document: Document, content: bytes) -> tuple[Path, ...]:
    """Write a report and, before it, what its format keeps beside it; the files that were written.

    Raises :class:`UsageError`, with nothing written, where a file of that name is there and is none
    that was kept beside a report before.
    """
    beside = format_of(path).beside
    files = {path.with_suffix(s): data for s, data in beside(document).items()} if beside else {}
    for file, data in files.items():
        head = data[: data.index(b",") + 1]  # what such a file starts with, whatever it holds
        if file.exists() and not _starts_with(file, head):
            raise UsageError(
                f"{path}: its responses are kept beside it, in {file.name}. A file of that name is there "
                "and holds something else: move it, or name another file."
            )
    for file, data in (*files.items(), (path, content)):
        write_whole(file, data)
    return (*files, path)


def _starts_with(file: Path, head: bytes) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(head)) == head


def run(labels: Labels, options: Options | None = None) -> Audit:
    """Audit labels; ``options`` may differ from those they were read with in all but reading."""
    if options is not None and options is not labels.options:
        labels = labels.with_facts(options)
    options = labels.options
    refuse_no_judge(labels)
    scene, slices = scenes(labels)
    settings = replaced(Settings.of(options), sampled=_sampled(labels, scene.grid))
    families = [f for f in _families() if labels.kind in f.kinds]
    made: list[Estimate] = []
    for one in (scene, *slices):
        for family in families:
            if family.explores or not one.exploratory:
                made += _estimates(family, one, settings)
    checks = [c for c in plugins.load("checks", Check) if labels.kind in c.kinds]
    checks.sort(key=lambda c: (c.rank, c.name))
    evidence = Evidence(
        whole=scene,
        slices=tuple(slices),
        estimates=Estimates(made),
        clusters_declared=labels.clusters_declared,
        labels=labels,
    )
    for check in checks:
        if check.flags:
            evidence = evidence.with_findings(check.run(evidence))
    flagged = flagged_graders(evidence.earlier)
    if flagged:
        made += _without_flagged(families, evidence, flagged, made, settings)
        scene = scene.flagging(flagged)
        slices = [s.flagging(flagged) for s in slices]
        evidence = replaced(evidence, whole=scene, slices=tuple(slices), estimates=Estimates(made))
    for check in checks:
        if not check.flags:
            evidence = evidence.with_findings(check.run(evidence))
    ordered = tuple(worst_first(evidence.earlier))
    # Estimates of slices that nobody asked for are evidence of findings only.
    unasked = {s.slice for s in slices if s.exploratory}
    listed = tuple(e for e in made if e.listed and e.key.slice not in unasked)
    document = report.document(
        labels,
        scene,
        [s for s in slices if not s.exploratory],
        evidence.estimates,
        ordered,
        families,
        listed,
        voirdire.__version__,
        responses(labels, scene, slices, _voters(scene)),
    )
    return Audit(labels=labels, estimates=listed, findings=ordered, document=document)


def _voters(scene: Scene) -> dict[str, tuple[str, ...]]:
    """Who forms the majority that each grader is held against; the empty name is the whole panel."""
    if scene.grid is None:
        return {}
    panel = consensus.members(scene)
    if len(panel) < consensus.SMALLEST_PANEL:
        return {}
    out = consensus.barred(scene, panel)
    return {"": panel, **{g: tuple(m for m in panel if m not in no) for g, no in out.items()}}


def refuse_no_judge(labels: Labels) -> None:
    """Raise where there is gold alone and nobody said that gold is what to audit."""
    gold = gold_name(labels.grader_names, labels.options)
    if set(labels.grader_names) != {gold}:
        return
    if gold in labels.options.graders:
        return
    known = {"raw", "file", "outcome_reason"}
    if labels.checklist is not None:
        known |= {labels.checklist.question, labels.options.response}
    ids = [labels.frame[c].cast(str) for c in ("response", "cluster")]
    others = [
        t.name
        for t in labels.tags
        if t.name not in known and not any(labels.frame[t.name].equals(i) for i in ids)
    ]
    unread = plain(listed((printable(t) for t in others), most=20))
    who, what = ("judge", "verdicts") if labels.kind == "checklist" else ("grader", "labels")
    raise InputError(
        f"{', '.join(printable(i.name) for i in labels.inputs)}: {printable(gold)} is gold, and there "
        f"is no {who} beside it to audit. Name the columns of the {who} with --graders NAME"
        + (f" (not read as {what}: {unread})" if others else "")
        + f", or name its file too. To describe the {what} of gold alone, say --gold none."
    )


def _families() -> list[Family]:
    return sorted(plugins.load("stats", Family), key=lambda f: (f.order, f.name))


def _estimates(family: Family, scene: Scene, settings: Settings) -> list[Estimate]:
    made = estimates(
        family.parts(scene), settings, slice_=scene.slice, with_intervals=not scene.exploratory
    )
    return family.finish(made, scene) if family.finish is not None else made


def _sampled(labels: Labels, whole: Grid | None) -> tuple[tuple[int, float], ...]:
    """Which share of its population each stratum's responses are (``--population``), by its code."""
    column = labels.options.population
    if not column:
        return ()
    if whole is None or not whole.own_cluster:
        raise UsageError(
            "--population: the finite population correction is for responses that were drawn one by "
            "one; leave it out where responses are in clusters or only counts are known."
        )
    import polars as pl

    sizes = (
        labels.frame.group_by("stratum")
        .agg(
            pl.col("response").n_unique().alias("drawn"),
            pl.col(column).drop_nulls().unique().cast(pl.Float64, strict=False).alias("sizes"),
        )
        .sort("stratum")
    )
    shares = []
    for code, row in enumerate(sizes.iter_rows(named=True)):
        given, drawn = row["sizes"], row["drawn"]
        if len(given) != 1 or given[0] is None or not given[0] >= drawn:
            where = f"stratum {row['stratum']}" if row["stratum"] is not None else "the responses"
            raise UsageError(
                f"--population {column}: {where} must have one size, a number of at least the {drawn} "
                f"that were drawn (found: {', '.join(str(g) for g in given[:3]) or 'none'})."
            )
        shares.append((code, drawn / given[0]))
    return tuple(shares)


def _without_flagged(
    families: Sequence[Family],
    evidence: Evidence,
    flagged: Sequence[str],
    made: Sequence[Estimate],
    settings: Settings,
) -> list[Estimate]:
    """What families add once graders are flagged: the same statistics without them."""
    seen = {(e.statistic, *e.key) for e in made}
    scenes_asked = (evidence.whole, *(s for s in evidence.slices if not s.exploratory))
    return [
        e
        for scene in scenes_asked
        for family in families
        if family.after_findings
        for e in _estimates(family, scene.flagging(flagged), settings)
        if (e.statistic, *e.key) not in seen
    ]


def flagged_graders(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The graders with a collapsed class, in the order of the findings; no slices, nothing exploratory."""
    return tuple(
        dict.fromkeys(
            f.grader
            for f in findings
            if f.code == "class_collapse"
            and f.state is State.FOUND
            and not f.exploratory
            and not f.slice
        )
    )


# --- scenes -------------------------------------------------------------------------------------


def rates_of(labels: Labels, options: Options) -> tuple[Rate, ...]:
    """The rates to report: those asked for, else the top class and everything but the bottom class."""
    classes = labels.classes
    known = np.array(classes)

    def rate(name: str, members: Iterable[str]) -> Rate:
        return Rate(name=name, members=np.isin(known, list(members)))

    if labels.kind == "checklist":
        return ()
    if options.rate:
        return tuple(rate(name, members) for name, members in options.rate)
    if not labels.ordered:
        return ()
    top, bottom = labels.scale[-1], labels.scale[0]
    rates = [rate(top, [top])]
    if len(labels.scale) > 2:
        name = f"non_{bottom}"
        if name == top:  # two rates must not share a name
            name = f"all_but_{bottom}"
        outside = {bottom, *options.refusal_like}
        rates.append(rate(name, [c for c in classes if c not in outside]))
    return tuple(rates)


def scenes(labels: Labels) -> tuple[Scene, list[Scene]]:
    """The whole, and its slices: those asked for with ``--by``, then exploratory ones."""
    options = labels.options
    gold = gold_name(labels.grader_names, options)
    asked: list[list[str]] = []
    for by in options.by:
        tags = _crossed(labels, by)
        if all(set(tags) != set(earlier) for earlier in asked):  # a+b and b+a are the same slices
            asked.append(tags)
    explored = _explored(labels, [t for by in asked for t in by])
    held = _swung(labels)
    everything: Grid | None = None
    counts: Counts | None = None
    verdicts: Bank | None = None
    if labels.kind == "checklist":
        verdicts = bank(labels, tags=[*dict.fromkeys(t for by in asked for t in by)])
        _check_cuts(verdicts, options)
    elif labels.kind == "labels":
        named = [*(t for by in asked for t in by), *explored, *held, *vote_tags(labels)]
        everything = grid(labels, tags=[*dict.fromkeys(named)])
        _check_dropped(everything, options)
    else:
        counts = _counts(labels, labels.frame)
    graders = labels.graders
    if verdicts is not None and gold and len(graders) > 1 and not (verdicts.of(gold) >= 0).any():
        # Gold without one verdict is no gold: nothing is to be compared with it (see the check
        # coefficient_reading, which says so).
        graders = tuple(g for g in graders if g.name != gold)
        verdicts, gold = verdicts.only([g.name for g in graders]), ""
    whole = Scene(
        grid=everything,
        counts=counts,
        bank=verdicts,
        graders=graders,
        classes=labels.classes,
        scale=labels.scale,
        ordered=labels.ordered,
        gold=gold,
        reference=options.reference,
        rates=rates_of(labels, options),
        options=options,
        mixes={} if everything is None else {t: _mix(everything, t) for t in options.standardise},
    )
    slices: dict[str, Scene] = {}
    for tags in asked:
        for one in _sliced(labels, whole, tags, exploratory=False):
            _refuse_namesake(one, slices.get(one.slice))
            slices[one.slice] = one
    if len(whole.panel) <= 20 or gold:
        for tag in explored:
            for one in _sliced(labels, whole, [tag], exploratory=True):
                slices.setdefault(one.slice, one)
    return whole, list(slices.values())


def _refuse_namesake(one: Scene, other: Scene | None) -> None:
    """Raise :class:`UsageError` where a comma or ``=`` in a name or value makes two slices one."""
    if other is None:
        return
    apart = next(
        pair for pair in zip(one.sliced_by, other.sliced_by, strict=False) if pair[0] != pair[1]
    )
    tag, value = max(apart, key=lambda p: "," in p[1] or "=" in p[1])
    raise UsageError(
        f"Two slices would both be called {one.slice!r}, as a tag or a value has a comma or an equals "
        f"sign in it. Write the value otherwise: --recode '{tag}:{value}=NEW'"
    )


def _crossed(labels: Labels, by: str) -> list[str]:
    """The tags that one ``--by`` names; a tag whose own name has a plus sign goes first."""
    names = [t.name for t in labels.tags]
    if by in names and not _is_label(labels, by):
        return [by]
    parts = by.split("+")
    for part in parts:
        if _is_label(labels, part):
            if labels.kind == "counts":
                raise UsageError(f"--by {part}: a table of counts has no labels of responses.")
            if labels.kind == "checklist":
                raise UsageError(f"--by {part}: a checklist has verdicts by line, not one label.")
            continue
        if part not in names:
            raise UsageError(
                f"--by {by}: there is no tag {part!r}. Tags: {', '.join(names) or 'none'}; "
                "or label:GRADER."
            )
    return list(dict.fromkeys(parts))


def _is_label(labels: Labels, name: str) -> bool:
    """Whether ``label:GRADER`` names a grader's label; :class:`UsageError` where a tag has the name too."""
    grader = name.removeprefix("label:")
    if grader == name or grader not in labels.grader_names:
        return False
    if name in {t.name for t in labels.tags}:
        raise UsageError(
            f"{name!r} is a column and also means the label of the grader {grader}. Rename the column."
        )
    return True


def _swung(labels: Labels) -> list[str]:
    """The tags of ``--standardise`` and ``--drop``; raises :class:`UsageError` for one not there."""
    options = labels.options
    asked = [("--standardise", t, t) for t in options.standardise]
    asked += [("--drop", tag, f"{tag}={value}") for tag, value in options.drop]
    names = [t.name for t in labels.tags]
    for flag, tag, given in asked:
        if labels.kind == "counts":
            raise UsageError(f"{flag} {given}: a table of counts has no responses to take by tag.")
        if labels.kind == "checklist":
            raise UsageError(
                f"{flag} {given}: a checklist has no rates of classes. Use --by {tag}."
            )
        if not _is_label(labels, tag) and tag not in names:
            raise UsageError(
                f"{flag} {given}: there is no tag {tag!r}. Tags: {', '.join(names) or 'none'}; "
                "or label:GRADER."
            )
    return [tag for _, tag, _ in asked]


def _check_cuts(verdicts: Bank, options: Options) -> None:
    longest = int(verdicts.length.max(initial=0))
    for cut in options.cut:
        if cut > longest:
            raise UsageError(
                f"--cut {cut}: the longest checklist has {plural(longest, 'line')}, so no response "
                "could pass."
            )
        if cut < 1:
            raise UsageError(
                f"--cut {cut}: a gate asks for at least 1 line. Give a whole number from 1 to {longest}."
            )
        if not isinstance(cut, int):
            raise UsageError(
                f"--cut {cut}: a gate of a checklist counts lines, so its cut is a whole number. With "
                f"--cut {math.ceil(cut)} the same responses pass."
            )


def _check_dropped(everything: Grid, options: Options) -> None:
    for tag, value in options.drop:
        values = everything.tags[tag][0]
        if value not in values:
            shown = ", ".join(values[:20]) + (", …" if len(values) > 20 else "")
            raise UsageError(
                f"--drop {tag}={value}: {tag} has no value {value!r}. Values: {shown or 'none'}."
            )


def _mix(everything: Grid, tag: str) -> dict[str, float]:
    """The shares of responses by value of a tag, with their weights; of calls for a grader's tag."""
    values, codes = everything.tags[tag]
    weights = np.ones(len(codes)) if everything.weights is None else everything.weights
    if codes.ndim == 2:
        weights, codes = np.repeat(weights, codes.shape[1]), codes.reshape(-1)
    known = codes >= 0
    amounts = np.bincount(codes[known], weights=weights[known], minlength=len(values))
    total = float(amounts.sum())
    return {v: float(a) / total for v, a in zip(values, amounts, strict=True)} if total else {}


def _explored(labels: Labels, asked: Sequence[str]) -> list[str]:
    """Tags looked at unasked: text, 2 to 20 values, of the response, and not themselves labels."""
    if labels.kind != "labels":
        return []
    classes = set(labels.classes)
    found = []
    for tag in labels.tags:
        if (
            tag.name in asked
            or tag.name in ("raw", "outcome_reason", "file")
            or tag.numeric
            or not tag.per_response
            or tag.values not in EXPLORED_VALUES
            or _is_labels(labels, tag, classes)
        ):
            continue
        found.append(tag.name)
    return found


def _is_labels(labels: Labels, tag: Tag, classes: set[str]) -> bool:
    values = set(labels.frame[tag.name].drop_nulls().unique().to_list())
    return values <= classes or labels.frame["cluster"].equals(labels.frame[tag.name])


def _sliced(labels: Labels, whole: Scene, tags: Sequence[str], *, exploratory: bool) -> list[Scene]:
    made: list[Scene] = [whole]
    for tag in tags:
        made = [
            _slice(labels, scene, tag, value)
            for scene in made
            for value in _values(labels, scene, tag)
        ]
        if len(made) > MOST_SLICES:
            raise UsageError(
                f"--by {'+'.join(tags)} makes more than {MOST_SLICES} slices. Choose a tag with fewer "
                "values."
            )
    return [
        replaced(s, exploratory=exploratory)
        for s in made
        if s.counts is not None
        or (s.grid is not None and s.grid.responses)
        or (s.bank is not None and s.bank.responses)
    ]


def _values(labels: Labels, scene: Scene, tag: str) -> list[str]:
    if scene.grid is not None:
        votes = scene.grid.votes
        values, codes = (
            votes.tags[tag] if votes is not None and tag in votes.tags else scene.grid.tags[tag]
        )
        used = set(np.unique(codes).tolist())
        return [v for i, v in enumerate(values) if i in used]
    if scene.bank is not None:
        values, codes = scene.bank.tags[tag]
        used = set(np.unique(codes).tolist())
        return [v for i, v in enumerate(values) if i in used]
    return _rows_of(labels, scene.sliced_by)[tag].drop_nulls().unique().sort().to_list()


def _rows_of(labels: Labels, sliced_by: Iterable[tuple[str, str]]) -> pl.DataFrame:
    """The rows of a slice of a count table."""
    frame = labels.frame
    for tag, value in sliced_by:
        frame = frame.filter(frame[tag] == value)
    return frame


def _slice(labels: Labels, scene: Scene, tag: str, value: str) -> Scene:
    name = f"{tag}={value}"
    sliced_by = (*scene.sliced_by, (tag, value))
    sliced = None
    counts = None
    verdicts = None
    if scene.grid is not None:
        sliced = scene.grid.sliced(tag, value)
    elif scene.bank is not None:
        verdicts = scene.bank.sliced(tag, value)
    else:
        counts = _counts(labels, _rows_of(labels, sliced_by))
    return replaced(
        scene,
        grid=sliced,
        counts=counts,
        bank=verdicts,
        slice=f"{scene.slice},{name}" if scene.slice else name,
        sliced_by=sliced_by,
        memory={},
    )


def _counts(labels: Labels, frame: pl.DataFrame) -> Counts:
    """Counts of a count table; several rows of a grader (one a corpus, say) add up."""
    names, classes = labels.grader_names, labels.classes
    counts = np.zeros((len(names), len(classes)))
    printed = np.zeros((len(names), len(classes)), dtype=np.int64)
    totals = np.zeros(len(names))
    with_total = np.zeros(len(names), dtype=np.int64)
    calls = np.zeros((len(names), len(ALL_OUTCOMES)))
    for row in frame.iter_rows(named=True):
        g = names.index(row["grader"])
        weight = float(row["weight"]) if row["weight"] is not None else np.nan
        if row["label"] is not None:
            c = classes.index(row["label"])
            counts[g, c] += weight
            printed[g, c] += 1
        elif row["outcome"] == "label":
            totals[g] += weight
            with_total[g] += 1
        else:
            calls[g, ALL_OUTCOMES.index(row["outcome"])] += weight
    rows = printed.max(axis=1)
    counts = np.where(printed < np.maximum(rows, 1)[:, None], np.nan, counts)
    sums = counts.sum(axis=1)
    totals = np.where(with_total >= np.maximum(rows, 1), totals, sums)
    calls[:, LABEL] = np.where(np.isfinite(totals), totals, 0.0)
    return Counts(labels=counts, totals=totals, calls=calls)


# --- other documents ----------------------------------------------------------------------------


def statistics() -> Document:
    """The list of estimands: what each asks, whom it describes, when it cannot be said, its source."""
    families = _families()
    return report.statistics(families, plugins.load("checks", Check), voirdire.__version__)
