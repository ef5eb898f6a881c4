"""Every figure of "Three Ways Classical Test Theory Can Mislead" that follows from its verdicts.

The verdicts ship, and all figures come from an audit of them, with the paper's choices: cluster
bootstrap of 2,000 draws, seed 0, four cuts, and 400 points for Livingston–Lewis.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from voirdire import auditing
from voirdire.auditing import Audit
from voirdire.bank import Bank
from voirdire.estimate import Estimate
from voirdire.options import Options
from voirdire.reproducing.base import (
    Basis,
    Book,
    Line,
    Paper,
    Path,
    Reproduction,
    Unsaid,
    Value,
    half_of_last_digit,
)
from voirdire.scene import Estimates
from voirdire.source import Source

Array = np.ndarray[Any, Any]

TABLE = "judge_item_bank.csv"
JUDGE, GOLD = "judge", "gold"
CUTS = ("4", "5", "6", "7")
DRAWS = 2_000  # of the bootstrap, and of the independent errors
SEED = 0
GRID = 400  # points of the printed Livingston–Lewis integral, Appendix A.3
ENDS = 0.012  # of an interval: two bootstraps of 2,000 draws differ by as much
PART_OF_WIDTH = 5  # and an end may never move by more than a fifth of the interval
STANDARD_ERRORS = 4  # by which a simulated figure may be off

AUDIT = "audit of the verdicts"
VERDICTS = "counted in the verdicts"


@dataclass(frozen=True)
class Found:
    """An audit of the verdicts that ship, with its numbers by name."""

    audit: Audit
    bank: Bank

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates(self.audit.estimates)

    def estimate(self, statistic: str, grader: str = JUDGE, **key: str) -> Estimate:
        """An estimate of the audit; raises :class:`Unsaid` where it says nothing."""
        found = self._estimates.get(statistic, grader=grader, **key)
        if found is None:
            raise Unsaid(
                f"the audit has no {statistic} of {grader} {' '.join(key.values())}".strip()
            )
        if found.number is None:
            raise Unsaid(f"{statistic} of {grader}: {found.reason}")
        return found

    def value(self, statistic: str, grader: str = JUDGE, **key: str) -> float:
        found = self.estimate(statistic, grader, **key).number
        assert found is not None
        return found

    def ends(self, statistic: str, **key: str) -> tuple[float, float]:
        """The interval of an estimate of the judge."""
        found = self.estimate(statistic, **key)
        if found.interval is None:
            raise Unsaid(f"{statistic} has no interval: {found.no_interval}")
        return found.interval.low, found.interval.high

    def over_cuts(self, of: Callable[[str], float]) -> list[float]:
        return [of(cut) for cut in CUTS]

    # --- what the paper counts -----------------------------------------------------------------

    @cached_property
    def scored(self) -> Array:
        """Which responses the judge and gold both have all verdicts on, ``(responses,)``."""
        return np.asarray(self.bank.complete.all(axis=1))

    @cached_property
    def unparsed(self) -> Counter[int]:
        """How many unparsed responses each question has."""
        return Counter(self.bank.question[~self.scored].tolist())

    @cached_property
    def errors(self) -> dict[str, float]:
        """The judge's errors by checklist line, from its error rate on each; lines without any too."""
        counts = {}
        for line in self.bank.lines:
            found = self._estimates.get("element_error", grader=JUDGE, line=line)
            if found is not None and found.number is not None and found.n is not None:
                counts[line] = found.number * found.n
        if not counts:
            raise Unsaid("the audit has no element_error of any line")
        return counts

    @cached_property
    def by_question(self) -> Counter[str]:
        """The judge's errors by question: the part of a line's name before its last slash."""
        counts = Counter[str]()
        for line, errors in self.errors.items():
            counts[line.rpartition("/")[0]] += round(errors)
        return counts

    @cached_property
    def sentences(self) -> Array:
        """How many sentences each response has, ``(responses,)``."""
        import polars as pl

        labels = self.audit.labels
        first = np.unique(labels.response_codes, return_index=True)[1]
        return np.asarray(labels.frame["sentences"].cast(pl.Float64).to_numpy()[first])

    def row(self, response: str) -> int:
        """Where a response stands in the bank."""
        labels = self.audit.labels
        return int(labels.response_codes[labels.frame["response"].to_list().index(response)])

    def gold_totals(self) -> Array:
        """Gold totals of all responses, ``(responses,)``."""
        return np.asarray(self.bank.totals[:, self.bank.places[GOLD]])


@cache
def found(graders: tuple[str, ...] = (JUDGE, GOLD), interval: str = "bootstrap") -> Found:
    """The audit of the verdicts that ship, of these graders."""
    options = Options.of(
        layout="checklist",
        response="item_id",
        question="question_id",
        gold=GOLD if JUDGE in graders else "none",
        graders=graders,
        cut=[int(cut) for cut in CUTS] if JUDGE in graders else (),
        interval=interval,
        replicates=DRAWS,
        seed=SEED,
        livingston_lewis_grid=GRID,
    )
    content = (files("voirdire") / "data" / TABLE).read_bytes()
    labels = auditing.read(Source(name=TABLE, content=content), options=options)
    bank = auditing.scenes(labels)[0].bank
    assert bank is not None
    return Found(audit=auditing.run(labels), bank=bank)


def all_gold() -> Found:
    """The same for gold alone, on all responses."""
    return found((GOLD,), "auto")


# --- lines --------------------------------------------------------------------------------------


def lines(figures: Mapping[str, Any]) -> tuple[Line, ...]:
    """Every line of the ledger, in the order in which the paper first prints the figures."""
    book = Book(Paper(figures))
    for section in (
        _abstract,
        _section1,
        _section2,
        _section3,
        _section4,
        _section5,
        _section6,
        _appendix1,
        _table_a2,
        _appendix2,
        _table_a3,
        _appendix3,
        _table_a6,
    ):
        section(book)
    return tuple(book.lines)


Of = Callable[..., "float | Value | str"]  # from what was found; lambdas bind what a loop runs over


@dataclass(frozen=True)
class Place:
    """A place of the paper. Values come from the verdicts alone: no printed figure is looked at."""

    book: Book[Paper]
    where: str

    def add(
        self, what: str, path: Path, value: Of, how: str, *, unit: str = "", also: str = ""
    ) -> None:
        """One figure; ``also`` says where else it is printed."""

        def recompute(_: Paper) -> Value | str:
            come_out = value(found())
            return come_out if isinstance(come_out, Value | str) else Value.of(come_out)

        how = f"{how}; also in {also}" if also else how
        self.book.add(self.where, what, path, recompute, how, rests_on=Basis.BANK, unit=unit)

    def interval(
        self,
        what: str,
        path: Path,
        statistic: str,
        *,
        percent: bool = False,
        also: str = "",
        **key: str,
    ) -> None:
        """Both ends of an interval."""
        factor = 100 if percent else 1
        for end, which in enumerate(("lower", "upper")):
            printed = self.book.paper.raw(*path, end)

            def come_out(f: Found, end: int = end, printed: Any = printed) -> Value:
                low, high = f.ends(statistic, **key)
                room = factor * min(ENDS, (high - low) / PART_OF_WIDTH)
                return Value.of(
                    factor * (low, high)[end], max(0.0, room - half_of_last_digit(printed))
                )

            self.add(
                f"{what}, {which} end",
                (*path, end),
                come_out,
                f"{AUDIT}: {statistic}, percentile bootstrap",
                unit="%" if percent else "",
                also=also,
            )

    def range(
        self,
        what: str,
        path: Path,
        over_cuts: Callable[[Found], Sequence[float]],
        how: str,
        *,
        also: str = "",
    ) -> None:
        """The lowest and the highest over the cuts."""
        for end, (which, pick) in enumerate((("lowest", min), ("highest", max))):
            self.add(
                f"{what}, {which} over cuts 4 to 7",
                (*path, end),
                lambda f, pick=pick: pick(over_cuts(f)),
                how,
                also=also,
            )

    def at_cuts(
        self, what: str, path: Path, value: Of, how: str, *, also: Mapping[str, str] | None = None
    ) -> None:
        """One figure a cut; ``value`` takes the cut too."""
        for i, cut in enumerate(CUTS):
            self.add(
                f"{what} at cut {cut}",
                (*path, i),
                lambda f, cut=cut: value(f, cut),
                how,
                also=(also or {}).get(cut, ""),
            )


def _within(bound: float, *, at_most: float) -> str:
    """What a sentence that gives a bound comes out as: its own words where they are true."""
    return f"within {bound:g}" if at_most <= bound else f"{at_most:.6f}"


# What several places of the paper are made of, at one cut.


def _accuracy(f: Found, cut: str) -> float:
    return f.value("gate_accuracy", cut=cut)


def _phi_lambda(f: Found, cut: str, grader: str = JUDGE) -> float:
    return f.value("phi_lambda", grader, cut=cut)


def _ll(f: Found, cut: str, grader: str = JUDGE) -> float:
    return f.value("livingston_lewis_accuracy", grader, cut=cut)


def _of_judge(statistic: str, factor: float = 1.0, **key: str) -> Of:
    return lambda f: factor * f.value(statistic, **key)


# --- the paper, place by place ------------------------------------------------------------------


def _abstract(book: Book[Paper]) -> None:
    at, bank = Place(book, "Abstract"), ("bank",)
    at.add("responses of the bank", (*bank, "responses"), lambda f: f.bank.responses, VERDICTS)
    at.add(
        "elements of each checklist, K",
        (*bank, "K"),
        lambda f: f.bank.k,
        VERDICTS,
        also="Table A.8",
    )
    at.add(
        "responses with parsed verdicts",
        (*bank, "parsed"),
        lambda f: int(f.scored.sum()),
        VERDICTS,
        also="Table A.8",
    )
    for side in (JUDGE, GOLD):
        at.add(
            f"KR-20 of {side}",
            ("kr20", side),
            lambda f, side=side: f.value("kr20", side),
            f"{AUDIT}: kr20",
            also="Section 3 and Table A.8",
        )
    at.add(
        "errors of the judge per element verdict",
        ("judge_error", "per_element_pct"),
        _of_judge("element_error", 100),
        f"{AUDIT}: element_error",
        unit="%",
        also="Sections 2, 3 and 6",
    )
    at.range(
        "accuracy less Φ(λ)",
        ("between", "accuracy_minus_phi_lambda"),
        lambda f: f.over_cuts(lambda c: _accuracy(f, c) - _phi_lambda(f, c)),
        f"{AUDIT}: gate_accuracy less phi_lambda",
        also="Sections 4 and 7, and Figure A.2",
    )
    at.range(
        "Φ(λ) of gold",
        ("between", "phi_lambda_gold"),
        lambda f: f.over_cuts(lambda c: _phi_lambda(f, c, GOLD)),
        f"{AUDIT}: phi_lambda of gold",
        also="Sections 1 and 4",
    )
    for side in (GOLD, JUDGE):
        at.add(
            f"Livingston–Lewis accuracy of {side} at a pass mark of five",
            ("at_cut_5", f"livingston_lewis_{side}"),
            lambda f, side=side: _ll(f, "5", side),
            f"{AUDIT}: livingston_lewis_accuracy",
        )


def _section1(book: Book[Paper]) -> None:
    Place(book, "Section 1").range(
        "Livingston–Lewis accuracy of gold",
        ("between", "livingston_lewis_accuracy_gold"),
        lambda f: f.over_cuts(lambda c: _ll(f, c, GOLD)),
        f"{AUDIT}: livingston_lewis_accuracy of gold",
        also="Section 7 and Appendix A.4",
    )


def _section2(book: Book[Paper]) -> None:
    at, bank = Place(book, "Section 2"), ("bank",)
    at.add("questions of the bank", (*bank, "questions"), lambda f: len(f.bank.questions), VERDICTS)
    at.add(
        "correlation of sentence count and gold total",
        ("length_cue_r",),
        lambda f: float(np.corrcoef(f.sentences, f.gold_totals())[0, 1]),
        "Pearson's correlation over all responses; the sentence counts ship with the verdicts",
    )
    for what, statistic, name in (
        ("mean of gold totals, all responses", "total_mean", "mean"),
        ("SD of gold totals, all responses", "total_sd", "sd"),
        ("gold totals at the ceiling, all responses", "total_at_ceiling", "at_ceiling"),
    ):
        at.add(
            what,
            ("totals", "all", name),
            lambda f, s=statistic: _gold_total(s),
            f"audit of gold alone: {statistic}",
            also="Appendix A.2",
        )
    at.add(
        "responses that did not parse",
        (*bank, "unparsed"),
        lambda f: int((~f.scored).sum()),
        VERDICTS,
        also="Section 6 and Appendix A.1",
    )
    at.add(
        "questions that they fall in",
        (*bank, "questions_with_unparsed"),
        lambda f: len(f.unparsed),
        VERDICTS,
        also="Appendix A.1",
    )
    at.add(
        "questions that lost all of their responses",
        (*bank, "questions_all_unparsed"),
        lambda f: sum(n == _size(f, q) for q, n in f.unparsed.items()),
        VERDICTS,
        also="Section 6 and Appendix A.1",
    )
    at.add(
        "responses of each of those",
        (*bank, "responses_each_question"),
        lambda f: _same([_size(f, q) for q in range(len(f.bank.questions))]),
        f"{VERDICTS}, for every question",
        also="Appendix A.1",
    )
    at.add(
        "question clusters that remain",
        (*bank, "questions_scored"),
        lambda f: len(np.unique(f.bank.question[f.scored])),
        VERDICTS,
        also="Table A.8",
    )
    at.add(
        "correlation of judge and gold totals",
        ("judge_error", "total_correlation"),
        _of_judge("total_correlation"),
        f"{AUDIT}: total_correlation",
    )
    at.interval(
        "errors per element verdict", ("judge_error", "ci95"), "element_error", percent=True
    )
    at.add(
        "judge total less gold total",
        ("judge_error", "leniency_elements"),
        _of_judge("leniency"),
        f"{AUDIT}: leniency",
        unit="elements",
        also="Appendix A.2",
    )
    for what, statistic in (
        ("absent elements accepted", "false_accept"),
        ("present elements rejected", "false_reject"),
    ):
        at.add(
            what,
            ("judge_error", f"{statistic}_pct"),
            _of_judge(statistic, 100),
            f"{AUDIT}: {statistic}",
            unit="%",
            also="Section 5, Appendix A.2 and Table A.8",
        )
        at.interval(
            what,
            ("judge_error", f"{statistic}_ci95"),
            statistic,
            percent=True,
            also="Appendix A.2 and Table A.8",
        )


def _size(f: Found, question: int) -> int:
    return int((f.bank.question == question).sum())


def _same(numbers: Sequence[float]) -> Value:
    """One number, or the range where they are not all the same."""
    return Value(float(min(numbers)), float(max(numbers)))


def _gold_total(statistic: str) -> float:
    return all_gold().value(statistic, GOLD)


def _section3(book: Book[Paper]) -> None:
    at, kr20 = Place(book, "Section 3"), ("kr20",)
    at.interval("KR-20 of judge less gold", (*kr20, "difference_ci95"), "kr20_minus_gold")
    at.add(
        "KR-20 of judge and gold lie",
        (*kr20, "difference_within"),
        lambda f: _within(0.001, at_most=abs(f.value("kr20_minus_gold"))),
        f"{AUDIT}: kr20_minus_gold, in absolute value at most this",
    )
    _independent(at, "overall", "overall_rates", "at the overall rates")
    at.add(
        "KR-20 of judge to three digits",
        (*kr20, "rounded_to_three"),
        _of_judge("kr20"),
        f"{AUDIT}: kr20",
    )
    at.add(
        "standardised form of KR-20 on gold",
        (*kr20, "standardised_gold"),
        lambda f: f.value("kr20_standardised", GOLD),
        f"{AUDIT}: kr20_standardised",
    )
    for side, name in ((GOLD, "mean_interelement_r"), (JUDGE, "mean_interelement_r_judge")):
        at.add(
            f"mean inter-element correlation of {side}",
            (*kr20, name),
            lambda f, side=side: f.value("mean_inter_element_correlation", side),
            f"{AUDIT}: mean_inter_element_correlation",
            also="Appendix A.3 and Table A.8" if side == GOLD else "",
        )


def _independent(at: Place, line: str, name: str, rates: str) -> None:
    """KR-20 of gold under independent errors, within four Monte-Carlo standard errors.

    Both the printed figure and ours are simulated, which makes √2 of one run's standard error.
    """
    path = ("independence_check", name)

    def value(f: Found, what: str) -> float:
        return f.value(f"independent_error_kr20_{what}", line=line)

    def apart(error: float) -> float:
        return STANDARD_ERRORS * math.sqrt(2) * error

    def mean(f: Found) -> Value:
        return Value.of(value(f, "mean"), apart(value(f, "sd") / math.sqrt(DRAWS)))

    def sd(f: Found) -> Value:
        return Value.of(value(f, "sd"), apart(value(f, "sd") / math.sqrt(2 * (DRAWS - 1))))

    def above(f: Found) -> Value:
        share = value(f, "share_at_or_above")
        return Value.of(100 * share, apart(100 * math.sqrt(share * (1 - share) / DRAWS)))

    how = f"{AUDIT}: {DRAWS:,} draws of independent errors; within 4 Monte-Carlo standard errors"
    title = f"KR-20 of gold with independent errors {rates}"
    at.add(f"{title}, mean", (*path, "mean"), mean, how)
    at.add(f"{title}, SD", (*path, "sd"), sd, how)
    if at.book.paper.raw(*path, "share_of_draws_at_or_above_observed_pct") is not None:
        at.add(
            f"{title}, draws at or above the judge's",
            (*path, "share_of_draws_at_or_above_observed_pct"),
            above,
            how,
            unit="%",
        )


def _section4(book: Book[Paper]) -> None:
    at, gate, between = Place(book, "Section 4"), ("gate",), ("between",)
    at.at_cuts(
        "accuracy against gold",
        (*gate, "accuracy"),
        _accuracy,
        f"{AUDIT}: gate_accuracy",
        also=dict.fromkeys(CUTS, "Table A.6 and Appendix A.1") | {"5": "Tables A.6 and A.8"},
    )
    for side in (JUDGE, GOLD):
        at.at_cuts(
            f"Φ(λ) of {side}",
            (*gate, f"phi_lambda_{side}"),
            lambda f, cut, side=side: _phi_lambda(f, cut, side),
            f"{AUDIT}: phi_lambda",
            also={"5": "Table A.8"},
        )
    at.range(
        "Livingston–Lewis accuracy less Φ(λ), both of judge",
        (*between, "livingston_lewis_minus_phi_lambda"),
        lambda f: f.over_cuts(lambda c: _ll(f, c) - _phi_lambda(f, c)),
        f"{AUDIT}: livingston_lewis_accuracy less phi_lambda",
    )
    at.range(
        "accuracy against gold less Livingston–Lewis accuracy",
        (*between, "accuracy_minus_livingston_lewis"),
        lambda f: f.over_cuts(lambda c: _accuracy(f, c) - _ll(f, c)),
        f"{AUDIT}: gate_accuracy less livingston_lewis_accuracy",
    )
    at.add(
        "reliability that the beta-binomial of the judge's totals implies",
        ("beta_binomial_judge", "implied_reliability"),
        _of_judge("beta_binomial_reliability"),
        f"{AUDIT}: beta_binomial_reliability",
        also="Appendix A.2",
    )
    for side in (GOLD, JUDGE):
        at.at_cuts(
            f"Livingston–Lewis accuracy of {side}",
            (*gate, f"livingston_lewis_accuracy_{side}"),
            lambda f, cut, side=side: _ll(f, cut, side),
            f"{AUDIT}: livingston_lewis_accuracy, {GRID}-point grid",
            also=dict.fromkeys(CUTS, "Table A.6") | {"5": "Tables A.6 and A.8"},
        )
    at.range(
        "1 less Livingston–Lewis accuracy of gold",
        (*between, "one_minus_livingston_lewis_gold"),
        lambda f: f.over_cuts(lambda c: 1 - _ll(f, c, GOLD)),
        f"{AUDIT}: livingston_lewis_accuracy of gold",
    )
    at.add(
        "Livingston–Lewis accuracy of judge and gold lie",
        ("livingston_lewis_sides",),
        lambda f: _within(
            0.04, at_most=max(f.over_cuts(lambda c: abs(_ll(f, c) - _ll(f, c, GOLD))))
        ),
        f"{AUDIT}: livingston_lewis_accuracy, at every cut",
        also="Appendix A.4",
    )
    at.range(
        "gate error of the judge",
        (*between, "gate_error"),
        lambda f: f.over_cuts(lambda c: 1 - _accuracy(f, c)),
        f"{AUDIT}: 1 less gate_accuracy",
    )
    at.range(
        "Livingston–Lewis accuracy of judge less gold",
        (*between, "livingston_lewis_judge_minus_gold"),
        lambda f: f.over_cuts(lambda c: _ll(f, c) - _ll(f, c, GOLD)),
        f"{AUDIT}: livingston_lewis_accuracy",
    )


def _section5(book: Book[Paper]) -> None:
    at, key = Place(book, "Section 5"), ("judge_error",)
    also = "Appendix A.2 and Table A.8"
    at.add(
        "checklist lines that were judged",
        (*key, "lines"),
        lambda f: len(f.errors),
        f"{AUDIT}: lines with an element_error",
        also=also,
    )
    at.add(
        "errors of the judge",
        (*key, "errors"),
        lambda f: sum(f.errors.values()),
        f"{AUDIT}: element_error of each line times its verdicts",
        also=also,
    )
    at.add(
        "errors on the five worst lines",
        (*key, "worst5_lines_errors"),
        lambda f: sum(sorted(f.errors.values())[-5:]),
        f"{AUDIT}: element_error of each line times its verdicts",
        also=also,
    )


def _section6(book: Book[Paper]) -> None:
    Place(book, "Section 6").add(
        "errors per element, every unparsed verdict an error",
        ("judge_error", "unparsed_as_error_per_element_pct"),
        _of_judge("element_error_unparsed_wrong", 100),
        f"{AUDIT}: element_error_unparsed_wrong",
        unit="%",
        also="Appendix A.1",
    )


def _appendix1(book: Book[Paper]) -> None:
    at = Place(book, "Appendix A.1")
    at.add(
        "unparsed responses of the third question",
        ("bank", "most_unparsed_in_third_question"),
        lambda f: sorted(f.unparsed.values())[0],
        VERDICTS,
    )
    for what, name, statistic, also in (
        (
            "accuracy with an unparsed output a rejection",
            "unparsed_as_rejection",
            "gate_accuracy_unparsed_rejected",
            "Section 6",
        ),
        (
            "accuracy with an unparsed output a gate error",
            "unparsed_as_gate_error",
            "gate_accuracy_unparsed_wrong",
            "Section 6 and Table A.8",
        ),
    ):
        at.at_cuts(
            what,
            ("gate", name),
            lambda f, cut, s=statistic: f.value(s, cut=cut),
            f"{AUDIT}: {statistic}",
            also={"5": also},
        )


def _table_a2(book: Book[Paper]) -> None:
    at, key = Place(book, "Table A.2"), ("response_30",)

    def bits(f: Found, side: str) -> str:
        return "".join(map(str, f.bank.of(side)[f.row("30")]))

    at.add(
        "question of response 30",
        (*key, "question"),
        lambda f: float(f.bank.questions[f.bank.question[f.row("30")]]),
        VERDICTS,
    )
    for side in (GOLD, JUDGE):
        at.add(
            f"verdicts of {side} on response 30",
            (*key, side),
            lambda f, side=side: bits(f, side),
            VERDICTS,
        )
        at.add(
            f"total of {side} on response 30",
            (*key, f"{side}_total"),
            lambda f, side=side: float(f.bank.totals[f.row("30"), f.bank.places[side]]),
            VERDICTS,
        )
    at.add(
        "sentences of response 30",
        (*key, "sentences"),
        lambda f: float(f.sentences[f.row("30")]),
        "the sentence counts ship with the verdicts",
    )


def _appendix2(book: Book[Paper]) -> None:
    at, key = Place(book, "Appendix A.2"), ("judge_error",)
    at.add(
        "gold totals of 0, all responses",
        ("totals", "all", "at_zero"),
        lambda f: _gold_total("total_at_zero"),
        "audit of gold alone: total_at_zero",
    )
    for what, statistic, side, name, also in (
        ("mean of gold totals, scored responses", "total_mean", GOLD, "mean", ""),
        ("SD of gold totals, scored responses", "total_sd", GOLD, "sd", "Table A.8"),
        ("gold totals at the ceiling", "total_at_ceiling", GOLD, "gold_at_ceiling", "Figure A.1"),
        (
            "judge totals at the ceiling",
            "total_at_ceiling",
            JUDGE,
            "judge_at_ceiling",
            "Figure A.1",
        ),
    ):
        at.add(
            what,
            ("totals", "scored", name),
            lambda f, s=statistic, side=side: f.value(s, side),
            f"{AUDIT}: {statistic}",
            also=also,
        )
    check = ("independence_check",)
    at.add(
        "variance of errors per response",
        (*check, "observed_error_count_variance"),
        _of_judge("error_count_variance"),
        f"{AUDIT}: error_count_variance",
    )
    for line, name, rates in (
        ("overall", "overall_rates", "the overall rates"),
        ("by_line", "line_rates", "each line's own rates"),
    ):
        at.add(
            f"that variance with independent errors at {rates}",
            (*check, name, "error_count_variance"),
            _of_judge("error_count_variance_if_independent", line=line),
            f"{AUDIT}: error_count_variance_if_independent",
        )
    _independent(at, "by_line", "line_rates", "at each line's own rates")
    at.add(
        "errors in the three worst questions",
        (*key, "errors_in_worst_3_questions"),
        lambda f: sum(n for _, n in f.by_question.most_common(3)),
        f"{AUDIT}: element_error of each line times its verdicts, by question",
    )
    at.add(
        "lines that the errors fall on",
        (*key, "lines_with_errors"),
        lambda f: sum(errors > 0 for errors in f.errors.values()),
        f"{AUDIT}: lines with an element_error above 0",
    )
    at.add(
        "error of the first-listed element",
        (*key, "position1_error"),
        _of_judge("element_error", line="position:1"),
        f"{AUDIT}: element_error by position",
    )
    at.interval(
        "error of the first-listed element",
        (*key, "position1_ci95"),
        "element_error",
        line="position:1",
    )
    at.add(
        "questions with errors on it",
        (*key, "position1_questions"),
        lambda f: _at_position(f, 0, lambda errors: errors > 0),
        f"{AUDIT}: first lines with an element_error above 0",
    )
    at.add(
        "share of errors on the five worst lines",
        (*key, "worst5_lines_share_pct"),
        lambda f: Value.of(100 * sum(sorted(f.errors.values())[-5:]) / sum(f.errors.values()), 0.5),
        f"{AUDIT}: element_error of each line times its verdicts",
        unit="%",
    )
    for name, digits in (("alpha", "α"), ("beta", "β"), ("chi2", "χ²"), ("df", "df"), ("p", "p")):
        at.add(
            f"beta-binomial of the judge's totals, {digits}",
            ("beta_binomial_judge", name),
            _of_judge(f"beta_binomial_{name}"),
            f"{AUDIT}: beta_binomial_{name}",
            also="Appendix A.3" if name in ("alpha", "beta") else "",
        )


def _at_position(f: Found, position: int, counts: Callable[[float], bool]) -> float:
    """How many of the lines at a position that were judged have such a number of errors."""
    standing = {f.bank.lines[i] for i in f.bank.line[:, position] if i >= 0}
    return sum(counts(errors) for line, errors in f.errors.items() if line in standing)


def _table_a3(book: Book[Paper]) -> None:
    at, key = Place(book, "Table A.3"), ("judge_error",)
    for j in range(len(book.paper.at(*key, "gold_rate_by_position"))):
        at.add(
            f"gold rate at position {j + 1}",
            (*key, "gold_rate_by_position", j),
            lambda f, j=j: float(f.bank.of(GOLD)[f.scored, j].mean()),
            VERDICTS,
        )
    for j in range(len(book.paper.at(*key, "by_position"))):
        at.add(
            f"judge error at position {j + 1}",
            (*key, "by_position", j),
            _of_judge("element_error", line=f"position:{j + 1}"),
            f"{AUDIT}: element_error by position",
        )
    at.add(
        "lines that each position pools",
        (*key, "lines_each_position"),
        lambda f: _same([_at_position(f, j, lambda _: True) for j in range(f.bank.k)]),
        f"{AUDIT}: lines with an element_error",
    )


def _appendix3(book: Book[Paper]) -> None:
    at = Place(book, "Appendix A.3")
    at.add(
        "correlation between element errors",
        ("independence_check", "error_phi"),
        _of_judge("error_phi"),
        f"{AUDIT}: error_phi",
    )
    for end, (which, pick) in enumerate((("lowest", np.min), ("highest", np.max))):
        at.add(
            f"{which} gold rate of a position",
            ("judge_error", "gold_rate_between", end),
            lambda f, pick=pick: float(pick(f.bank.of(GOLD)[f.scored].mean(axis=0))),
            VERDICTS,
        )
    for side in (JUDGE, GOLD):
        at.add(
            f"position component of {side}",
            ("position_component", side),
            lambda f, side=side: _below(0.0001, f.value("component_position", side)),
            f"{AUDIT}: component_position",
        )
    at.range(
        "Φ(λ) less that of the paper's version 1",
        ("gate", "phi_lambda_v1_understated_by"),
        lambda f: f.over_cuts(lambda c: _phi_lambda(f, c) - _phi_lambda_v1(f, c)),
        "the error term is the variance of all verdicts over K, the response component what it leaves "
        "of the variance of the proportions; with the component of the analysis of variance it would "
        "be less",
    )


def _below(bound: float, x: float) -> str:
    """``below 0.0001`` where it is, else the number."""
    return f"below {bound}" if x < bound else f"{x:.6f}"


def _phi_lambda_v1(f: Found, cut: str) -> float:
    """Φ(λ) with version 1's error term, on the judge's verdicts.

    The variance of all verdicts, p(1 − p), over K stands for the absolute error, and what it leaves
    of the variance of the proportions for the response component; the bias of (p − λ)² is taken off
    as in the printed estimator.
    """
    k = f.bank.k
    n = float(f.scored.sum())
    p = f.value("total_mean") / k
    error = p * (1 - p) / k
    response = (f.value("total_sd") / k) ** 2 - error
    signal = response + (p - int(cut) / k) ** 2 - (response + error) / n
    return signal / (signal + error)


def _table_a6(book: Book[Paper]) -> None:
    at, gate = Place(book, "Table A.6"), ("gate",)
    for i, cut in enumerate(CUTS):
        at.interval(
            f"accuracy against gold at cut {cut}",
            (*gate, "accuracy_ci95", i),
            "gate_accuracy",
            cut=cut,
            also="Table A.8" if cut == "5" else "",
        )
    at.at_cuts(
        "accuracy less Livingston–Lewis accuracy",
        (*gate, "accuracy_minus_livingston_lewis"),
        lambda f, cut: _accuracy(f, cut) - _ll(f, cut),
        f"{AUDIT}: gate_accuracy less livingston_lewis_accuracy",
    )
    at.at_cuts(
        "1 less Livingston–Lewis accuracy of gold",
        (*gate, "one_minus_livingston_lewis_gold"),
        lambda f, cut: f.value("decomposition_bank_shortfall", cut=cut),
        f"{AUDIT}: decomposition_bank_shortfall",
    )
    at.at_cuts(
        "Livingston–Lewis consistency of judge",
        (*gate, "livingston_lewis_consistency_judge"),
        lambda f, cut: f.value("livingston_lewis_consistency", cut=cut),
        f"{AUDIT}: livingston_lewis_consistency, {GRID}-point grid",
    )
    at.add(
        "cuts at which that shortfall is the largest of the three terms",
        ("shortfall_is_largest_term_at",),
        lambda f: ", ".join(cut for cut in CUTS if _shortfall_is_largest(f, cut)),
        f"{AUDIT}: the decomposition's terms in absolute value",
    )


def _shortfall_is_largest(f: Found, cut: str) -> bool:
    terms = ("bank_shortfall", "gate_error", "difference")
    sizes = [abs(f.value(f"decomposition_{term}", cut=cut)) for term in terms]
    return sizes[0] == max(sizes)


REPRODUCTION = Reproduction(
    name="three-ways",
    title="Three Ways Classical Test Theory Can Mislead About LLM Judges",
    file="published_three_ways.json",
    tables=(TABLE,),
    titles={
        "Abstract": "What the abstract says of the bank and its coefficients",
        "Section 1": "What the introduction adds",
        "Section 2": "The bank and the judge",
        "Section 3": "Internal consistency",
        "Section 4": "The gate: accuracy, Φ(λ) and Livingston–Lewis",
        "Section 5": "How the errors concentrate",
        "Section 6": "Unparsed verdicts as errors",
        "Appendix A.1": "The gate over all responses",
        "Table A.2": "The worked response",
        "Appendix A.2": "Totals, and the structure of the errors",
        "Table A.3": "Gold rates and judge errors by position",
        "Appendix A.3": "Estimators",
        "Table A.6": "Livingston–Lewis beside accuracy against gold",
    },
    lines=lines,
    note=(
        "All of them come from an audit of the verdicts that ship, with four cuts, the percentile "
        f"bootstrap over questions ({DRAWS:,} draws, seed {SEED}) and the {GRID}-point grid for "
        "Livingston–Lewis. A figure stands where it is printed first. The tolerance, ±, is half of "
        f"the last printed digit; of an end of an interval {ENDS} or a fifth of its width, whichever "
        "is less; of the draws of independent errors also 4 Monte-Carlo standard errors."
    ),
    later=(
        "Simulated: not in this ledger yet: Figure 2, Tables A.4, A.5 and A.7, the one-directional "
        "sweep, and the controls of Φ(λ) and of Livingston–Lewis."
    ),
)
