"""Test the response format: events survive a round trip, malformed responses are rejected."""

from collections.abc import Iterator
from dataclasses import fields

import pytest
import torch
from torch.testing import assert_close

from serving.backend import codec
from serving.backend.codec import END, HEARTBEAT, ServerBusy, ServerUnavailable
from serving.limits import MAX_EVENT_BYTES, MAX_TENSOR_BYTES, OverLimit
from serving.race import CacheSize, RaceEnded, RaceStarted, RaceStep
from serving.recording import RecordedPass, RunTensors
from serving.step_times import StepTime
from serving.timing.measurement import ModelReady, PhaseStarted, TimedStep, WarmUpTimes

STEP = StepTime("decode", 7, -1.25, 0.5, 1, 3, 2, 100)
EVENTS = [
    RaceStarted("cpu, é \n"),
    RaceStep(STEP, STEP, 0.125, CacheSize(24, 24)),
    RaceEnded(""),
    ModelReady("cpu", 3, 4, {"core, cached": (1, 2, 3)}),
    WarmUpTimes("core, cached", 0.25, 0.5),
    PhaseStarted("measuring"),
    TimedStep(1, "core, cached", STEP, None, {"core, uncached": 2}),
]


def recording(size: int = 4) -> RecordedPass:
    names = [field.name for field in fields(RunTensors)]
    tensors = {name: torch.randn(2, 3, size).transpose(0, 2) for name in names}
    return RecordedPass(RunTensors(**tensors), 0.125)


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 100_000])
def test_events_survive_a_round_trip(size: int):
    data = b"".join([*map(codec.encode, EVENTS), HEARTBEAT, END, b"after the end"])
    assert list(codec.decode(chunks(data, size))) == [*EVENTS, None]


@pytest.mark.parametrize("size", [1, 100_000])
def test_tensors_keep_every_bit(size: int):
    sent = recording()
    data = HEARTBEAT + codec.encode(sent) + codec.encode(PhaseStarted("")) + END
    _, received, _ = codec.decode(chunks(data, size))
    assert isinstance(received, RecordedPass)
    assert received.scale == sent.scale
    assert_close(vars(received.tensors), vars(sent.tensors), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OverLimit("88 over the limit"), OverLimit),
        (ValueError("token 7"), ValueError),
        (LookupError("no weights"), ServerBusy),
        (OSError("no file"), ServerBusy),
    ],
)
def test_reported_errors(error: Exception, kind: type[Exception]):
    with pytest.raises(kind, match=str(error)) as raised:
        list(codec.decode(iter([codec.encode_error(error) + END])))
    assert type(raised.value) is kind


def test_truncated_response_is_rejected():
    whole = codec.encode(EVENTS[0]) + codec.encode(recording()) + END
    for end in [*range(0, len(whole) - 1, 7), len(whole) - 1]:
        with pytest.raises(ServerUnavailable):
            list(codec.decode(iter([whole[:end]])))


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
        b"[1, 2]\n",
        b'{"event": "Other"}\n',
        b'{"event": "Begun"}\n',
        b'{"event": "Begun", "device": "cpu", "more": 1}\n',
        b'{"event": "Timed", "step": [1]}\n',
        b'{"event": "Error", "kind": "SystemExit", "message": ""}\n',
        b'{"event": "Recording", "scale": 1, "tensor_bytes": 5}\nhello',
        b'{"event": "Recording", "scale": 1, "tensor_bytes": -1}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_malformed_responses_are_rejected(data: bytes):
    with pytest.raises(ServerUnavailable):
        list(codec.decode(iter([data, END])))


def test_limits_bound_what_is_read():
    n_read = 0

    def endless(start: bytes) -> Iterator[bytes]:
        nonlocal n_read
        yield start
        while True:
            n_read += 1000
            yield b"x" * 1000

    with pytest.raises(ServerUnavailable):
        list(codec.decode(endless(b"{")))
    assert n_read <= MAX_EVENT_BYTES + 10_000
    n_read = 0
    announced = b'{"event": "Recording", "tensor_bytes": %d}\n' % (MAX_TENSOR_BYTES + 1)
    with pytest.raises(ServerUnavailable) as raised:
        list(codec.decode(endless(announced)))
    assert f"{MAX_TENSOR_BYTES + 1:,}" in str(raised.value.__cause__)
    assert n_read <= 10_000
