"""The model server on Ray, two replicas: the same answers, and what a killed one leaves."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest
from torch.testing import assert_close

from serving import models, race, recording
from serving.backend import choice
from serving.race import Ended, RaceStep, Request
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.until import until

pytest.importorskip("ray", reason="requirements-scale.txt is not installed")

pytestmark = pytest.mark.scale
ROOT = Path(__file__).resolve().parents[2]
REQUEST = Request(DECODER, "The next day is bright", 30)


def never(_: int) -> None:
    """Nobody stops."""


def replicas() -> list[psutil.Process]:
    running = psutil.process_iter(["name", "cmdline"])
    return [p for p in running if "ServeReplica:models" in " ".join(p.info["cmdline"] or [])]


def seconds_worked(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


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
        until(lambda: answers(address) and len(replicas()) == 2)
        yield address
    finally:
        server.terminate()
        server.wait(60)


@pytest.fixture(autouse=True)
def _asked(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    until(lambda: answers(address) and len(replicas()) == 2)
    monkeypatch.setenv(choice.VARIABLE, address)
    monkeypatch.setattr(choice, "_silent_until", 0.0)


@pytest.fixture(scope="module")
def expected() -> list[int]:
    return [e.cached.token_id for e in race.race(REQUEST, never) if isinstance(e, RaceStep)]


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_answers_are_those_of_this_process(name: str):
    model = models.get(name)
    ids = model.tokenizer.encode("The animal didn't cross the street").ids
    theirs, ours = choice.record(model, ids), recording.record(model, ids)
    # replicas may run with another number of threads, and sums in another order
    assert_close(vars(theirs.tensors), vars(ours.tensors), rtol=1e-4, atol=1e-4)
    assert choice.trouble() == ""


@pytest.mark.parametrize("killed", ["the one that works", "both"])
def test_the_visitor_of_a_killed_replica_gets_the_rest(killed: str, expected: list[int]):
    before = {process.pid: seconds_worked(process) for process in replicas()}
    told = []
    for event in choice.race(REQUEST, never):
        told.append(event)
        if len(told) == 4:
            worked = sorted(
                replicas(), key=lambda p: seconds_worked(p) - before.get(p.pid, 0.0), reverse=True
            )
            for process in worked[: 1 if killed == "the one that works" else None]:
                process.kill()
    steps = [event for event in told if isinstance(event, RaceStep)]
    assert [step.cached.token_id for step in steps] == expected
    assert isinstance(told[-1], Ended)
