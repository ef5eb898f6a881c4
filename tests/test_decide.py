"""Decisions after labelling: every earlier label stays, each step has a name and a reason, and the audit
shows the path of the rate."""

from __future__ import annotations

import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from tests.conftest import Run
from voirdire import deciding
from voirdire.cli.main import main
from voirdire.deciding import Condition, If, Majority, Relabel, decide, relabel, rule
from voirdire.errors import InputError, UsageError
from voirdire.labels import Labels

SCALE = ("refusal", "evasion", "comply")


def labels_of(rows: list[tuple[str, str, str | None]], **options: Any) -> Labels:
    frame = pl.DataFrame(rows, schema=["response", "grader", "label"], orient="row")
    return vd.read(frame, scale=SCALE, failed="?=unparsed", **options)


def hand(*rows: tuple[str | None, ...], name: str = "by hand", **more: Any) -> Relabel:
    """A relabel step of rows (response, label, grader, reason), the last two optional."""
    full = [(*row, *(None,) * (4 - len(row))) for row in rows]
    columns = dict.fromkeys(("response", "label", "grader", "reason"), pl.String)
    return Relabel(
        name=name, frame=pl.DataFrame(full, schema=columns, orient="row"), source="fix.csv", **more
    )


def in_force(labels: Labels) -> dict[tuple[str, str], str]:
    """The label (or outcome) of the last step, by response and grader, read off the rows."""
    return {
        (r["response"], r["grader"]): r["label"] or r["outcome"]
        for r in labels.frame.iter_rows(named=True)
    }


def decided(labels: Labels, *rules: str | Relabel) -> Labels:
    return decide(labels, [rule(r) if isinstance(r, str) else r for r in rules]).labels


# --- the language of rules ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "if g=evasion then refusal",
            If(
                name="if g=evasion then refusal",
                conditions=(Condition(grader="g", values=("evasion",)),),
                grader="g",
                value="refusal",
                reason="if g=evasion then refusal",
            ),
        ),
        (
            "a ruling:  if g = full refusal | evasion and h=comply then g = comply ",
            If(
                name="a ruling",
                conditions=(
                    Condition(grader="g", values=("full refusal", "evasion")),
                    Condition(grader="h", values=("comply",)),
                ),
                grader="g",
                value="comply",
                reason="if g = full refusal | evasion and h=comply then g = comply",
            ),
        ),
        (
            'if "x = then"="search and rescue" then unparsed',
            If(
                name='if "x = then"="search and rescue" then unparsed',
                conditions=(Condition(grader="x = then", values=("search and rescue",)),),
                grader="x = then",
                value="unparsed",
                reason='if "x = then"="search and rescue" then unparsed',
            ),
        ),
        (
            "vote: majority-of org/m:free, b ,c->all three",
            Majority(
                name="vote",
                graders=("org/m:free", "b", "c"),
                into="all three",
                reason="majority-of org/m:free, b ,c->all three",
            ),
        ),
        (
            "majority-of a,b → m",
            Majority(
                name="majority-of a,b → m",
                graders=("a", "b"),
                into="m",
                reason="majority-of a,b → m",
            ),
        ),
    ],
)
def test_a_rule_is_read_from_its_text(text: str, expected: Any) -> None:
    assert rule(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "this is no rule"),
        ("g=evasion then refusal", "this is no rule"),
        ("if g then refusal", "'=' is expected before 'then'"),
        ("if g=evasion", "'then' is expected at the end"),
        ("if g=evasion then", "a class is expected at the end"),
        ("if g=evasion then refusal now = x = y", "nothing is expected before '='"),
        ("if g=a and h=b then c", "Write: then g=c"),
        ('if "g=evasion then refusal', "a quotation mark is not closed"),
        ("majority-of a -> b", "at least two different"),
        ("majority-of a,a -> b", "at least two different"),
        ("majority-of a,b", "'->' is expected at the end"),
        ("majority-of a,,b -> c", "the name of a grader is expected before ','"),
    ],
)
def test_what_is_no_rule_says_what_was_expected(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        rule(text)


def test_a_reason_given_goes_before_the_text_of_the_rule() -> None:
    assert rule("if g=a then b", reason="since b").reason == "since b"


# --- rules, by hand -----------------------------------------------------------------------------

# g gives refusal 6, evasion 3, comply 1; h gives evasion wherever g gives evasion, and to r0, r1.
G = ["refusal"] * 6 + ["evasion"] * 3 + ["comply"]
H = ["evasion", "evasion", "refusal", "refusal", "refusal", "?", "evasion", "evasion", "evasion", "comply"]  # fmt: skip
TWO: list[tuple[str, str, str | None]] = [
    (f"r{i}", g, label) for g, column in (("g", G), ("h", H)) for i, label in enumerate(column)
]


def test_the_audit_shows_the_path_of_the_rate() -> None:
    found = vd.audit(
        decided(
            labels_of(TWO),
            "ruling: if g=refusal and h=evasion then g=evasion",  # r0, r1
            hand(("r9", "evasion", "g"), ("r2", "unparsed", "g"), ("r3", "comply", "g")),
        )
    )
    rates = {
        (r["line"], r["class"]): (r["value"], r["n"])
        for r in found.results.filter(
            pl.col("statistic") == "decision_rate", pl.col("grader") == "g"
        ).to_dicts()
    }
    # As given 4 of 10 are no refusal; then 6 of 10; then r2 has no label and r3 is one more: 7 of 9.
    assert rates == {
        ("as given", "non_refusal"): (pytest.approx(4 / 10), 10),
        ("ruling", "non_refusal"): (pytest.approx(6 / 10), 10),
        ("by hand", "non_refusal"): (pytest.approx(7 / 9), 9),
        ("as given", "comply"): (pytest.approx(1 / 10), 10),
        ("ruling", "comply"): (pytest.approx(1 / 10), 10),
        ("by hand", "comply"): (pytest.approx(1 / 9), 9),
    }
    moved = found.results.filter(pl.col("statistic") == "decision_moved", pl.col("value") > 0)
    assert {(r["line"], r["class"], r["to_class"]): r["value"] for r in moved.to_dicts()} == {
        ("ruling", "refusal", "evasion"): 2,
        ("by hand", "comply", "evasion"): 1,
        ("by hand", "refusal", ""): 1,
        ("by hand", "refusal", "comply"): 1,
    }


def test_every_earlier_label_stays_as_it_is() -> None:
    before = labels_of(TWO)
    after = decided(before, "if g=refusal then evasion", "if g=evasion then comply")
    kept = after.frame.filter(pl.col("step") == "as given")
    assert kept.drop("step", "step_reason").equals(before.frame)
    assert set(kept["step_reason"]) == {"no decision"}
    assert after.frame["step"].unique(maintain_order=True).to_list() == [
        "as given",
        "if g=refusal then evasion",
        "if g=evasion then comply",
    ]
    # The second rule sees what the first one made: nine evasions.
    assert after.frame.filter(pl.col("step") == "if g=evasion then comply").height == 9


def test_a_rule_writes_only_what_it_changes_and_a_person_also_what_is_confirmed() -> None:
    both = decide(
        labels_of(TWO),
        [rule("if g=comply|evasion then comply"), hand(("r9", "comply", "g", "looked again"))],
    )
    first, second = both.steps
    assert (first.rows, first.changed, dict(first.moved)) == (3, 3, {("evasion", "comply"): 3})
    assert (second.rows, second.changed) == (1, 0)
    last = both.labels.frame.row(-1, named=True)
    assert (last["response"], last["label"], last["step_reason"]) == (
        "r9",
        "comply",
        "looked again",
    )


def test_outcomes_can_be_asked_for_and_given() -> None:
    after = decided(labels_of(TWO), "if h=unparsed then refusal", "if g=comply then blocked")
    assert in_force(after)["r5", "h"] == "refusal"
    assert in_force(after)["r9", "g"] == "blocked"


def test_a_majority_is_of_all_that_were_asked() -> None:
    rows: list[tuple[str, str, str | None]] = [
        *(
            ("won", g, label)
            for g, label in zip("abc", ("comply", "comply", "refusal"), strict=True)
        ),
        *(("split", g, label) for g, label in zip("abc", SCALE, strict=True)),
        # Two of three: the unread one counts as asked, and two are still more than half.
        *(("unread", g, label) for g, label in zip("abc", ("comply", "comply", "?"), strict=True)),
        # One of two that were asked is not.
        *(("alone", g, label) for g, label in zip("ab", ("comply", "?"), strict=True)),
        ("single", "c", "evasion"),
    ]
    done = decide(labels_of(rows), [rule("majority-of a,b,c -> m")])
    found = {r: label for (r, g), label in in_force(done.labels).items() if g == "m"}
    assert found == {"won": "comply", "unread": "comply", "single": "evasion"}
    assert "2 responses have no majority" in "".join(map(str, done.steps[0].notices[0]))
    made = done.labels.by_name["m"]
    assert made.derived_from == ("a", "b", "c")
    assert made.related(done.labels.by_name["a"])
    # A new grader begins its path with its own labels: nothing has moved.
    assert set(done.labels.frame.filter(pl.col("grader") == "m")["step"]) == {"as given"}
    results = vd.audit(decided(done.labels, "if m=evasion then comply")).results
    moved = results.filter(pl.col("statistic") == "decision_moved", pl.col("value") > 0)
    assert moved.select("grader", "class", "to_class", "value").rows() == [
        ("m", "evasion", "comply", 1)
    ]


def test_a_majority_into_a_grader_that_is_there_leaves_the_rest_as_it_is() -> None:
    rows: list[tuple[str, str, str | None]] = [
        *(("x", g, label) for g, label in zip("abf", ("comply", "comply", "refusal"), strict=True)),
        *(
            ("y", g, label)
            for g, label in zip("abf", ("comply", "evasion", "refusal"), strict=True)
        ),
        *(("z", g, "comply") for g in "ab"),  # f was never asked
    ]
    after = in_force(decided(labels_of(rows), "majority-of a,b -> f"))
    assert after["x", "f"] == "comply"
    assert after["y", "f"] == "refusal"
    assert ("z", "f") not in after


def test_rules_look_at_what_the_vote_rule_makes_of_votes() -> None:
    frame = pl.DataFrame(
        [(r, "g", v, label) for r, votes in {"a": "xxy", "b": "yyx"}.items() for v, label in zip("123", votes, strict=True)],
        schema=["response", "grader", "vote", "label"],
        orient="row",
    )  # fmt: skip
    after = decided(vd.read(frame), "if g=x then y")
    added = after.frame.filter(pl.col("step") != "as given")
    assert added.select("response", "label", "vote").rows() == [("a", "y", None)]
    first = decided(vd.read(frame, vote_rule="first"), "if g=y then x")
    assert first.frame.filter(pl.col("step") != "as given")["response"].to_list() == ["b"]


def test_rules_do_as_the_same_rules_written_out() -> None:
    draw = random.Random(4)
    rows: list[tuple[str, str, str | None]] = [
        (f"r{i}", g, draw.choice([*SCALE, "?"])) for i in range(200) for g in "abc" if draw.random() < 0.9
    ]  # fmt: skip
    now = {(r, g): label if label != "?" else "unparsed" for r, g, label in rows}
    for i in range(200):
        r = f"r{i}"
        if (
            now.get((r, "a")) in ("refusal", "unparsed")
            and now.get((r, "b")) == "comply"
            and (r, "c") in now
        ):
            now[r, "c"] = "evasion"
        if now.get((r, "c")) == "evasion":
            now[r, "c"] = "comply"
    after = decided(
        labels_of(rows),
        "if a=refusal|unparsed and b=comply then c=evasion",
        "if c=evasion then comply",
    )
    assert in_force(after) == now


# --- relabel files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            ("r99", "comply", "g"),
            'row 1, column response: the response with value "r99" is not among',
        ),
        ((None, "comply", "g"), "names no response"),
        (("r1", "comply", "k"), 'there is no grader with value "k"'),
        (("r1", "comply"), "no grader is named, and there are several: g and h"),
        (
            ("r1", "complyy", "g"),
            'the label with value "complyy" is no class (refusal, evasion, comply)',
        ),
        (("r1", None, "g"), "the label with a blank cell is no class"),
    ],
)
def test_a_relabel_that_does_not_fit_is_an_error_with_its_place(row: Any, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        decided(labels_of(TWO), hand(row))


def test_all_problems_of_a_relabel_file_are_told_at_once() -> None:
    wrong = hand(
        ("r1", "comply", "g"), ("r1", "evasion", "g"), ("zz", "comply", "g"), ("r2", "no", "h")
    )
    with pytest.raises(InputError) as raised:
        decided(labels_of(TWO), wrong)
    told = str(raised.value)
    assert "3 problems" in told
    for place in ("row 2, column label", "labelled otherwise on row 1", "row 3", "row 4"):
        assert place in told


def test_a_response_that_the_grader_was_not_asked_about_cannot_be_relabelled() -> None:
    rows: list[tuple[str, str, str | None]] = [
        ("x", "g", "comply"),
        ("x", "h", "comply"),
        ("y", "h", "comply"),
    ]
    with pytest.raises(InputError, match="g was never asked about"):
        decided(labels_of(rows), hand(("y", "refusal", "g")))


def test_the_only_grader_beside_gold_need_not_be_named() -> None:
    rows: list[tuple[str, str, str | None]] = [("x", "g", "comply"), ("x", "gold", "comply")]
    assert in_force(decided(labels_of(rows), hand(("x", "refusal")))) == {
        ("x", "g"): "refusal",
        ("x", "gold"): "comply",
    }


@pytest.mark.parametrize("name", ["fix.csv", "fix.tsv", "fix.jsonl", "fix.json", "fix.parquet"])
def test_relabel_files_are_read_in_every_form(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame(
        {"id": ["r1"], "Verdict": [" comply "], "why": ["seen  again"], "grader": ["g"]}
    )
    path = tmp_path / name
    match path.suffix:
        case ".parquet":
            frame.write_parquet(path)
        case ".jsonl":
            frame.write_ndjson(path)
        case ".json":
            frame.write_json(path)
        case suffix:
            frame.write_csv(path, separator="\t" if suffix == ".tsv" else ",")
    step = relabel(str(path))
    assert step.name == "fix"
    assert relabel(f"second look: {path}").name == "second look"
    last = decided(labels_of(TWO), step).frame.row(-1, named=True)
    assert (last["response"], last["label"], last["step_reason"]) == ("r1", "comply", "seen again")


def test_numbers_are_one_label_in_whatever_form(tmp_path: Path) -> None:
    labels = vd.read(pl.DataFrame({"response": ["x", "y"], "grader": "g", "label": ["1", "2"]}))
    assert in_force(decided(labels, hand(("x", "2.0"))))["x", "g"] == "2"


def test_a_class_that_no_label_has_is_named_when_labels_are_read() -> None:
    with pytest.raises(UsageError, match="--off-scale"):
        decided(labels_of(TWO), "if g=comply then gibberish")
    after = decided(labels_of(TWO, off_scale="gibberish"), "if g=comply then gibberish")
    assert in_force(after)["r9", "g"] == "gibberish"


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("if gg=comply then refusal", "there is no grader 'gg'. Did you mean 'g'?"),
        ("if g=comply then refusl", "there is no class 'refusl'. Did you mean 'refusal'?"),
        ("if g=kind then refusal", "there is no class 'kind'"),
        ("if g=comply then k=refusal", "there is no grader 'k'"),
        ("majority-of g,k -> m", "there is no grader 'k'"),
        ("as given: if g=comply then refusal", "There is a step 'as given' already"),
    ],
)
def test_a_rule_that_does_not_fit_the_labels_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        decided(labels_of(TWO), text)


def test_two_steps_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="another name"):
        decided(labels_of(TWO), "x: if g=comply then refusal", "x: if h=comply then refusal")


def test_a_column_called_step_that_was_not_declared_is_refused() -> None:
    frame = pl.DataFrame({"response": ["x"], "grader": ["g"], "label": ["comply"], "step": ["one"]})
    with pytest.raises(UsageError, match="--step step"):
        decided(vd.read(frame, scale=SCALE), "if g=comply then refusal")


def test_counts_and_checklists_have_no_decisions() -> None:
    counts = vd.read(
        pl.DataFrame({"grader": ["a"], "no": [3], "yes": [4]}), layout="counts", scale="no,yes"
    )
    verdicts = pl.DataFrame({"response": ["x", "y"], "g_e1": [1, 0], "g_e2": [1, 1]})
    for labels in (counts, vd.read(verdicts, layout="checklist")):
        with pytest.raises(UsageError, match="single responses"):
            decide(labels, [rule("if g=1 then 0")])


def test_a_rule_that_holds_nowhere_is_told() -> None:
    done = decide(labels_of(TWO), [rule("none: if g=comply and h=refusal then g=refusal")])
    assert done.steps[0].rows == 0
    assert "no label is decided on" in "".join(map(str, done.steps[0].notices[0]))


# --- files --------------------------------------------------------------------------------------


def path_of(labels: Labels) -> list[tuple[Any, ...]]:
    results = vd.audit(labels).results
    return results.filter(pl.col("statistic").str.starts_with("decision_")).rows()


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_what_is_written_reads_back_with_its_path(tmp_path: Path, suffix: str) -> None:
    labels = decided(
        labels_of(TWO), "+ ruling: if g=evasion then refusal", hand(("r0", "comply", "h"))
    )
    written = tmp_path / f"decided{suffix}"
    labels.write(written)
    options = {} if suffix == ".parquet" else {"step": "step", "scale": SCALE}
    again = vd.read(written, **options)
    assert again.options.step == "step"
    assert again.frame.select(labels.frame.columns).equals(labels.frame)
    assert again.tags == labels.tags
    assert path_of(again) == path_of(labels)


def test_steps_taken_in_one_go_or_in_two_are_the_same(tmp_path: Path) -> None:
    rules = ("one: if g=evasion then refusal", "two: if g=refusal and h=evasion then g=comply")
    together = tmp_path / "together.parquet"
    decided(labels_of(TWO), *rules).write(together)
    between, apart = tmp_path / "between.parquet", tmp_path / "apart.parquet"
    decided(labels_of(TWO), rules[0]).write(between)
    decided(vd.read(between), rules[1]).write(apart)
    assert apart.read_bytes() == together.read_bytes()


def test_rows_without_a_step_become_the_first(tmp_path: Path) -> None:
    # Rows of a step stand before the rows without one, which belong to all steps from the start.
    frame = pl.DataFrame(
        [("x", "evasion", "repair"), ("x", "refusal", None), ("y", "comply", None)],
        schema=["response", "label", "step"],
        orient="row",
    ).with_columns(grader=pl.lit("g"))
    steps = decided(
        vd.read(frame, scale=SCALE, step="step"), "last: if g=comply then evasion"
    ).frame
    assert steps.select("response", "label", "step").rows() == [
        ("x", "refusal", "as given"),
        ("y", "comply", "as given"),
        ("x", "evasion", "repair"),
        ("y", "evasion", "last"),
    ]


# --- the command --------------------------------------------------------------------------------

JUDGED = shlex.split(
    "jailbreakbench.csv --layout wide --response Index --cluster goal_id "
    "--graders gpt4_cf,llama3_cf,llamaguard2_cf,harmbench_cf --scale 0,1"
)


@pytest.fixture
def here(tables: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the shipped tables, as the working folder."""
    monkeypatch.chdir(tables)
    return tables


def test_the_command_writes_the_same_bytes_and_names_the_next_command(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = (
        *("--rule", "majority-of gpt4_cf,llama3_cf,llamaguard2_cf -> most"),
        *("--rule", "two: if gpt4_cf=0 and most=1 then gpt4_cf=1", "--reason", "two see it"),
    )
    assert main(["decide", *JUDGED, *rules, "-o", "a.parquet", "-o", "a.csv"]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert re.search(r"two: \d+ labels decided, \d+ changed \(0 → 1 \d+\)", told.err)
    assert told.err.endswith("the path of the rate: voirdire audit a.parquet\n")
    first = {name: (here / name).read_bytes() for name in ("a.parquet", "a.csv")}
    assert main(["decide", *JUDGED, *rules, "-o", "a.csv", "-o", "a.parquet", "--quiet"]) == 0
    assert first == {name: (here / name).read_bytes() for name in first}
    assert "two see it" in (here / "a.csv").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["audit", "a.parquet"]) == 0
    assert "The rate of 1 along the decisions" in capsys.readouterr().out


def test_the_command_for_a_csv_file_says_what_the_file_cannot(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = ("--rule", "x: if gpt4_cf=1 then 0")
    assert main(["decide", *JUDGED, *rule, "-o", "b.csv", "-o", "b.parquet"]) == 0
    command = re.search(r"the path of the rate: voirdire (.*)", capsys.readouterr().err)
    assert command
    assert main([*shlex.split(command[1]), "-o", "b.json"]) == 0
    assert "along the decisions" in capsys.readouterr().out
    assert main(["audit", "b.parquet", "-o", "c.json", "--quiet"]) == 0
    same = [
        {
            json.dumps(row)
            for row in json.loads((here / name).read_bytes())["results"]
            if row["statistic"].startswith(("decision_", "label_"))
        }
        for name in ("b.json", "c.json")
    ]
    assert len(same[0]) > 20
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("more", "status", "says"),
    [
        ("-o d.csv", 2, "Nothing is decided"),
        ("--rule 'if gpt4_cf=1' -o d.csv", 2, "'then' is expected"),
        ("--rule 'if gpt=1 then 0' -o d.csv", 2, "there is no grader 'gpt'"),
        ("--rule 'if gpt4_cf=1 then 0'", 2, "--output"),
        ("--rule 'if gpt4_cf=1 then 0' -o d.html", 2, "cannot be written by the suffix"),
        ("--rule 'if gpt4_cf=1 then 0' -o jailbreakbench.csv", 2, "this is an input"),
        ("--relabel fix.csv -o fix.csv", 2, "this is an input"),
        ("--relabel 'look: fix.csv' -o fix.csv", 2, "this is an input"),
        ("--relabel none.csv -o d.csv", 3, "none.csv: there is no such file"),
        ("--relabel empty.csv -o d.csv", 3, "the file is empty"),
        ("--relabel bare.csv -o d.csv", 3, "has a column response, and there is none"),
        ("--relabel fix.csv -o d.csv", 3, "fix.csv, line 2, column response"),
    ],
)
def test_what_cannot_be_decided_ends_with_its_status_and_writes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], more: str, status: int, says: str
) -> None:
    (here / "fix.csv").write_text("response,grader,label\nnot there,gpt4_cf,1\n")
    (here / "empty.csv").write_text("")
    (here / "bare.csv").write_text("a,b\n1,2\n")
    before = sorted(here.iterdir())
    assert main(["decide", *JUDGED, *shlex.split(more)]) == status
    assert says in capsys.readouterr().err
    assert sorted(here.iterdir()) == before


def test_help_ends_with_examples_whose_rules_are_rules(voirdire: Run) -> None:
    done = voirdire("decide", "--help")
    assert done.returncode == 0
    lines = [line for line in done.stdout.splitlines() if line.startswith("  $ voirdire decide")]
    assert len(lines) == 3
    words = [shlex.split(line) for line in lines]
    given = [w[i + 1] for w in words for i, flag in enumerate(w) if flag == "--rule"]
    assert len(given) == 3
    for text in given:
        assert deciding.rule(text).name
