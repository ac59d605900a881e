"""Draws that can be repeated, whatever other threads draw at the same time."""

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
    """Everything this thread draws on the CPU inside is as after `torch.manual_seed(seed)`.

    torch has one global generator for all threads, and constructors such as that of `nn.Linear`
    draw from it. Inside, every draw of this thread is handed a generator of its own; the global one
    is neither read nor changed, so no other thread can disturb the numbers. Nested in itself, the
    outer stream goes on where it was once the inner one ends.
    Raises: ValueError if `seed` is negative or does not fit 63 bits.
    """
    require_int("a seed", seed, least=0, most=2**63 - 1)
    with _OwnGenerator(torch.Generator().manual_seed(seed)):
        yield


class _OwnGenerator(TorchDispatchMode):
    """Hands one generator to every random operator of the thread that entered it."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and the mark would import the compiler: a second

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
    """The form of an operator that takes a generator; None for one that draws nothing.

    `uniform_` takes one itself; beside `rand` ("default") there is `rand.generator`, and beside
    `randint.low` there is `randint.low_generator`.
    """
    if any(argument.name == "generator" for argument in func._schema.arguments):
        return func
    prefix = "" if func._overloadname == "default" else f"{func._overloadname}_"
    return getattr(func.overloadpacket, f"{prefix}generator", None)


def _on_cpu(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    tensors = (argument.device for argument in args if isinstance(argument, Tensor))
    device = kwargs.get("device") or next(tensors, None)
    return device is None or torch.device(device).type == "cpu"
