"""How many phrasings: the width of the interval of the phrasing component."""

from __future__ import annotations

import math
from collections.abc import Sequence

from voirdire.errors import UsageError
from voirdire.planning.base import (
    FORMULA,
    Answer,
    Guesses,
    Needed,
    Pilot,
    Question,
    Shown,
    fewest,
)
from voirdire.wording import plural

MOST_PHRASINGS = 200
FACTOR = 3.0  # of the phrasing component, where none is stated


def phrasing_factors(phrasings: int, level: float = 0.95) -> tuple[float, float]:
    """By which factors the interval of the phrasing component reaches below and above the estimate.

    (R − 1) mean square / σ² is χ² on R − 1 degrees of freedom, so the ends are (R − 1)/χ² (Searle,
    Casella and McCulloch 1992, Variance Components, p. 66); exact for normal effects where the
    residual's part in the mean square is small (many responses). nan for one phrasing.

    >>> [round(f, 3) for f in phrasing_factors(3)]
    [0.271, 39.498]
    """
    from scipy.special import chdtri

    if phrasings < 2:
        return math.nan, math.nan
    df, tail = phrasings - 1, (1 - level) / 2
    return df / float(chdtri(df, tail)), df / float(chdtri(df, 1 - tail))


def phrasings_for_factor(
    factor: float, *, level: float = 0.95, most: int = MOST_PHRASINGS
) -> Needed:
    """The phrasings with which the upper end of the component is at most ``factor`` times the estimate."""
    if not factor > 1:
        raise UsageError(f"A factor of {factor} is not above 1.")
    found = fewest(lambda r: phrasing_factors(r, level)[1] <= factor, 2, max(most, 2))
    r = max(most, 2) if found is None else found
    return Needed(
        number=r,
        reached=phrasing_factors(r, level)[1],
        met=found is not None,
        how=FORMULA,
        tried=max(most, 2),
    )


def _answers(guesses: Guesses, of: Pilot | None) -> list[Answer]:
    if guesses.factor is None and (of is None or of.phrasings < 2):
        return []
    factor = FACTOR if guesses.factor is None else guesses.factor
    needed = phrasings_for_factor(
        factor, level=guesses.level, most=guesses.most_phrasings or MOST_PHRASINGS
    )
    low, high = phrasing_factors(needed.number, guesses.level)
    return [
        Answer(
            statistic="phrasings_for_component",
            question=f"Phrasing component, upper end at most {factor:g} times the estimate",
            guess=("normal effects of phrasings, many responses",),
            needed=needed,
            unit="phrasings",
            labels=None,
            gives=f"{low:.2g} to {high:.3g} times",
        )
    ]


def _as_it_is(guesses: Guesses, of: Pilot) -> Sequence[Shown]:
    if of.phrasings < 2:
        return ()
    low, high = phrasing_factors(of.phrasings, guesses.level)
    return (
        Shown(
            of=("phrasing component",),
            rests=(plural(of.phrasings, "phrasing"),),
            said=(f"an interval from {low:.2g} to {high:.3g} times the estimate, at best",),
        ),
    )


QUESTION = Question(
    name="phrasings",
    title="Phrasings for the phrasing component",
    order=30,
    guess="--factor 3",
    answers=_answers,
    as_it_is=_as_it_is,
    about=lambda made, guesses: (
        "Phrasings: the interval of their component is that of χ² on phrasings − 1 degrees of freedom."
    ),
)
