# Neuron. `make help` says what there is.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help setup run test check bench doctor clean

help: ## what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/ready ## make the virtual environment with the pinned requirements

run: setup ## start Neuron; Ctrl-C stops everything. PORT=8001 make run for another port
	@exec $(BIN)/python manage.py up

test: $(VENV)/ready-dev ## run every test
	@$(BIN)/python -m pytest $(ARGS)

check: $(VENV)/ready-dev ## lint, types, import contracts, deployment, migrations, API description
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	SECRET_KEY=types $(BIN)/mypy .
	$(BIN)/lint-imports
	NEURON_URL=https://neuron.example $(BIN)/python manage.py check --deploy --fail-level WARNING
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --file $(VENV)/openapi.yaml
	diff -u docs/openapi.yaml $(VENV)/openapi.yaml

bench: $(VENV)/ready-dev ## measure; the figures in docs/ come from here
	@for file in benchmarks/[a-z]*.py; do $(BIN)/python "$$file" || exit 1; done

doctor: setup ## look whether everything is well, and say what mends it
	@$(BIN)/python manage.py doctor

clean: ## remove the virtual environment; var/, which holds the data, stays
	rm -rf $(VENV)

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit("Neuron needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12 run" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV) || (echo "The virtual environment could not be made. On Debian: apt install python3-venv" && exit 1)
	@touch $(VENV)/made

$(VENV)/ready: requirements.txt | $(VENV)/made
	@echo "Setting up; this takes a minute or two the first time."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m memory.quantising
	@touch $(VENV)/ready

$(VENV)/ready-dev: requirements-dev.txt $(VENV)/ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $(VENV)/ready-dev
