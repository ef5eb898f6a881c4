"""Checks: one file a check. Each reads estimates and says what they mean for the reader."""
