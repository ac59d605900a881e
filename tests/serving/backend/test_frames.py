"""Frames: what was packed comes out again, however the bytes arrive; what is none is refused."""

import itertools
from collections.abc import Iterator

import pytest
import torch
from torch.testing import assert_close

from serving.backend import frames
from serving.backend.frames import END, Broken, Frame, packed, unpacked

SENT = [
    Frame("text", {"says": "é \x00 {}"}),
    Frame(
        "numbers",
        {"scale": 0.125},
        {"a": torch.randn(2, 3, 5).transpose(0, 2), "b": torch.tensor([7, 1])},
    ),
    Frame("alive"),
]


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[i : i + size] for i in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 3, 17, 10_000])
def test_frames_come_out_as_they_were_packed(size: int):
    data = b"".join(map(packed, [*SENT, Frame(END), Frame("behind the end")]))
    read = list(unpacked(pieces(data, size)))
    assert [(frame.kind, frame.facts) for frame in read] == [(f.kind, f.facts) for f in SENT]
    for one, other in zip(read, SENT, strict=True):
        assert_close(one.tensors, other.tensors, rtol=0, atol=0)


def test_numbers_travel_in_their_own_bytes():
    tensor = torch.randn(40, 50)
    assert len(packed(Frame("numbers", {}, {"a": tensor}))) < 4 * tensor.numel() + 300


def test_a_stream_that_ends_early_is_broken():
    whole = b"".join(map(packed, [*SENT, Frame(END)]))
    for end in itertools.chain(range(0, len(whole) - 1, 7), [len(whole) - 1]):
        with pytest.raises(Broken):
            list(unpacked([whole[:end]]))


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
        (9).to_bytes(4) + b"[1, 2, 3]" + bytes(8),
        (2).to_bytes(4) + b"{}" + bytes(8),
        (26).to_bytes(4) + b'{"kind":"x","facts":[[1]]}' + bytes(8),
        (23).to_bytes(4) + b'{"kind":"x","facts":{}}' + (5).to_bytes(8) + b"hello",
        (100_000).to_bytes(4) + b"[" * 100_000 + bytes(8),
    ],
)
def test_what_is_no_frame_is_refused(data: bytes):
    with pytest.raises(Broken):
        list(unpacked([data]))


def test_a_frame_over_the_limit_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(frames, "MAX_FRAME_BYTES", 1000)
    with pytest.raises(Broken, match=r"over the limit of 1,000"):
        next(unpacked([packed(Frame("numbers", {}, {"a": torch.zeros(300)}))]))
