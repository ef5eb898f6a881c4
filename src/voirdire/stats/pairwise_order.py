"""Verdicts on pairs that were shown in both orders: how often the order decides, and for which place.

Verdicts on pairs (one side, the other, a tie) are a scale of their own and no ordered classes. What is
said here rests on pairs that could be read in both orders: there a grader without a preference for
a place gives each place as many verdicts as the other, whichever side is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from voirdire.document import Block, Column, Kind, Table, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.orders import ONE, TWO, orders_of
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.stats.pairwise import MOST_PAIRS_SHOWN, ONE_CLASS, pairs
from voirdire.stats.pairwise import S_KAPPA as PAIR_KAPPA
from voirdire.wording import Name, Text, say

__all__ = ["order_preference", "position_flip_rate"]

ZHENG = (
    "Zheng et al. 2023, Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena, arXiv 2306.05685"
)
NO_PAIR = "no pair could be read in both orders"
NO_ORDER_IN_COMMON = "the two share no pair that both could be read on in the same order"
NONE_DECIDED = "no verdict for a side on a pair that could be read in both orders"

FLIP_RATE = Estimand(
    name="position_flip_rate",
    title="Position flips",
    question=(
        "On which share of the pairs that could be read in both orders is the verdict another one "
        "when the two change places?"
    ),
    describes=Describes.BOTH,
    keys=("grader",),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "vote", "order"),
    low=0,
    high=1,
    reading=(
        "A tie in one order and a side in the other is a flip too; position_pattern tells them "
        "apart. Noise of decoding flips verdicts as well as the place does: order_preference says "
        "whether one place gains by it. At 0 nothing follows about whether the verdicts are right."
    ),
    moves_with=(
        "how many pairs of the bank are close",
        "the noise of decoding",
        "how readily the grader calls a tie",
    ),
    undefined_when=NO_PAIR,
    source=Source(text=f"{ZHENG}, section 3.3 and Table 2 (1 − consistency)"),
    formula=r"1 - \frac{n_{11} + n_{22} + n_{00}}{\sum_{a,b} n_{ab}}",
    conventions=(
        "n_ab: the pairs with verdict a when side 1 is shown first and b when side 2 is, each 1, 2 "
        "or 0 (a tie). Pairs that could be read in one order only are left out; several votes in "
        "one order are first made one verdict by the vote rule."
    ),
)
PREFERENCE = Estimand(
    name="order_preference",
    title="Preference for the first place",
    question=(
        "Of the verdicts for a side, on pairs that could be read in both orders, which share goes to "
        "the side that was shown first?"
    ),
    describes=Describes.BOTH,
    keys=("grader",),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "vote", "order"),
    low=0,
    high=1,
    reading=(
        "0.5 is no preference, above it the first place gains, below it the second. Each pair counts "
        "in both orders, so that the better side does not show. A pair with one verdict in both "
        "orders gives one to each place, so that many clear pairs bring the value towards 0.5. Here n "
        "counts verdicts."
    ),
    moves_with=("how many pairs of the bank are close",),
    undefined_when=NONE_DECIDED,
    source=Source(text=f"{ZHENG}, section 3.3"),
    formula=(
        r"\frac{F}{F + S}, \quad F = \sum_{b} n_{1b} + \sum_{a} n_{a2}, \quad S = \sum_{b} n_{2b} + "
        r"\sum_{a} n_{a1}"
    ),
    conventions=(
        "n_ab: the pairs with verdict a when side 1 is shown first and b when side 2 is, each 1, 2 "
        "or 0 (a tie). F: the verdicts for the side shown first, S: those for the other; a tie is "
        "neither. Pairs that could be read in one order only are left out."
    ),
)
PATTERN = Estimand(
    name="position_pattern",
    title="What both orders say",
    question=(
        "On how many pairs do both orders give one verdict, both the first place, both the "
        "second, a tie in one order alone, or could only one of them be read?"
    ),
    describes=Describes.BOTH,
    keys=("grader", "class"),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    needs=("label", "vote", "order"),
    low=0,
    reading="The first four add up to the pairs that could be read in both orders.",
    moves_with=("how many pairs of the bank are close",),
    undefined_when="no pair could be read in any order",
    source=Source(text=f"{ZHENG}, Table 2"),
    formula=(
        r"n_{11} + n_{22} + n_{00}, \quad n_{12}, \quad n_{21}, \quad \sum_{a \in \{1, 2\}} (n_{a0} "
        r"+ n_{0a})"
    ),
    conventions=(
        "n_ab: the pairs with verdict a when side 1 is shown first and b when side 2 is, each 1, 2 "
        "or 0 (a tie). These are same, first, second and tie_once; read_once counts the pairs read "
        "in one order only. A design weight changes no count."
    ),
)
ORDER_AGREEMENT = Estimand(
    name="order_agreement",
    title="Agreement, order by order",
    question=(
        "Of the verdicts on pairs that both graders gave in the same order, on which share do they give "
        "the same verdict?"
    ),
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "vote", "order"),
    low=0,
    high=1,
    reading=(
        "Each order of a pair is a verdict of its own, so that verdicts count which flip and leave the "
        "pair without a label; n counts verdicts. Read it beside kappa."
    ),
    moves_with=("how many pairs of the bank are close", "how readily the two call a tie"),
    undefined_when=NO_ORDER_IN_COMMON,
    source=Source(text=f"{ZHENG}, section 4.2 (agreement of two judges)"),
    formula=(
        r"p_{o} = \frac{\#\{(i, o) \mid x_{gio} = x_{hio}\}}{\#\{(i, o) \mid x_{gio},\ x_{hio} \text{ are "
        r"verdicts}\}}"
    ),
    conventions=(
        "x_gio: the verdict of grader g on pair i in order o, x_hio that of the other: one side, "
        "the other, or a tie, whichever tie it is."
    ),
)
ORDER_KAPPA = Estimand(
    name="order_kappa",
    title="Cohen’s kappa, order by order",
    question=(
        "How far do two graders agree beyond chance on verdicts that both gave in the same order of a "
        "pair?"
    ),
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    needs=("label", "vote", "order"),
    low=-1,
    high=1,
    reading=(
        "1: perfect, 0: as by chance. The verdicts are one side, the other and a tie; a preference for a "
        "place that both share makes it higher. Here n counts verdicts."
    ),
    moves_with=("how common each verdict is in the bank",),
    undefined_when=ONE_CLASS,
    source=Source(text="Cohen 1960, Educational and Psychological Measurement 20(1), p. 40"),
    formula=r"\kappa = \frac{p_{o} - p_{e}}{1 - p_{e}}, \quad p_{e} = \sum_{a} p_{a}\, q_{a}",
    conventions=(
        "p_o: order_agreement; p_a, q_a: the two graders’ shares of verdict a (one side, the "
        "other, a tie) among the verdicts that both gave on the same pair in the same order."
    ),
)
SAME, FIRST, SECOND = "same", "first", "second"
TIE_ONCE, READ_ONCE = "tie_once", "read_once"
PATTERNS = (SAME, FIRST, SECOND, TIE_ONCE, READ_ONCE)

# Cells: pairs by the verdict with side one shown first and with side two shown first, (4, 4): for one,
# for two, a tie, not read.
UNREAD = 3
VERDICTS = UNREAD + 1


def _read(cells: Array) -> Array:
    return cells[..., :UNREAD, :UNREAD]


def _flips(cells: Array, given: Given) -> tuple[Array, Array]:
    both = _read(cells)
    pairs = both.sum((-2, -1))
    return (pairs - both.trace(axis1=-2, axis2=-1))[..., None], pairs[..., None]


def _for_first(cells: Array, given: Given) -> tuple[Array, Array]:
    both = _read(cells)
    one_first, two_first = both.sum(-1), both.sum(-2)  # verdicts in either order, (..., 3)
    first = one_first[..., ONE] + two_first[..., TWO]
    second = one_first[..., TWO] + two_first[..., ONE]
    return first[..., None], (first + second)[..., None]


def _flip_rate(cells: Array, given: Given) -> Array:
    events, trials = _flips(cells, given)
    return np.asarray(events / trials)


def _preference(cells: Array, given: Given) -> Array:
    events, trials = _for_first(cells, given)
    return np.asarray(events / trials)


def _pairs(cells: Array, given: Given) -> Array:
    return _flips(cells, given)[1]


def _decided(cells: Array, given: Given) -> Array:
    return _for_first(cells, given)[1]


def _patterns(cells: Array, given: Given) -> Array:
    both = _read(cells)
    same = both.trace(axis1=-2, axis2=-1)
    first, second = both[..., ONE, TWO], both[..., TWO, ONE]
    tie_once = both.sum((-2, -1)) - same - first - second
    read_once = cells.sum((-2, -1)) - both.sum((-2, -1))
    counts = np.stack([same, first, second, tie_once, read_once], axis=-1)
    return np.where(cells.sum((-2, -1))[..., None] > 0, counts, np.nan)


def _any_order(cells: Array, given: Given) -> Array:
    return np.asarray(cells.sum((-2, -1))[..., None])


S_FLIPS = Statistic(estimand=FLIP_RATE, solve=_flip_rate, n=_pairs, share=_flips)
S_PREFERENCE = Statistic(estimand=PREFERENCE, solve=_preference, n=_decided, share=_for_first)


def _agreed(cells: Array, given: Given) -> tuple[Array, Array]:
    return cells.trace(axis1=-2, axis2=-1)[..., None], cells.sum((-2, -1))[..., None]


def _agreement(cells: Array, given: Given) -> Array:
    events, trials = _agreed(cells, given)
    return np.asarray(events / trials)


def _verdicts(cells: Array, given: Given) -> Array:
    return _agreed(cells, given)[1]


def _why_no_kappa(totals: Array, given: Given) -> Sequence[str]:
    return [NO_ORDER_IN_COMMON if totals.sum() == 0 else ONE_CLASS]


# Cells of these two: verdicts of both graders on one pair in one order, (3, 3).
S_AGREEMENT = Statistic(estimand=ORDER_AGREEMENT, solve=_agreement, n=_verdicts, share=_agreed)
S_KAPPA = Statistic(
    estimand=ORDER_KAPPA,
    solve=PAIR_KAPPA.solve,
    n=_verdicts,
    share=_agreed,
    from_share=PAIR_KAPPA.from_share,
    reason=_why_no_kappa,
)
S_PATTERN = Statistic(estimand=PATTERN, solve=_patterns, n=_any_order, unweighted=True)


def parts(scene: Scene) -> Iterable[Part]:
    found = orders_of(scene)
    if found is None:
        return
    for grader in scene.panel:
        place = scene.places[grader]
        ab, ba = found.ab[:, place], found.ba[:, place]
        rows = np.flatnonzero((ab >= 0) | (ba >= 0))
        if not len(rows):
            continue
        ab, ba = (np.where(v[rows] >= 0, v[rows], UNREAD) for v in (ab, ba))
        tally = scene.counted(rows, ab * VERDICTS + ba, (VERDICTS, VERDICTS))
        key = (Key(grader=grader),)
        patterns = tuple(Key(grader=grader, class_=p) for p in PATTERNS)
        asks = ((S_FLIPS, key), (S_PREFERENCE, key), (S_PATTERN, patterns))
        yield Part(tally=tally, asks=asks)
    for grader, other in pairs(scene):
        mine, theirs = (
            np.concatenate([found.ab[:, at], found.ba[:, at]])
            for at in (scene.places[grader], scene.places[other])
        )
        if not ((mine >= 0).any() and (theirs >= 0).any()):
            continue
        both = np.flatnonzero((mine >= 0) & (theirs >= 0))
        cells = mine[both] * UNREAD + theirs[both]
        tally = scene.counted(both % len(found.ab), cells, (UNREAD, UNREAD))
        key = (Key(grader=grader, other=other),)
        yield Part(tally=tally, asks=((S_AGREEMENT, key), (S_KAPPA, key)))


def position_flip_rate(ab: Any, ba: Any) -> float:
    """The share of pairs whose verdict is another one when the two change places, in 0–1.

    ``ab`` and ``ba`` hold one grader's verdicts on the same pairs, ``(pairs,)`` each: with the one
    side shown first, and with the other. Verdicts name sides, not places. Missing is None or nan;
    pairs without both verdicts are left out, and where none is left the value is nan with an
    ``UndefinedWarning``. Source: Zheng et al. 2023, arXiv 2306.05685, Table 2 (1 − consistency).

    >>> position_flip_rate(["x", "x", "tie", None], ["x", "y", "y", "x"])
    0.6666666666666666
    """
    from voirdire.stats.pairwise import said

    one, other = _both(ab, ba)
    if not len(one):
        return said(np.nan, NO_PAIR)
    return said((one != other).mean(), NO_PAIR)


def order_preference(ab: Any, ba: Any, *, sides: tuple[Any, Any]) -> float:
    """The share of the verdicts for a side that goes to the side shown first, in 0–1; 0.5 is none.

    ``ab`` and ``ba`` are as for :func:`position_flip_rate`; ``sides`` are the verdicts for the side that
    ``ab`` shows first and for the other one. Any other verdict is a tie. Nan with an
    ``UndefinedWarning`` where no pair with both verdicts has one for a side.

    >>> order_preference(["x", "x", "tie"], ["x", "y", "y"], sides=("x", "y"))
    0.8
    """
    from voirdire.stats.pairwise import said

    one, other = _both(ab, ba)
    x, y = str(sides[0]), str(sides[1])
    first = (one == x).sum() + (other == y).sum()
    decided = first + (one == y).sum() + (other == x).sum()
    return said(first / decided if decided else np.nan, NONE_DECIDED)


def _both(ab: Any, ba: Any) -> tuple[Array, Array]:
    """The verdicts of pairs that have both, as texts."""
    one, other = (np.asarray(v, dtype=object) for v in (ab, ba))
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError("ab and ba must be two lists of verdicts on the same pairs")
    there = np.array(
        [
            a is not None and b is not None and a == a and b == b
            for a, b in zip(one, other, strict=True)
        ],
        dtype=bool,
    )
    return one[there].astype(str), other[there].astype(str)


# --- the report ---------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    rows = []
    unread = False
    for grader in scene.names:
        flips = estimates.get("position_flip_rate", grader=grader, slice=scene.slice)
        if flips is None:
            continue
        counts = [
            estimates.get("position_pattern", grader=grader, class_=p, slice=scene.slice)
            for p in PATTERNS
        ]
        unread = unread or bool(counts[-1] is not None and counts[-1].number)
        preference = estimates.get("order_preference", grader=grader, slice=scene.slice)
        rows.append(
            (
                cell(Name(grader)),
                cell(flips.n, Kind.COUNT),
                cell(flips),
                *(cell(c) for c in counts[1:]),
                cell(preference),
            )
        )
    if not rows:
        return []
    left_out = "Pairs that could be read in one order alone are left out. " if unread else ""
    return [
        Table(
            title="What a grader says when the two of a pair change places",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title="pairs", kind=Kind.COUNT, help="that could be read in both orders"),
                Column(title="verdict flips", kind=Kind.SHARE),
                Column(title="first place twice", kind=Kind.COUNT),
                Column(title="second place twice", kind=Kind.COUNT),
                Column(title="tie in one order", kind=Kind.COUNT),
                Column(title="read in one order", kind=Kind.COUNT),
                Column(
                    title="for the first place",
                    kind=Kind.SHARE,
                    help="of the verdicts for a side, over both orders; 50 % is no preference",
                ),
            ),
            rows=tuple(rows),
            note=_note(scene, left_out),
        ),
        *_agreements(scene, estimates),
    ]


def _agreements(scene: Scene, estimates: Estimates) -> list[Block]:
    """How far graders agree on verdicts in one order, of which a pair's label may keep nothing."""
    found = estimates.of("order_agreement", slice=scene.slice)
    rows = []
    for one in found[:MOST_PAIRS_SHOWN]:
        key = {"grader": one.key.grader, "other": one.key.other, "slice": scene.slice}
        rows.append(
            (
                cell(Name(one.key.grader)),
                cell(Name(one.key.other)),
                cell(one),
                cell(estimates.get("order_kappa", **key)),
                cell(one.n, Kind.COUNT),
            )
        )
    if not rows:
        return []
    more = f" The first {len(rows)} of {len(found)} pairs of graders." * (len(found) > len(rows))
    return [
        Table(
            title="Agreement on verdicts in the same order",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title="other", kind=Kind.NAME),
                Column(title="agreement", kind=Kind.SHARE),
                Column(title="kappa", kind=Kind.COEFFICIENT),
                Column(title="verdicts", kind=Kind.COUNT, help="that both gave in the same order"),
            ),
            rows=tuple(rows),
            note=(
                "Each order of a pair counts by itself, also where the two orders differ and the pair has "
                "no label. The verdicts are one side, the other and a tie; a place that both prefer makes "
                f"them agree.{more}",
            ),
        )
    ]


def _note(scene: Scene, left_out: str) -> Text:
    one_label = (
        "a pair whose two orders differ has no label under the rule “majority” and is no tie."
        if scene.options.vote_rule == "majority"
        else "under the rule “first” a pair has the label of its first vote, in one order."
    )
    return say(
        "A verdict flips where one place wins twice or one order alone gives a tie; noise of decoding "
        "flips verdicts too. 50 % for the first place is no preference for a place. {left_out}In all "
        "other tables {label} --by order shows each order alone.",
        left_out=left_out,
        label=one_label,
    )


FAMILY = Family(
    name="pairwise_order",
    statistics=(S_FLIPS, S_PREFERENCE, S_PATTERN, S_AGREEMENT, S_KAPPA),
    parts=parts,
    section="Both orders of a pair",
    order=24,
    blocks=blocks,
)
