"""JailbreakBench artifacts: judges by field, and a record without a response is judged by nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import InputError
from voirdire.inputs import reader_of
from voirdire.readers.jailbreakbench import READER, sniff
from voirdire.source import Source
from voirdire.wording import plain

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "fmt_jailbreakbench_artifact"
REAL = FOLDER / "PAIR_black_box_vicuna-13b-v1.5.json"
real = pytest.mark.skipif(not REAL.is_file(), reason="the real logs are not beside this checkout")


def record(index: Any, response: Any, **more: Any) -> dict[str, Any]:
    return {
        "index": index,
        "goal": "…",
        "behavior": f"behavior {index}",
        "category": "Fraud",
        "prompt": "…",
        "response": response,
        **more,
    }


def artifact(*records: Any, **parameters: Any) -> bytes:
    said = {"method": "PAIR", "model": "vicuna", "attack_type": "black_box", "defense": None}
    return json.dumps({"parameters": {**said, **parameters}, "jailbreaks": list(records)}).encode()


FOUR = artifact(
    record(0, "Sure", jailbroken=True, jailbroken_llama_guard1=True),
    record(1, "No", jailbroken=False, jailbroken_llama_guard1=True),
    record(2, None, jailbroken=False, jailbroken_llama_guard1=False),
    record(3, "", jailbroken=False, jailbroken_llama_guard1=None),
)


def source(content: bytes, name: str = "a.json") -> Any:
    return Source(name=name, content=content)


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def cells(labels: vd.Labels) -> set[tuple[str, str, str | None, str]]:
    frame = labels.frame.select(
        pl.col(c).cast(pl.String) for c in ("response", "grader", "label", "outcome")
    )
    return set(frame.rows())


def test_the_artifact_is_recognised_in_a_head_that_is_cut_off() -> None:
    many = artifact(*(record(i, "x" * 500, jailbroken=True) for i in range(500)))
    assert len(many) > 2 * 65_536
    for content in (FOUR, many):
        claim = sniff(source(content))
        assert claim is not None
        assert claim.sure
        assert reader_of(source(content)) is READER


@pytest.mark.parametrize(
    "content",
    [
        b'{"jailbreaks": 3, "parameters": {"method": "PAIR"}}',
        b'{"parameters": {"method": "PAIR"}}',
        b'[{"index": 0, "jailbroken": true}]',
        b'{"jailbreaks": [], "parameters": {}}',
        b"index,jailbroken\n0,true\n",
    ],
)
def test_other_documents_are_not_claimed(content: bytes) -> None:
    assert sniff(source(content)) is None


def test_no_response_is_no_row_and_never_not_jailbroken() -> None:
    labels = vd.read(source(FOUR))
    assert cells(labels) == {
        ("0", "jailbroken", "1", "label"),
        ("0", "jailbroken_llama_guard1", "1", "label"),
        ("1", "jailbroken", "0", "label"),
        ("1", "jailbroken_llama_guard1", "1", "label"),
        ("3", "jailbroken", "0", "label"),
        ("3", "jailbroken_llama_guard1", None, "missing"),
    }
    assert "1 of 4 records has no response" in notices(labels)
    assert "although the artifact stores a verdict for it" in notices(labels)


def test_every_further_judge_is_a_grader() -> None:
    labels = vd.read(source(artifact(record(0, "Sure", jailbroken=True, jailbroken_human=False))))
    assert [g.name for g in labels.graders] == ["jailbroken", "jailbroken_human"]
    assert labels.graders[1].facts == {"model": "human"}
    assert not labels.graders[0].facts


def test_texts_of_the_attack_do_not_travel() -> None:
    labels = vd.read(source(FOUR))
    assert not {"goal", "prompt", "response text"} & set(labels.frame.columns)
    assert "Sure" not in labels.frame.write_csv()


def test_artifacts_of_two_models_are_other_responses_to_the_same_behaviors(tmp_path: Path) -> None:
    for model in ("vicuna", "llama-2"):
        (tmp_path / f"{model}.json").write_bytes(
            artifact(
                *(record(i, "Sure", jailbroken=model == "vicuna") for i in range(3)), model=model
            )
        )
    labels = vd.read(tmp_path)
    assert labels.responses == 6
    assert labels.frame["cluster"].n_unique() == 3
    assert set(labels.frame["response"].cast(pl.String)) == {
        f"{m}/{i}" for m in ("vicuna", "llama-2") for i in range(3)
    }
    assert set(labels.frame["target"]) == {"vicuna", "llama-2"}


def test_what_is_no_record_is_named_and_the_rest_is_read() -> None:
    content = artifact(
        record(0, "Sure", jailbroken=True),
        "torn",
        record([1], "Sure", jailbroken=True),
        record(2, "Sure"),
        record(3, "Sure", jailbroken={"judge": True}),
    )
    labels = vd.read(source(content))
    assert cells(labels) == {
        ("0", "jailbroken", "1", "label"),
        ("3", "jailbroken", None, "unparsed"),
    }
    assert "3 records could not be read" in notices(labels)
    assert "record 2: it is no object" in notices(labels)


@pytest.mark.parametrize(
    "content",
    [
        artifact(),
        artifact(record(0, None, jailbroken=False)),
        artifact(record(0, "Sure")),
        b'{"parameters": {"method": "PAIR"}, "jailbreaks": [{"jailbroken": true',
    ],
)
def test_an_artifact_without_a_verdict_on_a_response_is_an_error(content: bytes) -> None:
    with pytest.raises(InputError, match=r"a\.json"):
        vd.read(source(content))


@real
def test_the_real_artifact_has_two_judges_on_82_responses() -> None:
    labels = vd.read(REAL)
    assert labels.responses == 82
    results = vd.audit(labels).results
    counts = results.filter(statistic="label_count", slice="").select("grader", "class", "value")
    # The artifact's own rate is 0.69: it divides by all 100 records, 18 of which have no response.
    assert {(g, c): v for g, c, v in counts.rows()} == {
        ("jailbroken", "0"): 13,
        ("jailbroken", "1"): 69,
        ("jailbroken_llama_guard1", "0"): 0,
        ("jailbroken_llama_guard1", "1"): 82,
    }
    assert "18 of 100 records have no response" in notices(labels)
    assert labels.frame["category"].n_unique() == 10
    where = json.loads(REAL.read_text())["jailbreaks"]
    answered = {str(r["index"]) for r in where if r["response"] is not None}
    assert set(labels.frame["response"].cast(pl.String)) == answered
