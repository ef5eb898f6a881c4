"""Every format writes any name safely, the same bytes each time, and nothing is lost or hidden."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.conftest import run_python
from voirdire import plugins
from voirdire.document import (
    Block,
    Cell,
    Column,
    Document,
    Figure,
    FindingBlock,
    Heading,
    Input,
    Kind,
    Paragraph,
    Paste,
    Table,
    Tone,
    cell,
)
from voirdire.estimand import Describes, Estimand, Scale, Source, Unit
from voirdire.estimate import RESULT_COLUMNS, Estimate, Interval, Key, Undefined
from voirdire.finding import Finding, State, Strength, worst_first
from voirdire.formats.base import Format, option_text, reasons, sections
from voirdire.formats.html import render as html
from voirdire.formats.json import render as to_json
from voirdire.formats.json import schema
from voirdire.formats.markdown import render as markdown
from voirdire.formats.table import read_results, render_csv, render_parquet, results_frame
from voirdire.formats.text import print_document
from voirdire.formats.text import render as text
from voirdire.wording import Name, say

SHARED = Path(__file__).parents[2] / "shared"

HOSTILE = [
    "gpt_5%mini",
    "a|b",
    "<b>bold</b>",
    "vendor/model:2026-01",
    "Ærø_ñandú",
    "=SUM(A1)",
    "con",
    "x & y # z ~ ^ \\ {}",
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "=1+2",
    "-3",
    "+44 20 0000",
    "@now",
    "\tTAB first",
    "| pipe | and \\| both |",
    "line one\nline two",
    "\rreturn",
    "'quoted",
    "esc\x1b[31mred",
    "right\u202eto left",
    "line\u2028separator",
    "``` fence",
    "[bold]rich[/bold] :smile:",
    "{{ 7 * 7 }}{% raw %}",
    "*star* _under_ ~~strike~~ [link](javascript:alert(3))",
    '"onmouseover="alert(4)',
    "half \ud800 pair",
    "長い名前" * 12,
    "",
    " ",
    "# heading",
]
PLAIN = [name and f"name{i}" for i, name in enumerate(HOSTILE)]


def estimand(name: str, unit: Unit = Unit.SHARE) -> Estimand:
    return Estimand(
        name=name,
        title=name.replace("_", " ").capitalize(),
        question=f"What is the {name}?",
        describes=Describes.GRADER,
        keys=("grader", "class"),
        unit=unit,
        scale=Scale.LOGIT,
        undefined_when="there are no labels",
        source=Source(text="a source"),
    )


RATE, RATIO = estimand("rate"), estimand("collapse_ratio", Unit.RATIO)


def document(names: list[str]) -> Document:
    """A report in which every place that can hold a name holds each of ``names`` somewhere."""
    estimates, rows, findings = list[Estimate](), [], []
    for i, name in enumerate(names):
        other = names[(i + 1) % len(names)]
        interval = Interval(low=0.1, high=0.1 + 0.2 / 3, level=0.95, method="jackknife_t")
        key = Key(grader=name, class_=other, slice=f"tag={name}")
        rate = Estimate(
            estimand=RATE, key=key, value=0.1 + i / 300, interval=interval, n=900, clusters=100
        )
        ratio = Estimate(
            estimand=RATIO, key=key, value=Undefined("there is nobody to compare with")
        )
        estimates += [rate, ratio]
        rows.append(
            (
                cell(Name(name)),
                cell(name),
                cell(rate),
                cell(ratio),
                cell(say("of {n}", n=Name(name))),
            )
        )
        state = list(State)[i % 4]
        findings.append(
            Finding(
                code="class_collapse",
                state=state,
                strength=Strength.LIKELY if state is State.FOUND else Strength.NONE,
                grader=name,
                sentence=say("{a} differs from {b}.", a=Name(name), b=Name(other)),
                next_step=say("Read responses of {a}.", a=Name(name)),
                evidence=(rate, ratio),
            )
        )
    estimates.append(
        Estimate(estimand=RATE, key=Key(grader="hidden"), value=0.5, n=2.5, listed=False)
    )
    shares = {
        "classes": names[:3],
        "off_scale": names[3:5],
        "highlight": names[2],
        "rows": [
            {
                "grader": n,
                "group": n,
                "counts": [5, 3, 0, 1, None],
                "total": 10,
                "note": "",
                "flagged": True,
            }
            for n in names
        ],
    }
    dots = {
        "rates": [
            {
                "name": n,
                "spread": n,
                "dots": [
                    {
                        "grader": n,
                        "value": 0.2,
                        "low": 0.1,
                        "high": 0.3,
                        "role": "reference",
                        "flagged": True,
                        "note": n,
                    },
                    {
                        "grader": n,
                        "value": None,
                        "low": None,
                        "high": None,
                        "role": "",
                        "flagged": False,
                        "note": n,
                    },
                ],
            }
            for n in names
        ]
    }
    blocks: tuple[Block, ...] = (
        Heading(text="Findings"),
        *(FindingBlock(finding=f) for f in findings),
        Heading(text="Rates"),
        *(Paragraph(text=say("{n} leads.", n=Name(n)), tone=tone) for n in names for tone in Tone),
        Table(
            title="Rates of all graders",
            columns=(
                Column(title="grader", kind=Kind.NAME),
                Column(title=Name(names[1]), help="a text of the data"),
                Column(title=Name(names[2]), kind=Kind.SHARE),
                Column(title="ratio", kind=Kind.RATIO),
                Column(title="remark"),
            ),
            rows=tuple(rows),
            note=say("See {n}.", n=Name(names[8])),
        ),
        Figure(name="class_shares", title="Shares", data=shares, alt=say("{n} has none.", n=Name(names[9])), caption=say("Of {n}.", n=Name(names[2]))),
        Figure(name="rate_dots", title="Rates", data=dots, alt=say("Rates of {n}.", n=Name(names[2]))),
        Figure(name="no_such_figure", title="Missing", data={}, alt=say("What {n} would show.", n=Name(names[8]))),
        Paste(title="Methods", lines=tuple(say("We used {n}.", n=Name(n)) for n in names)),
    )  # fmt: skip
    return Document(
        title="Audit",
        summary=say("{n} is one of them.", n=Name(names[8])),
        blocks=blocks,
        estimates=tuple(estimates),
        findings=tuple(worst_first(findings)),
        inputs=tuple(Input(name=n, sha256="ab" * 32, rows=3) for n in names),
        options={"graders": tuple(names), "rate": ((names[2], (names[0], names[1])),), "by": ()},
        version="0.1.0",
    )


@pytest.fixture(scope="module")
def hostile() -> Document:
    return document(HOSTILE)


ALL = {f.name: f for f in plugins.load("formats", Format)}
OURS = ("text", "markdown", "html", "latex", "bibtex", "json", "csv", "parquet")
READABLE = ("text", "markdown", "html", "latex", "bibtex", "json", "csv")


# Every format


@pytest.mark.parametrize("name", OURS)
def test_the_same_document_gives_the_same_bytes(name: str) -> None:
    assert ALL[name].render(document(HOSTILE)) == ALL[name].render(document(HOSTILE))


@pytest.mark.parametrize("name", READABLE)
def test_a_file_is_utf8_with_unix_line_ends(name: str, hostile: Document) -> None:
    data = ALL[name].render(hostile)
    content = data.decode("utf-8")
    assert content.endswith("\n")
    if name != "csv":  # there a return inside a text is data
        assert "\r" not in content


@pytest.mark.parametrize("name", OURS)
def test_a_document_without_anything_in_it_can_be_written(name: str) -> None:
    empty = Document(title="Empty", summary=(), blocks=(), estimates=(), findings=())
    assert ALL[name].render(empty)


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_a_page_shows_no_control_or_bidirectional_character(name: str, hostile: Document) -> None:
    content = ALL[name].render(hostile).decode()
    assert not set(
        re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2066-\u2069]", content)
    )
    assert "⟨U+001B⟩" in content
    assert "⟨U+202E⟩" in content


@pytest.mark.parametrize("name", ["text", "markdown", "html", "latex"])
def test_a_reason_for_a_missing_value_is_readable_in_the_page(name: str, hostile: Document) -> None:
    assert "there is nobody to compare with" in ALL[name].render(hostile).decode()


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_a_state_is_told_in_words(name: str, hostile: Document) -> None:
    content = ALL[name].render(hostile).decode()
    for word in ("FOUND", "CANNOT TELL", "NOT APPLICABLE", "CLEAR"):
        assert word in content


def test_formats_import_no_heavy_package(tmp_path: Path) -> None:
    modules = ", ".join(
        f"voirdire.formats.{m}" for m in ("html", "json", "markdown", "table", "text")
    )
    code = f"import sys, {modules}\nprint(*sys.modules)"
    done = run_python("-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"polars", "rich", "jinja2", "scipy", "numpy"}.isdisjoint(done.stdout.split())


def test_a_section_that_only_repeats_the_findings_is_left_out(hostile: Document) -> None:
    assert [heading.text for heading, _ in sections(hostile)] == ["Rates"]


def test_reasons_are_lettered_in_the_order_they_appear() -> None:
    cells = tuple(Cell(kind=Kind.SHARE, reason=f"reason {i % 28}") for i in range(56))
    table = Table(title="", columns=(), rows=(cells,))
    letters = list(reasons(table).values())
    assert letters[:2] == ["a", "b"]
    assert letters[25:] == ["z", "aa", "ab"]


def test_options_read_as_on_the_command_line() -> None:
    assert option_text(("a", "b")) == "a, b"
    assert option_text((("x", ("a", "b")), ("y", "c"))) == "x=a+b, y=c"
    assert option_text({"x": 1}) == "x=1"
    assert option_text(1 / 3) == "0.333333"


# HTML


class Page(HTMLParser):
    """The elements, attributes and script texts of a page."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes = Counter[str](), list[tuple[str, str, str]]()
        self.scripts, self.text, self._inside = list[str](), list[str](), ""
        self.feed(content)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        else:
            self.text.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def test_no_html_element_comes_from_the_data(hostile: Document) -> None:
    mine, plain = Page(html(hostile).decode()), Page(html(document(PLAIN)).decode())
    # A name that a figure cuts has its whole in a <title>; all else is the same element for element.
    assert {t: n for t, n in mine.tags.items() if t != "title"} == {
        t: n for t, n in plain.tags.items() if t != "title"
    }
    assert {"img", "iframe", "object", "form", "link"}.isdisjoint(mine.tags)


def test_html_has_one_script_and_it_is_ours_by_its_hash(hostile: Document) -> None:
    page = Page(html(hostile).decode())
    assert page.tags["script"] == len(page.scripts) == 1
    digest = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
    policy = next(v for _, n, v in page.attributes if n == "content" and "default-src" in v)
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "alert(" not in page.scripts[0]


def test_html_has_no_event_attribute_and_loads_nothing(hostile: Document) -> None:
    content = html(hostile).decode()
    for _, name, value in Page(content).attributes:
        assert not name.startswith("on")
        if name in ("href", "src", "xlink:href", "action", "data"):
            assert value.startswith("#")
        if name in ("style", "fill"):
            assert "url(" not in value or value.startswith("url(#")
    assert "@import" not in content


def test_html_shows_every_name_as_it_is(hostile: Document) -> None:
    shown = "".join(Page(html(hostile).decode()).text)
    for name in (
        "a|b",
        "<b>bold</b>",
        "</script><script>alert(2)</script>",
        "{{ 7 * 7 }}{% raw %}",
    ):
        assert name in shown
    assert "49" not in shown.split("Findings")[0]


def test_html_links_lead_to_something_on_the_page(hostile: Document) -> None:
    attributes = Page(html(hostile).decode()).attributes
    ids = [value for _, name, value in attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = {v[1:] for tag, name, v in attributes if tag == "a" and name == "href"}
    labels = {w for _, name, v in attributes if name == "aria-labelledby" for w in v.split()}
    assert links | labels <= set(ids)


def test_html_says_its_language_and_heads_its_tables(hostile: Document) -> None:
    page = Page(html(hostile).decode())
    assert ("html", "lang", "en") in page.attributes
    scopes = Counter(v for tag, name, v in page.attributes if tag == "th" and name == "scope")
    assert scopes["row"] >= len(HOSTILE)
    assert sum(scopes.values()) == page.tags["th"]


def test_html_draws_figures_and_writes_the_text_of_one_it_cannot_draw(hostile: Document) -> None:
    page = Page(html(hostile).decode())
    assert page.tags["svg"] == 2
    assert "What " in "".join(page.text)
    assert " would show." in "".join(page.text)


# Markdown


def _tables(content: str) -> list[list[str]]:
    """The tables outside fences, as lines."""
    content = re.sub(r"(?ms)^(`{3,})text\n.*?^\1\n", "", content)
    blocks = re.findall(r"(?m)(?:^\|.*\n)+", content)
    return [block.splitlines() for block in blocks]


def test_every_row_of_a_markdown_table_has_the_same_cells(hostile: Document) -> None:
    tables = _tables(markdown(hostile).decode())
    assert tables
    for lines in tables:
        # Counting every bar is the hardest reading: no reader may see another number of cells.
        assert len({line.count("|") for line in lines}) == 1
    assert sum(len(lines) for lines in tables) == 2 * (len(HOSTILE) + 2)


def test_markdown_has_no_html_outside_code(hostile: Document) -> None:
    content = markdown(hostile).decode()
    content = re.sub(r"(?ms)^(`{3,})text\n.*?^\1\n", "", content)
    content = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", content)
    assert not re.findall(r"<[a-zA-Z/!]", content)


def test_a_markdown_fence_is_longer_than_any_backticks_in_it() -> None:
    block = Paste(title="Paste", lines=(say("a {n}", n=Name("````")),))
    page = Document(title="t", summary=("s",), blocks=(block,), estimates=(), findings=())
    assert "`````text\na ````\n`````" in markdown(page).decode()


def test_a_markdown_line_never_starts_with_a_marker_from_the_data() -> None:
    names = ("- item", "+ item", "1. item", "# head", "> quote", "=== under", "* star")
    blocks = tuple(Paragraph(text=(name,)) for name in names)
    page = Document(title="t", summary=("s",), blocks=blocks, estimates=(), findings=())
    lines = markdown(page).decode().splitlines()[4:]
    assert not [line for line in lines if re.match(r"\s*([-+*#>=]|\d+[.)])", line)]


def test_a_markdown_reader_sees_every_name_and_no_markup_of_its_own(hostile: Document) -> None:
    from markdown_it import MarkdownIt

    tokens = (
        MarkdownIt("commonmark")
        .enable(["table", "strikethrough"])
        .parse(markdown(hostile).decode())
    )
    inner = [t for token in tokens for t in (token.children or [])]
    kinds = {t.type for t in tokens} | {t.type for t in inner}
    assert kinds.isdisjoint({"html_block", "html_inline", "image", "link_open", "s_open"})
    seen = "".join(t.content for t in inner)
    for name in HOSTILE:
        if name.strip() and name.isprintable():
            assert name in seen
    cells = Counter(t.type for t in tokens)
    assert cells["td_open"] == len(HOSTILE) * (5 + 3)
    assert cells["fence"] == 1


# Text


def test_text_lines_fit_the_width(hostile: Document) -> None:
    from rich.cells import cell_len

    assert max(cell_len(line) for line in text(hostile).decode().splitlines()) <= 100


def test_text_from_the_data_is_not_read_as_markup(hostile: Document) -> None:
    content = text(hostile).decode()
    assert "[bold]rich[/bold] :smile:" in content


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1", "cp437"])
@pytest.mark.parametrize("brief", [False, True])
def test_a_terminal_that_lacks_characters_does_not_crash(
    encoding: str, brief: bool, hostile: Document
) -> None:
    from rich.console import Console

    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="strict")
    print_document(hostile, Console(file=file, width=80), brief=brief)
    file.flush()
    content = raw.getvalue().decode(encoding)
    assert "! FOUND" in content
    assert "CANNOT TELL" in content


def test_a_file_or_pipe_gets_neither_colour_nor_returning_carriages(hostile: Document) -> None:
    from rich.console import Console

    file = io.StringIO()
    print_document(hostile, Console(file=file, width=120))
    assert "\x1b" not in file.getvalue()
    assert "\r" not in file.getvalue()


def test_the_terminal_shows_the_same_words_with_and_without_colour(hostile: Document) -> None:
    from rich.console import Console

    bare, coloured = io.StringIO(), io.StringIO()
    print_document(hostile, Console(file=bare, width=90, color_system=None))
    console = Console(file=coloured, width=90, force_terminal=True, color_system="truecolor")
    print_document(hostile, console)
    assert "\x1b[" in coloured.getvalue()
    uncoloured = re.sub(r"\x1b\[[0-9;]*m", "", coloured.getvalue())
    assert [x.rstrip() for x in uncoloured.splitlines()] == [
        x.rstrip() for x in bare.getvalue().splitlines()
    ]


def test_a_brief_report_gives_what_is_clear_one_line_each() -> None:
    from rich.console import Console

    long = say("{n} " + "uses every class about as often as the others " * 6, n=Name("g"))
    findings = tuple(Finding(code="x", state=State.CLEAR, sentence=long) for _ in range(3))
    page = Document(title="t", summary=("s",), blocks=(), estimates=(), findings=findings)
    file = io.StringIO()
    print_document(page, Console(file=file, width=80), brief=True)
    assert len([line for line in file.getvalue().splitlines() if line.startswith("○ CLEAR")]) == 3
    # Title, summary, gap, heading, rule, one line each, and the line that says so.
    assert len(file.getvalue().splitlines()) == 5 + 3 + 1
    assert "Cut to one line each" in file.getvalue()


def test_a_wide_table_is_folded_with_its_first_column_repeated() -> None:
    columns = tuple(Column(title=f"column {i}") for i in range(12))
    rows = ((cell(Name("grader")), *(cell("x" * 15) for _ in range(11))),)
    block = Table(title="Wide", columns=columns, rows=rows)
    page = Document(title="t", summary=("s",), blocks=(block,), estimates=(), findings=())
    content = text(page).decode()
    assert content.count("x" * 15) == 11
    assert content.count("grader") >= 2


def test_a_brief_report_says_how_much_of_a_long_table_it_leaves_out() -> None:
    from rich.console import Console

    columns = tuple(Column(title=f"column {i}") for i in range(8))
    rows = tuple((cell(Name(f"g{j}")), *(cell("x" * 15) for _ in range(7))) for j in range(40))
    blocks = (
        Table(title="Long", columns=columns, rows=rows),
        Paste(title="Lines", lines=(("a line",),) * 20),
    )
    page = Document(title="t", summary=("s",), blocks=blocks, estimates=(), findings=())
    file = io.StringIO()
    print_document(page, Console(file=file, width=80), brief=True)
    content = file.getvalue()
    assert "In the written report: 25 more rows and 3 more columns." in content
    assert "In the written report: 20 lines to paste." in content
    assert len([line for line in content.splitlines() if line.startswith("g")]) == 15
    assert text(page).decode().count("x" * 15) == 7 * 40


# JSON


def test_json_is_strict_and_has_the_keys_of_the_contract(hostile: Document) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    content = json.loads(to_json(hostile), parse_constant=refuse)
    assert list(content) == ["voirdire", "inputs", "options", "results", "findings"]
    assert list(content["results"][0]) == list(RESULT_COLUMNS)
    assert content["results"] == [e.row() for e in hostile.estimates if e.listed]
    assert content["findings"] == [f.record() for f in hostile.findings]


def test_json_writes_null_for_what_is_not_a_number() -> None:
    nan = float("nan")
    broken = Estimate(
        estimand=RATE,
        key=Key(),
        value=nan,
        interval=Interval(low=-float("inf"), high=nan, level=0.95, method="x"),
    )
    page = Document(title="t", summary=(), blocks=(), estimates=(broken,), findings=())
    (row,) = json.loads(to_json(page))["results"]
    assert (row["value"], row["low"], row["high"]) == (None, None, None)


def test_json_takes_options_of_any_kind() -> None:
    np = pytest.importorskip("numpy")
    options = {"a": np.float64(0.5), "b": np.int64(3), "c": {"y", "x"}, "d": Path("p"), "e": True}
    page = Document(title="t", summary=(), blocks=(), estimates=(), findings=(), options=options)
    assert json.loads(to_json(page))["options"] == {
        "a": 0.5, "b": 3, "c": ["x", "y"], "d": "p", "e": True
    }  # fmt: skip


def test_json_keeps_half_a_surrogate_pair() -> None:
    page = document(["half \ud800 pair"] * len(HOSTILE))
    assert json.loads(to_json(page))["inputs"][0]["name"] == "half \ud800 pair"


def _fits(value: object, rule: dict[str, object], defs: dict[str, dict[str, object]]) -> bool:
    """Whether a value follows a JSON Schema, as far as ours uses the language."""
    if "$ref" in rule:
        return _fits(value, defs[str(rule["$ref"]).rsplit("/", 1)[1]], defs)
    kinds = {
        "string": str, "number": (int, float), "integer": int, "null": type(None),
        "boolean": bool, "array": list, "object": dict,
    }  # fmt: skip
    wanted = rule.get("type", [])
    wanted = [wanted] if isinstance(wanted, str) else wanted
    assert isinstance(wanted, list)
    if wanted and not any(isinstance(value, kinds[k]) for k in wanted):  # type: ignore[arg-type]
        return False
    if "enum" in rule and value not in rule["enum"]:  # type: ignore[operator]
        return False
    if "pattern" in rule and not re.search(str(rule["pattern"]), str(value)):
        return False
    if isinstance(value, list) and "items" in rule:
        return all(_fits(v, rule["items"], defs) for v in value)  # type: ignore[arg-type]
    if isinstance(value, dict) and "properties" in rule:
        properties = rule["properties"]
        assert isinstance(properties, dict)
        return set(value) == set(properties) and all(
            _fits(v, properties[k], defs) for k, v in value.items()
        )
    return True


def test_a_real_report_follows_the_schema(hostile: Document) -> None:
    rule = schema()
    content = json.loads(to_json(hostile))
    assert _fits(content, rule, rule["$defs"])
    content["results"][0]["value"] = "many"
    assert not _fits(content, rule, rule["$defs"])


def test_the_schema_is_a_schema_and_a_real_report_validates(hostile: Document) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.Draft202012Validator(schema()).validate(json.loads(to_json(hostile)))


# The results table


def test_the_results_table_has_typed_columns_in_order(hostile: Document) -> None:
    import polars as pl

    frame = results_frame(hostile.estimates)
    assert frame.columns == list(RESULT_COLUMNS)
    types = dict(frame.schema)
    assert {c for c, t in types.items() if t == pl.Float64} == {"value", "low", "high", "level"}
    assert {c for c, t in types.items() if t == pl.Int64} == {"n", "clusters"}
    assert frame.height == sum(e.listed for e in hostile.estimates)
    assert not frame.select(pl.col(pl.String).is_null().any()).row(0).count(True)


def test_n_is_whole_unless_a_weighted_count_is_not() -> None:
    import polars as pl

    key = Key(grader="g")
    whole = Estimate(estimand=RATE, key=key, value=0.5, n=3.0)
    weighted = Estimate(estimand=RATE, key=key, value=0.5, n=2.5)
    assert results_frame([whole]).schema["n"] == pl.Int64
    assert results_frame([whole, weighted]).schema["n"] == pl.Float64
    assert results_frame([]).schema["n"] == pl.Int64


@pytest.mark.parametrize(("render", "suffix"), [(render_csv, "csv"), (render_parquet, "parquet")])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_written_table_reads_back_to_the_identical_frame(
    render, suffix: str, weighted: bool, hostile: Document, tmp_path: Path
) -> None:
    from polars.testing import assert_frame_equal

    estimates = list(hostile.estimates)
    if weighted:
        estimates.append(Estimate(estimand=RATE, key=Key(grader="w"), value=-3.0, n=2.5))
    page = Document(title="", summary=(), blocks=(), estimates=tuple(estimates), findings=())
    path = tmp_path / f"results.{suffix}"
    path.write_bytes(render(page))
    assert_frame_equal(read_results(path), results_frame(estimates), check_exact=True)


def test_csv_guards_texts_that_a_spreadsheet_would_run_and_never_numbers() -> None:
    import csv

    names = ["=SUM(A1)", "+1", "-3", "@now", "\tTAB", "\rCR", "'", "''x", "safe", "3"]
    estimates = tuple(Estimate(estimand=RATE, key=Key(grader=n), value=-3.0, n=9) for n in names)
    page = Document(title="", summary=(), blocks=(), estimates=estimates, findings=())
    rows = list(csv.reader(io.StringIO(render_csv(page).decode(), newline="")))
    graders, values = [r[1] for r in rows[1:]], {r[8] for r in rows[1:]}
    assert graders == [f"'{n}" for n in names[:-2]] + names[-2:]
    assert values == {"-3.0"}


def test_csv_writes_floats_in_full() -> None:
    value = 0.1 + 0.2
    page = Document(
        title="",
        summary=(),
        blocks=(),
        estimates=(Estimate(estimand=RATE, key=Key(), value=value),),
        findings=(),
    )
    assert b"0.30000000000000004" in render_csv(page)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a,b\n1,2\n", "not a results table"),
        (b"", "not a results table"),
        (b"\xff\xfe", "not CSV in UTF-8"),
        ((",".join(RESULT_COLUMNS) + "\nrate\n").encode(), "row 2"),
        ((",".join(RESULT_COLUMNS) + "\nrate" + "," * 8 + "x" + "," * 8 + "\n").encode(), "number"),
    ],
)
def test_a_file_that_is_no_results_table_is_named(
    content: bytes, said: str, tmp_path: Path
) -> None:
    from voirdire.errors import InputError

    path = tmp_path / "other.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_results(path)
    with pytest.raises(InputError, match="there is no such file"):
        read_results(tmp_path / "absent.parquet")


# The case from the field


def test_the_hostile_names_of_the_field_case_are_safe_in_every_format(tmp_path: Path) -> None:
    path = SHARED / "cases" / "inputs" / "hostile-names.json"
    if not path.exists():
        pytest.skip("the shared field cases are not here")
    given = json.loads(path.read_text(encoding="utf-8"))
    names = (given["graders"] + given["responses"]) * 2
    page = document(names)
    elements = Page(html(page).decode())
    assert elements.tags["script"] == 1
    assert "img" not in elements.tags
    for lines in _tables(markdown(page).decode()):
        assert len({line.count("|") for line in lines}) == 1
    (tmp_path / "r.csv").write_bytes(render_csv(page))
    assert read_results(tmp_path / "r.csv")["grader"].to_list() == [n for n in names for _ in "12"]
    assert json.loads(to_json(page))["inputs"][1]["name"] == names[1]
    assert text(page)
