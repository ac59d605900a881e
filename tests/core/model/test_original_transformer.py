"""The 2017 transformer: parity with PyTorch, token order, and parameter counts."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from attention_core import PRESETS, Transformer, causal_mask
from attention_core.analysis.permutation import (
    check_equivariance,
    check_layer_equivariance,
    permutation,
)
from attention_core.attention import MultiHeadAttention
from attention_core.costs.parameters import on_meta_device, parameters_by_part
from attention_core.model.block import Block
from attention_core.model.original_transformer import (
    HEADS,
    HIDDEN,
    MLP_NORMED,
    MLP_SUM,
    DecoderLayer,
    EncoderDecoder,
    layer_steps,
    original_config,
    sinusoids,
)
from tests.helpers.tiny_models import TINY, build

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
B, T, S, C, H, F = 2, 5, 7, 24, 4, 40  # all distinct, and D = 6
CONFIG = original_config(d_model=C, n_heads=H, d_ff=F, n_layers=3, vocab_size=31)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def scramble(module: nn.Module, seed: int = 0) -> None:
    """Randomize PyTorch's weights, biases and norms, far from zero and one."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4 + 0.1)


def copy_projection(ours: nn.Module, weight: Tensor, bias: Tensor) -> None:
    ours.weight.copy_(weight)
    ours.bias.copy_(bias)


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    copy_projection(ours.qkv, theirs.in_proj_weight, theirs.in_proj_bias)
    copy_projection(ours.out, theirs.out_proj.weight, theirs.out_proj.bias)


def copy_rest(ours: nn.Module, theirs: nn.Module, norms: tuple[nn.Module, ...]) -> None:
    copy_projection(ours.mlp.up, theirs.linear1.weight, theirs.linear1.bias)
    copy_projection(ours.mlp.down, theirs.linear2.weight, theirs.linear2.bias)
    for number, norm in enumerate(norms, start=1):
        norm.load_state_dict(getattr(theirs, f"norm{number}").state_dict())


def encoder_pair(seed: int = 0) -> tuple[Block, nn.TransformerEncoderLayer]:
    theirs = nn.TransformerEncoderLayer(C, H, F, dropout=0.0, batch_first=True).eval()
    scramble(theirs, seed)
    ours = Block(CONFIG, 0).eval()
    copy_attention(ours.attention, theirs.self_attn)
    copy_rest(ours, theirs, (ours.attention_norm, ours.mlp_norm))
    return ours, theirs


def decoder_pair(seed: int = 0) -> tuple[DecoderLayer, nn.TransformerDecoderLayer]:
    theirs = nn.TransformerDecoderLayer(C, H, F, dropout=0.0, batch_first=True).eval()
    scramble(theirs, seed)
    ours = DecoderLayer(CONFIG).eval()
    copy_attention(ours.attention, theirs.self_attn)
    copy_attention(ours.cross, theirs.multihead_attn)
    copy_rest(ours, theirs, (ours.attention_norm, ours.cross_norm, ours.mlp_norm))
    return ours, theirs


def inputs() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(B, T, C, generator=generator), torch.randn(B, S, C, generator=generator)


def test_encoder_layer_equals_pytorch():
    ours, theirs = encoder_pair()
    x, _ = inputs()
    assert_close(ours(x), theirs(x), **CLOSE)


def test_decoder_layer_equals_pytorch():
    ours, theirs = decoder_pair()
    x, memory = inputs()
    expected = theirs(x, memory, tgt_mask=~causal_mask(T, T))
    assert_close(ours(x, memory), expected, **CLOSE)
    # causal: changing the last token doesn't affect earlier positions
    other = x.clone()
    other[:, -1] += 1.0
    assert_close(ours(other, memory)[:, :-1], expected[:, :-1], **CLOSE)


def test_model_equals_pytorch_encoder_and_decoder_stacks():
    model = EncoderDecoder(CONFIG).eval()
    model.embedding.copy_(torch.randn(31, C, generator=torch.Generator().manual_seed(1)) * 0.2)
    source, target = torch.tensor([[3, 1, 4, 1, 5, 9, 2]]), torch.tensor([[6, 5, 3, 5, 8]])
    places = sinusoids(S, C)
    memory = model.embedding[source] * math.sqrt(C) + places
    x = model.embedding[target] * math.sqrt(C) + places[:T]
    for layer in range(CONFIG.n_layers):
        model.encoder[layer], theirs = encoder_pair(layer)
        memory = theirs(memory)
    for layer in range(CONFIG.n_layers):
        model.decoder[layer], theirs = decoder_pair(layer)
        x = theirs(x, memory, tgt_mask=~causal_mask(T, T))
    assert_close(model(source, target), x @ model.embedding.t(), **CLOSE)


@pytest.mark.parametrize("name", TINY)
def test_steps_of_a_layer_match_its_forward_pass(name: str):
    model = build(name)
    ids = torch.tensor([[1, 4, 2, 8, 5, 7]])
    output = model(ids, record=True)
    for layer, record in enumerate(output.layers):
        steps = layer_steps(record, model.config)
        last = steps[MLP_SUM if model.config.norm_order == "pre" else MLP_NORMED]
        assert last is list(steps.values())[-1]
        assert_close(last, output.hidden_states[layer + 1], atol=0, rtol=0)
        assert_close(steps[HEADS], output.records[layer].context, atol=0, rtol=0)
        assert steps[HIDDEN].shape[-1] == model.config.d_ff


def test_sinusoids_match_the_formula():
    table = sinusoids(4, 6)
    assert_close(table[0], torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0, 1.0]))
    assert table[3, 2].item() == pytest.approx(math.sin(3 / 10_000 ** (2 / 6)), abs=1e-6)
    assert table[3, 5].item() == pytest.approx(math.cos(3 / 10_000 ** (4 / 6)), abs=1e-6)


@pytest.mark.parametrize("name", TINY)
def test_first_layer_reads_the_embeddings(name: str):
    model = build(name)
    ids = torch.tensor([[1, 4, 2, 8, 5, 7]])
    expected = model(ids, record=True).hidden_states[0]
    assert_close(model.embed(ids, torch.arange(6)).layer_input, expected, atol=0, rtol=0)
    without = model.embed(ids, None)
    assert without.position is None
    assert torch.equal(without.layer_input, expected) == (model.config.positions == "rotary")


@pytest.mark.parametrize("how", ["reversed", "rotated", "shuffled"])
@pytest.mark.parametrize("name", TINY)
def test_only_masks_and_positions_depend_on_token_order(name: str, how: str):
    model = build(name)
    ids = torch.tensor([1, 4, 2, 8, 5, 7, 3])
    order = permutation(7, how, seed=1)
    positions = torch.arange(7)
    rotation = model.new_pass(model.embed(ids[None], positions).layer_input, positions).rotation

    def embed(token_ids: Tensor, with_positions: bool) -> Tensor:
        return model.embed(token_ids, positions if with_positions else None).layer_input

    result = check_layer_equivariance(model.blocks[0], ids, order, embed, rotation)
    for part in ("feed-forward", "normalisation", "attention, no mask, no positions"):
        assert result[part].difference <= 1e-5 * max(1.0, result[part].largest), part
    for part in ("attention, causal mask", "attention, positions"):
        assert result[part].difference > 1e-2 * result[part].largest, part


def test_causal_head_depends_on_token_order():
    """With two equal keys, the second row is the mean of both values."""
    values = torch.tensor([[1.0], [3.0]])

    def head(x: Tensor) -> Tensor:
        return torch.stack((x[:, 0], x.mean(dim=1)), dim=1)

    result = check_equivariance(head, values, [1, 0])
    assert result.output_permuted.flatten().tolist() == [2.0, 1.0]
    assert result.input_permuted.flatten().tolist() == [3.0, 2.0]
    assert result.difference == 1.0
    assert result.largest == 2.0


@pytest.mark.parametrize("name", TINY)
def test_parts_sum_to_the_total(name: str):
    model = build(name)
    config, parts = model.config, parameters_by_part(model)
    assert sum(parts.values()) == sum(p.numel() for p in model.parameters())
    layers, width, bias = config.n_layers, config.d_model, config.attention_bias
    q_width, kv_width = config.n_heads * config.d_head, config.kv_heads * config.d_head
    assert parts["attention: queries"] == layers * q_width * (width + bias)
    assert parts["attention: keys"] == layers * kv_width * (width + bias)
    assert parts["attention: values"] == parts["attention: keys"]
    assert parts["attention: out"] == layers * width * (q_width + bias)
    matrices = 3 if config.gated else 2
    biases = config.mlp_bias * ((matrices - 1) * config.d_ff + width)
    assert parts["feed-forward"] == layers * (matrices * width * config.d_ff + biases)
    tied = "embedding, also the output matrix"
    assert (tied in parts) == (config.output == "tied")
    assert ("output matrix" in parts) == (config.output == "separate")


def test_parameter_count_of_the_2017_base_model():
    model = on_meta_device(EncoderDecoder, original_config())
    parts = parameters_by_part(model)
    assert sum(parts.values()) == sum(p.numel() for p in model.parameters())
    feed_forward = 512 * 2048 + 2048 + 2048 * 512 + 512
    assert parts["feed-forward"] == 12 * feed_forward
    assert parts["cross-attention"] == 6 * 4 * (512 * 512 + 512)
    assert parts["embedding, also the output matrix"] == 37_000 * 512
    # table 3 of the paper lists 65 million, with a different vocabulary
    assert sum(parts.values()) == pytest.approx(65e6, rel=0.05)


def test_gpt2_parameter_count_is_124_million():
    model = on_meta_device(Transformer, PRESETS["gpt2"])
    assert isinstance(model, Transformer)
    assert next(model.parameters()).device.type == "meta"
    assert sum(parameters_by_part(model).values()) == 124_439_808
