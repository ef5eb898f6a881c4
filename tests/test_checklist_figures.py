"""The figures of a checklist: totals, positions, cuts and lines, drawn from plain data and from banks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.checklists import real_bank, real_matrices, verdicts
from tests.test_figures import NASTY, SVG, parsed, words
from voirdire import plugins
from voirdire.auditing import scenes
from voirdire.document import Figure
from voirdire.estimand import Estimand
from voirdire.estimate import Estimate, Interval, Key, Undefined
from voirdire.figures._axes import bins, place, ticks
from voirdire.figures.base import Drawing
from voirdire.figures.dependability_cuts import DRAWING as CUTS
from voirdire.figures.error_by_position import DRAWING as POSITIONS
from voirdire.figures.svg import columns, dark_variables
from voirdire.figures.totals_histogram import DRAWING as HISTOGRAM
from voirdire.figures.totals_scatter import DRAWING as SCATTER
from voirdire.figures.worst_lines import DRAWING as WORST
from voirdire.labels import Labels
from voirdire.scene import Estimates, Scene
from voirdire.stats._checklist_figures import (
    MOST_JUDGES,
    dependability_figures,
    position_figures,
    scatter_figures,
    totals_figures,
    worst_lines_figures,
)
from voirdire.stats.shares import RATE
from voirdire.wording import plain

RTL = "שופט מחמיר"


def histogram(gold: list[float], judge: list[float], name: str = "judge") -> dict[str, Any]:
    return {
        "k": len(gold) - 1,
        "one_length": True,
        "series": [
            {"grader": "gold", "role": "gold", "counts": gold, "at_ceiling": gold[-1]},
            {"grader": name, "role": "", "counts": judge, "at_ceiling": judge[-1]},
        ],
    }


def scatter(k: int, cells: list[list[float]], **extra: Any) -> dict[str, Any]:
    return {"judge": "judge", "gold": "gold", "k": k, "cells": cells, **extra}


def at(value: float | None, half: float = 0.05, reason: str = "") -> dict[str, Any]:
    if value is None:
        return {"value": None, "low": None, "high": None, "reason": reason}
    return {"value": value, "low": value - half, "high": value + half, "reason": ""}


def positions(values: Iterable[float | None], overall: float | None = 0.05) -> dict[str, Any]:
    found = [{"position": i, **at(v, 0.02), "n": 180} for i, v in enumerate(values, 1)]
    return {"grader": "judge", "overall": at(overall), "positions": found}


def cuts(pairs: Iterable[tuple[float | None, float | None]]) -> dict[str, Any]:
    found = [
        {
            "cut": str(i),
            "judge": at(a, reason="no information"),
            "gold": at(b, reason="no information"),
            "difference": at(None if a is None or b is None else a - b),
        }
        for i, (a, b) in enumerate(pairs, 4)
    ]
    return {"grader": "judge", "gold": "gold", "cuts": found}


def worst(rows: Iterable[tuple[str, str, float, float]], **extra: Any) -> dict[str, Any]:
    found = [
        {"line": name, "text": text, "false_accepts": a, "false_rejects": r, "n": 14}
        for name, text, a, r in rows
    ]
    return {"grader": "judge", "lines": found, "other_errors": 0, "other_lines": 0, **extra}


NASTIES: list[tuple[Drawing, dict[str, Any]]] = [
    (HISTOGRAM, histogram([1, 2, 3], [0, 2.5, 4], NASTY)),
    (
        SCATTER,
        scatter(2, [[0, 1, 3], [2, 2, 5]], leniency=at(0.5)) | {"judge": NASTY, "gold": NASTY},
    ),
    (POSITIONS, positions([0.1, None, 0.9]) | {"grader": NASTY}),
    (CUTS, cuts([(0.5, None), (0.2, 0.3)]) | {"grader": NASTY, "gold": NASTY}),
    (WORST, worst([(NASTY, NASTY, 3, 1), ("b", "", 0, 2)], other_errors=4, other_lines=2)),
]
LARGE: list[tuple[Drawing, dict[str, Any]]] = [
    (HISTOGRAM, histogram([1000.0] * 151, [12345.0] * 151)),
    (SCATTER, scatter(150, [[g, j, 9999] for g in range(151) for j in range(0, 151, 7)])),
    (POSITIONS, positions([0.01 * (i % 9) for i in range(150)])),
    (CUTS, cuts([(0.5, 0.6)] * 50)),
    (WORST, worst([(f"line {i}", "What it asks. " * 40, 9, 5) for i in range(30)])),
]
EMPTY: list[tuple[Drawing, dict[str, Any]]] = [
    (HISTOGRAM, histogram([0, 0], [0, 0])),
    (SCATTER, scatter(1, [])),
    (POSITIONS, positions([None, None], None)),
    (POSITIONS, positions([])),
    (CUTS, cuts([(None, None)])),
    (CUTS, cuts([])),
    (WORST, worst([])),
]
ALL = [*NASTIES, *LARGE, *EMPTY]


def bars(root: ElementTree.Element) -> dict[str, tuple[float, float, str]]:
    """Width, height and fill of each bar by its title."""
    return {
        title.text or "": (
            float(rect.get("width") or 0),
            float(rect.get("height") or 0),
            rect.get("fill") or "",
        )
        for rect in root.iter(f"{SVG}rect")
        if (title := rect.find(f"{SVG}title")) is not None
    }


def dots(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """Circles by their title."""
    return {
        title.text or "": circle
        for circle in root.iter(f"{SVG}circle")
        if (title := circle.find(f"{SVG}title")) is not None
    }


def number(element: ElementTree.Element, name: str) -> float:
    return float(element.get(name) or "nan")


# --- all of them ----------------------------------------------------------------------------------


def test_all_five_are_found_by_listing_the_folder() -> None:
    names = {d.name for d in plugins.load("figures", Drawing)}
    assert {
        "totals_histogram", "totals_scatter", "error_by_position", "dependability_cuts",
        "worst_lines",
    } <= names  # fmt: skip


@pytest.mark.parametrize(("drawing", "data"), ALL)
def test_a_figure_is_one_image_with_its_text_and_the_same_bytes_each_time(
    drawing: Drawing, data: Any
) -> None:
    root = parsed(drawing, data, "A <text> that stands for it.")
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert (root.get("viewBox") or "").startswith("0 0 760 ")
    ids = {e.get("id"): "".join(e.itertext()) for e in root if e.get("id")}
    assert [ids[i] for i in (root.get("aria-labelledby") or "").split()] == [
        drawing.title,
        "A <text> that stands for it.",
    ]
    assert drawing.svg(data, "alt") == drawing.svg(data, "alt")


@pytest.mark.parametrize(("drawing", "data"), NASTIES)
def test_nothing_comes_from_a_name_but_text(drawing: Drawing, data: Any) -> None:
    content = drawing.svg(data, NASTY)
    root = ElementTree.fromstring(content)
    known = {
        "svg", "title", "desc", "defs", "pattern", "rect", "circle", "path", "line", "text",
        "tspan", "g",
    }  # fmt: skip
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= known
    assert content.count("</svg>") == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", content)
    assert not any(a.startswith("on") for e in root.iter() for a in e.attrib)
    assert max(len(w) for w in words(root)) < 110
    titles = ["".join(e.itertext()) for e in root.iter(f"{SVG}title")]
    assert any("long name " * 20 in t for t in titles) or drawing is HISTOGRAM


@pytest.mark.parametrize(("drawing", "data"), ALL)
def test_nothing_is_drawn_outside_the_picture(drawing: Drawing, data: Any) -> None:
    root = parsed(drawing, data)
    tall = float((root.get("viewBox") or "").split()[-1])
    spots = [
        (number(e, x), number(e, y))
        for e in root.iter()
        for x, y in (("x", "y"), ("cx", "cy"), ("x1", "y1"), ("x2", "y2"))
        if e.get(x) is not None
    ]
    assert all(0 <= x <= 760 and 0 <= y <= tall for x, y in spots)


@pytest.mark.parametrize(("drawing", "data"), ALL)
@pytest.mark.parametrize("width", [40, 60, 100])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_in_text_a_figure_fits_and_is_plain(
    drawing: Drawing, data: Any, width: int, ascii_only: bool
) -> None:
    assert drawing.lines is not None
    found = drawing.lines(data, width, ascii_only)
    assert found
    assert max(columns(line) for line in found) <= width
    assert all("\x1b" not in line and "\n" not in line for line in found)
    if ascii_only:
        own = "".join(found).replace("⟨", "").replace("⟩", "")  # controls of names, made visible
        assert own.isascii()


@pytest.mark.parametrize(("drawing", "data"), [*NASTIES, *LARGE])
def test_colours_have_a_dark_counterpart_and_a_fallback(drawing: Drawing, data: Any) -> None:
    content = drawing.svg(data, "alt")
    assert "var(--vd" not in re.sub(r"var\(--vd-[a-z0-9-]+,#[0-9a-f]{6}\)", "", content)
    used = set(re.findall(r"var\((--vd-[a-z0-9-]+)", content))
    assert used <= set(re.findall(r"--vd-[a-z0-9-]+", dark_variables()))


@pytest.mark.parametrize("k", [1, 2, 10, 40, 59, 60, 61, 150, 999])
@pytest.mark.parametrize("most", [3, 24, 60])
def test_ranges_hold_every_total_once_and_the_ceiling_alone(k: int, most: int) -> None:
    ranges = bins(k, most)
    assert len(ranges) <= most
    assert [t for low, high in ranges for t in range(low, high + 1)] == list(range(k + 1))
    assert ranges[-1] == (k, k)
    for total in range(k + 1):
        low, high = ranges[place(total, ranges)]
        assert low <= total <= high


@pytest.mark.parametrize("top", [0.0, 0.004, 0.15, 0.31, 1.0, 7, 36, 1000, 123456])
def test_ticks_start_at_zero_and_reach_the_top(top: float) -> None:
    found = ticks(top)
    assert found[0] == 0
    assert found[-1] >= top * (1 - 1e-9)
    assert 2 <= len(found) <= 6


# --- totals ---------------------------------------------------------------------------------------


def test_bars_of_totals_are_in_proportion_and_gold_is_hatched() -> None:
    found = bars(parsed(HISTOGRAM, histogram([2, 4, 6], [1, 3, 9])))
    tall = {t: h for t, (_, h, _) in found.items()}
    one = tall["judge: 1 responses with 0 lines met"]
    assert tall["judge: 9 responses with 2 lines met"] == pytest.approx(9 * one, abs=0.1)
    # Gold's outline is drawn inside its bar: one unit less than its height.
    assert tall["gold: 6 responses with 2 lines met"] + 1 == pytest.approx(6 * one, abs=0.1)
    fills = {t.split(":")[0]: f for t, (_, _, f) in found.items()}
    assert fills["gold"].startswith("url(#")
    assert fills["judge"].startswith("#")


def test_the_number_at_the_ceiling_stands_beside_each_side() -> None:
    data = histogram([2, 4, 6], [1, 3, 9])
    said = words(parsed(HISTOGRAM, data))
    assert "gold 6 at the ceiling of 2" in said
    assert "judge 9 at the ceiling of 2" in said
    assert "ceiling" in said
    assert HISTOGRAM.lines is not None
    assert "9 at the ceiling of 2: judge" in HISTOGRAM.lines(data, 80, True)
    said = words(parsed(HISTOGRAM, data | {"one_length": False}))
    assert "gold 6 with every line met" in said
    assert "ceiling" not in said


def test_many_totals_are_drawn_in_ranges_with_nothing_lost() -> None:
    found = bars(parsed(HISTOGRAM, histogram([1.0] * 151, [2.0] * 151)))
    counts = [float(t.split(": ")[1].split()[0]) for t in found if t.startswith("judge")]
    assert sum(counts) == 302
    assert "judge: 2 responses with 150 lines met" in found


def test_the_area_of_a_bubble_is_its_number_of_responses() -> None:
    root = parsed(SCATTER, scatter(10, [[3, 3, 36], [5, 6, 9], [7, 6, 4]]))
    found = {t.split(": ")[1]: number(c, "r") for t, c in dots(root).items()}
    assert found["36 responses"] == pytest.approx(2 * found["9 responses"], abs=0.02)
    assert found["36 responses"] == pytest.approx(3 * found["4 responses"], abs=0.02)


def test_what_the_judge_gives_beyond_gold_stands_above_the_line() -> None:
    root = parsed(SCATTER, scatter(10, [[3, 3, 1], [3, 8, 1], [8, 3, 1]]))
    line = next(
        e for e in root.iter(f"{SVG}line") if e.get("stroke-dasharray") and number(e, "x2") > 400
    )
    slope = (number(line, "y2") - number(line, "y1")) / (number(line, "x2") - number(line, "x1"))
    assert slope == pytest.approx(-1)

    def above(circle: ElementTree.Element) -> float:
        x = number(circle, "cx")
        return number(line, "y1") + slope * (x - number(line, "x1")) - number(circle, "cy")

    found = {t.split(" responses")[0]: above(c) for t, c in dots(root).items()}
    assert found["3 by judge, 3 by gold: 1"] == pytest.approx(0, abs=0.05)
    assert found["8 by judge, 3 by gold: 1"] > 50
    assert found["3 by judge, 8 by gold: 1"] < -50


def test_near_totals_that_share_a_range_are_not_called_equal() -> None:
    data = scatter(150, [[50, 51, 7], [50, 50, 2], [90, 10, 1]])
    said = words(parsed(SCATTER, data))
    assert {"7 (70.0 %)", "2 (20.0 %)", "1 (10.0 %)"} <= set(said)
    assert SCATTER.lines is not None
    drawn = " ".join(SCATTER.lines(data, 60, True))
    assert "(judge higher) 7, on it 2, below it 1." in drawn


def test_leniency_is_said_with_its_interval_or_not_at_all() -> None:
    data = scatter(2, [[1, 2, 3]])
    lenient = data | {"leniency": {"value": 0.4611, "low": -0.1, "high": 0.62}}
    assert "+0.46 [−0.10, 0.62]" in words(parsed(SCATTER, lenient))
    assert "not said" in words(parsed(SCATTER, data))
    assert SCATTER.lines is not None
    assert "+0.46 [-0.10, 0.62]" in " ".join(SCATTER.lines(lenient, 100, True))


# --- positions ------------------------------------------------------------------------------------


def test_the_overall_rate_is_a_dashed_line_at_its_height() -> None:
    root = parsed(POSITIONS, positions([0.05, 0.1, 0.0], overall=0.05))
    (dashed,) = [e for e in root.iter(f"{SVG}line") if e.get("stroke-dasharray")]
    spots = {t.split(": ")[1].split(" [")[0]: number(c, "cy") for t, c in dots(root).items()}
    assert number(dashed, "y1") == spots["5.0 %"]
    assert spots["0.0 %"] - spots["10.0 %"] == pytest.approx(
        2 * (spots["0.0 %"] - spots["5.0 %"]), abs=0.02
    )
    assert "overall" in words(root)


def test_a_wide_interval_is_cut_with_a_mark_and_does_not_press_the_rest_flat() -> None:
    data = positions([0.05, 0.04])
    data["positions"][0]["high"] = 0.9
    root = parsed(POSITIONS, data)
    assert len(list(root.iter(f"{SVG}path"))) == 1
    assert not list(parsed(POSITIONS, positions([0.05, 0.04])).iter(f"{SVG}path"))
    assert POSITIONS.lines is not None
    first = POSITIONS.lines(data, 80, True)[1]
    assert ">" in first


def test_a_position_without_a_rate_has_no_dot() -> None:
    root = parsed(POSITIONS, positions([0.05, None, 0.1]))
    assert len(dots(root)) == 2
    assert "–" in words(root)


def test_positions_beyond_those_drawn_are_counted() -> None:
    said = " ".join(words(parsed(POSITIONS, positions([0.1] * 150))))
    assert "30 more positions are not drawn" in said


# --- cuts -----------------------------------------------------------------------------------------


def test_the_two_marks_of_a_cut_are_joined() -> None:
    root = parsed(CUTS, cuts([(0.741, 0.676)]))
    (judge,) = dots(root).values()
    joins = [e for e in root.iter(f"{SVG}line") if e.get("stroke-width") == "3"]
    assert len(joins) == 1
    assert number(joins[0], "x1") == number(judge, "cx")
    # The axis goes from 0 to 1 over 66 … 584.
    assert number(judge, "cx") == pytest.approx(66 + 0.741 * 518, abs=0.01)
    assert number(joins[0], "x2") == pytest.approx(66 + 0.676 * 518, abs=0.01)
    assert "+0.065 [0.015, 0.115]" in words(root)


def test_a_coefficient_that_cannot_be_said_has_its_reason_and_no_mark() -> None:
    root = parsed(CUTS, cuts([(0.5, None)]))
    assert len(dots(root)) == 1
    assert not [e for e in root.iter(f"{SVG}line") if e.get("stroke-width") == "3"]
    assert "gold: no information" in words(root)


# --- lines ----------------------------------------------------------------------------------------


def test_errors_of_a_line_are_bars_of_two_kinds() -> None:
    found = bars(parsed(WORST, worst([("a", "", 6, 2), ("b", "", 3, 0)])))
    wide = {t.split(":")[0] + t.split("× ")[1][:12]: w for t, (w, _, _) in found.items()}
    assert wide["afalse accept"] == pytest.approx(2 * wide["bfalse accept"], abs=0.02)
    assert wide["afalse accept"] == pytest.approx(3 * (wide["afalse reject"] + 1), abs=0.05)
    hatched = {t: f.startswith("url") for t, (_, _, f) in found.items()}
    assert [h for t, h in hatched.items() if "reject" in t] == [True]
    assert not any(h for t, h in hatched.items() if "accept" in t)


def test_what_a_line_asks_is_cut_and_stands_whole_in_its_title() -> None:
    text = f"{RTL} <b>names</b> the axis. " + "It goes on. " * 60
    content = WORST.svg(worst([("e1", text, 2, 0)]), "alt")
    root = ElementTree.fromstring(content)
    (cut,) = [w for w in words(root) if w.startswith(RTL)]
    assert len(cut) < 110
    assert any("".join(t.itertext()) == text for t in root.iter(f"{SVG}title"))
    holder = next(t for t in root.iter(f"{SVG}tspan") if (t.text or "").startswith(RTL))
    assert holder.get("style") == "unicode-bidi:isolate"


def test_at_most_ten_lines_are_drawn_and_the_rest_is_counted() -> None:
    data = worst([(f"e{i}", "", 20 - i, 0) for i in range(15)], other_errors=43, other_lines=24)
    said = words(parsed(WORST, data))
    assert "e9" in said
    assert "e10" not in said
    assert "43 more errors lie on 24 other lines." in said


# --- from banks -----------------------------------------------------------------------------------


def estimate(name: str, value: float, half: float | None = None, **key: str) -> Estimate:
    estimand: Estimand = replace(RATE, name=name)
    interval = (
        None
        if half is None
        else Interval(low=value - half, high=value + half, level=0.95, method="test")
    )
    said: float | Undefined = Undefined("no reason") if math.isnan(value) else value
    return Estimate(estimand=estimand, key=Key(**key), value=said, interval=interval, n=180)


def of(labels: Labels) -> Scene:
    return scenes(labels)[0]


def by_name(figures: Iterable[Figure]) -> dict[str, Figure]:
    return {f.name: f for f in figures}


def both_totals(scene: Scene) -> list[Figure]:
    return [*totals_figures(scene, Estimates([])), *scatter_figures(scene, Estimates([]))]


def small(judges: int = 1, gold: bool = True, **options: Any) -> Labels:
    rng = np.random.default_rng(7)
    truth = (rng.random((40, 4)) < 0.6).astype(float)
    graders: dict[str, Any] = {"gold": truth} if gold else {}
    for j in range(judges):
        graders[f"judge {j}"] = np.where(rng.random((40, 4)) < 0.1, 1 - truth, truth)
    return verdicts(graders, **options)


def test_the_figures_of_the_paper_s_bank_hold_its_counts() -> None:
    drawn = by_name(both_totals(of(real_bank())))
    gold, judge = drawn["totals_histogram"].data["series"]
    assert (gold["at_ceiling"], judge["at_ceiling"]) == (6, 9)  # TWM Figure A.1
    assert sum(gold["counts"]) == sum(judge["counts"]) == 180
    said = plain(drawn["totals_histogram"].caption)
    assert "180 responses that both scored in full" in said
    assert "gold 6 and judge 9" in said
    cells = drawn["totals_scatter"].data["cells"]
    assert sum(n for _, _, n in cells) == 180
    lenient = sum((j - g) * n for g, j, n in cells) / 180
    assert lenient == pytest.approx(0.46, abs=0.005)  # TWM Section 4
    worst = worst_lines_figures(of(real_bank()), Estimates([]))[0]
    assert "85 errors on 34 of 130 lines" in plain(worst.caption)
    five = worst.data["lines"][:5]
    assert sum(r["false_accepts"] + r["false_rejects"] for r in five) == 25
    hidden = worst.data["other_errors"]
    assert sum(r["false_accepts"] + r["false_rejects"] for r in worst.data["lines"]) + hidden == 85


def test_bars_of_lines_agree_with_a_count_by_hand() -> None:
    gold, judge, questions = real_matrices()
    (figure,) = worst_lines_figures(of(real_bank()), Estimates([]))
    for row in figure.data["lines"]:
        question, position = row["line"].split("/e")
        mine = [q == question for q in questions] & ~np.isnan(judge[:, 0])
        g, j = gold[mine, int(position) - 1], judge[mine, int(position) - 1]
        assert row["false_accepts"] == ((g == 0) & (j == 1)).sum()
        assert row["false_rejects"] == ((g == 1) & (j == 0)).sum()
        assert row["n"] == mine.sum()


def test_without_gold_only_the_totals_are_drawn() -> None:
    scene = of(small(judges=2, gold=False, cut=(2,)))
    drawn = totals_figures(scene, Estimates([]))
    assert [f.name for f in drawn] == ["totals_histogram", "totals_histogram"]
    assert [len(f.data["series"]) for f in drawn] == [1, 1]
    for make in (scatter_figures, position_figures, dependability_figures, worst_lines_figures):
        assert make(scene, Estimates([])) == []


def test_each_judge_has_figures_of_its_own_up_to_a_limit() -> None:
    drawn = both_totals(of(small(judges=3)))
    assert len(drawn) == 6
    assert len({f.title for f in drawn}) == 6
    assert len(totals_figures(of(small(judges=9)), Estimates([]))) == MOST_JUDGES


def test_estimates_that_are_not_there_make_no_figure() -> None:
    scene = of(small(cut=(2,)))
    nothing = Estimates(
        [
            estimate("element_error", math.nan, grader="judge 0", line="position:1"),
            estimate("phi_lambda", math.nan, grader="judge 0", cut="2"),
        ]
    )
    for found in (Estimates([]), nothing):
        assert position_figures(scene, found) == []
        assert dependability_figures(scene, found) == []


def test_positions_and_their_overall_rate_come_from_the_estimates() -> None:
    found = Estimates(
        [
            estimate("element_error", 0.05, 0.01, grader="judge 0"),
            estimate("element_error", 0.04, 0.03, grader="judge 0", line="position:1"),
            estimate("element_error", 0.06, 0.02, grader="judge 0", line="position:3"),
        ]
    )
    (figure,) = position_figures(of(small()), found)
    assert [p["position"] for p in figure.data["positions"]] == [1, 3]
    assert figure.data["positions"][1]["high"] == pytest.approx(0.08)
    assert figure.data["overall"]["value"] == 0.05
    assert "95 % intervals" in plain(figure.caption)
    assert "overall rate, 5.0 %" in plain(figure.caption)


@pytest.mark.parametrize("judges", [1, 2])
def test_both_values_of_a_cut_come_from_the_same_responses(judges: int) -> None:
    scene = of(small(judges=judges, cut=(2, 3)))
    made = [
        estimate("phi_lambda", 0.9, grader="gold", cut=cut, other=other)
        for cut in ("2", "3")
        for other in ("", "judge 0", "judge 1")
        if other or judges == 1
    ]
    made = [replace(e, value=0.4) if e.key.other == "judge 1" else e for e in made]
    made += [
        estimate("phi_lambda", 0.7, 0.1, grader=f"judge {j}", cut=cut)
        for j in range(judges)
        for cut in ("2", "3")
    ]
    drawn = dependability_figures(scene, Estimates(made))
    assert [[c["gold"]["value"] for c in f.data["cuts"]] for f in drawn] == [
        [0.9, 0.9],
        [0.4, 0.4],
    ][:judges]


def test_the_figure_of_cuts_never_speaks_of_accuracy() -> None:
    made = [
        estimate("phi_lambda", 0.7, 0.1, grader="judge 0", cut="2"),
        estimate("phi_lambda", 0.6, 0.1, grader="gold", cut="2"),
        estimate("gate_accuracy", 0.93, 0.1, grader="judge 0", cut="2"),
    ]
    (figure,) = dependability_figures(of(small(cut=(2,))), Estimates(made))
    content = CUTS.svg(figure.data, plain(figure.alt))
    assert CUTS.lines is not None
    said = " ".join(
        [figure.title, plain(figure.caption), content, *CUTS.lines(figure.data, 80, False)]
    )
    assert "accura" not in said.lower()
    assert "0.93" not in said
    assert "not the judge" in plain(figure.caption)


def test_weights_count_in_the_totals() -> None:
    gold = np.array([[1.0, 1], [0, 0], [1, 0]])
    judge = np.array([[1.0, 1], [0, 1], [1, 0]])
    scene = of(verdicts({"gold": gold, "judge": judge}, weights=[2, 1, 1], weight_kind="frequency"))
    drawn = by_name(both_totals(scene))
    assert drawn["totals_histogram"].data["series"][0]["counts"] == [1, 1, 2]
    assert "by weight" in plain(drawn["totals_histogram"].caption)
    assert sorted(drawn["totals_scatter"].data["cells"]) == [[0, 1, 1], [1, 1, 1], [2, 2, 2]]


def test_checklists_of_different_lengths_have_no_common_ceiling() -> None:
    gold = np.array([[1.0, 1, 1], [1, 0, 1], [1, 1, np.nan], [0, 1, np.nan]])
    labels = verdicts(
        {"gold": gold, "judge": gold}, questions=["a", "a", "b", "b"], lengths={"a": 3, "b": 2}
    )
    figure = by_name(totals_figures(of(labels), Estimates([])))["totals_histogram"]
    assert figure.data["one_length"] is False
    assert [s["at_ceiling"] for s in figure.data["series"]] == [2, 2]
    assert "every line met" in plain(figure.caption)
    assert figure.data["k"] == 3


@pytest.mark.parametrize("name", [NASTY, RTL])
def test_a_bank_with_hostile_names_is_drawn(name: str) -> None:
    rng = np.random.default_rng(3)
    truth = (rng.random((30, 3)) < 0.5).astype(float)
    labels = verdicts(
        {"gold": truth, name: np.where(rng.random((30, 3)) < 0.2, 1 - truth, truth)},
        questions=[f"{name}{i % 3}" for i in range(30)],
    )
    drawings = {d.name: d for d in plugins.load("figures", Drawing)}
    scene = of(labels)
    figures = [*both_totals(scene), *worst_lines_figures(scene, Estimates([]))]
    assert len(figures) == 3
    for figure in figures:
        content = drawings[figure.name].svg(figure.data, plain(figure.alt))
        assert ElementTree.fromstring(content).tag == f"{SVG}svg"
        assert "<script" not in content
