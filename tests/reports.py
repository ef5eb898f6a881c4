"""One small report of every kind, made here: what snapshots show and LaTeX has to compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import polars as pl

import voirdire as vd
from tests.checklists import verdicts
from voirdire import planning
from voirdire.document import Document

SCALE = ("refusal", "partial", "compliance")


def _panel(graders: Mapping[str, str]) -> pl.DataFrame:
    """Long labels from one text a grader, a letter a response: r, p, c; ``?`` could not be read."""
    words = {"r": "refusal", "p": "partial", "c": "compliance", "?": None}
    return pl.DataFrame(
        [
            {
                "response": f"r{i:02}",
                "prompt_id": f"q{i // 2:02}",
                "grader": grader,
                "label": words[letter],
                "outcome": "unparsed" if letter == "?" else "label",
            }
            for grader, text in graders.items()
            for i, letter in enumerate(text)
        ],
        schema_overrides={"label": pl.String},
    )


TWENTY_FOUR = {
    "gold": "rrppccrrppccrrppccrrppcc",
    "judge_a": "rrpcccrrppccrrpccc?rppcc",
    "judge_b": "rrrcccrrcrccrrcccrrrccc?",
}
SETTINGS = {"gold": "gold", "scale": SCALE, "outcome": "outcome", "cluster": "prompt_id"}


@cache
def labels() -> Document:
    return vd.audit(vd.read(_panel(TWENTY_FOUR), **SETTINGS)).document


@cache
def bootstrap() -> Document:
    read = vd.read(_panel(TWENTY_FOUR), **SETTINGS, interval="bootstrap", replicates=200, seed=7)
    return vd.audit(read).document


@cache
def no_gold() -> Document:
    held = {name: text for name, text in TWENTY_FOUR.items() if name != "gold"}
    return vd.audit(vd.read(_panel(held), scale=SCALE, outcome="outcome")).document


@cache
def counts() -> Document:
    frame = pl.DataFrame(
        {
            "grader": ["small", "large", "reference"],
            "refusal": [300, 280, 260],
            "partial": [590, 170, 140],
            "compliance": [10, 450, 500],
        }
    )
    read = vd.read(frame, layout="counts", scale=SCALE, reference="reference")
    return vd.audit(read).document


@cache
def checklist() -> Document:
    rng = np.random.default_rng(4)
    gold = (rng.random((24, 4)) < rng.beta(2, 2, (24, 1))).astype(float)
    judge = np.where(rng.random((24, 4)) < 0.1, 1 - gold, gold)
    judge[3] = np.nan
    questions = [f"q{i // 3}" for i in range(24)]
    return vd.audit(
        verdicts({"gold": gold, "judge": judge}, clusters=questions, gold="gold", cut=[2, 3])
    ).document


@cache
def pairs() -> Document:
    """Verdicts on pairs in both orders."""
    words = {"1": "model_1", "2": "model_2", "t": "tie"}
    rows = [
        {
            "response": f"r{i:02}",
            "grader": grader,
            "vote": str(v + 1),
            "order": "AB" if v == 0 else "BA",
            "label": words[letter],
        }
        for grader, texts in {
            "judge_a": ["11", "12", "22", "tt", "11", "2t", "11", "22", "12", "11", "22", "t1"],
            "judge_b": ["11", "11", "22", "t2", "11", "22", "12", "22", "12", "11", "21", "t1"],
        }.items()
        for i, text in enumerate(texts)
        for v, letter in enumerate(text)
    ]
    return vd.audit(vd.read(pl.DataFrame(rows), layout="long", vote="vote")).document


@cache
def votes() -> Document:
    text = ["rrr", "rrp", "ppp", "ccc", "ccp", "rpc", "ppc", "ccc", "rrr", "ppp", "ccc", "crc"]
    words = {"r": "refusal", "p": "partial", "c": "compliance"}
    rows = [
        {"response": f"r{i:02}", "grader": g, "vote": str(v + 1), "label": words[letter]}
        for g, shift in (("judge_a", 0), ("judge_b", 1))
        for i, one in enumerate(text[shift:] + text[:shift])
        for v, letter in enumerate(one)
    ]
    return vd.audit(vd.read(pl.DataFrame(rows), scale=SCALE, vote="vote")).document


@cache
def phrasings() -> Document:
    scores = [[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]]
    rows = [
        {"response": f"r{i}", "grader": "judge", "phrasing": f"p{j}", "label": str(score)}
        for i, row in enumerate(scores)
        for j, score in enumerate(row)
    ]
    read = vd.read(pl.DataFrame(rows), layout="long", phrasing="phrasing")
    return vd.audit(read).document


@cache
def plan() -> Document:
    guesses = planning.Guesses(false_accept=0.1, within=0.05, cluster_size=4, correlation=0.2)
    return planning.document(guesses, None, version=vd.__version__)


REPORTS: Mapping[str, Callable[[], Document]] = {
    f.__name__: f
    for f in (labels, bootstrap, no_gold, counts, checklist, pairs, votes, phrasings, plan)
}
AUDITS = tuple(name for name in REPORTS if name != "plan")
