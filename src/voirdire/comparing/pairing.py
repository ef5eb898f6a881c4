"""Two graders brought onto their common responses: reading, naming, and what stands on one side only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from typing import Any

import polars as pl

from voirdire.checklist import Checklist
from voirdire.document import Input
from voirdire.errors import InputError, UsageError
from voirdire.inputs import rows_of, sources
from voirdire.labels import Labels, assemble, gold_name
from voirdire.options import MISSING, Options
from voirdire.questions import natural
from voirdire.rows import Place, Rows
from voirdire.source import Source
from voirdire.wording import Name, Text, listed, plain, plural, printable, say

# Options that speak of graders by name, or of the audit of a panel: two graders are none.
_OF_PANELS = (
    *("graders", "people", "derived_from", "range", "panel", "without", "standardise", "drop"),
    *("grader_name", "about", "reference"),
)
SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two: its name in the comparison and in its file, and the files that it comes from."""

    name: str
    given: str
    inputs: tuple[Input, ...]

    @property
    def files(self) -> str:
        return ", ".join(dict.fromkeys(i.name for i in self.inputs))


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The labels of two graders (and gold) on their common responses.

    ``only_old`` and ``only_new`` name the responses that just one of them was asked about, in natural
    order. ``notices`` are about the pairing; those of reading are with the labels.
    """

    labels: Labels
    old: Side
    new: Side
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    notices: tuple[Text, ...]


def pair(
    old: Any,
    new: Any,
    options: Options,
    *,
    old_name: str = "",
    new_name: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Pair:
    """Read one or two inputs (``new`` may be ``None``) and join the two graders on their responses.

    Raises :class:`UsageError` where it is not clear who is meant, :class:`InputError` where the two
    have no response in common.
    """
    # Both are looked for before either is read.
    old, new = (None if given is None else sources([given]) for given in (old, new))
    if new is None:
        parts, names = _read(old, options, (old_name, new_name), progress)
        old_given, new_given = _two(names, old_name, new_name)
        sides: list[tuple[list[Rows], tuple[str, ...]]] = [(parts, (old_given, new_given))]
    else:
        of_old, old_names = _read(old, options, (old_name,), progress, "--old")
        of_new, new_names = _read(new, options, (new_name,), progress, "--new")
        old_given, new_given = _one_of_each(old_names, new_names, old_name, new_name)
        sides = [(of_old, (old_given,)), (of_new, (new_given,))]
    shown = {0: old_given, 1: new_given}
    if old_given == new_given:
        shown = {0: f"{old_given} (old)", 1: f"{new_given} (new)"}
    rows: list[Rows] = []
    for i, (parts, chosen) in enumerate(sides):
        gold = _gold_of(parts, options)
        clash = [g for g in shown.values() if g == gold]
        if clash:
            raise UsageError(
                f"{printable(clash[0])} is gold, and gold is not compared with itself. Name another "
                "with --old and --new, or say --gold none."
            )
        names_here: dict[str, str] = {chosen[0]: shown[i]} if len(chosen) == 1 else {}
        rows += [_kept(part, {*chosen, gold}, names_here) for part in parts]
    rows = [r for r in rows if r.frame.height]
    default = Options()
    settled = replaced(options, **{n: getattr(default, n) for n in _OF_PANELS})
    try:
        labels = assemble(rows, settled)
    except InputError as error:
        gold = _gold_of(rows, options)
        twice = sum(gold in r.frame["grader"] for r in rows if "grader" in r.frame.columns) > 1
        if not (gold and twice and f"grader {printable(gold)} is labelled" in str(error)):
            raise
        raise InputError(
            f"{error}\nGold ({printable(gold)}) stands in both inputs and must be the same: mend one of "
            "them, or remove it from one."
        ) from error
    labels = labels.with_facts(replaced(labels.options, reference=shown[0]))
    notices: list[Text] = []
    if labels.kind == "counts":
        raise InputError(
            "A table of counts does not say which responses are the same. Audit each with -o "
            "old.json and -o new.json, and compare the two results: voirdire compare old.json new.json"
        )
    if labels.kind == "labels" and new is not None and not labels.ordered:
        notices += _classes_apart(labels, shown)
    if labels.kind == "checklist":
        labels, said = _common_lines(labels, shown)
        notices += said
    labels, only_old, only_new = _common(labels, shown)
    inputs = [tuple(_input(r) for r in parts) for parts, _ in sides]
    return Pair(
        labels=labels,
        old=Side(name=shown[0], given=old_given, inputs=inputs[0]),
        new=Side(name=shown[1], given=new_given, inputs=inputs[-1]),
        only_old=only_old,
        only_new=only_new,
        notices=tuple(notices),
    )


def _input(rows: Rows) -> Input:
    height = len(rows.frame) if rows.height is None else rows.height
    return Input(name=rows.name, sha256=rows.sha256, rows=height)


def _read(
    inputs: Sequence[Source],
    options: Options,
    wanted: Sequence[str],
    progress: Callable[[int, int], None] | None,
    flag: str = "",
) -> tuple[list[Rows], list[str]]:
    """The rows of one side and the names of its graders but gold, in the order of the file."""
    named = tuple(dict.fromkeys(w for w in wanted if w))
    if named and not options.graders:
        options = replaced(options, graders=named)
    try:
        parts = rows_of(inputs, options, progress=progress)
    except UsageError as error:
        # What readers know as --graders was given here as --old and --new.
        flags = "--old and --new" if len(wanted) > 1 else flag
        raise UsageError(str(error).replace("--graders:", f"{flags}:")) from error
    gold = _gold_of(parts, options)
    names: dict[str, None] = {}
    for part in parts:
        if "grader" in part.frame.columns:
            found = part.frame["grader"].drop_nulls().unique(maintain_order=True).to_list()
            names.update(dict.fromkeys(str(g) for g in found))
    return parts, [n for n in names if n != gold]


def _gold_of(parts: Sequence[Rows], options: Options) -> str:
    if options.gold:
        return "" if options.gold == "none" else options.gold
    carried = {str(p.carried["gold"]) for p in parts if p.carried.get("gold")}
    return carried.pop() if len(carried) == 1 else "gold"


def _named(names: Sequence[str], given: str, flag: str) -> str:
    if given not in names:
        raise UsageError(
            f"{flag}: there is no grader {given!r}. Graders: {plain(listed(names, most=20)) or 'none'}."
        )
    return given


def _two(names: Sequence[str], old: str, new: str) -> tuple[str, str]:
    """Old and new from one file."""
    if old and new:
        if old == new:
            raise UsageError(f"--old and --new both name {old!r}. Name two graders.")
        return _named(names, old, "--old"), _named(names, new, "--new")
    raise UsageError(
        "One file holds both: say who is the old and who is the new grader, "
        f"--old NAME --new NAME. Graders: {plain(listed(map(printable, names), most=20)) or 'none'}."
    )


def _one_of_each(
    of_old: Sequence[str], of_new: Sequence[str], old: str, new: str
) -> tuple[str, str]:
    """Who is compared: the named, else the only one of a file, else the only name that both have."""
    common = [n for n in of_old if n in of_new]
    made = []
    for names, given, flag in ((of_old, old, "--old"), (of_new, new, "--new")):
        if given:
            made.append(_named(names, given, flag))
        elif len(names) == 1:
            made.append(names[0])
        elif len(common) == 1:
            made.append(common[0])
        elif not names:
            raise InputError(
                f"{'OLD' if flag == '--old' else 'NEW'} has no labels of a grader beside gold."
            )
        else:
            raise UsageError(
                f"{flag}: the file has several graders; name the one to compare: {flag} NAME. "
                f"Graders: {plain(listed(map(printable, names), most=20))}."
            )
    return made[0], made[1]


def _kept(part: Rows, wanted: set[str], renamed: dict[str, str]) -> Rows:
    """The rows of these graders alone, under their names in the comparison."""
    frame = part.frame
    if "grader" not in frame.columns:
        return part
    kept = frame["grader"].is_in(list(wanted)).fill_null(False).arg_true()
    places = kept.to_list()

    def place(row: int) -> Place:
        return part.place(places[row])

    carried = {
        **part.carried,
        **({"graders": []} if "graders" in part.carried else {}),
        "reference": "",
    }
    return replaced(
        part,
        frame=frame[kept].with_columns(pl.col("grader").replace(renamed)),
        place=place,
        order=tuple(renamed.get(g, g) for g in part.order if g in wanted),
        seen=tuple(renamed.get(g, g) for g in part.seen if g in wanted),
        facts={},
        carried=carried,
    )


def _classes_apart(labels: Labels, shown: dict[int, str]) -> list[Text]:
    """A notice of classes that only one of the two gives, where no scale was declared."""
    frame = labels.frame.filter(pl.col("label").is_not_null())
    used = [
        set(frame.filter(pl.col("grader") == name)["label"].cast(pl.String).unique().to_list())
        for name in shown.values()
    ]
    said = []
    if used[0] and used[1] and not used[0] & used[1]:
        said.append(
            say(
                "{old} and {new} have no class in common, so every label counts as changed. Where their "
                "names mean the same, read one as the other with --map OLD=NEW.",
                old=Name(shown[0]),
                new=Name(shown[1]),
            )
        )
    for i, name in shown.items():
        alone = sorted(used[i] - used[1 - i], key=lambda c: (natural(c), c))
        if alone:
            said.append(
                say(
                    "{grader} alone gives {classes}. All classes of the two are compared; read one as "
                    "another with --map OLD=NEW where they mean the same.",
                    grader=Name(name),
                    classes=listed(alone),
                )
            )
    return said


def _asked(frame: pl.DataFrame, grader: str) -> pl.DataFrame:
    return frame.filter((pl.col("grader") == grader) & (pl.col("outcome") != MISSING))


def _common_lines(labels: Labels, shown: dict[int, str]) -> tuple[Labels, list[Text]]:
    """The checklist with the lines that both were asked about."""
    checklist = labels.checklist
    assert checklist is not None
    lines = [
        set(_asked(labels.frame, name)["line"].cast(pl.String).unique().to_list())
        for name in shown.values()
    ]
    if lines[0] == lines[1]:
        return labels, []
    common = lines[0] & lines[1]
    if not common:
        raise InputError(
            "The two checklists have no line in common. "
            + "; ".join(
                f"{printable(name)}: {plain(listed(map(printable, sorted(of))))}"
                for name, of in zip(shown.values(), lines, strict=True)
            )
            + ". Bring the names together with --recode line:OLD=NEW."
        )
    kept = [
        (q, tuple(n for n in names if n in common))
        for q, names in zip(checklist.questions, checklist.lines, strict=True)
    ]
    kept = [(q, names) for q, names in kept if names]
    pruned = Checklist(
        questions=tuple(q for q, _ in kept),
        lines=tuple(names for _, names in kept),
        question=checklist.question,
        texts={n: t for n, t in checklist.texts.items() if n in common},
    )
    frame = labels.frame.filter(pl.col("line").cast(pl.String).is_in(list(common)))
    said = []
    for i, name in shown.items():
        alone = sorted(lines[i] - common, key=lambda c: (natural(c), c))
        if alone:
            said.append(
                say(
                    "{lines} {who} only with {grader} ({names}): not compared.",
                    lines=plural(len(alone), "line"),
                    who="stands" if len(alone) == 1 else "stand",
                    grader=Name(name),
                    names=listed(alone),
                )
            )
    return replaced(labels, frame=frame, checklist=pruned), said


def _common(
    labels: Labels, shown: dict[int, str]
) -> tuple[Labels, tuple[str, ...], tuple[str, ...]]:
    """The labels on responses that both were asked about, and the names of the others."""
    asked = [
        set(_asked(labels.frame, name)["response"].unique().to_list()) for name in shown.values()
    ]
    alone = [
        tuple(sorted(asked[i] - asked[1 - i], key=lambda r: (natural(r), r))) for i in range(2)
    ]
    common = asked[0] & asked[1]
    if not common:
        examples = "; ".join(
            f"{printable(name)}: {plain(listed(map(printable, names), most=SHOWN)) or 'none'}"
            for name, names in zip(shown.values(), alone, strict=True)
        )
        raise InputError(
            f"The two have no response in common ({examples}). Name the column that holds the same id in "
            "both with --response, or bring the ids together with --recode response:OLD=NEW. Without "
            "common responses, audit each with -o old.json and -o new.json and compare the results: "
            "voirdire compare old.json new.json"
        )
    kept = labels.frame.filter(pl.col("response").is_in(list(common)))
    return replaced(labels, frame=kept), alone[0], alone[1]


def gold_of(labels: Labels) -> str:
    """The name of gold among the labels, empty for none."""
    return gold_name(labels.grader_names, labels.options)
