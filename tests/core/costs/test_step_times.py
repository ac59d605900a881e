"""Interleaved steps, fits of their times, and their operation counts."""

import itertools
from dataclasses import replace

import pytest
import torch

from attention_core import forward_flops, stream
from attention_core.costs.step_times import (
    WARM_UP,
    break_even,
    fit_step_times,
    flops_terms,
    interleave_steps,
    total_exponent,
)
from tests.helpers.attention_variants import HEADS, LATENT, enlarged_model

POSITIONS = [5.0 + step for step in range(60)]


def _contenders(model, n_new):
    def start(cached):
        cache = model.new_cache(1, 20) if cached else None
        return stream(model, (1, 2, 3), max_new_tokens=n_new, cache=cache)

    return {"cached": lambda: start(True), "uncached": lambda: start(False)}


def test_every_repeat_runs_all_steps_in_alternating_order():
    model = enlarged_model(HEADS["llama, GQA of 3"])
    timed_steps = list(interleave_steps(_contenders(model, 4), repeats=2, warmup_steps=2))
    warm = [timed for timed in timed_steps if timed.repeat == WARM_UP]
    assert [(timed.name, timed.step.kind) for timed in warm] == [
        ("cached", "prefill"),
        ("cached", "decode"),
        ("uncached", "prefill"),
        ("uncached", "decode"),
    ]
    names = [[timed.name for timed in timed_steps if timed.repeat == repeat] for repeat in range(2)]
    c, u = "cached", "uncached"
    assert names == [[c, u, u, c, c, u, u, c], [u, c, c, u, u, c, c, u]]
    for repeat, name in itertools.product(range(2), (c, u)):
        steps = [t.step for t in timed_steps if (t.repeat, t.name) == (repeat, name)]
        assert [step.n_keys for step in steps] == [3, 4, 5, 6]
        assert [step.n_new for step in steps] == ([3, 1, 1, 1] if name == c else [3, 4, 5, 6])


def test_fit_recovers_known_terms():
    seconds = [0.02 + 3e-4 * n + 5e-6 * n * n for n in POSITIONS]
    fit = fit_step_times(POSITIONS, seconds)
    assert fit.constant.value == pytest.approx(0.02, rel=1e-9)
    assert fit.linear.value == pytest.approx(3e-4, rel=1e-9)
    assert fit.quadratic.value == pytest.approx(5e-6, rel=1e-9)
    assert fit.predict(100) == pytest.approx(0.02 + 0.03 + 0.05, rel=1e-9)


def test_standard_errors_match_the_textbook_formula():
    n, y = [1.0, 2.0, 4.0, 7.0, 11.0, 16.0], [3.0, 2.5, 4.0, 9.0, 20.0, 44.0]
    x = torch.tensor([[1.0, a, a * a] for a in n], dtype=torch.float64)
    inverse = torch.linalg.inv(x.T @ x)
    result = inverse @ x.T @ torch.tensor(y, dtype=torch.float64)
    residual = torch.tensor(y, dtype=torch.float64) - x @ result
    errors = (residual.square().sum() / 3 * inverse.diagonal()).sqrt()
    fit = fit_step_times(n, y)
    for term, value, error in zip(
        (fit.constant, fit.linear, fit.quadratic), result.tolist(), errors.tolist(), strict=True
    ):
        assert term.value == pytest.approx(value, rel=1e-6)
        assert term.error == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("config", [*HEADS.values(), *LATENT.values()], ids=str)
def test_operation_terms_are_exact(config, cached):
    constant, linear, quadratic = flops_terms(config, cached=cached)
    for n in (1, 2, 7, 100, 1023):
        expected = forward_flops(config, 1 if cached else n, n)
        assert constant + linear * n + quadratic * n * n == expected
    assert (quadratic == 0) == cached


@pytest.mark.parametrize(
    ("cached", "uncached", "expected"),
    [
        ([5, 1, 1, 1, 1], [4, 2, 2, 2, 2], 3),  # 5 4 | 6 6 | 7 8
        ([1, 1, 9, 1, 1], [2, 2, 2, 2, 2], None),  # faster at first, but slower at the end
        ([1, 1, 1], [2, 2, 2], 1),
        ([1, 3, 1, 1], [2, 1, 2, 3], 4),  # 1 2 | 4 3 | 5 5 | 6 8
        ([], [], None),
    ],
)
def test_break_even_is_where_the_cache_stays_ahead(cached, uncached, expected):
    assert break_even(cached, uncached) == expected


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_exponent_of_a_total(power):
    lengths = [32, 64, 128, 256]
    steps = [n**power - (n - 1) ** power for n in range(1, 257)]
    assert total_exponent(steps, lengths) == pytest.approx(power, rel=1e-9)


def test_rejects_invalid_arguments():
    windowed = replace(HEADS["gpt2, MHA"], window=5)
    for numbers, call in {
        "1, 1 and 0": lambda: interleave_steps({"one": lambda: iter(())}, repeats=0),
        "0 contenders": lambda: interleave_steps({}, repeats=1),
        "4 different.*5": lambda: fit_step_times([1, 2, 3, 4, 4], [1, 2, 3, 4, 5]),
        "window.*5": lambda: flops_terms(windowed, cached=True),
        "2.*3": lambda: break_even([1, 2], [1, 2, 3]),
        "10 steps": lambda: total_exponent([1.0] * 10, [2, 11]),
    }.items():
        with pytest.raises(ValueError, match=numbers):
            call()
