"""A corpus in the shape of "The Missing Compliance Class", with known truth and planted graders.

100 cores × 9 families × 3 targets; eight graders, of whom three turn compliance into the class
beside it; three votes for six of them; four decision steps for one; the labels of people on 200
responses of one target, drawn by stratum. Everything follows from one seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from voirdire.simulate.panels import classes_drawn

Array = np.ndarray[Any, Any]

SCALE = ("refusal", "evasion", "compliance")
OFF_SCALE = ("gibberish", "refused_in_cot")
CLASSES = (*SCALE, *OFF_SCALE)
REFUSAL, EVASION, COMPLIANCE, GIBBERISH, IN_COT = range(5)
UNREAD = -1

CORES, FAMILIES, TARGETS = 100, 9, ("A", "B", "C")
ENCODING = "family-9"  # the family of attacks in which hardly anybody refuses
DENSE = {"small-a": 0.04, "small-b": 0.10, "small-c": 0.20}  # share of compliance that they keep
LARGE = ("large-70", "reference", "blind", "oss-120", "oss-20")
GRADERS = (*DENSE, *LARGE)
VOTED = (*DENSE, "reference", "oss-120", "oss-20")  # asked three times
CALLS = 3
NOISE = 0.05  # the share of votes that go one step from the grader's own label
STEPS = ("as returned", "protective inverse", "empty responses", "reconciliation")
DECIDED = "blind"
PEOPLE = "people"
DRAWN = {"refusal": 50, "evasion": 90, "compliance": 60}  # 200 of the responses of target A


@dataclass(frozen=True)
class Corpus:
    """Codes of ``responses``: truth, votes ``(responses, calls)`` by grader, steps, and the people.

    ``votes`` holds −1 for a call that could not be read. ``drawn`` are the places of the responses
    that people labelled, ``people`` their labels, ``weight`` and ``stratum`` those of the draw.
    """

    truth: Array
    target: Array
    core: Array
    family: Array
    benchmark: Array
    domain: Array
    votes: dict[str, Array]
    steps: tuple[Array, ...]
    drawn: Array
    people: Array
    stratum: Array
    weight: Array

    def of_target(self, target: str) -> Array:
        return np.flatnonzero(self.target == target)

    def tags(self, rows: Array) -> dict[str, Any]:
        return {
            "response": [f"{self.target[i]}-{self.core[i]:03d}-{self.family[i]}" for i in rows],
            "core": [f"core-{self.core[i]:03d}" for i in rows],
            "family": [f"family-{self.family[i]}" for i in rows],
            "target": self.target[rows].tolist(),
            "benchmark": [f"bench-{b}" for b in self.benchmark[rows]],
            "domain": [f"domain-{d}" for d in self.domain[rows]],
        }

    def table(self, rows: Array, *, truth: bool = False) -> pl.DataFrame:
        """One row a call: response, tags, grader, vote and label; unread calls say ``???``."""
        frames = []
        words = np.array([*CLASSES, "???"], dtype=object)
        tags = self.tags(rows)
        for grader, votes in self.votes.items():
            for call in range(votes.shape[1]):
                labels = words[votes[rows, call]].tolist()
                frames.append(
                    pl.DataFrame({**tags, "label": labels}).with_columns(
                        grader=pl.lit(grader), vote=pl.lit(call + 1)
                    )
                )
        if truth:
            labels = words[self.truth[rows]].tolist()
            frames.append(
                pl.DataFrame({**tags, "label": labels}).with_columns(
                    grader=pl.lit("truth"), vote=pl.lit(1)
                )
            )
        return pl.concat(frames)

    def decisions(self) -> pl.DataFrame:
        """One row a label of the one grader; after the first step only the labels that changed."""
        rows = self.of_target("A")
        tags = pl.DataFrame(self.tags(rows))
        words = np.array(CLASSES, dtype=object)
        frames = []
        for i, (name, codes) in enumerate(zip(STEPS, self.steps, strict=True)):
            changed = np.ones(len(rows), bool) if i == 0 else codes != self.steps[i - 1]
            frames.append(
                tags.filter(pl.Series(changed)).with_columns(
                    grader=pl.lit(DECIDED),
                    step=pl.lit(name),
                    label=pl.Series(words[codes[changed]].tolist(), dtype=pl.String),
                )
            )
        return pl.concat(frames)

    def survey(self) -> pl.DataFrame:
        """One row a drawn response: a column a grader and one for the people, weight and stratum."""
        words = np.array([*CLASSES, ""], dtype=object)
        columns: dict[str, Any] = {
            **self.tags(self.drawn),
            "weight": self.weight,
            "stratum": self.stratum.tolist(),
            PEOPLE: words[self.people].tolist(),
        }
        for grader in GRADERS:
            columns[grader] = words[majority(self.votes[grader])[self.drawn]].tolist()
        return pl.DataFrame(columns)


def majority(votes: Array) -> Array:
    """The class that more than half of the calls gave, or −1: counted call by call."""
    given = []
    for calls in votes.tolist():
        read = [c for c in calls if c != UNREAD]
        winner = max(set(read), key=read.count, default=UNREAD)
        given.append(winner if 2 * read.count(winner) > len(calls) else UNREAD)
    return np.array(given)


def first(votes: Array) -> Array:
    """The first readable call, or −1."""
    return np.array([next((c for c in calls if c != UNREAD), UNREAD) for calls in votes.tolist()])


def _confusion(grader: str) -> Array:
    """P(label | truth), rows truth: what is planted for each grader."""
    p = np.zeros((5, 5))
    if grader in DENSE:
        kept = DENSE[grader]
        p[REFUSAL, :3] = 0.86, 0.14, 0.0
        p[EVASION, :3] = 0.12, 0.87, 0.01
        p[COMPLIANCE, :3] = 0.02, 0.98 - kept, kept
        p[GIBBERISH, GIBBERISH] = 1
        p[IN_COT, REFUSAL] = 1
        return p
    right = {"large-70": 0.80, "reference": 0.94, "blind": 0.88, "oss-120": 0.95, "oss-20": 0.91}
    r = right[grader]
    p[REFUSAL, :3] = r, 1 - r - 0.01, 0.01
    p[EVASION, :3] = (1 - r) / 2, r, (1 - r) / 2
    p[COMPLIANCE, :3] = 0.01, 1 - r - 0.01, r
    p[GIBBERISH, GIBBERISH] = 1
    sees_thought = grader in ("reference", "blind")
    p[IN_COT, IN_COT if sees_thought else REFUSAL] = 1
    return p


def _votes(random: np.random.Generator, own: Array, calls: int) -> Array:
    """Calls that give the grader's own label, but now and then the class one step from it."""
    votes = np.repeat(own[:, None], calls, axis=1)
    slips = (random.random(votes.shape) < NOISE) & (votes <= COMPLIANCE)
    up = random.random(votes.shape) < 0.5
    moved = np.where(up, votes + 1, votes - 1)
    moved = np.where(moved > COMPLIANCE, EVASION, np.where(moved < REFUSAL, EVASION, moved))
    return np.where(slips, moved, votes)


@cache
def corpus(seed: int = 20260601) -> Corpus:
    """The corpus; the same for the same seed."""
    random = np.random.default_rng(seed)
    target = np.repeat(np.arange(len(TARGETS)), CORES * FAMILIES)
    core = np.tile(np.repeat(np.arange(CORES), FAMILIES), len(TARGETS))
    family = np.tile(np.arange(1, FAMILIES + 1), CORES * len(TARGETS))
    # Two benchmarks with other mixes of four domains; cores of a domain are alike.
    of_core = random.random(CORES) < 0.5
    domain_of = np.where(
        of_core, random.choice(4, CORES, p=[0.4, 0.3, 0.2, 0.1]),
        random.choice(4, CORES, p=[0.1, 0.2, 0.3, 0.4]),
    )  # fmt: skip
    harm = random.normal(0, 0.7, CORES) + 0.5 * (domain_of - 1.5)
    level = harm[core] + np.array([0.0, -0.5, 0.3])[target] + np.where(family == 9, 1.2, 0.0)
    refuse = 1 / (1 + np.exp(level))
    shares = np.stack([refuse, (1 - refuse) * 0.62, (1 - refuse) * 0.38], axis=1)
    truth = classes_drawn(random, shares)
    odd = random.random(len(truth))
    truth = np.where(odd < 0.008, GIBBERISH, np.where(odd < 0.018, IN_COT, truth))
    votes: dict[str, Array] = {}
    for grader in GRADERS:
        own = classes_drawn(random, _confusion(grader)[truth])
        votes[grader] = _votes(random, own, CALLS) if grader in VOTED else own[:, None]
    unread = random.choice(len(truth), 40, replace=False)
    votes["oss-20"][unread, random.integers(0, CALLS, 40)] = UNREAD
    votes["oss-20"][unread[:2]] = UNREAD  # two responses on which it could not be read at all
    names = np.array(TARGETS)[target]
    rows = np.flatnonzero(names == "A")
    steps = _steps(random, votes[DECIDED][rows, 0], family[rows])
    drawn, stratum, weight = _draw(random, majority(votes["reference"]), rows)
    people = classes_drawn(random, _people()[truth[drawn]])
    return Corpus(
        truth=truth,
        target=names,
        core=core,
        family=family,
        benchmark=np.where(of_core, 1, 2)[core],
        domain=(domain_of + 1)[core],
        votes=votes,
        steps=steps,
        drawn=drawn,
        people=people,
        stratum=stratum,
        weight=weight,
    )


def _people() -> Array:
    """People find more delivered harm: where the truth is evasion they see compliance often."""
    p = np.eye(5)
    p[EVASION, :3] = 0.15, 0.5, 0.35
    p[COMPLIANCE, :3] = 0.0, 0.08, 0.92
    p[IN_COT] = np.eye(5)[REFUSAL]
    return p


def _steps(random: np.random.Generator, final: Array, family: Array) -> tuple[Array, ...]:
    """Labels after each decision, the last being those that shipped."""
    last = final
    reconciled = np.where((last == EVASION) & (random.random(len(last)) < 0.25), REFUSAL, last)
    emptied = np.where(
        (reconciled == REFUSAL) & (random.random(len(last)) < 0.03), EVASION, reconciled
    )
    inverse = (emptied == EVASION) & (random.random(len(last)) < np.where(family < 4, 0.6, 0.1))
    returned = np.where(inverse, REFUSAL, emptied)
    return returned, emptied, reconciled, last


def _draw(random: np.random.Generator, reference: Array, rows: Array) -> tuple[Array, Array, Array]:
    """200 responses drawn by what the reference says of them, with the inverse of their chance."""
    label = np.where(reference[rows] > COMPLIANCE, REFUSAL, reference[rows])
    label = np.where(label == UNREAD, EVASION, label)
    drawn, stratum, weight = [], list[str](), []
    for code, (name, n) in enumerate(DRAWN.items()):
        held = rows[label == code]
        drawn.append(np.sort(random.choice(held, n, replace=False)))
        stratum += [name] * n
        weight.append(np.full(n, len(held) / n))
    return np.concatenate(drawn), np.array(stratum), np.concatenate(weight)
