"""8-bit matrices: rounding errors, and otherwise unchanged models."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import Transformer, bert_config, generate, gpt2_config, llama_config, stream
from attention_core.model.config import LatentConfig
from attention_core.model.layers import Projection
from attention_core.speed.int8 import Int8Matrix, Int8Projection, Int8Transformer

CONFIGS = {
    "gpt2": gpt2_config(
        d_model=48, n_layers=3, n_heads=4, vocab_size=61, context_length=40, d_ff=80
    ),
    "llama": llama_config(
        vocab_size=67,
        context_length=40,
        d_model=24,
        n_layers=2,
        n_heads=6,
        n_kv_heads=2,
        d_ff=44,
        tied=False,
    ),
    "bert": bert_config(
        d_model=20, n_layers=2, n_heads=5, d_ff=28, vocab_size=71, context_length=40
    ),
}
ROW = torch.tensor([7])


def random_model(kind: str) -> Transformer:
    torch.manual_seed(5)
    model = Transformer(CONFIGS[kind])
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return model.requires_grad_(False).eval()


def round_matrices(model: Transformer, int8: Int8Transformer) -> Transformer:
    """Return the float32 model with the rounded matrices."""
    reference = Transformer(model.config)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, module in int8.named_modules():
        if isinstance(module, Int8Projection):
            state[f"{name}.weight"] = module.weight
    if int8.output_matrix is not None:
        state["unembedding"] = int8.output_matrix.matrix
    reference.load_state_dict(state)
    return reference.requires_grad_(False).eval()


def test_weight_error_is_at_most_half_a_step():
    torch.manual_seed(1)
    # columns with very different magnitudes
    weight = torch.randn(30, 17) * torch.logspace(-3, 2, 17)
    weight[:, 4] = 0
    matrix = Int8Matrix(weight)
    assert matrix.codes.shape == (17, 30)
    assert matrix.codes.dtype == torch.int8
    assert int(matrix.codes.abs().max()) == 127
    error = (matrix.matrix - weight).abs().amax(dim=0)
    assert (error <= 0.5001 * weight.abs().amax(dim=0) / 127).all()
    assert_close(matrix.columns(torch.tensor([[4, 16]])), matrix.matrix.t()[[4, 16]][None])


@pytest.mark.parametrize(
    "size", [0.0, 1e-45, 1e-44, 1.9e-43, 1e-42, 1e-40, 1e-38, 1e-36, 1e-6, 1.0, 1e38]
)
def test_codes_of_columns_of_every_magnitude(size: float):
    """Codes stay in range and signs don't flip, even with subnormal scales."""
    torch.manual_seed(6)
    ordinary = torch.randn(33, 1)
    column = (torch.rand(33, 1) * 2 - 1) * size
    column[4], column[9] = size, -size
    columns = (column, column.abs(), -column.abs(), torch.zeros(33, 1).index_fill(0, ROW, size))
    matrix = Int8Matrix(torch.cat((ordinary, *columns, -ordinary), dim=1))
    assert int(matrix.codes.abs().max()) <= 127
    # scales are rounded to multiples of 2**-149, and a weight is at most 127 scales
    limit = matrix.scales[1:5] * 0.50001 + 127 * 2.0**-150
    exact = torch.cat(columns, dim=1)
    assert ((matrix.matrix[:, 1:5] - exact).abs() <= limit).all()
    assert (matrix.matrix[:, 1:5] * exact.sign() >= 0).all()
    ordinary_only = Int8Matrix(ordinary).matrix  # other columns don't affect a column
    assert torch.equal(matrix.matrix[:, ::5], torch.cat((ordinary_only, -ordinary_only), dim=1))


@pytest.mark.parametrize("n_rows", [1, 3, 8, 9, 40])
@pytest.mark.parametrize("d_in", [48, 41])  # a multiple of 16, and a size that isn't one
@pytest.mark.parametrize("bias", [True, False])
def test_product_uses_the_rounded_matrix(n_rows: int, d_in: int, bias: bool):
    torch.manual_seed(2)
    projection = Projection(d_in, 37, bias)
    projection.requires_grad_(False).weight.normal_()
    int8, x = Int8Projection(projection), torch.randn(2, n_rows, d_in)
    y = x @ int8.matrix + (0 if projection.bias is None else projection.bias)
    # with few rows, activations and products are rounded to bfloat16 (8-bit precision)
    in_bfloat16 = 2 * n_rows <= 16 and d_in == 48
    tolerance = 2e-2 * float(y.abs().max()) if in_bfloat16 else 1e-4
    assert_close(int8(x), y, atol=tolerance, rtol=0)


@pytest.mark.parametrize("kind", CONFIGS)
def test_int8_model_equals_the_model_with_rounded_matrices(kind: str):
    model = random_model(kind)
    int8 = Int8Transformer(model)
    ids = torch.randint(0, model.config.vocab_size, (2, 19))  # 38 rows, so bfloat16 isn't used
    ours, theirs = int8(ids, record=True), round_matrices(model, int8)(ids)
    assert_close(ours.hidden, theirs.hidden, atol=1e-5, rtol=1e-5)
    if kind != "bert":
        assert_close(ours.logits, theirs.logits, atol=1e-4, rtol=1e-5)
    assert len(ours.records) == model.config.n_layers
    # the original model is unchanged
    assert_close(random_model(kind)(ids).hidden, model(ids).hidden)
    matrices = [module for module in int8.modules() if isinstance(module, Int8Matrix)]
    saved = sum(3 * matrix.codes.numel() - 4 * len(matrix.scales) for matrix in matrices)
    assert int8.n_bytes + saved == sum(4 * p.numel() for p in model.parameters())


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_cached_steps_are_close_to_the_full_pass(kind: str):
    model = random_model(kind)
    int8 = Int8Transformer(model)
    prompt = [7, 3, 11, 2]
    cache = int8.new_cache(1, 30)
    cached = list(stream(int8, prompt, max_new_tokens=20, cache=cache))
    ids = torch.tensor([prompt + [step.token_id for step in cached][:-1]])
    whole = round_matrices(model, int8)(ids).logits[0, len(prompt) - 1 :]
    steps = torch.stack([step.logits for step in cached])
    # single steps round activations to bfloat16
    assert_close(steps, whole, atol=5e-2 * float(whole.abs().max()), rtol=0)
    again = generate(int8, prompt, max_new_tokens=20, cache=int8.new_cache(1, 30))
    assert again == [step.token_id for step in cached]


def test_some_weights_are_not_quantized():
    with pytest.raises(ValueError, match=r"\(3,\)"):
        Int8Matrix(torch.ones(3))
    with pytest.raises(ValueError, match="int32"):
        Int8Matrix(torch.ones(3, 4, dtype=torch.int32))
    config = llama_config(
        vocab_size=67,
        context_length=40,
        d_model=24,
        n_layers=2,
        n_heads=4,
        n_kv_heads=4,
        d_ff=44,
    )
    latent = LatentConfig(kv_rank=8, nope_head_size=6, rope_head_size=4, v_head_size=6)
    with pytest.raises(ValueError, match="latent"):
        Int8Transformer(Transformer(replace(config, n_kv_heads=None, latent=latent)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("kind", CONFIGS)
def test_rejects_models_with_another_dtype(kind: str, dtype: torch.dtype):
    """Reject a model even if only one part has a different dtype."""
    whole, part = random_model(kind).to(dtype), random_model(kind)
    part.blocks[-1].to(dtype)
    for model in (whole, part):
        with pytest.raises(ValueError, match=str(dtype)):
            Int8Transformer(model)
    converted = Int8Transformer(random_model(kind).to(dtype).float())
    assert converted(torch.tensor([[3, 1, 4]])).hidden.dtype == torch.float32


def test_rejects_int8_models():
    with pytest.raises(ValueError, match="8 bits"):
        Int8Transformer(Int8Transformer(random_model("gpt2")))
