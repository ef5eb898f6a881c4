"""What an audit of a checklist says and what it cannot: the decision table and the reporting lines.

Both follow “Three Ways Classical Test Theory Can Mislead About LLM Judges” (TWM): Table 1 pairs each
question with the quantity that answers it, Section 5 and Table A.8 give the four lines that belong
into every disclosure. A question whose requirement is not in the file is answered with what is
missing, never with a number that answers another question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voirdire.document import (
    Block,
    Cell,
    Column,
    Heading,
    Paragraph,
    Paste,
    Table,
    Tone,
    cell,
    display,
    display_edge,
    display_interval,
)
from voirdire.estimate import Estimate
from voirdire.labels import Labels, gold_name
from voirdire.line_errors import counted_errors
from voirdire.scene import Estimates, Scene
from voirdire.sides import ALL, Sides, counted_of, sides, standard, standards
from voirdire.wording import Lead, Name, Text, counted, listed, plural, say

Array = np.ndarray[Any, Any]

NOT_ANSWERABLE = "not answerable from this file: it needs {what}"
GOLD, PHRASINGS = "gold labels", "varied phrasings"
NO_PAIR = "judge and gold share no verdict on any line"
MOST_JUDGES = 8  # with tables of their own; the results hold all of them
WORST_LINES = 5  # named by TWM's fourth line


# --- what is said of one judge ------------------------------------------------------------------


@dataclass(frozen=True)
class Account:
    """Where to look up what an audit says of one judge, and of gold on the same responses."""

    scene: Scene
    estimates: Estimates
    judge: str

    @property
    def gold(self) -> str:
        return self.scene.gold

    @property
    def cuts(self) -> list[int]:
        return list(self.scene.options.gates)

    @property
    def middle(self) -> int | None:
        """The middle cut; of an even number of them the lower one."""
        return self.cuts[(len(self.cuts) - 1) // 2] if self.cuts else None

    def of_judge(self, statistic: str, **key: str) -> Estimate | None:
        return self.estimates.get(statistic, grader=self.judge, slice=self.scene.slice, **key)

    def of_gold(self, statistic: str, **key: str) -> Estimate | None:
        other = "" if len(self.scene.panel) == 1 else self.judge
        return self.estimates.get(
            statistic, grader=self.gold, other=other, slice=self.scene.slice, **key
        )

    def whole(self, statistic: str) -> Estimate | None:
        """The judge's value on all responses that it scored, beyond those that have gold."""
        return self.of_judge(statistic, other=ALL)

    def compared(self) -> Sides:
        """The responses on which the judge stands beside gold, or alone where there is none."""
        return self._side(lambda s: not s.keys[0].other)

    def alone(self) -> Sides | None:
        """All responses that the judge scored, where gold covers only a part of them."""
        found = [s for s in self._mine() if s.keys[0].other == ALL]
        return found[0] if found else None

    def _mine(self) -> list[Sides]:
        return [s for s in sides(self.scene) if s.grader == self.judge]

    def _side(self, which: Callable[[Sides], bool]) -> Sides:
        return next(s for s in self._mine() if which(s))

    def size(self, side: Sides) -> Text:
        """How many responses, in how many clusters."""
        bank = self.scene.bank
        assert bank is not None
        n, clusters = float(len(side.rows)), len(np.unique(bank.cluster[side.rows]))
        if bank.frequency and bank.weights is not None:
            n = float(bank.weights[side.rows].sum())
        held = "" if bank.own_cluster else f" in {plural(clusters, 'cluster')}"
        return (f"{counted(n)} {'response' if n == 1 else 'responses'}{held}",)


def said(estimate: Estimate | None, *, interval: bool = True) -> str:
    """A value as it stands in a sentence, with its interval; or why it cannot be said."""
    if estimate is None:
        return "not determined"
    if estimate.number is None:
        return f"not determined ({estimate.reason})"
    shown = cell(estimate)
    limits = display_interval(shown) if interval else ""
    edge = display_edge(estimate) if interval else ""
    return f"{display(shown)}{' ' + limits if limits else ''}{' (' + edge + ')' if edge else ''}"


def _known(estimate: Estimate | None) -> bool:
    return estimate is not None and estimate.number is not None


# --- the decision table -------------------------------------------------------------------------


def decision_table(labels: Labels, scene: Scene, estimates: Estimates) -> list[Block]:
    """TWM's Table 1 for this file: five questions, and what answers them.

    Two tables, because three questions are about the judge and two about the bank: no accuracy
    against gold shares a table with a coefficient that only looks like one.
    """
    judges = scene.panel[:MOST_JUDGES]
    if not judges:
        return []
    blocks: list[Block] = [Heading(text="What this file answers"), *_whose_gold(labels, scene)]
    several = len(scene.panel) > 1
    for judge in judges:
        account = Account(scene=scene, estimates=estimates, judge=judge)
        name = f": {judge}" if several else ""
        blocks.append(
            _table(
                f"Questions about the judge{name}",
                (
                    ("How often does its pass or fail match gold?", GOLD, _gate(account)),
                    ("Where does it err, and in which direction?", GOLD, _direction(account)),
                    (
                        "Do its decisions depend on the wording of its instruction?",
                        PHRASINGS,
                        _phrasings(labels, account),
                    ),
                ),
            )
        )
        blocks.append(
            _table(
                f"Questions about the bank and its checklist{name}",
                (
                    ("Do the lines rank responses consistently?", "", _ranking(account)),
                    (
                        "Would pass or fail survive another sample of lines?",
                        "",
                        _another_sample(account),
                    ),
                ),
                note=(
                    "These answers are no measure of the judge: a scorer that never errs has values "
                    "such as gold’s."
                    if scene.gold
                    else "These answers describe bank and judge together, and nothing in them "
                    "tells the two apart.",
                ),
            )
        )
    left = scene.panel[MOST_JUDGES:]
    if left:
        blocks.append(
            Paragraph(
                tone=Tone.NOTE,
                text=say("{judges}: in the results, without a table here.", judges=listed(left)),
            )
        )
    return blocks


def _whose_gold(labels: Labels, scene: Scene) -> list[Block]:
    """Whom “gold” means where that is not plain from the names."""
    text: Text = ()
    if standard(scene) != ("gold",):
        text = say(
            "A judge is called gold here. Wherever this report says “gold” without a name it means "
            "{standard}, the standard.",
            standard=Name(scene.gold),
        )
    named = gold_name(labels.grader_names, labels.options)
    if named and not scene.gold and named not in scene.names:
        text = say(
            "{gold} is gold and has no verdict on any line, so nothing is compared with it.",
            gold=Name(named),
        )
    return [Paragraph(tone=Tone.NOTE, text=text)] if text else []


def _table(title: str, rows: Sequence[tuple[str, str, Text]], *, note: Text = ()) -> Table:
    def question(text: str, requires: str) -> Cell:
        return cell(f"{text} Requires {requires or 'neither gold nor phrasings'}.")

    return Table(
        title=title,
        columns=(Column(title="question"), Column(title="this file says")),
        rows=tuple((question(text, requires), cell(answer)) for text, requires, answer in rows),
        note=note,
    )


def _missing(what: str) -> Text:
    return (f"{NOT_ANSWERABLE.format(what=what)}.",)


def _how_to_cut(account: Account) -> str:
    bank = account.scene.bank
    assert bank is not None
    longest = int(bank.length.max(initial=1))
    return (
        "It needs a cut, the number of lines that a response must meet to pass: audit with --cut C, "
        f"for example --cut {(longest + 1) // 2}."
    )


def _gate(account: Account) -> Text:
    if not account.gold:
        return _missing(GOLD)
    if not account.cuts:
        return (_how_to_cut(account),)
    at_cuts = "; ".join(
        f"{said(account.of_judge('gate_accuracy', cut=str(cut)))} at cut {cut}"
        for cut in account.cuts
    )
    return (
        "Accuracy of the gate against gold, on ",
        *account.size(account.compared()),
        f": {at_cuts}.",
        *_wrong_at_the_gate(account, "gate_false_accept", "False passes", "fails"),
        *_wrong_at_the_gate(account, "gate_false_reject", "False fails", "passes"),
    )


def _wrong_at_the_gate(account: Account, statistic: str, what: str, golds: str) -> Text:
    made = []
    for cut in map(str, account.cuts):
        found = account.of_judge(statistic, cut=cut)
        count = counted_of(account.scene, found) if _known(found) else ""
        made.append(f"{said(found)}{f' ({count})' if count else ''} at cut {cut}")
    return (f" {what}, of what ", *standard(account.scene), f" {golds}: {'; '.join(made)}.")


def _direction(account: Account) -> Text:
    if not account.gold:
        return _missing(GOLD)
    errors = counted_errors(account.scene, account.judge)
    if not errors.verdicts.sum():
        return (f"not determined: {NO_PAIR}.",)
    text = say(
        "{accepted}; {rejected}.",
        accepted=_says(account, "false_accept", "It says yes on {} of the lines that are not met"),
        rejected=_says(account, "false_reject", "it says no on {} of those that are met"),
    )
    worst = errors.worst(1)
    if not worst or not errors.total:
        return (*text, " No line has an error.")
    i = worst[0]
    return (
        *text,
        *say(
            " Worst line: {line}, {errors} in {verdicts} ({accepted}, {rejected}).",
            line=Name(errors.lines[i]),
            errors=plural(int(errors.errors[i]), "error"),
            verdicts=plural(int(errors.verdicts[i]), "verdict"),
            accepted=plural(int(errors.accepted[i]), "false accept"),
            rejected=plural(int(errors.rejected[i]), "false reject"),
        ),
    )


def _says(account: Account, statistic: str, sentence: str) -> str:
    """A rate in a sentence of its own, which also reads well where the rate has no value."""
    kind = statistic.replace("_", " ")
    rate = account.of_judge(statistic)
    if not _known(rate):
        return f"{kind}: {said(rate)}"
    return f"{sentence.format(said(rate))} ({kind})"


def _phrasings(labels: Labels, account: Account) -> Text:
    component = account.of_judge("component_phrasing")
    if component is None:
        frame = labels.frame
        if "phrasing" in frame.columns and frame["phrasing"].drop_nulls().n_unique() > 1:
            return say(
                "not determined: {judge} was asked under one phrasing only.",
                judge=Name(account.judge),
            )
        return _missing(PHRASINGS)
    text = f"Phrasing component of totals: {said(component)}."
    flips = [(cut, account.of_judge("flip_rate", cut=str(cut))) for cut in account.cuts]
    at_cuts = "; ".join(f"{said(e)} at cut {cut}" for cut, e in flips if e is not None)
    if at_cuts:
        return (
            f"Pass or fail flips between phrasings on this share of responses: {at_cuts}. {text}",
        )
    return (f"{text} Whether pass or fail flips: {_how_to_cut(account)}",)


def _ranking(account: Account) -> Text:
    judge = account.of_judge("kr20")
    if not _known(judge):
        return (f"KR-20: {said(judge)}.",)
    if not account.gold:
        return say(
            "KR-20: {value} on the verdicts of {judge}; there is no gold to set its value beside.",
            value=said(judge),
            judge=Name(account.judge),
        )
    return say(
        "KR-20: {value} on the verdicts of {judge}, {gold} on {golds}; difference {minus}.",
        value=said(judge),
        judge=Name(account.judge),
        golds=standards(account.scene),
        gold=said(account.of_gold("kr20")),
        minus=said(account.of_judge("kr20_minus_gold")),
    )


def _another_sample(account: Account) -> Text:
    if not account.cuts:
        return (_how_to_cut(account),)
    name = "livingston_lewis_"
    first = account.of_judge(f"{name}consistency", cut=str(account.cuts[0]))
    if not _known(first):
        return (f"Livingston–Lewis: {said(first)}.",)
    parts = []
    for cut in account.cuts:
        one = []
        for what in ("consistency", "accuracy"):
            value = said(account.of_judge(f"{name}{what}", cut=str(cut)))
            beside = account.of_gold(f"{name}{what}", cut=str(cut)) if account.gold else None
            gold = f" (gold {said(beside, interval=False)})" if beside is not None else ""
            one.append(f"LL {what} {value}{gold}")
        parts.append(f"at cut {cut} {', '.join(one)}")
    return (f"Livingston–Lewis (LL), by a model of the totals: {'; '.join(parts)}.",)


# --- the four reporting lines -------------------------------------------------------------------


def reporting_lines(scene: Scene, estimates: Estimates) -> list[Block]:
    """The four lines of TWM, Section 5, filled with this bank's figures, to paste as they stand."""
    if not scene.panel:
        return [Paragraph(text=("There is no judge beside gold, so there is nothing to report.",))]
    blocks: list[Block] = [
        Paragraph(
            text=(
                "Four lines that belong wherever this judge is used or a reliability is printed "
                "(“Three Ways Classical Test Theory Can Mislead About LLM Judges”, Section 5). Only "
                "the last one describes the judge.",
            )
        )
    ]
    for judge in scene.panel[:MOST_JUDGES]:
        account = Account(scene=scene, estimates=estimates, judge=judge)
        lines = (
            ("Bank", _bank_line(account)),
            ("Gold comparison", _gold_line(account)),
            ("Φ(λ)", _phi_line(account)),
            ("Judge error", _error_line(account)),
        )
        name = f" for {judge}" if len(scene.panel) > 1 else ""
        blocks += [
            Paste(
                title=f"Reporting lines{name}",
                lines=tuple((Lead(title), *text) for title, text in lines),
            ),
        ]
    if not account.cuts:
        blocks.append(Paragraph(tone=Tone.NOTE, text=(_how_to_cut(account),)))
    return blocks


def _checklist(account: Account, side: Sides) -> str:
    bank = account.scene.bank
    assert bank is not None
    if not bank.k:
        least, most = shortest_and_longest(bank.length[side.rows])
        return f"a checklist of {least} to {most} yes/no lines for each question"
    if not bank.own:
        return f"K = {bank.k} yes/no lines"
    there = bank.line[side.rows]
    lines = len(np.unique(there[there >= 0]))
    return (
        f"K = {bank.k} yes/no lines, a checklist for each question ({counted(lines)} lines in all)"
    )


def shortest_and_longest(lengths: Array) -> tuple[int, int]:
    """The fewest and the most lines of these checklists; zeros where there is none."""
    return (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)


def _bank_line(account: Account) -> Text:
    whole = account.alone()
    side = whole or account.compared()
    gold = bool(account.gold) and whole is None

    def value(statistic: str) -> Estimate | None:
        if whole is not None:
            return account.whole(statistic)
        return account.of_gold(statistic) if gold else account.of_judge(statistic)

    bank = account.scene.bank
    assert bank is not None
    ends = f" on a scale of 0 to {bank.k}" if bank.k else ""
    why: Text = ()
    if whole is not None:
        why = say(
            " These are figures of the verdicts of {judge}: {gold} is whole on only {part} of these responses.",
            gold=standard(account.scene),
            judge=Name(account.judge),
            part=counted(len(account.compared().rows)),
        )
    elif not gold:
        why = say(
            " There is no gold: these are figures of the verdicts of {judge}.",
            judge=Name(account.judge),
        )
    return (
        *say(
            "{size}, {checklist}. SD of {whose} totals {sd}{ends}; mean inter-element correlation "
            "{rho}.",
            size=account.size(side),
            checklist=_checklist(account, side),
            whose=standards(account.scene) if gold else (Name(account.judge), "’s"),
            sd=said(value("total_sd"), interval=False),
            ends=ends,
            rho=said(value("mean_inter_element_correlation"), interval=False),
        ),
        *why,
    )


def _gold_line(account: Account) -> Text:
    if not account.gold:
        return say(
            "KR-20 is {value} on the verdicts of {judge}. Its value on gold is not known: it needs gold "
            "labels. Without it, nobody can say what an error-free scorer would get on this bank.",
            value=said(account.of_judge("kr20")),
            judge=Name(account.judge),
        )
    judge, gold = account.of_judge("kr20"), account.of_gold("kr20")
    minus, cut = account.of_judge("kr20_minus_gold"), account.middle
    why = _one_reason(judge, gold)
    if why:
        return (*_part(account), *_no_coefficients(account, why))
    text = (
        *_part(account),
        *say(
            "KR-20 is {value} on the verdicts of {judge} and {gold} on {golds}{minus}.",
            golds=standards(account.scene),
            value=said(judge),
            judge=Name(account.judge),
            gold=said(gold),
            minus=f" (difference {said(minus)})" if _known(minus) else "",
        ),
    )
    if cut is not None:
        text = (
            *text,
            *say(
                " At a cut of {cut}, Livingston–Lewis accuracy is {value} on the totals of {judge} and "
                "{gold} on {golds}.",
                golds=standards(account.scene),
                cut=cut,
                value=said(account.of_judge("livingston_lewis_accuracy", cut=str(cut))),
                judge=Name(account.judge),
                gold=said(account.of_gold("livingston_lewis_accuracy", cut=str(cut))),
            ),
        )
    return (
        *text,
        " Gold has no scoring error, so its values are set by the bank; the others, computed the "
        "same way, are no description of the judge.",
    )


def _one_reason(judge: Estimate | None, gold: Estimate | None) -> str:
    """Why neither side has a value, where it is one and the same reason; else empty."""
    if judge is None or gold is None or judge.reason != gold.reason:
        return ""
    return judge.reason


def _no_coefficients(account: Account, why: str) -> Text:
    """Line two where no side has a KR-20: the reason once, for Livingston–Lewis too if it is the same."""
    text = say(
        "KR-20 is determined neither on the verdicts of {judge} nor on {golds} ({why}).",
        judge=Name(account.judge),
        golds=standards(account.scene),
        why=why,
    )
    if account.middle is None:
        return text
    cut = str(account.middle)
    first = account.of_judge("livingston_lewis_accuracy", cut=cut)
    other = _one_reason(first, account.of_gold("livingston_lewis_accuracy", cut=cut))
    if other == why:
        return (*text, " Nor is Livingston–Lewis accuracy.")
    return (*text, f" Livingston–Lewis accuracy at a cut of {cut}: {said(first)}.")


def _part(account: Account) -> Text:
    """Where gold covers only a part, on which responses a line stands."""
    if account.alone() is None:
        return ()
    return say(
        "This line is over the {size} that {judge} and {gold} both scored in full. ",
        size=account.size(account.compared()),
        judge=Name(account.judge),
        gold=standard(account.scene),
    )


def _phi_line(account: Account) -> Text:
    cut, bank = account.middle, account.scene.bank
    assert bank is not None
    if cut is None:
        return (f"Not computed. {_how_to_cut(account)}",)
    value = account.of_judge("phi_lambda", cut=str(cut))
    if not _known(value):
        return (f"Dependability Φ(λ) at a cut of {cut}: {said(value)}.",)
    beside = (
        say(
            " and {gold} on {golds}",
            gold=said(account.of_gold("phi_lambda", cut=str(cut))),
            golds=standards(account.scene),
        )
        if account.gold
        else (", its value on gold is not known: it needs gold labels",)
    )
    return (
        *_part(account),
        *say(
            "The dependability coefficient Φ(λ = {cut}/{k}) is {value} on the verdicts of {judge}{beside}. "
            "It is a ratio of squared distances from the pass mark, not a share of decisions, and is "
            "not comparable with any accuracy.",
            cut=cut,
            k=bank.k,
            value=said(value),
            judge=Name(account.judge),
            beside=beside,
        ),
    )


def _error_line(account: Account) -> Text:
    if not account.gold:
        return say(
            "How often {judge} errs is not known: it needs gold labels, and no coefficient of the bank "
            "stands in for them.",
            judge=Name(account.judge),
        )
    errors = counted_errors(account.scene, account.judge)
    if not errors.verdicts.sum():
        return say(
            "How often {judge} errs is not known: {why}.", judge=Name(account.judge), why=NO_PAIR
        )
    text = (
        *_part(account),
        *say(
            "Against {gold}, {judge} {rates}{intervals}.",
            gold=standard(account.scene),
            judge=Name(account.judge),
            rates=_rates(account),
            intervals=_level(account),
        ),
        *_held(errors.errors.tolist(), [errors.lines[i] for i in errors.worst(1)]),
    )
    cut = account.middle
    if cut is None:
        return text
    text = (
        *text,
        *say(
            " At a cut of {cut} its pass or fail matches {golds} on {value} of the scored responses",
            cut=cut,
            golds=standards(account.scene),
            value=said(account.of_judge("gate_accuracy", cut=str(cut))),
        ),
    )
    lost = account.of_judge("gate_accuracy_unparsed_wrong", cut=str(cut))
    if lost is not None and _unread(account):
        return (
            *text,
            *say(
                ", and on {value} of {n} when each unread output counts as an error.",
                value=said(lost),
                n=_over(account, lost.n),
            ),
        )
    return (*text, ".")


def _rates(account: Account) -> str:
    """Both rates of error; in words that also read well where one has no value."""
    accepts, rejects = account.of_judge("false_accept"), account.of_judge("false_reject")
    accepted = (
        f"says yes on {said(accepts)} of the lines that are not met"
        if _known(accepts)
        else f"has no rate of false accepts ({said(accepts)})"
    )
    rejected = (
        f"no on {said(rejects)} of those that are met"
        if _known(accepts) and _known(rejects)
        else f"says no on {said(rejects)} of the lines that are met"
        if _known(rejects)
        else f"has no rate of false rejects ({said(rejects)})"
    )
    return f"{accepted} and {rejected}"


def _over(account: Account, n: float | None) -> Text:
    """The responses that an unread output is counted among: those that gold scored in full."""
    bank = account.scene.bank
    assert bank is not None
    if n is None:
        return ("the responses",)
    if n == bank.responses:
        return (f"all {counted(n)}",)
    return say(
        "the {n} that {gold} scored in full and it scored in full or could not be read on,",
        n=counted(n),
        gold=standard(account.scene),
    )


def _level(account: Account) -> str:
    bank = account.scene.bank
    assert bank is not None
    level = f"{100 * account.scene.options.level:.4g} %"
    return f" ({level} {'' if bank.own_cluster else 'cluster '}intervals)"


def _unread(account: Account) -> bool:
    bank = account.scene.bank
    assert bank is not None
    return bool(bank.unread[:, bank.places[account.judge]].any())


def _held(errors: Sequence[int], worst: Sequence[str]) -> Text:
    """How many lines hold how many errors; the worst one by name where lines are few."""
    total, lines = sum(errors), len(errors)
    with_errors = sum(e > 0 for e in errors)
    if not total:
        return (f" There is no error on any of the {plural(lines, 'line')}.",)
    ordered = sorted(errors, reverse=True)
    text = say(
        " The {total} {fall} on {some} of the {lines}",
        total=plural(total, "error") if total > 1 else "only error",
        fall="fall" if total > 1 else "falls",
        some=with_errors,
        lines=plural(lines, "line"),
    )
    if with_errors > WORST_LINES:
        return (
            *text,
            f"; the {WORST_LINES} worst lines hold {counted(sum(ordered[:WORST_LINES]))}.",
        )
    return (*text, *say("; {line} holds {most}.", line=Name(worst[0]), most=ordered[0]))
