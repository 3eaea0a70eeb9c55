# make demo   the main job on small data, with its result printed
# make test   lint, types and every test
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CORE   := $(VENV)/.core
DEV    := $(VENV)/.dev
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
LOCK   := .lock-venv/bin/uv pip compile pyproject.toml --quiet --upgrade --universal --generate-hashes --no-annotate --no-header

.PHONY: demo test lint docs study-quick release fuzz audit lock clean

demo: $(CORE)
	$(BIN)/radocraft demo
	@echo "radocraft is in $(BIN): run 'source $(BIN)/activate' to have it on the path."

test: lint  # tests that lack something are skipped, and the last lines say what to install
	$(BIN)/python -m pytest -n 2 --dist loadfile -rs

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

$(CORE): pyproject.toml locks/core.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes --requirement locks/core.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	touch $@

$(DEV): $(CORE) locks/dev.txt
	$(PIP) install --require-hashes --requirement locks/dev.txt
	touch $@

release: $(DEV)  # what is published, into artefacts/release: make release KEY=an SSH key to sign with
	$(BIN)/python deploy/release.py artefacts/release $(if $(KEY),--key $(KEY))

fuzz: $(DEV)  # 200,000 inputs of every kind, for hours; a finding stops it and is kept as a test
	$(BIN)/python -m tests.fuzz.run all

audit: $(DEV)  # whether a row can be told from what leaves better than the account allows, by three testers; some minutes
	$(BIN)/python -m pytest -q -s tests/attacks/standing_audit.py

lock:  # write locks/ anew: every version and its hashes, for all Pythons and platforms
	$(PYTHON) -m venv .lock-venv
	.lock-venv/bin/python -m pip install --quiet uv
	$(LOCK) --group build --output-file locks/core.txt
	$(LOCK) --group build --extra net --output-file locks/net.txt
	$(LOCK) --group build --group dev --group docs --all-extras --output-file locks/dev.txt
	rm -rf .lock-venv

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
