"""Every computed number on the ladder follows from its terms."""

import pytest
import torch
from torch.testing import assert_close

from attention_core.analysis.provenance import terms
from pages.learn.ladder.experiment.ladder import RUNGS, Rung, RungSettings, run_rung
from pages.learn.ladder.experiment.provenance import computations, identities, tensors
from tests.helpers.arithmetic import result

DROPOUT = 0.4


def rung(name: str, *, causal: bool = True) -> Rung:
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(2))
    settings = RungSettings(d_out=6, n_heads=3, dropout=DROPOUT, causal=causal, seed=4)
    if name == "wrapper":
        settings = RungSettings(d_out=4, n_heads=3, causal=causal, seed=4)
    return run_rung(name, x, settings)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", RUNGS)
def test_terms_give_the_number(name: str, causal: bool):
    output = rung(name, causal=causal)
    values = tensors(output)
    computed = computations(output, DROPOUT)
    assert list(computed) != []
    for tensor, how in computed.items():
        window = [range(size) for size in values[tensor].shape]
        match = terms(how, values, window, max_terms=1000)
        actual = result(how.kind, match.operands, match.added, values[tensor])
        assert_close(
            values[tensor], actual, atol=1e-6, rtol=1e-5, msg=lambda m, t=tensor: f"{t}: {m}"
        )


@pytest.mark.parametrize("name", RUNGS)
def test_every_tensor_is_an_input_moved_or_computed(name: str):
    output = rung(name)
    values, computed, same = (
        tensors(output),
        computations(output, DROPOUT),
        identities(output),
    )
    inputs = {"x", *(tensor for tensor in values if tensor.startswith(("W_", "out_proj")))}
    assert {*computed, *same, *inputs} == set(values)


@pytest.mark.parametrize("name", ["simplified", "wrapper"])
def test_moved_numbers_are_unchanged(name: str):
    output = rung(name)
    tensor_values, same = tensors(output), identities(output)
    values: dict[int, float] = {}
    for tensor, cells in same.items():
        assert cells.shape == tensor_values[tensor].shape
        for cell, value in zip(
            cells.flatten().tolist(), tensor_values[tensor].flatten().tolist(), strict=True
        ):
            assert values.setdefault(cell, value) == value
    assert len(same) > 1
