"""A transformer whose matrices are stored in 8 bits ("weight-only" quantisation).

The time of a decode step is the time to read the weights. A matrix is stored as whole numbers from
-127 to 127 and one scale for each of its outputs, so that a quarter of the bytes is read.

The weights are rounded once. Activations are rounded too in a pass of few rows, such as a decode
step: on a CPU, up to 16 rows and the product of each are rounded to bfloat16, which has 8 bits of
mantissa. More rows, and all rows on other devices, stay in float32. The same token therefore has
slightly different logits in a step and in a pass over a long text.

Source: Dettmers et al. 2022, "LLM.int8()", section 2, https://arxiv.org/abs/2208.07339 (row-wise
scales; without its outlier columns).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attention_core.model.layers import Projection
from attention_core.model.transformer import Transformer

LARGEST_CODE = 127
_FEW_ROWS = 16  # with more, reading the codes is no longer what takes the time
_KERNEL_STEP = 16  # the kernel reads so many inputs at once and, where a row has others, beyond it


class Int8Matrix(nn.Module):
    """A matrix (d_in, d_out) as codes (d_out, d_in) of 8 bits, and scales (d_out).

    `matrix` is what the codes stand for: codes * scales.
    Raises: ValueError for a matrix that is no floating-point one of two dimensions.
    """

    codes: Tensor
    scales: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        if weight.dim() != 2 or not weight.is_floating_point():
            raise ValueError(
                f"a matrix (d_in, d_out) of floating-point numbers is quantised, "
                f"not {tuple(weight.shape)} of {weight.dtype}"
            )
        rows = weight.detach().float().t()  # (d_out, d_in)
        scales = rows.abs().amax(dim=1) / LARGEST_CODE
        divisors = torch.where(scales > 0, scales, torch.ones_like(scales))  # of rows of zeros
        # the scale of a row below 1e-36 is rounded itself, and a larger code would change its sign
        codes = (rows / divisors[:, None]).round().clamp(-LARGEST_CODE, LARGEST_CODE)
        codes = codes.to(torch.int8)
        self.register_buffer("codes", codes.contiguous())  # the kernel reads row after row
        self.register_buffer("scales", scales)

    @property
    def matrix(self) -> Tensor:
        """The matrix again, rounded: (d_in, d_out) in float32."""
        return (self.codes * self.scales[:, None]).t()

    def columns(self, numbers: Tensor) -> Tensor:
        """Some columns of the matrix as rows: (...) -> (..., d_in)."""
        return self.codes[numbers] * self.scales[numbers, None]

    def forward(self, x: Tensor) -> Tensor:
        """`x @ matrix`: (..., d_in) -> (..., d_out) in float32.

        On a CPU, up to 16 rows of x are rounded to bfloat16 if d_in is a multiple of 16.
        """
        rows = x.reshape(-1, x.shape[-1])
        if len(rows) > _FEW_ROWS or rows.shape[1] % _KERNEL_STEP or x.device.type != "cpu":
            y = nn.functional.linear(rows.float(), self.codes.float()) * self.scales
        else:
            # the kernel wants scales of the activations' type: ours, in float32, come behind it
            ones = torch.ones_like(self.scales, dtype=torch.bfloat16)
            y = torch._weight_int8pack_mm(rows.bfloat16(), self.codes, ones).float() * self.scales
        return y.view(*x.shape[:-1], -1)


class Int8Projection(Int8Matrix):
    """A linear layer with its matrix in 8 bits; its bias stays as it was."""

    def __init__(self, projection: Projection) -> None:
        super().__init__(projection.matrix)
        self.bias = projection.bias

    @property
    def weight(self) -> Tensor:
        """The matrix as `nn.Linear` has it: (d_out, d_in)."""
        return self.matrix.t()

    def forward(self, x: Tensor) -> Tensor:
        """Project the last dimension."""
        y = super().forward(x)
        return y if self.bias is None else y + self.bias


class Int8Transformer(Transformer):
    """A `Transformer` for generating and scoring, with all its matrices in 8 bits.

    Norms, biases and position vectors stay in float32 and are shared with `model`. The tied matrix
    is stored once, as its outputs need it. A pass of few rows rounds its activations to bfloat16
    (see the top of this file).
    Raises: ValueError for a model that is not in float32 or is in 8 bits already, and for latent
    attention, whose matrices are taken apart and multiplied.
    """

    def __init__(self, model: Transformer) -> None:
        if isinstance(model, Int8Transformer):
            raise ValueError("the matrices of this model are in 8 bits already: pass the original")
        dtypes = {str(parameter.dtype) for parameter in model.parameters()}
        if dtypes != {"torch.float32"}:
            raise ValueError(
                f"only a model in torch.float32 can be quantized, got {', '.join(sorted(dtypes))}: "
                "convert it with .float() first"
            )
        if model.config.latent is not None:
            raise ValueError("latent attention is not quantised here")
        with torch.device("meta"):  # every weight is replaced below
            super().__init__(model.config)
        self.load_state_dict(model.state_dict(), assign=True)
        table = self.unembedding
        self.output_matrix = None if table is None else Int8Matrix(table)
        self.unembedding = None
        for parent in list(self.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, Projection):
                    setattr(parent, name, Int8Projection(child))
        self.requires_grad_(False).eval()

    @property
    def n_bytes(self) -> int:
        """Bytes of everything that is stored."""
        stored = [*self.parameters(), *self.buffers()]
        return sum(tensor.numel() * tensor.element_size() for tensor in stored)

    def token_vectors(self, token_ids: Tensor) -> Tensor:
        """Rows of the token table: (...) -> (..., C)."""
        if self.embedding is None and self.output_matrix is not None:
            return self.output_matrix.columns(token_ids)
        return super().token_vectors(token_ids)

    def logits(self, hidden: Tensor) -> Tensor | None:
        """(B, T, C) -> (B, T, V)."""
        return None if self.output_matrix is None else self.output_matrix(hidden)
