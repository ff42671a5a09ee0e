# `make demo` and `make test` set up everything they need in .venv, and say what they do.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test golden golden-write bench docs lint format clean

help:
	@echo "make demo    learn to read digits from bags of digits"
	@echo "make test    run linters, import rules, tests, and the examples in the documentation"
	@echo "make golden  compare what the package answers with what was recorded"
	@echo "make bench   time kernels and fits, print tables, and write benchmarks/results/"
	@echo "make docs    build the documentation's site into build/site, warnings being errors"
	@echo "make lint    run the linters only"
	@echo "make format  format the code"
	@echo "make clean   remove the virtual environment and everything generated"

# Reinstalls only when what is to be installed has changed.
$(INSTALLED): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once; about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: $(INSTALLED)
	@echo "Reading digits from bags of digits ..."
	@$(BIN)/unbag demo

lint: $(INSTALLED)
	@echo "Checking style ..."
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

test: lint
	@echo "Running the tests ..."
	@$(BIN)/python -m pytest

golden: $(INSTALLED)
	@echo "Comparing with what was recorded ..."
	@$(BIN)/python tests/golden/record.py compare

golden-write: $(INSTALLED)
	@echo "Recording what the package answers ..."
	@$(BIN)/python tests/golden/record.py write

bench: $(INSTALLED)
	@echo "Timing kernels and fits (a few minutes) ..."
	@$(BIN)/python benchmarks/kernels.py
	@$(BIN)/python benchmarks/fits.py
	@$(BIN)/python benchmarks/rivals.py
	@$(BIN)/python benchmarks/annotate.py

docs: $(INSTALLED)
	@echo "Building the documentation ..."
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Written to build/site/index.html"

format: $(INSTALLED)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
