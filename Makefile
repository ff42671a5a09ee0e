# `make demo` and `make test` set up everything they need in .venv, and say what they do.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What `make demo` needs, what development needs, and every extra: each has the ones before it.
DEMO_INSTALLED := $(VENV)/.demo-installed
INSTALLED := $(VENV)/.installed
EXTRAS_INSTALLED := $(VENV)/.extras-installed
CONSTRAINTS := constraints.txt
# The tests are shared out to as many processes as there are cores; one that has none left takes
# some of another's. Threads within them would wait for each other, spinning: fits of torch took six
# times as long.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n logical --dist worksteal
IMPORTS_TORCH := "^(import|from) (torch|triton)\b"
# pip would compile every module that it installs. A third of them are imported, and compiled then;
# where Python is told to keep nothing of that, every process would compile them anew.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c $(CONSTRAINTS)

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-all lint format docs bench fuzz clean

help:
	@echo "make demo       learn to read digits from bags of digits"
	@echo "make test       run linters, import rules, tests, and the examples in the documentation"
	@echo "make test-slow  run all that make test leaves out, with every extra installed"
	@echo "make test-all   run the tests, and install the package, on Python 3.11, 3.12 and 3.13, where"
	@echo "                this machine has them, and with the oldest libraries allowed; new examples"
	@echo "make lint       run the linters only"
	@echo "make format     format the code"
	@echo "make docs       build the documentation's site into build/site, warnings being errors"
	@echo "make bench      time kernels and fits, print tables, and write benchmarks/results/"
	@echo "make fuzz       try hostile input for two minutes, or new input for MINUTES=10"
	@echo "make clean      remove the virtual environments and everything generated"

$(BIN)/python:
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

# Each reinstalls only when what is to be installed has changed.
$(DEMO_INSTALLED): pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing unbag into $(VENV) (once; about half a minute) ..."
	@$(PIP_INSTALL) -e ".[figures]"
	@touch $@

$(INSTALLED): pyproject.toml reproduction/pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing unbag and the tools of development into $(VENV) (once; a minute or two) ..."
	@$(PIP_INSTALL) -e ".[dev]" -e ./reproduction
	@touch $(DEMO_INSTALLED) $@

$(EXTRAS_INSTALLED): $(INSTALLED)
	@echo "Adding every extra to $(VENV) (once; a few minutes) ..."
	@$(PIP_INSTALL) -e ".[dev,torch]"
	@touch $@

demo: $(DEMO_INSTALLED)
	@echo "Reading digits from bags of digits ..."
	@$(BIN)/unbag demo

lint: $(INSTALLED)
	@echo "Checking style ..."
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python .ci/prose.py
	@echo "Checking types, but of what imports torch, which is not installed with the rest ..."
	@$(BIN)/basedpyright --pythonpath $(BIN)/python $$(grep -rLE $(IMPORTS_TORCH) src/unbag reproduction/src --include="*.py")

test: lint
	@echo "Running the tests ..."
	@$(PYTEST) tests src

# All that `make test` leaves out, in one run of pytest: each run imports everything in every process,
# and has an end at which one of them is left alone with the last test.
test-slow: $(EXTRAS_INSTALLED)
	@echo "Checking types of what imports torch ..."
	@$(BIN)/basedpyright --pythonpath $(BIN)/python $$(grep -rlE $(IMPORTS_TORCH) src/unbag reproduction/src --include="*.py")
	@echo "Running the tests that need torch, data, a browser, the reproduction or much time ..."
	@$(PYTEST) -m "torch or data or browser or reproduction or slow" tests src reproduction

# Some five minutes more for each Python to install the package as people do.
test-all: $(INSTALLED)
	@.ci/test-all
	@$(BIN)/python .ci/test_wheel.py

# Without MINUTES or SEED, the same input as ever.
fuzz: $(INSTALLED)
	@echo "Trying hostile input ..."
	@cd tests && ../$(BIN)/python -m fuzz $(TARGETS) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(SEED),--seed $(SEED))

bench: $(INSTALLED)
	@echo "Timing kernels and fits (a few minutes) ..."
	@$(BIN)/python benchmarks/kernels.py
	@$(BIN)/python benchmarks/fits.py
	@$(BIN)/python benchmarks/annotate.py
	@$(BIN)/python benchmarks/scaling.py
	@$(BIN)/python benchmarks/out_of_core.py --bags 200000
	@$(BIN)/python benchmarks/cluster.py
	@$(BIN)/python benchmarks/evidence_page.py
	@$(BIN)/python benchmarks/against.py $(BASE)

docs: $(INSTALLED)
	@echo "Building the documentation ..."
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Written to build/site/index.html"

format: $(INSTALLED)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-* build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
