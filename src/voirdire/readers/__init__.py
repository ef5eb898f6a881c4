"""Readers: one file a format. Each hands rows of text under canonical names to the labels."""
