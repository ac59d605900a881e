"""The benchmark programs run through on tiny sizes; no time is asserted."""

import dataclasses

import pytest
from transformers import GPT2Config

from benchmarks import decode, one_row

PROMPT = (1, 5, 9)


@pytest.fixture
def tiny():
    return GPT2Config(vocab_size=211, n_positions=32, n_embd=32, n_layer=2, n_head=4)


def test_decode_prints_the_table_and_both_ratios(tiny, capsys):
    status = decode.main(["--repeats", "2"], config=tiny, prompt_ids=PROMPT, max_new_tokens=12)
    printed = capsys.readouterr()
    assert status == 0, printed.err
    for name in ("core cached", "core uncached", "transformers sdpa", "transformers eager"):
        assert f"\n{name} " in printed.out
    assert "target 1.3: " in printed.out
    assert "core cached over core uncached: " in printed.out
    assert "target 3.4: " in printed.out
    assert "token ids identical in all runs" in printed.out


def test_decode_measures_prefill_and_decode_apart(tiny):
    runs = decode.measure(tiny, PROMPT, max_new_tokens=8, repeats=1)
    for name in ("core cached", "core uncached"):
        [run] = runs[name]
        assert 0 < run.prefill_seconds + run.decode_seconds < run.seconds
    assert runs["transformers sdpa"][0].prefill_seconds is None


def test_decode_fails_with_a_message_when_tokens_differ(tiny, capsys, monkeypatch):
    original = decode.transformers_run

    def one_token_off(*arguments):
        run = original(*arguments)
        token_ids = [*run.token_ids]
        token_ids[3] += 1
        return dataclasses.replace(run, token_ids=token_ids)

    monkeypatch.setattr(decode, "transformers_run", one_token_off)
    status = decode.main(["--repeats", "1"], config=tiny, prompt_ids=PROMPT, max_new_tokens=8)
    assert status == 1
    message = capsys.readouterr().err
    assert "transformers sdpa and core cached differ from new token 3 on" in message


def test_decode_refuses_to_compare_one_repeated_token():
    runs = {"core cached": [decode.Run([7] * 20, 1.0)]}
    with pytest.raises(RuntimeError, match="only 1 different"):
        decode.check_tokens(runs, 20)


def test_one_row_prints_a_line_a_shape(capsys):
    status = one_row.main(["--repeats", "2"], shapes=((32, 48), (48, 32)), bytes_read=50_000)
    printed = capsys.readouterr().out
    assert status == 0
    assert "\n32 x 48 " in printed
    assert "\n48 x 32 " in printed
    assert "project/F.linear" in printed
