"""Products with a weight matrix, by whatever is fastest on a CPU for so many rows.

The plain product of torch leaves much of a CPU unused: half of its memory bandwidth with one row,
and more than half of its arithmetic where it has AVX-512. `benchmarks.one_row` measures every way.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_PARTS = 4  # parts of the sum of a row, so that each thread has some
_STEP_ROWS = 12  # the most rows of a decode step that oneDNN multiplies faster on any CPU
_LEAST_ROWS = 8  # the fewest that it is given
# Without these instructions it may take longer than the plain product for the rows of a prompt.
_WIDE = torch.backends.cpu.get_cpu_capability() == "AVX512"


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x @ weight + bias` in float32 on the CPU: (..., d_in) and (d_in, d_out) -> (..., d_out).

    A decode step has one row, or one for each prompt of a batch, and its time is the time to read
    the weights. Up to three rows are summed in parts, and more are multiplied by oneDNN, which does
    not copy the weights first as the plain product does. Prompts are too where that pays.
    """
    d_in, d_out = weight.shape
    n_rows = x.numel() // d_in
    is_step = n_rows <= _STEP_ROWS and (x.dim() == 1 or x.shape[-2] == 1)
    if is_step and n_rows <= 3 and d_in % _PARTS == 0:
        return _in_parts(x, weight, bias)
    if (is_step or _WIDE) and torch.backends.mkldnn.is_available() and not torch.is_grad_enabled():
        return _by_onednn(x.reshape(-1, d_in), weight, bias).view(*x.shape[:-1], d_out)
    return nn.functional.linear(x, weight.t(), bias)


def _in_parts(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    d_in, d_out = weight.shape
    parts = x.reshape(-1, _PARTS, d_in // _PARTS).transpose(0, 1)  # (_PARTS, rows, d_in / _PARTS)
    sums = torch.bmm(parts, weight.view(_PARTS, -1, d_out))  # (_PARTS, rows, d_out)
    y = sums.sum(dim=0).view(*x.shape[:-1], d_out)
    return y if bias is None else y + bias


def _by_onednn(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The product of rows (N, d_in).

    Rows of zeros fill them up to `rows_given`; what becomes of those is left out.
    """
    n_rows = len(rows)
    filled = nn.functional.pad(rows, (0, 0, 0, rows_given(n_rows) - n_rows))
    return torch.ops.mkldnn._linear_pointwise(filled, weight.t(), bias, "none", [], "")[:n_rows]


def rows_given(n_rows: int) -> int:
    """How many rows oneDNN is given for so many: at least 8, from 17 on less than half too many.

    For each number of rows and each shape of weights that it meets it makes a program and keeps it:
    half a megabyte. So it meets no more than two numbers between a power of two and the next.
    """
    unit = max(_LEAST_ROWS, 2 ** n_rows.bit_length() // 4)
    return n_rows + -n_rows % unit
