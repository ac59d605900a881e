"""Fixed-shape steps give the same tokens and logits as `stream` for all models."""

import dataclasses
import gc
import threading
import weakref

import pytest
import torch
import torch._inductor.config as inductor
from torch.testing import assert_close

from attention_core import Hooks, Sampling, Transformer, stream
from attention_core.costs.stopwatch import synchronize
from attention_core.speed.compilation import NoCompilerError
from attention_core.speed.decoder import Decoder
from attention_core.speed.int8 import Int8Transformer
from tests.helpers.decoders import (
    CONFIGS,
    DEVICES,
    GPT2,
    LLAMA,
    PROMPT,
    SAMPLINGS,
    has_compiler,
    random_model,
)

N_NEW = 14


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", CONFIGS)
def test_tokens_and_logits_equal_stream(kind: str, device: str):
    model = random_model(CONFIGS[kind], device)
    cache = model.new_cache(1, 23)
    expected = list(stream(model, PROMPT, max_new_tokens=N_NEW, cache=cache))
    decoder = Decoder(model, 23)
    for _ in range(2):  # the second run doesn't depend on the first
        steps = list(decoder.stream(PROMPT, max_new_tokens=N_NEW))
        assert [step.token_id for step in steps] == [step.token_id for step in expected]
        for step, other in zip(steps, expected, strict=True):
            assert_close(step.logits, other.logits, atol=1e-5, rtol=1e-5)
            same = ("kind", "n_new", "n_keys", "cache_length")
            assert [getattr(step, name) for name in same] == [getattr(other, name) for name in same]
    assert len({step.token_id for step in expected}) > 3
    assert decoder.generate(PROMPT, max_new_tokens=N_NEW) == [s.token_id for s in expected]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SAMPLINGS)
def test_sampling_on_the_cpu_equals_stream(name: str, device: str):
    model, sampling = random_model(GPT2, device), SAMPLINGS[name]
    expected = stream(
        model, PROMPT, max_new_tokens=20, sampling=sampling, cache=model.new_cache(1, 24)
    )
    tokens = [step.token_id for step in expected]
    decoder = Decoder(model, 24, sampling=sampling, draw_on_cpu=True)
    for _ in range(2):  # the seed is reset
        assert decoder.generate(PROMPT, max_new_tokens=20) == tokens
        assert [s.token_id for s in decoder.stream(PROMPT, max_new_tokens=20)] == tokens


@pytest.mark.parametrize("device", DEVICES)
def test_cache_length_follows_the_steps(device: str):
    model = random_model(GPT2, device)
    cache, decoder = model.new_cache(1, 24), Decoder(model, 24)
    assert decoder.cache.length == 0
    steps = zip(
        stream(model, PROMPT, max_new_tokens=9, cache=cache),
        decoder.stream(PROMPT, max_new_tokens=9),
        strict=True,
    )
    for _ in steps:
        assert decoder.cache.length == cache.length
        assert decoder.cache.nbytes_used == cache.nbytes_used
    for layer in range(3):
        assert_close(decoder.cache.layer(layer), cache.layer(layer), atol=1e-5, rtol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_other_threads_can_use_the_gpu_during_capture():
    """Other threads can allocate, copy, and synchronize without aborting the capture."""
    model, done, sums = random_model(GPT2, "cuda"), threading.Event(), []

    def use_gpu() -> None:
        while not done.is_set():
            sizes = torch.randint(1, 9, (3,)).tolist()
            sums.append(float(torch.ones(*sizes, 1 << 16, device="cuda").sum().cpu()))
            synchronize(model.positions.device)

    thread = threading.Thread(target=use_gpu)
    thread.start()
    try:
        tokens = [Decoder(model, 23).generate(PROMPT, max_new_tokens=N_NEW) for _ in range(20)]
    finally:
        done.set()
        thread.join()
    assert sums
    assert tokens == [tokens[0]] * 20


@pytest.mark.parametrize("device", DEVICES)
def test_samples_follow_the_distribution(device: str):
    model, sampling = random_model(GPT2, device), Sampling(1.0, top_k=3)
    first = next(iter(stream(model, PROMPT, max_new_tokens=1)))
    allowed = first.logits.topk(3).indices
    shares = torch.softmax(first.logits[allowed], dim=0)
    counts, decoder = torch.zeros(3), Decoder(model, 6, sampling=sampling)
    for seed in range(600):
        # read at the start of every run
        decoder.sampling = dataclasses.replace(sampling, seed=seed)
        [token_id] = decoder.generate(PROMPT, max_new_tokens=1)
        counts[(allowed == token_id).nonzero().item()] += 1
    # five standard deviations of a share of 600 samples are at most 0.102
    assert_close(counts / 600, shares, atol=0.102, rtol=0)


def test_stops_at_a_stop_token_and_after_one_token():
    model = random_model(GPT2)
    decoder = Decoder(model, 23)
    tokens = decoder.generate(PROMPT, max_new_tokens=N_NEW)
    stop = next(i for i in range(1, N_NEW) if tokens[i] not in tokens[:i])
    assert (
        decoder.generate(PROMPT, max_new_tokens=N_NEW, stop_ids={tokens[stop]})
        == (tokens[: stop + 1])
    )
    steps = decoder.stream(PROMPT, max_new_tokens=N_NEW, stop_ids={tokens[stop]})
    assert [step.token_id for step in steps] == tokens[: stop + 1]
    assert decoder.generate(PROMPT, max_new_tokens=1) == tokens[:1]


def test_int8_weights():
    model = Int8Transformer(random_model(dataclasses.replace(GPT2, d_model=32)))
    expected = stream(model, PROMPT, max_new_tokens=N_NEW, cache=model.new_cache(1, 23))
    tokens = [step.token_id for step in expected]
    assert Decoder(model, 23).generate(PROMPT, max_new_tokens=N_NEW) == tokens


@pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler and Python's headers")
def test_compiled_step_equals_stream():
    # one layer is enough, because all layers have the same shapes
    model, sampling = random_model(dataclasses.replace(LLAMA, n_layers=1)), Sampling(1.3, seed=4)
    options = {"max_new_tokens": N_NEW, "sampling": sampling}
    expected = list(stream(model, PROMPT, cache=model.new_cache(1, 23), **options))
    decoder = Decoder(model, 23, sampling=sampling, compile_step=True)
    for _ in range(2):  # the second run doesn't depend on the first
        steps = list(decoder.stream(PROMPT, max_new_tokens=N_NEW))
        assert [step.token_id for step in steps] == [step.token_id for step in expected]
        for step, other in zip(steps, expected, strict=True):
            assert_close(step.logits, other.logits, atol=1e-5, rtol=1e-5)
    tokens = [step.token_id for step in expected]
    assert decoder.generate(PROMPT, max_new_tokens=N_NEW) == tokens
    # the second call doesn't recompile
    with torch.compiler.set_stance("fail_on_recompile"):
        assert decoder.generate(PROMPT, max_new_tokens=N_NEW) == tokens


def test_compilation_errors_are_clear():
    model = random_model(GPT2)
    with inductor.patch({"cpp.cxx": ("no-such-compiler",)}), pytest.raises(NoCompilerError):
        Decoder(model, 9, compile_step=True)
    with pytest.raises(ValueError, match="meta"):
        Decoder(model.to("meta"), 9, compile_step=True)


@pytest.mark.parametrize("device", DEVICES)
def test_memory_is_released_immediately(device: str):
    """Memory is released without waiting for Python's garbage collector."""
    decoder = Decoder(random_model(GPT2, device), 23)
    list(decoder.stream(PROMPT, max_new_tokens=3))
    decoder.generate(PROMPT, max_new_tokens=3)
    reference = weakref.ref(decoder)
    gc.disable()
    try:
        del decoder
        assert reference() is None
    finally:
        gc.enable()


def test_rejects_invalid_arguments():
    decoder = Decoder(random_model(GPT2), 10)
    for run in (decoder.stream, decoder.generate):
        with pytest.raises(ValueError, match="11.*10"):
            run(PROMPT, max_new_tokens=7)
        with pytest.raises(ValueError, match="token id"):
            run((61,), max_new_tokens=1)
    steps = decoder.stream(PROMPT, max_new_tokens=3)
    next(steps)
    with pytest.raises(ValueError, match="11"):
        decoder.generate(PROMPT, max_new_tokens=7)
    assert [step.cache_length for step in steps] == [6, 7]  # the error didn't change the cache
    with pytest.raises(ValueError, match="edited"):
        decoder.stream(PROMPT, max_new_tokens=2, hooks=Hooks(edit_heads=lambda _, record: record))
    with pytest.raises(ValueError, match="31.*30"):
        Decoder(decoder.model, 31)
    with pytest.raises(ValueError, match="output matrix"):
        Decoder(Transformer(dataclasses.replace(GPT2, output="none")), 9)


def test_rejects_nan_logits():
    model = random_model(GPT2)
    model.final_norm.bias[0] = torch.nan
    decoder = Decoder(model, 10)
    with pytest.raises(ValueError, match="not a number"):
        decoder.generate(PROMPT, max_new_tokens=3)
    with pytest.raises(ValueError, match="not a number"):
        list(decoder.stream(PROMPT, max_new_tokens=3))
    model.final_norm.bias[0] = 0.0  # with a finite bias, the next generation works again
    assert len(decoder.generate(PROMPT, max_new_tokens=3)) == 3
