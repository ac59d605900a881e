"""Tensors that are kept, weights recomputed from them, and tiled gradients."""

from __future__ import annotations

import pandas as pd

from pages.learn.attention_without_the_matrix.tile_walk import TileWalk
from ui.text.formatting import format_number, plural
from ui.text.isolated import isolated


def saved_tensors(walk: TileWalk) -> pd.DataFrame:
    """Shapes of the tensors that both methods keep in addition to q, k and v."""
    record, rows = walk.record, walk.rows
    by_name = {
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
            for name, (whole, tiled) in by_name.items()
        ]
    )


def _shape(tensor: object) -> str:
    from torch import Tensor

    assert isinstance(tensor, Tensor)
    sizes = " × ".join(map(str, tensor.shape))
    numbers = plural(tensor.numel(), "number")
    return numbers if tensor.dim() == 1 else f"{sizes} = {numbers}"


def recompute_row(walk: TileWalk, query: int) -> tuple[pd.DataFrame, str]:
    """Recompute the weights of a query and compare them with the model's own."""
    from pages.learn.attention_without_the_matrix.experiment.backward import recompute_weights

    record = walk.record
    q, k = record.q.float().cpu(), record.k.float().cpu()
    one = slice(query, query + 1)
    mask = None if walk.mask is None else walk.mask[one]
    weights = recompute_weights(q[one], k, walk.rows.select(one), record.scale, mask)[0]
    recorded = record.weights[query].float().cpu()
    table = pd.DataFrame(
        {
            "key": walk.labels,
            "score": record.scaled_scores[query].float().cpu().tolist(),
            "exp(score − m) / l": weights.tolist(),
            "weight with the whole matrix": recorded.tolist(),
        }
    )
    rows = walk.rows
    summary = (
        f"For “{isolated(walk.labels[query])}” only m = "
        f"{format_number(float(rows.m[query]), '.4f')} "
        f"and l = {float(rows.l[query]):.4f} are kept. With its query and the keys, that's enough "
        f"to recompute {plural(len(recorded), 'weight')}. The largest difference is "
        f"{format_number(float((weights - recorded).abs().max()), '.1e')}."
    )
    return table, summary


def gradients(walk: TileWalk) -> tuple[pd.DataFrame, str]:
    """Compare tiled gradients of q, k and v with autograd on the whole matrix.

    The output itself serves as the gradient from the layers above, as if the loss were half the
    sum of its squares.
    """
    import torch

    from attention_core import attend
    from pages.learn.attention_without_the_matrix.experiment import backward

    record, mask = walk.record, walk.mask
    with torch.enable_grad():
        q, k, v = (
            of.float().cpu().clone().requires_grad_() for of in (record.q, record.k, record.v)
        )
        output = attend(q, k, v, mask=mask, scale=record.scale).context
        expected = torch.autograd.grad(output.square().sum() / 2, (q, k, v))
    with torch.inference_mode():
        rows = walk.rows
        result = backward.gradients(
            q, k, v, rows, rows.output, walk.tile, scale=record.scale, mask=mask
        )
    tiled = (result.q, result.k, result.v)
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
        f"The backward pass recomputed {plural(result.n_weights, 'weight')}, with at most "
        f"{result.n_live_weights:,} in memory at a time. With the whole matrix, all {n_whole:,} "
        "would "
        "stay in memory after the forward pass."
    )
    return pd.DataFrame(table), summary
