"""The reference pages, made from the code: statistics, checks, commands, formats, schemas, Python.

What a page says of a statistic stands in its estimand, of a check in its file, of a command in its
`--help`; nothing is written twice.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path

from voirdire import measured, plugins
from voirdire.checks.base import Check
from voirdire.estimand import Describes, Estimand, Scale, Unit
from voirdire.figures.base import Drawing
from voirdire.formats.base import Format
from voirdire.readers.base import Reader
from voirdire.stats.base import Family

CLUSTERS_SHOWN = (5, 10, 20, 50, 100, 1000)
DESCRIBES = {
    Describes.GRADER: "the grader",
    Describes.BANK: "the bank of responses, **not** the grader",
    Describes.BOTH: "the grader on this bank of responses",
    Describes.PANEL: "the panel of graders",
}
UNITS = {
    Unit.COUNT: "a count",
    Unit.SHARE: "a share",
    Unit.POINTS: "a difference of shares",
    Unit.RATIO: "a ratio",
    Unit.COEFFICIENT: "a coefficient",
}
SCALES = {
    Scale.LOGIT: "made on the logit scale",
    Scale.FISHER_Z: "made on Fisher’s z",
    Scale.LOG: "made on the logarithm",
    Scale.LOG_ONE_MINUS: "made on log(1 − x)",
    Scale.PLAIN: "made on the plain scale",
    Scale.NONE: "none: it is a count",
}
KEYS = {"class_": "class"}


def write(folder: Path) -> None:
    """Write every reference page into ``folder``; a page that has not changed is left alone."""
    folder.mkdir(exist_ok=True)
    pages = {
        "statistics.md": statistics(),
        "checks.md": checks(),
        "commands.md": commands(),
        "formats.md": formats(),
        "schemas.md": schemas(),
        "python.md": python(),
    }
    for name, lines in pages.items():
        text = "\n".join(lines) + "\n"
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# --- statistics ---------------------------------------------------------------------------------


def families() -> list[Family]:
    return sorted(plugins.load("stats", Family), key=lambda f: (f.order, f.name))


def statistics() -> Iterator[str]:
    """Every estimand: what it asks, whom it describes, its formula, and what is known of its interval."""
    yield "# Statistics"
    yield ""
    yield (
        "Each row of the results table has one of these names. What a number may be read as hangs on "
        "whom it describes: a coefficient of the bank says nothing of the grader alone. Measured "
        "coverage is that of the default interval at a nominal 95 %, from "
        "[simulations over known truth](../coverage.md); where none stands, none was measured for "
        "that statistic."
    )
    yield ""
    yield (
        r"In the formulas $\#\{\ldots\}$ is a number of things, and $\mathbf{1}[\ldots]$ is 1 where it "
        "holds and 0 where not. With weights, sums over responses are sums of their weights (a divisor n − 1 is "
        "then the sum of weights less 1), in shares and coefficients; numbers of labels and responses stay "
        "unweighted, and so does `n`. A frequency weight stands for so many responses everywhere. What is "
        "undefined is a row without a value, with the reason; other tools give nan, 0, 1 or an error there."
    )
    section = ""
    for family in families():
        if family.section != section:
            section = family.section
            yield from ("", f"## {section}")
        for statistic in family.statistics:
            yield from _statistic(statistic.estimand)


def _statistic(estimand: Estimand) -> Iterator[str]:
    yield from ("", f"### `{estimand.name}`", "")
    yield f"**{_sentence(estimand.title)}** {estimand.question}"
    yield ""
    if estimand.formula:
        yield from (f"$$\n{estimand.formula}\n$$", "")
    yield from _definition("Describes", DESCRIBES[estimand.describes])
    yield from _definition("Unit", f"{UNITS[estimand.unit]}{_bounds(estimand)}")
    keys = [f"`{KEYS.get(k, k)}`" for k in estimand.keys]
    yield from _definition("Keys", ", ".join(keys) or "none")
    if estimand.reading:
        yield from _definition("Reading", estimand.reading)
    if estimand.moves_with:
        yield from _definition("Moves with", "; ".join(estimand.moves_with))
    yield from _definition("Undefined when", estimand.undefined_when)
    if estimand.conventions:
        yield from _definition("Letters and conventions", _set(estimand.conventions))
    covered = _coverage(estimand)
    yield from _definition("Interval", SCALES[estimand.scale] + (f". {covered}" if covered else ""))
    # What is no number stands in the formula above.
    number = estimand.source.equation if estimand.source.equation.isdigit() else ""
    equation = f", equation {number}" if number else ""
    yield from _definition("Source", f"{estimand.source.text}{equation}")


# A letter with an index as it stands in plain words: n_cd, X̄_i, MS_pr, p̂_q,j, Σ_d, r_(2).
_LETTER = re.compile(
    r"(?<![\w`])(?P<letter>MS|LL|[A-Za-zα-ωϵΣ])(?P<accent>[\u0302\u0304]?)"
    r"_(?P<index>\([^\W²]+\)|[^\W_²]+(?:[,:][−\w]+)*)(?P<power>²?)"
)
_ACCENTS = {"\u0302": r"\hat", "\u0304": r"\bar"}
_POWERS = {"²": "^{2}"}
_GREEK = {
    "Σ": r"\sum", "α": r"\alpha", "β": r"\beta", "δ": r"\delta", "ε": r"\epsilon", "λ": r"\lambda",
    "π": r"\pi", "σ": r"\sigma",
}  # fmt: skip


def _set(text: str) -> str:
    """Letters with an index as formulas, as they are set in the formula itself."""

    def letter(found: re.Match[str]) -> str:
        name = found["letter"]
        name = rf"\mathrm{{{name}}}" if len(name) > 1 else _GREEK.get(name, name)
        if found["accent"]:
            name = f"{_ACCENTS[found['accent']]}{{{name}}}"
        return f"${name}_{{{found['index'].replace('−', '-')}}}{_POWERS.get(found['power'], '')}$"

    def word(found: re.Match[str]) -> str:
        name = found[0]
        return f"[`{name}`](#{name})" if name in names else f"`{name}`" if name[0] == "-" else name

    # Those of one plain word ("rate", "kept") would be found in every sentence.
    names = {s.name for f in families() for s in f.statistics if re.search(r"[_\d]", s.name)}
    text = re.sub(r"--[a-z-]+|(?<![\w`])[a-z]\w+", word, text)
    return unicodedata.normalize("NFC", _LETTER.sub(letter, unicodedata.normalize("NFD", text)))


def _definition(term: str, text: str) -> Iterator[str]:
    # A letter of a formula stays small at the beginning.
    text = text if text.startswith("$") or text[1:2] in ":," else _sentence(text)
    yield from (term, f": {text}", "")


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!", "`")) else f"{text}."


def _bounds(estimand: Estimand) -> str:
    low, high = estimand.low, estimand.high
    low = None if low is None or math.isinf(low) else low
    high = None if high is None or math.isinf(high) else high
    if low is None and high is None:
        return ""
    if high is None:
        return f", at least {low:g}"
    return f", at most {high:g}" if low is None else f", {low:g} to {high:g}"


def _cases(estimand: Estimand) -> tuple[str, ...]:
    """The measured cases that stand for a statistic."""
    name = estimand.name
    if name in ("kr20", "cronbach_alpha"):
        return ("kr20",)
    if name == "phi_lambda":
        return ("phi_lambda",)
    if name == "krippendorff_alpha_nominal":
        return ("alpha",)
    if name == "collapse_ratio":
        return ("collapse ratio 0.33", "collapse ratio 0.5")
    if name == "cohen_kappa":
        return ("kappa at 0.5", "kappa at 0.1")
    if name == "pass_rate_minus_gold":
        return ("difference",)
    if estimand.unit is Unit.SHARE and estimand.scale is Scale.LOGIT:
        return ("rate 0.5", "rate 0.1", "rate 0.05", "rate 0.01")
    return ()


def _coverage(estimand: Estimand) -> str:
    said = []
    for case in _cases(estimand):
        shares = [
            f"{100 * measured.coverage(case, 'auto', clusters):.0f}" for clusters in CLUSTERS_SHOWN
        ]
        said.append(f"{', '.join(shares)} % ({case})")
    if not said:
        return ""
    sizes = ", ".join(f"{c:,}" for c in CLUSTERS_SHOWN)
    return f"Measured coverage at {sizes} clusters: {'; '.join(said)}"


# --- checks -------------------------------------------------------------------------------------


def checks() -> Iterator[str]:
    """Every finding code: what it says and what a clear answer does not rule out."""
    yield "# Checks"
    yield ""
    yield (
        "A check answers *found*, *clear*, *not applicable* or *cannot tell*. Found comes with a "
        "strength: *certain*, *likely* or *indicative*. [The collapse rule](../collapse-rule.md) says "
        "what the strengths of its findings rest on."
    )
    for check in sorted(plugins.load("checks", Check), key=lambda c: (c.rank, c.name)):
        for code, what in check.codes.items():
            yield from ("", f"## `{code}`", "", _sentence(what), "")
            yield from _definition("A clear answer would miss", check.would_miss)
            yield from _definition("Looks at", ", ".join(check.kinds))


# --- commands -----------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    """The `--help` of every command."""
    import typer

    from voirdire.cli.main import app

    root = typer.main.get_command(app)
    yield "# Commands"
    yield ""
    yield "What `--help` prints."
    yield from ("", "## `voirdire`", "", "```text", _help(["--help"]), "```")
    for words in _command_paths(root):
        yield from ("", f"## `voirdire {' '.join(words)}`", "", "```text")
        yield from (_help([*words, "--help"]), "```")


def _command_paths(command: object, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, below in sorted(getattr(command, "commands", {}).items()):
        yield (*above, name)
        yield from _command_paths(below, (*above, name))


def _help(words: list[str]) -> str:
    from voirdire.cli.main import main

    held = {name: os.environ.get(name) for name in ("COLUMNS", "TERMINAL_WIDTH", "NO_COLOR")}
    os.environ.update(COLUMNS="100", TERMINAL_WIDTH="100", NO_COLOR="1")
    try:
        with redirect_stdout(io.StringIO()) as printed:
            status = main(words)
    finally:
        for name, value in held.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
    if status != 0:
        raise RuntimeError(f"voirdire {' '.join(words)} ended with status {status}")
    text = re.sub(r"\x1b\[[0-9;]*m", "", printed.getvalue())
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


# --- formats and figures ------------------------------------------------------------------------


def formats() -> Iterator[str]:
    """What is read and written: inputs, reports, figures."""
    yield "# Formats and figures"
    yield from ("", "## Inputs", "", "Found by looking at name and content.", "")
    yield from _table(
        ("name", "what", "suffixes"),
        ((f"`{r.name}`", r.title, _code(r.suffixes)) for r in plugins.load("readers", Reader)),
    )
    yield from ("", "## Reports", "", "`-o FILE` writes the format of the suffix.", "")
    yield from _table(
        ("suffixes", "what"),
        ((_code(f.suffixes), f.title or f.name) for f in plugins.load("formats", Format)),
    )
    yield from ("", "## Figures", "", "`voirdire figure NAME INPUT -o FILE` draws one.", "")
    yield from _table(
        ("name", "what"), ((f"`{d.name}`", d.title) for d in plugins.load("figures", Drawing))
    )


def _code(words: Iterable[str]) -> str:
    return " ".join(f"`{w}`" for w in words)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in sorted(rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


# --- schemas ------------------------------------------------------------------------------------


def schemas() -> Iterator[str]:
    """The JSON Schemas of what is written and read."""
    from voirdire.formats.json import schema

    yield "# Schemas"
    yield ""
    yield "JSON Schema, draft 2020-12."
    named = {"The report, `.json`": ("voirdire audit --schema", schema())}
    for title, (command, held) in named.items():
        yield from ("", f"## {title}", "", f"`{command}` prints it.", "")
        yield from ("```json", json.dumps(held, indent=2), "```")


# --- Python -------------------------------------------------------------------------------------


def python() -> Iterator[str]:
    """The public names of the package, from their docstrings."""
    import voirdire as vd
    from voirdire import simulate

    yield "# Python"
    yield ""
    yield "Options are those of the command line, with underscores for dashes."
    yield from ("", "## `voirdire`")
    yield from _autodoc("autofunction", ("voirdire.read", "voirdire.audit"))
    yield from ("", "## Values")
    yield from _autodoc(
        "autoclass",
        (
            "voirdire.labels.Labels",
            "voirdire.auditing.Audit",
            "voirdire.estimate.Estimate",
            "voirdire.estimate.Undefined",
            "voirdire.estimate.Interval",
            "voirdire.finding.Finding",
        ),
        members=True,
    )
    yield from ("", "## `voirdire.stats`", "")
    yield "Plain array functions: numpy in, a float or an array out."
    yield from _autodoc(
        "autofunction",
        (f"{getattr(vd.stats, n).__module__}.{n}" for n in dir(vd.stats)),
    )
    yield from ("", "## `voirdire.simulate`")
    for name in simulate.__all__:
        held = getattr(simulate, name)
        kind = "autoclass" if isinstance(held, type) else "autofunction"
        yield from _autodoc(kind, (f"{held.__module__}.{name}",))


def _autodoc(directive: str, names: Iterable[str], *, members: bool = False) -> Iterator[str]:
    yield from ("", "```{eval-rst}")
    for name in names:
        yield f".. {directive}:: {name}"
        if members:
            yield "   :members:"
        yield ""
    yield "```"
