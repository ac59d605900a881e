"""Speculative decoding gives the tokens of `stream`; better drafts need fewer passes."""

import dataclasses

import pytest
import torch
from torch.testing import assert_close

from attention_core import Sampling, Transformer, stream
from attention_core.speed.fixed_pass import FixedPass
from attention_core.speed.speculative import Round, SpeculativeDecoder
from tests.helpers.decoders import (
    CONFIGS,
    DEVICES,
    GPT2,
    PROMPT,
    SAMPLINGS,
    has_compiler,
    random_model,
)

N_NEW = 17


def another_model(device: str = "cpu") -> Transformer:
    """Return a smaller model with the same vocabulary, which rarely guesses right."""
    config = dataclasses.replace(GPT2, d_model=12, n_layers=1, n_heads=2)
    return random_model(config, device)


def add_noise(model: Transformer, noise: float) -> Transformer:
    """Return a model with slightly different weights, which often guesses right."""
    noisy = random_model(model.config, str(next(model.parameters()).device))
    for parameter, other in zip(noisy.parameters(), model.parameters(), strict=True):
        parameter.data.copy_(other + noise * torch.randn_like(other))
    return noisy


def tokens_of(rounds: list[Round]) -> list[int]:
    return [token_id for result in rounds for token_id in result.token_ids]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n_drafted", [1, 5])
@pytest.mark.parametrize("kind", CONFIGS)
def test_tokens_and_logits_equal_stream(kind: str, n_drafted: int, device: str):
    model = random_model(CONFIGS[kind], device)
    expected = list(stream(model, PROMPT, max_new_tokens=N_NEW, cache=model.new_cache(1, 22)))
    decoder = SpeculativeDecoder(model, add_noise(model, 0.03), 22, n_drafted=n_drafted)
    for _ in range(2):  # the second run doesn't depend on the first
        rounds = list(decoder.rounds(PROMPT, max_new_tokens=N_NEW))
        assert tokens_of(rounds) == [step.token_id for step in expected]
        logits = torch.cat([result.logits for result in rounds])
        assert_close(logits, torch.stack([s.logits for s in expected]), atol=1e-5, rtol=1e-5)
    assert decoder.generate(PROMPT, max_new_tokens=N_NEW) == tokens_of(rounds)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SAMPLINGS)
def test_samples_equal_stream(name: str, device: str):
    model, sampling = random_model(GPT2, device), SAMPLINGS[name]
    options = {"max_new_tokens": N_NEW, "sampling": sampling}
    expected = [s.token_id for s in stream(model, PROMPT, cache=model.new_cache(1, 22), **options)]
    n_passes = []
    for draft in (another_model(device), add_noise(model, 0.03)):
        decoder = SpeculativeDecoder(model, draft, 22, sampling=sampling)
        for _ in range(2):  # the seed is reset
            rounds = list(decoder.rounds(PROMPT, max_new_tokens=N_NEW))
            assert tokens_of(rounds) == expected
        n_passes.append(len(rounds))
    bad, good = n_passes
    assert 5 <= good < bad <= N_NEW  # at least 5 passes, with at most five tokens each


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.3, seed=4)], ids=["greedy", "warm"])
@pytest.mark.parametrize("n_drafted", [1, 3, 4])
def test_model_as_its_own_draft_is_always_right(n_drafted: int, sampling: Sampling):
    """Both use the same random numbers, so each pass accepts k + 1 tokens."""
    model = random_model(GPT2)
    decoder = SpeculativeDecoder(model, model, 22, n_drafted=n_drafted, sampling=sampling)
    rounds = list(decoder.rounds(PROMPT, max_new_tokens=N_NEW))
    assert [result.n_drafted for result in rounds] == [0] + [n_drafted] * (len(rounds) - 1)
    assert len(rounds) == 1 + -(-(N_NEW - 1) // (n_drafted + 1))
    assert {len(result.token_ids) for result in rounds[1:-1]} == {n_drafted + 1}
    assert [len(result.logits) for result in rounds] == [len(r.token_ids) for r in rounds]


def test_last_tokens_of_the_context_are_not_drafted():
    model = random_model(GPT2)
    expected = list(stream(model, PROMPT, max_new_tokens=26, cache=model.new_cache(1, 30)))
    decoder = SpeculativeDecoder(model, model, 30, n_drafted=3)
    rounds = list(decoder.rounds(PROMPT, max_new_tokens=26))
    assert tokens_of(rounds) == [step.token_id for step in expected]
    assert rounds[-1].n_drafted == 0
    assert_close(rounds[-1].logits[-1], expected[-1].logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("n_drafted", [2, 5])
@pytest.mark.parametrize("is_always_right", [True, False])
def test_every_stop_token_and_every_limit(is_always_right: bool, n_drafted: int):
    """Stops fall inside a draft, at its ends, and where no draft fits the context."""
    model = random_model(GPT2)
    draft = model if is_always_right else add_noise(model, 0.03)
    max_new_tokens = GPT2.context_length - len(PROMPT) + 1
    tokens = [step.token_id for step in stream(model, PROMPT, max_new_tokens=max_new_tokens)]
    decoder = SpeculativeDecoder(model, draft, GPT2.context_length, n_drafted=n_drafted)
    for stop in sorted({*tokens}):
        stopped = decoder.generate(PROMPT, max_new_tokens=max_new_tokens, stop_ids={stop})
        assert stopped == tokens[: tokens.index(stop) + 1]
    for limit in range(1, max_new_tokens + 1):
        assert decoder.generate(PROMPT, max_new_tokens=limit) == tokens[:limit]


@pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler and Python's headers")
def test_compiled_pass_with_several_rows_equals_the_model():
    """The draft's single-row step is the one that the `Decoder` tests compile."""
    model = random_model(dataclasses.replace(GPT2, n_layers=1))
    check = FixedPass(model, 22, n_rows=3, compile_step=True)
    ids = torch.tensor([[*PROMPT, 33, 8, 51, 2, 19]])
    expected = model(ids).logits[0]
    with torch.inference_mode():
        last, _ = check.start(PROMPT)
        assert_close(last, expected[4], atol=1e-5, rtol=1e-5)
        for start in (5, 7):  # the second pass overwrites the last row of the first
            check.cache.rewind_to(start)
            check.token_ids.copy_(ids[:, start : start + 3])
            with torch.compiler.set_stance("fail_on_recompile"):
                check.advance()
            assert_close(check.logits, expected[start : start + 3], atol=1e-5, rtol=1e-5)


def test_rejects_invalid_arguments():
    model = random_model(GPT2)
    decoder = SpeculativeDecoder(model, another_model(), 10)
    for run in (decoder.rounds, decoder.generate):
        with pytest.raises(ValueError, match="11.*10"):
            run(PROMPT, max_new_tokens=7)
    for message, make in {
        "61.*67": lambda: SpeculativeDecoder(model, random_model(CONFIGS["grouped, rotary"]), 10),
        "n_rows.*9.*10": lambda: FixedPass(model, 9, n_rows=10),
        "max_length.*0": lambda: SpeculativeDecoder(model, model, 0),
        "n_drafted": lambda: SpeculativeDecoder(model, model, 10, n_drafted=0),
        "31.*30": lambda: SpeculativeDecoder(model, model, 31),
    }.items():
        with pytest.raises(ValueError, match=message):
            make()


def test_nan_logits_of_a_draft_do_not_stop_generation():
    """Even if a draft returns only NaN, no NaN leaks into the next generation."""
    model = random_model(dataclasses.replace(GPT2, output="separate"))
    expected = [s.token_id for s in stream(model, PROMPT, max_new_tokens=N_NEW)]
    bad, guess, *_ = sorted({*range(61)} - {*PROMPT, *expected})
    model.embedding.data[bad] = torch.nan
    draft = random_model(model.config)
    # torch treats NaN as the maximum, so the draft always guesses this token
    draft.unembedding.data[:, guess] = torch.nan
    decoder = SpeculativeDecoder(model, draft, 22)
    assert decoder.generate(PROMPT, max_new_tokens=N_NEW) == expected
    with pytest.raises(ValueError, match="not a number"):
        decoder.generate((bad, *PROMPT), max_new_tokens=3)
    assert decoder.generate(PROMPT, max_new_tokens=N_NEW) == expected  # no NaN is left in the cache
