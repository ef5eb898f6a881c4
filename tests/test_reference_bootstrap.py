"""Resampling: percentiles beside R's replicates, and tallies beside loops over clusters.

The loops know nothing of distinct rows: they hold one row of counts a cluster, draw or leave out
clusters one by one, and write the intervals out of their definitions.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats as scipy_stats

import voirdire as vd
from voirdire import intervals, resampling
from voirdire.resampling import TooManyRows, drawn_totals, left_out
from voirdire.tally import of_rows

FILE = Path(__file__).parents[2] / "shared" / "reference" / "H_bootstrap_intervals.json"
needs_file = pytest.mark.skipif(
    not FILE.is_file(), reason="the shared reference values do not stand beside this repository"
)
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"] if FILE.is_file() else []

COVERED = ["conf_0.9.percentile_type7", "conf_0.95.percentile_type7"]
NEXT = "next issue"
NOT_COVERED_YET = {
    "conf_*.basic_type7": NEXT,
    "conf_*.percentile_type6": NEXT,
    "conf_*.boot_percentile": "not ours: R boot interpolates on the normal scale",
    "conf_*.boot_basic": "not ours: R boot interpolates on the normal scale",
    "conf_*.boot_normal": NEXT,
    "conf_*.boot_bca": NEXT,
    "conf_*.bca_strict.*": NEXT,
    "conf_*.bca_half_ties.*": NEXT,
    "bias": NEXT,
    "se_ddof1": NEXT,
}

# --- percentiles ----------------------------------------------------------------------------------


def leaves(node: Any, path: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for key, below in node.items():
            yield from leaves(below, f"{path}/{key}" if path else key)
    else:
        yield path


def quantities() -> set[str]:
    return {p.replace("/", ".") for c in CASES for p in leaves(c["expected"])}


@needs_file
def test_every_quantity_of_the_file_is_covered_or_named_as_not_covered_yet():
    unnamed = {
        q
        for q in quantities() - set(COVERED)
        if not any(fnmatch.fnmatchcase(q, pattern) for pattern in NOT_COVERED_YET)
    }
    assert unnamed == set()


@needs_file
def test_what_is_covered_or_named_as_not_covered_is_in_the_file():
    assert set(COVERED) <= quantities()
    rest = quantities() - set(COVERED)
    assert [p for p in NOT_COVERED_YET if not fnmatch.filter(rest, p)] == []


def type7(values: list[float], p: float) -> float:
    """Quantile type 7 of Hyndman and Fan: linear between order statistics at 1 + (n − 1)p."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * p
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_percentiles_of_the_stored_replicates_are_of_type_7(case, level):
    replicates = case["input"]["replicates"]
    found = intervals.percentile(np.array(replicates, dtype=float), level)
    expected = case["expected"][f"conf_{level}"]["percentile_type7"]
    assert found == pytest.approx(expected, rel=case["tolerance"], abs=case["tolerance"])
    tail = (1 - level) / 2
    loop = (type7(replicates, tail), type7(replicates, 1 - tail))
    assert found == pytest.approx(loop, rel=1e-12, abs=1e-12)


# --- the bootstrap --------------------------------------------------------------------------------


def drawn(tally, *, replicates: int, seed: int = 0) -> np.ndarray:
    return np.concatenate(list(drawn_totals(tally, replicates=replicates, seed=seed)))


@pytest.fixture(params=["one by one", "by distinct rows"])
def branch(request, monkeypatch):
    """Both ways of drawing: cluster by cluster, and how often each distinct row comes up."""
    if request.param == "by distinct rows":
        monkeypatch.setattr(resampling, "_DRAWS", 0)
    return request.param


def test_each_replicate_draws_as_many_clusters_as_there_are(branch):
    random = np.random.default_rng(1)
    rows = np.column_stack([np.ones(57, dtype=np.int64), random.integers(0, 4, 57)])
    totals = drawn(of_rows(rows), replicates=500)
    assert totals.shape == (500, 2)
    assert (totals[:, 0] == 57).all()
    assert len(set(totals[:, 1])) > 10


def test_strata_keep_their_sizes_in_each_replicate(branch):
    sizes = {0: 11, 1: 5, 2: 30}
    stratum = np.repeat(list(sizes), list(sizes.values()))
    random = np.random.default_rng(2)
    rows = np.column_stack(
        [*(stratum == s for s in sizes), random.integers(0, 3, len(stratum))]
    ).astype(np.int64)
    totals = drawn(of_rows(rows, stratum=stratum), replicates=400)
    for s, size in sizes.items():
        assert (totals[:, s] == size).all()
    # The strata are drawn apart from each other: the last cell's two largest parts do not move together.
    apart = np.column_stack([rows[:, 3] * (stratum == 0), rows[:, 3] * (stratum == 2)])
    both = drawn(
        of_rows(apart[apart.any(axis=1)], stratum=stratum[apart.any(axis=1)]), replicates=4000
    )
    correlation = float(np.corrcoef(both.T)[0, 1])
    assert abs(correlation) < 4 / math.sqrt(4000)


def test_three_clusters_come_up_as_often_as_enumeration_says(branch):
    # Three clusters, events/trials 1/4, 3/3 and 0/5: all 27 ordered draws, each with probability 1/27.
    clusters = np.array([[1, 4], [3, 3], [0, 5]])
    exact: Counter[tuple[int, int]] = Counter()
    for draw in itertools.product(range(3), repeat=3):
        events, trials = clusters[list(draw)].sum(axis=0)
        exact[int(events), int(trials)] += 1
    replicates = 20_000
    totals = drawn(of_rows(clusters), replicates=replicates, seed=5)
    seen = Counter((int(e), int(t)) for e, t in totals)
    assert set(seen) == set(exact)
    for outcome, ways in exact.items():
        p = ways / 27
        # Ten outcomes; 4.5 standard errors is a chance of 7 in a million each.
        assert abs(seen[outcome] / replicates - p) < 4.5 * math.sqrt(p * (1 - p) / replicates)


def test_equal_clusters_put_together_are_drawn_as_if_they_were_apart(branch):
    # 6 clusters of one kind and 4 of another: the number of the first kind is binomial (10, 0.6).
    rows = np.array([[1, 0]] * 6 + [[0, 1]] * 4)
    replicates = 20_000
    totals = drawn(of_rows(rows), replicates=replicates, seed=11)
    for k in range(11):
        p = math.comb(10, k) * 0.6**k * 0.4 ** (10 - k)
        share = float((totals[:, 0] == k).mean())
        assert abs(share - p) < 4.5 * math.sqrt(p * (1 - p) / replicates) + 1e-12


def test_the_bootstrap_has_mean_spread_and_percentiles_of_a_loop_that_draws_clusters(branch):
    random = np.random.default_rng(7)
    trials = random.integers(1, 9, 40)
    events = random.binomial(trials, random.beta(1.5, 2.5, 40))
    rows = np.column_stack([events, trials])
    replicates = 6000
    totals = drawn(of_rows(rows), replicates=replicates, seed=3)
    ours = totals[:, 0] / totals[:, 1]
    loop = np.empty(replicates)
    other = np.random.default_rng(99)
    for r in range(replicates):
        chosen = [int(other.integers(40)) for _ in range(40)]
        loop[r] = sum(events[c] for c in chosen) / sum(trials[c] for c in chosen)
    sd = loop.std(ddof=1)
    # Difference of two means of R replicates; of two standard deviations (about sd / √(2R) each).
    assert abs(ours.mean() - loop.mean()) < 4 * sd * math.sqrt(2 / replicates)
    assert abs(ours.std(ddof=1) - sd) < 4 * sd * math.sqrt(2 / (2 * replicates)) * 1.1
    for found, wanted, p in zip(
        intervals.percentile(ours), intervals.percentile(loop), (0.025, 0.975), strict=True
    ):
        # Standard error of a quantile: √(p(1−p)/R) / density; normal density there, doubled for safety.
        density = scipy_stats.norm.pdf(scipy_stats.norm.ppf(p)) / sd
        error = math.sqrt(p * (1 - p) / replicates) / density
        assert abs(found - wanted) < 4 * math.sqrt(2) * error * 1.5


def test_too_many_clusters_and_rows_are_refused_and_not_approximated(monkeypatch):
    monkeypatch.setattr(resampling, "_DRAWS", 0)
    monkeypatch.setattr(resampling, "_BINOMIALS", 10)
    with pytest.raises(TooManyRows):
        list(drawn_totals(of_rows(np.arange(1, 21)[:, None]), replicates=100, seed=0))


def test_the_percentile_interval_of_an_audit_is_the_percentiles_of_cluster_draws():
    frame, clusters = planted_rate(seed=4, clusters=25)
    row = rate_row(frame, interval="bootstrap", replicates=4000, seed=8)
    assert row["method"] == "percentile"
    loop = []
    other = np.random.default_rng(1234)
    for _ in range(4000):
        chosen = other.integers(0, len(clusters), len(clusters))
        loop.append(sum(clusters[c][0] for c in chosen) / sum(clusters[c][1] for c in chosen))
    sd = float(np.std(loop, ddof=1))
    error = math.sqrt(0.025 * 0.975 / 4000) / (scipy_stats.norm.pdf(1.96) / sd)
    low, high = intervals.percentile(np.array(loop))
    assert row["low"] == pytest.approx(low, abs=4 * math.sqrt(2) * error * 1.5)
    assert row["high"] == pytest.approx(high, abs=4 * math.sqrt(2) * error * 1.5)


# --- the jackknife and the edge -------------------------------------------------------------------


def planted_rate(*, seed: int, clusters: int, strata: int = 1):
    """One grader's labels in clusters of unequal size: a frame, and (events, trials) a cluster."""
    random = np.random.default_rng(seed)
    rows, made = [], []
    for c in range(clusters):
        size = int(random.integers(2, 8))
        share = random.beta(2, 3)
        labels = random.random(size) < share
        made.append((int(labels.sum()), size))
        rows += [
            (f"c{c}-{i}", f"c{c}", "yes" if yes else "no", f"s{c % strata}")
            for i, yes in enumerate(labels)
        ]
    frame = pl.DataFrame(rows, schema=["response", "cluster", "label", "part"], orient="row")
    return frame, made


def rate_row(frame: pl.DataFrame, **options: Any) -> dict[str, Any]:
    labels = vd.read(frame, grader_name="g", scale="no,yes", cluster="cluster", **options)
    results = vd.audit(labels).results.filter(
        pl.col("statistic") == "rate", pl.col("class") == "yes", pl.col("slice") == ""
    )
    return results.row(0, named=True)


def logit(p: float) -> float:
    return math.log(p / (1 - p))


def expit(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_the_jackknife_t_of_a_rate_is_that_of_a_loop_that_leaves_clusters_out():
    frame, clusters = planted_rate(seed=10, clusters=30)
    row = rate_row(frame)
    events, trials = (sum(x) for x in zip(*clusters, strict=True))
    left = [logit((events - e) / (trials - t)) for e, t in clusters]
    mean = sum(left) / 30
    se = math.sqrt(29 / 30 * sum((v - mean) ** 2 for v in left))
    t = scipy_stats.t.ppf(0.975, 29)
    centre = logit(events / trials)
    assert row["method"] == "jackknife_t"
    assert row["value"] == pytest.approx(events / trials, abs=1e-14)
    assert row["clusters"] == 30
    assert row["n"] == trials
    assert row["low"] == pytest.approx(expit(centre - t * se), abs=1e-10)
    assert row["high"] == pytest.approx(expit(centre + t * se), abs=1e-10)


def test_with_strata_the_jackknife_leaves_out_within_strata_and_t_loses_a_degree_for_each():
    frame, clusters = planted_rate(seed=12, clusters=31, strata=3)
    row = rate_row(frame, stratum="part")
    of = [c % 3 for c in range(31)]
    totals = {
        s: [sum(clusters[c][i] for c in range(31) if of[c] == s) for i in (0, 1)] for s in range(3)
    }
    variance = 0.0
    for s in range(3):
        inside = [c for c in range(31) if of[c] == s]
        size = len(inside)
        values = []
        for c in inside:
            parts = [
                sum(totals[other][i] for other in range(3) if other != s)
                + (totals[s][i] - clusters[c][i]) * size / (size - 1)
                for i in (0, 1)
            ]
            values.append(logit(parts[0] / parts[1]))
        mean = sum(values) / size
        variance += (size - 1) / size * sum((v - mean) ** 2 for v in values)
    events = sum(totals[s][0] for s in range(3))
    trials = sum(totals[s][1] for s in range(3))
    half = scipy_stats.t.ppf(0.975, 31 - 3) * math.sqrt(variance)
    assert row["method"] == "jackknife_t"
    assert row["low"] == pytest.approx(expit(logit(events / trials) - half), abs=1e-10)
    assert row["high"] == pytest.approx(expit(logit(events / trials) + half), abs=1e-10)


def pair_frame(seed: int, clusters: int, missing: float = 0.0):
    random = np.random.default_rng(seed)
    classes = ["a", "b", "c"]
    made, rows = [], []
    for c in range(clusters):
        pairs = []
        for i in range(int(random.integers(2, 7))):
            x = int(random.integers(0, 3))
            y = x if random.random() < 0.7 else int(random.integers(0, 3))
            given = [classes[v] if random.random() >= missing else None for v in (x, y)]
            pairs.append(tuple(given))
            rows += [
                (f"c{c}-{i}", f"c{c}", g, label)
                for g, label in zip(("g1", "g2"), given, strict=True)
                if label is not None
            ]
        made.append(pairs)
    frame = pl.DataFrame(rows, schema=["response", "cluster", "grader", "label"], orient="row")
    return frame, made


def kappa_of(pairs: Any) -> float:
    pairs = [p for p in pairs if None not in p]
    n = len(pairs)
    same = sum(x == y for x, y in pairs) / n
    first, second = Counter(x for x, _ in pairs), Counter(y for _, y in pairs)
    chance = sum(first[c] * second[c] for c in first) / n**2
    return float((same - chance) / (1 - chance))


def alpha_of(pairs: Any) -> float:
    pairs = [p for p in pairs if None not in p]
    given = Counter(x for p in pairs for x in p)
    n = 2 * len(pairs)
    different = 2 * sum(x != y for x, y in pairs)
    return float(1 - different * (n - 1) / (n**2 - sum(v**2 for v in given.values())))


SCALES = {
    "cohen_kappa": (kappa_of, math.atanh, math.tanh),
    "krippendorff_alpha_nominal": (
        alpha_of,
        lambda x: -math.log(1 - x),
        lambda z: 1 - math.exp(-z),
    ),
}


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("statistic", SCALES)
def test_kappa_is_jackknifed_on_fishers_z_and_alpha_on_the_log_of_one_less_it(statistic, missing):
    of, there, back = SCALES[statistic]
    frame, clusters = pair_frame(21, 24, missing)
    results = vd.audit(vd.read(frame, scale="a,b,c", cluster="cluster")).results
    row = results.filter(statistic=statistic).row(0, named=True)
    clusters = [c for c in clusters if any(None not in p for p in c)]
    count = len(clusters)
    whole = of(list(itertools.chain(*clusters)))
    left = [
        there(of([p for j, c in enumerate(clusters) for p in c if j != i])) for i in range(count)
    ]
    mean = sum(left) / count
    half = scipy_stats.t.ppf(0.975, count - 1) * math.sqrt(
        (count - 1) / count * sum((v - mean) ** 2 for v in left)
    )
    assert row["value"] == pytest.approx(whole, abs=1e-12)
    assert row["method"] == "jackknife_t"
    assert row["clusters"] == count
    assert row["low"] == pytest.approx(back(there(whole) - half), abs=1e-10)
    assert row["high"] == pytest.approx(back(there(whole) + half), abs=1e-10)


def test_left_out_totals_are_the_totals_without_each_cluster():
    random = np.random.default_rng(0)
    rows = random.integers(0, 3, size=(40, 2))
    rows[:, 0] += 1
    tally = of_rows(rows)
    seen: Counter[tuple[float, ...]] = Counter()
    for totals, clusters, _ in left_out(tally):
        for total, times in zip(totals, clusters, strict=True):
            seen[tuple(total)] += int(times)
    assert seen == Counter(tuple((rows.sum(axis=0) - r).astype(float)) for r in rows)


def test_few_events_in_clusters_get_the_beta_interval_on_the_effective_sample():
    # 60 clusters of 5; 4 clusters hold all 11 events. Korn and Graubard 1998, eqs. (4) and (5).
    events = [5, 3, 2, 1] + [0] * 56
    rows = [
        (f"c{c}-{i}", f"c{c}", "yes" if i < e else "no")
        for c, e in enumerate(events)
        for i in range(5)
    ]
    frame = pl.DataFrame(rows, schema=["response", "cluster", "label"], orient="row")
    row = rate_row(frame)
    n, p = 300, 11 / 300
    residuals = [(e - 5 * p) / n for e in events]
    mean = sum(residuals) / 60
    variance = 60 / 59 * sum((r - mean) ** 2 for r in residuals)
    effective = p * (1 - p) / variance
    effective *= (scipy_stats.t.ppf(0.975, n - 1) / scipy_stats.t.ppf(0.975, 59)) ** 2
    x = p * effective
    low = scipy_stats.beta.ppf(0.025, x, effective - x + 1)
    high = scipy_stats.beta.ppf(0.975, x + 1, effective - x)
    assert row["method"] == "korn_graubard"
    assert (row["low"], row["high"]) == pytest.approx((low, high), abs=1e-9)
    assert row["high"] > 1.5 * intervals.clopper_pearson(11, n)[1], "clustering widens it"


def test_no_interval_is_given_from_two_clusters():
    frame, _ = planted_rate(seed=1, clusters=2)
    row = rate_row(frame)
    assert row["low"] is None
    assert row["high"] is None
    assert row["value"] is not None
