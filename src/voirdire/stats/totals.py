"""Totals of a checklist: how many lines the responses meet, by the judge and by gold.

Mean, spread and the ends of the totals describe the bank as a grader sees it. How far the judge's
totals lie above gold's (leniency), and how far they go together with them, describe the judge on this
bank. Only responses with a verdict on every line have a total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from voirdire.document import Block, Column, Kind, Table, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.sides import Sides, sides
from voirdire.stats._checklist import KINDS, asks, beside_gold, responses
from voirdire.stats._checklist_figures import scatter_figures, totals_figures
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic
from voirdire.stats.kuder_richardson import TWM, compared
from voirdire.tally import Tally
from voirdire.wording import Name

NONE_SCORED = "no response has verdicts on all its lines"
ONE_RESPONSE = "there is one response only: a spread needs two"
CONSTANT = "the totals of one side are all the same, or fewer than two responses have both"

_EACH = 4  # cells a side: totals, squared totals, totals of 0, totals at the ceiling


TOTALS = "X_i: how many lines of response i are met; n: the responses with a verdict on every line"


def _totals(
    name: str,
    title: str,
    question: str,
    scale: Scale,
    unit: Unit,
    why: str,
    *,
    formula: str,
    conventions: str = "",
) -> Estimand:
    return Estimand(
        name=name,
        title=title,
        question=question,
        describes=Describes.BANK,
        keys=("grader",),
        unit=unit,
        scale=scale,
        low=0,
        reading="In lines. Responses without a verdict on every line have no total.",
        moves_with=("the responses in the bank", "the number of lines"),
        undefined_when=why,
        source=Source(text=f"{TWM}, Section 2 and Appendix A.2"),
        formula=formula,
        conventions=f"{TOTALS}. {conventions}".strip(),
    )


MEAN = _totals(
    "total_mean",
    "Mean total",
    "How many lines does a response meet on average?",
    Scale.PLAIN,
    Unit.COEFFICIENT,
    NONE_SCORED,
    formula=r"\bar{X} = \frac{1}{n} \sum_{i} X_{i}",
)
SD = _totals(
    "total_sd",
    "SD of totals",
    "How far do the responses differ in how many lines they meet (with n − 1)?",
    Scale.LOG,
    Unit.COEFFICIENT,
    "fewer than two responses have verdicts on all their lines",
    formula=r"s_{X} = \sqrt{\frac{1}{n - 1} \sum_{i} (X_{i} - \bar{X})^{2}}",
    conventions="Divisor n − 1.",
)
AT_ZERO = _totals(
    "total_at_zero",
    "Totals of 0",
    "How many responses meet no line?",
    Scale.NONE,
    Unit.COUNT,
    NONE_SCORED,
    formula=r"\#\{i \mid X_{i} = 0\}",
    conventions="A design weight changes no count.",
)
AT_CEILING = _totals(
    "total_at_ceiling",
    "Totals at the ceiling",
    "How many responses meet every line of their checklist?",
    Scale.NONE,
    Unit.COUNT,
    NONE_SCORED,
    formula=r"\#\{i \mid X_{i} = K_{i}\}",
    conventions="K_i: the lines of the response’s own checklist. A design weight changes no count.",
)
LENIENCY = Estimand(
    name="leniency",
    title="Leniency",
    question="By how many lines are the judge's totals above gold's on average?",
    describes=Describes.BOTH,
    keys=("grader",),
    unit=Unit.COEFFICIENT,
    scale=Scale.PLAIN,
    needs=("label", "gold"),
    reading="Above 0: the judge grants more lines than gold. Errors both ways can cancel out.",
    moves_with=("how many lines the responses meet", "the number of lines"),
    undefined_when="no response has all verdicts of both",
    source=Source(text=f"{TWM}, Section 2 and Table A.9"),
    formula=r"\frac{1}{n} \sum_{i} (X_{i} - G_{i})",
    conventions=(
        "X_i, G_i: how many lines of response i the judge and gold say are met, on the n responses "
        "that both scored in full."
    ),
)
CORRELATION = Estimand(
    name="total_correlation",
    title="Correlation of totals",
    question="How far do the judge's totals go together with gold's?",
    describes=Describes.BOTH,
    keys=("grader",),
    unit=Unit.COEFFICIENT,
    scale=Scale.FISHER_Z,
    needs=("label", "gold"),
    low=-1,
    high=1,
    reading=(
        "Pearson's. It does not see leniency, and it rises with the spread of the bank at one error "
        "rate."
    ),
    moves_with=("how far the responses differ in quality",),
    undefined_when=CONSTANT,
    source=Source(text=f"{TWM}, Section 2"),
    formula=(
        r"r = \frac{\sum_{i} (X_{i} - \bar{X}) (G_{i} - \bar{G})}{\sqrt{\sum_{i} (X_{i} - "
        r"\bar{X})^{2} \sum_{i} (G_{i} - \bar{G})^{2}}}"
    ),
    conventions=(
        "X_i, G_i: how many lines of response i the judge and gold say are met, on the responses "
        "that both scored in full."
    ),
)


def _cells_of(scene: Scene, names: Sequence[str]) -> Callable[[Array], Array]:
    """Of each response 1, for each side its four cells, and the product of both totals."""
    bank = scene.bank
    assert bank is not None

    def cells_of(rows: Array) -> Array:
        made = np.ones((len(rows), _width(names)), dtype=np.int64)
        for side, name in enumerate(names):
            total = bank.totals[rows, bank.places[name]]
            first = 1 + _EACH * side
            made[:, first] = total
            made[:, first + 1] = total * total
            made[:, first + 2] = total == 0
            made[:, first + 3] = total == bank.length[rows]
            if side:
                made[:, -1] = total * made[:, 1]
        return made

    return cells_of


def _width(names: Sequence[str]) -> int:
    return 1 + _EACH * len(names) + (len(names) == 2)


def _side(cell: int) -> Callable[[Array, Given], Array]:
    """One cell of each side, ``(..., sides)``."""

    def read(cells: Array, given: Given) -> Array:
        return cells[..., 1 + cell : 1 + _EACH * given["sides"] : _EACH]

    return read


def _squares(cells: Array, given: Given) -> Array:
    """Sums of squared totals about their mean, ``(..., sides)``; zero up to rounding is zero."""
    total, squared = _side(0)(cells, given), _side(1)(cells, given)
    about = squared - total**2 / cells[..., :1]
    return np.where(about > 1e-12 * squared, about, np.where(np.isnan(about), np.nan, 0.0))


def _mean(cells: Array, given: Given) -> Array:
    return np.asarray(_side(0)(cells, given) / cells[..., :1])


def _sd(cells: Array, given: Given) -> Array:
    n = cells[..., :1]
    return np.sqrt(_squares(cells, given) / np.where(n > 1, n - 1, np.nan))


def _counted(cell: int) -> Callable[[Array, Given], Array]:
    def solve(cells: Array, given: Given) -> Array:
        found = _side(cell)(cells, given)
        return np.where(cells[..., :1] > 0, found, np.nan)

    return solve


def _leniency(cells: Array, given: Given) -> Array:
    mean = _mean(cells, given)
    return mean[..., :1] - mean[..., 1:]


def _correlation(cells: Array, given: Given) -> Array:
    total, squares = _side(0)(cells, given), _squares(cells, given)
    together = cells[..., -1] - total.prod(-1) / cells[..., 0]
    both = squares.prod(-1)
    found = together / np.sqrt(np.where(both > 0, both, np.nan))
    return np.asarray(np.clip(found, -1, 1)[..., None])


def _few(cells: Array, given: Given) -> list[str]:
    return [NONE_SCORED if not cells[0] > 0 else ONE_RESPONSE] * given["sides"]


def _counts(estimand: Estimand, cell: int) -> tuple[Statistic, Statistic]:
    """A count of responses, which design weights do not change, and judge's less gold's."""
    own, minus = beside_gold(estimand, _counted(cell))
    # A difference of counts has no lower end, as a count has.
    difference = replace(minus.estimand, unit=Unit.COEFFICIENT)
    return replace(own, unweighted=True), replace(minus, unweighted=True, estimand=difference)


S_MEAN = beside_gold(MEAN, _mean)
S_SD = beside_gold(SD, _sd, reason=_few)
S_ZERO = _counts(AT_ZERO, 2)
S_CEILING = _counts(AT_CEILING, 3)
S_LENIENCY = Statistic(estimand=LENIENCY, solve=_leniency, n=responses)
S_CORRELATION = Statistic(estimand=CORRELATION, solve=_correlation, n=responses)
OF_BANK = (S_MEAN, S_SD, S_ZERO, S_CEILING)


def _tally(scene: Scene, of: Sides) -> Tally:
    key = ("totals", of.names, of.keys)
    if key not in scene.memory:
        scene.memory[key] = scene.summed(of.rows, _cells_of(scene, of.names), (_width(of.names),))
    return scene.memory[key]  # type: ignore[no-any-return]


def parts(scene: Scene) -> Iterable[Part]:
    if scene.bank is None:
        return
    for of in sides(scene):
        yield Part(tally=_tally(scene, of), asks=asks(OF_BANK, of), given={"sides": len(of.names)})


def judged(scene: Scene) -> Iterable[Part]:
    """The judge's totals against gold's, on the responses that both scored."""
    if scene.bank is None:
        return
    for of in sides(scene):
        if of.paired:
            key = (of.keys[0],)
            yield Part(
                tally=_tally(scene, of),
                asks=((S_LENIENCY, key), (S_CORRELATION, key)),
                given={"sides": 2},
            )


# --- the report ----------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    made = compared(
        scene,
        estimates,
        [(own.name, (own.estimand.title,), {}) for own, _ in OF_BANK[:2]],
        ("lines met",),
        "Totals",
        "Lines met by a response, over the responses with a verdict on every line.",
    )
    made += compared(
        scene,
        estimates,
        [(own.name, (own.estimand.title,), {}) for own, _ in OF_BANK[2:]],
        ("responses",),
        "Totals at the ends",
        "Responses that meet no line, and every line of their checklist.",
        Kind.COUNT,
    )
    return [*made, *totals_figures(scene, estimates)]


def judged_blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    rows = []
    for grader in scene.panel:
        leniency = estimates.get("leniency", grader=grader, slice=scene.slice)
        if leniency is None:
            continue
        rows.append(
            (
                cell(Name(grader)),
                cell(leniency),
                cell(estimates.get("total_correlation", grader=grader, slice=scene.slice)),
                cell(leniency.n, Kind.COUNT),
            )
        )
    if not rows:
        return []
    return [
        Table(
            title="The judge’s totals against gold’s",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title="leniency, in lines", kind=Kind.COEFFICIENT),
                Column(title="correlation of totals", kind=Kind.COEFFICIENT),
                Column(title="responses", kind=Kind.COUNT),
            ),
            rows=tuple(rows),
            note=(
                "Leniency: mean of the judge’s total less gold’s. The correlation does not see it, and "
                "rises with the spread of the bank.",
            ),
        ),
        *scatter_figures(scene, estimates),
    ]


FAMILY = Family(
    name="totals",
    statistics=tuple(s for pair in OF_BANK for s in pair),
    parts=parts,
    section="What the bank says: coefficients, with the value on gold",
    order=31,
    blocks=blocks,
    kinds=KINDS,
)
JUDGED = Family(
    name="judged_totals",
    statistics=(S_LENIENCY, S_CORRELATION),
    parts=judged,
    section="Where the judge errs",
    order=28,
    blocks=judged_blocks,
    kinds=KINDS,
)
