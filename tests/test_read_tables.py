"""Label tables: how files become rows, and how what is wrong in them is said."""

from __future__ import annotations

import io
import json
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from voirdire.errors import InputError, UsageError
from voirdire.options import Options
from voirdire.readers.table import READER, look, raw_table, read, sniff
from voirdire.rows import CANONICAL, Place, Rows
from voirdire.source import Source
from voirdire.wording import plain

SHARED = Path(__file__).parents[2] / "shared"
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the folder with the shared data does not stand beside this one"
)


def source(content: str | bytes, name: str = "labels.csv", *, alone: bool = True) -> Source:
    data = content if isinstance(content, bytes) else content.encode()
    return Source(name=name, content=data, alone=alone)


def rows_of(content, name="labels.csv", **options) -> Rows:
    return read(source(content, name), Options.of(**options))


def shared_rows(path: str, **options) -> Rows:
    file = SHARED / path
    return read(Source(name=file.name, path=file), Options.of(**options))


def frame_rows(frame: pl.DataFrame, **options) -> Rows:
    return read(Source(name="frame", frame=frame), Options.of(**options))


def notices(rows: Rows) -> str:
    return "\n".join(plain(n) for n in rows.notices)


def refused(content, name="labels.csv", error=InputError, **options) -> str:
    with pytest.raises(error) as caught:
        rows_of(content, name, **options)
    assert type(caught.value) is error
    return str(caught.value)


# --- text is text -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["None", "NA", "null", "nan", "N/A", "NULL", "-", "#N/A"])
def test_a_class_named_like_a_missing_value_is_a_class(name):
    rows = rows_of(f"id,label\n1,{name}\n2,\n")
    assert rows.frame["label"].to_list() == [name, None]


def test_a_cell_of_white_space_is_blank_and_other_cells_are_not_trimmed():
    rows = rows_of("id,label,topic\n1, yes ,a\n2,\u2003 \t,b\n")
    assert rows.frame["label"].to_list() == [" yes ", None]


def test_numbers_and_leading_zeros_stay_as_they_are_written():
    rows = rows_of("id,label\n007,01\n1e3,1.0\n")
    assert rows.frame["response"].to_list() == ["007", "1e3"]
    assert rows.frame["label"].to_list() == ["01", "1.0"]


def test_a_cell_of_140000_letters_is_read_whole():
    rows = rows_of(f"id,label,reply\n1,yes,{'a' * 140_000}\n")
    assert len(rows.frame["reply"][0]) == 140_000


def test_reading_a_long_cell_leaves_the_csv_limit_of_the_program_alone():
    import csv

    before = csv.field_size_limit()
    rows_of(f"id,label,reply\n1,yes,{'a' * 140_000}\n")
    assert csv.field_size_limit() == before


# --- delimited files ----------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_taken_from_the_header(delimiter):
    text = "id,label,note\n1,yes,a\n2,no,b\n".replace(",", delimiter)
    assert rows_of(text, "labels.txt").frame["label"].to_list() == ["yes", "no"]


def test_decimal_commas_do_not_hide_a_semicolon():
    rows = rows_of("id;label;weight\n1;yes;0,5\n2;no;1,5\n", weight="weight")
    assert rows.frame["weight"].to_list() == ["0,5", "1,5"]


def test_a_tsv_may_have_commas_in_its_header():
    rows = rows_of("id\tlabel\tcost, in cents\n1\tyes\t3\n", "labels.tsv")
    assert rows.frame.columns[-1] == "cost, in cents"


def test_a_single_column_of_labels_is_a_table():
    table = raw_table(source("label\nyes\n\nno\n"), Options())
    assert table.frame["label"].to_list() == ["yes", "no"]
    assert table.line(1) == 4


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_is_no_part_of_the_first_name(encoding):
    rows = rows_of("id,label\r\nä,yes\r\n".encode(encoding))
    assert rows.frame["response"].to_list() == ["ä"]
    assert "id" in rows.frame.columns


def test_line_ends_inside_quotes_do_not_end_a_row_and_lines_are_counted_as_an_editor_does():
    rows = rows_of('id,label,reply\n\n1,yes,"a\nb\nc"\n\n2,no,d\n')
    assert rows.frame["label"].to_list() == ["yes", "no"]
    assert [rows.place(i).line for i in (0, 1)] == [3, 7]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_every_kind_of_line_end_is_read(end):
    rows = rows_of(end.join(["id,label", "1,yes", "2,no"]))
    assert rows.frame["label"].to_list() == ["yes", "no"]
    assert rows.place(1).line == 3


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c"])
def test_unusual_separators_are_text_in_csv_and_jsonl(char):
    assert rows_of(f"id,label\n1,a{char}b\n").frame["label"].to_list() == [f"a{char}b"]
    line = json.dumps({"id": 1, "label": f"a{char}b"}, ensure_ascii=ord(char) < 32)
    assert rows_of(line + "\n", "x.jsonl").frame["label"].to_list() == [f"a{char}b"]


def test_every_ragged_row_is_named_with_its_line_and_its_cells():
    message = refused('id,label,a\n1,yes,"x\ny"\n2,no\n\n3,yes,b,c\n')
    assert "labels.csv: 2 problems" in message
    assert "line 4: 2 cells where the header has 3" in message
    assert "line 6: 4 cells where the header has 3" in message


def test_only_the_first_twenty_problems_are_shown_and_all_are_counted():
    message = refused("id,label\n" + "1\n" * 25_000)
    assert "25,000 problems" in message
    assert "line 21:" in message
    assert "line 22:" not in message
    assert "and 24,980 more" in message


def test_an_unclosed_quotation_mark_is_found_where_it_opens():
    message = refused('id,label\n1,yes\n2,"no\n3,yes\n')
    assert "line 3: a quotation mark opens a cell here, and it is never closed" in message


def test_text_after_a_closing_quotation_mark_is_an_error_with_both_lines():
    message = refused('id,label\n1,"yes\n2,no" way\n')
    assert "labels.csv, line 3" in message
    assert "began on line 2" in message


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", "  \n"])
def test_an_empty_file_is_said_to_be_empty(content):
    assert "the file is empty" in refused(content)


def test_a_header_alone_is_no_table():
    assert "no rows" in refused("id,label\n")


def test_a_name_used_twice_matters_only_where_the_column_is_needed():
    rows = rows_of("id,label,x,x\n1,yes,2,3\n")
    assert rows.frame.columns[-2:] == ["x", "x (column 4)"]
    assert "2 columns have one name" in notices(rows)
    assert '2 columns are called "label"' in refused("id,label,label\n1,yes,no\n")


def test_columns_without_a_name_are_kept_unless_they_are_blank():
    rows = rows_of(",id,label,\n0,a,yes,\n1,b,no,\n")
    assert "column 1" in rows.frame.columns
    assert len(rows.frame.columns) == 5  # response, grader, label, column 1, id
    assert "column 1" in notices(rows)


def test_rows_without_content_are_left_out_and_counted():
    rows = rows_of("id,label\n1,yes\n,\n2,no\n,\n")
    assert rows.frame["response"].to_list() == ["1", "2"]
    assert rows.place(1).line == 4
    assert "2 rows without any content" in notices(rows)


def test_our_own_csv_gives_back_the_cells_that_it_guards():
    cells = ["=1+2", "-3", "+44", "@now", "\tTAB", "'quoted", "plain", "it's"]
    header = ",".join((*CANONICAL, "note"))
    lines = [header]
    for i, cell in enumerate(cells):
        guarded = "'" + cell if cell[0] in "=+-@\t\r'" else cell
        lines.append(f"{i},g,{guarded},label,,c,,,1,,{guarded}")
    rows = rows_of("\n".join(lines) + "\n")
    assert rows.frame["label"].to_list() == cells
    assert rows.frame["note"].to_list() == cells
    assert rows.frame.columns[: len(CANONICAL)] == list(CANONICAL)


def test_a_foreign_csv_keeps_its_apostrophes():
    assert rows_of("id,label\n1,'=x\n").frame["label"].to_list() == ["'=x"]


# --- encodings ----------------------------------------------------------------------------------


def test_a_byte_that_is_not_utf8_is_named_with_line_and_flag():
    content = b"id,label\n" + b"1,yes\n" * 15 + b"2,na\xefve\n"
    message = refused(content)
    assert "labels.csv, line 17: byte 0xef is not UTF-8." in message
    assert "--encoding cp1252" in message
    assert rows_of(content, encoding="cp1252").frame["label"][-1] == "naïve"


def test_a_file_that_is_neither_utf8_nor_cp1252_is_said_to_be_neither():
    message = refused(b"id,label\n1,\x9d\xff\n2,\xc3\xa9\n")
    assert "line 2: byte 0x9d" in message
    assert "neither UTF-8 nor cp1252" in message
    assert "latin-1" in message


def test_the_bad_byte_of_a_json_file_is_found_too():
    message = refused(b'[\n{"id": 1,\n "label": "\xe9"}]', "x.json")
    assert "x.json, line 3: byte 0xe9" in message
    assert "x.jsonl, line 2: byte 0xe9" in refused(b'{"id": 1}\n{"id": "\xe9"}\n', "x.jsonl")


@pytest.mark.parametrize("name", ["utf-99", "base64", "a\0b", "rot13"])
def test_an_unknown_encoding_is_a_usage_error(name):
    assert "no such encoding" in refused("id,label\n1,yes\n", error=UsageError, encoding=name)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a PNG picture"),
        (b"PK\x03\x04\x14\x00", "zip archive"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"ab\x00\x00\x00\x00cd\x00\x00", "binary data"),
        ("id,label\n1,yes\n".encode("utf-16-le"), "--encoding utf-16-le"),
    ],
)
def test_what_is_no_text_is_said_to_be_no_table(content, what):
    message = refused(content)
    assert "not a table" in message
    assert what in message


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16", "UTF16"])
def test_text_in_utf16_without_a_mark_is_read_when_it_is_named(name):
    rows = rows_of("id,label\n1,yes\n".encode("utf-16-le"), encoding=name)
    assert rows.frame["label"].to_list() == ["yes"]


@pytest.mark.parametrize("name", ["utf-8", "utf-16-le", "utf-16"])
def test_a_mark_is_no_part_of_the_first_name_where_the_encoding_is_named(name):
    content = "\ufeffid,label\n1,yes\n".encode("utf-8" if name == "utf-8" else "utf-16-le")
    assert rows_of(content, encoding=name).frame.columns[-1] == "id"


# --- JSON ---------------------------------------------------------------------------------------


def test_json_values_keep_their_spelling():
    text = '[{"id": 1, "label": 1.0, "a": true, "b": null, "c": NaN, "d": {"x": [1.50, "y"]}},'
    text += f' {{"id": 1{"0" * 5000}, "label": 1e3, "a": false, "b": "null", "c": "NaN"}}]'
    frame = rows_of(text, "x.json").frame
    assert frame["label"].to_list() == ["1.0", "1e3"]
    assert frame["a"].to_list() == ["true", "false"]
    assert frame["b"].to_list() == [None, "null"]
    assert frame["c"].to_list() == [None, "NaN"]
    assert frame["d"].to_list() == ['{"x":[1.50,"y"]}', None]
    assert len(frame["response"][1]) == 5001


@pytest.mark.parametrize(
    "text",
    [
        '[{"id": "a", "label": "yes"}, {"id": "b", "label": "no"}]',
        '{"id": ["a", "b"], "label": ["yes", "no"]}',
        '{"id": {"0": "a", "1": "b"}, "label": {"0": "yes", "1": "no"}}',
        '{"columns": ["id", "label"], "index": [0, 1], "data": [["a", "yes"], ["b", "no"]]}',
        '{"rate": 0.5, "rows": [{"id": "a", "label": "yes"}, {"id": "b", "label": "no"}]}',
        '{"id": "a", "label": "yes"}\n{"id": "b", "label": "no"}',
        '\ufeff{"id": "a", "label": "yes"}\r\n\r\n{"id": "b", "label": "no"}\r\n',
    ],
)
def test_every_shape_of_json_table_is_read(text):
    frame = rows_of(text, "x.json").frame
    assert frame["response"].to_list() == ["a", "b"]
    assert frame["label"].to_list() == ["yes", "no"]


def test_the_rest_of_a_json_document_is_named_as_left_out():
    rows = rows_of('{"rate": 0.5,\n"rows": [\n{"id": 1, "label": "a"}]}', "x.json")
    assert "the list rows; the rest of the document (rate) is left out" in notices(rows)
    assert rows.place(0) == Place(line=3, column="label")


def test_two_lists_of_objects_are_not_guessed_between():
    message = refused('{"a": [{"id": 1}], "b": [{"id": 2}]}', "x.json")
    assert "several lists of objects (a, b)" in message


def test_columns_of_unequal_length_are_refused():
    assert "not equally long (a 1, b 2)" in refused('{"a": [1], "b": [1, 2]}', "x.json")


def test_a_row_of_a_json_document_has_the_line_where_it_begins():
    rows = rows_of('[\n  {"id": 1,\n   "label": "a"},\n  {"id": 2, "label": "b"}\n]', "x.json")
    assert [rows.place(i).line for i in (0, 1)] == [2, 4]


def test_broken_json_is_named_with_line_and_column():
    message = refused('[\n{"id": 1,, "label": "a"}\n]', "x.json")
    assert "x.json, line 2: no JSON" in message
    assert "column 10" in message


def test_a_document_that_ends_too_early_is_said_to_be_torn():
    assert "torn" in refused('[{"id": 1, "label": "a"}, {"id": 2,', "x.json")


def test_every_broken_line_is_named_and_a_torn_end_is_said_to_be_torn():
    good = '{"id": 1, "label": "a"}\n'
    message = refused(good + '{"id": oops}\n' + good + "[1]\n" + '{"id": 2, "la', "x.jsonl")
    assert "x.jsonl: 3 problems" in message
    assert "line 2: no JSON" in message
    assert "line 4: a list where an object" in message
    assert "line 5: the file ends in the middle of this record: it is torn" in message


def test_a_broken_last_line_that_is_whole_is_not_called_torn():
    assert "torn" not in refused('{"id": 1, "label": "a"}\n{"id": oops}\n', "x.jsonl")


def test_a_key_given_twice_is_a_problem():
    text = '{"id": 1, "label": "a", "label": "b"}\n'
    assert 'the key "label" stands twice' in refused(text, "x.jsonl")
    assert "line 2" in refused("[\n" + text + "]", "x.json")


def test_deep_nesting_is_an_input_error():
    deep = "[" * 100_000 + "]" * 100_000
    for name in ("x.json", "x.jsonl"):
        assert "nested too deeply" in refused(f'{{"id": {deep}}}\n', name)
    assert "nested too deeply" in refused(deep, "x.json")


def test_half_characters_become_one_replacement_and_are_counted():
    rows = rows_of(
        '{"id": "a", "label": "x\\ud83d"}\n{"id": "b", "label": "\\ud83d\\ude00"}\n', "x.jsonl"
    )
    assert rows.frame["label"].to_list() == ["x\ufffd", "😀"]
    assert "1 half characters" in notices(rows)


def test_a_zero_character_is_kept():
    assert rows_of('{"id": 1, "label": "a\\u0000b"}\n', "x.jsonl").frame["label"][0] == "a\0b"


def test_a_number_and_the_same_text_become_one_id_with_a_notice():
    rows = rows_of('{"id": 7, "label": "a"}\n{"id": "7", "label": "b"}\n{"id": "8"}\n', "x.jsonl")
    assert rows.frame["response"].to_list() == ["7", "7", "8"]
    assert "1 values are a number in some rows and text in others (such as 7)" in notices(rows)


def test_keys_that_come_late_are_columns_too():
    rows = rows_of('{"id": 1, "label": "a"}\n{"id": 2, "label": "b", "topic": "t"}\n', "x.jsonl")
    assert rows.frame["topic"].to_list() == [None, "t"]


# --- Parquet, Arrow, frames ---------------------------------------------------------------------


def test_typed_columns_become_text():
    frame = pl.DataFrame(
        {
            "id": [1, 2],
            "label": pl.Series(["a", "b"], dtype=pl.Categorical),
            "whole": [1.0, float("nan")],
            "flag": [True, None],
            "day": [date(2026, 1, 2), None],
            "many": [[1, 2], None],
            "blank": pl.Series([None, None]),
        }
    )
    rows = frame_rows(frame)
    assert rows.frame.row(0) == ("1", "frame", "a", "1", "1.0", "true", "2026-01-02", "[1,2]", None)
    assert rows.frame.row(1)[3:] == ("2", None, None, None, None, None)


def test_a_column_of_bytes_is_refused():
    with pytest.raises(InputError, match="column reply: the column holds bytes"):
        frame_rows(pl.DataFrame({"id": [1], "label": ["a"], "reply": [b"x"]}))


@pytest.mark.parametrize(
    ("suffix", "write"), [("parquet", "write_parquet"), ("arrow", "write_ipc")]
)
def test_columnar_files_are_read(suffix, write):
    stream = io.BytesIO()
    getattr(pl.DataFrame({"id": ["a"], "label": ["None"]}), write)(stream)
    rows = rows_of(stream.getvalue(), f"x.{suffix}")
    assert rows.frame["label"].to_list() == ["None"]


def test_a_damaged_parquet_file_is_an_input_error():
    assert "cannot be read as a Parquet file" in refused(b"PAR1 nothing else", "x.parquet")


def test_our_own_parquet_is_taken_as_it_stands():
    stream = io.BytesIO()
    frame = pl.DataFrame({c: ["x"] for c in CANONICAL if c not in ("line", "weight")}).with_columns(
        pl.lit(2.5).alias("weight"), pl.lit(" ").alias("note"), pl.lit("1").alias("score")
    )
    carried = {"kind": "labels", "scale": ["x", "y"]}
    frame.write_parquet(stream, metadata={"voirdire": json.dumps(carried)})
    rows = rows_of(stream.getvalue(), "x.parquet")
    assert rows.carried == carried
    assert rows.frame["weight"].to_list() == [2.5]
    assert rows.frame["note"].to_list() == [" "]
    assert rows.frame["score"].to_list() == ["1"]


def test_our_own_counts_come_back_as_counts():
    stream = io.BytesIO()
    frame = pl.DataFrame(
        {
            "response": [None],
            "grader": ["g"],
            "label": ["x"],
            "outcome": ["label"],
            "weight": [3.0],
        },
        schema_overrides={"response": pl.String},
    )
    frame.write_parquet(stream, metadata={"voirdire": json.dumps({"kind": "counts"})})
    rows = rows_of(stream.getvalue(), "x.parquet")
    assert rows.kind == "counts"
    assert "response" not in rows.frame.columns


def test_a_canonical_table_of_counts_in_csv_comes_back_as_counts():
    rows = rows_of(",".join(CANONICAL) + "\n,g,x,label,,,,,3.0,\n,g,,label,,,,,,\n")
    assert rows.kind == "counts"
    assert rows.frame["weight"].to_list() == [3.0, None]


def test_the_frame_of_labels_is_taken_as_it_stands():
    frame = pl.DataFrame({c: [None] for c in CANONICAL}, schema=dict.fromkeys(CANONICAL, pl.String))
    frame = frame.with_columns(response=pl.lit("1"), grader=pl.lit("g"), label=pl.lit("x"))
    assert frame_rows(frame).frame.columns == list(CANONICAL)


# --- columns ------------------------------------------------------------------------------------


def test_joined_columns_become_one_id_and_stay_tags():
    rows = rows_of("model,n,label\na,1,yes\nb,1,no\n", response="model+n", cluster="n")
    assert rows.frame["response"].to_list() == ["a/1", "b/1"]
    assert rows.frame.columns == ["response", "grader", "label", "cluster", "model", "n"]


def test_a_column_whose_name_has_a_plus_goes_first():
    rows = rows_of("a,b,a+b,label\n1,2,3,yes\n", response="a+b")
    assert rows.frame["response"].to_list() == ["3"]
    rows = rows_of("a+b,c,label\n1,2,yes\n", response="a+b+c")
    assert rows.frame["response"].to_list() == ["1/2"]


def test_joining_that_merges_two_ids_is_refused():
    message = refused("a,b,label\nx/y,z,yes\nx,y/z,no\n", response="a+b")
    assert '("x", "y/z")' in message
    assert 'become "x/y/z"' in message


def test_every_blank_id_is_named_with_its_line_and_column():
    message = refused("a,b,label\nx,1,yes\ny,,no\n,3,no\n", response="a+b")
    assert "line 3, column b: the response is blank" in message
    assert "line 4, column a: the response is blank" in message


def test_recode_repairs_spellings_before_joining_and_says_what_it_never_met():
    rows = rows_of(
        "model,n,label\nQ_1,1,yes\nQ/1,2,no\n",
        response="model+n",
        recode=["model:Q_1=Q/1", "model:zzz=y"],
    )
    assert rows.frame["response"].to_list() == ["Q/1/1", "Q/1/2"]
    assert rows.unmatched == ("--recode model:zzz=y",)


def test_recode_of_a_column_that_is_not_there_is_a_usage_error():
    message = refused("model,label\na,b\n", error=UsageError, recode="modle:a=b")
    assert "Did you mean model?" in message


@pytest.mark.parametrize("role", ["response", "grader", "label", "cluster", "vote", "weight"])
def test_an_option_that_names_no_column_lists_the_columns(role):
    message = refused("id,label,judged\n1,a,b\n", error=UsageError, **{role: "Judgd"})
    assert f"--{role} Judgd" in message
    assert "Did you mean judged?" in message
    assert "Columns: id, label, judged." in message


@pytest.mark.parametrize("name", ["response_ID", "Item", "UUID", "doc_id", "Sample_Id"])
def test_recognised_names_are_recognised_in_any_case(name):
    rows = rows_of(f"{name},JUDGE,Verdict,Epoch,Prompt_ID\n1,g,yes,2,p\n")
    assert rows.frame.select("response", "grader", "label", "vote", "cluster").row(0) == (
        "1",
        "g",
        "yes",
        "2",
        "p",
    )


def test_two_columns_that_could_be_the_response_are_not_guessed_between():
    message = refused("id,item,label\n1,a,yes\n2,b,no\n", error=UsageError)
    assert "the response could be item or id: choose with --response" in message
    assert "--response item" in message


def test_a_response_column_that_holds_prose_is_no_id():
    rows = rows_of("id,response,label\n1,I will not do this,yes\n2,Here you go,no\n")
    assert rows.frame["response"].to_list() == ["1", "2"]
    assert rows.frame["response (column)"][0] == "I will not do this"


def test_a_tag_with_the_name_of_something_else_is_renamed():
    rows = rows_of("id,label,g1,g2\n1,t,a,b\n", graders="g1,g2")
    assert "label (column)" in rows.frame.columns
    assert rows.frame["label"].to_list() == ["a", "b"]


def test_response_grader_and_label_are_taken_before_other_recognised_names():
    rows = rows_of("response,id,grader,judge,label,score,cluster\n1,x,g,y,yes,2,c\n")
    assert rows.frame.row(0, named=True).items() >= {
        "response": "1", "grader": "g", "label": "yes", "cluster": "c", "score": "2",
    }.items()  # fmt: skip


@pytest.mark.parametrize("column", ["weight", "stratum", "phrasing"])
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("response,grader,label,{}\n1,g,1,2\n", {}),
        ("id,label,{}\n1,1,2\n", {}),
        ("id,g,h,{}\n1,1,1,2\n", {"graders": "g,h"}),
    ],
)
def test_what_changes_results_is_taken_from_a_foreign_table_only_where_it_is_named(
    text, options, column
):
    rows = rows_of(text.format(column), **options)
    assert column not in rows.frame.columns
    assert f"{column} (column)" in rows.frame.columns
    assert f"--{column} {column}" in notices(rows)
    named = rows_of(text.format(column), **options, **{column: column})
    assert set(named.frame[column]) == {"2"}
    assert column not in notices(named)


def test_a_table_that_was_converted_keeps_what_changes_results():
    rows = rows_of(",".join(CANONICAL) + "\n1,g,yes,label,,c,1,p,2.0,s\n")
    assert rows.frame.select("weight", "stratum", "phrasing").row(0) == ("2.0", "s", "p")


def test_an_outcome_column_is_known_by_its_values():
    rows = rows_of("id,label,outcome\n1,yes,label\n2,,unparsed\n")
    assert rows.frame["outcome"].to_list() == ["label", "unparsed"]
    rows = rows_of("id,label,outcome\n1,yes,patient died\n")
    assert "outcome (column)" in rows.frame.columns


# --- long ---------------------------------------------------------------------------------------


def test_a_file_without_a_grader_column_is_one_grader():
    assert rows_of("id,label\n1,yes\n", "gpt-4.csv").frame["grader"].to_list() == ["gpt-4"]
    rows = rows_of("id,label\n1,yes\n", grader_name="gpt")
    assert rows.frame["grader"].to_list() == ["gpt"]


def test_standard_input_is_read():
    rows = rows_of("id,label\n1,yes\n", "standard input")
    assert rows.frame["grader"].to_list() == ["standard input"]


def test_other_graders_are_left_out_and_counted_but_gold_and_people_stay():
    text = "id,grader,label\n1,a,x\n1,b,x\n1,Gold,x\n1,c,x\n2,c,x\n1,ann,y\n2,a,z\n"
    rows = rows_of(text, graders="a", people="ann")
    assert rows.frame["grader"].to_list() == ["a", "Gold", "ann", "a"]
    assert "3 rows of graders not named in --graders were left out: b and c." in notices(rows)
    assert rows.place(3) == Place(line=8, column="label")
    assert rows.seen == ("a", "b", "Gold", "c", "ann")


def test_a_grader_that_does_not_occur_is_a_usage_error_with_those_that_do():
    text = "id,grader,label\n1,gpt-4,x\n1,llama,x\n"
    message = refused(text, error=UsageError, graders="gpt4,llama")
    assert 'there is no grader "gpt4". Did you mean gpt-4?' in message
    assert "Graders: gpt-4, llama." in message


def test_an_input_beside_others_may_lack_graders_and_columns():
    gold = source("id,grader,label\n1,gold,x\n", alone=False)
    options = Options.of(graders="a,b", cluster="prompt", recode="model:a=b")
    rows = read(gold, options)
    assert rows.frame["grader"].to_list() == ["gold"]
    assert rows.absent == ("--cluster prompt", "--recode model:a=b")


def test_a_row_without_a_grader_is_a_problem():
    message = refused("id,grader,label\n1,a,x\n2,,x\n")
    assert "line 3, column grader: the grader is blank" in message


# --- wide ---------------------------------------------------------------------------------------


def test_a_wide_table_becomes_one_row_a_response_and_grader_in_file_order():
    rows = rows_of("id,g1,topic,g2\n1,a,t,b\n2,,u,c\n", graders="g2,g1")
    assert rows.frame.columns == ["response", "grader", "label", "id", "topic"]
    assert rows.frame.rows() == [
        ("1", "g2", "b", "1", "t"),
        ("1", "g1", "a", "1", "t"),
        ("2", "g2", "c", "2", "u"),
        ("2", "g1", None, "2", "u"),
    ]
    assert rows.order == ("g2", "g1")
    assert rows.place(3) == Place(line=3, column="g1")


def test_gold_reference_and_people_come_after_the_graders():
    text = "id,ann,g1,GOLD,ref\n1,a,b,c,d\n"
    rows = rows_of(text, graders="g1", people="ann", reference="ref")
    assert rows.order == ("g1", "ann", "GOLD", "ref")
    assert rows_of(text, graders="g1", gold="none").order == ("g1",)


def test_graders_are_found_by_the_scale_with_numbers_as_numbers():
    text = "id,gold,g1,g2,topic\na,1,1,1.0,x\nb,0,False, 0 ,y\nc,1,true,01,x\n"
    rows = rows_of(text, scale="0,1")
    assert rows.order == ("gold", "g1", "g2")
    assert "taken as graders" in notices(rows)


def test_a_column_that_is_nearly_on_the_scale_is_named():
    text = "id,a,b,c\n1,x,x,x\n2,y,y,sorry\n3,x,y,y\n"
    rows = rows_of(text, scale="x,y")
    assert rows.order == ("a", "b")
    assert "The column c was not taken as a grader: 1 of its cells" in notices(rows)
    assert rows_of(text, scale="x,y", failed="sorry=grader_refusal").order == ("a", "b", "c")


def test_rows_without_an_id_are_numbered_with_a_notice():
    rows = rows_of("g1,g2\na,b\nb,b\n", graders="g1,g2")
    assert rows.frame["response"].to_list() == ["1", "1", "2", "2"]
    assert "numbered from 1" in notices(rows)


def test_a_grader_column_that_is_not_there_is_a_usage_error():
    message = refused("id,g1,g2\n1,a,b\n", error=UsageError, graders="g1,g3")
    assert 'there is no column "g3"' in message


# --- counts -------------------------------------------------------------------------------------


def counts(text: str, **options: Any) -> tuple[Rows, list[tuple[Any, ...]]]:
    rows = rows_of(text, "counts.csv", **options)
    return rows, rows.frame.select("grader", "label", "outcome", "weight").rows()


def test_a_count_table_becomes_counts_with_outcomes_and_totals():
    rows, cells = counts(
        "judge,yes,no,unparsed,total,bank\na,3,4,1,7,x\nb,,5,0,9,x\n", scale="no,yes"
    )
    assert (rows.kind, rows.layout) == ("counts", "counts")
    assert cells == [
        ("a", "no", None, 4),
        ("a", "yes", None, 3),
        ("a", None, "unparsed", 1),
        ("a", None, "label", 7),
        ("b", "no", None, 5),
        ("b", "yes", None, None),
        ("b", None, "unparsed", 0),
        ("b", None, "label", 9),
    ]
    assert rows.frame["bank"].to_list() == ["x"] * 8
    assert rows.place(5) == Place(line=3, column="yes")
    assert rows.order == ("a", "b")


def test_a_class_without_a_column_is_unprinted():
    rows, cells = counts("grader,yes,no\na,3,4\n", scale="no,maybe,yes")
    assert ("a", "maybe", None, None) in cells
    assert "unprinted, not as 0" in notices(rows)


def test_counts_are_recognised_without_a_scale():
    rows, cells = counts("model,grader,yes,no\nm,a,3,4\nn,a,1,2\n")
    assert [c[1] for c in cells] == ["yes", "no"] * 2
    assert rows.frame["model"].to_list() == ["m", "m", "n", "n"]


def test_every_cell_that_is_no_count_is_named():
    text = 'grader,yes,no\na,"1,234",4\nb,-3,5\nc,1.5,6\nd,12,7\ne,3.0,8\n'
    message = refused(text, scale="no,yes", layout="counts")
    assert "3 problems" in message
    assert 'line 2, column yes: value "1,234" is no count' in message
    assert 'value "-3"' in message
    assert 'value "1.5"' in message


def test_a_thousands_separator_does_not_make_a_class_a_tag():
    text = 'grader,yes,no\na,"1,234",4\nb,3,5\nc,1,6\n'
    assert '"1,234" is no count' in refused(text)


def test_a_total_below_its_classes_is_a_problem_and_above_is_a_notice():
    message = refused("grader,yes,no,total\na,3,4,6\n", scale="no,yes")
    assert "the total of grader a is 6, and its classes add up to 7" in message
    rows, _ = counts("grader,yes,no,total\na,3,4,9\n", scale="no,yes")
    assert "2 labels of grader a are in no printed class" in notices(rows)


def test_a_total_of_calls_is_brought_to_the_labels_in_it():
    rows, cells = counts("grader,yes,no,error,total\na,3,4,2,9\nb,1,1,0,2\n", scale="no,yes")
    assert ("a", None, "label", 7) in cells
    assert ("b", None, "label", 2) in cells
    assert "counts all calls" in notices(rows)


@pytest.mark.parametrize("name", ["n", "N", "sum", "all", "count"])
def test_a_column_that_sums_the_others_is_the_total_and_no_class(name):
    rows, cells = counts(f"grader,a,b,c,{name}\ng,1,2,3,6\nh,0,5,1,6\ni,2,,,6\n")
    assert {c[1] for c in cells} == {"a", "b", "c", None}
    assert ("i", None, "label", 6) in cells
    assert "taken as the total" in notices(rows)


@pytest.mark.parametrize(
    "text",
    [
        "grader,a,b,c\ng,1,2,3\nh,0,5,5\n",  # no such name
        "grader,a,b,n\ng,1,2,3\nh,0,5,6\n",  # one row does not add up
        "grader,a,b,n\ng,1,2,3\nh,0,,6\n",  # one complete row alone
        "grader,a,n\ng,3,3\nh,5,5\n",  # one other class alone
        "grader,a,b,n\ng,1,2,3\nh,0,5,5\ni,9,,6\n",  # a class beyond the sum
    ],
)
def test_a_column_that_need_not_be_a_total_stays_a_class(text):
    rows, cells = counts(text)
    assert len({c[1] for c in cells}) == len(text.splitlines()[0].split(",")) - 1
    assert "taken as the total" not in notices(rows)


def test_a_sum_of_all_calls_is_the_total_too():
    rows, cells = counts("grader,a,b,error,n\ng,1,2,3,6\nh,0,5,1,6\n")
    assert ("g", None, "label", 3) in cells
    assert "counts all calls" in notices(rows)


def test_a_grader_that_stands_twice_with_the_same_tags_is_a_problem():
    message = refused("grader,bank,yes,no\na,x,3,4\na,y,3,4\na,x,1,1\n", scale="no,yes")
    assert "line 4: grader a stands here again with the same tags (first on line 2)" in message


# --- which layout -------------------------------------------------------------------------------


def test_an_unclear_table_is_answered_with_what_was_seen_and_a_command():
    rows = "".join(f"{i},t{i % 3},{'xy'[i % 2]},{'yx'[i % 3 == 0]}\n" for i in range(40))
    message = refused("name,topic,judge 1,gpt 4\n" + rows, "my labels.csv", missing="n/a")
    assert "topic: t0, t1, t2" in message
    assert "name: 0, 1, 2, … (40 different)" in message
    assert "--layout wide --response name --graders 'judge 1,gpt 4'" in message
    message = refused("name,topic,one,gpt 4\n" + rows, "my labels.csv", missing="n/a")
    assert (
        "voirdire audit 'my labels.csv' --layout wide --response name --graders 'one,gpt 4' "
        "--missing n/a" in message
    )


def test_the_command_that_is_shown_reads_the_table():
    import shlex

    text = "name,a,b\n" + "".join(f"{i},{'xy'[i % 2]},{'xy'[i % 3 == 0]}\n" for i in range(40))
    words = shlex.split(refused(text).splitlines()[-1])
    assert words[:4] == ["voirdire", "audit", "labels.csv", "--layout"]
    options = dict(zip((w[2:] for w in words[3::2]), words[4::2], strict=True))
    assert len(rows_of(text, **options).frame) == 80


def test_a_table_that_fits_two_layouts_is_not_guessed_about():
    text = "id,label,a,b\n1,x,x,y\n2,y,y,y\n"
    message = refused(text, scale="x,y")
    assert "this can be read in 2 layouts (long, wide)" in message
    assert "--layout long" in message
    assert "--layout wide --response id --graders label,a,b" in message
    assert rows_of(text, scale="x,y", layout="long").frame.height == 2
    assert "long, wide" in refused("id,label,gold\n1,x,y\n")


def test_a_grader_column_settles_that_a_table_is_long():
    rows = rows_of("id,judge,label,a,b\n1,g,x,x,y\n", scale="x,y", layout="auto", vote="b")
    assert rows.layout == "long"


def test_a_long_table_without_a_known_response_asks_for_it():
    message = refused("name,label\na,x\nb,y\n", error=UsageError)
    assert "name it with --response" in message
    assert "--layout long --label label --response name" in message


@pytest.mark.parametrize("options", [{"layout": "checklist"}, {"layout": "auto"}])
def test_a_checklist_is_recognised(options):
    rows = rows_of("id,g_e1,g_e2,h_e1,h_e2\n1,0,1,1,1\n", **options)
    assert (rows.layout, rows.kind, rows.order) == ("checklist", "checklist", ("g", "h"))


def test_a_line_that_is_named_makes_a_table_a_long_checklist():
    message = refused("id,line,g_e1,g_e2\n1,1,0,1\n", error=UsageError, line="line")
    assert "no column is known to be the label" in message


def test_checklist_columns_can_be_read_as_graders_if_they_are_named():
    rows = rows_of("id,g_e1,g_e2\n1,0,1\n", graders="g_e1,g_e2")
    assert rows.layout == "wide"


def test_messages_show_hostile_names_harmlessly_and_cut_long_values():
    message = refused("id,g\u202eevil\x1b[31m,x\n1," + "a" * 500 + ",b\n")
    assert "\u202e" not in message
    assert "\x1b" not in message
    assert "a" * 61 not in message


# --- the reader ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("x.csv", "a,b\n1,2\n", "csv"),
        ("x.tsv", "a\tb\n1\t2\n", "tsv"),
        ("standard input", "a;b\n1;2\n", "csv"),
        ("standard input", "a\tb\n1\t2\n", "tsv"),
        ("standard input", '[{"a": 1}]', "json"),
        ("standard input", '{"a": 1}\n{"a": 2}\n', "jsonl"),
        ("x.jsonl", '{"a": 1}', "jsonl"),
        ("x.json", '{"a": [1]}', "json"),
    ],
)
def test_formats_are_told_by_content_and_name(name, content, format):
    claim = sniff(source(content, name))
    assert claim is not None
    assert claim.format == format
    assert not claim.sure


@pytest.mark.parametrize("content", [b"\x89PNG\r\n", b"PK\x03\x04", b"one column only\n", b""])
def test_what_is_clearly_no_table_is_not_claimed(content):
    assert sniff(source(content, "x.bin")) is None


def test_a_folder_is_not_claimed(tmp_path):
    assert sniff(Source(name=tmp_path.name, path=tmp_path)) is None


def test_look_tells_of_every_column():
    entries = look(source("id,g1,g2,topic\n1,a,b,t\n2,a,,t\n"), Options.of(graders="g1,g2"))
    assert [(e["column"], e["role"]) for e in entries] == [
        ("id", "response"),
        ("g1", "grader"),
        ("g2", "grader"),
        ("topic", "tag"),
    ]
    assert entries[2] == {
        "column": "g2",
        "blank": 1,
        "distinct": 1,
        "values": [("b", 1)],
        "role": "grader",
    }


def test_look_needs_no_layout_that_fits():
    entries = look(source("id,topic\n1,t\n"), Options())
    assert [e["role"] for e in entries] == ["response", "tag"]


def test_the_raw_table_has_nothing_but_text():
    table = raw_table(source("id,label\n1,yes\n"), Options())
    assert set(table.frame.dtypes) == {pl.String}
    assert READER.name == "table"


def test_a_large_wide_table_is_read_in_a_moment():
    import time

    line = "{},m,t,refusal,evasion,compliance,refusal,note,1.5\n"
    text = "id,model,topic,a,b,c,d,note,x\n" + "".join(line.format(i) for i in range(100_000))
    big = source(text)
    started = time.perf_counter()
    rows = read(big, Options.of(graders="a,b,c,d"))
    assert len(rows.frame) == 400_000
    assert time.perf_counter() - started < 5  # under half a second on a quiet machine


# --- real files ---------------------------------------------------------------------------------


@needs_shared
def test_field_case_9_classes_named_none():
    rows = shared_rows("cases/inputs/labels-none.csv")
    assert rows.frame["response"][0] == "q1"
    assert rows.frame["label"].to_list() == [
        "None", "refusal", "NA", None, "null", "nan", "N/A", "refusal",
    ]  # fmt: skip
    assert rows.place(6).line == 8


@needs_shared
def test_field_case_11_the_same_id_as_number_and_text():
    rows = shared_rows("cases/inputs/labels-dup.jsonl")
    assert rows.frame["response"].to_list() == ["7"] * 5 + ["8"]
    assert rows.frame["vote"].to_list() == ["1", "2", "2", "1", "3", "1"]
    assert "number and text are taken as one" in notices(rows)


@needs_shared
def test_field_case_12_odd_characters_and_line_ends():
    inputs = SHARED / "cases" / "inputs"
    odd = inputs / "responses-odd.jsonl"
    table = raw_table(Source(name=odd.name, path=odd), Options())
    assert table.frame["id"].to_list() == ["u1", "u2", "u3", "u4", "u5", "u6"]
    assert table.frame["response"][3] == "a zero \0 byte"
    quoted = inputs / "responses-quoted.csv"
    table = raw_table(Source(name=quoted.name, path=quoted), Options())
    assert table.frame["response"].to_list() == [
        "first line\nsecond line, with comma",
        'she said "no" twice',
        "ends with a slash \\",
    ]
    assert [table.line(i) for i in range(3)] == [2, 4, 5]


@needs_shared
def test_xstest_is_read_wide_with_gold_and_people():
    rows = shared_rows(
        "data/xstest/xstest_wide_all_models.csv",
        graders="gpt4_label,strmatch_label",
        gold="final_label",
        people="annotation_1,annotation_2",
        response="model+id",
        cluster="id",
    )
    assert rows.frame["response"].n_unique() == 2250
    assert rows.frame["cluster"].n_unique() == 450
    assert len(rows.frame) == 5 * 2250
    gpt4 = rows.frame.filter(pl.col("grader") == "gpt4_label")["label"]
    assert gpt4.str.contains(r"^[123]_").sum() == 2250 - 11


@needs_shared
def test_a_table_of_council_votes_is_said_to_have_no_single_graders():
    with pytest.raises(InputError) as caught:
        shared_rows("data/refusalbench_council_aggregate/adjudicated_20_prompts.csv")
    assert "no labels of single graders" in str(caught.value)
    assert "--label modal_compliance" in str(caught.value)


@needs_shared
@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (
            "jailbreakbench_judge_comparison/judge_comparison_labels.csv",
            "--layout wide --response Index --graders human1,human2,human3,human_majority,"
            "harmbench_cf,gpt4_cf,llamaguard2_cf,llama3_cf",
        ),
        (
            "wildbench_scores/wildbench_v2.0522_two_judges_wide.csv",
            "--layout wide --response model+session_id --graders gpt-4-turbo-2024-04-09,"
            "gpt-4o-2024-05-13",
        ),
        (
            "refusal_direction_two_classifiers/jailbreakbench_two_classifiers_long.csv",
            "--layout wide --response target_model+run+item --graders "
            "is_jailbreak_substring_matching,is_jailbreak_llamaguard2",
        ),
        (
            "refusalbench_council_aggregate/pilot_categorization_long.csv",
            "--layout long --response prompt_id --grader judge_id --label compliance",
        ),
        (
            "alpaca_eval_annotations/"
            "gpt4_1106_preview_vs_gpt-3.5-turbo-0301_three_annotators_long.csv",
            "--layout long --response item --grader annotator --label preference",
        ),
    ],
)
def test_the_commands_shown_for_real_tables_are_the_right_ones(path, wanted):
    with pytest.raises(InputError) as caught:
        shared_rows(f"data/{path}")
    assert wanted in str(caught.value)


@needs_shared
def test_a_list_within_a_json_document_is_read():
    rows = shared_rows(
        "data/refusal_direction_two_classifiers/"
        "original_layout_text_blanked_meta-llama-3-8b_ablation_evaluations.json",
        graders="is_jailbreak_substring_matching,is_jailbreak_llamaguard2",
    )
    assert len(rows.frame) == 200
    # 82 of 100, as the document itself says in llamaguard2_success_rate.
    guard = rows.frame.filter(pl.col("grader") == "is_jailbreak_llamaguard2")["label"]
    assert guard.to_list().count("1") == 82
