"""Figures: one file a figure, from plain data to SVG."""
