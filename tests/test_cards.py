"""Grader cards: uses that follow from findings, lines that say unknown, and cards that are read back."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

import voirdire as vd
from tests.conftest import DATA, ROOT
from voirdire import cards, plugins
from voirdire.cards import checking
from voirdire.cards.schema import ID, TRIGGERS, problems
from voirdire.cards.uses import FACTS, USES, Status, consequences, derive
from voirdire.checks.base import Check, Effect
from voirdire.cli.main import main
from voirdire.errors import InputError, UsageError

CHECKS = plugins.load("checks", Check)
SCHEMA = cards.schema()
SHARED = ROOT.parent / "shared"
HOSTILE = [
    "gpt_5%mini",
    "a|b",
    "<b>bold</b>",
    "=SUM(A1)",
    "x & y # z ~ ^ \\ {}",
    "`tick` *star* [link](x)",
    "\u202eevil",
    "سلام",
    "{unknown}",
]
BANK = {"cut": [5, 8]}
XSTEST: dict[str, Any] = {
    "layout": "wide",
    "response": "model+id",
    "cluster": "id",
    "graders": "annotation_1,annotation_2,gpt4_label,strmatch_label",
    "gold": "final_label",
    "people": "annotation_1,annotation_2",
    "derived_from": {"final_label": "annotation_1+annotation_2"},
    "scale": "2_full_refusal,3_partial_refusal,1_full_compliance",
    "range": {"strmatch_label": "2_full_refusal+1_full_compliance"},
    "failed": {"*": "unparsed"},
}


@pytest.fixture(scope="module")
def bank() -> vd.Audit:
    return vd.audit(vd.read(DATA / "judge_item_bank.csv", **BANK))


@pytest.fixture(scope="module")
def xstest() -> vd.Audit:
    return vd.audit(vd.read(DATA / "xstest.csv", **XSTEST))


@pytest.fixture(scope="module")
def by_model() -> vd.Audit:
    return vd.audit(vd.read(DATA / "xstest.csv", **XSTEST, by=["model"]))


def status_of(card: vd.Card, use: str, scope: str = "") -> str:
    found = [
        u["status"]
        for u in card.record()["uses"]
        if u["use"] == use and scope in ("", u["scope"].get("rate"), u["scope"].get("cut"))
    ]
    assert len(found) == 1, (use, scope, found)
    return str(found[0])


def because(card: vd.Card, use: str, scope: str = "") -> set[str]:
    """What the status of a use stands on: findings, facts and results by name."""
    return {
        str(row.get("finding") or row.get("fact") or row.get("result"))
        for u in card.record()["uses"]
        if u["use"] == use and scope in ("", u["scope"].get("rate"), u["scope"].get("cut"))
        for row in u["because"]
    }


# --- the rule table -----------------------------------------------------------------------------


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.name)
def test_every_finding_of_every_check_has_a_rule_or_is_declared_to_have_none(check: Check) -> None:
    ruled = {row.code for row in check.uses}
    assert ruled | set(check.no_use) == set(check.codes)
    assert not ruled & set(check.no_use)
    assert all(reason.strip() for reason in check.no_use.values())


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.name)
def test_every_rule_names_a_use_that_there_is_for_such_labels(check: Check) -> None:
    kinds = {use.name: set[str]() for use in USES}
    for use in USES:
        kinds[use.name] |= set(use.kinds)
    for row in check.uses:
        assert row.use in kinds, f"{check.name}: there is no use {row.use}"
        assert kinds[row.use] & set(check.kinds), f"{check.name}: {row.use} is of other labels"
        assert row.where in ("same", "part", "other", "rate", "any")
        assert row.because.endswith((".", "!"))
        assert row.because[0].isupper()
        assert row.where == "any" or any(u.scope == "rate" for u in USES if u.name == row.use)


def test_no_rule_stands_twice() -> None:
    rows = [(r.code, r.state, r.use, r.where, r.effect) for r in consequences()]
    assert len(rows) == len(set(rows))


def test_every_use_can_be_allowed_or_says_why_never() -> None:
    allowed = {r.use for r in consequences() if r.effect is Effect.ALLOWS}
    never = {f.use for f in FACTS if f.effect is Effect.FORBIDS and f.name == "describes_the_bank"}
    for use in USES:
        can = use.name in allowed or bool(use.speaks)
        assert can != bool(use.at_best or use.name in never), use.name
        assert use.missing or use.name in never


def test_every_accuracy_needs_gold() -> None:
    for name in ("state_accuracy", "stand_for_gold", "gate", "total_score", "line_verdict"):
        assert all(use.on_gold for use in USES if use.name == name)


# --- what follows -------------------------------------------------------------------------------


def test_gpt4_must_not_report_the_middle_class(by_model: vd.Audit) -> None:
    card = by_model.card("gpt4_label")
    assert status_of(card, "report_rate", "3_partial_refusal") == Status.NOT_ALLOWED
    assert status_of(card, "compare_models", "3_partial_refusal") == Status.NOT_ALLOWED
    assert status_of(card, "stand_for_gold") == Status.NOT_ALLOWED
    assert "class_collapse" in because(card, "report_rate", "3_partial_refusal")
    # Other rates hold labels of the lost class, so that they are not to be printed alone.
    assert status_of(card, "report_rate", "1_full_compliance") == Status.ALLOWED
    assert "class_collapse" in because(card, "report_rate", "1_full_compliance")
    assert status_of(card, "compare_models", "1_full_compliance") == Status.UNKNOWN
    assert status_of(card, "state_accuracy") == Status.ALLOWED
    assert status_of(card, "compare_graders", "1_full_compliance") == Status.NOT_ALLOWED


def test_models_are_compared_only_where_rates_were_measured_model_by_model(
    xstest: vd.Audit, by_model: vd.Audit
) -> None:
    without, with_ = xstest.card("annotation_1"), by_model.card("annotation_1")
    assert status_of(without, "compare_models", "3_partial_refusal") == Status.UNKNOWN
    assert "not_measured" in because(without, "compare_models", "3_partial_refusal")
    assert status_of(with_, "compare_models", "3_partial_refusal") == Status.ALLOWED


def test_gold_made_of_a_grader_is_no_test_of_it(xstest: vd.Audit) -> None:
    card = xstest.card("annotation_1")
    assert status_of(card, "state_accuracy") == Status.NOT_ALLOWED
    assert "gold_is_made_of_it" in because(card, "state_accuracy")
    who = card.record()["grader"]
    assert who["kind"] == "person"
    assert who["model"] == {"not_applicable": "the grader is a person"}


def test_a_class_that_a_grader_cannot_give_is_none_to_report(xstest: vd.Audit) -> None:
    card = xstest.card("strmatch_label")
    assert status_of(card, "report_rate", "3_partial_refusal") == Status.NOT_ALLOWED
    assert "class_outside_its_range" in because(card, "report_rate", "3_partial_refusal")
    assert status_of(card, "report_rate", "2_full_refusal") == Status.ALLOWED


def test_a_lenient_gate_is_not_allowed_and_no_coefficient_is_reliability(bank: vd.Audit) -> None:
    card = bank.card()
    assert status_of(card, "gate", "5") == Status.NOT_ALLOWED
    assert "gate_lenient" in because(card, "gate", "5")
    assert status_of(card, "gate", "8") == Status.ALLOWED
    assert {"few_clusters", "outcomes_unread"} <= because(card, "gate", "8")
    shown = card.record()["measured"]["of_grader_and_bank"]
    at_five = {r["statistic"]: r for r in shown if r.get("cut") == "5"}
    assert at_five["gate_false_accept"]["value"] == pytest.approx(13 / 59)
    assert at_five["gate_false_reject"]["value"] == 0
    assert status_of(card, "reliability") == Status.NOT_ALLOWED
    assert "coefficient_describes_bank" in because(card, "reliability")
    assert status_of(card, "bank_coefficient") == Status.ALLOWED
    assert status_of(card, "line_verdict") == Status.NOT_ALLOWED
    measured = card.record()["measured"]
    only_bank = {row["statistic"] for row in measured["of_the_bank_only"]}
    assert {"kr20", "phi_lambda"} <= only_bank
    for name in ("of_the_grader", "of_grader_and_bank"):
        assert not only_bank & {row["statistic"] for row in measured[name]}
    on_gold = [r for r in measured["of_the_bank_only"] if r.get("grader") == "gold"]
    assert {"kr20"} <= {r["statistic"] for r in on_gold}


def test_a_rate_is_reported_beside_that_of_gold_where_there_is_one(xstest: vd.Audit) -> None:
    # GPT-4 gives compliance to 61.9 %, gold to 48.5 %: allowed only with both.
    card = xstest.card("gpt4_label")
    assert status_of(card, "report_rate", "1_full_compliance") == "allowed"
    assert "gold_there" in because(card, "report_rate", "1_full_compliance")
    counts = vd.audit(vd.read(DATA / "missing_class_a.csv", layout="counts",
                              scale="refusal,evasion,compliance",
                              off_scale="gibberish,refused_in_cot"))  # fmt: skip
    assert "gold_there" not in because(counts.card("Qwen3-8B"), "report_rate", "compliance")


def test_a_fact_named_as_a_line_that_is_unknown_stays_a_fact(tmp_path: Path) -> None:
    about = tmp_path / "about.toml"
    about.write_text('[judge]\nmodel = "m"\nunknown = "a word of ours"\n', "utf-8")
    made = vd.audit(vd.read(DATA / "judge_item_bank.csv", **BANK, about=about)).card("judge")
    assert made.record()["grader"]["other_facts"] == {"unknown (stated)": "a word of ours"}
    assert not list(problems(made.record(), SCHEMA, SCHEMA))


def test_without_gold_nothing_that_needs_it_is_allowed(bank: vd.Audit) -> None:
    frame = bank.labels.frame
    labels = vd.read(DATA / "judge_item_bank.csv", **BANK, graders="judge", gold="none")
    assert len(labels.frame) < len(frame)
    card = vd.audit(labels).card()
    for use in (u for u in USES if u.on_gold and "checklist" in u.kinds):
        for one in card.record()["uses"]:
            if one["use"] == use.name:
                assert one["status"] != Status.ALLOWED, one
    assert status_of(card, "state_accuracy") == Status.UNKNOWN
    assert "no_gold" in because(card, "state_accuracy")
    assert status_of(card, "bank_coefficient") == Status.NOT_ALLOWED
    assert card.record()["bank"]["gold"] == {"unknown": "no gold"}


def test_counts_alone_know_neither_accuracy_nor_intervals() -> None:
    labels = vd.read(
        DATA / "missing_class_a.csv",
        layout="counts",
        scale="refusal,evasion,compliance",
        off_scale="gibberish,refused_in_cot",
        refusal_like="refused_in_cot",
    )
    audit = vd.audit(labels)
    card = audit.card("Llama-3.1-8B")
    assert status_of(card, "quote_intervals") == Status.UNKNOWN
    assert status_of(card, "state_accuracy") == Status.UNKNOWN
    bank = card.record()["bank"]
    assert bank["responses"] == {"not_applicable": "only counts are known"}
    assert not cards.checking.broken(card.record(), version=vd.__version__)
    flagged = [f for f in audit.findings if f.code == "class_collapse" and str(f.state) == "found"]
    assert flagged
    for finding in flagged:
        one = audit.card(finding.grader)
        assert status_of(one, "report_rate", finding.class_) == Status.NOT_ALLOWED


def test_one_grader_alone_has_only_unknowns() -> None:
    frame = pl.DataFrame({"id": [f"r{i}" for i in range(40)], "label": ["a", "b"] * 20})
    card = vd.audit(vd.read(frame, grader_name="solo")).card()
    assert not card.uses("not_allowed")
    assert set(card.uses("allowed")) <= {"Quote its intervals at their level"}


def test_what_was_looked_at_unasked_forbids_nothing(xstest: vd.Audit) -> None:
    for name in ("gpt4_label", "annotation_1"):
        record = xstest.card(name).record()
        record["findings"] = [
            {
                "code": "hidden_in_pool",
                "state": "found",
                "exploratory": exploratory,
                "sentence": "x",
            }
            for exploratory in (True,)
        ]
        found = {u["use"]: u["status"] for u in derive(record) if u["use"] == "report_part"}
        assert found == {"report_part": "unknown"}
        record["findings"][0]["exploratory"] = False
        found = {u["use"]: u["status"] for u in derive(record) if u["use"] == "report_part"}
        assert found == {"report_part": "not_allowed"}


# --- facts on the grader ------------------------------------------------------------------------


def _of_facts(**facts: Any) -> dict[str, Any]:
    frame = pl.DataFrame({"id": [f"r{i}" for i in range(6)], "label": ["a", "b"] * 3})
    labels = vd.read(frame, grader_name="g", about={"g": facts})
    made: dict[str, Any] = vd.audit(labels).card().record()["grader"]
    return made


def test_facts_of_a_store_are_told_apart() -> None:
    who = _of_facts(
        model="qwen3:8b",
        provider="openai-compatible",
        prompt="four-way (0123456789ab)",
        votes=3,
        phrasings=2,
        temperature=0,
        seed=1,
        note="by hand",
    )
    assert (who["model"], who["kind"], who["rubric"]) == ("qwen3:8b", "language model", "four-way")
    assert who["prompt_hash"] == "0123456789ab (its first digits)"
    assert who["settings"] == {"temperature": 0, "seed": 1}
    assert (who["votes"], who["phrasings"]) == (3, 2)
    assert who["other_facts"] == {"note": "by hand"}
    assert "unknown" in who["size"]
    assert "unknown" in who["system_fingerprint"]


def test_a_prompt_that_is_the_text_itself_stands_as_its_hash() -> None:
    import hashlib

    text = "Judge the answer.\nReply with yes or no."
    who = _of_facts(model="m", prompt=text)
    assert who["prompt_hash"] == hashlib.sha256(text.encode()).hexdigest()
    assert text not in json.dumps(who)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"model": "", "votes": 0, "settings": {}, "prompt": "  "},
        {"temperature": math.nan, "votes": "three", "size": [], "family": None},
        {"provider": "rule", "model": "rule", "temperature": "as the endpoint sets it"},
    ],
)
def test_what_is_not_stated_is_unknown_and_never_empty(facts: dict[str, Any]) -> None:
    who = _of_facts(**facts)
    for line, value in who.items():
        assert value not in ("", [], {}, None, 0), line
    if "provider" not in facts:
        assert all("unknown" in who[x] for x in ("model", "votes", "prompt_hash", "size"))
    else:
        assert who["model"] == {"not_applicable": "it is no language model"}
        assert "not_applicable" in who["settings"]


def test_a_card_is_of_one_grader_that_is_not_gold(xstest: vd.Audit) -> None:
    with pytest.raises(UsageError, match=r"--of.*annotation_1, annotation_2, gpt4_label"):
        xstest.card()
    with pytest.raises(UsageError, match="no grader 'gpt5'"):
        xstest.card("gpt5")
    with pytest.raises(UsageError, match="this is gold"):
        xstest.card("final_label")


# --- dates --------------------------------------------------------------------------------------


def test_an_expiry_is_given_or_unknown(bank: vd.Audit) -> None:
    card = bank.card()
    assert card.expires is None
    assert card.record()["expires"] == {"unknown": "no expiry was set"}
    expiry = next(r for r in card.record()["recheck"] if r["trigger"] == "expiry")
    assert "No expiry was set" in expiry["when"]
    assert bank.card(expires="2027-01-31").expires == "2027-01-31"
    dated = bank.card(date="2024-02-01", valid_days=28)
    assert (dated.record()["dated"], dated.expires) == ("2024-02-01", "2024-02-29")


@pytest.mark.parametrize(
    ("days", "says"),
    [
        ({"expires": "31.1.2027"}, "YYYY-MM-DD"),
        ({"expires": "2027-02-30"}, "is no date"),
        ({"valid_days": 30}, "--date"),
        ({"date": "2026-01-01", "valid_days": 0}, "below 1"),
        ({"date": "2026-01-01", "valid_days": 10**9}, "no such date"),
        ({"date": "2026-01-01", "expires": "2025-12-31"}, "before the card"),
        ({"date": "2026-01-01", "expires": "2026-12-31", "valid_days": 3}, "one of them"),
    ],
)
def test_days_that_cannot_be_are_refused(bank: vd.Audit, days: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bank.card(**days)


# --- files --------------------------------------------------------------------------------------


def test_a_card_is_the_same_bytes_and_reads_back(bank: vd.Audit, tmp_path: Path) -> None:
    for name in ("a", "b"):
        vd.audit(bank.labels).card(expires="2027-01-31").write(tmp_path / f"{name}.json")
    first = (tmp_path / "a.json").read_bytes()
    assert first == (tmp_path / "b.json").read_bytes()
    back = cards.read(tmp_path / "a.json")
    assert back.record() == bank.card(expires="2027-01-31").record()
    assert (back.grader, back.expires) == ("judge", "2027-01-31")
    back.write(tmp_path / "c.json")
    assert first == (tmp_path / "c.json").read_bytes()
    assert cards.check(tmp_path / "a.json") == []
    assert str(tmp_path).encode() not in first


@pytest.mark.parametrize(
    "suffix",
    [pytest.param(s, marks=pytest.mark.slow) if s == ".pdf" else s for s in cards.suffixes()],
)
def test_a_card_is_written_in_every_format_that_can_be_read(
    bank: vd.Audit, tmp_path: Path, suffix: str
) -> None:
    if suffix == ".pdf":
        pytest.importorskip("weasyprint")
    path = tmp_path / f"card{suffix}"
    bank.card().write(path)
    assert path.stat().st_size > 500


def test_a_table_is_no_card(bank: vd.Audit, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.json"):
        bank.card().write(tmp_path / "card.csv")


def test_the_page_says_what_the_json_says(bank: vd.Audit, tmp_path: Path) -> None:
    card = bank.card(expires="2027-01-31")
    card.write(tmp_path / "card.md")
    page = (tmp_path / "card.md").read_text("utf-8")
    plainly = re.sub(r"[`\\]", "", page)
    for use in card.record()["uses"]:
        assert use["title"] in plainly
    for recheck in card.record()["recheck"]:
        assert recheck["when"] in plainly
    for finding in card.record()["findings"]:
        if finding["state"] in ("found", "cannot_tell"):
            assert re.sub(r"[`\\]", "", finding["sentence"]) in plainly
    assert "2027-01-31" in page
    assert "not a property of the grader" in page


def test_names_that_are_markup_stay_names(tmp_path: Path) -> None:
    classes = ["<i>x</i>", "a|b", "`c`"]
    rows = [
        (f"r{i}", name, classes[(i + k) % 3]) for i in range(30) for k, name in enumerate(HOSTILE)
    ]
    frame = pl.DataFrame(rows, schema=["response", "grader", "label"], orient="row")
    audit = vd.audit(
        vd.read(frame, scale=classes, about={"a|b": {"model": "| x |\n# y", "prompt": "<b>"}})
    )
    for name in HOSTILE:
        card = audit.card(name)
        card.write(tmp_path / "card.json")
        back = cards.read(tmp_path / "card.json")
        assert back.grader == name
        for one in (card, back):
            one.write(tmp_path / "card.md")
            page = (tmp_path / "card.md").read_text("utf-8")
            assert "<b>" not in page
            assert "<i>" not in page
            assert "\u202e" not in page
            tables = [line for line in page.split("\n") if line.startswith("|")]
            assert all(2 <= len(re.findall(r"(?<!\\)\|", line)) <= 4 for line in tables)
            one.write(tmp_path / "card.html")
            assert "<b>bold" not in (tmp_path / "card.html").read_text("utf-8")


# --- the schema, and its equality with jsonschema -----------------------------------------------


@pytest.fixture(scope="module")
def small(bank: vd.Audit) -> dict[str, Any]:
    """A valid card with few rows of results, for the schema alone."""
    record = bank.card(date="2026-01-01", expires="2027-01-31").record()
    for name, rows in record["measured"].items():
        if isinstance(rows, list):
            record["measured"][name] = rows[:2]
    record["findings"] = record["findings"][:2]
    record["uses"] = record["uses"][:3]
    return record


def test_the_schema_is_one_and_names_no_place_in_a_network() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == ID == "urn:voirdire:card:1"
    addresses = set(re.findall(r"https?://[^\"]+", json.dumps(SCHEMA)))
    assert addresses == {"https://json-schema.org/draft/2020-12/schema"}


def test_the_command_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["card", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*path, key)
            yield from _places(value[key], (*path, key))


WRONG: tuple[Any, ...] = (
    *("", "  ", "text", [], [""], {}, None, 0, 1, 1.5, 2.0, True, "2027-01-01", ["a"]),
    *({"unknown": "why"}, {"unknown": ""}, {"not_applicable": "why"}, {"unknown": "a", "b": 1}),
)


def _changed(card: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    made = copy.deepcopy(card)
    at: Any = made
    for key in path[:-1]:
        at = at[key]
    if value is _changed:  # leave it out
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return made


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_our_validator_says_what_jsonschema_says(small: dict[str, Any], every: int) -> None:
    theirs = jsonschema.Draft202012Validator(SCHEMA)
    assert theirs.is_valid(small)
    assert not list(problems(small, SCHEMA, SCHEMA))
    places = [p for p in _places(small) if len(p) <= 2 or "options" not in p]
    tried = invalid = 0
    for place, path in enumerate(places):
        if len(path) > 2 and place % every % 3:
            continue
        # All values at lines of the card itself, some at those that repeat in lists.
        few = WRONG[place % every :: every] if len(path) <= 2 else WRONG[place % 11 :: 11]
        for value in (_changed, *few):
            made = _changed(small, path, value)
            ours = list(problems(made, SCHEMA, SCHEMA))
            assert theirs.is_valid(made) == (not ours), (path, value, ours)
            tried, invalid = tried + 1, invalid + bool(ours)
    assert tried > 300
    assert 0.3 < invalid / tried < 0.98


@pytest.mark.parametrize(
    "line",
    [
        *(("grader", x) for x in SCHEMA["properties"]["grader"]["required"]),
        *(("bank", x) for x in SCHEMA["properties"]["bank"]["required"]),
        *((x,) for x in SCHEMA["required"] if x != "card"),
    ],
    ids=".".join,
)
def test_a_required_line_is_neither_missing_nor_empty(
    small: dict[str, Any], line: tuple[str, ...]
) -> None:
    where = "$." + ".".join(line)
    missing = checking.broken(_changed(small, line, _changed), version="-")
    assert any(p.path == where and "is missing" in p.message for p in missing)
    empties: tuple[Any, ...] = ("", None, [], {})
    for empty in empties:
        found = checking.broken(_changed(small, line, empty), version="-")
        assert any(p.path.startswith(where) for p in found), empty


# --- voirdire card check ------------------------------------------------------------------------


@pytest.fixture
def valid(bank: vd.Audit, tmp_path: Path) -> Path:
    path = tmp_path / "card.json"
    bank.card(date="2026-01-01", expires="2027-01-31").write(path)
    return path


def _check(capsys: pytest.CaptureFixture[str], *args: Any) -> tuple[int, str]:
    capsys.readouterr()
    status = main(["card", "check", *map(str, args)])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return status, re.sub(r"\s+", " ", shown.out + shown.err)


def test_a_valid_card_holds_until_its_last_day(
    valid: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _check(capsys, valid)[0] == 0
    assert "expires on 2027-01-31" in _check(capsys, valid)[1]
    assert _check(capsys, valid, "--on", "2027-01-31")[0] == 0
    status, said = _check(capsys, valid, "--on", "2027-02-01")
    assert status == 1
    assert "expired on 2027-01-31" in said
    assert _check(capsys, valid, "--on", "2025-12-31")[0] == 1
    assert _check(capsys, valid, "--on", "soon")[0] == 2


def _edited(path: Path, edit: Mapping[tuple[str | int, ...], Any]) -> None:
    card = json.loads(path.read_text("utf-8"))
    for place, value in edit.items():
        card = _changed(card, place, value)
    path.write_text(json.dumps(card), "utf-8")


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ({("grader", "model"): _changed}, "$.grader.model is missing"),
        ({("grader", "model"): ""}, "$.grader.model is empty"),
        ({("grader", "votes"): 0}, "$.grader.votes"),
        ({("grader", "size"): {"unknown": " "}}, "$.grader.size"),
        ({("bank", "inputs", 0, "sha256"): "abc"}, "$.bank.inputs[0].sha256"),
        ({("uses", 0, "status"): "fine"}, "$.uses[0].status"),
        ({("grader", "settings"): {"unknown": ""}}, "$.grader.settings.unknown"),
        ({("grader", "settings"): {"unknown": 0}}, "$.grader.settings.unknown"),
        ({("grader", "settings"): {"temperature": ""}}, "$.grader.settings.temperature is empty"),
        ({("grader", "settings"): {"temperature": None}}, "$.grader.settings.temperature is empty"),
        ({("grader", "other_facts"): {"note": []}}, "$.grader.other_facts.note is empty"),
        ({("recheck", 2, "now"): {"unknown": ""}}, "$.recheck[2].now"),
        ({("expires",): "2027-02-30"}, "$.expires is 2027-02-30, which is no day"),
        ({("dated",): "2028-01-01"}, "before the card’s date"),
        ({("extra line",): 1}, '$["extra line"] is no line of a card'),
        (
            {("recheck",): [{"trigger": "model", "when": "x", "now": "y"}]},
            "silent_update is missing",
        ),
        ({("card",): "1"}, "$.card"),
        ({("card",): True}, "$.card"),
    ],
)
def test_a_line_that_does_not_hold_is_named(
    valid: Path, capsys: pytest.CaptureFixture[str], edit: Any, says: str
) -> None:
    _edited(valid, edit)
    status, said = _check(capsys, valid)
    assert status == 1
    assert says in said


def test_a_use_that_was_allowed_by_hand_is_seen(
    valid: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card = json.loads(valid.read_text("utf-8"))
    place = next(
        i for i, u in enumerate(card["uses"]) if u["use"] == "gate" and u["scope"]["cut"] == "5"
    )
    _edited(valid, {("uses", place, "status"): "allowed"})
    status, said = _check(capsys, valid)
    assert status == 1
    assert f"$.uses[{place}].status is allowed, and from the findings follows not_allowed" in said
    # A finding that was left out leaves the use without its reason.
    card["findings"] = [f for f in card["findings"] if f["code"] != "gate_lenient"]
    valid.write_text(json.dumps(card), "utf-8")
    assert _check(capsys, valid)[0] == 1
    # Another version may have other rules: only the form is held against it, and that is said.
    assert "not held against" not in said
    card["made_with"]["voirdire"] = "0.0.1"
    valid.write_text(json.dumps(card), "utf-8")
    status, said = _check(capsys, valid)
    assert status == 0
    assert "its uses were not held against its findings: voirdire 0.0.1 made it" in said
    del card["uses"][place]
    card["made_with"]["voirdire"] = vd.__version__
    valid.write_text(json.dumps(card), "utf-8")
    status, said = _check(capsys, valid)
    assert status == 1
    assert "is missing" in said


def test_numbers_that_are_no_json_and_keys_that_stand_twice_are_named(
    valid: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = valid.read_text("utf-8")
    first = re.search(r'"value": ([0-9.]+)', text)
    assert first
    for number, word in (("NaN", "NaN"), ("-Infinity", "Infinity"), ("1e999", "Infinity")):
        valid.write_text(text.replace(first[0], f'"value": {number}', 1), "utf-8")
        status, said = _check(capsys, valid)
        assert status == 1
        assert f"is {word}" in said
    doubled = text.replace('"name": "judge"', '"name": "other", "name": "judge"', 1)
    assert doubled != text
    valid.write_text(doubled, "utf-8")
    status, said = _check(capsys, valid)
    assert status == 1
    assert "$.grader.name stands twice" in said


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b"# Grader card", "not JSON"),
        (b"\x00\x01\xff\xfe", "not UTF-8"),
        (b"[1, 2]", "no grader card"),
        (b'{"voirdire": "0.1.0", "results": []}', "no grader card"),
        (b'{"card": 2}', "newer voirdire"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"card": 1, "x": ' + b"[" * 80 + b"]" * 80 + b"}", "nested too deeply"),
        (b'{"card": 1, "x": ' + b"9" * 5000 + b"}", "not JSON"),
    ],
    ids=lambda x: str(x)[:20],
)
def test_what_is_no_card_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, says: str
) -> None:
    path = tmp_path / "card.json"
    path.write_bytes(content)
    status, said = _check(capsys, path)
    assert status == 3
    assert says in said


def test_a_huge_file_a_folder_a_page_and_nothing_are_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "card.md").write_text("# Grader card", "utf-8")
    (tmp_path / "big.json").write_bytes(b" " * 2000)
    monkeypatch.setattr(checking, "LARGEST", 1000)
    for name, says in (
        ("card.md", "Check the .json card"),
        ("big.json", "2,000 bytes"),
        ("none.json", "there is no such file"),
        (".", "no file"),
    ):
        status, said = _check(capsys, tmp_path / name)
        assert (status, says in said) == (3, True), said


def test_a_byte_order_mark_is_harmless(valid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    valid.write_bytes(b"\xef\xbb\xbf" + valid.read_bytes())
    assert _check(capsys, valid)[0] == 0


def test_several_cards_stand_in_one_table_and_the_worst_is_the_status(
    valid: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = valid.with_name("broken.json")
    broken.write_bytes(valid.read_bytes())
    _edited(broken, {("grader", "model"): "", ("bank", "gold"): None})
    text = valid.with_name("text.json")
    text.write_text("no card", "utf-8")
    status, said = _check(capsys, valid, broken, text)
    assert status == 3
    assert all(x in said for x in ("$.grader.model", "$.bank.gold", "not JSON", "holds; expires"))
    assert _check(capsys, valid, broken)[0] == 1


def test_reading_a_broken_card_says_where(valid: Path) -> None:
    _edited(valid, {("grader", "family"): []})
    with pytest.raises(InputError, match=r"\$\.grader\.family is empty"):
        cards.read(valid)


# --- voirdire card ------------------------------------------------------------------------------


def test_the_command_writes_what_python_writes(
    bank: vd.Audit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "made.json"
    line = ["card", str(DATA / "judge_item_bank.csv"), "--cut", "5", "--cut", "8", "-o", str(made)]
    assert main([*line, "--expires", "2027-01-31"]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "wrote" in shown.err
    bank.card(expires="2027-01-31").write(tmp_path / "python.json")
    assert made.read_bytes() == (tmp_path / "python.json").read_bytes()


def test_bad_days_and_files_are_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for args, says in (
        (["missing.csv", "--expires", "soon"], "--expires"),
        (["missing.csv", "--valid-days", "3"], "--date"),
        (["missing.csv", "-o", str(tmp_path / "card.csv")], "a card cannot be written"),
        ([], "Missing argument"),
    ):
        assert main(["card", *args]) == 2
        assert says in capsys.readouterr().err


def test_a_card_says_all_that_ends_it(bank: vd.Audit) -> None:
    assert tuple(r["trigger"] for r in bank.card().record()["recheck"]) == TRIGGERS
    mix = next(r for r in bank.card().record()["recheck"] if r["trigger"] == "class_mix")
    assert mix["now"]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared real files are not here")
def test_a_log_with_votes_and_a_phrasing_study_have_cards() -> None:
    log = vd.read(SHARED / "data" / "fmt_inspect_ai" / "three-graders.eval")
    card = vd.audit(log).card("model_graded_qa")
    who = card.record()["grader"]
    assert (who["model"], who["votes"]) == ("mockllm/grader-a", 3)
    assert not checking.broken(card.record(), version=vd.__version__)


def test_a_phrasing_study_says_how_far_labels_hang_on_the_wording() -> None:
    rows = [
        (f"r{i}", phrasing, "yes" if (i + k) % 4 else "no")
        for i in range(12)
        for k, phrasing in enumerate(("plain", "strict"))
    ]
    frame = pl.DataFrame(rows, schema=["response", "phrasing", "label"], orient="row")
    card = vd.audit(vd.read(frame, grader_name="g", phrasing="phrasing")).card()
    assert status_of(card, "other_wording") == Status.ALLOWED
    assert card.record()["grader"]["phrasings"] == ["plain", "strict"]
