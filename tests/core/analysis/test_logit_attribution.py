"""Logit attribution: the shares sum to the logits that the model computes."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from attention_core import Transformer
from attention_core.analysis.disabled_parts import DisabledParts, run_without
from attention_core.analysis.logit_attribution import LogitAttribution, logit_attribution
from attention_core.model.masked_word_head import MaskedWordHead
from tests.helpers.attention_variants import HEADS, LATENT, enlarged_model, tokens
from tests.helpers.tiny_models import TINY

LENGTH, POSITION, IDS = 9, 6, (3, 17, 8)
DECODERS = {
    **{name: config for name, config in TINY.items() if config.causal},
    **LATENT,
    "grouped": HEADS["llama, GQA of 2"],
    "post-norm": replace(TINY["gpt2"], norm_order="post"),
}


def masked_word_head(model: Transformer) -> MaskedWordHead:
    width, vocabulary = model.config.d_model, model.config.vocab_size
    generator = torch.Generator().manual_seed(1)
    sizes = ((width, width), (width,), (width,), (width,), (vocabulary, width), (vocabulary,))
    return MaskedWordHead(
        model.config, *(torch.randn(*size, generator=generator) * 0.4 for size in sizes)
    )


def attribute_logits(model: Transformer, head: MaskedWordHead | None = None) -> LogitAttribution:
    layers = model(tokens(model, 1, LENGTH), record=True).layers
    return logit_attribution(model, layers, POSITION, IDS, head=head)


@pytest.mark.parametrize("name", DECODERS)
def test_shares_sum_to_decoder_logits(name: str):
    model = enlarged_model(DECODERS[name])
    shares = attribute_logits(model)
    logits = model(tokens(model, 1, LENGTH)).logits[0, POSITION, list(IDS)]
    assert_close(shares.logits.float(), logits, atol=1e-4, rtol=1e-4)
    assert shares.keys.shape == (len(IDS), model.config.n_layers, model.config.n_heads, LENGTH)
    assert not shares.keys[..., POSITION + 1 :].any()


def test_shares_sum_to_masked_word_logits():
    model = enlarged_model(TINY["bert"])
    head = masked_word_head(model)
    shares = attribute_logits(model, head)
    logits = head(model(tokens(model, 1, LENGTH)).hidden)[0, POSITION, list(IDS)]
    assert_close(shares.logits.float(), logits, atol=1e-4, rtol=1e-4)
    assert shares.norm_bias.abs().min() > 0
    assert shares.keys[..., POSITION + 1 :].any()


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_share_equals_effect_on_the_logit(name: str):
    """With the final norm frozen, a part's effect is linear in its output."""
    model = enlarged_model(DECODERS[name])
    layers = model(tokens(model, 1, LENGTH), record=True).layers
    shares = logit_attribution(model, layers, POSITION, IDS)
    last = layers[-1].output[0, POSITION]
    column = model.unembedding[:, IDS[1]]
    part_output = layers[0].mlp_output[0, POSITION]
    if name == "gpt2":
        scale, part_output = last.std(unbiased=False), part_output - part_output.mean()
    else:
        scale = last.square().mean().sqrt()
    expected = (part_output / scale * model.final_norm.weight) @ column
    assert_close(shares.mlp[1, 0].float(), expected, atol=1e-3, rtol=1e-3)


def test_disabled_head_has_no_share():
    model = enlarged_model(TINY["llama"])
    off = frozenset({(1, 0)})
    hidden, layers = run_without(model, tokens(model, 1, LENGTH), DisabledParts(heads=off))
    shares = logit_attribution(model, layers, POSITION, IDS, off=off)
    assert not shares.keys[:, 1, 0].any()
    logits = model.logits(hidden)[0, POSITION, list(IDS)]
    assert_close(shares.logits.float(), logits, atol=1e-4, rtol=1e-4)


def test_rejects_invalid_arguments():
    model = enlarged_model(TINY["gpt2"])
    layers = model(tokens(model, 1, LENGTH), record=True).layers
    vocabulary = model.config.vocab_size
    with pytest.raises(ValueError, match=f"position must be 0 to {LENGTH - 1}, got {LENGTH}"):
        logit_attribution(model, layers, LENGTH, IDS)
    with pytest.raises(ValueError, match=rf"0 to {vocabulary - 1}, got \[{vocabulary}\]"):
        logit_attribution(model, layers, POSITION, [2, vocabulary])
    encoder = enlarged_model(TINY["bert"])
    layers = encoder(tokens(encoder, 1, LENGTH), record=True).layers
    with pytest.raises(ValueError, match="output matrix"):
        logit_attribution(encoder, layers, POSITION, IDS)
