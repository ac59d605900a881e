"""Numbers printed in the lectures, reproduced to four decimals."""

import math
import re

import pytest
import torch
from torch.testing import assert_close

from attention_core import (
    PRESETS,
    MultiHeadAttentionWrapper,
    SelfAttentionV1,
    SelfAttentionV2,
    Transformer,
    attend,
    attention_scores,
    attention_weights,
    bert_config,
    causal_mask,
    kv_cache_bytes,
    mask_scores,
    simple_self_attention,
)
from attention_core.ladder import MultiHeadAttention
from tests.helpers.lectures import LECTURE_NUMBERS

NUMBERS = LECTURE_NUMBERS
FOUR_DECIMALS = {"atol": 5e-5, "rtol": 0.0}


def tensor(block: str, key: str) -> torch.Tensor:
    return torch.tensor(NUMBERS[block][key])


def test_simplified_attention():
    block = "002_simplified_self_attention"
    scores, weights, context = simple_self_attention(tensor(block, "x"))
    assert_close(scores, tensor(block, "scores"), **FOUR_DECIMALS)
    assert_close(weights, tensor(block, "weights"), **FOUR_DECIMALS)
    assert_close(context, tensor(block, "context"), **FOUR_DECIMALS)
    by_sum = scores[1] / scores[1].sum()
    assert_close(by_sum, tensor(block, "weights_by_sum_row2"), **FOUR_DECIMALS)


def test_trainable_v1_from_the_lecture_seed():
    block = "002_self_attention_v1_seed123"
    torch.manual_seed(123)
    head = SelfAttentionV1(3, 2)
    for name in ("W_query", "W_key", "W_value"):
        # the file stores (out, in), but the class stores (in, out)
        assert_close(getattr(head, name).detach().T, tensor(block, name), **FOUR_DECIMALS)
    record = head.record(tensor(block, "x"))
    for key in ("scores", "weights", "context"):
        assert_close(getattr(record, key).detach(), tensor(block, key), **FOUR_DECIMALS)


@pytest.mark.parametrize(
    ("block", "seed"),
    [("002_self_attention_v2_seed789", 789), ("001_simple_attention_seed123", 123)],
)
def test_trainable_v2_from_the_lecture_seed(block: str, seed: int):
    torch.manual_seed(seed)
    head = SelfAttentionV2(3, 2)
    for name in ("W_query", "W_key", "W_value"):
        assert_close(getattr(head, name).weight.detach(), tensor(block, name), **FOUR_DECIMALS)
    record = head.record(tensor(block, "x"))
    assert_close(record.context.detach(), tensor(block, "context"), **FOUR_DECIMALS)
    if "weights" in NUMBERS[block]:
        assert_close(record.weights.detach(), tensor(block, "weights"), **FOUR_DECIMALS)


def test_wrapper_from_the_lecture_seed():
    block = "001_multi_head_wrapper_seed123"
    x = tensor(block, "x")
    torch.manual_seed(123)
    wrapper = MultiHeadAttentionWrapper(3, 2, len(x), 0.0, 2, causal=False)
    for head, expected in zip(wrapper.heads, NUMBERS[block]["heads"], strict=True):
        for name, matrix in expected.items():
            weight = getattr(head, name).weight.detach()
            assert_close(weight, torch.tensor(matrix), **FOUR_DECIMALS)
    with torch.no_grad():
        assert_close(wrapper(x[None])[0], tensor(block, "context"), **FOUR_DECIMALS)


def article_heads(*, causal: bool) -> MultiHeadAttention:
    """Split the article's fused projection, which is ordered key, query, value."""
    block = "001_multi_head_fused_seed123"
    size = NUMBERS[block]["d_out"]
    fused = tensor(block, "fused_weight_key_query_value")
    heads = MultiHeadAttention(
        fused.shape[1], size, 9, 0.0, NUMBERS[block]["num_heads"], causal=causal
    )
    with torch.no_grad():
        layers = (heads.W_key, heads.W_query, heads.W_value)
        for layer, part in zip(layers, fused.split(size), strict=True):
            layer.weight.copy_(part)
        heads.out_proj.weight.copy_(tensor(block, "out_proj_weight"))
        heads.out_proj.bias.copy_(tensor(block, "out_proj_bias"))
    return heads


@pytest.mark.parametrize(("key", "causal"), [("output", False), ("output_causal", True)])
def test_weight_splits_with_weights_from_the_article(key: str, causal: bool):
    block = "001_multi_head_fused_seed123"
    with torch.no_grad():
        output = article_heads(causal=causal)(tensor(block, "x")[None])[0]
    assert_close(output, tensor(block, key), **FOUR_DECIMALS)


@pytest.mark.parametrize("example", NUMBERS["001_softmax_scaling"])
def test_softmax_of_large_logits(example: dict[str, list[float]]):
    logits = torch.tensor(example["logits"])
    # one query of size 1 and three keys, so the dot products are the logits
    query, keys = torch.ones(1, 1), logits[:, None]
    plain = attend(query, keys, keys, scale=1.0).weights[0]
    divided = attend(query, keys, keys, scale=1.0 / float(logits.sum())).weights[0]
    assert_close(plain, torch.tensor(example["softmax"]), **FOUR_DECIMALS)
    assert_close(divided, torch.tensor(example["softmax_of_logits_over_sum"]), **FOUR_DECIMALS)


def test_dropout_scales_the_remaining_weights():
    block = "001_dropout_seed123"
    p = NUMBERS[block]["p"]
    q, k = torch.randn(5, 2), torch.randn(3, 2)
    torch.manual_seed(123)
    matrix = torch.rand(5, 3)
    assert_close(matrix, tensor(block, "matrix"), **FOUR_DECIMALS)
    # attend continues the same random stream, so it drops the same 5 x 3 cells
    record = attend(q, k, torch.eye(3), dropout_p=p)
    dropped = matrix * record.weights / record.attention
    assert_close(dropped, tensor(block, "dropped"), **FOUR_DECIMALS)
    assert_close(record.context, record.weights)


def test_masking_with_zero_leaks_and_minus_infinity_does_not():
    block = "001_masking"
    scores = tensor(block, "scores")
    mask = causal_mask(*scores.shape)
    leaking = attention_weights(mask_scores(scores, mask, fill=0.0))
    masked = attention_weights(mask_scores(scores, mask))
    assert_close(leaking, tensor(block, "softmax_masked_with_zero"), **FOUR_DECIMALS)
    assert_close(masked, tensor(block, "softmax_masked_with_minus_inf"), **FOUR_DECIMALS)
    renormalised = attention_weights(scores) * mask
    renormalised = renormalised / renormalised.sum(-1, keepdim=True)
    assert NUMBERS[block]["mask_then_renormalise_equals_minus_inf"]
    assert_close(renormalised, masked)


def test_variance_of_scores_by_scale():
    """The course prints one run; this run is close to it and to theory."""
    block = NUMBERS["003_scaling_variance"]
    size = block["d_k"]
    torch.manual_seed(0)
    q, k = torch.randn(2, 200, 100, size)
    scales = {"no_scale": 1.0, "sqrt_d_k": size**-0.5, "d_k": 1 / size, "d_k_squared": size**-2}
    scores = attention_scores(q, k)
    for name, scale in scales.items():
        measurements = float((scores * scale).var())
        assert math.isclose(measurements, block["theory"][name], rel_tol=0.02)
        assert math.isclose(measurements, block["printed"][name], rel_tol=0.03, abs_tol=5e-5)


@pytest.mark.parametrize("example", NUMBERS["003_kv_cache_size"]["examples"])
def test_kv_cache_size(example: dict[str, int]):
    heads = example.get("n_heads", 1)
    size = kv_cache_bytes(
        n_layers=example["n_layers"],
        n_kv_heads=heads,
        head_size=example.get("head_dim", example.get("d_model", 0) // heads),
        n_tokens=example["seq_len"],
        batch_size=example["batch"],
    )
    assert size == example["bytes"]


def test_shapes_of_the_weight_splits_lecture():
    block = NUMBERS["000_weight_splits"]
    steps = {name.split()[0]: shape for name, shape in block["shape_steps"]}
    x = torch.rand(1, len(block["sentence"].split()), 6)
    torch.manual_seed(0)
    heads = MultiHeadAttention(6, 6, 3, 0.0, 2)
    record = heads.record(x)

    def shape_text(t: torch.Tensor) -> str:
        return str(tuple(t.shape))

    assert shape_text(x) == steps["1"]
    assert f"{record.output.shape[-1]}, {heads.num_heads}, {heads.head_dim}" == steps["2"]
    count_projections = (heads.W_query, heads.W_key, heads.W_value)
    assert {f"{shape_text(layer.weight)} each" for layer in count_projections} == {steps["3"]}
    assert {shape_text(layer(x)) for layer in count_projections} == {steps["4"]}
    # before the transpose, the projection is just split into heads
    assert {shape_text(t.transpose(1, 2)) for t in (record.q, record.k, record.v)} == {steps["5"]}
    assert_close(record.q.transpose(1, 2), heads.W_query(x).view(1, 3, 2, 3), atol=0, rtol=0)
    assert {shape_text(t) for t in (record.q, record.k, record.v)} == {steps["6"]}
    assert shape_text(record.scores) == steps["7"]
    assert shape_text(record.weights) == steps["8"]
    assert shape_text(record.context) == steps["9"]
    assert shape_text(record.context.transpose(1, 2)) == steps["10"]
    assert shape_text(record.output) == steps["11"]
    assert len(steps) == 11


@pytest.mark.parametrize("n_heads", [1, 3])
def test_projection_counts_of_wrapper_and_weight_splits(n_heads: int):
    """The wrapper projects Q, K, and V once per head; weight splits do it only once."""
    assert "one projection matmul per head" in NUMBERS["000_weight_splits"]["matmuls"]
    wrapper = MultiHeadAttentionWrapper(5, 2, 7, 0.0, n_heads)
    split = MultiHeadAttention(5, 2 * n_heads, 7, 0.0, n_heads)
    x = torch.rand(1, 7, 5)

    def count_projections(module: torch.nn.Module) -> int:
        calls = []
        for name, layer in module.named_modules():
            if name.split(".")[-1] in ("W_query", "W_key", "W_value"):
                layer.register_forward_hook(lambda *_: calls.append(1))
        module(x)
        return len(calls)

    assert count_projections(wrapper) == 3 * n_heads
    assert count_projections(split) == 3
    assert wrapper(x).shape == split(x).shape == (1, 7, 2 * n_heads)


def test_heads_and_widths_of_models_in_the_lecture():
    models = NUMBERS["000_weight_splits"]["models"]
    for name, preset in (("gpt2_small", "gpt2"), ("gpt2_xl", "gpt2-xl")):
        assert PRESETS[preset].n_heads == models[name]["heads"]
        assert PRESETS[preset].d_model == models[name]["width"]


def test_two_heads_on_the_course_sentence():
    block = NUMBERS["003_sentences"]
    n_tokens, n_heads, d_out = block["tokens"], block["heads"], block["d_out"]
    assert len(block["two_heads"].split()) == n_tokens
    x = torch.rand(1, n_tokens, block["d_in"])
    record = MultiHeadAttention(block["d_in"], d_out, n_tokens, 0.0, n_heads).record(x)
    assert record.weights.shape == (1, n_heads, n_tokens, n_tokens)
    assert record.q.shape == (1, n_heads, n_tokens, d_out // n_heads)
    assert record.output is not None
    assert record.output.shape == (1, n_tokens, d_out)


def test_sizes_of_the_2017_encoder():
    encoder = NUMBERS["004_sentence"]["encoder"]
    width, n_tokens = encoder["d_model"], 11
    config = bert_config(
        d_model=width, n_layers=encoder["layers"], n_heads=encoder["heads"], vocab_size=13
    )
    assert config.d_head == encoder["head_dim"]
    torch.manual_seed(0)
    model = Transformer(config).eval().requires_grad_(False)
    assert len(model.blocks) == encoder["layers"]
    # 512 -> hidden -> 512 with the same weights at every position
    x = torch.randn(1, n_tokens, width)
    together = model.blocks[0].mlp(x)
    assert together.shape == x.shape
    for position in range(n_tokens):
        single = model.blocks[0].mlp(x[:, position : position + 1])
        assert_close(together[:, position : position + 1], single, atol=1e-5, rtol=1e-5)


def test_two_heads_of_half_the_width_are_concatenated():
    width, per_head, total_width = map(
        int, re.findall(r"\d+", NUMBERS["004_sentence"]["two_head_example"])
    )
    wrapper = MultiHeadAttentionWrapper(width, per_head, 5, 0.0, 2, causal=False)
    x = torch.rand(1, 5, width)
    with torch.no_grad():
        first, second = (head(x) for head in wrapper.heads)
        assert wrapper(x).shape == (1, 5, total_width)
        assert_close(wrapper(x), torch.cat((first, second), dim=-1), atol=0, rtol=0)
