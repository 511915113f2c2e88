# Every target makes the environment it needs and can be run again at any time.
#
#   PYTHON=python3.12   the interpreter to build the environment from
#   VENV=.venv-312      another environment beside the first
#   WORKERS=2           processes for the tests
#   MAX_EXAMPLES=100    hypothesis examples for each conformance test
#   ECOSYSTEM_ARGS=...  for the suites of other libraries, such as --suite scipy

VENV ?= .venv
WORKERS ?= 2
MAX_EXAMPLES ?= 100
PYTHON ?=
BENCH_ARGS ?=
ECOSYSTEM_VENV ?= .venv-ecosystem
ECOSYSTEM_ARGS ?= --runtime present

BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# Wall time for each generated example says how busy the machine is, not how numr behaves.
CONFORMANCE := $(BIN)/python -m conformance --disable-deadline -n $(WORKERS) \
	--max-examples $(MAX_EXAMPLES)
EXAMPLES := $(sort $(patsubst examples/%.py,examples.%,$(filter-out examples/_%,$(wildcard examples/*.py))))

.NOTPARALLEL:
.PHONY: help setup demo test check conformance ecosystem bench docs-test clean distclean
.PHONY: lint types test-unit test-all test-examples test-conformance

help:
	@echo 'make demo         run the main job on every runtime present'
	@echo 'make test         everything: lint, types, tests, doctests, examples, conformance'
	@echo 'make check        lint, types and unit tests: under two minutes'
	@echo 'make conformance  the official array-API suite (cloned where absent); writes docs/conformance.md'
	@echo 'make ecosystem    the suites of SciPy, scikit-learn and others on numr; writes docs/ecosystem.md'
	@echo 'make bench        benchmarks beside peers (BENCH_ARGS=... is passed on)'
	@echo 'make docs-test    the examples of docstrings and documentation pages'
	@echo 'make setup        only the environment ($(VENV))'
	@echo 'make clean        remove caches and build products; distclean also removes environments'

setup:
	@PYTHON='$(PYTHON)' sh tools/setup.sh '$(VENV)'

demo: setup
	$(BIN)/python -m examples.demo

check: lint types test-unit

test: lint types test-all docs-test test-examples test-conformance

lint: setup
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .

types: setup
	$(BIN)/python -m mypy

test-unit: setup
	$(PYTEST) -n $(WORKERS) tests/unit

test-all: setup
	$(PYTEST) -n $(WORKERS) --ignore=tests/docs --ignore=tests/ecosystem tests

docs-test: setup
	$(PYTEST) --doctest-modules numr tests/docs

test-examples: setup
	@test -n '$(EXAMPLES)' || { echo 'make: no program found in examples/' >&2; exit 1; }
	@set -e; for program in $(EXAMPLES); do \
		echo "$(BIN)/python -m $$program"; $(BIN)/python -m $$program; done

test-conformance: setup
	$(CONFORMANCE) --runtime present --if-found

conformance: setup
	$(CONFORMANCE) --runtime present --clone --write-status

# An environment of its own, with the versions of the libraries that the lists of expected failures are for.
ecosystem:
	@PYTHON='$(PYTHON)' sh tools/setup.sh '$(ECOSYSTEM_VENV)' ecosystem
	$(ECOSYSTEM_VENV)/bin/python -m pytest -n $(WORKERS) tests/ecosystem
	$(ECOSYSTEM_VENV)/bin/python -m tests.ecosystem -n $(WORKERS) --write-status $(ECOSYSTEM_ARGS)

bench: setup
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

clean:
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf '$(VENV)' '$(ECOSYSTEM_VENV)'
