"""Repeated calls of one grader: how often they differ, and how often they elect nobody."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voirdire.bank import Bank
from voirdire.document import Block, Cell, Column, Kind, Table, cell, worded
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Key
from voirdire.grid import MISSING_CODE, NOT_THERE, WORDING, Grid
from voirdire.grid import NO_MAJORITY as ELECTED_NOBODY
from voirdire.orders import ORDER, orders_of
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.wording import Name, counted, percent

__all__ = ["self_disagreement"]

MOST_CLASSES = 12  # that a table of single votes shows
TABLE5 = Source(text='"The Missing Compliance Class", Table 5')
NO_TWO_VOTES = "no response has two readable votes"
NO_TWO_UNDER_ONE = "no response has two readable votes under one phrasing"
NO_TWO_IN_ORDER = (
    "no pair has two readable votes in the same order, and votes in different orders are no repeats"
)
RULES = {"first": "first readable vote", "majority": "majority of the votes"}

SELF_DISAGREEMENT = Estimand(
    name="self_disagreement",
    title="Self-disagreement",
    question=(
        "On which share of the responses with at least two readable votes are these votes not all "
        "of one class?"
    ),
    describes=Describes.GRADER,
    keys=("grader",),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "vote"),
    low=0,
    high=1,
    reading=(
        "It is the noise of decoding: what the same call gives when it is made again. A difference "
        "between graders or models that is smaller may be no more than that. At 0 nothing follows: "
        "equal repeats say nothing about whether the labels are right. Votes that could not be "
        "read are left out. Where there are several phrasings only votes under the same one are compared, "
        "and a response stands for itself under each of them: what the wording does is flip_rate. Where "
        "pairs were shown in both orders, only votes in the same order are compared: what the order "
        "does is position_flip_rate. In a checklist it is the share of lines of responses, each with "
        "its own votes."
    ),
    moves_with=(
        "the number of votes: more of them find more differences",
        "the grader’s temperature",
        "how many responses of the bank lie between two classes",
    ),
    undefined_when=NO_TWO_VOTES,
    source=TABLE5,
    formula=r"\frac{\#\{i \mid V_{i} \ge 2,\ \max_{c} V_{ic} < V_{i}\}}{\#\{i \mid V_{i} \ge 2\}}",
    conventions=(
        "V_ic: the votes for class c on response i, V_i the readable votes there. Counted are "
        "responses with a difference, not pairs of votes that differ: of these call_noise is the "
        "share."
    ),
)
NO_MAJORITY = Estimand(
    name="no_majority",
    title="No majority",
    question=(
        "For how many responses with a readable vote is there no class that more than half of the "
        "calls gave?"
    ),
    describes=Describes.GRADER,
    keys=("grader",),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    needs=("label", "vote"),
    low=0,
    reading=(
        "Under the rule “majority” these responses have no label of the grader. A call that could "
        "not be read is a call and a vote for no class; a call that nobody knows of is none. Where there "
        "are several phrasings a response stands for itself under each of them, with the votes given "
        "there. In a checklist lines of responses are counted: such a line has no verdict, and its response no "
        "total."
    ),
    undefined_when="the grader gave no readable vote",
    source=TABLE5,
    formula=r"\#\left\{i \mid V_{i} \ge 1,\ \max_{c} V_{ic} \le \frac{A_{i}}{2}\right\}",
    conventions=(
        "V_ic: the votes for class c on response i, V_i the readable votes and A_i all calls made "
        "there. A frequency weight counts as so many responses; a design weight changes no count."
    ),
)

# Of the responses with two readable votes or more: all the same, or not, (2,). Of those with one or
# more: a class that more than half of the calls gave, or none, (2,).


def _second_of_both(cells: Array, given: Given) -> tuple[Array, Array]:
    return cells[..., 1, None], np.asarray(cells.sum(-1, keepdims=True))


def _disagreement(cells: Array, given: Given) -> Array:
    different, repeated = _second_of_both(cells, given)
    return np.asarray(different / repeated)


def _both(cells: Array, given: Given) -> Array:
    return _second_of_both(cells, given)[1]


def _nobody(cells: Array, given: Given) -> Array:
    nobody, read = _second_of_both(cells, given)
    return np.where(read > 0, nobody, np.nan)


def _no_two(totals: Array, given: Given) -> Sequence[str]:
    if given.get("wordings"):
        return [NO_TWO_UNDER_ONE]
    return [NO_TWO_IN_ORDER if given.get("orders") else NO_TWO_VOTES]


S_DISAGREEMENT = Statistic(
    estimand=SELF_DISAGREEMENT,
    solve=_disagreement,
    n=_both,
    share=_second_of_both,
    reason=_no_two,
)
S_NO_MAJORITY = Statistic(estimand=NO_MAJORITY, solve=_nobody, n=_both, unweighted=True)


@dataclass(frozen=True)
class Ballots:
    """What the votes of each response and grader come to, one entry where a call is known.

    ``row`` and ``grader`` are places in the grid; ``asked`` are calls made, ``read`` those with a
    class, ``most`` the votes of the class with the most.
    """

    row: Array
    grader: Array
    asked: Array
    read: Array
    most: Array


def ballots(grid: Grid, apart: Array | None = None) -> Ballots:
    """The votes of a grid, counted once for all graders.

    ``apart`` is a code from −1 for each vote: then votes of several codes are several entries.
    """
    votes = grid.votes
    assert votes is not None
    graders, k = len(grid.graders), max(len(grid.classes), 1)
    kind = np.zeros_like(votes.row) if apart is None else apart + 1
    kinds = int(kind.max(initial=0)) + 1
    held = (votes.row * graders + votes.grader) * kinds + kind
    held, entry = np.unique(held, return_inverse=True)
    place = held // kinds
    entry = entry.reshape(-1)
    readable = votes.code >= 0
    cell, count = np.unique(entry[readable] * k + votes.code[readable], return_counts=True)
    most = np.zeros(len(held), dtype=np.int64)
    np.maximum.at(most, cell // k, count)
    return Ballots(
        row=place // graders,
        grader=place % graders,
        asked=np.bincount(entry[votes.outcome != MISSING_CODE], minlength=len(held)),
        read=np.bincount(entry[readable], minlength=len(held)),
        most=most,
    )


def parts(scene: Scene) -> Iterable[Part]:
    if scene.bank is not None:
        yield from _of_bank(scene, scene.bank)
        return
    grid = scene.grid
    if grid is None or grid.votes is None:
        return
    wordings = _wordings(grid)
    if wordings is not None and not _repeated(grid, wordings):
        return  # one call a wording: votes there are none
    orders = orders_of(scene) is not None
    cast = ballots(grid, apart=wordings)
    alike = cast
    if orders:
        # Another order of the two is another question, and no repeat of the same call.
        order = grid.votes.tags[ORDER][1]
        apart = order if wordings is None else wordings * (int(order.max(initial=0)) + 2) + order
        alike = ballots(grid, apart=apart)
    of_all, of_alike = _by_grader(cast, len(grid.graders)), _by_grader(alike, len(grid.graders))
    for grader in scene.panel:
        g = grid.graders.index(grader)
        mine, repeats = of_all[g], of_alike[g]
        if not len(mine):
            continue
        any_ = mine[cast.read[mine] >= 1]
        nobody = 2 * cast.most[any_] <= cast.asked[any_]
        if wordings is None:
            again, different = _disagreeing(alike, repeats)
        else:
            # Under each wording a response stands for itself: more wordings are no more repeats.
            twice = repeats[alike.read[repeats] >= 2]
            again, different = alike.row[twice], alike.most[twice] < alike.read[twice]
        for statistic, rows, events in (
            (S_DISAGREEMENT, again, different),
            (S_NO_MAJORITY, cast.row[any_], nobody),
        ):
            tally = scene.counted(rows, events.astype(np.int64), (2,))
            yield Part(
                tally=tally,
                asks=((statistic, (Key(grader=grader),)),),
                given={"orders": orders, "wordings": wordings is not None},
            )


def by_wording(grid: Grid) -> Grid | None:
    """The grid whose votes are repeats: of a response under several phrasings one row under each.

    Calls without a phrasing, of people or gold, have a row of their own. ``None`` where no call was
    repeated: then several calls on a response are several phrasings and no votes.
    """
    votes = grid.votes
    wordings = None if votes is None else _wordings(grid)
    if votes is None or wordings is None:
        return grid if votes is not None else None
    if not _repeated(grid, wordings):
        return None
    kinds = int(wordings.max(initial=0)) + 2
    held, row = np.unique(votes.row * kinds + wordings + 1, return_inverse=True)
    row = row.reshape(-1)
    # Votes of one row and grader stand together, in the order they had.
    order = np.argsort(row * len(grid.graders) + votes.grader, kind="stable")
    of = held // kinds
    shape = (len(held), len(grid.graders))
    return replace(
        grid,
        codes=np.full(shape, -1, dtype=grid.codes.dtype),
        outcomes=np.full(shape, NOT_THERE, dtype=grid.outcomes.dtype),
        cluster=grid.cluster[of],
        stratum=None if grid.stratum is None else grid.stratum[of],
        weights=None if grid.weights is None else grid.weights[of],
        tags={},
        steps=(),
        votes=replace(
            votes, row=row[order], grader=votes.grader[order], code=votes.code[order],
            outcome=votes.outcome[order], tags={},
        ),
        phrasings=None,
    )  # fmt: skip


def _wordings(grid: Grid) -> Array | None:
    """The phrasing of each vote, −1 for none; ``None`` where there are not several."""
    assert grid.votes is not None
    return grid.votes.tags[WORDING][1] if WORDING in grid.votes.tags else None


def _repeated(grid: Grid, wordings: Array) -> bool:
    """Whether any grader was asked twice on a response under one phrasing."""
    votes = grid.votes
    assert votes is not None
    known = votes.outcome != MISSING_CODE
    cells = (votes.row * len(grid.graders) + votes.grader) * (int(wordings.max(initial=0)) + 2)
    return bool(np.unique((cells + wordings + 1)[known], return_counts=True)[1].max(initial=0) > 1)


def _of_bank(scene: Scene, bank: Bank) -> Iterable[Part]:
    """Each line of a response stands for itself: its votes agree or not, elect a verdict or not.

    Where there are several phrasings so does each of them.
    """
    if bank.votes is None:
        return
    votes = bank.votes
    if votes.within is None:
        read, nobody = votes.read, votes.no_majority
        differ = np.asarray((votes.yes > 0) & (votes.no > 0))
        cells = np.stack([read >= 2, (read >= 2) & differ, read >= 1, nobody], axis=-1)
    else:
        cells = votes.within
        if not cells[..., 0].any():
            return
    for grader in scene.panel:
        g = bank.places[grader]
        if not (votes.asked[:, g] > 1).any():
            continue
        for statistic, at in ((S_DISAGREEMENT, 0), (S_NO_MAJORITY, 2)):
            of_all, events = (cells[:, g, :, at + i].sum(axis=1, dtype=np.int64) for i in (0, 1))
            rows = np.concatenate([np.arange(len(of_all))] * 2)
            amounts = np.concatenate([of_all - events, events])
            kind = np.repeat([0, 1], len(of_all))
            some = amounts > 0
            tally = scene.counted(rows[some], kind[some], (2,), amounts[some])
            yield Part(
                tally=tally,
                asks=((statistic, (Key(grader=grader),)),),
                given={"wordings": votes.within is not None},
            )


def _by_grader(cast: Ballots, graders: int) -> list[Array]:
    """The entries of each grader."""
    order = np.argsort(cast.grader, kind="stable")
    edges = np.searchsorted(cast.grader[order], np.arange(graders + 1))
    return [order[start:end] for start, end in itertools.pairwise(edges)]


def _disagreeing(cast: Ballots, mine: Array) -> tuple[Array, Array]:
    """The responses with an entry of two readable votes or more, and whether any such entry differs."""
    again = mine[cast.read[mine] >= 2]
    rows, of_row = np.unique(cast.row[again], return_inverse=True)
    differ = cast.most[again] < cast.read[again]
    return rows, np.bincount(of_row.reshape(-1), weights=differ, minlength=len(rows)) > 0


def self_disagreement(votes: Any) -> float:
    """The share of responses whose votes are not all the same, in 0–1.

    ``votes`` is responses × repeats of one grader; missing is None or nan. Responses with fewer than
    two votes are left out; nan with an ``UndefinedWarning`` where none is left. Source: MCC, Table 5.

    >>> self_disagreement([["a", "a", "b"], ["b", "b", None], ["a", None, None]])
    0.5
    """
    from voirdire.stats.pairwise import all_classes, codes, said

    matrix = np.asarray(votes, dtype=object)
    if matrix.ndim != 2:
        raise ValueError("votes must be responses × repeats")
    places = codes(matrix, all_classes(matrix)).reshape(matrix.shape)
    read = places >= 0
    again = read.sum(axis=1) >= 2
    high = places.max(axis=1, initial=-1)
    low = np.where(read, places, np.iinfo(np.int64).max).min(axis=1, initial=np.iinfo(np.int64).max)
    if not again.any():
        return said(np.nan, NO_TWO_VOTES)
    return said((high != low)[again].mean(), NO_TWO_VOTES)


# --- the report ---------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    if scene.bank is not None:
        return _bank_table(scene, scene.bank, estimates)
    rows = []
    for grader in scene.names:
        found = estimates.get("self_disagreement", grader=grader, slice=scene.slice)
        if found is None or not found.n:
            continue
        lost = estimates.get("no_majority", grader=grader, slice=scene.slice)
        rows.append(
            (
                cell(Name(grader)),
                cell(found.n, Kind.COUNT),
                cell(found),
                worded(_out_of(lost), lost),
            )
        )
    made: list[Block] = []
    each = " × phrasings" if _has_wordings(scene) else ""
    if rows:
        made.append(
            Table(
                title="How a grader’s votes on one response differ",
                columns=(
                    Column(title="grader", kind=Kind.NAME),
                    Column(
                        title="asked again",
                        kind=Kind.COUNT,
                        help=f"responses{each} with two readable votes",
                    ),
                    Column(title="votes differ", kind=Kind.SHARE),
                    Column(
                        title="no majority", help=f"of the responses{each} with a readable vote"
                    ),
                ),
                rows=tuple(rows),
                note=(
                    f"{_what_differs(scene)} No majority: no class has more than half of the calls; under "
                    f"the rule “majority” there is no label then. Labels "
                    f"{'under a phrasing' if each else 'here'}: the {RULES[scene.options.vote_rule]}.",
                ),
            )
        )
    return [*made, *_single(scene), *_rules(scene, estimates)]


def _single(scene: Scene) -> list[Block]:
    """The single votes of graders whose votes elect nobody somewhere: there labels do not tell of them."""
    grid = scene.grid
    if grid is None or grid.votes is None or len(scene.classes) > MOST_CLASSES:
        return []
    counts = grid.votes_by_class()
    rows = []
    for grader in scene.panel:
        g = scene.places[grader]
        read = int(counts[g].sum())
        if read and (grid.outcomes[:, g] == ELECTED_NOBODY).any():
            cells = (f"{counted(n)} ({percent(n / read)})" for n in counts[g].tolist())
            rows.append((cell(Name(grader)), *map(cell, cells), cell(float(read), Kind.COUNT)))
    if not rows:
        return []
    return [
        Table(
            title="Single votes by class",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                *(Column(title=Name(c)) for c in scene.classes),
                Column(title="votes", kind=Kind.COUNT, help="that could be read"),
            ),
            rows=tuple(rows),
            note=(
                "All readable votes, also those of responses without a majority, which have no label. "
                "Votes on one response hang together, so these shares have no interval.",
            ),
        )
    ]


def _has_wordings(scene: Scene) -> bool:
    if scene.bank is not None:
        return scene.bank.votes is not None and scene.bank.votes.within is not None
    grid = scene.grid
    return grid is not None and grid.votes is not None and _wordings(grid) is not None


def _what_differs(scene: Scene) -> str:
    if _has_wordings(scene):
        return (
            "Only votes under the same phrasing are compared, and a response counts once for each phrasing: "
            "this is the noise of decoding. What the wording does stands in the phrasing study above."
        )
    return "Repeats under one prompt show the noise of decoding and nothing of whether the labels are right."


def _bank_table(scene: Scene, bank: Bank, estimates: Estimates) -> list[Block]:
    if bank.votes is None:
        return []
    rows = []
    each = " × phrasings" if _has_wordings(scene) else ""
    nobody: Array = np.asarray(bank.votes.no_majority.any(axis=2))
    if bank.votes.within is not None:
        nobody = np.asarray((bank.votes.within[..., 3] > 0).any(axis=2))
    for grader in scene.panel:
        found = estimates.get("self_disagreement", grader=grader, slice=scene.slice)
        lost = estimates.get("no_majority", grader=grader, slice=scene.slice)
        if found is None:
            continue
        rows.append(
            (
                cell(Name(grader)),
                cell(found.n, Kind.COUNT),
                cell(found),
                worded(_out_of(lost), lost),
                cell(float(nobody[:, bank.places[grader]].sum()), Kind.COUNT),
            )
        )
    if not rows:
        return []
    return [
        Table(
            title="How a judge’s votes on one line of a response differ",
            columns=(
                Column(title="judge", kind=Kind.NAME),
                Column(
                    title="asked again",
                    kind=Kind.COUNT,
                    help=f"lines of responses{each} with two readable votes",
                ),
                Column(title="votes differ", kind=Kind.SHARE),
                Column(
                    title="no majority",
                    help=f"of the lines of responses{each} with a readable vote",
                ),
                Column(
                    title="responses",
                    kind=Kind.COUNT,
                    help="with no majority on some line",
                ),
            ),
            rows=tuple(rows),
            note=(
                (f"{_what_differs(scene)} " if _has_wordings(scene) else "")
                + f"Verdicts here: the {RULES[scene.options.vote_rule]}. "
                + (
                    "Where neither yes nor no has more than half of the votes the line has no "
                    "verdict, and its response no total: it is no unread call. The last column "
                    "counts such responses; an odd number of votes leaves none, or say --vote-rule "
                    "first."
                    if scene.options.vote_rule == "majority"
                    else "No majority: neither yes nor no has more than half of the votes; under "
                    "the rule “majority” these lines would have no verdict, and the responses in "
                    "the last column no total."
                ),
            ),
        )
    ]


def _out_of(count: Estimate | None) -> str:
    if count is None or count.number is None:
        return "–"
    return f"{counted(count.number)} of {counted(count.n or 0)}"


def _rules(scene: Scene, estimates: Estimates) -> list[Block]:
    """The spread of each rate under both rules, side by side."""
    if _has_wordings(scene):
        return []  # the first vote would be the first wording
    rows = []
    for rate in scene.rates:
        cells: list[Cell] = []
        for statistic in ("rate_max_over_min", "rate_range"):
            for rule in RULES:
                key = {"other": f"votes:{rule}", "class_": rate.name, "slice": scene.slice}
                found, zeros = (
                    estimates.get(statistic, **key),
                    estimates.get("graders_at_zero", **key),
                )
                if found is None:
                    continue
                some = statistic == "rate_max_over_min" and zeros is not None and zeros.number
                cells.append(replace(cell(found), at_least=bool(some)))
        if len(cells) == 2 * len(RULES):
            rows.append((cell(Name(rate.name)), *cells))
    if not rows:
        return []
    words = {"first": "first vote", "majority": "majority"}
    kinds = (("highest / lowest", Kind.RATIO), ("range, points", Kind.POINTS))
    return [
        Table(
            title="How far each rate moves with the grader, under each rule for votes",
            columns=(
                Column(title="rate", kind=Kind.NAME),
                *(
                    Column(title=f"{title}: {words[rule]}", kind=kind)
                    for title, kind in kinds
                    for rule in RULES
                ),
            ),
            rows=tuple(rows),
            note=(
                "First vote: the first readable one, as if each response had been asked once. "
                "Majority: more than half of the calls, else no label. Graders with one call keep "
                "it under both. Ratios leave graders at zero out of the lowest rate (“≥”).",
            ),
        )
    ]


FAMILY = Family(
    name="votes",
    statistics=(S_DISAGREEMENT, S_NO_MAJORITY),
    parts=parts,
    section="Votes",
    order=29,
    blocks=blocks,
    kinds=("labels", "counts", "checklist"),
)
