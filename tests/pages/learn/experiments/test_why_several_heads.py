"""One map for two heads, score noise, division of labor, splitting into heads."""

import copy
import itertools
import math

import pytest
import torch
from torch.testing import assert_close

from attention_core import Transformer
from attention_core.analysis.ablation import logits_function
from attention_core.analysis.head_statistics import TextWeights
from pages.learn.why_several_heads.experiment import division, splitting
from pages.learn.why_several_heads.experiment.head_size import (
    head_counts,
    n_parameters,
    score_noise,
)
from pages.learn.why_several_heads.experiment.one_map import (
    attend_with_maps,
    attend_with_one_map,
    average_map,
    best_map,
    missed_share,
    written_vectors,
)
from tests.helpers.tiny_models import TINY, build

N_TOKENS = 11
IDS = torch.arange(3, 3 + 5 * N_TOKENS, 5)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def random_maps(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.softmax(2 * random(*shape, seed=seed), dim=-1)


# ---- one map instead of two


@pytest.mark.parametrize("name", TINY)
def test_head_outputs_sum_to_the_layer_update(name: str):
    model = build(name)
    record = model(IDS[None], record=True).records[1]
    n_heads = record.weights.shape[1]
    values = written_vectors(record.v[0], model.out_weight(1), range(n_heads))
    assert values.shape == (n_heads, N_TOKENS, model.config.d_model)
    bias = model.blocks[1].attention.out.bias
    expected = record.output[0] - (0.0 if bias is None else bias)
    assert_close(attend_with_maps(record.weights[0], values), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("causal", [True, False])
def test_best_single_map_is_optimal(causal: bool):
    n, width = 6, 9
    weights, values = random_maps(2, n, n), random(2, n, width, seed=1)
    visible = torch.ones(n, n, dtype=torch.bool)
    if causal:
        visible = visible.tril()
        weights = weights * visible
        weights = weights / weights.sum(dim=-1, keepdim=True)
    target = attend_with_maps(weights, values)
    best = best_map(values, target, visible, steps=2000)
    assert best.shape == (n, n)
    assert_close(best.sum(dim=-1), torch.ones(n).double(), atol=1e-9, rtol=0)
    assert bool((best >= 0).all())
    assert not bool(best[~visible].any())
    # Optimality conditions over distributions: no visible key would reduce the error more than
    # the keys with weight, and those would all reduce it equally.
    keys = values.double().sum(dim=0)
    slopes = (best @ keys - target.double()) @ keys.T
    for row, slope, is_visible in zip(best, slopes, visible, strict=True):
        active = slope[row > 1e-6]
        assert_close(active, active.mean().expand_as(active), atol=1e-5, rtol=0)
        assert float(slope[is_visible].min()) > float(active.mean()) - 1e-5
    errors = missed_share(target.double(), attend_with_one_map(best, values.double()))
    others = missed_share(target, attend_with_one_map(average_map(weights), values))
    assert bool((errors <= others + 1e-6).all())
    assert bool((errors[int(causal) :] < others[int(causal) :] - 1e-4).any())


def test_best_map_of_two_keys_lies_between_them():
    values = torch.tensor([[[0.0, 0.0], [2.0, 0.0]]])
    target = torch.tensor([[0.5, 7.0], [-1.0, 0.0], [9.0, 1.0]])
    best = best_map(values, target, torch.ones(3, 2, dtype=torch.bool))
    expected = torch.tensor([[0.75, 0.25], [1.0, 0.0], [0.0, 1.0]]).double()
    assert_close(best, expected, atol=1e-6, rtol=0)


# ---- the cost of a head


def test_head_counts_divide_the_width():
    assert head_counts(24) == [1, 2, 3, 4, 6]
    assert head_counts(7) == [1]
    assert head_counts(2) == [1]


@pytest.mark.parametrize("n_heads", [1, 2, 3, 6])
def test_parameter_count_does_not_depend_on_head_count(n_heads: int):
    layer = torch.nn.MultiheadAttention(24, n_heads, bias=False)
    assert n_parameters(24, n_heads) == sum(part.numel() for part in layer.parameters())


def test_noise_matches_its_definition():
    x, n_draws = random(3, 12) * torch.tensor([[1.0], [5.0], [0.1]]), 2
    result = score_noise(x, [1, 3], n_draws=n_draws, seed=7)
    generator = torch.Generator().manual_seed(7)
    matrices = [torch.randn(12, 12, generator=generator) for _ in range(n_draws)]
    for noise, (n_heads, size) in zip(result, [(1, 12), (3, 4)], strict=True):
        assert (noise.n_heads, noise.head_size) == (n_heads, size)
        by_draw = []
        for matrix in matrices:
            errors = []
            for head, (i, j) in itertools.product(range(n_heads), [(0, 1), (0, 2), (1, 2)]):
                columns = matrix[:, head * size : (head + 1) * size]
                a, b = x[i] / x[i].norm(), x[j] / x[j].norm()
                errors.append(float((a @ columns) @ (b @ columns) / size - a @ b))
            by_draw.append(sum(error**2 for error in errors) / len(errors))
        assert noise.measured == pytest.approx(math.sqrt(sum(by_draw) / n_draws), rel=1e-4)
        assert noise.low == pytest.approx(math.sqrt(min(by_draw)), rel=1e-4)
        assert noise.high == pytest.approx(math.sqrt(max(by_draw)), rel=1e-4)


# ---- the division of labor


def make_weights(
    weights: torch.Tensor, ids: list[int], *, causal: bool, special: int = 0
) -> TextWeights:
    is_special = torch.tensor([position < special for position in range(len(ids))])
    return TextWeights(weights, torch.tensor(ids), is_special, causal)


def test_each_job_goes_to_the_head_built_for_it():
    n = 7
    before = torch.diag(torch.ones(n - 1), -1)
    before[0, 0] = 1.0
    first = torch.zeros(n, n)
    first[:, 0] = 1.0
    far = torch.eye(n)
    far[5], far[6] = torch.eye(n)[1], torch.eye(n)[2]
    same = torch.eye(n)
    same[4] = torch.eye(n)[2]  # Id 8 occurs at positions 2 and 4.
    heads = torch.stack([before, torch.eye(n), first, far, same])
    shares = division.head_roles(make_weights(heads, [9, 7, 8, 6, 8, 5, 4], causal=True))
    assert list(shares) == [
        "the previous token",
        "itself",
        "the first token",
        "the same word elsewhere",
        "distant words",
    ]
    expected = {
        "the previous token": [1, 0, 1 / 6, 0, 0],
        "itself": [0, 1, 0, 4 / 6, 5 / 6],
        "the first token": [1 / 6, 0, 1, 0, 0],
        "the same word elsewhere": [0, 0, 0, 0, 1],
        "distant words": [0, 0, 0, 2 / 6, 0],
    }
    for job, values in expected.items():
        assert_close(shares[job], torch.tensor(values).float(), msg=job)


def test_encoder_may_look_ahead_and_special_tokens_do_not_count():
    n = 6
    weights = torch.full((1, n, n), 1 / n)
    shares = division.head_roles(make_weights(weights, [1, 2, 3, 4, 5, 6], causal=False, special=2))
    assert float(shares["the next token"]) == pytest.approx(1 / n)
    assert "the same word elsewhere" not in shares
    # Query 0 can use keys 4 and 5, query 1 only key 5. Keys 0 and 1 are special tokens.
    assert float(shares["distant words"]) == pytest.approx(3 / n / n)


def disable_heads(model: Transformer, layer: int, heads: list[int]) -> Transformer:
    """A copy with these heads' rows of W_O set to zero, so they have no output."""
    changed, size = copy.deepcopy(model), model.config.d_head
    for head in heads:
        changed.blocks[layer].attention.out.matrix[head * size : (head + 1) * size] = 0.0
    return changed


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_losses_match_a_model_with_zeroed_output_rows(name: str):
    model, layer = build(name), 1
    n_heads, decoder = model.config.n_heads, model.config.causal
    heads = list(range(n_heads))
    sets = [heads, *([h for h in heads if h != head] for head in heads), *([h] for h in heads)]
    output = model(IDS[None], record=True)
    lost = division.prediction_loss(logits_function(model)) if decoder else division.state_loss
    result = list(division.losses(model, output.hidden_states[layer], layer, lost))
    assert len(result) == len(sets) == 1 + 2 * n_heads
    for value, disabled in zip(result, sets, strict=True):
        changed = disable_heads(model, layer, disabled)(IDS[None])
        if decoder:
            before, after = (o.logits[0].double().log_softmax(-1) for o in (output, changed))
            expected = torch.nn.functional.kl_div(
                after, before, log_target=True, reduction="batchmean"
            )
        else:
            similar = torch.cosine_similarity(output.hidden[0], changed.hidden[0], dim=-1)
            expected = 1 - similar.mean()
        assert value == pytest.approx(float(expected), rel=1e-4, abs=1e-6)
        assert value > 1e-4


def test_loss_computation_can_stop_between_layers():
    model, visible = build("gpt2"), []

    def stop(layer: int) -> None:
        visible.append(layer)
        if len(visible) == 2:
            raise InterruptedError

    entering = model(IDS[None], record=True).hidden_states[1]
    with pytest.raises(InterruptedError):
        list(division.losses(model, entering, 1, division.state_loss, before_layer=stop))
    assert visible == [1, 2]


# ---- splitting into heads in code


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_one_product_gives_the_queries_of_every_head(name: str):
    model = build(name)
    n_heads, size = model.config.n_heads, model.config.d_head
    layer = model(IDS[None], record=True).layers[1]
    weight, bias = splitting.query_matrix(model, 1)
    assert weight.shape == (model.config.d_model, n_heads * size)
    x = layer.attention_reads[0]
    fused = splitting.one_product(x, weight, bias, n_heads)
    assert fused.shape == (n_heads, N_TOKENS, size)
    separate = splitting.product_for_each_head(x, weight, bias, n_heads)
    assert_close(fused, separate, atol=1e-5, rtol=1e-5)
    for head in range(n_heads):
        columns = slice(head * size, (head + 1) * size)
        expected = x @ weight[:, columns] + bias[columns]
        assert_close(fused[head], expected, atol=1e-5, rtol=1e-5)
    if name == "gpt2":  # Without rotary positions, the layer attends with these queries directly.
        assert_close(fused, layer.attention.q[0], atol=1e-5, rtol=1e-5)


def test_viewing_as_heads_directly_misplaces_most_numbers():
    # 2 tokens, 2 heads of size 1: a direct view gives [[0, 1], [2, 3]] instead of [[0, 2], [1, 3]].
    assert splitting.misplaced(2, 2, 1) == 0.5
    assert splitting.misplaced(5, 1, 3) == 0.0
    assert splitting.misplaced(1, 4, 3) == 0.0
