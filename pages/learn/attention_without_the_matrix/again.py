"""Tensors that are kept, weights recomputed from them, and tiled gradients."""

from __future__ import annotations

import pandas as pd

from pages.learn.attention_without_the_matrix.walked import TileWalk
from ui.text.isolated import isolated
from ui.text.number_text import counted, written


def kept_tensors(walked: TileWalk) -> pd.DataFrame:
    """Shapes of the tensors that both methods keep in addition to q, k and v."""
    record, rows = walked.record, walked.rows
    named = {
        "output": (record.context, rows.output),
        "weights": (record.weights, None),
        "m": (None, rows.m),
        "l": (None, rows.l),
    }
    return pd.DataFrame(
        [
            {
                "tensor": name,
                "whole matrix": "" if whole is None else _shape(whole),
                "tiles": "" if tiled is None else _shape(tiled),
            }
            for name, (whole, tiled) in named.items()
        ]
    )


def _shape(tensor: object) -> str:
    from torch import Tensor

    assert isinstance(tensor, Tensor)
    sizes = " × ".join(map(str, tensor.shape))
    numbers = counted(tensor.numel(), "number")
    return numbers if tensor.dim() == 1 else f"{sizes} = {numbers}"


def row_again(walked: TileWalk, query: int) -> tuple[pd.DataFrame, str]:
    """Recompute the weights of a query and compare them with the model's own."""
    from pages.learn.attention_without_the_matrix.experiment.backward import weights_again

    record = walked.record
    q, k = record.q.float().cpu(), record.k.float().cpu()
    one = slice(query, query + 1)
    mask = None if walked.mask is None else walked.mask[one]
    weights = weights_again(q[one], k, walked.rows.of(one), record.scale, mask)[0]
    recorded = record.weights[query].float().cpu()
    table = pd.DataFrame(
        {
            "key": walked.labels,
            "score": record.scaled_scores[query].float().cpu().tolist(),
            "exp(score − m) / l": weights.tolist(),
            "weight with the whole matrix": recorded.tolist(),
        }
    )
    rows = walked.rows
    summary = (
        f"For “{isolated(walked.labels[query])}” only m = {written(float(rows.m[query]), '.4f')} "
        f"and l = {float(rows.l[query]):.4f} are kept. With its query and the keys, that's enough "
        f"to recompute {counted(len(recorded), 'weight')}. The largest difference is "
        f"{written(float((weights - recorded).abs().max()), '.1e')}."
    )
    return table, summary


def gradients(walked: TileWalk) -> tuple[pd.DataFrame, str]:
    """Compare tiled gradients of q, k and v with autograd on the whole matrix.

    The output itself serves as the gradient from the layers above, as if the loss were half the
    sum of its squares.
    """
    import torch

    from attention_core import attend
    from pages.learn.attention_without_the_matrix.experiment import backward

    record, mask = walked.record, walked.mask
    with torch.enable_grad():
        q, k, v = (
            of.float().cpu().clone().requires_grad_() for of in (record.q, record.k, record.v)
        )
        output = attend(q, k, v, mask=mask, scale=record.scale).context
        expected = torch.autograd.grad(output.square().sum() / 2, (q, k, v))
    with torch.inference_mode():
        rows = walked.rows
        found = backward.gradients(
            q, k, v, rows, rows.output, walked.tile, scale=record.scale, mask=mask
        )
    tiled = (found.q, found.k, found.v)
    table = [
        {
            "gradient of": name,
            "shape": " × ".join(map(str, own.shape)),
            "largest number": float(own.abs().max()),
            "largest difference from autograd": float((own - other).abs().max()),
        }
        for name, own, other in zip(("q", "k", "v"), tiled, expected, strict=True)
    ]
    n_whole = record.scores.numel()
    summary = (
        f"The backward pass recomputed {counted(found.n_weights, 'weight')}, with at most "
        f"{found.n_at_once:,} in memory at a time. With the whole matrix, all {n_whole:,} would "
        "stay in memory after the forward pass."
    )
    return pd.DataFrame(table), summary
