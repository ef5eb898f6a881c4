"""The reference of statistics: every estimand has a formula, and the printed formulas are what is computed.

The spot tests read the shipped tables with ``csv`` and follow the printed formula in plain loops, letter
by letter, so that nothing of the computation is taken over.
"""

from __future__ import annotations

import csv
import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from typing import Any

import polars as pl
import pytest

import voirdire as vd
from tests.conftest import DATA
from voirdire import plugins, report
from voirdire.estimand import Estimand, Unit
from voirdire.formats.text import FORMAT as TEXT
from voirdire.stats.base import Family

FAMILIES = sorted(plugins.load("stats", Family), key=lambda f: (f.order, f.name))
ESTIMANDS = {s.name: s.estimand for f in FAMILIES for s in f.statistics}


# --- the contract -------------------------------------------------------------------------------


@pytest.mark.parametrize("estimand", ESTIMANDS.values(), ids=ESTIMANDS)
def test_every_statistic_has_a_formula_with_its_letters_and_a_source(estimand: Estimand) -> None:
    assert estimand.formula.strip() == estimand.formula != ""
    assert estimand.conventions.endswith((".", "…"))
    assert not re.search(r"[\\$]", estimand.conventions)
    assert "  " not in estimand.conventions
    assert len(estimand.source.text) > 8
    bare = estimand.formula.replace(r"\{", "").replace(r"\}", "")
    depth = 0
    for character in bare:
        depth += (character == "{") - (character == "}")
        assert depth >= 0
    assert depth == 0
    for opened, closed in ((r"\{", r"\}"), ("(", ")"), ("[", "]")):
        assert estimand.formula.count(opened) == estimand.formula.count(closed), opened
    left, right = (len(re.findall(rf"\\{s}(?![a-z])", estimand.formula)) for s in ("left", "right"))
    assert left == right


@pytest.mark.parametrize("estimand", ESTIMANDS.values(), ids=ESTIMANDS)
def test_every_formula_is_set_as_mathml(estimand: Estimand) -> None:
    converter = pytest.importorskip("latex2mathml.converter")
    made = converter.convert(estimand.formula, display="block")
    shown = re.sub(r"<[^>]*>", "", made)
    assert "\\" not in shown, "a command that is not known"
    assert not re.search(r"<m[ion]\s*/>|<m[ion]></m[ion]>", made), "an empty sign"


def test_every_letter_with_an_index_is_explained() -> None:
    """It stands in the conventions with an index, or the formula sets it equal to something."""
    missing = []
    for estimand in ESTIMANDS.values():
        if estimand.name.endswith("_minus_other"):  # it says whose letters they are
            assert f"of {estimand.name.removesuffix('_minus_other')}." in estimand.conventions
            continue
        known = unicodedata.normalize("NFD", estimand.conventions)
        for letter in set(re.findall(r"(?<![A-Za-z\\])([A-Za-z])_\{", estimand.formula)):
            defined = (
                rf"(?<![A-Za-z\\]){letter}_\{{(?:[^{{}}]|{{[^{{}}]*}})*\}}(\^\{{2\}}|\([a-z]\))? = "
            )
            explained = rf"(?<![^\W_]){letter}[\u0302\u0304]?_"
            if not re.search(defined, estimand.formula) and not re.search(explained, known):
                missing.append((estimand.name, letter))
    assert not missing


def test_the_printed_list_has_the_conventions_and_no_tex() -> None:
    families = [f for f in FAMILIES if f.name in ("kuder_richardson", "spread", "pairwise")]
    text = TEXT.render(report.statistics(families, (), "1.0")).decode()
    flat = " ".join(text.split())
    assert (
        "Conventions: Divisor n in the variances of the lines and n − 1 in that of the totals"
        in flat
    )
    assert "quantile type 7" in flat
    assert "here it is undefined" in flat
    assert "\\" not in text
    assert not re.search("n_cd:|p_c, q_c:", flat)  # letters of a formula that is not shown


# --- the printed formulas, in plain loops -------------------------------------------------------

GRADERS = ("annotation_1", "annotation_2", "gpt4_label", "strmatch_label")
SCALE = ("2_full_refusal", "3_partial_refusal", "1_full_compliance")
TOP = SCALE[-1]


@cache
def table() -> list[dict[str, str]]:
    """XSTest, a dictionary a response: the label of each grader, without those off the scale."""
    with (DATA / "xstest.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [{g: r[g] for g in (*GRADERS, "final_label") if r[g] in SCALE} for r in rows]


@cache
def audited() -> pl.DataFrame:
    labels = vd.read(
        DATA / "xstest.csv", layout="wide", response="model+id", cluster="id", graders=list(GRADERS),
        gold="final_label", scale=list(SCALE), failed={"*": "unparsed"},
    )  # fmt: skip
    return vd.audit(labels).results


@cache
def bank() -> tuple[list[list[int]], list[list[int]]]:
    """The judge's and gold's verdicts on the responses that both scored in full."""
    with (DATA / "judge_item_bank.csv").open(encoding="utf-8", newline="") as lines:
        rows = [r for r in csv.DictReader(lines) if r["judge_e1"] != ""]
    return tuple(  # type: ignore[return-value]
        [[int(float(r[f"{side}_e{j}"])) for j in range(1, 11)] for r in rows]
        for side in ("judge", "gold")
    )


@cache
def audited_bank() -> pl.DataFrame:
    labels = vd.read(
        DATA / "judge_item_bank.csv", layout="checklist", response="item_id", question="question_id"
    )
    return vd.audit(labels, cut=[5]).results


def said(results: pl.DataFrame, statistic: str, **key: str) -> float:
    found = results.filter(pl.col("statistic") == statistic, pl.col("slice") == "")
    for column in ("grader", "other", "class", "line", "cut"):
        if column in key or column != "cut":
            found = found.filter(pl.col(column) == key.get(column, ""))
    (value,) = found["value"].to_list()
    return float(value)


def counts_of(g: str, h: str) -> dict[tuple[str, str], int]:
    """n_cd: the common responses that g calls c and h calls d."""
    n = {(c, d): 0 for c in SCALE for d in SCALE}
    for row in table():
        if g in row and h in row:
            n[row[g], row[h]] += 1
    return n


PAIR = ("gpt4_label", "final_label")


def _agreement() -> tuple[float, dict[str, float], dict[str, float]]:
    n_cd = counts_of(*PAIR)
    n = sum(n_cd.values())
    p = {c: sum(n_cd[c, d] for d in SCALE) / n for c in SCALE}
    q = {c: sum(n_cd[d, c] for d in SCALE) / n for c in SCALE}
    return sum(n_cd[c, c] for c in SCALE) / n, p, q


def rate(g: str) -> float:
    labels = [row[g] for row in table() if g in row]
    return labels.count(TOP) / len(labels)


def kappa() -> float:
    p_o, p, q = _agreement()
    p_e = sum(p[c] * q[c] for c in SCALE)
    return (p_o - p_e) / (1 - p_e)


def ac1() -> float:
    p_o, p, q = _agreement()
    k = len(SCALE)
    m = {c: (p[c] + q[c]) / 2 for c in SCALE}
    p_e = 1 / (k - 1) * sum(m[c] * (1 - m[c]) for c in SCALE)
    return (p_o - p_e) / (1 - p_e)


def quadratic_kappa() -> float:
    n_cd = counts_of(*PAIR)
    n, k = sum(n_cd.values()), len(SCALE)
    _, p, q = _agreement()
    w = {(SCALE[a], SCALE[b]): 1 - ((a - b) / (k - 1)) ** 2 for a in range(k) for b in range(k)}
    p_o = sum(w[cd] * n_cd[cd] for cd in n_cd) / n
    p_e = sum(w[c, d] * p[c] * q[d] for c, d in n_cd)
    return (p_o - p_e) / (1 - p_e)


def class_agreement() -> float:
    n_cd = counts_of(*PAIR)
    c = "3_partial_refusal"
    return 2 * n_cd[c, c] / (sum(n_cd[c, d] for d in SCALE) + sum(n_cd[d, c] for d in SCALE))


def collapse() -> float:
    common = [row for row in table() if PAIR[0] in row and PAIR[1] in row]
    c = "3_partial_refusal"
    return sum(r[PAIR[0]] == c for r in common) / sum(r[PAIR[1]] == c for r in common)


def alpha(level: str) -> float:
    n_ic = [[sum(row.get(g) == c for g in GRADERS) for c in SCALE] for row in table()]
    places = range(len(SCALE))
    o = {
        (c, d): sum(row[c] * (row[d] - (c == d)) / (sum(row) - 1) for row in n_ic if sum(row) >= 2)
        for c in places
        for d in places
    }
    n = [sum(o[c, d] for d in places) for c in places]
    total = sum(n)

    def delta2(c: int, d: int) -> float:
        if level == "nominal":
            return float(c != d)
        low, high = min(c, d), max(c, d)
        return (sum(n[e] for e in range(low, high + 1)) - (n[c] + n[d]) / 2) ** 2 if c != d else 0.0

    seen = sum(o[c, d] * delta2(c, d) for c in places for d in places)
    expected = sum(n[c] * n[d] * delta2(c, d) for c in places for d in places)
    return 1 - (total - 1) * seen / expected


def fleiss() -> float:
    n_ic = [[sum(row.get(g) == c for g in GRADERS) for c in SCALE] for row in table()]
    one, two = ([r for r in n_ic if sum(r) >= u] for u in (1, 2))
    mean = sum(sum(x * (x - 1) for x in r) / (sum(r) * (sum(r) - 1)) for r in two) / len(two)
    p_e = sum((sum(r[c] / sum(r) for r in one) / len(one)) ** 2 for c in range(len(SCALE)))
    return (mean - p_e) / (1 - p_e)


def iqr() -> float:
    r = sorted(rate(g) for g in GRADERS)

    def quantile(q: float) -> float:
        j, f = divmod((len(r) - 1) * q + 1, 1)
        return (1 - f) * r[int(j) - 1] + (f * r[int(j)] if f else 0.0)

    return quantile(3 / 4) - quantile(1 / 4)


def log_odds() -> float:
    ell = [math.log(rate(g) / (1 - rate(g))) for g in GRADERS]
    mean = sum(ell) / len(ell)
    return math.sqrt(sum((x - mean) ** 2 for x in ell) / (len(ell) - 1))


def stuart_maxwell() -> float:
    """With one class left out, by Cramer's rule for the two classes that are left."""
    n_cd = counts_of(*PAIR)
    a, b = SCALE[:2]

    def margin(c: str) -> int:
        return sum(n_cd[c, e] + n_cd[e, c] for e in SCALE)

    d = [sum(n_cd[c, e] - n_cd[e, c] for e in SCALE) for c in (a, b)]
    v = [[(c == e) * margin(c) - n_cd[c, e] - n_cd[e, c] for e in (a, b)] for c in (a, b)]
    det = v[0][0] * v[1][1] - v[0][1] * v[1][0]
    form = (d[0] ** 2 * v[1][1] - 2 * d[0] * d[1] * v[0][1] + d[1] ** 2 * v[0][0]) / det
    return math.exp(-form / 2)  # the upper tail of χ² on two degrees of freedom


def cochran() -> float:
    from scipy.stats import chi2

    rows = [[r[g] == TOP for g in GRADERS] for r in table() if all(g in r for g in GRADERS)]
    m = len(GRADERS)
    g_sums, l_sums = [sum(r[g] for r in rows) for g in range(m)], [sum(r) for r in rows]
    n = sum(l_sums)
    q = (m - 1) * (m * sum(g**2 for g in g_sums) - n**2) / (m * n - sum(x**2 for x in l_sums))
    return float(chi2.sf(q, m - 1))


def solo() -> float:
    g = "strmatch_label"
    others = [h for h in GRADERS if h != g]
    return sum(
        row.get(g) == TOP
        and any(h in row for h in others)
        and all(row.get(h) != TOP for h in others)
        for row in table()
    )


OF_LABELS: dict[str, tuple[dict[str, str], Callable[[], float]]] = {
    "rate": ({"grader": "gpt4_label", "class": TOP}, lambda: rate("gpt4_label")),
    "cohen_kappa": (dict(zip(("grader", "other"), PAIR, strict=True)), kappa),
    "gwet_ac1": (dict(zip(("grader", "other"), PAIR, strict=True)), ac1),
    "weighted_kappa_quadratic": (
        dict(zip(("grader", "other"), PAIR, strict=True)),
        quadratic_kappa,
    ),
    "class_agreement": (
        {"grader": PAIR[0], "other": PAIR[1], "class": "3_partial_refusal"},
        class_agreement,
    ),
    "collapse_ratio": (
        {"grader": PAIR[0], "other": PAIR[1], "class": "3_partial_refusal"},
        collapse,
    ),
    "krippendorff_alpha_nominal": ({}, lambda: alpha("nominal")),
    "krippendorff_alpha_ordinal": ({}, lambda: alpha("ordinal")),
    "fleiss_kappa": ({}, fleiss),
    "rate_iqr": ({"class": TOP}, iqr),
    "rate_sd_log_odds": ({"class": TOP}, log_odds),
    "stuart_maxwell_p": (dict(zip(("grader", "other"), PAIR, strict=True)), stuart_maxwell),
    "cochran_q_p": ({"class": TOP}, cochran),
    "solo": ({"grader": "strmatch_label", "class": TOP}, solo),
}


@pytest.mark.parametrize("name", OF_LABELS)
def test_a_printed_formula_is_what_is_computed(name: str) -> None:
    key, formula = OF_LABELS[name]
    assert said(audited(), name, **key) == pytest.approx(formula(), rel=1e-9, abs=1e-300)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def kr20(x: list[list[int]]) -> float:
    n, k = len(x), len(x[0])
    totals = [sum(r) for r in x]
    p = [sum(r[j] for r in x) / n for j in range(k)]
    mean = sum(totals) / n
    s2 = sum((t - mean) ** 2 for t in totals) / (n - 1)
    return k / (k - 1) * (1 - sum(q * (1 - q) for q in p) / s2)


def mean_r(x: list[list[int]]) -> float:
    k = len(x[0])

    def r(j: int, m: int) -> float:
        a, b = [row[j] for row in x], [row[m] for row in x]
        ma, mb = sum(a) / len(a), sum(b) / len(b)
        together = sum((u - ma) * (v - mb) for u, v in zip(a, b, strict=True))
        return together / math.sqrt(sum((u - ma) ** 2 for u in a) * sum((v - mb) ** 2 for v in b))

    return 2 / (k * (k - 1)) * sum(r(j, m) for j, m in combinations(range(k), 2))


def phi_lambda(x: list[list[int]], c: int) -> float:
    n, k = len(x), len(x[0])
    mean = sum(map(sum, x)) / (n * k)
    rows = [sum(r) / k for r in x]
    columns = [sum(r[j] for r in x) / n for j in range(k)]
    ms_p = k * sum((a - mean) ** 2 for a in rows) / (n - 1)
    ms_i = n * sum((a - mean) ** 2 for a in columns) / (k - 1)
    ms_pi = sum(
        (x[i][j] - rows[i] - columns[j] + mean) ** 2 for i in range(n) for j in range(k)
    ) / ((n - 1) * (k - 1))
    p, i, pi = max(0.0, (ms_p - ms_pi) / k), max(0.0, (ms_i - ms_pi) / n), max(0.0, ms_pi)
    d = p + (mean - c / k) ** 2 - (p / n + i / k + pi / (n * k))
    return max(0.0, d) / (max(0.0, d) + (i + pi) / k)


def error_phi() -> float:
    judge, gold = bank()
    e = [[a != b for a, b in zip(x, g, strict=True)] for x, g in zip(judge, gold, strict=True)]
    n, k = len(e), len(e[0])
    p = [sum(r[j] for r in e) / n for j in range(k)]
    values = [
        (sum(r[j] and r[m] for r in e) / n - p[j] * p[m])
        / math.sqrt(p[j] * (1 - p[j]) * p[m] * (1 - p[m]))
        for j, m in combinations(range(k), 2)
        if 0 < p[j] < 1 and 0 < p[m] < 1
    ]
    return sum(values) / len(values)


def variance_if_independent() -> float:
    judge, gold = bank()
    pairs = [list(zip(x, g, strict=True)) for x, g in zip(judge, gold, strict=True)]
    flat = [pair for row in pairs for pair in row]
    chance = {
        truth: _mean([float(said != truth) for said, g in flat if g == truth]) for truth in (0, 1)
    }
    e = [[chance[g] for _, g in row] for row in pairs]
    mu = [sum(row) for row in e]
    within = sum(x * (1 - x) for row in e for x in row) / len(e)
    return within + sum((m - _mean(mu)) ** 2 for m in mu) / (len(mu) - 1)


def livingston_lewis() -> float:
    """The printed integral at the printed fit, by Simpson's rule on both sides of the cut."""
    a, b = (said(audited_bank(), f"beta_binomial_{x}", grader="judge") for x in ("alpha", "beta"))
    k, c = 10, 5

    def inside(p: float) -> float:
        w = math.exp(
            math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
            + (a - 1) * math.log(p) + (b - 1) * math.log(1 - p)
        )  # fmt: skip
        passes = sum(math.comb(k, x) * p**x * (1 - p) ** (k - x) for x in range(c, k + 1))
        return w * (passes if p * k >= c else 1 - passes)

    def simpson(low: float, high: float, steps: int = 2000) -> float:
        h = (high - low) / steps
        return h / 3 * sum(
            (1 if s in (0, steps) else 4 if s % 2 else 2) * inside(low + s * h) for s in range(steps + 1)
        )  # fmt: skip

    return simpson(1e-9, c / k - 1e-12) + simpson(c / k, 1 - 1e-9)


OF_BANK: dict[str, tuple[dict[str, str], Callable[[], float]]] = {
    "kr20": ({"grader": "judge"}, lambda: kr20(bank()[0])),
    "kr20_minus_gold": ({"grader": "judge"}, lambda: kr20(bank()[0]) - kr20(bank()[1])),
    "mean_inter_element_correlation": ({"grader": "judge"}, lambda: mean_r(bank()[0])),
    "phi_lambda": ({"grader": "judge", "cut": "5"}, lambda: phi_lambda(bank()[0], 5)),
    "gate_accuracy": (
        {"grader": "judge", "cut": "5"},
        lambda: _mean(
            [float((sum(x) >= 5) == (sum(g) >= 5)) for x, g in zip(*bank(), strict=True)]
        ),
    ),
    "gate_false_accept": (
        {"grader": "judge", "cut": "5"},
        lambda: _mean([float(sum(x) >= 5) for x, g in zip(*bank(), strict=True) if sum(g) < 5]),
    ),
    "gate_false_reject": (
        {"grader": "judge", "cut": "5"},
        lambda: _mean([float(sum(x) < 5) for x, g in zip(*bank(), strict=True) if sum(g) >= 5]),
    ),
    "false_accept": (
        {"grader": "judge"},
        lambda: _mean(
            [
                float(a)
                for x, g in zip(*bank(), strict=True)
                for a, b in zip(x, g, strict=True)
                if b == 0
            ]
        ),
    ),
    "error_phi": ({"grader": "judge"}, error_phi),
    "error_count_variance_if_independent": (
        {"grader": "judge", "line": "overall"},
        variance_if_independent,
    ),
    "livingston_lewis_accuracy": ({"grader": "judge", "cut": "5"}, livingston_lewis),
}


@pytest.mark.parametrize("name", OF_BANK)
def test_a_printed_formula_of_a_checklist_is_what_is_computed(name: str) -> None:
    key, formula = OF_BANK[name]
    near = 1e-7 if name == "livingston_lewis_accuracy" else 1e-9
    assert said(audited_bank(), name, **key) == pytest.approx(formula(), rel=near)


# --- what the page says of weights and counts ---------------------------------------------------


def _weighted(kind: str) -> Iterator[dict[str, Any]]:
    labels = {"a": "xxyyxz", "b": "xyyyzz", "c": "xyxzzy", "d": "zxyzyx"}
    for grader, said_ in labels.items():
        for i, label in enumerate(said_):
            for vote in range(3):
                yield {
                    "response": f"r{i}", "grader": grader, "vote": str(vote),
                    "label": label if vote < 2 else "xyz"[(i + vote) % 3] if grader != "b" else label,
                    "weight": 0.5 + 0.4 * i if kind == "design" else 3,
                }  # fmt: skip


def test_numbers_of_labels_and_responses_stay_whole_under_design_weights() -> None:
    made = vd.audit(
        vd.read(pl.DataFrame(list(_weighted("design"))), layout="long", weight="weight")
    ).results
    counts = {e.name for e in ESTIMANDS.values() if e.unit is Unit.COUNT} - {"kish_n"}
    found = made.filter(pl.col("statistic").is_in(counts), pl.col("value").is_not_null())
    assert {"label_count", "solo", "no_consensus", "no_majority"} <= set(found["statistic"])
    wrong = found.filter(pl.col("value") != pl.col("value").round())
    assert wrong.is_empty(), wrong.select("statistic", "grader", "class", "value")


def test_a_count_of_labels_that_moved_stays_whole_under_design_weights() -> None:
    rows = [
        {"response": f"r{i}", "grader": "g", "step": step, "label": label, "weight": 0.5 + 0.4 * i}
        for step, labels in (("first", "xxyyxz"), ("second", "xyyyzz"))
        for i, label in enumerate(labels)
    ]
    made = vd.audit(
        vd.read(
            pl.DataFrame(rows), layout="long", weight="weight", step="step", scale=["x", "y", "z"]
        )
    ).results
    found = made.filter(pl.col("statistic") == "decision_moved")
    assert sorted(v for v in found["value"] if v) == [1, 1]


def test_a_frequency_weight_stands_for_so_many_responses_in_a_comparison() -> None:
    labels = {"old": ["a", "b", None, "b", "a"], "new": ["a", None, "b", "b", "b"]}
    rows = [
        {
            "response": f"r{i}", "grader": g, "label": label,
            "outcome": "label" if label else "unparsed", "weight": 3,
        }
        for g, said_ in labels.items()
        for i, label in enumerate(said_)
    ]  # fmt: skip
    old, new = (pl.DataFrame([r for r in rows if r["grader"] == g]) for g in ("old", "new"))
    made = vd.compare(old, new, layout="long", weight="weight", weight_kind="frequency").results
    for statistic, value, n in (
        ("outcome_moved", 3, 15),
        ("newly_unread", 3, 3),
        ("newly_read", 3, 3),
    ):
        found = made.filter(
            pl.col("statistic") == statistic,
            (pl.col("class") != pl.col("to_class")),
        )
        assert set(found.select("value", "n").rows()) == {(value, n)}, statistic
