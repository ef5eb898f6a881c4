"""Graders that share errors, unread calls that are not at random, and clusters that only labels give away."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire.checks.undeclared_clusters import FEWEST_OF_OTHERS
from voirdire.checks.unread_not_at_random import exact_p
from voirdire.finding import Finding, State, Strength
from voirdire.intervals import clopper_pearson
from voirdire.simulate import panels
from voirdire.wording import plain

FOLLOWS = "graders_not_independent"
UNREAD = "unread_not_at_random"
CLUSTERS = "undeclared_clusters"
WORDS = {"n": "no", "y": "yes"}


def wide(
    labels: Mapping[str, str], tags: Mapping[str, Sequence[Any]] | None = None
) -> pl.DataFrame:
    n = len(next(iter(labels.values())))
    columns = {g: [WORDS.get(c) for c in text] for g, text in labels.items()}
    return pl.DataFrame({"response": [f"r{i:04}" for i in range(n)], **(tags or {}), **columns})


def audit(
    labels: Mapping[str, str], tags: Mapping[str, Sequence[Any]] | None = None, **options: Any
) -> vd.Audit:
    chosen = {"layout": "wide", "scale": ["no", "yes"], "graders": list(labels), **options}
    return vd.audit(vd.read(wide(labels, tags), **chosen))


def of(found: vd.Audit, code: str) -> list[Finding]:
    return [f for f in found.findings if f.code == code]


def value(finding: Finding, statistic: str) -> Any:
    (one,) = [e for e in finding.evidence if e.statistic == statistic]
    return one


def flipped(truth: str, places: Sequence[int]) -> str:
    at = set(places)
    return "".join({"n": "y", "y": "n"}[c] if i in at else c for i, c in enumerate(truth))


# --- graders_not_independent --------------------------------------------------------------------

GOLD = "n" * 100 + "y" * 100
# g1 and g2 err on 40 of gold's no each, on 30 of them both; g3 and g4 on gold's yes, each on others.
PANEL = {
    "g1": flipped(GOLD, range(40)),
    "g2": flipped(GOLD, range(10, 50)),
    "g3": flipped(GOLD, range(100, 140)),
    "g4": flipped(GOLD, range(160, 200)),
}
WITH_GOLD = {**PANEL, "gold": GOLD}


def test_two_graders_that_share_their_errors_are_found_with_the_counts() -> None:
    (one,) = of(audit(WITH_GOLD), FOLLOWS)
    assert (one.state, one.strength) == (State.FOUND, Strength.LIKELY)
    assert {one.grader, one.other} == {"g1", "g2"}
    assert value(one, "shared_departures").value == 30
    # Given gold's no by chance 40 × 40 / 100 = 16; overlap (30 − 16) / (40 − 16) = 0.5833. The pairs
    # with g3 and g4 err on different verdicts: 0 shared, 0 expected, overlap 0.
    excess = value(one, "departure_overlap_excess")
    assert excess.value == pytest.approx(14 / 24)
    assert excess.interval.low < 14 / 24 < excess.interval.high
    text = plain(one.sentence)
    assert "(on 40 responses each, on average) they give one and the same class on 30" in text
    assert "would on 16.0" in text
    assert "overlap by 58 %" in text
    assert "--panel without g1 or g2" in plain(one.next_step)
    assert "agreement" in {e.statistic for e in one.evidence}


def test_it_says_neither_who_follows_nor_that_anybody_is_at_fault() -> None:
    (one,) = of(audit(WITH_GOLD), FOLLOWS)
    text = plain(one.sentence)
    assert "Labels do not say why" in text
    for word in ("copies", "cheat", "wrong", "bias", "fault"):
        assert word not in text


def test_errors_that_overlap_as_chance_would_have_it_are_clear_with_what_could_be_seen() -> None:
    # All err on 50 of the 100: each pair shares 25 = 50 × 50 / 100, as chance would have it.
    place = np.arange(100)
    masks = (place % 2 == 0, place // 2 % 2 == 0, place // 25 % 2 == 0)
    blocks = [np.flatnonzero(m).tolist() for m in masks]
    labels = {f"g{j}": flipped(GOLD, at) for j, at in enumerate(blocks)}
    (one,) = of(audit({**labels, "gold": GOLD}), FOLLOWS)
    assert one.state is State.CLEAR
    assert "3 pairs" in plain(one.sentence)
    assert "would have been seen with probability 0.8" in plain(one.sentence)


def test_errors_on_the_same_hard_responses_by_all_are_nobody_s_in_particular() -> None:
    labels = {f"g{j}": flipped(GOLD, [*range(30), 40 + j]) for j in range(5)}
    (one,) = of(audit({**labels, "gold": GOLD}), FOLLOWS)
    assert one.state is State.CLEAR


def test_a_pair_that_shares_less_than_others_avoid_each_other_is_not_found() -> None:
    # g3 and g4 never err on the same responses (overlap −0.67); beside them 0 is not much.
    (one,) = of(audit({g: WITH_GOLD[g] for g in ("g2", "g3", "g4", "gold")}), FOLLOWS)
    assert one.state is State.CLEAR
    assert "3 pairs looked at" in plain(one.sentence)


def test_without_gold_a_pair_is_named_and_left_undecided() -> None:
    random = np.random.default_rng(3)
    truth = random.random(600) < 0.4
    labels = {}
    for j in range(5):
        said = np.where(random.random(600) < 0.75, truth, random.random(600) < 0.4)
        labels[f"g{j}"] = said
    labels["g1"] = np.where(random.random(600) < 0.7, labels["g0"], labels["g1"])
    texts = {g: "".join("y" if x else "n" for x in said) for g, said in labels.items()}
    (one,) = of(audit(texts), FOLLOWS)
    assert (one.state, one.strength, one.grader) == (State.CANNOT_TELL, Strength.NONE, "")
    text = plain(one.sentence)
    assert text.startswith("g0 and g1 go together")
    assert "the majority of the others" in text
    assert "Without gold that does not tell" in text
    assert "--gold" in plain(one.next_step)


@pytest.mark.parametrize("graders", [2, 3])
def test_without_gold_two_or_three_graders_cannot_tell(graders: int) -> None:
    labels = dict(list(PANEL.items())[:graders])
    (one,) = of(audit(labels), FOLLOWS)
    assert one.state is State.CANNOT_TELL
    assert "fewer than four graders" in plain(one.sentence)


def test_two_graders_and_gold_cannot_tell_hard_responses_from_a_follower() -> None:
    (one,) = of(audit({"g1": PANEL["g1"], "g2": PANEL["g2"], "gold": GOLD}), FOLLOWS)
    assert one.state is State.CANNOT_TELL
    assert "third grader" in plain(one.sentence)


def test_one_grader_and_gold_are_no_pair() -> None:
    assert not of(audit({"g1": PANEL["g1"], "gold": GOLD}), FOLLOWS)


def test_a_grader_that_is_made_from_another_is_known_and_not_tested() -> None:
    found = of(audit(WITH_GOLD, derived_from={"g2": ["g1"]}), FOLLOWS)
    known = [f for f in found if f.state is State.NOT_APPLICABLE]
    assert len(known) == 1
    assert "g1 and g2" in plain(known[0].sentence)
    assert not [f for f in found if f.state is State.FOUND]


def test_gold_that_is_made_from_graders_says_nothing_of_them() -> None:
    found = of(audit(WITH_GOLD, derived_from={"gold": ["g1", "g2"]}), FOLLOWS)
    assert not [f for f in found if {"g1", "g2"} & {f.grader, f.other}]
    assert all("gold" not in (f.grader, f.other) for f in found)


def test_people_are_not_told_of_by_the_majority_of_graders() -> None:
    people = ["g1", "g2"]
    for labels in (PANEL, {**PANEL, "g5": flipped(GOLD, range(50, 90))}):
        found = of(audit(labels, people=people), FOLLOWS)
        assert not any("g1 and g2" in plain(f.sentence) for f in found)


def test_graders_of_one_family_are_said_to_be_so() -> None:
    about = {"g1": {"family": "qwen"}, "g2": {"family": "qwen"}}
    (one,) = of(audit(WITH_GOLD, about=about), FOLLOWS)
    assert one.state is State.FOUND
    assert "Both are of the family qwen." in plain(one.sentence)


def test_a_class_that_a_grader_cannot_give_is_no_departure_of_its_own_choice() -> None:
    frame = wide(WITH_GOLD).with_columns(pl.col("gold").replace({"yes": "maybe"}))
    frame = frame.with_columns(
        pl.when(pl.col("gold") == "maybe").then(pl.lit("no")).otherwise("g1").alias("g1"),
        pl.when(pl.col("gold") == "maybe").then(pl.lit("no")).otherwise("g2").alias("g2"),
    )
    read = vd.read(
        frame,
        layout="wide",
        scale=["no", "maybe", "yes"],
        graders=["g1", "g2", "g3", "g4"],
        gold="gold",
        range={"g1": ["no", "yes"], "g2": ["no", "yes"]},
    )
    (one,) = [f for f in of(vd.audit(read), FOLLOWS) if f.state is State.FOUND]
    assert value(one, "shared_departures").value == 30  # and not the 100 that gold calls maybe
    assert value(one, "shared_departures").n == 100


def test_counts_and_long_scales_and_design_weights_are_not_asked(tmp_path: Any) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("grader,no,yes\ng,50,50\nh,80,20\n", encoding="utf-8")
    counts = vd.audit(vd.read(path, layout="counts", scale=["no", "yes"]))
    assert [f.state for f in of(counts, FOLLOWS)] == [State.NOT_APPLICABLE]
    weighted = audit(WITH_GOLD, {"w": [1.0, 2.5] * 100}, weight="w")
    assert [f.state for f in of(weighted, FOLLOWS)] == [State.NOT_APPLICABLE]
    frame = wide(WITH_GOLD).with_columns(
        pl.col(g).replace({"no": "1", "yes": "5"}) for g in WITH_GOLD
    )
    long = vd.read(frame, layout="wide", graders=list(WITH_GOLD), scale=list("12345"))
    assert [f.state for f in of(vd.audit(long), FOLLOWS)] == [State.NOT_APPLICABLE]


def test_a_frequency_weight_of_two_is_the_row_twice_and_the_order_of_rows_is_nothing() -> None:
    (once,) = of(audit(WITH_GOLD, {"w": [2] * 200}, weight="w", weight_kind="frequency"), FOLLOWS)
    twice = {g: "".join(c + c for c in text) for g, text in WITH_GOLD.items()}
    (rows,) = of(audit(twice), FOLLOWS)
    assert plain(once.sentence) == plain(rows.sentence)
    order = np.random.default_rng(1).permutation(200)
    mixed = wide(WITH_GOLD)[order.tolist()]
    read = vd.read(mixed, layout="wide", scale=["no", "yes"], graders=list(WITH_GOLD))
    (again,) = of(vd.audit(read), FOLLOWS)
    (first,) = of(audit(WITH_GOLD), FOLLOWS)
    assert again.record() == first.record()


def test_clusters_widen_what_is_known_of_the_excess() -> None:
    (alone,) = of(audit(WITH_GOLD), FOLLOWS)
    (held,) = of(audit(WITH_GOLD, {"core": [i // 10 for i in range(200)]}, cluster="core"), FOLLOWS)
    widths = [
        (i := value(f, "departure_overlap_excess").interval).high - i.low for f in (alone, held)
    ]
    assert widths[1] > 1.5 * widths[0]


# --- unread_not_at_random -----------------------------------------------------------------------

# Unread (.) on 15 of gold's 100 yes and on none of its no.
HIDES_YES = {"g": "n" * 100 + "." * 15 + "y" * 60 + "n" * 25, "gold": GOLD}
FAILED = {"layout": "wide", "scale": ["no", "yes"], "gold": "gold"}


def unread_audit(labels: Mapping[str, str], **options: Any) -> vd.Audit:
    frame = wide(labels)
    graders = [g for g in labels if g != "gold"]
    frame = frame.with_columns(pl.col(g).fill_null("??") for g in graders)
    chosen = {**FAILED, "graders": graders, "failed": {"??": "unparsed"}, **options}
    return vd.audit(vd.read(frame, **{k: v for k, v in chosen.items() if v is not None}))


def test_calls_that_are_unread_on_one_class_are_found_below_a_fifth_of_all() -> None:
    found = unread_audit(HIDES_YES)
    assert all(f.state is State.CLEAR for f in of(found, "outcomes_unread"))  # 7.5 %
    (one,) = of(found, UNREAD)
    assert (one.state, one.strength) == (State.FOUND, Strength.CERTAIN)
    assert (one.grader, one.other, one.class_) == ("g", "gold", "yes")
    difference = value(one, "unread_share_difference")
    assert difference.value == pytest.approx(0.15)
    # Of the class a binomial variance: 0.15 × 0.85 / 100, × 200/199; t(199) = 1.9720.
    half = 1.9720 * math.sqrt(0.15 * 0.85 / 100 * 200 / 199)
    assert difference.interval.low == pytest.approx(0.15 - half, abs=1e-4)
    text = plain(one.sentence)
    assert "15 of the 100 responses that gold calls yes (15.0 %)" in text
    assert "0 of the 100 others (0.0 %)" in text
    # Read: 60 of 185 yes; unread all no, all yes: 60 and 75 of 200.
    assert "is 32.4 % of what was read" in text
    assert "between 30.0 % and 37.5 %" in text
    # As the others of their class: 60 of 85 yes of gold's yes, so 70.588 of 200.
    assert "too low: 32.4 % instead of 35.3 %" in text


def test_unread_calls_spread_evenly_are_clear_with_what_could_be_seen() -> None:
    labels = {"g": "." * 8 + "n" * 92 + "." * 8 + "y" * 92, "gold": GOLD}
    (one,) = of(unread_audit(labels), UNREAD)
    assert one.state is State.CLEAR
    assert "8.0 % against 8.0 % elsewhere" in plain(one.sentence)
    assert "would have been seen with probability 0.8" in plain(one.sentence)


def test_without_gold_the_majority_of_two_others_says_of_what_class_a_response_is() -> None:
    labels = {"g": HIDES_YES["g"], "h": GOLD, "i": flipped(GOLD, range(98, 102))}
    (one,) = of(unread_audit(labels, gold=None), UNREAD)
    assert (one.state, one.strength, one.other) == (State.FOUND, Strength.LIKELY, "")
    assert "the majority of the others calls yes" in plain(one.sentence)


def test_one_other_grader_is_no_majority() -> None:
    (one,) = of(unread_audit({"g": HIDES_YES["g"], "h": GOLD}, gold=None), UNREAD)
    assert one.state is State.CANNOT_TELL
    assert "nor two other graders" in plain(one.sentence)


def test_gold_that_is_made_from_the_grader_does_not_say_what_it_left_unread() -> None:
    found = of(unread_audit(HIDES_YES, derived_from={"gold": ["g"]}), UNREAD)
    assert [f.state for f in found] == [State.CANNOT_TELL]


def test_few_unread_calls_cannot_tell_and_none_are_not_spoken_of() -> None:
    few = {"g": "n" * 100 + "." * 9 + "y" * 91, "gold": GOLD}
    (one,) = of(unread_audit(few), UNREAD)
    assert one.state is State.CANNOT_TELL
    assert "fewer than 10" in plain(one.sentence)
    assert not of(unread_audit({"g": GOLD, "gold": GOLD}), UNREAD)


def test_responses_that_nobody_asked_about_are_not_unread() -> None:
    assert not of(
        audit(HIDES_YES), UNREAD
    )  # a blank cell is missing: nobody knows that it was asked


def test_unread_calls_in_few_clusters_are_no_pattern_of_the_class() -> None:
    labels = {"g": HIDES_YES["g"] * 2, "gold": GOLD * 2}
    frame = wide(labels, {"core": [i // 20 for i in range(400)]}).with_columns(
        pl.col("g").fill_null("??")
    )
    read = vd.read(
        frame, **FAILED, graders=["g"], failed={"??": "unparsed"}, cluster="core"
    )  # all 30 in two clusters of twenty
    assert [f.state for f in of(vd.audit(read), UNREAD)] == [State.CANNOT_TELL]


def test_counts_do_not_say_which_calls_were_unread(tmp_path: Any) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("grader,no,yes,unparsed\ng,50,40,10\nh,80,20,0\n", encoding="utf-8")
    found = vd.audit(vd.read(path, layout="counts", scale=["no", "yes"]))
    assert [f.state for f in of(found, UNREAD)] == [State.NOT_APPLICABLE]


@pytest.mark.parametrize("case", [(3, 12, 40, 200), (0, 10, 100, 200), (9, 10, 20, 400)])
def test_the_exact_p_is_twice_the_smaller_hypergeometric_tail(
    case: tuple[int, int, int, int],
) -> None:
    inside, unread, of_class, n = case
    total = math.comb(n, unread)

    def share(x: int) -> float:
        return math.comb(of_class, x) * math.comb(n - of_class, unread - x) / total

    low = sum(share(x) for x in range(inside + 1))
    high = sum(share(x) for x in range(inside, min(unread, of_class) + 1))
    assert exact_p(*case) == pytest.approx(min(1.0, 2 * min(low, high)))


# --- undeclared_clusters ------------------------------------------------------------------------


def batches(correlation: float, *, seed: int = 5, values: int = 60) -> pl.DataFrame:
    made = panels.panel(
        seed=seed, graders=("g",), responses=600, clusters=values, correlation=correlation
    )
    return made.table(gold=False).rename({"cluster": "batch"})


def of_batches(frame: pl.DataFrame, **options: Any) -> list[Finding]:
    chosen = {"layout": "long", "outcome": "outcome", "scale": panels.CLASSES, **options}
    return of(vd.audit(vd.read(frame, **chosen)), CLUSTERS)


def test_labels_that_are_alike_within_a_column_are_found_with_the_flag() -> None:
    (one,) = of_batches(batches(0.2))
    assert (one.state, one.strength) == (State.FOUND, Strength.LIKELY)
    text = plain(one.sentence)
    assert "batch has 60 values for 600 responses (10.0 each)" in text
    assert "--cluster batch" in plain(one.next_step)
    assert "--by batch" in plain(one.next_step)  # were it a category
    effect = value(one, "design_effect_if_clustered").value
    correlation = value(one, "within_value_correlation").value
    assert effect == pytest.approx(1 + 9 * correlation)
    assert f"some {effect**0.5:.2f} times as wide" in text


def test_the_correlation_is_that_of_the_analysis_of_variance() -> None:
    from scipy.stats import f_oneway

    frame = batches(0.2).with_columns(
        pl.col("label").replace({"middle": "low"})  # two classes: one indicator says it all
    )
    (one,) = of_batches(frame, scale=["low", "high"])
    groups = [part["label"].eq("high").cast(float).to_list() for _, part in frame.group_by("batch")]
    f, p = f_oneway(*groups)
    row = value(one, "within_value_correlation")
    assert row.value == pytest.approx((f - 1) / (f - 1 + 10))
    assert row.p == pytest.approx(p)


def test_labels_that_are_not_alike_are_clear_with_what_could_be_seen() -> None:
    (one,) = of_batches(batches(0.0))
    assert one.state is State.CLEAR
    assert "the highest correlation" in plain(one.sentence)
    assert "would have been seen with probability 0.8" in plain(one.sentence)


def test_a_column_of_few_values_is_a_slice_and_no_cluster() -> None:
    # 20 topics of very different shares: the tool looks at them as slices.
    assert not of_batches(batches(0.4, values=FEWEST_OF_OTHERS - 1))


@pytest.mark.parametrize("name", ["model", "Target Model", "file"])
def test_what_is_compared_or_says_where_a_call_stood_is_no_cluster(name: str) -> None:
    assert not of_batches(batches(0.2).rename({"batch": name}))


def test_a_column_that_the_user_slices_by_is_no_cluster() -> None:
    assert not of_batches(batches(0.2), by=["batch"])


def test_a_measure_that_labels_rise_with_is_no_cluster_and_a_number_of_a_case_is() -> None:
    random = np.random.default_rng(8)
    length = random.integers(0, 40, 800)
    rises = random.random(800) < 0.1 + 0.8 * length / 40
    of_case = random.beta(1, 2, 40)[length]
    differs = random.random(800) < of_case
    for said, state in ((rises, State.CLEAR), (differs, State.FOUND)):
        text = "".join("y" if x else "n" for x in said)
        found = of(audit({"g": text, "h": text}, {"tokens": length.tolist()}), CLUSTERS)
        assert [f.state for f in found] == [state]


def test_a_prompt_whose_labels_are_alike_is_certain_and_says_by_how_much() -> None:
    (one,) = of_batches(batches(0.2).rename({"batch": "prompt"}))
    assert (one.state, one.strength) == (State.FOUND, Strength.CERTAIN)
    assert "Labels of one prompt are more alike than others" in plain(one.sentence)


def test_declared_clusters_are_the_units_of_a_column_that_gathers_them() -> None:
    made = panels.panel(seed=5, graders=("g",), responses=1200, clusters=60, correlation=0.3).table(
        gold=False
    )
    frame = made.rename({"cluster": "batch"}).with_columns(
        ((pl.col("response").str.slice(1).cast(pl.Int64) - 1) // 4).cast(pl.String).alias("pair")
    )
    (one,) = of_batches(frame, cluster="pair")
    assert one.state is State.FOUND
    assert "300 clusters that were declared" in plain(one.sentence)
    # Declared by the column itself there is nothing to tell.
    assert not [f for f in of_batches(frame, cluster="batch") if f.state is State.FOUND]


def test_under_weights_nothing_is_tested() -> None:
    frame = batches(0.2).with_columns(pl.lit("2").alias("w"))
    assert not of_batches(frame, weight="w")


# --- power and false alarms ---------------------------------------------------------------------

RUNS = 40
SEED = 20261130


def told(faults: tuple[Any, ...], code: str, *, hidden: bool = False, **model: Any) -> int:
    """In how many of :data:`RUNS` panels the code is found, of anybody."""
    found = 0
    for i in range(RUNS):
        made = panels.panel(seed=SEED + i, faults=faults, **model)
        table = made.table()
        if hidden:
            table = table.rename({"cluster": "batch"})
        labels = vd.Labels.from_frame(
            table, layout="long", outcome="outcome", scale=panels.CLASSES, gold="gold"
        )
        found += any(f.state is State.FOUND for f in of(vd.audit(labels), code))
    return found


def holds(found: int, power: float) -> bool:
    """Whether the exact 99.9 % interval of what was found holds the power that the docs state."""
    low, high = clopper_pearson(found, RUNS, 0.999)
    return low <= power <= high


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "code", "model", "power"),
    [
        ((panels.Follow(grader="g1", of="g2", share=0.5),), FOLLOWS, {}, 1.0),
        ((panels.Unread(grader="g1", share=0.3, class_="high"),), UNREAD, {}, 1.0),
        ((), CLUSTERS, {"hidden": True, "correlation": 0.1}, 1.0),
        ((), FOLLOWS, {}, 0.0),
        ((panels.Unread(grader="g1", share=0.15),), UNREAD, {}, 0.02),
        ((), CLUSTERS, {"hidden": True, "correlation": 0.0}, 0.005),
    ],
)
def test_planted_faults_and_clean_panels_are_told_as_often_as_the_docs_say(
    faults: tuple[Any, ...], code: str, model: dict[str, Any], power: float
) -> None:
    assert holds(told(faults, code, **model), power)
