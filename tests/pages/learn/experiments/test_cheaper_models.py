"""Compare experts, drafts, rewards and distillation to independent computations."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from attention_core import Transformer, generate
from attention_core.model.block import Block, LayerRecord
from pages.learn.cheaper_models.experiment import distillation, drafts, experts, rewards
from tests.helpers.tiny_models import TINY, build

IDS = torch.tensor([[5, 17, 3, 44, 8, 21, 60]])


def record_of(model: Transformer, layer: int) -> LayerRecord:
    return model(IDS, record=True).layers[layer]


def mlp_of(model: Transformer, layer: int) -> nn.Module:
    block = model.blocks[layer]
    assert isinstance(block, Block)
    return block.mlp


# ---- experts


@pytest.mark.parametrize("n_experts", [3, 44])
@pytest.mark.parametrize("sort", [False, True])
def test_experts_sum_to_the_output(decoder: Transformer, n_experts: int, sort: bool):
    record, down = record_of(decoder, 1), mlp_of(decoder, 1).down
    hidden = record.mlp_hidden[0]
    units = torch.arange(len(down.matrix))
    if sort:
        units = experts.units_by_token(hidden)
    cut = experts.split_units(units, n_experts)
    sizes = [len(part) for part in cut]
    assert max(sizes) - min(sizes) <= 1
    assert sorted(torch.cat(cut).tolist()) == list(range(len(down.matrix)))
    added = experts.contributions(hidden, down.matrix, cut)
    assert added.shape == (IDS.shape[1], n_experts, decoder.config.d_model)
    mask = experts.top_k_mask(added, n_experts)
    assert bool(mask.all())
    assert_close(
        experts.expert_output(added, mask, down.bias),
        record.mlp_output[0],
        atol=1e-5,
        rtol=1e-4,
    )


def test_top_k_by_contribution_length():
    lengths = torch.tensor([[1.0, 5.0, 3.0], [4.0, 0.0, 2.0]])
    added = torch.stack([lengths, torch.zeros(2, 3)], dim=-1)
    assert experts.top_k_mask(added, 2).tolist() == [[False, True, True], [True, False, True]]
    output = experts.expert_output(added, experts.top_k_mask(added, 1))
    assert output.tolist() == [[5.0, 0.0], [4.0, 0.0]]
    total = added.sum(dim=1)
    errors = experts.errors_by_count(added, total)
    assert errors.tolist() == pytest.approx([(4 / 9 + 2 / 6) / 2, (1 / 9 + 0) / 2, 0.0])


def test_next_token_matches_a_model_without_the_other_units(decoder: Transformer):
    """Compare with a model that has zeros in the rows of all other experts."""
    layer, n_experts, top_k = 0, 4, 2
    record, down = record_of(decoder, layer), mlp_of(decoder, layer).down
    units = experts.split_units(torch.arange(len(down.matrix)), n_experts)
    added = experts.contributions(record.mlp_hidden[0], down.matrix, units)
    keep = torch.zeros(added.shape[:2], dtype=torch.bool)
    keep[:, top_k] = True
    output = experts.expert_output(added, keep, down.bias)
    without = copy.deepcopy(decoder)
    mlp_of(without, layer).down.matrix[
        torch.cat([part for number, part in enumerate(units) if number != top_k])
    ] = 0
    for changed, expected in ((output[None], without), (record.mlp_output, decoder)):
        logits = experts.logits_after(decoder, layer, record, changed)
        assert_close(logits, expected(IDS).logits[0, -1], atol=1e-4, rtol=1e-4)


def test_matrix_multiplication_counts():
    config = TINY["llama"]
    mlp = mlp_of(build("llama"), 0)
    dense, few, router = experts.multiplications(config, 4, 3)
    assert dense == sum(part.weight.numel() for part in (mlp.up, mlp.gate, mlp.down))
    assert few == dense * 3 / 4
    assert router == 4 * config.d_model
    plain, _, _ = experts.multiplications(TINY["gpt2"], 4, 3)
    assert plain == 2 * TINY["gpt2"].d_model * TINY["gpt2"].d_ff


# ---- drafts


def test_first_layers_predict_like_the_logit_lens(decoder: Transformer):
    states = decoder(IDS, record=True).hidden_states
    for n_layers, state in enumerate(states):
        assert decoder.final_norm is not None
        expected = decoder.final_norm(state[0, -1]) @ decoder.unembedding
        logits = drafts.early_logits(decoder, IDS[0], n_layers)
        assert_close(logits, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("n_read", [0, 2])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_cached_draft_matches_uncached_draft(decoder: Transformer, n_layers: int, n_read: int):
    # Cache all tokens except the last one.
    text_cache = drafts.cache_text(decoder, IDS[0, : n_read + 1])
    cache = drafts.first_layers(decoder, text_cache, n_layers, IDS.shape[1])
    for start, end in ((n_read, 3), (3, 4), (4, IDS.shape[1])):
        logits = drafts.early_logits(decoder, IDS[0, start:end], n_layers, cache)
        expected = drafts.early_logits(decoder, IDS[0, :end], n_layers)
        assert_close(logits, expected, atol=1e-5, rtol=1e-5)
        assert cache.length == end


@pytest.mark.parametrize("n_drafted", [1, 5])
def test_verified_draft_matches_the_full_model(decoder: Transformer, n_drafted: int):
    """Draft with no layers, some layers and all layers: quality doesn't matter."""
    n_all = decoder.config.n_layers
    n_kept = []
    for start in range(1, IDS.shape[1]):
        ids = IDS[0, start:]
        greedy = generate(decoder, ids, max_new_tokens=n_drafted + 1)
        text_cache = drafts.cache_text(decoder, ids)
        for n_layers in range(n_all + 1):
            checked = drafts.draft(decoder, ids, n_layers, n_drafted)
            assert drafts.draft(decoder, ids, n_layers, n_drafted, text_cache) == checked
            assert text_cache.length == len(ids) - 1
            n_kept.append(checked.n_accepted)
            assert len(checked.drafted) == n_drafted
            assert len(checked.accepted) == checked.n_accepted + 1
            assert list(checked.accepted) == greedy[: len(checked.accepted)]
        assert checked.n_accepted == n_drafted  # A draft from all layers is always accepted.
    assert min(n_kept) == 0


# ---- rewards


@pytest.mark.parametrize(
    ("rule", "text", "word", "expected"),
    [
        (rewards.FULL_STOP, "It ran. Then", "", 1),
        (rewards.FULL_STOP, "It ran.", "", 1),
        (rewards.FULL_STOP, "3.5 metres", "", 0),
        (rewards.FULL_STOP, "", "", 0),
        (rewards.HAS_WORD, "The cat, it ran", "CAT", 1),
        (rewards.HAS_WORD, "The cats ran", "cat", 0),
        (rewards.HAS_WORD, "a (b) c", "(b)", 1),
        (rewards.HAS_WORD, "aaaa", "(a+)+$", 0),
        (rewards.HAS_WORD, "anything", "   ", 0),
        (rewards.HAS_WORD, "Straße", "straße", 1),
    ],
)
def test_rule_returns_0_or_1(rule: str, text: str, word: str, expected: float):
    assert rewards.reward(rule, (1, 2), text, word) == expected


def test_repeated_tokens():
    assert rewards.reward(rewards.NO_TOKEN_TWICE, (1, 2, 3), "") == 1
    assert rewards.reward(rewards.NO_TOKEN_TWICE, (1, 2, 1), "") == 0


# ---- distillation


def two_logits(rows: int = 5, size: int = 30) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    teacher, student = 2 * torch.randn(2, rows, size, generator=generator)
    return teacher, student


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_gradients_match_autograd(temperature: float):
    teacher, student = two_logits()
    leaf = student.clone().requires_grad_()
    bits = distillation.divergence_bits(teacher, leaf, temperature)
    (expected,) = torch.autograd.grad(bits.sum() * math.log(2), leaf)
    result = distillation.soft_gradient(teacher, student, temperature)
    assert_close(result, expected, atol=1e-5, rtol=1e-4)
    right = torch.tensor([0, 7, 7, 29, 12])
    (expected,) = torch.autograd.grad(cross_entropy(leaf, right, reduction="sum"), leaf)
    assert_close(distillation.hard_gradient(right, student), expected, atol=1e-5, rtol=1e-4)


def test_student_cost_matches_a_model_of_its_depth():
    config = TINY["llama-tied"]
    n_parameters, n_operations = distillation.costs(config, config.n_layers, 7)
    assert n_parameters == sum(p.numel() for p in build("llama-tied").parameters())
    fewer, part = distillation.costs(config, 1, 7)
    block = build("llama-tied").blocks[0]
    assert n_parameters - fewer == sum(p.numel() for p in block.parameters())
    assert n_operations - part == 7 * (
        sum(p.numel() for p in block.parameters() if p.dim() == 2)
        + 2 * 7 * config.n_heads * config.d_head
    )
