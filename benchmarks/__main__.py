"""Print the figures of docs/benchmarks.md for this machine.

    python -m benchmarks            all of it, as Markdown (some four minutes)
    python -m benchmarks --quick    without the large tables

Each case runs in a fresh process, five times; the fastest is shown. See ``speed.py`` for what is in a figure.
"""

from __future__ import annotations

from benchmarks.speed import main

if __name__ == "__main__":
    main()
