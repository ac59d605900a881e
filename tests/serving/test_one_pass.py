"""Compare everything in the picture of one pass to the model's record and to transformers."""

import numpy as np
import pytest
import torch

from attention_core.analysis.disabled_parts import DisabledParts, run_without
from serving import models
from serving.cache import size_of
from serving.limits import MAX_ONE_PASS_TOKENS, OverLimit
from serving.one_pass import (
    N_NEURONS,
    N_NEXT,
    N_STRIP,
    STRIPS,
    TEMPERATURES,
    head_detail,
    layer_detail,
    one_pass,
    parse_disabled,
)
from tests.helpers.bundled_models import DECODER, ENCODER

TEXT = "Nine grey geese fly"


def record_pass(name: str):
    """Return the model's complete record of a pass over the text."""
    passed = one_pass(name, TEXT)
    with torch.inference_mode():
        return models.get(name).core(torch.tensor([passed.run.tokens.ids]), record=True)


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_vectors_match_the_record(name: str):
    passed, output = one_pass(name, TEXT), record_pass(name)
    np.testing.assert_allclose(passed.final_states, output.hidden[0, :, :N_STRIP], rtol=1e-6)
    norms = torch.stack([state[0].norm(dim=-1) for state in output.hidden_states])
    np.testing.assert_allclose(passed.state_norms, norms, rtol=1e-6)


def test_next_token_after_each_layer_matches_transformers():
    passed, model = one_pass(DECODER, TEXT), models.get(DECODER)
    reference = model.reference
    with torch.inference_mode():
        output = reference(torch.tensor([passed.run.tokens.ids]), output_hidden_states=True)
        states = torch.cat(output.hidden_states)[:-1, -1]  # the last state is already normalized
        logits = reference.lm_head(reference.model.norm(states))
        logits = torch.cat([logits, output.logits[:, -1]])
    probabilities, ids = logits.softmax(dim=-1).max(dim=-1)
    np.testing.assert_allclose(passed.guess_probabilities, probabilities, rtol=1e-3)
    assert len(passed.guesses) == len(ids)
    assert passed.next_token is not None
    assert passed.next_token.ids[0] == int(ids[-1])
    for place, temperature in ((0, 0.1), (9, 1.0), (19, 2.0)):
        assert TEMPERATURES[place] == temperature
        expected = (logits[-1] / temperature).softmax(dim=-1)[list(passed.next_token.ids)]
        displayed = np.exp(
            passed.next_token.logits / temperature - passed.next_token.log_sums[place]
        )
        np.testing.assert_allclose(displayed, expected, rtol=1e-2, atol=1e-6)
    assert len(passed.next_token.tokens) == len(passed.next_token.logits) == N_NEXT


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_open_layer_matches_the_record(name: str):
    passed, output = one_pass(name, TEXT), record_pass(name)
    layer, record = layer_detail(passed.run, 4), output.layers[4]
    for strip in STRIPS:
        tensor = record.attention.output if strip == "attention" else getattr(record, strip)
        np.testing.assert_allclose(layer.strips[strip], tensor[0, :, :N_STRIP], atol=1e-5)
        np.testing.assert_allclose(layer.norms[strip], tensor[0].norm(dim=-1), rtol=1e-5)
    down = models.get(name).core.blocks[4].mlp.down.matrix.detach()
    for token in (0, 2):
        hidden = record.mlp_hidden[0, token]
        write_norms = [float((value * row).norm()) for value, row in zip(hidden, down, strict=True)]
        strongest = np.argsort(write_norms)[::-1][:N_NEURONS]
        np.testing.assert_array_equal(layer.neurons[token], strongest)
        np.testing.assert_allclose(layer.activations[token], hidden[strongest.copy()], atol=1e-5)
        np.testing.assert_allclose(
            layer.neuron_norms[token], np.sort(write_norms)[::-1][:N_NEURONS], rtol=1e-4
        )


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_head_outputs_add_up_to_the_attention_output(name: str):
    passed, output = one_pass(name, TEXT), record_pass(name)
    n_heads = passed.run.weights.shape[1]
    heads = [head_detail(passed.run, 3, head) for head in range(n_heads)]
    bias = models.get(name).core.blocks[3].attention.out.bias
    added = sum(head.added for head in heads)
    if bias is not None:
        added = added + bias.detach().numpy()[:N_STRIP]
    attention = output.records[3].output
    assert attention is not None
    np.testing.assert_allclose(added, attention[0, :, :N_STRIP], atol=1e-5)
    one = heads[5]
    np.testing.assert_allclose(one.added, one.context @ one.out_weight, atol=1e-5)
    np.testing.assert_allclose(one.scores, one.q @ one.k.T, rtol=1e-4, atol=1e-4)
    visible = np.isfinite(one.scaled)
    np.testing.assert_allclose(one.scaled[visible], one.scores[visible] * one.scale, rtol=1e-6)
    assert visible.all() == (not passed.run.causal)
    np.testing.assert_allclose(one.context, one.weights @ one.v, atol=1e-5)
    np.testing.assert_array_equal(one.weights, passed.run.weights[3, 5])


def test_open_layer_owns_its_memory():
    """A view of a head's output matrix, for example, would keep the model's weights in memory."""
    passed = one_pass(DECODER, TEXT)
    layer, head = layer_detail(passed.run, 1), head_detail(passed.run, 1, 2)
    pieces = [*vars(passed).values(), *vars(layer).values(), *vars(head).values()]
    pieces += [*layer.strips.values(), *layer.norms.values()]
    arrays = [piece for piece in pieces if isinstance(piece, np.ndarray)]
    assert len(arrays) > 20
    assert [size_of(array) for array in arrays] == [array.nbytes for array in arrays]


def test_text_that_is_too_long_is_rejected():
    with pytest.raises(OverLimit, match=str(MAX_ONE_PASS_TOKENS)):
        one_pass(ENCODER, "word " * (MAX_ONE_PASS_TOKENS + 1))


def test_parts_are_parsed_from_a_text():
    assert parse_disabled(" L3H1 mask  F2 L03H1 ", 4, 2) == ("F2", "L3H1", "mask")
    assert parse_disabled("", 4, 2) == ()
    for text in ("L4H0", "L0H2", "<b>", "L٣H1"):  # the last one has a non-ASCII digit
        with pytest.raises(ValueError, match=text):
            parse_disabled(text, 4, 2)


@pytest.mark.parametrize("name", [ENCODER, DECODER])
@pytest.mark.parametrize("part", ["L3H5", "F3", "mask", "scale"])
def test_pass_with_a_disabled_part_matches_the_edited_model(name: str, part: str):
    off, whole = one_pass(name, TEXT, (part,)), one_pass(name, TEXT)
    core = models.get(name).core
    ids = torch.tensor([off.run.tokens.ids])
    with torch.inference_mode():
        hidden, layers = run_without(core, ids, SWITCHED[part])
    np.testing.assert_allclose(off.final_states, hidden[0, :, :N_STRIP], rtol=1e-4, atol=1e-5)
    layer, head = layer_detail(off.run, 3), head_detail(off.run, 3, 5)
    record = layers[3]
    np.testing.assert_allclose(layer.strips["output"], record.output[0, :, :N_STRIP], atol=1e-4)
    np.testing.assert_allclose(head.weights, record.attention.weights[0, 5], atol=1e-5)
    np.testing.assert_allclose(head.context, record.attention.context[0, 5], atol=1e-4)
    np.testing.assert_allclose(
        layer.norms["attention"], off.run.tensors.attention_norms[3], rtol=1e-4
    )
    assert off.run.key != whole.run.key
    changes = not (part == "mask" and name == ENCODER)  # an encoder has no causal mask
    assert np.allclose(off.final_states, whole.final_states, atol=1e-3) != changes
    if part == "L3H5":
        assert not head.added.any()
    if part == "F3":
        assert not layer.neuron_norms.any()
        assert not layer.norms["mlp_output"].any()


SWITCHED = {
    "L3H5": DisabledParts(heads=frozenset({(3, 5)})),
    "F3": DisabledParts(feed_forwards=frozenset({3})),
    "mask": DisabledParts(mask=False),
    "scale": DisabledParts(scale=False),
}
