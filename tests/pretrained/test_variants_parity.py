"""Attention variants equal transformers: DeepSeek-V3, Mistral's window, and GQA.

Models are small and random, all sizes differ, and weights are copied. transformers runs eager
attention, because only that returns weights.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from transformers import (
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)
from transformers.cache_utils import DynamicCache

from attention_core import LatentConfig, Transformer, TransformerConfig, with_latent_form
from pretrained.weights import core_from_reference, core_from_state_dict

TOLERANCE = {"atol": 1e-5, "rtol": 0.0}
EAGER = {"attn_implementation": "eager"}
SIZES = {
    "vocab_size": 89, "max_position_embeddings": 37, "hidden_size": 30, "num_hidden_layers": 2,
    "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 8, "intermediate_size": 44,
    "rms_norm_eps": 1e-4, "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
    "tie_word_embeddings": False,
}  # fmt: skip
LENGTH, WINDOW = 17, 5
CHUNKS = {"single chunk": [LENGTH], "one by one": [1] * LENGTH, "uneven": [7, 1, 1, 5, 3]}
chunked = pytest.mark.parametrize("sizes", CHUNKS.values(), ids=CHUNKS.keys())


def enlarge(model: Any) -> Any:
    """Scale up the small initial weights, so that attention is far from uniform."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn_like(parameter) * 0.35
            parameter.copy_(noise + (0.6 if parameter.dim() == 1 else 0.0))
    return model.eval()


def tokens(batch: int = 3) -> Tensor:
    return torch.randint(89, (batch, LENGTH), generator=torch.Generator().manual_seed(1))


def run_reference(model: Any, **inputs: Any) -> Any:
    with torch.no_grad():
        return model(**inputs, output_attentions=True)


def check_chunks(core: Transformer, reference: Any, sizes: list[int]) -> tuple[Any, Any]:
    """Run both models on the same chunks with caches; compare logits and weights."""
    ids = tokens()
    ours, cache = core.new_cache(3, LENGTH), DynamicCache(config=reference.config)
    for chunk in ids.split(sizes, dim=1):
        output = core(chunk, cache=ours, record=True)
        expected = run_reference(reference, input_ids=chunk, past_key_values=cache, use_cache=True)
        assert_close(output.logits, expected.logits, **TOLERANCE)
        for record, weights in zip(output.records, expected.attentions, strict=True):
            assert_close(record.weights, weights[..., -record.weights.shape[-1] :], **TOLERANCE)
            assert not weights[..., : -record.weights.shape[-1]].any()  # tokens outside the window
    # the test only proves something if attention is far from uniform
    assert max(float(record.weights[:, :, -1].max()) for record in output.records) > 0.3
    return ours, cache


def deepseek(q_rank: int | None, *, interleaved: bool = True, bias: bool = False) -> Any:
    """Build DeepSeek-V3 without experts: every layer has a dense feed-forward network."""
    sizes = {k: v for k, v in SIZES.items() if k != "head_dim"} | {"num_key_value_heads": 6}
    return enlarge(
        DeepseekV3ForCausalLM(
            DeepseekV3Config(
                **sizes,
                **EAGER,
                first_k_dense_replace=2,
                q_lora_rank=q_rank,
                kv_lora_rank=14,
                qk_nope_head_dim=5,
                qk_rope_head_dim=4,
                v_head_dim=7,
                attention_bias=bias,
                rope_interleave=interleaved,
            )
        )
    )


def latent_core(reference: Any) -> Transformer:
    """Build the core model with DeepSeek-V3's weights, in the expanded form."""
    hf = reference.config
    config = TransformerConfig(
        vocab_size=hf.vocab_size,
        context_length=hf.max_position_embeddings,
        d_model=hf.hidden_size,
        n_layers=hf.num_hidden_layers,
        n_heads=hf.num_attention_heads,
        d_ff=hf.intermediate_size,
        latent=LatentConfig(
            kv_rank=hf.kv_lora_rank,
            nope_head_size=hf.qk_nope_head_dim,
            rope_head_size=hf.qk_rope_head_dim,
            v_head_size=hf.v_head_dim,
            q_rank=hf.q_lora_rank,
            interleaved=hf.rope_interleave,
        ),
        positions="rotary",
        rope_theta=hf.rope_parameters["rope_theta"],
        norm="rms",
        norm_eps=hf.rms_norm_eps,
        activation="silu",
        gated=True,
        attention_bias=hf.attention_bias,
        mlp_bias=False,
        output="separate",
    )
    names = {
        "attention_norm": "input_layernorm",
        "mlp_norm": "post_attention_layernorm",
        "attention.q_norm": "self_attn.q_a_layernorm",
        "attention.q_down": "self_attn.q_a_proj",
        "attention.q_up": "self_attn.q_b_proj" if hf.q_lora_rank else "self_attn.q_proj",
        "attention.kv_norm": "self_attn.kv_a_layernorm",
        "attention.kv_down": "self_attn.kv_a_proj_with_mqa",
        "attention.kv_up": "self_attn.kv_b_proj",
        "attention.out": "self_attn.o_proj",
        "mlp.up": "mlp.up_proj",
        "mlp.gate": "mlp.gate_proj",
        "mlp.down": "mlp.down_proj",
    }
    state, weights = reference.state_dict(), {}
    for key in list(state):
        if key.startswith("model.layers."):
            _, _, layer, rest = key.split(".", 3)
            name, kind = rest.rsplit(".", 1)
            ours = next(our for our, their in names.items() if their == name)
            tensor = state.pop(key)
            weights[f"blocks.{layer}.{ours}.{kind}"] = tensor
    weights["embedding"] = state.pop("model.embed_tokens.weight")
    weights["final_norm.weight"] = state.pop("model.norm.weight")
    weights["unembedding"] = state.pop("lm_head.weight").t()
    assert not state
    core = Transformer(config).eval().requires_grad_(False)
    core.load_state_dict(weights, strict=True)
    return core


LATENT = {
    "as DeepSeek-V3": {"q_rank": 10},
    "uncompressed queries, as V2-Lite": {"q_rank": None},
    "biases": {"q_rank": 10, "bias": True},
    "rotary halves": {"q_rank": 10, "interleaved": False},
}


@pytest.mark.parametrize("absorbed", [False, True], ids=["expanded", "absorbed"])
@pytest.mark.parametrize("kind", LATENT)
def test_latent_attention(kind: str, absorbed: bool):
    reference = deepseek(**LATENT[kind])
    core = with_latent_form(latent_core(reference), absorbed=absorbed)
    expected, ours = run_reference(reference, input_ids=tokens()), core(tokens(), record=True)
    assert_close(ours.logits, expected.logits, **TOLERANCE)
    for layer, weights in enumerate(expected.attentions):
        assert_close(ours.records[layer].weights, weights, **TOLERANCE)
        assert ours.records[layer].scale == reference.model.layers[layer].self_attn.scaling


@pytest.mark.parametrize("absorbed", [False, True], ids=["expanded", "absorbed"])
@chunked
def test_latent_attention_with_a_cache(absorbed: bool, sizes: list[int]):
    # float64, because on a CPU without AVX-512 the float32 rounding errors are 1.1e-5 in the
    # core's logits and 0.4e-5 in those of transformers.
    reference = deepseek(q_rank=10).double()
    core = with_latent_form(latent_core(reference), absorbed=absorbed).double()
    ours, cache = check_chunks(core, reference, sizes)
    for layer in range(2):  # transformers also caches the latent and the rotated key
        latent, rope_key = ours.layer(layer)
        assert_close(latent, cache.layers[layer].keys, **TOLERANCE)
        assert_close(rope_key, cache.layers[layer].values, **TOLERANCE)


@pytest.mark.parametrize("absorbed", [False, True], ids=["expanded", "absorbed"])
def test_one_layer_of_latent_attention(absorbed: bool):
    """Test `DeepseekV3Attention` on its own, with random input states."""
    reference = deepseek(q_rank=10)
    core = with_latent_form(latent_core(reference), absorbed=absorbed)
    x = torch.randn(3, LENGTH, 30, generator=torch.Generator().manual_seed(2))
    positions = torch.arange(LENGTH)[None]
    hidden = torch.full((LENGTH, LENGTH), -torch.inf).triu(1)
    with torch.no_grad():
        output, weights = reference.model.layers[1].self_attn(
            x, reference.model.rotary_emb(x, positions), hidden[None, None]
        )
    block: Any = core.blocks[1]
    forward_pass = core.new_pass(x, positions[0])
    assert_close(forward_pass.mask, hidden == 0)
    options = {"mask": forward_pass.mask, "positions": forward_pass.rotation}
    record = block.attention.record(x, **options)
    assert_close(record.weights, weights, **TOLERANCE)
    assert_close(record.output, output, **TOLERANCE)


def mistral(window: int | None) -> Any:
    return enlarge(MistralForCausalLM(MistralConfig(**SIZES, **EAGER, sliding_window=window)))


def windowed_core(reference: Any) -> Transformer:
    """Build the core as Llama with a window; names and weights are the same."""
    hf = reference.config.to_dict()
    llama_fields = {k: hf[k] for k in LlamaConfig().to_dict() if k in hf}
    llama = core_from_state_dict(llama_fields | {"model_type": "llama"}, reference.state_dict())
    core = Transformer(replace(llama.config, window=hf["sliding_window"]))
    core.load_state_dict(llama.state_dict())
    return core.eval().requires_grad_(False)


@pytest.mark.parametrize("window", [1, WINDOW, LENGTH - 1, LENGTH, None])
def test_sliding_window(window: int | None):
    reference = mistral(window)
    core = windowed_core(reference)
    expected, ours = run_reference(reference, input_ids=tokens()), core(tokens(), record=True)
    assert_close(ours.logits, expected.logits, **TOLERANCE)
    for record, weights in zip(ours.records, expected.attentions, strict=True):
        assert_close(record.weights, weights, **TOLERANCE)


@chunked
def test_sliding_window_with_a_cache(sizes: list[int]):
    reference = mistral(WINDOW)
    core = windowed_core(reference)
    ours, cache = check_chunks(core, reference, sizes)
    assert (ours.length, ours.n_stored) == (LENGTH, WINDOW)
    # with a window of w, transformers caches the w - 1 keys that the next token sees
    for layer in range(2):
        keys, _ = ours.layer(layer)
        their_keys = cache.layers[layer].keys
        assert_close(keys[:, :, -(WINDOW - 1) :], their_keys[:, :, -(WINDOW - 1) :], **TOLERANCE)


@pytest.mark.parametrize("n_kv_heads", [6, 3, 2, 1], ids=["MHA", "GQA of 3", "GQA of 2", "MQA"])
@chunked
def test_head_counts_with_a_cache(n_kv_heads: int, sizes: list[int]):
    changes = SIZES | {"num_key_value_heads": n_kv_heads}
    reference = enlarge(LlamaForCausalLM(LlamaConfig(**changes, **EAGER)))
    core = core_from_reference(reference)
    ours, cache = check_chunks(core, reference, sizes)
    for layer in range(2):
        for one, other in zip(
            ours.layer(layer), (cache.layers[layer].keys, cache.layers[layer].values), strict=True
        ):
            assert_close(one, other, **TOLERANCE)
