"""How many votes: how often the majority of repeats under one prompt flips."""

from __future__ import annotations

import numpy as np

from voirdire.errors import UsageError
from voirdire.estimate import Key
from voirdire.planning.base import FORMULA, Answer, Guesses, Needed, Pilot, Question
from voirdire.wording import Name, percent, plural, say

MOST_VOTES = 99


def vote_flip_rate(votes: int, rate: float, disagreement: float) -> float:
    """How often the majority of so many votes (odd) differs from that of as many more, in 0–1.

    Responses have chances of a yes that are beta with mean ``rate``, so spread that two votes on a
    response differ with probability ``disagreement``. Exact, by Gauss–Jacobi quadrature of
    E[2 q (1 − q)], q the binomial chance of a majority. Raises :class:`UsageError` where no beta has
    these (disagreement not between 0 and 2·rate·(1 − rate)).
    """
    from scipy.special import bdtrc, roots_jacobi

    apart = 2 * rate * (1 - rate)
    if not 0 < rate < 1 or not 0 <= disagreement <= apart + 1e-12:
        raise UsageError(
            f"Two votes cannot differ on {percent(disagreement)} of the responses where {percent(rate)} "
            f"of the votes are yes: at most on {percent(apart)}."
        )
    if votes < 1 or votes % 2 == 0:
        raise UsageError(f"{plural(votes, 'vote')}: an odd number is needed for a majority.")
    if disagreement == 0:
        return 0.0
    correlation = 1 - disagreement / apart
    if correlation < 1e-9:
        chances, weights = np.array([rate]), np.array([1.0])
    else:
        size = (1 - correlation) / correlation
        nodes, weights = roots_jacobi(200, (1 - rate) * size - 1, rate * size - 1)
        chances, weights = (1 + nodes) / 2, weights / weights.sum()
    majority = bdtrc(votes // 2, votes, chances)
    return float((2 * majority * (1 - majority) * weights).sum())


def votes_for_flips(
    rate: float, disagreement: float, flips: float, *, most: int = MOST_VOTES
) -> Needed:
    """The odd number of votes whose majority flips on at most a share ``flips`` of the responses."""
    most = most if most % 2 else most - 1
    votes, reached = 1, vote_flip_rate(1, rate, disagreement)
    while reached > flips and votes < most:
        votes += 2
        reached = vote_flip_rate(votes, rate, disagreement)
    return Needed(number=votes, reached=reached, met=reached <= flips, how=FORMULA, tried=most)


def _answers(guesses: Guesses, of: Pilot | None) -> list[Answer]:
    held = list(of.votes) if of is not None else []
    if guesses.disagreement is not None:
        held = [("", 0.5 if guesses.rate is None else guesses.rate, guesses.disagreement, 1)]
    made = []
    for grader, rate, apart, _ in held:
        needed = votes_for_flips(rate, apart, guesses.flips)
        made.append(
            Answer(
                statistic="votes_for_flips",
                question=f"A majority that flips on at most {percent(guesses.flips)} of the responses",
                guess=say(
                    "{rate} of votes say yes, two votes differ on {apart}",
                    rate=percent(rate),
                    apart=percent(apart),
                ),
                needed=needed,
                unit="vote" if needed.number == 1 else "votes",
                labels=None,
                gives=f"{percent(needed.reached, 2)} flip",
                key=Key(grader=grader),
                whose=(" of ", Name(grader)) if grader else (),
            )
        )
    return made


QUESTION = Question(
    name="votes",
    title="Votes whose majority rarely flips",
    order=40,
    guess="--disagreement 0.05",
    answers=_answers,
    about=lambda made, guesses: (
        "Votes: the chance of a yes is beta over responses, with the share of yes and the disagreement."
    ),
)
