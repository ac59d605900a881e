"""Settings for every test: no hub, nothing of the user's own models, quiet worker threads."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

# Before torch starts its threads, as in app.py: two busy processes on two cores stay usable.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
if "PYTEST_XDIST_WORKER" in os.environ:  # as many workers as cores: a thread for each
    os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="session", autouse=True)
def _session_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """None of the user's own models or settings; the converted SmolLM2 is shared with the site."""
    patch = pytest.MonkeyPatch()
    patch.setenv("HF_HUB_CACHE", str(tmp_path_factory.getbasetemp() / "empty-hub-cache"))
    for name in ("MODELS", "DOWNLOADS", "PREFETCH", "MAX_DOWNLOAD_GB"):
        patch.delenv(f"ATTENTION_LAB_{name}", raising=False)
    yield
    patch.undo()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of a process: Playwright runs once in it."""
    from benchmarks.browser import chromium

    with chromium() as browser:
        yield browser
