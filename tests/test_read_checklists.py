"""Reading checklists: numbered columns, strings of bits, rows, nested items, questions and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import voirdire as vd
from tests.checklists import REAL_BANK, SHARED, real_matrices
from voirdire.bank import Bank, bank
from voirdire.cli.main import app
from voirdire.errors import InputError, UsageError
from voirdire.labels import Labels
from voirdire.wording import plain

CASES = SHARED / "cases" / "inputs"


@pytest.fixture
def read(tmp_path):
    """Read tables given as text; the second and further ones are called by keyword."""

    def run(*texts: str, names: tuple[str, ...] = ("a.csv", "b.csv"), **options: Any) -> Labels:
        paths = []
        for name, text in zip(names, texts, strict=False):
            path = tmp_path / name
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return vd.read(*paths, **options)

    return run


def verdicts(labels: Labels, grader: str) -> dict[str, dict[str, int | None]]:
    """By response and line: 1, 0 or None."""
    rows = labels.frame.filter(pl.col("grader") == grader)
    found: dict[str, dict[str, int | None]] = {}
    for row in rows.iter_rows(named=True):
        value = None if row["label"] is None else int(row["label"])
        found.setdefault(row["response"], {})[row["line"]] = value
    return found


def said(labels: Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def outcomes(labels: Labels, grader: str, response: str) -> list[str]:
    frame = labels.frame.filter((pl.col("grader") == grader) & (pl.col("response") == response))
    return frame["outcome"].to_list()


# --- the real bank ------------------------------------------------------------------------------


def by_response(found: Bank, labels: Labels, grader: str) -> np.ndarray:
    responses = labels.frame["response"].unique().sort().to_list()
    order = np.argsort([int(r) for r in responses])
    return found.of(grader)[order]


@pytest.mark.parametrize("file", ["judge_item_bank.csv", "verdicts.csv"])
@pytest.mark.parametrize(
    "options",
    [{"layout": "checklist", "response": "item_id", "question": "question_id"}, {}],
)
def test_the_real_bank(file, options):
    gold, judge, questions = real_matrices()
    labels = vd.read(REAL_BANK / file, **options)
    found = bank(labels)
    assert (labels.kind, labels.classes, labels.ordered) == ("checklist", ("0", "1"), True)
    assert labels.responses == 210
    assert labels.grader_names == ("gold", "judge")
    for name, matrix in (("gold", gold), ("judge", judge)):
        expected = np.where(np.isnan(matrix), -1, matrix)
        assert (by_response(found, labels, name) == expected).all()
    assert found.complete.sum(axis=0).tolist() == [210, 180]
    assert (len(found.questions), len(found.lines), found.k) == (15, 150, 10)
    assert labels.frame["cluster"].n_unique() == 15
    one = labels.frame.filter(pl.col("response") == "0")
    assert one["cluster"].unique().to_list() == [questions[0]]
    assert set(outcomes(labels, "judge", "200")) == {"unparsed"}
    assert labels.checklist is not None
    assert labels.checklist.question == "question_id"
    if options or file == "judge_item_bank.csv":
        assert not labels.notices  # the question was named, or its lines have texts of their own
    else:
        assert "to have its own checklist: 15 questions, 150 lines" in said(labels)


def test_texts_of_lines_are_kept_and_scores_stay_tags():
    if not REAL_BANK.is_dir():
        pytest.skip("the real bank is not beside this checkout")
    labels = vd.read(REAL_BANK / "judge_item_bank.csv", layout="checklist", response="item_id")
    assert labels.checklist is not None
    assert len(labels.checklist.texts) == 150
    assert labels.checklist.texts["10/e1"].startswith("Earth's rotational axis is tilted")
    tags = {t.name for t in labels.tags}
    assert {"question", "answer", "K", "true_score", "judge_score", "judge_model"} <= tags
    assert not any(t.startswith("element_") for t in tags)


def test_both_files_of_the_real_bank_hold_the_same():
    if not REAL_BANK.is_dir():
        pytest.skip("the real bank is not beside this checkout")
    options = {"layout": "checklist", "response": "item_id", "question": "question_id"}
    wide, bits = (
        vd.read(REAL_BANK / name, **options) for name in ("judge_item_bank.csv", "verdicts.csv")
    )
    columns = ["response", "grader", "line", "label", "outcome", "cluster"]
    assert wide.frame.select(columns).equals(bits.frame.select(columns))
    assert wide.checklist is not None
    assert bits.checklist is not None
    assert wide.checklist.lines == bits.checklist.lines


def test_case_fc_25_reads_a_checklist_and_its_gold_in_a_second_file():
    if not CASES.is_dir():
        pytest.skip("the cases are not beside this checkout")
    one = vd.read(CASES / "checklist-a.csv", layout="checklist", line_prefix="L")
    assert one.checklist is not None
    assert one.checklist.lines == (("L1", "L2", "L3", "L4"),)
    assert one.grader_names == ("checklist-a",)
    both = vd.read(
        CASES / "checklist-halo.csv",
        CASES / "checklist-halo-gold.csv",
        line_prefix="L",
        gold="checklist-halo-gold",
    )
    found = bank(both)
    gold, judge = found.of("checklist-halo-gold"), found.of("checklist-halo")
    assert (gold == judge).mean(axis=0).tolist() == [1.0, 0.5, 0.625, 0.625]


# --- numbered columns ---------------------------------------------------------------------------


def test_columns_are_lines_by_number_whatever_their_order(read):
    labels = read("id,j_e10,j_e2,j_e1\n1,1,0,1\n", layout="checklist")
    assert labels.checklist is not None
    assert labels.checklist.lines == (("e1", "e2", "e10"),)
    assert verdicts(labels, "j") == {"1": {"e1": 1, "e2": 0, "e10": 1}}
    assert "e3, e4" in said(labels)
    assert "no column has such a line" in said(labels)


def test_several_judges_and_names_with_underscores(read):
    labels = read("id,gpt_4_e1,gpt_4_e2,b_e1,b_e2,gold_e1,gold_e2\n1,1,0,0,1,1,1\n")
    assert labels.grader_names == ("gpt_4", "b", "gold")
    assert verdicts(labels, "b") == {"1": {"e1": 0, "e2": 1}}
    assert verdicts(labels, "gold") == {"1": {"e1": 1, "e2": 1}}


def test_graders_are_chosen_and_gold_stays(read):
    text = "id,a_e1,a_e2,b_e1,b_e2,gold_e1,gold_e2\n1,1,0,0,1,1,1\n"
    assert read(text, layout="checklist", graders="b").grader_names == ("b", "gold")
    with pytest.raises(UsageError, match="there is no grader"):
        read(text, layout="checklist", graders="c")


def test_a_line_prefix_of_ones_own(read):
    text = "id,j_Q1,j_Q2,gold_Q1,gold_Q2,age\n1,1,0,1,1,3\n2,1,1,0,1,4\n"
    labels = read(text, line_prefix="Q")
    assert labels.grader_names == ("j", "gold")
    assert verdicts(labels, "j")["1"] == {"Q1": 1, "Q2": 0}
    assert [t.name for t in labels.tags] == ["id", "age"]
    with pytest.raises(UsageError, match="no column is called Z1 or NAME_Z1"):
        read(text, layout="checklist", line_prefix="Z")


def test_a_prefix_that_is_plain_is_found_where_a_checklist_is_asked_for(read):
    text = "id,j_element_1,j_element_2,gold_element_1,gold_element_2\n1,1,0,1,1\n"
    labels = read(text, layout="checklist")
    assert labels.grader_names == ("j", "gold")
    assert verdicts(labels, "j") == {"1": {"element_1": 1, "element_2": 0}}
    assert "--line-prefix P" in said(labels)
    with pytest.raises(UsageError, match="name it with --line"):
        read("id,j_1,j_2,gold_1,gold_2\n1,1,0,1,1\n", layout="checklist")


def test_an_unnamed_grader_is_called_by_its_file_or_as_said(read):
    text = "id,L1,L2\n1,1,0\n2,0,0\n"
    assert read(text, layout="checklist").grader_names == ("a",)
    named = read(text, line_prefix="L", grader_name="haiku")
    assert named.grader_names == ("haiku",)
    assert not named.notices


def test_columns_of_texts_are_no_grader(read):
    rows = "".join(f"{i},1,0,note {i},other {i}\n" for i in range(20))
    labels = read("id,j_e1,j_e2,why_e1,why_e2\n" + rows, layout="checklist")
    assert labels.grader_names == ("j",)
    assert "why hold texts" in said(labels)


def test_blank_cells_are_missing_and_a_blank_response_is_unparsed(read):
    labels = read("id,j_e1,j_e2,gold_e1,gold_e2\n1,1,,1,0\n2,,,1,1\n3,0,1,,\n")
    assert outcomes(labels, "j", "1") == ["label", "missing"]
    assert outcomes(labels, "j", "2") == ["unparsed", "unparsed"]
    # Nobody asked the truth: where it is blank, nothing went unread.
    assert outcomes(labels, "gold", "3") == ["missing", "missing"]
    found = bank(labels)
    assert found.totals[:, found.places["j"]].tolist() == [-1, -1, 1]
    assert found.complete[:, found.places["gold"]].tolist() == [True, True, False]


def test_people_left_blank_are_missing(read):
    labels = read("id,ann_e1,ann_e2,j_e1,j_e2\n1,,,1,0\n2,1,1,1,1\n", people="ann")
    assert outcomes(labels, "ann", "1") == ["missing", "missing"]


def test_one_line_is_a_checklist_where_it_is_asked_for(read):
    labels = read("id,j_e1,gold_e1\n1,1,0\n2,0,0\n", layout="checklist")
    assert bank(labels).k == 1


def test_rows_without_a_response_are_numbered(read):
    labels = read("j_e1,j_e2\n1,0\n1,1\n", layout="checklist")
    assert labels.responses == 2
    assert "No column is named as the response" in said(labels)


# --- numbered columns beside a grader column ------------------------------------------------------

RATED = """essay,rater,item1,item2,item3,theme
x,ann,1,0,1,t
x,bot,1,,0,t
y,ann,0,yes,1,u
y,bot,,,,u
z,bot,no,1,1,t
"""


def as_long(text: str) -> str:
    head, *rows = (line.split(",") for line in text.splitlines())
    at = [i for i, name in enumerate(head) if name.startswith("item")]
    lines = [f"{row[0]},{row[1]},{head[i]},{row[i]},{row[-1]}" for row in rows for i in at]
    return "\n".join(["essay,rater,line,label,theme", *lines]) + "\n"


@pytest.mark.parametrize("more", [{}, {"gold": "ann"}, {"graders": "bot"}, {"people": "ann"}])
@pytest.mark.parametrize("prefix", [{}, {"line_prefix": "item"}])
def test_rows_of_one_grader_equal_the_same_data_in_long_form(read, more, prefix):
    roles = {"response": "essay", "grader": "rater", "layout": "checklist", **more}
    rows = read(RATED, **roles, **prefix)
    long = read(as_long(RATED), line="line", **roles)
    assert rows.kind == "checklist"
    assert rows.grader_names == long.grader_names
    assert rows.checklist is not None
    assert rows.checklist.lines == (("item1", "item2", "item3"),)
    for name in rows.grader_names:
        assert verdicts(rows, name) == verdicts(long, name)
        for response in "xyz":
            assert outcomes(rows, name, response) == outcomes(long, name, response)
    assert verdicts(rows, "bot")["x"] == {"item1": 1, "item2": None, "item3": 0}
    assert "theme" in {t.name for t in rows.tags}
    assert ("ann" in rows.grader_names) == ("graders" not in more)


def test_a_grader_column_beside_numbered_lines_is_known_without_a_word(read):
    text = RATED.replace("essay", "id")
    for given_here in ({}, {"grader": "rater"}, {"layout": "checklist"}):
        labels = read(text, **given_here)
        assert (labels.kind, labels.grader_names) == ("checklist", ("ann", "bot"))
        assert labels.inputs[0].rows == 5
        assert verdicts(labels, "ann")["y"] == {"item1": 0, "item2": 1, "item3": 1}
    bare = read("id,judge,e1,e2\n1,a,1,0\n1,b,0,0\n")
    assert (bare.kind, bare.grader_names) == ("checklist", ("a", "b"))


@pytest.mark.parametrize("layout", ["auto", "checklist"])
def test_rows_of_one_grader_need_their_response_and_are_never_counts(read, layout):
    text = "essay,rater,item1,item2\nx,ann,1,0\nx,bot,0,0\ny,ann,1,1\ny,bot,0,1\n"
    with pytest.raises(UsageError, match="the response could be essay") as caught:
        read(text, layout=layout)
    assert "--layout checklist --grader rater --response essay" in str(caught.value)
    with pytest.raises(InputError) as none:
        read(text.replace("item", "rubric_item"))
    assert "counts" not in str(none.value)
    assert read("rater,score1,score2\nann,3,0\nbot,1,1\n").kind == "counts"


def test_a_verdict_beside_the_lines_is_no_grader(read):
    labels = read("id,judge,e1,e2\n1,1,1,0\n2,0,0,0\n", layout="checklist")
    assert labels.grader_names == ("a",)


def test_rows_of_one_grader_say_where_they_are_wrong(read):
    roles = {"response": "essay", "grader": "rater", "layout": "checklist"}
    with pytest.raises(InputError, match="line 3, column rater"):
        read(RATED.replace("x,bot", "x,"), **roles)
    with pytest.raises(InputError, match="line 4, column item3"):
        read(RATED.replace("yes,1", "yes,maybe"), graders="ann", **roles, line_prefix="item")
    with pytest.raises(UsageError, match="nobody"):
        read(RATED, graders="nobody", **roles)


# --- strings of bits ----------------------------------------------------------------------------


def test_strings_of_bits_keep_their_zeros(read):
    labels = read("id,gold,judge\n1,0010,0110\n2,1111,\n", layout="auto")
    assert labels.grader_names == ("gold", "judge")
    assert verdicts(labels, "gold")["1"] == {"e1": 0, "e2": 0, "e3": 1, "e4": 0}
    assert outcomes(labels, "judge", "2") == ["unparsed"] * 4


def test_strings_of_different_length_are_questions_with_different_lengths(read):
    text = "id,question_id,j\n1,a,010\n2,a,\n3,b,01\n4,b,11\n"
    labels = read(text, layout="checklist")
    assert labels.checklist is not None
    assert labels.checklist.lines == (("a/e1", "a/e2", "a/e3"), ("b/e1", "b/e2"))
    assert len(outcomes(labels, "j", "2")) == 3
    assert bank(labels).length.tolist() == [3, 3, 2, 2]


def test_strings_of_one_checklist_have_one_length(read):
    with pytest.raises(InputError, match=r"a\.csv, line 3.*response 2 has 2 verdicts") as caught:
        read("id,j\n1,010\n2,01\n", layout="checklist")
    assert "--question COL" in str(caught.value)
    assert "leading zeros" in str(caught.value)
    with pytest.raises(InputError, match="of question a"):
        read("id,question_id,j\n1,a,010\n2,a,01\n3,b,11\n", layout="checklist")


def test_other_characters_in_a_string_are_named_with_their_place(read):
    text = "id,j\n1,010\n2,0-1\n3,111\n4,000\n"
    with pytest.raises(
        InputError, match=r"line 3, column j \(character 2\).*\"-\" is neither"
    ) as e:
        read(text, layout="checklist")
    assert "--missing" in str(e.value)
    labels = read(text, layout="checklist", missing="-")
    assert verdicts(labels, "j")["2"] == {"e1": 0, "e2": None, "e3": 1}
    assert outcomes(labels, "j", "2") == ["label", "missing", "label"]
    with pytest.raises(InputError, match=r"line 3, column j: .*no string of 0 and 1"):
        read("id,j\n1,010\n2,0 1\n3,111\n", layout="checklist", graders="j")


def test_two_bits_that_never_change_are_read_too(read):
    labels = read("id,gold,judge\n1,10,10\n2,11,\n", layout="checklist")
    assert verdicts(labels, "judge")["1"] == {"e1": 1, "e2": 0}
    assert outcomes(labels, "judge", "2") == ["unparsed", "unparsed"]


def test_numbers_of_ones_and_zeros_are_no_bits_of_their_own_accord(read):
    text = "id,K,j\n1,10,110\n2,10,101\n"
    assert read(text, layout="checklist").grader_names == ("j",)
    with pytest.raises(InputError, match="not clear which columns hold labels"):
        read(text)


GOLD_BITS = ["0110", "1011", "0011", "1100", "0101", "1010"]


def bits_table(judge: str, cells: list[str], *more: str) -> str:
    rows = [f"{i},{g},{c}" for i, (g, c) in enumerate(zip(GOLD_BITS, cells, strict=True))]
    return "\n".join([f"id,gold,{judge}", *rows, *more]) + "\n"


@pytest.mark.parametrize("layout", ["auto", "checklist"])
@pytest.mark.parametrize("judge", ["judge_scores", "scorer", "account-llm", "Qwen-14B-int-num4"])
def test_a_judge_may_be_called_like_a_number(read, layout, judge):
    labels = read(bits_table(judge, GOLD_BITS), layout=layout)
    assert labels.grader_names == ("gold", judge)


@pytest.mark.parametrize("layout", ["auto", "checklist"])
@pytest.mark.parametrize(("cell", "said_so"), [("01?0", "neither"), ("parse error", "no string")])
def test_one_bad_cell_stops_reading_and_loses_no_judge(read, layout, cell, said_so):
    text = bits_table("judge", [cell, *GOLD_BITS[1:]])
    with pytest.raises(InputError, match=said_so) as caught:
        read(text, layout=layout)
    assert "--failed" in str(caught.value)


def test_a_cell_may_say_that_the_whole_call_gave_no_verdicts(read):
    text = bits_table("judge", ["parse error", *GOLD_BITS[1:]])
    labels = read(text, failed="parse error=unparsed")
    assert outcomes(labels, "judge", "0") == ["unparsed"] * 4
    assert verdicts(labels, "judge")["1"] == {"e1": 1, "e2": 0, "e3": 1, "e4": 1}
    gone = read(text, missing="parse error")
    assert outcomes(gone, "judge", "0") == ["missing"] * 4


def test_a_judge_without_a_leading_zero_is_read_for_its_length(read):
    labels = read(bits_table("judge", ["1110"] * 6))
    assert labels.grader_names == ("gold", "judge")
    assert "judge is taken as a grader too" in said(labels)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("total", ["1110"] * 6),
        ("judge", ["0110", *["lost"] * 5]),
        ("judge", ["1 0 1 0"] * 6),
        ("judge", ["[0,1,1,0]".replace(",", ";")] * 6),
        ("judge", ["YNNY"] * 6),
    ],
)
def test_a_column_that_may_be_bits_never_goes_in_silence(read, name, cells):
    labels = read(bits_table(name, cells))
    assert labels.grader_names == ("gold",)
    assert f"{name} may hold verdicts" in said(labels)
    assert f"--graders gold,{name}" in said(labels)


def test_bits_beside_numbered_columns_are_named(read):
    labels = read("id,gold_e1,gold_e2,gold_e3,judge\n1,1,0,1,011\n2,0,0,1,001\n")
    assert labels.grader_names == ("gold",)
    assert "judge holds strings of 0 and 1 and was not read" in said(labels)


def test_gold_alone_is_audited_only_where_asked(read):
    text = "id,gold_e1,gold_e2,verdicts\n1,1,0,a\n2,0,1,b\n3,1,1,c\n"
    with pytest.raises(InputError, match="no judge beside it to audit") as caught:
        vd.audit(read(text))
    assert caught.value.exit_status == 3
    assert "not read as verdicts: verdicts" in str(caught.value)
    for options in ({"gold": "none"}, {"graders": "gold"}):
        assert vd.audit(read(text, layout="checklist", **options)).results.height


# --- rows ---------------------------------------------------------------------------------------

LONG = """id,judge,line,label
1,a,tone,yes
1,a,facts,no
2,a,tone,Yes
2,a,facts,
1,gold,tone,TRUE
1,gold,facts,1.0
2,gold,tone,false
2,gold,facts,0
"""


@pytest.mark.parametrize("options", [{"layout": "checklist"}, {"line": "line"}, {}])
def test_one_verdict_a_row(read, options):
    labels = read(LONG, **options)
    assert labels.layouts == ("checklist",)
    assert verdicts(labels, "a") == {
        "1": {"facts": 0, "tone": 1},
        "2": {"facts": None, "tone": 1},
    }
    assert verdicts(labels, "gold")["1"] == {"facts": 1, "tone": 1}
    assert labels.checklist is not None
    assert labels.checklist.lines == (("facts", "tone"),)
    assert "Verdicts were brought to one form" in said(labels)


def test_a_line_column_of_another_name(read):
    text = LONG.replace("line", "criterion")
    labels = read(text, line="criterion")
    assert verdicts(labels, "a")["1"] == {"facts": 0, "tone": 1}
    with pytest.raises(UsageError, match="--line criterion"):
        read(text, layout="checklist")


def test_a_table_of_labels_with_a_line_column_stays_one(read):
    labels = read("response,grader,label,line\n1,a,1,3\n2,a,0,4\n")
    assert labels.kind == "labels"


def test_votes_and_phrasings_pass_through(read):
    rows = "".join(
        f"{r},{v},{p},e{j},{(r + v + j) % 2}\n"
        for r in (1, 2)
        for v in (1, 2)
        for p in ("x", "y")
        for j in (1, 2)
    )
    labels = read("id,vote,how,line,label\n" + rows, layout="checklist", phrasing="how")
    assert labels.frame["vote"].unique().sort().to_list() == ["1", "2"]
    assert labels.frame["phrasing"].unique().sort().to_list() == ["x", "y"]
    blank = "id,vote,line,label\n1,1,e1,\n1,1,e2,\n1,2,e1,1\n1,2,e2,0\n"
    by_vote = read(blank, layout="checklist").frame.select("vote", "outcome").rows()
    assert by_vote == [("1", "unparsed"), ("1", "unparsed"), ("2", "label"), ("2", "label")]


def test_outcomes_and_weights(read):
    text = "id,line,label,how,w\n1,e1,1,,2\n1,e2,0,,2\n2,e1,,truncated,1\n2,e2,,truncated,1\n"
    labels = read(text, layout="checklist", outcome="how", weight="w")
    assert outcomes(labels, "a", "2") == ["truncated", "truncated"]
    assert labels.frame["weight"].to_list() == [2, 2, 1, 1]


# --- items --------------------------------------------------------------------------------------


def items(**given: Any) -> list[dict[str, Any]]:
    return [{"criterion": text, "criteria_met": met} for text, met in given.items()]


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_nested_items(read, suffix):
    records = [
        {"id": "1", "question": "q1", "rubric_items": items(names_it=True, dates_it=False)},
        {"id": "2", "question": "q1", "rubric_items": items(dates_it=True, names_it=True)},
        {"id": "3", "question": "q2", "rubric_items": items(kind=None)},
    ]
    text = json.dumps(records) if suffix == "json" else "\n".join(map(json.dumps, records))
    labels = read(text, names=(f"a.{suffix}",))
    assert labels.kind == "checklist"
    assert labels.checklist is not None
    assert labels.checklist.lines == (("q1/e1", "q1/e2"), ("q2/e1",))
    assert labels.checklist.texts["q1/e2"] == "dates_it"
    assert verdicts(labels, "a") == {
        "1": {"q1/e1": 1, "q1/e2": 0},
        "2": {"q1/e1": 1, "q1/e2": 1},
        "3": {"q2/e1": None},
    }
    assert outcomes(labels, "a", "3") == ["unparsed"]


def test_items_with_ids_points_and_several_graders(read):
    item = {"id": "tone", "criterion": "It is kind.", "met": {"gold": True, "j": "no"}, "points": 5}
    labels = read(json.dumps([{"id": 1, "rubric_items": [item]}]), names=("a.json",))
    assert verdicts(labels, "gold") == {"1": {"tone": 1}}
    assert verdicts(labels, "j") == {"1": {"tone": 0}}
    assert labels.frame["points"].unique().to_list() == ["5"]
    assert labels.checklist is not None
    assert labels.checklist.texts == {"tone": "It is kind."}


def test_a_record_without_items_is_unparsed(read):
    records = [
        {"id": "1", "question": "q", "rubric_items": items(a=True, b=False)},
        {"id": "2", "question": "q", "rubric_items": []},
        {"id": "3", "question": "q", "rubric_items": None},
        {"id": "4", "question": "r", "rubric_items": []},
    ]
    labels = read("\n".join(map(json.dumps, records)), names=("a.jsonl",))
    assert outcomes(labels, "a", "2") == outcomes(labels, "a", "3") == ["unparsed", "unparsed"]
    assert labels.responses == 3
    assert "1 response without items is left out" in said(labels)


def test_items_that_differ_need_their_question(read):
    records = [{"id": i, "rubric_items": items(**{f"c{i}": True})} for i in (1, 2)]
    text = "\n".join(map(json.dumps, records))
    with pytest.raises(InputError, match="line 2, column rubric_items: other criteria") as caught:
        read(text, names=("a.jsonl",))
    assert "--question id where each response has its own" in str(caught.value)
    labels = read(text, names=("a.jsonl",), question="id")
    assert labels.checklist is not None
    assert labels.checklist.lines == (("1/e1",), ("2/e1",))


def test_healthbench_like_files_one_a_grader(read):
    texts = [
        json.dumps(
            [{"id": "x", "rubric_items": [{"criterion": "c", "points": 3, "criteria_met": m}]}]
        )
        for m in (True, False)
    ]
    labels = read(*texts, names=("gpt.json", "gold.json"))
    assert verdicts(labels, "gpt") == {"x": {"e1": 1}}
    assert verdicts(labels, "gold") == {"x": {"e1": 0}}
    assert read(texts[0], names=("a.json",), grader_name="z").grader_names == ("z",)


def test_items_without_a_verdict_are_named(read):
    text = json.dumps([{"id": 1, "rubric_items": [{"criterion": "x"}, 3]}])
    with pytest.raises(InputError, match="2 problems") as caught:
        read(text, names=("a.json",))
    assert "an item has no verdict" in str(caught.value)
    with pytest.raises(InputError, match=r"line 2, column rubric_items: .* is no list of items"):
        read("id,rubric_items\n1,[torn\n", layout="checklist")


# --- questions ----------------------------------------------------------------------------------


def test_the_question_makes_checklists_and_clusters(read):
    text = "id,topic,j_e1,j_e2\n1,x,1,0\n2,x,1,1\n3,y,0,\n4,y,1,\n"
    labels = read(text, layout="checklist", question="topic")
    assert labels.checklist is not None
    # The last line is blank in all responses to y, so y does not have it.
    assert labels.checklist.lines == (("x/e1", "x/e2"), ("y/e1",))
    assert outcomes(labels, "j", "3") == ["label"]
    assert labels.frame["cluster"].to_list() == ["x", "x", "x", "x", "y", "y"]
    assert labels.clusters_declared
    assert not labels.notices


def test_a_line_that_only_gold_fills_exists(read):
    text = "id,question_id,j_e1,j_e2,gold_e1,gold_e2\n1,x,1,,1,1\n2,x,1,,1,0\n3,y,1,1,1,1\n"
    labels = read(text, layout="checklist")
    assert outcomes(labels, "j", "1") == ["label", "missing"]
    # A line in the middle is asked, though nobody answered.
    middle = read("id,question_id,j_e1,j_e2,j_e3\n1,x,1,,1\n2,y,1,1,1\n", layout="checklist")
    assert middle.checklist is not None
    assert len(middle.checklist.lines[0]) == 3


def test_a_question_that_nobody_could_be_read_on_keeps_all_lines(read):
    labels = read("id,question_id,j_e1,j_e2\n1,x,,\n2,y,1,1\n", layout="checklist")
    assert outcomes(labels, "j", "1") == ["unparsed", "unparsed"]


def test_without_texts_a_notice_says_that_checklists_are_the_questions_own(read):
    text = "id,question_id,j_e1,j_e2\n1,x,1,0\n2,y,1,1\n"
    labels = read(text, layout="checklist")
    assert "--question none --cluster question_id" in said(labels)
    shared = read(text, layout="checklist", question="none", cluster="question_id")
    assert shared.checklist is not None
    assert shared.checklist.lines == (("e1", "e2"),)
    assert shared.frame["cluster"].to_list() == ["x", "x", "y", "y"]
    assert not shared.notices


def test_the_same_texts_make_one_checklist(read):
    text = "id,question_id,j_e1,j_e2,e1_text,e2_text\n1,x,1,0,A,B\n2,y,1,1,A,B\n"
    labels = read(text, layout="checklist")
    assert labels.checklist is not None
    assert labels.checklist.lines == (("e1", "e2"),)
    assert labels.checklist.texts == {"e1": "A", "e2": "B"}
    assert "same texts in all 2 questions" in said(labels)
    assert labels.frame["cluster"].unique().sort().to_list() == ["x", "y"]


def test_texts_that_differ_within_a_question_are_tags(read):
    text = "id,question_id,j_e1,j_e2,e1_text,e2_text\n1,x,1,0,A,B\n2,x,1,1,C,B\n"
    labels = read(text, layout="checklist")
    assert {"e1_text", "e2_text"} <= {t.name for t in labels.tags}
    assert labels.checklist is not None
    assert not labels.checklist.texts


def test_a_cluster_of_its_own_goes_first(read):
    text = "id,question_id,core,j_e1,j_e2\n1,x,c,1,0\n2,y,c,1,1\n"
    labels = read(text, layout="checklist", cluster="core")
    assert labels.frame["cluster"].unique().to_list() == ["c"]
    assert labels.checklist is not None
    assert labels.checklist.own


def test_a_response_answers_one_question(read):
    text = "id,question_id,line,label\n1,x,e1,1\n1,y,e2,0\n"
    with pytest.raises(InputError, match="response 1 answers question x here and y elsewhere"):
        read(text, layout="checklist")
    with pytest.raises(InputError, match=r"line 3, column question_id: response 2 has no question"):
        read("id,question_id,j_e1,j_e2\n1,x,1,0\n2,,1,1\n", layout="checklist")


def test_lines_may_be_named_with_their_question_already(read):
    text = "id,question_id,line,label\n1,x,x/e1,1\n1,x,x/e2,0\n2,y,y/e1,0\n"
    labels = read(text, layout="checklist")
    assert labels.checklist is not None
    assert labels.checklist.lines == (("x/e1", "x/e2"), ("y/e1",))


def test_names_that_would_merge_two_lines_are_refused(read):
    text = "id,question_id,line,label\n1,x,y/e,1\n2,x/y,e,0\n"
    with pytest.raises(InputError, match="Two lines would both be called x/y/e"):
        read(text, layout="checklist")


# --- two files ----------------------------------------------------------------------------------


def test_gold_in_a_second_file_of_another_layout_joins_by_response(read):
    judge = "id,question_id,j_e1,j_e2\n1,x,1,0\n2,y,,\n3,y,1,1\n"
    gold = "id,gold\n1,11\n2,01\n"
    labels = read(judge, gold)
    assert verdicts(labels, "gold") == {
        "1": {"x/e1": 1, "x/e2": 1},
        "2": {"y/e1": 0, "y/e2": 1},
    }
    assert outcomes(labels, "j", "2") == ["unparsed", "unparsed"]
    found = bank(labels)
    assert found.complete.tolist() == [[True, True], [False, True], [True, False]]


def test_lines_that_one_of_two_lacks_are_missing_and_named(read):
    labels = read(
        "id,j_e1,j_e2,j_e4\n1,1,0,1\n2,1,1,1\n",
        "id,gold_e1,gold_e2,gold_e3\n1,1,1,1\n2,0,1,0\n",
        layout="checklist",
    )
    assert "j has no verdicts on 1 line that other graders have (e3); it is missing" in said(labels)
    assert "gold has no verdicts on 1 line that other graders have (e4)" in said(labels)
    found = bank(labels)
    assert found.k == 4
    assert not found.complete.any()
    assert (found.totals == -1).all()


def test_a_response_that_only_gold_knows_needs_its_question(read):
    judge = "id,question_id,j_e1,j_e2\n1,x,1,0\n2,y,1,1\n"
    with pytest.raises(InputError, match=r"b\.csv, line 3.*response 7 has no question"):
        read(judge, "id,gold\n1,11\n7,01\n", layout="checklist")


def test_duplicates(read):
    head = "id,j_e1,j_e2\n1,1,0\n"
    same = read(head + "1,1,0\n", layout="checklist")
    assert "repeat a call with the same label" in said(same)
    with pytest.raises(InputError, match="grader j, line e2 is labelled"):
        read(head + "1,1,1\n", layout="checklist")


def test_kinds_of_tables_are_not_mixed(read):
    with pytest.raises(InputError, match="cannot be put together"):
        read("id,j_e1,j_e2\n1,1,0\n", "id,grader,label\n1,gold,0\n")


# --- words --------------------------------------------------------------------------------------


def test_words_that_are_no_verdicts_are_listed_with_their_flags(read):
    text = "id,j_e1,j_e2\n1,met,unmet\n2,met,N/A\n"
    with pytest.raises(
        InputError, match='"met" is neither yes nor no; it stands 2 times'
    ) as caught:
        read(text, layout="checklist")
    message = str(caught.value)
    assert "a.csv, line 2, column j_e1 (grader j)" in message
    assert "--map met=" in message
    assert "--failed" in message
    labels = read(text, layout="checklist", map={"met": "yes", "unmet": "0"}, missing="N/A")
    assert verdicts(labels, "j") == {"1": {"e1": 1, "e2": 0}, "2": {"e1": 1, "e2": None}}
    assert outcomes(labels, "j", "2") == ["label", "missing"]
    failed = read(text, layout="checklist", map=["met=1", "unmet=0"], failed="*=unparsed")
    assert outcomes(failed, "j", "2") == ["label", "unparsed"]


def test_false_as_text_is_no(read):
    labels = read('id,j_e1,j_e2,j_e3\n1,"false",FALSE, no \n2,true,YES,1.0\n')
    assert list(verdicts(labels, "j")["1"].values()) == [0, 0, 0]
    assert list(verdicts(labels, "j")["2"].values()) == [1, 1, 1]


def test_a_scale_is_not_needed(read):
    text = "id,j_e1,j_e2\n1,fail,pass\n2,pass,pass\n"
    assert verdicts(read(text, layout="checklist", scale="fail,pass"), "j")["1"] == {
        "e1": 0,
        "e2": 1,
    }
    with pytest.raises(UsageError, match="a checklist needs no scale"):
        read(text, layout="checklist", scale="a,b,c")
    with pytest.raises(UsageError, match="leave it out"):
        read("id,j_e1,j_e2\n1,yes,no\n", layout="checklist", scale="yes,no")


def test_a_number_between_is_no_verdict(read):
    with pytest.raises(InputError, match=r'"0\.5" is neither') as caught:
        read("id,j_e1,j_e2\n1,1,0.5\n", layout="checklist")
    assert "--round" not in str(caught.value)


def test_options_that_a_checklist_cannot_follow_are_refused_or_named(read):
    text = "id,j_e1,j_e2,w\n1,yes,no,1\n2,no,no,1\n"
    for options in ({"rate": "x=1"}, {"range": "j=1"}, {"refusal_like": "0"}, {"step": "w"}):
        with pytest.raises(UsageError, match="Leave it out"):
            read(text, **options)
    with pytest.raises(UsageError, match="no rates of classes"):
        vd.audit(read(text), rate="x=1")
    labels = read(text, layout="checklist", scale="no,yes", collapse_base=5)
    assert "--collapse-base and --scale no,yes changed nothing" in said(labels)


def test_cuts_are_taken_once_and_in_order():
    from voirdire.options import Options

    assert Options.of(cut=[7, 4, "4", 5]).cut == (4, 5, 7)


def test_a_column_that_is_no_grader_is_met_with_graders(read):
    text = "id,gold_e1,gold_e2,judge_e1,judge_e2,time_e1,time_e2\n1,1,0,1,1,12.3,4.5\n"
    with pytest.raises(InputError, match="time is no grader") as caught:
        read(text, layout="checklist")
    assert "--graders gold,judge" in str(caught.value)
    chosen = read(text, layout="checklist", graders="gold,judge")
    assert chosen.grader_names == ("gold", "judge")


def test_numbered_columns_with_gaps_are_met_with_the_layout(read):
    text = "id,gold_e1,gold_e3,judge_e1,judge_e3\n1,1,0,1,1\n2,0,0,1,0\n"
    with pytest.raises(InputError, match="--layout checklist --response id") as caught:
        read(text)
    assert "--layout long" not in str(caught.value)
    assert read(text, layout="checklist", response="id").grader_names == ("gold", "judge")


def test_numbers_without_a_prefix_are_met_with_names_that_have_one(read):
    with pytest.raises(UsageError, match="gold_e1 … gold_e2, and so for judge"):
        read("id,gold1,gold2,judge1,judge2\n1,1,0,1,1\n2,0,1,1,0\n", layout="checklist")


# --- layouts ------------------------------------------------------------------------------------


def test_a_wide_table_of_labels_stays_one(read):
    text = "id,j_e1,j_e2\n1,1,0\n2,0,0\n"
    labels = read(text, layout="wide", graders="j_e1,j_e2")
    assert (labels.kind, labels.grader_names) == ("labels", ("j_e1", "j_e2"))
    assert read(text, graders="j_e1,j_e2").kind == "labels"
    assert read("id,score1,score2\n1,1,0\n", scale="0,1").kind == "labels"


def test_what_fits_two_layouts_is_settled_by_a_command(read):
    with pytest.raises(InputError, match=r"2 layouts \(checklist, wide\)") as caught:
        read("id,a_e1,a_e2\n1,1,0\n2,0,1\n", scale="0,1")
    assert "--layout checklist --response id" in str(caught.value)
    with pytest.raises(InputError, match="--layout checklist --response id --line-prefix L"):
        read("id,L1,L2\n1,1,0\n2,0,1\n")


def test_a_question_that_is_stratum_or_phrasing_too_keeps_its_checklist(read):
    text = "id,question_id,j_e1,j_e2\n1,x,1,0\n2,x,1,1\n3,y,0,0\n4,y,1,0\n"
    stratum = read(text, layout="checklist", stratum="question_id")
    assert stratum.checklist is not None
    assert stratum.checklist.questions == ("x", "y")
    assert stratum.frame["cluster"].equals(stratum.frame["response"])
    assert "The question (question_id) is the stratum too" in said(stratum)
    phrasing = read(text, layout="checklist", phrasing="question_id")
    assert phrasing.checklist is not None
    assert phrasing.checklist.questions == ("x", "y")
    assert phrasing.frame["cluster"].unique().sort().to_list() == ["x", "y"]


def test_inputs_count_the_rows_of_their_files(read):
    assert read("id,j_e1,j_e2\n1,1,0\n2,1,1\n3,,\n").inputs[0].rows == 3
    assert read(bits_table("judge", GOLD_BITS)).inputs[0].rows == 6
    records = [{"id": "1", "rubric_items": items(a=True, b=False)}]
    assert read(json.dumps(records), names=("a.json",)).inputs[0].rows == 1
    assert read(LONG, layout="checklist").inputs[0].rows == 8


# --- repeated calls -----------------------------------------------------------------------------

# Two votes: on response 1 they tie on e1, on 2 one vote of the judge is unread, on 3 all agree, on 4
# both are unread.
VOTES = """id,vote,gold_e1,gold_e2,judge_e1,judge_e2
1,1,1,0,1,0
1,2,1,0,0,0
2,1,1,1,,
2,2,1,1,1,1
3,1,0,1,0,1
3,2,0,1,0,1
4,1,1,1,,
4,2,1,1,,
"""


def test_a_tie_is_no_verdict_and_no_unread_call(read):
    found = bank(read(VOTES))
    judge = found.places["judge"]
    assert found.of("judge").tolist() == [[-1, 0], [-1, -1], [0, 1], [-1, -1]]
    assert found.totals[:, judge].tolist() == [-1, -1, 1, -1]
    assert found.unread[:, judge].tolist() == [False, False, False, True]
    by_vote = read(VOTES, vote_rule="first")
    assert bank(by_vote).complete[:3].all()


def test_repeated_calls_are_counted_by_line_and_by_call(read):
    audit = vd.audit(read(VOTES), cut=1)

    def one(statistic: str, **key: str) -> tuple[float | None, int | None]:
        row = audit.results.filter(
            (pl.col("statistic") == statistic) & (pl.col("grader") == "judge"),
            *(pl.col(k) == v for k, v in key.items()),
        )
        return row["value"].item(), row["n"].item()

    assert one("self_disagreement") == (0.25, 4)  # e1 of response 1, of the lines with two votes
    assert one("no_majority") == (3, 6)
    assert one("outcome_count", **{"class": "label"}) == (5, 8)
    assert one("outcome_count", **{"class": "unparsed"}) == (3, 8)


def test_slices_count_all_votes(read):
    text = VOTES.replace("\n", ",a\n").replace("judge_e2,a", "judge_e2,set")
    found = bank(read(text), tags=["set"]).sliced("set", "a")
    assert found.calls.sum() == 16
    assert found.votes is not None
    assert found.votes.no_majority.sum() == 3


# --- there and back -----------------------------------------------------------------------------


def same(one: Labels, other: Labels) -> None:
    assert one.frame.equals(other.frame)
    assert one.frame.schema == other.frame.schema
    assert one.checklist == other.checklist
    for name in ("kind", "scale", "off_scale", "ordered", "graders", "clusters_declared", "tags"):
        assert getattr(one, name) == getattr(other, name), name


def test_the_real_bank_there_and_back(tmp_path):
    if not REAL_BANK.is_dir():
        pytest.skip("the real bank is not beside this checkout")
    labels = vd.read(REAL_BANK / "judge_item_bank.csv", layout="checklist", response="item_id")
    labels.write(tmp_path / "x.parquet")
    same(labels, vd.read(tmp_path / "x.parquet"))
    labels.write(tmp_path / "x.csv")
    back = vd.read(tmp_path / "x.csv")
    assert back.kind == "checklist"
    assert back.checklist is not None
    assert labels.checklist is not None
    assert back.checklist.lines == labels.checklist.lines
    columns = ["response", "grader", "line", "label", "outcome", "cluster"]
    assert back.frame.select(columns).equals(labels.frame.select(columns))


cells = st.sampled_from(["0", "1", ""])


@st.composite
def tables(draw: st.DrawFn) -> str:
    width = draw(st.integers(1, 4))
    graders = draw(st.sampled_from([("j",), ("gold", "j"), ("j", "k", "gold")]))
    asks = draw(st.booleans())
    rows = draw(
        st.lists(st.lists(cells, min_size=width * len(graders), max_size=width * len(graders)),
                 min_size=1, max_size=6)
    )  # fmt: skip
    head = ["id", *(["question_id"] if asks else [])]
    head += [f"{g}_e{j}" for g in graders for j in range(1, width + 1)]
    lines = [
        [str(i), *([draw(st.sampled_from(["q2", "q10", "a/b"]))] if asks else []), *row]
        for i, row in enumerate(rows)
    ]
    return "\n".join(",".join(line) for line in [head, *lines]) + "\n"


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables())
def test_labels_come_back_from_parquet_and_csv(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    labels = vd.read(tmp_path / "t.csv", layout="checklist")
    labels.write(tmp_path / "x.parquet")
    same(labels, vd.read(tmp_path / "x.parquet"))
    labels.write(tmp_path / "x.csv")
    back = vd.read(tmp_path / "x.csv")
    assert labels.checklist is not None
    assert back.checklist is not None
    assert sorted(back.checklist.names) == sorted(labels.checklist.names)
    assert back.frame["label"].equals(labels.frame["label"])


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_line(tmp_path: Path, text: str, random: Any) -> None:
    head, *rows = text.splitlines()
    turned = random.sample(rows, len(rows))
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    (tmp_path / "u.csv").write_text("\n".join([head, *turned]) + "\n", encoding="utf-8")
    one, other = (vd.read(tmp_path / f, layout="checklist") for f in ("t.csv", "u.csv"))
    assert one.checklist == other.checklist
    assert (bank(one).verdicts == bank(other).verdicts).all()


def test_one_question_keeps_its_own_checklist_in_a_csv(read, tmp_path):
    labels = read("id,question_id,j_e1,j_e2\n1,x,1,0\n2,x,1,1\n", layout="checklist")
    labels.write(tmp_path / "x.csv")
    back = vd.read(tmp_path / "x.csv")
    assert labels.checklist is not None
    assert back.checklist is not None
    assert back.checklist.own
    assert back.checklist.lines == labels.checklist.lines


def test_carried_lines_join_a_second_file(read, tmp_path):
    labels = read("id,question_id,j_e1,j_e2\n1,x,1,0\n2,y,1,1\n", layout="checklist")
    labels.write(tmp_path / "x.parquet")
    (tmp_path / "g.csv").write_text("id,gold_e1,gold_e2\n1,1,1\n2,0,1\n", encoding="utf-8")
    both = vd.read(tmp_path / "x.parquet", tmp_path / "g.csv")
    assert verdicts(both, "gold")["2"] == {"y/e1": 0, "y/e2": 1}


# --- the command line ---------------------------------------------------------------------------


def test_look_says_what_is_in_a_checklist(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,question_id,j_e1,j_e2,gold_e1,gold_e2\n1,x,1,0,1,1\n2,y,,,0,1\n")
    done = CliRunner().invoke(app, ["look", str(path)])
    assert done.exit_code == 0
    for words in ("Graders and lines", "2 questions, 4 lines", "complete responses", "--cut C"):
        assert words.lower() in " ".join(done.output.lower().split())
    assert "voirdire audit" in done.output


@pytest.mark.parametrize(
    ("text", "options", "status"),
    [
        ("id,j_e1,j_e2\n1,met,0\n", [], 3),
        ("id,j_e1,j_e2\n1,1,0\n", ["--cut", "x"], 2),
        ("id,j_e1,j_e2\n1,1,0\n", ["--layout", "checklist", "--line-prefix", "Z"], 2),
        ("id,text\n1,hello\n", ["--layout", "checklist"], 2),
        ("id,j\n1,01\n2,011\n", ["--layout", "checklist"], 3),
        ("id,j_e1,j_e2\n", ["--layout", "checklist"], 3),
        ("id,j_e1,j_e2\n1,,\n", ["--layout", "checklist", "--question", "nowhere"], 2),
    ],
)
def test_what_is_wrong_ends_with_its_status_and_no_traceback(tmp_path, text, options, status):
    path = tmp_path / "a.csv"
    path.write_text(text)
    done = CliRunner().invoke(app, ["audit", str(path), *options])
    error = done.exception
    assert isinstance(error, InputError | UsageError)  # main() prints these with their status
    assert error.exit_status == status
