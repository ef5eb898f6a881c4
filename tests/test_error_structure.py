"""How errors fall together within responses: by hand, on the paper’s bank, and the laws."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from tests.checklists import SHARED, real_bank, verdicts
from voirdire.auditing import scenes
from voirdire.document import Table
from voirdire.estimate import Estimate
from voirdire.inference import Settings, estimates
from voirdire.labels import Labels
from voirdire.scene import Estimates
from voirdire.stats import error_structure
from voirdire.stats.error_structure import DRAWS, FAMILY, independent_error_kr20

FILE = SHARED / "reference" / "published.json"
NAN = float("nan")


def found(labels: Labels, **settings: Any) -> Estimates:
    scene, _ = scenes(labels)
    return Estimates(estimates(FAMILY.parts(scene), Settings(**settings)))


def one(made: Estimates, statistic: str, **key: str) -> Estimate:
    estimate = made.get(statistic, grader="judge", **key)
    assert estimate is not None, (statistic, key)
    return estimate


def said(estimate: Estimate) -> tuple[Any, ...]:
    """The value with the number behind it."""
    return (estimate.value, estimate.n)


def value(made: Estimates, statistic: str, **key: str) -> float:
    number = one(made, statistic, **key).number
    assert number is not None, one(made, statistic, **key).reason
    return number


# --- by hand ------------------------------------------------------------------------------------

GOLD = [[1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [NAN, 0, 0]]
JUDGE = [[1, 1, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1], [1, 1, 1]]
# Errors: r0 on e2 e3, r1 on e2, r2 none, r3 on e2; r4 is not complete. Counts 2 1 0 1.
# Absent 2 + 2 + 1 + 1 = 6, accepted 3; present 1 + 1 + 2 + 2 = 6, rejected 1.


@pytest.fixture(scope="module")
def by_hand() -> Estimates:
    return found(verdicts({"gold": GOLD, "judge": JUDGE}))


def test_the_variance_of_error_counts_by_hand(by_hand):
    # Mean 1, squares 1 0 1 0 over n − 1 = 3.
    observed = one(by_hand, "error_count_variance")
    assert said(observed) == (pytest.approx(2 / 3), 4)


def test_the_variance_at_the_overall_rates_by_hand(by_hand):
    # Rates 1/2 and 1/6. Expected counts: r0 r1 2/2 + 1/6, r2 r3 1/2 + 2/6; within 2/4 + 5/36 and
    # 1/4 + 10/36. The expected counts are 7/6 7/6 5/6 5/6: between (1/6)² × 4 / 3.
    within = (2 * (2 / 4 + 5 / 36) + 2 * (1 / 4 + 10 / 36)) / 4
    between = 4 * (1 / 6) ** 2 / 3
    found_value = value(by_hand, "error_count_variance_if_independent", line="overall")
    assert found_value == pytest.approx(within + between)


def test_the_variance_at_each_line_s_rates_by_hand(by_hand):
    # e1 none. e2: absent r0 r1 both accepted: rate 1; present r2 r3, r3 rejected: 1/2. e3: absent
    # r0 r2, r0 accepted: 1/2; present none rejected. Expected 3/2, 1, 1/2 + 1/2, 1/2.
    within = (1 / 4 + 0 + (1 / 4 + 1 / 4) + 1 / 4) / 4
    between = np.var([3 / 2, 1, 1, 1 / 2], ddof=1)
    found_value = value(by_hand, "error_count_variance_if_independent", line="by_line")
    assert found_value == pytest.approx(within + between)


def test_the_correlation_of_errors_is_the_mean_over_positions_that_vary(by_hand):
    # e1 has no errors; e2 1 1 0 1 beside e3 1 0 0 0.
    expected = np.corrcoef([1, 1, 0, 1], [1, 0, 0, 0])[0, 1]
    assert value(by_hand, "error_phi") == pytest.approx(expected)


def test_the_correlation_of_errors_beside_numpy():
    gold, judge = simulated()
    errors = (gold != judge).astype(float)
    matrix = np.corrcoef(errors.T)
    expected = matrix[np.triu_indices(len(matrix), 1)].mean()
    assert value(found(verdicts({"gold": gold, "judge": judge})), "error_phi") == pytest.approx(
        expected
    )


# --- the paper’s bank ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    if not FILE.is_file():
        pytest.skip("the shared figures of the paper do not stand beside this repository")
    checked: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["three_ways"][
        "independence_check"
    ]
    return checked


@pytest.fixture(scope="module")
def real() -> Estimates:
    return found(real_bank(), interval="bootstrap")


def test_the_paper_s_error_counts(published, real):
    observed = one(real, "error_count_variance")
    assert round(observed.number or 0, 2) == published["observed_error_count_variance"]
    assert (observed.n, observed.clusters) == (180, 13)
    for line, printed in (("overall", "overall_rates"), ("by_line", "line_rates")):
        found_value = value(real, "error_count_variance_if_independent", line=line)
        assert round(found_value, 2) == published[printed]["error_count_variance"]
    assert round(value(real, "error_phi"), 3) == published["error_phi"]


@pytest.mark.parametrize(
    ("line", "printed"), [("overall", "overall_rates"), ("by_line", "line_rates")]
)
def test_the_paper_s_independence_check(published, real, line, printed):
    # Both sides are 2,000 draws; the printed figures are rounded to three places.
    expected = published[printed]
    sd = expected["sd"]
    mean = value(real, "independent_error_kr20_mean", line=line)
    assert mean == pytest.approx(expected["mean"], abs=4 * sd / math.sqrt(DRAWS) + 0.0005)
    spread = value(real, "independent_error_kr20_sd", line=line)
    assert spread == pytest.approx(sd, abs=4 * sd / math.sqrt(2 * DRAWS) + 0.0005)
    if line == "overall":
        share = expected["share_of_draws_at_or_above_observed_pct"] / 100
        error = math.sqrt(share * (1 - share) / DRAWS)
        assert value(real, "independent_error_kr20_share_at_or_above", line=line) == pytest.approx(
            share, abs=4 * error + 0.0005
        )


def test_the_observed_kr20_is_the_paper_s(real):
    gold, judge = (np.asarray(m) for m in _real_scored())
    same = independent_error_kr20(judge, np.zeros_like(judge), draws=1)
    assert same[0] == pytest.approx(0.5223, abs=5e-5)
    assert independent_error_kr20(gold, np.zeros_like(gold), draws=1)[0] == pytest.approx(
        0.5231, abs=5e-5
    )


def _real_scored() -> tuple[np.ndarray, np.ndarray]:
    scene, _ = scenes(real_bank())
    assert scene.bank is not None
    rows = scene.bank.complete.all(axis=1)
    return (
        scene.bank.of("gold")[rows].astype(float),
        scene.bank.of("judge")[rows].astype(float),
    )


# --- independent errors -------------------------------------------------------------------------


def simulated(n: int = 120, k: int = 5, seed: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    gold = (rng.random((n, k)) < rng.uniform(0.1, 0.9, (n, 1))).astype(float)
    judge = np.where(rng.random((n, k)) < 0.15, 1 - gold, gold)
    return gold, judge


def kr20_by_definition(x: np.ndarray) -> float:
    k = x.shape[1]
    p = x.mean(axis=0)
    return float(k / (k - 1) * (1 - (p * (1 - p)).sum() / x.sum(axis=1).var(ddof=1)))


def test_draws_are_kr20_of_gold_with_errors():
    gold, _ = simulated()
    chances = np.where(gold == 1, 0.05, 0.2)
    drawn = independent_error_kr20(gold, chances, draws=4000, seed=1)
    rng = np.random.default_rng(99)
    own = np.array(
        [
            kr20_by_definition(np.where(rng.random(gold.shape) < chances, 1 - gold, gold))
            for _ in range(4000)
        ]
    )
    error = math.sqrt((drawn.var() + own.var()) / 4000)
    assert abs(drawn.mean() - own.mean()) < 4 * error
    assert drawn.std() == pytest.approx(own.std(), rel=4 / math.sqrt(4000))


@pytest.mark.parametrize("rates", [(0.02, 0.1), (0.3, 0.3), (0.0, 0.05)])
def test_draws_from_moments_agree_with_draws_of_every_verdict(rates):
    gold, _ = simulated(n=1500, k=10)
    chances = np.where(gold == 1, *rates)
    draws = 3000
    each = independent_error_kr20(gold, chances, draws=draws, seed=1, flips=10**9)
    moments = independent_error_kr20(gold, chances, draws=draws, seed=2, flips=0)
    error = math.sqrt((each.var() + moments.var()) / draws)
    assert abs(each.mean() - moments.mean()) < 4 * error
    assert moments.std() == pytest.approx(each.std(), rel=4 / math.sqrt(draws))
    for tail in (0.05, 0.95):
        cut = np.quantile(each, tail)
        share = (moments <= cut).mean()
        assert abs(share - tail) < 4 * math.sqrt(2 * tail * (1 - tail) / draws)


def test_moments_are_those_of_all_outcomes():
    """Two responses of three verdicts each: mean and covariance over the 8 outcomes of each."""
    met = np.array([[0.1, 0.6, 0.9], [0.3, 0.5, 0.8]])
    outcomes = np.array(list(itertools.product((0, 1), repeat=3)))
    mean, covariance = np.zeros(4), np.zeros((4, 4))
    for p in met:
        weight = np.where(outcomes == 1, p, 1 - p).prod(axis=1)
        sums = np.column_stack([outcomes, outcomes.sum(axis=1) ** 2])
        at = weight @ sums
        mean += at
        covariance += (sums - at).T @ ((sums - at) * weight[:, None])
    draws = 400_000
    columns, squares = error_structure._drawn_from_moments(
        met, None, None, draws, np.random.Generator(np.random.PCG64(0))
    )
    drawn = np.column_stack([columns, squares])
    sd = np.sqrt(np.diag(covariance))
    assert np.abs((drawn.mean(axis=0) - mean) / sd).max() < 5 / math.sqrt(draws)
    found_covariance = np.cov(drawn.T)
    # The standard error of a covariance of normals is at most √2 σ σ' / √draws.
    bound = 5 * math.sqrt(2 / draws) * np.outer(sd, sd)
    assert (np.abs(found_covariance - covariance) < bound).all()


def test_the_variance_if_independent_is_what_independent_errors_have():
    gold, judge = simulated(n=300)
    made = found(verdicts({"gold": gold, "judge": judge}))
    accept, reject = (judge[gold == 0] == 1).mean(), (judge[gold == 1] == 0).mean()
    chances = np.where(gold == 1, reject, accept)
    rng = np.random.default_rng(4)
    counts = [(rng.random(gold.shape) < chances).sum(axis=1).var(ddof=1) for _ in range(2000)]
    assert value(made, "error_count_variance_if_independent", line="overall") == pytest.approx(
        np.mean(counts), abs=4 * np.std(counts) / math.sqrt(2000)
    )


def test_a_judge_without_errors_leaves_kr20_where_gold_has_it():
    gold, _ = simulated()
    made = found(verdicts({"gold": gold, "judge": gold}))
    for line in ("overall", "by_line"):
        mean = value(made, "independent_error_kr20_mean", line=line)
        assert mean == pytest.approx(kr20_by_definition(gold))
        assert value(made, "independent_error_kr20_sd", line=line) == pytest.approx(0, abs=1e-12)
        assert value(made, "independent_error_kr20_share_at_or_above", line=line) == 1
        assert value(made, "error_count_variance_if_independent", line=line) == 0
    assert value(made, "error_count_variance") == 0
    phi = one(made, "error_phi")
    assert phi.number is None
    assert "two positions" in phi.reason


def test_errors_on_whole_responses_show_as_variance_and_correlation():
    gold, _ = simulated(n=200)
    judge = np.where(np.arange(200)[:, None] % 10 == 0, 1 - gold, gold)
    made = found(verdicts({"gold": gold, "judge": judge}))
    observed = one(made, "error_count_variance")
    assert observed.interval is not None
    assert observed.interval.low > value(
        made, "error_count_variance_if_independent", line="overall"
    )
    assert value(made, "error_phi") == pytest.approx(1)


# --- what cannot be said ------------------------------------------------------------------------


def test_checklists_of_different_lengths_have_no_kr20_and_say_why():
    gold = [[1, 0, NAN], [1, 1, NAN], [0, 0, 1], [1, 0, 0]]
    judge = [[1, 1, NAN], [1, 0, NAN], [0, 0, 1], [1, 0, 1]]
    made = found(
        verdicts(
            {"gold": gold, "judge": judge}, questions=["p", "p", "q", "q"], lengths={"p": 2, "q": 3}
        )
    )
    for name, line in (("independent_error_kr20_mean", "overall"), ("error_phi", "")):
        estimate = one(made, name, line=line)
        assert estimate.number is None
        assert "checklists of 2 to 3 lines" in estimate.reason
    assert value(made, "error_count_variance") == pytest.approx(np.var([1, 1, 0, 1], ddof=1))


@pytest.mark.parametrize(
    ("gold", "judge"),
    [
        ([[1], [0], [1]], [[1], [1], [1]]),  # one line
        ([[1, 0]], [[1, 1]]),  # one response
        ([[1, 0], [0, 1]], [[NAN, NAN], [NAN, NAN]]),  # nothing read
        ([[1, 1], [1, 1], [1, 1]], [[1, 1], [1, 1], [1, 1]]),  # a constant bank
    ],
)
def test_degenerate_banks_have_no_kr20_and_say_why(gold, judge):
    made = found(verdicts({"gold": gold, "judge": judge}))
    for name in ("mean", "sd", "share_at_or_above"):
        for line in ("overall", "by_line"):
            estimate = one(made, f"independent_error_kr20_{name}", line=line)
            assert estimate.number is None
            assert "lines or responses" in estimate.reason
    if len(gold) == 1 or np.isnan(judge).all():
        assert "fewer than two responses" in one(made, "error_count_variance").reason
        for line in ("overall", "by_line"):
            alone = one(made, "error_count_variance_if_independent", line=line)
            assert "fewer than two responses" in alone.reason


def test_without_gold_there_are_no_rows():
    gold, judge = simulated()
    assert found(verdicts({"a": gold, "b": judge})).all == ()


def test_very_many_pairs_of_positions_have_a_value_and_no_interval(monkeypatch):
    gold, judge = simulated()
    labels = verdicts({"gold": gold, "judge": judge})
    plain = one(found(labels), "error_phi")
    monkeypatch.setattr(error_structure, "MOST_CELLS", 0)
    alone = one(found(labels), "error_phi")
    assert alone.value == pytest.approx(plain.number)
    assert (alone.n, alone.clusters) == (plain.n, plain.clusters)
    assert plain.interval is not None
    assert alone.interval is None
    assert "too many pairs" in alone.no_interval


# --- laws ---------------------------------------------------------------------------------------


def values(made: Estimates) -> dict[Any, Any]:
    return {
        (e.statistic, *e.key): (
            e.value,
            e.n,
            e.clusters,
            (e.interval.low, e.interval.high) if e.interval else e.no_interval,
        )
        for e in made.all
    }


@pytest.mark.parametrize("flips", [1 << 25, 0])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_order_of_responses_does_not_show(flips, weighted, monkeypatch):
    monkeypatch.setattr(error_structure, "FLIPS", flips)
    gold, judge = simulated()
    questions = [f"q{i % 6}" for i in range(len(gold))]
    weights = np.random.default_rng(1).uniform(0.5, 2, len(gold))
    mixed = np.random.default_rng(0).permutation(len(gold))
    plain, turned = (
        values(
            found(
                verdicts(
                    {"gold": gold[order], "judge": judge[order]},
                    clusters=[questions[i] for i in order],
                    weights=weights[order].tolist() if weighted else None,
                )
            )
        )
        for order in (np.arange(len(gold)), mixed)
    )
    assert set(plain) == set(turned)
    for key, (number, n, clusters, ends) in plain.items():
        if weighted:  # the mean weight is a sum in the order of the rows
            assert turned[key][0] == pytest.approx(number, rel=1e-9), key
        else:
            assert turned[key] == (number, n, clusters, ends), key


@pytest.mark.parametrize("flips", [1 << 25, 0])
@pytest.mark.parametrize("clustered", [True, False])
def test_a_frequency_weight_of_two_is_the_row_twice(flips, clustered, monkeypatch):
    monkeypatch.setattr(error_structure, "FLIPS", flips)
    gold, judge = simulated()
    questions = [f"q{i % 6}" for i in range(len(gold))]
    times = [2 if i % 3 == 0 else 1 for i in range(len(gold))]
    twice = np.repeat(np.arange(len(gold)), times)
    weighed = values(
        found(
            verdicts(
                {"gold": gold, "judge": judge},
                clusters=questions if clustered else None,
                weights=times,
                weight_kind="frequency",
            )
        )
    )
    repeated = values(
        found(
            verdicts(
                {"gold": gold[twice], "judge": judge[twice]},
                clusters=[questions[i] for i in twice] if clustered else None,
            )
        )
    )
    for key, (number, n, clusters, _) in repeated.items():
        assert weighed[key][0] == pytest.approx(number, rel=1e-9), key
        assert weighed[key][1:3] == (n, clusters), key


def test_equal_design_weights_change_nothing():
    gold, judge = simulated()
    plain = values(found(verdicts({"gold": gold, "judge": judge})))
    weighed = values(found(verdicts({"gold": gold, "judge": judge}, weights=[2.0] * len(gold))))
    for key, (number, n, clusters, _) in plain.items():
        assert weighed[key][0] == pytest.approx(number, rel=1e-9), key
        assert weighed[key][1:3] == (n, clusters), key


def test_the_seed_moves_the_draws_and_nothing_else():
    gold, judge = simulated()
    a, b = (values(found(verdicts({"gold": gold, "judge": judge}, seed=s))) for s in (0, 1))
    moved = {key[0] for key in a if a[key] != b[key]}
    assert moved
    assert all(name.startswith("independent_error_kr20") for name in moved)


# --- the report ---------------------------------------------------------------------------------


def test_the_report_says_when_sums_are_drawn_and_not_verdicts(monkeypatch):
    gold, judge = simulated()
    labels = verdicts({"gold": gold, "judge": judge})
    scene, _ = scenes(labels)
    made = found(labels)
    assert FAMILY.blocks is not None

    def note() -> str:
        assert FAMILY.blocks is not None
        table = FAMILY.blocks(scene, made)[0]
        assert isinstance(table, Table)
        return str(table.note)

    assert "normal distribution" not in note()
    monkeypatch.setattr(error_structure, "FLIPS", 0)
    assert "normal distribution" in note()


def test_many_judges_share_one_budget_of_draws_and_the_report_says_so(monkeypatch):
    gold, judge = simulated()
    judges = {f"judge {i}": np.roll(judge, i, axis=0) for i in range(3)}
    labels = verdicts({"gold": gold, **judges})
    scene, _ = scenes(labels)
    assert FAMILY.blocks is not None
    one_by_one = found(labels)
    monkeypatch.setattr(error_structure, "ALL_FLIPS", 3 * gold.size * DRAWS * 2 - 1)
    by_moments = found(labels)
    table = FAMILY.blocks(scene, by_moments)[0]
    assert isinstance(table, Table)
    assert "normal distribution" in str(table.note)
    for name in judges:
        at = {"grader": name, "line": "overall"}
        each, moments = (
            e.get("independent_error_kr20_mean", **at) for e in (one_by_one, by_moments)
        )
        assert each is not None
        assert moments is not None
        assert each.number is not None
        assert each.number != moments.number
        sd = by_moments.get("independent_error_kr20_sd", **at)
        assert sd is not None
        assert sd.number is not None
        assert moments.number == pytest.approx(
            each.number, abs=6 * sd.number / math.sqrt(DRAWS) + 0.01
        )
    # One judge of the same size is within the budget.
    alone, _ = scenes(verdicts({"gold": gold, "judge": judge}))
    assert error_structure._flips(alone) == error_structure.FLIPS


def test_no_coefficient_is_called_the_judge_s():
    for statistic in FAMILY.statistics:
        estimand = statistic.estimand
        text = f"{estimand.title} {estimand.question} {estimand.reading}".casefold()
        assert "reliab" not in text
        if estimand.name.endswith(("_mean", "_sd")):
            assert estimand.describes == "bank"
