# Everything a clone needs: `make demo` and `make test` build what they need first, and are quick the second time.
PYTHON ?= python3.11
BIN := .venv/bin
# Fast ones first, two at a time; those that start engines or Ray have the machine to themselves.
QUICK := tests/test_architecture.py tests/test_docs.py tests/unit tests/crash tests/simulation

.PHONY: help env model demo serve test test-full lint lock examples clean

help:  ## show this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

env: .venv/.ready  ## the virtual environment, from requirements/cpu.lock (about 4 GB)

.venv/.ready: requirements/cpu.lock requirements/install.sh pyproject.toml
	$(PYTHON) -m venv .venv
	requirements/install.sh $(BIN)/python requirements/cpu.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

model: env  ## convert the embedded model into the user's cache (once, about 25 s)
	@$(BIN)/python -m pipeline.engines.models

demo: model  ## real documents of three schemas through real vLLM on this machine's CPU
	$(BIN)/python -m jobs.gather_demo
	$(BIN)/gristmill run jobs/demo.yaml
	$(BIN)/python -m jobs.demo_report
	$(BIN)/gristmill inspect jobs/.out/demo --layer 1 --limit 1
	$(BIN)/gristmill inspect jobs/.out/demo --layer 2 --limit 1
	$(BIN)/gristmill inspect jobs/.out/demo --layer 3 --limit 1
	$(BIN)/gristmill inspect jobs/.out/demo --status rejected --limit 1

serve: model  ## the online endpoint on this machine's CPU, until Ctrl-C; GRISTMILL_TOKEN must hold a token
	RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=pipeline.serve_app.proxy:middlewares $(BIN)/serve run serve_configs/online_cpu.yaml

test: model lint  ## what must pass before a change lands
	$(BIN)/python -m pytest -n 2 -m "not slow" $(QUICK)
	$(BIN)/python -m pytest -m "not slow" tests/integration tests/engine

test-full: model lint  ## with the tests that take longer
	$(BIN)/python -m pytest -n 2 $(QUICK)
	$(BIN)/python -m pytest tests/integration tests/engine

lint: env  ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock:  ## resolve requirements/*.lock anew; needs a Python 3.11 with a current pip
	$(PYTHON) requirements/lock.py cpu
	$(PYTHON) requirements/lock.py gpu

examples: env  ## render deploy/examples anew, as after a change of defaults
	for values in deploy/examples/*.values.yaml; do $(BIN)/gristmill render $$values --output $${values%.values.yaml}.rendered.yaml || exit 1; done

clean:  ## remove the environment and what the demo wrote
	rm -rf .venv jobs/.data jobs/.out
