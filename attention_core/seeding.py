"""Draws that can be repeated, although torch has one global generator for all threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_one_at_a_time = threading.RLock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Everything drawn on the CPU inside comes from this seed, as after `torch.manual_seed(seed)`.

    The global generator is put back afterwards. One thread is inside at a time: draws of several
    threads that come through here cannot disturb each other. Nested in itself, the outer stream
    goes on where it was once the inner one ends.
    Raises: ValueError if `seed` is negative or does not fit 63 bits.
    """
    if not 0 <= seed < 2**63:
        raise ValueError(f"a seed must be at least 0 and below 2**63, got {seed}")
    with _one_at_a_time, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
