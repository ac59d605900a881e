"""Rotary scaling: the core matches the functions and models of transformers."""

import json
import math
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import LlamaConfig
from transformers.cache_utils import DynamicCache
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from attention_core import Transformer
from attention_core.positions.scaling import RopeScaling, plain_frequencies
from pages.learn.position.experiment import context_extension
from pages.learn.position.experiment.context_extension import scalings
from pretrained import checkpoint, compatibility
from pretrained.rotary_reference import reference_frequencies, rope_parameters
from pretrained.weights import core_from_reference, transformer_config
from tests.helpers.reference_models import LLAMA, TOLERANCE, enlarge, ids, llama

TRAINED = 19  # tokens
THETA = 5000.0
LENGTHS = {"original_max_position_embeddings": TRAINED}
# With a head size of 8 and 19 trained tokens, pairs 0 and 1 are fast, and 2 and 3 are slow.
SCALINGS: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 3.0},
    "dynamic": {"rope_type": "dynamic", "factor": 3.0},
    "yarn": {"rope_type": "yarn", "factor": 3.0, **LENGTHS, "beta_fast": 2.0, "beta_slow": 0.05},
    "yarn, a ramp within a pair": {
        "rope_type": "yarn", "factor": 3.0, **LENGTHS, "beta_fast": 2.0, "beta_slow": 0.05,
        "truncate": False,
    },
    "yarn, explicit attention factor": {
        "rope_type": "yarn", "factor": 3.0, **LENGTHS, "attention_factor": 1.3,
    },
    "yarn, DeepSeek settings": {
        "rope_type": "yarn", "factor": 3.0, **LENGTHS, "mscale": 1.5, "mscale_all_dim": 0.4,
    },
    "llama3": {
        "rope_type": "llama3", "factor": 3.0, **LENGTHS, "low_freq_factor": 0.05,
        "high_freq_factor": 1.5,
    },
}  # fmt: skip


def reference(name: str) -> Any:
    """Return a tiny Llama with a 57-token context, three times its trained length."""
    scaling = SCALINGS[name] | {"rope_theta": THETA}
    longest = TRAINED if name in ("linear", "dynamic") else 3 * TRAINED
    return enlarge(llama(rope_parameters=scaling, max_position_embeddings=longest))


def frequencies(core: Transformer, n_tokens: int) -> torch.Tensor:
    """Return the core's frequencies for a text of `n_tokens` tokens."""
    scaling, head_size = core.config.rope_scaling, core.config.d_head
    assert scaling is not None
    plain = plain_frequencies(head_size, core.config.rope_theta)
    return scaling.frequencies(plain, core.config.rope_theta, torch.tensor([n_tokens])).flatten()


@pytest.mark.parametrize("n_tokens", [1, TRAINED, TRAINED + 1, 3 * TRAINED])
@pytest.mark.parametrize("name", SCALINGS)
def test_frequencies_equal_transformers(name: str, n_tokens: int):
    theirs = reference(name)
    core = core_from_reference(theirs)
    assert core.config.context_length == 3 * TRAINED
    kind = theirs.config.rope_parameters["rope_type"]
    expected, factor = ROPE_INIT_FUNCTIONS[kind](theirs.config, seq_len=n_tokens)
    assert_close(frequencies(core, n_tokens), expected, atol=1e-7, rtol=1e-6)
    assert core.config.rope_scaling is not None
    assert core.config.rope_scaling.cosine_factor == pytest.approx(factor)
    plain = plain_frequencies(8, THETA)
    changed = not torch.allclose(expected, plain)
    assert changed == (kind != "dynamic" or n_tokens > TRAINED)


@pytest.mark.parametrize("name", SCALINGS)
def test_logits_equal_transformers_within_and_beyond_the_trained_length(name: str):
    theirs = reference(name)
    core = core_from_reference(theirs)
    for length in (TRAINED - 2, TRAINED + 5, 3 * TRAINED):
        tokens = ids(theirs, length=length)
        with torch.inference_mode():
            expected = theirs(tokens, output_attentions=True)
        ours = core(tokens, record=True)
        for record, weights in zip(ours.records, expected.attentions, strict=True):
            assert_close(record.weights, weights, **TOLERANCE)
        assert_close(ours.logits, expected.logits, **TOLERANCE)
    unscaled = core_from_reference(
        enlarge(llama(rope_parameters={"rope_type": "default", "rope_theta": THETA}))
    )
    tokens = tokens[:, :37]  # that model's context length
    assert float((unscaled(tokens).logits - core(tokens).logits).abs().max()) > 0.1


@pytest.mark.parametrize("name", SCALINGS)
def test_cached_steps_equal_transformers(name: str):
    """Run a prompt within the trained length, then single tokens far beyond it.

    This uses float64 because logits are as large as 6, and in float32 the order of sums on
    another processor already gives differences of 1e-5. transformers still rotates and normalizes
    in float32, which leaves differences of a few 1e-6.
    """
    theirs = reference(name).double()
    core = core_from_reference(theirs).double()
    tokens = ids(theirs, length=3 * TRAINED)
    cache, their_cache = core.new_cache(3, 3 * TRAINED), DynamicCache()
    begin, logits = 0, []
    for end in (TRAINED - 4, *range(TRAINED - 3, 3 * TRAINED + 1)):
        with torch.inference_mode():
            expected = theirs(tokens[:, begin:end], past_key_values=their_cache).logits
        logits.append(core(tokens[:, begin:end], cache=cache).logits)
        assert_close(logits[-1], expected, **TOLERANCE)
        begin = end
    whole = core(tokens).logits
    change = float((torch.cat(logits, dim=1) - whole).abs().max())
    # with dynamic scaling, cached keys were rotated with the frequencies of shorter texts
    assert (change > 0.1) == (name == "dynamic")
    assert name == "dynamic" or change < 1e-12


def test_pass_does_not_depend_on_earlier_passes():
    """In transformers, a model keeps the scaling of its longest text until a short one."""
    theirs = reference("dynamic")
    core, tokens = core_from_reference(theirs), ids(theirs, length=3 * TRAINED)

    def both_logits(length: int) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.inference_mode():
            return core(tokens[:, :length]).logits, theirs(tokens[:, :length]).logits

    both_logits(3 * TRAINED)
    ours, remembered = both_logits(TRAINED + 5)
    both_logits(TRAINED - 1)
    repeated, expected = both_logits(TRAINED + 5)
    assert_close(ours, repeated, atol=0.0, rtol=0.0)
    assert_close(ours, expected, **TOLERANCE)
    assert float((remembered - expected).abs().max()) > 0.01


def test_each_row_is_scaled_by_its_own_length():
    theirs = reference("dynamic")
    core, tokens = core_from_reference(theirs), ids(theirs, batch=2, length=30)
    padding = torch.tensor([[0], [17]])  # the second row has 13 tokens
    position_ids = (torch.arange(30) - padding).clamp(min=0)
    attention_mask = (torch.arange(30) >= padding).long()
    batch_logits = core(tokens, positions=position_ids, attention_mask=attention_mask).logits
    assert_close(batch_logits[:1], core(tokens[:1]).logits, **TOLERANCE)
    assert_close(batch_logits[1:, 17:], core(tokens[1:, 17:]).logits, **TOLERANCE)


OLD = {k: v for k, v in LLAMA.items() if k != "rope_parameters"} | {"rope_theta": 5e5}
PUBLISHED = {
    # as in vicuna-7b-v1.5-16k
    "linear": (OLD | {"rope_scaling": {"type": "linear", "factor": 4.0}}, 4 * 2048),
    # as in Qwen 2.5's documentation and in Llama 3.1 8B
    "yarn": (
        OLD
        | {
            "max_position_embeddings": 32768,
            "rope_scaling": {
                "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768,
            },
        },
        131_072,
    ),
    "llama3": (
        OLD
        | {
            "max_position_embeddings": 131_072,
            "rope_scaling": {
                "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
            },
        },
        131_072,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PUBLISHED)
def test_published_configurations(kind: str):
    fields, context_length = PUBLISHED[kind]
    config = transformer_config(fields)
    theirs = LlamaConfig(**fields)
    assert config.rope_theta == theirs.rope_parameters["rope_theta"] == 5e5
    assert config.context_length == context_length
    assert config.rope_scaling is not None
    plain = plain_frequencies(config.d_head, 5e5)
    ours = config.rope_scaling.frequencies(plain, 5e5, torch.tensor([7]))
    expected, factor = ROPE_INIT_FUNCTIONS[kind](theirs)
    assert_close(ours, expected, atol=0.0, rtol=1e-6)
    assert config.rope_scaling.cosine_factor == pytest.approx(factor)
    report = compatibility.check_text(json.dumps(fields))
    assert f"{kind} scaling by {config.rope_scaling.factor:g}" in report.shape


TABLE = {
    "rope_type": "llama3", "rope_theta": 3e4, "factor": 2.0, "low_freq_factor": 1.0,
    "high_freq_factor": 2.0, "original_max_position_embeddings": 50,
}  # fmt: skip
WITHOUT = {k: v for k, v in LLAMA.items() if k != "rope_parameters"}
# Configurations that contain a setting twice, and the name of the setting.
DUPLICATES: dict[str, tuple[dict[str, Any], str]] = {
    "theta next to the table": ({"rope_theta": 3e4, "rope_parameters": TABLE}, "rope_theta"),
    "trained length next to the table": (
        {"original_max_position_embeddings": 50, "rope_scaling": TABLE},
        "original_max_position_embeddings",
    ),
    "old and new spelling": ({"rope_parameters": TABLE | {"type": "llama3"}}, "type"),
}
DUPLICATES |= {
    f"{name} in two tables": ({"rope_scaling": TABLE, "rope_parameters": TABLE}, name)
    for name in TABLE
}


@pytest.mark.parametrize("name", DUPLICATES)
def test_duplicate_settings_must_agree(name: str):
    """Equal duplicates are accepted; with different values, the intent is unclear."""
    settings, option = DUPLICATES[name]
    config, theirs = transformer_config(WITHOUT | settings), LlamaConfig(**(WITHOUT | settings))
    assert config.rope_theta == theirs.rope_parameters["rope_theta"] == 3e4
    plain = plain_frequencies(config.d_head, 3e4)
    assert config.rope_scaling is not None
    ours = config.rope_scaling.frequencies(plain, 3e4, torch.tensor([7]))
    assert_close(ours, ROPE_INIT_FUNCTIONS["llama3"](theirs)[0], atol=0.0, rtol=1e-6)
    other = "linear" if option in ("type", "rope_type") else 4.0
    for key in settings:
        is_table = isinstance(settings[key], dict)
        changed = settings[key] | {option: other} if is_table else other
        with pytest.raises(ValueError, match=option):
            transformer_config(WITHOUT | settings | {key: changed})


LLAMA3 = SCALINGS["llama3"]
INVALID = [
    ({"rope_type": "longrope", "factor": 2.0}, "'longrope'"),
    ({"rope_type": ["yarn"], "factor": 2.0}, "'yarn'"),
    ({"rope_type": "linear"}, "^factor.*None"),
    ({"rope_type": "linear", "factor": "2"}, "factor.*'2'"),
    ({"rope_type": "linear", "factor": math.nan}, "factor.*nan"),
    ({"rope_type": "linear", "factor": 10**400}, "factor.*1000"),
    ({"rope_type": "linear", "factor": 1e6}, "context_length.*2,048,000,000"),
    ({"rope_type": "dynamic", "factor": 0.5}, r"factor.*0\.5"),
    ({"rope_type": "dynamic", "factor": 2.0, "partial_rotary_factor": 0.5}, r"rotary_factor=0\.5"),
    ({"rope_type": "yarn", "factor": 2.0, "beta_fast": 1, "beta_slow": 3}, r"1\.0.*3\.0"),
    ({"rope_type": "yarn", "factor": 2.0, "attention_factor": 1e300}, "attention_factor"),
    ({"rope_type": "yarn", "factor": 2.0, "truncate": "no"}, "truncate"),
    ({"rope_type": "yarn", "factor": 2.0, "rope_theta": 1.0}, "rope_theta"),
    (LLAMA3 | {"low_freq_factor": None}, "low_freq_factor.*None"),
    (LLAMA3 | {"high_freq_factor": 0.05}, r"high_freq_factor.*0\.05"),
    (LLAMA3 | {"original_max_position_embeddings": 8.5}, r"original_max_.*8\.5"),
]


@pytest.mark.parametrize(("table", "message"), INVALID)
def test_rejects_invalid_scalings(table: dict[str, Any], message: str):
    old = {name: value for name, value in OLD.items() if name not in table}
    for fields in (old | {"rope_scaling": table}, LLAMA | {"rope_parameters": table}):
        with pytest.raises(ValueError, match=message):
            transformer_config(fields)
        assert not compatibility.check_config_dict(fields).loads


@pytest.mark.parametrize("n_tokens", [5, TRAINED, 3 * TRAINED])
def test_reference_parameters(n_tokens: int):
    for name, scaling in scalings(3.0, TRAINED).items():
        expected, factor = reference_frequencies(scaling, 12, THETA, TRAINED, n_tokens)
        assert_close(
            context_extension.frequencies(12, THETA, n_tokens, scaling), expected, msg=name
        )
        assert factor == pytest.approx(1.0 if scaling is None else scaling.cosine_factor)
        assert rope_parameters(scaling)["rope_type"] in checkpoint.ROPE_KINDS
    with pytest.raises(ValueError, match=r"RopeScaling\(factor=2.0\)"):
        rope_parameters(RopeScaling(2.0))
