"""Formats: one file an output format, from a document to bytes."""
