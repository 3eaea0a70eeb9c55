# make demo   the main job on small data, with its result printed
# make test   lint, types and every test
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CORE   := $(VENV)/.core
DEV    := $(VENV)/.dev
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
EXTRAS := linkage,net,postgres,spark,study

.PHONY: demo test lint docs study-quick lock clean

demo: $(CORE)
	$(BIN)/radocraft demo
	@echo "radocraft is in $(BIN): run 'source $(BIN)/activate' to have it on the path."

test: lint  # tests that lack something are skipped, and the last lines say what to install
	$(BIN)/python -m pytest -n 2 --dist loadgroup -rs

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(DEV)  # the documentation site, into artefacts/site
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/picture.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

study-quick: $(DEV)  # every domain at two corners of its range, under five minutes on two cores
	mkdir -p artefacts
	$(BIN)/radocraft study run --preset quick --jobs 2 --output artefacts/study-quick.parquet
	$(BIN)/radocraft study summary artefacts/study-quick.parquet

$(CORE): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	$(PIP) install --constraint constraints.txt --editable .
	touch $@

$(DEV): $(CORE)
	$(PIP) install --constraint constraints.txt --group dev --group docs --editable ".[$(EXTRAS)]"
	touch $@

lock:  # write constraints.txt anew from what a fresh install resolves to
	rm -rf .lock-venv
	$(PYTHON) -m venv .lock-venv
	.lock-venv/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.lock-venv/bin/python -m pip install --quiet --group dev --group docs --editable ".[$(EXTRAS)]"
	.lock-venv/bin/python -m pip freeze --exclude-editable > constraints.txt
	rm -rf .lock-venv

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
