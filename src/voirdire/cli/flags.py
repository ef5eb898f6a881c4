"""The flags that set :class:`voirdire.options.Options`, one entry a flag, and how a command takes them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import typer

from voirdire.options import Options, split_list

__all__ = ["AUDITING", "READING", "Flag", "Form", "takes"]


class Form(Enum):
    """What a flag's value looks like on the command line."""

    TEXT = "one text; the last one given counts"
    LIST = "names with commas between; given again, it adds"
    REPEATED = "one text each time it is given"
    NUMBER = "a number"
    WHOLE = "a whole number"
    SWITCH = "no value"


_TYPES: dict[Form, Any] = {
    Form.TEXT: str | None,
    Form.LIST: list[str] | None,
    Form.REPEATED: list[str] | None,
    Form.NUMBER: float | None,
    Form.WHOLE: int | None,
    Form.SWITCH: bool,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag: the option of that name, with its words in ``--help``."""

    name: str
    help: str
    panel: str
    form: Form = Form.TEXT
    metavar: str = "COLUMN"

    @property
    def parameter(self) -> inspect.Parameter:
        """The flag as a parameter of a command's function."""
        option: Any = typer.Option(
            "--" + self.name.replace("_", "-"),
            help=self.help,
            rich_help_panel=self.panel,
            metavar="" if self.form is Form.SWITCH else self.metavar,
            show_default=False,
        )
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[_TYPES[self.form], option],
            default=False if self.form is Form.SWITCH else None,
        )

    def value(self, given: Any) -> Any:
        """What was given, as :meth:`Options.of` takes it; ``None`` where nothing was."""
        if given is None or given is False or given == []:
            return None
        if self.form is Form.LIST:
            return [name for text in given for name in split_list(text)]
        return given


_COLUMNS = "Which column is what"
_GRADERS = "Graders"
_SCALE = "Scale and label clean-up"
_RATES = "Rates and the collapse rule"
_SLICES = "Slices and votes"
_GATES = "Gates of checklists"
_INTERVALS = "Intervals"
_CHECKS = "Thresholds of checks"
_FILES = "Reading"

READING: tuple[Flag, ...] = (
    Flag(
        name="layout",
        help="How the table is laid out; auto takes the one layout that fits.",
        panel=_COLUMNS,
        metavar="auto|long|wide|counts|checklist",
    ),
    Flag(
        name="response",
        help="What names a response; a+b joins two columns with a slash.",
        panel=_COLUMNS,
    ),
    Flag(name="grader", help="Who gave the label (long and counts).", panel=_COLUMNS),
    Flag(name="label", help="The label (long).", panel=_COLUMNS),
    Flag(
        name="cluster",
        help="Responses that are not independent of each other share its value. Default: a column "
        "with a recognised name, else each response is its own cluster.",
        panel=_COLUMNS,
    ),
    Flag(
        name="question",
        help="The question of a checklist, if each has its own lines. Default: question_id or question; "
        "none for one checklist for all.",
        panel=_COLUMNS,
    ),
    Flag(name="vote", help="The repeat under one prompt.", panel=_COLUMNS),
    Flag(name="phrasing", help="The wording of the instruction.", panel=_COLUMNS),
    Flag(
        name="phrasings",
        help="Columns that hold one grader under reworded instructions, one wording a column (wide); "
        "with several graders once for each: NAME=A,B,C. Without a name: --grader-name, else the "
        "file's stem.",
        panel=_COLUMNS,
        form=Form.REPEATED,
        metavar="[NAME=]A,B,C",
    ),
    Flag(name="weight", help="The weight of the response.", panel=_COLUMNS),
    Flag(
        name="weight_kind",
        help="What --weight holds: design weights (the default), or how often the row was seen.",
        panel=_COLUMNS,
        metavar="design|frequency",
    ),
    Flag(name="stratum", help="The stratum that the response was drawn from.", panel=_COLUMNS),
    Flag(
        name="population",
        help="How many responses the stratum holds in all, for the finite population correction.",
        panel=_COLUMNS,
    ),
    Flag(name="line", help="The line of a checklist (long).", panel=_COLUMNS),
    Flag(
        name="line_prefix",
        help="What stands before the number in the columns of a checklist: L for L1 or NAME_L1. "
        "Default: e.",
        panel=_COLUMNS,
        metavar="P",
    ),
    Flag(
        name="step",
        help="The step of a decision path after labelling; steps come in order of first appearance, "
        "and a response without a row at a step keeps its label.",
        panel=_COLUMNS,
    ),
    Flag(name="outcome", help="How the grading call ended.", panel=_COLUMNS),
    Flag(
        name="graders",
        help="The graders to use; in a wide table, their columns.",
        panel=_GRADERS,
        form=Form.LIST,
        metavar="A,B,C",
    ),
    Flag(
        name="grader_name",
        help="The name of the one grader of a file that names none. Default: the file's stem.",
        panel=_GRADERS,
        metavar="NAME",
    ),
    Flag(
        name="gold",
        help="The labels taken as the truth. Default: a grader named gold, if there is one; "
        "none for none.",
        panel=_GRADERS,
        metavar="NAME",
    ),
    Flag(
        name="reference",
        help="A grader that the others are compared with; it is not taken as the truth.",
        panel=_GRADERS,
        metavar="NAME",
    ),
    Flag(
        name="people",
        help="The graders that are people.",
        panel=_GRADERS,
        form=Form.LIST,
        metavar="A,B",
    ),
    Flag(
        name="derived_from",
        help="A grader made from others, such as a majority. Repeatable.",
        panel=_GRADERS,
        form=Form.REPEATED,
        metavar="NEW=A+B",
    ),
    Flag(
        name="range",
        help="The classes that a grader can give at all. Repeatable.",
        panel=_GRADERS,
        form=Form.REPEATED,
        metavar="GRADER=CLASS+CLASS",
    ),
    Flag(
        name="about",
        help="A TOML file with facts on graders (model, size, family, prompt, votes).",
        panel=_GRADERS,
        metavar="FILE.toml",
    ),
    Flag(
        name="scale",
        help="The classes in order, lowest first. Without it all labels seen are unordered classes.",
        panel=_SCALE,
        form=Form.LIST,
        metavar="LOW,…,HIGH",
    ),
    Flag(
        name="off_scale",
        help="Classes that stand outside the order.",
        panel=_SCALE,
        form=Form.LIST,
        metavar="A,B",
    ),
    Flag(
        name="missing",
        help="A mark that means nothing is known, such as NA. Repeatable.",
        panel=_SCALE,
        form=Form.REPEATED,
        metavar="MARK",
    ),
    Flag(
        name="map",
        help="Read one label as another. Repeatable.",
        panel=_SCALE,
        form=Form.REPEATED,
        metavar="OLD=NEW",
    ),
    Flag(
        name="failed",
        help="Count a mark as a call that gave no label (unparsed, truncated, empty, "
        "grader_refusal, blocked, error); '*=unparsed' takes whatever is left. Repeatable.",
        panel=_SCALE,
        form=Form.REPEATED,
        metavar="MARK=OUTCOME",
    ),
    Flag(
        name="recode",
        help="Repair a spelling in a name or tag column before joining. Repeatable.",
        panel=_SCALE,
        form=Form.REPEATED,
        metavar="COLUMN:OLD=NEW",
    ),
    Flag(
        name="round",
        help="Bring fractional numbers to whole ones.",
        panel=_SCALE,
        form=Form.SWITCH,
    ),
    Flag(
        name="encoding",
        help="The encoding of text files. Default: UTF-8.",
        panel=_FILES,
        metavar="NAME",
    ),
    Flag(
        name="strict",
        help="Stop where there would be a notice.",
        panel=_FILES,
        form=Form.SWITCH,
    ),
)

AUDITING: tuple[Flag, ...] = (
    Flag(
        name="rate",
        help="A rate to report: the share of labels in these classes. Default: the top class, and "
        "everything but the bottom class. Repeatable.",
        panel=_RATES,
        form=Form.REPEATED,
        metavar="NAME=CLASS+CLASS",
    ),
    Flag(
        name="refusal_like",
        help="Off-scale classes that count with the bottom class.",
        panel=_RATES,
        form=Form.LIST,
        metavar="CLASS",
    ),
    Flag(
        name="collapse_below",
        help="A class has collapsed where the grader gives it less often than this share of the "
        "other's count. Default: 0.3333.",
        panel=_RATES,
        form=Form.NUMBER,
        metavar="SHARE",
    ),
    Flag(
        name="collapse_base",
        help="The other must have given the class at least so often. Default: 20.",
        panel=_RATES,
        form=Form.WHOLE,
        metavar="N",
    ),
    Flag(
        name="without",
        help="Show the spread between graders also without these.",
        panel=_SLICES,
        form=Form.LIST,
        metavar="A,B",
    ),
    Flag(
        name="panel",
        help="Who forms the panel of the consensus; nobody is scored by a panel with itself in it. "
        "Default: all graders.",
        panel=_SLICES,
        form=Form.LIST,
        metavar="A,B",
    ),
    Flag(
        name="standardise",
        help="Show rates at an equal mix of this tag's values; inside slices, at the mix of the "
        "whole. Repeatable.",
        panel=_SLICES,
        form=Form.REPEATED,
        metavar="TAG",
    ),
    Flag(
        name="drop",
        help="Show rates and their spread without one value of a tag. Repeatable.",
        panel=_SLICES,
        form=Form.REPEATED,
        metavar="TAG=VALUE",
    ),
    Flag(
        name="by",
        help="Repeat the audit for each value of this tag; a+b crosses two, label:GRADER slices "
        "by that grader's label. Repeatable.",
        panel=_SLICES,
        form=Form.REPEATED,
        metavar="COLUMN",
    ),
    Flag(
        name="text",
        help="A column with the text of the response, to be shown where the report lists responses. "
        "Without it no text is in the report. Repeatable.",
        panel=_SLICES,
        form=Form.REPEATED,
        metavar="COLUMN",
    ),
    Flag(
        name="vote_rule",
        help="How votes make a label: majority (the default; no majority is no label) or first.",
        panel=_SLICES,
        metavar="majority|first",
    ),
    Flag(
        name="cut",
        help="A response passes with at least this many lines met; in a study of phrasings of numeric "
        "labels, with at least this score, any number. Repeatable.",
        panel=_GATES,
        form=Form.REPEATED,
        metavar="C",
    ),
    Flag(
        name="livingston_lewis_grid",
        help="Livingston–Lewis on a grid of so many points, as printed (400). Default: exactly.",
        panel=_GATES,
        form=Form.WHOLE,
        metavar="N",
    ),
    Flag(
        name="depends_ratio",
        help="A rate depends on the grader above this ratio of highest to lowest. Default: 2.",
        panel=_CHECKS,
        form=Form.NUMBER,
        metavar="RATIO",
    ),
    Flag(
        name="depends_points",
        help="… or above this range in percentage points. Default: 10.",
        panel=_CHECKS,
        form=Form.NUMBER,
        metavar="POINTS",
    ),
    Flag(
        name="few_clusters",
        help="Fewer clusters than this are few. Default: 30.",
        panel=_CHECKS,
        form=Form.WHOLE,
        metavar="N",
    ),
    Flag(
        name="interval",
        help="auto (the default) needs no seed: jackknife over clusters; bootstrap resamples them.",
        panel=_INTERVALS,
        metavar="auto|bootstrap",
    ),
    Flag(
        name="replicates",
        help="Bootstrap replicates. Default: 2000.",
        panel=_INTERVALS,
        form=Form.WHOLE,
        metavar="N",
    ),
    Flag(
        name="level",
        help="The level of the intervals. Default: 0.95.",
        panel=_INTERVALS,
        form=Form.NUMBER,
        metavar="SHARE",
    ),
    Flag(
        name="seed",
        help="The seed of the bootstrap. Default: 0.",
        panel=_INTERVALS,
        form=Form.WHOLE,
        metavar="N",
    ),
)


def takes(*groups: Iterable[Flag]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these flags; its function gets them as one ``options``, already checked."""
    flags = {flag.name: flag for group in groups for flag in group}

    def with_flags(function: Callable[..., None]) -> Callable[..., None]:
        own = [
            parameter
            for parameter in inspect.signature(function, eval_str=True).parameters.values()
            if parameter.name != "options"
        ]
        parameters = [*own, *(flag.parameter for flag in flags.values())]

        @functools.wraps(function)
        def command(**given: Any) -> None:
            values = {name: flag.value(given.pop(name)) for name, flag in flags.items()}
            function(**given, options=Options.of(**values))

        # Typer reads both.
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return with_flags
