"""Every figure of "Three Ways Classical Test Theory Can Mislead": from its verdicts, or simulated anew.

The verdicts ship, and what follows from them comes from an audit of them, with the paper's choices:
cluster bootstrap of 2,000 draws, seed 0, four cuts, and 400 points for Livingston–Lewis. What the paper
simulated is simulated with its models, parameters and seeds, on another random stream.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from statistics import NormalDist
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
    NotPrinted,
    Paper,
    Path,
    Reproduction,
    Unsaid,
    Value,
    half_of_last_digit,
)
from voirdire.scene import Estimates
from voirdire.simulate import sweeps
from voirdire.simulate.sweeps import Sweep
from voirdire.source import Source

Array = np.ndarray[Any, Any]

TABLE = "judge_item_bank.csv"
JUDGE, GOLD = "judge", "gold"
# A coefficient is the bank's: it stands on somebody's verdicts.
ON = {JUDGE: "on the judge's verdicts", GOLD: "on gold's verdicts"}
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
            raise Unsaid(f"{statistic} on the verdicts of {grader}: {found.reason}")
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
        _table_a4,
        _table_a5,
        _appendix4,
        _table_a6,
        _table_a7,
        _appendix5,
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
            f"KR-20 {ON[side]}",
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
        "Φ(λ) on gold's verdicts",
        ("between", "phi_lambda_gold"),
        lambda f: f.over_cuts(lambda c: _phi_lambda(f, c, GOLD)),
        f"{AUDIT}: phi_lambda on gold's verdicts",
        also="Sections 1 and 4",
    )
    for side in (GOLD, JUDGE):
        at.add(
            f"Livingston–Lewis accuracy {ON[side]} at a pass mark of five",
            ("at_cut_5", f"livingston_lewis_{side}"),
            lambda f, side=side: _ll(f, "5", side),
            f"{AUDIT}: livingston_lewis_accuracy",
        )
    _ends_at_measured_rate(book, "Abstract")


def _section1(book: Book[Paper]) -> None:
    Place(book, "Section 1").range(
        "Livingston–Lewis accuracy on gold's verdicts",
        ("between", "livingston_lewis_accuracy_gold"),
        lambda f: f.over_cuts(lambda c: _ll(f, c, GOLD)),
        f"{AUDIT}: livingston_lewis_accuracy on gold's verdicts",
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
    at.interval(
        "KR-20 on the judge's verdicts less gold's", (*kr20, "difference_ci95"), "kr20_minus_gold"
    )
    at.add(
        "KR-20 on the judge's and on gold's verdicts lie",
        (*kr20, "difference_within"),
        lambda f: _within(0.001, at_most=abs(f.value("kr20_minus_gold"))),
        f"{AUDIT}: kr20_minus_gold, in absolute value at most this",
    )
    _independent(at, "overall", "overall_rates", "at the overall rates")
    at.add(
        "KR-20 on the judge's verdicts to three digits",
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
            f"mean inter-element correlation {ON[side]}",
            (*kr20, name),
            lambda f, side=side: f.value("mean_inter_element_correlation", side),
            f"{AUDIT}: mean_inter_element_correlation",
            also="Appendix A.3 and Table A.8" if side == GOLD else "",
        )
    _section3_simulated(book)


def _independent(at: Place, line: str, name: str, rates: str) -> None:
    """KR-20 on gold's verdicts under independent errors, within four Monte-Carlo standard errors.

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
    title = f"KR-20 on gold's verdicts with independent errors {rates}"
    at.add(f"{title}, mean", (*path, "mean"), mean, how)
    at.add(f"{title}, SD", (*path, "sd"), sd, how)
    if at.book.paper.raw(*path, "share_of_draws_at_or_above_observed_pct") is not None:
        at.add(
            f"{title}, draws at or above that {ON[JUDGE]}",
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
            f"Φ(λ) {ON[side]}",
            (*gate, f"phi_lambda_{side}"),
            lambda f, cut, side=side: _phi_lambda(f, cut, side),
            f"{AUDIT}: phi_lambda",
            also={"5": "Table A.8"},
        )
    at.range(
        "Livingston–Lewis accuracy less Φ(λ), both on the judge's verdicts",
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
            f"Livingston–Lewis accuracy {ON[side]}",
            (*gate, f"livingston_lewis_accuracy_{side}"),
            lambda f, cut, side=side: _ll(f, cut, side),
            f"{AUDIT}: livingston_lewis_accuracy, {GRID}-point grid",
            also=dict.fromkeys(CUTS, "Table A.6") | {"5": "Tables A.6 and A.8"},
        )
    at.range(
        "1 less Livingston–Lewis accuracy on gold's verdicts",
        (*between, "one_minus_livingston_lewis_gold"),
        lambda f: f.over_cuts(lambda c: 1 - _ll(f, c, GOLD)),
        f"{AUDIT}: livingston_lewis_accuracy on gold's verdicts",
    )
    at.add(
        "Livingston–Lewis accuracy on the judge's and on gold's verdicts lie",
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
        "Livingston–Lewis accuracy on the judge's verdicts less gold's",
        (*between, "livingston_lewis_judge_minus_gold"),
        lambda f: f.over_cuts(lambda c: _ll(f, c) - _ll(f, c, GOLD)),
        f"{AUDIT}: livingston_lewis_accuracy",
    )
    _controls(book)


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
    _largest_difference(book)
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
            f"position component {ON[side]}",
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
        "1 less Livingston–Lewis accuracy on gold's verdicts",
        (*gate, "one_minus_livingston_lewis_gold"),
        lambda f, cut: f.value("decomposition_bank_shortfall", cut=cut),
        f"{AUDIT}: decomposition_bank_shortfall",
    )
    at.at_cuts(
        "Livingston–Lewis consistency on the judge's verdicts",
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


# --- what is simulated --------------------------------------------------------------------------

FAMILY_LEVEL = 0.05  # by which chance alone may break any line of one table
SPREADS, ERRORS = sweeps.SPREADS, (0.0, sweeps.MEASURED, *sweeps.ERRORS[1:])
SWEEP, STATED = ("sweep_kr20",), ("sweep_stated",)
RESAMPLES = 1_000  # of the replicates, for the standard error of a quantile
SIMULATED = "simulated"


@cache
def _sweep(name: str) -> Sweep:
    """A sweep with the paper's parameters and seed."""
    return sweeps.SWEEPS[name]()


def bound(cells: int) -> float:
    """By how many standard errors one of so many cells may be off (Bonferroni)."""
    return NormalDist().inv_cdf(1 - FAMILY_LEVEL / (2 * cells))


def _how(name: str, cells: int, more: str = "") -> str:
    sweep = _sweep(name)
    return (
        f"{SIMULATED}: {name}, {sweep.replicates} replicates, seed {sweep.seed}{more}; within "
        f"{bound(cells):.2f} standard errors of both runs"
    )


def _simulated(
    book: Book[Paper],
    where: str,
    what: str,
    path: Path,
    value: Callable[[Paper], tuple[float, float]],
    how: str,
    cells: int,
    also: str = "",
) -> None:
    """One simulated figure; ``value`` gives it and the standard error of the two runs' difference."""

    def recompute(paper: Paper) -> Value:
        found, error = value(paper)
        return Value.of(found, bound(cells) * error)

    how = f"{how}; also in {also}" if also else how
    book.add(where, what, path, recompute, how, rests_on=Basis.SIMULATED)


def _stated(
    book: Book[Paper],
    where: str,
    what: str,
    path: Path,
    cells: Sequence[tuple[Path, float]],
    also: str = "",
) -> None:
    """A figure that is a sum of printed ones, each with its sign."""

    def recompute(paper: Paper) -> Value:
        found = sum(sign * paper.number(*cell) for cell, sign in cells)
        return Value.of(found, sum(paper.half(*cell) for cell, _ in cells))

    how = "from the printed cells of Table A.4 and Appendix A.4"
    book.add(where, what, path, recompute, f"{how}; also in {also}" if also else how)


def _cell(spread: float, error: float, of: str = "mean") -> Path:
    return (*SWEEP, of, SPREADS.index(spread), ERRORS.index(error))


def _grid(spread: float, error: float) -> tuple[float, float]:
    """Mean and SD of a cell of Table A.4; the measured rate has a run of its own."""
    sweep = _sweep("kr20_measured_rate" if error == sweeps.MEASURED else "kr20_grid")
    place = sweep.at(spread) if error == sweeps.MEASURED else sweep.at(spread, error)
    return float(sweep.mean[place]), float(sweep.sd[place])


def _sd_of_both(paper: Paper, spread: float, error: float) -> float:
    """√(SD² + SD²) of the printed run and of ours; of ours twice where none is printed."""
    own = _grid(spread, error)[1]
    printed = paper.raw(*_cell(spread, error, "sd"))
    return math.hypot(own, own if printed is None else float(printed))


def _cell_lines(book: Book[Paper], where: str, spread: float, error: float, also: str = "") -> None:
    """The mean of a cell of Table A.4."""
    name = "kr20_measured_rate" if error == sweeps.MEASURED else "kr20_grid"
    cells = len(SPREADS) * len(ERRORS)

    def mean(paper: Paper) -> tuple[float, float]:
        both = _sd_of_both(paper, spread, error)
        return _grid(spread, error)[0], both / math.sqrt(sweeps.REPLICATES)

    _simulated(
        book, where, f"mean KR-20 at spread {spread} and an error of {100 * error:g} %",
        _cell(spread, error), mean, _how(name, cells), cells, also,
    )  # fmt: skip


def _ends_at_measured_rate(book: Book[Paper], where: str) -> None:
    for end, (which, spread) in enumerate((("lowest", SPREADS[0]), ("highest", SPREADS[-1]))):
        _stated(
            book, where, f"{which} mean KR-20 at the measured error, by bank",
            (*STATED, "measured_rate", end), [(_cell(spread, sweeps.MEASURED), 1)], "Section 3",
        )  # fmt: skip


def _section3_simulated(book: Book[Paper]) -> None:
    where, widest = "Section 3", SPREADS[-1]
    for spread in SPREADS:
        _cell_lines(book, where, spread, sweeps.MEASURED, "Figure 2 and Table A.4")
    for error, name, also in (
        (0.05, "lowered_by_5_pct", "Figure 2"),
        (0.3, "lowered_by_30_pct", "Figure 2 and Appendix A.4"),
    ):
        _stated(
            book, where, f"KR-20 that an error of {100 * error:g} % costs at the widest bank",
            (*STATED, name), [(_cell(widest, 0.0), 1), (_cell(widest, error), -1)], also,
        )  # fmt: skip
    _stated(
        book, where, "KR-20 that the widest bank adds at no error", (*STATED, "bank_at_zero_error"),
        [(_cell(widest, 0.0), 1), (_cell(SPREADS[0], 0.0), -1)],
    )  # fmt: skip
    for i, (spread, error) in enumerate(((0.6, 0.1), (0.8, 0.2))):
        _stated(
            book, where, f"outlined cell: spread {spread}, error {100 * error:g} %",
            (*STATED, "outlined", i), [(_cell(spread, error), 1)], "Figure 2 and Appendix A.4",
        )  # fmt: skip
    for end, place in enumerate((0, len(SPREADS) - 1)):
        _stated(
            book, where, f"{('lowest', 'highest')[end]} mean KR-20 with one-directional errors",
            (*STATED, "one_directional", end),
            [((*SWEEP, "one_directional_at_measured_rates", place), 1)],
        )  # fmt: skip


def _controls(book: Book[Paper]) -> None:
    where, control = "Section 4", _sweep("phi_lambda_control")
    accuracy, ll, phi = control.values
    book.add(
        where,
        "Livingston–Lewis recovers accuracy on beta-binomial banks",
        ("phi_lambda_control", "livingston_lewis_within"),
        lambda paper: _within(0.02, at_most=float(np.abs(ll - accuracy).max())),
        f"{SIMULATED}: phi_lambda_control, seed {control.seed}; at every cut in each of "
        f"{control.replicates} runs of {control.responses:,} responses; also in Appendix A.4",
        rests_on=Basis.SIMULATED,
    )
    _over_cuts(
        book, where, "accuracy less Φ(λ) on beta-binomial banks",
        ("phi_lambda_control", "phi_lambda_departs_by"), accuracy - phi, "phi_lambda_control",
        "Appendix A.4",
    )  # fmt: skip
    own, gold = _sweep("livingston_lewis_control").values
    _over_cuts(
        book, where, "accuracy against the judge's own true score less that against gold",
        ("livingston_lewis_estimand_control", "own_true_score_minus_gold_accuracy"), own - gold,
        "livingston_lewis_control", "Figure A.2",
    )  # fmt: skip


def _over_cuts(
    book: Book[Paper], where: str, what: str, path: Path, differences: Any, name: str, also: str
) -> None:
    """The lowest and highest of ``(cuts, replicates)`` over the cuts; one run is printed."""
    sweep = _sweep(name)
    for end, (which, pick) in enumerate((("lowest", np.min), ("highest", np.max))):
        runs = np.asarray(pick(differences, axis=0))
        error = float(runs.std(ddof=1)) * math.sqrt(1 + 1 / len(runs))
        found = float(runs.mean())
        _simulated(
            book, where, f"{what}, {which} over cuts 4 to 7", (*path, end),
            lambda paper, found=found, error=error: (found, error),  # type: ignore[misc]
            _how(name, 2, f", runs of {sweep.responses:,} responses"), 2, also,
        )  # fmt: skip


def _largest_difference(book: Book[Paper]) -> None:
    """By how much two runs of the grid differ: printed of the paper's two, ours of theirs and ours."""
    cells = len(SPREADS) * len(ERRORS)
    runs = math.sqrt(2 / sweeps.REPLICATES)

    def apart(paper: Paper) -> list[tuple[float, float]]:
        """Each cell's difference in SDs of the printed cell, and in standard errors of both runs."""
        made = []
        for spread in SPREADS:
            for error in ERRORS:
                mean, own = _grid(spread, error)
                sd = paper.raw(*_cell(spread, error, "sd"))
                off = abs(mean - paper.number(*_cell(spread, error)))
                both = _sd_of_both(paper, spread, error) / math.sqrt(sweeps.REPLICATES)
                made.append((off / (own if sd is None else float(sd)), off / both))
        return made

    try:
        found = f"the largest is {max(z for _, z in apart(book.paper)):.2f} standard errors of both runs, "
    except NotPrinted:
        found = ""
    book.add(
        "Appendix A.1",
        "largest difference of a cell of Table A.4 between two runs, in SDs of the cell",
        (*STATED, "cell_moves_by_sd"),
        # Either run's largest difference lies between none and the bound.
        lambda paper: Value.of(max(sd for sd, _ in apart(paper)), bound(cells) * runs),
        f"{SIMULATED} cells less printed ones: {found}and the Bonferroni bound over {cells} cells is "
        f"{bound(cells):.2f}, or {bound(cells) * runs:.2f} SDs",
        rests_on=Basis.SIMULATED,
    )


def _table_a4(book: Book[Paper]) -> None:
    for spread in SPREADS:
        for error in ERRORS:
            if error != sweeps.MEASURED:
                _cell_lines(book, "Table A.4", spread, error, "Figure 2")

    def columns(paper: Paper) -> Value:
        apart, slack = 0.0, 0.0
        for spread in SPREADS:
            cells = _cell(spread, sweeps.MEASURED), _cell(spread, 0.05)
            apart = max(apart, abs(paper.number(*cells[0]) - paper.number(*cells[1])))
            slack = max(slack, paper.half(*cells[0]) + paper.half(*cells[1]))
        return Value.of(apart, slack)

    book.add(
        "Table A.4",
        "largest difference of the columns of 4.72 % and of 5 %",
        (*STATED, "columns_differ_by"),
        columns,
        "from the printed cells of Table A.4",
    )


def _table_a5(book: Book[Paper]) -> None:
    cells = len(SPREADS) * len(ERRORS)
    for spread in SPREADS:
        for error in ERRORS:

            def sd(
                paper: Paper, spread: float = spread, error: float = error
            ) -> tuple[float, float]:
                both = _sd_of_both(paper, spread, error)
                return _grid(spread, error)[1], both / math.sqrt(2 * (sweeps.REPLICATES - 1))

            name = "kr20_measured_rate" if error == sweeps.MEASURED else "kr20_grid"
            _simulated(
                book, "Table A.5", f"SD of KR-20 at spread {spread} and an error of {100 * error:g} %",
                _cell(spread, error, "sd"), sd, _how(name, cells), cells,
            )  # fmt: skip


def _appendix4(book: Book[Paper]) -> None:
    where, widest = "Appendix A.4", SPREADS[-1]
    _stated(
        book, where, "difference of the two outlined cells", (*STATED, "outlined_difference"),
        [(_cell(0.8, 0.2), 1), (_cell(0.6, 0.1), -1)],
    )  # fmt: skip
    _stated(
        book, where, "KR-20 that an error of 30 % costs at the widest bank, to three digits",
        (*STATED, "lowered_by_30_pct_to_three"), [(_cell(widest, 0.0), 1), (_cell(widest, 0.3), -1)],
    )  # fmt: skip
    for name, path, title in (
        (
            "kr20_one_directional",
            (*SWEEP, "one_directional_at_measured_rates"),
            "mean KR-20 with one-directional errors at spread {}",
        ),
        (
            "kr20_lenient_only",
            (*SWEEP, "lenient_only_widest", "mean"),
            "mean KR-20 at the widest bank with lenient errors of {} %",
        ),
    ):
        sweep = _sweep(name)
        ((axis, levels),) = sweep.axes
        for i, level in enumerate(levels):
            found = float(sweep.mean[i]), math.sqrt(2) * float(sweep.standard_error[i])
            shown = f"{100 * float(level):g}" if axis == "error" else level
            _simulated(
                book, where, title.format(shown), (*path, i),
                lambda paper, found=found: found,  # type: ignore[misc]
                _how(name, len(levels)), len(levels),
            )  # fmt: skip
    last = (*SWEEP, "lenient_only_widest", "mean")
    _stated(
        book, where, "span of KR-20 at the widest bank with lenient errors",
        (*STATED, "lenient_only_span"), [((*last, 0), 1), ((*last, 4), -1)],
    )  # fmt: skip


PARTS = {
    "responses": ("component of responses", "component_response"),
    "phrasing": ("component of phrasings", "component_phrasing"),
    "resid": ("residual component", "component_residual"),
    "phi": ("Φ at a single phrasing", "dependability_single"),
}


def _table_a7(book: Book[Paper]) -> None:
    study = _sweep("phrasing_check")
    cells = len(PARTS) * len(sweeps.SCENARIOS)
    for scenario in sweeps.SCENARIOS:
        for part, (title, statistic) in PARTS.items():
            place = study.at(scenario, statistic)
            found = float(study.mean[place]), math.sqrt(2) * float(study.standard_error[place])
            _simulated(
                book, "Table A.7", f"{scenario}: mean {title}",
                ("phrasing", "scenarios", scenario, part),
                lambda paper, found=found: found,  # type: ignore[misc]
                _how("phrasing_check", cells), cells,
                "Appendix A.5" if scenario.startswith("deterministic") and part == "phi" else "",
            )  # fmt: skip


def _appendix5(book: Book[Paper]) -> None:
    study = _sweep("phrasing_check")
    scenario = "deterministic given phrasing"
    component, phi = (
        study.values[study.at(scenario, s)] for s in ("component_phrasing", "dependability_single")
    )
    places = np.random.default_rng(study.seed).integers(
        0, study.replicates, (RESAMPLES, study.replicates)
    )

    def add(what: str, path: Path, of: Any, drawn: Any) -> None:
        found = float(of), math.sqrt(2) * float(np.std(drawn, ddof=1))
        _simulated(
            book, "Appendix A.5", what, ("phrasing", *path), lambda paper: found,
            _how("phrasing_check", 3, ", their error by bootstrap"), 3,
        )  # fmt: skip

    add(
        "deterministic given phrasing: SD of the phrasing component over studies",
        ("deterministic_sd_of_phrasing",),
        component.std(ddof=1),
        component[places].std(axis=1, ddof=1),
    )
    for end, percentile in enumerate((5, 95)):
        add(
            f"deterministic given phrasing: {percentile}th percentile of Φ over studies",
            ("deterministic_phi_p5_p95", end),
            np.percentile(phi, percentile),
            np.percentile(phi[places], percentile, axis=1),
        )


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
        "Table A.4": "KR-20 of simulated banks by spread and error: means",
        "Table A.5": "KR-20 of simulated banks by spread and error: SDs",
        "Appendix A.4": "KR-20 of simulated banks: errors in one direction",
        "Table A.6": "Livingston–Lewis beside accuracy against gold",
        "Table A.7": "Simulated phrasing studies: mean components",
        "Appendix A.5": "Simulated phrasing studies: how far single ones scatter",
    },
    lines=lines,
    note=(
        "Most come from an audit of the verdicts that ship, with four cuts, the percentile "
        f"bootstrap over questions ({DRAWS:,} draws, seed {SEED}) and the {GRID}-point grid for "
        "Livingston–Lewis. A figure stands where it is printed first. The tolerance, ±, is half of "
        f"the last printed digit; of an end of an interval {ENDS} or a fifth of its width, whichever "
        "is less; of the draws of independent errors also 4 Monte-Carlo standard errors. What the paper "
        "simulated is simulated again with its models, parameters and seeds, on another random stream; "
        "then the tolerance is also the Bonferroni bound over the cells of the table, at "
        f"{100 * FAMILY_LEVEL:g} %, times the standard error of the difference of both runs."
    ),
)
