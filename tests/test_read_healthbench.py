"""HealthBench results of simple-evals: criteria as lines, points kept, the grader named by the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import InputError, UsageError
from voirdire.readers.healthbench import READER
from voirdire.source import Source
from voirdire.wording import plain

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "fmt_healthbench_simple_evals"
real = pytest.mark.skipif(
    not DATA.is_dir(), reason="the real files (../shared/data) are not beside this checkout"
)


def criterion(text: str, met: Any, points: Any = 5, *tags: str) -> dict[str, Any]:
    return {"criterion": text, "points": points, "tags": list(tags), "criteria_met": met}


def example(prompt: str, said: str, *items: Any, **more: Any) -> dict[str, Any]:
    return {
        "rubric_items": list(items),
        "completion": [{"role": "assistant", "content": said}],
        "prompt_id": prompt,
        "completion_id": f"of-{said}",
        **more,
    }


def results(*examples: Any) -> dict[str, Any]:
    return {
        "score": 0.5,
        "metrics": {"overall_score": 0.5, "axis:accuracy": 0.5},
        "htmls": [],
        "convos": [],
        "metadata": {"example_level_metadata": list(examples)},
    }


def written(folder: Path, content: Any, name: str = "judge_allresults.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


def test_criteria_are_lines_and_keep_their_points_and_tags(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        results(
            example(
                "p1",
                "a",
                criterion("names a cause", True, 7, "level:example", "axis:accuracy"),
                criterion("invents a cause", False, -6, "axis:accuracy"),
            ),
            example("p2", "b", criterion("is short", False, 2.0)),
        ),
    )
    labels = vd.read(path)
    assert labels.kind == "checklist"
    assert labels.grader_names == ("judge",)
    assert labels.frame["label"].cast(pl.String).to_list() == ["1", "0", "0"]
    assert labels.frame["points"].to_list() == ["7", "-6", "2"]
    assert labels.frame["axis"].to_list() == ["accuracy", "accuracy", None]
    assert labels.frame["response"].to_list() == ["p1/of-a", "p1/of-a", "p2/of-b"]
    assert labels.checklist is not None
    assert labels.checklist.questions == ("p1", "p2")
    first, second = labels.checklist.lines[0]
    assert labels.checklist.texts[first] == "names a cause"
    assert labels.checklist.texts[second] == "invents a cause"
    assert labels.frame["cluster"].to_list() == ["p1", "p1", "p2"]


def test_a_verdict_that_is_no_yes_or_no_is_unread_and_never_a_no(tmp_path: Path) -> None:
    odd: list[Any] = [None, "maybe", 2, {"met": True}, [], float("nan")]
    items = [criterion(f"c{i}", value) for i, value in enumerate(odd)]
    items.append({"criterion": "absent", "points": 1})
    items.append(criterion("fine", "Yes"))
    labels = vd.read(written(tmp_path, results(example("p", "a", *items))))
    counts = dict(labels.frame.group_by(pl.col("outcome").cast(pl.String)).len().rows())
    assert counts == {"unparsed": 7, "label": 1}
    reasons = labels.frame["outcome_reason"].drop_nulls().to_list()
    assert 'criteria_met is {"met": true}' in reasons
    assert reasons.count("criteria_met is missing") == 2


def test_two_graders_join_though_one_asks_fewer_criteria_in_another_order(tmp_path: Path) -> None:
    one, two = criterion("first", True), criterion("second", False)
    a = written(tmp_path, results(example("p", "x", one, two)), "a_allresults.json")
    b = written(tmp_path, results(example("p", "x", two)), "b_allresults.json")
    labels = vd.read(a, b)
    lines = labels.frame.group_by(pl.col("grader").cast(pl.String)).agg(pl.col("line"))
    asked = dict(lines.rows())
    assert len(asked["a"]) == 2
    assert asked["b"] == [asked["a"][1]]


def test_completions_of_one_prompt_are_responses_and_repeats_are_votes(tmp_path: Path) -> None:
    labels = vd.read(
        written(
            tmp_path,
            results(
                example("p", "x", criterion("c", True)),
                example("p", "y", criterion("c", True)),
                example("p", "x", criterion("c", False)),
            ),
        )
    )
    assert labels.responses == 2
    votes = labels.frame.select("response", "vote", pl.col("label").cast(pl.String)).rows()
    assert votes == [("p/of-x", "1", "1"), ("p/of-y", None, "1"), ("p/of-x", "2", "0")]
    assert labels.frame["cluster"].n_unique() == 1
    assert "graded more than once" in notices(labels)


def test_a_criterion_that_is_asked_twice_is_two_lines(tmp_path: Path) -> None:
    twice = [criterion("c", True), criterion("c", False)]
    labels = vd.read(written(tmp_path, results(example("p", "x", *twice))))
    assert labels.frame["line"].n_unique() == 2


def test_a_completion_without_an_id_gets_the_one_that_simple_evals_gives(tmp_path: Path) -> None:
    given = example("p", "x", criterion("c", True))
    del given["completion_id"]
    labels = vd.read(written(tmp_path, results(given)))
    # printf 'px' | sha256sum
    assert labels.frame["response"].item().startswith("p/6ee2cc10")


def test_what_the_provider_refused_is_no_response(tmp_path: Path) -> None:
    refused = example("p", "No response (bad request).", criterion("c", False))
    labels = vd.read(written(tmp_path, results(refused, example("q", "x", criterion("c", True)))))
    assert labels.frame["response"].to_list() == ["q/of-x"]
    assert "1 example has no response" in notices(labels)


def test_broken_examples_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    broken = [None, 7, {}, {"prompt_id": "p"}, example("p", "x") | {"rubric_items": {}}]
    fine = example("p", "y", criterion("c", True), 5, criterion("", True))
    labels = vd.read(written(tmp_path, results(*broken, fine)))
    assert len(labels.frame) == 1
    assert (
        "5 examples could not be read and are left out (example 1: it has no prompt_id"
        in notices(labels)
    )
    assert "example 6, criterion 2: it has no text" in notices(labels)


def test_nothing_readable_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no label in it"):
        vd.read(written(tmp_path, results(example("p", "x"))))


def test_the_grader_is_named_by_flag_else_after_the_file(tmp_path: Path) -> None:
    content = results(example("p", "x", criterion("c", True)))
    path = written(tmp_path, content, "gpt-4.1_allresults.json")
    assert vd.read(path).grader_names == ("gpt-4.1",)
    named = vd.read(path, grader_name="nurse")
    assert named.grader_names == ("nurse",)
    assert "called" not in notices(named)
    with pytest.raises(UsageError, match="checklist"):
        vd.read(path, layout="wide")


def test_it_is_claimed_by_its_shape_and_nothing_else_is(tmp_path: Path) -> None:
    def claimed(content: bytes) -> bool:
        claim = READER.sniff(Source(name="x.json", content=content))
        return claim is not None and claim.sure

    whole = results(example("p", "x", criterion("c", True)))
    assert claimed(json.dumps(whole).encode())
    # The pages of HTML before the examples fill the head of a real file.
    assert claimed(json.dumps({**whole, "htmls": ["x" * 100_000]}).encode())
    other = {"score": 1, "metrics": {"accuracy": 1}, "metadata": {"example_level_metadata": [{}]}}
    assert not claimed(json.dumps(other).encode())
    assert not claimed(b'[{"score": 1, "metrics": {}}]')
    assert not claimed(b"{" * 100_000)


@real
def test_the_real_files_hold_two_graders_on_six_items_of_four_criteria() -> None:
    labels = vd.read(*sorted(DATA.glob("*.json")))
    assert labels.grader_names == ("grader-a", "grader-b")
    assert labels.responses == 6
    assert labels.checklist is not None
    assert [len(lines) for lines in labels.checklist.lines] == [4] * 6
    assert len(labels.frame) == 2 * 6 * 4
    assert set(labels.frame["points"]) == {"5", "7", "2", "-6"}
    for name in labels.grader_names:
        content = json.loads((DATA / f"{name}_allresults.json").read_text(encoding="utf-8"))
        for one in content["metadata"]["example_level_metadata"]:
            asked = labels.frame.filter(
                pl.col("grader").cast(pl.String) == name, pl.col("cluster") == one["prompt_id"]
            )
            met = {r["line"]: r["label"] == "1" for r in asked.iter_rows(named=True)}
            said = {labels.checklist.texts[line]: yes for line, yes in met.items()}
            assert said == {i["criterion"]: i["criteria_met"] for i in one["rubric_items"]}


@real
def test_the_real_files_say_their_score_again() -> None:
    """Points and verdicts give the score that simple-evals wrote: the reading loses nothing."""
    path = DATA / "grader-a_allresults.json"
    frame = vd.read(path).frame.with_columns(pl.col("points").cast(pl.Float64))
    score = (
        frame.group_by("response")
        .agg(
            pl.col("points").filter(pl.col("label") == "1").sum().alias("got"),
            pl.col("points").filter(pl.col("points") > 0).sum().alias("possible"),
        )
        .select((pl.col("got") / pl.col("possible")).mean())
        .item()
    )
    written = json.loads(path.read_text(encoding="utf-8"))["score"]
    assert score == pytest.approx(min(max(written, 0), 1), abs=1e-12)
