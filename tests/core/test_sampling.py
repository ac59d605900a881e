"""Sampling rejects invalid settings and logits."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from attention_core import Sampling, probabilities, sample
from attention_core.sampling import distribution


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("seed", -1),
        ("seed", 2**63),
        ("seed", 1.5),
        ("top_k", 0),
        ("top_k", True),
        ("top_p", "0.5"),
        ("top_p", 0.0),
        ("top_p", 1.5),
        ("temperature", -1),
        ("temperature", math.nan),
        ("temperature", True),
    ],
)
def test_settings(name: str, wrong: Any):
    with pytest.raises(ValueError, match=f"{name}.*{wrong}"):
        Sampling(**{name: wrong})


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
def test_rejects_logits_without_a_maximum(sampling: Sampling, logits: list[float], largest: str):
    generator = torch.Generator().manual_seed(0)
    with pytest.raises(ValueError, match=largest):
        sample(torch.tensor(logits), sampling, generator)
    with pytest.raises(ValueError, match=largest):
        probabilities(torch.tensor(logits), sampling)


@pytest.mark.parametrize("sampling", EVERY_WAY)
def test_forbidden_tokens_are_never_sampled(sampling: Sampling):
    logits = torch.tensor([-math.inf, 1.0, -math.inf, 1.5])
    generator = torch.Generator().manual_seed(0)
    assert {sample(logits, sampling, generator) for _ in range(50)} <= {1, 3}


def partitions(total: int, largest: int) -> Iterator[list[int]]:
    """Yield every way to write `total` as a descending sum of integers up to `largest`."""
    if not total:
        yield []
    for first in range(min(total, largest), 0, -1):
        yield from ([first, *rest] for rest in partitions(total - first, first))


@pytest.mark.parametrize("denominator", [2, 3, 7, 10, 13, 16])
def test_top_p_keeps_the_smallest_set_that_reaches_p(denominator: int):
    """Test every distribution in steps of 1/n, whether or not a sum equals p."""
    for number, parts in enumerate(partitions(denominator, denominator)):
        shuffled = torch.randperm(len(parts), generator=torch.Generator().manual_seed(number))
        shares = torch.tensor(parts, dtype=torch.float64)[shuffled] / denominator
        sums = list(accumulate(Fraction(part, denominator) for part in parts))
        between = [total - Fraction(1, 2 * denominator) for total in sums]
        for top_p in {*sums, *between}:
            n_needed = 1 + sum(total < top_p for total in sums)
            least = Fraction(parts[n_needed - 1], denominator)
            kept = probabilities(shares.log(), Sampling(1.0, top_p=float(top_p)))
            assert int((kept > 0).sum()) == n_needed, (parts, top_p)
            assert float(shares[kept > 0].min()) == pytest.approx(float(least)), (parts, top_p)


def test_top_p_with_an_exact_decimal_sum():
    kept = probabilities(torch.tensor([0.3, 0.1, 0.1, 0.5]).log(), Sampling(1.0, top_p=0.8))
    assert_close(kept, torch.tensor([0.375, 0, 0, 0.625]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("size", [1_000, 50_257, 152_064])
@pytest.mark.parametrize("tenths", [1, 5, 9])
def test_top_p_of_a_large_vocabulary(size: int, tenths: int):
    """With equal probabilities of 1/V, rounded sums of thousands are still distinct."""
    kept = probabilities(torch.zeros(size), Sampling(1.0, top_p=tenths / 10))
    assert int((kept > 0).sum()) == -(-size * tenths // 10)


def test_probabilities_do_not_synchronize():
    """Meta tensors have no values, so reading one on the host would raise an error."""
    logits = torch.zeros(50, device="meta")
    assert distribution(logits, Sampling(0.7, top_k=9, top_p=0.8)).shape == (50,)
