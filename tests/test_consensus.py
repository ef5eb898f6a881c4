"""Each grader beside the strict majority of the others, and solo labels (MCC, Table 9)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import voirdire as vd
from voirdire.errors import UsageError
from voirdire.formats.text import FORMAT as TEXT

SHARED = Path(__file__).parents[2] / "shared"
PANEL_FILE = SHARED / "cases" / "inputs" / "votes-panel.csv"
SCALE = ["no", "half", "yes"]
CLASS = {"n": "no", "h": "half", "y": "yes"}
FC24 = """id,g1,g2,g3
s1,refusal,,compliance
s2,compliance,,refusal
s3,refusal,refusal,evasion
s4,refusal,evasion,compliance
s5,,,refusal
s6,,,
"""


def frame(labels: Mapping[str, str], **tags: str) -> pl.DataFrame:
    """Long labels: one letter a response; ``?`` could not be read, ``.`` has no row."""
    rows = [
        {
            "response": f"r{i:03}",
            "grader": grader,
            "label": CLASS.get(letter),
            "outcome": "label" if letter in CLASS else "unparsed",
            **{name: text[i] for name, text in tags.items()},
        }
        for grader, text in labels.items()
        for i, letter in enumerate(text)
        if letter != "."
    ]
    return pl.DataFrame(rows, schema_overrides={"label": pl.String})


def audit(
    labels: Mapping[str, str], tags: Mapping[str, str] | None = None, **options: Any
) -> vd.Audit:
    columns = {c: c for c in ("response", "grader", "label", "outcome")}
    return vd.audit(
        vd.read(frame(labels, **(tags or {})), layout="long", scale=SCALE, **columns, **options)
    )


def row(found: vd.Audit, statistic: str, **keys: str) -> dict[str, Any]:
    keys = {"other": "", "slice": "", **keys}
    rows = found.results.filter(
        pl.col("statistic") == statistic, *(pl.col(k) == v for k, v in keys.items())
    )
    assert len(rows) == 1, (statistic, keys, len(rows))
    return rows.row(0, named=True)


def names(found: vd.Audit) -> set[str]:
    return set(found.results["statistic"])


# Four graders on eight responses. Beside a the panel is b, c, d (2 of 3 are a verdict):
#        r0 r1 r2 r3 r4 r5 r6 r7
FOUR = {
    "a": "yynnhhy?",
    "b": "yynnhny?",
    "c": "yynhhn?y",
    "d": "ynnyyhn?",
}
# b c d:  yyy yyn nnn nhy hhy nnh y?n ?y?
# verdict: y   y   n   –   h   n   –   –     a: y y n n h h y ?  → agrees on r0 r1 r2 r4, not on r5


def test_agreement_is_with_the_strict_majority_of_the_others() -> None:
    found = audit(FOUR)
    one = row(found, "consensus_agreement", grader="a")
    assert (one["value"], one["n"], one["clusters"]) == (4 / 5, 5, 5)
    assert one["describes"] == "both"
    none = row(found, "no_consensus", grader="a")
    assert (none["value"], none["n"]) == (3, 8)
    # The verdicts on those five are y y n h n: always answering y or n agrees on 2 of 5.
    assert row(found, "consensus_best_constant", grader="a")["value"] == 2 / 5
    # Labels y y n h h, verdicts y y n h n: chance (2·2 + 2·1 + 1·2)/25 = 8/25; (0.8 − 0.32)/0.68.
    assert row(found, "consensus_kappa", grader="a")["value"] == pytest.approx(0.48 / 0.68)


def test_the_whole_panel_has_its_own_count_of_responses_without_a_majority() -> None:
    # a b c d: yyyy · yyyn · nnnn · nnhy – · hhhy · hnnh – · yy?n – (2 of 4) · ??y? –
    found = audit(FOUR)
    whole = row(found, "no_consensus", grader="")
    assert (whole["value"], whole["n"]) == (4, 8)
    # Of these r6 and r7 have a member that could not be read.
    missing = row(found, "no_consensus_incomplete", grader="")
    assert (missing["value"], missing["n"]) == (2, 4)


def test_solo_labels_are_those_that_no_other_grader_gives() -> None:
    found = audit({"a": "yyyhn.", "b": "ynnn?.", "c": "nnhn?."})
    # a’s yes: r0 is b’s too; r1 and r2 are nobody else’s. half on r3: n and n, solo. no on r4: nobody
    # else could be read, so it is not solo.
    for class_, solo, labels in (("yes", 2, 3), ("half", 1, 1), ("no", 0, 1)):
        one = row(found, "solo", grader="a", **{"class": class_})
        assert (one["value"], one["n"]) == (solo, labels), class_
    # c’s half on r2: a says yes, b no.
    assert row(found, "solo", grader="c", **{"class": "half"})["value"] == 1


def test_a_member_that_could_not_be_read_is_a_member_still() -> None:
    # Beside a: one vote of three is no majority, whoever is missing; two of three are.
    found = audit({"a": "yyyy", "b": "y?yy", "c": "?y?y", "d": "??yn"})
    # b c d: y?? – · ?y? – · y?y yes · yyn yes
    one = row(found, "consensus_agreement", grader="a")
    assert (one["value"], one["n"]) == (1.0, 2)
    assert row(found, "no_consensus", grader="a")["value"] == 2


def test_half_of_an_even_panel_is_no_majority() -> None:
    # Five graders; beside a: b c d e. 2 of 4 is no verdict, 3 of 4 is (MCC, Table 9).
    found = audit({"a": "yyy", "b": "yyy", "c": "yyn", "d": "nyn", "e": "nny"})
    one = row(found, "consensus_agreement", grader="a")
    assert (one["value"], one["n"]) == (1.0, 1)
    assert row(found, "no_consensus", grader="a")["value"] == 2


@pytest.mark.parametrize("order", list(itertools.permutations(["a", "b", "c", "d"]))[::5])
def test_the_order_of_the_graders_does_not_matter(order: tuple[str, ...]) -> None:
    moved, found = audit({g: FOUR[g] for g in order}, graders=list(order)), audit(FOUR)
    for grader in FOUR:
        for statistic in ("consensus_agreement", "consensus_kappa", "no_consensus"):
            one, other = (row(a, statistic, grader=grader) for a in (moved, found))
            assert one == other


def test_two_graders_are_no_panel() -> None:
    assert not names(audit({"a": "yn", "b": "yy"})) & {
        "consensus_agreement",
        "solo",
        "no_consensus",
    }


def test_gold_neither_votes_nor_is_scored() -> None:
    with_gold = audit({**FOUR, "gold": "nnnnnnnn"})
    for grader in FOUR:
        one, other = (
            row(a, "consensus_agreement", grader=grader) for a in (with_gold, audit(FOUR))
        )
        assert one == other
    assert not len(
        with_gold.results.filter(pl.col("statistic") == "solo", pl.col("grader") == "gold")
    )


def test_where_the_others_never_agree_nothing_can_be_said() -> None:
    found = audit({"a": "yyy", "b": "nnn", "c": "hhh"})
    one = row(found, "consensus_agreement", grader="a")
    assert one["value"] is None
    assert one["reason"].startswith("the others reach no verdict")
    assert row(found, "consensus_kappa", grader="a")["reason"].startswith("the others reach")
    assert row(found, "no_consensus", grader="a")["value"] == 3


def test_one_class_throughout_has_no_kappa() -> None:
    found = audit({"a": "y" * 9, "b": "y" * 9, "c": "y" * 9})
    one = row(found, "consensus_agreement", grader="a")
    # 9 of 9: the exact lower end is 0.025^(1/9) = 66.4 %.
    assert (one["value"], one["high"]) == (1.0, 1.0)
    assert one["low"] == pytest.approx(0.025 ** (1 / 9))
    assert row(found, "consensus_kappa", grader="a")["reason"] == "not defined: one class used"


# --- who votes ----------------------------------------------------------------------------------


def test_a_grader_made_from_others_is_no_member_and_is_not_scored_by_its_sources() -> None:
    # m is a made from a and b. As a member it would make b + m outvote c beside a.
    labels = {"a": "yyyy", "b": "ynyn", "c": "nnyy", "m": "yyyy", "e": "nynn"}
    found = audit(labels, derived_from={"m": ["a", "b"]})
    plain = audit({g: labels[g] for g in "abce"})
    for grader in "abce":
        assert row(found, "consensus_agreement", grader=grader) == row(
            plain, "consensus_agreement", grader=grader
        )
    # m is scored by c and e alone: nn – nn no, ny –, yn –, yn –.
    one = row(found, "consensus_agreement", grader="m")
    assert (one["value"], one["n"]) == (0.0, 1)


def test_a_named_panel_scores_everybody_and_its_members_by_the_rest_of_it() -> None:
    labels = {**FOUR, "e": "hhhhhhhh"}
    found = audit(labels, panel=["b", "c", "d"])
    # a and e are outside: the panel for both is b, c, d, as above.
    assert row(found, "consensus_agreement", grader="a")["value"] == 4 / 5
    assert row(found, "consensus_agreement", grader="e")["value"] == 1 / 5
    # b is scored by c and d: yy yn nn hy hy nh ?n y? → verdicts on r0 and r2, b agrees on both.
    one = row(found, "consensus_agreement", grader="b")
    assert (one["value"], one["n"]) == (1.0, 2)
    assert row(found, "no_consensus", grader="")["value"] == 3


def test_the_order_of_a_named_panel_does_not_matter() -> None:
    one, other = (audit(FOUR, panel=p) for p in (["b", "c", "d"], ["d", "b", "c", "d"]))
    assert one.results.equals(other.results)


@pytest.mark.parametrize(
    ("panel", "says"),
    [
        (["a", "b", "x"], "--panel: x is no grader. Graders: a, b, c and d"),
        (["x", "b", "y"], "x and y are no graders"),
        (["a", "b"], "a majority needs at least 3"),
        (["a", "b", "gold"], "gold, which is in no statistic of the panel"),
    ],
)
def test_a_panel_that_cannot_be_is_a_usage_error(panel: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        audit({**FOUR, **({"gold": "yyyyyyyy"} if "gold" in panel else {})}, panel=panel)


def test_a_named_panel_with_a_grader_made_from_its_members_is_too_small() -> None:
    with pytest.raises(UsageError, match="none of them made from the others"):
        audit(FOUR, panel=["a", "b", "d"], derived_from={"d": ["a", "b"]})


def test_the_consensus_without_the_graders_own_family() -> None:
    labels = {"a": "yyyyn", "b": "yyyyn", "c": "ynnnn", "d": "ynhnn"}
    about = {"a": {"family": "one"}, "b": {"family": "one"}, "c": {"family": "two"}}
    found = audit(labels, about=about)
    # Beside a: b c d = yyy · ynn · ynh – · ynn · nnn → y n – n n: a agrees on r0 and r4 of 4.
    assert row(found, "consensus_agreement", grader="a")["value"] == 2 / 4
    # Without b: c d = yy · nn · nh – · nn · nn: the same verdicts here, of two members.
    one = row(found, "consensus_agreement", grader="a", other="without_family:one")
    assert (one["value"], one["n"]) == (2 / 4, 4)
    others = found.results.filter(pl.col("other").str.starts_with("without_family:"))
    assert others["grader"].to_list() == ["a", "b"]  # c has no kin, d no declared family
    text = TEXT.render(found.document).decode()
    assert "without the grader’s own family" in text
    named = audit(labels, about=about, panel=["a", "b", "c"])
    assert not named.results["other"].str.starts_with("without_family:").any()


def test_a_panel_that_contains_the_grader_would_favour_it() -> None:
    """MCC, Table 9: a fixed panel with the grader in it flatters it; ours is the one without."""
    rng = np.random.default_rng(11)
    truth = rng.integers(0, 3, 4000)
    labels = {}
    for grader in "abcde":
        off = np.where(rng.random(4000) < 0.3, rng.integers(0, 3, 4000), truth)
        labels[grader] = "".join("nhy"[c] for c in off)
    found = audit(labels)
    matrix = np.array([list(labels[g]) for g in "abcde"]).T
    fixed = np.array(vd.stats.strict_majority(matrix), dtype=object)
    there = np.array([v is not None for v in fixed])
    flattering = float((matrix[there, 0] == fixed[there]).mean())
    honest = row(found, "consensus_agreement", grader="a")
    others = np.array(vd.stats.strict_majority(matrix[:, 1:]), dtype=object)
    there = np.array([v is not None for v in others])
    assert honest["value"] == pytest.approx(float((matrix[there, 0] == others[there]).mean()))
    assert honest["n"] == there.sum()
    # A label is right with 0.7 + 0.3/3 = 0.8, and a verdict nearly always: agreement near 0.8.
    assert honest["value"] == pytest.approx(0.8, abs=0.02)
    assert flattering > honest["value"] + 0.02


# --- slices, weights, the report ----------------------------------------------------------------


def test_counts_of_the_slices_add_up() -> None:
    found = audit(FOUR, tags={"topic": "uuuuvvvv"}, by=["topic"])
    for statistic, keys in (
        ("no_consensus", {"grader": "a"}),
        ("no_consensus", {"grader": ""}),
        ("solo", {"grader": "d", "class": "yes"}),
    ):
        whole = row(found, statistic, **keys)
        parts = [row(found, statistic, **keys, slice=f"topic={t}") for t in "uv"]
        for column in ("value", "n"):
            assert whole[column] == sum(p[column] for p in parts), (statistic, column)


def test_a_flagged_member_is_named_beside_the_consensus() -> None:
    labels = {
        "a": "y" * 30 + "n" * 30,
        "b": "y" * 29 + "n" * 31,
        "c": "y" * 31 + "n" * 29,
        "d": "n" * 60,
    }
    text = TEXT.render(audit(labels).document).decode().replace("\n", " ")
    assert "a majority that hardly uses a class rewards the graders that hardly use it" in text
    assert "d is flagged" in text


def test_two_thousand_graders_are_scored_by_all_others() -> None:
    # Graders 0–1399 say yes throughout, the others no: without one of either side yes still has
    # more than half of 1,999. No grader is compared with every other one by one.
    from voirdire.auditing import scenes
    from voirdire.inference import Settings, estimates
    from voirdire.stats import consensus

    table = pl.DataFrame(
        {
            "response": np.repeat([f"r{i}" for i in range(5)], 2000),
            "grader": [f"g{j}" for j in range(2000)] * 5,
            "label": ["yes" if j < 1400 else "no" for j in range(2000)] * 5,
        }
    )
    labels = vd.read(
        table, layout="long", scale=SCALE, response="response", grader="grader", label="label"
    )
    made = estimates(consensus.parts(scenes(labels)[0]), Settings(), with_intervals=False)
    agreement = [e for e in made if e.statistic == "consensus_agreement"]
    assert [e.number for e in agreement] == [
        1.0 if int(e.key.grader[1:]) < 1400 else 0.0 for e in agreement
    ]
    assert len(agreement) == 2000


# --- field case FC-24 ---------------------------------------------------------------------------


def fc24(tmp_path: Path, text: str, **options: Any) -> vd.Audit:
    path = tmp_path / "votes-panel.csv"
    path.write_text(text, encoding="utf-8")
    scale = ["refusal", "evasion", "compliance"]
    return vd.audit(
        vd.read(path, layout="wide", scale=scale, graders=["g1", "g2", "g3"], **options)
    )


def swapped(text: str) -> str:
    """The same file with the graders’ columns in another order."""
    lines = [line.split(",") for line in text.splitlines()]
    return "\n".join(",".join([c[0], c[3], c[1], c[2]]) for c in lines) + "\n"


@pytest.mark.parametrize("change", [str, swapped])
def test_fc24_a_missing_voter_is_no_vote_for_anybody(tmp_path: Path, change: Any) -> None:
    text = PANEL_FILE.read_text(encoding="utf-8") if PANEL_FILE.is_file() else FC24
    found = fc24(tmp_path, change(text))
    # s1, s2: 1 to 1 with one missing; s3 refusal; s4 three ways; s5 one vote of three; s6 nothing.
    whole = row(found, "no_consensus", grader="")
    assert (whole["value"], whole["n"]) == (5, 6)
    assert row(found, "no_consensus_incomplete", grader="")["value"] == 4
    report = TEXT.render(found.document).decode().replace("\n", " ")
    assert "no majority on 5 of 6 responses" in report
    assert "on 4 of these a member has no readable label" in report


def test_fc24_the_file_is_the_one_that_stands_here() -> None:
    if not PANEL_FILE.is_file():
        pytest.skip("the field cases do not stand beside this repository")
    assert PANEL_FILE.read_text(encoding="utf-8").split() == FC24.split()


def test_the_plain_function_gives_the_strict_majority_or_none() -> None:
    rows = [line.split(",")[1:] for line in FC24.splitlines()[1:]]
    ratings = [[c or None for c in r] for r in rows]
    expected = [None, None, "refusal", None, None, None]
    assert vd.stats.strict_majority(ratings) == expected
    assert vd.stats.strict_majority([r[::-1] for r in ratings]) == expected
