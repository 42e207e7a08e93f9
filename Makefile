# The verbs of the house; `make help` lists them. Everything is set up on first use: two virtual
# environments next to this file, one per supported engine, made again when pyproject.toml changes.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?=
MODEL  ?=
ARGS   ?=

NEWEST := .venv
OLDEST := .venv-mj315
OTHER  := .venv-other-python

# What `run` does.
HOSTED = $(if $(MODEL),run $(MODEL),demo)

PICK   := tools/pick_python.sh
# Another Python than the one of $(NEWEST) for one leg of `check`; empty when there is none.
OTHER_PYTHON = $(shell $(NEWEST)/bin/python -c 'import sys; \
    print(*["python3.%d" % m for m in (13, 12) if m != sys.version_info[1]])' 2>/dev/null \
    | xargs $(PICK) 2>/dev/null)

PYTEST := python -m pytest -q -rs
PIP    := python -m pip --disable-pip-version-check --quiet

.PHONY: help run test test-all test-slow lint format type docs docs-write bench check clean clean-all
.PHONY: test-oldest test-other-python

help:  ## list the verbs
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

run: $(NEWEST)/.ready  ## the demo (MODEL=path for a model of yours; ARGS= more flags)
	@if [ -t 0 ] && [ -t 1 ]; then $(NEWEST)/bin/mjhost $(HOSTED) $(ARGS); \
	else $(NEWEST)/bin/mjhost $(HOSTED) --seconds 10 $(ARGS); fi

test: $(NEWEST)/.ready  ## the suite on the newest engine
	$(NEWEST)/bin/$(PYTEST) $(ARGS)

test-oldest: $(OLDEST)/.ready
	$(OLDEST)/bin/$(PYTEST) $(ARGS)

test-all: $(NEWEST)/.ready $(OLDEST)/.ready  ## the suite on both engines, side by side
	$(NEWEST)/bin/python tools/side_by_side.py \
	    $(NEWEST)/bin/$(PYTEST) $(ARGS) -- $(OLDEST)/bin/$(PYTEST) $(ARGS)

test-slow: $(NEWEST)/.ready $(OLDEST)/.ready  ## soak and fuzz tests on both engines; minutes
	$(NEWEST)/bin/$(PYTEST) -m soak --timeout 3600 -o faulthandler_timeout=3000 $(ARGS)
	$(OLDEST)/bin/$(PYTEST) -m soak --timeout 3600 -o faulthandler_timeout=3000 $(ARGS)

test-other-python: $(NEWEST)/.ready
	@other="$(OTHER_PYTHON)"; if [ -z "$$other" ]; then \
	    echo "no second Python of 3.12 or newer: that leg of the suite was not run"; \
	else \
	    $(MAKE) --no-print-directory $(OTHER)/.ready && $(OTHER)/bin/$(PYTEST) -m "not slow and not soak"; \
	fi

lint: $(NEWEST)/.ready  ## ruff (rules and format) and the import contracts
	$(NEWEST)/bin/ruff check --quiet --output-format concise .
	$(NEWEST)/bin/ruff format --check --quiet .
	$(NEWEST)/bin/lint-imports --no-logo

format: $(NEWEST)/.ready  ## let ruff rewrite what it can
	$(NEWEST)/bin/ruff check --fix --quiet . || true
	$(NEWEST)/bin/ruff format --quiet .

type: $(NEWEST)/.ready  ## mypy --strict
	$(NEWEST)/bin/mypy

docs: $(NEWEST)/.ready  ## run every snippet of the documentation; check the generated pages
	$(NEWEST)/bin/$(PYTEST) tests/docs

docs-write: $(NEWEST)/.ready  ## write the generated pages anew
	for tool in tools/generate_*.py; do $(NEWEST)/bin/python $$tool || exit 1; done

bench: $(NEWEST)/.ready $(OLDEST)/.ready  ## the benchmarks on both engines
	$(NEWEST)/bin/python benchmarks/run.py $(ARGS)
	$(OLDEST)/bin/python benchmarks/run.py $(ARGS)

check: lint type test-all test-other-python  ## all that a change has to pass

clean:  ## remove caches and build results
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks examples tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

clean-all: clean  ## the same, and the virtual environments and downloads
	rm -rf $(NEWEST) $(OLDEST) $(OTHER) .cache

# ---------------------------------------------------------------------- virtual environments

# The other Python goes without the optional packages: that leg shows that they are optional.
$(NEWEST)/.ready: ENGINE := mujoco>=4.0,<4.1
$(NEWEST)/.ready: EXTRAS := dev,description,fast
$(OLDEST)/.ready: ENGINE := mujoco==3.15.0
$(OLDEST)/.ready: EXTRAS := dev,description,fast
$(OTHER)/.ready:  ENGINE := mujoco>=4.0,<4.1
$(OTHER)/.ready:  EXTRAS := dev,description,fast
$(OTHER)/.ready:  PYTHON = $(OTHER_PYTHON)

%/.ready: pyproject.toml
	@python="$$($(PICK) $(PYTHON))" || exit 1; \
	    test -x $*/bin/pip || "$$python" -m venv $*
	@echo "setting up $* ($(ENGINE))"
	@$*/bin/$(PIP) install --upgrade --editable '.[$(EXTRAS)]' '$(ENGINE)'
	@touch $@
