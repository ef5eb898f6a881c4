# `make demo` and `make test` are all a newcomer needs; `make help` lists the rest.
# Everything is set up in .venv, once, and again when pyproject.toml or constraints.txt change.

SHELL := /bin/sh
VENV ?= .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
RUN_READY := $(VENV)/.ready-to-run
DEV_READY := $(VENV)/.ready-to-develop
PEERS := $(VENV)-peers
PEERS_READY := $(PEERS)/.ready
MODEL_READY := $(VENV)/.ready-with-a-real-model

# The first Python that is new enough. `make test PYTHON=python3.13` picks another one.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo $$python; break; fi; done)

# axe-core looks at the accessibility of the pages; it comes from npm, for development only.
AXE := $(VENV)/npm/node_modules/axe-core/axe.min.js
export VOIRDIRE_AXE ?= $(abspath $(AXE))

# More workers than two gain nothing on small machines; `make test WORKERS=8` on larger ones.
WORKERS ?= 2

PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types layers examples docs slow peers system format clean setup

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(RUN_READY) ## Audit a shipped table: print the report and write audit.html.
	@$(BIN)/voirdire demo -o audit.html

test: $(DEV_READY) ## Run the default tests (the documents' examples are among them).
	@$(BIN)/python -m pytest -n $(WORKERS)

check: lint types layers test ## Run everything that a change must pass, but for the slow tests.

lint: $(DEV_READY) ## Check style and layout of the code.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(DEV_READY) ## Check the types.
	@$(BIN)/mypy

layers: $(DEV_READY) ## Check that modules import only from lower layers.
	@$(BIN)/lint-imports

examples: $(DEV_READY) ## Run only the examples in README.md and docs.
	@$(BIN)/python -m pytest tests/test_docs_examples.py

docs: $(DEV_READY) ## Build the documentation in docs/_build/html.
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "Built docs/_build/html/index.html"

# What some tests need beside Python; without it they are skipped and say so.
system: $(MADE) ## Install a browser, LaTeX and Pango (Debian), and axe-core, for the tests that use them.
	@missing=; for need in chromium:chromium pdflatex:texlive-latex-recommended pdftoppm:poppler-utils; do \
		command -v $${need%%:*} >/dev/null 2>&1 || missing="$$missing $${need#*:}"; done; \
	ldconfig -p 2>/dev/null | grep -q libpangoft2-1.0 || missing="$$missing libpangoft2-1.0-0"; \
	ldconfig -p 2>/dev/null | grep -q libharfbuzz-subset || missing="$$missing libharfbuzz-subset0"; \
	if [ -z "$$missing" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing$$missing (once) ..." >&2; \
		apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends $$missing >/dev/null \
		|| echo "Could not install$$missing: the tests that use them are skipped." >&2; \
	else echo "Some tests are skipped without:$$missing. On Debian: apt install$$missing" >&2; fi
	@if [ ! -e $(AXE) ] && command -v npm >/dev/null; then \
		npm install --silent --no-save --no-audit --no-fund --prefix $(VENV)/npm axe-core >/dev/null \
		|| echo "axe-core could not be installed; its tests are skipped." >&2; fi

# pytest ends with status 5 where no test is marked slow; that is no failure.
slow: $(DEV_READY) $(MODEL_READY) ## Run the tests marked slow.
	@if $(BIN)/python -m pytest -q -m slow --collect-only >/dev/null 2>&1 || [ $$? -ne 5 ]; \
	then $(BIN)/python -m pytest -n $(WORKERS) -m slow; \
	else echo "No test is marked slow."; fi

# Their pins do not fit ours, so they have an environment of their own; some 45 s and 320 MB.
peers: $(PEERS_READY) ## Compare the reader of Inspect logs with the tool's own.
	@$(PEERS)/bin/python -m pytest tests/test_read_inspect.py -k own_reader

format: $(DEV_READY) ## Bring the code into the project's layout.
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

setup: $(DEV_READY) ## Set up .venv with all that the tests need.

clean: ## Remove .venv and everything that was made.
	rm -rf $(VENV) $(PEERS) build dist docs/_build docs/reference audit.html .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian splits venv off from python3: without it `python3 -m venv` fails half-way.
$(MADE):
	@if [ -z "$(PYTHON)" ]; then \
		echo "voirdire needs Python 3.11 or newer, and none was found. Install it with:" >&2; \
		echo "    apt install python3 python3-venv" >&2; \
		echo "or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; fi
	@if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "$(PYTHON) is not a Python 3.11 or newer. Install one with:" >&2; \
		echo "    apt install python3 python3-venv" >&2; exit 1; fi
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
		version=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "$(PYTHON) cannot make virtual environments: its venv module is missing. Install it with:" >&2; \
		echo "    apt install python$$version-venv" >&2; exit 1; fi
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) (once; about a minute) ..." >&2
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# Debian 12's pip is too old for dependency groups, so pip itself comes first.
$(RUN_READY): pyproject.toml constraints.txt | $(MADE)
	@$(PIP) install --quiet --upgrade 'pip>=25.1'
	@$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(DEV_READY): pyproject.toml constraints.txt | $(MADE)
	@$(PIP) install --quiet --upgrade 'pip>=25.1'
	@$(PIP) install --quiet --constraint constraints.txt --editable . --group dev
	@touch $@ $(RUN_READY)

# About 350 MB, for one test that is skipped without it: a download that fails stops nothing.
$(MODEL_READY): pyproject.toml constraints.txt | $(DEV_READY)
	@if $(PIP) install --quiet --constraint constraints.txt --group real-judge; then touch $@; \
	else echo "The group real-judge could not be installed; its test is skipped." >&2; fi

$(PEERS_READY): pyproject.toml | $(MADE)
	@$(PYTHON) -m venv --clear $(PEERS)
	@$(PEERS)/bin/python -m pip install --disable-pip-version-check --no-input --quiet --upgrade 'pip>=25.1'
	@$(PEERS)/bin/python -m pip install --disable-pip-version-check --no-input --quiet --editable . --group test --group peers
	@touch $@
