"""A transformer with 8-bit matrices (weight-only quantization).

A decode step takes as long as reading the weights. Here, a matrix is stored as integers from -127
to 127 with one scale per output, so only a quarter of the bytes are read.

Weights are rounded once. In passes with few rows, such as decode steps, activations are rounded
too: on a CPU, up to 16 rows and the product of each are rounded to bfloat16, which has 8 bits of
mantissa. With more rows, and on other devices, they stay in float32. So a token's logits differ
slightly between a step and a pass over a long text.

Source: Dettmers et al. 2022, "LLM.int8()", section 2, https://arxiv.org/abs/2208.07339 (row-wise
scales, without its outlier columns).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attention_core.model.layers import Projection
from attention_core.model.transformer import Transformer

LARGEST_CODE = 127
_FEW_ROWS = 16  # with more rows, reading the codes is no longer the bottleneck
_KERNEL_STEP = 16  # the kernel reads inputs in blocks of this size, even past the end of a row


class Int8Matrix(nn.Module):
    """A matrix (d_in, d_out) as 8-bit codes (d_out, d_in) and scales (d_out).

    `matrix` is codes * scales.
    Raises: ValueError unless `weight` is a two-dimensional floating-point tensor.
    """

    codes: Tensor
    scales: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        if weight.dim() != 2 or not weight.is_floating_point():
            raise ValueError(
                f"only a floating-point matrix (d_in, d_out) can be quantized, "
                f"got {tuple(weight.shape)} of {weight.dtype}"
            )
        rows = weight.detach().float().t()  # (d_out, d_in)
        scales = rows.abs().amax(dim=1) / LARGEST_CODE
        divisors = torch.where(scales > 0, scales, torch.ones_like(scales))  # avoids 0/0
        # scales below 1e-36 are rounded themselves, and a code above 127 would change its sign
        codes = (rows / divisors[:, None]).round().clamp(-LARGEST_CODE, LARGEST_CODE)
        codes = codes.to(torch.int8)
        self.register_buffer("codes", codes.contiguous())  # the kernel reads row by row
        self.register_buffer("scales", scales)

    @property
    def matrix(self) -> Tensor:
        """The rounded matrix: (d_in, d_out) in float32."""
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
            # the kernel requires bfloat16 scales; ours are float32 and applied afterwards
            ones = torch.ones_like(self.scales, dtype=torch.bfloat16)
            y = torch._weight_int8pack_mm(rows.bfloat16(), self.codes, ones).float() * self.scales
        return y.view(*x.shape[:-1], -1)


class Int8Projection(Int8Matrix):
    """A linear layer with an 8-bit matrix; the bias isn't rounded."""

    def __init__(self, projection: Projection) -> None:
        super().__init__(projection.matrix)
        self.bias = projection.bias

    @property
    def weight(self) -> Tensor:
        """The matrix in the layout of `nn.Linear`: (d_out, d_in)."""
        return self.matrix.t()

    def forward(self, x: Tensor) -> Tensor:
        """Project the last dimension: (..., d_in) -> (..., d_out)."""
        y = super().forward(x)
        return y if self.bias is None else y + self.bias


class Int8Transformer(Transformer):
    """A `Transformer` for generation and scoring with 8-bit matrices.

    Norms, biases and position vectors stay in float32 and are shared with `model`. A tied matrix is
    stored once. Passes with few rows round their activations to bfloat16 (see the module's
    docstring).
    Raises: ValueError if the model isn't in float32, is already in 8 bits, or has latent attention,
    whose matrices are split and multiplied.
    """

    def __init__(self, model: Transformer) -> None:
        if isinstance(model, Int8Transformer):
            raise ValueError("this model is already in 8 bits: pass the original model")
        dtypes = {str(parameter.dtype) for parameter in model.parameters()}
        if dtypes != {"torch.float32"}:
            raise ValueError(
                f"only a model in torch.float32 can be quantized, got {', '.join(sorted(dtypes))}: "
                "convert it with .float() first"
            )
        if model.config.latent is not None:
            raise ValueError("latent attention can't be quantized")
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
        """Bytes of all stored tensors."""
        stored = [*self.parameters(), *self.buffers()]
        return sum(tensor.numel() * tensor.element_size() for tensor in stored)

    def token_vectors(self, token_ids: Tensor) -> Tensor:
        """Rows of the token embedding: (...) -> (..., C)."""
        if self.embedding is None and self.output_matrix is not None:
            return self.output_matrix.columns(token_ids)
        return super().token_vectors(token_ids)

    def logits(self, hidden: Tensor) -> Tensor | None:
        """Apply the output matrix: (B, T, C) -> (B, T, V)."""
        return None if self.output_matrix is None else self.output_matrix(hidden)
