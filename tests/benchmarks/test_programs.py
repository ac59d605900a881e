"""The benchmark programs run through on tiny sizes; no time is asserted."""

import dataclasses
import re

import pytest
import torch
import torch._inductor.config as inductor
from transformers import GPT2Config

from attention_core.speed.decoder import Decoder
from attention_core.speed.drafting import DraftedDecoder
from benchmarks import decode, decode_gpu, drafted, kv_cache, one_row, reading
from benchmarks.drafted import TrainedModel
from benchmarks.runs import PEERS, GenerationRun, transformers_run
from pretrained.untrained import random_gpt2
from pretrained.weights import core_from_reference

PROMPT = (1, 5, 9)


@pytest.fixture
def tiny():
    return GPT2Config(vocab_size=211, n_positions=32, n_embd=32, n_layer=2, n_head=4)


def test_decode_prints_the_table_and_all_ratios(tiny, capsys, monkeypatch):
    # steps are compiled in tests/core/speed/test_decoder.py; here they only take their place
    monkeypatch.setattr(decode, "Decoder", lambda model, room, compile_step: Decoder(model, room))
    monkeypatch.setattr(
        drafted,
        "DraftedDecoder",
        lambda *models, n_drafted, compile_step: DraftedDecoder(*models, n_drafted=n_drafted),
    )
    reference = random_gpt2(tiny)
    status = decode.main(
        ["--repeats", "2"],
        config=tiny,
        prompt_ids=PROMPT,
        max_new_tokens=12,
        trained=TrainedModel("A small model", core_from_reference(reference), reference, PROMPT),
    )
    printed = capsys.readouterr()
    assert status == 0, printed.err
    for name in ("cached", "compiled", "int8", "int8 compiled", "batch 8", "uncached"):
        assert f"\ncore {name} " in printed.out
    for name in ("sdpa", "eager"):
        assert f"\ntransformers {name} " in printed.out
    assert "core batch 8 over core cached: " in printed.out
    assert "target 3.0: " in printed.out
    assert "target 1.8: " in printed.out
    assert "core cached over core uncached: " in printed.out
    assert "core int8 over transformers " in printed.out
    assert "target 2.5: " in printed.out
    assert "token ids identical in all float32 runs" in printed.out
    assert "\ncore cached reads " in printed.out
    assert "target 0.8: " in printed.out
    assert "\ncore compiled reads " in printed.out
    assert "\nA small model, trained weights, 3 prompt + 12 new tokens\n" in printed.out
    assert re.search(r"\na pass of the model settles [1-5]\.\d\d .* of at most 5\n", printed.out)
    for name in ("cached", "compiled", "int8 compiled", "drafted in 8 bits"):
        assert f"\ncore {name} over transformers " in printed.out


def test_decode_without_a_compiler_says_so_and_how_to_go_on(tiny, capsys):
    arguments = {"config": tiny, "prompt_ids": PROMPT, "max_new_tokens": 12}
    with inductor.patch({"cpp.cxx": ("no-such-compiler",)}):
        assert decode.main(["--repeats", "1"], **arguments) == 1
    message = capsys.readouterr().err
    assert "install g++" in message
    assert "--no-compile" in message
    assert decode.main(["--repeats", "1", "--no-compile"], **arguments) == 0
    assert "compiled" not in capsys.readouterr().out


def test_decode_on_a_gpu_prints_the_table_and_the_ratio(tiny, capsys):
    status = decode_gpu.main(
        ["--repeats", "2"],
        config=tiny,
        prompt_ids=PROMPT,
        max_new_tokens=12,
        device=torch.device("cuda" if torch.cuda.is_available() else "cpu"),
    )
    printed = capsys.readouterr()
    assert status == 0, printed.err
    for name in ("core graphs", "core step by step", "core cached", "transformers sdpa"):
        assert f"\n{name} " in printed.out
    assert "\ncore graphs over transformers " in printed.out
    assert "target 4.0: " in printed.out


def test_decode_on_a_gpu_says_where_tokens_part_and_fails_where_they_must_not(monkeypatch, tiny):
    runs = {name: [GenerationRun([7, 8, 9], 2.0)] for name in ("core graphs", *PEERS)}
    runs["transformers eager"] = [GenerationRun([7, 8, 5], 0.5)]
    said = decode_gpu.report(runs)
    assert "0.25 (0.25..0.25) times as fast; target 4.0: not reached" in said
    lines = {line.split("  ")[0]: line for line in said.splitlines()}
    assert lines["transformers eager"].endswith("until 2")
    assert lines["transformers sdpa"].endswith("all")

    def other(self, *_: object, **__: object) -> list[int]:
        return [int(isinstance(self, decode_gpu._StepByStep))] * 4

    monkeypatch.setattr(decode_gpu.Decoder, "generate", other)
    with pytest.raises(RuntimeError, match="differ from new token 0 on"):
        decode_gpu.measure(tiny, PROMPT, torch.device("cpu"), max_new_tokens=4, repeats=1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_decode_on_a_gpu_without_one_says_so(capsys):
    assert decode_gpu.main([]) == 0
    assert "no GPU here" in capsys.readouterr().out


def test_decode_measures_prefill_and_decode_apart(tiny):
    models = decode.Models.random(tiny, 11, compile_step=False)
    runs = decode.measure(models, PROMPT, max_new_tokens=8, repeats=1)
    for name in ("core cached", "core batch 8", "core uncached"):
        [run] = runs[name]
        assert 0 < run.prefill_seconds + run.decode_seconds < run.seconds
    assert runs["transformers sdpa"][0].prefill_seconds is None


def test_decode_counts_the_tokens_of_every_prompt_of_a_batch(tiny):
    models = decode.Models.random(tiny, 12, compile_step=False)
    runs = decode.measure(models, PROMPT, max_new_tokens=9, repeats=1)
    [run] = runs["core batch 8"]
    assert run.tokens_per_second == pytest.approx(8 * 9 / run.seconds)
    twice = {name: [GenerationRun([*range(9)], 2.0)] for name in runs}
    twice["core batch 8"] = [GenerationRun([*range(9)], 4.0, n_prompts=8)]
    assert (
        "core batch 8 over core cached: 4.00 (4.00..4.00) times as fast; target 3.0: reached"
        in (decode.report(twice))
    )


def test_a_decode_step_reads_every_weight_but_the_positions(tiny):
    core = core_from_reference(random_gpt2(tiny))
    layer = 12 * 32**2 + 13 * 32  # four matrices with biases, two norms
    assert reading.step_bytes(core) == 4 * (2 * layer + 2 * 32 + 211 * 32)


def test_reading_judges_known_rates():
    rates = {"quick": [20e9, 21e9, 5e9], "slow": [19e9, 19e9, 30e9]}
    quick, slow = reading.reading_lines(reading.ReadRates(rates, [25e9] * 3)).splitlines()
    assert quick == (
        "quick reads 20.0 (5.0..21.0) GB/s of weights in decode steps, this machine "
        "25.0 (25.0..25.0): 0.80 (0.20..0.84) of it; target 0.8: reached"
    )
    assert slow.endswith("0.76 (0.76..1.20) of it; target 0.8: not reached")


def test_decode_fails_with_a_message_when_tokens_differ(tiny, capsys, monkeypatch):
    original = transformers_run

    def one_token_off(*arguments):
        run = original(*arguments)
        token_ids = [*run.token_ids]
        token_ids[3] += 1
        return dataclasses.replace(run, token_ids=token_ids)

    monkeypatch.setattr("benchmarks.runs.transformers_run", one_token_off)
    status = decode.main(
        ["--repeats", "1", "--no-compile"], config=tiny, prompt_ids=PROMPT, max_new_tokens=8
    )
    assert status == 1
    message = capsys.readouterr().err
    assert "transformers sdpa and core cached differ from new token 3 on" in message


def test_decode_refuses_to_compare_one_repeated_token():
    runs = {"core cached": [GenerationRun([7] * 20, 1.0)]}
    with pytest.raises(RuntimeError, match="only 1 different"):
        decode.check_tokens(runs, 20)


def test_kv_cache_prints_times_ratios_fits_and_exponents(tiny, capsys):
    status = kv_cache.main(["--repeats", "2", "--new-tokens", "12"], config=tiny, prompt_ids=PROMPT)
    printed = capsys.readouterr()
    assert status == 0, printed.err
    for name in ("core", "transformers"):
        assert f"\n{name} cached " in printed.out
        assert f"\n{name} uncached " in printed.out
        assert f"{name}, 12 new tokens: " in printed.out
        assert f"{name}: with the cache " in printed.out
    assert "exponent with the cache " in printed.out
    assert "exponent without " in printed.out
    assert "fitted at [6, 12]" in printed.out


def test_kv_cache_without_transformers(tiny, capsys):
    arguments = ["--repeats", "1", "--new-tokens", "8", "--core-only"]
    assert kv_cache.main(arguments, config=tiny, prompt_ids=PROMPT) == 0
    assert "transformers" not in capsys.readouterr().out


def test_kv_cache_judges_known_times():
    """0.1 s a cached step; 0.01 s more with every step without: ratios and exponents by hand."""
    cached = kv_cache.StepSeries([[0.1] * 512], [[1] * 512])
    uncached = kv_cache.StepSeries([[0.01 * n for n in range(1, 513)]], [[1] * 512])
    series = {"core cached": cached, "core uncached": uncached}
    lines = kv_cache.ratios(series, [100, 512])
    # 0.01 * 100 * 101 / 2 over 10, and 0.01 * 512 * 513 / 2 over 51.2
    assert lines[0].startswith("core, 100 new tokens: 5.05 (5.05..5.05) times as fast")
    assert lines[0].endswith("target 3.4: reached")
    assert "25.65" in lines[1]
    assert lines[1].endswith("target 8.0: reached")
    assert lines[2] == "core: with the cache ahead from 20 new tokens on"
    verdicts = kv_cache.exponents(series, kv_cache.lengths_up_to(512))
    assert verdicts[0].startswith("exponent with the cache 1.00")
    assert verdicts[0].endswith(": reached")
    assert verdicts[1].startswith("exponent without 1.99")


def test_kv_cache_fails_with_a_message_when_tokens_differ():
    one = kv_cache.StepSeries([[0.1] * 3], [[5, 6, 7]])
    other = kv_cache.StepSeries([[0.1] * 3], [[5, 8, 7]])
    with pytest.raises(RuntimeError, match="other and one differ from new token 1 on"):
        kv_cache.check_tokens({"one": one, "other": other})


@pytest.mark.parametrize(
    ("n_new", "lengths"), [(512, [32, 64, 128, 256, 512]), (100, [32, 64, 100]), (20, [10, 20])]
)
def test_kv_cache_lengths(n_new, lengths):
    assert kv_cache.lengths_up_to(n_new) == lengths


@pytest.mark.parametrize(("n_rows", "title"), [("1", "One row times"), ("5", "5 rows times")])
def test_one_row_prints_a_line_a_shape(capsys, n_rows, title):
    arguments = ["--repeats", "2", "--rows", n_rows]
    status = one_row.main(arguments, shapes=((32, 48), (48, 32)), bytes_read=50_000)
    printed = capsys.readouterr().out
    assert status == 0
    assert printed.startswith(title)
    assert "\n32 x 48 " in printed
    assert "\n48 x 32 " in printed
    assert "project/F.linear" in printed
