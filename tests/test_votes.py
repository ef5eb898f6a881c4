"""Votes of one grader (MCC, Table 5): what they differ by, what elects nobody, and the two rules."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire import looking
from voirdire.errors import UndefinedWarning
from voirdire.finding import Finding, State
from voirdire.formats.text import FORMAT as TEXT
from voirdire.options import Options

SCALE = ["no", "half", "yes"]
CLASS = {"n": "no", "h": "half", "y": "yes"}


def frame(votes: Mapping[str, Sequence[str]], clusters: Sequence[str] = ()) -> pl.DataFrame:
    """Long labels: for each grader one text a response, one letter a vote; ``?`` could not be read.

    ``.`` is a vote that nobody knows of.
    """
    rows = []
    for grader, texts in votes.items():
        for i, text in enumerate(texts):
            for v, letter in enumerate(text, 1):
                rows.append(
                    {
                        "response": f"r{i:03}",
                        "grader": grader,
                        "vote": str(v),
                        "label": CLASS.get(letter),
                        "outcome": {"?": "unparsed", ".": "missing"}.get(letter, "label"),
                        **({"cluster": clusters[i]} if clusters else {}),
                    }
                )
    return pl.DataFrame(rows, schema_overrides={"label": pl.String})


def audit(table: pl.DataFrame, **options: Any) -> vd.Audit:
    columns = {c: c for c in ("response", "grader", "label", "vote", "outcome")}
    return vd.audit(vd.read(table, layout="long", scale=SCALE, **columns, **options))


def row(found: vd.Audit, statistic: str, **keys: str) -> dict[str, Any]:
    keys = {"other": "", "slice": "", **keys}
    rows = found.results.filter(
        pl.col("statistic") == statistic, *(pl.col(k) == v for k, v in keys.items())
    )
    assert len(rows) == 1, (statistic, keys, len(rows))
    return rows.row(0, named=True)


def of_code(found: vd.Audit, code: str) -> list[Finding]:
    return [f for f in found.findings if f.code == code]


# --- what is counted ----------------------------------------------------------------------------

# g: r0 yyy the same · r1 yyn differ, 2 of 3 elect yes · r2 yhn differ, nobody · r3 yy? the same of
# the two that were read, 2 of 3 calls elect yes · r4 y?? one read: no second vote, and 1 of 3 calls
# is no majority · r5 ??? nothing to read · r6 yn. differ; two calls known, 1 to 1: nobody.
VOTES = ["yyy", "yyn", "yhn", "yy?", "y??", "???", "yn."]


def test_self_disagreement_is_the_share_of_responses_whose_readable_votes_differ() -> None:
    found = audit(frame({"g": VOTES, "h": ["n"] * 7}))
    one = row(found, "self_disagreement", grader="g")
    # Two readable votes: r0 r1 r2 r3 r6. They differ on r1 r2 r6.
    assert (one["value"], one["n"], one["clusters"]) == (3 / 5, 5, 5)
    assert one["describes"] == "grader"
    # 3 of 5, at the edge of so few: Clopper–Pearson 14.7 % to 94.7 %.
    assert one["method"] == "clopper_pearson"
    assert one["low"] == pytest.approx(0.1466, abs=5e-5)
    assert one["high"] == pytest.approx(0.9473, abs=5e-5)


def test_no_majority_counts_responses_with_a_readable_vote_that_elect_nobody() -> None:
    found = audit(frame({"g": VOTES, "h": ["n"] * 7}))
    one = row(found, "no_majority", grader="g")
    # A readable vote: all but r5. Nobody is elected on r2 (1-1-1), r4 (1 of 3 calls), r6 (1 of 2).
    assert (one["value"], one["n"]) == (3, 6)
    assert one["method"] == ""  # a count has no interval
    # Under the rule that stands, the labels are those of r0, r1 and r3.
    assert row(found, "label_count", grader="g", **{"class": "yes"})["value"] == 3


def test_a_vote_that_nobody_knows_of_is_no_call() -> None:
    # r6 with a blank third vote: 2 yes of 2 known calls elect yes; of three calls it would be so too,
    # but "y.." is 1 of 1.
    found = audit(frame({"g": ["y..", "yy.", "n.."], "h": ["y", "n", "y"]}))
    assert row(found, "no_majority", grader="g")["value"] == 0


def test_a_grader_that_was_asked_once_has_no_self_disagreement() -> None:
    found = audit(frame({"g": VOTES, "h": ["n"] * 7}))
    one = row(found, "self_disagreement", grader="h")
    assert one["value"] is None
    assert one["reason"] == "no response has two readable votes"
    assert row(found, "no_majority", grader="h")["value"] == 0


def test_without_repeats_nothing_is_said_of_votes() -> None:
    found = audit(frame({"g": ["y", "n", "h"], "h": ["n", "n", "h"]}))
    assert not {"self_disagreement", "no_majority"} & set(found.results["statistic"])
    assert not found.results["other"].str.starts_with("votes:").any()


def test_gold_is_in_no_statistic_of_votes() -> None:
    found = audit(frame({"g": VOTES, "gold": ["yn"] * 7}))
    graders = found.results.filter(pl.col("statistic") == "self_disagreement")["grader"]
    assert graders.to_list() == ["g"]


def test_the_interval_takes_clusters_into_account() -> None:
    # 10 clusters of 6 responses that differ all or not at all: the clusters count, not the 60.
    votes = ["yn" if i // 6 % 2 else "yy" for i in range(60)]
    clusters = [f"c{i // 6}" for i in range(60)]
    clustered = audit(frame({"g": votes, "h": ["n"] * 60}, clusters), cluster="cluster")
    alone = audit(frame({"g": votes, "h": ["n"] * 60}))
    wide, narrow = (row(a, "self_disagreement", grader="g") for a in (clustered, alone))
    assert wide["value"] == narrow["value"] == 0.5
    # Half-width on the logit scale: t × sqrt(C/(C − 1) / (C/4)) against n = 60 responses:
    # 2.262 × 0.667 = 1.51 against 2.00 × 0.260 = 0.52.
    assert math.log(wide["high"] / (1 - wide["high"])) == pytest.approx(1.51, abs=0.12)
    assert math.log(narrow["high"] / (1 - narrow["high"])) == pytest.approx(0.52, abs=0.01)


def test_the_planted_noise_of_decoding_comes_back() -> None:
    # Each vote is off with p = 0.1 to one of two other classes; three votes are all the same with
    # 0.9³ + 2 × 0.05³ = 0.72925, so differ with 0.27075; sd of 4,000 responses: 0.0070.
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 3, (4000, 1))
    off = (rng.random((4000, 3)) < 0.1) * rng.integers(1, 3, (4000, 3))
    votes = ["".join("nhy"[c] for c in line) for line in ((truth + off) % 3).tolist()]
    one = row(audit(frame({"g": votes, "h": ["n"] * 4000})), "self_disagreement", grader="g")
    assert one["value"] == pytest.approx(0.27075, abs=3.5 * 0.0070)
    assert one["low"] < 0.27075 < one["high"]


# --- the two rules side by side -----------------------------------------------------------------


# First votes: g yes on 6 of 8, h on 2 of 8. Majorities: g elects yes on 3 of 6 (two elect nobody).
G = ["ynn", "ynn", "ynn", "yyy", "yyy", "yyn", "nyh", "nhy"]
H = ["y", "y", "n", "n", "n", "n", "n", "n"]


def spread(found: vd.Audit, statistic: str, other: str) -> float | None:
    value: float | None = row(found, statistic, other=other, **{"class": "yes"})["value"]
    return value


@pytest.mark.parametrize("rule", ["majority", "first"])
def test_the_spread_stands_under_both_rules_whichever_is_in_force(rule: str) -> None:
    found = audit(frame({"g": G, "h": H}), vote_rule=rule)
    # First: 6/8 against 2/8. Majority: 3/6 (r6 and r7 elect nobody) against 2/8.
    assert spread(found, "rate_max_over_min", "votes:first") == pytest.approx(3.0)
    assert spread(found, "rate_range", "votes:first") == pytest.approx(0.5)
    assert spread(found, "rate_max_over_min", "votes:majority") == pytest.approx(2.0)
    assert spread(found, "rate_range", "votes:majority") == pytest.approx(0.25)
    assert spread(found, "rate_range", "") == spread(found, "rate_range", f"votes:{rule}")


def test_all_statistics_of_the_spread_stand_under_both_rules() -> None:
    found = audit(frame({"g": G, "h": H}))
    whole = found.results.filter(pl.col("statistic").str.contains("^rate_|^graders_at_zero"))
    names = {o: set(whole.filter(pl.col("other") == o)["statistic"]) for o in whole["other"]}
    assert names[""] >= {"rate_max_over_min", "rate_range", "rate_iqr", "graders_at_zero"}
    assert names["votes:majority"] == names["votes:first"]
    assert names["votes:first"] <= names[""]


def test_phrasings_are_no_votes_of_the_spread() -> None:
    # One call a phrasing: nothing was repeated, so no rule for votes makes a difference.
    table = frame({"g": G, "h": H}).rename({"vote": "phrasing"})
    found = vd.audit(
        vd.read(table, layout="long", scale=SCALE, phrasing="phrasing", outcome="outcome")
    )
    assert not found.results.filter(pl.col("other").str.starts_with("votes:")).height


def test_repeats_under_each_phrasing_are_its_votes() -> None:
    # Two responses under two phrasings, three calls each. First: a y n, b y y: three of four.
    # Majority: a n n, b y n: one of four. All calls of a response in one, the first would be y y.
    calls = {"a": {"p": "ynn", "q": "nny"}, "b": {"p": "yyn", "q": "ynn"}}
    rows: list[dict[str, str | None]] = [
        {"response": r, "grader": "g", "phrasing": p, "vote": str(v), "label": CLASS[c]}
        for r, under in calls.items()
        for p, text in under.items()
        for v, c in enumerate(text)
    ]
    rows += [
        {"response": r, "grader": "h", "phrasing": None, "vote": "0", "label": CLASS[c]}
        for r, c in (("a", "y"), ("b", "n"))
    ]
    found = vd.audit(
        vd.read(pl.DataFrame(rows), layout="long", scale=SCALE, phrasing="phrasing", vote="vote")
    )
    for rule, apart in (("first", 3 / 4 - 1 / 2), ("majority", 1 / 2 - 1 / 4)):
        held = row(found, "rate_range", **{"class": "yes", "other": f"votes:{rule}"})
        assert held["value"] == pytest.approx(apart), rule
        ratio = row(found, "rate_max_over_min", **{"class": "yes", "other": f"votes:{rule}"})
        assert ratio["value"] == pytest.approx(1.5 if rule == "first" else 2)
        assert ratio["clusters"] == 2


def test_an_unread_first_vote_gives_way_to_the_first_that_can_be_read() -> None:
    found = audit(frame({"g": ["?y", "?n", "yn"], "h": ["y", "n", "y"]}), vote_rule="first")
    assert row(found, "label_count", grader="g", **{"class": "yes"})["value"] == 2
    assert row(found, "rate", grader="g", **{"class": "yes"})["n"] == 3


def test_the_order_of_rows_does_not_matter() -> None:
    table = frame({"g": VOTES * 3, "h": ["n"] * 21})
    order = list(range(len(table)))
    random.Random(1).shuffle(order)
    assert audit(table).results.equals(audit(table[order]).results)


def test_votes_that_are_no_numbers_sort_as_text() -> None:
    # As text "a" < "b" < "c"; the first is the one named a, wherever it stands in the file.
    table = frame({"g": ["ny", "ny", "yn"], "h": ["y", "n", "y"]}).with_columns(
        pl.col("vote").replace({"1": "b", "2": "a"})
    )
    found = audit(table, vote_rule="first")
    assert row(found, "label_count", grader="g", **{"class": "yes"})["value"] == 2


def test_the_report_shows_disagreement_and_both_rules() -> None:
    text = TEXT.render(audit(frame({"g": G, "h": H})).document).decode()
    assert "How a grader’s votes on one response differ" in text
    assert "first vote" in text
    assert "reliab" not in text.lower()


# --- repeats that never differ ------------------------------------------------------------------


def test_where_votes_elect_nobody_the_reason_says_so_and_single_votes_are_shown() -> None:
    # Two responses, yes no and yes half: nobody is elected, and of four votes two are yes.
    found = audit(frame({"a": ["yn", "yh"]}))
    given = row(found, "label_share", grader="a", **{"class": "yes"})
    reason = "no response has a majority among its votes"
    assert (given["value"], given["reason"]) == (None, reason)
    text = " ".join(TEXT.render(found.document).decode().split())
    assert "a 1 (25.0 %) 1 (25.0 %) 2 (50.0 %) 4" in text


def test_where_no_vote_can_be_read_the_reason_says_so() -> None:
    found = audit(frame({"a": ["??", "??"], "b": ["nn", "yy"]}))
    reason = row(found, "label_share", grader="a", **{"class": "yes"})["reason"]
    assert reason == "the grader gave no readable label"
    assert "Single votes by class" not in TEXT.render(found.document).decode()


def test_look_says_which_columns_count_responses_and_which_calls() -> None:
    table = frame({"a": ["yn", "yy", "y?"]}).rename({"response": "id"})
    options = Options.of(layout="long", response="id", grader="grader", label="label", vote="vote")
    text = " ".join(TEXT.render(looking.document([table], options)).decode().split())
    # One label of three responses; of six calls five were read.
    assert "a 0 1 1 2 5 1 0" in text
    assert "a, over its 5 readable votes: no 1 and yes 4." in text
    assert "The columns of votes count single calls" in text


def test_votes_that_never_vary_are_found_and_are_no_evidence() -> None:
    found = audit(frame({"g": ["yyy", "nnn"] * 6, "h": ["y", "n"] * 6}))
    (one,) = of_code(found, "votes_never_vary")
    said = one.record()
    assert (one.state, one.grader) == (State.FOUND, "g")
    assert "say nothing about the scorer" in said["sentence"]
    assert "decode-time noise at most" in said["sentence"]
    assert "reliab" not in said["sentence"]
    # 0 of 12: never zero width. 1 − 0.025^(1/12) = 26.5 %.
    assert "[0.0, 26.5]" in said["sentence"]
    assert [e["statistic"] for e in said["evidence"]] == ["self_disagreement"]


def test_one_other_vote_makes_it_clear_with_the_rate() -> None:
    found = audit(frame({"g": ["yyy"] * 19 + ["yyn"], "h": ["y"] * 20}))
    (one,) = of_code(found, "votes_never_vary")
    assert one.state is State.CLEAR
    assert "5.0 %" in one.record()["sentence"]


def test_nine_responses_are_too_few_to_say_that_votes_never_vary() -> None:
    assert not of_code(audit(frame({"g": ["yyy"] * 9, "h": ["y"] * 9})), "votes_never_vary")


def test_repeats_that_could_not_be_read_are_no_repeats() -> None:
    found = audit(frame({"g": ["y??"] * 12, "h": ["y"] * 12}))
    assert not of_code(found, "votes_never_vary")


def test_people_are_not_said_to_have_no_noise() -> None:
    found = audit(frame({"g": ["yy"] * 12, "h": ["y"] * 12}), people=["g"])
    assert not of_code(found, "votes_never_vary")


# --- the plain function -------------------------------------------------------------------------


def test_the_plain_function_leaves_out_responses_with_fewer_than_two_votes() -> None:
    votes = [["a", "a", "b"], ["b", "b", None], ["a", None, None], ["c", "c", "c"]]
    assert vd.stats.self_disagreement(votes) == pytest.approx(1 / 3)
    with pytest.warns(UndefinedWarning):
        assert math.isnan(vd.stats.self_disagreement([["a", None], [None, None]]))
    with pytest.raises(ValueError, match="responses × repeats"):
        vd.stats.self_disagreement(["a", "b"])


# --- phrasings --------------------------------------------------------------------------------------


def worded(votes: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Calls of one grader: for each phrasing one text a response, one letter a vote."""
    rows = [
        (f"r{i:02}", phrasing, str(v), CLASS.get(letter), "label" if letter != "?" else "unparsed")
        for phrasing, texts in votes.items()
        for i, text in enumerate(texts)
        for v, letter in enumerate(text, 1)
    ]
    table = pl.DataFrame(
        rows, schema=["response", "phrasing", "vote", "label", "outcome"], orient="row"
    )
    return table.with_columns(grader=pl.lit("g"))


def test_calls_under_several_phrasings_are_no_votes() -> None:
    # Every response has another class under each phrasing, and nobody was asked twice.
    found = audit(worded({"p": ["y"] * 12, "q": ["n"] * 12}), phrasing="phrasing")
    assert not {"self_disagreement", "no_majority"} & set(found.results["statistic"])
    assert not of_code(found, "votes_never_vary")
    assert row(found, "flip_rate", grader="g", **{"class": ""})["value"] == 1


def test_repeats_are_votes_within_one_phrasing() -> None:
    # Under p: same, differ, one read · under q: same, same, differ. Across p and q r0 differs as well.
    found = audit(worded({"p": ["yy", "yn", "y?"], "q": ["nn", "yy", "hn"]}), phrasing="phrasing")
    one = row(found, "self_disagreement", grader="g")
    assert (one["value"], one["n"], one["clusters"]) == (2 / 5, 5, 3)
    lost = row(found, "no_majority", grader="g")
    # No class has more than half of the two calls: p on r1 and r2, q on r2.
    assert (lost["value"], lost["n"]) == (3, 6)


def test_repeats_that_never_vary_are_found_where_wordings_differ() -> None:
    found = audit(worded({"p": ["yy"] * 6, "q": ["nn"] * 6}), phrasing="phrasing")
    (finding,) = of_code(found, "votes_never_vary")
    assert finding.state is State.FOUND
    assert row(found, "self_disagreement", grader="g")["n"] == 12


def test_lines_of_a_checklist_vote_within_one_phrasing() -> None:
    # Two lines, two phrasings, two calls each: only e1 under p on r0 differs; across phrasings all do.
    rows = [
        (
            f"r{i}",
            line,
            p,
            str(v),
            "1" if (p == "p") != (i == 0 and line == "e1" and p == "p" and v == 2) else "0",
        )
        for i in range(3)
        for line in ("e1", "e2")
        for p in ("p", "q")
        for v in (1, 2)
    ]
    table = pl.DataFrame(
        rows, schema=["response", "line", "phrasing", "vote", "label"], orient="row"
    )
    found = vd.audit(
        vd.read(
            table,
            layout="checklist",
            line="line",
            phrasing="phrasing",
            vote="vote",
            grader_name="j",
        )
    )
    one = row(found, "self_disagreement", grader="j")
    assert (one["value"], one["n"]) == (1 / 12, 12)
    assert row(found, "no_majority", grader="j")["value"] == 1
    once = table.filter(vote="1").drop("vote")
    found = vd.audit(
        vd.read(once, layout="checklist", line="line", phrasing="phrasing", grader_name="j")
    )
    assert "self_disagreement" not in set(found.results["statistic"])


def test_pairs_in_both_orders_under_several_phrasings_compare_like_with_like() -> None:
    rows = [
        # Under each phrasing and order twice the same; orders and phrasings differ.
        (f"r{i}", "g", p, f"{o}{v}", o, "A" if (p == "p") == (o == "AB") else "B")
        for i in range(4)
        for p in ("p", "q")
        for o in ("AB", "BA")
        for v in (1, 2)
    ]
    table = pl.DataFrame(
        rows, schema=["response", "grader", "phrasing", "vote", "order", "label"], orient="row"
    )
    found = vd.audit(vd.read(table, layout="long", phrasing="phrasing", vote="vote"))
    assert row(found, "self_disagreement", grader="g")["value"] == 0
