"""JUDGE-BENCH files: raters by position, people all of them, and a majority made from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import InputError, UsageError
from voirdire.inputs import reader_of
from voirdire.options import Options
from voirdire.readers.judge_bench import READER, sniff
from voirdire.source import Source
from voirdire.wording import plain


def instance(id_: Any, scores: list[Any], metric: str = "safety", **more: Any) -> dict[str, Any]:
    rating = {"majority_human": max(map(str, scores), key=scores.count), **more.pop("rating", {})}
    return {
        "id": id_,
        "instance": {"text": ""},
        "annotations": {metric: {**rating, "individual_human_scores": scores}},
        **more,
    }


def document(*instances: Any, **more: Any) -> bytes:
    annotations = [{"metric": "safety", "labels_list": ["No", "Yes", "Unsure"], "prompt": "?"}]
    whole = {"dataset": "d", "expert_annotator": "false", "annotations": annotations, **more}
    return json.dumps({**whole, "instances": list(instances)}, indent=1).encode()


THREE = (
    instance(173, ["No", "No", "Yes"]),
    instance(193, ["Yes", "Yes", "Yes"]),
    instance("20", ["No", "Yes", "No"]),
)


def source(content: bytes, name: str = "d.json") -> Any:
    return Source(name=name, content=content)


def read(content: bytes, **options: Any) -> vd.Labels:
    return vd.read(source(content), **options)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def test_the_shape_is_recognised_whatever_the_name_of_the_file() -> None:
    for name in ("d.json", "d.txt", "d"):
        assert reader_of(source(document(*THREE), name)) is READER


def test_the_shape_is_recognised_in_the_head_of_a_file_that_goes_on() -> None:
    content = document(*(instance(i, ["No", "Yes"] * 40) for i in range(2000)))
    assert len(content) > 10 * 65_536
    claim = sniff(source(content))
    assert claim is not None
    assert claim.sure


@pytest.mark.parametrize(
    "content",
    [
        b'[{"id": 1, "grader": "g", "label": "a"}]',
        b'{"instances": [{"id": 1, "grader": "g", "label": "a"}]}',
        b'{"instances": [{"id": 1, "annotations": [{"label": "a"}]}]}',
        b'{"instances": [{"id": 1, "annotations": {"safety": {"score": "a"}}}]}',
        b'{"instances": {"1": {"annotations": {}}}}',
        b'{"instances": []}',
        b'{"samples": [], "annotations": {"safety": {"individual_human_scores": ["a"]}}}',
        b'{"instances": [{"annotations": {"safety": {"individual_human_scores": ["a"',
        b"response,grader,label\n1,g,instances\n",
        b'{"id": 1, "label": "a"}\n{"id": 2, "label": "b"}\n',
        b"",
        b"\x89PNG",
    ],
)
def test_what_only_looks_alike_is_left_to_the_other_readers(content: bytes) -> None:
    assert sniff(source(content)) is None


def test_raters_are_named_by_position_and_all_are_people() -> None:
    labels = read(document(*THREE))
    assert labels.grader_names == ("rater 001", "rater 002", "rater 003", "majority_human")
    assert all(g.person for g in labels.graders)
    of_173 = labels.frame.filter(pl.col("response") == "173").sort("grader")
    assert of_173["label"].to_list() == ["No", "No", "Yes", "No"]
    assert labels.responses == 3
    assert labels.classes == ("No", "Yes", "Unsure")  # as the file lists them; nobody is Unsure
    assert not labels.ordered
    assert not labels.clusters_declared
    assert "nothing says that a position is one person" in notices(labels)


def test_the_majority_is_known_to_be_made_from_the_raters() -> None:
    majority = read(document(*THREE)).by_name["majority_human"]
    assert majority.derived_from == ("rater 001", "rater 002", "rater 003")
    assert majority.related(read(document(*THREE)).by_name["rater 002"])


def test_the_majority_of_one_expert_is_no_second_grader() -> None:
    one = (instance(1, ["No"]), instance(2, ["Yes"]))
    labels = read(document(*one, expert_annotator="true"))
    assert labels.grader_names == ("expert 001",)
    assert "left out" in notices(labels)


def test_an_expert_file_joins_a_file_of_raters_and_can_be_its_gold() -> None:
    expert = document(*(instance(i, ["No"]) for i in (173, 193, 20)), expert_annotator="true")
    labels = vd.read(source(document(*THREE)), source(expert, "e.json"), gold="expert 001")
    assert labels.responses == 3
    results = vd.audit(labels).results
    (row,) = results.filter(
        (pl.col("statistic") == "agreement")
        & (pl.col("grader") == "rater 001")
        & (pl.col("other") == "expert 001")
    ).rows(named=True)
    assert row["value"] == pytest.approx(2 / 3)  # rater 001: No, Yes, No beside No, No, No


def test_a_file_without_a_majority_has_the_raters_only() -> None:
    plain_ratings = [instance(i, ["No", "Yes"], rating={"majority_human": None}) for i in "ab"]
    assert read(document(*plain_ratings)).grader_names == ("rater 001", "rater 002")


def test_a_tie_that_is_a_list_is_a_missing_majority_with_a_notice() -> None:
    tied = instance(1, ["No", "Yes"], rating={"majority_human": ["No", "Yes"]})
    labels = read(document(tied, instance(2, ["No", "No"])))
    frame = labels.frame.filter(pl.col("grader") == "majority_human")
    assert frame["outcome"].to_list() == ["missing", "label"]
    assert "no single label" in notices(labels)


def test_null_is_missing_and_shorter_lists_are_no_calls() -> None:
    labels = read(document(instance(1, ["No", None, "No"]), instance(2, ["Yes", "No"])))
    of_raters = labels.frame.filter(pl.col("grader") != "majority_human")
    assert len(of_raters) == 5
    assert of_raters["outcome"].to_list().count("missing") == 1
    assert "different lengths" in notices(labels)


def test_plain_fields_of_an_instance_are_tags_and_a_cluster_is_a_cluster() -> None:
    made = [
        instance(i, ["No", "Yes"], cluster=f"c{i % 2}", topic="t", label="mine") for i in range(4)
    ]
    labels = read(document(*made))
    assert labels.clusters_declared
    assert labels.frame["cluster"].n_unique() == 2
    assert {t.name for t in labels.tags} == {"topic", "label (column)"}
    assert read(document(*made), cluster="topic").frame["cluster"].n_unique() == 1


def test_under_several_metrics_an_instance_is_a_cluster() -> None:
    made = [instance(i, ["No", "Yes"]) for i in range(3)]
    for one in made:
        one["annotations"]["fluency"] = {"individual_human_scores": [4, 5]}
    labels = read(document(*made))
    assert labels.responses == 6
    assert labels.frame["cluster"].n_unique() == 3
    assert {"0/safety", "0/fluency"} <= set(labels.frame["response"])
    assert "--by metric" in notices(labels)


def test_the_scale_and_the_graders_of_the_command_hold() -> None:
    labels = read(document(*THREE), scale="No,Unsure,Yes", graders="rater 003,rater 001")
    assert labels.scale == ("No", "Unsure", "Yes")
    assert labels.grader_names == ("rater 003", "rater 001")
    with pytest.raises(UsageError, match="nobody"):
        read(document(*THREE), graders="nobody")
    with pytest.raises(UsageError, match="no column"):
        read(document(*THREE), cluster="nothing")
    with pytest.raises(UsageError, match="layout"):
        read(document(*THREE), layout="wide")


def test_a_label_off_the_scale_is_named_with_its_instance() -> None:
    with pytest.raises(InputError, match=r"d\.json, instance 2, column label .*\"Perhaps\""):
        read(document(THREE[0], instance(2, ["No", "Perhaps"])), scale="No,Yes")


def test_every_instance_of_another_shape_is_named() -> None:
    bad = [{"id": 1}, {"annotations": THREE[0]["annotations"]}, instance(3, [["No"], "Yes"])]
    with pytest.raises(InputError) as error:
        read(document(THREE[0], *bad))
    message = str(error.value)
    assert "3 problems" in message
    for i in (2, 3, 4):
        assert f"instance {i}: " in message


def test_a_torn_file_is_said_to_be_torn() -> None:
    content = document(*THREE)
    with pytest.raises(InputError, match="torn"):
        read(content[: len(content) * 3 // 4])


def test_no_rater_at_all_is_an_error() -> None:
    with pytest.raises(InputError, match="no instance has a label"):
        read(document({**THREE[0], "annotations": {"s": {"individual_human_scores": []}}}))


def test_a_file_beside_a_table_of_an_llm_joins_on_the_id(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_bytes(document(*THREE))
    (tmp_path / "m.csv").write_text(
        "response,grader,label\n173,llm,No\n193,llm,No\n20,llm,Yes\n", encoding="utf-8"
    )
    labels = vd.read(tmp_path / "d.json", tmp_path / "m.csv")
    assert labels.responses == 3
    assert [g.name for g in labels.graders if not g.person] == ["llm"]


def test_labels_written_as_parquet_come_back_with_the_people(tmp_path: Path) -> None:
    labels = read(document(*THREE))
    labels.write(tmp_path / "labels.parquet")
    again = vd.read(tmp_path / "labels.parquet")
    assert again.frame.equals(labels.frame)
    assert again.by_name["majority_human"].derived_from == ("rater 001", "rater 002", "rater 003")
    assert all(g.person for g in again.graders)


def test_look_tells_of_the_columns_that_the_document_becomes() -> None:
    entries = {e["column"]: e for e in READER.look(source(document(*THREE)), Options())}
    assert entries["grader"]["distinct"] == 4
    assert entries["label"]["role"] == "label"
