"""The eleven steps of a model's layer on the visitor's sentence."""

from __future__ import annotations

from pages.learn.shapes.walk import ShapeWalk
from serving import models, runs
from serving.limits import MAX_LESSON_TOKENS

# how much of a real layer is drawn: tokens, heads, columns per head, columns per token
WINDOW_TOKENS, WINDOW_HEADS, WINDOW_COLUMNS = 6, 3, 8


def walk(name: str, text: str, number: int, head: int, first_token: int = 0) -> ShapeWalk:
    """Run a model on a sentence and return the steps of one layer.

    `WINDOW_TOKENS` tokens and `WINDOW_HEADS` heads are drawn. The heads start at `head`, or earlier
    if `head` is one of the last.

    Raises: OverLimit for a text that is too long, ValueError for one without any token, and the
    errors of loading a model.
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
    """Count a sentence's tokens; raises the same errors as `walk`."""
    return len(runs.run(name, text, MAX_LESSON_TOKENS, "this page").tokens)
