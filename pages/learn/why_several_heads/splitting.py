"""How a single matrix product becomes the queries of all heads, in a model's layer."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from serving.cache import cached
from serving.runs import Run


@dataclass(frozen=True)
class Split:
    """The steps with their shapes, and the largest difference from one product per head."""

    table: pd.DataFrame
    difference: float


@cached(key=lambda run, layer: (*run.key, layer))
def split(run: Run, layer: int) -> Split:
    """Compute a layer's queries with one product for all heads, and with one per head."""
    import torch

    from pages.learn.why_several_heads.experiment import splitting

    core = run.pretrained.core
    n_heads, head_size = core.config.n_heads, core.config.d_head
    n_tokens, wide = len(run.tokens), n_heads * head_size
    with torch.inference_mode():
        x = run.layer(layer).attention_reads[0]
        weight, bias = splitting.query_matrix(core, layer)
        together = splitting.one_product(x, weight, bias, n_heads)
        apart = splitting.product_for_each_head(x, weight, bias, n_heads)
        difference = float((together - apart).abs().max())
    wrong = splitting.misplaced(n_tokens, n_heads, head_size)
    table = pd.DataFrame(
        [
            {
                "statement": "q = x @ W_q",
                "shape": f"({n_tokens}, {x.shape[-1]}) → ({n_tokens}, {wide})",
                "reason": f"One product computes the queries of all {n_heads} heads, side by side.",
            },
            {
                "statement": f"q.view({n_tokens}, {n_heads}, {head_size})",
                "shape": f"({n_tokens}, {n_heads}, {head_size})",
                "reason": f"Each token's {wide} numbers are cut into {n_heads} heads of "
                f"{head_size}. Nothing moves in memory.",
            },
            {
                "statement": "q.transpose(0, 1)",
                "shape": format_shape(together.shape),
                "reason": "A matrix product works on the last two axes, so the head axis has to "
                "come first. If you called view() with this shape directly, "
                f"{wrong:.0%} of the numbers would be in the wrong position.",
            },
        ]
    )
    return Split(table, difference)


def format_shape(shape: tuple[int, ...]) -> str:
    """Format a shape, such as "(9, 11, 64)"."""
    return f"({', '.join(map(str, shape))})"
