"""Figures stand alone, escape what they draw, and show what they are about."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from tests import drawn
from voirdire import plugins
from voirdire.figures.base import Drawing
from voirdire.figures.class_shares import DRAWING as CLASS_SHARES
from voirdire.figures.rate_dots import DRAWING as RATE_DOTS
from voirdire.figures.svg import RAMP, columns, cut, dark_variables, fitted, step, text_width

SVG = "{http://www.w3.org/2000/svg}"
TOP = RAMP[-1][0]
NASTY = '</svg><script>alert("1")</script>&\x1b\u202e|' + "long name " * 20


def shares(rows: list[dict[str, Any]], classes: tuple[str, ...] = ("no", "part", "yes")) -> Any:
    full = [{"note": "", "flagged": False, "total": 100, **row} for row in rows]
    return {"classes": classes, "off_scale": ["gibberish"], "rows": full, "highlight": classes[-1]}


def dots(values: list[float | None], **extra: Any) -> Any:
    one = [
        {
            "grader": f"g{i}",
            "value": v,
            "low": None if v is None else v * 0.8,
            "high": None if v is None else min(v * 1.2, 1.0),
            "role": "",
            "flagged": False,
            "note": "",
            **extra,
        }
        for i, v in enumerate(values)
    ]
    return {"rates": [{"name": "yes", "dots": one}]}


NASTY_SHARES = {
    "classes": [NASTY, "b"],
    "off_scale": [NASTY],
    "highlight": NASTY,
    "rows": [
        {"grader": NASTY, "group": NASTY, "counts": [1, None, 2], "total": 9, "note": "gold", "flagged": True}
    ],
}  # fmt: skip
NASTY_DOTS = {
    "rates": [
        {"name": NASTY, "spread": NASTY, "dots": [
            {"grader": NASTY, "value": 0.1, "low": 0, "high": 0.2, "role": "person", "flagged": True, "note": NASTY},
            {"grader": NASTY, "value": None, "low": None, "high": None, "role": "gold", "flagged": True, "note": NASTY},
        ]}
    ]
}  # fmt: skip
EXAMPLES = [(CLASS_SHARES, NASTY_SHARES), (RATE_DOTS, NASTY_DOTS)]


def parsed(drawing: Drawing, data: Any, alt: str = "What it shows.") -> ElementTree.Element:
    return ElementTree.fromstring(drawing.svg(data, alt))


def words(root: ElementTree.Element) -> list[str]:
    """The texts that are drawn, without titles that show only on hovering."""
    texts = root.iter(f"{SVG}text")
    return [
        "".join(t for part in e if part.tag != f"{SVG}title" for t in part.itertext())
        or (e.text or "")
        for e in texts
    ]


def fills(root: ElementTree.Element, colour: str) -> list[ElementTree.Element]:
    """Bars of a colour, without the swatches of the legend."""
    rects = [e for e in root.iter(f"{SVG}rect") if e.get("fill") == colour]
    return [e for e in rects if e.find(f"{SVG}title") is not None]


def test_both_figures_are_found_by_listing_the_folder() -> None:
    assert {"class_shares", "rate_dots"} <= {d.name for d in plugins.load("figures", Drawing)}


@pytest.mark.parametrize(("drawing", "data"), EXAMPLES)
def test_a_figure_is_one_image_with_a_text_and_no_fixed_size(drawing: Drawing, data: Any) -> None:
    root = parsed(drawing, data, "A <text> that stands for it.")
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert (root.get("viewBox") or "").startswith("0 0 760 ")
    assert root.get("width") is None
    assert root.get("height") is None
    ids = {e.get("id"): "".join(e.itertext()) for e in root if e.get("id")}
    named = [ids[i] for i in (root.get("aria-labelledby") or "").split()]
    assert named == [drawing.title, "A <text> that stands for it."]


@pytest.mark.parametrize(("drawing", "data"), EXAMPLES)
def test_nothing_in_a_figure_comes_from_a_name_but_text(drawing: Drawing, data: Any) -> None:
    content = drawing.svg(data, NASTY)
    tags = {e.tag.removeprefix(SVG) for e in ElementTree.fromstring(content).iter()}
    known = {"svg", "title", "desc", "defs", "pattern", "rect", "circle", "path", "line", "text", "tspan", "g"}  # fmt: skip
    assert tags <= known
    assert content.count("</svg>") == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", content)
    assert "href" not in content.replace(NASTY, "")


@pytest.mark.parametrize(("drawing", "data"), EXAMPLES)
def test_a_long_name_is_cut_and_stands_whole_in_a_title(drawing: Drawing, data: Any) -> None:
    root = parsed(drawing, data)
    assert max(len(t) for t in words(root)) < 90
    titles = ["".join(e.itertext()) for e in root.iter(f"{SVG}title")]
    assert any("long name " * 20 in t for t in titles)


@pytest.mark.parametrize(("drawing", "data"), EXAMPLES)
def test_a_figure_has_the_same_bytes_each_time(drawing: Drawing, data: Any) -> None:
    assert drawing.svg(data, "alt") == drawing.svg(data, "alt")


@pytest.mark.parametrize(("drawing", "data"), EXAMPLES)
@pytest.mark.parametrize("width", [40, 60, 100])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_figure_in_text_fits_and_hides_nothing(
    drawing: Drawing, data: Any, width: int, ascii_only: bool
) -> None:
    assert drawing.lines is not None
    found = drawing.lines(data, width, ascii_only)
    assert found
    assert all("\x1b" not in line and "\n" not in line for line in found)
    if ascii_only:
        assert not set("".join(found)) & set("░▒▓█●○◆■─◂…")


def test_colours_have_a_fallback_and_a_dark_counterpart() -> None:
    content = CLASS_SHARES.svg(shares([{"grader": "g", "counts": [50, 30, 20, 0]}]), "alt")
    used = set(re.findall(r"var\((--vd-[a-z0-9-]+),#[0-9a-f]{6}\)", content))
    assert used
    assert "var(--vd" not in re.sub(r"var\(--vd-[a-z0-9-]+,#[0-9a-f]{6}\)", "", content)
    assert used <= set(re.findall(r"--vd-[a-z0-9-]+", dark_variables()))


# Class shares


def test_a_grader_that_never_gives_the_top_class_has_no_dark_segment() -> None:
    data = shares(
        [{"grader": "a", "counts": [70, 30, 0, 0]}, {"grader": "b", "counts": [60, 20, 20, 0]}]
    )
    bars = fills(parsed(CLASS_SHARES, data), TOP)
    assert len(bars) == 1
    assert CLASS_SHARES.lines is not None
    drawn = CLASS_SHARES.lines(data, 80, False)
    (a,) = [line for line in drawn if line.startswith("a ")]
    (b,) = [line for line in drawn if line.startswith("b ")]
    assert "█" not in a
    assert a.endswith(" 0")
    assert "█" in b
    assert b.endswith("20")


def test_segment_widths_are_shares_of_the_total() -> None:
    data = shares(
        [
            {"grader": "a", "counts": [50, 30, 20, 0]},
            {"grader": "b", "counts": [5, 3, 2, 0], "total": 10},
        ]
    )
    widths = [float(e.get("width") or 0) for e in fills(parsed(CLASS_SHARES, data), TOP)]
    assert widths[0] == pytest.approx(widths[1], abs=0.02)
    assert widths[0] == pytest.approx((646 - 202) * 0.2, abs=0.02)


def test_a_count_that_nobody_printed_is_open_and_never_zero() -> None:
    data = shares([{"grader": "a", "counts": [None, None, 20, 0]}])
    root = parsed(CLASS_SHARES, data)
    (rest,) = fills(
        root,
        next(
            e.get("fill") or "" for e in root.iter(f"{SVG}rect") if "open" in (e.get("fill") or "")
        ),
    )
    assert float(rest.get("width") or 0) == pytest.approx((646 - 202) * 0.8, abs=0.02)
    assert "counts not printed: no, part" in "".join(rest.itertext())
    (top,) = fills(root, TOP)  # what is above the unprinted classes stays at the right
    assert float(top.get("x") or 0) > float(rest.get("x") or 0)
    unprinted = shares([{"grader": "a", "counts": [80, 15, None, 0]}])
    assert words(parsed(CLASS_SHARES, unprinted))[-6] == "–"


def test_a_flagged_grader_has_a_mark_and_not_only_a_colour() -> None:
    data = shares([{"grader": "a", "counts": [70, 30, 0, 0], "flagged": True}])
    titles = ["".join(e.itertext()) for e in parsed(CLASS_SHARES, data).iter(f"{SVG}title")]
    assert titles.count("flagged") == 2  # at the bar and in the legend
    assert "flagged" in words(parsed(CLASS_SHARES, data))


def test_a_grader_without_any_label_is_drawn_open() -> None:
    root = parsed(CLASS_SHARES, shares([{"grader": "a", "counts": [0, 0, 0, 0], "total": 0}]))
    assert "no labels" in ["".join(e.itertext()) for e in root.iter(f"{SVG}title")]


def test_rows_beyond_sixty_are_counted_and_flagged_ones_drawn_first() -> None:
    rows = [{"grader": f"g{i}", "counts": [70, 29, 1, 0], "flagged": i == 75} for i in range(80)]
    said = words(parsed(CLASS_SHARES, shares(rows)))
    assert "20 more graders are not drawn." in said
    assert "g75" in said
    assert "g70" not in said


@pytest.mark.parametrize("k", [2, 3, 5, 7, 11])
def test_every_class_up_to_eleven_has_its_own_shade_and_the_top_is_the_darkest(k: int) -> None:
    places = [step(i, k) for i in range(k)]
    assert places == sorted(set(places))
    assert places[-1] == len(RAMP) - 1


# Rate dots


def _places(root: ElementTree.Element) -> list[float]:
    groups = root.iter(f"{SVG}g")
    return [float(e.get("cx") or 0) for g in groups for e in g.iter(f"{SVG}circle")]


def test_equal_ratios_are_equal_distances() -> None:
    a, b, c = _places(parsed(RATE_DOTS, dots([0.01, 0.1, 1.0])))
    assert b - a == pytest.approx(c - b, abs=0.02)


def test_zero_stands_left_of_the_axis_with_its_own_label() -> None:
    root = parsed(RATE_DOTS, dots([0.0, 0.02, 0.2]))
    zero, least, _ = _places(root)
    starts = [
        float(e.get("x1") or 0) for e in root.iter(f"{SVG}line") if e.get("y1") == e.get("y2")
    ]
    assert zero < min(s for s in starts if s > zero) < least
    assert "0" in words(root)
    assert "0" not in words(parsed(RATE_DOTS, dots([0.02, 0.2])))


def test_gold_people_and_reference_have_shapes_of_their_own() -> None:
    def shape(role: str) -> str:
        root = parsed(RATE_DOTS, dots([0.2], role=role))
        (group,) = root.iter(f"{SVG}g")
        mark = group[-1]
        return f"{mark.tag.removeprefix(SVG)} {mark.get('fill')}"

    assert len({shape(r) for r in ("", "reference", "gold", "person")}) == 4


def test_a_rate_that_cannot_be_said_has_no_dot() -> None:
    root = parsed(RATE_DOTS, dots([None, 0.2]))
    assert len(_places(root)) == 1
    assert "–" in words(root)


@pytest.mark.parametrize("values", [[], [None], [0.0], [1.0], [1e-9, 1.0], [0.5, 0.5], [0.0, 0.0]])
def test_rates_at_the_edge_can_be_drawn(values: list[float | None]) -> None:
    assert parsed(RATE_DOTS, dots(values)) is not None
    assert RATE_DOTS.lines is not None
    assert RATE_DOTS.lines(dots(values), 80, False)


def test_the_spread_is_written_at_a_bracket_over_the_dots() -> None:
    data = dots([0.01, 0.2])
    data["rates"][0]["spread"] = "20.0×, range 19.0 points"
    root = parsed(RATE_DOTS, data)
    assert "20.0×, range 19.0 points" in words(root)
    assert "20.0×" in "".join(RATE_DOTS.lines(data, 80, False)) if RATE_DOTS.lines else False


def test_dots_beyond_sixty_are_counted() -> None:
    assert "5 more graders are not drawn." in words(parsed(RATE_DOTS, dots([0.1] * 65)))


# Cutting


def test_a_cut_name_keeps_both_ends() -> None:
    name = "a grader with a long name, prompt 1"
    assert cut(name, 120, 12).endswith("1")
    assert cut(name, 120, 12).startswith("a gr")
    assert "…" in cut(name, 120, 12)
    assert cut("short", 120, 12) == "short"


@pytest.mark.parametrize("text", ["abc", "長い名前" * 5, "", "e\u0301" * 30, "a\x1bb"])
def test_fitted_text_takes_exactly_its_columns(text: str) -> None:
    assert columns(fitted(text, 9)) == 9


# Every figure, whatever brings it: what tests/drawn.py has an example of


ALL = {d.name: d for d in plugins.load("figures", Drawing)}
BOTH = [(name, make) for name in sorted(ALL) for make in (drawn.example, drawn.hostile)]


def leaves(value: Any) -> list[float]:
    """All numbers in the data of a figure."""
    if isinstance(value, dict):
        return [x for v in value.values() for x in leaves(v)]
    if isinstance(value, list | tuple):
        return [x for v in value for x in leaves(v)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_every_figure_has_an_example() -> None:
    assert set(ALL) == set(drawn.EXAMPLES)


def test_every_figure_says_what_it_needs() -> None:
    assert not [name for name, drawing in ALL.items() if not drawing.needs or not drawing.lines]


@pytest.mark.parametrize(("name", "make"), BOTH)
def test_the_table_of_a_figure_has_rows_that_fit_its_columns(name: str, make: Any) -> None:
    names, rows = ALL[name].table(make(name))
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", n) for n in names)
    assert rows
    assert {len(row) for row in rows} == {len(names)}
    assert all(x is None or isinstance(x, str | int | float) for row in rows for x in row)
    assert (names, rows) == ALL[name].table(make(name))


# Places of cells, which are outlined; the table says of each cell whether it is.
PLACES = {"kr20_grid": "outlined"}


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_number_of_a_figure_is_in_its_table_unrounded(name: str) -> None:
    data = {k: v for k, v in drawn.example(name).items() if k != PLACES.get(name)}
    _, rows = ALL[name].table(data)
    held = {float(x) for row in rows for x in row if isinstance(x, int | float)}
    held |= {float(x) for row in rows for x in row if isinstance(x, str) and x.isdigit()}
    assert not set(leaves(data)) - held


@pytest.mark.parametrize(("name", "make"), BOTH)
def test_every_figure_is_one_image_of_known_parts(name: str, make: Any) -> None:
    content = ALL[name].svg(make(name), NASTY)
    root = ElementTree.fromstring(content)
    known = {"svg", "title", "desc", "defs", "pattern", "rect", "circle", "path", "line", "text", "tspan", "g"}  # fmt: skip
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= known
    assert content.count("</svg>") == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", content)
    assert content == ALL[name].svg(make(name), NASTY)


@pytest.mark.parametrize("name", sorted(ALL))
def test_no_text_of_a_figure_is_tiny_or_runs_out_of_it(name: str) -> None:
    root = ElementTree.fromstring(ALL[name].svg(drawn.hostile(name), "alt"))
    _, _, width, height = (float(x) for x in (root.get("viewBox") or "").split())
    for e in root.iter(f"{SVG}text"):
        said = "".join(t for part in e if part.tag != f"{SVG}title" for t in part.itertext()) or e.text or ""  # fmt: skip
        size, x, y = (float(e.get(k) or 0) for k in ("font-size", "x", "y"))
        assert size >= 6.4
        assert 0 <= y <= height
        wide = text_width(said, size) * 0.85  # the estimate is for the widest of faces
        left = x - {"start": 0, "middle": wide / 2, "end": wide}[e.get("text-anchor") or "start"]
        assert left >= -2, said
        assert left + wide <= width + 2, said


@pytest.mark.parametrize(("name", "make"), BOTH)
@pytest.mark.parametrize(("width", "ascii_only"), [(40, True), (60, False), (100, False)])
def test_every_figure_in_text_fits(name: str, make: Any, width: int, ascii_only: bool) -> None:
    draw = ALL[name].lines
    assert draw is not None
    found = draw(make(name), width, ascii_only)
    assert found
    assert all(line.isprintable() for line in found)
    if ascii_only and make is drawn.example:
        assert all(line.isascii() for line in found), [x for x in found if not x.isascii()]
