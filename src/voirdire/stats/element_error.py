"""Where the judge errs on a checklist: error, false accepts and false rejects, by line and position.

A verdict counts where gold and the judge both gave one on the line, whatever the response’s other
lines. False accepts are a share of the absent elements (gold says no), false rejects of the present.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voirdire.document import Block, Cell, Column, Kind, Table, cell, display, display_edge
from voirdire.errors import UndefinedWarning
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Key
from voirdire.line_errors import LineErrors, counted_errors
from voirdire.scene import Scene
from voirdire.stats._checklist import KINDS
from voirdire.stats._checklist_figures import position_figures, worst_lines_figures
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Statistic
from voirdire.tally import Tally
from voirdire.wording import Name, Text, listed, say

__all__ = ["false_accept_rate", "false_reject_rate"]

FEWEST_CLUSTERS = 3  # below which a line alone has no interval, as in :mod:`voirdire.inference`
MOST_LINES = 2000  # lines with rows of their own in the results; of more, the worst
MOST_CELLS = 1 << 21  # of one tally with all positions side by side
MOST_SHOWN = 10  # lines in the report's table of worst lines
MOST_QUESTIONS = 5  # of a judge, in its table of questions with the most errors
MOST_POSITIONS = 120  # rows in its table of positions
WORST_OF = 20  # the worst 5 % of lines: one in so many

SECTION = "Where the judge errs"
PAPER = "“Three Ways Classical Test Theory Can Mislead About LLM Judges”"
NO_PAIR = "gold and the judge share no verdict there"
NONE_ABSENT = "there is no absent element: gold says yes to every verdict"
NONE_PRESENT = "there is no present element: gold says no to every verdict"
TOO_FEW = f"fewer than {FEWEST_CLUSTERS} clusters"

ELEMENT_ERROR = Estimand(
    name="element_error",
    title="Element error",
    question="On which share of the verdicts that both gave does the judge differ from gold?",
    describes=Describes.BOTH,
    keys=("grader", "line"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "gold"),
    low=0,
    high=1,
    reading="It mixes two errors that a gate feels in opposite directions: see them apart.",
    moves_with=("how many elements are absent in the bank", "how hard the lines are"),
    undefined_when=NO_PAIR,
    source=Source(text=f"{PAPER}, Section 2 and Table A.3"),
    formula=r"\frac{\#\{(i, j) \mid X_{ij} \ne G_{ij}\}}{\#\{(i, j)\}}",
    conventions=(
        "X_ij, G_ij: the verdicts of the judge and of gold on line j of response i, 1 for yes; "
        "pairs with one missing are left out, whatever the other lines of the response. By line it "
        "is over that line’s pairs; “position:j” pools the j-th lines of all questions."
    ),
)
FALSE_ACCEPT = Estimand(
    name="false_accept",
    title="False accepts",
    question="Which share of the absent elements does the judge mark as met?",
    describes=Describes.BOTH,
    keys=("grader", "line"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "gold"),
    low=0,
    high=1,
    moves_with=("how hard the absent elements are to tell from present ones",),
    undefined_when=NONE_ABSENT,
    source=Source(text=f"{PAPER}, Section 2 and Table A.9"),
    formula=r"\frac{\#\{(i, j) \mid X_{ij} = 1,\ G_{ij} = 0\}}{\#\{(i, j) \mid G_{ij} = 0\}}",
    conventions=(
        "X_ij, G_ij: the verdicts of the judge and of gold on line j of response i, 1 for yes; "
        "pairs with one missing are left out, whatever the other lines of the response. The "
        "denominator is gold’s no, not the judge’s yes."
    ),
)
FALSE_REJECT = Estimand(
    name="false_reject",
    title="False rejects",
    question="Which share of the present elements does the judge mark as not met?",
    describes=Describes.BOTH,
    keys=("grader", "line"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "gold"),
    low=0,
    high=1,
    moves_with=("how plainly responses state what the lines ask",),
    undefined_when=NONE_PRESENT,
    source=Source(text=f"{PAPER}, Section 2 and Table A.9"),
    formula=r"\frac{\#\{(i, j) \mid X_{ij} = 0,\ G_{ij} = 1\}}{\#\{(i, j) \mid G_{ij} = 1\}}",
    conventions=(
        "X_ij, G_ij: the verdicts of the judge and of gold on line j of response i, 1 for yes; "
        "pairs with one missing are left out, whatever the other lines of the response. The "
        "denominator is gold’s yes, not the judge’s no."
    ),
)
UNPARSED_WRONG = Estimand(
    name="element_error_unparsed_wrong",
    title="Element error, unread as errors",
    question=(
        "What would the element error be if every verdict that could not be read were an error?"
    ),
    describes=Describes.BOTH,
    keys=("grader",),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "gold"),
    low=0,
    high=1,
    reading="The upper bound of the element error over all verdicts that were asked for.",
    moves_with=("how many outputs could not be read",),
    undefined_when="gold gave no verdict that the judge was asked for",
    source=Source(text=f"{PAPER}, Appendix A.1"),
    formula=r"\frac{\#\{(i, j) \mid X_{ij} \ne G_{ij}\} + U}{\#\{(i, j)\} + U}",
    conventions=(
        "X_ij, G_ij: the verdicts of the judge and of gold on line j of response i, 1 for yes; "
        "pairs with one missing are left out, whatever the other lines of the response. U: gold’s "
        "verdicts in calls of the judge that could not be read, on lines without a verdict of the "
        "judge. Lines that nobody is known to have asked are in neither part."
    ),
)
WORST_LINES = Estimand(
    name="worst_lines_share",
    title="Errors on the worst lines",
    question="Which share of the judge’s errors falls on the worst 5 % of the lines?",
    describes=Describes.BOTH,
    keys=("grader",),
    unit=Unit.SHARE,
    scale=Scale.NONE,  # the lines are picked by their errors: an interval would not cover
    needs=("label", "gold"),
    low=0,
    high=1,
    reading=(
        "The lines with the most errors, one in 20 rounded down and at least one, among those with a "
        "verdict of both: below 20 lines one line is more than 5 %. The lines are picked by their "
        "errors, so the share is above 5 % even where all lines are alike."
    ),
    moves_with=("how many lines the checklist has", "how many verdicts each line has"),
    undefined_when="the judge made no error",
    source=Source(text=f"{PAPER}, Appendix A.2"),
    formula=(
        r"\frac{\sum_{l \in W} E_{l}}{\sum_{l} E_{l}}, \quad \# W = \max\left(1, \left\lfloor "
        r"\frac{L}{20} \right\rfloor\right)"
    ),
    conventions=(
        "E_l: the judge’s errors on line l; W: the lines with the most of them, of the L lines "
        "with a verdict of both. A frequency weight counts as so many verdicts; a design weight "
        "changes no count."
    ),
)


# --- plain functions ----------------------------------------------------------------------------


def false_accept_rate(gold: Any, verdict: Any) -> float:
    """The share of absent elements that the judge marks as met, in 0–1.

    ``gold`` and ``verdict`` are 0/1 arrays of one shape, whichever it is; nan or None is a missing
    verdict, and its pair is left out. nan with an ``UndefinedWarning`` where no element is absent.
    Raises ``ValueError`` for other values and for two shapes.

    >>> false_accept_rate([0, 0, 0, 1], [0, 1, None, 1])
    0.5
    """
    true, said = _pairs(gold, verdict)
    return _rate(said[true == 0] == 1, NONE_ABSENT)


def false_reject_rate(gold: Any, verdict: Any) -> float:
    """The share of present elements that the judge marks as not met, in 0–1.

    Arguments as for :func:`false_accept_rate`. nan with an ``UndefinedWarning`` where no element is
    present.

    >>> false_reject_rate([[1, 1], [1, 1]], [[1, 0], [1, 1]])
    0.25
    """
    true, said = _pairs(gold, verdict)
    return _rate(said[true == 1] == 0, NONE_PRESENT)


def _pairs(gold: Any, verdict: Any) -> tuple[Array, Array]:
    true, said = (np.asarray(a, dtype=np.float64) for a in (gold, verdict))
    if true.shape != said.shape:
        raise ValueError(f"gold has the shape {true.shape} and the verdicts {said.shape}")
    for name, values in (("gold", true), ("verdict", said)):
        if not (np.isnan(values) | (values == 0) | (values == 1)).all():
            raise ValueError(f"{name} holds values other than 0, 1 and nan")
    both = ~np.isnan(true) & ~np.isnan(said)
    return true[both], said[both]


def _rate(events: Array, why: str) -> float:
    if not events.size:
        warnings.warn(why, UndefinedWarning, stacklevel=3)
        return float("nan")
    return float(events.mean())


# --- cells --------------------------------------------------------------------------------------
# Tables of gold × verdict, flattened after the number of responses. ``given["times"]`` is how many
# keys each table answers: where one checklist serves all, a position is also a line.

Pair = tuple[Array, Array]
Of = Callable[[Array], Pair]


def _tables(cells: Array) -> Array:
    return cells[..., 1:].reshape(*cells.shape[:-1], -1, 2, 2)


def _errors(table: Array) -> Pair:
    return table[..., 0, 1] + table[..., 1, 0], table.sum((-2, -1))


def _accepts(table: Array) -> Pair:
    return table[..., 0, 1], table[..., 0, :].sum(-1)


def _rejects(table: Array) -> Pair:
    return table[..., 1, 0], table[..., 1, :].sum(-1)


def _share_of(estimand: Estimand, of: Of) -> Statistic:
    def share(cells: Array, given: Given) -> Pair:
        events, trials = of(_tables(cells))
        times = given["times"]
        return np.repeat(events, times, axis=-1), np.repeat(trials, times, axis=-1)

    def solve(cells: Array, given: Given) -> Array:
        events, trials = share(cells, given)
        return np.asarray(events / trials)

    def n(cells: Array, given: Given) -> Array:
        return share(given.get("sizes", cells), given)[1]

    def reason(cells: Array, given: Given) -> list[str]:
        # Without any pair nothing is known of what gold says there.
        pairs = np.repeat(_tables(cells).sum((-2, -1)), given["times"], axis=-1)
        return [NO_PAIR if not p else estimand.undefined_when for p in pairs.ravel()]

    return Statistic(estimand=estimand, solve=solve, n=n, share=share, reason=reason)


def _unparsed(cells: Array, given: Given) -> Pair:
    # [responses, right, wrong, not read]
    return cells[..., 2:].sum(-1, keepdims=True), cells[..., 1:].sum(-1, keepdims=True)


def _ratio(cells: Array, given: Given) -> Array:
    return np.asarray(cells[..., :1] / cells[..., 1:])


S_ERROR = _share_of(ELEMENT_ERROR, _errors)
S_ACCEPT = _share_of(FALSE_ACCEPT, _accepts)
S_REJECT = _share_of(FALSE_REJECT, _rejects)
RATES = (S_ERROR, S_ACCEPT, S_REJECT)
S_UNPARSED = Statistic(
    estimand=UNPARSED_WRONG,
    solve=lambda cells, given: np.asarray(np.divide(*_unparsed(cells, given))),
    n=lambda cells, given: _unparsed(cells, given)[1],
    share=_unparsed,
)
S_WORST = Statistic(
    estimand=WORST_LINES,
    solve=_ratio,
    n=lambda cells, given: np.asarray(cells[..., 1:]),
    unweighted=True,
)


# --- the judge beside gold ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beside:
    """A judge’s verdicts beside gold’s.

    ``code`` is ``(responses, positions)`` int8: 2 × gold + verdict, −1 where either is missing;
    ``rows`` are the responses with a pair, ``clusters`` how many clusters those lie in.
    """

    grader: str
    code: Array
    rows: Array
    clusters: int


def _beside(scene: Scene, grader: str) -> _Beside:
    bank = scene.bank
    assert bank is not None
    true, said = bank.of(scene.gold), bank.of(grader)
    code = np.where((true >= 0) & (said >= 0), 2 * true + said, -1).astype(np.int8)
    rows = np.flatnonzero((code >= 0).any(axis=1))
    return _Beside(grader=grader, code=code, rows=rows, clusters=clusters_of(scene, rows))


def clusters_of(scene: Scene, rows: Array) -> int:
    """How many clusters these responses lie in."""
    bank = scene.bank
    assert bank is not None
    if bank.frequency and bank.own_cluster and bank.weights is not None:
        return int(np.rint(bank.weights[rows]).sum())
    return int(_there(scene, rows).sum())


def _there(scene: Scene, rows: Array) -> Array:
    """Which clusters these responses lie in, as a mask over cluster codes."""
    bank = scene.bank
    assert bank is not None
    there = np.zeros(int(bank.cluster.max(initial=-1)) + 1, dtype=np.bool_)
    there[bank.cluster[rows]] = True
    return there


def parts(scene: Scene) -> Iterable[Part]:
    if not scene.gold:
        return
    bank = scene.bank
    assert bank is not None
    for grader in scene.panel:
        pair = _beside(scene, grader)
        yield _overall(scene, pair)
        yield _bound(scene, grader)
        yield _concentration(scene, pair)
        yield from _positions(scene, pair)
        if bank.own:
            yield from _lines(scene, pair)


def _asks(keys: Sequence[Key]) -> tuple[tuple[Statistic, tuple[Key, ...]], ...]:
    return tuple((s, tuple(keys)) for s in RATES)


def _overall(scene: Scene, pair: _Beside) -> Part:
    def cells(rows: Array) -> Array:
        code = pair.code[rows]
        counts = np.stack([(code == c).sum(axis=1) for c in range(4)], axis=1)
        return np.concatenate([np.ones((len(rows), 1), dtype=counts.dtype), counts], axis=1)

    return Part(
        tally=scene.summed(pair.rows, cells, (5,)),
        asks=_asks([Key(grader=pair.grader)]),
        given={"times": 1},
    )


def _bound(scene: Scene, grader: str) -> Part:
    """The upper bound: verdicts that the judge was asked for in vain are errors."""
    bank = scene.bank
    assert bank is not None
    true, said = bank.of(scene.gold), bank.of(grader)
    unread = bank.unread[:, bank.places[grader]]
    asked = (true >= 0) & ((said >= 0) | unread[:, None])

    def cells(rows: Array) -> Array:
        here, t, s = asked[rows], true[rows], said[rows]
        read = here & (s >= 0)
        made = [read & (s == t), read & (s != t), here & (s < 0)]
        counts = np.stack([m.sum(axis=1) for m in made], axis=1)
        return np.concatenate([np.ones((len(rows), 1), dtype=counts.dtype), counts], axis=1)

    return Part(
        tally=scene.summed(np.flatnonzero(asked.any(axis=1)), cells, (4,)),
        asks=((S_UNPARSED, (Key(grader=grader),)),),
    )


def _concentration(scene: Scene, pair: _Beside) -> Part:
    counted = counted_errors(scene, pair.grader)
    most = worst_count(len(counted.lines))
    worst = int(np.sort(counted.errors)[::-1][:most].sum())
    return Part(
        tally=None,
        totals=np.array([worst, counted.total], dtype=np.float64),
        asks=((S_WORST, (Key(grader=pair.grader),)),),
        clusters=(pair.clusters,),
    )


def worst_count(lines: int) -> int:
    """How many lines are the worst 5 % of so many: one in 20 rounded down, and at least one."""
    return max(1, lines // WORST_OF)


def _positions(scene: Scene, pair: _Beside) -> Iterable[Part]:
    """Rates by position; where one checklist serves all, the same are the rates of its lines.

    Positions that lie in the same clusters share a tally, as long as it stays small: in many clusters
    the few distinct rows of a position alone are the leaner ones.
    """
    bank = scene.bank
    assert bank is not None
    everywhere = _there(scene, pair.rows)
    together: list[int] = []
    alone: list[int] = []
    for j in range(pair.code.shape[1]):
        there = _there(scene, np.flatnonzero(pair.code[:, j] >= 0))
        if there.any():
            (together if np.array_equal(there, everywhere) else alone).append(j)
    if pair.clusters * 4 * len(together) > MOST_CELLS:
        together, alone = [], sorted(together + alone)
    if together:
        chosen = pair.code[:, together]

        def cells(rows: Array) -> Array:
            tables = chosen[rows][:, :, None] == np.arange(4, dtype=np.int8)
            flat = tables.reshape(len(rows), -1).view(np.int8)
            return np.concatenate([np.ones((len(rows), 1), dtype=np.int8), flat], axis=1)

        yield Part(
            tally=scene.summed(pair.rows, cells, (1 + 4 * len(together),)),
            asks=_asks([k for j in together for k in _keys(scene, pair.grader, j)]),
            given={"times": 1 if bank.own else 2},
        )
    for j in alone:
        rows = np.flatnonzero(pair.code[:, j] >= 0)
        yield Part(
            tally=_one_table(scene, rows, pair.code[rows, j]),
            asks=_asks(_keys(scene, pair.grader, j)),
            given={"times": 1 if bank.own else 2},
        )


def _keys(scene: Scene, grader: str, position: int) -> list[Key]:
    assert scene.bank is not None
    at = Key(grader=grader, line=f"position:{position + 1}")
    if scene.bank.own:
        return [at]
    return [Key(grader=grader, line=scene.bank.lines[position]), at]


def _one_table(scene: Scene, rows: Array, code: Array) -> Tally:
    tally = scene.counted(rows, code.astype(np.int64), (4,))
    return tally.mapped(lambda r: np.concatenate([r.sum(axis=-1, keepdims=True), r], axis=-1))


def _lines(scene: Scene, pair: _Beside) -> Iterable[Part]:
    """Rates of the lines of each question’s own checklist.

    A line that lies in fewer than three clusters has no interval; such lines are solved all at once.
    """
    bank = scene.bank
    assert bank is not None
    row, position = np.nonzero(pair.code >= 0)
    line, code = bank.line[row, position].astype(np.int64), pair.code[row, position]
    size = 4 * len(bank.lines)
    sizes = np.bincount(4 * line + code, minlength=size).reshape(-1, 2, 2)
    totals = sizes
    if bank.weights is not None:
        # Sums of fractions depend on their order, so it is made one that no row order shows in.
        weight = bank.weights[row]
        order = np.lexsort((weight, 4 * line + code))
        totals = np.bincount((4 * line + code)[order], weight[order], size).reshape(-1, 2, 2)
        sizes = np.rint(totals).astype(np.int64) if bank.frequency else sizes
    pairs = np.unique(line * (int(bank.cluster.max(initial=0)) + 1) + bank.cluster[row])
    clusters = np.bincount(
        pairs // (int(bank.cluster.max(initial=0)) + 1), minlength=len(bank.lines)
    )
    if bank.frequency and bank.own_cluster:
        clusters = sizes.sum((-2, -1))  # a response that stands for so many is so many clusters
    chosen = _listed(bank.lines, sizes)
    few = chosen[clusters[chosen] < FEWEST_CLUSTERS]
    if len(few):
        yield Part(
            tally=None,
            totals=_flat(totals[few]),
            asks=_asks([Key(grader=pair.grader, line=bank.lines[i]) for i in few]),
            given={"times": 1, "sizes": _flat(sizes[few])},
            no_interval=TOO_FEW,
            clusters=clusters[few].tolist(),
        )
    many = chosen[clusters[chosen] >= FEWEST_CLUSTERS]
    if not len(many):
        return
    order = np.argsort(line, kind="stable")
    starts = np.searchsorted(line[order], np.arange(len(bank.lines) + 1))
    for i in many:
        at = order[starts[i] : starts[i + 1]]
        yield Part(
            tally=_one_table(scene, row[at], code[at]),
            asks=_asks([Key(grader=pair.grader, line=bank.lines[i])]),
            given={"times": 1},
        )


def _flat(tables: Array) -> Array:
    """Tables of lines as the cells of one part; the number of responses is not asked for."""
    return np.concatenate([[0.0], tables.reshape(-1).astype(np.float64)])


def _listed(names: Sequence[str], sizes: Array) -> Array:
    """The lines that get rows: those with a verdict of both, of too many the worst."""
    scored = np.flatnonzero(sizes.sum((-2, -1)) > 0)
    if len(scored) <= MOST_LINES:
        return scored
    errors = (sizes[:, 0, 1] + sizes[:, 1, 0])[scored]
    order = np.lexsort((np.array(names)[scored], -errors))
    return np.asarray(scored[order[:MOST_LINES]])


# --- how errors concentrate ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ErringLine:
    """A line with the judge’s errors on it, as counts of verdicts.

    ``question`` is empty where one checklist serves all; ``position`` counts from 1; ``text`` is what
    the line asks, empty where the file does not tell.
    """

    line: str
    text: str
    question: str
    position: int
    false_accepts: int
    false_rejects: int
    gold_absent: int
    gold_present: int

    @property
    def errors(self) -> int:
        return self.false_accepts + self.false_rejects


@dataclass(frozen=True, slots=True, kw_only=True)
class ErringQuestion:
    """A question with the judge’s errors on its lines."""

    question: str
    errors: int
    verdicts: int


def worst_lines(scene: Scene, grader: str, most: int | None = None) -> list[ErringLine]:
    """Lines by the judge’s errors on them, most first, then by name; those with a verdict of both."""
    bank = scene.bank
    assert bank is not None
    counted = counted_errors(scene, grader)
    codes = {name: i for i, name in enumerate(bank.lines)}
    question, position = _placed(scene)
    made = []
    for place in counted.worst(len(counted.lines) if most is None else most):
        name = counted.lines[place]
        code = codes[name]
        made.append(
            ErringLine(
                line=name,
                text=bank.texts.get(name, ""),
                question=bank.questions[question[code]],
                position=int(position[code]) + 1,
                false_accepts=int(counted.accepted[place]),
                false_rejects=int(counted.rejected[place]),
                gold_absent=int(counted.absent[place]),
                gold_present=int(counted.verdicts[place] - counted.absent[place]),
            )
        )
    return made


def errors_by_question(scene: Scene, grader: str) -> list[ErringQuestion]:
    """Questions by the judge’s errors on their lines, most first, then by name.

    Where one checklist serves all there is one, without a name.
    """
    bank = scene.bank
    assert bank is not None
    counted = counted_errors(scene, grader)
    codes = {name: i for i, name in enumerate(bank.lines)}
    question = _placed(scene)[0][[codes[name] for name in counted.lines]].astype(np.int64)
    errors = np.bincount(question, counted.errors, len(bank.questions))
    verdicts = np.bincount(question, counted.verdicts, len(bank.questions))
    made = [
        ErringQuestion(question=bank.questions[i], errors=int(errors[i]), verdicts=int(verdicts[i]))
        for i in np.flatnonzero(verdicts)
    ]
    return sorted(made, key=lambda q: (-q.errors, q.question))


def _placed(scene: Scene) -> tuple[Array, Array]:
    """The question and the position of each line that a response has."""
    bank = scene.bank
    assert bank is not None
    question = np.zeros(len(bank.lines), dtype=np.int64)
    position = np.zeros(len(bank.lines), dtype=np.int64)
    row, at = np.nonzero(bank.line >= 0)
    question[bank.line[row, at]] = bank.question[row]
    position[bank.line[row, at]] = at
    return question, position


# --- the report ---------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    if not scene.gold or not scene.panel:
        return ()
    counted = {g: counted_errors(scene, g) for g in scene.panel}
    made: list[Block] = [_rates_table(scene, estimates)]
    if any(c.total for c in counted.values()):
        made += [_concentration_table(scene, estimates, counted), _worst_table(scene, counted)]
        made += _questions_table(scene)
    made += _positions_table(scene, estimates)
    return [*made, *position_figures(scene, estimates), *worst_lines_figures(scene, estimates)]


def _at_edge(estimate: Estimate | None) -> Estimate | None:
    """The estimate with the interval for rare events where it has one beside percentiles."""
    if estimate is None or estimate.edge is None:
        return estimate
    return replace(estimate, interval=estimate.edge)


def _with_agreement(rates: Sequence[Estimate | None]) -> tuple[Cell, ...]:
    """The cells of the three rates, with 1 − element error and its interval after the first."""
    error, *rest = (cell(e) for e in rates)
    agreement = error
    if isinstance(error.value, float):
        agreement = replace(
            error,
            value=1 - error.value,
            low=None if error.high is None else 1 - error.high,
            high=None if error.low is None else 1 - error.low,
        )
    return (error, agreement, *rest)


AGREEMENT_COLUMN = Column(
    title="agreement", kind=Kind.SHARE, help="of verdicts with gold: 1 − element error"
)
RATE_COLUMNS = (
    Column(title="element error", kind=Kind.SHARE),
    Column(title="false accepts", kind=Kind.SHARE, help="of the absent elements"),
    Column(title="false rejects", kind=Kind.SHARE, help="of the present elements"),
)


def _rates_table(scene: Scene, estimates: Estimates) -> Table:
    rows = []
    for grader in scene.panel:
        key = {"grader": grader, "slice": scene.slice}
        found = [estimates.get(s.name, line="", **key) for s in RATES]
        rows.append(
            (
                cell(Name(grader)),
                *_with_agreement(found),
                cell(estimates.get("element_error_unparsed_wrong", **key)),
                *(cell(e.n if e is not None else None, Kind.COUNT) for e in found),
            )
        )
    return Table(
        title="Errors of verdicts against gold",
        columns=(
            Column(title="judge", kind=Kind.NAME),
            *RATE_COLUMNS[:1],
            AGREEMENT_COLUMN,
            *RATE_COLUMNS[1:],
            Column(
                title="error, unread as errors",
                kind=Kind.SHARE,
                help="over all verdicts that the judge was asked for",
            ),
            Column(title="verdicts", kind=Kind.COUNT),
            Column(title="absent", kind=Kind.COUNT),
            Column(title="present", kind=Kind.COUNT),
        ),
        rows=tuple(rows),
        note=(
            "Verdicts that both gave. False accepts are a share of the absent elements, false rejects "
            "of the present ones. Agreement is 1 less the element error.",
            *_rare(scene, estimates),
        ),
    )


def _rare(scene: Scene, estimates: Estimates) -> Text:
    """The edge intervals of rates that the bootstrap gave percentiles."""
    said: Text = ()
    for grader in scene.panel:
        for statistic in RATES:
            one = estimates.get(statistic.name, grader=grader, line="", slice=scene.slice)
            if one is None or one.edge is None:
                continue
            said += say(
                "{mark}{title} of {grader}, {value}, have {edge}",
                mark="; " if said else " Where events are rare percentiles are too short: ",
                title=statistic.estimand.title.lower(),
                grader=Name(grader),
                value=display(cell(one)),
                edge=display_edge(one),
            )
    return (*said, ".") if said else ()


def _concentration_table(
    scene: Scene, estimates: Estimates, counted: Mapping[str, LineErrors]
) -> Table:
    assert scene.bank is not None
    own = scene.bank.own
    rows = []
    for grader, errors in counted.items():
        by_line = np.sort(errors.errors)[::-1]
        cells = [
            cell(Name(grader)),
            cell(errors.total, Kind.COUNT),
            cell(f"{int((by_line > 0).sum()):,} of {len(by_line):,}"),
            cell(int(by_line[:5].sum()), Kind.COUNT),
            cell(estimates.get("worst_lines_share", grader=grader, slice=scene.slice)),
        ]
        if own:
            questions = errors_by_question(scene, grader)
            cells += [
                cell(f"{sum(q.errors > 0 for q in questions):,} of {len(questions):,}"),
                cell(sum(q.errors for q in questions[:3]), Kind.COUNT),
            ]
        rows.append(tuple(cells))
    columns = [
        Column(title="judge", kind=Kind.NAME),
        Column(title="errors", kind=Kind.COUNT),
        Column(title="lines with one"),
        Column(title="on the worst five lines", kind=Kind.COUNT),
        Column(title="on the worst 5 % of lines", kind=Kind.SHARE),
    ]
    if own:
        columns += [
            Column(title="questions with one"),
            Column(title="on the worst three questions", kind=Kind.COUNT),
        ]
    fewest = min(len(c.lines) for c in counted.values())
    note = (
        "The worst lines are picked by their errors; the worst 5 % are one line in 20, rounded down"
    )
    note += ", at least one." if fewest < WORST_OF else "."
    return Table(
        title="How the errors concentrate", columns=tuple(columns), rows=tuple(rows), note=(note,)
    )


def _worst_table(scene: Scene, counted: Mapping[str, LineErrors]) -> Table:
    assert scene.bank is not None
    texts = bool(scene.bank.texts)
    rows = []
    for grader in counted:
        for one in worst_lines(scene, grader, MOST_SHOWN):
            if one.errors:
                rows.append(
                    (
                        cell(Name(grader)),
                        cell(Name(one.line)),
                        *((cell((Name(one.text),) if one.text else "–"),) if texts else ()),
                        *(
                            replace(
                                shown,
                                statistic=statistic.estimand.name,
                                key=Key(grader=grader, line=one.line, slice=scene.slice),
                            )
                            for statistic, shown in (
                                (S_ERROR, cell(one.errors, Kind.COUNT)),
                                (S_ACCEPT, cell(f"{one.false_accepts} of {one.gold_absent}")),
                                (S_REJECT, cell(f"{one.false_rejects} of {one.gold_present}")),
                            )
                        ),
                    )
                )
    note: Text = (f"At most {MOST_SHOWN} lines of a judge, by errors, then by name.",)
    lines = max(len(c.lines) for c in counted.values())
    if scene.bank.own and lines > MOST_LINES:
        note = (
            *note,
            f" Of the {lines:,} lines only the {MOST_LINES:,} with the most errors have rows in the "
            "results.",
        )
    return Table(
        title="The worst lines",
        columns=(
            Column(title="judge", kind=Kind.NAME),
            Column(title="line", kind=Kind.NAME),
            *((Column(title="what it asks"),) if texts else ()),
            Column(title="errors", kind=Kind.COUNT),
            Column(title="accepted of absent"),
            Column(title="rejected of present"),
        ),
        rows=tuple(rows),
        note=note,
    )


def _questions_table(scene: Scene) -> list[Block]:
    """The questions with the most errors on their lines, where each has lines of its own."""
    assert scene.bank is not None
    if not scene.bank.own:
        return []
    rows = [
        (
            cell(Name(grader)),
            cell(Name(one.question)),
            cell(one.errors, Kind.COUNT),
            cell(one.verdicts, Kind.COUNT),
        )
        for grader in scene.panel
        for one in errors_by_question(scene, grader)[:MOST_QUESTIONS]
        if one.errors
    ]
    return [
        Table(
            title="Questions with the most errors",
            columns=(
                Column(title="judge", kind=Kind.NAME),
                Column(title="question", kind=Kind.NAME),
                Column(title="errors", kind=Kind.COUNT),
                Column(title="verdicts", kind=Kind.COUNT),
            ),
            rows=tuple(rows),
            note=(f"At most {MOST_QUESTIONS} questions of a judge, by errors, then by name.",),
        )
    ]


def _counts(scene: Scene, grader: str) -> dict[str, tuple[Cell, Cell]]:
    """Of each line false accepts of the absent elements and false rejects of the present, as counts."""
    found = counted_errors(scene, grader)
    return {
        line: (
            cell(f"{found.accepted[i]:,} of {found.absent[i]:,}"),
            cell(f"{found.rejected[i]:,} of {found.verdicts[i] - found.absent[i]:,}"),
        )
        for i, line in enumerate(found.lines)
    }


def _positions_table(scene: Scene, estimates: Estimates) -> list[Block]:
    bank = scene.bank
    assert bank is not None
    width = bank.line.shape[1]
    judges = scene.panel[: max(1, MOST_POSITIONS // width)]
    if width > MOST_POSITIONS:
        return []
    rows, rare = [], False
    for grader in judges:
        counts = {} if bank.own else _counts(scene, grader)
        for j in range(width):
            at = {"grader": grader, "line": f"position:{j + 1}", "slice": scene.slice}
            found = [estimates.get(s.name, **at) for s in RATES]
            if found[0] is None:
                continue
            rare = rare or any(e is not None and e.edge is not None for e in found)
            edged, line = [_at_edge(e) for e in found], bank.lines[j]
            rows.append(
                (
                    cell(Name(grader)),
                    cell(str(j + 1)) if bank.own else cell(Name(line)),
                    *(counts.get(line, (cell("–"), cell("–"))) if not bank.own else ()),
                    *(map(cell, edged) if bank.own else _with_agreement(edged)),
                )
            )
    if not rows:
        return []
    note: Text = ()
    if rare:
        note = (
            "Where fewer than five clusters have an error, or a right verdict, the interval is the one "
            "for rare events (Korn–Graubard); the results have the percentiles. ",
        )
    if bank.own:
        note = (
            *note,
            "Each question has its own checklist: a position pools one line of every question.",
        )
    if len(judges) < len(scene.panel):
        left = scene.panel[len(judges) :]
        note = (*note, *say(" Only in the results: {left}.", left=listed(left)))
    return [
        Table(
            title="Errors by position" if bank.own else "Errors by line",
            columns=(
                Column(title="judge", kind=Kind.NAME),
                Column(title="position") if bank.own else Column(title="line", kind=Kind.NAME),
                *(
                    ()
                    if bank.own
                    else (Column(title="accepted of absent"), Column(title="rejected of present"))
                ),
                *(
                    RATE_COLUMNS
                    if bank.own
                    else (RATE_COLUMNS[0], AGREEMENT_COLUMN, *RATE_COLUMNS[1:])
                ),
            ),
            rows=tuple(rows),
            note=note,
        )
    ]


FAMILY = Family(
    name="element_error",
    statistics=(*RATES, S_UNPARSED, S_WORST),
    parts=parts,
    section=SECTION,
    order=20,
    kinds=KINDS,
    blocks=blocks,
)
