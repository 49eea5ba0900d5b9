# `make check` is what continuous integration runs, and what must be green at each commit.
PYTHON ?= python

.PHONY: check format lint types imports test test-processes test-others test-all

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
# waiting, so the others run beside them. Both watch real processes, which a busy machine may starve
# past any patience: tests that fail (exit 1) are told, and run once more before they count.
test:
	$(MAKE) --jobs=2 --output-sync=target test-processes test-others

test-processes: TESTS = -o cache_dir=.pytest_cache/processes tests/sandboxes tests/rl
test-others: TESTS = -o cache_dir=.pytest_cache/others --ignore=tests/sandboxes --ignore=tests/rl
test-processes test-others:
	$(PYTHON) -m pytest -m "not slow" $(TESTS) || { [ $$? -eq 1 ] && \
	$(PYTHON) -m pytest -m "not slow" $(TESTS) --last-failed --last-failed-no-failures=none; }

test-all:
	$(PYTHON) -m pytest
