"""How labels, estimates, findings and audits show in a notebook: a small panel of HTML each.

Self-contained: no script, no style sheet, nothing loaded. Colours are those of the notebook, with
greys that hold on light and dark pages. Everything from the data is escaped, made printable and
isolated in its direction. The words that say what a number is stand beside it: a panel is all that
many readers see of an audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from voirdire.wording import Name, Text, counted, plural, printable

if TYPE_CHECKING:
    from voirdire.auditing import Audit
    from voirdire.document import Cell
    from voirdire.estimate import Estimate
    from voirdire.finding import Finding
    from voirdire.labels import Labels

__all__ = ["audit_html", "estimate_html", "finding_html", "labels_html"]

MOST_GRADERS = 20
MOST_CLASSES = 8
MOST_FINDINGS = 12
MOST_EVIDENCE = 8
MOST_RATES = 2
LONGEST_NAME = 48  # of a name in a table; a longer one is cut in the middle, whole on hovering

_GREY = "rgba(128,128,128,"
_PANEL = (
    f"border:1px solid {_GREY}.45);border-radius:4px;padding:.6em .9em;margin:.3em 0;"
    "max-width:62em;overflow-x:auto;line-height:1.45;text-align:left"
)
_CELL = f"padding:.2em .55em;border:0;border-bottom:1px solid {_GREY}.3);vertical-align:top;"
_STATES = {
    "found": "FOUND",
    "cannot_tell": "CANNOT TELL",
    "not_applicable": "NOT APPLICABLE",
    "clear": "CLEAR",
}


# --- pieces ---------------------------------------------------------------------------------------


def _said(text: Text | Name | str) -> str:
    """A sentence with its names set off and isolated."""
    parts = text if isinstance(text, tuple) else (text,)
    return "".join(
        f'<bdi><code style="font-size:.9em">{escape(printable(p.text))}</code></bdi>'
        if isinstance(p, Name)
        else escape(printable(str(p)))
        for p in parts
    )


def _named(name: str) -> str:
    """A name in a table: a long one is cut, so that the numbers beside it stay in sight."""
    shown = printable(name)
    if len(shown) <= LONGEST_NAME:
        return _said(Name(name))
    half = (LONGEST_NAME - 1) // 2
    cut = _said(Name(f"{shown[:half]}…{shown[-half:]}"))
    return f'<span title="{escape(shown, quote=True)}">{cut}</span>'


def _muted(html: str) -> str:
    return f'<span style="opacity:.75">{html}</span>'


def _line(html: str) -> str:
    return f'<div style="margin:.25em 0">{html}</div>'


def _panel(title: str, parts: Iterable[str]) -> str:
    head = f'<div style="font-weight:600">{title}</div>'
    return f'<div style="{_PANEL}">{head}{"".join(parts)}</div>'


def _table(
    columns: Sequence[Text | Name | str], rows: Sequence[Sequence[str]], *, texts: int = 1
) -> str:
    """A table of cells that are HTML already; all but the first ``texts`` columns are numbers."""

    def cells(row: Sequence[str], tag: str) -> str:
        made = []
        for i, inside in enumerate(row):
            align = "left" if i < texts else "right"
            if tag == "td" and i >= texts:
                align += ";white-space:nowrap"
            scope = ' scope="col"' if tag == "th" else ""
            weight = "font-weight:600;" if tag == "th" else ""
            made.append(f'<{tag}{scope} style="{_CELL}{weight}text-align:{align}">{inside}</{tag}>')
        return f'<tr style="background:transparent">{"".join(made)}</tr>'

    head = cells([_said(c) for c in columns], "th")
    body = "".join(cells(row, "td") for row in rows)
    style = "border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums"
    return f'<table style="{style}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _number(shown: Cell) -> str:
    """A number with its interval, or a dash with the reason on hovering."""
    from voirdire.document import display, display_interval

    said = escape(printable(display(shown)))
    interval = display_interval(shown)
    if interval:
        said += f" {_muted(escape(interval))}"
    if shown.value is None and shown.reason:
        return f'<span title="{escape(printable(shown.reason), quote=True)}">{said}</span>'
    return said


def _more(many: int, noun: str, where: str) -> str:
    several = f"more {noun}es" if noun.endswith("s") else ""
    said = plural(many, f"more {noun}", several)
    return _line(_muted(escape(f"{said}: {where}"))) if many > 0 else ""


# --- what is shown --------------------------------------------------------------------------------


def estimate_html(estimate: Estimate) -> str:
    """One number: what it asks, its value and interval, whom it is about, what it rests on."""
    from voirdire.document import cell, display, display_edge, display_interval

    shown, key = cell(estimate), estimate.key
    what = [(word, value) for word, value in (
        ("grader", key.grader), ("against", key.other), ("class", key.class_), ("to", key.to_class),
        ("line", key.line), ("cut", key.cut), ("where", key.slice),
    ) if value]  # fmt: skip
    parts = [_line(_muted(escape(estimate.estimand.question)))]
    if what:
        parts.append(_line(", ".join(f"{word} {_said(Name(value))}" for word, value in what)))
    value = f"<b>{escape(printable(display(shown)))}</b>"
    interval = estimate.interval
    if interval is not None:
        level = f"{100 * interval.level:g} %"
        value += (
            f" {escape(display_interval(shown))} {_muted(escape(f'{level}, {interval.method}'))}"
        )
    edge = display_edge(estimate)
    if edge:
        value += f" {_muted(escape(edge))}"
    parts.append(_line(value))
    if shown.reason:
        parts.append(_line(_muted(escape(printable(shown.reason)))))
    rests = [f"n = {counted(estimate.n)}"] if estimate.n is not None else []
    if estimate.clusters is not None:
        rests.append(plural(estimate.clusters, "cluster"))
    describes = {"both": "the grader on this bank", "bank": "the bank, not the grader",
                 "grader": "the grader", "panel": "the panel"}  # fmt: skip
    about = describes.get(str(estimate.estimand.describes), str(estimate.estimand.describes))
    parts.append(
        _line(_muted(escape("; ".join([", ".join(rests), f"describes {about}"]).lstrip("; "))))
    )
    return _panel(escape(estimate.estimand.title), parts)


def _finding(finding: Finding) -> str:
    """The line of a finding: its state in words, its strength, its sentence."""
    state = _STATES.get(str(finding.state), str(finding.state))
    strength = f" {_muted(escape(str(finding.strength)))}" if finding.strength else ""
    look = " <i>exploratory</i>" if finding.exploratory else ""
    return f"<b>{escape(state)}</b>{strength}{look} {_said(finding.sentence)}"


def finding_html(finding: Finding) -> str:
    """One finding: its sentence, the next step, and the numbers behind it."""
    from voirdire.document import cell

    parts = [_line(_finding(finding))]
    if finding.next_step:
        parts.append(_line(f"→ {_said(finding.next_step)}"))
    rows = []
    for one in finding.evidence[:MOST_EVIDENCE]:
        of = [v for v in one.key if v]
        n = "" if one.n is None else counted(one.n)
        rows.append(
            (
                escape(one.estimand.title),
                ", ".join(_named(v) for v in of),
                _number(cell(one)),
                n,
            )
        )
    if rows:
        parts.append(_table(("evidence", "of", "value", "n"), rows, texts=2))
    parts.append(_more(len(finding.evidence) - MOST_EVIDENCE, "number", "finding.evidence"))
    return _panel(f"<code>{escape(finding.code)}</code>", parts)


def labels_html(labels: Labels, gold: str) -> str:
    """The labels: responses, clusters, classes, and how often each grader gave each class."""
    frame = labels.frame
    names = labels.grader_names
    facts = []
    if labels.kind != "counts":
        clusters = frame["cluster"].n_unique() if len(frame) else 0
        facts.append(plural(labels.responses, "response"))
        facts.append(
            f"in {plural(clusters, 'cluster')}"
            if labels.clusters_declared
            else "no clusters declared"
        )
    facts.append(plural(len(names), "grader"))
    parts = [_line(escape(", ".join(facts)))]
    if labels.kind == "checklist":
        parts.append(_line(_muted("verdicts on the lines of a checklist, yes or no")))
    else:
        between = " &lt; " if labels.ordered else ", "
        shown = between.join(_said(Name(c)) for c in labels.scale)
        kind = "scale" if labels.ordered else "classes without an order"
        off = ", ".join(_said(Name(c)) for c in labels.off_scale)
        rest = f"; off the scale: {off}" if off else ""
        parts.append(_line(f"{kind}: {shown}{rest}"))
    roles = {labels.options.reference: "reference", gold: "gold"}
    words = {"0": "no", "1": "yes"} if labels.kind == "checklist" else {}
    classes = labels.classes[:MOST_CLASSES]
    counts = _class_counts(labels)
    rows = []
    for grader in names[:MOST_GRADERS]:
        role = roles.get(grader, "person" if labels.by_name[grader].person else "")
        role = "" if role == grader else role
        held = counts.get(grader, {})
        named = _named(grader) + (f" {_muted(role)}" if role else "")
        cells = [_count(held.get(c, 0.0)) for c in classes]
        rows.append((named, *cells, _count(held.get("", 0.0))))
    heads = [words.get(c) or Name(c) for c in classes]
    last = "not printed" if labels.kind == "counts" else "unread"
    parts.append(_table(("grader", *heads, last), rows))
    parts.append(_more(len(labels.classes) - MOST_CLASSES, "class", "labels.classes"))
    parts.append(_more(len(names) - MOST_GRADERS, "grader", "labels.graders"))
    return _panel("Labels", parts)


def _count(n: float | None) -> str:
    return "–" if n is None else counted(n)


def _class_counts(labels: Labels) -> dict[str, dict[str, float | None]]:
    """How often each grader gave each class (``None``: not printed); under ``""`` what gave none."""
    import polars as pl

    frame, found = labels.frame, dict[str, dict[str, float | None]]()
    if labels.kind == "counts":
        known = frame.filter(pl.col("label").is_not_null())
        for row in known.iter_rows(named=True):
            held = found.setdefault(row["grader"], {})
            before, weight = held.get(row["label"], 0.0), row["weight"]
            held[row["label"]] = (
                None if before is None or weight is None else before + float(weight)
            )
        for held in found.values():
            held[""] = float(sum(n is None for n in held.values()))
        return found
    by = frame.group_by("grader", "label").len()
    for grader, label, n in by.iter_rows():
        found.setdefault(str(grader), {})["" if label is None else str(label)] = float(n)
    return found


def audit_html(audit: Audit, gold: str) -> str:
    """The audit: its summary, what was found and what cannot be told, and a table of graders."""
    document = audit.document
    parts = [_line(_said(document.summary))]
    loud = [f for f in audit.findings if str(f.state) in ("found", "cannot_tell")]
    for finding in loud[:MOST_FINDINGS]:
        parts.append(_line(_finding(finding)))
    parts.append(_more(len(loud) - MOST_FINDINGS, "finding", "audit.findings"))
    quiet = len(audit.findings) - len(loud)
    if quiet:
        parts.append(_line(_muted(f"{plural(quiet, 'check')} clear or not applicable.")))
    parts.append(_graders(audit, gold))
    said = "audit.results, audit.findings, audit.write(&quot;audit.html&quot;)"
    parts.append(_line(_muted(f"All of it: <code>{said}</code>")))
    return _panel(_said(document.title), parts)


def _graders(audit: Audit, gold: str) -> str:
    """One row a grader: labels and rates, or a judge's errors and its gate, with intervals."""
    from voirdire.document import cell

    labels = audit.labels
    # A table of counts has no pairs of labels.
    standard = "" if labels.kind == "counts" else gold or labels.options.reference
    whole = {(e.statistic, *e.key): e for e in audit.estimates if not e.key.slice}
    if labels.kind == "checklist":
        asked = [("element error", "element_error", ""), ("false accept", "false_accept", ""),
                 ("false reject", "false_reject", "")]  # fmt: skip
        asked += [(f"gate accuracy, cut {c}", "gate_accuracy", str(c)) for c in labels.options.cut]
        columns: list[Text | Name | str] = ["judge", *(title for title, _, _ in asked)]
    else:
        rates = list(dict.fromkeys(e.key.class_ for e in audit.estimates if e.statistic == "rate"))
        columns = ["grader", *(Name(r) for r in rates[:MOST_RATES])]
        if standard:
            columns.append(("kappa with ", Name(standard)))
        columns.append("labels")
    rows = []
    shown = [g for g in labels.grader_names if labels.kind != "checklist" or g != gold]
    for grader in shown[:MOST_GRADERS]:
        role = {gold: "gold", labels.options.reference: "reference"}.get(
            grader, "person" if labels.by_name[grader].person else ""
        )
        row = [_named(grader) + (f" {_muted(role)}" if role and role != grader else "")]
        of = [e for e in audit.estimates if e.key.grader == grader and not e.key.slice]
        if labels.kind == "checklist":
            for _, statistic, cut in asked:
                found = next((e for e in of if e.statistic == statistic and not e.key.line
                              and (not cut or e.key.cut == cut)), None)  # fmt: skip
                row.append("–" if found is None else _number(cell(found)))
        else:
            for rate in rates[:MOST_RATES]:
                found = whole.get(("rate", grader, "", rate, "", "", "", ""))
                row.append("–" if found is None else _number(cell(found)))
            if standard:
                found = whole.get(("cohen_kappa", grader, standard, "", "", "", "", ""))
                row.append("–" if found is None else _number(cell(found)))
            n = next((e.n for e in of if e.statistic in ("label_count", "rate")), None)
            row.append(_count(n))
        rows.append(row)
    if not rows:
        return ""
    more = _more(len(shown) - MOST_GRADERS, "grader", "audit.results")
    return _table(columns, rows) + more
