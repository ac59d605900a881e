"""Quiz questions of the page "Shapes"."""

from __future__ import annotations

from functools import cache

from ui.widgets.questions import Question


@cache
def questions() -> tuple[Question, ...]:
    """Build three questions whose answers are computed from tensors."""
    import torch

    from attention_core import PRESETS, split_heads
    from attention_core.lecture_inputs import JOURNEY
    from pages.learn.shapes.experiment.mistakes import view_without_transpose

    b, t, width, heads = 2, 5, 12, 4
    split = split_heads(torch.zeros(b, t, width), heads)
    head_dim = split.shape[-1]

    tokens, cut = JOURNEY.tokens[:4], 2
    places = torch.arange(len(tokens) * 6).view(1, len(tokens), 6)
    held_token = int(view_without_transpose(places, cut)[0, 1, 0, 0]) // 6

    config = PRESETS["gpt2-xl"]
    return (
        Question(
            f"Queries of shape ({b}, {t}, {width}) are split into {heads} heads. What is their "
            "shape after `transpose(1, 2)`?",
            str(tuple(split.shape)),
            (
                str((b, t, heads, head_dim)),
                str((b, heads, head_dim, t)),
                str((b, head_dim, t, heads)),
            ),
            f"`view` makes the shape {(b, t, heads, head_dim)}, and the transpose swaps the token "
            "and head axes.",
        ),
        Question(
            f"“{' '.join(tokens)}” has six columns and {cut} heads, and someone forgets the "
            "transpose and calls `view(B, H, T, D)`. Which token's numbers are in row 0 of head 1?",
            tokens[held_token],
            tuple(token for token in tokens if token != tokens[held_token]),
            f"Head 0 gets the first {len(tokens)} pieces in memory, and each token has {cut}. So "
            f"the next piece belongs to token {held_token}, but this row is meant for token 0.",
        ),
        Question(
            f"GPT-2 XL has a width of {config.d_model} and {config.n_heads} heads. How many "
            "numbers of each token's query does one head get?",
            str(config.d_head),
            (str(config.d_model), str(config.n_heads), str(config.d_model * config.n_heads)),
            f"{config.d_model} / {config.n_heads} = {config.d_head}. GPT-2 small has the same head "
            f"size: {PRESETS['gpt2'].d_model} / {PRESETS['gpt2'].n_heads} = "
            f"{PRESETS['gpt2'].d_head}.",
        ),
    )
