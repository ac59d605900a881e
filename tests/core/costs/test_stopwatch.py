"""Interleaved timing."""

import pytest

from attention_core.costs.stopwatch import Samples, interleave, paired_ratio


def test_median_and_range():
    samples = Samples((3.0, 1.0, 2.0, 10.0))
    assert samples.median == 2.5
    assert (samples.low, samples.high) == (1.0, 10.0)
    assert f"{samples:.1f}" == "2.5 (1.0..10.0)"


def test_runs_alternate_and_each_goes_first_equally_often():
    calls = []
    runs = {name: (lambda name=name: calls.append(name) or len(calls)) for name in "abc"}
    results = interleave(runs, repeats=3, warmups=1)
    assert "".join(calls) == "cab" + "abc" + "bca" + "cab"
    # the three warm-up results are dropped
    assert results == {"a": [4, 9, 11], "b": [5, 7, 12], "c": [6, 8, 10]}


def test_ratios_are_computed_within_a_round():
    # the second round was twice as slow for both, so the ratio doesn't change
    assert paired_ratio([3.0, 6.0], [1.0, 2.0]).values == (3.0, 3.0)


def test_rejects_empty_input():
    for call in (
        lambda: Samples(()),
        lambda: interleave({"a": lambda: 1}, repeats=0),
        lambda: interleave({}, repeats=3),
        lambda: paired_ratio([1.0, 2.0], [1.0]),
    ):
        with pytest.raises(ValueError, match="at least 1|shorter"):
            call()
