"""AlpacaEval annotations: which of two outputs is preferred, with fractions, ties and unread ones."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voirdire as vd
from tests.conftest import run_python
from voirdire.errors import InputError, VoirdireError
from voirdire.inputs import reader_of
from voirdire.options import Options
from voirdire.readers.alpaca_eval import READER, sniff
from voirdire.source import Source
from voirdire.wording import plain

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "alpaca_eval_annotations"
PLAIN = "sample12_gpt-3.5-turbo-0301_alpaca_eval_gpt4_annotations.json"
WEIGHTED = "sample12_gpt-3.5-turbo-0301_weighted_alpaca_eval_gpt4_turbo_annotations.json"
LONG = "gpt4_1106_preview_vs_gpt-3.5-turbo-0301_three_annotators_long.csv"
shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the logs (../shared/data) are not beside this checkout"
)


def record(instruction: Any = "Why?", preference: Any = 2.0, **more: Any) -> dict[str, Any]:
    made = {
        "instruction": instruction,
        "output_1": "One.",
        "generator_1": "davinci",
        "dataset": "helpful_base",
        "output_2": "Two.",
        "generator_2": "turbo",
        "annotator": "judge",
        "preference": preference,
        "raw_completion": None,
    }
    return {**made, **more}


def source(*records: Any, name: str = "annotations.json") -> Source:
    return Source(name=name, content=json.dumps(list(records), indent=1).encode())


def read(*records: Any, **options: Any) -> vd.Labels:
    return vd.read(source(*records), **options)  # type: ignore[arg-type]


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def sorted_labels(labels: vd.Labels) -> list[str | None]:
    return labels.frame["label"].cast(pl.String).to_list()


def test_annotations_are_recognised_whatever_the_name_of_the_file() -> None:
    for name in ("annotations.json", "x.json", "x"):
        assert reader_of(source(record(), name=name)) is READER
    one_a_line = "\n".join(json.dumps(record(q)) for q in "ab").encode()
    assert reader_of(Source(name="x.jsonl", content=one_a_line)) is READER
    assert vd.read(Source(name="x.jsonl", content=one_a_line)).responses == 2  # type: ignore[arg-type]


def test_a_record_longer_than_the_head_is_recognised() -> None:
    first = {"annotator": "j", "preference": 1, "generator_1": "a", "generator_2": "b"}
    long = {**first, **record(output_2="x" * 70_000), "output_1": "y"}
    assert sniff(source(long)) is not None


@pytest.mark.parametrize(
    "content",
    [
        b'[{"instruction": "a", "output": "b", "generator": "m"}]',  # the outputs that are compared
        b'[{"instruction": "a", "output_1": "b", "output_2": "c"}]',
        b'[{"annotator": "j", "preference": 1}]',
        b'{"instances": []}',
        b"item,annotator,preference\na,j,1\n",
        b"[]",
        b"",
    ],
)
def test_other_files_are_not_claimed(content: bytes) -> None:
    assert sniff(Source(name="annotations.json", content=content)) is None


def test_one_two_and_the_middle_are_output_1_output_2_and_tie() -> None:
    labels = read(*(record(q, p) for q, p in zip("abcd", (1.0, 2, 1.5, 0), strict=True)))
    assert sorted_labels(labels) == ["output_1", "output_2", "tie", "tie"]
    assert labels.grader_names == ("judge",)
    assert not labels.ordered
    assert "preference" not in labels.frame.columns


def test_a_fraction_is_the_nearer_output_and_stays_as_a_tag() -> None:
    labels = read(record("a", 1.0000126), record("b", 1.51), record("c", 1.49), record("d", 2.0))
    assert sorted_labels(labels) == ["output_1", "output_2", "output_1", "output_2"]
    assert labels.frame["preference"].to_list() == ["1.0000126", "1.51", "1.49", None]
    assert "3 preferences lie between 1 and 2" in notices(labels)


@pytest.mark.parametrize("preference", [None, float("nan"), "x", 3.0, -1, True, [1], {}])
def test_what_is_no_preference_is_unparsed_and_never_a_class(preference: Any) -> None:
    labels = read(record("a", preference), record("b"))
    outcomes = labels.frame["outcome"].cast(pl.String).to_list()
    assert outcomes == ["unparsed", "label"]
    assert labels.classes == ("output_2",)


def test_equal_outputs_were_never_shown_to_the_annotator() -> None:
    labels = read(record("a", 1.5, output_2="One."), record("b", 1.5))
    assert labels.responses == 1
    assert "1 annotation of two outputs with the same text is left out" in notices(labels)


def test_a_response_is_named_by_the_hash_of_its_instruction() -> None:
    labels = read(record("Why?"))
    expected = hashlib.sha256(b"Why?").hexdigest()[:10]
    assert labels.frame["response"].to_list() == labels.frame["cluster"].to_list() == [expected]


def test_several_pairs_of_generators_are_several_responses_of_one_cluster() -> None:
    labels = read(record(), record(generator_2="other"))
    assert labels.responses == 2
    assert labels.frame["cluster"].n_unique() == 1
    assert labels.frame["response"].str.starts_with("davinci/").all()


def test_files_about_other_generators_stay_apart_and_those_about_the_same_join() -> None:
    one, other = source(record(), name="a.json"), source(record(generator_1="z"), name="b.json")
    judge = source(record(annotator="second"), name="c.json")
    apart = vd.read(one, other)  # type: ignore[arg-type]
    joined = vd.read(one, judge)  # type: ignore[arg-type]
    assert apart.responses == 2
    assert apart.frame["cluster"].n_unique() == 1
    assert joined.responses == 1


def test_repeats_are_votes_and_a_record_that_is_there_twice_counts_once() -> None:
    labels = read(record(), record(), record(preference=1.0), record("b"))
    assert labels.frame.sort("response", "vote")["vote"].to_list() in (
        [["1", "2", "1"], ["1", "1", "2"]]
    )
    assert "1 annotation is there twice and counts once" in notices(labels)


def test_what_the_format_hides_is_said() -> None:
    assert "order drawn at random" in notices(read(record()))


def test_records_that_are_no_annotations_are_named() -> None:
    labels = read(record(), {"instruction": 3}, "x", {"instruction": "a", "annotator": "j"})
    said = notices(labels)
    assert "3 annotations could not be read" in said
    for number in (2, 3, 4):
        assert f"record {number}: " in said
    with pytest.raises(InputError, match="no label"):
        read({**record(), "instruction": 3})


def test_a_torn_list_is_read_to_the_tear() -> None:
    content = json.dumps([record("a"), record("b")]).encode()[:-40]
    labels = vd.read(Source(name="annotations.json", content=content))  # type: ignore[arg-type]
    assert labels.responses == 1
    assert "after annotation 1: it ends too early" in notices(labels)


def test_a_list_torn_in_its_first_annotation_is_an_error_that_says_so() -> None:
    content = json.dumps([record("a")]).encode()[:-40]
    with pytest.raises(InputError, match="too early"):
        vd.read(Source(name="annotations.json", content=content))  # type: ignore[arg-type]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=150)
@given(st.sampled_from(sorted(record())), JSON)
def test_nothing_but_our_own_errors_comes_out_of_any_structure(key: str, value: Any) -> None:
    with contextlib.suppress(VoirdireError):
        read(record("a"), record("a"), {**record("b"), key: value})


# --- the files at hand --------------------------------------------------------------------------


@shared
def test_the_plain_annotator_prefers_output_2_in_10_of_12() -> None:
    labels = vd.read(SHARED / PLAIN)
    assert labels.grader_names == ("alpaca_eval_gpt4",)
    assert labels.frame["label"].cast(pl.String).value_counts().sort("label").rows() == [
        ("output_1", 2),
        ("output_2", 10),
    ]


@shared
def test_the_weighted_annotator_gives_twelve_fractions_near_1() -> None:
    labels = vd.read(SHARED / WEIGHTED)
    assert labels.grader_names == ("weighted_alpaca_eval_gpt4_turbo",)
    assert sorted_labels(labels) == ["output_1"] * 12
    fractions = labels.frame["preference"].cast(pl.Float64)
    assert fractions.is_between(1, 1.01, closed="none").all()
    assert "1.000012607" in labels.frame["preference"].to_list()


@shared
def test_the_ids_are_those_of_the_long_table_beside_the_samples() -> None:
    table = pl.read_csv(SHARED / LONG, infer_schema=False)
    ids = vd.read(SHARED / WEIGHTED).frame["response"]
    assert set(ids) <= set(table["item"])
    same = table.filter(
        pl.col("item").is_in(ids.to_list()), pl.col("annotator").str.starts_with("weighted")
    )
    assert set(same["preference"]) == set(vd.read(SHARED / WEIGHTED).frame["preference"])


@shared
def test_look_leads_to_a_command_that_reads_the_long_table() -> None:
    from voirdire.readers.table import READER as TABLE

    one = Source(name=LONG, path=SHARED / LONG)
    assert reader_of(one) is TABLE
    with pytest.raises(InputError) as error:
        vd.read(SHARED / LONG)
    words = next(line for line in str(error.value).split("\n") if "voirdire audit" in line)
    assert "--round" in words
    assert "--map 1.5=tie" in words
    options: dict[str, Any] = {"layout": "long", "response": "item", "grader": "annotator"}
    labels = vd.read(SHARED / LONG, **options, label="preference", round=True, map="1.5=tie")
    assert labels.classes == ("1", "2", "tie")
    assert (labels.responses, len(labels.graders), len(labels.frame)) == (805, 3, 2415)
    # One pair of equal outputs, which AlpacaEval calls a tie for all three.
    assert (labels.frame["label"] == "tie").sum() == 3


@shared
def test_look_says_that_the_labels_are_verdicts_on_pairs(tmp_path: Path) -> None:
    done = run_python("-m", "voirdire", "look", str(SHARED / PLAIN), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "These are verdicts on pairs" in " ".join(done.stdout.split())


@shared
@pytest.mark.parametrize("name", [PLAIN, WEIGHTED])
def test_nothing_but_our_own_errors_comes_out_of_changed_bytes(name: str) -> None:
    content = (SHARED / name).read_bytes()
    chance = random.Random(5)
    for _ in range(40):
        changed = bytearray(content)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(changed))
            changed[at : at + chance.randint(0, 3)] = bytes(
                chance.randrange(256) for _ in range(chance.randint(0, 3))
            )
        try:
            one = Source(name=name, content=bytes(changed))
            if sniff(one) is not None:
                READER.read(one, Options())
        except VoirdireError:
            pass
