"""How far a rate moves with the choice of the grader, as ratios and as differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from voirdire.document import Block, Cell, Column, Figure, Kind, Table, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.grid import Grid
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic, with_total
from voirdire.stats.votes import by_wording
from voirdire.tally import Tally
from voirdire.wording import (
    Name,
    Text,
    counted,
    linked,
    listed,
    percent,
    plural,
    points,
    say,
    times,
)

TABLE6 = Source(text='"The Missing Compliance Class", Table 6')
MOST_DOTS = 60  # graders in one figure
VOTE_RULES = ("majority", "first")
NOT_PRINTED = "a count that it needs is not printed"
FEWER_THAN_TWO = "fewer than two graders have a rate above zero"


# A ratio of a higher to a lower rate is never below 1, and rates are never more than 1 apart.
_BOUNDS: dict[Unit, tuple[float, float | None]] = {Unit.RATIO: (1, None), Unit.POINTS: (0, 1)}


RATES = "r_g: the rate of grader g, of the m graders of the panel (gold is in none)"


def _estimand(
    name: str,
    title: str,
    question: str,
    unit: Unit,
    scale: Scale,
    why: str,
    *,
    formula: str,
    conventions: str = "",
) -> Estimand:
    low, high = _BOUNDS.get(unit, (0, None))
    return Estimand(
        name=name,
        title=title,
        question=question,
        describes=Describes.PANEL,
        keys=("class", "other"),
        unit=unit,
        scale=scale,
        low=low,
        high=high,
        reading="It says how much the choice of the grader matters, not which grader is right.",
        moves_with=("which graders are in the panel", "the responses in the bank"),
        undefined_when=why,
        source=TABLE6,
        formula=formula,
        conventions=f"{RATES}. {conventions}".strip(),
    )


def _rates(cells: Array, given: Given) -> Array:
    """Rates of the kept graders, ``(..., graders, rates)``, from ``(..., graders, classes + total)``."""
    cells = cells[..., given["keep"], :]
    return np.stack([r.count(cells) / cells[..., -1] for r in given["rates"]], axis=-1)


def _sorted(cells: Array, given: Given) -> Array:
    """Rates in ascending order along the first axis of two: ``(..., graders, rates)``; nan spoils all."""
    rates = _rates(cells, given)
    spoiled = np.isnan(rates).any(axis=-2, keepdims=True)
    return np.where(spoiled, np.nan, np.sort(rates, axis=-2))


def _positive(cells: Array, given: Given) -> tuple[Array, Array, Array]:
    """Ascending rates, how many are above zero, and whether all are known."""
    ordered = _sorted(cells, given)
    known = ~np.isnan(ordered).any(axis=-2)
    return ordered, np.asarray((ordered > 0).sum(axis=-2)), np.asarray(known)


def _nth_above_zero(ordered: Array, positive: Array, n: int) -> Array:
    """The n-th smallest rate above zero (0: the smallest); nan where there are too few."""
    graders = ordered.shape[-2]
    place = graders - positive + n
    found = np.take_along_axis(ordered, np.minimum(place, graders - 1)[..., None, :], axis=-2)
    return np.where(place < graders, found[..., 0, :], np.nan)


def _max_over_min(cells: Array, given: Given) -> Array:
    ordered, positive, known = _positive(cells, given)
    ratio = ordered[..., -1, :] / _nth_above_zero(ordered, positive, 0)
    return np.where(known & (positive >= 2), ratio, np.nan)


def _leave_one_out(cells: Array, given: Given) -> tuple[Array, Array]:
    """The smallest and largest max/min over panels without one grader.

    Only taking out the highest or the lowest rate above zero changes the ratio; with three or more
    rates above zero, or a grader at zero, some grader can be taken out without changing it.
    """
    ordered, positive, known = _positive(cells, given)
    graders = ordered.shape[-2]
    top = ordered[..., -1, :]
    bottom = _nth_above_zero(ordered, positive, 0)
    second_top = ordered[..., -2, :] if graders > 1 else np.full_like(top, np.nan)
    without_top = np.where(positive >= 3, second_top / bottom, np.nan)
    without_bottom = np.where(positive >= 3, top / _nth_above_zero(ordered, positive, 1), np.nan)
    unchanged = np.where((positive >= 3) | ((positive == 2) & (graders > 2)), top / bottom, np.nan)
    all_three = np.stack([without_top, without_bottom, unchanged])
    defined = known & ~np.isnan(unchanged)
    low = np.where(np.isnan(all_three), np.inf, all_three).min(axis=0)
    high = np.where(np.isnan(all_three), -np.inf, all_three).max(axis=0)
    return np.where(defined, low, np.nan), np.where(defined, high, np.nan)


def _loo_low(cells: Array, given: Given) -> Array:
    return _leave_one_out(cells, given)[0]


def _loo_high(cells: Array, given: Given) -> Array:
    return _leave_one_out(cells, given)[1]


def _range(cells: Array, given: Given) -> Array:
    ordered = _sorted(cells, given)
    if ordered.shape[-2] < 2:
        return np.full(ordered.shape[:-2] + ordered.shape[-1:], np.nan)
    return np.asarray(ordered[..., -1, :] - ordered[..., 0, :])


def _quantile(ordered: Array, q: float) -> Array:
    """Quantile of type 7 (Hyndman and Fan 1996) along the graders of ascending rates."""
    place = q * (ordered.shape[-2] - 1)
    low = int(np.floor(place))
    high = min(low + 1, ordered.shape[-2] - 1)
    part = place - low
    return np.asarray((1 - part) * ordered[..., low, :] + part * ordered[..., high, :])


def _iqr(cells: Array, given: Given) -> Array:
    ordered = _sorted(cells, given)
    if ordered.shape[-2] < 2:
        return np.full(ordered.shape[:-2] + ordered.shape[-1:], np.nan)
    return np.asarray(_quantile(ordered, 0.75) - _quantile(ordered, 0.25))


def _second_over_second(cells: Array, given: Given) -> Array:
    ordered = _sorted(cells, given)
    if ordered.shape[-2] < 3:
        return np.full(ordered.shape[:-2] + ordered.shape[-1:], np.nan)
    return np.asarray(ordered[..., -2, :] / ordered[..., 1, :])


def _sd_log_odds(cells: Array, given: Given) -> Array:
    ordered = _sorted(cells, given)
    if ordered.shape[-2] < 2:
        return np.full(ordered.shape[:-2] + ordered.shape[-1:], np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_odds = np.log(ordered) - np.log1p(-ordered)
        return np.asarray(log_odds.std(axis=-2, ddof=1))


def _at_zero(cells: Array, given: Given) -> Array:
    ordered = _sorted(cells, given)
    zeros = (ordered == 0).sum(axis=-2).astype(np.float64)
    return np.where(np.isnan(ordered).any(axis=-2), np.nan, zeros)


def _fewest_labels(cells: Array, given: Given) -> Array:
    """The labels of the grader that gave the fewest."""
    return np.asarray(cells[..., given["keep"], -1].min(axis=-1, keepdims=True))


def _statistic(estimand: Estimand, solve: Callable[[Array, Given], Array]) -> Statistic:
    def reason(totals: Array, given: Given) -> Sequence[str]:
        unknown = np.atleast_1d(np.isnan(_rates(totals, given)).any(axis=0))
        return [NOT_PRINTED if u else estimand.undefined_when for u in unknown]

    return Statistic(
        estimand=estimand,
        solve=solve,
        n=_fewest_labels,
        reason=reason,
        events=_clusters_of_the_rarest if estimand.scale is Scale.LOG else None,
    )


def _clusters_of_the_rarest(rows: Array, clusters: Array, given: Given) -> Array:
    """For each rate, the clusters with such a label of the grader above zero that has the fewest."""
    kept = rows[:, given["keep"], :]
    held = [
        clusters.astype(np.float64) @ (rate.count(kept) > 0) for rate in given["rates"]
    ]  # (graders,) each
    fewest = [np.where(h > 0, h, np.inf).min() for h in held]
    return np.array([f if np.isfinite(f) else 0.0 for f in fewest])


MAX_OVER_MIN = _statistic(
    _estimand(
        "rate_max_over_min",
        "Highest over lowest",
        "How many times the lowest rate above zero is the highest rate?",
        Unit.RATIO,
        Scale.LOG,
        FEWER_THAN_TWO,
        formula=r"\frac{\max_{g} r_{g}}{\min_{r_{g} > 0} r_{g}}",
        conventions="A rate of zero is left out of the lowest and counted by graders_at_zero.",
    ),
    _max_over_min,
)
LOO_LOW = _statistic(
    _estimand(
        "rate_leave_one_out_low",
        "Smallest ratio without one grader",
        "How small does highest over lowest get when one grader is left out?",
        Unit.RATIO,
        Scale.LOG,
        FEWER_THAN_TWO + " once one is left out",
        formula=r"\min_{h}\ \frac{\max_{g \ne h} r_{g}}{\min_{g \ne h,\ r_{g} > 0} r_{g}}",
        conventions=(
            "Zeros are left out of the lowest; a grader h without which fewer than two rates above "
            "zero are left is passed over."
        ),
    ),
    _loo_low,
)
LOO_HIGH = _statistic(
    _estimand(
        "rate_leave_one_out_high",
        "Largest ratio without one grader",
        "How large does highest over lowest get when one grader is left out?",
        Unit.RATIO,
        Scale.LOG,
        FEWER_THAN_TWO + " once one is left out",
        formula=r"\max_{h}\ \frac{\max_{g \ne h} r_{g}}{\min_{g \ne h,\ r_{g} > 0} r_{g}}",
        conventions=(
            "Zeros are left out of the lowest; a grader h without which fewer than two rates above "
            "zero are left is passed over."
        ),
    ),
    _loo_high,
)
RANGE = _statistic(
    _estimand(
        "rate_range",
        "Range",
        "How far apart are the highest and the lowest rate?",
        Unit.POINTS,
        Scale.PLAIN,
        "fewer than two graders have a rate",
        formula=r"\max_{g} r_{g} - \min_{g} r_{g}",
        conventions="Zeros are in it.",
    ),
    _range,
)
IQR = _statistic(
    _estimand(
        "rate_iqr",
        "Interquartile range",
        "How far apart are the quartiles of the graders’ rates (quantile type 7)?",
        Unit.POINTS,
        Scale.PLAIN,
        "fewer than two graders have a rate",
        formula=(
            r"Q\left(\frac{3}{4}\right) - Q\left(\frac{1}{4}\right), \quad Q(q) = (1 - f)\, r_{(j)} "
            r"+ f\, r_{(j + 1)}, \quad (m - 1) q + 1 = j + f"
        ),
        conventions=(
            "r_(1) ≤ … ≤ r_(m): the rates in ascending order, zeros among them; j is whole and f "
            "from 0 to below 1. It is quantile type 7 of Hyndman and Fan, the default of R and "
            "numpy; other types give other values for few graders."
        ),
    ),
    _iqr,
)
SECOND = _statistic(
    _estimand(
        "rate_second_over_second",
        "Second-highest over second-lowest",
        "How many times the second-lowest rate is the second-highest?",
        Unit.RATIO,
        Scale.LOG,
        "the second-lowest rate is zero, or fewer than three graders have a rate",
        formula=r"\frac{r_{(m - 1)}}{r_{(2)}}",
        conventions="r_(1) ≤ … ≤ r_(m): the rates in ascending order, zeros among them.",
    ),
    _second_over_second,
)
SD_LOG_ODDS = _statistic(
    _estimand(
        "rate_sd_log_odds",
        "Standard deviation of the log odds",
        "How far do the graders’ rates scatter on the scale of log odds?",
        Unit.COEFFICIENT,
        Scale.LOG,
        "a rate of 0 or 1 has no log odds",
        formula=(
            r"\sqrt{\frac{1}{m - 1} \sum_{g} (\ell_{g} - \bar{\ell})^{2}}, \quad \ell_{g} = \log "
            r"\frac{r_{g}}{1 - r_{g}}"
        ),
        conventions="Natural logarithms, divisor m − 1; nothing is added to a rate of 0 or 1.",
    ),
    _sd_log_odds,
)
AT_ZERO = _statistic(
    _estimand(
        "graders_at_zero",
        "Graders at zero",
        "How many graders have a rate of zero?",
        Unit.COUNT,
        Scale.NONE,
        "a grader’s rate is not known",
        formula=r"\#\{g \mid r_{g} = 0\}",
    ),
    _at_zero,
)
STATISTICS = (MAX_OVER_MIN, RANGE, IQR, SECOND, LOO_LOW, LOO_HIGH, SD_LOG_ODDS, AT_ZERO)


def variants(scene: Scene, graders: Sequence[str]) -> list[tuple[str, list[int]]]:
    """The panels for which the spread is given: all, without the named, without the flagged."""
    made = [("", list(range(len(graders))))]
    for word, left_out in (("without", scene.options.without), ("without_flagged", scene.flagged)):
        named = [g for g in graders if g in left_out]
        kept = [i for i, g in enumerate(graders) if g not in left_out]
        if named and len(kept) >= 2:
            made.append((f"{word}:{'+'.join(named)}", kept))
    return made


def parts(scene: Scene) -> Iterable[Part]:
    if not scene.rates:
        return
    if scene.grid is not None:
        graders = [g for g in scene.panel if scene.labels_tally(g).count]
    else:
        graders = list(scene.panel)
    if len(graders) < 2:
        return
    tally, totals = None, None
    if scene.grid is not None:
        tally = scene.joint_tally(graders).mapped(with_total)
    else:
        totals = np.stack([np.append(*scene.count_row(g)) for g in graders])
    for other, keep in variants(scene, graders):
        yield _part(scene, other, keep, tally, totals)
    # Once graders are flagged the family is asked again: the votes have been counted by then.
    if scene.grid is not None and scene.grid.votes is not None and not scene.flagged:
        votes = by_wording(scene.grid)
        if votes is not None:
            for rule in VOTE_RULES:
                yield from _under(scene, votes, rule)


def _under(scene: Scene, votes: Grid, rule: str) -> Iterable[Part]:
    """The spread with each grader's votes made a label by this rule."""
    if votes is not scene.grid or rule != scene.options.vote_rule:
        scene = scene.of_grid(votes.under(rule))
    graders = [g for g in scene.panel if scene.labels_tally(g).count]
    if len(graders) < 2:
        return
    tally = scene.joint_tally(graders).mapped(with_total)
    yield _part(scene, f"votes:{rule}", range(len(graders)), tally, None)


def _part(
    scene: Scene, other: str, keep: Iterable[int], tally: Tally | None, totals: Array | None
) -> Part:
    given: dict[str, Any] = {
        "rates": scene.rates,
        "keep": np.array(list(keep), dtype=np.int64),
    }
    keys = tuple(Key(other=other, class_=r.name) for r in scene.rates)
    return Part(tally=tally, totals=totals, asks=tuple((s, keys) for s in STATISTICS), given=given)


# --- the report ---------------------------------------------------------------------------------


def ratio_in_words(estimates: Estimates, rate: str, other: str, slice_: str) -> Text:
    """``22.4-fold``, and where graders stand at zero ``at least 22.4-fold; 1 grader at zero``."""
    ratio = estimates.get("rate_max_over_min", class_=rate, other=other, slice=slice_)
    zeros = estimates.get("graders_at_zero", class_=rate, other=other, slice=slice_)
    if ratio is None or ratio.number is None:
        return ("no ratio: " + (ratio.reason if ratio is not None else ""),)
    at_zero = int(zeros.number or 0) if zeros is not None else 0
    if at_zero:
        word = "grader" if at_zero == 1 else "graders"
        return (f"at least {times(ratio.number)}-fold; {at_zero} {word} at zero",)
    return (f"{times(ratio.number)}-fold",)


def panel_in_words(other: str) -> Text:
    if not other:
        return ("all graders",)
    word, _, names = other.partition(":")
    if word == "votes":
        return ("all, first readable vote" if names == "first" else "all, majority of votes",)
    return say(
        "without {who}" + (" (flagged)" if word == "without_flagged" else ""),
        who=listed(names.split("+")),
    )


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    listed_ratios = [
        e
        for e in estimates.of("rate_max_over_min", slice=scene.slice)
        if not scene.exploratory and not e.key.other.startswith("votes:")  # told with the votes
    ]
    if not listed_ratios:
        return ()
    rows = []
    for ratio in listed_ratios:
        key = {"class_": ratio.key.class_, "other": ratio.key.other, "slice": scene.slice}
        zeros = estimates.get("graders_at_zero", **key)
        shown = cell(ratio)
        if zeros is not None and zeros.number:
            shown = Cell(
                kind=shown.kind,
                value=shown.value,
                low=shown.low,
                high=shown.high,
                reason=shown.reason,
                at_least=True,
            )
        low = estimates.get("rate_leave_one_out_low", **key)
        high = estimates.get("rate_leave_one_out_high", **key)
        around = ""
        if low is not None and high is not None and low.number and high.number:
            around = f"{times(low.number)} to {times(high.number)}"
        rows.append(
            (
                cell(Name(ratio.key.class_)),
                cell(panel_in_words(ratio.key.other)),
                shown,
                cell(around or "–"),
                *(
                    cell(estimates.get(s, **key))
                    for s in (
                        "rate_second_over_second",
                        "rate_iqr",
                        "rate_range",
                        "graders_at_zero",
                    )
                ),
            )
        )
    table = Table(
        title="How far each rate moves with the grader",
        columns=(
            Column(title="rate", kind=Kind.NAME),
            Column(title="panel"),
            Column(title="highest / lowest", kind=Kind.RATIO),
            Column(title="leaving one grader out"),
            Column(title="2nd / 2nd", kind=Kind.RATIO),
            Column(title="IQR, points", kind=Kind.POINTS),
            Column(title="range, points", kind=Kind.POINTS),
            Column(title="at zero", kind=Kind.COUNT),
        ),
        rows=tuple(rows),
        note=(
            "Ratios leave graders at zero out of the lowest rate (“≥”); range and IQR do not. "
            "The same responses throughout: only the grader changes.",
        ),
    )
    figures = [f for f in (_dots(scene, estimates), _people(scene, estimates)) if f is not None]
    return (*figures, table)


def _dot(scene: Scene, estimates: Estimates, rate: str, grader: str) -> dict[str, Any] | None:
    """A grader's rate as a figure takes it; nothing where it cannot be said."""
    found = estimates.get("rate", grader=grader, class_=rate, slice=scene.slice)
    if found is None or found.number is None:
        return None
    role = {scene.gold: "gold", scene.reference: "reference"}.get(
        grader, "person" if scene.by_name[grader].person else ""
    )
    return {
        "grader": grader,
        "value": found.number,
        "low": found.interval.low if found.interval else None,
        "high": found.interval.high if found.interval else None,
        "role": role,
        "flagged": grader in scene.flagged,
        "note": "",
    }


def _people(scene: Scene, estimates: Estimates) -> Figure | None:
    """The people as more rows on the graders' axis, under the first rate (MCC Figure 6)."""
    people = [g for g in scene.panel if scene.by_name[g].person]
    if not scene.rates or not people or len(people) == len(scene.panel):
        return None
    rate = scene.rates[0].name
    dots: list[dict[str, Any]] = []
    for grader in scene.panel[:MOST_DOTS]:
        dot = _dot(scene, estimates, rate, grader)
        found = estimates.get("rate", grader=grader, class_=rate, slice=scene.slice)
        if dot is not None and found is not None:
            # A person who is the reference is drawn as what they are.
            role = "person" if scene.by_name[grader].person else dot["role"]
            dots.append(dot | {"n": found.n, "role": role})
    if not any(d["role"] == "person" for d in dots) or all(d["role"] == "person" for d in dots):
        return None
    dots.sort(key=lambda d: (d["value"], d["grader"]))
    said = linked(
        (
            (Name(d["grader"]), f" {percent(d['value'])} of {counted(d['n'] or 0)}")
            for d in dots[:12]
        ),
        ", ",
    )
    grid = scene.grid
    weighted = " Rates are weighted." if grid is not None and grid.weights is not None else ""
    return Figure(
        name="people_axis",
        title="People on the graders’ axis",
        data={"rate": rate, "dots": dots},
        alt=(
            "Dot plot of ",
            Name(rate),
            ", graders and people on one logarithmic axis: ",
            *said,
            ".",
        ),
        caption=(
            "People have the graders’ mark: they are one more measurement of the same responses, not "
            "a line of truth. At the right: the responses that each labelled." + weighted,
        ),
    )


def _dots(scene: Scene, estimates: Estimates) -> Figure | None:
    drawn = []
    words = list[Text]()
    for rate in scene.rates:
        dots: list[dict[str, Any]] = []
        for grader in scene.names:
            dot = _dot(scene, estimates, rate.name, grader)
            if dot is not None:
                dots.append(dot)
        if not dots:
            continue
        dots.sort(key=lambda d: (d["value"], d["grader"]))
        wide = estimates.get("rate_range", class_=rate.name, slice=scene.slice)
        spread = "".join(
            p if isinstance(p, str) else p.text
            for p in ratio_in_words(estimates, rate.name, "", scene.slice)
        )
        if wide is not None and wide.number is not None:
            spread += f"; {points(wide.number)}"
        drawn.append({"name": rate.name, "dots": dots, "spread": spread})
        said = linked(((Name(d["grader"]), f" {percent(d['value'])}") for d in dots[:12]), ", ")
        more = f" and {plural(len(dots) - 12, 'more grader')}" if len(dots) > 12 else ""
        words.append((Name(rate.name), ": ", *said, more))
    if not drawn:
        return None
    return Figure(
        name="rate_dots",
        title="The same rates under each grader",
        data={"rates": drawn},
        alt=("Dot plot, one dot a grader, logarithmic axis. ", *linked(words), "."),
        caption=(
            "Each dot is one grader on the same responses. On the logarithmic axis a distance is a "
            "ratio; a rate of zero is drawn off the scale.",
        ),
    )


FAMILY = Family(
    name="spread",
    statistics=STATISTICS,
    parts=parts,
    section="How far the rate moves with the grader",
    order=20,
    blocks=blocks,
    after_findings=True,
)
