"""Why each of the eleven steps is taken, with the sizes at hand."""

from __future__ import annotations

from pages.learn.shapes.walk import ShapeWalk


def reason(walk: ShapeWalk, number: int) -> str:
    """One to three sentences of Markdown about a step of a walk."""
    return _reasons(walk)[number - 1]


def _reasons(walk: ShapeWalk) -> tuple[str, ...]:
    d_in = walk.steps[0]["input"].shape[-1]
    heads, head_dim = walk.steps[1]["columns"].shape
    kv_heads = walk.steps[5]["keys"].shape[1]
    weighing = {tensor.name: tensor for tensor in walk.steps[7].tensors}
    shared = ""
    if walk.shared:
        group = heads // kv_heads
        shared = f" There are only {kv_heads} key/value heads: {group} query heads share each."
    moved = " Rotary positions then turn queries and keys." if walk.rotary else ""
    hide = (
        "Where a query may not look, put -inf, which the softmax turns into a weight of 0. Then "
        "divide"
        if "masked" in weighing
        else "Divide"
    )
    dropped = ""
    if "after dropout" in weighing:
        probability = 1.0 - 1.0 / weighing["after dropout"].factor
        dropped = (
            f" Dropout then makes each 0 with probability {probability:.1f} and the rest larger."
        )
    products = (
        "Three wide products serve all heads"
        if walk.layer is None
        else "One product makes all three, for all heads"
    )
    return (
        f"Every token is a row of {d_in} numbers. The first axis is the batch: sentences "
        "that are computed at once and never see each other.",
        f"d_out is {heads * head_dim}: {heads} heads with {head_dim} columns each. More heads of "
        "the same d_out are narrower heads. GPT models take d_out as large as the width that goes "
        f"in.{shared}",
        f"A row of {d_in} numbers goes in and a column makes one number, so W_query has "
        f"{d_in} rows and {heads * head_dim} columns: those of all heads side by side, "
        f"{head_dim} for each. The numbers begin at random, and training sets them.{shared}",
        f"A token's row times a column of W_query is one number of its query. {products}; heads on "
        f"their own would make {heads + 2 * kv_heads}.",
        f"`view` cuts each row into pieces of {head_dim}. No number moves in memory. Read the new "
        "shape from the left: sentences, tokens of a sentence, heads of a token, numbers of a "
        "head.",
        "`transpose(1, 2)` swaps token and head, because a matrix product works on the last two "
        "axes: each head now holds a small matrix with one row for each token, and one call "
        f"multiplies all heads. The shape now reads: sentences, heads, tokens, numbers.{moved}",
        "Every query meets every key of its head. A product adds up rows times columns, so "
        f"`keys.transpose(2, 3)` stands the keys up as columns: {head_dim} numbers of a query meet "
        f"{head_dim} of a key.{shared}",
        f"{hide} by √{head_dim}, which keeps scores at one size for heads of any size. The "
        f"softmax of each row makes positive numbers that sum to 1.{dropped}",
        f"Each token gets the sum of all values of its head, each times its weight.{shared}",
        "The second `transpose(1, 2)` brings the heads of one token together again.",
        "`view` joins only what lies in reading order, so `contiguous` copies the numbers into "
        "that order first. The last projection mixes what the heads found. Attention works without "
        "it, too: it is one more matrix that training sets.",
    )
