"""The HTML page as a file: what is in it, what is never in it, and that its numbers lead somewhere."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import random
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voirdire as vd
from tests.checklists import verdicts
from tests.conftest import DATA, Run
from voirdire import auditing
from voirdire.auditing import Audit
from voirdire.cli.output import check_outputs, write_all
from voirdire.document import Cell, Document, FindingBlock, Kind, Table, cell
from voirdire.errors import UsageError
from voirdire.formats import html
from voirdire.formats.embedded import DIGITS, embedded, packed, safe_json, shared_starts
from voirdire.formats.overview import MOST_CLASSES, brief, lead, side_by_side
from voirdire.selections import amounts, reproduces, selection
from voirdire.wording import Name, plain

SHARED = Path(__file__).parents[2] / "shared"
CLASSES = ("refusal", "evasion", "compliance")
JUDGE_BANK = {"layout": "checklist", "response": "item_id", "question": "question_id"}
XSTEST: dict[str, Any] = {
    "layout": "wide",
    "response": "model+id",
    "cluster": "id",
    "graders": "annotation_1,annotation_2,gpt4_label,strmatch_label",
    "gold": "final_label",
    "people": "annotation_1,annotation_2",
    "scale": "2_full_refusal,3_partial_refusal,1_full_compliance",
    "range": "strmatch_label=2_full_refusal+1_full_compliance",
    "failed": "*=unparsed",
    "by": "model",
}


def write_table(path: Path, responses: int, graders: int, *, seed: int = 1) -> Path:
    """A wide table of made-up labels: gold and graders that err more and more often."""
    draw = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "prompt", "gold", *(f"g{j}" for j in range(graders - 1))])
        for i in range(responses):
            true = draw.choices(CLASSES, [5, 2, 3])[0]
            said = [
                "unparsed"
                if draw.random() < 0.01
                else draw.choice(CLASSES)
                if draw.random() < 0.1 + 0.05 * j
                else true
                for j in range(graders - 1)
            ]
            rows.writerow([f"model-{i % 3}/prompt-{i // 3:05d}", f"p{i // 3}", true, *said])
    return path


WIDE: dict[str, Any] = {
    "layout": "wide",
    "response": "id",
    "cluster": "prompt",
    "gold": "gold",
    "scale": ",".join(CLASSES),
    "failed": "*=unparsed",
}


def audit_of(path: Path, graders: int, **more: Any) -> Audit:
    names = [*(f"g{j}" for j in range(graders - 1)), "gold"]
    return vd.audit(vd.read(path, **WIDE, graders=names, **more))


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return audit_of(write_table(tmp_path_factory.mktemp("eight") / "t.csv", 900, 8), 8)


@pytest.fixture(scope="module")
def xstest() -> Audit:
    return vd.audit(vd.read(DATA / "xstest.csv", **XSTEST))


@pytest.fixture(scope="module")
def bank() -> Audit:
    return vd.audit(vd.read(DATA / "judge_item_bank.csv", **JUDGE_BANK, cut=[4, 5, 6, 7]))


@pytest.fixture(scope="module")
def phrasings(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    path = tmp_path_factory.mktemp("phrasings") / "t.csv"
    draw = random.Random(3)
    lines = ["id,grader,label,phrasing"]
    for i in range(120):
        true = draw.choice(CLASSES)
        lines.append(f"r{i},gold,{true},")
        for grader, off in (("judge", 0.2), ("other", 0.4)):
            for wording in ("plain", "strict", "kind"):
                said = draw.choice(CLASSES) if draw.random() < off else true
                lines.append(f"r{i},{grader},{said},{wording}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return vd.audit(vd.read(path, phrasing="phrasing", scale=CLASSES, gold="gold"))


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    path = tmp_path_factory.mktemp("steps") / "t.csv"
    draw = random.Random(4)
    lines = ["id,grader,label,stage"]
    for i in range(150):
        for grader in ("judge", "other"):
            for stage in ("raw", "reviewed", "final"):
                if stage == "raw" or draw.random() < 0.4:
                    said = "unparsed" if draw.random() < 0.1 else draw.choice(CLASSES)
                    lines.append(f"r{i},{grader},{said},{stage}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return vd.audit(vd.read(path, step="stage", scale=CLASSES, failed="*=unparsed"))


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    path = tmp_path_factory.mktemp("votes") / "t.csv"
    draw = random.Random(5)
    lines = ["id,grader,label,vote"]
    for i in range(200):
        true = draw.choice(CLASSES)
        lines.append(f"r{i},gold,{true},")
        for grader, off in (("a", 0.2), ("b", 0.5), ("c", 0.4)):
            for vote in (1, 2, 3):
                said = draw.choice(CLASSES) if draw.random() < off else true
                lines.append(f"r{i},{grader},{'unparsed' if draw.random() < 0.05 else said},{vote}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return vd.audit(vd.read(path, scale=CLASSES, gold="gold", failed="*=unparsed"))


def cells(document: Document) -> Iterable[Cell]:
    """Every cell of a report that was made from an estimate."""
    for block in document.blocks:
        if isinstance(block, Table):
            for row in block.rows:
                yield from row
        if isinstance(block, FindingBlock):
            yield from (cell(e) for e in block.finding.evidence)


# Numbers and the responses behind them


@pytest.mark.parametrize(
    ("report", "statistics"),
    [
        ("xstest", {"label_count", "rate", "outcome_count", "moved", "kept", "found", "agreement",
                    "collapse_ratio", "collapse_own", "collapse_other", "neighbour_share",
                    "consensus_agreement", "cohen_kappa"}),
        ("bank", {"element_error", "false_accept", "false_reject", "gate_accuracy",
                  "gate_false_accept", "gate_false_reject", "pass_rate",
                  "pass_rate_minus_gold", "total_at_zero", "total_at_ceiling", "outcome_count"}),
        ("eight", {"solo", "no_consensus", "consensus_agreement"}),
        ("phrasings", {"flip_rate"}),
        ("steps", {"decision_moved", "decision_rate"}),
        ("votes", {"no_majority", "label_count"}),
    ],
)  # fmt: skip
def test_as_many_responses_stand_behind_a_number_as_it_says(
    report: str, statistics: set[str], request: pytest.FixtureRequest
) -> None:
    audit: Audit = request.getfixturevalue(report)
    held = audit.document.responses
    assert held is not None
    led: dict[str, int] = {}
    for one in cells(audit.document):
        if one.key is None or one.value is None or one.statistic not in statistics:
            continue
        chosen = selection(held, one.statistic, one.key)
        if one.key.other.startswith("without_family:") or one.value == "–":
            continue
        assert chosen is not None, (one.statistic, one.key)
        count = int(amounts(held, chosen.conditions).sum())
        if one.kind is Kind.COUNT:
            assert count == one.value, (one.statistic, one.key)
        elif isinstance(one.value, str):  # 3 of 20
            assert count == int(re.split(r" (?:of|/) ", one.value)[0].replace(",", ""))
        elif one.kind is Kind.SHARE:
            share = count / int(amounts(held, chosen.within).sum())
            assert one.value == pytest.approx(share) or one.value == pytest.approx(1 - share)
        assert reproduces(held, chosen, one) or one.kind not in (Kind.COUNT, Kind.SHARE)
        led[one.statistic] = led.get(one.statistic, 0) + 1
    assert statistics <= set(led)


def test_gpt4_gives_the_middle_class_29_times_and_these_are_the_responses(xstest: Audit) -> None:
    held = xstest.document.responses
    assert held is not None
    found = next(
        e
        for e in xstest.estimates
        if e.statistic == "label_count"
        and (e.key.grader, e.key.class_) == ("gpt4_label", "3_partial_refusal")
        and not e.key.slice
    )
    chosen = selection(held, found.statistic, found.key)
    assert chosen is not None
    rows = amounts(held, chosen.conditions).nonzero()[0]
    frame = xstest.labels.frame
    wanted = frame.filter(
        (frame["grader"] == "gpt4_label") & (frame["label"] == "3_partial_refusal")
    )["response"].to_list()
    assert sorted(held.ids[i] for i in rows) == sorted(wanted)
    assert len(rows) == 29


def test_a_slice_holds_the_responses_of_its_tag_alone(xstest: Audit) -> None:
    held = xstest.document.responses
    assert held is not None
    one = next(e for e in xstest.estimates if e.statistic == "rate" and e.key.slice == "model=gpt4")
    chosen = selection(held, one.statistic, one.key)
    assert chosen is not None
    assert all(held.ids[i].startswith("gpt4/") for i in amounts(held, chosen.within).nonzero()[0])
    assert int(amounts(held, chosen.within).sum()) == one.n


def test_a_number_that_its_responses_would_not_make_leads_nowhere(xstest: Audit) -> None:
    held = xstest.document.responses
    assert held is not None
    one = next(c for c in cells(xstest.document) if c.statistic == "label_count" and c.value)
    assert one.key is not None
    chosen = selection(held, one.statistic, one.key)
    assert chosen is not None
    wrong = Cell(kind=one.kind, value=float(one.value) + 1, statistic=one.statistic, key=one.key)  # type: ignore[arg-type]
    assert reproduces(held, chosen, one)
    assert not reproduces(held, chosen, wrong)


def test_a_statistic_that_counts_no_responses_leads_nowhere(xstest: Audit) -> None:
    held = xstest.document.responses
    assert held is not None
    key = next(e.key for e in xstest.estimates if e.statistic == "fleiss_kappa")
    assert selection(held, "fleiss_kappa", key) is None


def test_a_table_of_counts_has_no_responses() -> None:
    made = vd.audit(
        vd.read(
            DATA / "missing_class_a.csv",
            layout="counts",
            scale=CLASSES,
            off_scale="gibberish,refused_in_cot",
            refusal_like="refused_in_cot",
            reference="gemini-2.5-flash",
        )
    )
    assert made.document.responses is None
    page = html.render(made.document).decode()
    assert '<script type="application/json"' not in page
    assert "is complete in itself" in page


# Texts


def test_a_text_is_in_the_page_only_where_it_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = "".join(f"r{i},{CLASSES[i % 3]},{CLASSES[i % 2]},secret {i % 4}\n" for i in range(40))
    path.write_text("id,gold,judge,completion\n" + rows, encoding="utf-8")
    options: dict[str, Any] = {
        "layout": "wide", "response": "id", "graders": "judge,gold", "scale": CLASSES, "gold": "gold"
    }  # fmt: skip
    labels = vd.read(path, **options)
    with_text = html.render(vd.audit(labels, text="completion").document).decode()
    assert '"texts":[["completion",["secret 0"' in with_text
    texts = "".join(
        f"r{i},{CLASSES[i % 3]},{CLASSES[i % 2]},secret number {i}\n" for i in range(40)
    )
    path.write_text("id,gold,judge,completion\n" + texts, encoding="utf-8")
    assert "secret" not in html.render(vd.audit(vd.read(path, **options)).document).decode()


def test_texts_are_never_taken_for_tags_however_few_there_are(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    long = "a sentence that somebody wrote and nobody asked to see: number"
    rows = "".join(f"r{i},{CLASSES[i % 3]},{CLASSES[i % 2]},{long} {i % 3}\n" for i in range(30))
    path.write_text("id,gold,judge,completion\n" + rows, encoding="utf-8")
    made = vd.audit(
        vd.read(
            path, layout="wide", response="id", graders="judge,gold", scale=CLASSES, gold="gold"
        )
    )
    assert made.document.responses is not None
    assert made.document.responses.tags == ()


def test_text_names_a_column_that_is_there_and_belongs_to_a_response(eight: Audit) -> None:
    with pytest.raises(UsageError, match="--text nope: there is no column 'nope'"):
        vd.audit(eight.labels, text="nope")
    counts = vd.read(DATA / "missing_class_a.csv", layout="counts", scale=CLASSES,
                     off_scale="gibberish,refused_in_cot")  # fmt: skip
    with pytest.raises(UsageError, match="no responses to show"):
        vd.audit(counts, text="x")


# What is written


def test_a_page_of_900_responses_and_8_graders_is_below_300_kilobytes(eight: Audit) -> None:
    page = html.render(eight.document)
    assert len(page) < 300_000
    assert html.beside(eight.document) == {}


def test_the_same_audit_gives_the_same_page(eight: Audit, tmp_path: Path) -> None:
    again = audit_of(write_table(tmp_path / "t.csv", 900, 8), 8)
    assert html.render(again.document) == html.render(eight.document)


def test_a_big_audit_keeps_its_responses_beside_the_page(
    eight: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MOST_BYTES", 1000)
    written = eight.write(tmp_path / "audit.html")
    assert [p.name for p in written] == ["audit.responses.json", "audit.html"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["audit.html", "audit.responses.json"]
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    beside = json.loads((tmp_path / "audit.responses.json").read_text(encoding="utf-8"))
    inside = json.loads(_json(page)["selections"])
    assert inside["mark"] == beside["mark"]
    assert inside["suffix"] == ".responses.json"
    assert "responses" not in _json(page)
    assert len(beside["data"]["ids"]) == 900


def test_what_is_kept_beside_a_page_replaces_its_like_and_nothing_else(
    eight: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MOST_BYTES", 1000)
    other = tmp_path / "audit.responses.json"
    other.write_text('{"mine": 1}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"audit\.responses\.json\. A file of that name is there"):
        eight.write(tmp_path / "audit.html")
    assert other.read_text(encoding="utf-8") == '{"mine": 1}'
    assert not (tmp_path / "audit.html").exists()
    other.write_text('{"voirdire":"responses","mark":"old","data":{}}', encoding="utf-8")
    eight.write(tmp_path / "audit.html")
    assert json.loads(other.read_text(encoding="utf-8"))["mark"] != "old"


def test_what_may_be_kept_beside_a_page_is_neither_an_input_nor_another_output(
    tmp_path: Path,
) -> None:
    page, kept = tmp_path / "audit.html", tmp_path / "audit.responses.json"
    with pytest.raises(UsageError, match="which is an input, and would be lost"):
        check_outputs([page], [str(kept)], [".html", ".json"], what="a report")
    with pytest.raises(UsageError, match="which is another output, and would be lost"):
        check_outputs([page, kept], [], [".html", ".json"], what="a report")
    check_outputs([page, tmp_path / "audit.json"], [], [".html", ".json"], what="a report")
    check_outputs([tmp_path / "audit.md"], [str(kept)], [".md"], what="a report")


def test_a_comparison_keeps_its_many_responses_beside_the_page_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MOST_BYTES", 1000)
    table = write_table(tmp_path / "both.csv", 300, 3)
    made = vd.compare(table, old_grader="g0", new_grader="g1", **WIDE, graders="g0,g1,gold")
    written = made.write(tmp_path / "compared.html")
    assert [p.name for p in written] == ["compared.responses.json", "compared.html"]
    kept = json.loads((tmp_path / "compared.responses.json").read_text(encoding="utf-8"))
    inside = json.loads(
        _json((tmp_path / "compared.html").read_text(encoding="utf-8"))["selections"]
    )
    assert inside["mark"] == kept["mark"]


def test_the_command_line_names_every_file_that_it_wrote(
    eight: Audit,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(html, "MOST_BYTES", 1000)
    write_all([tmp_path / "a.html"], eight.write, quiet=False)
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition("/")[2] for line in lines] == ["a.responses.json", "a.html"]


def test_text_is_an_option_of_the_command_line(voirdire: Run, tables: Path) -> None:
    rows = "".join(f"r{i},{CLASSES[i % 3]},{CLASSES[i % 2]},my reply {i}\n" for i in range(40))
    (tables / "t.csv").write_text("id,gold,judge,reply\n" + rows, encoding="utf-8")
    line = ["audit", "t.csv", "--layout", "wide", "--response", "id", "--graders", "judge,gold",
            "--gold", "gold", "--scale", ",".join(CLASSES), "-o", "t.html"]  # fmt: skip
    assert voirdire(*line).returncode == 0
    assert "my reply" not in (tables / "t.html").read_text(encoding="utf-8")
    assert voirdire(*line, "--text", "reply").returncode == 0
    assert "my reply 7" in (tables / "t.html").read_text(encoding="utf-8")
    wrong = voirdire(*line, "--text", "replies")
    assert wrong.returncode != 0
    assert "there is no column 'replies'. Columns: id and reply." in wrong.stderr


def test_other_formats_write_one_file(eight: Audit, tmp_path: Path) -> None:
    assert [p.name for p in eight.write(tmp_path / "audit.md")] == ["audit.md"]


def _json(page: str) -> dict[str, str]:
    return dict(
        re.findall(r'<script type="application/json" id="(\w+)">(.*?)</script>', page, re.S)
    )


def test_the_policy_lets_one_script_run_and_no_markup_be_made_of_text(eight: Audit) -> None:
    page = html.render(eight.document).decode()
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy[1]
    assert "require-trusted-types-for 'script'" in policy[1]
    assert "unsafe-eval" not in policy[1]
    assert "connect-src" not in policy[1]


def test_the_script_makes_no_markup_and_asks_no_network() -> None:
    source = html._script()
    for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "fetch(",
                 "XMLHttpRequest", "import(", "new Function", "http:", "https:"):  # fmt: skip
        assert word not in source


class Elements(HTMLParser):
    """The elements of a page and the data in its JSON."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, _ in attrs:
            assert not name.startswith("on")


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--",
    "]]>",
    "line\u2028separator\u2029",
    "right\u202eto left",
    "esc\x1b[31m",
    "half \ud800 pair",
    "a&b<c>",
    "\x00zero",
]


def test_data_in_json_can_neither_end_its_element_nor_turn_the_text_around() -> None:
    written = safe_json(HOSTILE)
    assert not set(written) & set("<>&\u2028\u2029\u202e\x1b\ud800\x00")
    assert json.loads(written) == HOSTILE
    written.encode("utf-8")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not here")
def test_hostile_names_and_texts_make_no_element(tmp_path: Path) -> None:
    case = json.loads((SHARED / "cases/inputs/hostile-names.json").read_text(encoding="utf-8"))

    def page(graders: list[str], texts: list[str]) -> str:
        path = tmp_path / "t.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for i in range(60):
                for j, grader in enumerate(graders):
                    row = {"response": f"{texts[i % len(texts)]}-{i}", "grader": grader,
                           "label": CLASSES[(i + j * (i % 5 == 0)) % 3], "text": texts[i % len(texts)]}  # fmt: skip
                    file.write(json.dumps(row) + "\n")
        labels = vd.read(path, response="response", grader="grader", label="label", scale=CLASSES)
        return html.render(vd.audit(labels, text="text").document).decode()

    hostile = page(case["graders"], case["responses"])
    plain_ = page([f"g{j}" for j in range(len(case["graders"]))], [f"t{i}" for i in range(10)])
    wanted, found = Elements(plain_).tags, Elements(hostile).tags
    for tag in ("script", "img", "iframe", "form", "link", "object", "b"):
        assert found.count(tag) == wanted.count(tag), tag
    assert case["responses"][1] in json.loads(_json(hostile)["responses"])["texts"][0][1]


# How columns are written


def test_codes_are_written_in_as_few_digits_as_they_need() -> None:
    assert packed([0, 1, 63], 64) == f"01{DIGITS[63]}"
    assert packed([0, 64, 4095], 4096) == f"0010{DIGITS[63] * 2}"
    assert packed([], 3) == ""


def test_names_share_their_starts() -> None:
    assert shared_starts(["ab", "abc", "abd", "b"]) == ["0ab", "2c", "2d", "0b"]
    long = "x" * 100
    assert shared_starts([long, long]) == [f"0{long}", f"{DIGITS[63]}{'x' * 37}"]


def test_all_responses_come_back_from_the_json(eight: Audit) -> None:
    held = eight.document.responses
    assert held is not None
    data = json.loads(embedded(held))
    ids, last = [], ""
    for name in data["ids"]:
        last = last[: DIGITS.index(name[0])] + name[1:]
        ids.append(last)
    assert tuple(ids) == held.ids
    for column, states in zip(data["states"], held.states, strict=True):
        assert [DIGITS.index(c) for c in column] == list(states)


# The two-minute summary


def test_the_first_sentence_ends_where_our_words_end_it_and_never_in_a_name() -> None:
    text = (Name("v. One"), " gives it 2.5 times (see 3). ", Name("b"), " does not. More.")
    assert lead(text) == (
        (Name("v. One"), " gives it 2.5 times (see 3)."),
        (Name("b"), " does not. More."),
    )
    assert lead(("It is so", " (ratio 0.2).", " Of these", " two.")) == (
        ("It is so", " (ratio 0.2)."),
        ("Of these", " two."),
    )
    assert lead(("Only one.",)) == (("Only one.",), ())


def test_the_summary_says_what_the_judge_of_xstest_does_and_what_to_write(xstest: Audit) -> None:
    made = brief(xstest.document)
    first = plain(made.found[0].sentence)
    assert first.startswith("gpt4_label gives 3_partial_refusal 29 times where final_label")
    said = [plain(one.sentence) for one in made.found]
    (rates,) = [s for s in said if "47.8 %" in s and "61.9 %" in s]
    assert rates.endswith(" apart (gold: 48.5 %).")
    assert "Do not report the rate of 3_partial_refusal from gpt4_label alone" in plain(
        made.steps[0]
    )


def test_the_rows_of_an_input_are_those_of_its_file(xstest: Audit) -> None:
    assert [one.rows for one in xstest.document.inputs] == [2250]


def test_a_lost_class_has_the_rates_beside_those_of_gold_in_the_summary(xstest: Audit) -> None:
    # 1,385 of 2,239 and 1,091 of 2,250; 1,414 of 2,239 and 1,267 of 2,250.
    assert plain(brief(xstest.document).found[0].sentence).endswith(
        " Its rate of 1_full_compliance is 61.9 %, gold’s is 48.5 %; of non_2_full_refusal is 63.2 %, "
        "gold’s is 56.3 %."
    )


def test_an_audit_in_which_no_call_gave_a_label_is_a_page_too(tmp_path: Path) -> None:
    table = tmp_path / "none.csv"
    table.write_text("id,a,b\n" + "".join(f"r{i},NA,NA\n" for i in range(5)), encoding="utf-8")
    made = vd.audit(vd.read(table, layout="wide", response="id", graders="a,b", missing="NA"))
    assert made.labels.classes == ()
    assert "In two minutes</h2>" in html.render(made.document).decode()


def test_with_many_classes_the_summary_and_the_rates_stand_without_bars(tmp_path: Path) -> None:
    scale = [f"k{i:02d}" for i in range(MOST_CLASSES + 1)]
    table = tmp_path / "many.csv"
    lines = (f"r{i},{scale[i % 13]},{scale[i * i % 13]}\n" for i in range(120))
    table.write_text("id,gold,a\n" + "".join(lines), encoding="utf-8")
    made = vd.audit(vd.read(table, layout="wide", response="id", gold="gold", scale=scale))
    side = side_by_side(made.document)
    assert side is not None
    assert plain(side.heads[0].title) == "rate of k12"
    assert side.legend == ()
    assert "In two minutes</h2>" in html.render(made.document).decode()


def test_the_summary_of_a_bank_has_a_row_for_every_cut(bank: Audit) -> None:
    made = brief(bank.document)
    assert [cut for cut, _ in made.gates] == ["4 of 10", "5 of 10", "6 of 10", "7 of 10"]
    at_five = made.gates[1][1]
    shown = [c.value for c in at_five]
    assert shown[:2] == [pytest.approx(13 / 59), 0]  # false passes and false fails
    assert shown[2] == pytest.approx(167 / 180)  # gate accuracy at 5: 92.8 %
    # Of the 30 that were not read gold fails 12 at 5: right where the gate rejects them.
    assert shown[3:5] == [pytest.approx(179 / 210), pytest.approx(167 / 210)]
    assert shown[7] == pytest.approx(13 / 180)  # it passes 134 of 180, gold 121


def test_the_summary_names_all_cuts_at_which_a_gate_is_lenient_and_what_to_do(bank: Audit) -> None:
    made = brief(bank.document)
    first = made.found[0]  # a gate is what there is to decide on
    sentence = plain(first.sentence)
    assert sentence.startswith("At a cut of 6 the gate of judge ")
    assert sentence.endswith(" Also at cuts of 5 and 7.")
    assert first.like == 0
    assert plain(first.step).startswith("Rewrite the lines with the most false accepts")


def test_of_eight_lenient_judges_the_summary_still_says_what_to_do() -> None:
    rng = np.random.default_rng(1)
    gold = (rng.random((120, 6)) < 0.5).astype(float)
    judge = np.where((gold == 0) & (rng.random((120, 6)) < 0.5), 1.0, gold)
    judges = {f"j{i}": judge for i in range(8)}
    questions = [f"q{i // 10}" for i in range(120)]
    labels = verdicts({"gold": gold, **judges}, questions=questions, cut=[2, 3])
    made = brief(auditing.run(labels).document)
    assert made.more > 0
    assert "set the cut anew" in plain(made.steps[0])


def test_the_table_of_graders_has_every_grader_its_rates_and_its_flags(xstest: Audit) -> None:
    side = side_by_side(xstest.document)
    assert side is not None
    names = [name for name, *_ in side.rows]
    assert names == ["annotation_1", "annotation_2", "gpt4_label", "strmatch_label", "final_label"]
    gpt4 = side.rows[2][3]
    assert [box.sort for box in gpt4][1] == pytest.approx(1385 / 2239)
    assert any("class collapse" in code for box in gpt4 for _, code in box.findings)


def test_findings_that_are_clear_are_folded_and_evidence_is_one_click_below(xstest: Audit) -> None:
    page = html.render(xstest.document).decode()
    assert '<details class="rest"><summary>' in page
    assert '<details class="evidence"><summary>Evidence (' in page
    assert (
        page.index("In two minutes</h2>")
        < page.index("Findings</h2>")
        < page.index("side by side</h2>")
    )


def test_every_figure_has_its_data_one_click_away(xstest: Audit) -> None:
    page = html.render(xstest.document).decode()
    assert page.count("<figure>") == page.count('<details class="data">') > 3
