"""Drafted tokens equal those of `stream`; better drafts need fewer passes."""

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
    """A model of another size with the tokens of `GPT2`, which rarely guesses right."""
    config = dataclasses.replace(GPT2, d_model=12, n_layers=1, n_heads=2)
    return random_model(config, device)


def nearly(model: Transformer, noise: float) -> Transformer:
    """A model with weights close to another one's, which often guesses right."""
    near = random_model(model.config, str(next(model.parameters()).device))
    for parameter, other in zip(near.parameters(), model.parameters(), strict=True):
        parameter.data.copy_(other + noise * torch.randn_like(other))
    return near


def tokens_of(rounds: list[Round]) -> list[int]:
    return [token_id for settled in rounds for token_id in settled.token_ids]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n_drafted", [1, 5])
@pytest.mark.parametrize("kind", CONFIGS)
def test_tokens_and_logits_are_those_of_stream(kind: str, n_drafted: int, device: str):
    model = random_model(CONFIGS[kind], device)
    expected = list(stream(model, PROMPT, max_new_tokens=N_NEW, cache=model.new_cache(1, 22)))
    decoder = SpeculativeDecoder(model, nearly(model, 0.03), 22, n_drafted=n_drafted)
    for _ in range(2):  # the second run doesn't depend on the first
        rounds = list(decoder.rounds(PROMPT, max_new_tokens=N_NEW))
        assert tokens_of(rounds) == [step.token_id for step in expected]
        logits = torch.cat([settled.logits for settled in rounds])
        assert_close(logits, torch.stack([s.logits for s in expected]), atol=1e-5, rtol=1e-5)
    assert decoder.generate(PROMPT, max_new_tokens=N_NEW) == tokens_of(rounds)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SAMPLINGS)
def test_the_draws_are_those_of_stream(name: str, device: str):
    model, sampling = random_model(GPT2, device), SAMPLINGS[name]
    options = {"max_new_tokens": N_NEW, "sampling": sampling}
    expected = [s.token_id for s in stream(model, PROMPT, cache=model.new_cache(1, 22), **options)]
    n_passes = []
    for draft in (another_model(device), nearly(model, 0.03)):
        decoder = SpeculativeDecoder(model, draft, 22, sampling=sampling)
        for _ in range(2):  # the seed is reset
            rounds = list(decoder.rounds(PROMPT, max_new_tokens=N_NEW))
            assert tokens_of(rounds) == expected
        n_passes.append(len(rounds))
    bad, good = n_passes
    assert 5 <= good < bad <= N_NEW  # at best 5, with five tokens per pass


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.3, seed=4)], ids=["greedy", "warm"])
@pytest.mark.parametrize("n_drafted", [1, 3, 4])
def test_a_draft_that_is_the_model_itself_is_always_right(n_drafted: int, sampling: Sampling):
    """Its draws use the same random numbers, so each pass gives k + 1 tokens."""
    model = random_model(GPT2)
    decoder = SpeculativeDecoder(model, model, 22, n_drafted=n_drafted, sampling=sampling)
    rounds = list(decoder.rounds(PROMPT, max_new_tokens=N_NEW))
    assert [settled.n_drafted for settled in rounds] == [0] + [n_drafted] * (len(rounds) - 1)
    assert len(rounds) == 1 + -(-(N_NEW - 1) // (n_drafted + 1))
    assert {len(settled.token_ids) for settled in rounds[1:-1]} == {n_drafted + 1}
    assert [len(settled.logits) for settled in rounds] == [len(r.token_ids) for r in rounds]


def test_at_the_end_of_the_context_the_last_tokens_are_run_alone():
    model = random_model(GPT2)
    expected = list(stream(model, PROMPT, max_new_tokens=26, cache=model.new_cache(1, 30)))
    decoder = SpeculativeDecoder(model, model, 30, n_drafted=3)
    rounds = list(decoder.rounds(PROMPT, max_new_tokens=26))
    assert tokens_of(rounds) == [step.token_id for step in expected]
    assert rounds[-1].n_drafted == 0
    assert_close(rounds[-1].logits[-1], expected[-1].logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("n_drafted", [2, 5])
@pytest.mark.parametrize("is_always_right", [True, False])
def test_every_token_as_a_stop_and_every_budget(is_always_right: bool, n_drafted: int):
    """Inside an accepted draft, at its ends, and where no draft fits the context."""
    model = random_model(GPT2)
    draft = model if is_always_right else nearly(model, 0.03)
    n_most = GPT2.context_length - len(PROMPT) + 1
    tokens = [step.token_id for step in stream(model, PROMPT, max_new_tokens=n_most)]
    decoder = SpeculativeDecoder(model, draft, GPT2.context_length, n_drafted=n_drafted)
    for stop in sorted({*tokens}):
        stopped = decoder.generate(PROMPT, max_new_tokens=n_most, stop_ids={stop})
        assert stopped == tokens[: tokens.index(stop) + 1]
    for budget in range(1, n_most + 1):
        assert decoder.generate(PROMPT, max_new_tokens=budget) == tokens[:budget]


@pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler and Python's headers")
def test_a_compiled_pass_of_several_rows_gives_the_logits_of_the_model():
    """The draft's step is tested with `Decoder`, which compiles the same step."""
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


def test_wrong_arguments():
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


def test_a_draft_whose_logits_are_no_numbers_ends_nothing():
    """A draft may fail completely, and no NaN remains for the next text."""
    model = random_model(dataclasses.replace(GPT2, output="separate"))
    expected = [s.token_id for s in stream(model, PROMPT, max_new_tokens=N_NEW)]
    bad, guess, *_ = sorted({*range(61)} - {*PROMPT, *expected})
    model.embedding.data[bad] = torch.nan
    draft = random_model(model.config)
    draft.unembedding.data[:, guess] = torch.nan  # for torch NaN is the largest, so it's the guess
    decoder = SpeculativeDecoder(model, draft, 22)
    assert decoder.generate(PROMPT, max_new_tokens=N_NEW) == expected
    with pytest.raises(ValueError, match="not a number"):
        decoder.generate((bad, *PROMPT), max_new_tokens=3)
    assert decoder.generate(PROMPT, max_new_tokens=N_NEW) == expected  # no NaN remains
