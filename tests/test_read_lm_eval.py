"""lm-evaluation-harness samples: filters are graders of one response, repeats are no votes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import InputError
from voirdire.inputs import reader_of
from voirdire.readers.lm_eval import READER, sniff
from voirdire.source import Source
from voirdire.wording import plain

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "fmt_lm_eval"
TIME = "2026-11-30T01-24-15.765569"
GENERATED = FOLDER / f"samples_mini_gen_{TIME}.jsonl"
CHOSEN = FOLDER / f"samples_mini_mc_{TIME}.jsonl"
real = pytest.mark.skipif(
    not GENERATED.is_file(), reason="the real logs are not beside this checkout"
)


def sample(doc: Any, filter_: str | None = "none", **metrics: Any) -> dict[str, Any]:
    made = {
        "doc_id": doc,
        "doc": {"question": "secret"},
        "target": "8",
        "arguments": {},
        "resps": [["8"]],
        "filtered_resps": ["8"],
        "filter": filter_,
        "metrics": list(metrics),
        "doc_hash": f"hash {doc}",
        **metrics,
    }
    return {k: v for k, v in made.items() if v is not None or k != "filter"}


def lines(*samples: Any) -> bytes:
    return "\n".join(s if isinstance(s, str) else json.dumps(s) for s in samples).encode()


def read(*samples: Any, name: str = "samples_t.jsonl", **options: Any) -> vd.Labels:
    return vd.read(source(name=name, content=lines(*samples)), **options)


def source(name: str, content: bytes) -> Any:
    return Source(name=name, content=content)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def cells(labels: vd.Labels) -> set[tuple[str, str, str | None, str]]:
    frame = labels.frame.select(
        pl.col(c).cast(pl.String) for c in ("response", "grader", "label", "outcome")
    )
    return set(frame.rows())


@pytest.mark.parametrize("name", ["samples_t.jsonl", "x.jsonl", "x"])
def test_samples_are_recognised_by_their_keys(name: str) -> None:
    source = Source(name=name, content=lines(sample(0, acc=1.0)))
    claim = sniff(source)
    assert claim is not None
    assert claim.sure
    assert reader_of(source) is READER


def test_a_long_document_in_the_first_line_is_no_hindrance() -> None:
    long = {**sample(0, acc=1.0), "arguments": {"a": "x" * 100_000}}
    assert sniff(Source(name="x.jsonl", content=lines(long))) is not None
    long = {**sample(0, acc=1.0), "doc": {"a": "x" * 100_000}}
    assert sniff(Source(name=f"m/samples_t_{TIME}.jsonl", content=lines(long))) is not None


@pytest.mark.parametrize(
    "content",
    [
        b'{"doc_id": 1, "grader": "g", "label": "a"}\n',
        b'{"results": {"a": 1}}',
        b'{"resps": [], "filtered_resps": []}\n',
        b"doc_id,label\n1,a\n",
    ],
)
def test_other_files_are_not_claimed(content: bytes) -> None:
    assert sniff(Source(name="x.jsonl", content=content)) is None


def test_one_response_under_two_filters_has_two_graders() -> None:
    labels = read(
        sample(0, "strict", exact_match=0.0),
        sample(0, "flexible", exact_match=1.0),
    )
    assert cells(labels) == {
        ("0", "exact_match@strict", "0", "label"),
        ("0", "exact_match@flexible", "1", "label"),
    }
    assert labels.responses == 1
    assert labels.graders[0].facts["metric"] == "exact_match"


def test_old_samples_without_a_filters_name_are_one_response_too() -> None:
    old = sample(0, None, acc=1.0), sample(1, None, acc=1.0), sample(0, None, acc=0.0)
    labels = vd.read(source(name="t.json", content=json.dumps(old).encode()))
    assert cells(labels) == {
        ("0", "acc", "1", "label"),
        ("1", "acc", "1", "label"),
        ("0", "acc@filter 2", "0", "label"),
    }
    assert "without the name of a filter" in notices(labels)


def test_metrics_are_found_where_the_sample_does_not_list_them() -> None:
    old = {k: v for k, v in sample(0, acc=1.0, acc_norm=0.0).items() if k != "metrics"}
    assert {g for _, g, _, _ in cells(read({**old, "note": "no metric"}))} == {"acc", "acc_norm"}


def test_repeats_are_told_and_are_no_votes() -> None:
    twice = {"resps": [["8", "nine"]]}
    labels = read(
        {**sample(0, "first", acc=1.0), **twice},
        {**sample(0, "last", acc=0.0), **twice},
        sample(1, "first", acc=1.0),
    )
    assert labels.frame["vote"].n_unique() == 1
    assert "The target answered 1 document 2 times" in notices(labels)
    repeats = labels.frame.filter(pl.col("response").cast(pl.String) == "0")["repeats"]
    assert repeats.to_list() == ["2", "2"]


def test_options_of_a_choice_are_no_repeats() -> None:
    labels = read({**sample(0, acc=1.0), "resps": [[["-1", "False"]], [["-2", "False"]]]})
    assert not labels.notices


def test_a_metric_over_all_documents_is_no_verdict_on_one() -> None:
    labels = read(sample(0, acc=1.0, bleu=["a", "b"]), sample(1, acc=0.0, bleu=["a", "b"]))
    assert {g.name for g in labels.graders} == {"acc"}
    assert "bleu is computed over all documents" in notices(labels)
    with pytest.raises(InputError, match="bleu: over all documents"):
        read(sample(0, bleu=["a", "b"]))


def test_a_metric_without_a_value_is_unread() -> None:
    labels = read(sample(0, acc=float("nan")), sample(1, acc=None), sample(2, acc=True))
    assert cells(labels) == {
        ("0", "acc", None, "unparsed"),
        ("1", "acc", None, "unparsed"),
        ("2", "acc", "1", "label"),
    }


def test_a_run_that_only_predicts_grades_nothing() -> None:
    with pytest.raises(InputError, match="--predict_only grades nothing"):
        read(sample(0, bypass=999))


def test_measurements_do_not_mix_with_classes_unless_they_are_asked_for() -> None:
    samples = [sample(i, acc=float(i % 2), rouge=i / 37) for i in range(30)]
    labels = read(*samples)
    assert labels.classes == ("0", "1")
    assert "rouge gives fractions of many values" in notices(labels)
    alone = read(*samples, graders="rouge")
    assert {g.name for g in alone.graders} == {"rouge"}
    assert alone.responses == 30
    assert not alone.notices


def test_tasks_and_runs_are_told_apart_and_documents_hold_them_together(tmp_path: Path) -> None:
    for task in ("one", "two"):
        (tmp_path / f"samples_{task}_{TIME}.jsonl").write_bytes(
            lines(*(sample(i, acc=1.0) for i in range(3)))
        )
    labels = vd.read(tmp_path)
    assert set(labels.frame["response"].cast(pl.String)) == {
        f"{task}/{i}" for task in ("one", "two") for i in range(3)
    }
    assert labels.frame["cluster"].n_unique() == 3


def test_texts_do_not_travel() -> None:
    assert "secret" not in read(sample(0, acc=1.0)).frame.write_csv()


def test_what_is_no_sample_is_named_and_the_rest_is_read() -> None:
    labels = read(sample(0, acc=1.0), "3", sample(None, acc=1.0), sample(True, acc=1.0), '{"doc')
    assert cells(labels) == {("0", "acc", "1", "label")}
    assert "4 lines could not be read" in notices(labels)
    assert "line 5" in notices(labels)


def test_a_file_of_results_is_turned_down_with_the_reason() -> None:
    for content in (
        b'{"results": {"t": {"acc,none": 0.5}}, "configs": {}, "n-shot": {}}',
        b'{"results": {"t": {"acc,none": 0.5, "alias": "' + b"x" * 100_000 + b'"}}}',
    ):
        log = source(f"results_{TIME}.json", content)
        assert reader_of(log) is READER
        with pytest.raises(InputError, match=r"averages without a verdict.*--log_samples"):
            vd.read(log)


@real
def test_the_real_generations_are_6_responses_under_2_filters_with_2_repeats() -> None:
    labels = vd.read(GENERATED)
    assert labels.responses == 6
    assert {g.name for g in labels.graders} == {"exact_match@first", "exact_match@strip"}
    assert labels.frame["label"].cast(pl.String).to_list() == ["0"] * 12
    assert "The target answered 6 documents 2 times" in notices(labels)


@real
def test_the_real_choices_have_the_averages_of_the_results() -> None:
    results = json.loads((FOLDER / f"results_{TIME}.json").read_text("utf-8"))["results"]
    labels = vd.read(CHOSEN)
    assert not labels.notices
    shares = vd.audit(labels).results.filter(
        (pl.col("statistic") == "label_share") & (pl.col("class") == "1")
    )
    assert dict(shares.select("grader", "value").rows()) == {
        metric: pytest.approx(results["mini_mc"][f"{metric},none"])
        for metric in ("acc", "acc_norm")
    }


@real
def test_the_real_folder_is_read_without_its_results() -> None:
    labels = vd.read(FOLDER)
    assert labels.responses == 12
    assert labels.frame["cluster"].n_unique() == 6
    assert f"results_{TIME}.json" in notices(labels)
