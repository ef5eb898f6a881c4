"""How many clusters: the gate accuracy within ± w."""

from __future__ import annotations

from voirdire.planning._precision import about_shares, share_answer, shares_of
from voirdire.planning.base import Answer, Guesses, Pilot, Question

NAME = "gate accuracy"


def _answers(guesses: Guesses, of: Pilot | None) -> list[Answer]:
    return [
        share_answer(share, guesses, what="responses")
        for share in shares_of(NAME, guesses.gate_accuracy, guesses, of)
    ]


QUESTION = Question(
    name="clusters",
    title="Clusters for a gate accuracy",
    order=20,
    guess="--gate-accuracy 0.9",
    answers=_answers,
    about=about_shares,
)
