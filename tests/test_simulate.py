"""Simulated banks and panels have the truth that they say they have, and sweeps return what theory says."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from tests.conftest import Run, run_python
from tests.test_figures import NASTY, SVG, parsed, words
from voirdire import plugins, simulate
from voirdire.cli import simulate as commands
from voirdire.cli.main import main
from voirdire.document import Table
from voirdire.errors import UsageError
from voirdire.figures.accuracy_two_truths import DRAWING as TWO_TRUTHS
from voirdire.figures.base import Drawing
from voirdire.figures.kr20_grid import DRAWING as GRID
from voirdire.figures.svg import dark_variables
from voirdire.finding import State
from voirdire.simulate import BankModel, Collapse, Errors, Follow, Inflation, Unread, sweeps
from voirdire.simulate.banks import verdicts
from voirdire.simulate.panels import classes_drawn
from voirdire.simulate.reports import document, grid_figure, run, two_truths_figure

MANY = 400  # replicates of a check against theory


def standard_error(p: float, n: float) -> float:
    return math.sqrt(p * (1 - p) / n)


# --- banks ------------------------------------------------------------------------------------------


def test_importing_the_package_is_light(tmp_path: Path) -> None:
    done = run_python(
        "-c", "import voirdire.simulate, sys; print('numpy' in sys.modules)", cwd=tmp_path
    )
    assert done.stdout.strip() == "False", done.stderr


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not() -> None:
    one, same, other = (simulate.bank(error=0.1, questions=3, seed=s) for s in (5, 5, 6))
    assert one.table().equals(same.table())
    assert one.truth() == same.truth()
    assert not one.table().equals(other.table())
    panels = [simulate.panel(seed=s, faults=FAULTS) for s in (5, 5, 6)]
    assert panels[0].table().equals(panels[1].table())
    assert not panels[0].table().equals(panels[2].table())
    grids = [sweeps.kr20_grid((0.2,), (0.1,), replicates=5, seed=s).values for s in (5, 5, 6)]
    assert (grids[0] == grids[1]).all()
    assert (grids[0] != grids[2]).all()


def test_rates_lie_within_the_spread_and_have_its_variance() -> None:
    model = BankModel(spread=0.6)
    rate = verdicts(model, np.random.default_rng(1), MANY).rate
    assert rate.shape == (MANY, 210)
    assert rate.min() >= 0.2
    assert rate.max() <= 0.8
    # Variance of a uniform: width² / 12 = 0.03; its own standard error is about 0.03 · √0.8 / √n.
    assert rate.var() == pytest.approx(0.03, abs=4 * 0.03 * math.sqrt(0.8 / rate.size))


@pytest.mark.parametrize(
    "errors",
    [
        Errors.symmetric(0.1),
        Errors(false_accept=0.104, false_reject=0.001),
        Errors.lenient(0.05),
        Errors.symmetric(0.1, clustered="line", correlation=0.3),
        Errors(false_accept=0.2, false_reject=0.05, clustered="response", correlation=0.5),
        Errors.symmetric(0.2, clustered="response", correlation=1.0),
    ],
    ids=str,
)
def test_the_judge_errs_at_its_rates(errors: Errors) -> None:
    model = BankModel(errors=errors, questions=5)
    made = verdicts(model, np.random.default_rng(2), MANY)
    gold, judge = made.gold.astype(bool), made.judge.astype(bool)
    # Errors of one line (42 responses) or response (10 lines) go together: fewer count.
    alike = {"none": 1, "line": 42, "response": 10}[errors.clustered]
    n = gold.size / 2 / (1 + errors.correlation * (alike - 1))
    for rate, among in ((errors.false_accept, ~gold), (errors.false_reject, gold)):
        share = (judge != gold)[among].mean()
        assert share == pytest.approx(rate, abs=5 * standard_error(rate, n) + 1e-12)


@pytest.mark.parametrize("by", ["line", "response"])
def test_errors_have_the_correlation_asked_for_within_what_they_are_clustered_by(by: str) -> None:
    errors = Errors.symmetric(0.1, clustered=by, correlation=0.4)
    made = verdicts(BankModel(errors=errors, spread=0.4), np.random.default_rng(3), MANY)
    wrong = (made.gold != made.judge).astype(float)  # (replicates, responses, lines)
    within = wrong.transpose(0, 2, 1) if by == "line" else wrong
    across = wrong if by == "line" else wrong.transpose(0, 2, 1)
    pairs = within[..., 0].ravel(), within[..., 1].ravel()
    apart = across[..., 0].ravel(), across[..., 1].ravel()
    # One rate serves 210 responses or 10 lines of a bank: as many draws as there are rates count.
    rates = MANY * (10 if by == "line" else 210)
    assert np.corrcoef(*pairs)[0, 1] == pytest.approx(0.4, abs=max(6 / math.sqrt(rates), 0.05))
    assert np.corrcoef(*apart)[0, 1] == pytest.approx(0.0, abs=0.4 * 5 / math.sqrt(rates / 10))


def test_errors_clustered_by_line_stay_within_a_question() -> None:
    errors = Errors.symmetric(0.2, clustered="line", correlation=1.0)
    made = simulate.bank(errors=errors, questions=3, seed=4)
    wrong = made.gold != made.judge
    question = made.model.question
    for q in range(3):  # each line is always wrong or never
        assert set(np.unique(wrong[question == q].mean(axis=0))) <= {0.0, 1.0}
    assert made.false_accept.shape == (3, 10)
    rates = [tuple(row) for row in made.false_accept.tolist()]
    assert len(set(rates)) > 1


def test_responses_to_one_question_are_alike_where_asked_and_their_rates_stay_uniform() -> None:
    model = BankModel(spread=1.0, questions=21, question_correlation=0.6)
    rate = verdicts(model, np.random.default_rng(5), 200).rate
    assert rate.mean() == pytest.approx(0.5, abs=0.03)
    assert rate.var() == pytest.approx(1 / 12, abs=0.01)
    first, second = rate[:, ::10].ravel(), rate[:, 1::10].ravel()  # neighbours in a question
    # Of uniform scores: 6 / π · arcsin(0.6 / 2) = 0.582.
    assert np.corrcoef(first, second)[0, 1] == pytest.approx(0.582, abs=0.06)


@pytest.mark.parametrize(
    "errors",
    [
        Errors(),
        Errors.symmetric(0.1),
        Errors(false_accept=0.3, false_reject=0.02),
        Errors.symmetric(0.1, clustered="response", correlation=0.3),
        Errors(false_accept=0.3, false_reject=0.1, clustered="response", correlation=0.4),
    ],
    ids=str,
)
def test_the_population_kr20_is_what_a_large_bank_returns(errors: Errors) -> None:
    model = BankModel(spread=0.7, errors=errors, responses=100_000, lines=8)
    made = verdicts(model, np.random.default_rng(6)).judge[0]
    assert vd.stats.kr20(made) == pytest.approx(simulate.population_kr20(model), abs=0.01)


def test_the_population_kr20_by_hand_and_where_it_cannot_be_said() -> None:
    # Spread 0.6, error 0.1: v = 0.8² · 0.36 / 12 = 0.0192; 10 · 0.0192 / (0.25 + 9 · 0.0192).
    tenth = simulate.population_kr20(BankModel(spread=0.6, errors=Errors.symmetric(0.1)))
    assert tenth == pytest.approx(0.192 / 0.4228)
    # Spread 0.8, error 0.2: 0.6² · 0.64 / 12 is the same v. The two outlined cells are one value.
    fifth = simulate.population_kr20(BankModel(spread=0.8, errors=Errors.symmetric(0.2)))
    assert fifth == pytest.approx(tenth)
    by_line = Errors.symmetric(0.1, clustered="line", correlation=0.2)
    assert math.isnan(simulate.population_kr20(BankModel(errors=by_line)))
    assert math.isnan(simulate.population_kr20(BankModel(lines=1)))


def test_a_bank_can_be_audited_and_the_audit_finds_its_rates() -> None:
    made = simulate.bank(
        spread=0.6, errors=Errors(false_accept=0.2, false_reject=0.05), questions=20,
        responses=600, seed=8,
    )  # fmt: skip
    audit = vd.audit(made.labels(gold="gold"), cut=[5])
    rows = {
        r["statistic"]: r
        for r in audit.results.to_dicts()
        if r["grader"] == "judge" and not r["line"]
    }
    wrong, gold = made.judge != made.gold, made.gold == 1
    assert rows["false_accept"]["value"] == pytest.approx(wrong[~gold].mean())
    assert rows["false_reject"]["value"] == pytest.approx(wrong[gold].mean())
    for name, true in (("false_accept", 0.2), ("false_reject", 0.05)):
        assert rows[name]["low"] < true < rows[name]["high"]
    assert any(f.code == "gate_lenient" and f.state is State.FOUND for f in audit.findings)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: simulate.bank(spread=1.2), "the spread is 1.2"),
        (lambda: simulate.bank(error=-0.1), "from 0 to 1"),
        (lambda: simulate.bank(error=float("nan")), "is nan"),
        (lambda: simulate.bank(responses=0), "responses is 0"),
        (lambda: simulate.bank(responses=3, questions=4), "at least one response"),
        (lambda: simulate.bank(error=0.1, errors=Errors()), "give one of them"),
        (lambda: Errors.lenient(0.6), "from 0 to 0.5"),
        (lambda: Errors(clustered="page", correlation=0.1), "none, line, response"),
        (lambda: Errors(clustered="line"), "where both are given"),
        (lambda: Errors(correlation=0.2), "where both are given"),
        (lambda: sweeps.kr20_grid(replicates=0), "replicates is 0"),
        (lambda: sweeps.kr20_grid(model=BankModel(lines=1)), "at least two lines"),
        (lambda: sweeps.phi_lambda_control((11,)), "from 1 to 10"),
        (lambda: sweeps.phi_lambda_control(alpha=0), "both are above 0"),
        (lambda: sweeps.phrasing_check(phrasings=1), "phrasings is 1"),
        (lambda: sweeps.published_sweeps(["kr20"]), "no sweep 'kr20'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make: Any, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        make()


# --- panels -----------------------------------------------------------------------------------------

FAULTS = (
    Collapse(grader="g1", class_="high", ratio=0.1),
    Inflation(grader="g2", class_="middle", ratio=2.0),
    Follow(grader="g3", of="g1", share=0.9),
    Unread(grader="g4", class_="high", share=0.5, elsewhere=0.02),
)


def test_without_a_fault_every_grader_expects_as_many_labels_as_the_truth_has() -> None:
    made = simulate.panel(responses=60_000, clusters=60_000, correlation=0, seed=11)
    for codes in (made.true, *made.codes.T):
        shares = np.bincount(codes, minlength=3) / 60_000
        for share, true in zip(shares, made.model.mix, strict=True):
            assert share == pytest.approx(true, abs=5 * standard_error(true, 60_000))
    # A grader agrees where it repeats the truth, and else by chance: 0.7 + 0.3 · Σ mix².
    agrees = (made.codes == made.true[:, None]).mean(axis=0)
    assert agrees == pytest.approx(0.7 + 0.3 * 0.46, abs=0.01)


def test_labels_within_a_cluster_have_the_correlation_asked_for() -> None:
    made = simulate.panel(responses=40_000, clusters=20_000, correlation=0.3, seed=12)
    low = (made.true == 0).astype(float)
    assert np.corrcoef(low[::2], low[1::2])[0, 1] == pytest.approx(0.3, abs=0.04)
    own = (made.codes[:, 0] == 0).astype(float)
    assert np.corrcoef(own[::2], own[1::2])[0, 1] == pytest.approx(0.58 * 0.3, abs=0.04)


def test_planted_faults_do_what_they_say() -> None:
    n = 60_000
    made = simulate.panel(responses=n, clusters=n, correlation=0, seed=13, faults=FAULTS)
    by_grader = dict(zip(made.model.graders, made.codes.T, strict=True))
    share = {g: [(c == k).mean() for k in range(3)] for g, c in by_grader.items()}
    assert share["g1"][2] == pytest.approx(0.1 * 0.1, abs=0.003)
    assert share["g1"][1] == pytest.approx(0.3 + 0.09, abs=0.01)  # what is lost goes one step down
    assert share["g2"][1] == pytest.approx(2 * 0.3, abs=0.01)
    same = (by_grader["g3"] == by_grader["g1"]).mean()
    own = (by_grader["g5"] == by_grader["g1"]).mean()
    assert same == pytest.approx(0.9 + 0.1 * own, abs=0.01)
    unread = by_grader["g4"] == -1
    assert unread[made.true == 2].mean() == pytest.approx(0.5, abs=0.03)
    assert unread[made.true != 2].mean() == pytest.approx(0.02, abs=0.005)
    assert set(made.outcomes[unread, 3]) == {"unparsed"}
    assert set(made.outcomes[~unread, 3]) == {"label"}


def test_a_collapse_goes_to_the_neighbour_or_where_it_is_sent() -> None:
    for class_, to, lands in (("low", "", 1), ("high", "", 1), ("high", "low", 0)):
        fault = Collapse(grader="g1", class_=class_, ratio=0.0, to=to)
        plain_, planted = (
            simulate.panel(seed=14, faults=f, graders=("g1",)).codes[:, 0] for f in ((), (fault,))
        )
        moved = plain_ != planted
        assert set(planted[moved]) == {lands}
        assert not (planted == ("low", "middle", "high").index(class_)).any()


def test_planted_faults_are_found_by_the_audit_and_a_clean_panel_has_none() -> None:
    def found(faults: Any) -> set[tuple[str, str]]:
        audit = vd.audit(simulate.panel(seed=15, faults=faults).labels(gold="gold"))
        return {(f.code, f.grader) for f in audit.findings if f.state is State.FOUND}

    planted = found(
        (
            Collapse(grader="g1", class_="high", ratio=0.0),
            Inflation(grader="g2", class_="high", ratio=4.0),
            Unread(grader="g4", class_="low", share=0.6),
        )
    )
    assert ("class_collapse", "g1") in planted
    assert ("class_inflation", "g2") in planted
    assert ("outcomes_unread", "g4") in planted
    clean = {code for code, _ in found(())}
    assert not clean & {"class_collapse", "class_inflation", "outcomes_unread"}


def test_one_class_is_drawn_from_each_row_of_shares() -> None:
    shares = np.tile([[0.0, 0.2, 0.8], [1.0, 0.0, 0.0]], (20_000, 1))
    codes = classes_drawn(np.random.default_rng(16), shares).reshape(-1, 2)
    assert set(codes[:, 1]) == {0}
    assert np.bincount(codes[:, 0]) / 20_000 == pytest.approx([0, 0.2, 0.8], abs=0.015)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"graders": ("a", "a")}, "a name of its own"),
        ({"graders": ("gold",)}, "a name of its own"),
        ({"graders": ()}, "graders is 0"),
        ({"classes": ("a", "b"), "mix": (1.0,)}, "one share above 0"),
        ({"mix": (0.5, 0.3, 0.1)}, "add up to 0.9"),
        ({"mix": (0.7, 0.3, 0.0)}, "above 0"),
        ({"correlation": 1.0}, "below 1"),
        ({"clusters": 901}, "at least one response"),
        ({"faults": (Collapse(grader="x", class_="high", ratio=0),)}, "there is no grader x"),
        ({"faults": (Collapse(grader="g1", class_="top", ratio=0),)}, "there is no class 'top'"),
        ({"faults": (Collapse(grader="g1", class_="low", ratio=2),)}, "from 0 to 1"),
        ({"faults": (Collapse(grader="g1", class_="low", ratio=0, to="low"),)}, "name another"),
        ({"faults": (Inflation(grader="g1", class_="high", ratio=11),)}, "from 1 to 10"),
        ({"faults": (Follow(grader="g1", of="g1", share=1),)}, "follows itself"),
        ({"faults": (Unread(grader="g1", share=0.1, outcome="label"),)}, "is not one of"),
    ],
    ids=str,
)
def test_a_panel_that_cannot_be_drawn_is_refused(model: Any, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        simulate.panel(**model)


# --- sweeps -----------------------------------------------------------------------------------------


def test_kr20_of_many_banks_is_that_of_each() -> None:
    made = verdicts(BankModel(responses=40, lines=6), np.random.default_rng(21), 7).judge
    each = [vd.stats.kr20(x) for x in made]
    assert sweeps.kr20_of(made) == pytest.approx(each, abs=1e-12)
    constant = np.ones((2, 5, 3), dtype=np.int8)
    assert np.isnan(sweeps.kr20_of(constant)).all()


def test_the_grid_agrees_with_theory_in_every_cell() -> None:
    grid = sweeps.kr20_grid(
        (0.0, 0.4, 0.8), (0.0, 0.1, 0.3), replicates=100, model=BankModel(responses=2000)
    )
    assert grid.values.shape == (3, 3, 100)
    for place, level in grid.cells():
        spread, error = float(level["spread"]), float(level["error"])
        model = BankModel(spread=spread, errors=Errors.symmetric(error))
        off = grid.mean[place] - simulate.population_kr20(model)
        # KR-20 of 2,000 responses is biased by about 1 / n, below the Monte-Carlo error.
        assert abs(off) < 4.5 * grid.standard_error[place] + 0.001, level


def test_a_cell_does_not_depend_on_the_cells_beside_it_but_for_its_place() -> None:
    whole = sweeps.kr20_measured_rate((0.2, 0.4, 0.6), replicates=4)
    part = sweeps.kr20_measured_rate((0.2, 0.4), replicates=4)
    assert (whole.values[:2] == part.values).all()
    other = sweeps.kr20_one_directional((0.8,), errors=Errors.lenient(0.0), replicates=4)
    lenient = sweeps.kr20_lenient_only((0.0,), replicates=4)
    assert (other.values != lenient.values).all()  # one seed, two streams


def test_replicates_in_portions_are_still_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "_VALUES", 5_000)
    grid = sweeps.kr20_grid((0.6,), (0.0,), replicates=30)
    assert np.isfinite(grid.values).all()
    assert len(np.unique(grid.values)) == 30
    assert np.isfinite(sweeps.phi_lambda_control(replicates=3, responses=400).values).all()
    assert np.isfinite(sweeps.livingston_lewis_control(replicates=3, responses=400).values).all()
    assert np.isfinite(sweeps.phrasing_check(replicates=20).values).all()


def test_the_phi_lambda_control_is_made_of_the_products_own_statistics() -> None:
    one = sweeps.phi_lambda_control((3, 6), responses=300, replicates=1, seed=22)
    random = np.random.default_rng([22, 0])
    share = random.beta(*sweeps.FITTED, (1, 300))[0]
    met = random.random((1, 300, 10))[0] < share[:, None]
    totals = met.sum(axis=1)
    for i, cut in enumerate((3, 6)):
        assert one.values[0, i, 0] == np.mean((totals >= cut) == (share * 10 >= cut))
        ll = vd.stats.livingston_lewis(totals, 10, cut).accuracy
        assert one.values[1, i, 0] == pytest.approx(ll, abs=1e-9)
        assert one.values[2, i, 0] == pytest.approx(vd.stats.phi_lambda(met, cut), abs=1e-12)


def test_livingston_lewis_recovers_accuracy_and_phi_lambda_does_not() -> None:
    accuracy, ll, phi = sweeps.phi_lambda_control(replicates=20).values
    assert np.abs(ll - accuracy).max() < 0.02
    departs = (accuracy - phi).mean(axis=1)
    assert departs.min() > 0.12
    assert departs.max() < 0.26


def test_components_of_many_studies_are_those_of_each() -> None:
    scores = sweeps.crossed_scores(
        np.random.default_rng(23), columns=0.3, residual=0.1, responses=12, phrasings=4,
        replicates=5,
    )  # fmt: skip
    raw, used = sweeps.crossed_components(scores + 1e3)
    for i, x in enumerate(scores):
        found = vd.stats.variance_components(x)
        assert [c[i] for c in raw] == pytest.approx(found.raw, abs=1e-9)
        assert [c[i] for c in used] == pytest.approx(found.used, abs=1e-9)


def test_the_phrasing_study_recovers_its_components_and_scatters_widely() -> None:
    study = sweeps.phrasing_check(replicates=2000)
    for scenario, (phrasing, residual) in sweeps.SCENARIOS.items():
        for statistic, true in (
            ("component_response", 1.0),
            ("component_phrasing", phrasing),
            ("component_residual", residual),
        ):
            place = study.at(scenario, statistic)
            error = float(study.standard_error[place])
            assert study.mean[place] == pytest.approx(true, abs=4 * error + 1e-9), scenario
    # Two degrees of freedom: the SD of 0.175 · χ²₂ / 2 is 0.175.
    place = study.at("deterministic given phrasing", "component_phrasing")
    assert study.sd[place] == pytest.approx(0.175, rel=0.12)
    assert (study.values[study.at("deterministic given phrasing", "component_residual")] == 0).all()


def test_a_sweep_says_how_many_replicates_have_a_value() -> None:
    tiny = sweeps.kr20_grid((0.0,), (0.0,), replicates=300, model=BankModel(responses=2, lines=2))
    assert 0 < tiny.said[0, 0] < 300  # two responses often have one total
    there = tiny.values[np.isfinite(tiny.values)]
    assert tiny.mean[0, 0] == pytest.approx(there.mean())
    assert tiny.sd[0, 0] == pytest.approx(there.std(ddof=1))
    (row,) = tiny.rows()
    assert row["replicates"] == tiny.said[0, 0]
    assert row["p5"] == pytest.approx(np.percentile(there, 5))


def test_progress_is_told_by_cells() -> None:
    told: list[tuple[int, int]] = []
    sweeps.kr20_grid((0.0, 0.2), (0.1,), replicates=2, progress=lambda *x: told.append(x))
    assert told == [(1, 2), (2, 2)]


# --- reports and figures ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return {name: run(name, replicates=8, responses=60) for name in sweeps.SWEEPS}


def test_figures_are_found_and_their_data_comes_from_the_sweeps(made: dict[str, Any]) -> None:
    assert {"kr20_grid", "accuracy_two_truths"} <= {
        d.name for d in plugins.load("figures", Drawing)
    }
    figure = grid_figure(made["kr20_grid"], made["kr20_measured_rate"])
    assert figure.data["outlined"] == [[3, 2], [4, 3]]
    assert figure.data["curve"]["error"] == 0.0472
    shown = words(parsed(GRID, figure.data))
    assert f"{made['kr20_grid'].mean[4, 0]:.3f}" in shown
    assert f"{made['kr20_measured_rate'].mean[4]:.2f}" in shown
    two = two_truths_figure(made["livingston_lewis_control"])
    shown = words(parsed(TWO_TRUTHS, two.data))
    assert f"{made['livingston_lewis_control'].mean[0, 0]:.3f}" in shown


def test_the_two_cells_are_outlined_and_the_shade_repeats_the_number() -> None:
    data = {"spreads": [0, 1], "errors": [0, 0.5], "mean": [[-0.1, 0.05], [0.95, None]],
            "outlined": [[0, 1], [7, 7]]}  # fmt: skip
    root = parsed(GRID, data)
    outlines = [r for r in root.iter(f"{SVG}rect") if r.get("stroke-width") == "3"]
    assert (
        len(outlines) == 2
    )  # one in the legend, one on the grid; what is off the grid is not drawn
    fills = {
        title.text: rect.get("style") or rect.get("fill") or ""
        for rect in root.iter(f"{SVG}rect")
        if (title := rect.find(f"{SVG}title")) is not None
    }
    assert "vd-ramp-0" in fills["spread 0, error 0 %: −0.100"]
    assert "vd-ramp-9" in fills["spread 1, error 0 %: 0.950"]
    assert fills["spread 1, error 50 %: –"] == "none"
    assert "[0.050]" in "\n".join(GRID.lines(data, 80, False))  # type: ignore[misc]


EMPTY_GRID: dict[str, Any] = {"spreads": [], "errors": [], "mean": []}
NASTY_GRID = {
    "spreads": [NASTY, float("nan")], "errors": [float("inf"), 0.1],
    "mean": [[NASTY, None], [float("nan"), 0.2]], "sd": [[0.1]],
    "curve": {"error": 0.1, "mean": [NASTY, 0.3], "sd": [None, float("nan")]},
}  # fmt: skip
NASTY_TRUTHS = {
    "cuts": [{"cut": NASTY, "own": 0.2, "gold": None}, {"cut": 2, "own": 0.9, "gold": 0.9}]
}


@pytest.mark.parametrize(
    ("drawing", "data"),
    [
        (GRID, EMPTY_GRID),
        (GRID, NASTY_GRID),
        (TWO_TRUTHS, {"cuts": []}),
        (TWO_TRUTHS, NASTY_TRUTHS),
    ],
)
def test_figures_survive_what_is_missing_or_hostile(drawing: Drawing, data: Any) -> None:
    content = drawing.svg(data, NASTY)
    assert content.count("</svg>") == 1
    assert "nan" not in content.replace("name", "")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", content)
    assert "var(--vd" not in re.sub(r"var\(--vd-[a-z0-9-]+,#[0-9a-f]{6}\)", "", content)
    used = set(re.findall(r"var\((--vd-[a-z0-9-]+)", content))
    assert used <= set(re.findall(r"--vd-[a-z0-9-]+", dark_variables()))
    for width in (40, 100):
        for ascii_only in (False, True):
            drawn = drawing.lines(data, width, ascii_only)  # type: ignore[misc]
            assert all("\x1b" not in line and "\n" not in line for line in drawn)
            assert not ascii_only or not set("".join(drawn)) & set("█–±●◇─")


def test_the_report_holds_every_sweep(made: dict[str, Any]) -> None:
    page = document(made)
    titles = {b.title for b in page.blocks if isinstance(b, Table)}
    assert titles == {s.title for s in made.values()}
    assert "8 replicates" in str(page.summary)


# --- the command ------------------------------------------------------------------------------------


def test_a_bank_is_written_with_its_truth_beside_it_and_audit_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bank.csv"
    line = f"simulate bank --lenient 0.1 --questions 4 --responses 80 -o {out}"
    assert main(shlex.split(line)) == 0
    shown = capsys.readouterr()
    truth = json.loads((tmp_path / "bank.truth.json").read_text(encoding="utf-8"))
    assert truth["false_accept"] == 0.2
    assert len(truth["rate"]) == 80
    assert "accepts 20 % of absent lines and rejects 0 % of present ones" in shown.out
    next_line = next(x for x in shown.out.splitlines() if x.startswith("Next: "))
    assert main([*shlex.split(next_line.removeprefix("Next: voirdire ")), "--quiet"]) == 0
    first = out.read_bytes()
    assert main(shlex.split(line)) == 0
    assert out.read_bytes() == first


def test_a_panel_is_written_with_its_truth_beside_it_and_audit_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "panel.parquet"
    line = (
        f"simulate panel --graders a,b,c --collapse a:high=0 --inflate b:high=2 --follow c=a:0.5 "
        f"--unread b=0.1 --unread c:low=0.2 -o {out}"
    )
    assert main(shlex.split(line)) == 0
    next_line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("Next: "))
    report = tmp_path / "audit.json"
    words = shlex.split(next_line.removeprefix("Next: voirdire "))
    assert main([*words, "--quiet", "-o", str(report)]) == 0
    audit = json.loads(report.read_text(encoding="utf-8"))
    collapses = [
        f for f in audit["findings"] if f["code"] == "class_collapse" and f["grader"] == "a"
    ]
    assert any(f["state"] == "found" and f["class"] == "high" for f in collapses)
    truth = json.loads((tmp_path / "panel.truth.json").read_text(encoding="utf-8"))
    assert [f["fault"] for f in truth["model"]["faults"]] == [
        "collapse", "inflation", "follow", "unread", "unread",
    ]  # fmt: skip
    frame = pl.read_parquet(out)
    assert frame.filter(grader="b", outcome="unparsed")["label"].is_null().all()
    gold = dict(frame.filter(grader="gold").select("response", "label").iter_rows())
    assert gold == truth["truth"]


def test_gold_can_be_kept_out_of_the_table_and_stays_in_the_truth(tmp_path: Path) -> None:
    assert main(shlex.split(f"simulate bank --no-gold --quiet -o {tmp_path / 'b.csv'}")) == 0
    assert not any(c.startswith("gold") for c in pl.read_csv(tmp_path / "b.csv").columns)
    truth = json.loads((tmp_path / "b.truth.json").read_text(encoding="utf-8"))
    assert np.array(list(truth["gold"].values())).shape == (210, 10)
    assert main(shlex.split(f"simulate panel --no-gold --quiet -o {tmp_path / 'p.csv'}")) == 0
    assert "gold" not in set(pl.read_csv(tmp_path / "p.csv")["grader"])


def test_sweeps_are_written_as_a_report_and_as_cells(tmp_path: Path) -> None:
    files = [
        tmp_path / f"sweeps{suffix}" for suffix in (".csv", ".json", ".parquet", ".html", ".md")
    ]
    outputs = " ".join(f"-o {f}" for f in files)
    line = (
        f"simulate sweeps --sweep kr20_grid --sweep phrasing_check --replicates 3 --quiet {outputs}"
    )
    assert main(shlex.split(line)) == 0
    cells = pl.read_csv(files[0])
    assert cells.height == 25 + 16
    parquet = pl.read_parquet(files[2])
    assert cells.columns == parquet.columns
    assert cells["mean"].to_list() == parquet["mean"].to_list()
    assert parquet["scenario"].to_list()[-1] == "deterministic given phrasing"
    held = json.loads(files[1].read_text(encoding="utf-8"))["cells"]
    assert [c["mean"] for c in held] == cells["mean"].to_list()
    assert "<svg" in files[3].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("bank", "Missing option"),
        ("bank -o b.html", ".csv"),
        ("bank -o b.csv --spread 2", "the spread is 2"),
        ("bank -o b.csv --error 0.1 --lenient 0.1", "give one of them"),
        ("panel -o p.csv --collapse g1:high", "GRADER:CLASS=RATIO"),
        ("panel -o p.csv --collapse g1=0.2", "GRADER:CLASS=RATIO"),
        ("panel -o p.csv --collapse g9:high=0.2", "there is no grader g9"),
        ("panel -o p.csv --mix a,b,c", "'a' is no number"),
        ("panel -o p.csv --mix nan,nan,nan", "give one share above 0"),
        ("panel -o p.csv --seed -1", "the seed is -1"),
        ("bank -o b.csv --seed -1", "the seed is -1"),
        ("sweeps --sweep kr20_grid --seed -1", "the seed is -1"),
        ("sweeps --sweep phi_lambda_control --seed -1", "the seed is -1"),
        ("coverage --case kr20 --clusters 5 --seed -1", "The seed -1"),
        ("panel -o p.csv --follow g1=g2", "GRADER=OTHER:SHARE"),
        ("sweeps --sweep nothing", "kr20_grid"),
        ("sweeps -o s.docx", ".docx"),
    ],
)
def test_a_usage_error_is_told_before_anything_is_written(
    line: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", *shlex.split(line)]) == 2
    shown = capsys.readouterr()
    assert says in shown.err
    assert shown.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["", "bank", "panel", "sweeps"])
def test_help_ends_with_examples(voirdire: Run, command: str) -> None:
    done = voirdire("simulate", *command.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert "Examples:" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "epilog", [commands.BANK_EXAMPLES, commands.PANEL_EXAMPLES, commands.SWEEP_EXAMPLES]
)
def test_the_examples_run_in_their_order(epilog: str, voirdire: Run) -> None:
    for line in re.findall(r"\$ voirdire (.*)", epilog):
        done = voirdire(*shlex.split(line))
        assert done.returncode == 0, done.stderr
