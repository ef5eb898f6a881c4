"""Inspect AI logs: time and memory of reading one large log, and a folder of a thousand small ones.

``python -m benchmarks.logs`` makes the logs in a temporary folder and measures every case in a
process of its own: CPU seconds (children too) around the reading alone, and the peak resident size of the
process, imports and all. Where ``inspect-ai`` is installed in this environment, or ``--peer`` names
the Python of one where it is, its own full reader reads the same large log.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SAMPLES, CHARACTERS = 1_000, 200_000
MESSAGE = 2_000  # characters of one message
LOGS, OF_EACH = 1_000, 10
SEVERAL = 4  # logs of that size in one folder
ROWS = 10_000  # of promptfoo
WORDS = [f"{a}{b}{c}" for a in "bdgklmnprst" for b in "aeiou" for c in ("", "n", "rt", "sk")]
CREATED = "2026-01-01T00:00:00+00:00"
GRADERS = {"model_graded_qa": "mockllm/a", "model_graded_qa1": "mockllm/b"}


# --- making logs --------------------------------------------------------------------------------


def header(samples: int, *, run: str) -> dict[str, Any]:
    """The header of a log of one task with two judges."""
    scorers = [{"name": "model_graded_qa", "options": {"model": m}} for m in GRADERS.values()]
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": run,
            "run_id": run,
            "created": CREATED,
            "task": "made",
            "task_id": run,
            "dataset": {"name": "made", "samples": samples},
            "model": "mockllm/model",
            "config": {"epochs": 1},
            "packages": {"inspect_ai": "0.3.133"},
            "scorers": scorers,
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": samples, "completed_samples": samples, "scores": []},
        "stats": {"started_at": CREATED, "completed_at": CREATED, "model_usage": {}},
    }


def sample(i: int, rng: random.Random, characters: int) -> dict[str, Any]:
    """One sample: messages of ``characters`` altogether, and a score of each judge."""
    each = min(MESSAGE, characters // 2)
    messages = [
        {
            "id": f"m{i}-{j}",
            "role": "user" if j % 2 == 0 else "assistant",
            "content": " ".join(rng.choices(WORDS, k=each // 4 + 1))[:each],
        }
        for j in range(characters // each)
    ]
    scores = {
        key: {"value": rng.choice("CPI"), "explanation": "GRADE", "metadata": {}, "history": []}
        for key in GRADERS
    }
    return {
        "id": f"s{i:04}",
        "epoch": 1,
        "input": "question",
        "target": "answer",
        "messages": messages,
        "output": {"model": "mockllm/model", "choices": []},
        "scores": scores,
        "metadata": {"category": rng.choice("abc")},
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
        "uuid": f"u{i}",
    }


def packed(content: bytes) -> bytes:
    """Content as Zstandard, as today's logs have it."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    made: bytes = zstd.compress(content)
    return made


def write_log(path: Path, samples: int, characters: int, *, seed: int) -> int:
    """Write an ``.eval`` log with Zstandard entries; returns the bytes that its samples unpack to."""
    rng = random.Random(seed)
    unpacked = 0
    with path.open("wb") as file:
        written: list[zipfile.ZipInfo] = []

        def put(name: str, value: Any) -> int:
            content = json.dumps(value).encode()
            small = packed(content)
            info = zipfile.ZipInfo(name)
            info.CRC, info.compress_size, info.file_size = (
                zlib.crc32(content),
                len(small),
                len(content),
            )
            info.compress_type, info.header_offset = 93, file.tell()
            info.create_version = info.extract_version = 63
            file.write(local_header(info) + small)
            written.append(info)
            return len(content)

        put(
            "_journal/start.json",
            {"version": 2, **{k: header(samples, run=path.stem)[k] for k in ("eval", "plan")}},
        )
        for i in range(samples):
            one = sample(i, rng, characters)
            unpacked += put(f"samples/{one['id']}_epoch_1.json", one)
        put("summaries.json", [])
        put("reductions.json", [])
        put("header.json", header(samples, run=path.stem))
        end_directory(file, written)
    return unpacked


def local_header(info: zipfile.ZipInfo) -> bytes:
    import struct

    name = info.filename.encode()
    sizes = (info.CRC, info.compress_size, info.file_size, len(name), 0)
    return struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 63, 0, 93, 0, 33, *sizes) + name


def end_directory(file: Any, written: list[zipfile.ZipInfo]) -> None:
    import struct

    start = file.tell()
    for info in written:
        name = info.filename.encode()
        sizes = (info.CRC, info.compress_size, info.file_size, len(name), 0, 0, 0, 0, 0)
        file.write(
            struct.pack(
                "<4sHHHHHHIIIHHHHHII",
                b"PK\x01\x02",
                63,
                63,
                0,
                93,
                0,
                33,
                *sizes,
                info.header_offset,
            )
            + name
        )
    n, size = len(written), file.tell() - start
    file.write(struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, n, n, size, start, 0))


# --- cases --------------------------------------------------------------------------------------


def ours(path: str) -> int:
    """The labels of one log, as rows."""
    from voirdire.options import Options
    from voirdire.readers.inspect_log import READER
    from voirdire.source import Source

    rows = READER.read(Source(name=Path(path).name, path=Path(path)), Options())
    return sum(len(r.frame) for r in rows)  # type: ignore[union-attr]


def folder(path: str) -> int:
    """The labels of all logs of a folder, on all cores."""
    import voirdire as vd

    return len(vd.read(path).frame)


def folder_in_one_process(path: str) -> int:
    """The same without further processes."""
    from voirdire import inputs

    inputs.MUCH = sys.maxsize
    return folder(path)


def peer(path: str) -> int:
    """The scores of one log by the tool's own full reader."""
    from inspect_ai.log import read_eval_log  # type: ignore[import-not-found]

    log = read_eval_log(path)
    return sum(len(s.scores) for s in log.samples)


def rows(path: str) -> int:
    """The rows of one file of promptfoo results, before they are put together."""
    from voirdire.options import Options
    from voirdire.readers.promptfoo import READER
    from voirdire.source import Source

    made = READER.read(Source(name=Path(path).name, path=Path(path)), Options())
    return sum(len(r.frame) for r in made)  # type: ignore[union-attr]


CASES: dict[str, Callable[[str], int]] = {
    f.__name__: f for f in (ours, folder, folder_in_one_process, peer, rows)
}


def measure(case: str, path: str) -> dict[str, float]:
    """Run one case here and print its figures."""
    if case == "peer":
        import inspect_ai.log  # noqa: F401  (an import, not work)
    else:
        import voirdire.inputs
        import voirdire.readers.inspect_log
        import voirdire.readers.promptfoo  # noqa: F401

    def spent() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    cpu, wall = spent(), time.perf_counter()
    n = CASES[case](path)
    cpu, wall = spent() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kB on Linux
    return {"rows": n, "cpu": cpu, "wall": wall, "peak_mb": peak}


def in_process(case: str, path: Path, python: str = sys.executable) -> dict[str, Any] | None:
    """The figures of a case in a process of its own, or nothing where it cannot run."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    command = [python, "-m", "benchmarks.logs", "--case", case, "--path", str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=path.parent)
    if done.returncode:
        print(f"{case}: not run ({done.stderr.strip().splitlines()[-1:]})", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def write_results(path: Path, rows: int) -> None:
    """Write promptfoo results of two assertions a row, one row a line."""
    parts = [
        {
            "pass": True,
            "score": 1,
            "reason": "r",
            "assertion": {"type": "llm-rubric", "metric": metric, "value": "v"},
        }
        for metric in ("one", "two")
    ]
    with path.open("w", encoding="utf-8") as file:
        for i in range(rows):
            for part in parts:
                part["pass"] = (i + (part is parts[0])) % 3 > 0
            row = {
                "promptIdx": 0,
                "testIdx": i,
                "promptId": "p",
                "provider": {"id": "target"},
                "vars": {"item": f"i{i}"},
                "response": {"output": "o"},
                "success": True,
                "score": 1,
                "gradingResult": {"pass": True, "score": 1, "componentResults": parts},
            }
            file.write(json.dumps(row) + "\n")


HEAD = (
    "| reading eval logs | CPU | wall time | target | peak memory |",
    "| --- | ---: | ---: | ---: | ---: |",
)


def report(*, quick: bool = False, peer_python: str = sys.executable) -> None:
    """Print the table of logs; ``quick`` leaves out large logs in one process and the peer."""
    print("\n".join(HEAD))
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        large, several, many = root / "large.eval", root / "several", root / "many"
        results = root / "results.jsonl"
        unpacked = write_log(large, SAMPLES, CHARACTERS, seed=1)
        several.mkdir()
        many.mkdir()
        write_results(results, ROWS)
        for i in range(SEVERAL):
            write_log(several / f"log{i}.eval", SAMPLES, CHARACTERS, seed=i)
        for i in range(LOGS):
            write_log(many / f"log{i:04}.eval", OF_EACH, 2_000, seed=i)
        one = f"one `.eval` of {SAMPLES:,} samples × {CHARACTERS:,} characters ({unpacked / 1e6:.0f} MB)"
        cases: list[tuple[str, str, Path, str, str]] = [
            (one, "ours", large, sys.executable, "< 200 MB, 5 times the peer"),
            ("… by `inspect_ai.log.read_eval_log`", "peer", large, peer_python, ""),
            (f"{SEVERAL} such logs, on all cores", "folder", several, sys.executable, ""),
            ("… in one process", "folder_in_one_process", several, sys.executable, ""),
            (f"{LOGS:,} logs of {OF_EACH} samples", "folder", many, sys.executable, ""),
            (
                f"{ROWS:,} promptfoo rows of two assertions",
                "rows",
                results,
                sys.executable,
                "< 1 s",
            ),
        ]
        for title, case, path, python, target in cases:
            if quick and case in ("peer", "folder_in_one_process"):
                continue
            figures = in_process(case, path, python)
            if figures:
                print(
                    f"| {title} | {figures['cpu']:.2f} s | {figures['wall']:.2f} s | {target} "
                    f"| {figures['peak_mb']:.0f} MB |"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case")
    parser.add_argument("--path")
    parser.add_argument("--peer", default=sys.executable, help="a Python with inspect-ai")
    asked = parser.parse_args()
    if asked.case:
        print(json.dumps(measure(asked.case, asked.path)))
        return
    report(peer_python=asked.peer)


if __name__ == "__main__":
    main()
