"""Test the model server on Ray with two replicas: equal results, and a message when both die."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import psutil
import pytest
from torch.testing import assert_close

from serving import models, race, recording
from serving.backend import router
from serving.backend.codec import ServerUnavailable
from serving.race import RaceRequest, RaceStarted, RaceStep
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.waiting import wait_until

pytest.importorskip("ray", reason="requirements-scale.txt is not installed")

pytestmark = pytest.mark.scale
ROOT = Path(__file__).resolve().parents[2]
REQUEST = RaceRequest(DECODER, "The next day is bright", 30)


def never(_: int) -> None:
    """Never stop."""


def replicas() -> list[psutil.Process]:
    running = psutil.process_iter(["name", "cmdline"])
    return [p for p in running if "ServeReplica:models" in " ".join(p.info["cmdline"] or [])]


def answers(address: str) -> bool:
    with contextlib.suppress(httpx2.HTTPError):
        return httpx2.get(f"{address}/healthz").status_code == 200
    return False


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = {"ATTENTION_LAB_REPLICAS": "2", "RAY_USAGE_STATS_ENABLED": "0"}
    server = subprocess.Popen(
        [sys.executable, "-m", "deploy.ray", f"--port={port}"],
        cwd=ROOT,
        env={**os.environ, **options, "PYTHONPATH": str(ROOT)},
    )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: answers(address) and len(replicas()) == 2)
        yield address
    finally:
        server.terminate()
        server.wait(60)


@pytest.fixture(autouse=True)
def _site(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_until(lambda: answers(address) and len(replicas()) == 2)
    monkeypatch.setenv("ATTENTION_LAB_SERVE_URL", address)
    monkeypatch.setattr(router, "_unavailable_until", 0.0)


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_recorded_passes_match_this_process(name: str):
    model = models.get(name)
    ids = model.tokenizer.encode("The animal didn't cross the street").ids
    received, expected = router.record_pass(model, ids), recording.record_pass(model, ids)
    # replicas may use a different number of threads, which changes the order of sums
    assert_close(vars(received.tensors), vars(expected.tensors), rtol=1e-4, atol=1e-4)
    assert router.outage_notice() == ""


def test_tokens_match_this_process():
    received, expected = (
        [event.cached.token_id for event in run(REQUEST, never) if isinstance(event, RaceStep)]
        for run in (router.race, race.race)
    )
    assert received == expected
    assert router.outage_notice() == ""


def test_killed_replicas_end_a_run_with_a_message():
    events = router.race(replace(REQUEST, max_new_tokens=200), never)
    assert isinstance(next(events), RaceStarted)
    for process in replicas():
        process.kill()
    with pytest.raises(ServerUnavailable, match="Press the button to start again"):
        list(events)
