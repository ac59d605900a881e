"""Compare gradient descent on a text to transformers with torch.optim.SGD."""

import copy
import math

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from attention_core import Transformer
from pages.learn.who_sets_the_weights import experiment as lesson
from pages.learn.who_sets_the_weights.experiment import Training
from pretrained import core_from_reference
from tests.helpers.reference_models import TOLERANCE, enlarge, gpt2, ids, llama
from tests.helpers.tiny_models import build

REFERENCES = {
    "llama": lambda: llama(),
    "llama-tied": lambda: llama(tie_word_embeddings=True),
    "gpt2": lambda: gpt2(),
}


def weights_of(model: Transformer) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("family", REFERENCES)
def test_steps_match_sgd_on_the_transformers_model(family: str):
    reference = enlarge(REFERENCES[family]())
    text = ids(reference, batch=1, length=11)
    # The core model shares its tensors with this copy.
    core = core_from_reference(copy.deepcopy(reference))
    own = weights_of(core)
    training = Training(core, text, 0.02)
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.02)
    for _ in range(3):
        optimizer.zero_grad()
        output = reference(text, labels=text, output_attentions=True)
        output.loss.backward()
        optimizer.step()
        step = training.step()
        assert step.before.loss == pytest.approx(float(output.loss.detach()), abs=1e-5)
        attentions = torch.cat([layer.detach() for layer in output.attentions])
        assert_close(step.before.weights, attentions, **TOLERANCE)
    updated = core_from_reference(reference)
    for name, expected in updated.state_dict().items():
        assert_close(training.model.state_dict()[name], expected, **TOLERANCE)
    after = reference(text, labels=text)
    assert training.summarize().loss == pytest.approx(float(after.loss.detach()), abs=1e-5)
    # The model's own weights are unchanged, bit for bit.
    assert own.keys() == core.state_dict().keys()
    assert all(torch.equal(core.state_dict()[name], before) for name, before in own.items())
    for model in (core, training.model):  # No gradient is kept in memory.
        assert all(parameter.grad is None for parameter in model.parameters())


def test_matrix_gradients_match_transformers():
    reference = enlarge(llama())
    text = ids(reference, batch=1, length=7)
    reference(text, labels=text).loss.backward()
    training = Training(core_from_reference(reference), text, 1e-3)
    step = training.step()
    layers = reference.model.layers
    for number, layer in enumerate(layers):
        attention, mlp = layer.self_attn, layer.mlp
        expected = {
            lesson.W_Q: [attention.q_proj],
            lesson.W_K: [attention.k_proj],
            lesson.W_V: [attention.v_proj],
            lesson.W_O: [attention.o_proj],
            lesson.FEED_FORWARD: [mlp.up_proj, mlp.gate_proj, mlp.down_proj],
            lesson.NORMS: [layer.input_layernorm, layer.post_attention_layernorm],
        }
        for kind, modules in expected.items():
            flat = torch.cat([module.weight.grad.flatten() for module in modules])
            assert step.gradients[number, kind] == pytest.approx(float(flat.norm()), rel=1e-4)
        head_tensors = attention.q_proj.weight.grad.unflatten(0, (6, 8)).norm(dim=(1, 2))
        assert_close(step.signal.w_q[number], head_tensors, atol=1e-5, rtol=1e-4)
    flat = torch.cat([reference.model.embed_tokens.weight.grad, reference.lm_head.weight.grad])
    assert step.gradients[None, lesson.EMBEDDINGS] == pytest.approx(float(flat.norm()), rel=1e-4)
    squared_norm = sum(float(p.grad.norm()) ** 2 for p in reference.parameters())
    parts = sum(length**2 for length in step.gradients.values())
    assert math.sqrt(parts) == pytest.approx(math.sqrt(squared_norm), rel=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama", "llama-tied"])
def test_chain_rule_from_scores_to_one_head(family: str):
    """Multiply the last two factors by hand and compare with autograd."""
    core = build(family)
    text = torch.tensor([[5, 3, 8, 2, 7, 1, 4]])
    signal = Training(core, text, 1e-3).step().signal
    leaf = build(family).requires_grad_(True)
    output = leaf(text, record=True)
    cross_entropy(output.logits[0, :-1], text[0, 1:]).backward()
    places = torch.arange(7)
    rotation = core.new_pass(output.hidden, places).rotation
    config = core.config
    for number, layer in enumerate(output.layers):
        record = layer.attention
        layer_gradient = leaf.blocks[number].attention.qkv.weight.grad.t()
        for head in range(config.n_heads):
            keys = record.k[0, head // config.group_size].detach()
            score_gradient = signal.score_gradients[number, head]
            of_queries = lesson.query_gradient(score_gradient, keys, record.scale)
            x = layer.attention_reads[0].detach()
            result = lesson.w_q_gradient(x, of_queries, rotation)
            expected = layer_gradient[:, head * config.d_head : (head + 1) * config.d_head]
            assert_close(result, expected, atol=1e-5, rtol=1e-4)
            for length, gradient in ((signal.w_q, expected), (signal.queries, of_queries)):
                assert_close(length[number, head], gradient.norm(), atol=1e-5, rtol=1e-4)
    # Softmax gradients of a row sum to zero. The first token has only one key.
    assert_close(signal.score_gradients.sum(-1), torch.zeros(config.n_layers, config.n_heads, 7),
                 **TOLERANCE)  # fmt: skip
    assert_close(signal.score_gradients[:, :, 0], torch.zeros_like(signal.score_gradients[:, :, 0]),
                 **TOLERANCE)  # fmt: skip


def test_signal_is_the_gradient_of_each_intermediate_tensor():
    core = build("llama-tied")
    text = torch.tensor([[5, 3, 8, 2, 7]])
    signal = Training(core, text, 1e-3).step().signal
    leaf = build("llama-tied").requires_grad_(True)
    output = leaf(text, record=True)
    loss = cross_entropy(output.logits[0, :-1], text[0, 1:])
    record = output.records[0]
    tensors = [output.logits, output.hidden, output.layers[0].output, record.output,
               record.context, record.weights, record.scaled_scores, record.q]  # fmt: skip
    result = torch.autograd.grad(loss, tensors)
    assert signal.logits == pytest.approx(float(result[0].norm()), rel=1e-4)
    assert signal.hidden == pytest.approx(float(result[1].norm()), rel=1e-4)
    assert float(signal.layer_outputs[0]) == pytest.approx(float(result[2].norm()), rel=1e-4)
    assert float(signal.attention[0]) == pytest.approx(float(result[3].norm()), rel=1e-4)
    head_tensors = (signal.context, signal.weights, signal.scores, signal.queries)
    for lengths, gradient in zip(head_tensors, result[4:], strict=True):
        assert_close(lengths[0], gradient[0].norm(dim=(1, 2)), atol=1e-5, rtol=1e-4)
    assert_close(signal.score_gradients[0], result[6][0], **TOLERANCE)


def test_autograd_memory_grows_with_the_text():
    core = build("gpt2")
    sizes = [Training(core, torch.arange(n)[None], 0.1).step().n_kept_bytes for n in (4, 8, 16)]
    assert sizes[0] < sizes[1] < sizes[2] < 8 * sizes[0]
    # Little of it is constant, so the saved tensors don't include the weights.
    assert sizes[2] - sizes[1] > sizes[1] - sizes[0] > sizes[0] / 2
    # At least the inputs of each layer's matrices: (T, C) twice, (T, H D) and (T, F), in float32.
    assert sizes[0] > 4 * 4 * 3 * (24 + 24 + 24 + 52)


def test_rejects_models_and_texts_without_a_next_token():
    with pytest.raises(ValueError, match="causal=False"):
        Training(build("bert"), torch.arange(4)[None], 0.1)
    with pytest.raises(ValueError, match="at least 2"):
        Training(build("gpt2"), torch.zeros(1, 1, dtype=torch.int64), 0.1)


def test_copy_is_contiguous_float32():
    """Train in float32, because 16-bit rounding is larger than most updates."""
    core = build("llama").to(torch.bfloat16)
    training = Training(core, torch.arange(5)[None], 0.1)
    for name, parameter in training.model.named_parameters():
        assert_close(parameter.detach(), core.state_dict()[name].float(), atol=0, rtol=0)
    memories = {p.untyped_storage().data_ptr() for p in training.model.parameters()}
    assert len(memories) == 1
    sizes = [parameter.numel() for parameter in core.parameters()]
    # The embedding table is the largest matrix.
    assert training.n_bytes == 4 * (sum(sizes) + 3 * 89 * 30)
