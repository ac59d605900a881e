"""What a model server sends: frames, each a few facts and the tensors that belong to them.

A frame is four bytes of length, the facts as JSON, eight bytes of length and the tensors in the
safetensors format, so that no number of a tensor is ever written as text. A stream ends with a
frame that says so: one that ends without it was broken off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from serving.limits import MAX_FACTS_BYTES, MAX_FRAME_BYTES

if TYPE_CHECKING:
    from torch import Tensor

ALIVE, END, ERROR = "alive", "end", "error"  # nothing new yet; all was sent; it failed
BUSY = "too many questions at once"  # what a server answers, with 503, that takes no further one


class Broken(Exception):
    """A stream that ended in the middle, or is none of ours."""


@dataclass(frozen=True)
class Frame:
    """kind: what the frame tells, a word. facts: JSON values. tensors: by their names."""

    kind: str
    facts: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)


def packed(frame: Frame) -> bytes:
    """A frame as bytes."""
    from safetensors.torch import save

    facts = json.dumps({"kind": frame.kind, "facts": frame.facts}).encode()
    tensors = save(contiguous(frame.tensors)) if frame.tensors else b""
    return len(facts).to_bytes(4) + facts + len(tensors).to_bytes(8) + tensors


def contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as safetensors stores them: rows one behind the other, each memory once.

    Two that share memory are refused by safetensors; nothing that is sent here does.
    """
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def unpacked(chunks: Iterable[bytes]) -> Iterator[Frame]:
    """The frames in bytes that arrive in pieces of any size, up to the frame that ends them.

    Raises: Broken where the bytes end before it, or make no sense.
    """
    reader = _Reader(iter(chunks))
    while True:
        try:
            head = json.loads(reader.take(reader.length(4, MAX_FACTS_BYTES)))
            frame = Frame(str(head["kind"]), dict(head["facts"]), reader.tensors())
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Broken(f"no frame: {error}") from error
        if frame.kind == END:
            return
        yield frame


class _Reader:
    """Takes so many bytes at a time."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = bytearray()

    def take(self, count: int) -> bytes:
        while len(self._left) < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                raise Broken("the stream broke off")
            self._left += chunk
        taken = bytes(self._left[:count])
        del self._left[:count]
        return taken

    def length(self, size: int, most: int) -> int:
        length = int.from_bytes(self.take(size))
        if length > most:
            raise Broken(f"{length:,} bytes announced, over the limit of {most:,}")
        return length

    def tensors(self) -> dict[str, Tensor]:
        from safetensors import SafetensorError
        from safetensors.torch import load

        data = self.take(self.length(8, MAX_FRAME_BYTES))
        try:
            return load(data) if data else {}
        except SafetensorError as error:
            raise Broken(f"no tensors: {error}") from error
