"""Measured coverage: the models' truths are true, many data sets at once are what one is, and the table holds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from tests.conftest import DATA, ROOT
from voirdire import intervals, measured
from voirdire.auditing import format_of
from voirdire.errors import UsageError
from voirdire.estimate import Key
from voirdire.finding import State
from voirdire.inference import Settings, estimates
from voirdire.resampling import drawn_totals
from voirdire.simulate import coverage
from voirdire.stats.base import Part
from voirdire.tally import of_rows
from voirdire.wording import plain

EVERY = list(coverage.CASES)
SHARES = [name for name, case in coverage.CASES.items() if case.statistic.share is not None]


@pytest.mark.parametrize("name", EVERY)
def test_the_truth_of_a_model_is_what_many_clusters_come_to(name: str) -> None:
    case = coverage.CASES[name]
    data = coverage.batch(case, np.random.default_rng(1), 1, 40_000, 0.2)
    value = data.statistic.solve(data.tally.total, data.given)[0]
    low, high = coverage.ends_by_method(data, level=0.95, replicates=100, seed=0)["auto"]
    se = (high[0] - low[0]) / (2 * 1.96)
    assert abs(value - case.truth) < 4 * se
    assert se < 0.05 * case.truth + 0.001  # so many clusters tell a wrong truth


@pytest.mark.parametrize("correlation", [0.0, 0.2])
def test_labels_within_a_cluster_correlate_as_asked(correlation: float) -> None:
    # Var(events) of clusters of m is m p q (1 + (m − 1) ρ).
    sizes = np.full((1, 60_000), 8)
    cells = coverage.CASES["rate 0.5"].draw(np.random.default_rng(2), sizes, correlation)
    variance = cells[0, :, 0].var()
    assert variance == pytest.approx(8 * 0.25 * (1 + 7 * correlation), rel=0.03)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("method", ["auto", "bootstrap"])
def test_data_sets_side_by_side_have_the_intervals_that_each_has_alone(
    name: str, method: str
) -> None:
    case = coverage.CASES[name]
    settings = Settings(interval=method, replicates=200, seed=3)
    generator = np.random.default_rng(4)
    sizes = generator.integers(5, 11, size=(6, 12))
    cells = case.draw(generator, sizes, 0.2)
    statistic = coverage.side_by_side(case.statistic, case.output)
    together = of_rows(np.ascontiguousarray(np.moveaxis(cells, 0, 1)).astype(np.int64))
    keys = tuple(Key(line=str(i)) for i in range(6))
    part = Part(tally=together, asks=((statistic, keys),), given=case.given)
    beside = estimates([part], settings)
    outputs = case.statistic.solve(together.total, case.given).shape[-1]
    for i in range(6):
        own = tuple(Key(line=str(j)) for j in range(outputs))
        alone_part = Part(tally=of_rows(cells[i]), asks=((case.statistic, own),), given=case.given)
        alone = estimates([alone_part], settings)[case.output]
        assert beside[i].number == pytest.approx(alone.number)
        if method == "bootstrap":
            continue  # clusters stand in another order, so other ones are drawn
        one, other = beside[i].interval, alone.interval
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert one.method == other.method
            assert (one.low, one.high) == pytest.approx((other.low, other.high))


# --- the candidates -----------------------------------------------------------------------------


def rate_batch(rows: list[tuple[int, int]]) -> coverage.Batch:
    """One data set of (events, responses) clusters."""
    case = coverage.CASES["rate 0.5"]
    cells = np.array([[[x, n - x, n]] for x, n in rows])
    tally = of_rows(cells)
    statistic = coverage.side_by_side(case.statistic)
    sizes = statistic.n(tally.rows.astype(np.float64), case.given)
    return coverage.Batch(statistic=statistic, given=case.given, tally=tally, sizes=sizes)


def test_cr2_is_the_matrix_formula_for_a_mean() -> None:
    rows = [(1, 4), (5, 6), (2, 9), (7, 7), (0, 3)]
    # Bell and McCaffrey: OLS on a constant, A_g = (I − H_gg)^(−1/2), df = (Σ λ)² / Σ λ² of G'G.
    y = np.concatenate([[1.0] * x + [0.0] * (n - x) for x, n in rows])
    group = np.repeat(np.arange(len(rows)), [n for _, n in rows])
    total = len(y)
    hat = np.full((total, total), 1 / total)
    rest = np.eye(total) - hat
    residual = rest @ y
    columns, variance = [], 0.0
    for g in range(len(rows)):
        inside = np.flatnonzero(group == g)
        values, vectors = np.linalg.eigh(rest[np.ix_(inside, inside)])
        adjusted = vectors @ np.diag(values**-0.5) @ vectors.T @ np.ones(len(inside)) / total
        variance += float(adjusted @ residual[inside]) ** 2
        columns.append(rest[:, inside] @ adjusted)
    inner = np.stack(columns, axis=1)
    inner = inner.T @ inner
    df = np.trace(inner) ** 2 / (inner**2).sum()
    p = y.mean()
    half = intervals.t_quantile(0.975, df) * math.sqrt(variance) / (p * (1 - p))
    logit = math.log(p / (1 - p))
    low, high = coverage._cr2(rate_batch(rows), 0.95)
    assert low[0] == pytest.approx(1 / (1 + math.exp(half - logit)), rel=1e-6)
    assert high[0] == pytest.approx(1 / (1 + math.exp(-half - logit)), rel=1e-6)


def test_the_expanded_percentile_reaches_further_out_by_the_t_quantile() -> None:
    data = rate_batch([(x % 7, 6) for x in range(10)])
    low, high = coverage._expanded(data, 0.95, 4000, 5)
    plain_ends = coverage.engine_ends(
        data, Settings(interval="bootstrap", replicates=4000, seed=5), share=False
    )
    assert low[0] < plain_ends[0][0]
    assert high[0] > plain_ends[1][0]
    # C = 10: Φ(−√(10/9) · 2.262) = 0.0085, so of 4,000 replicates 34 lie below.
    drawn = np.concatenate(
        [
            data.statistic.solve(t, data.given)[:, 0]
            for t in drawn_totals(data.tally, replicates=4000, seed=5)
        ]
    )
    assert (drawn < low[0]).sum() <= 34 <= (drawn <= low[0]).sum() + 1


# --- measuring ----------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_table_in_one_process_or_two() -> None:
    asked: dict[str, Any] = {"runs": 40, "replicates": 100, "seed": 9}
    cases, clusters = ["rate 0.1", "kr20"], [5, 10]
    one = coverage.table(cases, clusters, processes=1, **asked)
    assert coverage.as_json(one) == coverage.as_json(coverage.table(cases, clusters, **asked))
    other = coverage.table(cases, clusters, processes=1, **(asked | {"seed": 10}))
    assert coverage.as_json(one) != coverage.as_json(other)


def test_every_interval_is_counted_once() -> None:
    for row in coverage.measured("kappa at 0.1", 5, runs=60, replicates=200):
        assert row.runs <= 60
        assert row.without + row.held + row.truth_below + row.truth_above == row.runs


def test_a_method_that_is_too_short_is_caught() -> None:
    # With 5 clusters t on 4 degrees of freedom is 2.78: percentiles fall short by far more than chance.
    rows = {r.method: r for r in coverage.measured("rate 0.5", 5, runs=300, replicates=300)}
    assert rows["percentile"].coverage < 0.95 - 4 * rows["percentile"].error
    assert rows["auto"].coverage > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 300)


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"cases": ["rate 0.3"]}, "There is no case 'rate 0.3'"),
        ({"clusters": [2]}, "below 3"),
        ({"runs": 0}, "one run"),
        ({"correlation": 1.0}, "correlation 1.0"),
        ({"level": 1.0}, "level 1.0"),
        ({"replicates": 1}, "1 replicates"),
    ],
)
def test_what_cannot_be_measured_is_refused(asked: dict[str, object], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        coverage.table(**asked)  # type: ignore[arg-type]


# --- the table that ships -----------------------------------------------------------------------


def shipped() -> list[coverage.Row]:
    return coverage.from_json((DATA / "coverage.json").read_text(encoding="utf-8"))


def test_the_shipped_table_is_whole() -> None:
    rows = shipped()
    seen = {(r.case, r.method, r.clusters) for r in rows}
    assert len(seen) == len(rows)
    for name in EVERY:
        methods = set(coverage.METHODS) - (set() if name in SHARES else {"korn_graubard"})
        assert {(m, c) for n, m, c in seen if n == name} == {
            (m, c) for m in methods for c in coverage.CLUSTERS
        }
    text = (DATA / "coverage.json").read_text(encoding="utf-8")
    assert coverage.as_json(rows) == text
    # A value is undefined only where clusters are very few and a class is rare.
    assert all(r.runs == coverage.RUNS for r in rows if r.clusters >= 20)
    assert all(r.runs >= 0.95 * coverage.RUNS for r in rows)


def test_a_cell_of_the_shipped_table_comes_out_again() -> None:
    held = {r.method: r for r in shipped() if (r.case, r.clusters) == ("rate 0.05", 10)}
    for row in coverage.measured("rate 0.05", 10):
        # Not to the last data set: an end may fall on the other side of the truth by rounding.
        assert abs(row.held - held[row.method].held) <= 2
        assert replace(row, held=0, truth_below=0, truth_above=0, width=0) == replace(
            held[row.method], held=0, truth_below=0, truth_above=0, width=0
        )


def test_the_default_covers_where_its_rivals_fall_short() -> None:
    """What docs/decisions/0006 says: the default is the one that never falls far below its level."""
    by_method: dict[str, list[float]] = {}
    for row in shipped():
        if row.case != "rate 0.01":
            by_method.setdefault(row.method, []).append(row.coverage)
    assert min(by_method["auto"]) > 0.93
    for rival in ("jackknife_t", "percentile", "cr2_t", "expanded_percentile"):
        assert min(by_method[rival]) < 0.86


def test_measured_coverage_lies_between_its_neighbours() -> None:
    at = {c: measured.coverage("kr20", "percentile", c) for c in (10, 11, 12, 13)}
    rows = {r.clusters: r for r in shipped() if (r.case, r.method) == ("kr20", "percentile")}
    assert (at[10], at[13]) == (rows[10].coverage, rows[13].coverage)
    # Straight in 1 / clusters: (1/10 − 1/11) / (1/10 − 1/13) = 0.394 of the way.
    assert at[11] == pytest.approx(at[10] + 0.3939394 * (at[13] - at[10]))
    assert at[10] < at[11] < at[12] < at[13]
    assert measured.coverage("kr20", "auto", 3) == rows_at("kr20", "auto", 5)
    assert measured.coverage("kr20", "auto", 10**6) == rows_at("kr20", "auto", 1000)
    with pytest.raises(KeyError):
        measured.coverage("kr20", "wald", 10)


def rows_at(case: str, method: str, clusters: int) -> float:
    (row,) = [r for r in shipped() if (r.case, r.method, r.clusters) == (case, method, clusters)]
    return row.coverage


# --- the check that quotes it -------------------------------------------------------------------


def few_labels(clusters: int) -> pl.DataFrame:
    rows = [
        {"response": f"{c}-{i}", "cluster": f"c{c}", "grader": g, "label": str((c + i) % 2)}
        for c in range(clusters)
        for i in range(4)
        for g in ("a", "b")
    ]
    return pl.DataFrame(rows)


def few(clusters: int) -> str:
    audit = vd.audit(vd.read(few_labels(clusters), scale="0,1"))
    (finding,) = [f for f in audit.findings if f.code == "few_clusters"]
    assert finding.state is (State.FOUND if clusters < 30 else State.CLEAR)
    return plain(finding.sentence)


def test_few_clusters_quotes_the_table_at_the_files_clusters() -> None:
    said = few(13)
    for method in ("auto", "percentile"):
        share = f"{100 * rows_at('kappa at 0.5', method, 13):.0f} %"
        assert share in said
    assert "with 13 clusters" in said
    assert few(20) != said


def test_few_clusters_between_measured_numbers_says_what_lies_between() -> None:
    # 17 was not measured: straight in 1 / clusters between 13 and 20.
    said = few(17)
    along = (1 / 13 - 1 / 17) / (1 / 13 - 1 / 20)
    for case in ("rate 0.5", "rate 0.05", "kappa at 0.5"):
        low, high = (rows_at(case, "percentile", n) for n in (13, 20))
        share = f"{100 * (low + along * (high - low)):.0f}"
        assert share in said.split("percentiles")[1]
    assert "with 17 clusters" in said


def test_a_cell_says_how_often_there_is_no_interval() -> None:
    row = next(r for r in shipped() if r.without > 0.05 * r.runs)
    few_lost = next(r for r in shipped() if 0.005 < r.without / r.runs <= 0.05)
    cells = [coverage._said(r) for r in (row, few_lost, replace(row, without=0))]
    assert [c.count("*") for c in cells] == [2, 1, 0]


def test_few_clusters_below_the_table_and_below_any_interval() -> None:
    assert "with 5 clusters, the fewest measured" in few(4)
    assert few(2).endswith("No interval is given below 3.")
    assert "Measured" not in few(30)


@pytest.mark.parametrize("interval", ["auto", "bootstrap"])
@pytest.mark.parametrize("clusters", [4, 5, 8, 13, 17, 20, 29])
def test_what_few_clusters_advises_follows_from_what_it_measured(
    clusters: int, interval: str
) -> None:
    labels = vd.read(few_labels(clusters), scale="0,1", interval=interval)
    (finding,) = [f for f in vd.audit(labels).findings if f.code == "few_clusters"]
    step = plain(finding.next_step)
    assert step.startswith("Add clusters rather than responses")
    rare = measured.coverage("rate 0.05", "auto", max(clusters, 5))
    if interval == "bootstrap":
        assert "audit without --interval bootstrap" in step
        assert "wide" not in step
    else:
        assert "do not take --interval bootstrap" in step
        assert ("rare events" in step and "as wide" in step) == (rare > 0.965)
        assert "too short" not in step


def test_few_clusters_without_any_interval_gives_no_word_on_them() -> None:
    (finding,) = [
        f
        for f in vd.audit(vd.read(few_labels(2), scale="0,1")).findings
        if f.code == "few_clusters"
    ]
    assert plain(finding.next_step) == "Add clusters rather than responses."


def test_intervals_that_fall_short_are_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "coverage", lambda case, method, clusters: 0.80)
    (finding,) = [
        f
        for f in vd.audit(vd.read(few_labels(9), scale="0,1")).findings
        if f.code == "few_clusters"
    ]
    assert "read intervals of rates near 0.5, of rare events and of kappa as too short" in plain(
        finding.next_step
    )


def test_the_page_shows_the_table_that_ships() -> None:
    page = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    markdown = format_of("coverage.md").render(coverage.document(shipped())).decode()
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert len(rows) > 60
    missing = [row for row in rows if row not in page]
    assert not missing, missing[:3]


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_the_shipped_table_comes_out_again(name: str) -> None:
    held = {(r.method, r.clusters): r for r in shipped() if r.case == name}
    for row in coverage.table([name], [5, 10, 13, 20, 50, 100]):
        other = held[row.method, row.clusters]
        assert abs(row.held - other.held) <= 4
