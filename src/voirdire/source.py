"""One input as bytes or as a frame, before any reader has looked at it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voirdire.errors import InputError, unreadable

if TYPE_CHECKING:
    import polars as pl

HEAD_BYTES = 65_536
STANDARD_INPUT = "standard input"


@dataclass(frozen=True)
class Source:
    """One input: a file, the bytes of standard input, or a frame from Python.

    ``name`` is what messages and reports call it (no folders); ``stem`` is the name without suffix.
    An input that is not ``alone`` may lack columns and graders that another input has. One that was
    ``searched`` was not named by the user but found in a folder; its name is its place there.
    """

    name: str
    path: Path | None = None
    content: bytes | None = None
    frame: pl.DataFrame | None = None
    alone: bool = True
    searched: bool = False

    @classmethod
    def of_frame(cls, frame: Any, *, name: str = "frame") -> Source:
        """A source from a polars, pandas, Arrow, DuckDB or other frame that narwhals knows."""
        import narwhals as nw

        try:
            native = nw.from_native(frame)
        except TypeError as error:
            raise InputError(
                f"{type(frame).__name__} is neither a file name nor a frame that narwhals knows "
                "(polars, pandas, pyarrow, duckdb, …)."
            ) from error
        if isinstance(native, nw.LazyFrame):
            native = native.collect(backend="polars")
        return cls(name=name, frame=native.to_polars())

    @property
    def argument(self) -> str:
        """The word that names this input alone on a command line, from where the user stands."""
        if self.path is None:
            return "-" if self.name == STANDARD_INPUT else self.name
        path = str(self.path)
        return f"./{path}" if path.startswith("-") else path

    @property
    def stem(self) -> str:
        return Path(self.name).stem or self.name

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix.lower()

    @cached_property
    def data(self) -> bytes:
        """The whole content."""
        if self.content is not None:
            return self.content
        if self.path is None:
            return b""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise InputError(unreadable(self.path, error, name=self.name)) from error

    @cached_property
    def head(self) -> bytes:
        """The first bytes, enough to recognise a format."""
        if self.content is not None or self.path is None:
            return self.data[:HEAD_BYTES]
        try:
            with self.path.open("rb") as file:
                return file.read(HEAD_BYTES)
        except OSError as error:
            raise InputError(unreadable(self.path, error, name=self.name)) from error

    @cached_property
    def oddities(self) -> dict[str, tuple[int, str]]:
        """What its text holds that no honest tool writes, by kind: how often, and where first."""
        return {}

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the content in hexadecimal; of a frame, of its values in order."""
        if self.frame is not None:
            digest = hashlib.sha256(repr(self.frame.schema).encode())
            digest.update(self.frame.hash_rows(seed=0).to_numpy().tobytes())
            return digest.hexdigest()
        if self.content is not None or self.path is None:
            return hashlib.sha256(self.data).hexdigest()
        digest = hashlib.sha256()
        with self.path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()
