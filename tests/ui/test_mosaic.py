"""Test the mosaic's data: small, and exact within the stated error."""

import zlib

import numpy as np
import pytest

from tests.helpers.drawn_tensors import unpack_drawing
from ui.canvas.mosaic.packing import PackedMosaic, pack

L, H, T = 3, 5, 7
LABELS = [f"t{i}" for i in range(T)]


def attention(layers: int, heads: int, n: int, *, causal: bool, sharp: float = 3.0) -> np.ndarray:
    scores = sharp * np.random.default_rng(0).standard_normal((layers, heads, n, n))
    if causal:
        scores[..., ~np.tril(np.ones((n, n), bool))] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def decode(packed: PackedMosaic) -> tuple[dict, np.ndarray]:
    """Return header and values, decoded like in the browser."""
    header, body = unpack_drawing(packed.data)
    codes = np.frombuffer(zlib.decompress(body), np.uint8)
    codes = codes.reshape(header["layers"] * header["heads"], -1)
    largest = np.array(header["largest"], np.float32)[:, None]
    return header, largest * (codes / header["levels"]) ** 2


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sharp", [0.01, 3.0, 30.0])
def test_decoded_values_are_within_the_stated_error(causal: bool, sharp: float):
    values = attention(L, H, T, causal=causal, sharp=sharp)
    packed = pack(values, LABELS, name="m", title="t", causal=causal)
    header, read = decode(packed)
    cells = values.reshape(L * H, -1)
    if causal:
        cells = cells[:, np.tril(np.ones((T, T), bool)).ravel()]
    off = np.abs(read - cells).max()
    assert 0 < off <= packed.error * (1 + 1e-6)  # the browser computes in floating point, too
    assert packed.error <= values.max() / packed.levels
    assert packed.levels == 255
    assert (header["layers"], header["heads"], header["labels"]) == (L, H, LABELS)
    np.testing.assert_allclose(header["largest"], cells.max(axis=1))


@pytest.mark.parametrize(("sharp", "causal"), [(0.05, False), (2.0, True)])
def test_144_heads_at_128_tokens_fit_the_budget(causal: bool, sharp: float):
    """Use noise, which is hardest to compress."""
    values = attention(12, 12, 128, causal=causal, sharp=sharp)
    packed = pack(values, [str(i) for i in range(128)], name="m", title="t", causal=causal)
    assert len(packed.data) <= 1_200_000
    assert packed.levels >= 31
    _, read = decode(packed)
    cells = values.reshape(144, -1)
    if causal:
        cells = cells[:, np.tril(np.ones((128, 128), bool)).ravel()]
    assert np.abs(read - cells).max() <= packed.error * (1 + 1e-6)


def test_head_of_zeros_causes_no_division_by_zero():
    values = np.zeros((1, 2, 3, 3), np.float32)
    values[0, 1] = 1 / 3
    header, read = decode(pack(values, ["a", "b", "c"], name="m", title="t", causal=False))
    np.testing.assert_allclose(read, values.reshape(2, 9), rtol=1e-6)
    assert header["largest"][0] == 0


def test_invalid_values_are_rejected():
    with pytest.raises(ValueError, match=r"\(2, 3, 4, 5\)"):
        pack(np.zeros((2, 3, 4, 5)), LABELS, name="m", title="t", causal=False)
    with pytest.raises(ValueError, match=r"-0\.5"):
        pack(np.full((1, 1, 2, 2), -0.5), LABELS, name="m", title="t", causal=False)
