"""Compile a decode step for this CPU with torch.compile.

Besides its matrix products, a decode step consists of about three hundred small operations, each
called from Python and each writing a tensor that the next one reads. torch.compile fuses them into
a few C++ loops, and stores every matrix in the layout that its product reads fastest. What remains
is mostly the time to read the weights (`benchmarks.decode`).

Source: Ansel et al. 2024, "PyTorch 2", https://pytorch.org/assets/pytorch2-2.pdf.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from pathlib import Path

import torch

from attention_core.speed import products

_OPTIONS = {
    "freezing": True,  # weights are constants, so each product can have its own copy
    "max_autotune": True,  # C++ products for the shape of each matrix ...
    "max_autotune_gemm_backends": "CPP",  # ... without trying other backends, which takes longer
    "cpp_wrapper": True,  # the wrapper around the loops is C++ too
}
_SEVERAL_ROWS = _OPTIONS | {
    "max_autotune": not products.PLAIN_IS_FASTEST,
    "max_autotune_gemm_backends": "CPP,ATEN",
}


class NoCompilerError(ValueError):
    """torch.compile can't find a C++ compiler or Python's headers.

    The message says which one is missing.
    """


def check_compiler(device: torch.device) -> None:
    """Raise ValueError unless a step on this device can be compiled here.

    If only the tools are missing, it's a NoCompilerError.
    """
    if device.type != "cpu":
        raise ValueError(f"steps can only be compiled on a CPU, not on {device.type}")

    # imported here because it takes a second, and most callers never compile
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler as error:
        raise NoCompilerError(
            "compiling a step needs a C++ compiler: install g++, or set CXX"
        ) from error
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        raise NoCompilerError(
            f"compiling a step needs Python's headers, but {headers} has no Python.h: "
            "install python3-dev"
        )


def compile_once(step: Callable[[], None], *, one_row: bool) -> Callable[[], None]:
    """Compile `step`, running it once for that, and return the fast version.

    Compiling takes from a few seconds to two minutes. It also needs additional memory of the size
    of the weights, because the compiled products use copies. Tensors that `step` reads or writes,
    other than the weights, may change in value but not in shape or address. Compile and call in
    inference mode.

    one_row: whether the step runs one token. For more rows, PyTorch's own products are tried too,
    except on Intel CPUs, where they're always fastest; skipping the trial halves the compile time.
    """
    import torch._inductor.config as inductor

    # Each step is compiled separately, so any number of decoders can be compiled. Guards are
    # skipped: nothing they check ever changes, and they took a thirtieth of each call. (PyTorch's
    # overloads, which mypy reads, lack `isolate_recompiles`.)
    quick: Callable[[], None] = torch.compile(  # type: ignore[call-overload]
        step,
        fullgraph=True,
        dynamic=False,
        isolate_recompiles=True,
        options={"guard_filter_fn": torch.compiler.skip_all_guards_unsafe},
    )
    # passed as options of torch.compile, these come too late to make the weights constants
    with inductor.patch(_OPTIONS if one_row else _SEVERAL_ROWS):
        quick()
    return quick
