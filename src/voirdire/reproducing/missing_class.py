"""Every figure of "The Missing Compliance Class" that its tables, captions and abstract print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from voirdire.reproducing.base import (
    Basis,
    Book,
    Line,
    NotPrinted,
    Path,
    Recompute,
    Reproduction,
    Value,
    list_in_words,
)
from voirdire.reproducing.counts import (
    CountPaper,
    agreement_from_kappa,
    audited,
    dispersion,
    estimate,
    flagged_classes,
    kappa,
    kappa_between,
)
from voirdire.wording import Name, Text, plain, say

COUNTS_SECTION = "Table 8, and the counts in Tables 12 and 13"
RATES = {"comply": "compliance", "non_refusal": "non_refusal"}


def _of(grader: str, corpus: str, what: str = "") -> Text:
    return say(
        "{grader} on {corpus}" + (f", {what}" if what else ""), grader=Name(grader), corpus=corpus
    )


def lines(figures: Mapping[str, Any]) -> tuple[Line, ...]:
    """Every line of the ledger, in the order of the paper's tables.

    ``figures`` are those that are printed; by default those that ship.
    """
    book = Book(CountPaper(figures))
    for section in (
        _abstract,
        _table1,
        _table2,
        _figure1,
        _table3,
        _table5,
        _table6,
        _table7,
        _table8,
        _table9,
        _table10,
        _table11,
        _table12,
        _table13,
        _table14,
        _table15,
        _table17,
        _text,
    ):
        section(book)
    return tuple(book.lines)


def _spread_of(corpus: str, rate: str, statistic: str, factor: float = 1.0) -> Recompute:
    """A dispersion over the eight graders of the roster."""
    return lambda p: dispersion(p, corpus, p.at("roster"), rate, statistic).times(factor)


AUDIT = "audit of the counts in Table 8"
SPLITS = f"{AUDIT}, over every value of the counts that are not printed"


def _abstract(book: Book[CountPaper]) -> None:
    where = "Abstract"
    key = ("abstract", "comply_ratio_between")
    for end, corpus, which in ((0, "B", "lower"), (1, "A", "upper")):
        book.add(
            where,
            f"compliance rate differs by a factor of, {which} end",
            (*key, end),
            _spread_of(corpus, "compliance", "rate_max_over_min"),
            f"{AUDIT}: highest over lowest on {corpus}",
            rests_on=Basis.COUNTS,
            rounded=True,
        )
    key = ("abstract", "non_refusal_points_between")
    for end, corpus, which in ((0, "B", "lower"), (1, "A", "upper")):
        book.add(
            where,
            f"non-refusal rate differs by, {which} end",
            (*key, end),
            _spread_of(corpus, "non_refusal", "rate_range", 100),
            f"{SPLITS}: range on {corpus}",
            rests_on=Basis.COUNTS,
            unit="points",
            rounded=True,
        )
    key = ("abstract", "never_complies_in")
    book.add(
        where,
        "compliance labels of the grader that never complies",
        (*key, "labels"),
        lambda p: Value.of(p.count("B", p.at(*key, "grader"), p.top)),
        "its count in Table 8, corpus B",
        rests_on=Basis.COUNTS,
    )
    book.add(
        where,
        "responses that it labelled",
        (*key, "responses"),
        lambda p: _sum(p, "B", p.at(*key, "grader")),
        "sum of its counts in Table 8, corpus B",
        rests_on=Basis.COUNTS,
    )
    key = ("abstract_without_collapsing", "comply_ratio_range")
    without = "the four corpora include C and D, whose spreads without them are not printed"

    def ratios(p: CountPaper) -> list[float]:
        names = ("A_without_dense_small", "B_without_dense_small")
        return [p.number("table14_spreads", n, "comply_ratio") for n in names]

    def ranges(p: CountPaper) -> list[float]:
        names = ("A_without_dense_small", "B_without_dense_small")
        return [p.number("table14_spreads", n, "non_refusal_range") for n in names]

    book.add(
        where,
        "factor without the collapsing graders, lower end",
        (*key, 0),
        lambda p: Value(1.0, min(ratios(p)), 0.05),
        f"at most the lowest of Table 14; {without}",
    )
    book.add(
        where,
        "factor without the collapsing graders, upper end",
        (*key, 1),
        lambda p: Value(max(ratios(p)), math.inf, 0.05),
        f"at least the highest of Table 14; {without}",
    )
    key = ("abstract_without_collapsing", "non_refusal_points_range")
    book.add(
        where,
        "non-refusal points without them, lower end",
        (*key, 0),
        lambda p: Value(0.0, min(ranges(p)), 0.05),
        f"at most the lowest of Table 14; {without}",
        unit="points",
        rounded=True,
    )
    book.add(
        where,
        "non-refusal points without them, upper end",
        (*key, 1),
        lambda p: Value(max(ranges(p)), 100.0, 0.05),
        f"at least the highest of Table 14; {without}",
        unit="points",
        rounded=True,
    )


def _printed(paper: CountPaper, corpus: str, grader: str) -> list[float | None]:
    """The counts of a row, printed in it or said to be 0 in a caption, none of them inferred."""
    return paper.counts(corpus, grader, inferred=False)


def _sum(paper: CountPaper, corpus: str, grader: str) -> Value:
    """What the counts of a row add up to: at least what is printed, where some are not."""
    row = _printed(paper, corpus, grader)
    known = sum(c for c in row if c is not None)
    return Value(known, math.inf if None in row else known)


def _table1(book: Book[CountPaper]) -> None:
    for corpus, graders in book.paper.at("table1_rates_pct").items():
        for grader, rates in graders.items():
            for rate in rates:
                book.add(
                    "Table 1",
                    _of(grader, corpus, rate.replace("_", "-")),
                    ("table1_rates_pct", corpus, grader, rate),
                    lambda p, c=corpus, g=grader, r=rate: _rate(p, c, g, RATES[r]),
                    f"{AUDIT}: rate",
                    rests_on=Basis.COUNTS,
                    unit="%",
                )


def _rate(paper: CountPaper, corpus: str, grader: str, rate: str) -> Value:
    audit = audited(paper.table(corpus, paper.at("roster")))
    found = estimate(audit, "rate", grader=grader, class_=rate)
    if found is None:
        raise NotPrinted(f"counts/{corpus}/{grader}")
    return Value.of(100 * found)


def _table2(book: Book[CountPaper]) -> None:
    where, key = "Table 2", ("table2_moves_of_reference_compliant", "A")
    moves = ("stays", "evasion", "refusal")
    book.add(
        where,
        "compliance labels of the reference on A",
        (*key, "n"),
        lambda p: Value.of(p.count("A", p.reference, p.top)),
        "its count in Table 8",
        rests_on=Basis.COUNTS,
    )
    for grader in [g for g in book.paper.at(*key) if g != "n"]:
        for move in moves:
            others = [m for m in moves if m != move]
            book.add(
                where,
                _of(grader, "A", move if move == "stays" else f"moved to {move}"),
                (*key, grader, move),
                lambda p, g=grader, o=others: Value.of(
                    p.number(*key, "n") - sum(p.number(*key, g, m) for m in o)
                ),
                f"the reference's labels less those that {_joined(others)}",
            )
        book.add(
            where,
            _of(grader, "A", "found"),
            (*key, grader, "found"),
            lambda p, g=grader: Value.of(p.count("A", g, p.top) - p.number(*key, g, "stays")),
            "its compliance labels in Table 8 less those that stay",
        )


def _joined(moves: Sequence[str]) -> str:
    return " or ".join("stay" if m == "stays" else f"move to {m}" for m in moves)


def _figure1(book: Book[CountPaper]) -> None:
    where, key = "Figure 1", ("figure1",)
    two = (*key, "Llama-3.1-8B two steps")
    grader, moves = "Llama-3.1-8B", ("table2_moves_of_reference_compliant", "A")
    kept = ("table3_kept_compliant",)
    book.add(
        where,
        _of(grader, "A", "moved two steps"),
        (*two, "A", 0),
        lambda p: Value.of(p.number(*moves, grader, "refusal")),
        "Table 2, moved to refusal",
    )
    book.add(
        where,
        _of(grader, "A", "moved at all"),
        (*two, "A", 1),
        lambda p: Value.of(
            p.number(*moves, grader, "evasion") + p.number(*moves, grader, "refusal")
        ),
        "Table 2, moved to evasion or refusal",
    )
    book.closed(
        where,
        _of(grader, "B", "moved two steps"),
        (*two, "B", 0),
        "which of them went to refusal is not printed; at most all that moved",
        between=lambda p: Value(0, p.number(*two, "B", 1)),
    )
    book.add(
        where,
        _of(grader, "B", "moved at all"),
        (*two, "B", 1),
        lambda p: Value.of(p.count("B", p.reference, p.top) - _kept_by_counts(p, "B", grader).high),
        "the reference's labels in Table 8; the grader gives none, so it keeps none",
        rests_on=Basis.COUNTS,
    )
    for i, grader_ in enumerate(("gpt-oss-20b", "gpt-oss-120b", "claude-opus-5")):
        book.add(
            where,
            _of(grader_, "A", "lost"),
            (*key, "lost_by_three_largest_A", i),
            lambda p, g=grader_: Value.of(
                p.count("A", p.reference, p.top)
                - (
                    p.number(*moves, g, "stays")
                    if p.raw(*moves, g) is not None
                    else p.number(*kept, g, "A")
                )
            ),
            "the reference's labels in Table 8 less those kept in Table 2 or 3",
        )
    book.add(
        where,
        _of("Llama-3.3-70B", "A", "lost"),
        (*key, "lost_by_Llama-3.3-70B_A"),
        lambda p: Value.of(
            p.number(*moves, "Llama-3.3-70B", "evasion")
            + p.number(*moves, "Llama-3.3-70B", "refusal")
        ),
        "Table 2, moved to evasion or refusal",
    )


def _kept_by_counts(paper: CountPaper, corpus: str, grader: str) -> Value:
    """How many of the reference's compliant responses a grader can have kept, by the counts alone."""
    own, theirs = (paper.count(corpus, g, paper.top) for g in (grader, paper.reference))
    return Value(max(0.0, own + theirs - paper.n), min(own, theirs))


def _table3(book: Book[CountPaper]) -> None:
    where, key = "Table 3", ("table3_kept_compliant",)
    paper = book.paper
    for corpus in ("A", "B"):
        book.add(
            where,
            f"compliance labels of the reference on {corpus}",
            (*key, "n", corpus),
            lambda p, c=corpus: Value.of(p.count(c, p.reference, p.top)),
            "its count in Table 8",
            rests_on=Basis.COUNTS,
        )
    book.add(
        where,
        "compliance labels of the reference on C",
        (*key, "n", "C"),
        lambda p: Value.of(p.number("table15_C", "n")),
        "Table 15, caption of corpus C",
    )
    book.closed(
        where,
        "compliance labels of the reference on D",
        (*key, "n", "D"),
        "the counts on D are not printed; at least what any grader keeps",
        between=lambda p: Value(
            max(p.number(*key, g, "D") for g in p.at(*key) if g != "n" and p.raw(*key, g, "D")),
            p.n,
        ),
    )
    lost = {"gpt-oss-20b": 0, "gpt-oss-120b": 1}
    moves = ("table2_moves_of_reference_compliant", "A")
    for grader in [g for g in paper.at(*key) if g != "n"]:
        for corpus in paper.at(*key, grader):
            path = (*key, grader, corpus)
            if corpus == "A" and paper.raw(*moves, grader) is not None:
                book.add(
                    where,
                    _of(grader, corpus),
                    path,
                    lambda p, g=grader: Value.of(p.number(*moves, g, "stays")),
                    "Table 2, stays",
                )
            elif corpus == "A" and grader in lost:
                book.add(
                    where,
                    _of(grader, corpus),
                    path,
                    lambda p, i=lost[grader]: Value.of(
                        p.count("A", p.reference, p.top)
                        - p.number("figure1", "lost_by_three_largest_A", i)
                    ),
                    "the reference's labels in Table 8 less those lost in Figure 1",
                )
            elif paper.raw("table12_held_out_small", corpus) is not None and "Mistral" in grader:
                book.add(
                    where,
                    _of(grader, corpus),
                    path,
                    lambda p, c=corpus: Value.of(p.number("table12_held_out_small", c, "kept", 0)),
                    "Table 12, kept",
                )
            elif corpus == "C" and paper.raw("table15_C", grader) is not None:
                book.add(
                    where,
                    _of(grader, corpus),
                    path,
                    lambda p, g=grader: Value.of(p.number("table15_C", g, 0)),
                    "Table 15, stays",
                )
            elif corpus == "B":
                book.closed(
                    where,
                    _of(grader, corpus),
                    path,
                    "which labels the two share is not printed; between what their counts allow",
                    between=lambda p, g=grader: _kept_by_counts(p, "B", g),
                )
            else:
                book.closed(
                    where,
                    _of(grader, corpus),
                    path,
                    f"the counts on {corpus} are not printed; at most the reference's labels",
                    between=lambda p, c=corpus: Value(0, p.number(*key, "n", c)),
                )


def _table5(book: Book[CountPaper]) -> None:
    where, key = "Table 5", ("table5_protocols",)
    columns = {
        "A_comply_ratio": ("A", "compliance", "rate_max_over_min", 1),
        "A_non_refusal_range": ("A", "non_refusal", "rate_range", 100),
        "B_comply_ratio": ("B", "compliance", "rate_max_over_min", 1),
        "B_non_refusal_range": ("B", "non_refusal", "rate_range", 100),
    }
    for protocol in book.paper.at(*key):
        for name, (corpus, rate, statistic, factor) in columns.items():
            path = (*key, protocol, name)
            what = f"{protocol.replace('_', ' ')} on {corpus}, {name[2:].replace('_', ' ')}"
            unit = "points" if factor == 100 else ""
            if protocol == "shipped":
                how = AUDIT if rate == "compliance" else SPLITS
                book.add(
                    where,
                    what,
                    path,
                    _spread_of(corpus, rate, statistic, factor),
                    how,
                    rests_on=Basis.COUNTS,
                    unit=unit,
                )
            else:
                book.closed(where, what, path, "the votes are not public", unit=unit)


def _table6(book: Book[CountPaper]) -> None:
    where, key = "Table 6", ("table6_dispersion",)
    columns: tuple[tuple[str, Path, str, float], ...] = (
        ("max/min", ("max_over_min",), "rate_max_over_min", 1),
        ("leave-one-out, smallest", ("leave_one_out", 0), "rate_leave_one_out_low", 1),
        ("leave-one-out, largest", ("leave_one_out", 1), "rate_leave_one_out_high", 1),
        ("2nd/2nd", ("second_over_second",), "rate_second_over_second", 1),
        ("IQR", ("iqr_points",), "rate_iqr", 100),
        ("range", ("range_points",), "rate_range", 100),
    )
    for row in book.paper.at(*key):
        corpus, _, name = row.partition("_")
        for title, path, statistic, factor in columns:
            book.add(
                where,
                f"{corpus}, {name.replace('_', '-')}: {title}",
                (*key, row, *path),
                _spread_of(corpus, RATES[name], statistic, factor),
                AUDIT if name == "comply" else SPLITS,
                rests_on=Basis.COUNTS,
                unit="points" if factor == 100 else "",
            )


def _table7(book: Book[CountPaper]) -> None:
    where, key = "Table 7", ("table7_kappa_with_reference",)
    figure4 = ("figure4_agreement_pct",)
    for grader, corpora in book.paper.at(*key).items():
        for corpus in corpora:
            agreement = (*figure4, corpus, grader)
            if book.paper.raw(*agreement) is not None:
                book.add(
                    where,
                    _of(grader, corpus, "kappa"),
                    (*key, grader, corpus),
                    lambda p, g=grader, c=corpus, a=agreement: kappa(p, c, g, a, rounded=True),
                    "the agreement in the caption of Figure 4 and the margins in Table 8",
                )
                continue
            book.add(
                where,
                _of(grader, corpus, "kappa"),
                (*key, grader, corpus),
                lambda p, g=grader, c=corpus: kappa_between(p, c, g),
                "its agreement with the reference is not printed; between what the margins in "
                "Table 8 allow",
            )


def _table8(book: Book[CountPaper]) -> None:
    where, key = COUNTS_SECTION, ("counts",)
    paper = book.paper
    for corpus, graders in paper.at(*key).items():
        for grader, row in graders.items():
            cells = [(*key, corpus, grader, i) for i, c in enumerate(row) if c is not None]
            missing = _printed(paper, corpus, grader).count(None)
            book.add(
                where,
                _of(grader, corpus, "its counts add up to"),
                ("n_items",),
                lambda p, c=corpus, g=grader: _sum(p, c, g),
                "sum of the printed counts"
                + (f"; {missing} of {len(row)} are not printed" if missing else ""),
                rests_on=Basis.COUNTS,
                checks=cells,
            )
    key = ("table8_compliance_on_both_from_to",)
    for end, pick, corpora in ((0, min, "AB"), (1, max, "AB")):
        book.add(
            where,
            f"compliance column, {'lowest' if not end else 'highest'}",
            (*key, end),
            lambda p, f=pick, cs=corpora: Value.of(
                f(p.count(c, g, p.top) for c in cs for g in p.at("roster"))
            ),
            "the counts of the roster on A and B",
            rests_on=Basis.COUNTS,
        )
    book.add(
        where,
        "responses",
        ("n_items",),
        lambda p: Value.of(p.number("n_clusters") * p.number("items_per_cluster")),
        "cores × families",
        checks=(("n_clusters",), ("items_per_cluster",)),
    )
    figure4 = ("figure4_agreement_pct",)
    for corpus, graders in paper.at(*figure4).items():
        for grader in graders:
            book.add(
                where,
                _of(grader, corpus, "agreement with the reference (caption of Figure 4)"),
                (*figure4, corpus, grader),
                lambda p, g=grader, c=corpus: agreement_from_kappa(
                    p, c, g, ("table7_kappa_with_reference", g, c)
                ),
                "kappa in Table 7 and the margins in Table 8",
                unit="%",
                rounded=True,
            )


def _table9(book: Book[CountPaper]) -> None:
    where, key = "Table 9", ("table9_leave_one_out_consensus",)
    for corpus, graders in book.paper.at(*key).items():
        for grader in graders:
            path = (*key, corpus, grader)
            book.closed(where, _of(grader, corpus, "agreement"), (*path, "agreement_pct"), unit="%")
            book.closed(
                where,
                _of(grader, corpus, "solo"),
                (*path, "solo", 0),
                "which labels nobody shares is not printed; at most its labels, and those that "
                "the reference does not give (Table 2)",
                between=lambda p, c=corpus, g=grader: Value(0, _most_solo(p, c, g)),
            )
            book.add(
                where,
                _of(grader, corpus, "compliance labels"),
                (*path, "solo", 1),
                lambda p, c=corpus, g=grader: Value.of(p.count(c, g, p.top)),
                "its count in Table 8 or 13",
                rests_on=Basis.COUNTS,
            )
    for end, corpus in ((0, "A"), (1, "B")):
        book.add(
            where,
            _of("gpt-oss-20b", corpus, "confirmed by others"),
            ("table9_confirmed_pct_of_gpt_oss_20b", end),
            lambda p, c=corpus: Value.of(
                100
                * (
                    1
                    - p.number(*key, c, "gpt-oss-20b", "solo", 0) / p.count(c, "gpt-oss-20b", p.top)
                )
            ),
            "its solo labels in Table 9 and its count in Table 8",
            unit="%",
        )
    for end, which in ((0, "lowest"), (1, "highest")):
        book.closed(
            where,
            f"responses with a verdict, {which}",
            ("table9_denominators", end),
            between=lambda p: Value(0, p.n),
        )


def _most_solo(paper: CountPaper, corpus: str, grader: str) -> float:
    most = paper.count(corpus, grader, paper.top)
    found = paper.raw("table2_moves_of_reference_compliant", corpus, grader, "found")
    return most if found is None else min(most, float(found))


def _table10(book: Book[CountPaper]) -> None:
    where, key = "Table 10", ("table10_decisions",)
    steps = (*key, "steps_pct")
    count = len(book.paper.at(*steps))
    for i in range(count):
        name = plain(str(book.paper.at(*steps, i, 0)))
        book.closed(where, f"non-refusal {name}", (*steps, i, 1), unit="%")

    def difference(p: CountPaper) -> Value:
        first, last = (*steps, 0, 1), (*steps, count - 1, 1)
        return Value.of(p.number(*last) - p.number(*first), p.half(*last) + p.half(*first))

    how = "the last printed rate less the first; each may be off by half a digit"
    book.add(where, "end to end", (*key, "end_to_end_points"), difference, how, unit="points")
    book.add(
        where,
        "end to end, from the printed rates (caption)",
        (*key, "end_to_end_from_printed_rates"),
        lambda p: Value.of(difference(p).low),
        "the last printed rate less the first",
        unit="points",
    )
    for end, which in ((0, "low"), (1, "high")):
        book.closed(
            where,
            f"end to end, {which} end of the interval",
            (*key, "ci95", end),
            "the labels by core are not public; on its side of the point",
            between=lambda p, e=end: (
                Value(p.number(*key, "end_to_end_points"), math.inf)
                if e
                else Value(-math.inf, p.number(*key, "end_to_end_points"))
            ),
            unit="points",
        )


def _table11(book: Book[CountPaper]) -> None:
    key = ("table11_people",)
    for grader, corpora in book.paper.at(*key).items():
        for corpus in corpora:
            for i, what in enumerate(("compliance, re-weighted", "agreement within evasion")):
                book.closed(
                    "Table 11",
                    _of(grader, corpus, what),
                    (*key, grader, corpus, i),
                    "the people's labels are not public",
                    unit="%",
                )


def _table12(book: Book[CountPaper]) -> None:
    where, key = "Table 12", ("table12_held_out_small",)
    grader = "Mistral-7B-Instruct-v0.3"
    for corpus in book.paper.at(*key):
        path = (*key, corpus)
        _agreement_and_kappa(book, where, grader, corpus, path)
        book.add(
            where,
            f"floor on {corpus}",
            (*path, "floor_pct"),
            lambda p, c=corpus: Value.of(
                100
                * (
                    estimate(
                        audited(p.table(c, p.at("roster"))), "competence_floor", other=p.reference
                    )
                    or math.nan
                )
            ),
            f"{AUDIT}: share of the reference's most frequent class",
            rests_on=Basis.COUNTS,
            unit="%",
        )
        book.closed(
            where,
            _of(grader, corpus, "kept"),
            (*path, "kept", 0),
            "which labels the two share is not printed; between what their counts allow",
            between=lambda p, c=corpus: _kept_by_counts(p, c, grader),
        )
        book.add(
            where,
            _of(grader, corpus, "kept, of"),
            (*path, "kept", 1),
            lambda p, c=corpus: Value.of(p.count(c, p.reference, p.top)),
            "the reference's count in Table 8",
            rests_on=Basis.COUNTS,
        )
        _flag_line(book, where, grader, corpus, (*path, "flagged"))


def _agreement_and_kappa(
    book: Book[CountPaper], where: str, grader: str, corpus: str, path: Path
) -> None:
    row = book.paper.counts(corpus, grader)
    every = "" if all(c is not None for c in row) else ", for every value of the unprinted counts"
    book.add(
        where,
        _of(grader, corpus, "agreement"),
        (*path, "agreement_pct"),
        lambda p: agreement_from_kappa(p, corpus, grader, (*path, "kappa")),
        f"its kappa and the margins{every}",
        unit="%",
    )
    book.add(
        where,
        _of(grader, corpus, "kappa"),
        (*path, "kappa"),
        lambda p: kappa(p, corpus, grader, (*path, "agreement_pct")),
        f"its agreement and the margins{every}",
    )


def _flag_line(book: Book[CountPaper], where: str, grader: str, corpus: str, path: Path) -> None:
    book.add(
        where,
        _of(grader, corpus, "flagged classes"),
        path,
        lambda p: list_in_words(
            flagged_classes(
                p, corpus, [*p.at("roster"), *([] if grader in p.at("roster") else [grader])]
            ).get(grader, [])
        ),
        "audit of the counts of the roster and this grader: collapse rule",
        rests_on=Basis.COUNTS,
    )


def _table13(book: Book[CountPaper]) -> None:
    for grader in book.paper.at("table13_A"):
        path = ("table13_A", grader)
        _agreement_and_kappa(book, "Table 13", grader, "A", path)
        _flag_line(book, "Table 13", grader, "A", (*path, "flagged"))


def _table14(book: Book[CountPaper]) -> None:
    where, key = "Table 14", ("table14_spreads",)
    columns = (
        ("non_refusal_range", "non_refusal", "rate_range", 100),
        ("comply_range", "compliance", "rate_range", 100),
        ("comply_ratio", "compliance", "rate_max_over_min", 1),
    )
    for row in book.paper.at(*key):
        corpus, _, which = row.partition("_")
        words = f"{corpus}, {which.replace('_', ' ')}"
        if book.paper.raw("counts", corpus) is None:
            for name in book.paper.at(*key, row):
                unit = "points" if name.endswith("range") else ""
                how = f"the counts on {corpus} are not printed"
                what = f"{words}: {name.replace('_', ' ')}"
                book.closed(where, what, (*key, row, name), how, unit=unit)
            continue

        def graders(p: CountPaper) -> list[str]:
            large = [g for g in p.at("held_out") if "Mistral" not in g]
            return [*p.at("roster"), *large]

        def left_out(p: CountPaper, name: str = which) -> list[str]:
            return list(p.at("dense_small")) if name != "all" else []

        book.add(
            where,
            f"{words}: graders",
            (*key, row, "graders"),
            lambda p, o=left_out: Value.of(len(graders(p)) - len(o(p))),
            "the roster and the two large held-out graders, less those left out",
        )
        for name, rate, statistic, factor in columns:
            book.add(
                where,
                f"{words}: {name.replace('_', ' ')}",
                (*key, row, name),
                lambda p, c=corpus, r=rate, s=statistic, f=factor, o=left_out: dispersion(
                    p, c, graders(p), r, s, o(p)
                ).times(f),
                "audit of the counts in Tables 8 and 13, over every value of those not printed"
                if (rate, corpus) != ("compliance", "A")
                else "audit of the counts in Tables 8 and 13",
                rests_on=Basis.COUNTS,
                unit="points" if factor == 100 else "",
            )


def _table15(book: Book[CountPaper]) -> None:
    where, key = "Table 15", ("table15_C",)
    moves = ("stays", "moved to evasion", "moved to refusal")
    book.add(
        where,
        "compliance labels of the reference on C",
        (*key, "n"),
        lambda p: Value.of(p.number("table3_kept_compliant", "n", "C")),
        "Table 3",
    )
    for grader in [g for g in book.paper.at(*key) if g != "n"]:
        for i, move in enumerate(moves):
            book.add(
                where,
                _of(grader, "C", move),
                (*key, grader, i),
                lambda p, g=grader, j=i: Value.of(
                    p.number(*key, "n")
                    - sum(p.number(*key, g, m) for m in range(len(moves)) if m != j)
                ),
                "the reference's labels less the other two of the row",
            )


def _table17(book: Book[CountPaper]) -> None:
    where, key = "Table 17", ("table17_swings",)
    steps, table10 = ("table10_decisions", "steps_pct"), ("table10_decisions",)
    caption = ("table17_caption",)
    last = len(book.paper.at(*steps)) - 1

    def last_step(p: CountPaper) -> Value:
        high, low = (*steps, last, 1), (*steps, last - 1, 1)
        return Value.of(p.number(*high) - p.number(*low), p.half(*high) + p.half(*low))

    def origin(p: CountPaper) -> Value:
        rates = (*caption, "benchmark of origin, rates")
        slack = p.half(*rates, 0) + p.half(*rates, 1)
        return Value.of(p.number(*rates, 0) - p.number(*rates, 1), slack)

    known: dict[tuple[str, int], tuple[Recompute, str]] = {
        ("rubric revision, end to end", 0): (
            lambda p: Value.of(p.number(*table10, "end_to_end_points")),
            "Table 10, end to end",
        ),
        ("rubric revision, end to end", 1): (
            lambda p: Value.of(p.number(*table10, "ci95", 0)),
            "Table 10, its interval",
        ),
        ("rubric revision, end to end", 2): (
            lambda p: Value.of(p.number(*table10, "ci95", 1)),
            "Table 10, its interval",
        ),
        ("step 3, reconciliation pass", 0): (
            last_step,
            "the last two rates of Table 10; each may be off by half a digit",
        ),
        ("benchmark of origin, raw", 0): (
            origin,
            "the two rates in the caption; each may be off by half a digit",
        ),
    }
    ends = ("point", "low end", "high end")
    for row in book.paper.at(*key):
        for i, end in enumerate(ends):
            path, what = (*key, row, i), f"{row}: {end}"
            if (row, i) in known:
                recompute, how = known[row, i]
                book.add(where, what, path, recompute, how, unit="points")
                continue
            book.closed(
                where,
                what,
                path,
                "the labels are not public; ordered as low end, point, high end",
                between=lambda p, r=row, j=i: _in_order(p, (*key, r), j),
                unit="points",
            )
    book.add(
        where,
        "benchmark of origin, from the printed rates (caption)",
        (*caption, "benchmark of origin, from printed rates"),
        lambda p: Value.of(origin(p).low),
        "the two rates in the caption",
        unit="points",
    )
    book.add(
        where,
        "benchmark of origin, unrounded (caption)",
        (*caption, "benchmark of origin, unrounded"),
        origin,
        "the two rates in the caption; each may be off by half a digit",
        unit="points",
    )
    for i in range(2):
        book.closed(
            where,
            f"benchmark of origin, rate {i + 1} (caption)",
            (*caption, "benchmark of origin, rates", i),
            unit="%",
        )


def _in_order(paper: CountPaper, row: Path, place: int) -> Value:
    """Where a point or an end of its interval can be, given the two others."""
    if place == 0:
        return Value(paper.number(*row, 1), paper.number(*row, 2))
    point = paper.number(*row, 0)
    return Value(-math.inf, point) if place == 1 else Value(point, math.inf)


def _text(book: Book[CountPaper]) -> None:
    where = "In the text"

    def flagged(p: CountPaper) -> str:
        held_out = [g for g in p.at("held_out") if p.raw("counts", "B", g) is not None]
        graders = [*p.at("roster"), *held_out]
        both = [
            {g for g, classes in flagged_classes(p, c, graders).items() if p.top in classes}
            for c in ("A", "B")
        ]
        return list_in_words([g for g in graders if g in both[0] & both[1]])

    book.add(
        where,
        "graders that the rule flags on A and on B",
        ("flagged_on_A_and_B",),
        flagged,
        "audit of the counts of the roster and the held-out 7B grader: collapse rule",
        rests_on=Basis.COUNTS,
    )
    book.closed(
        where,
        "self-disagreement of the reference on A",
        ("self_disagreement_of_reference_A_pct",),
        "the votes are not public",
        unit="%",
    )
    book.closed(
        where, "effective n of the people on B", ("effective_n_B",), "the weights are not public"
    )


REPRODUCTION = Reproduction(
    name="missing-class",
    title=(
        "The Missing Compliance Class: LLM Graders That Collapse Jailbreak Success, and a Free Check"
    ),
    file="published_missing_class.json",
    titles={
        "Abstract": "What the abstract says of the rates",
        "Table 1": "Compliance and non-refusal rates for the same 900 responses",
        "Table 2": "Where each grader puts the reference’s compliant responses",
        "Figure 1": "How many of them each grader loses, and how far they move",
        "Table 3": "How many of them each grader keeps, on four corpora",
        "Table 5": "The spreads under three labelling protocols",
        "Table 6": "Dispersion of the eight graders’ rates",
        "Table 7": "Agreement with the reference beyond chance",
        COUNTS_SECTION: "Label counts of each grader",
        "Table 9": "Agreement with the consensus of the others, and labels that nobody shares",
        "Table 10": "One grader’s non-refusal rate after each decision",
        "Table 11": "Each grader against the people",
        "Table 12": "The held-out 7B grader",
        "Table 13": "Every grader on corpus A",
        "Table 14": "Spreads on each corpus, with and without the dense 8B and 9B graders",
        "Table 15": "Where each grader puts the reference’s compliant responses on corpus C",
        "Table 17": "Swings with their intervals",
        "In the text": "Flags, self-disagreement and the effective n",
    },
    lines=lines,
    note=(
        "One that cannot be recomputed may still be impossible beside the others; then it does not "
        "hold. Rates, spreads and flags come from the audit of count tables, kappa from its "
        "statistics of agreement. The tolerance, ±, is half of the last printed digit and what the "
        "rounding of other printed figures may add."
    ),
)
