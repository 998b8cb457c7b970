.DEFAULT_GOAL := help
.PHONY: help install demo test check format generate psql bench wheels lock clean

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCES := umbra_compute agent/umbra_agent tests bench
STAMP := .venv/installed

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Make .venv with the commands umbra-compute and umbra-agent in it

# The lock holds a hash of every file that pip may take; both of ours are installed from here. Wheels
# only: to build anything else pip would fetch tools that no hash covers.
$(STAMP): requirements.lock pyproject.toml agent/pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Umbra Compute needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) --require-hashes --only-binary :all: --requirement requirements.lock
	@# setuptools warns of every editable install; the folders are as they are meant to be.
	PYTHONWARNINGS=ignore $(PIP) --no-build-isolation --no-deps --editable . --editable agent
	@touch $@

demo: install ## See real work run on three agents, one of which is killed in the middle
	$(BIN)/umbra-compute demo

check: install ## Format, lint, types and import rules
	$(BIN)/ruff format --check --quiet $(SOURCES)
	$(BIN)/ruff check --quiet $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: install ## Bring the code into its form
	$(BIN)/ruff format --quiet $(SOURCES)
	$(BIN)/ruff check --quiet --fix $(SOURCES)

test: check ## Everything, on a PostgreSQL of its own
	$(BIN)/python -m pytest -n 2

generate: install ## Make sql/schema.sql anew from the migrations
	$(BIN)/python -m tests.migrations.dump

psql: install ## A shell on the database of .dev, made and migrated if need be
	@$(BIN)/python -m tests.development

bench: install ## Measure, beside this machine's raw limits; writes bench/RESULTS.md
	$(BIN)/python -m bench

wheels: install ## Build both distributions into dist/
	rm -rf build agent/build dist
	$(BIN)/python -m build --wheel --no-isolation --outdir dist . >/dev/null
	$(BIN)/python -m build --wheel --no-isolation --outdir dist agent >/dev/null
	@ls dist/*.whl

lock: install ## Resolve the newest versions into requirements.lock
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
		--no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--output-file requirements.lock requirements.in

clean: ## Remove what make made
	rm -rf .venv build dist *.egg-info agent/build agent/*.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
