"""Seeded random numbers don't depend on other threads."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from attention_core.seeding import seeded
from pages.learn.against_pytorch import experiment as against_pytorch
from pages.learn.ladder.experiment.ladder import SPLITS, V1, WRAPPER, RungSettings, run_rung

BARRIER_SECONDS = 60  # so that a hanging test fails


def draw_everything() -> list[Tensor]:
    """Draw one sample of each kind that the code uses, and a few others."""
    with torch.no_grad():
        draws = [
            torch.rand(3, 4), torch.randn(5, 6), torch.randperm(11), torch.randint(3, 9, (7,)),
            torch.randint(9, (7,)), torch.empty(40).normal_(std=0.02), torch.empty(40).uniform_(),
            torch.empty(9).bernoulli_(0.3), nn.functional.dropout(torch.ones(7, 9), 0.5),
            torch.rand_like(torch.ones(3)), torch.multinomial(torch.ones(9), 4),
        ]  # fmt: skip
        modules = (nn.Linear(5, 7), nn.MultiheadAttention(6, 2), nn.GRU(3, 4), nn.Embedding(5, 3))
    return draws + [p.detach() for module in modules for p in module.parameters()]


def test_seeded_draws_equal_manual_seed():
    torch.manual_seed(7)
    expected = draw_everything()
    with seeded(7):
        draws = draw_everything()
    assert all(torch.equal(a, b) for a, b in zip(draws, expected, strict=True))


def test_global_generator_is_untouched():
    before = torch.get_rng_state()
    with seeded(7):
        draw_everything()
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, True, "3"])
def test_rejects_invalid_seeds(seed):
    with pytest.raises(ValueError, match="a seed must be"), seeded(seed):
        pass


def test_other_threads_do_not_affect_draws():
    with seeded(3):
        expected = torch.rand(2), torch.rand(2)
    barrier = threading.Barrier(2, timeout=BARRIER_SECONDS)

    def use_global_generator() -> None:
        barrier.wait()  # the main thread made its first draw
        torch.manual_seed(9)
        nn.Linear(4, 5)
        barrier.wait()

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(use_global_generator)
        with seeded(3):
            first = torch.rand(2)
            barrier.wait()
            barrier.wait()  # the other thread seeded the global generator and drew from it
            second = torch.rand(2)
        other.result()
    assert torch.equal(first, expected[0])
    assert torch.equal(second, expected[1])


def attention_outputs() -> dict[str, Tensor]:
    """Compute the weights and all outputs on the Against PyTorch page."""
    ours = against_pytorch.make_attention(24, 4, 7, causal=True, qkv_bias=True, seed=5)
    x = against_pytorch.random_input(1, 7, 24, seed=5)
    weights = {name: p.detach() for name, p in ours.named_parameters()}
    return {**weights, **against_pytorch.compare(ours, x).outputs}


def ladder_outputs() -> dict[str, Tensor]:
    """Compute the matrices and outputs of three variants on the Ladder page."""
    x = against_pytorch.random_input(1, 6, 3, seed=1)[0]
    rungs = [run_rung(name, x, RungSettings(d_out=4, seed=11)) for name in (V1, WRAPPER, SPLITS)]
    result = {f"{r.name}.{name}": p for r in rungs for name, p in r.matrices.items()}
    return {**result, **{rung.name: rung.output for rung in rungs}}


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Switch threads a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 1000)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("frequent_switches")
def test_concurrent_lessons_give_the_same_results():
    lessons: tuple[Callable[[], dict[str, Tensor]], ...] = (attention_outputs, ladder_outputs)
    expected = [lesson() for lesson in lessons]
    barrier = threading.Barrier(2, timeout=BARRIER_SECONDS)

    def wrong_results(index: int) -> list[str]:
        wrong = []
        for _ in range(60):
            barrier.wait()
            result = lessons[index]()
            wrong += [k for k in result if not torch.equal(result[k], expected[index][k])]
        return wrong

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(wrong_results, range(2))) == [[], []]
