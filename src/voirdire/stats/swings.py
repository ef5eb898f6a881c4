"""How far a rate swings with the mix of the responses: without one kind, at another mix, between two.

A swing is a difference, and its interval is that of the difference: both sides stand in one tally
and move together. Standardisation is direct: the rate in each value of a tag, at weights that are
taken as fixed (the whole: equal shares of the values; a slice: the mix of the whole).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from voirdire.document import Block, Cell, Column, Kind, Paragraph, Table, Tone, cell
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Estimate, Key
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Scene, Statistic, with_total
from voirdire.tally import Tally
from voirdire.wording import Name, Text, say

MCC17 = Source(text='"The Missing Compliance Class", Table 17 and Section 7')
STANDARDISATION = Source(
    text='"The Missing Compliance Class", Table 17; direct standardisation as in Fleiss, Levin and '
    "Paik 2003, Statistical Methods for Rates and Proportions, ch. 19"
)
MINUS = "−"
ROUNDING = 1e-12
COMPARED_VALUES = range(2, 7)  # values of a tag between which rates are compared pair by pair
MOST_ROWS = 200
BANK = ("the responses in the bank", "which values the tag has")


def _estimand(
    name: str, title: str, question: str, why: str, source: Source = MCC17, **facts: Any
) -> Estimand:
    share = facts.pop("share", False)
    return Estimand(
        name=name,
        title=title,
        question=question,
        describes=facts.pop("describes", Describes.BOTH),
        keys=facts.pop("keys", ("grader", "class", "line")),
        unit=Unit.SHARE if share else Unit.POINTS,
        scale=Scale.LOGIT if share else Scale.PLAIN,
        needs=("label", "tag"),
        low=facts.pop("low", 0 if share else -1),
        high=facts.pop("high", 1),
        reading=facts.pop("reading", ""),
        moves_with=BANK,
        undefined_when=why,
        source=source,
        formula=facts.pop("formula"),
        conventions=facts.pop("conventions"),
    )


NOTHING_LEFT = "the grader has no readable label outside of this value"
A_SIDE_EMPTY = "the grader has no readable label of one of the two values"
SOME_EMPTY = "the grader has no readable label of some value of the tag"
PANEL: dict[str, Any] = {"describes": Describes.PANEL, "keys": ("class", "line")}

RATE_WITHOUT = _estimand(
    "rate_without",
    "Rate without one value",
    "What is the grader’s rate on the responses that do not have this value of the tag?",
    NOTHING_LEFT,
    share=True,
    formula=r"r_{g,-v} = \frac{\sum_{c \in R} n_{gc,-v}}{\sum_{c} n_{gc,-v}}",
    conventions=(
        "n_gc,−v: how often grader g gives class c where the tag is not v; a response without a "
        "value of the tag stays in. R: the classes of the rate."
    ),
)
CHANGE_WITHOUT = _estimand(
    "rate_without_minus_rate",
    "Change without one value",
    "How far does the grader’s rate move when the responses with this value are left out?",
    NOTHING_LEFT,
    reading="Read it against how often the grader disagrees with itself.",
    formula=r"r_{g,-v} - r_{g}",
    conventions="r_g: the rate of grader g on all responses of the slice; r_g,−v: rate_without.",
)
RANGE_WITHOUT = _estimand(
    "rate_range_without",
    "Range without one value",
    "How far apart are the highest and the lowest rate without the responses of this value?",
    "fewer than two graders have a rate there",
    low=0,
    **PANEL,
    formula=r"\max_{g} r_{g,-v} - \min_{g} r_{g,-v}",
    conventions="r_g,−v: rate_without of each grader of the panel; gold is in none.",
)
RANGE_CHANGE = _estimand(
    "rate_range_without_minus_range",
    "Change of the range without one value",
    "How far does the range of the graders’ rates move when this value is left out?",
    "fewer than two graders have a rate there",
    **PANEL,
    formula=(
        r"\left(\max_{g} r_{g,-v} - \min_{g} r_{g,-v}\right) - \left(\max_{g} r_{g} - \min_{g} "
        r"r_{g}\right)"
    ),
    conventions=(
        "r_g: the rate of grader g on all responses of the slice; r_g,−v: rate_without; over the "
        "graders of the panel, gold in none."
    ),
)
CHANGE_RANGE = _estimand(
    "rate_without_minus_rate_range",
    "Range of the changes without one value",
    "By how much do the changes that leaving out this value makes differ between graders?",
    "fewer than two graders have a rate there",
    low=0,
    high=2,  # one grader may go up by almost 1 where another goes down as far
    reading="Above 0 the choice of the responses moves graders by unlike amounts.",
    **PANEL,
    formula=r"\max_{g} (r_{g,-v} - r_{g}) - \min_{g} (r_{g,-v} - r_{g})",
    conventions=(
        "r_g: the rate of grader g on all responses of the slice; r_g,−v: rate_without; over the "
        "graders of the panel, gold in none."
    ),
)
STANDARDISED = _estimand(
    "standardised_rate",
    "Standardised rate",
    "What would the grader’s rate be at another mix of the tag’s values: equal shares in the whole, "
    "the whole’s mix inside a slice?",
    SOME_EMPTY,
    STANDARDISATION,
    share=True,
    reading="The mix is taken as fixed; the rate within each value is the grader’s own.",
    formula=r"\sum_{v} w_{v}\, r_{gv}",
    conventions=(
        "r_gv: the rate of grader g where the tag is v; w_v: the share of v in the mix, 1 in the "
        "number of used values for the whole, inside a slice that of v in the whole (with weights, "
        "those). Responses without a value are left out of both."
    ),
)
STANDARDISED_CHANGE = _estimand(
    "standardised_rate_minus_rate",
    "Change by standardising",
    "How far does the grader’s rate move when it is brought to another mix of the tag’s values?",
    SOME_EMPTY,
    STANDARDISATION,
    formula=r"\sum_{v} w_{v}\, r_{gv} - r_{g}",
    conventions=(
        "r_g: the rate of grader g on all responses of the slice, also those without a value of "
        "the tag; r_gv and w_v: as for standardised_rate."
    ),
)
DIFFERENCE = _estimand(
    "rate_difference",
    "Difference between two values",
    "How far apart are the grader’s rates on the responses of two values of a tag?",
    A_SIDE_EMPTY,
    reading="Different responses are compared, so anything that differs between them is in it.",
    formula=r"r_{ga} - r_{gb}",
    conventions="r_ga, r_gb: the rate of grader g where the tag is a, and where it is b.",
)
STANDARDISED_DIFFERENCE = _estimand(
    "standardised_rate_difference",
    "Difference between two values at one mix",
    "How far apart are the grader’s rates on two values of a tag, both at the whole’s mix of "
    "another tag?",
    SOME_EMPTY,
    STANDARDISATION,
    reading="What differs between the values besides the other tag is still in it.",
    formula=r"\sum_{u} w_{u} (r_{gau} - r_{gbu})",
    conventions=(
        "r_gau: the rate of grader g where the tag is a and the other tag u; w_u: the share of u "
        "in the whole (with weights, those). Responses without a value of either tag are left out."
    ),
)


# --- the algebra --------------------------------------------------------------------------------


def _rates(cells: Array, given: Given) -> Array:
    """Rates ``(..., rates)`` from class counts with their total ``(..., k + 1)``."""
    return np.stack([r.count(cells) / cells[..., -1] for r in given["rates"]], axis=-1)


def _counts(cells: Array, given: Given) -> tuple[Array, Array]:
    events = np.stack([r.count(cells) for r in given["rates"]], axis=-1)
    return events, np.asarray(np.broadcast_to(cells[..., -1:], events.shape))


def _flat(array: Array) -> Array:
    return np.asarray(array.reshape(*array.shape[:-2], -1))


def _less(one: Array, other: Array) -> Array:
    """One less the other, with what is only rounding as zero: equal mixes differ by nothing."""
    difference = one - other
    return np.asarray(np.where(np.abs(difference) < ROUNDING, 0.0, difference))


# without one value: cells (..., 2, k + 1), kept and dropped


def _kept_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    return _counts(cells[..., 0, :], given)


def _without(cells: Array, given: Given) -> Array:
    return _rates(cells[..., 0, :], given)


def _without_change(cells: Array, given: Given) -> Array:
    return _less(_rates(cells[..., 0, :], given), _rates(cells.sum(-2), given))


def _n_kept(cells: Array, given: Given) -> Array:
    return _kept_parts(cells, given)[1]


# the panel without one value: cells (..., graders, 2, k + 1)


def _spread(rates: Array) -> Array:
    """Highest less lowest of ``(..., graders, rates)``; nan where one is not known or one is alone."""
    if rates.shape[-2] < 2:
        return np.full(rates.shape[:-2] + rates.shape[-1:], np.nan)
    return np.asarray(rates.max(axis=-2) - rates.min(axis=-2))


def _range_without(cells: Array, given: Given) -> Array:
    return _spread(_without(cells, given))


def _range_change(cells: Array, given: Given) -> Array:
    return _less(_range_without(cells, given), _spread(_rates(cells.sum(-2), given)))


def _change_range(cells: Array, given: Given) -> Array:
    return _spread(_without_change(cells, given))


def _n_fewest(cells: Array, given: Given) -> Array:
    return np.asarray(cells[..., 0, -1].min(axis=-1, keepdims=True))


# at another mix: cells (..., values, k + 1), and a last place for responses without a value


def _mixed(rates: Array, mix: Array) -> Array:
    """Σ w · rate over the values, ``(..., values, rates)`` with weights ``(values,)`` that add to 1."""
    asked = mix > 0
    return np.asarray((mix[asked, None] * rates[..., asked, :]).sum(axis=-2))


def _standardised(cells: Array, given: Given) -> Array:
    return _mixed(_rates(cells[..., :-1, :], given), given["mix"])


def _standardised_change(cells: Array, given: Given) -> Array:
    return _less(_standardised(cells, given), _rates(cells.sum(-2), given))


def _mixed_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    """Events and trials that stand for the standardised rate near 0 and 1.

    Each value's labels are weighed so that they hold its share of the mix (``given["amounts"]``);
    together they count as much as an equal sample that varies as little.
    """
    events, trials = _counts(cells[..., :-1, :], given)
    amounts = given["amounts"][:, None]
    return np.asarray((events * amounts).sum(-2)), np.asarray((trials * amounts).sum(-2))


def _n_mixed(cells: Array, given: Given) -> Array:
    return np.asarray(cells[..., :-1, -1][..., given["mix"] > 0].sum(-1, keepdims=True))


def _amounts(tally: Tally, mix: Array) -> Array:
    """How much a label of each value counts at the edge: w / n, times the effective sample size."""
    with np.errstate(all="ignore"):
        n, size = tally.total[:-1, -1], tally.size[:-1, -1]
        each = np.where(mix > 0, mix / n, 0.0)
        effective = 1 / np.where(mix > 0, mix**2 / size, 0.0).sum()
        return np.asarray(each * effective / (each * size).sum())


# between values: cells (..., values, k + 1) and (..., values, values of the other tag, k + 1)


def _differences(cells: Array, given: Given) -> Array:
    rates = _rates(cells, given)
    first, second = given["pairs"]
    return _flat(_less(rates[..., first, :], rates[..., second, :]))


def _mixed_differences(cells: Array, given: Given) -> Array:
    mixed = _mixed(_rates(cells, given), given["mix"])
    first, second = given["pairs"]
    return _flat(_less(mixed[..., first, :], mixed[..., second, :]))


def _of_pairs(total: Array, given: Given) -> Array:
    """Labels behind each pair and rate, from labels of each value ``(..., values)``."""
    first, second = given["pairs"]
    both = total[..., first] + total[..., second]
    return _flat(np.repeat(both[..., None], len(given["rates"]), axis=-1))


def _n_pairs(cells: Array, given: Given) -> Array:
    return _of_pairs(cells[..., -1], given)


def _n_mixed_pairs(cells: Array, given: Given) -> Array:
    return _of_pairs(cells[..., -1][..., given["mix"] > 0].sum(-1), given)


# why not


def _named(tag: str, values: Sequence[str], within: str = "") -> str:
    shown = ", ".join(values[:5]) + (f" and {len(values) - 5} more" if len(values) > 5 else "")
    return f"the grader has no readable label where {tag} is {shown}{within}"


def _empty_values(totals: Array, given: Given) -> Sequence[str]:
    lacking = (given["mix"] > 0) & ~(totals[:-1, -1] > 0)
    names = [v for v, is_out in zip(given["values"], lacking, strict=True) if is_out]
    why = _named(given["tag"], names) if names else SOME_EMPTY
    return [why] * len(given["rates"])


def _empty_sides(totals: Array, given: Given) -> Sequence[str]:
    said = []
    for pair in zip(*given["pairs"], strict=True):
        names = [given["values"][i] for i in pair if not totals[i, -1] > 0]
        why = _named(given["tag"], names) if names else A_SIDE_EMPTY
        said += [why] * len(given["rates"])
    return said


def _empty_crossings(totals: Array, given: Given) -> Sequence[str]:
    said = []
    for pair in zip(*given["pairs"], strict=True):
        why = SOME_EMPTY
        for i in reversed(pair):
            lacking = (given["mix"] > 0) & ~(totals[i, :, -1] > 0)
            names = [v for v, is_out in zip(given["others"], lacking, strict=True) if is_out]
            if names:
                within = f" and {given['tag']} is {given['values'][i]}"
                why = _named(given["other"], names, within)
        said += [why] * len(given["rates"])
    return said


S_WITHOUT = Statistic(estimand=RATE_WITHOUT, solve=_without, n=_n_kept, share=_kept_parts)
S_CHANGE = Statistic(estimand=CHANGE_WITHOUT, solve=_without_change, n=_n_kept)
S_RANGE = Statistic(estimand=RANGE_WITHOUT, solve=_range_without, n=_n_fewest)
S_RANGE_CHANGE = Statistic(estimand=RANGE_CHANGE, solve=_range_change, n=_n_fewest)
S_CHANGE_RANGE = Statistic(estimand=CHANGE_RANGE, solve=_change_range, n=_n_fewest)
S_STANDARDISED = Statistic(
    estimand=STANDARDISED,
    solve=_standardised,
    n=_n_mixed,
    share=_mixed_parts,
    reason=_empty_values,
)
S_STANDARDISED_CHANGE = Statistic(
    estimand=STANDARDISED_CHANGE, solve=_standardised_change, n=_n_mixed, reason=_empty_values
)
S_DIFFERENCE = Statistic(estimand=DIFFERENCE, solve=_differences, n=_n_pairs, reason=_empty_sides)
S_STANDARDISED_DIFFERENCE = Statistic(
    estimand=STANDARDISED_DIFFERENCE,
    solve=_mixed_differences,
    n=_n_mixed_pairs,
    reason=_empty_crossings,
)


# --- counting -----------------------------------------------------------------------------------


def _tag_of(scene: Scene, tag: str, grader: str) -> Array:
    """The place of each response's value of a tag, −1 for none; a tag of calls, as the grader's."""
    assert scene.grid is not None
    codes = scene.grid.tags[tag][1]
    return np.asarray(codes[:, scene.grid.graders.index(grader)] if codes.ndim == 2 else codes)


def _counted(scene: Scene, grader: str, place: Array, shape: tuple[int, ...]) -> Tally:
    """The grader's labels by a place of each response (−1: left out): cells ``(*shape, k)``."""
    assert scene.grid is not None
    column = scene.grid.column(grader).astype(np.int64)
    rows = np.flatnonzero((column >= 0) & (place >= 0))
    return scene.counted(rows, place[rows] * scene.k + column[rows], (*shape, scene.k))


def _used(scene: Scene, tag: str) -> list[int]:
    """Places of the values that some response has, in the order of the values."""
    assert scene.grid is not None
    codes = scene.grid.tags[tag][1]
    return [int(c) for c in np.unique(codes) if c >= 0]


def _is_slice_of(scene: Scene, tag: str) -> bool:
    return any(by == tag for by, _ in scene.sliced_by)


def parts(scene: Scene) -> Iterable[Part]:
    if scene.grid is None or not scene.rates:
        return
    graders = [g for g in scene.names if scene.labels_tally(g).count]
    for tag, value in dict.fromkeys(scene.options.drop):
        if not _is_slice_of(scene, tag):
            yield from _dropped(scene, graders, tag, value)
    for tag in dict.fromkeys(scene.options.standardise):
        if not _is_slice_of(scene, tag):
            yield from _at_mix(scene, graders, tag)
    if not scene.slice:
        for tag in dict.fromkeys(scene.options.by):
            yield from _between(scene, graders, tag)


def _dropped(scene: Scene, graders: Sequence[str], tag: str, value: str) -> Iterable[Part]:
    assert scene.grid is not None
    line = f"{tag}={value}"
    code = scene.grid.tags[tag][0].index(value)
    given = {"rates": scene.rates}
    for grader in graders:
        place = (_tag_of(scene, tag, grader) == code).astype(np.int64)
        keys = tuple(Key(grader=grader, class_=r.name, line=line) for r in scene.rates)
        yield Part(
            tally=_counted(scene, grader, place, (2,)).mapped(with_total),
            asks=((S_WITHOUT, keys), (S_CHANGE, keys)),
            given=given,
        )
    panel = [g for g in scene.panel if g in graders]
    if len(panel) < 2:
        return
    rows, cells = [], []
    for i, grader in enumerate(panel):
        column = scene.grid.column(grader).astype(np.int64)
        labelled = np.flatnonzero(column >= 0)
        dropped = (_tag_of(scene, tag, grader)[labelled] == code).astype(np.int64)
        rows.append(labelled)
        cells.append((i * 2 + dropped) * scene.k + column[labelled])
    tally = scene.counted(np.concatenate(rows), np.concatenate(cells), (len(panel), 2, scene.k))
    keys = tuple(Key(class_=r.name, line=line) for r in scene.rates)
    yield Part(
        tally=tally.mapped(with_total),
        asks=((S_RANGE, keys), (S_RANGE_CHANGE, keys), (S_CHANGE_RANGE, keys)),
        given=given,
    )


def mix_of(scene: Scene, tag: str) -> Array:
    """Weights of a tag's values, ``(values,)``: equal in the whole, the whole's mix inside a slice."""
    assert scene.grid is not None
    values = scene.grid.tags[tag][0]
    whole: Mapping[str, float] = scene.mixes.get(tag, {})
    mix = np.array([whole.get(v, 0.0) for v in values])
    if scene.slice:
        return mix
    used = np.zeros(len(values))
    used[_used(scene, tag)] = 1.0
    return np.asarray(used / max(used.sum(), 1.0))


def _at_mix(scene: Scene, graders: Sequence[str], tag: str) -> Iterable[Part]:
    assert scene.grid is not None
    values = scene.grid.tags[tag][0]
    mix = mix_of(scene, tag)
    if not mix.any():
        return
    for grader in graders:
        place = _tag_of(scene, tag, grader)
        place = np.where(place >= 0, place, len(values))
        tally = _counted(scene, grader, place, (len(values) + 1,)).mapped(with_total)
        keys = tuple(Key(grader=grader, class_=r.name, line=tag) for r in scene.rates)
        yield Part(
            tally=tally,
            asks=((S_STANDARDISED, keys), (S_STANDARDISED_CHANGE, keys)),
            given={
                "rates": scene.rates,
                "mix": mix,
                "amounts": _amounts(tally, mix),
                "tag": tag,
                "values": values,
            },
        )


def _between(scene: Scene, graders: Sequence[str], tag: str) -> Iterable[Part]:
    """Every pair of the values of a tag that slices; crossed tags and ``label:GRADER`` have none."""
    assert scene.grid is not None
    if tag.startswith("label:") or tag not in scene.grid.tags:
        return
    used = _used(scene, tag)
    if len(used) not in COMPARED_VALUES:
        return
    values = [scene.grid.tags[tag][0][i] for i in used]
    pairs = list(combinations(range(len(values)), 2))
    lines = [f"{tag}={values[a]}{MINUS}{values[b]}" for a, b in pairs]
    if len(set(lines)) < len(lines):  # values with a minus sign of their own
        lines = [f"{tag}=({values[a]}){MINUS}({values[b]})" for a, b in pairs]
    renumbered = np.full(len(scene.grid.tags[tag][0]) + 1, -1, dtype=np.int64)
    renumbered[used] = np.arange(len(used))
    given: dict[str, Any] = {
        "rates": scene.rates,
        "pairs": tuple(np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True)),
        "tag": tag,
        "values": values,
    }
    for grader in graders:
        place = renumbered[_tag_of(scene, tag, grader)]
        keys = tuple(
            Key(grader=grader, class_=r.name, line=line) for line in lines for r in scene.rates
        )
        yield Part(
            tally=_counted(scene, grader, place, (len(values),)).mapped(with_total),
            asks=((S_DIFFERENCE, keys),),
            given=given,
        )
    for other in dict.fromkeys(scene.options.standardise):
        if other == tag:
            continue
        others = scene.grid.tags[other][0]
        mix = np.array([scene.mixes.get(other, {}).get(v, 0.0) for v in others])
        if not mix.any():
            continue
        for grader in graders:
            first, second = renumbered[_tag_of(scene, tag, grader)], _tag_of(scene, other, grader)
            place = np.where((first >= 0) & (second >= 0), first * len(others) + second, -1)
            keys = tuple(
                Key(grader=grader, class_=r.name, line=f"{line} at the mix of {other}")
                for line in lines
                for r in scene.rates
            )
            yield Part(
                tally=_counted(scene, grader, place, (len(values), len(others))).mapped(with_total),
                asks=((S_STANDARDISED_DIFFERENCE, keys),),
                given={**given, "mix": mix, "other": other, "others": others},
            )


# --- the report ---------------------------------------------------------------------------------

NOISE = (
    " Read a swing beside how often a grader disagrees with itself when it is asked again: that is "
    "movement without any change of the responses."
)


def _self_disagreement(scene: Scene, estimates: Estimates, grader: str) -> Estimate | None:
    return estimates.get("self_disagreement", grader=grader, slice=scene.slice)


def _noise(scene: Scene, estimates: Estimates) -> bool:
    return any(_self_disagreement(scene, estimates, g) is not None for g in scene.names)


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    made: list[Block] = []
    noise = _noise(scene, estimates)
    for tag, value in dict.fromkeys(scene.options.drop):
        made += _without_blocks(scene, estimates, tag, value, noise)
    for tag in dict.fromkeys(scene.options.standardise):
        made += _standardised_blocks(scene, estimates, tag, noise)
    made += _difference_blocks(scene, estimates, noise)
    if made and not noise:
        made.append(
            Paragraph(
                tone=Tone.NOTE,
                text=(
                    "How often the graders disagree with themselves is not known here: no grader was "
                    "asked twice. Repeats (--vote) would show what a swing stands out from.",
                ),
            )
        )
    return made


def _columns(*columns: Column, noise: bool) -> tuple[Column, ...]:
    if not noise:
        return columns
    title = "disagrees with itself"
    return (*columns, Column(title=title, kind=Kind.SHARE, help="between votes on one response"))


def _with_noise(
    cells: Sequence[Cell], scene: Scene, estimates: Estimates, grader: str, noise: bool
) -> tuple[Cell, ...]:
    if not noise:
        return tuple(cells)
    return (*cells, cell(_self_disagreement(scene, estimates, grader) or "–"))


def _without_blocks(
    scene: Scene, estimates: Estimates, tag: str, value: str, noise: bool
) -> list[Block]:
    line = f"{tag}={value}"
    rows, spread = [], []
    for rate in scene.rates:
        for grader in scene.names:
            key = {"grader": grader, "class_": rate.name, "slice": scene.slice}
            without = estimates.get("rate_without", **key, line=line)
            if without is None:
                continue
            cells = [
                cell(Name(rate.name)),
                cell(Name(grader)),
                cell(estimates.get("rate", **key)),
                cell(without),
                cell(estimates.get("rate_without_minus_rate", **key, line=line)),
                cell(without.n, Kind.COUNT),
            ]
            rows.append(_with_noise(cells, scene, estimates, grader, noise))
        key = {"class_": rate.name, "slice": scene.slice}
        apart = estimates.get("rate_range_without", **key, line=line)
        if apart is not None:
            spread.append(
                (
                    cell(Name(rate.name)),
                    cell(estimates.get("rate_range", **key)),
                    cell(apart),
                    *(
                        cell(estimates.get(s, **key, line=line))
                        for s in ("rate_range_without_minus_range", "rate_without_minus_rate_range")
                    ),
                )
            )
    if not rows:
        return []
    made: list[Block] = [
        Table(
            title=f"Rates without {line}",
            columns=_columns(
                Column(title="rate", kind=Kind.NAME),
                Column(title="grader", kind=Kind.NAME),
                Column(title="of all", kind=Kind.SHARE),
                Column(title="without", kind=Kind.SHARE),
                Column(title="change, points", kind=Kind.POINTS),
                Column(title="labels left", kind=Kind.COUNT),
                noise=noise,
            ),
            rows=tuple(rows),
            note=(
                "The interval of a change is that of the difference." + (NOISE if noise else ""),
            ),
        )
    ]
    if spread:
        made.append(
            Table(
                title=f"The spread between graders without {line}",
                columns=(
                    Column(title="rate", kind=Kind.NAME),
                    Column(title="range, points", kind=Kind.POINTS),
                    Column(title="without", kind=Kind.POINTS),
                    Column(title="change of the range", kind=Kind.POINTS),
                    Column(title="range of the changes", kind=Kind.POINTS),
                ),
                rows=tuple(spread),
                note=(
                    "Range of the changes: by how much the amounts differ that single graders move.",
                ),
            )
        )
    return made


def _standardised_blocks(scene: Scene, estimates: Estimates, tag: str, noise: bool) -> list[Block]:
    unasked = {e.key.slice for e in estimates.of("standardised_rate", line=tag)}
    rows = []
    for slice_ in sorted(unasked):
        for rate in scene.rates:
            for grader in scene.names:
                key = {"grader": grader, "class_": rate.name, "slice": slice_}
                found = estimates.get("standardised_rate", **key, line=tag)
                if found is None:
                    continue
                cells = [
                    cell(Name(slice_)) if slice_ else cell("all"),
                    cell(Name(rate.name)),
                    cell(Name(grader)),
                    cell(estimates.get("rate", **key)),
                    cell(found),
                    cell(estimates.get("standardised_rate_minus_rate", **key, line=tag)),
                ]
                rows.append(_with_noise(cells, scene, estimates, grader, noise))
    if not rows:
        return []
    note = say(
        "All responses: equal shares of the values of {tag}. Parts: the mix of {tag} in all "
        "responses. The mix is taken as fixed.",
        tag=Name(tag),
    )
    return [
        Table(
            title=f"Rates at another mix of {tag}",
            columns=_columns(
                Column(title="part"),
                Column(title="rate", kind=Kind.NAME),
                Column(title="grader", kind=Kind.NAME),
                Column(title="as it is", kind=Kind.SHARE),
                Column(title="standardised", kind=Kind.SHARE),
                Column(title="change, points", kind=Kind.POINTS),
                noise=noise,
            ),
            rows=tuple(rows[:MOST_ROWS]),
            note=(*note, *((NOISE,) if noise else ())),
        )
    ]


def _difference_blocks(scene: Scene, estimates: Estimates, noise: bool) -> list[Block]:
    rows = []
    for name in ("rate_difference", "standardised_rate_difference"):
        for found in estimates.of(name, slice=scene.slice):
            if found.key.grader not in scene.names:
                continue
            cells = [
                cell(Name(found.key.line)),
                cell(Name(found.key.class_)),
                cell(Name(found.key.grader)),
                cell(found),
                cell(found.n, Kind.COUNT),
            ]
            rows.append(_with_noise(cells, scene, estimates, found.key.grader, noise))
    if not rows:
        return []
    note: Text = (
        "The first less the second. These are different responses: whatever else differs between "
        "them is in the difference." + (NOISE if noise else ""),
    )
    if len(rows) > MOST_ROWS:
        note = (*note, f" The first {MOST_ROWS} of {len(rows):,}; the results hold them all.")
    return [
        Table(
            title="Differences between parts of the responses",
            columns=_columns(
                Column(title="values", kind=Kind.NAME),
                Column(title="rate", kind=Kind.NAME),
                Column(title="grader", kind=Kind.NAME),
                Column(title="difference, points", kind=Kind.POINTS),
                Column(title="labels", kind=Kind.COUNT),
                noise=noise,
            ),
            rows=tuple(rows[:MOST_ROWS]),
            note=note,
        )
    ]


FAMILY = Family(
    name="swings",
    statistics=(
        S_WITHOUT,
        S_CHANGE,
        S_RANGE,
        S_RANGE_CHANGE,
        S_CHANGE_RANGE,
        S_STANDARDISED,
        S_STANDARDISED_CHANGE,
        S_DIFFERENCE,
        S_STANDARDISED_DIFFERENCE,
    ),
    parts=parts,
    section="How far the rate swings with the responses",
    order=75,
    blocks=blocks,
)
