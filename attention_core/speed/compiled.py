"""A decode step as machine code that torch makes for it and for the CPU at hand.

Outside of its products a decode step is some three hundred small operations, each asked for by
Python and each writing a tensor that the next one reads. torch.compile writes them as a few loops
of C++, and puts every matrix into the order in which its own product reads it. What is left is
mostly the time to read the weights (`benchmarks.decode`). Source: Ansel et al. 2024, "PyTorch 2",
https://pytorch.org/assets/pytorch2-2.pdf.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path

import torch

from attention_core.speed import products

_OPTIONS = {
    "freezing": True,  # the weights are constants, of which each product may have its own copy
    "max_autotune": True,  # products of C++ written for the shape of each matrix ...
    "max_autotune_gemm_backends": "CPP",  # ... and no trial of others, which takes longer
    "cpp_wrapper": True,  # what calls the loops is C++ as well
}
_SEVERAL_ROWS = _OPTIONS | {
    "max_autotune": not products.PLAIN_IS_FASTEST,
    "max_autotune_gemm_backends": "CPP,ATEN",
}


class NoCompilerError(ValueError):
    """torch.compile has no C++ compiler here, or no headers of Python; the message says which."""


def check_compiler(device: torch.device) -> None:
    """Raise ValueError unless a step on this device can be compiled here.

    It is a NoCompilerError where only the tools are missing.
    """
    if device.type != "cpu":
        raise ValueError(f"a step is compiled on a CPU, not on {device.type}")

    # imported here: the compiler of torch takes a second and most callers never compile
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler as error:
        raise NoCompilerError(
            "a step is compiled by a C++ compiler, and there is none: install g++, or set CXX"
        ) from error
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        raise NoCompilerError(
            f"a step is compiled with the headers of Python, and {headers} has no Python.h: "
            "install python3-dev"
        )


def compiled(step: Callable[[], None], *, one_row: bool) -> Callable[[], None]:
    """Compile `step`, which runs once for that: a function that does the same.

    one_row: whether it runs one token. For more, torch has products of its own, which are tried too
    and on a CPU by Intel are the fastest: there nothing is tried, which halves the time this takes.

    It takes from some seconds to two minutes, and memory for the weights once more, as the compiled
    products have copies. What `step` reads or writes beside the weights may change in its numbers,
    in nothing else. Compile and call it in inference mode.
    """
    import torch._inductor.config as inductor

    # Each step has a compiled form of its own, so that any number of decoders may have theirs.
    # Nothing that it was compiled for ever changes: to look at each call took a thirtieth of it.
    # (torch's overloads, which mypy reads, forget `isolate_recompiles`.)
    quick: Callable[[], None] = torch.compile(  # type: ignore[call-overload]
        step,
        fullgraph=True,
        dynamic=False,
        isolate_recompiles=True,
        options={"guard_filter_fn": torch.compiler.skip_all_guards_unsafe},
    )
    # not as options of torch.compile, which are too late for weights to become constants
    with inductor.patch(_OPTIONS if one_row else _SEVERAL_ROWS):
        quick()
    return quick
