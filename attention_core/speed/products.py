"""Linear layers that multiply by whatever is fastest on a CPU for the number of rows.

The plain product of torch is Intel's library MKL. On a CPU by Intel nothing that was measured is
faster. On others it leaves much unused: half of the memory bandwidth with few rows, and more than
half of the arithmetic where there is AVX-512. `benchmarks.one_row` measures every way.
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from attention_core.model.layers import Projection

_PARTS = 4  # the sum over the rows is cut into so many parts, which as many threads can add up
_STEP_ROWS = 12  # the most rows of a decode step that oneDNN multiplies faster on any CPU
_LEAST_ROWS = 8  # the fewest that it is given, but for one row alone
_LARGE = 2_000_000  # so many numbers in a matrix and it multiplies one row faster too, if not _WIDE
# Without these instructions it may take longer than the plain product for the rows of a prompt.
_WIDE = torch.backends.cpu.get_cpu_capability() == "AVX512"
_HAS_ONEDNN = torch.backends.mkldnn.is_available()


def is_by_intel(description: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this machine's CPU is one by Intel, as Linux or else Python tells it."""
    try:
        return "GenuineIntel" in description.read_text()
    except OSError:  # a system without this file
        return "GenuineIntel" in platform.processor()


PLAIN_IS_FASTEST = torch.backends.mkl.is_available() and is_by_intel()


def use_fast_products(model: nn.Module) -> nn.Module:
    """Swap every linear layer on the CPU for a `FastLinear`, in place, and return the model.

    On an Intel CPU nothing is swapped: no product we measured there beats the plain one.
    """
    if not PLAIN_IS_FASTEST:
        for parent in list(model.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, Projection) and child.weight.device.type == "cpu":
                    setattr(parent, name, FastLinear(child))
    return model


class FastLinear(Projection):
    """A linear layer with the same weight and bias, its memory in the order of (d_in, d_out).

    One row is then multiplied by reading the memory from its beginning to its end.
    """

    def __init__(self, layer: nn.Linear) -> None:
        with torch.device("meta"):  # no memory for weights that are replaced
            super().__init__(layer.in_features, layer.out_features, layer.bias is not None)
        weight = layer.weight.detach().t().contiguous().t()
        self.weight = nn.Parameter(weight, requires_grad=layer.weight.requires_grad)
        self.bias = layer.bias
        self.train(layer.training)

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_in) -> (..., d_out)."""
        if x.device.type == "cpu" and x.dtype == torch.float32:
            return linear(x, self.matrix, self.bias)
        return super().forward(x)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x @ weight + bias` in float32 on the CPU: (..., d_in) and (d_in, d_out) -> (..., d_out).

    A decode step has one row, or one for each prompt of a batch, and its time is the time to read
    the weights. oneDNN does not copy them first as the plain product does. It multiplies the rows
    of prompts too where that pays.
    """
    d_in, d_out = weight.shape
    n_rows = x.numel() // d_in
    # a compiler has its own ways
    if PLAIN_IS_FASTEST or torch.is_grad_enabled() or torch.compiler.is_compiling():
        return nn.functional.linear(x, weight.t(), bias)
    if n_rows == 1 and (_WIDE or not _HAS_ONEDNN or weight.numel() < _LARGE):
        return _of_one_row(x.reshape(-1), weight, bias).view(*x.shape[:-1], d_out)
    is_step = n_rows == 1 or (n_rows <= _STEP_ROWS and x.shape[-2] == 1)
    if _HAS_ONEDNN and (is_step or _WIDE):
        return _by_onednn(x.reshape(-1, d_in), weight, bias).view(*x.shape[:-1], d_out)
    return nn.functional.linear(x, weight.t(), bias)


def _of_one_row(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The sum of the rows of the matrix, each times a number of x (d_in,): an embedding bag.

    That is what torch calls such a sum. It reads the rows one behind the other, which no product
    that was measured does as fast.
    """
    rows, begins, ones = _bags(len(weight))
    sums = torch.embedding_bag(weight, rows, begins, per_sample_weights=x)[0]  # (_PARTS, d_out)
    return ones @ sums if bias is None else torch.addmv(bias, sums.t(), ones)


@cache
def _bags(d_in: int) -> tuple[Tensor, Tensor, Tensor]:
    """The numbers of all rows of a matrix, at which of them each part begins, a 1 for each part."""
    begins = torch.arange(0, d_in, -(-d_in // _PARTS), device="cpu")
    return torch.arange(d_in, device="cpu"), begins, torch.ones(len(begins), device="cpu")


def _by_onednn(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The product of rows (N, d_in).

    Rows of zeros fill them up to `rows_given`; what becomes of those is left out.
    """
    n_rows = len(rows)
    filled = nn.functional.pad(rows, (0, 0, 0, rows_given(n_rows) - n_rows))
    return torch.ops.mkldnn._linear_pointwise(filled, weight.t(), bias, "none", [], "")[:n_rows]


def rows_given(n_rows: int) -> int:
    """How many rows oneDNN is given for so many: 1, or at least 8; from 17 on not half too many.

    For each number of rows and each shape of weights that it meets it makes a program and keeps it:
    half a megabyte. So it meets no more than two numbers between a power of two and the next.
    """
    if n_rows == 1:
        return 1
    unit = max(_LEAST_ROWS, 2 ** n_rows.bit_length() // 4)
    return n_rows + -n_rows % unit
