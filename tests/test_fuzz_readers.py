"""No file, however broken or hostile, makes a reader do anything but read it or say what is wrong.

Every reader is fed mutations of one small log of each format (``tests/log_seeds.py``) and of every file
of ``../shared/data``. Nothing but a :class:`VoirdireError` may come out, and soon. The same examples run
each time; the slow tests run more of them.
"""

from __future__ import annotations

import io
import json
import os
import random
import signal
import tempfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import voirdire as vd
from tests.log_seeds import SEEDS, zipped
from voirdire import plugins
from voirdire.cli.main import main
from voirdire.errors import VoirdireError
from voirdire.labels import assemble
from voirdire.options import Options
from voirdire.readers.base import Reader
from voirdire.rows import Rows
from voirdire.source import Source

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
READERS = plugins.load("readers", Reader)
HANGS_AFTER = (
    60  # seconds for one small file: far beyond any honest time, so that no machine is too slow
)
REAL = (
    sorted(
        p.relative_to(DATA).as_posix()
        for p in DATA.rglob("*")
        if p.is_file() and p.suffix not in (".md", ".yaml")
    )
    if DATA.is_dir()
    else []
)


# --- what must hold -----------------------------------------------------------------------------


@contextmanager
def _watched(what: str) -> Iterator[None]:
    """End a test whose reader hangs, where the system has alarms."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: Any) -> None:
        pytest.fail(f"{what}: not done after {HANGS_AFTER} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, HANGS_AFTER)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def holds(name: str, content: bytes, *, every_reader: bool = False) -> vd.Labels | None:
    """Feed a file to all readers as a command would; its labels where it has some.

    No reader's ``sniff`` may raise. ``every_reader`` reads it by each of them, claimed or not.
    """

    def source() -> Source:
        return Source(name=name, content=content)

    with _watched(name):
        for reader in READERS:
            reader.sniff(source())
            if every_reader:
                _read(reader, source())
        try:
            return vd.read(source())  # type: ignore[arg-type]  # a source is an input too
        except VoirdireError as error:
            said = str(error)
            assert said.strip()
            assert len(said) < 100_000, "an error repeats the file"
            return None


def _read(reader: Reader, source: Source) -> None:
    options = Options()
    try:
        reader.look(source, options)
        made = reader.read(source, options)
        assemble([made] if isinstance(made, Rows) else list(made), options)
    except VoirdireError:
        pass


# --- mutations ----------------------------------------------------------------------------------

TOKENS = (
    *(
        b"\x00",
        b"\xff\xfe",
        b"\xc3",
        b"\xed\xa0\x80",
        b'"\\ud800"',
        b"\\u0000",
        b"NaN",
        b"-Infinity",
    ),
    *(
        b"1e999",
        b"9" * 5000,
        b"[",
        b"{",
        b"]",
        b"}",
        b'"',
        b",",
        b":",
        b"\n",
        b"\r",
        b"null",
        b"true",
    ),
    *(
        b"[" * 3000,
        b'{"a":' * 3000,
        b"\xe2\x80\xa8",
        b"\xef\xbb\xbf",
        b"'",
        b"=1+1",
        b"\x1a",
        b"{}",
    ),
)


def bytes_mutated(content: bytes, rng: random.Random) -> bytes:
    """The content after one to four accidents with its bytes."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        size = min(len(data) - at, int(rng.paretovariate(0.7)))
        kind = rng.randrange(7)
        if kind == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + size]
        elif kind == 2:
            data[at:at] = data[at : at + size]
        elif kind == 3:
            data[at:at] = rng.choice(TOKENS)
        elif kind == 4:
            data[at : at + size] = rng.choice(TOKENS)
        elif kind == 5:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other : other + size]
        else:
            del data[at:]
    return bytes(data)


ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, -0.0, 1e300, float("nan"), float("inf"), 10**30, 10**3000),
    *("", " ", "\x00", "\ud800", "NaN", "a/b", "a\nb", "-", "1", "x" * 5000, "\u202egnirts", "=1"),
    *([], {}, [[]], [None], [{}], {"": None}, {"a": {"a": []}}, [1, "a", None], {"\ud800": 1}),
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every member of every list and object in a JSON value, as its holder and key."""
    found: list[tuple[Any, Any]] = []
    open_ = [value]
    while open_ and len(found) < 20_000:
        one = open_.pop()
        keys: Any = list(one) if isinstance(one, dict) else range(len(one))
        for key in keys:
            found.append((one, key))
            if isinstance(one[key], dict | list):
                open_.append(one[key])
    return found


def value_mutated(value: Any, rng: random.Random) -> Any:
    """A JSON value after one to four changes of its structure."""
    value = json.loads(json.dumps(value))  # a copy; the seeds stay
    for _ in range(rng.randint(1, 4)):
        places = _places(value) if isinstance(value, dict | list) else []
        if not places:
            return rng.choice(ODD)
        holder, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, list):
            holder += [holder[key]] * rng.randint(1, 3)
        elif kind == 1:
            holder[f"{key}2"] = holder[key]
        elif kind == 2:
            other, of = rng.choice(places)
            if of in other if isinstance(other, dict) else of < len(other):
                moved = other[of]
                # A copy: a value inside itself is no JSON.
                holder[key] = json.loads(json.dumps(moved))
        elif kind == 3 and isinstance(holder[key], list | dict):
            holder[key] = [holder[key]]
        else:
            holder[key] = rng.choice(ODD)
    return value


def structure_mutated(name: str, content: bytes, rng: random.Random) -> bytes:
    """The content with its JSON changed; of an archive, that of one entry; of text, its bytes."""
    if zipfile.is_zipfile(io.BytesIO(content)) and content.startswith(b"PK"):
        return _archive_mutated(content, rng)
    try:
        if name.endswith("l"):
            lines = content.splitlines(keepends=True)
            at = rng.randrange(len(lines))
            lines[at] = _dumped(value_mutated(json.loads(lines[at]), rng)) + b"\n"
            return b"".join(lines)
        return _dumped(value_mutated(json.loads(content), rng))
    except (ValueError, RecursionError, IndexError):
        return bytes_mutated(content, rng)


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _archive_mutated(content: bytes, rng: random.Random) -> bytes:
    entries: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            try:
                entries[info.filename] = archive.read(info)
            except NotImplementedError:  # a compression that this Python lacks
                return bytes_mutated(content, rng)
    name = rng.choice(sorted(entries))
    kind = rng.randrange(4)
    if kind == 0:
        del entries[name]
    elif kind == 1:
        entries[f"{name}/../../x"] = entries.pop(name)
    elif kind == 2:
        entries[name] = bytes_mutated(entries[name], rng)
    else:
        entries[name] = structure_mutated("x.json", entries[name], rng)
    return zipped(entries)


def _rng(*parts: Any) -> random.Random:
    return random.Random("/".join(map(str, parts)))


MUTATIONS: dict[str, Callable[[str, bytes, random.Random], bytes]] = {
    "bytes": lambda name, content, rng: bytes_mutated(content, rng),
    "structure": structure_mutated,
    "cut": lambda name, content, rng: content[: rng.randrange(len(content))],
}


# --- the seeds ----------------------------------------------------------------------------------


def test_every_reader_claims_a_seed() -> None:
    """A reader without a seed would be fuzzed by luck alone: add one to tests/log_seeds.py."""
    claimed: set[str] = set()
    for name, content in SEEDS.items():
        source = Source(name=name, content=content)
        claims = {r.name: c for r in READERS if (c := r.sniff(source)) is not None}
        claimed |= {n for n, c in claims.items() if c.sure} or set(claims)
    assert {r.name for r in READERS} - claimed == set()


@pytest.mark.parametrize("name", sorted(SEEDS))
@pytest.mark.parametrize("how", sorted(MUTATIONS))
def test_mutations_of_small_logs(name: str, how: str) -> None:
    for i in range(8):
        holds(name, MUTATIONS[how](name, SEEDS[name], _rng(name, how, i)))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SEEDS))
@pytest.mark.parametrize("how", sorted(MUTATIONS))
def test_many_mutations_of_small_logs(name: str, how: str) -> None:
    for i in range(120):
        content = MUTATIONS[how](name, SEEDS[name], _rng(name, how, "more", i))
        holds(name, content, every_reader=i % 10 == 0)


def test_every_cut_of_a_small_log_is_read_or_refused() -> None:
    for name, content in SEEDS.items():
        step = max(1, len(content) // 6)
        for end in range(step, len(content), step):
            holds(name, content[:end])


# --- the real files -----------------------------------------------------------------------------


def _mutate_real(name: str, times: int, most: int) -> None:
    content = (DATA / name).read_bytes()
    for i in range(times):
        rng = _rng(name, i)
        how = sorted(MUTATIONS)[i % len(MUTATIONS)]
        part = content
        if len(part) > most and how != "structure" and not part.startswith(b"PK"):
            part = part[:most]  # the head of a large file: most of the time would go into its tail
        holds(Path(name).name, MUTATIONS[how](name, part, rng))


@pytest.mark.parametrize("name", [n for n in REAL if (DATA / n).stat().st_size < 20_000])
def test_mutations_of_small_real_files(name: str) -> None:
    _mutate_real(name, 3, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_mutations_of_every_real_file(name: str) -> None:
    size = (DATA / name).stat().st_size
    _mutate_real(name, max(9, min(90, 3_000_000 // size)), 200_000)


# --- JSON that hypothesis makes -----------------------------------------------------------------


def _words() -> tuple[list[str], list[str]]:
    """The keys and the short texts of the seeds: what the readers look for."""
    keys: set[str] = set()
    texts: set[str] = set()
    for name, content in SEEDS.items():
        if content.startswith(b"PK") or name.endswith(("csv", "tsv", "db")):
            continue
        for line in content.splitlines() if name.endswith("l") else [content]:
            for holder, key in _places(json.loads(line)):
                if isinstance(holder, dict):
                    keys.add(key)
                if isinstance(holder[key], str):
                    texts.add(holder[key])
    return sorted(keys), sorted(texts)


KEYS, TEXTS = _words()
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.floats(),
    st.sampled_from(TEXTS),
    st.text(max_size=4),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    ),
    max_leaves=15,
)
PLAIN_SEEDS = sorted(
    n for n, c in SEEDS.items() if n.endswith((".json", ".jsonl")) and c[:2] != b"PK"
)


def _grafted(name: str, grafts: list[tuple[int, Any]]) -> bytes:
    """A seed in which hypothesis has put its own values in some places."""
    content = SEEDS[name]
    lines = [json.loads(x) for x in (content.splitlines() if name.endswith("l") else [content])]
    for where, value in grafts:
        places = _places(lines)
        holder, key = places[where % len(places)]
        holder[key] = value
    return b"\n".join(_dumped(line) for line in lines)


GRAFTS = st.lists(st.tuples(st.integers(0, 400), JSON), min_size=1, max_size=4)
QUIET: Any = {"suppress_health_check": list(HealthCheck), "database": None}


@settings(max_examples=80, **QUIET)
@given(name=st.sampled_from(PLAIN_SEEDS), grafts=GRAFTS)
def test_logs_with_any_value_in_any_place(name: str, grafts: list[tuple[int, Any]]) -> None:
    holds(name, _grafted(name, grafts))


@pytest.mark.slow
@settings(max_examples=2000, **QUIET)
@given(name=st.sampled_from(PLAIN_SEEDS), grafts=GRAFTS)
def test_many_logs_with_any_value_in_any_place(name: str, grafts: list[tuple[int, Any]]) -> None:
    holds(name, _grafted(name, grafts))


@settings(max_examples=20, **QUIET)
@given(values=st.lists(JSON, min_size=1, max_size=3))
def test_any_json_through_every_reader(values: list[Any]) -> None:
    holds("x.json", _dumped(values[0]), every_reader=True)
    holds("x.jsonl", b"\n".join(map(_dumped, values)), every_reader=True)


# --- hostile files ------------------------------------------------------------------------------

DEEP = 100_000


@pytest.mark.parametrize(
    "content",
    [
        b"[" * DEEP,
        b'{"a":' * DEEP,
        b"[" * DEEP + b"]" * DEEP,
        b'[{"scores":' * DEEP,
        b'{"' + b"k" * 10_000_000 + b'": 1}',
        b'[{"' + b"k" * 10_000_000 + b'": 1, "id": 2, "label": 3}]',
        b"\x00" * 100_000,
        b"{\x00}",
        b'{"id": "\\ud800", "label": "\\udfff", "grader": "\\ud83d"}\n' * 2,
        b'{"id": 1, "id": 2, "label": "a", "label": "b", "samples": [], "samples": {}}',
        b"9" * 1_000_000,
        b'{"id": ' + b"9" * 100_000 + b', "label": 1, "grader": "a"}',
        b'{"id": 1e999, "label": NaN, "grader": -Infinity}',
        b"\xef\xbb\xbf",
        b"\xff\xfe\x00\x00",
        b"PK\x03\x04",
        b"PK\x05\x06" + b"\x00" * 18,
        b"PK\x03\x04" + b"\xff" * 1000,
        b"\x28\xb5\x2f\xfd" + b"\x00" * 100,
        b'"' * 100_001,
        b"," * 100_000,
        b"\n" * 100_000,
        b'"annotation_id","annotator","created_at","updated_at","lead_time"\n' + b'"' * 99_999,
    ],
    ids=lambda content: f"{content[:12]!r} {len(content)}",
)
def test_hostile_files_end_in_an_error_line(content: bytes) -> None:
    names = ("x.json", "x.jsonl", "x.csv", "x.eval")
    for name in names if len(content) < 5_000_000 else names[:1]:
        holds(name, content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.json", b"[" * DEEP),
        ("x.jsonl", b'{"spec": {"\x00'),
        ("x.eval", b"PK\x03\x04" + b"\xff" * 1000),
        ("x.csv", b"\x00" * 1000),
        ("x.json", b'{"' + b"k" * 100_000 + b'": [1]}'),
    ],
)
def test_a_hostile_file_ends_with_status_3_and_a_short_message(
    name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert main(["audit", str(path)]) == 3
    said = capsys.readouterr().err
    assert said.startswith("voirdire: ")
    assert name in said
    assert len(said) < 2000
    assert "Traceback" not in said
    assert "\x00" not in said


@pytest.mark.parametrize("name", PLAIN_SEEDS)
def test_hostile_values_inside_a_log(name: str) -> None:
    """Deep nesting, a long key, a long number, half a character, and a key given twice, in a real place."""
    mark = b'"@@@"'
    hostile = (
        b"[" * 5000 + b"]" * 5000,
        b'{"' + b"k" * 1_000_000 + b'": 1}',
        b"9" * 10_000,
        b'"\\ud800\\u0000"',
        b'{"a": 1, "a": {"a": 2, "a": 3}}',
    )
    for i, value in enumerate(hostile):
        rng = _rng(name, "hostile", i)
        content = SEEDS[name]
        places = len(_places([json.loads(x) for x in content.splitlines()]))
        marked = _grafted(name, [(rng.randrange(places), "@@@")])
        holds(name, marked.replace(mark, value))


EVAL = "inspect.eval"


def _entries() -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(SEEDS[EVAL])) as archive:
        return {i.filename: archive.read(i) for i in archive.infolist()}


@pytest.mark.parametrize(
    "evil", ["../../out.json", "/out.json", "samples/../../out.json", "a\x00b", ""]
)
def test_entries_of_an_archive_never_become_files(
    evil: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    entries = _entries()
    entries[evil] = entries["samples/a_epoch_1.json"]
    holds(EVAL, zipped(entries))
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a", "b"]
    assert not os.path.exists("/out.json")


def _header_changed(content: bytes, offset: int, value: bytes) -> bytes:
    """The archive with a field changed in every entry of its directory, and in the local headers."""
    data = bytearray(content)
    for magic, shift in ((b"PK\x01\x02", 0), (b"PK\x03\x04", -2)):
        at = data.find(magic)
        while at >= 0:
            data[at + offset + shift : at + offset + shift + len(value)] = value
            at = data.find(magic, at + 4)
    return bytes(data)


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (8, b"\x01\x00"),  # encrypted
        (10, b"\x63\x00"),  # a method that nobody knows
        (10, b"\x5d\x00"),  # Zstandard, which it is not
        (10, b"\x0c\x00"),  # bzip2, which it is not
        (10, b"\x0e\x00"),  # LZMA, which it is not
        (16, b"\x00\x00\x00\x00"),  # another checksum
        (20, b"\xff\xff\xff\x7f"),  # the packed size lies
        (24, b"\xff\xff\xff\x7f"),  # the size lies
        (24, b"\x01\x00\x00\x00"),  # it is larger than it says
        (28, b"\xff\xff"),  # the name goes on for ever
    ],
)
def test_lies_in_the_headers_of_an_archive(offset: int, value: bytes) -> None:
    holds(EVAL, _header_changed(SEEDS[EVAL], offset, value))


def test_an_archive_of_very_many_entries() -> None:
    holds(EVAL, zipped({**_entries(), **{f"samples/{i}_epoch_1.json": b"{}" for i in range(5000)}}))


class _Zeros:
    """So many zero bytes, deflated, without ever being there."""

    def __init__(self, size: int, before: bytes = b"", after: bytes = b"") -> None:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        block = b" " * (1 << 20)
        parts = [packer.compress(before)]
        crc, total = zlib.crc32(before), len(before)
        for _ in range(size >> 20):
            parts.append(packer.compress(block))
            crc, total = zlib.crc32(block, crc), total + len(block)
        parts += [packer.compress(after), packer.flush()]
        self.crc, self.size = zlib.crc32(after, crc), total + len(after)
        self.packed = b"".join(parts)


def _bomb(entry: str, size: int) -> bytes:
    """The archive of the seed, in which one entry unpacks to this many bytes."""
    entries = _entries()
    before = entries[entry].rstrip(b"}")
    zeros = _Zeros(size, before, b"}")
    entries[entry] = zeros.packed
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content)
    data = bytearray(out.getvalue())
    for magic, at_method, at_crc, at_size, at_name in (
        (b"PK\x03\x04", 8, 14, 22, 30),
        (b"PK\x01\x02", 10, 16, 24, 46),
    ):
        at = data.find(magic)
        while at >= 0:
            if data[at + at_name : at + at_name + len(entry)] == entry.encode():
                data[at + at_method : at + at_method + 2] = (8).to_bytes(2, "little")
                data[at + at_crc : at + at_crc + 4] = zeros.crc.to_bytes(4, "little")
                data[at + at_size : at + at_size + 4] = zeros.size.to_bytes(4, "little")
            at = data.find(magic, at + 4)
    return bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["samples/a_epoch_1.json", "header.json", "_journal/start.json"])
def test_a_bomb_is_not_unpacked(entry: str) -> None:
    """3 GB of blanks in 3 MB: reading takes no memory of that size, whatever is said of the file."""
    content = _bomb(entry, 3 << 30)
    tracemalloc.start()
    try:
        holds(EVAL, content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 << 20
