"""The parts of `benchmarks.heads` on a tiny model; no browser is started, no time is asserted."""

import pytest
import torch

import pretrained
from benchmarks import heads
from benchmarks.bertviz_views import Peer
from benchmarks.heads import HeadTimings


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, bundled_weights):
    models = tmp_path_factory.mktemp("models")
    heads.write_model(models / "tiny", n_layers=2, n_heads=3, width=24)
    return models


def test_the_written_model_is_found_and_runs(tiny, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tiny))
    tokens, weights = heads.attention_of("tiny", heads.text_of(17, seed=3))
    assert len(tokens.ids) == 17
    assert [tuple(layer.shape) for layer in weights] == [(1, 3, 17, 17)] * 2
    rows = torch.stack(weights).sum(-1)
    torch.testing.assert_close(rows, torch.ones_like(rows))


def test_texts_have_their_number_of_tokens_and_differ(bundled_weights):
    tokenizer = pretrained.load(heads.TRAINED).tokenizer
    for n_tokens in (3, 32, 128, 256):
        assert len(tokenizer.encode(heads.text_of(n_tokens, seed=n_tokens)).ids) == n_tokens
    words = heads._WORDS.split()
    assert len(tokenizer.encode(" ".join(words)).ids) == len(words) + 2  # each is one token
    assert heads.text_of(32, seed=1) == heads.text_of(32, seed=1) != heads.text_of(32, seed=2)
    with pytest.raises(ValueError, match="n_tokens is 2"):
        heads.text_of(2, seed=0)


def test_the_report_puts_both_side_by_side():
    ours = HeadTimings(
        128, [0.5, 1.0], [0.4, 0.4], [0.1, 0.3, 0.2], [0.1] * 3, [900_000, 1_000_000]
    )
    printed = heads.report([(ours, Peer([40.0, 50.0], [5.0], [4.0], [104_000_000]))])
    lines = {line.split("  ")[0].strip(): line for line in printed.splitlines()}
    assert lines["all heads, s"].split()[-2:] == ["65.0", "(50.0..80.0)"]  # pairs: 40/0.5, 50/1
    assert lines["another head or layer, s"].split()[-1] == "20.0"  # medians: 4 / 0.2
    assert lines["received, MB"].split()[-1] == "109.5"
    alone = heads.report([(ours, Peer())])
    assert "40.00" in printed
    assert "40.00" not in alone


def test_a_missed_target_is_the_exit_status(capsys):
    def measured(painted, switch, received, n_tokens=128):
        return HeadTimings(n_tokens, [painted], [painted], [switch], [switch], [received])

    assert heads._judge([measured(2.0, 0.3, 1_500_000)]) == 0
    assert capsys.readouterr().out.count(": reached") == 3
    for missed in ((2.1, 0.1, 1), (0.1, 0.31, 1), (0.1, 0.1, 1_500_001)):
        assert heads._judge([measured(*missed)]) == 1
        assert capsys.readouterr().out.count("not reached") == 1
    assert heads._judge([measured(9.0, 9.0, 9_000_000, n_tokens=256)]) == 0  # no target there
