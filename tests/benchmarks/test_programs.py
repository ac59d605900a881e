"""The benchmark programs run with tiny sizes; times aren't checked."""

from functools import partial

import pytest
import torch
from transformers import GPT2Config

from benchmarks import decode, decode_gpu, information_flow, kv_cache, one_row
from benchmarks.runs import GenerationRun
from tests.helpers.tiny_models import build

TINY = GPT2Config(vocab_size=211, n_positions=32, n_embd=32, n_layer=2, n_head=4)
OPTIONS = {"config": TINY, "prompt_ids": (1, 5, 9)}
PROGRAMS = {
    "decode": partial(
        decode.main, ["--repeats", "1", "--no-compile"], max_new_tokens=12, **OPTIONS
    ),
    "decode on a GPU": partial(
        decode_gpu.main,
        ["--repeats", "1"],
        max_new_tokens=12,
        device=torch.device("cuda" if torch.cuda.is_available() else "cpu"),
        **OPTIONS,
    ),
    "KV cache": partial(kv_cache.main, ["--repeats", "2", "--new-tokens", "12"], **OPTIONS),
    "information flow": partial(
        information_flow.main, ["--tokens", "7", "--repeats", "2"], model=build("gpt2")
    ),
    "one row": partial(
        one_row.main, ["--repeats", "2"], shapes=((32, 48), (48, 32)), bytes_read=50_000
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_runs(name: str):
    assert PROGRAMS[name]() == 0


def test_runs_with_different_tokens_are_not_compared():
    runs = {
        "core cached": [GenerationRun([*range(20)], 1.0)],
        "core uncached": [GenerationRun([7] * 20, 1.0)],
    }
    with pytest.raises(RuntimeError, match="token 0"):
        decode.check_tokens(runs, 20)


def test_kv_cache_verdict_for_known_times():
    """A cached step takes 0.1 s, the uncached step n takes 0.01 n seconds."""
    cached = kv_cache.StepSeries([[0.1] * 512], [[1] * 512])
    uncached = kv_cache.StepSeries([[0.01 * n for n in range(1, 513)]], [[1] * 512])
    series = {"core cached": cached, "core uncached": uncached}
    lines = kv_cache.ratios(series, [100, 512])
    # 0.01 * 100 * 101 / 2 over 10, and 0.01 * 512 * 513 / 2 over 51.2
    assert "5.05" in lines[0]
    assert "25.65" in lines[1]
    exponents = kv_cache.exponents(series, kv_cache.lengths_up_to(512))
    assert "1.00" in exponents[0]
    assert "1.99" in exponents[1]
