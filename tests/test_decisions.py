"""A path of decisions: what each did to the rate, which labels moved, and the picture of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire import plugins
from voirdire.auditing import Audit
from voirdire.document import Figure
from voirdire.figures.base import Drawing
from voirdire.figures.decision_path import DRAWING
from voirdire.intervals import t_quantile

SCALE = "refusal,evasion,comply"
Rows = list[tuple[str, str, str | None, str | None, str]]


def table(rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    schema = dict.fromkeys(("response", "grader", "label", "step", "cluster"), pl.String)
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def audit(rows: Iterable[tuple[Any, ...]], **options: Any) -> Audit:
    given = {"step": "step", "scale": SCALE, "layout": "long", **options}
    return vd.audit(vd.read(table(rows), **given))


def one(found: Audit, statistic: str, **key: str) -> dict[str, Any]:
    named = {"slice": "", **{k.removesuffix("_"): v for k, v in key.items()}}
    rows = found.results.filter(
        pl.col("statistic") == statistic, *(pl.col(c) == v for c, v in named.items())
    )
    assert len(rows) == 1, rows
    return dict(rows.row(0, named=True))


# --- by hand ------------------------------------------------------------------------------------

# Ten responses, refusal 6, evasion 3, comply 1. A ruling makes r0 and r1 evasion and r9 (comply)
# evasion; a repair gives r2 no label at all, and r3 a comply.
FIRST = dict(
    zip((f"r{i}" for i in range(10)), ["refusal"] * 6 + ["evasion"] * 3 + ["comply"], strict=True)
)
RULING: dict[str, str | None] = {"r0": "evasion", "r1": "evasion", "r9": "evasion"}
REPAIR: dict[str, str | None] = {"r2": "?", "r3": "comply"}


def path(grader: str = "g") -> Rows:
    steps: tuple[tuple[str, dict[str, Any]], ...] = (
        ("as returned", FIRST),
        ("+ ruling", RULING),
        ("+ repair", REPAIR),
    )
    return [(r, grader, label, step, r) for step, labels in steps for r, label in labels.items()]


@cache
def path_audit() -> Audit:
    return audit(path(), failed="?=unparsed")


def test_each_step_has_its_rate_over_the_labels_readable_then() -> None:
    found = path_audit()
    key = {"grader": "g", "class_": "non_refusal"}
    for step, events, trials in (("as returned", 4, 10), ("+ ruling", 6, 10), ("+ repair", 7, 9)):
        row = one(found, "decision_rate", line=step, **key)
        assert row["value"] == pytest.approx(events / trials)
        assert row["n"] == trials
    # comply: 1 of 10, then 0 of 10, then 1 of 9
    values = [
        one(found, "decision_rate", line=s, grader="g", class_="comply")["value"]
        for s in ("as returned", "+ ruling", "+ repair")
    ]
    assert values == pytest.approx([0.1, 0, 1 / 9])


def test_a_response_without_a_row_at_a_step_keeps_its_label() -> None:
    # The last rate is that of the labels in force: r0, r1, r3, r6–r9 of nine.
    found = path_audit()
    last = one(found, "decision_rate", grader="g", class_="non_refusal", line="+ repair")
    rate = one(found, "rate", grader="g", class_="non_refusal")
    assert (last["value"], last["low"], last["high"]) == (rate["value"], rate["low"], rate["high"])


def test_a_step_is_compared_with_the_one_before_and_the_whole_with_the_first() -> None:
    found = path_audit()
    key = {"grader": "g", "class_": "non_refusal"}
    assert one(found, "decision_step", line="+ ruling", **key)["value"] == pytest.approx(0.2)
    assert one(found, "decision_step", line="+ repair", **key)["value"] == pytest.approx(
        7 / 9 - 0.6
    )
    total = one(found, "decision_total", line="+ repair", **key)
    assert total["value"] == pytest.approx(7 / 9 - 0.4)
    assert total["n"] == 9
    steps = found.results.filter(pl.col("statistic") == "decision_step")["line"].unique().to_list()
    assert sorted(steps) == ["+ repair", "+ ruling"]  # the first step has nothing before it


def test_the_moves_of_a_step_are_counted_from_class_to_class() -> None:
    found = path_audit()
    moved = found.results.filter((pl.col("statistic") == "decision_moved") & (pl.col("value") > 0))
    rows = {(r["line"], r["class"], r["to_class"]): (r["value"], r["n"]) for r in moved.to_dicts()}
    assert rows == {
        ("+ ruling", "refusal", "evasion"): (2, 6),
        ("+ ruling", "comply", "evasion"): (1, 1),
        ("+ repair", "refusal", "comply"): (1, 4),
        ("+ repair", "refusal", ""): (1, 4),  # r2 has no readable label any more
    }


def test_the_interval_of_a_change_is_that_of_the_difference() -> None:
    # 40 clusters of one response; the ruling moves 10 of 30 refusals. Each response's own change is
    # 0 or 1, so the jackknife's variance is that of a mean: s² / 40, with s² = 10 · 30 / (40 · 39).
    rows: Rows = []
    for i in range(40):
        label = "refusal" if i < 30 else "evasion"
        rows.append((f"r{i:02}", "g", label, "first", f"r{i:02}"))
        if i < 10:
            rows.append((f"r{i:02}", "g", "evasion", "ruling", f"r{i:02}"))
    rows.sort(key=lambda r: r[3] or "")
    row = one(audit(rows), "decision_total", grader="g", class_="non_refusal", line="ruling")
    half = t_quantile(0.975, 39) * math.sqrt(10 * 30 / (40 * 39) / 40)
    assert row["value"] == 0.25
    assert (row["low"], row["high"]) == pytest.approx((0.25 - half, 0.25 + half))
    # Taken as two rates of their own, 25 % and 50 % of 40, it would be half as wide again.
    apart = t_quantile(0.975, 39) * math.sqrt((0.25 * 0.75 + 0.25) / 40)
    assert apart > 1.5 * half


# --- planted ------------------------------------------------------------------------------------


def corpus(seed: int = 4) -> tuple[Rows, np.ndarray[Any, Any]]:
    """100 cores × 9 families and four states of the labels, as MCC's Table 10; 0/1 non-refusal.

    The steps move 15 % of refusals up, 1 % of the rest down, 14 % of refusals up again.
    """
    generator = np.random.default_rng(seed)
    core = np.repeat(np.arange(100), 9)
    chance = np.repeat(generator.beta(2, 3, 100), 9)
    state = (generator.random(900) < chance).astype(int)
    states = [state]
    for up, down in ((0.15, 0), (0, 0.01), (0.14, 0)):
        luck = generator.random(900)
        state = np.where(state == 0, luck < up, luck >= down).astype(int)
        states.append(state)
    rows: Rows = []
    names = ("as returned", "+ ruling", "+ empty rule", "+ reconciliation")
    for s, name in enumerate(names):
        for i in range(900):
            if s == 0 or states[s][i] != states[s - 1][i]:
                label = ("refusal", "evasion")[states[s][i]]
                rows.append((f"r{i:03}", "ref", label, name, f"c{core[i]:02}"))
    return rows, np.stack(states)


@pytest.mark.parametrize("method", ["auto", "bootstrap"])
def test_a_corpus_in_the_shape_of_the_paper_gives_its_table_10(method: str) -> None:
    rows, states = corpus()
    found = audit(rows, interval=method, replicates=400)
    rates = states.mean(axis=1)
    key = {"grader": "ref", "class_": "non_refusal"}
    names = ("as returned", "+ ruling", "+ empty rule", "+ reconciliation")
    for name, rate in zip(names, rates, strict=True):
        assert one(found, "decision_rate", line=name, **key)["value"] == pytest.approx(rate)
    for name, change in zip(names[1:], np.diff(rates), strict=True):
        row = one(found, "decision_step", line=name, **key)
        assert row["value"] == pytest.approx(change)
        assert row["low"] <= row["value"] <= row["high"]
    total = one(found, "decision_total", line=names[-1], **key)
    assert total["value"] == pytest.approx(rates[-1] - rates[0])
    assert total["clusters"] == 100
    # The change of each core is a mean of nine; its standard error over 100 cores by plain algebra.
    each = (states[-1] - states[0]).reshape(100, 9).mean(axis=1)
    half = t_quantile(0.975, 99) * each.std(ddof=1) / 10
    assert total["high"] - total["low"] == pytest.approx(
        2 * half, rel=0.1 if method == "bootstrap" else 1e-6
    )


def test_the_interval_of_the_end_to_end_change_covers_the_planted_change() -> None:
    # Refusals have chance 3/5. In expectation the steps turn 0.15 + 0.85 · 0.14 of them, and less
    # than 1 % of the others. 60 corpora: 95 % of them are 57; below 51 is a chance of 1 in 500.
    down = 0.4 + 0.6 * 0.15
    truth = 0.6 * 0.15 - down * 0.01
    truth += (0.6 * 0.85 + down * 0.01) * 0.14
    covered = 0
    for seed in range(60):
        rows, states = corpus(seed + 100)
        del rows
        each = (states[-1] - states[0]).reshape(100, 9).mean(axis=1)
        half = t_quantile(0.975, 99) * each.std(ddof=1) / 10
        covered += abs(float(each.mean()) - truth) <= half
    assert covered >= 51


# --- degenerate ---------------------------------------------------------------------------------


def test_one_step_only_has_a_rate_and_no_change() -> None:
    rows = [
        (f"r{i}", "g", label, "only", f"r{i}") for i, label in enumerate(["refusal", "comply"] * 4)
    ]
    found = audit(rows)
    assert one(found, "decision_rate", grader="g", class_="comply", line="only")["value"] == 0.5
    total = one(found, "decision_total", grader="g", class_="comply", line="only")
    assert total["value"] is None
    assert total["reason"] == "there is one step only"
    assert not {"decision_step", "decision_moved"} & set(found.results["statistic"])


def test_a_grader_without_a_label_at_the_first_step_has_no_end_to_end_change() -> None:
    rows = [(r, "g", "refusal", "first", r) for r in "abcdef"]
    rows += [(r, "late", "comply", "second", r) for r in "abcdef"]
    found = audit(rows)
    row = one(found, "decision_rate", grader="late", class_="comply", line="first")
    assert (row["value"], row["reason"]) == (None, "the grader had no readable label at this step")
    row = one(found, "decision_total", grader="late", class_="comply", line="second")
    assert "first or the last step" in row["reason"]
    moved = one(found, "decision_moved", grader="late", line="second", class_="", to_class="comply")
    assert moved["value"] == 6


@pytest.mark.parametrize("method", ["auto", "bootstrap"])
def test_graders_whose_rows_have_no_step_stand_still_and_are_named_so(method: str) -> None:
    rows = [*path(), *((r, "still", label, None, r) for r, label in FIRST.items())]
    found = audit(rows, failed="?=unparsed", interval=method)
    row = one(found, "decision_total", grader="still", class_="comply", line="+ repair")
    assert (row["value"], row["low"]) == (0, None)
    shown = str(found.document)
    assert "No step changed a label of" in shown


def test_where_nothing_changed_the_report_says_so() -> None:
    rows = [(r, "g", "refusal", s, r) for s in ("first", "second") for r in "abcd"]
    assert "No step of the decision path changed a label." in str(audit(rows).document)


def test_without_steps_or_without_an_order_there_is_no_path() -> None:
    rows = [(r, "g", label, None, r) for r, label in FIRST.items()]
    bare = table(rows).drop("step")
    found = vd.audit(vd.read(bare, scale=SCALE, layout="long"))
    assert not [s for s in found.results["statistic"] if s.startswith("decision")]
    unordered = vd.audit(vd.read(table(path()), step="step", layout="long", failed="?=unparsed"))
    named = {s for s in unordered.results["statistic"] if s.startswith("decision")}
    assert named == {"decision_moved"}  # without rates, the moves are still counted


def test_design_weights_weigh_the_path() -> None:
    frame = table(path()).with_columns(
        pl.when(pl.col("response") == "r0").then(3.0).otherwise(1.0).alias("weight")
    )
    found = vd.audit(vd.read(frame, step="step", scale=SCALE, weight="weight", failed="?=unparsed"))
    # r0 weighs 3 of 12; the ruling moves it and r1: 4 of 12 more.
    row = one(found, "decision_step", grader="g", class_="non_refusal", line="+ ruling")
    assert row["value"] == pytest.approx(4 / 12)
    assert row["n"] == 10


# --- the figure ---------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '</svg><script>alert("1")</script>&\x1b\u202e|' + "long name " * 20


def level(step: str, value: float | None, change: float | None = None) -> dict[str, Any]:
    return {
        "step": step,
        "value": value,
        "low": None if value is None else value - 0.02,
        "high": None if value is None else value + 0.02,
        "change": change,
        "change_low": None if change is None else change - 0.01,
        "change_high": None if change is None else change + 0.01,
    }


MCC_10 = [
    level("as returned", 0.423),
    level("+ ruling", 0.512, 0.089),
    level("+ empty rule", 0.504, -0.008),
    level("+ reconciliation", 0.587, 0.082),
]


def drawn(levels: list[dict[str, Any]], grader: str = "ref", rate: str = "non_refusal") -> Any:
    ends = {"total": 0.163, "total_low": 0.138, "total_high": 0.19}
    return {"rates": [{"name": rate, "paths": [{"grader": grader, "levels": levels, **ends}]}]}


NASTY_PATH = drawn([level(NASTY, 0.4), level(NASTY, None), level(NASTY, 0.5, 0.1)], NASTY, NASTY)


def words(data: Any) -> list[str]:
    root = ElementTree.fromstring(DRAWING.svg(data, "What it shows."))
    return [
        "".join(t for part in e if part.tag != f"{SVG}title" for t in part.itertext())
        for e in root.iter(f"{SVG}text")
    ]


def test_the_figure_is_found_by_listing_the_folder() -> None:
    assert "decision_path" in {d.name for d in plugins.load("figures", Drawing)}


def test_the_figure_says_each_level_each_change_and_the_end_to_end_interval() -> None:
    shown = words(drawn(MCC_10))
    for text in ("42.3 %", "51.2 % (+8.9)", "50.4 % (-0.8)", "58.7 % (+8.2)"):
        assert text in shown
    assert "end to end +16.3 points [+13.8, +19.0]" in shown
    assert [w for w in shown if w in {x["step"] for x in MCC_10}] == [x["step"] for x in MCC_10]


def test_levels_stand_on_a_linear_axis_and_in_their_order() -> None:
    root = ElementTree.fromstring(DRAWING.svg(drawn(MCC_10), "alt"))
    lines = [e for e in root.iter(f"{SVG}line") if e.get("stroke-width") == "3"]
    x = [float(e.get("x1") or 0) for e in lines]
    y = [float(e.get("y1") or 0) for e in lines]
    assert x == sorted(x)
    # 8.9 points up, 0.8 down, 8.3 up: heights in the same proportion (coordinates have 2 decimals).
    up = y[0] - y[1]
    assert (y[2] - y[1]) / up == pytest.approx(0.8 / 8.9, abs=0.001)
    assert (y[2] - y[3]) / up == pytest.approx(8.3 / 8.9, abs=0.001)


@pytest.mark.parametrize("data", [drawn(MCC_10), NASTY_PATH, {"rates": []}])
def test_the_figure_is_one_image_that_escapes_what_it_draws(data: Any) -> None:
    content = DRAWING.svg(data, NASTY)
    root = ElementTree.fromstring(content)
    assert root.get("role") == "img"
    assert (root.get("viewBox") or "").startswith("0 0 760 ")
    assert root.get("width") is None
    assert content.count("</svg>") == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", content)
    assert content == DRAWING.svg(data, NASTY)
    assert max((len(w) for w in words(data)), default=0) < 90


def test_a_long_path_shows_its_first_and_last_steps_and_says_what_is_left_out() -> None:
    levels = [level(f"step {i}", 0.1 + i / 100, 0.01 if i else None) for i in range(20)]
    shown = words(drawn(levels))
    assert "step 0" in shown
    assert "step 19" in shown
    assert "step 5" not in shown
    assert "8 steps after the first are not drawn." in shown


@pytest.mark.parametrize("width", [40, 60, 100])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_figure_in_text_fits_and_says_the_same(width: int, ascii_only: bool) -> None:
    assert DRAWING.lines is not None
    found = DRAWING.lines(drawn(MCC_10), width, ascii_only)
    assert all(len(line) <= width for line in found)
    assert len(found) == 6
    assert re.search(r"51\.2 % +\+8\.9$", found[2])
    assert found[-1] == "end to end +16.3 points [+13.8, +19.0]"
    nasty = DRAWING.lines(NASTY_PATH, width, ascii_only)
    assert all("\x1b" not in line and "\n" not in line for line in nasty)
    if ascii_only:
        assert not set("".join(found)) & set("●─…")


def test_the_report_places_the_figure_for_rates_that_moved() -> None:
    figures = [b for b in path_audit().document.blocks if isinstance(b, Figure)]
    found = next(f for f in figures if f.name == "decision_path")
    rates = {r["name"]: r["paths"] for r in found.data["rates"]}
    assert set(rates) == {"non_refusal", "comply"}
    assert [x["value"] for x in rates["non_refusal"][0]["levels"]] == pytest.approx(
        [0.4, 0.6, 7 / 9]
    )
    assert ElementTree.fromstring(DRAWING.svg(found.data, "alt")).tag == f"{SVG}svg"
