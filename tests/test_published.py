"""What the paper's printed counts determine: Tables 1, 2, 6, 12, 13 and 14 of MCC, and its flags.

Each table of counts is written as the paper prints it: a cell that is not printed is empty, and
what needs it must be undefined with a reason, never computed as if the count were zero.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire.finding import State, Strength
from voirdire.stats import pairwise

FILE = Path(__file__).parents[2] / "shared" / "reference" / "published.json"
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="the shared figures of the paper do not stand beside this repository"
)
P: dict[str, Any] = (
    json.loads(FILE.read_text(encoding="utf-8"))["missing_compliance_class"]
    if FILE.is_file()
    else {}
)
NOT_PRINTED = "a count that it needs is not printed"
RATE_NAMES = {"comply": "compliance", "non_refusal": "non_refusal"}


def table(corpus: str, graders: Sequence[str], **filled: list[int | None]) -> str:
    """A count table as CSV text; ``filled`` replaces a grader's printed counts."""
    lines = [",".join(["grader", *P["classes"], "total"])]
    for grader in graders:
        counts = filled.get(grader, P["counts"][corpus].get(grader, [None] * 5))
        cells = ["" if n is None else str(n) for n in counts]
        lines.append(",".join([grader, *cells, str(P["n_items"])]))
    return "\n".join(lines) + "\n"


def audit(tmp_path: Path, text: str, **options: Any) -> vd.Audit:
    path = tmp_path / "counts.csv"
    path.write_text(text, encoding="utf-8")
    labels = vd.read(
        path,
        layout="counts",
        scale=P["ordered_scale"],
        off_scale=P["off_scale"],
        refusal_like=["refused_in_cot"],
        reference=P["reference"],
    )
    return vd.audit(labels, **options)


def row(found: vd.Audit, statistic: str, **keys: str) -> dict[str, Any]:
    rows = found.results.filter(
        pl.col("statistic") == statistic, *(pl.col(k) == v for k, v in keys.items())
    )
    assert len(rows) == 1, f"{statistic} {keys}: {len(rows)} rows"
    return rows.row(0, named=True)


def undefined(found: vd.Audit, statistic: str, reason: str = NOT_PRINTED, **keys: str) -> None:
    one = row(found, statistic, **keys)
    assert (one["value"], one["low"], one["high"]) == (None, None, None)
    assert one["reason"] == reason


def flags(found: vd.Audit) -> set[tuple[str, str]]:
    return {
        (f.grader, f.class_)
        for f in found.findings
        if f.code == "class_collapse" and f.state is State.FOUND
    }


ROSTER = P.get("roster", [])
DENSE = P.get("dense_small", [])
LARGE_HELD_OUT = [g for g in P.get("held_out", []) if "Mistral" not in g]
MISTRAL = next((g for g in P.get("held_out", []) if "Mistral" in g), "")


# --- Tables 1, 7 and 12: rates and the floor ------------------------------------------------------

TABLE1 = [
    (corpus, grader, rate, number)
    for corpus, graders in P.get("table1_rates_pct", {}).items()
    for grader, rates in graders.items()
    for rate, number in rates.items()
]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, vd.Audit]:
    return {
        corpus: audit(tmp_path_factory.mktemp(corpus), table(corpus, ROSTER)) for corpus in "AB"
    }


@pytest.mark.parametrize(("corpus", "grader", "rate", "printed"), TABLE1)
def test_rates_of_table_1_come_out_to_half_a_printed_digit(corpora, corpus, grader, rate, printed):
    found = row(corpora[corpus], "rate", grader=grader, **{"class": RATE_NAMES[rate]})
    assert 100 * found["value"] == pytest.approx(printed, abs=0.05 + 1e-9)
    assert found["method"] == "wilson"
    assert found["n"] == P["n_items"]
    assert found["high"] > found["low"]


@pytest.mark.parametrize(("corpus", "floor"), [("A", 47.2), ("B", 71.6)])
def test_the_floor_of_table_12_is_the_references_most_frequent_class(corpora, corpus, floor):
    assert P["table12_held_out_small"][corpus]["floor_pct"] == floor
    found = row(corpora[corpus], "competence_floor", other=P["reference"])
    assert 100 * found["value"] == pytest.approx(floor, abs=0.05)


def test_a_rate_with_an_unprinted_count_is_undefined_and_a_rate_without_it_is_not(corpora):
    on_a, on_b = corpora["A"], corpora["B"]
    undefined(on_a, "rate", grader="claude-opus-5", **{"class": "non_refusal"})
    for grader in ("gpt-oss-20b", "gpt-oss-120b", "claude-opus-5"):
        undefined(on_b, "rate", grader=grader, **{"class": "non_refusal"})
        found = row(on_b, "rate", grader=grader, **{"class": "compliance"})
        assert found["value"] == P["counts"]["B"][grader][2] / 900


@pytest.mark.parametrize("corpus", ["A", "B"])
def test_an_unprinted_cell_is_undefined_and_never_zero(corpora, corpus):
    for grader in ROSTER:
        for class_, count in zip(P["classes"], P["counts"][corpus][grader], strict=True):
            if count is None:
                undefined(
                    corpora[corpus],
                    "label_count",
                    "the count is not printed",
                    grader=grader,
                    **{"class": class_},
                )
                one = row(corpora[corpus], "label_share", grader=grader, **{"class": class_})
                assert one["value"] is None
                assert one["reason"]
            else:
                found = row(corpora[corpus], "label_count", grader=grader, **{"class": class_})
                assert found["value"] == count


# --- Table 6: dispersion --------------------------------------------------------------------------

DISPERSION = (
    ("rate_max_over_min", "max_over_min", 1),
    ("rate_second_over_second", "second_over_second", 1),
    ("rate_iqr", "iqr_points", 100),
    ("rate_range", "range_points", 100),
)


def check_dispersion(found: vd.Audit, rate: str, printed: dict[str, Any]) -> None:
    key = {"class": rate, "other": ""}
    for statistic, name, factor in DISPERSION:
        value = row(found, statistic, **key)["value"]
        assert factor * value == pytest.approx(printed[name], abs=0.05 + 1e-9), statistic
    low, high = (row(found, f"rate_leave_one_out_{end}", **key)["value"] for end in ("low", "high"))
    assert (low, high) == pytest.approx(tuple(printed["leave_one_out"]), abs=0.05 + 1e-9)


@pytest.mark.parametrize("corpus", ["A", "B"])
def test_dispersion_of_the_compliance_rate_is_that_of_table_6(corpora, corpus):
    check_dispersion(corpora[corpus], "compliance", P["table6_dispersion"][f"{corpus}_comply"])


@pytest.mark.parametrize("corpus", ["A", "B"])
def test_dispersion_of_the_non_refusal_rate_is_undetermined_and_says_why(corpora, corpus):
    statistics = [s for s, _, _ in DISPERSION]
    statistics += ["rate_leave_one_out_low", "rate_leave_one_out_high", "rate_sd_log_odds"]
    for statistic in [*statistics, "graders_at_zero"]:
        undefined(corpora[corpus], statistic, other="", **{"class": "non_refusal"})


@pytest.mark.parametrize(("in_thought", "iqr"), [(5, 7.1), (0, 7.6)])
def test_the_printed_iqr_needs_the_count_that_is_not_printed(tmp_path, in_thought, iqr):
    # 900 − 365 − 325 − 198 = 12 labels of claude-opus-5 are gibberish or refused in thought.
    filled = [365, 325, 198, 12 - in_thought, in_thought]
    found = audit(tmp_path, table("A", ROSTER, **{"claude-opus-5": filled}))
    check_dispersion(
        found, "non_refusal", {**P["table6_dispersion"]["A_non_refusal"], "iqr_points": iqr}
    )


def test_a_grader_at_zero_leaves_the_ratio_and_is_counted_beside_it(corpora):
    key = {"class": "compliance", "other": ""}
    assert row(corpora["B"], "graders_at_zero", **key)["value"] == 1
    assert row(corpora["A"], "graders_at_zero", **key)["value"] == 0
    assert row(corpora["B"], "rate_max_over_min", **key)["value"] == pytest.approx(179 / 8)
    # Range and 2nd/2nd keep the zero: 179/900 − 0, and 164 over 8.
    assert row(corpora["B"], "rate_range", **key)["value"] == pytest.approx(179 / 900)
    assert row(corpora["B"], "rate_second_over_second", **key)["value"] == pytest.approx(164 / 8)


@pytest.mark.parametrize("suffix", [".txt", ".md", ".html"])
def test_the_report_says_at_least_where_a_grader_is_at_zero(corpora, tmp_path, suffix):
    pages = {}
    for corpus in "AB":
        path = tmp_path / f"{corpus}{suffix}"
        corpora[corpus].write(path)
        pages[corpus] = path.read_text(encoding="utf-8")
    assert re.search(r"at least 22\.4(-fold)?[,;] (with )?1 grader at zero", pages["B"])
    assert not re.search(r"at least \d+(\.\d+)?-fold", pages["A"])


def test_the_sentence_of_the_spread_reads_at_least_and_one_grader_at_zero(corpora):
    from voirdire.scene import Estimates
    from voirdire.stats.spread import ratio_in_words
    from voirdire.wording import plain

    words = plain(ratio_in_words(Estimates(corpora["B"].estimates), "compliance", "", ""))
    assert words == "at least 22.4-fold; 1 grader at zero"


# --- Table 14: with the held-out graders, with and without the dense small ones ---------------------


def test_table_14_on_corpus_a_with_the_held_out_graders(tmp_path):
    found = audit(tmp_path, table("A", [*ROSTER, *LARGE_HELD_OUT]), without=DENSE)
    printed = P["table14_spreads"]
    for other, name in (("", "A_all"), (f"without:{'+'.join(DENSE)}", "A_without_dense_small")):
        key = {"class": "compliance", "other": other}
        ratio = row(found, "rate_max_over_min", **key)["value"]
        assert ratio == pytest.approx(printed[name]["comply_ratio"], abs=0.05)
        points = 100 * row(found, "rate_range", **key)["value"]
        assert points == pytest.approx(printed[name]["comply_range"], abs=0.05 + 1e-9)
        undefined(found, "rate_range", other=other, **{"class": "non_refusal"})
    flagged = f"without_flagged:{'+'.join(DENSE)}"
    ratio = row(found, "rate_max_over_min", other=flagged, **{"class": "compliance"})["value"]
    assert ratio == pytest.approx(printed["A_without_dense_small"]["comply_ratio"], abs=0.05)


def test_table_14_on_corpus_b_as_far_as_the_printed_counts_go(tmp_path):
    # The two large held-out graders' counts on B are not printed. The printed spreads are those of
    # the eight of the roster, so neither of the two is an extreme; with their empty rows in the
    # table nothing may be said.
    printed = P["table14_spreads"]
    found = audit(tmp_path, table("B", ROSTER), without=DENSE)
    for other, name in (("", "B_all"), (f"without:{'+'.join(DENSE)}", "B_without_dense_small")):
        key = {"class": "compliance", "other": other}
        ratio = row(found, "rate_max_over_min", **key)["value"]
        assert ratio == pytest.approx(printed[name]["comply_ratio"], abs=0.05)
        points = 100 * row(found, "rate_range", **key)["value"]
        assert points == pytest.approx(printed[name]["comply_range"], abs=0.05 + 1e-9)
    low, high = P["abstract_without_collapsing"]["comply_ratio_range"]
    assert low - 0.05 <= ratio <= high + 0.05
    unknown = audit(tmp_path, table("B", [*ROSTER, *LARGE_HELD_OUT]), without=DENSE)
    for statistic in ("rate_max_over_min", "rate_range", "rate_iqr", "graders_at_zero"):
        undefined(unknown, statistic, other="", **{"class": "compliance"})


# --- flags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("corpus", ["A", "B"])
def test_the_roster_has_exactly_the_printed_flags_and_never_more_than_indicative(corpora, corpus):
    assert flags(corpora[corpus]) == {(g, "compliance") for g in DENSE}
    found = [f for f in corpora[corpus].findings if f.code == "class_collapse"]
    strengths = {f.strength for f in found if f.state is State.FOUND}
    assert strengths == {Strength.INDICATIVE}
    assert not any(f.code == "class_inflation" for f in corpora[corpus].findings)


@pytest.mark.parametrize("corpus", ["A", "B"])
def test_with_the_held_out_graders_mistral_is_flagged_too_and_nobody_else(tmp_path, corpus):
    graders = [g for g in [*ROSTER, *P["held_out"]] if g in P["counts"][corpus]]
    assert MISTRAL in graders
    found = audit(tmp_path, table(corpus, graders))
    assert flags(found) == {(g, "compliance") for g in P["flagged_on_A_and_B"]}
    for name in LARGE_HELD_OUT:
        assert P["table13_A"][name]["flagged"] == []


@pytest.mark.parametrize(
    ("corpus", "below", "flagged"),
    [
        ("A", 0.31, DENSE[:2]),  # Qwen3-8B stands at 64/204 = 0.314
        ("A", 0.32, DENSE),
        ("A", 0.40, DENSE),
        ("A", 0.55, [*DENSE, "Llama-3.3-70B"]),  # 110/204 = 0.539
        ("B", 0.31, DENSE[:2]),  # 51/164 = 0.311
        ("B", 0.32, DENSE),
        ("B", 0.40, DENSE),
        ("B", 0.42, [*DENSE, "Llama-3.3-70B"]),  # 67/164 = 0.409
    ],
)
def test_any_threshold_between_0_314_and_0_409_gives_the_printed_flags(
    tmp_path, corpus, below, flagged
):
    found = audit(tmp_path, table(corpus, ROSTER), collapse_below=below)
    assert {g for g, c in flags(found) if c == "compliance"} == set(flagged)


def test_zero_counts_have_a_ratio_of_zero_with_an_upper_limit(corpora):
    found = row(corpora["B"], "collapse_ratio", grader="Llama-3.1-8B", **{"class": "compliance"})
    assert found["other"] == "gpt-oss-20b"
    assert (found["value"], found["low"]) == (0, 0)
    # 0 beside 164: the exact upper limit of the share, 1 − 0.025^(1/164), as a ratio.
    share = 1 - 0.025 ** (1 / 164)
    assert found["high"] == pytest.approx(share / (1 - share), rel=1e-9)
    assert found["method"] == "poisson_ratio"


def test_counts_alone_never_say_which_responses_the_graders_share(corpora):
    for corpus in "AB":
        statistics = set(corpora[corpus].results["statistic"])
        assert not statistics & {"kept", "moved", "found", "neighbour_share", "agreement"}
        assert not statistics & {"cohen_kappa", "class_agreement", "krippendorff_alpha_nominal"}


# --- Table 2: moves, on labels planted as the table prints them -------------------------------------


@pytest.mark.parametrize("grader", [*ROSTER[:4], "claude-opus-5"])
def test_moves_of_table_2_come_out_of_labels_planted_as_printed(grader):
    printed = P["table2_moves_of_reference_compliant"]["A"]
    moves, n = printed[grader], printed["n"]
    low, middle, top = P["ordered_scale"]
    assert moves["stays"] + moves["evasion"] + moves["refusal"] == n
    assert moves["stays"] + moves["found"] == P["counts"]["A"][grader][2]
    pairs = [(top, top)] * moves["stays"] + [(middle, top)] * moves["evasion"]
    pairs += [(low, top)] * moves["refusal"] + [(top, middle)] * moves["found"]
    pairs += [(low, low)] * 500
    frame = pl.DataFrame(
        [
            (f"u{i}", name, label)
            for i, pair in enumerate(pairs)
            for name, label in zip((grader, P["reference"]), pair, strict=True)
        ],
        schema=["response", "grader", "label"],
        orient="row",
    )
    found = vd.audit(vd.read(frame, scale=P["ordered_scale"], reference=P["reference"]))
    key = {"grader": grader, "other": P["reference"], "class": top}
    kept = row(found, "kept", **key)
    assert (kept["value"], kept["n"]) == (moves["stays"], n)
    for to in (low, middle):
        moved = row(found, "moved", to_class=to, **key)
        assert (moved["value"], moved["n"]) == (moves["evasion" if to == middle else "refusal"], n)
    assert row(found, "found", **key)["value"] == moves["found"]
    share = row(found, "neighbour_share", **key)
    assert share["value"] == pytest.approx(moves["evasion"] / (n - moves["stays"]))
    ratio = row(found, "collapse_ratio", **key)
    assert ratio["value"] == pytest.approx((moves["stays"] + moves["found"]) / n)


# --- Tables 12 and 13: kappa from the printed agreement and the printed margins ---------------------


@pytest.mark.parametrize(
    ("corpus", "grader"), [("A", "gpt-oss-20b"), ("A", "gpt-oss-120b"), ("B", MISTRAL)]
)
def test_kappa_follows_from_the_printed_agreement_and_margins(corpus, grader):
    where = P["table12_held_out_small"] if grader == MISTRAL else P[f"table13_{corpus}"]
    printed = where[corpus] if grader == MISTRAL else where[grader]
    own = np.array(P["counts"][corpus][grader], dtype=float)
    reference = np.array(P["counts"][corpus][P["reference"]], dtype=float)
    # Any table of pairs with these margins has this chance agreement.
    chance = pairwise.chance_cohen(np.outer(own, reference) / 900)
    by_hand = sum(a * b for a, b in zip(own, reference, strict=True)) / 900**2
    assert chance == pytest.approx(by_hand, abs=1e-14)
    kappa = float(pairwise.beyond_chance(np.array(printed["agreement_pct"] / 100), chance))
    # Half a digit of the agreement moves kappa by 0.0005 / (1 − chance); half of its own beside it.
    assert kappa == pytest.approx(printed["kappa"], abs=0.0005 / (1 - by_hand) + 0.0005)


# --- the conventions of Table 6, on other numbers ---------------------------------------------------


def spread_by_loops(rates: Sequence[float]) -> dict[str, float]:
    """The conventions of Table 6 in words: ratios leave zeros out, the others do not."""

    def ratio(some: Sequence[float]) -> float:
        above = [r for r in some if r > 0]
        return max(above) / min(above) if len(above) >= 2 else math.nan

    def quantile(p: float) -> float:
        ordered, place = sorted(rates), p * (len(rates) - 1)
        low = math.floor(place)
        high = min(low + 1, len(rates) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    left = [ratio([r for j, r in enumerate(rates) if j != i]) for i in range(len(rates))]
    left = [r for r in left if not math.isnan(r)]
    ordered = sorted(rates)
    made = {
        "rate_max_over_min": ratio(rates),
        "rate_leave_one_out_low": min(left, default=math.nan),
        "rate_leave_one_out_high": max(left, default=math.nan),
        "rate_range": max(rates) - min(rates),
        "rate_iqr": quantile(0.75) - quantile(0.25),
        "rate_second_over_second": math.nan,
        "rate_sd_log_odds": math.nan,
        "graders_at_zero": float(sum(r == 0 for r in rates)),
    }
    if len(rates) >= 3 and ordered[1] > 0:
        made["rate_second_over_second"] = ordered[-2] / ordered[1]
    if all(0 < r < 1 for r in rates):
        logits = [math.log(r / (1 - r)) for r in rates]
        mean = sum(logits) / len(logits)
        made["rate_sd_log_odds"] = math.sqrt(
            sum((x - mean) ** 2 for x in logits) / (len(logits) - 1)
        )
    return made


PANELS = [
    *([list(p) for p in itertools.combinations_with_replacement([0, 4, 9, 30], 3)]),
    [7, 7], [0, 5], [0, 0], [0, 0, 8], [0, 0, 8, 12], [50, 3, 20, 11, 2], [0, 1, 2, 50, 50, 49, 0],
]  # fmt: skip


@pytest.mark.parametrize("counts", PANELS, ids=["-".join(map(str, p)) for p in PANELS])
def test_dispersion_follows_its_conventions_in_words(tmp_path, counts):
    lines = ["grader,no,yes", *(f"g{i},{50 - n},{n}" for i, n in enumerate(counts))]
    path = tmp_path / "counts.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = vd.audit(vd.read(path, layout="counts", scale="no,yes"))
    for statistic, expected in spread_by_loops([n / 50 for n in counts]).items():
        one = row(found, statistic, other="", **{"class": "yes"})
        if math.isnan(expected):
            assert one["value"] is None, statistic
            assert one["reason"]
            assert one["reason"] != NOT_PRINTED
        else:
            assert one["value"] == pytest.approx(expected, abs=1e-12), statistic


def test_a_ratio_to_a_rate_of_zero_is_not_blamed_on_counts_it_does_not_need(tmp_path):
    # With Mistral-7B two graders are at zero compliance on B: 2nd/2nd divides by zero.
    found = audit(tmp_path, table("B", [*ROSTER, MISTRAL]))
    one = row(found, "rate_second_over_second", other="", **{"class": "compliance"})
    assert one["value"] is None
    assert "zero" in one["reason"]
