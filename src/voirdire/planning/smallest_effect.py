"""What a pilot as it is could not have seen less than: the smallest detectable effect of its shares."""

from __future__ import annotations

import math
from collections.abc import Sequence

from voirdire import intervals
from voirdire.estimand import Unit
from voirdire.planning.base import (
    Guesses,
    Pilot,
    Question,
    Share,
    Shown,
    effect_row,
    rests_on,
    whose,
)
from voirdire.wording import Text, percent, points, say

NORMAL_FROM = 10  # effective events, and others, from which t serves; with fewer it is binomial


def smallest_difference(se: float, df: float, power: float, level: float = 0.95) -> float:
    """The smallest distance from a fixed value that a test at 1 − ``level`` sees with this power.

    (t of 1 − α/2 + t of the power) · SE on ``df`` degrees of freedom; in the unit of ``se``.
    """
    return (intervals.t_quantile(0.5 + level / 2, df) + intervals.t_quantile(power, df)) * se


def smallest_rise(rate: float, trials: float, power: float, level: float = 0.95) -> float:
    """The smallest rise above ``rate`` that the exact binomial test sees with this power; nan if none does.

    ``trials`` is the effective number of independent ones. The test rejects from the count on that has a
    chance of at most (1 − ``level``) / 2 under ``rate``; the rise is to where the count lies there with
    ``power``. For 0 of the events it is the rate that shows one with this power.

    >>> round(smallest_rise(0.0, 100, 0.8), 4)  # 1 − 0.2^(1/100)
    0.016
    """
    from scipy.special import betainc, betaincinv

    # P(X ≥ c) of n is the regularised beta function at (c, n − c + 1).
    count = 1
    while count <= trials and betainc(count, trials - count + 1, rate) > (1 - level) / 2:
        count += 1
    if count > trials:
        return math.nan
    return float(betaincinv(count, trials - count + 1, power)) - rate


def _as_it_is(guesses: Guesses, of: Pilot) -> Sequence[Shown]:
    """The smallest effects that the file as it is could have shown."""
    shown = []
    for share in (*of.shares, *of.rates):
        if share.clusters < 3:
            continue
        effect, said = _effect(share, guesses)
        shown.append(
            Shown(
                of=say("{name}{whose}", name=share.name, whose=whose(share)),
                rests=rests_on(share),
                said=said,
                row=effect_row(share, "smallest_difference", effect, Unit.POINTS),
            )
        )
    return shown


def _effect(share: Share, guesses: Guesses) -> tuple[float, Text]:
    """The smallest effect in 0–1, and in words: either way, or only away from a near end."""
    p, effective = share.value, share.trials / share.design_effect
    rare = min(p, 1 - p)
    if rare * effective >= NORMAL_FROM:
        se = math.sqrt(p * (1 - p) / effective)
        effect = smallest_difference(se, share.clusters - 1, guesses.power, guesses.level)
        words = "could not have seen less than {least} from {value}"
    else:
        effect = smallest_rise(rare, effective, guesses.power, guesses.level)
        if not math.isfinite(effect):
            return effect, say("could have shown nothing: there are too few labels")
        way = "rise" if p <= 0.5 else "fall"
        words = f"could not have seen a {way} of less than {{least}} from {{value}}"
    return effect, say(words, least=points(effect), value=percent(p))


QUESTION = Question(
    name="smallest_effect",
    title="The smallest effect that a file as it is could show",
    order=0,
    guess="",
    as_it_is=_as_it_is,
)
