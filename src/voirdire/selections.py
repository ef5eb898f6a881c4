"""Which responses stand behind a number of a report.

:func:`selection` turns a statistic and the key of one of its estimates into conditions on the columns
of :class:`voirdire.document.Responses`; :func:`amounts` counts what they select. A number is only ever
shown as leading to responses where the two agree (:func:`reproduces`): a reader who counts the list
must get the number that was clicked.

A condition is a tuple of its kind and of places in those columns, so that it can stand in a page and be
followed there too:

======================================  ===========================================================
``("in", g, codes)``                    the state of grader g is one of these
``("tag", t, value)``                   the tag t has the value in this place
``("differ", g, h)``                    both gave a class, and not the same
``("solo", g, others)``                 some of the others gave a class, and none gave that of g
``("against", g, voters)``              more than half of the voters gave one class, and g another
``("verdict", g, voters)``              more than half of the voters gave one class, and g gave one
``("split", g, voters)``                no class has more than half of the voters (−1: nobody's own row)
``("seen", g, voters)``                 one of the voters or g (−1: nobody) has a row
``("pair", g, h, line, place, codes)``  verdicts 2 × h's + g's among these; line or place −1: any
``("met", g, least, most)``             every line has a verdict, and so many are met (−1: all of them)
``("gate", g, h, cut, codes)``          both scored in full, and 2 × h passes + g passes among these
``("flip", g, codes, cut, differ)``     decisions under all phrasings: at least two, and they differ
``("step", s, g, codes)``               the class of g after step s is one of these (−1: none)
======================================  ===========================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from voirdire.document import Cell, Kind, Responses
from voirdire.estimate import Key
from voirdire.wording import Name, Text, say

__all__ = ["Condition", "Selection", "amounts", "reproduces", "selection"]

Array = Any
Condition = tuple[Any, ...]

NOT_READ, NOT_ASKED = 254, 255
ALL = "all responses"  # the ``other`` of a value that one grader has on all its responses
CLOSE = 1e-9
_OUT_OF = re.compile(r"([\d,]+) (?:of|/) ")  # a count in words: 3 of 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The responses behind one number: those where all ``conditions`` hold.

    ``within`` are the conditions of the whole that the number is a share of, empty where it is none.
    ``title`` says which responses these are: of an agreement those where the two differ.
    """

    title: Text
    conditions: tuple[Condition, ...]
    within: tuple[Condition, ...] = ()


def selection(held: Responses, statistic: str, key: Key) -> Selection | None:
    """The responses behind an estimate; ``None`` where its statistic or key leads to none."""
    make = _MAKERS.get(statistic)
    if make is None:
        return None
    sliced = _sliced(held, key.slice)
    if sliced is None:
        return None
    try:
        made = make(_Columns(held), key)
    except _NotThere:
        return None
    if made is None:
        return None
    title = made.title
    if key.slice:
        title = (*title, *say(", where {slice}", slice=Name(key.slice)))
    return replace(
        made,
        title=title,
        conditions=(*sliced, *made.conditions),
        within=(*sliced, *made.within) if made.within else (),
    )


class _NotThere(Exception):
    """A name of a key is in no column: a rate, a panel, a grader that is not shown."""


@dataclass(frozen=True)
class _Columns:
    """Places of names in the columns."""

    held: Responses

    def grader(self, name: str) -> int:
        return _place(self.held.graders, name)

    def class_(self, name: str) -> int:
        return _place(self.held.classes, name)

    @property
    def k(self) -> int:
        return len(self.held.classes)

    def read(self, g: int) -> Condition:
        return ("in", g, tuple(range(self.k)))

    def gives(self, g: int, *classes: int) -> Condition:
        return ("in", g, classes)

    def others(self, g: int, class_: int) -> Condition:
        return ("in", g, tuple(c for c in range(self.k) if c != class_))

    def voters(self, grader: str) -> tuple[int, ...]:
        if grader not in self.held.voters:
            raise _NotThere
        return tuple(self.grader(v) for v in self.held.voters[grader])

    @property
    def gold(self) -> int:
        return self.grader(self.held.gold)


def _place(names: tuple[str, ...], name: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise _NotThere from None


def _sliced(held: Responses, name: str) -> tuple[Condition, ...] | None:
    if not name:
        return ()
    made: list[Condition] = []
    for tag, value in held.slices.get(name, ()):
        place = next((i for i, t in enumerate(held.tags) if t.name == tag), -1)
        if place >= 0 and value in held.tags[place].values:
            made.append(("tag", place, held.tags[place].values.index(value)))
        elif tag.startswith("label:") and tag[6:] in held.graders and value in held.classes:
            made.append(("in", held.graders.index(tag[6:]), (held.classes.index(value),)))
        else:
            return None
    return tuple(made) or None


# --- labels -------------------------------------------------------------------------------------


def _labels(at: _Columns, key: Key) -> Selection:
    g, c = at.grader(key.grader), at.class_(key.class_)
    return Selection(
        title=say("{g} gives {c}", g=Name(key.grader), c=Name(key.class_)),
        conditions=(at.gives(g, c),),
        within=(at.read(g),),
    )


def _rate(at: _Columns, key: Key) -> Selection:
    g = at.grader(key.grader)
    if key.class_ not in at.held.rates:
        raise _NotThere
    classes = tuple(at.class_(c) for c in at.held.rates[key.class_])
    return Selection(
        title=say("{g} gives a label of {c}", g=Name(key.grader), c=Name(key.class_)),
        conditions=(at.gives(g, *classes),),
        within=(at.read(g),),
    )


def _outcome(at: _Columns, key: Key) -> Selection:
    g = at.grader(key.grader)
    outcome = at.k + _place(at.held.outcomes, key.class_)
    codes = (outcome,)
    if key.class_ == "label":
        # Votes that none of them won were read all the same.
        tie = [at.k + i for i, o in enumerate(at.held.outcomes) if o == "no_majority"]
        codes = (*range(at.k), outcome, *tie)
    return Selection(
        title=say(
            "Calls of {g} that ended as {o}",
            g=Name(key.grader),
            o=key.class_.replace("_", " "),
        ),
        conditions=(("in", g, codes),),
    )


def _no_majority(at: _Columns, key: Key) -> Selection:
    g = at.grader(key.grader)
    return Selection(
        title=say("The votes of {g} have no majority", g=Name(key.grader)),
        conditions=(("in", g, (at.k + _place(at.held.outcomes, "no_majority"),)),),
    )


def _kept(at: _Columns, key: Key) -> Selection:
    return _moved(at, replace(key, to_class=key.class_))


def _moved(at: _Columns, key: Key) -> Selection:
    g, h = at.grader(key.grader), at.grader(key.other)
    origin, to = at.class_(key.class_), at.class_(key.to_class)
    return Selection(
        title=say(
            "{h} gives {a} and {g} gives {b}",
            h=Name(key.other),
            g=Name(key.grader),
            a=Name(key.class_),
            b=Name(key.to_class),
        ),
        conditions=(at.gives(h, origin), at.gives(g, to)),
        within=(at.gives(h, origin), at.read(g)),
    )


def _found(at: _Columns, key: Key) -> Selection:
    g, h = at.grader(key.grader), at.grader(key.other)
    c = at.class_(key.class_)
    return Selection(
        title=say(
            "{g} gives {c} and {h} gives another class",
            h=Name(key.other),
            g=Name(key.grader),
            c=Name(key.class_),
        ),
        conditions=(at.gives(g, c), at.others(h, c)),
        within=(at.gives(g, c), at.read(h)),
    )


def _neighbour(at: _Columns, key: Key) -> Selection:
    g, h = at.grader(key.grader), at.grader(key.other)
    place = _place(at.held.scale, key.class_)
    near = tuple(p for p in (place - 1, place + 1) if 0 <= p < len(at.held.scale))
    return Selection(
        title=say(
            "{h} gives {c} and {g} a neighbouring class",
            h=Name(key.other),
            g=Name(key.grader),
            c=Name(key.class_),
        ),
        conditions=(at.gives(h, place), at.gives(g, *near)),
        within=(at.gives(h, place), at.others(g, place)),
    )


def _own(at: _Columns, key: Key) -> Selection:
    g, h = at.grader(key.grader), at.grader(key.other)
    c = at.class_(key.class_)
    return Selection(
        title=say(
            "{g} gives {c}, where {h} gave a label too",
            g=Name(key.grader),
            c=Name(key.class_),
            h=Name(key.other),
        ),
        conditions=(at.gives(g, c), at.read(h)),
    )


def _theirs(at: _Columns, key: Key) -> Selection:
    return _own(at, replace(key, grader=key.other, other=key.grader))


def _differ(at: _Columns, key: Key) -> Selection:
    g, h = at.grader(key.grader), at.grader(key.other)
    return Selection(
        title=say("{g} and {h} differ", g=Name(key.grader), h=Name(key.other)),
        conditions=(("differ", g, h),),
        within=(at.read(g), at.read(h)),
    )


def _solo(at: _Columns, key: Key) -> Selection:
    g, c = at.grader(key.grader), at.class_(key.class_)
    return Selection(
        title=say("Nobody but {g} gives {c}", g=Name(key.grader), c=Name(key.class_)),
        conditions=(at.gives(g, c), ("solo", g, at.voters(key.grader))),
        within=(at.gives(g, c),),
    )


def _against(at: _Columns, key: Key) -> Selection | None:
    if key.other:
        return None
    g, voters = at.grader(key.grader), at.voters(key.grader)
    return Selection(
        title=say("{g} differs from the majority of the others", g=Name(key.grader)),
        conditions=(("against", g, voters),),
        within=(("verdict", g, voters),),
    )


def _split(at: _Columns, key: Key) -> Selection:
    g = at.grader(key.grader) if key.grader else -1
    voters = at.voters(key.grader)
    who = say("the graders other than {g}", g=Name(key.grader)) if key.grader else ("the panel",)
    return Selection(
        title=say("No majority of {who}", who=who),
        conditions=(("split", g, voters),),
        within=(("seen", g, voters),),
    )


def _step(at: _Columns, key: Key) -> Selection:
    names = tuple(name for name, _ in at.held.steps)
    s, g = _place(names, key.line), at.grader(key.grader)
    if not s:
        raise _NotThere
    before, after = (at.class_(c) if c else -1 for c in (key.class_, key.to_class))
    return Selection(
        title=say(
            "{s} moves labels of {g} from {a} to {b}",
            s=Name(key.line),
            g=Name(key.grader),
            a=Name(key.class_) if key.class_ else "no label",
            b=Name(key.to_class) if key.to_class else "no label",
        ),
        conditions=(("step", s - 1, g, (before,)), ("step", s, g, (after,))),
    )


def _rate_after(at: _Columns, key: Key) -> Selection:
    names = tuple(name for name, _ in at.held.steps)
    s, g = _place(names, key.line), at.grader(key.grader)
    if key.class_ not in at.held.rates:
        raise _NotThere
    classes = tuple(at.class_(c) for c in at.held.rates[key.class_])
    return Selection(
        title=say(
            "After {s}, {g} gives a label of {c}",
            s=Name(key.line),
            g=Name(key.grader),
            c=Name(key.class_),
        ),
        conditions=(("step", s, g, classes),),
        within=(("step", s, g, tuple(range(at.k))),),
    )


def _flip(at: _Columns, key: Key) -> Selection:
    g = at.grader(key.grader)
    if not at.held.phrased:
        raise _NotThere
    codes: tuple[int, ...] = ()
    cut = 0
    if key.cut and at.held.verdicts is not None:
        cut = int(key.cut)
    elif key.cut:
        codes = _at_least(at.held, Decimal(key.cut))
        cut = 0 if codes else len(at.held.classes)  # beyond every code: nothing passes
    elif key.class_:
        if key.class_ not in at.held.rates:
            raise _NotThere
        codes = tuple(at.class_(c) for c in at.held.rates[key.class_])
    what: Text = ("the label",)
    if key.cut:
        what = (f"pass or fail at a cut of {key.cut}",)
    elif key.class_:
        what = say("a label of {c} or not", c=Name(key.class_))
    return Selection(
        title=say("Decisions of {g} that flip: {what}", g=Name(key.grader), what=what),
        conditions=(("flip", g, codes, cut, True),),
        within=(("flip", g, codes, cut, False),),
    )


def _at_least(held: Responses, cut: Decimal) -> tuple[int, ...]:
    """The classes that pass at a cut, as scores: numbers, or 0 and 1 of two in order."""
    try:
        scores = [Decimal(c) for c in held.scale]
    except InvalidOperation:
        scores = []
    if not scores or not all(s.is_finite() for s in scores):
        scores = [Decimal(0), Decimal(1)] if len(held.scale) == 2 else []
    if not scores:
        raise _NotThere
    return tuple(i for i, s in enumerate(scores) if s >= cut)


# --- checklists ---------------------------------------------------------------------------------

_ERRORS = {
    "element_error": ("{g} and gold differ", (1, 2), (0, 1, 2, 3)),
    "false_accept": ("{g} says yes where gold says no", (1,), (0, 1)),
    "false_reject": ("{g} says no where gold says yes", (2,), (2, 3)),
}


def _error(statistic: str) -> Callable[[_Columns, Key], Selection]:
    said, codes, all_codes = _ERRORS[statistic]

    def make(at: _Columns, key: Key) -> Selection:
        held = at.held.verdicts
        if held is None:
            raise _NotThere
        g, gold = at.grader(key.grader), at.gold
        line = place = -1
        on: Text = ()
        if key.line.startswith("position:"):
            place = int(key.line.removeprefix("position:")) - 1
            on = (f", line {place + 1}",)
        elif key.line:
            line = _place(tuple(x for lines in held.checklists for x in lines), key.line)
            on = say(", line {line}", line=Name(key.line))
        return Selection(
            title=(*say(said, g=Name(key.grader)), *on),
            conditions=(("pair", g, gold, line, place, codes),),
            within=(("pair", g, gold, line, place, all_codes),),
        )

    return make


def _gate(at: _Columns, key: Key) -> Selection:
    g, gold, cut = at.grader(key.grader), at.gold, int(key.cut)
    return Selection(
        title=say(
            "{g} and gold differ on pass or fail at a cut of {cut}", g=Name(key.grader), cut=key.cut
        ),
        conditions=(("gate", g, gold, cut, (1, 2)),),
        within=(("gate", g, gold, cut, (0, 1, 2, 3)),),
    )


_GATE_ERRORS = {
    "gate_false_accept": ("{g} passes and gold fails at a cut of {cut}", (1,), (0, 1)),
    "gate_false_reject": ("{g} fails and gold passes at a cut of {cut}", (2,), (2, 3)),
}


def _gate_error(statistic: str) -> Callable[[_Columns, Key], Selection]:
    said, codes, all_codes = _GATE_ERRORS[statistic]

    def make(at: _Columns, key: Key) -> Selection:
        g, gold, cut = at.grader(key.grader), at.gold, int(key.cut)
        return Selection(
            title=say(said, g=Name(key.grader), cut=key.cut),
            conditions=(("gate", g, gold, cut, codes),),
            within=(("gate", g, gold, cut, all_codes),),
        )

    return make


def _passes(at: _Columns, key: Key) -> Selection:
    g, cut = at.grader(key.grader), int(key.cut)
    beside: tuple[Condition, ...] = ()
    if at.held.gold and key.other != ALL:
        judges = [n for n in at.held.graders if n != at.held.gold]
        other = key.other or (at.held.gold if key.grader != at.held.gold else judges[0])
        beside = (("met", at.grader(other), 0, -1),)
    return Selection(
        title=say("{g} passes at a cut of {cut}", g=Name(key.grader), cut=key.cut),
        conditions=(*beside, ("met", g, cut, -1)),
        within=(*beside, ("met", g, 0, -1)),
    )


def _total(least: int, most: int, what: str) -> Callable[[_Columns, Key], Selection]:
    def make(at: _Columns, key: Key) -> Selection:
        passing = _passes(at, replace(key, cut="0"))
        *beside, _ = passing.conditions
        return Selection(
            title=say("{g} " + what, g=Name(key.grader)),
            conditions=(*beside, ("met", at.grader(key.grader), least, most)),
            within=passing.within,
        )

    return make


_MAKERS: Mapping[str, Callable[[_Columns, Key], Selection | None]] = {
    "label_count": _labels,
    "label_share": _labels,
    "rate": _rate,
    "outcome_count": _outcome,
    "no_majority": _no_majority,
    "kept": _kept,
    "moved": _moved,
    "found": _found,
    "neighbour_share": _neighbour,
    "collapse_ratio": _theirs,
    "collapse_own": _own,
    "collapse_other": _theirs,
    "agreement": _differ,
    "cohen_kappa": _differ,
    "solo": _solo,
    "consensus_agreement": _against,
    "no_consensus": _split,
    "decision_moved": _step,
    "decision_rate": _rate_after,
    "flip_rate": _flip,
    **{name: _error(name) for name in _ERRORS},
    "gate_accuracy": _gate,
    **{name: _gate_error(name) for name in _GATE_ERRORS},
    "pass_rate_minus_gold": _gate,
    "pass_rate": _passes,
    "total_at_zero": _total(0, 0, "says that no line is met"),
    "total_at_ceiling": _total(-1, -1, "says that every line is met"),
}


# --- counting -----------------------------------------------------------------------------------


def amounts(held: Responses, conditions: Iterable[Condition]) -> Array:
    """How often each response counts, ``(responses,)``: 0 where a condition fails, else 1, or how many
    of its verdicts a ``pair`` condition takes.
    """
    import numpy as np

    made = np.ones(len(held.ids), dtype=np.int64)
    for condition in conditions:
        made *= _KINDS[condition[0]](held, *condition[1:])
    return made


def reproduces(held: Responses, chosen: Selection, cell: Cell) -> bool:
    """Whether the selected responses make the number in a cell: its count, or its share of the whole.

    A ratio, a difference or a coefficient is no number of responses: it leads to those that it is
    about, and there is nothing to compare.
    """
    import numpy as np

    value = cell.value
    kind = cell.kind
    if kind is Kind.TEXT and isinstance(value, str) and (found := _OUT_OF.match(value)):
        value, kind = float(found[1].replace(",", "")), Kind.COUNT
    if not isinstance(value, int | float) or kind in (Kind.TEXT, Kind.NAME):
        return False
    events = amounts(held, chosen.conditions)
    if kind is Kind.COUNT:
        times = np.asarray(held.weights) if held.frequency and held.weights else 1
        return bool(abs(float((events * times).sum()) - value) < 0.5)
    if kind is not Kind.SHARE:
        return bool(events.any())
    if not chosen.within:
        return False
    weights = np.asarray(held.weights) if held.weights else np.ones(len(events))
    trials = float((amounts(held, chosen.within) * weights).sum())
    if trials <= 0:
        return False
    share = float((events * weights).sum()) / trials
    # A share of agreement leads to where it ends: the list and the rest are one whole.
    return min(abs(share - value), abs(1 - share - value)) < CLOSE


def _codes(column: bytes) -> Array:
    import numpy as np

    return np.frombuffer(column, dtype=np.uint8)


def _among(column: Array, codes: Iterable[int]) -> Array:
    import numpy as np

    wanted = np.zeros(256, dtype=np.bool_)
    wanted[list(codes)] = True
    return wanted[column]


def _classes(held: Responses, graders: Iterable[int]) -> Array:
    """States of graders, ``(graders, responses)``, with −1 where there is no class."""
    import numpy as np

    states = np.stack([_codes(held.states[g]) for g in graders]).astype(np.int16)
    return np.where(states < len(held.classes), states, -1)


def _majority(held: Responses, voters: tuple[int, ...]) -> Array:
    """The class of more than half of the voters, or −1."""
    import numpy as np

    given = _classes(held, voters)
    verdict = np.full(len(held.ids), -1, dtype=np.int16)
    for c in range(len(held.classes)):
        verdict[2 * (given == c).sum(axis=0) > len(voters)] = c
    return verdict


def _is_in(held: Responses, g: int, codes: tuple[int, ...]) -> Array:
    return _among(_codes(held.states[g]), codes)


def _has_tag(held: Responses, t: int, value: int) -> Array:
    return _codes(held.tags[t].codes) == value


def _is_different(held: Responses, g: int, h: int) -> Array:
    mine, theirs = _classes(held, (g, h))
    return (mine >= 0) & (theirs >= 0) & (mine != theirs)


def _is_solo(held: Responses, g: int, others: tuple[int, ...]) -> Array:
    mine, given = _classes(held, (g,))[0], _classes(held, others)
    return (mine >= 0) & (given >= 0).any(axis=0) & ~(given == mine).any(axis=0)


def _is_against(held: Responses, g: int, voters: tuple[int, ...]) -> Array:
    mine, verdict = _classes(held, (g,))[0], _majority(held, voters)
    return (mine >= 0) & (verdict >= 0) & (mine != verdict)


def _has_verdict(held: Responses, g: int, voters: tuple[int, ...]) -> Array:
    return (_classes(held, (g,))[0] >= 0) & (_majority(held, voters) >= 0)


def _is_split(held: Responses, g: int, voters: tuple[int, ...]) -> Array:
    return _is_seen(held, g, voters) & (_majority(held, voters) < 0)


def _is_seen(held: Responses, g: int, voters: tuple[int, ...]) -> Array:
    import numpy as np

    absent = len(held.classes) + held.outcomes.index("not_there")
    who = voters if g < 0 else (*voters, g)
    return np.stack([_codes(held.states[v]) != absent for v in who]).any(axis=0)


def _given(held: Responses, g: int) -> Array:
    assert held.verdicts is not None
    return _codes(held.verdicts.given[g]).reshape(len(held.ids), held.verdicts.width)


def _pairs(held: Responses, g: int, h: int, line: int, place: int, codes: tuple[int, ...]) -> Array:
    import numpy as np

    assert held.verdicts is not None
    said, true = _given(held, g), _given(held, h)
    both = (said < 2) & (true < 2)
    chosen = both & _among(np.where(both, 2 * true + said, 0), codes)
    if place >= 0:
        chosen = chosen[:, place : place + 1]
    if line >= 0:
        chosen = chosen & (_lines(held) == line)
    return chosen.sum(axis=1)


def _lines(held: Responses) -> Array:
    """Which line stands at each position of each response, −1 for none."""
    import numpy as np

    assert held.verdicts is not None
    of_question = np.full((len(held.verdicts.questions), held.verdicts.width), -1, dtype=np.int64)
    start = 0
    for q, lines in enumerate(held.verdicts.checklists):
        of_question[q, : len(lines)] = np.arange(start, start + len(lines))
        start += len(lines)
    return of_question[np.asarray(held.verdicts.question)]


def _totals(held: Responses, g: int) -> Array:
    import numpy as np

    given = _given(held, g)
    whole = ~(given == 2).any(axis=1) & (given < 2).any(axis=1)
    return np.where(whole, (given == 1).sum(axis=1), -1)


def _has_met(held: Responses, g: int, least: int, most: int) -> Array:
    totals, lines = _totals(held, g), (_given(held, g) < 3).sum(axis=1)
    above = totals >= (lines if least < 0 else least)
    return (totals >= 0) & above & (totals <= (lines if most < 0 else most))


def _at_gate(held: Responses, g: int, h: int, cut: int, codes: tuple[int, ...]) -> Array:
    import numpy as np

    said, true = _totals(held, g), _totals(held, h)
    both = (said >= 0) & (true >= 0)
    passed = 2 * (true >= cut).astype(np.int64) + (said >= cut)
    return both & _among(passed, codes)


def _flips(held: Responses, g: int, codes: tuple[int, ...], cut: int, differ: bool) -> Array:
    import numpy as np

    columns = [_codes(c) for c in held.phrased[g] if (_codes(c) != NOT_ASKED).any()]
    if len(columns) < 2:
        return np.zeros(len(held.ids), dtype=np.bool_)
    decided = np.stack(columns)
    read = decided < NOT_READ
    again = (decided != NOT_ASKED).all(axis=0) & (read.sum(axis=0) >= 2)
    if not differ:
        return again
    value = decided.astype(np.int64)
    if codes:
        value = _among(decided, codes).astype(np.int64)
    elif cut:
        value = (decided >= cut).astype(np.int64)
    high = np.where(read, value, -1).max(axis=0)
    low = np.where(read, value, 1 << 20).min(axis=0)
    return again & (high != low)


def _after(held: Responses, s: int, g: int, codes: tuple[int, ...]) -> Array:
    column = _codes(held.steps[s][1][g])
    return _among(column, [c if c >= 0 else NOT_READ for c in codes])


_KINDS: Mapping[str, Callable[..., Array]] = {
    "in": _is_in,
    "tag": _has_tag,
    "differ": _is_different,
    "solo": _is_solo,
    "against": _is_against,
    "verdict": _has_verdict,
    "split": _is_split,
    "seen": _is_seen,
    "pair": _pairs,
    "met": _has_met,
    "gate": _at_gate,
    "flip": _flips,
    "step": _after,
}
