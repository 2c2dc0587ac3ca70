# Two commands need nothing but Python 3.11+ and make: `make quickstart` and `make test`.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SHARED ?= ../shared

.DEFAULT_GOAL := help
.PHONY: help quickstart install dev test test-browser check lint format types layers unit bench clean

help: ## Show this help
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("kdsl needs Python 3.11 or newer, found " + sys.version.split()[0] + "; set PYTHON=…") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

install: $(VENV)/.installed ## Make a virtual environment with kdsl in it

dev: $(VENV)/.dev ## The same, with what tests and linters need

quickstart: install ## Schedule examples/quickstart with the shipped rules
	$(BIN)/kdsl simulate --cluster examples/quickstart/cluster.yaml --pods examples/quickstart/pods.yaml

test: lint types unit ## Install what tests need and run everything

test-browser: dev ## Open reports in headless Chromium; as root, apt-get installs it if it is missing
	@sh tests/browser/install_chromium.sh
	@if $(BIN)/python -m tests.browser.chromium >/dev/null 2>&1; then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]' && \
	  KDSL_BROWSER=required $(BIN)/python -m pytest -rs tests/browser; \
	else echo 'The browser tests are skipped: there is no Chromium.'; fi

test-ray: dev ## Run sweeps on a Ray cluster of this machine; installs Ray (300 MB)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[ray]'
	$(BIN)/python -m pytest -rs tests/lab/test_ray.py

check: test test-browser ## What CI runs, in the same order

lint: dev ## Style and formatting of Python and rule files
	$(BIN)/ruff check kdsl plugins tests
	$(BIN)/ruff format --check kdsl plugins tests
	$(BIN)/kdsl fmt --check rules
	$(BIN)/kdsl check rules

format: dev ## Rewrite Python and rule files in the house style
	$(BIN)/ruff check --fix kdsl plugins tests
	$(BIN)/ruff format kdsl plugins tests
	$(BIN)/kdsl fmt rules

types: dev ## mypy: strict, and names and calls of the tests
	MYPY_NUM_WORKERS=2 $(BIN)/mypy

unit: dev ## Tests, import layers and reference vectors
	$(BIN)/python -m pytest -n 2 --dist worksteal -rs

bench: dev ## Measure two shapes, a live scheduler and the openb trace (set SHARED to the folder that holds traces/openb)
	$(BIN)/python -m tests.bench.decisions --shape basic --shape mixed --nodes 1000 --pods 500 --bound 500
	$(BIN)/python -m tests.bench.live --nodes 1000 --pods 1000
	$(BIN)/python -m tests.bench.openb $(SHARED)/traces/openb

clean: ## Remove what make made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
