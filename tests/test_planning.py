"""Plans: each number against a hand computation, or against data drawn as the plan supposes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from tests.conftest import DATA, ROOT, Run
from voirdire import auditing, intervals, planning
from voirdire.checks.base import Evidence
from voirdire.checks.class_collapse import CHECK
from voirdire.errors import UsageError
from voirdire.estimate import Key, Undefined
from voirdire.figures.planning_curves import DRAWING
from voirdire.finding import State
from voirdire.inference import Settings, estimates
from voirdire.scene import Estimates
from voirdire.simulate import coverage, panels
from voirdire.stats.base import Part
from voirdire.stats.collapse import FAMILY
from voirdire.tally import of_rows
from voirdire.wording import plain

Guesses, Share, Stratum = planning.Guesses, planning.Share, planning.Stratum
SIZES = tuple((m, 1) for m in range(5, 11))  # those of the simulated coverage, evenly


# --- shares -------------------------------------------------------------------------------------


def default_interval(events: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The ends that an audit gives of data sets ``(clusters, data sets)``, ``(data sets, 2)``."""
    case = coverage.CASES["rate 0.5"]
    cells = np.stack([events, sizes - events, sizes], axis=-1).astype(np.int64)
    keys = tuple(Key(line=str(i)) for i in range(events.shape[1]))
    asks = ((coverage.side_by_side(case.statistic), keys),)
    made = estimates([Part(tally=of_rows(cells), asks=asks, given=case.given)], Settings())
    return np.array([(e.interval.low, e.interval.high) for e in made if e.interval is not None])


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9])
def test_single_labels_have_the_mean_of_the_intervals_that_each_count_would_get(
    rate: float,
) -> None:
    n = 40
    events = np.array([[int(i < x) for x in range(n + 1)] for i in range(n)])
    ends = default_interval(events, np.ones_like(events))
    chance = np.array([math.comb(n, x) * rate**x * (1 - rate) ** (n - x) for x in range(n + 1)])
    made = planning.expected_interval(Share(name="x", value=rate), n)
    assert (made.low, made.high) == pytest.approx(tuple(chance @ ends))
    assert made.how == "formula"


def test_the_number_is_the_smallest_that_does() -> None:
    share = Share(name="false accepts", value=0.1)
    needed = planning.clusters_for_share(share, 0.05)
    assert planning.expected_half_width(share, needed.number) <= 0.05
    assert planning.expected_half_width(share, needed.number - 1) > 0.05
    assert (needed.met, needed.how) == (True, "formula")
    assert (needed.high - needed.low) / 2 == pytest.approx(needed.reached)
    # The textbook's 1.96² · 0.09 / 0.05² = 138.3; the logit interval is wider on the side of a half.
    assert 139 <= needed.number <= 165


def test_clusters_are_counted_through_the_design_effect() -> None:
    alone = Share(name="x", value=0.3, per_cluster=10, correlation=0.0)
    alike = Share(name="x", value=0.3, per_cluster=10, correlation=1.0)
    some = Share(name="x", value=0.3, per_cluster=10, correlation=0.2)
    assert (alone.design_effect, alike.design_effect) == (1, 10)
    assert some.design_effect == pytest.approx(2.8)  # 1 + 9 · 0.2
    few, middle, many = (planning.clusters_for_share(s, 0.02).number for s in (alone, some, alike))
    assert middle / few == pytest.approx(2.8, rel=0.05)
    # Ten copies of one label say no more than the label.
    one = planning.clusters_for_share(Share(name="x", value=0.3), 0.02).number
    assert many == pytest.approx(one, rel=0.03)


@pytest.mark.parametrize(
    ("rate", "clusters", "correlation"), [(0.05, 13, 0.1), (0.1, 50, 0.2), (0.5, 20, 0.2)]
)
def test_the_interval_to_expect_is_that_of_simulated_data(
    rate: float, clusters: int, correlation: float
) -> None:
    case = coverage.CASES[f"rate {rate:g}"]
    data = coverage.batch(case, np.random.default_rng(5), 2000, clusters, correlation)
    low, high = coverage.engine_ends(data, Settings())
    share = Share(name="x", value=rate, per_cluster=7.5, correlation=correlation, sizes=SIZES)
    made = planning.expected_interval(share, clusters)
    assert made.how == "simulation"
    # Two independent runs of 2,000 data sets.
    error = math.hypot(made.error, np.std(high - low) / 2 / math.sqrt(len(low)))
    assert np.mean(high - low) / 2 == pytest.approx(made.half_width, abs=4 * error)
    assert error < 0.02 * made.half_width
    # Both sides, and not only the width.
    assert np.mean(low) == pytest.approx(made.low, abs=4 * error)
    assert np.mean(high) == pytest.approx(made.high, abs=8 * error)


def test_where_events_are_many_the_formula_says_what_simulation_says() -> None:
    share = Share(name="x", value=0.1, per_cluster=10, correlation=0.1)
    clusters = 250
    made = planning.expected_interval(share, clusters)
    assert made.how == "formula"
    generator = np.random.default_rng(9)
    events = generator.binomial(10, generator.beta(0.9, 8.1, (clusters, 1000)))
    ends = default_interval(events, np.full_like(events, 10))
    assert np.mean(ends[:, 1] - ends[:, 0]) / 2 == pytest.approx(made.half_width, rel=0.015)


def validation() -> list[str]:
    """What docs/planning.md shows: each plan's number simulated anew, and the half width that it gave."""
    lines = []
    for rate in (0.05, 0.1, 0.5):
        for clusters in (13, 50, 200):
            for correlation in (0.0, 0.1):
                share = Share(
                    name="x", value=rate, per_cluster=7.5, correlation=correlation, sizes=SIZES
                )
                wanted = planning.expected_half_width(share, clusters)
                needed = planning.clusters_for_share(share, wanted)
                generator = np.random.default_rng([31, clusters])
                case = coverage.CASES[f"rate {rate:g}"]
                found = []
                for _ in range(8):
                    data = coverage.batch(case, generator, 250, needed.number, correlation)
                    low, high = coverage.engine_ends(data, Settings())
                    found.append((high - low) / 2)
                widths = np.concatenate(found)
                lines.append(
                    f"| {rate:g} | {correlation:g} | ± {100 * wanted:.2f} | {needed.number} | {needed.how} "
                    f"| ± {100 * widths.mean():.2f} | {widths.mean() / wanted:.3f} |"
                )
    return lines


@pytest.mark.slow
def test_audits_of_the_planned_size_have_the_planned_half_width() -> None:
    made = validation()
    assert len(made) == 18
    assert all(abs(float(line.split("|")[-2]) - 1) <= 0.03 for line in made), made
    page = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
    missing = [line for line in made if line not in page]
    assert not missing, missing


def test_unequal_weights_count_as_kishs_effective_number() -> None:
    import polars as pl

    generator = np.random.default_rng(11)
    rows = [
        {"response": f"{i}", "cluster": f"c{i // 5}", "grader": "j", "weight": 1.0 if i % 4 else 6.0,
         "label": str(int(generator.random() < 0.3))}
        for i in range(400)
    ]  # fmt: skip
    labels = vd.read(pl.DataFrame(rows), scale="0,1", weight="weight")
    (share,) = planning.pilot(labels).rates
    # (300 · 1 + 100 · 6)² / (300 · 1 + 100 · 36) = 207.7 of 400, within clusters as the audit has it.
    assert (share.trials, share.clusters) == (400, 80)
    assert share.weighting > 1
    assert share.effective == pytest.approx(400 / share.weighting)
    plain = planning.pilot(vd.read(pl.DataFrame(rows).drop("weight"), scale="0,1")).rates[0]
    assert plain.weighting == 1
    assert share.design_effect > plain.design_effect
    (row,) = vd.audit(labels).results.filter(statistic="rate").iter_rows(named=True)
    expected = planning.expected_half_width(share, share.clusters)
    assert expected == pytest.approx((row["high"] - row["low"]) / 2, rel=0.15)
    text = auditing.format_of("plan.txt").render(
        planning.document(Guesses(), planning.pilot(labels))
    )
    assert "weighted, they count as" in " ".join(text.decode().split())


def test_a_plan_that_cannot_be_met_says_the_best_that_can() -> None:
    share = Share(name="x", value=0.3, per_cluster=5, correlation=0.3)
    needed = planning.clusters_for_share(share, 0.02, most=30)
    assert (needed.number, needed.met) == (30, False)
    assert needed.reached == planning.expected_half_width(share, 30) > 0.02
    # No interval is given below three clusters.
    assert math.isnan(planning.expected_half_width(share, 2))


def test_a_share_of_zero_can_be_planned_for() -> None:
    needed = planning.clusters_for_share(Share(name="x", value=0.0), 0.05)
    # 0 of n: the upper end is 1 − 0.025^(1/n), twice 0.05 at n = ln 0.025 / ln 0.9 = 35.01.
    assert needed.number == 36


# --- phrasings and votes ------------------------------------------------------------------------


def test_three_phrasings_leave_a_component_wide_open() -> None:
    low, high = planning.phrasing_factors(3)
    # χ² on 2 degrees of freedom is −2 ln: 2 / (−2 ln 0.025) and 2 / (−2 ln 0.975).
    assert low == pytest.approx(1 / -math.log(0.025))
    assert high == pytest.approx(1 / -math.log(0.975))
    assert 0.177 * low == pytest.approx(0.048, abs=5e-4)
    assert 0.177 * high == pytest.approx(6.99, abs=5e-3)
    assert all(math.isnan(x) for x in planning.phrasing_factors(1))


def test_phrasings_are_the_fewest_that_do() -> None:
    needed = planning.phrasings_for_factor(3.0)
    assert (
        planning.phrasing_factors(needed.number)[1]
        <= 3
        < planning.phrasing_factors(needed.number - 1)[1]
    )
    short = planning.phrasings_for_factor(1.1, most=20)
    assert (short.met, short.number) == (False, 20)
    assert short.reached == planning.phrasing_factors(20)[1]


def test_one_vote_flips_as_often_as_two_votes_differ() -> None:
    for rate, apart in ((0.5, 0.1), (0.3, 0.3), (0.1, 0.02)):
        assert planning.vote_flip_rate(1, rate, apart) == pytest.approx(apart, rel=1e-6)


def test_votes_that_do_not_know_the_response_follow_the_binomial() -> None:
    p = 0.3
    q = 3 * p**2 * (1 - p) + p**3  # two or three of three
    assert planning.vote_flip_rate(3, p, 2 * p * (1 - p)) == pytest.approx(2 * q * (1 - q))


def test_vote_flips_are_those_of_drawn_votes() -> None:
    generator = np.random.default_rng(6)
    rate, correlation = 0.4, 0.7
    size = (1 - correlation) / correlation
    chances = generator.beta(rate * size, (1 - rate) * size, 200_000)
    one, other = (generator.binomial(5, chances) >= 3 for _ in range(2))
    expected = planning.vote_flip_rate(5, rate, 2 * rate * (1 - rate) * (1 - correlation))
    assert np.mean(one != other) == pytest.approx(expected, abs=4 * math.sqrt(expected / 200_000))


def test_votes_needed_are_odd_and_enough() -> None:
    needed = planning.votes_for_flips(0.4, 0.05, 0.03)
    assert needed.number % 2 == 1
    assert planning.vote_flip_rate(needed.number, 0.4, 0.05) <= 0.03
    assert planning.vote_flip_rate(needed.number - 2, 0.4, 0.05) > 0.03
    never = planning.votes_for_flips(0.5, 0.5, 0.01)
    assert (never.met, never.number) == (False, planning.MOST_VOTES)
    assert planning.votes_for_flips(0.5, 0.0, 0.01).number == 1
    with pytest.raises(UsageError, match=r"at most on 18\.0 %"):
        planning.vote_flip_rate(3, 0.1, 0.3)
    with pytest.raises(UsageError, match="odd"):
        planning.vote_flip_rate(4, 0.5, 0.3)


# --- the collapse of a class --------------------------------------------------------------------


def test_a_collapse_at_the_threshold_is_found_every_second_time_and_none_hardly_ever() -> None:
    of = planning.Collapse(ratio=1 / 3, share=0.3, gold=True, per_cluster=3)
    at = planning.collapse_power(of, 300, seed=1)
    assert at.found == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(at.runs))
    assert at.certain <= 0.02
    none = planning.collapse_power(
        planning.Collapse(ratio=0.99, share=0.3, gold=True, per_cluster=3), 300, seed=1
    )
    assert none.found == 0


def test_power_grows_with_clusters_and_with_the_collapse() -> None:
    of = planning.Collapse(ratio=0.25, share=0.1, graders=3)
    small, large = (planning.collapse_power(of, n, seed=2).found for n in (300, 1500))
    assert small < large
    harder = planning.Collapse(ratio=0.1, share=0.1, graders=3)
    assert planning.collapse_power(harder, 300, seed=2).found > small


def test_a_simulated_answer_is_seeded_and_gives_its_power() -> None:
    of = planning.Collapse(ratio=0.1, share=0.2, gold=True)
    needed = planning.responses_for_collapse(of, 0.8, runs=200, seed=3)
    assert needed == planning.responses_for_collapse(of, 0.8, runs=200, seed=3)
    assert (needed.met, needed.how) == (True, "simulation")
    again = planning.collapse_power(of, needed.number, runs=2000, seed=4).found
    assert again >= 0.8 - 4 * math.sqrt(0.16 / 200)
    # The rule needs 20 labels of the other: half of them cannot do.
    assert needed.number > 50


def test_no_number_finds_half_a_collapse() -> None:
    of = planning.Collapse(ratio=0.5, share=0.3, gold=True)
    needed = planning.responses_for_collapse(of, 0.8, runs=50, most=1000)
    assert not needed.met
    assert needed.reached < 0.5
    with pytest.raises(UsageError, match="at least 3 graders"):
        planning.collapse_power(planning.Collapse(ratio=0.1, share=0.1, graders=2), 100)


@pytest.mark.parametrize("scale", ["", "1,2,3,4,5"])
def test_no_collapse_is_planned_where_the_rule_is_not_applied(scale: str) -> None:
    rows = [(f"r{i}", g, str(1 + (i * i + j) % 5)) for i in range(60) for j, g in enumerate("abc")]
    frame = pl.DataFrame(rows, schema=["response", "grader", "label"], orient="row")
    of = planning.pilot(vd.read(frame, layout="long", **({"scale": scale} if scale else {})))
    assert not of.classes
    asked = planning.answers(Guesses(class_share=0.1, runs=20), of)  # a stated one is planned for
    assert [a.statistic for a in asked if "collapse" in a.statistic]


def test_clusters_too_large_to_simulate_are_planned_with_smaller_ones() -> None:
    made = planning.answers(Guesses(class_share=0.1, cluster_size=1e7, runs=40))
    assert [a.needed.met for a in made] == [True, True]
    assert all(a.labels == a.needed.number * 10**7 for a in made)
    assert "simulated with" in plain(made[0].guess)


def test_a_planted_collapse_is_found_by_the_check_at_the_power_of_the_plan() -> None:
    """The panel of ``simulate``, read as a file; the plan simulates its counts alone."""
    of = planning.Collapse(
        ratio=0.25, share=0.1, graders=4, per_cluster=5, correlation=0.2, gold=True, classes=3
    )
    clusters, tried = 60, 40
    power = planning.collapse_power(of, clusters, runs=2000, seed=5)
    assert 0.3 < power.found < 0.95  # where a wrong power would show
    found = 0
    for seed in range(tried):
        made = panels.panel(
            seed=seed,
            graders=("g1", "g2", "g3", "g4"),
            responses=5 * clusters,
            clusters=clusters,
            faults=(panels.Collapse(grader="g1", class_="high", ratio=of.ratio),),
        )
        scene, _ = auditing.scenes(made.labels(gold="gold"))
        held = Estimates(estimates(FAMILY.parts(scene), Settings(), with_intervals=False))
        evidence = Evidence(whole=scene, slices=(), estimates=held, clusters_declared=True)
        found += any(
            f.code == "class_collapse" and f.state is State.FOUND and f.grader == "g1"
            for f in CHECK.run(evidence)
        )
    error = math.sqrt(power.found * (1 - power.found) / tried)
    assert abs(found / tried - power.found) < 4 * error


def test_the_mildest_collapse_is_found_with_that_power() -> None:
    count = 100
    ratio = planning.smallest_ratio(count, 0.8)
    own = np.random.default_rng(7).poisson(ratio * count, 100_000)
    # A count is a whole number: below the threshold is at most 33 of 100.
    assert np.mean(own <= count / 3) == pytest.approx(0.8, abs=0.05)
    assert math.isnan(planning.smallest_ratio(19, 0.8))
    assert planning.smallest_ratio(10**6, 0.8) == pytest.approx(1 / 3, abs=1e-3)
    assert planning.smallest_ratio(40, 0.8, design_effect=3) < planning.smallest_ratio(40, 0.8)


def test_the_smallest_difference_is_seen_with_its_power() -> None:
    least = planning.smallest_difference(1.0, 20, 0.8)
    generator = np.random.default_rng(8)
    drawn = least + generator.standard_normal(100_000)
    se = np.sqrt(generator.chisquare(20, 100_000) / 20)
    seen = np.mean(drawn / se > intervals.t_quantile(0.975, 20))
    assert seen == pytest.approx(0.8, abs=0.01)


def test_the_smallest_rise_is_the_one_that_the_binomial_test_sees() -> None:
    # Nothing seen in 50: the rate that shows an event with 80 % is 1 − 0.2^(1/50).
    assert planning.smallest_rise(0.0, 50, 0.8) == pytest.approx(1 - 0.2 ** (1 / 50))
    rise = planning.smallest_rise(0.02, 200, 0.8)
    chances = [math.comb(200, x) * 0.02**x * 0.98 ** (200 - x) for x in range(201)]
    least = next(c for c in range(201) if sum(chances[c:]) <= 0.025)
    drawn = np.random.default_rng(12).binomial(200, 0.02 + rise, 200_000)
    assert np.mean(drawn >= least) == pytest.approx(0.8, abs=0.005)
    assert math.isnan(planning.smallest_rise(0.5, 3, 0.8))  # 3 of 3 has a chance of 12.5 %


# --- strata -------------------------------------------------------------------------------------


def test_neyman_allocates_by_size_and_spread() -> None:
    # Weights 800 · 0.3 = 240 and 200 · 0.4 = 80: three to one.
    strata = (Stratum(name="a", size=800, rate=0.1), Stratum(name="b", size=200, rate=0.2))
    made = planning.allocation(strata, 0.03, "neyman")
    assert made.labels[0] / made.labels[1] == pytest.approx(3, rel=0.03)
    # n₀ = (Σ W S)² z² / w² over 1 + Σ W S² z² / (w² N): 0.1024 · 3.8415 / 0.0009 = 437.1, and
    # 0.104 · 3.8415 / (0.0009 · 1000) = 0.4439: 302.7.
    assert made.total in (303, 304)
    assert made.half_width <= 0.03


def test_equal_allocation_needs_no_fewer_and_fills_no_stratum_beyond_itself() -> None:
    strata = (Stratum(name="easy", size=5000, rate=0.02), Stratum(name="hard", size=30, rate=0.5))
    neyman, equal = (planning.allocation(strata, 0.01, rule) for rule in ("neyman", "equal"))
    assert neyman.total <= equal.total
    assert equal.labels[1] == 30
    assert neyman.met
    assert equal.met


def test_labels_that_do_not_do_give_the_best_half_width() -> None:
    strata = (Stratum(name="a", size=100, rate=0.5), Stratum(name="b", size=100, rate=0.5))
    made = planning.allocation(strata, 0.01, "equal", most=50)
    assert (made.met, made.labels) == (False, (25, 25))
    # z · √(2 · ¼ · 0.25/25 · 0.75) = 1.96 · 0.0612
    assert made.half_width == pytest.approx(0.12, abs=5e-4)
    assert planning.allocation(strata, 0.001, "equal").labels == (100, 100)
    with pytest.raises(UsageError, match="no stratum"):
        planning.allocation((), 0.1, "equal")
    with pytest.raises(UsageError, match="not one of"):
        planning.allocation(strata, 0.1, "best")


# --- a pilot and the document -------------------------------------------------------------------


def jailbreakbench() -> vd.Labels:
    return vd.read(
        DATA / "jailbreakbench.csv",
        layout="wide",
        response="Index",
        cluster="goal_id",
        graders="harmbench_cf,gpt4_cf,llamaguard2_cf,llama3_cf",
        gold="human_majority",
        scale="0,1",
    )


def test_a_pilot_gives_the_shares_that_its_audit_gives() -> None:
    labels = jailbreakbench()
    of = planning.pilot(labels)
    rows = vd.audit(labels).results.filter(statistic="rate")
    for share in of.rates:
        (row,) = rows.filter(grader=share.grader).iter_rows(named=True)
        assert share.value == pytest.approx(row["value"])
        # The plan expects the interval that the audit made of these clusters, or a wider one: attempts
        # at one goal agree less than chance here, and the plan does not count on that.
        expected = planning.expected_half_width(share, share.clusters)
        assert 0.98 < expected / ((row["high"] - row["low"]) / 2) < 1.2
        assert share.design_effect >= 1
    accepts = {s.grader: s for s in of.shares}
    assert accepts["gpt4_cf"].value == pytest.approx(19 / 190)
    assert (of.graders, of.gold) == (4, True)


def test_the_document_answers_and_says_what_could_not_have_been_seen() -> None:
    of = planning.pilot(jailbreakbench())
    made = planning.document(Guesses(runs=50), of)
    text = auditing.format_of("plan.txt").render(made).decode()
    assert "could not have seen less than" in text
    assert "could not have seen a collapse to more than" in text
    assert "simulation" in text
    names = {e.statistic for e in made.estimates}
    assert {
        "clusters_for_false_accepts_by_simulation",
        "clusters_for_collapse_by_simulation",
    } <= names
    for suffix in ("html", "md", "json", "csv", "parquet"):
        assert auditing.format_of(f"plan.{suffix}").render(made)
    keys = [(e.statistic, *e.key) for e in made.estimates]
    assert len(set(keys)) == len(keys)
    again = planning.document(Guesses(runs=50), of)
    render = auditing.format_of("plan.json").render
    assert render(again) == render(made)


def test_a_checklist_is_a_pilot_for_its_gate() -> None:
    labels = vd.read(
        DATA / "judge_item_bank.csv",
        layout="checklist",
        response="item_id",
        question="question_id",
        cut="5",
    )
    of = planning.pilot(labels)
    by_name = {s.name: s for s in of.shares}
    assert by_name["gate accuracy"].clusters == 13
    assert by_name["gate accuracy"].cut == "5"
    made = planning.document(Guesses(within=0.02, most=40, factor=2.0, most_phrasings=10), of)
    values = {e.statistic: e.value for e in made.estimates}
    for statistic in (
        "clusters_for_false_accepts_by_simulation",
        "phrasings_for_component_by_formula",
    ):
        value = values[statistic]
        assert isinstance(value, Undefined)
        assert "at best, with" in value.reason


def test_a_pilot_of_one_grader_says_what_it_shows_and_what_it_lacks() -> None:
    import polars as pl

    rows = [{"response": str(i), "grader": "j", "label": str(int(i < 20))} for i in range(50)]
    made = planning.document(Guesses(), planning.pilot(vd.read(pl.DataFrame(rows), scale="0,1")))
    text = auditing.format_of("plan.txt").render(made).decode()
    assert "could not have seen less than" in text
    assert "State a guess" in " ".join(text.split())
    assert plain(made.summary) == "What the file as it is could show."


def test_votes_of_a_pilot_are_planned_for() -> None:
    import polars as pl

    rows = [
        {
            "response": str(i),
            "grader": "j",
            "vote": v,
            "label": str(int(i < 4 or (i == 4 and v == 1))),
        }
        for i in range(10)
        for v in (1, 2)
    ]
    of = planning.pilot(vd.read(pl.DataFrame(rows), scale="0,1"))
    # Two votes differ on 1 of 10 responses; 9 of 20 votes are yes.
    ((grader, rate, apart, most),) = of.votes
    assert (grader, most) == ("j", 2)
    assert rate == pytest.approx(0.45)
    assert apart == pytest.approx(0.1)


def test_counts_are_no_pilot_and_nothing_is_no_plan() -> None:
    counts = vd.read(
        DATA / "missing_class_a.csv",
        layout="counts",
        scale="refusal,evasion,compliance",
        off_scale="gibberish,refused_in_cot",
    )
    with pytest.raises(UsageError, match="count table"):
        planning.pilot(counts)
    with pytest.raises(UsageError, match="nothing to plan from"):
        planning.document(Guesses())


@pytest.mark.parametrize(
    ("guess", "what"),
    [
        ({"false_accept": 1.2}, "--false-accept"),
        ({"false_accept": 0.1, "within": 0.6}, "--within"),
        ({"class_share": 0.1, "power": 1.0}, "--power"),
        ({"class_share": 0.1, "ratio": 1.0}, "--ratio"),
        ({"disagreement": 0.6}, "cannot differ"),
        ({"disagreement": 0.1, "flips": 0.0}, "--flips"),
        ({"factor": 1.0}, "--factor"),
        ({"false_accept": 0.1, "cluster_size": 0.5}, "--cluster-size"),
        ({"false_accept": 0.1, "cluster_size": math.nan}, "--cluster-size"),
        ({"false_accept": 0.1, "cluster_size": math.inf}, "--cluster-size"),
        ({"factor": math.inf}, "--factor"),
        ({"false_accept": 0.1, "most": -4}, "--most-clusters"),
        ({"factor": 3.0, "most_phrasings": -1}, "--most-phrasings"),
        ({"class_share": 0.1, "graders": 0}, "--judges"),
        ({"strata": (Stratum(name="a", size=9, rate=0.1),) * 2}, "--strata"),
        ({"strata": (Stratum(name="a", size=9, rate=0.1),), "most_labels": -3}, "--most-labels"),
    ],
)
def test_a_guess_that_is_none_is_refused(guess: dict[str, float], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        planning.document(Guesses(**guess))  # type: ignore[arg-type]


# --- the figure and the command -----------------------------------------------------------------


def test_the_curves_stand_alone_and_escape_what_they_draw() -> None:
    nasty = '</svg><script>alert("1")</script>&\x1b'
    data = {
        "within": 0.05,
        "curves": [
            {"name": nasty, "grader": nasty, "class": "", "clusters": [3, 30, 300],
             "half_width": [0.4, 0.12, 0.04], "needed": 180, "now": None},
            {"name": "gate", "grader": "", "class": "", "clusters": [3, 30],
             "half_width": [math.nan, 0.2], "needed": None, "now": 4},
        ],
    }  # fmt: skip
    drawn = DRAWING.svg(data, "alt")
    root = ElementTree.fromstring(drawn)
    assert root.get("viewBox")
    assert "<script" not in drawn
    assert "\x1b" not in drawn
    assert "180 clusters" in drawn
    assert "not met" in drawn
    assert DRAWING.lines is not None
    for width in (40, 100):
        for ascii_only in (False, True):
            shown = DRAWING.lines(data, width, ascii_only)
            assert all(len(line) <= width for line in shown)
            assert "180 clusters" in "\n".join(shown)
    tame = {"within": 0.05, "curves": data["curves"][1:]}  # type: ignore[index]
    assert all(line.isascii() for line in DRAWING.lines(tame, 60, True))
    assert ElementTree.fromstring(DRAWING.svg({"curves": [], "within": None}, ""))


def test_the_command_plans_and_writes(voirdire: Run, tables: Path) -> None:
    asked = ("plan", "--false-accept", "0.1", "--within", "0.03", "-o", "plan.json")
    done = voirdire(*asked)
    assert done.returncode == 0, done.stderr
    assert "False accepts within" in done.stdout
    assert "formula" in done.stdout
    written = json.loads((tables / "plan.json").read_text(encoding="utf-8"))
    (row,) = written["results"]
    assert row["statistic"] == "clusters_for_false_accepts_by_formula"
    assert row["value"] == planning.clusters_for_share(Share(name="x", value=0.1), 0.03).number
    refused = voirdire("plan", "--strata", "hard")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "NAME=SIZE:RATE" in refused.stderr


def test_every_question_is_one_file_and_is_asked_by_its_example() -> None:
    made = planning.questions()
    files = {p.stem for p in (Path(planning.__file__).parent).glob("[a-z]*.py")} - {"base"}
    assert {q.name for q in made} == files
    assert len({q.order for q in made}) == len(made)
    with pytest.raises(UsageError) as raised:
        planning.document(Guesses())
    for question in made:
        assert question.guess in str(raised.value)


def test_names_of_a_pilot_stay_names() -> None:
    of = planning.pilot(jailbreakbench())
    answer = planning.answers(Guesses(runs=50), of)[0]
    assert any(not isinstance(part, str) for part in answer.whose)
    assert "harmbench_cf" in plain(answer.whose)


def test_the_labels_of_a_planned_collapse_have_the_correlation_that_was_said() -> None:
    """One-way analysis of variance of the class, over clusters of 40 labels of one grader."""
    of = planning.Collapse(ratio=0.999, share=0.3, per_cluster=40, correlation=0.2, gold=True)
    clusters, size = 4000, 40
    own, _ = planning.collapse._panels(of, np.random.default_rng(3), 1, clusters, size)
    share = own[0] / size
    between = size * share.var(ddof=1)
    within = (share * (1 - share)).sum() * size / (clusters * (size - 1))
    found = (between - within) / (between + (size - 1) * within)
    # The ICC of 4,000 clusters has a standard error of about (1 − ρ) √(2 / 4,000) (ρ + (1 − ρ) / 40).
    assert abs(found - 0.2) < 4 * 0.0062
