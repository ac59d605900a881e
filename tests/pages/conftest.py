"""Run the site under AppTest with the bundled weights and without background work."""

import functools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from altair.utils.schemapi import SchemaBase, debug_mode
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from pages.compare.ablate import ranking
from pretrained import sources
from pretrained.specs import SPECS
from serving import models, runs
from serving.jobs import BackgroundJob, JobQueue
from tests.helpers.apptest import FRAME
from tests.helpers.axis_titles import unnamed_axes
from tests.helpers.jobs import finish
from ui.canvas import component
from ui.charts import show


@pytest.fixture(scope="session", autouse=True)
def _cache_installed_components() -> Iterator[None]:
    """Cache the metadata of installed packages, which takes 0.1 s per AppTest to read."""
    patch = pytest.MonkeyPatch()
    scan = functools.cache(manifest_scanner.scan_component_manifests)
    patch.setattr(manifest_scanner, "scan_component_manifests", scan)
    yield
    patch.undo()


def _no_channel(part: dict[str, Any], validate: bool = True) -> None:
    """Replace Altair's channel lookup, which takes 2 to 8 ms per call."""
    raise ValueError(f"encode() needs a channel such as alt.Text(...), not {part}")


def _with_named_axes(apply_theme: Callable[..., Any]) -> Callable[..., Any]:
    """Require a title on every axis."""

    def checked(chart: dict[str, Any], *colours: str) -> dict[str, Any]:
        if unnamed := list(unnamed_axes(chart)):
            raise ValueError(f"the axes {unnamed} of this chart have no title: {chart}")
        described: dict[str, Any] = apply_theme(chart, *colours)
        return described

    return checked


def _with_required_caption(with_caption: Callable[..., bytes]) -> Callable[..., bytes]:
    """Require captions for the rows and columns of every drawing."""

    def checked(data: bytes, facts: dict[str, str]) -> bytes:
        text = data if data[4:5] != b"{" else data[4 : 4 + int.from_bytes(data[:4], "little")]
        if not re.search(r"\b(row|box|tile|line|left)", json.loads(text)["says"]):
            raise ValueError(f"this drawing does not say what it shows: {text[:200]!r}")
        return with_caption(data, facts)

    return checked


@pytest.fixture(scope="session", autouse=True)
def _check_pictures() -> Iterator[None]:
    """Fail on charts that are invalid, slow or unlabeled before they reach the site."""
    patch = pytest.MonkeyPatch()
    patch.setattr(show, "CHECKED", True)
    patch.setattr(SchemaBase, "from_dict", _no_channel)
    patch.setattr(show, "_apply_theme", _with_named_axes(show._apply_theme))
    patch.setattr(component, "with_caption", _with_required_caption(component.with_caption))
    with debug_mode(True):
        yield
    patch.undo()


@pytest.fixture(autouse=True)
def _reject_blank_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reject tables with blank rows, whether in the data or because of their height."""
    results: list[list[str]] = []
    draw = st.dataframe

    def dataframe(data: Any, **options: Any) -> Any:
        table = data if isinstance(data, pd.DataFrame) else data.data
        height = options.get("height")
        too_high = isinstance(height, int) and height > 35 * (len(table) + 1) + 3
        if too_high or (table.isna() | (table == "")).all(axis=1).any():
            results.append([*table])
        return draw(data, **options)

    monkeypatch.setattr(st, "dataframe", dataframe)
    yield
    assert results == []


@pytest.fixture(autouse=True)
def _disable_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_LAB_WARMUP", "off")


@pytest.fixture(autouse=True)
def _stop_jobs_after_each_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop a page's jobs, so that they don't use compute slots in later tests."""
    put, jobs = JobQueue.put, list[BackgroundJob]()

    def put_and_record(queue: JobQueue, job: BackgroundJob, **how: Any) -> None:
        put(queue, job, **how)
        jobs.append(job)

    monkeypatch.setattr(JobQueue, "put", put_and_record)
    yield
    for job in jobs:
        job.stop()
    for job in jobs:
        finish(job)


@pytest.fixture(autouse=True)
def _disable_automatic_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable Ablate's automatic ranking, which takes seconds that few tests need."""
    monkeypatch.setattr(ranking, "MAX_AT_ONCE_TOKENS", 0)


@pytest.fixture
def site() -> AppTest:
    """The app, before its first run."""
    return AppTest.from_file(FRAME, default_timeout=60)


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Hide the weights in packages, in the project and in the download cache."""
    monkeypatch.setattr(sources, "package_folder", lambda package: None)
    monkeypatch.setattr(sources, "TRAINED_HERE", tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    # Set models loaded by other tests aside instead of discarding them.
    with models.by_key.disabled(), runs.run_forward.disabled():
        yield


@pytest.fixture
def only_a_small_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make a random GPT-2 the only model, so that pages show it by default."""
    import transformers

    config = transformers.GPT2Config(n_positions=128, n_embd=12, n_layer=2, n_head=3)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "small")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    bundled = {spec.package for spec in SPECS}
    folder = sources.package_folder
    monkeypatch.setattr(sources, "package_folder", lambda p: None if p in bundled else folder(p))
    monkeypatch.setattr(sources, "TRAINED_HERE", tmp_path / "none")
