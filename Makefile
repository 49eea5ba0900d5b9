# `make check` is what continuous integration runs, and what must be green at each commit.
PYTHON ?= python

.PHONY: check format lint types imports test test-sandboxes test-others test-all

check: lint types imports test

format:
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

lint:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .

types:
	$(PYTHON) -m mypy

imports:
	$(PYTHON) -c "from importlinter.cli import lint_imports_command as lint; lint()"

# Each slow test has a short form among the others. Half of the time of the sandboxes' tests is
# waiting, so the others run beside them.
test:
	$(MAKE) --jobs=2 --output-sync=target test-sandboxes test-others

test-sandboxes:
	$(PYTHON) -m pytest -m "not slow" tests/sandboxes

test-others:
	$(PYTHON) -m pytest -m "not slow" --ignore=tests/sandboxes

test-all:
	$(PYTHON) -m pytest
