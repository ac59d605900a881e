"""Scores with zero, one and two matrices, and updates that reach a weight."""

import math
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import LatentConfig, Transformer, TransformerConfig, attend
from attention_core.lecture_inputs import JOURNEY
from attention_core.positions.scaling import DynamicScaling, LinearScaling, RopeScaling
from pages.learn.similarity.experiment import teaching
from pages.learn.similarity.experiment.scores import (
    ScoreVariants,
    asymmetry,
    head_matrices,
    own_first,
    own_weight,
    score_variants,
)
from pages.learn.similarity.experiment.teaching import (
    GOAL,
    largest_change_of_cosines,
    n_moved,
    teach,
    teach_query_matrix,
    teach_vectors,
)
from tests.helpers.tiny_models import TINY, build

LAYER, HEAD, N_TOKENS = 1, 2, 7


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def ids(model: Transformer) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(model.config.vocab_size, (1, N_TOKENS), generator=generator)


def attention_weights(model: Transformer, layer: int = LAYER, head: int = HEAD) -> ScoreVariants:
    return score_variants(model, model(ids(model), record=True).layers[layer], head)


def columns(model: Transformer, part: int, head: int) -> slice:
    """Columns of a head in the fused matrix (part 0: query, 1: key, 2: value)."""
    config = model.config
    counts = (config.n_heads, config.kv_heads, config.kv_heads)
    number = head if part == 0 else head // (config.n_heads // config.kv_heads)
    start = (sum(counts[:part]) + number) * config.d_head
    return slice(start, start + config.d_head)


@pytest.mark.parametrize("name", TINY)
def test_head_matrices_give_its_queries_keys_and_values(name: str):
    model = build(name)
    matrices, record = head_matrices(model, LAYER, HEAD), attention_weights(model)
    qkv = model.blocks[LAYER].attention.qkv
    for part, matrix in enumerate((matrices.query, matrices.key, matrices.value)):
        head_columns = columns(model, part, HEAD)
        assert matrix.shape == (model.config.d_model, model.config.d_head)
        assert_close(matrix, qkv.matrix[:, head_columns], atol=0, rtol=0)
        bias = 0.0 if qkv.bias is None else qkv.bias[head_columns]
        assert_close(record.projected[part], record.x @ matrix + bias)
    assert matrices.n_numbers == 3 * model.config.d_model * model.config.d_head
    # The matrices are copies, so later changes to the model don't affect them.
    with torch.no_grad():
        qkv.weight.zero_()
    assert float(matrices.query.abs().sum()) > 0


def test_latent_attention_has_no_head_matrices():
    latent = LatentConfig(kv_rank=11, nope_head_size=4, rope_head_size=2, v_head_size=7)
    model = Transformer(
        TransformerConfig(
            vocab_size=13, context_length=40, d_model=24, d_ff=8, n_layers=2, n_heads=6,
            positions="rotary", latent=latent,
        )
    ).eval()  # fmt: skip
    with pytest.raises(ValueError, match="latent"):
        attention_weights(model, 0, 0)


@pytest.mark.parametrize("name", ["llama", "llama-tied"])
def test_rotary_positions_alone_keep_scores_symmetric(name: str):
    """Use W_k for the queries too: only a second matrix makes the scores asymmetric."""
    model = build(name)
    qkv = model.blocks[LAYER].attention.qkv
    query, key = columns(model, 0, HEAD), columns(model, 1, HEAD)
    qkv.matrix[:, query] = qkv.matrix[:, key]
    if qkv.bias is not None:
        qkv.bias[query] = qkv.bias[key]
    assert asymmetry(attention_weights(model).head.scores) == pytest.approx(0.0, abs=1e-5)


def test_asymmetry_of_each_pair():
    scores = random(5, 5)
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    differences = sum(abs(float(scores[i, j] - scores[j, i])) for i, j in pairs)
    sizes = sum(abs(float(scores[i, j])) + abs(float(scores[j, i])) for i, j in pairs)
    assert asymmetry(scores) == pytest.approx(differences / sizes, rel=1e-5)
    assert asymmetry(scores + scores.T) == 0.0
    assert asymmetry(scores - scores.T) == pytest.approx(1.0)
    assert asymmetry(random(5, 5).tril(-1)) == pytest.approx(1.0)
    assert asymmetry(torch.zeros(3, 3)) == asymmetry(torch.ones(1, 1)) == 0.0


def test_attention_of_a_token_to_itself():
    weights = torch.tensor([[0.5, 0.5, 0.0], [0.7, 0.2, 0.1], [0.0, 0.1, 0.9]])
    assert own_weight(weights) == pytest.approx((0.5 + 0.2 + 0.9) / 3)
    assert own_first(weights) == 2
    # The notebook's vectors have different lengths, so “journey” wins other words' rows.
    x = JOURNEY.embeddings
    assert own_first(attend(x, x, x, scale=1.0).weights) == 2
    x = x / x.norm(dim=-1, keepdim=True)
    assert own_first(attend(x, x, x, scale=1.0).weights) == len(x)


@pytest.mark.parametrize("causal", [True, False])
def test_vectors_change_until_the_weight_is_reached(causal: bool):
    x = random(6, 5) * 2
    lesson = teach_vectors(x, 4, 1, causal=causal)

    def weight(vectors: torch.Tensor) -> float:
        n_keys = 5 if causal else 6
        scores = [float(torch.dot(vectors[4], key)) for key in vectors[:n_keys]]
        return math.exp(scores[1]) / sum(math.exp(score) for score in scores)

    assert lesson.before == pytest.approx(weight(x), rel=1e-4)
    assert lesson.after == pytest.approx(weight(lesson.result), rel=1e-4)
    assert lesson.before < GOAL <= lesson.after
    assert lesson.share == pytest.approx(float((lesson.result - x).norm() / x.norm()))
    changes = [row for row in range(6) if not torch.allclose(lesson.result[row], x[row], atol=1e-6)]
    assert n_moved(x, lesson.result) == len(changes)
    assert {1, 4} <= set(changes)
    if causal:
        assert 5 not in changes  # This token is masked.
    change = (cosines_of(lesson.result) - cosines_of(x)).abs().max()
    assert largest_change_of_cosines(x, lesson.result) == pytest.approx(float(change), abs=1e-6)


def cosines_of(vectors: torch.Tensor) -> torch.Tensor:
    return torch.cosine_similarity(vectors[:, None], vectors[None], dim=-1)


@pytest.mark.parametrize("scaling", [None, LinearScaling(8.0), DynamicScaling(3.0, 4)])
@pytest.mark.parametrize("name", TINY)
def test_updated_query_matrix_has_the_predicted_effect(name: str, scaling: RopeScaling | None):
    model = build(name)
    if scaling is not None:
        if model.config.positions != "rotary":
            pytest.skip("no rotary positions to be scaled")
        model.config = replace(model.config, rope_scaling=scaling)
    before, query = attention_weights(model), 5
    key = int(before.head.k[: query + 1].norm(dim=-1).argmax())
    lesson = teach_query_matrix(model.config, before, head_matrices(model, LAYER, HEAD), query, key)
    assert lesson.before == pytest.approx(float(before.head.weights[query, key]), abs=1e-5)
    assert lesson.before < lesson.after
    # The keys of this BERT are too similar for any query to tell them apart.
    assert (lesson.after >= GOAL) == (name != "bert")
    model.blocks[LAYER].attention.qkv.matrix[:, columns(model, 0, HEAD)] = lesson.result
    after = attention_weights(model)
    assert_close(after.x, before.x, atol=0, rtol=0)
    assert float(after.head.weights[query, key]) == pytest.approx(lesson.after, abs=1e-5)


def test_no_update_when_it_is_unnecessary_or_impossible(monkeypatch: pytest.MonkeyPatch):
    start = random(3, 2)
    update = teach(lambda x: 0.0 * x.sum() - 0.1, start)
    assert (update.share, update.after) == (0.0, update.before)
    flat = teach(lambda x: 0.0 * x.sum() - 5.0, start)
    assert flat.share == 0.0
    assert flat.after < GOAL
    monkeypatch.setattr(teaching, "MOST_STEPS", 1)
    short = teach_vectors(random(6, 5) * 2, 4, 1, causal=False)
    assert short.before < short.after < GOAL
    assert short.share == pytest.approx(teaching.STEP, rel=1e-4)
