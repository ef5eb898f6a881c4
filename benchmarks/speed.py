"""Time and memory of the main job, each case in a process of its own.

CPU seconds are those of ``time.process_time`` (all threads) around the work alone: starting Python,
importing and making the labels are left out. Memory is the peak resident size of the process,
imports and all. Wall time is that of a whole command, start-up included.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CLASSES = ("refusal", "evasion", "compliance")
GRADERS = 8
RUNS = 5
SMALL, LARGE = (900, 100), (100_000, 10_000)  # responses and clusters
REPLICATES = 2000
CLUSTERS, CELLS = 1_000_000, 40


# --- the work -----------------------------------------------------------------------------------


def codes(responses: int, clusters: int) -> tuple[Any, Any]:
    """Class codes of eight graders and a reference, (responses, 9), and the cluster of each response.

    The graders repeat what is in the response in 70 to 85 % of the cases; responses of one cluster
    resemble each other.
    """
    import numpy as np

    rng = np.random.default_rng(20_261_130)
    cluster = np.arange(responses) % clusters
    lean = rng.integers(0, 3, clusters)
    truth = np.where(rng.random(responses) < 0.5, lean[cluster], rng.integers(0, 3, responses))
    loyal = np.linspace(0.7, 0.85, GRADERS + 1)
    keeps = rng.random((responses, GRADERS + 1)) < loyal
    other = rng.integers(0, 3, (responses, GRADERS + 1))
    return np.where(keeps, truth[:, None], other), cluster


def frame(responses: int, clusters: int) -> Any:
    """The same as a wide table."""
    import numpy as np
    import polars as pl

    found, cluster = codes(responses, clusters)
    names = np.array(CLASSES)
    columns = {
        "response": [f"r{i}" for i in range(responses)],
        "cluster": [f"c{c}" for c in cluster],
    }
    graders = {f"g{j}": names[found[:, j]] for j in range(GRADERS)}
    return pl.DataFrame({**columns, **graders, "reference": names[found[:, GRADERS]]})


def kappas(responses: int, clusters: int, methods: Sequence[str]) -> float:
    """CPU seconds from checked labels to eight kappas to the reference, each with its intervals."""
    import scipy.special  # noqa: F401  (an import, not work)

    import voirdire as vd
    from voirdire.auditing import scenes
    from voirdire.estimate import Key
    from voirdire.inference import Settings, estimates
    from voirdire.stats.base import Part
    from voirdire.stats.pairwise import S_KAPPA

    labels = vd.read(
        frame(responses, clusters),
        layout="wide",
        graders=[*(f"g{j}" for j in range(GRADERS)), "reference"],
        scale=",".join(CLASSES),
        reference="reference",
        cluster="cluster",
    )
    started = time.process_time()
    scene, _ = scenes(labels)
    parts = [
        Part(
            tally=scene.pair_tally(f"g{j}", "reference"),
            asks=((S_KAPPA, (Key(grader=f"g{j}", other="reference"),)),),
        )
        for j in range(GRADERS)
    ]
    made = [e for m in methods for e in estimates(parts, Settings(interval=m))]
    spent = time.process_time() - started
    assert len(made) == GRADERS * len(methods)
    assert all(e.interval is not None for e in made)
    return spent


def plain_loop(responses: int, clusters: int) -> float:
    """CPU seconds of what one would write by hand: draw clusters, count pairs again, 2,000 times.

    It starts from arrays of codes, not from labels, makes the bootstrap only (no jackknife), and
    counts with numpy: only the draws and the graders are loops.
    """
    import numpy as np

    found, cluster = codes(responses, clusters)
    reference = found[:, GRADERS]
    rng = np.random.default_rng(0)
    started = time.process_time()
    order = np.argsort(cluster, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(cluster))[:-1])
    replicates = np.empty((REPLICATES, GRADERS))
    for r in range(REPLICATES):
        rows = np.concatenate([members[c] for c in rng.integers(0, clusters, clusters)])
        for j in range(GRADERS):
            pairs = np.bincount(found[rows, j] * 3 + reference[rows], minlength=9).reshape(3, 3)
            share = pairs / pairs.sum()
            chance = (share.sum(0) * share.sum(1)).sum()
            replicates[r, j] = (np.trace(share) - chance) / (1 - chance)
    ends = np.quantile(replicates, [0.025, 0.975], axis=0)
    spent = time.process_time() - started
    assert ends.shape == (2, GRADERS)
    return spent


def reading(responses: int, clusters: int) -> float:
    """CPU seconds from a data frame to checked labels."""
    import voirdire as vd

    table = frame(responses, clusters)
    vd.read(table.head(50), layout="wide", graders=["g0", "g1"], cluster="cluster")
    started = time.process_time()
    vd.read(
        table,
        layout="wide",
        graders=[f"g{j}" for j in range(GRADERS)],
        scale=",".join(CLASSES),
        cluster="cluster",
    )
    return time.process_time() - started


def alpha(responses: int, clusters: int, method: str) -> float:
    """CPU seconds from checked labels to nominal alpha with its interval."""
    import scipy.special  # noqa: F401  (an import, not work)

    import voirdire as vd
    from voirdire.auditing import scenes
    from voirdire.inference import Settings, estimates
    from voirdire.stats.panel import parts

    labels = vd.read(
        frame(responses, clusters).drop("reference"),
        layout="wide",
        graders=[f"g{j}" for j in range(GRADERS)],
        scale=",".join(CLASSES),
        cluster="cluster",
    )
    started = time.process_time()
    scene, _ = scenes(labels)
    (made,) = estimates([next(iter(parts(scene)))], Settings(interval=method))
    spent = time.process_time() - started
    assert made.statistic == "krippendorff_alpha_nominal"
    assert made.interval is not None
    return spent


def alpha_peer(responses: int, clusters: int, replicates: int) -> float:
    """CPU seconds of ``krippendorff.alpha`` (PyPI) in a loop over draws of clusters.

    Large tables make fewer draws, and the time is multiplied up to 2,000. Counts of classes by
    response are handed over, which is the faster of its two ways in.
    """
    import numpy as np

    of_counts = importlib.import_module("krippendorff").alpha
    found, cluster = codes(responses, clusters)
    rng = np.random.default_rng(0)
    started = time.process_time()
    counts = np.stack([(found[:, :GRADERS] == c).sum(axis=1) for c in range(3)], axis=1)
    members = np.split(np.argsort(cluster, kind="stable"), np.cumsum(np.bincount(cluster))[:-1])
    drawn = []
    for _ in range(replicates):
        rows = np.concatenate([members[c] for c in rng.integers(0, clusters, clusters)])
        drawn.append(of_counts(value_counts=counts[rows], level_of_measurement="nominal"))
    np.quantile(drawn, [0.025, 0.975])
    return (time.process_time() - started) * REPLICATES / replicates


def cells_in_clusters(events: int) -> Any:
    """The clusters and cells of a million clusters of so many events each, over 40 cells."""
    import numpy as np

    rng = np.random.default_rng(20_261_130)
    cluster = np.repeat(np.arange(CLUSTERS), events)
    return cluster, rng.integers(0, CELLS, len(cluster))


def million(events: int, expected: str) -> float:
    """CPU seconds from cells to 40 shares with intervals, the bootstrap being asked for.

    With one event a cluster there are 40 distinct rows. With many, nearly all rows differ, the
    bootstrap would not fit, and the jackknife serves: ``expected`` is the method that must be told.
    """
    from dataclasses import replace

    import scipy.special  # noqa: F401  (an import, not work)

    from voirdire.estimand import Scale
    from voirdire.estimate import Key
    from voirdire.inference import Settings, estimates
    from voirdire.stats.base import Part, Statistic
    from voirdire.stats.panel import ALPHAS
    from voirdire.tally import count

    share = Statistic(
        estimand=replace(ALPHAS["nominal"], scale=Scale.PLAIN),
        solve=lambda totals, given: totals / totals.sum(-1, keepdims=True),
        n=lambda totals, given: totals.sum(-1, keepdims=True),
    )
    cluster, cell = cells_in_clusters(events)
    keys = tuple(Key(class_=str(c)) for c in range(CELLS))
    started = time.process_time()
    tally = count(cluster, cell, (CELLS,))
    part = Part(tally=tally, asks=((share, keys),))
    made = estimates([part], Settings(interval="bootstrap", replicates=REPLICATES))
    spent = time.process_time() - started
    assert {e.interval.method for e in made if e.interval is not None} == {expected}
    assert len(made) == CELLS
    return spent


def million_loop(replicates: int) -> float:
    """CPU seconds of drawing a million clusters and counting 40 cells anew, multiplied up to 2,000."""
    import numpy as np

    _, cell = cells_in_clusters(1)
    rng = np.random.default_rng(0)
    started = time.process_time()
    drawn = np.stack(
        [
            np.bincount(cell[rng.integers(0, CLUSTERS, CLUSTERS)], minlength=CELLS)
            for _ in range(replicates)
        ]
    )
    np.quantile(drawn / drawn.sum(axis=1, keepdims=True), [0.025, 0.975], axis=0)
    return (time.process_time() - started) * REPLICATES / replicates


def write_big(path: Path) -> None:
    """Ten million rows as Parquet: a million responses, ten graders, five classes."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(20_261_130)
    shares = [0.4, 0.3, 0.15, 0.1, 0.05]
    response = pl.Series([f"r{i:07d}" for i in range(CLUSTERS)])
    names = pl.Series(list("abcde"))
    truth = rng.choice(5, size=CLUSTERS, p=shares)
    tables = []
    for g in range(10):
        own = rng.choice(5, size=CLUSTERS, p=shares)
        label = names.gather(np.where(rng.random(CLUSTERS) < 0.8, truth, own))
        table = pl.DataFrame({"response": response, "label": label})
        tables.append(table.with_columns(pl.lit(f"g{g}").alias("grader")))
    pl.concat(tables).write_parquet(path)


CASES: dict[str, Callable[[], float]] = {
    "small": lambda: kappas(*SMALL, ("auto", "bootstrap")),
    "small-auto": lambda: kappas(*SMALL, ("auto",)),
    "small-bootstrap": lambda: kappas(*SMALL, ("bootstrap",)),
    "small-loop": lambda: plain_loop(*SMALL),
    "small-read": lambda: reading(*SMALL),
    "large": lambda: kappas(*LARGE, ("auto", "bootstrap")),
    "large-auto": lambda: kappas(*LARGE, ("auto",)),
    "large-bootstrap": lambda: kappas(*LARGE, ("bootstrap",)),
    "middle-loop": lambda: plain_loop(10_000, 1_000),
    "middle": lambda: kappas(10_000, 1_000, ("auto", "bootstrap")),
    "large-loop": lambda: plain_loop(*LARGE),
    "large-read": lambda: reading(*LARGE),
    "small-alpha-auto": lambda: alpha(*SMALL, "auto"),
    "small-alpha-bootstrap": lambda: alpha(*SMALL, "bootstrap"),
    "small-alpha-peer": lambda: alpha_peer(*SMALL, REPLICATES),
    "large-alpha-auto": lambda: alpha(*LARGE, "auto"),
    "large-alpha-bootstrap": lambda: alpha(*LARGE, "bootstrap"),
    "large-alpha-peer": lambda: alpha_peer(*LARGE, 20),
    "million-few": lambda: million(1, "percentile"),
    "million-distinct": lambda: million(12, "jackknife_t"),
    "million-loop": lambda: million_loop(20),
}


# --- running ------------------------------------------------------------------------------------


def peak_megabytes(usage: resource.struct_rusage) -> float:
    """Peak resident memory; the unit is bytes on macOS and kibibytes elsewhere."""
    return usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def environment() -> dict[str, str]:
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def measured(
    case: str, runs: int = RUNS, *, module: str = "benchmarks.speed"
) -> tuple[float, float]:
    """The fewest CPU seconds of some runs of a case, and the peak memory in MB."""
    found = []
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-m", module, "--case", case],
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(done.stdout))
    return min(f["cpu"] for f in found), max(f["peak"] for f in found)


def commanded(*arguments: str, folder: Path, runs: int = RUNS) -> tuple[float, float]:
    """The least wall time in seconds of a whole command, and its peak memory in MB."""
    seconds, peak = [], 0.0
    for _ in range(runs + 1):  # the first run fills the caches of the file system
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "voirdire", *arguments],
            cwd=folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds.append(time.perf_counter() - started)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.stderr is not None
        assert process.returncode == 0, process.stderr.read().decode()
        process.stderr.close()
        peak = max(peak, peak_megabytes(usage))
    return min(seconds[1:] or seconds), peak


def machine() -> str:
    import numpy as np
    import polars as pl

    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(x.partition(":")[2].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        pass
    versions = (
        f"Python {platform.python_version()}, numpy {np.__version__}, polars {pl.__version__}"
    )
    kernel = ""
    if os.environ.get("OPENBLAS_CORETYPE"):
        kernel = f", generic OpenBLAS kernel ({os.environ['OPENBLAS_CORETYPE']})"
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, {versions}{kernel}"


def row(what: str, figure: float, target: str, peak: float) -> str:
    return f"| {what} | {figure:.2f} s | {target} | {peak:.0f} MB |"


def report(*, quick: bool) -> None:
    """Print the tables, as they stand in docs/benchmarks.md."""
    print(f"Measured on: {machine()}.\n")
    print("| eight kappas to a reference, with intervals | CPU | target | peak memory |")
    print("| --- | ---: | ---: | ---: |")
    small, large = "900 × 8 in 100 clusters", "100,000 × 8 in 10,000 clusters"
    print(row(f"{small}: both methods", *_with(measured("small"), "< 0.1 s")))
    print(row(f"{small}: jackknife", *_with(measured("small-auto"))))
    print(row(f"{small}: bootstrap", *_with(measured("small-bootstrap"))))
    print(row(f"{small}: bootstrap as a plain loop", *_with(measured("small-loop", 2))))
    if not quick:
        middle = "10,000 × 8 in 1,000 clusters"
        print(row(f"{middle}: both methods", *_with(measured("middle"))))
        print(row(f"{middle}: bootstrap as a plain loop", *_with(measured("middle-loop", 1))))
        print(row(f"{large}: both methods", *_with(measured("large"), "< 2 s")))
        print(row(f"{large}: jackknife", *_with(measured("large-auto"))))
        print(row(f"{large}: bootstrap", *_with(measured("large-bootstrap"))))
        print(row(f"{large}: bootstrap as a plain loop", *_with(measured("large-loop", 1))))
    print("\n| nominal alpha of eight graders, with interval | CPU | target | peak memory |")
    print("| --- | ---: | ---: | ---: |")
    peer = importlib.util.find_spec("krippendorff") is not None
    loop = "bootstrap as a loop around `krippendorff`"
    print(row(f"{small}: jackknife", *_with(measured("small-alpha-auto"), "< 0.05 s")))
    print(row(f"{small}: bootstrap", *_with(measured("small-alpha-bootstrap"), "< 0.05 s")))
    if peer:
        print(row(f"{small}: {loop}", *_with(measured("small-alpha-peer", 1))))
    if not quick:
        print(row(f"{large}: jackknife", *_with(measured("large-alpha-auto"), "< 2 s")))
        print(row(f"{large}: bootstrap", *_with(measured("large-alpha-bootstrap"), "< 2 s")))
        if peer:
            print(row(f"{large}: {loop}", *_with(measured("large-alpha-peer", 1))))
        print(
            "\n| 40 shares over a million clusters, 2,000 replicates | CPU | target | peak memory |"
        )
        print("| --- | ---: | ---: | ---: |")
        few, distinct, looped = (
            measured(f"million-{case}", runs)
            for case, runs in (("few", 2), ("distinct", 2), ("loop", 1))
        )
        print(row("one event a cluster: bootstrap", *_with(few, "< 8 s")))
        print(
            row("12 events a cluster, nearly all rows differ: jackknife", *_with(distinct, "< 8 s"))
        )
        print(row("one event a cluster: bootstrap as a plain loop", *_with(looped)))
    print("\n| from a data frame to checked labels | CPU | target | peak memory |")
    print("| --- | ---: | ---: | ---: |")
    print(row("900 × 8", *_with(measured("small-read"))))
    if not quick:
        print(row("100,000 × 8", *_with(measured("large-read"))))
    print("\n| whole command, start-up included | wall time | target | peak memory |")
    print("| --- | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame(*SMALL).write_csv(folder / "labels.csv")
        audit = ("audit", "labels.csv", "--scale", ",".join(CLASSES), "--quiet")
        html = (*audit, "-o", "audit.html")
        print(row("`voirdire --help`", *_with(commanded("--help", folder=folder), "< 0.3 s")))
        print(
            row(
                "`voirdire audit`, 900 × 8, CSV to HTML",
                *_with(commanded(*html, folder=folder), "< 2 s"),
            )
        )
        referred = (*html, "--reference", "reference")
        print(row("… with `--reference`", *_with(commanded(*referred, folder=folder))))
        drawn = (*referred, "--interval", "bootstrap")
        print(row("… and `--interval bootstrap`", *_with(commanded(*drawn, folder=folder))))
        if not quick:
            write_big(folder / "big.parquet")
            big = ("audit", "big.parquet", "--quiet", "-o", "big.html", "-o", "big.csv")
            figures = commanded(*big, folder=folder, runs=0)
            what = "`voirdire audit`, 10 million rows, Parquet to HTML and CSV"
            print(row(what, *_with(figures, "< 60 s, 3 GB")))


def _with(figures: tuple[float, float], target: str = "") -> tuple[float, str, float]:
    return figures[0], target, figures[1]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--case", choices=CASES, help="run one case in this process (JSON)")
    parser.add_argument("--quick", action="store_true", help="without the large tables")
    chosen = parser.parse_args(arguments)
    if chosen.case:
        cpu = CASES[chosen.case]()
        peak = peak_megabytes(resource.getrusage(resource.RUSAGE_SELF))
        print(json.dumps({"cpu": cpu, "peak": peak}))
        return
    report(quick=chosen.quick)


if __name__ == "__main__":
    main()
