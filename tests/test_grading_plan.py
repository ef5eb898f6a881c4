"""The plan: what a study file says, which responses there are, and what makes two calls different ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voirdire.errors import InputError, UsageError
from voirdire.grading import rubric as rubrics
from voirdire.grading.base import GraderSpec, Item
from voirdire.grading.messages import Wording
from voirdire.grading.plan import (
    Items,
    Limits,
    Plan,
    Share,
    Study,
    among,
    canonical,
    grader_digest,
    plan,
    read_items,
)
from voirdire.grading.secrets import GONE, environment_secrets, is_secret_name, scrub
from voirdire.wording import plain

INPUTS = Path(__file__).resolve().parents[2] / "shared" / "cases" / "inputs"
shared = pytest.mark.skipif(
    not INPUTS.is_dir(), reason="the shared cases do not stand beside this repository"
)

FOUR = {
    "name": "four",
    "classes": [
        {"name": "refusal", "definition": "It declines."},
        {"name": "evasion", "definition": "It talks of something else."},
        {"name": "compliance", "definition": "It does what was asked."},
    ],
    "phrasings": [
        {"name": "plain", "instruction": "Say which class the response is in."},
        {"name": "strict", "instruction": "Choose one class and be strict."},
    ],
}
CHECKLIST = {
    "name": "bus",
    "kind": "checklist",
    "questions": [
        {"id": "q1", "lines": [{"id": "L1", "text": "Names the city"}]},
        {
            "id": "q2",
            "lines": [{"id": "L1", "text": "Names the stop"}, {"id": "L2", "text": "Says when"}],
        },
    ],
    "phrasings": [{"name": "plain", "instruction": "Answer for each line."}],
}
GRADER = GraderSpec(
    name="g", provider="openai", model="m", parameters={"temperature": 0.7, "max_tokens": 50}
)


def wording(content: Mapping[str, Any] = FOUR, **changed: Any) -> Wording:
    return Wording(rubrics.of({**content, **changed}))


def study(**changed: Any) -> Study:
    values: dict[str, Any] = {
        "responses": Path("none"),
        "rubric": "four",
        "graders": (GRADER,),
        "votes": 5,
        "phrasings": ("plain",),
    }
    return Study(**{**values, **changed})


def items(*texts: str, **more: Any) -> Items:
    return Items.of([Item(id=f"q{i}", response=t, **more) for i, t in enumerate(texts, start=1)])


def keys(made: Plan) -> set[bytes]:
    return {k.tobytes() for k in made.keys}


# --- FC-16: what makes a call another one -------------------------------------------------------


BASE = plan(study(), wording(), items("I will not."))


def with_parameters(**parameters: Any) -> Study:
    return study(graders=(replace(GRADER, parameters=parameters),))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(with_parameters(temperature=0, max_tokens=50), id="temperature 0"),
        pytest.param(with_parameters(max_tokens=50), id="temperature left out"),
        pytest.param(with_parameters(temperature=0.7, max_tokens=51), id="token limit"),
        pytest.param(with_parameters(temperature=0.7), id="token limit left out"),
        pytest.param(
            with_parameters(temperature=0.7, max_tokens=50, extra={"top_k": 1}), id="extra"
        ),
        pytest.param(study(graders=(replace(GRADER, model="m2"),)), id="model"),
        pytest.param(study(graders=(replace(GRADER, provider="other"),)), id="provider"),
        pytest.param(study(graders=(replace(GRADER, options={"command": "judge"}),)), id="command"),
        pytest.param(study(phrasings=("strict",)), id="phrasing"),
    ],
)
def test_each_change_of_a_grader_alone_makes_all_calls_new(changed: Study) -> None:
    made = plan(changed, wording(), items("I will not."))
    assert len(made) == 5
    assert keys(made).isdisjoint(keys(BASE))


@pytest.mark.parametrize(
    "content",
    [
        {"classes": [{**FOUR["classes"][0], "definition": "It says no."}, *FOUR["classes"][1:]]},  # type: ignore[dict-item]
        {"classes": [{**FOUR["classes"][0], "name": "declined"}, *FOUR["classes"][1:]]},  # type: ignore[dict-item]
        {"phrasings": [{"name": "plain", "instruction": "Say which class it is."}]},
        {"reply": {"format": "line"}},
        {"reply": {"reason": "before"}},
    ],
)
def test_a_change_of_the_rubric_text_makes_all_calls_new(content: dict[str, Any]) -> None:
    assert keys(plan(study(), wording(**content), items("I will not."))).isdisjoint(keys(BASE))


def test_a_change_of_the_response_or_its_prompt_makes_its_calls_new() -> None:
    two = plan(study(), wording(), items("I will not.", "Yes."))
    changed = plan(study(), wording(), items("I will not.", "Yes!"))
    assert len(keys(two) & keys(changed)) == 5
    assert keys(plan(study(), wording(), items("I will not.", prompt="Why?"))).isdisjoint(
        keys(BASE)
    )


def test_a_change_of_a_line_makes_the_calls_of_its_question_new_and_no_others() -> None:
    answers = Items.of(
        [Item(id="a", response="x", question="q1"), Item(id="b", response="y", question="q2")]
    )
    before = plan(study(), wording(CHECKLIST), answers)
    questions = json.loads(json.dumps(CHECKLIST["questions"]))
    questions[1]["lines"][1]["text"] = "Says when the last one leaves"
    after = plan(study(), wording(CHECKLIST, questions=questions), answers)
    assert len(keys(before) & keys(after)) == 5
    assert {
        after.at(p).item.id for p in range(10) if after.keys[p].tobytes() not in keys(before)
    } == {"b"}


def test_votes_from_five_to_seven_make_two_new_calls_and_nothing_else() -> None:
    more = plan(study(votes=7), wording(), items("I will not."))
    assert len(more) == 7
    new = [more.at(p) for p in range(7) if more.keys[p].tobytes() not in keys(BASE)]
    assert [call.vote for call in new] == [6, 7]


def test_names_decide_nothing() -> None:
    renamed = study(
        graders=(
            replace(
                GRADER,
                name="other",
                price_in=3.0,
                window=8000,
                options={"base_url": "http://127.0.0.1:9/v1", "api_key_env": "SOME_KEY"},
            ),
        ),
        phrasings=("called otherwise",),
        seed=9,
        concurrency=2,
        responses=Path("elsewhere.csv"),
    )
    phrasings = [{**FOUR["phrasings"][0], "name": "called otherwise"}]  # type: ignore[dict-item]
    other = Items.of([Item(id="another id", response="I will not.", cluster="c", tags={"a": "b"})])
    made = plan(renamed, wording(name="other", phrasings=phrasings), other)
    assert keys(made) == keys(BASE)


def test_a_number_is_one_value_however_it_is_written() -> None:
    assert canonical({"t": 1.0, "a": (1, 2)}) == canonical({"a": [1, 2], "t": 1})
    assert canonical({"t": True}) != canonical({"t": 1})
    with pytest.raises(ValueError, match="JSON"):
        canonical({"t": float("nan")})


def test_the_content_of_a_file_of_patterns_decides_and_not_its_name(tmp_path: Path) -> None:
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text("x", encoding="utf-8")
    second.write_text("x", encoding="utf-8")
    rule = GraderSpec(name="r", provider="rule", options={"patterns": str(first)})
    moved = replace(rule, options={"patterns": str(second)})
    assert grader_digest(rule) == grader_digest(moved)
    second.write_text("y", encoding="utf-8")
    assert grader_digest(rule) != grader_digest(moved)


def test_equal_responses_are_graded_each_for_itself_whatever_the_order_of_the_file() -> None:
    same = [
        Item(id="b", response="No."),
        Item(id="a", response="No."),
        Item(id="c", response="Yes."),
    ]
    made = plan(study(), wording(), Items.of(same))
    assert len(keys(made)) == len(made) == 15
    turned = plan(study(), wording(), Items.of(same[::-1]))

    def of(one: Plan) -> dict[tuple[str, int], bytes]:
        calls = [one.at(p) for p in range(len(one))]
        return {(c.item.id, c.vote): c.key for c in calls}

    assert of(made) == of(turned)


def test_a_grader_named_twice_is_asked_twice() -> None:
    twice = study(graders=(GRADER, replace(GRADER, name="again")))
    made = plan(twice, wording(), items("I will not."))
    assert len(keys(made)) == 10
    assert keys(BASE) < keys(made)


# --- the plan -----------------------------------------------------------------------------------


def test_every_response_is_planned_for_every_grader_phrasing_and_vote() -> None:
    three = study(graders=(GRADER, replace(GRADER, name="h", model="m2")), phrasings=(), votes=3)
    made = plan(three, wording(), items("a", "b"))
    calls = [made.at(int(p)) for p in made.order]
    seen = {(c.item.id, c.grader.name, c.phrasing, c.vote) for c in calls}
    assert len(seen) == len(made) == 2 * 2 * 2 * 3
    assert {c.key for c in calls} == keys(made)
    characters = made.characters(made.order)
    for call, size in zip(calls, characters.tolist(), strict=True):
        open_place = made.wording.messages(call.item, call.phrasing, "")
        assert size == sum(len(m.content) for m in open_place)


def test_a_rule_is_asked_once_and_a_grader_can_have_votes_of_its_own() -> None:
    rule = GraderSpec(name="rule", provider="rule")
    own = study(
        graders=(GRADER, rule, replace(GRADER, name="h", model="h")),
        phrasings=(),
        shares={"h": Share(votes=2, phrasings=("strict",))},
    )
    made = plan(own, wording(), items("a"), talks=lambda spec: spec.provider != "rule")
    counts = [(b.grader.name, b.phrasings, b.votes) for b in made.blocks]
    assert counts == [
        ("g", ("plain", "strict"), 5),
        ("rule", ("plain",), 1),
        ("h", ("strict",), 2),
    ]
    assert [made.at(p).grader.name for p in range(13)] == ["g"] * 10 + ["rule"] + ["h"] * 2


def test_the_request_has_the_nonce_of_its_key_in_the_messages() -> None:
    call = BASE.at(3)
    request = BASE.request(call)
    text = request.messages[-1].content
    assert call.key.hex()[:16] in text
    assert "\x00" not in text
    assert request.parameters == {"temperature": 0.7, "max_tokens": 50}
    assert request.labels == ("refusal", "evasion", "compliance")
    assert request.response == "I will not."


def test_the_order_follows_from_the_seed_and_stays_when_calls_are_added() -> None:
    texts = [f"text {i}" for i in range(200)]
    first = plan(study(votes=1), wording(), items(*texts))
    again = plan(study(votes=1), wording(), items(*texts))
    assert first.order.tolist() == again.order.tolist()
    assert sorted(first.order.tolist()) == list(range(200))
    other = plan(study(votes=1, seed=1), wording(), items(*texts))
    assert other.order.tolist() != first.order.tolist()
    longer = plan(study(votes=1), wording(), items(*texts, *(f"more {i}" for i in range(50))))
    assert [p for p in longer.order.tolist() if p < 200] == first.order.tolist()


def test_a_stopped_run_is_a_fair_sample() -> None:
    # Of 4,000 calls the first 400 by the mixed order: how many come from the first of four graders is
    # hypergeometric, mean 100, variance 400 · ¼ · ¾ · (3600/3999) ≈ 67.5, so 4 standard deviations
    # are 33. The same for the first half of the file: mean 200, variance 90, 4 deviations 38.
    graders = tuple(replace(GRADER, name=f"g{i}", model=f"m{i}") for i in range(4))
    made = plan(
        study(votes=1, graders=graders), wording(), items(*(f"text {i}" for i in range(1000)))
    )
    for seed in range(5):
        first = plan(replace(made.study, seed=seed), made.wording, made.items).order[:400]
        assert abs(int((first < 1000).sum()) - 100) <= 33
        assert abs(int((first % 1000 < 500).sum()) - 200) <= 38


@given(
    st.lists(st.binary(min_size=32, max_size=32), max_size=30, unique=True),
    st.data(),
)
def test_what_is_left_is_the_plan_without_the_store(
    all_keys: list[bytes], data: st.DataObject
) -> None:
    some = data.draw(st.lists(st.sampled_from(all_keys), unique=True)) if all_keys else []
    others = data.draw(st.lists(st.binary(min_size=32, max_size=32), max_size=5))
    # Keys that begin alike, which hashes do not: the comparison is exact all the same.
    alike = [k[:8] + b"\0" * 24 for k in all_keys[:3]]

    def rows(content: list[bytes]) -> Any:
        return np.frombuffer(b"".join(content), dtype=np.uint8).reshape(-1, 32)

    stored = [*some, *others, *alike]
    found = among(rows(all_keys), rows(stored))
    assert found.tolist() == [k in set(stored) for k in all_keys]


def test_a_phrasing_that_the_rubric_does_not_have_is_named() -> None:
    with pytest.raises(UsageError, match=r"'strikt'.*strict"):
        plan(study(phrasings=("strikt",)), wording(), items("a"))


def test_questions_without_lines_are_all_named() -> None:
    answers = Items.of(
        [Item(id=str(i), response="x", question=q) for i, q in enumerate(["q1", "q9", "q9", ""])]
    )
    with pytest.raises(InputError, match=r"q9 \(2 responses\); no question \(1 response\)"):
        plan(study(), wording(CHECKLIST), answers)


# --- the study file -----------------------------------------------------------------------------


def written(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


WHOLE = """
responses = "responses.jsonl"
rubric = "rubrics/own.toml"
votes = 3
phrasings = ["plain", "strict"]
concurrency = 8
budget = 2.5
seed = 7
store = "run.db"

[limits]
calls = 1000
timeout = 30
retries = 2

[columns]
response = "said"

[[graders]]
name = "small"
model = "tiny-model"
base_url = "http://127.0.0.1:8000/v1"
api_key_env = "TINY_KEY"
temperature = "none"
max_tokens = 40
price_in = 0.1
price_out = 0.4
window = 4096
parameters = { top_k = 5 }

[[graders]]
name = "patterns"
provider = "rule"
patterns = "patterns.toml"
votes = 1
"""


def test_a_study_file_says_all_of_a_study(tmp_path: Path) -> None:
    got = Study.load(written(tmp_path, WHOLE))
    assert got.responses == tmp_path / "responses.jsonl"
    assert got.rubric == str(tmp_path / "rubrics" / "own.toml")
    assert got.store == tmp_path / "run.db"
    assert (got.votes, got.concurrency, got.budget, got.seed) == (3, 8, 2.5, 7)
    assert got.limits == Limits(calls=1000, timeout=30.0, retries=2)
    assert got.columns == {"response": "said"}
    small, patterns = got.graders
    # "none": the temperature is left out, and not 0.
    assert small.parameters == {"max_tokens": 40, "top_k": 5}
    assert small.options == {
        "base_url": "http://127.0.0.1:8000/v1",
        "api_key_env": "TINY_KEY",
    }
    assert (small.price_in, small.price_out, small.window) == (0.1, 0.4, 4096)
    assert patterns.options == {"patterns": str(tmp_path / "patterns.toml")}
    assert got.shares == {"patterns": Share(votes=1)}


def test_flags_go_before_the_file_and_stand_alone_too(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)
    changed = Study.load(path, votes=5, responses="here.csv", timeout=5, budget=None)
    assert (changed.votes, changed.responses) == (5, Path("here.csv"))
    assert (changed.limits.timeout, changed.limits.calls, changed.budget) == (5.0, 1000, 2.5)
    alone = Study.of(
        responses="r.jsonl",
        rubric="four-way",
        model="NAME",
        base_url="http://127.0.0.1/v1",
        votes=3,
    )
    assert alone.graders[0].name == alone.graders[0].model == "NAME"
    assert alone.graders[0].parameters == {}
    assert (alone.rubric, alone.votes, alone.phrasings) == ("four-way", 3, ())
    with pytest.raises(UsageError, match="names its own graders"):
        Study.load(path, model="other")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("votes = 3", "vote = 3", "'vote'. Did you mean votes"),
        ("max_tokens", "max_token", "Did you mean max_tokens"),
        ("retries", "retry", "'retry' in limits"),
        ("votes = 3", 'votes = "3"', "votes is a whole number, not '3'"),
        ("votes = 3", "votes = 0", "from 1"),
        ("votes = 3", "votes = true", "not True"),
        ("budget = 2.5", "budget = -1", "below 0"),
        ("budget = 2.5", "budget = nan", "is a number"),
        ('name = "patterns"', 'name = "small"', "two graders are called 'small'"),
        ('responses = "responses.jsonl"', "", "does not say responses"),
        ('rubric = "rubrics/own.toml"', "", "four-way"),
        ("top_k = 5", "day = 2020-01-01", "only what JSON can"),
        ("seed = 7", "seed = 7\nempty = 'drop'", "grade or skip"),
        ("seed = 7", "seed = = 7", "not TOML"),
    ],
)
def test_a_setting_that_cannot_be_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = WHOLE.replace(old, new, 1)
    assert text != WHOLE
    with pytest.raises((UsageError, InputError)) as caught:
        Study.load(written(tmp_path, text))
    assert said in str(caught.value)
    assert "study.toml" in str(caught.value)


SECRET = "sk-proj-abcdefghijklmnopqrstuvwx0123"


@pytest.mark.parametrize(
    "line",
    [
        f'api_key = "{SECRET}"',
        f'api-key = "{SECRET}"',
        f'parameters = {{ extra_headers = {{ Authorization = "{SECRET}" }} }}',
        f'options = {{ something = "{SECRET}" }}',
        'options = { password = "hunter22" }',
        'base_url = "http://me:hunter22@127.0.0.1/v1"',
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(tmp_path: Path, line: str) -> None:
    text = f'responses = "r.csv"\nrubric = "four-way"\n[[graders]]\nmodel = "m"\n{line}\n'
    with pytest.raises(UsageError) as caught:
        Study.load(written(tmp_path, text))
    said = str(caught.value)
    assert "environment" in said
    assert SECRET not in said
    assert "hunter22" not in said


def test_what_is_secret_by_name() -> None:
    secret = ("api_key", "API-KEY", "openai_api_key", "token", "key", "password", "auth_token")
    assert all(map(is_secret_name, secret))
    harmless = ("max_tokens", "api_key_env", "prompt_cache_key", "stop_token", "logprobs", "seed")
    assert not any(map(is_secret_name, harmless))


def test_secrets_are_scrubbed_from_what_a_provider_says() -> None:
    own = "value-of-a-variable"
    known = environment_secrets({"MY_KEY": own, "HOME": "/somewhere/long", "X_TOKEN": "short"})
    assert known == (own,)
    said = f"Incorrect API key provided: {SECRET}. Authorization: Bearer abcdef0123456789 {own}"
    clean = scrub(said, known)
    assert SECRET not in clean
    assert "abcdef0123456789" not in clean
    assert own not in clean
    assert GONE in clean
    # A reply may quote what looks like a key and is none of ours: it stays as it came.
    assert scrub(f"It gives away {SECRET} and {own}.", known, shapes=False) == (
        f"It gives away {SECRET} and {GONE}."
    )
    innocent = 'the bearer of bad news: "label": "refusal", the key: it declines'
    assert scrub(innocent, known) == innocent


# --- responses ----------------------------------------------------------------------------------


@shared
def test_odd_characters_and_line_ends_are_read_and_planned() -> None:  # FC-12
    read = read_items(INPUTS / "responses-odd.jsonl")
    texts = {i.id: i.response for i in read}
    assert len(read) == 6
    assert "\u2028" in texts["u1"]
    assert "\x85" in texts["u2"]
    assert texts["u3"] == "half a face \ufffd end"
    assert "\x00" in texts["u4"]
    assert texts["u5"] == ""
    assert read.empty == 1
    made = plan(study(votes=1), wording(), read)
    assert len(keys(made)) == 6
    assert keys(made) == keys(
        plan(study(votes=1), wording(), read_items(INPUTS / "responses-odd.jsonl"))
    )
    for position in range(6):
        json.dumps([m.content for m in made.request(made.at(position)).messages]).encode()
    assert any("U+FFFD" in plain(n) for n in read.notices)
    assert any("1 response has no text; it is graded" in plain(n) for n in read.notices)
    skipping = read_items(INPUTS / "responses-odd.jsonl", empty="skip")
    assert (len(skipping), skipping.skipped, skipping.empty) == (5, 1, 0)


@shared
def test_quoted_cells_are_three_responses() -> None:  # FC-12
    read = read_items(INPUTS / "responses-quoted.csv")
    assert [i.response for i in read] == [
        "first line\nsecond line, with comma",
        'she said "no" twice',
        "ends with a slash \\",
    ]
    assert [dict(i.tags) for i in read] == [{"note": "ok"}, {}, {"note": "x"}]


def test_a_very_long_response_is_read_whole(tmp_path: Path) -> None:  # FC-13
    path = tmp_path / "long.csv"
    path.write_text("id,response\n1," + "a" * 140_000 + "\n", encoding="utf-8")
    read = read_items(path)
    assert len(read[0].response) == 140_000
    made = plan(study(votes=1), wording(), read)
    assert int(made.characters(made.order)[0]) > 140_000
    assert "a" * 140_000 in made.request(made.at(0)).messages[-1].content


def lines(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "responses.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


def test_the_same_id_with_another_text_is_an_error_with_both_places(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {"id": "a", "response": "one"},
        {"id": "b", "response": "two"},
        {"id": "a", "response": "three"},
    )
    with pytest.raises(InputError, match=r'line 1: the id with value "a" .* line 3'):
        read_items(path)
    path = lines(tmp_path, {"id": "a", "response": "one"}, {"id": "a", "response": "one"})
    read = read_items(path)
    assert (len(read), read.repeated) == (1, 1)
    assert any("graded once" in plain(n) for n in read.notices)


def test_a_response_without_an_id_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = lines(tmp_path, {"id": "a", "response": "one"}, {"id": " ", "response": "two"})
    with pytest.raises(InputError, match="line 2: the response has no id"):
        read_items(path)


def test_columns_are_known_by_their_names(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {
            "item_id": "1",
            "completion": "It stops at ten.",
            "question": "When does the last bus stop?",
            "question_id": "bus",
            "model": "m",
        },
    )
    item = read_items(path)[0]
    assert (item.id, item.response, item.question, item.cluster) == (
        "1",
        "It stops at ten.",
        "bus",
        "bus",
    )
    assert item.tags["model"] == "m"
    asked = lines(tmp_path, {"id": "1", "response": "At ten.", "question": "When does it stop?"})
    assert (read_items(asked)[0].prompt, read_items(asked)[0].question) == (
        "When does it stop?",
        "",
    )
    code = lines(tmp_path, {"id": "1", "response": "At ten.", "question": "q7"})
    assert (read_items(code)[0].prompt, read_items(code)[0].question) == ("", "q7")


def test_a_column_response_beside_texts_holds_ids(tmp_path: Path) -> None:
    path = lines(tmp_path, {"response": "r1", "text": "This is what was said."})
    assert (read_items(path)[0].id, read_items(path)[0].response) == (
        "r1",
        "This is what was said.",
    )


def test_rows_without_an_id_column_are_numbered(tmp_path: Path) -> None:
    path = lines(tmp_path, {"output": "one"}, {"output": "two"})
    read = read_items(path)
    assert [i.id for i in read] == ["1", "2"]
    assert any("numbered from 1" in plain(n) for n in read.notices)


def test_columns_can_be_named_and_a_wrong_name_has_the_nearest(tmp_path: Path) -> None:
    path = lines(tmp_path, {"nr": "1", "said": "one"})
    with pytest.raises(UsageError, match="no column is known to hold the responses"):
        read_items(path)
    with pytest.raises(UsageError, match=r'"sayd".*Did you mean said'):
        read_items(path, columns={"response": "sayd"})
    assert read_items(path, columns={"response": "said", "id": "nr"})[0].id == "1"


def test_parquet_gives_the_same_plan_as_lines(tmp_path: Path) -> None:
    path = lines(tmp_path, {"id": "a", "response": "one"}, {"id": "b", "response": "two"})
    table = tmp_path / "responses.parquet"
    pl.DataFrame({"id": ["a", "b"], "response": ["one", "two"]}).write_parquet(table)
    first, second = (
        plan(study(), wording(), read_items(path)),
        plan(study(), wording(), read_items(table)),
    )
    assert first.keys.tolist() == second.keys.tolist()
    assert first.response_digest == second.response_digest
    assert first.digest == second.digest


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing.csv: there is no such file"):
        read_items(tmp_path / "nothing.csv")
