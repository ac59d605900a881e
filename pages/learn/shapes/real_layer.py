"""The steps of a model's layer on a visitor's sentence."""

from __future__ import annotations

from pages.learn.shapes.walk import ShapeWalk
from serving import models, runs
from serving.limits import MAX_LESSON_TOKENS

# what is drawn of a real layer: tokens, heads, columns of each head, columns of each token
WINDOW_TOKENS, WINDOW_HEADS, WINDOW_COLUMNS = 6, 3, 8


def walk(name: str, text: str, number: int, head: int, first_token: int = 0) -> ShapeWalk:
    """The steps of a model's layer on a sentence; `WINDOW_TOKENS` and `WINDOW_HEADS` are drawn.

    The heads begin with `head`, unless it is one of the last.

    Raises: OverLimit for a text that is too long, ValueError for one without any token, and what
    loading a model raises.
    """
    import torch

    from pages.learn.shapes.experiment.steps import layer_steps

    run = runs.run(name, text, MAX_LESSON_TOKENS, "this page")
    labels = run.tokens.labels
    core = models.get(name).core
    config = core.config
    with torch.inference_mode():
        steps = layer_steps(core, run.layer(number), number)
    first_head = max(0, min(head, config.n_heads - WINDOW_HEADS))
    heads = list(range(config.n_heads))[first_head : first_head + WINDOW_HEADS]
    group = config.n_heads // config.kv_heads
    indices = {
        "token": list(range(len(labels)))[first_token : first_token + WINDOW_TOKENS],
        "head": heads,
        "key/value head": sorted({head // group for head in heads}),
        "column": list(range(min(config.d_head, WINDOW_COLUMNS))),
        "wide column": list(range(min(config.d_model, WINDOW_COLUMNS))),
    }
    rotary = config.positions == "rotary"
    return ShapeWalk(steps, (labels,), indices, shared=group > 1, layer=number, rotary=rotary)


def n_tokens(name: str, text: str) -> int:
    """How many tokens a model makes of a sentence; errors as of `walk`."""
    return len(runs.run(name, text, MAX_LESSON_TOKENS, "this page").tokens)
