"""Which files are read, by which reader, and how the rows of several come together."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import polars as pl

from voirdire import plugins, workers
from voirdire.errors import InputError, UsageError, VoirdireError, unreadable
from voirdire.labels import class_order, number_form
from voirdire.options import Options
from voirdire.readers._logs import refuse_crowd
from voirdire.readers._suggest import gold_beside, gold_columns
from voirdire.readers.base import Reader
from voirdire.readers.table import raw_table
from voirdire.rows import Place, Rows
from voirdire.source import STANDARD_INPUT, Source
from voirdire.wording import Name, Text, linked, listed, plain, plural, printable, say

LONGEST_CAUSE = 120  # characters of why a file was left out
SHOWN = 5  # files named in a notice about those that were left out
# Bytes of all files together, above which starting processes takes less time than it saves. Small
# files are read as fast as their rows go from one process to another, however many they are.
MUCH = 256 << 20
OWN = "grading_store"  # our own records: whoever grades responses anew means those of the log
RUN = "run"  # the part of a scope that tells runs of one task apart
ALIKE = 3  # files of which each may say the same in a notice of its own
LEFT_OUT_SUFFIXES = {
    ".md",
    ".rst",
    ".html",
    ".htm",
    ".yaml",
    ".yml",
    ".toml",
    ".py",
    ".log",
    ".png",
}


# --- files --------------------------------------------------------------------------------------


def sources(inputs: Sequence[Any]) -> list[Source]:
    """Sources from file names (globs too), folders, ``-`` for standard input, and frames.

    A folder gives every file in it, at any depth, but for hidden ones. Raises :class:`InputError`
    for a file that is missing or empty and for a folder without files.
    """
    if not inputs:
        raise UsageError("Name at least one input, or - for standard input.")
    found: list[Source] = []
    for given in inputs:
        if isinstance(given, Source):
            found.append(given)
        elif isinstance(given, str) and given == "-":
            content = sys.stdin.buffer.read()
            if not content:
                raise InputError("standard input: it is empty.")
            found.append(Source(name=STANDARD_INPUT, content=content))
        elif isinstance(given, str | Path):
            found.extend(_files(str(given)))
        else:
            found.append(Source.of_frame(given, name=f"frame {len(found) + 1}"))
    return found


def _files(given: str) -> list[Source]:
    path = Path(given)
    if not path.exists() and any(c in given for c in "*?["):
        paths = [Path(p) for p in sorted(glob.glob(given, recursive=True))]
        if not paths:
            raise InputError(
                f"{given}: no file has such a name. Check the pattern, and the folder you are in."
            )
    else:
        paths = [path]
    found: list[Source] = []
    for one in paths:
        if not one.exists():
            raise InputError(unreadable(one))
        if one.is_dir():
            if len(paths) == 1:
                found += _in_folder(one)
            continue
        if not one.is_file():
            continue
        if one.stat().st_size == 0:
            raise InputError(f"{one}: the file is empty.")
        found.append(Source(name=one.name, path=one))
    return found


def _in_folder(folder: Path) -> list[Source]:
    """Every file of a folder, named by its place in it, in a fixed order."""
    found = []
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(files):
            path = Path(base) / name
            if name.startswith(".") or not path.is_file() or path.stat().st_size == 0:
                continue
            found.append(Source(name=path.relative_to(folder).as_posix(), path=path, searched=True))
    if not found:
        raise InputError(
            f"{folder}: there is no file in this folder. Name label tables, eval logs, or a folder of them."
        )
    return found


# --- readers ------------------------------------------------------------------------------------


def reader_of(source: Source) -> Reader:
    """The one reader that claims a source; a sure claim goes before one that is not."""
    claims = [
        (claim, reader)
        for reader in plugins.load("readers", Reader)
        if (claim := reader.sniff(source)) is not None
    ]
    sure = [c for c in claims if c[0].sure] or claims
    if not sure:
        known = ", ".join(r.title for r in plugins.load("readers", Reader))
        raise InputError(
            f"{source.name}: this is nothing that voirdire reads ({known}). If it is text in "
            "another encoding, name it with --encoding."
        )
    if len(sure) > 1:
        raise UsageError(
            f"{source.name}: {' and '.join(r.title for _, r in sure)} both read this. "
            "Rename the file so that one of them applies."
        )
    return sure[0][1]


def rows_of(
    found: Sequence[Source], options: Options, *, progress: Callable[[int, int], None] | None = None
) -> list[Rows]:
    """The rows of every source. One of several may lack a column that another has, but not all.

    A file that was only found in a folder may turn out not to be readable: a notice names it. Raises
    :class:`InputError` where nothing is readable. ``progress`` is told how many of how many are read.
    """
    if len(found) > 1:
        found = [replaced(s, alone=False) for s in found]
    rows: list[Rows] = []
    read: list[Source] = []
    left: list[tuple[str, str]] = []
    for source, made in zip(found, _all_read(found, options, progress), strict=True):
        if not isinstance(made, VoirdireError):
            rows += made
            read.append(source)
        elif source.searched:
            left.append((source.name, str(made)))
        else:
            raise _may_be_gold(source, read, found, options) or made
    if not rows:
        raise _nothing_read(left)
    rows = _of_one_kind(rows, options)
    rows = _labels_of_one_kind(rows, options)
    rows = _apart(_graders_apart(rows), options)
    rows = _told_once(rows)
    if left:
        rows[0] = replaced(rows[0], notices=(*rows[0].notices, _left_out(left)))
    for absent in rows[0].absent:
        if all(absent in r.absent for r in rows):
            raise UsageError(f"{absent} is in none of the {len(rows)} inputs.")
    seen = {g for r in rows for g in r.seen}
    lacking = [g for g in options.graders if seen and g not in seen]
    if lacking:
        raise UsageError(
            f"--graders: there is no grader {lacking[0]!r}. Graders: {', '.join(sorted(seen))}."
        )
    rows = _chosen(rows, options)
    _refuse_crowds(rows)
    return rows


def _may_be_gold(
    source: Source, read: Sequence[Source], found: Sequence[Source], options: Options
) -> InputError | None:
    """What to say of a file that is not clear by itself, but is as the gold of those read before it."""
    if options.gold or not read or any(s.searched or s.frame is not None for s in found):
        return None
    try:
        if reader_of(source).name != "table":
            return None
        columns = gold_columns(raw_table(source, options))
    except VoirdireError:
        return None
    if len(columns) != 1:
        return None
    if isinstance(_tried((source, replaced(options, gold=columns[0]))), VoirdireError):
        return None
    return gold_beside(source.name, columns[0], read, found, options)


def _refuse_crowds(rows: Sequence[Rows]) -> None:
    """Raise where logs have more graders than can be compared with each other in pairs."""
    graders: dict[str, None] = {}
    for one in rows:
        if one.logged:
            graders.update(dict.fromkeys(one.frame["grader"].drop_nulls().unique().to_list()))
    refuse_crowd(f"{rows[0].name}{' and other inputs' if len(rows) > 1 else ''}", graders)


def _chosen(rows: list[Rows], options: Options) -> list[Rows]:
    """Logs with the graders of ``--graders`` alone, and gold, reference and people; tables chose before."""
    if not options.graders:
        return rows
    wanted = [*options.graders, options.reference, options.gold or "gold", *options.people]
    made = []
    for one in rows:
        if one.logged:
            kept = one.frame["grader"].is_in(wanted).arg_true()
            if len(kept) < one.frame.height:
                one = replaced(one, frame=one.frame[kept], place=_place_of(one, kept.to_list()))
        made.append(one)
    filled = [r for r in made if r.frame.height]
    notices = [n for r in made if not r.frame.height for n in r.notices]
    if not filled:
        return rows
    filled[0] = replaced(filled[0], notices=(*filled[0].notices, *notices))
    return filled


def _place_of(rows: Rows, kept: Sequence[int]) -> Callable[[int], Place]:
    return lambda row: rows.place(kept[row])


def _all_read(
    found: Sequence[Source], options: Options, progress: Callable[[int, int], None] | None
) -> Iterator[Sequence[Rows] | VoirdireError]:
    """What each source gives, in their order: rows, or the error. Many files are read on all cores."""
    ready: dict[int, Sequence[Rows] | VoirdireError] = {}
    files = [i for i, s in enumerate(found) if s.path is not None and s.frame is None]
    done = 0
    if len(files) > 1 and sum(_size(found[i]) for i in files) > MUCH:
        work = [(found[i], options) for i in files]
        for place, made in workers.spread(__name__, "_tried", work):
            ready[files[place]] = made
            done += 1
            if progress is not None:
                progress(done, len(found))
    for i, source in enumerate(found):
        if i in ready:
            yield ready.pop(i)
            continue
        made = _tried((source, options))
        done += 1
        if progress is not None:
            progress(done, len(found))
        yield made


def _size(source: Source) -> int:
    try:
        return source.path.stat().st_size if source.path is not None else 0
    except OSError:
        return 0


def _tried(given: tuple[Source, Options]) -> Sequence[Rows] | VoirdireError:
    try:
        return _read(*given)
    except VoirdireError as error:
        return error


def _read(source: Source, options: Options) -> Sequence[Rows]:
    if source.searched and source.suffix in LEFT_OUT_SUFFIXES:
        raise InputError(f"{source.name}: {source.suffix} is no format of labels")
    reader = reader_of(source)
    made = reader.read(source, options)
    return [
        replaced(one, format=reader.name) if one.logged else one
        for one in ([made] if isinstance(made, Rows) else made)
    ]


def _nothing_read(left: Sequence[tuple[str, str]]) -> InputError:
    """The error for a folder of which no file can be read: one problem whole, the others by name.

    The whole one is the first that says how to read its file, where there is such.
    """
    first = next((i for i, (_, problem) in enumerate(left) if "\n" in problem), 0)
    others = [_why(*one) for i, one in enumerate(left) if i != first]
    if len(others) > SHOWN:
        others = [*others[: SHOWN - 1], (f"and {len(others) - SHOWN + 1:,} more",)]
    more = printable(plain(linked(others)))
    return InputError(
        "\n".join(
            [
                f"None of {plural(len(left), 'file')} could be read.",
                *map(printable, left[first][1].split("\n")),
                *([f"Nor could: {more}."] if more else []),
            ]
        )
    )


def _left_out(left: Sequence[tuple[str, str]]) -> Text:
    pieces = [_why(name, problem) for name, problem in left[:SHOWN]]
    if len(left) > SHOWN:
        pieces.append((f"and {len(left) - SHOWN:,} more",))
    names: list[str | Name] = []
    for i, piece in enumerate(pieces):
        names += ("; ", *piece) if i else piece
    return say(
        "{n} of the folder {were} left out, as {they} could not be read as labels: {names}. Name a file "
        "by itself to see more.",
        n=plural(len(left), "file"),
        were="was" if len(left) == 1 else "were",
        they="it" if len(left) == 1 else "they",
        names=tuple(names),
    )


def _why(name: str, problem: str) -> Text:
    """A file with the first sentence of why it was left out."""
    first = " ".join(problem.split())
    begins = rf"(?:{re.escape(printable(name))}|{re.escape(name)})(?: \(\w+ layout\))?: "
    first = re.sub(f"^{begins}", "", first)
    first = first.partition(". ")[0].rstrip(".")
    first = first if len(first) <= LONGEST_CAUSE else first[: LONGEST_CAUSE - 1] + "…"
    return say("{name} ({why})", name=Name(name), why=printable(first))


def _of_one_kind(rows: list[Rows], options: Options) -> list[Rows]:
    """Labels, or verdicts on lines, where one log holds both: an audit looks at one kind."""
    kinds = {r.kind for r in rows}
    if kinds != {"labels", "checklist"} or not any(r.logged for r in rows):
        return rows
    wanted = "checklist" if options.layout == "checklist" else "labels"
    kept = [r for r in rows if r.kind == wanted]
    graders = dict.fromkeys(g for r in rows if r.kind != wanted for g in r.seen)
    other = (
        say(
            "Verdicts on lines of a checklist were left out ({graders}); audit them with "
            "--layout checklist.",
            graders=listed(graders),
        )
        if wanted == "labels"
        else say(
            "Labels that are no verdicts on lines were left out ({graders}); audit them without "
            "--layout checklist.",
            graders=listed(graders),
        )
    )
    notices = [n for r in rows if r.kind != wanted for n in r.notices]
    kept[0] = replaced(kept[0], notices=(*notices, *kept[0].notices, other))
    return kept


def _labels_of_one_kind(rows: list[Rows], options: Options) -> list[Rows]:
    """The larger kind where logs of one format hold labels of two kinds, of one grader: a judge's
    scores in one file and its verdicts on pairs in another share no class, and no response.
    """
    if options.scale or options.map or options.round:
        return rows
    kinds: list[_Kind] = []
    for i, one in enumerate(rows):
        if not one.logged or one.kind != "labels" or "label" not in one.frame.columns:
            continue
        classes = set(one.frame["label"].drop_nulls().unique().to_list())
        if len(classes) < 2:  # whoever gave one class alone may give any other as well
            continue
        if all(number_form(c) is not None for c in classes):
            classes.add(NUMBERS)
        new = _Kind(one.format, [i], classes, set(one.seen), one.frame.height)
        apart = []
        for kind in kinds:
            if kind.format == new.format and kind.classes & new.classes:
                new = kind.joined(new)
            else:
                apart.append(kind)
        kinds = [*apart, new]
    largest = sorted(kinds, key=lambda k: (-k.rows, k.parts))
    left: list[_Kind] = []
    stays: list[_Kind] = []
    for kind in largest:
        rival = any(k.format == kind.format and k.graders & kind.graders for k in stays)
        (left if rival else stays).append(kind)
    if not left:
        return rows
    out = {i for kind in left for i in kind.parts}
    kept = [r for i, r in enumerate(rows) if i not in out]
    notices = [n for i, r in enumerate(rows) if i in out for n in r.notices]
    for kind in left:
        notices.append(
            say(
                "{names} {hold} labels of another kind ({classes}), which share no class with the other "
                "labels of the same graders, so they were left out. Audit {them} without the others.",
                names=listed(dict.fromkeys(rows[i].name for i in kind.parts), most=SHOWN),
                hold="holds" if len(kind.parts) == 1 else "hold",
                classes=listed(class_order(kind.classes - {NUMBERS}), most=SHOWN),
                them="it" if len(kind.parts) == 1 else "them",
            )
        )
    kept[0] = replaced(kept[0], notices=(*notices, *kept[0].notices))
    return kept


NUMBERS = "\0numbers"  # the class that all labels share that are numbers, whichever came up


@dataclass(frozen=True, slots=True)
class _Kind:
    """Inputs of one format whose labels share classes."""

    format: str
    parts: list[int]
    classes: set[str]
    graders: set[str]
    rows: int

    def joined(self, other: _Kind) -> _Kind:
        return _Kind(
            self.format,
            [*self.parts, *other.parts],
            self.classes | other.classes,
            self.graders | other.graders,
            self.rows + other.rows,
        )


def _graders_apart(rows: list[Rows]) -> list[Rows]:
    """Graders of one name that are different models in different logs, told apart by the model."""
    models: dict[str, dict[str, None]] = {}
    for one in rows:
        for grader in one.seen if one.logged else ():
            model = one.facts.get(grader, {}).get("model")
            if model:
                models.setdefault(grader, {})[str(model)] = None
    several = {g: list(m) for g, m in models.items() if len(m) > 1}
    if not several:
        return rows
    made = [_renamed(r, {g: _with_model(r, g) for g in several if g in r.seen}) for r in rows]
    grader, (first, second, *_) = next(iter(several.items()))
    notice = say(
        "{graders} {is_} not the same model in all inputs, so the model goes behind the grader's name, "
        "as in {one} and {two}.",
        graders=listed(several, most=3),
        is_="is" if len(several) == 1 else "are",
        one=Name(f"{grader} ({first})"),
        two=Name(f"{grader} ({second})"),
    )
    made[0] = replaced(made[0], notices=(*made[0].notices, notice))
    return made


def _with_model(one: Rows, grader: str) -> str:
    model = one.facts.get(grader, {}).get("model") if one.logged else None
    return f"{grader} ({model})" if model else grader


def _renamed(one: Rows, names: dict[str, str]) -> Rows:
    """The rows under other names of graders, wherever the rows name them."""

    def new(name: str) -> str:
        return names.get(name, name)

    if not any(old != made for old, made in names.items()):
        return one
    carried = dict(one.carried)
    if "graders" in carried:
        carried["graders"] = [
            {
                **g,
                "name": new(g["name"]),
                "derived_from": [new(d) for d in g.get("derived_from", ())],
            }
            for g in carried["graders"]
        ]
    return replaced(
        one,
        frame=one.frame.with_columns(pl.col("grader").replace(names)),
        order=tuple(map(new, one.order)),
        seen=tuple(map(new, one.seen)),
        facts={new(g): f for g, f in one.facts.items()},
        carried=carried,
    )


def _told_once(rows: list[Rows]) -> list[Rows]:
    """Notices that many files give in the same words about themselves, as one about all of them."""
    alike: dict[Text, list[str]] = {}
    for one in rows:
        for notice in one.notices:
            if rest := _of_itself(one, notice):
                alike.setdefault(rest, []).append(one.name)
    many = {rest: names for rest, names in alike.items() if len(names) > ALIKE}
    if not many:
        return rows
    made = []
    told: set[Text] = set()
    for one in rows:
        notices: list[Text] = []
        for notice in one.notices:
            rest = _of_itself(one, notice)
            if rest not in many:
                notices.append(notice)
            elif rest not in told:
                told.add(rest)
                names = listed(many[rest], most=SHOWN)
                about = say("{n} ({names})", n=plural(len(many[rest]), "file"), names=names)
                notices.append((*about, *rest))
        made.append(replaced(one, notices=tuple(notices)))
    return made


def _of_itself(one: Rows, notice: Text) -> Text:
    """What a notice says behind the name of the input with which it begins; empty where it does not."""
    name = printable(one.name)
    first = notice[0] if notice else ""
    if not isinstance(first, str) or not first.startswith(name):
        return ()
    return (first[len(name) :], *notice[1:])


def _apart(rows: list[Rows], options: Options) -> list[Rows]:
    """Ids that only say which response of one task, model or tool it is, made whole where inputs differ.

    What a log says of all its responses (``scope``) goes before their ids where it is not the same
    in all logs: sample 1 of one model is another response than sample 1 of another. So does the
    format where logs of two have ids in common, unless ``--response`` says what the ids are. Tables
    that are no logs keep their ids, but for those that mean one response of the logs alone.
    """
    made = _formats_apart(_scopes_apart(rows), options)
    return made if made is rows else _found_again(rows, made)


def _scopes_apart(rows: list[Rows]) -> list[Rows]:
    scoped = [r for r in rows if r.scope]
    several = _run_again(scoped)
    varying: dict[str, list[str]] = {}  # by format: what one tool does not say is no difference
    for one_format in dict.fromkeys(r.format for r in scoped):
        alike = [r.scope for r in scoped if r.format == one_format]
        varying[one_format] = [
            key
            for key in dict.fromkeys(k for scope in alike for k in scope)
            if len({scope.get(key) for scope in alike}) > 1 and (key != RUN or several)
        ]
    if not any(varying.values()):
        return rows
    made = []
    example = ""
    for one in rows:
        parts = [
            one.scope[key]
            for key in varying.get(one.format, ())
            if key in one.scope and (key != RUN or _but_run(one) in several)
        ]
        made.append(_behind("/".join(parts), one) if parts else one)
        if parts and not example and one.frame.height:
            example = str(made[-1].frame["response"][0])
    notice = say(
        "The inputs differ in their {what}, so it goes before the id of each response, as in {example}.",
        what=" and ".join(dict.fromkeys(key for keys in varying.values() for key in keys)),
        example=Name(example),
    )
    made[0] = replaced(made[0], notices=(*made[0].notices, notice))
    return made


def _behind(prefix: str, one: Rows) -> Rows:
    whole = (pl.lit(prefix + "/") + pl.col("response")).alias("response")
    return replaced(one, frame=one.frame.with_columns(whole))


def _formats_apart(rows: list[Rows], options: Options) -> list[Rows]:
    """The format before the ids of logs of different tools that would else be taken for the same."""
    ids: dict[str, set[str]] = {}
    for one in rows:
        if one.logged and one.format != OWN:
            found = one.frame["response"].drop_nulls().unique().to_list()
            ids.setdefault(one.format, set()).update(found)
    if len(ids) < 2 or options.response:
        return rows
    shared: dict[str, str] = {}  # the formats that have ids in common with another, and such an id
    for one_format, these in ids.items():
        for other, those in ids.items():
            if one_format < other and (common := these & those):
                example = min(common)
                shared.setdefault(one_format, example)
                shared.setdefault(other, example)
    if not shared:
        return rows
    made = [_behind(r.format, r) if r.logged and r.format in shared else r for r in rows]
    first, second, *_ = shared
    notice = say(
        "Logs of {formats} have ids of responses in common, such as {id}; that these are the same "
        "responses is not known, so the format goes before each id, as in {one} and {two}. If they are "
        "the same, join them on purpose: {convert} makes a table of each, and audit the tables together, "
        "with {response} where another column names the response.",
        formats=listed(shared),
        id=Name(shared[first]),
        one=Name(f"{first}/{shared[first]}"),
        two=Name(f"{second}/{shared[first]}"),
        convert=Name("voirdire convert LOG -o LOG.csv"),
        response=Name("--response COLUMN"),
    )
    made[0] = replaced(made[0], notices=(*made[0].notices, notice))
    return made


def _found_again(before: Sequence[Rows], made: list[Rows]) -> list[Rows]:
    """Tables that are no logs, under the whole ids of logs wherever an id means one response alone."""
    pairs = [
        pl.DataFrame({"response": b.frame["response"], "\0whole": m.frame["response"]})
        for b, m in zip(before, made, strict=True)
        if m.logged and "response" in m.frame.columns
    ]
    tables = [i for i, r in enumerate(made) if not r.logged and "response" in r.frame.columns]
    if not pairs or not tables:
        return made
    known = (
        pl.concat(pairs)
        .unique()
        .group_by("response")
        .agg(pl.col("\0whole").min(), pl.len().alias("\0n"))
    )
    wholes = known.select(pl.col("\0whole").unique()).to_series()
    found = list(made)
    for i in tables:
        ids = made[i].frame.select(pl.col("response").cast(pl.String))
        joined = ids.join(known, on="response", how="left", maintain_order="left").with_columns(
            (pl.col("response").is_in(wholes.implode())).alias("\0is")
        )
        one = ~joined["\0is"] & (joined["\0n"] == 1).fill_null(False)
        several = joined.filter(~pl.col("\0is") & (pl.col("\0n") > 1))
        new = pl.select(pl.when(one).then(joined["\0whole"]).otherwise(joined["response"]))
        found[i] = replaced(
            made[i], frame=made[i].frame.with_columns(new.to_series().alias("response"))
        )
        if several.height:
            row = several.row(0, named=True)
            notice = say(
                "{name}: {n} in several inputs, such as {id}, which may be {whole}; which is meant is "
                "not known, so they are joined with none. Write the whole ids there; {convert} shows "
                "them.",
                name=printable(made[i].name),
                n=plural(several["response"].n_unique(), "id stands", "ids stand"),
                id=Name(row["response"]),
                whole=Name(row["\0whole"]),
                convert=Name("voirdire convert LOGS -o labels.csv"),
            )
            found[0] = replaced(found[0], notices=(*found[0].notices, notice))
    return found


def _but_run(one: Rows) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((k, v) for k, v in one.scope.items() if k != RUN))


def _run_again(scoped: Sequence[Rows]) -> set[tuple[tuple[str, str], ...]]:
    """What was run several times under one grader: the same id is another response in each run.

    Runs whose graders differ are taken as one: this is how labels of several files join.
    """
    runs: dict[Any, str | None] = {}
    return {
        _but_run(one)
        for one in scoped
        for grader in one.seen
        if runs.setdefault((grader, _but_run(one)), one.scope.get(RUN)) != one.scope.get(RUN)
    }
