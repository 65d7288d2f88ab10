# Two commands do all the set-up: `make fit` and `make test`. They need Python 3.11 or newer, and nothing else.
#
# One environment, $(VENV), filled in two steps: `core.stamp` says that requirements/core.lock is in it (all that
# `make fit` needs), `full.stamp` that torch, requirements/full.lock and requirements/baselines.lock are, too. The
# core's pins are a subset of the full ones, so the order of the two commands does not matter.

VENV ?= .venv
# The first of these that runs and is new enough; the locks are made for 3.11. Choose another: make PYTHON=… fit
NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
PYTHON ?= $(shell for each in python3.11 python3; do $$each $(NEW_ENOUGH) && { echo $$each; break; }; done)
# Passed on to the command behind fit, test and bench: make test ARGS="-k resume -x"
ARGS ?=
# Tests run in one process for each core, at most four: each keeps simulators, and zygotes of its sandboxes, in memory.
# Whoever is done takes tests of another; ARGS="-n 0" runs them in one process, in order.
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist worksteal
# Which benchmark `make bench` runs; it lists them without.
NAME ?=
# The room that `make check` looks at: a folder of grace_irl, with its tests in the folder of that name in tests.
ROOM ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --progress-bar off
CORE := $(VENV)/core.stamp
FULL := $(VENV)/full.stamp

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help fit test slow core check room browser lint types format site bench lock protos clean distclean

help: ## Show this list
	@grep -E '^[a-z]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z]+):.*## (.*)/\1\t\2/' | expand -t 12

fit: $(CORE) ## Recover a reward from the demonstrations that ship, and print it
	$(BIN)/grace-irl fit --demos datasets/babyai-go-to-obj $(ARGS)

test: $(FULL) ## Run the tests but those that take long, in about 14 minutes of two cores
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m 'not slow' $(ARGS)

slow: $(FULL) ## Run the tests that take long, in about 25 minutes of two cores
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m slow $(ARGS)

# Rooms whose tests need no torch, for Pythons that have no file of its pin; full.lock's other packages are the same.
CORE_ROOMS := programs sandbox evaluate search states

core: $(CORE) ## Test the core under another Python: make core PYTHON=python3.13 VENV=.venv-3.13
	@$(PIP) --no-deps --require-hashes -r requirements/full.lock
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) -m 'not slow' $(addprefix tests/,$(CORE_ROOMS)) $(ARGS)

# Tests of a room leave those out that are marked slow, as `make test` does: `make slow` runs them. The suites of grace_irl.testing come with
# every room, because whoever changes one may break what another promises.
SUITES = $(shell grep -rl --include='test_*.py' '^from grace_irl\.testing' tests)

ROOMS = $(notdir $(patsubst %/__init__.py,%,$(wildcard grace_irl/*/__init__.py)))

check: room $(FULL) ## Check one room, in under two minutes: make check ROOM=search
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q $(SIDE_BY_SIDE) -m 'not slow' $(wildcard tests/$(ROOM)) $(SUITES) $(ARGS)

room:
	@test -d 'grace_irl/$(or $(ROOM),-)' || { echo "make: ROOM=$(ROOM); expected one of $(ROOMS)" >&2; exit 2; }

browser: ## Install Chromium for the tests of the report (Debian and Ubuntu, as root); without one they are skipped
	apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium

lint: $(FULL) ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(FULL) ## Check types
	$(BIN)/mypy
	$(BIN)/mypy --config-file benchmarks/mypy.ini benchmarks docs

format: $(FULL) ## Repair style and formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The theme's makers announce a successor at each build; the line is theirs, and nothing is to be done about it here.
site: $(FULL) ## Build the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

bench: $(FULL) ## List the benchmarks, or run one: make bench NAME=sandbox_throughput
ifeq ($(NAME),)
	@for each in benchmarks/*.py; do printf '%-28s %s\n' "$$(basename $$each .py)" "$$(sed -n '1s/"""//gp' $$each)"; done
else
	$(BIN)/python benchmarks/$(NAME).py $(ARGS)
endif

$(CORE): requirements/core.lock pyproject.toml
	@$(or $(PYTHON),false) $(NEW_ENOUGH) || { echo "make: $(or $(PYTHON),no Python) found;" \
		"expected Python 3.11 or newer: install it, or say where it is: make PYTHON=… $(MAKECMDGOALS)" >&2; exit 2; }
	@echo "setting up $(VENV): the core"
	@test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@$(PIP) --no-deps --require-hashes -r requirements/core.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# torch comes with its own dependencies, which differ from machine to machine (CPU or CUDA). It comes after full.lock, so
# that what both need is there already, from files that were checked; whatever it changes is set right again.
$(FULL): requirements/torch.lock requirements/full.lock requirements/baselines.lock $(CORE)
	@echo "setting up $(VENV): torch, simulators, baselines and development tools"
	@$(PIP) --no-deps --require-hashes -r requirements/full.lock
	@$(PIP) -r requirements/torch.lock
	@$(PIP) --no-deps --require-hashes -r requirements/full.lock -r requirements/baselines.lock
	@touch $@

# Exact pins without addresses: what pyproject.toml asks for, and setuptools to install the project itself. Needs uv.
UV ?= uv
# Packages that ask for other versions than work, or for more than they need here (requirements/baselines.override).
NO_DEPS := imitation==1.0.1 flappy-bird-gymnasium==0.4.0 box2d==2.3.10
# uv does not read pip's configuration, where a machine may keep the folder with its build of torch.
LOCK = $(UV) pip compile --quiet --python-version 3.11 --no-header --no-annotate --no-emit-index-url \
	--no-emit-find-links $(addprefix --find-links ,$(PIP_FIND_LINKS))
PINS = $(LOCK) --upgrade --constraint requirements/torch.lock
OWN_OF_TORCH := '^(torch|triton|nvidia-|cuda-)'

lock: ## Renew the exact pins in requirements/, with the hashes of their files (needs uv)
	echo setuptools | $(PINS) pyproject.toml - --extra all --output-file requirements/all.tmp
	grep -Ev $(OWN_OF_TORCH) requirements/all.tmp >requirements/full.tmp
	echo setuptools | $(PINS) pyproject.toml - --constraint requirements/full.tmp --output-file requirements/core.tmp
	printf '%s\n' $(NO_DEPS) | $(PINS) pyproject.toml - --extra baselines --constraint requirements/full.tmp \
		--override requirements/baselines.override --output-file requirements/all.tmp
	grep -Ev $(OWN_OF_TORCH) requirements/all.tmp | grep -vxFf requirements/full.tmp >requirements/baselines.tmp
	for each in core full baselines; do $(LOCK) --no-deps --generate-hashes requirements/$$each.tmp \
		--output-file requirements/$$each.lock || exit; done
	rm requirements/*.tmp

# Its version and the protobuf runtime of pyproject.toml go together: grace_irl/demos/ui/androidcontrol.proto.
PROTOC ?= protoc

protos: ## Generate the protocol buffers' Python again (needs protoc)
	$(PROTOC) -I. --python_out=. --pyi_out=. grace_irl/demos/ui/androidcontrol.proto

clean: ## Remove caches and build output; runs and the environment stay
	rm -rf build dist site *.egg-info baselines/build baselines/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## Remove the environment, too; runs stay
	rm -rf $(VENV)
