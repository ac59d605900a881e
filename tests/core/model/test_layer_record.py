"""Layer records: their contents, and that recording doesn't change results."""

from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from attention_core import AttentionRecord, Transformer
from attention_core.model.block import LayerRecord
from tests.helpers.attention_variants import LATENT, enlarged_model
from tests.helpers.tiny_models import TINY

EXACT = {"atol": 0.0, "rtol": 0.0}
CONFIGS = {
    **TINY,
    "window": replace(TINY["llama"], window=3),
    "latent": LATENT["expanded"],
    "latent-absorbed": LATENT["absorbed"],
}


@pytest.fixture(params=CONFIGS)
def model(request: pytest.FixtureRequest) -> Transformer:
    return enlarged_model(CONFIGS[request.param])


def random_ids(model: Transformer, batch: int = 2, length: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randint(model.config.vocab_size, (batch, length), generator=generator)


def test_layer_input_is_the_previous_output(model: Transformer):
    output = model(random_ids(model), record=True)
    assert len(output.layers) == model.config.n_layers
    assert output.embedding is not None
    assert_close(output.layers[0].input, output.embedding.layer_input, **EXACT)
    for layer, after in zip(output.layers, output.layers[1:], strict=False):
        assert_close(layer.output, after.input, **EXACT)
    last = output.layers[-1].output
    hidden = last if model.final_norm is None else model.final_norm(last)
    assert_close(output.hidden, hidden, **EXACT)


def test_record_contains_the_steps_of_its_layer(model: Transformer):
    for layer, block in zip(
        model(random_ids(model), record=True).layers, model.blocks, strict=True
    ):
        assert layer.attention.output is not None
        assert_close(layer.attention_sum, layer.input + layer.attention.output, **EXACT)
        assert_close(layer.mlp_output, block.mlp.down(layer.mlp_hidden), **EXACT)
        assert_close(layer.mlp_output, block.mlp(layer.mlp_reads), **EXACT)
        assert layer.mlp_hidden.shape == (2, 7, model.config.d_ff)
        if model.config.norm_order == "pre":
            assert_close(layer.attention_reads, block.attention_norm(layer.input), **EXACT)
            assert_close(layer.mlp_reads, block.mlp_norm(layer.attention_sum), **EXACT)
            assert_close(layer.mlp_sum, layer.attention_sum + layer.mlp_output, **EXACT)
            assert_close(layer.output, layer.mlp_sum, **EXACT)
        else:
            assert_close(layer.attention_reads, layer.input, **EXACT)
            assert_close(layer.mlp_reads, block.attention_norm(layer.attention_sum), **EXACT)
            assert_close(layer.mlp_sum, layer.mlp_reads + layer.mlp_output, **EXACT)
            assert_close(layer.output, block.mlp_norm(layer.mlp_sum), **EXACT)


def test_record_survives_weight_changes(model: Transformer):
    output = model(random_ids(model), record=True)
    held = [tensor for layer in output.layers for tensor in tensors_of(layer)]
    held += [part for part in vars(output.embedding).values() if part is not None]
    before = [tensor.clone() for tensor in held]
    for parameter in model.parameters():
        parameter.fill_(torch.nan)
    assert all(map(torch.equal, before, held))


def tensors_of(record: LayerRecord | AttentionRecord) -> list[Tensor]:
    values = [getattr(record, field.name) for field in fields(record)]
    inner = [tensors_of(value) for value in values if isinstance(value, AttentionRecord)]
    return [value for value in values if isinstance(value, Tensor)] + sum(inner, [])
