"""The methods paragraph of a paper: what was computed and how, from the audit itself.

No number in it is typed: each is a :class:`~voirdire.wording.Traced` part that knows the results
row, the option or the input it is from, and a table under the paragraph lists them. Each method is
cited by the sources that its estimand names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from voirdire import bibliography
from voirdire.bibliography import keys_of
from voirdire.document import Block, Column, Kind, Paragraph, Paste, Table, Tone, cell
from voirdire.estimate import Estimate
from voirdire.finding import Finding, State
from voirdire.labels import Labels
from voirdire.scene import Estimates, Scene
from voirdire.wording import Name, Part, Text, Traced, counted, listed, number, percent, plain

__all__ = ["methods"]

# What a statistic is called in the paragraph, with others that stand for the same; in this order.
GRADERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("class counts and shares", ("label_count", "label_share")),
    ("rates over each grader’s readable labels", ("rate",)),
    ("the effective number of responses", ("kish_n",)),
    (
        "the spread of each rate over the graders",
        (
            "rate_max_over_min",
            "rate_range",
            "rate_iqr",
            "rate_second_over_second",
            "rate_leave_one_out_low",
            "rate_leave_one_out_high",
            "rate_sd_log_odds",
        ),
    ),
    ("rates at another mix of the responses", ("standardised_rate", "rate_without")),
    ("self-disagreement between votes", ("self_disagreement",)),
    ("differences of cumulative shares", ("cumulative_share_difference",)),
    ("rates after each step of a decision path", ("decision_rate", "decision_step")),
)
PAIRS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("collapse ratios of class counts", ("collapse_ratio",)),
    ("where labels of a class go", ("kept", "moved", "found")),
    ("percent agreement", ("agreement",)),
    ("the best constant answer", ("best_constant_agreement", "competence_floor")),
    ("Cohen’s kappa", ("cohen_kappa",)),
    ("weighted kappa", ("weighted_kappa_linear", "weighted_kappa_quadratic")),
    ("Scott’s pi", ("scott_pi",)),
    ("AC1", ("gwet_ac1",)),
    ("AC2", ("gwet_ac2_quadratic",)),
    ("the coefficient of Brennan and Prediger", ("brennan_prediger",)),
    ("agreement on each class", ("class_agreement",)),
    ("position flips between the two orders of a pair", ("position_flip_rate",)),
    (
        "the preference for the place shown first",
        ("order_preference", "order_agreement", "order_kappa"),
    ),
    ("tests of equal use of the classes", ("marginal_homogeneity_p",)),
    ("the Stuart–Maxwell test", ("stuart_maxwell_p",)),
    ("Bowker’s test of symmetry", ("bowker_p",)),
    ("McNemar’s test, mid-p", ("mcnemar_p",)),
)
PANEL: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Krippendorff’s alpha",
        (
            "krippendorff_alpha_nominal",
            "krippendorff_alpha_ordinal",
            "krippendorff_alpha_interval",
            "krippendorff_alpha_ratio",
        ),
    ),
    ("Fleiss’ kappa", ("fleiss_kappa",)),
    ("Cochran’s Q", ("cochran_q_p",)),
    ("agreement with the strict majority of the others", ("consensus_agreement", "solo")),
)
JUDGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "accuracy, false passes and false fails of the gate",
        ("gate_accuracy", "gate_false_accept", "gate_false_reject"),
    ),
    (
        "error, false accepts and false rejects by line",
        ("element_error", "false_accept", "false_reject"),
    ),
    ("leniency", ("leniency",)),
    ("correlation of errors", ("error_phi", "error_count_variance")),
    ("KR-20 under simulated independent errors", ("independent_error_kr20_mean",)),
)
BANK: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("mean and spread of totals", ("total_mean", "total_sd")),
    ("mean inter-element correlation", ("mean_inter_element_correlation",)),
    ("KR-20", ("kr20", "kr20_within_question", "kr20_standardised")),
    ("KR-21", ("kr21",)),
    ("Cronbach’s alpha", ("cronbach_alpha",)),
    ("omega total", ("omega_total",)),
    ("generalizability and dependability coefficients", ("generalizability", "dependability")),
    ("Φ(λ)", ("phi_lambda",)),
    ("the beta-binomial model", ("beta_binomial_alpha",)),
    (
        "Livingston–Lewis accuracy and consistency",
        ("livingston_lewis_accuracy", "livingston_lewis_consistency"),
    ),
)
PHRASINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("decisions that flip between phrasings", ("flip_rate",)),
    (
        "components of variance of phrasings and votes",
        ("component_phrasing", "component_response_phrasing", "component_vote"),
    ),
    (
        "dependability over phrasings",
        ("dependability_single", "dependability_mean", "dependability_fixed"),
    ),
    ("the rank correlation with gold", ("phrasing_rank_correlation",)),
)
GROUPS = (
    ("Of each grader: ", GRADERS, ""),
    ("Between two graders: ", PAIRS, ""),
    ("Of the whole panel: ", PANEL, ""),
    ("Of each judge against gold: ", JUDGES, ""),
    (
        "Of the bank of responses, and so of no judge: ",
        BANK,
        ", each beside its value on gold where there is gold",
    ),
    ("Of the phrasings: ", PHRASINGS, ""),
)

METHODS = {
    "jackknife_t": "the delete-one-cluster jackknife with Student’s t, on the scale that suits the quantity",
    "linearised_t": "the linearised cluster variance with Student’s t",
    "percentile": "percentiles of the multinomial cluster bootstrap",
    "korn_graubard": "at the edge of a share, the beta interval on the effective sample size",
    "clopper_pearson": "at the edge of a share, the exact binomial interval",
    "wilson": "Wilson’s score interval, as if responses were independent",
    "poisson_ratio": "for ratios of counts, the conditional binomial interval, as if responses were independent",
    "modified_large_sample": "for components of variance, modified large-sample intervals",
    "chi_square": "for components of one mean square, the chi-square interval",
    "f_ratio": "for dependability over fixed phrasings with cells missing, F intervals",
    "generalised_confidence": "for dependability, generalised confidence intervals",
    "mover_clopper_pearson": "for differences near no changes, the exact intervals of gained and lost, put together",
    "mover_korn_graubard": "for differences near no changes, the beta intervals of gained and lost, put together",
    "mover_independent": "for differences of two audits, the two intervals, put together as if independent",
}
_NUMBER = re.compile(r"(\d(?:[\d.,]*\d)?(?: %)?)")
CHANGES = ("map", "failed", "missing", "recode", "drop", "round", "refusal_like")


@dataclass
class _Prose:
    """A paragraph that is written part by part."""

    parts: list[Part] = field(default_factory=list)

    def say(self, *parts: Part | Text) -> None:
        for part in parts:
            self.parts.extend(part if isinstance(part, tuple) else (part,))

    def text(self) -> Text:
        """The parts, with neighbours of plain text in one."""
        made: list[Part] = []
        for part in self.parts:
            if type(part) is str and made and type(made[-1]) is str:
                made[-1] += part
            elif part != "":
                made.append(part)
        return tuple(made)


def methods(
    labels: Labels,
    scene: Scene,
    estimates: Sequence[Estimate],
    findings: Sequence[Finding],
    version: str,
) -> list[Block]:
    """The methods paragraph to paste, and where each of its numbers is from.

    ``estimates`` are the listed ones: what is not among them is not said to have been computed.
    """
    prose = _Prose()
    _data(prose, labels, scene)
    _classes(prose, labels, scene)
    _left_out(prose, labels, scene, Estimates(estimates))
    known = [e for e in estimates if e.number is not None]
    _statistics(prose, known, scene)
    _intervals(prose, known, labels)
    _few_clusters(prose, findings)
    prose.say("Computed with voirdire ", Traced(version, "version of voirdire", "the program"), ".")
    text = prose.text()
    return [
        Paste(title="Methods", lines=(text,)),
        *_sources(text),
        Paragraph(
            tone=Tone.NOTE,
            text=(
                "The .tex report has this paragraph with \\cite and its references, and -o methods.bib "
                "writes them as BibTeX.",
            ),
        ),
    ]


def _sources(text: Text) -> list[Block]:
    """The table of the paragraph's numbers, each once."""
    seen = dict[tuple[str, str, str], None]()
    for part in text:
        if isinstance(part, Traced):
            seen.setdefault((str(part), part.what, part.source), None)
    return [
        Table(
            title="Where the numbers of the methods paragraph are from",
            columns=(
                Column(title="number"),
                Column(title="what it is"),
                Column(title="from"),
            ),
            rows=tuple(
                (cell(value), cell(what, Kind.TEXT), cell((Name(source),)))
                for value, what, source in seen
            ),
        )
    ]


def _count(n: float, noun: str, source: str, several: str = "") -> Text:
    """A count with its noun, the number traced."""
    word = noun if n == 1 else several or f"{noun}s"
    return (Traced(counted(n), word, source), f" {word}")


# --- what was graded ----------------------------------------------------------------------------


def _data(prose: _Prose, labels: Labels, scene: Scene) -> None:
    inputs = ", ".join(i.name for i in labels.inputs) or "the labels"
    source = f"input: {inputs}"
    who = "judge" if labels.kind == "checklist" else "grader"
    named = listed(scene.panel)
    if labels.kind == "counts":
        prose.say("We audited printed class counts of ", _count(len(scene.panel), who, source))
        prose.say(" (", named, "); the responses behind them are not at hand.")
    else:
        frame = labels.frame
        prose.say("We audited ", _count(len(scene.panel), who, source), " (", named, ") on ")
        prose.say(_count(labels.responses, "response", source))
        if labels.clusters_declared:
            prose.say(" in ", _count(frame["cluster"].n_unique(), "cluster", source))
        else:
            prose.say(", each taken as its own cluster")
        bank = scene.bank
        if bank is not None:
            lengths = bank.length[bank.length > 0]
            least = int(lengths.min()) if lengths.size else 0
            most = int(lengths.max(initial=0))
            ends: Text = (Traced(counted(most), "lines of a checklist", source),)
            if least != most:
                ends = (
                    Traced(counted(least), "fewest lines of a checklist", source),
                    " to ",
                    *ends,
                )
            prose.say(", against checklists of ", ends, " yes/no lines")
            if bank.own:
                prose.say(" for ", _count(len(bank.questions), "question", source))
        for column, noun in (("vote", "vote"), ("phrasing", "phrasing")):
            many = frame[column].drop_nulls().n_unique() if column in frame.columns else 0
            if many > 1:
                prose.say(", with up to ", _count(many, noun, source))
        prose.say(".")
    if scene.gold:
        prose.say(" ", Name(scene.gold), " was taken as gold and is in no statistic of the panel.")
    if scene.reference:
        prose.say(" ", Name(scene.reference), " was the reference, which is not the truth.")
    people = [g.name for g in scene.graders if g.person]
    if people:
        prose.say(" ", listed(people), " are people." if len(people) > 1 else " is a person.")
    options = labels.options
    if options.weight:
        kind = "design" if options.weight_kind == "design" else "frequency"
        prose.say(f" Responses were weighed by {kind} weights (", Name(options.weight), ").")
    if options.stratum:
        prose.say(" Clusters are drawn within the strata of ", Name(options.stratum), ".")
    if options.by:
        prose.say(" Everything was also computed by ", listed(options.by), ".")


def _classes(prose: _Prose, labels: Labels, scene: Scene) -> None:
    options = labels.options
    if labels.kind != "checklist" and scene.classes:
        if scene.ordered:
            prose.say(" Labels are on the ordered scale ", _chain(scene.scale, " < "))
            if labels.off_scale:
                prose.say(", with ", listed(labels.off_scale), " outside of it")
        else:
            prose.say(" Labels are of the unordered classes ", listed(scene.classes))
        prose.say(".")
    changed = [name for name in CHANGES if getattr(options, name)]
    if changed:
        flags = [f"--{name.replace('_', '-')}" for name in changed]
        prose.say(f" Labels were prepared by fixed rules ({', '.join(flags)}; see the options).")
    if scene.bank is not None and options.cut:
        cuts: list[Part] = []
        for i, cut in enumerate(sorted(set(options.cut))):
            cuts += [", " if i else "", Traced(counted(cut), "lines that pass", "option: cut")]
        prose.say(" A response passes with at least this many lines met: ", tuple(cuts), ".")


def _chain(names: Iterable[str], between: str) -> Text:
    parts: list[Part] = []
    for name in names:
        parts += [between, Name(name)] if parts else [Name(name)]
    return tuple(parts)


def _left_out(prose: _Prose, labels: Labels, scene: Scene, estimates: Estimates) -> None:
    """How many calls gave no label, from the rows of ``outcome_count``."""
    totals = dict[str, float]()
    for one in estimates.of("outcome_count", slice=""):
        if one.number and one.key.class_ != "label":
            totals[one.key.class_] = totals.get(one.key.class_, 0) + one.number
    missing = totals.pop("missing", 0)
    what = "verdict" if labels.kind == "checklist" else "label"
    if totals:
        parts: list[Part] = []
        for i, (outcome, n) in enumerate(totals.items()):
            source = f"results: outcome_count, class {outcome}, summed over graders"
            parts += [", " if i else "", Traced(counted(n), f"calls {outcome}", source)]
            parts.append(f" {outcome.replace('_', ' ')}")
        prose.say(f" Calls that gave no {what} are left out and never count as a class (")
        prose.say(tuple(parts), ").")
    elif labels.kind != "counts":
        prose.say(f" Every call gave a {what}.")
    if missing:
        source = "results: outcome_count, class missing, summed over graders"
        prose.say(" ", _count(missing, "label", source), " missing from the input ")
        prose.say("is" if missing == 1 else "are", " left out too.")
    if labels.kind == "checklist":
        prose.say(" A response counts where every line of its checklist has a verdict.")
    if scene.options.vote and labels.kind == "labels":
        rule = "the majority of its votes; without one it has no label"
        if scene.options.vote_rule == "first":
            rule = "its first readable vote"
        prose.say(f" A response’s label is {rule}.")


# --- what was computed --------------------------------------------------------------------------


def _statistics(prose: _Prose, known: Sequence[Estimate], scene: Scene) -> None:
    estimands = {e.statistic: e.estimand for e in known}
    for lead, group, tail in GROUPS:
        together: list[tuple[tuple[str, ...], list[str]]] = []  # neighbours of the same sources
        for words, names in group:
            there = [estimands[n] for n in names if n in estimands]
            if not there:
                continue
            keys = tuple(dict.fromkeys(k for e in there for k in keys_of(e.source.text)))
            if together and together[-1][0] == keys:
                together[-1][1].append(words)
            else:
                together.append((keys, [words]))
        said: list[Part] = []
        for keys, phrases in together:
            said += ["; " if said else lead, plain(listed(phrases, most=99))]
            if keys:
                said += [" ", bibliography.cite(*keys)]
        if said:
            prose.say(" ", tuple(said), f"{tail}.")
    if "collapse_ratio" in estimands:
        options = scene.options
        prose.say(
            " A class is examined for collapse where the grader gives it less than ",
            Traced(number(options.collapse_below), "ratio of counts", "option: collapse_below"),
            " times as often as a comparison that gives it at least ",
            Traced(counted(options.collapse_base), "labels of the class", "option: collapse_base"),
            " times.",
        )


def _intervals(prose: _Prose, known: Sequence[Estimate], labels: Labels) -> None:
    found = dict[str, None]()
    for e in known:
        for interval in (e.interval, e.edge):
            if interval is not None:
                found.setdefault(interval.method, None)
    if not found:
        return
    options = labels.options
    level = Traced(f"{percent(options.level, 0)}", "level of intervals", "option: level")
    if not (100 * options.level).is_integer():
        level = Traced(f"{100 * options.level:.4g} %", "level of intervals", "option: level")
    said: list[Part] = [" Intervals are at ", level, ": "]
    order = [*(m for m in METHODS if m in found), *(m for m in found if m not in METHODS)]
    for i, method in enumerate(order):
        said += ["; " if i else "", METHODS.get(method, method.replace("_", " "))]
        if method == "percentile":
            said += [
                ", ",
                Traced(counted(options.replicates), "replicates", "option: replicates"),
                " replicates from seed ",
                Traced(str(options.seed), "seed", "option: seed"),
            ]
        keys = bibliography.METHODS.get(method, ())
        if keys:
            said += [" ", bibliography.cite(*keys)]
    prose.say(tuple(said), ".")


def _traced(text: str) -> Text:
    """A sentence of the finding on few clusters with each of its numbers traced to it."""
    pieces = _NUMBER.split(text)
    return tuple(
        Traced(piece, "clusters, or measured coverage", "finding: few_clusters") if i % 2 else piece
        for i, piece in enumerate(pieces)
        if piece
    )


def _few_clusters(prose: _Prose, findings: Sequence[Finding]) -> None:
    """The measured coverage, where intervals rest on few clusters; and Holm, where it was used."""
    few = next(
        (
            f
            for f in findings
            if f.code == "few_clusters" and f.state is State.FOUND and not f.slice
        ),
        None,
    )
    if few is not None:
        prose.say(" ")
        for part in few.sentence:
            prose.say(part if isinstance(part, Name) else _traced(part))
    if any("Holm" in plain(f.sentence) for f in findings):
        prose.say(
            " Where a check looks at several places at once, its p-values are adjusted by Holm’s method ",
            bibliography.cite("holm1979"),
            ".",
        )
    prose.say(" ")
