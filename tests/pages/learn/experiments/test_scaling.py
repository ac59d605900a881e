"""Compare softmax and its Jacobian to autograd, and variances to theory."""

import math

import pytest
import torch
from torch.testing import assert_close

from pages.learn.scaling.experiment import (
    DIVISORS,
    entropy,
    jacobian_norm,
    scaling_sweep,
    softmax_jacobian,
    softmax_of_shares,
    uniform_jacobian_norm,
)
from tests.helpers.lectures import LECTURE_NUMBERS


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_logits_with_zero_sum_have_no_shares():
    with pytest.raises(ValueError, match="add up to 0"):
        softmax_of_shares(torch.tensor([[1.0, 2.0], [3.0, -3.0]]))


def test_negative_sum_reverses_the_order():
    weights = softmax_of_shares(torch.tensor([-3.0, -1.0, 1.0]))
    assert weights.argsort().tolist() == [2, 1, 0]


def test_jacobian_matches_autograd():
    logits = random(5) * 2
    weights = torch.softmax(logits, dim=-1)
    expected = torch.autograd.functional.jacobian(lambda x: torch.softmax(x, dim=-1), logits)
    assert_close(softmax_jacobian(weights), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("size", [0.0, 0.1, 1.0, 5.0, 30.0])
def test_norm_of_the_jacobian(size: float):
    logits = random(3, 4, 6, seed=1) * size
    weights = torch.softmax(logits, dim=-1)
    exact = torch.softmax(logits.double(), dim=-1)
    expected = softmax_jacobian(exact).norm(dim=(-2, -1)).float()
    # The tolerance is relative, so it also covers a softmax so saturated that the norm is tiny.
    assert_close(jacobian_norm(weights), expected, atol=1e-12, rtol=1e-4)


def test_one_hot_row_has_no_entropy_and_no_gradient():
    weights = torch.tensor([0.0, 1.0, 0.0])
    assert float(entropy(weights)) == 0.0
    assert float(jacobian_norm(weights)) == 0.0


@pytest.mark.parametrize("n", [2, 3, 32])
def test_uniform_rows(n: int):
    weights = torch.full((n,), 1 / n)
    assert float(jacobian_norm(weights)) == pytest.approx(uniform_jacobian_norm(n), rel=1e-5)
    assert float(entropy(weights)) == pytest.approx(math.log(n), rel=1e-5)


def test_course_experiment():
    block = LECTURE_NUMBERS["003_scaling_variance"]
    names = dict(zip(DIVISORS, ("no_scale", "sqrt_d_k", "d_k", "d_k_squared"), strict=True))
    results = scaling_sweep([block["d_k"]], n_draws=1000, n_tokens=10, seed=0)
    for name, (result,) in results.items():
        printed, theory = block["printed"][names[name]], block["theory"][names[name]]
        assert result.theory == pytest.approx(theory)
        # Allow five standard errors of the random draws. The course's draws are random too, so that
        # check uses the error of a difference. The course printed four decimals.
        assert abs(result.variance - theory) < 5 * result.standard_error
        assert abs(result.variance - printed) < 5 * math.sqrt(2) * result.standard_error + 5e-5


def test_sweep_matches_its_definition():
    d_ks, n_draws, n_tokens = [1, 3, 8], 5, 4
    results = scaling_sweep(d_ks, n_draws=n_draws, n_tokens=n_tokens, seed=3)
    generator = torch.Generator().manual_seed(3)
    q = torch.randn(n_draws, n_tokens, 8, generator=generator)
    k = torch.randn(n_draws, n_tokens, 8, generator=generator)
    for name, divisor in (("nothing", 1.0), ("√d_k", 3**0.5), ("d_k", 3.0), ("d_k²", 9.0)):
        result = results[name][1]
        scores = q[..., :3] @ k[..., :3].mT / divisor
        variances = scores.flatten(1).var(dim=1)
        weights = torch.softmax(scores, dim=-1)
        norms = softmax_jacobian(weights).norm(dim=(-2, -1))
        assert result.d_k == 3
        assert result.divisor == pytest.approx(divisor)
        assert result.variance == pytest.approx(float(variances.mean()), rel=1e-4)
        assert result.spread == pytest.approx(float(variances.std()), rel=1e-4)
        assert result.standard_error == pytest.approx(float(variances.std()) / n_draws**0.5)
        assert result.largest == pytest.approx(float(weights.max(-1).values.mean()), rel=1e-4)
        assert result.jacobian == pytest.approx(float(norms.mean()), rel=1e-4)
        assert result.jacobian_median == pytest.approx(float(norms.median()), rel=1e-4)


def test_only_sqrt_d_keeps_the_softmax_stable():
    results = scaling_sweep([16, 1024], n_draws=20, n_tokens=32, seed=0)
    entropies = {name: [point.entropy for point in row] for name, row in results.items()}
    assert entropies["nothing"][1] < 0.3 < entropies["nothing"][0]
    assert entropies["√d_k"][0] == pytest.approx(entropies["√d_k"][1], abs=0.1)
    for name in ("d_k", "d_k²"):
        assert entropies[name][1] == pytest.approx(math.log(32), abs=0.01)
