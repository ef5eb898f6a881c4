"""What a comparison on common responses found, in sentences a person can act on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from voirdire import intervals
from voirdire.comparing.coverage import measured
from voirdire.document import (
    cell,
    display,
    display_interval,
)
from voirdire.estimand import Unit
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State
from voirdire.scene import Estimates, Scene
from voirdire.stats.comparison import FEWEST_CLUSTERS
from voirdire.wording import (
    Name,
    Text,
    counted,
    often,
    percent,
    plural,
    points,
    say,
)

POWER = 0.8  # with which probability a difference that "would have been seen" would have been seen
MOST_NAMED = 8
OWN = {
    "label_share_minus_other": "label_share",
    "rate_minus_other": "rate",
    "read_share_minus_other": "read_share",
    "agreement_minus_other": "agreement",
    "rate_false_accept_minus_other": "rate_false_accept",
    "rate_false_reject_minus_other": "rate_false_reject",
    "cohen_kappa_minus_other": "cohen_kappa",
    "element_error_minus_other": "element_error",
    "false_accept_minus_other": "false_accept",
    "false_reject_minus_other": "false_reject",
    "gate_accuracy_minus_other": "gate_accuracy",
    "pass_rate_minus_other": "pass_rate",
    "yes_share_minus_other": "yes_share",
    "kr20_minus_other": "kr20",
}
ERRORS = (  # whose rise is more error by gold
    *("rate_false_accept_minus_other", "rate_false_reject_minus_other"),
    *("element_error_minus_other", "false_accept_minus_other", "false_reject_minus_other"),
)
RIGHTS = ("agreement_minus_other", "gate_accuracy_minus_other")


def seen_at(estimate: Estimate) -> float | None:
    """The size of a difference that would have been seen in 8 of 10 such samples.

    From the half-width of the interval: (1 + z(0.8) / z(level)) times it. ``None`` without interval.
    """
    interval = estimate.interval
    if interval is None:
        return None
    half = (interval.high - interval.low) / 2
    z = intervals.normal_quantile(0.5 + interval.level / 2)
    return half * (1 + intervals.normal_quantile(POWER) / z)


def difference_in_words(estimate: Estimate) -> str:
    """``−9.1 points [−12.0, −6.4]``; a coefficient with its own digits."""
    shown = cell(estimate)
    value = estimate.number
    sign = "+" if value is not None and value > 0 else ""
    unit = " points" if estimate.estimand.unit is Unit.POINTS else ""
    interval = display_interval(shown)
    said = f"{sign}{display(shown)}{unit}"
    return minus(f"{said} {interval}" if interval else said)


def minus(text: str) -> str:
    """With true minus signs."""
    return text.replace("-", "−")


def p_in_words(p: float | None) -> str:
    if p is None:
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def holds_zero(estimate: Estimate) -> bool:
    interval = estimate.interval
    return interval is None or interval.low <= 0 <= interval.high


class Two:
    """The two graders of a comparison and what is known of them, in one slice."""

    def __init__(self, estimates: Estimates, old: str, new: str, slice_: str = "") -> None:
        self.estimates, self.old, self.new, self.slice = estimates, old, new, slice_

    def minus(self, statistic: str) -> list[Estimate]:
        return [
            e
            for e in self.estimates.of(statistic, grader=self.new, other=self.old)
            if e.key.slice == self.slice
        ]

    def own(self, estimate: Estimate, grader: str) -> Estimate | None:
        """The value of one of the two behind a difference."""
        key = estimate.key
        for found in self.estimates.of(OWN[estimate.statistic], grader=grader):
            same = (found.key.class_, found.key.line, found.key.cut, found.key.slice)
            if same == (key.class_, key.line, key.cut, key.slice):
                return found
        return None

    def p(self, estimate: Estimate, *, adjusted: bool = True) -> float | None:
        key = estimate.key
        found = self.estimates.get(
            "difference_p_holm" if adjusted else "difference_p",
            grader=key.grader,
            other=key.other,
            class_=key.class_,
            line=estimate.statistic,
            cut=key.cut,
            slice=key.slice,
        )
        return None if found is None else found.number

    def stands(self, estimate: Estimate, level: float) -> bool:
        """Whether a difference stands: by its p after Holm, and by its own interval too."""
        p = self.p(estimate)
        return p is not None and p <= 1 - level and not holds_zero(estimate)

    def one(self, statistic: str, **key: str) -> Estimate | None:
        return self.estimates.get(
            statistic, grader=self.new, other=self.old, slice=self.slice, **key
        )


# --- findings of paired labels ------------------------------------------------------------------


def changed(two: Two, scene: Scene) -> Iterable[Finding]:
    found = two.one("changed")
    if found is None:
        return
    what = "verdict" if scene.bank is not None else "label"
    if found.number is None:
        yield Finding(
            code="labels_changed",
            state=State.CANNOT_TELL,
            sentence=say(
                "{new} and {old} have no common response that both could be read on, so no change of "
                "labels can be told.",
                new=Name(two.new),
                old=Name(two.old),
            ),
            grader=two.new,
            other=two.old,
            slice=two.slice,
            weight=9,
        )
        return
    n = round((found.number or 0) * (found.n or 0))
    interval = found.interval
    if n == 0:
        said = f"None of {plural(int(found.n or 0), f'common {what}')} changed; "
        if interval is not None:
            said += f"up to {percent(interval.high)} could change and none be seen here."
        else:
            said += (
                f"how many could change and none be seen here cannot be said ({found.no_interval})."
            )
        yield Finding(
            code="labels_changed",
            state=State.CLEAR if interval is not None else State.CANNOT_TELL,
            sentence=(said,),
            grader=two.new,
            other=two.old,
            slice=two.slice,
            evidence=(found,),
            weight=9,
        )
        return
    parts = list(
        say(
            "{new} gives another {what} than {old} to {k} of {n} ({share}{interval}).",
            new=Name(two.new),
            what=what,
            old=Name(two.old),
            k=n,
            n=plural(int(found.n or 0), f"common {what}"),
            share=percent(found.number),
            interval=f" {display_interval(cell(found))}" if interval is not None else "",
        )
    )
    flows = _largest_flows(two, scene)
    if flows:
        parts += [" Most went ", *flows, "."]
    by_lines = two.one("changed_responses")
    if by_lines is not None and by_lines.number is not None:
        parts.append(
            f" At least one line changed on {counted(round(by_lines.number * (by_lines.n or 0)))} of "
            f"{plural(int(by_lines.n or 0), 'response')}."
        )
    yield Finding(
        code="labels_changed",
        state=State.FOUND,
        sentence=tuple(parts),
        grader=two.new,
        other=two.old,
        slice=two.slice,
        evidence=(found, *((by_lines,) if by_lines is not None else ())),
        weight=9,
    )


def _moved(two: Two) -> list[Estimate]:
    made = [e for e in two.minus("moved") if e.number]
    return sorted(made, key=lambda e: (-(e.number or 0), e.key.class_, e.key.to_class))


def _largest_flows(two: Two, scene: Scene) -> list[str | Name]:
    parts: list[str | Name] = []
    if scene.grid is None or scene.k < 2:
        return parts
    for i, e in enumerate(_moved(two)[:2]):
        parts += [
            " and " if i else "",
            "from ",
            Name(e.key.class_),
            " to ",
            Name(e.key.to_class),
            f" ({counted(e.number or 0)})",
        ]
    return parts


def shares(two: Two, scene: Scene, level: float) -> Iterable[Finding]:
    """What stands after Holm one by one, the rest in one sentence of what could have been seen."""
    tested = [
        e
        for s in ("label_share_minus_other", "rate_minus_other")
        for e in two.minus(s)
        if e.number is not None and two.p(e) is not None
    ]
    standing = [e for e in tested if two.stands(e, level)]
    rest = [e for e in tested if e not in standing]
    many = len(tested)
    standing.sort(key=lambda e: (e.statistic != "rate_minus_other", -abs(e.number or 0)))
    for e in standing:
        yield Finding(
            code="rate_changed" if e.statistic == "rate_minus_other" else "class_use_changed",
            state=State.FOUND,
            sentence=_class_sentence(two, e, many),
            grader=two.new,
            other=two.old,
            class_=e.key.class_,
            slice=two.slice,
            evidence=(e, *(x for x in (two.own(e, two.new), two.own(e, two.old)) if x)),
            weight=8 + abs(e.number or 0),
        )
    if rest:
        yield Finding(
            code="class_use_changed",
            state=State.CANNOT_TELL,
            sentence=_unseen(two, rest, many),
            grader=two.new,
            other=two.old,
            slice=two.slice,
            evidence=tuple(rest),
            weight=7,
        )


def _class_sentence(two: Two, e: Estimate, many: int) -> Text:
    value, n = e.number or 0.0, e.n or 0.0
    of_rate = e.statistic == "rate_minus_other"
    count = two.one("label_count_minus_other", class_=e.key.class_)
    times = abs(count.number if count and count.number is not None and not of_rate else value * n)
    own = [two.own(e, g) for g in (two.new, two.old)]
    shares = " against ".join(percent(x.number) for x in own if x is not None)
    adjusted = f"after Holm over {many} differences " if many > 1 else ""
    said = say(
        "{new} gives {what}{class_} to {times} of {n} than {old} ({shares}: {difference}; {adjusted}{p}).",
        new=Name(two.new),
        what="a class of the rate " if of_rate else "the class ",
        class_=Name(e.key.class_),
        times=f"{counted(round(times, 1))} {'more' if value > 0 else 'fewer'}",
        old=Name(two.old),
        n=plural(int(n), "common response"),
        shares=shares,
        difference=difference_in_words(e),
        adjusted=adjusted,
        p=p_in_words(two.p(e)),
    )
    return (*said, *_where_to(two, e)) if not of_rate else said


def _where_to(two: Two, e: Estimate) -> Text:
    """Where the labels of a class went, or where the new ones came from."""
    lost = (e.number or 0) < 0
    found = [
        m
        for m in _moved(two)
        if (m.key.class_ if lost else m.key.to_class) == e.key.class_ and m.number
    ]
    total = sum(m.number or 0 for m in found)
    if not total:
        return ()
    most = found[0]
    if lost:
        return say(
            " Of the {total} to which it no longer gives the class, {n} went to {to}.",
            total=counted(total),
            n=counted(most.number or 0),
            to=Name(most.key.to_class),
        )
    return say(
        " Of the {total} to which it newly gives the class, {n} came from {origin}.",
        total=counted(total),
        n=counted(most.number or 0),
        origin=Name(most.key.class_),
    )


def _unseen(two: Two, rest: Sequence[Estimate], many: int) -> Text:
    """What does not stand: each difference with its interval, and what would have been seen."""
    if many == 1:
        opening = "Whether the use changed cannot be told of "
    else:
        opening = f"Of {many} differences in use these do not stand after Holm: "
    return (opening, *_open(two, rest), *_sizes(rest, "labels"))


def _open(two: Two, rest: Sequence[Estimate]) -> Text:
    parts: list[str | Name] = []
    for i, e in enumerate(rest[:MOST_NAMED]):
        what = _what(e) or (Name(e.key.class_),)
        parts += ["; " if i else "", *what, f" ({difference_in_words(e)})"]
    if len(rest) > MOST_NAMED:
        parts.append(f" and {len(rest) - MOST_NAMED} more")
    return tuple(parts)


def _sizes(rest: Sequence[Estimate], what: str) -> Text:
    said = ". That is no proof that nothing changed"
    if any(e.interval is not None for e in rest):
        said += f": every value within an interval fits these {what}"
    sizes = [seen for e in rest if (seen := seen_at(e)) is not None]
    if sizes:
        low, high = points(min(sizes)), points(max(sizes))
        about = low if low == high else f"{low.removesuffix(' points')} to {high}"
        each = "such a difference" if len(sizes) == 1 else "such differences"
        said += f"; of {each} about {about} would have been seen in 8 of 10 samples like this"
    return (said + ".",)


def outcomes(two: Two) -> Iterable[Finding]:
    read = next(iter(two.minus("read_share_minus_other")), None)
    if read is None or read.number is None:
        return
    unread, again = two.minus("newly_unread"), two.minus("newly_read")
    moved = [
        e
        for e in two.minus("outcome_moved")
        if e.key.class_ != e.key.to_class and e.key.class_ != "label" and e.key.to_class != "label"
    ]
    gone = sum(
        e.number or 0
        for e in two.minus("outcome_moved")
        if e.key.class_ == "label" and e.key.to_class != "label"
    )
    back = sum(
        e.number or 0
        for e in two.minus("outcome_moved")
        if e.key.class_ != "label" and e.key.to_class == "label"
    )
    if not (gone or back):
        return
    parts: list[str | Name] = []
    if gone:
        parts += [
            *say(
                "{new} gives no label to {n} of the {of} that {old} labelled",
                new=Name(two.new),
                n=counted(gone),
                of=plural(int(read.n or 0), "common response"),
                old=Name(two.old),
            ),
            *_classes_of(unread, " (there it gave "),
            ". ",
        ]
    if back:
        parts += [
            *say(
                "{new} labels {n} to which {old} gave none",
                new=Name(two.new),
                n=counted(back),
                old=Name(two.old),
            ),
            *_classes_of(again, " (with "),
            ". ",
        ]
    parts.append(
        f"The share read differs by {difference_in_words(read)}. Differences of classes are about the "
        "responses that both could be read on, so what went unread is in none of them."
    )
    yield Finding(
        code="outcomes_changed",
        state=State.FOUND,
        sentence=tuple(parts),
        grader=two.new,
        other=two.old,
        slice=two.slice,
        evidence=(read, *unread, *again, *moved),
        weight=6,
    )


def _classes_of(found: Sequence[Estimate], opening: str) -> Text:
    parts: list[str | Name] = []
    for i, e in enumerate(sorted(found, key=lambda e: -(e.number or 0))[:MOST_NAMED]):
        parts += [", " if i else opening, Name(e.key.class_), f" {often(e.number or 0)}"]
    return (*parts, ")") if parts else ()


def noise(two: Two) -> Iterable[Finding]:
    beyond, calls, noise = (
        two.one(s) for s in ("changed_beyond_noise", "changed_calls", "call_noise")
    )
    if beyond is None or calls is None or noise is None or beyond.number is None:
        own = [
            e
            for g in (two.old, two.new)
            if (e := two.estimates.get("self_disagreement", grader=g, slice=two.slice)) is not None
            and e.number is not None
        ]
        changed = two.one("changed")
        if changed is None or changed.number is None or not changed.number:
            return
        if own:
            most = max(own, key=lambda e: e.number or 0)
            yield Finding(
                code="change_against_noise",
                state=State.CANNOT_TELL,
                sentence=say(
                    "Asked again, {grader} disagrees with itself on {self}; {changed} changed between "
                    "the two. The first counts any vote that differs, the second one label each, so read "
                    "them as sizes: a change below that noise is not a change of the grader.",
                    grader=Name(most.key.grader),
                    self=percent(most.number),
                    changed=percent(changed.number),
                ),
                grader=two.new,
                other=two.old,
                slice=two.slice,
                evidence=(*own, changed),
                weight=5,
            )
            return
        yield Finding(
            code="change_against_noise",
            state=State.CANNOT_TELL,
            sentence=say(
                "Neither was asked twice, so how many of the {share} changed labels are the noise of "
                "decoding cannot be told: a grader asked again may change as many.",
                share=percent(changed.number),
            ),
            grader=two.new,
            other=two.old,
            slice=two.slice,
            evidence=(changed,),
            next_step=(
                "Ask one of them twice about the same responses, with the same settings, and compare with "
                "the votes (--vote COLUMN).",
            ),
            weight=5,
        )
        return
    above = beyond.interval is not None and beyond.interval.low > 0
    sentence = say(
        "One call of {new} and one of {old} differ on {calls} of the responses, two calls of one grader on "
        "{noise}: {difference} beyond the noise of decoding.",
        new=Name(two.new),
        old=Name(two.old),
        calls=percent(calls.number),
        noise=percent(noise.number),
        difference=difference_in_words(beyond),
    )
    if not above:
        size = seen_at(beyond)
        sentence = (
            *sentence,
            " A change that is not above this noise is not a change of the grader: what changed may be what "
            "asking again would change"
            + (f"; about {points(size)} beyond it would have been seen." if size else "."),
        )
    yield Finding(
        code="change_against_noise",
        state=State.FOUND if above else State.CANNOT_TELL,
        sentence=sentence,
        grader=two.new,
        other=two.old,
        slice=two.slice,
        evidence=(beyond, calls, noise),
        weight=5,
    )


def against_gold(two: Two, gold: str, level: float) -> Iterable[Finding]:
    tested = [
        e
        for s in (*RIGHTS, *ERRORS)
        for e in two.minus(s)
        if e.number is not None and two.p(e) is not None
    ]
    many = len(tested)
    rest = []
    for i, e in enumerate(tested):
        p = two.p(e)
        if not two.stands(e, level):
            rest.append(e)
            continue
        own = [two.own(e, g) for g in (two.new, two.old)]
        more = (e.number or 0) > 0
        yield Finding(
            code="agreement_with_gold_changed",
            state=State.FOUND,
            sentence=say(
                "By {gold}, {new} has {more} {what} than {old}: {shares} ({difference}; {adjusted}{p}). It "
                "is {closer} gold here.",
                gold=Name(gold),
                new=Name(two.new),
                more="more" if more else "less" if e.statistic in RIGHTS else "fewer",
                what=_what(e),
                old=Name(two.old),
                shares=" against ".join(percent(x.number) for x in own if x is not None),
                difference=difference_in_words(e),
                adjusted=f"after Holm over {many} differences with gold " if many > 1 else "",
                p=p_in_words(p),
                closer="nearer to" if more == (e.statistic in RIGHTS) else "farther from",
            ),
            grader=two.new,
            other=two.old,
            class_=e.key.class_,
            cut=e.key.cut,
            slice=two.slice,
            evidence=(e, *(x for x in own if x is not None)),
            weight=4 - 0.01 * i,
        )
    if rest:
        yield Finding(
            code="agreement_with_gold_changed",
            state=State.CANNOT_TELL,
            sentence=(
                *say("By {gold}, ", gold=Name(gold)),
                "it cannot be told which of the two is nearer in "
                if many == 1
                else f"of {many} differences these do not stand after Holm: ",
                *_open(two, rest),
                *_sizes(rest, "labels"),
            ),
            grader=two.new,
            other=two.old,
            slice=two.slice,
            evidence=tuple(rest),
            weight=4,
        )


def _what(e: Estimate) -> Text:
    """What a difference is of, for a sentence; empty for the use of a class."""
    names = {
        "agreement_minus_other": "agreement with gold",
        "gate_accuracy_minus_other": "gate accuracy",
        "rate_false_accept_minus_other": "false accepts",
        "rate_false_reject_minus_other": "false rejects",
        "element_error_minus_other": "element errors",
        "false_accept_minus_other": "false accepts of lines",
        "false_reject_minus_other": "false rejects of lines",
        "rate_minus_other": "the rate",
        "pass_rate_minus_other": "the pass rate",
        "yes_share_minus_other": "lines met",
    }
    if e.statistic not in names:
        return ()
    said: list[str | Name] = [names[e.statistic]]
    if e.key.class_:
        said += [" of ", Name(e.key.class_)]
    if e.key.cut:
        said.append(f" at cut {e.key.cut}")
    return tuple(said)


def gates(two: Two, level: float) -> Iterable[Finding]:
    tested = [
        e
        for s in ("pass_rate_minus_other", "yes_share_minus_other")
        for e in two.minus(s)
        if e.number is not None and two.p(e) is not None
    ]
    many = len(tested)
    for e in tested:
        p = two.p(e)
        stands = two.stands(e, level)
        own = [two.own(e, g) for g in (two.new, two.old)]
        gate = e.statistic == "pass_rate_minus_other"
        sentence = list(
            say(
                "{new} {what}, {old} {other} ({difference}{adjusted}; {p}).",
                new=Name(two.new),
                what=f"lets {percent(own[0].number) if own[0] else '–'} pass at cut {e.key.cut}"
                if gate
                else f"ticks {percent(own[0].number) if own[0] else '–'} of the lines",
                old=Name(two.old),
                other=percent(own[1].number) if own[1] else "–",
                difference=difference_in_words(e),
                adjusted=f"; after Holm over {many} differences" if many > 1 else "",
                p=p_in_words(p),
            )
        )
        changed = two.one("gate_changed", cut=e.key.cut) if gate else None
        if changed is not None and changed.number is not None:
            sentence.append(
                f" Pass or fail changed for {counted(round(changed.number * (changed.n or 0)))} of "
                f"{plural(int(changed.n or 0), 'response')}."
            )
        if not stands:
            size = seen_at(e)
            sentence.append(
                " Every difference within the interval fits these verdicts; about "
                f"{points(size)} would have been seen in 8 of 10 such samples."
                if size is not None
                else " That is no proof that nothing changed."
            )
        yield Finding(
            code="pass_rate_changed" if gate else "lines_met_changed",
            state=State.FOUND if stands else State.CANNOT_TELL,
            sentence=tuple(sentence),
            grader=two.new,
            other=two.old,
            cut=e.key.cut,
            slice=two.slice,
            evidence=(e, *(x for x in own if x is not None)),
            weight=7 - 0.01 * tested.index(e),
        )


def no_gold(two: Two) -> Finding:
    return Finding(
        code="agreement_with_gold_changed",
        state=State.NOT_APPLICABLE,
        sentence=say(
            "There is no gold, so nothing here says which of {new} and {old} is right more often.",
            new=Name(two.new),
            old=Name(two.old),
        ),
        grader=two.new,
        other=two.old,
        slice=two.slice,
        next_step=(
            "Name the labels taken as the truth with --gold NAME, or give them in a file of NEW.",
        ),
    )


def few_clusters(two: Two, scene: Scene) -> Iterable[Finding]:
    """Too few clusters for intervals to be taken at their word, with what was measured of them."""
    held = scene.grid if scene.grid is not None else scene.bank
    assert held is not None
    clusters = len(set(held.cluster.tolist()))
    few_from = scene.options.few_clusters
    if clusters >= few_from:
        return
    at, low, high = measured(clusters)
    there = (
        f"There {'is' if clusters == 1 else 'are'} {plural(clusters, 'cluster')}, which is few: "
    )
    rest = "intervals rest on them and not on the labels. "
    if clusters < FEWEST_CLUSTERS:
        said = f"no interval is made of fewer than {FEWEST_CLUSTERS}, so how sure a difference is cannot be told."
    elif clusters < at:
        said = f"{rest}With fewer than {at} clusters nothing was measured of how often they hold the truth."
    else:
        said = (
            f"{rest}With {at} clusters 95 % intervals of differences held the truth in "
            f"{percent(low, 0)} to {percent(high, 0)} of simulated samples, by how much changes."
        )
    yield Finding(
        code="few_clusters",
        state=State.FOUND,
        sentence=(there + said,),
        grader=two.new,
        other=two.old,
        next_step=("Add clusters rather than responses.",),
        weight=1,
    )
