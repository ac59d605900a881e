"""How reordering the tokens affects the parts of a layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from pages.learn.block.originals import (
    DECODER_2017,
    ENCODER_2017,
    WIDTH_2017,
    key,
    unique_labels,
    untrained_layer,
    words_of,
)
from pages.learn.block.stream import run
from pages.learn.block.windows import COLUMNS_SHOWN, TOKENS_SHOWN
from serving import compute, models
from serving.cache import cached
from ui.canvas.tensors import Panel
from ui.text.number_text import difference

if TYPE_CHECKING:
    from torch import Tensor

ORDERS = ("reversed", "rotated", "shuffled")
MAX_SEED = 50


@dataclass(frozen=True)
class Reordered:
    """Effect of a new token order on the parts of a layer.

    table: one row per part. windows: for each part f, reordered f(x) and f(reordered x).
    """

    labels: tuple[str, ...]
    order: tuple[int, ...]
    table: pd.DataFrame
    windows: dict[str, tuple[Panel, Panel]]
    differences: dict[str, float]


def _key(choice: str, text: str, how: str, seed: int) -> tuple[object, ...]:
    return key(choice), text, how, seed if how == "shuffled" else 0


@cached(key=_key)
def reordered(choice: str, text: str, how: str, seed: int) -> Reordered:
    """Compare the parts of a 2017 layer, or of a model's first layer, in two orders.

    Errors: as in `words_of` and `run`.
    """
    import torch

    from attention_core.analysis import token_order
    from attention_core.model import original_transformer as layers_of_2017

    if choice in (ENCODER_2017, DECODER_2017):
        words = words_of(text)
        labels, rotation = unique_labels(words), None
        layer = untrained_layer(choice, 8, 2048)
        tokens = layers_of_2017.word_vectors(words, WIDTH_2017)
        places = layers_of_2017.sinusoids(len(words), WIDTH_2017)

        def embed(x: Tensor, positions: bool) -> Tensor:
            return x + places if positions else x
    else:
        labels = run(choice, text).labels
        model = models.get(choice)
        core = model.core
        layer = core.blocks[0]
        tokens = torch.tensor(model.tokenizer.encode(text).ids, device=model.device)
        places = torch.arange(len(labels), device=model.device)
        rotation = core.new_pass(core.embed(tokens[None], places).entering, places).rotation

        def embed(x: Tensor, positions: bool) -> Tensor:
            return core.embed(x, places if positions else None).entering

    order = token_order.reordered(len(labels), how, seed)
    with compute.slot(), torch.inference_mode():
        exchanges = token_order.exchanges(layer, tokens, order, embed, rotation)
    rows = [labels[i] for i in order]
    return Reordered(
        labels=labels,
        order=tuple(order),
        table=pd.DataFrame(
            {
                "part": list(exchanges),
                "largest difference": [_difference(e.difference) for e in exchanges.values()],
                "largest value": [f"{e.largest:.2f}" for e in exchanges.values()],
                "order does not matter": [
                    e.difference < 1e-4 * e.largest for e in exchanges.values()
                ],
            }
        ),
        windows={
            name: (
                _rows("part first, then reordering", e.function_first, rows),
                _rows("reordering first, then part", e.order_first, rows),
            )
            for name, e in exchanges.items()
        },
        differences={name: e.difference for name, e in exchanges.items()},
    )


def _difference(largest: float) -> str:
    """Format a difference; small ones, which are rounding, get a power of ten."""
    return f"{largest:.2f}" if largest >= 0.01 else difference(largest)


def _rows(name: str, values: Tensor, labels: list[str]) -> Panel:
    window = values[:TOKENS_SHOWN, :COLUMNS_SHOWN].float().cpu().numpy()
    rows = labels[:TOKENS_SHOWN]
    return Panel(name, window, ("token", "width"), rows=rows, whole=tuple(values.shape))
