"""Laws that every statistic obeys, found by listing the families: nothing is named here.

A new family is under these laws by being there. Its statistics must occur in the panels of labels or
the banks of verdicts that are made here; where they need more than these hold, the panels and banks
grow.
"""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import voirdire as vd
from tests.checklists import verdicts
from tests.conftest import run_python
from voirdire import plugins
from voirdire.auditing import Audit, scenes
from voirdire.checklist import Checklist
from voirdire.estimand import Describes, Estimand, Unit
from voirdire.estimate import KEY_COLUMNS
from voirdire.labels import Grader, Labels
from voirdire.options import Options
from voirdire.scene import Scene
from voirdire.stats.base import Family, Part
from voirdire.tally import Tally

FAMILIES = plugins.load("stats", Family)
OF_LABELS = [f for f in FAMILIES if "labels" in f.kinds]
OF_CHECKLISTS = [f for f in FAMILIES if "checklist" in f.kinds]
ESTIMANDS: dict[str, Estimand] = {
    s.name: s.estimand for family in FAMILIES for s in family.statistics
}
METHODS = ("auto", "bootstrap")
LABEL = "label"
OUTCOMES = ("unparsed", "error", "missing")
CLASSES = (string.ascii_lowercase, string.digits[1:])
PAIR = ("model_1", "model_2", "tie")

# Panels are small and are printed a line a response: a failing one is shown as it is, not shrunk, since
# that takes minutes.
few = settings(
    max_examples=6,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)


# --- panels -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One call: who labelled what, with which class (or how the call ended instead)."""

    response: str
    grader: str
    label: str | None
    outcome: str = LABEL
    cluster: str | None = None
    weight: float | None = None
    stratum: str | None = None
    topic: str | None = None
    part: str | None = None
    vote: str | None = None
    step: str | None = None
    order: str | None = None
    phrasing: str | None = None


@dataclass(frozen=True, repr=False)
class Panel:
    """Rows of labels with the options to read them by."""

    rows: tuple[Row, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def graders(self) -> list[str]:
        return sorted({r.grader for r in self.rows})

    @property
    def weighted(self) -> bool:
        return any(r.weight is not None for r in self.rows)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        """One line a response, so that a failing example can be read."""
        lines: dict[str, list[str]] = {}
        for r in self.rows:
            about = [r.cluster, r.stratum, r.topic, r.part, r.weight]
            key = " ".join(str(x) for x in (r.response, *about) if x is not None)
            vote = "".join(f"/{x}" for x in (r.phrasing, r.vote, r.step) if x)
            lines.setdefault(key, []).append(f"{r.grader}{vote}:{r.label or r.outcome}")
        return "\n".join(
            [str(dict(self.options)), *(f"{k}  {' '.join(v)}" for k, v in lines.items())]
        )

    def frame(self) -> pl.DataFrame:
        columns: dict[str, list[Any]] = {
            name: [getattr(r, name) for r in self.rows] for name in Row.__dataclass_fields__
        }
        used = {n: v for n, v in columns.items() if n == LABEL or any(x is not None for x in v)}
        kinds = {n: pl.Float64 if n == "weight" else pl.String for n in used}
        return pl.DataFrame(used, schema=kinds)

    def labels(self, **more: Any) -> Labels:
        named = {c: c for c in ("response", "grader", "label", "outcome")}
        named |= {
            c: c
            for c in ("cluster", "weight", "stratum", "vote", "step", "phrasing")
            if any(getattr(r, c) is not None for r in self.rows)
        }
        return vd.read(self.frame(), layout="long", **{**named, **self.options, **more})

    def audit(self, **more: Any) -> Audit:
        return vd.audit(self.labels(**more), replicates=100)

    def changed(self, rows: Sequence[Row], **options: Any) -> Panel:
        return Panel(tuple(rows), {**self.options, **options})


@st.composite
def panels(
    draw: st.DrawFn,
    *,
    weights: str = "",
    fewest_graders: int = 2,
    most_responses: int = 14,
    steps: bool | None = None,
    ordered: bool | None = None,
    tagged: bool | None = None,
    fewest_classes: int = 2,
    pairs: bool = False,
    reworded: bool = False,
) -> Panel:
    """Small panels: 2 to 5 graders and classes, with or without clusters, gold, order and gaps.

    ``pairs``: votes are verdicts on pairs, each shown in both orders. ``reworded``: the first graders
    are asked under two phrasings or three.
    """
    k = len(PAIR) if pairs else draw(st.integers(fewest_classes, 5))
    classes = PAIR if pairs else tuple(draw(st.sampled_from(CLASSES))[:k])
    graders = [f"g{i}" for i in range(draw(st.integers(fewest_graders, 5)))]
    gold = draw(st.sampled_from(["", "gold"]))
    reference = draw(st.sampled_from(["", graders[-1]]))
    ordered = draw(st.booleans()) if ordered is None else ordered
    clustered = draw(st.booleans())
    stratified = clustered and draw(st.integers(0, 4)) == 0
    tagged = draw(st.integers(0, 3)) == 0 if tagged is None else tagged
    votes = not pairs and draw(st.integers(0, 4)) == 0
    stepwise = not votes and (draw(st.integers(0, 4)) == 0 if steps is None else steps)
    wordings = ("x", "y", "z")[: draw(st.integers(2, 3))] if reworded else ()
    loyal = draw(st.integers(0, 3))  # how often out of 4 a grader repeats the response's class
    cell = st.tuples(st.integers(0, 3), st.integers(0, k - 1), st.integers(0, 11))
    rows: list[Row] = []
    for i in range(draw(st.integers(1, most_responses))):
        truth = draw(st.integers(0, k - 1))
        about = Row(
            response=f"r{i:02}",
            grader="",
            label=None,
            cluster=f"c{draw(st.integers(0, 5))}" if clustered else None,
            topic=draw(st.sampled_from(["x", "y"])) if tagged else None,
            part="vw"[i % 2] if tagged else None,
        )
        if stratified and about.cluster is not None:
            about = replace(about, stratum=f"s{int(about.cluster[1:]) % 2}")
        if weights == "frequency":
            about = replace(about, weight=float(draw(st.integers(1, 3))))
        elif weights == "design":
            about = replace(about, weight=draw(st.sampled_from([0.5, 1.0, 1.75, 3.0])))
        for grader in [*graders, *([gold] if gold else [])]:
            several = ("1", "2", "3") if votes and grader == graders[0] else (None,)
            worded = (wordings if grader in graders[:2] else ()) or (None,)
            for phrasing, vote in product(worded, ("ab", "ba") if pairs else several):
                keeps, other, luck = draw(cell)
                one = replace(about, grader=grader, vote=vote or ("1" if votes else None))
                one = replace(one, phrasing=phrasing)
                one = replace(one, order=vote if pairs else None)
                if luck == 0:
                    continue  # nobody knows of this call
                if luck == 1:
                    rows.append(replace(one, outcome=OUTCOMES[other % len(OUTCOMES)]))
                else:
                    rows.append(replace(one, label=classes[truth if keeps < loyal else other]))
    if stepwise:
        ruled = [replace(r, step="2", label=draw(st.sampled_from(classes))) for r in rows[::3]]
        rows = [replace(r, step="1") for r in rows] + [replace(r, outcome=LABEL) for r in ruled]
    assume(any(r.label is not None for r in rows))
    present = {r.grader for r in rows}
    options: dict[str, Any] = {"scale": list(classes)} if ordered else {}
    if gold in present and gold:
        options["gold"] = gold
    if reference in present and reference:
        options["reference"] = reference
    if weights:
        options["weight_kind"] = weights
    if tagged:
        options |= {"by": ["topic"], "standardise": ["part"]}
        if any(r.topic == "x" for r in rows):
            options["drop"] = ["topic=x"]
    return Panel(tuple(rows), options)


def worded(n: int = 12, *, votes: int = 1, clusters: int = 0, gap: int = 0) -> Panel:
    """Scores of two graders under three phrasings, beside gold; every ``gap``-th call is unread."""
    random = np.random.default_rng(11)
    rows = [
        Row(
            f"r{i:02}",
            "gold",
            str(i % 4),
            cluster=f"c{i % clusters}" if clusters else None,
            vote="1",
        )
        for i in range(n)
    ]
    for i, grader, phrasing, vote in product(range(n), "gh", range(3), range(votes)):
        score = min(max(i % 4 + phrasing - 1 + int(random.integers(-1, 2)), 0), 4)
        read = not gap or len(rows) % gap
        about = replace(rows[i], grader=grader, phrasing="xyz"[phrasing], vote=str(vote + 1))
        rows.append(
            replace(about, label=str(score))
            if read
            else replace(about, label=None, outcome="error")
        )
    return Panel(tuple(rows), {"gold": "gold"})


WORDED = {
    "crossed": worded(),
    "cells missing": worded(gap=7),
    "votes": worded(votes=2),
    "votes in clusters with cells missing": worded(votes=2, clusters=4, gap=9),
    "clusters": worded(clusters=4),
    "clusters of several sizes": worded(n=13, clusters=4),
}


def plain(*labels: str, graders: str = "gh", **options: Any) -> Panel:
    """A panel written out: one text of classes a grader, ``.`` for no row, ``?`` for unparsed."""
    rows = [
        Row(f"r{i:02}", g, None if c == "?" else c, "unparsed" if c == "?" else LABEL)
        for g, text in zip(graders, labels, strict=True)
        for i, c in enumerate(text)
        if c != "."
    ]
    return Panel(tuple(rows), options)


DEGENERATE = {
    "one grader": plain("abab", graders="g", scale="a,b"),
    "one response": plain("a", "b"),
    "one response that all label alike": plain("a", "a", scale="a,b,c"),
    "one class": plain("aaaaaa", "aaaaaa"),
    "one class of a scale": plain("aaaaaa", "aaaaaa", scale="a,b,c"),
    "the top class alone": plain("ccccc", "ccccc", scale="a,b,c"),
    "no overlap": plain("ab..", "..ab", scale="a,b"),
    "no overlap with gold": plain("ab..", "ab..", "..ab", graders="ghi", gold="i", scale="a,b"),
    "nothing readable but one label": plain("????", "???a", scale="a,b"),
    "a grader that was never read": plain("abab", "????", "abba", graders="ghi", reference="h"),
    "gold that was never read": plain("abab", "abba", "????", graders="ghi", gold="i"),
    "total disagreement": plain("aaaaa", "bbbbb", scale="a,b"),
    "opposite labels": plain("ababab", "bababa", reference="h"),
    "two clusters": Panel(
        tuple(
            replace(r, cluster="c" + r.response[-1]) for r in plain("ab", "ba", graders="gh").rows
        )
    ),
    "one cluster": Panel(tuple(replace(r, cluster="c") for r in plain("abcab", "abbac").rows)),
    "a stratum of one cluster": Panel(
        tuple(
            replace(r, cluster="c" + r.response, stratum="s" if r.response == "r00" else "t")
            for r in plain("abcab", "abbac").rows
        )
    ),
    "a grader with weights of zero": Panel(
        tuple(
            replace(r, weight=float(r.response < "r02"))
            for r in plain("ab..", "..ba", "abba", graders="ghi").rows
        ),
        {"weight_kind": "design"},
    ),
    "a grader with copies of zero": Panel(
        tuple(
            replace(r, weight=float(r.response < "r02"))
            for r in plain("ab..", "..ba", "abba", graders="ghi").rows
        ),
        {"weight_kind": "frequency"},
    ),
    "a scale of six, of which two are used": plain(
        "abababab", "aaaabbbb", scale="a,b,c,d,e,f", reference="h"
    ),
    "only classes outside of the scale": plain("xxx", "xxx", scale="a,b", off_scale="x"),
}


# --- results ------------------------------------------------------------------------------------


def table(audit: Audit) -> dict[tuple[str, ...], dict[str, Any]]:
    """The results by their first eight columns."""
    found = {tuple(r[c] for c in KEY_COLUMNS): r for r in audit.results.iter_rows(named=True)}
    assert len(found) == len(audit.results)
    return found


def written(audit: Audit, folder: Path, name: str = "audit.json") -> bytes:
    audit.write(folder / name)
    return (folder / name).read_bytes()


def sane(audit: Audit) -> None:
    """What holds of any results table, whatever the labels."""
    rows = audit.results
    assert rows.select(KEY_COLUMNS).is_unique().all()
    for row in rows.iter_rows(named=True):
        estimand = ESTIMANDS[row["statistic"]]
        value, low, high = row["value"], row["low"], row["high"]
        assert (value is None) == bool(row["reason"]), row
        assert row["describes"] == str(estimand.describes)
        assert (row["method"] == "") == (low is None) == (high is None) == (row["level"] is None)
        for number in (value, low, high, row["n"]):
            assert number is None or math.isfinite(number), row
        rounding = 1e-12
        for number in (value, low, high):
            if number is None:
                continue
            assert estimand.low is None or number >= estimand.low - rounding, row
            assert estimand.high is None or number <= estimand.high + rounding, row
        if low is not None:
            assert value is not None, row
            assert low < high, row
            # Percentiles of a biased statistic may leave it out (omega_total and the raw components of
            # a crossed design do so, now and then).
            if not row["method"].startswith("percentile"):
                assert low - rounding <= value <= high + rounding, row


def close(one: Mapping[str, Any], other: Mapping[str, Any], columns: Sequence[str]) -> bool:
    """Whether rows are the same in these columns but for rounding."""
    for column in columns:
        a, b = one[column], other[column]
        if isinstance(a, float) and isinstance(b, float):
            if not math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9):
                return False
        elif a != b:
            return False
    return True


# --- what holds of any results ------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@few
@given(
    st.one_of(
        panels(),
        panels(weights="design"),
        panels(weights="frequency"),
        panels(pairs=True, ordered=False, steps=False),
        panels(reworded=True),
        panels(reworded=True, weights="frequency", steps=False),
    )
)
def test_values_and_intervals_are_within_bounds_or_undefined_with_a_reason(
    method: str, panel: Panel
) -> None:
    sane(panel.audit(interval=method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_labels_leave_values_undefined_with_a_reason(name: str, method: str) -> None:
    sane(DEGENERATE[name].audit(interval=method))


def test_every_statistic_of_every_family_occurs_in_the_panels() -> None:
    seen: Counter[str] = Counter()
    defined: Counter[str] = Counter()

    @settings(few, max_examples=25)
    @given(
        st.one_of(
            panels(),
            panels(ordered=True, fewest_classes=5, tagged=False),
            panels(ordered=True, steps=True, tagged=False),
            panels(ordered=True, tagged=True, steps=False),
            panels(weights="design", tagged=False),
            panels(pairs=True, ordered=False, steps=False, tagged=False),
        )
    )
    def look(panel: Panel) -> None:
        rows = panel.audit().results
        seen.update(set(rows["statistic"]))
        defined.update(set(rows.filter(pl.col("value").is_not_null())["statistic"]))

    look()
    for panel in WORDED.values():
        rows = panel.audit().results
        seen.update(set(rows["statistic"]))
        defined.update(set(rows.filter(pl.col("value").is_not_null())["statistic"]))
    assert set(seen) <= set(ESTIMANDS), "results hold a statistic that no family lists"
    for family in OF_LABELS:
        names = {s.name for s in family.statistics}
        assert names <= set(seen), f"{family.name}: {names - set(seen)} occur in no panel"
        assert names <= set(defined), f"{family.name}: {names - set(defined)} always undefined"


def test_every_family_lists_statistics_of_some_kind_of_labels() -> None:
    for family in FAMILIES:
        assert family.statistics, f"the family {family.name} lists no statistic"
        # Of a comparison the laws stand in test_comparing.py: no audit has a scene of its kind.
        assert set(family.kinds) & {"labels", "checklist", "comparison"}, (
            f"{family.name} is under no law"
        )


def test_a_name_is_used_by_one_statistic_only() -> None:
    names = Counter(s.name for family in FAMILIES for s in family.statistics)
    assert max(names.values()) == 1


# --- order and names ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@few
@given(
    st.one_of(
        *(panels(weights=w, steps=False) for w in ("", "design", "frequency")),
        panels(pairs=True, ordered=False, steps=False),
        panels(reworded=True, steps=False),
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_matter(method: str, panel: Panel, random: Any) -> None:
    # But for steps of decisions: these come in the order of the rows, which is what they mean.
    rows = list(panel.rows)
    random.shuffle(rows)
    one, other = panel.audit(interval=method), panel.changed(rows).audit(interval=method)
    assert one.results.equals(other.results)
    assert one.findings == other.findings


@pytest.mark.parametrize("method", METHODS)
@few
@given(
    st.one_of(
        panels(),
        panels(weights="design"),
        panels(weights="frequency"),
        panels(reworded=True, steps=False),
    ),
    st.permutations(list(range(18))),
)
def test_the_names_of_responses_and_clusters_do_not_matter(
    method: str, panel: Panel, order: list[int]
) -> None:
    def renamed(r: Row) -> Row:
        cluster = r.cluster and f"cluster {order[int(r.cluster[1:])]}"
        return replace(r, response=f"response {order[int(r.response[1:])]}", cluster=cluster)

    other = panel.changed([renamed(r) for r in panel.rows])
    assert panel.audit(interval=method).results.equals(other.audit(interval=method).results)


@pytest.mark.parametrize("method", METHODS)
def test_nor_do_they_where_weights_are_no_round_numbers(method: str) -> None:
    # 0.1 + 0.2 + 0.3 is another number than 0.3 + 0.2 + 0.1, and another row in another place.
    weights = (0.1, 0.2, 0.3, 0.7, 1.1)
    rows = [
        Row(
            f"r{i:02}",
            grader,
            "ab"[(i * j) % 3 % 2],
            cluster=f"c{i // 5}",
            weight=weights[i % 5],
        )
        for i in range(30)
        for j, grader in enumerate("ghi", 1)
    ]
    panel = Panel(tuple(rows), {"scale": "a,b"})
    other = panel.changed([replace(r, response=f"r{99 - int(r.response[1:])}") for r in rows])
    one, again = table(panel.audit(interval=method)), table(other.audit(interval=method))
    assert one.keys() == again.keys()
    for key, row in one.items():
        assert close(row, again[key], list(row)), key


def renamed_graders(panel: Panel, names: Mapping[str, str]) -> Panel:
    options = {k: names[v] if k in ("gold", "reference") else v for k, v in panel.options.items()}
    rows = [replace(r, grader=names[r.grader]) for r in panel.rows]
    return Panel(tuple(rows), options)


@pytest.mark.parametrize("method", METHODS)
@few
@given(st.one_of(panels(), panels(weights="design")))
def test_names_of_graders_in_the_same_order_change_no_number(method: str, panel: Panel) -> None:
    names = {g: f"Mr {g}" for g in panel.graders}
    other = renamed_graders(panel, names).audit(interval=method).results
    back = {new: old for old, new in names.items()}
    renamed = other.with_columns(pl.col("grader").replace(back), pl.col("other").replace(back))
    expected = panel.audit(interval=method).results
    assert renamed.sort(KEY_COLUMNS).equals(expected.sort(KEY_COLUMNS))


@few
@given(panels(fewest_graders=3), st.permutations(list(range(6))))
def test_names_of_graders_in_another_order_change_no_value(panel: Panel, order: list[int]) -> None:
    # A pair stands in grader order, so it may turn round: what is symmetric is looked up both ways.
    # Drawn clusters follow the order of the cells, so replicates are not compared.
    names = {g: f"x{order[i]}" for i, g in enumerate(panel.graders)}
    back = {new: old for old, new in names.items()}
    one = table(panel.audit())
    other = {
        tuple(back.get(part, part) for part in key): row
        for key, row in table(renamed_graders(panel, names).audit()).items()
    }
    assert len(one) == len(other)
    columns = ["n", "clusters", "value", "low", "high", "level", "method", "reason"]
    for key, row in one.items():
        if key in other:
            assert close(row, other[key], columns), key
            continue
        turned = other.get((key[0], key[2], key[1], *key[3:]))
        if turned is not None and any(close(row, t, columns) for t in (turned, opposite(turned))):
            continue
        # Of equal comparisons the first by name decides: another grader, the same value.
        same = [r for k, r in other.items() if (*k[:2], *k[3:]) == (*key[:2], *key[3:])]
        assert any(close(row, r, ["value", "reason"]) for r in same), key


def opposite(row: Mapping[str, Any]) -> dict[str, Any]:
    """What one has more than the other is what the other has less."""
    turned = {"value": row["value"], "low": row["high"], "high": row["low"]}
    return {**row, **{column: None if x is None else -x for column, x in turned.items()}}


# --- shards -------------------------------------------------------------------------------------


def base(panel: Panel, half: str) -> Iterator[Row]:
    """Rows of each half in which every grader gives every class, and gaps of every size occur."""
    classes = sorted({r.label for r in panel.rows if r.label is not None})
    graders = panel.graders
    about = panel.rows[0]
    for c, class_ in enumerate(classes):
        for size in range(1, len(graders) + 1):
            for start in range(len(graders)):
                i = (c * len(graders) + size) * len(graders) + start
                for j in range(size):
                    one = replace(
                        about,
                        response=f"{half}{i:04}",
                        grader=graders[(start + j) % len(graders)],
                        label=class_,
                        outcome=LABEL,
                        cluster=about.cluster and f"{half} {i % 3}",
                        stratum=about.stratum and f"s{i % 3}",
                        topic=about.topic and "xy"[i % 2],
                        part=about.part and "vw"[i // 2 % 2],
                    )
                    for step in ("1", "2") if about.step else (None,):
                        yield replace(one, step=step)


def parts_of(scene: Scene, families: Sequence[Family]) -> dict[tuple[Any, ...], Part]:
    found: dict[tuple[Any, ...], Part] = {}
    for family in families:
        for part in family.parts(scene):
            key = (family.name, tuple((s.name, keys) for s, keys in part.asks))
            assert key not in found
            found[key] = part
    return found


def assert_same(one: Tally, other: Tally, what: object) -> None:
    for column in ("rows", "clusters", "strata", "sizes", "total", "size"):
        assert np.array_equal(getattr(one, column), getattr(other, column)), (what, column)


@settings(few, max_examples=5)
@given(st.one_of(panels(), panels(weights="design"), panels(weights="frequency")))
def test_the_tallies_of_two_halves_add_up_to_the_tally_of_the_whole(panel: Panel) -> None:
    def half_of(row: Row) -> str:
        return "pq"[int((row.cluster or row.response)[1:]) % 2]

    panel = panel.changed(
        panel.rows, **({"scale": panel.options["scale"]} if "scale" in panel.options else {})
    )
    rows = {h: [*base(panel, h), *(r for r in panel.rows if half_of(r) == h)] for h in "pq"}
    whole, halves = (
        scenes(panel.changed([*rows["p"], *rows["q"]]).labels()),
        [scenes(panel.changed(rows[h]).labels()) for h in "pq"],
    )
    of_whole = {s.slice: s for s in (whole[0], *whole[1])}
    of_halves = [{s.slice: s for s in (h[0], *h[1])} for h in halves]
    for name, scene in of_whole.items():
        first, second = (parts_of(h[name], OF_LABELS) for h in of_halves)
        for key, part in parts_of(scene, OF_LABELS).items():
            if part.tally is None:
                assert part.totals is not None
                # Of counts without clusters a half may hold fewer kinds.
                continue
            a, b = first[key].tally, second[key].tally
            assert a is not None
            assert b is not None
            assert_same(a + b, part.tally, key)
            assert_same(b + a, part.tally, key)


@few
@given(st.one_of(panels(), panels(weights="frequency")))
def test_counts_of_all_slices_add_up_to_the_whole(panel: Panel) -> None:
    rows = [replace(r, topic="xy"[int(r.response[1:]) % 2]) for r in panel.rows]
    counts = (
        panel.changed(rows, by=["topic"])
        .audit()
        .results.filter(
            pl.col("statistic").is_in([n for n, e in ESTIMANDS.items() if e.unit is Unit.COUNT]),
            pl.col("describes") != "panel",
        )
    )
    key = ["statistic", "grader", "other", "class", "to_class"]
    whole = counts.filter(pl.col("slice") == "").select(*key, "value")
    sums = counts.filter(pl.col("slice") != "").group_by(key).agg(pl.col("value").sum())
    both = whole.join(sums, on=key, how="left", validate="1:1")
    for row in both.iter_rows(named=True):
        assert row["value"] == (row["value_right"] or 0), row


# --- weights ------------------------------------------------------------------------------------


def doubled(panel: Panel) -> Panel:
    """Each response as often as its frequency weight says, without weights."""
    rows = [
        replace(r, response=f"{r.response}-{i}", weight=None)
        for r in panel.rows
        for i in range(int(r.weight or 0))
    ]
    options = {k: v for k, v in panel.options.items() if k != "weight_kind"}
    return Panel(tuple(rows), options)


@pytest.mark.parametrize("method", METHODS)
@few
@given(panels(weights="frequency"))
def test_a_frequency_weight_of_two_is_the_row_twice(method: str, panel: Panel) -> None:
    one, other = panel.audit(interval=method), doubled(panel).audit(interval=method)
    assert table(one) == table(other)


def test_a_frequency_weight_of_two_is_the_row_twice_in_its_cluster() -> None:
    # Declared clusters of one response each stay as many when the response counts twice.
    rows = plain("abab", "abba", "aabb", graders="ghi").rows
    panel = Panel(
        tuple(replace(r, cluster=f"c {r.response}", weight=2.0) for r in rows),
        {"weight_kind": "frequency"},
    )
    assert table(panel.audit()) == table(doubled(panel).audit())


@few
@given(panels())
def test_design_weights_of_one_are_no_weights(panel: Panel) -> None:
    weighed = panel.changed([replace(r, weight=1.0) for r in panel.rows], weight_kind="design")
    one, other = table(panel.audit()), table(weighed.audit())
    assert one.keys() <= other.keys()
    for key, row in one.items():
        assert close(row, other[key], ["value", "n", "clusters", "reason"]), key


# --- a grader compared with itself --------------------------------------------------------------


@few
@given(panels())
def test_a_grader_agrees_perfectly_with_its_copy(panel: Panel) -> None:
    copied = "g0"
    rows = [r for r in panel.rows if r.grader == copied]
    assume(any(r.label is not None for r in rows))
    options = {k: v for k, v in panel.options.items() if k not in ("gold", "reference")}
    both = [*rows, *(replace(r, grader="copy") for r in rows)]
    at_most: dict[str, set[float | None]] = {}
    for role in ({}, {"reference": "copy"}, {"gold": "copy"}):
        for row in Panel(tuple(both), {**options, **role}).audit().results.iter_rows(named=True):
            compares = row["grader"] and row["other"]
            panel_wide = not row["grader"] and row["describes"] == "panel"
            if (compares or panel_wide) and row["value"] is not None:
                at_most.setdefault(row["statistic"], set()).add(row["value"])
    perfect = ("agreement", "class_agreement", "brennan_prediger")
    coefficients = ("cohen_", "scott_", "gwet_", "krippendorff_", "weighted_kappa", "fleiss_")
    for name, values in at_most.items():
        top = ESTIMANDS[name].high
        if name in perfect or name.startswith(coefficients):
            assert values == {top}, name
        elif name.startswith(("moved", "found", "cumulative_share", "rate_range", "rate_iqr")):
            assert values == {0.0}, name
        elif name in ("collapse_ratio", "rate_max_over_min"):
            assert values == {1.0}, name


# --- banks of verdicts --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """A bank: verdicts of each grader, responses × lines (nan: missing), and how to read them."""

    graders: Mapping[str, np.ndarray]
    questions: Sequence[str] | None = None
    clusters: Sequence[str] | None = None
    weights: Sequence[float] | None = None
    lengths: Mapping[str, int] | None = None
    stratified: bool = False
    votes: int = 1  # of the judges, on every line
    phrasings: int = 1  # which the votes are of, turn and turn about
    unasked: frozenset[tuple[str, int]] = frozenset()  # graders and responses without a row
    missing: frozenset[str] = frozenset()  # graders of whom only missing verdicts are known
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def responses(self) -> int:
        return len(next(iter(self.graders.values())))

    def labels(self) -> Labels:
        labels = verdicts(
            self.graders,
            questions=self.questions,
            clusters=self.clusters,
            weights=self.weights,
            lengths=self.lengths,
            **self.options,
        )
        call = pl.struct(pl.col("grader").cast(pl.String), "response")
        absent = [{"grader": g, "response": f"r{i:06d}"} for g, i in sorted(self.unasked)]
        frame = labels.frame
        if absent:
            frame = frame.filter(~call.is_in(absent))
        if self.missing:
            gone = pl.col("grader").cast(pl.String).is_in(sorted(self.missing))
            kind = frame.schema["outcome"]
            frame = frame.with_columns(
                pl.when(gone & (pl.col("outcome") != "label"))
                .then(pl.lit("missing", dtype=kind))
                .otherwise("outcome")
                .alias("outcome")
            )
        if self.stratified:
            frame = frame.with_columns(("s" + pl.col("cluster").str.slice(-1)).alias("stratum"))
        if self.votes > 1:
            frame = pl.concat(
                [frame, *(self._voted(frame, vote) for vote in range(2, self.votes + 1))]
            )
        if self.phrasings > 1:
            vote = pl.col("vote").fill_null("1").cast(pl.Int64) - 1
            worded = pl.format("p{}", vote % self.phrasings)
            is_gold = pl.col("grader").cast(pl.String) == "gold"
            frame = frame.with_columns(
                pl.when(is_gold).then(None).otherwise(worded).alias("phrasing"),
                (vote // self.phrasings + 1).cast(pl.String).alias("vote"),
            )
        return replace(labels, frame=frame)

    def _voted(self, frame: pl.DataFrame, vote: int) -> pl.DataFrame:
        """Another vote of the judges, of which some turn round and some were not read."""
        chance = pl.Series("chance", np.random.default_rng(vote).random(len(frame)))
        turned = pl.when(pl.col("label") == "1").then(pl.lit("0")).otherwise(pl.lit("1"))
        said = pl.col("outcome") == "label"
        gone = said & (pl.col("chance") > 0.95)
        return (
            frame.with_columns(chance)
            .with_columns(
                pl.when(said & (pl.col("chance") < 0.2))
                .then(turned.cast(frame.schema["label"]))
                .when(~gone)
                .then("label")
                .alias("label"),
                pl.when(gone)
                .then(pl.lit("unparsed", dtype=frame.schema["outcome"]))
                .otherwise("outcome")
                .alias("outcome"),
                pl.lit(str(vote)).alias("vote"),
            )
            .filter(pl.col("grader").cast(pl.String) != "gold")
            .select(frame.columns)
        )

    def repeated(self, times: Sequence[int]) -> Verdicts:
        """Every response so many times, in its place."""
        at = np.repeat(np.arange(self.responses), times)

        def again(values: Sequence[Any] | None) -> list[Any] | None:
            return None if values is None else [values[i] for i in at.tolist()]

        return replace(
            self,
            graders={g: m[at] for g, m in self.graders.items()},
            questions=again(self.questions),
            clusters=again(self.clusters),
            weights=again(self.weights),
            unasked=frozenset((g, j) for j, i in enumerate(at) for g, u in self.unasked if u == i),
        )


def drawn(
    seed: int,
    *,
    responses: int = 18,
    lines: int = 4,
    judges: int = 1,
    gold: bool = True,
    own: int = 0,
    clusters: int = 0,
    uneven: bool = False,
    gaps: bool = False,
    weights: str = "",
    stratified: bool = False,
    **options: Any,
) -> Verdicts:
    """A bank whose judges err now and then. ``own`` questions have their own checklists.

    ``gaps``: missing lines, unparsed rows of judges and of gold, and calls that nobody knows of.
    """
    random = np.random.default_rng(seed)
    share = random.random((responses, 1))
    truth = (random.random((responses, lines)) < 0.1 + 0.8 * share).astype(np.float64)
    graders = {f"j{i}": truth.copy() for i in range(judges)}
    unasked: set[tuple[str, int]] = set()
    for matrix in graders.values():
        errs = random.random(truth.shape) < random.choice([0.1, 0.2])
        matrix[errs] = 1 - matrix[errs]
    if gold:
        graders["gold"] = truth
    if gaps:
        for name, matrix in graders.items():
            matrix[random.random(truth.shape) < 0.03] = np.nan
            matrix[random.random(responses) < 0.1] = np.nan
            unasked |= {(name, int(i)) for i in np.flatnonzero(random.random(responses) < 0.1)}
    questions = [f"q{i}" for i in random.integers(0, own, responses)] if own else None
    if weights == "frequency":
        options["weight_kind"] = "frequency"
    amounts = {"design": [0.5, 1.0, 1.75, 3.0], "frequency": [1.0, 2.0, 3.0]}
    return Verdicts(
        graders=graders,
        questions=questions,
        clusters=[f"c{i}" for i in random.integers(0, clusters, responses)] if clusters else None,
        weights=random.choice(amounts[weights], responses).tolist() if weights else None,
        lengths={q: 2 + i % (lines - 1) for i, q in enumerate(sorted(set(questions or ())))}
        if uneven
        else None,
        stratified=stratified,
        unasked=frozenset(unasked),
        options={"cut": (1, 2), **options},
    )


BANKS = {
    "one checklist": drawn(1, responses=60, lines=5, cut=(2, 3)),
    "several judges with gaps": drawn(2, judges=3, clusters=7, gaps=True),
    "own checklists": drawn(3, judges=2, own=6, gaps=True),
    "own checklists of different lengths": drawn(4, own=6, uneven=True, gaps=True),
    "questions split over clusters": drawn(5, own=3, clusters=6, livingston_lewis_grid=40),
    "no gold": drawn(6, judges=2, gold=False, own=5, gaps=True),
    "votes": replace(drawn(9, clusters=8, gaps=True), votes=3),
    "phrasings": replace(drawn(10, responses=30), votes=3, phrasings=3),
    "phrasings with gaps": replace(drawn(12, clusters=8, gaps=True), votes=3, phrasings=3),
    "phrasings and votes": replace(drawn(11, clusters=8), votes=6, phrasings=3),
    "design weights in strata": drawn(
        7, judges=2, own=8, weights="design", gaps=True, stratified=True
    ),
    "frequency weights": drawn(8, weights="frequency", gaps=True),
}
NAMES_OF_BANKS = tuple(BANKS)


@cache
def audited(name: str, method: str) -> Audit:
    return audit_of(BANKS[name].labels(), method)


def audit_of(labels: Labels, method: str) -> Audit:
    return vd.audit(labels, interval=method, replicates=100)


def only(graders: Mapping[str, Any], **more: Any) -> Verdicts:
    """A bank written out: each grader’s verdicts, one text a response."""
    matrices = {
        g: np.array([[np.nan if c == "?" else float(c) for c in row] for row in rows.split()])
        for g, rows in graders.items()
    }
    return Verdicts(graders=matrices, options={"cut": (1, 2)}, **more)


DEGENERATE_BANKS = {
    "all yes": only({"judge": "11 11 11 11", "gold": "11 11 11 11"}),
    "all no": only({"judge": "00 00 00 00", "gold": "00 00 00 00"}),
    "constant against constant": only({"judge": "11 11 11 11", "gold": "00 00 00 00"}),
    "one response": only({"judge": "101", "gold": "111"}),
    "two responses": only({"judge": "101 111", "gold": "111 000"}),
    "one line": replace(only({"judge": "1 0 1 1 0", "gold": "1 0 0 1 1"}), options={"cut": (1,)}),
    "one line of own checklists": replace(
        only({"judge": "1 0 1 1 0", "gold": "1 0 0 1 1"}, questions=list("ppqqq")),
        options={"cut": (1,)},
    ),
    "no gold": only({"judge": "10 11 00 11 01"}),
    "gold as the judge": replace(
        only({"gold": "10 11 00 11 01"}), options={"cut": (1, 2), "gold": "none"}
    ),
    "no gold and one response": only({"judge": "10"}),
    "no cut": replace(only({"judge": "10 11 00 11 01", "gold": "11 11 00 10 01"}), options={}),
    "everything unparsed": only({"judge": "?? ?? ??", "gold": "?? ?? ??"}),
    "the judge unparsed": only({"judge": "?? ?? ??", "gold": "11 10 00"}, questions=list("pqr")),
    "gold unparsed": only({"judge": "11 10 00", "gold": "?? ?? ??"}),
    "everything missing": only(
        {"judge": "?? ?? ??", "gold": "?? ?? ??"}, missing=frozenset({"judge", "gold"})
    ),
    "the judge missing": only(
        {"judge": "?? ?? ??", "gold": "11 10 00"}, missing=frozenset({"judge"})
    ),
    "no response in full": only({"judge": "1? ?1 0? ?0", "gold": "1? 1? ?0 ?0"}),
    "no overlap": only(
        {"judge": "11 10 ?? ??", "gold": "?? ?? 10 11"}, missing=frozenset({"judge", "gold"})
    ),
    "one cluster": only({"judge": "10 11 00 11", "gold": "11 11 00 10"}, clusters=list("cccc")),
    "two clusters": only({"judge": "10 11 00 11", "gold": "11 11 00 10"}, clusters=list("ccdd")),
    "one question": only({"judge": "10 11 00 11", "gold": "11 11 00 10"}, questions=list("qqqq")),
    "a question a response": only(
        {"judge": "10 11 00 11", "gold": "11 11 00 10"}, questions=list("pqrs")
    ),
    "different lengths, one response each": only(
        {"judge": "10 11 00", "gold": "11 11 00"},
        questions=list("pqr"),
        lengths={"p": 1, "q": 2, "r": 2},
    ),
    "a stratum of one cluster": only(
        {"judge": "10 11 00 11", "gold": "11 11 00 10"},
        clusters=["c0", "c10", "c20", "c31"],
        stratified=True,
    ),
    "a judge with weights of zero": only(
        {"judge": "10 ?? 00 ??", "other": "?? 11 ?? 01", "gold": "11 11 00 10"},
        weights=[0.0, 1.0, 0.0, 2.0],
    ),
    "a judge with copies of zero": replace(
        only(
            {"judge": "10 ?? 00 ??", "other": "?? 11 ?? 01", "gold": "11 11 00 10"},
            weights=[0.0, 1.0, 0.0, 2.0],
        ),
        options={"cut": (1, 2), "weight_kind": "frequency"},
    ),
    "total disagreement": only({"judge": "10 01 11 00 10", "gold": "01 10 00 11 01"}),
    "totals of zero and all": only({"judge": "11 00 11 00 11", "gold": "11 11 00 00 11"}),
    "totals without spread": only({"judge": "10 01 10 01 10", "gold": "01 01 10 10 10"}),
}


def shuffled(labels: Labels, seed: int = 1) -> Labels:
    return replace(labels, frame=labels.frame.sample(fraction=1, shuffle=True, seed=seed))


# --- laws of banks ------------------------------------------------------------------------------


def test_every_statistic_of_a_checklist_occurs_in_the_banks() -> None:
    rows = pl.concat([audited(name, "auto").results.select("statistic", "value") for name in BANKS])
    seen = set(rows["statistic"])
    defined = set(rows.filter(pl.col("value").is_not_null())["statistic"])
    assert seen <= {s.name for f in OF_CHECKLISTS for s in f.statistics}
    for family in OF_CHECKLISTS:
        names = {s.name for s in family.statistics}
        assert names <= seen, f"{family.name}: {names - seen} occur in no bank"
        assert names <= defined, f"{family.name}: {names - defined} always undefined"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES_OF_BANKS)
def test_values_and_intervals_of_a_bank_are_within_bounds(name: str, method: str) -> None:
    sane(audited(name, method))


@pytest.mark.parametrize("name", DEGENERATE_BANKS)
def test_degenerate_banks_leave_values_undefined_with_a_reason(name: str) -> None:
    for method in METHODS:
        sane(audit_of(DEGENERATE_BANKS[name].labels(), method))


def test_what_is_said_of_a_bank_never_describes_the_grader_alone() -> None:
    only_banks = [s.estimand for f in FAMILIES if f.kinds == ("checklist",) for s in f.statistics]
    assert only_banks
    for estimand in only_banks:
        assert estimand.describes in (Describes.BANK, Describes.BOTH), estimand.name
        if estimand.describes is Describes.BANK:
            assert "judge" not in estimand.title.replace("judge’s verdicts", ""), estimand.name
        if estimand.name.endswith("_minus_gold"):
            assert estimand.describes is Describes.BOTH, estimand.name


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES_OF_BANKS)
def test_the_order_of_verdicts_does_not_matter(name: str, method: str) -> None:
    one, other = audited(name, method), audit_of(shuffled(BANKS[name].labels()), method)
    assert one.results.equals(other.results)
    assert one.findings == other.findings


def test_nor_does_the_order_of_questions_in_a_file() -> None:
    # Which orders of the lines are tried must not hang on which question a file names first.
    bank = BANKS["own checklists"]
    asked = bank.questions
    assert asked is not None
    rows = [
        {"response": f"r{i}", "question": asked[i], "line": f"e{j}", "grader": g, "label": int(v)}
        for g, matrix in bank.graders.items()
        for (i, j), v in np.ndenumerate(matrix)
        if v == v
    ]
    frame = pl.DataFrame(rows)
    audits = [
        audit_of(vd.read(order, layout="checklist", cut=[1, 2]), "auto")
        for order in (frame, frame.reverse(), frame.sample(fraction=1, shuffle=True, seed=2))
    ]
    assert "kr20_shuffled_low" in set(audits[0].results["statistic"])
    for other in audits[1:]:
        assert audits[0].results.equals(other.results)


PREFIX = "Mr "


def renamed_bank(labels: Labels) -> Labels:
    """Graders, responses, questions, lines and clusters under other names, in the same order."""
    checklist = labels.checklist
    assert checklist is not None
    names = [PREFIX + g for g in labels.grader_names]
    prefixed = ("response", "line", "cluster")
    frame = labels.frame.with_columns(
        *((pl.lit(PREFIX) + pl.col(c)).alias(c) for c in prefixed),
        (pl.lit(PREFIX) + pl.col("grader").cast(pl.String)).cast(pl.Enum(names)).alias("grader"),
    )
    gold = {"gold": PREFIX + "gold"} if "gold" in labels.grader_names else {}
    return replace(
        labels,
        frame=frame,
        graders=tuple(Grader(name=name) for name in names),
        options=Options.of(labels.options, **gold),
        checklist=Checklist(
            questions=tuple(PREFIX + q if q else "" for q in checklist.questions),
            lines=tuple(tuple(PREFIX + line for line in lines) for lines in checklist.lines),
            question=checklist.question,
        ),
    )


# Percentiles show any change of the tallies, also in the order of their rows: one method is enough.


@pytest.mark.parametrize("name", NAMES_OF_BANKS)
def test_names_in_the_same_order_change_no_number_of_a_bank(name: str) -> None:
    other = audit_of(renamed_bank(BANKS[name].labels()), "bootstrap").results
    back = other.with_columns(pl.col("grader", "other", "line").str.strip_prefix(PREFIX))
    expected = audited(name, "bootstrap").results
    assert back.sort(KEY_COLUMNS).equals(expected.sort(KEY_COLUMNS))


@pytest.mark.parametrize("name", NAMES_OF_BANKS)
def test_the_order_of_graders_changes_no_number_of_a_bank(name: str) -> None:
    labels = BANKS[name].labels()
    names = pl.Enum(list(reversed(labels.grader_names)))
    frame = labels.frame.with_columns(pl.col("grader").cast(pl.String).cast(names))
    turned = replace(labels, frame=frame, graders=tuple(reversed(labels.graders)))
    other = audit_of(turned, "bootstrap").results
    assert other.sort(KEY_COLUMNS).equals(audited(name, "bootstrap").results.sort(KEY_COLUMNS))


@pytest.mark.parametrize("name", NAMES_OF_BANKS)
def test_the_tallies_of_two_halves_of_a_bank_add_up(name: str) -> None:
    scene, _ = scenes(BANKS[name].labels())
    bank = scene.bank
    assert bank is not None
    half = bank.cluster % 2 == 0
    first, second = (
        parts_of(replace(scene, bank=bank.where(keep), memory={}), OF_CHECKLISTS)
        for keep in (half, ~half)
    )
    added = set()
    for key, part in parts_of(scene, OF_CHECKLISTS).items():
        # A half may know less: then its parts have other keys (and are no part of the law).
        if part.tally is None or key not in first or key not in second:
            continue
        a, b = first[key].tally, second[key].tally
        if a is None or b is None:
            continue
        assert_same(a + b, part.tally, key)
        assert_same(b + a, part.tally, key)
        added.add(key[0])
    tallied = {k[0] for k, p in parts_of(scene, OF_CHECKLISTS).items() if p.tally is not None}
    assert added == tallied


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="responses are clusters"),
        pytest.param({"clusters": 6, "gaps": True, "judges": 2}, id="clusters"),
        pytest.param({"own": 5, "gaps": True}, id="own checklists"),
        pytest.param({"own": 4, "clusters": 6}, id="questions split over clusters"),
    ],
)
def test_a_frequency_weight_of_two_is_the_response_twice(method: str, more: dict[str, Any]) -> None:
    bank = drawn(11, responses=12, weights="frequency", **more)
    assert bank.weights is not None
    options = {k: v for k, v in bank.options.items() if k != "weight_kind"}
    twice = replace(bank.repeated([int(w) for w in bank.weights]), weights=None, options=options)
    one, other = table(audit_of(bank.labels(), method)), table(audit_of(twice.labels(), method))
    assert one.keys() == other.keys()
    for key, row in one.items():
        assert close(row, other[key], list(row)), key


def test_design_weights_of_one_change_no_value_of_a_bank() -> None:
    for name in ("several judges with gaps", "own checklists"):
        bank = BANKS[name]
        weighed = replace(bank, weights=[1.0] * bank.responses)
        one, other = table(audited(name, "auto")), table(audit_of(weighed.labels(), "auto"))
        assert one.keys() == other.keys()
        said = 0
        for key, row in one.items():
            if other[key]["value"] is not None:  # no likelihood fits, no p-values
                said += 1
                assert close(row, other[key], ["value", "n", "clusters"]), key
        assert said > len(one) / 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["one checklist", "own checklists", "design weights in strata"])
def test_a_judge_equal_to_gold_has_the_values_of_gold(name: str, method: str) -> None:
    bank = BANKS[name]
    gold = bank.graders["gold"]
    rows = frozenset(("gold", i) for g, i in bank.unasked if g == "gold")
    unasked = rows | {("copy", i) for _, i in rows}
    same = replace(bank, graders={"copy": gold, "gold": gold}, unasked=unasked)
    results = audit_of(same.labels(), method).results
    values = {
        s: set(v)
        for s, v in results.filter(pl.col("value").is_not_null())
        .group_by("statistic")
        .agg("value")
        .iter_rows()
    }
    zero = ("element_error", "false_", "gate_false_", "leniency", "error_count_variance")
    none = {"decomposition_gate_error", "decomposition_difference"}
    for name_, found in values.items():
        if name_.endswith("_minus_gold") or name_.startswith(zero) or name_ in none:
            assert found == {0.0}, name_
        elif name_.startswith("gate_accuracy"):
            assert min(found) == pytest.approx(1.0, abs=1e-12), name_
        elif name_ == "total_correlation":
            assert min(found) == pytest.approx(1.0, abs=1e-12)
    assert {"element_error", "false_accept", "false_reject", "gate_accuracy"} <= values.keys()
    # What is said of the judge is said of gold on the same responses, to the last bit.
    by_grader = [
        results.filter(pl.col("grader") == g).drop("grader").sort(KEY_COLUMNS[0], *KEY_COLUMNS[2:])
        for g in ("copy", "gold")
    ]
    keys = [c for c in KEY_COLUMNS if c != "grader"]
    beside = by_grader[1].join(by_grader[0], on=keys, how="left", validate="1:1", suffix="_copy")
    assert len(beside)
    for row in beside.iter_rows(named=True):
        for column in ("value", "low", "high", "n", "clusters", "reason"):
            assert row[column] == row[f"{column}_copy"], row


# --- the same input, the same bytes -------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_same_labels_give_the_same_bytes(method: str, tmp_path: Path) -> None:
    rows = plain("abcabcabca" * 4, "abcabbabca" * 4, "aacabcabcc" * 4, graders="ghi").rows
    clustered = tuple(replace(r, cluster=f"c{int(r.response[1:]) // 3}") for r in rows)
    panel = Panel(clustered, {"scale": "a,b,c", "reference": "i"})
    one = written(panel.audit(interval=method), tmp_path, "one.json")
    assert one == written(panel.audit(interval=method), tmp_path, "two.json")
    assert b"NaN" not in one
    assert b"Infinity" not in one


MANY = """
import sys
import numpy as np, polars as pl, voirdire as vd

rng = np.random.default_rng(1)
n, graders = 6000, 4
truth = rng.integers(0, 3, n)
weight = np.repeat(rng.choice([0.3, 0.7, 1.1, 2.9], n), graders)
label = np.where(rng.random((n, graders)) < 0.7, truth[:, None], rng.integers(0, 3, (n, graders)))
response = np.repeat(np.arange(n), graders)
frame = pl.DataFrame({
    "response": [f"r{i}" for i in response],
    "cluster": [f"c{i % 700}" for i in response],
    "grader": [f"g{j}" for j in range(graders)] * n,
    "label": np.array(["a", "b", "c"])[label.ravel()],
    "weight": weight,
})
for kind in ("none", "design"):
    for method in ("auto", "bootstrap"):
        rows = frame.drop("weight") if kind == "none" else frame
        labels = vd.read(rows, layout="long", scale="a,b,c", reference="g3")
        audit = vd.audit(labels, interval=method, replicates=300)
        audit.write(f"{sys.argv[1]}-{kind}-{method}.json")
"""


def test_the_number_of_threads_does_not_matter(tmp_path: Path) -> None:
    for threads in ("1", "2"):
        limits = (
            "POLARS_MAX_THREADS",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "MKL_NUM_THREADS",
        )
        done = run_python("-c", MANY, threads, cwd=tmp_path, env=dict.fromkeys(limits, threads))
        assert done.returncode == 0, done.stderr
    for kind in ("none", "design"):
        for method in METHODS:
            one, two = (
                (tmp_path / f"{threads}-{kind}-{method}.json").read_bytes() for threads in "12"
            )
            assert one == two, (kind, method)
