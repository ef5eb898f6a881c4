"""Coefficients of the bank: with gold, what an error-free scorer gets; without, that nobody knows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from voirdire.checks.base import Check, Consequence, Effect, Evidence
from voirdire.document import cell, display, display_interval
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State, Strength
from voirdire.labels import gold_name
from voirdire.scene import Scene
from voirdire.sides import standard, standards
from voirdire.wording import Name, Text, counted, say

KINDS = ("checklist",)
# KR-20 first: it has no cut. The others stand at the middle cut, of an even number the lower one.
AT_A_CUT = (
    ("phi_lambda", "Φ(λ)"),
    ("livingston_lewis_accuracy", "Livingston–Lewis accuracy"),
    ("livingston_lewis_consistency", "Livingston–Lewis consistency"),
)


def run(evidence: Evidence) -> Iterable[Finding]:
    scene = evidence.whole
    for judge in scene.panel:
        pairs = list(_pairs(evidence, judge))
        if not scene.gold:
            yield _without_gold(judge, pairs, _empty_gold(evidence))
        else:
            yield _with_gold(scene, judge, pairs)
    beside = bool(scene.gold) and any(
        g is not None and g.number is not None for j in scene.panel for *_, g in _pairs(evidence, j)
    )
    if beside:
        yield Finding(
            code="coefficient_without_gold",
            state=State.CLEAR,
            sentence=say(
                "Each coefficient of the bank stands beside its value on gold ({gold}).",
                gold=Name(scene.gold),
            ),
        )


def _empty_gold(evidence: Evidence) -> str:
    """The grader that was to be gold and has no verdict on any line; empty where none is."""
    labels = evidence.labels
    if labels is None or evidence.whole.gold:
        return ""
    named = gold_name(labels.grader_names, labels.options)
    return named if named not in evidence.whole.names else ""


def _pairs(evidence: Evidence, judge: str) -> Iterator[tuple[str, Estimate, Estimate | None]]:
    """Each coefficient that can be said: its name, its value, and gold's on the same responses."""
    scene, estimates = evidence.whole, evidence.estimates
    other = "" if len(scene.panel) == 1 else judge
    cuts = sorted(set(scene.options.cut))
    middle = str(cuts[(len(cuts) - 1) // 2]) if cuts else ""
    asked = [("kr20", "KR-20", "")]
    if middle:
        asked += [(s, title, middle) for s, title in AT_A_CUT]
    for statistic, title, cut in asked:
        mine = estimates.get(statistic, grader=judge, cut=cut)
        if mine is None or mine.number is None:
            continue
        yield title, mine, estimates.get(statistic, grader=scene.gold, other=other, cut=cut)


def _with_gold(
    scene: Scene, judge: str, pairs: list[tuple[str, Estimate, Estimate | None]]
) -> Finding:
    """Found wherever gold has a value at all.

    That gold, which never errs, gets such a value is a fact of the design and does not hang on how
    near the judge's comes to it: a judge's errors may raise a coefficient as well as lower it.
    """
    both = [(t, m, g) for t, m, g in pairs if g is not None and g.number is not None]
    if not both:
        return Finding(
            code="coefficient_describes_bank",
            state=State.NOT_APPLICABLE,
            grader=judge,
            sentence=say(
                "No coefficient of the bank can be said for both {judge} and {gold}.",
                judge=Name(judge),
                gold=standard(scene),
            ),
        )
    parts = _listed([(m, f"{t} is {_value(m)} and {_value(g)}") for t, m, g in both])
    n = both[0][1].n
    return Finding(
        code="coefficient_describes_bank",
        state=State.FOUND,
        strength=Strength.CERTAIN,
        grader=judge,
        sentence=say(
            "Coefficients describe the bank and not how well {judge} grades. On its verdicts and on "
            "{gold}, for the same {n} responses, {parts}. Gold has no scoring error: the second value of "
            "each pair is what a scorer that never errs gets here.{raised}",
            judge=Name(judge),
            gold=standards(scene),
            n=counted(n) if n is not None else "",
            parts=parts,
            raised=_raised(both),
        ),
        evidence=tuple(e for _, m, g in both for e in (m, g)),
        next_step=(
            "Print a coefficient only beside its value on gold, and judge the judge by its false "
            "accepts and false rejects.",
        ),
        # The lightest of what is certain: what the judge gets wrong goes first.
        weight=-1.0,
    )


def _raised(both: list[tuple[str, Estimate, Estimate]]) -> str:
    """That errors went with a higher coefficient, where they did."""
    higher = [
        t
        for t, m, g in both
        if (m.number or 0) > (g.number or 0) and display(cell(m)) != display(cell(g))
    ]
    if not higher:
        return ""
    named = ", ".join(higher[:-1]) + (" and " if higher[1:] else "") + higher[-1]
    verb = "is" if len(higher) == 1 else "are"
    return f" Errors need not lower them: {named} {verb} higher on the judge’s verdicts."


def _without_gold(
    judge: str, pairs: list[tuple[str, Estimate, Estimate | None]], empty: str
) -> Finding:
    why: Text = ("There is no gold",)
    if empty:
        why = say("There is no gold, since {gold} has no verdict on any line", gold=Name(empty))
    if not pairs:
        return Finding(
            code="coefficient_without_gold",
            state=State.NOT_APPLICABLE,
            grader=judge,
            sentence=say(
                "No coefficient of the bank can be said for {judge}.{why}",
                judge=Name(judge),
                why=(" ", *why, ".") if empty else "",
            ),
        )
    parts = _listed([(m, f"{t} is {_value(m)}") for t, m, _ in pairs])
    return Finding(
        code="coefficient_without_gold",
        state=State.FOUND,
        strength=Strength.CERTAIN,
        grader=judge,
        sentence=say(
            "On the verdicts of {judge} {parts}. {why}, so these describe bank and judge "
            "jointly: the same value may come of a bank that spreads widely or of errors that repeat, "
            "and nothing in it says how often {judge} is right.",
            judge=Name(judge),
            parts=parts,
            why=why,
        ),
        evidence=tuple(m for _, m, _ in pairs),
        next_step=_label_some(empty),
    )


def _listed(parts: list[tuple[Estimate, str]]) -> str:
    """Values in one sentence; the cut is said once, before the first that stands at it."""
    said: list[str] = []
    at = ""
    for estimate, text in parts:
        cut = estimate.key.cut
        said.append(f"at a cut of {cut} {text}" if cut != at else text)
        at = cut
    return "; ".join(said)


def _label_some(empty: str) -> Text:
    if empty:
        return (
            "Look whether the columns of gold are the right ones and filled, or label some responses by "
            "hand; a part of the bank is enough to start.",
        )
    return (
        "Label some responses by hand and pass them as a grader named gold (or --gold NAME); a part of "
        "the bank is enough to start.",
    )


def _value(estimate: Estimate) -> str:
    shown = cell(estimate)
    limits = display_interval(shown)
    return f"{display(shown)}{' ' + limits if limits else ''}"


CHECK = Check(
    name="coefficient_reading",
    codes={
        "coefficient_describes_bank": "KR-20, Φ(λ) and Livingston–Lewis have values on gold, which never errs: they describe the bank.",
        "coefficient_without_gold": "Coefficients are printed and there is no gold to set their values beside.",
    },
    run=run,
    would_miss="A reading of the coefficients outside this report.",
    rank=40,
    kinds=KINDS,
    uses=(
        Consequence(
            code="coefficient_describes_bank",
            use="reliability",
            effect=Effect.FORBIDS,
            because="Gold, which never errs, gets such a value too: it describes the bank.",
        ),
        Consequence(
            code="coefficient_describes_bank",
            use="bank_coefficient",
            effect=Effect.ALLOWS,
            because="Its value on gold stands beside it.",
        ),
        Consequence(
            code="coefficient_without_gold",
            use="reliability",
            effect=Effect.FORBIDS,
            because="Without gold it describes bank and judge jointly.",
        ),
        Consequence(
            code="coefficient_without_gold",
            use="bank_coefficient",
            effect=Effect.FORBIDS,
            because="Without gold it describes bank and judge jointly.",
        ),
    ),
)
