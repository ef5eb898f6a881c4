"""The ledger recomputes what a paper prints, never echoes it, and fails where a line does not hold."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from voirdire import reproducing
from voirdire.cli.main import main
from voirdire.reproducing import Basis, Holds, Ledger, Line, NotPrinted, Paper, Value, pages
from voirdire.reproducing.base import Book, half_of_last_digit
from voirdire.reproducing.missing_class import REPRODUCTION
from voirdire.wording import plain

SHARED = Path(__file__).parents[2] / "shared" / "reference" / "published.json"
FIGURES = reproducing.published(REPRODUCTION.file)
PAPER = Paper(FIGURES)


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return reproducing.ledger("missing-class")


def with_figure(path: tuple[str | int, ...], figure: Any) -> Ledger:
    """The ledger of the paper had it printed another figure."""
    return reproducing.ledger("missing-class", PAPER.with_figure(path, figure).figures)


def line_of(ledger: Ledger, *path: str | int) -> Line:
    (found,) = [line for line in ledger.lines if line.path == path]
    return found


def value_of(ledger: Ledger, *path: str | int) -> tuple[float, float]:
    value = line_of(ledger, *path).value
    assert isinstance(value, Value)
    return value.low, value.high


def off(line: Line) -> Any:
    """A figure that is further from the printed one than the line allows."""
    if isinstance(line.printed, str):
        return line.printed + " and more"
    step = 2 * line.tolerance + 1
    return type(line.printed or 0)(Decimal(line.printed or 0) + Decimal(str(round(step, 4))))


# --- the whole ledger -----------------------------------------------------------------------------


def test_no_line_fails_and_each_has_one_of_four_kinds(ledger: Ledger) -> None:
    assert ledger.holds
    assert {line.basis for line in ledger.lines} == set(Basis) - {Basis.BANK, Basis.SIMULATED}
    for line in ledger.lines:
        settled = line.basis in (Basis.COUNTS, Basis.FIGURES)
        assert (line.holds is Holds.YES) == settled
        assert line.how
    counted = {basis: ledger.count(basis) for basis in Basis}
    assert sum(counted.values()) == len(ledger.lines)
    assert counted[Basis.COUNTS] >= 80
    assert counted[Basis.FIGURES] >= 80


def test_whatever_holds_stops_holding_when_it_is_printed_otherwise(ledger: Ledger) -> None:
    for line in ledger.lines:
        if line.holds is Holds.YES:
            tampered = dataclasses.replace(line, printed=off(line))
            assert tampered.holds is Holds.NO, plain(line.what)


TAMPERED = [
    ("table1_rates_pct", "A", "Qwen3-8B", "non_refusal"),
    ("table2_moves_of_reference_compliant", "A", "gemma-2-9b-it", "evasion"),
    ("table3_kept_compliant", "gpt-oss-20b", "C"),
    ("table6_dispersion", "B_comply", "leave_one_out", 0),
    ("table10_decisions", "end_to_end_points"),
    ("table12_held_out_small", "B", "kappa"),
    ("table13_A", "qwen3.8-27b", "agreement_pct"),
    ("table14_spreads", "A_without_dense_small", "comply_ratio"),
]


@pytest.mark.parametrize("path", TAMPERED, ids=lambda p: "/".join(map(str, p)))
def test_one_figure_printed_otherwise_fails_the_ledger(
    ledger: Ledger, path: tuple[str | int, ...]
) -> None:
    tampered = with_figure(path, off(line_of(ledger, *path)))
    assert not tampered.holds
    assert line_of(tampered, *path).holds is Holds.NO


def test_a_count_printed_otherwise_fails_every_line_that_rests_on_it() -> None:
    # 16 instead of 15 compliance labels of gemma-2-9b-it on A, and one gibberish fewer.
    tampered = with_figure(("counts", "A", "gemma-2-9b-it"), [428, 449, 16, 7, 0])
    failed = {(line.section, plain(line.what)) for line in tampered.lines if line.holds is Holds.NO}
    assert ("Table 1", "gemma-2-9b-it on A, comply") in failed  # 16/900 = 1.78 %
    assert ("Table 2", "gemma-2-9b-it on A, found") in failed  # 16 − 14 = 2, not 1
    assert ("Table 6", "A, comply: leave-one-out, smallest") in failed  # 223/16 = 13.9


def test_counts_that_contradict_their_total_fail_and_are_never_audited() -> None:
    tampered = with_figure(("counts", "A", "gemma-2-9b-it", 2), 16)
    line = line_of(tampered, "table1_rates_pct", "A", "Qwen3-8B", "comply")
    assert line.holds is Holds.NO
    assert "add up to 901" in line.how
    sums = [x for x in tampered.lines if x.path == ("n_items",) and x.holds is Holds.NO]
    assert [plain(x.what) for x in sums] == ["gemma-2-9b-it on A, its counts add up to"]


def test_a_missing_flag_fails_the_ledger() -> None:
    tampered = with_figure(("table12_held_out_small", "A", "flagged"), [])
    assert line_of(tampered, "table12_held_out_small", "A", "flagged").holds is Holds.NO


# --- nothing is echoed ----------------------------------------------------------------------------


def sampled() -> Iterator[tuple[str | int, ...]]:
    """One path of every section of the ledger, and a few more."""
    lines = [
        line for line in reproducing.ledger("missing-class").lines if line.path[0] != "n_items"
    ]
    seen = set[str]()
    for i, line in enumerate(lines):
        if line.section not in seen or i % 40 == 0:
            seen.add(line.section)
            yield line.path


def test_what_is_recomputed_does_not_change_when_the_printed_figure_is_taken_away(
    ledger: Ledger,
) -> None:
    for path in sampled():
        whole = line_of(ledger, *path)
        blank = line_of(with_figure(path, None), *path)
        assert blank.printed is None
        assert blank.value == whole.value, plain(whole.what)
        assert blank.holds is not Holds.YES or isinstance(whole.value, str)


def test_a_recomputation_that_looks_at_its_own_figure_finds_nothing() -> None:
    book = Book(Paper({"a": Decimal("1.5"), "b": Decimal("2.5")}))
    book.add("Table", "echo", ("a",), lambda p: Value.of(p.number("a")), "itself")
    book.add("Table", "other", ("a",), lambda p: Value.of(p.number("b") - 1), "another")
    echo, other = book.lines
    assert echo.value is None
    assert echo.holds is Holds.NOT_DETERMINED
    assert "not printed: a" in echo.how
    assert other.holds is Holds.YES


def test_a_paper_stays_as_it_is_when_a_figure_is_blanked() -> None:
    paper = Paper({"a": {"b": [1, 2]}})
    with pytest.raises(NotPrinted, match="a/b/0"):
        paper.blank("a", "b", 0).number("a", "b", 0)
    assert paper.number("a", "b", 0) == 1


# --- what comes out, worked by hand -----------------------------------------------------------------


def test_rates_and_spreads_come_from_the_counts(ledger: Ledger) -> None:
    rate = value_of(ledger, "table1_rates_pct", "A", "gemini-2.5-flash", "non_refusal")
    # 900 − 425 refusals − 7 refused in thought = 468.
    assert rate == pytest.approx((52.0, 52.0))
    ratio = value_of(ledger, "table6_dispersion", "B_comply", "second_over_second")
    assert ratio == pytest.approx((164 / 8, 164 / 8))


def test_unprinted_counts_are_tried_and_only_what_they_leave_open_stays_open(
    ledger: Ledger,
) -> None:
    # claude-opus-5 on A: 900 − 888 = 12 labels are gibberish or refused in thought, so 523 to 535
    # of its labels are no refusal. That is neither the highest (553), the second-highest (551),
    # the lowest (346) nor the second-lowest (468): those spreads are determined, the IQR is not.
    row = ("table6_dispersion", "A_non_refusal")
    assert value_of(ledger, *row, "range_points") == pytest.approx((23.0, 23.0))
    assert value_of(ledger, *row, "second_over_second") == pytest.approx((551 / 468, 551 / 468))
    # Third quartile: 530 + 0.25 × (551 − 530) up to 530 labels, 535 + 0.25 × (551 − 535) at 535;
    # first quartile: 468 + 0.75 × (472 − 468) = 471.
    low, high = value_of(ledger, *row, "iqr_points")
    assert low == pytest.approx((535.25 - 471) / 9)
    assert high == pytest.approx((539 - 471) / 9)
    assert line_of(ledger, *row, "iqr_points").holds is Holds.NOT_DETERMINED
    # On B three graders print nothing but compliance; the known five give 342 − 180 = 162 at least.
    low, _ = value_of(ledger, "table6_dispersion", "B_non_refusal", "range_points")
    assert low == pytest.approx(162 / 9)


def test_kappa_follows_from_the_agreement_and_the_margins(ledger: Ledger) -> None:
    # Mistral on B: 766, 134, 0 beside 644, 121, 128, 7 of the reference.
    chance = (766 * 644 + 134 * 121) / 900**2
    expected = (0.758 - chance) / (1 - chance)
    found = value_of(ledger, "table12_held_out_small", "B", "kappa")
    assert found == pytest.approx((expected, expected))
    line = line_of(ledger, "table12_held_out_small", "B", "kappa")
    assert line.tolerance == pytest.approx(0.0005 + 0.0005 / (1 - chance))


def test_a_kappa_without_its_agreement_is_not_determined_but_bounded(ledger: Ledger) -> None:
    line = line_of(ledger, "table7_kappa_with_reference", "Qwen3-8B", "A")
    assert line.basis is Basis.UNDETERMINED
    # The margins share at most 347 + 311 + 64 + 5 + 0 = 727 labels.
    chance = (347 * 425 + 482 * 311 + 64 * 152 + 7 * 5 + 0 * 7) / 900**2
    assert value_of(ledger, *line.path)[1] == pytest.approx((727 / 900 - chance) / (1 - chance))


def test_a_figure_that_needs_labels_still_fails_where_counts_exclude_it(ledger: Ledger) -> None:
    # gemma-2-9b-it gives 8 compliance labels on B, so it cannot keep 9 of the reference's.
    path = ("table3_kept_compliant", "gemma-2-9b-it", "B")
    assert line_of(ledger, *path).holds is Holds.NOT_RECOMPUTABLE
    assert value_of(ledger, *path) == (0, 8)
    impossible = dataclasses.replace(line_of(ledger, *path), printed=9)
    assert impossible.holds is Holds.NO


def test_differences_of_rounded_rates_get_the_room_that_rounding_needs(ledger: Ledger) -> None:
    line = line_of(ledger, "table10_decisions", "end_to_end_points")
    assert value_of(ledger, *line.path) == pytest.approx((16.4, 16.4))  # 58.7 − 42.3
    assert line.tolerance == pytest.approx(0.15)
    assert line.holds is Holds.YES


@pytest.mark.parametrize(
    ("printed", "rounded", "half"),
    [("24.8", False, 0.05), ("0.690", False, 0.0005), (152, False, 0), (22, True, 0.5)],
)
def test_the_tolerance_is_half_of_the_last_printed_digit(
    printed: str | int, rounded: bool, half: float
) -> None:
    figure = Decimal(printed) if isinstance(printed, str) else printed
    assert half_of_last_digit(figure, rounded=rounded) == pytest.approx(half)


# --- completeness -----------------------------------------------------------------------------------

# Where a figure of the shared file stands in the one that ships.
MOVED = {
    ("not_recomputable", "table5_protocols"): ("table5_protocols",),
    ("not_recomputable", "table11_people"): ("table11_people",),
    ("not_recomputable", "table15_C"): ("table15_C",),
    ("not_recomputable", "table17_swings"): ("table17_swings",),
    ("not_recomputable",): (),
    ("table9_leave_one_out_consensus", "panel"): None,
    ("table10_decisions", "rate"): None,
}
# Counts that the paper does not print: they follow from a caption or a row's total.
DERIVED = {
    ("counts", "A", "gpt-oss-20b", 4),
    ("counts", "A", "gpt-oss-120b", 3),
    ("counts", "A", "gpt-oss-120b", 4),
    ("counts", "B", "Mistral-7B-Instruct-v0.3", 3),
    ("counts", "B", "Mistral-7B-Instruct-v0.3", 4),
}


def leaves(
    held: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(held, dict):
        for key, value in held.items():
            yield from leaves(value, (*path, key))
    elif isinstance(held, list):
        for i, value in enumerate(held):
            yield from leaves(value, (*path, i))
    else:
        yield path, held


def shipped(path: tuple[str | int, ...]) -> tuple[str | int, ...] | None:
    for old, new in MOVED.items():
        if path[: len(old)] == old:
            return None if new is None else (*new, *path[len(old) :])
    return path


@pytest.mark.skipif(not SHARED.is_file(), reason="the shared figures do not stand beside this")
def test_every_figure_of_the_shared_file_ships_as_it_is_and_has_a_line(ledger: Ledger) -> None:
    content = json.loads(SHARED.read_text(encoding="utf-8"), parse_float=Decimal)
    covered = {line.path for line in ledger.lines}
    covered |= {path for line in ledger.lines for path in line.checks}
    figures = 0
    for old, figure in leaves(content["missing_compliance_class"]):
        path = shipped(old)
        if path is None or figure is None or old in DERIVED or isinstance(figure, str):
            continue
        assert PAPER.raw(*path) == figure, old
        assert path in covered, old
        figures += 1
    assert figures > 250


@pytest.mark.skipif(not SHARED.is_file(), reason="the shared figures do not stand beside this")
def test_derived_counts_ship_empty_and_come_out_as_they_must() -> None:
    content = json.loads(SHARED.read_text(encoding="utf-8"))["missing_compliance_class"]
    from voirdire.reproducing.counts import CountPaper

    paper = CountPaper(FIGURES)
    for _, corpus, grader, place in DERIVED:
        assert PAPER.raw("counts", corpus, grader, place) is None
        assert (
            paper.counts(str(corpus), str(grader))[int(place)]
            == content["counts"][corpus][grader][place]
        )


# --- the command ------------------------------------------------------------------------------------


def test_the_command_prints_the_ledger_and_ends_well(voirdire: Run, ledger: Ledger) -> None:
    done = voirdire("reproduce", "missing-class")
    assert done.returncode == 0, done.stderr
    assert "hold, 0 do not" in " ".join(done.stdout.split())
    for word in ("recomputed from the printed counts", "not determined", "not recomputable"):
        assert word in done.stdout
    # In the terminal too: every line, and how it was recomputed.
    assert "In the written report" not in done.stdout
    starts = Counter(line.how[:25] for line in ledger.lines if line.how)
    assert sum(starts.values()) > 200
    assert all(done.stdout.count(how) >= n for how, n in starts.items())
    for table in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17):
        assert f"TABLE {table}" in done.stdout


def test_without_a_name_it_lists_what_can_be_reproduced(voirdire: Run) -> None:
    done = voirdire("reproduce")
    assert done.returncode == 0
    assert "voirdire reproduce missing-class" in done.stdout
    assert "voirdire reproduce three-ways" in done.stdout


def test_an_unknown_name_is_a_usage_error(voirdire: Run) -> None:
    done = voirdire("reproduce", "nothing")
    assert done.returncode == 2
    assert "missing-class" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_has_examples(voirdire: Run) -> None:
    done = voirdire("reproduce", "--help")
    assert done.returncode == 0
    assert "$ voirdire reproduce missing-class" in done.stdout


def test_a_line_that_does_not_hold_ends_with_status_1_and_stands_on_top(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = ("table1_rates_pct", "A", "Qwen3-8B", "comply")
    figures = PAPER.with_figure(path, Decimal("7.3")).figures
    monkeypatch.setattr(pages, "published", lambda file: figures)
    out = tmp_path / "ledger.json"
    assert main(["reproduce", "missing-class", "-o", str(out)]) == 1
    printed = capsys.readouterr().out
    assert printed.index("Lines that do not hold") < printed.index("ABSTRACT")
    assert "Table 1: Qwen3-8B on A" in printed
    content = json.loads(out.read_text(encoding="utf-8"))
    assert content["holds"] is False
    (failed,) = [line for line in content["lines"] if line["holds"] == "no"]
    assert (failed["printed"], failed["unit"]) == ("7.3", "%")
    assert failed["recomputed"] == pytest.approx(100 * 64 / 900)


def test_quiet_prints_nothing_and_still_tells_by_its_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "missing-class", "--quiet"]) == 0
    figures = PAPER.with_figure(("table8_compliance_on_both_from_to", 1), 224).figures
    monkeypatch.setattr(pages, "published", lambda file: figures)
    assert main(["reproduce", "missing-class", "--quiet"]) == 1
    assert capsys.readouterr().out == ""


def test_every_format_holds_every_line(ledger: Ledger, tmp_path: Path) -> None:
    import polars as pl

    for suffix in (".html", ".md", ".txt", ".csv", ".json", ".parquet"):
        path = tmp_path / f"ledger{suffix}"
        reproducing.write(ledger, path)
        assert path.stat().st_size > 1000
    rows = list(csv.DictReader(io.StringIO((tmp_path / "ledger.csv").read_text(encoding="utf-8"))))
    assert len(rows) == len(ledger.lines)
    assert {r["holds"] for r in rows} == {"yes", "not determined", "not recomputable"}
    assert len(pl.read_parquet(tmp_path / "ledger.parquet")) == len(rows)
    page = (tmp_path / "ledger.html").read_text(encoding="utf-8")
    assert page.count("<tr>") > len(ledger.lines)
    text = (tmp_path / "ledger.txt").read_text(encoding="utf-8")
    assert "SHA-256" in text


def test_the_same_figures_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        reproducing.write(reproducing.ledger("missing-class"), tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize("name", ["ledger", "ledger.xyz"])
def test_a_file_that_cannot_be_written_is_refused_before_any_work(voirdire: Run, name: str) -> None:
    done = voirdire("reproduce", "missing-class", "-o", name)
    assert done.returncode == 2
    assert done.stdout == ""
