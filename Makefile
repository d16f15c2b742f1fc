# `make` lists the targets. Everything is installed into .venv, nothing outside this folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests that start servers wait now and then: one process more than there are cores, four at most.
PROCESSES = $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
PYTEST = $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadfile
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup train test quick check bench clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(STAMP) ## make .venv and install the project with its tools

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rejoinder needs Python 3.11 or newer; call make PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# The target makes its run anew each time; runs of your own go elsewhere (--run).
train: setup ## run the paper's experiment and report which of its claims come out
	$(BIN)/rejoinder reproduce --run runs/make-train --overwrite

test: setup check ## lint, type-check and run all the tests
	$(PYTEST)

quick: setup ## only the quick tests
	$(PYTEST) -m 'not slow'

check: setup ## lint, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup ## speed side by side: against OpenSpiel, the engine's, the runtime's, the learner's
	$(BIN)/rejoinder bench openspiel
	$(BIN)/rejoinder bench kernel
	$(BIN)/rejoinder bench determinism
	$(BIN)/rejoinder bench runtime
	$(BIN)/rejoinder bench learner

clean: ## remove .venv, caches and build products (not runs/)
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
