"""What a reader needs in two minutes: who was audited, what was found, what to write; and the graders
side by side as small pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from voirdire.document import Cell, Document, Panel, cell, display, display_interval
from voirdire.estimate import Estimate, Key
from voirdire.figures.svg import RAMP, clean, num, paint, step
from voirdire.finding import Finding, State
from voirdire.wording import Name, Text, counted, percent, say

MOST_GRADERS = 60  # in the table of graders; the results hold all
MOST_FOUND = 6  # findings in the summary; all of them stand below
MOST_CLASSES = 12  # in a bar; with more of them a class is a hair
MOST_LINES = 24  # bars of a judge's error by line
WIDTH, HEIGHT = 132.0, 18.0
AXIS = ' stroke="currentColor" stroke-opacity=".3"'
GOLD = ' stroke="currentColor" stroke-opacity=".6" stroke-dasharray="2 2"'
WHISKER = ' stroke="currentColor" stroke-width="1.4" fill="none"'
EDGE = ' stroke="currentColor" stroke-opacity=".4" stroke-width=".5"'
# The label's share that is drawn as off the scale has a hatch, so that it differs without colour.
_HATCH = (
    '<pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="4" height="4" fill="#868e97" fill-opacity=".25"/>'
    '<rect width="1.6" height="4" fill="#868e97" style="fill:var(--vd-off,#868e97)"/></pattern>'
)


def hatch() -> str:
    """The pattern of classes off the scale, once on a page; it is drawn nowhere itself."""
    return (
        '<svg width="0" height="0" aria-hidden="true" focusable="false" class="defs">'
        f"<defs>{_HATCH}</defs></svg>"
    )


# --- in two minutes -----------------------------------------------------------------------------


def lead(text: Text) -> tuple[Text, Text]:
    """The first sentence of a text, and the rest. Only our own words end a sentence."""
    for i, part in enumerate(text):
        if not isinstance(part, str):
            continue
        at = _sentence_end(part)
        if not at and part.endswith(".") and i + 1 < len(text):
            after = text[i + 1]
            at = len(part) if isinstance(after, str) and after.startswith(" ") else 0
        if at:
            rest = [p for p in (part[at:], *text[i + 1 :]) if p != ""]
            if rest and isinstance(rest[0], str):
                rest[0] = rest[0].lstrip()
            return (*text[:i], part[:at]), tuple(p for p in rest if p != "")
    return text, ()


def _sentence_end(part: str) -> int:
    """Where a sentence ends inside a part: a full stop, a space and a capital or a name after it."""
    start = 0
    while (at := part.find(". ", start)) >= 0:
        after = part[at + 2 : at + 3]
        if not after or after.isupper() or after.isdigit() or after in "“(":
            return at + 1
        start = at + 2
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One line of the summary: what was found, the place of its finding, and what to do about it.

    ``like`` is how many more findings are like it. ``step`` is empty where an earlier line has said it.
    """

    place: int
    sentence: Text
    like: int
    step: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """The summary: what was found, and what a gate does.

    What was found of a class that a grader hardly gives has its rates after it, beside those of gold;
    what was found at several cuts names them, and counts none as like it.
    ``gates`` is a table of what a gate at each cut does beside gold, for a bank with one judge.
    """

    found: tuple[Found, ...]
    more: int
    gates: tuple[tuple[str, tuple[Cell, ...]], ...]

    @property
    def steps(self) -> tuple[Text, ...]:
        """What to do, in the order of what was found."""
        return tuple(f.step for f in self.found if f.step)


GATES = ("gate_lenient", "gate_harsh")
GATE_COLUMNS = (
    ("gate_false_accept", "false passes, of gold’s fails"),
    ("gate_false_reject", "false fails, of gold’s passes"),
    ("gate_accuracy", "pass or fail as gold’s"),
    ("gate_accuracy_unparsed_rejected", "if unread are rejected"),
    ("gate_accuracy_unparsed_wrong", "if unread are errors"),
    ("pass_rate", "judge passes"),
    ("", "gold passes"),
    ("pass_rate_minus_gold", "more than gold, points"),
)


def brief(document: Document) -> Brief:
    """The findings that were made, in one sentence a kind and grader, and their next steps."""
    kinds: dict[tuple[str, str], list[int]] = {}
    for i, finding in enumerate(document.findings):
        if finding.state is State.FOUND:
            kinds.setdefault((finding.code, finding.grader), []).append(i)
    # Whoever names a cut has a gate to decide on: that comes first.
    order = sorted(kinds.values(), key=lambda p: document.findings[p[0]].code not in GATES)
    found, steps = [], set[Text]()
    for places in order[:MOST_FOUND]:
        finding = document.findings[places[0]]
        cuts = _other_cuts(document, places)
        found.append(
            Found(
                place=places[0] + 1,
                sentence=(*lead(finding.sentence)[0], *_rates_beside(document, finding), *cuts),
                like=0 if cuts else len(places) - 1,
                step=() if finding.next_step in steps else finding.next_step,
            )
        )
        steps.add(finding.next_step)
    return Brief(
        found=tuple(found),
        more=sum(len(places) for places in order[MOST_FOUND:]),
        gates=tuple(_gates(document)),
    )


def _other_cuts(document: Document, places: Sequence[int]) -> Text:
    """At which other cuts the same was found, where all that is like it differs in the cut."""
    first, *others = (document.findings[i] for i in places)
    cuts = [f.cut for f in others]
    if not others or not first.cut or not all(cuts) or len({first.cut, *cuts}) < len(places):
        return ()
    where = {(f.other, f.class_, f.line, f.slice) for f in (first, *others)}
    if len(where) > 1:
        return ()
    *some, last = sorted(cuts, key=float)
    if not some:
        return (f" Also at a cut of {last}.",)
    return (f" Also at cuts of {', '.join(some)} and {last}.",)


def _rates_beside(document: Document, finding: Finding) -> Text:
    """What a lost class does to the rates: those of its grader, beside gold’s or the reference’s."""
    panel = document.panel
    if panel is None or finding.code != "class_collapse":
        return ()
    others = [g for g, r in zip(panel.graders, panel.roles, strict=True) if r == "reference"]
    beside = panel.gold or next(iter(others), "")
    if not beside or beside == finding.grader:
        return ()
    look = _Look(document)
    parts: list[Text] = []
    for rate in panel.rates[:3]:
        own, other = (look.of("rate", grader=g, class_=rate) for g in (finding.grader, beside))
        if own is None or other is None or own.number is None or other.number is None:
            continue
        words = (display(cell(own)), display(cell(other)))
        lead_in = "; of " if parts else " Its rate of "
        parts.append(
            say(
                lead_in + "{rate} is {own}, {whose} is {other}",
                rate=Name(rate),
                own=words[0],
                whose=("gold’s",) if panel.gold else (Name(beside), "’s"),
                other=words[1],
            )
        )
    return (*(p for part in parts for p in part), ".") if parts else ()


def _gates(document: Document) -> list[tuple[str, tuple[Cell, ...]]]:
    """What a gate at each cut does beside gold, one row a cut; only where there is one judge."""
    panel = document.panel
    if panel is None or not panel.checklist or not panel.gold:
        return []
    judges = [g for g in panel.graders if g != panel.gold]
    if len(judges) != 1:
        return []
    look = _Look(document)
    made = []
    for cut in panel.cuts:
        at = {"grader": judges[0], "cut": str(cut)}
        found = [
            look.of(name, **at) if name else look.of("pass_rate", **{**at, "grader": panel.gold})
            for name, _ in GATE_COLUMNS
        ]
        if found[0] is None or found[0].number is None:
            continue
        of = f" of {panel.lines}" if panel.lines else ""
        made.append((f"{cut}{of}", tuple(cell(e) for e in found)))
    return made


# --- the graders side by side -------------------------------------------------------------------


class _Look:
    """Estimates of the whole by statistic and key."""

    def __init__(self, document: Document) -> None:
        self._by_key = {(e.statistic, *e.key): e for e in document.estimates if not e.key.slice}

    def of(self, statistic: str, **key: str) -> Estimate | None:
        return self._by_key.get((statistic, *Key(**key)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One cell of the table: a number of the report with its picture, and what it is sorted by."""

    cell: Cell | None = None
    picture: str = ""
    text: Text = ()
    sort: float | None = None
    findings: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A column of the table, with what its pictures show."""

    title: Text
    says: str = ""
    numeric: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The table: its columns, the rows with the name and role of each grader, and a legend."""

    title: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[str, str, bool, tuple[Box, ...]], ...]
    legend: tuple[tuple[str, str, bool], ...]
    left_out: int
    note: Text = ()


def side_by_side(document: Document) -> Side | None:
    """The graders of a report side by side; ``None`` where the report is of something else."""
    panel = document.panel
    if panel is None or not panel.graders:
        return None
    look = _Look(document)
    kept = [i for i, g in enumerate(panel.graders) if g != panel.gold or not panel.checklist]
    shown = kept[:MOST_GRADERS]
    if len(kept) > MOST_GRADERS:  # gold, the reference and who is flagged are always there
        shown += [
            i
            for i in kept[MOST_GRADERS:]
            if panel.roles[i] in ("gold", "reference") or panel.graders[i] in panel.flagged
        ]
    build = _of_judges if panel.checklist else _of_graders
    made = build(document, panel, look, [panel.graders[i] for i in shown])
    if made is None:
        return None
    heads, boxes, note = made
    rows = tuple(
        (panel.graders[i], panel.roles[i], panel.graders[i] in panel.flagged, tuple(row))
        for i, row in zip(shown, boxes, strict=True)
    )
    return Side(
        title="Judges side by side" if panel.checklist else "Graders side by side",
        heads=tuple(heads),
        rows=rows,
        legend=_legend(panel),
        left_out=len(kept) - len(shown),
        note=note,
    )


Made = tuple[list[Head], list[list[Box]], Text]


def _legend(panel: Panel) -> tuple[tuple[str, str, bool], ...]:
    """Each class with its fill and whether it lies off the scale."""
    if panel.checklist:
        return ()
    if len(panel.scale) + len(panel.off_scale) > MOST_CLASSES:
        return ()
    made = [(c, _fill(i, panel), False) for i, c in enumerate(panel.scale)]
    return (*made, *((c, 'fill="url(#hatch)"', True) for c in panel.off_scale))


def _fill(place: int, panel: Panel) -> str:
    ramp = step(place, len(panel.scale))
    return paint("fill", f"ramp-{ramp}", RAMP[ramp][0])


def _of_graders(document: Document, panel: Panel, look: _Look, names: Sequence[str]) -> Made | None:
    classes = (*panel.scale, *panel.off_scale)
    barred = 0 < len(classes) <= MOST_CLASSES
    heads = []
    if barred:
        heads = [Head(title=("classes",), says="share of each class among the readable labels")]
    top = (panel.scale or classes or ("",))[-1]
    rates = {
        r: {g: look.of("rate", grader=g, class_=r) for g in panel.graders} for r in panel.rates[:3]
    }
    heads += [
        Head(title=say("rate of {r}", r=Name(r)), says="with its interval", numeric=True)
        for r in rates
    ]
    unread = {g: _unread(look, g) for g in names}
    anybody = any(share for _, share in unread.values() if share is not None)
    if anybody:
        heads.append(Head(title=("unread",), says="calls that gave no label", numeric=True))
    heads.append(Head(title=("findings",)))
    boxes = []
    for name in names:
        counts = [look.of("label_count", grader=name, class_=c) for c in classes]
        first = look.of("label_count", grader=name, class_=top)
        share = None
        if first is not None and first.number is not None and first.n:
            share = first.number / first.n
        row = [Box(picture=_bar(panel, classes, counts), sort=share)] if barred else []
        for by_grader in rates.values():
            row.append(
                _whisker(by_grader.get(name), list(by_grader.values()), by_grader.get(panel.gold))
            )
        if anybody:
            row.append(_unread_box(unread[name]))
        row.append(_flags(document, name))
        boxes.append(row)
    said = []
    if barred:
        said.append("Bars: shares of each grader’s readable labels, lowest class first.")
    if rates:
        said.append("Whiskers: the rate with its interval, all on one axis.")
        if panel.gold:
            said.append("The dashed line is gold’s rate.")
    return heads, boxes, (" ".join(said),) if said else ()


def _of_judges(document: Document, panel: Panel, look: _Look, names: Sequence[str]) -> Made | None:
    heads: list[Head] = []
    columns: list[list[Box]] = []
    if panel.gold:
        for statistic, title in (
            ("false_accept", "false accepts"),
            ("false_reject", "false rejects"),
        ):
            found = {g: look.of(statistic, grader=g) for g in names}
            heads.append(Head(title=(title,), says="of lines, against gold", numeric=True))
            columns.append([_whisker(found[g], list(found.values()), None) for g in names])
        by_line = {g: _by_line(document, g) for g in names}
        if any(by_line.values()):
            most = max((e for errors in by_line.values() for _, e in errors), default=0.0)
            heads.append(Head(title=("error by line",), says="one bar a line or position"))
            columns.append(
                [
                    Box(
                        picture=_bars(by_line[g], most),
                        sort=max((e for _, e in by_line[g]), default=None),
                    )
                    for g in names
                ]
            )
        # What the gate of one judge does at each cut stands in the summary, with more beside it.
        for cut in panel.cuts[:6] if len(names) > 1 else ():
            found = {g: look.of("gate_accuracy", grader=g, cut=str(cut)) for g in names}
            heads.append(
                Head(title=(f"gate at {cut}",), says="pass or fail as gold’s", numeric=True)
            )
            columns.append(
                [_whisker(found[g], list(found.values()), None, whole=True) for g in names]
            )
    else:
        for cut in panel.cuts[:6]:
            found = {g: look.of("pass_rate", grader=g, cut=str(cut)) for g in names}
            heads.append(Head(title=(f"passes at {cut}",), says="share of responses", numeric=True))
            columns.append(
                [_whisker(found[g], list(found.values()), None, whole=True) for g in names]
            )
    unread = {g: _unread(look, g) for g in names}
    if any(share for _, share in unread.values() if share is not None):
        heads.append(Head(title=("unread",), says="calls that gave no verdicts", numeric=True))
        columns.append([_unread_box(unread[g]) for g in names])
    heads.append(Head(title=("findings",)))
    columns.append([_flags(document, g) for g in names])
    return heads, [list(row) for row in zip(*columns, strict=True)], ()


def _flags(document: Document, grader: str) -> Box:
    """The findings that name the grader, each kind once, with the place of its first."""
    kinds: dict[str, list[int]] = {}
    for i, finding in enumerate(document.findings, 1):
        if finding.state is State.FOUND and finding.grader == grader:
            kinds.setdefault(finding.code, []).append(i)
    made = tuple(
        (places[0], code.replace("_", " ") + (f" × {len(places)}" if len(places) > 1 else ""))
        for code, places in kinds.items()
    )
    return Box(findings=made, sort=float(sum(map(len, kinds.values()))))


def _unread(look: _Look, grader: str) -> tuple[float, float | None]:
    """How many calls gave no label, and their share among those that were asked."""
    read = look.of("outcome_count", grader=grader, class_="label")
    if read is None or read.number is None or read.n is None:
        return 0.0, None
    missing = look.of("outcome_count", grader=grader, class_="missing")
    asked = read.n - (missing.number or 0.0 if missing is not None else 0.0)
    lost = asked - read.number
    return lost, (lost / asked if asked else None)


def _unread_box(found: tuple[float, float | None]) -> Box:
    lost, share = found
    if share is None:
        return Box(text=("–",))
    picture = _svg(
        f'<rect x="0" y="6" width="{num(WIDTH)}" height="6" fill="currentColor" fill-opacity=".12"/>'
        f'<rect x="0" y="6" width="{num(WIDTH * share)}" height="6" {paint("fill", "mark", "#b3470f")}/>',
        f"{percent(share)} unread",
    )
    return Box(picture=picture, text=(f"{percent(share)} ({counted(lost)})",), sort=share)


def _svg(body: str, says: str, *, width: float = WIDTH) -> str:
    return (
        f'<svg class="small" viewBox="0 0 {num(width)} {num(HEIGHT)}" role="img" '
        f'aria-label="{clean(says)}" fill="currentColor">{body}</svg>'
    )


def _bar(panel: Panel, classes: Sequence[str], counts: Sequence[Estimate | None]) -> str:
    numbers = [e.number if e is not None else None for e in counts]
    total = next((e.n for e in counts if e is not None and e.n), None) or sum(
        n or 0 for n in numbers
    )
    if not total:
        return _svg("", "no labels")
    x, parts, said = 0.0, [], []
    for i, (class_, count) in enumerate(zip(classes, numbers, strict=True)):
        if count is None:
            said.append(f"{class_} not printed")
            continue
        width = WIDTH * count / total
        fill = _fill(i, panel) if i < len(panel.scale) else 'fill="url(#hatch)"'
        parts.append(
            f'<rect x="{num(x)}" y="2" width="{num(width)}" height="14" {fill}{EDGE}>'
            f"<title>{clean(class_)}: {counted(count)} of {counted(total)} "
            f"({percent(count / total)})</title></rect>"
        )
        x += width
        said.append(f"{class_} {counted(count)}")
    return _svg("".join(parts), ", ".join(said))


def _whisker(
    estimate: Estimate | None,
    beside: Sequence[Estimate | None],
    gold: Estimate | None,
    *,
    whole: bool = False,
) -> Box:
    """A share with its interval on the axis of its column, from 0 to where all of them fit."""
    if estimate is None:
        return Box(text=("–",))
    shown = cell(estimate)
    if estimate.number is None:
        return Box(cell=shown)
    highest = max(
        (
            max(e.number, e.interval.high if e.interval else 0.0)
            for e in beside
            if e is not None and e.number is not None
        ),
        default=1.0,
    )
    end = 1.0 if whole else _nice(highest)
    inner = WIDTH - 8

    def at(share: float) -> float:
        return 4 + inner * min(max(share, 0.0), end) / end

    parts = [
        f'<path d="M4 14.5h{num(inner)}"{AXIS}/>',
    ]
    if gold is not None and gold.number is not None:
        parts.append(f'<path d="M{num(at(gold.number))} 1v15"{GOLD}/>')
    interval = estimate.interval
    if interval is not None:
        low, high = at(interval.low), at(interval.high)
        parts.append(
            f'<path d="M{num(low)} 8h{num(high - low)}M{num(low)} 5v6M{num(high)} 5v6"{WHISKER}/>'
        )
    parts.append(
        f'<circle cx="{num(at(estimate.number))}" cy="8" r="3.2" {paint("fill", "mark", "#b3470f")}/>'
    )
    says = f"{display(shown)} {display_interval(shown)}".strip()
    return Box(
        cell=shown,
        picture=_svg("".join(parts), f"{says}; axis from 0 to {percent(end, 0)}"),
        sort=estimate.number,
    )


def _nice(highest: float) -> float:
    """The end of an axis from 0 on which this still fits."""
    return next((e for e in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75) if highest <= e), 1.0)


def _by_line(document: Document, grader: str) -> list[tuple[str, float]]:
    """A judge's error on each line; by position where every question has lines of its own."""
    found = [
        (e.key.line, e.number)
        for e in document.estimates
        if e.statistic == "element_error"
        and e.key.grader == grader
        and e.key.line
        and not e.key.slice
        and e.number is not None
    ]
    lines = [f for f in found if not f[0].startswith("position:")]
    positions = [(n.removeprefix("position:"), e) for n, e in found if n.startswith("position:")]
    chosen = lines if lines and len(lines) <= MOST_LINES else positions
    return chosen if len(chosen) <= MOST_LINES else []


def _bars(errors: Sequence[tuple[str, float]], most: float) -> str:
    if not errors:
        return ""
    pitch = WIDTH / len(errors)
    thick = min(pitch * 0.7, 12)
    parts = [f'<path d="M0 16.5h{num(WIDTH)}"{AXIS}/>']
    for i, (line, error) in enumerate(errors):
        height = 15 * error / most if most else 0.0
        parts.append(
            f'<rect x="{num(i * pitch + (pitch - thick) / 2)}" y="{num(16 - height)}" '
            f'width="{num(thick)}" height="{num(height)}" {paint("fill", "mark", "#b3470f")}>'
            f"<title>{clean(line)}: {percent(error)}</title></rect>"
        )
    said = ", ".join(f"{line} {percent(error)}" for line, error in errors)
    return _svg("".join(parts), f"error by line: {said}")
