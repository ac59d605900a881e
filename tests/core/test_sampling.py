"""Sampling refuses settings and logits that no token can be drawn from."""

import math
from typing import Any

import pytest
import torch

from attention_core import Sampling, probabilities, sample


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"seed": 2**63}, f"seed must be at most {2**63 - 1}, got {2**63}"),
        ({"seed": 1.5}, "seed must be a whole number, got 1.5"),
        ({"seed": True}, "seed must be a whole number, got True"),
        ({"seed": None}, "seed must be a whole number, got None"),
        ({"top_k": 2.0}, "top_k must be a whole number, got 2.0"),
        ({"top_k": True}, "top_k must be a whole number, got True"),
        ({"top_p": "0.5"}, "top_p must be a finite number, above 0, got '0.5'"),
        ({"top_p": math.nan}, "top_p must be a finite number, above 0, got nan"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1, got 1.5"),
        ({"temperature": "1"}, "temperature must be a finite number, at least 0, got '1'"),
        ({"temperature": True}, "temperature must be a finite number, at least 0, got True"),
    ],
)
def test_settings(settings: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        Sampling(**settings)


def test_the_largest_seed_draws():
    assert sample(torch.zeros(3), Sampling(1.0, seed=2**63 - 1), torch.Generator()) in range(3)


EVERY_WAY = [
    Sampling(),
    Sampling(temperature=0.7),
    Sampling(temperature=1e-40),
    Sampling(temperature=1.0, top_k=2),
    Sampling(temperature=1.0, top_p=0.5),
]


@pytest.mark.parametrize("sampling", EVERY_WAY)
@pytest.mark.parametrize(
    ("logits", "largest"),
    [([-math.inf] * 3, "-inf"), ([0.0, math.nan, 1.0], "nan"), ([0.0, math.inf, 1.0], "inf")],
)
def test_logits_without_a_largest_number(sampling: Sampling, logits: list[float], largest: str):
    generator = torch.Generator().manual_seed(0)
    message = f"no token can be chosen: the largest of the logits is {largest}"
    with pytest.raises(ValueError, match=message):
        sample(torch.tensor(logits), sampling, generator)
    with pytest.raises(ValueError, match=message):
        probabilities(torch.tensor(logits), sampling)


@pytest.mark.parametrize("sampling", EVERY_WAY)
def test_forbidden_tokens_are_never_drawn(sampling: Sampling):
    logits = torch.tensor([-math.inf, 1.0, -math.inf, 1.5])
    generator = torch.Generator().manual_seed(0)
    assert {sample(logits, sampling, generator) for _ in range(50)} <= {1, 3}


@pytest.mark.parametrize("shape", [(), (0,), (1, 5)])
@pytest.mark.parametrize("sampling", EVERY_WAY[:2])
def test_logits_are_one_row(shape: tuple[int, ...], sampling: Sampling):
    with pytest.raises(ValueError, match=r"logits must be \(vocabulary,\), got shape"):
        probabilities(torch.zeros(shape), sampling)
