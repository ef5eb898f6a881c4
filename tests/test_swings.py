"""Swings: a rate without one kind of response, at another mix, and between two kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire.auditing import Audit, scenes
from voirdire.errors import UsageError
from voirdire.intervals import t_quantile
from voirdire.stats.swings import mix_of

# grader g: "yes" in 8 of 10 plain, 6 of 10 coded and 1 of 20 other responses; h: 4, 0 and 2.
PLAN = {"plain": (10, 8, 4), "coded": (10, 6, 0), "other": (20, 1, 2)}


def table(plan: Mapping[str, tuple[int, ...]], **extra: Any) -> pl.DataFrame:
    rows = [
        (f"{kind}{i:03}", grader, "yes" if i < yes else "no", kind, f"{kind}{i % 5}")
        for kind, (n, *counts) in plan.items()
        for i in range(n)
        for grader, yes in zip("gh", counts, strict=False)
    ]
    columns = ["response", "grader", "label", "kind", "batch"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return frame.with_columns(**extra) if extra else frame


def audit(frame: pl.DataFrame, **options: Any) -> Audit:
    return vd.audit(vd.read(frame, **{"scale": "no,yes", "layout": "long", **options}))


def rows_of(found: Audit, statistic: str, **key: str) -> list[dict[str, Any]]:
    named = {k.removesuffix("_"): v for k, v in key.items()}
    rows = found.results.filter(
        pl.col("statistic") == statistic, *(pl.col(c) == v for c, v in named.items())
    )
    return rows.to_dicts()


def one(found: Audit, statistic: str, **key: str) -> dict[str, Any]:
    rows = rows_of(found, statistic, **{"slice": "", **key})
    assert len(rows) == 1, rows
    return rows[0]


# --- without one value --------------------------------------------------------------------------


def test_a_rate_without_one_value_and_what_that_changes() -> None:
    found = audit(table(PLAN), drop=["kind=coded"])
    line = {"line": "kind=coded"}
    # g: 15 of 40 with all, 9 of 30 without the coded.
    row = one(found, "rate_without", grader="g", class_="yes", **line)
    assert (row["value"], row["n"]) == (0.3, 30)
    row = one(found, "rate_without_minus_rate", grader="g", class_="yes", **line)
    assert row["value"] == pytest.approx(9 / 30 - 15 / 40)
    # h: 6 of 40, 6 of 30.
    row = one(found, "rate_without_minus_rate", grader="h", class_="yes", **line)
    assert row["value"] == pytest.approx(0.05)


def test_what_leaving_out_does_to_the_spread_between_graders() -> None:
    found = audit(table(PLAN), drop=["kind=coded"])
    line = {"class_": "yes", "line": "kind=coded"}
    # Range with all: 15/40 − 6/40 = 0.225; without: 9/30 − 6/30 = 0.1.
    assert one(found, "rate_range", class_="yes", other="")["value"] == pytest.approx(0.225)
    row = one(found, "rate_range_without", **line)
    assert row["value"] == pytest.approx(0.1)
    assert (row["describes"], row["grader"], row["n"]) == ("panel", "", 30)
    assert one(found, "rate_range_without_minus_range", **line)["value"] == pytest.approx(-0.125)
    # g moves by −0.075 and h by +0.05: the amounts differ by 0.125.
    assert one(found, "rate_without_minus_rate_range", **line)["value"] == pytest.approx(0.125)


def test_the_interval_of_the_change_is_that_of_the_difference() -> None:
    # By linearisation, for one response a cluster: with x yes, d dropped, N all and M left, each
    # response adds x (1 − d) / M − (1 − d) p / M − (x − q) / N, p and q being the two rates.
    found = audit(table({"plain": (400, 240, 1), "coded": (100, 10, 1)}), drop=["kind=coded"])
    row = one(found, "rate_without_minus_rate", grader="g", class_="yes", line="kind=coded")
    p, q = 0.6, 0.5
    x = np.r_[np.ones(240), np.zeros(160), np.ones(10), np.zeros(90)]
    kept = np.r_[np.ones(400), np.zeros(100)]
    each = kept * (x - p) / 400 - (x - q) / 500
    half = t_quantile(0.975, 499) * math.sqrt(500 / 499 * float((each**2).sum()))
    assert row["value"] == pytest.approx(0.1)
    assert (row["low"], row["high"]) == pytest.approx((0.1 - half, 0.1 + half), abs=2e-4)
    # As if the two rates were apart: three times as wide.
    assert half < 0.4 * 1.96 * math.sqrt(p * (1 - p) / 400 + q * (1 - q) / 500)


def test_gold_is_dropped_from_too_and_is_in_no_spread() -> None:
    frame = table(PLAN).with_columns(pl.col("grader").replace("h", "gold"))
    found = audit(frame, drop=["kind=coded"])
    assert (
        one(found, "rate_without", grader="gold", class_="yes", line="kind=coded")["value"] == 0.2
    )
    assert not rows_of(found, "rate_range_without")


def test_a_response_without_the_tag_stays_when_a_value_is_dropped() -> None:
    frame = table(PLAN).with_columns(
        pl.when(pl.col("kind") != "other").then(pl.col("kind")).alias("kind")
    )
    row = one(audit(frame, drop=["kind=coded"]), "rate_without", grader="g", class_="yes")
    assert (row["value"], row["n"]) == (0.3, 30)


def test_where_nothing_is_left_the_rate_is_undefined_with_a_reason() -> None:
    # h labels the coded responses only.
    frame = table(PLAN).filter((pl.col("grader") == "g") | (pl.col("kind") == "coded"))
    found = audit(frame, drop=["kind=coded"])
    for statistic in ("rate_without", "rate_without_minus_rate"):
        row = one(found, statistic, grader="h", class_="yes")
        assert row["value"] is None
        assert row["reason"] == "the grader has no readable label outside of this value"
    row = one(found, "rate_range_without", class_="yes")
    assert row["reason"] == "fewer than two graders have a rate there"


def test_no_events_without_the_value_leaves_an_interval_of_some_width() -> None:
    found = audit(table({"plain": (30, 0, 3), "coded": (10, 6, 3)}), drop=["kind=coded"])
    row = one(found, "rate_without", grader="g", class_="yes")
    # 0 of 30: Clopper and Pearson's upper end is 1 − 0.025^(1/30).
    assert (row["value"], row["low"]) == (0, 0)
    assert row["high"] == pytest.approx(1 - 0.025 ** (1 / 30))


# --- standardised -------------------------------------------------------------------------------


def test_the_whole_is_standardised_to_equal_shares_of_the_values() -> None:
    found = audit(table(PLAN), standardise=["kind"])
    row = one(found, "standardised_rate", grader="g", class_="yes", line="kind")
    # (0.8 + 0.6 + 0.05) / 3
    assert row["value"] == pytest.approx(1.45 / 3)
    assert row["n"] == 40
    row = one(found, "standardised_rate_minus_rate", grader="g", class_="yes", line="kind")
    assert row["value"] == pytest.approx(1.45 / 3 - 15 / 40)


def test_the_interval_is_that_of_a_mean_of_independent_rates() -> None:
    # Two values with 200 and 50 responses at 60 and 20 %: variance ¼ (0.24 / 199 + 0.16 / 49).
    found = audit(table({"a": (200, 120, 1), "b": (50, 10, 1)}), standardise="kind")
    row = one(found, "standardised_rate", grader="g", class_="yes", line="kind")
    assert row["value"] == pytest.approx(0.4)
    se = 0.5 * math.sqrt(0.24 / 199 + 0.16 / 49)
    half = t_quantile(0.975, 249) * se / (0.4 * 0.6)
    centre = math.log(0.4 / 0.6)
    ends = [1 / (1 + math.exp(-centre - s * half)) for s in (-1, 1)]
    assert (row["low"], row["high"]) == pytest.approx(ends, abs=1e-3)


def test_a_slice_is_standardised_to_the_mix_of_the_whole() -> None:
    # Half of the plain and of the other responses lie in batch x, a fifth of the coded ones.
    plan = {"x": {"plain": (5, 4), "coded": (2, 1), "other": (10, 0)}, "y": {"plain": (5, 4), "coded": (8, 5), "other": (10, 1)}}  # fmt: skip
    rows = [
        (f"{part}{kind}{i}", "g", "yes" if i < yes else "no", kind, part)
        for part, kinds in plan.items()
        for kind, (n, yes) in kinds.items()
        for i in range(n)
    ]
    frame = pl.DataFrame(rows, schema=["response", "grader", "label", "kind", "part"], orient="row")
    found = audit(frame, by=["part"], standardise=["kind"])
    # The whole: 10 plain, 10 coded, 20 other of 40. In x: ¼ · 0.8 + ¼ · 0.5 + ½ · 0.
    key = {"grader": "g", "class_": "yes", "line": "kind"}
    x = one(found, "standardised_rate", slice="part=x", **key)["value"]
    y = one(found, "standardised_rate", slice="part=y", **key)["value"]
    assert x == pytest.approx(0.25 * 0.8 + 0.25 * 0.5)
    assert y == pytest.approx(0.25 * 0.8 + 0.25 * 5 / 8 + 0.5 * 0.1)
    # The difference of the two, at the one mix, has its own interval.
    row = one(found, "standardised_rate_difference", grader="g", class_="yes")
    assert row["line"] == "part=x−y at the mix of kind"
    assert row["value"] == pytest.approx(x - y)
    assert row["low"] < row["value"] < row["high"]
    raw = one(found, "rate_difference", grader="g", class_="yes", line="part=x−y")
    assert raw["value"] == pytest.approx(5 / 17 - 10 / 23)


def test_design_weights_make_the_mix_of_the_whole() -> None:
    frame = table(PLAN).with_columns(
        pl.when(pl.col("kind") == "other").then(3.0).otherwise(1.0).alias("weight"),
        pl.col("batch").str.slice(-1).alias("part"),
    )
    labels = vd.read(
        frame, scale="no,yes", layout="long", weight="weight", by="part", standardise="kind"
    )
    whole, slices = scenes(labels)
    # 10 + 10 + 20 · 3 = 80
    assert whole.mixes["kind"] == {"coded": 0.125, "plain": 0.125, "other": 0.75}
    assert mix_of(whole, "kind").tolist() == pytest.approx([1 / 3] * 3)
    asked = next(s for s in slices if not s.exploratory)
    assert mix_of(asked, "kind").tolist() == [0.125, 0.75, 0.125]  # coded, other, plain


def test_at_the_mix_it_has_a_rate_does_not_change_and_no_rounding_is_shown() -> None:
    found = audit(table({"a": (21, 7, 1), "b": (21, 5, 1), "c": (21, 3, 1)}), standardise=["kind"])
    row = one(found, "standardised_rate_minus_rate", grader="g", class_="yes")
    assert row["value"] == 0
    assert row["low"] is None or row["high"] - row["low"] > 1e-6


def test_a_value_without_labels_is_named() -> None:
    frame = table(PLAN).filter((pl.col("grader") == "g") | (pl.col("kind") != "coded"))
    found = audit(frame, standardise=["kind"], by=["batch"])
    row = one(found, "standardised_rate", grader="h", class_="yes")
    assert row["value"] is None
    assert row["reason"] == "the grader has no readable label where kind is coded"
    sliced = one(found, "standardised_rate", grader="g", class_="yes", slice="batch=plain0")
    assert sliced["reason"] == "the grader has no readable label where kind is coded, other"


def test_no_events_leave_a_standardised_rate_with_an_interval_of_some_width() -> None:
    found = audit(table({"a": (60, 0, 1), "b": (20, 0, 1)}), standardise=["kind"])
    row = one(found, "standardised_rate", grader="g", class_="yes")
    assert (row["value"], row["low"]) == (0, 0)
    # ½ of each: as much as 1 / (0.25 / 60 + 0.25 / 20) = 60 equal responses, not 80.
    assert row["method"] in ("korn_graubard", "clopper_pearson")
    assert row["high"] == pytest.approx(1 - 0.025 ** (1 / 60), rel=0.02)


def test_a_slice_by_the_tag_itself_is_neither_dropped_from_nor_standardised() -> None:
    found = audit(table(PLAN), by=["kind"], standardise=["kind"], drop=["kind=coded"])
    for statistic in ("standardised_rate", "rate_without"):
        assert {r["slice"] for r in rows_of(found, statistic)} == {""}


# --- between two values -------------------------------------------------------------------------


def test_rates_of_every_two_values_of_a_tag_that_slices_are_compared() -> None:
    found = audit(table(PLAN), by=["kind"])
    rows = rows_of(found, "rate_difference", grader="g", class_="yes")
    values = {r["line"]: r["value"] for r in rows}
    assert values == {
        "kind=coded−other": pytest.approx(0.6 - 0.05),
        "kind=coded−plain": pytest.approx(0.6 - 0.8),
        "kind=other−plain": pytest.approx(0.05 - 0.8),
    }
    assert {r["slice"] for r in rows} == {""}
    assert next(r["n"] for r in rows if r["line"] == "kind=coded−other") == 30


def test_responses_of_one_cluster_on_both_sides_move_together() -> None:
    # 50 prompts, each asked in English and in code; coded answers are as the plain ones but in ten.
    rows = []
    for i in range(50):
        plain = "yes" if i < 25 else "no"
        coded = "no" if i < 10 else plain
        rows += [(f"p{i}", "g", plain, "plain", f"c{i}"), (f"q{i}", "g", coded, "coded", f"c{i}")]
    frame = pl.DataFrame(
        rows, schema=["response", "grader", "label", "kind", "cluster"], orient="row"
    )
    row = one(audit(frame, by=["kind"]), "rate_difference", grader="g", class_="yes")
    assert row["value"] == pytest.approx(-0.2)
    # Each cluster's difference is −1 in ten and 0 in forty: s² = 10 · 40 / (50 · 49).
    half = t_quantile(0.975, 49) * math.sqrt(10 * 40 / (50 * 49) / 50)
    assert (row["low"], row["high"]) == pytest.approx((-0.2 - half, -0.2 + half))


def test_a_side_that_a_grader_has_no_label_of_is_named() -> None:
    frame = table(PLAN).filter((pl.col("grader") == "g") | (pl.col("kind") != "coded"))
    found = audit(frame, by=["kind"])
    row = one(found, "rate_difference", grader="h", class_="yes", line="kind=coded−plain")
    assert row["reason"] == "the grader has no readable label where kind is coded"
    assert one(found, "rate_difference", grader="h", class_="yes", line="kind=other−plain")["value"]


@pytest.mark.parametrize("by", ["batch", "label:h", "kind+part"])
def test_many_values_labels_of_graders_and_crossed_tags_are_not_compared(by: str) -> None:
    frame = table(PLAN, part=pl.col("response").str.slice(-1))
    assert not rows_of(audit(frame, by=[by]), "rate_difference")


def test_values_with_a_minus_sign_keep_their_rows_apart() -> None:
    frame = table(PLAN).with_columns(
        pl.col("kind").replace_strict({"plain": "a", "coded": "b−c", "other": "a−b"})
    )
    frame = pl.concat(
        [frame, frame.with_columns(kind=pl.lit("c"), response=pl.col("response") + "c")]
    )
    found = audit(frame, by=["kind"])  # a less b−c, and a−b less c
    lines = [r["line"] for r in rows_of(found, "rate_difference", grader="g", class_="yes")]
    assert len(set(lines)) == len(lines) == 6


# --- options and the report ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": ["sort=coded"]}, "--drop sort=coded: there is no tag 'sort'. Tags: kind, batch"),
        ({"drop": ["kind=coed"]}, "kind has no value 'coed'. Values: coded, other, plain"),
        (
            {"standardise": ["sort"]},
            "--standardise sort: there is no tag 'sort'. Tags: kind, batch",
        ),
        ({"standardise": ["label:x"]}, "there is no tag 'label:x'"),
    ],
)
def test_a_tag_or_value_that_is_not_there_is_named_with_those_that_are(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        audit(table(PLAN), **options)
    assert message in str(caught.value)


def test_a_table_of_counts_has_no_responses_to_take_by_tag() -> None:
    counts = pl.DataFrame({"grader": ["g"], "no": [4], "yes": [6], "corpus": ["A"]})
    labels = vd.read(counts, layout="counts", scale="no,yes")
    with pytest.raises(UsageError, match="table of counts"):
        vd.audit(labels, drop=["corpus=A"])


def test_a_graders_label_is_a_tag_to_drop_and_to_standardise_to() -> None:
    found = audit(table(PLAN), drop=["label:h=yes"], standardise=["label:h"])
    # h says yes to 4 plain and 2 other; of these g says yes to 4 and 1. Left: 15 − 5 of 34.
    row = one(found, "rate_without", grader="g", class_="yes", line="label:h=yes")
    assert row["value"] == pytest.approx(10 / 34)
    row = one(found, "standardised_rate", grader="g", class_="yes", line="label:h")
    assert row["value"] == pytest.approx((10 / 34 + 5 / 6) / 2)


def test_a_tag_of_calls_counts_as_the_grader_has_it() -> None:
    # The kind differs between graders on the same response: h's are all plain.
    frame = table(PLAN).with_columns(
        pl.when(pl.col("grader") == "h").then(pl.lit("plain")).otherwise("kind").alias("kind")
    )
    found = audit(frame, drop=["kind=coded"])
    assert one(found, "rate_without", grader="g", class_="yes")["n"] == 30
    assert one(found, "rate_without", grader="h", class_="yes")["n"] == 40


def test_the_same_option_twice_is_one_row() -> None:
    found = audit(table(PLAN), drop=["kind=coded", "kind=coded"], standardise=["kind", "kind"])
    one(found, "rate_without", grader="g", class_="yes")
    one(found, "standardised_rate", grader="g", class_="yes")


def test_the_report_puts_swings_beside_what_graders_change_unasked() -> None:
    frame = table(PLAN)
    found = audit(frame, drop=["kind=coded"], standardise=["kind"], by=["kind"])
    shown = str(found.document)
    for title in (
        "Rates without kind=coded",
        "The spread between graders without kind=coded",
        "Rates at another mix of kind",
        "Differences between parts of the responses",
        "no grader was asked twice",
    ):
        assert title in shown
    votes = pl.concat(
        [frame.with_columns(vote=pl.lit(v)) for v in ("1", "2")]
        + [frame.with_columns(vote=pl.lit("3"), label=pl.lit("no"))]
    )
    again = audit(votes, vote="vote", drop=["kind=coded"])
    shown = str(again.document)
    if rows_of(again, "self_disagreement"):
        assert "disagrees with itself" in shown
        assert "no grader was asked twice" not in shown


# --- planted ------------------------------------------------------------------------------------


def planted(seed: int) -> Iterable[tuple[str, str, str, str, str, str]]:
    """Two benchmarks with unlike mixes of three domains and the same 10 points between them.

    Rates are 20, 40 and 60 % by domain, 10 points more in benchmark a; a draws 60, 30 and 10 % of
    its prompts from them, b 10, 30 and 60 %. Prompts give three responses of one chance.
    """
    generator = np.random.default_rng(seed)
    for benchmark, mix, more in (("a", (0.6, 0.3, 0.1), 0.1), ("b", (0.1, 0.3, 0.6), 0.0)):
        domains = generator.choice(3, 150, p=mix)
        for i, domain in enumerate(domains):
            p = np.clip(0.2 + 0.2 * domain + more + generator.normal(0, 0.05), 0, 1)
            for j in range(3):
                label = "yes" if generator.random() < p else "no"
                cluster = f"{benchmark}{i}"
                yield (f"{cluster}.{j}", "g", label, cluster, benchmark, f"d{domain}")


@pytest.mark.parametrize("method", ["auto", "bootstrap"])
def test_standardising_takes_a_difference_of_mixes_out(method: str) -> None:
    # Raw: a has 0.6 · 0.3 + 0.3 · 0.5 + 0.1 · 0.7 = 0.40 and b 0.1 · 0.2 + 0.3 · 0.4 + 0.6 · 0.6 =
    # 0.50: ten points the other way. At one mix a is ten points above. Standard error near 4 points.
    schema = ["response", "grader", "label", "cluster", "benchmark", "domain"]
    frame = pl.DataFrame(list(planted(7)), schema=schema, orient="row")
    options = {
        "by": ["benchmark"],
        "standardise": ["domain"],
        "interval": method,
        "replicates": 400,
    }
    found = audit(frame, **options)
    raw = one(found, "rate_difference", grader="g", class_="yes")
    at_one_mix = one(found, "standardised_rate_difference", grader="g", class_="yes")
    for row, truth in ((raw, -0.10), (at_one_mix, 0.10)):
        assert row["low"] < truth < row["high"]
        assert row["value"] == pytest.approx(truth, abs=0.1)
    assert at_one_mix["line"] == "benchmark=a−b at the mix of domain"
    assert at_one_mix["method"] == ("percentile" if method == "bootstrap" else "jackknife_t")


def test_dropping_a_family_of_the_corpus_gives_the_papers_two_rows() -> None:
    # 100 cores × 9 families; the encoding family is refused by the reference in 20 % and by the
    # other grader in 50 % of the cores, all else in 60 % by both.
    generator = np.random.default_rng(2)
    rows = []
    for core in range(100):
        for family in range(9):
            for grader, encoded in (("ref", 0.2), ("small", 0.5)):
                chance = encoded if family == 0 else 0.6
                label = "refusal" if generator.random() < chance else "evasion"
                rows.append((f"{core}.{family}", grader, label, f"c{core}", f"f{family}"))
    frame = pl.DataFrame(
        rows, schema=["response", "grader", "label", "cluster", "family"], orient="row"
    )
    found = vd.audit(
        vd.read(frame, layout="long", scale="refusal,evasion,comply", reference="ref"),
        drop=["family=f0"],
    )
    # Non-refusal of the reference: 0.4 without, (8 · 0.4 + 0.8) / 9 = 0.444 with: −4.4 points.
    key = {"class_": "non_refusal", "line": "family=f0"}
    row = one(found, "rate_without_minus_rate", grader="ref", **key)
    assert row["low"] < -0.4 / 9 < row["high"]
    assert row["high"] - row["low"] < 0.04
    # The other moves by −0.1 / 9: their moves differ by 3.3 points.
    row = one(found, "rate_without_minus_rate_range", **key)
    assert row["low"] < 0.3 / 9 < row["high"]
    assert row["low"] >= 0
