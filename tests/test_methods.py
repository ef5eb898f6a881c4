"""The methods paragraph: every number is traced, every method cited, and nothing is said that was not done."""

from __future__ import annotations

import re

import pytest

from tests.reports import AUDITS, REPORTS
from voirdire import bibliography
from voirdire.bibliography import keys_of
from voirdire.document import Document, Paste, Table
from voirdire.options import Options
from voirdire.wording import Cite, Name, Text, Traced, plain


def paragraph(document: Document) -> Text:
    (block,) = [b for b in document.blocks if isinstance(b, Paste) and b.title == "Methods"]
    (line,) = block.lines
    return line


@pytest.mark.parametrize("name", AUDITS)
def test_no_number_is_typed(name: str) -> None:
    for part in paragraph(REPORTS[name]()):
        if isinstance(part, Name | Traced | Cite):
            continue
        # The digits of names of coefficients, KR-20 and AC1, are no numbers.
        assert not re.search(r"(?<![A-Z\d-])\d", part), part


@pytest.mark.parametrize("name", AUDITS)
def test_every_number_is_where_its_source_says(name: str) -> None:
    document = REPORTS[name]()
    options = {f: getattr(Options(), f) for f in Options.__dataclass_fields__}
    options |= document.options
    for part in paragraph(document):
        if not isinstance(part, Traced):
            continue
        assert part.what
        kind, _, rest = part.source.partition(": ")
        if kind == "results":
            statistic, outcome = re.fullmatch(
                r"(\w+), class (\w+), summed over graders", rest
            ).groups()  # type: ignore[union-attr]
            total = sum(
                e.number or 0
                for e in document.estimates
                if e.statistic == statistic and e.key.class_ == outcome and not e.key.slice
            )
            assert part == f"{total:,.0f}"
        elif kind == "option":
            value = options[rest]
            values = value if isinstance(value, list | tuple) else [value]
            shown = float(part.rstrip(" %").replace(",", ""))
            shown = shown / 100 if "%" in part else shown
            assert any(abs(shown - v) < 5e-4 for v in values), (part, rest)
        elif kind == "finding":
            assert any(f.code == rest and part in plain(f.sentence) for f in document.findings)
        else:
            assert kind in ("input", "the program")


@pytest.mark.parametrize("name", AUDITS)
def test_the_table_under_it_lists_each_number(name: str) -> None:
    document = REPORTS[name]()
    (table,) = [
        b
        for b in document.blocks
        if isinstance(b, Table) and b.title.startswith("Where the numbers")
    ]
    listed = {row[0].value for row in table.rows}
    assert {str(p) for p in paragraph(document) if isinstance(p, Traced)} == listed


@pytest.mark.parametrize("name", AUDITS)
def test_every_method_of_an_interval_is_named_and_cited(name: str) -> None:
    document = REPORTS[name]()
    cited = {k for p in paragraph(document) if isinstance(p, Cite) for k in p.keys}
    for e in document.estimates:
        if e.number is not None and e.interval is not None:
            assert set(bibliography.METHODS[e.interval.method]) <= cited, e.interval.method


@pytest.mark.parametrize("name", AUDITS)
def test_what_is_cited_was_used(name: str) -> None:
    document = REPORTS[name]()
    cited = {k for p in paragraph(document) if isinstance(p, Cite) for k in p.keys}
    used = {k for e in document.estimates for k in keys_of(e.estimand.source.text)}
    used |= {
        k
        for e in document.estimates
        for i in (e.interval, e.edge)
        if i is not None
        for k in bibliography.METHODS[i.method]
    }
    assert cited <= used | {"holm1979"}


def test_it_says_who_was_audited_on_what() -> None:
    said = plain(paragraph(REPORTS["labels"]()))
    assert said.startswith(
        "We audited 2 graders (judge_a and judge_b) on 24 responses in 12 clusters."
    )
    assert "gold was taken as gold and is in no statistic of the panel." in said
    assert "refusal < partial < compliance" in said
    assert "(2 unparsed)" in said
    assert "jackknife" in said
    assert "bootstrap" not in said.replace("bootstrap percentiles", "")


def test_the_bootstrap_names_replicates_and_seed() -> None:
    assert "200 replicates from seed 7" in plain(paragraph(REPORTS["bootstrap"]()))


def test_counts_rest_on_independence_and_say_so() -> None:
    said = plain(paragraph(REPORTS["counts"]()))
    assert "the responses behind them are not at hand" in said
    assert "as if responses were independent (Wilson 1927)" in said


@pytest.mark.parametrize("name", AUDITS)
def test_it_claims_no_reliability_or_truth_of_a_judge(name: str) -> None:
    said = plain(paragraph(REPORTS[name]())).lower()
    for claim in ("reliability of", "true rate", "ground truth", "substantial", "acceptable"):
        assert claim not in said
    if name == "checklist":
        bank = said.index("of the bank of responses, and so of no judge:")
        assert said.index("kr-20 (") > bank
        assert said.index("livingston–lewis") > bank
