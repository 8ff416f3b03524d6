# Needs git, make and Python >= 3.11; everything else goes into .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests and benchmarks start hundreds of processes: each would compile the package anew where this is set.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-long fuzz mutants lint bench owner-check docs site package reproduce clean

help:
	@echo "make demo    publish a made-up census and ask it questions (under a minute)"
	@echo "make test    run the tests"
	@echo "make test-long  run what takes minutes: servers that are killed, simulations"
	@echo "make fuzz    ten minutes of hostile inputs, counted by class; then the property tests on new examples"
	@echo "make mutants  change what guards promises here and there, and see that tests notice"
	@echo "make lint    check style and types"
	@echo "make bench   print the benchmarks as one table"
	@echo "make owner-check  planted dependences are found and random columns are not, on real and made-up tables"
	@echo "make docs    check links and references of the documentation"
	@echo "make site    build the documentation as a site in site/, which opens without a network"
	@echo "make package build the package in dist/, and try it in empty environments"
	@echo "make reproduce  repeat the papers' tables and write docs/explanation/reproduction.md"
	@echo "make clean   remove .venv and everything that tools left behind"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "deniable needs Python >= 3.11; '$(PYTHON)' is older. Fix: make PYTHON=python3.12 ..." >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/deniable demo

# Whole files stay on one worker, so that what a module sets up is set up once. They are taken in their own order, not by
# their number of tests: that would leave simulations, few and long, for the end, and one worker without work.
test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not long'

test-long: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m long || test $$? -eq 5

# Hostile inputs, then the property tests on new examples. MINUTES=60 looks longer.
MINUTES ?= 10
fuzz: $(READY)
	$(BIN)/python -m fuzz --minutes $(MINUTES)
	HYPOTHESIS_PROFILE=new $(BIN)/python -m pytest -q -n 2 -x -m hypothesis

# Mutants of what guards promises: each has to be noticed by a test. MUTANTS=200 tries more of them.
MUTANTS ?= 60
mutants: $(READY)
	$(BIN)/python -m fuzz.mutants --most $(MUTANTS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/run.py

docs: $(READY)
	$(BIN)/python docs/check.py

$(VENV)/.site: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site]'
	touch $@

# A warning is an error: a link that leads nowhere, a page that nothing leads to.
site: $(VENV)/.site
	$(BIN)/sphinx-build -q -W --keep-going -j 2 -c docs/site . site
	cp docs/site/index.html site/
	@echo "The site is in site/: open site/index.html."

package: $(READY)
	$(BIN)/python .ci/package

# The tables of the papers' experiments: DENIABLE_DATA names their folder; docs/how-to/evaluate.md says which.
DENIABLE_DATA ?= ../shared/data
reproduce: $(READY)
	$(BIN)/deniable reproduce all --data $(DENIABLE_DATA) --out docs/explanation/reproduction.md

owner-check: $(READY)
	$(BIN)/python -m benchmarks.owner_check --data $(DENIABLE_DATA)

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .bench
	find . -name __pycache__ -prune -exec rm -rf {} +
