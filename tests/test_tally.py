"""A tally counts what a plain loop counts, in one order, whatever the order, blocks and shards."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voirdire import tally as tally_module
from voirdire.resampling import drawn_totals, left_out
from voirdire.tally import Tally, count, of_rows

Array = np.ndarray[Any, Any]

# One event: (cluster, cell, amount, weight). Weights are sums of powers of two, so that they add
# up exactly in any order.
CELLS = 6
EVENT = st.tuples(
    st.integers(0, 7),
    st.integers(0, CELLS - 1),
    st.integers(0, 3),
    st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.5]),
)
EVENTS = st.lists(EVENT, max_size=40)


def arrays(events: list[tuple[int, int, int, float]]) -> tuple[Array, Array, Array, Array]:
    """The clusters, cells, amounts and weights of events."""
    whole = np.array([e[:3] for e in events], dtype=np.int64).reshape(-1, 3)
    return whole[:, 0], whole[:, 1], whole[:, 2], np.array([e[3] for e in events])


def distinct(tally: Tally) -> Counter[tuple[Any, ...]]:
    """How many clusters have each (stratum, row, sizes)."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row, sizes, clusters, stratum in zip(
        tally.rows, tally.sizes, tally.clusters, tally.strata, strict=True
    ):
        found[int(stratum), tuple(row.ravel()), tuple(sizes.ravel())] += int(clusters)
    return found


def looped(
    events: list[tuple[int, int, int, float]],
    *,
    amounts: bool = False,
    weights: bool = False,
    copies: dict[int, int] | None = None,
    strata: dict[int, int] | None = None,
) -> Counter[tuple[Any, ...]]:
    """The same by a plain loop over events and clusters."""
    rows: dict[int, list[float]] = {}
    sizes: dict[int, list[float]] = {}
    for cluster, cell, amount, weight in events:
        one = amount if amounts else 1
        sizes.setdefault(cluster, [0.0] * CELLS)[cell] += one
        rows.setdefault(cluster, [0.0] * CELLS)[cell] += one * weight if weights else one
    found: Counter[tuple[Any, ...]] = Counter()
    for cluster, row in rows.items():
        times = copies[cluster] if copies else 1
        if times and (any(row) or any(sizes[cluster])):
            stratum = strata[cluster] if strata else 0
            found[stratum, tuple(row), tuple(sizes[cluster])] += times
    return found


def same(one: Tally, other: Tally) -> bool:
    """Whether two tallies are the same bit for bit, order included."""
    return all(
        np.array_equal(getattr(one, part), getattr(other, part))
        for part in ("rows", "clusters", "strata", "sizes")
    )


@given(EVENTS)
def test_events_are_counted_as_by_a_loop(events: list[tuple[int, int, int, float]]) -> None:
    cluster, cell, _, _ = arrays(events)
    assert distinct(count(cluster, cell, (CELLS,))) == looped(events)


@given(EVENTS)
def test_amounts_say_how_much_an_event_counts(events: list[tuple[int, int, int, float]]) -> None:
    cluster, cell, amounts, _ = arrays(events)
    assert distinct(count(cluster, cell, (CELLS,), amounts=amounts)) == looped(events, amounts=True)


@given(EVENTS)
def test_design_weights_are_summed_beside_the_plain_counts(
    events: list[tuple[int, int, int, float]],
) -> None:
    cluster, cell, amounts, weights = arrays(events)
    found = count(cluster, cell, (CELLS,), amounts=amounts, weights=weights)
    assert distinct(found) == looped(events, amounts=True, weights=True)
    assert found.weighted or not events
    assert found.size.sum() == sum(e[2] for e in events)
    assert found.total.sum() == sum(e[2] * e[3] for e in events)


@given(EVENTS, st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_copies_repeat_a_whole_cluster(
    events: list[tuple[int, int, int, float]], times: list[int]
) -> None:
    cluster, cell, _, _ = arrays(events)
    found = count(cluster, cell, (CELLS,), copies=np.array(times)[cluster])
    assert distinct(found) == looped(events, copies=dict(enumerate(times)))


@given(EVENTS, st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_equal_rows_of_different_strata_stay_apart(
    events: list[tuple[int, int, int, float]], strata: list[int]
) -> None:
    cluster, cell, _, _ = arrays(events)
    found = count(cluster, cell, (CELLS,), stratum=np.array(strata)[cluster])
    assert distinct(found) == looped(events, strata=dict(enumerate(strata)))


@given(EVENTS, st.integers(1, 30), st.randoms(use_true_random=False))
def test_neither_blocks_nor_the_order_of_events_show(
    events: list[tuple[int, int, int, float]], block: int, random: Any
) -> None:
    shuffled = list(events)
    random.shuffle(shuffled)
    cluster, cell, amounts, weights = arrays(events)
    strata = np.arange(8) % 2
    for weighted in (False, True):
        whole = count(
            cluster,
            cell,
            (2, 3),
            amounts=amounts,
            weights=weights if weighted else None,
            stratum=strata[cluster],
        )
        c, p, a, w = arrays(shuffled)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tally_module, "_BLOCK", block)
            pieces = count(
                c, p, (2, 3), amounts=a, weights=w if weighted else None, stratum=strata[c]
            )
        assert same(whole, pieces)
        assert whole.shape == (2, 3)


@given(EVENTS)
def test_shards_of_whole_clusters_add_up(events: list[tuple[int, int, int, float]]) -> None:
    for weighted in (False, True):

        def counted(some: list[tuple[int, int, int, float]], w: bool = weighted) -> Tally:
            cluster, cell, amounts, weights = arrays(some)
            return count(cluster, cell, (CELLS,), amounts=amounts, weights=weights if w else None)

        shards = [counted([e for e in events if e[0] % 3 == shard]) for shard in range(3)]
        assert same(shards[0] + shards[1] + shards[2], counted(events))
        assert same(shards[2] + shards[0] + shards[1], counted(events))


def test_tallies_of_different_cells_do_not_add() -> None:
    one, other = of_rows(np.ones((2, 3), dtype=np.int64)), of_rows(np.ones((2, 4), dtype=np.int64))
    with pytest.raises(ValueError, match="do not add"):
        one + other


def test_clusters_with_nothing_in_them_are_left_out() -> None:
    found = of_rows(np.array([[0, 0], [1, 0], [0, 0], [1, 0]]))
    assert found.rows.tolist() == [[1, 0]]
    assert found.clusters.tolist() == [2]
    assert found.count == 2


def test_a_response_of_weight_zero_is_still_a_response() -> None:
    found = count(np.array([0, 1]), np.array([0, 0]), (1,), weights=np.array([0.0, 2.0]))
    assert found.count == 2
    assert (found.total.tolist(), found.size.tolist()) == ([2.0], [2.0])


def test_no_events_make_an_empty_tally_that_adds() -> None:
    none = np.zeros(0, dtype=np.int64)
    empty = count(none, none, (2, 2))
    some = count(np.array([0, 0, 1]), np.array([0, 3, 1]), (2, 2))
    assert empty.count == 0
    assert same(empty + some, some)


@given(EVENTS)
def test_rows_with_one_hash_are_told_apart(events: list[tuple[int, int, int, float]]) -> None:
    cluster, cell, amounts, weights = arrays(events)

    def no_hash(rows: Array, strata: Array) -> Array:
        return np.zeros(len(rows), dtype=np.uint64)

    for w in (None, weights):
        expected = distinct(count(cluster, cell, (CELLS,), amounts=amounts, weights=w))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tally_module, "_hash", no_hash)
            found = count(cluster, cell, (CELLS,), amounts=amounts, weights=w)
        assert distinct(found) == expected


def test_the_hash_tells_permuted_and_shifted_rows_apart() -> None:
    # Rows that a careless hash confuses: the same numbers in other cells, and sums that agree.
    rows = np.array(
        [[a, b, c, d] for a in range(8) for b in range(8) for c in range(8) for d in range(8)]
    )
    found = of_rows(rows)
    assert len(found.rows) == len(rows) - 1  # all but the row of zeros
    assert len(of_rows(rows.astype(np.float64)).rows) == len(rows) - 1


def test_minus_zero_is_zero() -> None:
    found = of_rows(np.array([[0.0, 1.0], [-0.0, 1.0]]))
    assert found.clusters.tolist() == [2]


@given(EVENTS, st.integers(0, 5))
def test_the_place_of_a_row_depends_on_its_content_only(
    events: list[tuple[int, int, int, float]], shift: int
) -> None:
    cluster, cell, _, _ = arrays(events)
    renamed = (cluster * 5 + shift) % 8 + 100  # a permutation of the cluster codes
    assert same(count(cluster, cell, (CELLS,)), count(renamed, cell, (CELLS,)))


@given(EVENTS)
def test_other_cells_of_the_same_clusters_are_in_canonical_order_too(
    events: list[tuple[int, int, int, float]],
) -> None:
    # Merging and drawing rest on the canonical order, so a tally under other cells must have it.
    cluster, cell, _, _ = arrays(events)
    mapped = count(cluster, cell, (2, 3)).mapped(lambda rows: rows.sum(axis=-1))
    assert same(mapped, count(cluster, cell // 3, (2,)))


# --- clusters left out and drawn ----------------------------------------------------------------


@given(EVENTS.filter(bool), st.booleans())
def test_leaving_out_each_cluster_is_the_same_as_deleting_its_events(
    events: list[tuple[int, int, int, float]], weighted: bool
) -> None:
    cluster, cell, _, weights = arrays(events)

    def total(keep: Array) -> tuple[float, ...]:
        amount = weights[keep] if weighted else None
        return tuple(np.bincount(cell[keep], weights=amount, minlength=CELLS).tolist())

    by_hand = Counter(total(cluster != c) for c in np.unique(cluster))
    found: Counter[tuple[float, ...]] = Counter()
    tally = count(cluster, cell, (CELLS,), weights=weights if weighted else None)
    for totals, clusters, _ in left_out(tally):
        for row, times in zip(totals, clusters, strict=True):
            found[tuple(row.tolist())] += int(times)
    assert found == by_hand


def test_a_stratum_keeps_its_weight_when_one_of_its_clusters_is_left_out() -> None:
    # Stratum 0: rows 1, 2, 3 (total 6); stratum 1: rows 10, 20 (total 30); the total is 36.
    # Without 1 the stratum is (2 + 3) × 3/2 = 7.5, so 30 + 7.5 = 37.5; without 2: 36; without 3: 34.5.
    # Without 10: 20 × 2 + 6 = 46; without 20: 10 × 2 + 6 = 26.
    tally = of_rows(
        np.array([[1], [2], [3], [10], [20]]), stratum=np.array([0, 0, 0, 1, 1], dtype=np.int64)
    )
    found = sorted(
        (int(of), float(total[0]))
        for totals, _, strata in left_out(tally)
        for total, of in zip(totals, strata, strict=True)
    )
    assert found == [(0, 34.5), (0, 36.0), (0, 37.5), (1, 26.0), (1, 46.0)]


def test_a_stratum_of_one_cluster_is_never_left_out() -> None:
    tally = of_rows(np.array([[1], [2], [3]]), stratum=np.array([0, 0, 1], dtype=np.int64))
    assert all((strata == 0).all() for _, _, strata in left_out(tally))


@settings(max_examples=20)
@given(EVENTS.filter(bool), st.integers(0, 10))
def test_every_replicate_draws_as_many_clusters_as_there_are(
    events: list[tuple[int, int, int, float]], seed: int
) -> None:
    cluster, cell, _, _ = arrays(events)
    tally = count(cluster, cell, (CELLS,))
    # A cell that is 1 in each cluster counts the clusters drawn.
    ones = Tally(
        np.ones((len(tally.rows), 1), dtype=np.int64), tally.clusters, tally.strata, tally.sizes
    )
    drawn = np.concatenate(list(drawn_totals(ones, replicates=50, seed=seed)))
    assert (drawn == tally.count).all()


def test_draws_have_the_mean_and_variance_of_the_multinomial() -> None:
    # 3 clusters of 0 events, 5 of 1, 2 of 4: total 13, mean 1.3 a cluster. A replicate is the sum of
    # 10 draws: mean 13, variance 10 × (mean of squares − 1.3²) = 10 × ((5 + 32)/10 − 1.69) = 20.1.
    rows = np.repeat([[0, 1], [1, 1], [4, 1]], [3, 5, 2], axis=0)
    replicates = 40_000
    drawn = np.concatenate(list(drawn_totals(of_rows(rows), replicates=replicates, seed=1)))[:, 0]
    sd = 20.1**0.5
    assert abs(drawn.mean() - 13) < 4 * sd / replicates**0.5
    assert abs(drawn.var() - 20.1) < 4 * 20.1 * (2 / replicates) ** 0.5


def test_both_ways_of_drawing_are_the_same_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.repeat([[0, 3], [1, 2], [3, 0]], [6, 10, 4], axis=0)
    tally = of_rows(rows)
    replicates = 20_000
    one = np.concatenate(list(drawn_totals(tally, replicates=replicates, seed=0)))[:, 0]
    monkeypatch.setattr("voirdire.resampling._DRAWS", 0)
    other = np.concatenate(list(drawn_totals(tally, replicates=replicates, seed=0)))[:, 0]
    # Mean 22 = 10 + 12; variance 20 × ((10 + 36)/20 − 1.1²) = 21.8.
    error = (21.8 / replicates) ** 0.5
    assert abs(one.mean() - 22) < 4 * error
    assert abs(other.mean() - 22) < 4 * error
    assert abs(one.var() / 21.8 - 1) < 4 * (2 / replicates) ** 0.5
    assert abs(other.var() / 21.8 - 1) < 4 * (2 / replicates) ** 0.5


def test_draws_are_made_within_strata() -> None:
    # Two clusters in each stratum; cells: events of stratum 0, of stratum 1, clusters of each.
    rows = np.array([[1, 0, 1, 0], [2, 0, 1, 0], [0, 5, 0, 1], [0, 7, 0, 1]])
    tally = of_rows(rows, stratum=np.array([0, 0, 1, 1], dtype=np.int64))
    drawn = np.concatenate(list(drawn_totals(tally, replicates=200, seed=3)))
    assert (drawn[:, 2] == 2).all()
    assert (drawn[:, 3] == 2).all()
    assert set(drawn[:, 0]) == {2.0, 3.0, 4.0}
    assert set(drawn[:, 1]) == {10.0, 12.0, 14.0}
    # The strata are drawn apart from each other: their totals do not go together.
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 4 / 200**0.5


def test_small_chunks_change_no_replicate(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = of_rows(np.arange(40).reshape(10, 4))
    whole = np.concatenate(list(drawn_totals(tally, replicates=300, seed=5)))
    left = np.concatenate([totals for totals, _, _ in left_out(tally)])
    monkeypatch.setattr("voirdire.resampling._CHUNK", 8)
    assert np.array_equal(np.concatenate(list(drawn_totals(tally, replicates=300, seed=5))), whole)
    assert np.array_equal(np.concatenate([totals for totals, _, _ in left_out(tally)]), left)


def test_large_counts_are_drawn_without_rounding() -> None:
    # Beyond 2**24 float32 holds no longer every whole number.
    tally = of_rows(np.array([[2**24 + 1], [2**24 + 3], [2**24 + 5]]))
    for totals in drawn_totals(tally, replicates=100, seed=0):
        assert (totals % 2 == 1).all()
