"""The bibliography: every source in the code is an entry or ours, and .bib files can be read."""

from __future__ import annotations

import re

import pytest

from tests.reports import REPORTS
from voirdire import bibliography, methods, plugins
from voirdire.bibliography import ENTRIES, Entry, cite, entry, keys_of, used_in
from voirdire.formats.bibtex import bibtex, render
from voirdire.stats.base import Family

SOURCES = sorted(
    {
        statistic.estimand.source.text
        for family in plugins.load("stats", Family)
        for statistic in family.statistics
    }
)
YEAR = re.compile(r"(?<![\d.])(1[89]\d\d|20\d\d)(?!\d)(?!\.\d)")


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_of_a_statistic_is_an_entry_or_declared_as_ours(source: str) -> None:
    keys = keys_of(source)
    if not keys:
        assert source.startswith(bibliography.OURS), (
            f"{source!r} names no entry of voirdire.bibliography. Add the publication to ENTRIES, or "
            "what it starts with to OURS where it is the tool's own."
        )
    years = set(YEAR.findall(source))
    found = {entry(k).year for k in keys}
    assert years <= found, f"{source!r}: no entry for {', '.join(sorted(years - found))}."


def test_every_method_of_an_interval_has_words_and_sources() -> None:
    assert set(bibliography.METHODS) == set(methods.METHODS)
    for keys in bibliography.METHODS.values():
        assert [entry(k) for k in keys]
    made = {
        interval.method
        for name in REPORTS
        for e in REPORTS[name]().estimates
        for interval in (e.interval, e.edge)
        if interval is not None
    }
    if "plan" in REPORTS:
        made -= {i.method for e in REPORTS["plan"]().estimates if (i := e.interval) is not None}
    assert made <= set(bibliography.METHODS)


def test_keys_are_unique_and_say_the_year() -> None:
    keys = [e.key for e in ENTRIES]
    assert len(keys) == len(set(keys))
    for e in ENTRIES:
        assert re.fullmatch(r"[a-z]+\d*", e.key)
        if e.authors:
            assert e.key.endswith(e.year)
            assert e.key.startswith(re.sub("[^a-z]", "", e.families[0].lower()))


def test_no_two_entries_are_cited_alike() -> None:
    cited = [e.cited for e in ENTRIES]
    assert len(cited) == len(set(cited))


@pytest.mark.parametrize("e", ENTRIES, ids=lambda e: e.key)
def test_an_entry_has_what_its_kind_needs(e: Entry) -> None:
    assert e.title
    needed = {
        "article": (e.journal, e.volume, e.pages, e.year),
        "book": (e.publisher, e.year),
        "techreport": (e.institution, e.year),
        "misc": (e.note or e.eprint,),
    }[e.kind]
    assert all(needed), e.key
    assert not e.doi or re.fullmatch(r"10\.\d{4,}/\S+", e.doi)
    shown = "".join(text for text, _ in e.parts())
    assert ".." not in shown
    assert e.title in shown


def test_an_entry_names_its_authors_in_prose_and_in_full() -> None:
    assert cite("cohen1960", "korn1998", "fagerland2013", "cohen1960") == (
        "(Cohen 1960; Korn and Graubard 1998; Fagerland et al. 2013)"
    )
    assert cite("cohen1960").keys == ("cohen1960",)
    shown = "".join(t for t, _ in entry("korn1998").parts())
    assert shown.startswith("E. L. Korn and B. I. Graubard (1998). Confidence intervals for")
    assert "Survey Methodology 24(2), 193–201." in shown


def test_bibtex_balances_its_braces_and_escapes() -> None:
    for e in ENTRIES:
        shown = bibtex(e)
        depth = 0
        for c in re.sub(r"\\[{}]", "", shown):
            depth += (c == "{") - (c == "}")
            assert depth >= 0
        assert depth == 0
        assert shown.isascii()
    assert r"Gauge R\&R" in bibtex(entry("burdick2005"))


def test_the_bib_file_has_what_the_audit_used_and_nothing_else() -> None:
    found = re.findall(r"^@\w+\{(\w+),", render(REPORTS["counts"]()).decode(), re.M)
    assert "wilson1927" in found
    assert "przyborowski1940" in found
    assert not {"cohen1960", "kuder1937", "wolter2007"} & set(found)
    assert set(found) == set(used_in(REPORTS["counts"]()))
    assert "kuder1937" in render(REPORTS["checklist"]()).decode()
