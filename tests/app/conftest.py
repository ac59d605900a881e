"""The site under AppTest, on the bundled weights, without background work."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from pretrained import sources
from ui import attention, models
from ui.bounded import BoundedCache
from ui.caching.timing import sections as timing
from ui.compare.ablation import ranking

ROOT = Path(__file__).resolve().parents[2]
VIEWS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "views").glob("*/*.py"))


@pytest.fixture(scope="session", autouse=True)
def _installed_components_are_looked_for_once() -> Iterator[None]:
    """Every AppTest reads the metadata of every installed package, a tenth of a second each."""
    patch = pytest.MonkeyPatch()
    scan = functools.cache(manifest_scanner.scan_component_manifests)
    patch.setattr(manifest_scanner, "scan_component_manifests", scan)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")


@pytest.fixture(autouse=True)
def _no_ranking_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ablate ranks the heads on a short text unasked, seconds of work that few tests look at."""
    monkeypatch.setattr(ranking, "MAX_AT_ONCE_TOKENS", 0)


@pytest.fixture(autouse=True)
def _no_timing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Timing measures a tiny model when it opens, beside whatever a test measures."""
    monkeypatch.setattr(timing, "OPENING", None)


@pytest.fixture
def site() -> AppTest:
    """The frame, not yet run."""
    return AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which no package carries weights and no model was ever downloaded."""
    monkeypatch.setattr(sources, "package_folder", lambda package: None)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    # nor was anything loaded before; what other tests loaded is put aside, not thrown away
    nothing: BoundedCache[Any] = BoundedCache(0, lambda value: 1)
    monkeypatch.setattr(models, "_loaded", nothing)
    monkeypatch.setattr(attention, "_runs", nothing)


def open_page(site: AppTest, view: str, **query: str) -> AppTest:
    """Open one page, as a link with these query parameters would: the first run is the page's."""
    for key, value in query.items():
        site.query_params[key] = value
    # AppTest.switch_page wants a run of the home page before it, because it hashes the file's name
    # where st.navigation hashes the address
    site._page_hash = calc_hash(Path(view).stem.replace("_", "-"))
    site.run()
    assert site._finished_page_script_hash == site._page_hash, f"{view} is not among the pages"
    return site


def messages(site: AppTest) -> list[str]:
    """Every warning on the page, as it reads."""
    return [re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", element.value) for element in site.warning]
