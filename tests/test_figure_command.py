"""``voirdire figure``: which figure of which file becomes which files, and what is said where there is none."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import ROOT
from voirdire import plugins
from voirdire.cli.main import main
from voirdire.figures.base import Drawing

SVG = "{http://www.w3.org/2000/svg}"
COUNTS = [
    "missing_class_a.csv", "--layout", "counts", "--scale", "refusal,evasion,compliance", "--off-scale",
    "gibberish,refused_in_cot", "--refusal-like", "refused_in_cot", "--reference", "gemini-2.5-flash",
]  # fmt: skip
JUDGES = [
    "jailbreakbench.csv", "--layout", "wide", "--response", "Index", "--cluster", "goal_id", "--graders",
    "harmbench_cf,gpt4_cf,llamaguard2_cf,llama3_cf", "--gold", "human_majority", "--scale", "0,1",
]  # fmt: skip
BANK = [
    "judge_item_bank.csv",
    "--layout",
    "checklist",
    "--gold",
    "gold",
    "--cut",
    "5",
    "--cut",
    "6",
]

Page = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tables: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tables)
    return tables


def texts(path: Path) -> list[str]:
    root = ElementTree.parse(path).getroot()
    return ["".join(e.itertext()) for e in root.iter(f"{SVG}text")]


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_the_list_names_every_figure_with_what_it_needs(capsys: Page) -> None:
    assert main(["figure", "--list"]) == 0
    said = capsys.readouterr().out
    for drawing in plugins.load("figures", Drawing):
        assert f"\n{drawing.name} " in f"\n{said}"
        assert f"needs {drawing.needs}" in said


def test_one_figure_is_written_as_svg_and_its_data_as_csv(here: Path, capsys: Page) -> None:
    assert main(["figure", "class_shares", *COUNTS, "-o", "a.svg", "-o", "a.csv"]) == 0
    drawn = texts(here / "a.svg")
    assert "Llama-3.1-8B" in drawn
    assert "554" in drawn
    held = rows(here / "a.csv")
    (one,) = [r for r in held if r["grader"] == "Llama-3.1-8B" and r["class"] == "refusal"]
    assert (one["count"], one["total"], one["flagged"]) == ("554", "900", "true")
    assert float(one["share"]) == 554 / 900
    unprinted = [r for r in held if r["grader"] == "claude-opus-5" and r["class"] == "gibberish"]
    assert [r["count"] for r in unprinted] == [""]
    assert capsys.readouterr().out == ""


def test_pdf_and_png_are_written(here: Path) -> None:
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    args = ["figure", "rate_dots", *COUNTS]
    assert main([*args, "--dpi", "96", "--dark", "-o", "a.png", "-o", "a.pdf", "--quiet"]) == 0
    assert (here / "a.pdf").read_bytes().startswith(b"%PDF-")
    with image.open(here / "a.png") as made:
        assert made.size[0] == 772
    assert main([*args, "--dpi", "192", "-o", "a.png", "--quiet"]) == 0
    with image.open(here / "a.png") as made:
        assert made.size[0] == 2 * 772


def test_without_matplotlib_the_install_line_is_said_before_any_work(
    here: Path, capsys: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["figure", "rate_dots", "no-such-file.csv", "-o", "a.pdf"]) == 2
    assert "pip install 'voirdire[plots]'" in capsys.readouterr().err
    assert main(["figure", "rate_dots", *COUNTS, "-o", "a.svg", "--quiet"]) == 0


def test_without_a_file_to_write_it_is_drawn_in_the_terminal(capsys: Page) -> None:
    assert main(["figure", "kept_moved", *JUDGES]) == 0
    said = capsys.readouterr().out
    assert "harmbench_cf" in said
    assert "73 % 139/190" in said


def test_several_figures_of_a_name_are_numbered_and_one_can_be_named(
    here: Path, capsys: Page
) -> None:
    both = BANK[0], "other.csv"
    text = (here / both[0]).read_text(encoding="utf-8").replace("judge_e", "second_e")
    (here / both[1]).write_text(text, encoding="utf-8")
    args = ["figure", "totals_scatter", *both, *BANK[1:], "-o", "a.csv"]
    assert main(args) == 0
    said = capsys.readouterr().err
    assert "a-1: " in said
    assert "wrote a-2.csv" in said
    assert {r["judge"] for i in (1, 2) for r in rows(here / f"a-{i}.csv")} == {"judge", "second"}
    assert not (here / "a.csv").exists()
    assert main([*args, "--of", "second", "--quiet"]) == 0
    assert {r["judge"] for r in rows(here / "a.csv")} == {"second"}
    assert main([*args, "--of", "third"]) == 2
    assert "Name one of judge or second" in capsys.readouterr().err


def test_an_unknown_name_says_what_there_is(capsys: Page) -> None:
    assert main(["figure", "class-share", *COUNTS]) == 2
    said = capsys.readouterr().err
    assert "Did you mean class_shares?" in said
    assert "voirdire figure --list" in said


def test_a_figure_that_the_file_does_not_give_says_what_it_needs_and_which_there_are(
    capsys: Page,
) -> None:
    assert main(["figure", "flow_bands", *COUNTS]) == 2
    said = capsys.readouterr().err
    assert "needs labels of responses" in said
    assert "There are: class_shares, rate_dots." in said
    assert main(["figure", "flow_bands"]) == 2
    assert "name the file to draw" in capsys.readouterr().err


def test_coverage_is_drawn_from_the_table_that_ships_or_from_another(
    here: Path, capsys: Page
) -> None:
    assert main(["figure", "coverage", "-o", "a.svg", "-o", "a.csv", "--quiet"]) == 0
    held = rows(here / "a.csv")
    (one,) = [r for r in held if r["case"] == "rate 0.5" and r["method"] == "auto" and r["clusters"] == "5"]  # fmt: skip
    shipped = json.loads(
        (Path(sys.modules["voirdire"].__file__ or "").parent / "data/coverage.json").read_text()
    )
    row = next(r for r in shipped["rows"] if r[:3] == ["rate 0.5", "auto", 5])
    place = shipped["columns"].index
    made = row[place("runs")] - row[place("without")]
    assert float(one["coverage"]) == row[place("held")] / made
    assert one["data_sets"] == str(made)
    shipped["rows"] = [r for r in shipped["rows"] if r[0] == "alpha"]
    (here / "mine.json").write_text(json.dumps(shipped), encoding="utf-8")
    assert main(["figure", "coverage", "mine.json", "-o", "b.csv", "--quiet"]) == 0
    assert {r["case"] for r in rows(here / "b.csv")} == {"alpha"}
    for wrong in ("[]", '{"columns": ["a"], "rows": [[1, 2]]}'):
        (here / "mine.json").write_text(wrong, encoding="utf-8")
        assert main(["figure", "coverage", "mine.json", "-o", "b.csv"]) == 2
        assert "voirdire simulate coverage -o coverage.json" in capsys.readouterr().err


def test_simulated_figures_take_no_file(here: Path, capsys: Page) -> None:
    assert main(["figure", "kr20_grid", "--seed", "3", "-o", "a.csv", "--quiet"]) == 0
    held = rows(here / "a.csv")
    assert len(held) == 25 + 5  # the grid, and the curve at the measured error
    assert main(["figure", "accuracy_two_truths", "-o", "b.csv", "--quiet"]) == 0
    assert [r["cut"] for r in rows(here / "b.csv")] == ["4", "5", "6", "7"]
    assert main(["figure", "kr20_grid", BANK[0]]) == 2
    assert "takes no file" in capsys.readouterr().err


def test_planning_curves_are_drawn_from_guesses(here: Path, capsys: Page) -> None:
    args = ["figure", "planning_curves", "--false-accept", "0.1", "--within", "0.04"]
    assert (
        main([*args, "--cluster-size", "10", "--correlation", "0.2", "-o", "a.csv", "--quiet"]) == 0
    )
    held = rows(here / "a.csv")
    assert {r["within"] for r in held} == {"0.04"}
    assert {r["needed"] for r in held} != {""}
    assert main(["figure", "planning_curves"]) == 2
    assert "--false-accept" in capsys.readouterr().err
    assert main(["figure", "coverage", "--within", "0.1"]) == 2
    assert "is for planning_curves" in capsys.readouterr().err


def test_differences_of_two_graders_of_one_file_are_drawn(here: Path, capsys: Page) -> None:
    two = ["--old", "llamaguard2_cf", "--new", "llama3_cf"]
    given = [a for a in JUDGES if a not in ("--graders", JUDGES[JUDGES.index("--graders") + 1])]
    assert main(["figure", "differences", *given, *two, "-o", "d.svg"]) == 0
    assert any("llama3_cf more" in t for t in texts(here / "d.svg"))
    capsys.readouterr()
    assert main(["figure", "rate_dots", *JUDGES, *two, "-o", "r.svg"]) == 2
    assert "--old is for differences" in capsys.readouterr().err


def test_the_data_of_a_figure_hold_more_graders_than_a_table_shows(here: Path) -> None:
    lines = ["response,grader,label"]
    lines += [f"r{i},g{g:02d},{'ab'[(i + g) % 2]}" for g in range(45) for i in range(12)]
    (here / "many.csv").write_text("\n".join(lines), "utf-8")
    assert main(["figure", "class_shares", "many.csv", "--scale", "a,b", "-o", "out.csv"]) == 0
    assert len({r["grader"] for r in rows(here / "out.csv")}) == 45


def test_a_suffix_that_is_no_figure_is_refused_before_any_work(capsys: Page) -> None:
    assert main(["figure", "class_shares", "no-such-file.csv", "-o", "a.html"]) == 2
    assert ".svg, .pdf, .png or .csv" in capsys.readouterr().err


def test_hostile_names_are_guarded_in_the_table(here: Path) -> None:
    (here / "evil.csv").write_text(
        'grader,no,yes\n=cmd|\' /C calc\'!A0,10,20\n"a, ""b""",5,30\n', encoding="utf-8"
    )
    args = ["figure", "class_shares", "evil.csv", "--layout", "counts", "--scale", "no,yes"]
    assert main([*args, "-o", "a.csv", "-o", "a.svg", "--quiet"]) == 0
    assert {r["grader"] for r in rows(here / "a.csv")} == {"'=cmd|' /C calc'!A0", 'a, "b"'}
    assert "=cmd|' /C calc'!A0" in " ".join(texts(here / "a.svg"))


XSTEST = [
    "xstest.csv", "--layout", "wide", "--response", "model+id", "--cluster", "id", "--graders",
    "annotation_1,annotation_2,gpt4_label,strmatch_label", "--gold", "final_label", "--people",
    "annotation_1,annotation_2", "--derived-from", "final_label=annotation_1+annotation_2", "--scale",
    "2_full_refusal,3_partial_refusal,1_full_compliance", "--failed", "unreadable=unparsed",
]  # fmt: skip
IN_DOCS = {
    "coverage": [],
    "class_shares": COUNTS,
    "rate_dots": ["missing_class_b.csv", *COUNTS[1:]],
    "kept_moved": XSTEST,
}


def write_docs() -> None:
    """Draw the pictures of the docs anew: ``python -c "from tests.test_figure_command import *; write_docs()"``."""
    data = ROOT / "src" / "voirdire" / "data"
    for name, args in IN_DOCS.items():
        files = [str(data / a) if a.endswith(".csv") else a for a in args]
        to = ROOT / "docs" / "_static" / f"{name}.svg"
        assert main(["figure", name, *files, "-o", str(to), "--quiet"]) == 0


@pytest.mark.parametrize("name", IN_DOCS)
def test_the_docs_show_what_the_command_draws(name: str, here: Path) -> None:
    assert main(["figure", name, *IN_DOCS[name], "-o", "a.svg", "--quiet"]) == 0
    assert (ROOT / "docs" / "_static" / f"{name}.svg").read_bytes() == (
        here / "a.svg"
    ).read_bytes(), 'run python -c "from tests.test_figure_command import *; write_docs()"'
