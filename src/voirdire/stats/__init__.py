"""Families of statistics: one file a family."""
