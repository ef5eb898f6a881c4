"""The same work on many items, on all cores, in Python processes of their own.

They are started afresh and not forked, as polars must not be forked, and they never run the caller's
script again, as ``multiprocessing`` does: reading a folder works from any script and any notebook.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

_LENGTH = struct.Struct("<Q")


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def spread(module: str, function: str, items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """``function(item)`` of each item, with its place among ``items``, as it gets ready.

    ``function`` is a name in ``module``; items and results are pickled. An item whose process failed is
    left out, and so is one whose result cannot be pickled: the caller does these itself.
    """
    n = min(cores(), len(items))
    if n < 2 or not sys.executable:
        return
    started: list[subprocess.Popen[bytes]] = []
    done: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
    source = str(Path(__file__).resolve().parent.parent)
    code = (
        f"import sys; sys.path.insert(0, {source!r}); from voirdire.workers import serve; serve()"
    )
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    try:
        for i in range(n):
            # -P: nothing in the folder that we are called from is ever imported.
            worker = subprocess.Popen(
                [sys.executable, "-P", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            started.append(worker)
            part = [(j, items[j]) for j in range(i, len(items), n)]
            threading.Thread(
                target=_serviced, args=(worker, (module, function, part), done), daemon=True
            ).start()
        open_ = n
        while open_:
            ready = done.get()
            if ready is None:
                open_ -= 1
            else:
                yield ready
    except OSError:  # no process can be started: the caller does all of it
        return
    finally:
        for worker in started:
            worker.kill()
            worker.wait()
            for stream in (worker.stdin, worker.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


def _serviced(
    worker: subprocess.Popen[bytes],
    task: tuple[str, str, list[tuple[int, Any]]],
    done: queue.SimpleQueue[tuple[int, Any] | None],
) -> None:
    """Hand a process its work and pass on what it answers, until it ends."""
    try:
        assert worker.stdin is not None
        assert worker.stdout is not None
        pickle.dump(task, worker.stdin)
        worker.stdin.close()
        while (answer := _received(worker.stdout)) is not None:
            done.put(pickle.loads(answer))
    except Exception:  # whatever broke the pipe: what is left over is done by the caller
        pass
    finally:
        done.put(None)


def _received(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    answer = stream.read(length)
    return answer if len(answer) == length else None


def serve() -> None:
    """What a process does: read the work from standard input, write answers to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller ends its processes itself
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints must not fall between answers
    module, function, part = pickle.load(sys.stdin.buffer)
    work = getattr(importlib.import_module(module), function)
    for place, item in part:
        try:
            answer = pickle.dumps((place, work(item)))
        except Exception:
            continue
        answers.write(_LENGTH.pack(len(answer)) + answer)
        answers.flush()
