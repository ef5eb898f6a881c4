"""Assembling labels: the order of the clean-up, what joins and what conflicts, and the way back from files."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voirdire as vd
from tests.conftest import run_python
from voirdire.errors import InputError, UsageError
from voirdire.grid import grid
from voirdire.wording import plain

LONG = "response,grader,label\n"


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., vd.Labels]:
    """Read the texts of one or more CSV files, named a.csv, b.csv, …"""

    def made(*texts: str, **options: Any) -> vd.Labels:
        paths = []
        for name, text in zip("abcdef", texts, strict=False):
            path = tmp_path / f"{name}.csv"
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return vd.read(*paths, **options)

    return made


def cells(labels: vd.Labels, *columns: str) -> list[tuple[Any, ...]]:
    columns = columns or ("response", "grader", "label", "outcome")
    return sorted(labels.frame.select(pl.col(columns).cast(pl.String)).rows(), key=str)


def texts(labels: vd.Labels) -> dict[str, tuple[str | None, str]]:
    """Label and outcome by response, for one grader."""
    return {r: (label, outcome) for r, _, label, outcome in cells(labels)}


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


# The order of the clean-up: trim, exact match, --missing, --map, --failed


def test_labels_are_trimmed_first(read: Callable[..., vd.Labels]) -> None:
    labels = read(LONG + "1,g, yes \n2,g,\tno\n3,g,   \n", scale="no,yes")
    assert texts(labels) == {
        "1": ("yes", "label"),
        "2": ("no", "label"),
        "3": (None, "missing"),
    }


def test_an_exact_match_with_the_scale_goes_before_every_mark(
    read: Callable[..., vd.Labels],
) -> None:
    labels = read(
        LONG + "1,g,yes\n2,g,no\n3,g,odd\n",
        scale="no,yes",
        off_scale="odd",
        missing=["yes", "odd"],
        map=["no=yes"],
        failed=["yes=error", "no=error", "*=unparsed"],
    )
    assert texts(labels) == {r: (c, "label") for r, c in (("1", "yes"), ("2", "no"), ("3", "odd"))}


def test_missing_goes_before_map_and_map_before_failed(read: Callable[..., vd.Labels]) -> None:
    labels = read(
        LONG + "1,g,a\n2,g,b\n3,g,c\n4,g,d\n5,g,yes\n",
        scale="no,yes",
        missing=["a"],
        map=["a=yes", "b=yes"],
        failed=["a=error", "b=error", "c=error", "*=unparsed"],
    )
    assert texts(labels) == {
        "1": (None, "missing"),
        "2": ("yes", "label"),
        "3": (None, "error"),
        "4": (None, "unparsed"),
        "5": ("yes", "label"),
    }


def test_marks_are_compared_trimmed_and_case_counts(read: Callable[..., vd.Labels]) -> None:
    labels = read(
        LONG + "1,g, NA \n2,g,na\n",
        scale="no,yes",
        missing=[" NA"],
        failed=["*=unparsed"],
    )
    assert texts(labels) == {"1": (None, "missing"), "2": (None, "unparsed")}


@pytest.mark.parametrize(
    "outcome", ["unparsed", "truncated", "empty", "grader_refusal", "blocked", "error"]
)
def test_each_outcome_stays_apart_and_is_no_class(
    outcome: str, read: Callable[..., vd.Labels]
) -> None:
    labels = read(LONG + "1,g,x\n2,g,yes\n", scale="no,yes", failed=[f"x={outcome}"])
    assert texts(labels)["1"] == (None, outcome)
    assert labels.classes == ("no", "yes")
    audit = vd.audit(labels)
    counts = audit.results.filter(pl.col("statistic") == "outcome_count")
    assert dict(counts.select("class", "value").rows())[outcome] == 1


def test_what_is_counted_as_an_outcome_keeps_its_text(read: Callable[..., vd.Labels]) -> None:
    labels = read(
        LONG + "1,g,I refuse\n2,g,Yes\n", scale="no,yes", map="Yes=yes", failed="*=unparsed"
    )
    assert cells(labels, "response", "raw") == [("1", "I refuse"), ("2", "Yes")]


def test_the_rest_needs_a_scale_to_be_the_rest_of(read: Callable[..., vd.Labels]) -> None:
    with pytest.raises(UsageError, match="needs --scale"):
        read(LONG + "1,g,a\n", failed="*=unparsed")


def test_an_unknown_label_is_an_error_with_count_place_and_flags(
    read: Callable[..., vd.Labels],
) -> None:
    with pytest.raises(InputError) as error:
        read(LONG + "1,g,yes\n2,g,Maybe\n3,h,Maybe\n4,g,dunno\n", scale="no,yes")
    message = str(error.value)
    assert 'a.csv, line 3, column label (grader g): label "Maybe" is not on the scale' in message
    assert "it stands 2 times" in message
    assert "line 5" in message
    for flag in ("--map", "--failed", "--missing"):
        assert flag in message


def test_a_map_to_something_that_is_no_class_names_what_it_was_mapped_to(
    read: Callable[..., vd.Labels],
) -> None:
    with pytest.raises(UsageError) as error:
        read(LONG + "1,g,yes\n2,g,foo\n", scale="no,yes", map="foo=bar")
    assert "bar" in str(error.value)


def test_a_mark_that_never_occurs_is_named_in_a_notice(read: Callable[..., vd.Labels]) -> None:
    labels = read(LONG + "1,g,yes\n", scale="no,yes", missing=["NA"], map=["Y=yes"])
    assert "--missing NA" in notices(labels)
    assert "--map Y" in notices(labels)


def test_notices_stand_in_the_same_order_each_time(tmp_path: Path) -> None:
    """The distinct labels of a table have no order of their own; a report must have one."""
    rows = "".join(f"{i},g,odd {i % 12}\n" for i in range(5000))
    (tmp_path / "a.csv").write_text(LONG + rows + "x,g,yes\n", encoding="utf-8")
    options: dict[str, Any] = {"scale": "no,yes", "failed": "*=unparsed"}
    seen = {notices(vd.read(tmp_path / "a.csv", **options)) for _ in range(8)}
    assert len(seen) == 1


# Number forms


def test_numbers_and_boolean_words_are_brought_to_one_form_where_every_cell_is_one(
    read: Callable[..., vd.Labels],
) -> None:
    labels = read(LONG + "1,g,1\n2,g,1.0\n3,g, 1 \n4,g,true\n5,h,FALSE\n6,h,0.50\n7,h,\n")
    assert {c[2] for c in cells(labels)} == {"1", "0", "0.5", None}
    assert labels.classes == ("0", "0.5", "1")
    assert "one form" in notices(labels)


def test_one_cell_that_is_no_number_leaves_all_texts_as_they_are(
    read: Callable[..., vd.Labels],
) -> None:
    labels = read(LONG + "1,g,1\n2,g,1.0\n3,h,true\n4,h,maybe\n")
    assert set(labels.classes) == {"1", "1.0", "true", "maybe"}
    assert not labels.notices


def test_with_a_scale_too_one_cell_that_is_no_number_leaves_the_others_as_they_are(
    read: Callable[..., vd.Labels],
) -> None:
    """Text is text: `true` is no `1` where another cell says `maybe`."""
    text = LONG + "1,g,1\n2,g,true\n3,g,maybe\n"
    with pytest.raises(InputError):
        read(text, scale="0,1")
    labels = read(text, scale="0,1", failed="*=unparsed")
    assert "All labels are numbers" not in notices(labels)


def test_a_scale_of_numbers_takes_their_other_forms(read: Callable[..., vd.Labels]) -> None:
    labels = read(LONG + "1,g,1.0\n2,g,False\n3,g,1\n", scale="0,1")
    assert [c[2] for c in cells(labels)] == ["1", "0", "1"]


@pytest.mark.parametrize("text", ["nan", "inf", "Infinity", "1_000", "0x1", "1,5", "½", "yes", "T"])
def test_what_only_looks_like_a_number_is_text(text: str) -> None:
    frame = pl.DataFrame({"response": ["1", "2"], "grader": ["g"] * 2, "label": [text, "1.0"]})
    assert set(vd.Labels.from_frame(frame).classes) == {text, "1.0"}


def test_numbers_sort_as_numbers(read: Callable[..., vd.Labels]) -> None:
    rows = "".join(f"{i},g,{label}\n" for i, label in enumerate((10, 9, 2, -1, 1.5)))
    assert read(LONG + rows).classes == ("-1", "1.5", "2", "9", "10")


# The same call twice


def test_one_call_with_two_labels_is_an_error_with_both_lines(
    read: Callable[..., vd.Labels],
) -> None:
    with pytest.raises(InputError) as error:
        read(LONG + "1,g,a\n2,g,a\n1,g,b\n2,h,b\n")
    message = str(error.value)
    assert "line 2" in message
    assert "line 4" in message
    assert "line 3" not in message
    assert "--vote" in message


def test_one_call_with_one_label_is_kept_once_with_a_notice(read: Callable[..., vd.Labels]) -> None:
    labels = read(LONG + "1,g,1\n2,g,0\n1,g,1.0\n")
    assert len(labels.frame) == 2  # `1` and `1.0` are one label
    assert "line 2" in notices(labels)


@pytest.mark.parametrize("column", ["vote", "phrasing"])
def test_calls_that_differ_in_vote_or_phrasing_are_different_calls(
    column: str, read: Callable[..., vd.Labels]
) -> None:
    labels = read(f"response,grader,label,{column}\n1,g,a,1\n1,g,b,2\n", **{column: column})
    assert len(labels.frame) == 2


def test_a_label_and_a_failed_call_of_one_response_conflict(
    read: Callable[..., vd.Labels],
) -> None:
    with pytest.raises(InputError, match="unparsed"):
        read(LONG + "1,g,yes\n1,g,??\n", scale="no,yes", failed="*=unparsed")


def test_a_blank_beside_a_label_of_one_call_is_no_conflict(read: Callable[..., vd.Labels]) -> None:
    labels = read(LONG + "1,g,a\n1,g,\n2,g,\n2,g,\n")
    assert texts(labels) == {"1": ("a", "label"), "2": (None, "missing")}


def test_a_response_or_a_grader_without_a_name_is_an_error_with_its_line(
    read: Callable[..., vd.Labels],
) -> None:
    with pytest.raises(InputError, match="line 3"):
        read(LONG + "1,g,a\n,g,b\n")
    with pytest.raises(InputError, match="line 2"):
        read(LONG + "1,,a\n2,g,b\n")


# Gold in a second file


GRADED = "response,grader,label,topic,cluster\n1,g,a,x,k1\n2,g,b,y,k1\n3,g,a,x,k2\n"
GOLD = LONG + "1,gold,a\n2,gold,a\n9,gold,b\n"


def test_gold_in_a_second_file_joins_by_response(read: Callable[..., vd.Labels]) -> None:
    labels = read(GRADED, GOLD)
    assert labels.grader_names == ("g", "gold")
    assert len(labels.frame) == 6
    agreement = vd.audit(labels).results.filter(pl.col("statistic") == "agreement")
    assert agreement.select("grader", "other", "value", "n").rows() == [("g", "gold", 0.5, 2)]


def test_gold_that_repeats_its_rows_never_multiplies_any(read: Callable[..., vd.Labels]) -> None:
    labels = read(GRADED, GOLD + GOLD.removeprefix(LONG) * 3)
    assert cells(labels) == cells(read(GRADED, GOLD))
    assert "9 rows repeat a call" in notices(read(GRADED, GOLD + GOLD.removeprefix(LONG) * 3))


def test_tags_and_clusters_hold_for_the_rows_of_the_second_file(
    read: Callable[..., vd.Labels],
) -> None:
    labels = read(GRADED, GOLD)
    assert cells(labels, "response", "grader", "topic", "cluster") == [
        ("1", "g", "x", "k1"),
        ("1", "gold", "x", "k1"),
        ("2", "g", "y", "k1"),
        ("2", "gold", "y", "k1"),
        ("3", "g", "x", "k2"),
        ("9", "gold", None, "9"),
    ]
    assert "1 responses have no cluster" in notices(labels).replace(
        "response has", "responses have"
    )


def test_weights_hold_for_the_rows_of_a_second_file_that_has_none(
    read: Callable[..., vd.Labels],
) -> None:
    labels = read(
        "response,grader,label,w\n1,g,a,2\n2,g,b,1\n", LONG + "1,gold,a\n2,gold,a\n", weight="w"
    )
    assert cells(labels, "response", "grader", "weight") == [
        ("1", "g", "2.0"),
        ("1", "gold", "2.0"),
        ("2", "g", "1.0"),
        ("2", "gold", "1.0"),
    ]


def test_the_order_of_the_files_does_not_matter(read: Callable[..., vd.Labels]) -> None:
    there, back = read(GRADED, GOLD), read(GOLD, GRADED)
    columns = ("response", "grader", "label", "outcome", "cluster", "topic")
    assert cells(there, *columns) == cells(back, *columns)


def test_gold_that_contradicts_itself_is_an_error_with_its_lines(
    read: Callable[..., vd.Labels],
) -> None:
    with pytest.raises(InputError) as error:
        read(GRADED, GOLD + "1,gold,b\n")
    assert "b.csv, line 2" in str(error.value)
    assert "b.csv, line 5" in str(error.value)


def test_count_tables_and_label_tables_are_not_put_together(
    read: Callable[..., vd.Labels],
) -> None:
    with pytest.raises(InputError, match="put together"):
        read("grader,a,b\ng,10,20\nh,5,25\n", LONG + "1,g,a\n", scale="a,b")


# Clusters, weights, tags


def test_a_response_in_two_clusters_is_an_error_with_place_and_remedy(
    read: Callable[..., vd.Labels],
) -> None:
    with pytest.raises(InputError) as error:
        read("response,grader,label,cluster\n1,g,a,x\n2,g,a,x\n1,h,a,y\n")
    message = str(error.value)
    assert "response 1 is in 2 clusters (x, y)" in message
    assert "--response a+b" in message


def test_without_a_cluster_column_each_response_is_its_own(read: Callable[..., vd.Labels]) -> None:
    labels = read(LONG + "1,g,a\n2,g,b\n")
    assert not labels.clusters_declared
    assert cells(labels, "response", "cluster") == [("1", "1"), ("2", "2")]


def test_two_weights_of_one_response_are_an_error(read: Callable[..., vd.Labels]) -> None:
    with pytest.raises(InputError, match="2 different weights"):
        read("response,grader,label,w\n1,g,a,1\n1,h,a,2\n", weight="w")


def test_a_frequency_weight_of_2_counts_as_the_row_twice(read: Callable[..., vd.Labels]) -> None:
    once = read(
        "response,grader,label,w\n1,g,a,2\n2,g,b,1\n3,g,b,1\n1,h,a,2\n2,h,a,1\n3,h,b,1\n",
        weight="w",
        weight_kind="frequency",
        scale="a,b",
    )
    twice = read(LONG + "1,g,a\n1b,g,a\n2,g,b\n3,g,b\n1,h,a\n1b,h,a\n2,h,a\n3,h,b\n", scale="a,b")
    values = [
        vd.audit(labels)
        .results.filter(
            pl.col("statistic").is_in(["label_count", "rate", "agreement", "cohen_kappa"])
        )
        .select("statistic", "grader", "other", "class", "value")
        .rows()
        for labels in (once, twice)
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize(
    "name",
    ["__part", "__row", "__class", "__outcome", "__twice", "__kinds", "k", "values", "v", "i"],
)
def test_a_column_may_have_any_name(name: str, read: Callable[..., vd.Labels]) -> None:
    labels = read(f"response,grader,label,{name}\n1,g,a,x\n2,g,b,y\n2,g,b,y\n")
    assert cells(labels) == [("1", "g", "a", "label"), ("2", "g", "b", "label")]
    assert name in {t.name for t in labels.tags}


def test_graders_do_not_change_places_with_the_rows(read: Callable[..., vd.Labels]) -> None:
    rows = [f"{i},g{g},{'ab'[i * g % 2]}\n" for i in range(3) for g in (10, 2, 1)]
    for order in itertools.islice(itertools.permutations(rows), 0, 200, 17):
        assert read(LONG + "".join(order)).grader_names == ("g1", "g2", "g10")


# Votes


def _voted(labels: vd.Labels) -> dict[str, str | None]:
    made = grid(labels)
    names = sorted(labels.frame["response"].unique().to_list())
    return {
        r: None if code < 0 else labels.classes[code]
        for r, code in zip(names, made.codes[:, 0].tolist(), strict=True)
    }


VOTES = (
    "response,grader,label,vote\n"
    "r1,g,a,2\nr1,g,b,1\nr1,g,a,3\n"  # a by two of three; b came first
    "r2,g,a,1\nr2,g,b,2\n"  # one to one
    "r3,g,?,1\nr3,g,b,2\n"  # the first cannot be read
    "r4,g,?,1\nr4,g,?,2\n"  # none can
    "r5,g,a,10\nr5,g,b,9\n"  # 9 comes before 10
    "r6,g,a,1\nr6,g,?,2\nr6,g,a,3\n"  # two of three calls
)


def test_votes_make_a_label_by_majority_and_none_where_there_is_no_majority(
    read: Callable[..., vd.Labels],
) -> None:
    labels = read(VOTES, scale="a,b", failed="?=unparsed")
    assert _voted(labels) == {
        **dict.fromkeys(("r1", "r6"), "a"),
        **dict.fromkeys(("r2", "r3", "r4", "r5"), None),
    }


def test_the_first_vote_is_that_of_the_lowest_number_that_can_be_read(
    read: Callable[..., vd.Labels],
) -> None:
    labels = read(VOTES, scale="a,b", failed="?=unparsed", vote_rule="first")
    assert _voted(labels) == {
        **dict.fromkeys(("r1", "r3", "r5"), "b"),
        **dict.fromkeys(("r2", "r6"), "a"),
        "r4": None,
    }


def test_outcomes_are_counted_over_all_votes(read: Callable[..., vd.Labels]) -> None:
    audit = vd.audit(read(VOTES, scale="a,b", failed="?=unparsed"))
    counts = audit.results.filter(pl.col("statistic") == "outcome_count")
    assert dict(counts.select("class", "value").rows()) == {"label": 10, "unparsed": 4}
    labels = audit.results.filter(pl.col("statistic") == "label_count")
    assert dict(labels.select("class", "value").rows()) == {"a": 2, "b": 0}


def test_a_slice_by_a_tag_of_the_vote_does_not_pick_one_vote_silently(
    read: Callable[..., vd.Labels],
) -> None:
    """The label of three votes at three temperatures belongs to none of them."""
    text = "response,grader,label,vote,temp\n" + "".join(
        f"r{i},g,{'ab'[v % 2]},{v},t{v}\n" for i in range(4) for v in (1, 2, 3)
    )
    try:
        audit = vd.audit(read(text, scale="a,b"), by=["temp"])
    except UsageError:
        return
    counts = audit.results.filter(
        pl.col("statistic") == "label_count", pl.col("slice") != ""
    ).select("slice", "class", "value")
    assert set(counts.rows()) == {
        *((f"temp=t{v}", "ab"[v % 2], 4.0) for v in (1, 2, 3)),
        *((f"temp=t{v}", "ba"[v % 2], 0.0) for v in (1, 2, 3)),
    }


# Frames from Python give what CSV gives


ROWS = [
    {"id": i, "judge": j, "score": (i * n) % 3, "ok": bool(i % 2), "topic": "xyz"[i % 3]}
    for i in range(12)
    for n, j in enumerate(("g1", "g2", "None"), start=1)
]


def _as_frame(kind: str) -> Any:
    frame = pl.DataFrame(ROWS)
    if kind == "polars":
        return frame
    if kind == "polars categories":
        return frame.with_columns(pl.col("judge", "topic").cast(pl.Categorical))
    if kind == "lazy":
        return frame.lazy()
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").Table.from_pylist(ROWS)
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        arrow = pytest.importorskip("pyarrow").Table.from_pylist(ROWS)
        return duckdb.from_arrow(arrow)
    pandas = pytest.importorskip("pandas")
    made = pandas.DataFrame(ROWS)
    if kind == "pandas categories":
        made = made.astype({"judge": "category", "topic": "category"})
    if kind == "pandas floats":
        made = made.astype({"score": float})
    if kind == "pandas nullable":
        made = made.convert_dtypes()
    return made


@pytest.mark.parametrize(
    "kind",
    [
        "polars",
        "polars categories",
        "lazy",
        "pyarrow",
        "duckdb",
        "pandas",
        "pandas categories",
        "pandas floats",
        "pandas nullable",
    ],
)
def test_a_frame_gives_the_results_of_the_csv(kind: str, tmp_path: Path) -> None:
    pl.DataFrame(ROWS).write_csv(tmp_path / "a.csv")
    options: dict[str, Any] = {"scale": "0,1,2", "by": ["topic"]}
    expected = vd.audit(vd.read(tmp_path / "a.csv", **options)).results
    assert vd.audit(vd.Labels.from_frame(_as_frame(kind), **options)).results.equals(expected)
    assert vd.audit(vd.read(_as_frame(kind), **options)).results.equals(expected)


@pytest.mark.parametrize("missing", ["None", "nan", "NA"])
def test_a_missing_value_of_pandas_is_missing_and_a_class_none_is_a_class(missing: str) -> None:
    pandas = pytest.importorskip("pandas")
    nothing = {"None": None, "nan": float("nan"), "NA": pandas.NA}[missing]
    frame = pandas.DataFrame(
        {"response": ["1", "2", "3"], "grader": ["g"] * 3, "label": ["None", nothing, "nan"]}
    )
    assert texts(vd.Labels.from_frame(frame)) == {
        "1": ("None", "label"),
        "2": (None, "missing"),
        "3": ("nan", "label"),
    }


# Written and read back


HOSTILE = [
    *(
        "=SUM(A1)",
        "+1",
        "-1",
        "@now",
        "'quoted",
        "''=x",
        "'",
        "\ttab",
        "a,b",
        'say "no"',
        "two\nlines",
    ),
    *(
        "cr\rhere",
        "a\r\nb",
        "semi;colon",
        "a|b",
        "null",
        "None",
        "nan",
        "",
        "ünï",
        "\u202eback",
        "#1",
    ),
]


def _rich_labels() -> vd.Labels:
    rows = [
        {
            "response": f"{text} {i}" if i % 2 else f"r{i}",
            "grader": grader,
            "label": ("refusal", "evasion", "compliance", "gibberish", "?? no")[(i + n) % 5],
            "cluster": f"c{i % 4}",
            "note": text,
            "vote": 1,
        }
        for i, text in enumerate(HOSTILE)
        for n, grader in enumerate(("=g", "person 1", "h|2", "both"))
    ]
    return vd.Labels.from_frame(
        pl.DataFrame(rows),
        cluster="cluster",
        scale="refusal,evasion,compliance",
        off_scale="gibberish",
        failed="*=unparsed",
        people=["person 1"],
        derived_from={"both": ["=g", "h|2"]},
        range={"h|2": ["refusal", "evasion", "compliance", "gibberish"]},
        about={"=g": {"model": "m", "size": "7B", "family": "f"}},
    )


def test_parquet_reads_back_to_the_identical_table(tmp_path: Path) -> None:
    labels = _rich_labels()
    labels.write(tmp_path / "a.parquet")
    again = vd.read(tmp_path / "a.parquet")
    assert again.frame.schema == labels.frame.schema
    assert again.frame.equals(labels.frame)
    assert (again.scale, again.off_scale, again.ordered) == (
        ("refusal", "evasion", "compliance"),
        ("gibberish",),
        True,
    )
    assert again.graders == labels.graders
    assert again.tags == labels.tags
    assert again.clusters_declared
    again.write(tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_an_audit_of_what_was_read_back_is_the_audit_of_what_was_written(tmp_path: Path) -> None:
    labels = _rich_labels()
    labels.write(tmp_path / "a.parquet")
    there, back = vd.audit(labels), vd.audit(vd.read(tmp_path / "a.parquet"))
    assert back.results.equals(there.results)
    assert [f.record() for f in back.findings] == [f.record() for f in there.findings]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"off_scale": "b"},
        {"map": "a=01"},
        {"weight": "w"},
        {"vote": "w"},
        {"scale": "c,b,a,never"},
        {"gold": "h"},
    ],
    ids=str,
)
def test_whatever_the_options_were_parquet_reads_back_to_the_same_frame(
    options: dict[str, Any], read: Callable[..., vd.Labels], tmp_path: Path
) -> None:
    rows = "".join(f"{i},{g},{'abc'[i % 3]},{1 + i % 2}\n" for i in range(9) for g in "gh")
    labels = read("response,grader,label,w\n" + rows, **options)
    labels.write(tmp_path / "x.parquet")
    again = vd.read(tmp_path / "x.parquet")
    assert again.frame.schema == labels.frame.schema
    assert again.frame.equals(labels.frame)
    assert again.classes == labels.classes


def test_counts_read_back_from_parquet(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("grader,a,b,total\ng,10,,30\nh,0,25,25\n", encoding="utf-8")
    labels = vd.read(path, layout="counts", scale="a,b")
    labels.write(tmp_path / "x.parquet")
    again = vd.read(tmp_path / "x.parquet")
    assert again.kind == "counts"
    assert again.frame.equals(labels.frame)


def test_csv_with_hostile_texts_reads_back_to_the_same_cells(tmp_path: Path) -> None:
    labels = _rich_labels()
    labels.write(tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_text(encoding="utf-8")
    assert not [c for line in text.split("\n") for c in line.split(",") if c[:1] in ("=", "+", "@")]
    again = vd.read(tmp_path / "a.csv", scale="refusal,evasion,compliance", off_scale="gibberish")
    columns = [c for c in labels.frame.columns if c not in ("label", "grader")]
    assert cells(again, "grader", "label", *columns) == cells(labels, "grader", "label", *columns)


@settings(max_examples=40)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=6),
        min_size=1,
        max_size=6,
    )
)
def test_any_text_of_a_tag_survives_csv_and_parquet(texts_: list[str]) -> None:
    frame = pl.DataFrame(
        {
            "response": [str(i) for i in range(len(texts_))],
            "grader": ["g"] * len(texts_),
            "label": ["a"] * len(texts_),
            "note": texts_,
        }
    )
    labels = vd.Labels.from_frame(frame)
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".csv", ".parquet"):
            path = Path(folder) / f"x{suffix}"
            labels.write(path)
            again = vd.read(path)
            assert again.frame["note"].to_list() == labels.frame["note"].to_list(), suffix


def test_labels_are_written_to_two_formats_and_no_other(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.parquet or \.csv"):
        _rich_labels().write(tmp_path / "a.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_convert_writes_what_audit_reads_to_the_same_results(tmp_path: Path) -> None:
    pl.DataFrame(ROWS).write_csv(tmp_path / "a.csv")
    for target in ("b.parquet", "b.csv"):
        words = ["a.csv", "--scale", "0,1,2", "-o", target]
        done = run_python("-m", "voirdire", "convert", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    expected = vd.audit(vd.read(tmp_path / "a.csv", scale="0,1,2")).results
    assert vd.audit(vd.read(tmp_path / "b.parquet")).results.equals(expected)
    assert vd.audit(vd.read(tmp_path / "b.csv", scale="0,1,2")).results.equals(expected)


def test_convert_to_two_files_writes_both_or_says_that_it_takes_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LONG + "1,g,a\n", encoding="utf-8")
    words = ["a.csv", "-o", "b.parquet", "-o", "b.csv"]
    done = run_python("-m", "voirdire", "convert", *words, cwd=tmp_path)
    written = {p.name for p in tmp_path.iterdir()} - {"a.csv"}
    assert written == ({"b.parquet", "b.csv"} if done.returncode == 0 else set())


def test_a_failed_conversion_leaves_an_old_file_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LONG + "1,g,a\n1,g,b\n", encoding="utf-8")
    (tmp_path / "b.parquet").write_text("old", encoding="utf-8")
    done = run_python("-m", "voirdire", "convert", "a.csv", "-o", "b.parquet", cwd=tmp_path)
    assert done.returncode == 3
    assert (tmp_path / "b.parquet").read_text(encoding="utf-8") == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "b.parquet"]


# Classes that no scale names: spellings of one class, and words of failed calls


def test_classes_that_differ_in_spelling_alone_are_named_with_the_flags_that_join_them(
    read: Callable[..., vd.Labels],
) -> None:
    text = LONG + "1,g,Safe\n2,g,SAFE\n3,g,Safe \n4,g,not_safe\n5,g,Not-Safe\n6,g,Not-Safe\n7,g,x\n"
    labels = read(text)
    assert set(labels.scale) == {"Safe", "SAFE", "not_safe", "Not-Safe", "x"}
    said = notices(labels)
    assert "Not-Safe (2), not_safe (1); Safe (2), SAFE (1)." in said
    assert "--map not_safe=Not-Safe --map SAFE=Safe." in said
    joined = read(text, map=["not_safe=Not-Safe", "SAFE=Safe"])
    assert set(joined.scale) == {"Safe", "Not-Safe", "x"}
    assert "differ only" not in notices(joined)
    # With a scale the classes are named, and an odd one is an error.
    assert not read(text, scale="x,Safe,SAFE,not_safe,Not-Safe").notices


@pytest.mark.parametrize("pair", [("A", "A-"), ("1-2 x", "12 x"), ("no", "not"), ("C", "C+")])
def test_classes_that_are_not_the_same_are_not_joined(
    read: Callable[..., vd.Labels], pair: tuple[str, str]
) -> None:
    assert not read(LONG + f"1,g,{pair[0]}\n2,g,{pair[1]}\n").notices


def test_a_label_that_looks_like_a_failed_call_is_named_with_the_flag(
    read: Callable[..., vd.Labels],
) -> None:
    text = (
        LONG + "1,g,yes\n2,g,PARSE_ERROR\n3,g,no\n4,g,PARSE_ERROR\n5,g,parse error\n6,g,Timeout\n"
    )
    said = notices(read(text))
    assert "PARSE_ERROR (2), Timeout (1), parse error (1) count as classes" in said
    assert (
        "--failed PARSE_ERROR=unparsed --failed Timeout=error --failed 'parse error=unparsed'."
        in said
    )
    assert "differ only" not in said
    marks = ["PARSE_ERROR=unparsed", "Timeout=error", "parse error=unparsed"]
    labels = read(text, failed=marks)
    assert set(labels.scale) == {"yes", "no"}
    assert "look" not in notices(labels)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("None", "yes"),
        ("failed", "passed"),
        ("invalid", "Valid"),
        ("error", "no_error"),
        ("terror", "x"),
    ],
)
def test_a_word_that_may_be_a_verdict_is_left_alone(
    read: Callable[..., vd.Labels], word: str, other: str
) -> None:
    assert not read(LONG + f"1,g,{word}\n2,g,{other}\n").notices
