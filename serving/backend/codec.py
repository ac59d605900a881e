"""The protocol between a site and a model server.

A request is a JSON object. A response is a stream of lines. Each line is a JSON object with the
name of an event, or empty as a heartbeat. If a line has `tensor_bytes`, that many bytes in
safetensors format follow. A response that doesn't end with `END` is incomplete.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, BinaryIO

from serving import race
from serving.limits import MAX_EVENT_BYTES, MAX_TENSOR_BYTES, OverLimit
from serving.recording import RecordedPass, RunTensors
from serving.step_times import StepTime
from serving.timing import measurement

if TYPE_CHECKING:
    from torch import Tensor

Event = RecordedPass | race.Event | measurement.Event

HEARTBEAT, END = b"\n", b'{"event": "End"}\n'


class ServerBusy(ConnectionError):
    """The server can't run this request now: it has no free slot or can't load the model."""


class ServerUnavailable(ConnectionError):
    """The server doesn't respond, or its response is malformed or incomplete."""


def encode(event: Event) -> bytes:
    """An event as a line, followed by its tensors."""
    name = type(event).__name__
    if not isinstance(event, RecordedPass):
        return _line(event=name, **asdict(event))
    from safetensors.torch import save

    tensors = save({name: tensor.contiguous() for name, tensor in vars(event.tensors).items()})
    return _line(event=name, scale=event.scale, tensor_bytes=len(tensors)) + tensors


def encode_error(error: Exception) -> bytes:
    """An error as a line: the site raises OverLimit, ServerBusy or ValueError."""
    cannot_load = isinstance(error, (LookupError, OSError))
    kind = OverLimit if isinstance(error, OverLimit) else ServerBusy if cannot_load else ValueError
    return _line(event="Error", kind=kind.__name__, message=str(error))


def _line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def decode(chunks: Iterator[bytes]) -> Iterator[Event | None]:
    """Yield the events of a response from chunks of any size; None for a heartbeat.

    Raises: ServerUnavailable if the response is malformed, too large or incomplete; otherwise the
    error that the server reports (`encode_error`).
    """
    file = io.BufferedReader(_Chunks(chunks))
    while (line := file.readline(MAX_EVENT_BYTES)) != END:
        try:
            event = None if line == HEARTBEAT else _event(line, file)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ServerUnavailable("the response is malformed or incomplete") from error
        if isinstance(event, Exception):
            raise event
        yield event


class _Chunks(io.RawIOBase):
    """A file-like object that reads the chunks of a response."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or next(self._chunks, b"")
        n_bytes = min(len(buffer), len(self._rest))
        buffer[:n_bytes], self._rest = self._rest[:n_bytes], self._rest[n_bytes:]
        return n_bytes


def _event(line: bytes, file: BinaryIO) -> Event | Exception:
    fields = json.loads(line)
    name = fields.pop("event")
    if name == "Error":
        return _ERRORS[fields["kind"]](str(fields["message"]))
    if "tensor_bytes" in fields:
        fields["tensors"] = _tensors(fields.pop("tensor_bytes"), file)
    for field in fields.keys() & _NESTED.keys():
        fields[field] = _NESTED[field](fields[field])
    event: Event = _EVENTS[name](**fields)
    return event


def _tensors(n_bytes: int, file: BinaryIO) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    if not 0 < n_bytes <= MAX_TENSOR_BYTES:
        raise ValueError(f"tensors must have 1 to {MAX_TENSOR_BYTES:,} bytes, not {n_bytes:,}")
    try:
        return load(file.read(n_bytes))
    except SafetensorError as error:
        raise ValueError(f"these {n_bytes:,} bytes are not in safetensors format") from error


_EVENTS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(RecordedPass, race.RaceStarted, race.RaceStep, race.RaceEnded),
        *(
            measurement.ModelReady,
            measurement.WarmUpTimes,
            measurement.PhaseStarted,
            measurement.TimedStep,
        ),
    )
}
_ERRORS = {kind.__name__: kind for kind in (OverLimit, ServerBusy, ValueError)}
_NESTED: dict[str, Any] = {  # fields whose types JSON doesn't preserve
    "step": lambda fields: StepTime(**fields),
    "cached": lambda fields: StepTime(**fields),
    "uncached": lambda fields: StepTime(**fields),
    "cache_size": lambda fields: race.CacheSize(**fields),
    "tensors": lambda fields: RunTensors(**fields),
    "terms": lambda fields: {name: (a, b, c) for name, (a, b, c) in fields.items()},
}
