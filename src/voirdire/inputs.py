"""Which files are read, by which reader, and how the rows of several come together."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

import polars as pl

from voirdire import plugins, workers
from voirdire.errors import InputError, UsageError, VoirdireError
from voirdire.options import Options
from voirdire.readers.base import Reader
from voirdire.rows import Place, Rows
from voirdire.source import Source
from voirdire.wording import Name, Text, listed, plural, printable, say

SHOWN = 5  # files named in a notice about those that were left out
MANY = 40  # files, above which starting processes takes less time than it saves
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
            found.append(Source(name="standard input", content=content))
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
            raise InputError(f"{given}: no file has such a name.")
    else:
        paths = [path]
    found: list[Source] = []
    for one in paths:
        if not one.exists():
            raise InputError(f"{one}: there is no such file.")
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
    left: list[tuple[str, str]] = []
    for source, made in zip(found, _all_read(found, options, progress), strict=True):
        if not isinstance(made, VoirdireError):
            rows += made
        elif source.searched:
            left.append((source.name, str(made)))
        else:
            raise made
    if not rows:
        problems = "\n".join(printable(problem) for _, problem in left[:SHOWN])
        raise InputError(f"None of {plural(len(found), 'file')} could be read.\n{problems}")
    rows = _of_one_kind(rows, options)
    rows = _apart(_graders_apart(rows))
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
    return _chosen(rows, options)


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
    if len(files) > MANY:
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


def _tried(given: tuple[Source, Options]) -> Sequence[Rows] | VoirdireError:
    try:
        return _read(*given)
    except VoirdireError as error:
        return error


def _read(source: Source, options: Options) -> Sequence[Rows]:
    if source.searched and source.suffix in LEFT_OUT_SUFFIXES:
        raise InputError(f"{source.name}: {source.suffix} is no format of labels")
    made = reader_of(source).read(source, options)
    return [made] if isinstance(made, Rows) else made


def _left_out(left: Sequence[tuple[str, str]]) -> Text:
    return say(
        "{n} of the folder {were} left out, as {they} could not be read as labels: {names}. Name a file "
        "by itself to see why.",
        n=plural(len(left), "file"),
        were="was" if len(left) == 1 else "were",
        they="it" if len(left) == 1 else "they",
        names=listed((name for name, _ in left), most=SHOWN + 1),
    )


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


def _apart(rows: list[Rows]) -> list[Rows]:
    """Ids that only say which response of one task or model it is, made whole where inputs differ.

    What a log says of all its responses (``scope``) goes before their ids where it is not the same
    in all logs: sample 1 of one model is another response than sample 1 of another.
    """
    scoped = [r for r in rows if r.scope]
    several = _run_again(scoped)
    varying = [
        key
        for key in dict.fromkeys(k for r in scoped for k in r.scope)
        if len({r.scope.get(key) for r in scoped}) > 1 and (key != RUN or several)
    ]
    if not varying:
        return rows
    made = []
    for one in rows:
        parts = [
            one.scope[key]
            for key in varying
            if key in one.scope and (key != RUN or _but_run(one) in several)
        ]
        if one.scope and parts:
            before = "/".join(parts) + "/"
            made_whole = (pl.lit(before) + pl.col("response")).alias("response")
            one = replaced(one, frame=one.frame.with_columns(made_whole))
        made.append(one)
    notice = say(
        "The inputs differ in their {what}, so it goes before the id of each response, as in {example}.",
        what=" and ".join(varying),
        example=Name(next(_examples(made, scoped))),
    )
    made[0] = replaced(made[0], notices=(*made[0].notices, notice))
    return made


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


def _examples(made: Iterable[Rows], scoped: Sequence[Rows]) -> Iterator[str]:
    for one in made:
        if one.scope and one.frame.height:
            yield str(one.frame["response"][0])
