"""The command line: one module a command group, and :mod:`voirdire.cli.main` that runs them."""
