"""Explanations of the eleven steps, with the sizes of the tensors shown."""

from __future__ import annotations

from pages.learn.shapes.walk import ShapeWalk


def reason(walk: ShapeWalk, number: int) -> str:
    """Explain a step of a walk in a few sentences of Markdown."""
    return _reasons(walk)[number - 1]


def _reasons(walk: ShapeWalk) -> tuple[str, ...]:
    d_in = walk.steps[0]["input"].shape[-1]
    heads, head_dim = walk.steps[1]["columns"].shape
    kv_heads = walk.steps[5]["keys"].shape[1]
    weighing = {tensor.name: tensor for tensor in walk.steps[7].tensors}
    shared = ""
    if walk.shared:
        group = heads // kv_heads
        shared = (
            f" This model has {kv_heads} key/value heads, and {group} query heads share each one."
        )
    change = " Rotary positions then rotate queries and keys." if walk.rotary else ""
    hide = (
        "The mask sets the scores of later tokens to -inf, so the softmax gives them a weight of "
        "0. Then divide"
        if "masked" in weighing
        else "Divide"
    )
    dropped = ""
    if "after dropout" in weighing:
        probability = 1.0 - 1.0 / weighing["after dropout"].factor
        dropped = (
            f" Dropout then sets each weight to 0 with probability {probability:.1f} and scales up "
            "the rest."
        )
    products = (
        "Three matrix products are enough for all heads"
        if walk.layer is None
        else "A single matrix product computes all three, for all heads"
    )
    return (
        f"Every token is a row of {d_in} numbers. The first axis is the batch: its sentences are "
        "processed together but never see each other.",
        f"d_out is {heads * head_dim}: {heads} heads with {head_dim} columns each. If you add "
        "heads but keep d_out, each head gets narrower. In GPT models d_out equals the input "
        f"width.{shared}",
        f"A row of {d_in} numbers goes in, and each column of the matrix computes one number, so "
        f"W_query has {d_in} rows and {heads * head_dim} columns. The columns of all heads are "
        f"side by side, {head_dim} per head. The matrix starts out random, and training adjusts "
        f"it.{shared}",
        "Each number of a token's query is the token's row times one column of W_query. "
        f"{products}. With separate matrices for each head it would take "
        f"{heads + 2 * kv_heads}.",
        f"`view` cuts each row into pieces of {head_dim}. Nothing moves in memory. Read the new "
        "shape from the left: sentences, tokens, heads, columns of a head.",
        "`transpose(1, 2)` swaps the token and head axes, because a matrix product works on the "
        "last two axes. Each head is now a small matrix with one row per token, and one call "
        f"multiplies all heads. The shape now reads: sentences, heads, tokens, columns.{change}",
        "Each score is the dot product of a query and a key of the same head. A matrix product "
        "multiplies rows by columns, so `keys.transpose(2, 3)` turns the keys into columns. Each "
        f"dot product multiplies {head_dim} pairs of numbers and adds them up.{shared}",
        f"{hide} by √{head_dim}, because dot products grow with the head size. The softmax turns "
        f"each row into positive weights that sum to 1.{dropped}",
        f"Each token gets a weighted sum of its head's values.{shared}",
        "A second `transpose(1, 2)` brings the heads of each token back together.",
        "`view` can only join numbers that are next to each other in memory, so `contiguous` "
        "copies them into that order first. The output projection then mixes the results of the "
        "heads with one more trained matrix.",
    )
