"""The benchmark of information flow runs through on a tiny model; no time is asserted."""

from benchmarks import information_flow
from tests.helpers.tiny_models import build


def test_it_prints_the_table_and_the_ratio(capsys):
    assert information_flow.main(["--tokens", "7", "--repeats", "2"], model=build("gpt2")) == 0
    printed = capsys.readouterr().out
    assert "3 layers, 7 tokens" in printed
    assert "information flow over recorded pass: " in printed


def test_the_ratio_is_that_of_the_repeats_in_pairs():
    seconds = {"recorded pass": [0.1, 0.2, 0.4], "information flow": [0.25, 0.3, 0.4]}
    assert "1.50 (1.00..2.50) times as long; target 2.0: reached" in (
        information_flow.report(seconds)
    )
