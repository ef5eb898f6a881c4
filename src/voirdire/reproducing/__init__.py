"""A ledger of every figure that a paper prints: recomputed where it can be, and said why where not."""

from __future__ import annotations

from voirdire.reproducing.base import (
    Basis,
    Holds,
    Ledger,
    Line,
    NotPrinted,
    Paper,
    Value,
    published,
)
from voirdire.reproducing.pages import document, ledger, listing, papers, write

__all__ = [
    "Basis",
    "Holds",
    "Ledger",
    "Line",
    "NotPrinted",
    "Paper",
    "Value",
    "document",
    "ledger",
    "listing",
    "papers",
    "published",
    "write",
]
