"""Linear layers that use the fastest CPU kernel for the number of rows.

PyTorch's default product is Intel's MKL library. On Intel CPUs, nothing we measured is faster. On
other CPUs it leaves half of the memory bandwidth unused with few rows, and more than half of the
arithmetic with AVX-512. `benchmarks.one_row` measures every kernel.
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from attention_core.model.layers import Projection

_PARTS = 4  # number of parts of the sum over rows, which threads add up in parallel
_STEP_ROWS = 12  # up to this many rows of a decode step, oneDNN is faster on any CPU
_LEAST_ROWS = 8  # oneDNN gets at least this many rows, except for a single row
_LARGE_MATRIX = (
    2_000_000  # from this matrix size on, oneDNN is faster for one row too, without AVX-512
)
# Without AVX-512, oneDNN may be slower than MKL for the rows of a prompt.
_HAS_AVX512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
_HAS_ONEDNN = torch.backends.mkldnn.is_available()


def is_intel(description: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this machine has an Intel CPU, according to Linux or else Python."""
    try:
        return "GenuineIntel" in description.read_text()
    except OSError:  # not Linux
        return "GenuineIntel" in platform.processor()


PLAIN_IS_FASTEST = torch.backends.mkl.is_available() and is_intel()


def use_fast_products(model: nn.Module) -> nn.Module:
    """Replace every linear layer on the CPU by a `FastLinear`, in place.

    Returns the model. On Intel CPUs nothing is replaced, because no kernel we measured beats MKL.
    """
    if not PLAIN_IS_FASTEST:
        for parent in list(model.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, Projection) and child.weight.device.type == "cpu":
                    setattr(parent, name, FastLinear(child))
    return model


class FastLinear(Projection):
    """A linear layer whose weight memory has the layout (d_in, d_out).

    Multiplying one row then reads the memory from beginning to end.
    """

    def __init__(self, layer: nn.Linear) -> None:
        with torch.device("meta"):  # no memory for weights that get replaced
            super().__init__(layer.in_features, layer.out_features, layer.bias is not None)
        weight = layer.weight.detach().t().contiguous().t()
        self.weight = nn.Parameter(weight, requires_grad=layer.weight.requires_grad)
        self.bias = layer.bias
        self.train(layer.training)

    def forward(self, x: Tensor) -> Tensor:
        """Project the last dimension: (..., d_in) -> (..., d_out)."""
        if x.device.type == "cpu" and x.dtype == torch.float32:
            return linear(x, self.matrix, self.bias)
        return super().forward(x)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x @ weight + bias` in float32 on the CPU: (..., d_in) -> (..., d_out).

    Shapes: weight (d_in, d_out), bias (d_out). A decode step has one row, or one per prompt of a
    batch, and takes as long as reading the weights. oneDNN reads them directly, while MKL copies
    them first. It's also used for the rows of a prompt if that's faster.
    """
    d_in, d_out = weight.shape
    n_rows = x.numel() // d_in
    # a compiler chooses its own kernels
    if PLAIN_IS_FASTEST or torch.is_grad_enabled() or torch.compiler.is_compiling():
        return nn.functional.linear(x, weight.t(), bias)
    if n_rows == 1 and (_HAS_AVX512 or not _HAS_ONEDNN or weight.numel() < _LARGE_MATRIX):
        return _matvec(x.reshape(-1), weight, bias).view(*x.shape[:-1], d_out)
    is_step = n_rows == 1 or (n_rows <= _STEP_ROWS and x.shape[-2] == 1)
    if _HAS_ONEDNN and (is_step or _HAS_AVX512):
        return _onednn_matmul(x.reshape(-1, d_in), weight, bias).view(*x.shape[:-1], d_out)
    return nn.functional.linear(x, weight.t(), bias)


def _matvec(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The product with one row x (d_in,), as a weighted sum of the matrix rows.

    PyTorch calls that an embedding bag. It reads the rows sequentially, faster than any product we
    measured.
    """
    rows, begins, ones = _bag_offsets(len(weight))
    sums = torch.embedding_bag(weight, rows, begins, per_sample_weights=x)[0]  # (_PARTS, d_out)
    return ones @ sums if bias is None else torch.addmv(bias, sums.t(), ones)


@cache
def _bag_offsets(d_in: int) -> tuple[Tensor, Tensor, Tensor]:
    """Row indices, the start of each part, and a vector of ones, one per part."""
    begins = torch.arange(0, d_in, -(-d_in // _PARTS), device="cpu")
    return torch.arange(d_in, device="cpu"), begins, torch.ones(len(begins), device="cpu")


def _onednn_matmul(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The product of rows (N, d_in), padded with zero rows up to `padded_rows`."""
    n_rows = len(rows)
    filled = nn.functional.pad(rows, (0, 0, 0, padded_rows(n_rows) - n_rows))
    return torch.ops.mkldnn._linear_pointwise(filled, weight.t(), bias, "none", [], "")[:n_rows]


def padded_rows(n_rows: int) -> int:
    """The number of rows to pass to oneDNN: 1, or at least 8 with limited padding.

    oneDNN compiles and caches a kernel of half a megabyte for each number of rows and each weight
    shape. To limit that, there are at most two row counts between a power of two and the next. From
    17 rows on, the padding is less than half of them.
    """
    if n_rows == 1:
        return 1
    unit = max(_LEAST_ROWS, 2 ** n_rows.bit_length() // 4)
    return n_rows + -n_rows % unit
