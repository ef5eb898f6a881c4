"""Time and memory of auditing a checklist judge, each case in a process of its own.

CPU seconds are those of ``time.process_time`` (all threads) around the work alone: starting Python,
importing and making the table are left out. Memory is the peak resident size of the process, imports
and all. See ``speed.py``, which measures label tables.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed import REPLICATES, ROOT, commanded, machine, measured, peak_megabytes, row

BANK = ROOT / "src" / "voirdire" / "data" / "judge_item_bank.csv"
CUTS = (4, 5, 6, 7)
RESPONSES, CLUSTERS, LINES = 100_000, 10_000, 10


# --- the work -----------------------------------------------------------------------------------


def imported() -> None:
    """Load everything that an audit loads late, with a table so small that it costs nothing else."""
    import scipy.special  # noqa: F401

    import voirdire as vd

    table = drawn(12, 4, 3, own=False)
    for interval in ("auto", "bootstrap"):
        labels = vd.read(table, layout="checklist", response="item", question="none")
        made = vd.audit(labels, cut=[2], interval=interval, replicates=100)
        with tempfile.TemporaryDirectory() as name:
            made.write(Path(name) / "audit.html")


def drawn(responses: int, clusters: int, lines: int, *, own: bool) -> Any:
    """A wide table of verdicts: a response meets each line with a share of its own.

    The judge accepts one absent element in ten, and one in five on every tenth line; it rejects one
    present element in a hundred. With ``own`` each cluster is a question with its own checklist.
    """
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(20_261_130)
    cluster = np.arange(responses) % clusters
    share = rng.beta(5, 4, clusters)[cluster] * 0.5 + rng.beta(5, 4, responses) * 0.5
    gold = rng.random((responses, lines)) < share[:, None]
    lenient = np.where(rng.random((clusters if own else 1, lines)) < 0.1, 0.2, 0.1)
    accepts = rng.random((responses, lines)) < lenient[cluster if own else 0]
    rejects = rng.random((responses, lines)) < 0.01
    judge = np.where(gold, ~rejects, accepts)
    columns: dict[str, Any] = {
        "item": [f"r{i}" for i in range(responses)],
        "question_id": [f"q{c}" for c in cluster],
    }
    for name, verdicts in (("gold", gold), ("judge", judge)):
        columns |= {f"{name}_e{j + 1}": verdicts[:, j].astype(np.int8) for j in range(lines)}
    return pl.DataFrame(columns)


def real_bank(interval: str, *, read: bool = True, page: bool = False) -> float:
    """CPU seconds of the audit of the bank that ships, at four cuts, everything with intervals."""
    import voirdire as vd

    imported()
    asked = {"layout": "checklist", "response": "item_id", "question": "question_id"}
    labels = None if read else vd.read(str(BANK), **asked)
    started = time.process_time()
    if labels is None:
        labels = vd.read(str(BANK), **asked)
    audit = vd.audit(labels, cut=list(CUTS), interval=interval, replicates=REPLICATES)
    rows = audit.results
    if page:
        with tempfile.TemporaryDirectory() as name:
            audit.write(Path(name) / "audit.html")
    spent = time.process_time() - started
    assert {"kr20", "gate_accuracy", "phi_lambda"} <= set(rows["statistic"])
    return spent


def large_bank(interval: str, *, own: bool) -> float:
    """CPU seconds from checked labels to all estimates and findings of 100,000 responses."""
    import voirdire as vd

    imported()
    table = drawn(RESPONSES, CLUSTERS, LINES, own=own)
    labels = vd.read(table, **large_options(own))
    started = time.process_time()
    rows = vd.audit(labels, cut=list(CUTS), interval=interval, replicates=REPLICATES).results
    spent = time.process_time() - started
    gate = rows.filter((rows["statistic"] == "gate_accuracy") & (rows["grader"] == "judge"))
    assert gate.height == len(CUTS)
    assert gate["low"].null_count() == 0
    return spent


def large_options(own: bool) -> dict[str, str]:
    asked = {"layout": "checklist", "response": "item"}
    if own:
        return {**asked, "question": "question_id"}
    return {**asked, "question": "none", "cluster": "question_id"}


def reading(*, own: bool) -> float:
    """CPU seconds from a data frame of 100,000 responses to checked labels."""
    import voirdire as vd

    imported()
    table = drawn(RESPONSES, CLUSTERS, LINES, own=own)
    started = time.process_time()
    vd.read(table, **large_options(own))
    return time.process_time() - started


def totals_of_the_bank() -> tuple[Any, Any]:
    """The judge's totals of the bank that ships and the question of each, by hand."""
    import numpy as np
    import polars as pl

    table = pl.read_csv(BANK).drop_nulls()
    verdicts = table.select(f"judge_e{j + 1}" for j in range(LINES)).to_numpy()
    _, question = np.unique(table["question_id"].to_numpy(), return_inverse=True)
    return verdicts.sum(axis=1), question


def fits(interval: str) -> float:
    """CPU seconds of the fit and of Livingston–Lewis at four cuts, judge and gold, with intervals."""
    import voirdire as vd
    from voirdire.auditing import scenes
    from voirdire.inference import Settings, estimates
    from voirdire.stats.classification import FAMILY

    imported()
    asked = {"layout": "checklist", "response": "item_id", "question": "question_id"}
    labels = vd.read(str(BANK), **asked, cut=list(CUTS))
    started = time.process_time()
    scene, _ = scenes(labels)
    parts = list(FAMILY.parts(scene))
    made = estimates(parts, Settings(interval=interval, replicates=REPLICATES))
    spent = time.process_time() - started
    accuracy = [e for e in made if e.statistic == "livingston_lewis_accuracy"]
    assert len(accuracy) == 2 * len(CUTS)
    return spent


def fits_loop(replicates: int) -> float:
    """CPU seconds of Livingston–Lewis accuracy at four cuts with an optimiser for each replicate.

    What one would write by hand: draw questions, minimise the negative log-likelihood of the judge's
    totals with ``scipy.optimize.minimize`` (Nelder–Mead on log α and log β, from where the whole bank
    has its maximum), and integrate on a grid of 400 points. The time of some replicates is multiplied
    up to 2,000. Judge only; the vectorised figure has gold too.
    """
    import numpy as np
    from scipy.optimize import minimize
    from scipy.special import betaln
    from scipy.stats import beta, binom

    totals, question = totals_of_the_bank()
    members = [np.flatnonzero(question == q) for q in range(question.max() + 1)]
    points = np.linspace(1e-6, 1 - 1e-6, 400)
    rng = np.random.default_rng(0)

    def fit(counts: Any, start: Any) -> Any:
        at = np.arange(LINES + 1)

        def loss(logs: Any) -> float:
            a, b = np.exp(logs)
            return float(-(counts * (betaln(at + a, LINES - at + b) - betaln(a, b))).sum())

        return minimize(loss, start, method="Nelder-Mead").x

    whole = fit(np.bincount(totals, minlength=LINES + 1), np.log([2.0, 2.0]))
    started = time.process_time()
    accuracy = np.empty((replicates, len(CUTS)))
    for r in range(replicates):
        rows = np.concatenate([members[q] for q in rng.integers(0, len(members), len(members))])
        a, b = np.exp(fit(np.bincount(totals[rows], minlength=LINES + 1), whole))
        weight = beta.pdf(points, a, b)
        weight /= weight.sum()
        for place, cut in enumerate(CUTS):
            passes = binom.sf(cut - 1, LINES, points)
            accuracy[r, place] = weight @ np.where(points >= cut / LINES, passes, 1 - passes)
    ends = np.quantile(accuracy, [0.025, 0.975], axis=0)
    spent = time.process_time() - started
    assert ends.shape == (2, len(CUTS))
    return spent * REPLICATES / replicates


CASES: dict[str, Callable[[], float]] = {
    "real-auto": lambda: real_bank("auto"),
    "real-bootstrap": lambda: real_bank("bootstrap"),
    "real-bootstrap-page": lambda: real_bank("bootstrap", page=True),
    "shared-auto": lambda: large_bank("auto", own=False),
    "shared-bootstrap": lambda: large_bank("bootstrap", own=False),
    "own-auto": lambda: large_bank("auto", own=True),
    "own-bootstrap": lambda: large_bank("bootstrap", own=True),
    "shared-read": lambda: reading(own=False),
    "own-read": lambda: reading(own=True),
    "fits-auto": lambda: fits("auto"),
    "fits-bootstrap": lambda: fits("bootstrap"),
    "fits-loop": lambda: fits_loop(100),
}


# --- running ------------------------------------------------------------------------------------


def report(*, quick: bool) -> None:
    """Print the tables, as they stand in docs/benchmarks.md."""

    def line(what: str, case: str, target: str = "", runs: int = 5) -> None:
        cpu, peak = measured(case, runs, module="benchmarks.checklists")
        print(row(what, cpu, target, peak))

    print(
        "| the bank that ships: judge and gold, 210 × 10, four cuts | CPU | target | peak memory |"
    )
    print("| --- | ---: | ---: | ---: |")
    line("from CSV to all estimates and findings: jackknife", "real-auto")
    line("from CSV to all estimates and findings: bootstrap", "real-bootstrap", "< 1 s")
    line("… and to an HTML page", "real-bootstrap-page")
    line("Livingston–Lewis alone, judge and gold: jackknife", "fits-auto")
    line("Livingston–Lewis alone, judge and gold: bootstrap", "fits-bootstrap")
    line("Livingston–Lewis accuracy, judge: bootstrap as a plain loop", "fits-loop", runs=1)
    if not quick:
        print(
            "\n| 100,000 × 10 in 10,000 clusters, judge and gold, four cuts | CPU | target | peak memory |"
        )
        print("| --- | ---: | ---: | ---: |")
        for shape, what in (("shared", "one checklist"), ("own", "a checklist for each question")):
            line(f"{what}: jackknife", f"{shape}-auto", "< 5 s", 3)
            line(f"{what}: bootstrap", f"{shape}-bootstrap", "< 5 s", 3)
            line(f"{what}: from a data frame to checked labels", f"{shape}-read", runs=3)
    print("\n| whole command, start-up included | wall time | target | peak memory |")
    print("| --- | ---: | ---: | ---: |")
    asked = ("--layout", "checklist", "--response", "item_id", "--question", "question_id")
    cuts = [word for cut in CUTS for word in ("--cut", str(cut))]
    with tempfile.TemporaryDirectory() as name:
        page = ("-o", "audit.html", "--quiet")
        command = ("audit", str(BANK), *asked, *cuts, *page)
        for what, more in (("", ()), (" with `--interval bootstrap`", ("--interval", "bootstrap"))):
            seconds, peak = commanded(*command, *more, folder=Path(name))
            print(row(f"`voirdire audit` of the bank that ships{what}", seconds, "", peak))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checklists", description=__doc__)
    parser.add_argument("--case", choices=CASES, help="run one case in this process (JSON)")
    parser.add_argument("--quick", action="store_true", help="without the large tables")
    chosen = parser.parse_args(arguments)
    if chosen.case:
        cpu = CASES[chosen.case]()
        peak = peak_megabytes(resource.getrusage(resource.RUSAGE_SELF))
        print(json.dumps({"cpu": cpu, "peak": peak}))
        return
    print(f"Measured on: {machine()}.\n")
    report(quick=chosen.quick)


if __name__ == "__main__":
    main()
