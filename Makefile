# Everything that can be run. `make` alone prints this list.
# The first recipe that needs it makes .venv from the lock files; nothing outside this folder is touched.

VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.installed-run
DEV := $(VENV)/.installed-dev
SLOWEST := --durations 25 --durations-min 2
# Processes of `make test`. More than cores: a test often waits for a browser or for another process.
WORKERS := 5
# Processes of its second part: most of its tests wait for a clock, side by side; the others take turns.
WAITING := 3

# Where this is set, every process would recompile its modules: a second each.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo dispatch test storm gameday lint check quick bench lab peers docs site screenshots release lock clean

help:  ## print this list
	@sed -n 's/^\([a-z]*\):.*## /\1 /p' Makefile | while read -r name what; do printf '  make %-11s %s\n' "$$name" "$$what"; done

demo: $(RUN)  ## a populated box office on http://127.0.0.1:8000 (ARGS="--port 0" for a free port)
	$(BIN)/holdfast demo $(ARGS)

dispatch: $(DEV)  ## ride dispatch on a live map: another use of holdfast.claim (ARGS="--port 0" for a free port)
	$(BIN)/python -m examples.dispatch $(ARGS)

test: $(DEV)  ## every test, on real engines it starts itself (ARGS="tests/stores -k hold" for some)
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	@failed=0; set -x; \
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder -m "not alone" $(SLOWEST) || failed=1; \
	$(BIN)/python -m pytest -n $(WAITING) --dist loadscope --no-loadscope-reorder -m alone $(SLOWEST) || failed=1; \
	exit $$failed
endif

storm: $(DEV)  ## the storms of the tests at their whole size, with their figures: minutes
	$(BIN)/python -m pytest tests/storms --full -s $(ARGS)

gameday: $(DEV)  ## plant ten faults in a running box office; see that doctor, alerts and dashboards name them: minutes
	$(BIN)/python -m pytest tests/storms/test_game_day.py --full -s $(ARGS)

lint: $(DEV)  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: $(DEV)  ## lint, tidiness and rules: no engines, seconds
	@$(MAKE) --no-print-directory --output-sync=target -j2 lint quick

quick: $(DEV)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not alone" tests/tidy tests/rules

bench: $(DEV)  ## measure the hot path; table and plot go to bench/results (ARGS="--rounds 1 --only bookings" for a look)
	$(BIN)/python -m bench $(ARGS)

lab: $(DEV)  ## sell seats in fourteen ways; results go to lab/results and docs/lab.md (ARGS="--rounds 1 --only naive" for a look)
	$(BIN)/python -m lab $(ARGS)

peers: $(DEV)  ## install pretix into a cache folder and compare it with Holdfast on this machine: minutes
	$(BIN)/python -m bench.peers $(ARGS)

docs: $(DEV)  ## write the pages that are made from the code
	$(BIN)/python -m tools.write_docs

site: $(DEV)  ## the documentation as a static site in build/site, with search; needs no network
	$(BIN)/python -m tools.docs_site $(ARGS)

screenshots: $(DEV)  ## retake the pictures in docs/pictures; needs Chromium
	$(BIN)/python -m tools.screenshots
	$(BIN)/python -m tools.dispatch_screenshots

release: $(DEV)  ## rehearse a release: build it twice, check it, sign it; keeps nothing (ARGS="--output dist --key FILE" does)
	$(BIN)/python -m tools.release $(ARGS)

lock:  ## write requirements/*.txt from pyproject.toml; needs uv (ARGS="--upgrade" for newer versions)
	uv pip compile pyproject.toml --group dev --group bench --group docs --group examples --group build $(LOCK) $(ARGS) -o requirements/dev.txt
	uv pip compile pyproject.toml --group build $(LOCK) -c requirements/dev.txt -o requirements/run.txt
	uv pip compile pyproject.toml --group build $(EXTRAS) $(LOCK) -c requirements/dev.txt -o requirements/image.txt
	uv pip compile --group release $(LOCK) -o requirements/release.txt

EXTRAS := --extra stripe --extra razorpay --extra nats --extra kafka --extra tracing --extra archive
LOCK := --universal --generate-hashes --no-emit-index-url --no-header -q

clean:  ## remove what the recipes made: the environment, the site, caches, the demo's data
	rm -rf $(VENV) build .holdfast .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN): requirements/run.txt tools/venv.sh
	@sh tools/venv.sh requirements/run.txt
	@touch $@

$(DEV): requirements/dev.txt tools/venv.sh
	@sh tools/venv.sh requirements/dev.txt
	@touch $@ $(RUN)
