"""What a notebook shows of labels, estimates, findings and audits: small, escaped, and enough to read."""

from __future__ import annotations

import ast
import re
from html.parser import HTMLParser
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from tests.conftest import DATA, ROOT
from voirdire.finding import State

NASTY = "</table><script>alert(1)</script>&\x1b\u202e"
SCALE = ["refusal", "evasion", "compliance"]


class Seen(HTMLParser):
    """Tags that are open, all tags, and the text; raises where tags do not nest."""

    VOID = ("br",)

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open, self.tags, self.said = list[str](), set[str](), ""
        self.attributes = set[str]()
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data + " "


def frame(names: tuple[str, ...] = ("a", "b", "c", "gold")) -> pl.DataFrame:
    rows = []
    for i in range(90):
        for g, name in enumerate(names):
            label = SCALE[i % 3]
            if g == 0 and label == "compliance":
                label = "evasion"
            rows.append((f"r{i}", f"c{i // 3}", name, label))
    return pl.DataFrame(rows, schema=["response", "cluster", "grader", "label"], orient="row")


@pytest.fixture(scope="module")
def audit() -> vd.Audit:
    return vd.audit(vd.read(frame(), scale=SCALE, gold="gold"))


def shown(thing: Any) -> Seen:
    html = thing._repr_html_()
    assert isinstance(html, str)
    assert len(html) < 40_000
    seen = Seen(html)
    assert seen.tags <= {
        "div",
        "span",
        "b",
        "i",
        "code",
        "bdi",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert seen.attributes <= {"style", "title", "scope"}
    assert "url(" not in html
    # Only greys and the colours of the page, so that it reads on light and on dark ones.
    assert set(re.findall(r"#[0-9a-f]{3,6}\b|rgba?\([^)]*\)", html)) <= {
        "rgba(128,128,128,.45)",
        "rgba(128,128,128,.3)",
    }
    return seen


def test_labels_show_responses_scale_and_class_counts(audit: vd.Audit) -> None:
    said = shown(audit.labels).said
    assert "90 responses, in 30 clusters, 4 graders" in said
    assert re.search(r"refusal\s+<\s+evasion\s+<\s+compliance", said)
    assert re.search(r"a\s+30\s+60\s+0\s+0", said)  # compliance has become evasion, nothing unread
    assert re.search(r"b\s+30\s+30\s+30\s+0", said)


def test_an_audit_shows_summary_findings_and_graders(audit: vd.Audit) -> None:
    said = shown(audit).said
    assert "90 responses in 30 clusters" in said
    assert "FOUND" in said
    assert re.search(r"\ba\s+never gives\s+compliance", said)
    rate = next(e for e in audit.estimates if e.statistic == "rate" and e.key.grader == "b")
    assert f"{100 * (rate.number or 0):.1f} %" in said
    assert re.search(r"kappa with\s+gold", said)
    assert "audit.results" in said


def test_a_finding_shows_its_sentence_next_step_and_evidence(audit: vd.Audit) -> None:
    finding = next(f for f in audit.findings if f.state is State.FOUND)
    said = shown(finding).said
    assert finding.code in said
    assert "→" in said
    assert finding.evidence[0].estimand.title in said


def test_an_estimate_shows_value_interval_method_and_whom_it_describes(audit: vd.Audit) -> None:
    kappa = next(e for e in audit.estimates if e.statistic == "cohen_kappa" and e.interval)
    said = shown(kappa).said
    assert "describes the grader on this bank" in said
    assert f"n = {kappa.n:.0f}" in said
    assert kappa.interval is not None
    assert kappa.interval.method in said
    assert "95 %" in said


def test_what_cannot_be_said_is_a_dash_with_its_reason(audit: vd.Audit) -> None:
    undefined = next(e for e in audit.estimates if e.number is None)
    said = shown(undefined).said
    assert "–" in said
    assert undefined.reason in said


def test_names_are_text_and_nothing_else() -> None:
    names = (NASTY, "b", "c", "gold")
    classes = {c: f"{c}{NASTY}" for c in SCALE}
    labels = vd.read(
        frame(names).with_columns(pl.col("label").replace(classes)),
        scale=list(classes.values()),
        gold="gold",
    )
    made = vd.audit(labels)
    things: list[Any] = [labels, made, *made.findings, *made.estimates[:20]]
    for thing in things:
        html = thing._repr_html_()
        seen = Seen(html)
        assert "script" not in seen.tags
        assert "\x1b" not in html
        assert "\u202e" not in html
    assert "⟨U+202E⟩" in shown(made).said


def test_a_long_name_is_cut_so_that_numbers_stay_in_sight() -> None:
    long = "judge-" + "x" * 200
    labels = vd.read(frame(("a", long, "gold")), scale=SCALE)
    for html in (labels._repr_html_(), vd.audit(labels)._repr_html_()):
        rows = re.findall(r"<td[^>]*>(.*?)</td>", html)
        held = [r for r in rows if "judge-xx" in r]
        assert held
        for inside in held:
            assert f'title="{long}"' in inside
            assert len(re.sub("<[^>]*>", "", inside)) < 60


def test_many_graders_and_classes_are_counted_and_not_shown_all() -> None:
    rows = [(f"r{i}", f"g{g:02}", f"k{i % 12:02}") for i in range(24) for g in range(30)]
    labels = vd.read(pl.DataFrame(rows, schema=["response", "grader", "label"], orient="row"))
    said = shown(labels).said
    assert "10 more graders" in said
    assert "4 more classes" in said
    assert "g25" not in said


def test_counts_and_checklists_show_too() -> None:
    counts = vd.read(DATA / "missing_class_a.csv", layout="counts", scale="refusal,evasion,compliance",
                     off_scale="gibberish,refused_in_cot", reference="gemini-2.5-flash")  # fmt: skip
    said = shown(counts).said
    assert re.search(r"Llama-3.1-8B\s+554\s+330\s+9", said)
    assert re.search(r"claude-opus-5\s+365\s+325\s+198\s+–\s+–\s+2", said)  # not printed, never 0
    assert "kappa" not in shown(vd.audit(counts)).said.split("All of it")[0].split("labels")[-1]
    bank = vd.read(DATA / "judge_item_bank.csv", layout="checklist", gold="gold", cut=["5"])
    assert re.search(r"judge\s+725\s+1,075\s+300", shown(bank).said)
    said = shown(vd.audit(bank)).said
    assert "gate accuracy, cut 5" in said
    assert "false accept" in said


def test_the_same_labels_show_the_same_bytes(audit: vd.Audit) -> None:
    again = vd.audit(vd.read(frame(), scale=SCALE, gold="gold"))
    assert audit._repr_html_() == again._repr_html_()


# What docs/notebooks.md shows

PAGE = ROOT / "docs" / "notebooks.md"
SHOWN = ROOT / "docs" / "_static" / "notebook"


def shown_in_docs() -> dict[str, str]:
    """The panels of the page, from its own cells run one after the other."""
    cells = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    held: dict[str, Any] = {}
    made: dict[str, str] = {}
    names = ("labels", "audit", "finding", "estimate")
    for name, cell in zip(names, cells, strict=False):
        code = ast.parse(cell.replace('"xstest.csv"', repr(str(DATA / "xstest.csv"))))
        last = code.body.pop()
        assert isinstance(last, ast.Expr)
        exec(compile(code, str(PAGE), "exec"), held)
        value = eval(compile(ast.Expression(last.value), str(PAGE), "eval"), held)
        made[name] = value._repr_html_() + "\n"
    return made


def write_docs() -> None:
    """Write the panels anew: ``python -c "from tests.test_notebooks import *; write_docs()"``."""
    for name, html in shown_in_docs().items():
        (SHOWN / f"{name}.html").write_text(html, encoding="utf-8")


def test_the_page_shows_what_a_notebook_shows() -> None:
    for name, html in shown_in_docs().items():
        assert (SHOWN / f"{name}.html").read_text(encoding="utf-8") == html, (
            f'{name}: run python -c "from tests.test_notebooks import *; write_docs()"'
        )
