"""Panels of graders with known truth and planted faults: categorical labels in clusters.

Every grader is equally confused: on each response it repeats the truth with probability ``keeps``, else
it draws a class from the truth's shares, so that all graders and the truth expect the same counts of each
class. Faults are planted on top of that: a class that collapses, one that is inflated, a grader that
follows another, and calls that cannot be read, more often where the truth is a certain class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from voirdire.errors import UsageError
from voirdire.simulate.banks import check_count, check_share, plain_value

if TYPE_CHECKING:
    import polars as pl

    from voirdire.labels import Labels

Array = np.ndarray[Any, Any]

GOLD = "gold"
UNREAD = -1
CLASSES = ("low", "middle", "high")
MIX = (0.6, 0.3, 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapse:
    """A grader that gives a class ``ratio`` (0–1) times as often as it would, and ``to`` instead.

    ``to``: by default the neighbour on the scale, the one below where there is one.
    """

    grader: str
    class_: str
    ratio: float
    to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inflation:
    """A grader that gives a class ``ratio`` (above 1) times as often as it would, from all others."""

    grader: str
    class_: str
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """A grader that repeats another grader's label on a share of the responses (0–1)."""

    grader: str
    of: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A grader whose calls cannot be read: with ``share`` where the truth is ``class_``, else ``elsewhere``.

    Without ``class_`` the share holds for all responses: unread at random.
    """

    grader: str
    share: float
    class_: str = ""
    elsewhere: float = 0.0
    outcome: str = "unparsed"


Fault = Collapse | Inflation | Follow | Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelModel:
    """What a panel is drawn from.

    ``classes`` in order, ``mix`` their shares in the truth, ``keeps`` (0–1) how often a grader repeats the
    truth. ``clusters`` of equal size (up to one), ``correlation`` (0–1, below 1) of the truth within one:
    its shares, and those of what each grader draws instead, differ between clusters (Dirichlet). Two
    labels of one grader then have keeps² + (1 − keeps)² times that correlation.
    Raises :class:`UsageError` for what cannot be drawn.
    """

    graders: tuple[str, ...] = ("g1", "g2", "g3", "g4", "g5")
    responses: int = 900
    clusters: int = 100
    classes: tuple[str, ...] = CLASSES
    mix: tuple[float, ...] = MIX
    keeps: float = 0.7
    correlation: float = 0.2
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        check_count("the number of graders", len(self.graders))
        check_count("the number of responses", self.responses)
        check_count("the number of clusters", self.clusters)
        check_count("the number of classes", len(self.classes), least=2)
        check_share("how often a grader repeats the truth", self.keeps)
        check_share("the correlation within clusters", self.correlation)
        if self.correlation == 1:
            raise UsageError("the correlation within clusters is 1: give a number below 1.")
        for what, names in (("graders", (*self.graders, GOLD)), ("classes", self.classes)):
            if len(set(names)) < len(names) or "" in names:
                raise UsageError(
                    f"the {what} {', '.join(names)}: each needs a name of its own, and "
                    f"{GOLD} is the truth's."
                )
        if self.clusters > self.responses:
            raise UsageError(
                f"{self.clusters} clusters and {self.responses} responses: give each cluster at "
                "least one response."
            )
        if len(self.mix) != len(self.classes) or not all(m > 0 for m in self.mix):
            raise UsageError(
                f"the shares {', '.join(f'{m:g}' for m in self.mix)} of {len(self.classes)} classes: "
                "give one share above 0 for each class."
            )
        if not abs(sum(self.mix) - 1) <= 1e-6:
            raise UsageError(f"the shares of the classes add up to {sum(self.mix):g}: make it 1.")
        for fault in self.faults:
            self._check(fault)

    def _check(self, fault: Fault) -> None:
        names = [fault.grader, *([fault.of] if isinstance(fault, Follow) else [])]
        for name in names:
            if name not in self.graders:
                raise UsageError(
                    f"the fault of {fault.grader}: there is no grader {name}. Graders: "
                    f"{', '.join(self.graders)}."
                )
        if isinstance(fault, Follow):
            check_share(f"the share on which {fault.grader} follows", fault.share)
            if fault.of == fault.grader:
                raise UsageError(f"{fault.grader} follows itself: name another grader.")
            return
        named = [fault.class_] if fault.class_ or not isinstance(fault, Unread) else []
        named += [fault.to] if isinstance(fault, Collapse) and fault.to else []
        for class_ in named:
            if class_ not in self.classes:
                raise UsageError(
                    f"the fault of {fault.grader}: there is no class {class_!r}. Classes: "
                    f"{', '.join(self.classes)}."
                )
        if isinstance(fault, Unread):
            from voirdire.labels import ALL_OUTCOMES

            check_share(f"the unread share of {fault.grader}", fault.share)
            check_share(f"the unread share of {fault.grader} elsewhere", fault.elsewhere)
            if fault.outcome not in ALL_OUTCOMES or fault.outcome == "label":
                known = ", ".join(o for o in ALL_OUTCOMES if o != "label")
                raise UsageError(f"the outcome {fault.outcome!r} is not one of {known}.")
        elif isinstance(fault, Collapse):
            check_share(f"the ratio of {fault.class_} of {fault.grader}", fault.ratio)
            if fault.to == fault.class_:
                raise UsageError(
                    f"{fault.grader} gives {fault.class_} for {fault.to}: name another."
                )
        else:
            most = 1 / self.mix[self.classes.index(fault.class_)]
            check_share(
                f"the ratio of {fault.class_} of {fault.grader}", fault.ratio, least=1, most=most
            )

    @property
    def cluster(self) -> Array:
        """The cluster of each response, ``(responses,)``."""
        return np.asarray(np.arange(self.responses) * self.clusters // self.responses)


def classes_drawn(random: np.random.Generator, shares: Array) -> Array:
    """One class for each row of shares ``(n, classes)``: codes ``(n,)``."""
    edges = np.cumsum(shares, axis=-1)
    return np.asarray((random.random(len(shares))[:, None] > edges[:, :-1]).sum(-1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPanel:
    """One panel with its truth: ``true`` codes ``(n,)``, ``codes`` ``(n, graders)``, −1 where unread.

    ``outcomes`` ``(n, graders)`` says how each call ended; ``cluster`` ``(n,)``.
    """

    model: PanelModel
    seed: int
    true: Array
    codes: Array
    outcomes: Array
    cluster: Array

    @property
    def responses(self) -> list[str]:
        """The names of the responses: ``r001`` …"""
        wide = len(str(self.model.responses))
        return [f"r{i + 1:0{wide}d}" for i in range(self.model.responses)]

    def table(self, *, gold: bool = True) -> pl.DataFrame:
        """One label a row: response, cluster, grader, label and outcome; the truth is the grader gold."""
        import polars as pl

        wide = len(str(self.model.clusters))
        words = np.array([*self.model.classes, None], dtype=object)
        clusters = [f"c{c + 1:0{wide}d}" for c in self.cluster]
        names = [*self.model.graders, *([GOLD] if gold else [])]
        columns = [*self.codes.T, *([self.true] if gold else [])]
        read = np.full(len(self.true), "label", dtype=object)
        outcomes = [*self.outcomes.T, *([read] if gold else [])]
        return pl.concat(
            pl.DataFrame(
                {
                    "response": self.responses,
                    "cluster": clusters,
                    "grader": [name] * len(clusters),
                    "label": pl.Series(words[codes].tolist(), dtype=pl.String),
                    "outcome": pl.Series(ended.tolist(), dtype=pl.String),
                }
            )
            for name, codes, ended in zip(names, columns, outcomes, strict=True)
        )

    def labels(self, **options: Any) -> Labels:
        """The panel as labels, to be audited; options as for :func:`voirdire.read`."""
        from voirdire.labels import Labels

        chosen: dict[str, Any] = {
            "layout": "long", "outcome": "outcome", "scale": self.model.classes, **options
        }  # fmt: skip
        return Labels.from_frame(self.table(), **chosen)

    def truth(self) -> dict[str, Any]:
        """What the panel was drawn from, what was planted, and the true classes, for JSON."""
        model = asdict(self.model)
        model["faults"] = [
            {"fault": type(f).__name__.lower(), **asdict(f)} for f in self.model.faults
        ]
        words = [self.model.classes[c] for c in self.true]
        made: dict[str, Any] = plain_value(
            {
                "kind": "panel",
                "seed": self.seed,
                "model": model,
                "truth": dict(zip(self.responses, words, strict=True)),
            }
        )
        return made


def panel(*, seed: int | Sequence[int] | np.random.Generator = 0, **model: Any) -> SimulatedPanel:
    """One panel with its truth; ``model`` are the fields of :class:`PanelModel`.

    Faults act in the order in which they stand: first those of classes, then graders that follow (so
    that a follower repeats the faults of the one it follows), then unread calls.
    Raises :class:`UsageError` for what cannot be drawn.

    >>> one = panel(faults=(Collapse(grader="g1", class_="high", ratio=0.0),), seed=1)
    >>> int((one.codes[:, 0] == 2).sum())
    0
    """
    chosen = PanelModel(**model)
    if isinstance(seed, int):
        check_count("the seed", seed, least=0)
    random = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    n, cluster, mix = chosen.responses, chosen.cluster, np.asarray(chosen.mix)

    def shares() -> Array:
        if not chosen.correlation:
            return np.tile(mix, (n, 1))
        sizes = mix * (1 - chosen.correlation) / chosen.correlation
        return np.asarray(random.dirichlet(sizes, size=chosen.clusters)[cluster])

    true = classes_drawn(random, shares())
    columns: dict[str, Array] = {}
    for name in chosen.graders:
        instead = classes_drawn(random, shares())
        label = np.where(random.random(n) < chosen.keeps, true, instead)
        for fault in chosen.faults:
            if fault.grader == name and isinstance(fault, Collapse | Inflation):
                label = _turned(random, label, fault, chosen)
        columns[name] = label
    for fault in chosen.faults:
        if isinstance(fault, Follow):
            follows = random.random(n) < fault.share
            columns[fault.grader] = np.where(follows, columns[fault.of], columns[fault.grader])
    codes = np.stack(list(columns.values()), axis=1).astype(np.int16)
    outcomes = np.full(codes.shape, "label", dtype=object)
    for fault in chosen.faults:
        if isinstance(fault, Unread):
            place = chosen.graders.index(fault.grader)
            chance = np.full(n, fault.share)
            if fault.class_:
                chance[true != chosen.classes.index(fault.class_)] = fault.elsewhere
            lost = random.random(n) < chance
            codes[lost, place], outcomes[lost, place] = UNREAD, fault.outcome
    return SimulatedPanel(
        model=chosen,
        seed=seed if isinstance(seed, int) else -1,
        true=true,
        codes=codes,
        outcomes=outcomes,
        cluster=cluster,
    )


def _turned(
    random: np.random.Generator, label: Array, fault: Collapse | Inflation, model: PanelModel
) -> Array:
    """A grader's labels with a class that it hardly gives, or gives too often."""
    place = model.classes.index(fault.class_)
    if isinstance(fault, Collapse):
        to = model.classes.index(fault.to) if fault.to else place - 1 if place else 1
        return np.where((label == place) & (random.random(len(label)) >= fault.ratio), to, label)
    share = model.mix[place]
    taken = random.random(len(label)) < (fault.ratio - 1) * share / (1 - share)
    return np.where(taken, place, label)
