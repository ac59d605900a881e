"""Step-by-step generation with transformers, and GPT-2s with random weights."""

import pytest
import torch
from torch.testing import assert_close
from transformers import GPT2Config, LlamaConfig, LlamaForCausalLM

from attention_core import stream
from attention_core.seeding import seeded
from pretrained import untrained
from pretrained.reference_steps import reference_steps
from pretrained.weights import core_from_reference

PROMPT = (3, 1, 4, 1, 5)
N_NEW = 9


def _gpt2():
    config = GPT2Config(vocab_size=67, n_positions=31, n_embd=24, n_layer=3, n_head=4)
    return untrained.random_gpt2(config)


def _llama():
    with seeded(5):
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=61,
                hidden_size=24,
                intermediate_size=40,
                num_hidden_layers=2,
                num_attention_heads=6,
                num_key_value_heads=2,
                max_position_embeddings=29,
                eos_token_id=None,
                initializer_range=0.3,
            )
        )
    return model.eval().requires_grad_(False)


@pytest.fixture(params=[_gpt2, _llama], ids=["gpt2", "llama"])
def reference(request):
    model = request.param()
    model.set_attn_implementation("eager")
    return model


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_steps_equal_the_core_and_generate(reference, cached, attention):
    core = core_from_reference(reference).eval()
    steps = list(
        reference_steps(
            reference, core.config, PROMPT, max_new_tokens=N_NEW, cached=cached, attention=attention
        )
    )
    cache = core.new_cache(1, len(PROMPT) + N_NEW) if cached else None
    for step, ours in zip(
        steps, stream(core, PROMPT, max_new_tokens=N_NEW, cache=cache), strict=True
    ):
        assert_close(step.logits, ours.logits, atol=1e-5, rtol=1e-5)
        for field in ("kind", "token_id", "n_new", "n_keys", "cache_length", "flops"):
            assert getattr(step, field) == getattr(ours, field), field
        assert step.logprob == pytest.approx(ours.logprob, abs=1e-5)
        assert step.seconds > 0
    generated = reference.generate(
        torch.tensor([PROMPT]),
        max_new_tokens=N_NEW,
        do_sample=False,
        use_cache=cached,
        attention_mask=torch.ones(1, len(PROMPT)),
        pad_token_id=0,
    )
    assert [step.token_id for step in steps] == generated[0, len(PROMPT) :].tolist()


def test_pass_can_be_interrupted_between_layers(reference):
    config = core_from_reference(reference).config
    layers_run = []

    def stop(layer: int) -> None:
        layers_run.append(layer)
        if layer == 1:
            raise InterruptedError

    steps = reference_steps(
        reference, config, PROMPT, max_new_tokens=2, cached=False, before_layer=stop
    )
    with pytest.raises(InterruptedError):
        next(steps)
    assert layers_run == [0, 1]
    assert reference.config._attn_implementation == "eager"
    assert not any(module._forward_pre_hooks for module in reference.modules())


@pytest.mark.parametrize(("n_prompt", "n_new"), [(0, 3), (4, 0), (25, 8)])
def test_rejects_invalid_lengths_before_the_first_pass(n_prompt, n_new):
    model = _gpt2()
    config = core_from_reference(model).config
    with pytest.raises(ValueError, match=f"{n_prompt}.*{n_new}"):
        reference_steps(model, config, range(n_prompt), max_new_tokens=n_new, cached=True)


@pytest.mark.usefixtures("bundled_weights")
def test_random_weights_are_reproducible_and_leave_the_global_generator_alone():
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    one, other = (untrained.untrained("random-tiny", device="cpu") for _ in range(2))
    assert_close(torch.rand(3), expected)
    ids = torch.tensor([one.tokenizer.encode("The next day is bright").ids])
    assert torch.equal(one.core(ids).logits, other.core(ids).logits)
    assert_close(one.core(ids).logits, one.reference(ids).logits, atol=1e-5, rtol=1e-5)
