"""Torch's global random stream, borrowed for a moment: set, used, and put back as it was.

`nn.Linear` and `nn.functional.dropout` draw from the global stream only, and the lectures' numbers
come out of it. It belongs to the whole process, so one thread at a time may set it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# reentrant: what is built with one seed may itself build something with another
_stream = threading.RLock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, the CPU's global stream starts at `seed`; afterwards it goes on where it was.

    Raises: ValueError if `seed` is negative or does not fit 63 bits.
    """
    if not 0 <= seed < 2**63:
        raise ValueError(f"a seed must be at least 0 and below 2**63, got {seed}")
    with _stream, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
