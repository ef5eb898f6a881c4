"""Providers: who answers a grading request; one file each, found by folder listing and entry point."""
