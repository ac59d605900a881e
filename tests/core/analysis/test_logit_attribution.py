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


def attributed(model: Transformer, head: MaskedWordHead | None = None) -> LogitAttribution:
    layers = model(tokens(model, 1, LENGTH), record=True).layers
    return logit_attribution(model, layers, POSITION, IDS, head=head)


@pytest.mark.parametrize("name", DECODERS)
def test_shares_sum_to_the_logits_of_a_decoder(name: str):
    model = enlarged_model(DECODERS[name])
    shares = attributed(model)
    logits = model(tokens(model, 1, LENGTH)).logits[0, POSITION, list(IDS)]
    assert_close(shares.logits.float(), logits, atol=1e-4, rtol=1e-4)
    assert shares.keys.shape == (len(IDS), model.config.n_layers, model.config.n_heads, LENGTH)
    assert not shares.keys[..., POSITION + 1 :].any()


def test_shares_sum_to_the_logits_of_a_masked_word():
    model = enlarged_model(TINY["bert"])
    head = masked_word_head(model)
    shares = attributed(model, head)
    logits = head(model(tokens(model, 1, LENGTH)).hidden)[0, POSITION, list(IDS)]
    assert_close(shares.logits.float(), logits, atol=1e-4, rtol=1e-4)
    assert shares.norm_bias.abs().min() > 0
    assert shares.keys[..., POSITION + 1 :].any()


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_share_is_what_the_logit_loses_without_the_part(name: str):
    """With a frozen last norm, subtract a part's output from the final vector."""
    model = enlarged_model(DECODERS[name])
    layers = model(tokens(model, 1, LENGTH), record=True).layers
    shares = logit_attribution(model, layers, POSITION, IDS)
    last = layers[-1].output[0, POSITION]
    column = model.unembedding[:, IDS[1]]
    wrote = layers[0].mlp_output[0, POSITION]
    if name == "gpt2":
        scale, wrote = last.std(unbiased=False), wrote - wrote.mean()
    else:
        scale = last.square().mean().sqrt()
    expected = (wrote / scale * model.final_norm.weight) @ column
    assert_close(shares.mlp[1, 0].float(), expected, atol=1e-3, rtol=1e-3)


def test_a_head_that_is_off_has_no_share():
    model = enlarged_model(TINY["llama"])
    off = frozenset({(1, 0)})
    hidden, layers = run_without(model, tokens(model, 1, LENGTH), DisabledParts(heads=off))
    shares = logit_attribution(model, layers, POSITION, IDS, off=off)
    assert not shares.keys[:, 1, 0].any()
    logits = model.logits(hidden)[0, POSITION, list(IDS)]
    assert_close(shares.logits.float(), logits, atol=1e-4, rtol=1e-4)


def test_what_is_not_there_is_refused():
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
