"""How many gold labels: the false-accept rate within ± w, clusters counted."""

from __future__ import annotations

import math

from voirdire.planning._precision import about_shares, share_answer, shares_of
from voirdire.planning.base import Answer, Guesses, Pilot, Question, Share
from voirdire.wording import Text, counted, percent

NAME = "false accepts"


def _answers(guesses: Guesses, of: Pilot | None) -> list[Answer]:
    lines = of is not None and of.scene is not None and of.scene.bank is not None
    what = "lines that gold calls absent" if lines else "responses that gold calls absent"
    made = []
    for share in shares_of(NAME, guesses.false_accept, guesses, of):
        answer = share_answer(share, guesses, what=what, rest=())
        made.append(_in_all(answer, share))
    return made


def _in_all(answer: Answer, share: Share) -> Answer:
    """With the gold labels in all, where the pilot says how many of them are absent."""
    from dataclasses import replace

    if not 0 < share.among < 1 or answer.labels is None:
        return answer
    every: Text = (
        f"; gold calls {percent(share.among, 0)} of its labels so, which makes about "
        f"{counted(math.ceil(answer.labels / share.among))} gold labels in all",
    )
    return replace(answer, guess=(*answer.guess, *every))


QUESTION = Question(
    name="gold_labels",
    title="Gold labels for a false-accept rate",
    order=10,
    guess="--false-accept 0.1",
    answers=_answers,
    about=about_shares,
)
