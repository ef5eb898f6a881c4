"""Every label file at hand is looked at, audited and converted, alone and together, as documented."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import voirdire as vd
from tests.conftest import run_python
from voirdire import looking, plugins
from voirdire.errors import InputError, VoirdireError
from voirdire.formats.base import Format
from voirdire.inputs import reader_of, sources
from voirdire.options import Options
from voirdire.wording import plain

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the real files (../shared/data) are not beside this checkout"
)

XSTEST_CLASSES = "2_full_refusal,3_partial_refusal,1_full_compliance"
STABILITY: dict[str, Any] = {"response": "model+prompt_id", "vote": "temperature+seed"}
# What a user has to say of tables whose columns have names of their own: docs/reading-tables.md.
OPTIONS: dict[str, dict[str, Any]] = {
    "alpaca_eval_annotations/*.csv": {
        **{"layout": "long", "response": "item", "grader": "annotator", "label": "preference"},
    },
    "cje_arena_probe/*": {
        **{"layout": "wide", "response": "prompt_id", "graders": "judge_score,oracle_label"},
    },
    "jailbreakbench_judge_comparison/*": {
        **{"layout": "wide", "response": "Index", "cluster": "goal_id", "gold": "human_majority"},
        "graders": "harmbench_cf,gpt4_cf,llamaguard2_cf,llama3_cf",
    },
    "refusal_direction_two_classifiers/*.csv": {
        **{"layout": "wide", "response": "target_model+run+item", "cluster": "item"},
        "graders": "is_jailbreak_substring_matching,is_jailbreak_llamaguard2",
    },
    "refusalbench_council_aggregate/pilot*": {
        **{"response": "prompt_id", "grader": "judge_id", "label": "compliance"},
    },
    "safety_refusal_stability/mistral*": {"response": "prompt_id"},
    "safety_refusal_stability/*": STABILITY,
    "wildbench_scores/sample15*": {"response": "session_id"},
    "wildbench_scores/*.csv": {
        **{"layout": "wide", "response": "model+session_id", "cluster": "session_id"},
        "graders": "gpt-4-turbo-2024-04-09,gpt-4o-2024-05-13",
    },
    "xstest/*streval.csv": {
        **{"layout": "wide", "response": "id", "gold": "final_label", "scale": XSTEST_CLASSES},
        "graders": "annotation_1,annotation_2,strmatch_label",
    },
    "xstest/xstest_wide*": {
        **{"layout": "wide", "response": "model+id", "cluster": "id", "gold": "final_label"},
        **{"scale": XSTEST_CLASSES, "failed": {"*": "unparsed"}},
        "graders": "annotation_1,annotation_2,gpt4_label,strmatch_label",
    },
    "xstest/*": {
        **{"layout": "wide", "response": "id", "gold": "final_label", "scale": XSTEST_CLASSES},
        **{"graders": "annotation_1,annotation_2,gpt4_label", "failed": {"*": "unparsed"}},
    },
}
# What is no table of labels, and the words in which it is turned down.
TURNED_DOWN = {
    "fmt_garak/garak.hitlog.jsonl": "hit log",
    "fmt_lm_eval/results_*.json": "samples_",
    "harmbench_human_consensus/*": "pooled",
    "judge-item-bank/questions.json": "not clear which columns hold labels",
    "judge-item-bank/sweep_grid.json": "none of them is a list of objects",
    "refusal_direction_two_classifiers/original_layout*": "not clear which columns hold labels",
    "refusalbench_council_aggregate/adjudicated*": "pooled",
}


def _matching(name: str, table: dict[str, Any]) -> Any:
    return next((v for pattern, v in table.items() if Path(name).match(pattern)), None)


FILES = (
    sorted(
        p.relative_to(DATA).as_posix()
        for p in DATA.rglob("*")
        if p.is_file() and p.suffix not in (".md", ".yaml")
    )
    if DATA.is_dir()
    else []
)
REFUSED = [n for n in FILES if _matching(n, TURNED_DOWN) is not None]
READ = [n for n in FILES if n not in REFUSED]
LOGS = [n for n in READ if n.startswith("fmt_")]
FOLDERS = sorted({n.split("/")[0] for n in LOGS})


def read(*names: str, **options: Any) -> vd.Labels:
    return vd.read(*(DATA / n for n in names), **options)


def options_of(name: str) -> dict[str, Any]:
    return dict(_matching(name, OPTIONS) or {})


def text_of(document: Any) -> str:
    (as_text,) = (f for f in plugins.load("formats", Format) if ".txt" in f.suffixes)
    return as_text.render(document).decode()


def looked(*names: str, **options: Any) -> str:
    return text_of(looking.document([DATA / n for n in names], Options.of(**options)))


def notices(labels: vd.Labels) -> str:
    return "\n".join(plain(n) for n in labels.notices)


# --- one by one ---------------------------------------------------------------------------------


def test_every_log_is_read_without_options() -> None:
    assert [n for n in LOGS if options_of(n)] == []


@pytest.mark.parametrize("name", READ)
def test_look_says_what_is_in_it_what_an_audit_gives_and_the_next_command(name: str) -> None:
    text = looked(name, **options_of(name))
    assert "it can be audited as it is" in text
    assert "WHAT AN AUDIT WOULD GIVE" in text
    assert f"voirdire audit {DATA / name}" in text.replace("'", "").replace("\n  ", " ")
    labels = read(name, **options_of(name))
    for grader in labels.grader_names[:20]:
        # A long name is folded in a narrow column, so its first word stands for it.
        assert grader.split()[0][:12] in text
    if name in LOGS:
        source = sources([DATA / name])[0]
        claim = reader_of(source).sniff(source)
        assert claim is not None
        assert claim.sure
        assert claim.version in text


@pytest.mark.parametrize("name", [n for n in LOGS if "inspect" not in n])
def test_the_log_is_audited(name: str) -> None:
    audit = vd.audit(read(name))
    counts = audit.results.filter(pl.col("statistic") == "outcome_count")
    assert set(counts["grader"]) == set(audit.labels.grader_names)
    assert counts["value"].sum() == _calls(audit.labels)


def _calls(labels: vd.Labels) -> int:
    """Calls: of a checklist one a response, else one a row."""
    if labels.kind != "checklist":
        return len(labels.frame)
    calls = labels.frame.select("response", pl.col("grader").cast(pl.String), "vote")
    return len(calls.unique())


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in READ if n not in LOGS or "inspect" in n])
def test_the_table_is_audited(name: str) -> None:
    audit = vd.audit(read(name, **options_of(name)))
    assert audit.results.height
    assert audit.findings


@pytest.mark.parametrize("name", REFUSED)
def test_what_holds_no_labels_is_turned_down_by_name(name: str) -> None:
    with pytest.raises(VoirdireError) as caught:
        read(name)
    said = " ".join(str(caught.value).split())
    assert _matching(name, TURNED_DOWN) in said
    assert Path(name).name in said


@pytest.mark.parametrize("name", READ)
def test_what_is_converted_reads_back_to_the_identical_table(name: str, tmp_path: Path) -> None:
    labels = read(name, **options_of(name))
    labels.write(tmp_path / "labels.parquet")
    _same(vd.read(tmp_path / "labels.parquet"), labels)


def _same(back: vd.Labels, labels: vd.Labels) -> None:
    assert_frame_equal(back.frame, labels.frame)
    for field in ("kind", "scale", "off_scale", "ordered", "checklist", "clusters_declared"):
        assert getattr(back, field) == getattr(labels, field), field
    assert back.tags == labels.tags
    assert [(g.name, g.person, g.derived_from) for g in back.graders] == [
        (g.name, g.person, g.derived_from) for g in labels.graders
    ]


def test_no_text_of_a_prompt_or_response_travels() -> None:
    """Tags are short: models, categories, turns, scores, reasons."""
    for name in LOGS:
        labels = read(name)
        for tag in labels.tags:
            longest = max(map(len, labels.frame[tag.name].drop_nulls().to_list()), default=0)
            assert longest <= 250, (name, tag.name)


# --- folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_of_one_tool_is_read_and_what_was_left_out_is_named(folder: str) -> None:
    labels = vd.read(DATA / folder)
    assert labels.frame.height
    assert "README.md" in notices(labels)
    text = text_of(looking.document([DATA / folder], Options()))
    assert "NEXT" in text
    assert "voirdire audit" in text


MIXED = (
    "fmt_deepeval/test_run_20261130_011931.json",
    "fmt_garak/garak.report.jsonl",
    "fmt_label_studio/JSON.json",
    "fmt_inspect_ai/with-errors.eval",
    "fmt_jailbreakbench_artifact/PAIR_black_box_vicuna-13b-v1.5.json",
)


def _folder(tmp_path: Path, names: Sequence[str]) -> Path:
    for name in names:
        target = tmp_path / "logs" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((DATA / name).read_bytes())
    return tmp_path / "logs"


def test_a_folder_of_mixed_formats_is_read_in_one_run(tmp_path: Path) -> None:
    folder = _folder(tmp_path, (*MIXED, "fmt_garak/garak.hitlog.jsonl"))
    (folder / "notes.txt").write_text("nothing of use", encoding="utf-8")
    (folder / "torn.json").write_text('{"version": 2, "eval": {"ta', encoding="utf-8")
    labels = vd.read(folder)
    alone = [read(n) for n in MIXED]
    assert set(labels.grader_names) == {g for one in alone for g in one.grader_names}
    assert len(labels.frame) == sum(len(one.frame) for one in alone)
    said = notices(labels)
    for left in ("garak.hitlog.jsonl", "notes.txt", "torn.json"):
        assert left in said
    # Which file each row came from stays known.
    assert labels.frame["file"].n_unique() == len(MIXED)


def test_a_folder_in_which_nothing_can_be_read_is_an_input_error(tmp_path: Path) -> None:
    folder = _folder(tmp_path, ("fmt_garak/garak.hitlog.jsonl",))
    with pytest.raises(InputError, match="hit log"):
        vd.read(folder)


def test_strict_makes_what_was_left_out_an_error(tmp_path: Path) -> None:
    folder = _folder(tmp_path, (MIXED[0], "fmt_garak/garak.hitlog.jsonl"))
    with pytest.raises(InputError, match=r"garak\.hitlog\.jsonl"):
        vd.read(folder, strict=True)


def test_a_cut_log_is_read_as_far_as_it_goes_and_the_rest_is_named(tmp_path: Path) -> None:
    for name in ("fmt_garak/garak.report.jsonl", "fmt_inspect_ai/three-graders.eval"):
        content = (DATA / name).read_bytes()
        cut = tmp_path / Path(name).name
        cut.write_bytes(content[: int(0.8 * len(content))])
        labels = vd.read(cut)
        assert 0 < len(labels.frame) < len(read(name).frame)
        assert cut.name in notices(labels)
        with pytest.raises(InputError):
            vd.read(cut, strict=True)


# --- the command line ---------------------------------------------------------------------------


def test_the_commands_work_on_a_folder_of_logs(tmp_path: Path) -> None:
    folder = _folder(tmp_path, MIXED[:3])
    look = run_python("-m", "voirdire", "look", folder.name, cwd=tmp_path)
    assert look.returncode == 0, look.stderr
    assert "garak report, 0.17.1" in look.stdout
    assert "voirdire audit logs" in look.stdout or "voirdire audit" in look.stdout
    done = run_python(
        "-m", "voirdire", "convert", folder.name, "-o", "labels.parquet", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    _same(vd.read(tmp_path / "labels.parquet"), vd.read(folder))
