"""Flow bands show where labels go, and the pairwise matrix how far every two graders agree."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest

import voirdire as vd
from tests import drawn
from tests.test_figures import NASTY, SVG, TOP, parsed, words
from voirdire import plugins
from voirdire.document import Figure, Table
from voirdire.figures.base import Drawing
from voirdire.figures.coverage import DRAWING as COVERAGE
from voirdire.figures.flow_bands import DRAWING as FLOWS
from voirdire.figures.flow_bands import LEFT, RIGHT
from voirdire.figures.kappa_rate import DRAWING as KAPPA
from voirdire.figures.kept_moved import DRAWING as KEPT
from voirdire.figures.pairwise_matrix import DRAWING as MATRIX
from voirdire.figures.pairwise_matrix import short_count
from voirdire.figures.people_axis import DRAWING as PEOPLE
from voirdire.figures.svg import RAMP, dark_variables
from voirdire.wording import Name, plain

SCALE = ["refusal", "evasion", "compliance"]


def flows(rows: list[dict[str, Any]], **extra: Any) -> dict[str, Any]:
    full = [{"note": "", "flagged": False, "found": 0, "moved": {}, **row} for row in rows]
    return {
        "class": "compliance", "classes": SCALE, "off_scale": ["gibberish"], "from": "reference",
        "total": 152, "rows": full, **extra,
    }  # fmt: skip


def matrix(k: int, **extra: Any) -> dict[str, Any]:
    cells = [
        {"row": f"g{i}", "column": f"g{j}", "value": 0.1 * (i + j), "n": 900, "reason": ""}
        for i in range(k)
        for j in range(i)
    ]
    graders = [{"grader": f"g{i}", "note": "", "flagged": False} for i in range(k)]
    return {"graders": graders, "cells": cells, "coefficient": "kappa", **extra}


LLAMA = {"grader": "Llama", "stays": 8, "moved": {"evasion": 118, "refusal": 26}, "found": 1}
LARGE = {"grader": "large", "stays": 149, "moved": {"evasion": 3, "refusal": 0}, "found": 55}
NASTY_FLOWS = {
    "class": NASTY, "classes": [NASTY, "b"], "off_scale": [NASTY + "x"], "from": NASTY, "total": 9,
    "rows": [{"grader": NASTY, "stays": 1, "moved": {"b": 2, NASTY + "x": 5}, "found": None,
              "note": "person", "flagged": True}],
}  # fmt: skip
NASTY_MATRIX = {
    "graders": [{"grader": NASTY, "note": "reference", "flagged": True},
                {"grader": NASTY + "2", "note": "", "flagged": True}],
    "cells": [{"row": NASTY, "column": NASTY + "2", "value": None, "n": None, "reason": NASTY}],
    "coefficient": NASTY,
}  # fmt: skip
NASTIES = [(FLOWS, NASTY_FLOWS), (MATRIX, NASTY_MATRIX)]


def bands(root: ElementTree.Element) -> dict[str, float]:
    """Width of each band by its title."""
    return {
        title.text or "": float(rect.get("width") or 0)
        for rect in root.iter(f"{SVG}rect")
        if (title := rect.find(f"{SVG}title")) is not None
    }


# --- both -------------------------------------------------------------------------------------------


def test_both_are_found_by_listing_the_folder() -> None:
    found = {d.name for d in plugins.load("figures", Drawing)}
    assert {"flow_bands", "pairwise_matrix"} <= found


@pytest.mark.parametrize(("drawing", "data"), NASTIES)
def test_hostile_names_are_text_and_nothing_else(drawing: Drawing, data: Any) -> None:
    content = drawing.svg(data, NASTY)
    tags = {e.tag.removeprefix(SVG) for e in ElementTree.fromstring(content).iter()}
    known = {"svg", "title", "desc", "defs", "pattern", "rect", "circle", "path", "text", "tspan"}
    assert tags <= known
    assert content.count("</svg>") == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", content)
    assert content == drawing.svg(data, NASTY)
    assert max(len(w) for w in words(ElementTree.fromstring(content))) < 90


@pytest.mark.parametrize(
    ("drawing", "data"), [*NASTIES, (FLOWS, flows([LLAMA])), (MATRIX, matrix(9))]
)
@pytest.mark.parametrize("width", [40, 60, 100])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_in_text_each_figure_is_safe_and_plain(
    drawing: Drawing, data: Any, width: int, ascii_only: bool
) -> None:
    assert drawing.lines is not None
    found = drawing.lines(data, width, ascii_only)
    assert found
    assert all("\x1b" not in line and "\n" not in line for line in found)
    if ascii_only:
        assert not set("".join(found)) & set("░▒▓█→◂…–")


@pytest.mark.parametrize(("drawing", "data"), [(FLOWS, flows([LLAMA, LARGE])), (MATRIX, matrix(9))])
def test_colours_have_a_dark_counterpart_and_a_fallback(drawing: Drawing, data: Any) -> None:
    content = drawing.svg(data, "alt")
    assert "var(--vd" not in re.sub(r"var\(--vd-[a-z0-9-]+,#[0-9a-f]{6}\)", "", content)
    used = set(re.findall(r"var\((--vd-[a-z0-9-]+)", content))
    assert used <= set(re.findall(r"--vd-[a-z0-9-]+", dark_variables()))


# --- flow bands -------------------------------------------------------------------------------------


def test_band_widths_are_in_proportion_and_their_counts_stand_inside() -> None:
    root = parsed(FLOWS, flows([LLAMA]))
    found = bands(root)
    unit = (RIGHT - LEFT) / 152
    # 118 of 152 move one step: one wide band in the middle, less the gap between two bands.
    assert found["moved to evasion: 118 of 152 (77.6 %)"] == pytest.approx(118 * unit - 2, abs=0.02)
    assert found["stays: 8 of 152 (5.3 %)"] == pytest.approx(8 * unit - 2, abs=0.02)
    assert {"8", "118", "26"} <= set(words(root))


def test_bands_follow_the_scale_down_from_the_class() -> None:
    root = parsed(FLOWS, flows([LLAMA]))
    assert list(bands(root)) == [
        "stays: 8 of 152 (5.3 %)",
        "moved to evasion: 118 of 152 (77.6 %)",
        "moved to refusal: 26 of 152 (17.1 %)",
    ]
    middle = flows(
        [{"grader": "g", "stays": 1, "moved": {"refusal": 2, "compliance": 3, "gibberish": 4}}]
    )
    root = parsed(FLOWS, middle | {"class": "evasion", "total": 10})
    assert [t.split(":")[0] for t in bands(root)] == [
        "stays", "moved to compliance", "moved to refusal", "moved to gibberish",
    ]  # fmt: skip


def test_what_the_grader_finds_elsewhere_stands_at_the_right() -> None:
    shown = words(parsed(FLOWS, flows([LLAMA, LARGE, {"grader": "?", "stays": 9, "found": None}])))
    assert "+1" in shown
    assert "+55" in shown
    assert "–" in shown


def test_labels_that_the_grader_could_not_be_read_on_are_open_and_not_moved() -> None:
    found = bands(parsed(FLOWS, flows([{"grader": "g", "stays": 100, "moved": {"evasion": 12}}])))
    assert found["could not be read: 40"] == pytest.approx((RIGHT - LEFT) * 40 / 152, abs=0.02)
    assert "stays: 100 of 112 (89.3 %)" in found  # shares are of what could be read
    whole = bands(parsed(FLOWS, flows([LLAMA])))
    assert not any("could not be read" in t for t in whole)


def test_a_class_collapse_is_one_wide_band_in_text_too() -> None:
    assert FLOWS.lines is not None
    drawn = FLOWS.lines(flows([LLAMA | {"flagged": True}, LARGE]), 100, False)
    (row,) = [line for line in drawn if line.startswith("Llama ")]
    assert row.count("▒") == 31  # 118 of 152 of 40 characters
    assert "8 / 118 / 26 + 1" in row
    assert row.endswith("◂ flagged")
    narrow = "\n".join(FLOWS.lines(flows([LLAMA]), 40, False))
    assert "8 / 118 / 26 + 1" in narrow


def test_a_flag_is_a_mark_and_not_only_a_colour() -> None:
    root = parsed(FLOWS, flows([LLAMA | {"flagged": True}]))
    titles = ["".join(e.itertext()) for e in root.iter(f"{SVG}title")]
    assert titles.count("flagged") == 2  # at the row and in the legend


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"grader": "g", "stays": 0}],
        [{"grader": "g", "stays": 0, "moved": {"evasion": 1e7}}],
        [{"grader": f"g{i}", "stays": i} for i in range(80)],
    ],
)
def test_flows_at_the_edge_can_be_drawn(rows: list[dict[str, Any]]) -> None:
    assert parsed(FLOWS, flows(rows)) is not None
    assert parsed(FLOWS, flows(rows, total=None)) is not None
    assert FLOWS.lines is not None
    assert FLOWS.lines(flows(rows), 80, False)
    if len(rows) > 60:
        assert "20 more graders are not drawn." in words(parsed(FLOWS, flows(rows)))


# --- pairwise matrix --------------------------------------------------------------------------------


def test_each_pair_has_one_cell_with_its_number_and_its_n() -> None:
    data = matrix(3)
    data["cells"][0]["n"] = 12
    root = parsed(MATRIX, data)
    shown = words(root)
    assert [w for w in shown if re.fullmatch(r"0\.\d\d", w)] == ["0.10", "0.20", "0.30"]
    assert shown.count("900") == 2
    assert shown.count("12") == 1
    assert "g1 and g0: 0.10 on 12 responses" in bands(root)


def test_the_pair_may_be_given_either_way_round() -> None:
    data = matrix(3)
    turned = matrix(3)
    for cell in turned["cells"]:
        cell["row"], cell["column"] = cell["column"], cell["row"]
    assert MATRIX.svg(data, "alt") == MATRIX.svg(turned, "alt")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("value", [-0.4, 0.0, 0.05, 0.5, 0.72, 0.95, 1.0])
def test_the_number_can_be_read_on_its_shade(value: float) -> None:
    data = matrix(2)
    data["cells"][0]["value"] = value
    root = parsed(MATRIX, data)
    (box,) = [e for e in root.iter(f"{SVG}rect") if e.find(f"{SVG}title") is not None]
    texts = [e for e in root.iter(f"{SVG}text") if e.text in (f"{value:.2f}", "900")]
    assert len(texts) == 2
    for text in texts:
        light, dark = sorted((luminance(str(e.get("fill"))) for e in (box, text)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_higher_agreement_is_darker_and_perfect_agreement_the_darkest() -> None:
    shades = []
    for value in (0.05, 0.35, 0.65, 0.95, 1.0):
        data = matrix(2)
        data["cells"][0]["value"] = value
        root = parsed(MATRIX, data)
        (box,) = [e for e in root.iter(f"{SVG}rect") if e.find(f"{SVG}title") is not None]
        shades.append([fill for fill, _ in RAMP].index(str(box.get("fill"))))
    assert shades == sorted(set(shades))
    assert RAMP[shades[-1]][0] == TOP


def test_a_kappa_that_is_not_defined_is_a_dash_on_an_open_cell_with_its_reason() -> None:
    data = matrix(3)
    data["cells"][1] |= {"value": None, "reason": "not defined: one class used"}
    root = parsed(MATRIX, data)
    assert any("not defined: one class used" in t for t in bands(root))
    assert "–" in words(root)
    assert "not defined" in words(root)


@pytest.mark.parametrize("k", [2, 3, 8, 30, 33])
def test_panels_of_every_size_are_drawn_with_all_numbers(k: int) -> None:
    root = parsed(MATRIX, matrix(k))
    cells = min(k, 30) * (min(k, 30) - 1) // 2
    assert len(bands(root)) == cells
    assert words(root).count("900") == cells
    smallest = min(float(e.get("font-size") or 0) for e in root.iter(f"{SVG}text"))
    assert smallest >= 6
    assert MATRIX.lines is not None
    drawn = "\n".join(MATRIX.lines(matrix(k), 100, False))
    assert len(re.findall(r" \d\.\d\d", drawn)) == cells
    if k > 30:
        assert "3 more graders are not drawn." in words(root)


def test_in_text_n_stands_under_each_number_only_where_it_differs() -> None:
    assert MATRIX.lines is not None
    assert "each on 900 responses" in MATRIX.lines(matrix(4), 80, False)[0]
    data = matrix(4)
    data["cells"][0]["n"] = 12345
    drawn = MATRIX.lines(data, 80, False)
    assert "n under each" in drawn[0]
    assert "12k" in "\n".join(drawn)


@pytest.mark.parametrize(
    ("n", "short"),
    [(None, "–"), (0, "0"), (900, "900"), (9999, "9999"), (12345, "12k"), (1234567, "1.2M")],
)
def test_long_counts_are_shortened_to_four_characters(n: float | None, short: str) -> None:
    assert short_count(n) == short


# --- in the report ----------------------------------------------------------------------------------


def planted(*, graders: int = 5, gold: bool = False) -> pl.DataFrame:
    """150 responses in 50 clusters; grader 0 turns compliance into evasion, the others keep it."""
    rows = []
    for i, g in itertools.product(range(150), range(graders + gold)):
        label = SCALE[i % 3]
        name = f"g{g}" if g < graders else "gold"
        if g == 0 and label == "compliance":
            label = "evasion"
        elif g == 1 and i % 15 == 2:
            label = "refusal"
        rows.append((f"r{i}", f"c{i // 3}", name, label))
    return pl.DataFrame(rows, schema=["response", "cluster", "grader", "label"], orient="row")


def figures(audit: vd.Audit, name: str) -> list[Figure]:
    return [b for b in audit.document.blocks if isinstance(b, Figure) and b.name == name]


def test_the_audit_draws_where_the_references_top_class_goes() -> None:
    audit = vd.audit(vd.read(planted(), scale=SCALE, reference="g4"))
    (figure,) = figures(audit, "flow_bands")
    assert figure.data["class"] == "compliance"
    assert figure.data["total"] == 50
    rows = {r["grader"]: r for r in figure.data["rows"]}
    assert set(rows) == {"g0", "g1", "g2", "g3"}
    assert rows["g0"] == {
        "grader": "g0", "stays": 0, "moved": {"refusal": 0, "evasion": 50}, "found": 0,
        "note": "", "flagged": True,
    }  # fmt: skip
    # Of compliance, i = 2, 5, 8, … and i % 15 == 2: every fifth of 50 goes to refusal.
    assert rows["g1"]["moved"] == {"refusal": 10, "evasion": 0}
    assert "g0 keeps 0, 50 go to evasion, 0 found" in plain(figure.alt)


def test_responses_without_a_majority_are_not_said_to_be_unread() -> None:
    rows = [(f"r{i}", "gold", "1", "yes" if i < 6 else "no") for i in range(12)]
    for i in range(12):
        rows += [(f"r{i}", "g", "1", "yes"), (f"r{i}", "g", "2", "no" if i < 2 else "yes")]
    frame = pl.DataFrame(rows, schema=["response", "grader", "vote", "label"], orient="row")
    (figure,) = figures(vd.audit(vd.read(frame, scale=["no", "yes"])), "flow_bands")
    assert figure.data["open"] == "no majority or not read"
    assert "no majority or not read: 2" in bands(parsed(FLOWS, figure.data))
    assert FLOWS.table is not None
    assert any("no majority or not read" in row for row in FLOWS.table(figure.data)[1])
    assert "open" not in figures(vd.audit(vd.read(planted(), scale=SCALE, reference="g4")), "flow_bands")[0].data  # fmt: skip


def test_gold_goes_before_the_reference_and_is_no_row() -> None:
    audit = vd.audit(vd.read(planted(gold=True), scale=SCALE, reference="g4", gold="gold"))
    (figure,) = figures(audit, "flow_bands")
    assert figure.data["from"] == "gold"
    assert {r["grader"] for r in figure.data["rows"]} == {f"g{i}" for i in range(5)}
    (pairs,) = figures(audit, "pairwise_matrix")
    assert "gold" not in {g["grader"] for g in pairs.data["graders"]}


def test_a_collapsed_class_below_the_top_is_followed_too() -> None:
    frame = planted().with_columns(
        label=pl.when((pl.col("grader") == "g2") & (pl.col("label") == "evasion"))
        .then(pl.lit("refusal"))
        .otherwise("label")
    )
    audit = vd.audit(vd.read(frame, scale=SCALE, reference="g4"))
    assert [f.data["class"] for f in figures(audit, "flow_bands")] == ["compliance", "evasion"]


def test_without_gold_and_reference_no_flow_is_drawn() -> None:
    audit = vd.audit(vd.read(planted(), scale=SCALE))
    assert not figures(audit, "flow_bands")


@pytest.mark.parametrize(("graders", "drawn"), [(2, 0), (3, 1), (30, 1), (31, 0)])
def test_the_matrix_is_drawn_for_three_to_thirty_graders(graders: int, drawn: int) -> None:
    audit = vd.audit(vd.read(planted(graders=graders), scale=SCALE, reference="g1"))
    found = figures(audit, "pairwise_matrix")
    assert len(found) == drawn
    for figure in found:
        assert len(figure.data["cells"]) == graders * (graders - 1) // 2
        cells = {frozenset((c["row"], c["column"])): c for c in figure.data["cells"]}
        results = audit.results.filter(pl.col("statistic") == "cohen_kappa")
        for row in results.iter_rows(named=True):
            cell = cells[frozenset((row["grader"], row["other"]))]
            assert cell["value"] == row["value"]
            assert cell["n"] == row["n"]


def test_the_report_holds_both_drawings(tmp_path: Any) -> None:
    audit = vd.audit(vd.read(planted(), scale=SCALE, reference="g4"))
    audit.write(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "moved to evasion: 50 of 50 (100.0 %)" in page
    assert "g1 and g0: " in page
    audit.write(tmp_path / "a.txt")
    text = (tmp_path / "a.txt").read_text(encoding="utf-8")
    assert "0 / 50 / 0 + 0" in text
    assert "kappa, each on 150 responses" in text


# --- kept and moved, people, kappa against the rate ---------------------------------------------------


def names_in(text: Any) -> set[str]:
    return {p.text for p in text if isinstance(p, Name)}


def test_kept_and_moved_counts_every_class_of_the_reference() -> None:
    audit = vd.audit(vd.read(planted(), scale=SCALE, reference="g4"))
    (figure,) = figures(audit, "kept_moved")
    assert [f["class"] for f in figure.data["flows"]] == SCALE
    top = {r["grader"]: r for r in figure.data["flows"][-1]["rows"]}
    assert top["g0"] == {"grader": "g0", "stays": 0, "moved": {"refusal": 0, "evasion": 50}}
    assert top["g1"] == {"grader": "g1", "stays": 40, "moved": {"refusal": 10, "evasion": 0}}
    assert figure.data["graders"][0]["grader"] == "g0"  # who keeps least of the top class
    root = parsed(KEPT, figure.data)
    assert "g0, compliance: given evasion 50 of 50 (100.0 %)" in bands(root)
    assert "g1, compliance: kept 40 of 50 (80.0 %)" in bands(root)


def test_what_is_kept_is_tall_and_what_moves_is_low() -> None:
    audit = vd.audit(vd.read(planted(), scale=SCALE, reference="g4"))
    root = parsed(KEPT, figures(audit, "kept_moved")[0].data)
    tall = {
        title.text or "": float(rect.get("height") or 0)
        for rect in root.iter(f"{SVG}rect")
        if (title := rect.find(f"{SVG}title")) is not None
    }
    kept = {h for t, h in tall.items() if ": kept " in t}
    given = {h for t, h in tall.items() if ": given " in t}
    assert len(kept) == len(given) == 1
    assert kept.pop() > 2 * given.pop()


def test_people_stand_on_the_graders_axis_with_the_same_mark() -> None:
    labels = vd.read(planted(), scale=SCALE, reference="g4", people=["g2"])
    audit = vd.audit(labels)
    (figure,) = figures(audit, "people_axis")
    roles = {d["grader"]: d["role"] for d in figure.data["dots"]}
    assert roles == {"g0": "", "g1": "", "g2": "person", "g3": "", "g4": "reference"}
    assert {d["n"] for d in figure.data["dots"]} == {150}
    values = [d["value"] for d in figure.data["dots"]]
    assert values == sorted(values)
    marks = {
        "".join(g.itertext()).partition(":")[0]: (g[-1].tag, g[-1].get("fill"))
        for g in parsed(PEOPLE, figure.data).iter(f"{SVG}g")
    }
    assert marks["g2"] == marks["g1"]
    assert marks["g4"] != marks["g1"]  # the open ring of the reference


@pytest.mark.parametrize("people", [[], ["g0", "g1", "g2", "g3", "g4"]])
def test_without_people_or_with_people_only_nothing_is_set_beside(people: list[str]) -> None:
    audit = vd.audit(vd.read(planted(), scale=SCALE, reference="g4", people=people))
    assert not figures(audit, "people_axis")


def test_kappa_stands_beside_the_rate_of_the_same_grader() -> None:
    audit = vd.audit(vd.read(planted(gold=True), scale=SCALE, gold="gold"))
    (figure,) = figures(audit, "kappa_rate")
    results = audit.results
    for dot in figure.data["dots"]:
        for statistic, key, kappa in (("cohen_kappa", "other", "kappa"), ("rate", "class", "rate")):
            of = "gold" if key == "other" else "compliance"
            row = results.filter(
                (pl.col("statistic") == statistic)
                & (pl.col("grader") == dot["grader"])
                & (pl.col(key) == of)
            ).row(0, named=True)
            assert dot[kappa] == row["value"]
            assert (dot[f"{kappa}_low"], dot[f"{kappa}_high"]) == (row["low"], row["high"])
    assert figure.data["standard_rate"] == pytest.approx(50 / 150)
    said = words(parsed(KAPPA, figure.data))
    assert "g0" in said
    assert "gold 33.3 %" in said


def test_numbers_of_graders_never_lie_on_each_other() -> None:
    dots = [
        {"grader": f"g{i}", "kappa": 0.8, "rate": 0.2, "n": 9, "note": "", "flagged": False}
        for i in range(9)
    ]
    data = {
        "coefficient": "kappa",
        "standard": "gold",
        "standard_rate": None,
        "rate": "yes",
        "dots": dots,
    }
    root = parsed(KAPPA, data)
    at = [
        (float(c.get("cx") or 0), float(c.get("cy") or 0))
        for c in root.iter(f"{SVG}circle")
        if c.find(f"{SVG}title") is not None
    ]
    assert len(at) == 9
    assert all(math.dist(a, b) >= 15 for a, b in itertools.combinations(at, 2))


@pytest.mark.parametrize(("drawing", "data"), [
    (KEPT, {"from": "gold", "classes": SCALE, "off_scale": [], "graders": [], "flows": []}),
    (PEOPLE, {"rate": "yes", "dots": []}),
    (KAPPA, {"coefficient": "kappa", "standard": "gold", "standard_rate": 0.0, "rate": "yes", "dots": []}),
    (COVERAGE, {"level": 0.95, "cases": []}),
])  # fmt: skip
def test_figures_without_anything_can_be_drawn(drawing: Drawing, data: Any) -> None:
    assert parsed(drawing, data) is not None
    assert drawing.lines is not None
    assert drawing.lines(data, 60, False)
    assert drawing.table(data)[1] == ()


def test_what_is_beyond_a_drawing_is_counted() -> None:
    kept = drawn.example("kept_moved")
    kept["graders"] = [{"grader": f"x{i}", "note": "", "flagged": i == 69} for i in range(70)]
    kept["flows"] = [kept["flows"][0] | {"class": c} for c in "abcdefgh"]
    kept["classes"] = list("abcdefgh")
    said = words(parsed(KEPT, kept))
    assert "10 more graders are not drawn. 2 more classes are not drawn." in said
    assert "x69" in said
    people = {"rate": "yes", "dots": [{"grader": f"x{i}", "value": 0.1, "n": 3, "role": "person" if i == 64 else ""} for i in range(65)]}  # fmt: skip
    said = words(parsed(PEOPLE, people))
    assert "5 more graders are not drawn." in said
    assert "x64 person" in said


def test_a_coverage_below_the_axis_is_marked_and_a_missing_one_left_out() -> None:
    data = drawn.example("coverage")
    data["cases"] = data["cases"][:1]
    data["cases"][0]["series"] = data["cases"][0]["series"][:1]
    root = parsed(COVERAGE, data)
    arrows = [e for e in root.iter(f"{SVG}path") if (e.get("d") or "").endswith("z")]
    assert len(arrows) == 1  # 0.7 of five clusters
    assert len(list(root.iter(f"{SVG}circle"))) == 1  # 0.9 of ten; of a hundred there is none


def test_the_texts_of_figures_keep_names_apart_from_sentences() -> None:
    """Each name in the text is one name of the data: what a format isolates and sets off."""
    audit = vd.audit(vd.read(planted(gold=True), scale=SCALE, gold="gold", people=["g2"]))
    seen = set()
    for block in audit.document.blocks:
        if isinstance(block, Figure):
            seen.add(block.name)
            known = {f"g{i}" for i in range(5)} | {"gold", *SCALE, "non_refusal"}
            assert names_in(block.alt) <= known, block.name
            assert names_in(block.alt), block.name
            assert "g0" not in "".join(p for p in block.alt if isinstance(p, str)), block.name
    assert seen == {"class_shares", "rate_dots", "people_axis", "flow_bands", "kept_moved", "kappa_rate", "pairwise_matrix"}  # fmt: skip


def test_figures_of_a_large_panel_hold_all_graders_and_its_tables_the_first() -> None:
    names = [f"g{i}" for i in range(45)]
    frame = pl.DataFrame(
        {"id": list("abcdefgh"), **{g: ["low", "top"] * 4 for g in names}},
    )
    audit = vd.audit(
        vd.read(frame, layout="wide", response="id", graders=names, scale=["low", "top"])
    )
    blocks = audit.document.blocks
    shares = next(b for b in blocks if isinstance(b, Figure) and b.name == "class_shares")
    table = next(b for b in blocks if isinstance(b, Table) and b.title == "Labels by class")
    assert [row["grader"] for row in shares.data["rows"]] == names
    assert len(table.rows) == 40
