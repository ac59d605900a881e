"""Records of whole layers: what they hold, and that taking them changes nothing."""

from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from attention_core import AttentionRecord, Hooks, Transformer
from attention_core.model.block import LayerRecord
from tests.helpers.attention_variants import LATENT, enlarged
from tests.helpers.tiny_models import TINY

EXACT = {"atol": 0.0, "rtol": 0.0}
# a pass that keeps no scores computes them with torch's fused function
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
CONFIGS = {
    **TINY,
    "window": replace(TINY["llama"], window=3),
    "latent": LATENT["expanded"],
    "latent-absorbed": LATENT["absorbed"],
}


@pytest.fixture(params=CONFIGS)
def model(request: pytest.FixtureRequest) -> Transformer:
    return enlarged(CONFIGS[request.param])


@pytest.fixture(params=[name for name, config in CONFIGS.items() if config.causal])
def causal(request: pytest.FixtureRequest) -> Transformer:
    return enlarged(CONFIGS[request.param])


def some_ids(model: Transformer, batch: int = 2, length: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randint(model.config.vocab_size, (batch, length), generator=generator)


def test_each_layer_reads_what_the_one_before_it_wrote(model: Transformer):
    output = model(some_ids(model), record=True)
    assert len(output.layers) == model.config.n_layers
    assert output.embedding is not None
    assert_close(output.layers[0].input, output.embedding.entering, **EXACT)
    for layer, after in zip(output.layers, output.layers[1:], strict=False):
        assert_close(layer.output, after.input, **EXACT)
    last = output.layers[-1].output
    hidden = last if model.final_norm is None else model.final_norm(last)
    assert_close(output.hidden, hidden, **EXACT)


def test_a_record_holds_the_steps_of_its_layer(model: Transformer):
    for layer, block in zip(model(some_ids(model), record=True).layers, model.blocks, strict=True):
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


def test_recording_changes_no_result(model: Transformer):
    ids = some_ids(model)
    plain, recorded = model(ids), model(ids, record=True)
    assert_close(plain.hidden, recorded.hidden, **CLOSE)
    if plain.logits is not None:
        assert_close(plain.logits, recorded.logits, **CLOSE)
    assert plain.layers == plain.records == plain.hidden_states == ()
    assert plain.embedding is None


def test_a_record_outlives_the_cache(causal: Transformer):
    ids = some_ids(causal)
    cache = causal.new_cache(2, 9)
    output = causal(ids, cache=cache, record=True)
    before = [tensor.clone() for layer in output.layers for tensor in tensors_of(layer)]
    cache.reset()
    for buffers in cache.buffers:
        for buffer in buffers:
            buffer.fill_(torch.nan)
    after = [tensor for layer in output.layers for tensor in tensors_of(layer)]
    assert all(map(torch.equal, before, after))


def test_a_record_outlives_the_weights(model: Transformer):
    output = model(some_ids(model), record=True)
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


@pytest.mark.parametrize("failing", [0, 1])
def test_a_pass_that_a_hook_stops_leaves_the_cache_as_it_was(causal: Transformer, failing: int):
    ids = some_ids(causal, length=11)
    cache = causal.new_cache(2, 15)
    causal(ids[:, :6], cache=cache)
    before = [tensor.clone() for tensor in cache.layer(0)]

    def stop(layer: int) -> None:
        if layer == failing:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        causal(ids[:, 6:] * 0, cache=cache, hooks=Hooks(before_layer=stop))
    assert cache.length == 6
    assert all(map(torch.equal, before, cache.layer(0)))
    assert_close(
        causal(ids[:, 6:], cache=cache).logits, causal(ids).logits[:, 6:], atol=1e-5, rtol=1e-5
    )


def test_hooks_hear_of_every_layer_in_order(model: Transformer):
    heard: list[str] = []

    def edit(layer: int, record: AttentionRecord) -> AttentionRecord:
        heard.append(f"heads of {layer}")
        return record

    hooks = Hooks(before_layer=lambda layer: heard.append(f"before {layer}"), edit_heads=edit)
    model(some_ids(model), hooks=hooks)
    layers = range(model.config.n_layers)
    assert heard == [text for n in layers for text in (f"before {n}", f"heads of {n}")]


@pytest.mark.parametrize("name", [*TINY, "window"])
def test_an_edited_head_is_a_head_without_its_rows_of_the_output_matrix(name: str):
    model, other = enlarged(CONFIGS[name]), enlarged(CONFIGS[name])
    ids, size = some_ids(model), model.config.d_head
    silent = {0: 1, 1: 2}  # layer: head

    def edit(layer: int, record: AttentionRecord) -> AttentionRecord:
        context = record.context.clone()
        if layer in silent:
            context[:, silent[layer]] = 0.0
        return replace(record, context=context)

    for layer, head in silent.items():
        other.out_weight(layer)[head * size : (head + 1) * size] = 0.0
    edited = model(ids, hooks=Hooks(edit_heads=edit), record=True)
    assert_close(edited.hidden, other(ids).hidden, atol=1e-6, rtol=1e-6)
    assert not torch.allclose(edited.hidden, model(ids).hidden, atol=1e-3)
    for layer, head in silent.items():  # the record holds the edited heads
        assert not edited.records[layer].context[:, head].any()
