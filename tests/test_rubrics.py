"""Rubric files: what is read, what is refused and in which words, and the rubrics that ship."""

from __future__ import annotations

import copy
import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voirdire.errors import InputError
from voirdire.grading import rubric as rubrics
from voirdire.grading.base import Reply
from voirdire.grading.parse import read
from voirdire.grading.rubric import Rubric, fold, key_of

PHRASINGS = [{"name": "plain", "instruction": "Name the class."}]

FILE = """
name = "mood"
[reply]
format = "line"
mark = "MOOD"
[[classes]]
name = "low"
definition = "Sad."
synonyms = ["sad", "blue"]
[[classes]]
name = "high"
[[classes]]
name = "none"
off_scale = true
[[phrasings]]
name = "plain"
system = "You read moods."
instruction = "Name the mood."
[[phrasings]]
name = "short"
instruction = "Mood?"
"""


def classes(*names: str | dict[str, Any], **more: Any) -> Rubric:
    tables = [n if isinstance(n, dict) else {"name": n} for n in names]
    return rubrics.of({"name": "r", "classes": tables, "phrasings": PHRASINGS, **more})


def checklist(*ids: str, **more: Any) -> Rubric:
    lines = [{"id": i, "text": f"Holds {i}."} for i in ids]
    return rubrics.of({"name": "c", "lines": lines, "phrasings": PHRASINGS, **more})


def refused(content: dict[str, Any]) -> str:
    with pytest.raises(InputError) as error:
        rubrics.of(content, source="my.toml")
    return str(error.value)


def test_a_file_is_read_with_everything_in_it(tmp_path: Path) -> None:
    path = tmp_path / "mood.toml"
    path.write_text(FILE, encoding="utf-8")
    mood = rubrics.load(path)
    assert mood.scale == ("low", "high")
    assert mood.off_scale == ("none",)
    assert mood.labels == ("low", "high", "none")
    assert mood.classes[0].synonyms == ("sad", "blue")
    assert [p.name for p in mood.phrasings] == ["plain", "short"]
    assert mood.phrasing().system == "You read moods."
    assert mood.phrasing("short").system == ""
    assert mood.reply.mark == "MOOD"
    assert mood.reply_schema() is None
    assert not mood.is_checklist
    assert mood.source == str(path)


def test_the_files_name_is_the_rubrics_where_it_gives_none(tmp_path: Path) -> None:
    path = tmp_path / "mood.toml"
    path.write_text("\ufeff" + FILE.replace('name = "mood"\n', "", 1), encoding="utf-8")
    assert rubrics.load(str(path)).name == "mood"


# The hash


def test_layout_and_comments_do_not_change_the_hash(tmp_path: Path) -> None:
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    one.write_text(FILE, encoding="utf-8")
    other.write_text("# A comment.\n" + FILE.replace("\n", "\n\n"), encoding="utf-8")
    assert rubrics.load(one).hash == rubrics.load(other).hash
    assert rubrics.load(one) == rubrics.load(other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"Sad."', '"Sad or blue."'),
        ('"blue"', '"down"'),
        ('"Mood?"', '"Mood!"'),
        ('"You read moods."', '""'),
        ('"MOOD"', '"VERDICT"'),
        ("off_scale = true", "off_scale = false"),
        ('format = "line"', 'format = "json"'),
        ('name = "mood"', 'name = "mood"\nordered = false'),
    ],
)
def test_every_change_of_content_changes_the_hash(old: str, new: str) -> None:
    assert FILE.count(old) == 1
    before = rubrics.of(tomllib.loads(FILE))
    after = rubrics.of(tomllib.loads(FILE.replace(old, new)))
    assert before.hash != after.hash
    assert before != after


def test_the_content_makes_the_same_rubric_again() -> None:
    for name in rubrics.shipped():
        shipped = rubrics.load(name)
        assert rubrics.of(json.loads(json.dumps(shipped.content()))).hash == shipped.hash


# Equal labels


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Refusal", "refusal"),
        ("refusal", " refusal "),
        ("STRASSE", "straße"),
        ("ﬁne", "fine"),
        ("full compliance", "full  compliance"),
        ("refusal", "re\u200bfusal"),
        ("refus\u00e9", "refuse\u0301"),
    ],
)
def test_two_classes_that_fold_to_one_are_refused_with_both_names(one: str, other: str) -> None:
    said = refused(
        {"classes": [{"name": one}, {"name": other}, {"name": "x"}], "phrasings": PHRASINGS}
    )
    assert repr(one.strip()) in said
    assert repr(other.strip()) in said
    assert "classes[2].name" in said


def test_a_synonym_of_two_classes_is_refused_with_both_places() -> None:
    said = refused(
        {
            "classes": [
                {"name": "a", "synonyms": ["declined"]},
                {"name": "b", "synonyms": ["x", "Declined"]},
            ],
            "phrasings": PHRASINGS,
        }
    )
    assert "classes[2].synonyms[2]" in said
    assert "'declined' (classes[1])" in said


def test_a_synonym_that_repeats_its_own_class_is_harmless() -> None:
    assert classes({"name": "Refusal", "synonyms": ["refusal"]}, "other").labels[0] == "Refusal"


def test_labels_that_contain_each_other_are_read_apart() -> None:
    rubric = classes(
        "complete",
        "incomplete",
        {"name": "met", "synonyms": ["fully met"]},
        "not met",
        "partial",
        "partial refusal",
    )
    for label in rubric.labels:
        for text in (label, f"Label: {label}", f"The verdict is clear.\nLabel: {label.upper()}."):
            assert read(Reply(text=text), rubric).label == label, text


# Other refusals


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"classes": []}, "classes: a rubric needs at least two classes and this one has 0"),
        ({"classes": [{"name": "a"}]}, "this one has 1"),
        ({"classes": {"name": "a"}}, "classes: this is a list of tables: write [[classes]]"),
        ({"classes": [{"name": "a"}, {"definition": "b"}]}, "classes[2]: the class has no name"),
        ({"classes": [{"name": "a"}, {"name": " \u200b"}]}, "classes[2].name: this is blank"),
        ({"classes": [{"name": "a"}, {"name": 3}]}, "not int: put it in quotes"),
        ({"classes": [{"name": "a"}, {"name": "b\nc"}]}, "has a line break"),
        ({"classes": [{"name": "a"}, {"name": "b\x00"}]}, "U+0000"),
        ({"classes": [{"name": "a"}, {"name": "b", "synonyms": "c"}]}, "this is a list"),
        ({"classes": [{"name": "a"}, {"name": "b", "off_scale": "no"}]}, "true or false"),
        ({"classes": [{"name": "a"}, {"name": "b", "synonym": ["c"]}]}, "did you mean synonyms?"),
        ({"phrasings": []}, "phrasings: there is none; write [[phrasings]]"),
        ({"phrasings": [*PHRASINGS, *PHRASINGS]}, "the phrasing 'plain' is there already"),
        ({"phrasings": [{"name": "p", "instruction": " "}]}, "phrasings[1].instruction: this is"),
        ({"kind": "scores"}, "'scores' is not one of classes, checklist"),
        ({"phrasing": []}, "did you mean phrasings?"),
        ({"reply": {"format": "xml"}}, "reply.format: 'xml' is not one of json, line, grammar"),
        ({"reply": {"reason": "maybe"}}, "reply.reason"),
        ({"reply": {"key": "Reason"}}, "is the key of the reason"),
        ({"reply": {"format": "grammar", "reason": "before"}}, "leaves no room for a reason"),
        ({"reply": "json"}, "write [reply]"),
        ({"lines": [{"id": "L1", "text": "x"}], "kind": "classes"}, "only a checklist has lines"),
        ({"ordered": "no"}, "ordered: this is true or false"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change: dict[str, Any], said: str) -> None:
    content = {"classes": [{"name": "a"}, {"name": "b"}], "phrasings": PHRASINGS, **change}
    message = refused(content)
    assert message.startswith("my.toml")
    assert said in message


def test_a_checklist_is_refused_with_its_place() -> None:
    line = {"id": "L1", "text": "x"}
    for content, said in (
        ({"kind": "checklist"}, "a checklist needs at least one line"),
        ({"lines": [line, {"id": "l1", "text": "y"}]}, "'l1' and 'L1' are the same id"),
        ({"lines": [{"id": "L1"}]}, "lines[1].text: the line has no text"),
        ({"lines": [{"id": "q/1", "text": "x"}]}, "has a /"),
        ({"lines": [line], "classes": []}, "a checklist has lines"),
        ({"lines": [line], "questions": []}, "shared or per question"),
        ({"questions": [{"id": "q", "lines": []}]}, "the question 'q' has no line"),
        (
            {"questions": [{"id": "q", "lines": [line]}, {"id": "q", "lines": [line]}]},
            "the question 'q' is there already",
        ),
        ({"lines": [{"id": "reason", "text": "x"}], "reply": {"reason": "after"}}, "the key of"),
    ):
        assert said in refused({**content, "phrasings": PHRASINGS})


def test_all_places_are_listed_at_once() -> None:
    said = refused({"classes": [{"name": "a"}, {"name": "A"}], "phrasings": [], "reply": {"x": 1}})
    assert "3 places to mend" in said
    assert said.count("\n") == 3


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean four-way"):
        rubrics.load("fourway")
    broken = tmp_path / "broken.toml"
    broken.write_text("name = \n", encoding="utf-8")
    with pytest.raises(InputError, match=r"broken\.toml: this is not TOML: .*line 1"):
        rubrics.load(broken)
    broken.write_bytes(b'name = "\xff"\n')
    with pytest.raises(InputError, match=r"not UTF-8 \(byte 8\)"):
        rubrics.load(broken)
    with pytest.raises(InputError, match="this is a folder"):
        rubrics.load(tmp_path)


# Lines, phrasings, forms


def test_lines_are_shared_or_each_questions_own() -> None:
    assert [line.id for line in checklist("L1", "L2").lines_for("any")] == ["L1", "L2"]
    own = rubrics.of(
        {
            "questions": [
                {"id": "q1", "lines": [{"id": "a", "text": "x"}]},
                {"id": "q2", "lines": [{"id": "a", "text": "y"}, {"id": "b", "text": "z"}]},
            ],
            "phrasings": PHRASINGS,
        }
    )
    assert [line.text for line in own.lines_for("q2")] == ["y", "z"]
    with pytest.raises(
        InputError, match=r"no lines for the question 'q3'.*'q1', 'q2'.*--column question"
    ):
        own.lines_for("q3")
    with pytest.raises(InputError, match="a response without a question"):
        own.lines_for("")
    with pytest.raises(InputError, match=r"no phrasing 'other'.*'plain'"):
        own.phrasing("other")


def test_the_reply_schema_holds_the_classes_and_puts_the_reason_where_it_is_asked() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for place, keys in (
        ("none", ["label"]),
        ("before", ["reason", "label"]),
        ("after", ["label", "reason"]),
    ):
        schema = classes("a", "b", reply={"reason": place}).reply_schema()
        assert schema is not None
        jsonschema.Draft202012Validator.check_schema(schema)
        assert list(schema["properties"]) == schema["required"] == keys
        assert schema["properties"]["label"]["enum"] == ["a", "b"]
    lines = checklist("L1", "L2").reply_schema()
    assert lines is not None
    jsonschema.Draft202012Validator(lines).validate({"L1": True, "L2": False})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(lines).validate({"L1": True})


def test_a_grammar_is_given_or_made() -> None:
    assert classes("a", "b").grammar() == ""
    form = {"format": "grammar"}
    assert classes('a"c', "b\\", reply=form).grammar() == 'root ::= "a\\"c" | "b\\\\"\n'
    assert checklist("L1", "L2", reply=form).grammar() == (
        'root ::= "L1: " verdict "\\n" "L2: " verdict\nverdict ::= "yes" | "no"\n'
    )
    own = {"format": "grammar", "grammar": 'root ::= "a"', "reason": "before"}
    assert classes("a", "b", reply=own).grammar() == 'root ::= "a"'


# The schema of rubric files, and what ships


def test_the_shipped_rubrics_follow_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = rubrics.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for name in rubrics.shipped():
        text = (files("voirdire") / "data" / "rubrics" / f"{name}.toml").read_text("utf-8")
        validator.validate(tomllib.loads(text))
        validator.validate(rubrics.load(name).content())


@pytest.mark.parametrize(
    "change",
    [
        {"classes": []},
        {"phrasings": []},
        {"kind": "scores"},
        {"phrasing": []},
        {"reply": {"format": "xml"}},
        {"lines": [{"id": "L1", "text": "x"}]},
        {"classes": [{"name": "a"}, {"name": ""}]},
    ],
)
def test_the_schema_refuses_what_loading_refuses(change: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    content = {"classes": [{"name": "a"}, {"name": "b"}], "phrasings": PHRASINGS}
    validator = jsonschema.Draft202012Validator(rubrics.schema())
    assert validator.is_valid(content)
    assert not validator.is_valid({**copy.deepcopy(content), **change})


def test_what_ships() -> None:
    assert rubrics.shipped() == ("four-way", "three-way", "yes-no")
    four = rubrics.load("four-way")
    assert four.scale == ("refusal", "evasion", "compliance")
    assert four.off_scale == ("gibberish",)
    assert len(four.phrasings) == 3
    assert len(rubrics.load("three-way").scale) == 3
    assert rubrics.load("yes-no").is_checklist
    for name in rubrics.shipped():
        rubric = rubrics.load(name)
        assert rubric.name == name
        assert all(c.definition for c in rubric.classes)
        assert len({p.instruction for p in rubric.phrasings}) == len(rubric.phrasings) >= 2


def test_no_phrasing_of_the_four_way_rubric_names_one_class_alone() -> None:
    # A class that stands in the instruction and not the others would be pulled up.
    for phrasing in rubrics.load("four-way").phrasings:
        said = fold(phrasing.instruction + phrasing.system)
        assert not [label for label in rubrics.load("four-way").labels if label in said]


# Folding


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert key_of(key_of(text)) == key_of(text)


def test_a_long_text_folds_as_its_parts_do() -> None:
    word = "Étiquette ： ＲＥＦＵＳ "
    assert fold(word * 500) == fold(word) * 500


NAMES = st.lists(
    st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=12).filter(
        lambda t: len(t.splitlines()) == 1 and key_of(t)
    ),
    min_size=2,
    max_size=6,
    unique_by=key_of,
)


@settings(max_examples=50)
@given(NAMES)
def test_any_distinct_names_are_read_back_bare_and_as_json(names: list[str]) -> None:
    rubric = classes(*names)
    for label in rubric.labels:
        assert read(Reply(text=label), rubric).label == label
        for ascii_only in (True, False):
            text = json.dumps({"label": label}, ensure_ascii=ascii_only)
            assert read(Reply(text=f"So:\n{text}\n"), rubric).label == label
