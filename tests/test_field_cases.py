"""The field cases, as far as tables and reports go: faults that people report again and again.

FC-14 (scores of a log that are no verdicts) and the large log of FC-13 stand in ``test_read_inspect.py``,
logs that are cut (FC-12) there and in ``test_real_logs.py``. Not covered here: grading (FC-01 to FC-08,
FC-16 to FC-20, and of FC-12 and FC-13), the panel's majority (FC-24), checklists (FC-25, FC-26), gates
(FC-28), annotating (FC-29); the rest of FC-27 stands in ``test_hostile_names.py``.
"""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from tests.conftest import run_python
from voirdire.errors import InputError
from voirdire.wording import plain

SHARED = Path(__file__).resolve().parents[2] / "shared"
INPUTS = SHARED / "cases" / "inputs"

needs_inputs = pytest.mark.skipif(
    not INPUTS.is_dir(), reason="the field cases (../shared/cases) are not beside this checkout"
)

SIX = "refusal,None,NA,null,nan,N/A"
R4 = "refusal,evasion,compliance,gibberish"


def row(audit: vd.Audit, statistic: str, **keys: str) -> dict[str, Any]:
    """The one row of the results with this statistic and these keys."""
    found = audit.results.filter(
        pl.col("statistic") == statistic,
        *(pl.col(k.rstrip("_")) == v for k, v in keys.items()),
    )
    assert len(found) == 1, f"{statistic} {keys}: {len(found)} rows"
    return found.row(0, named=True)


def value(audit: vd.Audit, statistic: str, **keys: str) -> float:
    number = row(audit, statistic, **keys)["value"]
    assert number is not None
    return float(number)


def sentences(audit: vd.Audit) -> str:
    return "\n".join(str(f.record()["sentence"]) for f in audit.findings)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def written(audit: vd.Audit, path: Path) -> str:
    audit.write(path)
    return path.read_text(encoding="utf-8")


# FC-09: classes named None, NA, null, nan, N/A


@needs_inputs
def test_classes_named_like_missing_values_are_seven_labels_and_one_blank_is_missing() -> None:
    """FC-09, with a scale of these six classes."""
    labels = vd.read(INPUTS / "labels-none.csv", scale=SIX)
    by_id = dict(labels.frame.select("response", "label").rows())
    assert by_id == {
        "q1": "None",
        "q2": "refusal",
        "q3": "NA",
        "q4": None,
        "q5": "null",
        "q6": "nan",
        "q7": "N/A",
        "q8": "refusal",
    }
    audit = vd.audit(labels)
    assert value(audit, "outcome_count", grader="alpha", class_="label") == 7
    assert value(audit, "outcome_count", grader="alpha", class_="missing") == 1


@needs_inputs
def test_without_a_scale_the_same_seven_labels_are_there() -> None:
    """FC-09: no reader makes a missing value of a class."""
    labels = vd.read(INPUTS / "labels-none.csv")
    assert set(labels.classes) == set(SIX.split(","))
    assert labels.frame["label"].null_count() == 1


@needs_inputs
def test_five_values_that_are_not_on_the_list_are_reported_by_name_and_count() -> None:
    """FC-09, with rubric R4: 2 labels, 1 missing, 5 values not on the list."""
    with pytest.raises(InputError) as error:
        vd.read(INPUTS / "labels-none.csv", scale=R4)
    message = str(error.value)
    for line, name in ((2, "None"), (4, "NA"), (6, "null"), (7, "nan"), (8, "N/A")):
        assert (
            f'labels-none.csv, line {line}, column label (grader alpha): label "{name}"' in message
        )
    assert message.count("it stands once") == 5
    assert "--missing" in message


@needs_inputs
def test_values_become_missing_only_when_the_user_lists_them_and_not_without_a_word() -> None:
    """FC-09: marks for missing are the user's, and are counted."""
    marks = ["None", "NA", "null", "nan", "N/A"]
    labels = vd.read(INPUTS / "labels-none.csv", scale=R4, missing=marks)
    counts = labels.frame["outcome"].value_counts().rows()
    assert dict(counts) == {"label": 2, "missing": 6}
    assert "5 labels" in notices(labels)
    assert "missing" in notices(labels)
    with pytest.raises(InputError, match='"N/A"'):
        vd.read(INPUTS / "labels-none.csv", scale=R4, missing=marks[:4])


@needs_inputs
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_table_of_odd_classes_reads_back_to_the_same_eight_cells(
    suffix: str, tmp_path: Path
) -> None:
    """FC-09: writing the table out and reading it back gives the same 8 cells."""
    labels = vd.read(INPUTS / "labels-none.csv", scale=SIX)
    labels.write(tmp_path / f"again{suffix}")
    again = vd.read(tmp_path / f"again{suffix}", scale=SIX)
    columns = ["response", "grader", "label", "outcome"]
    assert again.frame.select(columns).equals(labels.frame.select(columns))


# FC-10: labels as text, numbers, booleans, with blanks


@needs_inputs
def test_text_numbers_and_booleans_of_one_binary_label_agree_on_all_five_pairs() -> None:
    """FC-10: `1.0`, `01`, ` 1 `, `true`, `False` are two classes; row e has no gold."""
    labels = vd.read(
        INPUTS / "labels-mixed.csv", layout="wide", response="id", graders="g1,g2", gold="gold"
    )
    assert labels.classes == ("0", "1")
    audit = vd.audit(labels)
    for grader in ("g1", "g2"):
        agreement = row(audit, "agreement", grader=grader, other="gold")
        assert (agreement["value"], agreement["n"]) == (1.0, 5)
    assert value(audit, "outcome_count", grader="gold", class_="missing") == 1
    assert "one form" in notices(labels)


# FC-11: the same id twice


def _duplicates(tmp_path: Path, *, without_line: int) -> Path:
    lines = (INPUTS / "labels-dup.jsonl").read_text(encoding="utf-8").splitlines()
    del lines[without_line - 1]
    path = tmp_path / "dup.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@needs_inputs
def test_one_call_with_two_labels_stops_the_audit_with_both_lines() -> None:
    """FC-11: id 7 epoch 1 has two labels; never "last one wins" in silence."""
    with pytest.raises(InputError) as error:
        vd.read(INPUTS / "labels-dup.jsonl")
    message = str(error.value)
    assert "line 1" in message
    assert "line 4" in message
    assert "refusal" in message
    assert "compliance" in message
    assert "line 2" not in message


@needs_inputs
def test_one_call_twice_with_one_label_is_kept_once_with_a_notice(tmp_path: Path) -> None:
    """FC-11: id 7 epoch 2 stands twice with the same label."""
    labels = vd.read(_duplicates(tmp_path, without_line=4))
    votes = labels.frame.filter(pl.col("response") == "7").select("vote", "label").rows()
    assert sorted(votes) == [("1", "refusal"), ("2", "evasion"), ("3", "refusal")]
    assert "kept once" in notices(labels)
    assert "line 2" in notices(labels)


@needs_inputs
def test_the_number_7_and_the_text_7_are_one_id_with_a_notice(tmp_path: Path) -> None:
    """FC-11: in JSON both spellings occur."""
    labels = vd.read(_duplicates(tmp_path, without_line=4))
    assert labels.frame["response"].unique().sort().to_list() == ["7", "8"]
    assert "number" in notices(labels)


@needs_inputs
def test_a_gold_table_that_repeats_an_id_multiplies_no_rows(tmp_path: Path) -> None:
    """FC-11: joining with a gold table that also repeats an id."""
    gold = tmp_path / "truth.csv"
    gold.write_text(
        "id,grader,label,epoch\n7,gold,refusal,\n7,gold,refusal,\n8,gold,evasion,\n",
        encoding="utf-8",
    )
    labels = vd.read(_duplicates(tmp_path, without_line=4), gold)
    assert labels.frame["grader"].value_counts().sort("grader").rows() == [("dup", 4), ("gold", 2)]


# FC-12: odd characters and line ends


@needs_inputs
def test_odd_characters_do_not_split_records_and_come_out_the_same_each_time(
    tmp_path: Path,
) -> None:
    """FC-12, first file: 6 records, one with U+2028 and one with U+0085 inside the text."""
    lines = (INPUTS / "responses-odd.jsonl").read_text(encoding="utf-8").split("\n")
    records = [line for line in lines if line]
    assert len(records) == 6
    path = tmp_path / "odd.jsonl"
    path.write_text(
        "\n".join(line[:-1] + f',"label":"{"ab"[i % 2]}"}}' for i, line in enumerate(records)),
        encoding="utf-8",
    )
    first, again = (vd.read(path, response="id", label="label") for _ in range(2))
    assert len(first.frame) == 6
    assert first.frame.equals(again.frame)
    (column,) = (t.name for t in first.tags if t.name.startswith("response"))
    texts = dict(first.frame.select("response", column).rows())
    assert texts["u1"] == "line one\u2028line two"
    assert texts["u2"] == "stop\u0085go"
    assert texts["u3"] == "half a face \ufffd end"
    assert texts["u4"] == "a zero \0 byte"
    assert texts["u5"] in ("", None)
    assert texts["u6"] == "\u202eetirw ot left"
    first.write(tmp_path / "odd.parquet")
    assert vd.read(tmp_path / "odd.parquet").frame.equals(first.frame)
    audit = vd.audit(first, by=[column])
    for suffix in (".md", ".txt", ".html"):
        page = written(audit, tmp_path / f"odd{suffix}")
        assert not re.search("[\0\u0085\u2028\u202e\ud83d]", page), suffix
    assert len(json.loads(written(audit, tmp_path / "odd.json"))["results"]) == len(audit.results)


@needs_inputs
def test_quoted_cells_with_line_ends_and_quotation_marks_are_three_records(tmp_path: Path) -> None:
    """FC-12, second file: 3 records."""
    labels = vd.read(INPUTS / "responses-quoted.csv", layout="long", response="id", label="note")
    texts = labels.frame.sort("response")
    (column,) = (t.name for t in labels.tags if t.name.startswith("response"))
    assert texts[column].to_list() == [
        "first line\nsecond line, with comma",
        'she said "no" twice',
        "ends with a slash \\",
    ]
    assert texts["label"].to_list() == ["ok", None, "x"]


# FC-13: a very long response


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_response_of_140000_letters_is_read_and_written_whole(
    suffix: str, tmp_path: Path
) -> None:
    """FC-13, as far as tables go."""
    text = "a" * 140_000
    path = tmp_path / "long.csv"
    path.write_text(f"id,response,verdict\n1,{text},ok\n2,short,no\n", encoding="utf-8")
    labels = vd.read(path, response="id", label="verdict")
    (column,) = (t.name for t in labels.tags if t.name.startswith("response"))
    assert labels.frame[column].to_list() == [text, "short"]
    labels.write(tmp_path / f"again{suffix}")
    again = vd.read(tmp_path / f"again{suffix}")
    assert again.frame[column].to_list() == [text, "short"]


def test_a_grader_with_a_name_of_140000_letters_is_shown_short_and_exported_whole(
    tmp_path: Path,
) -> None:
    """FC-13: exports to CSV and JSON keep the length."""
    name = "g" * 140_000
    frame = pl.DataFrame(
        {"response": ["1", "2"] * 2, "grader": [name] * 2 + ["h"] * 2, "label": list("abab")}
    )
    audit = vd.audit(vd.Labels.from_frame(frame))
    assert name in audit.results["grader"].to_list()
    assert name in written(audit, tmp_path / "audit.csv")
    assert name in written(audit, tmp_path / "audit.json")


# FC-15: the order of classes


def test_classes_keep_the_order_of_the_scale_and_an_unused_class_has_a_row_of_0(
    tmp_path: Path,
) -> None:
    """FC-15: scale none, mild, strong, severe; labels seen: severe, none, mild, none."""
    frame = pl.DataFrame(
        {
            "response": ["1", "2", "3", "4"] * 2,
            "grader": ["g"] * 4 + ["gold"] * 4,
            "label": ["severe", "none", "mild", "none"] * 2,
        }
    )
    order = ["none", "mild", "strong", "severe"]
    audit = vd.audit(vd.Labels.from_frame(frame, scale=order))
    counts = audit.results.filter(
        pl.col("statistic") == "label_count", pl.col("grader") == "g"
    ).select("class", "value")
    assert counts.rows() == [("none", 2.0), ("mild", 1.0), ("strong", 0.0), ("severe", 1.0)]
    page = written(audit, tmp_path / "audit.md")
    assert "| grader | `none` | `mild` | `strong` | `severe` | labels |" in page
    html = written(audit, tmp_path / "audit.html")
    heads = [re.sub("<[^>]*>", "", h) for h in re.findall(r"<th\b[^>]*>.*?</th>", html, re.DOTALL)]
    first = [h.strip() for h in heads if h.strip() in order][:4]
    assert first == order


# FC-21: everybody uses one class


@pytest.fixture(scope="module")
def one_class() -> vd.Audit:
    return vd.audit(
        vd.read(INPUTS / "two-graders-one-class.csv", layout="wide", response="id", graders="g1,g2")
    )


@needs_inputs
def test_full_agreement_on_12_has_a_lower_end_near_three_quarters(one_class: vd.Audit) -> None:
    """FC-21: 73.5 % by Clopper and Pearson, 75.8 % by Wilson, as the method says."""
    agreement = row(one_class, "agreement", grader="g1", other="g2")
    assert (agreement["value"], agreement["n"], agreement["high"]) == (1.0, 12, 1.0)
    expected = {"clopper_pearson": 0.735, "korn_graubard": 0.735, "wilson": 0.758}
    assert agreement["low"] == pytest.approx(expected[agreement["method"]], abs=5e-4)


@needs_inputs
def test_kappa_and_alpha_are_not_defined_where_one_class_is_used(one_class: vd.Audit) -> None:
    """FC-21: not nan, not 1, not 0. Warnings are errors in these tests, so no library spills any."""
    for statistic in ("cohen_kappa", "krippendorff_alpha_nominal"):
        one = row(one_class, statistic)
        assert one["value"] is None
        assert one["low"] is None
        assert one["reason"] == "not defined: one class used"


@needs_inputs
def test_one_class_only_names_both_graders_and_no_collapse_is_claimed(one_class: vd.Audit) -> None:
    """FC-21: nobody uses another class, so nobody can be said to miss one."""
    (finding,) = (f for f in one_class.findings if f.code == "one_class_only")
    text = str(finding.record()["sentence"])
    assert text.startswith("g1 and g2 give refusal to every response")
    collapse = {f.state for f in one_class.findings if f.code == "class_collapse"}
    assert collapse <= {"not_applicable", "cannot_tell"}


@needs_inputs
def test_no_collapse_is_claimed_of_a_class_that_nobody_uses_but_the_scale_has() -> None:
    """FC-21, with a scale that has a second class."""
    audit = vd.audit(
        vd.read(
            INPUTS / "two-graders-one-class.csv",
            layout="wide",
            response="id",
            graders="g1,g2",
            scale="refusal,compliance",
        )
    )
    assert {f.state for f in audit.findings if f.code == "class_collapse"} == {"cannot_tell"}
    rate = row(audit, "rate", grader="g1", class_="compliance")
    assert rate["value"] == 0
    assert rate["high"] > 0.2


@needs_inputs
def test_json_of_undefined_values_is_strict_and_gives_null_with_a_reason(
    one_class: vd.Audit, tmp_path: Path
) -> None:
    """FC-21: it parses with a strict JSON reader."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    content = json.loads(written(one_class, tmp_path / "a.json"), parse_constant=refuse)
    undefined = [r for r in content["results"] if r["value"] is None]
    assert undefined
    assert all(r["reason"] for r in undefined)
    assert not [r for r in content["results"] if r["value"] is not None and r["reason"]]


# FC-22: high agreement, kappa below zero


@pytest.fixture(scope="module")
def skewed() -> vd.Audit:
    return vd.audit(
        vd.read(INPUTS / "two-graders-skewed.csv", layout="wide", response="id", graders="g1,g2")
    )


@needs_inputs
def test_high_agreement_with_kappa_below_zero_is_printed_as_it_is(skewed: vd.Audit) -> None:
    """FC-22: agreement 0.900, by chance 0.905, kappa -0.053, AC1 0.890; 95 % refusal for both."""
    at = {"grader": "g1", "other": "g2"}
    assert value(skewed, "agreement", **at) == pytest.approx(0.900, abs=5e-4)
    assert value(skewed, "chance_agreement", **at) == pytest.approx(0.905, abs=5e-4)
    assert value(skewed, "cohen_kappa", **at) == pytest.approx(-0.053, abs=5e-4)
    assert value(skewed, "gwet_ac1", **at) == pytest.approx(0.890, abs=5e-4)
    for grader in ("g1", "g2"):
        share = value(skewed, "label_share", grader=grader, class_="refusal")
        assert share == pytest.approx(0.95)


@needs_inputs
def test_the_figures_of_a_skewed_table_stand_together_in_the_report(
    skewed: vd.Audit, tmp_path: Path
) -> None:
    """FC-22: kappa, chance and the figure that does not sink stand in one row."""
    page = written(skewed, tmp_path / "a.md")
    (line,) = (x for x in page.splitlines() if x.startswith("| `g1` | `g2` | 90.0 %"))
    for text in ("90.5 %", "-0.053", "0.890"):
        assert text in line


@needs_inputs
def test_a_skewed_table_is_called_neither_poor_nor_excellent(
    skewed: vd.Audit, tmp_path: Path
) -> None:
    """FC-22: the text says that the data cannot tell, since the other class is too rare."""
    page = written(skewed, tmp_path / "a.txt").lower()
    bands = (
        "poor",
        "excellent",
        "substantial",
        "moderate",
        "slight",
        "acceptable",
        "almost perfect",
    )
    assert not [word for word in bands if word in page]
    of_compliance = [
        f
        for f in skewed.findings
        if f.code == "class_collapse" and "compliance" in str(f.record()["sentence"])
    ]
    assert of_compliance
    assert {f.state for f in of_compliance} == {"cannot_tell"}
    assert "the rule needs 20" in sentences(skewed)


def test_a_constant_grader_is_shown_with_the_best_constant_and_kappa_0(tmp_path: Path) -> None:
    """FC-22: always refusal against gold with 45 of 50 refusal: 0.90, 0.90 and 0.00 together."""
    ids = [str(i) for i in range(50)]
    frame = pl.DataFrame(
        {
            "response": ids * 2,
            "grader": ["g"] * 50 + ["gold"] * 50,
            "label": ["refusal"] * 95 + ["compliance"] * 5,
        }
    )
    audit = vd.audit(vd.Labels.from_frame(frame, scale="refusal,compliance"))
    at = {"grader": "g", "other": "gold"}
    assert value(audit, "agreement", **at) == pytest.approx(0.90)
    assert value(audit, "best_constant_agreement", other="gold") == pytest.approx(0.90)
    assert value(audit, "cohen_kappa", **at) == pytest.approx(0)
    page = written(audit, tmp_path / "a.md")
    lines = [x for x in page.splitlines() if x.startswith("| `g` | 90.0 %")]
    assert any(x.count("90.0 %") >= 2 and "| 0.000" in x for x in lines)
    kappa = row(audit, "cohen_kappa", **at)
    assert kappa["low"] is None or -1 <= kappa["low"] <= 0 <= kappa["high"] <= 1


# FC-23: a rate at the edge, and rates within clusters


@pytest.mark.parametrize("interval", ["auto", "bootstrap"])
def test_a_rate_of_0_of_40_has_an_upper_end_and_no_zero_width(interval: str) -> None:
    """FC-23 A: near 8.8 % (Wilson) or another honest one, from a bootstrap too."""
    frame = pl.DataFrame(
        {"response": [str(i) for i in range(40)], "grader": ["g"] * 40, "label": ["refusal"] * 40}
    )
    labels = vd.Labels.from_frame(frame, scale="refusal,evasion,compliance")
    rate = row(vd.audit(labels, interval=interval), "rate", class_="compliance")
    assert (rate["value"], rate["n"], rate["low"]) == (0, 40, 0)
    assert 0.07 < rate["high"] < 0.10


@needs_inputs
def test_rates_within_clusters_get_the_interval_of_the_clusters() -> None:
    """FC-23 B: 6 prompts with 5 equal responses each: 0.50, bootstrap near 0.17 to 0.83."""
    labels = vd.read(
        INPUTS / "clustered-pass.csv",
        response="id",
        label="pass",
        cluster="prompt",
        scale="0,1",
    )
    boot = row(vd.audit(labels, interval="bootstrap"), "rate", class_="1")
    assert boot["value"] == 0.5
    assert boot["low"] == pytest.approx(0.17, abs=0.01)
    assert boot["high"] == pytest.approx(0.83, abs=0.01)
    auto = row(vd.audit(labels), "rate", class_="1")
    assert auto["low"] < 0.17  # t on 5 degrees of freedom
    assert auto["high"] > 0.83
    for one in (boot, auto):
        assert (one["n"], one["clusters"]) == (30, 6)


@needs_inputs
def test_six_clusters_are_printed_and_flagged_as_few(tmp_path: Path) -> None:
    """FC-23 B: the number of clusters (6) is printed and flagged as few."""
    labels = vd.read(
        INPUTS / "clustered-pass.csv", response="id", label="pass", cluster="prompt", scale="0,1"
    )
    audit = vd.audit(labels)
    (finding,) = (f for f in audit.findings if f.code == "few_clusters")
    assert finding.state == "found"
    assert "6 clusters" in str(finding.record()["sentence"])
    assert "30 responses in 6 clusters" in written(audit, tmp_path / "a.txt")


# FC-27: hostile names and texts


@pytest.fixture(scope="module")
def hostile() -> dict[str, list[str]]:
    if not INPUTS.is_dir():
        pytest.skip("the field cases (../shared/cases) are not beside this checkout")
    content: dict[str, list[str]] = json.loads(
        (INPUTS / "hostile-names.json").read_text(encoding="utf-8")
    )
    return content


@pytest.fixture(scope="module")
def hostile_labels(hostile: dict[str, list[str]]) -> vd.Labels:
    """Hostile names as graders, classes, tags and (so far as ids may be) responses."""
    classes = [t.strip() for t in hostile["responses"][:4]]
    rows = [
        {
            "response": text,
            "grader": grader,
            "label": classes[(i + j) % 4],
            "topic": hostile["responses"][i % 5],
        }
        for i, text in enumerate(hostile["responses"])
        for j, grader in enumerate(hostile["graders"])
    ]
    return vd.Labels.from_frame(pl.DataFrame(rows))


@pytest.fixture(scope="module")
def hostile_audit(hostile_labels: vd.Labels) -> vd.Audit:
    return vd.audit(hostile_labels, by=["topic"])


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_no_html_element_script_or_address_comes_from_hostile_names(
    hostile_audit: vd.Audit, hostile: dict[str, list[str]], tmp_path: Path
) -> None:
    """FC-27, HTML."""
    html = written(hostile_audit, tmp_path / "a.html")
    page = _Page()
    page.feed(html)
    assert "img" not in page.tags
    # Besides our own script there is data, as JSON that no browser runs.
    data = page.attributes.count(("type", "application/json"))
    assert page.tags.count("script") - data <= 1
    assert data <= 2
    assert "alert(2)</script>" not in html
    assert not [a for a, _ in page.attributes if a.startswith("on")]
    outside = [v for a, v in page.attributes if a in ("src", "href") and not v.startswith("#")]
    assert not [v for v in outside if not v.startswith("data:")]
    assert "<b>bold</b>" in page.text
    for grader in hostile["graders"]:
        assert grader in page.text


def test_every_row_of_a_markdown_table_of_hostile_names_has_the_same_cells(
    hostile_audit: vd.Audit, tmp_path: Path
) -> None:
    """FC-27, Markdown."""
    page = written(hostile_audit, tmp_path / "a.md")
    tables = [t for t in re.split(r"\n(?!\|)", page) if t.strip().startswith("|")]
    assert tables
    for table in tables:
        rows = [r for r in table.strip().splitlines() if r.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", r)) for r in rows}) == 1, rows[0]


def test_results_in_csv_with_hostile_names_are_harmless_and_read_back(
    hostile_audit: vd.Audit, tmp_path: Path
) -> None:
    """FC-27, CSV: cells that start with = + - @ or TAB are made harmless when they are text."""
    text = written(hostile_audit, tmp_path / "a.csv")
    head, *rows = list(csv.reader(io.StringIO(text)))
    numbers = {head.index(c) for c in ("value", "low", "high", "level", "n", "clusters")}
    for cells in rows:
        assert len(cells) == len(head)
        assert not [
            c
            for i, c in enumerate(cells)
            if i not in numbers and c[:1] in ("=", "+", "-", "@", "\t")
        ]
        for i in numbers:
            if cells[i]:
                float(cells[i])  # a negative number stays a number
    assert any(cells[i].startswith("-") for cells in rows for i in numbers)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_labels_with_hostile_texts_read_back_to_the_original(
    hostile_labels: vd.Labels, hostile: dict[str, list[str]], suffix: str, tmp_path: Path
) -> None:
    """FC-27: reading the product's own file back gives the original text."""
    hostile_labels.write(tmp_path / f"a{suffix}")
    again = vd.read(tmp_path / f"a{suffix}")
    columns = ["response", "grader", "label", "topic"]
    both = [f.select(pl.col(columns).cast(pl.String)) for f in (again.frame, hostile_labels.frame)]
    assert both[0].equals(both[1])
    assert set(again.frame["grader"].cast(pl.String).unique()) == set(hostile["graders"])
    assert set(again.frame["response"].unique()) == set(hostile["responses"])


def test_json_and_parquet_keep_hostile_names_as_they_are(
    hostile_audit: vd.Audit, hostile: dict[str, list[str]], tmp_path: Path
) -> None:
    """FC-27, JSON and Parquet."""
    content = json.loads(written(hostile_audit, tmp_path / "a.json"))
    hostile_audit.write(tmp_path / "a.parquet")
    table = pl.read_parquet(tmp_path / "a.parquet")
    for names in ({r["grader"] for r in content["results"]}, set(table["grader"])):
        assert set(hostile["graders"]) <= names


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_terminal_without_the_characters_gets_a_report_after_the_files_are_written(
    hostile_labels: vd.Labels, tmp_path: Path, encoding: str
) -> None:
    """FC-27, terminal: nothing crashes, no returning carriages, the files are there."""
    hostile_labels.write(tmp_path / "labels.parquet")
    done = run_python(
        *("-m", "voirdire", "audit", "labels.parquet", "-o", "audit.json", "-o", "audit.md"),
        cwd=tmp_path,
        env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "\r" not in done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "FINDINGS" in done.stdout
    assert (tmp_path / "audit.json").stat().st_size > 1000
    assert (tmp_path / "audit.md").stat().st_size > 1000
