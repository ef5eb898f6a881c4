"""Wordings in columns of a wide table: read as they are, from the command line to the numbers of FC-26."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import voirdire as vd
from voirdire import looking
from voirdire.cli.main import app
from voirdire.errors import InputError, UsageError
from voirdire.formats.text import FORMAT as TEXT
from voirdire.options import Options, typed_wordings
from voirdire.wording import plain

FC26 = Path(__file__).resolve().parents[2] / "shared" / "cases" / "inputs" / "phrasings.csv"
# The six responses of FC-26 and their wordings.
SIX = "id,phr1,phr2,phr3\nr1,1,1,0\nr2,0,1,1\nr3,1,0,1\nr4,1,1,1\nr5,0,0,0\nr6,0,0,0\n"
TWO = (
    "id,gold,gpt_phr1,gpt_phr2,llama_phr1,llama_phr2\n"
    "r1,1,1,1,0,0\nr2,0,0,1,1,1\nr3,1,0,1,1,1\nr4,1,1,1,1,0\nr5,0,0,0,0,0\nr6,0,0,0,1,1\n"
)


def file(tmp_path: Path, text: str, name: str = "six.csv") -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def value(found: vd.Audit, statistic: str, **key: str) -> Any:
    rows = found.results.filter(statistic=statistic, **key)
    assert len(rows) == 1, (statistic, len(rows))
    return rows["value"][0]


def looked(path: str, **options: Any) -> str:
    return TEXT.render(looking.document([path], Options.of(**options))).decode("utf-8")


# --- the field case ---------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["inline", "shared"])
def test_fc26_holds_from_the_command_line(tmp_path: Path, source: str) -> None:
    if source == "shared" and not FC26.is_file():
        pytest.skip("the shared cases are not beside this checkout")
    path = file(tmp_path, SIX, "phrasings.csv") if source == "inline" else str(FC26)
    out = tmp_path / "x.json"
    ran = CliRunner().invoke(
        app, ["audit", path, "--phrasings", "phr1,phr2,phr3", "--quiet", "-o", str(out)]
    )
    assert ran.exit_code == 0, ran.output
    written = json.loads(out.read_text(encoding="utf-8"))
    rows = written["results"]
    assert isinstance(rows, list)
    held = {r["statistic"]: r["value"] for r in rows if r["grader"] == "phrasings"}
    assert held["component_response"] == pytest.approx(0.1)
    assert held["component_response_raw"] == pytest.approx(0.1)
    assert held["component_phrasing_raw"] == pytest.approx(-1 / 30)
    assert held["component_phrasing"] == 0
    assert held["component_residual"] == pytest.approx(0.2)
    # 0.64 would be the fault: the negative component put in.
    assert held["dependability_mean"] == pytest.approx(0.6)
    assert held["flip_rate"] == 0.5
    assert "NaN" not in out.read_text(encoding="utf-8")
    report = tmp_path / "x.md"
    CliRunner().invoke(
        app, ["audit", path, "--phrasings", "phr1,phr2,phr3", "--quiet", "-o", str(report)]
    )
    text = report.read_text(encoding="utf-8")
    assert "-0.033" in text  # as computed, beside 0 as used
    assert not re.search(r"\bnan\b", text, re.I)


def test_look_names_the_command_and_the_command_runs(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    file(tmp_path, SIX)
    text = looked("six.csv")
    assert "look like one wording of the instruction each" in text
    line = next(x.strip() for x in text.split("\n") if "--phrasings" in x)
    assert line == "voirdire audit six.csv --layout wide --response id --phrasings phr1,phr2,phr3"
    ran = CliRunner().invoke(app, [*line.split()[1:], "--quiet", "-o", "x.json"])
    assert ran.exit_code == 0, ran.output
    then = looked("six.csv", phrasings="phr1,phr2,phr3")
    assert "voirdire audit six.csv --phrasings phr1,phr2,phr3 -o audit.html" in then
    assert "what the wording does" in then


@pytest.mark.parametrize(
    ("header", "command"),
    [
        ("id,prompt_a,prompt_b", "--phrasings prompt_a,prompt_b"),
        ("id,score_1,score_2", "--phrasings score_1,score_2"),
        ("id,gpt wording 1,gpt wording 2", "--phrasings 'gpt wording 1,gpt wording 2'"),
        ("id,annotator_1,annotator_2", ""),  # people, not wordings
    ],
)
def test_names_that_look_like_wordings(tmp_path: Path, header: str, command: str) -> None:
    path = file(tmp_path, f"{header}\nr1,3,4\nr2,5,5\nr3,1,2\n")
    text = looked(path)
    assert (command in text) if command else ("--phrasings" not in text)


def test_texts_of_prompts_are_no_wordings(tmp_path: Path) -> None:
    path = file(tmp_path, "id,prompt_1,prompt_2\nr1,Is it safe?,Harmful?\nr2,Is it so?,And now?\n")
    assert "--phrasings" not in looked(path)


def test_several_graders_are_suggested_and_read_by_name(tmp_path: Path) -> None:
    path = file(tmp_path, TWO)
    said = "--phrasings gpt=gpt_phr1,gpt_phr2 --phrasings llama=llama_phr1,llama_phr2"
    assert said in looked(path)
    found = vd.audit(
        vd.read(path, phrasings=["gpt=gpt_phr1,gpt_phr2", "llama=llama_phr1,llama_phr2"])
    )
    # gpt differs on r2 and r3, llama on r4; gold has a column of its own and stands in no study.
    assert value(found, "flip_rate", grader="gpt") == pytest.approx(2 / 6)
    assert value(found, "flip_rate", grader="llama") == pytest.approx(1 / 6)
    assert value(found, "phrasing_shift", line="gpt_phr1") == pytest.approx(-1 / 6)
    assert found.labels.grader_names == ("gold", "gpt", "llama")
    assert not len(found.results.filter(statistic="flip_rate", grader="gold"))


# --- the same numbers whichever way they are given ---------------------------------------------------


def test_columns_and_rows_give_the_same_results(tmp_path: Path) -> None:
    wide = pl.read_csv(file(tmp_path, SIX))
    long = wide.unpivot(index="id", variable_name="phrasing", value_name="label")
    one = vd.audit(vd.read(wide, phrasings="phr1,phr2,phr3", grader_name="j"))
    two = vd.audit(vd.read(long, layout="long", phrasing="phrasing", grader_name="j"))
    assert one.results.equals(two.results)


@pytest.mark.parametrize(
    ("words", "scale"),
    [(("no", "yes"), None), (("False", "true"), None), (("refusal", "comply"), "refusal,comply")],
)
def test_classes_and_yes_or_no_are_scores_too(
    tmp_path: Path, words: tuple[str, str], scale: str | None
) -> None:
    frame = pl.read_csv(file(tmp_path, SIX)).with_columns(
        pl.col("^phr.*$").replace_strict([0, 1], list(words), return_dtype=pl.String)
    )
    found = vd.audit(
        vd.read(frame, phrasings="phr1,phr2,phr3", **({"scale": scale} if scale else {}))
    )
    assert value(found, "component_response") == pytest.approx(0.1)
    assert value(found, "flip_rate", **{"class": ""}) == 0.5


def test_more_classes_flip_without_components(tmp_path: Path) -> None:
    path = file(tmp_path, "id,phr1,phr2\na,low,mid\nb,mid,mid\nc,high,low\nd,low,low\n")
    found = vd.audit(vd.read(path, phrasings="phr1,phr2"))
    assert value(found, "flip_rate", **{"class": ""}) == 0.5
    assert not found.results["statistic"].str.starts_with("component_").any()


def test_repeats_stand_in_rows_beside_the_wordings(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "id,vote,phr1,phr2\n"
        + "".join(f"r{i},{v},{i},{i + v}\n" for i in range(5) for v in (1, 2)),
    )
    found = vd.audit(vd.read(path, phrasings="phr1,phr2"))
    # phr1 repeats itself, phr2 never does: half of the pairs of calls differ.
    assert value(found, "self_disagreement") == 0.5
    assert value(found, "component_vote") == pytest.approx(0.25)


def test_a_row_can_name_its_grader(tmp_path: Path) -> None:
    path = file(
        tmp_path, "id,judge,phr1,phr2\nr1,A,1,1\nr1,B,1,0\nr2,A,0,1\nr2,B,0,0\nr3,A,1,1\nr3,B,0,0\n"
    )
    found = vd.audit(vd.read(path, phrasings="phr1,phr2"))
    assert value(found, "flip_rate", grader="A") == pytest.approx(1 / 3)
    assert value(found, "flip_rate", grader="B") == pytest.approx(1 / 3)
    alone = vd.read(path, phrasings="phr1,phr2", graders="A")
    assert alone.grader_names == ("A",)
    assert len(alone.frame) == 6
    with pytest.raises(UsageError, match='there is no grader "C"'):
        vd.read(path, phrasings="phr1,phr2", graders="C")
    with pytest.raises(UsageError, match="who graded a row"):
        vd.read(path, grader="judge", phrasings="X=phr1,phr2")


def test_gold_in_a_second_file(tmp_path: Path) -> None:
    scores = file(tmp_path, SIX)
    gold = file(
        tmp_path, "id,label\n" + "".join(f"r{i},{i % 2}\n" for i in range(1, 7)), "gold.csv"
    )
    found = vd.audit(vd.read(scores, gold, phrasings="phr1,phr2,phr3", gold="gold"))
    assert value(found, "phrasing_shift", grader="six", line="phr1") == pytest.approx(0)
    with pytest.raises(UsageError, match="--phrasings phr9 is in none of the 2 inputs"):
        vd.read(scores, gold, phrasings="phr1,phr9", gold="gold")


def test_what_was_typed_comes_back(tmp_path: Path) -> None:
    names = (("a=b", ("x,y", "z\\")), ("", ("p", "q=r")))
    assert Options.of(phrasings=typed_wordings(names)).phrasings == names
    assert Options.of(phrasings={"j": ["a,b", "c"]}).phrasings == (("j", ("a,b", "c")),)
    assert Options.of(phrasings=["a", "b", "c"]).phrasings == (("", ("a", "b", "c")),)


# --- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"phrasings": "phr1"}, "one wording alone does not vary.*--graders phr1"),
        ({"phrasings": "phr1,phr2,phr1"}, "'phr1' is named twice"),
        ({"phrasings": "phr1,phr4"}, 'no column "phr4".*Did you mean phr'),
        ({"phrasings": "A=phr1,phr2", "graders": "phr2,phr3"}, "in --phrasings and in --graders"),
        ({"phrasings": ["A=phr1,phr2", "B=phr2,phr3"]}, "given to 'A' and to 'B'"),
        ({"phrasings": "phr1,phr2", "phrasing": "phr3"}, "in two ways"),
        ({"phrasings": "phr1,phr2", "layout": "long"}, "Leave --layout out"),
        ({"phrasings": "id,phr1"}, "looks like the names of the responses"),
        ({"phrasings": "phr1,phr2", "graders": "phr3", "grader_name": "phr3"}, "called the same"),
        ({"phrasings": "=phr1,phr2"}, "not of the form NAME=column,column"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_next_step(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=f"(?s){message}"):
        vd.read(file(tmp_path, SIX), **options)


def test_a_header_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 columns are called"):
        vd.read(file(tmp_path, SIX.replace("phr3", "phr2")), phrasings="phr1,phr2")


def test_another_grader_can_stand_beside_them(tmp_path: Path) -> None:
    found = vd.audit(
        vd.read(file(tmp_path, SIX), phrasings="phr1,phr2", graders="phr3", grader_name="j")
    )
    assert value(found, "flip_rate", grader="j") == pytest.approx(2 / 6)
    assert not len(found.results.filter(statistic="flip_rate", grader="phr3"))


def test_wordings_of_different_responses_are_compared_on_the_common_ones(tmp_path: Path) -> None:
    path = file(tmp_path, SIX + "r7,1,,1\nr8,,,1\n")
    found = vd.audit(vd.read(path, phrasings="phr1,phr2,phr3", grader_name="j"))
    assert value(found, "component_response") == pytest.approx(0.1)
    assert found.results.filter(statistic="flip_rate")["n"][0] == 6
    found.write(tmp_path / "x.md")
    text = (tmp_path / "x.md").read_text(encoding="utf-8")
    assert "2 responses were graded under some of its phrasings only" in text


def test_two_wordings_say_how_little_they_can(tmp_path: Path) -> None:
    found = vd.audit(vd.read(file(tmp_path, SIX), phrasings="phr1,phr2"))
    assert value(found, "flip_rate") == pytest.approx(2 / 6)
    found.write(tmp_path / "x.md")
    text = (tmp_path / "x.md").read_text(encoding="utf-8")
    assert "2 phrasings leave the phrasing component 1 degree of freedom" in text


def test_wordings_that_never_differ_have_no_dependability(tmp_path: Path) -> None:
    path = file(tmp_path, "id,phr1,phr2\n" + "".join(f"r{i},1,1\n" for i in range(12)))
    found = vd.audit(vd.read(path, phrasings="phr1,phr2"))
    assert value(found, "component_phrasing") == 0
    row = found.results.filter(statistic="dependability_single").row(0, named=True)
    assert row["value"] is None
    assert "all scores are the same" in row["reason"]
    assert not [f for f in found.findings if f.code == "votes_never_vary"]  # nobody was asked again


def test_scores_with_a_mark_say_what_to_do(tmp_path: Path) -> None:
    path = file(tmp_path, SIX.replace("r6,0,0,0", "r6,0,n/a,0"))
    labels = vd.read(path, phrasings="phr1,phr2,phr3")
    found = vd.audit(labels)
    assert not found.results["statistic"].str.starts_with("component_phrasing").any()
    found.write(tmp_path / "x.md")
    assert "--failed `n/a=unparsed`" in (tmp_path / "x.md").read_text(encoding="utf-8")


def test_wordings_taken_as_graders_are_pointed_out(tmp_path: Path) -> None:
    labels = vd.read(file(tmp_path, SIX), scale="0,1")
    assert any("--phrasings phr1,phr2,phr3" in plain(n) for n in labels.notices)
