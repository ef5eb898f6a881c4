"""Each grader beside the strict majority of the others, and the labels that nobody else gives.

The panel that scores a grader never holds the grader itself, nor graders that are made from it or
that it is made from. Its verdict on a response is the class of more than half of its members; a
member without a readable label there is a member still, so one vote of three is no verdict. MCC,
Table 9: a fixed panel that contains the graders it scores favours them by 6 to 8 points.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voirdire.document import Block, Cell, Column, Kind, Paragraph, Table, cell, worded
from voirdire.errors import UsageError
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Key
from voirdire.grid import NOT_THERE, Grid
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.tally import Tally
from voirdire.wording import Name, Text, counted, listed, percent, plain, printable, say

__all__ = ["strict_majority"]

TABLE9 = Source(text='"The Missing Compliance Class", Table 9')
SMALLEST_PANEL = 3  # members; each is scored by the others, and one other alone is no majority
FEWEST_OTHERS = 2
NO_VERDICT = "the others reach no verdict on any response that the grader could be read on"
ONE_CLASS = "not defined: one class used"
WITHOUT_FAMILY = "without_family:"
MOST_CLASSES = 6

VERDICT = (
    "x_gi: the label of grader g on response i; v_i: the class c that more than M/2 of the M "
    "members of its panel give, else there is no verdict. The panel is --panel or all graders but "
    "gold, without g, graders made from it or that it is made from; a member without a label there "
    "counts in M."
)

AGREEMENT = Estimand(
    name="consensus_agreement",
    title="Agreement with the consensus",
    question=(
        "Where more than half of the other graders give one class, how often does the grader give "
        "it too?"
    ),
    describes=Describes.BOTH,
    keys=("grader", "other"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    low=0,
    high=1,
    reading=(
        "The consensus is where most of the others stand, not the truth: if most of them hardly "
        "use a class, it rewards those that hardly use it. Responses without a verdict are left "
        "out and counted by no_consensus; they are the contested ones. With `other` = "
        "`without_family:NAME` graders of the grader’s own family are left out of the panel."
    ),
    moves_with=(
        "which graders are in the panel and how many",
        "how common each class is in the bank",
    ),
    undefined_when=NO_VERDICT,
    source=TABLE9,
    formula=r"\frac{1}{n}\, \#\{i \mid x_{gi} = v_{i}\}",
    conventions=f"{VERDICT} Of the n responses with a label of g and a verdict.",
)
BEST_CONSTANT = Estimand(
    name="consensus_best_constant",
    title="Best constant answer to the consensus",
    question="Which agreement with the consensus does the best answer that never changes reach?",
    describes=Describes.BANK,
    keys=("grader",),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    low=0,
    high=1,
    reading="On the responses on which the grader’s agreement with the consensus is counted.",
    undefined_when=NO_VERDICT,
    source=Source(text='"The Missing Compliance Class", Table 12'),
    formula=r"\frac{1}{n} \max_{c}\, \#\{i \mid v_{i} = c\}",
    conventions=(
        f"{VERDICT} Of the n responses with a label of g and a verdict. In a resampled "
        "bank the class stays the one that is most frequent in the whole bank."
    ),
)
KAPPA = Estimand(
    name="consensus_kappa",
    title="Kappa with the consensus",
    question=(
        "How far do the grader and the consensus of the others agree beyond what their class "
        "shares alone would give?"
    ),
    describes=Describes.BOTH,
    keys=("grader",),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    low=-1,
    high=1,
    reading="It sinks where one class is rare, whatever the graders do.",
    moves_with=("which graders are in the panel", "how common each class is in the bank"),
    undefined_when=ONE_CLASS,
    source=Source(text="Cohen 1960, Educational and Psychological Measurement 20(1), p. 40"),
    formula=(
        r"\kappa = \frac{p_{o} - p_{e}}{1 - p_{e}}, \quad p_{o} = \frac{1}{n}\, \#\{i \mid x_{gi} = v_{i}\}, "
        r"\quad p_{e} = \sum_{c} p_{c}\, q_{c}"
    ),
    conventions=(
        f"{VERDICT} Of the n responses with a label of g and a verdict; p_c, q_c: the shares of class c "
        "among the labels and among the verdicts there."
    ),
)
NO_CONSENSUS = Estimand(
    name="no_consensus",
    title="No consensus",
    question="On how many responses do no more than half of the others give any one class?",
    describes=Describes.BOTH,
    keys=("grader",),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    low=0,
    reading=(
        "Of the responses on which the grader or a member of the panel has a row. A member that "
        "could not be read votes for no class and counts as a member. Without a grader: the whole "
        "panel, nobody left out."
    ),
    undefined_when="no grader has a row",
    source=TABLE9,
    formula=r"\#\{i \mid \max_{c}\, \#\{h \mid x_{hi} = c\} \le \frac{M}{2}\}",
    conventions=f"{VERDICT} A frequency weight counts as so many responses; a design weight changes no count.",
)
INCOMPLETE = Estimand(
    name="no_consensus_incomplete",
    title="No consensus, a member missing",
    question="On how many of the responses without a verdict of the panel does a member lack a label?",
    describes=Describes.PANEL,
    keys=(),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    low=0,
    undefined_when="no grader has a row",
    source=TABLE9,
    formula=r"\#\{i \mid \max_{c}\, \#\{h \mid x_{hi} = c\} \le \frac{M}{2},\ x_{hi} \text{ is no label for some } h\}",
    conventions=(
        "h: a member of the whole panel of M, nobody left out; x_hi: its label. A design weight changes no "
        "count."
    ),
)
SOLO = Estimand(
    name="solo",
    title="Solo labels",
    question="How many labels of a class does the grader give that no other grader gives there?",
    describes=Describes.BOTH,
    keys=("grader", "class"),
    unit=Unit.COUNT,
    scale=Scale.NONE,
    low=0,
    reading=(
        "n is all labels of the class that the grader gives. A response on which none of the others "
        "could be read is no solo label. Nobody else giving a class does not make it wrong."
    ),
    moves_with=("how many graders are in the panel",),
    undefined_when="the grader has no row",
    source=TABLE9,
    formula=r"\#\{i \mid x_{gi} = c,\ x_{hi} \ne c \text{ for all } h,\ x_{hi} \text{ is a label for some } h\}",
    conventions=(
        "x_gi: the label of the grader; h: the members of the panel that scores it, as for no_consensus. A "
        "design weight changes no count."
    ),
)


# --- cells: verdict × label, (k, k), of the responses that have both ----------------------------


def _agreement_parts(pairs: Array, given: Given) -> tuple[Array, Array]:
    return np.asarray(np.trace(pairs, axis1=-2, axis2=-1)[..., None]), _both(pairs, given)


def _agreement(pairs: Array, given: Given) -> Array:
    same, both = _agreement_parts(pairs, given)
    return np.asarray(same / both)


def _both(pairs: Array, given: Given) -> Array:
    return np.asarray(pairs.sum((-2, -1))[..., None])


def _constant_parts(pairs: Array, given: Given) -> tuple[Array, Array]:
    return np.asarray(pairs.sum(-1)[..., given["mode"], None]), _both(pairs, given)


def _constant(pairs: Array, given: Given) -> Array:
    # The class of all the verdicts: the largest share of each replicate is above it on average.
    verdicts, both = _constant_parts(pairs, given)
    return np.asarray(verdicts / both)


def _kappa_at(share: Array, pairs: Array, given: Given) -> Array:
    verdicts, labels = pairs.sum(-1), pairs.sum(-2)
    chance = (verdicts * labels).sum(-1, keepdims=True) / _both(pairs, given) ** 2
    certain = chance >= 1 - 1e-12
    return np.where(certain, np.nan, (share - chance) / np.where(certain, 1, 1 - chance))


def _why_no_kappa(totals: Array, given: Given) -> Sequence[str]:
    return [ONE_CLASS if totals.sum() else NO_VERDICT]


def _looked_at(cells: Array, given: Given) -> Array:
    return np.asarray(cells.sum(-1, keepdims=True))


def _no_verdict(cells: Array, given: Given) -> Array:
    return np.where(_looked_at(cells, given) > 0, cells[..., 1:].sum(-1, keepdims=True), np.nan)


S_AGREEMENT = Statistic(estimand=AGREEMENT, solve=_agreement, n=_both, share=_agreement_parts)
S_CONSTANT = Statistic(estimand=BEST_CONSTANT, solve=_constant, n=_both, share=_constant_parts)
S_KAPPA = Statistic(
    estimand=KAPPA,
    solve=lambda pairs, given: _kappa_at(_agreement(pairs, given), pairs, given),
    n=_both,
    share=_agreement_parts,
    from_share=_kappa_at,
    reason=_why_no_kappa,
)
# A verdict; none though all members could be read; none and a member could not: (3,).
S_NO_CONSENSUS = Statistic(estimand=NO_CONSENSUS, solve=_no_verdict, n=_looked_at, unweighted=True)
S_INCOMPLETE = Statistic(
    estimand=INCOMPLETE,
    solve=lambda cells, given: np.where(_looked_at(cells, given) > 0, cells[..., 2, None], np.nan),
    n=lambda cells, given: np.asarray(cells[..., 1:].sum(-1, keepdims=True)),
    unweighted=True,
)
# Solo labels, (k, 2): given by another too (or nobody else could be read); given by no other.
S_SOLO = Statistic(
    estimand=SOLO,
    solve=lambda cells, given: np.asarray(cells[..., 1]),
    n=lambda cells, given: np.asarray(cells.sum(-1)),
    unweighted=True,
)


# --- panels -------------------------------------------------------------------------------------


def members(scene: Scene) -> tuple[str, ...]:
    """The graders that may form a verdict: ``--panel``, else all but gold.

    Graders that are made from others of the panel are left out: they would count the same labels
    twice. Raises :class:`UsageError` where ``--panel`` names graders that are not there, gold, or
    fewer than three.
    """
    named = tuple(dict.fromkeys(scene.options.panel)) or scene.panel
    if scene.options.panel:
        _check_panel(scene, named)
    left = tuple(g for g in named if not set(scene.by_name[g].derived_from) & set(named))
    if scene.options.panel and len(left) < SMALLEST_PANEL:
        raise UsageError(
            f"--panel: {len(left)} {'grader is' if len(left) == 1 else 'graders are'} no panel: "
            f"a majority needs at least {SMALLEST_PANEL}, none of them made from the others."
        )
    return left


def _check_panel(scene: Scene, named: Sequence[str]) -> None:
    if scene.gold and scene.gold in named:
        raise UsageError(
            f"--panel: {printable(scene.gold)} is gold, which is in no statistic of the panel. "
            "Leave it out, or say --gold none."
        )
    unknown = [g for g in named if g not in scene.panel]
    if unknown:
        there = plain(listed((printable(g) for g in scene.panel), most=20))
        word = "is no grader" if len(unknown) == 1 else "are no graders"
        raise UsageError(
            f"--panel: {plain(listed(map(printable, unknown)))} {word}. Graders: {there}."
        )


def barred(scene: Scene, panel: Sequence[str]) -> dict[str, set[str]]:
    """For each grader the members that may not score it: itself, those made from it, its sources."""
    there = set(panel)
    barred = {g: {g, *scene.by_name[g].derived_from} & there for g in scene.panel}
    for member in panel:
        for source in scene.by_name[member].derived_from:
            if source in barred:
                barred[source].add(member)
    return barred


@dataclass(frozen=True)
class _Votes:
    """Labels of all members by class in each response, counted once: ``(responses, k)``.

    ``there`` is how many members have a row. What a grader is scored by is this less a few.
    """

    counts: Array
    there: Array
    size: int

    @classmethod
    def of(cls, grid: Grid, panel: Sequence[str]) -> _Votes:
        k = len(grid.classes)
        counts = np.zeros(grid.responses * k, dtype=np.int32)
        there = np.zeros(grid.responses, dtype=np.int32)
        for member in panel:
            column, read = _read(grid, member)
            counts[read * k + column] += 1
            there += grid.outcomes[:, grid.graders.index(member)] != NOT_THERE
        return cls(counts.reshape(-1, k), there, len(panel))

    def without(self, grid: Grid, left_out: Collection[str]) -> _Votes:
        if not left_out:
            return self
        counts, there = self.counts.copy(), self.there.copy()
        for member in left_out:
            column, read = _read(grid, member)
            counts[read, column] -= 1
            there -= grid.outcomes[:, grid.graders.index(member)] != NOT_THERE
        return _Votes(counts, there, self.size - len(left_out))

    def verdict(self) -> Array:
        """The class of more than half of the members in each response, or −1."""
        best = self.counts.argmax(axis=1)
        won = 2 * np.take_along_axis(self.counts, best[:, None], axis=1)[:, 0] > self.size
        return np.where(won, best, -1)


def _read(grid: Grid, grader: str) -> tuple[Array, Array]:
    """The classes that a grader gives, and the responses where it does."""
    column = grid.column(grader)
    read = np.flatnonzero(column >= 0)
    return column[read].astype(np.int64), read


def parts(scene: Scene) -> Iterable[Part]:
    panel = members(scene)
    grid = scene.grid
    if grid is None or len(panel) < SMALLEST_PANEL:
        return
    votes = _Votes.of(grid, panel)
    yield Part(
        tally=_verdicts(scene, votes, votes.there > 0),
        asks=((S_NO_CONSENSUS, (Key(),)), (S_INCOMPLETE, (Key(),))),
    )
    kin = _families(scene, panel)
    without_kin: dict[frozenset[str], _Votes] = {}  # all graders of a family share one panel
    for grader, out in barred(scene, panel).items():
        if len(panel) - len(out) < FEWEST_OTHERS:
            continue
        yield from _of_grader(scene, grader, votes.without(grid, out))
        family = scene.by_name[grader].family
        more = frozenset(out | kin.get(family, set()))
        if len(more) == len(out) or len(panel) - len(more) < FEWEST_OTHERS:
            continue
        if more not in without_kin:
            without_kin[more] = votes.without(grid, more)
        tally = _beside(scene, grader, without_kin[more])
        yield Part(
            tally=tally,
            asks=((S_AGREEMENT, (Key(grader=grader, other=WITHOUT_FAMILY + family),)),),
        )


def _families(scene: Scene, panel: Sequence[str]) -> dict[str, set[str]]:
    """The members of each declared family; none where ``--panel`` says who forms the panel."""
    kin: dict[str, set[str]] = {}
    if scene.options.panel:
        return kin
    for member in panel:
        if family := scene.by_name[member].family:
            kin.setdefault(family, set()).add(member)
    return kin


def _verdicts(scene: Scene, votes: _Votes, looked_at: Array) -> Tally:
    rows = np.flatnonzero(looked_at)
    complete = votes.counts[rows].sum(axis=1) == votes.size
    cells = np.where(votes.verdict()[rows] >= 0, 0, np.where(complete, 1, 2))
    return scene.counted(rows, cells.astype(np.int64), (3,))


def _of_grader(scene: Scene, grader: str, votes: _Votes) -> Iterable[Part]:
    assert scene.grid is not None
    grid = scene.grid
    tally = _beside(scene, grader, votes)
    key = (Key(grader=grader),)
    yield Part(
        tally=tally,
        asks=tuple((s, key) for s in (S_AGREEMENT, S_CONSTANT, S_KAPPA)),
        given={"mode": int(tally.total.sum(-1).argmax())},
    )
    own = grid.outcomes[:, grid.graders.index(grader)] != NOT_THERE
    yield Part(
        tally=_verdicts(scene, votes, (votes.there > 0) | own), asks=((S_NO_CONSENSUS, key),)
    )
    label, read = _read(grid, grader)
    counts = votes.counts[read]
    alone = (counts.sum(axis=1) > 0) & (np.take_along_axis(counts, label[:, None], 1)[:, 0] == 0)
    yield Part(
        tally=scene.counted(read, label * 2 + alone, (scene.k, 2)),
        asks=((S_SOLO, tuple(Key(grader=grader, class_=c) for c in scene.classes)),),
    )


def _beside(scene: Scene, grader: str, votes: _Votes) -> Tally:
    """The verdicts of the others beside the grader’s labels, where both are: shape ``(k, k)``."""
    assert scene.grid is not None
    label, read = _read(scene.grid, grader)
    verdict = votes.verdict()[read]
    both = verdict >= 0
    return scene.counted(read[both], verdict[both] * scene.k + label[both], (scene.k, scene.k))


def strict_majority(ratings: Any) -> list[Any]:
    """The class that more than half of the raters give to each response, or None where none is.

    ``ratings`` is responses × raters; missing is None or nan, and a rater without a label counts
    among the raters: one vote of three is no majority. The order of the raters does not matter.

    >>> strict_majority([["a", None, "b"], ["a", "a", "b"], [None, None, "b"]])
    [None, 'a', None]
    """
    from voirdire.stats.pairwise import all_classes, codes

    matrix = np.asarray(ratings, dtype=object)
    if matrix.ndim != 2:
        raise ValueError("ratings must be responses × raters")
    classes = all_classes(matrix)
    places = codes(matrix, classes).reshape(matrix.shape)
    found: list[Any] = [None] * len(matrix)
    for i, class_ in enumerate(classes):
        for row in np.flatnonzero(2 * (places == i).sum(axis=1) > matrix.shape[1]):
            found[row] = class_
    return found


# --- the report ---------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    whole = estimates.get("no_consensus", slice=scene.slice)
    if whole is None:
        return ()
    made: list[Block] = [Paragraph(text=_panel_in_words(scene, estimates, whole))]
    table = _agreement_table(scene, estimates)
    if table is not None:
        made.append(table)
    for more in (_without_family(scene, estimates), _solo_table(scene, estimates)):
        if more is not None:
            made.append(more)
    return made


def _panel_in_words(scene: Scene, estimates: Estimates, whole: Estimate) -> Text:
    missing = estimates.get("no_consensus_incomplete", slice=scene.slice)
    lacking = missing.number if missing is not None else None
    named = scene.options.panel
    who = say(" ({members})", members=listed(named)) if named else ""
    if not whole.number:
        return say(
            "The whole panel{who} has a majority on each of {n} responses: more than half of its "
            "members give one class.",
            who=who,
            n=counted(whole.n or 0),
        )
    return say(
        "The whole panel{who} has no majority on {none} of {n} responses: no class has more than "
        "half of its members there{lacking}.",
        who=who,
        none=counted(whole.number),
        n=counted(whole.n or 0),
        lacking=f"; on {counted(lacking)} of these a member has no readable label"
        if lacking
        else "",
    )


def _agreement_table(scene: Scene, estimates: Estimates) -> Table | None:
    rows = []
    for grader in scene.names:
        key = {"grader": grader, "slice": scene.slice}
        found = estimates.get("consensus_agreement", **key)
        if found is None:
            continue
        none = estimates.get("no_consensus", **key)
        rows.append(
            (
                cell(Name(grader)),
                cell(found),
                cell(estimates.get("consensus_best_constant", **key)),
                cell(estimates.get("consensus_kappa", **key)),
                cell(found.n, Kind.COUNT),
                worded(
                    f"{counted(none.number)} of {counted(none.n or 0)}"
                    if none is not None and none.number is not None
                    else "–",
                    none,
                ),
            )
        )
    if not rows:
        return None
    return Table(
        title="Agreement with the strict majority of the others",
        columns=(
            Column(title="grader", kind=Kind.NAME),
            Column(title="agreement", kind=Kind.SHARE),
            Column(title="best constant answer", kind=Kind.SHARE),
            Column(title="kappa", kind=Kind.COEFFICIENT),
            Column(title="responses", kind=Kind.COUNT, help="with a verdict and a label"),
            Column(title="no verdict", help="of the responses looked at"),
        ),
        rows=tuple(rows),
        note=(
            *_who_votes(scene),
            " A verdict is the class of more than half of the members, those without a label "
            "counted in. Responses without one say nothing about the grader and leave the "
            "denominator; they are the contested ones. The majority is not the truth.",
            *_flagged_note(scene),
        ),
    )


def _who_votes(scene: Scene) -> Text:
    if scene.options.panel:
        return say(
            "The panel is {named}; its members are scored by the rest of it, everybody else by all.",
            named=listed(scene.options.panel),
        )
    made = [g for g in scene.panel if set(scene.by_name[g].derived_from) & set(scene.panel)]
    if made:
        return say(
            "Each grader is scored by all others but those made from others ({made}).",
            made=listed(made),
        )
    return ("Each grader is scored by all others.",)


def _flagged_note(scene: Scene) -> Text:
    named = scene.options.panel or scene.panel
    flagged = [g for g in scene.flagged if g in named]
    if not flagged:
        return ()
    return say(
        " {who} {is_} flagged and {votes} in the panel: a majority that hardly uses a class rewards "
        "the graders that hardly use it. Compare with --panel without {them}.",
        who=listed(flagged),
        is_="is" if len(flagged) == 1 else "are",
        votes="votes" if len(flagged) == 1 else "vote",
        them="it" if len(flagged) == 1 else "them",
    )


def _without_family(scene: Scene, estimates: Estimates) -> Table | None:
    rows = []
    for found in estimates.of("consensus_agreement", slice=scene.slice):
        grader, other = found.key.grader, found.key.other
        if not other.startswith(WITHOUT_FAMILY) or grader not in scene.by_name:
            continue
        rows.append(
            (
                cell(Name(grader)),
                cell(Name(other.removeprefix(WITHOUT_FAMILY))),
                cell(estimates.get("consensus_agreement", grader=grader, slice=scene.slice)),
                cell(found),
                cell(found.n, Kind.COUNT),
            )
        )
    if not rows:
        return None
    return Table(
        title="The same without the grader’s own family in the panel",
        columns=(
            Column(title="grader", kind=Kind.NAME),
            Column(title="family", kind=Kind.NAME),
            Column(title="all others", kind=Kind.SHARE),
            Column(title="without its family", kind=Kind.SHARE),
            Column(title="responses", kind=Kind.COUNT),
        ),
        rows=tuple(rows),
        note=(
            "Families as declared with --about. The two columns rest on different responses, since "
            "a smaller panel reaches other verdicts.",
        ),
    )


def _solo_table(scene: Scene, estimates: Estimates) -> Table | None:
    classes = [*reversed(scene.scale), *(c for c in scene.classes if c not in scene.scale)]
    classes = classes[:MOST_CLASSES]
    rows = []
    for grader in scene.names:
        found = [estimates.get("solo", grader=grader, class_=c, slice=scene.slice) for c in classes]
        if any(e is not None for e in found):
            rows.append((cell(Name(grader)), *(_of(e) for e in found)))
    if not rows:
        return None
    return Table(
        title="Solo labels: given by no other grader of the panel",
        columns=(
            Column(title="grader", kind=Kind.NAME),
            *(Column(title=Name(c), help="solo labels / all of the grader’s") for c in classes),
        ),
        rows=tuple(rows),
        note=(
            "Solo labels out of all labels of the class that the grader gives. A response on which "
            "none of the others could be read is not counted as solo. That nobody else gives a "
            "class does not make it wrong.",
        ),
    )


def _of(solo: Estimate | None) -> Cell:
    if solo is None or solo.number is None or solo.n is None:
        return cell("–")
    share = f" ({percent(solo.number / solo.n, 0)})" if solo.n and solo.number else ""
    return worded(f"{counted(solo.number)} / {counted(solo.n)}{share}", solo)


FAMILY = Family(
    name="consensus",
    statistics=(S_AGREEMENT, S_CONSTANT, S_KAPPA, S_NO_CONSENSUS, S_INCOMPLETE, S_SOLO),
    parts=parts,
    section="Beside the consensus of the others",
    order=65,
    blocks=blocks,
)
