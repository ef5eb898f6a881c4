"""The phrasing study: hand-worked values, known truth, bad input, and what the report says of it."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from tests.test_figures import NASTY, SVG, parsed, words
from voirdire import selections
from voirdire.auditing import Audit
from voirdire.document import Figure, Table
from voirdire.errors import UsageError
from voirdire.figures.phrasing_components import DRAWING
from voirdire.finding import State
from voirdire.options import Options
from voirdire.stats import phrasing, random_effects
from voirdire.stats.random_effects import (
    analysis_of_variance,
    chi_square_interval,
    dependability_interval,
    modified_large_sample,
    reml_components,
    restricted_likelihood,
)
from voirdire.wording import plain

SHARED = Path(__file__).resolve().parents[2] / "shared"
# Six responses under three phrasings: FC-26 of the field cases.
SIX = [[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]]


def table(scores: Any, *, grader: str = "judge", gold: Any = None) -> pl.DataFrame:
    """One row a call: responses × phrasings (× votes) of texts or numbers; ``None`` is no row."""
    rows: list[tuple[str, str, str | None, str, str]] = []
    for i, row in enumerate(scores):
        for j, cell in enumerate(row):
            for v, label in enumerate(cell if isinstance(cell, list | tuple) else [cell]):
                if label is not None:
                    rows.append((f"r{i + 1}", grader, f"p{j + 1}", str(v + 1), str(label)))
        if gold is not None:
            rows.append((f"r{i + 1}", "gold", None, "1", str(gold[i])))
    return pl.DataFrame(
        rows, schema=["response", "grader", "phrasing", "vote", "label"], orient="row"
    )


def audit(frame: pl.DataFrame, **options: Any) -> Audit:
    named = {"layout": "long", "phrasing": "phrasing", "vote": "vote"}
    return vd.audit(vd.read(frame, **{**named, **options}))


def row(found: Audit, statistic: str, **key: Any) -> dict[str, Any]:
    rows = found.results.filter(pl.col("statistic") == statistic)
    for column, value in key.items():
        rows = rows.filter(pl.col(column) == value)
    assert len(rows) == 1, (statistic, len(rows))
    return rows.row(0, named=True)


def value(found: Audit, statistic: str, **key: Any) -> float:
    held = row(found, statistic, **key)["value"]
    assert held is not None
    return float(held)


def report(found: Audit, tmp_path: Path) -> str:
    """The section of the report, as one line of text."""
    found.write(tmp_path / "audit.txt")
    text = (tmp_path / "audit.txt").read_text(encoding="utf-8")
    assert "DOES THE WORDING MATTER?" in text
    return " ".join(text.split("DOES THE WORDING MATTER?")[1].split("FOR THE PAPER")[0].split())


# --- hand-worked -------------------------------------------------------------------------------------


def test_six_responses_by_hand() -> None:
    # Row means 2/3, 2/3, 2/3, 1, 0, 0 about 1/2: SS 3 · (3/36 + 1/4 + 1/2) = 5/2, MS 1/2. Every phrasing
    # says yes three times: SS 0. All: SS 18/4 = 9/2, so the rest is 2, MS 2/10.
    found = audit(table(SIX))
    assert value(found, "component_response_raw") == pytest.approx((1 / 2 - 1 / 5) / 3)
    assert value(found, "component_phrasing_raw") == pytest.approx((0 - 1 / 5) / 6)
    assert value(found, "component_residual_raw") == pytest.approx(1 / 5)
    assert value(found, "component_phrasing") == 0
    # 0.1 / (0.1 + 0.2 / 3) = 0.6, not 0.64 with the negative component.
    assert value(found, "dependability_mean") == pytest.approx(0.6)
    assert value(found, "dependability_single") == pytest.approx(1 / 3)
    assert value(found, "dependability_fixed") == pytest.approx(0.6)
    assert value(found, "flip_rate") == 3 / 6


def test_the_field_case_is_these_six() -> None:
    file = SHARED / "cases" / "inputs" / "phrasings.csv"
    if not file.is_file():
        pytest.skip("the shared cases are not beside this checkout")
    wide = pl.read_csv(file)
    assert wide.drop("id").rows() == [tuple(r) for r in SIX]


def test_no_root_of_a_negative_component_reaches_the_report(tmp_path: Path) -> None:
    text = report(audit(table(SIX)), tmp_path)
    assert "-0.033" in text
    assert "0 is used" in text
    assert "nan" not in text


def test_flips_are_listed_by_name_the_first_twenty(tmp_path: Path) -> None:
    assert "judge, class: 3 responses flip: r1, r2 and r3." in report(audit(table(SIX)), tmp_path)
    many = report(audit(table([["a", "b"]] * 30)), tmp_path)
    assert "30 responses flip: r1, r10, " in many
    assert many.count(" and 10 more.") == 1


def test_votes_are_taken_out_of_the_cells() -> None:
    # Cell means 1, 2 / 3, 3 / 5, 7 with calls ±1 about them: within, each cell has SS 2 on one degree.
    found = audit(table([[(0, 2), (1, 3)], [(2, 4), (2, 4)], [(4, 6), (6, 8)]]))
    assert value(found, "component_vote") == pytest.approx(2)
    means = analysis_of_variance([[1, 2], [3, 3], [5, 7]])
    both = means.raw["pi"] - 2 / 2
    assert value(found, "component_response_phrasing_raw") == pytest.approx(both)
    assert value(found, "component_response_phrasing") == max(both, 0)
    assert value(found, "component_response") == pytest.approx(means.raw["p"])
    assert value(found, "component_phrasing") == pytest.approx(means.raw["i"])
    assert not len(found.results.filter(pl.col("statistic") == "component_residual"))
    used = means.raw["p"]
    error = means.raw["i"] + 2 / 2
    assert value(found, "dependability_single") == pytest.approx(used / (used + error))
    assert value(found, "dependability_mean") == pytest.approx(used / (used + error / 2))
    assert value(found, "dependability_fixed") == pytest.approx(used / (used + 2 / 4))


def test_an_interaction_counts_for_fixed_phrasings_once_noise_is_told_apart() -> None:
    rng = np.random.default_rng(4)
    x = np.round(
        rng.normal(0, 20, (30, 1, 1)) + rng.normal(0, 10, (30, 3, 1)) + rng.normal(0, 3, (30, 3, 2))
    )
    found = audit(table(x.astype(int).tolist()))
    raw = analysis_of_variance(np.round(x), "v:(p x r)").used
    universe = raw["p"] + raw["pr"] / 3
    expected = universe / (universe + raw["v:pr"] / 6)
    assert value(found, "dependability_fixed") == pytest.approx(expected)
    for name, own in (
        ("response", "p"),
        ("phrasing", "r"),
        ("response_phrasing", "pr"),
        ("vote", "v:pr"),
    ):
        assert value(found, f"component_{name}") == pytest.approx(raw[own], abs=1e-9)


def test_fractions_are_scores_without_loss() -> None:
    x = np.array([[0.1, 0.25], [0.5, 0.75], [0.9, 1.0], [0.3, 0.2]])
    found, expected = audit(table(x.tolist())), analysis_of_variance(x).raw
    for name, own in (("response", "p"), ("phrasing", "i"), ("residual", "pi")):
        assert value(found, f"component_{name}_raw") == pytest.approx(expected[own], abs=1e-15)


def test_two_classes_are_scores_in_either_order_and_three_are_not(tmp_path: Path) -> None:
    two = [["no" if x == 0 else "yes" for x in r] for r in SIX]
    for scale in ("no,yes", "yes,no", None):
        found = audit(table(two), **({"scale": scale} if scale else {}))
        assert value(found, "component_response") == pytest.approx(0.1)
        assert value(found, "component_phrasing_raw") == pytest.approx(-1 / 30)
        assert "As scores yes is 0 and no is 1." in report(found, tmp_path) or scale != "yes,no"
    found = audit(table([*two, ["maybe", "no", "yes"]]), scale="no,maybe,yes")
    assert not len(found.results.filter(pl.col("statistic").str.starts_with("component_")))
    assert row(found, "flip_rate", **{"class": ""})["value"] >= 0.5
    assert "Variance components need scores" in report(found, tmp_path)


def test_scores_that_are_no_numbers_are_named_with_the_next_step(tmp_path: Path) -> None:
    scores = [[7, 8, 6], [3, "n/a", 4], [9, 9, 8], [1, 2, 2]]
    text = report(audit(table(scores)), tmp_path)
    assert "1 of the 9 labels that occur is no number: n/a." in text
    assert "--failed n/a=unparsed" in text
    mended = audit(table(scores), failed={"n/a": "unparsed"})
    assert value(mended, "component_response") > 0


def test_rates_of_three_classes_flip_less_than_the_class() -> None:
    found = audit(table([["a", "b"], ["b", "c"], ["c", "c"], ["a", "a"]]), scale="a,b,c")
    flips = found.results.filter(pl.col("statistic") == "flip_rate")
    assert dict(flips.select("class", "value").rows()) == {"": 0.5, "c": 0.25, "non_a": 0.25}


def test_numbers_flip_at_a_cut() -> None:
    found = audit(table([[4, 6], [1, 2], [5, 7], [5, 4]]), cut=[5])
    assert value(found, "flip_rate", cut="") == 1
    assert value(found, "flip_rate", cut="5") == 0.5


KEYS = ["statistic", "grader", "other", "class", "to_class", "line", "cut", "slice"]
OF_STUDY = "^(component|dependability)_"


def drawn_scores(n: int = 24, *, votes: int = 1, seed: int = 1) -> list[list[Any]]:
    rng = np.random.default_rng(seed)
    y = 5 + 2 * rng.normal(size=(n, 1, 1)) + np.array([0.0, -1.0, 1.0])[:, None]
    y = np.round(y + rng.normal(size=(n, 3, votes)), 1)
    return [[tuple(c) if votes > 1 else c[0] for c in row] for row in y.tolist()]


@pytest.mark.parametrize("votes", [1, 3])
def test_decisions_at_a_cut_have_the_components_of_noughts_and_ones(votes: int) -> None:
    scores = drawn_scores(votes=votes)
    passed = np.asarray(scores).reshape(24, 3, votes) >= 4.5
    found = audit(table(scores), cut=["4.5", 6])
    # The same study of the decisions alone, as labels.
    alone = audit(table(np.where(passed, 1, 0).tolist()))
    at = found.results.filter(pl.col("statistic").str.contains(OF_STUDY), cut="4.5")
    one = alone.results.filter(pl.col("statistic").str.contains(OF_STUDY))
    assert at.drop("cut").equals(one.drop("cut"))
    assert at["statistic"].n_unique() == len(at) == (9 if votes == 1 else 11)
    used = at.filter(pl.col("statistic").is_in(["component_response", "component_phrasing"]))
    assert used["method"].to_list() == ["modified_large_sample"] * 2


def test_rows_at_cuts_stand_beside_rows_that_stay_as_they_are() -> None:
    frame = table(drawn_scores())
    without, beside = audit(frame).results, audit(frame, cut=[0.5, 5]).results
    assert beside.filter(cut="").equals(without)
    assert len(beside.select(KEYS).unique()) == len(beside)
    assert sorted(beside["cut"].unique()) == ["", "0.5", "5"]


def test_a_checklist_has_components_at_each_cut_with_unique_rows() -> None:
    found = bank(verdicts(), cut=[2, 3]).results
    assert len(found.select(KEYS).unique()) == len(found)
    rows = found.filter(pl.col("statistic").str.contains("^component_phrasing|dependability_"))
    assert {"2", "3"} < set(rows.drop_nulls("value")["cut"])
    study = pl.col("statistic").str.contains(OF_STUDY) & (pl.col("cut") == "")
    assert found.filter(study).equals(bank(verdicts()).results.filter(study))


def test_the_report_has_decisions_beside_scores(tmp_path: Path) -> None:
    found = audit(table(drawn_scores()), cut=["0.5", 5])
    text = report(found, tmp_path)
    # Three components and dependability, in a table that may come in two.
    assert text.count("judge score") in (4, 5)
    assert "judge pass at a cut of 5 Responses" in text
    assert "all decisions at this cut are the same: there is no variance to divide" in text
    assert " of component" not in report(audit(table(drawn_scores())), tmp_path)


def test_a_cut_beyond_all_scores_lets_nothing_pass() -> None:
    scores = [[0.1, 0.2], [0.3, 0.3], [0.2, 0.1]]
    found = audit(table(scores), cut=["0.3", 9, -2])
    assert value(found, "flip_rate", cut="9") == value(found, "flip_rate", cut="-2") == 0
    # 0.3 is 0.3: no rounding of floats decides.
    assert value(found, "flip_rate", cut="0.3") == 0
    assert value(found, "component_response", cut="0.3") > 0
    estimate = next(e for e in found.estimates if e.statistic == "flip_rate" and e.key.cut == "9")
    held = found.document.responses
    assert held is not None
    chosen = selections.selection(held, estimate.statistic, estimate.key)
    assert chosen is not None
    assert not selections.amounts(held, chosen.conditions).any()
    assert selections.amounts(held, chosen.within).all()


@pytest.mark.parametrize(
    ("given", "held"),
    [("5", "5"), ("5.0", "5"), (5.0, "5"), ("0.50", "0.5"), (-0.5, "-0.5"), ("-0", "0"), (1e300, "1e+300")],
)  # fmt: skip
def test_the_text_of_a_cut_is_the_shortest(given: Any, held: str) -> None:
    assert [str(c) for c in Options.of(cut=[given]).cut] == [held]


@pytest.mark.parametrize("bad", ["nan", "inf", "x", "", True, "1,5"])
def test_a_cut_that_is_no_finite_number_is_refused(bad: Any) -> None:
    with pytest.raises(UsageError, match=r"--cut .* is not a finite number: write one such as"):
        Options.of(cut=[bad])


@pytest.mark.parametrize(
    ("cut", "says"),
    [(0.5, "from 1 to 4"), (0, "from 1 to 4"), (2.5, "--cut 3 the same"), (9, "longest checklist")],
)
def test_a_checklist_takes_whole_numbers_of_lines(cut: float, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bank(verdicts(), cut=[cut])


def test_clusters_with_cells_missing_say_why_there_is_no_interval() -> None:
    frame = table(drawn_scores()).with_columns(pl.col("response").str.slice(-1).alias("cluster"))
    frame = frame.with_columns(
        label=pl.when((pl.col("response") == "r1") & (pl.col("phrasing") == "p2"))
        .then(pl.lit("?"))
        .otherwise("label")
    )
    found = audit(frame, failed={"?": "unparsed"}, cut=[5])
    for cut in ("", "5"):
        why = {
            e.statistic: e.no_interval
            for e in found.estimates
            if e.key.cut == cut and e.statistic.startswith(("component_", "dependability_"))
        }
        for name in ("component_response", "component_residual", "dependability_fixed"):
            assert why[name] == phrasing.GROUPED
        assert not why["component_phrasing"]
        assert not why["dependability_single"]


def test_calls_without_a_phrasing_beside_named_ones_are_a_phrasing_and_said() -> None:
    frame = table(SIX, gold=[1, 0, 1, 1, 0, 0])
    blank = frame.with_columns(pl.col("phrasing").replace({"p2": None}))
    labels = vd.read(blank, layout="long", phrasing="phrasing", vote="vote", gold="gold")
    said = [plain(n) for n in labels.notices]
    (one,) = (n for n in said if "name no phrasing" in n)
    assert one.startswith("6 calls of judge name no phrasing")
    assert "write its name into the column phrasing" in one.lower()
    assert set(labels.frame.filter(pl.col("grader").cast(pl.String) == "gold")["phrasing"]) == {
        None
    }
    found = vd.audit(labels)
    assert value(found, "component_residual") == pytest.approx(1 / 5)
    assert value(found, "phrasing_shift", line="(unnamed)") == pytest.approx(0)


def test_one_named_phrasing_beside_none_is_a_study_of_two() -> None:
    frame = table([row[:2] for row in SIX]).with_columns(pl.col("phrasing").replace({"p2": None}))
    labels = vd.read(frame, layout="long", phrasing="phrasing", vote="vote")
    said = " ".join(plain(n) for n in labels.notices)
    assert "(unnamed)" in said
    assert "All rows are of one phrasing" not in said
    assert value(vd.audit(labels), "flip_rate") == 2 / 6


def test_the_plain_function() -> None:
    assert vd.stats.flip_rate(SIX) == 0.5
    with pytest.warns(vd.errors.UndefinedWarning):
        assert math.isnan(vd.stats.flip_rate([["a", None]]))


# --- gold -------------------------------------------------------------------------------------------


def test_with_gold_the_component_is_shift_and_the_rest_is_rank_changes() -> None:
    gold = [1, 2, 3, 4, 5]
    # Phrasing 1 as gold, 2 one higher throughout, 3 turns the order round.
    scores = [[g, g + 1, 6 - g] for g in gold]
    found = audit(table(scores, gold=gold), gold="gold")
    assert [value(found, "phrasing_shift", line=f"p{j}") for j in (1, 2, 3)] == [0, 1, 0]
    ranks = [value(found, "phrasing_rank_correlation", line=f"p{j}") for j in (1, 2, 3)]
    assert ranks == pytest.approx([1, 1, -1])
    assert not len(found.results.filter(pl.col("grader") == "gold", statistic="flip_rate"))


def test_rank_correlation_is_spearmans_with_ties() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(8)
    gold = rng.integers(0, 5, 60)
    scores = np.clip(gold[:, None] + rng.integers(-1, 2, (60, 2)), 0, 6)
    for wide in (1, 9):  # nine apart: more different scores than have an interval
        found = audit(
            table((scores * wide + (wide > 1) * np.arange(60)[:, None] % wide).tolist(), gold=gold),
            gold="gold",
        )
        for j in range(2):
            mine = scores[:, j] * wide + (wide > 1) * np.arange(60) % wide
            held = row(found, "phrasing_rank_correlation", line=f"p{j + 1}")
            assert held["value"] == pytest.approx(spearmanr(mine, gold).statistic)
            assert (held["low"] is None) == (wide > 1)


# --- missing cells ----------------------------------------------------------------------------------


def test_with_cells_unread_components_are_by_restricted_likelihood(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    x = np.clip(np.round(5 + 2 * rng.normal(size=(40, 1)) + rng.normal(size=(40, 3))), 0, 10)
    gone = rng.random(x.shape) < 0.1
    texts = [
        ["??" if g else str(int(s)) for s, g in zip(a, b, strict=True)]
        for a, b in zip(x, gone, strict=True)
    ]
    found = audit(table(texts), failed={"??": "unparsed"})
    expected = reml_components(np.where(gone, np.nan, x))
    for name, own in (("response", "rows"), ("phrasing", "columns"), ("residual", "residual")):
        assert value(found, f"component_{name}") == pytest.approx(expected[own], rel=1e-9)
        assert row(found, f"component_{name}")["method"] in ("modified_large_sample", "chi_square")
    text = report(found, tmp_path)
    assert "restricted likelihood" in text
    assert f"{int(gone.sum())} of 120 cells have no score" in text


def test_responses_under_some_phrasings_only_are_left_out_and_counted(tmp_path: Path) -> None:
    found = audit(table([*SIX, [1, 1, None], [0, None, None]]))
    assert value(found, "component_response") == pytest.approx(0.1)
    assert row(found, "flip_rate")["n"] == 6
    assert (
        "judge: 2 responses were graded under some of its phrasings only; 6 responses that have all "
        "of them are used here."
    ) in report(found, tmp_path)


def test_no_response_in_common_is_said() -> None:
    found = audit(table([[1, None], [None, 0], [0, None], [None, 1]]))
    for name in ("flip_rate", "component_phrasing", "dependability_single"):
        assert row(found, name)["reason"] == phrasing.NO_RESPONSE


@pytest.mark.parametrize(("clustered", "repeated"), [(False, False), (False, True), (True, True)])
def test_the_likelihood_is_least_there(clustered: bool, repeated: bool) -> None:
    """The quick likelihood is that of the whole covariance matrix, and no step to a side lowers it."""
    rng = np.random.default_rng(5)
    n, r = 12, 3
    counts = rng.integers(0, 4 if repeated else 2, (n, r))
    counts[:2] = 2 if repeated else 1
    effects = rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=r) + 0.7 * rng.normal(size=(n, r))
    calls = [
        (i, j, effects[i, j] + 0.8 * rng.normal())
        for i, j in np.ndindex(n, r)
        for _ in range(counts[i, j])
    ]
    row_of, column, y = (np.array(a) for a in zip(*calls, strict=True))
    cluster = np.arange(n) // 3
    total = np.zeros((n, r))
    np.add.at(total, (row_of, column), y)
    means = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
    within = float(((y - means[row_of, column]) ** 2).sum())
    found = reml_components(
        means,
        counts=counts,
        within=within if repeated else None,
        cluster=cluster if clustered else None,
    )

    def alike(*codes: np.ndarray) -> np.ndarray:
        same = np.all([c[:, None] == c[None, :] for c in codes], axis=0)
        return np.asarray(same, dtype=np.float64)

    design = {"rows": alike(row_of), "columns": alike(column), "cells": alike(row_of, column)}
    design["residual"] = design["repeats"] = np.eye(len(y))
    design["clusters"] = alike(cluster[row_of])
    design["clusters_columns"] = alike(cluster[row_of], column)

    def deviance(components: dict[str, float]) -> float:
        v = sum(c * design[name] for name, c in components.items())
        inverse = np.linalg.inv(v)
        one, of_y = inverse.sum(), inverse.sum(axis=0) @ y
        return float(np.linalg.slogdet(v)[1] + np.log(one) + y @ inverse @ y - of_y**2 / one)

    least = deviance(found)
    for name, held in found.items():
        for step in (1e-3, -1e-3):
            if held + step > 0:
                assert deviance({**found, name: held + step}) > least, name


def test_a_judge_without_noise_keeps_its_components_where_cells_are_missing() -> None:
    rng = np.random.default_rng(6)
    x = np.round(rng.normal(0, 10, (40, 1))) + np.array([0.0, 3.0, -2.0])
    x[::7, 1] = np.nan
    found = reml_components(x)
    assert found["residual"] == 0
    assert found["columns"] == pytest.approx(np.var([0, 3, -2], ddof=1), rel=1e-4)
    assert found["rows"] == pytest.approx(np.var(x[:, 0], ddof=1), rel=1e-4)


def test_rows_that_stand_several_times_count_as_often() -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(0, 5, (15, 3)).astype(float)
    x[rng.random(x.shape) < 0.15] = np.nan
    times = rng.integers(1, 4, 15)
    one, other = reml_components(x, times=times), reml_components(np.repeat(x, times, axis=0))
    assert one == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize(
    "bad", [[[1, np.nan], [np.nan, 2]], [[1, 2]], [[1], [2]], [[3, 3], [3, 3]]]
)
def test_what_cannot_be_told_apart_is_nan(bad: Any) -> None:
    assert all(math.isnan(c) for c in reml_components(bad).values())


def test_designs_refuse_what_is_none() -> None:
    with pytest.raises(ValueError, match="no design"):
        analysis_of_variance(SIX, "p x q")
    with pytest.raises(ValueError, match="3 axes"):
        analysis_of_variance(SIX, "p x i x r")
    with pytest.raises(ValueError, match="rows × columns"):
        reml_components([1, 2, 3])
    with pytest.raises(ValueError, match="one array"):
        restricted_likelihood([SIX, SIX])
    assert all(math.isnan(c) for c in restricted_likelihood([[1.0, np.nan], [2, 3]]).values())


# --- intervals --------------------------------------------------------------------------------------


def test_three_phrasings_leave_two_degrees_of_freedom(tmp_path: Path) -> None:
    # 2 · 0.177 over the chi-square quantiles 7.378 and 0.0506.
    low, high = chi_square_interval(0.177, 2, 0.95)
    assert (low, high) == pytest.approx((0.048, 6.991), abs=5e-4)
    text = report(audit(table(SIX)), tmp_path)
    assert "3 phrasings leave the phrasing component 2 degrees of freedom" in text
    assert "an estimate of 0.177 spans about 0.048 to 7" in text


def test_the_modified_interval_is_exact_at_its_ends() -> None:
    # Without a second mean square it is the interval of the first.
    assert modified_large_sample(2.0, 5, 0.0, 30, 4, 0.9) == pytest.approx(
        [x / 4 for x in chi_square_interval(2.0, 5, 0.9)]
    )
    low, high = modified_large_sample(3.0, 4, 3.0, 40, 10, 0.95)
    assert low < 0 < high


def test_dependability_has_an_interval_near_the_published_one() -> None:
    # Six targets, four judges: ICC(A,1) 0.29 with 0.02 to 0.76 by Satterthwaite's degrees of freedom
    # (Shrout and Fleiss 1979, Table 2), which is close where there are enough judges.
    a = analysis_of_variance(
        [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    ).mean_squares
    found = dependability_interval(a["p"], a["i"], a["pi"], 6, 4, 15, 0.95)
    assert found == pytest.approx((0.019, 0.761), abs=0.03)
    assert all(math.isnan(x) for x in dependability_interval(0, 0, 0, 6, 4, 15, 0.95))


def test_intervals_cover_the_components_as_often_as_they_say() -> None:
    # 1000 studies of 30 × 3 with components 1, 0.4 and 0.5; the standard error of 95 % is 0.7 points.
    rng = np.random.default_rng(12)
    truth = {"p": 1.0, "i": 0.4}
    many, n, r = 1000, 30, 3
    x = rng.normal(size=(many, n, 1)) + 0.4**0.5 * rng.normal(size=(many, 1, r))
    x = x + 0.5**0.5 * rng.normal(size=(many, n, r))
    m = analysis_of_variance(x).mean_squares
    held = {"p": 0, "i": 0, "single": 0}
    single = 1 / 1.9
    rest = (n - 1) * (r - 1)
    for study, (p, i, pi) in enumerate(zip(m["p"], m["i"], m["pi"], strict=True)):
        low, high = modified_large_sample(p, n - 1, pi, rest, r, 0.95)
        held["p"] += low <= truth["p"] <= high
        low, high = modified_large_sample(i, r - 1, pi, rest, n, 0.95)
        held["i"] += low <= truth["i"] <= high
        if study % 10 == 0:  # it takes a while: a hundred studies, standard error 2.2 points
            low, high = dependability_interval(p, i, pi, n, r, rest, 0.95)
            held["single"] += low <= single <= high
    assert all(0.93 <= held[name] / many <= 0.97 for name in truth), held
    assert held["single"] >= 90


def test_bootstrap_intervals_are_named_for_these_phrasings_only(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    scores = np.clip(np.round(5 + 2 * rng.normal(size=(30, 1)) + rng.normal(size=(30, 3))), 0, 9)
    frame = table(scores.astype(int).tolist())
    auto, drawn = audit(frame), audit(frame, interval="bootstrap", replicates=200)
    assert row(drawn, "component_phrasing")["method"] == "percentile_fixed_phrasings"
    assert row(drawn, "flip_rate")["method"] == "percentile"
    assert row(auto, "component_phrasing")["method"] == "modified_large_sample"
    # The phrasings stay, so it cannot show that they are three of many.
    width = [row(a, "component_phrasing")["high"] for a in (drawn, auto)]
    assert width[0] < width[1] / 5
    assert "for these 3 phrasings only" in report(drawn, tmp_path)


def test_responses_in_clusters_have_their_own_components(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    x = rng.normal(0, 20, (8, 1, 1)) + rng.normal(0, 10, (8, 4, 1)) + rng.normal(0, 5, (1, 1, 3))
    x = np.round(x + rng.normal(0, 8, (8, 1, 3)) + rng.normal(0, 4, (8, 4, 3)))
    frame = table(x.reshape(32, 3).astype(int).tolist())
    frame = frame.with_columns(pl.Series("prompt", [f"c{i // 12}" for i in range(96)]))
    found = audit(frame, cluster="prompt")
    raw = analysis_of_variance(x, "(p:c) x i").raw
    assert value(found, "component_cluster_raw") == pytest.approx(raw["c"])
    assert value(found, "component_cluster_phrasing") == pytest.approx(raw["ci"])
    assert row(found, "component_response")["method"] == "jackknife_t"
    assert row(found, "component_phrasing")["method"] == "modified_large_sample"
    assert "take responses as independent" in report(found, tmp_path)


# --- known truth ------------------------------------------------------------------------------------


def test_a_deterministic_judge_still_shows_its_phrasings() -> None:
    """TWM, Table A.7, last row: no residual, the phrasing component 0.175 comes out, Φ 0.865."""
    rng = np.random.default_rng(7)
    many, n, r = 400, 210, 3
    x = rng.normal(size=(many, n, 1)) + math.sqrt(0.175) * rng.normal(size=(many, 1, r))
    found = analysis_of_variance(x).used
    assert np.abs(found["pi"]).max() < 1e-12
    # Standard errors of means of so many studies: 0.175 · √(2/2) and √(2/209).
    assert found["i"].mean() == pytest.approx(0.175, abs=4 * 0.175 / math.sqrt(many))
    assert found["p"].mean() == pytest.approx(1.0, abs=4 * math.sqrt(2 / 209 / many))
    phi = found["p"] / (found["p"] + found["i"] + found["pi"])
    published = (0.865, 0.183)
    assert phi.mean() == pytest.approx(
        published[0], abs=4 * phi.std() * math.sqrt(1 / many + 1 / 200)
    )
    assert found["i"].std() == pytest.approx(published[1], rel=0.25)


# --- bad input --------------------------------------------------------------------------------------


def test_one_phrasing_is_no_study() -> None:
    found = audit(table([[1], [0], [1]]))
    names = found.results["statistic"].to_list()
    assert not [n for n in names if n.startswith(("component_", "flip_", "phrasing_"))]
    # Nor is a grader with one beside another that has several.
    both = pl.concat([table(SIX), table([[1], [0], [1]], grader="other")])
    flips = audit(both).results.filter(pl.col("statistic") == "flip_rate")
    assert flips["grader"].to_list() == ["judge"]


def test_one_phrasing_is_said_where_a_column_names_it() -> None:
    made = vd.read(table([[1], [0], [1]]), layout="long", phrasing="phrasing")
    assert "All rows are of one phrasing, p1: nothing can be said of the wording." in "\n".join(
        plain(n) for n in made.notices
    )
    several = vd.read(table(SIX), layout="long", phrasing="phrasing", vote="vote")
    apart = [table(SIX).filter(pl.col("phrasing") == p) for p in ("p1", "p2", "p3")]
    joined = vd.read(*apart, layout="long", phrasing="phrasing", vote="vote")
    for held in (several, joined):
        assert not [n for n in held.notices if "wording" in plain(n)]


@pytest.mark.parametrize("huge", ["1e308", "-1e5000", "1e150"])
def test_scores_too_large_to_square_are_no_scores_and_said(huge: str, tmp_path: Path) -> None:
    found = audit(table([[1, huge, 3], [2, 2, 1], [3, 1, huge], [1, 2, 2]]))
    assert not len(found.results.filter(pl.col("statistic").str.starts_with("component_")))
    assert "no number, or too large a one" in report(found, tmp_path)


def test_too_few_responses_for_an_interval_are_said_to_be() -> None:
    found = audit(table([[1, 2, 4], [3, 3, 5]]))
    assert row(found, "component_phrasing")["low"] is None
    made = [e for e in found.estimates if e.statistic == "component_phrasing"]
    assert [e.no_interval for e in made] == [phrasing.FEW_SCORES]


def test_a_dependability_whose_interval_is_zero_is_not_said_to_lack_chance() -> None:
    found = audit(table([[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 8))
    made = [e for e in found.estimates if e.statistic == "dependability_single"]
    assert [e.value for e in made] == [0]
    assert [e.no_interval for e in made] == [phrasing.NO_SPREAD]


def test_a_constant_panel_has_components_of_zero_and_no_dependability() -> None:
    found = audit(table([[1, 1, 1]] * 6))
    assert value(found, "flip_rate") == 0
    assert row(found, "flip_rate")["high"] > 0.3
    for name in ("response", "phrasing", "residual"):
        assert value(found, f"component_{name}") == 0
    for name in ("single", "mean", "fixed"):
        assert row(found, f"dependability_{name}")["reason"] == phrasing.NOTHING_VARIES


def test_two_phrasings_are_enough_and_say_how_little(tmp_path: Path) -> None:
    found = audit(table([[1, 2], [3, 4], [5, 5], [2, 4]]))
    assert value(found, "component_phrasing") > 0
    assert "2 phrasings leave the phrasing component 1 degree of freedom" in report(found, tmp_path)


@pytest.mark.parametrize(
    "scores", [[[1, 2, 3]], [["??", "??"], ["??", "??"]], [[1, "??"], ["??", 2]]]
)
def test_too_little_is_said_and_nothing_breaks(scores: Any, tmp_path: Path) -> None:
    found = audit(table([*scores, [None, None]]), failed={"??": "unparsed"}, map={})
    for name in ("component_phrasing", "dependability_single"):
        rows = found.results.filter(pl.col("statistic") == name)
        assert all(r["reason"] for r in rows.iter_rows(named=True))
    assert report(found, tmp_path)


def test_design_weights_take_no_likelihood() -> None:
    frame = table([[1, 2], [3, "??"], [5, 5], [2, 4]]).with_columns(
        pl.Series("w", [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 3.0, 3.0])
    )
    found = audit(frame, weight="w", failed={"??": "unparsed"})
    assert row(found, "component_phrasing")["reason"] == phrasing.NO_DESIGN_WEIGHTS


def test_slices_have_their_own_study() -> None:
    frame = table(SIX).with_columns(
        pl.when(pl.col("response") < "r4").then(pl.lit("a")).otherwise(pl.lit("b")).alias("part")
    )
    found = audit(frame, by=["part"])
    assert value(found, "flip_rate", slice="part=a") == 1
    assert value(found, "flip_rate", slice="part=b") == 0
    assert value(found, "component_response", slice="part=b") == pytest.approx(1 / 3)


def test_repeats_that_never_differ_are_no_reliability(tmp_path: Path) -> None:
    found = audit(table([[(x, x) for x in r] for r in SIX]))
    assert value(found, "component_vote") == 0
    assert value(found, "component_response_phrasing") == pytest.approx(0.2)
    text = report(found, tmp_path)
    assert "repeats under one prompt never differ. That is no evidence of reliability" in text
    assert "Only votes under the same phrasing are compared" in text  # what the table of votes says
    (finding,) = [f for f in found.findings if f.code == "votes_never_vary"]
    assert finding.state is State.FOUND
    assert "was asked again on 18 responses (counted under each phrasing)" in plain(
        finding.sentence
    )


# --- checklists -------------------------------------------------------------------------------------


def verdicts(gold: bool = True) -> pl.DataFrame:
    rng = np.random.default_rng(10)
    truth = (rng.random((20, 4)) < rng.random((20, 1))).astype(int)
    rows = []
    for i, j in np.ndindex(20, 4):
        about = {"response": f"r{i:02}", "line": f"e{j + 1}"}
        if gold:
            rows.append({**about, "grader": "gold", "phrasing": None, "label": str(truth[i, j])})
        for p in range(3):
            said = truth[i, j] if rng.random() > 0.1 * (p + 1) else 1
            rows.append({**about, "grader": "judge", "phrasing": f"p{p}", "label": str(said)})
    return pl.DataFrame(rows)


def bank(frame: pl.DataFrame, **options: Any) -> Audit:
    return vd.audit(vd.read(frame, layout="checklist", phrasing="phrasing", line="line", **options))


def test_totals_of_a_checklist_are_scores_and_pass_or_fail_flips(tmp_path: Path) -> None:
    frame = verdicts()
    found = bank(frame, cut=[2, 3])
    totals = (
        frame.filter(grader="judge")
        .with_columns(pl.col("label").cast(pl.Int64))
        .pivot(on="phrasing", index="response", values="label", aggregate_function="sum")
        .sort("response")
        .drop("response")
        .to_numpy()
    )
    raw = analysis_of_variance(totals).raw
    at = {"grader": "judge", "other": "phrasings", "cut": ""}
    assert value(found, "component_response_raw", **at) == pytest.approx(raw["p"])
    assert value(found, "component_residual", **at) == pytest.approx(raw["pi"])
    assert value(found, "component_phrasing_raw", cut="") == pytest.approx(raw["i"])
    # The components over positions of the checklist stand beside them, as ever.
    assert value(found, "component_response", grader="judge", other="") < 0.25
    for cut in (2, 3):
        passed = totals >= cut
        flips = (passed.any(axis=1) & ~passed.all(axis=1)).mean()
        assert value(found, "flip_rate", cut=str(cut)) == pytest.approx(flips)
        decided = analysis_of_variance(passed.astype(float)).raw
        one = {"grader": "judge", "cut": str(cut)}
        assert value(found, "component_response_raw", **one) == pytest.approx(decided["p"])
        assert value(found, "component_phrasing_raw", **one) == pytest.approx(decided["i"])
        assert value(found, "component_residual_raw", **one) == pytest.approx(decided["pi"])
    text = report(found, tmp_path)
    assert "pass at a cut of 2" in text
    whole = " ".join((tmp_path / "audit.txt").read_text(encoding="utf-8").split())
    assert "Pass or fail flips between phrasings" in whole.replace(
        "wording of its instruction? ", ""
    )


def test_without_a_cut_a_checklist_says_what_a_flip_needs(tmp_path: Path) -> None:
    found = bank(verdicts(gold=False))
    assert not len(found.results.filter(pl.col("statistic") == "flip_rate"))
    assert "audit with --cut C" in report(found, tmp_path)


# --- the figure -------------------------------------------------------------------------------------


def drawn(name: str = "judge", **more: Any) -> dict[str, Any]:
    one = {
        "name": "Phrasing",
        "value": 0.177,
        "low": 0.05,
        "high": 7.0,
        "raw": 0.177,
        "phrasing": True,
    }
    two = {
        "name": "Residual",
        "value": 0.0,
        "low": None,
        "high": None,
        "raw": -0.03,
        "phrasing": False,
    }
    return {
        "graders": [{"grader": name, "phrasings": 3, "components": [one, two]}],
        "fixed": False,
        **more,
    }


def test_a_figure_shows_each_component_with_its_ends_and_an_arrow_where_it_is_cut() -> None:
    root = parsed(DRAWING, drawn())
    texts = words(root)
    assert any("0.177 [0.050, 7.000]" in t for t in texts)
    assert any("0.000 (−0.030)" in t for t in texts)
    # Seven is forty times the estimate: the line ends in an arrow, and the drawing says so.
    assert len(list(root.iter(f"{SVG}path"))) == 1
    assert any("an arrow marks" in t for t in texts)
    within = drawn()
    within["graders"][0]["components"][0]["high"] = 0.2
    root = parsed(DRAWING, within)
    assert not list(root.iter(f"{SVG}path"))
    assert DRAWING.lines is not None
    drawing = " ".join([*words(root), *DRAWING.lines(within, 100, False)])
    assert "rrow" not in drawing
    assert "An arrow marks" in " ".join(DRAWING.lines(drawn(), 100, False))
    assert "for these phrasings only" in " ".join(words(parsed(DRAWING, drawn(fixed=True))))


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("width", [40, 100])
def test_in_a_terminal_it_is_safe_and_plain(ascii_only: bool, width: int) -> None:
    assert DRAWING.lines is not None
    for data in (drawn(), drawn(NASTY)):
        found = DRAWING.lines(data, width, ascii_only)
        assert all("\x1b" not in line and "\n" not in line for line in found)
        assert max(map(len, found)) <= max(width, 60)
        if ascii_only:
            assert data["graders"][0]["grader"] == NASTY or "".join(found).isascii()


def test_hostile_names_are_text_and_nothing_else() -> None:
    content = DRAWING.svg(drawn(NASTY), NASTY)
    assert content.count("</svg>") == 1
    assert "<script" not in content
    assert content == DRAWING.svg(drawn(NASTY), NASTY)


def test_the_report_holds_the_figure_with_words_for_it() -> None:
    blocks = audit(table(SIX)).document.blocks
    (figure,) = [b for b in blocks if isinstance(b, Figure) and b.name == DRAWING.name]
    assert "0.200" in "".join(p if isinstance(p, str) else p.text for p in figure.alt)
    titles = [b.title for b in blocks if isinstance(b, Table)]
    assert "Dependability" in titles


def test_estimands_name_their_three_questions() -> None:
    titles = {s.name: s.estimand.title for s in phrasing.FAMILY.statistics}
    assert titles["dependability_single"] == "Dependability at a single phrasing"
    assert titles["dependability_mean"] == "Dependability of the mean of R random phrasings"
    assert titles["dependability_fixed"] == "Dependability of these R phrasings, fixed"
    for s in phrasing.FAMILY.statistics:
        text = f"{s.estimand.title} {s.estimand.reading}".lower()
        assert "reliability" not in text or "never the reliability" in text, s.name


def test_every_design_is_balanced_in_its_expectations() -> None:
    for plan, (name, sizes) in product(
        random_effects.DESIGNS.values(), (("", (4, 3, 2)), ("", (2, 5, 3)))
    ):
        found = random_effects.expected_mean_squares(plan, sizes[: plan.axes])
        assert name == ""
        # The last effect is the residual: once in every mean square.
        assert (found[:, -1] == 1).all()
        assert (np.triu(found) != 0).any()


# --- intervals of components of clusters, and of fixed phrasings with cells missing -----------------


def nested(
    rng: np.random.Generator, sizes: Any, cluster: float, both: float, residual: float = 0.3
) -> tuple[Any, Any]:
    """Scores of responses within clusters under three phrasings, and the cluster of each response."""
    of = np.repeat(np.arange(len(sizes)), sizes)
    n, c = len(of), len(sizes)
    y = math.sqrt(cluster) * rng.normal(size=(c, 1))[of] + math.sqrt(0.5) * rng.normal(size=(n, 1))
    y = y + math.sqrt(0.2) * rng.normal(size=(1, 3)) + math.sqrt(both) * rng.normal(size=(c, 3))[of]
    return y + math.sqrt(residual) * rng.normal(size=(n, 3)), of


def in_clusters(y: Any, of: Any) -> pl.DataFrame:
    frame = table(np.round(np.clip(5 + 2 * y, -20, 30)).astype(int).tolist())
    return frame.with_columns(
        cluster=pl.col("response")
        .str.slice(1)
        .cast(pl.Int64)
        .map_elements(lambda i: f"c{of[i - 1]}", return_dtype=pl.String)
    )


@pytest.mark.parametrize("sizes", [[4] * 8, [1, 2, 6, 3, 4, 8]])
def test_components_of_clusters_have_named_intervals(sizes: list[int]) -> None:
    y, of = nested(np.random.default_rng(3), sizes, 1.0, 0.2)
    found = audit(in_clusters(y, of))
    for name in ("component_cluster", "component_cluster_phrasing"):
        held = row(found, name)
        assert held["method"] == "modified_large_sample"
        assert held["low"] <= held["value"] <= held["high"]


def test_two_clusters_have_no_interval_and_a_reason(tmp_path: Path) -> None:
    y, of = nested(np.random.default_rng(3), [5, 5], 1.0, 0.2)
    found = audit(in_clusters(y, of))
    assert row(found, "component_cluster")["low"] is None
    assert "fewer than three clusters" in report(found, tmp_path)


def test_a_combination_of_mean_squares_is_as_printed_where_it_has_two() -> None:
    # Exact where nothing is taken off: the chi-square interval.
    low, high = random_effects.combination_interval([(1, 4.0, 9)], [], 1, 0.95)
    assert (low, high) == pytest.approx(chi_square_interval(4.0, 9, 0.95))
    # Two mean squares with the same expectation add up as one would.
    two = random_effects.combination_interval([(1, 4.0, 9), (1, 4.0, 9)], [], 2, 0.95)
    one = chi_square_interval(4.0, 18, 0.95)
    assert two[0] == pytest.approx(one[0])  # what the cross term is made for
    assert two[1] >= one[1]  # the upper end has no such term


def test_fixed_phrasings_with_cells_missing_have_an_f_interval() -> None:
    rng = np.random.default_rng(5)
    x = np.round(5 + 3 * rng.normal(size=(40, 1)) + rng.normal(size=(40, 3))).astype(int)
    texts = [[("??" if rng.random() < 0.1 else str(v)) for v in r] for r in x]
    held = row(audit(table(texts), failed={"??": "unparsed"}), "dependability_fixed")
    assert held["method"] == "f_ratio"
    assert held["low"] < held["value"] < held["high"]
    # Exact where no cell is missing: Feldt's interval, from the F ratio of mean squares.
    squares = analysis_of_variance(x).mean_squares
    low, high = random_effects.fixed_columns_interval(squares["p"], squares["pi"], 39, 78, 0.95)
    assert low < 1 - squares["pi"] / squares["p"] < high
    from scipy.stats import f

    share = squares["pi"] / squares["p"]
    assert (low, high) == pytest.approx(
        (1 - share * f.ppf(0.975, 39, 78), 1 - share * f.ppf(0.025, 39, 78))
    )


@pytest.mark.parametrize(
    ("clusters", "within", "cluster", "both"),
    [(10, 3, 0.5, 0.1), (13, 10, 0.1, 0.05), (30, 3, 0.1, 0.05), (30, 10, 0.01, 0.01)],
)
def test_coverage_of_intervals_of_clusters(
    clusters: int, within: int, cluster: float, both: float
) -> None:
    rng = np.random.default_rng(20)
    studies, shape = 1000, (clusters, within, 3)
    y = np.stack(
        [nested(rng, [within] * clusters, cluster, both)[0].reshape(shape) for _ in range(studies)]
    )
    found = analysis_of_variance(y, "(p:c) x i")
    s, free = found.mean_squares, found.freedom
    held = np.zeros(2)
    for k in range(studies):
        part = {e: (1.0, float(s[e][k]), free[e]) for e in ("c", "ci", "p:c", "pi:c")}
        for i, (ends, truth) in enumerate(
            (
                (
                    random_effects.combination_interval(
                        [part["c"], part["pi:c"]], [part["ci"], part["p:c"]], within * 3, 0.95
                    ),
                    cluster,
                ),
                (
                    random_effects.combination_interval([part["ci"]], [part["pi:c"]], within, 0.95),
                    both,
                ),
            )
        ):
            held[i] += max(ends[0], 0) <= truth <= max(ends[1], 0)
    # Monte-Carlo error of 0.95 over 1,000 studies: 0.7 points; three of them.
    assert (np.abs(held / studies - 0.95) < 0.021).all(), held / studies


@pytest.mark.slow
@pytest.mark.parametrize("gone", [0.0, 0.15])
def test_coverage_of_intervals_of_uneven_clusters(gone: float) -> None:
    rng = np.random.default_rng(22)
    sizes, studies, truth = [1, 2, 3, 4, 6, 8, 10], 40, (0.5, 0.1)
    held = np.zeros(2)
    for _ in range(studies):
        y, of = nested(rng, sizes, *truth)
        y = np.where(rng.random(y.shape) < gone, np.nan, y)
        likely = reml_components(y, cluster=of)
        found = {"cluster": likely["clusters"], "cluster_phrasing": likely["clusters_columns"]}
        study = phrasing.Study(
            grader="j", names=("a", "b", "c"), rows=np.arange(len(of)), left_out=0, n=len(of),
            empty=0, calls=1.0, likelihood=True, scored=True, clustered=True,
        )  # fmt: skip
        squares = phrasing._implied(found, likely["rows"], likely["residual"], np.isfinite(y), of)
        phrasing._cluster_intervals(study, squares, 0.95)
        for i, name in enumerate(("component_cluster", "component_cluster_phrasing")):
            low, high, _ = study.intervals["", name]
            held[i] += low <= truth[i] <= high
    assert (held / studies > 0.95 - 3 * math.sqrt(0.95 * 0.05 / studies)).all(), held / studies
