"""Batched generation compared with single prompts and with transformers."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close
from transformers import GPT2Config

from attention_core import (
    Hooks,
    Sampling,
    Step,
    Transformer,
    generate,
    generate_batch,
    stream,
    stream_batch,
)
from attention_core.positions.scaling import DynamicScaling
from pretrained.untrained import random_gpt2
from pretrained.weights import core_from_reference
from tests.helpers.attention_variants import LATENT, enlarged_model
from tests.helpers.tiny_models import TINY, build

PROMPTS = [[3, 1, 4, 1, 5, 9, 2], [6], [5, 3, 5, 8], [9, 7, 9, 3, 2, 3, 8]]
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
CONFIGS = {
    "learned positions": TINY["gpt2"],
    "learned positions, a window": replace(TINY["gpt2"], window=3),
    "rotary, grouped heads": TINY["llama"],
    # the ring fills up after the longest prompt, in between, and while new tokens are generated
    "rotary, grouped heads, a window of 2": replace(TINY["llama"], window=2),
    "rotary, grouped heads, a window of 5": replace(TINY["llama"], window=5),
    "rotary, one key head, a window of 10": replace(TINY["llama-tied"], window=10),
    # each row's scaling starts at a different step, at its own tenth token
    "rotary, dynamic scaling": replace(TINY["llama"], rope_scaling=DynamicScaling(4.0, 9)),
    "latent": LATENT["expanded"],
    "latent, absorbed, a window": replace(LATENT["absorbed"], window=4),
}


def single_steps(
    model: Transformer, prompt: list[int], n_new: int, sampling: Sampling
) -> list[Step]:
    cache = model.new_cache(1, len(prompt) + n_new)
    return list(stream(model, prompt, max_new_tokens=n_new, cache=cache, sampling=sampling))


def steps_per_row(passes: Iterator[tuple[Step | None, ...]]) -> list[list[Step]]:
    """Collect the steps of every row, and check that a finished row has no more steps."""
    rows = [list(row) for row in zip(*passes, strict=True)]
    for row in rows:
        assert None not in row[: len(row) - row.count(None)]
    return [[step for step in row if step is not None] for row in rows]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sampled", [False, True], ids=["greedy", "sampled"])
@pytest.mark.parametrize("name", CONFIGS)
def test_batch_row_equals_single_generation(name: str, sampled: bool, device: str):
    """Compare tokens, logits, and counts; each row has its own seed and token limit."""
    model = enlarged_model(CONFIGS[name]).to(device)
    numbers = [9, 16, 1, 12]
    samplings = [
        Sampling(temperature=1.5, top_p=0.97, seed=31 + row) if sampled else Sampling()
        for row in range(len(PROMPTS))
    ]
    rows = steps_per_row(stream_batch(model, PROMPTS, max_new_tokens=numbers, sampling=samplings))
    assert len({tuple(step.token_id for step in row) for row in rows}) == len(rows)
    for row, prompt, n_new, sampling in zip(rows, PROMPTS, numbers, samplings, strict=True):
        steps = single_steps(model, prompt, n_new, sampling)
        assert [step.token_id for step in row] == [step.token_id for step in steps]
        for ours, expected in zip(row, steps, strict=True):
            assert_close(ours.logits, expected.logits, atol=1e-5, rtol=1e-5)
            assert ours.logprob == pytest.approx(expected.logprob, abs=1e-4)
            for field in ("kind", "n_new", "n_keys", "cache_length"):
                assert getattr(ours, field) == getattr(expected, field), field


def test_rows_share_every_pass(decoder: Transformer):
    """Each pass adds one token to every row; finished rows are None."""
    calls: list[int] = []
    passes = list(
        stream_batch(
            decoder, PROMPTS, max_new_tokens=[2, 5, 1, 2], hooks=Hooks(before_layer=calls.append)
        )
    )
    assert calls == [*range(decoder.config.n_layers)] * 5
    running = [[step is not None for step in steps] for steps in passes]
    assert running == [[True] * 4, [True, True, False, True], *[[False, True, False, False]] * 3]
    seconds = {step.seconds for step in passes[0] if step is not None}
    assert len(seconds) == 1
    assert seconds.pop() > 0
    prefill, decode = passes[0][1], passes[1][1]
    assert prefill is not None
    assert decode is not None
    assert prefill.flops > decode.flops > 0


@pytest.mark.parametrize("name", CONFIGS)
def test_each_row_ends_at_its_own_stop_token(name: str):
    """Rows end in different steps, with prompts of different lengths."""
    model, n_new = enlarged_model(CONFIGS[name]), 11
    samplings = [Sampling(temperature=3.0, seed=seed) for seed in range(len(PROMPTS))]
    unstopped = [
        [step.token_id for step in single_steps(model, prompt, n_new, sampling)]
        for prompt, sampling in zip(PROMPTS, samplings, strict=True)
    ]
    assert generate_batch(model, PROMPTS, max_new_tokens=n_new, sampling=samplings) == unstopped
    for stops in (
        {unstopped[0][4]},
        {unstopped[0][2], unstopped[1][7], unstopped[3][5]},
        {ids[1] for ids in unstopped[1:]},
    ):
        ends = [
            min((ids.index(stop) + 1 for stop in stops if stop in ids), default=n_new)
            for ids in unstopped
        ]
        assert min(ends) < max(ends)
        stopped = generate_batch(
            model, PROMPTS, max_new_tokens=n_new, sampling=samplings, stop_ids=stops
        )
        assert stopped == [ids[:end] for ids, end in zip(unstopped, ends, strict=True)]


def test_last_position_of_the_context_is_used(decoder: Transformer):
    """The longest row fills the whole context."""
    n_new = decoder.config.context_length - len(PROMPTS[0]) + 1
    expected = [generate(decoder, prompt, max_new_tokens=n_new) for prompt in PROMPTS[:2]]
    assert generate_batch(decoder, PROMPTS[:2], max_new_tokens=n_new) == expected


def test_equals_transformers_with_left_padding():
    sizes = dict(vocab_size=97, n_positions=39, n_embd=28, n_layer=3, n_head=4, n_inner=50)
    reference = random_gpt2(
        GPT2Config(**sizes, initializer_range=0.06, bos_token_id=None, eos_token_id=None)
    )
    core, n_new = core_from_reference(reference), 13
    longest = max(map(len, PROMPTS))
    padded = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in PROMPTS])
    attention_mask = torch.tensor(
        [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in PROMPTS]
    )
    output = reference.generate(
        padded,
        attention_mask=attention_mask,
        max_new_tokens=n_new,
        do_sample=False,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    rows = steps_per_row(stream_batch(core, PROMPTS, max_new_tokens=n_new))
    expected = output.sequences[:, longest:].tolist()
    assert [[step.token_id for step in row] for row in rows] == expected
    assert min(len(set(row)) for row in expected) >= 3  # otherwise the comparison proves little
    ours = torch.stack([torch.stack([step.logits for step in row]) for row in rows])
    assert_close(ours, torch.stack(output.logits, dim=1), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("prompts", "arguments", "message"),
    [
        ([], {}, "got 0"),
        ("words", {}, "prompts.*str"),
        ([[3], []], {}, "prompt 1"),
        ([[3], [4, 83]], {}, "prompt 1.*82.*83"),
        ([[3], [4]], {"max_new_tokens": [2, True]}, "prompt 1.*True"),
        ([[3], [4]], {"max_new_tokens": [2]}, "2.*max_new_tokens.*1"),
        ([[3], [4]], {"sampling": [Sampling()] * 3}, "2.*sampling.*3"),
        ([[3], [4] * 39], {"max_new_tokens": 4}, "prompt 1.*42.*41"),
        ([[3], [4] * 40], {"max_new_tokens": [3, 1]}, "40.*42.*41"),
    ],
)
def test_rejects_invalid_arguments_before_the_first_pass(prompts, arguments, message):
    with pytest.raises(ValueError, match=message):
        stream_batch(build("gpt2"), prompts, **{"max_new_tokens": 2} | arguments)


def test_rejects_models_that_cannot_generate():
    for model in (build("bert"), Transformer(replace(TINY["bert"], output="tied"))):
        with pytest.raises(ValueError, match="output matrix|bidirectional"):
            stream_batch(model, PROMPTS, max_new_tokens=1)
