"""Bad input of panels, strata, steps and votes; the rest stands in ``test_bad_input.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.test_bad_input import LONG, audit, refused, table


def results(folder: Path, *words: str) -> tuple[str, list[dict[str, Any]]]:
    """Standard output with standard error, and the results, of an audit that ends well."""
    done = audit(*words, "-o", "out.json", "-o", "out.md", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert all((r["value"] is None) == bool(r["reason"]) for r in content["results"])
    return " ".join((done.stdout + done.stderr).split()), content["results"]


def test_pairs_of_31_graders_are_not_compared(tmp_path: Path) -> None:
    rows = "".join(f"{i},g{g:02},{'abc'[i * g % 3]}\n" for i in range(12) for g in range(31))
    table(tmp_path / "a.csv", LONG + rows)
    _, found = results(tmp_path, "a.csv", "--scale", "a,b,c")
    assert not [r for r in found if r["statistic"] == "agreement"]
    assert [r for r in found if r["statistic"] == "krippendorff_alpha_nominal"]


def test_that_pairs_are_left_out_is_said_with_their_number(tmp_path: Path) -> None:
    rows = "".join(f"{i},g{g:02},{'abc'[i * g % 3]}\n" for i in range(12) for g in range(31))
    table(tmp_path / "a.csv", LONG + rows)
    page, _ = results(tmp_path, "a.csv", "--scale", "a,b,c")
    assert "465 pairs" in page  # 31 × 30 / 2


def test_every_pair_of_31_graders_still_stands_beside_a_reference(tmp_path: Path) -> None:
    rows = "".join(f"{i},g{g:02},{'abc'[i * g % 3]}\n" for i in range(12) for g in range(31))
    table(tmp_path / "a.csv", LONG + rows)
    _, found = results(tmp_path, "a.csv", "--scale", "a,b,c", "--reference", "g07")
    assert len([r for r in found if r["statistic"] == "agreement"]) == 30


@pytest.mark.parametrize("words", [(), ("--scale", "a,b"), ("--reference", "g41")])
def test_more_than_40_graders_with_gold_have_a_report(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """The report shows the first 40; what stands on the others is in the results."""
    names = [*(f"g{g:02}" for g in range(42)), "gold"]
    rows = "".join(f"{i},{g},{'ab'[i % 2]}\n" for i in range(60) for g in names)
    table(tmp_path / "a.csv", LONG + rows)
    _, found = results(tmp_path, "a.csv", *words)
    ratios = [r for r in found if r["statistic"] == "collapse_ratio" and r["other"] == "gold"]
    assert len(ratios) == 84


@pytest.mark.parametrize("flag", ["--reference", "--gold"])
def test_a_grader_that_is_not_there_is_answered_with_the_nearest(flag: str, tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,gpt-4,a\n1,claude,a\n2,gpt-4,b\n2,claude,b\n")
    message = refused(2, "a.csv", flag, "gpt4", cwd=tmp_path)
    assert f"{flag}: there is no grader 'gpt4'" in message
    assert "Did you mean 'gpt-4'?" in message


@pytest.mark.parametrize("panel", ["nobody,g,h", "g,g", "g,h"])
def test_a_panel_that_cannot_be_one_is_refused(panel: str, tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n1,h,a\n1,i,a\n2,g,b\n2,h,b\n2,i,a\n")
    assert "--panel" in refused(2, "a.csv", "--panel", panel, cwd=tmp_path)


def test_a_reference_that_a_table_of_counts_does_not_have_is_refused(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", "grader,a,b\ng,3,4\nh,5,6\n")
    assert "no grader 'x'" in refused(2, "a.csv", "--reference", "x", cwd=tmp_path)


def test_a_weight_given_once_holds_for_the_response_and_one_never_given_is_named(
    tmp_path: Path,
) -> None:
    head = "response,grader,label,w\n"
    table(tmp_path / "a.csv", head + "1,g,b,3\n1,h,a,\n2,g,a,1\n2,h,b,1\n")
    _, found = results(tmp_path, "a.csv", "--weight", "w", "--scale", "a,b")
    rates = {r["grader"]: r["value"] for r in found if r["statistic"] == "rate"}
    assert rates == {"g": 3 / 4, "h": 1 / 4}
    table(tmp_path / "a.csv", head + "1,g,b,3\n1,h,a,3\n2,g,a,\n2,h,b,\n")
    message = refused(3, "a.csv", "--weight", "w", cwd=tmp_path)
    assert "line 4" in message
    assert "line 2" not in message


def test_a_stratum_with_one_response_leaves_the_value_and_no_interval(tmp_path: Path) -> None:
    rows = "".join(
        f"{i},{g},{'ab'[(i // 3 + (g == 'h')) % 2]},{'alone' if i == 0 else f's{i % 2}'}\n"
        for i in range(61)
        for g in "gh"
    )
    table(tmp_path / "a.csv", "response,grader,label,stratum\n" + rows)
    page, found = results(tmp_path, "a.csv", "--scale", "a,b", "--stratum", "stratum")
    rates = [r for r in found if r["statistic"] == "rate"]
    assert len(rates) == 2
    for rate in rates:
        assert rate["value"] is not None
        assert rate["low"] is None
    assert "a stratum has one cluster only" in page


def test_a_stratum_that_one_response_has_twice_is_refused(tmp_path: Path) -> None:
    rows = "1,g,a,s\n1,h,a,t\n2,g,b,s\n2,h,b,s\n"
    table(tmp_path / "a.csv", "response,grader,label,stratum\n" + rows)
    assert "2 stratums" in refused(3, "a.csv", "--stratum", "stratum", cwd=tmp_path)


STEPS = ("returned", "ruled", "repaired")


def stepped(turned: int) -> str:
    """40 responses along three steps; the last ``turned`` of them backwards."""
    lines = ["response,grader,label,step"]
    for i in range(40):
        steps = STEPS if i < 40 - turned else STEPS[::-1]
        lines += [f"{i},g,{'ab'[(i + STEPS.index(s)) % 2]},{s}" for s in steps]
    return "\n".join(lines) + "\n"


def test_steps_out_of_order_are_noticed_with_how_many_and_where(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", stepped(2))
    page, found = results(tmp_path, "a.csv", "--scale", "a,b", "--step", "step")
    assert "2 responses have them in another order (the first: a.csv, line 117" in page
    rates = {r["line"]: r["value"] for r in found if r["statistic"] == "decision_rate"}
    assert list(rates) == list(STEPS)
    report = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert "another order" in report
    assert "another order" in refused(
        3, "a.csv", "--scale", "a,b", "--step", "step", "--strict", cwd=tmp_path
    )


def test_steps_in_order_are_no_news(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", stepped(0))
    page, _ = results(tmp_path, "a.csv", "--scale", "a,b", "--step", "step")
    assert "have them in another order" not in page


def test_a_step_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", stepped(0))
    assert "--step" in refused(2, "a.csv", "--scale", "a,b", "--step", "stage", cwd=tmp_path)


def test_votes_without_numbers_that_differ_are_refused_and_the_flag_is_named(
    tmp_path: Path,
) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n1,g,b\n1,g,a\n2,g,b\n2,g,b\n")
    message = refused(3, "a.csv", "--scale", "a,b", cwd=tmp_path)
    assert "line 3" in message
    assert "--vote COL" in message


def test_votes_without_numbers_that_agree_count_once_with_a_notice(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n1,g,a\n1,g,a\n2,g,b\n2,g,b\n")
    page, found = results(tmp_path, "a.csv", "--scale", "a,b")
    assert "3 rows repeat a call with the same label" in page
    assert [r["value"] for r in found if r["statistic"] == "label_count"] == [1, 1]
    assert not [r for r in found if r["statistic"] == "self_disagreement"]


def test_two_votes_of_a_response_without_a_number_are_refused(tmp_path: Path) -> None:
    rows = "1,g,a,1\n1,g,b,\n1,g,a,\n2,g,b,1\n2,g,b,2\n2,g,b,3\n"
    table(tmp_path / "a.csv", "response,grader,label,vote\n" + rows)
    message = refused(3, "a.csv", "--scale", "a,b", cwd=tmp_path)
    assert "line 3" in message
    assert "line 4" in message
    assert "line 2" not in message


# Names that would make two of one

TAGGED = "response,grader,label,p,q\n"
ROWS = "".join(f"{i},{g},{'ab'[i % 3 // 2]},{'xy'[i % 2]},{'uv'[i // 4]}\n" for i in range(8) for g in "gh")  # fmt: skip


def slices(found: list[dict[str, Any]]) -> list[str]:
    return sorted({r["slice"] for r in found} - {""})


@pytest.mark.parametrize(
    ("by", "wanted"),
    [
        (("p", "p"), ["p=x", "p=y"]),
        (("p+p",), ["p=x", "p=y"]),
        (("p", "p+p"), ["p=x", "p=y"]),
        (("p+q", "q+p"), ["p=x,q=u", "p=x,q=v", "p=y,q=u", "p=y,q=v"]),
        (("label:g", "label:g"), ["label:g=a", "label:g=b"]),
    ],
)
def test_tags_that_are_named_twice_slice_once(
    by: tuple[str, ...], wanted: list[str], tmp_path: Path
) -> None:
    table(tmp_path / "a.csv", TAGGED + ROWS)
    words = [w for b in by for w in ("--by", b)]
    _, found = results(tmp_path, "a.csv", "--scale", "a,b", *words)
    assert slices(found) == wanted
    keys = [tuple(list(r.values())[:8]) for r in found]
    assert len(set(keys)) == len(keys)


def test_slices_of_counts_that_are_named_twice_are_made_once(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", "grader,part,a,b\ng,x,3,4\nh,x,5,6\ng,y,3,4\nh,y,5,6\n")
    words = ("--scale", "a,b", "--by", "part", "--by", "part")
    _, found = results(tmp_path, "a.csv", *words)
    keys = [tuple(list(r.values())[:8]) for r in found]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("flag", "one", "other"),
    [
        ("--rate", "top=b", "top=a"),
        ("--rate", "top=b", "top=b"),
        ("--range", "g=a", "g=a+b"),
        ("--derived-from", "g=h", "g=i"),
    ],
)
def test_a_name_that_is_given_twice_is_refused(
    flag: str, one: str, other: str, tmp_path: Path
) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n1,h,b\n1,i,b\n")
    message = refused(2, "a.csv", flag, one, flag, other, cwd=tmp_path)
    assert f"{flag} {one.partition('=')[0]} is given twice" in message


@pytest.mark.parametrize(
    ("flag", "one", "other"),
    [
        ("--map", "c=a", "c=b"),
        ("--failed", "c=error", " c=empty"),
        ("--recode", "grader:i=g", "grader:i=h"),
    ],
)
def test_a_mark_that_means_two_things_is_refused(
    flag: str, one: str, other: str, tmp_path: Path
) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n1,h,b\n2,i,c\n")
    assert flag in refused(2, "a.csv", flag, one, flag, other, cwd=tmp_path)
    assert audit("a.csv", flag, one, flag, one, "--quiet", cwd=tmp_path).returncode == 0


def test_the_two_rates_of_a_scale_never_share_a_name(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n1,h,b\n2,g,non_a\n2,h,b\n")
    _, found = results(tmp_path, "a.csv", "--scale", "a,b,non_a")
    rates = {(r["grader"], r["class"]): r["value"] for r in found if r["statistic"] == "rate"}
    assert rates == {
        ("g", "non_a"): 0.5,
        ("h", "non_a"): 0.0,
        ("g", "all_but_a"): 0.5,
        ("h", "all_but_a"): 1.0,
    }


COLLIDING = TAGGED + '1,g,a,"x,q=u",u\n2,g,b,x,u\n1,h,a,"x,q=u",u\n2,h,b,x,u\n'


def test_two_slices_of_one_name_are_refused_with_a_remedy_that_works(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", COLLIDING)
    words = ("a.csv", "--scale", "a,b", "--by", "p", "--by", "p+q")
    message = refused(2, *words, cwd=tmp_path)
    assert "'p=x,q=u'" in message
    assert "--recode 'p:x,q=u=NEW'" in message
    table(tmp_path / "a.csv", COLLIDING.replace("x,q=u", "x;q"))
    _, found = results(tmp_path, *words)
    assert slices(found) == ["p=x", "p=x,q=u", "p=x;q", "p=x;q,q=u"]


def test_a_comma_or_an_equals_sign_alone_does_no_harm(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", COLLIDING)
    _, found = results(tmp_path, "a.csv", "--scale", "a,b", "--by", "p", "--standardise", "q")
    assert slices(found) == ["p=x", "p=x,q=u"]
    # The slice p = "x,q=u" is no slice by q, so its rates are still brought to the mix of q.
    mixed = [r for r in found if r["statistic"] == "standardised_rate" and r["line"] == "q"]
    assert slices(mixed) == ["p=x", "p=x,q=u"]


def test_counts_are_sliced_by_values_with_commas_and_equals_signs(tmp_path: Path) -> None:
    rows = 'g,"x,y=1",u,3,4\nh,"x,y=1",u,5,6\ng,z,u,7,8\nh,z,v,9,1\n'
    table(tmp_path / "a.csv", "grader,p,q,a,b\n" + rows)
    _, found = results(tmp_path, "a.csv", "--scale", "a,b", "--by", "p+q")
    assert slices(found) == ["p=x,y=1,q=u", "p=z,q=u", "p=z,q=v"]
    count = {
        (r["slice"], r["grader"], r["class"]): r["value"]
        for r in found
        if r["statistic"] == "label_count"
    }
    assert count["p=x,y=1,q=u", "h", "b"] == 6
    assert count["p=z,q=u", "g", "a"] == 7


@pytest.mark.parametrize("flag", ["--by", "--standardise"])
def test_a_column_called_as_the_label_of_a_grader_is_not_guessed_about(
    flag: str, tmp_path: Path
) -> None:
    table(tmp_path / "a.csv", "response,grader,label,label:g\n1,g,a,u\n1,h,b,u\n2,g,b,v\n")
    assert "Rename the column" in refused(2, "a.csv", flag, "label:g", cwd=tmp_path)
    assert audit("a.csv", "--by", "label:h", "--quiet", cwd=tmp_path).returncode == 0


# Options that would change nothing


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--cluster", "part"), "--cluster changed"),
        (("--weight", "part", "--interval", "bootstrap"), "--weight and --interval changed"),
        (("--vote-rule", "first", "--stratum", "part"), "--stratum and --vote-rule changed"),
        (("--weight-kind", "frequency"), "--weight-kind changed"),
    ],
)
def test_options_that_a_table_of_counts_cannot_follow_are_named(
    words: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    table(tmp_path / "a.csv", "grader,part,a,b\ng,x,3,4\nh,x,5,6\n")
    page, _ = results(tmp_path, "a.csv", "--layout", "counts", "--scale", "a,b", *words)
    assert says in page
    assert "as independent" in page
    quiet, _ = results(tmp_path, "a.csv", "--layout", "counts", "--scale", "a,b")
    assert "nothing; intervals" not in quiet


def test_a_kind_of_weight_without_weights_is_refused(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n1,h,b\n")
    assert "--weight COL" in refused(2, "a.csv", "--weight-kind", "frequency", cwd=tmp_path)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(
    "flag", ["--depends-ratio", "--depends-points", "--level", "--collapse-below"]
)
def test_what_is_no_number_is_no_threshold(flag: str, value: str, tmp_path: Path) -> None:
    table(tmp_path / "a.csv", LONG + "1,g,a\n1,h,b\n")
    assert flag in refused(2, "a.csv", f"{flag}={value}", cwd=tmp_path)


def test_facts_on_a_name_that_is_not_there_are_noticed_with_the_nearest(tmp_path: Path) -> None:
    table(tmp_path / "a.csv", "response,grader,label,model\n1,gpt-4,a,llama\n1,h,b,llama\n")
    table(
        tmp_path / "f.toml",
        '[graders.gpt4]\nfamily = "openai"\n[graders.h]\nfamily = "x"\n'
        '[targets.llama]\nfamily = "meta"\n',
    )
    page, _ = results(tmp_path, "a.csv", "--about", "f.toml")
    assert "nothing here is called gpt4. Did you mean gpt-4 for gpt4?" in page
    table(tmp_path / "f.toml", '[graders.gpt-4]\nfamily = "openai"\n[targets.llama]\n')
    assert "nothing here is called" not in results(tmp_path, "a.csv", "--about", "f.toml")[0]
