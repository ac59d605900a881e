"""The core equals transformers on small random models, in attention and outputs."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    LlamaConfig,
)

from pretrained.weights import core_from_reference, core_from_state_dict, transformer_config
from tests.helpers.reference_models import EAGER, LLAMA, TOLERANCE, enlarge, gpt2, ids, llama


def bert() -> Any:
    return BertModel(
        BertConfig(
            vocab_size=83,
            max_position_embeddings=29,
            hidden_size=20,
            num_hidden_layers=3,
            num_attention_heads=5,
            intermediate_size=28,
            type_vocab_size=3,
            **EAGER,
        )
    )


def reference_outputs(model: Any, **inputs: torch.Tensor) -> Any:
    with torch.no_grad():
        return model(**inputs, output_attentions=True, output_hidden_states=True)


DECODERS = {
    "gpt2": gpt2,
    "llama": llama,
    "llama, tied": lambda: llama(tie_word_embeddings=True),
    "llama, biases": lambda: llama(attention_bias=True, mlp_bias=True),
    "llama, one key head": lambda: llama(num_key_value_heads=1),
}


@pytest.mark.parametrize("name", DECODERS)
def test_decoders(name: str):
    reference = enlarge(DECODERS[name]())
    core = core_from_reference(reference)
    tokens = ids(reference)
    expected = reference_outputs(reference, input_ids=tokens)
    ours = core(tokens, record=True)
    assert_close(ours.logits, expected.logits, **TOLERANCE)
    for record, weights in zip(ours.records, expected.attentions, strict=True):
        assert_close(record.weights, weights, **TOLERANCE)
    # transformers applies the final norm to its last hidden state
    for state, theirs in zip(ours.hidden_states[:-1], expected.hidden_states[:-1], strict=True):
        assert_close(state, theirs, **TOLERANCE)
    assert_close(ours.hidden, expected.hidden_states[-1], **TOLERANCE)
    # the test only proves something if attention is far from uniform
    assert max(float(record.weights[:, :, -1].max()) for record in ours.records) > 0.2


def test_decoders_with_padding():
    reference = enlarge(llama())
    core = core_from_reference(reference)
    tokens, real = ids(reference), torch.ones(3, 17, dtype=torch.long)
    real[1, 9:], real[2, 4:] = 0, 0
    expected = reference_outputs(reference, input_ids=tokens, attention_mask=real)
    ours = core(tokens, attention_mask=real)
    assert_close(ours.logits[real.bool()], expected.logits[real.bool()], **TOLERANCE)


@pytest.mark.parametrize("segments", [False, True])
def test_bert_with_padding(segments: bool):
    reference = enlarge(bert())
    core = core_from_reference(reference)
    tokens, real = ids(reference), torch.ones(3, 17, dtype=torch.long)
    real[1, 13:], real[2, 6:] = 0, 0
    segment_ids = (torch.arange(17) // 7).expand(3, -1) if segments else torch.zeros_like(tokens)
    expected = reference_outputs(
        reference, input_ids=tokens, attention_mask=real, token_type_ids=segment_ids
    )
    ours = core(
        tokens,
        attention_mask=real,
        segment_ids=segment_ids if segments else None,
        record=True,
    )
    assert ours.logits is None
    for record, weights in zip(ours.records, expected.attentions, strict=True):
        assert_close(record.weights, weights, **TOLERANCE)
    for state, theirs in zip(ours.hidden_states, expected.hidden_states, strict=True):
        assert_close(state, theirs, **TOLERANCE)
    assert_close(ours.hidden, expected.last_hidden_state, **TOLERANCE)


def test_old_bert_tensor_names():
    reference = enlarge(bert())
    state = {
        "bert."
        + key.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for key, value in reference.state_dict().items()
    } | {"cls.predictions.bias": torch.zeros(83)}
    core = core_from_state_dict(reference.config.to_dict(), state)
    tokens = ids(reference)
    assert_close(core(tokens).hidden, core_from_reference(reference)(tokens).hidden)


def test_gpt2_checkpoints_without_prefix_but_with_mask_buffers():
    reference = enlarge(gpt2())
    state = {
        key.removeprefix("transformer."): value
        for key, value in reference.state_dict().items()
        if key != "lm_head.weight"
    } | {
        "h.0.attn.bias": torch.ones(1, 1, 31, 31).tril(),
        "h.2.attn.masked_bias": torch.tensor(-1e4),
    }
    core = core_from_state_dict(reference.config.to_dict(), state)
    tokens = ids(reference)
    assert_close(core(tokens).logits, core_from_reference(reference)(tokens).logits)


SHARED = {
    "gpt2": {"positions", "attention_norm", "mlp_norm", "final_norm"},
    "bert": {"embedding", "positions", "segments", "embedding_norm", "attention_norm", "mlp_norm"},
    "llama": {"embedding", "attention_norm", "mlp_norm", "final_norm"},
    "llama, tied": {"attention_norm", "mlp_norm", "final_norm"},
    "llama, biases": {"embedding", "attention_norm", "mlp_norm", "final_norm"},
}


@pytest.mark.parametrize("name", SHARED)
def test_memory_that_the_core_shares_with_the_reference(name: str):
    reference = enlarge(bert() if name == "bert" else DECODERS[name]())
    theirs = {parameter.untyped_storage().data_ptr() for parameter in reference.parameters()}
    core = core_from_reference(reference)
    shared = {}
    for key, parameter in core.named_parameters():
        part = key.removesuffix(".weight").removesuffix(".bias").split(".")[-1]
        if part in ("qkv", "out", "up", "down") and key.endswith(".bias"):
            continue  # GPT-2's matrices are transposed for nn.Linear
        shared.setdefault(part, set()).add(parameter.untyped_storage().data_ptr() in theirs)
    assert all(len(values) == 1 for values in shared.values()), "weight and bias differ"
    assert {part for part, values in shared.items() if values == {True}} == SHARED[name]
    assert all(parameter.requires_grad for parameter in reference.parameters())


def test_missing_and_extra_keys_raise_errors():
    reference = gpt2()
    config, state = reference.config.to_dict(), reference.state_dict()
    missing = {k: v for k, v in state.items() if k != "transformer.h.1.ln_2.bias"}
    with pytest.raises(ValueError, match=r"no weight 'h\.1\.ln_2\.bias'"):
        core_from_state_dict(config, missing)
    with pytest.raises(ValueError, match=r"1.*'h\.1\.attn\.extra'"):
        core_from_state_dict(config, state | {"transformer.h.1.attn.extra": torch.ones(2)})
    wrong = state | {"transformer.h.0.ln_1.bias": torch.ones(5)}
    with pytest.raises(ValueError, match=r"blocks\.0\.attention_norm\.bias .*\(24,\).*\(5,\)"):
        core_from_state_dict(config, wrong)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "t5"}, "'t5'"),
        ({}, "None"),
        (GPT2Config(scale_attn_by_inverse_layer_idx=True).to_dict(), "inverse_layer_idx=True"),
        (BertConfig(hidden_act="swish").to_dict(), "hidden_act='swish'"),
        (BertConfig().to_dict() | {"position_embedding_type": "relative_key"}, "relative_key"),
        # files from 2023 look like this
        (LLAMA | {"rope_scaling": {"type": "su", "factor": 2.0}}, "rope_type='su'"),
        (LlamaConfig(num_attention_heads=32, num_key_value_heads=5).to_dict(), r"\(32\).*\(5\)"),
    ],
)
def test_rejects_unsupported_options(config: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        transformer_config(config)


def test_rotary_base_in_older_files():
    old = {k: v for k, v in LLAMA.items() if k != "rope_parameters"}
    assert transformer_config(old).rope_theta == 10_000.0
    assert transformer_config(old | {"rope_theta": 5e5}).rope_theta == 5e5
    default = {"rope_theta": 5e5, "rope_scaling": {"type": "default"}}
    assert transformer_config(old | default).rope_theta == 5e5
    assert transformer_config(old | {"rope_theta": 7, "rope_scaling": None}).rope_theta == 7.0


@pytest.mark.parametrize(
    ("config", "option"),
    [
        (GPT2Config().to_dict(), "n_embd"),
        (BertConfig().to_dict(), "num_attention_heads"),
        (LLAMA, "max_position_embeddings"),
    ],
)
def test_rejects_missing_or_mistyped_numbers(config: dict[str, Any], option: str):
    with pytest.raises(ValueError, match=f"^{option}"):
        transformer_config({k: v for k, v in config.items() if k != option})
    for wrong in ("12", 1.5, True, 0, -3, [4]):
        with pytest.raises(ValueError, match=f"^{option}"):
            transformer_config(config | {option: wrong})


@pytest.mark.parametrize(
    ("config", "option"),
    [
        (GPT2Config().to_dict() | {"n_inner": "x"}, "n_inner"),
        (GPT2Config().to_dict() | {"layer_norm_epsilon": "1e-5"}, "layer_norm_epsilon"),
        (BertConfig().to_dict() | {"layer_norm_eps": -1.0}, "layer_norm_eps"),
        (BertConfig().to_dict() | {"type_vocab_size": 0}, "type_vocab_size"),
        (LLAMA | {"vocab_size": "64"}, "vocab_size"),
        (LLAMA | {"num_key_value_heads": 2.5}, "num_key_value_heads"),
        (LLAMA | {"head_dim": "64"}, "head_dim"),
        (LLAMA | {"rms_norm_eps": float("nan")}, "rms_norm_eps"),
        (LLAMA | {"rope_parameters": {"rope_theta": "1e4"}}, "rope_theta"),
        (LLAMA | {"attention_bias": "no"}, "attention_bias"),
        (LLAMA | {"tie_word_embeddings": 0.0}, "tie_word_embeddings"),
    ],
)
def test_rejects_mistyped_optional_numbers(config: dict[str, Any], option: str):
    with pytest.raises(ValueError, match=option):
        transformer_config(config)
