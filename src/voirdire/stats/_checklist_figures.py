"""The figures of a checklist's report, made from a bank and its estimates: one of each kind a judge.

Each function gives no figure for a judge where what it would show is not there (no gold, no response
that both scored in full, an estimate that cannot be said).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from voirdire.document import Figure
from voirdire.estimate import Estimate
from voirdire.line_errors import counted_errors
from voirdire.sides import Sides, sides
from voirdire.stats.base import Array, Estimates, Scene
from voirdire.wording import Name, Text, counted, number, percent, plural, say

MOST_JUDGES = 6  # of more only the first have figures; tables and results hold them all
MOST_WORST = 10
MOST_SAID = 41  # values that the text beside a figure lists one by one

__all__: list[str] = []


def totals_figures(scene: Scene, estimates: Estimates) -> list[Figure]:
    """The distribution of totals of each judge, beside gold’s where there is gold."""
    return _each(scene, estimates, _totals)


def scatter_figures(scene: Scene, estimates: Estimates) -> list[Figure]:
    """The totals of each judge against gold’s, with the judge’s leniency."""
    return _each(scene, estimates, _scatter)


def position_figures(scene: Scene, estimates: Estimates) -> list[Figure]:
    """The error of each judge by position, with its overall error."""
    return _each(scene, estimates, _position)


def dependability_figures(scene: Scene, estimates: Estimates) -> list[Figure]:
    """Φ(λ) at each cut on the judge's verdicts, joined with its value on gold's."""
    return _each(scene, estimates, _dependability)


def worst_lines_figures(scene: Scene, estimates: Estimates) -> list[Figure]:
    """The lines on which each judge errs most, with what they ask."""
    return _each(scene, estimates, _worst)


Make = Callable[[Scene, Estimates, Sides], Figure | None]


def _each(scene: Scene, estimates: Estimates, make: Make) -> list[Figure]:
    """The figure of each judge, beside gold where there is gold."""
    if scene.bank is None:
        return []
    found: dict[str, Sides] = {}
    for one in sides(scene):
        if one.grader in scene.panel and len(one.rows):
            found.setdefault(one.grader, one)
    drawn = [make(scene, estimates, one) for one in list(found.values())[:MOST_JUDGES]]
    return [figure for figure in drawn if figure is not None]


def _weights(scene: Scene, rows: Array) -> Array:
    """What each of the responses counts for."""
    assert scene.bank is not None
    weights = scene.bank.weights
    return np.ones(len(rows)) if weights is None else np.asarray(weights[rows], dtype=np.float64)


def _whole(x: float) -> float:
    """A count without the noise of adding weights up."""
    return float(round(x)) if abs(x - round(x)) < 1e-9 * max(abs(x), 1.0) else float(x)


def _judge(scene: Scene, one: Sides, title: str) -> str:
    """The title of a figure, with the judge where there are several."""
    return title if len(scene.panel) == 1 else f"{title}: {one.grader}"


def _interval(found: Estimate | None) -> dict[str, Any]:
    """An estimate as a figure takes it; ``value`` is ``None`` where it cannot be said."""
    if found is None:
        return {"value": None, "low": None, "high": None, "reason": "not computed"}
    interval = found.interval
    return {
        "value": found.number,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "reason": found.reason,
    }


def _found(scene: Scene, estimates: Estimates, statistic: str, grader: str, **key: str) -> Any:
    """A judge's estimate, whether or not its key names gold."""
    for other in ("", scene.gold):
        found = estimates.get(statistic, grader=grader, other=other, slice=scene.slice, **key)
        if found is not None:
            return found
    return None


# --- totals -------------------------------------------------------------------------------------


def _totals(scene: Scene, estimates: Estimates, one: Sides) -> Figure | None:
    bank = scene.bank
    assert bank is not None
    length = bank.length[one.rows]
    k, weights = int(length.max()), _weights(scene, one.rows)
    series: list[dict[str, Any]] = []
    parts: list[Text] = []
    for name in reversed(one.names):  # gold first: what the judge is looked at beside
        totals = bank.totals[one.rows, bank.places[name]]
        counts = np.bincount(totals, weights=weights, minlength=k + 1)
        at_ceiling = _whole(float(weights[totals == length].sum()))
        series.append(
            {
                "grader": name,
                "role": "gold" if name == scene.gold else "",
                "counts": [_whole(float(c)) for c in counts],
                "at_ceiling": at_ceiling,
            }
        )
        parts.append(say("{name} {n}", name=Name(name), n=counted(at_ceiling)))
    all_of_them = _whole(float(weights.sum()))
    n = f"{counted(all_of_them)} {'response' if all_of_them == 1 else 'responses'}"
    ceiling = f"the ceiling of {k}" if bank.k else "the ceiling, every line met"
    at = _in_a_row(parts, " and ")
    spread: Text = ()
    if k < MOST_SAID:
        said = [(s["grader"], ", ".join(counted(c) for c in s["counts"])) for s in series]
        spread = _in_a_row([say("{n} {c}", n=Name(n), c=c) for n, c in said], "; ")
        spread = (": ", *spread)
    both = "both" if one.paired else "it"
    return Figure(
        name="totals_histogram",
        title=_judge(scene, one, "How many lines are met" + (", judge and gold" * one.paired)),
        data={"k": k, "one_length": bool(bank.k), "series": series},
        alt=(
            *say("Histogram of totals, {n} by lines met, 0 to {k}", n=n, k=str(k)),
            *spread,
            *say(". At {ceiling}: ", ceiling=ceiling),
            *at,
            ".",
        ),
        caption=(
            f"Lines met per response, on the {n} that {both} scored in full"
            f"{_weighted(scene)}. At {ceiling}: ",
            *at,
            ".",
        ),
    )


def _in_a_row(parts: list[Text], between: str) -> Text:
    found: list[Any] = []
    for i, part in enumerate(parts):
        found += [between] if i else []
        found += part
    return tuple(found)


def _weighted(scene: Scene) -> str:
    bank = scene.bank
    return "" if bank is None or bank.weights is None else ", by weight"


def _scatter(scene: Scene, estimates: Estimates, one: Sides) -> Figure | None:
    bank = scene.bank
    assert bank is not None
    if not one.paired:
        return None
    judge, gold = one.names
    k = int(bank.length[one.rows].max())
    mine = bank.totals[one.rows, bank.places[judge]].astype(np.int64)
    true = bank.totals[one.rows, bank.places[gold]].astype(np.int64)
    weights = _weights(scene, one.rows)
    many = np.bincount(true * (k + 1) + mine, weights=weights)
    cells = [
        [int(c // (k + 1)), int(c % (k + 1)), _whole(float(many[c]))] for c in np.flatnonzero(many)
    ]
    above, on, below = (
        _whole(float(weights[side].sum())) for side in (mine > true, mine == true, mine < true)
    )
    leniency = _found(scene, estimates, "leniency", judge)
    data: dict[str, Any] = {"judge": judge, "gold": gold, "k": k, "cells": cells}
    said = ""
    if leniency is not None and leniency.number is not None:
        data["leniency"] = _interval(leniency)
        sign = "above" if leniency.number >= 0 else "below"
        said = f" On average the judge’s total is {number(abs(leniency.number), 2)} {sign} gold’s."
    return Figure(
        name="totals_scatter",
        title=_judge(scene, one, "Totals of judge and gold, response by response"),
        data=data,
        alt=(
            *say(
                "Bubble grid of the totals of {judge} against those of {gold}, with the line where "
                "they are equal. ",
                judge=Name(judge),
                gold=Name(gold),
            ),
            f"Responses above the line {counted(above)}, on it {counted(on)}, below it "
            f"{counted(below)}.{said}",
        ),
        caption=(
            "Each bubble is the responses with one pair of totals; its area is their number"
            f"{_weighted(scene)}. On the dashed line both totals are equal; above it the judge gives "
            f"more than gold.{said}",
        ),
    )


# --- where the judge errs -------------------------------------------------------------------------


def _position(scene: Scene, estimates: Estimates, one: Sides) -> Figure | None:
    bank = scene.bank
    assert bank is not None
    judge, most = one.grader, int(bank.length.max(initial=0))
    if not one.paired:
        return None
    positions: list[dict[str, Any]] = []
    levels: set[float] = set()
    for j in range(1, most + 1):
        found = _found(scene, estimates, "element_error", judge, line=f"position:{j}")
        if found is None:
            continue
        positions.append(
            {
                "position": j,
                **{k: v for k, v in _interval(found).items() if k != "reason"},
                "n": found.n,
            }
        )
        levels |= {found.interval.level} if found.interval else set()
    known = [p for p in positions if p["value"] is not None]
    if not known:
        return None
    overall = _found(scene, estimates, "element_error", judge)
    if len(positions) <= MOST_SAID:
        said = ", ".join(f"{p['position']}: {percent(p['value'])}" for p in positions)
    else:
        ends = [pick(known, key=lambda p: p["value"]) for pick in (min, max)]
        said = "From {} at position {} to {} at position {}".format(
            *(x for p in ends for x in (percent(p["value"]), p["position"]))
        )
    dashed = (
        f" The dashed line is the overall rate, {percent(overall.number)}."
        if overall is not None and overall.number is not None
        else ""
    )
    interval = f" with {percent(levels.pop(), 0)} intervals" if len(levels) == 1 else ""
    pooled = (
        f" Each question has its own checklist: a position pools the lines that stand there in "
        f"{plural(len(np.unique(bank.question[one.rows])), 'question')}."
        if bank.own
        else ""
    )
    return Figure(
        name="error_by_position",
        title=_judge(scene, one, "Error by position, with the overall rate"),
        data={"grader": judge, "overall": _interval(overall), "positions": positions},
        alt=(
            *say(
                "Share of verdicts of {judge} that differ from gold, by position. ",
                judge=Name(judge),
            ),
            f"{said}.{dashed}",
        ),
        caption=(
            *say("Share of {judge}’s verdicts that differ from gold’s", judge=Name(judge)),
            f"{interval}, by the position of the line.{dashed}{pooled}",
        ),
    )


def _worst(scene: Scene, estimates: Estimates, one: Sides) -> Figure | None:
    bank = scene.bank
    assert bank is not None
    if not one.paired:
        return None
    found = counted_errors(scene, one.grader)
    errors = found.errors
    wrong = [i for i in found.worst(len(errors)) if errors[i]]
    if not wrong:
        return None
    drawn: list[dict[str, Any]] = [
        {
            "line": found.lines[i],
            "text": bank.texts.get(found.lines[i], ""),
            "false_accepts": int(found.accepted[i]),
            "false_rejects": int(found.rejected[i]),
            "n": int(found.verdicts[i]),
        }
        for i in wrong[:MOST_WORST]
    ]
    total, rest = found.total, wrong[MOST_WORST:]
    elsewhere = int(errors[rest].sum()) if rest else 0
    of = f"{plural(total, 'error')} on {len(wrong):,} of {plural(len(errors), 'line')}"
    words = _in_a_row(
        [
            say(
                "{line} {a}, {r}",
                line=Name(d["line"]),
                a=plural(d["false_accepts"], "false accept"),
                r=plural(d["false_rejects"], "false reject"),
            )
            for d in drawn
        ],
        "; ",
    )
    drawn_hold = f" The {len(drawn)} drawn hold {counted(total - elsewhere)}." if rest else ""
    return Figure(
        name="worst_lines",
        title=_judge(scene, one, "Lines with most errors"),
        data={
            "grader": one.grader,
            "lines": drawn,
            "other_errors": elsewhere,
            "other_lines": len(rest),
        },
        alt=("Bars of errors by line, most first: ", *words, f". In all {of}."),
        caption=(
            *say("{judge} makes ", judge=Name(one.grader)),
            f"{of}.{drawn_hold} A false accept says yes where gold says no.",
        ),
    )


# --- what the bank says -------------------------------------------------------------------------


def _dependability(scene: Scene, estimates: Estimates, one: Sides) -> Figure | None:
    if not one.paired:
        return None
    mine, true = one.keys
    cuts: list[dict[str, Any]] = []
    for cut in scene.options.cut:
        at = {"cut": str(cut), "slice": scene.slice}
        judge = estimates.get("phi_lambda", grader=mine.grader, other=mine.other, **at)
        gold = estimates.get("phi_lambda", grader=true.grader, other=true.other, **at)
        difference = _found(scene, estimates, "phi_lambda_minus_gold", mine.grader, cut=str(cut))
        if judge is None and gold is None:
            continue
        cuts.append(
            {
                "cut": str(cut),
                "judge": _interval(judge),
                "gold": _interval(gold),
                "difference": _interval(difference),
            }
        )
    if not any(c["judge"]["value"] is not None or c["gold"]["value"] is not None for c in cuts):
        return None
    words = "; ".join(
        f"cut {c['cut']}: {number(c['judge']['value'])} and {number(c['gold']['value'])}"
        for c in cuts
    )
    return Figure(
        name="dependability_cuts",
        title=_judge(scene, one, "Φ(λ) of the bank, on the judge’s verdicts and on gold’s"),
        data={"grader": mine.grader, "gold": true.grader, "cuts": cuts},
        alt=(
            *say(
                "Φ(λ) by cut, on the verdicts of {judge} and on gold’s. ", judge=Name(mine.grader)
            ),
            f"{words}.",
        ),
        caption=(
            "Φ(λ) describes the bank of responses and lines at a cut, not the judge. The open "
            "diamond is the same coefficient on gold’s verdicts for the same responses: what this "
            "bank gives a scorer without errors.",
        ),
    )
