"""Banks of verdicts with known truth: the three-step model of TWM, Appendix A.4.

Each response has a rate at which its lines are met, uniform on 0.5 ± spread / 2; gold's verdicts
follow that rate; the judge errs on them. The spread sets how far the responses differ, the errors
how good the judge is, and the two are set apart from each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from voirdire.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from voirdire.labels import Labels

Array = np.ndarray[Any, Any]

CLUSTERED = ("none", "line", "response")
GOLD, JUDGE = "gold", "judge"


def check_share(name: str, value: float, *, least: float = 0.0, most: float = 1.0) -> None:
    """Raise :class:`UsageError` where a number is not between ``least`` and ``most``."""
    if not least <= value <= most:
        raise UsageError(f"{name} is {value:g}: give a number from {least:g} to {most:g}.")


def check_count(name: str, value: int, *, least: int = 1) -> None:
    """Raise :class:`UsageError` where a whole number is below ``least``."""
    if value < least:
        raise UsageError(f"{name} is {value}: give a whole number of at least {least}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How the judge errs: false accepts where gold says no, false rejects where gold says yes, in 0–1.

    ``clustered``: ``"none"``, every verdict on its own; ``"line"``, each line has its own rates;
    ``"response"``, each response has. Those rates are beta-distributed about the two rates given, and
    ``correlation`` (0–1) is then the correlation of two errors of one kind on one line or response. One
    draw serves both kinds where both rates are the same, else they are drawn apart.
    Raises :class:`UsageError` for rates outside 0–1 or an unknown kind.
    """

    false_accept: float = 0.0
    false_reject: float = 0.0
    clustered: str = "none"
    correlation: float = 0.0

    def __post_init__(self) -> None:
        check_share("the false-accept rate", self.false_accept)
        check_share("the false-reject rate", self.false_reject)
        check_share("the correlation of errors", self.correlation)
        if self.clustered not in CLUSTERED:
            raise UsageError(f"errors clustered by {self.clustered!r}: use {', '.join(CLUSTERED)}.")
        if (self.clustered == "none") != (self.correlation == 0):
            raise UsageError(
                "errors are clustered where both are given: what they are clustered by (line or "
                "response) and their correlation (above 0)."
            )

    @classmethod
    def symmetric(cls, error: float, **more: Any) -> Errors:
        """A judge that turns over each verdict with probability ``error``."""
        return cls(false_accept=error, false_reject=error, **more)

    @classmethod
    def lenient(cls, error: float, **more: Any) -> Errors:
        """A judge that errs by accepting alone: false accepts of 2 ``error``, since half are absences.

        So ``error``, at most 0.5, is its error per verdict on a bank whose mean rate is 0.5
        (TWM, Appendix A.4).
        """
        check_share("the error of a judge that only accepts", error, most=0.5)
        return cls(false_accept=2 * error, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class BankModel:
    """What a bank is drawn from.

    ``spread`` (0–1) is the width of the range of the responses' rates, ``responses`` n, ``lines`` K.
    ``questions`` are clusters of responses, each with a checklist of its own (so errors clustered by
    line are clustered within a question too); ``question_correlation`` (0–1) is the correlation of the
    normal scores of two responses' rates to one question: 0 as in the paper, and the range stays uniform.
    Raises :class:`UsageError` for what cannot be drawn.
    """

    spread: float = 0.6
    errors: Errors = Errors()
    responses: int = 210
    lines: int = 10
    questions: int = 1
    question_correlation: float = 0.0

    def __post_init__(self) -> None:
        check_share("the spread", self.spread)
        check_share("the correlation within a question", self.question_correlation)
        check_count("the number of responses", self.responses)
        check_count("the number of lines", self.lines)
        check_count("the number of questions", self.questions)
        if self.questions > self.responses:
            raise UsageError(
                f"{self.questions} questions and {self.responses} responses: give each question at "
                "least one response."
            )

    @property
    def question(self) -> Array:
        """The question of each response, ``(responses,)``: their sizes differ by one at most."""
        return np.asarray(np.arange(self.responses) * self.questions // self.responses)


class Verdicts(NamedTuple):
    """Banks of one model: rates ``(replicates, n)``, verdicts ``(replicates, n, K)`` as 0 and 1.

    ``false_accept`` and ``false_reject`` are the judge's rates: ``(replicates, questions, K)`` where its
    errors are clustered by line, ``(replicates, n, 1)`` by response, else numbers.
    """

    rate: Array
    gold: Array
    judge: Array
    false_accept: Any
    false_reject: Any


def verdicts(model: BankModel, random: np.random.Generator, replicates: int = 1) -> Verdicts:
    """Draw ``replicates`` banks of a model at once: rates, then gold, then the judge's errors."""
    n, k, errors = model.responses, model.lines, model.errors
    rate = 0.5 + model.spread * (_places(model, random, replicates) - 0.5)
    gold = random.random((replicates, n, k)) < rate[..., None]
    shape = {
        "none": (),
        "line": (replicates, model.questions, k),
        "response": (replicates, n, 1),
    }[errors.clustered]
    accept = _about(errors.false_accept, errors.correlation, shape, random)
    reject = accept
    if errors.false_reject != errors.false_accept:
        reject = _about(errors.false_reject, errors.correlation, shape, random)
    by_line = errors.clustered == "line"
    chance = [r[:, model.question] if by_line else r for r in (accept, reject)]
    drawn = random.random((replicates, n, k))
    if errors.false_accept == errors.false_reject:
        wrong = drawn < chance[0]
    else:
        wrong = drawn < np.where(gold, chance[1], chance[0])
    return Verdicts(rate, gold.view(np.int8), (gold ^ wrong).view(np.int8), accept, reject)


def _places(model: BankModel, random: np.random.Generator, replicates: int) -> Array:
    """Where each response stands in the range of rates, uniform on 0–1, ``(replicates, n)``."""
    shape = (replicates, model.responses)
    if model.question_correlation == 0:
        return random.random(shape)
    from scipy.special import ndtr

    common = random.standard_normal((replicates, model.questions))[:, model.question]
    own = random.standard_normal(shape)
    r = model.question_correlation
    return np.asarray(ndtr(math.sqrt(r) * common + math.sqrt(1 - r) * own))


def _about(
    mean: float, correlation: float, shape: tuple[int, ...], random: np.random.Generator
) -> Any:
    """Rates about a mean whose Bernoulli draws have a correlation: beta with that intraclass value."""
    if not shape:
        return np.float64(mean)
    if mean in (0.0, 1.0):
        return np.full(shape, mean)
    if correlation == 1:
        return (random.random(shape) < mean).astype(np.float64)
    size = (1 - correlation) / correlation
    return random.beta(mean * size, (1 - mean) * size, shape)


def population_kr20(model: BankModel) -> float:
    """The KR-20 of the judge's verdicts on a bank of this model with ever more responses.

    K v / (m (1 − m) + (K − 1) v), where m is the mean rate of the judge's yes and v the variance over
    responses of that rate. Of a bank of n responses KR-20 lies about it, somewhat below. nan for one
    line, or where errors are clustered by line: then it hangs on the lines that are drawn.
    """
    errors, k = model.errors, model.lines
    if k < 2 or errors.clustered == "line":
        return math.nan
    mean, square = 0.5, 0.25 + model.spread**2 / 12  # of the rate at which gold says yes
    a, r, rho = errors.false_accept, errors.false_reject, errors.correlation
    aa, rr = (x * x + rho * x * (1 - x) for x in (a, r))  # mean squares of the rates of error
    ar = aa if a == r else a * r
    # E[(rate (1 − reject) + (1 − rate) accept)²]
    whole = (
        square * (1 - 2 * r + rr) + 2 * (mean - square) * (a - ar) + (1 - 2 * mean + square) * aa
    )
    met = mean * (1 - r) + (1 - mean) * a
    between = whole - met**2
    variance = met * (1 - met) + (k - 1) * between
    return k * between / variance if variance > 0 else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedBank:
    """One bank with its truth: ``rate`` ``(n,)``, ``gold`` and ``judge`` ``(n, K)`` of 0 and 1.

    ``false_accept`` and ``false_reject``: the judge's own rates, ``(questions, K)`` where errors are
    clustered by line, ``(n,)`` by response, else one number.
    """

    model: BankModel
    seed: int
    rate: Array
    gold: Array
    judge: Array
    false_accept: Any
    false_reject: Any

    @property
    def responses(self) -> list[str]:
        """The names of the responses: ``r001`` …"""
        wide = len(str(self.model.responses))
        return [f"r{i + 1:0{wide}d}" for i in range(self.model.responses)]

    @property
    def question_names(self) -> list[str]:
        """The question of each response: ``q01`` …"""
        wide = len(str(self.model.questions))
        return [f"q{q + 1:0{wide}d}" for q in self.model.question]

    def table(self, *, gold: bool = True) -> pl.DataFrame:
        """One response a row, ``gold_e1 … judge_eK``: a checklist table; with its question, if any."""
        import polars as pl

        columns: dict[str, Any] = {"response": self.responses}
        if self.model.questions > 1:
            columns["question_id"] = self.question_names
        for name, side in ((GOLD, self.gold), (JUDGE, self.judge)):
            if name == JUDGE or gold:
                columns |= {f"{name}_e{j + 1}": side[:, j] for j in range(self.model.lines)}
        return pl.DataFrame(columns)

    def labels(self, **options: Any) -> Labels:
        """The bank as labels, to be audited; options as for :func:`voirdire.read`."""
        from voirdire.labels import Labels

        return Labels.from_frame(self.table(), **{"layout": "checklist", **options})

    def truth(self) -> dict[str, Any]:
        """What the bank was drawn from, and what holds for it, as plain values for JSON."""
        model = asdict(self.model)
        errors = model.pop("errors")
        kr20 = population_kr20(self.model)
        return {
            "kind": "bank",
            "seed": self.seed,
            "model": model,
            "errors": errors,
            "population_kr20": None if math.isnan(kr20) else kr20,
            "false_accept": np.asarray(self.false_accept).tolist(),
            "false_reject": np.asarray(self.false_reject).tolist(),
            "rate": dict(zip(self.responses, self.rate.tolist(), strict=True)),
        }


def bank(
    *,
    spread: float = 0.6,
    error: float | None = None,
    errors: Errors | None = None,
    seed: int = 0,
    **model: Any,
) -> SimulatedBank:
    """One bank by the three-step model, with its truth.

    ``error`` is the rate at which the judge turns over any verdict; other errors are an
    :class:`Errors`. ``model`` are the other fields of :class:`BankModel` (``responses``, ``lines``,
    ``questions`` …). Raises :class:`UsageError` for what cannot be drawn.

    >>> bank(error=0, seed=3).judge.sum() == bank(error=0, seed=3).gold.sum()
    True
    """
    if error is not None and errors is not None:
        raise UsageError("error and errors are both given: give one of them.")
    made = errors if errors is not None else Errors.symmetric(0.0 if error is None else error)
    chosen = BankModel(spread=spread, errors=made, **model)
    check_count("the seed", seed, least=0)
    one = verdicts(chosen, np.random.default_rng(seed))
    accept, reject = (
        x if np.ndim(x) == 0 else x[0] if made.clustered == "line" else x[0, :, 0]
        for x in (one.false_accept, one.false_reject)
    )
    return SimulatedBank(
        model=chosen,
        seed=seed,
        rate=one.rate[0],
        gold=one.gold[0],
        judge=one.judge[0],
        false_accept=accept,
        false_reject=reject,
    )


def plain_value(held: Any) -> Any:
    """Arrays, tuples and numpy numbers as what JSON has."""
    if isinstance(held, Mapping):
        return {str(k): plain_value(v) for k, v in held.items()}
    if isinstance(held, list | tuple):
        return [plain_value(v) for v in held]
    if isinstance(held, np.ndarray | np.generic):
        return held.tolist()
    return held
