"""How much to grade: the precision to expect, and the numbers needed for a stated one.

Everything rests on guesses: stated ones, or those of a pilot file. What has a formula is computed by it, the
rest is simulated with the intervals and tests of the audit itself, and each answer says which. A question is
one file of this folder; :mod:`voirdire.planning.base` is its contract.
"""

from voirdire.planning._document import answers, document, questions
from voirdire.planning._pilot import pilot
from voirdire.planning._precision import (
    Expected,
    clusters_for_share,
    expected_half_width,
    expected_interval,
)
from voirdire.planning.base import (
    FORMULA,
    RUNS,
    SIMULATION,
    Answer,
    Guesses,
    Needed,
    Pilot,
    Question,
    Share,
    Stratum,
)
from voirdire.planning.collapse import (
    Collapse,
    Power,
    collapse_power,
    responses_for_collapse,
    smallest_ratio,
)
from voirdire.planning.phrasings import phrasing_factors, phrasings_for_factor
from voirdire.planning.smallest_effect import smallest_difference, smallest_rise
from voirdire.planning.strata import Allocation, allocation
from voirdire.planning.votes import MOST_VOTES, vote_flip_rate, votes_for_flips

__all__ = [
    "FORMULA",
    "MOST_VOTES",
    "RUNS",
    "SIMULATION",
    "Allocation",
    "Answer",
    "Collapse",
    "Expected",
    "Guesses",
    "Needed",
    "Pilot",
    "Power",
    "Question",
    "Share",
    "Stratum",
    "allocation",
    "answers",
    "clusters_for_share",
    "collapse_power",
    "document",
    "expected_half_width",
    "expected_interval",
    "phrasing_factors",
    "phrasings_for_factor",
    "pilot",
    "questions",
    "responses_for_collapse",
    "smallest_difference",
    "smallest_ratio",
    "smallest_rise",
    "vote_flip_rate",
    "votes_for_flips",
]
