"""Print the figures of docs/benchmarks.md for this machine.

    python -m benchmarks            all of it, as Markdown (some five minutes)
    python -m benchmarks --quick    without the large tables

Each case runs in a fresh process, several times; the fastest is shown. See ``speed.py``,
``checklists.py`` and ``logs.py`` for what is in a figure; each also runs alone (``python -m benchmarks.checklists``).
"""

from __future__ import annotations

import argparse

from benchmarks import checklists, logs, speed

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the large tables")
    quick = parser.parse_args().quick
    speed.report(quick=quick)
    print()
    checklists.report(quick=quick)
    print()
    logs.report(quick=quick)
