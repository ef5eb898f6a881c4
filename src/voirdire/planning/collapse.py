"""How many responses show a collapse of a class: the power of the collapse rule, simulated with its own test."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from voirdire import intervals
from voirdire.errors import UsageError
from voirdire.estimand import Unit
from voirdire.estimate import Key
from voirdire.inference import Settings, estimates
from voirdire.planning.base import (
    MOST_CLUSTERS,
    RUNS,
    SIMULATION,
    Answer,
    Guesses,
    Needed,
    Pilot,
    Question,
    Share,
    Shown,
    check_share,
    effect_row,
)
from voirdire.simulate.coverage import side_by_side
from voirdire.stats import collapse
from voirdire.stats.base import Part
from voirdire.tally import of_rows
from voirdire.wording import Name, number, percent, plural, points, say

Array = np.ndarray[Any, Any]

KEEPS = 0.7  # how often a simulated grader repeats the truth
_STEPS = 14  # of a simulated search
_LABELS = 6_000_000  # labels that are simulated for one power at most
_LARGEST = 1000  # labels of a grader in a simulated cluster: more say next to nothing more
BASE = 20  # labels that the rule needs of the other
ALPHA = 0.05  # level of the collapse rule's test


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapse:
    """A collapse that is to be seen: a grader keeps each label of a class with probability ``ratio``.

    ``share`` is how often graders give the class where they do not collapse; ``graders`` counts the
    collapsed one; with ``gold`` it is compared with the truth and else with the others.
    ``correlation`` is that of the labels of one grader within a cluster, 0–1, as a pilot shows it.
    """

    ratio: float
    share: float
    graders: int = 4
    gold: bool = False
    classes: int = 2
    per_cluster: float = 1.0
    correlation: float = 0.2
    below: float = 1 / 3
    base: int = BASE

    def check(self) -> None:
        """Raise :class:`UsageError` for what cannot be simulated."""
        check_share(self.share, "The share of the class")
        if not 0 <= self.ratio < 1:
            raise UsageError(
                f"A collapse to {self.ratio} of the labels is none: give 0 to below 1."
            )
        if not self.gold and self.graders < 3:
            raise UsageError(
                "Without gold a collapse is found beside two others: plan with at least 3 graders, or "
                "with gold."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """How often a collapse is found from the counts, and certain by the test, in ``runs`` panels."""

    found: float
    certain: float
    runs: int


def collapse_power(
    of: Collapse, clusters: int, *, runs: int = RUNS, seed: int = 0, level: float = ALPHA
) -> Power:
    """The power of the collapse rule with so many clusters, simulated with the rule's own counts and test.

    Every grader repeats the truth with probability 0.7 and else draws at its own chance in the cluster;
    both chances are beta, as alike within a cluster as gives its labels their ``correlation`` (at most
    0.58, where every cluster is of one kind). *Certain* holds the smallest p
    against level / (graders × classes), Holm's first step, which is what decides where one collapses.
    Deterministic in ``seed``.
    """
    of.check()
    return _simulated(of, clusters, runs, seed, level)


@lru_cache(maxsize=256)  # what is asked of a collapse that is found is asked of a certain one too
def _simulated(of: Collapse, clusters: int, runs: int, seed: int, level: float) -> Power:
    generator = np.random.default_rng([seed, clusters])
    size = max(1, round(of.per_cluster))
    step = max(1, _LABELS // (20 * clusters * size * of.graders))
    found = certain = 0
    for first in range(0, runs, step):
        many = min(step, runs - first)
        own, others = _panels(of, generator, many, clusters, size)
        below = own.sum(1)[:, None] < of.below * others.sum(1)
        based = others.sum(1) >= of.base
        enough = 1 if of.gold else 2
        passes = (below & based).sum(1) >= enough
        found += int(passes.sum())
        p = _collapse_p(own, others, size, of.below)
        if of.gold:
            decides = p[:, 0]
        else:
            # Both of two others: (m − 1) × the second-smallest p.
            p = np.sort(np.where(np.isnan(p), 1.0, p), axis=1)
            decides = np.minimum(1.0, (of.graders - 2) * p[:, 1])
        tests = of.graders * of.classes
        certain += int((passes & (decides <= level / tests)).sum())
    return Power(found=found / runs, certain=certain / runs, runs=runs)


def _panels(
    of: Collapse, generator: np.random.Generator, runs: int, clusters: int, size: int
) -> tuple[Array, Array]:
    """Labels of the class in each cluster: own ``(runs, clusters)``, others ``(runs, clusters, m)``."""

    # A label is the truth's draw or the grader's own, so two labels are alike less often than two
    # truths: by keeps² + (1 − keeps)².
    alike = min(of.correlation / (KEEPS**2 + (1 - KEEPS) ** 2), 0.999)

    def chances() -> Array:
        # Of single responses the chance of each is one draw like any other: its mean serves.
        if alike <= 0 or size == 1 or of.share in (0, 1):
            return np.full((1, 1), of.share)
        many = (1 - alike) / alike
        return np.asarray(generator.beta(of.share * many, (1 - of.share) * many, (runs, clusters)))

    shape = (runs, clusters, size)
    truth = generator.random(shape) < chances()[..., None]

    def graded() -> Array:
        drawn = (1 - KEEPS) * chances()[..., None]
        return np.asarray(generator.random(shape) < np.where(truth, KEEPS + drawn, drawn))

    own = graded() & (generator.random(truth.shape) < of.ratio)
    others = [truth] if of.gold else [graded() for _ in range(of.graders - 1)]
    return own.sum(2), np.stack([o.sum(2) for o in others], axis=2)


def _collapse_p(own: Array, others: Array, size: int, below: float) -> Array:
    """The rule's one-sided p for every run and other, ``(runs, m)``, made by the engine."""
    runs, clusters, m = others.shape
    both = np.empty((clusters, runs, m, 2, 2), dtype=np.int64)
    both[..., 0, 0] = own.T[..., None]
    both[..., 1, 0] = others.transpose(1, 0, 2)
    both[..., 1] = size - both[..., 0]
    tally = of_rows(both.reshape(clusters, runs * m, 2, 2))
    part = Part(
        tally=tally,
        asks=(
            (side_by_side(collapse.STATISTIC), tuple(Key(line=str(i)) for i in range(runs * m))),
        ),
        given={"below": below},
    )
    made = estimates([part], Settings(), with_intervals=False)
    return np.array([math.nan if e.p is None else e.p for e in made]).reshape(runs, m)


def responses_for_collapse(
    of: Collapse,
    power: float,
    *,
    certain: bool = False,
    runs: int = RUNS,
    seed: int = 0,
    most: int = MOST_CLUSTERS,
) -> Needed:
    """The clusters with which such a collapse is found (or certain) with this power, by simulation.

    ``reached`` is the power that the clusters give. The search ends where a power of ``runs`` panels
    can no longer tell. A ratio at or above the threshold is not met by any number: its power
    stays at a half or falls.
    """
    of.check()
    size = max(1, round(of.per_cluster))
    held: dict[int, float] = {}

    def reached(clusters: int) -> float:
        if clusters not in held:
            made = collapse_power(of, clusters, runs=runs, seed=seed)
            held[clusters] = made.certain if certain else made.found
        return held[clusters]

    # Simulated panels have at most so many labels that a power takes about a second.
    most = min(most, max(10, _LABELS * 10 // (runs * size * of.graders)))
    least = min(most, max(3, math.ceil(of.base / max(size * of.share, 1e-9) / 4)))
    found = _by_steps(lambda n: reached(n) >= power, least, most)
    clusters = most if found is None else found
    best = max(held, key=lambda n: (held[n], -n)) if found is None else clusters
    return Needed(
        number=best, reached=held[best], met=found is not None, how=SIMULATION, tried=most
    )


def _by_steps(holds: Callable[[int], bool], least: int, most: int) -> int | None:
    """As :func:`fewest`, to within 5 %: closer a simulated power cannot tell."""
    low, high = least, least
    if holds(least):
        return least
    for _ in range(_STEPS):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
        if holds(high):
            break
    else:
        return None
    while high - low > max(1, 0.05 * high):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def smallest_ratio(
    other: float,
    power: float,
    *,
    below: float = 1 / 3,
    base: int = BASE,
    design_effect: float = 1.0,
) -> float:
    """The largest ratio (the smallest collapse) that the counts show with this power; nan below the base.

    By the normal approximation for a count: r·B + z·√(r·B·design effect) = below·B for B labels of
    the other, which are held as they are.
    """
    if other < base:
        return math.nan
    z = intervals.normal_quantile(power)
    # A quadratic in √(r · B).
    root = (
        -z * math.sqrt(design_effect) + math.sqrt(z * z * design_effect + 4 * below * other)
    ) / 2
    return max(root, 0.0) ** 2 / other


def _answers(guesses: Guesses, of: Pilot | None) -> list[Answer]:
    planned = _planned_collapse(guesses, of)
    if planned is None:
        return []
    class_, asked = planned
    most = guesses.most or MOST_CLUSTERS
    size = max(1, round(asked.per_cluster))
    simulated = f", simulated with {_LARGEST:,}" if size > _LARGEST else ""
    asked = replace(asked, per_cluster=min(asked.per_cluster, _LARGEST))
    made = []
    for certain in (False, True):
        needed = responses_for_collapse(
            asked, guesses.power, certain=certain, runs=guesses.runs, seed=guesses.seed, most=most
        )
        made.append(
            Answer(
                statistic="clusters_for_collapse_certain" if certain else "clusters_for_collapse",
                question=(
                    f"A class collapse to {asked.ratio:g} "
                    + ("called certain" if certain else "found")
                    + f" with power {percent(guesses.power, 0)}"
                ),
                guess=say(
                    "{class_}{share} of the labels; {who}; {size} in a cluster, correlation {rho}",
                    class_=(Name(class_), " is ") if class_ else ("the class is ",),
                    share=percent(asked.share),
                    who="beside gold" if asked.gold else plural(asked.graders, "grader"),
                    size=f"{size}{simulated}",
                    rho=number(asked.correlation, 2),
                ),
                needed=needed,
                unit="clusters",
                labels=needed.number * size,
                gives=f"power {percent(needed.reached, 0)} ± {points(_error(needed, guesses.runs))}",
                key=Key(class_=class_),
            )
        )
    return made


def _error(needed: Needed, runs: int) -> float:
    return math.sqrt(needed.reached * (1 - needed.reached) / runs)


def _planned_collapse(guesses: Guesses, of: Pilot | None) -> tuple[str, Collapse] | None:
    """The class to plan for: the stated one, else the rarest of the pilot (by its median share)."""
    if guesses.class_share is None and (of is None or not of.classes):
        return None
    gold = guesses.with_gold or (of is not None and of.gold)
    graders = guesses.graders or (of.graders if of is not None else 4)
    if not gold and graders < 3 and guesses.class_share is None:
        return None
    like = Share(name="class", value=0.0, per_cluster=1.0, correlation=0.2)
    class_, count = "", 2
    if of is not None and of.classes:
        names = list(dict.fromkeys(s.class_ for s in of.classes))
        middle = {
            c: float(np.median([s.value for s in of.classes if s.class_ == c])) for c in names
        }
        count = len(names)
        there = [c for c in names if middle[c] > 0]
        if there and guesses.class_share is None:
            class_ = min(there, key=lambda c: middle[c])
            own = [s for s in of.classes if s.class_ == class_]
            like = replace(
                own[0],
                value=middle[class_],
                correlation=float(np.median([s.correlation for s in own])),
            )
        elif guesses.class_share is None:
            return None
        else:
            like = replace(of.classes[0], value=guesses.class_share)
    if guesses.class_share is not None:
        like = replace(like, value=guesses.class_share)
    return class_, Collapse(
        ratio=guesses.ratio,
        share=like.value,
        graders=graders,
        gold=gold,
        classes=count,
        per_cluster=like.per_cluster if guesses.cluster_size is None else guesses.cluster_size,
        correlation=like.correlation if guesses.correlation is None else guesses.correlation,
    )


def _as_it_is(guesses: Guesses, of: Pilot) -> Sequence[Shown]:
    """For each class the mildest collapse that the counts could show."""
    shown = []
    for class_ in dict.fromkeys(s.class_ for s in of.classes):
        own = sorted(
            (s for s in of.classes if s.class_ == class_), key=lambda s: -s.value * s.trials
        )
        # The weaker of two others decides; with gold gold alone (it stands last in the pilot).
        if of.gold:
            beside = next(s for s in reversed(of.classes) if s.class_ == class_)
        elif len(own) > 2:
            beside = own[1]
        else:
            continue
        count = beside.value * beside.trials
        ratio = smallest_ratio(count, guesses.power, design_effect=beside.design_effect)
        if not math.isfinite(ratio):
            said = say("could not have seen any collapse: the rule needs {n} labels", n=BASE)
        elif ratio < 0.005:
            said = say("could have seen only a class that is not given at all")
        else:
            said = say(
                "could not have seen a collapse to more than {ratio} of the other’s labels",
                ratio=number(ratio, 2),
            )
        shown.append(
            Shown(
                of=say("class {name}", name=(Name(class_),)),
                rests=say(
                    "{n} of {who}", n=plural(round(count), "label"), who=(Name(beside.grader),)
                ),
                said=said,
                row=effect_row(replace(beside, grader=""), "mildest_collapse", ratio, Unit.RATIO),
            )
        )
    return shown


def _about(made: Sequence[Answer], guesses: Guesses) -> str:
    if not made:
        return ""
    return (
        f"Simulated: the collapse rule’s own counts and test on {guesses.runs:,} panels a step, seed "
        f"{guesses.seed}; every grader repeats the truth with probability {KEEPS:g}."
    )


QUESTION = Question(
    name="collapse",
    title="Responses for a class collapse of a given ratio",
    order=50,
    guess="--class-share 0.1",
    answers=_answers,
    as_it_is=_as_it_is,
    about=_about,
)
