"""The HTML page in a real browser: nothing is loaded, clicks lead where they say, copies are exact.

Needs Playwright for Python and Debian’s Chromium; axe-core is looked for at VOIRDIRE_AXE, else in
``node_modules`` of the project. What is missing is skipped, with the reason.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import voirdire as vd
from tests.conftest import DATA, ROOT, run_python
from tests.test_html_page import CLASSES, JUDGE_BANK, SHARED, WIDE, XSTEST, audit_of, write_table
from voirdire.auditing import Audit
from voirdire.formats import html

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
AXE = Path(os.environ.get("VOIRDIRE_AXE") or ROOT / "node_modules/axe-core/axe.min.js")
CELL = "button.open:visible"

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="Playwright for Python is not installed"
)
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no {CHROMIUM}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield made
        made.close()


class Opened:
    """A page with what it asked of the network and what it said to the console."""

    def __init__(self, browser: Browser, path: Path, **given: Any) -> None:
        given = {"viewport": {"width": 1280, "height": 900}, **given}
        self.context = browser.new_context(**given)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.asked: list[str] = []
        self.said: list[str] = []
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.on("console", lambda m: self.said.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.said.append(f"error: {e}"))
        self.address = path.as_uri()
        self.page.goto(self.address)

    def quiet(self) -> None:
        """Nothing but the file itself was asked for, and nothing was said."""
        assert [u for u in self.asked if u.split("#")[0] != self.address] == []
        assert self.said == []

    def until(self, true: Callable[[], bool]) -> None:
        """Wait for what the page is about to do; the page’s policy lets no test be evaluated in it."""
        for _ in range(200):
            if true():
                return
            self.page.wait_for_timeout(25)
        raise AssertionError("it did not come about in 5 seconds")

    def tally(self) -> tuple[str, int, int]:
        """What the sheet says: the sentence, rows after filters, and the number it stands for."""
        at = self.page.locator(".sheet .tally")
        said = at.inner_text()
        return (
            said,
            int(at.get_attribute("data-rows") or 0),
            int(at.get_attribute("data-total") or 0),
        )


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Opened]]:
    made: list[Opened] = []

    def open_(path: Path, **given: Any) -> Opened:
        made.append(Opened(browser, path, **given))
        return made[-1]

    yield open_
    for one in made:
        one.context.close()


# --- the reports --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


def _write(path: Path, audit: Audit) -> Path:
    audit.write(path)
    return path


def _xstest(folder: Path) -> Path:
    return _write(folder / "xstest.html", vd.audit(vd.read(DATA / "xstest.csv", **XSTEST)))


def _bank(folder: Path) -> Path:
    labels = vd.read(DATA / "judge_item_bank.csv", **JUDGE_BANK, cut=[4, 5, 6, 7])
    return _write(folder / "bank.html", vd.audit(labels))


def _counts(folder: Path) -> Path:
    labels = vd.read(
        DATA / "missing_class_a.csv", layout="counts", scale=CLASSES,
        off_scale="gibberish,refused_in_cot", refusal_like="refused_in_cot",
        reference="gemini-2.5-flash",
    )  # fmt: skip
    return _write(folder / "counts.html", vd.audit(labels))


def _rows(folder: Path, name: str, head: str, lines: list[str], **options: Any) -> Path:
    table = folder / f"{name}.csv"
    table.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return _write(folder / f"{name}.html", vd.audit(vd.read(table, **options)))


def _long(folder: Path) -> Path:
    draw = random.Random(1)
    lines = [f"r{i},{g},{draw.choice(CLASSES)}" for i in range(90) for g in ("gold", "a", "b", "c")]
    return _rows(folder, "long", "id,grader,label", lines, scale=CLASSES, gold="gold")


def _votes(folder: Path) -> Path:
    draw = random.Random(2)
    lines = [f"r{i},gold,{draw.choice(CLASSES)}," for i in range(60)]
    lines += [
        f"r{i},{g},{draw.choice(CLASSES)},{v}" for i in range(60) for g in "abc" for v in (1, 2, 3)
    ]
    return _rows(folder, "votes", "id,grader,label,vote", lines, scale=CLASSES, gold="gold")


def _phrasings(folder: Path) -> Path:
    draw = random.Random(3)
    lines = [f"r{i},gold,{draw.choice(CLASSES)}," for i in range(60)]
    lines += [
        f"r{i},judge,{draw.choice(CLASSES)},{w}"
        for i in range(60)
        for w in ("plain", "strict", "kind")
    ]
    return _rows(folder, "phrasings", "id,grader,label,phrasing", lines, scale=CLASSES,
                 gold="gold", phrasing="phrasing")  # fmt: skip


def _steps(folder: Path) -> Path:
    draw = random.Random(4)
    lines = [f"r{i},judge,{draw.choice(CLASSES)},{s}" for i in range(60) for s in ("raw", "final")]
    return _rows(folder, "steps", "id,grader,label,stage", lines, scale=CLASSES, step="stage")


def _pairs(folder: Path) -> Path:
    draw = random.Random(5)
    lines = [
        f"p{i},{g},{draw.choice(('first', 'second', 'tie'))},{order}"
        for i in range(60)
        for g in ("gold", "judge")
        for order in ("ab", "ba")
    ]
    return _rows(folder, "pairs", "id,grader,label,order", lines, response="id+order", gold="gold")


def _by_command(*line: str) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        path = folder / f"{line[0]}-{len(line)}.html"
        done = run_python("-m", "voirdire", *line, "-o", str(path), cwd=folder)
        assert path.exists(), done.stderr
        return path

    return made


MAKERS: dict[str, Callable[[Path], Path]] = {
    "xstest": _xstest,
    "checklist": _bank,
    "counts": _counts,
    "long": _long,
    "votes": _votes,
    "phrasings": _phrasings,
    "decision path": _steps,
    "pairs": _pairs,
    "plan": _by_command(
        *("plan", "--false-accept", "0.1", "--within", "0.03", "--cluster-size", "10"),
        *("--correlation", "0.2"),
    ),
    "reproduce": _by_command("reproduce", "missing-class"),
    "simulate": _by_command("simulate", "sweeps", "--replicates", "20"),
}
SLOW = ("simulate", "reproduce")
KINDS = [pytest.param(k, marks=pytest.mark.slow) if k in SLOW else k for k in MAKERS]


@pytest.fixture(scope="module")
def report(folder: Path) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def of(kind: str) -> Path:
        if kind not in made:
            made[kind] = MAKERS[kind](folder)
        return made[kind]

    return of


# --- every report -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_opens_without_network_and_without_a_word_on_the_console(
    kind: str, report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report(kind))
    assert at.page.locator("h1").count() == 1
    at.page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    at.quiet()


@pytest.mark.parametrize("width", [360, 1600])
@pytest.mark.parametrize("kind", ["xstest", "checklist", "phrasings", "counts"])
def test_the_page_never_scrolls_sideways(
    kind: str, width: int, report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    page = opened(report(kind), viewport={"width": width, "height": 800}).page
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    wide = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0


def test_a_long_file_name_in_the_title_is_broken_on_a_narrow_screen(
    folder: Path, opened: Callable[..., Opened]
) -> None:
    lines = [f"r{i},{g},{CLASSES[i % 3]}" for i in range(30) for g in "ab"]
    made = _rows(folder, "labels_of_two_judges_v2.0522_wide_blanked", "id,grader,label", lines)
    page = opened(made, viewport={"width": 360, "height": 800}).page
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_an_address_that_is_no_text_is_no_error(
    report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report("long"))
    at.page.goto(f"{at.address}#responses=%E0%A4%A")
    at.page.reload()
    assert not at.page.locator(".sheet").is_visible()
    at.quiet()


def test_tables_and_findings_read_without_script(
    report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    page = opened(report("xstest"), java_script_enabled=False).page
    assert page.locator(".finding").count() >= 3
    assert page.get_by_role("row").filter(has_text="gpt4_label").first.is_visible()
    assert page.locator("button").first.is_hidden()
    page.locator("details.evidence summary").first.click()
    assert page.locator("details.evidence table").first.is_visible()


@pytest.mark.skipif(not AXE.exists(), reason=f"axe-core is not at {AXE}; see VOIRDIRE_AXE")
@pytest.mark.parametrize(
    ("kind", "scheme"),
    [
        ("xstest", "light"),
        ("checklist", "dark"),
        *(
            pytest.param(kind, scheme, marks=pytest.mark.slow)
            for kind in (
                "xstest",
                "checklist",
                "counts",
                "votes",
                "phrasings",
                "decision path",
                "plan",
                "reproduce",
            )
            for scheme in ("light", "dark")
            if (kind, scheme) not in (("xstest", "light"), ("checklist", "dark"))
        ),
    ],
)
def test_axe_finds_no_violation(
    kind: str, scheme: str, report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    page = opened(report(kind), color_scheme=scheme, bypass_csp=True).page
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert _violations(page) == []
    if kind in ("counts", "plan", "reproduce"):
        return
    page.locator(CELL).first.click()
    page.locator(".sheet button.id").first.click()
    page.wait_for_timeout(300)  # until the sheet has slid in: half seen text has half its contrast
    assert _violations(page) == []


def _violations(page: Page) -> list[str]:
    found = page.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map("
        "(v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(' ')).join(' | ')}`))"
    )
    return list(found)


# --- the responses behind a number --------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        "checklist",
        "votes",
        "decision path",
        "phrasings",
        pytest.param("xstest", marks=pytest.mark.slow),
        pytest.param("long", marks=pytest.mark.slow),
    ],
)
def test_every_number_that_leads_to_responses_leads_to_as_many_as_it_says(
    kind: str, report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report(kind))
    found = at.page.evaluate(
        """() => [...document.querySelectorAll('[data-s] button.open')].map((button) => {
          button.click();
          const tally = document.querySelector('.sheet .tally');
          const said = [button.textContent, tally.textContent, tally.dataset.total];
          document.querySelector('.sheet .close').click();
          return said;
        })"""
    )
    checked = 0
    for text, said, total in found:
        shown = text.replace(",", "").replace("\N{NO-BREAK SPACE}", " ")
        if whole := re.match(r"(\d+)(?:$| (?:of|/) )", shown):
            assert int(whole[1]) == int(total), (text, said)
            checked += 1
        elif shown.endswith(" %"):
            part, of = (int(n.replace(",", "")) for n in re.findall(r"[\d,]*\d", said)[:2])
            share = 100 * part / of
            near = min(abs(share - float(shown[:-2])), abs(100 - share - float(shown[:-2])))
            assert near < 0.051, (text, said)
            checked += 1
    assert checked > 15
    at.quiet()


def _of_gpt4(at: Opened) -> Any:
    """The cell that says how often GPT-4 gives the middle class."""
    table = at.page.locator(
        "table", has=at.page.locator("caption", has_text="Labels by class")
    ).first
    row = table.locator("tbody tr").filter(has_text="gpt4_label")
    return row.locator("td").nth(1).locator(CELL)


def test_a_click_lists_the_responses_with_the_labels_of_all_graders(
    report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report("xstest"))
    cell = _of_gpt4(at)
    assert cell.inner_text() == "29"
    cell.click()
    said, rows, total = at.tally()
    assert (said, rows, total) == ("29 of 2,239 responses.", 29, 29)
    assert at.page.locator(".sheet tbody tr").count() == 29
    first = at.page.locator(".sheet tbody tr").first
    assert first.locator("td").first.inner_text() == "3_partial_refusal"
    heads = at.page.locator(".sheet thead th").all_inner_texts()
    assert [h.split("\n")[0] for h in heads][:6] == [
        "response", "gpt4_label", "annotation_1", "annotation_2", "strmatch_label", "final_label"
    ]  # fmt: skip
    at.page.keyboard.press("Escape")
    assert not at.page.locator(".sheet").is_visible()
    assert cell.evaluate("(b) => b === document.activeElement")
    at.quiet()


def test_filters_search_and_the_address_reopen_the_same_rows(
    report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report("xstest"))
    _of_gpt4(at).click()
    gold = at.page.locator(".sheet th").filter(has_text="final_label").locator("select")
    gold.select_option(label="3_partial_refusal (19)")
    assert at.tally()[:2] == ("19 of these after filters: 29 of 2,239 responses.", 19)
    at.page.get_by_label("Search ids").fill("llama2orig/")
    at.until(lambda: at.tally()[1] < 19)
    said, rows, _ = at.tally()
    ids = at.page.locator(".sheet button.id").all_inner_texts()
    assert len(ids) == rows > 0
    assert all(i.startswith("llama2orig/") for i in ids)
    address = at.page.evaluate("location.href")
    again = opened(report("xstest"))
    again.page.goto(address)
    again.page.reload()
    assert again.tally()[:2] == (said, rows)
    assert again.page.locator(".sheet button.id").all_inner_texts() == ids
    again.page.get_by_role("button", name="Clear filters").click()
    assert again.tally()[1] == 29


def test_the_sheet_works_by_keyboard(
    report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report("xstest"))
    cell = at.page.locator("td[data-s]", has_text="1,385").first.locator(CELL)
    cell.focus()
    at.page.keyboard.press("Enter")
    first = at.page.locator(".sheet button.id").first
    assert first.evaluate("(b) => b === document.activeElement")
    at.page.keyboard.press("ArrowDown")
    assert (
        at.page.locator(".sheet button.id").nth(1).evaluate("(b) => b === document.activeElement")
    )
    at.page.keyboard.press("Enter")
    assert at.page.locator(".sheet tr.more").count() == 1
    at.page.keyboard.press("PageDown")
    assert at.page.locator(".sheet .place").inner_text() == "51 to 100 of 1,385"
    at.page.keyboard.press("End")
    at.page.keyboard.press("ArrowDown")
    assert at.page.locator(".sheet .place").inner_text() == "101 to 150 of 1,385"
    at.page.keyboard.press("ArrowUp")
    assert at.page.locator(".sheet .place").inner_text() == "51 to 100 of 1,385"
    at.page.keyboard.press("/")
    assert at.page.evaluate("document.activeElement.id") == "sheet-search"
    at.page.keyboard.press("Escape")
    at.page.keyboard.press("Escape")
    assert cell.evaluate("(b) => b === document.activeElement")


def test_a_checklist_shows_every_line_where_judge_and_gold_differ(
    report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report("checklist"))
    worst = at.page.locator("table", has=at.page.locator("caption", has_text="The worst lines"))
    row = worst.locator("tbody tr").filter(has_text="11/e3")
    row.locator(CELL).first.click()
    said, rows, total = at.tally()
    assert (said, rows, total) == ("7 of 14 verdicts, in 7 responses.", 7, 7)
    at.page.locator(".sheet button.id").first.click()
    lines = at.page.locator(".sheet .lines tbody tr")
    assert lines.count() == 10
    third = lines.filter(has_text="11/e3")
    assert third.locator("td").all_inner_texts() == ["no", "yes ≠"]


def test_the_rows_are_saved_as_csv_that_no_spreadsheet_runs(
    folder: Path, opened: Callable[..., Opened]
) -> None:
    lines = [f"=1+{i},{CLASSES[i % 2]},{CLASSES[i % 3]}" for i in range(30)]
    made = _rows(folder, "formulas", "id,gold,-judge", lines, layout="wide", response="id",
                 graders="gold,-judge", gold="gold", scale=CLASSES)  # fmt: skip
    at = opened(made)
    at.page.locator(CELL).first.click()
    with at.page.expect_download() as waited:
        at.page.get_by_role("button", name="Save as CSV").last.click()
    content = Path(waited.value.path()).read_text(encoding="utf-8")
    rows = list(csv.reader(io.StringIO(content)))
    assert rows[0][:3] == ["response", "gold", "'-judge"]
    assert len(rows) == 1 + at.tally()[1]
    assert all(row[0].startswith("'=1+") for row in rows[1:])
    at.quiet()


def test_texts_are_shown_as_they_are_and_never_as_markup(
    folder: Path, opened: Callable[..., Opened]
) -> None:
    text = '<img src=x onerror="document.title=1"><b>bold</b>'
    lines = [f'r{i},{CLASSES[i % 2]},{CLASSES[i % 3]},"{text.replace(chr(34), chr(34) * 2)} {i}\nsecond \u202eline"'
             for i in range(30)]  # fmt: skip
    table = folder / "texts.csv"
    table.write_text("\n".join(["id,gold,judge,reply", *lines]) + "\n", encoding="utf-8")
    labels = vd.read(table, layout="wide", response="id", graders="gold,judge", gold="gold",
                     scale=CLASSES, text="reply")  # fmt: skip
    at = opened(_write(folder / "texts.html", vd.audit(labels)))
    at.page.locator(CELL).first.click()
    at.page.locator(".sheet button.id").first.click()
    words = at.page.locator(".sheet .words").first.inner_text()
    assert words.startswith(text)
    assert "\nsecond ⟨U+202E⟩line" in words
    assert at.page.locator("img, .sheet b").count() == 0
    at.page.get_by_label("Search ids and texts").fill(" 17")
    at.until(lambda: at.tally()[1] == 1)
    at.quiet()


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not here")
def test_hostile_names_open_and_lead_to_their_responses(
    folder: Path, opened: Callable[..., Opened]
) -> None:
    case = json.loads((SHARED / "cases/inputs/hostile-names.json").read_text(encoding="utf-8"))
    table = folder / "hostile.jsonl"
    with table.open("w", encoding="utf-8") as file:
        for i in range(60):
            for j, grader in enumerate(case["graders"]):
                text = case["responses"][i % len(case["responses"])]
                row = {"response": f"{text}-{i}", "grader": grader, "text": text,
                       "label": CLASSES[(i + j * (i % 5 == 0)) % 3]}  # fmt: skip
                file.write(json.dumps(row) + "\n")
    labels = vd.read(table, response="response", grader="grader", label="label", scale=CLASSES,
                     text="text")  # fmt: skip
    at = opened(_write(folder / "hostile.html", vd.audit(labels)))
    buttons = at.page.locator("td[data-s] button.open")
    buttons.first.click()
    assert at.tally()[1] == int(at.tally()[2]) > 0
    at.page.locator(".sheet button.id").first.click()
    address = at.page.evaluate("location.href")
    rows = at.tally()
    at.page.goto(address)
    at.page.reload()
    assert at.tally() == rows
    assert at.page.locator("img, b:not(.warning b), .sheet script").count() == 0
    at.quiet()


# --- a file beside the page ---------------------------------------------------------------------


def test_a_page_whose_responses_are_beside_it_opens_their_file_and_refuses_another(
    folder: Path, opened: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MOST_BYTES", 1000)
    made = audit_of(write_table(folder / "beside.csv", 300, 4), 4)
    other = audit_of(write_table(folder / "other.csv", 300, 4, seed=2), 4)
    made.write(folder / "beside.html")
    other.write(folder / "other.html")
    at = opened(folder / "beside.html")
    cell = at.page.locator(CELL).first
    number = int(cell.inner_text().replace(",", "")) if cell.inner_text().isdigit() else None
    cell.click()
    assert "beside.responses.json" in at.page.locator(".sheet .ask").inner_text()
    choose = at.page.get_by_label("Open the responses")
    choose.set_input_files(folder / "other.responses.json")
    at.page.locator(".sheet .problem", has_text="belongs to another audit").wait_for()
    choose.set_input_files(folder / "beside.csv")
    at.page.locator(".sheet .problem", has_text="is no JSON file").wait_for()
    choose.set_input_files(folder / "beside.responses.json")
    at.page.locator(".sheet button.id").first.wait_for()
    assert at.tally()[1] > 0
    assert number is None or at.tally()[2] == number
    at.quiet()


@pytest.mark.slow
def test_a_hundred_thousand_responses_open_filter_and_turn_without_freezing(
    folder: Path, opened: Callable[..., Opened]
) -> None:
    made = audit_of(write_table(folder / "huge.csv", 100_000, 8), 8)
    written = made.write(folder / "huge.html")
    assert [p.name for p in written] == ["huge.responses.json", "huge.html"]
    at = opened(folder / "huge.html")
    table = at.page.locator(
        "table", has=at.page.locator("caption", has_text="Labels by class")
    ).first
    cell = table.locator(CELL).first
    cell.click()
    at.page.get_by_label("Open the responses").set_input_files(folder / "huge.responses.json")
    at.page.locator(".sheet button.id").first.wait_for()
    number = int(cell.inner_text().replace(",", ""))
    assert number > 40_000
    assert at.tally()[1:] == (number, number)
    # As many rows are drawn as a page holds, however many there are.
    assert at.page.locator(".sheet tbody tr").count() == 50
    at.page.get_by_label("Search ids").fill("prompt-00017")
    at.until(lambda: at.tally()[1] < 10)
    at.page.get_by_role("button", name="Clear filters").click()
    at.page.keyboard.press("Escape")
    at.quiet()


# --- copying, sorting, files --------------------------------------------------------------------


def _holds(at: Opened, wanted: str) -> bool:
    return bool(at.page.evaluate("navigator.clipboard.readText()") == wanted)


@pytest.mark.parametrize("clipboard", [True, False])
def test_a_copy_is_exactly_what_stands_there(
    clipboard: bool, report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report("xstest"), permissions=["clipboard-read", "clipboard-write"])
    if not clipboard:
        at.page.evaluate(
            "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }"
        )
    buttons = at.page.locator("button[data-copies]")
    forms = set()
    for i in range(buttons.count()):
        button = buttons.nth(i)
        forms.add(button.inner_text())
        button.click()
        wanted = at.page.evaluate(
            "(id) => document.getElementById(id).textContent", button.get_attribute("data-copies")
        )
        at.until(partial(_holds, at, wanted))
        assert wanted.strip()
    assert {"Copy plain", "Copy Markdown", "Copy LaTeX"} <= forms
    at.quiet()


def test_the_forms_of_a_text_are_those_of_their_formats(
    report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report("xstest"))
    texts = at.page.locator(".paste", has_text="Reporting minimum").first.locator("pre")
    plain, markdown, latex = (
        t.replace("\r", "") for t in texts.evaluate_all("(all) => all.map((p) => p.textContent)")
    )
    assert "Labels of gpt4_label: 2_full_refusal: 825" in plain
    assert "- Labels of `gpt4_label`: `2_full_refusal`: 825" in markdown
    assert latex.startswith(r"\begin{itemize}")
    assert r"\texttt{gpt4\_label}" in latex


def test_a_column_sorts_up_and_down_and_back_by_mouse_and_by_keyboard(
    report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report("xstest"))
    table = at.page.locator("table.sides")
    head = table.locator("thead th").nth(2)
    names = table.locator("tbody th bdi")
    given = names.all_inner_texts()
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert names.first.inner_text() == "gpt4_label"
    at.page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert names.first.inner_text() == "annotation_2"
    at.page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") is None
    assert names.all_inner_texts() == given


def test_the_data_of_a_figure_is_saved_as_csv(
    report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report("xstest"))
    data = at.page.locator("details.data").first
    data.locator("summary").click()
    with at.page.expect_download() as waited:
        data.get_by_role("button", name="Save as CSV").click()
    assert waited.value.suggested_filename == "class_shares.csv"
    rows = list(csv.reader(io.StringIO(Path(waited.value.path()).read_text(encoding="utf-8"))))
    assert len(rows) == 1 + data.locator("tbody tr").count()
    assert any(row[0] == "gpt4_label" and "29" in row for row in rows)
    at.quiet()


def test_a_long_table_is_folded_and_whole_on_paper(
    report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report("xstest"))
    title = at.page.locator("table.folded caption").first.inner_text()
    folded = at.page.locator("table", has=at.page.locator("caption", has_text=title)).first
    assert folded.locator("tbody tr").count() > 16
    hidden = folded.locator("tbody tr").nth(12)
    assert hidden.is_hidden()
    at.page.emulate_media(media="print")
    assert hidden.is_visible()
    assert at.page.locator(".unfold").first.is_hidden()
    at.page.emulate_media(media="screen")
    at.page.locator(".unfold").first.click()
    assert hidden.is_visible()


def test_a_link_to_a_finding_opens_its_evidence(
    report: Callable[[str], Path], opened: Callable[..., Opened]
) -> None:
    at = opened(report("xstest"))
    at.page.locator(".brief a.more").first.click()
    at.page.locator("#finding-1 details.evidence table").wait_for(timeout=5000)


def test_a_wide_page_of_a_panel_of_eight_says_what_is_in_the_hash_only_when_asked(
    folder: Path, opened: Callable[..., Opened]
) -> None:
    made = audit_of(write_table(folder / "eight.csv", 200, 8), 8)
    at = opened(_write(folder / "eight.html", made))
    at.page.goto(f"{at.address}#responses=no_such_statistic/x")
    at.page.reload()
    assert not at.page.locator(".sheet").is_visible()
    at.page.goto(f"{at.address}#responses=solo/g6//compliance")
    at.page.reload()
    said, rows, total = at.tally()
    assert rows == total > 0
    assert "of" in said
    assert WIDE["gold"] == "gold"
