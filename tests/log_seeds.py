"""One small log of each format that a reader claims, made here: what the fuzz tests start from."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from typing import Any

from voirdire.readers._store_schema import APPLICATION_ID, SCHEMA, VERSION, slot


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _lines(*values: Any) -> bytes:
    return b"".join(_json(v) + b"\n" for v in values)


def zipped(entries: dict[str, bytes]) -> bytes:
    """A zip archive of entries, deflated, with a fixed date."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content)
    return out.getvalue()


# --- Inspect AI ---------------------------------------------------------------------------------

_SPEC = {
    "eval_id": "e1",
    "run_id": "r1",
    "created": "2026-01-01T00:00:00+00:00",
    "task": "mini",
    "task_id": "t1",
    "task_version": 0,
    "dataset": {"name": "mini", "samples": 2, "sample_ids": ["a", "b"]},
    "model": "mock/target",
    "config": {"epochs": 2},
    "scorers": [
        {"name": "model_graded_qa", "options": {"model": "mock/grader"}, "metrics": []},
        {"name": "checks", "options": {}},
    ],
}


def _sample(id: str, epoch: int, value: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "epoch": epoch,
        "input": "a question",
        "target": "an answer",
        "messages": [{"role": "assistant", "content": "a reply"}],
        "output": {"model": "mock/target", "choices": [], "completion": "a reply"},
        "scores": {
            "model_graded_qa": {
                "value": value,
                "answer": "a reply",
                "explanation": "GRADE: C",
                "metadata": {"grading": [], "panel": {"votes": [{"model": "m", "value": "C"}]}},
            },
            "checks": {"value": {"polite": 1, "short": None}},
        },
        "metadata": {},
        "store": {},
        "events": [{"event": "score", "score": {"value": "C"}, "intermediate": False}],
        "model_usage": {},
        **more,
    }


_SAMPLES = [
    _sample("a", 1, "C"),
    _sample("a", 2, "I"),
    _sample("b", 1, "N"),
    {k: v for k, v in _sample("b", 2, "C").items() if k != "scores"}
    | {"error": {"message": "broken", "traceback": "", "traceback_ansi": ""}},
]
_HEADER = {
    "version": 2,
    "status": "success",
    "eval": _SPEC,
    "plan": {"name": "plan", "steps": []},
    "results": {
        "total_samples": 2,
        "completed_samples": 2,
        "scores": [{"name": "model_graded_qa", "scorer": "model_graded_qa", "metrics": {}}],
    },
    "stats": {"started_at": "", "completed_at": "", "model_usage": {}},
}
_EVAL = {
    "_journal/start.json": _json({"version": 2, "eval": _SPEC, "plan": {}}),
    **{f"samples/{s['id']}_epoch_{s['epoch']}.json": _json(s) for s in _SAMPLES},
    "summaries.json": _json([{"id": s["id"], "epoch": s["epoch"]} for s in _SAMPLES]),
    "reductions.json": _json([{"scorer": "model_graded_qa", "samples": []}]),
    "header.json": _json(_HEADER),
}

# --- promptfoo ----------------------------------------------------------------------------------

_RESULT = {
    "id": "1",
    "testIdx": 0,
    "promptIdx": 0,
    "promptId": "p",
    "vars": {"question": "q1"},
    "prompt": {"raw": "q1", "label": "{{question}}"},
    "provider": {"id": "mock:target", "label": "target"},
    "response": {"output": "a reply"},
    "success": False,
    "score": 0.5,
    "failureReason": 1,
    "error": "not met",
    "namedScores": {"helpful": 1},
    "testCase": {"vars": {"question": "q1"}, "assert": []},
    "gradingResult": {
        "pass": False,
        "score": 0.5,
        "reason": "not met",
        "componentResults": [
            {
                "pass": True,
                "score": 1,
                "reason": "met",
                "assertion": {
                    "type": "llm-rubric",
                    "metric": "helpful",
                    "value": "is it helpful?",
                    "provider": {"id": "mock:grader", "config": {"name": "g"}},
                },
            },
            {
                "pass": False,
                "score": 0,
                "reason": "no JSON",
                "metadata": {"graderError": True},
                "assertion": {"type": "llm-rubric", "value": "is it short?"},
            },
            {
                "pass": True,
                "score": 1,
                "reason": "",
                "assertion": {"type": "contains", "value": "a"},
            },
        ],
    },
}
_PROMPTFOO_CSV = (
    "question,[target] {{question}},Status,Score,Named Scores,Metric: helpful,Grader Reason,Comment,"
    "[other] {{question}},Status,Score,Named Scores,Metric: helpful,Grader Reason,Comment\n"
    'q1,a reply,FAIL,0.50,"{""helpful"":1}",1.00,not met,,b,PASS,1.00,"{""helpful"":1}",1.00,met,\n'
    'q2,c,ERROR,0.00,{},,,,d,FAIL,0.00,"{""helpful"":0}",0.00,not met,\n'
)

# --- others -------------------------------------------------------------------------------------

_METRIC = {
    "name": "Correctness",
    "threshold": 0.5,
    "success": False,
    "score": 0.3,
    "reason": "not met",
    "strictMode": False,
    "evaluationModel": "grader-a",
}
_DEEPEVAL = {
    "testCases": [
        {
            "name": "q1",
            "input": "a question",
            "actualOutput": "a reply",
            "success": False,
            "metricsData": [_METRIC, {"name": "Bias", "success": False, "error": "no JSON"}],
            "order": 0,
        }
    ],
    "conversationalTestCases": [],
    "metricsScores": [],
    "testPassed": 0,
    "testFailed": 1,
}
_DEEPEVAL_DUMP = {
    "test_results": [
        {
            "name": "q1",
            "success": False,
            "metrics_data": [
                {"name": "Correctness", "score": 0.3, "success": False, "evaluation_model": "g"},
                {"name": "Bias", "score": None, "success": False, "error": "no JSON"},
            ],
            "conversational": False,
            "input": "a question",
            "actual_output": "a reply",
            "index": 0,
        }
    ],
    "confident_link": None,
}
_ASSESSMENT = {
    "assessment_id": "a1",
    "assessment_name": "judge_a",
    "trace_id": "t1",
    "source": {"source_type": "LLM_JUDGE", "source_id": "mock/judge"},
    "feedback": {"value": "yes"},
    "metadata": {},
    "valid": True,
}
_EXPECTED = {
    "assessment_id": "a2",
    "assessment_name": "expected",
    "source": {"source_type": "HUMAN", "source_id": "kim"},
    "expectation": {"value": "yes"},
}
_FAILED = {
    "assessment_id": "a3",
    "assessment_name": "judge_b",
    "source": {"source_type": "LLM_JUDGE", "source_id": "mock/b"},
    "feedback": {"value": None, "error": {"error_code": "E", "error_message": "no JSON"}},
}
_TRACE = {
    "trace_id": "t1",
    "trace": "{}",
    "state": "OK",
    "request": {"question": "q"},
    "response": "r",
    "trace_metadata": {},
    "tags": {},
    "spans": [],
    "assessments": [_ASSESSMENT, _EXPECTED, _FAILED],
}
_TURN = {"role": "user", "content": {"text": "hello", "lang": "en"}}
_ATTEMPT = {
    "entry_type": "attempt",
    "uuid": "u1",
    "seq": 0,
    "status": 2,
    "probe_classname": "test.Test",
    "probe_params": {},
    "targets": [],
    "prompt": {"turns": [_TURN]},
    "outputs": [{"text": "a"}, {"text": "b"}, None],
    "detector_results": {"always.Pass": [0.0, 1.0, None], "always.Random": [0.4, 0.6, None]},
    "notes": {},
    "goal": "test",
    "conversations": [{"turns": [_TURN]}],
}
_SPAN = {"text": "a reply", "lang": "en"}
_SAMPLE = {
    "doc_id": 0,
    "doc": {"id": "q1", "question": "a question"},
    "target": "an answer",
    "arguments": {"gen_args_0": {"arg_0": "a question", "arg_1": {"until": ["\n"]}}},
    "resps": [["a", "b"]],
    "filtered_resps": ["a"],
    "filter": "first",
    "metrics": ["exact_match"],
    "doc_hash": "d",
    "prompt_hash": "p",
    "target_hash": "t",
    "exact_match": 0.0,
}
_RUN = {"run_id": "r1", "created_by": "", "created_at": "2026-01-01 00:00:00+00:00"}
_OPENAI = {
    "completion_fns": ["mock-a", "mock-grader"],
    "eval_name": "mini.dev.v0",
    "base_eval": "mini",
    "split": "dev",
    "run_config": {
        "completion_fns": ["mock-a", "mock-grader"],
        "eval_spec": {
            "cls": "evals.elsuite.modelgraded.classify:ModelBasedClassify",
            "args": {"eval_type": "cot_classify", "modelgraded_spec": "fact"},
        },
    },
    **_RUN,
}
_PAIR = {
    "question_id": 81,
    "model_1": "x",
    "model_2": "y",
    "g1_winner": "model_1",
    "g2_winner": "error",
    "judge": ["gpt-4", "pair-v2"],
    "g1_user_prompt": "a",
    "g1_judgment": "[[A]]",
    "g2_user_prompt": "b",
    "g2_judgment": "none",
    "turn": 1,
    "tstamp": 1.5,
}
_SINGLE = {
    "question_id": 81,
    "model": "x",
    "judge": ["gpt-4", "single-v1"],
    "user_prompt": "a",
    "judgment": "[[7]]",
    "score": 7,
    "turn": 1,
    "tstamp": 1.5,
}
_ALPACA = {
    "instruction": "a question",
    "output_1": "a",
    "generator_1": "x",
    "dataset": "mini",
    "output_2": "b",
    "generator_2": "y",
    "annotator": "weighted_mock",
    "preference": 1.25,
    "raw_completion": {"finish_reason": "stop"},
}
_JAILBREAK = {
    "index": 0,
    "goal": "[removed]",
    "behavior": "Defamation",
    "category": "Harassment",
    "prompt": "[removed]",
    "response": "[removed]",
    "number_of_queries": 6,
    "queries_to_jailbreak": 4,
    "jailbroken": True,
    "jailbroken_llama_guard1": False,
}
_RUBRIC = {
    "score": 0.5,
    "metrics": {"overall_score": 0.5, "axis:accuracy": 0.5},
    "htmls": [],
    "convos": [],
    "metadata": {
        "example_level_metadata": [
            {
                "score": 0.5,
                "rubric_items": [
                    {
                        "criterion": "is short",
                        "points": 5,
                        "tags": ["axis:x"],
                        "criteria_met": True,
                    },
                    {"criterion": "is rude", "points": -6, "tags": [], "criteria_met": False},
                ],
                "completion": [{"role": "assistant", "content": "a"}],
                "prompt_id": "p1",
                "completion_id": "c1",
            }
        ]
    },
}
_CHOICE = {"from_name": "refusal", "type": "choices", "value": {"choices": ["no"]}}
_RATING = {"from_name": "quality", "type": "rating", "value": {"rating": 3}}
_TASK = {
    "id": 1,
    "annotations": [
        {
            "id": 1,
            "completed_by": 1,
            "result": [_CHOICE, _RATING],
            "was_cancelled": False,
            "ground_truth": True,
        },
        {
            "id": 2,
            "completed_by": {"id": 2, "email": "kim@example.org"},
            "result": [_CHOICE],
            "was_cancelled": True,
            "ground_truth": False,
        },
    ],
    "predictions": [{"id": 3, "model_version": "judge", "result": [_CHOICE]}, 4],
    "data": {"prompt_id": "p", "response": "a"},
    "inner_id": 1,
}
_SHORT = {
    "prompt_id": "p",
    "id": 1,
    "refusal": "no",
    "quality": [{"rating": 3}],
    "annotator": 1,
    "annotation_id": 1,
    "created_at": "2026-01-01",
    "updated_at": "2026-01-01",
    "lead_time": 1.5,
}
_SHORT_CSV = (
    '"annotation_id","annotator","created_at","id","lead_time","quality","refusal","updated_at"\n'
    '1,"1","2026-01-01",1,1.5,"[{""rating"":3}]","no","2026-01-01"\n'
    '2,"2","2026-01-01",1,1.5,"","yes","2026-01-01"\n'
)
_RATED = {
    "instances": [
        {
            "id": 1,
            "text": "",
            "annotations": {
                "safety": {"individual_human_scores": ["Yes", "No"], "majority_human": "Yes"}
            },
        }
    ]
}


def _store() -> bytes:
    """A grading store: one response labelled, one whose call failed, one not asked yet."""
    db = sqlite3.connect(":memory:")
    db.executescript(SCHEMA)
    card = {"name": "r", "digest": "d", "kind": "labels", "scale": ["no", "yes"], "off_scale": []}
    db.execute(
        "INSERT INTO runs (id, study, rubric, facts, owner, started) VALUES (1, '', ?, '{}', '', '')",
        (json.dumps(card),),
    )
    db.execute("INSERT INTO graders VALUES (1, 'g', ?)", ('{"model": "m", "votes": 1}',))
    db.execute("INSERT INTO phrasings VALUES (1, 'plain')")
    call = (
        "INSERT INTO calls (key, item, response, grader, phrasing, vote, status, message, run, started, "
        "ended) VALUES (?, 'q', x'00', 'g', 'plain', 1, ?, ?, 1, '', '')"
    )
    for i, status in enumerate(["done", "timeout", ""], start=1):
        key = bytes([i]) * 32
        db.execute(
            "INSERT INTO items VALUES (?, ?, x'00', 'c', '', '{\"tag\": \"t\"}')", (i, f"q{i}")
        )
        db.execute("INSERT INTO slots VALUES (?, ?, 1)", (slot(i, 1, 1, 1), key))
        if status:
            db.execute(call, (key, status, "late"))
        if status == "done":
            db.execute("INSERT INTO readings VALUES (?, '', 'yes', 'label', '', '1')", (key,))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.commit()
    content = db.serialize()
    db.close()
    return content


SEEDS: dict[str, bytes] = {
    "store.db": _store(),
    "inspect.json": _json({**_HEADER, "samples": _SAMPLES, "reductions": []}),
    "inspect.eval": zipped(_EVAL),
    "promptfoo.json": _json(
        {"evalId": "e", "results": {"version": 3, "prompts": [], "results": [_RESULT] * 2}}
    ),
    "promptfoo.jsonl": _lines(_RESULT, {**_RESULT, "failureReason": 2, "gradingResult": None}),
    "promptfoo.csv": _PROMPTFOO_CSV.encode(),
    "deepeval.json": _json(_DEEPEVAL),
    "deepeval_dump.json": _json(_DEEPEVAL_DUMP),
    "mlflow_traces.json": _json([_TRACE]),
    "mlflow_table.json": _json(
        {
            "columns": ["inputs", "outputs", "toxicity/v1/score", "toxicity/v1/justification"],
            "data": [["q", "r", 3, "why"], ["s", "t", None, None]],
        }
    ),
    "samples_mini_2026-01-01T00-00-00.jsonl": _lines(_SAMPLE, {**_SAMPLE, "filter": "last"}),
    "garak.report.jsonl": _lines(
        {"entry_type": "start_run setup", "_config.version": "0.17.1", "plugins.target_name": "x"},
        {"entry_type": "init", "garak_version": "0.17.1", "run": "r"},
        {**_ATTEMPT, "status": 1},
        _ATTEMPT,
        {"entry_type": "eval", "probe": "test.Test", "detector": "always.Pass", "passed": 1},
    ),
    "openai_evals.jsonl": _lines(
        {"spec": _OPENAI},
        {
            **_RUN,
            "event_id": 1,
            "sample_id": "mini.1",
            "type": "metrics",
            "data": {"choice": "__invalid__", "score": 0},
        },
        {
            **_RUN,
            "event_id": 0,
            "sample_id": "mini.0",
            "type": "sampling",
            "data": {"sampled": "a"},
        },
        {
            **_RUN,
            "event_id": 2,
            "sample_id": "mini.0",
            "type": "match",
            "data": {"correct": True, "expected": "a", "picked": "a", "sampled": "a"},
        },
        {"final_report": {"accuracy": 1.0}, "run_id": "r1"},
    ),
    "judge_pair.jsonl": _lines(_PAIR, {**_PAIR, "turn": 2}),
    "judge_single.jsonl": _lines(_SINGLE, {**_SINGLE, "score": -1, "turn": 2}),
    "grader_allresults.json": _json(_RUBRIC),
    "label_studio.json": _json([_TASK, {**_TASK, "id": 2}]),
    "label_studio_min.json": _json([_SHORT, {**_SHORT, "annotator": 2, "annotation_id": 2}]),
    "label_studio.csv": _SHORT_CSV.encode(),
    "label_studio.tsv": _SHORT_CSV.replace(",", "\t").encode(),
    "jailbreakbench.json": _json(
        {
            "parameters": {"method": "PAIR", "model": "x", "attack_type": "black_box"},
            "jailbreaks": [_JAILBREAK, {**_JAILBREAK, "index": 1, "response": None}],
        }
    ),
    "annotations.json": _json([_ALPACA, {**_ALPACA, "preference": None}]),
    "judge_bench.json": _json(_RATED),
    "long.csv": b"response,grader,label,outcome\nr1,a,yes,\nr1,b,no,label\nr2,a,,unparsed: cut\n",
    "wide.json": _json([{"id": 1, "judge_e1": 1, "judge_e2": 0}, {"id": 2, "judge_e1": None}]),
    "long.jsonl": _lines(
        {"id": 1, "grader": "a", "label": 1}, {"id": 2, "grader": "a", "label": 0}
    ),
}
