"""The judge at a gate: how often its pass or fail is gold’s, and how many responses it lets pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from voirdire.document import Block, Cell, Column, Kind, Paragraph, Table, Tone, cell, worded
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import Key
from voirdire.scene import Scene
from voirdire.sides import Sides, counted_of, sides
from voirdire.stats._checklist import KINDS
from voirdire.stats.base import Array, Estimates, Family, Given, Part, Statistic
from voirdire.tally import Tally
from voirdire.wording import Name, Text, plural, say

SECTION = "Gate against gold"
PAPER = "“Three Ways Classical Test Theory Can Mislead About LLM Judges”"
NO_RESPONSE = "no response was scored in full"
NONE_BOTH = "no response was scored in full by gold and the judge"
NONE_FAILS = "gold passes every response that both scored in full"
NONE_PASSES = "gold fails every response that both scored in full"
NONE_ASKED = "there is no response that gold scored in full and the judge was asked about"

GATE_ACCURACY = Estimand(
    name="gate_accuracy",
    title="Gate accuracy",
    question=(
        "On which share of the responses that both scored in full is the judge’s pass or fail at "
        "this cut the same as gold’s?"
    ),
    describes=Describes.BOTH,
    keys=("grader", "cut"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "gold", "cut"),
    low=0,
    high=1,
    reading="It leaves out what the judge could not be read on: see the two bounds beside it.",
    moves_with=("how many responses lie near the cut", "how many pass by gold"),
    undefined_when=NONE_BOTH,
    source=Source(text=f"{PAPER}, Table A.6"),
    formula=r"A_{J} = \frac{1}{n}\, \#\{i \mid (X_{i} \ge c) = (G_{i} \ge c)\}",
    conventions=(
        "X_i, G_i: how many lines of response i the judge and gold say are met; c: the cut, in "
        "lines; n: the responses that both scored in full. A total at the cut passes."
    ),
)
UNPARSED_REJECTED = Estimand(
    name="gate_accuracy_unparsed_rejected",
    title="Gate accuracy, unread as rejected",
    question=(
        "On which share of all responses that the judge was asked about is the gate right, if it "
        "rejects a response whose verdicts could not be read?"
    ),
    describes=Describes.BOTH,
    keys=("grader", "cut"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "gold", "cut"),
    low=0,
    high=1,
    reading="What a gate does that fails whatever it cannot read.",
    moves_with=("how many responses pass by gold", "how many outputs could not be read"),
    undefined_when=NONE_ASKED,
    source=Source(text=f"{PAPER}, Appendix A.1"),
    formula=(
        r"\frac{1}{N} \left(\#\{i \text{ read} \mid (X_{i} \ge c) = (G_{i} \ge c)\} + \#\{i \text{ "
        r"unread} : G_{i} < c\}\right)"
    ),
    conventions=(
        "X_i, G_i: how many lines of response i the judge and gold say are met; c: the cut, in "
        "lines; N: the responses that gold scored in full and the judge was asked about. Read are "
        "those that the judge scored in full, unread those with a call whose verdicts could not be "
        "read."
    ),
)
UNPARSED_WRONG = Estimand(
    name="gate_accuracy_unparsed_wrong",
    title="Gate accuracy, unread as errors",
    question=(
        "On which share of all responses that the judge was asked about is the gate right, if each "
        "one whose verdicts could not be read counts as a gate error?"
    ),
    describes=Describes.BOTH,
    keys=("grader", "cut"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "gold", "cut"),
    low=0,
    high=1,
    reading="The lower bound of gate accuracy over all responses.",
    moves_with=("how many responses lie near the cut", "how many outputs could not be read"),
    undefined_when=NONE_ASKED,
    source=Source(text=f"{PAPER}, Appendix A.1"),
    formula=r"\frac{1}{N}\, \#\{i \text{ read} \mid (X_{i} \ge c) = (G_{i} \ge c)\}",
    conventions=(
        "X_i, G_i: how many lines of response i the judge and gold say are met; c: the cut, in "
        "lines; N: the responses that gold scored in full and the judge was asked about. Read are "
        "those that the judge scored in full."
    ),
)
FALSE_PASS = Estimand(
    name="gate_false_accept",
    title="False passes of the gate",
    question="Which share of the responses that gold fails at this cut does the judge pass?",
    describes=Describes.BOTH,
    keys=("grader", "cut"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "gold", "cut"),
    low=0,
    high=1,
    reading=(
        "What a gate lets through. A few wrong lines suffice where many responses lie just below "
        "the cut. Unread outputs are in neither count: a gate that rejects them passes none."
    ),
    moves_with=("how many of gold’s fails lie just below the cut", "false accepts of lines"),
    undefined_when=NONE_FAILS,
    source=Source(
        text="False positive fraction: Pepe 2003, The Statistical Evaluation of Medical Tests for "
        f"Classification and Prediction, ch. 2; the gate: {PAPER}, Table A.6"
    ),
    formula=r"\frac{\#\{i \mid X_{i} \ge c,\ G_{i} < c\}}{\#\{i \mid G_{i} < c\}}",
    conventions=(
        "X_i, G_i: how many lines of response i the judge and gold say are met; c: the cut, in "
        "lines; over the responses that both scored in full. A total at the cut passes. The "
        "denominator is gold’s fails, not the judge’s passes."
    ),
)
FALSE_FAIL = Estimand(
    name="gate_false_reject",
    title="False fails of the gate",
    question="Which share of the responses that gold passes at this cut does the judge fail?",
    describes=Describes.BOTH,
    keys=("grader", "cut"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "gold", "cut"),
    low=0,
    high=1,
    reading=(
        "What a gate throws away. Unread outputs are in neither count: a gate that rejects them "
        "fails more."
    ),
    moves_with=("how many of gold’s passes lie just at the cut", "false rejects of lines"),
    undefined_when=NONE_PASSES,
    source=Source(
        text="False negative fraction: Pepe 2003, The Statistical Evaluation of Medical Tests for "
        f"Classification and Prediction, ch. 2; the gate: {PAPER}, Table A.6"
    ),
    formula=r"\frac{\#\{i \mid X_{i} < c,\ G_{i} \ge c\}}{\#\{i \mid G_{i} \ge c\}}",
    conventions=(
        "X_i, G_i: how many lines of response i the judge and gold say are met; c: the cut, in "
        "lines; over the responses that both scored in full. A total at the cut passes. The "
        "denominator is gold’s passes, not the judge’s fails."
    ),
)
PASS_RATE = Estimand(
    name="pass_rate",
    title="Pass rate",
    question="Which share of the responses that it scored in full passes at this cut?",
    describes=Describes.BOTH,
    keys=("grader", "other", "cut"),
    unit=Unit.SHARE,
    scale=Scale.LOGIT,
    needs=("label", "cut"),
    low=0,
    high=1,
    reading="Beside gold it is on the responses that both scored in full.",
    moves_with=("the responses in the bank", "the grader"),
    undefined_when=NO_RESPONSE,
    source=Source(text=f"{PAPER}, Appendix A.2"),
    formula=r"\frac{1}{n}\, \#\{i \mid X_{i} \ge c\}",
    conventions=(
        "X_i: how many lines of response i are met, c: the cut, in lines; n: the responses scored "
        "in full. A total at the cut passes."
    ),
)
PASS_RATE_MINUS_GOLD = Estimand(
    name="pass_rate_minus_gold",
    title="Pass rate: judge less gold",
    question=(
        "By how much does the judge’s pass rate at this cut exceed gold’s, on the responses that "
        "both scored in full?"
    ),
    describes=Describes.BOTH,
    keys=("grader", "cut"),
    unit=Unit.POINTS,
    scale=Scale.PLAIN,
    needs=("label", "gold", "cut"),
    low=-1,
    high=1,
    reading=(
        "Above 0 the gate is lenient, below 0 harsh. 0 is not accuracy: errors of both kinds can "
        "cancel."
    ),
    moves_with=("how many responses lie near the cut",),
    undefined_when=NONE_BOTH,
    source=Source(text=f"{PAPER}, Appendix A.2"),
    formula=r"\frac{1}{n} \left(\#\{i \mid X_{i} \ge c\} - \#\{i \mid G_{i} \ge c\}\right)",
    conventions=(
        "X_i, G_i: how many lines of response i the judge and gold say are met; c: the cut, in "
        "lines; n: the responses that both scored in full."
    ),
)


# --- cells --------------------------------------------------------------------------------------
# Every tally: the number of responses, then for each cut its table, flattened.


def _passed(cells: Array, given: Given) -> tuple[Array, Array]:
    """Responses that pass, ``(..., sides, cuts)``, and the number of responses in that shape."""
    cuts = given["cuts"]
    if given["paired"]:
        table = cells[..., 1:].reshape(*cells.shape[:-1], cuts, 2, 2)  # gold × judge
        passed = np.stack([table[..., 1].sum(-1), table[..., 1, :].sum(-1)], axis=-2)
    else:
        passed = cells[..., None, 1:]
    return passed, np.broadcast_to(cells[..., :1, None], passed.shape)


def _pass_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    passed, n = _passed(cells, given)
    flat = (*cells.shape[:-1], -1)
    return passed.reshape(flat), np.asarray(n.reshape(flat))


def _pass_rate(cells: Array, given: Given) -> Array:
    events, trials = _pass_parts(cells, given)
    return np.asarray(events / trials)


def _minus_gold(cells: Array, given: Given) -> Array:
    passed, n = _passed(cells, given)
    return np.asarray((passed[..., 0, :] - passed[..., 1, :]) / n[..., 0, :])


def _same_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    table = cells[..., 1:].reshape(*cells.shape[:-1], given["cuts"], 2, 2)
    same = table[..., 0, 0] + table[..., 1, 1]
    return same, np.asarray(np.broadcast_to(cells[..., :1], same.shape))


def _false_passes(cells: Array, given: Given) -> tuple[Array, Array]:
    table = cells[..., 1:].reshape(*cells.shape[:-1], given["cuts"], 2, 2)
    return table[..., 0, 1], np.asarray(table[..., 0, :].sum(-1))


def _false_fails(cells: Array, given: Given) -> tuple[Array, Array]:
    table = cells[..., 1:].reshape(*cells.shape[:-1], given["cuts"], 2, 2)
    return table[..., 1, 0], np.asarray(table[..., 1, :].sum(-1))


def _rejected_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    table = cells[..., 1:].reshape(*cells.shape[:-1], given["cuts"], 2, 3)
    right = table[..., 0, 0] + table[..., 1, 1] + table[..., 0, 2]
    return right, np.asarray(np.broadcast_to(cells[..., :1], right.shape))


def _wrong_parts(cells: Array, given: Given) -> tuple[Array, Array]:
    table = cells[..., 1:].reshape(*cells.shape[:-1], given["cuts"], 2, 3)
    right = table[..., 0, 0] + table[..., 1, 1]
    return right, np.asarray(np.broadcast_to(cells[..., :1], right.shape))


def _responses(cells: Array, given: Given) -> Array:
    return np.asarray(cells[..., :1])


def _share_of(estimand: Estimand, of: Any) -> Statistic:
    def solve(cells: Array, given: Given) -> Array:
        events, trials = of(cells, given)
        return np.asarray(events / trials)

    return Statistic(estimand=estimand, solve=solve, n=_responses, share=of)


def _error_of(estimand: Estimand, of: Any) -> Statistic:
    """A share of what gold fails, or of what it passes: those alone are behind it."""

    def solve(cells: Array, given: Given) -> Array:
        events, trials = of(cells, given)
        return np.asarray(events / trials)

    def reason(cells: Array, given: Given) -> list[str]:
        why = estimand.undefined_when if cells[..., 0].sum() else NONE_BOTH
        return [why] * int(given["cuts"])

    return Statistic(
        estimand=estimand,
        solve=solve,
        n=lambda cells, given: np.asarray(of(cells, given)[1]),
        share=of,
        reason=reason,
    )


S_ACCURACY = _share_of(GATE_ACCURACY, _same_parts)
S_REJECTED = _share_of(UNPARSED_REJECTED, _rejected_parts)
S_WRONG = _share_of(UNPARSED_WRONG, _wrong_parts)
S_PASS = Statistic(estimand=PASS_RATE, solve=_pass_rate, n=_responses, share=_pass_parts)
S_MINUS = Statistic(estimand=PASS_RATE_MINUS_GOLD, solve=_minus_gold, n=_responses)
S_FALSE_PASS = _error_of(FALSE_PASS, _false_passes)
S_FALSE_FAIL = _error_of(FALSE_FAIL, _false_fails)
STATISTICS = (S_ACCURACY, S_REJECTED, S_WRONG, S_FALSE_PASS, S_FALSE_FAIL, S_PASS, S_MINUS)


def asked_of(scene: Scene, grader: str) -> tuple[Array, Array]:
    """The responses that a gate over all of them is judged on, and those of them that were not read.

    Responses that gold scored in full and the judge either scored in full or was asked about in
    vain: ``(rows, unread)``, both ``(rows,)``.
    """
    bank = scene.bank
    assert bank is not None
    gold, judge = bank.places[scene.gold], bank.places[grader]
    read = bank.complete[:, judge]
    rows = np.flatnonzero(bank.complete[:, gold] & (read | bank.unread[:, judge]))
    return rows, ~read[rows]


def parts(scene: Scene) -> Iterable[Part]:
    cuts = np.array(scene.options.cut, dtype=np.int64)
    if not len(cuts):
        return
    for one in sides(scene):
        asks: list[tuple[Statistic, tuple[Key, ...]]] = []
        if one.paired:
            keys = _at((Key(grader=one.grader),), cuts)
            asks = [(s, keys) for s in (S_ACCURACY, S_FALSE_PASS, S_FALSE_FAIL, S_MINUS)]
        yield Part(
            tally=_scored(scene, one, cuts),
            asks=(*asks, (S_PASS, _at(one.keys, cuts))),
            given={"cuts": len(cuts), "paired": one.paired},
        )
        if one.paired:
            keys = _at((Key(grader=one.grader),), cuts)
            yield Part(
                tally=_asked(scene, one.grader, cuts),
                asks=((S_REJECTED, keys), (S_WRONG, keys)),
                given={"cuts": len(cuts)},
            )


def _at(keys: Sequence[Key], cuts: Array) -> tuple[Key, ...]:
    return tuple(Key(grader=k.grader, other=k.other, cut=str(c)) for k in keys for c in cuts)


def _tables(state: Array, states: int) -> Array:
    """One response a row: 1, then for each cut a 1 in the cell of its state; ``state``: (rows, cuts)."""
    table = state[:, :, None] == np.arange(states)
    flat = table.reshape(len(state), -1).astype(np.int8)
    return np.concatenate([np.ones((len(state), 1), dtype=np.int8), flat], axis=1)


def _scored(scene: Scene, one: Sides, cuts: Array) -> Tally:
    bank = scene.bank
    assert bank is not None
    places = [bank.places[name] for name in one.names]

    def cells(rows: Array) -> Array:
        passed = bank.totals[rows][:, places, None] >= cuts  # rows × sides × cuts
        if one.paired:
            return _tables(2 * passed[:, 1] + passed[:, 0], 4)
        ones = np.ones((len(rows), 1), dtype=np.int8)
        return np.concatenate([ones, passed[:, 0].astype(np.int8)], axis=1)

    return scene.summed(one.rows, cells, (1 + len(cuts) * (4 if one.paired else 1),))


def _asked(scene: Scene, grader: str, cuts: Array) -> Tally:
    bank = scene.bank
    assert bank is not None
    gold, judge = bank.places[scene.gold], bank.places[grader]
    rows, _ = asked_of(scene, grader)

    def cells(rows: Array) -> Array:
        true = bank.totals[rows, gold][:, None] >= cuts
        said = np.where(
            bank.complete[rows, judge][:, None], bank.totals[rows, judge][:, None] >= cuts, 2
        )
        return _tables(3 * true + said, 6)

    return scene.summed(rows, cells, (1 + len(cuts) * 6,))


# --- the report ---------------------------------------------------------------------------------


def blocks(scene: Scene, estimates: Estimates) -> Sequence[Block]:
    if not scene.options.cut:
        text = (
            "No gate is looked at: name the numbers of lines that a response must meet to pass, for "
            "example --cut 5."
        )
        return (Paragraph(text=(text,), tone=Tone.NOTE),)
    if not scene.gold:
        return (_pass_rates(scene, estimates),)
    rows, wrong = [], []
    for grader in scene.panel:
        for cut in map(str, scene.options.cut):
            key = {"cut": cut, "slice": scene.slice}
            gold = estimates.get("pass_rate", grader=scene.gold, **key)
            if len(scene.panel) > 1:
                gold = estimates.get("pass_rate", grader=scene.gold, other=grader, **key)
            rows.append(
                (
                    cell(Name(grader)),
                    cell(cut),
                    *(cell(estimates.get(s, grader=grader, **key)) for s in _OF_GATE),
                    cell(estimates.get("pass_rate", grader=grader, **key)),
                    cell(gold),
                    cell(estimates.get("pass_rate_minus_gold", grader=grader, **key)),
                )
            )
            errors = [
                estimates.get(s, grader=grader, **key)
                for s in ("gate_false_accept", "gate_false_reject")
            ]
            counts = [worded(counted_of(scene, e), e) for e in errors]
            wrong.append(
                (
                    cell(Name(grader)),
                    cell(cut),
                    *(c for e, n in zip(errors, counts, strict=True) for c in (cell(e), n)),
                )
            )
    if not rows:
        return ()
    table = Table(
        title="The judge’s pass or fail beside gold’s",
        columns=(
            Column(title="judge", kind=Kind.NAME),
            Column(title="cut"),
            Column(title="gate accuracy", kind=Kind.SHARE),
            Column(
                title="unread as rejected",
                kind=Kind.SHARE,
                help="over all responses that the judge was asked about",
            ),
            Column(
                title="unread as errors",
                kind=Kind.SHARE,
                help="over all responses that the judge was asked about",
            ),
            Column(title="judge passes", kind=Kind.SHARE),
            Column(title="gold passes", kind=Kind.SHARE),
            Column(title="difference, points", kind=Kind.POINTS),
        ),
        rows=tuple(rows),
        note=_note(scene),
    )
    return (table, _errors(wrong))


def _errors(rows: Sequence[tuple[Cell, ...]]) -> Table:
    return Table(
        title="What the gate gets wrong",
        columns=(
            Column(title="judge", kind=Kind.NAME),
            Column(title="cut"),
            Column(title="false passes", kind=Kind.SHARE),
            Column(title="of gold’s fails"),
            Column(title="false fails", kind=Kind.SHARE),
            Column(title="of gold’s passes"),
        ),
        rows=tuple(rows),
        note=(
            "Of the responses that gold fails, the share that the judge passes; of those that gold "
            "passes, the share that it fails. Both are over the responses that both scored in full: "
            "a gate that rejects what it cannot read fails those besides.",
        ),
    )


_OF_GATE = ("gate_accuracy", "gate_accuracy_unparsed_rejected", "gate_accuracy_unparsed_wrong")


def _note(scene: Scene) -> Text:
    """How many responses stand behind the columns, judge by judge."""
    bank = scene.bank
    assert bank is not None
    said: Text = (
        "A response passes with at least as many lines met as the cut says. Gate accuracy and pass "
        "rates are over the responses that both scored in full; the two bounds add those that the "
        "judge was asked about and could not be read on.",
    )
    for grader in scene.panel:
        rows, unread = asked_of(scene, grader)
        lost = bank.responses - len(rows)
        tail = (
            f"; {plural(lost, 'response')} left out, as gold or the judge lacks a verdict on some line"
            if lost
            else ""
        )
        said = (
            *said,
            *say(
                " {grader}: {read} scored by both, {unread} not read{tail}.",
                grader=Name(grader),
                read=int((~unread).sum()),
                unread=int(unread.sum()),
                tail=tail,
            ),
        )
    return said


def _pass_rates(scene: Scene, estimates: Estimates) -> Block:
    return Table(
        title="Pass rates",
        columns=(
            Column(title="judge", kind=Kind.NAME),
            *(Column(title=f"at least {cut}", kind=Kind.SHARE) for cut in scene.options.cut),
        ),
        rows=tuple(
            (
                cell(Name(grader)),
                *(
                    cell(estimates.get("pass_rate", grader=grader, cut=str(cut), slice=scene.slice))
                    for cut in scene.options.cut
                ),
            )
            for grader in scene.panel
        ),
        note=(
            "Shares of the responses that each scored in full. Whether a pass is right is not "
            "answerable from this file: it needs gold.",
        ),
    )


FAMILY = Family(
    name="gate",
    statistics=STATISTICS,
    parts=parts,
    section=SECTION,
    order=10,
    kinds=KINDS,
    blocks=blocks,
)
