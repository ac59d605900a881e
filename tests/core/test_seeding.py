"""Seeded draws don't depend on what other threads draw."""

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

BARRIER_SECONDS = 60  # timeout for a test that hangs


def everything() -> list[Tensor]:
    """One draw of each kind that the code uses, and some others."""
    with torch.no_grad():
        draws = [
            torch.rand(3, 4), torch.randn(5, 6), torch.randperm(11), torch.randint(3, 9, (7,)),
            torch.randint(9, (7,)), torch.empty(40).normal_(std=0.02), torch.empty(40).uniform_(),
            torch.empty(9).bernoulli_(0.3), nn.functional.dropout(torch.ones(7, 9), 0.5),
            torch.rand_like(torch.ones(3)), torch.multinomial(torch.ones(9), 4),
        ]  # fmt: skip
        modules = (nn.Linear(5, 7), nn.MultiheadAttention(6, 2), nn.GRU(3, 4), nn.Embedding(5, 3))
    return draws + [p.detach() for module in modules for p in module.parameters()]


def test_draws_are_those_after_manual_seed():
    torch.manual_seed(7)
    expected = everything()
    with seeded(7):
        drawn = everything()
    assert all(torch.equal(a, b) for a, b in zip(drawn, expected, strict=True))


def test_the_global_stream_is_neither_read_nor_moved():
    before = torch.get_rng_state()
    with seeded(7):
        everything()
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, True, "3"])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(ValueError, match="a seed must be"), seeded(seed):
        pass


def test_another_thread_in_between_changes_no_draw():
    with seeded(3):
        expected = torch.rand(2), torch.rand(2)
    barrier = threading.Barrier(2, timeout=BARRIER_SECONDS)

    def disturb() -> None:
        barrier.wait()  # the other thread made its first draw
        torch.manual_seed(9)
        nn.Linear(4, 5)
        barrier.wait()

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(disturb)
        with seeded(3):
            first = torch.rand(2)
            barrier.wait()
            barrier.wait()  # the other thread seeded the global generator and drew from it
            second = torch.rand(2)
        other.result()
    assert torch.equal(first, expected[0])
    assert torch.equal(second, expected[1])


def against() -> dict[str, Tensor]:
    """The results on the page Against PyTorch: weights and outputs of all six ways."""
    ours = against_pytorch.make_attention(24, 4, 7, causal=True, qkv_bias=True, seed=5)
    x = against_pytorch.random_input(1, 7, 24, seed=5)
    weights = {name: p.detach() for name, p in ours.named_parameters()}
    return {**weights, **against_pytorch.compare(ours, x).outputs}


def ladder() -> dict[str, Tensor]:
    """The results of three rungs on the page Ladder: their matrices and outputs."""
    x = against_pytorch.random_input(1, 6, 3, seed=1)[0]
    rungs = [run_rung(name, x, RungSettings(d_out=4, seed=11)) for name in (V1, WRAPPER, SPLITS)]
    shown = {f"{r.name}.{name}": p for r in rungs for name, p in r.matrices.items()}
    return {**shown, **{rung.name: rung.output for rung in rungs}}


@pytest.fixture
def hasty_switches() -> Iterator[None]:
    """Make threads switch a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 1000)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_switches")
def test_two_lessons_at_once_show_what_each_shows_alone():
    lessons: tuple[Callable[[], dict[str, Tensor]], ...] = (against, ladder)
    alone = [lesson() for lesson in lessons]
    barrier = threading.Barrier(2, timeout=BARRIER_SECONDS)

    def wrong_builds(number: int) -> list[str]:
        wrong = []
        for _ in range(60):
            barrier.wait()
            shown = lessons[number]()
            wrong += [k for k in shown if not torch.equal(shown[k], alone[number][k])]
        return wrong

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(wrong_builds, range(2))) == [[], []]
