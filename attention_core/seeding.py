"""Reproducible random numbers, even while other threads draw their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attention_core.checks import require_int


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the CPU random numbers of this thread inside a `with` block.

    They're the same as after `torch.manual_seed(seed)`. PyTorch has one global generator for all
    threads, and constructors such as `nn.Linear` draw from it. Here this thread gets its own
    generator, and the global one is neither read nor changed, so other threads can't interfere.
    When an inner block ends, the outer one's stream continues where it stopped.
    Raises: ValueError if `seed` is negative or needs more than 63 bits.
    """
    require_int("a seed", seed, least=0, most=2**63 - 1)
    with _OwnGenerator(torch.Generator().manual_seed(seed)):
        yield


class _OwnGenerator(TorchDispatchMode):
    """Passes one generator to every random operator of the thread that entered it."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and importing the compiler would take a second

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        random = _with_generator(func)
        if random is None or kwargs.get("generator") is not None or not _on_cpu(args, kwargs):
            return func(*args, **kwargs)
        return random(*args, **{**kwargs, "generator": self.generator})


def _with_generator(func: Any) -> Any:
    """The overload of an operator that takes a generator, or None if it isn't random.

    `uniform_` takes one directly. `rand` ("default") has `rand.generator` instead, and
    `randint.low` has `randint.low_generator`.
    """
    if any(argument.name == "generator" for argument in func._schema.arguments):
        return func
    prefix = "" if func._overloadname == "default" else f"{func._overloadname}_"
    return getattr(func.overloadpacket, f"{prefix}generator", None)


def _on_cpu(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    tensors = (argument.device for argument in args if isinstance(argument, Tensor))
    device = kwargs.get("device") or next(tensors, None)
    return device is None or torch.device(device).type == "cpu"
