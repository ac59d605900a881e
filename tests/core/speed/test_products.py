"""Every method of multiplying rows by a matrix agrees with `torch.matmul`."""

import pytest
import torch
from torch.testing import assert_close

from attention_core.model.layers import Projection
from attention_core.speed import products

SHAPES = [(8,), (3, 2, 8), (1, 1, 6), (4, 1, 8), (12, 1, 8), (13, 1, 8), (2, 33, 8)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("by_intel", [True, False], ids=["Intel CPU", "other CPU"])
@pytest.mark.parametrize("has_avx512", [True, False], ids=["AVX-512", "no AVX-512"])
@pytest.mark.parametrize("is_large", [True, False], ids=["large matrix", "small matrix"])
def test_every_method_equals_matmul(
    shape: tuple[int, ...],
    bias: bool,
    training: bool,
    by_intel: bool,
    has_avx512: bool,
    is_large: bool,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(products, "PLAIN_IS_FASTEST", by_intel)
    monkeypatch.setattr(products, "_HAS_AVX512", has_avx512)
    monkeypatch.setattr(products, "_LARGE_MATRIX", 1 if is_large else 1000)
    plain = Projection(shape[-1], 5, bias)
    torch.nn.init.normal_(plain.weight)
    if plain.bias is not None:
        torch.nn.init.normal_(plain.bias)
    layer = products.FastLinear(plain)
    x = torch.randn(shape)
    expected = x @ plain.weight.t() + (0 if plain.bias is None else plain.bias)
    with torch.set_grad_enabled(training):
        y = layer(x)
        assert_close(y, expected)
        assert y.requires_grad == training
    if training:
        y.sum().backward()
        assert_close(layer.weight.grad, x.reshape(-1, shape[-1]).sum(0).expand(5, -1))


def test_onednn_sees_few_distinct_row_counts():
    inputs = {n_rows: products.padded_rows(n_rows) for n_rows in range(1, 1025)}
    assert inputs[1] == 1
    assert {inputs[n_rows] for n_rows in range(2, 9)} == {8}
    assert all(n_rows <= inputs[n_rows] for n_rows in inputs)
    assert all(inputs[n_rows] < 1.5 * n_rows for n_rows in range(17, 1025))
    for power in (16, 32, 64, 128, 256, 512):
        between = {inputs[n_rows] for n_rows in range(power + 1, 2 * power)}
        assert between == {power + power // 2, 2 * power}
