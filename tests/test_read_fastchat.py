"""FastChat judgments: scores of single answers, and verdicts on pairs in both orders as votes."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voirdire as vd
from voirdire.errors import InputError, VoirdireError
from voirdire.inputs import reader_of
from voirdire.options import Options
from voirdire.readers.fastchat import READER, sniff
from voirdire.source import Source
from voirdire.wording import plain

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "fmt_fastchat_mt_bench"
shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the logs (../shared/data) are not beside this checkout"
)


def single(question: int = 81, score: Any = 7, **more: Any) -> dict[str, Any]:
    made = {
        "question_id": question,
        "model": "m",
        "judge": ["gpt-4", "single-v1"],
        "user_prompt": "[Question]",
        "judgment": f"Rating: [[{score}]]",
        "score": score,
        "turn": 1,
        "tstamp": 1000.5 + question,
    }
    return {**made, **more}


def pair(question: int = 81, g1: Any = "model_1", g2: Any = "model_2", **more: Any) -> Any:
    made = {
        "question_id": question,
        "model_1": "x",
        "model_2": "y",
        "g1_winner": g1,
        "g2_winner": g2,
        "judge": ["gpt-4", "pair-v2"],
        "g1_user_prompt": "[Question]",
        "g1_judgment": "[[A]]",
        "g2_user_prompt": "[Question]",
        "g2_judgment": "[[A]]",
        "turn": 1,
        "tstamp": 1000.5 + question,
    }
    return {**made, **more}


def source(*records: Any, name: str = "gpt-4_single.jsonl") -> Source:
    lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in records]
    return Source(name=name, content=b"\n".join(lines) + b"\n")


def read(*records: Any, **options: Any) -> vd.Labels:
    return vd.read(source(*records), **options)  # type: ignore[arg-type]


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


# --- which files --------------------------------------------------------------------------------


@pytest.mark.parametrize("record", [single(), pair()])
def test_a_judgment_is_recognised_whatever_the_name_of_the_file(record: Any) -> None:
    for name in ("gpt-4_pair.jsonl", "x.json", "x"):
        assert reader_of(source(record, name=name)) is READER


@pytest.mark.parametrize(
    "record", [single(user_prompt="x" * 70_000), pair(g1_judgment="x" * 70_000)]
)
def test_a_record_longer_than_the_head_is_recognised(record: Any) -> None:
    assert sniff(source(record)) is not None


@pytest.mark.parametrize(
    "content",
    [
        b'{"question_id": 1, "model": "m", "judge": "gpt-4", "score": 3}\n',
        b'{"question_id": 1, "judge": ["gpt-4", "single-v1"]}\n',
        b'{"question_id": 1, "judge": ["gpt-4", 3], "model": "m", "score": 3}\n',
        b'{"id": 1, "grader": "g", "label": "a"}\n',
        b'[{"question_id": 81, "judge": ["gpt-4", "single-v1"]}]',
        b"question_id,model,judge,score\n81,m,gpt-4,3\n",
        b"",
        b"\x00\xff\xfe",
    ],
)
def test_other_files_are_not_claimed(content: bytes) -> None:
    assert sniff(Source(name="gpt-4_single.jsonl", content=content)) is None


# --- single answers -----------------------------------------------------------------------------


def test_a_response_is_question_model_and_turn_in_the_cluster_of_its_question() -> None:
    labels = read(single(81), single(81, turn=2, score=9), single(82, score=8.5))
    frame = labels.frame.sort("response")
    assert frame["response"].to_list() == ["81/m/1", "81/m/2", "82/m/1"]
    assert frame["cluster"].to_list() == ["81", "81", "82"]
    assert frame["label"].cast(pl.String).to_list() == ["7", "9", "8.5"]
    assert labels.clusters_declared
    assert not labels.ordered
    assert {t.name for t in labels.tags} == {"model", "turn", "prompt"}


def test_the_judge_is_the_grader_and_its_prompts_are_facts() -> None:
    labels = read(single(), single(82, judge=["gpt-4", "single-math-v1"]))
    (grader,) = labels.graders
    assert grader.name == "gpt-4"
    assert grader.facts["model"] == "gpt-4"
    assert grader.facts["prompt"] == "single-math-v1, single-v1"
    assert labels.frame["phrasing"].to_list() == labels.frame["prompt"].to_list()


def test_a_score_of_minus_one_is_unparsed_and_never_a_class() -> None:
    labels = read(
        single(), single(82, -1), single(83, -1.0), single(84, None), single(85, float("nan"))
    )
    outcomes = labels.frame["outcome"].cast(pl.String).to_list()
    assert outcomes == ["label", *["unparsed"] * 4]
    assert labels.classes == ("7",)


def test_a_call_that_failed_to_the_last_is_an_error_and_an_empty_reply_is_empty() -> None:
    labels = read(
        single(),
        single(82, -1, judgment="$ERROR$"),
        single(83, -1, judgment="  "),
        single(84, judgment="$ERROR$"),
    )
    outcomes = labels.frame["outcome"].cast(pl.String).to_list()
    # A score that is there is a label, whatever the reply says.
    assert outcomes == ["label", "error", "empty", "label"]


def test_repeats_are_votes_and_what_was_written_twice_counts_once() -> None:
    again = single(81, 5, tstamp=2000.0)
    labels = read(single(), single(), again, single(82))
    frame = labels.frame.sort("response", "vote")
    assert frame["response"].to_list() == ["81/m/1", "81/m/1", "82/m/1"]
    assert frame["vote"].to_list() == ["1", "2", "1"]
    assert "1 record is written twice, with the same time stamp" in notices(labels)


def test_two_prompts_of_one_judge_on_one_response_are_two_phrasings() -> None:
    labels = read(single(81, 3), single(81, 9, judge=["gpt-4", "single-v2"], tstamp=2.0))
    assert labels.frame.select("response", "phrasing").rows() == [
        ("81/m/1", "single-v1"),
        ("81/m/1", "single-v2"),
    ]


# --- pairs --------------------------------------------------------------------------------------


def test_both_orders_are_votes_with_the_order_as_their_tag() -> None:
    labels = read(pair(81, "model_1", "tie"), pair(82, "error", "model_2"))
    rows = labels.frame.select("response", "vote", "order", "label", "outcome").rows()
    assert [tuple(None if v is None else str(v) for v in r) for r in rows] == [
        ("81/x/y/1", "1", "AB", "model_1", "label"),
        ("81/x/y/1", "2", "BA", "tie", "label"),
        ("82/x/y/1", "1", "AB", None, "unparsed"),
        ("82/x/y/1", "2", "BA", "model_2", "label"),
    ]
    assert not notices(labels)


def test_the_label_of_a_pair_is_what_both_orders_say_or_none() -> None:
    audit = vd.audit(
        read(pair(81, "tie", "tie"), pair(82, "tie", "model_1"), pair(83, "error", "tie"))
    )
    counts = audit.results.filter(pl.col("statistic") == "label_count").select("class", "value")
    assert dict(counts.rows()) == {"model_1": 0, "tie": 1}


def test_pairs_made_of_single_scores_have_one_label_and_no_order() -> None:
    scores = {"m1_score": 8, "m2_score": 3, "judge": ["gpt-4", "single-v1"]}
    one = pair(81, "model_1", "model_1", **scores)
    unread = pair(82, "model_1", "model_1", **{**scores, "m2_score": -1})
    for record in (one, unread):
        del record["turn"]
    labels = read(one, unread)
    assert labels.frame["response"].to_list() == ["81/x/y", "82/x/y"]
    assert labels.frame["outcome"].cast(pl.String).to_list() == ["label", "unparsed"]
    assert "order" not in labels.frame.columns
    assert "2 comparisons are made of two single scores" in notices(labels)


def test_a_pair_of_models_both_ways_round_is_named() -> None:
    turned = pair(81, model_1="y", model_2="x")
    labels = read(pair(81), turned)
    assert labels.responses == 2
    assert "both ways round (x and y as model_1)" in notices(labels)


def test_a_repeated_pair_has_its_votes_numbered_on() -> None:
    labels = read(pair(81), pair(81, "tie", "tie", tstamp=9.0))
    assert labels.frame["vote"].to_list() == ["1", "2", "3", "4"]
    assert labels.frame["order"].to_list() == ["AB", "BA", "AB", "BA"]


# --- what is wrong ------------------------------------------------------------------------------


def test_records_that_are_no_judgments_are_named_with_their_lines() -> None:
    labels = read(
        single(),
        {"question_id": 82, "judge": ["gpt-4", "single-v1"], "model": "m"},
        {"judge": ["gpt-4", "single-v1"], "model": "m", "score": 3},
        b'{"question_id": 83, "jud',
    )
    assert labels.responses == 1
    said = notices(labels)
    assert "3 records could not be read" in said
    for line in (2, 3, 4):
        assert f"line {line}: " in said
    assert "torn" in said
    with pytest.raises(InputError, match="--strict"):
        read(single(), b'{"question_id": 83, "jud', strict=True)


def test_a_file_without_any_judgment_is_an_error() -> None:
    record = {"question_id": 82, "judge": ["gpt-4", "single-v1"], "model": "m", "user_prompt": ""}
    with pytest.raises(InputError, match="no label"):
        read(record)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=150)
@given(st.sampled_from([single(), pair()]), st.data())
def test_nothing_but_our_own_errors_comes_out_of_any_structure(record: Any, data: Any) -> None:
    key = data.draw(st.sampled_from(sorted(record)))
    hostile = {**record, key: data.draw(JSON)}
    with contextlib.suppress(VoirdireError):
        read(record, hostile)


# --- the files at hand --------------------------------------------------------------------------


@shared
@pytest.mark.parametrize(("judge", "unread"), [("gpt-4", 6), ("gpt-4-turbo", 2)])
def test_single_files_have_48_scores_of_which_those_of_minus_one_are_unread(
    judge: str, unread: int
) -> None:
    labels = vd.read(SHARED / f"{judge}_single.jsonl")
    assert labels.grader_names == (judge,)
    assert (len(labels.frame), labels.responses) == (48, 48)
    assert labels.frame["cluster"].n_unique() == 12
    assert (labels.frame["outcome"] == "unparsed").sum() == unread
    assert not labels.notices


@shared
@pytest.mark.parametrize(("judge", "unread"), [("gpt-4", 4), ("gpt-4-turbo", 6)])
def test_pair_files_have_24_pairs_in_both_orders(judge: str, unread: int) -> None:
    labels = vd.read(SHARED / f"{judge}_pair.jsonl")
    assert labels.grader_names == (judge,)
    assert (len(labels.frame), labels.responses) == (48, 24)
    assert labels.classes == ("model_1", "model_2", "tie")
    assert (labels.frame["outcome"] == "unparsed").sum() == unread
    assert labels.frame["order"].value_counts().sort("order").rows() == [("AB", 24), ("BA", 24)]


@shared
def test_two_judges_of_the_same_answers_join() -> None:
    labels = vd.read(SHARED / "gpt-4_single.jsonl", SHARED / "gpt-4-turbo_single.jsonl")
    assert labels.responses == 48
    assert labels.grader_names == ("gpt-4", "gpt-4-turbo")


@shared
@pytest.mark.parametrize("name", ["gpt-4_single.jsonl", "gpt-4_pair.jsonl"])
def test_every_line_stays_as_the_log_has_it(name: str) -> None:
    records = [json.loads(line) for line in (SHARED / name).read_text("utf-8").splitlines()]
    (rows,) = READER.read(Source(name=name, path=SHARED / name), Options())  # type: ignore[misc]
    for i, label in enumerate(rows.frame["label"].to_list()):
        record = records[rows.place(i).line - 1]
        if "score" in record:
            assert label == (None if record["score"] == -1 else str(record["score"]))
        else:
            winner = record["g1_winner" if rows.frame["order"][i] == "AB" else "g2_winner"]
            assert label == (None if winner == "error" else winner)


@shared
@pytest.mark.parametrize("name", ["gpt-4_single.jsonl", "gpt-4_pair.jsonl"])
def test_nothing_but_our_own_errors_comes_out_of_changed_bytes(name: str) -> None:
    content = (SHARED / name).read_bytes()[:12_000]
    chance = random.Random(5)
    for _ in range(60):
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


def test_scores_beyond_the_scale_of_the_prompts_are_kept_and_named() -> None:
    said = notices(read(single(81, 0), single(82, 11), single(83, 7)))
    assert "2 scores lie outside 1 to 10" in said
    assert "(0 and 11)" in said
    assert "outside" not in notices(read(single(81, 1), single(82, 10), single(83, -1)))
