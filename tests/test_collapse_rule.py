"""The collapse rule, branch by branch, on planted panels, and beside a loop that knows only the issue.

A planted panel gives each grader's count of one class; its labels of it stand on the first
responses, so that who labels less labels a subset.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats as scipy_stats

import voirdire as vd
from voirdire import intervals
from voirdire.auditing import scenes
from voirdire.checks import class_collapse
from voirdire.checks.base import Evidence
from voirdire.corroboration import holm
from voirdire.finding import Finding, State, Strength
from voirdire.inference import Settings, estimates
from voirdire.scene import Estimates
from voirdire.stats import collapse

SCALE = ("low", "mid", "high")
N = 300


# --- planting -------------------------------------------------------------------------------------


def frame_of(
    labels: Mapping[str, Sequence[str | None]],
    *,
    clusters: Sequence[Any] | None = None,
    tags: Mapping[str, Sequence[Any]] | None = None,
) -> pl.DataFrame:
    """A long table; ``None`` is no row."""
    rows = []
    for grader, column in labels.items():
        for i, label in enumerate(column):
            if label is None:
                continue
            row = {"response": f"u{i}", "grader": grader, "label": label}
            if clusters is not None:
                row["cluster"] = f"c{clusters[i]}"
            rows.append(row | {k: v[i] for k, v in (tags or {}).items()})
    return pl.DataFrame(rows)


def column(count: int, *, n: int = N, class_: str = "high", rest: str = "mid") -> list[str]:
    return [class_] * count + [rest] * (n - count)


def planted(counts: Mapping[str, int], *, n: int = N, **options: Any) -> vd.Audit:
    """An audit of graders that give ``high`` so many times, each response its own cluster."""
    labels = {g: column(k, n=n) for g, k in counts.items()}
    return vd.audit(vd.read(frame_of(labels), **{"scale": SCALE, **options}))


def counts_table(path: Any, counts: Mapping[str, int], n: int = N) -> Any:
    lines = ["grader,low,mid,high,total", *(f"{g},0,{n - k},{k},{n}" for g, k in counts.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def of(
    audit: vd.Audit,
    code: str = "class_collapse",
    state: State | None = None,
    grader: str | None = None,
    class_: str | None = None,
) -> list[Finding]:
    return [
        f
        for f in audit.findings
        if f.code == code
        and (state is None or f.state is state)
        and (grader is None or f.grader == grader)
        and (class_ is None or f.class_ == class_)
    ]


def found(audit: vd.Audit, code: str = "class_collapse") -> set[tuple[str, str]]:
    return {(f.grader, f.class_) for f in of(audit, code, State.FOUND)}


def judged(labels: vd.Labels) -> list[Finding]:
    """The findings of the rule alone, without the intervals and the rest of an audit."""
    scene, _ = scenes(labels)
    made = estimates(collapse.FAMILY.parts(scene), Settings(), with_intervals=False)
    evidence = Evidence(whole=scene, slices=(), estimates=Estimates(made), clusters_declared=True)
    return [f for f in class_collapse.CHECK.run(evidence) if f.state is State.FOUND]


def sentence(finding: Finding) -> str:
    return str(finding.record()["sentence"])


# --- with gold --------------------------------------------------------------------------------------


def test_with_gold_a_count_below_a_third_of_golds_is_found():
    audit = planted({"gold": 60, "A": 19, "B": 20, "C": 60})
    assert found(audit) == {("A", "high")}, "20 is a third of 60 and not below it"
    (finding,) = of(audit, state=State.FOUND)
    assert finding.other == "gold"
    assert "60" in sentence(finding)
    assert "19" in sentence(finding)


def test_with_gold_one_grader_is_enough_and_the_others_do_not_matter():
    audit = planted({"gold": 90, "A": 5})
    assert found(audit) == {("A", "high")}
    crowd = planted({"gold": 90, "A": 90, "B": 20, "C": 20, "D": 20})
    assert found(crowd) == {(g, "high") for g in "BCD"}


def test_with_gold_the_finding_says_where_the_labels_went():
    labels = {
        "gold": ["high"] * 100 + ["low"] * 200,
        "A": ["high"] * 20 + ["mid"] * 70 + ["low"] * 10 + ["low"] * 200,
    }
    audit = vd.audit(vd.read(frame_of(labels), scale=SCALE))
    (finding,) = of(audit, state=State.FOUND)
    text = sentence(finding)
    assert re.search(r"100 responses that gold calls high it keeps 20: 70 to mid, 10 to low", text)
    assert "88 % of the moved went one step" in text  # 70 of 80
    assert "neighbour" in text
    rows = {e.statistic: e.number for e in finding.evidence if not e.key.to_class}
    assert rows["kept"] == 20
    assert rows["neighbour_share"] == pytest.approx(70 / 80)
    assert rows["collapse_ratio"] == pytest.approx(0.2)


# --- without gold -----------------------------------------------------------------------------------


def test_without_gold_two_others_are_needed():
    assert found(planted({"A": 10, "B": 60, "C": 60})) == {("A", "high")}
    one_high = planted({"A": 10, "B": 60, "C": 12, "D": 12})
    assert found(one_high) == set()


def test_the_second_largest_other_decides():
    assert found(planted({"A": 20, "B": 200, "C": 61})) == {("A", "high")}
    assert found(planted({"A": 20, "B": 200, "C": 60})) == set()


def test_with_a_single_other_nothing_can_be_told():
    audit = planted({"A": 10, "B": 200})
    assert found(audit) == set()
    (finding,) = of(audit, grader="A", class_="high")
    assert finding.state is State.CANNOT_TELL
    assert finding.strength is Strength.NONE
    assert "difference between two graders and no more" in sentence(finding)


def test_two_that_are_made_from_one_another_corroborate_once():
    counts = {"A": 10, "B": 60, "C": 60}
    audit = planted(counts, derived_from=["C=B"])
    assert found(audit) == set()
    assert of(audit, state=State.CANNOT_TELL, grader="A", class_="high")
    assert found(planted({**counts, "D": 60}, derived_from=["C=B"])) == {("A", "high")}


def test_two_of_one_family_corroborate_once():
    counts = {"A": 10, "B": 60, "C": 60}
    family = {"B": {"family": "x"}, "C": {"family": "x"}}
    assert found(planted(counts, about=family)) == set()
    apart = {"B": {"family": "x"}, "C": {"family": "y"}}
    assert found(planted(counts, about=apart)) == {("A", "high")}


def test_a_grader_does_not_corroborate_against_its_own_family():
    counts = {"A": 10, "B": 60, "C": 60}
    family = {"A": {"family": "x"}, "B": {"family": "x"}}
    assert found(planted(counts, about=family)) == set()


def test_a_declared_range_silences_outside_of_it_and_corroborates_inside():
    labels = {
        "A": column(10),
        "B": column(60),
        "rule": ["high"] * 60 + ["low"] * 240,  # cannot give mid
        "C": ["mid"] * 300,
        "D": ["mid"] * 300,
    }
    audit = vd.audit(vd.read(frame_of(labels), scale=SCALE, range=["rule=low+high"]))
    assert ("A", "high") in found(audit), "B and the rule give it 60 times each"
    assert ("rule", "mid") not in found(audit)
    (finding,) = of(audit, "class_not_in_range")
    assert (finding.grader, finding.class_, finding.state) == ("rule", "mid", State.FOUND)
    declared = vd.audit(vd.read(frame_of(labels), scale=SCALE, range=["rule=low+mid+high"]))
    assert ("rule", "mid") in found(declared), "without the range the rule is flagged for it"
    # Outside of its range it does not speak: B alone gives high often then.
    outside = {**labels, "rule": ["mid"] * 300}
    audit = vd.audit(vd.read(frame_of(outside), scale=SCALE, range=["rule=low+mid"]))
    assert ("A", "high") not in found(audit)


def test_people_are_not_flagged_from_others_counts_but_corroborate_against_them():
    counts = {"Ann": 10, "B": 60, "C": 60, "D": 60}
    assert found(planted(counts)) == {("Ann", "high")}
    assert found(planted(counts, people="Ann")) == set()
    people = {"A": 10, "Ann": 60, "Bob": 60}
    assert found(planted(people, people="Ann,Bob")) == {("A", "high")}
    three = {"Ann": 10, "Bob": 60, "Cid": 60, "D": 60}
    assert found(planted(three, people="Ann,Bob,Cid")) == {("Ann", "high")}, "people about people"


def test_people_are_not_flagged_inside_a_slice_either():
    labels = {"Ann": column(2), "B": column(60), "C": column(60), "D": column(60)}
    tags = {"part": ["x" if i < 100 else "y" for i in range(N)]}
    frame = frame_of(labels, tags=tags)
    audit = vd.audit(vd.read(frame, scale=SCALE, people="Ann", by="part"))
    assert not [f for f in audit.findings if f.grader == "Ann" and f.state is State.FOUND]
    assert not of(audit, "hidden_in_pool", State.FOUND)


@pytest.mark.parametrize(("unread", "speaks"), [(60, True), (61, False)])
def test_a_grader_with_more_than_a_fifth_unread_neither_flags_nor_is_flagged(unread, speaks):
    def with_unread(labels: list[str]) -> list[str]:
        return labels[: N - unread] + ["failed"] * unread  # the last ones, which are all mid

    options = {"scale": SCALE, "failed": ["failed=error"]}
    accused = {"A": with_unread(column(10)), "B": column(60), "C": column(60)}
    audit = vd.audit(vd.read(frame_of(accused), **options))
    assert found(audit) == ({("A", "high")} if speaks else set())
    assert bool(of(audit, "outcomes_unread", State.FOUND)) is not speaks
    witness = {"A": column(10), "B": column(60), "C": with_unread(column(60))}
    audit = vd.audit(vd.read(frame_of(witness), **options))
    assert found(audit) == ({("A", "high")} if speaks else set())


def test_more_than_twenty_graders_without_gold_are_not_judged_and_their_shares_are_shown():
    def flagged(counts: Mapping[str, int]) -> set[tuple[str, str]]:
        frame = frame_of({g: column(k) for g, k in counts.items()})
        return {(f.grader, f.class_) for f in judged(vd.read(frame, scale=SCALE))}

    counts = {"A": 3, **{f"g{i:02}": 60 for i in range(19)}}
    assert flagged(counts) == {("A", "high")}
    counts["g19"] = 60
    assert flagged({**counts, "gold": 60}) == {("A", "high")}
    audit = planted(counts)
    assert [f.state for f in of(audit)] == [State.NOT_APPLICABLE]
    shares = audit.results.filter(pl.col("statistic") == "label_share", pl.col("class") == "high")
    assert len(shares) == 21


@pytest.mark.parametrize(
    ("base", "state"),
    [(9, None), (10, State.CANNOT_TELL), (19, State.CANNOT_TELL), (20, State.FOUND)],
)
@pytest.mark.parametrize("gold", [True, False])
def test_below_the_base_the_rule_does_not_decide(base, state, gold):
    counts = {"A": 0, "gold": base} if gold else {"A": 0, "B": base, "C": base}
    audit = planted(counts)
    about = of(audit, grader="A", class_="high")
    assert [f.state for f in about] == ([] if state is None else [state])
    if state is None:
        (general,) = of(audit, class_="high")
        assert general.state is State.CANNOT_TELL, "too rare is not clear"
        assert "cannot be seen" in sentence(general)


def test_the_base_and_the_threshold_are_options():
    counts = {"A": 4, "B": 12, "C": 12}
    assert found(planted(counts, collapse_base=12)) == set()
    assert found(planted(counts, collapse_base=12, collapse_below=0.5)) == {("A", "high")}


# --- strength ---------------------------------------------------------------------------------------


def test_counts_alone_are_indicative_and_never_more(tmp_path):
    counts = {"A": 0, "B": 250, "C": 250, "D": 250}
    path = counts_table(tmp_path / "counts.csv", counts)
    audit = vd.audit(vd.read(path, layout="counts", scale=SCALE))
    assert {f.strength for f in of(audit, state=State.FOUND)} == {Strength.INDICATIVE}
    gold = vd.audit(vd.read(path, layout="counts", scale=SCALE, gold="B"))
    assert {f.strength for f in of(gold, state=State.FOUND)} == {Strength.INDICATIVE}
    assert {f.strength for f in of(planted(counts), state=State.FOUND)} == {Strength.CERTAIN}


def test_a_collapse_that_the_test_does_not_reject_is_likely():
    audit = planted({"A": 19, "B": 60, "C": 60})
    (finding,) = of(audit, state=State.FOUND)
    assert finding.strength is Strength.LIKELY


def test_all_of_the_class_in_few_clusters_is_not_certain():
    labels = {"A": column(5), "B": column(60), "C": column(60)}
    # The 60 responses stand in two clusters of 30.
    audit = vd.audit(vd.read(frame_of(labels, clusters=[i // 30 for i in range(N)]), scale=SCALE))
    (finding,) = of(audit, state=State.FOUND)
    assert finding.strength is Strength.LIKELY
    assert {f.strength for f in of(planted({"A": 5, "B": 60, "C": 60}), state=State.FOUND)} == {
        Strength.CERTAIN
    }


def contrast_p(own: Sequence[int], other: Sequence[int], below: float = 1 / 3) -> float:
    """P of a t below own/threshold − other, summed over clusters, with its with-replacement variance.

    The variance is brought to the hypothesis: times (own/threshold² + other at the threshold with the
    same sum) over (the same as counted), at least 1.
    """
    differences = [a / below - b for a, b in zip(own, other, strict=True)]
    c = len(differences)
    mean = sum(differences) / c
    variance = c / (c - 1) * sum((d - mean) ** 2 for d in differences)
    if variance == 0:
        return math.nan
    both = sum(own) + sum(other)
    under = both / (1 + below) / below + both / (1 + below)
    variance *= max(1.0, under / (sum(own) / below**2 + sum(other)))
    return float(scipy_stats.t.cdf(sum(differences) / math.sqrt(variance), c - 1))


def test_the_p_of_a_ratio_is_that_of_the_cluster_robust_test_against_gold():
    random = np.random.default_rng(3)
    clusters = [i // 6 for i in range(N)]
    gold = [SCALE[k] for k in random.choice(3, N, p=[0.4, 0.3, 0.3])]
    mine = ["mid" if label == "high" and random.random() < 0.8 else label for label in gold]
    frame = frame_of({"A": mine, "gold": gold}, clusters=clusters)
    audit = vd.audit(vd.read(frame, scale=SCALE, cluster="cluster"))
    (finding,) = of(audit, state=State.FOUND)
    ratio = next(e for e in finding.evidence if e.statistic == "collapse_ratio")
    own = [sum(mine[i] == "high" for i in range(N) if clusters[i] == c) for c in range(50)]
    other = [sum(gold[i] == "high" for i in range(N) if clusters[i] == c) for c in range(50)]
    assert ratio.p == pytest.approx(contrast_p(own, other), rel=1e-9)
    # Its interval is the delete-one-cluster jackknife with t(49) on the log.
    left = [math.log((sum(own) - a) / (sum(other) - b)) for a, b in zip(own, other, strict=True)]
    mean = sum(left) / 50
    half = scipy_stats.t.ppf(0.975, 49) * math.sqrt(49 / 50 * sum((x - mean) ** 2 for x in left))
    centre = math.log(sum(own) / sum(other))
    assert ratio.interval is not None
    assert ratio.interval.method == "jackknife_t"
    assert ratio.interval.low == pytest.approx(math.exp(centre - half), rel=1e-9)
    assert ratio.interval.high == pytest.approx(math.exp(centre + half), rel=1e-9)


def holm_by_loop(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p: for each, the largest of (cells − rank + 1) × p over those not larger."""
    there = [p for p in p_values if p is not None]
    ordered = sorted(there)

    def adjusted(p: float) -> float:
        steps = [(len(ordered) - i) * q for i, q in enumerate(ordered) if q <= p]
        return min(1.0, max(steps))

    return [None if p is None else adjusted(p) for p in p_values]


def test_holm_is_the_step_down_procedure():
    # Worked: 4 × 0.01, 3 × 0.02, 2 × 0.03 → 0.06, and 0.2.
    assert holm([0.03, 0.01, None, 0.2, 0.02]) == pytest.approx([0.06, 0.04, None, 0.2, 0.06])
    random = np.random.default_rng(0)
    for _ in range(50):
        p_values = [
            None if random.random() < 0.2 else float(random.random() ** 3)
            for _ in range(int(random.integers(1, 12)))
        ]
        for ours, loop in zip(holm(p_values), holm_by_loop(p_values), strict=True):
            assert ours == (None if loop is None else pytest.approx(loop))


def test_the_p_of_counts_is_the_conditional_binomial_of_przyborowski_and_wilenski():
    for own, other in ((0, 20), (9, 204), (64, 204), (5, 15), (3, 0)):
        total, share = own + other, 0.25  # own : other = 1 : 3 under the null hypothesis
        exact = sum(
            math.comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(own + 1)
        )
        assert intervals.poisson_ratio_p(own, other, 1 / 3) == pytest.approx(exact, rel=1e-9)
    assert math.isnan(intervals.poisson_ratio_p(0, 0, 1 / 3))


# --- what a finding says ------------------------------------------------------------------------------


def test_with_two_classes_one_finding_is_made_and_not_its_mirror_images():
    labels = {
        "A": column(20, class_="yes", rest="no"),
        "B": column(280, class_="yes", rest="no"),
        "C": column(280, class_="yes", rest="no"),
    }
    # yes: 20 against 280 twice. no: B and C give it 20 times where only A gives it 280 times.
    audit = vd.audit(vd.read(frame_of(labels), scale="no,yes"))
    assert found(audit) == {("A", "yes")}
    assert not of(audit, "class_inflation")
    against_gold = vd.audit(vd.read(frame_of(labels), scale="no,yes", gold="B"))
    assert found(against_gold) == {("A", "yes")}
    assert not of(against_gold, "class_inflation")
    two = vd.audit(vd.read(frame_of({g: labels[g] for g in "AB"}), scale="no,yes"))
    assert [(f.grader, f.class_) for f in of(two, state=State.CANNOT_TELL)] == [("A", "yes")]


@pytest.mark.parametrize("interval", ["auto", "bootstrap"])
@pytest.mark.parametrize("gold", [True, False])
def test_a_zero_count_has_a_ratio_with_an_upper_limit_and_never_no_width(gold, interval):
    counts = {"A": 0, "gold": 60} if gold else {"A": 0, "B": 60, "C": 60}
    audit = planted(counts, interval=interval, replicates=200)
    row = audit.results.filter(
        pl.col("statistic") == "collapse_ratio", pl.col("grader") == "A", pl.col("class") == "high"
    ).row(0, named=True)
    assert (row["value"], row["low"]) == (0, 0)
    share = 1 - 0.025 ** (1 / 60)  # 0 of 60: the exact upper limit
    assert row["high"] == pytest.approx(share / (1 - share), rel=1e-6)
    (finding,) = of(audit, state=State.FOUND)
    assert "never gives" in sentence(finding)


def test_the_finding_says_in_how_many_panels_without_one_other_it_holds():
    def held(counts: Mapping[str, int]) -> tuple[int, int]:
        (finding,) = of(planted(counts), grader="A", state=State.FOUND)
        match = re.search(r"holds in (\d+) of (\d+) panels", sentence(finding))
        assert match is not None
        return int(match[1]), int(match[2])

    assert held({"A": 10, "B": 60, "C": 60}) == (0, 2)
    assert held({"A": 10, "B": 60, "C": 60, "D": 60}) == (3, 3)
    assert held({"A": 10, "B": 60, "C": 60, "D": 12, "E": 12}) == (2, 4)
    with_gold = planted({"A": 10, "gold": 60, "B": 60})
    assert "panels" not in sentence(of(with_gold, state=State.FOUND)[0])


def test_the_listed_ratio_is_that_to_the_second_lowest_comparison():
    audit = planted({"A": 20, "B": 200, "C": 100, "D": 50})
    rows = audit.results.filter(
        pl.col("statistic") == "collapse_ratio", pl.col("grader") == "A", pl.col("class") == "high"
    )
    assert rows.select("other", "value").rows() == [("C", 0.2)]
    two = planted({"A": 20, "B": 200}).results.filter(
        pl.col("statistic") == "collapse_ratio", pl.col("grader") == "A", pl.col("class") == "high"
    )
    assert two.select("other", "value").rows() == [("B", 0.1)]


# --- the mirror -------------------------------------------------------------------------------------


def test_an_inflated_class_is_found_only_with_gold():
    audit = planted({"gold": 20, "A": 61, "B": 60, "C": 25})
    assert found(audit, "class_inflation") == {("A", "high")}, "60 is three times 20 and not above"
    without = planted({"B": 20, "A": 70, "C": 22, "D": 21})
    (finding,) = of(without, "class_inflation")
    assert (finding.grader, finding.state) == ("A", State.CANNOT_TELL)
    assert finding.strength is Strength.NONE
    assert "difference" in sentence(finding)


def test_without_gold_inflation_needs_all_but_one_of_the_others_below():
    assert of(planted({"A": 90, "B": 20, "C": 20, "D": 80}), "class_inflation")
    assert not of(planted({"A": 90, "B": 20, "C": 80, "D": 80}), "class_inflation")


def test_graders_that_differ_by_less_are_clear_and_say_what_was_lowest():
    audit = planted({"A": 60, "B": 80, "C": 100})
    assert found(audit) == set()
    (finding,) = of(audit, class_="high")
    assert finding.state is State.CLEAR
    assert "60" in sentence(finding)


# --- ranges of application ----------------------------------------------------------------------------


def test_every_grader_on_one_class_is_one_class_only_and_no_collapse():
    audit = planted({"A": 0, "B": 0, "C": 0})
    (finding,) = of(audit, "one_class_only")
    assert (finding.class_, finding.state) == ("mid", State.FOUND)
    assert found(audit) == set()
    assert not [f for f in of(audit) if f.state is State.CLEAR and f.class_ == "high"]


def test_one_grader_on_one_class_is_named():
    audit = planted({"A": 0, "B": 60, "C": 60})
    (finding,) = of(audit, "one_class_only")
    assert (finding.grader, finding.class_) == ("A", "mid")


@pytest.mark.parametrize(("classes", "applies"), [(4, True), (5, False)])
def test_the_rule_applies_to_ordered_scales_of_up_to_four_classes(classes, applies):
    scale = [f"s{i}" for i in range(classes)]
    top = scale[-1]
    labels = {
        "A": [scale[i % (classes - 1)] for i in range(N)],
        **{g: [top if i < 90 else scale[i % classes] for i in range(N)] for g in "BC"},
    }
    audit = vd.audit(vd.read(frame_of(labels), scale=scale))
    if applies:
        assert ("A", top) in found(audit)
    else:
        assert [f.state for f in of(audit)] == [State.NOT_APPLICABLE]
        assert ("A", top) in found(audit, "scale_end_unused")


def test_the_rule_applies_to_many_unordered_classes_but_not_to_undeclared_scores():
    names = [f"topic{i}" for i in range(8)]
    labels = {
        "A": ["other" if i % 8 == 0 else names[i % 8] for i in range(N)],
        **{g: [names[i % 8] for i in range(N)] for g in "BC"},
    }
    assert ("A", "topic0") in found(vd.audit(vd.read(frame_of(labels))))
    scores = {
        "A": [str(2 + i % 6) if i % 8 == 0 else str(1 + i % 8) for i in range(N)],
        **{g: [str(1 + i % 8) for i in range(N)] for g in "BC"},
    }
    assert [f.state for f in of(vd.audit(vd.read(frame_of(scores))))] == [State.NOT_APPLICABLE]


def test_one_grader_alone_and_graders_without_common_responses_cannot_be_told():
    alone = planted({"A": 10})
    assert [f.state for f in of(alone)] == [State.CANNOT_TELL]
    apart = {
        "A": [*column(2, n=100), *[None] * 200],
        "B": [*[None] * 100, *column(60, n=100), *[None] * 100],
        "C": [*[None] * 200, *column(60, n=100)],
    }
    audit = vd.audit(vd.read(frame_of(apart), scale=SCALE))
    assert [f.state for f in of(audit)] == [State.CANNOT_TELL]


def test_counts_are_compared_on_the_responses_that_both_could_be_read_on():
    # B's 60 labels of high stand where A has none; on common responses both give it 12 times.
    labels: dict[str, list[str | None]] = {
        "A": [*[None] * 60, *column(12, n=240)],
        "B": [*["high"] * 60, *column(12, n=240)],
        "C": [*["high"] * 60, *column(12, n=240)],
    }
    assert found(vd.audit(vd.read(frame_of(labels), scale=SCALE))) == set()


# --- hidden in the pool -------------------------------------------------------------------------------

PART = ["x"] * 100 + ["y"] * 200


def sliced_labels() -> dict[str, list[str]]:
    """A hardly uses high in part x (2 of 50), and does so in part y (100 of 100)."""
    others = ["high"] * 50 + ["mid"] * 50 + ["high"] * 100 + ["mid"] * 100
    mine = ["high"] * 2 + ["mid"] * 98 + ["high"] * 100 + ["mid"] * 100
    return {"A": mine, "B": others, "C": others}


def test_a_collapse_inside_a_named_part_is_found_where_the_pool_hides_it():
    audit = vd.audit(
        vd.read(frame_of(sliced_labels(), tags={"part": PART}), scale=SCALE, by="part")
    )
    assert found(audit) == set()
    (finding,) = of(audit, "hidden_in_pool")
    assert (finding.grader, finding.class_, finding.slice) == ("A", "high", "part=x")
    assert (finding.state, finding.strength) == (State.FOUND, Strength.LIKELY)
    assert not finding.exploratory
    assert re.search(r"Holm over \d+ cells", sentence(finding))


def test_a_part_that_nobody_asked_for_is_exploratory_and_flags_nobody():
    audit = vd.audit(vd.read(frame_of(sliced_labels(), tags={"part": PART}), scale=SCALE))
    (finding,) = of(audit, "hidden_in_pool")
    assert finding.exploratory
    assert finding.strength is Strength.INDICATIVE
    assert re.search(r"\d+ cells", sentence(finding))
    others = set(audit.results.filter(statistic="rate_range")["other"])
    assert others == {""}, "an exploratory finding takes nobody out of the panel"
    assert set(audit.results["slice"]) == {""}
    states = [(f.state, f.exploratory) for f in audit.findings if f.state is State.FOUND]
    assert states == sorted(states, key=lambda s: s[1]), "exploratory ones come last"


@pytest.mark.parametrize(("values", "looked"), [(2, True), (20, True), (21, False)])
def test_tags_with_two_to_twenty_values_are_looked_at_unasked(values, looked):
    part = [p if p == "x" else f"y{i % (values - 1)}" for i, p in enumerate(PART)]
    audit = vd.audit(vd.read(frame_of(sliced_labels(), tags={"part": part}), scale=SCALE))
    assert bool(of(audit, "hidden_in_pool", State.FOUND)) is looked


def test_holm_runs_over_every_cell_of_every_part():
    # In part x A gives 5 beside 30 of two others: a joint p of about 0.01, too weak for 12 cells.
    others = ["high"] * 30 + ["mid"] * 70 + ["high"] * 100 + ["mid"] * 100
    mine = ["high"] * 5 + ["mid"] * 95 + ["high"] * 100 + ["mid"] * 100
    labels = {"A": mine, "B": others, "C": others}
    frame = frame_of(labels, tags={"part": PART})
    audit = vd.audit(vd.read(frame, scale=SCALE, by="part"))
    (finding,) = of(audit, "hidden_in_pool")
    p = contrast_p([1] * 5 + [0] * 95, [1] * 30 + [0] * 70)
    assert 0.05 / 12 < p < 0.05
    assert finding.state is State.CANNOT_TELL
    assert "could be chance" in sentence(finding)


def test_inside_a_part_two_graders_are_a_difference_and_no_more():
    labels = {g: v for g, v in sliced_labels().items() if g != "C"}
    audit = vd.audit(vd.read(frame_of(labels, tags={"part": PART}), scale=SCALE, by="part"))
    (finding,) = of(audit, "hidden_in_pool")
    assert (finding.grader, finding.state) == ("A", State.CANNOT_TELL)
    assert "difference between two graders" in sentence(finding)


def test_what_the_pool_shows_is_not_hidden_in_it():
    labels = {"A": column(5), "B": column(90), "C": column(90)}
    part = ["x", "y"] * (N // 2)
    audit = vd.audit(vd.read(frame_of(labels, tags={"part": part}), scale=SCALE, by="part"))
    assert found(audit) == {("A", "high")}
    assert not of(audit, "hidden_in_pool", State.FOUND)


# --- the whole rule beside a loop ---------------------------------------------------------------------


def rule_by_loop(
    labels: Mapping[str, Sequence[str | None]],
    clusters: Sequence[int],
    *,
    gold: str = "",
    family: Mapping[str, str] | None = None,
    classes: Sequence[str] = SCALE,
    below: float = 1 / 3,
    base: int = 20,
    test: bool = True,
) -> dict[tuple[str, str], tuple[str, str]]:
    """State and strength of every grader and class, as the issue words them, over lists."""
    family = family or {}

    def related(a: str, b: str) -> bool:
        return bool(family.get(a)) and family.get(a) == family.get(b)

    panel = [g for g in labels if g != gold]
    verdicts, p_of = {}, {}
    for g, class_ in itertools.product(panel, classes):
        others = [gold] if gold else [h for h in panel if h != g and not related(g, h)]
        seen: dict[str, tuple[int, int, float]] = {}
        for h in others:
            common = [
                i
                for i in range(len(clusters))
                if labels[g][i] is not None and labels[h][i] is not None
            ]
            if not common:
                continue
            own: dict[int, int] = {}
            other: dict[int, int] = {}
            for i in common:
                own[clusters[i]] = own.get(clusters[i], 0) + (labels[g][i] == class_)
                other[clusters[i]] = other.get(clusters[i], 0) + (labels[h][i] == class_)
            p = contrast_p(list(own.values()), list(other.values()), below) if test else math.nan
            seen[h] = (sum(own.values()), sum(other.values()), p)
        if not seen:
            continue
        low = {h for h, (a, b, _) in seen.items() if a < below * b}

        def enough(some: set[str]) -> bool:
            if gold:
                return bool(some)
            return any(not related(x, y) for x, y in itertools.combinations(sorted(some), 2))

        if enough({h for h in low if seen[h][1] >= base}):
            verdicts[g, class_] = "found" if gold or enough(set(seen)) else "cannot_tell"
        elif enough({h for h in low if seen[h][1] >= base / 2}) or (
            not enough(set(seen)) and any(seen[h][1] >= base / 2 for h in low)
        ):
            verdicts[g, class_] = "cannot_tell"
        known = {h: p for h, (_, _, p) in seen.items() if not math.isnan(p)}
        if gold:
            p_of[g, class_] = known.get(gold)
        else:
            pairs = [
                max(known[x], known[y])
                for x, y in itertools.combinations(known, 2)
                if not related(x, y)
            ]
            p_of[g, class_] = min(1.0, (len(known) - 1) * min(pairs)) if pairs else None
    adjusted = dict(zip(p_of, holm_by_loop(list(p_of.values())), strict=True))
    made = {}
    for cell, state in verdicts.items():
        joint = adjusted[cell]
        certain = state == "found" and joint is not None and joint < 0.05
        made[cell] = (state, "certain" if certain else "likely" if state == "found" else "")
    return made


def random_panel(seed: int) -> tuple[dict[str, list[str | None]], list[int]]:
    """Graders of unequal habits on clustered responses, with some labels missing."""
    random = np.random.default_rng(seed)
    clusters = [i // int(random.integers(2, 8)) for i in range(240)]
    rare = float(random.choice([0.06, 0.3]))
    truth = random.choice(3, 240, p=[0.5, 0.5 - rare, rare])
    labels: dict[str, list[str | None]] = {}
    for g in range(int(random.integers(2, 6))):
        lost = float(random.choice([0.0, 0.3, 0.75, 1.0]))
        missing = float(random.choice([0.0, 0.1]))
        column_: list[str | None] = []
        for k in truth:
            if k == 2 and random.random() < lost:
                k = 1
            elif random.random() < 0.05:
                k = int(random.integers(0, 3))
            column_.append(None if random.random() < missing else SCALE[k])
        labels[f"g{g}"] = column_
    return labels, sorted(clusters)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("setting", ["panel", "gold", "family"])
def test_on_random_panels_states_and_strengths_are_those_of_a_loop_over_the_issue(seed, setting):
    labels, clusters = random_panel(seed)
    family = {"g1": "x", "g2": "x"} if setting == "family" else {}
    gold = "g0" if setting == "gold" else ""
    frame = frame_of(labels, clusters=clusters)
    audit = vd.audit(
        vd.read(
            frame,
            scale=SCALE,
            cluster="cluster",
            gold=gold or "none",
            about={g: {"family": f} for g, f in family.items()},
        )
    )
    told = {(f.grader, f.class_): (str(f.state), str(f.strength)) for f in of(audit) if f.grader}
    assert told == rule_by_loop(labels, clusters, gold=gold, family=family)


def test_the_random_panels_reach_every_strength():
    reached = set()
    for seed in range(12):
        labels, clusters = random_panel(seed)
        reached |= set(rule_by_loop(labels, clusters).values())
        reached |= set(rule_by_loop(labels, clusters, gold="g0").values())
    assert {("found", "certain"), ("found", "likely"), ("cannot_tell", "")} <= reached


# --- false alarms -------------------------------------------------------------------------------------

GRADERS, CLUSTERS, SIZE = 8, 100, 9
MIXES = {
    "common": (0.55, 0.30, 0.15),
    "worst": (0.97, 0.02, 0.01),  # high is given about 16 times
    "at the base": (0.94, 0.04, 0.02),  # about 22 times
    "rare": (0.70, 0.28, 0.02),  # about 30 times
}
CONFUSION = np.array([[0.96, 0.03, 0.01], [0.06, 0.90, 0.04], [0.05, 0.25, 0.70]])
# Where graders lean, the draws of one grader in one cluster share a Dirichlet draw of this
# concentration around the confusion: every grader is the same, and leans by its own luck.
LEAN = 2.0


def truth_of(random: np.random.Generator, mix: Sequence[float], effect: str) -> np.ndarray:
    """True classes, ``(clusters, size)``; with an effect the mix differs from cluster to cluster."""
    shares = np.tile(mix, (CLUSTERS, 1))
    if effect != "none":
        shares = random.dirichlet(np.array(mix) * 3, CLUSTERS)
    return np.array([random.choice(3, SIZE, p=share) for share in shares])


def drawn_labels(random: np.random.Generator, truth: np.ndarray, effect: str) -> np.ndarray:
    """One grader's labels: each true class of each cluster by the one confusion, or leaning from it."""
    labels = np.empty_like(truth)
    for c, row in enumerate(truth):
        for k in set(row.tolist()):
            share = CONFUSION[k]
            if effect == "graders lean":
                share = random.dirichlet(CONFUSION[k] * LEAN)
            inside = row == k
            labels[c, inside] = random.choice(3, int(inside.sum()), p=share)
    return labels


def count_distribution(truth: np.ndarray, class_: int, effect: str) -> np.ndarray:
    """P of each count of a class by one grader, given the true classes: exact, by convolution."""
    pmf = np.ones(1)
    if effect != "graders lean":
        for k, n in zip(*np.unique(truth, return_counts=True), strict=True):
            pmf = np.convolve(pmf, scipy_stats.binom.pmf(np.arange(n + 1), n, CONFUSION[k, class_]))
        return pmf
    pieces: dict[tuple[int, int], int] = {}
    for row in truth:
        for k, n in zip(*np.unique(row, return_counts=True), strict=True):
            pieces[int(k), int(n)] = pieces.get((int(k), int(n)), 0) + 1
    for (k, n), times in pieces.items():
        a = CONFUSION[k, class_] * LEAN
        one = scipy_stats.betabinom.pmf(np.arange(n + 1), n, a, LEAN - a)
        for _ in range(times):
            pmf = np.convolve(pmf, one)
    return pmf


def expected_alarms(truth: np.ndarray, effect: str) -> float:
    """How many (grader, class) are found on average, though all graders are the same.

    A grader with count x is found where at least two of the seven others have max(20, 3x + 1) or
    more; given the true classes the eight counts are independent.
    """
    expected = 0.0
    for class_ in range(3):
        pmf = count_distribution(truth, class_, effect)
        at_least = np.append(pmf[::-1].cumsum()[::-1], 0.0)
        need = np.maximum(20, 3 * np.arange(len(pmf)) + 1)
        tail = np.minimum(at_least[np.minimum(need, len(pmf))], 1.0)
        expected += GRADERS * float(pmf @ scipy_stats.binom.sf(1, GRADERS - 1, tail))
    return expected


def alarms_by_count(labels: np.ndarray) -> set[tuple[str, str]]:
    """The rule on counts alone: every response has a label of every grader."""
    counts = [[int((one == k).sum()) for k in range(3)] for one in labels]
    made = set()
    for g, k in itertools.product(range(GRADERS), range(3)):
        others = [counts[h][k] for h in range(GRADERS) if h != g]
        if sum(n >= 20 and 3 * counts[g][k] < n for n in others) >= 2:
            made.add((f"g{g}", SCALE[k]))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("effect", ["none", "shared", "graders lean"])
def test_eight_equal_graders_raise_no_more_alarms_than_their_counts_make_by_chance(effect):
    """200 panels of 8 equal graders, 100 clusters of 9, under four class mixes.

    With labels that are independent given the true class, a class that is given about 16 times a
    grader is the worst: 0.02 alarms a panel; from 30 times on, below 0.001. Where each grader's
    labels lean together within a cluster, counts scatter more and alarms are many times as frequent:
    the rule by itself (*likely*) has no guard against that, and *certain* must have.
    """
    random = np.random.default_rng([2, len(effect)])
    expected, alarms, certain = 0.0, 0, 0
    for panel in range(200):
        mix = list(MIXES.values())[panel % len(MIXES)]
        truth = truth_of(random, mix, effect)
        labels = np.array([drawn_labels(random, truth, effect) for _ in range(GRADERS)])
        by_chance = expected_alarms(truth, effect)
        if effect != "graders lean":
            assert by_chance < 3 * 0.021, "three classes at the worst mean each"
        expected += by_chance
        columns = {f"g{g}": [SCALE[k] for k in labels[g].ravel()] for g in range(GRADERS)}
        clusters = np.repeat(np.arange(CLUSTERS), SIZE).tolist()
        read = vd.read(frame_of(columns, clusters=clusters), scale=SCALE, cluster="cluster")
        findings = [f for f in judged(read) if f.code == "class_collapse"]
        told = {(f.grader, f.class_) for f in findings}
        assert told == alarms_by_count(labels)
        if panel % 50 == 0:
            assert found(vd.audit(read)) == told
        alarms += len(findings)
        certain += sum(f.strength is Strength.CERTAIN for f in findings)
    # Up to 8 alarms come together on a class: the variance of a panel's number is at most 8 × its mean.
    assert abs(alarms - expected) < 4 * math.sqrt(GRADERS * expected) + 1
    # No grader is collapsed: each panel may have a certain finding in at most 5 % of all cases.
    assert certain <= scipy_stats.binom.ppf(0.999, 200, 0.05)
    print(f"{effect}: {alarms} alarms in 200 panels, {expected:.2f} expected, {certain} certain")


# --- known to be wrong ----------------------------------------------------------------------------------


def test_certain_does_not_rest_on_a_p_far_below_that_of_the_counts():
    # 0 beside 20: under a third the exact chance is (3/4)^20 = 0.0032, and the t-test says 2e-6.
    (finding,) = of(planted({"A": 0, "gold": 20}), state=State.FOUND)
    p = next(e.p for e in finding.evidence if e.statistic == "collapse_ratio")
    assert p is not None
    # Under a third, 20 labels are 5 and 15: the variance of 3 × own − other is 45 + 15 = 60 and not
    # the 20 that was counted, so t = −20 / sqrt(60 × 300 / 299 × …) is near −2.6.
    assert 0.75**20 < p < 0.01


def test_the_base_counts_labels_and_not_their_weights():
    labels = {"A": column(0), "B": column(5), "C": column(5)}
    weights = [10.0] * 5 + [1.0] * (N - 5)
    frame = frame_of(labels, tags={"w": weights})
    audit = vd.audit(vd.read(frame, scale=SCALE, weight="w"))
    assert found(audit) == set()


@pytest.mark.parametrize(
    "made_from", [["M=g", "K=g"], ["M=g", "K=M"]], ids=["of one grader", "in a chain"]
)
def test_graders_that_come_from_the_same_one_corroborate_once(made_from):
    low = "g" if made_from[1] == "K=g" else "M"
    counts = {"A": 5, "g": 60, "M": 60, "K": 60} | {low: 14}
    assert found(planted(counts, derived_from=made_from)) == set()


def test_the_mirror_image_of_what_the_pool_shows_is_not_hidden_in_it():
    labels = {
        "A": column(20, class_="yes", rest="no"),
        "B": column(280, class_="yes", rest="no"),
    }
    frame = frame_of(labels, tags={"part": ["x", "y"] * (N // 2)})
    audit = vd.audit(vd.read(frame, scale="no,yes", by="part"))
    # B gives no 20 times where A gives it 280 times, in the pool as in its parts.
    assert not [f for f in of(audit, "hidden_in_pool") if f.grader == "B"]


def test_hidden_in_pool_does_not_say_that_a_grader_gives_a_class_that_it_never_gives():
    others = ["low", "low", "mid", "mid"] * 75
    mine = ["mid"] * 100 + ["failed"] * 200
    labels = {"A": mine, "B": others, "C": others}
    frame = frame_of(labels, tags={"part": PART})
    audit = vd.audit(vd.read(frame, scale=SCALE, failed=["failed=error"], by="part"))
    assert not any("often enough" in sentence(f) for f in of(audit, "hidden_in_pool", grader="A"))


def test_graders_without_a_common_response_are_not_said_to_have_labelled_the_same():
    labels = {"A": [*column(10, n=100), *[None] * 200], "B": [*[None] * 100, *column(150, n=200)]}
    audit = vd.audit(vd.read(frame_of(labels), scale=SCALE))
    told = of(audit, "rate_depends_on_grader")
    assert told
    assert not any("same responses" in sentence(f) for f in told)


def test_a_rate_that_moves_with_the_grader_stands_beside_that_of_gold():
    labels = {"A": column(10), "B": column(150), "gold": column(60)}
    (told,) = of(
        vd.audit(vd.read(frame_of(labels), scale=SCALE, gold="gold", rate="r=high")),
        "rate_depends_on_grader",
    )
    assert "apart (gold: 20.0 %)." in sentence(told)
    assert "gold" in {e.key.grader for e in told.evidence if e.statistic == "rate"}
    gold: list[str | None] = [*column(20, n=100), *[None] * 200]
    few: dict[str, list[str | None]] = {"A": [*column(10)], "B": [*column(150)], "gold": gold}
    (told,) = of(
        vd.audit(vd.read(frame_of(few), scale=SCALE, gold="gold", rate="r=high")),
        "rate_depends_on_grader",
    )
    assert "apart (gold: 20.0 % of the 100 that it has)." in sentence(told)


def test_a_class_of_which_one_grader_gives_200_is_not_called_too_rare():
    audit = planted({"A": 2, "B": 200, "C": 3})
    assert not any("too rare" in sentence(f) for f in of(audit, class_="high"))


def test_labels_that_all_go_to_one_far_class_are_no_scatter():
    labels = {"A": column(5, rest="low"), "gold": column(60, rest="low")}
    (finding,) = of(vd.audit(vd.read(frame_of(labels), scale=SCALE)), state=State.FOUND)
    assert "55 to low" in sentence(finding)
    assert "scatter" not in sentence(finding)


def test_a_class_is_not_clear_where_the_interval_reaches_far_below_the_threshold():
    # Three clusters: the ratio is 0.5 with an interval from below 0.05 to above 5.
    labels = {"A": ["no", "no", "no", "yes"] * 25, "B": ["no"] * 50 + ["yes"] * 50}
    frame = frame_of(labels, clusters=[i // 34 for i in range(100)])
    audit = vd.audit(vd.read(frame, scale="no,yes", cluster="cluster"))
    assert not [f for f in of(audit) if f.state is State.CLEAR]
