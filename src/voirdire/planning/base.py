"""The contract of a planning question: what it is asked with, and what it gives back.

A question is one file in this folder: it turns stated guesses and a pilot into answers. It may also say what
the pilot as it is could have shown, and fill a section of its own. The listing of the folder is the registry;
another package adds one with an entry point in the group ``voirdire.planning``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from voirdire.document import Block, Input
from voirdire.errors import UsageError
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Key, Undefined
from voirdire.labels import Labels
from voirdire.scene import Scene
from voirdire.wording import Name, Text, counted, plural

FORMULA, SIMULATION = "formula", "simulation"
MOST_CLUSTERS = 100_000
RUNS = 400  # panels in one simulated power

__all__ = [
    "FORMULA",
    "MOST_CLUSTERS",
    "RUNS",
    "SIMULATION",
    "Answer",
    "Guesses",
    "Needed",
    "Pilot",
    "Question",
    "Section",
    "Share",
    "Shown",
    "Stratum",
    "check_share",
    "effect_row",
    "estimand",
    "fewest",
    "of_answer",
    "rests_on",
    "whose",
]


# --- what a question is asked with --------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share as it is guessed, or as a pilot has it.

    ``value`` in 0–1; ``per_cluster`` the trials in a cluster (at least 1) and ``correlation`` their
    intraclass correlation, 0–1. Of a pilot, ``sizes`` says how many trials how many clusters have,
    ``trials`` and ``clusters`` count them, and ``among`` is the share of the labels that are trials.
    ``weighting`` is what unequal design weights cost: trials over Kish's effective number of them, at
    least 1 (Kish 1965, Survey Sampling, section 11.7). 0 trials and clusters: stated.
    """

    name: str
    value: float
    per_cluster: float = 1.0
    correlation: float = 0.0
    weighting: float = 1.0
    sizes: tuple[tuple[int, int], ...] = ()
    trials: float = 0.0
    clusters: int = 0
    among: float = 1.0
    grader: str = ""
    class_: str = ""
    cut: str = ""

    @property
    def felt(self) -> float:
        """The size of a cluster that the variance of a mean feels: Σ m² / Σ m."""
        if not self.sizes:
            return self.per_cluster
        return sum(c * m * m for m, c in self.sizes) / sum(c * m for m, c in self.sizes)

    @property
    def design_effect(self) -> float:
        """How many times its variance is that of as many independent trials (Kish 1965, p. 162)."""
        return (1 + max(self.felt - 1, 0) * self.correlation) * self.weighting

    @property
    def effective(self) -> float:
        """Kish's effective number of trials: as many equally weighted ones would say as much."""
        return self.trials / self.weighting


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """A stratum to label by hand: how many responses it holds, and the guessed rate there."""

    name: str
    size: int
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """What a file says about the guesses: its shares with their design effects, classes, votes, strata.

    ``labels`` and ``scene`` are the file itself, for questions that count something else.
    """

    shares: tuple[Share, ...]
    rates: tuple[Share, ...]
    classes: tuple[Share, ...]
    graders: int
    gold: bool
    votes: tuple[tuple[str, float, float, int], ...] = ()  # grader, rate, disagreement, votes
    phrasings: int = 0
    strata: tuple[Stratum, ...] = ()
    inputs: tuple[Input, ...] = ()
    options: Mapping[str, Any] | None = None
    labels: Labels | None = None
    scene: Scene | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """Stated guesses (``None``: not stated, taken from the pilot if there is one) and what is wanted.

    ``within`` is a half width in 0–1, ``factor`` the upper end of the phrasing component over its
    estimate, ``flips`` how often a majority may flip. ``most`` clusters, ``most_labels`` human labels
    and ``most_phrasings`` are the most that there can be (0: as many as it takes).
    """

    false_accept: float | None = None
    gate_accuracy: float | None = None
    correlation: float | None = None
    cluster_size: float | None = None
    within: float = 0.05
    class_share: float | None = None
    ratio: float = 0.2
    graders: int | None = None
    with_gold: bool = False
    power: float = 0.8
    rate: float | None = None
    disagreement: float | None = None
    flips: float = 0.02
    factor: float | None = None
    strata: tuple[Stratum, ...] = ()
    most: int = 0
    most_labels: int = 0
    most_phrasings: int = 0
    level: float = 0.95
    seed: int = 0
    runs: int = RUNS

    def check(self) -> None:
        """Raise :class:`UsageError` for what is no guess."""
        for name in ("false_accept", "gate_accuracy", "correlation", "class_share", "rate"):
            value = getattr(self, name)
            if value is not None:
                check_share(value, "--" + name.replace("_", "-"))
        if not 0 < self.within < 0.5:
            raise UsageError(f"--within {self.within} is not a half width between 0 and 0.5.")
        if not 0 < self.power < 1:
            raise UsageError(f"--power {self.power} is not between 0 and 1.")
        if not 0 <= self.ratio < 1:
            raise UsageError(f"--ratio {self.ratio} is not from 0 to below 1.")
        if not 0 < self.flips < 0.5:
            raise UsageError(f"--flips {self.flips} is not a share between 0 and 0.5.")
        if self.factor is not None and not 1 < self.factor < math.inf:
            raise UsageError(f"--factor {self.factor} is not a number above 1.")
        if self.cluster_size is not None and not 1 <= self.cluster_size < math.inf:
            raise UsageError(f"--cluster-size {self.cluster_size} is not a number from 1.")
        if self.graders is not None and self.graders < 1:
            raise UsageError(f"--judges {self.graders} is not a whole number from 1.")
        for option, most in (
            ("--most-clusters", self.most),
            ("--most-labels", self.most_labels),
            ("--most-phrasings", self.most_phrasings),
        ):
            if most < 0:
                raise UsageError(
                    f"{option} {most} is below 0. Leave it out where there is no limit."
                )
        names = [s.name for s in self.strata]
        twice = [n for n in dict.fromkeys(names) if names.count(n) > 1]
        if twice:
            raise UsageError(f"--strata {twice[0]}: the stratum is given twice. Give each once.")


def check_share(value: float, name: str) -> None:
    """Raise :class:`UsageError` for what is no share."""
    if not 0 <= value <= 1:
        raise UsageError(f"{name}: {value} is not a share from 0 to 1.")


# --- what it gives back -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """A number that is needed. ``reached`` is what it gives; where ``met`` is false, the best there is.

    ``tried`` is the most that was tried. ``how`` is :data:`FORMULA` or :data:`SIMULATION`; ``low`` and ``high`` are the ends of the interval
    to expect, nan where none is planned for.
    """

    number: int
    reached: float
    met: bool
    how: str
    tried: int = 0
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of a plan: what is asked, on which guess, and the number needed."""

    statistic: str
    question: str
    guess: Text
    needed: Needed
    unit: str
    labels: float | None  # responses (or verdicts) that this is; ``None`` where it does not apply
    gives: str  # what is reached, in words
    short: str = ""  # the same for a narrow column, where it can be shorter
    key: Key = field(default_factory=Key)
    curve: Share | None = None
    whose: Text = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a pilot as it is could have shown: of what, what that rests on, in words and as a row."""

    of: Text
    rests: Text
    said: Text
    row: Estimate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the plan that is no number alone: its blocks and its rows of the results."""

    blocks: tuple[Block, ...] = ()
    rows: tuple[Estimate, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of a plan.

    ``answers`` says what the guesses and the pilot (``None``: none) allow. ``as_it_is`` says the smallest
    effects that the pilot could have shown, ``section`` fills a section of its own, and ``about`` says how
    the answers given were made, once for all of them. ``guess`` is the option that asks it without a
    pilot, with an example.
    """

    name: str
    title: str
    order: int
    guess: str
    answers: Callable[[Guesses, Pilot | None], Sequence[Answer]] = lambda guesses, of: ()
    as_it_is: Callable[[Guesses, Pilot], Sequence[Shown]] = lambda guesses, of: ()
    section: Callable[[Guesses, Pilot | None], Section] = lambda guesses, of: Section()
    about: Callable[[Sequence[Answer], Guesses], str] = lambda made, guesses: ""


# --- what questions share -----------------------------------------------------------------------


def fewest(holds: Callable[[int], bool], least: int, most: int) -> int | None:
    """The smallest whole number from ``least`` on that holds, if larger ones then hold too."""
    if holds(least):
        return least
    low, high = least, least
    while high < most:
        low, high = high, min(2 * high, most)
        if holds(high):
            break
    else:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def estimand(name: str, title: str, unit: Unit, how: str) -> Estimand:
    """The estimand of a row of a plan; its name says how the number was made."""
    return Estimand(
        name=f"{name}_by_{how}",
        title=title,
        question="How much has to be graded?",
        describes=Describes.BOTH,
        keys=("grader", "class", "line", "cut"),
        unit=unit,
        scale=Scale.NONE,
        needs=(),
        low=0,
        undefined_when="no number of them does",
        source=Source(text="voirdire plan"),
    )


def of_answer(answer: Answer) -> Estimate:
    """An answer as a row of the results; empty with a reason where the plan cannot be met."""
    needed = answer.needed
    value: float | Undefined = float(needed.number)
    if not needed.met:
        value = Undefined(
            f"not met with up to {counted(needed.tried)}; at best, with {counted(needed.number)}: "
            f"{answer.gives}"
        )
    return Estimate(
        estimand=estimand(answer.statistic, answer.question, Unit.COUNT, needed.how),
        key=answer.key,
        value=value,
        n=answer.labels,
        clusters=needed.number if answer.unit == "clusters" else None,
    )


def whose(share: Share) -> Text:
    """Of which grader, class and cut a share is."""
    said: list[Any] = []
    if share.grader:
        said += [" of ", Name(share.grader)]
    if share.class_:
        said += [", ", Name(share.class_)]
    if share.cut:
        said += [" at cut ", share.cut]
    return tuple(said)


def rests_on(share: Share) -> Text:
    """Trials and clusters in words, with Kish's effective number where weights are unequal."""
    said = f"{round(share.trials):,} in {plural(share.clusters, 'cluster')}"
    if share.weighting > 1:
        said += f"; weighted, they count as {share.effective:,.0f}"
    return (said,)


def effect_row(share: Share, name: str, value: float, unit: Unit) -> Estimate:
    """The smallest effect as a row of the results."""
    reason = "there are too few labels"
    made = estimand(name, "Smallest effect that could be seen", unit, FORMULA)
    return Estimate(
        estimand=replace(made, undefined_when=reason),
        key=Key(grader=share.grader, class_=share.class_, cut=share.cut, line=share.name),
        value=value if math.isfinite(value) else Undefined(reason),
        n=share.trials,
        clusters=share.clusters,
    )
