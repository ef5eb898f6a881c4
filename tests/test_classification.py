"""The beta-binomial fit and Livingston–Lewis: hand-worked values, laws, and the paper's bank."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import beta as beta_distribution
from scipy.stats import betabinom, binom

import voirdire as vd
from tests.checklists import SHARED, real_bank, real_matrices, verdicts
from voirdire.auditing import scenes
from voirdire.document import Paragraph, Table
from voirdire.errors import UndefinedWarning
from voirdire.estimate import Estimate
from voirdire.inference import Settings, estimates
from voirdire.labels import Labels
from voirdire.scene import Scene
from voirdire.stats import beta_binomial as core
from voirdire.stats import classification
from voirdire.stats.base import Estimates
from voirdire.wording import plain

CUTS = (4, 5, 6, 7)
PUBLISHED = SHARED / "reference" / "published.json"


def solved(labels: Labels, **settings: Any) -> tuple[Scene, Estimates]:
    whole, _ = scenes(labels)
    made = estimates(classification.FAMILY.parts(whole), Settings(**settings))
    return whole, Estimates(made)


def value(made: Estimates, statistic: str, grader: str, cut: int | str = "") -> float:
    found = made.get(statistic, grader=grader, cut=str(cut))
    assert found is not None
    assert found.number is not None, found.reason
    return found.number


def reason(made: Estimates, statistic: str, grader: str, cut: int | str = "") -> str:
    found = made.get(statistic, grader=grader, cut=str(cut))
    assert found is not None
    return found.reason


def drawn_bank(
    seed: int, n: int = 60, k: int = 6, error: float = 0.1, spread: float = 6.0
) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    share = rng.beta(0.6 * spread, 0.4 * spread, size=n)
    gold = (rng.random((n, k)) < share[:, None]).astype(np.float64)
    return {"gold": gold, "judge": np.where(rng.random((n, k)) < error, 1 - gold, gold)}


# --- the fit ------------------------------------------------------------------------------------


def test_two_lines_fit_their_three_counts_exactly() -> None:
    # K = 2 has two free shares and two parameters: P(2) = m² + ρ m (1 − m). With counts 3, 4, 3 the
    # mean is 1/2 and P(2) = 0.3, so ρ = (0.3 − 0.25) / 0.25 = 0.2 and α = β = (1 − ρ) / (2ρ) = 2.
    fit = vd.stats.beta_binomial_fit([0] * 3 + [1] * 4 + [2] * 3, 2)
    assert fit.alpha == pytest.approx(2, abs=1e-10)
    assert fit.beta == pytest.approx(2, abs=1e-10)
    assert fit.loglik == pytest.approx(6 * math.log(0.3) + 4 * math.log(0.4), abs=1e-10)
    assert fit.reliability == pytest.approx(2 / (2 + 2 + 2), abs=1e-10)
    alpha, beta, loglik = fit
    assert (alpha, beta, loglik) == (fit.alpha, fit.beta, fit.loglik)


def test_slopes_and_curvature_are_those_of_the_likelihood() -> None:
    rng = np.random.default_rng(4)
    counts = rng.integers(1, 20, size=(3, 8)).astype(np.float64)
    a, b, c = core.tails(counts)
    c = np.broadcast_to(c, a.shape)
    mean, rho, step = np.array([0.3, 0.5, 0.7]), np.array([0.05, 0.3, 0.8]), 1e-6

    def all_of(m: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, ...]:
        value, slope, curve = core._derivatives(a, b, c, m, r)
        return (value, *slope, *curve)

    _, g, h, mm, mr, rr = all_of(mean, rho)
    up_m, down_m = all_of(mean + step, rho), all_of(mean - step, rho)
    up_r, down_r = all_of(mean, rho + step), all_of(mean, rho - step)
    assert g == pytest.approx((up_m[0] - down_m[0]) / (2 * step), rel=1e-6)
    assert h == pytest.approx((up_r[0] - down_r[0]) / (2 * step), rel=1e-6)
    assert mm == pytest.approx((up_m[1] - down_m[1]) / (2 * step), rel=1e-5)
    assert mr == pytest.approx((up_m[2] - down_m[2]) / (2 * step), rel=1e-5)
    assert rr == pytest.approx((up_r[2] - down_r[2]) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_no_optimiser_finds_a_higher_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(2, 13)), int(rng.integers(8, 120))
    spread = float(np.exp(rng.uniform(-1, 4)))
    x = rng.binomial(k, rng.beta(spread, spread * rng.uniform(0.2, 2), size=n))
    assert len(set(x.tolist())) > 1, "this seed draws one total alone: choose another"
    assert not set(x.tolist()) <= {0, k}, "this seed draws only 0 and K: choose another"

    def minus(theta: np.ndarray) -> float:
        return float(-betabinom.logpmf(x, k, *np.exp(np.clip(theta, -12, 12))).sum())

    best = -min(
        minimize(minus, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).fun
        for start in ([0.0, 0.0], [3.0, 3.0], [6.0, 6.0])
    )
    fits = core.fitted(np.bincount(x, minlength=k + 1)[None])
    if fits.state[0] == core.BINOMIAL:
        limit = float(binom.logpmf(x, k, x.mean() / k).sum())
        assert best <= limit + 1e-6
    else:
        found = float(-minus(np.log([fits.alpha[0], fits.beta[0]])))
        assert found >= best - 1e-7


def test_many_fits_at_once_are_the_fits_one_by_one() -> None:
    rng = np.random.default_rng(8)
    counts = rng.multinomial(40, rng.dirichlet(np.ones(7)), size=(5, 11))
    together = core.fitted(counts)
    for place in np.ndindex(5, 11):
        alone = core.fitted(counts[place])
        for of in ("mean", "rho", "state"):
            assert getattr(together, of)[place] == pytest.approx(
                getattr(alone, of), rel=1e-10, nan_ok=True
            )


def test_a_weight_of_two_is_the_response_twice_and_lines_turned_round_swap_alpha_and_beta() -> None:
    x = [0, 1, 1, 3, 4, 4, 5, 2, 5]
    once, twice = vd.stats.beta_binomial_fit(x, 5), vd.stats.beta_binomial_fit(x * 2, 5)
    assert tuple(twice) == pytest.approx((once.alpha, once.beta, 2 * once.loglik), rel=1e-9)
    turned = vd.stats.beta_binomial_fit([5 - t for t in x], 5)
    assert (turned.alpha, turned.beta) == pytest.approx((once.beta, once.alpha), rel=1e-9)
    assert tuple(vd.stats.beta_binomial_fit(x[::-1], 5)) == pytest.approx(tuple(once), rel=1e-12)


def test_totals_that_spread_less_than_a_binomial_are_the_binomial_limit() -> None:
    with pytest.warns(UndefinedWarning, match="no more than a binomial"):
        fit = vd.stats.beta_binomial_fit([3, 3, 3, 2, 4], 6)
    assert fit.limit == "binomial"
    assert np.isnan([fit.alpha, fit.beta]).all()
    assert (fit.rho, fit.reliability) == (0, 0)
    assert fit.loglik == pytest.approx(binom.logpmf([3, 3, 3, 2, 4], 6, 0.5).sum(), abs=1e-12)
    # Everybody has the share 1/2: at a cut of 4 all should fail, and P(X < 4) = 42 / 64 do.
    found = vd.stats.livingston_lewis([3, 3, 3, 2, 4], 6, 4)
    assert found.model == "binomial"
    assert found.accuracy == pytest.approx(42 / 64, abs=1e-12)
    assert found.consistency == pytest.approx((42 / 64) ** 2 + (22 / 64) ** 2, abs=1e-12)
    # At a cut of 3 all should pass: the share stands on the cut, and passes.
    assert vd.stats.livingston_lewis([3, 3, 3, 2, 4], 6, 3).accuracy == pytest.approx(42 / 64)


@pytest.mark.parametrize(
    ("totals", "k", "why"),
    [
        ([6] * 5, 6, "no spread"),
        ([0] * 5, 6, "no spread"),
        ([0, 1, 1], 1, "one line"),
        ([], 3, "no totals"),
    ],
)
def test_what_cannot_be_fitted_is_nan_with_the_reason(totals: list[int], k: int, why: str) -> None:
    with pytest.warns(UndefinedWarning, match=why):
        fit = vd.stats.beta_binomial_fit(totals, k)
    assert all(math.isnan(v) for v in fit)
    with pytest.warns(UndefinedWarning):
        found = vd.stats.livingston_lewis(totals, k, 1)
    assert all(math.isnan(v) for v in found)


def test_all_or_nothing_totals_stand_at_the_other_limit() -> None:
    with pytest.warns(UndefinedWarning, match="all lines or none"):
        fit = vd.stats.beta_binomial_fit([0, 0, 4, 4, 4], 4)
    assert (fit.limit, fit.rho, fit.reliability) == ("two points", 1, 1)
    assert fit.loglik == pytest.approx(2 * math.log(0.4) + 3 * math.log(0.6), abs=1e-12)
    assert tuple(vd.stats.livingston_lewis([0, 0, 4, 4, 4], 4, 2)) == (1, 1)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: vd.stats.beta_binomial_fit([1, 7], 6), "a total of 7"),
        (lambda: vd.stats.beta_binomial_fit([1.5], 6), "a total of 1.5"),
        (lambda: vd.stats.beta_binomial_fit([1], 0), "at least 1"),
        (lambda: vd.stats.beta_binomial_gof([1, 2], [3, 4]), "one number of lines"),
        (lambda: vd.stats.beta_moment_fit([1, 2], 3, model="3p"), "3p"),
        (lambda: vd.stats.livingston_lewis([1, 2], 3, 0), "a cut of 0"),
        (lambda: vd.stats.livingston_lewis([1, 2], 3, 4), "a cut of 4"),
        (lambda: vd.stats.livingston_lewis([1, 2], 3, 2, grid=400, reliability=0.5), "grid"),
        (lambda: vd.stats.livingston_lewis([1, 2], 3, 2, model="4p", fit="likelihood"), "fit"),
        (lambda: vd.stats.effective_test_length([1, 2], 3, 1.0), "below 1"),
    ],
)
def test_bad_input_is_refused(wrong: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        wrong()


def test_missing_totals_are_left_out() -> None:
    with_gap = vd.stats.beta_binomial_fit([0, 1, None, 3, 4, math.nan, 4], 4)
    assert tuple(with_gap) == tuple(vd.stats.beta_binomial_fit([0, 1, 3, 4, 4], 4))


# --- accuracy and consistency -------------------------------------------------------------------


def by_quadrature(alpha: float, beta: float, k: int, cut: int, true: float) -> tuple[float, float]:
    """The paper's integrals, with scipy's adaptive quadrature split at the cut."""
    density = beta_distribution(alpha, beta).pdf

    def passes(p: float) -> float:
        return float(binom.sf(cut - 1, k, p))

    below = quad(lambda p: density(p) * (1 - passes(p)), 0, true, epsabs=1e-13, limit=200)[0]
    above = quad(lambda p: density(p) * passes(p), true, 1, epsabs=1e-13, limit=200)[0]
    twice = quad(
        lambda p: density(p) * (passes(p) ** 2 + (1 - passes(p)) ** 2),
        0,
        1,
        epsabs=1e-13,
        limit=200,
    )[0]
    return below + above, twice


@pytest.mark.parametrize(
    ("alpha", "beta", "k"), [(5.452, 3.663, 10), (1.3, 2.0, 7), (40.0, 25.0, 30), (3.0, 1.1, 2)]
)
def test_the_closed_form_is_the_integral(alpha: float, beta: float, k: int) -> None:
    fits = core.Fits(
        mean=np.array([alpha / (alpha + beta)]),
        rho=np.array([1 / (alpha + beta + 1)]),
        state=np.array([core.INSIDE]),
    )
    cuts = sorted({1, k // 2 or 1, k - 1, k})
    made = classification.tables(fits, k, cuts)
    for j, cut in enumerate(cuts):
        accuracy, consistency = by_quadrature(alpha, beta, k, cut, cut / k)
        assert made.accuracy[0, j] == pytest.approx(accuracy, abs=1e-9)
        assert made.consistency[0, j] == pytest.approx(consistency, abs=1e-9)


def test_a_uniform_bank_of_two_lines_by_hand() -> None:
    # α = β = 1, K = 2, cut 1, so the true cut is 1/2. P(fail | p) = (1 − p)², and
    # ∫₀^½ (1 − p)² dp = (1 − 1/8) / 3 = 7/24; ∫_½^1 (1 − (1 − p)²) dp = 1/2 − (1/8)/3 = 11/24.
    # Accuracy 18/24. Consistency: ∫ (1 − p)⁴ + (1 − (1 − p)²)² dp = 1/5 + (1 − 2/3 + 1/5) = 11/15.
    found = vd.stats.livingston_lewis([0, 1, 2] * 4, 2, 1)
    assert (found.alpha, found.beta) == pytest.approx((1, 1), abs=1e-9)
    assert found.accuracy == pytest.approx(18 / 24, abs=1e-9)
    assert found.consistency == pytest.approx(11 / 15, abs=1e-9)


def test_moments_by_quadrature_agree_with_the_closed_form() -> None:
    x = [0, 1, 2, 2, 3, 3, 4, 4, 4, 5, 6, 6, 1, 5]
    fit = vd.stats.beta_moment_fit(x, 6)
    fits = core.Fits(
        mean=np.array([fit.alpha / (fit.alpha + fit.beta)]),
        rho=np.array([1 / (fit.alpha + fit.beta + 1)]),
        state=np.array([core.INSIDE]),
    )
    made = classification.tables(fits, 6, [2, 5])
    for j, cut in enumerate((2, 5)):
        found = vd.stats.livingston_lewis(x, 6, cut, fit="moments")
        assert found.accuracy == pytest.approx(made.accuracy[0, j], abs=1e-12)
        assert found.consistency == pytest.approx(made.consistency[0, j], abs=1e-12)
        assert found.joint.sum() == pytest.approx(1, abs=1e-12)
        assert np.trace(found.joint) == pytest.approx(found.accuracy, abs=1e-12)
        assert np.trace(found.both) == pytest.approx(found.consistency, abs=1e-12)


def test_a_four_parameter_fit_that_is_not_permissible_is_not_silent() -> None:
    x = [1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5]
    with pytest.warns(UndefinedWarning, match="four-parameter"):
        found = vd.stats.livingston_lewis(x, 5, 3, model="4p")
    assert found.model == "2p"
    assert tuple(found) == tuple(vd.stats.livingston_lewis(x, 5, 3, fit="moments"))


def test_near_the_binomial_limit_the_values_run_into_it() -> None:
    mean = np.array([0.43])
    limit = core.Fits(mean=mean, rho=np.zeros(1), state=np.array([core.BINOMIAL]))
    near = core.Fits(mean=mean, rho=np.array([1e-9]), state=np.array([core.INSIDE]))
    for of in ("accuracy", "consistency"):
        assert getattr(classification.tables(near, 8, [3, 5]), of) == pytest.approx(
            getattr(classification.tables(limit, 8, [3, 5]), of), abs=1e-6
        )


# --- the paper's bank ---------------------------------------------------------------------------


def published() -> Any:
    if not PUBLISHED.is_file():
        pytest.skip("the published figures do not stand beside this checkout")
    return json.loads(PUBLISHED.read_text(encoding="utf-8"))["three_ways"]


def test_the_real_bank_prints_what_the_paper_prints() -> None:
    figures = published()
    gate, fit = figures["gate"], figures["beta_binomial_judge"]
    _, made = solved(real_bank(cut=CUTS, livingston_lewis_grid=400))
    for name, digits in (("alpha", 3), ("beta", 3), ("chi2", 2), ("df", 0), ("p", 3)):
        assert round(value(made, f"beta_binomial_{name}", "judge"), digits) == fit[name]
    reliability = value(made, "beta_binomial_reliability", "judge")
    assert round(reliability, 3) == fit["implied_reliability"]
    for i, cut in enumerate(CUTS):
        for name, grader in (
            ("accuracy", "judge"),
            ("accuracy", "gold"),
            ("consistency", "judge"),
        ):
            found = value(made, f"livingston_lewis_{name}", grader, cut)
            assert round(found, 3) == gate[f"livingston_lewis_{name}_{grader}"][i]
        terms = [
            value(made, f"decomposition_{t}", "judge", cut)
            for t in ("bank_shortfall", "gate_error", "difference")
        ]
        assert sum(terms) == pytest.approx(gate["accuracy_minus_livingston_lewis"][i], abs=6e-4)
        assert round(terms[0], 3) == gate["one_minus_livingston_lewis_gold"][i]
        assert 1 + terms[1] == pytest.approx(gate["accuracy"][i], abs=5.1e-4)


def test_the_grid_is_within_a_thousandth_of_the_exact_value() -> None:
    _, judge, _ = real_matrices()
    totals = judge.sum(1)  # nan where unparsed
    for cut in CUTS:
        exact = vd.stats.livingston_lewis(totals, 10, cut)
        printed = vd.stats.livingston_lewis(totals, 10, cut, grid=400)
        finer = vd.stats.livingston_lewis(totals, 10, cut, grid=100_000)
        assert printed.accuracy != exact.accuracy
        for a, b, c in zip(exact, printed, finer, strict=True):
            assert b == pytest.approx(a, abs=1e-3)
            assert c == pytest.approx(a, abs=2e-5)


# --- the family ---------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [0, 50])
@pytest.mark.parametrize("seed", range(4))
def test_the_three_terms_add_up(seed: int, grid: int) -> None:
    bank = drawn_bank(seed, k=5 + seed)
    cuts = tuple(range(1, 6 + seed))
    _, made = solved(verdicts(bank, cut=cuts, livingston_lewis_grid=grid))
    passes = {g: m.sum(1)[:, None] >= np.array(cuts) for g, m in bank.items()}
    right = (passes["gold"] == passes["judge"]).mean(0)
    for j, cut in enumerate(cuts):
        terms = [
            value(made, f"decomposition_{t}", "judge", cut)
            for t in ("bank_shortfall", "gate_error", "difference")
        ]
        level = value(made, "livingston_lewis_accuracy", "judge", cut)
        assert math.fsum(terms) == pytest.approx(right[j] - level, abs=1e-12)


def test_the_family_gives_what_the_plain_functions_give() -> None:
    bank = drawn_bank(3)
    _, made = solved(verdicts(bank, cut=(2, 4)))
    for grader, matrix in bank.items():
        totals = matrix.sum(1)
        fit, gof = vd.stats.beta_binomial_fit(totals, 6), vd.stats.beta_binomial_gof(totals, 6)
        for name, wanted in (
            ("alpha", fit.alpha),
            ("beta", fit.beta),
            ("chi2", gof.chi2),
            ("df", gof.df),
            ("p", gof.p),
            ("reliability", fit.reliability),
        ):
            assert value(made, f"beta_binomial_{name}", grader) == pytest.approx(wanted, rel=1e-9)
        for cut in (2, 4):
            found = vd.stats.livingston_lewis(totals, 6, cut)
            for name in ("accuracy", "consistency"):
                assert value(made, f"livingston_lewis_{name}", grader, cut) == pytest.approx(
                    getattr(found, name), abs=1e-12
                )


def test_an_error_free_judge_differs_from_gold_by_nothing() -> None:
    gold = drawn_bank(5)["gold"]
    _, made = solved(verdicts({"gold": gold, "judge": gold}, cut=(3,)))
    for name in ("accuracy", "consistency"):
        assert value(made, f"livingston_lewis_{name}_minus_gold", "judge", 3) == 0
    assert value(made, "decomposition_gate_error", "judge", 3) == 0
    assert math.copysign(1, value(made, "decomposition_gate_error", "judge", 3)) == 1
    assert value(made, "livingston_lewis_accuracy", "judge", 3) < 1


@pytest.mark.parametrize("interval", ["auto", "bootstrap"])
def test_row_order_and_frequency_weights_change_nothing(interval: str) -> None:
    bank, few = drawn_bank(6, n=24), {"interval": interval, "replicates": 100}
    clusters = [f"c{i % 8}" for i in range(24)]
    _, made = solved(verdicts(bank, clusters=clusters, cut=(3,)), **few)
    order = np.random.default_rng(0).permutation(24)
    _, turned = solved(
        verdicts(
            {g: m[order] for g, m in bank.items()},
            clusters=[clusters[i] for i in order],
            cut=(3,),
        ),
        **few,
    )
    ones = [1.0] * 24
    _, weighted = solved(
        verdicts(bank, clusters=clusters, cut=(3,), weights=ones, weight_kind="frequency"), **few
    )
    _, twice = solved(
        verdicts(bank, clusters=clusters, cut=(3,), weights=[2.0] * 24, weight_kind="frequency"),
        **few,
    )
    for one, other, third, fourth in zip(
        made.all, turned.all, weighted.all, twice.all, strict=True
    ):
        assert (one.number, one.interval) == (other.number, other.interval)
        assert (one.number, one.interval) == (third.number, third.interval)
        if one.statistic not in ("beta_binomial_chi2", "beta_binomial_df", "beta_binomial_p"):
            assert fourth.number == pytest.approx(one.number, rel=1e-9)


def test_the_tallies_of_two_halves_add_up() -> None:
    bank, clusters = drawn_bank(7, n=30), [f"c{i // 5}" for i in range(30)]

    def tally(rows: slice) -> Any:
        whole, _ = scenes(
            verdicts({g: m[rows] for g, m in bank.items()}, clusters=clusters[rows], cut=(2, 3))
        )
        (part,) = classification.FAMILY.parts(whole)
        assert part.tally is not None
        return part.tally.total

    assert (tally(slice(0, 15)) + tally(slice(15, 30)) == tally(slice(0, 30))).all()


def undefined_bank(case: str) -> Labels:
    bank = drawn_bank(9, n=20, k=4)
    if case == "one line":
        return verdicts({g: m[:, :1] for g, m in bank.items()}, cut=(1,))
    if case == "weights":
        return verdicts(bank, cut=(2,), weights=list(np.linspace(0.5, 2, 20)))
    if case == "lengths":
        questions = ["a", "b"] * 10
        return verdicts(bank, cut=(2,), questions=questions, lengths={"a": 4, "b": 3})
    return verdicts({g: np.tile([1.0, 0, 1, 0], (20, 1)) for g in bank}, cut=(2,))


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("one line", "one line"),
        ("weights", "design weights"),
        ("lengths", "3 to 4 lines"),
        ("constant", "the same total"),
    ],
)
def test_what_cannot_be_said_says_why(case: str, why: str) -> None:
    scene, made = solved(undefined_bank(case))
    cut = 1 if case == "one line" else 2
    assert why in reason(made, "beta_binomial_alpha", "judge")
    assert why in reason(made, "beta_binomial_reliability", "gold")
    assert why in reason(made, "livingston_lewis_accuracy", "judge", cut)
    assert reason(made, "livingston_lewis_accuracy_minus_gold", "judge", cut)
    (block,) = classification.FAMILY.blocks(scene, made)  # type: ignore[misc]
    assert isinstance(block, Paragraph)
    assert why in plain(block.text)


def test_the_binomial_limit_counts_and_is_told() -> None:
    rows = [[1, 1, 1, 0, 0, 0]] * 14 + [[1, 1, 0, 0, 0, 0]] * 3 + [[1, 1, 1, 1, 0, 0]] * 3
    bank = {"gold": np.array(rows, float), "judge": np.array(rows[::-1], float)}
    scene, made = solved(verdicts(bank, cut=(3,)), interval="bootstrap", replicates=200)
    assert "no more than a binomial" in reason(made, "beta_binomial_alpha", "judge")
    assert value(made, "beta_binomial_reliability", "judge") == 0
    assert value(made, "livingston_lewis_accuracy", "judge", 3) == pytest.approx(42 / 64)
    found = made.get("livingston_lewis_accuracy", grader="judge", cut="3")
    assert isinstance(found, Estimate)
    assert found.interval is not None, found.no_interval
    assert classification.FAMILY.blocks is not None
    told = classification.FAMILY.blocks(scene, made)[-1]
    assert isinstance(told, Paragraph)
    assert "of 200 resampled banks" in plain(told.text)


def test_banks_with_one_cluster_left_out_are_counted_and_not_their_kinds() -> None:
    # Eight questions, of which seven are alike: two kinds of banks, and eight banks. Without the last
    # all totals are 2 and there is no fit; the other seven banks spread less than a binomial.
    x = np.zeros((16, 4))
    x[:, :2] = 1
    x[15] = 1
    questions = [f"q{i // 2}" for i in range(16)]
    scene, made = solved(verdicts({"judge": x}, questions=questions, cut=[2]))
    (told,) = [b for b in classification.blocks(scene, made) if isinstance(b, Paragraph)]
    assert "judge: in 7 of 8 banks with one cluster left out" in plain(told.text)


def test_without_cuts_there_is_the_fit_alone_and_without_gold_no_difference() -> None:
    bank = drawn_bank(2)
    _, made = solved(verdicts(bank))
    assert {e.statistic for e in made.all} == {s.name for s in classification.FIT}
    scene, made = solved(verdicts({"judge": bank["judge"]}, cut=(3,)))
    assert value(made, "livingston_lewis_accuracy", "judge", 3) > 0.5
    assert not [e for e in made.all if "gold" in e.statistic or "decomposition" in e.statistic]
    assert classification.FAMILY.blocks is not None
    assert any(
        "no gold" in b.title
        for b in classification.FAMILY.blocks(scene, made)
        if isinstance(b, Table)
    )


def test_livingston_lewis_stands_beside_gate_accuracy_in_the_decomposition_alone() -> None:
    scene, made = solved(verdicts(drawn_bank(2), cut=(3, 4)))
    assert classification.FAMILY.blocks is not None
    tables = [b for b in classification.FAMILY.blocks(scene, made) if isinstance(b, Table)]
    assert len(tables) == 3
    both = [
        t.title
        for t in tables
        if any("gate accuracy" in str(c.title) for c in t.columns)
        and any("LL accuracy" in str(c.title) for c in t.columns)
    ]
    assert both == ["Why gate accuracy and Livingston–Lewis accuracy differ"]
    assert "not comparable" in plain(tables[-1].note)


def test_no_coefficient_of_the_bank_is_called_the_judges() -> None:
    for statistic in classification.FAMILY.statistics:
        both = statistic.name.endswith(("_minus_gold", "_difference", "_gate_error"))
        wanted = "both" if both else "bank"
        assert str(statistic.estimand.describes) == wanted
        said = f"{statistic.estimand.title} {statistic.estimand.reading}".lower()
        assert "accuracy of the judge" not in said
        assert "reliability of the judge" not in said
