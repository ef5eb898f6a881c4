"""The report of a checklist: the decision table, the four lines, and what no report may say."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.checklists import real_bank, verdicts
from tests.conftest import ROOT
from voirdire import auditing, plugins
from voirdire.document import (
    Block,
    Cell,
    Document,
    Figure,
    Heading,
    Paragraph,
    Paste,
    Table,
    display,
)
from voirdire.errors import UsageError
from voirdire.estimand import Describes
from voirdire.formats import latex, markdown
from voirdire.labels import Tag
from voirdire.reproducing import Ledger, ledger
from voirdire.stats.base import Family
from voirdire.wording import Lead, plain

NAN = float("nan")
CUTS = [2, 3, 4]


def bank(n: int = 48, k: int = 6, *, seed: int = 1) -> dict[str, np.ndarray]:
    """Gold of random verdicts, and a judge that accepts a fifth of the lines that are not met."""
    rng = np.random.default_rng(seed)
    gold = (rng.random((n, k)) < rng.random((n, 1))).astype(float)
    judge = np.where((gold == 0) & (rng.random((n, k)) < 0.2), 1.0, gold)
    judge[0] = NAN
    return {"gold": gold, "judge": judge}


QUESTIONS = [f"q{i // 4:02}" for i in range(48)]


def audit(matrices: dict[str, Any] | None = None, **options: Any) -> auditing.Audit:
    return auditing.run(
        verdicts(bank() if matrices is None else matrices, **{"cut": CUTS, **options})
    )


@pytest.fixture(scope="module")
def whole() -> auditing.Audit:
    return audit(questions=QUESTIONS)


@pytest.fixture(scope="module")
def paper() -> auditing.Audit:
    return auditing.run(real_bank(cut=[4, 5, 6, 7]))


def section(document: Document, title: str) -> list[Block]:
    return next(blocks for heading, blocks in document.sections() if heading.text == title)


def answers(found: auditing.Audit) -> dict[str, str]:
    """The decision table: what this file says, by question."""
    return {
        display(question): display(answer)
        for block in section(found.document, "What this file answers")
        if isinstance(block, Table)
        for question, answer in block.rows
    }


def answer(found: auditing.Audit, start: str) -> str:
    return next(a for q, a in answers(found).items() if q.startswith(start))


def lines(found: auditing.Audit, form: str = "", judge: str = "") -> dict[str, str]:
    """The four reporting lines by their title: plain, or as Markdown or LaTeX has them."""
    block = next(
        b
        for b in section(found.document, "For the paper")
        if isinstance(b, Paste) and b.title.startswith("Reporting lines") and judge in b.title
    )
    if form == "LaTeX":
        pairs = re.findall(r"^\\item\[\{(.*?)\}\] (.*)$", latex.paste(block), re.M)
    elif form == "Markdown":
        pairs = re.findall(r"^- \*\*(.*?)\.\*\* (.*)$", markdown.lines(block), re.M)
    else:
        pairs = [
            (line[0].word, plain(line[1:])) for line in block.lines if isinstance(line[0], Lead)
        ]
    return dict(pairs)


def value(found: auditing.Audit, statistic: str, **key: str) -> float:
    rows = found.results.filter(
        pl.col("statistic") == statistic,
        *(
            pl.col(k) == v
            for k, v in {"slice": "", "other": "", "line": "", "cut": "", **key}.items()
        ),
    )
    assert len(rows) == 1
    return float(rows["value"][0])


# --- the decision table -------------------------------------------------------------------------


def test_the_decision_table_stands_right_after_the_findings(whole: auditing.Audit) -> None:
    headings = [b.text for b in whole.document.blocks if isinstance(b, Heading) and b.level == 2]
    assert headings[:2] == ["Findings", "What this file answers"]
    assert len(answers(whole)) == 5


def test_each_question_is_answered_with_its_own_quantity(whole: auditing.Audit) -> None:
    gate = answer(whole, "How often")
    for cut in CUTS:
        accuracy = value(whole, "gate_accuracy", grader="judge", cut=str(cut))
        assert re.search(rf"{100 * accuracy:.1f} % \[[^]]+\] at cut {cut}", gate)
    direction = answer(whole, "Where does it err")
    assert f"{100 * value(whole, 'false_accept', grader='judge'):.1f} %" in direction
    assert "Worst line: q" in direction
    kr20 = answer(whole, "Do the lines rank")
    for grader in ("judge", "gold"):
        assert f"{value(whole, 'kr20', grader=grader):.3f}" in kr20
    again = answer(whole, "Would pass or fail survive")
    for statistic in ("consistency", "accuracy"):
        for grader in ("judge", "gold"):
            share = value(whole, f"livingston_lewis_{statistic}", grader=grader, cut="3")
            assert f"{100 * share:.1f} %" in again


def test_without_gold_the_questions_about_the_judge_are_not_answerable() -> None:
    found = audit({"judge": bank()["judge"]}, questions=QUESTIONS)
    for start in ("How often", "Where does it err"):
        # The whole answer: no number stands in for the one that is missing.
        assert answer(found, start) == "not answerable from this file: it needs gold labels."
    assert "KR-20: 0." in answer(found, "Do the lines rank")
    assert "no gold" in answer(found, "Do the lines rank")


def test_one_phrasing_says_nothing_of_another() -> None:
    for matrices in (bank(), {"judge": bank()["judge"]}):
        found = audit(matrices)
        assert answer(found, "Do its decisions depend") == (
            "not answerable from this file: it needs varied phrasings."
        )


def test_without_a_cut_the_table_says_how_to_give_one() -> None:
    found = audit(cut=[])
    assert "--cut 3" in answer(found, "How often")
    assert "--cut 3" in answer(found, "Would pass or fail survive")
    assert "--cut 3" in lines(found)["Φ(λ)"]
    assert "At a cut" not in "".join(lines(found).values())


def test_each_of_several_judges_has_its_own_answers_and_lines() -> None:
    matrices = bank()
    matrices["strict"] = np.where(np.arange(6) == 2, 0.0, matrices["gold"])
    found = audit(matrices, questions=QUESTIONS)
    titles = [
        b.title for b in section(found.document, "What this file answers") if isinstance(b, Table)
    ]
    assert titles == [
        f"Questions about {what}: {judge}"
        for judge in ("judge", "strict")
        for what in ("the judge", "the bank and its checklist")
    ]
    for judge in ("judge", "strict"):
        share = value(found, "false_reject", grader=judge)
        assert f"no on {100 * share:.1f} %" in lines(found, judge=judge)["Judge error"]
        gold = value(found, "kr20", grader="gold", other=judge)
        assert f"{gold:.3f}" in lines(found, judge=judge)["Gold comparison"]


# --- the four lines -----------------------------------------------------------------------------


def test_the_four_lines_hold_the_papers_figures(paper: auditing.Audit) -> None:
    # TWM, Table A.8. Livingston–Lewis by exact integration: 0.812 and 0.781 within rounding.
    four = lines(paper)
    assert list(four) == ["Bank", "Gold comparison", "Φ(λ)", "Judge error"]
    for part in ("180 responses in 13 clusters", "K = 10", "totals 2.16", "correlation 0.098"):
        assert part in four["Bank"]
    for part in ("KR-20 is 0.522", "and 0.523", "81.2 %", "78.1 %"):
        assert part in four["Gold comparison"]
    assert "not comparable" in four["Φ(λ)"]
    for part in ("λ = 5/10", "0.600", "0.543"):
        assert part in four["Φ(λ)"]
    for part in (
        "yes on 10.4 %",
        "no on 0.1 %",
        "85 errors fall on 34 of the 130 lines",
        "5 worst lines hold 25",
        "92.8 %",
        "79.5 %",
        "of all 210",
    ):
        assert part in four["Judge error"]


def test_gold_on_a_part_is_said_and_the_bank_stands_on_the_whole() -> None:
    matrices = bank()
    matrices["gold"][24:] = NAN
    found = audit(matrices, questions=QUESTIONS)
    four = lines(found)
    assert four["Bank"].startswith("47 responses in 12 clusters")
    sd = np.std(matrices["judge"][1:].sum(axis=1), ddof=1)
    assert f"SD of judge’s totals {sd:.3f}" in four["Bank"]
    assert "gold is whole on only 23 of these" in four["Bank"]
    for title in ("Gold comparison", "Φ(λ)", "Judge error"):
        assert four[title].startswith(
            "This line is over the 23 responses in 6 clusters that judge and gold both scored in full. "
        )


def test_gold_without_a_verdict_is_said_and_answers_nothing() -> None:
    matrices = bank()
    matrices["gold"][:] = NAN
    found = audit(matrices, questions=QUESTIONS)
    assert answer(found, "Where does it err") == (
        "not answerable from this file: it needs gold labels."
    )
    notes = [
        plain(b.text)
        for b in section(found.document, "What this file answers")
        if isinstance(b, Paragraph)
    ]
    assert any(n.startswith("gold is gold and has no verdict on any line") for n in notes)
    assert "There is no gold" in lines(found)["Bank"]


def test_where_gold_never_says_yes_the_sentence_still_reads() -> None:
    matrices = bank()
    matrices["gold"] = np.zeros_like(matrices["gold"])
    said = answer(audit(matrices), "Where does it err")
    assert "false reject: not determined (there is no present element" in said
    assert "on not determined" not in said


def test_a_judge_called_gold_is_told_from_the_standard_in_the_lines() -> None:
    matrices = bank()
    found = audit({"a": matrices["gold"], "gold": matrices["judge"]}, gold="a")
    assert "on a’s (difference" in lines(found)["Gold comparison"]
    assert lines(found)["Judge error"].startswith("Against a, gold says yes on")


def test_a_rare_event_under_the_bootstrap_also_has_its_edge_interval(
    paper: auditing.Audit,
) -> None:
    drawn = auditing.run(real_bank(cut=[4, 5, 6, 7], interval="bootstrap"))
    both = "0.1 % [0.0, 0.3] (Korn–Graubard [0.0, 0.6])"
    assert f"no on {both} of those that are met" in lines(drawn)["Judge error"]
    assert both in answer(drawn, "Where does it err")
    assert r"0.1\,\% [0.0, 0.3] (Korn--Graubard [0.0, 0.6])" in lines(drawn, "LaTeX")["Judge error"]
    assert "no on 0.1 % [0.0, 0.6] of those" in lines(paper)["Judge error"]
    row = drawn.results.filter(pl.col("statistic") == "false_reject", pl.col("line") == "")
    assert row["method"].to_list() == ["percentile"]


def test_a_cut_above_a_checklist_of_one_line_is_refused_in_good_english() -> None:
    one = {g: m[:, :1] for g, m in bank().items()}
    with pytest.raises(UsageError, match=r"the longest checklist has 1 line, so"):
        audit(one, cut=[2])


def test_without_gold_each_line_says_what_it_needs() -> None:
    four = lines(audit({"judge": bank()["judge"]}, questions=QUESTIONS))
    assert "There is no gold" in four["Bank"]
    for title in ("Gold comparison", "Φ(λ)", "Judge error"):
        assert "needs gold labels" in four[title]
    assert "%" not in four["Judge error"]


def test_a_judge_without_an_error_is_said_to_have_none() -> None:
    gold = bank()["gold"]
    assert (
        "no error on any of the 6 lines" in lines(audit({"gold": gold, "j": gold}))["Judge error"]
    )


def test_names_are_no_latex_and_no_markdown() -> None:
    matrices = bank()
    name = r"j_1 \input{x} 50% $a^b$ #*~&<|>"
    found = audit({"gold": matrices["gold"], name: matrices["judge"]})
    line = lines(found, "LaTeX")["Judge error"]
    shown = latex.escape(name)
    assert rf"\texttt{{{shown}}}" in line.replace(r"\allowbreak{}", "")
    # What is left once the escapes are taken away has no character that LaTeX acts on.
    bare = re.sub(r"\\[A-Za-z]+\{\}|\\[_%$#&{}]", "", shown)
    assert not re.search(r"[\\{}$&#_%~^<>|]", bare)
    assert r"\*" in lines(found, "Markdown")["Judge error"]
    text = auditing.format_of("a.tex").render(found.document).decode()
    assert r"\begin{description}" in text


def test_every_per_cent_in_the_latex_lines_is_escaped(whole: auditing.Audit) -> None:
    four = lines(whole, "LaTeX")
    assert set(four) == {"Bank", "Gold comparison", r"$\Phi$($\lambda$)", "Judge error"}
    for text in four.values():
        assert not re.search(r"(?<!\\)%", text)
        assert text.isascii()


# --- the rest of the report ---------------------------------------------------------------------


def test_the_summary_counts_responses_questions_judges_and_lines(paper: auditing.Audit) -> None:
    assert plain(paper.document.summary).startswith(
        "210 responses to 15 questions in 15 clusters, 1 judge, 10 lines each; 180 scored in full; "
        "gold is gold."
    )


def test_checklists_of_different_lengths_are_said_and_coefficients_left_open() -> None:
    lengths = {f"q{i:02}": 4 + i % 3 for i in range(12)}
    found = audit(questions=QUESTIONS, lengths=lengths)
    assert "4 to 6 lines each" in plain(found.document.summary)
    assert "a checklist of 4 to 6 yes/no lines for each question" in lines(found)["Bank"]
    line = lines(found)["Gold comparison"]
    assert line.startswith("KR-20 is determined neither on the verdicts of judge nor on gold’s (")
    assert (
        line.count("lines") == 2
    )  # the reason, once: “checklists of 4 to 6 lines … number of lines”
    assert line.endswith("). Nor is Livingston–Lewis accuracy.")


def test_slices_show_the_judges_errors_and_the_coefficient_apart() -> None:
    labels = verdicts(bank(), cut=CUTS)
    half = pl.when(pl.col("response") < "r000024").then(pl.lit("a")).otherwise(pl.lit("b"))
    tagged = replace(
        labels,
        frame=labels.frame.with_columns(half.alias("half")),
        tags=(Tag(name="half", values=2, numeric=False, per_response=True),),
        options=replace(labels.options, by=("half",)),
    )
    found = auditing.run(tagged)
    tables = [
        b for b in section(found.document, "By part of the responses") if isinstance(b, Table)
    ]
    assert [t.title for t in tables] == ["Errors against gold in each part", "KR-20 in each part"]
    assert [c.title for c in tables[0].columns][:4] == [
        "part",
        "false accept",
        "false reject",
        "element error",
    ]
    for table in tables:
        assert [display(r[0]) for r in table.rows] == ["half=a", "half=b"]
        assert all(c.value is not None for row in table.rows for c in row)


# --- what a report never says -------------------------------------------------------------------

COEFFICIENTS = (
    "kr20",
    "kr21",
    "cronbach_alpha",
    "kr20_within_question",
    "mean_inter_element_correlation",
    "kr20_standardised",
    "omega_total",
    "generalizability",
    "dependability",
    "livingston_lewis_accuracy",
    "livingston_lewis_consistency",
    "phi_lambda",
    "phi_lambda_raw",
)
LOOKALIKE = re.compile(r"Φ|\bPhi\b|phi_lambda|[Dd]ependability|Livingston|\bLL\b|livingston_lewis")
ACCURACY = re.compile(
    r"(?<!Lewis )(?<!LL )(?<!lewis_)\b(?:gate[ _])?accurac|matches gold|agreement with gold|is right on"
)
# Where both are named, the sentence must take them apart; the decomposition does so too.
APART = re.compile(
    r"not comparable|\bnot\b|\bnever\b|\bno\b|\bneither\b|less|minus|differ|identity|\badd(?:s)? up"
)
OF_THE_JUDGE = re.compile(
    r"reliability of (?:the|this|a) (?:judge|grader)|(?:judge|grader)(?:’s|'s)? reliability|"
    r"reliable (?:judge|grader)"
)
# Every coefficient of the bank by the names that reports, ledgers and pages give it.
COEFFICIENT = (
    r"(?:KR-?2[01]|kr2[01]\w*|Kuder.Richardson|[Cc]ronbach(?:’s|'s)? alpha|[Aa]lpha|α|[Oo]mega(?: total)?|ω|"
    r"Φ\(λ\)|Φ|phi_lambda\w*|[Dd]ependability(?: at the pass mark)?|[Gg]eneralizability|"
    r"(?:mean )?inter-element correlation|"
    r"(?:Livingston.Lewis|LL|livingston_lewis)(?:[ _](?:accuracy|consistency))?|"
    r"implied reliability|[Cc]oefficients?(?! verdicts))"
)
BETWEEN = (
    r"(?: \((?:standardised|within questions)\)| within questions| coefficient| of the bank)?,?"
)


def of_the_judge(names: Iterable[str] = ()) -> re.Pattern[str]:
    """A coefficient that is called a judge's: “KR-20 of the judge”, “the judge's KR-20”, by any name.

    “KR-20 of the judge's verdicts” is not: it says whose verdicts the bank's coefficient stands on.
    """
    who = "|".join(
        [
            r"(?:(?:the|this|that|a|each|every|one) )?(?:judge|grader|scorer)s?",
            r"\{(?:judge|grader|name|side|who)\}",
            *(re.escape(n) for n in names),
        ]
    )
    verdicts = r"(?!(?:’s|'s|’|')? (?:verdicts|totals|labels))"
    return re.compile(
        rf"(?<!\w){COEFFICIENT}{BETWEEN} (?:of|for) (?:{who})(?!\w|-\w){verdicts}(?!(?:’s|'s) verdicts)"
        rf"|(?<!\w)(?:{who})(?:’s|'s|’|') (?:own )?(?:\{{parts\}}|(?:[\w-]+ )?{COEFFICIENT}(?!\w))",
    )


def given_away(texts: Iterable[str], names: Iterable[str] = ()) -> list[str]:
    """The sentences that call a coefficient a judge's, with the marks of Markdown taken away."""
    pattern = of_the_judge(names)
    bare = (re.sub(r"[`*]|\\(?=[_\W])", "", text) for text in texts)
    return [text for text in bare if pattern.search(text)]


BANDS = re.compile(
    r"\b(?:acceptable|good|substantial|excellent|moderate|poor|adequate|satisfactory) "
    r"(?:reliability|agreement|consistency|dependability|internal)",
    re.IGNORECASE,
)


def sentences(text: str) -> Iterator[str]:
    """Sentences of a rendered text: a value such as 0.5 ends none."""
    for paragraph in re.split(r"\n\s*\n|\n(?=[▲○–?|-])", text):
        yield from re.split(r"(?<=[.!?:;])\s+(?=[A-ZΦ→])", " ".join(paragraph.split()))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from strings(v)
    elif isinstance(value, list):
        for v in value:
            yield from strings(v)


def visible(html: str) -> str:
    """The text of a page, a block a paragraph."""
    import html as entities

    body = re.sub(r"<(style|script|svg).*?</\1>", " ", html, flags=re.DOTALL)
    body = re.sub(r"</(p|li|tr|h\d|dd|dt|figcaption|summary|div|span|th|td|pre)>", "\n\n", body)
    return entities.unescape(re.sub(r"<[^>]+>", "", body))


def rendered(found: auditing.Audit, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Every readable format with its sentences."""
    for suffix in ("txt", "md", "html", "json"):
        path = folder / f"audit.{suffix}"
        found.write(path)
        text = path.read_text(encoding="utf-8")
        if suffix == "json":
            parts: Iterable[str] = strings(json.loads(text)["findings"])
            yield suffix, [s for part in parts for s in sentences(part)]
        else:
            yield suffix, list(sentences(visible(text) if suffix == "html" else text))


@cache
def three_ways() -> Ledger:
    return ledger("three-ways")


def rows_of(document: Document) -> Iterator[tuple[Cell, ...]]:
    for block in document.blocks:
        if isinstance(block, Table):
            yield from block.rows


def audits(whole: auditing.Audit) -> Iterator[auditing.Audit]:
    """Banks with gold, without, with gold on a part, of several lengths, of one line, and constant.

    The judges have names as people give them, so that a sentence is seen with the name in it.
    """
    yield whole
    named = {"gold": bank()["gold"], "gpt-4o": bank()["judge"], "claude 3": bank(seed=2)["gold"]}
    yield audit(named, questions=QUESTIONS)
    yield audit({"gpt-4o": bank()["judge"]}, questions=QUESTIONS)
    yield audit(named, questions=QUESTIONS, lengths={f"q{i:02}": 4 + i % 3 for i in range(12)})
    yield audit({n: m[:, :1] for n, m in named.items()}, questions=QUESTIONS, cut=[1])
    yield audit({n: np.ones((8, 4)) for n in named}, questions=QUESTIONS[:8])
    yield audit({"judge": bank()["judge"]}, questions=QUESTIONS)
    several = bank()
    several["gold"][24:] = NAN
    several["other"] = several["judge"][:, ::-1]
    yield audit(several, questions=QUESTIONS, interval="bootstrap", replicates=100)


def wrong_with(sentence: str) -> bool:
    return bool(
        LOOKALIKE.search(sentence) and ACCURACY.search(sentence) and not APART.search(sentence)
    )


def test_the_scan_sees_what_it_is_for() -> None:
    assert wrong_with("Φ(λ) is 0.600 and gate accuracy is 92.8 %.")
    assert wrong_with("Livingston–Lewis accuracy is 81.2 %, gate accuracy 92.8 %.")
    assert not wrong_with("Livingston–Lewis accuracy is 81.2 % and 78.1 % on gold.")
    assert not wrong_with("Φ(λ) is not comparable with any accuracy.")
    assert OF_THE_JUDGE.search("KR-20 is the judge’s reliability")
    for wrong in (
        "The judge's KR-20 is high.",
        "The judge’s alpha is 0.9.",
        "{judge}'s {parts}",
        "Φ(λ) of the judge by pass mark",
        "KR-20 of {judge} has no value",
        "this judge's KR-20",
        "KR-21 of judge",
        "Livingston–Lewis accuracy of judge and gold lie",
        "Livingston–Lewis consistency of the bank of gpt-4o: 0.7",
        "Dependability at the pass mark, Φ(λ) of gpt-4o, cut 5: 0.600",
        "omega total of a grader",
        "`gpt-4o`'s KR-20",
        "**gpt-4o**’s generalizability",
        "Generalizability of every judge",
    ):
        assert given_away([wrong], ["gpt-4o", "claude 3"]), wrong
    for right in (
        "KR-20 on the verdicts of judge and on gold’s",
        "KR-20 is 0.5 on the judge's verdicts and 0.6 on gold's",
        "The KR-20 of the judge's verdicts, and of gpt-4o’s verdicts, is the bank's.",
        "Coefficients describe the bank and not how well gpt-4o grades.",
        "The judge's false accepts; KR-20 of the bank.",
        "none of them is the judge's. Φ(λ) is a ratio",
    ):
        assert not given_away([right], ["gpt-4o", "claude 3"]), right
    assert BANDS.search("which is acceptable reliability")


def test_no_sentence_sets_a_lookalike_beside_an_accuracy(
    whole: auditing.Audit, tmp_path: Path
) -> None:
    for found in audits(whole):
        for suffix, said in rendered(found, tmp_path):
            assert len(said) > 10
            assert [s for s in said if wrong_with(s)] == [], suffix


def test_no_sentence_gives_a_coefficient_to_the_judge_or_a_band(
    whole: auditing.Audit, tmp_path: Path
) -> None:
    for found in audits(whole):
        for suffix, said in rendered(found, tmp_path):
            for sentence in said:
                if not re.search(r"\b(?:not|never|nor|no)\b", sentence):
                    assert not OF_THE_JUDGE.search(sentence), (suffix, sentence)
                assert not BANDS.search(sentence), (suffix, sentence)
            # Without an exception for “not”: such a sentence can be worded without the genitive.
            assert given_away(said, found.labels.grader_names) == [], suffix


def test_the_scan_of_reports_fails_on_a_changed_wording(
    whole: auditing.Audit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By mutation of what is rendered: each of these in one block of a report is seen."""
    (judge, *_) = (g for g in whole.labels.grader_names if g != "gold")
    for wrong in (
        "The judge's KR-20 is high.",
        f"{judge}'s KR-20 is 0.522",
        f"Φ(λ) of {judge} by pass mark",
        "Φ(λ) of the judge by pass mark",
    ):
        changed = replace(whole.document, blocks=(*whole.document.blocks, Paragraph(text=(wrong,))))
        for suffix in ("txt", "md", "html"):
            text = auditing.format_of(f"a.{suffix}").render(changed).decode()
            said = list(sentences(visible(text) if suffix == "html" else text))
            assert given_away(said, whole.labels.grader_names), (suffix, wrong)


def test_the_ledger_calls_no_coefficient_a_judges() -> None:
    from voirdire import reproducing

    said = list(strings([r for line in three_ways().lines for r in line.record().values()]))
    said += [display(cell) for row in rows_of(reproducing.document(three_ways())) for cell in row]
    assert len(said) > 200
    assert given_away(said) == []


def test_the_statistics_and_a_look_call_no_coefficient_a_judges(tmp_path: Path) -> None:
    said = auditing.format_of("a.md").render(auditing.statistics()).decode()
    assert "KR-20" in said
    assert given_away(sentences(said)) == []
    for gold in (True, False):
        assert given_away(sentences(looked_at(tmp_path, gold=gold))) == []


@pytest.mark.parametrize("page", ["checklists.md", "coefficients.md", "panels.md"])
def test_the_pages_call_no_coefficient_a_judges(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert given_away(sentences(text)) == []


def templates(source: str) -> Iterator[str]:
    """The texts in a module; of an f-string with the last name of each part in braces."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = (
                str(p.value)
                if isinstance(p, ast.Constant)
                else "{" + ast.unparse(p).rpartition(".")[2].strip("f'{}\"") + "}"
                for p in node.values
            )
            yield " ".join("".join(parts).split())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(node.value.split())


def sources() -> Iterator[Path]:
    for folder in ("checks", "stats", "formats", "reproducing", "."):
        yield from sorted((ROOT / "src" / "voirdire" / folder).glob("*.py"))


def test_the_messages_call_no_coefficient_a_judges() -> None:
    """Templates in the source too: what a report says under conditions that no audit here meets."""
    said = [t for path in sources() for t in templates(path.read_text(encoding="utf-8"))]
    assert len(said) > 2000
    assert given_away(said) == []


@pytest.mark.parametrize(
    ("module", "right", "wrong"),
    [
        (
            "checks/coefficient_reading.py",
            "{judge} grades. On its verdicts",
            "{judge} grades. The judge's KR-20 is high. On its verdicts",
        ),
        (
            "checks/coefficient_reading.py",
            "for the same {n} responses, {parts}.",
            "for the same {n} responses, {judge}'s {parts}.",
        ),
        (
            "stats/crossed_design.py",
            "Φ(λ) of the bank by pass mark",
            "Φ(λ) of the judge by pass mark",
        ),
        (
            "checks/element_order.py",
            "KR-20 on the verdicts of {judge} has no value",
            "KR-20 of {judge} has no value",
        ),
        ("reproducing/three_ways.py", 'f"KR-20 {ON[side]}"', 'f"KR-20 of {side}"'),
    ],
)
def test_the_scan_of_messages_fails_on_a_changed_one(module: str, right: str, wrong: str) -> None:
    """By mutation in memory."""
    source = (ROOT / "src" / "voirdire" / module).read_text(encoding="utf-8")
    assert right in source
    assert given_away(templates(source)) == []
    assert given_away(templates(source.replace(right, wrong)))


def _named_in(table: Table) -> str:
    """What a table is about: its columns and the texts in its rows."""
    titles = [c.title if isinstance(c.title, str) else c.title.text for c in table.columns]
    cells = [display(c) for row in table.rows for c in row if isinstance(c.value, str | tuple)]
    return "\n".join([table.title, *titles, *cells])


def test_no_table_sets_a_lookalike_beside_an_accuracy_but_the_one_that_adds_up(
    whole: auditing.Audit,
) -> None:
    for found in audits(whole):
        both = [
            block
            for block in found.document.blocks
            if isinstance(block, Table)
            and LOOKALIKE.search(_named_in(block))
            and ACCURACY.search(_named_in(block))
        ]
        assert len(both) <= 1
        for table in both:
            assert "not comparable" in plain(table.note)


def test_no_figure_shows_both(whole: auditing.Audit) -> None:
    for found in audits(whole):
        for block in found.document.blocks:
            if isinstance(block, Figure):
                text = f"{block.title} {plain(block.alt)} {plain(block.caption)}"
                assert not any(wrong_with(s) for s in sentences(text))


def test_a_coefficient_of_the_bank_is_not_described_as_the_graders() -> None:
    known = {
        s.name: s.estimand
        for family in plugins.load("stats", Family)
        if "checklist" in family.kinds
        for s in family.statistics
    }
    assert set(COEFFICIENTS) <= set(known)
    for name in COEFFICIENTS:
        estimand = known[name]
        assert estimand.describes is Describes.BANK, name
        text = f"{estimand.title} {estimand.question} {estimand.reading}"
        assert not re.search(r"accuracy of the (?:judge|grader)", text), name
        assert not OF_THE_JUDGE.search(text) or re.search(r"\bnot\b", text), name
        assert not BANDS.search(text), name


def test_a_coefficient_never_stands_without_its_value_on_gold(whole: auditing.Audit) -> None:
    rows = whole.results.filter(pl.col("statistic").is_in(COEFFICIENTS))
    keys = ["statistic", "line", "cut", "slice"]
    of = {g: set(rows.filter(pl.col("grader") == g).select(keys).rows()) for g in ("judge", "gold")}
    assert of["judge"]
    assert of["judge"] <= of["gold"]


# --- a look -------------------------------------------------------------------------------------


def looked_at(folder: Path, *, gold: bool, filled: bool = True) -> str:
    """What ``voirdire look`` says of twelve responses to four questions."""
    from voirdire import looking
    from voirdire.options import Options

    rng = np.random.default_rng(5)
    columns: dict[str, Any] = {
        "item_id": [f"r{i}" for i in range(12)],
        "question_id": [f"q{i % 4}" for i in range(12)],
    }
    for name in ("gold", "judge") if gold else ("judge",):
        for j in range(3):
            met: list[int] | list[None] = rng.integers(0, 2, 12).tolist()
            if name == "gold" and not filled:
                met = [None] * 12
            columns[f"{name}_e{j + 1}"] = pl.Series(met, dtype=pl.Int64)
    path = folder / "bank.csv"
    pl.DataFrame(columns).write_csv(path)
    document = looking.document([path], Options.of(layout="checklist"))
    return " ".join(auditing.format_of("a.md").render(document).decode().split())


def test_a_look_promises_a_value_on_gold_only_where_there_is_gold(tmp_path: Path) -> None:
    assert "with its value on gold | yes" in looked_at(tmp_path, gold=True)
    for said in (looked_at(tmp_path, gold=False), looked_at(tmp_path, gold=True, filled=False)):
        assert "with its value on gold" not in said
        assert "without a value on gold" in said
    assert "gold is gold and has no verdict on any line" in said


def test_a_look_suggests_a_cut_in_the_middle(tmp_path: Path) -> None:
    # Three lines: a cut of 2.
    assert "--cut 2 -o audit.html" in looked_at(tmp_path, gold=True)


def test_a_look_offers_no_slice_of_single_responses(tmp_path: Path) -> None:
    said = looked_at(tmp_path, gold=True)
    assert "--by" in said
    assert "item_id` (12)" not in said
    assert "item_id (12)" not in said
