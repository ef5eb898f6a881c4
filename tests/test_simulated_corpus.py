"""Every table of "The Missing Compliance Class" comes out of a corpus of its shape, with known truth.

The labels are generated (tests/simulated.py); each number of the audit is compared with what plain
loops over the generated labels give, and each table with its row in the report.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from tests.simulated import (
    CLASSES,
    COMPLIANCE,
    CORES,
    DECIDED,
    DENSE,
    ENCODING,
    EVASION,
    FAMILIES,
    GRADERS,
    IN_COT,
    LARGE,
    OFF_SCALE,
    PEOPLE,
    REFUSAL,
    SCALE,
    STEPS,
    TARGETS,
    UNREAD,
    VOTED,
    Array,
    Corpus,
    corpus,
    first,
    majority,
)
from voirdire.document import Figure, Table, display
from voirdire.finding import State
from voirdire.wording import counted, number, percent, points, times

SETTING: dict[str, Any] = {
    "scale": SCALE,
    "off_scale": OFF_SCALE,
    "refusal_like": ["refused_in_cot"],
    "failed": {"???": "unparsed"},
    "cluster": "core",
}
DENSE_OUT = "without:" + "+".join(DENSE)
RATES = {"compliance": (COMPLIANCE,), "non_refusal": (EVASION, COMPLIANCE, 3)}
C: Corpus = corpus()


@functools.cache
def on(target: str) -> vd.Audit:
    """The audit of one target's 900 responses: votes, a reference, the panel of the large graders."""
    labels = vd.read(C.table(C.of_target(target)), vote="vote", reference="reference", **SETTING)
    return vd.audit(labels, without=list(DENSE), panel=LARGE)


@functools.cache
def everywhere() -> vd.Audit:
    """The audit of all 2,700 responses, sliced by target."""
    rows = np.arange(len(C.truth))
    labels = vd.read(C.table(rows), vote="vote", reference="reference", **SETTING)
    return vd.audit(labels, by=["target"])


def row(audit: vd.Audit, statistic: str, **keys: str) -> dict[str, Any]:
    keys = {"other": "", "slice": "", "line": ""} | keys
    rows = audit.results.filter(
        pl.col("statistic") == statistic, *(pl.col(k) == v for k, v in keys.items())
    )
    assert len(rows) == 1, f"{statistic} {keys}: {len(rows)} rows"
    return rows.row(0, named=True)


def value(audit: vd.Audit, statistic: str, **keys: str) -> float:
    found = row(audit, statistic, **keys)["value"]
    assert found is not None
    return float(found)


def in_report(audit: vd.Audit, title: str) -> dict[tuple[str, ...], dict[str, str]]:
    """A table of the report: its rows by the names that lead them, each a mapping by column."""
    (table,) = [b for b in audit.document.blocks if isinstance(b, Table) and b.title == title]
    names = [c.title if isinstance(c.title, str) else c.title.text for c in table.columns]
    leading = next(
        (i for i, c in enumerate(table.columns) if i and c.kind not in ("name", "text")), 1
    )
    return {
        tuple(display(c) for c in cells[:leading]): dict(
            zip(names, (display(c) for c in cells), strict=True)
        )
        for cells in table.rows
    }


def figure(audit: vd.Audit, name: str) -> Figure:
    found = [b for b in audit.document.blocks if isinstance(b, Figure) and b.name == name]
    assert found, name
    return found[0]


def labels_of(target: str, grader: str) -> Array:
    return np.asarray(majority(C.votes[grader])[C.of_target(target)])


def share(codes: Array, members: tuple[int, ...], weights: Array | None = None) -> float:
    """The share of classes among readable labels, counted one by one."""
    weights = np.ones(len(codes)) if weights is None else weights
    inside = sum(w for c, w in zip(codes, weights, strict=True) if c in members)
    return float(inside / sum(w for c, w in zip(codes, weights, strict=True) if c != UNREAD))


def spreads(rates: list[float]) -> dict[str, float]:
    """Table 6 in words: ratios leave zeros out, range and quartiles do not; quantiles of type 7."""

    def ratio(some: list[float]) -> float:
        above = [r for r in some if r > 0]
        return max(above) / min(above)

    ordered = sorted(rates)
    left = [ratio(rates[:i] + rates[i + 1 :]) for i in range(len(rates))]
    return {
        "rate_max_over_min": ratio(rates),
        "rate_leave_one_out_low": min(left),
        "rate_leave_one_out_high": max(left),
        "rate_second_over_second": ordered[-2] / ordered[1],
        "rate_iqr": float(np.quantile(rates, 0.75) - np.quantile(rates, 0.25)),
        "rate_range": ordered[-1] - ordered[0],
    }


# --- the shape --------------------------------------------------------------------------------------


def test_the_corpus_has_the_papers_shape() -> None:
    assert len(C.truth) == CORES * FAMILIES * len(TARGETS) == 2700
    assert len(GRADERS) == 8
    assert [v.shape[1] for g, v in C.votes.items() if g in VOTED] == [3] * 6
    assert len(C.steps) == len(STEPS) == 4
    assert len(C.drawn) == 200
    strata, counts = np.unique(C.stratum, return_counts=True)
    assert dict(zip(strata.tolist(), counts.tolist(), strict=True)) == {
        "refusal": 50, "evasion": 90, "compliance": 60,
    }  # fmt: skip
    assert C.weight.sum() == pytest.approx(900)


def test_the_same_seed_gives_the_same_corpus() -> None:
    again = corpus.__wrapped__()
    assert all((again.votes[g] == C.votes[g]).all() for g in GRADERS)
    assert (again.people == C.people).all()


# --- Tables 1, 8 and Figure 4: rates and counts ------------------------------------------------------


@pytest.mark.parametrize("target", ["A", "B"])
def test_table_8_counts_of_each_class_and_their_sums(target: str) -> None:
    shown = in_report(on(target), "Labels by class")
    for grader in GRADERS:
        codes = labels_of(target, grader)
        expected = [int((codes == c).sum()) for c in range(5)]
        for class_, count in zip(CLASSES, expected, strict=True):
            found = row(on(target), "label_count", grader=grader, **{"class": class_})
            assert found["value"] == count
            assert shown[grader,][class_] == counted(count)
        assert shown[grader,]["labels"] == counted(sum(expected))
        assert sum(expected) == 900 - int((codes == UNREAD).sum())
    bars = {r["grader"]: r["counts"] for r in figure(on(target), "class_shares").data["rows"]}
    assert bars["small-a"][COMPLIANCE] == (labels_of(target, "small-a") == COMPLIANCE).sum()


@pytest.mark.parametrize("target", ["A", "B"])
def test_table_1_rates_with_intervals_by_core(target: str) -> None:
    shown = in_report(on(target), "Rates")
    for grader, (rate, members) in itertools.product(GRADERS, RATES.items()):
        codes = labels_of(target, grader)
        found = row(on(target), "rate", grader=grader, **{"class": rate})
        assert found["value"] == pytest.approx(share(codes, members), abs=1e-12)
        assert found["low"] < found["value"] < found["high"]
        assert found["clusters"] == CORES
        assert shown[grader,][rate] == percent(share(codes, members))


def test_rates_are_near_what_was_planted() -> None:
    # The truth of the 900 responses is known; a dense grader keeps a known share of compliance and
    # calls 1 % of evasion compliance, and votes slip one step in 5 % of the calls (majority of 3:
    # two slips needed, so less than 1 % of the responses).
    truth = C.truth[C.of_target("A")]
    compliant, evasive = (truth == COMPLIANCE).sum(), (truth == EVASION).sum()
    for grader, kept in DENSE.items():
        expected = (kept * compliant + 0.01 * evasive) / 900
        se = math.sqrt(kept * (1 - kept) * compliant + 0.01 * 0.99 * evasive) / 900
        found = value(on("A"), "rate", grader=grader, **{"class": "compliance"})
        assert abs(found - expected) < 4 * se + 0.01


# --- Table 2, Table 3 and Figure 1: where labels go ---------------------------------------------------


def moves(grader: str, target: str, class_: int = COMPLIANCE) -> dict[str, int]:
    mine, theirs = labels_of(target, grader), labels_of(target, "reference")
    both = [(a, b) for a, b in zip(mine, theirs, strict=True) if UNREAD not in (a, b)]
    counts = {CLASSES[c]: sum(a == c and b == class_ for a, b in both) for c in range(5)}
    found = sum(a == class_ and b != class_ for a, b in both)
    return {"of": sum(b == class_ for _, b in both), "found": found, **counts}


def test_table_2_and_figure_1_where_the_references_compliance_goes() -> None:
    audit = on("A")
    shown = in_report(audit, "Where the reference’s labels of “compliance” go")
    bands = {r["grader"]: r for r in figure(audit, "flow_bands").data["rows"]}
    for grader in GRADERS:
        if grader == "reference":
            continue
        expected = moves(grader, "A")
        key = {"grader": grader, "other": "reference", "class": "compliance"}
        kept = row(audit, "kept", **key)
        assert (kept["value"], kept["n"]) == (expected["compliance"], expected["of"])
        for to in ("refusal", "evasion", *OFF_SCALE):
            assert value(audit, "moved", to_class=to, **key) == expected[to]
        assert value(audit, "found", **key) == expected["found"]
        assert shown[grader,]["stays"] == counted(expected["compliance"])
        assert shown[grader,]["→ evasion"] == counted(expected["evasion"])
        assert shown[grader,]["→ refusal"] == counted(expected["refusal"])
        assert shown[grader,]["found"] == counted(expected["found"])
        assert bands[grader]["stays"] == expected["compliance"]
        assert bands[grader]["moved"]["evasion"] == expected["evasion"]
        # A collapse moves one step: planted 98 % less what is kept, and 2 % to refusal.
        if grader in DENSE:
            away = expected["of"] - expected["compliance"]
            neighbour = value(audit, "neighbour_share", **key)
            assert neighbour == pytest.approx(expected["evasion"] / away)
            assert neighbour > 0.9
            assert bands[grader]["flagged"]


def test_table_3_kept_on_each_corpus() -> None:
    for target, grader in itertools.product(TARGETS, GRADERS):
        if grader == "reference":
            continue
        expected = moves(grader, target)
        found = row(
            everywhere(), "kept", grader=grader, other="reference",
            slice=f"target={target}", **{"class": "compliance"},
        )  # fmt: skip
        assert (found["value"], found["n"]) == (expected["compliance"], expected["of"])


# --- Table 5: votes -----------------------------------------------------------------------------------


def test_table_5_spreads_under_first_and_majority() -> None:
    shown = in_report(on("A"), "How far each rate moves with the grader, under each rule for votes")
    rows = C.of_target("A")
    for (rate, members), (rule, made) in itertools.product(
        RATES.items(), {"first": first, "majority": majority}.items()
    ):
        rates = [share(made(C.votes[g])[rows], members) for g in GRADERS]
        expected = spreads(rates)
        for statistic in ("rate_max_over_min", "rate_range"):
            found = value(on("A"), statistic, other=f"votes:{rule}", **{"class": rate})
            assert found == pytest.approx(expected[statistic], rel=1e-12)
        word = {"first": "first vote", "majority": "majority"}[rule]
        ratio, wide = expected["rate_max_over_min"], expected["rate_range"]
        assert shown[rate,][f"highest / lowest: {word}"] == times(ratio)
        assert shown[rate,][f"range, points: {word}"] == points(wide).removesuffix(" points")


def test_self_disagreement_and_lost_majorities_are_counted_vote_by_vote() -> None:
    rows = C.of_target("A")
    for grader in VOTED:
        votes = [[c for c in calls if c != UNREAD] for calls in C.votes[grader][rows].tolist()]
        again = [v for v in votes if len(v) >= 2]
        found = row(on("A"), "self_disagreement", grader=grader)
        assert found["value"] == pytest.approx(np.mean([len(set(v)) > 1 for v in again]))
        assert found["n"] == len(again)
        lost = sum(bool(v) for v in votes) - int((labels_of("A", grader) != UNREAD).sum())
        assert value(on("A"), "no_majority", grader=grader) == lost
        # Planted: a vote slips with 5 %; two of three slips are needed for a lasting error.
        assert found["value"] == pytest.approx(1 - 0.95**3 - 0.05**3 * 0.5, abs=0.04)
    graders = set(on("A").results.filter(pl.col("statistic") == "self_disagreement")["grader"])
    assert graders & {"blind", "large-70"} == set() or all(
        row(on("A"), "self_disagreement", grader=g)["value"] is None
        for g in graders & {"blind", "large-70"}
    )


# --- Tables 6 and 14: dispersion ----------------------------------------------------------------------


@pytest.mark.parametrize("target", ["A", "B"])
def test_table_6_dispersion_of_both_rates(target: str) -> None:
    shown = in_report(on(target), "How far each rate moves with the grader")
    for rate, members in RATES.items():
        expected = spreads([share(labels_of(target, g), members) for g in GRADERS])
        for statistic, number_ in expected.items():
            found = row(on(target), statistic, **{"class": rate})
            assert found["value"] == pytest.approx(number_, rel=1e-12), statistic
        line = shown[rate, "all graders"]
        assert line["highest / lowest"] == times(expected["rate_max_over_min"])
        low, high = expected["rate_leave_one_out_low"], expected["rate_leave_one_out_high"]
        assert line["leaving one grader out"] == f"{times(low)} to {times(high)}"
        assert line["2nd / 2nd"] == times(expected["rate_second_over_second"])
        assert line["IQR, points"] == points(expected["rate_iqr"]).removesuffix(" points")
        assert line["range, points"] == points(expected["rate_range"]).removesuffix(" points")


@pytest.mark.parametrize("target", TARGETS)
def test_table_14_spreads_with_and_without_the_dense_graders(target: str) -> None:
    for rate, members in RATES.items():
        everybody = spreads([share(labels_of(target, g), members) for g in GRADERS])
        large = spreads([share(labels_of(target, g), members) for g in LARGE])
        for statistic in ("rate_max_over_min", "rate_range"):
            key = {"class": rate}
            assert value(on(target), statistic, **key) == pytest.approx(everybody[statistic])
            found = value(on(target), statistic, other=DENSE_OUT, **key)
            assert found == pytest.approx(large[statistic])
    # What was planted: the choice of grader matters for compliance because of the dense ones.
    key = {"class": "compliance"}
    assert value(on(target), "rate_max_over_min", **key) > 5
    assert value(on(target), "rate_max_over_min", other=DENSE_OUT, **key) < 1.5


# --- Tables 7, 12 and 13: agreement, floor, kappa and flags -------------------------------------------


def agreement_and_kappa(mine: Array, theirs: Array) -> tuple[float, float]:
    both = [(a, b) for a, b in zip(mine, theirs, strict=True) if UNREAD not in (a, b)]
    same = sum(a == b for a, b in both) / len(both)
    chance = (
        sum(sum(a == c for a, _ in both) * sum(b == c for _, b in both) for c in range(5))
        / len(both) ** 2
    )
    return same, (same - chance) / (1 - chance)


@pytest.mark.parametrize("target", ["A", "B"])
def test_tables_12_and_13_agreement_floor_kappa(target: str) -> None:
    audit = on(target)
    shown = in_report(audit, "Agreement with the reference")
    theirs = labels_of(target, "reference")
    floor = max((theirs == c).sum() for c in range(5)) / (theirs != UNREAD).sum()
    assert value(audit, "competence_floor", other="reference") == pytest.approx(floor)
    for grader in GRADERS:
        if grader == "reference":
            continue
        same, kappa = agreement_and_kappa(labels_of(target, grader), theirs)
        key = {"grader": grader, "other": "reference"}
        assert value(audit, "agreement", **key) == pytest.approx(same)
        assert value(audit, "cohen_kappa", **key) == pytest.approx(kappa)
        line = shown[grader,]
        assert line["agreement"] == percent(same)
        assert line["kappa"] == number(kappa)
        assert line["best constant answer"] == percent(floor)
    # An accuracy does not show a missing class: small-a keeps 4 % of it and agrees far above the floor.
    assert value(audit, "agreement", grader="small-a", other="reference") > floor + 0.1


@pytest.mark.parametrize("target", TARGETS)
def test_the_planted_collapses_are_flagged_and_nothing_else(target: str) -> None:
    found = {
        (f.grader, f.class_)
        for f in on(target).findings
        if f.code == "class_collapse" and f.state is State.FOUND and not f.exploratory
    }
    assert found == {(g, "compliance") for g in DENSE}


def test_the_pairwise_matrix_holds_the_kappa_of_every_pair() -> None:
    cells = figure(on("A"), "pairwise_matrix").data["cells"]
    assert len(cells) == 8 * 7 // 2
    for cell in cells:
        mine, theirs = labels_of("A", cell["row"]), labels_of("A", cell["column"])
        _, kappa = agreement_and_kappa(mine, theirs)
        assert cell["value"] == pytest.approx(kappa)
        assert cell["n"] == ((mine != UNREAD) & (theirs != UNREAD)).sum()


# --- Table 9: consensus and solo labels ---------------------------------------------------------------


@pytest.mark.parametrize("target", ["A", "B"])
def test_table_9_agreement_with_three_of_four_and_solo_labels(target: str) -> None:
    audit = on(target)
    shown = in_report(audit, "Agreement with the strict majority of the others")
    solo_shown = in_report(audit, "Solo labels: given by no other grader of the panel")
    codes = {g: labels_of(target, g).tolist() for g in LARGE}
    for grader in LARGE:
        others = [codes[g] for g in LARGE if g != grader]
        same = verdicts = none = solo = mine = 0
        for i, own in enumerate(codes[grader]):
            votes = [o[i] for o in others]
            read = [v for v in votes if v != UNREAD]
            leader = max(set(read), key=read.count, default=UNREAD)
            verdict = leader if read.count(leader) >= 3 else UNREAD
            none += verdict == UNREAD
            if own == UNREAD:
                continue
            verdicts += verdict != UNREAD
            same += verdict == own
            mine += own == COMPLIANCE
            solo += own == COMPLIANCE and bool(read) and COMPLIANCE not in read
        found = row(audit, "consensus_agreement", grader=grader)
        assert found["value"] == pytest.approx(same / verdicts)
        assert found["n"] == verdicts
        assert value(audit, "no_consensus", grader=grader) == none
        alone = row(audit, "solo", grader=grader, **{"class": "compliance"})
        assert (alone["value"], alone["n"]) == (solo, mine)
        assert shown[grader,]["agreement"] == percent(same / verdicts)
        assert solo_shown[grader,]["compliance"].startswith(f"{counted(solo)} / {counted(mine)}")


# --- Table 10 and Figure 5: decisions -----------------------------------------------------------------


@functools.cache
def decided(interval: str = "bootstrap") -> vd.Audit:
    labels = vd.read(C.decisions(), step="step", **SETTING)
    return vd.audit(labels, interval=interval, replicates=1000, seed=7)


def test_table_10_rates_after_each_decision_and_end_to_end() -> None:
    rates = [share(codes, RATES["non_refusal"]) for codes in C.steps]
    key = {"grader": DECIDED, "class": "non_refusal"}
    shown = in_report(decided(), "The rate of non_refusal along the decisions")
    for i, (step, rate) in enumerate(zip(STEPS, rates, strict=True)):
        assert value(decided(), "decision_rate", line=step, **key) == pytest.approx(rate)
        assert shown[DECIDED, step]["rate"] == percent(rate)
        if i:
            change = value(decided(), "decision_step", line=step, **key)
            assert change == pytest.approx(rate - rates[i - 1])
            printed = points(rate - rates[i - 1]).removesuffix(" points")
            assert shown[DECIDED, step]["change, points"] == printed
    total = row(decided(), "decision_total", line=STEPS[-1], **key)
    assert total["value"] == pytest.approx(rates[-1] - rates[0])
    assert shown[DECIDED, "end to end"]["change, points"] == points(
        rates[-1] - rates[0]
    ).removesuffix(" points")


def test_the_end_to_end_interval_is_that_of_the_difference_over_cores() -> None:
    # Whole cores are drawn; each brings its nine responses at the first and at the last step.
    rows = C.of_target("A")
    inside = [np.isin(codes, RATES["non_refusal"]).astype(float) for codes in C.steps]
    by_core = np.bincount(C.core[rows], weights=inside[-1] - inside[0], minlength=CORES)
    random = np.random.default_rng(1)
    draws = random.multinomial(CORES, np.full(CORES, 1 / CORES), size=20_000)
    low, high = np.percentile(draws @ by_core / 900, [2.5, 97.5])
    found = row(
        decided(), "decision_total", line=STEPS[-1], grader=DECIDED, **{"class": "non_refusal"}
    )
    assert found["method"] == "percentile"
    assert (found["low"], found["high"]) == pytest.approx((low, high), abs=0.004)
    levels = [
        row(decided(), "decision_rate", line=s, grader=DECIDED, **{"class": "non_refusal"})
        for s in (STEPS[0], STEPS[-1])
    ]
    apart = levels[1]["high"] - levels[0]["low"] - (levels[1]["low"] - levels[0]["high"])
    assert found["high"] - found["low"] < apart  # not the sum of two intervals


def test_figure_5_draws_the_levels_in_the_order_of_the_decisions() -> None:
    drawn = {r["name"]: r for r in figure(decided(), "decision_path").data["rates"]}
    (path,) = drawn["non_refusal"]["paths"]
    assert [level["step"] for level in path["levels"]] == list(STEPS)
    expected = [share(codes, RATES["non_refusal"]) for codes in C.steps]
    assert [level["value"] for level in path["levels"]] == pytest.approx(expected)


# --- Table 11 and Figure 6: people and weights --------------------------------------------------------


@functools.cache
def surveyed() -> vd.Audit:
    labels = vd.read(
        C.survey(), layout="wide", graders=[*GRADERS, PEOPLE], people=[PEOPLE], response="response",
        weight="weight", stratum="stratum", reference="reference", missing=[""], **SETTING,
    )  # fmt: skip
    return vd.audit(labels, by=["label:reference"])


def drawn_labels(grader: str) -> Array:
    return C.people if grader == PEOPLE else np.asarray(majority(C.votes[grader])[C.drawn])


def test_table_11_compliance_re_weighted_to_the_900() -> None:
    for grader in (*GRADERS, PEOPLE):
        codes = drawn_labels(grader)
        expected = share(codes, (COMPLIANCE,), C.weight)
        found = row(surveyed(), "rate", grader=grader, **{"class": "compliance"})
        assert found["value"] == pytest.approx(expected, abs=1e-12)
        assert found["low"] <= found["value"] <= found["high"]
        assert found["n"] == (codes != UNREAD).sum()  # responses, not weights


def test_re_weighting_undoes_the_draw() -> None:
    # The reference's rate over all 900 is known; unweighted, its compliance is 60 of 200 by design.
    whole = share(labels_of("A", "reference"), (COMPLIANCE,))
    found = row(surveyed(), "rate", grader="reference", **{"class": "compliance"})
    assert found["value"] == pytest.approx(whole, abs=0.002)
    assert share(drawn_labels("reference"), (COMPLIANCE,)) == pytest.approx(0.3, abs=0.01)


def test_table_11_agreement_with_the_people_within_evasion() -> None:
    contested = drawn_labels("reference") == EVASION
    people, weight = C.people[contested], C.weight[contested]
    for grader in GRADERS:
        mine = drawn_labels(grader)[contested]
        read = mine != UNREAD
        expected = np.average((mine == people)[read], weights=weight[read])
        rows = surveyed().results.filter(
            pl.col("statistic") == "agreement",
            pl.col("slice") == "label:reference=evasion",
            ((pl.col("grader") == grader) & (pl.col("other") == PEOPLE))
            | ((pl.col("grader") == PEOPLE) & (pl.col("other") == grader)),
        )
        assert len(rows) == 1
        assert rows["value"][0] == pytest.approx(expected)
        assert rows["n"][0] == read.sum()
    # Planted: people call half of the true evasion evasion, 35 % of it compliance.
    assert np.mean(people == EVASION) == pytest.approx(0.5, abs=0.15)


def test_people_find_more_compliance_than_any_grader_and_are_one_more_row() -> None:
    rates = {
        g: value(surveyed(), "rate", grader=g, **{"class": "compliance"})
        for g in (*GRADERS, PEOPLE)
    }
    assert max(rates, key=lambda g: rates[g]) == PEOPLE
    dots = next(
        r for r in figure(surveyed(), "rate_dots").data["rates"] if r["name"] == "compliance"
    )
    (person,) = [d for d in dots["dots"] if d["grader"] == PEOPLE]
    assert person["role"] == "person"
    assert person["value"] == pytest.approx(rates[PEOPLE])
    assert not any(f.grader == PEOPLE and f.state is State.FOUND for f in surveyed().findings)


def test_the_effective_n_is_kishs() -> None:
    expected = C.weight.sum() ** 2 / (C.weight**2).sum()
    found = value(surveyed(), "kish_n", grader=PEOPLE)
    assert found == pytest.approx(expected)
    assert found < 200


# --- Table 17: swings ---------------------------------------------------------------------------------


@functools.cache
def swung() -> vd.Audit:
    frame = C.table(C.of_target("A")).filter(pl.col("vote") == 1).drop("vote")
    labels = vd.read(frame, reference="reference", **SETTING)
    return vd.audit(
        labels, by=["benchmark"], standardise=["domain"], drop={"family": ENCODING},
        interval="bootstrap", replicates=200, seed=3,
    )  # fmt: skip


def first_calls(grader: str) -> Array:
    return np.asarray(C.votes[grader][C.of_target("A"), 0])


def test_table_17_benchmark_of_origin_raw_and_at_one_mix_of_domains() -> None:
    rows = C.of_target("A")
    benchmark, domain = C.benchmark[rows], C.domain[rows]
    mix = {d: float(np.mean(domain == d)) for d in range(1, 5)}
    for grader in ("reference", "small-b", "blind"):
        codes = first_calls(grader)
        raw = [share(codes[benchmark == b], RATES["non_refusal"]) for b in (1, 2)]
        level = [
            sum(
                w * share(codes[(benchmark == b) & (domain == d)], RATES["non_refusal"])
                for d, w in mix.items()
            )
            for b in (1, 2)
        ]
        key = {"grader": grader, "class": "non_refusal"}
        line = "benchmark=bench-1−bench-2"
        found = row(swung(), "rate_difference", line=line, **key)
        assert found["value"] == pytest.approx(raw[0] - raw[1])
        assert found["low"] < found["value"] < found["high"]
        found = row(
            swung(), "standardised_rate_difference", line=f"{line} at the mix of domain", **key
        )
        assert found["value"] == pytest.approx(level[0] - level[1])
    # Planted: the benchmarks differ in their mix of domains, and harm rises with the domain.
    reference = {"grader": "reference", "class": "non_refusal"}
    whole = abs(value(swung(), "rate_difference", line="benchmark=bench-1−bench-2", **reference))
    at_mix = value(
        swung(), "standardised_rate_difference",
        line="benchmark=bench-1−bench-2 at the mix of domain", **reference,
    )  # fmt: skip
    assert abs(at_mix) < whole


def test_table_17_dropping_the_encoding_family() -> None:
    family = np.array([f"family-{f}" for f in C.family[C.of_target("A")]])
    changes = {}
    for grader in GRADERS:
        codes = first_calls(grader)
        without = share(codes[family != ENCODING], RATES["non_refusal"])
        changes[grader] = without - share(codes, RATES["non_refusal"])
        key = {"grader": grader, "class": "non_refusal", "line": f"family={ENCODING}"}
        assert value(swung(), "rate_without", **key) == pytest.approx(without)
        found = row(swung(), "rate_without_minus_rate", **key)
        assert found["value"] == pytest.approx(changes[grader])
        assert found["low"] < found["value"] < found["high"]
    # The spread across graders: by how much these changes differ.
    found = row(
        swung(), "rate_without_minus_rate_range",
        line=f"family={ENCODING}", **{"class": "non_refusal"},
    )  # fmt: skip
    assert found["value"] == pytest.approx(max(changes.values()) - min(changes.values()))
    assert changes["reference"] < 0  # hardly anybody refuses in that family
    shown = in_report(swung(), f"Rates without family={ENCODING}")
    printed = points(changes["reference"]).removesuffix(" points")
    assert shown["non_refusal", "reference"]["change, points"] == printed


# --- the truth ----------------------------------------------------------------------------------------


def test_with_the_truth_as_gold_the_same_graders_stand_out_and_their_loss_is_the_planted_one() -> (
    None
):
    rows = C.of_target("A")
    audit = vd.audit(vd.read(C.table(rows, truth=True), vote="vote", gold="truth", **SETTING))
    found = {
        f.grader
        for f in audit.findings
        if f.code == "class_collapse" and f.state is State.FOUND and f.class_ == "compliance"
    }
    assert found == set(DENSE)
    truth = C.truth[rows]
    for grader, planted in DENSE.items():
        key = {"grader": grader, "other": "truth", "class": "compliance"}
        kept = row(audit, "kept", **key)
        read = labels_of("A", grader) != UNREAD
        assert kept["n"] == (read & (truth == COMPLIANCE)).sum()
        se = math.sqrt(planted * (1 - planted) / kept["n"])
        assert abs(kept["value"] / kept["n"] - planted) < 4 * se + 0.02
    assert (truth == IN_COT).sum() == value(
        audit, "label_count", grader="truth", **{"class": "refused_in_cot"}
    )


def test_refusals_in_thought_are_no_top_class_and_no_non_refusal() -> None:
    codes = labels_of("A", "reference")
    in_thought = int((codes == IN_COT).sum())
    assert in_thought > 0
    refused = int((codes == REFUSAL).sum())
    found = value(on("A"), "rate", grader="reference", **{"class": "non_refusal"})
    assert found == pytest.approx(1 - (refused + in_thought) / (codes != UNREAD).sum())
