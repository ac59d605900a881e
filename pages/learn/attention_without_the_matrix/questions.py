"""Quiz questions of the page "Attention without the matrix"."""

from __future__ import annotations

from serving.cache import cached
from ui.widgets.questions import Question, nearest_choice


@cached(key=lambda: "attention_without_the_matrix")
def questions() -> list[Question]:
    """Three questions whose answers are computed by the functions of the page."""
    return [_factor(), _tiles(), _kept()]


def _factor() -> Question:
    import torch

    from pages.learn.attention_without_the_matrix.experiment.tiles import (
        add_tile,
        empty_rows,
    )

    v = torch.ones(1, 1)
    rows, _ = add_tile(empty_rows(v, v), torch.tensor([[1.0]]), v)
    _, factor = add_tile(rows, torch.tensor([[3.0]]), v)
    choices = {"exp(−2) = 0.135": 0.135, "exp(2) = 7.39": 7.39, "1/3 = 0.333": 0.333}
    right, wrong = nearest_choice(float(factor), choices)
    return Question(
        prompt="The largest score in a row was 1, and the next tile contains a 3. Which factor are "
        "the row's l and o multiplied by?",
        right=right,
        wrong=wrong,
        explanation=f"Every old term exp(score − 1) has to become exp(score − 3), which is "
        f"{factor[0]:.3f} times as large. The old scores aren't needed for that.",
    )


def _tiles() -> Question:
    import torch

    from attention_core.masks import causal_mask
    from pages.learn.attention_without_the_matrix.experiment.tiles import steps, tiles

    vectors = torch.zeros(16, 2)
    n_all = len(tiles(16, 16, (4, 4)))
    n_steps = len(list(steps(vectors, vectors, vectors, (4, 4), mask=causal_mask(16, 16))))
    right, wrong = nearest_choice(n_steps, {"8 of 16": 8, "10 of 16": 10, "16 of 16": 16})
    return Question(
        prompt="With 16 tokens, a causal mask and tiles of 4 × 4, how many tiles are computed?",
        right=right,
        wrong=wrong,
        explanation=f"{n_steps} of {n_all} tiles are computed: the 6 below the diagonal, and the "
        "4 on "
        "it, where the mask still allows some pairs.",
    )


def _kept() -> Question:
    from pages.learn.attention_without_the_matrix.experiment.memory import (
        in_tiles,
        whole_matrix,
    )

    tiled = [in_tiles(length, 64, (64, 64), causal=True).n_saved for length in (4096, 8192)]
    whole = [whole_matrix(length, 64).n_saved for length in (4096, 8192)]
    right, wrong = nearest_choice(tiled[1] / tiled[0], {"1 time": 1, "2 times": 2, "4 times": 4})
    return Question(
        prompt="When the text becomes twice as long, how many times as many numbers does tiled "
        "attention keep for the backward pass, besides q, k, v and the output?",
        right=right,
        wrong=wrong,
        explanation="It keeps m and l of every row. From 4,096 to 8,192 tokens that grows from "
        f"{tiled[0]:,} to {tiled[1]:,} numbers. The full matrix gets {whole[1] / whole[0]:.0f} "
        f"times as large, from {whole[0]:,} to {whole[1]:,} numbers.",
    )
