# Thin targets; each one sets up what it needs on a machine that has only Python 3.11 and make.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
UV_VERSION := 0.13.7
UV := UV_PYTHON_DOWNLOADS=never .tools/bin/uv
BIN := .venv/bin

.PHONY: help
help: ## show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

.tools/bin/uv: Makefile
	@$(PYTHON) -c 'import sys; sys.exit("Ropewalk needs Python 3.11 or newer; set PYTHON=…") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv .tools && .tools/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

.venv/.ready: .tools/bin/uv requirements.lock pyproject.toml
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv
	@VIRTUAL_ENV=.venv $(UV) pip sync --quiet --compile-bytecode --require-hashes requirements.lock
	@VIRTUAL_ENV=.venv $(UV) pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src # half of what a command takes to start where Python keeps no bytecode by itself
	@touch $@

.PHONY: setup
setup: .venv/.ready debian ## install everything into .venv

# Only the tests of wrong clocks, of power losses and of MySQL want them, and say so when they are missing: nothing else fails for it.
.PHONY: debian
debian: .tools/bin/uv
	@{ compgen -G '/usr/lib/*/faketime/libfaketime.so.1' && command -v strace && command -v mariadbd; } > /dev/null \
	  || [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null \
	  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends libfaketime strace mariadb-server-core; } > .tools/debian.log 2>&1 \
	  || echo "libfaketime, strace and mariadb-server-core could not be installed, see .tools/debian.log"

.PHONY: lock
lock: .tools/bin/uv ## resolve the dependencies anew into requirements.lock
	$(UV) pip compile pyproject.toml --group dev --universal --generate-hashes --no-annotate --no-header --upgrade \
	  --python-version 3.11 --quiet --output-file requirements.lock

# The rules of the source that are held; to hold all of them: sleeps modules collaborators
HOUSE := sleeps modules collaborators

.PHONY: check
check: setup ## style, types, architecture, generated files, plain words (under 20 s)
	@$(BIN)/ruff format --check --quiet . || { echo "run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-cache > .lint.log || { cat .lint.log; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/python -m tools.generate --check
	@$(BIN)/python -m tools.words
	@$(BIN)/python -m tools.house $(HOUSE) > /dev/null

.PHONY: house
house: setup ## how long the source is, which modules are too long or know too many others, and how far a start walks
	@$(BIN)/python -m tools.house --report
	@$(BIN)/python -m tools.walk --report

.PHONY: format
format: setup ## let ruff mend what it can
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --quiet --fix .

.PHONY: generate
generate: setup ## write the generated docs anew
	@$(BIN)/python -m tools.generate

.PHONY: picture
picture: setup ## draw the picture of the README from a real run, killed and resumed
	@$(BIN)/python -m tools.picture

.PHONY: test
test: check ## every check and every test
	@$(BIN)/python -m tools.test

.PHONY: demo
demo: setup .tools/curl ## a workflow run, killed, resumed; a dead letter mended; a fleet that loses a worker; the service by curl
	@$(BIN)/python -m tools.demo

.tools/curl: | .tools/bin/uv
	@command -v curl > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && apt-get install -y -qq curl > /dev/null; } \
	  || { echo "install curl for the last part of the demo"; exit 1; }
	@touch $@

.PHONY: bench
bench: setup ## what the core costs, as JSON lines
	@$(BIN)/python -m tools.bench

.PHONY: fuzz
fuzz: setup ## one million random expressions
	@$(BIN)/python -m tools.fuzz --count 1000000

.PHONY: fuzz-api
fuzz-api: setup ## ten thousand requests made from the API's own description
	@$(BIN)/python -m tools.fuzz_api --count 10000

.PHONY: simulate
simulate: setup ## one million simulated histories
	@$(BIN)/python -m tools.simulate --histories 1000000

.PHONY: simulate-engine
simulate-engine: setup ## ten thousand histories of the real engine on a simulated store
	@$(BIN)/python -m tools.simulate_engine --histories 10000

.PHONY: million
million: setup ## W1 and the claim beside a million finished executions
	@$(BIN)/python -m tools.million --store both

.PHONY: crash
crash: setup ## 500 kill -9 cycles and power losses
	@$(BIN)/python -m tools.crash --cycles 500

.PHONY: rates
rates: setup ## bulk work against servers that fail, and a rate limit that three workers keep for a minute
	@$(BIN)/python -m tools.rates

.PHONY: faults
faults: setup ## disks that fail, stores that are replaced or go back in time, slow names, worst documents
	@$(BIN)/python -m tools.faults

.PHONY: deliveries
deliveries: setup ## five thousand webhook deliveries, some repeated, some forged, while the server is killed twice
	@$(BIN)/python -m tools.deliveries
