"""Label Studio exports: the same labels from all four, and what each of them leaves out."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import InputError, UsageError
from voirdire.readers.label_studio import READER
from voirdire.source import Source
from voirdire.wording import plain

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "fmt_label_studio"
EXPORTS = ("JSON.json", "JSON_MIN.json", "CSV.csv", "TSV.tsv")
real = pytest.mark.skipif(
    not DATA.is_dir(), reason="the real files (../shared/data) are not beside this checkout"
)


def choice(*chosen: str, control: str = "refusal") -> dict[str, Any]:
    return {"from_name": control, "type": "choices", "value": {"choices": list(chosen)}}


def rating(n: Any, control: str = "quality") -> dict[str, Any]:
    return {"from_name": control, "type": "rating", "value": {"rating": n}}


def note(*texts: str) -> dict[str, Any]:
    return {"from_name": "why", "type": "textarea", "value": {"text": list(texts)}}


def annotation(id: int, who: Any, *result: Any, **more: Any) -> dict[str, Any]:
    return {"id": id, "completed_by": who, "result": list(result), "was_cancelled": False, **more}


def task(id: int, *annotations: Any, **more: Any) -> dict[str, Any]:
    data = more.pop("data", {"prompt_id": f"p{id % 2}", "response": "Some words."})
    return {"id": id, "annotations": list(annotations), "predictions": [], "data": data, **more}


def written(folder: Path, content: Any, name: str = "export.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def calls(labels: vd.Labels, *, missing: bool = True) -> set[tuple[Any, ...]]:
    frame = labels.frame.select(
        "response", pl.col("grader").cast(pl.String), pl.col("label").cast(pl.String), "cluster"
    )
    return set((frame if missing else frame.drop_nulls("label")).rows())


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def test_several_people_label_a_task(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        [
            task(1, annotation(1, 7, choice("no")), annotation(2, 8, choice("yes"))),
            task(2, annotation(3, {"id": 8, "email": "kim@example.org"}, choice("yes"))),
        ],
    )
    labels = vd.read(path)
    assert calls(labels) == {
        ("1", "person 7", "no", "p1"),
        ("1", "person 8", "yes", "p1"),
        ("2", "kim@example.org", "yes", "p0"),
    }
    assert all(g.person for g in labels.graders)
    assert labels.clusters_declared
    # The text of a response is no tag.
    assert "response (log)" not in labels.frame.columns


def test_a_cancelled_annotation_is_no_label(tmp_path: Path) -> None:
    skipped = annotation(1, 1, choice("yes"), was_cancelled=True)
    path = written(tmp_path, [task(1, skipped, annotation(2, 2, choice("no"))), task(2, skipped)])
    labels = vd.read(path)
    assert calls(labels, missing=False) == {("1", "person 2", "no", "p1")}
    left = labels.frame.filter(pl.col("label").is_null())
    assert left["outcome"].cast(pl.String).to_list() == ["missing", "missing"]
    assert left["outcome_reason"].unique().to_list() == ["was cancelled"]
    assert "2 annotations were cancelled" in notices(labels)


def test_who_skips_a_task_and_comes_back_has_answered(tmp_path: Path) -> None:
    skipped = annotation(1, 1, choice("yes"), was_cancelled=True)
    labels = vd.read(written(tmp_path, [task(1, skipped, annotation(2, 1, choice("no")))]))
    assert calls(labels) == {("1", "person 1", "no", "p1")}


def test_predictions_are_graders_by_their_model_version(tmp_path: Path) -> None:
    said = {"id": 5, "model_version": "judge-a", "result": [choice("no")], "score": 0.9}
    unnamed = {"id": 6, "model_version": None, "result": [choice("yes")]}
    path = written(
        tmp_path,
        [
            task(1, annotation(1, 1, choice("yes")), predictions=[said, unnamed]),
            task(2, annotation(2, 1, choice("yes")), predictions=[9]),
        ],
    )
    labels = vd.read(path)
    assert {("1", "judge-a", "no", "p1"), ("1", "prediction", "yes", "p1")} <= calls(labels)
    assert not labels.by_name["judge-a"].person
    assert labels.by_name["person 1"].person
    assert "1 prediction is named by id alone" in notices(labels)


def test_a_control_of_choices_is_read_by_default_and_any_other_by_name(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        [
            task(1, annotation(1, 1, note("long words"), rating(4), choice("no"))),
            task(2, annotation(2, 1, choice("yes"))),
        ],
    )
    labels = vd.read(path)
    assert labels.classes == ("no", "yes")
    assert "and refusal is read; another is read with --label (why and quality)" in notices(labels)
    rated = vd.read(path, label="quality")
    assert rated.classes == ("4",)
    assert rated.frame["outcome"].cast(pl.String).to_list() == ["label", "missing"]
    assert rated.frame["outcome_reason"].to_list() == [None, "left blank"]
    with pytest.raises(UsageError, match=r"no control 'nix'\. Controls: why, quality, refusal"):
        vd.read(path, label="nix")


def test_a_label_that_nobody_gave_is_an_error_not_an_empty_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no control with a choice"):
        vd.read(written(tmp_path, [task(1, annotation(1, 1, note("words")))]))


def test_several_choices_at_once_are_one_class_whatever_their_order(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        [task(1, annotation(1, 1, choice("b", "a"))), task(2, annotation(2, 1, choice("a", "b")))],
    )
    labels = vd.read(path)
    assert labels.classes == ("a;b",)
    assert "2 annotations have several answers at once" in notices(labels)


def test_one_person_twice_on_a_task_votes_in_the_order_of_the_ids(tmp_path: Path) -> None:
    path = written(
        tmp_path, [task(1, annotation(10, 1, choice("b")), annotation(9, 1, choice("a")))]
    )
    rows = vd.read(path).frame.sort("vote").select("vote", pl.col("label").cast(pl.String)).rows()
    assert rows == [("1", "a"), ("2", "b")]


def test_flags_of_ground_truth_make_gold_only_where_they_single_out_a_label(tmp_path: Path) -> None:
    def tasks(*flags: bool) -> list[Any]:
        labels = ("no", "yes")
        given = [annotation(i, i, choice(labels[i]), ground_truth=f) for i, f in enumerate(flags)]
        return [task(1, *given)]

    clear = vd.read(written(tmp_path, tasks(True, False)))
    assert ("1", "gold", "no", "p1") in calls(clear)
    assert clear.by_name["gold"].derived_from == ("person 0",)
    torn = vd.read(written(tmp_path, tasks(True, True)))
    assert torn.grader_names == ("person 0", "person 1")
    assert torn.frame["ground_truth"].to_list() == ["1", "1"]
    assert "there is no gold" in notices(torn)


def test_fields_of_the_task_are_response_and_cluster_where_they_are_named(tmp_path: Path) -> None:
    data = {"model": "m1", "item": "q7", "text": "words"}
    path = written(tmp_path, [task(1, annotation(1, 1, choice("a")), data=data)])
    labels = vd.read(path, response="model+item", cluster="item")
    assert calls(labels) == {("m1/q7", "person 1", "a", "q7")}
    with pytest.raises(
        UsageError, match=r"--response: the tasks of export\.json have no field 'x'"
    ):
        vd.read(path, response="x")


def test_broken_tasks_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    fine = task(3, annotation(1, None, choice("a"), 5, None, {"from_name": "x"}))
    odd = task(4, None, annotation(2, 1, {"from_name": "refusal", "type": "choices", "value": 3}))
    labels = vd.read(written(tmp_path, [fine, None, 5, {}, odd]))
    assert calls(labels, missing=False) == {("3", "person ?", "a", "p1")}
    assert "3 tasks could not be read and are left out (task 2:" in notices(labels)


def short(rows: list[dict[str, Any]], *, delimiter: str = ",") -> str:
    out = io.StringIO()
    names = sorted({k for r in rows for k in r})
    writer = csv.DictWriter(
        out, names, quoting=csv.QUOTE_NONNUMERIC, delimiter=delimiter, lineterminator="\r\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def record(id: int, annotation_id: int, who: Any, **cells: Any) -> dict[str, Any]:
    now = "2026-01-01T00:00:00Z"
    return {
        **{"response": "Some words.", "prompt_id": f"p{id % 2}", "id": id},
        **cells,
        **{"annotator": who, "annotation_id": annotation_id},
        **{"created_at": now, "updated_at": now, "lead_time": 1.5},
    }


@pytest.mark.parametrize("export", ["JSON-MIN", "CSV", "TSV"])
def test_the_short_exports_give_the_labels_of_the_long_one(tmp_path: Path, export: str) -> None:
    long = written(
        tmp_path,
        [
            task(1, annotation(1, 1, choice("no"), rating(3)), annotation(2, 2, choice("yes"))),
            task(2, annotation(3, 1, choice("yes")), annotation(4, 2, rating(1))),
        ],
    )
    rated, low = [{"rating": 3}], [{"rating": 1}]
    rows: list[dict[str, Any]] = [
        record(1, 2, 2, refusal="yes"),
        record(1, 1, 1, refusal="no", quality=rated),
        record(2, 4, 2, quality=low),
        record(2, 3, 1, refusal="yes"),
    ]
    if export == "JSON-MIN":
        path = written(tmp_path, rows, "min.json")
    else:
        cells = [
            {k: json.dumps(v) if isinstance(v, list) else v for k, v in r.items()} for r in rows
        ]
        path = written(
            tmp_path, short(cells, delimiter="," if export == "CSV" else "\t"), "short.csv"
        )
    for options in ({}, {"label": "quality"}):
        assert calls(vd.read(path, **options)) == calls(vd.read(long, **options))
    labels = vd.read(path)
    assert labels.layouts == (f"Label Studio {export}",)
    assert "export leaves out cancelled annotations, predictions, ground truth" in notices(labels)


def test_a_table_with_one_person_a_task_asks_for_the_control(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        short([record(1, 1, 1, refusal="a"), record(2, 2, 1, refusal="b")]),
        "short.csv",
    )
    with pytest.raises(InputError, match="--label CONTROL"):
        vd.read(path)
    assert vd.read(path, label="refusal").classes == ("a", "b")


def test_it_is_claimed_by_its_shape_and_nothing_else_is() -> None:
    def claim(content: bytes | str, name: str = "x.json") -> str:
        data = content.encode() if isinstance(content, str) else content
        found = READER.sniff(Source(name=name, content=data))
        return found.format if found is not None and found.sure else ""

    whole = [task(1, annotation(1, 1, choice("a")))]
    assert claim(json.dumps(whole)) == "Label Studio JSON"
    long = [task(1, annotation(1, 1, choice("a"), note("x" * 100_000)))]
    assert claim(json.dumps(long)) == "Label Studio JSON"
    assert claim(json.dumps([record(1, 1, 1)])) == "Label Studio JSON-MIN"
    assert claim(short([record(1, 1, 1)]), "x.csv") == "Label Studio CSV"
    assert claim(short([record(1, 1, 1)], delimiter="\t"), "x.tsv") == "Label Studio TSV"
    assert not claim("id,annotation_id,label\n1,2,a\n", "x.csv")
    assert not claim('[{"id": 1, "annotations": [], "data": {}}]'.replace("data", "text"))
    assert not claim(b"[" * 100_000)
    assert not claim(b"\xff\xfe\x00annotation_id", "x.csv")


@real
def test_the_real_exports_hold_twelve_tasks_and_three_people() -> None:
    labels = vd.read(DATA / "JSON.json")
    assert labels.grader_names == ("person 1", "person 2", "person 3")
    assert labels.responses == 12
    assert labels.classes == ("full_compliance", "full_refusal", "partial_refusal")
    tasks = json.loads((DATA / "JSON.json").read_text(encoding="utf-8"))
    cancelled = sum(t["cancelled_annotations"] for t in tasks)
    given = sum(t["total_annotations"] for t in tasks)
    outcomes = labels.frame["outcome"].cast(pl.String).to_list()
    assert (outcomes.count("label"), outcomes.count("missing")) == (given, cancelled) == (30, 3)
    assert "12 predictions are named by id alone" in notices(labels)
    assert labels.frame["cluster"].n_unique() == 4


@real
@pytest.mark.parametrize("control", ["refusal", "quality", "why"])
def test_all_four_real_exports_hold_the_same_labels(control: str) -> None:
    found = [calls(vd.read(DATA / e, label=control), missing=False) for e in EXPORTS]
    assert found[0]
    assert all(one == found[0] for one in found)


@real
def test_all_four_real_exports_in_one_run_are_each_label_once() -> None:
    alone = vd.read(DATA / "JSON.json")
    labels = vd.read(*(DATA / e for e in EXPORTS))
    assert calls(labels) == calls(alone)
    assert "90 rows repeat a call with the same label" in notices(labels)


def test_tasks_of_two_projects_are_other_responses(tmp_path: Path) -> None:
    one = [task(1, annotation(1, 1, choice("yes")))]
    other = [task(1, annotation(9, 1, choice("no")), data={"response": "Other words."})]
    labels = vd.read(written(tmp_path, one), written(tmp_path, other, "second.json"))
    assert labels.responses == 2
    assert "differ in their tasks" in "\n".join(plain(n) for n in labels.notices)


def test_two_exports_of_one_project_join(tmp_path: Path) -> None:
    one = [task(1, annotation(1, 1, choice("yes")))]
    other = [task(1, annotation(2, 2, choice("no")))]
    labels = vd.read(written(tmp_path, one), written(tmp_path, other, "second.json"))
    assert labels.responses == 1
    assert len(labels.grader_names) == 2


@real
def test_all_exports_of_one_project_are_the_same_responses() -> None:
    alone = vd.read(DATA / "JSON.json").responses
    for name in EXPORTS[1:]:
        assert vd.read(DATA / "JSON.json", DATA / name).responses == alone, name


def test_a_torn_export_is_read_to_the_tear(tmp_path: Path) -> None:
    tasks = [task(i, annotation(i, 1, choice("yes"))) for i in (1, 2, 3)]
    labels = vd.read(written(tmp_path, json.dumps(tasks)[:-30]))
    assert labels.responses == 2
    assert "after task 2" in "\n".join(plain(n) for n in labels.notices)
